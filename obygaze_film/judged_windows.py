"""Gather the blind judgements of a film: each judge's answer for each window that was drawn."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
    Judgements,
    Manifest,
    judgements_of,
    machines_of,
    name_hint,
    place_in,
)
from obygaze_features.text import counted, first_few, number_of
from obygaze_film.cells import Cells, Floats, cells_of
from obygaze_film.coverage import SLACK_S
from obygaze_film.draws import LAW, SEED, SEQUENTIAL_POISSON, SUCCESSIVE, Sampling, inclusion_chances
from obygaze_film.errors import FilmError
from obygaze_film.notes import Message, counted_message, judge_name, message
from obygaze_film.positive import Positive, positive_of
from obygaze_film.schema import ModelRecord
from obygaze_film.timeline import Timeline

MIN_SURE_WINDOWS: Final = 10
"""Minimum number of windows of which judges are sure: for a rate (unless no window of the film is left to
judge), and for a kappa of two judges."""

JUDGED_AT: Final = "judged_at"
"""Column of judgements: when they were made, for people (ISO 8601, in UTC)."""

MAX_CHANCE_OF_LABELS: Final = 0.0001
"""Labels depend on the draw if a smaller chance than this would leave so few judged windows without one.

So small, because a comparison asks it of each film: labels of a hundred films that miss windows by chance are
refused in one of a hundred comparisons."""

MIN_LABELLED: Final = 0.1
"""Part of a window's content below which labels miss it: rounded times of its neighbours reach into it."""

AnswersByCell = dict[int, dict[str, bool]]
"""Cell -> judge -> whether it is positive, of the judges who were sure; cells in the order of the draw."""


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
    after_gap : int
        Further windows that the judge (every judge of a panel) judged, after the first gap of the draw: they
        do not count, and are not in `judged`.
    """

    judged: int
    sure: int
    left: int
    least: int
    after_gap: int = 0

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
        Judged cell -> judge -> whether it is positive, of the judges who were sure.
    unsure : tuple of int
        Cells that were judged too, and of which nobody (of a panel: not everybody) was sure.
    sampling : str
        Method by which the cells were drawn.
    n_after_gap : int
        Further cells that they judged, after the first gap of the draw.
    """

    cells: Cells
    by_cell: AnswersByCell
    unsure: tuple[int, ...]
    sampling: Sampling
    n_after_gap: int = 0

    @property
    def sure_cells(self) -> Cells:
        """The film's cells, without the content of those in `unsure`, which a rate leaves out."""
        return self.cells.without(self.unsure)

    @property
    def counts(self) -> WindowCounts:
        """The numbers of windows that were judged, that judges were sure of, and that are left."""
        with_content = np.flatnonzero(self.cells.content_s > 0).tolist()
        judged = {*self.by_cell, *self.unsure}
        n_left = sum(cell not in judged for cell in with_content)
        return WindowCounts(
            judged=len(judged),
            sure=len(self.by_cell),
            left=n_left,
            least=least_sure(self.cells),
            after_gap=self.n_after_gap,
        )

    @property
    def is_census(self) -> bool:
        """Whether all windows that a rate refers to were judged: then it is counted, not estimated.

        A rate does not refer to windows of which nobody was sure (`sure_cells`).
        """
        n_windows = int((self.sure_cells.content_s > 0).sum())
        return len(self.by_cell) > 0 and len(self.by_cell) == n_windows

    @property
    def is_enough(self) -> bool:
        """Whether a rate can be given: judges were sure of enough windows, or no window is left to judge."""
        return self.is_census or self.counts.sure >= self.counts.least

    @property
    def denominator(self) -> int:
        """A common denominator of all cells' shares of positive answers.

        A cell that 2 judges answered has the share 0/2, 1/2 or 2/2, and one of 3 judges a number of thirds:
        all of these are numbers of sixths, and the denominator is 6. Judges count who were sure of the cell.
        """
        numbers_of_answers = {len(answers) for answers in self.by_cell.values()}
        return math.lcm(*numbers_of_answers)


Answers = Mapping[int, bool | None]
"""A judge's answers: place in the draw -> whether the window is positive; None where they are not sure."""


