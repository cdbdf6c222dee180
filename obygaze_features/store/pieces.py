"""Define where the rows of a stage and of a store lie: pieces of neighbouring rows, chunks and shards.

A piece is `PIECE_ROWS` neighbouring rows of all arrays. An attempt at it writes one file of rows, with every
small array of every clip; for each array of tokens the shard, just as the store will have it; and for each
ragged group one file with the frames of the clips.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from obygaze_features.door import open_regular
from obygaze_features.errors import StoreError
from obygaze_features.io import sha256_of
from obygaze_features.store.arrays import CRC_BYTES, INDEX_BYTES, with_checksum
from obygaze_features.store.format import (
    ARRAYS,
    PIECE_ROWS,
    PIECES,
    RAGGED_ARRAYS,
    block_rows,
    chunk_file,
)
from obygaze_features.store.journal import NO_ROW, JournalEntry, PieceAttempt
from obygaze_features.store.records import GroupSpec, StoredClip
from obygaze_features.store.store_files import FolderFiles, damaged, read_digests


@dataclass(frozen=True, slots=True)
class StoredArray:
    """Layout of an array's rows in the files of a sealed store.

    Attributes
    ----------
    name
        `group/array`.
    position
        Position of the array in the digests of a journal entry.
    fill_row
        A row without features: fill values.
    n_clips
        Number of rows of the array.
    """

    name: str
    position: int
    fill_row: bytes
    n_clips: int

    @property
    def sharded(self) -> bool:
        """Whether its rows are stored in shards, in which each row has a checksum of its own."""
        return ARRAYS[self.name.partition("/")[2]].sharded

    @property
    def block(self) -> int:
        """Number of rows in one chunk or shard."""
        return block_rows(self.name.partition("/")[2], self.n_clips)

    def file(self, number: int) -> str:
        """Return the relative path of a chunk or shard."""
        return chunk_file(self.name, number)

    def offset(self, index: int) -> int:
        """Return the byte at which a row begins in its chunk or shard, given the row's index there."""
        row_bytes = len(self.fill_row)
        if self.sharded:
            row_bytes += CRC_BYTES  # in a shard, each row has its own checksum behind it
        return index * row_bytes

    def blocks(self) -> Iterator[tuple[str, int]]:
        """Yield the relative path and the size in bytes of every chunk or shard."""
        for number, start in enumerate(range(0, self.n_clips, self.block)):
            if self.sharded:
                n_rows = min(self.block, self.n_clips - start)
                size = self.offset(n_rows) + INDEX_BYTES * self.block + CRC_BYTES
            else:
                size = self.offset(self.block) + CRC_BYTES
            yield self.file(number), size

    def shard_index(self, n_rows: int) -> bytes:
        """Return the bytes of the index at a shard's end, with a checksum.

        It has the offset and size of each of the first `n_rows` rows. All bits are set in the entries of the
        other rows, which the shard lacks.
        """
        index = np.full((self.block, 2), 2**64 - 1, "<u8")
        index[:n_rows, 0] = [self.offset(row) for row in range(n_rows)]
        index[:n_rows, 1] = self.offset(1)
        return with_checksum(index.tobytes())


@dataclass(frozen=True, slots=True)
class RaggedArray:
    """An array of a ragged group, which has a row for each frame of each clip.

    Attributes
    ----------
    name
        `group/array`.
    position
        Position of the array in the digests of a journal entry.
    fill_row
        A row of fill values.
    """

    name: str
    position: int
    fill_row: bytes

    def file(self, number: int) -> str:
        """Return the relative path of a chunk."""
        return chunk_file(self.name, number, ragged=True)

    def block(self, n_rows: int) -> int:
        """Return the number of rows of a chunk, given the number of all rows."""
        return block_rows(self.name.partition("/")[2], n_rows, ragged=True)


