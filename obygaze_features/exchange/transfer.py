"""Download stores: run a function over many names concurrently, choose files, resume."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.door import read_bytes
from obygaze_features.errors import StoreError
from obygaze_features.io import (
    PARTIAL_SUFFIX,
    file_sha256,
    naming,
    remove_tree,
    store_path,
    sync,
    sync_all,
    whole_file,
    write_whole,
)
from obygaze_features.locks import alone_in
from obygaze_features.screen import shown_progress
from obygaze_features.store.arrays import SealedArray
from obygaze_features.store.format import (
    ARRAYS,
    BAG_INFO,
    DIGESTS,
    FEATURE_ARRAYS,
    FEATURES,
    FETCH,
    PAYLOAD,
    PULLING_SUFFIX,
    RAGGED_ARRAYS,
    ROW_CHUNK,
    ROW_SIZE,
    TABLE,
    TAG_DIGESTS,
    ZARR_METADATA,
    block_rows,
)
from obygaze_features.store.objects import download_file
from obygaze_features.store.records import StoredClip, parse_clips_csv
from obygaze_features.store.store import Place, check_version, files_of, open_files
from obygaze_features.store.store_files import (
    FolderFiles,
    StoreFiles,
    absent_files,
    chunk_of,
    digests_bytes,
    fetch_bytes,
    guarded,
    listed,
    most_bytes,
)


def in_threads(work: Callable[[str], None], names: Iterable[str], threads: int) -> None:
    """Call `work` for every name in threads; the first error cancels the names not begun."""
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, names):  # which cancels the others when it is left
            pass


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield the path of a file to write, which becomes `path` if the block succeeds.

    Raises
    ------
    StoreError
        If there is something at `path` already.
    """
    if path.exists():
        raise StoreError(f"{path}: is there already; remove it, or name another file")
    with whole_file(path, once=True) as partial:
        yield partial


CUT_BY_CLIPS = tuple(name for name, kind in ARRAYS.items() if kind.chunk < ROW_CHUNK)
"""Arrays of which `clips` selects parts; the others are small and always complete."""

MOST_INFO = 1 << 20
"""Most bytes of bag-info.txt, from which the limit of the others is known."""


