"""Run tasks in worker processes that may be killed at any time; each has its own channel.

A killed worker loses only its current task. Workers share no pipe and no lock, so the death of one never
blocks another. A dead worker is replaced when there is work for it.
"""

import multiprocessing
import os
import pickle
import queue
import selectors
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler, recv_handle, send_handle
from types import TracebackType
from typing import Any, Literal, Self

from obygaze_features.errors import WorkerError

__all__ = ["Event", "WorkerPool"]


Work = Callable[[Any, Mapping[int, int]], Iterator[Any]]
"""Function of a worker: takes a task and its files (number -> descriptor), and yields items."""

STUCK_S = 5.0
"""Seconds to wait for a killed process that is stuck in a system call, such as a read from a lost server."""

MOST_DEATHS = 100
"""Consecutive deaths without an item after which the pool gives up."""


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
    process: Any
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
        self._work = _pickled((begin, work))
        # Not fork: zarr's event loop and an initialised GPU in the parent do not survive a fork.
        self._context = multiprocessing.get_context("spawn")
        self._events: queue.SimpleQueue[Event | Exception] = queue.SimpleQueue()
        self._waiting: deque[_Task] = deque()
        self._living: list[_Worker] = []
        self._deaths = 0
        self._woken, self._wake = self._context.Pipe(duplex=False)
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
        self._waiting.append(_Task(key, _pickled(task), limit_s, files or {}))
        self._wake.send_bytes(b"")

    def get(self, timeout_s: float) -> Event | None:
        """Wait for the next event; return None after the timeout.

        Raises
        ------
        WorkerError
            Workers died repeatedly without an item.
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
            self._bury(worker)
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
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._work), daemon=True)
        try:
            process.start()
        except OSError as error:  # no memory or no processes left: try again later
            ours.close()
            self._count_death(f"it could not be started: {error.strerror or error}")
            time.sleep(0.1)
            return
        finally:
            theirs.close()
        worker = _Worker(process, ours)
        self._selector.register(ours, selectors.EVENT_READ, worker)
        self._living.append(worker)

    def _listen(self) -> None:
        """Wait for messages, deaths and deadlines."""
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
            self._lose(worker, "late")

    def _hear(self, worker: _Worker) -> None:
        try:
            kind, value = pickle.loads(worker.channel.recv_bytes())  # noqa: S301 - from our own process
        except (EOFError, OSError):  # it died, possibly in the middle of a message
            self._lose(worker, "died")
            return
        key = worker.task.key if worker.task else None
        if kind == "ready":
            worker.ready = True
        elif kind == "begun":
            worker.begun = True
        elif kind == "item":
            self._deaths = 0
            self._events.put(Event(key, "item", value))
        elif kind == "done":
            self._deaths = 0
            worker.task, worker.deadline = None, float("inf")
            self._events.put(Event(key, "done"))
        else:
            self._events.put(value)

    def _lose(self, worker: _Worker, kind: Literal["died", "late"]) -> None:
        """Remove a worker; a task that it had begun ends with this event."""
        self._living.remove(worker)
        how = self._bury(worker)
        if kind == "died":
            self._count_death(how)
        if worker.task is None:
            return
        if kind == "died" and not worker.begun:  # the task was not read yet, so it cannot be the cause
            self._waiting.appendleft(worker.task)
        else:
            self._events.put(Event(worker.task.key, kind, how))

    def _bury(self, worker: _Worker) -> str:
        self._selector.unregister(worker.channel)
        worker.channel.close()
        worker.process.kill()  # the process may have closed its channel and still run
        worker.process.join(STUCK_S)
        code = worker.process.exitcode
        if code is None:  # it is blocked on a disk or a server, and ends when that call returns
            return "no answer from the system"
        worker.process.close()
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def _count_death(self, how: str) -> None:
        self._deaths += 1
        if self._deaths >= MOST_DEATHS:
            raise WorkerError(
                f"{self._deaths} worker processes in a row died without a result, the last one by {how}: "
                "is there enough memory? Fewer --workers need less"
            )


def _serve(channel: Connection, pickled: bytes) -> None:
    """Process tasks in a worker process until the channel is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is sent to every process of a terminal
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
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _pickled(thing: object) -> bytes:
    """Pickle for a worker.

    `ForkingPickler.dumps` returns a view into a BytesIO, which must not be kept: where the cycle collector
    closes the BytesIO before it, Python 3.13 reports a BufferError, in whatever code then runs.
    """
    with ForkingPickler.dumps(thing) as view:
        return bytes(view)


def _traced(error: Exception) -> Exception:
    """Add the traceback to an error, since pickling drops it; convert an error that cannot be pickled."""
    where = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - pickled just above
    except Exception:  # noqa: BLE001 - its class may raise anything
        return RuntimeError(f"in a worker:\n{where}")
    error.add_note(f"In a worker:\n{where}")
    return error
