"""Run tasks in worker processes that may be killed at any time; each has its own channel.

A killed worker loses only its current task. Workers share no pipe and no lock, so the death of one never
blocks another. A dead worker is replaced when there is work for it.

A worker is a new Python that imports what it needs by name and never the user's script: a script without
`if __name__ == "__main__"` runs once, and what is defined in it cannot be sent to a worker.
"""

import io
import os
import pickle
import queue
import selectors
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from multiprocessing.reduction import recv_handle, send_handle
from types import TracebackType
from typing import Any, Literal, Self

from obygaze_features.errors import WorkerError

__all__ = ["Event", "WorkerPool"]


Work = Callable[[Any, Mapping[int, int]], Iterator[Any]]
"""Function of a worker: takes a task and its files (number -> descriptor), and yields items."""

STUCK_S = 5.0
"""Seconds to wait for a killed process that is stuck in a system call, such as a read from a lost server."""

MOST_CRASHES = 100
"""Consecutive crashes of workers without an item after which the pool gives up."""

# Not `python -m`, which looks in the current folder first, and knows nothing of what was put on sys.path.
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from obygaze_features.workers import run_child; run_child(int(sys.argv[1]))"
)
_lifeline = -1  # in a process of `start_process`: what ends with its parent


def start_process(
    function: Callable[..., object], *words: object
) -> tuple[subprocess.Popen[bytes], Connection]:
    """Start a Python process that calls a function of ours, with the paths for imports of this one.

    Parameters
    ----------
    function
        Called as `function(channel, *words)` where Ctrl-C is ignored; importable by name.

    Returns
    -------
    The process, whose end is waited for by `communicate`, and this end of its channel.

    Raises
    ------
    OSError
        There is no memory, or no process, left.
    """
    pickled = pickled_for_workers((sys.argv, function, words))
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # multiprocessing's way
    channel, theirs = Pipe()
    with theirs:
        try:
            process = subprocess.Popen(  # noqa: S603 - our own Python
                [sys.executable, *flags, "-c", _PROGRAM, str(theirs.fileno()), *sys.path],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE,  # nothing is written; it ends with this process, however that ends
            )
        except OSError:
            channel.close()
            raise
    with suppress(OSError):  # it has died: the first read of the channel notices it
        channel.send_bytes(pickled)
    return process, channel


def run_child(descriptor: int) -> None:
    """Call the function that comes first through the channel; runs in a process of `start_process`."""
    global _lifeline  # noqa: PLW0603 - a fact about this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is sent to every process of a terminal
    _lifeline = os.dup(0)
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - no path
        os.dup2(nothing.fileno(), 0)  # programs that a library starts may read their standard input
    with Connection(descriptor) as channel:
        try:
            pickled = channel.recv_bytes()
        except (EOFError, OSError):  # the parent has ended already
            return
        # Ray has its workers import from the folder of the script that sys.argv names.
        sys.argv, function, words = pickle.loads(pickled)  # noqa: S301 - from our own process
        function(channel, *words)


def in_child() -> bool:
    """Whether this process was started by `start_process`, and so shares the cores with others of ours."""
    return _lifeline >= 0


def pickled_for_workers(thing: object, owner: str = "this work") -> bytes:
    """Pickle for a worker.

    Raises
    ------
    WorkerError
        A function or class in it cannot be imported by a worker; `owner` says whose it is.
    """
    try:
        pickled = pickle.dumps(thing)
        if b"__main__" in pickled:  # which may also be a word in a text
            _ImportablePickler(io.BytesIO()).dump(thing)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise WorkerError(
            f"{owner} cannot be sent to worker processes: {error}; put its functions and classes into a "
            "module and import them"
        ) from error
    return pickled


class _ImportablePickler(pickle.Pickler):
    """Refuses functions and classes that only this process can import."""

    def reducer_override(self, thing: Any) -> Any:
        name = getattr(thing, "__qualname__", None)
        if name is not None and thing.__module__ == "__main__":
            raise pickle.PicklingError(f"'{name}' is defined in __main__, which they never run")
        return NotImplemented


