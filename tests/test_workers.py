"""Workers run tasks in processes that may be killed at any moment; only tiny tasks are needed to see it."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from obygaze_features import messages, workers
from obygaze_features.errors import WorkerError
from obygaze_features.workers import WorkerPool

LONG_S = 600.0
"""A limit for what takes less than a second, so that it ends what hangs, and nothing on a slow machine."""

linux = pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs POSIX shared memory")  # noqa: S108


def work(task, parent):
    """Do what a task says, as a worker."""
    match task:
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "leave":
            os._exit(7)
        case "hang":
            parent.send("begun")
            time.sleep(600)
        case "tear":  # send the beginning of a message, and die
            parent._answers.write(workers._HEAD.pack(b"item", 1000) + b"x")
            parent._answers.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise ZeroDivisionError("in the middle")
        case "parent":
            parent.send(os.getppid())
        case "wait":
            parent.send("ready")
            parent.send(parent.receive())
        case ("array", name):  # written into a block whose name nobody knows yet
            parent._packer._name = name
            parent._packer.pack(np.ones(1 << 20))
            parent.send("written")
            time.sleep(600)
        case _:
            parent.send(task)
            parent.send(os.getpid())


class DiesThreeTimes:
    """Kills the first three workers that import it."""

    def __reduce__(self):
        return die_three_times, ()


def die_three_times():
    crashes = Path(os.environ["CRASHES"])
    if (before := len(list(crashes.iterdir()))) < 3:
        (crashes / str(before)).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return work


class DiesAtOnce:
    """Kills every worker that imports it."""

    def __reduce__(self):
        return os.abort, ()


class Fails:
    """Cannot be imported."""

    def __reduce__(self):
        return int, ("no number",)


def collect(pool, keys):
    """Return the events of some tasks until each has ended."""
    result = {key: [] for key in keys}
    left = set(keys)
    while left:
        event = pool.get(LONG_S)
        assert event is not None, "nothing happened for ten minutes"
        result[event.key].append(event)
        if event.kind != "item":
            left.remove(event.key)
    return result


def ended(events):
    return {key: (some[-1].kind, some[-1].value) for key, some in events.items()}


@pytest.mark.long
def test_a_worker_that_dies_while_it_works_or_sends_costs_its_own_task_alone():
    tasks = ["die", "leave", "tear", "fine", "good"]
    with WorkerPool(2, work) as pool:
        for task in tasks:
            pool.put(task, task, LONG_S)
        events = collect(pool, tasks)
        assert ended(events) == {
            "die": ("died", "signal 9"),
            "leave": ("died", "exit code 7"),
            "tear": ("died", "signal 9"),
            "fine": ("done", None),
            "good": ("done", None),
        }
        assert [event.value for event in events["fine"][:1]] == ["fine"]
        assert len(pool.pids()) <= 2


@pytest.mark.long
def test_an_idle_worker_may_be_killed_and_costs_no_task():
    with WorkerPool(1, work) as pool:
        pool.put("first", "first", LONG_S)
        idle = collect(pool, ["first"])["first"][1].value
        os.kill(idle, signal.SIGKILL)
        pool.put("second", "second", LONG_S)
        events = collect(pool, ["second"])["second"]
        assert [event.kind for event in events] == ["item", "item", "done"]
        assert events[1].value != idle


@pytest.mark.long
def test_starting_workers_may_be_killed_and_cost_no_task(tmp_path, monkeypatch):
    monkeypatch.setenv("CRASHES", str(tmp_path))
    with WorkerPool(1, DiesThreeTimes()) as pool:
        pool.put("any", "any", LONG_S)
        events = collect(pool, ["any"])["any"]
        assert [event.kind for event in events] == ["item", "item", "done"]
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.long
def test_a_task_that_takes_too_long_is_stopped_with_its_worker():
    with WorkerPool(1, work) as pool:
        pool.put("hang", "hang", 0.2)
        pool.put("fine", "fine", LONG_S)
        events = collect(pool, ["hang", "fine"])
        assert [event.kind for event in events["fine"]] == ["item", "item", "done"]
        assert events["hang"][-1].kind == "late"


@pytest.mark.long
def test_errors_of_the_work_are_raised_with_where_they_were():
    with WorkerPool(1, work) as pool:
        pool.put("raise", "raise", LONG_S)
        with pytest.raises(ZeroDivisionError, match="in the middle") as error:
            collect(pool, ["raise"])
        assert "test_workers.py" in error.value.__notes__[0]
        pool.put("any", "any", LONG_S)
        assert [event.kind for event in collect(pool, ["any"])["any"]] == ["item", "item", "done"]
    with WorkerPool(1, Fails()) as pool:
        pool.put("any", "any", LONG_S)
        with pytest.raises(ValueError, match="no number"):
            collect(pool, ["any"])


@pytest.mark.long
def test_workers_that_die_again_and_again_without_a_result_end_the_run(monkeypatch):
    monkeypatch.setattr(workers, "MOST_CRASHES", 3)
    with WorkerPool(1, DiesAtOnce()) as pool:
        pool.put("any", "any", LONG_S)
        with pytest.raises(WorkerError, match="--workers"):
            collect(pool, ["any"])


def test_no_more_workers_start_than_there_are_tasks():
    with WorkerPool(8, work) as pool:
        for key in ("once", "again"):
            pool.put(key, "parent", LONG_S)
            assert collect(pool, [key])[key][0].value == os.getpid()
        assert len(pool.pids()) == 1
    assert pool.pids() == []


def test_a_running_task_is_told_messages():
    with WorkerPool(1, work) as pool:
        pool.put("wait", "wait", LONG_S)
        assert pool.get(LONG_S).value == "ready"
        pool.tell("another", "lost")
        pool.tell("wait", ["a message"])
        assert collect(pool, ["wait"])["wait"][0].value == ["a message"]


def give_arrays(_, parent):
    """Answer each message with two large arrays, from a thread each."""
    while True:
        number = parent.receive()
        threads = [threading.Thread(target=send_array, args=(parent, number, k)) for k in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        parent.send(("blocks", len(parent._packer._blocks)))


def send_array(parent, number, thread):
    parent.send((thread, np.full(1 << 16, number, np.int64)))


@linux
def test_a_task_that_never_ends_uses_shared_memory_again_and_sends_from_threads():
    with WorkerPool(1, give_arrays) as pool:
        pool.put("session", None)
        for number in range(10):
            while not pool.pids() or pool._living[0].task is None:
                time.sleep(0.01)
            pool.tell("session", number)
            answers = dict(pool.get(LONG_S).value for _ in range(3))
            assert {(k, *set(answers[k].tolist())) for k in range(2)} == {(0, number), (1, number)}
            n_blocks = answers.pop("blocks")
            answers.clear()  # gives the blocks of these arrays back
    assert n_blocks <= 4


@pytest.mark.long
def test_a_pool_beside_another_gives_its_events_there():
    with WorkerPool(1, work) as pool, WorkerPool(1, work, beside=pool) as other:
        pool.put("ours", "ours", LONG_S)
        other.put("theirs", "theirs", LONG_S)
        events = collect(pool, ["ours", "theirs"])
    assert {key: events[key][0].value for key in events} == {"ours": "ours", "theirs": "theirs"}


def give_bytes(n_bytes, parent):
    parent.send(b"x" * n_bytes)


def test_an_untrusted_worker_sends_bytes_up_to_the_limit():
    with WorkerPool(1, give_bytes, most_bytes=1000) as pool:
        pool.put("task", 1000, LONG_S)
        item, end = collect(pool, ["task"])["task"]
    assert item.value == b"x" * 1000
    assert end.kind == "done"


def test_an_untrusted_worker_that_sends_more_is_ended_and_nothing_is_read():
    with WorkerPool(1, give_bytes, most_bytes=1000) as pool:
        pool.put("task", 1001, LONG_S)
        (end,) = collect(pool, ["task"])["task"]
    assert end.kind == "died"


def raise_type_error(task, _):
    raise TypeError(task)


def test_an_error_of_an_untrusted_worker_is_read_as_text_and_never_unpickled():
    with WorkerPool(1, raise_type_error, most_bytes=1000) as pool:
        pool.put("task", "task", LONG_S)
        with pytest.raises(RuntimeError, match="TypeError"):  # a trusted worker's error is a TypeError
            pool.get(LONG_S)


# --- the end of parents and workers
# ---------------------------------------------------------------------------
def test_a_worker_knows_that_it_is_one_and_leaves_when_its_parent_is_killed(tmp_path):
    script = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from napping import nap
from obygaze_features.workers import WorkerPool, in_worker

pool = WorkerPool(1, nap)
pool.put("nap", None)
print(in_worker(), pool.get(600.0).value, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    (tmp_path / "napping.py").write_text(
        "import sys, time\nfrom obygaze_features.workers import in_worker\n"
        "def nap(task, parent):\n"
        "    print('to nobody')\n"
        "    parent.send((in_worker(), sys.stdin.read()))\n"
        "    time.sleep(600)\n",
        encoding="utf-8",
    )
    result = run_script(tmp_path, script)  # ends when the last process has closed the output
    assert result.returncode == -signal.SIGKILL
    assert result.stdout == "False (True, '')\n"


def test_what_a_worker_could_not_import_is_refused_by_name(tmp_path):
    script = """
