"""A sealed store's files as Zarr sees them: read-only, and a missing chunk is an error, never NaN."""

import asyncio
from collections.abc import AsyncIterator, Iterable

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype

from obygaze_features.store.layout import FEATURES
from obygaze_features.store.reading.absent import gone
from obygaze_features.store.reading.objects import Objects

NOT_THERE = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class ZarrView(Store):
    """Everything below data/features.zarr of a sealed store."""

    supports_writes = False
    supports_deletes = False
    supports_listing = True

    def __init__(self, objects: Objects) -> None:
        super().__init__(read_only=True)
        self._objects = objects

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZarrView) and other._objects is self._objects

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ZarrView({self._objects.where!r})"

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Read a file or a part of it; None for metadata that are not there, an error for a chunk."""
        name = f"{FEATURES}/{key}"
        try:
            data = await asyncio.to_thread(self._objects.read, name, *_span(byte_range))
        except NOT_THERE:
            if "c" in key.split("/")[2:3]:
                raise gone(self._objects, name) from None
            return None
        return prototype.buffer.from_bytes(data)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Read parts of several files."""
        return await asyncio.gather(*(self.get(key, prototype, span) for key, span in key_ranges))

    async def exists(self, key: str) -> bool:
        """Whether there is such a file."""
        try:
            await asyncio.to_thread(self._objects.size, f"{FEATURES}/{key}")
        except NOT_THERE:
            return False
        return True

    async def set(self, _key: str, _value: Buffer) -> None:
        """Refuse: a sealed store is never written to."""
        self._check_writable()

    async def delete(self, _key: str) -> None:
        """Refuse: a sealed store is never written to."""
        self._check_writable()

    async def list(self) -> AsyncIterator[str]:
        """List every file."""
        for name in await asyncio.to_thread(self._objects.names):
            if name.startswith(f"{FEATURES}/"):
                yield name.removeprefix(f"{FEATURES}/")

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """List the files whose names begin so."""
        async for key in self.list():
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """List what lies directly in a folder."""
        top = f"{prefix.rstrip('/')}/" if prefix.strip("/") else ""
        found = {key.removeprefix(top).partition("/")[0] async for key in self.list_prefix(top)}
        for name in sorted(found):
            yield name


def _span(wanted: ByteRequest | None) -> tuple[int, int | None]:
    match wanted:
        case RangeByteRequest():
            return wanted.start, wanted.end
        case OffsetByteRequest():
            return wanted.offset, None
        case SuffixByteRequest():
            return -wanted.suffix, None
        case _:
            return 0, None