@dataclass(frozen=True, eq=False, slots=True)
class JudgedFilm:
    """The blind judgements of a film: each judge's answer for each window that was drawn.

    Rates are estimated from the windows `of` one judge, from those of the `panel` (all judges judged them),
    or from all `together` (any judge did), where the estimate accounts for who judged which window.

    Attributes
    ----------
    movie : str
    cells : Cells
        With the content that judged cells had when they were drawn.
    sampling : str
        Method by which the windows were drawn.
    cell_of_place : dict
        Place in the draw, from 1 on -> cell.
    judged_places : dict
        Judge -> places of the windows that they judged, also of those that have lost their content since.
    answers : dict
        Judge -> place in the draw -> whether the window is positive; None where the judge is not sure.
    notices : tuple of str
        What was left out, and why.
    """

    movie: str
    cells: Cells
    sampling: Sampling
    cell_of_place: Mapping[int, int]
    judged_places: Mapping[str, frozenset[int]]
    answers: Mapping[str, Answers]
    notices: tuple[str, ...]

    @property
    def judges(self) -> tuple[str, ...]:
        """Names of all who judged."""
        return tuple(self.answers)

    @property
    def has_unsure(self) -> bool:
        """Whether any judge was not sure of a window that counts `together`, before the first gap."""
        gap = _first_gap(self._places_judged_by_any())
        for answers in self.answers.values():
            if any(answer is None and place < gap for place, answer in answers.items()):
                return True
        return False

    def of(self, judge: str) -> JudgedWindows:
        """Return what one judge judged, up to the first window of the draw that they did not judge."""
        return self._windows_before_a_gap(self.judged_places[judge], [judge])

    def panel(self) -> JudgedWindows:
        """Return the windows that all judges judged, up to the first window that one of them did not judge.

        Windows of which not all judges were sure are `unsure`.
        """
        places_judged_by_all = frozenset[int]()
        if self.judged_places:
            places_judged_by_all = frozenset.intersection(*self.judged_places.values())
        # Of these windows, `by_cell` has the answers of the judges who were sure, and `unsure` the windows of
        # which nobody was. A panel counts a window only if all were sure: the others become unsure too.
        windows = self._windows_before_a_gap(places_judged_by_all, self.judges)
        by_cell = {}
        unsure = [*windows.unsure]
        for cell, sure_answers in windows.by_cell.items():
            all_are_sure = len(sure_answers) == len(self.judges)
            if all_are_sure:
                by_cell[cell] = sure_answers
            else:
                unsure.append(cell)
        return replace(windows, by_cell=by_cell, unsure=tuple(unsure))

    def together(self) -> JudgedWindows:
        """Return the windows that any judge judged, up to the first of the draw that nobody judged."""
        return self._windows_before_a_gap(self._places_judged_by_any(), self.judges)

    def notices_of_gaps(self, *, by_any: bool = False) -> list[str]:
        """Note for each judge how many judgements do not count, as they come after the first gap of the draw.

        The gap is the first window that this judge did not judge (see `of`); with `by_any`, the first window
        that no judge judged (see `together`).
        """
        places_of_any = self._places_judged_by_any()
        notices: list[str] = []
        for judge, places in self.judged_places.items():
            gap = _first_gap(places_of_any if by_any else places)
            n_left_out = sum(place > gap for place in places)
            if not n_left_out:
                continue
            notice = left_out_message(n_left_out, message("why_gap", column=PLACE, gap=gap))
            if len(self.judges) > 1:
                # The note begins with the name of what it is of, here the judge.
                notice = message("note_of", movie=judge, notice=notice)
            notices.append(notice)
        return notices

    def _places_judged_by_any(self) -> frozenset[int]:
        """Return the places of the draw that at least one judge judged."""
        return frozenset[int]().union(*self.judged_places.values())

    def _windows_before_a_gap(self, places: Collection[int], judges: Sequence[str]) -> JudgedWindows:
        """Gather the answers of some judges for the windows before the first gap, and count those after it.

        Parameters
        ----------
        places : collection of int
            Places of windows in the order of the draw, from 1 on.
        judges : sequence of str
        """
        gap = _first_gap(places)
        windows_before_gap = self._windows_at(range(1, gap), judges)
        windows_after_gap = self._windows_at([place for place in places if place > gap], judges)
        return replace(windows_before_gap, n_after_gap=windows_after_gap.counts.judged)

    def _windows_at(self, places: Iterable[int], judges: Sequence[str]) -> JudgedWindows:
        """Gather the answers of some judges for the windows at some places of the draw.

        Left out are windows that none of them judged, and windows that have lost their content since.
        """
        by_cell: AnswersByCell = {}
        unsure = []
        for place in places:
            cell = self.cell_of_place.get(place)
            if cell is None:  # the window has no content any more
                continue
            judges_here = [name for name in judges if place in self.answers[name]]
            if not judges_here:
                continue
            sure_answers = {}
            for name in judges_here:
                answer = self.answers[name][place]  # None: not sure
                if answer is not None:
                    sure_answers[name] = answer
            if sure_answers:
                by_cell[cell] = sure_answers
            else:
                unsure.append(cell)
        return JudgedWindows(self.cells, by_cell, tuple(unsure), self.sampling)


