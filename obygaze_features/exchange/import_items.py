"""Match features of other tools to clips, and read untrusted files in a worker process.

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
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import ObygazeError, StoreError
from obygaze_features.limits import keep_to, limits_of, without_network
from obygaze_features.text import normalised
from obygaze_features.workers import Event, Parent, WorkerPool

MAX_BYTES = 1 << 30
"""Most bytes of one clip's features; larger files are refused before they are read."""

MEGABYTE = 1 << 20
SECONDS_PER_MEGABYTE = 1
"""Seconds by which the limit for opening a file grows with its size."""

LIMIT_S = 600.0
"""Seconds for reading one clip, and for opening a file, plus one per megabyte; what takes longer never
ends."""

OVER_TIME = f"signal {getattr(signal, 'SIGXCPU', 0)}"
"""How a worker ends that took more processor time than it may."""

DAMAGED = "the file is damaged; get or write it again"

REFUSED = "refused"
"""Key of the worker's answer if the file was refused: the message."""

TOO_LITTLE_MEMORY = "memory"
"""Key of the worker's answer if memory was short."""

SYSTEM_ERROR = "system"
"""Key of the worker's answer to an error of the system: its number, text and file name."""

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class ImportItem:
    """One clip's features in another tool's files.

    Attributes
    ----------
    where
        Its name in messages.
    load
        Reads its arrays: name -> array. If there is one only, its name does not matter.
    status, reason
        Status of the clip, if known, and why it is not ok.
    without_pictures
        The stretches in which its file has no pictures, as the text of `store.records.parse_gaps`.
    """

    where: str
    load: Callable[[], Arrays]
    status: str = "ok"
    reason: str = ""
    without_pictures: str = ""


FileContent = tuple[Mapping[str, ImportItem], dict[str, str]]
"""Name -> features, and texts about the file itself."""


