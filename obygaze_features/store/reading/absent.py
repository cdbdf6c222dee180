"""Partial copies: fetch.txt (RFC 8493, 2.2.3) says which files are elsewhere, and where.

A partial copy is the same store: its digest manifest, and so its fingerprint, are those of the whole.
"""

from collections.abc import Mapping

from obygaze_features.store.errors import StoreError
from obygaze_features.store.layout import FETCH
from obygaze_features.store.reading.objects import Objects


def fetch_bytes(absent: Mapping[str, str]) -> bytes:
    """Write name -> URL as fetch.txt; the lengths are not known."""
    return "".join(f"{absent[name]} - {name}\n" for name in sorted(absent)).encode()


def absent_files(objects: Objects) -> dict[str, str]:
    """Give name -> URL of the files that a copy was told to leave out; none if it is whole."""
    try:
        data = objects.read(FETCH)
    except (FileNotFoundError, IsADirectoryError):
        return {}
    absent = {}
    for number, line in enumerate(data.decode("utf-8", errors="replace").splitlines(), start=1):
        url, length, name = [*line.split(" ", 2), "", ""][:3]
        if length != "-" or not name:
            raise StoreError(
                f"{objects.where}/{FETCH}, line {number}: expected 'URL - FILE'; found {line[:80]!r}"
            )
        absent[name] = url
    return absent


def gone(objects: Objects, name: str) -> StoreError:
    """Say that a file is not there: left out of a partial copy, or lost."""
    if name in absent_files(objects):
        return StoreError(
            f"{objects.where}/{name}: not in this partial copy ({FETCH} lists it); "
            "pull into it again, asking for more"
        )
    return StoreError(
        f"{objects.where}/{name}: this chunk is missing; run: obygaze store verify {objects.where}"
    )
