"""Verify a sealed store at one of three depths: quick, digests, full."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.cores import usable_cores
from obygaze_features.errors import StoreError
from obygaze_features.io import sha256_of
from obygaze_features.schema import Hex64, Licence, expected, fits
from obygaze_features.screen import Progress, shown_progress
from obygaze_features.store.arrays import all_finite, row_view, without_empty_fields
from obygaze_features.store.format import (
    ATTRIBUTE,
    BAG_INFO,
    BAGIT,
    BAGIT_TEXT,
    DIGESTS,
    FEATURES,
    FETCH,
    GROUP_STATUSES,
    PAYLOAD,
    RAGGED_ARRAYS,
    ROW_SIZE,
    STATUSES,
    STATUSES_WITH_FEATURES,
    TABLE,
    TAG_DIGESTS,
    TEXTS,
    TIME_ARRAYS,
    ZARR_METADATA,
    block_rows,
    chunk_file,
    is_newer,
    kind_of,
    spec_version,
)
from obygaze_features.store.group import Group, frames_of, spec_of
from obygaze_features.store.metadata import array_nodes
from obygaze_features.store.provenance import (
    checked_json,
    differing_fields,
    validate_corpus,
    validate_provenance,
)
from obygaze_features.store.records import ABSENT_PREFIX, StoredClip, absent_counts
from obygaze_features.store.store import Place, Store, files_of, open_files, read_attributes
from obygaze_features.store.store_files import (
    ADVICE,
    REQUIRED_TAGS,
    UNREADABLE,
    StoreFiles,
    absent_files,
    chunk_of,
    largest_file_bytes,
    parse_digests,
    parse_info,
)
from obygaze_features.text import unsuitable

Depth = Literal["quick", "digests", "full"]


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One problem: the file, relative to the store, and a description."""

    file: str
    what: str


@dataclass(frozen=True)
class VerifyReport:
    """Result of a verification.

    Attributes
    ----------
    where, name
        The store's path or URL, and its name with its version.
    problems
        Everything that is wrong, sorted by file.
    counts
        Files and bytes of the payload; after a full verification, clips by status, and those absent in a
        group; in a partial copy, the files that it leaves out ("not pulled").
    fingerprint
        SHA-256 of the list of digests as it is now.
    """

    where: str
    name: str
    depth: Depth
    problems: tuple[Problem, ...]
    counts: Mapping[str, int]
    fingerprint: str

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def record(self) -> dict[str, object]:
        """Return the report as plain JSON."""
        return {
            "store": self.name,
            "depth": self.depth,
            "ok": self.ok,
            "problems": [asdict(problem) for problem in self.problems],
            "counts": dict(self.counts),
            "fingerprint": self.fingerprint,
        }


TOO_LONG = "longer than the whole store"
"""Stands for the digest of a file that was not read to its end, as it is longer than the whole store."""


class FileCheck(NamedTuple):
    """Size of a file in bytes, and its SHA-256; empty if it was not read."""

    size: int
    digest: str


class ArrayBlock(NamedTuple):
    """A part of an array that is checked at once: its group, its name, and the rows of the clips."""

    group: Group
    array: str
    rows: Sequence[int]


