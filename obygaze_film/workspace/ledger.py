"""Keep decisions as lines of files that are only appended to; the ledger is the lines of all its files.

A sitting is one file of the ledger: what one process writes from its first decision until it closes the file,
or the rows of one table that were taken in together. Servers, machines, synchronised folders and merges of
Git each add files, and nobody appends to a file of another process: nothing is locked. Lines are ordered by
Lamport clocks, never by the clocks of machines.

A line's id is the name of its sitting, a hyphen, and its number in the sitting from 1 on. Copies of files may
bring the same line twice, or two different lines with one id: versions of the line, of which one counts.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Final, NamedTuple

import msgspec

from obygaze_features.door import open_regular
from obygaze_features.errors import InputError
from obygaze_features.io import sync, write_new, write_once, write_whole
from obygaze_features.lines import LineJournal, checked_entry, encode_line
from obygaze_film.errors import FilmError
from obygaze_film.notes import counted_message, message
from obygaze_film.schema import UNREADABLE
from obygaze_film.scored_files import MOST_BYTES
from obygaze_film.workspace.authority import Validity, standing
from obygaze_film.workspace.ledger_lines import HEADERS, ID, LATEST, MOST_AHEAD, Header, Line

__all__ = [
    "ID",
    "LATEST",
    "LEDGER",
    "MOST_OF_A_KIND",
    "Header",
    "Ledger",
    "Line",
    "LinePlace",
    "TableRow",
    "standing",
]

LEDGER: Final = "ledger"
"""Name of the folder with the files of all sittings, in a scored film's folder."""

MOST_ABOVE_COUNT: Final = 2**20
"""How far a line's clock may be above the number of all lines, if later lines are to get higher clocks.

An honest clock is never above the number of all lines, but the files of some sittings may be missing here. A
line that somebody gave an arbitrary clock must not raise the clocks of all later lines: there might be no
higher clock left for them, and nobody could decide anything any more.
"""

CLOCK_OF_TABLE: Final = 1
"""Clock of the first line of a table's sitting."""

MOST_OF_A_KIND: Final = 10
"""Maximum number of notices of one kind that are reported one by one; the others are only counted."""

_DECODER = msgspec.json.Decoder(Line)


class LinePlace(NamedTuple):
    """Where a line is: its file, and its number in the file from 1 on."""

    path: Path
    number: int


class TableRow(NamedTuple):
    """A new decision, from a row of an edited table or from an annotation in a file.

    Attributes
    ----------
    row : mapping
        The decision's cells, by column.
    replaces : str
        Id of the line that the decision replaces; empty if it replaces none.
    kind : str
        Kind of the decision; empty if it is the kind of the table's decisions.
    """

    row: Mapping[str, str]
    replaces: str = ""
    kind: str = ""


@dataclass
class _ReadFile:
    """How far a file of the ledger was read, and which lines it held.

    Attributes
    ----------
    inode : int
        Number of the file in its file system. It differs once another file took the name.
    offset : int
        Bytes that were read: all complete lines.
    n_lines : int
        Complete lines that were read.
    ids : set of str
        Ids of the lines that were accepted from the file.
    """

    inode: int = 0
    offset: int = 0
    n_lines: int = 0
    ids: set[str] = field(default_factory=set)


