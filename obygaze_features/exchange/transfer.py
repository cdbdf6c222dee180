"""Download stores: run a function over many names concurrently, choose files, resume."""

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.errors import StoreError
from obygaze_features.io import (
    PARTIAL_SUFFIX,
    file_sha256,
    files_below,
    naming,
    remove_tree,
    store_path,
    sync,
    sync_all,
    walk,
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
from obygaze_features.store.store import Place, files_of, open_files, read_attributes
from obygaze_features.store.store_files import (
    FolderFiles,
    StoreFiles,
    absent_files,
    chunk_of,
    digests_bytes,
    fetch_bytes,
    largest_file_bytes,
    read_digests,
    read_undamaged,
)
from obygaze_features.text import known_spelling
from obygaze_features.untrusted import read_bytes


def run_in_threads(work: Callable[[str], None], names: Iterable[str], threads: int) -> None:
    """Call `work` for every name in threads; the first error cancels those not begun, and is raised."""
    with ThreadPoolExecutor(threads) as pool:
        # An error leaves the loop, and `map` then cancels the names that are not begun.
        for _ in pool.map(work, names):
            pass


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file to write, which is renamed to `path` if the `with` block succeeds.

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
"""Large arrays, of which a copy may have the rows of some clips only; the others are always complete."""


class _Chunk(NamedTuple):
    """A file that is a chunk, or a shard, of an array: the group, the array, and the number of the chunk."""

    group: str
    array: str
    number: int


MAX_INFO = 1 << 20
"""Most bytes of bag-info.txt, which states the limit for the other files."""

MIN_THREADS = 4
"""Files that are fetched at a time at least."""


def wanted_files(
    names: Iterable[str],
    table: tuple[StoredClip, ...],
    arrays: Collection[str] | None,
    clips: Collection[str] | None,
    row_sizes: Mapping[str, NDArray[np.int64]] = MappingProxyType({}),
) -> set[str]:
    """Return the files that a partial copy has: all metadata, and the chunks of some arrays and clips.

    Parameters
    ----------
    names
        All files of the store.
    table
        All clips of the store, in the order of its rows.
    arrays
        Feature arrays that are wanted; None for all.
    clips
        Ids of the clips whose frames and tokens are wanted; clips in the same chunks are copied too. None for
        all.
    row_sizes
        Name of a ragged group -> number of frames of every clip; needed if `clips` is given.

    Raises
    ------
    StoreError
        If an array or a clip is not in the store.
    """
    names = list(names)
    row_of_clip = {clip.clip_id: row for row, clip in enumerate(table)}
    if clips is not None:
        clips = [known_spelling(clip, row_of_clip) for clip in clips]
    chunk_of_file = _find_chunks(names)
    arrays_of_store = {chunk.array for chunk in chunk_of_file.values()}
    _refuse_unknown(arrays or (), clips or (), arrays_of_store, row_of_clip.keys())
    rows = [row_of_clip[clip] for clip in clips or ()]
    chunks_of_clips = _chunks_of_clips(chunk_of_file.values(), rows, len(table), row_sizes)

    wanted = set()
    for name in names:
        chunk = chunk_of_file.get(name)
        if chunk is None:  # metadata
            wanted.add(name)
            continue

        # Arrays that are no features, such as times, are copied with any array of features.
        is_of_features = chunk.array in FEATURE_ARRAYS
        is_wanted_array = arrays is None or chunk.array in arrays
        if is_of_features and not is_wanted_array:
            continue
        # Only of large arrays, such as frames and tokens, are the chunks of some clips copied.
        is_cut_by_clips = clips is not None and chunk.array in CUT_BY_CLIPS
        if is_cut_by_clips and chunk not in chunks_of_clips:
            continue
        wanted.add(name)
    return wanted


def _chunks_of_clips(
    chunks: Iterable[_Chunk],
    rows: Sequence[int],
    n_clips: int,
    row_sizes: Mapping[str, NDArray[np.int64]],
) -> set[_Chunk]:
    """Return the chunks of large arrays, such as frames and tokens, that hold the rows of some clips.

    Arrays that are not in `CUT_BY_CLIPS` are copied whole, and have no part in this.

    `rows` are those of the clips, of `n_clips` in all; `row_sizes` is name of a ragged group -> number of
    frames of every clip.
    """
    arrays_to_cut = {(chunk.group, chunk.array) for chunk in chunks if chunk.array in CUT_BY_CLIPS}
    chunks_of_clips = set[_Chunk]()
    for group, array in arrays_to_cut:
        is_ragged = group in row_sizes and array in RAGGED_ARRAYS
        if is_ragged:
            numbers = _ragged_chunks(array, row_sizes[group], rows)
        else:
            rows_per_chunk = block_rows(array, n_clips)
            numbers = {row // rows_per_chunk for row in rows}
        chunks_of_clips.update(_Chunk(group, array, number) for number in numbers)
    return chunks_of_clips


def _refuse_unknown(
    arrays: Collection[str], clips: Collection[str], stored_arrays: Set[str], stored_clips: Set[str]
) -> None:
    """Raise a StoreError if the store lacks one of the wanted `arrays` of features or `clips`.

    `stored_arrays` are all arrays of the store, and `stored_clips` the ids of all its clips.
    """
    feature_arrays = [array for array in FEATURE_ARRAYS if array in stored_arrays]
    unknown_arrays = sorted(set(arrays) - set(feature_arrays))
    if unknown_arrays:
        raise StoreError(f"the store has no array {unknown_arrays[0]}, but {', '.join(feature_arrays)}")
    unknown_clips = sorted(set(clips) - stored_clips)
    if unknown_clips:
        raise StoreError(
            f"the store has no clip {unknown_clips[0]} ({len(unknown_clips)} of the clips asked for)"
        )


def _find_chunks(names: Iterable[str]) -> dict[str, _Chunk]:
    """Return name -> chunk, for those files of a store that are chunks or shards of an array."""
    chunks = {}
    for name in names:
        chunk = chunk_of(name)
        if chunk is not None:
            chunks[name] = _Chunk(*chunk)
    return chunks


def _ragged_chunks(array: str, sizes: NDArray[np.int64], rows: Iterable[int]) -> set[int]:
    """Return the numbers of the chunks of a ragged array that hold frames of some clips.

    `sizes` is the number of frames of every clip, [N]; the array has those of all clips one after another.
    """
    ends = np.cumsum(sizes)  # number of frames up to the end of each clip
    n_frames = int(ends[-1])
    frames_per_chunk = block_rows(array, n_frames, ragged=True)
    numbers = set[int]()
    for row in rows:
        end_frame = int(ends[row])
        first_frame = end_frame - int(sizes[row])
        first_chunk = first_frame // frames_per_chunk
        end_chunk = math.ceil(end_frame / frames_per_chunk)
        numbers.update(range(first_chunk, end_chunk))
    return numbers


FileProgress = Callable[[int, int, int], None]
"""Called with (files done, files in all, bytes received)."""


@dataclass(frozen=True)
class Downloaded:
    """Result of a transfer.

    Attributes
    ----------
    path
        Folder of the copy.
    files, octets
        Number of files that were fetched, and of their bytes.
    kept
        Number of files that were present already.
    left
        Number of files that were left out.
    """

    path: Path
    files: int
    octets: int
    kept: int
    left: int


@contextmanager
def file_progress_shown(progress: FileProgress | bool | None, verb: str) -> Iterator[FileProgress]:
    """Yield a function that reports the progress of a transfer.

    It is called with (files done, files in all, bytes received).

    Parameters
    ----------
    progress
        The function itself, or whether to show a bar; None shows one in a notebook.
    verb
        What the bar says.
    """
    if callable(progress):
        yield progress
        return
    with shown_progress(progress, verb, "file") as show:
        yield lambda n_done, n_total, n_bytes: show(n_done, n_total, f"{n_bytes / 1e6:.1f} MB")


def download(
    files: StoreFiles,
    destination: Path,
    *,
    arrays: Collection[str] | None = None,
    clips: Collection[str] | None = None,
    progress: FileProgress | None = None,
) -> Downloaded:
    """Copy a sealed store, or a part of it, into the folder `destination`.

    Called again after it was stopped, it resumes. If `destination` is a copy of the same store already, the
    requested files that the copy lacks, or that are damaged there, are fetched.

    Parameters
    ----------
    files
        The files of the store.
    destination
        Folder of the copy. A new copy is built in a folder beside it, which is locked meanwhile.
    arrays, clips
        What to copy (see `wanted_files`); None for all. A partial copy lists in fetch.txt what it lacks.
    progress
        Called while files are fetched.

    Raises
    ------
    StoreError
        If something else is at `destination`, the store of `files` is partial, damaged or cannot be reached.
    """
    digests = read_digests(files)
    read_attributes(files)  # a newer format is refused before anything is written
    if absent_files(files):
        raise StoreError(f"{files.where}: a partial copy itself ({FETCH}); copy the whole store")
    lies_inside_store = any((folder / FEATURES).is_dir() for folder in destination.absolute().parents)
    if lies_inside_store:
        raise StoreError(
            f"{destination}: lies inside a store, which never changes; choose a folder beside it"
        )

    building = destination.with_name(destination.name + PULLING_SUFFIX)
    with alone_in(building, "bringing this store"):
        try:
            _refuse_another_store(files, destination, digests[DIGESTS])
        except StoreError:
            # `alone_in` has made the folder. It stays if an earlier transfer left files in it.
            with suppress(OSError):
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
    with file_progress_shown(progress, "pull") as show:
        return download(files_of(store), store_path(destination), arrays=arrays, clips=clips, progress=show)


def _refuse_another_store(files: StoreFiles, destination: Path, digest_of_manifest: str) -> None:
    """Raise a StoreError if the folder of a copy holds anything but a copy of the same store.

    `digest_of_manifest` is the SHA-256 of the store's list of digests, which identifies its whole content.
    """
    if not destination.exists():
        return
    is_empty_folder = destination.is_dir() and not any(destination.iterdir())
    if is_empty_folder:
        return
    if not (destination / DIGESTS).is_file():
        raise StoreError(f"{destination}: exists and is no store; name the folder to make, as {files.name}")
    if file_sha256(destination / DIGESTS) != digest_of_manifest:
        raise StoreError(
            f"{destination}: another store is there, with another fingerprint; name another folder"
        )


class _Transfer:
    """A transfer of one store into a folder: a new copy, or a copy that is completed.

    It counts the files and bytes, and keeps the limit of a file's bytes.

    Parameters
    ----------
    files
        The files of the store.
    destination
        The folder of the copy.
    building
        Folder of partial files, and of a new copy until it is complete.
    digests
        SHA-256 of every file.
    progress
        Called with files done, files in all, and bytes received.
    """

    def __init__(
        self,
        files: StoreFiles,
        destination: Path,
        building: Path,
        digests: Mapping[str, str],
        progress: FileProgress | None,
    ) -> None:
        """Prepare the transfer; `run` fetches the files.

        A new copy is built in the folder `building`, which gets the name `destination` when it is complete. A
        copy that is at `destination` already is extended there.
        """
        # From where files are copied, to where
        self._files = files
        self._digests = digests  # of all files of the store, by name
        self._destination = destination
        self._building = building
        self._extends_copy = (destination / DIGESTS).is_file()  # a complete copy has its list of digests
        self._root = destination if self._extends_copy else building
        # The most bytes that a file may have. This is the limit of the first file, bag-info.txt, from which
        # `run` reads that of the others.
        self._max_bytes = MAX_INFO

        # What was copied; the lock is held while these counts change.
        self._progress = progress
        self._lock = Lock()
        self._n_wanted = len(digests)  # files to copy; all of them until `run` knows which
        self._files_in_copy = set[str]()  # names of the files that are in the copy now, and undamaged
        self._n_present = 0  # those among them that were in the copy before
        self._n_bytes = 0  # bytes received

    def run(self, arrays: Collection[str] | None, clips: Collection[str] | None) -> Downloaded:
        """Fetch all metadata, and the chunks of some arrays and clips (None for all); complete the copy.

        Files that the copy has already are checked and not fetched again.
        """
        wanted = self._fetch_metadata_and_find_wanted(arrays, clips)
        self._n_wanted = len(wanted)
        # Files of an earlier transfer stay in the copy, also if this one does not want them.
        present = set[str]()
        if self._extends_copy:
            present = {name for name in self._digests if (self._destination / name).is_file()}
        left_out = self._digests.keys() - wanted - present  # what the copy will lack

        # Two files were fetched above. A new copy gets its list of digests last, in `_finish`, because that
        # marks it as complete.
        to_fetch = sorted(wanted - {BAG_INFO, TABLE, DIGESTS})
        run_in_threads(self._fetch, to_fetch, max(MIN_THREADS, self._files.readers))
        self._finish(left_out)

        # `_fetch` has counted each file and its bytes.
        return Downloaded(
            path=self._destination,
            files=len(self._files_in_copy) - self._n_present,
            octets=self._n_bytes,
            kept=self._n_present,
            left=len(left_out),
        )

    def _fetch_metadata_and_find_wanted(
        self, arrays: Collection[str] | None, clips: Collection[str] | None
    ) -> set[str]:
        """Fetch the files that tell which files to copy, and return the names of these.

        They are all metadata, and the chunks of some arrays and clips (None for all). Fetched first are
        bag-info.txt, which limits the size of the others, and the table of clips, which tells in which rows
        of the arrays the wanted clips are.
        """
        self._fetch(BAG_INFO)
        self._max_bytes = largest_file_bytes(read_bytes(self._root / BAG_INFO, within=self._root))
        self._fetch(TABLE)
        table_bytes = read_bytes(self._root / TABLE, self._max_bytes, within=self._root)
        table = parse_clips_csv([table_bytes], f"{self._files.where}/{TABLE}")
        row_sizes: dict[str, NDArray[np.int64]] = {}
        if clips:
            # Where the frames of a clip are depends on how many the clips before it have.
            row_sizes = self._fetch_row_sizes()
        return wanted_files(self._digests, table, arrays, clips, row_sizes)

    def _fetch_row_sizes(self) -> dict[str, NDArray[np.int64]]:
        """Fetch the number of frames of every clip in each ragged group: name of the group -> int64 [N].

        A ragged group, in which clips have different numbers of frames, has an array of these numbers
        (`ROW_SIZE`). Its files are fetched into the copy, and the array is read there.
        """
        files = sorted(name for name in self._digests if name.startswith(f"{FEATURES}/"))
        chunks = _find_chunks(files).values()  # of which group and array each file is
        ragged_groups = {chunk.group for chunk in chunks if chunk.array == ROW_SIZE}
        sizes = {}
        for group in sorted(ragged_groups):
            folder = f"{FEATURES}/{group}/{ROW_SIZE}/"
            for name in files:
                if name.startswith(folder):
                    self._fetch(name)
            metadata = json.loads(read_bytes(self._root / folder / ZARR_METADATA, within=self._root))
            # Opening the array may fail on damaged metadata, which `read_undamaged` reports.
            open_array = partial(SealedArray, FolderFiles(self._root), group, ROW_SIZE, metadata)
            array = read_undamaged(f"{self._files.where}/{folder}", open_array)
            sizes[group] = array.read()
        return sizes

    def _finish(self, left_out: set[str]) -> None:
        """Complete the copy, flush it to the disk, write its fetch.txt, and give a new copy its name.

        `left_out` has the names of the files that the copy lacks. The machine may stop between any two steps,
        and their order keeps the copy valid: fetch.txt calls no file present before it is on the disk, and a
        new copy has another name until all of it is there.
        """
        if self._extends_copy:
            self._fetch(DIGESTS)  # only to check and count it, as the copy has it
        else:
            self._complete_new_copy(left_out)
        self._flush_folders()

        self._write_or_remove_list_of_absent_files(left_out)

        if self._extends_copy:
            remove_tree(self._building)  # it held files while they were received
        else:
            self._building.rename(self._destination)
        sync(self._destination.absolute().parent)  # the folder in which a name has changed

    def _flush_folders(self) -> None:
        """Flush the names of the copy's new files to the disk; their contents are there already."""
        sync_all([Path(folder) for folder, _, _ in walk(self._root)])

    def _write_or_remove_list_of_absent_files(self, left_out: set[str]) -> None:
        """Write fetch.txt, which lists the files that the copy lacks; remove it if it lacks none.

        A copy of some clips has the file. When it is completed, an earlier one is no longer true.
        """
        list_of_absent_files = self._root / FETCH
        if left_out:
            # A stranger may have made the copy: if the file is a link, the link is replaced, not its target.
            write_whole(list_of_absent_files, fetch_bytes(left_out, self._files.where), links=False)
        else:
            list_of_absent_files.unlink(missing_ok=True)
            sync(self._root)  # so that the removal is on the disk; `write_whole` sees to that itself

    def _complete_new_copy(self, left_out: set[str]) -> None:
        """Write the manifests of a new copy, remove files of earlier transfers, and check that it opens.

        All files are checked against the digests that were read first, so that a source that changes
        meanwhile cannot mix two stores in one copy.
        """
        self._fetch(DIGESTS)
        # The tag manifest has the digests of all files beside the payload.
        tag_files = [name for name in self._digests if not name.startswith(f"{PAYLOAD}/")]
        tag_digests = {name: self._digests[name] for name in tag_files}
        write_whole(self._root / TAG_DIGESTS, digests_bytes(tag_digests), links=False)
        self._remove_files_except({*(self._digests.keys() - left_out), TAG_DIGESTS})
        self._refuse_unreadable()

    def _refuse_unreadable(self) -> None:
        """Raise a StoreError if a group of the new copy cannot be opened, before the copy is renamed."""
        try:
            store = open_files(FolderFiles(self._building))
            for name in store:
                _group = store[name]  # opened, and so checked
        except StoreError as error:
            raise StoreError(f"{self._files.where}: is no store that can be read: {error}") from None

    def _remove_files_except(self, keep: set[str]) -> None:
        """Remove the files of an earlier, stopped transfer that this one does not want.

        `keep` has the names, relative to the store, of the files that stay.
        """
        for path in files_below(self._root):
            if path.relative_to(self._root).as_posix() not in keep:
                path.unlink()

    def _fetch(self, name: str) -> None:
        """Download a file of the store, unless an undamaged one is in the copy; count it and report progress.

        It may be called from several threads.
        """
        was_present = self._has_undamaged(name)
        if not was_present:
            self._download(name)
        self._count_file(name, was_present=was_present)

    def _has_undamaged(self, name: str) -> bool:
        """Return whether the copy has a file with the right digest, which is no link."""
        path = self._root / name
        is_own_file = path.is_file() and not path.is_symlink()
        return is_own_file and file_sha256(path) == self._digests[name]

    def _download(self, name: str) -> None:
        """Download a file of the store into the copy, and check its digest.

        The file is complete before it gets its name. Until then it is in the folder `_building`, also if an
        existing copy is extended, so that the copy never holds a partial file.
        """
        expected_digest = self._digests[name]
        path = self._root / name
        partial_file = self._building / f"{name}.{expected_digest}{PARTIAL_SUFFIX}"
        for folder in (partial_file.parent, path.parent):
            folder.mkdir(parents=True, exist_ok=True)
        with naming(partial_file):
            download_file(self._files, name, partial_file, expected_digest, self._count_bytes)
        sync(partial_file)
        partial_file.replace(path)

    def _count_file(self, name: str, *, was_present: bool) -> None:
        """Count a file that is in the copy now, once, and report the progress of the transfer.

        A few files come here twice: those fetched first, to find out which others are wanted. The lock keeps
        the counts right while several threads fetch files, and progress from going back.

        Parameters
        ----------
        name
            The file.
        was_present
            Whether the copy had it before this transfer.
        """
        with self._lock:
            if name in self._files_in_copy:
                return
            self._files_in_copy.add(name)
            if was_present:
                self._n_present += 1
            if self._progress:
                self._progress(len(self._files_in_copy), self._n_wanted, self._n_bytes)

    def _count_bytes(self, name: str, size: int, n_bytes: int) -> None:
        """Add the bytes received of a file to the total; refuse a file that is larger than its whole store.

        `size` is the bytes of the file so far, and `n_bytes` those received since the last call.

        Raises
        ------
        StoreError
            The file is too large.
        """
        with self._lock:
            self._n_bytes += n_bytes
        if size > self._max_bytes:
            raise StoreError(f"{self._files.where}/{name}: sends more than the whole store has")
