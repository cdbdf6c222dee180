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
import signal
import struct
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Final

from obygaze_features import errors
from obygaze_features.errors import InputError, ManifestError, ObygazeError
from obygaze_features.limits import (
    IS_KEPT,
    Limits,
    Used,
    end_with_parent,
    excess,
    keep_to,
    limits_of,
    used_by,
    without_network,
)
from obygaze_features.workers import Parent, WorkerPool

DONE: Final = b"d"
FAILED: Final = b"f"
GIVEN_UP: Final = "the file is damaged, or made to take long: get or write it again"
MOST_BYTES: Final = 1 << 32
"""Of an answer, which the memory of the child limits too."""
WALL_FACTOR: Final = 10.0
"""Seconds by the clock for each of processor time: a child that waits is given up too."""
WATCH_S: Final = 0.2

_HEAD = struct.Struct("<cQ")
_keys = count()


@dataclass(frozen=True)
class Request:
    """What a child is to do: call a function, importable by name, with arguments; it returns bytes."""

    work: Callable[..., bytes]
    arguments: tuple[object, ...]
    folder: Path
    limits: Limits


class Child:
    """A child that answers requests; `readers_apart` makes and ends it."""

    def __init__(self, ask: Callable[[Request, str], bytes]) -> None:
        self._ask = ask

    def call(self, work: Callable[..., bytes], *arguments: object, path: Path) -> bytes:
        """Have the child call a function about a file; return the bytes that it returns.

        Raises
        ------
        ObygazeError, OSError
            The function raised it; or the child took more time or memory than the file may take, or crashed.
        """
        size = path.stat().st_size if path.is_file() else 0
        return self._ask(Request(work, arguments, Path.cwd(), limits_of(size)), str(path))


def is_child() -> bool:
    """Return whether this process reads strangers' files for another."""
    return _state["is child"]


@contextmanager
def readers_apart() -> Iterator[Child]:
    """Start a child that reads files, and end it; a child itself reads on its own."""
    if is_child():
        yield Child(lambda request, _: request.work(*request.arguments))
    elif _may_fork():
        forked = _Forked()
        try:
            yield Child(forked.ask)
        finally:
            forked.end()
    else:
        yield Child(_ask_worker)


_state = {"is child": False}


def _may_fork() -> bool:
    """Return whether a fork is safe: other threads of Python could hold locks for ever in a child."""
    return sys.platform == "linux" and threading.active_count() == 1


def _answer(request: Request) -> tuple[bytes, bytes]:
    """Do a request in the child; return what kind of answer it is, and the answer."""
    try:
        keep_to(request.limits)
        os.chdir(request.folder)
        return DONE, request.work(*request.arguments)
    except ObygazeError as error:
        told: dict[str, Any] = {
            "refused": str(error),
            "error": _known_class(error),
            "column": getattr(error, "column", ""),
        }
    except MemoryError:
        told = {"memory": "1"}
    except OSError as error:
        if error.errno == errno.ENOMEM:
            told = {"memory": "1"}
        else:
            told = {"system": [error.errno, error.strerror, error.filename and str(error.filename)]}
    except Exception as error:  # noqa: BLE001 - a bug, whose traceback the parent raises
        told = {"bug": "".join(traceback.format_exception(error))}
    return FAILED, json.dumps(told).encode()


def _known_class(error: ObygazeError) -> str:
    """Name the class of an error that every process knows: its own, or the one that it is derived from."""
    names = [each.__name__ for each in type(error).__mro__]
    return next(name for name in names if hasattr(errors, name))


def _result(kind: bytes, answer: bytes, request: Request, where: str) -> bytes:
    """Return what a child answered, or raise what it says."""
    if kind == DONE:
        return answer
    told = json.loads(answer)
    if "refused" in told:
        if told["error"] == ManifestError.__name__:
            raise ManifestError(str(told["refused"]), str(told["column"]))
        raised = getattr(errors, str(told["error"]), ObygazeError)
        is_ours = isinstance(raised, type) and issubclass(raised, ObygazeError)
        raise raised(str(told["refused"])) if is_ours else ObygazeError(str(told["refused"]))
    if "system" in told:
        raise OSError(*told["system"])
    if "memory" in told:
        raise _too_much_memory(request, where)
    raise RuntimeError(f"in the process that reads {where}:\n{told['bug']}")


def _too_much_memory(request: Request, where: str) -> InputError:
    most = request.limits.memory >> 20
    return InputError(f"{where}: to read it takes more than {most:,} MB of memory: {GIVEN_UP}")


def _too_long(request: Request, where: str) -> InputError:
    return InputError(f"{where}: to read it takes more than {request.limits.cpu_s} s: {GIVEN_UP}")


def _ended(how: str, request: Request, where: str) -> InputError:
    """Say why a child has ended without an answer."""
    if how == "time":
        return _too_long(request, where)
    if how == "memory":
        return _too_much_memory(request, where)
    return InputError(f"{where}: the process that reads it crashed ({how}): {GIVEN_UP}")


def _how(code: int) -> str:
    """Say how a child ended, by its exit code as `subprocess` has it."""
    if sys.platform != "win32" and code == -signal.SIGXCPU:
        return "time"
    if sys.platform != "win32" and code in {-signal.SIGKILL, -signal.SIGABRT}:
        return "memory"  # the system had none left, or a library could get no more
    return f"signal {-code}" if code < 0 else f"exit code {code}"


