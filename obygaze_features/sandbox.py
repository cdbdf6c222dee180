"""Ask a child process about files that strangers made: it has limits, no network, and can die without harm.

Where this process has no other thread, Linux forks it, which costs milliseconds. Elsewhere the child is a new
Python, which is kept for the next file. Nothing that a child sends is unpickled.
"""

import atexit
import errno
import gc
import json
import os
import pickle
import re
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from obygaze_features import errors
from obygaze_features.errors import InputError, ManifestError, ObygazeError
from obygaze_features.limits import (
    SYSTEM_KEEPS_LIMITS,
    Limits,
    Used,
    end_with_parent,
    excess,
    keep_to,
    limits_of,
    peak_bytes,
    used_by,
    without_network,
)
from obygaze_features.workers import Event, Parent, WorkerPool, receive_message, send_message

REQUEST: Final = b"call"
"""Kind of the messages to a child."""

PART: Final = b"part"
DONE: Final = b"done"
FAILED: Final = b"fail"
"""Kinds of messages from a child: a part of the answer, the end of a request, and its failure."""

WHAT_TO_DO: Final = (
    "divide a long file into several; one that is damaged, or made to take long, get or write again"
)
"""Advice at the end of messages on a file that took too much, or crashed its reader."""

MAX_BYTES: Final = 1 << 32
"""Size of the largest part of an answer, which the memory of the child limits too."""

CRASH_MEMORY_SHARE: Final = 0.6
"""Share of the memory that a child may use from which on a crash is put down to its lack of memory."""

WALL_FACTOR: Final = 10.0
"""Seconds by the clock for each second of processor time: a child that only waits is ended too."""

WATCH_S: Final = 0.2
"""Seconds between two measurements of a worker."""

FIRST_KEPT_FILE: Final = 200
"""Number of the first of the two files that a fork keeps, its pipes; it closes all with other numbers."""

MAX_FILES: Final = 1 << 16
"""End of the numbers of files that a fork closes."""

_keys = count()
"""Numbers of the requests to workers."""


@dataclass(frozen=True)
class Request:
    """What a child is to do.

    Attributes
    ----------
    work
        Function to call, importable by name; it yields the parts of the answer.
    arguments
        Its arguments.
    folder
        Working directory of the call.
    limits
        Time and memory that the child may use.
    """

    work: Callable[..., Iterable[bytes]]
    arguments: tuple[object, ...]
    folder: Path
    limits: Limits


class Child:
    """A child that answers requests; `reader_process` makes and ends it.

    Parameters
    ----------
    ask
        Called with a request and what messages call its file; yields the parts of the answer.
    """

    def __init__(self, ask: Callable[[Request, str], Iterable[bytes]]) -> None:
        self._ask = ask

    def call(self, work: Callable[..., Iterable[bytes]], *arguments: object, path: Path) -> Iterable[bytes]:
        """Call a function in the child process; yield the byte strings that the function yields.

        Parameters
        ----------
        work
            The function, importable by name.
        arguments
            Its arguments.
        path
            The file that it reads, whose size determines how much time and memory the child may use.

        Raises
        ------
        ObygazeError, OSError
            If the function raised it, if the child exceeded its time or memory or crashed, or if it yielded
            more bytes in all than its limit of memory.
        """
        size = path.stat().st_size if path.is_file() else 0
        request = Request(work, arguments, folder=Path.cwd(), limits=limits_of(size))
        return self._ask(request, str(path))


def is_child() -> bool:
    """Return whether this process is a child that reads untrusted files for its parent."""
    return _state["is child"]


@contextmanager
def reader_process() -> Iterator[Child]:
    """Yield a child process that reads untrusted files.

    - In a process that is such a child already, it is this process.
    - Where forks are safe, it is a fork of this process, which ends after the `with` block.
    - Elsewhere it is a worker process, which is kept for the next files.
    """
    if is_child():
        yield Child(_call_here)
    elif _may_fork():
        forked = _Forked()
        try:
            yield Child(forked.ask)
        finally:
            forked.end()
    else:
        yield Child(_ask_worker)


def _call_here(request: Request, _where: str) -> Iterable[bytes]:
    """Do a request in this process, which is a child with limits already."""
    return request.work(*request.arguments)


_state = {"is child": False}


def _may_fork() -> bool:
    """Return whether this process can be forked safely: on Linux, and without other threads.

    A lock that another thread holds at the fork would stay locked in the child for ever.
    """
    return sys.platform == "linux" and threading.active_count() == 1