@checked
def verify(store: Place, depth: Depth = "digests", progress: Progress | bool | None = None) -> VerifyReport:
    """Check a sealed store: a folder, a zip, or at a URL.

    Of a partial copy, the files that it has are checked, and those that it leaves out are counted. Files at a
    URL cannot be listed, so extra files there are not found.

    Parameters
    ----------
    store
        A store, or its path or URL.
    depth
        "quick" checks sizes, counts, and the digests of the files beside `data/`. "digests" checks the digest
        of every file, and that none is missing or extra. "full" also checks the schema, ids, statuses, and
        every row against `data/clips.csv`.
    progress
        Called with (files read, files in all), and with "full" then with (chunks and shards whose rows were
        checked, all of them). Or whether to show a bar: by default only in a notebook.

    Raises
    ------
    StoreError
        If there is no sealed store at this place, or its server cannot be reached.

    Examples
    --------
    >>> from obygaze_features import verify
    >>> verify("stores/films", depth="full").ok
    True
    """
    # A store is a BagIt. In the words of this format, the payload is what is below `data/`, and the tag files
    # are those beside it, such as the list of the payload's digests. A partial copy lists in fetch.txt
    # (`FETCH`) what it leaves out.
    files = files_of(store)
    names = files.names()
    payload = [name for name in names if name.startswith(f"{PAYLOAD}/")]
    tags = [name for name in names if not name.startswith(f"{PAYLOAD}/") and name != FETCH]

    problems = _check_format_version(files)
    absent: dict[str, str] = {}  # files that a partial copy leaves out
    try:
        absent = absent_files(files)
    except StoreError as error:
        problems.append(Problem(FETCH, str(error)))

    # First the tag files, always by their digests; then the payload, as deeply as wanted.
    checks_of_tags = _check_files(files, tags, digests=True)
    problems += _check_tags(files, checks_of_tags)

    reads_files = depth != "quick"
    with shown_progress(progress, "verify", "file") as show:
        checks = _check_files(files, payload, digests=reads_files, progress=show)
        clip_counts: dict[str, int] = {}
        if depth == "full":
            content_problems, clip_counts = check_content(files, names, absent, show)
            problems += content_problems
    if reads_files:  # their digests must be those of the list
        problems += _compare(files, DIGESTS, checks, absent)

    sizes = [check.size for check in checks.values() if check is not None]  # None: a link or a folder
    if not absent:  # a partial copy has fewer files than bag-info.txt states
        problems += _check_payload_size(files, checks_of_tags, n_bytes=sum(sizes), n_files=len(sizes))

    # What the report counts, and the store's fingerprint, which is the digest of its list of digests
    counts = {"files": len(payload), "bytes": sum(sizes)}
    if absent:
        counts["not pulled"] = len(absent)
    counts |= clip_counts
    check_of_digests = checks_of_tags.get(DIGESTS)
    fingerprint = "" if check_of_digests is None else check_of_digests.digest
    unique_problems = tuple(sorted(set(problems)))
    return VerifyReport(files.where, files.name, depth, unique_problems, counts, fingerprint)


def _check_format_version(files: StoreFiles) -> list[Problem]:
    """Return a problem if the store's attributes are damaged, or of a newer format; else an empty list."""
    try:
        read_attributes(files)
    except StoreError as error:
        return [Problem(f"{FEATURES}/{ZARR_METADATA}", str(error))]
    return []


def _check_files(
    files: StoreFiles,
    names: Sequence[str],
    *,
    digests: bool,
    progress: Progress = lambda _done, _n_files: None,
) -> dict[str, FileCheck | None]:
    """Measure several files concurrently: name -> size and digest, or None for a link or a folder.

    Files that are not there are left out. Reading a file stops at the size of the whole store, because a
    hostile server may never stop sending.

    Parameters
    ----------
    files
        The files of the store.
    names
        Which of them.
    digests
        Whether files are read for their digests; else only their sizes are measured.
    progress
        Called with the number of files measured, and of all.
    """
    info = _read(files, BAG_INFO) or b""
    max_bytes = largest_file_bytes(info)

    def check_file(name: str) -> dict[str, FileCheck | None]:
        """Return the entry of a file in the result; an empty dictionary if there is no such file."""
        try:
            return {name: _check_file(files, name, digests=digests, max_bytes=max_bytes)}
        except FileNotFoundError:
            return {}

    checks: dict[str, FileCheck | None] = {}
    with ThreadPoolExecutor(max(usable_cores(), files.readers)) as threads:
        for n_done, entry in enumerate(threads.map(check_file, names), start=1):
            checks.update(entry)
            progress(n_done, len(names))
    return checks


