"""Measure what the sentences of `obygaze_studies.claims.claims_report` are about, from released data.

Where clips were annotated, films are what was sampled: intervals are jackknife or t intervals over films,
tests change signs of films or permute levels within them. A sampled number brings its null (`nulls`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from itertools import pairwise
from typing import Any, Concatenate, ParamSpec

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

import obygaze_features.manifest as manifests
import obygaze_models.evaluation as stats
from obygaze_features.text import counted
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

LEAST_OCCURRENCES = 100
"""Emotion words with fewer occurrences in all captions are left out (004, section 4.3)."""

PARTLY_CLOTHED = "O"
CLOTHED = "NO"
"""Conditions of a picture in the released counts of words (objectified, and not)."""

EMOTION_OF_CODE = {"AN": "anger", "SA": "sadness", "HA": "happiness"}
"""First two letters of a picture's `emotion` in the released counts of words -> the emotion it shows."""

RANK_OF_HN = 0
RANK_OF_S = 2
"""Ranks of the lowest and the highest level in `Marks`, which leaves EN out."""

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
        Further numbers, as text.
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
        Further numbers, as text.
    null
        The mean that the test compares with.
    """
    test = stats.sign_flip(np.asarray(values) - null)
    return from_interval(stats.t_interval(values), unit, note, p=test.p)


def from_interval(average: stats.Interval, unit: str, note: str = "", *, p: float = stats.NAN) -> Measured:
    """Return the finding of an average with its interval, its unit and the p of its test, if there is one."""
    return Measured(average.mean, average.low, average.high, p, n=average.n_movies, unit=unit, note=note)


def measure_repeatably(measure: Callable[[Any], Measured], data: Any) -> Measured:
    """Apply a measure to data, and store the measure in the finding, as `Measured.measure_again`.

    With it, benchmarks measure the data sets that the finding's null draws.
    """
    return replace(measure(data), measure_again=measure)


def lowest(findings: Sequence[Measured]) -> Measured:
    """Return the finding whose interval begins lowest, with p adjusted for the choice (Bonferroni).

    An interval that is undefined counts as the lowest.
    """
    chosen = min(findings, key=lambda finding: np.nan_to_num(finding.low, nan=-math.inf))
    return replace(chosen, p=float(np.minimum(1.0, chosen.p * len(findings))))


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
    """Measure the gap between the means of two sides of clips, averaged over films.

    The null permutes the sides of the clips within each film. The parameters are those of `film_gaps`.
    """

    def gaps(drawn_sides: NDArray[np.int64]) -> Numbers:
        """Return the gap of each film, for a given assignment of clips to sides."""
        return film_gaps(values, drawn_sides, films)

    return measure_repeatably(partial(_measure_gaps, gaps, films), sides)


def _measure_gaps(
    gaps: Callable[[NDArray[Any]], Numbers], films: NDArray[np.intp], labels: NDArray[Any]
) -> Measured:
    """Average gaps over films, with the null in which the labels are permuted within each film.

    Parameters
    ----------
    gaps
        Function from the labels of the clips to the gap of each film, NaN where it is undefined.
    films : ndarray, shape [N]
        Number of each clip's film.
    labels : ndarray, shape [N]
        Label of each clip.
    """
    null = null_of_levels_within_films(labels, films, lambda drawn: _mean_defined(gaps(drawn)))
    return replace(mean_over_units(gaps(labels), "films"), null=null)


def _paper_clips(manifest: manifests.Manifest) -> pd.DataFrame:
    """Return the table of clips, sorted by film, under the paper's label policy (`LabelPolicy.PAPER`)."""
    table = clip_table(manifests.apply_policy(manifest, manifests.LabelPolicy.PAPER))
    return table.sort_values("movie", kind="stable")