class _Message(NamedTuple):
    """What a child and its parent send each other.

    Attributes
    ----------
    kind
        REQUEST, PART, DONE or FAILED.
    content
        A pickled request, a part of an answer, nothing, or an error as JSON.
    """

    kind: bytes
    content: bytes


def _do_request(request: Request, send: Callable[[bytes], None]) -> _Message:
    """Carry out a request in the child process, and return how it ended: DONE, or FAILED with the reason."""
    try:
        keep_to(request.limits)
        os.chdir(request.folder)
        for part in request.work(*request.arguments):
            send(part)
    except Exception as error:  # noqa: BLE001 - the parent raises it, whatever it is
        reason = _describe_error(error)
        return _Message(FAILED, json.dumps(reason).encode())
    return _Message(DONE, b"")


def _describe_error(error: Exception) -> dict[str, Any]:
    """Describe an error with which a request has failed, as JSON of which the parent makes an error again.

    It is an object with one of these keys:

    - `refused`: the message of an error about the file, with its class (`error`) and the column that it is
      about (`column`);
    - `out of memory`;
    - `system`: number, text and file name of an error of the operating system;
    - `bug`: the traceback of any other error.
    """
    if isinstance(error, ObygazeError):
        return {
            "refused": str(error),
            "error": _nearest_known_class(error),
            "column": getattr(error, "column", ""),
        }
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return {"out of memory": True}
    if isinstance(error, OSError):
        file_name = None if error.filename is None else str(error.filename)
        return {"system": [error.errno, error.strerror, file_name]}
    return {"bug": "".join(traceback.format_exception(error))}


def _nearest_known_class(error: ObygazeError) -> str:
    """Return the name of an error's class, or of its nearest base class, that `errors` defines.

    The parent process may not have imported the class itself.
    """
    for error_class in type(error).__mro__:
        if hasattr(errors, error_class.__name__):
            return error_class.__name__
    raise AssertionError(error)


def _raise_failure(ending: _Message, request: Request, location: str) -> None:
    """Raise the error with which a child's request failed; do nothing if it succeeded."""
    if ending.kind == DONE:
        return
    failure = json.loads(ending.content)
    if "refused" in failure:
        raise _error_of_ours(str(failure["error"]), str(failure["refused"]), str(failure["column"]))
    if "system" in failure:
        raise OSError(*failure["system"])
    if "out of memory" in failure:
        raise _memory_error(request, location)
    raise RuntimeError(f"in the process that reads {location}:\n{failure['bug']}")


def _error_of_ours(class_name: str, message: str, column: str) -> ObygazeError:
    """Make the error that a child process raised, from the name of its class.

    What a child sends is not trusted: a name that is no error class of the module `errors` gives an
    ObygazeError.
    """
    if class_name == ManifestError.__name__:
        return ManifestError(message, column)
    error_class = getattr(errors, class_name, ObygazeError)
    if isinstance(error_class, type) and issubclass(error_class, ObygazeError):
        return error_class(message)
    return ObygazeError(message)


def _memory_error(request: Request, location: str) -> InputError:
    """Return the error for a file that takes more memory to read than the request's limits allow."""
    limit_mb = request.limits.memory >> 20
    return InputError(f"{location}: to read it takes more than {limit_mb:,} MB of memory: {WHAT_TO_DO}")


def _refuse_large(n_bytes: int, request: Request, location: str) -> None:
    """Refuse an answer of more bytes than the child's memory limit, as this process has to hold it."""
    if n_bytes > request.limits.memory:
        raise _memory_error(request, location)


def _time_error(request: Request, location: str) -> InputError:
    """Return the error for a file that takes more processor time to read than it may."""
    return InputError(f"{location}: to read it takes more than {request.limits.cpu_s} s: {WHAT_TO_DO}")


def _crash_error(cause: str, request: Request, location: str) -> InputError:
    """Return the error for a child that ended without an answer."""
    if cause == "time":
        return _time_error(request, location)
    if cause == "memory":
        return _memory_error(request, location)
    return InputError(f"{location}: the process that reads it crashed ({cause}): {WHAT_TO_DO}")


