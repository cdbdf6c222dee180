"""Keep decisions as lines of files that are only appended to; the ledger is the lines of all its files.

A sitting is one file of the ledger: what one process writes from its first decision until it closes the file,
or the rows of one table that were imported together. Servers, machines, synchronised folders and merges of
Git each add files, and nobody appends to a file of another process: nothing is locked. Lines are ordered by
Lamport clocks, never by the clocks of machines.

A line's id is the name of its sitting, a hyphen, and its number in the sitting from 1 on, such as
`0123456789abcdef-6`. The first line of a sitting is its header. Copies of files may bring the same line
twice, or two different lines with one id: versions of the line, of which one counts.
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

from obygaze_features.errors import InputError
from obygaze_features.io import sync, write_new, write_once, write_whole
from obygaze_features.lines import LineJournal, checked_entry, encode_line, journals_in
from obygaze_features.untrusted import open_regular
from obygaze_film.errors import FilmError
from obygaze_film.notes import counted_message, message
from obygaze_film.schema import UNREADABLE
from obygaze_film.scored_files import MAX_BYTES
from obygaze_film.workspace.ledger_lines import HEADERS, MAX_CLOCK_LEAD, Header, Line, split_id

LEDGER: Final = "ledger"
"""Name of the folder with the files of all sittings, in a scored film's folder."""

MAX_ABOVE_COUNT: Final = 2**20
"""How far a line's clock may be above the number of all lines, if later lines are to get higher clocks.

An honest clock is never above the number of all lines, but the files of some sittings may be missing here. A
line that somebody gave an arbitrary clock must not raise the clocks of all later lines: there might be no
higher clock left for them, and nobody could decide anything any more.
"""

CLOCK_OF_TABLE: Final = 1
"""Clock of the first line of a table's sitting."""

MAX_NOTICES_OF_A_KIND: Final = 10
"""Maximum number of notices of one kind that are reported one by one; the others are only counted."""

_DECODER = msgspec.json.Decoder(Line)