def refuse_labels_of_drawn_windows(labelled: Cells, windows: JudgedWindows, movie: str) -> None:
    """Refuse labels in place of a model's probabilities if only the windows that were drawn have them.

    A machine may have been asked about these alone. Its labels would look like a model that knows the whole
    film, and the interval would be far too narrow. Labels of all windows are right, and so are labels of some
    windows, such as every second one, if which ones has nothing to do with the draw.

    Parameters
    ----------
    labelled : Cells
        `counted_s` are the labelled seconds of each cell (`cells_by`).
    windows : JudgedWindows
        The film's cells, and which of them were judged, surely or not.
    movie : str
        The film, for the message.
    """
    content_s = windows.cells.content_s
    has_content = content_s > 0
    lacks_label = has_content & (labelled.counted_s < MIN_LABELLED * content_s)
    judged = [*windows.by_cell, *windows.unsure]  # cells of which a judge was sure, and the others
    n_windows = int(has_content.sum())
    n_unlabelled = int(lacks_label.sum())
    n_judged_unlabelled = int(lacks_label[judged].sum())

    # If labels do not depend on the draw, judged windows lack one about as often as others do. How probable
    # is it then that so few of them lack one? The chance of a window to be drawn rises with its content, so
    # that windows of a few seconds, which often lack labels, are seldom drawn.
    chances = inclusion_chances(content_s, len(judged), windows.sampling)
    chance_of_so_few = _chance_of_at_most(n_judged_unlabelled, lacks_label, chances, n_drawn=len(judged))
    depends_on_draw = chance_of_so_few < MAX_CHANCE_OF_LABELS
    if n_unlabelled and depends_on_draw:
        raise FilmError(
            f"film {movie}: the labels in place of the model's are of the windows that were drawn: "
            f"{n_judged_unlabelled} of {counted(len(judged), 'judged window')} and {n_unlabelled} of all "
            f"{n_windows} have none; label all windows, or leave out --labels"
        )


def _chance_of_at_most(n: int, is_marked: NDArray[np.bool_], chances: Floats, *, n_drawn: int) -> float:
    """Compute the chance that at most n of the windows drawn are marked ones; 1 if so many cannot be drawn.

    The windows are taken as drawn independently, on condition that `n_drawn` are drawn in all (conditional
    Poisson sampling: Hájek 1981). If all have the same chance, the distribution is the hypergeometric one.

    Parameters
    ----------
    n : int
    is_marked : ndarray of bool, shape [C]
    chances : ndarray, shape [C]
        Chance of each window to be drawn (`inclusion_chances`); 0 for those without content.
    n_drawn : int
    """
    of_marked = _distribution_of_number(chances[is_marked])
    of_others = _distribution_of_number(chances[~is_marked])
    chance_of_number = np.zeros(n_drawn + 1)  # of marked windows among those drawn, from 0 to all of them
    for n_marked in range(n_drawn + 1):
        n_others = n_drawn - n_marked
        if n_marked < len(of_marked) and n_others < len(of_others):
            chance_of_number[n_marked] = of_marked[n_marked] * of_others[n_others]
    chance_of_so_many_drawn = chance_of_number.sum()
    if not chance_of_so_many_drawn:
        return 1.0
    return float(chance_of_number[: n + 1].sum() / chance_of_so_many_drawn)


def _distribution_of_number(chances: Floats) -> Floats:
    """Compute the chances that 0, 1, ... C of C independent events happen, by the chance of each [C]."""
    distribution = np.ones(1)
    for chance in chances[chances > 0]:
        distribution = np.convolve(distribution, [1 - chance, chance])
    return distribution