class _ProcessEnd(NamedTuple):
    """How a child has ended.

    Attributes
    ----------
    code
        Its exit code, or -N if signal N ended it, as `subprocess` has it.
    peak
        The most memory in bytes that it used beyond what it began with; 0 if that is not known.
    """

    code: int
    peak: int

    @classmethod
    def parse(cls, text: str, peak: int) -> "_ProcessEnd":
        """Parse how a worker ended, such as "signal 11" or "exit code 1"; any other text is exit code 1."""
        match = re.fullmatch(r"(signal|exit code) (\d+)", text)
        if match is None:
            return cls(code=1, peak=peak)
        number = int(match[2])
        is_signal = match[1] == "signal"
        return cls(code=-number if is_signal else number, peak=peak)

    def cause(self, limits: Limits) -> str:
        """Return why the child ended without an answer.

        This is "time" or "memory" if it exceeded one of its limits, and otherwise its signal or exit code in
        words, such as "signal 11".
        """
        if self.code >= 0:
            return f"exit code {self.code}"
        signal_number = -self.code  # on systems other than Windows
        if sys.platform != "win32" and signal_number == signal.SIGXCPU:
            return "time"
        if sys.platform != "win32" and signal_number in {signal.SIGKILL, signal.SIGABRT}:
            # The system had no memory left and killed it, or a library could get no more and aborted.
            return "memory"
        used_nearly_all_memory = self.peak > CRASH_MEMORY_SHARE * limits.memory
        if used_nearly_all_memory:
            return "memory"  # a library asked for more, got none, and crashed as it did not check that
        return f"signal {signal_number}"


# --- a fork of this process
# ---------------------------------------------------------------------------
class _Forked:
    """A fork of this process, made for the first file, and made again if it has died."""

    def __init__(self) -> None:
        """Hold no process yet; `ask` forks one when it is needed."""
        self._pid = 0  # of the fork
        self._memory_before = 0  # bytes that the fork had in use before its first request
        self._requests: BinaryIO | None = None  # pipe to the fork; None while there is no fork
        self._answers: BinaryIO | None = None  # pipe from the fork

    def ask(self, request: Request, location: str) -> Iterator[bytes]:
        """Send a request to the forked process, and start it if need be; yield the parts of its answer.

        Parameters
        ----------
        request
            The request.
        location
            The file, for messages.

        Raises
        ------
        ObygazeError, OSError
            The work raised it, or took more time or memory than the request allows.
        """
        if self._requests is None or self._answers is None:
            self._start()
        assert self._requests is not None and self._answers is not None  # noqa: S101, PT018 - for the type checker

        n_bytes = 0  # of the answer so far
        try:
            with suppress(BrokenPipeError):  # the fork has died: reading its answer shows how
                send_message(self._requests, REQUEST, pickle.dumps(request))
            message = _receive(self._answers)
            while message.kind == PART:
                n_bytes += len(message.content)
                _refuse_large(n_bytes, request, location)
                yield message.content
                message = _receive(self._answers)
        except EOFError:  # the pipe of the answers has ended: the fork has died
            cause = self.end().cause(request.limits)
            raise _crash_error(cause, request, location) from None
        except BaseException:  # Ctrl-C, or the caller closes this generator
            self.end()
            raise

        _raise_failure(message, request, location)  # the last message says how the request ended

    def _start(self) -> None:
        """Fork this process, with a pipe for requests and one for answers."""
        # Of each pipe, the end to read from and the end to write to.
        request_source, request_sink = os.pipe()
        answer_source, answer_sink = os.pipe()
        with warnings.catch_warnings():
            # Python 3.12 warns that forking is unsafe if other threads run, such as those of numpy's library
            # of linear algebra. The child does not call it.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        is_fork = self._pid == 0
        if is_fork:
            _serve(request_source, answer_sink)  # never returns

        self._memory_before = used_by(self._pid).memory  # the child begins with a copy of this memory
        # Close the ends that only the fork uses: otherwise this process would not see that the fork has died.
        os.close(request_source)
        os.close(answer_sink)
        self._requests = os.fdopen(request_sink, "wb")
        self._answers = os.fdopen(answer_source, "rb")

    def end(self) -> _ProcessEnd:
        """Kill the forked process if it still runs, and return how it ended; exit code 0 if there is none."""
        if self._requests is None or self._answers is None:
            return _ProcessEnd(code=0, peak=0)
        with suppress(OSError):
            os.kill(self._pid, signal.SIGKILL)  # changes nothing if it has ended already
            self._requests.close()
        self._answers.close()
        self._requests = self._answers = None
        _, status, usage = os.wait4(self._pid, 0)
        return _ProcessEnd(os.waitstatus_to_exitcode(status), peak_bytes(usage) - self._memory_before)


