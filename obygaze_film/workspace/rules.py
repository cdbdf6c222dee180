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
from obygaze_film.judged_windows import is_blind, named_sampling, named_seed, was_score_hidden
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
        """The content of each of the film's windows today: how many of its seconds can be judged."""
        return tuple(cells_of(self.film).content_s.tolist())

    @cached_property
    def unread_notices(self) -> tuple[str, ...]:
        """A notice of how many windows could not be read, and so are never drawn; empty if there are none."""
        return tuple(unread_notices([self.film]))

    @cached_property
    def draws(self) -> dict[Sampling, Draw]:
        """Method of sampling -> the draw by it: the order in which the film's windows are judged.

        If a draw by the method is recorded, as judgements were made in its order, it is that one. Else it is
        the draw of the film's windows as they are today.
        """
        recorded = {draw.sampling: draw for draw in self.recorded}
        draws = {}
        for sampling in (SUCCESSIVE, SEQUENTIAL_POISSON):
            draw_of_today = Draw(
                sampling=sampling, seed=SEED_OF_DESK, movie=self.film.movie, content=self.content
            )
            draws[sampling] = recorded.get(sampling, draw_of_today)
        return draws

    def is_of_film(self, draw: Draw) -> bool:
        """Whether a draw recorded in a ledger can be a draw of this film's windows.

        Anybody may have written the ledger.
        """
        if draw.movie != self.film.movie or draw.seed != SEED_OF_DESK:
            return False
        if len(draw.content) != len(self.content):
            return False
        # The seconds of a window that can be judged are not more than the window has, up to rounding.
        starts, ends = cells_of(self.film).spans.T
        return bool((np.array(draw.content) <= ends - starts + SLACK_S).all())

    def n_changed(self, sampling: Sampling) -> int:
        """Count the windows that can be judged for more, or fewer, seconds now than when they were drawn.

        `sampling` is the method by which they were drawn.
        """
        content_when_drawn = np.array(self.draws[sampling].content)
        return int((np.abs(content_when_drawn - self.content) > SLACK_S).sum())

    @cached_property
    def windows(self) -> dict[str, list[tuple[float, float]]]:
        """Method of sampling -> start and end in seconds of each window, in the order of its draw."""
        spans = [(start_s, end_s) for start_s, end_s in cells_of(self.film).spans.tolist()]
        windows_by_method: dict[str, list[tuple[float, float]]] = {}
        for sampling, draw in self.draws.items():
            windows_by_method[sampling] = [spans[index] for index in draw.order()]
        return windows_by_method

    def is_about_film(self, clip: Clip) -> bool:
        """Whether a decision is about this film; those of another are neither shown nor exported."""
        return clip.movie == self.film.movie

    def place_of(self, clip: Clip) -> int:
        """Return the place of a blind judgement's window in its draw, from 1 on.

        0 if the clip is no blind judgement, or not of the window at the place that it names.
        """
        no_place = 0
        states_other_seed = named_seed(clip) not in {None, SEED_OF_DESK}  # None: it states no seed
        if not is_blind(clip) or states_other_seed:
            return no_place
        windows = self.windows.get(named_sampling(clip), [])
        place = place_in(clip)
        has_such_place = 0 < place <= len(windows)
        if not has_such_place:
            return no_place
        start_s, end_s = windows[place - 1]
        starts_there = abs((clip.start_s or 0.0) - start_s) <= SLACK_S
        ends_there = abs((clip.end_s or 0.0) - end_s) <= SLACK_S
        return place if starts_there and ends_there else no_place

    def verdict(self, level: str, concepts: Iterable[str] = ()) -> str:
        """Return whether a judgement agrees with a model that marks the span (`Positive.verdict_on`)."""
        judged = Clip("judgement", self.film.movie, level=level, concepts=tuple(concepts))
        return positive_of(self.film.model()).verdict_on(judged, self.codebook.labels)

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
        """Write a decision as a row of the ledger: column -> cell, without empty cells.

        Parameters
        ----------
        kind : str
            `judgement`, `passage`, `note` or `agreed`.
        start_s, end_s : float
            Ends of the span.
        annotator : str
            Who decides.
        draw : Draw
            The draw of the windows to judge blindly.
        level, concepts, note
            What is decided: a note has no level and no concepts.
        origin : str
            Of a passage: `own` if the person marked it, else the model's passage that it was made from.
        place : int
            Of a blind judgement: the place of its window in the draw, from 1 on. 0 for all others.
        n_planned : int
            Of a blind judgement: how many windows the person plans to judge; 0 if that is not stated.
        parents : sequence of str
            Of an agreed decision: the ids of the decisions that it settles.
        is_blind : bool
            Whether the model's score was hidden from who decided. A judgement with a place in the draw is
            always blind.
        """
        is_of_drawn_window = kind == "judgement" and place != 0
        row = {
            "movie": self.film.movie,
            "start_s": f"{start_s:.10g}",
            "end_s": f"{end_s:.10g}",
            "annotator": name_of(annotator),
            "note": " ".join(note.split()),  # single blanks between words
        }
        # A note has nothing else; all other kinds have a level.
        if kind == "note":
            row["written_at"] = now()
        else:
            saw_score = not (is_of_drawn_window or is_blind)
            row["judged_at"] = now()
            row["level"] = self.codebook.level_named(level)
            row["concepts"] = ";".join(concepts)
            row[SEEN_SCORE] = "1" if saw_score else "0"

        # Columns of one kind
        if kind == "passage":
            row["origin"] = origin
        if kind == "agreed":
            row[PARENTS] = ";".join(parents)
        if kind == "judgement":
            if is_of_drawn_window:
                row |= cells_of_drawn_window(draw, place)
                row[PLANNED] = str(n_planned or "")
            else:
                row["judgement"] = self.verdict(row["level"], concepts)
            if self.codebook.name != DEFAULT_CODEBOOK:
                row[CODEBOOK_COLUMN] = self.codebook.name
        return {column: cell for column, cell in row.items() if cell}

    def refuse_invalid(self, kind: str, row: Cells, start_s: float, end_s: float) -> None:
        """Raise an error for mistakes that people make at the desk, with a message that can be translated.

        Raises
        ------
        FilmError
            A text holds control characters, or the span ends after the film or is too short.
        """
        for text in (row.get("annotator", ""), row.get("note", "")):
            problem = unsuitable(text)
            if problem:
                # The problem names the character by its code point, such as U+202E. The message names it too.
                code_points = re.findall(r"U\+\w+", problem)
                raise FilmError(message("unsuitable", text=text, sign=code_points[0]))
        film_s = self.film.record.duration_s
        if end_s > film_s + END_SLACK_S:
            raise FilmError(message("behind", start=start_s, end=end_s, whole=film_s))
        is_long_enough = end_s - start_s >= SHORTEST_S  # False if one of them is NaN
        if kind == "passage" and not is_long_enough:
            raise FilmError(message("short", start=start_s, end=end_s, least=SHORTEST_S))

    def checked_clip(self, kind: str, row: Cells, path: Path) -> Clip:
        """Make a clip of a decision that is not yet in the ledger; `path` is the file that it comes from.

        Raises
        ------
        FilmError
            The decision is not valid; the message is its first problem.
        """
        problems = Problems(path)
        clip = self.checked(kind, row, "new", problems, line=0)
        if clip is None:
            # The decision is in no line of a file: "line 0, column level: ..." becomes "column level: ...".
            _, _, without_line = problems.messages[0].partition(", ")
            raise FilmError(without_line)
        return clip

    def checked(
        self, kind: str, row: Mapping[str, str], clip_id: str, problems: Problems, line: int
    ) -> Clip | None:
        """Make a clip of a decision; if it is not valid, add what is wrong to `problems` and return None.

        `row` is column -> cell, and `line` the number of the row's line in its file, for the messages.
        """
        # Are all columns filled?
        empty_columns = [column for column in (*REQUIRED, *REQUIRED_OF_KIND[kind]) if not row.get(column)]
        for column in empty_columns:
            problems.add(line, "is empty", column)
        # An agreed decision names those that it settles.
        has_two_parents = _TWO_IDS_OR_MORE.fullmatch(row.get(PARENTS, "")) is not None
        lacks_parents = kind == "agreed" and not has_two_parents
        if lacks_parents:
            problems.add(line, "expected the ids of two decisions or more", PARENTS)
        if empty_columns or lacks_parents:
            return None

        # Are their cells valid? Levels and concepts may be spelled unlike in the codebook (`spelled`).
        cells = {**row, "clip_id": clip_id}
        clip = clip_of(Row(line, cells), problems, self.codebook, spelled=True)
        if clip is None:
            return None

        # Is the span in the film?
        film_s = self.film.record.duration_s
        ends_after_film = (clip.end_s or 0.0) > film_s + END_SLACK_S
        if self.is_about_film(clip) and ends_after_film:
            problems.add(line, f"{row['end_s']} s is behind the end of a film of {film_s:g} s", "end_s")
            return None
        return clip


