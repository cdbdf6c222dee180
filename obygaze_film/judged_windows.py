"""Gather the blind judgements of a film as one object: what each judge says of each window that was drawn."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
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
from obygaze_film.draws import LAW, SEED, SEQUENTIAL_POISSON, SUCCESSIVE, Sampling
from obygaze_film.errors import FilmError
from obygaze_film.notes import Message, counted_message, judge_name, message
from obygaze_film.positive import Positive, positive_of
from obygaze_film.timeline import Timeline

LEAST_SURE: Final = 10
"""Minimum number of windows of which judges are sure: for a rate (unless no window of the film is left to
judge), and for a kappa of two judges."""

JUDGED_AT: Final = "judged_at"
"""Column of judgements: when they were made, for people (ISO 8601, in UTC)."""

ByCell = dict[int, dict[str, bool]]
"""Cell -> judge -> whether they call it positive: the cells in the order of the draw, sure judges alone."""


class WindowCounts(NamedTuple):
    """How many windows of a film were judged by one judge, or by every judge of a panel.

    Attributes
    ----------
    judged : int
        Windows that the judge (every judge of a panel) judged, sure or not.
    sure : int
        Those of them of which the judge (every judge of a panel) was sure: a share is estimated from these.
    left : int
        Windows with content that are left to judge.
    least : int
        The smallest `sure` that gives a share, unless none is left to judge.
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
    """Cells of a film that one judge, or several, judged blindly: the first ones of the draw, without a gap.

    Attributes
    ----------
    cells : Cells
        All cells of the film; judged ones have the content that they had when they were drawn.
    by_cell : dict
        Judged cell -> judge -> whether they call it positive, of the judges who were sure.
    unsure : tuple of int
        Cells that were judged too, and of which nobody (of a panel: not everybody) was sure.
    sampling : str
        By which the cells were drawn.
    """

    cells: Cells
    by_cell: ByCell
    unsure: tuple[int, ...]
    sampling: Sampling

    @property
    def sure_cells(self) -> Cells:
        """The cells to which a rate refers: all but those of which nobody was sure."""
        return self.cells.without(self.unsure)

    @property
    def counts(self) -> WindowCounts:
        """How many were judged, judged surely, and are left."""
        with_content = np.flatnonzero(self.cells.content_s > 0).tolist()
        judged = {*self.by_cell, *self.unsure}
        n_left = sum(cell not in judged for cell in with_content)
        return WindowCounts(len(judged), len(self.by_cell), n_left, least_judged(self.cells))

    @property
    def is_census(self) -> bool:
        """Whether all windows that a rate refers to were judged: then it is counted, not estimated."""
        n_to_judge = int((self.sure_cells.content_s > 0).sum())
        return len(self.by_cell) > 0 and len(self.by_cell) == n_to_judge

    @property
    def is_enough(self) -> bool:
        """Whether a rate comes from them: they were sure of the least number, or no window is left."""
        return self.is_census or self.counts.sure >= self.counts.least

    @property
    def denominator(self) -> int:
        """The least common multiple of the numbers of judges who were sure of each cell.

        Every cell's share of positive calls is then a whole multiple of 1 / `denominator`: of cells with 2
        and with 3 sure judges it is 6, and shares are sixths.
        """
        return math.lcm(*{len(calls) for calls in self.by_cell.values()})


Calls = Mapping[int, bool | None]
"""Place in the draw -> whether a judge calls the window there positive; None where they are not sure."""


