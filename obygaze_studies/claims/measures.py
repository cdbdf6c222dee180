"""Measure what the sentences of `obygaze_studies.claims.claims_report` are about, from released data.

Where clips were annotated, films are what was sampled: intervals are jackknife or t intervals over films,
tests change signs of films or permute levels within them. A sampled number brings its null (`nulls`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
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
    levels_within_films,
    permuted_within,
    planted_beside,
    signs_by_film,
)
from obygaze_studies.eat_stimuli import EFFECTS, PrintedEffect
from obygaze_studies.gender_score.published_values import TOTALS
from obygaze_studies.obygaze12.corpus import TASKS
from obygaze_studies.obygaze12.paper_folds import classifier_folds
from obygaze_studies.obygaze12.statistics import clip_table, grouped

N_PERMUTATIONS = 2000

MIN_TOTAL = 100
"""Emotion words with fewer occurrences in all captions are left out (004, section 4.3)."""

INTENDED = {"AN": "anger", "SA": "sadness", "HA": "happiness"}
"""Emotion of the first two letters of a picture's `emotion` in the released counts of words."""

COUNTED = ("clips", "segments", "models")
"""Units of numbers that are of all there are; what is of others was sampled."""

Numbers = NDArray[np.float64]

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Measured:
    """The number behind a claim; one that is counted over all there is (`COUNTED`) has no interval.

    Attributes
    ----------
    value, low, high : float
        With its 95 % interval; NaN where there is none.
    p, p_holm : float
        Two-sided test; NaN without one. Adjusted by Holm over the tests on the same file.
    n : int
        Number of units.
    unit : str
        What was sampled, or counted.
    note : str
        More numbers, in words.
    null : Null, optional
        What the measure gives where the sentence is untrue; None of what is counted, or held against a
        constant alone.
    again : callable, optional
        From other data, as `null` draws them, to the finding on those; None without a null. The tests that
        stand beside a number are not made again.
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
    again: "Callable[[Any], Measured] | None" = None


# --- numbers over units
# ---------------------------------------------------------------------------


def over_units(values: ArrayLike, unit: str, note: str = "", null: float = 0.0) -> Measured:
    """Average one value a unit, with its t interval and the sign-flip test against `null`."""
    return found(stats.t_interval(values), unit, note, p=stats.sign_flip(np.asarray(values) - null).p)


def found(average: stats.Interval, unit: str, note: str = "", *, p: float = stats.NAN) -> Measured:
    """Make the finding of an average with its interval."""
    return Measured(average.mean, average.low, average.high, p, n=average.n_movies, unit=unit, note=note)


def with_null(measure: Callable[[Any], Measured], data: Any) -> Measured:
    """Measure data by a function that gives findings with their null, and keep it to measure others."""
    return replace(measure(data), again=measure)


def lowest(findings: Sequence[Measured]) -> Measured:
    """Choose the number with the lowest interval, which may be undefined; adjust p for it (Bonferroni)."""
    chosen = min(findings, key=lambda finding: np.nan_to_num(finding.low, nan=-math.inf))
    return replace(chosen, p=float(np.minimum(1.0, chosen.p * len(findings))))


def film_gaps(values: Numbers, sides: NDArray[np.int64], films: NDArray[np.intp]) -> Numbers:
    """Subtract the mean of clips of side 0 from that of side 1, film by film.

    Parameters
    ----------
    values : ndarray, shape [N]
    sides : ndarray, shape [N]
        1, 0, or -1 for a clip of neither side.
    films : ndarray, shape [N]
        From 0 to M - 1.

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
    """Give each clip [N], sorted by film, the number of its film."""
    return np.unique(table["movie"].to_numpy(dtype=str), return_inverse=True)[1]


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if values.size else stats.NAN


def _mean_defined(values: Numbers) -> float:
    return _mean(values[np.isfinite(values)])