class LinePosition(NamedTuple):
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
        """Whether the file at the path is still the open one; somebody may have removed or replaced it."""
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
        """Begin without lines: `read` reads the ledger's files, and the first `add` begins a file (sitting).

        A line's id is the name of its sitting and its number there, such as `0123456789abcdef-6`.

        Parameters
        ----------
        folder : Path
            Folder of the scored film, in which the ledger is a folder.
        say : callable
            Reports a notice to the user.
        new_header : callable, optional
            Makes the header of a file that this process begins; without it files have none.
        """
        self.folder = folder / LEDGER
        self._say = say
        self._new_header = new_header

        # What was read. Copies of a file may have different lines with one id: of these versions one counts.
        self.lines: dict[str, Line] = {}  # id -> the line that counts
        self.where: dict[str, LinePosition] = {}  # id -> file and number of that line
        self._versions: dict[str, dict[LinePosition, Line]] = {}  # id -> all versions, by file and number
        self._files: dict[Path, _ReadFile] = {}  # how far each file was read
        self._n_notices_of_kind = Counter[str]()

        # What is written
        self._sitting: _Sitting | None = None  # the file that this process appends to, once it is open
        # Id -> line that could not be written, as on a full disk. The person was told so, but the file may
        # have the line: the next call of `add` writes a line that takes it back.
        self._failed: dict[str, Line] = {}
        # Name of a sitting -> the highest number of its lines that any line asks to replace. This process
        # must not write a line that is replaced already.
        self._highest_replaced: dict[str, int] = {}

    def header_of(self, line: Line) -> Header | None:
        """Return the header of the file that a line is in; None if an earlier version wrote the file.

        The header is the file's line 1.
        """
        first = self.lines.get(f"{line.sitting}-1")
        if first is None or first.kind not in HEADERS:
            return None
        return first.header

    # --- reading
    # ---------------------------------------------------------------------------
    def read(self) -> None:
        """Read what was appended to the ledger's files since the last call, and report damaged lines.

        Raises
        ------
        FilmError
            The disk does not give a file or the folder. What it holds may count, so nothing is read without
            it: a decision would seem never to have been made, and could come in a second time.
        """
        try:
            for path in journals_in(self.folder):
                self._read_or_report(path)
        except OSError as error:
            raise FilmError(message("ledger_unread", path=error.filename, error=error.strerror)) from error
        for kind, n in self._n_notices_of_kind.items():
            if n > MAX_NOTICES_OF_A_KIND:
                self._say(counted_message(f"more_{kind}", n - MAX_NOTICES_OF_A_KIND, folder=self.folder))

    def _read_or_report(self, path: Path) -> None:
        """Read what was appended to one file; report what is no file of a ledger, such as a link or folder.

        A file that was removed since the folder was listed is reported too.
        """
        try:
            self._read_file(path)
        except (InputError, FileNotFoundError, IsADirectoryError) as error:
            self._say(str(error))

    def _say_first_of_kind(self, kind: str, message: str) -> None:
        """Report a notice, unless too many of its kind were reported before; count it in any case.

        A damaged file may have thousands of wrong lines: only the first `MAX_NOTICES_OF_A_KIND` are reported.
        """
        self._n_notices_of_kind[kind] += 1
        if self._n_notices_of_kind[kind] <= MAX_NOTICES_OF_A_KIND:
            self._say(message)

    def _read_file(self, path: Path) -> None:
        """Read the lines that were appended to one file, and add them to those of the ledger.

        If it became shorter, or another file took its name, all of it is read in place of what was read
        before.
        """
        known = self._files.setdefault(path, _ReadFile())  # how far it was read; 0 bytes of a new file
        with open_regular(path, MAX_BYTES, within=self.folder.parent) as file:
            status = os.fstat(file.fileno())
            became_shorter = status.st_size < known.offset
            is_same_file = status.st_ino == known.inode and not became_shorter
            if is_same_file:
                if status.st_size == known.offset:
                    return  # nothing was appended
                file.seek(known.offset)
            data = file.read()

        if not is_same_file:
            self._forget(path, known.ids)
            self._files[path] = _ReadFile(inode=status.st_ino)
        self._decode_lines(data, path)

    def _decode_lines(self, data: bytes, path: Path) -> None:
        """Add the lines in the last bytes of a file, and record in `_files` how far the file was read."""
        read = self._files[path]
        *complete_lines, rest = data.split(b"\n")
        for line in complete_lines:
            read.n_lines += 1
            read.offset += len(line) + 1  # with its line end
            self._decode(line, LinePosition(path, read.n_lines))

        # After the last line end, there may be a line that lacks only its own line end: it counts. One that
        # was written only in part has a wrong checksum. In both cases `offset` stays before it, so that it is
        # read again next time.
        if checked_entry(rest):
            self._decode(rest, LinePosition(path, read.n_lines + 1))

    def _forget(self, path: Path, line_ids: Iterable[str]) -> None:
        """Drop the lines that were read from a file, which is not there any more, or is another one now.

        Copies of a file may have a line of the same id, another version of the line: then one of these counts
        in its place.
        """
        for line_id in line_ids:
            versions = self._versions[line_id]
            places_in_file = [place for place in versions if place.path == path]
            for place in places_in_file:
                del versions[place]
            if versions:
                self._choose_version(line_id)
            else:
                del self._versions[line_id]
                del self.lines[line_id]
                del self.where[line_id]

    def _decode(self, data: bytes, position: LinePosition) -> None:
        """Decode a line and add it; report and leave out a damaged line, or one with a clock out of range."""
        entry = checked_entry(data.removesuffix(b"\r"))  # Git may have changed the line's end on Windows
        if not entry:  # its checksum is wrong
            self._say_damaged(position, "damaged")
            return

        try:
            line = _DECODER.decode(entry)
        except UNREADABLE as error:  # errors of msgspec: it is no line of a ledger
            self._say_damaged(position, str(error))
            return

        if not line.has_reasonable_clock:
            facts = {
                "path": position.path,
                "line": position.number,
                "who": line.annotator,
                "clock": line.clock,
            }
            self._say_first_of_kind("clock", message("clock_ahead", **facts))
            return

        self._add(line, position)

    def _say_damaged(self, position: LinePosition, why: str) -> None:
        """Report a line that can't be read, and why."""
        self._say_first_of_kind("damaged", f"{position.path}: line {position.number}: {why}; it is left out")

    def _add(self, line: Line, position: LinePosition) -> None:
        """Add a line that was read or written at a place; report a different line that has the same id.

        Copies of a file may have been changed, so that one id has several lines. All of these versions are
        kept, and one of them counts (`_choose_version`). Which lines this one asks to replace is noted too.
        """
        if line.id in self._failed:  # the person was told that it was not written
            return

        known_version = self.lines.get(line.id)
        if known_version is not None and known_version != line:
            facts = {"path": position.path, "line": position.number, "name": line.id}
            people = {"who": known_version.annotator, "other": line.annotator}
            self._say_first_of_kind("twins", message("two_of_one_id", **facts, **people))

        versions = self._versions.setdefault(line.id, {})
        versions[position] = line
        read_file = self._files.setdefault(position.path, _ReadFile())
        read_file.ids.add(line.id)
        self._choose_version(line.id)
        for replaced_id in line.replaces:
            self._note_replaced(replaced_id)

    def _note_replaced(self, line_id: str) -> None:
        """Record in `_highest_replaced` that some line asks to replace the line with this id."""
        sitting, number = split_id(line_id)
        highest = self._highest_replaced.get(sitting, 0)
        self._highest_replaced[sitting] = max(number, highest)

    def _choose_version(self, line_id: str) -> None:
        """Set which of the different lines with an id counts (`lines`, `where`), the same on every machine.

        It is the one whose encoded content is the lowest: any rule would do that depends on nothing else.
        """
        versions = self._versions[line_id]

        def content_then_place(place: LinePosition) -> tuple[bytes, LinePosition]:
            """Return the sort key of the version at a place."""
            return msgspec.json.encode(versions[place], order="sorted"), place

        chosen_place = min(versions, key=content_then_place)
        self.lines[line_id] = versions[chosen_place]
        self.where[line_id] = chosen_place

    # --- writing
    # ---------------------------------------------------------------------------
    def begin(self) -> None:
        """Begin a new file at once, and force its header to the disk; an open file is closed.

        If this is not called, the first call of `add` begins a file.
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
            `judgement`, `passage`, `note`, `agreed`, or `undo`, which takes lines back.
        row : mapping
            The decision's cells, by column.
        replaces : sequence of str
            Ids of the lines that it replaces or takes back.

        Raises
        ------
        OSError
            The line could not be written. The file may have it all the same: the next call takes it back.
        FilmError
            It replaces a line whose clock is so high that no later line can be numbered.
        """
        # People were told that these lines were not written, but the file may have them.
        for failed in list(self._failed.values()):
            self._append("undo", {"annotator": failed.annotator}, [failed.id])
            del self._failed[failed.id]
        return self._append(kind, row, replaces)

    def _append(self, kind: str, row: Mapping[str, str], replaces: Sequence[str]) -> Line:
        """Append a line to this process's file, with a clock above those of all lines that were read.

        A clock is a number that rises from line to line; of two lines, the one with the higher clock is the
        later one.
        """
        sitting = self._open_sitting()
        clock = self._next_clock(replaces)
        # A line with a wrong, very high clock would win for ever. So whoever reads a ledger leaves out lines
        # whose clock is more than `MAX_CLOCK_LEAD` above their number in the file. To be read, this line gets
        # a high enough number, and numbers may be skipped: if line 3 is to have the clock
        # `MAX_CLOCK_LEAD` + 10, it gets the number 10.
        lowest_accepted_number = clock - MAX_CLOCK_LEAD
        number = max(sitting.next_number, lowest_accepted_number)
        try:
            line = _line(f"{sitting.path.stem}-{number}", clock, kind, row, replaces)
        except msgspec.ValidationError:  # the number has more digits than an id may have
            raise FilmError(message("clock_of_target")) from None
        self._write(sitting, line, force=True)
        return line

    def _write(self, sitting: _Sitting, line: Line, *, force: bool) -> None:
        """Write a line to an open file, and add it to the lines of the ledger.

        With `force` the line is on the disk on return. If it can't be written, the file is closed, and the
        error goes to the person, for whom the decision is not made. But the file may have the line all the
        same: it is remembered as failed, so that the next line that is added takes it back.
        """
        sitting.next_number = line.number + 1
        try:
            sitting.journal.append(line, force=force)
        except OSError:
            is_decision = line.kind not in HEADERS  # a header need not be taken back
            if is_decision:
                self._failed[line.id] = line
            self.close()
            raise
        self._add(line, LinePosition(sitting.path, line.number))

    def _next_clock(self, replaces: Sequence[str]) -> int:
        """Return the clock of the next line: one above the clocks of all lines that it must come after.

        Lines are ordered by their clocks, numbers that every writer counts up, as the times of several
        computers may differ.
        """
        # It comes after all known lines. One whose clock is far above the number of lines does not count: the
        # clock is an error, or written by a stranger, and would leave no room for higher ones.
        highest_plausible = len(self.lines) + MAX_ABOVE_COUNT
        clocks = [line.clock for line in self.lines.values() if line.clock <= highest_plausible]
        # It comes after lines that failed to be written: they may be in the file all the same.
        clocks += [line.clock for line in self._failed.values()]
        # It comes after the lines that it replaces, however high their clocks are: only older ones can be
        # replaced.
        clocks += [self.lines[line_id].clock for line_id in replaces if line_id in self.lines]
        return 1 + max(clocks, default=0)

    def _open_sitting(self) -> _Sitting:
        """Return the file (sitting) that this process appends to.

        A new one is begun if none is open, or if the open one can't be used any more, for one of two reasons:

        - the file was removed or exchanged: lines written to it would be lost;
        - a line of another file asks to replace a line of this one that is not written yet, say line 6. A
          decision written as line 6 would count as replaced at once.
        """
        sitting = self._sitting
        if sitting is None:
            return self._new_sitting()
        highest_replaced = self._highest_replaced.get(sitting.path.stem, 0)  # number of a line of this file
        would_next_line_be_replaced = highest_replaced >= sitting.next_number
        if not sitting.is_at_its_path or would_next_line_be_replaced:
            self.close()
            return self._new_sitting()
        return sitting

    def _new_sitting(self) -> _Sitting:
        """Begin a sitting: make the file that this process appends to, and write its header if there is one.

        The file has a random name, so that no other process takes the same.
        """
        path = self._make_folder() / f"{token_hex(8)}.jsonl"
        write_new(path, b"")
        sync(self.folder)  # the new name is on the disk too
        sitting = _Sitting(path, LineJournal(path))
        self._sitting = sitting

        # The file counts as read, with the number that the disk gives it. A later `read` then takes it for
        # the same file, and keeps the lines that are written here.
        inode = os.fstat(sitting.journal.descriptor).st_ino
        self._files[path] = _ReadFile(inode=inode)

        if self._new_header is not None:
            header = self._new_header()
            clock = self._next_clock(replaces=())
            id_of_first_line = f"{path.stem}-1"
            first_line = _line(id_of_first_line, clock, kind="sitting", row={}, header=header)
            # It need not be forced to the disk: that is done with the first decision, which follows it.
            self._write(sitting, first_line, force=False)
        return sitting

    def add_table(
        self, sha256: str, kind: str, rows: Sequence[TableRow | None], about: Mapping[str, str] | None = None
    ) -> int:
        """Write the new decisions of a table or file as one file of the ledger (sitting): all, or none.

        Parameters
        ----------
        sha256 : str
            Digest of the table. It names the ledger's file, so that two machines that read equal tables write
            equal files.
        kind : str
            Kind of the table's decisions, or `import`.
        rows : sequence
            The decision in each row; None for a row that says nothing new.
        about : mapping, optional
            Further facts about the table for the file's first line.

        Returns
        -------
        int
            Number of decisions written; 0 if the table was imported before.
        """
        name = sha256[:16]
        path = self._make_folder() / f"{name}.jsonl"
        was_imported_before = path.exists()
        if was_imported_before:
            return 0

        # Line 1 describes the table, and the first row is line 2. Rows that give no line are counted too, so
        # that a row's line has the same number on every machine.
        lines_of_rows = []
        for number, row in enumerate(rows, start=2):
            if row is not None:
                kind_of_row = row.kind or kind
                lines_of_rows.append(self._table_line(f"{name}-{number}", number, kind_of_row, row))
        if not lines_of_rows:
            return 0

        facts_of_table = {"kind": kind, "sha256": sha256, **(about or {})}
        header = None if self._new_header is None else self._new_header()
        first = _line(f"{name}-1", CLOCK_OF_TABLE, kind="table", row=facts_of_table, header=header)
        data = b"".join(encode_line(line) for line in [first, *lines_of_rows])
        write_whole(path, data, links=False)  # follows no links: the folder may come from a stranger
        self.read()
        return len(lines_of_rows)

    def _table_line(self, line_id: str, number: int, kind: str, row: TableRow) -> Line:
        """Make the line of the ledger that a row of an imported table becomes.

        Of two lines on one span, that with the higher clock stands, as it was decided later. A clock is a
        number, and no time of day. A row's clock is one above that of the table's first line, and also above
        that of the line that it replaces. It depends on no other line, so that equal tables give equal lines
        on every machine.

        Parameters
        ----------
        line_id : str
        number : int
            Of the line in its file.
        kind : str
        row : TableRow
        """
        clock = CLOCK_OF_TABLE + 1
        replaced = self.lines.get(row.replaces)
        if replaced is not None:
            clock_above_replaced = replaced.clock + 1
            # A line with a wrong, very high clock would win for ever. So whoever reads a ledger leaves out
            # lines whose clock is far above their number, and the new line must not be one of these. If the
            # clock that it needs is too high, it keeps a low one. Then it does not replace the other line:
            # both stand, and people are told.
            highest_accepted = number + MAX_CLOCK_LEAD
            if clock_above_replaced <= highest_accepted:
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
            # Git must not change the ends of lines.
            write_once(self.folder / ".gitattributes", b"*.jsonl -text\n")
        sync(self.folder.parent)
        return self.folder


def _line(
    line_id: str,
    clock: int,
    kind: str,
    row: Mapping[str, str],
    replaces: Sequence[str] = (),
    *,
    header: Header | None = None,
) -> Line:
    """Make a line, and check it by the same rules as a line that is read from a file.

    Parameters are the fields of `Line`. A line that is against the rules raises a `msgspec.ValidationError`.
    """
    entry = {"id": line_id, "clock": clock, "kind": kind, "row": row, "replaces": replaces}
    line = msgspec.convert(entry, Line)
    return line if header is None else msgspec.structs.replace(line, header=header)
