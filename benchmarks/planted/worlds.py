"""Worlds that rows draw from: strengths, contents of windows, judges, corpora without anything to learn.

Each is drawn here, once for all rows: who adds a shape of strengths, or a way in which content goes with
labels, adds it to every row that states an interval over such worlds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.planted.calibrations import smooth
from benchmarks.planted.row import Floats

WIDTH: Final = 20
"""Features of a corpus of noise."""


# --- strengths of items on a scale, in logits
# ---------------------------------------------------------------------------
Strengths = Callable[[np.random.Generator, int], Floats]


def normal(rng: np.random.Generator, n: int) -> Floats:
    """Draw from a normal distribution."""
    return 2 * rng.normal(size=n)


def uniform(rng: np.random.Generator, n: int) -> Floats:
    """Draw evenly, as far apart as the normal ones."""
    return rng.uniform(-3.4, 3.4, n)


def clustered(rng: np.random.Generator, n: int) -> Floats:
    """Draw two groups that are hardly spread."""
    return rng.choice([-2.0, 2.0], n) + 0.2 * rng.normal(size=n)


def four_clusters(rng: np.random.Generator, n: int) -> Floats:
    """Draw four groups, unlike far from each other."""
    return rng.choice([-4.0, -1.0, 2.0, 3.0], n) + 0.1 * rng.normal(size=n)


def heavy(rng: np.random.Generator, n: int) -> Floats:
    """Draw from Student's t with two degrees of freedom: some items are far from all others."""
    return 2 * rng.standard_t(2, size=n)


def floored(rng: np.random.Generator, n: int) -> Floats:
    """Draw 60 % at one floor, as clips without any violence are, and others above it."""
    return np.where(rng.random(n) < 0.6, 0.0, np.abs(2 * rng.normal(size=n)))


def skewed(rng: np.random.Generator, n: int) -> Floats:
    """Draw many weak items and few strong ones."""
    return 2 * rng.exponential(size=n)


def alike(rng: np.random.Generator, n: int) -> Floats:
    """Draw items that hardly differ."""
    return 0.2 * rng.normal(size=n)


STRENGTHS: Final[Mapping[str, Strengths]] = {
    "normal": normal,
    "uniform": uniform,
    "clustered": clustered,
    "four clusters": four_clusters,
    "t with 2 degrees of freedom": heavy,
    "60 % at a floor": floored,
    "skewed": skewed,
    "hardly apart": alike,
}


# --- content of windows, in seconds
# ---------------------------------------------------------------------------
@dataclass(frozen=True)
class Content:
    """Between how many seconds the content of positive windows lies, and that of the others."""

    positives: tuple[float, float]
    others: tuple[float, float]

    def draw(self, rng: np.random.Generator, y: Floats) -> Floats:
        """Draw the content [n] of windows with labels y [n]."""
        return np.where(y > 0, rng.uniform(*self.positives, len(y)), rng.uniform(*self.others, len(y)))


TWOFOLD: Final = {
    "alike": Content((46, 46), (46, 46)),
    "positives half": Content((23, 23), (46, 46)),
    "positives twice": Content((46, 46), (23, 23)),
    "positives 23 to 34 s, others 34 to 46 s": Content((23, 34), (34, 46)),
    "23 to 46 s": Content((23, 46), (23, 46)),
}
MANYFOLD: Final = {
    "positives 6 s, others 46 s": Content((6, 6), (46, 46)),
    "positives 46 s, others 6 s": Content((46, 46), (6, 6)),
}


# --- a second judge
# ---------------------------------------------------------------------------
Second = Callable[[np.random.Generator, Floats], Floats]
"""Draws what the second judge marks of a film, by what the first does."""


def half_of_these(rng: np.random.Generator, y: Floats) -> Floats:
    """Mark half of what the first judge marks: how they differ depends on the window."""
    return y * rng.permuted(np.arange(len(y)) < len(y) // 2)


def others(rng: np.random.Generator, y: Floats) -> Floats:
    """Mark half as many windows, whatever the first judge marks."""
    marked = np.arange(len(y)) < round(y.sum() / 2)
    return rng.permuted(marked).astype(np.float64)


def as_many(rng: np.random.Generator, y: Floats) -> Floats:
    """Mark as many, nine in ten of them the same."""
    changed = y.copy()
    n = max(1, round(0.1 * y.sum()))
    changed[rng.choice(np.flatnonzero(y == 1), n, replace=False)] = 0
    changed[rng.choice(np.flatnonzero(y == 0), n, replace=False)] = 1
    return changed


SECONDS: Final[dict[str, Second]] = {
    "half of these": half_of_these,
    "half as many, others": others,
    "as many": as_many,
}


# --- corpora without anything to learn
# ---------------------------------------------------------------------------
@dataclass(frozen=True)
class Noise:
    """Films of normal features that know nothing of the labels, half of which are positive.

    Attributes
    ----------
    films, clips : int
        Number of films, and of clips of each.
    order : float
        Correlation of a feature with that of the next clip; with one above 0 labels come in runs of five too.
    """

    films: int
    clips: int
    order: float = 0.0

    def draw(self, rng: np.random.Generator) -> tuple[Floats, np.ndarray, np.ndarray]:
        """Draw features [N, 20], labels and films [N]."""
        movies = np.repeat(np.arange(self.films), self.clips)
        place = np.arange(len(movies)) % self.clips
        labels = place // 5 % 2 if self.order else place % 2
        if not self.order:
            return rng.normal(size=(len(movies), WIDTH)), labels, movies
        films = [smooth(rng, self.clips, WIDTH, self.order) for _ in range(self.films)]
        return np.concatenate(films), labels, movies


NOISE: Final[Mapping[str, Noise]] = {
    "4 x 2": Noise(4, 2),
    "4 x 4": Noise(4, 4),
    "4 x 10": Noise(4, 10),
    "6 x 20": Noise(6, 20),
    "6 x 20, slow": Noise(6, 20, 0.8),
}
"""Films x clips."""