def _paper_clips(manifest: manifests.Manifest) -> pd.DataFrame:
    """List the clips with the labels that the paper gives them, sorted by film."""
    table = clip_table(manifests.apply_policy(manifest, manifests.LabelPolicy.PAPER))
    return table.sort_values("movie", kind="stable")


def under_paper_labels(
    measure: Callable[Concatenate[Any, P], Measured],
) -> Callable[Concatenate[Any, P], Measured]:
    """Say beside a number of `_paper_clips` that it is of the paper's labels, and how many they change."""

    @wraps(measure)
    def measured(source: Any, /, *args: P.args, **arguments: P.kwargs) -> Measured:
        manifest = source[0] if isinstance(source, tuple) else source
        return _with_note(measure(source, *args, **arguments), _paper_labels(manifest))

    return measured


def under_annotated_labels(
    measure: Callable[Concatenate[Any, P], Measured],
) -> Callable[Concatenate[Any, P], Measured]:
    """Say beside a number that it is of the labels as they were annotated."""

    @wraps(measure)
    def measured(source: Any, /, *args: P.args, **arguments: P.kwargs) -> Measured:
        return _with_note(measure(source, *args, **arguments), "labels as annotated")

    return measured


def _with_note(finding: Measured, note: str) -> Measured:
    return replace(finding, note=f"{finding.note}; {note}" if finding.note else note)


def _paper_labels(manifest: manifests.Manifest) -> str:
    """Say how many clips, or segments, the paper's labels put at the lowest level, of how many."""
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
        Of the clips' levels.
    """

    present: Numbers
    ranks: NDArray[np.intp]

    def distance(self, films: "NDArray[np.bool_] | None" = None) -> float:
        """Measure which share of the marks of the lowest level is on other concepts than the highest's."""
        every = np.ones(len(self.ranks), bool) if films is None else films
        low = self.present[every & (self.ranks == 0)].sum(axis=0)
        high = self.present[every & (self.ranks == 2)].sum(axis=0)
        if not low.sum() or not high.sum():
            return stats.NAN
        return float(np.abs(low / low.sum() - high / high.sum()).sum() / 2)


@under_paper_labels
def same_rate(manifest: manifests.Manifest, *, margin: float) -> Measured:
    """Compare which concepts are marked at HN, NS and S; levels are permuted within films."""
    names = manifest.codebook.visual_concepts
    levels = manifest.codebook.level_names[1:]
    table = _paper_clips(manifest)
    table = table[table["level"].isin(levels)]
    present = np.column_stack([_marked(table, name) for name in names]).astype(np.float64)
    marks = Marks(present, table["level"].map(levels.index).to_numpy())
    films = film_indices(table)

    rng = np.random.default_rng(0)
    observed = _chi_squared(marks.ranks[None], present, len(levels))[0]
    # Clips are sorted by film: random numbers below 1 sort them anew within each film.
    orders = np.argsort(films + rng.random((N_PERMUTATIONS - 1, films.size)), axis=1)
    drawn = _chi_squared(marks.ranks[orders], present, len(levels))
    p = (1 + np.count_nonzero(drawn >= observed * (1 - 1e-12))) / N_PERMUTATIONS
    shares = {}
    for rank, level in enumerate(levels):
        marks_of_rank = present[marks.ranks == rank]
        shares[level] = marks_of_rank.sum(axis=0) / marks_of_rank.sum()
    most = int(np.argmax(np.abs(shares[levels[0]] - shares[levels[-1]])))
    note = f"largest difference: {names[most]}, " + ", ".join(
        f"{share[most]:.0%} of {level} marks" for level, share in shares.items()
    )

    def planted(marks: Marks, rng: np.random.Generator) -> Marks:
        permuted = Marks(marks.present, permuted_within(marks.ranks, films, rng))
        return plant_rates(permuted, 2 * margin, rng)

    movies = table["movie"].to_numpy(dtype=str)

    def measure(marks: Marks) -> Measured:
        null = Null("a planted difference of twice the margin", marks, Marks.distance, planted)
        interval = stats.jackknife_interval(marks.distance, movies, bounds=(0, 1))
        return replace(found(interval, "films"), null=null)

    return replace(with_null(measure, marks), note=note, p=p)


