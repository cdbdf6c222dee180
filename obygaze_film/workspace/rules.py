"""Say what a decision about a film must be: its columns, its level and concepts, its place in the film."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from obygaze_features.manifest import (
    BUILTIN,
    CODEBOOK_COLUMN,
    PLACE,
    SEEN_SCORE,
    Clip,
    Codebook,
    Problems,
    clip_of,
    place_in,
)
from obygaze_features.manifest import Row as TableRow
from obygaze_features.text import unsuitable
from obygaze_film.cells import cells_of
from obygaze_film.coverage import SLACK_S
from obygaze_film.draws import SEQUENTIAL_POISSON, SUCCESSIVE, Draw, Law
from obygaze_film.errors import FilmError
from obygaze_film.judged_windows import is_blind, named_law, named_seed
from obygaze_film.notes import said
from obygaze_film.positive import positive_of
from obygaze_film.timeline import Timeline
from obygaze_film.windows_to_judge import extras_of
from obygaze_film.workspace.ledger_lines import ID, PARENTS, Line

FIXED: Final = "windows"
"""Column of blind judgements: how many windows their judge had decided to judge, before the first."""

SPAN: Final = ("movie", "start_s", "end_s", "annotator")
"""Columns in which no decision is empty."""

NEEDED: Final = {
    "judgement": (SEEN_SCORE,),
    "passage": (SEEN_SCORE,),
    "note": ("note",),
    "agreed": (SEEN_SCORE, "level", PARENTS),
}
"""Further columns that are not empty, by kind of decision."""

_PARENTS = re.compile(f"{ID}(;{ID})+")

TO_JUDGE: Final = 40
"""Windows of a film that one is asked to judge, unless told otherwise."""

SHORTEST_S: Final = 0.1
"""Seconds that a passage of one's own lasts at least; the tenth of a second is that of short shots."""

END_SLACK_S: Final = 1.0
"""Seconds by which a span may end after the film: players round the end."""

SEED_OF_DESK: Final = 0
"""Of the draw of the windows that are judged blindly at the desk."""

Cells = dict[str, str]
"""Columns of a decision, as its line in the ledger holds them."""


def now() -> str:
    """Return the time for people."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def name_of(text: str) -> str:
    """Return a person's name without blanks around it, and with single ones in it."""
    return " ".join(text.split())


