"""Measure timelines and annotators of films against each other, and report it.

All of it is of the seconds that the model can judge, so that every number of a film is of the same time: the
model's, the annotators', the baselines', and those of the model moved in time.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.manifest import Manifest, name_hint, refuse_twins
from obygaze_features.templates import packaged
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
    top_precision,
)
from obygaze_film.claims import document, sentences
from obygaze_film.claims.kinds import TimelineAgreement
from obygaze_film.claims.of_groups import LEAST_WITH_INTERVAL, timeline_agreement
from obygaze_film.errors import FilmError
from obygaze_film.film_time import LEAST_SAID_S
from obygaze_film.judged_clock import JudgedClock
from obygaze_film.notes import message
from obygaze_film.positive import Positive, positive_of
from obygaze_film.schema import Spans, is_counted
from obygaze_film.segments import GAP_S, MIN_S
from obygaze_film.timeline import Timeline, shared_model
from obygaze_models.evaluation import auc, average_precision, jackknife_interval, spearman, t_interval
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
"""Metrics of rates, which nobody has of a film of which the model has none: means are of the same films."""

ALL = "all"
"""Baseline that marks every second."""

NONE = "none"
"""Baseline that marks no second."""

PRIOR = "movie_prior"
"""Baseline that knows the annotator's mean share in the other films, and no places."""

HUMAN = "human: "
"""Begins the name of an annotator who is measured against another."""

SHIFTED = "shifted"
"""Baseline: the model's own timeline, shifted in time."""

BASELINES = (ALL, NONE, PRIOR)
"""Baselines whose marks do not depend on the film."""

CONSTANT = {(ALL, "kappa"), (ALL, "second_auc"), (NONE, "kappa"), (NONE, "second_auc")}
"""Baselines and metrics that have one value in all films, whatever annotators mark: no film can differ."""

TITLES: Mapping[str, str] = packaged(__package__, "assets/evaluation.toml")
"""Titles of metrics and baselines."""


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


def annotated(truth: Manifest, positive: Positive, ids: Sequence[str] = ()) -> dict[str, dict[str, Spans]]:
    """Collect positive spans by film and annotator; annotators without any are included.

    Films are named as in `ids`, however the truth spells them. Clips that are not annotated
    (`Positive.is_labelled`) are left out.

    Raises
    ------
    FilmError
        The codebook lacks the levels or the concept, an annotated clip has no span, or annotators differ in
        case alone.
    """
    unknown = positive.first_unknown_name(truth.codebook)
    if unknown:
        kind = "concept" if positive.is_concept else "level"
        raise FilmError(
            f"the model calls {unknown!r} positive, which is no {kind} of the truth's codebook "
            f"{truth.codebook.name!r}"
        )
    spans_of: dict[str, dict[str, list[tuple[float, float]]]] = {}  # movie -> annotator -> positive spans
    places_of: dict[str, tuple[object, str]] = {}  # annotator -> where the name was found first, for errors
    for clip in truth.spelled_as(ids):
        if not positive.is_labelled(clip):
            continue
        if clip.start_s is None or clip.end_s is None:
            raise FilmError(f"clip {clip.clip_id} of the truth has no span: start_s and end_s are needed")
        annotator = clip.annotator or "annotator"
        places_of.setdefault(annotator, ("the truth", f"clip {clip.clip_id}"))
        spans_of_annotator = spans_of.setdefault(clip.movie, {}).setdefault(annotator, [])
        if positive.is_positive(clip, truth.codebook.labels):
            spans_of_annotator.append((clip.start_s, clip.end_s))
    refuse_twins("annotator", places_of)  # names that differ in case alone
    merged_spans_of = {}
    for movie, by_annotator in spans_of.items():
        merged_spans_of[movie] = {annotator: merged(spans) for annotator, spans in by_annotator.items()}
    return merged_spans_of


def count_unlabelled(truth: Manifest, positive: Positive) -> dict[str, int]:
    """Count the clips of each annotator that are not annotated (`Positive.is_labelled`), if there are any."""
    n_of: dict[str, int] = {}
    for clip in truth:
        if not positive.is_labelled(clip):
            annotator = clip.annotator or "annotator"
            n_of[annotator] = n_of.get(annotator, 0) + 1
    return n_of