@dataclass(frozen=True, eq=False, slots=True)
class JudgedFilm:
    """The blind judgements of a film: what each judge says of each window that was drawn.

    A number is made from the windows `of` one judge, of the `panel` (windows that all of them judged), or of
    all `together` (windows that anybody judged), where the estimate accounts for who judged.

    Attributes
    ----------
    movie : str
    cells : Cells
        With the content that judged cells had when they were drawn.
    sampling : str
        By which the windows were drawn.
    cell_at : dict
        Place in the draw -> cell.
    asked : dict
        Judge -> places of the windows that they judged, also of those that are no cells of the film any more.
    calls : dict
        Judge -> place in the draw -> whether they call the window positive; None where they are not sure.
    notices : tuple of str
        What was left out, and why.
    """

    movie: str
    cells: Cells
    sampling: Sampling
    cell_at: Mapping[int, int]
    asked: Mapping[str, frozenset[int]]
    calls: Mapping[str, Calls]
    notices: tuple[str, ...]

    @property
    def judges(self) -> tuple[str, ...]:
        """Names of all who judged."""
        return tuple(self.calls)

    @property
    def has_unsure(self) -> bool:
        """Whether one of the judges was not sure of a window, though another may have been."""
        return any(call is None for calls in self.calls.values() for call in calls.values())

    def of(self, judge: str) -> JudgedWindows:
        """Return what one judge judged, up to the first window of the draw that they did not."""
        return self._windows(_places_before_a_gap(self.asked[judge]), [judge])

    def panel(self) -> JudgedWindows:
        """Return the windows that all judges judged; those of which not all were sure are `unsure`."""
        judged_by_all = frozenset.intersection(*self.asked.values()) if self.asked else frozenset()
        windows = self._windows(_places_before_a_gap(judged_by_all), self.judges)
        by_cell = {}
        unsure = [*windows.unsure]
        for cell, calls in windows.by_cell.items():
            if len(calls) == len(self.judges):
                by_cell[cell] = calls
            else:
                unsure.append(cell)
        return replace(windows, by_cell=by_cell, unsure=tuple(unsure))

    def together(self) -> JudgedWindows:
        """Return the windows that anybody judged, up to the first of the draw that nobody did."""
        judged_by_any = frozenset[int]().union(*self.asked.values())
        return self._windows(_places_before_a_gap(judged_by_any), self.judges)

    def gaps(self, *, by_any: bool = False) -> list[str]:
        """Say of each judge how many judgements do not count: those after the first window not judged.

        It is the first that the judge did not judge, as in `of`; with `by_any` the first that nobody judged,
        as in `together`.
        """
        notices: list[str] = []
        judged_by_any = frozenset[int]().union(*self.asked.values())
        for judge, places in self.asked.items():
            n_before_gap = len(_places_before_a_gap(judged_by_any if by_any else places))
            n_left_out = sum(place > n_before_gap for place in places)
            if n_left_out:
                why = message("why_gap", column=PLACE, gap=n_before_gap + 1)
                notice = left_out_message(n_left_out, why)
                if len(self.judges) > 1:
                    notice = message("note_of", movie=judge, notice=notice)
                notices.append(notice)
        return notices

    def _windows(self, places: Iterable[int], judges: Iterable[str]) -> JudgedWindows:
        """Gather what some judges say of the windows at some places of the draw.

        Left out are windows that none of them judged, and windows that are no cells of the film any more.
        """
        names = [*judges]
        by_cell: ByCell = {}
        unsure = []
        for place in places:
            cell = self.cell_at.get(place)
            calls = {name: self.calls[name][place] for name in names if place in self.calls[name]}
            if cell is None or not calls:
                continue
            sure_calls = {name: call for name, call in calls.items() if call is not None}
            if sure_calls:
                by_cell[cell] = sure_calls
            else:
                unsure.append(cell)
        return JudgedWindows(self.cells, by_cell, tuple(unsure), self.sampling)


def _places_before_a_gap(places: Collection[int]) -> list[int]:
    """List the places 1, 2, 3, ... of a draw up to the first that is missing: of {1, 2, 4}, [1, 2]."""
    first_missing = next(place for place in count(1) if place not in places)
    return [*range(1, first_missing)]


def least_judged(cells: Cells) -> int:
    """Return the least number of sure judgements for a rate: `LEAST_SURE`, or all windows if fewer."""
    n_with_content = int((cells.content_s > 0).sum())
    return min(LEAST_SURE, n_with_content)


def needed_windows(judged: int, left: int, least: int) -> Message:
    """Say how many windows must be judged for a share: `least` of them surely, or else all of the film.

    Parameters
    ----------
    judged, left, least : int
        As in `WindowCounts`; `left` is above 0.
    """
    n_windows = judged + left
    if n_windows > least:
        return message("windows_needed", least=least, all=n_windows)
    key = "windows_needed_all" if judged else "windows_needed_none"
    return counted_message(key, left, all=n_windows)


