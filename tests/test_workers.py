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

TEN_MINUTES_S = 600.0
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
        case "send the id of the parent":
            parent.send(os.getppid())
        case "send a message back":
            parent.send("ready")
            parent.send(parent.receive())
        case ("write an array, and do not hand it over", name_of_worker):
            # Packing writes it into a block of shared memory. Sending would tell the parent the block's name.
            parent._packer._name = name_of_worker  # with which the block's name begins
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


class CannotBeImported:
    """Its pickle raises a ValueError, of int("no number")."""

    def __reduce__(self):
        return int, ("no number",)


def collect(pool, keys):
    """Return the events of some tasks, by the task's key, once each has ended.

    An event of the kind "item" has what the worker sent; the last one says how the task ended.
    """
    result = {key: [] for key in keys}
    left = set(keys)
    while left:
        event = pool.get(TEN_MINUTES_S)
        assert event is not None, "nothing happened for ten minutes"
        result[event.key].append(event)
        if event.kind != "item":
            left.remove(event.key)
    return result


@pytest.mark.long
def test_a_worker_that_dies_while_it_works_or_sends_costs_its_own_task_alone():
    """Of five tasks one has its worker kill itself, one leaves with the code 7, one dies within a message.

    The other two send their own name, and are done. New workers take the places of those that died.
    """
    tasks = ["die", "leave", "tear", "fine", "good"]
    with WorkerPool(workers=2, work=work) as pool:
        for task in tasks:
            pool.put(task, task, limit_s=TEN_MINUTES_S)

        events = collect(pool, tasks)

        last_event_of_task = {task: events[task][-1] for task in tasks}
        assert {task: (last.kind, last.value) for task, last in last_event_of_task.items()} == {
            "die": ("died", "signal 9"),
            "leave": ("died", "exit code 7"),
            "tear": ("died", "signal 9"),
            "fine": ("done", None),
            "good": ("done", None),
        }
        first_event_of_fine = events["fine"][0]
        assert first_event_of_fine.value == "fine"
        assert len(pool.pids()) <= 2


@pytest.mark.long
def test_an_idle_worker_may_be_killed_and_costs_no_task():
    """A task sends its name, then the id of its worker's process. The worker is killed between tasks."""
    with WorkerPool(workers=1, work=work) as pool:
        pool.put("first", "first", limit_s=TEN_MINUTES_S)
        _, first_worker, _ = collect(pool, ["first"])["first"]
        os.kill(first_worker.value, signal.SIGKILL)

        pool.put("second", "second", limit_s=TEN_MINUTES_S)
        name, second_worker, end = collect(pool, ["second"])["second"]

        assert name.value == "second"
        assert second_worker.value != first_worker.value
        assert end.kind == "done"


@pytest.mark.long
def test_starting_workers_may_be_killed_and_cost_no_task(tmp_path, monkeypatch):
    """The first three workers are killed while they import their work; each leaves a file in `folder`.

    The fourth does the task, which sends two items: the task's name, and the id of the worker's process.
    """
    folder = tmp_path
    monkeypatch.setenv("CRASHES", str(folder))  # where `DiesThreeTimes` counts
    with WorkerPool(workers=1, work=DiesThreeTimes()) as pool:
        pool.put("any", "any", limit_s=TEN_MINUTES_S)

        events = collect(pool, ["any"])["any"]

        assert [event.kind for event in events] == ["item", "item", "done"]
    n_killed = len(list(folder.iterdir()))
    assert n_killed == 3


@pytest.mark.long
def test_a_task_that_takes_too_long_is_stopped_with_its_worker():
    """One task would sleep for ten minutes, and may take 0.2 s; the next one is done by a new worker."""
    with WorkerPool(workers=1, work=work) as pool:
        pool.put("hang", "hang", limit_s=0.2)
        pool.put("fine", "fine", limit_s=TEN_MINUTES_S)

        events = collect(pool, ["hang", "fine"])

        assert events["hang"][-1].kind == "late"
        assert [event.kind for event in events["fine"]] == ["item", "item", "done"]


@pytest.mark.long
def test_an_error_of_the_work_is_raised_with_where_it_was_and_the_pool_goes_on():
    """A note of the error has the traceback of the worker, which names this file."""
    with WorkerPool(workers=1, work=work) as pool:
        pool.put("raise", "raise", limit_s=TEN_MINUTES_S)
        with pytest.raises(ZeroDivisionError, match="in the middle") as error:
            collect(pool, ["raise"])
        (traceback, *_) = error.value.__notes__
        assert "test_workers.py" in traceback

        pool.put("any", "any", limit_s=TEN_MINUTES_S)
        events = collect(pool, ["any"])["any"]
        assert [event.kind for event in events] == ["item", "item", "done"]


