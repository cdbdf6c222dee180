"""Follow a round of annotation: what is done, and who drifts.

Drift is a change of an annotator's calls over the films of a round, against others' calls of the same clips.
For each film the mean difference between an annotator's calls and the others' calls of the same clips is
taken, so that what films show cancels out. The slope of these means on the order of films, by least squares,
is the drift. Its variance is that of calls within films. Annotators may also be higher or lower in a film by
chance: where films differ around the lines of all annotators together by more than their calls explain (p
below .15), the variance is scaled up by that excess, and Student's t replaces the normal distribution. That
is the test of a trend against annotators by films (analysis of variance).
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtri, stdtrit

from obygaze_features.manifest import (
    ORDER,
    SEEN_SCORE,
    Clip,
    Codebook,
    Manifest,
    judgements_of,
    merge_annotators,
    project,
)
from obygaze_features.manifest.agreement import distances
from obygaze_features.manifest.clip import has_labels
from obygaze_models.errors import ProtocolError
from obygaze_models.protocol.targets import (
    NOT_ASKED,
    Target,
    all_levels,
    experts_of,
    find_target,
    labels_of_people,
)

Floats = NDArray[np.float64]

LEVEL = 0.95
"""Coverage of the interval of a drift."""

MAX_P_OF_EXCESS = 0.15
"""Below this p-value, films are taken to differ around their lines by more than their calls explain."""

FEWEST_FILMS = 4
"""Films that a line needs: with three, a single residual would decide the error."""

MIN_VARIANCE = 1e-15
"""Variances are raised to this, so that nothing is divided by 0."""


@dataclass(frozen=True, slots=True)
class Drift:
    """A change from the first film to the last.

    Attributes
    ----------
    films : int
        Films with calls.
    value, low, high : float
        The change, in units of a call, and the ends of its 95 % interval; NaN with fewer than four films.
    """

    films: int
    value: float = np.nan
    low: float = np.nan
    high: float = np.nan

    @property
    def is_found(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


def drifts(
    annotators: Sequence[tuple[Sequence[Floats], Sequence[float]]], independent: float = 1.0
) -> list[Drift]:
    """Estimate the drift of each annotator: how much the mean call changes from the first to the last film.

    A line is fitted through each annotator's mean calls of films. Whether films differ around their lines by
    more than calls within films explain is tested for all annotators together, and makes all intervals wider
    (`_half_width_in_errors`).

    Parameters
    ----------
    annotators : sequence of (films, film_numbers)
        One pair for each annotator. `films` holds for each film the annotator's calls of its clips, or their
        differences from others' calls; `film_numbers` holds each film's position in the order of annotation.
    independent : float
        Share of the calls that are independent: 1 for annotators' own calls, less for their differences from
        others' calls, which add up to 0 on each clip (`_share_independent`).

    Returns
    -------
    list of Drift
        One for each annotator, with its 95 % interval.
    """
    lines = [_fit_line(films, film_numbers) for films, film_numbers in annotators]
    half_width_in_errors = _half_width_in_errors(lines, independent)
    estimates = []
    for line in lines:
        half_width = float(line.error * half_width_in_errors)
        drift = Drift(
            films=line.n_films,
            value=line.change,
            low=line.change - half_width,
            high=line.change + half_width,
        )
        estimates.append(drift)
    return estimates


def _half_width_in_errors(lines: Sequence["_Line"], independent: float) -> float:
    """Compute by how many standard errors the interval of a drift reaches to either side, such as 1.96.

    A drift is the change along a line through an annotator's mean calls of films. Its standard error assumes
    that the means differ from the line only because calls differ within films. Let the excess be the observed
    sum of squares of all films around their lines, divided by the sum that this predicts. A chi-squared test
    tells whether the excess is above 1 by more than chance:

    - if not, the result is a quantile of the normal distribution;
    - if so, the standard errors are too small by the factor sqrt(excess), which is itself estimated: the
      result is a quantile of Student's t times this factor.

    Parameters
    ----------
    lines : sequence of _Line
        Of all annotators.
    independent : float
        Share of the calls that are independent of each other, from 0 to 1.
    """
    fitted = [line for line in lines if np.isfinite(line.change)]  # the others have too few films
    # A line has two parameters: of n films, n - 2 degrees of freedom are left.
    degrees_of_lines = np.array([line.n_films - 2 for line in fitted], dtype=np.float64)
    expected_squares = np.array([line.expected_square for line in fitted], dtype=np.float64)
    observed_sums = np.array([line.residual_squares for line in fitted], dtype=np.float64)
    expected_sum = degrees_of_lines @ expected_squares
    excess = observed_sums.sum() / max(expected_sum, MIN_VARIANCE)
    # Of calls that depend on each other, such as differences that add up to 0, only a share is information.
    total_degrees = max(independent * float(degrees_of_lines.sum()), 1.0)
    # By chance, excess * degrees has the chi-squared distribution.
    p_of_excess = chdtrc(total_degrees, excess * total_degrees)
    quantile = (1 + LEVEL) / 2
    if p_of_excess < MAX_P_OF_EXCESS:
        return float(stdtrit(total_degrees, quantile) * np.sqrt(excess))
    return float(ndtri(quantile))


class _Line(NamedTuple):
    """A line through an annotator's mean calls of films; all but `n_films` is NaN if films are too few.

    Attributes
    ----------
    n_films : int
        Films with a call.
    change : float
        Height of the line at the last film less its height at the first.
    error : float
        Standard error of the change, if films differ by no more than their clips explain.
    expected_square : float
        Mean square of a film's mean around the line, if films differ by no more than their clips explain.
    residual_squares : float
        Sum of the squares of the films' means around the line.
    """

    n_films: int
    change: float = np.nan
    error: float = np.nan
    expected_square: float = np.nan
    residual_squares: float = np.nan


def _fit_line(films: Sequence[Floats], film_numbers: Sequence[float]) -> _Line:
    """Fit a line by least squares through an annotator's mean call in each film.

    `films` holds the calls of each film's clips; films without any are left out. `film_numbers` holds the
    films' positions in the order of annotation.
    """
    films_with_calls = []
    numbers = []
    for calls, number in zip(films, film_numbers, strict=True):
        if len(calls):
            films_with_calls.append(calls)
            numbers.append(number)
    n_films = len(films_with_calls)
    if n_films < FEWEST_FILMS or len(set(numbers)) < FEWEST_FILMS:
        return _Line(n_films)
    means = np.array([calls.mean() for calls in films_with_calls])
    n_calls = np.array([len(calls) for calls in films_with_calls])
    positions = np.array(numbers, dtype=np.float64)

    # Least squares: slope = sum(x y) / sum(x x), with centred positions x and means y.
    centred_positions = positions - positions.mean()
    sum_of_squares = centred_positions @ centred_positions
    slope = float(centred_positions @ means / sum_of_squares)
    residuals = means - means.mean() - slope * centred_positions

    # The mean of a film's n calls has the variance of a call divided by n. The slope is the sum of
    # x / sum(x x) times y, so that its variance is the sum of (x / sum(x x))^2 times the variance of y.
    variance_of_call = _variance_within(films_with_calls)
    inverse_counts = 1 / n_calls
    sum_of_variances = variance_of_call * (centred_positions**2 @ inverse_counts)
    error_of_slope = float(np.sqrt(sum_of_variances)) / sum_of_squares

    # From slopes, changes for each position, to changes from the first film to the last.
    n_positions = float(np.ptp(positions))
    return _Line(
        n_films=n_films,
        change=slope * n_positions,
        error=float(error_of_slope) * n_positions,
        expected_square=variance_of_call * float(inverse_counts.mean()),
        residual_squares=float(np.sum(residuals**2)),
    )


def _variance_within(films: Sequence[Floats]) -> float:
    """Compute the variance of an annotator's calls around the mean call of their film.

    `films` has the calls of each film. It is the sum of squares divided by the degrees of freedom: one less
    for each film, whose mean is estimated.
    """
    sum_of_squares = sum(float(((calls - calls.mean()) ** 2).sum()) for calls in films)
    n_calls = sum(len(calls) for calls in films)
    degrees_of_freedom = max(n_calls - len(films), 1)
    return max(sum_of_squares / degrees_of_freedom, MIN_VARIANCE)


# --- progress
# ---------------------------------------------------------------------------
@dataclass(frozen=True)
class Progress:
    """How far one annotator is.

    Attributes
    ----------
    films : list of str
        The films assigned to the annotator, in the order in which they are annotated.
    done : list of str
        Those of `films` that are annotated, at least in part.
    clips, clips_done : int
        Number of clips assigned to the annotator, and of those that are labelled (`has_labels`).
    alone : Drift
        Drift of the annotator's calls.
    against : Drift
        Drift of the annotator's calls less the others' mean call of the same clips.
    in_sight : int
        Number of the annotator's labels that were given in sight of a model's score.
    """

    films: list[str]
    done: list[str]
    clips: int
    clips_done: int
    alone: Drift
    against: Drift
    in_sight: int = 0

    @property
    def to_do(self) -> list[str]:
        """Films that are not annotated yet, in their order."""
        return [film for film in self.films if film not in self.done]


def round_progress(planned: Manifest, annotated: Manifest, task: str | None = None) -> dict[str, Progress]:
    """Report each annotator's progress and drift in a round of annotation.

    Drift is that of people: labels of machines do not count. Labels given in sight of a model's score do, as
    rounds are judged at the desk, where a score may be shown. How many there are is reported (`in_sight`), as
    annotators who see a score agree with it, and so with each other.

    Parameters
    ----------
    planned : Manifest
        The round, as `obygaze_features.manifest.assign` makes it: a row for each clip and annotator.
    annotated : Manifest
        Rows of annotators: of the round's clips, or free segments, which are projected onto them. Rows of
        other annotators, such as machines, and of other films do not count.
    task : str, optional
        The task by which labels become numbers (`find_target`). By default a label counts as the distance of
        its level from the lowest level, which is 0; that of the highest level is 1.

    Returns
    -------
    dict of str to Progress
        The progress of each annotator of the round, by name; other annotators have none.

    Raises
    ------
    ProtocolError
        A clip of `planned` has no number in the column `order`; or a film has several numbers, or a number
        several films, for one annotator; or the task is a scale, and the labels are of free segments.
    ManifestError
        Labels were given under two definitions of the codebook: a change from one to the other is no drift.
    """
    judgements_of(annotated).refuse_two_definitions()

    # --- the clips of the round, each once, and its annotators' labels of them
    film_numbers = _film_numbers(planned)
    # Additional columns, such as the order, are left out: they differ between the annotators of a clip.
    clips = merge_annotators(planned.with_clips(replace(clip, extras={}) for clip in planned))
    segments = _labelled_in_round(annotated, film_numbers, clips)
    labels = _project_onto_clips(segments, clips)

    # --- what is done, and how annotators drift
    # A film counts as done once anything in it is annotated, even segments outside of the round's clips.
    films_done = {(segment.annotator, segment.movie) for segment in segments}
    codebook = annotated.codebook
    clips_done = {(label.annotator, label.clip_id) for label in labels if has_labels(label, codebook)}
    # Of their additional columns, only ranks on scales are kept: drift may be on a scale.
    labels_for_drift = _with_scales_alone(labels_of_people(labels))
    drifts_of_round = _drifts_of_round(labels_for_drift, clips, film_numbers, task)
    n_in_sight = Counter[str]()
    for label in labels:
        if has_labels(label, codebook) and label.extras.get(SEEN_SCORE) == "1":
            n_in_sight[label.annotator] += 1

    progress = {}
    for name, numbers in film_numbers.items():
        assigned = [clip.clip_id for clip in planned if clip.annotator == name]
        progress[name] = Progress(
            films=list(numbers),
            done=[film for film in numbers if (name, film) in films_done],
            clips=len(assigned),
            clips_done=sum((name, clip_id) in clips_done for clip_id in assigned),
            alone=drifts_of_round.alone[name],
            against=drifts_of_round.against[name],
            in_sight=n_in_sight[name],
        )
    return progress


def _labelled_in_round(
    annotated: Manifest, film_numbers: Mapping[str, Mapping[str, int]], clips: Manifest
) -> Manifest:
    """Return the labelled rows that are of a round's annotators and films.

    What is of nobody in the round, or of no film in it, is no part of it: it neither counts among the others
    whom an annotator is compared with, nor decides whether labels are of clips or of free segments.

    Parameters
    ----------
    annotated : Manifest
        Rows of annotators.
    film_numbers : mapping
        Annotator of the round -> film -> number in the order of annotation.
    clips : Manifest
        The round's clips, each once.
    """
    movies_of_round = set(clips.movies)
    rows = []
    for row in annotated.spelled_as(clips.movies):
        is_of_round = row.annotator in film_numbers and row.movie in movies_of_round
        if is_of_round and has_labels(row, annotated.codebook):
            rows.append(row)
    return annotated.with_clips(rows)


class _DriftsOfRound(NamedTuple):
    """Annotator -> drift: of the calls alone, and of the calls less the others' mean calls."""

    alone: dict[str, Drift]
    against: dict[str, Drift]


