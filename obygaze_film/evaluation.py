"""Measure timelines and annotators of films against each other, and report it.

All of it is of the seconds that the model can judge, so that every number of a film is of the same time: the
model's, the annotators', the baselines', and those of the model moved in time.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.manifest import (
    SEEN_SCORE,
    Clip,
    Codebook,
    Manifest,
    marks_every_answer,
    name_hint,
    refuse_twins,
)
from obygaze_features.templates import packaged
from obygaze_features.text import rounded
from obygaze_film.agreement import (
    HALF,
    OFFSET_SHARE,
    boundary_f1,
    kappa,
    merged,
    reachable_top_precision,
    second_f1,
    seconds_in,
    segment_ap,
    segment_f1,
    span_of_each_second,
    top_precision,
)
from obygaze_film.claims import document, sentences
from obygaze_film.claims.kinds import TimelineAgreement
from obygaze_film.claims.of_groups import MIN_WITH_INTERVAL, timeline_agreement
from obygaze_film.errors import FilmError
from obygaze_film.film_time import MIN_SAID_S
from obygaze_film.judged_clock import JudgedClock
from obygaze_film.judged_windows import left_out_message
from obygaze_film.notes import message
from obygaze_film.positive import Positive, positive_of
from obygaze_film.schema import Spans, is_counted
from obygaze_film.segments import GAP_S, MIN_S
from obygaze_film.timeline import Timeline, shared_model
from obygaze_models.evaluation import (
    Interval,
    auc,
    average_precision,
    jackknife_interval,
    spearman,
    t_interval,
)
from obygaze_models.report import Block, Report, interval, number

THRESHOLDS = (0.1, 0.3, 0.5)
"""Temporal intersections over unions (tIoU) at which segments count as found."""

COLLARS_S = (5.0, 15.0)
"""Tolerances of onsets and offsets, in seconds."""

N_LISTED = 100
"""Maximum number of ranked segments of a model."""

N_SHIFTS = 200
"""Circular shifts of each film's judged seconds with which the model is compared."""

SEED = 0
"""Seeds the random shifts of a film, together with the film's name."""

ROUNDING = 1e-9
"""Difference of two values of metrics that are equal but for rounding."""

TOP = 10
"""Number of best-ranked segments whose precision is measured."""

RATES = ("rate", "rate_error")
"""Metrics of rates. If the model has no rate of a film, nobody has one: means are over the same films."""

ALL = "all"
"""Baseline that marks every second."""

NONE = "none"
"""Baseline that marks no second."""

PRIOR = "movie_prior"
"""Baseline that knows the annotator's mean share in the other films, and no places."""

UNNAMED = "annotator"
"""Name of the annotator of clips that name none."""

HUMAN = "human: "
"""Begins the name of an annotator who is measured against another."""

SHIFTED = "shifted"
"""Baseline: the model's own timeline, shifted in time."""

BASELINES = (ALL, NONE, PRIOR)
"""Baselines whose marks do not depend on the film."""

CONSTANT = {
    (ALL, "kappa"): 0.0,
    (ALL, "second_auc"): 0.5,
    (NONE, "kappa"): 0.0,
    (NONE, "second_auc"): 0.5,
}
"""Baseline and metric -> the value that it has in all films, whatever annotators mark: no film can differ."""

NOTES_ON_FILMS: Mapping[str, str] = {
    "left_out": "without an annotation that counts, left out",
    "not_judged": "annotated, and no second of it can be judged, left out",
    "not_answered": "its annotators answered for no second in common that can be judged, left out",
    "not_scored": "annotated, not among these films",
    "cut": "annotated to behind the film's end, cut there (another cut?)",
}
"""Field of the record that lists films -> what a note says of them."""

TITLES: Mapping[str, str] = packaged(__package__, "assets/evaluation.toml")
"""Titles of metrics and baselines."""


_ValuesOfShifts = dict[tuple[str, str], list[NDArray[np.float64]]]
"""Truth and metric -> for each film the metric's values under the random shifts [shifts]."""


@dataclass(frozen=True, eq=False)
class Marks:
    """The marks of a model, an annotator or a rule in the n judged seconds of a film (`JudgedClock`).

    Attributes
    ----------
    seconds : ndarray of bool, shape [n]
        The seconds marked.
    segments : ndarray, shape [S, 2]
        The segments marked.
    rate : float
        Share of this time that is marked, or that a model expects; NaN if a model's rate is refused.
    scores : ndarray, shape [n], optional
        A score for each second; without them `seconds` are the scores, 0 and 1.
    listed : DataFrame, optional
        Segments (`Timeline.segments`), best first, including those below the threshold.
    """

    seconds: NDArray[np.bool_]
    segments: Spans
    rate: float
    scores: NDArray[np.float64] | None = None
    listed: pd.DataFrame | None = None


@dataclass(frozen=True, eq=False)
class Answers:
    """What an annotator says of a film, in spans [S, 2] that are in time order and don't overlap.

    Attributes
    ----------
    positive : ndarray
        Where they find what the model finds.
    unsure : ndarray
        Where their level is no answer, as "not sure" is.
    marked : ndarray or None
        Where they marked anything, if they say nothing of other time (`marks_every_answer`). None if they
        marked what they found, and all other time is negative.
    """

    positive: Spans
    unsure: Spans
    marked: Spans | None

    def is_answered(self, n_seconds: int) -> NDArray[np.bool_]:
        """Return which of the first n seconds of the film have an answer, positive or negative [n].

        An annotator who marked only what they found watched the rest too, and did not find it there:
        unmarked time is answered, as negative. An annotator who also marked what is negative says nothing of
        unmarked time. Unsure time has no answer, but where another span of theirs is positive.
        """
        is_positive = seconds_in(self.positive, n_seconds)
        is_unsure = seconds_in(self.unsure, n_seconds) & ~is_positive
        if self.marked is None:  # they marked only what they found
            return ~is_unsure
        is_marked = seconds_in(self.marked, n_seconds)
        return is_marked & ~is_unsure


def answers_of(truth: Manifest, positive: Positive, ids: Sequence[str] = ()) -> dict[str, dict[str, Answers]]:
    """Collect what annotators say of films: movie -> annotator -> where they find what is positive.

    Not all labels count:

    - clips without a label are left out;
    - so are labels that were given in sight of a model's score, as people tend to agree with it;
    - if a concept is positive, annotators who name no concept anywhere are left out, as nothing says where
      they find the concept absent.

    Parameters
    ----------
    truth : Manifest
    positive : Positive
        What the model calls positive.
    ids : sequence of str
        Names of films, which the result uses however the truth spells them.

    Raises
    ------
    FilmError
        The codebook lacks the levels or the concept, an annotated clip has no span, annotators' names differ
        in case alone, or none of them names a concept, and one is positive.
    """
    unknown = positive.first_unknown_name(truth.codebook)
    if unknown:
        kind = "concept" if positive.is_concept else "level"
        raise FilmError(
            f"the model calls {unknown!r} positive, which is no {kind} of the truth's codebook "
            f"{truth.codebook.name!r}"
        )

    without_concepts = annotators_without_concepts(truth, positive)

    # Gather the labelled clips of each annotator.
    clips_by_film: dict[str, dict[str, list[Clip]]] = {}  # movie -> annotator -> labelled clips
    first_place_of: dict[str, tuple[object, str]] = {}  # annotator -> where the name occurs, for errors
    for clip in truth.spelled_as(ids):
        if not positive.is_labelled(clip):
            continue
        if clip.start_s is None or clip.end_s is None:
            raise FilmError(f"clip {clip.clip_id} of the truth has no span: start_s and end_s are needed")
        annotator = clip.annotator or UNNAMED
        first_place_of.setdefault(annotator, ("the truth", f"clip {clip.clip_id}"))
        if annotator in without_concepts:
            continue
        clips_by_annotator = clips_by_film.setdefault(clip.movie, {})
        clips_by_annotator.setdefault(annotator, []).append(clip)
    refuse_twins("annotator", first_place_of)  # two names that differ in case alone
    if without_concepts and not clips_by_film:
        raise FilmError(
            f"nobody names a concept in the truth ({', '.join(without_concepts)}), so nothing says where "
            f"{positive.text} is not: give annotations with concepts"
        )

    # Each annotator's answers in each film, if any of their labels of it is left.
    answers_by_film: dict[str, dict[str, Answers]] = {}
    for movie, clips_by_annotator in clips_by_film.items():
        for annotator, clips in clips_by_annotator.items():
            has_blind_labels = len(_blind_clips(clips, truth.codebook)) > 0
            if has_blind_labels:
                answers_of_film = answers_by_film.setdefault(movie, {})
                answers_of_film[annotator] = _answers_in(clips, positive, truth.codebook)
    return answers_by_film


