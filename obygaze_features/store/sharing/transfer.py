"""Bringing a store here, whole or in part, from a server, a hub, a zip or another folder.

Everything arrives in `DEST.pulling/`: every file as `<name>.<digest>.partial`, checked against its digest,
forced to the disk, renamed; the digest manifest last. Then the folder gets its name. Whatever came before a
kill is kept, and nobody ever sees half a store.
"""

import shutil
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from obygaze_features.store.bag import file_digest, parse_info
from obygaze_features.store.errors import StoreError
from obygaze_features.store.files import alone_in, naming, replace_synced, sync, sync_all
from obygaze_features.store.layout import (
    BAG_INFO,
    FETCH,
    MANIFEST,
    PARTIAL_SUFFIX,
    PULLING_SUFFIX,
    TABLE,
    TAG_MANIFEST,
)
from obygaze_features.store.reading.absent import absent_files, fetch_bytes
from obygaze_features.store.reading.listing import listed
from obygaze_features.store.reading.locate import check_version
from obygaze_features.store.reading.objects import Folder, Objects
from obygaze_features.store.sharing.download import download
from obygaze_features.store.sharing.selection import wanted_files
from obygaze_features.store.sharing.threads import each
from obygaze_features.store.table import parse_table

Progress = Callable[[int, int, int], None]
"""Called with (files done, files in all, bytes that came)."""


@dataclass(frozen=True)
class Brought:
    """What a transfer did: files that came, their bytes, files that were here, files left where they are."""

    path: Path
    files: int
    octets: int
    kept: int
    left: int


def bring(
    objects: Objects,
    destination: Path,
    *,
    arrays: Collection[str] | None = None,
    clips: Collection[str] | None = None,
    progress: Progress | None = None,
) -> Brought:
    """Copy a sealed store into the folder `destination`.

    Called again after a kill it goes on where it was. Called on a copy of the same store it brings what is
    missing or damaged, so a partial copy grows.

    Parameters
    ----------
    arrays, clips
        What a partial copy has (see `wanted_files`); None for all. It says in fetch.txt what it lacks.

    Raises
    ------
    StoreError
        If something else is at `destination`, the store there is partial or damaged, or it cannot be reached.
    """
    digests = listed(objects)
    check_version(objects)  # a newer format is refused before anything is written
    if absent_files(objects):
        raise StoreError(f"{objects.where}: a partial copy itself ({FETCH}); copy the whole store")
    _refuse_another(objects, destination, digests[MANIFEST])
    building = destination.with_name(destination.name + PULLING_SUFFIX)
    with alone_in(building, "bringing this store"):
        return _Transfer(objects, destination, building, digests, progress).run(arrays, clips)


def _refuse_another(objects: Objects, destination: Path, manifest: str) -> None:
    if not destination.exists() or (destination.is_dir() and not any(destination.iterdir())):
        return
    if not (destination / MANIFEST).is_file():
        raise StoreError(f"{destination}: exists and is no store; name the folder to make, as {objects.name}")
    if file_digest(destination / MANIFEST) != manifest:
        raise StoreError(
            f"{destination}: another store is there, with another fingerprint; name another folder"
        )


class _Transfer:
    def __init__(
        self,
        objects: Objects,
        destination: Path,
        building: Path,
        digests: Mapping[str, str],
        progress: Progress | None,
    ) -> None:
        self._objects, self._destination, self._building = objects, destination, building
        self._digests = digests
        self._growing = (destination / MANIFEST).is_file()
        self._progress = progress
        self._done = self._octets = self._kept = self._came = 0

    def run(self, arrays: Collection[str] | None, clips: Collection[str] | None) -> Brought:
        self._limit = 1 << 62
        self._total = len(self._digests)
        self._fetch(BAG_INFO)
        said = parse_info(self._path(BAG_INFO).read_bytes()).get("Payload-Oxum", "").partition(".")[0]
        self._limit = max(1 << 24, int(said) if said.isdecimal() else 0)
        self._fetch(TABLE)
        table = parse_table(self._path(TABLE).read_bytes(), f"{self._objects.where}/{TABLE}")
        wanted = wanted_files(self._digests, table, arrays, clips)
        here = {name for name in self._digests if self._growing and (self._destination / name).is_file()}
        self._total = len(wanted)
        rest = sorted(wanted - {BAG_INFO, TABLE, MANIFEST})
        each(self._fetch, rest, max(4, self._objects.readers))
        self._finish(set(self._digests) - wanted - here)
        return Brought(
            self._destination, self._came, self._octets, self._kept, len(self._digests) - len(wanted | here)
        )

    def _finish(self, left: set[str]) -> None:
        absent = fetch_bytes({name: f"{self._objects.where}/{name}" for name in left})
        building, destination = self._building, self._destination
        if self._growing:
            for path in sorted(path for path in building.rglob("*") if path.is_file()):
                name = path.relative_to(building).as_posix()
                if name in self._digests:
                    (destination / name).parent.mkdir(parents=True, exist_ok=True)
                    path.replace(destination / name)
            sync_all({destination, *(path.parent for path in destination.rglob("*"))})
            if left:
                replace_synced(destination / FETCH, absent)
            else:
                (destination / FETCH).unlink(missing_ok=True)
            shutil.rmtree(building)
        else:
            self._fetch(MANIFEST)
            replace_synced(building / TAG_MANIFEST, self._objects.read(TAG_MANIFEST))
            if listed(Folder(building)) != self._digests:
                raise StoreError(f"{self._objects.where}: was changed while it was copied; start again")
            (building / FETCH).unlink(missing_ok=True)
            if left:
                replace_synced(building / FETCH, absent)
            self._sweep(left)
            sync_all({building, *(path.parent for path in building.rglob("*"))})
            building.rename(destination)
        sync(destination.absolute().parent)

    def _sweep(self, left: set[str]) -> None:
        """Remove what an earlier transfer of other things left."""
        keep = {*(self._digests.keys() - left), TAG_MANIFEST, *((FETCH,) if left else ())}
        for path in list(self._building.rglob("*")):
            if not path.is_dir() and path.relative_to(self._building).as_posix() not in keep:
                path.unlink()
        for path in sorted(self._building.rglob("*"), reverse=True):
            if path.is_dir():
                with suppress(OSError):  # not empty: it is wanted
                    path.rmdir()

    def _path(self, name: str) -> Path:
        held = self._destination / name
        return held if self._growing and not (self._building / name).exists() else self._building / name

    def _fetch(self, name: str) -> None:
        """Have a file here, checked; ask for nothing that is here already."""
        said = self._digests[name]
        for path in {self._path(name), self._building / name}:
            if path.is_file() and not path.is_symlink() and file_digest(path) == said:
                self._kept += 1
                break
        else:
            path = self._building / name
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f"{path.name}.{said}{PARTIAL_SUFFIX}")
            with naming(partial):
                download(self._objects, name, partial, said, self._count)
            sync(partial)
            partial.replace(path)
            self._came += 1
        self._done += 1
        if self._progress:
            self._progress(self._done, self._total, self._octets)

    def _count(self, name: str, size: int, more: int) -> None:
        """Count bytes that came; refuse a file that is larger than its whole store."""
        self._octets += more
        if size > self._limit:
            raise StoreError(f"{self._objects.where}/{name}: sends more than the whole store has")
