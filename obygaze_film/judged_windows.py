"""Gather the blind judgements of a film as one object: what each judge says of each window that was drawn."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest import (
    CONTENT_S,
    PLACE,
    SEEN_SCORE,
    Clip,
    Manifest,
    judgements_of,
    name_hint,
    place_in,
)
from obygaze_features.text import first_few, number_of
from obygaze_film.cells import Cells, Floats, cells_of
from obygaze_film.coverage import SLACK_S
from obygaze_film.draws import LAW, SEED, SEQUENTIAL_POISSON, SUCCESSIVE, Law
from obygaze_film.errors import FilmError
from obygaze_film.notes import Said, judge_name, said, said_counted
from obygaze_film.positive import Positive, positive_of
from obygaze_film.timeline import Timeline

LEAST: Final = 10
"""Minimum number of windows judged surely for an interval: of a rate, unless no window of the film is left to
judge, and of the agreement of two judges, which is of windows like these."""

ByCell = dict[int, dict[str, bool]]
"""For each judged cell, in the order of the draw, whether each annotator calls it positive."""


class WindowCounts(NamedTuple):
    """How many windows of a film one judge judged, or each of a panel, as every sentence counts them.

    Attributes
    ----------
    judged : int
        Windows that they judged, whether or not they were sure.
    sure : int
        Those of them of which they (each of a panel) were sure: a share is estimated from these.
    left : int
        Windows with content that are left to judge.
    least : int
        Windows of which they must be sure for a share, unless none is left to judge.
    """

    judged: int
    sure: int
    left: int
    least: int

    @property
    def are_all_sure(self) -> bool:
        """Whether they were sure of all that they judged."""
        return self.sure == self.judged


@dataclass(frozen=True, eq=False, slots=True)
class JudgedWindows:
    """Cells of a film that one judge, or several, judged blindly, as far as they make up a whole draw.

    Attributes
    ----------
    cells : Cells
        With the content that judged cells had when they were drawn.
    by_cell : dict
    unsure : tuple of int
        Cells that were judged too, and of which nobody (of a panel: not everybody) was sure.
    law : str
        By which the cells were drawn.
    """

    cells: Cells
    by_cell: ByCell
    unsure: tuple[int, ...]
    law: Law

    @property
    def sure_cells(self) -> Cells:
        """The cells to which a rate refers: all but those of which nobody was sure."""
        return self.cells.without(self.unsure)

    @property
    def counts(self) -> WindowCounts:
        """How many were judged, judged surely, and are left."""
        with_content = np.flatnonzero(self.cells.content > 0).tolist()
        judged = {*self.by_cell, *self.unsure}
        left = sum(cell not in judged for cell in with_content)
        return WindowCounts(len(judged), len(self.by_cell), left, least_judged(self.cells))

    @property
    def is_census(self) -> bool:
        """Whether all windows that a rate refers to were judged: then it is counted."""
        return 0 < len(self.by_cell) == int((self.sure_cells.content > 0).sum())

    @property
    def is_enough(self) -> bool:
        """Whether a rate comes from them: they were sure of the least number, or no window is left."""
        return self.is_census or self.counts.sure >= self.counts.least

    @property
    def common_judges(self) -> int:
        """The least common multiple of how many were sure of each cell.

        Every cell's share of positive calls is a multiple of 1 / it.
        """
        return math.lcm(*{len(calls) for calls in self.by_cell.values()})


Calls = Mapping[int, bool | None]
"""Place in the draw -> whether a judge calls the window there positive; None where they are not sure."""


@dataclass(frozen=True, eq=False, slots=True)
class JudgedFilm:
    """The blind judgements of a film: what each judge says of each window that was drawn.

    Whoever makes a number of them says whose it is: `of` one judge, of the `panel`, or of `together`, where
    a model accounts for who judged.

    Attributes
    ----------
    movie : str
    cells : Cells
        With the content that judged cells had when they were drawn.
    law : str
        By which the windows were drawn.
    cell_at : dict
        Place in the draw -> cell.
    asked : dict
        Judge -> places of the windows that they judged, whether or not these are cells of the film still.
    calls : dict
        Judge, by name -> place -> call.
    notices : tuple of str
        What was left out, and why.
    """

    movie: str
    cells: Cells
    law: Law
    cell_at: Mapping[int, int]
    asked: Mapping[str, frozenset[int]]
    calls: Mapping[str, Calls]
    notices: tuple[str, ...]

    @property
    def judges(self) -> tuple[str, ...]:
        """Names of all who judged."""
        return tuple(self.calls)

    def of(self, judge: str) -> JudgedWindows:
        """Return what one judge judged, up to the first window of the draw that they did not."""
        return self._windows(_places_before_a_gap(self.asked[judge]), [judge])

    def panel(self) -> JudgedWindows:
        """Return the windows that all judges judged, and were sure of."""
        common = frozenset.intersection(*self.asked.values()) if self.asked else frozenset()
        places = _places_before_a_gap(common)
        every = self._windows(places, self.judges)
        by_cell = {cell: calls for cell, calls in every.by_cell.items() if len(calls) == len(self.judges)}
        doubted = tuple(cell for cell in every.by_cell if cell not in by_cell)
        return replace(every, by_cell=by_cell, unsure=(*every.unsure, *doubted))

    def together(self) -> JudgedWindows:
        """Return the windows that anybody judged, up to the first of the draw that nobody did."""
        return self._windows(_places_before_a_gap(frozenset[int]().union(*self.asked.values())), self.judges)

    def gaps(self) -> list[str]:
        """Say which judgements are no part of their judge's number: those after a window not judged."""
        notices: list[str] = []
        for judge, places in self.asked.items():
            complete = _places_before_a_gap(places)
            n_lost = len(places) - len(complete)
            if n_lost:
                why = said("why_gap", column=PLACE, gap=len(complete) + 1)
                notice = said("note_left_out", n=n_lost, s="" if n_lost == 1 else "s", why=why)
                if len(self.judges) > 1:
                    notice = said("note_of", movie=judge, notice=notice)
                notices.append(notice)
        return notices

    def _windows(self, places: Iterable[int], judges: Iterable[str]) -> JudgedWindows:
        """Gather what some judges say of the windows at some places, if any of them judged the window."""
        names = [*judges]
        by_cell: ByCell = {}
        unsure = []
        for place in places:
            cell = self.cell_at.get(place)
            said_there = {name: self.calls[name][place] for name in names if place in self.calls[name]}
            sure = {name: call for name, call in said_there.items() if call is not None}
            if cell is None or not said_there:
                continue
            if sure:
                by_cell[cell] = sure
            else:
                unsure.append(cell)
        return JudgedWindows(self.cells, by_cell, tuple(unsure), self.law)