@dataclass(frozen=True, slots=True)
class RaggedGroup:
    """The arrays of a ragged group, which have the same number of rows for a clip.

    In the file of an attempt a clip's rows of one array lie together, and after them those of the next.

    Attributes
    ----------
    name
        Name of the group.
    arrays
        Its ragged arrays, in the order of their positions.
    """

    name: str
    arrays: tuple[RaggedArray, ...]

    @property
    def frame_bytes(self) -> int:
        """Bytes of one frame in all arrays."""
        return sum(len(array.fill_row) for array in self.arrays)

    def split(self, data: memoryview, n_frames: int) -> Iterator[tuple[RaggedArray, memoryview]]:
        """Split the stored bytes of a clip with `n_frames` frames; yield each array with its rows."""
        start = 0
        for array in self.arrays:
            size = n_frames * len(array.fill_row)
            yield array, data[start : start + size]
            start += size


class ParentRows(NamedTuple):
    """The sealed store that a stage extends with new clips.

    Attributes
    ----------
    folder
        Where it lies.
    clips
        Its clips, in the order of its rows.
    n_frames
        Name of a ragged group -> number of frames of all clips.
    """

    folder: Path
    clips: Sequence[StoredClip]
    n_frames: Mapping[str, int]


class StageLayout:
    """The pieces of a stage, and the places of their rows.

    Attributes
    ----------
    names
        The arrays, `group/array`, in the order of an entry's digests.
    small_arrays
        The arrays whose rows lie in the file of rows, one clip's after the other's.
    sharded_arrays
        The arrays of which a piece is a shard.
    ragged_groups
        The groups whose frames lie in a file of the group, one clip's after another's as they were written.
    small_row_bytes
        Size of a clip's rows in the file of rows.
    """

    def __init__(self, groups: Sequence[GroupSpec], n_clips: int) -> None:
        """Lay out the arrays of some groups, sorted by name within a group, for `n_clips` clips.

        An array's position in `names` is its position in the digests of a journal entry.
        """
        self.n_clips = n_clips
        names: list[str] = []
        arrays: list[StoredArray] = []
        ragged: list[RaggedGroup] = []
        for group in groups:
            ragged_arrays: list[RaggedArray] = []
            for array, (shape, dtype) in sorted(group.clip_arrays().items()):
                name = f"{group.name}/{array}"
                position = len(names)
                names.append(name)
                fill = ARRAYS[array].fill
                if group.ragged and array in RAGGED_ARRAYS:
                    frame = np.full(shape[1:], fill, dtype).tobytes()
                    ragged_arrays.append(RaggedArray(name, position, frame))
                else:
                    row = np.full(shape, fill, dtype).tobytes()
                    arrays.append(StoredArray(name, position, row, n_clips))
            if ragged_arrays:
                ragged.append(RaggedGroup(group.name, tuple(ragged_arrays)))
        self.names = tuple(names)
        self.small_arrays = tuple(array for array in arrays if not array.sharded)
        self.sharded_arrays = tuple(array for array in arrays if array.sharded)
        self.ragged_groups = tuple(ragged)
        self.small_row_bytes = sum(len(array.fill_row) for array in self.small_arrays)

    @property
    def n_pieces(self) -> int:
        """Number of pieces."""
        return math.ceil(self.n_clips / PIECE_ROWS)

    def rows(self, piece: int) -> range:
        """Return the rows of a piece."""
        start = piece * PIECE_ROWS
        return range(start, min(start + PIECE_ROWS, self.n_clips))

    def split(self, record: memoryview) -> Iterator[tuple[StoredArray, memoryview]]:
        """Split a clip's bytes from the file of rows; yield each small array with the clip's row of it."""
        start = 0
        for array in self.small_arrays:
            yield array, record[start : start + len(array.fill_row)]
            start += len(array.fill_row)


