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
N_CLIPS = 62
"""With the two of `write_films` that fail, a piece of clips for each of the four tasks."""


ALL_TASKS = "--array=0-3"


TWO_TASKS_A_NODE = "--cpus-per-task=2"
"""Two tasks fill a node of four cores, so that the four tasks take two nodes."""


EXTRACTED_TO_THE_END = {str(task): ("COMPLETED", "0") for task in range(SHARDS)}
"""States and exit codes of an array whose tasks have all done their share."""


@pytest.fixture(scope="module")
def folder_of_64_clips(tmp_path_factory) -> Path:
    """A folder of 64 clips, two of which cannot be read, and films.csv."""
    return write_films(tmp_path_factory.mktemp("films"), N_CLIPS)


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
def local_store(folder_of_64_clips, slurm, tmp_path_factory) -> Path:
    """The store of the films that one process makes without Slurm."""
    words = ("extract", *extraction_words(folder_of_64_clips), "--licence", "CC0-1.0")
    return run_locally(tmp_path_factory.mktemp("local"), slurm.environment, *words)


def extraction_words(films: Path) -> list[str]:
    """What is typed after `obygaze extract` to make the store `films`."""
    return [str(films / "films.csv"), "films", "--backbone", "nap", "--corpus", "films"]


def submit_array(slurm: Slurm, folder: Path, films: Path, *options: str, **variables: object) -> str:
    """Submit an array job that extracts the films, into a folder; gives its number."""
    words = [*extraction_words(films), "--batch-size", "1"]
    return slurm.submit(folder, "array.sbatch", *words, options=options, **variables)


def submit_sealing(slurm: Slurm, folder: Path, array: str) -> str:
    """Submit the job that seals the store once an array has ended; gives its number."""
    words = ("seal.sbatch", "films", "--licence", "CC0-1.0")
    return slurm.submit(folder, *words, options=[f"--dependency=afterany:{array}"], ARRAY=array)


def text_of_logs(folder: Path) -> str:
    """Read what all jobs have written."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.log")))


def journal_entries(folder: Path) -> list[JournalEntry]:
    """What the journal says of each clip that is done; nothing before it is begun."""
    with contextlib.suppress(OSError, StoreError):
        return list(read_stage(folder / "films.staging").status().values())
    return []


def have_ended(jobs: Jobs, *tasks: str) -> bool:
    return all(jobs[task]["JobState"] in {"COMPLETED", "FAILED"} for task in tasks)


def task_of(pid: int) -> str:
    """Read the number of its task from a process's environment."""
    environment = (Path("/proc") / str(pid) / "environ").read_bytes().decode().split("\0")
    (task,) = (line for line in environment if line.startswith("SLURM_ARRAY_TASK_ID="))
    return task.removeprefix("SLURM_ARRAY_TASK_ID=")


def seal(slurm: Slurm, folder: Path) -> str:
    """Seal the store by a job of its own; return the state in which it ends."""
    number = slurm.submit(folder, "seal.sbatch", "films", "--licence", "CC0-1.0")
    return state_of_single_job(slurm, number)


def states(jobs: Jobs) -> dict[str, tuple[str, str]]:
    """Task of an array, or "" for a single job -> the state of its job and its exit code."""
    state_and_code = {}
    for task, job in jobs.items():
        exit_code, _, _ = job["ExitCode"].partition(":")
        state_and_code[task] = (job["JobState"], exit_code)
    return state_and_code


def state_of_single_job(slurm: Slurm, number: str) -> str:
    """Wait for a job that is no array, and return the state in which it ends."""
    return slurm.wait(number)[""]["JobState"]


