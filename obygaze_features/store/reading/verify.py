"""Is a store still what was sealed? Three depths, each including the one before."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from obygaze_features.store.bag import REQUIRED_TAGS, parse_info, parse_manifest
from obygaze_features.store.errors import StoreError
from obygaze_features.store.layout import (
    BAG_INFO,
    BAGIT,
    BAGIT_TEXT,
    FEATURES,
    FETCH,
    MANIFEST,
    PAYLOAD,
    TABLE,
    TAG_MANIFEST,
    ZARR_METADATA,
    block_rows,
)
from obygaze_features.store.reading.absent import absent_files
from obygaze_features.store.reading.content import check_content
from obygaze_features.store.reading.listing import chunk_of
from obygaze_features.store.reading.locate import check_version, locate
from obygaze_features.store.reading.objects import Objects
from obygaze_features.store.reading.packed import Packed
from obygaze_features.store.reading.verify_report import Level, Problem, VerifyReport
from obygaze_features.store.table import parse_table

HASHERS = 4
"""Files digested at a time: hashlib lets other threads run meanwhile."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A file that is there: its size, and its digest if it was read."""

    size: int
    digest: str


def verify(path: Path | str, level: Level = "manifest") -> VerifyReport:
    """Check a sealed store: a folder, a zip, or at a URL.

    A partial copy is checked for what it says it has; how many files it leaves out is counted. At a URL
    nothing can be listed, so files too many are not seen.

    Parameters
    ----------
    level
        quick: sizes, counts, and the digests of the files beside `data/`; manifest: the digest of every file,
        and no file missing or extra; full: the schema, ids, statuses, and every row against `data/clips.csv`
        too.

    Raises
    ------
    StoreError
        If there is no sealed store at this place, or its server cannot be reached.
    """
    objects = locate(path)
    names = objects.names()
    tags = [name for name in names if not name.startswith(f"{PAYLOAD}/") and name != FETCH]
    payload = [name for name in names if name.startswith(f"{PAYLOAD}/")]
    problems = [*_check_format(objects)]
    absent: dict[str, str] = {}
    try:
        absent = absent_files(objects)
    except StoreError as error:
        problems.append(Problem(FETCH, str(error)))
    found = _look(objects, tags, digests=True) | _look(objects, payload, digests=level != "quick")
    counts = {
        "files": len(payload),
        "bytes": sum(file.size for name in payload if (file := found.get(name))),
    }
    if absent:
        counts["not pulled"] = len(absent)
    problems += _check_tags(objects, found, absent)
    if isinstance(objects, Packed):
        problems += [Problem(name, "its header in the zip was changed") for name in objects.torn_headers()]
    if level != "quick":
        problems += _compare(
            objects, MANIFEST, {name: found[name] for name in payload if name in found}, absent
        )
    if level == "full":
        wrong, clips = check_content(objects, names, absent)
        problems += wrong
        counts |= clips
    manifest = found.get(MANIFEST)
    fingerprint = manifest.digest if manifest else ""
    unique = sorted(set(problems), key=lambda problem: (problem.file, problem.what))
    return VerifyReport(objects.where, objects.name, level, tuple(unique), counts, fingerprint)


def _look(objects: Objects, names: Iterable[str], *, digests: bool) -> dict[str, _Found | None]:
    """Measure files; None for what is not an ordinary file. What a server has lost is left out."""

    def look(name: str) -> tuple[str, _Found | None] | None:
        try:
            if not objects.is_plain(name):
                return name, None
            if not digests:
                return name, _Found(objects.size(name), "")
            size, found = 0, hashlib.sha256()
            for block in objects.stream(name):
                size += len(block)
                found.update(block)
            return name, _Found(size, found.hexdigest())
        except FileNotFoundError:
            return None

    with ThreadPoolExecutor(max(HASHERS, objects.readers)) as threads:  # none outlives the call
        return dict(found for found in threads.map(look, names) if found)


def _check_format(objects: Objects) -> Iterator[Problem]:
    try:
        check_version(objects)
    except StoreError as error:
        yield Problem(f"{FEATURES}/{ZARR_METADATA}", str(error))


def _check_tags(
    objects: Objects, found: Mapping[str, _Found | None], absent: Mapping[str, str]
) -> Iterator[Problem]:
    """Check the files beside `data/`; the tag manifest has no digest, but it must match these files."""
    for name in (*REQUIRED_TAGS, TAG_MANIFEST):
        if not found.get(name):
            yield Problem(name, "missing")
    if found.get(BAGIT) and objects.read(BAGIT) != BAGIT_TEXT.encode():
        yield Problem(BAGIT, "is not the declaration of a BagIt 1.0 bag")
    if found.get(TAG_MANIFEST):
        tags = {
            name: file
            for name, file in found.items()
            if not name.startswith(f"{PAYLOAD}/") and name != TAG_MANIFEST
        }
        yield from _compare(objects, TAG_MANIFEST, tags, {})
    if found.get(BAG_INFO) and not absent:
        said = parse_info(objects.read(BAG_INFO)).get("Payload-Oxum", "nothing")
        sizes = [file.size for name, file in found.items() if file and name.startswith(f"{PAYLOAD}/")]
        if f"{sum(sizes)}.{len(sizes)}" != said:
            is_now = f"{sum(sizes)}.{len(sizes)}"
            yield Problem(PAYLOAD, f"holds {is_now} (bytes.files), {BAG_INFO} says {said}")


def _compare(
    objects: Objects, manifest: str, present: Mapping[str, _Found | None], absent: Mapping[str, str]
) -> Iterator[Problem]:
    """Compare files with the digests of a manifest; names it lists are never opened, only those present."""
    try:
        data = objects.read(manifest)
    except (FileNotFoundError, IsADirectoryError):
        return
    said, canonical = parse_manifest(data)
    if not canonical:
        yield Problem(manifest, "is not written as the format demands: it was changed")
    for name in present:
        if not present[name]:
            yield Problem(name, "is not a plain file")
    found = {name: file.digest for name, file in present.items() if file}
    for name in found.keys() - said.keys():
        yield Problem(name, f"extra: {manifest} does not list it")
    for name in said.keys() - found.keys() - absent.keys():
        yield Problem(name, f"missing: {manifest} lists it")
    for name in absent.keys() - said.keys():
        yield Problem(FETCH, f"leaves out {name}, which {manifest} does not list")
    changed = [name for name in found.keys() & said.keys() if found[name] != said[name]]
    n_clips = _count_clips(objects) if changed else 0
    for name in changed:
        lies = _what_lies_in(name, n_clips)
        yield Problem(name, f"changed: its SHA-256 is not the one in {manifest}{lies}")


def _what_lies_in(name: str, n_clips: int) -> str:
    """Say which array and rows a chunk holds."""
    chunk = chunk_of(name)
    if chunk is None:
        return ""
    group, array, number = chunk
    first = number * block_rows(array, 2**31)
    last = min(first + block_rows(array, 2**31), n_clips) - 1
    rows = f"rows from {first} on" if last < first else f"rows {first} to {last}"
    return f"; it holds {rows} of {group}/{array}"


def _count_clips(objects: Objects) -> int:
    """Count the clips by the table of them; 0 if that cannot be read."""
    try:
        return len(parse_table(objects.read(TABLE), TABLE))
    except (StoreError, OSError):
        return 0