def plant_rates(marks: Marks, difference: float, rng: np.random.Generator) -> Marks:
    """Move marks of the highest level to its rarest concept, so that a share of them is elsewhere."""
    present = marks.present.copy()
    top = np.flatnonzero(marks.ranks == 2)
    totals = present[top].sum(axis=0)
    rarest = int(np.argmin(totals))
    share = difference / max(1 - totals[rarest] / max(totals.sum(), 1), difference)
    moved = (present[top] == 1) & (rng.random(present[top].shape) < share)
    moved[:, rarest] = False
    # A clip's moved marks are counted where they go, several on one clip too: only rates are compared.
    present[top] = np.where(moved, 0.0, present[top])
    present[top, rarest] += moved.sum(axis=1)
    return Marks(present, marks.ranks)


def _marked(clips: pd.DataFrame, concept: str) -> NDArray[np.bool_]:
    """Tell which clips have a concept."""
    return np.array([concept in concepts for concepts in clips["concepts"]], dtype=np.bool_)


def _chi_squared(ranks: NDArray[np.intp], marks: Numbers, n_levels: int) -> Numbers:
    """Compute the chi-squared statistic [R] of marks [N, K] against rows of levels [R, N]."""
    table = np.stack([(ranks == level) @ marks for level in range(n_levels)], axis=1)
    expected = table.sum(axis=2, keepdims=True) * table.sum(axis=1, keepdims=True)
    expected = expected / table.sum(axis=(1, 2), keepdims=True)
    terms = np.divide((table - expected) ** 2, expected, out=np.zeros_like(table), where=expected > 0)
    return np.asarray(terms.sum(axis=(1, 2)))


@under_paper_labels
def rising(manifest: manifests.Manifest, unit: str = "clips") -> Measured:
    """Measure how many more visual concepts S clips have than HN clips; levels are exchanged within films."""
    low = manifest.codebook.level_names[1]
    high = manifest.codebook.level_names[-1]
    table = _paper_clips(manifest)
    table = table[table["level"].isin(manifest.codebook.level_names[1:])]
    n_concepts = table["n"].to_numpy(dtype=np.float64)
    films = film_indices(table)
    levels = table["level"].to_numpy(dtype=str)

    def gaps(own: NDArray[np.str_]) -> Numbers:
        return film_gaps(n_concepts, _sides(own, high, low), films)

    def measure(own: NDArray[np.str_]) -> Measured:
        null = levels_within_films(own, films, lambda drawn: _mean_defined(gaps(drawn)))
        return replace(over_units(gaps(own), "films"), null=null)

    return replace(with_null(measure, levels), note=_means_by_level(manifest, table, unit))


def _sides(levels: NDArray[np.str_], low: str, high: str) -> NDArray[np.int64]:
    """Mark clips of one level by 1, of another by 0 and the rest by -1."""
    return np.where(levels == low, 1, np.where(levels == high, 0, -1))


def _means_by_level(manifest: manifests.Manifest, table: pd.DataFrame, unit: str) -> str:
    means = table.groupby("level")["n"].mean()
    return f"visual concepts per {unit.removesuffix('s')}, films pooled: " + ", ".join(
        f"{level} {means.get(level, stats.NAN):.2f}" for level in manifest.codebook.level_names[1:]
    )


@under_paper_labels
def smallest_rise(manifest: manifests.Manifest, unit: str = "clips") -> Measured:
    """Count how many more visual concepts the mean clip has than that of the level below: the least.

    It is counted over the clips, or segments, of its two levels.
    """
    table = _paper_clips(manifest)
    levels = list(manifest.codebook.level_names[1:])
    means = table.groupby("level")["n"].mean().reindex(levels)
    note = _means_by_level(manifest, table, unit)
    rise_of = {(low, high): float(means[high] - means[low]) for low, high in pairwise(levels)}
    if not rise_of:
        return Measured(unit=unit, note=note)
    of_two = min(rise_of, key=lambda pair: np.nan_to_num(rise_of[pair], nan=-math.inf))
    return Measured(rise_of[of_two], n=int(table["level"].isin(of_two).sum()), unit=unit, note=note)


