"""Give zarr-python the sealed arrays of a store, read-only, wherever the store is.

zarr-python checks the checksum of every chunk that it reads (crc32c). A chunk that is lost it would take for
one without values; here it is refused.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Never

import zarr
from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from obygaze_features.errors import StoreError
from obygaze_features.store.files_as_opened import refuse_another_store
from obygaze_features.store.format import FEATURES
from obygaze_features.store.group import StoreOfGroups
from obygaze_features.store.store_files import chunk_of, missing_chunk_error


class SealedZarr(Store):
    """The files below `data/features.zarr` of a sealed store, as zarr-python asks for them.

    It is as read-only as the store, and pickles as the store does.
    """

    supports_writes = False
    supports_deletes = False
    supports_listing = True

    def __init__(self, store: StoreOfGroups) -> None:
        """Show a sealed store to zarr-python, which may read it and not write."""
        super().__init__(read_only=True)
        self.store = store

    def __reduce__(self) -> tuple[type["SealedZarr"], tuple[StoreOfGroups]]:
        """Pickle it as the sealed store that it shows."""
        return SealedZarr, (self.store,)

    def __eq__(self, other: object) -> bool:
        """Whether both show the same files; zarr-python demands that stores can be compared."""
        return isinstance(other, SealedZarr) and other.store.files == self.store.files

    def __hash__(self) -> int:
        """Return a hash of the store's place, which is the same for equal files."""
        return hash(self.store.where)

    def __repr__(self) -> str:
        """Name the place of the sealed store."""
        return f"SealedZarr({self.store.where!r})"

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Read a file or a part of it; None if there is no such file of metadata.

        zarr-python would take None for a chunk with nothing but fill values, so a missing chunk is an error.

        Raises
        ------
        StoreError
            If a chunk is not there, a server misbehaves, or has another store than the one that was opened.
        """
        start, stop = _range_of(byte_range)
        name = f"{FEATURES}/{key}"
        files = self.store.files_as_opened
        try:
            data = await asyncio.to_thread(files.read, name, start, stop)
            is_part = byte_range is not None
            if is_part:  # it has no digest by which another store's file would be noticed
                await asyncio.to_thread(refuse_another_store, files)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            is_chunk = chunk_of(name) is not None
            if is_chunk:
                raise missing_chunk_error(self.store.files, name) from None
            return None
        if prototype is None:
            prototype = default_buffer_prototype()
        return prototype.buffer.from_bytes(data)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Read parts of several files at a time."""
        requests = [self.get(key, prototype, byte_range) for key, byte_range in key_ranges]
        return list(await asyncio.gather(*requests))

    async def exists(self, key: str) -> bool:
        """Return whether there is such a file."""
        return key in self._keys()

    async def list(self) -> AsyncIterator[str]:
        """Yield the keys of all files."""
        for key in self._keys():
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Yield the keys that begin with a prefix."""
        for key in self._keys():
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names of files and folders directly below a prefix."""
        folder = f"{prefix.rstrip('/')}/" if prefix else ""
        names = []
        for key in self._keys():
            if key.startswith(folder):
                name, _, _ = key.removeprefix(folder).partition("/")
                names.append(name)
        for name in dict.fromkeys(names):
            yield name

    async def set(self, key: str, value: Buffer) -> Never:
        """Refuse to write."""
        del value
        raise self._sealed(key)

    async def delete(self, key: str) -> Never:
        """Refuse to delete."""
        raise self._sealed(key)

    def _keys(self) -> Iterable[str]:
        """List the files of the Zarr group, relative to it."""
        root = f"{FEATURES}/"
        return [name.removeprefix(root) for name in self.store.files.names() if name.startswith(root)]

    def _sealed(self, key: str) -> StoreError:
        """Return the error for an attempt to write or delete a file of the store."""
        return StoreError(f"{self.store.where}/{FEATURES}/{key}: a sealed store never changes")


def _range_of(request: ByteRequest | None) -> tuple[int, int | None]:
    """Return start and end of a byte request of zarr-python.

    A negative start counts from the end of the file; an end of None is the end of the file. Without a
    request, the range is the whole file.
    """
    match request:
        case RangeByteRequest(start=start, end=end):
            return start, end
        case OffsetByteRequest(offset=offset):
            return offset, None
        case SuffixByteRequest(suffix=suffix):
            return -suffix, None
    return 0, None


def as_zarr(store: StoreOfGroups) -> zarr.Group:
    """Open the arrays of a sealed store as a read-only group of zarr-python."""
    return zarr.open_group(SealedZarr(store), mode="r")