def _places_before_a_gap(places: Collection[int]) -> list[int]:
    """List the places of a draw from the first to the last before one that is missing."""
    gap = next(place for place in count(1) if place not in places)
    return [*range(1, gap)]


def least_judged(cells: Cells) -> int:
    """Return the minimum number of cells to judge surely: `LEAST`, or all with content if there are fewer."""
    return min(LEAST, int((cells.content > 0).sum()))


def needed_windows(judged: int, left: int, least: int) -> Said:
    """Say how many windows a share needs: so many judged surely, or all of the film.

    Parameters
    ----------
    judged, left, least : int
        As in `WindowCounts`; some are left.
    """
    n_windows = judged + left
    if n_windows > least:
        return said("windows_needed", least=least, all=n_windows)
    return said_counted("windows_needed_all" if judged else "windows_needed_none", left, all=n_windows)


def votes(by_cell: ByCell) -> tuple[NDArray[np.int64], Floats, dict[str, Floats]]:
    """Return the judged cells [n], of each the share of annotators who call it positive, and each's share.

    The cells are in the order of the draw.
    """
    judged = np.array(list(by_cell), dtype=np.int64)
    positive = np.array([np.mean(list(votes_of_cell.values())) for votes_of_cell in by_cell.values()])
    shares: dict[str, Floats] = {}
    for name in sorted(set().union(*by_cell.values())):
        n_judges = np.array([len(votes_of_cell) for votes_of_cell in by_cell.values()])
        has_voted = np.array([name in votes_of_cell for votes_of_cell in by_cell.values()])
        shares[name] = has_voted / n_judges
    return judged, positive, shares


def is_blind(clip: Clip) -> bool:
    """Whether a clip is a window that was drawn at random and shown without its score."""
    return clip.extras.get(SEEN_SCORE) == "0" and place_in(clip) > 0


def named_law(clip: Clip) -> str:
    """Return the law that a window names; windows of earlier versions name none."""
    return clip.extras.get(LAW, "").strip().lower() or SEQUENTIAL_POISSON


def named_seed(clip: Clip) -> int | None:
    """Return the seed that a window names, as programs write numbers; None if it names none."""
    number = number_of(clip.extras.get(SEED, "").strip().replace(",", "."))
    return int(number) if number.is_integer() and number >= 0 else None