def _first_gap(places: Collection[int]) -> int:
    """Return the first of the places 1, 2, 3, ... of a draw that is missing: 3 of {1, 2, 4}."""
    return next(place for place in count(1) if place not in places)


def least_sure(cells: Cells) -> int:
    """Return how many windows judges must be sure of for a rate: `MIN_SURE_WINDOWS`, or all if fewer."""
    n_with_content = int((cells.content_s > 0).sum())
    return min(MIN_SURE_WINDOWS, n_with_content)


def needed_windows(judged: int, left: int, minimum: int) -> Message:
    """Say how many windows must be judged for a share: `minimum` of them surely, or all if they are fewer.

    Parameters
    ----------
    judged, left : int
        Number of windows that were judged, surely or not, and of those that are left, at least 1.
    minimum : int
        How many must be judged surely, unless none is left.
    """
    n_windows = judged + left
    if n_windows > minimum:
        return message("windows_needed", least=minimum, all=n_windows)
    key = "windows_needed_all" if judged else "windows_needed_none"
    return counted_message(key, left, all=n_windows)


class Votes(NamedTuple):
    """The answers for n judged cells, as arrays in the order of the draw.

    Attributes
    ----------
    cells : ndarray of int, shape [n]
    positive_shares : ndarray, shape [n]
        Share of each cell's sure judges who answer that it is positive.
    judge_shares : dict of str to ndarray, shape [n]
        Judge -> their part of each cell's answers: of a cell with 3 sure judges, 1/3 for each of them and 0
        for any other judge.
    """

    cells: NDArray[np.int64]
    positive_shares: Floats
    judge_shares: dict[str, Floats]


def votes(by_cell: AnswersByCell) -> Votes:
    """Turn the answers for judged cells into arrays: cells, positive shares, and each judge's part.

    `by_cell` maps a cell to judge -> whether it is positive, of the judges who were sure.
    """
    cells = np.array(list(by_cell), dtype=np.int64)
    answers_of_cells = list(by_cell.values())  # of each cell, judge -> answer
    positive_shares = np.array([np.mean(list(answers.values())) for answers in answers_of_cells])

    n_judges = np.array([len(answers) for answers in answers_of_cells])
    judges = set().union(*answers_of_cells)
    judge_shares: dict[str, Floats] = {}
    for name in sorted(judges):
        has_answered = np.array([name in answers for answers in answers_of_cells])
        judge_shares[name] = has_answered / n_judges
    return Votes(cells, positive_shares, judge_shares)


def judged_at(clip: Clip) -> float:
    """Return when a clip was judged, in seconds since 1970.

    Minus infinity if its column `judged_at` holds no time in ISO 8601. A time without a zone is taken as UTC,
    as `film open` writes it.
    """
    try:
        moment = datetime.fromisoformat(clip.extras.get(JUDGED_AT, "").strip())
    except ValueError:
        return -math.inf
    if not moment.tzinfo:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def was_score_hidden(clip: Clip) -> bool:
    """Whether a clip was judged without the model's score; it need not be a window of the draw.

    False where that is not stated, as of a note.
    """
    return clip.extras.get(SEEN_SCORE) == "0"


def is_blind(clip: Clip) -> bool:
    """Whether a clip is a window that was drawn at random and shown without its score."""
    return was_score_hidden(clip) and place_in(clip) > 0


def blind_judgements(judgements: Manifest) -> Judgements:
    """Return the judgements that shares are estimated from: of drawn windows, made blindly (`is_blind`).

    Callers ask of them whether they were made under several definitions, which cannot be counted together.
    What was judged in sight of a score, or was not drawn, has no part in a share: under which definition it
    was made does not matter.
    """
    blind_clips = [clip for clip in judgements if is_blind(clip)]
    return judgements_of(judgements.with_clips(blind_clips))


def named_sampling(clip: Clip) -> str:
    """Return the method of sampling that a window names; `SEQUENTIAL_POISSON` if it names none."""
    return clip.extras.get(LAW, "").strip().lower() or SEQUENTIAL_POISSON


def named_seed(clip: Clip) -> int | None:
    """Return the seed of the draw that a window names; None if that is no whole number, or below 0.

    A spreadsheet may have written 7 as 7.0 or 7,0.
    """
    cell = clip.extras.get(SEED, "").strip().replace(",", ".")
    number = number_of(cell)  # NaN if it is no number
    return int(number) if number.is_integer() and number >= 0 else None


