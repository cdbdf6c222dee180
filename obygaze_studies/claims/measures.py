"""Measure what the sentences of `obygaze_studies.claims.claims_report` are about, from released data.

Where clips were annotated, films are what was sampled: intervals are jackknife or t intervals over films,
tests change signs of films or permute levels within them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

import obygaze_features.manifest as manifests
import obygaze_models.evaluation as stats
from obygaze_studies.caption_words import EMOTION_WORDS
from obygaze_studies.eat_stimuli import EFFECTS
from obygaze_studies.gender_score.published_values import TOTALS
from obygaze_studies.obygaze12.corpus import TASKS
from obygaze_studies.obygaze12.paper_folds import classifier_folds
from obygaze_studies.obygaze12.statistics import by_film, clip_table, grouped

N_PERMUTATIONS = 2000

MIN_TOTAL = 100
"""Emotion words with fewer occurrences in all captions are left out (004, section 4.3)."""

INTENDED = {"AN": "anger", "SA": "sadness", "HA": "happiness"}
"""Emotion of the first two letters of a picture's `emotion` in the released counts of words."""

COUNTED = ("clips", "models")
"""Units of numbers that are of all there are; what is of others was sampled."""

Numbers = NDArray[np.float64]


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
    """

    value: float = stats.NAN
    low: float = stats.NAN
    high: float = stats.NAN
    p: float = stats.NAN
    p_holm: float = stats.NAN
    n: int = 0
    unit: str = ""
    note: str = ""


# --- numbers over units
# ---------------------------------------------------------------------------


def over_units(values: ArrayLike, unit: str, note: str = "", null: float = 0.0) -> Measured:
    """Average one value a unit, with its t interval and the sign-flip test against `null`."""
    return found(stats.t_interval(values), unit, note, p=stats.sign_flip(np.asarray(values) - null).p)


def found(average: stats.Interval, unit: str, note: str = "", *, p: float = stats.NAN) -> Measured:
    """Make the finding of an average with its interval."""
    return Measured(average.mean, average.low, average.high, p, n=average.n_movies, unit=unit, note=note)


def lowest(findings: Sequence[Measured]) -> Measured:
    """Choose the number with the lowest interval, which may be undefined; adjust p for it (Bonferroni)."""
    chosen = min(findings, key=lambda finding: np.nan_to_num(finding.low, nan=-math.inf))
    return replace(chosen, p=float(np.minimum(1.0, chosen.p * len(findings))))


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if values.size else stats.NAN


def _paper_clips(manifest: manifests.Manifest) -> pd.DataFrame:
    """List the clips with the labels that the paper gives them."""
    return clip_table(manifests.apply_policy(manifest, manifests.LabelPolicy.PAPER))


# --- sentences of 001 that ObyGaze12's annotations decide
# ---------------------------------------------------------------------------


def same_rate(manifest: manifests.Manifest) -> Measured:
    """Compare which concepts are marked at HN, NS and S; levels are permuted within films."""
    names, levels = manifest.codebook.visual_concepts, manifest.codebook.level_names[1:]
    table = _paper_clips(manifest)
    table = table[table["level"].isin(levels)].sort_values("movie", kind="stable")
    marks = np.array([[name in held for name in names] for held in table["concepts"]], dtype=np.float64)
    rank = table["level"].map(levels.index).to_numpy()
    movies = table["movie"].to_numpy(dtype=str)

    def distance(kept: NDArray[np.bool_]) -> float:
        low, high = (marks[kept & (rank == level)].sum(axis=0) for level in (0, len(levels) - 1))
        return float(np.abs(low / low.sum() - high / high.sum()).sum() / 2)

    rng = np.random.default_rng(0)
    film = np.unique(movies, return_inverse=True)[1]
    observed = _chi_squared(rank[None], marks, len(levels))[0]
    # Clips are sorted by film: random numbers below 1 sort them anew within each film.
    orders = np.argsort(film + rng.random((N_PERMUTATIONS - 1, film.size)), axis=1)
    drawn = _chi_squared(rank[orders], marks, len(levels))
    p = (1 + np.count_nonzero(drawn >= observed * (1 - 1e-12))) / N_PERMUTATIONS
    result = stats.jackknife_interval(distance, movies, bounds=(0, 1))
    shares = {
        level: marks[rank == index].sum(axis=0) / marks[rank == index].sum()
        for index, level in enumerate(levels)
    }
    most = int(np.argmax(np.abs(shares[levels[0]] - shares[levels[-1]])))
    note = f"largest difference: {names[most]}, " + ", ".join(
        f"{share[most]:.0%} of {level} marks" for level, share in shares.items()
    )
    return found(result, "films", note, p=p)


def _chi_squared(ranks: NDArray[np.intp], marks: Numbers, n_levels: int) -> Numbers:
    """Compute the chi-squared statistic [R] of marks [N, K] against rows of levels [R, N]."""
    found = np.stack([(ranks == level) @ marks for level in range(n_levels)], axis=1)
    expected = found.sum(axis=2, keepdims=True) * found.sum(axis=1, keepdims=True)
    expected = expected / found.sum(axis=(1, 2), keepdims=True)
    terms = np.divide((found - expected) ** 2, expected, out=np.zeros_like(found), where=expected > 0)
    return np.asarray(terms.sum(axis=(1, 2)))


def rising(manifest: manifests.Manifest) -> Measured:
    """Measure how many more visual concepts S clips have than HN clips."""
    levels, table = manifest.codebook.level_names[1:], _paper_clips(manifest)
    films = by_film(table, "n", "level").reindex(columns=list(levels))
    means = table.groupby("level")["n"].mean().reindex(list(levels))
    note = "visual concepts per clip: " + ", ".join(f"{level} {means[level]:.2f}" for level in levels)
    note += "" if all(low < high for low, high in pairwise(means)) else " (does not rise)"
    return over_units((films[levels[-1]] - films[levels[0]]).to_numpy(), "films", note)


def rising_by_annotator(segments: manifests.Manifest) -> Measured:
    """Measure the same for each annotator of free segments, and choose the least sure of them."""
    findings = {name: rising(own) for name, own in grouped(segments, "annotator").items()}
    note = "; ".join(f"{name}: {finding.note}" for name, finding in findings.items())
    return replace(lowest(list(findings.values())), note=note)


def compositional(manifest: manifests.Manifest) -> Measured:
    """Compare the share of S, among clips above EN, with several concepts and with one."""
    table = _with_concepts(manifest)
    table["side"] = np.where(table["n"] > 1, "several", "one")
    films = by_film(table, "high", "side")
    shares = table.groupby("n")["high"].mean()
    note = "S: " + ", ".join(f"{share:.0%} with {n}" for n, share in shares.items())
    return over_units((films["several"] - films["one"]).to_numpy(), "films", note)


def clothing_alone(manifest: manifests.Manifest) -> Measured:
    """Measure the share of S among HN and S clips whose only visual concept is Clothing."""
    table = _with_concepts(manifest)
    table = table[table["level"] != "NS"]
    held = np.array(["Clothing" in concepts for concepts in table["concepts"]])
    alone, combined = table[held & (table["n"] == 1)], table[held & (table["n"] > 1)]
    high = alone["high"].to_numpy()
    share = stats.jackknife_interval(
        lambda kept: _mean(high[kept]), alone["movie"].to_numpy(dtype=str), bounds=(0, 1)
    )
    note = f"alone {_of(alone['high'])} clips, with other concepts {_of(combined['high'])}"
    return found(share, "films", note)


def _of(values: "pd.Series[Any]") -> str:
    return f"{int(values.sum()):,} of {len(values):,}"


def _with_concepts(manifest: manifests.Manifest) -> pd.DataFrame:
    table = _paper_clips(manifest)
    table = table[(table["level"] != manifest.codebook.level_names[0]) & (table["n"] > 0)]
    return table.assign(high=table["level"] == "S")


def any_visual(manifest: manifests.Manifest) -> Measured:
    """Measure the share of HN, NS and S clips, as annotated, that have a visual concept."""
    table = clip_table(manifest)
    above = table[table["level"] != manifest.codebook.level_names[0]]
    return Measured(float((above["n"] > 0).mean()), n=len(above), unit="clips", note=_of(above["n"] > 0))


def share_of_sure(manifest: manifests.Manifest) -> Measured:
    """Measure the share of S clips."""
    table = _paper_clips(manifest)
    shares = table["level"].value_counts(normalize=True)
    note = ", ".join(f"{level} {share:.1%}" for level, share in shares.items())
    return Measured(float(shares["S"]), n=len(table), unit="clips", note=note)


def released_share(manifest: manifests.Manifest) -> Measured:
    """Measure the share of S in the released test fold of EN against S."""
    level_of = {clip.clip_id: clip.level for clip in manifest}
    tested = [level_of[name] for name in classifier_folds(manifest, TASKS["en_s"], TASKS["en_s"])[0].test]
    return Measured(tested.count("S") / len(tested), n=len(tested), unit="clips")


def shots_tell(manifest: manifests.Manifest) -> Measured:
    """Measure how well the number of shots of a clip alone tells S from EN and HN within films."""
    table = clip_table(manifest)
    table = table[(table["level"] != "NS") & table["shots"].notna()]
    films = [
        stats.auc((own["level"] == "S").to_numpy().astype(int), own["shots"].to_numpy())
        for _, own in table.groupby("movie")
    ]
    return over_units(films, "films", null=0.5)


def hard_negatives(predictions: pd.DataFrame) -> Measured:
    """Compare the perceptron trained against HN with the one trained against EN, film by film."""
    own = predictions[predictions["model"] == "mlp"]
    of_movies = {
        key: stats.average_precision(rows["label"].to_numpy(), rows["score"].to_numpy())
        for key, rows in own.groupby(["task", "movie"])
    }
    ap: Any = pd.Series(of_movies)  # by task, and movie
    every, easy = (ap[f"hn_s>{test}"] - ap[f"en_s>{test}"] for test in ("enhn_s", "en_s"))
    return over_units(every.to_numpy(), "films", f"tested on EN and S alone {easy.mean():+.3f}")


def staged(inputs: tuple[manifests.Manifest, pd.DataFrame], *, variable: str, concept: str = "") -> Measured:
    """Compare a variable of staging of clips with and without a concept, or of S and of HN, film by film."""
    manifest, table = inputs
    clips = _paper_clips(manifest)
    values = clips["clip_id"].map(table.get(variable, pd.Series(dtype=np.float64)))
    clips = clips.assign(value=values).dropna(subset="value")
    marked = ["one" if concept in held else "other" for held in clips["concepts"]]
    clips["side"] = marked if concept else clips["level"].map({"S": "one", "HN": "other"})
    films = by_film(clips, "value", "side").reindex(columns=["one", "other"]).dropna()
    note = f"{len(clips):,} of {len(manifest):,} clips have the column {variable}"
    return over_units((films["one"] - films["other"]).to_numpy(), "films", note)


# --- sentences of 001 that MObyGaze decides, by the same authors
# ---------------------------------------------------------------------------


def overlooked(segments: manifests.Manifest) -> Measured:
    """Measure in how many windows that two experts label differently one of them left it at EN."""
    lowest = segments.codebook.level_names[0]
    onto = manifests.windows(segments, manifests.DEFAULT_WINDOW_S)
    pairs = manifests.level_pairs(manifests.project(segments, onto, per_annotator=True).manifest)
    parted = {pair.movie: [*pair.parted(lowest).values()] for pair in pairs}
    one_easy = np.concatenate([np.repeat([True, False], parts[2:]) for parts in parted.values()])
    movies = np.repeat(list(parted), [sum(parts[2:]) for parts in parted.values()])
    share = stats.jackknife_interval(lambda kept: _mean(one_easy[kept]), movies, bounds=(0, 1))
    by_movie = [float(one_easy[movies == movie].mean()) for movie in np.unique(movies)]
    n = sum(parts[0] for parts in parted.values())
    note = f"{int(one_easy.sum()):,} of {len(movies):,} windows that differ, of {n:,}"
    return found(share, "films", note, p=stats.sign_flip(np.array(by_movie) - 0.5).p)


def thresholds(segments: manifests.Manifest) -> Measured:
    """Measure how the clips of each level change from threshold .1 to .4, in the printed direction."""
    onto = manifests.windows(segments, manifests.DEFAULT_WINDOW_S)
    printed = {"EN": 1, "HN": 1, "NS": -1, "S": -1}
    low, high = (
        _paper_clips(projection.manifest)
        .pivot_table("n", "movie", "level", aggfunc="size", fill_value=0)
        .reindex(index=list(segments.movies), columns=list(printed), fill_value=0)
        for projection in manifests.sweep(segments, onto, [0.1, 0.4]).values()
    )
    change = high - low
    note = ", ".join(f"{level} {change[level].sum():+,} clips" for level in printed)
    findings = [
        over_units(sign * change[level].to_numpy(), "films", f"{note}; shown: {level}")
        for level, sign in printed.items()
    ]
    return lowest(findings)


def without_unsure(segments: manifests.Manifest) -> Measured:
    """Measure how much gamma rises when clips that an expert labelled NS are left out."""
    onto = manifests.windows(segments, manifests.DEFAULT_WINDOW_S)
    pairs = manifests.agreement(manifests.project(segments, onto, per_annotator=True).manifest)
    values = [(pair.all_levels.value, pair.labels_only.value) for pair in pairs]
    every, labels = np.array([pair for pair in values if None not in pair], np.float64).reshape(-1, 2).T
    note = f"mean gamma {_mean(every):.3f}, without NS {_mean(labels):.3f}"
    return over_units(labels - every, "films", note)


# --- sentences of 002 and 004
# ---------------------------------------------------------------------------


def alike_scores(_: None) -> Measured:
    """Compare, captioner by captioner, the two printed ratios of the four objects."""
    off = [
        [abs(printed["score_to_man"][name] - ratio) for name, ratio in printed["object_to_man"].items()]
        for printed in TOTALS.values()
    ]
    return found(stats.t_interval([float(np.mean(own)) for own in off], bounds=(0, 1)), "captioners")


def balanced_object(_: None) -> Measured:
    """Average the printed ratio towards man of the least biased object."""
    ratios = pd.DataFrame({model: printed["object_to_man"] for model, printed in TOTALS.items()})
    name = str((ratios.mean(axis=1) - 0.5).abs().idxmin())
    return found(stats.t_interval(ratios.loc[name], bounds=(0, 1)), "captioners", f"object: {name}")


def models_with(_: None, *, tests: Sequence[str], least: float, starred: bool) -> Measured:
    """Count the models of the printed tables whose effect on a test is above `least`.

    On several tests, those of the test with the fewest such models.
    """
    meeting = {}
    for name in tests:
        effects = [own[name] for own in EFFECTS.values()]
        meeting[name] = sum(effect.d > least and (effect.star or not starred) for effect in effects)
    note = ", ".join(f"{name.rpartition('_')[2]}: {n}" for name, n in meeting.items())
    return Measured(min(meeting.values()), n=len(EFFECTS), unit="models", note=note)


def words_ratio(table: pd.DataFrame, *, emotion: str) -> Measured:
    """Divide the rate of an emotion's words for partially clothed subjects by that for clothed ones."""
    rates = _rates(table, emotion)
    shown, clothed = (rates[condition].to_numpy() for condition in ("O", "NO"))
    ratio = stats.jackknife_interval(
        lambda kept: float(shown[kept].mean() / clothed[kept].mean()),
        np.array([f"{subject:03}" for subject in range(len(rates))]),
        bounds=(0, math.inf),
    )
    note = f"per 1,000 captions: {shown.mean():.2f} partially clothed, {clothed.mean():.2f} clothed"
    return found(ratio, "people pictured", note, p=stats.sign_flip(shown - clothed / 2).p)


