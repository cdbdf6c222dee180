"""Find items to import in folders, match them to clips, read untrusted files in a subprocess.

HDF5 and Parquet are read by C and C++ code, which damaged files can crash or send into an endless loop. A
server process therefore imports the reader once and forks for each file. The fork answers over a socket with
lines of JSON and the bytes of arrays: nothing that it sends is unpickled.
"""

import atexit
import errno
import importlib
import io
import json
import math
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tokenize import TokenError
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import ObygazeError, StoreError, WorkerError, first_line

MOST_BYTES = 1 << 30
"""Most bytes of one clip's features; larger files are refused before they are read."""

CPU_S = 60
"""CPU seconds for one clip, and for opening a file, plus one second per megabyte.

CPU time, not wall time: a busy machine or a slow disk ends no import.
"""

NOT_NPY = (ValueError, TypeError, KeyError, EOFError, OverflowError, RuntimeError, SyntaxError, TokenError)
"""Exceptions of numpy for an invalid header, which it reads as Python text."""
_START = (
    "import sys; sys.path[:] = sys.argv[3:]; "
    "from obygaze_features.exchange.import_items import serve; serve(sys.argv[1], int(sys.argv[2]))"
)
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class ImportItem:
    """One clip's features in another tool's files.

    Attributes
    ----------
    where
        Its name in messages.
    load
        Reads its arrays by name; a single array's name does not matter.
    status, reason
        Status of the clip, if known.
    """

    where: str
    load: Callable[[], Arrays]
    status: str = "ok"
    reason: str = ""


FileContent = tuple[Mapping[str, ImportItem], dict[str, str]]
"""Name -> features, and texts about the file itself."""


@dataclass(frozen=True)
class MatchedItems:
    """Features matched to clips.

    Attributes
    ----------
    features
        Clip id -> its features.
    unknown
        Names that belong to no clip.
    absent
        Clips without features.
    """

    features: Mapping[str, ImportItem]
    unknown: tuple[str, ...]
    absent: tuple[str, ...]


def match(items: Mapping[str, ImportItem], wanted: Mapping[str, str]) -> MatchedItems:
    """Match features to clips by exact name.

    Parameters
    ----------
    items
        Path without suffix -> features.
    wanted
        Clip id -> name. If no name has a '/', only the last part of the paths is compared.

    Raises
    ------
    StoreError
        If features have the name of two clips, or two files have the name of one.
    """
    clips: dict[str, str] = {}
    twins: dict[str, str] = {}
    for clip, name in wanted.items():
        if clips.setdefault(name, clip) != clip:
            twins.setdefault(name, clip)
    deep = any("/" in name for name in clips)
    named: dict[str, ImportItem] = {}
    unknown = []
    for path, item in items.items():
        name = path if deep else path.rpartition("/")[2]
        if name not in clips:
            unknown.append(path)
        elif name in twins:
            raise StoreError(
                f"clips {clips[name]} and {twins[name]}: "
                f"both would be called {name!r}; tell them apart with --pattern"
            )
        elif name in named:
            raise StoreError(
                f"{item.where} and {named[name].where}: both are called {name!r}, clip {clips[name]}; tell "
                "them apart with a --pattern that has the folder, such as {movie}/{video}"
            )
        else:
            named[name] = item
    matched = {clip: named[name] for clip, name in wanted.items() if name in named}
    return MatchedItems(matched, tuple(unknown), tuple(clip for clip in wanted if clip not in matched))


# --- one file per clip
# ---------------------------------------------------------------------------
def files_below(folder: Path, suffix: str, read: Callable[[Path], NDArray[Any]]) -> dict[str, ImportItem]:
    """Find every file with a suffix: path without it, relative, with '/' -> its features."""
    if not folder.is_dir():
        raise StoreError(
            f"{folder}: is a file; --from {suffix[1:]} reads a folder with a file per clip. "
            "One matrix with a row per clip: --from table --ids FILE"
        )
    items = {}
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            if name.endswith(suffix) and path.is_file():
                key = path.relative_to(folder).as_posix().removesuffix(suffix)
                items[key] = ImportItem(str(path), partial(_single, read, path))
    if not items:
        raise StoreError(f"{folder}: no file {suffix} in it or below")
    return items


def _single(read: Callable[[Path], NDArray[Any]], path: Path) -> Arrays:
    return {"": read(path)}


def read_npy(path: Path) -> NDArray[Any]:
    """Read a .npy file; refuses pickles and headers larger than the file.

    Raises
    ------
    StoreError
        If it is not such a file.
    """
    try:
        with path.open("rb") as file:
            head = file.read(12)
        if head[6:7] > b"\x01" and int.from_bytes(head[8:], "little") > path.stat().st_size:
            raise ValueError("its header is said to be longer than the file")
        mapped = np.lib.format.open_memmap(path, mode="r")
        refuse_giants(mapped.nbytes, str(path))
        if not mapped.size:
            raise ValueError(f"its shape {mapped.shape} holds no number")
        return np.array(mapped)
    except StoreError:
        raise
    except NOT_NPY as error:
        reason = first_line(error, 200)
        raise StoreError(f"{path}: not a readable .npy file ({reason})") from error