def sampling_of(clips: Iterable[Clip]) -> Sampling:
    """Find the method of sampling by which a film's windows were drawn.

    Earlier versions drew by sequential Poisson sampling and named no method. A film of which any window was
    judged blindly by that method keeps it, so that all of its windows are of one draw.
    """
    names = {named_sampling(clip) for clip in clips if is_blind(clip)}
    return SEQUENTIAL_POISSON if SEQUENTIAL_POISSON in names else SUCCESSIVE


def content_at_draw(clip: Clip) -> float | None:
    """Read how many seconds of content a window had when it was drawn, from its column `content_s`.

    Returns
    -------
    float or None
        None if the cell is empty. NaN if its value is impossible: no number, not above 0, or longer than the
        window.
    """
    text = clip.extras.get(CONTENT_S, "").strip()
    if not text:
        return None
    seconds = number_of(text.replace(",", "."))  # NaN if it is no number
    window_s = clip.duration_s or 0.0
    return seconds if 0 < seconds <= window_s + SLACK_S else math.nan


def has_possible_content(clip: Clip) -> bool:
    """Whether a window's column `content_s`, its seconds of content when it was drawn, can be believed.

    An empty cell can, as it states nothing. What is no number, 0, or longer than the window cannot.
    """
    seconds = content_at_draw(clip)  # NaN if impossible
    if seconds is None:
        return True
    return not math.isnan(seconds)