@pytest.mark.nightly
def test_an_array_whose_time_is_up_resumes_in_another_turn(
    slurm, folder_of_64_clips, local_store, tmp_path, file_digests, pause
):
    """Four tasks have two minutes each, and pause after their first clip until Slurm has stopped all of them.

    Slurm begins them again, and in their second turn they do the clips that are left. The store then has the
    bytes of the store that one process made without Slurm.
    """
    # Slurm sends the signal USR1 a minute (60 s) before the two are over.
    two_minutes = ["--time=2", "--signal=B:USR1@60"]
    array = submit_array(
        slurm,
        tmp_path,
        folder_of_64_clips,
        ALL_TASKS,
        *two_minutes,
        SHORTEST=0,  # else the script refuses to work in turns of two minutes
        **pause.variables(after_clips=1),
    )

    sealing = submit_sealing(slurm, tmp_path, array)

    def end_pause_in_second_turn(jobs: Jobs) -> None:
        are_all_in_second_turn = all(int(job["Restarts"]) > 0 for job in jobs.values())
        if len(jobs) == SHARDS and are_all_in_second_turn:
            pause.end()

    jobs = slurm.wait(array, seen=end_pause_in_second_turn)
    assert states(jobs) == EXTRACTED_TO_THE_END, text_of_logs(tmp_path)
    assert "turn 2 of 20" in text_of_logs(tmp_path)

    assert state_of_single_job(slurm, sealing) == "COMPLETED", text_of_logs(tmp_path)
    assert file_digests(tmp_path / "films-1.0.0") == file_digests(local_store)


@pytest.mark.nightly
def test_a_cancelled_array_stays_cancelled_and_says_what_is_left(slurm, folder_of_64_clips, tmp_path, pause):
    """A task that ends for want of time is queued again; one that was cancelled must not be.

    Both tasks of an array are cancelled while they pause after their first clip. Each log says how many clips
    are left, and no store is made.
    """
    array = submit_array(slurm, tmp_path, folder_of_64_clips, "--array=0-1", **pause.variables(after_clips=1))
    pause.wait_until_paused(number=2)

    slurm.ask("scancel", array)
    time.sleep(10)  # were it queued again, it would be so within seconds
    jobs = slurm.wait(array)

    assert {job["JobState"] for job in jobs.values()} == {"CANCELLED"}, jobs
    assert {job["Restarts"] for job in jobs.values()} == {"0"}
    n_tasks_that_say_what_is_left = len(
        re.findall("obygaze: stopped; .* clips are left", text_of_logs(tmp_path))
    )
    assert n_tasks_that_say_what_is_left == 2
    tasks_in_queue = slurm.ask("squeue", "--noheader", f"--jobs={array}").split()
    assert tasks_in_queue == []
    assert not (tmp_path / "films-1.0.0").exists()


@pytest.mark.nightly
def test_tasks_of_a_node_that_is_killed_are_begun_again(
    slurm, folder_of_64_clips, local_store, tmp_path, file_digests, pause
):
    """Four tasks run on two nodes and pause after their first clip; then the node of task 0 is killed.

    Slurm begins task 0 once more, on another node. The store then has the bytes of the store that one process
    made without Slurm.
    """
    array = submit_array(
        slurm, tmp_path, folder_of_64_clips, ALL_TASKS, TWO_TASKS_A_NODE, **pause.variables(after_clips=1)
    )
    pause.wait_until_paused(number=4)

    node_of_task_0 = slurm.jobs(array)["0"]["NodeList"]
    slurm.kill_node(node_of_task_0)
    pause.end()

    jobs = slurm.wait(array)
    slurm.start_node(node_of_task_0)
    assert states(jobs) == EXTRACTED_TO_THE_END, text_of_logs(tmp_path)
    n_restarts_of_task_0 = int(jobs["0"]["Restarts"])
    assert n_restarts_of_task_0 == 1

    assert seal(slurm, tmp_path) == "COMPLETED", text_of_logs(tmp_path)
    assert file_digests(tmp_path / "films-1.0.0") == file_digests(local_store)


@pytest.fixture
def node_without_videos(slurm, folder_of_64_clips) -> Iterator[str]:
    """The node n3, which finds the folder tt3 of the videos empty until the test ends."""
    slurm.kill_node("n3")
    slurm.start_node("n3", hidden=folder_of_64_clips / "tt3")
    yield "n3"
    slurm.kill_node("n3")
    slurm.start_node("n3")


