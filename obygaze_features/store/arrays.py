"""Define the layout of a sealed store's arrays, write chunks of strings, and read chunks and shards.

The format leaves one layout for each array, in which a chunk is its rows and a checksum: no memory is taken
for more bytes than there are in the files. zarr-python reads them as they are.
"""

import json
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from functools import cache, partial
from io import SEEK_END, BytesIO, FileIO
from threading import Lock
from typing import Any, Final

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from numcodecs.vlen import VLenUTF8
from numcodecs.zstd import Zstd
from numpy.typing import NDArray

from obygaze_features.errors import ArgumentError, StoreError
from obygaze_features.schema import Count, fits
from obygaze_features.store.format import ARRAYS, RAGGED_ARRAYS, TABLE, block_rows, chunk_file, kind_of
from obygaze_features.store.store_files import READ_AT_ONCE, FolderFiles, StoreFiles, damaged, gone, guarded
from obygaze_features.templates import packaged_text

CRC_BYTES: Final = 4

_ZSTD_LEVEL = 3
"""As array.json says."""


def array_layout(
    name: str,
    shape: tuple[int, ...],
    dtype: str,
    dimension_names: tuple[str, ...],
    *,
    ragged: bool = False,
) -> dict[str, Any]:
    """Return the metadata of an array as they are written, their fields in the order of zarr-python.

    `ragged` says whether the array is in a ragged group.
    """
    document: dict[str, Any] = json.loads(_layout())
    codecs = document["codecs"].get(dtype, document["codecs"]["others"])
    if ARRAYS[name].sharded:
        inner = {"chunk_shape": [1, *shape[1:]], "codecs": codecs, "index_codecs": codecs}
        codecs = [{"name": "sharding_indexed", "configuration": {**inner, "index_location": "end"}}]
    document["chunk_grid"]["configuration"]["chunk_shape"] = [
        block_rows(name, shape[0], ragged=ragged),
        *shape[1:],
    ]
    fill = ARRAYS[name].fill
    return document | {
        "shape": list(shape),
        "data_type": dtype,
        "fill_value": "NaN" if isinstance(fill, float) else fill,
        "codecs": codecs,
        "dimension_names": list(dimension_names),
    }


@cache
def _layout() -> str:
    return packaged_text(__package__, "array.json")


LAYOUT = ("chunk_grid", "chunk_key_encoding", "codecs")
"""What of an array's metadata says how its bytes lie."""


def lean(value: Any) -> Any:
    """Leave out empty fields, at any depth: libraries differ in whether they write them."""
    if isinstance(value, dict):
        fields = {key: lean(item) for key, item in value.items()}
        return {key: item for key, item in fields.items() if item is not None and item not in ({}, [])}
    return [lean(item) for item in value] if isinstance(value, list | tuple) else value


def row_view(values: NDArray[Any]) -> memoryview:
    """Return a row's bytes as they are digested and stored, little-endian, C order; copied only if needed."""
    plain = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return plain.reshape(-1).view(np.uint8).data


_AT_ONCE = 1 << 17  # numbers checked together: they stay in the processor's cache


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
    for first in range(0, len(bits), _AT_ONCE):
        part = bits[first : first + _AT_ONCE]  # the two largest of each sign's bits: nothing is copied
        if int(part.max()) >= 0xFC00 or int(part.view(np.int16).max()) >= 0x7C00:
            return False
    return True


# --- reading
# ---------------------------------------------------------------------------
WARM = 2**22
"""Bytes of a block of tokens, whose memory is reused. Larger blocks are new pages, which cost more than
reading [16 clips of 4.8 MB at once: 1.6 ms per clip; one by one: 1.0]."""


RECENT = 2**23
"""Bytes of chunks that an array keeps, so that rows which are read one by one cost a request a chunk."""


