"""Run tasks in worker processes that may be killed at any time.

A killed worker loses only its task, and is replaced when there is work for it. It gets tasks on its standard
input and answers on its standard output, which no other process has: a dead worker is the end of a file to
its parent, and a dead parent to its workers, which then end at once.

A worker is a new Python that imports what it needs by name and never the user's script: a script without
`if __name__ == "__main__"` runs once, and what is defined in it cannot be sent to a worker.
"""

import faulthandler
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
import traceback
import uuid
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import Any, BinaryIO, Literal, Never, Self, cast

from obygaze_features.errors import WorkerError
from obygaze_features.messages import Packer, Unpacker, pickled_for_workers, remove_names

KILL_WAIT_S = 5.0
"""Seconds to wait for a killed process that is stuck in a system call, such as a read from a failing disk."""
ENDED_AT_LIMIT = "exit code 1"
"""How a worker ends at the time limit of its task: `faulthandler` ends it with this code (`run_worker`)."""
MAX_CRASHES = 100
"""Consecutive crashes of workers without an item after which the pool gives up."""

# Not `python -m`, which looks in the current folder first, and knows nothing of what was put on sys.path.
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; from obygaze_features.workers import run_worker; run_worker()"
)
_HEAD = struct.Struct("<4sQ")  # kind of a message, and its size in bytes


@dataclass(frozen=True, slots=True)
class Event:
    """Event of a task.

    Attributes
    ----------
    key
        Key of the task, as given to `put`.
    kind
        `item`: one part of the result. `done`: no more items. `died`: the worker died. `late`: the worker
        ended at the time limit. After `died` and `late` the task is dropped; it may be put again.
    value
        The item; or a description of how the worker died.
    """

    key: Hashable
    kind: Literal["item", "done", "died", "late"]
    value: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """A task that waits for a worker: its key, the pickled task, and the seconds that it may take."""

    key: Hashable
    pickled: bytes
    limit_s: float