from functools import partial
from obygaze_features.workers import WorkerError, WorkerPool

def work(task, parent):
    parent.send(task)

class Work:
    pass

for thing in (work, partial(work, 1), Work(), lambda task, parent: None):
    try:
        WorkerPool(1, thing)
    except WorkerError as error:
        print(error)
with WorkerPool(1, sorted) as pool:
    pool.put("a word", ["__main__"])
"""
    result = run_script(tmp_path, script)
    assert result.returncode == 0, result.stderr
    assert [line.split(";")[0].rpartition(": ")[2] for line in result.stdout.splitlines()[:3]] == [
        f"'{name}' is defined in __main__, which they never run" for name in ("work", "work", "Work")
    ]
    assert (
        "cannot be sent to worker processes: Can't pickle <function <lambda>" in result.stdout.splitlines()[3]
    )


@pytest.mark.long
@linux
@pytest.mark.parametrize("victim", ["worker", "parent"])
def test_a_block_that_was_not_handed_over_is_removed_whoever_is_killed(tmp_path, victim):
    """The worker is killed by its parent, or sees the end of its parent."""
    script = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from tests.test_workers import work
from obygaze_features.workers import WorkerPool

pool = WorkerPool(1, work)
pool.put("ready", "any")
while pool.get(600.0).kind != "done":
    pass
(worker,) = pool._living
pool.put("array", ("array", worker._name))
print(pool.get(600.0).value, worker._name, *os.listdir("/dev/shm"), flush=True)
if sys.argv[2] == "parent":
    os.kill(os.getpid(), signal.SIGKILL)
pool.close()
"""
    result = run_script(tmp_path, script, Path(__file__).parents[1], victim)
    assert result.returncode == (-signal.SIGKILL if victim == "parent" else 0), result.stderr
    written, name, *there = result.stdout.split()
    assert written == "written"
    assert [path for path in there if path.startswith(name)]
    assert not list(messages.SHARED.glob(f"{name}*"))


def run_script(folder, source, *words):
    (folder / "script.py").write_text(source, encoding="utf-8")
    command = [sys.executable, "script.py", *map(str, words or (folder,))]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