def _blind_clips(clips: Sequence[Clip], codebook: Codebook) -> list[Clip]:
    """Select the labels that can be compared with a model, of one annotator in one film (`clips`).

    People who see a model's score tend to agree with it: as in every measure of agreement (`blind_labels`),
    labels that were given in sight of one are left out.

    An annotator may mark only what they find (`marks_every_answer` is false). Their unmarked time counts as
    negative. If one of their labels was left out, its time would wrongly count as negative too: then all
    their labels of the film are left out.
    """
    blind_clips = [clip for clip in clips if clip.extras.get(SEEN_SCORE) != "1"]
    some_are_left_out = len(blind_clips) < len(clips)
    marks_only_what_is_found = not marks_every_answer(clips, codebook)
    if some_are_left_out and marks_only_what_is_found:
        return []
    return blind_clips


def _answers_in(clips: Sequence[Clip], positive: Positive, codebook: Codebook) -> Answers:
    """Collect what one annotator says of a film: where they find what is positive, and where they are unsure.

    Parameters
    ----------
    clips : sequence of Clip
        All clips of the film that they labelled, with times. Labels given in sight of a model's score are
        left out here (`_blind_clips`).
    positive : Positive
        What the model calls positive.
    codebook : Codebook
        Of the labels.
    """
    positive_spans = []
    unsure_spans = []
    all_spans = []
    for clip in _blind_clips(clips, codebook):
        span = (clip.start_s or 0.0, clip.end_s or 0.0)
        all_spans.append(span)
        is_positive = positive.is_positive(clip, codebook.labels)
        is_unsure = is_positive is None
        if is_unsure:
            unsure_spans.append(span)
        elif is_positive:
            positive_spans.append(span)

    # An annotator who also marks what is negative says nothing of the time that they leave unmarked: so it is
    # stored what they marked. Of an annotator who marks only what they find, the rest is negative (None).
    marked = None
    if marks_every_answer(clips, codebook):
        marked = merged(all_spans)
    return Answers(positive=merged(positive_spans), unsure=merged(unsure_spans), marked=marked)


def count_unlabelled(truth: Manifest, positive: Positive, movies: Collection[str]) -> dict[str, int]:
    """Count the clips of these films, by annotator, that are not annotated (`Positive.is_labelled`)."""
    n_of: dict[str, int] = {}
    for clip in truth.spelled_as(list(movies)):
        if clip.movie in movies and not positive.is_labelled(clip):
            annotator = clip.annotator or UNNAMED
            n_of[annotator] = n_of.get(annotator, 0) + 1
    return n_of


def annotators_without_concepts(truth: Manifest, positive: Positive) -> list[str]:
    """List the annotators whose labels say nothing of the positive concept: they never name any concept.

    Somebody who labelled levels alone may have seen the concept everywhere or nowhere. Only labels given
    without a model's score in sight count (`_blind_clips`), and an annotator without any such label is not
    listed. Nobody is listed if a level is positive, not a concept (`Positive.lacks_labels_in`).
    """
    blind_clips_of: dict[str, list[Clip]] = {}
    for (annotator, _), clips in _labelled_clips(truth, positive).items():
        blind_clips_of.setdefault(annotator, []).extend(_blind_clips(clips, truth.codebook))
    return [
        annotator
        for annotator, blind_clips in blind_clips_of.items()
        if blind_clips and positive.lacks_labels_in(blind_clips)
    ]


def _labelled_clips(clips: Iterable[Clip], positive: Positive) -> dict[tuple[str, str], list[Clip]]:
    """Gather the labelled clips by annotator and movie."""
    clips_of: dict[tuple[str, str], list[Clip]] = {}
    for clip in clips:
        if positive.is_labelled(clip):
            clips_of.setdefault((clip.annotator or UNNAMED, clip.movie), []).append(clip)
    return clips_of


def count_without_concepts(truth: Manifest, positive: Positive, movies: Collection[str]) -> dict[str, int]:
    """Count the labels of these films by annotators who name no concept (`annotators_without_concepts`)."""
    without_concepts = annotators_without_concepts(truth, positive)
    n_of: dict[str, int] = {}
    for (annotator, movie), clips in _labelled_clips(truth.spelled_as(list(movies)), positive).items():
        if movie in movies and annotator in without_concepts:
            n_of[annotator] = n_of.get(annotator, 0) + len(clips)
    return n_of


def count_in_sight(truth: Manifest, positive: Positive, movies: Collection[str]) -> dict[str, int]:
    """Count the labels of these films that are left out as a model's score was in sight (`_blind_clips`).

    Annotators without such labels are not listed; nor are those who name no concept, none of whose labels
    count (`annotators_without_concepts`).
    """
    without_concepts = annotators_without_concepts(truth, positive)
    n_of: dict[str, int] = {}
    for (annotator, movie), clips in _labelled_clips(truth.spelled_as(list(movies)), positive).items():
        if movie not in movies or annotator in without_concepts:
            continue
        n_left_out = len(clips) - len(_blind_clips(clips, truth.codebook))
        if n_left_out:
            n_of[annotator] = n_of.get(annotator, 0) + n_left_out
    return n_of


def ends(spans: Spans) -> float:
    """Return the end of the last span; 0 without any."""
    return float(spans[:, 1].max()) if len(spans) else 0.0


def human_marks(spans: Spans, n: int) -> Marks:
    """Collect an annotator's marks in a film of n judged seconds.

    The `spans` [S, 2] are in time order and don't overlap.
    """
    seconds = seconds_in(spans, n)
    share_marked = float(seconds.mean())
    return Marks(seconds=seconds, segments=spans, rate=share_marked)


class ModelMarks(NamedTuple):
    """A model's marks in a film, and the clock of the seconds that it can judge."""

    marks: Marks
    clock: JudgedClock


def marks_of(film: Timeline, key: str | None, is_compared: NDArray[np.bool_] | None = None) -> ModelMarks:
    """Collect a model's marks in the seconds of a film that it can judge.

    A second has the values of the row of the timeline that its middle lies in. It is judged if that row has a
    probability. Other seconds are cut out, and marks are placed on the clock that counts judged seconds alone
    (`JudgedClock`), so that annotators' marks can be placed on it too.

    Parameters
    ----------
    film : Timeline
    key : str or None
        The model.
    is_compared : ndarray of bool, shape [n], optional
        Of each second of the film, whether it counts; by default all that are judged do.
    """
    # Which seconds count
    rows = film.rows(key)
    n_seconds = max(1, math.floor(film.record.duration_s + 0.5))  # seconds whose middle lies in the film
    row_of_second = span_of_each_second(_spans(rows), n_seconds)  # -1: in no row
    is_in_row = row_of_second >= 0
    row_has_p = is_counted(rows)
    # For a second in no row (-1), the index reads the last row: `is_in_row` makes such a second not judged.
    is_judged = is_in_row & row_has_p[row_of_second]
    some_are_left_out = False
    if is_compared is not None:
        some_are_left_out = bool((is_judged & ~is_compared).any())
        is_judged &= is_compared
    clock = JudgedClock(is_judged)  # counts these seconds alone

    # The model's probability in each of these seconds
    row_p = rows["p"].to_numpy(dtype=np.float64)
    p = row_p[row_of_second[is_judged]]
    threshold_p = film.model(key).threshold_p
    if threshold_p is None:  # then no row has a probability, and no second is marked
        threshold_p = np.inf

    # The expected share of the film, or of the seconds that are compared if these are fewer
    rate = film.rate(key).value
    if rate is not None and some_are_left_out:
        rate = float(p.mean()) if len(p) else None

    # The best segments, of which those that reach the threshold are passages, which the model marks
    listed = film.segments(key, top=N_LISTED)
    passages = listed[listed["reaches"] == 1].sort_values("start_s")
    marks = Marks(
        seconds=p >= threshold_p,  # as passages and their claims count them
        segments=clock.spans(_spans(passages)),
        rate=np.nan if rate is None else rate,
        scores=p,
        listed=_by_clock(listed, clock),
    )
    return ModelMarks(marks, clock)


