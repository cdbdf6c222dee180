"""Measure what the sentences of `obygaze_studies.claims.claims_report` are about, from released data.

Where clips were annotated, films are what was sampled: intervals are jackknife or t intervals over films,
tests change signs of films or permute levels within them. A sampled number brings its null (`nulls`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from itertools import pairwise
from typing import Any, Concatenate, NamedTuple, ParamSpec

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

import obygaze_features.manifest as manifests
import obygaze_models.evaluation as stats
from obygaze_features.text import counted, percentage, signed
from obygaze_studies.caption_words import EMOTION_WORDS
from obygaze_studies.claims.nulls import (
    Null,
    null_of_levels_within_films,
    null_of_signs_by_film,
    permuted_within,
    planted_off_centre,
)
from obygaze_studies.eat_stimuli import EFFECTS, PrintedEffect
from obygaze_studies.gender_score.published_values import TOTALS
from obygaze_studies.obygaze12.corpus import TASKS
from obygaze_studies.obygaze12.paper_folds import classifier_folds
from obygaze_studies.obygaze12.statistics import clip_table, grouped

N_PERMUTATIONS = 2000

RELATIVE_ROUNDING = 1e-12
"""Part by which a permuted statistic may be below the observed one and count as equal to it."""

MIN_OCCURRENCES = 100
"""Emotion words with fewer occurrences in all captions are left out (004, section 4.3)."""

PARTLY_CLOTHED = "O"
CLOTHED = "NO"
"""Conditions of a picture in the released counts of words (objectified, and not)."""

EMOTION_OF_CODE = {"AN": "anger", "SA": "sadness", "HA": "happiness"}
"""Code of an emotion -> its name. In the released counts of words, a picture's `emotion` begins with it."""

LENGTH_OF_EMOTION_CODE = 2

PRINTED_RATE_BOUND = 1.0
"""Words per 1,000 captions with which the paper compares the rate of words of an emotion (004, 5.3)."""

RANK_OF_HN = 0
RANK_OF_S = 2
"""Ranks of the lowest and the highest level in `Marks`, which leaves EN out."""

HARD_ON_ALL = "hn_s>enhn_s"
HARD_ON_EASY = "hn_s>en_s"
EASY_ON_ALL = "en_s>enhn_s"
EASY_ON_EASY = "en_s>en_s"
"""Tasks in a table of predictions, `training task>test task`, of models that tell S from other levels.

Hard: trained against HN (`hn_s`). Easy: trained, or tested, against EN (`en_s`). All: tested against EN and
HN together (`enhn_s`).
"""

COUNTED_UNITS = ("clips", "segments", "models")
"""Units of numbers that are of all there are; what is of others was sampled."""

Numbers = NDArray[np.float64]

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Measured:
    """The number behind a claim; one that is counted over all there is (`COUNTED_UNITS`) has no interval.

    Attributes
    ----------
    value, low, high : float
        The number and its 95 % interval, whose ends are NaN if it has none.
    p, p_holm : float
        p of a two-sided test, and the same adjusted by Holm over the tests on one file; NaN without a test.
    n : int
        Number of units.
    unit : str
        What a unit is, such as `film`.
    note : str
        What a reader should know beside the number, such as counts.
    null : Null, optional
        How the measure behaves if the sentence is untrue; None if the number is only counted, or only
        compared with a constant.
    measure_again : callable, optional
        Takes data that `null` has randomised, and measures them in the same way, without tests; None without
        a null.
    """

    value: float = stats.NAN
    low: float = stats.NAN
    high: float = stats.NAN
    p: float = stats.NAN
    p_holm: float = stats.NAN
    n: int = 0
    unit: str = ""
    note: str = ""
    null: Null | None = None
    measure_again: "Callable[[Any], Measured] | None" = None


# --- numbers over units
# ---------------------------------------------------------------------------


def mean_over_units(values: ArrayLike, unit: str, note: str = "", null: float = 0.0) -> Measured:
    """Average values, one per unit, with the mean's t interval and the p of its sign-flip test.

    Parameters
    ----------
    values : array-like, shape [M]
        The value of each unit.
    unit
        What the units are, such as "films".
    note
        What a reader should know beside the mean.
    null
        The mean if the sentence is untrue, with which the test compares.
    """
    test = stats.sign_flip(np.asarray(values) - null)
    return from_interval(stats.t_interval(values), unit, note, p=test.p)


def from_interval(average: stats.Interval, unit: str, note: str = "", *, p: float = stats.NAN) -> Measured:
    """Return the finding of an average with its interval, its unit and the p of its test, if there is one."""
    return Measured(average.mean, average.low, average.high, p, n=average.n_movies, unit=unit, note=note)


def measure_repeatably(measure: Callable[[Any], Measured], data: Any) -> Measured:
    """Measure data, and let the finding know how, so that other data can be measured in the same way.

    The finding holds the measure as `measure_again`. Benchmarks apply it to data that the finding's null has
    randomised.
    """
    return replace(measure(data), measure_again=measure)


def lowest(findings: Sequence[Measured]) -> Measured:
    """Return the finding whose interval begins lowest, for a sentence that all findings should confirm.

    Its p is adjusted for the choice (Bonferroni). An interval that is undefined counts as the lowest.
    """
    chosen = min(findings, key=lambda finding: np.nan_to_num(finding.low, nan=-math.inf))
    return replace(chosen, p=_bonferroni(chosen.p, len(findings)))


def _bonferroni(p: float, n_tests: int) -> float:
    """Return p adjusted for the choice of one of several tests: at most 1, and NaN if p is NaN."""
    return float(np.minimum(1.0, p * n_tests))  # min() would give 1 for NaN


def film_gaps(values: Numbers, sides: NDArray[np.int64], films: NDArray[np.intp]) -> Numbers:
    """Return for each film the mean of its clips of side 1 minus that of its clips of side 0.

    Parameters
    ----------
    values : ndarray, shape [N]
        Value of each clip.
    sides : ndarray, shape [N]
        Side of each clip: 1, 0, or -1 for a clip of neither side.
    films : ndarray, shape [N]
        Number of each clip's film, from 0 to M - 1.

    Returns
    -------
    ndarray, shape [M]
        NaN where a film lacks a side.
    """
    n_films = int(films.max()) + 1 if len(films) else 0
    means = []
    for side in (1, 0):
        on_side = sides == side
        n_clips = np.bincount(films[on_side], minlength=n_films)
        total = np.bincount(films[on_side], weights=values[on_side], minlength=n_films)
        means.append(np.divide(total, n_clips, out=np.full(n_films, np.nan), where=n_clips > 0))
    return np.asarray(means[0] - means[1])


def film_indices(table: pd.DataFrame) -> NDArray[np.intp]:
    """Return the number of each clip's film, [N], from 0 in the order of the films' names."""
    _, indices = np.unique(table["movie"].to_numpy(dtype=str), return_inverse=True)
    return indices


def _mean(values: NDArray[Any]) -> float:
    """Return the mean of values; NaN of none."""
    if not values.size:
        return stats.NAN
    return float(values.mean())


def _mean_defined(values: Numbers) -> float:
    """Return the mean of the values that are finite numbers; NaN if none is."""
    return _mean(values[np.isfinite(values)])