def submit_with_last_task_held_for(node: str, slurm: Slurm, folder: Path, films: Path) -> str:
    """Submit an array of four tasks, and wait until the tasks 0 to 2 have ended on the node n1.

    Task 3 is held, and waits for `let_begin`; then it begins on `node`. Gives the number of the array.
    """
    all_held_on_n1 = [ALL_TASKS, "--hold", "--nodelist=n1"]
    array = submit_array(slurm, folder, films, *all_held_on_n1, TURNS=2)
    for task in (0, 1, 2):
        let_begin(slurm, array, task=task)
    wait_until(lambda: have_ended(slurm.jobs(array), "0", "1", "2"))
    slurm.ask("scontrol", "update", f"JobId={array}_3", f"ReqNodeList={node}")
    return array


def let_begin(slurm: Slurm, array: str, *, task: int) -> None:
    """Release a task of an array that Slurm holds."""
    slurm.ask("scontrol", "release", f"{array}_{task}")


def test_a_task_on_a_node_without_the_videos_fails_and_nothing_is_sealed(
    slurm, folder_of_64_clips, node_without_videos, tmp_path
):
    """An array of four tasks extracts 64 clips. Tasks 0 to 2 have ended on node n1, which has all videos.

    Task 3 begins on node n3, on which the folder tt3 with the videos of 20 clips is empty, as if its disk
    were not mounted. The task must fail and say so, the job that seals must fail too and name task 3 alone,
    and there is no store.

    The 20 clips themselves must not be recorded as failed for want of a file. In the journal only the clip
    tt1-901 may be, whose file is nowhere.
    """
    array = submit_with_last_task_held_for(node_without_videos, slurm, tmp_path, folder_of_64_clips)
    sealing = submit_sealing(slurm, tmp_path, array)

    let_begin(slurm, array, task=3)

    assert states(slurm.wait(array))["3"] == ("FAILED", "1"), text_of_logs(tmp_path)
    assert state_of_single_job(slurm, sealing) == "FAILED"
    assert not (tmp_path / "films-1.0.0").exists()

    log = text_of_logs(tmp_path)
    assert re.search(r"n3 does not find the videos of 20 clips, such as .*/tt3/.*, and n1 does", log)
    assert re.search(rf"failed: extract-{array}_3\.log: .* ended with 1", log)
    n_tasks_said_to_have_failed = len(re.findall("failed: extract|killed: extract", log))
    assert n_tasks_said_to_have_failed == 1

    clips_without_file = set()
    for entry in journal_entries(tmp_path):
        if "no such file" in entry.reason:
            clips_without_file.add(entry.clip_id)
    assert clips_without_file <= {"tt1-901"}


@pytest.mark.nightly
def test_another_node_does_a_task_that_lacked_the_videos(
    slurm, folder_of_64_clips, local_store, node_without_videos, tmp_path, file_digests
):
    """Four tasks share the clips of a store. Task 3 comes to node n3, which finds a folder of videos empty.

    It fails, and does its clips when it is submitted again, to node n1, which has all videos. The store can
    then be sealed, and has the bytes of the store that one process made without Slurm.
    """
    array = submit_with_last_task_held_for(node_without_videos, slurm, tmp_path, folder_of_64_clips)
    let_begin(slurm, array, task=3)
    state_and_exit_code = states(slurm.wait(array))["3"]
    assert state_and_exit_code == ("FAILED", "1"), text_of_logs(tmp_path)

    array_of_task_3 = submit_array(slurm, tmp_path, folder_of_64_clips, "--array=3", "--nodelist=n1")
    state_by_task = states(slurm.wait(array_of_task_3))

    assert state_by_task == {"3": ("COMPLETED", "0")}, text_of_logs(tmp_path)
    assert seal(slurm, tmp_path) == "COMPLETED", text_of_logs(tmp_path)
    sealed_store = tmp_path / "films-1.0.0"
    assert file_digests(sealed_store) == file_digests(local_store)