class WorkerPool:
    """Run worker processes, each served by a thread; used as a context manager.

    Parameters
    ----------
    workers
        Maximum number of processes; they are started when there are tasks for them.
    work
        Function of a worker, called with a task and its `Parent`, which takes the items; importable by name.
    max_bytes
        For workers that read untrusted files: items are bytes, at most so many each, and nothing that comes
        from a worker is unpickled. None: items are any objects, their large arrays in shared memory.
    beside
        A pool whose `get` returns the events of this pool too; None keeps them for this pool's `get`.
    """

    def __init__(
        self,
        workers: int,
        work: "Callable[[Any, Parent], object]",
        *,
        max_bytes: int | None = None,
        beside: "WorkerPool | None" = None,
    ) -> None:
        """Prepare the pool; processes are started when tasks are queued."""
        self.workers = workers
        self._work = pickled_for_workers(work)
        self._max_bytes = max_bytes
        self._events: queue.SimpleQueue[Event | Exception] = queue.SimpleQueue()
        if beside is not None:
            self._events = beside._events
        self._condition = threading.Condition()  # held while what follows changes
        self._waiting: deque[_Task] = deque()  # tasks that no worker has yet
        self._living: list[_Worker] = []  # processes that were started, and have not ended
        self._threads: list[threading.Thread] = []  # one for each worker, which serves it and its successors
        self._n_idle_threads = 0  # those that wait for a task
        self._n_crashes = 0  # of workers in a row, without a result between them
        self._closing = False  # whether `close` was called

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def put(self, key: Hashable, task: Any, limit_s: float = inf) -> None:
        """Queue a task.

        Parameters
        ----------
        key
            Identifies the task in its events.
        task
            Argument of the pool's function.
        limit_s
            Seconds after which the worker is ended if the task is not done.
        """
        queued = _Task(key, pickled_for_workers(task), limit_s)
        with self._condition:
            self._waiting.append(queued)
            has_idle_threads_for_all = len(self._waiting) <= self._n_idle_threads
            if not has_idle_threads_for_all and len(self._threads) < self.workers:
                self._start_thread()
            self._condition.notify()

    def _start_thread(self) -> None:
        """Start the thread of one more worker process; the caller holds the pool's lock (`_condition`)."""
        number = len(self._threads)
        thread = threading.Thread(target=self._serve, args=(number,), daemon=True)
        self._threads.append(thread)
        self._n_idle_threads += 1  # until it takes its first task
        thread.start()

    def tell(self, key: Hashable, message: Any) -> None:
        """Send a message to the worker that does a task; its function gets it from `Parent.receive`."""
        for worker in tuple(self._living):
            if worker.task is not None and worker.task.key == key:
                worker.tell(message)

    def get(self, timeout_s: float) -> Event | None:
        """Wait for the next event; return None after the timeout.

        Raises
        ------
        WorkerError
            Workers crashed repeatedly without an item.
        Exception
            Raised by `work` in a worker, or while it or a task was unpickled.
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
        with self._condition:
            self._closing = True
            self._condition.notify_all()
            for worker in self._living:
                worker.process.kill()
        for thread in self._threads:
            thread.join(KILL_WAIT_S)

    def _serve(self, number: int) -> None:
        """Pass tasks to one worker process, one after the other; runs in a thread for each worker.

        The process is started for the first task, and replaced when it has died. A task whose worker died
        before it began is passed to the next one.

        Parameters
        ----------
        number
            Number of the worker in the pool.
        """
        worker: _Worker | None = None
        try:
            while (task := self._take()) is not None:
                has_begun = False
                while not has_begun and not self._closing:
                    if worker is None or worker.ended:
                        worker = self._start(number)
                    if worker is None:  # the system could not start it; `_start` has waited a moment
                        continue
                    has_begun = self._do(worker, task)
        except Exception as error:  # noqa: BLE001 - raised again by get
            self._events.put(error)
        if worker is not None and not worker.ended:
            self._end_worker(worker)

    def _take(self) -> _Task | None:
        """Wait for the next task and take it out of the queue; return None if the pool was closed."""
        with self._condition:
            self._condition.wait_for(lambda: self._waiting or self._closing)
            self._n_idle_threads -= 1
            return None if self._closing else self._waiting.popleft()

    def _start(self, number: int) -> "_Worker | None":
        """Start a worker; None, after a pause, if the system cannot start one now."""
        try:
            worker = _Worker(number, self._work, self._max_bytes)
        except OSError as error:  # no memory or no processes left: try again later
            self._count_crash(f"it could not be started: {error.strerror or error}")
            time.sleep(0.1)
            return None
        with self._condition:
            self._living.append(worker)
            if self._closing:  # `close` has killed the others already, and does not know of this one
                worker.process.kill()
        return worker

    def _do(self, worker: "_Worker", task: _Task) -> bool:
        """Send a task to a worker, and pass on its events until the task has ended.

        The messages of a worker are: busy, when it begins the task; item, a part of the result; done; and
        fail, with an error of the task. After `fail` the worker ends; after `done` it waits for another task.
        A worker that dies, or reaches the time limit of the task, sends no last message: its pipe ends.

        Returns
        -------
        bool
            Whether the task began. If the worker died before, the task can be given to another worker.
        """
        has_begun = False
        sent_s = time.monotonic()
        worker.begin(task)
        with suppress(EOFError):  # it died, possibly in the middle of a message
            while True:
                kind, value = worker.receive()
                has_begun = True  # every message says so; "busy", the first, says nothing else

                if kind == b"item":
                    self._n_crashes = 0
                    self._events.put(Event(task.key, "item", value))
                elif kind == b"done":
                    self._n_crashes = 0
                    worker.task = None
                    self._finish_task(Event(task.key, "done"))
                    return True
                elif kind == b"fail":
                    self._end_worker(worker)
                    self._finish_task(value)
                    return True

        # The worker died, or ended itself at the time limit.
        ending = self._end_worker(worker)  # in words
        has_used_its_time = time.monotonic() - sent_s >= task.limit_s
        is_late = has_used_its_time and ending == ENDED_AT_LIMIT
        was_killed_by_close = self._closing
        if not is_late and not was_killed_by_close:
            self._count_crash(ending)
        if has_begun:
            self._finish_task(Event(task.key, "late" if is_late else "died", ending))
        return has_begun

    def _finish_task(self, event: Event | Exception) -> None:
        """Pass on the last event of a task, or its error, to `get`; count the thread as idle."""
        with self._condition:
            self._n_idle_threads += 1
        self._events.put(event)

    def _end_worker(self, worker: "_Worker") -> str:
        """End a worker, and take it off the list of living ones; return in words how it ended."""
        with self._condition:
            self._living.remove(worker)
        return worker.end()

    def _count_crash(self, how: str) -> None:
        """Count a worker that died without a result; raise a WorkerError after too many in a row.

        `how` says in words how it ended.
        """
        self._n_crashes += 1
        if self._n_crashes >= MAX_CRASHES:
            raise WorkerError(
                f"{self._n_crashes} worker processes in a row died without a result, the last one by {how}: "
                "is there enough memory? Fewer --workers need less"
            )


class _Worker:
    """A worker process, in its parent."""

    def __init__(self, number: int, work: bytes, max_bytes: int | None) -> None:
        """Start the process, and send it the function that does tasks.

        Parameters
        ----------
        number
            Number of the worker in the pool.
        work
            The pickled function.
        max_bytes
            Largest message that is accepted from the worker; None if the worker is trusted.
        """
        # The options with which this Python was started, such as -W, as multiprocessing hands them on: by a
        # private function of Python's, for which there is no public one.
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        # The worker imports from the same folders: the program takes its arguments as its `sys.path`.
        command = [sys.executable, *flags, "-c", _PROGRAM, *sys.path]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
        self.task: _Task | None = None
        self.ended = False
        self._max_bytes = max_bytes
        # The name that its blocks of shared memory begin with, in which it sends large arrays.
        self._name = f"obygaze-{uuid.uuid4().hex}"
        self._unpacker = Unpacker(self._name)
        self._sending = threading.Lock()
        is_trusted = max_bytes is None
        self.send(b"work", pickle.dumps((number, self._name, sys.argv, is_trusted, work)))

    def begin(self, task: _Task) -> None:
        """Send a task to the worker, and with it the blocks of shared memory that became free.

        The message is a tuple, as `_do_tasks` reads it in the worker: the numbers of these blocks, which are
        sent once, so that they are taken off the list here; the time limit in seconds, or None; and the task.
        """
        self.task = task
        limit_s = task.limit_s if isfinite(task.limit_s) else None
        free_blocks = self._unpacker.take_free()
        self.send(b"task", pickle.dumps((free_blocks, limit_s, task.pickled)))

    def tell(self, message: Any) -> None:
        """Send a message to its current task, and with it the blocks of shared memory that became free.

        `Parent.receive` reads it in the worker.
        """
        free_blocks = self._unpacker.take_free()
        self.send(b"tell", pickle.dumps((free_blocks, message)))

    def send(self, kind: bytes, message: bytes) -> None:
        """Send a message to the worker. If it has died, no error is raised here, but by `receive`."""
        with self._sending, suppress(OSError):
            send_message(cast("BinaryIO", self.process.stdin), kind, message)

    def receive(self) -> tuple[bytes, Any]:
        """Wait for the next message; return its kind and content; raise EOFError if the worker has died.

        A worker whose messages are limited in size reads untrusted files, which may have taken control of it.
        Nothing that it sends is unpickled: items are bytes, and an error is a text.
        """
        kind, message = receive_message(cast("BinaryIO", self.process.stdout), self._max_bytes)
        is_trusted = self._max_bytes is None
        if is_trusted:
            return kind, self._unpacker.unpack(message) if message else None
        if kind == b"fail":
            return kind, RuntimeError(message.decode(errors="replace"))
        return kind, message

    def end(self) -> str:
        """Kill the worker; return in words how it ended, such as "signal 9"."""
        self.ended = True
        self.process.kill()  # it may have closed its output and still run
        with suppress(OSError):  # what was not sent is not needed
            cast("BinaryIO", self.process.stdin).close()
        cast("BinaryIO", self.process.stdout).close()
        remove_names(self._name)
        try:
            code = self.process.wait(KILL_WAIT_S)
        except subprocess.TimeoutExpired:  # blocked on a disk or a server, it ends when that call returns
            return "no answer from the system"
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def send_message(stream: BinaryIO, kind: bytes, message: bytes) -> None:
    """Write a message to a pipe: its kind and its size, then its bytes."""
    stream.write(_HEAD.pack(kind, len(message)))
    stream.write(message)
    stream.flush()


def receive_message(stream: BinaryIO, max_bytes: int | None = None) -> tuple[bytes, bytes]:
    """Read a message from a pipe, its kind and its bytes; raise EOFError if it ends, or is too large."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError
    kind, size = _HEAD.unpack(head)
    if max_bytes is not None and size > max_bytes:
        raise EOFError
    message = stream.read(size)
    if len(message) < size:
        raise EOFError
    return kind, message


