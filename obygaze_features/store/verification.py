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
    DONE,
    FEATURES,
    FETCH,
    GROUP_STATUSES,
    PAYLOAD,
    RAGGED_ARRAYS,
    ROW_SIZE,
    STATUSES,
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


LONGER = "longer than the whole store"
"""Stands for the digest of a file that was not read to its end."""


class FileCheck(NamedTuple):
    """Size of a file in bytes, and its SHA-256; empty if it was not read."""

    size: int
    digest: str


BlockRows = tuple[Group, str, Sequence[int]]
"""A group, the name of one of its arrays, and the clips whose rows are checked together."""


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
    files = files_of(store)
    names = files.names()
    payload = [name for name in names if name.startswith(f"{PAYLOAD}/")]
    tags = [name for name in names if not name.startswith(f"{PAYLOAD}/") and name != FETCH]
    problems: list[Problem] = []
    try:
        read_attributes(files)
    except StoreError as error:
        problems.append(Problem(f"{FEATURES}/{ZARR_METADATA}", str(error)))
    absent: dict[str, str] = {}
    try:
        absent = absent_files(files)
    except StoreError as error:
        problems.append(Problem(FETCH, str(error)))
    tag_checks = _check_files(files, tags, digests=True)
    content_problems: list[Problem] = []
    clip_counts: dict[str, int] = {}
    with shown_progress(progress, "verify", "file") as show:
        checks = _check_files(files, payload, digests=depth != "quick", progress=show)
        if depth == "full":
            content_problems, clip_counts = check_content(files, names, absent, show)
    plain_files = [check for check in checks.values() if check is not None]
    n_bytes = sum(check.size for check in plain_files)
    counts = {"files": len(payload), "bytes": n_bytes}
    if absent:
        counts["not pulled"] = len(absent)
    counts |= clip_counts
    # A partial copy has fewer bytes and files than bag-info.txt states.
    oxum = "" if absent else f"{n_bytes}.{len(plain_files)}"
    problems += _check_tags(files, tag_checks, oxum)
    if depth != "quick":
        problems += _compare(files, DIGESTS, checks, absent)
    problems += content_problems
    digests_check = tag_checks.get(DIGESTS)
    fingerprint = "" if digests_check is None else digests_check.digest
    return VerifyReport(files.where, files.name, depth, tuple(sorted(set(problems))), counts, fingerprint)