class TableOptions(NamedTuple):
    """Options for reading a table.

    Attributes
    ----------
    ids
        The column or array of ids, or a file of them; None for one of the usual names.
    columns
        Patterns of the features.
    no_features
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
    no_features: frozenset[str]
    of_frames: bool = False
    times: str | None = None
    at_a_rate: bool = False


def match_to_clips(
    items: Mapping[str, ImportItem], name_of_clip: Mapping[str, str], suffixes: Collection[str] = ()
) -> tuple[dict[str, ImportItem], tuple[str, ...]]:
    """Match the features found in files to the clips of a manifest, by name.

    Names are compared in one Unicode form (NFC), because macOS decomposes letters with accents.

    Parameters
    ----------
    items
        Path without suffix -> features.
    name_of_clip
        Clip id -> name. If no name has a '/', only the last part of the paths is compared.
    suffixes
        Suffixes, such as those of videos, that are removed from a path that matches no clip as it is.

    Returns
    -------
    dict
        Clip id -> its features.
    tuple
        The paths that match no clip.

    Raises
    ------
    StoreError
        If features have the name of two clips, or two files have the name of one.
    """
    clips_by_name: defaultdict[str, list[str]] = defaultdict(list)
    for clip, name in name_of_clip.items():
        clips_by_name[normalised("NFC", name)].append(clip)
    names_have_folders = any("/" in name for name in clips_by_name)

    features: dict[str, ImportItem] = {}
    unknown = []
    for path, item in items.items():
        posix_path = path.replace("\\", "/")  # ids may be paths of Windows
        last_part = posix_path.rpartition("/")[2]
        name = normalised("NFC", posix_path if names_have_folders else last_part)
        if name not in clips_by_name:
            name = _without_quotes_and_suffix(name, suffixes)
        if name not in clips_by_name:
            unknown.append(path)
            continue

        clip, *other_clips = clips_by_name[name]
        if other_clips:
            raise StoreError(
                f"clips {clip} and {other_clips[0]}: "
                f"both would be called {name!r}; tell them apart with --pattern"
            )
        if clip in features:
            raise StoreError(
                f"{item.where} and {features[clip].where}: both are called {name!r}, clip {clip}; "
                "tell them apart with a --pattern that has the folder, such as {movie}/{video}"
            )
        features[clip] = item
    return features, tuple(unknown)


def _without_quotes_and_suffix(name: str, suffixes: Collection[str]) -> str:
    """Remove a suffix that is one of `suffixes`, and the quotes that openSMILE puts around a name.

    A name with another suffix, or without one, is returned as it is, with its quotes.
    """
    stem, _, suffix = name.strip("'").rpartition(".")
    has_known_suffix = f".{suffix.lower()}" in suffixes
    return stem if has_known_suffix else name


def with_times(
    features: Mapping[str, ImportItem], times: Mapping[str, ImportItem], name: str
) -> dict[str, ImportItem]:
    """Add the times of frames, which are in separate files, to the features of the same clips.

    Parameters
    ----------
    features, times
        Clip id -> content of its file; a file of times holds one array.
    name
        Name that the array of times gets among the arrays of the clip: the value of `--times`.

    Raises
    ------
    StoreError
        If a clip has features and no times.
    """

    def load(item: ImportItem, times_item: ImportItem) -> Arrays:
        """Load the features of a clip, and its times from the other file."""
        arrays = times_item.load()
        if len(arrays) != 1:
            raise StoreError(f"{times_item.where}: expected one array of times; found {', '.join(arrays)}")
        (time_values,) = arrays.values()
        return {**item.load(), name: time_values}

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
    """A request to a worker.

    Parameters
    ----------
    session
        Number of the session: all requests of one `read_in_worker` about one file. The worker opens the file
        once a session; another session closes it.
    folder
        Working directory of the requesting process.
    reader, arguments
        Opens the file: `reader(*arguments)`.
    item_index
        Index of the item to load among the file's items; None for the list of all items.
    """

    session: int
    folder: Path
    reader: Reader
    arguments: tuple[object, ...]
    item_index: int | None = None


@contextmanager
def read_in_worker(library: str, reader: Reader, path: Path, *arguments: object) -> Iterator[FileContent]:
    """Open an untrusted file in a worker process: a damaged file can crash that process, and not this one.

    Yields what the reader yields: name -> item, and texts about the file. The `load` of an item requests the
    arrays of that clip from the worker.

    Parameters
    ----------
    library
        Name of the library that reads, in messages, e.g. HDF5.
    reader
        Context manager that opens the file in the worker: `reader(path, *arguments)`; importable by name.
    path
        The file.
    arguments
        Further arguments of the reader.

    Raises
    ------
    StoreError
        Raised by the reader; or the worker crashed, was killed, or exceeded `LIMIT_S`.
    """
    session = next(_unused_numbers)
    file = _FileInWorker(library, _Request(session, Path.cwd(), reader, (path, *arguments)))
    try:
        yield file.items(path), file.texts
    finally:
        file.close()


class _FileInWorker:
    """A file that the worker opens for this process.

    Parameters
    ----------
    library
        Name of the library that reads it, in messages.
    request
        The request that asks the worker for the list of the file's items.

    Attributes
    ----------
    texts
        Texts about the file, such as the name of its backbone or a note on what is left out, as the last
        answer of the worker has them; empty before the first answer.
    """

    def __init__(self, library: str, request: _Request) -> None:
        """Store the request for the list of items, and send nothing yet.

        The worker opens the file when it gets the first request (`items`).
        """
        self.texts: dict[str, str] = {}
        self._library = library
        self._request = request
        self._may_load = True  # until `close`

    def items(self, path: Path) -> dict[str, ImportItem]:
        """Request the list of the file's items: name -> item, whose arrays are requested by its `load`.

        The answer of the worker (`_describe_items`) also has texts about the file, which are kept in `texts`.

        The worker may have to read the whole file to list the items, so it gets more time for a large one.
        """
        n_megabytes = path.stat().st_size // MEGABYTE if path.is_file() else 0
        limit_s = LIMIT_S + n_megabytes * SECONDS_PER_MEGABYTE
        answer, _ = _send_request(self._request, library=self._library, location=str(path), limit_s=limit_s)
        self.texts.update(answer["texts"])

        items = {}
        for item_index, description in enumerate(answer["items"]):
            location = description["where"]
            items[description["name"]] = ImportItem(
                location,
                load=partial(self._load, item_index, location),
                status=description["status"],
                reason=description["reason"],
                without_pictures=description["without_pictures"],
            )
        return items

    def _load(self, item_index: int, location: str) -> Arrays:
        """Request the arrays of an item from the worker: name -> array.

        Its texts on the file replace those in `texts`.

        Raises
        ------
        StoreError
            The file is closed, or the worker refuses the item or ends.
        """
        if not self._may_load:
            raise StoreError(f"{location}: the file is closed")
        request_for_item = self._request._replace(item_index=item_index)
        answer, array_bytes = _send_request(
            request_for_item, library=self._library, location=location, limit_s=LIMIT_S
        )
        self.texts.update(answer["texts"])  # loading a clip may add to the note on what is left out
        arrays = {}
        for (name, dtype, shape), data in zip(answer["arrays"], array_bytes, strict=True):
            arrays[name] = np.frombuffer(data, dtype).reshape(shape)
        return arrays

    def close(self) -> None:
        """Make the worker close the file, and refuse to load items from now on."""
        self._may_load = False
        _close_file_of_worker()


@contextmanager
def _open_nothing(_path: None) -> Iterator[FileContent]:
    """Stand in for a reader where no file is to be opened: yield what a file without content would give.

    A worker that is asked to open "nothing" closes the file that it has open (`_close_file_of_worker`).
    """
    items: dict[str, ImportItem] = {}
    texts: dict[str, str] = {}
    yield items, texts


def _close_file_of_worker() -> None:
    """Make the worker close the file that it has open.

    There is no request for closing. But the worker keeps only one file open: it closes that file when a
    request of another session asks it to open another. So this sends a request of a new session, whose reader
    opens nothing. Nobody waits for the answer.
    """
    existing_folder = Path(os.sep)  # the current folder may be deleted before the worker changes to it
    request_to_open_nothing = _Request(
        session=next(_unused_numbers),
        folder=existing_folder,
        reader=_open_nothing,
        arguments=(None,),
    )
    key_of_unread_answer = None
    for pool in _pools:  # one pool, or none before the first request
        pool.put(key_of_unread_answer, request_to_open_nothing)


def _send_request(
    request: _Request, *, library: str, location: str, limit_s: float
) -> tuple[Any, list[bytes]]:
    """Send a request to the worker process, which is started if need be, and wait for its answer.

    Parameters
    ----------
    request
        The request.
    library, location
        What messages call the library and the file.
    limit_s
        Seconds that the worker may take.

    Returns
    -------
    Any
        The answer, from JSON.
    list of bytes
        The bytes of each array.

    Raises
    ------
    StoreError, OSError
        The reader raised it, or the worker ended without an answer.
    """
    if not _pools:
        _pools.append(WorkerPool(workers=1, work=_answer_request, max_bytes=MAX_BYTES))
    pool = _pools[0]
    request_number = next(_unused_numbers)
    try:
        pool.put(request_number, request, limit_s)
        received = _receive(pool, request_number)
    except BaseException:  # Ctrl-C, or a bug of the reader
        end_worker()
        raise

    # The worker ends every request by "done", unless it was late or has ended itself.
    if received.last.kind != "done":
        raise StoreError(f"{location}: {library} {_explain_end(received.last, limit_s)}")
    answer_as_json, *array_bytes = received.items
    answer = json.loads(answer_as_json)

    # Errors that the reader raised come as an answer, and are raised here.
    if REFUSED in answer:
        raise StoreError(answer[REFUSED])
    if TOO_LITTLE_MEMORY in answer:
        raise StoreError(f"{location}: {library} needs more memory to read it than this process may use")
    if SYSTEM_ERROR in answer:
        raise OSError(*answer[SYSTEM_ERROR])
    return answer, array_bytes


class _Received(NamedTuple):
    """What the worker sent for a request.

    Attributes
    ----------
    items
        The answer as JSON, then the bytes of each array.
    last
        The event after them: the worker is done, late, or dead.
    """

    items: list[bytes]
    last: Event


def _receive(pool: WorkerPool, request_number: int) -> _Received:
    """Wait until the worker has done a request, or has ended, and return what it sent.

    An event of the pool has the number of its request as its key. It is an "item" for each thing that the
    worker sends, and another kind at the end.
    """
    items: list[bytes] = []
    while True:
        event = pool.get(timeout_s=1.0)
        if event is None:  # nothing came within the timeout
            continue
        if event.key != request_number:  # of an earlier request
            continue
        if event.kind != "item":
            return _Received(items, event)
        items.append(event.value)


def _explain_end(event: Event, limit_s: float) -> str:
    """Return why a worker ended without an answer: over time, out of memory, or crashed by a damaged file.

    The value of the last event of the worker says how the process ended, such as "signal 9".
    """
    if event.kind == "late":
        return f"took more than {limit_s:.0f} s to read it: {DAMAGED}"
    if event.value == OVER_TIME:
        return f"took more processor time than its size allows: {DAMAGED}"
    may_lack_memory = event.value == "signal 9"  # by which Linux kills processes if memory is short
    reason = f"there is too little memory, or {DAMAGED}" if may_lack_memory else DAMAGED
    return f"crashed while reading it ({event.value}): {reason}"


_unused_numbers = count()
"""Numbers of sessions and requests."""
_pools: list[WorkerPool] = []
"""The pool of one worker, once there is one; it is kept for the next file."""


@atexit.register
def end_worker() -> None:
    """End the worker process that reads files, if there is one; the next file starts another."""
    while _pools:
        pool = _pools.pop()
        pool.close()


# --- in the worker
# ---------------------------------------------------------------------------
class _OpenFile:
    """The file that a worker process has open between requests, so that it is not opened for each clip.

    Attributes
    ----------
    items
        Name of each clip in the file, and what loads its features; empty before a file is open. A request
        names an item by its place in this list.
    texts
        Texts about the file, such as the name of its backbone.
    """

    def __init__(self) -> None:
        """Begin without an open file, as a worker does."""
        self._session: int | None = None  # the session whose file is open; None if no file is
        self._open_reader = ExitStack()  # closes the reader of the open file, and so the file
        self.items: list[tuple[str, ImportItem]] = []
        self.texts: dict[str, str] = {}

    def open(self, request: _Request) -> None:
        """Open the file of a request, and close the one that was open.

        Requests of one session are about one file, which stays open until another session begins.
        """
        is_open_already = self._session == request.session
        if is_open_already:
            return

        self._open_reader.close()
        self._session = None  # for the case that opening fails
        items, self.texts = self._open_reader.enter_context(request.reader(*request.arguments))
        self.items = list(items.items())
        self._session = request.session


_open_file = _OpenFile()


def _answer_request(request: _Request, parent: Parent) -> None:
    """Serve one request, in the worker: send the answer as JSON, then the bytes of each array.

    Without an item index a request asks for the list of items, else for the arrays of one item.
    """
    # The file is a stranger's: reading it gets no network, and little memory and processor time.
    _discard_output()
    without_network()
    os.chdir(request.folder)
    path = request.arguments[0]
    keep_to(limits_of(_largest_file_bytes(path)))

    arrays: dict[str, NDArray[Any]] = {}
    try:
        _open_file.open(request)
        if request.item_index is None:
            answer = _describe_items()
        else:
            answer, arrays = _load_item(request.item_index)
    except (ObygazeError, MemoryError, OSError) as error:
        answer = _answer_to_error(error)

    parent.send(json.dumps(answer).encode())
    for array in arrays.values():
        array_bytes = array.reshape(-1).view(np.uint8).data
        parent.send(array_bytes)


def _answer_to_error(error: ObygazeError | MemoryError | OSError) -> dict[str, Any]:
    """Return the answer that tells the requesting process of an error that a file can cause.

    Errors of h5py are raised again, to end the worker: after such an error its state is not known.
    """
    if isinstance(error, ObygazeError):
        return {REFUSED: str(error)}
    if isinstance(error, MemoryError):
        return {TOO_LITTLE_MEMORY: True}
    if error.errno is None:  # raised by h5py, not by the system
        raise error
    if error.errno == errno.ENOMEM:
        return {TOO_LITTLE_MEMORY: True}
    return {SYSTEM_ERROR: [error.errno, error.strerror, error.filename]}


def _describe_items() -> dict[str, Any]:
    """Return the answer that lists the items of the open file, and its texts."""
    descriptions = []
    for name, item in _open_file.items:
        descriptions.append(
            {
                "name": name,
                "where": item.where,
                "status": item.status,
                "reason": item.reason,
                "without_pictures": item.without_pictures,
            }
        )
    return {"items": descriptions, "texts": _open_file.texts}


def _load_item(item_index: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Load one item (a clip) of the open file of this worker process, by its index in the file.

    Returns what is sent to the main process: the answer to its request, a JSON object that describes the
    arrays; and then the arrays themselves.

    The answer also has texts on the file that have changed since they were sent with the list of items. That
    is only `left_out`: loading an item may add names of arrays that are not used.
    """
    _, item = _open_file.items[item_index]
    arrays = _load_numbers(item)  # may change `_open_file.texts["left_out"]`
    descriptions = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    changed_texts = {}
    if "left_out" in _open_file.texts:
        changed_texts["left_out"] = _open_file.texts["left_out"]
    answer = {"arrays": descriptions, "texts": changed_texts}
    return answer, arrays


def _load_numbers(item: ImportItem) -> dict[str, NDArray[Any]]:
    """Load the arrays of a clip, in C order: name -> array.

    Raises
    ------
    StoreError
        An array holds no numbers.
    """
    arrays = {name: np.asarray(values, order="C") for name, values in item.load().items()}
    for array in arrays.values():
        if array.dtype.kind not in "fiub":  # such as Python objects, which cannot be sent as bytes
            raise StoreError(f"{item.where}: holds {array.dtype}, expected numbers")
    return arrays


def _largest_file_bytes(path: object) -> int:
    """Return the bytes of a file, or of the largest file in a folder; 0 if the request is about no file."""
    if not isinstance(path, Path):
        return 0
    files = [path]
    if path.is_dir():
        files = [file for file in path.rglob("*") if file.is_file()]
    return max((file.stat().st_size for file in files if file.exists()), default=0)


@cache  # so that it is done once in a process
def _discard_output() -> None:
    """Discard what the worker prints: libraries that crash write messages of their own."""
    standard_output = 1
    standard_error = 2
    with Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), standard_output)
        os.dup2(nothing.fileno(), standard_error)