def _gap_of_sides(values: Numbers, sides: NDArray[np.int64], films: NDArray[np.intp]) -> Measured:
    """Measure how much higher a value is on one side of clips than on the other, averaged over films.

    A film's gap is the mean of its clips of side 1 minus that of its clips of side 0. In the null, sides are
    permuted among the clips of each film, which keep their values: there the gap is chance. The finding keeps
    the measure, as a function of the sides, so that it can be repeated with sides that are permuted.

    Parameters
    ----------
    values : ndarray, shape [N]
        Value of each clip.
    sides : ndarray, shape [N]
        Side of each clip: 1, 0, or -1 for a clip of neither side.
    films : ndarray, shape [N]
        Number of each clip's film, from 0 to M - 1.
    """

    def gaps_for_sides(sides_of_clips: NDArray[np.int64]) -> Numbers:
        """Return the gap of each film if the clips are on the given sides, [M]."""
        return film_gaps(values, sides_of_clips, films)

    def measure(sides_of_clips: NDArray[np.int64]) -> Measured:
        """Average the gaps of the films if the clips are on the given sides."""
        return _average_gaps(gaps_for_sides, sides_of_clips, films)

    return measure_repeatably(measure, sides)


def _average_gaps(
    gaps_for: Callable[[NDArray[Any]], Numbers], labels: NDArray[Any], films: NDArray[np.intp]
) -> Measured:
    """Average gaps over films, with the null in which the clips' labels are permuted within each film.

    Parameters
    ----------
    gaps_for
        Function from the labels of the clips to the gap of each film, NaN where it is undefined. It is
        called with `labels`, and with every permutation of them.
    labels : ndarray, shape [N]
        Label of each clip: its side, or whether it is of the highest level.
    films : ndarray, shape [N]
        Number of each clip's film.
    """

    def average_gap(drawn_labels: NDArray[Any]) -> float:
        """Return the mean of the defined gaps, for given labels."""
        return _mean_defined(gaps_for(drawn_labels))

    null = null_of_levels_within_films(labels, films, average_gap)
    return replace(mean_over_units(gaps_for(labels), "films"), null=null)


def _paper_clips(manifest: manifests.Manifest) -> pd.DataFrame:
    """Return the table of clips, sorted by film, with the labels as the paper uses them.

    Its label policy (`LabelPolicy.PAPER`) lowers clips without a visual concept to the lowest level.
    """
    table = clip_table(manifests.apply_policy(manifest, manifests.LabelPolicy.PAPER))
    return table.sort_values("movie", kind="stable")


def under_paper_labels(
    measure: Callable[Concatenate[Any, P], Measured],
) -> Callable[Concatenate[Any, P], Measured]:
    """Decorate a measure that uses the labels as the paper does: its note says how many that changes.

    The paper's label policy lowers clips without a visual concept to the lowest level; the measure applies it
    (`_paper_clips`), and the decorator only adds the note. The measure's first argument is a manifest, or a
    pair of a manifest and further data of its clips, such as the variables that `staged` compares.
    """

    @wraps(measure)
    def measured(source: Any, /, *args: P.args, **arguments: P.kwargs) -> Measured:
        """Measure, and add the note."""
        manifest = source
        if isinstance(source, tuple):
            manifest, _ = source
        return _with_note(measure(source, *args, **arguments), _note_on_paper_labels(manifest))

    return measured


def under_annotated_labels(
    measure: Callable[Concatenate[Any, P], Measured],
) -> Callable[Concatenate[Any, P], Measured]:
    """Decorate a measure: its note says that the labels are as they were annotated."""

    @wraps(measure)
    def measured(source: Any, /, *args: P.args, **arguments: P.kwargs) -> Measured:
        """Measure, and add the note."""
        return _with_note(measure(source, *args, **arguments), "labels as annotated")

    return measured


def _with_note(finding: Measured, note: str) -> Measured:
    """Return a finding with a note behind those that it has."""
    all_notes = f"{finding.note}; {note}" if finding.note else note
    return replace(finding, note=all_notes)


def _note_on_paper_labels(manifest: manifests.Manifest) -> str:
    """Return a note on how many clips, or segments, the paper's labels lower to the lowest level.

    These are the clips that were annotated with a higher level and have no visual concept.
    """
    lowest_level, *higher_levels = manifest.codebook.level_names
    annotated = clip_table(manifest)
    above_lowest = annotated[annotated["level"].isin(higher_levels)]
    n_lowered = int((above_lowest["n_concepts"] == 0).sum())
    return (
        f"labels of the paper: {n_lowered:,} of the {len(above_lowest):,} annotated "
        f"{', '.join(higher_levels)} have no visual concept and count as {lowest_level}"
    )


# --- sentences of 001 that ObyGaze12's annotations decide
# ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Marks:
    """Concepts of clips by level.

    Attributes
    ----------
    present : ndarray, shape [N, K]
        1 where a clip has a concept.
    ranks : ndarray, shape [N]
        Rank of each clip's level: 0 for HN, 1 for NS, 2 for S. The lowest level, EN, has no marks.
    """

    present: Numbers
    ranks: NDArray[np.intp]

    def distance(self, clips: "NDArray[np.bool_] | None" = None) -> float:
        """Return how far the shares of concepts among the marks at HN and at S are apart (total variation).

        It is 0 if concepts have the same shares at both, 1 if no concept is marked at both, and NaN if there
        are no marks at one of them.

        Parameters
        ----------
        clips : bool ndarray, shape [N], optional
            Which clips count; by default all.
        """
        chosen = np.ones(len(self.ranks), bool) if clips is None else clips
        # Number of marks of each concept in clips of the level HN, and in those of S, [K].
        marks_at_hn = self.present[chosen & (self.ranks == RANK_OF_HN)].sum(axis=0)
        marks_at_s = self.present[chosen & (self.ranks == RANK_OF_S)].sum(axis=0)
        if not marks_at_hn.sum() or not marks_at_s.sum():
            return stats.NAN
        differences = marks_at_hn / marks_at_hn.sum() - marks_at_s / marks_at_s.sum()
        return float(np.abs(differences).sum() / 2)


@under_paper_labels
def same_rate(manifest: manifests.Manifest, *, margin: float) -> Measured:
    """Measure how far the shares of concepts among the marks at HN and at S are apart.

    The distance is 0 if each concept has the same share of the marks at both levels, and 1 if no concept is
    marked at both (`Marks.distance`).

    The sentence says that levels are alike. A test that finds no difference does not show this, as data may
    be few. So the data of the null are ones for which the sentence is untrue: levels that differ by twice the
    margin. The sentence holds if the measured distance is clearly smaller than the distances of such data.

    The finding's p is of another test, the usual one: whether HN, NS and S clips have the same shares of
    concepts. It is computed for these clips alone, not again for data of the null.

    Parameters
    ----------
    manifest
        ObyGaze12, or free segments with its levels.
    margin
        Distance up to which levels count as equal.
    """
    concepts = manifest.codebook.visual_concepts
    levels = manifest.codebook.level_names[1:]  # HN, NS, S
    table = _paper_clips(manifest)
    table = table[table["level"].isin(levels)]
    present = np.column_stack([_marked(table, concept) for concept in concepts]).astype(np.float64)
    observed_marks = Marks(present, table["level"].map(levels.index).to_numpy())
    films = film_indices(table)
    movies = table["movie"].to_numpy(dtype=str)

    def make_levels_differ(marks: Marks, rng: np.random.Generator) -> Marks:
        """Make data of the null: levels that differ by twice the margin.

        Levels are permuted within films, so that they are alike; then the difference is planted.
        """
        marks_of_alike_levels = Marks(marks.present, permuted_within(marks.ranks, films, rng))
        return plant_rates(marks_of_alike_levels, difference=2 * margin, rng=rng)

    def measure(measured_marks: Marks) -> Measured:
        """Measure the distance of the shares of any marks, with its jackknife interval over films.

        It is called with the observed marks, and by benchmarks with marks that the null has randomised.
        """
        interval = stats.jackknife_interval(measured_marks.distance, movies, bounds=(0, 1))
        null = Null(
            kind="a planted difference of twice the margin",
            data=measured_marks,
            statistic=Marks.distance,
            randomise=make_levels_differ,
        )
        return replace(from_interval(interval, "films"), null=null)

    # The finding holds `measure` too, by which benchmarks measure data of the null; these need no other test.
    finding = measure_repeatably(measure, observed_marks)
    p_of_usual_test = _permutation_p(observed_marks, films, len(levels))
    return replace(finding, p=p_of_usual_test, note=_largest_difference(observed_marks, concepts, levels))


