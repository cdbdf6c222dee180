"""Say what a decision about a film must be: its columns, its level and concepts, its place in the film."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from obygaze_features.manifest import (
    BUILTIN,
    CODEBOOK_COLUMN,
    PLACE,
    SEEN_SCORE,
    Clip,
    Codebook,
    Problems,
    Row,
    clip_of,
    place_in,
)
from obygaze_features.text import unsuitable
from obygaze_film.cells import cells_of
from obygaze_film.coverage import SLACK_S
from obygaze_film.draws import SEQUENTIAL_POISSON, SUCCESSIVE, Draw, Sampling
from obygaze_film.errors import FilmError
from obygaze_film.judged_windows import is_blind, named_sampling, named_seed
from obygaze_film.notes import message
from obygaze_film.positive import positive_of
from obygaze_film.timeline import Timeline
from obygaze_film.windows_to_judge import extras_of, unread_notices
from obygaze_film.workspace.ledger_lines import ID, PARENTS, Line

PLANNED: Final = "windows"
"""Column of blind judgements: how many windows their judge planned to judge before judging the first."""

REQUIRED: Final = ("movie", "start_s", "end_s", "annotator")
"""Columns that no decision leaves empty."""

REQUIRED_OF_KIND: Final = {
    "judgement": (SEEN_SCORE,),
    "passage": (SEEN_SCORE,),
    "note": ("note",),
    "agreed": (SEEN_SCORE, "level", PARENTS),
}
"""Kind of decision -> further columns that it does not leave empty."""

_TWO_IDS_OR_MORE = re.compile(f"{ID}(;{ID})+")

DEFAULT_PLANNED: Final = 40
"""Windows of a film that a person is asked to judge blindly, unless they choose another number."""

DEFAULT_CODEBOOK: Final = BUILTIN[0]
"""Codebook of judgements that name none."""

SHORTEST_S: Final = 0.1
"""Minimum length in seconds of a passage that a person marks: the shortest shots are about as long."""

END_SLACK_S: Final = 1.0
"""Seconds by which a span may end after the film: players round the end."""

SEED_OF_DESK: Final = 0
"""Seed of the draw of the windows that are judged blindly at the desk."""

Cells = dict[str, str]
"""Column of a decision -> its cell, as a line of the ledger holds them."""


def now() -> str:
    """Return the time in UTC, to the second, as ISO 8601 writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def name_of(text: str) -> str:
    """Return a person's name without blanks around it, and with single blanks between its words."""
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
        Draws by which windows of the film were judged before, at most one of each method of sampling. Judging
        goes on by them even if windows have another content now.
    """

    film: Timeline
    codebook: Codebook
    recorded: tuple[Draw, ...] = ()

    @cached_property
    def content(self) -> tuple[float, ...]:
        """The content of each of the film's windows today: its seconds that can be judged."""
        return tuple(cells_of(self.film).content_s.tolist())

    @cached_property
    def unread_notices(self) -> tuple[str, ...]:
        """A notice of how many windows are never drawn today, as they could not be read; empty if none."""
        return tuple(unread_notices([self.film]))

    @cached_property
    def draws(self) -> dict[Sampling, Draw]:
        """Method of sampling -> the film's draw by it: the recorded one, else one of today's windows."""
        draws = {}
        for sampling in (SUCCESSIVE, SEQUENTIAL_POISSON):
            draws[sampling] = Draw(
                sampling=sampling, seed=SEED_OF_DESK, movie=self.film.movie, content=self.content
            )
        for draw in self.recorded:
            draws[draw.sampling] = draw
        return draws

    def is_of_film(self, draw: Draw) -> bool:
        """Whether a draw that a header of the ledger states can be one of this film's windows.

        It is checked because anybody may have written the header. No window's content is longer than the
        window itself.
        """
        if draw.movie != self.film.movie or draw.seed != SEED_OF_DESK:
            return False
        if len(draw.content) != len(self.content):
            return False
        window_lengths = np.diff(cells_of(self.film).spans)[:, 0]  # [W windows], in seconds
        return bool((np.array(draw.content) <= window_lengths + SLACK_S).all())

    def n_changed(self, sampling: Sampling) -> int:
        """Count the windows that have another content now than when they were drawn."""
        content_when_drawn = np.array(self.draws[sampling].content)
        return int((np.abs(content_when_drawn - self.content) > SLACK_S).sum())

    @cached_property
    def windows(self) -> dict[str, list[tuple[float, float]]]:
        """Method of sampling -> start and end in seconds of each window, in the order of its draw."""
        spans = [(start_s, end_s) for start_s, end_s in cells_of(self.film).spans.tolist()]
        windows: dict[str, list[tuple[float, float]]] = {}
        for sampling, draw in self.draws.items():
            windows[sampling] = [spans[window] for window in draw.order()]
        return windows

    def place_of(self, clip: Clip) -> int:
        """Return the place, from 1 on, in its draw of a window that was judged blindly.

        0 if the clip is no blind judgement, or not of the window at the place that it names.
        """
        has_seed_of_desk = named_seed(clip) in {None, SEED_OF_DESK}  # None: it states no seed
        if not is_blind(clip) or not has_seed_of_desk:
            return 0
        windows = self.windows.get(named_sampling(clip), [])
        place = place_in(clip)
        if not 0 < place <= len(windows):
            return 0
        start_s, end_s = windows[place - 1]
        starts_there = abs((clip.start_s or 0.0) - start_s) <= SLACK_S
        ends_there = abs((clip.end_s or 0.0) - end_s) <= SLACK_S
        return place if starts_there and ends_there else 0

    def verdict(self, level: str, concepts: Iterable[str] = ()) -> str:
        """Return whether a person's judgement agrees with a model that marks the span as positive.

        As in rates, every judgement that is not positive is negative, whatever levels the model was trained
        on.

        Returns
        -------
        str
            `agree` for a positive judgement, `disagree` for a negative one, and `unsure` for a level that no
            task of the codebook has.
        """
        judged = Clip("judgement", self.film.movie, level=level, concepts=tuple(concepts))
        is_positive = positive_of(self.film.model()).is_positive(judged, self.codebook.labels)
        if is_positive is None:
            return "unsure"
        return "agree" if is_positive else "disagree"

    def row_of(
        self,
        kind: str,
        start_s: float,
        end_s: float,
        annotator: str,
        *,
        draw: Draw,
        level: str = "",
        concepts: Sequence[str] = (),
        note: str = "",
        origin: str = "own",
        place: int = 0,
        n_planned: int = 0,
        parents: Sequence[str] = (),
        is_blind: bool = False,
    ) -> Cells:
        """Write a decision as a row of the ledger, without empty cells.

        Parameters as of `Decisions.keep`. A judgement with a place in `draw` is always blind. For other
        decisions `is_blind` says whether the model's score was out of sight.
        """
        is_drawn = kind == "judgement" and place != 0
        # Cells of all decisions.
        row = {"movie": self.film.movie, "start_s": f"{start_s:.10g}", "end_s": f"{end_s:.10g}"}
        row["annotator"] = name_of(annotator)
        row["note"] = " ".join(note.split())
        # Cells of a note, and of decisions that have a level.
        if kind == "note":
            row["written_at"] = now()
        else:
            row["judged_at"] = now()
            row["level"] = self.codebook.level_named(level)
            row["concepts"] = ";".join(concepts)
            row[SEEN_SCORE] = "0" if is_drawn or is_blind else "1"
        # Cells that only decisions of one kind have.
        if kind == "passage":
            row["origin"] = origin
        elif kind == "agreed":
            row[PARENTS] = ";".join(parents)
        elif kind == "judgement":
            if is_drawn:
                row |= drawn_at(draw, place)
                row[PLANNED] = str(n_planned or "")
            else:
                row["judgement"] = self.verdict(row["level"], concepts)
            if self.codebook.name != DEFAULT_CODEBOOK:
                row[CODEBOOK_COLUMN] = self.codebook.name
        return {column: cell for column, cell in row.items() if cell}

    def refuse(self, kind: str, row: Cells, start_s: float, end_s: float) -> None:
        """Refuse mistakes that people make at the desk, in messages that the desk can translate.

        Raises
        ------
        FilmError
            A text holds control characters, or the span ends after the film or is too short.
        """
        for text in (row.get("annotator", ""), row.get("note", "")):
            problem = unsuitable(text)
            if problem:
                # The problem names the character by its code point, such as U+202E.
                code_points = re.findall(r"U\+\w+", problem)
                raise FilmError(message("unsuitable", text=text, sign=code_points[0]))
        film_s = self.film.record.duration_s
        if end_s > film_s + END_SLACK_S:
            raise FilmError(message("behind", start=start_s, end=end_s, whole=film_s))
        is_long_enough = end_s - start_s >= SHORTEST_S  # False if one of them is NaN
        if kind == "passage" and not is_long_enough:
            raise FilmError(message("short", start=start_s, end=end_s, least=SHORTEST_S))

    def clip_of_new(self, kind: str, row: Cells, path: Path) -> Clip:
        """Make a clip of a decision that is not yet in the ledger; `path` is the file that it comes from.

        Raises
        ------
        FilmError
            The decision is not valid; the message is its first problem.
        """
        problems = Problems(path)
        clip = self.checked(kind, row, "new", problems, line=0)
        if clip is None:
            # "line 0, column level: ...": the decision is in no line of a file.
            without_line = problems.messages[0].partition(", ")[2]
            raise FilmError(without_line)
        return clip

    def checked(
        self, kind: str, row: Mapping[str, str], clip_id: str, problems: Problems, line: int
    ) -> Clip | None:
        """Make a clip of a decision; if it is not valid, add what is wrong to `problems` and return None.

        Parameters
        ----------
        kind : str
        row : mapping
            Column -> cell.
        clip_id : str
            Id of the clip.
        problems : Problems
        line : int
            Number of the row's line in its file, for the messages.
        """
        empty_columns = [column for column in (*REQUIRED, *REQUIRED_OF_KIND[kind]) if not row.get(column)]
        for column in empty_columns:
            problems.add(line, "is empty", column)
        settles_nothing = kind == "agreed" and not _TWO_IDS_OR_MORE.fullmatch(row.get(PARENTS, ""))
        if settles_nothing:
            problems.add(line, "expected the ids of two decisions or more", PARENTS)
        if empty_columns or settles_nothing:
            return None
        cells = {**row, "clip_id": clip_id}
        # `spelled`: levels and concepts may be spelled in other ways than in the codebook.
        clip = clip_of(Row(line, cells), problems, self.codebook, spelled=True)
        if clip is None:
            return None
        film_s = self.film.record.duration_s
        if clip.movie == self.film.movie and (clip.end_s or 0.0) > film_s + END_SLACK_S:
            problems.add(line, f"{row['end_s']} s is behind the end of a film of {film_s:g} s", "end_s")
            return None
        return clip


def drawn_at(draw: Draw, place: int) -> Cells:
    """Write the cells that say how the window at a place of a draw was drawn.

    If the draw has no such place, they hold only the place, which is refused later (`FilmRules.place_of`).
    """
    order = draw.order()
    if not 0 < place <= len(order):
        return {PLACE: str(place), SEEN_SCORE: "0"}
    return extras_of(draw, order[place - 1], place)


@dataclass(frozen=True, slots=True)
class Reading:
    """A line of the ledger as the rules of a film read it.

    Attributes
    ----------
    line : Line
    clip : Clip or None
        The decision; None if it is not valid.
    place : int
        Place in the draw, from 1 on, of a window of this film that was judged blindly; 0 for all others.
    problems : tuple of str
        What is wrong with the line, as messages.
    """

    line: Line
    clip: Clip | None
    place: int
    problems: tuple[str, ...]


def read_line(rules: FilmRules, line: Line, path: Path, number: int) -> Reading:
    """Read a decision of a ledger, which anybody may have written, from line `number` of the file `path`."""
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
