"""Keep decisions as lines that are only appended, one file a sitting; what is true is the union of all files.

Servers, machines, synchronised folders and merges of Git each add files, and nobody appends to another's:
nothing is locked. Order comes from Lamport clocks, never from the clocks of machines.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
from obygaze_film.notes import said
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
    "Place",
    "TableRow",
    "standing",
]

LEDGER: Final = "ledger"
"""Folder of the sittings, in a scored film's folder."""

PLAUSIBLE: Final = 2**20
"""How far a clock may be above the number of all lines for later lines to come after it.

An honest clock is never above that number, but sittings may be missing. If one line with a clock of its own
choice drove all that follow, nobody could decide anything later than that line.
"""

MOST_OF_A_KIND: Final = 10
"""Notices of a kind that are said one by one; the others are counted."""

_DECODER = msgspec.json.Decoder(Line)


class Place(NamedTuple):
    """File and number of a line, for messages."""

    path: Path
    number: int


class TableRow(NamedTuple):
    """What a row of an edited table, or an annotation of a file, says that is new.

    Attributes
    ----------
    row : mapping
    replaces : str
        Id of the line in whose place it stands; empty if there is none.
    kind : str
        Of the decision; empty for that of the table.
    """

    row: Mapping[str, str]
    replaces: str = ""
    kind: str = ""


@dataclass
class _File:
    """How far a file was read, and the lines that were in it."""

    inode: int = 0
    offset: int = 0
    n_lines: int = 0
    ids: set[str] = field(default_factory=set)