def _spans(table: pd.DataFrame) -> Spans:
    """Return the starts and ends of the rows of a table [S, 2]."""
    return table[["start_s", "end_s"]].to_numpy(dtype=np.float64)


def _by_clock(listed: pd.DataFrame, clock: JudgedClock) -> pd.DataFrame:
    """Convert the times of listed segments to judged time, which runs only in judged seconds.

    Segments without any judged second are dropped.
    """
    judged_times = clock.times(_spans(listed))
    converted = listed.assign(start_s=judged_times[:, 0], end_s=judged_times[:, 1])
    return converted[converted["end_s"] > converted["start_s"]]


@dataclass(frozen=True, eq=False)
class FilmEvaluation:
    """The agreement of timelines with annotators.

    Attributes
    ----------
    by_film : DataFrame
        Columns truth (annotator), who (model, ``human: NAME`` or a rule), movie, metric, value. Those of
        ``shifted`` are means over the shifts.
    summary : DataFrame
        Columns truth, who, metric, value (mean over films; Spearman's correlation over films for
        ``rate_rank``), low, high (95 %), n_films, and p: how often the model moved in time does at least as
        well (Phipson and Smyth 2010), NaN for others.
    record : dict
        Films, annotators, levels, and what was left out.
    """

    by_film: pd.DataFrame
    summary: pd.DataFrame
    record: Mapping[str, object] = field(default_factory=dict)


@checked
def evaluate_films(
    films: Sequence[Timeline],
    truth: Manifest,
    *,
    key: str | None = None,
    collars: Sequence[float] = COLLARS_S,
    n_shifts: int = N_SHIFTS,
) -> FilmEvaluation:
    """Measure a model's timelines against annotations.

    Each annotator is the reference once, and the other annotators are measured like the model. Only seconds
    count that have a probability by the model and an answer by each annotator of the film. Labels given in
    sight of a model's score do not count, and films that the model was trained on are left out. The result's
    record says how much was left out, and why.

    Parameters
    ----------
    films : sequence of Timeline
    truth : Manifest
        Clips with spans. Without annotator names they count as one annotator's.
    key : str, optional
        Model; by default the first that decides.
    collars : sequence of float
        Tolerances of starts and ends of segments, in seconds.
    n_shifts : int
        Random circular shifts in time of the model's marks in each film, as a baseline.

    Raises
    ------
    FilmError
        Different models scored the films; no film is annotated, or only in sight of a model's score; the
        model was trained on all that are, or it can judge no second of them; the codebook lacks the positive
        levels, a clip has no span, or a clip begins after the end of its film.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_film
    >>> films = obygaze_film.score_films(of.open_store("stores/more"), ["kept/linear.model"])
    >>> found = obygaze_film.evaluate_films(films, of.read_manifest("more.csv"), n_shifts=20)
    >>> f1 = found.summary.set_index(["who", "metric"])["value"]
    >>> bool(f1["linear", "second_f1"] > f1["shifted", "second_f1"])
    True
    """
    # Which films have answers of annotators?
    model = shared_model(films, key)
    positive = positive_of(model)
    movies = [film.movie for film in films]
    answers_by_film = answers_of(truth, positive, movies)  # movie -> annotator -> where they find it
    has_answers = any(movie in answers_by_film for movie in movies)
    n_in_sight_by = count_in_sight(truth, positive, movies)  # annotator -> labels given in sight of a score
    if n_in_sight_by and not has_answers:
        raise FilmError(
            "all labels of these films were given in sight of a model's score (seen_score 1), by "
            f"{', '.join(n_in_sight_by)}: judge blindly to compare"
        )
    selected = _select_films(films, answers_by_film, key)

    # What the model and the annotators marked in these films, in the seconds that count
    collected = _CollectedMarks()
    for film in selected.films:
        collected.add(film, answers_by_film[film.movie], key)
    if not collected.of_model:
        raise FilmError(
            f"{model.key} can judge no second of the annotated films ({', '.join(collected.seconds)}) that "
            "all of a film's annotators answered for: there is nothing to compare"
        )

    # What is reported beside the numbers. Labels that were left out are counted in films that the model was
    # not trained on: those of other films would not count anyway.
    new_movies = [movie for movie in movies if movie not in selected.trained_on]
    record = {
        "model": model.key,
        "positive": list(positive.names),
        "is_concept": positive.is_concept,
        "films": list(collected.of_model),
        "seconds": collected.seconds,
        "left_out": selected.not_annotated,
        "trained_on": selected.trained_on,
        "unjudged_marks_s": collected.unjudged_marks_s,
        "unanswered_s": collected.unanswered_s,
        "unlabelled": count_unlabelled(truth, positive, new_movies),
        "without_concepts": count_without_concepts(truth, positive, new_movies),
        "in_sight": count_in_sight(truth, positive, new_movies),
        "not_judged": collected.not_judged,
        "not_answered": collected.not_answered,
        "not_scored": selected.not_scored,
        "cut": collected.cut,
        "without_rate": collected.without_rate,
        "collars": list(collars),
        "n_shifts": n_shifts,
        "seed": SEED,
    }
    return compare_marks(
        collected.of_model,
        collected.of_people,
        name=model.key,
        collars=collars,
        n_shifts=n_shifts,
        record=record,
    )


class _SelectedFilms(NamedTuple):
    """The films that are evaluated, and the names of those that are not.

    Attributes
    ----------
    films : list of Timeline
        Annotated films that the model was not trained on.
    not_annotated, trained_on : list of str
        Scored films that are left out.
    not_scored : list of str
        Annotated films that are not among the scored ones. A question follows a name that may be a misspelled
        one of a film that is not annotated.
    """

    films: list[Timeline]
    not_annotated: list[str]
    trained_on: list[str]
    not_scored: list[str]


def _select_films(
    films: Sequence[Timeline], annotated_movies: Collection[str], key: str | None
) -> _SelectedFilms:
    """Select the annotated films that the model was not trained on.

    Raises
    ------
    FilmError
        There is none.
    """
    movies = [film.movie for film in films]
    annotated_films = [film for film in films if film.movie in annotated_movies]
    not_annotated = [movie for movie in movies if movie not in annotated_movies]
    not_scored = [
        f"{movie}{name_hint(movie, not_annotated)}" for movie in annotated_movies if movie not in movies
    ]
    if not annotated_films:
        raise FilmError(
            f"no scored film is annotated: the films are {', '.join(movies)}; "
            f"the manifest has {', '.join(not_scored[:5])}"
        )
    trained_on = [film.movie for film in annotated_films if film.model(key).is_trained_on]
    new_films = [film for film in annotated_films if film.movie not in trained_on]
    if not new_films:
        name = annotated_films[0].model(key).key
        names = ", ".join(trained_on)
        raise FilmError(f"{name} was trained on all annotated films ({names}): annotate others")
    return _SelectedFilms(new_films, not_annotated, trained_on, not_scored)


