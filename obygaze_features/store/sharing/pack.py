"""Packing a sealed store into one zip; there is one way, so that the same store gives the same bytes."""

import hashlib
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

from obygaze_features.store.errors import StoreError
from obygaze_features.store.files import hold, naming, sync
from obygaze_features.store.layout import PARTIAL_SUFFIX, PAYLOAD, TABLE, TAG_MANIFEST, ZARR_METADATA
from obygaze_features.store.reading.listing import listed
from obygaze_features.store.reading.objects import Objects
from obygaze_features.store.reading.packed import MODE, ROOT, TIME

Progress = Callable[[int, int], None]


def pack(objects: Objects, out: Path, progress: Progress | None = None) -> Path:
    """Write a sealed store into one zip; the same store gives the same bytes.

    Every file is checked against its digest on the way. The zip is built under another name, forced to the
    disk and renamed: nobody ever sees half of one.

    Parameters
    ----------
    progress
        Called with (bytes written, bytes in all).

    Raises
    ------
    StoreError
        If the store is partial or damaged, or there is something at `out` already.
    """
    if out.exists():
        raise StoreError(f"{out}: is there already; remove it, or name another file")
    digests = listed(objects)
    names = sorted([*digests, TAG_MANIFEST], key=_order)
    if unknown := sorted(set(objects.names()) ^ set(names)):
        raise StoreError(
            f"{objects.where}: {unknown[0]} is missing, or too many; a whole store is needed; "
            f"run: obygaze store verify {objects.where}"
        )
    sizes = {name: objects.size(name) for name in names}
    partial = out.with_name(out.name + PARTIAL_SUFFIX)
    with naming(partial), os.fdopen(os.open(partial, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file:
        if not hold(file.fileno(), wait=False):
            raise StoreError(f"{partial}: another process is packing this store")
        file.truncate(0)
        try:
            done = 0
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for name in names:
                    _add(archive, objects, name, sizes[name], digests.get(name))
                    done += sizes[name]
                    if progress:
                        progress(done, sum(sizes.values()))
            file.flush()
            os.fsync(file.fileno())
            partial.rename(out)
        except BaseException:
            partial.unlink()  # on a full disk it would be in everybody's way
            raise
    sync(out.parent)
    return out


def _order(name: str) -> tuple[int, str]:
    """Put first what is read first."""
    ranks = {ROOT: 0, TABLE: 2}
    return ranks.get(
        name, 1 if not name.startswith(PAYLOAD) else 3 if name.endswith(ZARR_METADATA) else 4
    ), name


def _add(archive: zipfile.ZipFile, objects: Objects, name: str, size: int, said: str | None) -> None:
    member = zipfile.ZipInfo(f"{objects.name}/{name}", TIME)
    member.create_system = 3
    member.external_attr = MODE << 16
    member.file_size = size
    found = hashlib.sha256()
    with archive.open(member, "w") as file:
        for block in objects.stream(name):
            found.update(block)
            file.write(block)
    if said is not None and found.hexdigest() != said:
        raise StoreError(
            f"{objects.where}/{name}: is not what its digest says; "
            f"run: obygaze store verify --full {objects.where}"
        )
