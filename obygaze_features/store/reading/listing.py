"""Which files a store has, by its two manifests of digests: the only list that is trusted."""

import hashlib
import re
from collections.abc import Iterable

from obygaze_features.store.bag import parse_manifest
from obygaze_features.store.errors import StoreError
from obygaze_features.store.layout import (
    BAG_INFO,
    FEATURES,
    FETCH,
    MANIFEST,
    PARTIAL_SUFFIX,
    PAYLOAD,
    TABLE,
    TAG_MANIFEST,
    ZARR_METADATA,
)
from obygaze_features.store.provenance import HEX64
from obygaze_features.store.reading.damaged import whole
from obygaze_features.store.reading.objects import Objects

LONGEST_FILE = 150
"""Signs of a file's name: a file that is being pulled is called by its digest too, and systems allow 255."""
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+ -]{0,200}")


ALWAYS = {TAG_MANIFEST: {BAG_INFO, MANIFEST}, MANIFEST: {TABLE, f"{FEATURES}/{ZARR_METADATA}"}}
"""What each manifest of digests must list."""


def is_safe(name: str) -> bool:
    """Whether a relative name from outside may be a file of a store: it never leads out of its folder."""
    parts = name.split("/")
    deep = parts[0] == PAYLOAD and len(parts) > 1
    return (
        all(_PART.fullmatch(part) for part in parts)
        and (deep or len(parts) == 1)
        and len(parts[-1]) <= LONGEST_FILE
        and not name.endswith(PARTIAL_SUFFIX)
        and name != FETCH
    )


def chunk_of(name: str) -> tuple[str, str, int] | None:
    """Give (group, array, number along the clips) of a chunk's file; None for any other file."""
    parts = name.removeprefix(f"{FEATURES}/").split("/")
    if (
        not name.startswith(f"{FEATURES}/")
        or parts[2:3] != ["c"]
        or not parts[3:4]
        or not parts[3].isdecimal()
    ):
        return None
    return parts[0], parts[1], int(parts[3])


def listed(objects: Objects) -> dict[str, str]:
    """Give name -> SHA-256 of every file of a store but the digest manifest of the tag files.

    Raises
    ------
    StoreError
        If a manifest is missing, was changed, or names what cannot be a file of a store.
    """
    found: dict[str, str] = {}
    for manifest in (TAG_MANIFEST, MANIFEST):
        data = whole(objects, manifest)
        digests, canonical = parse_manifest(data)
        payload = {name for name in digests if name.startswith(f"{PAYLOAD}/")}
        fitting = payload == digests.keys() if manifest == MANIFEST else not payload
        fitting &= all(map(HEX64[1], digests.values())) and digests.keys().isdisjoint(_folders(digests))
        if manifest == MANIFEST:
            fitting &= found.get(MANIFEST) == hashlib.sha256(data).hexdigest()
        if lacking := sorted(ALWAYS[manifest] - digests.keys()):
            raise StoreError(f"{objects.where}/{manifest}: does not list {lacking[0]}, which every store has")
        if not canonical or not fitting or not all(map(is_safe, digests)):
            raise StoreError(
                f"{objects.where}/{manifest}: was changed; it is not as the format or {TAG_MANIFEST} has it"
            )
        found |= digests
    return found


def _folders(names: Iterable[str]) -> set[str]:
    """Give every folder that files of these names lie in."""
    parts = [name.split("/") for name in names]
    return {"/".join(some[:depth]) for some in parts for depth in range(1, len(some))}


def named(objects: Objects) -> list[str]:
    """Give the files that there should be, by manifests that may be damaged: for verification to look at."""
    digests = {
        name for manifest in (TAG_MANIFEST, MANIFEST) for name in parse_manifest(whole(objects, manifest))[0]
    }
    return sorted({*filter(is_safe, digests), MANIFEST, TAG_MANIFEST})
