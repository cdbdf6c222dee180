"""Read and write the journals of a stage, which say what is done: one line for every finished piece.

A clip is done only if a valid line lists it. The line is written after the bytes of the piece are on the
disk. Every writer has its own journal. Order comes from `attempt`, not from the order of files or clocks.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from obygaze_features.io import sync, write_new
from obygaze_features.lines import LineJournal, journals_in, read_lines
from obygaze_features.locks import hold, locked, require_locks
from obygaze_features.schema import Count, Whole
from obygaze_features.store.format import PIECE_ROWS, STATUSES_WITH_FEATURES

SHA256_HEX: Final = 64
"""Hexadecimal digits of a digest."""
NO_DIGEST: Final = "-" * SHA256_HEX
"""Stands in an entry for the digest of a row that an array does not have."""


class PieceAttempt(NamedTuple):
    """An attempt of a writer to do a piece (neighbouring rows), the `number`-th of all attempts at the piece.

    It names the files that the attempt writes.
    """

    piece: int
    writer: str
    number: int


class FrameRange(NamedTuple):
    """Frames that follow each other in a file or an array: the number of the first one, and how many."""

    first: Whole
    n_frames: Count


# gc=False: the garbage collector would visit all entries of a large stage again and again.
class JournalEntry(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One clip in a line of a journal.

    Attributes
    ----------
    row
        Row of the clip in every array.
    clip_id
        Its id.
    status
        ok, partial or failed; `missing` annuls what this and earlier attempts say of the clip.
    reason
        Why it is not ok.
    attempt
        Number of the attempt at its piece, from 1; 0 if the row is in the parent store.
    writer
        Writer of the attempt; empty for a row of the parent store.
    source
        What is known of its file.
    sha256
        SHA-256 (64 hexadecimal digits each) of the bytes of this clip's rows (little-endian, C order), joined
        in the order of the stage's arrays; empty without features.
    absent
        Group name -> why it has no features of the clip, while other groups have.
    frames
        Name of a ragged group -> which frames are the clip's, in the file of the attempt or in the arrays of
        the parent store.
    without_pictures_s
        The stretches in which its file has no pictures: start and end in seconds.
    """

    row: int
    clip_id: str
    status: Literal["ok", "partial", "failed", "missing"]
    reason: str = ""
    attempt: Whole = 0
    writer: str = ""
    sha256: str = ""
    source: Mapping[str, Any] = {}
    absent: Mapping[str, str] = {}
    frames: Mapping[str, FrameRange] = {}
    without_pictures_s: tuple[tuple[float, float], ...] = ()

    @property
    def is_in_parent(self) -> bool:
        """Whether the row is in the store that the stage extends, whose rows have no writer in the stage."""
        return self.writer == ""

    @property
    def holding_attempt(self) -> PieceAttempt:
        """The attempt whose files hold the row: an attempt at the piece that this row is in."""
        piece = self.row // PIECE_ROWS
        return PieceAttempt(piece, self.writer, self.attempt)

    def sha256_of(self, position: int) -> str:
        """Return the digest of this clip's row in an array, given the array's position in the stage.

        `sha256` holds the digests of all arrays, one after the other, in the order of the stage's arrays. A
        clip without features has none: then "" is returned.
        """
        start = SHA256_HEX * position
        return self.sha256[start : start + SHA256_HEX]

    def digests(self, names: tuple[str, ...]) -> dict[str, str]:
        """Return `group/array` -> SHA-256 of this clip's row, without arrays in which it has no features.

        Parameters
        ----------
        names
            The stage's arrays, `group/array`, in the order of their positions.
        """
        digests = {}
        for position, name in enumerate(names):
            digest = self.sha256_of(position)
            # The digest is "" if the clip has no features at all, and NO_DIGEST if it has none in this group.
            has_features = digest not in {"", NO_DIGEST}
            if has_features:
                digests[name] = digest
        return digests


def is_done(entry: JournalEntry) -> bool:
    """Return whether the clip of a journal entry has features: it is ok or partial, not failed or missing."""
    return entry.status in STATUSES_WITH_FEATURES


class JournalLine(msgspec.Struct, gc=False, omit_defaults=True):
    """A line of a journal: the clips that an attempt at a piece did.

    Attributes
    ----------
    rows
        The clips.
    whole
        Whether the shards of the attempt can be used in a store as they are: they are complete, with fill
        values in all rows without features.
    """

    rows: list[JournalEntry]
    whole: bool = False


