"""Find items to import in folders, match them to clips, read untrusted files in a worker process.

HDF5 and Parquet are read by C and C++ code, which damaged files can crash or send into an endless loop. A
worker answers with JSON and the bytes of arrays: nothing that it sends is unpickled.
"""

import atexit
import errno
import json
import os
import signal
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import ObygazeError, StoreError
from obygaze_features.limits import keep_to, limits_of, without_network
from obygaze_features.workers import Event, Parent, WorkerPool

MOST_BYTES = 1 << 30
"""Most bytes of one clip's features; larger files are refused before they are read."""

LIMIT_S = 600.0
"""Seconds for one clip, and for opening a file, plus one per megabyte: what takes longer does not end."""

OVER_TIME = f"signal {getattr(signal, 'SIGXCPU', 0)}"
DAMAGED = "the file is damaged; get or write it again"

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


class TableOptions(NamedTuple):
    """What is asked for of a table.

    Attributes
    ----------
    ids
        The column or array of ids, or a file of them; None for one of the usual names.
    columns
        Patterns of the features.
    never
        Columns that are no features.
    of_frames
        Whether the features are frames: a row of one vector is then a frame, and clips have several rows.
    times
        The column of the frames' times; None for one of the usual names.
    at_a_rate
        Whether the frames' times follow from a rate.
    """

    ids: str | None
    columns: tuple[str, ...]
    never: frozenset[str]
    of_frames: bool = False
    times: str | None = None
    at_a_rate: bool = False


def match(
    items: Mapping[str, ImportItem], name_of: Mapping[str, str], suffixes: Collection[str] = ()
) -> tuple[dict[str, ImportItem], tuple[str, ...]]:
    """Match features to clips by name: clip id -> its features, and the names that belong to no clip.

    Parameters
    ----------
    items
        Path without suffix -> features.
    name_of
        Clip id -> name. If no name has a '/', only the last part of the paths is compared, in any form of
        Unicode: macOS decomposes letters with accents.
    suffixes
        Endings, such as those of videos, without which a path matches that does not as it is.

    Raises
    ------
    StoreError
        If features have the name of two clips, or two files have the name of one.
    """
    clips: defaultdict[str, list[str]] = defaultdict(list)
    for clip, name in name_of.items():
        clips[normalize("NFC", name)].append(clip)
    deep = any("/" in name for name in clips)
    named: dict[str, ImportItem] = {}
    unknown = []
    for path, item in items.items():
        posix = path.replace("\\", "/")  # also ids that are paths of Windows
        name = normalize("NFC", posix if deep else posix.rpartition("/")[2])
        stem, _, suffix = name.strip("'").rpartition(".")  # openSMILE puts names in apostrophes
        if name not in clips and f".{suffix.lower()}" in suffixes:
            name = stem
        if name not in clips:
            unknown.append(path)
        elif len(clips[name]) > 1:
            raise StoreError(
                f"clips {' and '.join(clips[name][:2])}: "
                f"both would be called {name!r}; tell them apart with --pattern"
            )
        elif name in named:
            raise StoreError(
                f"{item.where} and {named[name].where}: both are called {name!r}, clip {clips[name][0]}; "
                "tell them apart with a --pattern that has the folder, such as {movie}/{video}"
            )
        else:
            named[name] = item
    return {clips[name][0]: item for name, item in named.items()}, tuple(unknown)


def with_times(
    features: Mapping[str, ImportItem], times: Mapping[str, ImportItem], name: str
) -> dict[str, ImportItem]:
    """Put the times of frames, which lie in files of their own, beside the features of their clips.

    Parameters
    ----------
    features, times
        Clip id -> what its files hold; a file of times holds one array.
    name
        Name of the array of times beside the features.

    Raises
    ------
    StoreError
        If a clip has features and no times.
    """

    def load(item: ImportItem, of_times: ImportItem) -> Arrays:
        arrays = of_times.load()
        if len(arrays) != 1:
            raise StoreError(f"{of_times.where}: expected one array of times; found {', '.join(arrays)}")
        (moments,) = arrays.values()
        return {**item.load(), name: moments}

    joined = {}
    for clip, item in features.items():
        if clip not in times:
            raise StoreError(f"{item.where}: no file has the times of its frames (--times {name})")
        joined[clip] = replace(item, load=partial(load, item, times[clip]))
    return joined


# --- files read in a worker
# ---------------------------------------------------------------------------
Reader = Callable[..., AbstractContextManager[FileContent]]


class _Request(NamedTuple):
    """What a worker is to read: the `clip`-th clip of a file that is opened once a session, or their list."""

    session: int
    folder: Path
    reader: Reader
    words: tuple[object, ...]
    clip: int | None = None