@dataclass
class _Sitting:
    """The open sitting of this process: the only file of the ledger that it appends to.

    Attributes
    ----------
    path : Path
    journal : LineJournal
        Appends lines to the file, with their checksums.
    next_number : int
        Number that the next line gets, from 1 on.
    """

    path: Path
    journal: LineJournal
    next_number: int = 1

    @property
    def is_at_its_path(self) -> bool:
        """Whether the path still leads to the open file, which somebody may have removed or replaced."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self.journal.descriptor), self.path.stat())
        return False


class Ledger:
    """All lines of a scored film's ledger, and the sitting (file) that this process appends to.

    Parameters
    ----------
    folder : Path
        A scored film's folder.
    say : callable
        Is called with a notice for each line that can't be read and is left out, naming its file and number.
        Of many notices of one kind it gets the first few and the number of the others.
    new_header : callable, optional
        Returns the header that a new sitting writes in its first line; without it a sitting has no header.

    Attributes
    ----------
    lines : dict
        Id -> line. Headers are lines too.
    where : dict
        Id -> file and number of the line, for messages.
    """

    def __init__(
        self, folder: Path, say: Callable[[str], object], new_header: Callable[[], Header] | None = None
    ) -> None:
        self.folder = folder / LEDGER
        self._say = say
        self._new_header = new_header
        # What was read: the lines that count, and where they stand.
        self.lines: dict[str, Line] = {}
        self.where: dict[str, LinePlace] = {}
        # Id -> place -> line, for all lines that were read. Files that were copied and changed since may have
        # different lines of one id; `lines` and `where` have one of them (`_choose_version`).
        self._versions: dict[str, dict[LinePlace, Line]] = {}
        self._files: dict[Path, _ReadFile] = {}
        self._n_notices = Counter[str]()  # by kind of notice

        # What is written.
        self._sitting: _Sitting | None = None  # none is open
        # Id -> line that this process failed to write, as on a full disk. All of it may be in the file all
        # the same: the next decision takes it back (`add`).
        self._failed: dict[str, Line] = {}
        # Sitting -> the highest number of its lines that any line asks to replace. If another file asks to
        # replace line 6 of the open sitting before that is written, the sitting is closed (`_open_sitting`).
        self._highest_replaced: dict[str, int] = {}

    def standing(self, is_valid: Validity | None = None) -> list[Line]:
        """Return the decisions that stand (`authority.standing`)."""
        return standing(self.lines.values(), is_valid)

    def header_of(self, line: Line) -> Header | None:
        """Return the header of a line's sitting; None where an earlier version wrote none."""
        first = self.lines.get(f"{line.sitting}-1")
        return first.header if first is not None and first.kind in HEADERS else None

    # --- reading
    # ---------------------------------------------------------------------------
    def read(self) -> None:
        """Read what was appended to the files since they were read last.

        A file that became shorter, or that another file replaced, is read from its beginning.
        """
        for path in sorted(self.folder.glob("*.jsonl")):
            try:
                self._read_file(path)
            except (OSError, InputError) as error:
                self._say(str(error))
        for kind, n in self._n_notices.items():
            if n > MOST_OF_A_KIND:
                self._say(counted_message(f"more_{kind}", n - MOST_OF_A_KIND, folder=self.folder))

    def _say_first_of_kind(self, kind: str, message: str) -> None:
        """Report a notice, unless `MOST_OF_A_KIND` of its kind were reported before; count it in any case."""
        self._n_notices[kind] += 1
        if self._n_notices[kind] <= MOST_OF_A_KIND:
            self._say(message)

    def _read_file(self, path: Path) -> None:
        """Read the lines that were appended to one file; all its lines if it isn't the file read before."""
        known = self._files.setdefault(path, _ReadFile())  # what was read of it before
        with open_regular(path, MOST_BYTES, within=self.folder.parent) as file:
            status = os.fstat(file.fileno())
            is_same_file = status.st_ino == known.inode and status.st_size >= known.offset
            if is_same_file and status.st_size == known.offset:
                return
            if is_same_file:
                file.seek(known.offset)
            data = file.read()
        if not is_same_file:
            self._forget(path, known.ids)
            known = _ReadFile(inode=status.st_ino)
            self._files[path] = known
        *complete_lines, rest = data.split(b"\n")
        for line in complete_lines:
            known.n_lines += 1
            known.offset += len(line) + 1  # with its line end
            self._decode(line, LinePlace(path, known.n_lines))
        # Behind the last line end there is usually nothing. If there is a line that lacks its line end alone,
        # it counts. If it was written in part, it has a wrong checksum. As `offset` stays before it, it is
        # read again next time, when it may be complete.
        if checked_entry(rest):
            self._decode(rest, LinePlace(path, known.n_lines + 1))

    def _forget(self, path: Path, line_ids: Iterable[str]) -> None:
        """Forget the lines with these ids as read from a file; versions in other files count instead."""
        for line_id in line_ids:
            versions = self._versions[line_id]
            for place in [place for place in versions if place.path == path]:
                del versions[place]
            if versions:
                self._choose_version(line_id)
            else:
                del self._versions[line_id]
                del self.lines[line_id]
                del self.where[line_id]

    def _decode(self, data: bytes, place: LinePlace) -> None:
        """Decode a line and add it; report and leave out a damaged line, or one with an impossible clock."""
        entry = checked_entry(data.removesuffix(b"\r"))  # Git may have changed the line's end on Windows
        if not entry:  # its checksum is wrong
            self._say_damaged(place, "damaged")
            return
        try:
            line = _DECODER.decode(entry)
        except UNREADABLE as error:
            self._say_damaged(place, str(error))
            return
        if line.has_reasonable_clock:
            self._add(line, place)
        else:
            facts = {"path": place.path, "line": place.number, "who": line.annotator, "clock": line.clock}
            self._say_first_of_kind("clock", message("clock_ahead", **facts))

    def _say_damaged(self, place: LinePlace, why: str) -> None:
        """Report a line that can't be read, and why."""
        self._say_first_of_kind("damaged", f"{place.path}: line {place.number}: {why}; it is left out")

    def _add(self, line: Line, place: LinePlace) -> None:
        """Add a line that was read or written at a place; report a different line that has the same id."""
        if line.id in self._failed:  # the person was told that it was not written
            return
        known = self.lines.get(line.id)
        self._versions.setdefault(line.id, {})[place] = line
        self._files.setdefault(place.path, _ReadFile()).ids.add(line.id)
        self._choose_version(line.id)
        for replaced_id in line.replaces:
            self._note_replaced(replaced_id)
        if known is not None and known != line:
            facts = {"path": place.path, "line": place.number, "name": line.id}
            people = {"who": known.annotator, "other": line.annotator}
            self._say_first_of_kind("twins", message("two_of_one_id", **facts, **people))

    def _note_replaced(self, line_id: str) -> None:
        """Note that some line asks to replace the line with this id, for `_open_sitting`."""
        sitting, number = line_id.split("-")
        highest = self._highest_replaced.get(sitting, 0)
        self._highest_replaced[sitting] = max(int(number), highest)

    def _choose_version(self, line_id: str) -> None:
        """Choose one of the different lines with an id: the first by content, the same on every machine."""
        versions = self._versions[line_id]

        def content_then_place(place: LinePlace) -> tuple[bytes, LinePlace]:
            return msgspec.json.encode(versions[place], order="sorted"), place

        chosen_place = min(versions, key=content_then_place)
        self.lines[line_id] = versions[chosen_place]
        self.where[line_id] = chosen_place

    # --- writing
    # ---------------------------------------------------------------------------
    def begin(self) -> None:
        """Begin a new file at once, and force its header to the disk; an open file is closed.

        Unless this is called, a file is begun with the first decision that is added.
        """
        self.close()
        sitting = self._open_sitting()
        sync(sitting.path)

    def add(self, kind: str, row: Mapping[str, str], replaces: Sequence[str] = ()) -> Line:
        """Append a decision, or a line that takes lines back, to this process's file; return its line.

        The line is on the disk on return.

        Parameters
        ----------
        kind : str
            One of `DECISIONS`, or `undo`.
        row : mapping
            The decision's cells, by column.
        replaces : sequence of str
            Ids of the lines that it replaces or takes back.

        Raises
        ------
        OSError
            The line could not be written. If it reached the file all the same, the next call takes it back.
        FilmError
            It replaces a line whose clock is so high that no later line can be numbered.
        """
        for failed in list(self._failed.values()):  # the person was told that it was not written
            self._append("undo", {"annotator": failed.annotator}, [failed.id])
            del self._failed[failed.id]
        return self._append(kind, row, replaces)

    def _append(self, kind: str, row: Mapping[str, str], replaces: Sequence[str]) -> Line:
        """Append a line to this process's file.

        Its clock is above those of all lines that were read, so that it comes after them. Its number is the
        next one of the file. But readers leave out a line whose clock is more than `MOST_AHEAD` above its
        number (`Line.has_reasonable_clock`). If the clock is that high, numbers are skipped, up to the lowest
        that readers accept.
        """
        sitting = self._open_sitting()
        clock = self._next_clock(replaces)
        lowest_number = clock - MOST_AHEAD
        number = max(sitting.next_number, lowest_number)
        try:
            line = _line(f"{sitting.path.stem}-{number}", clock, kind, row, replaces)
        except msgspec.ValidationError:  # the number has more digits than an id may have
            raise FilmError(message("clock_of_target")) from None
        self._write(sitting, line, force=True)
        return line

    def _write(self, sitting: _Sitting, line: Line, *, force: bool) -> None:
        """Write a line to an open file; if that fails, close the file and remember the line as failed.

        With `force` the line is on the disk on return.
        """
        sitting.next_number = line.number + 1
        try:
            sitting.journal.append(line, force=force)
        except OSError:
            if line.kind not in HEADERS:
                self._failed[line.id] = line
            self.close()
            raise
        self._add(line, LinePlace(sitting.path, line.number))

    def _next_clock(self, replaces: Sequence[str]) -> int:
        """Return the clock of the next line: one above the clocks of all lines before it.

        A clock far above the number of lines is a stranger's or damaged, and does not count, unless the next
        line replaces that line and so must come after it.
        """
        highest_plausible = len(self.lines) + MOST_ABOVE_COUNT
        clocks = [line.clock for line in self.lines.values() if line.clock <= highest_plausible]
        clocks += [line.clock for line in self._failed.values()]
        clocks += [self.lines[line_id].clock for line_id in replaces if line_id in self.lines]
        return 1 + max(clocks, default=0)

    def _open_sitting(self) -> _Sitting:
        """Return this process's sitting; begin a new one if none is open or the open one can't be used.

        It can't be used if its file was removed or exchanged: lines would be lost. Nor can it be used if a
        line of some other file asks to replace a line that is not yet written. If the sitting has 5 lines and
        that line replaces its line 6, the next decision would be line 6, and count as replaced at once.
        """
        sitting = self._sitting
        if sitting is None:
            return self._new_sitting()
        is_next_line_replaced = self._highest_replaced.get(sitting.path.stem, 0) >= sitting.next_number
        if sitting.is_at_its_path and not is_next_line_replaced:
            return sitting
        self.close()
        return self._new_sitting()

    def _new_sitting(self) -> _Sitting:
        """Begin a sitting: make its file under a random name, and write its header if there is one."""
        path = self._make_folder() / f"{token_hex(8)}.jsonl"
        write_new(path, b"")
        sync(self.folder)
        sitting = _Sitting(path, LineJournal(path))
        self._sitting = sitting
        self._files[path] = _ReadFile(inode=os.fstat(sitting.journal.descriptor).st_ino)
        if self._new_header is not None:
            first = _line(f"{path.stem}-1", self._next_clock(()), "sitting", row={})
            first = msgspec.structs.replace(first, header=self._new_header())
            self._write(sitting, first, force=False)  # the first decision is forced, and the header with it
        return sitting

    def add_table(
        self, sha256: str, kind: str, rows: Sequence[TableRow | None], about: Mapping[str, str] | None = None
    ) -> int:
        """Write the new decisions of a table or file as one sitting, all of them or none.

        Parameters
        ----------
        sha256 : str
            Digest of the table. It names the sitting, so that a table that is read on two machines gives one
            sitting.
        kind : str
            Kind of the table's decisions, or `import`.
        rows : sequence
            The decision in each row; None for a row that says nothing new.
        about : mapping, optional
            Further facts about the table for the sitting's first line.

        Returns
        -------
        int
            Number of decisions written; 0 if the table was taken in before.
        """
        path = self._make_folder() / f"{sha256[:16]}.jsonl"
        if path.exists():
            return 0
        facts_of_table = {"kind": kind, "sha256": sha256, **(about or {})}
        first = _line(f"{path.stem}-1", CLOCK_OF_TABLE, "table", facts_of_table)
        header = None if self._new_header is None else self._new_header()
        lines_of_rows = []
        # The first row is line 2. Rows that give no line are counted too, so that a row's line has the same
        # number on every machine.
        for number, row in enumerate(rows, start=2):
            if row is not None:
                line_id = f"{path.stem}-{number}"
                lines_of_rows.append(self._table_line(line_id, number, row.kind or kind, row))
        if lines_of_rows:
            lines = [msgspec.structs.replace(first, header=header), *lines_of_rows]
            write_whole(path, b"".join(map(encode_line, lines)), links=False)
            self.read()
        return len(lines_of_rows)

    def _table_line(self, line_id: str, number: int, kind: str, row: TableRow) -> Line:
        """Make the line of a table's row.

        Its clock is one above that of the table's first line, or of the line that it replaces. It depends on
        no other line, so that the same table gives the same lines on every machine.

        Readers leave out a line whose clock is more than `MOST_AHEAD` above its number. If the clock of the
        replaced line is too high for that, the row's line gets a lower clock than that line. It still asks to
        replace it, but that does not count (`authority.reason_against`): both stand, and people are told.
        """
        clock = CLOCK_OF_TABLE + 1
        replaced = self.lines.get(row.replaces)
        if replaced is not None:
            clock_above_replaced = replaced.clock + 1
            if clock_above_replaced <= number + MOST_AHEAD:
                clock = max(clock, clock_above_replaced)
        replaces = [row.replaces] if row.replaces else []
        return _line(line_id, clock, kind, row.row, replaces)

    def close(self) -> None:
        """Close this process's file, if one is open."""
        if self._sitting is not None:
            with suppress(OSError):  # its lines are on the disk already
                self._sitting.journal.close()
        self._sitting = None

    def _make_folder(self) -> Path:
        """Make the ledger's folder if it isn't there, and return it; a link in its place is refused."""
        if self.folder.is_symlink():
            raise FilmError(f"{self.folder}: a link, and a folder was expected")
        self.folder.mkdir(exist_ok=True)
        with suppress(FileExistsError):
            write_once(self.folder / ".gitattributes", b"*.jsonl -text\n")  # Git keeps the ends of lines
        sync(self.folder.parent)
        return self.folder


def _line(line_id: str, clock: int, kind: str, row: Mapping[str, str], replaces: Sequence[str] = ()) -> Line:
    """Make a line, and check it by the same rules as a line that is read from a file."""
    entry = {"id": line_id, "clock": clock, "kind": kind, "row": row, "replaces": replaces}
    return msgspec.convert(entry, Line)