def law_of(clips: Iterable[Clip]) -> Law:
    """Find the law by which a film's windows were drawn: a blind judgement that names none decides.

    Windows that name no law were drawn by sequential Poisson sampling, and their film goes on by it.
    """
    names = {named_law(clip) for clip in clips if is_blind(clip)}
    return SEQUENTIAL_POISSON if SEQUENTIAL_POISSON in names else SUCCESSIVE


def content_at_draw(clip: Clip) -> float | None:
    """Read the seconds of content that a window had when it was drawn; None if its row does not say.

    NaN if the row says what cannot be: no number above 0, or more than the window's length.
    """
    text = clip.extras.get(CONTENT_S, "").strip()
    if not text:
        return None
    seconds = number_of(text.replace(",", "."))
    return seconds if 0 < seconds <= (clip.duration_s or 0.0) + SLACK_S else math.nan


def judged_film(timeline: Timeline, judgements: Manifest, key: str | None = None) -> JudgedFilm:
    """Gather the blind judgements of a film's windows.

    Parameters
    ----------
    timeline : Timeline
    judgements : Manifest
        Clips of other films, without a level, made with the score in sight or not drawn are left out.
    key : str, optional
        Model, which says what is positive; by default the first with logits.

    Raises
    ------
    FilmError
        The judgements are of two draws, or of another codebook.
    ManifestError
        They were made under two definitions.
    """
    model = timeline.model(key)
    cells = cells_of(timeline, key)
    positive = positive_of(model)
    unknown = positive.unknown_to(judgements.codebook)
    if unknown:
        books = {"codebook": judgements.codebook.name, "expected": model.codebook}
        raise FilmError(said("rate_level", model=model.key, level=unknown, **books))
    sieve = _Sieve(judgements.spelled_as([timeline.movie]))
    if model.is_trained_on:  # perhaps on these judgements: it is right where they are, not elsewhere
        mean = np.average(cells.p, weights=np.maximum(cells.content, 1e-9))
        cells = replace(cells, p=np.full_like(cells.p, mean))
        sieve.notices.append(said("note_trained"))
    law = _keep_drawn(sieve, timeline.movie)
    _keep_who_names_concepts(sieve, positive)
    judged = judgements_of(judgements.with_clips(sieve.clips))
    judged.refuse_two_definitions()
    windows_of: dict[str, set[int]] = {name: set() for name in judged.judges}
    for judgement in judged.every:
        windows_of[judgement.judge].add(judgement.place)
    clip_of = _keep_windows(sieve, cells)
    content, n_changed = _content_when_drawn(cells, clip_of)
    calls = _calls(sieve, judged.judges, judgements.codebook.labels, positive)
    if n_changed:
        sieve.notices.append(said("note_content", n=n_changed, s="" if n_changed == 1 else "s"))
    if sieve.clips and law == SEQUENTIAL_POISSON and not _is_alike(cells.content):
        sieve.notices.append(said("note_law"))
    return JudgedFilm(
        movie=timeline.movie,
        cells=replace(cells, content=content),
        law=law,
        cell_at={place_in(clip): cell for cell, clip in clip_of.items()},
        asked={judge: frozenset(places) for judge, places in windows_of.items()},
        calls=calls,
        notices=tuple(sieve.notices),
    )


class _Sieve:
    """Keep the judgements that count, and say of the others why they do not."""

    def __init__(self, clips: Iterable[Clip]) -> None:
        self.clips = list(clips)
        self.notices: list[str] = []

    def keep(self, counts: Callable[[Clip], bool], why: str) -> None:
        """Leave out the clips that do not count."""
        clips = [clip for clip in self.clips if counts(clip)]
        self.tell(len(self.clips) - len(clips), why)
        self.clips = clips

    def tell(self, n_lost: int, why: str) -> None:
        """Say how many judgements are left out."""
        if n_lost:
            self.notices.append(said("note_left_out", n=n_lost, s="" if n_lost == 1 else "s", why=why))


def _keep_drawn(sieve: _Sieve, movie: str) -> Law:
    """Keep the judgements of a film's windows that were drawn and judged blindly."""
    movies = dict.fromkeys(clip.movie for clip in sieve.clips)
    other_movies = [f"{name}{name_hint(name, [movie])}" for name in movies if name != movie]
    sieve.keep(lambda clip: clip.movie == movie, f"{said('why_film')} ({first_few(other_movies, 3)})")
    sieve.keep(lambda clip: clip.level is not None, said("why_level"))
    sieve.keep(lambda clip: clip.extras.get(SEEN_SCORE) == "0", said("why_seen"))
    sieve.keep(lambda clip: place_in(clip) > 0, said("why_place", column=PLACE))
    law = law_of(sieve.clips)
    sieve.keep(lambda clip: named_law(clip) == law, said("why_law", law=law))
    _refuse_two_draws(movie, sieve.clips)
    return law