def _permutation_p(marks: Marks, films: NDArray[np.intp], n_levels: int) -> float:
    """Return p of the test that levels have the same shares of concepts; levels are permuted within films.

    It is the share of assignments of levels, the observed one among them, whose chi-squared statistic is at
    least the observed one.

    Parameters
    ----------
    marks
        The concepts and levels of clips, which are sorted by film.
    films : ndarray, shape [N]
        Number of each clip's film.
    n_levels
        Number of levels.
    """
    rng = np.random.default_rng(0)
    n_permuted = N_PERMUTATIONS - 1
    permuted_ranks = np.stack([permuted_within(marks.ranks, films, rng) for _ in range(n_permuted)])
    permuted = _chi_squared(permuted_ranks, marks.present, n_levels)
    observed = _chi_squared(marks.ranks[None], marks.present, n_levels)[0]
    # A statistic that equals the observed one may come out a little lower, by rounding.
    min_counted = observed * (1 - RELATIVE_ROUNDING)
    n_as_large = np.count_nonzero(permuted >= min_counted)
    return (1 + n_as_large) / N_PERMUTATIONS


def _largest_difference(marks: Marks, names: Sequence[str], levels: Sequence[str]) -> str:
    """Return a note on the concept whose share of marks differs most between the lowest and highest level."""
    shares = {}
    for rank, level in enumerate(levels):
        marks_of_rank = marks.present[marks.ranks == rank]
        shares[level] = marks_of_rank.sum(axis=0) / marks_of_rank.sum()
    concept = int(np.argmax(np.abs(shares[levels[0]] - shares[levels[-1]])))
    share_texts = [f"{percentage(share[concept])}% of {level} marks" for level, share in shares.items()]
    return f"largest difference: {names[concept]}, {', '.join(share_texts)}"


def plant_rates(marks: Marks, difference: float, rng: np.random.Generator) -> Marks:
    """Move marks of the highest level to its rarest concept, so that its shares of concepts differ.

    A moved mark is added to those of the rarest concept on the same clip, so that a clip may have this
    concept several times: only shares of marks are compared.

    Parameters
    ----------
    marks
        The marks, which stay as they are.
    difference
        Share of the highest level's marks that is moved, on average.
    rng
        Chooses the marks that are moved.
    """
    clips_at_s = np.flatnonzero(marks.ranks == RANK_OF_S)
    marks_at_s = marks.present[clips_at_s]  # [clips at S, K]
    marks_of_concepts = marks_at_s.sum(axis=0)
    rarest = int(np.argmin(marks_of_concepts))

    # Only marks of other concepts can be moved: to move a share `difference` of all marks, each of them is
    # moved with a higher probability than that. If there are too few of them, all are moved.
    share_of_others = 1 - marks_of_concepts[rarest] / max(marks_of_concepts.sum(), 1)
    probability = 1.0
    if share_of_others > difference:
        probability = difference / share_of_others
    is_moved = (marks_at_s == 1) & (rng.random(marks_at_s.shape) < probability)
    is_moved[:, rarest] = False

    # On each clip, the rarest concept gets as many marks as the others lose.
    marks_left = np.where(is_moved, 0.0, marks_at_s)
    marks_left[:, rarest] += is_moved.sum(axis=1)
    present = marks.present.copy()
    present[clips_at_s] = marks_left
    return Marks(present, marks.ranks)


def _marked(clips: pd.DataFrame, concept: str) -> NDArray[np.bool_]:
    """Return whether each clip has a concept, [N]."""
    return np.array([concept in concepts for concepts in clips["concepts"]], dtype=np.bool_)


def _chi_squared(ranks: NDArray[np.intp], marks: Numbers, n_levels: int) -> Numbers:
    """Compute the chi-squared statistic of concepts by levels, for several assignments of levels.

    It is the sum of (observed - expected)² / expected over concepts and levels. Expected is the number of
    marks that a concept would have at a level if it had the same share of the marks at all levels.

    Parameters
    ----------
    ranks : ndarray, shape [R, N]
        In each row, the rank of each clip's level.
    marks : ndarray, shape [N, K]
        1 where a clip has a concept.
    n_levels
        Number of levels.

    Returns
    -------
    ndarray, shape [R]
    """
    # Number of marks of each concept at each level, [R, levels, K].
    observed = np.stack([(ranks == level) @ marks for level in range(n_levels)], axis=1)
    marks_of_level = observed.sum(axis=2, keepdims=True)  # [R, levels, 1]
    marks_of_concept = observed.sum(axis=1, keepdims=True)  # [R, 1, K]
    n_marks = observed.sum(axis=(1, 2), keepdims=True)  # [R, 1, 1]
    expected = marks_of_level * marks_of_concept / n_marks

    squares = (observed - expected) ** 2
    terms = np.divide(squares, expected, out=np.zeros_like(observed), where=expected > 0)
    return np.asarray(terms.sum(axis=(1, 2)))


@under_paper_labels
def rising(manifest: manifests.Manifest, unit: str = "clips") -> Measured:
    """Measure how many more visual concepts S clips have than HN clips, averaged over films.

    The null permutes the levels within films. `unit` says what the rows of the manifest are: "clips" or
    "segments".
    """
    levels = manifest.codebook.level_names[1:]  # HN, NS, S
    table = _paper_clips(manifest)
    table = table[table["level"].isin(levels)]
    n_concepts = table["n_concepts"].to_numpy(dtype=np.float64)
    sides = _sides(table["level"].to_numpy(dtype=str), level_of_1=levels[-1], level_of_0=levels[0])
    finding = _gap_of_sides(n_concepts, sides, film_indices(table))
    return replace(finding, note=_means_by_level(manifest, table, unit))


def _sides(levels: NDArray[np.str_], level_of_1: str, level_of_0: str) -> NDArray[np.int64]:
    """Return the side of each clip [N]: 1 for one level, 0 for another, -1 for all others."""
    return np.where(levels == level_of_1, 1, np.where(levels == level_of_0, 0, -1))


def _means_by_level(manifest: manifests.Manifest, table: pd.DataFrame, unit: str) -> str:
    """Return a note on the mean number of visual concepts at each level above the lowest.

    An example: `visual concepts per clip, films pooled: HN 0.90, NS 1.10, S 1.80`. "Films pooled" means that
    each mean is over the clips of all films at once. `unit` is what rows are called: "clips" or "segments".
    """
    means = table.groupby("level")["n_concepts"].mean()
    levels = manifest.codebook.level_names[1:]
    texts = [f"{level} {means.get(level, stats.NAN):.2f}" for level in levels]
    singular = unit.removesuffix("s")
    return f"visual concepts per {singular}, films pooled: {', '.join(texts)}"


