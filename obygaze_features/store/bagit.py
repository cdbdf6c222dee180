"""The BagIt bag around a sealed store: which files there are, and the digest of every one of them.

Format: RFC 8493 (Kunze et al. 2018), with one canonical way to write every line, so that any changed bit
shows.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from obygaze_features.io import file_sha256
from obygaze_features.store.format import BAG_INFO, BAGIT, BAGIT_TEXT, CARD, DIGESTS, PAYLOAD, TAG_DIGESTS

REQUIRED_TAGS = (BAGIT, BAG_INFO, DIGESTS, CARD)


def payload_files(root: Path) -> list[str]:
    """List the files below `data/`, relative to the store, sorted; a link to a folder counts as a file."""
    found = []
    for folder, folders, names in os.walk(root / PAYLOAD):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        found += [Path(folder, name).relative_to(root).as_posix() for name in (*names, *links)]
    return sorted(found)


def tag_files(root: Path) -> list[str]:
    """List what lies beside `data/`, except the list of digests of these files, sorted."""
    return sorted(node.name for node in root.iterdir() if node.name not in (PAYLOAD, TAG_DIGESTS))


def digests_bytes(digests: Mapping[str, str]) -> bytes:
    """Write path -> digest as `sha256sum -c` reads it, sorted by path."""
    return "".join(f"{digests[path]}  {path}\n" for path in sorted(digests)).encode()


def parse_digests(data: bytes) -> tuple[dict[str, str], bool]:
    """Read a manifest of digests: path -> digest, and whether it was written in exactly the canonical way."""
    lines = data.decode("utf-8", errors="replace").split("\n")
    digests = {path: found for found, _, path in (line.partition("  ") for line in lines) if path}
    return digests, digests_bytes(digests) == data


def oxum(root: Path, files: Iterable[str]) -> str:
    """Return octets and files of the payload, `OCTETS.FILES`."""
    sizes = [(root / path).stat().st_size for path in files]
    return f"{sum(sizes)}.{len(sizes)}"


def info_bytes(fields: Mapping[str, str]) -> bytes:
    """Write bag-info.txt, sorted by label."""
    return "".join(f"{label}: {fields[label]}\n" for label in sorted(fields)).encode()


def parse_info(data: bytes) -> dict[str, str]:
    """Read bag-info.txt; lines without a label are left to the list of digests to notice."""
    pairs = (line.partition(": ") for line in data.decode("utf-8", errors="replace").splitlines())
    return {label: value for label, colon, value in pairs if colon}


def write_bag(root: Path, info: Mapping[str, str], card: str, known: Mapping[str, str]) -> None:
    """Write the tag files of a store whose payload is complete; `known` are digests taken already."""
    payload = payload_files(root)
    (root / BAGIT).write_bytes(BAGIT_TEXT.encode())
    (root / BAG_INFO).write_bytes(info_bytes({**info, "Payload-Oxum": oxum(root, payload)}))
    (root / CARD).write_bytes(card.encode())
    (root / DIGESTS).write_bytes(digests_bytes({path: known.get(path) or file_sha256(root / path) for path in payload}))
    (root / TAG_DIGESTS).write_bytes(
        digests_bytes({path: file_sha256(root / path) for path in tag_files(root)})
    )
