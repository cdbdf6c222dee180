"""Publish a sealed store: write its card, pack it into one zip, push it to a folder, to S3 or to the Hub."""

import hashlib
import os
import stat
import zipfile
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote
from threading import Lock

from obygaze_features.errors import StoreError
from obygaze_features.exchange.transfer import FileProgress, download, in_threads
from obygaze_features.io import NO_LICENCE, PARTIAL_SUFFIX, LineJournal, naming, read_lines, sync_name
from obygaze_features.locks import hold, locked, require_locks
from obygaze_features.store.files_remote import as_url, asking, asking_hub, connect, naming_extra, place_of
from obygaze_features.store.files_zip import ROOT, ZipFiles
from obygaze_features.store.format import (
    CARD,
    CROISSANT,
    DIGESTS,
    PAYLOAD,
    STATUSES,
    TABLE,
    TAG_DIGESTS,
    ZARR_METADATA,
    dimensions,
)
from obygaze_features.store.metadata import Facts, croissant, describe, readme
from obygaze_features.store.provenance import validate_licence
from obygaze_features.store.records import absent_counts, one_line
from obygaze_features.store.store import Place, Store, check_version, files_of
from obygaze_features.store.store_files import FolderFiles, StoreFiles, absent_files, digest_of, listed

WRITERS = 4
"""Concurrent uploads; each holds one object, at most a shard, in memory."""
Progress = Callable[[int, int], None]


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
    chosen_citation = one_line(store.attributes["citation"] if citation is None else citation, "citation")
    facts = _facts(store, sealed if licence is None else validate_licence(licence), chosen_citation)
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
    counts = {status: statuses.count(status) for status in STATUSES}
    return Facts(about, counts, groups, absent_counts(store.clips))


# --- one zip
# ---------------------------------------------------------------------------
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
            # Another process may have finished meanwhile: the locked file is then its zip, already renamed.
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
                partial.unlink()  # do not leave it on a full disk
                raise
        finally:
            with suppress(OSError):  # its bytes are on the disk already
                file.close()
    sync_name(out)
    return out


def _refuse_packed(out: Path) -> None:
    if out.exists():
        raise StoreError(f"{out}: is there already; remove it, or name another file")


def folder_of(store: Place) -> FolderFiles:
    """Return the folder of a store; refuse a zip or a URL."""
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
    """Return the sort key of a file: files that are read first come first."""
    ranks = {ROOT: 0, TABLE: 2}
    return ranks.get(
        name, 1 if not name.startswith(PAYLOAD) else 3 if name.endswith(ZARR_METADATA) else 4
    ), name


def _add(archive: zipfile.ZipFile, files: StoreFiles, name: str, size: int, expected: str | None) -> None:
    member = zipfile.ZipInfo(f"{files.name}/{name}", (1980, 1, 1, 0, 0, 0))
    member.create_system = 3
    member.external_attr = (stat.S_IFREG | 0o644) << 16
    member.file_size = size
    digest = hashlib.sha256()
    with archive.open(member, "w") as file:
        for block in files.stream(name):
            digest.update(block)
            file.write(block)
    if expected is not None and digest.hexdigest() != expected:
        raise StoreError(
            f"{files.where}/{name}: is not what its digest says; "
            f"run: obygaze store verify --full {files.where}"
        )


# --- copies elsewhere; one that was stopped resumes
# ---------------------------------------------------------------------------
def push(store: Place, destination: Path | str, progress: FileProgress | None = None) -> str:
    """Copy a sealed store to `destination` and return its location.

    Run again after a kill, it resumes where it stopped.

    Parameters
    ----------
    store
        A store that is a folder, or its path.
    destination
        A folder to make, s3://BUCKET/NAME, or hf://datasets/OWNER/NAME.

    Raises
    ------
    StoreError
        If the store states no licence, is partial or damaged, or another store is at `destination`.

    Examples
    --------
    >>> from obygaze_features import open_store, push
    >>> place = push("stores/films", "shared/films-1.0.0")
    >>> open_store(place).names
    ('toy',)
    """
    source = folder_of(store)
    licence = check_version(source).get("licence")
    if licence == NO_LICENCE or not licence:
        raise StoreError(
            f"{source.where}: its licence is {licence or 'missing'}, without one others may not use it; "
            "state one when sealing: "
            "obygaze store seal NAME --licence CC-BY-4.0 (or another) --store-version 1.0.1"
        )
    if absent_files(source):
        raise StoreError(f"{source.where}: is a partial copy; push the whole store")
    url = as_url(destination)
    if url is None:
        return str(download(source, Path(destination), progress=progress).path)
    if url.startswith("s3://"):
        return push_to_s3(source, url, progress)
    if url.startswith("hf://"):
        _check_all(source)
        return push_to_hub(source, url)
    raise StoreError(
        f"{url}: nothing can be pushed over HTTP; copy the folder, or its zip, to where it is served from"
    )


def _check_all(source: FolderFiles) -> None:
    """Refuse a damaged store before it is published."""
    for name, expected in listed(source).items():
        if digest_of(source, name) != expected:
            raise StoreError(
                f"{source.where}/{name}: is not what its digest says; "
                f"run: obygaze store verify --full {source.where}"
            )


