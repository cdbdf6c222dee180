"""Reading plain chunks straight into one array.

Zarr reads any layout, one task a chunk. The layout of a sealed store is known: a whole array of it is a few
files that can be read into place [7,637 vectors of 512: 1.9 ms, zarr 16 ms, np.load 1.4 ms]. What is laid out
otherwise (shards, compression) is left to zarr.
"""

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.store.checksum import crc32c
from obygaze_features.store.errors import StoreError
from obygaze_features.store.reading.absent import gone
from obygaze_features.store.reading.objects import Objects

_CODECS = (
    [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
    [{"name": "bytes"}, {"name": "crc32c"}],  # of single bytes
)

LINE = 64
"""Bytes in a line of the processor's cache."""


def plain_chunk(metadata: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Give the chunk shape of an array that `read_chunks` can read: bytes and CRC-32C; else None."""
    shape, chunk = tuple(metadata["shape"]), tuple(metadata["chunk_grid"]["configuration"]["chunk_shape"])
    separator = metadata["chunk_key_encoding"].get("configuration", {}).get("separator", "/")
    codecs = [{key: value for key, value in codec.items() if value} for codec in metadata["codecs"]]
    regular = metadata["chunk_grid"]["name"] == "regular" and separator == "/" and chunk[1:] == shape[1:]
    return chunk if regular and codecs in _CODECS else None


def read_chunks(
    objects: Objects, folder: str, chunk: tuple[int, ...], dtype: np.dtype[Any], rows: range
) -> NDArray[Any]:
    """Read some rows of an array with this chunk shape; the first of them begins a chunk.

    Raises
    ------
    StoreError
        If a chunk is missing, has another size, or a wrong checksum.
    """
    little = dtype.newbyteorder("<")
    size, *row = chunk
    # Room for whole chunks: the last one is read into place like the others.
    whole = _aligned((-(-len(rows) // size) * size, *row), little)

    def read(first: int) -> None:
        name = "/".join([folder, "c", str(first // size), *["0"] * len(row)])
        _read_chunk(objects, name, whole[first - rows.start : first - rows.start + size])

    if objects.readers == 1 or len(rows) <= size:
        for first in rows[::size]:
            read(first)
    else:
        with ThreadPoolExecutor(objects.readers) as threads:  # none outlives the call: the process may fork
            for _ in threads.map(read, rows[::size]):
                pass
    return whole[: len(rows)]


def _aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Make room that begins with a line of the cache: files are copied there up to 1.6 times faster."""
    size = math.prod(shape) * dtype.itemsize
    room = np.empty(size + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + size].view(dtype).reshape(shape)


def _read_chunk(objects: Objects, name: str, whole: NDArray[Any]) -> None:
    """Fill a contiguous array with a chunk."""
    data = whole.reshape(-1).view(np.uint8)
    found = 0

    def check(part: memoryview) -> None:
        nonlocal found
        found = crc32c(part, found)

    try:
        size, checksum = objects.fill(name, data.data, check)
    except FileNotFoundError:
        raise gone(objects, name) from None
    if size != data.size or checksum != found.to_bytes(4, "little"):
        raise StoreError(
            f"{objects.where}/{name}: this chunk is damaged; run: obygaze store verify --full {objects.where}"
        )