def _drifts_of_round(
    labels: Manifest, clips: Manifest, film_numbers: Mapping[str, Mapping[str, int]], task: str | None
) -> _DriftsOfRound:
    """Estimate the drift of each annotator of a round: by own calls alone, and against the other annotators.

    A call is a label as a number. Against others, a clip's call counts less the mean call of the others on
    the same clip.

    Parameters
    ----------
    labels : Manifest
        The labels that the round's annotators gave to its clips.
    clips : Manifest
        The round's clips, each once.
    film_numbers : mapping
        Annotator of the round -> film -> number in the order of annotation.
    task : str, optional
        The task by which labels become numbers.
    """
    calls = _calls_by_annotator(labels, clips, task)
    for name in film_numbers:
        # Who has not begun has no calls.
        calls.setdefault(name, np.full(len(clips), np.nan))
    differences = _differences_from_others(calls)
    movies = np.array([clip.movie for clip in clips])

    # `drifts` tests whether films differ by more than the calls within them explain, in one test for all
    # annotators that it is given. Own calls differ between films because films show different things, and
    # each annotator judged other films. So `drifts` is given one annotator at a time.
    alone = {}
    for name, numbers in film_numbers.items():
        (drift,) = drifts([_split_by_film(calls[name], movies, numbers)])
        alone[name] = drift

    # What a film shows cancels out in differences between annotators of the same clip: one test for all.
    all_differences = [
        _split_by_film(differences[name], movies, numbers) for name, numbers in film_numbers.items()
    ]
    drifts_against = drifts(all_differences, _share_independent(calls))
    against = dict(zip(film_numbers, drifts_against, strict=True))
    return _DriftsOfRound(alone, against)


