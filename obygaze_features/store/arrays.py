"""Define the layout of a sealed store's arrays, write chunks of strings, and read chunks and shards.

The format leaves one layout for each array, in which a chunk is its rows and a checksum: no memory is taken
for more bytes than there are in the files. zarr-python reads them as they are.
"""

import json
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
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
from obygaze_features.store.files_as_opened import LocalFiles, refuse_another_store
from obygaze_features.store.format import (
    ARRAYS,
    RAGGED_ARRAYS,
    TABLE,
    ArrayKind,
    block_rows,
    chunk_file,
    kind_of,
)
from obygaze_features.store.store_files import (
    READ_AT_ONCE,
    StoreFiles,
    damaged,
    missing_chunk_error,
    read_undamaged,
)
from obygaze_features.templates import packaged_text

CRC_BYTES: Final = 4
"""Bytes of the checksum (CRC-32C) behind a chunk, a row of a shard, and the index of a shard."""

INDEX_BYTES: Final = 16
"""Bytes of a row in the index of a shard: its offset and its size."""

_ZSTD_LEVEL = 3
"""Level of compression that array.json states."""

_HALF_INFINITY = 0x7C00
"""Bits of infinity in float16. The bits of finite positive numbers are smaller, those of NaN are larger."""

_HALF_MINUS_INFINITY = 0xFC00
"""Bits of minus infinity in float16: those of infinity with the highest bit, the sign, set."""


def array_layout(
    name: str,
    shape: tuple[int, ...],
    dtype: str,
    dimension_names: tuple[str, ...],
    *,
    ragged: bool = False,
) -> dict[str, Any]:
    """Return the Zarr metadata of an array as sealing writes it, with fields in the order of zarr-python.

    Parameters
    ----------
    name
        Name of the array, such as `pooled`.
    shape
        Its shape, with all clips or frames.
    dtype
        Its data type, as Zarr names it.
    dimension_names
        Names of its dimensions.
    ragged
        Whether the array is in a ragged group.
    """
    document: dict[str, Any] = json.loads(_common_layout())
    # The packaged file has the codecs of strings, and those of all numbers as "others".
    codecs_of_type = document["codecs"]
    codecs = codecs_of_type.get(dtype, codecs_of_type["others"])

    row_shape = shape[1:]
    if ARRAYS[name].sharded:
        sharding = {
            "chunk_shape": [1, *row_shape],  # each row is a chunk of the shard
            "codecs": codecs,
            "index_codecs": codecs,  # the index has a checksum, as the rows have
            "index_location": "end",
        }
        codecs = [{"name": "sharding_indexed", "configuration": sharding}]

    stored_rows = block_rows(name, shape[0], ragged=ragged)  # of a chunk, or of a shard
    document["chunk_grid"]["configuration"]["chunk_shape"] = [stored_rows, *row_shape]
    fill = ARRAYS[name].fill
    return document | {
        "shape": list(shape),
        "data_type": dtype,
        "fill_value": "NaN" if isinstance(fill, float) else fill,
        "codecs": codecs,
        "dimension_names": list(dimension_names),
    }


@cache
def _common_layout() -> str:
    """Read, as JSON text, the metadata that all arrays have in common, with the codecs of each data type.

    The text is cached and not the parsed document, because callers change what they parse from it.
    """
    return packaged_text(__package__, "array.json")


LAYOUT = ("chunk_grid", "chunk_key_encoding", "codecs")
"""Fields of an array's metadata that say where its bytes lie and how they are coded."""


def without_empty_fields(value: Any) -> Any:
    """Return JSON without fields that are null, {} or [], at any depth.

    Libraries differ in whether they write empty fields, so metadata are compared without them.
    """
    if isinstance(value, dict):
        fields = {}
        for key, item in value.items():
            cleaned_item = without_empty_fields(item)
            if cleaned_item is not None and cleaned_item not in ({}, []):
                fields[key] = cleaned_item
        return fields
    if isinstance(value, list | tuple):
        return [without_empty_fields(item) for item in value]
    return value