def _keep_who_names_concepts(sieve: _Sieve, positive: Positive) -> None:
    """Of a concept, leave out and name the judges who name none in any window.

    They do not say that it is absent.
    """
    clips_of: dict[str, list[Clip]] = {}
    for clip in sieve.clips:
        clips_of.setdefault(clip.annotator, []).append(clip)
    silent = [judge for judge, clips in clips_of.items() if positive.never_named(clips)]
    for judge in silent:
        why = said("why_no_concept", who=judge_name(judge), concept=positive.text)
        sieve.keep(partial(_is_not_by, judge), why)


def _is_not_by(judge: str, clip: Clip) -> bool:
    return clip.annotator != judge


def _refuse_two_draws(movie: str, clips: Iterable[Clip]) -> None:
    """Refuse judgements of two draws: of two seeds, or with two windows at one place."""
    seeds: set[int] = set()
    spans: dict[int, tuple[float | None, float | None]] = {}
    for clip in clips:
        place = place_in(clip)
        span = (clip.start_s, clip.end_s)
        seed = named_seed(clip)
        if seed is not None:
            seeds.add(seed)
        if spans.setdefault(place, span) != span or len(seeds) > 1:
            of = {"movie": movie, "clip": clip.clip_id}
            raise FilmError(said("rate_seeds", **of, column=PLACE, place=place))


def _keep_windows(sieve: _Sieve, cells: Cells) -> dict[int, Clip]:
    """Keep the judgements of the film's cells, in the order of the draw; return one of each cell."""
    seconds = f"{cells.spans[0, 1]:g}"
    find = cache(cells.at)  # many judge the same windows

    def cell_of(clip: Clip) -> int | None:
        if clip.start_s is None or clip.end_s is None:
            return None
        cell = find(clip.start_s, clip.end_s)
        has_content = cell is not None and (content_at_draw(clip) is not None or cells.content[cell] > 0)
        return cell if has_content else None

    sieve.keep(lambda clip: cell_of(clip) is not None, said("why_grid", seconds=seconds))
    sieve.keep(lambda clip: not math.isnan(content_at_draw(clip) or 0), said("why_content", column=CONTENT_S))
    sieve.clips.sort(key=place_in)
    clip_of_cell: dict[int, Clip] = {}
    for clip in sieve.clips:
        cell = cell_of(clip)
        if cell is not None:
            clip_of_cell.setdefault(cell, clip)
    return clip_of_cell


def _content_when_drawn(cells: Cells, clip_of_cell: Mapping[int, Clip]) -> tuple[Floats, int]:
    """Return the content [C] that judged cells had when drawn, and of how many it is another now."""
    content = cells.content.copy()
    n_changed = 0
    for cell, clip in clip_of_cell.items():
        seconds = content_at_draw(clip)
        if seconds is not None and abs(seconds - content[cell]) > SLACK_S:
            content[cell] = seconds
            n_changed += 1
    return content, n_changed


def _calls(
    sieve: _Sieve, judges: Iterable[str], labels: Collection[str], positive: Positive
) -> dict[str, dict[int, bool | None]]:
    """Gather what each judge says of each place of the draw; of two rows the later counts."""
    calls: dict[str, dict[int, bool | None]] = {judge: {} for judge in judges}
    n_twice = 0
    for clip in sieve.clips:
        calls_of_judge = calls[clip.annotator]
        place = place_in(clip)
        call = positive.calls(clip, labels)
        before = calls_of_judge.get(place)
        if before is not None and call is not None and before != call:
            n_twice += 1
        if call is not None or place not in calls_of_judge:  # who was sure once was sure
            calls_of_judge[place] = call
    sieve.tell(sum(positive.calls(clip, labels) is None for clip in sieve.clips), said("why_unsure"))
    if n_twice:
        sieve.notices.append(said_counted("note_twice", n_twice))
    return calls


def _is_alike(content: Floats) -> bool:
    """Whether all cells with content have as much of it."""
    seconds = content[content > 0]
    return len(seconds) == 0 or bool(np.ptp(seconds) <= SLACK_S)