class Journal(LineJournal):
    """The journal of one writer: created for it, locked while it runs, only appended to.

    Attributes
    ----------
    writer
        Stem of its file's name: a number.
    """

    def __init__(self, folder: Path) -> None:
        """Create the journal file with the next free number in a folder, and lock it."""
        require_locks(folder / "new")  # refuses a file system without locks

        number = len(journals_in(folder))  # of the journals that there are
        while True:
            number += 1
            self.path = folder / f"{number:04d}.jsonl"
            with suppress(FileExistsError):
                write_new(self.path, b"")  # fails if another writer has taken the number meanwhile
                break

        self.writer = self.path.stem
        super().__init__(self.path)  # opens the file
        hold(self.descriptor, self.path)  # locks it, so that others see that this writer still runs
        sync(folder)

    def close(self) -> None:
        """Close the file, which ends its lock."""
        with suppress(OSError):  # its lines are on the disk already
            super().close()


def has_ended(journal: Path) -> bool:
    """Return whether the process that wrote a journal has ended: it held a lock on the file while it ran."""
    with locked(journal, wait=False) as has_got_lock:  # only if no other process holds it
        return has_got_lock


def read_journals(folder: Path, n_arrays: int) -> tuple[list[JournalLine], list[str]]:
    """Read which clips of an unfinished store are done, from the journals that its writers have kept.

    Parameters
    ----------
    folder
        Folder of the journals, of which each writer has one.
    n_arrays
        Number of the store's arrays.

    Returns
    -------
    list of JournalLine
        The valid lines of all journals.
    list of str
        A sentence on each damaged line.
    """
    # Entries of a stage may be a million, and many have equal sources: these share one mapping.
    shared_sources: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    lines = []
    damage = []
    for path in journals_in(folder):
        for number, line in read_lines(path, JournalLine):
            if line is None or not _is_valid(line, n_arrays):
                damage.append(f"{path}, line {number}: damaged and ignored; its clips will be done again")
                continue
            writer = path.stem  # the file is named after its writer, whom its lines do not name
            for index, entry in enumerate(line.rows):
                source = shared_sources.setdefault(tuple(entry.source.items()), entry.source)
                line.rows[index] = msgspec.structs.replace(entry, source=source, writer=writer)
            lines.append(line)
    return lines, damage


def _is_valid(line: JournalLine, n_arrays: int) -> bool:
    """Return whether the entries of a journal line have the right number of digests, and are of one attempt.

    An entry says what became of a clip. One with features has a digest for each of the `n_arrays` arrays,
    joined in one text; others have none.
    """
    for entry in line.rows:
        n_digests = n_arrays if is_done(entry) else 0
        if len(entry.sha256) != SHA256_HEX * n_digests:  # the digests are joined
            return False

    attempts = {entry.holding_attempt for entry in line.rows}
    return len(attempts) <= 1  # none if the line has no entries


RANKS: Final = {"ok": 0, "partial": 1, "failed": 2}
"""Status -> its rank: entries of a lower rank are better."""


def best_entries(entries: Sequence[JournalEntry]) -> dict[int, JournalEntry]:
    """Choose what holds for each row of an unfinished store: row -> the best of its journal entries.

    An entry says what became of the clip in a row. A row may have entries of several attempts: of the store
    that is extended (attempt 0), and of runs. Rows without any are left out.

    - An entry with the status "missing" says that the row was found damaged: all entries of its attempt and
      of earlier ones are void.
    - Of the others, ok is better than partial, and partial better than failed.
    - Of equally good ones, that of the latest attempt is the best.
    """
    last_void_attempt = _last_void_attempts(entries)
    best: dict[int, JournalEntry] = {}
    for entry in entries:
        is_void = entry.row in last_void_attempt and entry.attempt <= last_void_attempt[entry.row]
        if is_void:
            continue
        best_so_far = best.get(entry.row)
        if best_so_far is None or _sort_key(entry) < _sort_key(best_so_far):
            best[entry.row] = entry
    return best


def _last_void_attempts(entries: Sequence[JournalEntry]) -> dict[int, int]:
    """Return for each damaged row the number of the last attempt at it that is void; other rows are left out.

    A row that was found damaged has an entry with the status "missing", which makes the entries of its
    attempt and of all earlier ones void.
    """
    last_attempt: dict[int, int] = {}
    for entry in entries:
        if entry.status == "missing":
            last_attempt[entry.row] = max(entry.attempt, last_attempt.get(entry.row, 0))
    return last_attempt


def _sort_key(entry: JournalEntry) -> tuple[int, int, str, str, str]:
    """Return a key by which better entries of a row come first: better statuses, and then later attempts.

    The other fields are there only so that the best does not depend on the order of the entries.
    """
    later_first = -entry.attempt
    return RANKS[entry.status], later_first, entry.reason, entry.sha256, entry.writer