def _serve(requests: int, answers: int) -> None:
    """Answer requests in the forked process until the parent closes the pipe, and end the process.

    First the process is shut off from the parent's: it is killed if the parent dies, ignores Ctrl-C (which
    the terminal sends to both, and the parent handles), keeps no file but the two pipes, and gets no network.

    This function never returns: when the pipe of the requests has ended, `receive_message` raises an
    EOFError. The process then ends at once, without the clean-up functions that it has inherited.

    Parameters
    ----------
    requests, answers
        Descriptors of the pipes to read from and to write to.
    """
    try:
        end_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        kept_requests, kept_answers = _close_other_files(requests, answers)
        _prepare_child()
        with os.fdopen(kept_requests, "rb") as source, os.fdopen(kept_answers, "wb") as sink:

            def send_part(part: bytes) -> None:
                """Send a part of the answer to the parent."""
                send_message(sink, PART, part)

            while True:
                _, pickled_request = receive_message(source)
                request = pickle.loads(pickled_request)  # noqa: S301 - from our own process
                ending = _do_request(request, send_part)
                send_message(sink, ending.kind, ending.content)
                # So that the memory of this request does not count for the next one.
                del request
                gc.collect()
    except BaseException:  # noqa: BLE001 - the fork must not return to the code that the parent runs
        os._exit(1)


def _prepare_child() -> None:
    """Make this process one that reads files: without network, and without garbage collection as it reads.

    Reading makes many objects and hardly any reference cycles. Garbage is collected after each request.
    """
    _state["is child"] = True
    gc.disable()
    gc.freeze()  # objects that exist already are never scanned
    without_network()


def _close_other_files(requests: int, answers: int) -> tuple[int, int]:
    """Close all files of a forked process except two pipes, and give it empty standard streams.

    A fork has all files of its parent open, which it must not read or write. The pipes are moved to the
    descriptors `FIRST_KEPT_FILE` (200) and 201, so that all descriptors below and above can be closed. Those
    of input, output and errors (0, 1 and 2) are led to the null device: what the fork prints is discarded.

    Parameters
    ----------
    requests, answers
        Descriptors of the pipes.

    Returns
    -------
    tuple
        The new descriptors of the pipes.
    """
    null_device = os.open(os.devnull, os.O_RDWR)
    # `dup2` first closes what has the new descriptor, which could be the other pipe. So both are copied
    # before, and the copies are moved.
    copy_of_requests = os.dup(requests)
    copy_of_answers = os.dup(answers)
    new_requests = os.dup2(copy_of_requests, FIRST_KEPT_FILE, inheritable=False)
    new_answers = os.dup2(copy_of_answers, FIRST_KEPT_FILE + 1, inheritable=False)
    for standard_stream in (0, 1, 2):  # input, output and errors
        os.dup2(null_device, standard_stream)
    # All others are closed: the parent's files, and the former descriptors of the pipes and the null device.
    os.closerange(3, FIRST_KEPT_FILE)
    os.closerange(FIRST_KEPT_FILE + 2, MAX_FILES)
    return new_requests, new_answers


def _receive(answers: BinaryIO) -> _Message:
    """Read a message of a fork from its pipe; raise EOFError if the fork has ended, or sends too much."""
    return _Message(*receive_message(answers, MAX_BYTES))


# --- a new Python
# ---------------------------------------------------------------------------
_pools: dict[tuple[str, ...], WorkerPool] = {}
"""Search path of modules (`sys.path`) -> the pool of one worker; at most one, kept for the next file."""

_asking = threading.Lock()
"""Held by the thread whose request the worker does."""


def _ask_worker(request: Request, location: str) -> list[bytes]:
    """Send a request to a worker process, where forks are not possible; return the parts of its answer.

    Requests of several threads are done one after the other. The worker is kept for the next request, unless
    it has to be ended.

    Raises
    ------
    ObygazeError, OSError
        The work raised it, or took more time or memory than the request allows.
    """
    with _asking:
        pool = _current_pool()
        watch = _Watch(pool, request.limits)
        try:
            answer = _answer_of_worker(pool, request, location, watch)
        except BaseException:  # Ctrl-C, too large an answer, or a bug
            end_children()
            raise

    ending = answer.last
    if ending.kind == "late":
        raise _time_error(request, location)
    if ending.kind == "died":
        cause = watch.exceeded  # the limit for which the watch has ended the worker
        if not cause:
            cause = _ProcessEnd.parse(str(ending.value), watch.peak).cause(request.limits)
        raise _crash_error(cause, request, location)

    # The worker says with the last item whether the request was done or has failed.
    *parts, last_item = answer.items
    _raise_failure(_unpacked_ending(last_item), request, location)
    return parts


def _packed_ending(ending: _Message) -> bytes:
    """Pack how a request ended, DONE or FAILED, into the last item that a worker sends for it."""
    return ending.kind + ending.content


def _unpacked_ending(item: bytes) -> _Message:
    """Return how a request ended from the last item of a worker; DONE and FAILED have the same length."""
    n_bytes_of_kind = len(DONE)
    return _Message(kind=item[:n_bytes_of_kind], content=item[n_bytes_of_kind:])