def _check_file(files: StoreFiles, name: str, *, digests: bool, max_bytes: int) -> FileCheck | None:
    """Measure the size of one file and, with `digests`, its digest; None for a link or a folder.

    Raises
    ------
    FileNotFoundError
        It is not there.
    """
    if not files.is_plain(name):
        return None
    if digests:
        return _digest(files, name, max_bytes)
    return FileCheck(files.size(name), "")


def _digest(files: StoreFiles, name: str, max_bytes: int) -> FileCheck:
    """Read a file for its size and digest, in blocks.

    Reading stops after `max_bytes` bytes, because a hostile server may never stop sending; then `TOO_LONG`
    stands for the digest.
    """
    size = 0
    digest = hashlib.sha256()
    for block in files.stream(name):
        size += len(block)
        digest.update(block)
        if size > max_bytes:
            return FileCheck(size, TOO_LONG)
    return FileCheck(size, digest.hexdigest())


def _read(files: StoreFiles, name: str) -> bytes | None:
    """Read a file; None if it is not there."""
    try:
        return files.read(name)
    except (FileNotFoundError, IsADirectoryError):
        return None


def _check_tags(files: StoreFiles, checks: Mapping[str, FileCheck | None]) -> Iterator[Problem]:
    """Yield problems of the files beside `data/`: missing or extra ones, and those with another digest.

    The manifest that lists their digests has none itself.
    """
    for name in (*REQUIRED_TAGS, TAG_DIGESTS):
        if checks.get(name) is None:
            yield Problem(name, "missing")
    if checks.get(BAGIT) and files.read(BAGIT) != BAGIT_TEXT.encode():
        yield Problem(BAGIT, "is not the declaration of a BagIt 1.0 bag")
    if checks.get(TAG_DIGESTS):
        listed_tags = {name: check for name, check in checks.items() if name != TAG_DIGESTS}
        yield from _compare(files, TAG_DIGESTS, listed_tags, absent={})


def _check_payload_size(
    files: StoreFiles, checks_of_tags: Mapping[str, FileCheck | None], *, n_bytes: int, n_files: int
) -> Iterator[Problem]:
    """Yield a problem if bytes or number of files below `data/` are not those that bag-info.txt states."""
    if not checks_of_tags.get(BAG_INFO):  # missing, which `_check_tags` reports
        return
    present_size = f"{n_bytes}.{n_files}"  # as BagIt writes them
    stated_size = parse_info(files.read(BAG_INFO)).get("Payload-Oxum", "nothing")
    if present_size != stated_size:
        yield Problem(PAYLOAD, f"holds {present_size} (bytes.files), {BAG_INFO} says {stated_size}")


