"""Make what a sealed store is published with: its card, and one zip file of it."""

import hashlib
import os
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shlex import quote

from obygaze_features.errors import StoreError
from obygaze_features.io import NO_LICENCE, PARTIAL_SUFFIX, naming, sync_name
from obygaze_features.locks import hold, require_locks
from obygaze_features.store.dataset_card import Facts, croissant, describe, readme
from obygaze_features.store.files_zip import MODE, ROOT, TIME, ZipFiles
from obygaze_features.store.format import (
    CARD,
    CROISSANT,
    PAYLOAD,
    STATUSES,
    TABLE,
    TAG_DIGESTS,
    ZARR_METADATA,
    dimensions,
)
from obygaze_features.store.provenance import validate_licence
from obygaze_features.store.records import one_line
from obygaze_features.store.store import Place, Store, files_of
from obygaze_features.store.store_files import FolderFiles, StoreFiles, digest_of, listed


def card_files(
    store: Store, *, licence: str | None = None, citation: str | None = None, url: str | None = None
) -> dict[str, bytes]:
    """Regenerate README.md and croissant.json: file name -> bytes. The sealed store is not changed.

    Parameters
    ----------
    licence
        SPDX expression; needed where the store was sealed without one, and else the store's own.
    citation
        How to cite the store, if not as it says itself.
    url
        Where the store's folder is served.

    Raises
    ------
    StoreError
        If no licence is stated, or one that differs from the store's.
    """
    sealed = str(store.attributes["licence"])
    if licence is None and sealed == NO_LICENCE:
        raise StoreError(
            f"{store.where}: no licence is recorded, and a shared store needs one: "
            "give it with --licence SPDX"
        )
    if licence is not None and sealed not in (NO_LICENCE, licence):
        raise StoreError(
            f"{store.where}: sealed under {sealed}, not {licence}; "
            "a new licence needs a new version of the store"
        )
    said = one_line(store.attributes["citation"] if citation is None else citation, "citation")
    facts = _facts(store, sealed if licence is None else validate_licence(licence), said)
    table = croissant(facts, store.version, digest_of(store.files, TABLE), store.files.size(TABLE), url)
    return {CARD: readme(facts).encode(), CROISSANT: table}


def _facts(store: Store, licence: str, citation: str) -> Facts:
    """Gather the facts of a sealed store's card, under this licence and citation."""
    statuses = [clip.status for clip in store.clips]
    groups = []
    for name in store:
        group = store[name]
        arrays = [
            describe(
                array,
                group.dtype(array).name,
                group.shape(array)[1:],
                dimensions(array, group.shape(array), group.n_frames),
            )
            for array in group.arrays
        ]
        groups.append((name, group.provenance, arrays))
    about = {**store.attributes, "licence": licence, "citation": citation}
    return Facts(about, {status: statuses.count(status) for status in STATUSES}, groups)


Progress = Callable[[int, int], None]


def pack(store: Place, out: Path | str | None = None, progress: Progress | None = None) -> Path:
    """Write a sealed store into one zip; the same store gives the same bytes.

    Every file is checked against its digest on the way. The zip is built under another name, forced to the
    disk and renamed, so a partial one is never visible.

    Parameters
    ----------
    store
        A store, or its path.
    out
        The zip to make; None for `NAME-VERSION.zip` beside the store's folder.
    progress
        Called with (bytes written, bytes in all).

    Raises
    ------
    StoreError
        If the store is partial or damaged, or there is something at `out` already.

    Examples
    --------
    >>> from obygaze_features import open_store, pack
    >>> packed = pack("stores/films", "films.zip")
    >>> open_store(packed).names
    ('toy',)
    """
    files = folder_of(store) if isinstance(store, str | Path) or out is None else files_of(store)
    if out is None:
        out = folder_of(store).path.with_name(f"{files.name}.zip")
    out = Path(out)
    _refuse_packed(out)
    digests = listed(files)
    names = sorted([*digests, TAG_DIGESTS], key=_order)
    if unknown := sorted(set(files.names()) ^ set(names)):
        raise StoreError(
            f"{files.where}: {unknown[0]} is missing, or too many; a whole store is needed; "
            f"run: obygaze store verify {files.where}"
        )
    sizes = {name: files.size(name) for name in names}
    partial = out.with_name(out.name + PARTIAL_SUFFIX)
    require_locks(partial)
    with naming(out):
        file = os.fdopen(os.open(partial, os.O_RDWR | os.O_CREAT, 0o644), "r+b")
        try:
            try:
                ours = hold(file.fileno(), partial, wait=False)
            except StoreError:
                partial.unlink()
                raise
            if not ours:
                raise StoreError(f"{partial}: another process is packing this store")
            # The other may have finished since: what was locked is then its zip, under its final name.
            if not partial.exists() or not os.path.samestat(os.fstat(file.fileno()), partial.stat()):
                raise StoreError(f"{partial}: another process has just packed a store here; look at {out}")
            try:
                _refuse_packed(out)
                file.truncate(0)
                done = 0
                with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                    for name in names:
                        _add(archive, files, name, sizes[name], digests.get(name))
                        done += sizes[name]
                        if progress:
                            progress(done, sum(sizes.values()))
                file.flush()
                os.fsync(file.fileno())
                partial.rename(out)
            except BaseException:
                partial.unlink()  # on a full disk it would be in everybody's way
                raise
        finally:
            with suppress(OSError):  # what was forced to the disk stays there
                file.close()
    sync_name(out)
    return out


def _refuse_packed(out: Path) -> None:
    if out.exists():
        raise StoreError(f"{out}: is there already; remove it, or name another file")


def folder_of(store: Place) -> FolderFiles:
    """Find the folder of a store, in place of which its zip will not do."""
    files = files_of(store)
    if isinstance(files, ZipFiles):
        raise StoreError(
            f"{files.where}: a packed store, and its folder is needed: "
            f"obygaze store unpack {quote(files.where)}"
        )
    if not isinstance(files, FolderFiles):
        raise StoreError(
            f"{files.where}: not a folder, which is needed; obygaze store unpack or pull makes one of it"
        )
    return files


def _order(name: str) -> tuple[int, str]:
    """Order the files by when they are read."""
    ranks = {ROOT: 0, TABLE: 2}
    return ranks.get(
        name, 1 if not name.startswith(PAYLOAD) else 3 if name.endswith(ZARR_METADATA) else 4
    ), name


def _add(archive: zipfile.ZipFile, files: StoreFiles, name: str, size: int, said: str | None) -> None:
    member = zipfile.ZipInfo(f"{files.name}/{name}", TIME)
    member.create_system = 3
    member.external_attr = MODE << 16
    member.file_size = size
    found = hashlib.sha256()
    with archive.open(member, "w") as file:
        for block in files.stream(name):
            found.update(block)
            file.write(block)
    if said is not None and found.hexdigest() != said:
        raise StoreError(
            f"{files.where}/{name}: is not what its digest says; "
            f"run: obygaze store verify --full {files.where}"
        )
