"""Test how concepts combine into levels: the claim that objectification is compositional (section 3.4).

All tests are exact and keep films apart. Rates by film differ (a film has more S clips, another more nudity),
so that clips of different films must never be exchanged. Where a test counts clips, the counts of each film
are fixed and the sum over films has a distribution in closed form, a convolution of hypergeometric ones
(Zelen 1971; with one film it is Fisher's exact test). Where it compares means, films are the units and their
differences change signs.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import hypergeom

from obygaze_features.manifest import Clip, Manifest
from obygaze_models.evaluation import SignFlip, holm, sign_flip

EQUAL = 1 + 1e-7
"""Probabilities that are equal on paper differ by rounding, which is far below this."""


@dataclass(frozen=True, slots=True)
class ExactTest:
    """Result of an exact test of counts over films.

    Attributes
    ----------
    observed : int
        The count, summed over films.
    expected : float
        Its mean where nothing depends on anything, given each film's margins.
    p : float
        Two-sided: the probability of all counts that are no more probable than the observed one.
    """

    observed: int
    expected: float
    p: float


def exact_common(both: ArrayLike, first: ArrayLike, second: ArrayLike, clips: ArrayLike) -> ExactTest:
    """Test whether two properties of clips go together within films.

    Parameters
    ----------
    both, first, second, clips : array-like of int, shape [M]
        Of each film: clips with both properties, with the first, with the second, and all.

    Examples
    --------
    >>> test = exact_common([3], [3], [3], [6])
    >>> test.observed, test.expected, round(test.p, 3)
    (3, 1.5, 0.1)
    """
    tables = np.stack([np.asarray(counts, dtype=np.int64) for counts in (both, first, second, clips)])
    null, low = np.ones(1), 0
    expected = 0.0
    for _, a, b, n in tables.T.tolist():
        least, most = max(0, a + b - n), min(a, b)
        null = np.convolve(null, hypergeom.pmf(np.arange(least, most + 1), n, a, b))
        low += least
        expected += a * b / n if n else 0.0
    observed = int(tables[0].sum())
    p = float(null[null <= null[observed - low] * EQUAL].sum())
    return ExactTest(observed, expected, min(p, 1.0))


@dataclass(frozen=True, slots=True)
class Trend:
    """Visual concepts per clip, by level.

    Attributes
    ----------
    means : mapping of str to float
        Of each level above the lowest that has clips, from low to high.
    rises : bool or None
        Whether each mean is above the one before; None with fewer than two levels.
    difference : float
        Highest less lowest of these levels, averaged over the films that have clips of both; NaN without one.
    test : SignFlip
        Of the films' differences.
    """

    means: Mapping[str, float]
    rises: bool | None
    difference: float
    test: SignFlip


def concept_trend(manifest: Manifest) -> Trend:
    """Measure whether the mean number of visual concepts rises with the level, and test it over films.

    The lowest level is left out: by definition it has no concept.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features import Clip, Manifest
    >>> rows = [("a", "HN", ("Body",)), ("b", "S", ("Body", "Look"))]
    >>> clips = tuple(Clip(name, "film", level=level, concepts=marked) for name, level, marked in rows)
    >>> trend = concept_trend(Manifest(clips, Path()))
    >>> trend.means, trend.rises
    ({'HN': 1.0, 'S': 2.0}, True)
    """
    codebook = manifest.codebook
    counts: dict[tuple[str, str], list[int]] = {}
    for clip in manifest:
        if clip.level is not None and clip.level != codebook.level_names[0]:
            counts.setdefault((clip.level, clip.movie), []).append(len(codebook.visual(clip.concepts)))
    of_level: dict[str, list[int]] = {}
    for level in codebook.level_names:
        numbers = [number for (at, _), part in counts.items() if at == level for number in part]
        if numbers:
            of_level[level] = numbers
    means = {level: sum(numbers) / len(numbers) for level, numbers in of_level.items()}
    rising = list(means.values())
    if len(means) < 2:
        return Trend(means, None, float("nan"), sign_flip([]))
    low, high = next(iter(means)), list(means)[-1]
    differences = [
        float(np.mean(counts[high, movie]) - np.mean(counts[low, movie]))
        for movie in manifest.movies
        if (high, movie) in counts and (low, movie) in counts
    ]
    return Trend(
        means,
        all(above > below for below, above in pairwise(rising)),
        float(np.mean(differences)) if differences else float("nan"),
        sign_flip(differences),
    )


def concept_sets(manifest: Manifest) -> dict[tuple[str, ...], Counter[str]]:
    """Count the clips of each level by their set of visual concepts, the most frequent sets first."""
    sets: dict[tuple[str, ...], Counter[str]] = {}
    for clip in manifest:
        if clip.level is not None:
            sets.setdefault(manifest.codebook.visual(clip.concepts), Counter())[clip.level] += 1
    return dict(sorted(sets.items(), key=lambda item: (-item[1].total(), len(item[0]), item[0])))


@dataclass(frozen=True, slots=True)
class Combined:
    """A concept alone and with others, in clips of the two highest levels that are in tasks.

    Attributes
    ----------
    concept : str
    alone, combined : tuple of int
        Clips of the lower and of the higher level: with no other visual concept, and with others.
    test : Exact
        Of being of the higher level and having the concept with others.
    p_holm : float
        Adjusted for all concepts.
    """

    concept: str
    alone: tuple[int, int]
    combined: tuple[int, int]
    test: ExactTest
    p_holm: float


def compared_levels(manifest: Manifest) -> tuple[str, str] | None:
    """Return the two highest levels that are in tasks, above the lowest level: HN and S of ObyGaze12."""
    labels = [level for level in manifest.codebook.labels if level != manifest.codebook.level_names[0]]
    return (labels[-2], labels[-1]) if len(labels) > 1 else None


def alone_or_combined(manifest: Manifest) -> tuple[Combined, ...]:
    """Test for each visual concept whether clips with it are more often of the highest level with others.

    Nothing where the codebook has fewer than two levels above the lowest in tasks; a concept that is never
    marked in them is left out.
    """
    levels, codebook = compared_levels(manifest), manifest.codebook
    if levels is None:
        return ()
    tests = []
    for concept in codebook.visual_concepts:
        clips = [clip for clip in manifest if clip.level in levels and concept in clip.concepts]
        if not clips:
            continue
        high = np.array([clip.level == levels[1] for clip in clips])
        others = np.array([len(codebook.visual(clip.concepts)) > 1 for clip in clips])
        test = _within_movies(high, others, clips)
        alone, combined = (
            (int((side & ~high).sum()), int((side & high).sum())) for side in (~others, others)
        )
        tests.append((concept, alone, combined, test))
    adjusted = holm([test.p for *_, test in tests])
    return tuple(Combined(*row, p_holm=float(p)) for row, p in zip(tests, adjusted, strict=True))


@dataclass(frozen=True, slots=True)
class ConceptPair:
    """Two visual concepts in the clips of a level."""

    level: str
    concepts: tuple[str, str]
    test: ExactTest
    p_holm: float


def concept_pairs(manifest: Manifest) -> tuple[ConceptPair, ...]:
    """Test which visual concepts are marked together, at each level above the lowest.

    Given how often each is marked in each film at the level. Clips that must have a concept make pairs rarer
    than chance if most have but one. P-values are adjusted for the pairs of all levels.
    """
    codebook = manifest.codebook
    tests = []
    for level in codebook.level_names[1:]:
        clips = [clip for clip in manifest if clip.level == level]
        present = {
            concept: np.array([concept in clip.concepts for clip in clips], dtype=bool)
            for concept in codebook.visual_concepts
        }
        for first, second in combinations(codebook.visual_concepts, 2):
            if present[first].any() and present[second].any():
                tests.append((level, (first, second), _within_movies(present[first], present[second], clips)))
    adjusted = holm([test.p for *_, test in tests])
    return tuple(ConceptPair(*row, p_holm=float(p)) for row, p in zip(tests, adjusted, strict=True))


def _within_movies(first: NDArray[np.bool_], second: NDArray[np.bool_], clips: Sequence[Clip]) -> ExactTest:
    _, movie = np.unique([clip.movie for clip in clips], return_inverse=True)
    both, in_first, in_second = (
        np.rint(np.bincount(movie, weights=side)) for side in (first & second, first, second)
    )
    return exact_common(both, in_first, in_second, np.bincount(movie))
