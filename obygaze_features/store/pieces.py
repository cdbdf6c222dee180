"""Define where the rows of a stage and of a store lie: pieces of neighbouring rows, chunks and shards.

A piece is `PIECE_ROWS` neighbouring rows of all arrays. An attempt at it writes one file of rows, with the
row of every small array of every clip; for each array of tokens the shard, just as the store will have it;
and for each ragged group one file with the frames of the clips.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

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
from obygaze_features.store.journal import NO_DIGEST, JournalEntry, PieceAttempt
from obygaze_features.store.records import GroupSpec, StoredClip
from obygaze_features.store.store_files import FolderFiles, damaged, read_digests
from obygaze_features.untrusted import open_regular


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
        return ARRAYS[_array_name(self.name)].sharded

    @property
    def rows_per_file(self) -> int:
        """Number of rows in one chunk or shard."""
        return block_rows(_array_name(self.name), self.n_clips)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, without a checksum."""
        return len(self.fill_row)

    def file(self, number: int) -> str:
        """Return the relative path of the chunk or shard with a number, counted from 0 along the rows."""
        return chunk_file(self.name, number)

    def offset(self, index: int) -> int:
        """Return the byte at which a row begins in its chunk or shard, given the row's index there."""
        if self.sharded:  # each row has its own checksum behind it
            return index * (self.row_bytes + CRC_BYTES)
        return index * self.row_bytes

    def blocks(self) -> Iterator[tuple[str, int]]:
        """Yield the relative path and the size in bytes of every chunk or shard.

        The last shard has only as many rows as there are, but an index of full length; the last chunk is
        filled up.
        """
        for number, start in enumerate(range(0, self.n_clips, self.rows_per_file)):
            if self.sharded:
                n_rows = min(self.rows_per_file, self.n_clips - start)
                bytes_of_rows = self.offset(n_rows)
                bytes_of_index = INDEX_BYTES * self.rows_per_file + CRC_BYTES
                yield self.file(number), bytes_of_rows + bytes_of_index
            else:
                bytes_of_rows = self.offset(self.rows_per_file)
                yield self.file(number), bytes_of_rows + CRC_BYTES

    def shard_index(self, n_rows: int) -> bytes:
        """Return the bytes of the index at a shard's end, with a checksum.

        It has the offset and the size of each row. Both have all bits set, as Zarr demands, for the rows from
        `n_rows` on, which the shard lacks.
        """
        all_bits_set = 2**64 - 1
        index = np.full((self.rows_per_file, 2), all_bits_set, "<u8")  # a line for each row: offset and size
        index[:n_rows, 0] = [self.offset(row) for row in range(n_rows)]
        size_of_row = self.offset(1)  # with its checksum: the second row begins behind it
        index[:n_rows, 1] = size_of_row
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
        """Return the relative path of the chunk with a number, counted from 0 along the frames."""
        return chunk_file(self.name, number, ragged=True)

    def rows_per_chunk(self, n_rows: int) -> int:
        """Return the number of rows of a chunk, given the number of all rows."""
        return block_rows(_array_name(self.name), n_rows, ragged=True)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, which is one frame."""
        return len(self.fill_row)


def _array_name(name: str) -> str:
    """Return the name of an array, given as `group/array`, within its group."""
    _group, _, array = name.partition("/")
    return array


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
        """Bytes of one frame in all arrays together."""
        return sum(array.row_bytes for array in self.arrays)

    def split(self, data: memoryview, n_frames: int) -> Iterator[tuple[RaggedArray, memoryview]]:
        """Split the stored bytes of a clip's frames; yield each array of the group with its part of them.

        Parameters
        ----------
        data
            The bytes: all frames in the first array, then all in the next, and so on.
        n_frames
            Number of the clip's frames.
        """
        start = 0
        for array in self.arrays:
            end = start + n_frames * array.row_bytes
            yield array, data[start:end]
            start = end


class ParentRows(NamedTuple):
    """The sealed store that a stage extends with new clips, whose rows the stage does not have itself.

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
    n_clips
        Number of clips.
    names
        All arrays, `group/array`, in the order of an entry's digests.
    small_arrays
        Those whose rows lie in the file of rows: all of a clip's together, one clip's after the other's.
    sharded_arrays
        Those of which each piece has a file of its own, which becomes a shard of the store.
    ragged_groups
        The groups whose frames lie in a file of the group, one clip's after another's as they were written.
    small_row_bytes
        Bytes of a clip in the file of rows: its rows of all small arrays.
    """

    def __init__(self, groups: Sequence[GroupSpec], n_clips: int) -> None:
        """Lay out the arrays of some groups, sorted by name within a group, for `n_clips` clips.

        An array's position in `names` is its position in the digests of a journal entry. There are three
        kinds of arrays: those whose rows are stored in shards; small ones, stored in chunks; and ragged ones,
        in which clips have any number of frames.
        """
        self.n_clips = n_clips

        names: list[str] = []  # `group/array`
        arrays: list[StoredArray] = []  # those that are not ragged
        ragged_groups: list[RaggedGroup] = []
        for group in groups:
            ragged_arrays: list[RaggedArray] = []
            for array, (shape, dtype) in sorted(group.clip_arrays().items()):
                name = f"{group.name}/{array}"
                position = len(names)
                names.append(name)
                # The bytes that stand for a clip, or a frame, without features
                fill_value = ARRAYS[array].fill
                is_ragged = group.ragged and array in RAGGED_ARRAYS
                if is_ragged:
                    fill_frame = np.full(shape[1:], fill_value, dtype).tobytes()
                    ragged_arrays.append(RaggedArray(name, position, fill_frame))
                else:
                    fill_row = np.full(shape, fill_value, dtype).tobytes()
                    arrays.append(StoredArray(name, position, fill_row, n_clips))
            if ragged_arrays:
                ragged_groups.append(RaggedGroup(group.name, tuple(ragged_arrays)))

        self.names = tuple(names)
        self.small_arrays = tuple(array for array in arrays if not array.sharded)
        self.sharded_arrays = tuple(array for array in arrays if array.sharded)
        self.ragged_groups = tuple(ragged_groups)
        self.small_row_bytes = sum(array.row_bytes for array in self.small_arrays)  # of a clip

    @property
    def n_pieces(self) -> int:
        """Number of pieces: groups of `PIECE_ROWS` neighbouring rows; the last may have fewer."""
        return math.ceil(self.n_clips / PIECE_ROWS)

    def rows(self, piece: int) -> range:
        """Return the rows of the piece with a number: 16 neighbouring rows, fewer in the last piece."""
        start = piece * PIECE_ROWS
        return range(start, min(start + PIECE_ROWS, self.n_clips))

    def split(self, small_rows: memoryview) -> Iterator[tuple[StoredArray, memoryview]]:
        """Yield each small array with a clip's row of it.

        Parameters
        ----------
        small_rows
            The bytes of a clip as they are in the file of rows: its row of the first small array, behind it
            that of the second, and so on.
        """
        start = 0
        for array in self.small_arrays:
            end = start + array.row_bytes
            yield array, small_rows[start:end]
            start = end


def attempt_file(stage: Path, attempt: PieceAttempt, content: StoredArray | RaggedGroup | None = None) -> str:
    """Return the path of one of the files that an attempt at a piece writes.

    It is `PIECE.WRITER.ATTEMPT.ENDING` in the folder of pieces. It is a string, because making a `Path` for
    every row would take a third of the time of sealing.

    Parameters
    ----------
    stage
        The staging folder.
    attempt
        The attempt.
    content
        An array for its shard, a ragged group for the file of its frames, None for the file of rows.
    """
    if content is None:
        ending = "rows"
    elif isinstance(content, RaggedGroup):
        ending = f"{content.name}.ragged"
    else:
        ending = content.name.replace("/", ".")
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
        """Prepare to read the rows of a stage and of its parent, the store that the stage adds clips to.

        Only the digests of the parent's files are read at once. Without a parent it has no rows.
        """
        self.stage = stage
        self.layout = layout
        self._parent = parent or ParentRows(folder=Path(), clips=(), n_frames={})
        self._parent_row = {clip.clip_id: row for row, clip in enumerate(self._parent.clips)}
        # File of the parent store -> SHA-256.
        self._parent_digests: Mapping[str, str] = {}
        if parent is not None:
            self._parent_digests = read_digests(FolderFiles(parent.folder))

    def small_rows(self, entry: JournalEntry) -> memoryview | None:
        """Read a clip's row of every small array, one after the other; return None if a digest is wrong.

        Small arrays are those that are stored in chunks, and not in shards. The rows are read from the file
        that the journal entry of the clip names, or from the store that is extended.
        """
        if entry.is_in_parent:
            rows = [self._row_of_parent(entry, array) for array in self.layout.small_arrays]
            small_rows: memoryview | None = memoryview(b"".join(rows))
        else:
            size = self.layout.small_row_bytes
            file = attempt_file(self.stage, entry.holding_attempt)
            index_in_piece = entry.row % PIECE_ROWS
            small_rows = _read_at(file, index_in_piece * size, size)
        if small_rows is None:
            return None

        for array, row in self.layout.split(small_rows):
            if not _has_digest(entry, array, row):
                return None
        return small_rows

    def sharded_row(self, entry: JournalEntry, array: StoredArray) -> memoryview | None:
        """Read a clip's row of an array that is stored in shards; return None if its digest is wrong.

        It is read from the file that the journal entry of the clip names, or from the store that is extended,
        whose damage is raised as a StoreError.
        """
        if entry.is_in_parent:
            return self._row_of_parent(entry, array)
        path = attempt_file(self.stage, entry.holding_attempt, array)
        index_in_shard = entry.row % PIECE_ROWS
        row = _read_at(path, array.offset(index_in_shard), array.row_bytes)
        if row is None or not _has_digest(entry, array, row):
            return None
        return row

    def frames(self, entry: JournalEntry, group: RaggedGroup) -> dict[RaggedArray, memoryview] | None:
        """Read a clip's frames in each array of a group whose clips have different numbers of frames.

        Returns
        -------
        dict or None
            Array -> the bytes of the frames; empty if the group has no features of the clip. None if a digest
            is wrong.
        """
        if group.name not in entry.frames:  # the clip is absent in the group
            return {array: memoryview(b"") for array in group.arrays}
        # Where the frames are: in the arrays of the parent store, or in the file of an attempt.
        first, n_frames = entry.frames[group.name]

        if entry.is_in_parent:
            frames = range(first, first + n_frames)
            return {array: self._frames_of_parent(entry, group, array, frames) for array in group.arrays}

        # The attempt's file has, clip by clip, all frames in the first array, then in the next, and so on.
        path = attempt_file(self.stage, entry.holding_attempt, group)
        size = group.frame_bytes
        data = _read_at(path, first * size, n_frames * size)
        if data is None:  # the file is too short, or not there
            return None
        rows_of_array = dict(group.split(data, n_frames))
        for array, rows in rows_of_array.items():
            if not _frames_have_digest(entry, array, rows):
                return None
        return rows_of_array

    def _frames_of_parent(
        self, entry: JournalEntry, group: RaggedGroup, array: RaggedArray, frames: range
    ) -> memoryview:
        """Read a clip's frames in a ragged array of the parent store, which may lie in several chunks.

        Parameters
        ----------
        entry
            Journal entry of the clip.
        group, array
            The array, and the ragged group that it is of.
        frames
            Numbers of the frames, counted over all clips of the parent store.

        Raises
        ------
        StoreError
            If they do not have the clip's digest.
        """
        chunk_frames = array.rows_per_chunk(self._parent.n_frames[group.name])  # number of frames in a chunk
        first_chunk = frames.start // chunk_frames
        last_chunk = (frames.stop - 1) // chunk_frames

        frames_of_chunks: list[memoryview] = []
        for number in range(first_chunk, last_chunk + 1):
            # The clip's frames in this chunk.
            chunk_start = number * chunk_frames
            start = max(frames.start, chunk_start)
            end = min(frames.stop, chunk_start + chunk_frames)

            path = f"{self._parent.folder}/{array.file(number)}"
            offset = (start - chunk_start) * array.row_bytes
            frames_of_chunk = _read_at(path, offset, (end - start) * array.row_bytes)
            if frames_of_chunk is not None:  # else the digest will be wrong
                frames_of_chunks.append(frames_of_chunk)
        data = memoryview(b"".join(frames_of_chunks))
        if not _frames_have_digest(entry, array, data):
            raise self.damaged_parent_error(entry.clip_id, array)
        return data

    def parent_shard(
        self, array: StoredArray, rows: range, entries: Sequence[JournalEntry | None]
    ) -> tuple[Path, str] | None:
        """Return path and digest of the parent store's shard that can be linked into the new store.

        A shard has 16 rows of an array. The parent's shard at the place of the piece is compared: if all its
        rows have the digests of the piece's rows, it is the same file. None if any differs.

        Parameters
        ----------
        array
            An array that is stored in shards, of 16 rows each.
        rows
            The rows of a piece, which are those of a shard.
        entries
            The journal entry of each row, which has its digest; None for a row without features.
        """
        parent_clips = self._parent.clips[rows.start : rows.start + PIECE_ROWS]
        parent_digests = [clip.digests.get(array.name, NO_DIGEST) for clip in parent_clips]
        digests = [NO_DIGEST if entry is None else entry.sha256_of(array.position) for entry in entries]
        if digests != parent_digests:
            return None

        file = self._in_parent(array).file(rows.start // PIECE_ROWS)
        return self._parent.folder / file, self._parent_digests[file]

    def damaged_parent_error(self, clip_id: str, array: StoredArray | RaggedArray) -> StoreError:
        """Return the error for a parent store whose bytes have changed since it was sealed.

        The parent is the sealed store that this stage extends by further clips: rows that it has are taken
        from it. Sealing noted a digest of each row, which the row here no longer has.

        Parameters
        ----------
        clip_id, array
            Clip and array of the row.
        """
        location = f"clip {clip_id}, array {array.name}"
        reason = f"{location}: not what the store that this stage grows has a digest of"
        return damaged(reason, str(self._parent.folder))

    def _row_of_parent(self, entry: JournalEntry, array: StoredArray) -> memoryview:
        """Read a clip's row of an array from the parent store; raise an error if its digest is wrong.

        There the array has more or fewer rows than here, in files of so many rows each (chunks or shards).
        """
        parent_array = self._in_parent(array)  # the same array, with the number of rows of the parent store
        row_there = self._parent_row[entry.clip_id]
        number_of_file, index_in_file = divmod(row_there, parent_array.rows_per_file)
        path = f"{self._parent.folder}/{parent_array.file(number_of_file)}"
        row = _read_at(path, parent_array.offset(index_in_file), array.row_bytes)
        if row is None or not _has_digest(entry, array, row):
            raise self.damaged_parent_error(entry.clip_id, array)
        return row

    def _in_parent(self, array: StoredArray) -> StoredArray:
        """Return the layout of an array in the parent store, which has fewer rows."""
        return replace(array, n_clips=len(self._parent.clips))


def _has_digest(entry: JournalEntry, array: StoredArray, row: memoryview) -> bool:
    """Return whether a clip's row of an array has the digest that the clip's journal entry names.

    `NO_DIGEST` stands for the digest of a clip that is absent in the array: then the row has fill values.
    """
    digest = entry.sha256_of(array.position)
    if digest == NO_DIGEST:
        return row == array.fill_row
    return sha256_of(row) == digest


def _frames_have_digest(entry: JournalEntry, array: RaggedArray, rows: memoryview) -> bool:
    """Return whether a clip's rows of a ragged array have the digest that the clip's journal entry names."""
    return sha256_of(rows) == entry.sha256_of(array.position)


def _read_at(path: str, offset: int, size: int) -> memoryview | None:
    """Read `size` bytes from an offset of a file; None if the file is shorter, or does not exist."""
    buffer = memoryview(bytearray(size))
    n_read = 0
    try:
        with open_regular(path) as file:
            file.seek(offset)
            while n_read < size:
                n_more = file.readinto(buffer[n_read:])  # may read fewer bytes than there are
                if not n_more:
                    return None
                n_read += n_more
    except FileNotFoundError:
        return None
    return buffer