def judged_film(
    timeline: Timeline,
    judgements: Manifest,
    key: str | None = None,
    *,
    has_labels: bool = False,
    of_all_films: Manifest | None = None,
) -> JudgedFilm:
    """Gather the blind judgements of a film's windows: each judge's answer for each window that was drawn.

    Many judgements do not count: of other films, made with the score in sight, of windows that are in no draw
    or have no content. They are left out one kind after the other, and the result's notices say how many.

    Parameters
    ----------
    timeline : Timeline
    judgements : Manifest
        Clips of other films, without a level, made with the score in sight or not drawn are left out.
    key : str, optional
        Model, which says what is positive; by default the first with logits.
    has_labels : bool
        Whether labels take the place of the model's probabilities: then these count for nothing, whether or
        not the model was trained on the film.
    of_all_films : Manifest, optional
        The judges' judgements of all films, which say who names concepts at all; by default `judgements`.

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
    _refuse_unknown_level(judgements, model, positive)
    filtered = JudgementFilter(judgements.spelled_as([timeline.movie]), left_out_message)

    # A model that was trained on the film may have learnt from these judgements: it is not used, by giving
    # all windows one probability.
    if model.is_trained_on and not has_labels:
        cells = _with_one_p(cells)
        filtered.notices.append(message("note_trained"))

    # Each step leaves judgements out of `filtered` (`filtered.clips` are those that are left), and notes in
    # it how many, and why.
    sampling = _keep_drawn(filtered, timeline.movie)
    judged_anywhere = judgements if of_all_films is None else of_all_films
    drop_judges_without_concepts(filtered, positive, filter(is_blind, judged_anywhere))
    judges = _judges_under_one_definition(judgements.with_clips(filtered.clips))
    _keep_cells(filtered, cells)
    _refuse_two_draws(timeline.movie, filtered.clips, cells)

    # The places in the draw of the judgements that are left. Where one was left out so far, the draw has a
    # gap: nobody knows what was judged there. A window that is black or credits by now has no answer either,
    # but is no gap, as it is no part of what is estimated. So its place is kept here, and it is left out only
    # in the next step.
    judged_places = _places_by_judge(judges, filtered.clips)
    _keep_cells_with_content(filtered, cells)
    answers = _answers_by_judge(filtered, judged_places, judgements.codebook.labels, positive)

    _note_machines(filtered, judgements)

    # Judged windows get the content that they had when they were drawn, as their chances rest on it.
    clip_of_cell = _first_clips(filtered.clips, cells)
    content_s = _content_when_drawn(cells, clip_of_cell)
    _note_changed_content(filtered, cells.content_s, content_s)
    _note_earlier_sampling(filtered, cells.content_s, sampling)
    return JudgedFilm(
        movie=timeline.movie,
        cells=replace(cells, content_s=content_s, unread_s=_unread_when_drawn(cells, content_s)),
        sampling=sampling,
        cell_of_place={place_in(clip): cell for cell, clip in clip_of_cell.items()},
        judged_places=judged_places,
        answers=answers,
        notices=tuple(filtered.notices),
    )


def _note_machines(filtered: "JudgementFilter", judgements: Manifest) -> None:
    """Note which of the judges are machines, if any are: they count as people do."""
    machines = machines_of(judgements.with_clips(filtered.clips))
    if machines:
        filtered.notices.append(counted_message("note_machines", len(machines), names=", ".join(machines)))


def _with_one_p(cells: Cells) -> Cells:
    """Replace the probabilities of all cells by their mean, for a film that the model was trained on.

    The model may have learnt from these judgements, and then errs less in judged windows than in others. With
    one probability for all windows it corrects nothing: the judgements alone count.
    """
    weights = np.maximum(cells.content_s, 1e-9)  # of a film without content they must not all be 0
    return replace(cells, p=np.full_like(cells.p, np.average(cells.p, weights=weights)))


def _judges_under_one_definition(judgements: Manifest) -> tuple[str, ...]:
    """Return the names of the judges, sorted.

    Raises
    ------
    ManifestError
        The judgements were made under two definitions.
    """
    blind = blind_judgements(judgements)
    blind.refuse_two_definitions()
    return blind.judges


def _places_by_judge(judges: Iterable[str], clips: Iterable[Clip]) -> dict[str, frozenset[int]]:
    """Return the places of the draw at which each judge judged one of the clips; a judge may have none left.

    `judges` are all who judged the film, also those of whom no clip is left.
    """
    places: dict[str, set[int]] = {name: set() for name in judges}
    for clip in clips:
        places[clip.annotator].add(place_in(clip))
    return {judge: frozenset(places_of_judge) for judge, places_of_judge in places.items()}


def _refuse_unknown_level(judgements: Manifest, model: ModelRecord, positive: Positive) -> None:
    """Refuse judgements whose codebook lacks a level or concept that the model finds."""
    unknown_level = positive.first_unknown_name(judgements.codebook)
    if unknown_level:
        books = {"codebook": judgements.codebook.name, "expected": model.codebook}
        raise FilmError(message("rate_level", model=model.key, level=unknown_level, **books))


class JudgementFilter:
    """A list of judgements, from which some are left out step by step, with a note on each step.

    Attributes
    ----------
    clips : list of Clip
        The judgements that are left.
    notices : list of str
        How many were left out at each step, and why.
    """

    def __init__(self, clips: Iterable[Clip], note_of: Callable[[int, str], str]) -> None:
        """Begin with all clips.

        Parameters
        ----------
        clips : iterable of Clip
        note_of : callable
            Writes the note that n judgements are left out, and why, from these two.
        """
        self.clips = list(clips)
        self.notices: list[str] = []
        self._note_of = note_of

    def keep(self, is_kept: Callable[[Clip], bool], why_not: str) -> None:
        """Keep the clips for which `is_kept` is true; note how many others are left out, and why."""
        clips = [clip for clip in self.clips if is_kept(clip)]
        self.note_left_out(len(self.clips) - len(clips), why_not)
        self.clips = clips

    def note_left_out(self, n: int, why: str) -> None:
        """Note how many judgements are left out, and why; nothing if there are none."""
        if n:
            self.notices.append(self._note_of(n, why))


def left_out_message(n: int, why: str) -> Message:
    """Say how many judgements are left out, and why, such as "3 judgements left out: of other films".

    `why` is a text, or a `Message`, which may have a text of its own for one judgement.
    """
    if isinstance(why, Message):
        why = counted_message(why.key, n, **why.values)
    return message("note_left_out", n=n, s="" if n == 1 else "s", why=why)


def _note_changed_content(filtered: JudgementFilter, content_s: Floats, content_when_drawn: Floats) -> None:
    """Add a notice to the filter if cells [C] had another content when they were drawn than now."""
    n_changed = int((content_when_drawn != content_s).sum())
    if n_changed:
        filtered.notices.append(message("note_content", n=n_changed, s="" if n_changed == 1 else "s"))


def _note_earlier_sampling(filtered: JudgementFilter, content_s: Floats, sampling: Sampling) -> None:
    """Add a notice to the filter if an earlier version drew the windows, by sequential Poisson sampling.

    This matters only if cells differ in content [C]: otherwise both methods are the same.
    """
    if filtered.clips and sampling == SEQUENTIAL_POISSON and not _is_alike(content_s):
        filtered.notices.append(message("note_law"))


def _keep_drawn(filtered: JudgementFilter, movie: str) -> Sampling:
    """Leave in a filter only a film's judgements that were made blindly of drawn windows.

    Windows may have been drawn by an earlier version, by another method of sampling: of two methods, only
    judgements of one can be used (`sampling_of`). The method is returned.
    """
    names_of_others = first_few(_other_movies(filtered.clips, movie), 3)
    filtered.keep(lambda clip: clip.movie == movie, message("why_film", names=names_of_others))
    keep_blind(filtered)
    sampling = sampling_of(filtered.clips)
    filtered.keep(lambda clip: named_sampling(clip) == sampling, message("why_law", law=sampling))
    return sampling


def keep_blind(filtered: JudgementFilter) -> None:
    """Leave in a filter only the judgements that were made blindly of drawn windows (`is_blind`)."""
    filtered.keep(lambda clip: clip.level is not None, message("why_level"))
    filtered.keep(was_score_hidden, message("why_seen"))
    filtered.keep(is_blind, message("why_place", column=PLACE))


def _other_movies(clips: Iterable[Clip], movie: str) -> list[str]:
    """List the other films that clips are of. If no clip is of this film, a hint follows similar names."""
    movies = dict.fromkeys(clip.movie for clip in clips)
    if movie not in movies:
        return [f"{name}{name_hint(name, [movie])}" for name in movies]
    return [name for name in movies if name != movie]


def drop_judges_without_concepts(
    filtered: JudgementFilter, positive: Positive, clips_of_all_films: Iterable[Clip]
) -> None:
    """Leave out the judges who name no concept in any window of any film, if the model finds a concept.

    A judge who gives levels alone does not say where a concept is absent. A judge who names concepts in other
    films, but none in this one, says that there is none in it.
    """
    clips_of: dict[str, list[Clip]] = {}  # judge -> their clips, of all films
    for clip in clips_of_all_films:
        clips_of.setdefault(clip.annotator, []).append(clip)

    judges = dict.fromkeys(clip.annotator for clip in filtered.clips)
    for judge in judges:
        if positive.lacks_labels_in(clips_of.get(judge, [])):
            why = message("why_no_concept", who=judge_name(judge), concept=positive.text)
            filtered.keep(partial(_is_by_another, judge), why)


def _is_by_another(judge: str, clip: Clip) -> bool:
    """Whether a clip was judged by anybody but this judge."""
    return clip.annotator != judge


def _refuse_two_draws(movie: str, clips: Iterable[Clip], cells: Cells) -> None:
    """Raise FilmError if judgements, all of cells of the film, are of two draws.

    A draw has one seed, and puts each window at one place of its order. So judgements are of two draws if
    they name two seeds, have two windows at one place, or have one window at two places.
    """
    index_of = cache(cells.index_of)  # looked up once for all who judged a window
    seeds: set[int] = set()
    cell_at: dict[int, int | None] = {}  # place -> the window that the first judgement has there
    place_of: dict[int | None, int] = {}  # window -> the place at which the first judgement has it
    for clip in clips:
        seed = named_seed(clip)
        if seed is not None:
            seeds.add(seed)

        place = place_in(clip)
        cell = index_of(clip.start_s, clip.end_s)
        first_cell_at_place = cell_at.setdefault(place, cell)
        has_two_windows_at_place = first_cell_at_place != cell
        has_two_seeds = len(seeds) > 1
        if has_two_windows_at_place or has_two_seeds:
            raise FilmError(message("rate_seeds", movie=movie, clip=clip.clip_id, column=PLACE, place=place))

        first_place_of_cell = place_of.setdefault(cell, place)
        if first_place_of_cell != place:
            places = {"column": PLACE, "place": first_place_of_cell, "other": place}
            raise FilmError(message("rate_places", movie=movie, clip=clip.clip_id, **places))


def _keep_cells(filtered: JudgementFilter, cells: Cells) -> None:
    """Leave in a filter only the judgements of cells of the film, which state a possible content, if any.

    A cell is a window of the film that can be drawn; its content is the time of it that can be judged. A
    judgement may state the content that its cell had when it was drawn. A number of seconds that is longer
    than the cell, for example, is none.
    """
    index_of = cache(cells.index_of)  # many judge the same windows

    def is_cell(clip: Clip) -> bool:
        """Whether the clip is a cell of the film."""
        return index_of(clip.start_s, clip.end_s) is not None

    first_start_s, first_end_s = cells.spans[0]
    cell_s = first_end_s - first_start_s
    filtered.keep(is_cell, message("why_grid", seconds=f"{cell_s:g}"))
    filtered.keep(has_possible_content, message("why_content", column=CONTENT_S))


def _keep_cells_with_content(filtered: JudgementFilter, cells: Cells) -> None:
    """Leave in a filter only the judgements of windows that have content, or had it when they were drawn.

    Content is what is neither black nor credits. A judgement may state how much its window had when it was
    drawn; otherwise the window's present content decides. The judgements that are left are sorted in the
    order of the draw.
    """
    # The cell of these times if it has content, else None. It is looked up once for all who judged a window.
    index_with_content = cache(cells.index_with_content)

    def has_or_had_content(clip: Clip) -> bool:
        """Whether the judgement states its window's content, or the window has content now."""
        states_content_when_drawn = content_at_draw(clip) is not None
        return states_content_when_drawn or index_with_content(clip.start_s, clip.end_s) is not None

    filtered.keep(has_or_had_content, message("why_empty"))
    filtered.clips.sort(key=place_in)