def _check_files(
    files: StoreFiles,
    names: Sequence[str],
    *,
    digests: bool,
    progress: Progress = lambda _done, _n_files: None,
) -> dict[str, FileCheck | None]:
    """Measure several files concurrently: name -> size and digest, or None for what is no plain file.

    Files that a server does not have are left out. Reading a file stops at the size of the whole store,
    because a hostile server may never stop sending.

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
    most = largest_file_bytes(_read(files, BAG_INFO) or b"")
    check_file = partial(_check_file, files, digests=digests, most=most)
    with ThreadPoolExecutor(max(usable_cores(), files.readers)) as threads:  # none outlives the call
        checks: dict[str, FileCheck | None] = {}
        for n_done, check_of_file in enumerate(threads.map(check_file, names), start=1):
            checks |= check_of_file
            progress(n_done, len(names))
        return checks


def _check_file(files: StoreFiles, name: str, *, digests: bool, most: int) -> dict[str, FileCheck | None]:
    """Measure one file: its name -> size and digest, or None for what is no plain file; empty if it is gone.

    Parameters
    ----------
    files, name
        The files of the store, and the name of the file.
    digests
        Whether the file is read for its digest; else only its size is measured.
    most
        Bytes after which reading it stops.
    """
    try:
        if not files.is_plain(name):
            return {name: None}
        if digests:
            return {name: _digest(files, name, most)}
        return {name: FileCheck(files.size(name), "")}
    except FileNotFoundError:
        return {}


def _digest(files: StoreFiles, name: str, most: int) -> FileCheck:
    """Read a file for its size and digest, but not more than `most` bytes."""
    size = 0
    digest = hashlib.sha256()
    for block in files.stream(name):
        size += len(block)
        digest.update(block)
        if size > most:
            return FileCheck(size, LONGER)
    return FileCheck(size, digest.hexdigest())


def _read(files: StoreFiles, name: str) -> bytes | None:
    """Read a file; None if it is not there."""
    try:
        return files.read(name)
    except (FileNotFoundError, IsADirectoryError):
        return None


def _check_tags(files: StoreFiles, checks: Mapping[str, FileCheck | None], oxum: str) -> Iterator[Problem]:
    """Check the files beside `data/`: that none is missing or extra, and that each has its listed digest.

    The manifest that lists their digests has none itself.

    Parameters
    ----------
    files
        The files of the store.
    checks
        Sizes and digests of the files beside `data/`.
    oxum
        Bytes and number of the files below `data/`, as BagIt states them; empty if they are not to be
        compared.
    """
    for name in (*REQUIRED_TAGS, TAG_DIGESTS):
        if checks.get(name) is None:
            yield Problem(name, "missing")
    if checks.get(BAGIT) and files.read(BAGIT) != BAGIT_TEXT.encode():
        yield Problem(BAGIT, "is not the declaration of a BagIt 1.0 bag")
    if checks.get(TAG_DIGESTS):
        listed_tags = {name: check for name, check in checks.items() if name != TAG_DIGESTS}
        yield from _compare(files, TAG_DIGESTS, listed_tags, {})
    if checks.get(BAG_INFO) and oxum:
        declared = parse_info(files.read(BAG_INFO)).get("Payload-Oxum", "nothing")
        if oxum != declared:
            yield Problem(PAYLOAD, f"holds {oxum} (bytes.files), {BAG_INFO} says {declared}")


def _compare(
    files: StoreFiles, manifest: str, present: Mapping[str, FileCheck | None], absent: Mapping[str, str]
) -> Iterator[Problem]:
    """Compare the digests of files with a manifest; files that only the manifest names are not opened.

    Parameters
    ----------
    files
        The files of the store.
    manifest
        Name of the manifest.
    present
        Sizes and digests of the files that the manifest should list; None for what is no plain file.
    absent
        Files that a partial copy leaves out.
    """
    data = _read(files, manifest)
    if data is None:
        return
    declared, is_canonical = parse_digests(data)
    if not is_canonical:
        yield Problem(manifest, "is not written as the format demands: it was changed")
    digests = {}
    for name, check in present.items():
        if check is None:
            yield Problem(name, "is not a plain file")
        else:
            digests[name] = check.digest
    for name in digests.keys() - declared.keys():
        yield Problem(name, f"extra: {manifest} does not list it")
    for name in declared.keys() - digests.keys() - absent.keys():
        yield Problem(name, f"missing: {manifest} lists it")
    for name in absent.keys() - declared.keys():
        yield Problem(FETCH, f"leaves out {name}, which {manifest} does not list")
    for name in digests.keys() & declared.keys():
        if digests[name] != declared[name]:
            yield Problem(name, _describe_changed_file(name, digests[name], manifest))


def _describe_changed_file(name: str, digest: str, manifest: str) -> str:
    """Describe a file whose digest is wrong; of a chunk, which array it holds, and from which row on."""
    if digest == LONGER:
        return f"is longer than the whole store, by {BAG_INFO}; it was not read to its end"
    reason = f"changed: its SHA-256 is not the one in {manifest}"
    chunk = chunk_of(name)
    if chunk is None:
        return reason
    group, array, number = chunk
    ragged = array in RAGGED_ARRAYS and name == chunk_file(f"{group}/{array}", number, ragged=True)
    rows = "frames" if ragged else "rows"
    # All chunks before this one are full: only an array with a single chunk has fewer rows in it.
    first = number * kind_of(array, ragged=ragged).chunk
    return f"{reason}; it holds {rows} from {first} on of {group}/{array}"


# --- the content
# ---------------------------------------------------------------------------
def check_content(
    files: StoreFiles,
    names: Sequence[str],
    absent: Container[str] = (),
    progress: Progress = lambda _done, _n_blocks: None,
) -> tuple[list[Problem], dict[str, int]]:
    """Check attributes, metadata, table, ids, statuses and every row.

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
    nodes = [name for name in names if name.startswith(f"{FEATURES}/") and name.endswith(f"/{ZARR_METADATA}")]
    problems = _problems_of(f"{FEATURES}/{ZARR_METADATA}", partial(_check_attributes, store))
    problems += _problems_of(TABLE, partial(_check_table, store))
    blocks: list[BlockRows] = []
    for name in store.names:
        problems += _problems_of(f"{FEATURES}/{name}", partial(_check_group, store, name, nodes))
        blocks += _blocks(store, name, absent)
    check_block = partial(_problems_of_block, store)
    with ThreadPoolExecutor(max(usable_cores(), files.readers)) as threads:  # none outlives the call
        for n_done, problems_of_block in enumerate(threads.map(check_block, blocks), start=1):
            problems += problems_of_block
            progress(n_done, len(blocks))
    counts = {status: n_by_status[status] for status in STATUSES}
    for name, n_absent in absent_counts(store.clips).items():
        counts[f"absent in {name}"] = n_absent
    return problems, counts