def attempt_file(stage: Path, attempt: PieceAttempt, part: StoredArray | RaggedGroup | None = None) -> str:
    """Return the path of one of the files that an attempt at a piece writes.

    It is a string, because making a `Path` for every row would take a third of the time of sealing.

    Parameters
    ----------
    stage
        The staging folder.
    attempt
        The attempt.
    part
        An array for its shard, a ragged group for the file of its frames, None for the file of rows.
    """
    ending = "rows"
    if isinstance(part, RaggedGroup):
        ending = f"{part.name}.ragged"
    elif part is not None:
        ending = part.name.replace("/", ".")
    return f"{stage}/{PIECES}/{attempt.piece}.{attempt.writer}.{attempt.number}.{ending}"


class StagedRows:
    """Reads rows of a stage, and of the store that it extends, and checks their digests.

    Parameters
    ----------
    stage
        The staging folder.
    layout
        The places of its rows.
    parent
        The store that the stage extends, if any.
    """

    def __init__(self, stage: Path, layout: StageLayout, parent: ParentRows | None) -> None:
        """Read the digests of the parent store's files, if there is one; rows are read on demand."""
        self.stage = stage
        self.layout = layout
        extended = parent or ParentRows(folder=Path(), clips=(), n_frames={})
        self._parent = extended.folder
        self._parent_clips = extended.clips
        self._parent_frames = extended.n_frames  # of all clips, by ragged group
        self._parent_row = {clip.clip_id: row for row, clip in enumerate(extended.clips)}
        # File -> SHA-256 of the parent store.
        self._parent_digests: Mapping[str, str] = read_digests(FolderFiles(extended.folder)) if parent else {}

    def record(self, entry: JournalEntry) -> memoryview | None:
        """Return the bytes of a clip's rows of all small arrays, one after the other.

        They are read from the file of the attempt that wrote them, or from the parent store if the entry has
        no writer. None if a digest is wrong.
        """
        if entry.writer:
            offset = entry.row % PIECE_ROWS * self.layout.small_row_bytes
            record = _read_at(
                attempt_file(self.stage, entry.holding_attempt), offset, self.layout.small_row_bytes
            )
        else:
            record = memoryview(
                b"".join(self._row_of_parent(entry, array) for array in self.layout.small_arrays)
            )
        if record is None:
            return None
        is_intact = all(_has_digest(entry, array, row) for array, row in self.layout.split(record))
        return record if is_intact else None

    def row(self, entry: JournalEntry, array: StoredArray) -> memoryview | None:
        """Return the bytes of a clip's row in a sharded array; None if its digest is wrong.

        It is read as `record` reads the other rows. Damage of the parent store is raised as a StoreError.
        """
        if not entry.writer:
            return self._row_of_parent(entry, array)
        path = attempt_file(self.stage, entry.holding_attempt, array)
        row = _read_at(path, array.offset(entry.row % PIECE_ROWS), len(array.fill_row))
        if row is None or not _has_digest(entry, array, row):
            return None
        return row

    def frames(self, entry: JournalEntry, group: RaggedGroup) -> dict[RaggedArray, memoryview] | None:
        """Return the bytes of a clip's frames in each array of a ragged group; None if a digest is wrong.

        They are empty if the clip is absent in the group.
        """
        first, n_frames = entry.frames.get(group.name, (0, 0))
        if not n_frames:  # absent in the group
            return {array: memoryview(b"") for array in group.arrays}
        if not entry.writer:
            frames = range(first, first + n_frames)
            return {array: self._frames_of_parent(entry, group, array, frames) for array in group.arrays}
        path = attempt_file(self.stage, entry.holding_attempt, group)
        size = group.frame_bytes
        data = _read_at(path, first * size, n_frames * size)
        if data is None:
            return None
        rows = dict(group.split(data, n_frames))
        is_intact = all(_frames_have_digest(entry, array, part) for array, part in rows.items())
        return rows if is_intact else None

    def _frames_of_parent(
        self, entry: JournalEntry, group: RaggedGroup, array: RaggedArray, frames: range
    ) -> memoryview:
        """Read a clip's frames in a ragged array of the parent store, which may lie in several chunks.

        Raises
        ------
        StoreError
            If they do not have the clip's digest.
        """
        block = array.block(self._parent_frames[group.name])
        size = len(array.fill_row)
        first_chunk = frames.start // block
        last_chunk = (frames.stop - 1) // block
        parts: list[memoryview] = []
        for number in range(first_chunk, last_chunk + 1):
            chunk_start = number * block
            start = max(frames.start, chunk_start)
            end = min(frames.stop, chunk_start + block)
            path = f"{self._parent}/{array.file(number)}"
            part = _read_at(path, (start - chunk_start) * size, (end - start) * size)
            if part is not None:
                parts.append(part)
        data = memoryview(b"".join(parts))
        if not _frames_have_digest(entry, array, data):
            raise self.damaged_parent(entry.clip_id, array)
        return data

    def parent_shard(
        self, array: StoredArray, rows: range, entries: Sequence[JournalEntry | None]
    ) -> tuple[Path, str] | None:
        """Return the file and digest of a shard of the parent store that can serve as the shard of a piece.

        It can if it holds exactly the rows of the piece; otherwise None is returned.

        Parameters
        ----------
        array
            A sharded array.
        rows
            The rows of the piece.
        entries
            The entry of each row; None for a row without features.
        """
        # In both stores a shard has the rows of one piece.
        parent_array = replace(array, n_clips=len(self._parent_clips))
        file = parent_array.file(rows.start // PIECE_ROWS)
        parent_clips = self._parent_clips[rows.start : rows.start + PIECE_ROWS]
        parent_digests = [clip.digests.get(array.name, NO_ROW) for clip in parent_clips]
        digests = [NO_ROW if entry is None else entry.sha256_of(array.position) for entry in entries]
        if digests != parent_digests:
            return None
        return self._parent / file, self._parent_digests[file]

    def damaged_parent(self, clip_id: str, array: StoredArray | RaggedArray) -> StoreError:
        """Return the error for a parent store whose bytes are not those of its digests."""
        reason = (
            f"clip {clip_id}, array {array.name}: not what the store that this stage grows has a digest of"
        )
        return damaged(reason, str(self._parent))

    def _row_of_parent(self, entry: JournalEntry, array: StoredArray) -> memoryview:
        """Read a clip's row of an array from the parent store; raise an error if its digest is wrong."""
        parent_array = replace(array, n_clips=len(self._parent_clips))
        block, index = divmod(self._parent_row[entry.clip_id], parent_array.block)
        path = f"{self._parent}/{parent_array.file(block)}"
        row = _read_at(path, parent_array.offset(index), len(array.fill_row))
        if row is None or not _has_digest(entry, array, row):
            raise self.damaged_parent(entry.clip_id, array)
        return row


def _has_digest(entry: JournalEntry, array: StoredArray, row: memoryview) -> bool:
    """Return whether a row has the digest of its entry, or is fill values if the entry has none."""
    digest = entry.sha256_of(array.position)
    if digest == NO_ROW:
        return row == array.fill_row
    return sha256_of(row) == digest


def _frames_have_digest(entry: JournalEntry, array: RaggedArray, rows: memoryview) -> bool:
    """Return whether rows of a ragged array have the digest of their entry."""
    return sha256_of(rows) == entry.sha256_of(array.position)


def _read_at(path: str, offset: int, size: int) -> memoryview | None:
    """Read `size` bytes from an offset of a file; None if the file is shorter, or does not exist."""
    try:
        with open_regular(path) as file:
            file.seek(offset)
            buffer = memoryview(bytearray(size))
            n_read = 0
            while n_read < size and (n_more := file.readinto(buffer[n_read:])):
                n_read += n_more
    except FileNotFoundError:
        return None
    return buffer if n_read == size else None
