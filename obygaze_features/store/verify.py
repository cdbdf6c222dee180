"""Is a store still what was sealed? Three depths, each including the one before."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from obygaze_features.store.bag import (
    REQUIRED_TAGS,
    file_digest,
    oxum,
    parse_info,
    parse_manifest,
    payload_files,
    tag_files,
)
from obygaze_features.store.content import check_content
from obygaze_features.store.errors import StoreError
from obygaze_features.store.layout import (
    BAG_INFO,
    BAGIT,
    BAGIT_TEXT,
    FEATURES,
    MANIFEST,
    PAYLOAD,
    TAG_MANIFEST,
    ZARR_METADATA,
    block_rows,
)
from obygaze_features.store.locate import check_version, resolve
from obygaze_features.store.report import Level, Problem, VerifyReport


def verify(path: Path | str, level: Level = "manifest") -> VerifyReport:
    """Check a sealed store.

    Parameters
    ----------
    level
        quick: sizes, counts, and the digests of the files beside `data/`; manifest: the digest of every file,
        and no file missing or extra; full: the schema, ids, statuses, and every row against `data/clips.csv`
        too.

    Raises
    ------
    StoreError
        If there is no sealed store at this path.
    """
    folder = resolve(Path(path))
    payload = payload_files(folder)
    counts = {"files": len(payload), "bytes": sum((folder / file).lstat().st_size for file in payload)}
    problems = [*_check_format(folder), *_check_tags(folder, payload)]
    if level != "quick" and (folder / MANIFEST).is_file():
        problems += _compare(folder, MANIFEST, payload)
    if level == "full":
        found, clips = check_content(folder)
        problems += found
        counts |= clips
    manifest = folder / MANIFEST
    fingerprint = hashlib.sha256(manifest.read_bytes()).hexdigest() if manifest.is_file() else ""
    unique = sorted(set(problems), key=lambda problem: (problem.file, problem.what))
    return VerifyReport(folder, level, tuple(unique), counts, fingerprint)


def _check_format(folder: Path) -> Iterator[Problem]:
    try:
        check_version(folder)
    except StoreError as error:
        yield Problem(f"{FEATURES}/{ZARR_METADATA}", str(error))


def _check_tags(folder: Path, payload: list[str]) -> Iterator[Problem]:
    """Check the files beside `data/`; the tag manifest has no digest, but it must match these files."""
    for name in (*REQUIRED_TAGS, TAG_MANIFEST):
        if not (folder / name).is_file():
            yield Problem(name, "missing")
    if (folder / BAGIT).is_file() and (folder / BAGIT).read_bytes() != BAGIT_TEXT.encode():
        yield Problem(BAGIT, "is not the declaration of a BagIt 1.0 bag")
    if (folder / TAG_MANIFEST).is_file():
        yield from _compare(folder, TAG_MANIFEST, tag_files(folder))
    if (folder / BAG_INFO).is_file():
        said = parse_info((folder / BAG_INFO).read_bytes()).get("Payload-Oxum", "nothing")
        found = oxum(folder, [file for file in payload if (folder / file).is_file()])
        if found != said:
            yield Problem(PAYLOAD, f"holds {found} (bytes.files), {BAG_INFO} says {said}")


def _compare(folder: Path, manifest: str, present: list[str]) -> Iterator[Problem]:
    """Compare files with the digests of a manifest; names it lists are never opened, only those present."""
    said, canonical = parse_manifest((folder / manifest).read_bytes())
    if not canonical:
        yield Problem(manifest, "is not written as the format demands: it was changed")
    found = {}
    for name in present:
        if (folder / name).is_symlink() or not (folder / name).is_file():
            yield Problem(name, "is not a plain file")
        else:
            found[name] = file_digest(folder / name)
    for name in found.keys() - said.keys():
        yield Problem(name, f"extra: {manifest} does not list it")
    for name in said.keys() - found.keys():
        yield Problem(name, f"missing: {manifest} lists it")
    for name in found.keys() & said.keys():
        if found[name] != said[name]:
            yield Problem(name, f"changed: its SHA-256 is not the one in {manifest}{_what_lies_in(name)}")


def _what_lies_in(name: str) -> str:
    """Say which array and rows a chunk holds."""
    parts = name.removeprefix(f"{FEATURES}/").split("/")
    if parts[2:3] != ["c"] or not parts[3].isdecimal():
        return ""
    size = block_rows(parts[1], 2**31)
    first = int(parts[3]) * size
    return f"; it holds rows {first} to {first + size - 1} of {parts[0]}/{parts[1]}"
