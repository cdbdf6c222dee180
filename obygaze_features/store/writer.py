"""Write the pieces of a stage: rows at their offsets in any order, then one line in the writer's journal.

The files of an attempt at a piece are created exclusively and never opened for writing again. Without its
line in the journal an attempt does not count, so that a killed writer loses only its open pieces. A complete
shard is just as the store will have it: sealing links it.
"""

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias, cast

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from msgspec import structs
from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.io import force_to_disk, naming, open_binary, sync, write_all
from obygaze_features.store.arrays import CRC_BYTES, all_finite, row_view
from obygaze_features.store.format import ARRAYS, JOURNALS, PIECE_ROWS, PIECES, RAGGED_ARRAYS
from obygaze_features.store.journal import (
    NO_DIGEST,
    FrameRange,
    Journal,
    JournalEntry,
    JournalLine,
    PieceAttempt,
    is_done,
)
from obygaze_features.store.pieces import (
    RaggedArray,
    RaggedGroup,
    StagedRows,
    StageLayout,
    StoredArray,
    attempt_file,
)
from obygaze_features.store.records import (
    MAX_NUMBERS,
    ClipFeatures,
    ClipResult,
    GroupSpec,
    PlannedClip,
)
from obygaze_features.text import counted
from obygaze_features.untrusted import open_regular

BLOCK = 1 << 18
"""Bytes of a row that are checked and digested together, while they are in the processor's cache."""

WRITE_BLOCK = 1 << 20
"""Bytes of each write (4.8 MB of tokens take 1.6 ms; in a single write 3.2 ms)."""


@dataclass(frozen=True, slots=True)
class _CheckedRow:
    """The bytes of a clip's row of one array, whose values were checked.

    Parameters
    ----------
    data
        The bytes.
    sha256
        Their SHA-256; None if another process computes it from the file once they are written.
    crc32c
        Their checksum.
    """

    data: memoryview | bytes
    sha256: str | None
    crc32c: int


_NO_FRAMES = _CheckedRow(b"", NO_DIGEST, crc32c=0)
"""The rows of a clip that is absent in a ragged group."""

DigestLater = Callable[[str, int, int], Callable[[], str]]
"""Starts to compute the SHA-256 of a part of a file (path, offset, bytes) in another process.

It returns a function that waits for the SHA-256."""


_Digest: TypeAlias = str | Callable[[], str]
"""The SHA-256 of a row; or a function that waits for it, as another process computes it."""