def _first_clips(clips: Iterable[Clip], cells: Cells) -> dict[int, Clip]:
    """Return cell -> its first clip, in the order of the clips; clips that are no cells are skipped."""
    index_of = cache(cells.index_of)  # many judge the same windows
    clip_of_cell: dict[int, Clip] = {}
    for clip in clips:
        cell = index_of(clip.start_s, clip.end_s)
        if cell is not None:
            clip_of_cell.setdefault(cell, clip)
    return clip_of_cell


def _content_when_drawn(cells: Cells, clip_of_cell: Mapping[int, Clip]) -> Floats:
    """Return the content of all cells [C]; for judged cells, the content that they had when drawn."""
    content_s = cells.content_s.copy()
    for cell, clip in clip_of_cell.items():
        seconds = content_at_draw(clip)
        if seconds is not None and abs(seconds - content_s[cell]) > SLACK_S:
            content_s[cell] = seconds
    return content_s


def _unread_when_drawn(cells: Cells, content_when_drawn: Floats) -> float:
    """Return the seconds of a film that could not be read when its windows were drawn.

    Content that a cell had when it was drawn [C], and has lost since, is taken to be unreadable now. It is
    subtracted from the seconds that cannot be read now.
    """
    lost_since_s = np.maximum(content_when_drawn - cells.content_s, 0.0)
    return max(cells.unread_s - float(lost_since_s.sum()), 0.0)


