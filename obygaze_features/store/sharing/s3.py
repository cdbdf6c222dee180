"""Pushing a store to S3: one LIST and a local journal say what is there, not a question an object."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from obygaze_features.store.errors import StoreError
from obygaze_features.store.files import locked
from obygaze_features.store.layout import MANIFEST, TAG_MANIFEST
from obygaze_features.store.lines import frame, read_lines
from obygaze_features.store.reading.listing import listed
from obygaze_features.store.reading.objects import Folder, digest_of
from obygaze_features.store.reading.remote import asking, connect
from obygaze_features.store.sharing.threads import each
from obygaze_features.store.sharing.transfer import Progress

WRITERS = 4
"""Uploads under way at a time; each holds one object, at most a shard, in memory."""


def push_to_s3(source: Folder, url: str, progress: Progress | None = None) -> str:
    """Upload what the bucket and our journal do not agree to be there, the digest manifest last."""
    digests = {**listed(source), TAG_MANIFEST: digest_of(source, TAG_MANIFEST)}
    journal = journal_path(source, url)
    journal.touch()
    with locked(journal, wait=False) as ours, journal.open("ab") as notes:
        if not ours:
            raise StoreError(f"{journal}: another process is pushing this store there; wait for it")
        _Push(source, url, digests, notes, progress).run(_read_journal(journal))
        journal.unlink()
    return url


def journal_path(source: Folder, url: str) -> Path:
    """Say where it is noted what is at a URL already: beside the store, which itself never changes."""
    name = f"{source.path.name}.pushing-{hashlib.sha256(url.encode()).hexdigest()[:16]}.jsonl"
    return source.path.absolute().with_name(name)


class _Push:
    def __init__(
        self,
        source: Folder,
        url: str,
        digests: Mapping[str, str],
        notes: BinaryIO,
        progress: Progress | None,
    ) -> None:
        self._source, self._url, self._digests = source, url, digests
        self._notes, self._progress = notes, progress
        self._store = connect(url)
        self._lock, self._done, self._sent = Lock(), 0, 0

    def run(self, known: Mapping[str, tuple[object, object, object]]) -> None:
        there = self._list()
        self._refuse_another(there)
        if MANIFEST in there:  # it went last, so all was there: what still has its size is left alone
            rest = {name for name in self._digests if there.get(name, (-1,))[0] != self._source.size(name)}
        else:
            rest = {
                name
                for name, digest in self._digests.items()
                if name not in there or known.get(name) != (digest, *there[name])
            }
        self._done = len(self._digests) - len(rest)
        each(self._upload, sorted(rest - {MANIFEST, TAG_MANIFEST}), WRITERS)
        for name in (TAG_MANIFEST, MANIFEST):
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
        if MANIFEST in there:
            with asking(self._url, MANIFEST):
                found = obstore.get(self._store, MANIFEST).bytes().to_bytes()
            if hashlib.sha256(found).hexdigest() != self._digests[MANIFEST]:
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
            self._notes.write(frame({"name": name, "sha256": digest, "size": len(data), "e_tag": e_tag}))
            self._notes.flush()
            self._done += 1
            self._sent += len(data)
            if self._progress:
                self._progress(self._done, len(self._digests), self._sent)


def _read_journal(path: Path) -> Mapping[str, tuple[object, object, object]]:
    """Give name -> (digest, size, entity tag) of what was put; a torn line only costs an upload."""
    entries = [entry for _, entry in read_lines(path) if entry]
    return {str(entry["name"]): (entry["sha256"], entry["size"], entry["e_tag"]) for entry in entries}
