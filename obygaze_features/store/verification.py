"""Verify a sealed store at one of three depths: quick, digests, full."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from obygaze_features.cores import usable_cores
from obygaze_features.errors import StoreError
from obygaze_features.store.format import (
    BAG_INFO,
    BAGIT,
    BAGIT_TEXT,
    DIGESTS,
    FEATURE_ARRAYS,
    FEATURES,
    FETCH,
    PAYLOAD,
    TABLE,
    TAG_DIGESTS,
    TIME_ARRAYS,
    ZARR_METADATA,
    block_rows,
)
from obygaze_features.store.records import parse_clips_csv
from obygaze_features.store.sealing import Progress
from obygaze_features.store.store import Place, check_version, files_of
from obygaze_features.store.store_files import (
    REQUIRED_TAGS,
    StoreFiles,
    absent_files,
    chunk_of,
    most_bytes,
    parse_digests,
    parse_info,
)
from obygaze_features.store.verify_content import Problem, check_content

Depth = Literal["quick", "digests", "full"]


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
            "problems": [{"file": problem.file, "what": problem.what} for problem in self.problems],
            "counts": dict(self.counts),
            "fingerprint": self.fingerprint,
        }


LONGER = "longer than the whole store"
"""Replaces the digest of a file that was not read to its end."""


@dataclass(frozen=True, slots=True)
class _FileCheck:
    """Size of a file, and its digest if it was read."""

    size: int
    digest: str


def verify(store: Place, depth: Depth = "digests", progress: Progress | None = None) -> VerifyReport:
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
        Called with (files read, files in all); files whose rows are checked too count twice.

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
    problems = [*_check_format(files)]
    absent: dict[str, str] = {}
    try:
        absent = absent_files(files)
    except StoreError as error:
        problems.append(Problem(FETCH, str(error)))
    report = progress or (lambda _done, _total: None)
    n_rows = sum(map(_has_rows, payload)) if depth == "full" else 0
    checks = _look(files, tags, digests=True) | _look(
        files, payload, digests=depth != "quick", progress=lambda done, total: report(done, total + n_rows)
    )
    counts = {
        "files": len(payload),
        "bytes": sum(file.size for name in payload if (file := checks.get(name))),
    }
    if absent:
        counts["not pulled"] = len(absent)
    problems += _check_tags(files, checks, absent)
    if depth != "quick":
        problems += _compare(
            files, DIGESTS, {name: checks[name] for name in payload if name in checks}, absent
        )
    if depth == "full":
        total = len(payload) + n_rows
        wrong, clips = check_content(
            files, names, absent, lambda done: report(min(len(payload) + done, total), total)
        )
        report(total, total)
        problems += wrong
        counts |= clips
    manifest = checks.get(DIGESTS)
    fingerprint = manifest.digest if manifest else ""
    unique = sorted(set(problems), key=lambda problem: (problem.file, problem.what))
    return VerifyReport(files.where, files.name, depth, tuple(unique), counts, fingerprint)


def _has_rows(name: str) -> bool:
    chunk = chunk_of(name)
    return chunk is not None and chunk[1] in (*FEATURE_ARRAYS, *TIME_ARRAYS)


def _look(
    files: StoreFiles, names: Sequence[str], *, digests: bool, progress: Progress | None = None
) -> dict[str, _FileCheck | None]:
    """Measure files; None for what is not an ordinary file. Files missing on a server are left out.

    At most the size of the whole store is read of a file: a server may never stop sending.
    """
    most = _most(files)

    def look(name: str) -> tuple[str, _FileCheck | None] | None:
        try:
            if not files.is_plain(name):
                return name, None
            if not digests:
                return name, _FileCheck(files.size(name), "")
            return name, _digest(files, name, most)
        except FileNotFoundError:
            return None

    with ThreadPoolExecutor(max(usable_cores(), files.readers)) as threads:  # none outlives the call
        checks = {}
        for done, result in enumerate(threads.map(look, names), 1):
            if result:
                checks[result[0]] = result[1]
            if progress is not None:
                progress(done, len(names))
        return checks


def _digest(files: StoreFiles, name: str, most: int) -> _FileCheck:
    size, digest = 0, hashlib.sha256()
    for block in files.stream(name):
        size += len(block)
        digest.update(block)
        if size > most:
            return _FileCheck(size, LONGER)
    return _FileCheck(size, digest.hexdigest())


def _most(files: StoreFiles) -> int:
    try:
        return most_bytes(files.read(BAG_INFO))
    except (FileNotFoundError, IsADirectoryError):
        return most_bytes(b"")


def _check_format(files: StoreFiles) -> Iterator[Problem]:
    try:
        check_version(files)
    except StoreError as error:
        yield Problem(f"{FEATURES}/{ZARR_METADATA}", str(error))


def _check_tags(
    files: StoreFiles, checks: Mapping[str, _FileCheck | None], absent: Mapping[str, str]
) -> Iterator[Problem]:
    """Check the files beside `data/`; the tag manifest has no digest, but it must match these files."""
    for name in (*REQUIRED_TAGS, TAG_DIGESTS):
        if not checks.get(name):
            yield Problem(name, "missing")
    if checks.get(BAGIT) and files.read(BAGIT) != BAGIT_TEXT.encode():
        yield Problem(BAGIT, "is not the declaration of a BagIt 1.0 bag")
    if checks.get(TAG_DIGESTS):
        tags = {
            name: file
            for name, file in checks.items()
            if not name.startswith(f"{PAYLOAD}/") and name != TAG_DIGESTS
        }
        yield from _compare(files, TAG_DIGESTS, tags, {})
    if checks.get(BAG_INFO) and not absent:
        declared = parse_info(files.read(BAG_INFO)).get("Payload-Oxum", "nothing")
        sizes = [file.size for name, file in checks.items() if file and name.startswith(f"{PAYLOAD}/")]
        if f"{sum(sizes)}.{len(sizes)}" != declared:
            is_now = f"{sum(sizes)}.{len(sizes)}"
            yield Problem(PAYLOAD, f"holds {is_now} (bytes.files), {BAG_INFO} says {declared}")


def _compare(
    files: StoreFiles, manifest: str, present: Mapping[str, _FileCheck | None], absent: Mapping[str, str]
) -> Iterator[Problem]:
    """Compare files with the digests of a manifest; names it lists are never opened, only those present."""
    try:
        data = files.read(manifest)
    except (FileNotFoundError, IsADirectoryError):
        return
    declared, canonical = parse_digests(data)
    if not canonical:
        yield Problem(manifest, "is not written as the format demands: it was changed")
    for name in present:
        if not present[name]:
            yield Problem(name, "is not a plain file")
    digests = {name: file.digest for name, file in present.items() if file}
    for name in digests.keys() - declared.keys():
        yield Problem(name, f"extra: {manifest} does not list it")
    for name in declared.keys() - digests.keys() - absent.keys():
        yield Problem(name, f"missing: {manifest} lists it")
    for name in absent.keys() - declared.keys():
        yield Problem(FETCH, f"leaves out {name}, which {manifest} does not list")
    changed = [name for name in digests.keys() & declared.keys() if digests[name] != declared[name]]
    n_clips = _count_clips(files) if changed else 0
    for name in changed:
        lies = _what_lies_in(name, n_clips)
        if digests[name] == LONGER:
            yield Problem(name, f"is longer than the whole store, by {BAG_INFO}; it was not read to its end")
            continue
        yield Problem(name, f"changed: its SHA-256 is not the one in {manifest}{lies}")


def _what_lies_in(name: str, n_clips: int) -> str:
    """Name which array and rows a chunk holds."""
    chunk = chunk_of(name)
    if chunk is None:
        return ""
    group, array, number = chunk
    first = number * block_rows(array, 2**31)
    last = min(first + block_rows(array, 2**31), n_clips) - 1
    rows = f"rows from {first} on" if last < first else f"rows {first} to {last}"
    return f"; it holds {rows} of {group}/{array}"


def _count_clips(files: StoreFiles) -> int:
    """Count the clips by the table of them; 0 if that cannot be read."""
    try:
        return len(parse_clips_csv(files.read(TABLE), TABLE))
    except (StoreError, OSError):
        return 0