@dataclass(eq=False)
class _CollectedMarks:
    """The marks of a model and of annotators in films, and what is to be said about them.

    Attributes
    ----------
    of_model : dict
        Movie -> the model's marks, of the films with any judged second.
    of_people : dict
        Movie -> annotator -> marks, of the same films.
    seconds : dict
        Movie -> how many of its whole seconds are `judged` by the model and answered by all annotators, and
        how many the `film` has.
    unanswered_s : dict
        Annotator -> seconds that the model can judge and they have no answer for, if there are any.
    not_judged, not_answered : list of str
        Films without any second to compare: that the model can judge, or that all annotators answered for.
    cut : list of str
        Notes on films that are marked beyond their end.
    without_rate : dict
        Movie -> why the model has no rate of it.
    """

    of_model: dict[str, Marks] = field(default_factory=dict)
    of_people: dict[str, dict[str, Marks]] = field(default_factory=dict)
    seconds: dict[str, dict[str, int]] = field(default_factory=dict)
    unanswered_s: dict[str, int] = field(default_factory=dict)
    not_judged: list[str] = field(default_factory=list)
    not_answered: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    without_rate: dict[str, str] = field(default_factory=dict)
    _unjudged_s: dict[str, float] = field(default_factory=dict)

    @property
    def unjudged_marks_s(self) -> dict[str, float]:
        """Annotator -> seconds of their marks, to the millisecond, where the model can judge nothing."""
        return {name: round(self._unjudged_s[name], 3) for name in sorted(self._unjudged_s)}

    def add(self, film: Timeline, answers: Mapping[str, Answers], key: str | None) -> None:
        """Add the marks of the model and of the annotators in a film, and note which of its time is left out.

        Only seconds are compared that the model can judge and all annotators answered for. A film without any
        such second gets no marks: it is listed as not judged, or not answered.

        Parameters
        ----------
        film : Timeline
        answers : mapping
            Annotator -> what they say of the film.
        key : str or None
            The model.
        """
        movie = film.movie
        positive_spans_of = {annotator: given.positive for annotator, given in answers.items()}
        self.cut += _annotators_past_end(film, positive_spans_of)

        # First the seconds that the model can judge, by which annotators' marks and answers are counted
        judged_by_model = marks_of(film, key).clock
        self._count_unjudged_marks(positive_spans_of, judged_by_model)
        is_answered_by_all = self._answered_by_all(answers, judged_by_model)

        # Then the model's marks in those of them that all annotators answered for, and the clock of these
        marks, compared = marks_of(film, key, is_compared=is_answered_by_all)
        self.seconds[movie] = {"judged": compared.n_seconds, "film": len(judged_by_model.is_judged)}
        if not judged_by_model.n_seconds:
            self.not_judged.append(movie)
            return
        if not compared.n_seconds:
            self.not_answered.append(movie)
            return

        self.of_model[movie] = marks
        self.of_people[movie] = {}
        for annotator, spans in positive_spans_of.items():
            spans_by_clock = compared.spans(spans)  # other seconds are cut out
            self.of_people[movie][annotator] = human_marks(spans_by_clock, compared.n_seconds)
        model_has_rate = not np.isnan(marks.rate)
        if not model_has_rate:
            self.without_rate[movie] = film.rate(key).reason

    def _count_unjudged_marks(self, spans_of: Mapping[str, Spans], clock: JudgedClock) -> None:
        """Add to each annotator's `unjudged_marks_s` the seconds of their marks that the model can't judge.

        Parameters
        ----------
        spans_of : mapping
            Annotator -> the spans [S, 2] that they marked in a film.
        clock : JudgedClock
            Of the seconds that the model can judge.
        """
        film_s = len(clock.is_judged)
        for annotator, spans in spans_of.items():
            marked_s = _total_s(np.minimum(spans, film_s))  # cut at the film's end
            judged_s = _total_s(clock.times(spans))
            self._unjudged_s[annotator] = self._unjudged_s.get(annotator, 0.0) + marked_s - judged_s

    def _answered_by_all(self, answers: Mapping[str, Answers], clock: JudgedClock) -> NDArray[np.bool_]:
        """Return which seconds of a film [n] all annotators answered for.

        Seconds that the model can judge (by `clock`) and an annotator did not answer for are added to this
        annotator's `unanswered_s`.
        """
        film_s = len(clock.is_judged)
        is_answered_by_all = np.ones(film_s, np.bool_)
        for annotator, given in answers.items():
            is_answered = given.is_answered(film_s)
            is_answered_by_all &= is_answered
            n_unanswered = int((clock.is_judged & ~is_answered).sum())
            if n_unanswered:
                self.unanswered_s[annotator] = self.unanswered_s.get(annotator, 0) + n_unanswered
        return is_answered_by_all


def _total_s(spans: Spans) -> float:
    """Add up the lengths of spans [S, 2]."""
    return float(np.diff(spans).sum())


def _annotators_past_end(film: Timeline, spans_of: Mapping[str, Spans]) -> list[str]:
    """Return a note for each annotator whose marks go past a film's end, where they are cut.

    Raises
    ------
    FilmError
        A mark begins after the end.
    """
    film_s = film.record.duration_s
    latest_s = film_s + 1  # an end may be rounded up to the next second
    notes = []
    for annotator, spans in spans_of.items():
        last_start_s = spans[-1, 0] if len(spans) else 0.0
        if last_start_s > latest_s:
            where = f"film {film.movie} lasts {film_s:g} s, and {annotator} marks it from {last_start_s:g} s"
            raise FilmError(f"{where}: is this another cut, or does its time code not begin at 0?")
        last_end_s = ends(spans)
        if last_end_s > latest_s:
            notes.append(f"{film.movie} ({annotator}: {last_end_s:g} s)")
    return notes


def compare_marks(
    machine: Mapping[str, Marks],
    humans: Mapping[str, Mapping[str, Marks]],
    *,
    name: str,
    collars: Sequence[float] = COLLARS_S,
    n_shifts: int = N_SHIFTS,
    record: Mapping[str, object] | None = None,
) -> FilmEvaluation:
    """Measure the marks of a model, of annotators and of baselines against each annotator.

    Each annotator is the truth once. The raters that are measured against it are the model, the other
    annotators, and the baselines, one of which is the model's own timeline moved in time.

    Parameters
    ----------
    machine : mapping
        Film -> the model's marks.
    humans : mapping
        Film -> annotator -> the annotator's marks.
    name : str
        Name of the model in the tables.
    collars : sequence of float
        Tolerances of starts and ends of segments, in seconds.
    n_shifts : int
        Random circular shifts in time of the model's marks in each film.
    record : mapping, optional
        Facts about the comparison, for `FilmEvaluation.record`.
    """
    rows: list[_FilmRow] = []
    values_of_shifts: _ValuesOfShifts = {}
    annotators = sorted({annotator for marks_of_film in humans.values() for annotator in marks_of_film})
    for truth in annotators:
        watched = [movie for movie in machine if truth in humans[movie]]
        # The annotator's rate of each film, for the baseline that predicts their mean rate in other films.
        # All rates are compared over the same films: those of which the model has a rate.
        truth_rates = {}
        for movie in watched:
            model_has_rate = not np.isnan(machine[movie].rate)
            if model_has_rate:
                truth_rates[movie] = humans[movie][truth].rate

        for movie in watched:
            # The model, the other annotators and the baselines
            metrics_of_rater = _measure_film(
                truth,
                machine[movie],
                humans[movie],
                name=name,
                prior_rate=_mean_of_others(truth_rates, movie),
                collars=collars,
            )
            for rater, metrics in metrics_of_rater.items():
                rows += [_FilmRow(truth, rater, movie, metric, value) for metric, value in metrics.items()]

            # The model moved in time, by the same shifts whoever is the reference
            rng = np.random.default_rng([SEED, *movie.encode()])
            shifted_metrics = _shifted_metrics(humans[movie][truth], machine[movie], collars, n_shifts, rng)
            for metric, shifted_values in shifted_metrics.items():
                mean_of_shifts = float(np.mean(shifted_values))
                rows.append(_FilmRow(truth, SHIFTED, movie, metric, mean_of_shifts))
                is_defined = not np.isnan(metrics_of_rater[name][metric])
                if is_defined:  # p compares means over the films in which the metric is defined
                    values_of_shifts.setdefault((truth, metric), []).append(shifted_values)

    by_film = pd.DataFrame(rows, columns=list(_FilmRow._fields))
    return FilmEvaluation(by_film, _summary(by_film, values_of_shifts, name), record or {})