def wanted_files(
    names: Iterable[str],
    table: tuple[StoredClip, ...],
    arrays: Collection[str] | None,
    clips: Collection[str] | None,
    row_sizes: Mapping[str, NDArray[np.int64]] = MappingProxyType({}),
) -> set[str]:
    """Choose the files with some arrays' rows of some clips, and all metadata.

    Parameters
    ----------
    names
        All files of the store.
    arrays
        Feature arrays to have; None for all.
    clips
        Ids of the clips whose frames and tokens to have, with those that share a chunk; None for all.
    row_sizes
        Name of a ragged group -> number of frames of every clip; needed where `clips` is given.

    Raises
    ------
    StoreError
        If an array or a clip is not in the store.
    """
    names = list(names)
    rows = {clip.clip_id: row for row, clip in enumerate(table)}
    chunks = _chunks_of(names)
    stored = {array for _, array, _ in chunks.values()}
    arrays_there = [array for array in FEATURE_ARRAYS if array in stored]
    if unknown := sorted(set(arrays or ()) - set(arrays_there)):
        raise StoreError(f"the store has no array {unknown[0]}, but {', '.join(arrays_there)}")
    if unknown := sorted(set(clips or ()) - rows.keys()):
        raise StoreError(f"the store has no clip {unknown[0]} ({len(unknown)} of the clips asked for)")

    chosen = [rows[clip] for clip in clips or ()]
    numbers: dict[str, set[int]] = {}
    for array in CUT_BY_CLIPS:
        block = block_rows(array, len(table))
        numbers[array] = {row // block for row in chosen}
    ragged = {
        (group, array): _ragged_chunks(array, sizes, chosen)
        for group, sizes in row_sizes.items()
        for array in RAGGED_ARRAYS
    }

    def is_wanted(name: str) -> bool:
        if name not in chunks:
            return True
        group, array, number = chunks[name]
        if arrays is not None and array in FEATURE_ARRAYS and array not in arrays:
            return False
        if clips is None or array not in CUT_BY_CLIPS:
            return True
        if group in row_sizes and array in RAGGED_ARRAYS:
            return number in ragged[group, array]
        return number in numbers[array]

    return {name for name in names if is_wanted(name)}


def _chunks_of(names: Iterable[str]) -> dict[str, tuple[str, str, int]]:
    """Return which group, array and number of chunk each file is that holds one."""
    chunks = {}
    for name in names:
        chunk = chunk_of(name)
        if chunk is not None:
            chunks[name] = chunk
    return chunks


def _ragged_chunks(array: str, sizes: NDArray[np.int64], rows: Iterable[int]) -> set[int]:
    """Return the numbers of the chunks with frames of some clips."""
    ends = np.cumsum(sizes)
    block = block_rows(array, int(ends[-1]), ragged=True)
    numbers = set[int]()
    for row in rows:
        first = int(ends[row] - sizes[row])
        numbers.update(range(first // block, -(-int(ends[row]) // block)))
    return numbers


FileProgress = Callable[[int, int, int], None]
"""Called with (files done, files in all, bytes received)."""


@dataclass(frozen=True)
class Downloaded:
    """Result of a transfer: files fetched, their bytes, files already present, files left out."""

    path: Path
    files: int
    octets: int
    kept: int
    left: int


@contextmanager
def files_shown(progress: FileProgress | bool | None, verb: str) -> Iterator[FileProgress]:
    """Yield what is called with files and bytes, given a parameter `progress`."""
    if callable(progress):
        yield progress
        return
    with shown_progress(progress, verb, "file") as show:
        yield lambda n_done, total, octets: show(n_done, total, f"{octets / 1e6:.1f} MB")


def download(
    files: StoreFiles,
    destination: Path,
    *,
    arrays: Collection[str] | None = None,
    clips: Collection[str] | None = None,
    progress: FileProgress | None = None,
) -> Downloaded:
    """Copy a sealed store into the folder `destination`.

    Called again after a kill, it resumes where it stopped. Called on a copy of the same store it fetches what
    is missing or damaged, so a partial copy grows.

    Parameters
    ----------
    arrays, clips
        What a partial copy has (see `wanted_files`); None for all. It says in fetch.txt what it lacks.

    Raises
    ------
    StoreError
        If something else is at `destination`, the store there is partial or damaged, or it cannot be reached.
    """
    digests = listed(files)
    check_version(files)  # a newer format is refused before anything is written
    if absent_files(files):
        raise StoreError(f"{files.where}: a partial copy itself ({FETCH}); copy the whole store")
    if any((folder / FEATURES).is_dir() for folder in destination.absolute().parents):
        raise StoreError(
            f"{destination}: lies inside a store, which never changes; choose a folder beside it"
        )
    building = destination.with_name(destination.name + PULLING_SUFFIX)
    with alone_in(building, "bringing this store"):
        try:
            _refuse_another(files, destination, digests[DIGESTS])
        except StoreError:
            with suppress(OSError):  # not empty: an earlier transfer left files
                building.rmdir()
            raise
        return _Transfer(files, destination, building, digests, progress).run(arrays, clips)


@checked
def pull(
    store: Place,
    destination: Path | str,
    *,
    arrays: Collection[str] | None = None,
    clips: Collection[str] | None = None,
    progress: FileProgress | bool | None = None,
) -> Downloaded:
    """Copy a sealed store, or a part of it, from a URL, a zip or another folder into a folder.

    Parameters
    ----------
    store
        A store, or its path or URL: https://, s3://, or hf://datasets/OWNER/NAME[@REVISION].
    destination
        The folder to make, such as `stores/films-1.0.0`; a copy that is there is completed.
    arrays, clips, progress
        As `download` takes them; `progress` may also be whether to show a bar, by default
        in a notebook alone.

    Raises
    ------
    StoreError
        If something else is at `destination`, the store is partial or damaged, or cannot be reached.

    Examples
    --------
    >>> from obygaze_features import pull
    >>> copied = pull("stores/films", "copies/films-1.0.0", arrays=["pooled"])
    >>> copied.path.name
    'films-1.0.0'
    """
    with files_shown(progress, "pull") as show:
        return download(files_of(store), store_path(destination), arrays=arrays, clips=clips, progress=show)


def _refuse_another(files: StoreFiles, destination: Path, manifest: str) -> None:
    if not destination.exists() or (destination.is_dir() and not any(destination.iterdir())):
        return
    if not (destination / DIGESTS).is_file():
        raise StoreError(f"{destination}: exists and is no store; name the folder to make, as {files.name}")
    if file_sha256(destination / DIGESTS) != manifest:
        raise StoreError(
            f"{destination}: another store is there, with another fingerprint; name another folder"
        )


class _Transfer:
    def __init__(
        self,
        files: StoreFiles,
        destination: Path,
        building: Path,
        digests: Mapping[str, str],
        progress: FileProgress | None,
    ) -> None:
        self._files = files
        self._destination = destination
        self._building = building
        self._digests = digests
        self._growing = (destination / DIGESTS).is_file()
        self._root = destination if self._growing else building
        self._progress = progress
        self._lock = Lock()
        self._limit = MOST_INFO
        self._total = len(digests)
        self._done = 0
        self._octets = 0
        self._kept = 0

    def run(self, arrays: Collection[str] | None, clips: Collection[str] | None) -> Downloaded:
        self._fetch(BAG_INFO)
        self._limit = most_bytes(read_bytes(self._root / BAG_INFO, within=self._root))
        self._fetch(TABLE)
        listing = read_bytes(self._root / TABLE, self._limit, within=self._root)
        table = parse_clips_csv([listing], f"{self._files.where}/{TABLE}")
        names = wanted_files(self._digests, table, arrays, clips, self._row_sizes() if clips else {})
        present = {name for name in self._digests if self._growing and (self._destination / name).is_file()}
        self._total = len(names)
        waiting = sorted(names - {BAG_INFO, TABLE, DIGESTS})
        in_threads(self._fetch, waiting, max(4, self._files.readers))
        left_out = self._digests.keys() - names - present
        self._finish(left_out)
        return Downloaded(self._destination, self._done - self._kept, self._octets, self._kept, len(left_out))

    def _row_sizes(self) -> dict[str, NDArray[np.int64]]:
        """Fetch and read the number of frames of every clip, by ragged group."""
        files = sorted(name for name in self._digests if name.startswith(f"{FEATURES}/"))
        groups = {group for group, array, _ in _chunks_of(files).values() if array == ROW_SIZE}
        sizes = {}
        for group in sorted(groups):
            folder = f"{FEATURES}/{group}/{ROW_SIZE}/"
            for name in files:
                if name.startswith(folder):
                    self._fetch(name)
            metadata = json.loads(read_bytes(self._root / folder / ZARR_METADATA, within=self._root))
            open_array = partial(SealedArray, FolderFiles(self._root), group, ROW_SIZE, metadata)
            sizes[group] = guarded(f"{self._files.where}/{folder}", open_array).read()
        return sizes

    def _finish(self, left_out: set[str]) -> None:
        root = self._root
        if not self._growing:
            self._fetch(DIGESTS)
            # As it was listed: a source that changes meanwhile cannot mix two stores in one copy.
            tags = (name for name in self._digests if not name.startswith(f"{PAYLOAD}/"))
            write_whole(
                root / TAG_DIGESTS, digests_bytes({name: self._digests[name] for name in tags}), links=False
            )
            self._sweep({*(self._digests.keys() - left_out), TAG_DIGESTS})
            self._refuse_unreadable()
        sync_all({root, *(path.parent for path in root.rglob("*"))})
        if left_out:
            write_whole(root / FETCH, fetch_bytes(left_out, self._files.where), links=False)
        else:
            (root / FETCH).unlink(missing_ok=True)
            sync(root)
        if self._growing:
            remove_tree(self._building)
        else:
            root.rename(self._destination)
        sync(self._destination.absolute().parent)

    def _refuse_unreadable(self) -> None:
        """Refuse a store whose groups cannot be opened, before it is renamed."""
        try:
            store = open_files(FolderFiles(self._building))
            for name in store:
                store[name]
        except StoreError as error:
            raise StoreError(f"{self._files.where}: is no store that can be read: {error}") from None

    def _sweep(self, keep: set[str]) -> None:
        """Remove files of an earlier transfer that are not wanted now."""
        for path in list(self._root.rglob("*")):
            if not path.is_dir() and path.relative_to(self._root).as_posix() not in keep:
                path.unlink()

    def _fetch(self, name: str) -> None:
        """Fetch and check a file, unless it is present already."""
        expected = self._digests[name]
        path = self._root / name
        is_present = path.is_file() and not path.is_symlink() and file_sha256(path) == expected
        if not is_present:
            partial = self._building / f"{name}.{expected}{PARTIAL_SUFFIX}"
            for folder in (partial.parent, path.parent):
                folder.mkdir(parents=True, exist_ok=True)
            with naming(partial):
                download_file(self._files, name, partial, expected, self._count)
            sync(partial)
            partial.replace(path)
        with self._lock:  # called from several threads; progress never goes back
            self._kept += is_present
            self._done += 1
            if self._progress:
                self._progress(self._done, self._total, self._octets)

    def _count(self, name: str, size: int, n_bytes: int) -> None:
        """Count received bytes; refuse a file that is larger than its whole store."""
        with self._lock:
            self._octets += n_bytes
        if size > self._limit:
            raise StoreError(f"{self._files.where}/{name}: sends more than the whole store has")