def refuse_giants(size: int, where: str) -> None:
    """Refuse arrays too large for one clip before reading them."""
    if size > MOST_BYTES:
        raise StoreError(f"{where}: {size} bytes for one clip; expected at most {MOST_BYTES}")


# --- files read in a subprocess
# ---------------------------------------------------------------------------
@contextmanager
def read_apart(
    library: str, reader: Callable[..., AbstractContextManager[FileContent]], path: Path, *words: str | None
) -> Iterator[FileContent]:
    """Open a file with a reader that runs in a subprocess; each `load` requests one clip from it.

    Parameters
    ----------
    library
        Name of the library that reads, in messages, e.g. HDF5.
    reader
        Called as `reader(path, *words)`; importable by name.

    Raises
    ------
    StoreError
        Raised by the reader; or its process crashed, was killed, or exceeded `CPU_S`.
    WorkerError
        The process could not start, or ended without a signal.
    """
    session = _Session(library, path, reader.__module__)
    try:
        size = path.stat().st_size if path.is_file() else 0
        call = [str(Path.cwd()), reader.__module__, reader.__qualname__, str(path), *words]
        listed = session.ask(call, str(path), CPU_S + (size >> 20))
        items = {
            key: ImportItem(where, partial(session.load, number, where), status, reason)
            for number, (key, where, status, reason) in enumerate(listed["items"])
        }
        yield items, listed["texts"]
    finally:
        session.close()


class _Session:
    """One file, read in a subprocess."""

    def __init__(self, library: str, path: Path, module: str) -> None:
        self._library, self._path = library, path
        self._lock = threading.Lock()
        self._idle, self._death = True, ""
        self._server = _Server.take(module)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self._stream = ours.makefile("rwb")
            with suppress(BrokenPipeError):  # it could not start: there will be no answer
                socket.send_fds(self._server.control, [b"\0"], [theirs.fileno()])

    def load(self, number: int, where: str) -> Arrays:
        """Read the arrays of one clip."""
        return cast("Arrays", self.ask(number, where, CPU_S)["arrays"])

    def ask(self, request: object, where: str, cpu_s: int) -> dict[str, Any]:
        """Send a request; return the answer, or raise what the reader raised."""
        with self._lock:
            if not self._idle:
                raise StoreError(f"{where}: an earlier reading was stopped; open the file again")
            if not self._death:
                self._idle = False
                answer = self._exchange(request, where, cpu_s)
                self._idle = True
            if self._death:
                raise StoreError(f"{where}: {self._death}")
        if "error" in answer:
            raise _raised(answer, where, self._library)
        return answer

    def _exchange(self, request: object, where: str, cpu_s: int) -> dict[str, Any]:
        try:
            _send(self._stream, {"request": request, "cpu_s": cpu_s})
            line = self._stream.readline()
            answer: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
            arrays = {}
            for name, dtype, shape in answer.get("arrays", ()):
                refuse_giants(math.prod(shape) * np.dtype(dtype).itemsize, where)
                arrays[name] = np.empty(shape, _numbers(np.dtype(dtype), where))
                bytes_of = arrays[name].reshape(-1).view(np.uint8).data
                if self._stream.readinto(bytes_of) != len(bytes_of):
                    answer = {}
            if answer:
                return answer | {"arrays": arrays}
        except (BrokenPipeError, ConnectionResetError):
            pass
        self._death = self._described(self._server.ended(), cpu_s)
        return {}

    def _described(self, code: int, cpu_s: int) -> str:
        again = "the file is damaged; get or write it again"
        if code >= 0:
            raise WorkerError(f"{self._path}: the process that reads {self._library} ended with {code}")
        if -code == signal.SIGXCPU:
            return f"{self._library} took more than {cpu_s} s of processor time to read it: {again}"
        if -code == signal.SIGKILL:
            return f"the process that reads it was killed (signal 9): there is too little memory, or {again}"
        return f"{self._library} crashed while reading it (signal {-code}): {again}"

    def close(self) -> None:
        """End the process of this file; its server stays, unless the file is still being read."""
        if self._idle and not self._death:
            with suppress(BrokenPipeError, ConnectionResetError):
                _send(self._stream, None)
            self._server.ended()
        with suppress(OSError):  # what was not sent is not needed
            self._stream.close()
        if self._idle or self._death:
            self._server.give_back()
        else:
            self._server.end()
        self._idle, self._death = True, "the file is closed"