def rising_by_annotator(segments: manifests.Manifest) -> Measured:
    """Measure the same for each annotator of free segments, and choose the least sure of them."""
    findings = {}
    for name, of_annotator in grouped(segments, "annotator").items():
        findings[name] = rising(of_annotator, "segments")
    note = "; ".join(f"{name}: {finding.note}" for name, finding in findings.items())
    nulls = [finding.null for finding in findings.values() if finding.null]
    measures_of = [finding.again for finding in findings.values() if finding.again]

    def least(labels: Sequence[Any]) -> float:
        return min(null.number(data) for null, data in zip(nulls, labels, strict=True))

    def exchange(labels: Sequence[Any], rng: np.random.Generator) -> list[Any]:
        return [null.exchange(data, rng) for null, data in zip(nulls, labels, strict=True)]

    def measure(labels: Sequence[Any]) -> Measured:
        null = Null("levels within films", labels, least, exchange)
        measured = [measure_one(data) for measure_one, data in zip(measures_of, labels, strict=True)]
        return replace(lowest(measured), null=null)

    return replace(with_null(measure, [null.data for null in nulls]), note=note)


def smallest_rise_by_annotator(segments: manifests.Manifest) -> Measured:
    """Count the smallest rise of all annotators."""
    rises = {name: smallest_rise(own, "segments") for name, own in grouped(segments, "annotator").items()}
    name = min(rises, key=lambda annotator: np.nan_to_num(rises[annotator].value, nan=-math.inf))
    return replace(rises[name], note=f"the least rise is that of {name}")


@under_paper_labels
def compositional(manifest: manifests.Manifest) -> Measured:
    """Compare the share of S, among clips above EN, with several concepts and with one."""
    table = _with_concepts(manifest)
    sides: NDArray[np.int64] = (table["n"] > 1).to_numpy().astype(np.int64)
    high = table["high"].to_numpy(dtype=np.float64)
    films = film_indices(table)
    shares = table.groupby("n")["high"].agg(["mean", "size"])
    parts = [
        f"{share:.0%} with {n} ({counted(round(size), 'clip')})" for n, share, size in shares.itertuples()
    ]
    note = f"S, films pooled: {', '.join(parts)}"

    def measure(values: Numbers) -> Measured:
        null = levels_within_films(values, films, lambda drawn: _mean_defined(film_gaps(drawn, sides, films)))
        return replace(over_units(film_gaps(values, sides, films), "films"), null=null)

    return replace(with_null(measure, high), note=note)


@under_paper_labels
def clothing_alone(manifest: manifests.Manifest) -> Measured:
    """Measure the share of S among HN and S clips whose only visual concept is Clothing."""
    table = _with_concepts(manifest)
    table = table[table["level"] != "NS"]
    held = np.array(["Clothing" in concepts for concepts in table["concepts"]], dtype=bool)
    is_alone = held & (table["n"] == 1).to_numpy()
    alone = table[is_alone]
    combined = table[held & ~is_alone]
    movies = alone["movie"].to_numpy(dtype=str)
    films = film_indices(table)
    concepts_of = {clip.clip_id: set(clip.concepts) for clip in manifest}
    has_no_other = alone["clip_id"].map(lambda clip_id: concepts_of[clip_id] == {"Clothing"})
    note = (
        f"S: {_of(alone['high'])} clips with Clothing as their only visual concept, "
        f"{_of(alone.loc[has_no_other.to_numpy(dtype=bool), 'high'])} of those without any concept besides, "
        f"{_of(combined['high'])} with other visual concepts"
    )

    def measure(is_high: NDArray[np.bool_]) -> Measured:
        high = is_high[is_alone]
        share = stats.jackknife_interval(lambda rows: _mean(high[rows]), movies, bounds=(0, 1))
        null = levels_within_films(is_high, films, lambda drawn: _mean(drawn[is_alone]))
        return replace(found(share, "films"), null=null)

    return replace(with_null(measure, table["high"].to_numpy()), note=note)