def _problems_of_block(store: Store, block: BlockRows) -> list[Problem]:
    """Return the problems of the rows of one block."""
    group, array, rows = block
    return _problems_of(f"{FEATURES}/{group.name}/{array}", partial(_check_rows, store, group, array, rows))


def _check_attributes(store: Store) -> Iterator[Problem]:
    """Yield problems of the store's attributes, such as an invalid licence or a too low format version."""
    file = f"{FEATURES}/{ZARR_METADATA}"
    about = store.attributes
    if not fits(about["licence"], Licence):
        yield Problem(file, f"licence should be {expected(Licence)}; found {about['licence']!r}")
    validate_corpus(about["corpus"])
    checked_json(about, ATTRIBUTE)
    if not isinstance(about["citation"], str):
        yield Problem(file, f"citation should be text; found {about['citation']!r}")
    if about["parent"] is not None and not fits(about["parent"], Hex64):
        yield Problem(file, f"parent should be a fingerprint or null; found {about['parent']!r}")
    if not store.names:
        yield Problem(file, "has no group")
    arrays = ["clip"]
    if any(clip.text is not None for clip in store.clips):
        arrays.append("text")
    if any(store[name].ragged for name in store.names):
        arrays.append(ROW_SIZE)
    needed = spec_version(
        arrays,
        absent=any(clip.absent for clip in store.clips),
        without_pictures=any(clip.without_pictures_s for clip in store.clips),
    )
    if is_newer(needed, about["spec_version"]):
        yield Problem(file, f"spec_version is {about['spec_version']}, and what it holds needs {needed}")


def _check_table(store: Store) -> Iterator[Problem]:
    """Yield problems of the table of clips."""
    ids = [clip.clip_id for clip in store.clips]
    if ids != sorted(set(ids)):
        yield Problem(TABLE, "clip ids are not unique and sorted")
    for clip in store.clips:
        for description in _problems_in_line(clip, set(store.names)):
            yield Problem(TABLE, f"clip {clip.clip_id!r}: {description}")