class _Server:
    """A process that has imported a reader and forks for each file, one at a time."""

    def __init__(self, module: str) -> None:
        self.owner = os.getpid()
        self.control, theirs = socket.socketpair()
        # Threads of a matrix library would not survive a fork, and none are needed.
        alone = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        with theirs:
            words = [module, str(theirs.fileno()), *map(os.path.abspath, sys.path)]
            # In a new session, Ctrl-C in a terminal reaches only this process, which then ends that one.
            self._process = subprocess.Popen(  # noqa: S603 - our own Python
                [sys.executable, "-c", _START, *words],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=os.environ | alone,
                start_new_session=True,
            )

    @classmethod
    def take(cls, module: str) -> "_Server":
        """Return the idle server, or start one."""
        with suppress(IndexError):
            while True:
                kept = _KEPT.pop()  # only one thread gets it
                if kept.owner == os.getpid() and kept._process.poll() is None:
                    return kept
                kept.end()
        return cls(module)

    def ended(self) -> int:
        """Wait for the end of the file's process; return its exit code, negative for a signal."""
        status = self.control.recv(4)
        return os.waitstatus_to_exitcode(int.from_bytes(status, "little")) if status else self._process.wait()

    def give_back(self) -> None:
        """Keep this server for the next file, if it runs and no other is kept."""
        if not _KEPT and self._process.poll() is None:
            _KEPT.append(self)
        else:
            self.end()

    def end(self) -> None:
        """Kill the server and the process of its file."""
        if self.owner == os.getpid():
            if self._process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self.control.close()


_KEPT: list[_Server] = []


@atexit.register
def end_kept_server() -> None:
    """End the idle server."""
    while _KEPT:
        _KEPT.pop().end()


def _send(stream: io.BufferedIOBase, message: object) -> None:
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()


def _numbers(dtype: np.dtype[Any], where: str) -> np.dtype[Any]:
    """Return the data type if its bytes are numbers, not references."""
    if dtype.kind not in "fiub":
        raise StoreError(f"{where}: holds {dtype}, expected numbers")
    return dtype


# --- errors cross as texts
# ---------------------------------------------------------------------------
def _error_record(error: Exception) -> dict[str, Any]:
    if isinstance(error, ObygazeError):
        return {"error": "ours", "message": str(error)}
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return {"error": "memory"}
    if isinstance(error, OSError) and error.errno is not None:
        return {"error": "system", "words": [error.errno, error.strerror, error.filename]}
    return {"error": "bug", "message": "".join(traceback.format_exception(error))}


def _raised(answer: Mapping[str, Any], where: str, library: str) -> Exception:
    if answer["error"] == "ours":
        return StoreError(answer["message"])
    if answer["error"] == "memory":
        return StoreError(f"{where}: {library} needs more memory to read it than this process may use")
    if answer["error"] == "system":
        return OSError(*answer["words"])
    return RuntimeError(f"in the process that reads {where}:\n{answer['message']}")


# --- the other process
# ---------------------------------------------------------------------------
def serve(module: str, descriptor: int) -> None:
    """Fork for each file until this process's parent has ended; report how each fork ended."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no file behind
    for number in (signal.SIGCHLD, signal.SIGXCPU):  # a parent may ignore them
        signal.signal(number, signal.SIG_DFL)
    with suppress(OSError):  # if memory runs out, Linux kills this process first
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    importlib.import_module(module)
    with socket.socket(fileno=descriptor) as control:
        while descriptors := socket.recv_fds(control, 1, 1)[1]:
            pid = os.fork()
            if pid == 0:
                try:
                    control.close()
                    _answer(socket.socket(fileno=descriptors[0]))
                finally:
                    os._exit(0)
            os.close(descriptors[0])
            control.sendall(os.waitpid(pid, 0)[1].to_bytes(4, "little"))


def _answer(channel: socket.socket) -> None:
    """Open the file named by the first request, then send the requested clips."""
    stream = channel.makefile("rwb")
    items: list[ImportItem] = []
    # Never exited: this process ends with the file open.
    manager: AbstractContextManager[FileContent] | None = None
    for line in stream:
        if (message := json.loads(line)) is None:
            return
        _allow(message["cpu_s"])
        arrays: list[np.ndarray[Any, Any]] = []
        try:
            if manager is None:
                folder, module, name, path, *words = message["request"]
                os.chdir(folder)
                manager = getattr(importlib.import_module(module), name)(Path(path), *words)
                by_name, texts = manager.__enter__()
                items = list(by_name.values())
                listed = [(key, item.where, item.status, item.reason) for key, item in by_name.items()]
                answer = {"items": listed, "texts": texts}
            else:
                item = items[message["request"]]
                loaded = {name: np.asarray(values, order="C") for name, values in item.load().items()}
                arrays = list(loaded.values())
                types = [_numbers(array.dtype, item.where).str for array in arrays]
                shapes = [array.shape for array in arrays]
                answer = {"arrays": list(zip(loaded, types, shapes, strict=True))}
        except Exception as error:  # noqa: BLE001 - raised again in the parent
            answer, arrays = _error_record(error), []
        _send(stream, answer)
        for array in arrays:
            channel.sendall(array.reshape(-1).view(np.uint8).data)


def _allow(cpu_s: int) -> None:
    """Let this process be killed (SIGXCPU) after `cpu_s` more seconds of CPU time."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    wanted = math.ceil(time.process_time()) + cpu_s
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