class _FilmRow(NamedTuple):
    """A row of `FilmEvaluation.by_film`."""

    truth: str
    who: str
    movie: str
    metric: str
    value: float


def _mean_of_others(rates: Mapping[str, float], movie: str) -> float:
    """Average the rates (movie -> rate) of all films but one; NaN if there is no other."""
    other_rates = [rate for other, rate in rates.items() if other != movie]
    return float(np.mean(other_rates)) if other_rates else np.nan


def _measure_film(
    truth: str,
    model_marks: Marks,
    human_marks_of: Mapping[str, Marks],
    *,
    name: str,
    prior_rate: float,
    collars: Sequence[float],
) -> dict[str, dict[str, float]]:
    """Measure the model, the other annotators and the baselines against one annotator in one film.

    Parameters
    ----------
    truth : str
        The annotator who is the reference.
    model_marks : Marks
    human_marks_of : mapping
        Annotator -> marks in this film.
    name : str
        Name of the model.
    prior_rate : float
        Rate that the baseline `PRIOR` predicts: the reference's mean rate in the other films, of which only
        those count that the model gives a rate; NaN if there are none.
    collars : sequence of float
        Tolerances of boundaries, in seconds.

    Returns
    -------
    dict
        Rater -> metric -> value. The baseline `PRIOR`, which knows no places, has the metrics of rates alone.
        The reference has its rate alone. If the model has no rate of the film, all `RATES` are NaN.
    """
    # Whose marks are measured: the model, the other annotators, and two baselines that mark all seconds or
    # none. The keys are the names of raters in the tables.
    reference = human_marks_of[truth]
    n_seconds = len(reference.seconds)
    marks_of_rater = {name: model_marks}
    for annotator, marks in human_marks_of.items():
        if annotator != truth:
            marks_of_rater[HUMAN + annotator] = marks
    marks_of_rater[ALL] = _marks_of_all(n_seconds)
    marks_of_rater[NONE] = _marks_of_none(n_seconds)

    spans_of_annotators = [marks.segments for marks in human_marks_of.values()]
    metrics_of_rater = {}
    for rater, marks in marks_of_rater.items():
        metrics_of_rater[rater] = film_metrics(reference, marks, spans_of_annotators, collars)
    metrics_of_rater[PRIOR] = _rate_metrics(reference, prior_rate)
    metrics_of_rater[HUMAN + truth] = {"rate": reference.rate}

    # All raters' means of rates shall be over the same films: without the model's rate, nobody has one.
    model_has_rate = not np.isnan(model_marks.rate)
    if not model_has_rate:
        for metrics in metrics_of_rater.values():
            for metric in RATES:
                if metric in metrics:
                    metrics[metric] = np.nan
    return metrics_of_rater


def _marks_of_all(n: int) -> Marks:
    """Return the marks of the baseline that marks all n seconds."""
    segments = np.array([[0.0, n]])
    return Marks(seconds=np.ones(n, np.bool_), segments=segments, rate=1.0, scores=np.ones(n))


def _marks_of_none(n: int) -> Marks:
    """Return the marks of the baseline that marks none of n seconds."""
    return Marks(seconds=np.zeros(n, np.bool_), segments=np.empty((0, 2)), rate=0.0, scores=np.zeros(n))


def _rate_metrics(reference: Marks, rate: float) -> dict[str, float]:
    """Compute the metrics of a rate: itself, and its distance from that of the reference."""
    return {"rate": rate, "rate_error": abs(rate - reference.rate)}


def film_metrics(
    reference: Marks, estimated: Marks, references: Sequence[Spans], collars: Sequence[float]
) -> dict[str, float]:
    """Compute every metric of one film.

    Parameters
    ----------
    reference : Marks
        Marks of the annotator who is the reference.
    estimated : Marks
        The marks that are measured.
    references : sequence of ndarray, shape [S, 2]
        Segments of each annotator of the film, for the precision of ranked segments (`top_precision`).
    collars : sequence of float
        Tolerances of boundaries, in seconds.
    """
    metrics = _placement_metrics(reference, estimated, collars)
    if estimated.listed is not None:  # only a model ranks its segments
        probabilities = estimated.listed["p"]
        ranked = _spans(estimated.listed)
        precisions = [
            segment_ap(reference.segments, ranked, probabilities, threshold) for threshold in THRESHOLDS
        ]
        metrics["segment_map"] = float(np.mean(precisions))
        metrics[f"top{TOP}_precision"] = top_precision(references, ranked, TOP)
        metrics[f"top{TOP}_within_reach"] = reachable_top_precision(references, ranked, TOP, min_s=MIN_S)
    metrics |= _rate_metrics(reference, estimated.rate)
    return metrics


def _placement_metrics(reference: Marks, estimated: Marks, collars: Sequence[float]) -> dict[str, float]:
    """Compute the metrics that depend on where in the film the seconds and segments lie.

    Parameters
    ----------
    reference : Marks
        Marks of the annotator who is the reference.
    estimated : Marks
        The marks that are measured, in the same seconds.
    collars : sequence of float
        Tolerances of boundaries, in seconds.
    """
    scores = estimated.scores
    if scores is None:  # an annotator's marks are ranked as marked, then not marked
        scores = estimated.seconds.astype(np.float64)
    is_marked = reference.seconds.astype(np.int64)
    metrics = {
        "second_ap": average_precision(is_marked, scores),
        "second_auc": auc(is_marked, scores),
        "second_f1": second_f1(reference.seconds, estimated.seconds),
        "kappa": kappa(reference.seconds, estimated.seconds),
    }
    for threshold in THRESHOLDS:
        f1_of_segments = segment_f1(reference.segments, estimated.segments, threshold)
        metrics[f"segment_f1_{threshold:g}"] = f1_of_segments
    for collar_s in collars:
        f1_of_boundaries = boundary_f1(reference.segments, estimated.segments, collar_s)
        metrics[f"boundary_f1_{collar_s:g}s"] = f1_of_boundaries
    return metrics