def under_paper_labels(
    measure: Callable[Concatenate[Any, P], Measured],
) -> Callable[Concatenate[Any, P], Measured]:
    """Decorate a measure of `_paper_clips`: its note says what the paper's label policy changes."""

    @wraps(measure)
    def measured(source: Any, /, *args: P.args, **arguments: P.kwargs) -> Measured:
        """Measure, and add the note."""
        # The source is a manifest, or a manifest with the variables of its clips.
        manifest = source[0] if isinstance(source, tuple) else source
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
    """Return a note on how many clips, or segments, the paper's labels lower to the lowest level."""
    lowest_level, *levels = manifest.codebook.level_names
    annotated = clip_table(manifest)
    above = annotated[annotated["level"].isin(levels)]
    lowered = int((above["n"] == 0).sum())
    return (
        f"labels of the paper: {lowered:,} of the {len(above):,} annotated {', '.join(levels)} have no "
        f"visual concept and count as {lowest_level}"
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
    """Measure how far the shares of concepts among the marks at HN and at S are apart (`Marks.distance`).

    p is that of a permutation test of whether HN, NS and S clips have the same shares of concepts. The null
    is that of a finding of equality: levels that differ by twice the margin. For it, the levels are permuted
    within films, and then such a difference is planted.

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
    marks = Marks(present, table["level"].map(levels.index).to_numpy())
    films = film_indices(table)
    movies = table["movie"].to_numpy(dtype=str)

    def plant(observed: Marks, rng: np.random.Generator) -> Marks:
        """Permute the levels within films, and plant a difference of twice the margin."""
        permuted = Marks(observed.present, permuted_within(observed.ranks, films, rng))
        return plant_rates(permuted, 2 * margin, rng)

    def measure(marks_measured: Marks) -> Measured:
        """Measure the distance of the shares, with its jackknife interval over films and its null."""
        null = Null("a planted difference of twice the margin", marks_measured, Marks.distance, plant)
        interval = stats.jackknife_interval(marks_measured.distance, movies, bounds=(0, 1))
        return replace(from_interval(interval, "films"), null=null)

    finding = measure_repeatably(measure, marks)
    p = _permutation_p(marks, films, len(levels))
    return replace(finding, p=p, note=_largest_difference(marks, concepts, levels))


def _permutation_p(marks: Marks, films: NDArray[np.intp], n_levels: int) -> float:
    """Return p of the test that levels have the same shares of concepts; levels are permuted within films."""
    rng = np.random.default_rng(0)
    observed_ranks = marks.ranks[None]  # [1, N]
    observed = _chi_squared(observed_ranks, marks.present, n_levels)[0]
    # Clips are sorted by film: random numbers below 1 sort them anew within each film.
    orders = np.argsort(films + rng.random((N_PERMUTATIONS - 1, films.size)), axis=1)
    permuted = _chi_squared(marks.ranks[orders], marks.present, n_levels)
    n_reached = np.count_nonzero(permuted >= observed * (1 - RELATIVE_ROUNDING))
    return (1 + n_reached) / N_PERMUTATIONS


def _largest_difference(marks: Marks, names: Sequence[str], levels: Sequence[str]) -> str:
    """Return a note on the concept whose share of marks differs most between the lowest and highest level."""
    shares = {}
    for rank, level in enumerate(levels):
        marks_of_rank = marks.present[marks.ranks == rank]
        shares[level] = marks_of_rank.sum(axis=0) / marks_of_rank.sum()
    concept = int(np.argmax(np.abs(shares[levels[0]] - shares[levels[-1]])))
    share_texts = [f"{share[concept]:.0%} of {level} marks" for level, share in shares.items()]
    return f"largest difference: {names[concept]}, {', '.join(share_texts)}"


def plant_rates(marks: Marks, difference: float, rng: np.random.Generator) -> Marks:
    """Move marks of the highest level to its rarest concept, so that its shares of concepts differ.

    Parameters
    ----------
    marks
        The marks, which stay as they are.
    difference
        Share of the highest level's marks that is moved, on average.
    rng
        Chooses the marks that are moved.
    """
    present = marks.present.copy()
    top = np.flatnonzero(marks.ranks == RANK_OF_S)
    totals = present[top].sum(axis=0)
    rarest = int(np.argmin(totals))
    # Marks of the rarest concept cannot be moved, so that more of the others must be. The probability is at
    # most 1, where the other concepts have too few marks to move that many.
    share_of_others = 1 - totals[rarest] / max(totals.sum(), 1)
    probability = difference / max(share_of_others, difference)
    moved = (present[top] == 1) & (rng.random(present[top].shape) < probability)
    moved[:, rarest] = False
    # A clip's moved marks are counted where they go, several on one clip too: only rates are compared.
    present[top] = np.where(moved, 0.0, present[top])
    present[top, rarest] += moved.sum(axis=1)
    return Marks(present, marks.ranks)


def _marked(clips: pd.DataFrame, concept: str) -> NDArray[np.bool_]:
    """Return whether each clip has a concept, [N]."""
    return np.array([concept in concepts for concepts in clips["concepts"]], dtype=np.bool_)


def _chi_squared(ranks: NDArray[np.intp], marks: Numbers, n_levels: int) -> Numbers:
    """Compute the chi-squared statistic of concepts by levels, for several assignments of levels.

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
    # Marks of each concept at each level, [R, levels, K].
    table = np.stack([(ranks == level) @ marks for level in range(n_levels)], axis=1)
    expected = table.sum(axis=2, keepdims=True) * table.sum(axis=1, keepdims=True)
    expected = expected / table.sum(axis=(1, 2), keepdims=True)
    terms = np.divide((table - expected) ** 2, expected, out=np.zeros_like(table), where=expected > 0)
    return np.asarray(terms.sum(axis=(1, 2)))


@under_paper_labels
def rising(manifest: manifests.Manifest, unit: str = "clips") -> Measured:
    """Measure how many more visual concepts S clips have than HN clips, averaged over films.

    The null permutes the levels within films. `unit` says what the rows of the manifest are: "clips" or
    "segments".
    """
    low = manifest.codebook.level_names[1]
    high = manifest.codebook.level_names[-1]
    table = _paper_clips(manifest)
    table = table[table["level"].isin(manifest.codebook.level_names[1:])]
    n_concepts = table["n"].to_numpy(dtype=np.float64)
    sides = _sides(table["level"].to_numpy(dtype=str), high, low)
    finding = _gap_of_sides(n_concepts, sides, film_indices(table))
    return replace(finding, note=_means_by_level(manifest, table, unit))


def _sides(levels: NDArray[np.str_], level_of_1: str, level_of_0: str) -> NDArray[np.int64]:
    """Return the side of each clip [N]: 1 for one level, 0 for another, -1 for all others."""
    return np.where(levels == level_of_1, 1, np.where(levels == level_of_0, 0, -1))


def _means_by_level(manifest: manifests.Manifest, table: pd.DataFrame, unit: str) -> str:
    """Return a note on the mean number of visual concepts at each level above the lowest."""
    means = table.groupby("level")["n"].mean()
    levels = manifest.codebook.level_names[1:]
    texts = [f"{level} {means.get(level, stats.NAN):.2f}" for level in levels]
    return f"visual concepts per {unit.removesuffix('s')}, films pooled: {', '.join(texts)}"


@under_paper_labels
def smallest_rise(manifest: manifests.Manifest, unit: str = "clips") -> Measured:
    """Return the smallest rise in the mean number of visual concepts from one level to the next.

    Its `n` is the number of clips, or segments (`unit`), of these two levels.
    """
    table = _paper_clips(manifest)
    levels = list(manifest.codebook.level_names[1:])
    means = table.groupby("level")["n"].mean().reindex(levels)
    note = _means_by_level(manifest, table, unit)
    rise_of = {(low, high): float(means[high] - means[low]) for low, high in pairwise(levels)}
    if not rise_of:
        return Measured(unit=unit, note=note)
    # An undefined rise counts as the smallest.
    smallest = min(rise_of, key=lambda pair: np.nan_to_num(rise_of[pair], nan=-math.inf))
    n_clips = int(table["level"].isin(smallest).sum())
    return Measured(rise_of[smallest], n=n_clips, unit=unit, note=note)


def rising_by_annotator(segments: manifests.Manifest) -> Measured:
    """Measure the rise of `rising` for each annotator of free segments, and return the lowest (`lowest`)."""
    findings = {}
    for name, segments_of_annotator in grouped(segments, "annotator").items():
        findings[name] = rising(segments_of_annotator, "segments")
    note = "; ".join(f"{name}: {finding.note}" for name, finding in findings.items())
    return replace(_lowest_of_all(list(findings.values())), note=note)


def _lowest_of_all(findings: Sequence[Measured]) -> Measured:
    """Return the lowest of some findings (`lowest`), with a null for the choice of the lowest.

    Even by chance, the lowest of several statistics is lower than each of them. So each draw of the null
    randomises the data of all findings, and takes the lowest of their statistics.

    Parameters
    ----------
    findings
        Findings that have a null and can be measured again.
    """
    nulls = [finding.null for finding in findings if finding.null]
    measures = [finding.measure_again for finding in findings if finding.measure_again]

    # The data of the functions below are a list with the data of each finding.
    def lowest_statistic(data: Sequence[Any]) -> float:
        """Compute the statistic of each finding on its data, and return the lowest."""
        return min(null.statistic(own_data) for null, own_data in zip(nulls, data, strict=True))

    def randomise(data: Sequence[Any], rng: np.random.Generator) -> list[Any]:
        """Randomise the data of each finding as its own null does."""
        return [null.randomise(own_data, rng) for null, own_data in zip(nulls, data, strict=True)]

    def measure(data: Sequence[Any]) -> Measured:
        """Measure the data of each finding, and return the lowest with the null of the choice."""
        measured = [measure_one(own_data) for measure_one, own_data in zip(measures, data, strict=True)]
        null = Null("levels within films", data, lowest_statistic, randomise)
        return replace(lowest(measured), null=null)

    return measure_repeatably(measure, [null.data for null in nulls])


def smallest_rise_by_annotator(segments: manifests.Manifest) -> Measured:
    """Return the smallest rise (`smallest_rise`) of all annotators of free segments, and say whose it is."""
    rise_of = {}
    for name, segments_of_annotator in grouped(segments, "annotator").items():
        rise_of[name] = smallest_rise(segments_of_annotator, "segments")
    # An undefined rise counts as the smallest.
    smallest = min(rise_of, key=lambda name: np.nan_to_num(rise_of[name].value, nan=-math.inf))
    return replace(rise_of[smallest], note=f"the least rise is that of {smallest}")


@under_paper_labels
def compositional(manifest: manifests.Manifest) -> Measured:
    """Measure how much larger the share of S is among clips with several concepts than among those with one.

    Only clips above the lowest level that have a concept count. The difference is averaged over films, and
    the null permutes the levels within films.
    """
    table = _clips_with_concepts(manifest)
    sides: NDArray[np.int64] = (table["n"] > 1).to_numpy().astype(np.int64)
    is_high = table["high"].to_numpy(dtype=np.float64)
    films = film_indices(table)
    share_texts = []
    for n_concepts, share, n_clips in table.groupby("n")["high"].agg(["mean", "size"]).itertuples():
        share_texts.append(f"{share:.0%} with {n_concepts} ({counted(round(n_clips), 'clip')})")
    note = f"S, films pooled: {', '.join(share_texts)}"

    def gaps(drawn_is_high: Numbers) -> Numbers:
        """Return the difference between the two shares of S in each film, for given levels of the clips."""
        return film_gaps(drawn_is_high, sides, films)

    return replace(measure_repeatably(partial(_measure_gaps, gaps, films), is_high), note=note)


@under_paper_labels
def clothing_alone(manifest: manifests.Manifest) -> Measured:
    """Measure the share of S among HN and S clips whose only visual concept is Clothing."""
    table = _clips_with_concepts(manifest)
    table = table[table["level"] != "NS"]
    has_clothing = _marked(table, "Clothing")
    is_alone = has_clothing & (table["n"] == 1).to_numpy()  # Clothing is the clip's only visual concept
    note = _note_on_clothing(manifest, table[is_alone], table[has_clothing & ~is_alone])
    movies = table.loc[is_alone, "movie"].to_numpy(dtype=str)
    films = film_indices(table)

    def measure(is_high: NDArray[np.bool_]) -> Measured:
        """Measure the share of S among the clips with Clothing alone, with its null."""
        is_high_alone = is_high[is_alone]
        share = stats.jackknife_interval(lambda rows: _mean(is_high_alone[rows]), movies, bounds=(0, 1))
        null = null_of_levels_within_films(is_high, films, lambda drawn: _mean(drawn[is_alone]))
        return replace(from_interval(share, "films"), null=null)

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
    has_no_other = [concepts_of[clip_id] == {"Clothing"} for clip_id in alone["clip_id"]]
    without_any_other = alone.loc[np.array(has_no_other, dtype=bool)]
    return (
        f"S: {_count_of(alone['high'])} clips with Clothing as their only visual concept, "
        f"{_count_of(without_any_other['high'])} of those without any concept "
        f"besides, {_count_of(combined['high'])} with other visual concepts"
    )


def _clips_with_concepts(manifest: manifests.Manifest) -> pd.DataFrame:
    """Return the clips above the lowest level that have a visual concept; column `high` says which are S."""
    table = _paper_clips(manifest)
    table = table[(table["level"] != manifest.codebook.level_names[0]) & (table["n"] > 0)]
    return table.assign(high=table["level"] == "S")


@under_annotated_labels
def any_visual(manifest: manifests.Manifest) -> Measured:
    """Measure the share of HN, NS and S clips, as annotated, that have a visual concept."""
    table = clip_table(manifest)
    above = table[table["level"] != manifest.codebook.level_names[0]]
    has_concept = above["n"] > 0
    return Measured(float(has_concept.mean()), n=len(above), unit="clips", note=_count_of(has_concept))


@under_paper_labels
def share_of_sure(manifest: manifests.Manifest) -> Measured:
    """Measure the share of S among all clips, under the paper's labels."""
    table = _paper_clips(manifest)
    shares = table["level"].value_counts(normalize=True)
    annotated = clip_table(manifest)["level"].value_counts(normalize=True)
    note = f"{_shares(shares)}; as annotated {_shares(annotated)}"
    return Measured(float(shares["S"]), n=len(table), unit="clips", note=note)


def _shares(shares: "pd.Series[Any]") -> str:
    """Write the share of each level: `EN 61.0%, S 20.1%`."""
    return ", ".join(f"{level} {share:.1%}" for level, share in shares.items())


def _counts(counts: "pd.Series[Any]") -> str:
    """Write the number of clips of each level: `EN 900 clips, S 300 clips`."""
    return ", ".join(f"{level} {counted(count, 'clip')}" for level, count in counts.items())


@under_paper_labels
def above_the_rarest(manifest: manifests.Manifest) -> Measured:
    """Measure by how much the share of S is above that of the rarest other level."""
    table = _paper_clips(manifest)
    counts = table["level"].value_counts()
    other_levels = counts.drop("S")
    annotated = clip_table(manifest)["level"].value_counts()
    note = f"{_counts(counts)}; as annotated {_counts(annotated)}"
    return Measured(
        float((counts["S"] - other_levels.min()) / len(table)), n=len(table), unit="clips", note=note
    )


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

    The null is a mean AUC that is twice the margin from 0.5.
    """
    table = clip_table(manifest)
    table = table[(table["level"] != "NS") & table["shots"].notna()]
    auc_of_films = []
    for _, clips in table.groupby("movie"):
        is_sure = (clips["level"] == "S").to_numpy().astype(int)
        auc_of_films.append(stats.auc(is_sure, clips["shots"].to_numpy()))

    def measure(values: Numbers) -> Measured:
        """Average the AUC of films, and compare the mean with 0.5 and the planted null."""
        return replace(
            mean_over_units(values, "films", null=0.5), null=planted_off_centre(values, 0.5, margin)
        )

    return measure_repeatably(measure, np.array(auc_of_films))


def hard_negatives(predictions: pd.DataFrame) -> Measured:
    """Measure how much higher AP is after training against HN than after training against EN, over films.

    The models are perceptrons, tested on EN, HN and S; the note has the difference on EN and S alone.
    """
    of_perceptron = predictions[predictions["model"] == "mlp"]
    ap_of: dict[Any, float] = {}  # (task, movie) -> average precision
    for key, rows in of_perceptron.groupby(["task", "movie"]):
        ap_of[key] = stats.average_precision(rows["label"].to_numpy(), rows["score"].to_numpy())
    ap: Any = pd.Series(ap_of)
    difference = ap["hn_s>enhn_s"] - ap["en_s>enhn_s"]
    difference_on_easy = ap["hn_s>en_s"] - ap["en_s>en_s"]
    values = difference.to_numpy(dtype=np.float64)
    note = f"tested on EN and S alone {difference_on_easy.mean():+.3f}"
    return replace(measure_repeatably(_mean_over_films, values), note=note)


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
    manifest, table = inputs
    clips = _paper_clips(manifest)
    measured = clips["clip_id"].map(table.get(variable, pd.Series(dtype=np.float64)))
    clips = clips.assign(value=measured).dropna(subset="value")
    values = clips["value"].to_numpy(dtype=np.float64)
    films = film_indices(clips)
    if concept:
        sides = _marked(clips, concept).astype(np.int64)
    else:
        sides = _sides(clips["level"].to_numpy(dtype=str), "S", "HN")
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

    def exchanged(self, rng: np.random.Generator) -> "TwoExperts":
        """Return the experts with the levels of the second one permuted among the windows."""
        return replace(self, second=rng.permutation(self.second))


def expert_pairs(segments: manifests.Manifest) -> list[TwoExperts]:
    """Project free segments onto equal windows, and return the levels of every two experts of a film."""
    onto = manifests.windows(segments, manifests.DEFAULT_WINDOW_S)
    projected = manifests.project(segments, onto, per_annotator=True).manifest
    rank = {name: index for index, name in enumerate(segments.codebook.level_names)}
    pairs = []
    for pair in manifests.level_pairs(projected):
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
        return [pair.exchanged(rng) for pair in pairs_drawn]

    return Null("one annotator's labels within films", pairs, statistic, permute)


def overlooked(segments: manifests.Manifest) -> Measured:
    """Measure, among windows that two experts label differently, the share that one of them labelled EN.

    In these windows one expert saw nothing to mark, where the other one marked something.
    """
    pairs = expert_pairs(segments)
    is_overlooked = np.concatenate([_left_at_lowest(pair) for pair in pairs])
    n_windows = sum(len(pair.first) for pair in pairs)
    differing = counted(len(is_overlooked), "window")
    note = f"{int(is_overlooked.sum()):,} of {differing} that differ, of {n_windows:,}"
    return replace(measure_repeatably(_overlooked_share, pairs), note=note)


def _overlooked_share(pairs: Sequence[TwoExperts]) -> Measured:
    """Measure, among windows with two different labels, the share that one expert left at the lowest level.

    The interval is a jackknife over films, and the test compares the films' shares with one half.
    """

    def pooled_share(pairs_measured: Sequence[TwoExperts]) -> float:
        """Return the share of windows left at the lowest level, among all that differ."""
        return _mean(np.concatenate([_left_at_lowest(pair) for pair in pairs_measured]))

    overlooked_of_pairs = [_left_at_lowest(pair) for pair in pairs]
    is_overlooked = np.concatenate(overlooked_of_pairs)
    n_windows = [len(overlooked_of_pair) for overlooked_of_pair in overlooked_of_pairs]
    movies = np.repeat([pair.movie for pair in pairs], n_windows)
    share = stats.jackknife_interval(lambda rows: _mean(is_overlooked[rows]), movies, bounds=(0, 1))
    share_of_films = [float(is_overlooked[movies == movie].mean()) for movie in np.unique(movies)]
    p = stats.sign_flip(np.array(share_of_films) - 0.5).p
    return replace(from_interval(share, "films", p=p), null=null_of_one_experts_labels(pairs, pooled_share))


def _left_at_lowest(pair: TwoExperts) -> NDArray[np.bool_]:
    """Return, for each window that two experts label differently, whether one gave it the lowest level."""
    differ = pair.first != pair.second
    return np.asarray(np.minimum(pair.first[differ], pair.second[differ]) == 0)


def thresholds(segments: manifests.Manifest, *, level: str, sign: int) -> Measured:
    """Measure how the number of windows of a level changes from projection threshold .1 to .4, over films.

    Parameters
    ----------
    segments
        Free segments.
    level
        The level.
    sign
        1 if the paper prints a rise, -1 if it prints a fall: a change in its direction is positive.
    """
    counts = []
    onto = manifests.windows(segments, manifests.DEFAULT_WINDOW_S)
    for projection in manifests.sweep(segments, onto, [0.1, 0.4]).values():
        table = _paper_clips(projection.manifest)
        table = table[table["level"] == level]
        counts.append(table.groupby("movie").size().reindex(list(segments.movies), fill_value=0))
    change = (counts[1] - counts[0]).to_numpy()
    values = np.asarray(sign * change, dtype=np.float64)
    return replace(measure_repeatably(_mean_over_films, values), note=f"{level} {change.sum():+,} windows")


def without_unsure(segments: manifests.Manifest) -> Measured:
    """Measure how much gamma rises, over films, if windows that an expert labelled NS are left out."""
    codebook = segments.codebook
    level_distances = manifests.distances(codebook)
    is_label = np.array([name in codebook.labels for name in codebook.level_names])
    pairs = expert_pairs(segments)

    def rises(pairs_drawn: Sequence[TwoExperts]) -> Numbers:
        """Return by how much gamma rises in each film if windows without a label are left out, [M]."""
        film_rises = []
        for pair in pairs_drawn:
            gamma_without = _gamma_without(pair, level_distances, is_label)
            film_rises.append(gamma_without - _gamma(pair, level_distances))
        return np.array(film_rises)

    # The note has the two means, over the films in which both are defined.
    gammas = np.array([_gamma(pair, level_distances) for pair in pairs])
    gammas_without = np.array([_gamma_without(pair, level_distances, is_label) for pair in pairs])
    has_both = np.isfinite(gammas) & np.isfinite(gammas_without)
    mean_gamma = _mean(gammas[has_both])
    mean_without = _mean(gammas_without[has_both])
    note = f"mean gamma {mean_gamma:.3f}, without NS {mean_without:.3f}"

    def measure(pairs_drawn: Sequence[TwoExperts]) -> Measured:
        """Average the rise over films, with its null."""
        null = null_of_one_experts_labels(pairs_drawn, lambda drawn: _mean_defined(rises(drawn)))
        return replace(mean_over_units(rises(pairs_drawn), "films"), null=null)

    return replace(measure_repeatably(measure, pairs), note=note)


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


def _gamma_without(pair: TwoExperts, level_distances: Numbers, is_label: NDArray[np.bool_]) -> float:
    """Return gamma over the windows in which the levels of both experts are labels, unlike NS.

    Parameters
    ----------
    pair, level_distances
        As in `_gamma`.
    is_label : bool ndarray, shape [levels]
        Whether each level is a label.
    """
    is_counted = is_label[pair.first] & is_label[pair.second]
    counted_pair = TwoExperts(pair.movie, pair.first[is_counted], pair.second[is_counted])
    return _gamma(counted_pair, level_distances)


# --- sentences of 002 and 004
# ---------------------------------------------------------------------------


def alike_scores(_: None, *, margin: float) -> Measured:
    """Measure how far the two printed ratios of objects are apart, on average, over captioners.

    The ratios are those of Gender Scores and of co-occurrences. The null is a distance of twice the margin.
    """
    distances = []
    for printed in TOTALS.values():
        distances_of_objects = []
        for name, ratio in printed["object_to_man"].items():
            distances_of_objects.append(abs(printed["score_to_man"][name] - ratio))
        distances.append(float(np.mean(distances_of_objects)))

    def measure(values: Numbers) -> Measured:
        """Average the values of captioners, and compare them with the null planted beside 0."""
        finding = from_interval(stats.t_interval(values, bounds=(0, 1)), "captioners")
        return replace(finding, null=planted_off_centre(values, 0.0, margin, sides=(1.0,)))

    return measure_repeatably(measure, np.array(distances))


def balanced_object(_: None, *, margin: float) -> Measured:
    """Average the printed ratio towards man of the object whose mean over captioners is nearest to 0.5.

    The null is a mean that is twice the margin from 0.5.
    """
    ratios = pd.DataFrame({model: printed["object_to_man"] for model, printed in TOTALS.items()})
    name = str((ratios.mean(axis=1) - 0.5).abs().idxmin())
    values = ratios.loc[name].to_numpy(dtype=np.float64)

    def measure(values: Numbers) -> Measured:
        """Average the values of captioners, and compare them with the null planted beside 0.5."""
        finding = from_interval(stats.t_interval(values, bounds=(0, 1)), "captioners")
        return replace(finding, null=planted_off_centre(values, 0.5, margin))

    return replace(measure_repeatably(measure, values), note=f"object: {name}")


def models_with(_: None, *, tests: Sequence[str], least: float, starred: bool) -> Measured:
    """Count the models of the printed tables whose effect is above `least` on each of some tests.

    With `starred`, each of these effects must also have a star.
    """
    models_above = []
    for model, effects in EFFECTS.items():
        if all(_is_above(effects[name], least, starred=starred) for name in tests):
            models_above.append(model)
    test_names = " and ".join(name.split("_")[-1] for name in tests)
    return Measured(
        len(models_above), n=len(EFFECTS), unit="models", note=f"{test_names}: {len(models_above)}"
    )


def _is_above(effect: PrintedEffect, least: float, *, starred: bool) -> bool:
    """Return whether a printed effect is above `least` and, if asked, has a star."""
    return effect.d > least and (effect.star or not starred)


def words_ratio(table: pd.DataFrame, *, emotion: str) -> Measured:
    """Divide the rate of an emotion's words for partially clothed subjects by that for clothed ones."""
    rates = _rates(table, emotion)[[PARTLY_CLOTHED, CLOTHED]].to_numpy(dtype=np.float64)
    partly_clothed, clothed = rates.mean(axis=0)
    words = ", ".join(_words_counted(table, emotion))
    note = f"per 1,000 captions: {partly_clothed:.2f} partially clothed, {clothed:.2f} clothed ({words})"
    return replace(measure_repeatably(_ratio_of, rates), note=note)


def _ratio_of(rates: Numbers) -> Measured:
    """Measure the ratio of the mean rates of two conditions, with a jackknife over persons.

    The test asks whether the first rate is half the second. The null exchanges conditions within persons.

    Parameters
    ----------
    rates : ndarray, shape [P, 2]
        Rates of each person, partially clothed and clothed.
    """

    def ratio(persons_rates: Numbers) -> float:
        """Return the first mean rate of the persons over the second; NaN if that is 0."""
        partly_clothed, clothed = persons_rates.mean(axis=0)
        return float(partly_clothed / clothed) if clothed else stats.NAN

    persons = np.array([f"{subject:03}" for subject in range(len(rates))])
    interval = stats.jackknife_interval(lambda rows: ratio(rates[rows]), persons, bounds=(0, math.inf))
    p = stats.sign_flip(rates[:, 0] - rates[:, 1] / 2).p
    null = Null("conditions within persons", rates, ratio, _conditions_exchanged)
    return replace(from_interval(interval, "people pictured", p=p), null=null)


def _conditions_exchanged(rates: Numbers, rng: np.random.Generator) -> Numbers:
    """Return the rates [P, 2] with the two conditions of each person exchanged with probability one half."""
    is_exchanged = rng.random(len(rates)) < 0.5
    return np.where(is_exchanged[:, None], rates[:, ::-1], rates)


def words_rate(table: pd.DataFrame, *, emotion: str) -> Measured:
    """Average the rate of an emotion's words for partially clothed persons, at one level of the emotion.

    It is the level whose interval ends highest; p is adjusted for the choice (Bonferroni).
    """
    findings = []
    levels = table["emotion"].str[2:]  # the part behind the emotion's code: "1", "2" or "" for no level
    for level, rows in table.groupby(levels):
        if level:
            rates = _rates(rows, emotion, table)[PARTLY_CLOTHED].to_numpy()
            mean = stats.t_interval(rates, bounds=(0, math.inf))
            note = f"level {level}: {mean.mean:.2f}"
            findings.append(from_interval(mean, "people pictured", note, p=stats.sign_flip(rates - 1).p))
    highest = max(findings, key=lambda finding: np.nan_to_num(finding.high, nan=math.inf))
    words = ", ".join(_words_counted(table, emotion))
    note = f"{', '.join(finding.note for finding in findings)} ({words})"
    return replace(highest, note=note, p=float(np.minimum(1.0, highest.p * len(findings))))


def _words_counted(table: pd.DataFrame, emotion: str) -> list[str]:
    """Return the words of an emotion that occur at least `LEAST_OCCURRENCES` times in all captions."""
    totals = table.sum(numeric_only=True)
    return [word for word in EMOTION_WORDS[emotion] if totals.get(word, 0) >= LEAST_OCCURRENCES]


def _rates(table: pd.DataFrame, emotion: str, all_rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the rate of an emotion's words per 1,000 captions: a row per person, a column per condition.

    Parameters
    ----------
    table
        Counts of words of pictures.
    emotion
        The emotion, which the pictures are meant to show and whose words are counted.
    all_rows
        Counts by which words are left out as too rare; by default those of `table`.
    """
    words = _words_counted(table if all_rows is None else all_rows, emotion)
    emotions = table["emotion"].str[:2].map(EMOTION_OF_CODE.get)
    rows = table[emotions == emotion]
    rows = rows.assign(words=rows[words].sum(axis=1))
    n_words = rows.pivot_table("words", "subject", "condition", aggfunc="sum")
    n_captions = rows.pivot_table("n_captions", "subject", "condition", aggfunc="sum")
    return 1000 * n_words / n_captions