class StageWriter:
    """Write results of clips to a stage; made by `Stage.writer`, a context manager, one per process.

    Parameters
    ----------
    reader
        Reads the rows of the stage.
    groups
        The arrays of every clip.
    clips
        The clips of the stage, in the order of its rows.
    row_of
        Clip id -> row.
    best
        Row -> its best valid entry.
    attempts
        Attempts that have a line in a journal.
    to_do
        Rows that this writer will do. A piece is finished when all of these that are in it are written.
    digest_later
        Computes the digests of written rows of shards that have `WRITE_BLOCK` bytes or more; None computes
        them here, before the rows are written.
    """

    def __init__(
        self,
        reader: StagedRows,
        groups: Sequence[GroupSpec],
        clips: Sequence[PlannedClip],
        row_of: Mapping[str, int],
        *,
        best: Mapping[int, JournalEntry],
        attempts: Iterable[PieceAttempt],
        to_do: Iterable[int],
        digest_later: DigestLater | None = None,
    ) -> None:
        """Create and lock a new journal in the stage; no other file is written before `commit`.

        Rows are written in pieces, 16 neighbouring rows each. Every try to write a piece is an attempt with
        files of its own.
        """
        # The plan: which arrays each clip has, and in which row of them it is
        self._reader = reader
        self._stage = reader.stage
        self._layout = reader.layout
        self._groups = {group.name: group for group in groups}
        self._clips = clips
        self._row_of = row_of  # clip id -> row

        # What is written, and what is left
        self._best = dict(best)  # row -> what the journals say of it
        self.to_do = set(to_do)  # rows
        self._attempts_at: defaultdict[int, set[PieceAttempt]] = defaultdict(set)  # by number of the piece
        for attempt in attempts:
            self._attempts_at[attempt.piece].add(attempt)

        # How this writer writes
        self._digest_later = digest_later  # computes digests in another process; None: in this one
        self._journal = Journal(self._stage / JOURNALS)
        self._open_pieces: dict[int, _OpenPiece] = {}  # by number
        self._is_open = True

    @property
    def name(self) -> str:
        """Stem of its journal's file name, unique among writers."""
        return self._journal.writer

    def __enter__(self) -> Self:
        """Return the writer, which is closed at the end of the `with` block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the writer. If the `with` block raised an error, errors of closing are suppressed."""
        if error is None:
            self.close()
            return
        with suppress(OSError, StoreError):  # the error that is under way matters more
            self.close()

    def close(self) -> None:
        """Finish the open pieces with the rows that they have, and close the journal.

        Raises
        ------
        OSError, StoreError
            If a piece cannot be finished; names the path. The other pieces are finished.
        """
        self._is_open = False
        # At its end, the exit stack calls all that was added to it, even if a call raises an error. What was
        # added first is called last: the journal is closed after all pieces are finished.
        with ExitStack() as exit_stack:
            exit_stack.callback(self._journal.close)
            for _, piece in sorted(self._open_pieces.items()):
                exit_stack.callback(self._finish, piece)

    def commit(self, results: Sequence[ClipResult]) -> None:
        """Write the results of some clips; all are checked before any is written.

        A clip is safe on the disk when its piece (16 neighbouring rows) is finished. That is when all clips
        of the piece that this writer is to do are written, or when the writer is closed.

        Raises
        ------
        StoreError
            If a result does not fit the stage, has NaN or inf, or its clip is already done; the message names
            clip and array.
        OSError
            If writing fails; names the path. Clips committed before are safe; this writer is closed.
        """
        if not self._is_open:
            raise StoreError(
                f"{self._journal.path}: this writer was closed, or stopped at an error: begin another"
            )
        result_of_row: dict[int, ClipResult] = {}
        checked_rows: dict[int, dict[str, _CheckedRow]] = {}  # row of the clip -> `group/array` -> its row
        for result in results:
            arrays = self._check(result)
            row = self._row_of[result.clip_id]
            if row in result_of_row:
                raise StoreError(f"clip {result.clip_id}: committed twice at once")
            result_of_row[row] = result
            checked_rows[row] = arrays
        try:
            for row in sorted(result_of_row):
                self._write(row, result_of_row[row], checked_rows[row])
        except BaseException:
            with suppress(OSError, StoreError):
                self.close()
            raise

    def _write(self, row: int, result: ClipResult, checked_rows: Mapping[str, _CheckedRow]) -> None:
        """Write the checked rows of a clip; with the last clip that is to do in a piece, finish the piece."""
        entry = JournalEntry(
            row=row,
            clip_id=result.clip_id,
            status=result.status,
            reason=result.reason,
            source=result.source,
            absent=result.absent,
            without_pictures_s=result.without_pictures_s,
        )
        piece = row // PIECE_ROWS
        open_piece = self._open_piece(piece)
        open_piece.put(entry, checked_rows)
        self.to_do.discard(row)
        is_last_to_do = self.to_do.isdisjoint(self._layout.rows(piece))
        if is_last_to_do:
            self._finish(open_piece)

    def rewrite_piece(self, number: int) -> None:
        """Write the 16 neighbouring rows of a piece into new files, each with all of its rows.

        A stage may have several files of a piece, as each attempt to extract its clips writes new ones. Of
        each clip, the best row is copied from them; rows without features get fill values. A row whose bytes
        are not those of which its journal entry has the digest is marked as missing.
        """
        open_piece = self._open_piece(number)
        damaged_entries = open_piece.copy_missing_rows(self._reader, best=self._best)
        for damaged_entry in damaged_entries:
            reason = "its bytes are not what they were"
            entry = JournalEntry(damaged_entry.row, damaged_entry.clip_id, "missing", reason)
            open_piece.put(entry, rows={})
        open_piece.complete_shards()
        self._close_piece(open_piece, whole=True)

    def _open_piece(self, number: int) -> "_OpenPiece":
        """Return this writer's open files for the piece (16 neighbouring rows) with a number, or begin them.

        Each attempt to write a piece has files and a number of its own.
        """
        if number not in self._open_pieces:
            earlier_numbers = [attempt.number for attempt in self._attempts_at[number]]
            number_of_attempt = max(earlier_numbers, default=0) + 1
            attempt = PieceAttempt(number, self.name, number_of_attempt)
            self._open_pieces[number] = _OpenPiece(self._stage, self._layout, attempt, self._digest_later)
        return self._open_pieces[number]

    def _finish(self, open_piece: "_OpenPiece") -> None:
        """Flush a piece (16 neighbouring rows) to the disk, with whole shards if all its clips are done.

        A whole shard is one that the sealed store can use as it is. If the shards cannot be made whole, the
        rows that this writer has written are kept all the same.

        Raises
        ------
        OSError, StoreError
            As when the disk is full; what could be kept is kept.
        """
        try:
            has_whole_shards = self._make_shards_whole(open_piece)
        except (OSError, StoreError):
            self._close_piece(open_piece, whole=False)
            raise
        self._close_piece(open_piece, whole=has_whole_shards)

    def _make_shards_whole(self, open_piece: "_OpenPiece") -> bool:
        """Complete the shards of a piece (16 neighbouring rows) if possible; return whether they are whole.

        A shard is a file with the rows of the piece in one array. Sealing makes a whole shard a file of the
        store by a hard link, without copying it. Where the rows of a piece were written in several attempts,
        such as before and after an interruption, each attempt has shards with its own rows alone: the rows of
        earlier attempts are copied into these first.

        The shards stay incomplete if a clip of the piece was not tried yet, or a row to be copied is damaged.
        """
        rows = self._layout.rows(open_piece.attempt.piece)
        rows_written_now = open_piece.entries.keys()
        rows_written_before = self._best.keys()
        all_written = all(row in rows_written_now or row in rows_written_before for row in rows)
        has_shards = bool(self._layout.sharded_arrays)
        if not all_written or not has_shards:
            return False

        damaged_entries = open_piece.copy_missing_rows(self._reader, best=self._best)
        if damaged_entries:
            return False
        open_piece.complete_shards()
        return True

    def _close_piece(self, open_piece: "_OpenPiece", *, whole: bool) -> None:
        """Flush a piece (16 neighbouring rows) to the disk, write its journal line, and clear up.

        The machine may stop after any step, so the order matters: first the rows, then the line in the
        journal, which says that they are done; then files of earlier attempts to write the piece are removed.
        Until the line is there, the rows of earlier attempts are the valid ones.

        Parameters
        ----------
        open_piece
            The piece, as this attempt has written it.
        whole
            Whether the files of this attempt have all rows of the piece, and its shards can become files of
            the store. Then the files of earlier attempts are no longer needed.
        """
        number = open_piece.attempt.piece
        # Forgotten before the flush, so that a piece whose flush fails is not flushed again when the writer
        # is closed: after a failed fsync, a second one reports success although bytes are lost.
        del self._open_pieces[number]
        open_piece.flush()

        open_piece.add_digests()  # to the entries of the rows that this attempt has written
        entries = open_piece.entries  # row -> its entry
        self._journal.append(JournalLine(list(entries.values()), whole))
        self._best |= entries

        # Attempts at this piece that journals named when this writer began, and its own. Those that other
        # writers began later are not among them: these may still be working.
        earlier_attempts = self._attempts_at[number]
        if whole:
            for earlier_attempt in earlier_attempts:
                self._remove_files(earlier_attempt)
        earlier_attempts.add(open_piece.attempt)

    def _remove_files(self, attempt: PieceAttempt) -> None:
        """Remove the files of an attempt to write 16 neighbouring rows: of rows, shards and frames."""
        paths = [attempt_file(self._stage, attempt)]
        paths += [attempt_file(self._stage, attempt, array) for array in self._layout.sharded_arrays]
        paths += [attempt_file(self._stage, attempt, group) for group in self._layout.ragged_groups]
        for path in paths:
            Path(path).unlink(missing_ok=True)

    def _check(self, result: ClipResult) -> dict[str, _CheckedRow]:
        """Check the features of a clip before they are written, and convert them to bytes.

        Returns
        -------
        dict
            `group/array` -> its row as bytes; empty for a failed clip.

        Raises
        ------
        StoreError
            The clip is not one to be written, is done already, or its features do not fit what is declared.
        """
        location = f"clip {result.clip_id}"
        self._check_is_to_write(result, location)
        if result.status == "failed":
            return {}

        groups_of_result = result.groups.keys() | result.absent.keys()
        if groups_of_result != self._groups.keys():
            raise StoreError(
                f"{location}: expected features of {', '.join(self._groups)}; "
                f"found {', '.join(result.groups) or 'none'}"
            )

        rows: dict[str, _CheckedRow] = {}
        for name, features in result.groups.items():
            checked_rows = _check_features(
                features,
                self._groups[name],
                f"{location}, group {name}",
                hash_large_rows=self._digest_later is None,
            )
            for array_name, checked_row in checked_rows.items():
                rows[f"{name}/{array_name}"] = checked_row
        rows |= self._rows_of_absent_groups(result.absent.keys())
        return rows

    def _check_is_to_write(self, result: ClipResult, location: str) -> None:
        """Raise an error if the stage lacks the clip or has its row already, or a time is not in the clip."""
        row = self._row_of.get(result.clip_id)
        if row is None:
            raise StoreError(f"{location}: not in the plan of this stage")
        clip = self._clips[row]
        result.check_gaps_within(clip.start_s, clip.end_s)
        if not self._may_write(row):
            raise StoreError(f"{location}: already done; rows of a stage are written once")

    def _may_write(self, row: int) -> bool:
        """Return whether this writer may write a row: not if it has done so already, or the row has features.

        A row on the writer's list (`to_do`) may be written although it has features. Another process may have
        done it after the list was made, with the same features; or it is to be done again.
        """
        open_piece = self._open_pieces.get(row // PIECE_ROWS)
        is_written_here = open_piece is not None and row in open_piece.entries
        if is_written_here:
            return False
        is_on_list = row in self.to_do  # this writer takes a row off the list when it writes it
        has_features = row in self._best and is_done(self._best[row])
        return is_on_list or not has_features

    def _rows_of_absent_groups(self, groups: Collection[str]) -> dict[str, _CheckedRow]:
        """Return what is written for a clip in groups that have no features of it: `group/array` -> row.

        It is a row of fill values, or, where clips have different numbers of frames, no frames.
        """
        rows: dict[str, _CheckedRow] = {}
        for array in (*self._layout.small_arrays, *self._layout.sharded_arrays):
            group_name, _, _ = array.name.partition("/")
            if group_name in groups:
                no_digest = NO_DIGEST
                rows[array.name] = _CheckedRow(array.fill_row, no_digest, crc32c(array.fill_row))

        for group in self._layout.ragged_groups:
            if group.name in groups:
                rows |= {ragged_array.name: _NO_FRAMES for ragged_array in group.arrays}
        return rows


class _OpenPiece:
    """An attempt at a piece that is being written.

    It keeps the entries of the clips, the open files, how many frames of each ragged group were written, and
    the digests of rows, some of which are still being computed.

    Parameters
    ----------
    stage
        The staging folder.
    layout
        Places of the rows in files.
    attempt
        The attempt, which names the files.
    digest_later
        Starts to compute digests of large rows in another process; None if they are computed in this one.
    """

    def __init__(
        self, stage: Path, layout: StageLayout, attempt: PieceAttempt, digest_later: DigestLater | None
    ) -> None:
        """Begin an attempt to write a piece, 16 neighbouring rows; files are created with the first rows."""
        self._stage = stage
        self._layout = layout
        self.attempt = attempt
        self._digest_later = digest_later
        self.entries: dict[int, JournalEntry] = {}  # row -> its entry
        self._descriptors: dict[str, int] = {}  # path of an open file -> its descriptor
        # Name of a ragged group -> number of frames that were written.
        self._n_frames = {group.name: 0 for group in layout.ragged_groups}

        # All arrays, by their position: an entry has their digests in this order.
        arrays: list[StoredArray | RaggedArray] = [*layout.small_arrays, *layout.sharded_arrays]
        for group in layout.ragged_groups:
            arrays += group.arrays
        self._arrays = sorted(arrays, key=lambda array: array.position)
        self._digests: dict[int, list[_Digest]] = {}  # row -> the digest of each of `_arrays`

    def put(self, entry: JournalEntry, rows: Mapping[str, _CheckedRow]) -> None:
        """Write the rows of a clip to the files of the attempt, and add its journal entry.

        Parameters
        ----------
        entry
            The entry. Writer, attempt and places of frames are filled in here. Digests are added by
            `add_digests`, unless the entry has them, as that of a row that is copied.
        rows
            `group/array` -> the checked row; empty for a failed clip.
        """
        frames: dict[str, FrameRange] = {}
        if rows:
            self._write_rows(entry.row, rows)
            frames = self._append_all_frames(rows)

        self.entries[entry.row] = structs.replace(
            entry, writer=self.attempt.writer, attempt=self.attempt.number, frames=frames
        )
        needs_digests = bool(rows) and not entry.sha256
        if needs_digests:
            self._digests[entry.row] = [
                self._digest(array, entry.row, rows[array.name]) for array in self._arrays
            ]

    def _write_rows(self, row: int, rows: Mapping[str, _CheckedRow]) -> None:
        """Write a clip's rows of all arrays that are not ragged.

        Its rows of the small arrays are written side by side into one file, those of the others into shards.
        """
        small_rows = b"".join(rows[array.name].data for array in self._layout.small_arrays)
        index_in_piece = row % PIECE_ROWS
        file_of_rows = attempt_file(self._stage, self.attempt)
        self._write(file_of_rows, index_in_piece * len(small_rows), small_rows)
        for array in self._layout.sharded_arrays:
            self._put_in_shard(array, row, rows[array.name].data, rows[array.name].crc32c)

    def _append_all_frames(self, rows: Mapping[str, _CheckedRow]) -> dict[str, FrameRange]:
        """Append the frames of a clip to the files of all ragged groups.

        Returns
        -------
        dict
            Group -> where the clip's frames lie in the file; without groups in which it has none.
        """
        frames = {}
        for group in self._layout.ragged_groups:
            frame_range = self._append_frames(group, rows)
            if frame_range.n_frames:
                frames[group.name] = frame_range
        return frames

    def _append_frames(self, group: RaggedGroup, rows: Mapping[str, _CheckedRow]) -> FrameRange:
        """Append a clip's frames to the file of a ragged group; return which frames of the file they are."""
        data = b"".join(rows[array.name].data for array in group.arrays)
        first_frame = self._n_frames[group.name]  # behind those that were written before
        n_frames = len(data) // group.frame_bytes
        if data:
            file_of_frames = attempt_file(self._stage, self.attempt, group)
            self._write(file_of_frames, first_frame * group.frame_bytes, data)
        self._n_frames[group.name] += n_frames
        return FrameRange(first_frame, n_frames)

    def _digest(self, array: StoredArray | RaggedArray, row: int, checked: _CheckedRow) -> _Digest:
        """Return the SHA-256 of a row that was written, or begin to compute it in another process.

        Returns
        -------
        str or Callable
            The SHA-256; or a function that waits for the other process and returns it.
        """
        if checked.sha256 is not None:
            return checked.sha256

        # `_check_features` leaves out the digests of large rows of shards only, and only if there is another
        # process for them (`digest_later`). Type checkers cannot know either.
        digest_later = cast("DigestLater", self._digest_later)
        shard_array = cast("StoredArray", array)
        path = attempt_file(self._stage, self.attempt, shard_array)
        offset_in_shard = shard_array.offset(row % PIECE_ROWS)
        return digest_later(path, offset_in_shard, len(checked.data))

    def add_digests(self) -> None:
        """Add the digests of all rows to their journal entries; wait for those that another process computes.

        An entry holds the digests of a clip's arrays joined to one text, in the order of the arrays.
        """
        for row, digests in self._digests.items():
            joined = ""
            for digest in digests:
                if isinstance(digest, str):
                    joined += digest
                else:
                    wait_for_digest = digest
                    joined += wait_for_digest()
            self.entries[row] = structs.replace(self.entries[row], sha256=joined)

    def copy_missing_rows(self, reader: StagedRows, best: Mapping[int, JournalEntry]) -> list[JournalEntry]:
        """Copy the rows with features that these files lack from earlier files or the store that is extended.

        Parameters
        ----------
        reader
            Reads the rows of the stage.
        best
            Row -> its best entry.

        Returns
        -------
        list of JournalEntry
            Entries of the rows that were not copied, because their bytes are damaged.
        """
        damaged_entries = []
        for row in self._layout.rows(self.attempt.piece):
            entry = best.get(row)
            if row in self.entries or entry is None or not is_done(entry):
                continue
            rows = _read_rows(reader, entry)
            if rows is None:
                damaged_entries.append(entry)
            else:
                self.put(entry, rows)  # with this attempt in place of the earlier one
        return damaged_entries

    def complete_shards(self) -> None:
        """Make whole files of the shards, into which the rows of clips with features are written already.

        A shard is the file of one array with the 16 rows of a piece. Rows of clips without features, as of a
        clip that failed, get fill values. The index at the end of the file says where each row is.
        """
        rows = self._layout.rows(self.attempt.piece)
        for array in self._layout.sharded_arrays:
            checksum = crc32c(array.fill_row)
            for row in rows:
                has_features = row in self.entries and is_done(self.entries[row])
                if not has_features:
                    self._put_in_shard(array, row, array.fill_row, checksum)

            path = attempt_file(self._stage, self.attempt, array)
            end_of_rows = array.offset(len(rows))
            self._write(path, end_of_rows, array.shard_index(len(rows)))

    def flush(self) -> None:
        """Flush the files of the attempt to the disk, and close them, even if a flush fails."""

        def flush_file(path: str, descriptor: int) -> None:
            """Flush one file to the disk."""
            with naming(Path(path)):
                force_to_disk(descriptor)

        try:
            if self._descriptors:
                # Several at a time, because file systems combine flushes.
                with ThreadPoolExecutor(len(self._descriptors)) as threads:
                    list(threads.map(flush_file, self._descriptors.keys(), self._descriptors.values()))
                sync(self._stage / PIECES)
        finally:
            for descriptor in self._descriptors.values():
                with suppress(OSError):
                    os.close(descriptor)

    def _put_in_shard(self, array: StoredArray, row: int, data: memoryview | bytes, checksum: int) -> None:
        """Write a row and its checksum into the shard of an array."""
        path = attempt_file(self._stage, self.attempt, array)
        offset = array.offset(row % PIECE_ROWS)
        checksum_bytes = checksum.to_bytes(CRC_BYTES, "little")
        if len(data) < WRITE_BLOCK:  # one write; joining copies the row, which for large rows takes longer
            self._write(path, offset, b"".join((data, checksum_bytes)))
        else:
            self._write(path, offset, data)
            self._write(path, offset + len(data), checksum_bytes)

    def _write(self, path: str, offset: int, data: memoryview | bytes) -> None:
        """Write bytes at an offset of a file of the attempt.

        A file is created by its first write, and must not exist before: no other attempt has its name. It
        stays open until `flush`.
        """
        with naming(Path(path)):
            if path not in self._descriptors:
                self._descriptors[path] = open_binary(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            descriptor = self._descriptors[path]
            os.lseek(descriptor, offset, os.SEEK_SET)
            for start in range(0, len(data), WRITE_BLOCK):
                write_all(descriptor, memoryview(data)[start : start + WRITE_BLOCK])


def _read_rows(reader: StagedRows, entry: JournalEntry) -> dict[str, _CheckedRow] | None:
    """Read a clip's row of every array from the stage or the parent store; None if a digest is wrong.

    Returns
    -------
    dict, or None
        `group/array` -> the row.
    """
    data_of_arrays: list[tuple[StoredArray | RaggedArray, memoryview]] = []

    for array in reader.layout.sharded_arrays:
        row = reader.sharded_row(entry, array)
        if row is None:
            return None
        data_of_arrays.append((array, row))

    for group in reader.layout.ragged_groups:
        frames = reader.frames(entry, group)
        if frames is None:
            return None
        data_of_arrays += frames.items()

    small_rows = reader.small_rows(entry)  # the rows of all small arrays, side by side
    if small_rows is None:
        return None
    data_of_arrays += reader.layout.split(small_rows)

    rows = {}
    for any_array, data in data_of_arrays:
        rows[any_array.name] = _CheckedRow(data, entry.sha256_of(any_array.position), crc32c(data))
    return rows


# --- checking results
# ---------------------------------------------------------------------------
def digest_of_part(path: str, offset: int, size: int) -> str:
    """Compute the SHA-256 of a part of a file, which is read in blocks.

    Parameters
    ----------
    path
        The file.
    offset, size
        First byte of the part, and its number of bytes.
    """
    digest = hashlib.sha256()
    block = memoryview(bytearray(BLOCK))
    n_left = size
    with open_regular(path) as file:
        file.seek(offset)
        while n_left > 0:
            n_read = file.readinto(block[: min(n_left, BLOCK)])
            if not n_read:  # the end of the file
                break
            digest.update(block[:n_read])
            n_left -= n_read
    return digest.hexdigest()


def _check_features(
    features: ClipFeatures, group: GroupSpec, location: str, *, hash_large_rows: bool = True
) -> dict[str, _CheckedRow]:
    """Check the arrays of a clip before they are written: their names, types, shapes and values.

    Each array is read once, for the check and for the checksum and digest of its bytes. Array -> its row,
    with these, is returned.

    Parameters
    ----------
    features
        The features of the clip in the group.
    group
        What the group declares.
    location
        What messages call the clip and the group.
    hash_large_rows
        Whether to compute the SHA-256 of tokens of `WRITE_BLOCK` bytes or more too. If not, another process
        computes it from the file, and the row is returned without it.

    Raises
    ------
    StoreError
        An array does not fit, or has NaN or inf.
    """
    expected = group.clip_arrays()
    arrays = {**features.arrays, "time_s": features.time_s, "frame_index": features.frame_index}
    if arrays.keys() != expected.keys():
        raise StoreError(
            f"{location}: expected arrays {', '.join(expected)}; found {', '.join(sorted(arrays))}"
        )
    # Of imported features, the times and indices of frames may be unknown: NaN, and -1.
    is_imported = group.provenance.get("imported") is True
    n_frames = len(features.time_s)

    rows: dict[str, _CheckedRow] = {}
    for name, (shape, dtype) in expected.items():
        values = arrays[name]
        where_array = f"{location}, array {name}"

        # Type and shape
        _check_type(values, dtype, where_array)
        has_any_number_of_frames = group.ragged and name in RAGGED_ARRAYS
        if has_any_number_of_frames:
            _check_ragged_shape(values, (n_frames, *shape[1:]), where_array)
        elif values.shape != shape:
            raise StoreError(f"{where_array}: expected shape {list(shape)}, found {list(values.shape)}")

        # Values: none is NaN or inf, except that imported times may be unknown, and then all are NaN
        is_large = ARRAYS[name].sharded and values.nbytes >= WRITE_BLOCK
        is_hashed_here = hash_large_rows or not is_large
        rows[name], is_finite = _digest_row(values, hashes=is_hashed_here)
        may_be_nan = is_imported and name == "time_s"
        are_unknown_times = may_be_nan and np.isnan(values).all()
        if not is_finite and not are_unknown_times:
            raise StoreError(f"{where_array}: {_not_finite(values)}")

    _check_frame_index(features.frame_index, location, may_be_unknown=is_imported)
    return rows


def _check_frame_index(indices: NDArray[np.int64], location: str, *, may_be_unknown: bool) -> None:
    """Raise an error if an index of a frame is negative, unless all are -1 and may be unknown."""
    are_unknown = may_be_unknown and (indices == -1).all()
    if (indices < 0).any() and not are_unknown:
        raise StoreError(f"{location}, array frame_index: a negative index; -1 in all frames where unknown")


def _check_type(values: object, dtype: np.dtype[Any], location: str) -> None:
    """Raise an error unless `values` is an array of a data type, in either byte order.

    It is not converted silently, since that could lose precision.
    """
    if not isinstance(values, np.ndarray):
        raise StoreError(f"{location}: expected a numpy array, found {type(values).__name__}")
    if values.dtype.newbyteorder("<") != dtype:
        raise StoreError(f"{location}: expected {dtype.name}, found {values.dtype}; convert it on purpose")


def _not_finite(values: NDArray[Any]) -> str:
    """Return in words how many values of an array are NaN or inf, with a hint at the likely cause."""
    kind = "NaN" if np.isnan(values).any() else "inf"
    hint = " (float16 overflow?)" if kind == "inf" and values.dtype == np.float16 else ""
    n_wrong = int((~np.isfinite(values)).sum())
    verb = "is" if n_wrong == 1 else "are"
    return f"{counted(n_wrong, 'value')} {verb} not finite, {kind} among them{hint}"


def _check_ragged_shape(values: NDArray[Any], shape: tuple[int, ...], location: str) -> None:
    """Check that an array of a ragged group has the expected shape, at least one frame, and a bounded size.

    Raises
    ------
    StoreError
        If it has another shape, no frames, or more than `MAX_NUMBERS` numbers.
    """
    n_frames = shape[0]
    if values.shape != shape or n_frames == 0:
        raise StoreError(
            f"{location}: expected shape {list(shape)}, a row for each of one frame or more; "
            f"found {list(values.shape)}"
        )
    if values.size > MAX_NUMBERS:
        raise StoreError(f"{location}: {list(shape)} is more than {MAX_NUMBERS} numbers of one clip")


def _digest_row(values: NDArray[Any], *, hashes: bool = True) -> tuple[_CheckedRow, bool]:
    """Return the bytes of a row with their digests, and whether all values are finite.

    This is done block by block, so that each block is still in the processor's cache for the next step.

    Parameters
    ----------
    values
        The row.
    hashes
        Whether to compute the SHA-256, which takes most of the time, or only the checksum.
    """
    data = row_view(values)
    stored_dtype = values.dtype.newbyteorder("<")
    sha256 = hashlib.sha256()
    checksum = 0
    is_finite = True
    for start in range(0, len(data), BLOCK):
        block = data[start : start + BLOCK]
        if hashes:
            sha256.update(block)
        checksum = crc32c(block, checksum)
        is_finite = is_finite and all_finite(np.frombuffer(block, stored_dtype))

    checked_row = _CheckedRow(data, sha256.hexdigest() if hashes else None, checksum)
    return checked_row, is_finite