def votes(by_cell: ByCell) -> tuple[NDArray[np.int64], Floats, dict[str, Floats]]:
    """Turn the calls of n judged cells into arrays, in the order of the draw.

    Returns
    -------
    judged : ndarray of int, shape [n]
        The cells.
    positive : ndarray, shape [n]
        Share of a cell's sure judges who call it positive.
    shares : dict of str to ndarray, shape [n]
        Judge -> their share of a cell's judgements: 1 / the number of its sure judges, 0 if they are none of
        them.
    """
    judged = np.array(list(by_cell), dtype=np.int64)
    positive = np.array([np.mean(list(calls.values())) for calls in by_cell.values()])
    n_judges = np.array([len(calls) for calls in by_cell.values()])
    shares: dict[str, Floats] = {}
    for name in sorted(set().union(*by_cell.values())):
        has_called = np.array([name in calls for calls in by_cell.values()])
        shares[name] = has_called / n_judges
    return judged, positive, shares


def judged_at(clip: Clip) -> float:
    """Return when a clip was judged, in seconds; minus infinity if its row does not say it as ISO 8601 does.

    A time without a zone is taken as UTC, which the desk writes.
    """
    try:
        moment = datetime.fromisoformat(clip.extras.get(JUDGED_AT, "").strip())
    except ValueError:
        return -math.inf
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def is_blind(clip: Clip) -> bool:
    """Whether a clip is a window that was drawn at random and shown without its score."""
    return clip.extras.get(SEEN_SCORE) == "0" and place_in(clip) > 0


def named_sampling(clip: Clip) -> str:
    """Return the method of sampling that a window names; `SEQUENTIAL_POISSON` if it names none."""
    return clip.extras.get(LAW, "").strip().lower() or SEQUENTIAL_POISSON


def named_seed(clip: Clip) -> int | None:
    """Return the seed that a window names; None if it names no whole number from 0 on.

    A spreadsheet may have written 7 as 7.0 or 7,0.
    """
    number = number_of(clip.extras.get(SEED, "").strip().replace(",", "."))  # NaN if it is no number
    return int(number) if number.is_integer() and number >= 0 else None


def sampling_of(clips: Iterable[Clip]) -> Sampling:
    """Find the method of sampling by which a film's windows were drawn.

    Earlier versions drew by sequential Poisson sampling and named no method. A film of which any window was
    judged blindly by that method keeps it, so that all of its windows are of one draw.
    """
    names = {named_sampling(clip) for clip in clips if is_blind(clip)}
    return SEQUENTIAL_POISSON if SEQUENTIAL_POISSON in names else SUCCESSIVE


def content_at_draw(clip: Clip) -> float | None:
    """Read the seconds of content that a window had when it was drawn; None if its row does not say.

    NaN if the row says what is impossible: no number above 0, or more seconds than the window has.
    """
    text = clip.extras.get(CONTENT_S, "").strip()
    if not text:
        return None
    seconds = number_of(text.replace(",", "."))  # NaN if it is no number
    window_s = clip.duration_s or 0.0
    return seconds if 0 < seconds <= window_s + SLACK_S else math.nan


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
    unknown_level = positive.unknown_to(judgements.codebook)
    if unknown_level:
        books = {"codebook": judgements.codebook.name, "expected": model.codebook}
        raise FilmError(message("rate_level", model=model.key, level=unknown_level, **books))
    sieve = _Sieve(judgements.spelled_as([timeline.movie]))
    if model.is_trained_on:
        # It may have learnt these very judgements, and so be right in judged windows more often than in the
        # others. One probability for all windows corrects nothing: the judgements alone count.
        mean = np.average(cells.p, weights=np.maximum(cells.content_s, 1e-9))  # weights must not all be 0
        cells = replace(cells, p=np.full_like(cells.p, mean))
        sieve.notices.append(message("note_trained"))
    sampling = _keep_drawn(sieve, timeline.movie)
    _leave_out_who_names_no_concept(sieve, positive)
    judged = judgements_of(judgements.with_clips(sieve.clips))
    judged.refuse_two_definitions()
    places_of: dict[str, set[int]] = {name: set() for name in judged.judges}
    for judgement in judged.every:
        places_of[judgement.judge].add(judgement.place)
    _keep_windows(sieve, cells)
    clip_of_cell = _first_clips(sieve.clips, cells)
    content, n_changed = _content_when_drawn(cells, clip_of_cell)
    calls = _calls_by_judge(sieve, judged.judges, judgements.codebook.labels, positive)
    if n_changed:
        sieve.notices.append(message("note_content", n=n_changed, s="" if n_changed == 1 else "s"))
    if sieve.clips and sampling == SEQUENTIAL_POISSON and not _is_alike(cells.content_s):
        sieve.notices.append(message("note_law"))
    return JudgedFilm(
        movie=timeline.movie,
        cells=replace(cells, content_s=content, unread_s=_unread_when_drawn(cells, content)),
        sampling=sampling,
        cell_at={place_in(clip): cell for cell, clip in clip_of_cell.items()},
        asked={judge: frozenset(places) for judge, places in places_of.items()},
        calls=calls,
        notices=tuple(sieve.notices),
    )


