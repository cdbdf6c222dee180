"""Define the layout of a sealed store's arrays, and read strings and shards."""

import atexit
import os
from io import FileIO
from typing import Any

import numpy as np
import zarr
from fastcrc.crc32 import iscsi as crc32c
from numcodecs.vlen import VLenUTF8
from numcodecs.zstd import Zstd
from numpy.typing import NDArray
from zarr.codecs import BytesCodec, Crc32cCodec, VLenUTF8Codec, ZstdCodec
from zarr.core import sync

from obygaze_features.errors import StoreError
from obygaze_features.store.format import ARRAYS, TABLE, block_rows
from obygaze_features.store.store_files import PIECE, FolderFiles, StoreFiles, gone

if not __debug__:  # zarr's assertions have effects: without them a whole store looks damaged
    raise StoreError("stores can't be read by python -O: start it without -O and PYTHONOPTIMIZE")

_BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
_CRC32C = {"name": "crc32c"}
_ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}


@atexit.register
def _stop_zarr() -> None:
    """Wait for zarr's thread: zarr gives it 0.2 s, and on a busy machine ends a program with a traceback."""
    loop, thread = sync.loop[0], sync.iothread[0]
    if loop is not None and thread is not None:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def create_array(
    node: zarr.Group, name: str, shape: tuple[int, ...], dtype: str, dimension_names: tuple[str, ...]
) -> zarr.Array[Any]:
    """Create an array of a group; its first dimension is the clips."""
    block = (block_rows(name, shape[0]), *shape[1:])
    sharded = ARRAYS[name].sharded
    text = dtype == "string"
    return node.create_array(
        name,
        shape=shape,
        dtype=dtype,
        chunks=(1, *shape[1:]) if sharded else block,
        shards=block if sharded else None,
        serializer=VLenUTF8Codec()
        if text
        else BytesCodec(endian="little" if np.dtype(dtype).itemsize > 1 else None),
        compressors=[ZstdCodec(level=3, checksum=False), Crc32cCodec()] if text else [Crc32cCodec()],
        fill_value=ARRAYS[name].fill,
        dimension_names=dimension_names,
        config={"write_empty_chunks": True},
    )


def array_layout(
    name: str, shape: tuple[int, ...], dtype: str, dimension_names: tuple[str, ...]
) -> dict[str, object]:
    """Return the metadata that the format demands of an array, without the fields that may be left out."""
    block = [block_rows(name, shape[0]), *shape[1:]]
    codecs: list[object] = [_BYTES, _CRC32C]
    if dtype == "string":
        codecs = [{"name": "vlen-utf8"}, _ZSTD, _CRC32C]
    elif dtype == "uint8":
        codecs = [{"name": "bytes"}, _CRC32C]
    elif ARRAYS[name].sharded:
        inner = {
            "chunk_shape": [1, *shape[1:]],
            "codecs": codecs,
            "index_codecs": codecs,
            "index_location": "end",
        }
        codecs = [{"name": "sharding_indexed", "configuration": inner}]
    fill = ARRAYS[name].fill
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": block}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "NaN" if isinstance(fill, float) else fill,
        "codecs": codecs,
        "dimension_names": list(dimension_names),
    }


LAYOUT = ("chunk_grid", "chunk_key_encoding", "codecs")
"""What of an array's metadata says how its bytes lie."""