@dataclass(frozen=True, slots=True)
class Event:
    """Event of a task.

    Attributes
    ----------
    key
        Key of the task, as given to `put`.
    kind
        `item`: one part of the result. `done`: no more items. `died`: the worker died. `late`: the worker was
        killed at the time limit. After `died` and `late` the task is dropped; it may be put again.
    value
        The item; or a description of how the worker died.
    """

    key: Hashable
    kind: Literal["item", "done", "died", "late"]
    value: Any = None


@dataclass(slots=True, eq=False)
class _Task:
    key: Hashable
    pickled: bytes
    limit_s: float
    files: Mapping[int, int]


@dataclass(slots=True, eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    channel: Connection
    ready: bool = False
    begun: bool = False
    task: _Task | None = None
    deadline: float = float("inf")


class WorkerPool:
    """Run worker processes, fed by a thread; used as a context manager.

    Parameters
    ----------
    workers
        Maximum number of processes; they are started when there are tasks for them.
    work
        Function applied to each task in a worker; importable by name.
    begin
        Function called first in each worker; importable by name. None calls nothing.
    """

    def __init__(self, workers: int, work: Work, begin: Callable[[], object] | None = None) -> None:
        self.workers = workers
        self._work = pickled_for_workers((begin, work))
        self._events: queue.SimpleQueue[Event | Exception] = queue.SimpleQueue()
        self._waiting: deque[_Task] = deque()
        self._living: list[_Worker] = []
        self._crashes = 0
        self._woken, self._wake = Pipe(duplex=False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._closing = False
        self._thread = threading.Thread(target=self._dispatch, name="workers", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def put(self, key: Hashable, task: Any, limit_s: float, files: Mapping[int, int] | None = None) -> None:
        """Queue a task; its events carry the key.

        Parameters
        ----------
        limit_s
            Seconds after which the worker is killed if the task is not finished.
        files
            Number -> descriptor of files that the task needs; they must stay open until the task ends.
        """
        self._waiting.append(_Task(key, pickled_for_workers(task), limit_s, files or {}))
        self._wake.send_bytes(b"")

    def get(self, timeout_s: float) -> Event | None:
        """Wait for the next event; return None after the timeout.

        Raises
        ------
        WorkerError
            Workers crashed repeatedly without an item.
        Exception
            Raised by `work` or `begin` in a worker, or while a task was unpickled.
        """
        try:
            event = self._events.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if isinstance(event, Exception):
            raise event
        return event

    def pids(self) -> list[int]:
        """List the ids of the running worker processes."""
        return [worker.process.pid for worker in tuple(self._living)]

    def close(self) -> None:
        """Kill the workers, even if they are busy."""
        if self._closing:
            return
        self._closing = True
        self._wake.send_bytes(b"")
        self._thread.join()
        for worker in self._living:
            worker.process.kill()
        for worker in self._living:
            self._reap(worker)
        self._living.clear()
        self._selector.close()
        self._wake.close()
        self._woken.close()

    def _dispatch(self) -> None:
        try:
            while not self._closing:
                self._hand_out()
                self._listen()
        except Exception as error:  # noqa: BLE001 - raised again by get
            self._events.put(error)

    def _hand_out(self) -> None:
        """Give waiting tasks to idle workers, and start more workers if there is work for them."""
        for worker in [worker for worker in self._living if worker.ready and worker.task is None]:
            if not self._waiting:
                return
            self._give(worker, self._waiting.popleft())
        starting = sum(not worker.ready for worker in self._living)
        while starting < len(self._waiting) and len(self._living) < self.workers and not self._closing:
            self._start()
            starting += 1

    def _give(self, worker: _Worker, task: _Task) -> None:
        worker.task, worker.begun, worker.deadline = task, False, time.monotonic() + task.limit_s
        with suppress(OSError):  # it has died: the next read of its channel notices it
            worker.channel.send(list(task.files))
            for descriptor in task.files.values():
                send_handle(worker.channel, descriptor, worker.process.pid)
            worker.channel.send_bytes(task.pickled)

    def _start(self) -> None:
        try:
            worker = _Worker(*start_process(_serve, self._work))
        except OSError as error:  # no memory or no processes left: try again later
            self._count_crash(f"it could not be started: {error.strerror or error}")
            time.sleep(0.1)
            return
        self._selector.register(worker.channel, selectors.EVENT_READ, worker)
        self._living.append(worker)

    def _listen(self) -> None:
        """Wait for messages, ends of workers, and deadlines."""
        deadline = min((worker.deadline for worker in self._living), default=float("inf"))
        timeout = None if deadline == float("inf") else max(deadline - time.monotonic(), 0.0)
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                self._woken.recv_bytes()
            else:
                self._hear(key.data)
        now = time.monotonic()
        for worker in [worker for worker in self._living if worker.deadline <= now]:
            worker.process.kill()
            self._on_exit(worker, "late")

    def _hear(self, worker: _Worker) -> None:
        try:
            kind, value = pickle.loads(worker.channel.recv_bytes())  # noqa: S301 - from our own process
        except (EOFError, OSError):  # it died, possibly in the middle of a message
            self._on_exit(worker, "died")
            return
        key = worker.task.key if worker.task else None
        if kind == "ready":
            worker.ready = True
        elif kind == "begun":
            worker.begun = True
        elif kind == "item":
            self._crashes = 0
            self._events.put(Event(key, "item", value))
        elif kind == "done":
            self._crashes = 0
            worker.task, worker.deadline = None, float("inf")
            self._events.put(Event(key, "done"))
        else:
            self._events.put(value)

    def _on_exit(self, worker: _Worker, kind: Literal["died", "late"]) -> None:
        """Remove a worker; a task that it had begun ends with this event."""
        self._living.remove(worker)
        how = self._reap(worker)
        if kind == "died":
            self._count_crash(how)
        if worker.task is None:
            return
        if kind == "died" and not worker.begun:  # the task was not read yet, so it cannot be the cause
            self._waiting.appendleft(worker.task)
        else:
            self._events.put(Event(worker.task.key, kind, how))

    def _reap(self, worker: _Worker) -> str:
        self._selector.unregister(worker.channel)
        worker.channel.close()
        worker.process.kill()  # the process may have closed its channel and still run
        try:
            worker.process.communicate(timeout=STUCK_S)
        except subprocess.TimeoutExpired:  # blocked on a disk or a server, it ends when that call returns
            return "no answer from the system"
        code = worker.process.returncode
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def _count_crash(self, how: str) -> None:
        self._crashes += 1
        if self._crashes >= MOST_CRASHES:
            raise WorkerError(
                f"{self._crashes} worker processes in a row died without a result, the last one by {how}: "
                "is there enough memory? Fewer --workers need less"
            )


def _serve(channel: Connection, pickled: bytes) -> None:
    """Process tasks in a worker process until the channel is closed."""
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        begin, work = pickle.loads(pickled)  # noqa: S301 - from our own process
        if begin is not None:
            begin()
    except Exception as error:  # noqa: BLE001 - raised again in the parent
        channel.send(("error", _traced(error)))
        return
    with suppress(EOFError, OSError):  # the parent has ended
        channel.send(("ready", None))
        while True:
            files = {number: recv_handle(channel) for number in channel.recv()}
            message = channel.recv_bytes()
            channel.send(("begun", None))
            try:
                for item in work(pickle.loads(message), files):  # noqa: S301 - from our own process
                    channel.send(("item", item))
                channel.send(("done", None))
            except Exception as error:  # noqa: BLE001 - raised again in the parent
                channel.send(("error", _traced(error)))
            finally:
                for descriptor in files.values():
                    os.close(descriptor)


def _leave_with_parent() -> None:
    """End this process as soon as its parent has ended, even if the parent was killed."""
    os.read(_lifeline, 1)
    os._exit(1)


def _traced(error: Exception) -> Exception:
    """Add the traceback to an error, since pickling drops it; convert an error that cannot be pickled."""
    where = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - pickled just above
    except Exception:  # noqa: BLE001 - its class may raise anything
        return RuntimeError(f"in a worker:\n{where}")
    error.add_note(f"In a worker:\n{where}")
    return error