def push_to_s3(source: FolderFiles, url: str, progress: FileProgress | None = None) -> str:
    """Upload the files that bucket and journal do not both have, the list of digests last."""
    digests = {**listed(source), TAG_DIGESTS: digest_of(source, TAG_DIGESTS)}
    journal = journal_path(source, url)
    require_locks(journal)
    journal.touch()
    with locked(journal, wait=False) as ours:
        if not ours:
            raise StoreError(f"{journal}: another process is pushing this store there; wait for it")
        known = _read_journal(journal)
        with closing(LineJournal(journal)) as lines:
            _Push(source, url, digests, lines, progress).run(known)
        journal.unlink()
    return url


def journal_path(source: FolderFiles, url: str) -> Path:
    """Return the journal of a push: beside the store, which itself never changes."""
    name = f"{source.path.name}.pushing-{hashlib.sha256(url.encode()).hexdigest()[:16]}.jsonl"
    return source.path.absolute().with_name(name)


class _Push:
    def __init__(
        self,
        source: FolderFiles,
        url: str,
        digests: Mapping[str, str],
        journal: LineJournal,
        progress: FileProgress | None,
    ) -> None:
        self._source, self._url, self._digests = source, url, digests
        self._journal, self._progress = journal, progress
        self._store = connect(url)
        self._lock, self._done, self._sent = Lock(), 0, 0

    def run(self, known: Mapping[str, tuple[object, object, object]]) -> None:
        there = self._list()
        self._refuse_another(there)
        if DIGESTS in there:  # it is uploaded last, so only files of another size are uploaded again
            rest = {name for name in self._digests if there.get(name, (-1,))[0] != self._source.size(name)}
        else:
            rest = {
                name
                for name, digest in self._digests.items()
                if name not in there or known.get(name) != (digest, *there[name])
            }
        self._done = len(self._digests) - len(rest)
        in_threads(self._upload, sorted(rest - {DIGESTS, TAG_DIGESTS}), WRITERS)
        for name in (TAG_DIGESTS, DIGESTS):
            if name in rest:
                self._upload(name)

    def _list(self) -> dict[str, tuple[int, str | None]]:
        import obstore  # noqa: PLC0415 - obygaze[remote]

        with asking(self._url, "LIST"):
            objects = [entry for page in obstore.list(self._store, chunk_size=1000) for entry in page]
        return {entry["path"]: (entry["size"], entry["e_tag"]) for entry in objects}

    def _refuse_another(self, there: Mapping[str, object]) -> None:
        import obstore  # noqa: PLC0415 - obygaze[remote]

        if foreign := sorted(there.keys() - self._digests.keys()):
            raise StoreError(
                f"{self._url}: {foreign[0]} is there, which this store does not have; push to another place"
            )
        if DIGESTS in there:
            with asking(self._url, DIGESTS):
                data = obstore.get(self._store, DIGESTS).bytes().to_bytes()
            if hashlib.sha256(data).hexdigest() != self._digests[DIGESTS]:
                raise StoreError(
                    f"{self._url}: another store is there, with another fingerprint; push to another place"
                )

    def _upload(self, name: str) -> None:
        import obstore  # noqa: PLC0415 - obygaze[remote]

        data, digest = self._source.read(name), self._digests[name]
        if hashlib.sha256(data).hexdigest() != digest:
            raise StoreError(
                f"{self._source.where}/{name}: is not what its digest says; "
                f"run: obygaze store verify --full {self._source.where}"
            )
        with asking(self._url, name):
            e_tag = obstore.put(self._store, name, data)["e_tag"]
        with self._lock:
            entry = {"name": name, "sha256": digest, "size": len(data), "e_tag": e_tag}
            self._journal.append(entry, force=False)
            self._done += 1
            self._sent += len(data)
            if self._progress:
                self._progress(self._done, len(self._digests), self._sent)


def _read_journal(path: Path) -> Mapping[str, tuple[object, object, object]]:
    """Return name -> (digest, size, entity tag) of uploaded files; a torn line only costs an upload."""
    entries = [entry for _, entry in read_lines(path) if entry]
    return {str(entry["name"]): (entry["sha256"], entry["size"], entry["e_tag"]) for entry in entries}


def push_to_hub(source: FolderFiles, url: str) -> str:
    """Upload a store into a dataset repository, its lists of digests last; return its place, with the commit.

    The library skips what is there already, so that a stopped push resumes.
    """
    with naming_extra(url):
        from huggingface_hub import HfApi  # noqa: PLC0415 - obygaze[remote]

    target = place_of(url)
    if target.commit:
        raise StoreError(f"{url}: leave out the revision, a push makes one")
    last = [DIGESTS, TAG_DIGESTS]
    within = target.folder.rstrip("/") or None
    with asking_hub(url):
        api = HfApi()
        api.create_repo(target.repository, repo_type="dataset", exist_ok=True)
        for what, only, all_but in (("files", None, last), ("digests", last, None)):
            done = api.upload_folder(
                repo_id=target.repository,
                repo_type="dataset",
                folder_path=source.path,
                path_in_repo=within,
                commit_message=f"{source.name}: {what}",
                allow_patterns=only,
                ignore_patterns=all_but,
            )
    return replace(target, commit=done.oid).where