@pytest.mark.long
def test_an_error_in_importing_the_work_is_raised():
    """What a worker would import is a pickle that raises a ValueError."""
    with WorkerPool(workers=1, work=CannotBeImported()) as pool:
        pool.put("any", "any", limit_s=TEN_MINUTES_S)

        with pytest.raises(ValueError, match="no number"):
            collect(pool, ["any"])


@pytest.mark.long
def test_workers_that_die_again_and_again_without_a_result_end_the_run(monkeypatch):
    """Every worker dies while it imports its work. After three of them the user is told of --workers."""
    monkeypatch.setattr(workers, "MAX_CRASHES", 3)
    with WorkerPool(workers=1, work=DiesAtOnce()) as pool:
        pool.put("any", "any", limit_s=TEN_MINUTES_S)

        with pytest.raises(WorkerError, match="--workers"):
            collect(pool, ["any"])


def test_no_more_workers_start_than_tasks_are_there_at_once():
    """A pool may start up to eight workers. It gets two tasks, the second one when the first has ended.

    The worker of the first task is free then and does the second one too: a single worker is started. It has
    ended when the pool is closed.
    """
    with WorkerPool(workers=8, work=work) as pool:
        for key in ("first task", "second task"):
            pool.put(key, "any", limit_s=TEN_MINUTES_S)
            collect(pool, [key])

        assert len(pool.pids()) == 1
    assert pool.pids() == []


def test_the_parent_of_a_worker_is_the_process_that_made_the_pool():
    """The task sends the id of its parent's process."""
    with WorkerPool(workers=1, work=work) as pool:
        pool.put("task", "send the id of the parent", limit_s=TEN_MINUTES_S)

        parent, _ = collect(pool, ["task"])["task"]

    assert parent.value == os.getpid()


def test_a_message_is_told_to_the_running_task_of_its_key_alone():
    """A task with the key "running" sends "ready", waits for a message and sends it back.

    The first message is for the key of a task that there is not, and is lost: the running task does not get
    it. The second one is for its own key.
    """
    with WorkerPool(workers=1, work=work) as pool:
        pool.put("running", "send a message back", limit_s=TEN_MINUTES_S)
        assert pool.get(TEN_MINUTES_S).value == "ready"

        pool.tell("no such task", ["a lost message"])
        pool.tell("running", ["a message"])

        answer, _end = collect(pool, ["running"])["running"]
        assert answer.value == ["a message"]


def answer_with_two_arrays(_, parent):
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
    """The task gets ten numbers, one after the other, and answers each with two large arrays full of it.

    Each of its two threads sends one of them as a pair (number of the thread, array), in a block of shared
    memory. When the arrays are forgotten here, their blocks can be used again. So the ten answers take no
    more than four blocks: two for an answer, and two more if those of the answer before are not back yet.
    The task sends how many it has, as ("blocks", n).
    """
    with WorkerPool(workers=1, work=answer_with_two_arrays) as pool:
        pool.put("session", None)
        for number in range(10):
            wait_until_a_task_runs(pool)
            pool.tell("session", number)

            answers = dict(pool.get(TEN_MINUTES_S).value for _ in range(3))

            array_of_first_thread = answers.pop(0)
            array_of_second_thread = answers.pop(1)
            assert (array_of_first_thread == number).all()
            assert (array_of_second_thread == number).all()
            del array_of_first_thread, array_of_second_thread
    n_blocks = answers["blocks"]
    assert n_blocks <= 4


def wait_until_a_task_runs(pool):
    """Wait until the first worker of a pool has been given a task; what is told to it before is lost."""
    while not pool.pids() or pool._living[0].task is None:
        time.sleep(0.01)


@pytest.mark.long
def test_the_events_of_two_pools_are_got_from_the_first_if_the_second_is_beside_it():
    """Each pool gets one task, which sends its own name. Both names come out of the first pool."""
    with (
        WorkerPool(workers=1, work=work) as first_pool,
        WorkerPool(workers=1, work=work, beside=first_pool) as second_pool,
    ):
        first_pool.put("task of the first", "task of the first", limit_s=TEN_MINUTES_S)
        second_pool.put("task of the second", "task of the second", limit_s=TEN_MINUTES_S)

        events = collect(first_pool, ["task of the first", "task of the second"])

    assert events["task of the first"][0].value == "task of the first"
    assert events["task of the second"][0].value == "task of the second"