@under_paper_labels
def smallest_rise(manifest: manifests.Manifest, unit: str = "clips") -> Measured:
    """Return the smallest rise in the mean number of visual concepts from one level to the next.

    Its `n` is the number of clips, or segments (`unit`), of these two levels.
    """
    table = _paper_clips(manifest)
    levels = list(manifest.codebook.level_names[1:])
    means = table.groupby("level")["n_concepts"].mean().reindex(levels)
    note = _means_by_level(manifest, table, unit)
    rise_of = {(low, high): float(means[high] - means[low]) for low, high in pairwise(levels)}
    if not rise_of:
        return Measured(unit=unit, note=note)
    # An undefined rise counts as the smallest.
    two_levels = min(rise_of, key=lambda pair: np.nan_to_num(rise_of[pair], nan=-math.inf))
    n_clips = int(table["level"].isin(two_levels).sum())
    return Measured(rise_of[two_levels], n=n_clips, unit=unit, note=note)


def rising_by_annotator(segments: manifests.Manifest) -> Measured:
    """Measure for each annotator how many more concepts segments have at S than at HN; return the least rise.

    The sentence says that the number rises for every annotator. So it is judged by the annotator for whom
    this is shown least: whose interval begins lowest (`lowest`). The note has the numbers of all of them.
    """
    rise_of_annotator = {}
    for name, segments_of_annotator in grouped(segments, "annotator").items():
        rise_of_annotator[name] = rising(segments_of_annotator, "segments")
    note = "; ".join(f"{name}: {rise.note}" for name, rise in rise_of_annotator.items())
    least_rise = _lowest_of_all(list(rise_of_annotator.values()))
    return replace(least_rise, note=note)


def _lowest_of_all(findings: Sequence[Measured]) -> Measured:
    """Return the finding whose interval begins lowest (`lowest`), with a null that repeats this choice.

    Even by chance, the lowest of several statistics is lower than one that is not chosen. So each draw of the
    null randomises the data of all findings, and takes the lowest of their statistics.

    Parameters
    ----------
    findings
        Findings that have a null and can be measured again.
    """
    choice = _ChoiceOfLowest([_as_repeatable(finding) for finding in findings])
    observed_data = [repeatable.null.data for repeatable in choice.measures]  # of each finding
    return measure_repeatably(choice.measure, observed_data)


class _Repeatable(NamedTuple):
    """What it takes to measure a finding again: its null, and the measure."""

    null: Null
    measure: Callable[[Any], Measured]


def _as_repeatable(finding: Measured) -> _Repeatable:
    """Return what repeats a finding on other data: its measure, and the null that draws such data.

    A ValueError is raised if the finding lacks one of them.
    """
    if finding.null is None or finding.measure_again is None:
        raise ValueError("expected a finding with a null and a measure")
    return _Repeatable(finding.null, finding.measure_again)


@dataclass(frozen=True)
class _ChoiceOfLowest:
    """The measure that takes several others and returns the lowest finding.

    Its data are a list: the data of each of `measures`, in their order.
    """

    measures: Sequence[_Repeatable]

    def measure(self, data: Sequence[Any]) -> Measured:
        """Take several measures, and return the finding whose interval begins lowest.

        Its null repeats the whole choice, not only the chosen measure: a draw randomises the data of each
        measure, and takes the lowest of their statistics.

        Parameters
        ----------
        data
            Data of each measure, in the order of `measures`.
        """
        findings = []
        for repeatable, data_of_measure in zip(self.measures, data, strict=True):
            findings.append(repeatable.measure(data_of_measure))
        null_of_choice = Null(
            kind="levels within films",
            data=data,
            statistic=self.statistic,
            randomise=self.randomise,
        )
        return replace(lowest(findings), null=null_of_choice)

    def statistic(self, data: Sequence[Any]) -> float:
        """Compute the statistic of each measure, and return the lowest."""
        statistics = []
        for repeatable, data_of_measure in zip(self.measures, data, strict=True):
            statistics.append(repeatable.null.statistic(data_of_measure))
        return min(statistics)

    def randomise(self, data: Sequence[Any], rng: np.random.Generator) -> list[Any]:
        """Randomise the data of each measure as its own null does."""
        randomised = []
        for repeatable, data_of_measure in zip(self.measures, data, strict=True):
            randomised.append(repeatable.null.randomise(data_of_measure, rng))
        return randomised


def smallest_rise_by_annotator(segments: manifests.Manifest) -> Measured:
    """Return the smallest of all annotators' rises in the number of visual concepts from level to level.

    It is the smallest of their own smallest rises (`smallest_rise`); the note says whose it is.
    """
    rise_of = {}
    for name, segments_of_annotator in grouped(segments, "annotator").items():
        rise_of[name] = smallest_rise(segments_of_annotator, "segments")
    # An undefined rise counts as the smallest.
    smallest = min(rise_of, key=lambda name: np.nan_to_num(rise_of[name].value, nan=-math.inf))
    return replace(rise_of[smallest], note=f"the least rise is that of {smallest}")


@under_paper_labels
def compositional(manifest: manifests.Manifest) -> Measured:
    """Measure how much larger the share of S is among clips with several concepts than among those with one.

    Only clips above the lowest level that have a concept count. The difference is averaged over films. In the
    null, clips keep their concepts, and which of a film's clips are S is permuted.
    """
    table = _clips_with_concepts(manifest)
    has_several = (table["n_concepts"] > 1).to_numpy()
    sides: NDArray[np.int64] = has_several.astype(np.int64)  # 1: several concepts; 0: one
    is_s = table["high"].to_numpy(dtype=np.float64)  # 1 or 0: its mean over clips is the share of S
    films = film_indices(table)

    def gaps_for_levels(is_s_of_clips: Numbers) -> Numbers:
        """Return the difference of the two shares of S in each film, [M], if the given clips are S."""
        return film_gaps(is_s_of_clips, sides, films)

    def measure(is_s_of_clips: Numbers) -> Measured:
        """Average the differences over films, if the given clips are S."""
        return _average_gaps(gaps_for_levels, is_s_of_clips, films)

    return replace(measure_repeatably(measure, is_s), note=_note_on_numbers_of_concepts(table))


def _note_on_numbers_of_concepts(clips: pd.DataFrame) -> str:
    """Return a note on the share of S among clips with one concept, with two, and so on."""
    high_by_number = clips.groupby("n_concepts")["high"].agg(["mean", "size"])
    share_texts = []
    for n_concepts, share, n_clips in high_by_number.itertuples():
        share_texts.append(f"{percentage(share)}% with {n_concepts} ({counted(round(n_clips), 'clip')})")
    return f"S, films pooled: {', '.join(share_texts)}"