def _shifted_metrics(
    reference: Marks, estimated: Marks, collars: Sequence[float], n_shifts: int, rng: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    """Measure random circular shifts of a timeline against the reference; return metric -> values [shifts].

    A shifted timeline has the same segments as the original at other judged seconds.
    """
    n_seconds = len(estimated.seconds)
    possible_shifts_s = _shifts_of_whole_segments(estimated.segments, n_seconds)
    values: dict[str, list[float]] = {}
    for shift_s in rng.choice(possible_shifts_s, size=n_shifts):
        shifted_marks = Marks(
            seconds=np.roll(estimated.seconds, shift_s),
            segments=_shifted_spans(estimated.segments, float(shift_s), n_seconds),
            rate=estimated.rate,
            scores=None if estimated.scores is None else np.roll(estimated.scores, shift_s),
        )
        for metric, value in _placement_metrics(reference, shifted_marks, collars).items():
            values.setdefault(metric, []).append(value)
    return {metric: np.array(metric_values) for metric, metric_values in values.items()}


def _shifts_of_whole_segments(segments: Spans, n: int) -> NDArray[np.intp]:
    """List the circular shifts of n seconds, by 0 to n - 1 s, that cut no segment in two at the end.

    A model's timeline is compared with itself, shifted: it is better than chance if it matches the annotator
    better than its shifts do. Two halves of a segment match less well than the whole. A shift that cuts one
    would do worse for this reason alone, and so the model would seem better than it is.

    The shift by 0, which changes nothing, is in the list. If there are few others, many of the random shifts
    do exactly as well as the model, and its p-value cannot be small: so few shifts show little.

    Parameters
    ----------
    segments : ndarray, shape [S, 2]
        The segments of the timeline, within 0 and n seconds.
    n : int
        Length of the circle, in seconds.
    """
    shifts_s = np.arange(n)
    cut_at_s = n - shifts_s  # a circular shift moves this time to the end of the n seconds
    cuts_a_segment = np.zeros(n, np.bool_)
    for start_s, end_s in segments:
        cuts_a_segment |= (start_s < cut_at_s) & (cut_at_s < end_s)
    return np.flatnonzero(~cuts_a_segment)


def _shifted_spans(spans: Spans, shift_s: float, n: int) -> Spans:
    """Shift spans [S, 2] circularly in n seconds, by a shift that cuts none in two at the end."""
    starts = (spans[:, 0] + shift_s) % n
    ends_of_spans = starts + spans[:, 1] - spans[:, 0]
    return np.column_stack([starts, ends_of_spans])


class _SummaryRow(NamedTuple):
    """A row of `FilmEvaluation.summary`."""

    truth: str
    who: str
    metric: str
    value: float
    low: float
    high: float
    n_films: int
    p: float = np.nan


def _summary(by_film: pd.DataFrame, values_of_shifts: _ValuesOfShifts, name: str) -> pd.DataFrame:
    """Summarize all films: means with intervals, correlations of rates, and the model's p-values.

    Parameters
    ----------
    by_film : DataFrame
        A row for each value: `truth` (the annotator who is the reference), `who` (the rater, such as the
        model), `movie`, `metric` and `value`.
    values_of_shifts : dict
        Reference and metric -> the metric's values under random shifts of the model's marks, film by film.
    name : str
        Name of the model.
    """
    rows: list[_SummaryRow] = []
    for (truth, rater, metric), of_films in by_film.groupby(["truth", "who", "metric"], sort=False):
        values = of_films["value"].to_numpy(dtype=np.float64)
        mean = _mean_over_films(str(rater), str(metric), values)
        row = _SummaryRow(
            truth=str(truth),
            who=str(rater),
            metric=str(metric),
            value=mean.mean,
            low=mean.low,
            high=mean.high,
            n_films=mean.n_movies,
        )
        # Metrics that do not depend on places in a film, such as the rate, have no shifts.
        shifts = values_of_shifts.get((row.truth, row.metric))
        if row.who == name and shifts is not None and not np.isnan(row.value):
            row = row._replace(p=_p_value(row.value, np.array(shifts)))
        rows.append(row)
    rows += _rank_rows(by_film)
    return pd.DataFrame(rows, columns=list(_SummaryRow._fields))


def _mean_over_films(rater: str, metric: str, values: NDArray[np.float64]) -> Interval:
    """Average a rater's values of a metric over films [N], with a 95 % interval.

    If all films have the same value by chance, there is no interval, as nothing is known of how films differ.
    Some baselines have the same value in every film by definition: the kappa of marking all seconds is
    always 0. Their interval is this value alone.
    """
    lowest = -1.0 if metric == "kappa" else 0.0
    constant = CONSTANT.get((rater, metric))
    only_possible_values = None if constant is None else (constant, constant)  # the least, and the largest
    return t_interval(values, bounds=(lowest, 1.0), possible=only_possible_values)


def _p_value(mean: float, values_of_shifts: NDArray[np.float64]) -> float:
    """Compute how often shifted timelines do at least as well as the model (Phipson and Smyth 2010).

    Parameters
    ----------
    mean : float
        The model's mean over films.
    values_of_shifts : ndarray, shape [films, shifts]
        Of the films where the metric is defined. There it is defined for every shift too.
    """
    means_of_shifts = values_of_shifts.mean(axis=0)  # [shifts]
    n_as_good = int((means_of_shifts >= mean - ROUNDING).sum())
    return (1 + n_as_good) / (1 + len(means_of_shifts))


def _rank_rows(by_film: pd.DataFrame) -> Iterator[_SummaryRow]:
    """Yield rows of the summary for `rate_rank`: how well a rater's rates order films as an annotator does.

    The value is Spearman's correlation over films. Its interval comes from leaving out one film at a time.

    Parameters
    ----------
    by_film : DataFrame
        A row per film, metric, annotator who is the truth (column `truth`) and rater who is measured against
        them (`who`). The annotator's own rates are in it too, with `human: ` before the name in `who`.
    """
    orders_films = ~by_film["who"].isin(BASELINES)  # these give all films the same marks
    rates = by_film[(by_film["metric"] == "rate") & orders_films]
    for truth, rates_by_truth in rates.groupby("truth", sort=False):
        rates_of_rater = rates_by_truth.pivot_table(  # a row per film, a column per rater
            values="value", index="movie", columns="who", sort=False, dropna=False
        )
        reference = f"{HUMAN}{truth}"  # the column of the annotator's own rates
        for rater in rates_of_rater.columns.drop(reference):
            pairs = rates_of_rater[[rater, reference]].dropna().to_numpy(dtype=np.float64)  # [films, 2]
            n_films = len(pairs)
            correlation = jackknife_interval(
                partial(_rank_correlation, pairs),
                np.arange(n_films),  # each film is a group, which is left out once
                bounds=(-1.0, 1.0),
            )
            # `mean` is the correlation over all films. Over two films it is 1 or -1 whatever their rates.
            value = correlation.mean if n_films > 2 else np.nan
            yield _SummaryRow(
                truth=str(truth),
                who=str(rater),
                metric="rate_rank",
                value=value,
                low=correlation.low,
                high=correlation.high,
                n_films=n_films,
            )


def _rank_correlation(pairs: NDArray[np.float64], is_in: NDArray[np.bool_]) -> float:
    """Compute Spearman's correlation of pairs of rates [films, 2], over some of the films."""
    first, second = pairs[is_in].T
    return spearman(first, second)


def evaluation_report(measured: FilmEvaluation) -> Report:
    """Make the report of an evaluation.

    It has two tables for each annotator as the reference: the metrics of each rater, and the model's metrics
    film by film. Notes say how to read them, and what was left out.
    """
    record = measured.record
    summary = measured.summary
    model = str(record.get("model", "model"))
    annotators = [str(truth) for truth in dict.fromkeys(summary["truth"])]
    blocks: list[Block] = []
    claims = []
    for truth in annotators:
        claims.append(_agreement_claim(measured, model, truth))
        blocks.append(_metrics_block(truth, measured, model))
        blocks.append(_films_block(truth, measured, model))
    return Report(
        name="film-agreement",
        title=f"Timelines of {model} against {', '.join(annotators)}",
        notes=tuple(_notes(record, summary)),
        blocks=tuple(blocks),
        data=pd.concat([summary.assign(movie=""), measured.by_film], ignore_index=True),
        record={**record, "claims": [document(claim) for claim in claims]},
        answers=tuple(sentences(claims)),
    )


def _agreement_claim(measured: FilmEvaluation, model: str, truth: str) -> TimelineAgreement:
    """Claim how far the model agrees with an annotator (`truth`): its mean kappa over films.

    The claim covers the films where the kappa is defined, or all films if it is defined in none.
    """
    # The tables have a row for each annotator (`truth`), each who is compared with them, and each metric.
    kappa_of_model = {"truth": truth, "who": model, "metric": "kappa"}
    (mean_over_films,) = _rows_with(measured.summary, kappa_of_model).to_dict("records")

    rows_of_films = _rows_with(measured.by_film, kappa_of_model)
    rows_with_kappa = rows_of_films[rows_of_films["value"].notna()]
    covered = rows_of_films if rows_with_kappa.empty else rows_with_kappa
    movies = list(covered["movie"])
    seconds = _seconds(measured.record, movies)
    has_unanswered_time = bool(measured.record["unanswered_s"])  # annotator -> seconds, of those who left any
    return timeline_agreement(
        model,
        truth,
        row=mean_over_films,
        n_films=len(movies),
        judged_s=seconds.judged,
        whole_s=seconds.film,
        is_all_answered=not has_unanswered_time,
    )


def _rows_with(table: pd.DataFrame, values: Mapping[str, str]) -> pd.DataFrame:
    """Select the rows of a table in which some columns have these values (column -> value)."""
    is_selected = np.ones(len(table), np.bool_)
    for column, value in values.items():
        is_selected &= (table[column] == value).to_numpy()
    return table[is_selected]


class _Seconds(NamedTuple):
    """How many whole seconds of films are compared, and how many the films have."""

    judged: int
    film: int


def _seconds(record: Mapping[str, Any], movies: Sequence[str]) -> _Seconds:
    """Add up the seconds that are compared, and all seconds, of some films.

    `record` is that of an evaluation (`FilmEvaluation.record`).
    """
    seconds_of = record["seconds"]
    judged = sum(seconds_of[movie]["judged"] for movie in movies)
    film = sum(seconds_of[movie]["film"] for movie in movies)
    return _Seconds(judged, film)


def _metrics_block(truth: str, measured: FilmEvaluation, model: str) -> Block:
    """Make the table of metrics against one annotator: a row for each metric, a column for each rater.

    Parameters
    ----------
    truth : str
        The annotator, with whose marks all raters are compared.
    measured : FilmEvaluation
        Its tables say in the column `who` which rater has a value: the model, a baseline, or another
        annotator, such as `human: AB`.
    model : str
        Name of the model, whose p against chance is the last column.
    """
    summary = _rows_with(measured.summary, {"truth": truth})
    by_film = _rows_with(measured.by_film, {"truth": truth})
    n_films = by_film["movie"].nunique()
    truth_as_rater = HUMAN + truth  # the annotator's own rates, which are compared with nothing
    raters = [rater for rater in dict.fromkeys(summary["who"]) if rater != truth_as_rater]
    summary_of = {(row.who, row.metric): row for row in summary.itertuples(index=False)}
    rows = []
    for metric in dict.fromkeys(summary["metric"]):
        cells = [_title(str(metric))]
        cells += [_mean_cell(summary_of.get((rater, metric)), n_films) for rater in raters]
        cells.append(_p_cell(summary_of.get((model, metric))))
        rows.append(tuple(cells))

    headers = ("metric", *(TITLES.get(rater, rater) for rater in raters), "p")
    human_raters = [rater for rater in raters if str(rater).startswith(HUMAN)]
    notes = _notes_of_metrics(summary, by_film, model, human_raters, measured.record)
    return Block(f"Truth: {truth}", headers, tuple(rows), tuple(notes))


def _mean_cell(row: Any, n_films: int) -> str:
    """Write a rater's mean of a metric with its interval, from a row of the summary; "" without a row (None).

    The number of films is added if it is smaller than the table's `n_films`.
    """
    if row is None:
        return ""
    text = interval(row.value, row.low, row.high)
    has_fewer_films = row.n_films < n_films and not pd.isna(row.value)
    return f"{text} ({row.n_films})" if has_fewer_films else text


def _p_cell(row: Any) -> str:
    """Write the p of a row of the summary; "" without a row (None), or if it has none."""
    if row is None or pd.isna(row.p):
        return ""
    return number(row.p)


def _notes_of_metrics(
    summary: pd.DataFrame,
    by_film: pd.DataFrame,
    model: str,
    human_raters: Sequence[str],
    record: Mapping[str, Any],
) -> list[str]:
    """Write the notes below a table of metrics.

    Parameters
    ----------
    summary, by_film : DataFrame
        The rows of one reference.
    model : str
        Key of the model that is measured.
    human_raters : sequence of str
        Annotators besides the reference.
    record : mapping
        How the evaluation was made (`FilmEvaluation.record`).
    """
    n_films = by_film["movie"].nunique()
    notes = [
        "mean over the films where it is defined, and its 95% interval",
        "rank correlation: one number over these films, whose interval leaves out one film at a time",
        _note_on_p(record),
    ]
    has_fewer_films = (summary["n_films"] < n_films) & summary["value"].notna()
    if has_fewer_films.any():
        notes.append(f"(n): over n of these {n_films} films; columns with other n are not of the same films")
    notes += _notes_on_common_films(by_film, model, human_raters)
    notes += _notes_without_interval(summary, n_films)
    return notes


def _note_on_p(record: Mapping[str, Any]) -> str:
    """Say how p was computed from random shifts of the model in time, and how small it can be.

    A shift moves all that the model says of a film later by a number of seconds; what goes beyond the end
    comes in at the beginning (in a circle). So the model keeps its passages, which then tell nothing of the
    film. If it does as well in b of n shifts, p is (b + 1) / (n + 1): the place in time that it chose itself
    counts too, so that p is never 0.
    """
    n_shifts = record["n_shifts"]
    least = number(1 / (1 + n_shifts))  # if it does as well in none of the shifts
    return (
        f"p: (b + 1) / ({n_shifts} + 1), if the model does as well in b of {n_shifts} moves in time, in a "
        f"circle of the seconds that it can judge; the least it can be is about {least}"
    )


def _notes_on_common_films(by_film: pd.DataFrame, model: str, human_raters: Sequence[str]) -> Iterator[str]:
    """Yield the means of the model and each annotator over the films where both have a value of a metric.

    In the table, each mean is over all films with a value, and these films may be others for the annotator
    than for the model. A metric is left out here if the films are the same, as the table has the means then.

    Parameters
    ----------
    by_film : DataFrame
        A row per film, metric and rater (column `who`), all measured against one annotator.
    model : str
    human_raters : sequence of str
        The other annotators, as they are named in `who`.
    """
    for rater in human_raters:
        means = []
        of_both = by_film[by_film["who"].isin([model, rater])]
        for metric, of_metric in of_both.groupby("metric", sort=False):
            # A row per film, a column per rater. Metrics of ranked segments have no column of an annotator:
            # only the model ranks its segments.
            values = of_metric.pivot_table(values="value", index="movie", columns="who", dropna=False)
            if rater not in values:
                continue

            values_of_both = values.dropna()
            n_common = len(values_of_both)
            either_has_more_films = (values.count() > n_common).any()
            if n_common and either_has_more_films:
                of_model = number(values_of_both[model].mean())
                of_human = number(values_of_both[rater].mean())
                means.append(f"{_title(str(metric))} {of_model} and {of_human} ({n_common})")
        if means:
            yield f"{model} and {rater} in the films where both have a value: {'; '.join(means)}"


def _notes_without_interval(summary: pd.DataFrame, n_films: int) -> Iterator[str]:
    """Say why values have no interval, if any value has none."""
    lacks_interval = summary["value"].notna() & summary["low"].isna()
    if not lacks_interval.any():
        return
    if n_films < MIN_WITH_INTERVAL:
        yield f"{n_films} film{'' if n_films == 1 else 's'}: no interval"
    else:
        yield (
            f"[undefined]: no interval, as fewer than {MIN_WITH_INTERVAL} films have a value, or all have "
            "the same; the rank correlation has none if it is 1 or -1, or undefined without one of the films"
        )


def _films_block(truth: str, measured: FilmEvaluation, model: str) -> Block:
    """Make the table of the model's metrics against one annotator: a row for each film."""
    of_model = _rows_with(measured.by_film, {"truth": truth, "who": model})
    table = of_model.pivot_table(values="value", index="movie", columns="metric", sort=False, dropna=False)
    headers = ("film", "seconds compared", *(_title(str(metric)) for metric in table.columns))
    rows = []
    for movie, values in zip(table.index, table.to_numpy(dtype=np.float64), strict=True):
        seconds = _seconds(measured.record, [str(movie)])
        cells = [number(value) for value in values.tolist()]
        rows.append((str(movie), f"{seconds.judged} of {seconds.film}", *cells))
    return Block(f"{model}, film by film; truth: {truth}", headers, tuple(rows))


def _title(metric: str) -> str:
    """Return the title of a metric, such as "boundaries, 5 s" of `boundary_f1_5s`."""
    if metric.startswith("boundary_f1_"):
        collar_s = metric.removeprefix("boundary_f1_").removesuffix("s")
        return f"boundaries, {collar_s} s"
    return TITLES.get(metric, metric)


def _notes(record: Mapping[str, Any], summary: pd.DataFrame) -> Iterator[str]:
    """Yield the report's notes: what is compared, how to read the metrics, and what was left out."""
    yield _note_on_seconds(record)
    yield _note_on_positive(record)
    yield _note_on_people(summary)
    yield from _notes_on_segments(record)
    yield from _notes_on_films_left_out(record)
    yield from _notes_on_marks_left_out(record)
    yield from _notes_on_films_without_rate(record)


def _note_on_positive(record: Mapping[str, Any]) -> str:
    """Say which clips are positive."""
    positive = ", ".join(record["positive"])
    which = "with the concept" if record["is_concept"] else "of level"
    return f"Positive: clips {which} {positive}; negative: all others of these seconds in an annotated film."


def _notes_on_segments(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield how the metrics of segments and of their boundaries are measured.

    Four notes: on F1; on boundaries; on the precision of the model's strongest passages; and on mean average
    precision over several overlaps with the true segments. The precision of a list can be low because
    annotators marked little. So the third note also explains what is "within reach": the precision of a list
    of this length that has one right passage in each marked span.
    """
    yield (
        "F1 of segments and boundaries, matched one to one: the model's are its passages, which go on over "
        f"gaps of up to {GAP_S:g} s and last {MIN_S:g} s or more; an annotator's are as they were marked, "
        "short ones too, and those that touch are one. Of both, only what the model can judge counts."
    )
    collars = " or ".join(f"{collar_s:g}" for collar_s in record["collars"])
    yield (
        f"boundaries: starts differ by at most {collars} s; ends by that or {OFFSET_SHARE:.0%} of the length "
        "of the true span, whichever is more."
    )
    yield (
        f"top {TOP} precision: of the model's strongest passages, {TOP} at most, which may be below its "
        "threshold, those of which annotators together marked half or more. Within reach: that of a list as "
        f"long with one passage in each span of {HALF * MIN_S:g} s or more that they marked in the time that "
        "the model can judge, or with every right passage that the model lists, if these are more."
    )
    thresholds = ", ".join(f"{threshold:g}" for threshold in THRESHOLDS)
    yield (
        f"segment mAP: average precision of the model's {N_LISTED} strongest passages at most, those below "
        f"its threshold too, matched one to one with the true ones; mean over tIoU {thresholds}."
    )


def _notes_on_films_left_out(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield which films are left out, or cut, and why."""
    trained_on: Sequence[str] = record["trained_on"]
    if trained_on:
        names = ", ".join(trained_on)
        yield message("note_films", what=message("films_trained"), n=len(trained_on), names=names)
    for name, text in NOTES_ON_FILMS.items():
        films: Sequence[str] = record[name]
        if films:
            yield f"{text}: {', '.join(films)}"


def _notes_on_marks_left_out(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence on each annotator's marks that do not count, and why they do not.

    Parameters
    ----------
    record : mapping
        `FilmEvaluation.record`. In five of its fields, each annotator concerned has a number.
    """
    model = record["model"]
    positive = ", ".join(record["positive"])  # names of the levels, or of the concept, that are positive
    unjudged_s_of = record["unjudged_marks_s"]  # seconds marked where the model has no probability
    unanswered_s_of = record["unanswered_s"]  # seconds that the annotator did not answer for
    n_in_sight_of = record["in_sight"]  # labels given with a model's score in sight
    n_without_concepts_of = record["without_concepts"]  # labels of somebody who names no concept
    n_unlabelled_of = record["unlabelled"]  # clips without a label

    for annotator, seconds in unjudged_s_of.items():
        if seconds >= MIN_SAID_S:
            where = f"lie where {model} cannot judge, and do not count"
            yield f"{annotator}: {rounded(seconds)} s marked as {positive} {where}"

    for annotator, n_seconds in unanswered_s_of.items():
        saw_score = "labelled with a model's score in sight, " if annotator in n_in_sight_of else ""
        yield (
            f"{annotator}: {n_seconds} s have no answer, and do not count, for anybody: not sure, {saw_score}"
            "or not marked by somebody who marks what is negative too"
        )

    # Of an annotator who marks only what they find, blind labels of the same film do not count either.
    for annotator, n_labels in n_in_sight_of.items():
        labels = "1 label was" if n_labels == 1 else f"{n_labels} labels were"
        yield (
            f"{annotator}: {labels} left out: given with a model's score in sight, which makes people agree "
            "with it, or beside such ones in a film of which only what is found was marked"
        )

    for annotator, n_labels in n_without_concepts_of.items():
        yield left_out_message(n_labels, message("why_no_concept", who=annotator, concept=positive))

    lacking = "neither level nor concept" if record["is_concept"] else "no level"
    for annotator, n_clips in n_unlabelled_of.items():
        clips = "1 clip has" if n_clips == 1 else f"{n_clips} clips have"
        verb = "is" if n_clips == 1 else "are"
        yield f"{annotator}: {clips} {lacking} and {verb} left out, as if not there"


def _notes_on_films_without_rate(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the films of which the model has no rate, by reason."""
    reason_of: Mapping[str, str] = record["without_rate"]
    for reason in dict.fromkeys(reason_of.values()):
        movies = [movie for movie in reason_of if reason_of[movie] == reason]
        yield f"no rate, and so left out of everybody's rates ({reason}): {', '.join(movies)}"


def _note_on_people(summary: pd.DataFrame) -> str:
    """Say what the columns of other annotators are, or why there are none.

    Another annotator than the one whose labels are the truth is measured like the model: so a reader sees how
    far people agree. There is none if only one annotator labelled, or if no two labelled the same film.
    """
    is_human = summary["who"].str.startswith(HUMAN)
    is_another = is_human & (summary["who"] != HUMAN + summary["truth"])
    if is_another.any():
        return (
            "'human' is another annotator, in the films that both watched and where the value is defined (F1 "
            "and kappa are not where both mark nothing, nor kappa where both mark all, nor AP where the "
            "truth marks nothing, nor AUC where it marks nothing or all): a yardstick, not an upper bound."
        )
    if len(set(summary["truth"])) == 1:
        return "One annotator only: nothing says how far people agree on these films."
    return "No film has two annotators: nothing says how far people agree on these films."


def _note_on_seconds(record: Mapping[str, Any]) -> str:
    """Say which seconds the numbers are of, and how many they are.

    Only seconds that the model can judge count, and, if some annotator left any of them without an answer,
    only those that all annotators answered for. The others are left out as if they were cut out of the film:
    what is before them is then next to what is after them. Each second has the label that it has at its
    middle.
    """
    movies = record["films"]
    seconds = _seconds(record, movies)
    films = "1 film" if len(movies) == 1 else f"{len(movies)} films"
    has_unanswered_time = bool(record["unanswered_s"])  # annotator -> seconds, of those who left any
    answered = " and annotators answered for" if has_unanswered_time else ""
    return (
        f"All numbers, those of annotators and baselines too, are of the seconds that {record['model']} can "
        f"judge{answered}: {seconds.judged} of the {seconds.film} s of {films}. They are counted one after "
        "the other, as if the rest of a film were cut out, and each as it is at its middle."
    )
