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
from obygaze_features.lines import LineJournal, read_lines
from obygaze_features.locks import hold, locked, require_locks
from obygaze_features.schema import Count, Whole
from obygaze_features.store.format import DONE, PIECE_ROWS

SHA256_HEX: Final = 64
NO_ROW: Final = "-" * SHA256_HEX
"""In place of the digest of a row that an array does not have."""


class Attempt(NamedTuple):
    """One writer's try at a piece; its files are named by it."""

    piece: int
    writer: str
    number: int


# gc=False: the garbage collector would visit all entries of a large stage again and again.
class JournalEntry(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a line of a journal says of one clip.

    Attributes
    ----------
    status
        ok, partial or failed; `missing` annuls what this and earlier attempts say of the clip.
    attempt
        Number of the attempt at its piece, from 1; 0 if the row is in the parent store.
    writer
        Writer of the attempt; empty for a row of the parent store.
    sha256
        SHA-256 (64 hexadecimal digits each) of the bytes of this clip's rows (little-endian, C order), joined
        in the order of the stage's arrays; empty without features.
    absent
        Group name -> why it has no features of the clip, while other groups have.
    frames
        Name of a ragged group -> where its frames of the clip lie in the file of the attempt, or in the
        arrays of the parent store: the first, counted in frames, and how many.
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
    frames: Mapping[str, tuple[Whole, Count]] = {}

    @property
    def written_in(self) -> Attempt:
        """The attempt whose files hold the row."""
        return Attempt(self.row // PIECE_ROWS, self.writer, self.attempt)

    def sha256_of(self, position: int) -> str:
        """Return the digest of the row of an array, given its position in the stage."""
        return self.sha256[SHA256_HEX * position : SHA256_HEX * (position + 1)]

    def digests(self, names: tuple[str, ...]) -> dict[str, str]:
        """Return `group/array` -> SHA-256 of this clip's row, given the names of the stage's arrays."""
        by_name = {name: self.sha256_of(position) for position, name in enumerate(names)}
        return {name: digest for name, digest in by_name.items() if digest not in {"", NO_ROW}}


def is_done(entry: JournalEntry) -> bool:
    """Return whether an entry's row has features."""
    return entry.status in DONE


class Line(msgspec.Struct, gc=False, omit_defaults=True):
    """A line of a journal: what an attempt did.

    Attributes
    ----------
    whole
        Whether its shards are those of a store: complete, with fill values in all rows without features.
    """

    rows: list[JournalEntry]
    whole: bool = False


class Journal(LineJournal):
    """The journal of a new writer: created exclusively, locked while the writer runs, only appended to.

    Attributes
    ----------
    writer
        Stem of its file's name: a number.
    """

    def __init__(self, folder: Path) -> None:
        number = len(list(folder.glob("*.jsonl")))
        require_locks(folder / "new")
        while True:
            number += 1
            self.path = folder / f"{number:04d}.jsonl"
            with suppress(FileExistsError):
                write_new(self.path, b"")
                break
        self.writer = self.path.stem
        super().__init__(self.path)
        hold(self.descriptor, self.path)
        sync(folder)

    def close(self) -> None:
        """Close the file, which ends its lock."""
        with suppress(OSError):  # its lines are on the disk already
            super().close()


def has_ended(journal: Path) -> bool:
    """Return whether the writer of a journal has ended."""
    with locked(journal, wait=False) as ours:
        return ours


def read_journals(folder: Path, n_arrays: int) -> tuple[list[Line], list[str]]:
    """Read the lines of all journals; name the damaged ones."""
    sources: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    lines = []
    damage = []
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in read_lines(path, Line):
            if line is None or not _fits(line.rows, n_arrays):
                damage.append(f"{path}, line {number}: damaged and ignored; its clips will be done again")
                continue
            for at, entry in enumerate(line.rows):  # a million entries share what is equal in them
                source = sources.setdefault(tuple(entry.source.items()), entry.source)
                line.rows[at] = msgspec.structs.replace(entry, source=source, writer=path.stem)
            lines.append(line)
    return lines, damage


def _fits(rows: Sequence[JournalEntry], n_arrays: int) -> bool:
    """Return whether a line's rows have as many digests as arrays, and are of one attempt."""
    for row in rows:
        n_digests = n_arrays if is_done(row) else 0
        if len(row.sha256) != SHA256_HEX * n_digests:
            return False
    return len({row.written_in for row in rows}) <= 1


RANKS: Final = {"ok": 0, "partial": 1, "failed": 2}


def best_entries(entries: Sequence[JournalEntry]) -> dict[int, JournalEntry]:
    """Return row -> its best valid entry: ok, partial, failed; of equal ones that of the latest attempt."""
    annulled: dict[int, int] = {}
    for entry in entries:
        if entry.status == "missing":
            annulled[entry.row] = max(entry.attempt, annulled.get(entry.row, 0))

    def order(entry: JournalEntry) -> tuple[int, int, str, str, str]:
        return RANKS[entry.status], -entry.attempt, entry.reason, entry.sha256, entry.writer

    best: dict[int, JournalEntry] = {}
    for entry in entries:
        if entry.attempt > annulled.get(entry.row, -1):
            entry_before = best.setdefault(entry.row, entry)
            if entry_before is not entry and order(entry) < order(entry_before):
                best[entry.row] = entry
    return best