def ends(spans: Spans) -> float:
    """Return the end of the last span; 0 without any."""
    return float(spans[:, 1].max()) if len(spans) else 0.0


def human_marks(spans: Spans, n: int) -> Marks:
    """Collect an annotator's marks in a film of n judged seconds.

    The `spans` [S, 2] are in time order and don't overlap.
    """
    seconds = seconds_in(spans, n)
    return Marks(seconds, spans, float(seconds.mean()))


class ModelMarks(NamedTuple):
    """A model's marks in a film, and the clock of the seconds that it can judge."""

    marks: Marks
    clock: JudgedClock


def marks_of(film: Timeline, key: str | None) -> ModelMarks:
    """Collect a model's marks in the seconds of a film that it can judge.

    Each second has the call and the probability of the row that its middle lies in. It is judged if there is
    a probability.
    """
    rows = film.rows(key)
    n_seconds = max(1, math.floor(film.record.duration_s + 0.5))  # seconds whose middle lies in the film
    row_of_second = _row_of_each_second(_spans(rows), n_seconds)
    is_in_row = row_of_second >= 0
    has_p = is_counted(rows)
    clock = JudgedClock(is_in_row & has_p[row_of_second])
    row_of_judged = row_of_second[clock.is_judged]  # of each second by the clock
    called = rows["called"].to_numpy(dtype=np.float64, na_value=np.nan)
    p = rows["p"].to_numpy(dtype=np.float64)
    listed = film.segments(key, top=N_LISTED)
    passages = listed[listed["reaches"] == 1]  # the others are weaker: ranked, and not marked
    passages_by_time = passages.sort_values("start_s")
    rate = film.rate(key).value
    marks = Marks(
        seconds=called[row_of_judged] == 1,
        segments=clock.spans(_spans(passages_by_time)),
        rate=np.nan if rate is None else rate,
        scores=p[row_of_judged],
        listed=_by_clock(listed, clock),
    )
    return ModelMarks(marks, clock)


def _row_of_each_second(rows: Spans, n_seconds: int) -> NDArray[np.intp]:
    """Find the row [R, 2] that the middle of each second lies in; -1 if it lies in none. Rows are by time."""
    middles = np.arange(n_seconds) + 0.5
    n_begun = np.searchsorted(rows[:, 0], middles, side="right")
    last_begun = np.maximum(n_begun - 1, 0)
    is_in_row = (n_begun > 0) & (middles < rows[last_begun, 1])
    return np.where(is_in_row, last_begun, -1)


def _spans(table: pd.DataFrame) -> Spans:
    """Return the starts and ends of the rows of a table [S, 2]."""
    return table[["start_s", "end_s"]].to_numpy(dtype=np.float64)


