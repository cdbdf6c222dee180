"""Workers run tasks in processes that may be killed at any moment; only tiny tasks are needed to see it."""

import gc
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from obygaze_features import workers
from obygaze_features.errors import WorkerError
from obygaze_features.workers import WorkerPool

LONG_S = 600.0
"""A limit for what takes less than a second, so that it ends what hangs, and nothing on a slow machine."""


def work(task, files):
    """Do what a task says, as a worker."""
    match task:
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "leave":
            os._exit(7)
        case "hang":
            yield "begun"
            time.sleep(600)
        case "tear":  # send the beginning of a message, and die
            channel = sys._getframe(1).f_locals["channel"]
            os.write(channel.fileno(), struct.pack("!i", 1000) + b"x")
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise ZeroDivisionError("in the middle")
        case "parent":
            yield os.getppid()
        case ("read", number):
            yield os.pread(files[number], 100, 0)
        case _:
            yield task
            yield os.getpid()


def die_three_times():
    crashes = Path(os.environ["CRASHES"])
    if (before := len(list(crashes.iterdir()))) < 3:
        (crashes / str(before)).touch()
        os.kill(os.getpid(), signal.SIGKILL)


def die_at_once():
    os.kill(os.getpid(), signal.SIGKILL)


def fail():
    raise ValueError("cannot begin")


def collect(pool, keys):
    """Return the events of some tasks until each has ended."""
    found = {key: [] for key in keys}
    left = set(keys)
    while left:
        event = pool.get(LONG_S)
        assert event is not None, "nothing happened for ten minutes"
        found[event.key].append(event)
        if event.kind != "item":
            left.remove(event.key)
    return found


def ended(events):
    return {key: (some[-1].kind, some[-1].value) for key, some in events.items()}


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


def test_an_idle_worker_may_be_killed_and_costs_no_task():
    with WorkerPool(1, work) as pool:
        pool.put("first", "first", LONG_S)
        idle = collect(pool, ["first"])["first"][1].value
        os.kill(idle, signal.SIGKILL)
        pool.put("second", "second", LONG_S)
        events = collect(pool, ["second"])["second"]
        assert [event.kind for event in events] == ["item", "item", "done"]
        assert events[1].value != idle


def test_starting_workers_may_be_killed_and_cost_no_task(tmp_path, monkeypatch):
    monkeypatch.setenv("CRASHES", str(tmp_path))
    with WorkerPool(1, work, die_three_times) as pool:
        pool.put("any", "any", LONG_S)
        events = collect(pool, ["any"])["any"]
        assert [event.kind for event in events] == ["item", "item", "done"]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_task_that_takes_too_long_is_stopped_with_its_worker():
    with WorkerPool(1, work) as pool:
        pool.put("hang", "hang", 0.2)
        pool.put("fine", "fine", LONG_S)
        events = collect(pool, ["hang", "fine"])
        assert [event.kind for event in events["fine"]] == ["item", "item", "done"]
        assert events["hang"][-1].kind == "late"


def test_errors_of_the_work_are_raised_with_where_they_were():
    with WorkerPool(1, work) as pool:
        pool.put("raise", "raise", LONG_S)
        with pytest.raises(ZeroDivisionError, match="in the middle") as error:
            collect(pool, ["raise"])
        assert "test_workers.py" in error.value.__notes__[0]
    with WorkerPool(1, work, fail) as pool:
        pool.put("any", "any", LONG_S)
        with pytest.raises(ValueError, match="cannot begin"):
            collect(pool, ["any"])


def test_workers_that_die_again_and_again_without_a_result_end_the_run(monkeypatch):
    monkeypatch.setattr(workers, "MOST_CRASHES", 3)
    with WorkerPool(2, work, die_at_once) as pool:
        pool.put("any", "any", LONG_S)
        with pytest.raises(
            WorkerError, match=r"3 worker processes in a row died .* by signal 9: .*--workers"
        ):
            collect(pool, ["any"])


def test_files_are_handed_over_and_no_more_workers_start_than_there_are_tasks(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    with (tmp_path / "file").open("rb") as file, WorkerPool(8, work) as pool:
        for key in ("once", "again"):
            pool.put(key, ("read", 3), LONG_S, {3: file.fileno()})
            assert collect(pool, [key])[key][0].value == b"content"
        assert len(pool.pids()) == 1
        pool.put("parent", "parent", LONG_S)
        assert collect(pool, ["parent"])["parent"][0].value == os.getpid()
    assert pool.pids() == []


def test_what_a_pool_leaves_may_be_collected_in_any_order():
    """Of a BytesIO and its view in a cycle, Python 3.13 reports an error in whatever code runs by then."""
    gc.collect()
    pool = WorkerPool(1, work)
    pool.put("never read", "x" * 100, LONG_S)
    pool.close()
    pool.itself = pool
    del pool
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        assert any(isinstance(thing, WorkerPool) for thing in gc.garbage)
        assert not [thing for thing in gc.garbage if isinstance(thing, memoryview)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.collect()


def test_a_worker_knows_that_it_is_one_and_leaves_when_its_parent_is_killed(tmp_path):
    script = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from napping import nap
from obygaze_features.workers import WorkerPool, in_child

pool = WorkerPool(1, nap)
pool.put("nap", None, 600.0)
print(in_child(), pool.get(600.0).value, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    (tmp_path / "napping.py").write_text(
        "import sys, time\nfrom obygaze_features.workers import in_child\n"
        "def nap(task, files):\n    yield in_child(), sys.stdin.read()\n    time.sleep(600)\n",
        encoding="utf-8",
    )
    done = run_script(tmp_path, script)  # ends when the last process has closed the output
    assert done.returncode == -signal.SIGKILL
    assert (done.stdout, done.stderr) == ("False (True, '')\n", "")


def test_what_a_worker_could_not_import_is_refused_by_name(tmp_path):
    script = """
from functools import cache, partial
from obygaze_features.workers import WorkerError, WorkerPool

def work(task, files):
    yield task

@cache
def cached(task, files):
    return [task]

class Work:
    pass

for thing in (work, partial(cached, 1), Work(), lambda task, files: iter(())):
    try:
        WorkerPool(1, thing)
    except WorkerError as error:
        print(error)
with WorkerPool(1, sorted) as pool:
    pool.put("a word", ["__main__"], 600.0)
"""
    done = run_script(tmp_path, script)
    assert done.returncode == 0, done.stderr
    assert [line.split(";")[0].rpartition(": ")[2] for line in done.stdout.splitlines()[:3]] == [
        f"'{name}' is defined in __main__, which they never run" for name in ("work", "cached", "Work")
    ]
    assert (
        "cannot be sent to worker processes: Can't pickle <function <lambda>" in done.stdout.splitlines()[3]
    )


def run_script(folder, source):
    (folder / "script.py").write_text(source, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "script.py", str(folder)], cwd=folder, capture_output=True, text=True, check=False
    )