def cells_of_drawn_window(draw: Draw, place: int) -> Cells:
    """Write how the window at a place of a draw was drawn: column -> cell (`extras_of`).

    Places count from 1 on. A place that the draw does not have is written too: the decision is refused later,
    when its place is looked up (`FilmRules.place_of`).
    """
    order = draw.order()
    has_place = 0 < place <= len(order)
    if not has_place:
        return {PLACE: str(place), SEEN_SCORE: "0"}
    cell = order[place - 1]
    return extras_of(draw, cell, place)


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
    """Check a decision of a ledger, which anybody may have written, by the rules of a film.

    The result has the decision as a clip (None if it is not valid), the place in the draw of a blind
    judgement that counts (else 0), and messages on what is wrong.

    Parameters
    ----------
    rules : FilmRules
    line : Line
        The decision.
    path : Path
        Its file, for messages.
    number : int
        Of its line in the file, for messages.
    """
    problems = Problems(path)
    clip = rules.checked(line.kind, line.row, line.id, problems, number)
    place = 0
    if clip is not None:
        is_of_film = rules.is_about_film(clip)
        is_blind_judgement = line.kind == "judgement" and was_score_hidden(clip)
        if not is_of_film:
            problems.add(number, "of another film: it is not shown here", "movie")
        elif is_blind_judgement:
            # The place that it states, and that place if the window there is the judged one. 0: none.
            stated_place = place_in(clip)
            place = rules.place_of(clip)
            if stated_place == 0:
                problems.add(number, "no place in the draw: the judgement counts in no share", PLACE)
            elif place == 0:
                problems.add(number, "of another window of the draw: it does not count", PLACE)
    messages = tuple(f"{path}: {problem}" for problem in problems.messages)
    return Reading(line, clip, place, messages)
