"""Keep decisions as lines that are only appended, one file a sitting; what is true is the union of all files.

Servers, machines, synchronised folders and merges of Git each add files, and nobody appends to another's:
nothing is locked. Order comes from Lamport clocks, never from the clocks of machines.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Final, Literal

import msgspec

from obygaze_features.door import open_regular
from obygaze_features.errors import InputError
from obygaze_features.io import sync, write_new, write_once, write_whole
from obygaze_features.lines import LineJournal, checked_entry, encode_line
from obygaze_film.errors import FilmError
from obygaze_film.schema import UNREADABLE
from obygaze_film.scored_files import MOST_BYTES

LEDGER: Final = "ledger"
"""Folder of the sittings, in a scored film's folder."""

ID: Final = "[0-9a-f]{16}-[1-9][0-9]{0,8}"
"""Name of a sitting, and the number of a line in it."""

LATEST: Final = 2**53
"""Highest clock, which JSON's readers hold exactly."""

Id = Annotated[str, msgspec.Meta(pattern=f"^{ID}$")]


class Line(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A decision.

    Attributes
    ----------
    clock
        One above the highest that its sitting had read: what was decided in sight of a line comes after it.
    kind
        `undo` takes back, even another; `table` begins the sitting of a table that was edited elsewhere.
    row
        Its columns, none empty: who (`annotator`), time for people, movie, span, level, concepts, whether
        the score was in sight, or a note.
    replaces
        Ids of the lines in whose place it stands, or that it takes back.
    """

    id: Id
    clock: Annotated[int, msgspec.Meta(ge=1, le=LATEST)]
    kind: Literal["judgement", "passage", "note", "undo", "table"]
    row: Mapping[str, str]
    replaces: tuple[Id, ...] = ()


_DECODER = msgspec.json.Decoder(Line)


def standing(lines: Iterable[Line]) -> list[Line]:
    """Return the decisions that nothing replaces or takes back, in an order that is the same everywhere."""
    lines = sorted(lines, key=lambda line: (line.clock, line.id))
    undone: set[str] = set()
    for line in reversed(lines):  # what takes back may be taken back later
        undone.update(line.replaces if line.kind == "undo" and line.id not in undone else ())
    made = [line for line in lines if line.kind not in {"undo", "table"} and line.id not in undone]
    replaced = {name for line in made for name in line.replaces}
    return [line for line in made if line.id not in replaced]


class Ledger:
    """All lines of a scored film's folder, and the sitting that this process adds to.

    Parameters
    ----------
    folder : Path
    say : callable
        Gets what can't be read and is left out, by file and line.

    Attributes
    ----------
    lines : dict
        Id -> line.
    where : dict
        Id -> file and number of the line, for messages.
    """

    def __init__(self, folder: Path, say: Callable[[str], object]) -> None:
        self.folder, self._say = folder / LEDGER, say
        self.lines: dict[str, Line] = {}
        self.where: dict[str, tuple[Path, int]] = {}
        self._clock = 0
        self._read: dict[Path, tuple[int, int]] = {}
        self._lost: set[str] = set()
        self._sitting: tuple[Path, LineJournal, count[int]] | None = None

    def read(self) -> None:
        """Read what was appended since the last time."""
        for path in sorted(self.folder.glob("*.jsonl")):
            offset, number = self._read.get(path, (0, 0))
            try:
                with open_regular(path, MOST_BYTES, within=self.folder.parent) as file:
                    size = os.fstat(file.fileno()).st_size
                    if size == offset:
                        continue
                    if size < offset:  # another file has the name now
                        offset = number = 0
                    file.seek(offset)
                    *complete, last = file.read().split(b"\n")
            except (OSError, InputError) as error:
                self._say(str(error))
                continue
            for at, data in enumerate(complete, number + 1):
                self._decode(data, path, at)
            if checked_entry(last):  # whole but for its end; a torn line was never written
                self._decode(last, path, number + len(complete) + 1)
            self._read[path] = offset + sum(len(data) + 1 for data in complete), number + len(complete)

    def _decode(self, data: bytes, path: Path, number: int) -> None:
        entry = checked_entry(data.removesuffix(b"\r"))
        try:
            line = _DECODER.decode(entry or b"")
        except UNREADABLE as error:
            self._say(f"{path}: line {number}: {error if entry else 'damaged'}; it is left out")
        else:
            self._add(line, path, number)

    def _add(self, line: Line, path: Path, number: int) -> None:
        if line.id in self._lost:
            return
        known = self.lines.get(line.id, line)
        if known != line:
            self._say(f"{path}: line {number}: {line.id} is another decision elsewhere: one of them counts")
        self.lines[line.id] = min(known, line, key=msgspec.json.encode)  # the same one on every machine
        self.where.setdefault(line.id, (path, number))
        self._clock = max(self._clock, line.clock)

    def add(self, kind: str, row: Mapping[str, str], replaces: Sequence[str] = ()) -> Line:
        """Append a decision to this process's sitting, and force it to the disk.

        Raises
        ------
        OSError
            It is not kept; if its line got into the file all the same, the next decision replaces it.
        """
        if self._sitting is None or not _has_name(*self._sitting[:2]):
            path = self._make_folder() / f"{token_hex(8)}.jsonl"
            write_new(path, b"")
            sync(self.folder)
            self._sitting = path, LineJournal(path), count(1)
        path, journal, numbers = self._sitting
        number = next(numbers)
        line = self._line(f"{path.stem}-{number}", self._clock, kind, row, [*replaces, *self._lost])
        try:
            journal.append(line)
        except OSError:
            self._lost.add(line.id)
            self.close()
            raise
        self._add(line, path, number)
        return line

    def add_table(self, sha256: str, kind: str, rows: Sequence[tuple[Mapping[str, str], str] | None]) -> int:
        """Write what a table says as a sitting of its own, whole or not at all; return how much it was.

        Parameters
        ----------
        sha256 : str
            Of the table. It names the sitting, so that a table that came in on two machines came in once.
        rows : sequence
            Cells, and the id of the line that they replace; None for a row that says nothing new.
        """
        path = self._make_folder() / f"{sha256[:16]}.jsonl"
        lines = [self._line(f"{path.stem}-1", 0, "table", {"kind": kind, "sha256": sha256}, [])]
        for number, said in enumerate(rows, start=2):
            if said is not None and not path.exists():
                row, old = said
                before = self.lines[old].clock if old in self.lines else 0
                lines.append(self._line(f"{path.stem}-{number}", before, kind, row, [old] if old else []))
        if len(lines) > 1:
            write_whole(path, b"".join(map(encode_line, lines)), links=False)
            self.read()
        return len(lines) - 1

    def _line(
        self, name: str, before: int, kind: str, row: Mapping[str, str], replaces: Sequence[str]
    ) -> Line:
        entry = {"id": name, "clock": min(LATEST, before + 1), "kind": kind, "row": row, "replaces": replaces}
        return msgspec.convert(entry, Line)

    def close(self) -> None:
        """End the sitting."""
        if self._sitting is not None:
            with suppress(OSError):  # its lines are on the disk already
                self._sitting[1].close()
        self._sitting = None

    def _make_folder(self) -> Path:
        if self.folder.is_symlink():
            raise FilmError(f"{self.folder}: a link, and a folder was expected")
        self.folder.mkdir(exist_ok=True)
        with suppress(FileExistsError):
            write_once(self.folder / ".gitattributes", b"*.jsonl -text\n")  # Git keeps the ends of lines
        sync(self.folder.parent)
        return self.folder


def _has_name(path: Path, journal: LineJournal) -> bool:
    """Whether a name is still that of the open file."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(journal.descriptor), path.stat())
    return False