@under_paper_labels
def clothing_alone(manifest: manifests.Manifest) -> Measured:
    """Measure the share of S among HN and S clips whose only visual concept is Clothing.

    Its interval is a jackknife over films. In the null, the levels of all HN and S clips that have a visual
    concept are permuted within films: the share is then that of chance.
    """
    table = _clips_with_concepts(manifest)
    table = table[table["level"] != "NS"]
    has_clothing = _marked(table, "Clothing")
    is_clothing_alone = has_clothing & (table["n_concepts"] == 1).to_numpy()
    note = _note_on_clothing(
        manifest, alone=table[is_clothing_alone], combined=table[has_clothing & ~is_clothing_alone]
    )
    movies = table.loc[is_clothing_alone, "movie"].to_numpy(dtype=str)
    films = film_indices(table)

    def share_of_s(is_s: NDArray[np.bool_]) -> float:
        """Return the share of S among the clips with Clothing alone, if the given clips are S."""
        return _mean(is_s[is_clothing_alone])

    def measure(is_s: NDArray[np.bool_]) -> Measured:
        """Measure this share with its interval and its null, if the given clips are S."""
        is_s_alone = is_s[is_clothing_alone]
        share = stats.jackknife_interval(lambda rows: _mean(is_s_alone[rows]), movies, bounds=(0, 1))
        null = null_of_levels_within_films(is_s, films, share_of_s)
        return replace(from_interval(share, "films"), null=null)

    # The measure is kept in the finding, to be repeated with permuted levels.
    return replace(measure_repeatably(measure, table["high"].to_numpy()), note=note)


def _count_of(values: "pd.Series[Any]") -> str:
    """Write how many of some truth values are true: `3 of 7`."""
    return f"{int(values.sum()):,} of {len(values):,}"


def _note_on_clothing(manifest: manifests.Manifest, alone: pd.DataFrame, combined: pd.DataFrame) -> str:
    """Return a note that counts the S clips among those with Clothing.

    Parameters
    ----------
    manifest
        The clips with all their concepts, those that are not visual too.
    alone, combined
        The clips whose only visual concept is Clothing, and those that have others as well.
    """
    concepts_of = {clip.clip_id: set(clip.concepts) for clip in manifest}
    is_only_concept = [concepts_of[clip_id] == {"Clothing"} for clip_id in alone["clip_id"]]
    without_others = alone.loc[np.array(is_only_concept, dtype=bool)]
    return (
        f"S: {_count_of(alone['high'])} clips with Clothing as their only visual concept, "
        f"{_count_of(without_others['high'])} of those without any concept "
        f"besides, {_count_of(combined['high'])} with other visual concepts"
    )


def _clips_with_concepts(manifest: manifests.Manifest) -> pd.DataFrame:
    """Return the clips above the lowest level that have a visual concept; column `high` says which are S."""
    table = _paper_clips(manifest)
    table = table[(table["level"] != manifest.codebook.level_names[0]) & (table["n_concepts"] > 0)]
    return table.assign(high=table["level"] == "S")


@under_annotated_labels
def any_visual(manifest: manifests.Manifest) -> Measured:
    """Measure the share of HN, NS and S clips, as annotated, that have a visual concept."""
    table = clip_table(manifest)
    above = table[table["level"] != manifest.codebook.level_names[0]]
    has_concept = above["n_concepts"] > 0
    return Measured(float(has_concept.mean()), n=len(above), unit="clips", note=_count_of(has_concept))


@under_paper_labels
def share_of_sure(manifest: manifests.Manifest) -> Measured:
    """Measure the share of the level S ("sure") among all clips, under the paper's labels."""
    table = _paper_clips(manifest)
    shares = table["level"].value_counts(normalize=True)
    annotated = clip_table(manifest)["level"].value_counts(normalize=True)
    note = f"{_write_shares(shares)}; as annotated {_write_shares(annotated)}"
    return Measured(float(shares["S"]), n=len(table), unit="clips", note=note)


def _write_shares(shares: "pd.Series[Any]") -> str:
    """Write the share of each level: `EN 61.0%, S 20.1%`."""
    return ", ".join(f"{level} {share:.1%}" for level, share in shares.items())


def _write_counts(counts: "pd.Series[Any]") -> str:
    """Write the number of clips of each level: `EN 900 clips, S 300 clips`."""
    return ", ".join(f"{level} {counted(count, 'clip')}" for level, count in counts.items())


@under_paper_labels
def above_the_rarest(manifest: manifests.Manifest) -> Measured:
    """Measure by how much the share of S among all clips is above that of the rarest other level."""
    table = _paper_clips(manifest)
    clips_of_level = table["level"].value_counts()
    clips_of_rarest = clips_of_level.drop("S").min()
    difference = (clips_of_level["S"] - clips_of_rarest) / len(table)
    annotated = clip_table(manifest)["level"].value_counts()
    note = f"{_write_counts(clips_of_level)}; as annotated {_write_counts(annotated)}"
    return Measured(float(difference), n=len(table), unit="clips", note=note)


def released_share(manifest: manifests.Manifest) -> Measured:
    """Measure the share of S in the released test fold of the task EN against S."""
    level_of = {clip.clip_id: clip.level for clip in manifest}
    # All folds have the same test side.
    first_fold = classifier_folds(manifest, TASKS["en_s"], TASKS["en_s"])[0]
    levels = [level_of[clip_id] for clip_id in first_fold.test]
    return Measured(levels.count("S") / len(levels), n=len(levels), unit="clips")


@under_annotated_labels
def shots_tell(manifest: manifests.Manifest, *, margin: float) -> Measured:
    """Measure how well a clip's number of shots alone tells S from EN and HN: the mean AUC within films.

    The sentence says that shots tell nothing: a mean AUC of about 0.5. A mean near 0.5 confirms it only if
    shots that do tell something would give another one. So the finding's null is films whose mean AUC is
    twice the margin below 0.5, or above it (`planted_off_centre`). Its p is of the usual test, whether the
    mean differs from 0.5.

    Parameters
    ----------
    manifest
        ObyGaze12, whose clips have a number of shots.
    margin
        How far from 0.5 a mean AUC may lie to count as 0.5.
    """
    table = clip_table(manifest)
    table = table[(table["level"] != "NS") & table["shots"].notna()]
    auc_of_films = []
    for _, clips in table.groupby("movie"):
        is_sure = (clips["level"] == "S").to_numpy().astype(int)
        auc_of_films.append(stats.auc(is_sure, clips["shots"].to_numpy()))

    def measure(auc_by_film: Numbers) -> Measured:
        """Average the AUC of films, compare the mean with 0.5, and add the null."""
        finding = mean_over_units(auc_by_film, "films", null=0.5)
        return replace(finding, null=planted_off_centre(auc_by_film, centre=0.5, margin=margin))

    return measure_repeatably(measure, np.array(auc_of_films))


def hard_negatives(predictions: pd.DataFrame) -> Measured:
    """Measure how much better perceptrons trained on HN and S are than those trained on EN and S, over films.

    The number is the difference of their average precision in each film, tested on EN, HN and S. The note has
    the same difference, tested on EN and S alone.
    """
    ap = _ap_of_films(predictions[predictions["model"] == "mlp"])

    # Hard: trained on HN and S. Easy: trained on EN and S.
    gain_on_all = ap[HARD_ON_ALL] - ap[EASY_ON_ALL]
    gain_on_easy = ap[HARD_ON_EASY] - ap[EASY_ON_EASY]
    values = gain_on_all.to_numpy(dtype=np.float64)
    note = f"tested on EN and S alone {signed(gain_on_easy.mean(), 3)}"
    return replace(measure_repeatably(_mean_over_films, values), note=note)


def _ap_of_films(predictions: pd.DataFrame) -> Any:
    """Return the average precision of a model by task and film, the mean over its seeds, as runs compute it.

    It is a series: `ap[task]` has the value of each film, NaN where all of its clips are of one class.
    """
    metric = stats.METRICS["average_precision"]
    group_columns = ["task", "movie"]
    if "seed" in predictions:
        group_columns.append("seed")
    ap_of_group = {}
    for group, rows in predictions.groupby(group_columns):
        labels = rows["label"].to_numpy()
        scores = rows["score"].to_numpy()
        # A metric of a film also takes the model's calls. Average precision does not read them: the labels
        # stand in their place.
        ap_of_group[group] = metric.of_movie(labels, scores, labels)
    # The first two levels of the index are task and film.
    return pd.Series(ap_of_group).groupby(level=[0, 1]).mean()