def send_bytes(n_bytes, parent):
    parent.send(b"x" * n_bytes)


def test_an_untrusted_worker_sends_bytes_up_to_the_limit():
    """With `max_bytes` a worker is not trusted, as one that reads files of strangers; it sends so many."""
    with WorkerPool(workers=1, work=send_bytes, max_bytes=1000) as pool:
        pool.put("task", 1000, limit_s=TEN_MINUTES_S)
        item, end = collect(pool, ["task"])["task"]

    assert item.value == b"x" * 1000
    assert end.kind == "done"


def test_an_untrusted_worker_that_sends_more_is_ended_and_nothing_is_read():
    """The limit is 1000 bytes, and it sends 1001."""
    with WorkerPool(workers=1, work=send_bytes, max_bytes=1000) as pool:
        pool.put("task", 1001, limit_s=TEN_MINUTES_S)
        (end,) = collect(pool, ["task"])["task"]

    assert end.kind == "died"


def raise_type_error(task, _):
    raise TypeError(task)


def test_an_error_of_an_untrusted_worker_is_read_as_text_and_never_unpickled():
    """The work raises a TypeError. Of a trusted worker this would be unpickled, which may run any code."""
    with WorkerPool(workers=1, work=raise_type_error, max_bytes=1000) as pool:
        pool.put("task", "task", limit_s=TEN_MINUTES_S)

        with pytest.raises(RuntimeError, match="TypeError"):
            pool.get(TEN_MINUTES_S)


# --- the end of parents and workers
# ---------------------------------------------------------------------------
def test_a_worker_knows_that_it_is_one_and_leaves_when_its_parent_is_killed(tmp_path):
    """The parent is no worker (False); the worker says that it is one (True), and what it reads of stdin: "".

    The parent then kills itself, and the worker would sleep for ten minutes. The script ends only when the
    last process that has its output is gone.
    """
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

    result = run_script(tmp_path, script)

    assert result.returncode == -signal.SIGKILL
    assert result.stdout == "False (True, '')\n"


def test_what_a_worker_could_not_import_is_refused_by_name(tmp_path):
    """Workers never run the script that a user started: what it defines itself can't be their work.

    The script tries a function, a part of it, an object of a class and a lambda, and prints each error. A
    function of Python's is taken.
    """
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
    of_function, of_partial, of_object, of_lambda = result.stdout.splitlines()
    assert ": 'work' is defined in __main__, which they never run;" in of_function
    assert ": 'work' is defined in __main__, which they never run;" in of_partial
    assert ": 'Work' is defined in __main__, which they never run;" in of_object
    assert "cannot be sent to worker processes: Can't pickle <function <lambda>" in of_lambda


@pytest.mark.long
@linux
@pytest.mark.parametrize("victim", ["worker", "parent"])
def test_shared_memory_that_a_worker_has_not_handed_over_is_removed_whoever_is_killed(tmp_path, victim):
    """A worker has written an array into a block of shared memory, whose name its parent does not know yet.

    The script is the parent. It prints "written", as the worker says, the worker's name, and the names of all
    blocks that there are then. Then it ends the worker (victim "worker"), or kills itself ("parent"), which
    the worker notices. The names of a worker's blocks begin with its own: there is one before, and none
    afterwards.
    """
    script = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from tests.test_workers import work
from obygaze_features.workers import WorkerPool

pool = WorkerPool(1, work)
pool.put("first task", "any")
while pool.get(600.0).kind != "done":  # then there is a worker
    pass
(worker,) = pool._living
pool.put("second task", ("write an array, and do not hand it over", worker._name))
print(pool.get(600.0).value, worker._name, *os.listdir("/dev/shm"), flush=True)
if sys.argv[2] == "parent":
    os.kill(os.getpid(), signal.SIGKILL)
pool.close()
"""

    result = run_script(tmp_path, script, Path(__file__).parents[1], victim)

    expected_returncode = {"worker": 0, "parent": -signal.SIGKILL}[victim]
    assert result.returncode == expected_returncode, result.stderr
    said_by_worker, name_of_worker, *blocks_meanwhile = result.stdout.split()
    assert said_by_worker == "written"
    assert any(block.startswith(name_of_worker) for block in blocks_meanwhile)
    blocks_afterwards = list(messages.SHARED.glob(f"{name_of_worker}*"))
    assert blocks_afterwards == []


def run_script(folder, source, *words):
    (folder / "script.py").write_text(source, encoding="utf-8")
    command = [sys.executable, "script.py", *map(str, words or (folder,))]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