def _of(values: "pd.Series[Any]") -> str:
    return f"{int(values.sum()):,} of {len(values):,}"


def _with_concepts(manifest: manifests.Manifest) -> pd.DataFrame:
    table = _paper_clips(manifest)
    table = table[(table["level"] != manifest.codebook.level_names[0]) & (table["n"] > 0)]
    return table.assign(high=table["level"] == "S")


@under_annotated_labels
def any_visual(manifest: manifests.Manifest) -> Measured:
    """Measure the share of HN, NS and S clips, as annotated, that have a visual concept."""
    table = clip_table(manifest)
    above = table[table["level"] != manifest.codebook.level_names[0]]
    return Measured(float((above["n"] > 0).mean()), n=len(above), unit="clips", note=_of(above["n"] > 0))


@under_paper_labels
def share_of_sure(manifest: manifests.Manifest) -> Measured:
    """Measure the share of S clips."""
    table = _paper_clips(manifest)
    shares = table["level"].value_counts(normalize=True)
    annotated = clip_table(manifest)["level"].value_counts(normalize=True)
    note = f"{_shares(shares)}; as annotated {_shares(annotated)}"
    return Measured(float(shares["S"]), n=len(table), unit="clips", note=note)


def _shares(shares: "pd.Series[Any]") -> str:
    return ", ".join(f"{level} {share:.1%}" for level, share in shares.items())


def _counts(counts: "pd.Series[Any]") -> str:
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
    """Measure the share of S in the released test fold of EN against S."""
    level_of = {clip.clip_id: clip.level for clip in manifest}
    tested = [level_of[name] for name in classifier_folds(manifest, TASKS["en_s"], TASKS["en_s"])[0].test]
    return Measured(tested.count("S") / len(tested), n=len(tested), unit="clips")


@under_annotated_labels
def shots_tell(manifest: manifests.Manifest, *, margin: float) -> Measured:
    """Measure how well the number of shots of a clip alone tells S from EN and HN within films."""
    table = clip_table(manifest)
    table = table[(table["level"] != "NS") & table["shots"].notna()]
    films = np.array(
        [
            stats.auc((values["level"] == "S").to_numpy().astype(int), values["shots"].to_numpy())
            for _, values in table.groupby("movie")
        ]
    )

    def measure(values: Numbers) -> Measured:
        return replace(over_units(values, "films", null=0.5), null=planted_beside(values, 0.5, margin))

    return with_null(measure, films)


def hard_negatives(predictions: pd.DataFrame) -> Measured:
    """Compare the perceptron trained against HN with the one trained against EN, film by film."""
    of_mlp = predictions[predictions["model"] == "mlp"]
    of_movies = {
        key: stats.average_precision(rows["label"].to_numpy(), rows["score"].to_numpy())
        for key, rows in of_mlp.groupby(["task", "movie"])
    }
    ap: Any = pd.Series(of_movies)  # by task, and movie
    every = ap["hn_s>enhn_s"] - ap["en_s>enhn_s"]
    easy = ap["hn_s>en_s"] - ap["en_s>en_s"]
    values = every.to_numpy(dtype=np.float64)
    return replace(with_null(_over_films, values), note=f"tested on EN and S alone {easy.mean():+.3f}")


def _over_films(values: Numbers) -> Measured:
    """Average a value a film, beside the same values with signs of chance."""
    return replace(over_units(values, "films"), null=signs_by_film(values))