def _problems_in_line(clip: StoredClip, groups: Set[str]) -> Iterator[str]:
    """Describe what is wrong in the line of a clip, given the names of all groups."""
    texts = {"id": clip.clip_id, "movie": clip.movie, "status": clip.status, "reason": clip.reason}
    for name, reason in clip.absent.items():
        texts[f"{ABSENT_PREFIX}{name}"] = reason
    texts["text"] = clip.text or ""
    for column, text in texts.items():
        why_unsuitable = unsuitable(text, lines=column == "text")
        if why_unsuitable:
            yield f"{column} {why_unsuitable}"
    if clip.status not in STATUSES:
        yield f"status {clip.status!r} is not one of {', '.join(STATUSES)}"
    if clip.status in ("partial", "failed") and not clip.reason:
        yield f"{clip.status} without a reason"
    is_absent_everywhere = clip.absent.keys() >= groups
    if clip.absent and (clip.status not in DONE or is_absent_everywhere):
        yield f"{clip.status}, and absent in {', '.join(clip.absent)}"
    unknown_groups = clip.absent.keys() - groups
    if unknown_groups:
        yield f"absent in {min(unknown_groups)}, which is no group"


def _check_group(store: Store, name: str, nodes: Sequence[str]) -> Iterator[Problem]:
    """Yield problems of a group's provenance and metadata, and of its ids, texts and statuses.

    Parameters
    ----------
    store
        The store.
    name
        Name of the group.
    nodes
        All files of metadata.
    """
    group = store[name]
    where = f"{FEATURES}/{group.name}"
    file = f"{where}/{ZARR_METADATA}"
    provenance = validate_provenance(group.provenance, sealed=True)
    if provenance["source"] != store.attributes["corpus"]:
        yield Problem(file, "provenance: 'source' is not the store's corpus")
    if provenance["storage"] != {array: group.dtype(array).name for array in sorted(group.arrays)}:
        yield Problem(file, "provenance: 'storage' is not the arrays' data types")
    is_of_texts = group.provenance["sampling"]["policy"] == TEXTS
    has_texts = group.text is not None
    if is_of_texts != has_texts:
        yield Problem(file, f"'sampling.policy' should be {TEXTS} where there is 'text', and only there")
    yield from _check_arrays(store.files, group, nodes)
    if group.clip_ids != tuple(clip.clip_id for clip in store.clips):
        yield Problem(f"{where}/clip", f"does not hold the ids of {TABLE}")
        return
    texts = group.text or [None] * len(group)
    for clip, text in zip(store.clips, texts, strict=True):
        if text != clip.text or text == "":
            yield Problem(f"{where}/text", f"clip {clip.clip_id}: {text!r}, but {clip.text!r} in {TABLE}")
    for clip, code in zip(store.clips, group.status.tolist(), strict=True):
        status = clip.within(group.name).status
        if code >= len(GROUP_STATUSES) or GROUP_STATUSES[code] != status:
            yield Problem(f"{where}/status", f"clip {clip.clip_id}: code {code}, but {status} in {TABLE}")


