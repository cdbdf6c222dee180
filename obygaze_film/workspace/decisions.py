"""Keep what people decide about a scored film in its ledger; tables of the decisions are exports of it."""

import os
import re
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, Final

from obygaze_features.door import read_bytes
from obygaze_features.errors import InputError, ObygazeError
from obygaze_features.io import sha256_of, write_new, write_whole
from obygaze_features.lines import sheet_line
from obygaze_features.manifest import (
    BUILTIN,
    CODEBOOK_COLUMN,
    FIELDS,
    SEEN_SCORE,
    Clip,
    Codebook,
    Manifest,
    Problems,
    clip_of,
    counted,
    find_codebook,
    find_film,
    read_table,
    repeated_concepts,
)
from obygaze_features.manifest import Row as TableRow
from obygaze_features.text import unsuitable
from obygaze_film.cells import cells_of
from obygaze_film.draws import CONTENT_S, LAW, SEED, SEQUENTIAL_POISSON, SUCCESSIVE, Draw, Law
from obygaze_film.errors import FilmError
from obygaze_film.judged_windows import PLACE, drawn_place, is_blind, law_of, named_law, named_seed
from obygaze_film.notes import said
from obygaze_film.rows import SLACK_S
from obygaze_film.scored_files import JUDGEMENTS, MOST_BYTES, PASSAGES, RECORD
from obygaze_film.timeline import Timeline
from obygaze_film.windows_to_judge import DRAW, extras_of
from obygaze_film.workspace.ledger import ID, LEDGER, Ledger, Line, standing

NOTES: Final = "notes.csv"

FIXED: Final = "windows"
"""Column of blind judgements: how many windows their judge had decided to judge, before the first."""

COLUMNS: Final = {
    JUDGEMENTS: (*FIELDS, SEEN_SCORE, "judgement", DRAW, PLACE, LAW, SEED, CONTENT_S, FIXED, "judged_at"),
    PASSAGES: (*FIELDS, SEEN_SCORE, "origin", "judged_at"),
    NOTES: ("clip_id", "movie", "start_s", "end_s", "annotator", "note", "written_at"),
}
"""Of each table, in a scored film's folder; further columns that a table comes with are kept."""

KINDS: Final = {"judgement": JUDGEMENTS, "passage": PASSAGES, "note": NOTES}
"""Kind of decision -> its table."""

SPAN: Final = ("movie", "start_s", "end_s", "annotator")
"""Columns in which no decision is empty."""

TO_JUDGE: Final = 40
"""Windows of a film that one is asked to judge, unless told otherwise."""

SHORTEST_S: Final = 0.1
"""Seconds that a passage of one's own lasts at least; the tenth of a second is that of short shots."""


Row = dict[str, str]
State = tuple[int, int, int] | None