def submit_urgent_job_to(node: str, slurm: Slurm, folder: Path) -> None:
    """Submit a job, of a partition that goes before others, which does nothing and needs a whole node."""
    options = ["--partition=urgent", f"--nodelist={node}", "--exclusive", f"--output={folder / 'urgent'}"]
    slurm.ask("sbatch", *options, "--wrap=true")


@pytest.mark.nightly
def test_a_task_that_an_urgent_job_drives_from_its_node_is_begun_again(
    slurm, folder_of_64_clips, local_store, tmp_path, file_digests, pause
):
    """Four tasks pause after their first clip, while an urgent job takes the whole node of task 0 from it.

    Slurm begins task 0 again when there is room. The store then has the bytes of the store that one process
    made without Slurm.
    """
    array = submit_array(
        slurm, tmp_path, folder_of_64_clips, ALL_TASKS, TWO_TASKS_A_NODE, **pause.variables(after_clips=1)
    )
    pause.wait_until_paused(number=4)

    submit_urgent_job_to(slurm.jobs(array)["0"]["NodeList"], slurm, tmp_path)
    wait_until(lambda: int(slurm.jobs(array)["0"]["Restarts"]) > 0)
    pause.end()

    assert states(slurm.wait(array)) == EXTRACTED_TO_THE_END, text_of_logs(tmp_path)
    assert seal(slurm, tmp_path) == "COMPLETED", text_of_logs(tmp_path)
    assert file_digests(tmp_path / "films-1.0.0") == file_digests(local_store)


@pytest.fixture
def script_that_submits_all(tmp_path) -> Path:
    """The script submit.sh that `obygaze` writes for a cluster of small nodes, with those that it submits."""
    small = {"gres": "none", "mem": "500M", "cpus-per-task": "1"}
    write_job_scripts(tmp_path / "jobs", Site(licence="CC0-1.0", tasks=SHARDS, sbatch=small))
    return tmp_path / "jobs" / "submit.sh"


def test_the_script_submit_makes_the_store_in_one_command(
    slurm, folder_of_64_clips, local_store, tmp_path, file_digests, script_that_submits_all
):
    """The script submit.sh submits the array that extracts and the job that seals, and prints their numbers.

    The store has the bytes of the store that one process made without Slurm.
    """
    result = execute(
        script_that_submits_all, *extraction_words(folder_of_64_clips), cwd=tmp_path, env=slurm.environment
    )

    array, sealing, *_other_numbers = re.findall(r"[Jj]ob (?:array )?(\d+)", result.stdout)
    assert states(slurm.wait(array)) == EXTRACTED_TO_THE_END
    assert state_of_single_job(slurm, sealing) == "COMPLETED", text_of_logs(tmp_path)
    assert file_digests(tmp_path / "films-1.0.0") == file_digests(local_store)


def test_submit_queues_nothing_if_slurm_would_refuse_the_seal_job(
    slurm, folder_of_64_clips, tmp_path, script_that_submits_all
):
    """The job that seals asks for 9999 GB of memory, which no node has."""
    script_that_seals = script_that_submits_all.with_name("seal.sbatch")
    script = script_that_seals.read_text(encoding="utf-8")
    assert "--mem=8G" in script
    script_that_seals.write_text(script.replace("--mem=8G", "--mem=9999G"), encoding="utf-8")
    words = extraction_words(folder_of_64_clips)

    result = execute(script_that_submits_all, *words, cwd=tmp_path, env=slurm.environment, code=1)

    assert "nothing was submitted" in result.stderr
    queued_jobs = slurm.ask("squeue", "-h").split()
    assert queued_jobs == []