# --- in a worker
# ---------------------------------------------------------------------------
class Parent:
    """The parent of a worker, in the worker.

    Attributes
    ----------
    number
        Number of the worker in its pool, from 0; one that replaces another has its number.
    """

    def __init__(self, number: int, answers: BinaryIO, packer: Packer | None) -> None:
        """Hold the worker's number, the pipe to the parent, and the packer of items; None for bytes."""
        self.number = number
        self._answers = answers
        self._packer = packer
        self._sending = threading.Lock()
        self.messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def send(self, item: Any) -> None:
        """Send a part of the task's result to the parent process; thread-safe."""
        with self._sending:
            message = item if self._packer is None else self._packer.pack(item)
            self.answer(b"item", message)

    def receive(self) -> Any:
        """Wait for the next message that the parent sends to the current task (`WorkerPool.tell`).

        With it come the blocks of shared memory that the parent has read and gives back.
        """
        free, message = pickle.loads(self.messages.get())  # noqa: S301 - from our own process
        if self._packer is not None:
            self._packer.take_back(free)
        return message

    def answer(self, kind: bytes, message: bytes = b"") -> None:
        """Send a message of any kind."""
        send_message(self._answers, kind, message)

    def fail(self, error: Exception) -> None:
        """Send an error to the parent process, with its traceback as text, because pickling drops it.

        A worker that reads untrusted files, which has no packer, sends the text alone. An error that cannot
        be pickled is replaced by a RuntimeError with the text.
        """
        text = "".join(traceback.format_exception(error))
        if self._packer is None:
            self.answer(b"fail", text.encode())
            return

        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301 - pickled just above
            error.add_note(f"In a worker:\n{text}")
        except Exception:  # noqa: BLE001 - its class may raise anything
            error = RuntimeError(f"in a worker:\n{text}")
        self.answer(b"fail", self._packer.pack(error))