def words_rate(table: pd.DataFrame, *, emotion: str) -> Measured:
    """Average the rate of an emotion's words for partially clothed subjects, in the worse of two levels."""
    findings = []
    for level, own in table.groupby(table["emotion"].str[2:]):
        if level:
            rates = _rates(own, emotion, table)["O"].to_numpy()
            mean = stats.t_interval(rates, bounds=(0, math.inf))
            findings.append(found(mean, "people pictured", f"level {level}", p=stats.sign_flip(rates - 1).p))
    most = max(findings, key=lambda finding: np.nan_to_num(finding.high, nan=math.inf))
    return replace(most, p=float(np.minimum(1.0, most.p * len(findings))))


def _rates(table: pd.DataFrame, emotion: str, whole: pd.DataFrame | None = None) -> pd.DataFrame:
    """Count an emotion's words per 1,000 captions, person by condition."""
    totals = (table if whole is None else whole).sum(numeric_only=True)
    words = [word for word in EMOTION_WORDS[emotion] if totals.get(word, 0) >= MIN_TOTAL]
    own = table[table["emotion"].str[:2].map(INTENDED.get) == emotion]
    own = own.assign(words=own[words].sum(axis=1))
    totals_of = {
        name: own.pivot_table(name, "subject", "condition", aggfunc="sum") for name in ("words", "n_captions")
    }
    return 1000 * totals_of["words"] / totals_of["n_captions"]
