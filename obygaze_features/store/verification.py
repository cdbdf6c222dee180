"""Verify a sealed store at one of three depths: quick, digests, full."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.cores import usable_cores
from obygaze_features.errors import StoreError
from obygaze_features.io import sha256_of
from obygaze_features.schema import Hex64, Licence, expected, fits
from obygaze_features.screen import Progress, shown_progress
from obygaze_features.store.arrays import all_finite, lean, row_view
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
    spec_version,
)
from obygaze_features.store.group import Group, frames_of, spec_of
from obygaze_features.store.metadata import array_nodes
from obygaze_features.store.provenance import differences, plain, validate_corpus, validate_provenance
from obygaze_features.store.records import ABSENT_PREFIX, StoredClip, absent_counts
from obygaze_features.store.store import Place, Store, check_version, files_of, open_files
from obygaze_features.store.store_files import (
    REQUIRED_TAGS,
    UNREADABLE,
    StoreFiles,
    absent_files,
    chunk_of,
    most_bytes,
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
"""Replaces the digest of a file that was not read to its end."""

FileCheck = tuple[int, str]
"""Size of a file, and its digest if it was read."""


@checked
def verify(store: Place, depth: Depth = "digests", progress: Progress | bool | None = None) -> VerifyReport:
    """Check a sealed store: a folder, a zip, or at a URL.

    A partial copy is checked for what it says it has; how many files it leaves out is counted. At a URL
    nothing can be listed, so files too many are not seen.

    Parameters
    ----------
    store
        A store, or its path or URL.
    depth
        quick: sizes, counts, and the digests of the files beside `data/`; digests: the digest of every file,
        and no file missing or extra; full: the schema, ids, statuses, and every row against `data/clips.csv`
        too.
    progress
        Called with (files read, files in all), then with those whose rows are checked too. Or whether to
        show a bar: by default in a notebook alone.

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
    tags = [name for name in names if not name.startswith(f"{PAYLOAD}/") and name != FETCH]
    payload = [name for name in names if name.startswith(f"{PAYLOAD}/")]
    problems: list[Problem] = []
    absent: dict[str, str] = {}
    try:
        check_version(files)
    except StoreError as error:
        problems.append(Problem(f"{FEATURES}/{ZARR_METADATA}", str(error)))
    try:
        absent = absent_files(files)
    except StoreError as error:
        problems.append(Problem(FETCH, str(error)))
    tag_checks = _look(files, tags, digests=True)
    with shown_progress(progress, "verify", "file") as show:
        checks = _look(files, payload, digests=depth != "quick", progress=show)
        wrong, clips = check_content(files, names, absent, show) if depth == "full" else ([], {})
    n_bytes = sum(file[0] for file in checks.values() if file)
    counts = {"files": len(payload), "bytes": n_bytes}
    if absent:
        counts["not pulled"] = len(absent)
    oxum = f"{n_bytes}.{sum(file is not None for file in checks.values())}"
    problems += _check_tags(files, tag_checks, "" if absent else oxum)
    if depth != "quick":
        problems += _compare(files, DIGESTS, checks, absent)
    problems += wrong
    counts |= clips
    fingerprint = (tag_checks.get(DIGESTS) or (0, ""))[1]
    return VerifyReport(files.where, files.name, depth, tuple(sorted(set(problems))), counts, fingerprint)


def _look(
    files: StoreFiles,
    names: Sequence[str],
    *,
    digests: bool,
    progress: Progress = lambda _done, _n_files: None,
) -> dict[str, FileCheck | None]:
    """Measure files; None for what is not an ordinary file. Files missing on a server are left out.

    At most the size of the whole store is read of a file: a server may never stop sending.
    """
    most = most_bytes(_read(files, BAG_INFO) or b"")

    def look(name: str) -> tuple[str, FileCheck | None] | None:
        try:
            if not files.is_plain(name):
                return name, None
            return name, _digest(files, name, most) if digests else (files.size(name), "")
        except FileNotFoundError:
            return None

    with ThreadPoolExecutor(max(usable_cores(), files.readers)) as threads:  # none outlives the call
        checks = {}
        for n_done, result in enumerate(threads.map(look, names), 1):
            if result:
                checks[result[0]] = result[1]
            progress(n_done, len(names))
        return checks


def _digest(files: StoreFiles, name: str, most: int) -> FileCheck:
    size = 0
    digest = hashlib.sha256()
    for block in files.stream(name):
        size += len(block)
        digest.update(block)
        if size > most:
            return (size, LONGER)
    return (size, digest.hexdigest())