def _blocks(store: Store, name: str, absent: Container[str]) -> list[BlockRows]:
    """Divide the rows of a group into blocks that are checked one after the other.

    A block has the rows of one chunk or shard, or, in a ragged array, the clips whose frames begin in a run
    of chunks. Chunks that a partial copy leaves out (`absent`) are skipped. A group that cannot be read has
    no block; its problems are reported elsewhere.
    """
    try:
        group = store[name]
        if group.clip_ids != tuple(clip.clip_id for clip in store.clips):
            return []  # reported already
    except (*UNREADABLE, OSError):
        return []
    blocks: list[BlockRows] = []
    for array in (*group.arrays, *TIME_ARRAYS):
        if group.is_ragged(array):
            blocks += [(group, array, clips) for clips in _ragged_blocks(group, array, absent)]
            continue
        size = block_rows(array, len(group))
        for start in range(0, len(group), size):
            if chunk_file(f"{name}/{array}", start // size) not in absent:
                blocks.append((group, array, range(start, min(start + size, len(group)))))
    return blocks


CHUNKS_AT_ONCE = 16
"""Chunks of a ragged array whose clips are checked together: only the last of them is read twice."""


def _ragged_blocks(group: Group, array: str, absent: Container[str]) -> Iterator[list[int]]:
    """Yield lists of rows of clips whose frames begin in the same run of `CHUNKS_AT_ONCE` chunks.

    Clips with frames in a chunk that a partial copy leaves out (`absent`) are skipped.
    """
    n_frames = group.shape(array)[0]
    chunk_frames = block_rows(array, n_frames, ragged=True)
    n_chunks = math.ceil(n_frames / chunk_frames)
    absent_chunks = {
        number
        for number in range(n_chunks)
        if chunk_file(f"{group.name}/{array}", number, ragged=True) in absent
    }
    clips: list[int] = []
    current_run = 0
    start = 0
    for row, end in enumerate(group.frame_ends.tolist()):
        first_chunk = start // chunk_frames
        run = first_chunk // CHUNKS_AT_ONCE
        if run > current_run and clips:
            yield clips
            clips = []
        current_run = run
        chunks_of_clip = range(first_chunk, math.ceil(end / chunk_frames))
        if end == start or absent_chunks.isdisjoint(chunks_of_clip):
            clips.append(row)
        start = end
    if clips:
        yield clips


def _check_rows(store: Store, group: Group, array: str, rows: Sequence[int]) -> Iterator[Problem]:
    """Yield a problem for each clip whose values in an array contradict their digest or the clip's status."""
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
    """Yield the row number of each clip with its values: one row, or, in a ragged array, all its frames."""
    if group.is_ragged(array):
        yield from zip(rows, frames_of(group, array, rows, partial(group.raw, array)), strict=True)
        return
    for start, block in group.read_slices(array, range(rows[0], rows[-1] + 1)):
        yield from enumerate(block, start)


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
        Whether all values may be NaN although the clip has features.
    """
    if status not in DONE:
        is_fill = (values == -1).all() if values.dtype.kind == "i" else np.isnan(values).all()
        if is_fill and digest is None:
            return None
        return f"is {status}, yet something is stored for it"
    if digest is None:
        return f"has no digest in {TABLE}"
    if sha256_of(row_view(values)) != digest:
        return f"is not what {TABLE} has a digest of"
    if all_finite(values) or (may_be_unknown and np.isnan(values).all()):
        return None
    return "holds NaN or inf"


def _check_arrays(files: StoreFiles, group: Group, nodes: Sequence[str]) -> Iterator[Problem]:
    """Yield problems of a group's arrays: missing or extra ones, and metadata that the format forbids.

    Parameters
    ----------
    files
        The files of the store.
    group
        The group of the arrays.
    nodes
        All files of metadata of the store.
    """
    folder = f"{FEATURES}/{group.name}"
    present = set()
    for name in nodes:
        array, _, file = name.removeprefix(f"{folder}/").partition("/")
        if name.startswith(f"{folder}/") and file == ZARR_METADATA:
            present.add(array)
    n_frames = int(group.row_size.sum())
    expected_nodes = array_nodes(spec_of(group), len(group), texts=group.text is not None, n_frames=n_frames)
    if present != expected_nodes.keys():
        yield Problem(folder, f"arrays {', '.join(sorted(present))}; expected {', '.join(expected_nodes)}")
    for array in sorted(present & expected_nodes.keys()):
        file = f"{folder}/{array}/{ZARR_METADATA}"
        metadata = json.loads(files.read(file))
        differing = differing_fields(
            without_empty_fields(expected_nodes[array]), without_empty_fields(metadata)
        )
        fields = sorted({field.partition(".")[0] for field in differing})
        if fields:
            yield Problem(file, f"{', '.join(fields)}: not as the format demands")


def _problems_of(file: str, check: Callable[[], Iterator[Problem]]) -> list[Problem]:
    """Return the problems that a check yields; an error that stops the check is the last of them."""
    problems: list[Problem] = []
    try:
        problems.extend(check())
    except (*UNREADABLE, OSError) as error:
        problems.append(Problem(file, _reason(error)))
    return problems


def _reason(error: BaseException) -> str:
    """Describe an error by its message, or by its class if it has none.

    What is read while all of a store is checked is not advised to be checked.
    """
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error).partition(ADVICE)[0] or type(error).__name__