@under_paper_labels
def staged(inputs: tuple[manifests.Manifest, pd.DataFrame], *, variable: str, concept: str = "") -> Measured:
    """Compare a variable of staging of clips with and without a concept, or of S and of HN, film by film."""
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

    def mean_gap(sides: NDArray[np.int64]) -> float:
        return _mean_defined(film_gaps(values, sides, films))

    def measure(sides: NDArray[np.int64]) -> Measured:
        null = levels_within_films(sides, films, mean_gap)
        return replace(over_units(film_gaps(values, sides, films), "films"), null=null)

    return replace(with_null(measure, sides), note=note)


# --- sentences of 001 that MObyGaze decides, by the same authors
# ---------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoExperts:
    """Levels that two experts gave to the windows of a film, as ranks [N] each."""

    movie: str
    first: NDArray[np.intp]
    second: NDArray[np.intp]

    def exchanged(self, rng: np.random.Generator) -> "TwoExperts":
        """Exchange the levels of the second expert among the windows."""
        return replace(self, second=rng.permutation(self.second))


def expert_pairs(segments: manifests.Manifest) -> list[TwoExperts]:
    """Project free segments onto windows, and list the levels of every two experts of a film."""
    onto = manifests.windows(segments, manifests.DEFAULT_WINDOW_S)
    rank = {name: index for index, name in enumerate(segments.codebook.level_names)}
    pairs = []
    for pair in manifests.level_pairs(manifests.project(segments, onto, per_annotator=True).manifest):
        first = [rank[levels[0]] for levels, n in pair.counts.items() for _ in range(n)]
        second = [rank[levels[1]] for levels, n in pair.counts.items() for _ in range(n)]
        pairs.append(TwoExperts(pair.movie, np.array(first, np.intp), np.array(second, np.intp)))
    return pairs


def one_experts_labels(pairs: Sequence[TwoExperts], number: Callable[[Sequence[TwoExperts]], float]) -> Null:
    """Exchange the labels of one of two experts within each film."""

    def exchange(pairs_drawn: Sequence[TwoExperts], rng: np.random.Generator) -> list[TwoExperts]:
        return [pair.exchanged(rng) for pair in pairs_drawn]

    return Null("one annotator's labels within films", pairs, number, exchange)


def overlooked(segments: manifests.Manifest) -> Measured:
    """Measure in how many windows that two experts label differently one of them left it at EN."""
    pairs = expert_pairs(segments)
    one_easy = np.concatenate([_left_at_lowest(pair) for pair in pairs])
    n = sum(len(pair.first) for pair in pairs)
    note = f"{int(one_easy.sum()):,} of {counted(len(one_easy), 'window')} that differ, of {n:,}"
    return replace(with_null(_overlooked_by, pairs), note=note)


def _overlooked_by(pairs: Sequence[TwoExperts]) -> Measured:
    """Measure the share of windows that differ of which one of two experts left each at the lowest level."""

    def number(pairs_of_film: Sequence[TwoExperts]) -> float:
        return _mean(np.concatenate([_left_at_lowest(pair) for pair in pairs_of_film]))

    by_film = [_left_at_lowest(pair) for pair in pairs]
    one_easy = np.concatenate(by_film)
    movies = np.repeat([pair.movie for pair in pairs], [len(pairs_of_film) for pairs_of_film in by_film])
    share = stats.jackknife_interval(lambda rows: _mean(one_easy[rows]), movies, bounds=(0, 1))
    by_movie = np.array([float(one_easy[movies == movie].mean()) for movie in np.unique(movies)])
    finding = found(share, "films", p=stats.sign_flip(by_movie - 0.5).p)
    return replace(finding, null=one_experts_labels(pairs, number))


def _left_at_lowest(pair: TwoExperts) -> NDArray[np.bool_]:
    """Tell of each window that two experts label differently whether one left it at the lowest level."""
    differ = pair.first != pair.second
    return np.asarray(np.minimum(pair.first[differ], pair.second[differ]) == 0)


