"""The job scripts under a real Slurm: one controller and three nodes on loopback.

Only here is seen what Slurm itself makes of the scripts: its signals, turns, dependencies and lost nodes.
"""

import contextlib
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from obygaze_features.errors import StoreError
from obygaze_features.extraction import Site, write_job_scripts
from obygaze_features.store import JournalEntry, read_stage
from tests.process import execute

from .clusters import run_locally, wait_until, with_backbone, write_films
from .slurm_cluster import ABSENT, SHARDS, Jobs, Slurm

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        bool(ABSENT), reason=f"no Slurm here ({', '.join(ABSENT)}): apt-get install slurm-wlm"
    ),
    pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="Slurm's daemons are started as root"),
]
CLIPS = 62  # with two that fail, a piece for each of four shards


@pytest.fixture(scope="module")
def films(tmp_path_factory) -> Path:
    return write_films(tmp_path_factory.mktemp("films"), CLIPS)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory) -> Iterator[Slurm]:
    """A Slurm of three nodes, whose jobs find the backbone `nap`."""
    folder = Path(tempfile.mkdtemp(prefix="slurm"))
    cluster = Slurm(folder, with_backbone(tmp_path_factory.mktemp("site"), "nap"))
    try:
        cluster.begin()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def local(films, slurm, tmp_path_factory) -> Path:
    words = (*work(films), "--licence", "CC0-1.0")
    return run_locally(tmp_path_factory.mktemp("local"), slurm.environment, *words)


def work(films: Path) -> list[str]:
    return ["extract", str(films / "films.csv"), "films", "--backbone", "nap", "--corpus", "films"]


def arguments(films: Path) -> list[str]:
    return [*work(films)[1:], "--batch-size", "1"]


def logs(folder: Path) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.log")))


def journalled(folder: Path) -> list[JournalEntry]:
    with contextlib.suppress(OSError, StoreError):  # not begun yet
        return list(read_stage(folder / "films.staging").status().values())
    return []


def ended(jobs: Jobs, *tasks: str) -> bool:
    return all(jobs[task]["JobState"] in {"COMPLETED", "FAILED"} for task in tasks)


def task_of(pid: int) -> str:
    words = (Path("/proc") / str(pid) / "environ").read_bytes().decode().split("\0")
    return next(word for word in words if word.startswith("SLURM_ARRAY_TASK_ID=")).partition("=")[2]


def seal(slurm: Slurm, folder: Path) -> dict[str, str]:
    number = slurm.submit(folder, "seal.sbatch", "films", "--licence", "CC0-1.0")
    return slurm.wait(number)[""]


def states(jobs: Jobs) -> dict[str, tuple[str, str]]:
    return {task: (job["JobState"], job["ExitCode"].partition(":")[0]) for task, job in jobs.items()}


@pytest.mark.nightly
def test_an_array_whose_time_is_up_goes_on_in_another_turn_and_is_then_sealed(
    slurm, films, local, tmp_path, tree, hold
):
    # Slurm sends the signal half a minute to a minute after the begin, and each share waits for it.
    limits = ["--array=0-3", "--time=2", "--signal=B:USR1@60"]
    words = arguments(films)
    array = slurm.submit(tmp_path, "array.sbatch", *words, options=limits, SHORTEST=0, **hold.after_clips(1))
    after = ["--dependency=afterany:" + array]
    sealing = slurm.submit(
        tmp_path, "seal.sbatch", "films", "--licence", "CC0-1.0", options=after, ARRAY=array
    )

    def seen(jobs: Jobs) -> None:
        if len(jobs) == SHARDS and all(int(job["Restarts"]) for job in jobs.values()):
            hold.release()

    ended = slurm.wait(array, seen=seen)
    assert states(ended) == {str(task): ("COMPLETED", "0") for task in range(SHARDS)}, logs(tmp_path)
    assert "turn 2 of 20" in logs(tmp_path)
    assert slurm.wait(sealing)[""]["JobState"] == "COMPLETED", logs(tmp_path)
    assert tree(tmp_path / "films-1.0.0") == tree(local)


