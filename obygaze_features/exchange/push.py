"""Copy a sealed store to a folder, to S3 or to the Hub; a copy that was stopped resumes."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from obygaze_features.checked_lines import encode_line, read_lines
from obygaze_features.errors import StoreError
from obygaze_features.exchange.publish import folder_of
from obygaze_features.exchange.transfer import FileProgress, download, in_threads
from obygaze_features.io import NO_LICENCE
from obygaze_features.locks import locked, require_locks
from obygaze_features.store.files_hub import asking_hub, naming_extra, place_of
from obygaze_features.store.files_remote import as_url, asking, connect
from obygaze_features.store.format import DIGESTS, TAG_DIGESTS
from obygaze_features.store.store import Place, check_version
from obygaze_features.store.store_files import FolderFiles, absent_files, digest_of, listed


def push(store: Place, destination: Path | str, progress: FileProgress | None = None) -> str:
    """Copy a sealed store to `destination` and return where it is.

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
    """Find damage before it is published."""
    for name, said in listed(source).items():
        if digest_of(source, name) != said:
            raise StoreError(
                f"{source.where}/{name}: is not what its digest says; "
                f"run: obygaze store verify --full {source.where}"
            )


WRITERS = 4
"""Uploads under way at a time; each holds one object, at most a shard, in memory."""


def push_to_s3(source: FolderFiles, url: str, progress: FileProgress | None = None) -> str:
    """Upload the files that bucket and journal do not both have, the list of digests last."""
    digests = {**listed(source), TAG_DIGESTS: digest_of(source, TAG_DIGESTS)}
    journal = journal_path(source, url)
    require_locks(journal)
    journal.touch()
    with locked(journal, wait=False) as ours, journal.open("ab") as notes:
        if not ours:
            raise StoreError(f"{journal}: another process is pushing this store there; wait for it")
        _Push(source, url, digests, notes, progress).run(_read_journal(journal))
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
        notes: BinaryIO,
        progress: FileProgress | None,
    ) -> None:
        self._source, self._url, self._digests = source, url, digests
        self._notes, self._progress = notes, progress
        self._store = connect(url)
        self._lock, self._done, self._sent = Lock(), 0, 0

    def run(self, known: Mapping[str, tuple[object, object, object]]) -> None:
        there = self._list()
        self._refuse_another(there)
        if DIGESTS in there:  # it went last, so all was there: what still has its size is left alone
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
            found = [one for some in obstore.list(self._store, chunk_size=1000) for one in some]
        return {one["path"]: (one["size"], one["e_tag"]) for one in found}

    def _refuse_another(self, there: Mapping[str, object]) -> None:
        import obstore  # noqa: PLC0415 - obygaze[remote]

        if foreign := sorted(there.keys() - self._digests.keys()):
            raise StoreError(
                f"{self._url}: {foreign[0]} is there, which this store does not have; push to another place"
            )
        if DIGESTS in there:
            with asking(self._url, DIGESTS):
                found = obstore.get(self._store, DIGESTS).bytes().to_bytes()
            if hashlib.sha256(found).hexdigest() != self._digests[DIGESTS]:
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
            self._notes.write(
                encode_line({"name": name, "sha256": digest, "size": len(data), "e_tag": e_tag})
            )
            self._notes.flush()
            self._done += 1
            self._sent += len(data)
            if self._progress:
                self._progress(self._done, len(self._digests), self._sent)


def _read_journal(path: Path) -> Mapping[str, tuple[object, object, object]]:
    """Return name -> (digest, size, entity tag) of what was put; a torn line only costs an upload."""
    entries = [entry for _, entry in read_lines(path) if entry]
    return {str(entry["name"]): (entry["sha256"], entry["size"], entry["e_tag"]) for entry in entries}


def push_to_hub(source: FolderFiles, url: str) -> str:
    """Upload a store into a dataset repository, its lists of digests last; return its place, with the commit.

    The library skips what is there already, so that a stopped push resumes.
    """
    with naming_extra(url):
        from huggingface_hub import HfApi  # noqa: PLC0415 - obygaze[remote]

    place = place_of(url)
    if place.commit:
        raise StoreError(f"{url}: leave out the revision, a push makes one")
    last = [DIGESTS, TAG_DIGESTS]
    within = place.folder.rstrip("/") or None
    with asking_hub(url):
        api = HfApi()
        api.create_repo(place.repository, repo_type="dataset", exist_ok=True)
        for what, only, all_but in (("files", None, last), ("digests", last, None)):
            done = api.upload_folder(
                repo_id=place.repository,
                repo_type="dataset",
                folder_path=source.path,
                path_in_repo=within,
                commit_message=f"{source.name}: {what}",
                allow_patterns=only,
                ignore_patterns=all_but,
            )
    return replace(place, commit=done.oid).where
