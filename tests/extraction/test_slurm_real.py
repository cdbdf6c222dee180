"""The job scripts of docs/slurm under a real Slurm: one controller and three nodes on loopback.

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
from obygaze_features.store import JournalEntry, read_stage

from .clusters import run_locally, with_backbone, write_films
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
    array = slurm.submit(tmp_path, "array.sbatch", *words, options=limits, SHORTEST=0, **hold.at(1))
    after = ["--dependency=afterok:" + array]
    sealing = slurm.submit(tmp_path, "seal.sbatch", "films", "--licence", "CC0-1.0", options=after)

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
    array = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=both, **hold.at(1))
    hold.wait(2)
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
    array = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=spread, **hold.at(1))
    hold.wait(SHARDS)
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
        seeing = slurm.submit(
            tmp_path, "array.sbatch", *arguments(films), options=["--array=0-2", "-w", "n1"]
        )
        slurm.wait(seeing)
        words, only = arguments(films), ["--array=3", "--nodelist=n3"]
        blind = slurm.submit(tmp_path, "array.sbatch", *words, options=only, TURNS=2)
        after = ["--dependency=afterok:" + blind]
        sealing = slurm.submit(tmp_path, "seal.sbatch", "films", "--licence", "CC0-1.0", options=after)
        assert states(slurm.wait(blind)) == {"3": ("FAILED", "1")}, logs(tmp_path)
        assert re.search(
            r"n3 does not find the videos of 20 clips, such as .*/tt3/.*, and n1 does", logs(tmp_path)
        )
        assert slurm.wait(sealing)[""]["JobState"] == "CANCELLED"  # its dependency can never be met
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


def words_of(pid: int) -> str:
    return (Path("/proc") / str(pid) / "cmdline").read_bytes().decode().replace("\0", " ")


def test_one_task_is_run_again_by_its_number_and_never_seals(slurm, films, local, tmp_path, tree, hold):
    every = ["--array=0-3"]
    array = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=every, TURNS=1, **hold.at(1))
    [last] = [pid for pid in hold.wait(SHARDS) if f"--shard 3/{SHARDS}" in words_of(pid)]
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
    array = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=limits, **hold.at(1))
    hold.wait(1)
    slurm.ask("scancel", "--batch", "--signal=USR1", f"{array}_0")
    assert states(slurm.wait(array)) == {"0": ("FAILED", "143")}, logs(tmp_path)
    assert "Slurm refused another turn" in logs(tmp_path)
