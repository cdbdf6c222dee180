"""Read a store, and refuse what comes from another store that was put at its address or path meanwhile.

At an address, the list of digests (manifest-sha256.txt) is read once, before the first array, and kept. It
names the content of each file below `data/`, so that all that is read is of one store:

- a whole file must have the digest that the kept list has for it, which takes no request;
- a part of a file, such as a clip's tokens, has no digest. After the parts of a read have come, one request
  for the small list of lists (tagmanifest-sha256.txt) shows whether the store there is still the same. This
  sees a store that is exchanged at once, as by renaming its folder; not one that is overwritten file by file
  while its lists are still the old ones.

In a folder, the time and size of that list are kept, as they cost next to nothing, and compared after each
read: whoever writes a store writes its list of digests.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

from obygaze_features.errors import FileEndsError, StoreError
from obygaze_features.store.format import DIGESTS, FEATURES, PAYLOAD, TAG_DIGESTS, ZARR_METADATA
from obygaze_features.store.store_files import (
    FolderFiles,
    StoreFiles,
    damaged,
    parse_digests,
    read_required,
)

_ROOT_METADATA = f"{FEATURES}/{ZARR_METADATA}"
"""The file that is read when a store is opened."""
_NOT_THERE = (FileNotFoundError, FileEndsError)
"""What says that a file, or the part of a zip in which it was, is not there, or not any more."""


Files = TypeVar("Files", bound=StoreFiles)


class _KeptList(NamedTuple):
    """The list of digests as it was first read: file -> SHA-256, and the SHA-256 of the list itself."""

    digests: dict[str, str]
    fingerprint: str


class _ListOfFolder(NamedTuple):
    """When the list of digests in a folder was last written, and its size in bytes."""

    changed_ns: int
    n_bytes: int


class _AsOpened(Generic[Files]):
    """Files of a store that must stay those of the store that was opened.

    Attributes
    ----------
    files
        The files as they are now.
    where, name, readers
        Those of `files`.
    """

    def __init__(self, files: Files) -> None:
        """Hold the files; nothing is read."""
        self.files = files
        self.where = files.where
        self.name = files.name
        self.readers = files.readers

    def names(self) -> list[str]:
        """List the files; where nothing can be listed, those that the lists of digests name."""
        return self.files.names()

    def is_plain(self, name: str) -> bool:
        """Return whether there is an ordinary file of this name."""
        return self.files.is_plain(name)

    def size(self, name: str) -> int:
        """Return the size of a file in bytes, as a server states it."""
        return self.files.size(name)


class FolderAsOpened(_AsOpened[FolderFiles]):
    """The files of a store in a folder, which must stay those of the store that was opened."""

    def __init__(self, files: FolderFiles) -> None:
        """Store what tells the store in the folder from one that may be put there later.

        Whoever writes a store writes its list of digests anew. So the time and size of this file are stored
        and, as a file may be touched or copied without change, also the content of the small file that has
        the digest of the list.
        """
        super().__init__(files)
        self._list_as_opened = self._state_of_list()
        self._tag_digests_as_opened = self._read_tag_digests()

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Read a file, or the part from `start` to `stop`; a negative start counts from its end.

        Raises
        ------
        StoreError
            Another store was put in the folder. This is checked after reading: a check before it would miss
            a store that is put there in between.
        FileNotFoundError
            The file is not there, though the store is still the one that was opened.
        """
        with self._blame_another_store_for_missing_file():
            data = self.files.read(name, start, stop)
        self.refuse_another_store()
        return data

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a file from `start` in blocks.

        At the end, raise a StoreError if another store was put in the folder meanwhile: only then is it known
        that no block was of that store. So nothing should be made of the blocks before the end.
        """
        with self._blame_another_store_for_missing_file():
            yield from self.files.stream(name, start)
        self.refuse_another_store()

    def open(self, name: str) -> FileIO:
        """Open a file, to read parts of it.

        Whoever reads calls `refuse_another_store` after the last part: another store may be put in the folder
        while the file is read, and only then it is known that no part was of that one.
        """
        with self._blame_another_store_for_missing_file():
            return self.files.open(name)

    @contextmanager
    def _blame_another_store_for_missing_file(self) -> Iterator[None]:
        """If a file is not there, say that another store is in the folder, where that is the reason.

        The FileNotFoundError of the `with` block is replaced by a StoreError if the store was exchanged, and
        stays if it was not.
        """
        try:
            yield
        except FileNotFoundError:
            self.refuse_another_store()
            raise

    def refuse_another_store(self) -> None:
        """Raise a StoreError unless the store in the folder is still the one that was opened.

        A store has a list of the digests of its files (manifest-sha256.txt). As long as that file has the
        time and size that it had when the store was opened, it is the same store.

        With another time it may be the same store too, if somebody copied it over itself, or touched it. Then
        a small file decides that has the digest of the list (tagmanifest-sha256.txt). A folder without a
        list, such as one that is still being written, is not compared.
        """
        had_no_list = self._list_as_opened is None
        if had_no_list or self._state_of_list() == self._list_as_opened:
            return
        tag_digests = self._read_tag_digests()  # None if the file is gone
        is_same_list = tag_digests is not None and tag_digests == self._tag_digests_as_opened
        if not is_same_list:
            raise another_store_error(self.where)

    def _state_of_list(self) -> _ListOfFolder | None:
        """Return the time and size that the list of digests has at this moment; None if it is not there."""
        try:
            status = (self.files.path / DIGESTS).stat()
        except OSError:
            return None
        return _ListOfFolder(status.st_mtime_ns, status.st_size)

    def _read_tag_digests(self) -> bytes | None:
        """Return what is in tagmanifest-sha256.txt at this moment; None if it cannot be read.

        This small file has the digest of the list of digests, which itself has those of the store's files.
        """
        try:
            with self.files.open(TAG_DIGESTS) as file:
                return file.read()
        except (OSError, StoreError):
            return None


class FilesAsOpened(_AsOpened[StoreFiles]):
    """The files of a store at an address, which must stay those of the store that was opened."""

    def __init__(self, files: StoreFiles, root_digest: str) -> None:
        """Read nothing yet.

        Parameters
        ----------
        files
            The files at the address.
        root_digest
            SHA-256 of `_ROOT_METADATA` as it was when the store was opened.
        """
        super().__init__(files)
        self._root_digest = root_digest
        self._kept_list: _KeptList | None = None
        self._lock = Lock()  # threads that read first must not keep two lists

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the list of digests of the store that was opened."""
        return self._first_list().fingerprint

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Read a file, or the part from `start` to `stop`; a negative start counts from its end.

        A whole file is compared with its digest. Whoever reads parts calls `refuse_another_store` when the
        last one has come.

        Raises
        ------
        StoreError
            The whole file is not the one of the store that was opened.
        """
        # The list of digests is read before any file, and kept: later files must be those that it lists.
        listed = self._first_list()
        try:
            data = self.files.read(name, start, stop)
        except _NOT_THERE:
            self.refuse_another_store()  # which may be why the file is not there
            raise
        is_whole = start == 0 and stop is None
        if is_whole:
            self._refuse_other_content(name, hashlib.sha256(data).hexdigest(), listed)
        return data

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a file from `start` in blocks; at its end, a whole file is compared with its digest.

        Raises
        ------
        StoreError
            The file is not there, or has another digest, because another store is at the address now.
        """
        listed = self._first_list()  # before the file: see `read`
        digest = hashlib.sha256()
        try:
            for block in self.files.stream(name, start):
                digest.update(block)
                yield block
        except _NOT_THERE:
            self.refuse_another_store()  # which may be why the file is not there
            raise
        is_whole = start == 0
        if is_whole:
            self._refuse_other_content(name, digest.hexdigest(), listed)

    def refuse_another_store(self) -> None:
        """Raise a StoreError unless the store at the address is still the one that was opened.

        One small file is requested. It lists the digest of the list of digests, and so names the whole store.
        """
        kept = self._first_list()
        try:
            tag_digests, _ = parse_digests(self.files.read(TAG_DIGESTS))
        except _NOT_THERE:
            raise another_store_error(self.where) from None
        if tag_digests.get(DIGESTS) != kept.fingerprint:
            raise another_store_error(self.where)

    def _first_list(self) -> _KeptList:
        """Return the list of digests as it was first read; it must name the metadata of the opened store."""
        with self._lock:
            if self._kept_list is None:
                self._kept_list = self._read_list()
            return self._kept_list

    def _read_list(self) -> _KeptList:
        """Read the list of digests, and refuse one that is not of the store that was opened.

        When the store was opened, one file of metadata was read (`_ROOT_METADATA`), and its digest was kept:
        the list must have this digest for it.
        """
        data = read_required(self.files, DIGESTS)
        digests, _ = parse_digests(data)
        if digests.get(_ROOT_METADATA) == self._root_digest:
            return _KeptList(digests, hashlib.sha256(data).hexdigest())

        # Either there is another store now, with other metadata; or the metadata are the same as at first,
        # and never were what the list says.
        root_metadata_now = read_required(self.files, _ROOT_METADATA)
        was_exchanged = hashlib.sha256(root_metadata_now).hexdigest() != self._root_digest
        if was_exchanged:
            raise another_store_error(self.where)
        raise damaged(f"{self.where}/{_ROOT_METADATA}: not as {DIGESTS} lists it", self.where)

    def _refuse_other_content(self, name: str, digest: str, listed: _KeptList) -> None:
        """Raise a StoreError if a file below `data/` has another digest than the list of digests has for it.

        Parameters
        ----------
        name
            The file. Those beside `data/` are not in this list, and are not compared.
        digest
            SHA-256 of the file as it was read.
        listed
            The list of digests, as it was first read.
        """
        is_listed = name.startswith(f"{PAYLOAD}/")
        if not is_listed or digest == listed.digests.get(name):
            return
        self.refuse_another_store()  # raises if there is another store now; else the file is damaged
        raise damaged(f"{self.where}/{name}: not as {DIGESTS} lists it; it is damaged", self.where)


def another_store_error(location: str) -> StoreError:
    """Return the error for an address or path at which there is no longer the store that was opened."""
    return StoreError(
        f"{location}: the store at this address is another than the one that was opened, or gone: open it "
        "again"
    )


LocalFiles = FolderFiles | FolderAsOpened
"""Files of a folder, of which a file can be opened and read in parts."""


def refuse_another_store(files: StoreFiles) -> None:
    """Raise a StoreError if another store was put in the place of one whose files must stay as opened.

    Other files, such as those of a zip, are not compared.
    """
    if isinstance(files, FilesAsOpened | FolderAsOpened):
        files.refuse_another_store()