def _read(files: StoreFiles, name: str) -> bytes | None:
    try:
        return files.read(name)
    except (FileNotFoundError, IsADirectoryError):
        return None


def _check_tags(files: StoreFiles, checks: Mapping[str, FileCheck | None], oxum: str) -> Iterator[Problem]:
    """Check the files beside `data/`; the tag manifest has no digest, but it must match these files."""
    yield from (Problem(name, "missing") for name in (*REQUIRED_TAGS, TAG_DIGESTS) if not checks.get(name))
    if checks.get(BAGIT) and files.read(BAGIT) != BAGIT_TEXT.encode():
        yield Problem(BAGIT, "is not the declaration of a BagIt 1.0 bag")
    if checks.get(TAG_DIGESTS):
        tags = {name: file for name, file in checks.items() if name != TAG_DIGESTS}
        yield from _compare(files, TAG_DIGESTS, tags, {})
    if checks.get(BAG_INFO) and oxum:
        declared = parse_info(files.read(BAG_INFO)).get("Payload-Oxum", "nothing")
        if oxum != declared:
            yield Problem(PAYLOAD, f"holds {oxum} (bytes.files), {BAG_INFO} says {declared}")


def _compare(
    files: StoreFiles, manifest: str, present: Mapping[str, FileCheck | None], absent: Mapping[str, str]
) -> Iterator[Problem]:
    """Compare files with the digests of a manifest; names it lists are never opened, only those present."""
    data = _read(files, manifest)
    if data is None:
        return
    declared, canonical = parse_digests(data)
    if not canonical:
        yield Problem(manifest, "is not written as the format demands: it was changed")
    yield from (Problem(name, "is not a plain file") for name, file in present.items() if not file)
    digests = {name: file[1] for name, file in present.items() if file}
    for name in digests.keys() - declared.keys():
        yield Problem(name, f"extra: {manifest} does not list it")
    for name in declared.keys() - digests.keys() - absent.keys():
        yield Problem(name, f"missing: {manifest} lists it")
    for name in absent.keys() - declared.keys():
        yield Problem(FETCH, f"leaves out {name}, which {manifest} does not list")
    for name in digests.keys() & declared.keys():
        if digests[name] != declared[name]:
            yield Problem(name, _what_changed(name, digests[name], manifest))


def _what_changed(name: str, digest: str, manifest: str) -> str:
    """Describe a file whose digest is wrong; of a chunk, which array it holds, and from which row on."""
    if digest == LONGER:
        return f"is longer than the whole store, by {BAG_INFO}; it was not read to its end"
    reason = f"changed: its SHA-256 is not the one in {manifest}"
    if chunk := chunk_of(name):
        group, array, number = chunk
        ragged = array in RAGGED_ARRAYS and name == chunk_file(f"{group}/{array}", number, ragged=True)
        rows = "frames" if ragged else "rows"
        first = number * block_rows(array, 2**31, ragged=ragged)
        reason += f"; it holds {rows} from {first} on of {group}/{array}"
    return reason


# --- the content
# ---------------------------------------------------------------------------
def check_content(
    files: StoreFiles,
    names: Sequence[str],
    absent: Container[str] = (),
    progress: Progress = lambda _done, _n_blocks: None,
) -> tuple[list[Problem], dict[str, int]]:
    """Check attributes, metadata, table, ids, statuses, every row; return problems, and counts of clips.

    Clips are counted by status, and those that are absent in a group by group.

    Parameters
    ----------
    names
        All files of the store.
    absent
        The files that a partial copy leaves out; what would lie in them is not checked.
    progress
        Called with the number of chunks and shards whose rows were checked, and of all.
    """
    try:
        store = open_files(files)
        tallies = Counter(clip.status for clip in store.clips)
    except (*UNREADABLE, OSError) as error:
        return [Problem(FEATURES, _reason(error))], {}
    nodes = [name for name in names if name.startswith(f"{FEATURES}/") and name.endswith(f"/{ZARR_METADATA}")]
    problems = [
        *_tried(f"{FEATURES}/{ZARR_METADATA}", partial(_check_attributes, store)),
        *_tried(TABLE, partial(_check_table, store)),
    ]
    for name in store.names:
        problems += _tried(f"{FEATURES}/{name}", partial(_check_group, store, name, nodes))
    blocks = [block for name in store.names for block in _blocks(store, name, absent)]

    def look(block: tuple[Group, str, Sequence[int]]) -> list[Problem]:
        group, array, _ = block
        return _tried(f"{FEATURES}/{group.name}/{array}", partial(_check_rows, store, *block))

    with ThreadPoolExecutor(max(usable_cores(), files.readers)) as threads:  # none outlives the call
        for n_done, wrong in enumerate(threads.map(look, blocks), 1):
            problems += wrong
            progress(n_done, len(blocks))
    absent_in = {f"absent in {name}": count for name, count in absent_counts(store.clips).items()}
    return problems, {status: tallies[status] for status in STATUSES} | absent_in