def _film_numbers(planned: Manifest) -> dict[str, dict[str, int]]:
    """Read the order in which each annotator annotates films: annotator -> film -> number, rising.

    Raises
    ------
    ProtocolError
        A clip has no number, a film has two numbers of one annotator, or two films have the same number.
    """
    planned_films = [_PlannedFilm(clip.annotator, clip.movie, _film_number(clip)) for clip in planned.clips]
    films = list(dict.fromkeys(planned_films))  # each once, and not once for each of its clips
    _refuse_ambiguous_numbers(films)
    film_numbers: dict[str, dict[str, int]] = {clip.annotator: {} for clip in planned}
    for film in sorted(films, key=lambda film: film.number):
        film_numbers[film.annotator][film.movie] = film.number
    return film_numbers


class _PlannedFilm(NamedTuple):
    """A film that an annotator annotates, and its number in the annotator's order."""

    annotator: str
    movie: str
    number: int


def _refuse_ambiguous_numbers(films: Sequence[_PlannedFilm]) -> None:
    """Raise if a film has two numbers of one annotator, or two films of an annotator have the same number.

    It is then not known in which order the annotator annotates these films, and no drift can be measured.
    """
    n_numbers = Counter((film.annotator, film.movie) for film in films)
    for (annotator, movie), n in n_numbers.items():
        if n > 1:
            raise ProtocolError(
                f"{ORDER}: {movie!r} of {annotator!r} has two numbers: they are of two rounds, or edited"
            )
    n_films = Counter((film.annotator, film.number) for film in films)
    for (annotator, number), n in n_films.items():
        if n > 1:
            raise ProtocolError(
                f"{ORDER}: {number!r} of {annotator!r} is of two films: they are of two rounds, or edited"
            )