@dataclass(frozen=True)
class FilmRules:
    """What decisions about one film must be.

    Attributes
    ----------
    film : Timeline
    codebook : Codebook
        Of the levels and concepts.
    recorded : tuple of Draw
        Draws by which the film was judged before, of at most one of each law: it goes on by them, also where
        windows have another content now.
    """

    film: Timeline
    codebook: Codebook
    recorded: tuple[Draw, ...] = ()

    @cached_property
    def content(self) -> tuple[float, ...]:
        """The seconds of each window that can be judged now."""
        return tuple(cells_of(self.film).content.tolist())

    @cached_property
    def draws(self) -> dict[Law, Draw]:
        """The film's draw by each law."""
        draws = {}
        for law in (SUCCESSIVE, SEQUENTIAL_POISSON):
            draws[law] = Draw(law=law, seed=SEED_OF_DESK, movie=self.film.movie, content=self.content)
        for draw in self.recorded:
            draws[draw.law] = draw
        return draws

    def is_of_film(self, draw: Draw) -> bool:
        """Whether a draw that a sitting names can be of this film's windows: anybody may have written it."""
        if draw.movie != self.film.movie or draw.seed != SEED_OF_DESK:
            return False
        if len(draw.content) != len(self.content):
            return False
        lengths = np.diff(cells_of(self.film).spans)[:, 0]
        return bool((np.array(draw.content) <= lengths + SLACK_S).all())

    def n_changed(self, law: Law) -> int:
        """Count the windows that have another content now than when they were drawn."""
        return int((np.abs(np.array(self.draws[law].content) - self.content) > SLACK_S).sum())

    @cached_property
    def windows(self) -> dict[str, list[tuple[float, float]]]:
        """Start and end of the film's windows (s) in the order in which each law draws them, by law."""
        spans = [(start_s, end_s) for start_s, end_s in cells_of(self.film).spans.tolist()]
        windows: dict[str, list[tuple[float, float]]] = {}
        for law, draw in self.draws.items():
            windows[law] = [spans[cell] for cell in draw.order()]
        return windows

    def place_of(self, clip: Clip) -> int:
        """Return the place in its draw of a window that was judged blindly; 0 if it is none."""
        if not is_blind(clip) or named_seed(clip) not in {None, SEED_OF_DESK}:
            return 0
        windows = self.windows.get(named_law(clip), [])
        place = place_in(clip)
        if not 0 < place <= len(windows):
            return 0
        start_s, end_s = windows[place - 1]
        starts_there = abs((clip.start_s or 0.0) - start_s) <= SLACK_S
        ends_there = abs((clip.end_s or 0.0) - end_s) <= SLACK_S
        return place if starts_there and ends_there else 0

    def verdict(self, level: str, concepts: Iterable[str] = ()) -> str:
        """Say what a judgement of a passage that the model marks is: agree, disagree, or unsure.

        As in rates: what is not positive is negative, whatever levels the model was trained on; a level that
        the codebook puts in no task is neither.
        """
        judged = Clip("judgement", self.film.movie, level=level, concepts=tuple(concepts))
        call = positive_of(self.film.model()).calls(judged, self.codebook.labels)
        if call is None:
            return "unsure"
        return "agree" if call else "disagree"

    def row_of(
        self, kind: str, start_s: float, end_s: float, who: str, *, draw: Draw, more: Mapping[str, Any]
    ) -> Cells:
        """Write the columns of what somebody asks to keep (`Decisions.keep`), none empty."""
        place = more.get("place", 0) if kind == "judgement" else 0
        row = {"movie": self.film.movie, "start_s": f"{start_s:.10g}", "end_s": f"{end_s:.10g}"}
        row["annotator"] = name_of(who)
        row["note"] = " ".join(more.get("note", "").split())
        if kind == "note":
            row["written_at"] = now()
        else:
            row["judged_at"] = now()
            row["level"] = self.codebook.level_named(more.get("level", ""))
            row["concepts"] = ";".join(more.get("concepts", ()))
            row[SEEN_SCORE] = "0" if place or more.get("is_blind") else "1"
        if kind == "passage":
            row["origin"] = more.get("origin", "own")
        elif kind == "agreed":
            row[PARENTS] = ";".join(more.get("parents", ()))
        elif kind == "judgement":
            if place:
                row |= drawn_at(draw, place) | {FIXED: str(more.get("windows") or "")}
            else:
                row["judgement"] = self.verdict(row["level"], more.get("concepts", ()))
            if self.codebook.name != BUILTIN[0]:
                row[CODEBOOK_COLUMN] = self.codebook.name
        return {name: cell for name, cell in row.items() if cell}

    def refuse(self, kind: str, row: Cells, start_s: float, end_s: float) -> None:
        """Refuse what people ask for by mistake, in words that can be said again.

        Raises
        ------
        FilmError
            A text holds signs that control how text is shown, or the span is behind the film or too short.
        """
        whole_s = self.film.record.duration_s
        for text in (row.get("annotator", ""), row.get("note", "")):
            wrong = unsuitable(text)
            if wrong:
                raise FilmError(said("unsuitable", text=text, sign=re.findall(r"U\+\w+", wrong)[0]))
        if end_s > whole_s + END_SLACK_S:
            raise FilmError(said("behind", start=start_s, end=end_s, whole=whole_s))
        if kind == "passage" and not end_s - start_s >= SHORTEST_S:
            raise FilmError(said("short", start=start_s, end=end_s, least=SHORTEST_S))

    def checked(
        self, kind: str, row: Mapping[str, str], name: str, problems: Problems, line: int
    ) -> Clip | None:
        """Make a clip of a decision; None, with what is nonsense in it noted, if it is none."""
        before = len(problems.messages)
        for column in (*SPAN, *NEEDED[kind]):
            if not row.get(column):
                problems.add(line, "is empty", column)
        if kind == "agreed" and not _PARENTS.fullmatch(row.get(PARENTS, "")):
            problems.add(line, "expected the ids of two decisions or more", PARENTS)
        if len(problems.messages) > before:
            return None
        clip = clip_of(TableRow(line, {**row, "clip_id": name}), problems, self.codebook, spelled=True)
        if clip is None:
            return None
        whole_s = self.film.record.duration_s
        if clip.movie == self.film.movie and (clip.end_s or 0.0) > whole_s + END_SLACK_S:
            problems.add(line, f"{row['end_s']} s is behind the end of a film of {whole_s:g} s", "end_s")
            return None
        return clip


def drawn_at(draw: Draw, place: int) -> Cells:
    """Write the columns of the window at a place of a draw; if the draw has no such place, only the place."""
    order = draw.order()
    if not 0 < place <= len(order):
        return {PLACE: str(place), SEEN_SCORE: "0"}
    return extras_of(draw, order[place - 1], place)


@dataclass(frozen=True, slots=True)
class Reading:
    """A line of the ledger as these rules read it.

    Attributes
    ----------
    line : Line
    clip : Clip or None
        None if it is nonsense.
    place : int
        In the draw, of a window of this film that was judged blindly; else 0.
    problems : tuple of str
    """

    line: Line
    clip: Clip | None
    place: int
    problems: tuple[str, ...]


def read_line(rules: FilmRules, line: Line, path: Path, number: int) -> Reading:
    """Read a decision of a ledger, which anybody may have written."""
    problems = Problems(path)
    clip = rules.checked(line.kind, line.row, line.id, problems, number)
    place = 0
    if clip is not None and clip.movie != rules.film.movie:
        problems.add(number, "of another film: it is not shown here", "movie")
    elif clip is not None and line.kind == "judgement" and clip.extras.get(SEEN_SCORE) == "0":
        place = rules.place_of(clip)
        if not place:
            problems.add(number, "of another window of the draw: it does not count", PLACE)
    return Reading(line, clip, place, tuple(f"{path}: {problem}" for problem in problems.messages))