class _Sieve:
    """Judgements from which those that do not count are taken out, step by step.

    Attributes
    ----------
    clips : list of Clip
        The judgements that are left.
    notices : list of str
        How many were taken out at each step, and why.
    """

    def __init__(self, clips: Iterable[Clip]) -> None:
        self.clips = list(clips)
        self.notices: list[str] = []

    def keep(self, counts: Callable[[Clip], bool], why: str) -> None:
        """Keep the clips for which `counts` is true; note how many others there were, and why not they."""
        clips = [clip for clip in self.clips if counts(clip)]
        self.note_left_out(len(self.clips) - len(clips), why)
        self.clips = clips

    def note_left_out(self, n: int, why: str) -> None:
        """Note how many judgements are left out, and why; nothing if there are none."""
        if n:
            self.notices.append(left_out_message(n, why))


def left_out_message(n: int, why: str) -> Message:
    """Say how many judgements are left out, and why; a reason may have words of its own for one of them."""
    if isinstance(why, Message):
        why = counted_message(why.key, n, **why.values)
    return message("note_left_out", n=n, s="" if n == 1 else "s", why=why)


def _keep_drawn(sieve: _Sieve, movie: str) -> Sampling:
    """Keep the blind judgements of a film's drawn windows; return the method by which they were drawn."""
    movies = dict.fromkeys(clip.movie for clip in sieve.clips)
    other_movies = [name for name in movies if name != movie]
    if movie not in movies:  # else no other name is a misspelling of this film's
        other_movies = [f"{name}{name_hint(name, [movie])}" for name in other_movies]
    sieve.keep(lambda clip: clip.movie == movie, message("why_film", names=first_few(other_movies, 3)))
    sieve.keep(lambda clip: clip.level is not None, message("why_level"))
    sieve.keep(lambda clip: clip.extras.get(SEEN_SCORE) == "0", message("why_seen"))
    sieve.keep(lambda clip: place_in(clip) > 0, message("why_place", column=PLACE))
    sampling = sampling_of(sieve.clips)
    sieve.keep(lambda clip: named_sampling(clip) == sampling, message("why_law", law=sampling))
    _refuse_two_draws(movie, sieve.clips)
    return sampling


def _leave_out_who_names_no_concept(sieve: _Sieve, positive: Positive) -> None:
    """Leave out judges who name no concept in any window, if what is positive is a concept.

    Whoever judges levels alone does not say where a concept is absent.
    """
    clips_of: dict[str, list[Clip]] = {}
    for clip in sieve.clips:
        clips_of.setdefault(clip.annotator, []).append(clip)
    for judge, clips in clips_of.items():
        if positive.never_named(clips):
            why = message("why_no_concept", who=judge_name(judge), concept=positive.text)
            sieve.keep(partial(_is_by_another, judge), why)


def _is_by_another(judge: str, clip: Clip) -> bool:
    """Whether a clip was judged by anybody else than this judge."""
    return clip.annotator != judge