def _film_number(clip: Clip) -> int:
    """Read the column `order` of a planned clip: the number of its film in its annotator's order."""
    text = clip.extras.get(ORDER, "")
    # Accepted are 1, 1.0 and 1,0: data frames write 1.0 where a column has gaps, and 1,0 in some languages.
    match = re.fullmatch(r"(\d{1,9})(?:[.,]0+)?", text, re.ASCII)
    if match is None:
        raise ProtocolError(
            f"clip {clip.clip_id!r} of {clip.annotator!r}: {ORDER} {text!r:.20} is no number of a film: "
            "make the round with 'obygaze manifest assign'"
        )
    return int(match[1])


def _project_onto_clips(labelled: Manifest, clips: Manifest) -> Manifest:
    """Return the annotators' labels of a round's clips, by projecting labelled segments onto these.

    Annotators label the clips themselves, or delimit segments freely. If all labels are of the round's clips,
    they are returned as they are. Segments are projected by their levels: their ranks on scales stay behind.
    """
    if _are_of_clips(labelled, clips):
        return labelled
    with_level = labelled.with_clips(clip for clip in labelled if clip.level is not None)
    projected = project(with_level, clips, per_annotator=True).manifest
    # The additional columns that are no scales stay: they tell which segments are windows that were drawn.
    scale_names = {scale.name for scale in labelled.codebook.scales}
    rows = []
    for clip in projected:
        other_columns = {name: cell for name, cell in clip.extras.items() if name not in scale_names}
        rows.append(replace(clip, extras=other_columns))
    return projected.with_clips(rows)