@contextmanager
def read_apart(library: str, reader: Reader, path: Path, *words: object) -> Iterator[FileContent]:
    """Open a file with a reader that runs in a worker; each `load` requests one clip from it.

    Parameters
    ----------
    library
        Name of the library that reads, in messages, e.g. HDF5.
    reader
        Called as `reader(path, *words)`; importable by name.

    Raises
    ------
    StoreError
        Raised by the reader; or the worker crashed, was killed, or exceeded `LIMIT_S`.
    """
    request = _Request(next(_numbers), Path.cwd(), reader, (path, *words))
    is_open = True
    texts: dict[str, str] = {}

    def load(clip: int, where: str) -> Arrays:
        if not is_open:
            raise StoreError(f"{where}: the file is closed")
        answer, parts = _ask(request._replace(clip=clip), library, where, LIMIT_S)
        texts.update(answer["texts"])
        described = zip(answer["arrays"], parts, strict=True)
        return {name: np.frombuffer(part, dtype).reshape(shape) for (name, dtype, shape), part in described}

    try:
        size = path.stat().st_size if path.is_file() else 0
        answer, _ = _ask(request, library, str(path), LIMIT_S + (size >> 20))
        items = {
            key: ImportItem(where, partial(load, clip, where), status, reason)
            for clip, (key, where, status, reason) in enumerate(answer["items"])
        }
        texts.update(answer["texts"])
        yield items, texts
    finally:
        is_open = False
        for pool in _pools:
            # Of another file, of nothing: the worker closes this one.
            pool.put(None, _Request(next(_numbers), Path.cwd(), nullcontext, (({}, {}),)))


def _ask(request: _Request, library: str, where: str, limit_s: float) -> tuple[Any, list[bytes]]:
    """Send a request; return the answer and the bytes of arrays, or raise what the reader raised."""
    if not _pools:
        _pools.append(WorkerPool(1, _answer, most_bytes=MOST_BYTES))
    key = next(_numbers)
    parts = list[bytes]()
    _pools[0].put(key, request, limit_s)
    try:
        while (event := _pools[0].get(1.0)) is None or event.key != key or event.kind == "item":
            if event is not None and event.key == key:
                parts.append(event.value)
    except BaseException:  # Ctrl-C, or a bug of the reader
        end_reader()
        raise
    if event.kind != "done":
        raise StoreError(f"{where}: {library} {_how_it_ended(event, limit_s)}")
    answer = json.loads(parts[0])
    if "refused" in answer:
        raise StoreError(answer["refused"])
    if "memory" in answer:
        raise StoreError(f"{where}: {library} needs more memory to read it than this process may use")
    if "system" in answer:
        raise OSError(*answer["system"])
    return answer, parts[1:]


def _how_it_ended(event: Event, limit_s: float) -> str:
    """Say why a worker ended without an answer."""
    if event.kind == "late":
        return f"took more than {limit_s:.0f} s to read it: {DAMAGED}"
    if event.value == OVER_TIME:
        return f"took more processor time than its size allows: {DAMAGED}"
    scarce = "there is too little memory, or " if event.value == "signal 9" else ""
    return f"crashed while reading it ({event.value}): {scarce}{DAMAGED}"


_numbers = count()
_pools: list[WorkerPool] = []  # at most one, which is kept for the next file


@atexit.register
def end_reader() -> None:
    """End the worker that reads files."""
    while _pools:
        _pools.pop().close()


# --- in the worker
# ---------------------------------------------------------------------------
_opened = ExitStack()
_session: list[Any] = [None, [], {}]  # its number, the items and texts of its file


def _answer(request: _Request, parent: Parent) -> None:
    _be_quiet()
    without_network()
    os.chdir(request.folder)
    keep_to(limits_of(_size(request.words[0])))
    arrays: list[NDArray[Any]] = []
    try:
        if _session[0] != request.session:  # this worker may replace one that crashed
            _opened.close()
            items_by_name, texts = _opened.enter_context(request.reader(*request.words))
            _session[:] = request.session, list(items_by_name.items()), texts
        _, items, texts = _session
        if request.clip is None:
            listed = [(key, item.where, item.status, item.reason) for key, item in items]
            answer = {"items": listed, "texts": texts}
        else:
            _, item = items[request.clip]
            loaded = {name: np.asarray(values, order="C") for name, values in item.load().items()}
            if strange := [array.dtype for array in loaded.values() if array.dtype.kind not in "fiub"]:
                raise StoreError(f"{item.where}: holds {strange[0]}, expected numbers")
            arrays = list(loaded.values())
            described = [(name, array.dtype.str, array.shape) for name, array in loaded.items()]
            notes = {name: text for name, text in texts.items() if name == "left_out"}
            answer = {"arrays": described, "texts": notes}
    except ObygazeError as error:
        answer = {"refused": str(error)}
    except MemoryError:
        answer = {"memory": True}
    except OSError as error:
        if error.errno is None:  # of h5py
            raise
        system = [error.errno, error.strerror, error.filename]
        answer = {"memory": True} if error.errno == errno.ENOMEM else {"system": system}
    parent.send(json.dumps(answer).encode())
    for array in arrays:
        parent.send(array.reshape(-1).view(np.uint8).data)


def _size(path: object) -> int:
    """Return the size of a file, or of the largest one in a folder, in bytes."""
    if not isinstance(path, Path):
        return 0
    files = filter(Path.is_file, path.rglob("*")) if path.is_dir() else (path,)
    return max((file.stat().st_size for file in files if file.exists()), default=0)


@cache
def _be_quiet() -> None:
    """Print nothing: a library that crashes says why in words of its own."""
    with Path(os.devnull).open("wb") as nothing:
        for number in (1, 2):
            os.dup2(nothing.fileno(), number)