def state_of(path: Path) -> State:
    """Return what tells whether a file was changed or replaced; None without one."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


class Decisions:
    """What people decided about one film: the union of its ledger's sittings.

    Every decision is appended at once, and the tables are written anew. A table that is not as it was written
    here was edited elsewhere: what it says comes in as a sitting.

    Parameters
    ----------
    folder : Path
        The scored film's.
    film : Timeline
    codebook : Codebook
        Of the levels and concepts.

    Attributes
    ----------
    kept : dict
        Kind -> the decisions that stand, nonsense left out, in one order everywhere. Their ids are the
        ledger's; further columns are in `extras`.
    notices : list of str
        What is to be said, each thing once; who says it empties the list.

    Raises
    ------
    ObygazeError
        A table has not the columns of such a table, or nonsense in a row; names file and line.
    """

    def __init__(self, folder: Path, film: Timeline, codebook: Codebook) -> None:
        self.folder, self.film, self.codebook = folder, film, codebook
        self.ledger = Ledger(folder, self._say)
        self.kept: dict[str, list[Clip]] = {}
        self.notices: list[str] = []
        self._done: list[Line] = []
        self._undone: list[Line] = []
        self._said: set[str] = set()
        self._clips: dict[str, tuple[Line, Clip | None, int]] = {}
        self._rows: dict[tuple[str, tuple[str, ...]], str] = {}
        self._tables: dict[str, tuple[State, str]] = dict.fromkeys(COLUMNS, (None, ""))
        self._lock = RLock()
        self._record = state_of(folder / RECORD)
        self.refresh(opening=True)

    # --- what is there
    # ---------------------------------------------------------------------------
    @property
    def who(self) -> str:
        """Who decided last in this sitting, else who decided all there is, if that is one person."""
        names = {clip.annotator for clips in self.kept.values() for clip in clips}
        return self._done[-1].row["annotator"] if self._done else names.pop() if len(names) == 1 else ""

    @property
    def draw(self) -> Draw:
        """The draw of the windows to judge blindly, by the law of those judged before."""
        return self._draws[law_of(self.kept.get("judgement", ()))]

    @property
    def windows(self) -> list[tuple[float, float]]:
        """Windows to judge blindly, in the order of the draw."""
        return self._windows[self.draw.law]

    @cached_property
    def _draws(self) -> dict[Law, Draw]:
        """The film's draw by each law."""
        content = tuple(cells_of(self.film).content.tolist())
        laws = (SUCCESSIVE, SEQUENTIAL_POISSON)
        return {law: Draw(law=law, seed=0, movie=self.film.movie, content=content) for law in laws}

    @cached_property
    def _windows(self) -> dict[Law, list[tuple[float, float]]]:
        """The film's windows in the order of each draw."""
        spans = cells_of(self.film).spans.tolist()
        return {law: [tuple(spans[cell]) for cell in draw.order()] for law, draw in self._draws.items()}

    def place_of(self, clip: Clip) -> int:
        """Return the place in its draw of a window that was judged blindly; 0 if it is none."""
        windows = next((self._windows[law] for law in self._windows if law == named_law(clip)), [])
        place = drawn_place(clip) if is_blind(clip) and named_seed(clip) in (None, 0) else 0
        if not 0 < place <= len(windows):
            return 0
        start_s, end_s = windows[place - 1]
        starts_there = abs((clip.start_s or 0.0) - start_s) <= SLACK_S
        ends_there = abs((clip.end_s or 0.0) - end_s) <= SLACK_S
        return place if starts_there and ends_there else 0

    def blind(self) -> dict[str, dict[int, Clip]]:
        """Map who judged blindly to their judgements by place in the draw."""
        found: dict[str, dict[int, Clip]] = {}
        law = self.draw.law
        for clip in self.kept["judgement"]:
            place = self._clips[clip.clip_id][2]
            if clip.level and place and named_law(clip) == law:
                found.setdefault(clip.annotator, {})[place] = clip
        return found

    def verdict(self, level: str) -> str:
        """Say what a judgement of a passage that the model marks is: agree, disagree, or unsure.

        As in rates: what is not positive is negative, whatever levels the model was trained on; a level that
        the codebook puts in no task is neither.
        """
        if level in self.film.model().positive:
            return "agree"
        return "disagree" if level in self.codebook.labels else "unsure"

    def fixed_by(self, who: str) -> int:
        """Return how many windows somebody had decided to judge, before the first."""
        judged = self.blind().get(who, {}).values()
        given = [int(text) for clip in judged if (text := clip.extras.get(FIXED, "")).isdecimal()]
        return max(given, default=TO_JUDGE)

    def hides(self, who: str) -> bool:
        """Whether others' blind judgements are hidden from somebody: until their own are finished."""
        blind = self.blind()
        own = len(blind.pop(who, ()))
        return bool(blind) and (not own or own < min(self.fixed_by(who), len(self.windows)))

    def conflicts(self) -> set[str]:
        """Find decisions that stand in the same place, beside each other: nobody chose between them."""
        first: dict[object, str] = {}
        found: set[str] = set()
        for clip in (clip for clips in self.kept.values() for clip in clips):
            line = self.ledger.lines[clip.clip_id]
            for place in (*line.replaces, _place(clip) if line.kind == "judgement" else line.id):
                if first.setdefault(place, line.id) != line.id:
                    found |= {first[place], line.id}
        return found

    def judgements(self, clips: Iterable[Clip] | None = None) -> Manifest:
        """Make a manifest of judgements; of several that stand in one place the latest counts."""
        latest: dict[object, Clip] = {}
        for clip in self.kept["judgement"] if clips is None else clips:
            columns = (SEEN_SCORE, PLACE, LAW, SEED, CONTENT_S)  # alike in a manifest
            more = {name: clip.extras.get(name, "") for name in columns}
            latest |= {_place(clip): replace(clip, extras=more)} if clip.level else {}
        return Manifest(tuple(latest.values()), self.folder, self.codebook)

    # --- what is decided
    # ---------------------------------------------------------------------------
    def keep(self, kind: str, start_s: float, end_s: float, who: str, **more: Any) -> str:
        """Keep a decision on a span (`level` and `concepts`, or `note`), and return its id.

        A judgement of a window that was drawn, `place` in the draw, was made blindly; `windows` is the number
        that its judge has decided to judge. A judgement stands in place of what the same person judged of the
        span in the same way: blindly, or with the score in sight; one with an `id`, of that decision.
        """
        row = {"movie": self.film.movie, "start_s": f"{start_s:.10g}", "end_s": f"{end_s:.10g}"}
        row |= {"annotator": " ".join(who.split()), "written_at" if kind == "note" else "judged_at": _now()}
        place = more.get("place", 0) if kind == "judgement" else 0
        if kind == "note":
            row |= {"note": " ".join(more["note"].split())}
        else:
            level = self.codebook.level_named(more.get("level", ""))
            row |= {"level": level, "concepts": ";".join(more.get("concepts", ()))}
            row |= {SEEN_SCORE: "0" if place else "1", "note": " ".join(more.get("note", "").split())}
        if kind == "passage":
            row |= {"origin": more.get("origin", "own")}
        elif kind == "judgement":
            if place:
                row |= self._drawn_at(place) | {FIXED: str(more.get("windows") or "")}
            else:
                row |= {"judgement": self.verdict(row["level"])}
            row |= {CODEBOOK_COLUMN: self.codebook.name} if self.codebook.name != BUILTIN[0] else {}
        row, problems = {name: cell for name, cell in row.items() if cell}, Problems(self.folder)
        self._refuse(kind, row, start_s, end_s)
        clip = self._checked(kind, row, "new", problems, 0)
        if clip is None:
            raise FilmError(problems.messages[0].partition(", ")[2])
        if place and not self.place_of(clip):
            raise FilmError(said("no_window", start=start_s, end=end_s, place=place))
        with self._lock:
            if state_of(self.folder / RECORD) != self._record:
                raise FilmError(said("scored_again", folder=self.folder))
            self.refresh()
            mine = [old for old in self.kept[kind] if old.annotator == clip.annotator]
            same = [old.clip_id for old in mine if kind == "judgement" and _place(old) == _place(clip)]
            if edited := more.get("id", ""):
                same = list(dict.fromkeys([self._standing(edited, clip.annotator).id, *same]))
            return self._did(self.ledger.add(kind, row, same)).id

    def _drawn_at(self, place: int) -> Row:
        """Write the columns of the window at a place of the draw."""
        order = self.draw.order()
        if not 0 < place <= len(order):
            return {PLACE: str(place), SEEN_SCORE: "0"}
        return extras_of(self.draw, order[place - 1], place)

    def _refuse(self, kind: str, row: Row, start_s: float, end_s: float) -> None:
        """Refuse what people ask for by mistake, in words that can be said again."""
        whole_s = self.film.record.duration_s
        for text in (row.get("annotator", ""), row.get("note", "")):
            if wrong := unsuitable(text):
                raise FilmError(said("unsuitable", text=text, sign=re.findall(r"U\+\w+", wrong)[0]))
        if end_s > whole_s + 1:
            raise FilmError(said("behind", start=start_s, end=end_s, whole=whole_s))
        if kind == "passage" and not end_s - start_s >= SHORTEST_S:
            raise FilmError(said("short", start=start_s, end=end_s, least=SHORTEST_S))

    def delete(self, name: str, annotator: str) -> Line:
        """Take back a decision of the same person, of whatever sitting, and return it.

        Raises
        ------
        FilmError
            It is somebody else's, or was changed or deleted meanwhile.
        """
        with self._lock:
            self.refresh()
            line = self._standing(name, " ".join(annotator.split()))
            # Nor does what it stood in place of.
            self._did(self._take_back(line, *self._replaced(name)))
            return line

    def undo(self, annotator: str) -> Line | None:
        """Undo what the same person did last in this sitting; return the decision that it was about."""
        return self._step(annotator, self._done, self._undone)

    def redo(self, annotator: str) -> Line | None:
        """Do again what the same person undid last, unless they decided something since."""
        return self._step(annotator, self._undone, self._done)

    def history(self, name: str) -> list[Line]:
        """Return what a decision stands in place of, the latest first, without what says the same."""
        shown = [self.ledger.lines[name]]
        for line in self._replaced(name):
            if all(_content(line) != _content(other) for other in shown):
                shown.append(line)
        return shown[1:]

    def _replaced(self, name: str) -> list[Line]:
        """Find the lines in whose place a line stands, and those in whose place they stood."""
        found: dict[str, Line] = {}
        names = [*self.ledger.lines[name].replaces]
        while names:
            line = self.ledger.lines.get(names.pop(0))
            if line is not None and line.id not in found:
                found[line.id] = line
                names += line.replaces
        return sorted(found.values(), key=lambda line: (-line.clock, line.id))

    def _standing(self, name: str, who: str) -> Line:
        """Find a decision that somebody may change: one of their own that stands."""
        stands = any(clip.clip_id == name for clips in self.kept.values() for clip in clips)
        if not stands or self.ledger.lines[name].row["annotator"] != who:
            raise FilmError(said("not_standing"))
        return self.ledger.lines[name]

    def _did(self, line: Line) -> Line:
        self._done.append(line)
        self._undone = [other for other in self._undone if other.row["annotator"] != line.row["annotator"]]
        self._settle()
        return line

    def _take_back(self, *lines: Line) -> Line:
        row = {"annotator": lines[0].row["annotator"], "judged_at": _now()}
        return self.ledger.add("undo", row, [line.id for line in lines])

    def _step(self, annotator: str, acts: list[Line], others: list[Line]) -> Line | None:
        """Take back a person's latest line of `acts`: a decision, or what took one back."""
        with self._lock:
            self.refresh()
            who = " ".join(annotator.split())
            line = next((line for line in reversed(acts) if line.row["annotator"] == who), None)
            if line is None:
                return None
            others.append(self._take_back(line))
            acts.remove(line)
            self._settle()
            while line.kind == "undo":
                line = self.ledger.lines[line.replaces[0]]
            return line

    def refresh(self, *, opening: bool = False) -> None:
        """Read what others appended to the ledger, or edited in the tables."""
        with self._lock:
            states = {name: state_of(self.folder / name) for name in COLUMNS}
            edited = [kind for kind, name in KINDS.items() if states[name] != self._tables[name][0]]
            known = len(self.ledger.lines)
            for kind in edited:
                name = KINDS[kind]
                self._tables[name] = states[name], ""
                try:
                    if states[name]:
                        self._take_in(kind, read_bytes(self.folder / name, MOST_BYTES, within=self.folder))
                except (ObygazeError, OSError) as error:
                    if opening:
                        raise
                    self._tables[name] = (0, 0, 0), HELD  # and tried again
                    self._say(said("table_held", error=error))
            self.ledger.read()
            if opening or edited or known != len(self.ledger.lines):
                self._settle()

    # --- ledger and tables
    # ---------------------------------------------------------------------------
    def _take_in(self, kind: str, data: bytes) -> None:
        """Append what a table has and the ledger has not, as a sitting."""
        path, digest = self.folder / KINDS[kind], sha256_of(data)
        self.ledger.read()  # after the table: what was exported into it is there
        self._find()
        if data == (text := self.table(kind)).encode():
            self._tables[path.name] = self._tables[path.name][0], text
            return
        table = read_table(path, (*SPAN, "note") if kind == "note" else (*FIELDS, SEEN_SCORE))
        read = [(row, self._said_by(kind, row, table.problems)) for row in table.timed()]
        rows, told = [row for row, _ in read], [new for _, new in read]
        if new := self.ledger.add_table(digest, kind, told):
            self._say(said("table_edited", path=path, digest=digest[:16], decisions=counted(new, "decision")))
            for notice in repeated_concepts((path, row.line, row.cells) for row in rows).values():
                self._say(f"{path}: {notice}")
        elif any(told):
            self._say(said("table_known", path=path))
        there = {row.cells.get("clip_id") for row in rows}
        gone = sum(clip.clip_id not in there for clip in self.kept[kind])
        if gone and path.stat().st_mtime > max(map(os.path.getmtime, self.ledger.folder.glob("*.jsonl"))):
            self._say(said("table_lacked", path=path, decisions=counted(gone, "decision"), ledger=LEDGER))

    def _said_by(self, kind: str, row: TableRow, problems: Problems) -> tuple[Row, str] | None:
        """Return the cells of a row of a table, and what it replaces; None if it says nothing new."""
        cells = {name: " ".join(cell.split()) for name, cell in row.cells.items() if cell.strip()}
        cells |= {name: f"{float(cells[name]):.10g}" for name in ("start_s", "end_s") if name in cells}
        cells["movie"] = find_film(cells.get("movie", ""), [self.film.movie]) or cells.get("movie", "")
        name = cells.pop("clip_id", "")
        old = name if re.fullmatch(ID, name) else ""
        if old in self.ledger.lines and self.ledger.lines[old].row == cells:
            return None
        clip = self._checked(kind, cells, "new", problems, row.line)
        if clip is not None and kind != "note":
            cells |= {"level": clip.level or "", "concepts": ";".join(clip.concepts)}
            cells[SEEN_SCORE] = clip.extras[SEEN_SCORE]
        return {name: cell for name, cell in cells.items() if cell}, old

    def _checked(self, kind: str, row: Row, name: str, problems: Problems, number: int) -> Clip | None:
        """Check a decision; note what is nonsense in it."""
        before = len(problems.messages)
        for column in (*SPAN, "note" if kind == "note" else SEEN_SCORE):
            if not row.get(column):
                problems.add(number, "is empty", column)
        if len(problems.messages) > before:
            return None
        clip = clip_of(TableRow(number, {**row, "clip_id": name}), problems, self.codebook, spelled=True)
        whole_s = self.film.record.duration_s
        if clip is not None and clip.movie == self.film.movie and (clip.end_s or 0) > whole_s + 1:
            problems.add(number, f"{row['end_s']} s is behind the end of a film of {whole_s:g} s", "end_s")
            return None
        return clip

    def _find(self) -> None:
        """Find what stands; say what is wrong, each thing once."""
        kept: dict[str, list[Clip]] = {kind: [] for kind in KINDS}
        for line in standing(self.ledger.lines.values()):
            known, clip, _ = self._clips.get(line.id, (None, None, 0))
            if known is not line:
                path, number = self.ledger.where[line.id]
                problems = Problems(path)
                clip = self._checked(line.kind, dict(line.row), line.id, problems, number)
                own = clip is not None and clip.movie == self.film.movie
                blind = own and clip is not None and clip.extras.get(SEEN_SCORE) == "0"
                at = self.place_of(clip) if blind and clip is not None else 0
                self._clips[line.id] = line, clip, at
                if clip is not None and not own:
                    problems.add(number, "of another film: it is not shown here", "movie")
                if blind and not at:
                    problems.add(number, "of another window of the draw: it does not count", PLACE)
                for problem in problems.messages:
                    self._say(f"{path}: {problem}")
            if clip is not None:
                kept[line.kind].append(clip)
        self.kept = kept  # whole, for who reads it in another thread

    def _settle(self) -> None:
        """Find what stands, and write the tables anew."""
        self._find()
        for line in self.ledger.lines.values():
            for name in line.replaces if line.kind == "undo" else ():
                taken = self.ledger.lines.get(name, line)
                if taken.row.get("annotator") != line.row.get("annotator"):
                    path, number = self.ledger.where[line.id]
                    self._say(said("takes_back", path=path, line=number, name=name))
        if conflicts := self.conflicts():
            self._say(said("beside", folder=self.folder, n=len(conflicts)))
        for kind, name in KINDS.items():
            path, (state, before), text = self.folder / name, self._tables[name], self.table(kind)
            if before == HELD or (before == text if state else not self.kept[kind]):
                continue
            try:
                if state_of(path) == state:  # else it was edited just now: that is read first
                    write_whole(path, text, links=False)  # a stranger's folder
                    self._tables[name] = state_of(path), text
            except OSError as error:
                self._say(said("table_unwritten", path=path, error=error.strerror, ledger=LEDGER))

    def table(self, kind: str, only: Container[str] | None = None) -> str:
        """Write the decisions of a kind as a table; `only` those of some ids."""
        names = [clip.clip_id for clip in self.kept[kind] if only is None or clip.clip_id in only]
        lines, first = [self.ledger.lines[name] for name in names], COLUMNS[KINDS[kind]]
        columns = (*first, *sorted({name for line in lines for name in line.row}.difference(first)))
        for line in lines:
            if (line.id, columns) not in self._rows:
                cells = {"clip_id": line.id, **line.row}
                self._rows[line.id, columns] = sheet_line([cells.get(name, "") for name in columns])
        return "".join([sheet_line(columns), *(self._rows[line.id, columns] for line in lines)])

    def _say(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            self.notices.append(message)


def judged_files(
    films: Mapping[Path, Timeline], book: Codebook | None, *names: str
) -> tuple[list[Path], list[str]]:
    """Find the tables of these names in scored films' folders, as their ledgers are now; also what to say."""
    notices = []
    for folder, film in films.items():
        if (folder / LEDGER).is_dir():
            notices += Decisions(folder, film, book or codebook_of(film.model().codebook, None)).notices
    return [path for folder in films for name in names if (path := folder / name).is_file()], notices


def copy_decisions(folder: Path, out: Path) -> None:
    """Copy what was decided about a film into another folder of it, where people go on deciding."""
    for path in (*(folder / LEDGER).glob("*.jsonl"), *filter(Path.is_file, map(folder.joinpath, COLUMNS))):
        (there := out / path.relative_to(folder)).parent.mkdir(exist_ok=True)
        with suppress(InputError):  # what is no file was left out, and said, where it was read
            write_new(there, read_bytes(path, MOST_BYTES, within=folder))


def codebook_of(name: str, path: Path | None) -> Codebook:
    """Find the codebook of the judgements: a file, or the models' of a name."""
    if path is None and name not in BUILTIN:
        raise FilmError(f"the model's codebook {name!r} is not built in: give its file with --codebook")
    return find_codebook(str(path or name))


HELD: Final = "\0"
"""In place of the text of a table that can't be read."""


def _place(clip: Clip) -> tuple[object, ...]:
    return clip.annotator, clip.movie, clip.start_s, clip.end_s, clip.extras.get(SEEN_SCORE)


def _content(line: Line) -> tuple[str, ...]:
    return tuple(line.row.get(name, "") for name in ("start_s", "end_s", "level", "concepts", "note"))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