def _check_attributes(store: Store) -> Iterator[Problem]:
    file = f"{FEATURES}/{ZARR_METADATA}"
    about = store.attributes
    if not fits(about["licence"], Licence):
        yield Problem(file, f"licence should be {expected(Licence)}; found {about['licence']!r}")
    validate_corpus(about["corpus"])
    plain(about, ATTRIBUTE)
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
    needed = spec_version(arrays, absent=any(clip.absent for clip in store.clips))
    if is_newer(needed, about["spec_version"]):
        yield Problem(file, f"spec_version is {about['spec_version']}, and what it holds needs {needed}")


def _check_table(store: Store) -> Iterator[Problem]:
    ids = [clip.clip_id for clip in store.clips]
    if ids != sorted(set(ids)):
        yield Problem(TABLE, "clip ids are not unique and sorted")
    for clip in store.clips:
        for problem in _wrong_in_table(clip, set(store.names)):
            yield Problem(TABLE, f"clip {clip.clip_id!r}: {problem}")


def _wrong_in_table(clip: StoredClip, groups: Set[str]) -> Iterator[str]:
    texts = {"id": clip.clip_id, "movie": clip.movie, "status": clip.status, "reason": clip.reason}
    texts |= {f"{ABSENT_PREFIX}{name}": reason for name, reason in clip.absent.items()}
    texts |= {"text": clip.text or ""}
    for column, text in texts.items():
        if wrong := unsuitable(text, lines=column == "text"):
            yield f"{column} {wrong}"
    if clip.status not in STATUSES:
        yield f"status {clip.status!r} is not one of {', '.join(STATUSES)}"
    if clip.status in ("partial", "failed") and not clip.reason:
        yield f"{clip.status} without a reason"
    if clip.absent and (clip.status not in DONE or clip.absent.keys() >= groups):
        yield f"{clip.status}, and absent in {', '.join(clip.absent)}"
    if unknown := clip.absent.keys() - groups:
        yield f"absent in {min(unknown)}, which is no group"


def _check_group(store: Store, name: str, nodes: Sequence[str]) -> Iterator[Problem]:
    group = store[name]
    where = f"{FEATURES}/{group.name}"
    file = f"{where}/{ZARR_METADATA}"
    provenance = validate_provenance(group.provenance, sealed=True)
    if provenance["source"] != store.attributes["corpus"]:
        yield Problem(file, "provenance: 'source' is not the store's corpus")
    if provenance["storage"] != {name: group.dtype(name).name for name in sorted(group.arrays)}:
        yield Problem(file, "provenance: 'storage' is not the arrays' data types")
    if (group.provenance["sampling"]["policy"] == TEXTS) != (group.text is not None):
        yield Problem(file, f"'sampling.policy' should be {TEXTS} where there is 'text', and only there")
    yield from _check_arrays(store.files, group, nodes)
    if group.clip_ids != tuple(clip.clip_id for clip in store.clips):
        yield Problem(f"{where}/clip", f"does not hold the ids of {TABLE}")
        return
    for clip, text in zip(store.clips, group.text or [None] * len(group), strict=True):
        if text != clip.text or text == "":
            yield Problem(f"{where}/text", f"clip {clip.clip_id}: {text!r}, but {clip.text!r} in {TABLE}")
    for clip, code in zip(store.clips, group.status.tolist(), strict=True):
        status = clip.within(group.name).status
        if code >= len(GROUP_STATUSES) or GROUP_STATUSES[code] != status:
            yield Problem(f"{where}/status", f"clip {clip.clip_id}: code {code}, but {status} in {TABLE}")