def lean(value: Any) -> Any:
    """Leave out empty fields, at any depth: libraries differ in whether they write them."""
    if isinstance(value, dict):
        kept = {key: lean(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None and item not in ({}, [])}
    return [lean(item) for item in value] if isinstance(value, list | tuple) else value


def row_view(values: NDArray[Any]) -> memoryview:
    """Return a row's bytes as they are digested and stored, little-endian, C order; copied only if needed."""
    plain = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return plain.reshape(-1).view(np.uint8).data


_PIECE = 1 << 17  # numbers checked together: they stay in the processor's cache


def all_finite(values: NDArray[Any]) -> bool:
    """Return whether no value is NaN or inf; of float16 by the bits, which is seven times as fast as numpy.

    Examples
    --------
    >>> all_finite(np.array([1.0, 65504.0], np.float16)), all_finite(np.array([np.inf], np.float16))
    (True, False)
    """
    if values.dtype.kind != "f":
        return True
    if values.dtype.itemsize != 2:
        return bool(np.isfinite(values).all())
    bits = np.ascontiguousarray(values).reshape(-1).view(np.uint16)
    if values.dtype.byteorder == ">":
        bits = bits.byteswap()
    for first in range(0, len(bits), _PIECE):
        piece = bits[first : first + _PIECE]  # the two largest of each sign's bits: nothing is copied
        if int(piece.max()) >= 0xFC00 or int(piece.view(np.int16).max()) >= 0x7C00:
            return False
    return True


# --- reading strings within bounds
# Zarr trusts the sizes in a chunk of strings: a chunk of 17 bytes can make it allocate 10 GB.
# ---------------------------------------------------------------------------
FEW = 1 << 20
"""Bytes of strings in one chunk up to which the size of the table of clips is not checked."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def read_strings(files: StoreFiles, folder: str, chunk: int, rows: range) -> NDArray[Any]:
    """Read some rows of an array of strings: vlen-utf8, Zstandard, CRC-32C.

    Every string stands in the table of clips too, so a chunk that would be larger than it is refused unread.

    Raises
    ------
    StoreError
        If a chunk is missing, damaged, larger than the table, or has another count of strings.
    """
    strings: list[str] = []
    first = rows.start // chunk * chunk
    for start in range(first, rows.stop, chunk):
        strings += _read_strings(files, f"{folder}/c/{start // chunk}", chunk)
    return np.array(strings[rows.start - first : rows.stop - first], np.dtypes.StringDType())


def _read_strings(files: StoreFiles, name: str, count: int) -> list[str]:
    def refuse_more(size: int) -> None:
        if size > FEW and size > (most := files.size(TABLE) + 4 * (count + 1)):
            raise StoreError(
                f"{files.where}/{name}: this chunk claims more than {most} bytes of strings, which {TABLE} "
                f"does not have; run: obygaze store verify {files.where}"
            )

    stored = bytearray()
    try:
        for block in files.stream(name):
            stored += block
            refuse_more(len(stored))
    except FileNotFoundError:
        raise gone(files, name) from None
    data, checksum = bytes(stored[:-4]), bytes(stored[-4:])
    size = _zstd_size(data)
    refuse_more(size or 0)
    wrong: object = "its checksum is wrong, or it does not say how long it is"
    if size is not None and crc32c(data).to_bytes(4, "little") == checksum:
        try:
            return _split_strings(bytes(Zstd().decode(data)), count)
        except (ValueError, RuntimeError) as error:
            wrong = error
    raise StoreError(
        f"{files.where}/{name}: this chunk is damaged ({wrong}); "
        f"run: obygaze store verify --full {files.where}"
    )


def _zstd_size(data: bytes) -> int | None:
    """Return the decompressed size that a Zstandard frame states (RFC 8878, 3.1.1.1), or None."""
    if data[:4] != _ZSTD_MAGIC or len(data) < 5:
        return None
    flags = data[4]
    alone = flags >> 5 & 1  # a single segment: no window descriptor
    octets = (alone, 2, 4, 8)[flags >> 6]
    at = 5 + (not alone) + (0, 1, 2, 4)[flags & 3]
    size = int.from_bytes(data[at : at + octets], "little") + 256 * (octets == 2)
    return size if size and len(data) >= at + octets else None


def _split_strings(data: bytes, count: int) -> list[str]:
    """Decode strings; numcodecs would take memory for as many as a chunk claims."""
    if int.from_bytes(data[:4], "little") != count:
        raise ValueError(f"it has another count of strings than its {count} rows")
    strings: list[str] = VLenUTF8().decode(data).tolist()
    return strings


# --- reading rows of shards into place
# Zarr decodes a shard's rows in tasks of its own and copies them [4.8 MB of tokens: 6.2 ms, here 1.0].
# ---------------------------------------------------------------------------
def read_shards(
    files: FolderFiles, folder: str, array: zarr.Array[Any], block: int, rows: range
) -> NDArray[Any]:
    """Read some rows of an array of floats with `block` clips in a shard; absent rows are NaN.

    Raises
    ------
    StoreError
        If a shard is missing, or an index or a row has a wrong checksum.
    """
    row = array.shape[1:]
    values = np.empty((len(rows), *row), np.dtype(array.dtype).newbyteorder("<"))
    buffer = values.reshape(len(rows), -1).view(np.uint8)
    for number in range(rows.start // block, -(-rows.stop // block)):
        name = "/".join([folder, "c", str(number), *["0"] * len(row)])
        first = max(rows.start, number * block)
        mine = range(first - number * block, min(rows.stop, (number + 1) * block) - number * block)
        try:
            shard = (files.path / name).open("rb", buffering=0)
        except FileNotFoundError:
            raise gone(files, name) from None
        with shard:
            good = _read_shard(shard, block, mine, buffer[first - rows.start :])
        if not good:
            raise StoreError(
                f"{files.where}/{name}: this chunk is damaged; run: obygaze store verify --full {files.where}"
            )
    return values


_ABSENT = 2**64 - 1


def _read_shard(shard: FileIO, block: int, rows: range, buffer: NDArray[np.uint8]) -> bool:
    """Fill a buffer [n, bytes] with rows of an open shard; return whether all checksums are right."""
    size = buffer.shape[1]
    index_bytes = 16 * block
    start = shard.seek(0, os.SEEK_END) - index_bytes - 4
    shard.seek(max(start, 0))
    data = shard.read(index_bytes + 4)
    if start < 0 or len(data) != index_bytes + 4 or crc32c(data[:-4]).to_bytes(4, "little") != data[-4:]:
        return False
    index = np.frombuffer(data[:-4], "<u8").reshape(block, 2).tolist()
    for position, row in enumerate(rows):
        offset, length = index[row]
        if offset == _ABSENT and length == _ABSENT:
            buffer[position] = 0xFF  # every float of which all bits are set is NaN
            continue
        if length != size + 4 or offset + length > start:
            return False
        checksum = 0
        shard.seek(offset)
        view = buffer[position].data
        for first in range(0, size, PIECE):
            part = view[first : first + PIECE]
            if shard.readinto(part) != len(part):
                return False
            checksum = crc32c(part, checksum)
        if shard.read(4) != checksum.to_bytes(4, "little"):
            return False
    return True