@dataclass
class _Sitting:
    """The file that this process appends to."""

    path: Path
    journal: LineJournal
    next_number: int = 1

    @property
    def has_its_name(self) -> bool:
        """Whether the file's name is still that of the open file."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self.journal.descriptor), self.path.stat())
        return False


class Ledger:
    """All lines of a scored film's folder, and the sitting that this process adds to.

    Parameters
    ----------
    folder : Path
    say : callable
        Gets what can't be read and is left out, by file and line; of a kind of which there are many,
        the first few and their number.
    header : callable, optional
        Gives what a sitting that begins says of itself in its first line; without it there is no such line.

    Attributes
    ----------
    lines : dict
        Id -> line, headers too.
    where : dict
        Id -> file and number of the line, for messages.
    """

    def __init__(
        self, folder: Path, say: Callable[[str], object], header: Callable[[], Header] | None = None
    ) -> None:
        self.folder = folder / LEDGER
        self._say = say
        self._header = header
        self.lines: dict[str, Line] = {}
        self.where: dict[str, Place] = {}
        self._versions: dict[str, dict[Place, Line]] = {}
        self._files: dict[Path, _File] = {}
        self._named: dict[str, int] = {}
        self._lost: dict[str, Line] = {}
        self._sitting: _Sitting | None = None
        self._n_of_kind = Counter[str]()

    def standing(self, is_valid: Validity | None = None) -> list[Line]:
        """Return the decisions that stand (`authority.standing`)."""
        return standing(self.lines.values(), is_valid)

    def header_of(self, line: Line) -> Header | None:
        """Return what the sitting of a line says of itself; None of a sitting of an earlier version."""
        first = self.lines.get(f"{line.sitting}-1")
        return first.header if first is not None and first.kind in HEADERS else None

    # --- reading
    # ---------------------------------------------------------------------------
    def read(self) -> None:
        """Read what was appended since the last time; a file that became shorter, or another, anew."""
        for path in sorted(self.folder.glob("*.jsonl")):
            try:
                self._read_file(path)
            except (OSError, InputError) as error:
                self._say(str(error))
        for kind, n in self._n_of_kind.items():
            if n > MOST_OF_A_KIND:
                self._say(said(f"more_{kind}", folder=self.folder, n=n - MOST_OF_A_KIND))

    def _say_of(self, kind: str, message: str) -> None:
        """Say something of which there may be as many as there are lines."""
        self._n_of_kind[kind] += 1
        if self._n_of_kind[kind] <= MOST_OF_A_KIND:
            self._say(message)

    def _read_file(self, path: Path) -> None:
        known = self._files.setdefault(path, _File())
        with open_regular(path, MOST_BYTES, within=self.folder.parent) as file:
            status = os.fstat(file.fileno())
            is_another = status.st_size < known.offset or status.st_ino != known.inode
            if is_another:
                start = _File(inode=status.st_ino)
            elif status.st_size == known.offset:
                return
            else:
                start = known
            file.seek(start.offset)
            *complete, last = file.read().split(b"\n")
        if is_another:
            self._forget(path, known)
        self._files[path] = start
        for number, data in enumerate(complete, start.n_lines + 1):
            self._decode(data, Place(path, number))
        if checked_entry(last):  # whole but for its end; a torn line was never written
            self._decode(last, Place(path, start.n_lines + len(complete) + 1))
        start.offset += sum(len(data) + 1 for data in complete)
        start.n_lines += len(complete)

    def _forget(self, path: Path, known: _File) -> None:
        """Forget the lines of a file, unless another file has them too."""
        for name in known.ids:
            versions = self._versions[name]
            for place in [place for place in versions if place.path == path]:
                del versions[place]
            if versions:
                self._choose(name)
            else:
                del self._versions[name], self.lines[name], self.where[name]

    def _decode(self, data: bytes, place: Place) -> None:
        entry = checked_entry(data.removesuffix(b"\r"))
        try:
            line = _DECODER.decode(entry or b"")
        except UNREADABLE as error:
            why = str(error) if entry else "damaged"
            self._say_of("damaged", f"{place.path}: line {place.number}: {why}; it is left out")
            return
        if line.has_reasonable_clock:
            self._add(line, place)
        else:
            facts = {"path": place.path, "line": place.number, "who": line.annotator, "clock": line.clock}
            self._say_of("clock", said("clock_ahead", **facts))

    def _add(self, line: Line, place: Place) -> None:
        if line.id in self._lost:
            return
        known = self.lines.get(line.id, line)
        self._versions.setdefault(line.id, {})[place] = line
        self._files.setdefault(place.path, _File()).ids.add(line.id)
        self._choose(line.id)
        for name in line.replaces:
            sitting, _, number = name.partition("-")
            self._named[sitting] = max(int(number), self._named.get(sitting, 0))
        if known != line:
            facts = {"path": place.path, "line": place.number, "name": line.id}
            self._say_of("twins", said("two_of_one_id", **facts, who=known.annotator, other=line.annotator))

    def _choose(self, name: str) -> None:
        """Of different lines with one id, choose the one that every machine chooses."""
        versions = self._versions[name]
        place = min(versions, key=lambda place: (msgspec.json.encode(versions[place], order="sorted"), place))
        self.lines[name] = versions[place]
        self.where[name] = place

    # --- writing
    # ---------------------------------------------------------------------------
    def begin(self) -> None:
        """Begin a sitting before anybody decides, and force its first line to the disk."""
        self.close()
        sitting = self._sitting_of_now()
        sync(sitting.path)

    def add(self, kind: str, row: Mapping[str, str], replaces: Sequence[str] = ()) -> Line:
        """Append a decision to this process's sitting, and force it to the disk.

        Raises
        ------
        OSError
            It is not kept; if its line got into the file all the same, it is taken back by the next.
        FilmError
            It is about a line whose clock leaves no number for a later one.
        """
        for lost in [*self._lost.values()]:
            self._append("undo", {"annotator": lost.annotator}, [lost.id])
            del self._lost[lost.id]
        return self._append(kind, row, replaces)

    def _append(self, kind: str, row: Mapping[str, str], replaces: Sequence[str]) -> Line:
        sitting = self._sitting_of_now()
        clock = self._next_clock(replaces)
        number = max(sitting.next_number, clock - MOST_AHEAD)
        try:
            line = _line(f"{sitting.path.stem}-{number}", clock, kind, row, replaces)
        except msgspec.ValidationError:  # a number of more digits than names have
            raise FilmError(said("clock_of_target")) from None
        self._write(sitting, line, force=True)
        return line

    def _write(self, sitting: _Sitting, line: Line, *, force: bool) -> None:
        sitting.next_number = line.number + 1
        try:
            sitting.journal.append(line, force=force)
        except OSError:
            if line.kind not in HEADERS:
                self._lost[line.id] = line
            self.close()
            raise
        self._add(line, Place(sitting.path, line.number))

    def _next_clock(self, replaces: Sequence[str]) -> int:
        """Return one more than the clocks of all lines, but for some that are far ahead of all others."""
        highest = len(self.lines) + PLAUSIBLE
        before = [line.clock for line in self.lines.values() if line.clock <= highest]
        before += [line.clock for line in self._lost.values()]
        before += [self.lines[name].clock for name in replaces if name in self.lines]
        return 1 + max(before, default=0)

    def _sitting_of_now(self) -> _Sitting:
        """Return the sitting that is open; a new one where there is none.

        There is none either where its folder was exchanged, or where a line names lines of it that are not
        written yet: what is decided next would be taken back beforehand.
        """
        sitting = self._sitting
        if sitting is not None:
            is_named_ahead = self._named.get(sitting.path.stem, 0) >= sitting.next_number
            if sitting.has_its_name and not is_named_ahead:
                return sitting
            self.close()
        path = self._make_folder() / f"{token_hex(8)}.jsonl"
        write_new(path, b"")
        sync(self.folder)
        sitting = _Sitting(path, LineJournal(path))
        self._sitting = sitting
        self._files[path] = _File(inode=os.fstat(sitting.journal.descriptor).st_ino)
        if self._header is not None:
            first = _line(f"{path.stem}-1", self._next_clock(()), "sitting", {})
            self._write(sitting, msgspec.structs.replace(first, header=self._header()), force=False)
        return sitting

    def add_table(
        self, sha256: str, kind: str, rows: Sequence[TableRow | None], about: Mapping[str, str] | None = None
    ) -> int:
        """Write what a table or file says as a sitting, whole or not at all; return how much it was.

        Parameters
        ----------
        sha256 : str
            Of the table. It names the sitting, so that a table that came in on two machines came in once.
        kind : str
            Of the table's decisions, or `import`.
        about : mapping, optional
            What else its first line says of it.
        rows : sequence
            What each row says; None for one that says nothing new.
        """
        path = self._make_folder() / f"{sha256[:16]}.jsonl"
        if path.exists():
            return 0
        origin = {"kind": kind, "sha256": sha256, **(about or {})}
        first = _line(f"{path.stem}-1", 1, "table", origin)
        header = None if self._header is None else self._header()
        lines = [msgspec.structs.replace(first, header=header)]
        for number, new in enumerate(rows, start=2):
            if new is None:
                continue
            cells, name, own_kind = new
            old = self.lines.get(name)
            clock, replaces = 2, [name] if name else []
            if old is not None and old.clock < number + MOST_AHEAD:
                clock = 1 + max(1, old.clock)
            lines.append(_line(f"{path.stem}-{number}", clock, own_kind or kind, cells, replaces))
        if len(lines) > 1:
            write_whole(path, b"".join(map(encode_line, lines)), links=False)
            self.read()
        return len(lines) - 1

    def close(self) -> None:
        """End the sitting."""
        if self._sitting is not None:
            with suppress(OSError):  # its lines are on the disk already
                self._sitting.journal.close()
        self._sitting = None

    def _make_folder(self) -> Path:
        if self.folder.is_symlink():
            raise FilmError(f"{self.folder}: a link, and a folder was expected")
        self.folder.mkdir(exist_ok=True)
        with suppress(FileExistsError):
            write_once(self.folder / ".gitattributes", b"*.jsonl -text\n")  # Git keeps the ends of lines
        sync(self.folder.parent)
        return self.folder


def _line(name: str, clock: int, kind: str, row: Mapping[str, str], replaces: Sequence[str] = ()) -> Line:
    """Make a line, checked as a line that is read."""
    entry = {"id": name, "clock": clock, "kind": kind, "row": row, "replaces": replaces}
    return msgspec.convert(entry, Line)