def _blocks(store: Store, name: str, absent: Container[str]) -> list[tuple[Group, str, Sequence[int]]]:
    """List the clips of each chunk and shard of a group that is there; none of a group that is unreadable.

    Of a ragged array these are the clips of several chunks, one or more of which are there.
    """
    try:
        group = store[name]
        if group.clip_ids != tuple(clip.clip_id for clip in store.clips):
            return []  # reported already
    except (*UNREADABLE, OSError):
        return []
    blocks: list[tuple[Group, str, Sequence[int]]] = []
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
"""Chunks of a ragged array whose clips are checked together: only the last one is read twice."""


def _ragged_blocks(group: Group, array: str, absent: Container[str]) -> Iterator[list[int]]:
    """Yield the clips whose frames begin in neighbouring chunks, but those with frames in an absent chunk."""
    n_stored = group.shape(array)[0]
    size = block_rows(array, n_stored, ragged=True)
    lacking = {
        number
        for number in range(-(-n_stored // size))
        if chunk_file(f"{group.name}/{array}", number, ragged=True) in absent
    }
    clips: list[int] = []
    run = 0
    first = 0
    for row, end in enumerate(group.frame_ends.tolist()):
        if first // size // CHUNKS_AT_ONCE > run and clips:
            yield clips
            clips = []
        run = first // size // CHUNKS_AT_ONCE
        if not lacking or end == first or lacking.isdisjoint(range(first // size, -(-end // size))):
            clips.append(row)
        first = end
    if clips:
        yield clips


def _check_rows(store: Store, group: Group, array: str, rows: Sequence[int]) -> Iterator[Problem]:
    """Compare the rows of a chunk, or all frames of some clips, with their digests and statuses."""
    imported = group.provenance.get("imported") is True  # times of frames may be unknown
    blocks: Iterator[tuple[int, Iterable[NDArray[Any]]]]
    if group.is_ragged(array):
        of_clips = frames_of(group, array, rows, partial(group.raw, array))
        blocks = ((row, [frames]) for row, frames in zip(rows, of_clips, strict=True))
    else:
        blocks = group.stored(array, range(rows[0], rows[-1] + 1))
    for start, block in blocks:
        for row, values in enumerate(block, start):
            clip = store.clips[row]
            digest = clip.digests.get(f"{group.name}/{array}")
            status = clip.within(group.name).status
            unknown = imported and array == "time_s"
            if problem := _wrong_row(status, digest, values, unknown=unknown):
                yield Problem(f"{FEATURES}/{group.name}/{array}", f"clip {clip.clip_id}: {problem}")


def _wrong_row(status: str, digest: str | None, values: NDArray[Any], *, unknown: bool) -> str | None:
    """Describe what is wrong with one clip's row of one array, if anything; `unknown`: it may be all NaN."""
    if status not in DONE:
        empty = (values == -1).all() if values.dtype.kind == "i" else np.isnan(values).all()
        return None if empty and digest is None else f"is {status}, yet something is stored for it"
    if digest is None:
        return f"has no digest in {TABLE}"
    if sha256_of(row_view(values)) != digest:
        return f"is not what {TABLE} has a digest of"
    if all_finite(values) or (unknown and np.isnan(values).all()):
        return None
    return "holds NaN or inf"


def _check_arrays(files: StoreFiles, group: Group, nodes: Sequence[str]) -> Iterator[Problem]:
    """Compare every array's metadata with those that sealing would write."""
    below = f"{FEATURES}/{group.name}/"
    inner = [name.removeprefix(below).split("/") for name in nodes if name.startswith(below)]
    present = {parts[0] for parts in inner if len(parts) == 2}
    n_frames = int(group.row_size.sum())
    expected = array_nodes(spec_of(group), len(group), texts=group.text is not None, n_frames=n_frames)
    if present != expected.keys():
        yield Problem(below[:-1], f"arrays {', '.join(sorted(present))}; expected {', '.join(expected)}")
    for name in sorted(present & expected.keys()):
        metadata = json.loads(files.read(f"{below}{name}/{ZARR_METADATA}"))
        wrong = differences(lean(expected[name]), lean(metadata))
        if fields := sorted({field.partition(".")[0] for field in wrong}):
            yield Problem(f"{below}{name}/{ZARR_METADATA}", f"{', '.join(fields)}: not as the format demands")


def _tried(file: str, check: Callable[[], Iterator[Problem]]) -> list[Problem]:
    """List the problems that a check finds; what stops it is the last one."""
    problems: list[Problem] = []
    try:
        problems.extend(check())
    except (*UNREADABLE, OSError) as error:
        problems.append(Problem(file, _reason(error)))
    return problems


def _reason(error: BaseException) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error) or type(error).__name__