def _by_clock(listed: pd.DataFrame, clock: JudgedClock) -> pd.DataFrame:
    """Move a list of segments to a clock; those without judged time are left out."""
    times = clock.times(_spans(listed))
    moved = listed.assign(start_s=times[:, 0], end_s=times[:, 1])
    return moved[moved["end_s"] > moved["start_s"]]


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

    Each annotator is the reference once; the others are measured like the model. Of a film that the annotator
    watched, the seconds that the model can judge count: those with a probability. Of these the seconds of
    clips that the model calls positive (`positive.positive_of`) are positive, and all others are negative.
    Films that the model was trained on are left out.

    Parameters
    ----------
    films : sequence of Timeline
    truth : Manifest
        Clips with spans. Without annotator names they count as one annotator's.
    key : str, optional
        Model; by default the first that decides.
    collars : sequence of float
        Seconds.
    n_shifts : int
        Circular shifts of each film's judged seconds.

    Raises
    ------
    FilmError
        Different models scored the films; no film is annotated, the model was trained on all that are, or it
        can judge no second of them; the codebook lacks the positive levels, a clip has no span, or a clip
        begins after the end of its film.

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
    model = shared_model(films, key)
    ids = [film.movie for film in films]
    positive = positive_of(model)
    spans_by_film = annotated(truth, positive, ids)  # movie -> annotator -> spans
    annotated_films = [film for film in films if film.movie in spans_by_film]
    # An annotated name that is no film's may be a misspelled one of a film without annotations.
    not_annotated = [movie for movie in ids if movie not in spans_by_film]
    unknown_names = [f"{name}{name_hint(name, not_annotated)}" for name in spans_by_film if name not in ids]
    if not annotated_films:
        raise FilmError(
            f"no scored film is annotated: the films are {', '.join(ids)}; "
            f"the manifest has {', '.join(unknown_names[:5])}"
        )
    trained_on = [film.movie for film in annotated_films if film.model(key).is_trained_on]
    new_films = [film for film in annotated_films if film.movie not in trained_on]
    if not new_films:
        raise FilmError(
            f"{model.key} was trained on all annotated films ({', '.join(trained_on)}): annotate others"
        )
    collected = _CollectedMarks()
    for film in new_films:
        collected.add(film, spans_by_film[film.movie], key)
    if not collected.of_model:
        raise FilmError(
            f"{model.key} can judge no second of the annotated films ({', '.join(collected.seconds)}): "
            "there is nothing to compare"
        )
    record = {
        "model": model.key,
        "positive": list(positive.names),
        "is_concept": positive.is_concept,
        "films": list(collected.of_model),
        "seconds": collected.seconds,
        "left_out": not_annotated,
        "trained_on": trained_on,
        "unjudged_marks_s": collected.unjudged_marks_s,
        "unlabelled": count_unlabelled(truth, positive),
        "not_judged": [movie for movie in collected.seconds if movie not in collected.of_model],
        "not_scored": unknown_names,
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
        Movie -> how many of its whole seconds are `judged`, and how many the `film` has.
    cut : list of str
        Notes on films that are marked beyond their end.
    without_rate : dict
        Movie -> why the model has no rate of it.
    """

    of_model: dict[str, Marks] = field(default_factory=dict)
    of_people: dict[str, dict[str, Marks]] = field(default_factory=dict)
    seconds: dict[str, dict[str, int]] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)
    without_rate: dict[str, str] = field(default_factory=dict)
    _unjudged_s: dict[str, float] = field(default_factory=dict)

    @property
    def unjudged_marks_s(self) -> dict[str, float]:
        """Annotator -> seconds of their marks that lie where the model can judge nothing; sorted by name."""
        return {name: round(self._unjudged_s[name], 3) for name in sorted(self._unjudged_s)}

    def add(self, film: Timeline, spans_of: Mapping[str, Spans], key: str | None) -> None:
        """Add a film: the marks of the model and of its annotators, whose spans are given by name."""
        self.cut += _annotators_past_end(film, spans_of)
        marks, clock = marks_of(film, key)
        film_s = len(clock.is_judged)
        self.seconds[film.movie] = {"judged": clock.n_seconds, "film": film_s}
        for annotator, spans in spans_of.items():
            marked_s = _total_s(np.minimum(spans, film_s))
            judged_s = _total_s(clock.times(spans))
            self._unjudged_s[annotator] = self._unjudged_s.get(annotator, 0.0) + marked_s - judged_s
        if not clock.n_seconds:
            return
        self.of_model[film.movie] = marks
        self.of_people[film.movie] = {
            name: human_marks(clock.spans(spans), clock.n_seconds) for name, spans in spans_of.items()
        }
        if np.isnan(marks.rate):
            self.without_rate[film.movie] = film.rate(key).reason


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
        if len(spans) and spans[-1, 0] > latest_s:
            where = f"film {film.movie} lasts {film_s:g} s, and {annotator} marks it from {spans[-1, 0]:g} s"
            raise FilmError(f"{where}: is this another cut, or does its time code not begin at 0?")
        if ends(spans) > latest_s:
            notes.append(f"{film.movie} ({annotator}: {ends(spans):g} s)")
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

    Parameters
    ----------
    machine : mapping
        Film -> the model's marks.
    humans : mapping
        Film -> annotator -> the annotator's marks.
    name : str
        Name of the model in the tables.
    collars, n_shifts
        As in `evaluate_films`.
    record : mapping, optional
        Facts about the comparison, for `FilmEvaluation.record`.
    """
    rows: list[tuple[object, ...]] = []
    # Truth and metric -> for each film the metric's values under the shifts [shifts].
    values_of_shifts: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
    annotators = sorted({annotator for marks_of_film in humans.values() for annotator in marks_of_film})
    for truth in annotators:
        watched = [movie for movie in machine if truth in humans[movie]]
        # Films without a rate by the model are in nobody's rates.
        rates = {movie: humans[movie][truth].rate for movie in watched if not np.isnan(machine[movie].rate)}
        for movie in watched:
            metrics_of_rater = _measure_film(
                truth,
                machine[movie],
                humans[movie],
                name=name,
                prior_rate=_mean_of_others(rates, movie),
                collars=collars,
            )
            for rater, metrics in metrics_of_rater.items():
                rows += [(truth, rater, movie, metric, value) for metric, value in metrics.items()]
            rng = np.random.default_rng([SEED, *movie.encode()])
            shifted_metrics = _shifted_metrics(humans[movie][truth], machine[movie], collars, n_shifts, rng)
            for metric, shifted_values in shifted_metrics.items():
                rows.append((truth, SHIFTED, movie, metric, float(np.mean(shifted_values))))
                # The model's mean is over the films in which the metric is defined, and so is that of shifts.
                if not np.isnan(metrics_of_rater[name][metric]):
                    values_of_shifts.setdefault((truth, metric), []).append(shifted_values)
    by_film = pd.DataFrame(rows, columns=["truth", "who", "movie", "metric", "value"])
    return FilmEvaluation(by_film, _summary(by_film, values_of_shifts, name), record or {})


def _mean_of_others(rates: Mapping[str, float], movie: str) -> float:
    """Average the rates of all films but one; NaN if there is no other."""
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
        Rate that the baseline `PRIOR` predicts: the reference's mean rate in the other films that have a rate
        by the model; NaN if there are none.
    collars : sequence of float
        Tolerances of boundaries, in seconds.

    Returns
    -------
    dict
        Rater -> metric -> value. The baseline `PRIOR` says nothing of where in a film the marks are: it has a
        rate and its error. The reference has its rate alone. All `RATES` are NaN if the model has no rate.
    """
    reference = human_marks_of[truth]
    marks_of_rater = {name: model_marks}
    for annotator, marks in human_marks_of.items():
        if annotator != truth:
            marks_of_rater[HUMAN + annotator] = marks
    n = len(reference.seconds)
    marks_of_rater[ALL] = Marks(np.ones(n, np.bool_), np.array([[0.0, n]]), rate=1.0, scores=np.ones(n))
    marks_of_rater[NONE] = Marks(np.zeros(n, np.bool_), np.empty((0, 2)), rate=0.0, scores=np.zeros(n))
    spans_of_annotators = [marks.segments for marks in human_marks_of.values()]
    metrics_of_rater = {}
    for rater, marks in marks_of_rater.items():
        metrics_of_rater[rater] = film_metrics(reference, marks, spans_of_annotators, collars)
    metrics_of_rater[PRIOR] = _rate_metrics(reference, prior_rate)
    metrics_of_rater[HUMAN + truth] = {"rate": reference.rate}
    if np.isnan(model_marks.rate):
        for metrics in metrics_of_rater.values():
            metrics.update({metric: np.nan for metric in RATES if metric in metrics})
    return metrics_of_rater


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
        Segments of each annotator of the film: a ranked segment counts as right if it is one of theirs.
    collars : sequence of float
        Tolerances of boundaries, in seconds.
    """
    metrics = _placement_metrics(reference, estimated, collars)
    if estimated.listed is not None:
        probabilities = estimated.listed["p"]
        ranked = _spans(estimated.listed)
        precisions = [
            segment_ap(reference.segments, ranked, probabilities, threshold) for threshold in THRESHOLDS
        ]
        metrics["segment_map"] = float(np.mean(precisions))
        metrics[f"top{TOP}_precision"] = top_precision(references, ranked, TOP)
        metrics[f"top{TOP}_within_reach"] = reachable_top_precision(references, ranked, TOP, least_s=MIN_S)
    metrics |= _rate_metrics(reference, estimated.rate)
    return metrics


def _placement_metrics(reference: Marks, estimated: Marks, collars: Sequence[float]) -> dict[str, float]:
    """Compute the metrics that depend on where in the film the seconds and segments lie."""
    scores = estimated.seconds.astype(np.float64) if estimated.scores is None else estimated.scores
    is_marked = reference.seconds.astype(np.int64)
    segments = (reference.segments, estimated.segments)
    return {
        "second_ap": average_precision(is_marked, scores),
        "second_auc": auc(is_marked, scores),
        "second_f1": second_f1(reference.seconds, estimated.seconds),
        "kappa": kappa(reference.seconds, estimated.seconds),
        **{f"segment_f1_{threshold:g}": segment_f1(*segments, threshold) for threshold in THRESHOLDS},
        **{f"boundary_f1_{collar_s:g}s": boundary_f1(*segments, collar_s) for collar_s in collars},
    }


def _shifted_metrics(
    reference: Marks, estimated: Marks, collars: Sequence[float], n_shifts: int, rng: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    """Measure random circular shifts of a timeline against the reference; return metric -> values [shifts].

    A shifted timeline marks as much as the original and in segments as long, but at other judged seconds.
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
    """List the shifts, of 0 to n - 1 seconds, that cut no segment in two at the end of the n seconds.

    Two halves match an annotator's segment less well than the whole would: with cut segments, a timeline of
    long segments would seem better than its shifts wherever it marks. A shift by 0 is in the list too. So if
    there are few others, p cannot be small.
    """
    shifts_s = np.arange(n)
    cut_at_s = n - shifts_s  # a circular shift moves this time to the end of the n seconds
    cuts_a_segment = np.zeros(n, np.bool_)
    for start_s, end_s in segments:
        cuts_a_segment |= (start_s < cut_at_s) & (cut_at_s < end_s)
    return np.flatnonzero(~cuts_a_segment)


def _shifted_spans(spans: Spans, shift_s: float, n: int) -> Spans:
    """Shift spans [S, 2] circularly in n seconds; none passes their end."""
    starts = (spans[:, 0] + shift_s) % n
    return np.column_stack([starts, starts + spans[:, 1] - spans[:, 0]])


def _summary(
    by_film: pd.DataFrame,
    values_of_shifts: Mapping[tuple[str, str], list[NDArray[np.float64]]],
    name: str,
) -> pd.DataFrame:
    """Summarize all films: means with intervals, correlations of rates, and the model's p-values.

    Parameters
    ----------
    by_film : DataFrame
        As in `FilmEvaluation.by_film`.
    values_of_shifts : mapping
        (Reference, metric) -> for each film the metric's values under the random shifts.
    name : str
        Name of the model.
    """
    rows: list[tuple[object, ...]] = []
    for (truth, rater, metric), of_films in by_film.groupby(["truth", "who", "metric"], sort=False):
        values = of_films["value"].to_numpy(dtype=np.float64)
        lowest = -1.0 if metric == "kappa" else 0.0
        interval = t_interval(values, bounds=(lowest, 1.0))
        # Where all films are alike, nothing is known of how others differ, and there is no interval.
        if (rater, metric) not in CONSTANT and _are_alike(values):
            interval = replace(interval, low=np.nan, high=np.nan)
        value = interval.mean
        p = np.nan
        if rater == name and not np.isnan(value):
            shifts = values_of_shifts.get((str(truth), str(metric)))
            if shifts is not None:  # none of metrics that do not depend on places, such as the rate
                p = _p_value(value, np.array(shifts))
        rows.append((truth, rater, metric, value, interval.low, interval.high, interval.n_movies, p))
    rows += _rank_rows(by_film)
    return pd.DataFrame(rows, columns=["truth", "who", "metric", "value", "low", "high", "n_films", "p"])


def _are_alike(values: NDArray[np.float64]) -> bool:
    """Whether all films [N] have one value, NaN apart: then nothing is known of how films differ."""
    defined = values[~np.isnan(values)]
    return len(defined) > 0 and float(np.ptp(defined)) <= ROUNDING


def _p_value(mean: float, values_of_shifts: NDArray[np.float64]) -> float:
    """Compute how often shifted timelines do at least as well as the model (Phipson and Smyth 2010).

    Parameters
    ----------
    mean : float
        The model's mean over films.
    values_of_shifts : ndarray, shape [films, shifts]
        Of the films where the metric is defined: it is then in every shift, too.
    """
    means_of_shifts = values_of_shifts.mean(axis=0)  # [shifts]
    n_as_good = int((means_of_shifts >= mean - ROUNDING).sum())
    return (1 + n_as_good) / (1 + len(means_of_shifts))


def _rank_rows(by_film: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    """Yield rows of the summary for `rate_rank`: how well rates order the films as the reference does.

    The value is Spearman's correlation over films. Its interval comes from leaving out one film at a time.
    """
    has_order = ~by_film["who"].isin(BASELINES)  # these baselines do not order films
    rates = by_film[(by_film["metric"] == "rate") & has_order]
    for truth, rates_by_truth in rates.groupby("truth", sort=False):
        # A row for each film, a column for each rater.
        rates_of_rater = rates_by_truth.pivot_table("value", "movie", "who", sort=False, dropna=False)
        reference = f"{HUMAN}{truth}"
        for rater in rates_of_rater.columns.drop(reference):
            pairs = rates_of_rater[[rater, reference]].dropna().to_numpy(dtype=np.float64)  # [films, 2]
            films = np.arange(len(pairs))  # one is left out at a time: each film is a group of its own
            correlation = partial(_rank_correlation, pairs)
            interval = jackknife_interval(correlation, films, bounds=(-1.0, 1.0))
            # `mean` is the correlation over all films. Of two films it is always 1 or -1, whatever their
            # rates.
            value = interval.mean if len(pairs) > 2 else np.nan
            yield truth, rater, "rate_rank", value, interval.low, interval.high, len(pairs), np.nan


def _rank_correlation(pairs: NDArray[np.float64], is_in: NDArray[np.bool_]) -> float:
    """Compute Spearman's correlation of pairs of rates [films, 2], over some of the films."""
    first, second = pairs[is_in].T
    return spearman(first, second)


def evaluation_report(measured: FilmEvaluation) -> Report:
    """Make the report of an evaluation.

    It has two tables for each annotator, one of the metrics and one of the films, and notes on what was left
    out.
    """
    record = measured.record
    summary = measured.summary
    model = str(record.get("model", "model"))
    blocks: list[Block] = []
    claims = []
    for truth in dict.fromkeys(summary["truth"]):
        claims.append(_agreement_claim(measured, model, str(truth)))
        blocks.append(_metrics_block(str(truth), measured, model))
        blocks.append(_films_block(str(truth), measured, model))
    return Report(
        name="film-agreement",
        title=f"Timelines of {model} against {', '.join(map(str, dict.fromkeys(summary['truth'])))}",
        notes=tuple(_notes(record, summary)),
        blocks=tuple(blocks),
        data=pd.concat([summary.assign(movie=""), measured.by_film], ignore_index=True),
        record={**record, "claims": [document(claim) for claim in claims]},
        answers=tuple(sentences(claims)),
    )


def _agreement_claim(measured: FilmEvaluation, model: str, truth: str) -> TimelineAgreement:
    """Claim the model's mean kappa with an annotator.

    The claim is of the films where the kappa is defined. If it is defined in none, it is of all films.
    """
    is_of_claim = {"truth": truth, "who": model, "metric": "kappa"}
    (row,) = _rows_with(measured.summary, is_of_claim).to_dict("records")
    films = _rows_with(measured.by_film, is_of_claim)
    films_with_kappa = films[films["value"].notna()]
    if not films_with_kappa.empty:
        films = films_with_kappa
    movies = list(films["movie"])
    seconds = _seconds(measured.record, movies)
    return timeline_agreement(
        model, truth, row, n_films=len(movies), judged_s=seconds.judged, whole_s=seconds.film
    )


def _rows_with(table: pd.DataFrame, values: Mapping[str, str]) -> pd.DataFrame:
    """Select the rows of a table that have a value in each of some columns."""
    is_selected = np.ones(len(table), np.bool_)
    for column, value in values.items():
        is_selected &= (table[column] == value).to_numpy()
    return table[is_selected]


class _Seconds(NamedTuple):
    """How many whole seconds of films the model can judge, and how many the films have."""

    judged: int
    film: int


def _seconds(record: Mapping[str, Any], movies: Sequence[str]) -> _Seconds:
    """Add up the seconds of some films of a record."""
    seconds_of = record["seconds"]
    judged = sum(seconds_of[movie]["judged"] for movie in movies)
    return _Seconds(judged, sum(seconds_of[movie]["film"] for movie in movies))


def _metrics_block(truth: str, measured: FilmEvaluation, model: str) -> Block:
    """Make the table of metrics against one annotator: a row for each metric, a column for each rater."""
    summary = _rows_with(measured.summary, {"truth": truth})
    by_film = _rows_with(measured.by_film, {"truth": truth})
    n_films = by_film["movie"].nunique()
    raters = [rater for rater in dict.fromkeys(summary["who"]) if rater != HUMAN + truth]
    summary_of = {(row.who, row.metric): row for row in summary.itertuples(index=False)}
    rows = []
    for metric in dict.fromkeys(summary["metric"]):
        cells = [_title(str(metric))]
        for rater in raters:
            row: Any = summary_of.get((rater, metric))  # with the fields of `FilmEvaluation.summary`
            cells.append("" if row is None else _mean(row, n_films))
        model_row: Any = summary_of.get((model, metric))
        has_p = model_row is not None and not pd.isna(model_row.p)
        cells.append(number(model_row.p) if has_p else "")
        rows.append(tuple(cells))
    headers = ("metric", *(TITLES.get(rater, rater) for rater in raters), "p")
    notes = [
        "mean over the films where it is defined, and its 95% interval",
        "rank correlation: one number over these films, whose interval leaves out one film at a time",
        _note_on_p(measured.record),
    ]
    has_fewer_films = (summary["n_films"] < n_films) & summary["value"].notna()
    if has_fewer_films.any():
        notes.append(f"(n): over n of these {n_films} films; columns with other n are not of the same films")
    human_raters = [rater for rater in raters if str(rater).startswith(HUMAN)]
    notes += _notes_on_common_films(by_film, model, human_raters)
    notes += _notes_without_interval(summary, n_films)
    return Block(f"Truth: {truth}", headers, tuple(rows), tuple(notes))


def _mean(row: Any, n_films: int) -> str:
    """Write a row's mean with its interval, and its number of films if they are fewer than the table's."""
    text = interval(row.value, row.low, row.high)
    is_of_fewer = row.n_films < n_films and not pd.isna(row.value)
    return f"{text} ({row.n_films})" if is_of_fewer else text


def _note_on_p(record: Mapping[str, Any]) -> str:
    """Say what p is, and how small it can be."""
    n_shifts = record["n_shifts"]
    least = number(1 / (1 + n_shifts))
    return (
        f"p: (b + 1) / ({n_shifts} + 1), if the model does as well in b of {n_shifts} moves in time, in a "
        f"circle of the seconds that it can judge; the least it can be is about {least}"
    )


def _notes_on_common_films(by_film: pd.DataFrame, model: str, human_raters: Sequence[str]) -> Iterator[str]:
    """Yield the means of the model and of each annotator over common films, where columns are of others.

    `by_film` are the rows of one truth.
    """
    for rater in human_raters:
        means = []
        of_both = by_film[by_film["who"].isin([model, rater])]
        for metric, of_metric in of_both.groupby("metric", sort=False):
            values = of_metric.pivot_table("value", "movie", "who", dropna=False)
            if rater not in values:  # segments are ranked by the model alone
                continue
            values_of_both = values.dropna()
            n = len(values_of_both)
            if n and (values.count() > n).any():
                of_model = number(values_of_both[model].mean())
                of_human = number(values_of_both[rater].mean())
                means.append(f"{_title(str(metric))} {of_model} and {of_human} ({n})")
        if means:
            yield f"{model} and {rater} in the films where both have a value: {'; '.join(means)}"


def _notes_without_interval(summary: pd.DataFrame, n_films: int) -> Iterator[str]:
    """Yield why values have no interval, if any has none."""
    is_without = summary["value"].notna() & summary["low"].isna()
    if not is_without.any():
        return
    if n_films < LEAST_WITH_INTERVAL:
        yield f"{n_films} film{'' if n_films == 1 else 's'}: no interval"
    else:
        yield (
            f"[undefined]: no interval, as fewer than {LEAST_WITH_INTERVAL} films have a value, or all have "
            "the same; the rank correlation has none if it is 1 or -1, or undefined without one of the films"
        )


def _films_block(truth: str, measured: FilmEvaluation, model: str) -> Block:
    """Make the table of the model's metrics against one annotator: a row for each film."""
    of_model = _rows_with(measured.by_film, {"truth": truth, "who": model})
    table = of_model.pivot_table("value", "movie", "metric", sort=False, dropna=False)
    headers = ("film", "seconds judged", *(_title(str(metric)) for metric in table.columns))
    rows = []
    for movie, *values in table.itertuples(name=None):
        seconds = _seconds(measured.record, [str(movie)])
        rows.append((str(movie), f"{seconds.judged} of {seconds.film}", *map(number, values)))
    return Block(f"{model}, film by film; truth: {truth}", headers, tuple(rows))


def _title(metric: str) -> str:
    """Return the title of a metric; that of boundaries says their tolerance."""
    if metric.startswith("boundary_f1_"):
        return f"boundaries, {metric.removeprefix('boundary_f1_').removesuffix('s')} s"
    return TITLES.get(metric, metric)


def _notes(record: Mapping[str, Any], summary: pd.DataFrame) -> Iterator[str]:
    """Yield the report's notes: what counts as positive, how to read the tables, and what was left out."""
    yield _note_on_seconds(record)
    positive = ", ".join(record["positive"])
    which = "with the concept" if record["is_concept"] else "of level"
    yield f"Positive: clips {which} {positive}; negative: all others of these seconds in an annotated film."
    yield _note_on_people(summary)
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
    trained_on: Sequence[str] = record["trained_on"]
    if trained_on:
        names = ", ".join(trained_on)
        yield message("note_films", what=message("films_trained"), n=len(trained_on), names=names)
    for field_of_record, words in (
        ("left_out", "not annotated, left out"),
        ("not_judged", "annotated, and no second of it can be judged, left out"),
        ("not_scored", "annotated, not among these films"),
        ("cut", "annotated to behind the film's end, cut there (another cut?)"),
    ):
        films: Sequence[str] = record[field_of_record]
        if films:
            yield f"{words}: {', '.join(films)}"
    for annotator, seconds in record["unjudged_marks_s"].items():
        if seconds >= LEAST_SAID_S:
            where = f"lie where {record['model']} cannot judge, and do not count"
            yield f"{annotator}: {seconds:.0f} s marked as {positive} {where}"
    lacking = "neither level nor concept" if record["is_concept"] else "no level"
    for annotator, n in record["unlabelled"].items():
        clips = "1 clip has" if n == 1 else f"{n} clips have"
        yield f"{annotator}: {clips} {lacking} and {'is' if n == 1 else 'are'} left out, as if not there"
    reason_of: Mapping[str, str] = record["without_rate"]
    for reason in dict.fromkeys(reason_of.values()):
        movies = [movie for movie in reason_of if reason_of[movie] == reason]
        yield f"no rate, and so left out of everybody's rates ({reason}): {', '.join(movies)}"


def _note_on_people(summary: pd.DataFrame) -> str:
    """Say what the columns of other annotators are, or why there are none."""
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
    """Say which seconds the numbers are of, and how many they are."""
    movies = record["films"]
    seconds = _seconds(record, movies)
    films = "1 film" if len(movies) == 1 else f"{len(movies)} films"
    return (
        f"All numbers, those of annotators and baselines too, are of the seconds that {record['model']} can "
        f"judge: {seconds.judged} of the {seconds.film} s of {films}. They are counted one after the "
        "other, as if the rest of a film were cut out, and each as it is at its middle."
    )