def _compare(
    files: StoreFiles, manifest: str, checks: Mapping[str, FileCheck | None], absent: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield problems of files that a manifest of digests should list: missing, extra and changed ones.

    Files that only the manifest names are not opened.

    Parameters
    ----------
    files
        The files of the store.
    manifest
        Name of the manifest.
    checks
        Sizes and digests of the files that the manifest should list; None for a link or a folder.
    absent
        Files that a partial copy leaves out.
    """
    data = _read(files, manifest)
    if data is None:
        return
    listed_digests, is_canonical = parse_digests(data)
    if not is_canonical:
        yield Problem(manifest, "is not written as the format demands: it was changed")

    digests = {}  # of the files that are there
    for name, check in checks.items():
        if check is None:
            yield Problem(name, "is not a plain file")
        else:
            digests[name] = check.digest

    for name in digests.keys() - listed_digests.keys():
        yield Problem(name, f"extra: {manifest} does not list it")
    for name in listed_digests.keys() - digests.keys() - absent.keys():
        yield Problem(name, f"missing: {manifest} lists it")
    for name in absent.keys() - listed_digests.keys():
        yield Problem(FETCH, f"leaves out {name}, which {manifest} does not list")
    for name in digests.keys() & listed_digests.keys():
        if digests[name] != listed_digests[name]:
            yield Problem(name, _describe_changed_file(name, digests[name], manifest))


def _describe_changed_file(name: str, digest: str, manifest: str) -> str:
    """Describe a file whose digest is wrong; of a chunk, which array it holds, and from which row on.

    Parameters
    ----------
    name
        The file.
    digest
        Its SHA-256 now; `TOO_LONG` if it was not read to its end.
    manifest
        The manifest that lists another digest.
    """
    if digest == TOO_LONG:
        return f"is longer than the whole store, by {BAG_INFO}; it was not read to its end"

    reason = f"changed: its SHA-256 is not the one in {manifest}"
    chunk = chunk_of(name)
    if chunk is None:
        return reason

    group, array, number = chunk
    # An array that is ragged in this store has other names of chunks.
    is_ragged = False
    if array in RAGGED_ARRAYS:
        is_ragged = name == chunk_file(f"{group}/{array}", number, ragged=True)
    rows = "frames" if is_ragged else "rows"
    rows_per_chunk = kind_of(array, ragged=is_ragged).chunk
    first_row = number * rows_per_chunk
    return f"{reason}; it holds {rows} from {first_row} on of {group}/{array}"


# --- the content
# ---------------------------------------------------------------------------
def check_content(
    files: StoreFiles,
    names: Sequence[str],
    absent: Container[str] = (),
    progress: Progress = lambda _done, _n_blocks: None,
) -> tuple[list[Problem], dict[str, int]]:
    """Check the content of a store: its attributes, metadata, table of clips, ids, statuses and every row.

    Parameters
    ----------
    files
        The files of the store.
    names
        Names of all of them.
    absent
        The files that a partial copy leaves out; the rows in them are not checked.
    progress
        Called with the number of chunks and shards whose rows were checked, and of all.

    Returns
    -------
    list of Problem
        Everything that is wrong.
    dict
        Number of clips by status, and, for each group in which some are absent, the number of these.
    """
    try:
        store = open_files(files)
        n_by_status = Counter(clip.status for clip in store.clips)
    except (*UNREADABLE, OSError) as error:
        return [Problem(FEATURES, _reason(error))], {}

    # What is of the whole store.
    problems = _problems_of(f"{FEATURES}/{ZARR_METADATA}", partial(_check_attributes, store))
    problems += _problems_of(TABLE, partial(_check_table, store))

    # Each group, without the rows of its arrays.
    features_names = [name for name in names if name.startswith(f"{FEATURES}/")]
    metadata_files = [name for name in features_names if name.endswith(f"/{ZARR_METADATA}")]
    blocks: list[ArrayBlock] = []  # of all arrays
    for name in store.names:
        problems += _problems_of(f"{FEATURES}/{name}", partial(_check_group, store, name, metadata_files))
        blocks += _blocks(store, name, absent)

    # The rows of all arrays, several blocks of them at a time.
    n_threads = max(usable_cores(), files.readers)
    problems += _check_blocks(store, blocks, n_threads, progress)

    counts = {status: n_by_status[status] for status in STATUSES}
    for name, n_absent in absent_counts(store.clips).items():
        counts[f"absent in {name}"] = n_absent
    return problems, counts


def _check_blocks(
    store: Store, blocks: Sequence[ArrayBlock], n_threads: int, progress: Progress
) -> list[Problem]:
    """Check the rows of blocks of arrays, several of which are read at a time; return their problems."""

    def check_block(block: ArrayBlock) -> list[Problem]:
        """Return the problems of the rows of one block."""
        file = f"{FEATURES}/{block.group.name}/{block.array}"
        return _problems_of(file, partial(_check_rows, store, block))

    problems: list[Problem] = []
    with ThreadPoolExecutor(n_threads) as threads:
        for n_done, problems_of_block in enumerate(threads.map(check_block, blocks), start=1):
            problems += problems_of_block
            progress(n_done, len(blocks))
    return problems


def _check_attributes(store: Store) -> Iterator[Problem]:
    """Yield problems of the store's attributes, such as an invalid licence or a too low format version.

    A corpus or a value that the format forbids is raised as a StoreError.
    """
    file = f"{FEATURES}/{ZARR_METADATA}"
    attributes = store.attributes
    if not fits(attributes["licence"], Licence):
        yield Problem(file, f"licence should be {expected(Licence)}; found {attributes['licence']!r}")
    validate_corpus(attributes["corpus"])
    checked_json(attributes, ATTRIBUTE)
    if not isinstance(attributes["citation"], str):
        yield Problem(file, f"citation should be text; found {attributes['citation']!r}")
    if attributes["parent"] is not None and not fits(attributes["parent"], Hex64):
        yield Problem(file, f"parent should be a fingerprint or null; found {attributes['parent']!r}")
    if not store.names:
        yield Problem(file, "has no group")

    # The version of the format must be one that has all that is in the store.
    arrays = ["clip"]
    if any(clip.text is not None for clip in store.clips):
        arrays.append("text")
    if any(store[name].ragged for name in store.names):
        arrays.append(ROW_SIZE)
    needed_version = spec_version(
        arrays,
        absent=any(clip.absent for clip in store.clips),
        without_pictures=any(clip.without_pictures_s for clip in store.clips),
    )
    stated_version = attributes["spec_version"]
    if is_newer(needed_version, stated_version):
        yield Problem(file, f"spec_version is {stated_version}, and what it holds needs {needed_version}")


def _check_table(store: Store) -> Iterator[Problem]:
    """Yield problems of the table of clips: the order of the ids, and what is wrong in its lines."""
    ids = [clip.clip_id for clip in store.clips]
    if ids != sorted(set(ids)):
        yield Problem(TABLE, "clip ids are not unique and sorted")
    for clip in store.clips:
        for description in _problems_in_line(clip, set(store.names)):
            yield Problem(TABLE, f"clip {clip.clip_id!r}: {description}")


def _problems_in_line(clip: StoredClip, groups: Set[str]) -> Iterator[str]:
    """Describe what is wrong in the line of a clip in the table of clips."""
    text_of_column = {
        "id": clip.clip_id,
        "movie": clip.movie,
        "status": clip.status,
        "reason": clip.reason,
        **{f"{ABSENT_PREFIX}{name}": reason for name, reason in clip.absent.items()},
        "text": clip.text or "",
    }
    for column, text in text_of_column.items():
        why_unsuitable = unsuitable(text, line_breaks=column == "text")  # only texts may have several lines
        if why_unsuitable:
            yield f"{column} {why_unsuitable}"

    if clip.status not in STATUSES:
        yield f"status {clip.status!r} is not one of {', '.join(STATUSES)}"
    if clip.status in ("partial", "failed") and not clip.reason:
        yield f"{clip.status} without a reason"

    # A clip may lack the features of some groups, and not of all: then it would have failed.
    is_in_a_group = bool(groups - clip.absent.keys())
    has_features = clip.status in STATUSES_WITH_FEATURES and is_in_a_group
    if clip.absent and not has_features:
        yield f"{clip.status}, and absent in {', '.join(clip.absent)}"
    unknown_groups = clip.absent.keys() - groups
    if unknown_groups:
        yield f"absent in {min(unknown_groups)}, which is no group"


def _check_group(store: Store, name: str, metadata_files: Sequence[str]) -> Iterator[Problem]:
    """Yield problems of a group's provenance and metadata, and of its ids, texts and statuses."""
    group = store[name]
    yield from _check_provenance(store, group)
    yield from _check_arrays(store.files, group, metadata_files)
    if group.clip_ids != tuple(clip.clip_id for clip in store.clips):
        # Without the same clips, texts and statuses cannot be compared.
        yield Problem(f"{FEATURES}/{group.name}/clip", f"does not hold the ids of {TABLE}")
    else:
        yield from _check_texts(store, group)
        yield from _check_statuses(store, group)


def _check_provenance(store: Store, group: Group) -> Iterator[Problem]:
    """Yield problems of a group's provenance: what contradicts the store's corpus, or the group's arrays.

    If it is not as the format demands, a StoreError is raised.
    """
    file = f"{FEATURES}/{group.name}/{ZARR_METADATA}"
    provenance = validate_provenance(group.provenance, sealed=True)
    # Sealing adds the fields `source`, the corpus, and `storage`, the data type of each array.
    if provenance["source"] != store.attributes["corpus"]:
        yield Problem(file, "provenance: 'source' is not the store's corpus")
    dtype_of_array = {array: group.dtype(array).name for array in group.arrays}
    if provenance["storage"] != dtype_of_array:
        yield Problem(file, "provenance: 'storage' is not the arrays' data types")

    is_of_texts = group.provenance["sampling"]["policy"] == TEXTS
    has_texts = group.text is not None
    if is_of_texts != has_texts:
        yield Problem(file, f"'sampling.policy' should be {TEXTS} where there is 'text', and only there")


def _check_texts(store: Store, group: Group) -> Iterator[Problem]:
    """Yield a problem for each row whose text is empty or not that of the table, which has the same rows."""
    texts: Sequence[str | None] = group.text or [None] * len(group)  # a store of clips has no texts
    for clip, text in zip(store.clips, texts, strict=True):
        if text == "" or text != clip.text:
            description = f"clip {clip.clip_id}: {text!r}, but {clip.text!r} in {TABLE}"
            yield Problem(f"{FEATURES}/{group.name}/text", description)


def _check_statuses(store: Store, group: Group) -> Iterator[Problem]:
    """Yield a problem for each row whose status is not that of the table, which has the same rows."""
    for clip, code in zip(store.clips, group.status.tolist(), strict=True):
        status = clip.within(group.name).status  # as the table says
        is_known = code < len(GROUP_STATUSES)  # the code is the position of a status in this list
        if not is_known or GROUP_STATUSES[code] != status:
            description = f"clip {clip.clip_id}: code {code}, but {status} in {TABLE}"
            yield Problem(f"{FEATURES}/{group.name}/status", description)


def _blocks(store: Store, name: str, absent: Container[str]) -> list[ArrayBlock]:
    """Divide the arrays of a group into blocks of rows, each of which is read and checked at once.

    A block of most arrays has the rows in one file: a chunk or shard. A block of a ragged array, which has
    one row for each frame of a clip, has the clips whose frames begin in the same few files.

    Parameters
    ----------
    store, name
        The store, and the name of the group in it. One that cannot be checked by rows has no block.
    absent
        Names of the files (chunks) that a partial copy leaves out. Rows in these are in no block.
    """
    group = _group_with_rows_of_table(store, name)
    if group is None:
        return []

    blocks: list[ArrayBlock] = []
    for array in (*group.arrays, *TIME_ARRAYS):  # features, and the times of their frames
        if group.is_ragged(array):
            rows_of_blocks = _rows_by_run_of_chunks(group, array, absent)
        else:
            rows_of_blocks = _rows_by_chunk(group, array, absent)
        blocks += [ArrayBlock(group, array, rows) for rows in rows_of_blocks]
    return blocks


def _group_with_rows_of_table(store: Store, name: str) -> Group | None:
    """Return a group, or None if it cannot be read, or has other clips than the table of clips.

    `_check_group` reports these two problems.
    """
    try:
        group = store[name]
        has_clips_of_table = group.clip_ids == tuple(clip.clip_id for clip in store.clips)
    except (*UNREADABLE, OSError):
        return None
    return group if has_clips_of_table else None


def _rows_by_chunk(group: Group, array: str, absent: Container[str]) -> Iterator[Sequence[int]]:
    """Yield the rows of each chunk or shard of an array, but for those that a partial copy leaves out."""
    n_rows = len(group)
    rows_per_chunk = block_rows(array, n_rows)
    for number, start in enumerate(range(0, n_rows, rows_per_chunk)):
        is_in_copy = chunk_file(f"{group.name}/{array}", number) not in absent
        if is_in_copy:
            yield range(start, min(start + rows_per_chunk, n_rows))


CHUNKS_AT_ONCE = 16
"""Chunks of a ragged array whose clips are checked together: only the last of them is read twice."""


def _rows_by_run_of_chunks(group: Group, array: str, absent: Container[str]) -> Iterator[Sequence[int]]:
    """Yield the rows of the clips whose frames begin in the same run of `CHUNKS_AT_ONCE` chunks.

    In a ragged array the frames of all clips follow each other, and each chunk has a fixed number of them. A
    run is some neighbouring chunks that are read together, so that each chunk is read about once.

    Parameters
    ----------
    group
        A ragged group.
    array
        Name of a ragged array.
    absent
        The files that a partial copy leaves out. Clips with frames in one of them are skipped.
    """
    n_frames = group.shape(array)[0]  # of all clips together
    frames_per_chunk = block_rows(array, n_frames, ragged=True)
    n_chunks = math.ceil(n_frames / frames_per_chunk)
    absent_chunks = set()
    for chunk in range(n_chunks):
        if chunk_file(f"{group.name}/{array}", chunk, ragged=True) in absent:
            absent_chunks.add(chunk)

    # Of a clip: its frames, counted over all clips -> the chunks with these frames -> the run with the first.
    rows_of_run: dict[int, list[int]] = {}  # number of a run -> rows of the clips that begin in it
    start_frame = 0
    for row, end_frame in enumerate(group.frame_ends.tolist()):
        chunks_of_clip = _chunks_of_frames(start_frame, end_frame, frames_per_chunk)
        has_all_chunks = absent_chunks.isdisjoint(chunks_of_clip)
        if has_all_chunks:
            first_chunk = start_frame // frames_per_chunk
            run = first_chunk // CHUNKS_AT_ONCE
            rows_of_run.setdefault(run, []).append(row)
        start_frame = end_frame
    yield from rows_of_run.values()


def _chunks_of_frames(start: int, end: int, frames_per_chunk: int) -> range:
    """Return the numbers of the chunks that have the frames from `start` up to `end`; empty if none."""
    if end <= start:
        return range(0)
    first_chunk = start // frames_per_chunk
    last_frame = end - 1
    last_chunk = last_frame // frames_per_chunk
    return range(first_chunk, last_chunk + 1)


def _check_rows(store: Store, block: ArrayBlock) -> Iterator[Problem]:
    """Yield a problem for each clip whose values in an array contradict their digest or the clip's status.

    Parameters
    ----------
    store
        The store, whose table of clips has the digests.
    block
        The part of an array to check: the group, the array's name, and rows of clips.
    """
    group, array, rows = block
    # Of imported features, the times of frames may be unknown (NaN).
    is_imported = group.provenance.get("imported") is True
    may_be_unknown = is_imported and array == "time_s"
    for row, values in _clip_rows(group, array, rows):
        clip = store.clips[row]
        digest = clip.digests.get(f"{group.name}/{array}")
        status = clip.within(group.name).status
        description = _problem_in_row(status, digest, values, may_be_unknown=may_be_unknown)
        if description:
            yield Problem(f"{FEATURES}/{group.name}/{array}", f"clip {clip.clip_id}: {description}")


def _clip_rows(group: Group, array: str, rows: Sequence[int]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield the row number of each clip with its values: one row, or, in a ragged array, all its frames.

    The values are read as they are stored, whatever the clip's status.

    Parameters
    ----------
    group, array
        The group, and the name of the array in it.
    rows
        Rows of the clips; they are consecutive, except in a ragged array.
    """
    if group.is_ragged(array):
        frames_of_clips = frames_of(group, array, rows, partial(group.raw, array))
        yield from zip(rows, frames_of_clips, strict=True)
    else:
        consecutive_rows = range(rows[0], rows[-1] + 1)
        for start, values in group.read_slices(array, consecutive_rows):
            yield from enumerate(values, start)


def _problem_in_row(
    status: str, digest: str | None, values: NDArray[Any], *, may_be_unknown: bool
) -> str | None:
    """Describe what is wrong with one clip's row of one array; None if nothing is.

    Parameters
    ----------
    status
        Status of the clip in the group.
    digest
        SHA-256 of the row in the table, if there is one.
    values
        The row.
    may_be_unknown
        Whether all values may be NaN although the clip has features: times of imported features.
    """
    no_problem = None
    has_features = status in STATUSES_WITH_FEATURES
    if not has_features:
        is_empty = digest is None and _is_fill(values)
        return no_problem if is_empty else f"is {status}, yet something is stored for it"
    if digest is None:
        return f"has no digest in {TABLE}"
    if sha256_of(row_view(values)) != digest:
        return f"is not what {TABLE} has a digest of"
    is_unknown = may_be_unknown and np.isnan(values).all()
    if not all_finite(values) and not is_unknown:
        return "holds NaN or inf"
    return no_problem


def _is_fill(values: NDArray[Any]) -> bool:
    """Return whether a row has only fill values, as a row without features has: -1 for integers, else NaN."""
    if values.dtype.kind == "i":
        return bool((values == -1).all())
    return bool(np.isnan(values).all())


def _check_arrays(files: StoreFiles, group: Group, metadata_files: Sequence[str]) -> Iterator[Problem]:
    """Yield problems of a group's arrays: missing or extra ones, and metadata that the format forbids."""
    folder = f"{FEATURES}/{group.name}"
    present = set()  # names of the arrays that have metadata: `FOLDER/ARRAY/zarr.json`
    for name in metadata_files:
        is_in_group = name.startswith(f"{folder}/")
        if not is_in_group:
            continue
        array, _, file = name.removeprefix(f"{folder}/").partition("/")
        if file == ZARR_METADATA:
            present.add(array)

    # The metadata that sealing would write for such a group.
    n_frames = int(group.row_size.sum())
    expected_metadata = array_nodes(
        spec_of(group), len(group), texts=group.text is not None, n_frames=n_frames
    )
    if present != expected_metadata.keys():
        yield Problem(folder, f"arrays {', '.join(sorted(present))}; expected {', '.join(expected_metadata)}")

    for array in sorted(present & expected_metadata.keys()):
        file = f"{folder}/{array}/{ZARR_METADATA}"
        metadata = json.loads(files.read(file))
        differing = differing_fields(
            without_empty_fields(expected_metadata[array]), without_empty_fields(metadata)
        )
        top_level_fields = {field.partition(".")[0] for field in differing}
        if top_level_fields:
            yield Problem(file, f"{', '.join(sorted(top_level_fields))}: not as the format demands")


def _problems_of(file: str, check: Callable[[], Iterator[Problem]]) -> list[Problem]:
    """Return the problems that a check yields; an error that stops the check becomes the last of them."""
    problems: list[Problem] = []
    try:
        problems.extend(check())
    except (*UNREADABLE, OSError) as error:
        problems.append(Problem(file, _reason(error)))
    return problems


def _reason(error: BaseException) -> str:
    """Describe an error by its message, or by its class if it has none.

    The advice to verify the store is left out of the message, because this is the verification.
    """
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error).partition(ADVICE)[0] or type(error).__name__