def _mean_over_films(values: Numbers) -> Measured:
    """Average one value of each film [M]; the null has random signs of the films' values."""
    return replace(mean_over_units(values, "films"), null=null_of_signs_by_film(values))


@under_paper_labels
def staged(inputs: tuple[manifests.Manifest, pd.DataFrame], *, variable: str, concept: str = "") -> Measured:
    """Measure how much a variable of staging differs between two kinds of clips, film by film.

    Parameters
    ----------
    inputs
        ObyGaze12, and the variables of its clips by clip id.
    variable
        The variable, such as the number of cuts.
    concept
        The clips with this concept are compared with those without it; by default S is compared with HN.
    """
    manifest, variables = inputs
    clips = _paper_clips(manifest)
    # A table without the variable's column has no value for any clip, and the note says so.
    value_of_clip = variables.get(variable, pd.Series(dtype=np.float64))
    clips = clips.assign(value=clips["clip_id"].map(value_of_clip)).dropna(subset="value")
    values = clips["value"].to_numpy(dtype=np.float64)
    films = film_indices(clips)
    if concept:
        sides = _marked(clips, concept).astype(np.int64)
    else:
        sides = _sides(clips["level"].to_numpy(dtype=str), level_of_1="S", level_of_0="HN")
    note = f"{len(clips):,} of {counted(len(manifest), 'clip')} have the column {variable}"
    return replace(_gap_of_sides(values, sides, films), note=note)


# --- sentences of 001 that MObyGaze decides, by the same authors
# ---------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoExperts:
    """Levels that two experts gave to the windows of a film, as ranks [N] each."""

    movie: str
    first: NDArray[np.intp]
    second: NDArray[np.intp]

    def with_second_permuted(self, rng: np.random.Generator) -> "TwoExperts":
        """Return the experts with the levels of the second one permuted among the windows."""
        return replace(self, second=rng.permutation(self.second))


def expert_pairs(segments: manifests.Manifest) -> list[TwoExperts]:
    """Project free segments onto equal windows, and pair the levels that two experts of a film gave them.

    There is a pair for every two experts of each film.
    """
    equal_windows = manifests.windows(segments, manifests.DEFAULT_WINDOW_S)
    projected = manifests.project(segments, equal_windows, per_annotator=True).manifest
    rank = {name: index for index, name in enumerate(segments.codebook.level_names)}
    pairs = []
    for pair in manifests.level_pairs(projected):
        # `counts` says how many windows have each pair of levels: two arrays with a row per window follow.
        n_windows = list(pair.counts.values())
        first_ranks = np.array([rank[first] for first, _ in pair.counts], np.intp)
        second_ranks = np.array([rank[second] for _, second in pair.counts], np.intp)
        first = np.repeat(first_ranks, n_windows)
        second = np.repeat(second_ranks, n_windows)
        pairs.append(TwoExperts(pair.movie, first, second))
    return pairs


def null_of_one_experts_labels(
    pairs: Sequence[TwoExperts], statistic: Callable[[Sequence[TwoExperts]], float]
) -> Null:
    """Return the null in which the labels of one of two experts are permuted within each film.

    `statistic` computes a number from the pairs of experts of all films.
    """

    def permute(pairs_drawn: Sequence[TwoExperts], rng: np.random.Generator) -> list[TwoExperts]:
        """Permute the labels of one expert within each film."""
        return [pair.with_second_permuted(rng) for pair in pairs_drawn]

    return Null("one annotator's labels within films", pairs, statistic, permute)


def overlooked(segments: manifests.Manifest) -> Measured:
    """Measure, among windows that two experts label differently, the share that one of them labelled EN.

    EN (easy negative) is the lowest level: one expert saw nothing to mark, where the other marked something.
    """
    pairs = expert_pairs(segments)
    is_overlooked = np.concatenate([_is_overlooked_by_one(pair) for pair in pairs])
    n_windows = sum(len(pair.first) for pair in pairs)
    differing = counted(len(is_overlooked), "window")
    note = f"{int(is_overlooked.sum()):,} of {differing} that differ, of {n_windows:,}"
    return replace(measure_repeatably(_overlooked_share, pairs), note=note)


def _overlooked_share(pairs: Sequence[TwoExperts]) -> Measured:
    """Measure, among windows that two experts label differently, the share that one gave the lowest level.

    The share is of the windows of all films, and its interval is a jackknife over films. The test compares
    the share in each film with one half. In the null, one expert's labels are permuted within each film.
    """
    overlooked_by_pair = [_is_overlooked_by_one(pair) for pair in pairs]
    is_overlooked = np.concatenate(overlooked_by_pair)  # windows of all films, one film after the other
    n_windows = [len(overlooked_of_pair) for overlooked_of_pair in overlooked_by_pair]
    movies = np.repeat([pair.movie for pair in pairs], n_windows)  # of each of these windows
    share = stats.jackknife_interval(lambda rows: _mean(is_overlooked[rows]), movies, bounds=(0, 1))
    share_of_films = [float(is_overlooked[movies == movie].mean()) for movie in np.unique(movies)]
    p = stats.sign_flip(np.array(share_of_films) - 0.5).p

    def share_of_pairs(pairs_drawn: Sequence[TwoExperts]) -> float:
        """Return the same share from pairs whose labels the null has permuted."""
        return _mean(np.concatenate([_is_overlooked_by_one(pair) for pair in pairs_drawn]))

    null = null_of_one_experts_labels(pairs, statistic=share_of_pairs)
    return replace(from_interval(share, "films", p=p), null=null)


def _is_overlooked_by_one(pair: TwoExperts) -> NDArray[np.bool_]:
    """Return, for each window that two experts label differently, whether one gave it the lowest level.

    Windows to which both gave the same level are left out. An example, with ranks of levels from 0 (EN) on:
    first 0, 1, 2 and second 2, 2, 2 -> True, False; the third window is left out.
    """
    do_labels_differ = pair.first != pair.second
    lower_ranks = np.minimum(pair.first[do_labels_differ], pair.second[do_labels_differ])
    return np.asarray(lower_ranks == 0)  # 0 is the rank of the lowest level


class WindowsAtThresholds(NamedTuple):
    """How many equal windows of each film have each level, at projection threshold .1 and at .4.

    Attributes
    ----------
    at_lower, at_higher : DataFrame
        A row for each film, a column for each level that any window has.
    """

    at_lower: pd.DataFrame
    at_higher: pd.DataFrame


def windows_at_thresholds(segments: manifests.Manifest) -> WindowsAtThresholds:
    """Count the equal windows of each film and level that free segments give, at two projection thresholds.

    A window gets the label of a segment that covers at least this part of it: .1, or .4. The levels are those
    of the paper's label policy.
    """
    equal_windows = manifests.windows(segments, manifests.DEFAULT_WINDOW_S)
    counts = []
    for projection in manifests.sweep(segments, equal_windows, [0.1, 0.4]).values():
        table = _paper_clips(projection.manifest)
        counts_of_films = pd.crosstab(table["movie"], table["level"])
        counts.append(counts_of_films.reindex(list(segments.movies), fill_value=0))
    at_lower, at_higher = counts
    return WindowsAtThresholds(at_lower=at_lower, at_higher=at_higher)