class _RecentChunks:
    """The last chunks of an array of which a part was read, each with a checksum that was right."""

    def __init__(self) -> None:
        self._chunks: OrderedDict[int, NDArray[Any]] = OrderedDict()
        self._lock = Lock()

    def get(self, number: int) -> NDArray[Any] | None:
        """Give a chunk that is kept."""
        return self._chunks.get(number)

    def keep(self, number: int, chunk: NDArray[Any]) -> None:
        """Keep a chunk; of more than `RECENT` bytes the oldest are dropped, but not the last."""
        with self._lock:
            self._chunks[number] = chunk
            while len(self._chunks) > 1 and len(self._chunks) * chunk.nbytes > RECENT:
                self._chunks.popitem(last=False)


class SealedArray:
    """One array of a sealed store, read by rows: of clips, or of frames if it is ragged.

    Attributes
    ----------
    shape
        Its shape, the clips first, or all clips' frames.
    ragged
        Whether a row is a frame, of which clips have any number.
    dtype
        Its data type; StringDType for strings.

    Raises
    ------
    StoreError
        If the metadata are not those that sealing writes.
    """

    def __init__(
        self, files: StoreFiles, group: str, name: str, metadata: Mapping[str, Any], *, ragged: bool = False
    ) -> None:
        self._files = files
        self._name = f"{group}/{name}"
        self._where = f"{files.where}, array {self._name}"
        self.ragged = ragged and name in RAGGED_ARRAYS
        array_kind = kind_of(name, ragged=ragged)
        shape = metadata["shape"]
        kind = metadata["data_type"]
        fitting = kind in array_kind.dtypes and len(shape) == len(array_kind.dims)
        is_empty = self.ragged and shape[:1] == [0]  # no clip has features
        if not fitting or not fits(shape[1:] if is_empty else shape, list[Count]):
            raise StoreError(f"{self._where}: {kind} {shape} does not fit the format")
        self.shape: tuple[int, ...] = tuple(shape)
        self.dtype: np.dtype[Any] = (
            np.dtypes.StringDType() if kind == "string" else np.dtype(kind).newbyteorder("<")
        )
        expected = lean(array_layout(name, self.shape, kind, (), ragged=ragged))
        stated = lean(metadata)
        if wrong := [field for field in LAYOUT if stated[field] != expected[field]]:
            raise StoreError(f"{self._where}: {wrong[0]}: not as the format demands, so it is not read")
        self._recent = _RecentChunks()
        self._block = block_rows(name, self.shape[0], ragged=ragged)
        self._sharded = array_kind.sharded

    def read(self, rows: slice = slice(None), out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read rows as they are stored, whatever their status.

        Parameters
        ----------
        out
            Array to read into; None makes one.

        Raises
        ------
        StoreError
            If a chunk or shard is missing, or has another size or checksum.
        ArgumentError
            If `out` is of another shape or type, or does not lie in one piece.
        """
        numbers = range(*rows.indices(self.shape[0]))
        shape = (len(numbers), *self.shape[1:])
        if out is not None and not (
            out.shape == shape and out.dtype == self.dtype and out.flags.c_contiguous and out.flags.writeable
        ):
            raise ArgumentError(
                f"{self._where}: out is {out.dtype} {list(out.shape)}; expected {self.dtype} {list(shape)} "
                "that can be written to and lies in one piece, as numpy.empty makes"
            )
        values: NDArray[Any] = guarded(
            self._where, lambda: self._read(numbers, out=out), store=self._files.where
        )
        return values

    def stored(self, rows: range) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the first row and the values of slices of one stored object, of which a file is opened once.

        Slices are of a size that is cheap to read one after another.

        Raises
        ------
        StoreError
            As `read`.
        """
        opened = None
        with ExitStack() as stack:
            if isinstance(self._files, FolderFiles) and self._sharded:
                opening = self._files.open
                opened = cache(lambda name: stack.enter_context(opening(name)))
            for start in range(rows.start, rows.stop, self.piece):
                read = partial(self._read, range(start, min(start + self.piece, rows.stop)), opened)
                values: NDArray[Any] = guarded(self._where, read, store=self._files.where)
                yield start, values

    @property
    def piece(self) -> int:
        """Number of rows that are cheap to read at once: of a stored object, or of a shard's first rows."""
        if isinstance(self._files, FolderFiles) and self._sharded:
            return min(self._block, max(1, WARM // self._row_bytes))
        return self._block

    def _read(
        self,
        rows: range,
        opened: Callable[[str], FileIO] | None = None,
        out: NDArray[Any] | None = None,
    ) -> NDArray[Any]:
        """Read rows, into `out` if it is given; `opened` opens files of shards that stay open."""
        values = np.empty((len(rows), *self.shape[1:]), self.dtype) if out is None else out
        blocks = range(rows.start // self._block, -(-rows.stop // self._block) if rows else 0)

        def fill(number: int) -> None:
            first = number * self._block
            part = range(max(rows.start, first), min(rows.stop, first + self._block))
            within = slice(part.start - first, part.stop - first)
            self._fill(number, within, values[part.start - rows.start : part.stop - rows.start], opened)

        if len(blocks) == 1 or self._files.readers == 1:
            for number in blocks:
                fill(number)
        else:
            with ThreadPoolExecutor(self._files.readers) as threads:
                for _ in threads.map(fill, blocks):
                    pass
        return values

    def _fill(
        self, number: int, rows: slice, values: NDArray[Any], opened: Callable[[str], FileIO] | None
    ) -> None:
        """Read rows of one chunk or shard, which are counted within it, into an array."""
        name = chunk_file(self._name, number, ragged=self.ragged)
        try:
            if self.dtype.kind == "T":
                values[:] = _read_strings(self._files, name, self._block)[rows]
                return
            if self._sharded:
                good = self._fill_of_shard(name, rows, values, opened)
            else:
                good = self._fill_of_chunk(number, rows, values)
        except FileNotFoundError:
            raise gone(self._files, name) from None
        if not good:
            raise damaged(f"{self._files.where}/{name}: this chunk is damaged", self._files.where)

    def _fill_of_chunk(self, number: int, rows: slice, values: NDArray[Any]) -> bool:
        """Read rows of a chunk, which is its rows and a checksum; return whether it is that."""
        chunk = self._recent.get(number)
        if chunk is None:
            data = memoryview(self._files.read(chunk_file(self._name, number, ragged=self.ragged)))
            if len(data) != self._block * self._row_bytes + CRC_BYTES or not is_checked(data):
                return False
            chunk = np.frombuffer(data[:-CRC_BYTES], self.dtype).reshape(self._block, *self.shape[1:])
            # Other rows of a chunk may be asked for next, but not of one that is read whole.
            if len(values) < self._block:
                self._recent.keep(number, chunk)
        values[:] = chunk[rows]
        return True

    def _fill_of_shard(
        self, name: str, rows: slice, values: NDArray[Any], opened: Callable[[str], FileIO] | None
    ) -> bool:
        """Read rows of a shard, absent ones as NaN; return whether all checksums are right."""
        tail = 16 * self._block + CRC_BYTES
        if not isinstance(self._files, FolderFiles):
            index = self._index(self._files.read(name, -tail), rows)
            present = [place for place in index or () if place != _ABSENT]
            first, last = (min(present)[0], max(present)[0] + max(present)[1]) if present else (0, 0)
            footer = BytesIO(self._files.read(name, first, last))
            return index is not None and _read_rows(footer, index, first, values)
        with self._files.open(name) if opened is None else nullcontext(opened(name)) as file:
            file.seek(max(0, file.seek(0, SEEK_END) - tail))
            index = self._index(file.read(tail), rows)
            return index is not None and _read_rows(file, index, 0, values)

    def _index(self, data: bytes, rows: slice) -> list[list[int]] | None:
        """Read where rows are in a shard, [offset, size] each, of its last bytes; None if they are wrong."""
        if len(data) != 16 * self._block + CRC_BYTES or not is_checked(memoryview(data)):
            return None
        index: list[list[int]] = (
            np.frombuffer(data[:-CRC_BYTES], "<u8").reshape(self._block, 2)[rows].tolist()
        )
        size = self._row_bytes + CRC_BYTES
        wrong = any(
            place != _ABSENT and (place[1] != size or place[0] > self._block * size) for place in index
        )
        return None if wrong else index

    @property
    def _row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize


_ABSENT = [2**64 - 1, 2**64 - 1]


def _read_rows(
    source: FileIO | BytesIO, index: Sequence[Sequence[int]], first: int, values: NDArray[Any]
) -> bool:
    """Read rows of a shard, whose bytes begin with that number `first`; whether all checksums are right."""
    for place, row in zip(index, values.reshape(len(values), -1).view(np.uint8), strict=True):
        if place == _ABSENT:
            row[:] = 0xFF  # every float of which all bits are set is NaN
        elif not read_row(source, place[0] - first, row.data):
            return False
    return True


def read_row(source: FileIO | BytesIO, offset: int, view: memoryview) -> bool:
    """Read a row, after which its checksum lies; return whether it is right."""
    checksum = 0
    source.seek(offset)
    for start in range(0, len(view), READ_AT_ONCE):
        part = view[start : start + READ_AT_ONCE]
        if source.readinto(part) != len(part):
            return False
        checksum = crc32c(part, checksum)
    return source.read(CRC_BYTES) == checksum.to_bytes(CRC_BYTES, "little")


def with_checksum(data: bytes | bytearray | memoryview) -> bytes:
    """Return a chunk or a row with its checksum."""
    return b"".join((data, crc32c(data).to_bytes(CRC_BYTES, "little")))


def string_chunk(strings: Sequence[str], rows: int) -> bytes:
    """Return the rows of a chunk of strings, the last of an array filled up with empty ones."""
    padded = np.array([*strings, *[""] * (rows - len(strings))], dtype=object)
    return bytes(Zstd(level=_ZSTD_LEVEL).encode(VLenUTF8().encode(padded)))


def is_checked(data: memoryview) -> bool:
    """Return whether bytes end in their checksum."""
    return crc32c(data[:-CRC_BYTES]).to_bytes(CRC_BYTES, "little") == data[-CRC_BYTES:]


# --- a chunk of strings, read within bounds
# Libraries trust the sizes in it: 17 bytes can make them allocate 10 GB.
# ---------------------------------------------------------------------------
FEW = 1 << 20
"""Bytes of strings in one chunk up to which the size of the table of clips is not checked."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def _read_strings(files: StoreFiles, name: str, count: int) -> list[str]:
    """Read a chunk: vlen-utf8, Zstandard, CRC-32C.

    Every string stands in the table of clips too, so a chunk that would be larger than it is refused unread.
    """

    def refuse_more(size: int) -> None:
        if size <= FEW:  # without a question to a server
            return
        most = files.size(TABLE) + 4 * (count + 1)
        if size > most:
            claim = f"this chunk claims more than {most} bytes of strings, which {TABLE} does not have"
            raise damaged(f"{files.where}/{name}: {claim}", files.where)

    stored = bytearray()
    for block in files.stream(name):
        stored += block
        refuse_more(len(stored))
    data = bytes(stored[:-CRC_BYTES])
    size = _zstd_size(data)
    refuse_more(size or 0)
    if size is not None and is_checked(memoryview(stored)):
        try:
            return _split_strings(bytes(Zstd().decode(data)), count)
        except (ValueError, RuntimeError) as error:
            reason = str(error)
    else:
        reason = "its checksum is wrong, or it does not say how long it is"
    raise damaged(f"{files.where}/{name}: this chunk is damaged ({reason})", files.where)


def _zstd_size(data: bytes) -> int | None:
    """Return the decompressed size that a Zstandard frame states (RFC 8878, 3.1.1.1), or None."""
    if data[:4] != _ZSTD_MAGIC or len(data) < 5:
        return None
    flags = data[4]
    alone = flags >> 5 & 1  # a single segment: no window descriptor
    octets = (alone, 2, 4, 8)[flags >> 6]
    at = 5 + (not alone) + (0, 1, 2, 4)[flags & 3]
    size = int.from_bytes(data[at : at + octets], "little")
    if octets == 2:  # sizes below 256 take one
        size += 256
    return size if size and len(data) >= at + octets else None


def _split_strings(data: bytes, count: int) -> list[str]:
    """Decode strings; numcodecs would take memory for as many as a chunk claims."""
    if int.from_bytes(data[:4], "little") != count:
        raise ValueError(f"it has another count of strings than its {count} rows")
    strings: list[str] = VLenUTF8().decode(data).tolist()
    return strings