def _current_pool() -> WorkerPool:
    """Return the pool of the worker that reads files; a new one if `sys.path` has changed meanwhile."""
    search_path = tuple(sys.path)
    if search_path not in _pools:
        end_children()
        _pools[search_path] = WorkerPool(workers=1, work=_do_worker_task, max_bytes=MAX_BYTES)
    return _pools[search_path]


class _Answer(NamedTuple):
    """What a worker sent for a request, and its last event.

    The items of a worker that did not die are the parts of the answer, and last how the request ended
    (`_packed_ending`).
    """

    items: list[bytes]
    last: Event


class _Watch:
    """Measures what a worker uses for one request, and ends a worker that uses more than its limits.

    Where the system itself ends such a worker (`SYSTEM_KEEPS_LIMITS`), only the largest memory is noted.

    Attributes
    ----------
    used_before
        Time and memory that the worker had used before the request, as it tells at the beginning; None until
        then. Nothing is measured before.
    peak
        The most memory in bytes that it was seen to use for the request; 0 where the system does not keep
        the limits.
    exceeded
        The limit that it exceeded, "time" or "memory"; "" while it keeps to its limits.
    """

    def __init__(self, pool: WorkerPool, limits: Limits) -> None:
        """Begin to watch the one worker of a pool, which may use what the limits allow."""
        self._pool = pool
        self._limits = limits
        self._next_check_s = time.monotonic() + WATCH_S  # by the clock of `time.monotonic`
        self.used_before: Used | None = None  # by the worker before this request; None until it says it
        self.peak = 0  # bytes of memory
        self.exceeded = ""  # "time" or "memory", once the worker was ended for it

    def check(self) -> None:
        """Measure what the worker uses, and end it if it exceeds a limit; at most every `WATCH_S` seconds."""
        if self.used_before is None:  # the worker has not begun with the request
            return
        is_due = time.monotonic() >= self._next_check_s
        if self.exceeded or not is_due:
            return
        self._next_check_s = time.monotonic() + WATCH_S
        for pid in self._pool.pids():  # there is one worker, or none
            if SYSTEM_KEEPS_LIMITS:
                # The system ends the worker. The peak tells later whether memory was the reason of a crash.
                self.peak = max(self.peak, used_by(pid).memory - self.used_before.memory)
            else:
                self._end_if_exceeding(pid, self.used_before)

    def _end_if_exceeding(self, pid: int, used_before: Used) -> None:
        """End the worker if it exceeds a limit, and note which."""
        self.exceeded = excess(pid, self._limits, used_before)
        if self.exceeded:
            with suppress(OSError):  # it has just ended by itself
                os.kill(pid, signal.SIGTERM)


def _answer_of_worker(pool: WorkerPool, request: Request, location: str, watch: _Watch) -> _Answer:
    """Send a request to a worker, and collect the parts of its answer, until it is done or has died.

    The first item that the worker sends is not a part of the answer: it says what the worker had used before
    the request. It is set in `watch` (`used_before`), which measures from then on, and is asked to do so here
    again and again.
    """
    key = next(_keys)
    max_wall_s = WALL_FACTOR * request.limits.cpu_s
    pool.put(key, request, max_wall_s)
    items: list[bytes] = []
    n_bytes = 0
    while True:
        event = pool.get(WATCH_S)
        watch.check()
        if event is None or event.key != key:  # nothing came in time, or it is of an earlier request
            continue
        if event.kind != "item":  # the last event: done, died or late
            return _Answer(items, event)

        is_first_item = watch.used_before is None
        if is_first_item:
            watch.used_before = Used(*json.loads(event.value))
            continue
        items.append(event.value)
        n_bytes += len(event.value)
        _refuse_large(n_bytes, request, location)


def _do_worker_task(request: Request, parent: Parent) -> None:
    """Do a request in a worker process, which is kept for further requests.

    To the parent it sends first the time and memory that the process had used before: earlier requests do not
    count for this one. Then it sends the parts of the answer, each as soon as it is there, and last how the
    request ended.
    """
    is_first_request = not is_child()
    if is_first_request:
        _prepare_child()
    used_before = used_by(os.getpid())
    parent.send(json.dumps(used_before).encode())
    ending = _do_request(request, send=parent.send)
    parent.send(_packed_ending(ending))
    gc.collect()  # Python's own collection is off in such a process (`_prepare_child`)


@atexit.register
def end_children() -> None:
    """End the worker that reads files."""
    while _pools:
        _, pool = _pools.popitem()
        pool.close()