def thresholds(segments: manifests.Manifest | WindowsAtThresholds, *, level: str, sign: int) -> Measured:
    """Measure how the number of windows of a level changes from projection threshold .1 to .4, over films.

    Parameters
    ----------
    segments
        Free segments; or the windows of all levels that they have (`windows_at_thresholds`), which take long
        to count and serve all levels.
    level
        The level.
    sign
        1 if the paper prints a rise, -1 if it prints a fall: a change in its direction is positive.
    """
    windows = segments
    if not isinstance(windows, WindowsAtThresholds):
        windows = windows_at_thresholds(windows)
    at_lower = _windows_of_level(windows.at_lower, level)
    at_higher = _windows_of_level(windows.at_higher, level)
    change = at_higher - at_lower  # of each film
    values = np.asarray(sign * change, dtype=np.float64)
    return replace(measure_repeatably(_mean_over_films, values), note=f"{level} {change.sum():+,} windows")


def _windows_of_level(counts: pd.DataFrame, level: str) -> NDArray[np.int64]:
    """Return the number of windows of a level in each film, a row of `WindowsAtThresholds`; 0 without any."""
    if level not in counts:
        return np.zeros(len(counts), dtype=np.int64)
    return counts[level].to_numpy(dtype=np.int64)


PREPARED: Mapping[str, Callable[[manifests.Manifest], Any]] = {"thresholds": windows_at_thresholds}
"""Measure -> function that makes of a manifest what the measure reads, once for all parts that name it."""


def without_unsure(segments: manifests.Manifest) -> Measured:
    """Measure how much gamma rises, over films, if windows that an expert labelled NS are left out.

    Gamma is the agreement of two experts on the windows of a film. NS ("not sure") is the only level of the
    codebook that is not in its `labels`. In the null, one expert's labels are permuted within each film.
    """
    codebook = segments.codebook
    is_sure = np.array([name in codebook.labels for name in codebook.level_names])
    gammas_of = _GammasOfExperts(level_distances=manifests.distances(codebook), is_sure=is_sure)
    pairs = expert_pairs(segments)

    def mean_rise(pairs_of_experts: Sequence[TwoExperts]) -> float:
        """Return by how much gamma rises on average; pairs where it is undefined are left out."""
        return _mean_defined(gammas_of.rises(pairs_of_experts))

    def measure(pairs_of_experts: Sequence[TwoExperts]) -> Measured:
        """Average the rise over films, with its interval and its null."""
        finding = mean_over_units(gammas_of.rises(pairs_of_experts), "films")
        return replace(finding, null=null_of_one_experts_labels(pairs_of_experts, mean_rise))

    # The note has the mean gamma with and without NS. Both are over the pairs that have both.
    gammas = gammas_of.all_windows(pairs)
    gammas_without = gammas_of.sure_windows(pairs)
    has_both = np.isfinite(gammas) & np.isfinite(gammas_without)
    mean_gamma = _mean(gammas[has_both])
    mean_without = _mean(gammas_without[has_both])
    note = f"mean gamma {mean_gamma:.3f}, without NS {mean_without:.3f}"
    return replace(measure_repeatably(measure, pairs), note=note)


@dataclass(frozen=True, eq=False)
class _GammasOfExperts:
    """Gamma of pairs of experts, with the windows that one of them labelled NS and without these.

    Attributes
    ----------
    level_distances : ndarray, shape [levels, levels]
        Distance of every two levels.
    is_sure : bool ndarray, shape [levels]
        Whether each level is another than NS.
    """

    level_distances: Numbers
    is_sure: NDArray[np.bool_]

    def all_windows(self, pairs: Sequence[TwoExperts]) -> Numbers:
        """Return gamma of each pair of experts over all windows, [M]; NaN where it is undefined."""
        return np.array([_gamma(pair, self.level_distances) for pair in pairs])

    def sure_windows(self, pairs: Sequence[TwoExperts]) -> Numbers:
        """Return gamma of each pair of experts over the windows that neither labelled NS, [M]."""
        return self.all_windows([_where_both_are_sure(pair, self.is_sure) for pair in pairs])

    def rises(self, pairs: Sequence[TwoExperts]) -> Numbers:
        """Return by how much gamma of each pair rises if windows labelled NS are left out, [M]."""
        return self.sure_windows(pairs) - self.all_windows(pairs)


def _gamma(pair: TwoExperts, level_distances: Numbers) -> float:
    """Return gamma, 1 - observed / expected distance of two experts' levels; NaN where it is undefined.

    Parameters
    ----------
    pair
        The experts' levels.
    level_distances : ndarray, shape [levels, levels]
        Distance of every two levels.
    """
    if not len(pair.first):
        return stats.NAN
    n_levels = len(level_distances)
    observed = float(level_distances[pair.first, pair.second].mean())
    share_of_first = np.bincount(pair.first, minlength=n_levels) / len(pair.first)
    share_of_second = np.bincount(pair.second, minlength=n_levels) / len(pair.second)
    expected = float(share_of_first @ level_distances @ share_of_second)
    if not expected:
        return stats.NAN
    return 1 - observed / expected


def _where_both_are_sure(pair: TwoExperts, is_sure: NDArray[np.bool_]) -> TwoExperts:
    """Return two experts' levels of the windows that neither labelled NS.

    Parameters
    ----------
    pair
        The experts' levels.
    is_sure : bool ndarray, shape [levels]
        Whether each level is another than NS.
    """
    both_sure = is_sure[pair.first] & is_sure[pair.second]
    return TwoExperts(pair.movie, pair.first[both_sure], pair.second[both_sure])


# --- sentences of 002 and 004
# ---------------------------------------------------------------------------
# Measures of printed numbers have no input: their first argument, which every measure has, is None.


def alike_scores(_no_input: None, *, margin: float) -> Measured:
    """Measure how far the two printed ratios of objects are apart, on average, over captioners.

    For each captioner the paper prints two ratios of an object towards man: one by co-occurrences
    (`object_to_man`), one by Gender Scores (`score_to_man`). The sentence says that they are alike. Its null
    is the opposite: a mean distance of twice the margin. Printed numbers need no input, so that the first
    argument, which every measure has, is None.
    """
    distances = []
    for printed in TOTALS.values():
        score_ratios = printed["score_to_man"]
        distances_of_objects = []
        for name, ratio in printed["object_to_man"].items():
            distances_of_objects.append(abs(score_ratios[name] - ratio))
        distances.append(float(np.mean(distances_of_objects)))

    def measure(measured_distances: Numbers) -> Measured:
        """Average the distances over captioners. The null's mean lies above 0, as no distance is negative."""
        null = planted_off_centre(measured_distances, centre=0.0, margin=margin, sides=(1.0,))
        return _mean_over_captioners(measured_distances, null)

    return measure_repeatably(measure, np.array(distances))


def _mean_over_captioners(values: Numbers, null: Null) -> Measured:
    """Average values between 0 and 1, one per captioner [M], with the mean's t interval."""
    average = stats.t_interval(values, bounds=(0, 1))
    return replace(from_interval(average, "captioners"), null=null)