def thresholds(segments: manifests.Manifest, *, level: str, sign: int) -> Measured:
    """Measure how the clips of a level change from threshold .1 to .4, in the printed direction."""
    counts = []
    onto = manifests.windows(segments, manifests.DEFAULT_WINDOW_S)
    for projection in manifests.sweep(segments, onto, [0.1, 0.4]).values():
        table = _paper_clips(projection.manifest)
        table = table[table["level"] == level]
        counts.append(table.groupby("movie").size().reindex(list(segments.movies), fill_value=0))
    change = (counts[1] - counts[0]).to_numpy()
    values = np.asarray(sign * change, dtype=np.float64)
    return replace(with_null(_over_films, values), note=f"{level} {change.sum():+,} windows")


def without_unsure(segments: manifests.Manifest) -> Measured:
    """Measure how much gamma rises when clips that an expert labelled NS are left out."""
    codebook = segments.codebook
    apart = manifests.distances(codebook)
    is_label = np.array([name in codebook.labels for name in codebook.level_names])
    pairs = expert_pairs(segments)

    def rises(pairs_drawn: Sequence[TwoExperts]) -> Numbers:
        return np.array([_gamma_without(pair, apart, is_label) - _gamma(pair, apart) for pair in pairs_drawn])

    every = [_gamma(pair, apart) for pair in pairs]
    labels = [_gamma_without(pair, apart, is_label) for pair in pairs]
    has_both = np.isfinite(every) & np.isfinite(labels)
    mean_every = _mean(np.array(every)[has_both])
    mean_labels = _mean(np.array(labels)[has_both])
    note = f"mean gamma {mean_every:.3f}, without NS {mean_labels:.3f}"

    def measure(pairs_drawn: Sequence[TwoExperts]) -> Measured:
        null = one_experts_labels(pairs_drawn, lambda drawn: _mean_defined(rises(drawn)))
        return replace(over_units(rises(pairs_drawn), "films"), null=null)

    return replace(with_null(measure, pairs), note=note)


def _gamma(pair: TwoExperts, apart: Numbers) -> float:
    """Return 1 less the observed distance of two experts' levels over that of their margins (eq. 2)."""
    if not len(pair.first):
        return stats.NAN
    observed = float(apart[pair.first, pair.second].mean())
    first = np.bincount(pair.first, minlength=len(apart)) / len(pair.first)
    second = np.bincount(pair.second, minlength=len(apart)) / len(pair.second)
    expected = float(first @ apart @ second)
    return 1 - observed / expected if expected else stats.NAN


def _gamma_without(pair: TwoExperts, apart: Numbers, is_label: NDArray[np.bool_]) -> float:
    """Return gamma of the windows to which both gave a level that is a label."""
    is_counted = is_label[pair.first] & is_label[pair.second]
    return _gamma(TwoExperts(pair.movie, pair.first[is_counted], pair.second[is_counted]), apart)


# --- sentences of 002 and 004
# ---------------------------------------------------------------------------


def alike_scores(_: None, *, margin: float) -> Measured:
    """Compare, captioner by captioner, the two printed ratios of the four objects."""
    off = []
    for printed in TOTALS.values():
        distances = [
            abs(printed["score_to_man"][name] - ratio) for name, ratio in printed["object_to_man"].items()
        ]
        off.append(float(np.mean(distances)))

    def measure(distances: Numbers) -> Measured:
        finding = found(stats.t_interval(distances, bounds=(0, 1)), "captioners")
        return replace(finding, null=planted_beside(distances, 0.0, margin, sides=(1.0,)))

    return with_null(measure, np.array(off))


def balanced_object(_: None, *, margin: float) -> Measured:
    """Average the printed ratio towards man of the least biased object."""
    ratios = pd.DataFrame({model: printed["object_to_man"] for model, printed in TOTALS.items()})
    name = str((ratios.mean(axis=1) - 0.5).abs().idxmin())
    values = ratios.loc[name].to_numpy(dtype=np.float64)

    def measure(own: Numbers) -> Measured:
        finding = found(stats.t_interval(own, bounds=(0, 1)), "captioners")
        return replace(finding, null=planted_beside(own, 0.5, margin))

    return replace(with_null(measure, values), note=f"object: {name}")