def _refuse_two_draws(movie: str, clips: Iterable[Clip]) -> None:
    """Refuse judgements of two draws: of two seeds, or with two windows at one place."""
    seeds: set[int] = set()
    span_at: dict[int, tuple[float | None, float | None]] = {}
    for clip in clips:
        place = place_in(clip)
        span = (clip.start_s, clip.end_s)
        seed = named_seed(clip)
        if seed is not None:
            seeds.add(seed)
        has_another_span = place in span_at and span_at[place] != span
        if has_another_span or len(seeds) > 1:
            raise FilmError(message("rate_seeds", movie=movie, clip=clip.clip_id, column=PLACE, place=place))
        span_at[place] = span


def _keep_windows(sieve: _Sieve, cells: Cells) -> None:
    """Keep the judgements of the film's cells with content, and put them in the order of the draw."""
    cell_at = cache(cells.index_of)  # many judge the same windows

    def is_window(clip: Clip) -> bool:
        """Whether a clip is a cell that has content now, or names the content that it had when drawn."""
        if clip.start_s is None or clip.end_s is None:
            return False
        cell = cell_at(clip.start_s, clip.end_s)
        return cell is not None and (content_at_draw(clip) is not None or cells.content_s[cell] > 0)

    def has_possible_content(clip: Clip) -> bool:
        seconds = content_at_draw(clip)
        return seconds is None or not math.isnan(seconds)

    cell_s = cells.spans[0, 1]  # the first cell begins at 0
    sieve.keep(is_window, message("why_grid", seconds=f"{cell_s:g}"))
    sieve.keep(has_possible_content, message("why_content", column=CONTENT_S))
    sieve.clips.sort(key=place_in)


def _first_clips(clips: Iterable[Clip], cells: Cells) -> dict[int, Clip]:
    """Return the first clip of each cell that has any, in the order of the clips."""
    cell_at = cache(cells.index_of)  # many judge the same windows
    clip_of_cell: dict[int, Clip] = {}
    for clip in clips:
        cell = cell_at(clip.start_s, clip.end_s)
        if cell is not None:
            clip_of_cell.setdefault(cell, clip)
    return clip_of_cell


def _content_when_drawn(cells: Cells, clip_of_cell: Mapping[int, Clip]) -> tuple[Floats, int]:
    """Return the content [C] with that of judged cells as it was when drawn, and how many have changed."""
    content = cells.content_s.copy()
    n_changed = 0
    for cell, clip in clip_of_cell.items():
        seconds = content_at_draw(clip)
        if seconds is not None and abs(seconds - content[cell]) > SLACK_S:
            content[cell] = seconds
            n_changed += 1
    return content, n_changed


def _unread_when_drawn(cells: Cells, content: Floats) -> float:
    """Return the seconds that could not be read, without those that are content [C] as they were judged."""
    return max(cells.unread_s - float(np.maximum(content - cells.content_s, 0.0).sum()), 0.0)


def _calls_by_judge(
    sieve: _Sieve, judges: Iterable[str], labels: Collection[str], positive: Positive
) -> dict[str, dict[int, bool | None]]:
    """Gather what each judge says of the window at each place of the draw.

    Judgements that are not sure, and windows that a judge calls both ways, are noted in the sieve.

    A judge may have several rows for one window: the latest in which they are sure counts. Which one is later
    says the column `judged_at`; of rows that do not say it, the later row is.

    Returns
    -------
    dict
        Judge -> place -> whether they call the window positive; None if they are sure in no row of it.
    """
    calls_by_judge: dict[str, dict[int, bool | None]] = {judge: {} for judge in judges}
    n_unsure = 0
    n_contradictions = 0
    for clip in sorted(sieve.clips, key=judged_at):
        calls = calls_by_judge[clip.annotator]
        place = place_in(clip)
        call = positive.is_positive(clip, labels)
        if call is None:
            n_unsure += 1
            calls.setdefault(place, None)  # an earlier sure call stays
            continue
        earlier_call = calls.get(place)
        if earlier_call is not None and earlier_call != call:
            n_contradictions += 1
        calls[place] = call
    sieve.note_left_out(n_unsure, message("why_unsure"))
    if n_contradictions:
        sieve.notices.append(counted_message("note_twice", n_contradictions, column=JUDGED_AT))
    return calls_by_judge


def _is_alike(content: Floats) -> bool:
    """Whether all cells that have content have equally many seconds of it."""
    seconds = content[content > 0]
    return len(seconds) == 0 or bool(np.ptp(seconds) <= SLACK_S)