_in_worker = False


def in_worker() -> bool:
    """Whether this process is a worker, and so shares the cores with others."""
    return _in_worker


def run_worker() -> None:
    """Run a worker process: do the tasks that arrive on standard input, until it is closed.

    This function never returns: one thread listens to the parent, and ends the process when the parent has
    ended (`_listen`), while this one does the tasks. If a task raises an error, no further task is done: the
    error is sent to the parent, which kills this process.
    """
    global _in_worker  # noqa: PLW0603 - a fact about this process
    _in_worker = True
    _ignore_signals_of_terminal()
    requests, answers, null_device = _take_pipes()
    try:
        _kind, message = receive_message(requests)
    except EOFError:  # the parent has ended already
        return

    # What `_Worker` sends first: number of this worker; name of its blocks of shared memory; the command line
    # of the parent; whether the parent trusts it; and the function that does tasks, pickled.
    number, name, arguments_of_parent, is_trusted, work = pickle.loads(message)  # noqa: S301 - from our own process
    sys.argv = arguments_of_parent  # Ray has its workers import from the folder of the script that it names
    packer = Packer(name)
    tasks = queue.SimpleQueue[bytes]()
    parent = Parent(number, answers, packer if is_trusted else None)
    threading.Thread(target=_listen, args=(requests, tasks, parent, packer), daemon=True).start()

    try:
        _do_tasks(work, tasks, parent, packer, null_device)
    except Exception as error:  # noqa: BLE001 - raised again in the parent
        with suppress(BrokenPipeError):  # the parent has ended
            parent.fail(error)
    # The parent has been told of the error and kills this process; if the parent has ended, `_listen` does.
    never_set = threading.Event()
    never_set.wait()


def _do_tasks(
    work: bytes, tasks: queue.SimpleQueue[bytes], parent: Parent, packer: Packer, null_device: BinaryIO
) -> Never:
    """Do the tasks of a worker as they arrive, until one of them raises an error."""
    function = pickle.loads(work)  # noqa: S301 - from our own process
    while True:
        free_blocks, limit_s, pickled_task = pickle.loads(tasks.get())  # noqa: S301 - the same
        packer.take_back(free_blocks)
        parent.answer(b"busy")
        if limit_s is not None:
            # Ends this process at the limit, whatever C code it runs; the traceback is not shown.
            faulthandler.dump_traceback_later(limit_s, exit=True, file=null_device)
        function(pickle.loads(pickled_task), parent)  # noqa: S301 - the same
        faulthandler.cancel_dump_traceback_later()
        parent.answer(b"done")


def _ignore_signals_of_terminal() -> None:
    """Ignore signals that a terminal sends to all its processes: the parent ends this one."""
    for name in ("SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None:
            signal.signal(number, signal.SIG_IGN)


def _take_pipes() -> tuple[BinaryIO, BinaryIO, BinaryIO]:
    """Move the pipes from and to the parent away from standard input and output, which libraries may use.

    Returns
    -------
    requests, answers
        The pipes.
    nothing
        The file that is standard input instead. Standard output is standard error.
    """
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nothing = Path(os.devnull).open("r+b")  # noqa: SIM115 - as long as this process runs
    os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return requests, answers, nothing


def _listen(requests: BinaryIO, tasks: queue.SimpleQueue[bytes], parent: Parent, packer: Packer) -> None:
    """Pass on the tasks and messages that the parent sends; runs in a thread of its own.

    When the pipe ends, the parent has ended, even if it was killed: this process is then ended at once,
    whatever its task is doing.
    """
    with suppress(EOFError):
        while True:
            kind, message = receive_message(requests)
            if kind == b"task":
                tasks.put(message)
            else:
                parent.messages.put(message)
    packer.end()
    os._exit(1)