# --- a fork of this process
# ---------------------------------------------------------------------------
class _Forked:
    """A fork of this process, made for the first file; another one where it died."""

    def __init__(self) -> None:
        self._pid = 0
        self._requests: BinaryIO | None = None
        self._answers: BinaryIO | None = None

    def ask(self, request: Request, where: str) -> bytes:
        """Have the fork do a request."""
        if self._requests is None or self._answers is None:
            self._start()
        assert self._requests is not None and self._answers is not None  # noqa: S101, PT018
        try:
            with suppress(BrokenPipeError):  # its end says more
                _send(self._requests, DONE, pickle.dumps(request))
            kind, answer = _receive(self._answers)
        except EOFError:
            raise _ended(_how(self.end()), request, where) from None
        except BaseException:  # Ctrl-C
            self.end()
            raise
        return _result(kind, answer, request, where)

    def _start(self) -> None:
        requests, answers = os.pipe(), os.pipe()
        with warnings.catch_warnings():
            # Python 3.12 warns of the threads of a library of linear algebra, which the child does not call.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if self._pid == 0:
            _serve(requests[0], answers[1])
        os.close(requests[0])
        os.close(answers[1])
        self._requests, self._answers = os.fdopen(requests[1], "wb"), os.fdopen(answers[0], "rb")

    def end(self) -> int:
        """End the fork; return how it ended, as `subprocess` does."""
        if self._requests is None or self._answers is None:
            return 0
        with suppress(OSError):
            os.kill(self._pid, signal.SIGKILL)  # one that has ended keeps how it did
            self._requests.close()
        self._answers.close()
        self._requests = self._answers = None
        _, status = os.waitpid(self._pid, 0)
        return os.waitstatus_to_exitcode(status)


def _serve(requests: int, answers: int) -> None:
    """Answer requests in a fork until there are none, and end without what this process had still to do."""
    try:
        end_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to both; the parent ends this one
        _state["is child"] = True
        gc.disable()  # as the parent reads: many records, and hardly circles of them
        gc.freeze()  # what the parent has made is not looked at again
        requests, answers = _alone_with(requests, answers)
        without_network()
        with os.fdopen(requests, "rb") as source, os.fdopen(answers, "wb") as sink:
            while True:
                _, pickled = _receive(source)
                kind, answer = _answer(pickle.loads(pickled))  # noqa: S301 - from our own process
                _send(sink, kind, answer)
                del pickled, answer
                gc.collect()
    except BaseException:  # noqa: BLE001 - a fork never goes on as this process does
        os._exit(1)


def _alone_with(requests: int, answers: int) -> tuple[int, int]:
    """Close all files but two, which get the numbers 3 and 4; print nothing."""
    nothing = os.open(os.devnull, os.O_RDWR)
    kept = [os.dup(requests), os.dup(answers)]
    high = [os.dup2(each, 200 + at, inheritable=False) for at, each in enumerate(kept)]
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.closerange(3, high[0])
    os.closerange(high[-1] + 1, 1 << 16)
    return high[0], high[1]


def _send(stream: BinaryIO, kind: bytes, message: bytes) -> None:
    stream.write(_HEAD.pack(kind, len(message)))
    stream.write(message)
    stream.flush()


def _receive(stream: BinaryIO) -> tuple[bytes, bytes]:
    head = stream.read(_HEAD.size)
    if len(head) == _HEAD.size:
        kind, size = _HEAD.unpack(head)
        if size <= MOST_BYTES and len(message := stream.read(size)) == size:
            return kind, message
    raise EOFError


# --- a new Python
# ---------------------------------------------------------------------------
_pools: dict[tuple[str, ...], WorkerPool] = {}
"""By where modules are looked for: at most one, which is kept for the next file."""
_asking = threading.Lock()


def _ask_worker(request: Request, where: str) -> bytes:
    """Have a worker process do a request."""
    with _asking:
        places = tuple(sys.path)
        if places not in _pools:
            end_children()
            _pools[places] = WorkerPool(1, _work, most_bytes=MOST_BYTES)
        pool, key = _pools[places], next(_keys)
        pool.put(key, request, WALL_FACTOR * request.limits.cpu_s)
        parts: list[bytes] = []
        over = ""
        try:
            while (event := pool.get(WATCH_S)) is None or event.key != key or event.kind == "item":
                if event is not None and event.key == key:
                    parts.append(event.value)
                elif parts and not IS_KEPT:
                    over = over or _ended_for(pool, request.limits, Used(*json.loads(parts[0])))
        except BaseException:  # Ctrl-C, or a bug
            end_children()
            raise
        if event.kind == "late":
            raise _too_long(request, where)
        if event.kind == "died":
            code = str(event.value).removeprefix("signal ")
            raise _ended(over or (_how(-int(code)) if code.isdecimal() else str(event.value)), request, where)
    return _result(parts[-1][:1], parts[-1][1:], request, where)


def _ended_for(pool: WorkerPool, limits: Limits, before: Used) -> str:
    """End a worker that has used more than its limits since it began; return of what, "" if it goes on."""
    for pid in pool.pids():
        over = excess(pid, limits, before)
        if over:
            with suppress(OSError):  # it has just ended
                os.kill(pid, signal.SIGTERM)
            return over
    return ""


def _work(request: Request, parent: Parent) -> None:
    """Do a request in a worker; where its parent watches it, send first what it has used before."""
    if not is_child():
        _state["is child"] = True
        gc.disable()
        gc.freeze()
        without_network()
    if not IS_KEPT:
        parent.send(json.dumps(used_by(os.getpid())).encode())
    kind, answer = _answer(request)
    parent.send(kind + answer)
    del answer
    gc.collect()


@atexit.register
def end_children() -> None:
    """End the worker that reads files."""
    while _pools:
        _pools.popitem()[1].close()