def test_scancel_cancels_and_what_is_done_is_kept(slurm, films, tmp_path, hold):
    both = ["--array=0-1"]
    array = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=both, **hold.after_clips(1))
    hold.wait_for_processes(2)
    slurm.ask("scancel", array)
    time.sleep(10)  # it came back after seconds
    ended = slurm.wait(array)
    assert {job["JobState"] for job in ended.values()} == {"CANCELLED"}, ended
    assert {job["Restarts"] for job in ended.values()} == {"0"}
    assert len(re.findall("obygaze: stopped; .* clips are left", logs(tmp_path))) == 2
    assert slurm.ask("squeue", "-h", "-j", array).split() == []
    assert not (tmp_path / "films-1.0.0").exists()


def test_a_node_killed_under_an_array_costs_its_tasks_a_turn(slurm, films, local, tmp_path, tree, hold):
    spread = ["--array=0-3", "--cpus-per-task=2"]  # two tasks fill a node of four cores
    array = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=spread, **hold.after_clips(1))
    hold.wait_for_processes(SHARDS)
    victim = slurm.jobs(array)["0"]["NodeList"]
    slurm.kill_node(victim)
    hold.release()
    ended = slurm.wait(array)
    slurm.start_node(victim)
    assert states(ended) == {str(task): ("COMPLETED", "0") for task in range(SHARDS)}, logs(tmp_path)
    assert int(ended["0"]["Restarts"]) == 1
    assert seal(slurm, tmp_path)["JobState"] == "COMPLETED", logs(tmp_path)
    assert tree(tmp_path / "films-1.0.0") == tree(local)


def test_a_node_without_the_videos_leaves_no_hole(slurm, films, local, tmp_path, tree):
    slurm.kill_node("n3")
    slurm.start_node("n3", hidden=films / "tt3")
    try:
        held = ["--array=0-3", "--hold", "--nodelist=n1"]
        array = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=held, TURNS=2)
        after = ["--dependency=afterany:" + array]
        sealing = slurm.submit(
            tmp_path, "seal.sbatch", "films", "--licence", "CC0-1.0", options=after, ARRAY=array
        )
        for task in range(3):
            slurm.ask("scontrol", "release", f"{array}_{task}")
        wait_until(lambda: ended(slurm.jobs(array), "0", "1", "2"))
        slurm.ask("scontrol", "update", f"JobId={array}_3", "ReqNodeList=n3")
        slurm.ask("scontrol", "release", f"{array}_3")
        of_tasks = states(slurm.wait(array))
        assert of_tasks["3"] == ("FAILED", "1"), logs(tmp_path)
        assert re.search(
            r"n3 does not find the videos of 20 clips, such as .*/tt3/.*, and n1 does", logs(tmp_path)
        )
        assert slurm.wait(sealing)[""]["JobState"] == "FAILED"
        assert re.search(rf"failed: extract-{array}_3\.log: .* ended with 1", logs(tmp_path))
        assert len(re.findall("failed: extract|killed: extract", logs(tmp_path))) == 1
        assert {entry.clip_id for entry in journalled(tmp_path) if "no such file" in entry.reason} <= {
            "tt1-901"
        }
        assert not (tmp_path / "films-1.0.0").exists()
    finally:
        slurm.kill_node("n3")
        slurm.start_node("n3")
    again = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=["--array=3"])
    assert states(slurm.wait(again)) == {"3": ("COMPLETED", "0")}, logs(tmp_path)
    assert seal(slurm, tmp_path)["JobState"] == "COMPLETED", logs(tmp_path)
    assert tree(tmp_path / "films-1.0.0") == tree(local)


def test_a_preempted_task_goes_on_in_another_turn(slurm, films, local, tmp_path, tree, hold):
    spread = ["--array=0-3", "--cpus-per-task=2"]
    array = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=spread, **hold.after_clips(1))
    hold.wait_for_processes(SHARDS)
    node = slurm.jobs(array)["0"]["NodeList"]
    urgent = (
        "sbatch",
        "-p",
        "urgent",
        "-w",
        node,
        "--exclusive",
        "-o",
        tmp_path / "urgent",
        "--wrap",
        "true",
    )
    slurm.ask(*map(str, urgent))
    wait_until(lambda: int(slurm.jobs(array)["0"]["Restarts"]))
    hold.release()
    ended = slurm.wait(array)
    assert states(ended) == {str(task): ("COMPLETED", "0") for task in range(SHARDS)}, logs(tmp_path)
    assert seal(slurm, tmp_path)["JobState"] == "COMPLETED", logs(tmp_path)
    assert tree(tmp_path / "films-1.0.0") == tree(local)