def row_view(values: NDArray[Any]) -> memoryview:
    """Return the bytes of a row as they are stored and digested: little-endian and in C order.

    The array is copied only if it is not in this form already.
    """
    plain = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return plain.reshape(-1).view(np.uint8).data


_CHECKED_AT_ONCE = 1 << 17
"""Numbers that are checked together, so few that they stay in the processor's cache."""


def all_finite(values: NDArray[Any]) -> bool:
    """Return whether no value is NaN or inf.

    Arrays of float16 are checked by their bits, which is seven times as fast as `numpy.isfinite`.

    Examples
    --------
    >>> all_finite(np.array([1.0, 65504.0], np.float16)), all_finite(np.array([np.inf], np.float16))
    (True, False)
    """
    if values.dtype.kind != "f":  # no floats: integers are always finite
        return True
    is_float16 = values.dtype.itemsize == 2
    if not is_float16:
        return bool(np.isfinite(values).all())

    bits = np.ascontiguousarray(values).reshape(-1).view(np.uint16)
    if values.dtype.byteorder == ">":
        bits = bits.byteswap()
    for first in range(0, len(bits), _CHECKED_AT_ONCE):
        block = bits[first : first + _CHECKED_AT_ONCE]
        # As unsigned integers, the bits of negative numbers are above all those of positive ones. As signed
        # integers they are below zero, so that the largest are those of a positive number.
        has_negative_infinity_or_nan = int(block.max()) >= _HALF_MINUS_INFINITY
        has_positive_infinity_or_nan = int(block.view(np.int16).max()) >= _HALF_INFINITY
        if has_negative_infinity_or_nan or has_positive_infinity_or_nan:
            return False
    return True


# --- reading
# ---------------------------------------------------------------------------
TOKEN_BYTES_AT_ONCE = 2**22
"""Most bytes of tokens that are read at once, so that their memory is reused. For more, the system gives new
pages, which take longer than reading (16 clips of 4.8 MB at once: 1.6 ms a clip; one by one: 1.0 ms)."""

RECENT_CHUNK_BYTES = 2**23
"""Bytes of chunks that an array keeps in memory, so that reading its rows one by one takes one request for
each chunk."""