def models_with(_: None, *, tests: Sequence[str], least: float, starred: bool) -> Measured:
    """Count the models of the printed tables whose effect is above `least` on each of some tests."""
    meeting = []
    for model, effects in EFFECTS.items():
        if all(_is_above(effects[name], least, starred=starred) for name in tests):
            meeting.append(model)
    shown = " and ".join(name.rpartition("_")[2] for name in tests)
    return Measured(len(meeting), n=len(EFFECTS), unit="models", note=f"{shown}: {len(meeting)}")


def _is_above(effect: PrintedEffect, least: float, *, starred: bool) -> bool:
    return effect.d > least and (effect.star or not starred)


def words_ratio(table: pd.DataFrame, *, emotion: str) -> Measured:
    """Divide the rate of an emotion's words for partially clothed subjects by that for clothed ones."""
    rates = _rates(table, emotion)[["O", "NO"]].to_numpy(dtype=np.float64)
    shown, clothed = rates.mean(axis=0)
    words = ", ".join(_words_counted(table, emotion))
    note = f"per 1,000 captions: {shown:.2f} partially clothed, {clothed:.2f} clothed ({words})"
    return replace(with_null(_ratio_of, rates), note=note)


def _ratio_of(rates: Numbers) -> Measured:
    """Measure the ratio of two mean rates of persons [P, 2]."""

    def ratio(persons_rates: Numbers) -> float:
        shown, clothed = persons_rates.mean(axis=0)
        return float(shown / clothed) if clothed else stats.NAN

    persons = np.array([f"{subject:03}" for subject in range(len(rates))])
    interval = stats.jackknife_interval(lambda rows: ratio(rates[rows]), persons, bounds=(0, math.inf))
    p = stats.sign_flip(rates[:, 0] - rates[:, 1] / 2).p
    null = Null("conditions within persons", rates, ratio, _conditions_exchanged)
    return replace(found(interval, "people pictured", p=p), null=null)


def _conditions_exchanged(rates: Numbers, rng: np.random.Generator) -> Numbers:
    """Exchange the two conditions of persons [P, 2], each by the toss of a coin."""
    swapped = rng.random(len(rates)) < 0.5
    return np.where(swapped[:, None], rates[:, ::-1], rates)


def words_rate(table: pd.DataFrame, *, emotion: str) -> Measured:
    """Average the rate of an emotion's words for partially clothed subjects, in the worse of two levels."""
    findings = []
    for level, rows in table.groupby(table["emotion"].str[2:]):
        if level:
            rates = _rates(rows, emotion, table)["O"].to_numpy()
            mean = stats.t_interval(rates, bounds=(0, math.inf))
            note = f"level {level}: {mean.mean:.2f}"
            findings.append(found(mean, "people pictured", note, p=stats.sign_flip(rates - 1).p))
    most = max(findings, key=lambda finding: np.nan_to_num(finding.high, nan=math.inf))
    words = ", ".join(_words_counted(table, emotion))
    note = f"{', '.join(finding.note for finding in findings)} ({words})"
    return replace(most, note=note, p=float(np.minimum(1.0, most.p * len(findings))))


def _words_counted(table: pd.DataFrame, emotion: str) -> list[str]:
    """List an emotion's words that occur often enough in all captions."""
    totals = table.sum(numeric_only=True)
    return [word for word in EMOTION_WORDS[emotion] if totals.get(word, 0) >= MIN_TOTAL]


def _rates(table: pd.DataFrame, emotion: str, all_rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """Count an emotion's words per 1,000 captions, person by condition."""
    words = _words_counted(table if all_rows is None else all_rows, emotion)
    rows = table[table["emotion"].str[:2].map(INTENDED.get) == emotion]
    rows = rows.assign(words=rows[words].sum(axis=1))
    totals_of = {
        name: rows.pivot_table(name, "subject", "condition", aggfunc="sum")
        for name in ("words", "n_captions")
    }
    return 1000 * totals_of["words"] / totals_of["n_captions"]