@pytest.fixture
def written(tmp_path) -> Path:
    """The scripts that a site of small nodes gets."""
    small = {"gres": "none", "mem": "500M", "cpus-per-task": "1"}
    write_job_scripts(tmp_path / "jobs", Site(licence="CC0-1.0", tasks=SHARDS, sbatch=small))
    return tmp_path / "jobs" / "submit.sh"


def test_the_scripts_that_a_site_gets_make_the_store_in_one_command(
    slurm, films, local, tmp_path, tree, written
):
    output = execute(written, *work(films)[1:], cwd=tmp_path, env=slurm.environment).stdout
    array, sealing = re.findall(r"[Jj]ob (?:array )?(\d+)", output)[:2]
    assert states(slurm.wait(array)) == {str(task): ("COMPLETED", "0") for task in range(SHARDS)}
    assert slurm.wait(sealing)[""]["JobState"] == "COMPLETED", logs(tmp_path)
    assert tree(tmp_path / "films-1.0.0") == tree(local)


def test_nothing_is_queued_where_slurm_would_refuse_the_job_that_seals(slurm, films, tmp_path, written):
    sealing = written.with_name("seal.sbatch")
    script = sealing.read_text(encoding="utf-8")
    sealing.write_text(script.replace("--mem=8G", "--mem=9999G"), encoding="utf-8")
    result = execute(written, *work(films)[1:], cwd=tmp_path, env=slurm.environment, code=1)
    assert "nothing was submitted" in result.stderr
    assert slurm.ask("squeue", "-h").split() == []


@pytest.mark.nightly
def test_one_allocation_of_three_nodes_is_a_ray_cluster(slurm, films, local, tmp_path, tree):
    pytest.importorskip("ray")
    words = [*arguments(films), "--licence", "CC0-1.0"]
    number = slurm.submit(
        tmp_path,
        "ray.sbatch",
        *words,
        options=["--mem=2000", "--overcommit"],
        ADDRESS="127.0.0.1",
        OBJECT_STORE=80000000,
        RAY_memory_monitor_refresh_ms=0,
    )
    assert states(slurm.wait(number)) == {"": ("COMPLETED", "0")}, logs(tmp_path)
    assert tree(tmp_path / "films-1.0.0") == tree(local)


def test_one_task_is_run_again_by_its_number_and_never_seals(slurm, films, local, tmp_path, tree, hold):
    every = ["--array=0-3"]
    array = slurm.submit(
        tmp_path, "array.sbatch", *arguments(films), options=every, TURNS=1, **hold.after_clips(1)
    )
    [last] = [pid for pid in hold.wait_for_processes(SHARDS) if task_of(pid) == "3"]
    os.kill(last, signal.SIGKILL)
    hold.release()
    ended = slurm.wait(array)
    assert {task: state for task, (state, _) in states(ended).items()} == {
        "0": "COMPLETED", "1": "COMPLETED", "2": "COMPLETED", "3": "FAILED"
    }  # fmt: skip
    assert "turn 1 of 1: not queued again" in logs(tmp_path)
    before = len(journalled(tmp_path))
    again = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=["--array=3"])
    assert states(slurm.wait(again)) == {"3": ("COMPLETED", "0")}, logs(tmp_path)
    assert before < len(journalled(tmp_path)) == CLIPS + 2
    assert not (tmp_path / "films-1.0.0").exists()
    assert seal(slurm, tmp_path)["JobState"] == "COMPLETED", logs(tmp_path)
    assert tree(tmp_path / "films-1.0.0") == tree(local)


def test_a_refused_requeue_is_a_failed_job(slurm, films, tmp_path, hold):
    limits = ["--array=0", "--no-requeue"]
    array = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=limits, **hold.after_clips(1))
    hold.wait_for_processes(1)
    slurm.ask("scancel", "--batch", "--signal=USR1", f"{array}_0")
    assert states(slurm.wait(array)) == {"0": ("FAILED", "143")}, logs(tmp_path)
    assert "Slurm refused another turn" in logs(tmp_path)