class _RecentChunks:
    """A cache of the last chunks of an array of which only a part was read; their checksums were checked.

    Several threads may use it.
    """

    def __init__(self) -> None:
        """Begin with an empty cache."""
        self._chunks: OrderedDict[int, NDArray[Any]] = OrderedDict()  # by number, the oldest first
        self._lock = Lock()

    def get(self, number: int) -> NDArray[Any] | None:
        """Return a chunk by its number; None if it is not here."""
        return self._chunks.get(number)

    def keep(self, number: int, chunk: NDArray[Any]) -> None:
        """Add a chunk by its number; drop the oldest ones if there is no room for them.

        At most `RECENT_CHUNK_BYTES` remain, or this chunk alone if it is larger.
        """
        max_chunks = max(RECENT_CHUNK_BYTES // chunk.nbytes, 1)  # all chunks have the same size
        with self._lock:
            self._chunks[number] = chunk
            while len(self._chunks) > max_chunks:
                self._chunks.popitem(last=False)  # the oldest


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
        """Check the array's Zarr metadata; no values are read.

        Parameters
        ----------
        files
            The files of the store.
        group, name
            Name of the group, such as a backbone, and of the array in it, such as `pooled`.
        metadata
            The array's Zarr metadata.
        ragged
            Whether the group is ragged, so that each clip has its own number of frames.
        """
        self._files = files
        self._name = f"{group}/{name}"
        self._where = f"{files.where}, array {self._name}"  # for messages

        # Whether its rows are frames, of which each clip has its own number (the ids of clips are not)
        self.ragged = ragged and name in RAGGED_ARRAYS
        array_kind = kind_of(name, ragged=ragged)  # what the format says of such an array
        self._check_shape(array_kind, metadata)
        self.shape: tuple[int, ...] = tuple(metadata["shape"])
        self.dtype: np.dtype[Any] = _numpy_type(metadata["data_type"])
        self._check_layout(name, metadata, ragged=ragged)

        # How its rows are stored: many in a file, which is a chunk or a shard
        self._block_rows = block_rows(name, self.shape[0], ragged=ragged)  # rows of a chunk or shard
        self._sharded = array_kind.sharded
        self._recent = _RecentChunks()  # the chunks that were read last

    def _check_shape(self, array_kind: ArrayKind, metadata: Mapping[str, Any]) -> None:
        """Raise an error unless data type and number of axes fit the kind, and all sizes are at least 1.

        Only a ragged array may have no row: that of a group without any features.
        """
        shape = metadata["shape"]
        dtype = metadata["data_type"]
        fits_kind = dtype in array_kind.dtypes and len(shape) == len(array_kind.dims)
        has_no_rows_rightly = self.ragged and shape[:1] == [0]
        sizes = shape[1:] if has_no_rows_rightly else shape
        are_at_least_1 = fits(sizes, list[Count])  # whole numbers from 1 on
        if not fits_kind or not are_at_least_1:
            raise StoreError(f"{self._where}: {dtype} {shape} does not fit the format")

    def _check_layout(self, name: str, metadata: Mapping[str, Any], *, ragged: bool) -> None:
        """Raise an error unless an array's metadata state the chunks and codecs that sealing writes.

        The reader relies on this one layout; other layouts are refused, although zarr-python can read them.
        """
        no_dimension_names = ()  # they are not compared
        layout = array_layout(name, self.shape, metadata["data_type"], no_dimension_names, ragged=ragged)
        # Libraries differ in whether they write empty fields.
        expected = without_empty_fields(layout)
        stated = without_empty_fields(metadata)
        for field in LAYOUT:  # the fields on chunks and codecs
            if stated[field] != expected[field]:
                raise StoreError(f"{self._where}: {field}: not as the format demands, so it is not read")

    def read(self, rows: slice = slice(None), out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read rows as they are stored, whatever their status.

        Parameters
        ----------
        rows
            Which rows; all by default.
        out
            Array to read into; None makes one.

        Raises
        ------
        StoreError
            If a chunk or shard is missing, or has another size or checksum.
        ArgumentError
            If `out` is of another shape or type, or does not lie in one piece.
        """
        row_numbers = range(*rows.indices(self.shape[0]))
        if out is not None:
            self._check_output(out, (len(row_numbers), *self.shape[1:]))
        # Errors that damaged bytes cause become a StoreError.
        values: NDArray[Any] = read_undamaged(
            self._where, partial(self._read, row_numbers, out=out), store=self._files.where
        )
        return values

    def _check_output(self, out: NDArray[Any], shape: tuple[int, ...]) -> None:
        """Raise an error unless rows of this shape can be read into the array `out`."""
        has_right_type = out.shape == shape and out.dtype == self.dtype
        has_right_memory = out.flags.c_contiguous and out.flags.writeable
        if not has_right_type or not has_right_memory:
            raise ArgumentError(
                f"{self._where}: out is {out.dtype} {list(out.shape)}; expected {self.dtype} {list(shape)} "
                "that can be written to and lies in one piece, as numpy.empty makes"
            )

    def read_slices(self, rows: range) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield consecutive slices of some rows: the number of the first row of each, and its values.

        All rows must lie in one stored object (a chunk or a shard), whose file is opened once. A slice has at
        most `rows_per_read` rows.

        Raises
        ------
        StoreError
            If the chunk or shard is missing, or has another size or checksum.
        """
        with ExitStack() as open_files:  # closes them at the end
            open_once = self._file_opener(open_files)
            for start in range(rows.start, rows.stop, self.rows_per_read):
                rows_of_slice = range(start, min(start + self.rows_per_read, rows.stop))
                read = partial(self._read, rows_of_slice, open_once)
                values: NDArray[Any] = read_undamaged(self._where, read, store=self._files.where)
                yield start, values

    def _file_opener(self, open_files: ExitStack) -> Callable[[str], FileIO] | None:
        """Return a function that opens a shard in a local folder, and keeps it open for later calls.

        None for arrays without shards, and for stores elsewhere, of which no file stays open.

        Parameters
        ----------
        open_files
            Gets each file that is opened, and closes it.
        """
        if not isinstance(self._files, LocalFiles) or not self._sharded:
            return None
        files = self._files

        @cache  # for each later call with the same name, it returns the open file
        def open_once(name: str) -> FileIO:
            """Open a file of the store."""
            return open_files.enter_context(files.open(name))

        return open_once

    @property
    def rows_per_read(self) -> int:
        """Number of consecutive rows that are read fastest at once.

        It is that of one stored object (a chunk or a shard), which is read as a whole. From a shard in a
        local folder, single rows can be read: then as many as fit in `TOKEN_BYTES_AT_ONCE`, but at least one.
        """
        if isinstance(self._files, LocalFiles) and self._sharded:
            return min(self._block_rows, max(1, TOKEN_BYTES_AT_ONCE // self._row_bytes))
        return self._block_rows

    def _read(
        self,
        rows: range,
        open_once: Callable[[str], FileIO] | None = None,
        out: NDArray[Any] | None = None,
    ) -> NDArray[Any]:
        """Read rows, of several chunks or shards concurrently where that is faster.

        Parameters
        ----------
        rows
            Numbers of the rows.
        open_once
            Opens the file of a shard, and returns the same open file in later calls. With None, files are
            opened and closed in every call of `_read`.
        out
            Array to read into; None makes one.
        """
        values = np.empty((len(rows), *self.shape[1:]), self.dtype) if out is None else out

        # A block is a stored object: a chunk or a shard.
        first_block = rows.start // self._block_rows
        end_block = math.ceil(rows.stop / self._block_rows) if rows else 0
        blocks = range(first_block, end_block)

        def read_block(block: int) -> None:
            """Read the rows that lie in one block into their place in `values`."""
            block_start = block * self._block_rows
            start = max(rows.start, block_start)
            stop = min(rows.stop, block_start + self._block_rows)
            rows_in_block = slice(start - block_start, stop - block_start)
            place = values[start - rows.start : stop - rows.start]
            self._fill(block, rows_in_block, place, open_once)

        reads_one_by_one = len(blocks) == 1 or self._files.readers == 1
        if reads_one_by_one:
            for block in blocks:
                read_block(block)
        else:
            with ThreadPoolExecutor(self._files.readers) as threads:
                for _ in threads.map(read_block, blocks):  # raises what a thread has raised
                    pass
        if self._sharded:  # rows of shards are parts of files, which have no digest
            refuse_another_store(self._files)
        return values

    def _fill(
        self, block: int, rows: slice, values: NDArray[Any], open_once: Callable[[str], FileIO] | None
    ) -> None:
        """Read rows of one chunk or shard into an array.

        Parameters
        ----------
        block
            Number of the chunk or shard.
        rows
            The rows, counted within it.
        values
            Array to read into.
        open_once
            Opens the file of a shard, and returns the same open file in later calls; None opens it anew.

        Raises
        ------
        StoreError
            If the chunk or shard is missing, or has a wrong size or checksum.
        """
        file = chunk_file(self._name, block, ragged=self.ragged)
        is_of_strings = self.dtype.kind == "T"
        try:
            if is_of_strings:
                values[:] = _read_strings(self._files, file, self._block_rows)[rows]
                return
            if self._sharded:
                is_intact = self._fill_from_shard(file, rows, values, open_once)
            else:
                is_intact = self._fill_from_chunk(block, rows, values)
        except FileNotFoundError:
            raise missing_chunk_error(self._files, file) from None
        if not is_intact:
            refuse_another_store(self._files)  # it may have been replaced while it is open
            raise damaged(f"{self._files.where}/{file}: this chunk is damaged", self._files.where)

    def _fill_from_chunk(self, block: int, rows: slice, values: NDArray[Any]) -> bool:
        """Copy rows of a chunk into an array; return False if the chunk's size or checksum is wrong.

        The chunk is read as a whole, unless it is among those that were read last.
        """
        chunk = self._recent.get(block)
        if chunk is None:
            file = chunk_file(self._name, block, ragged=self.ragged)
            data = memoryview(self._files.read(file))
            has_right_size = len(data) == self._block_rows * self._row_bytes + CRC_BYTES
            if not has_right_size or not has_right_checksum(data):
                return False
            chunk = np.frombuffer(data[:-CRC_BYTES], self.dtype).reshape(self._block_rows, *self.shape[1:])
            # Whoever reads a part of a chunk may read its other rows next.
            if len(values) < self._block_rows:
                self._recent.keep(block, chunk)
        values[:] = chunk[rows]
        return True

    def _fill_from_shard(
        self, name: str, rows: slice, values: NDArray[Any], open_once: Callable[[str], FileIO] | None
    ) -> bool:
        """Read rows of a shard into `values`; return False if a checksum is wrong.

        Rows that the shard does not have become NaN. From a local folder, rows are read one by one, and from
        a server or zip in one request.

        Parameters
        ----------
        name
            The file of the shard.
        rows
            The rows, counted within it.
        values
            Array to read into.
        open_once
            Opens a local file, or returns the open file of an earlier call. None opens it for this call only.
        """
        if not isinstance(self._files, LocalFiles):
            return self._fill_in_one_request(name, rows, values)
        if open_once is not None:
            return self._fill_from_open_shard(open_once(name), rows, values)
        with self._files.open(name) as file:
            return self._fill_from_open_shard(file, rows, values)

    def _fill_from_open_shard(self, file: FileIO, rows: slice, values: NDArray[Any]) -> bool:
        """Read rows of a shard in a local folder, one by one; return False if a checksum is wrong."""
        file_bytes = file.seek(0, SEEK_END)
        file.seek(max(0, file_bytes - self._index_bytes))
        index = self._decode_index(file.read(self._index_bytes), rows)
        if index is None:
            return False
        return _read_rows(file, index, source_start=0, values=values)

    def _fill_in_one_request(self, name: str, rows: slice, values: NDArray[Any]) -> bool:
        """Read rows of a shard on a server or in a zip into `values`; return False if a checksum is wrong.

        The index at the end of the shard says where each row is. All bytes from the first to the last of the
        wanted rows are read in one request, because each request takes long.
        """
        index_bytes = self._files.read(name, -self._index_bytes)  # the last bytes of the file
        index = self._decode_index(index_bytes, rows)
        if index is None:  # it is damaged
            return False

        places_of_rows = [place for place in index if place != _NO_ROW]  # of the rows that the shard has
        first_byte = min((offset for offset, _ in places_of_rows), default=0)
        end_byte = max((offset + size for offset, size in places_of_rows), default=0)
        row_data = BytesIO(self._files.read(name, first_byte, end_byte))
        return _read_rows(row_data, index, source_start=first_byte, values=values)

    @property
    def _index_bytes(self) -> int:
        """Bytes of the index at the end of a shard: an entry for each row, and a checksum."""
        return INDEX_BYTES * self._block_rows + CRC_BYTES

    def _decode_index(self, data: bytes, rows: slice) -> list[list[int]] | None:
        """Decode the index at the end of a shard, a file with the values of several clips, each a row.

        Parameters
        ----------
        data
            The index as it is stored, with its checksum.
        rows
            The rows to look up, counted within the shard.

        Returns
        -------
        list or None
            Offset and size of each row in the file, in bytes; `_NO_ROW` for a row that the shard does not
            have. None if the index is damaged.
        """
        has_right_size = len(data) == self._index_bytes
        if not has_right_size or not has_right_checksum(memoryview(data)):
            return None
        numbers = np.frombuffer(data[:-CRC_BYTES], "<u8")  # offset, size, offset, size, ...
        offsets_and_sizes = numbers.reshape(self._block_rows, 2)
        index: list[list[int]] = offsets_and_sizes[rows].tolist()
        row_bytes = self._row_bytes + CRC_BYTES
        last_offset = self._block_rows * row_bytes
        for entry in index:
            if entry == _NO_ROW:
                continue
            offset, size = entry  # not negative, as both are unsigned
            if size != row_bytes or offset > last_offset:
                return None
        return index

    @property
    def _row_bytes(self) -> int:
        """Bytes of a row, without a checksum."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize


_NO_ROW = [2**64 - 1, 2**64 - 1]
"""Offset and size, in the index of a shard, of a row that the shard does not have."""


def _read_rows(
    source: FileIO | BytesIO, index: Sequence[Sequence[int]], source_start: int, values: NDArray[Any]
) -> bool:
    """Read rows of a shard into an array, with NaN for absent rows; return False if a checksum is wrong.

    Parameters
    ----------
    source
        The shard, or a part of it.
    index
        Offset and size of each row in the shard; or `_NO_ROW`.
    source_start
        Byte of the shard with which `source` begins, 0 for a whole shard.
    values
        Array to read into, with a row for each entry of `index`.
    """
    rows_of_bytes = values.reshape(len(values), -1).view(np.uint8)
    for entry, row in zip(index, rows_of_bytes, strict=True):
        if entry == _NO_ROW:
            row[:] = 0xFF  # a float with all bits set is NaN
            continue
        offset, _ = entry
        if not read_row(source, offset - source_start, row.data):
            return False
    return True


def read_row(source: FileIO | BytesIO, offset: int, view: memoryview) -> bool:
    """Read a row into a buffer; return False if the checksum that is stored behind the row is wrong.

    Parameters
    ----------
    source
        The shard, or a part of it.
    offset
        Byte of `source` at which the row begins.
    view
        Buffer with as many bytes as the row.
    """
    checksum = 0
    source.seek(offset)
    for start in range(0, len(view), READ_AT_ONCE):
        block = view[start : start + READ_AT_ONCE]
        if source.readinto(block) != len(block):  # the file is too short
            return False
        checksum = crc32c(block, checksum)  # of all blocks so far
    return source.read(CRC_BYTES) == checksum.to_bytes(CRC_BYTES, "little")


def with_checksum(data: bytes | bytearray | memoryview) -> bytes:
    """Return the bytes of a chunk or a row with their checksum (CRC-32C, four bytes) appended."""
    checksum = crc32c(data).to_bytes(CRC_BYTES, "little")
    return b"".join((data, checksum))


def _numpy_type(dtype: str) -> np.dtype[Any]:
    """Return NumPy's data type for one that Zarr names, such as "string" or "float32"; little-endian."""
    if dtype == "string":
        return np.dtypes.StringDType()
    return np.dtype(dtype).newbyteorder("<")


def string_chunk(strings: Sequence[str], rows: int) -> bytes:
    """Encode a chunk of strings, compressed by Zstandard and without a checksum.

    Parameters
    ----------
    strings
        The strings.
    rows
        Number of strings in a chunk, up to which empty strings fill it up.
    """
    n_empty = rows - len(strings)
    padded = np.array([*strings, *[""] * n_empty], dtype=object)
    encoded = VLenUTF8().encode(padded)
    return bytes(Zstd(level=_ZSTD_LEVEL).encode(encoded))


def has_right_checksum(data: memoryview) -> bool:
    """Return whether the last four bytes are the checksum (CRC-32C) of the bytes before them."""
    checksum = crc32c(data[:-CRC_BYTES])
    return checksum.to_bytes(CRC_BYTES, "little") == data[-CRC_BYTES:]


# --- a chunk of strings, read within bounds
# Libraries trust the sizes in it: 17 bytes can make them allocate 10 GB.
# ---------------------------------------------------------------------------
TRUSTED_STRING_BYTES = 1 << 20
"""Bytes of strings in one chunk up to which the chunk is not compared with the table of clips, whose size a
server would have to be asked for."""

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
"""First bytes of a Zstandard frame."""


def _read_strings(files: StoreFiles, name: str, count: int) -> list[str]:
    """Read a chunk of `count` strings: compressed by Zstandard, with a checksum behind them.

    The table of clips (clips.csv) has the same strings. A chunk that says it holds more bytes than the table
    is therefore damaged, or made to fill the memory, and is refused before memory is allocated for it.
    """
    stored = bytearray()
    for block in files.stream(name):
        stored += block
        _refuse_more_than_table(files, name, len(stored), count)

    compressed = bytes(stored[:-CRC_BYTES])
    size = _zstd_size(compressed)
    if size is not None:
        _refuse_more_than_table(files, name, size, count)
    if size is None or not has_right_checksum(memoryview(stored)):
        reason = "its checksum is wrong, or it does not say how long it is"
        raise _damaged_chunk_error(files, name, reason)

    try:
        return _split_strings(bytes(Zstd().decode(compressed)), count)
    except (ValueError, RuntimeError) as error:
        raise _damaged_chunk_error(files, name, str(error)) from None


def _refuse_more_than_table(files: StoreFiles, name: str, n_bytes: int, count: int) -> None:
    """Refuse a chunk of strings with more bytes than the strings in the table of clips can have.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> files = SimpleNamespace(where="films-1.0.0", size=lambda _name: 100)  # the table has 100 bytes
    >>> _refuse_more_than_table(files, "text/c/0", n_bytes=TRUSTED_STRING_BYTES + 1, count=10)
    Traceback (most recent call last):
    obygaze_features.errors.StoreError: films-1.0.0/text/c/0: this chunk claims more than 144 bytes of ...
    """
    if n_bytes <= TRUSTED_STRING_BYTES:  # not worth a request for the size of the table
        return
    header_bytes = 4 * (count + 1)  # vlen-utf8 has 4 bytes before each string, and 4 for their number
    most = files.size(TABLE) + header_bytes
    if n_bytes > most:
        claim = f"this chunk claims more than {most} bytes of strings, which {TABLE} does not have"
        raise damaged(f"{files.where}/{name}: {claim}", files.where)


def _damaged_chunk_error(files: StoreFiles, name: str, reason: str) -> StoreError:
    """Return the error for a chunk of strings, a file of the store, that cannot be decoded."""
    return damaged(f"{files.where}/{name}: this chunk is damaged ({reason})", files.where)


def _zstd_size(data: bytes) -> int | None:
    """Return the decompressed size that a Zstandard frame states; None if it states none, or is no frame.

    A frame begins with the fields magic number (4 bytes), descriptor (1), window (0 or 1), number of the
    dictionary (0 to 4) and size (0 to 8). The bits of the descriptor say how long the last three are.
    Source: RFC 8878, 3.1.1.1.
    """
    if data[:4] != _ZSTD_MAGIC or len(data) < 5:
        return None
    descriptor = data[4]
    dictionary_flag = descriptor & 0b11  # bits 1 and 0
    is_single_segment = bool(descriptor >> 5 & 1)  # bit 5
    size_flag = descriptor >> 6  # bits 7 and 6

    # Without a field on the window, the size is always stated, in one byte at least.
    window_bytes = 0 if is_single_segment else 1
    shortest_size_bytes = 1 if is_single_segment else 0
    dictionary_bytes = (0, 1, 2, 4)[dictionary_flag]
    size_bytes = (shortest_size_bytes, 2, 4, 8)[size_flag]
    size_start = 5 + window_bytes + dictionary_bytes
    size_end = size_start + size_bytes
    if len(data) < size_end:
        return None

    size = int.from_bytes(data[size_start:size_end], "little")
    if size_bytes == 2:
        size += 256  # smaller sizes are stated in one byte
    if size == 0:  # not stated
        return None
    return size


def _split_strings(data: bytes, count: int) -> list[str]:
    """Decode the strings of a chunk, of which there must be `count`.

    The first four bytes are their number. It is checked first, because numcodecs allocates memory for as many
    strings as the chunk states.
    """
    if int.from_bytes(data[:4], "little") != count:
        raise ValueError(f"it has another count of strings than its {count} rows")
    strings: list[str] = VLenUTF8().decode(data).tolist()
    return strings