def _answers_by_judge(
    filtered: JudgementFilter, judges: Iterable[str], labels: Collection[str], positive: Positive
) -> dict[str, dict[int, bool | None]]:
    """Gather each judge's answers for the windows of the draw; note how many are not sure or contradictory.

    A judge may have judged a window several times: the latest judgement that is sure counts. Judgements
    without a time (`judged_at`) are the earliest; of those with the same time, the last of the table is the
    latest.

    Returns
    -------
    dict
        Judge -> place -> whether the window is positive; None if the judge is sure in no row of it.
    """
    answers_by_judge: dict[str, dict[int, bool | None]] = {judge: {} for judge in judges}
    n_unsure = 0
    n_contradictions = 0
    for clip in sorted(filtered.clips, key=judged_at):
        answers = answers_by_judge[clip.annotator]
        place = place_in(clip)
        earlier_answer = answers.get(place)  # None: there is none, or it was not sure
        answer = positive.is_positive(clip, labels)
        if answer is None:  # not sure
            n_unsure += 1
            answers[place] = earlier_answer  # a sure one stays
            continue
        contradicts_earlier = earlier_answer is not None and earlier_answer != answer
        if contradicts_earlier:
            n_contradictions += 1
        answers[place] = answer
    filtered.note_left_out(n_unsure, message("why_unsure"))
    if n_contradictions:
        filtered.notices.append(counted_message("note_twice", n_contradictions, column=JUDGED_AT))
    return answers_by_judge


def _is_alike(content: Floats) -> bool:
    """Whether all cells with content have the same number of seconds of it."""
    seconds = content[content > 0]
    return len(seconds) == 0 or bool(np.ptp(seconds) <= SLACK_S)
