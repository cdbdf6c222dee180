"""Getting one file into a partial file: continued where it broke off, checked against its digest."""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from obygaze_features.store.errors import InterruptedTransferError, NoRangesError, StoreError
from obygaze_features.store.reading.objects import BLOCK, Objects

ATTEMPTS = 5
"""How often a file is asked for in turn without a single new byte coming, before giving up."""
FIRST_WAIT_S = 0.1

Count = Callable[[str, int, int], None]
"""Called with (name, its size so far, bytes that just came)."""


def download(objects: Objects, name: str, partial: Path, said: str, count: Count) -> None:
    """Fill `partial` with a file of the digest `said`; what is in it already is not asked for again.

    Raises
    ------
    StoreError
        If the file is not there, what comes has another digest twice, or nothing comes at all.
    """
    failures, wrong = 0, 0
    while wrong < 2:
        with partial.open("a+b") as file:
            before = partial.stat().st_size
            try:
                found = _append(objects, name, file, said, count)
            except NoRangesError:
                if not before:
                    raise
                file.truncate(0)  # only the whole file can be had: start again
                continue
            except InterruptedTransferError:
                failures = 1 if partial.stat().st_size > before else failures + 1
                if failures >= ATTEMPTS:
                    raise
                time.sleep(FIRST_WAIT_S * 2**failures)
                continue
            if found == said:
                return
            wrong += not before  # what an earlier run left may be at fault: that does not count
            file.truncate(0)
    raise StoreError(
        f"{objects.where}/{name}: what comes is not what its digest says, twice; the store there is damaged"
    )


def _append(objects: Objects, name: str, file: BinaryIO, said: str, count: Count) -> str:
    """Read what is in a file, append the rest of what it should be; return the digest of all."""
    found = hashlib.sha256()
    file.seek(0)
    while block := file.read(BLOCK):
        found.update(block)
    size = file.tell()
    if size and found.hexdigest() == said:
        return said
    try:
        for block in objects.stream(name, size):
            file.write(block)
            found.update(block)
            size += len(block)
            count(name, size, len(block))
    except (FileNotFoundError, IsADirectoryError):
        raise StoreError(f"{objects.where}/{name}: is listed in the digest manifest, but not there") from None
    finally:
        file.flush()
    return found.hexdigest()