def balanced_object(_no_input: None, *, margin: float) -> Measured:
    """Average over captioners the printed ratio of the object that is named most equally with man and woman.

    It is the object whose mean ratio towards man (0: only with woman, 1: only with man) is nearest to 0.5.
    The sentence says that this object is balanced. Its null is the opposite: a mean that is twice the margin
    from 0.5, on either side. Printed numbers need no input, so that the first argument, which every measure
    has, is None.
    """
    # A row per object, a column per captioner, whose ratios the paper prints (`TOTALS`).
    ratios = pd.DataFrame({captioner: printed["object_to_man"] for captioner, printed in TOTALS.items()})
    distances_from_half = (ratios.mean(axis=1) - 0.5).abs()
    most_balanced = str(distances_from_half.idxmin())

    def measure(ratios_of_object: Numbers) -> Measured:
        """Average the ratios of an object over captioners, with the null."""
        null = planted_off_centre(ratios_of_object, centre=0.5, margin=margin)
        return _mean_over_captioners(ratios_of_object, null)

    ratios_of_most_balanced = ratios.loc[most_balanced].to_numpy(dtype=np.float64)
    finding = measure_repeatably(measure, ratios_of_most_balanced)
    return replace(finding, note=f"object: {most_balanced}")


def models_with(_no_input: None, *, tests: Sequence[str], least: float, starred: bool) -> Measured:
    """Count the models of the printed tables whose effect is above a number on each of some tests.

    Printed numbers need no input, so that the first argument, which every measure has, is None.

    Parameters
    ----------
    tests
        Names of tests in the printed tables (`EFFECTS`). The note names each by the part behind its last
        underscore.
    least
        The number, an effect size.
    starred
        Whether each of the effects must also have a star, which the paper prints for a p below .05.
    """
    n_above = 0
    for effects in EFFECTS.values():
        if all(_is_above(effects[name], least, starred=starred) for name in tests):
            n_above += 1
    test_names = " and ".join(name.split("_")[-1] for name in tests)
    return Measured(n_above, n=len(EFFECTS), unit="models", note=f"{test_names}: {n_above}")


def _is_above(effect: PrintedEffect, least: float, *, starred: bool) -> bool:
    """Return whether a printed effect size is above `least` and, with `starred`, has a star (p below .05)."""
    if starred and not effect.star:
        return False
    return effect.d > least


def words_ratio(table: pd.DataFrame, *, emotion: str) -> Measured:
    """Divide the rate of an emotion's words for partially clothed subjects by that for clothed ones."""
    words = _words_counted(table, emotion)
    rates = _rates(table, emotion, words)[[PARTLY_CLOTHED, CLOTHED]].to_numpy(dtype=np.float64)
    partly_clothed, clothed = rates.mean(axis=0)
    note = (
        f"per 1,000 captions: {partly_clothed:.2f} partially clothed, {clothed:.2f} clothed "
        f"({', '.join(words)})"
    )
    return replace(measure_repeatably(_ratio_of, rates), note=note)


def _ratio_of(rates: Numbers) -> Measured:
    """Measure the ratio of the mean rates of two conditions, with a jackknife over persons.

    The paper says that the first rate is less than half of the second. p is the chance of so large a first
    rate minus half of the second if that is 0 on average (sign flips). The null of the ratio exchanges the
    two conditions of a person by chance.

    Parameters
    ----------
    rates : ndarray, shape [P, 2]
        Rates of each person, partially clothed and clothed.
    """

    def ratio(persons_rates: Numbers) -> float:
        """Return the first mean rate of the persons over the second; NaN if that is 0."""
        partly_clothed, clothed = persons_rates.mean(axis=0)
        return float(partly_clothed / clothed) if clothed else stats.NAN

    persons = np.array([f"{index:03}" for index in range(len(rates))])  # jackknife groups, in this order
    interval = stats.jackknife_interval(lambda rows: ratio(rates[rows]), persons, bounds=(0, math.inf))
    p = stats.sign_flip(rates[:, 0] - rates[:, 1] / 2).p
    null = Null("conditions within persons", rates, ratio, _conditions_exchanged)
    return replace(from_interval(interval, "people pictured", p=p), null=null)


def _conditions_exchanged(rates: Numbers, rng: np.random.Generator) -> Numbers:
    """Return the rates [P, 2] with the two conditions of each person exchanged with probability one half."""
    is_exchanged = rng.random(len(rates)) < 0.5  # [P]
    exchanged = rates[:, ::-1]
    return np.where(is_exchanged[:, None], exchanged, rates)


def words_rate(table: pd.DataFrame, *, emotion: str) -> Measured:
    """Average the rate of an emotion's words for partially clothed persons, at the level with most of them.

    The paper says of all levels of the emotion that the rate is below a bound. So the level is measured whose
    interval ends highest (one without an interval counts as highest). As it was chosen among several, its p
    is adjusted (Bonferroni). The note gives the rates of all levels.
    """
    words = _words_counted(table, emotion)
    level_of_picture = table["emotion"].str[LENGTH_OF_EMOTION_CODE:]  # "1", "2", or "" for no level
    findings = []
    for level, pictures in table.groupby(level_of_picture):
        if level:
            findings.append(_rate_at_level(str(level), _rates(pictures, emotion, words)))
    highest = max(findings, key=lambda finding: np.nan_to_num(finding.high, nan=math.inf))
    note = f"{', '.join(finding.note for finding in findings)} ({', '.join(words)})"
    return replace(highest, note=note, p=_bonferroni(highest.p, len(findings)))


def _rate_at_level(level: str, rates: pd.DataFrame) -> Measured:
    """Average the rate of an emotion's words over partially clothed persons, at one level of the emotion.

    The test asks whether the mean differs from 1 word per 1,000 captions, the bound that the paper prints.

    Parameters
    ----------
    level
        The level in the pictures' codes of emotion, "1" or "2"; the note names it.
    rates
        Words per 1,000 captions of pictures of this level: a row per person, a column per condition
        (`_rates`).
    """
    rates_of_persons = rates[PARTLY_CLOTHED].to_numpy()
    average = stats.t_interval(rates_of_persons, bounds=(0, math.inf))
    p = stats.sign_flip(rates_of_persons - PRINTED_RATE_BOUND).p
    note = f"level {level}: {average.mean:.2f}"
    return from_interval(average, unit="people pictured", note=note, p=p)


def _words_counted(table: pd.DataFrame, emotion: str) -> list[str]:
    """Return the words of an emotion that occur at least `MIN_OCCURRENCES` times in all captions.

    Examples
    --------
    >>> _words_counted(pd.DataFrame({"happy": [60, 40], "smile": [60, 39], "sad": [200, 0]}), "happiness")
    ['happy']
    """
    totals = table.sum(numeric_only=True)
    return [word for word in EMOTION_WORDS[emotion] if totals.get(word, 0) >= MIN_OCCURRENCES]


def _rates(pictures: pd.DataFrame, emotion: str, words: Sequence[str]) -> pd.DataFrame:
    """Return the rate of words per 1,000 captions: a row per person, a column per condition.

    Parameters
    ----------
    pictures
        Counts of words in the captions of pictures: a row per picture, a column per word.
    emotion
        The emotion that the counted pictures show.
    words
        The words, whose occurrences are added up.
    """
    emotion_code = pictures["emotion"].str[:LENGTH_OF_EMOTION_CODE]
    of_emotion = pictures[emotion_code.map(EMOTION_OF_CODE.get) == emotion]
    of_emotion = of_emotion.assign(n_words=of_emotion[list(words)].sum(axis=1))
    n_words = of_emotion.pivot_table("n_words", "subject", "condition", aggfunc="sum")
    n_captions = of_emotion.pivot_table("n_captions", "subject", "condition", aggfunc="sum")
    return 1000 * n_words / n_captions