@pytest.mark.nightly
def test_one_allocation_of_three_nodes_is_a_ray_cluster(
    slurm, folder_of_64_clips, local_store, tmp_path, file_digests
):
    """The script ray.sbatch starts Ray, which spreads work over machines, on three nodes, and extracts.

    The store has the bytes of the store that one process made without Slurm or Ray.
    """
    pytest.importorskip("ray")
    # All nodes are this machine: one address, small stores of objects, and no watch over its memory.
    for_one_machine = {
        "ADDRESS": "127.0.0.1",
        "OBJECT_STORE": 80_000_000,
        "RAY_memory_monitor_refresh_ms": 0,
    }
    words = [*extraction_words(folder_of_64_clips), "--batch-size", "1", "--licence", "CC0-1.0"]
    options_of_sbatch = ["--mem=2000", "--overcommit"]

    number = slurm.submit(tmp_path, "ray.sbatch", *words, options=options_of_sbatch, **for_one_machine)

    single_job = ""  # is no task of an array
    assert states(slurm.wait(number)) == {single_job: ("COMPLETED", "0")}, text_of_logs(tmp_path)
    assert file_digests(tmp_path / "films-1.0.0") == file_digests(local_store)


@pytest.mark.nightly
def test_a_task_that_failed_in_its_last_turn_is_run_again_by_its_number(
    slurm, folder_of_64_clips, local_store, tmp_path, file_digests, pause
):
    """Four tasks share 64 clips. Task 3 is killed while it pauses, and has one turn: it is not queued again.

    A person then runs task 3 by its number, and the journal has all clips. The store has the bytes of the
    store that one process made without Slurm.
    """
    array = submit_array(
        slurm, tmp_path, folder_of_64_clips, ALL_TASKS, TURNS=1, **pause.variables(after_clips=1)
    )
    pids_of_tasks = pause.wait_until_paused(number=4)
    (pid_of_task_3,) = [pid for pid in pids_of_tasks if task_of(pid) == "3"]
    os.kill(pid_of_task_3, signal.SIGKILL)
    pause.end()

    state_of_task = {task: state for task, (state, _exit_code) in states(slurm.wait(array)).items()}
    assert state_of_task == {"0": "COMPLETED", "1": "COMPLETED", "2": "COMPLETED", "3": "FAILED"}
    assert "turn 1 of 1: not queued again" in text_of_logs(tmp_path)

    n_clips_in_journal_before = len(journal_entries(tmp_path))
    array_of_task_3 = submit_array(slurm, tmp_path, folder_of_64_clips, "--array=3")
    assert states(slurm.wait(array_of_task_3)) == {"3": ("COMPLETED", "0")}, text_of_logs(tmp_path)
    assert n_clips_in_journal_before < 64
    assert len(journal_entries(tmp_path)) == 64
    assert not (tmp_path / "films-1.0.0").exists()  # a task does not seal

    assert seal(slurm, tmp_path) == "COMPLETED", text_of_logs(tmp_path)
    assert file_digests(tmp_path / "films-1.0.0") == file_digests(local_store)


def test_a_task_that_may_not_be_queued_again_has_failed(slurm, folder_of_64_clips, tmp_path, pause):
    """Slurm tells a task by the signal USR1 that its time is up. The task then queues itself again.

    Here Slurm refuses that, as the array was submitted with `--no-requeue`. So the task has failed, and its
    log says why. The backbone `nap` pauses the extraction after the first clip, so that it is at work when
    the signal comes.
    """
    only_task = ["--array=0", "--no-requeue"]
    array = submit_array(slurm, tmp_path, folder_of_64_clips, *only_task, **pause.variables(after_clips=1))
    pause.wait_until_paused(1)

    # To the batch script alone, as Slurm does when time is up.
    slurm.ask("scancel", "--batch", "--signal=USR1", f"{array}_0")

    code_of_sigterm = "143"  # with which the script stops the command
    assert states(slurm.wait(array)) == {"0": ("FAILED", code_of_sigterm)}, text_of_logs(tmp_path)
    assert "Slurm refused another turn" in text_of_logs(tmp_path)