def _are_of_clips(labelled: Manifest, clips: Manifest) -> bool:
    """Whether all labels are of the round's clips, and not of segments that annotators delimited freely."""
    labelled_ids = {clip.clip_id for clip in labelled}
    round_ids = {clip.clip_id for clip in clips}
    return labelled_ids <= round_ids


def _with_scales_alone(labelled: Manifest) -> Manifest:
    """Return labels with no further columns but those of the codebook's scales, which are labels too."""
    scale_names = {scale.name for scale in labelled.codebook.scales}
    rows = []
    for clip in labelled:
        ranks = {name: cell for name, cell in clip.extras.items() if name in scale_names}
        rows.append(replace(clip, extras=ranks))
    return labelled.with_clips(rows)


def _calls_by_annotator(labelled: Manifest, clips: Manifest, task: str | None) -> dict[str, Floats]:
    """Turn each annotator's labels into numbers: annotator -> calls [N clips], NaN where there is none.

    `labelled` has a row for each label of an annotator, `clips` each clip once. With a task, calls are 0 and
    1; without one, the distances of levels from the lowest (`_numbers_of_classes`).
    """
    target, number_of_class = _numbers_of_classes(labelled.codebook, task)
    # The columns of scales, which all labels have or none: of free segments there are none.
    columns: Sequence[str] = ()
    if labelled.clips:
        columns = tuple(labelled.clips[0].extras)
        if target.scale and target.scale not in columns:
            raise ProtocolError(
                f"{target.name}: no label of the clips has a column {target.scale}, and free segments "
                "are projected by their levels alone"
            )
    # `experts_of` takes clips with the columns of the labels. On clips themselves they are empty.
    clips = clips.with_clips(replace(clip, extras=dict.fromkeys(columns, "")) for clip in clips)
    calls = {}
    for name, labels in experts_of(labelled, clips).items():
        classes = target.of(labels)
        is_labelled = classes != NOT_ASKED  # neither unlabelled, nor of a level that is not in the task
        numbers = np.full(len(classes), np.nan)
        numbers[is_labelled] = number_of_class[classes[is_labelled]]
        calls[name] = numbers
    return calls


def _numbers_of_classes(codebook: Codebook, task: str | None) -> tuple[Target, Floats]:
    """Find the target of a task, and the number by which each of its classes counts in a mean call.

    With a task, these are 0 for negative clips and 1 for positive ones, so that a mean call is a share of
    positives. Without a task the target is all levels, and a level counts as its distance from the lowest
    one, which the codebook defines.
    """
    if task is None:
        from_lowest = distances(codebook)[0]  # the first row of the distances between all levels
        return all_levels(codebook), from_lowest
    target = find_target(task, codebook)
    return target, np.arange(target.n_classes, dtype=np.float64)


def _differences_from_others(calls: Mapping[str, Floats]) -> dict[str, Floats]:
    """Subtract from each annotator's calls [N] the mean call of the other annotators on the same clip.

    The difference is NaN for clips that nobody else called.
    """
    all_calls = np.array(list(calls.values()))
    n_calls = _count_calls(calls)
    total = np.nansum(all_calls, axis=0)
    differences = {}
    for name, values in calls.items():
        # call - mean of the n - 1 others = call - (total - call) / (n - 1) = (n call - total) / (n - 1).
        # The maximum avoids a division by 0 for clips that nobody else called.
        difference = (values * n_calls - total) / np.maximum(n_calls - 1, 1)
        differences[name] = np.where(n_calls > 1, difference, np.nan)
    return differences


def _count_calls(calls: Mapping[str, Floats]) -> NDArray[np.int64]:
    """Count the annotators that called each clip [N]."""
    return np.asarray(np.isfinite(np.array(list(calls.values()))).sum(axis=0))


def _share_independent(calls: Mapping[str, Floats]) -> float:
    """Compute the share of the annotators' differences from others that are independent.

    Only independent differences count as degrees of freedom (`drifts`). A clip with k calls has k
    differences, which add up to 0: any k - 1 of them determine the last. So k - 1 of k are independent, a
    share of 1 - 1 / k. It is averaged over the clips with several calls.
    """
    n_calls = _count_calls(calls)
    compared = n_calls[n_calls > 1]
    if not len(compared):
        return 1.0
    return float((1 - 1 / compared).mean())


def _split_by_film(
    values: Floats, movies: NDArray[np.str_], film_numbers: Mapping[str, int]
) -> tuple[list[Floats], list[int]]:
    """Split an annotator's values [N] by film, without NaN; return them with the films' numbers."""
    is_called = np.isfinite(values)
    values_of_films = [values[(movies == film) & is_called] for film in film_numbers]
    return values_of_films, list(film_numbers.values())
