"""New films like those trained on, and films of other worlds: how many of their clips are flagged."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.planted.row import Cell, Column, Draw, Floats, Row
from obygaze_models.prediction.out_of_distribution import LARGEST_SHARE, OutOfDistribution

N_FEATURES: Final = 64
N_CLIPS: Final = 40
"""Clips of each film."""

STEADY: Final = N_FEATURES // 4
"""Features that hardly vary, in the world that has some."""


@dataclass(frozen=True)
class World:
    """Films, each at a place of its own, and a new one.

    Attributes
    ----------
    between : float
        Deviation of films' means, where that of the clips of a film is 1.
    has_steady : bool
        Whether a quarter of the features hardly vary, but differ from film to film.
    moved : float
        How far each feature of the new film lies off, up or down, in deviations of a film's clips.
    wider : float
        How many times as widely the clips of the new film vary.
    """

    between: float = 0.5
    has_steady: bool = False
    moved: float = 0.0
    wider: float = 1.0

    def film(self, rng: np.random.Generator, *, is_new: bool) -> Floats:
        """Draw the clips [n, D] of a film."""
        X = rng.normal(size=(N_CLIPS, N_FEATURES))
        if is_new:
            X *= self.wider
        X += self.between * rng.normal(size=N_FEATURES)
        if is_new:
            X += self.moved * rng.choice([-1, 1], N_FEATURES)
        if self.has_steady:
            X[:, :STEADY] = 1e-3 * rng.normal(size=STEADY) + 1e-6 * rng.normal(size=(N_CLIPS, STEADY))
        return X


def share_flagged(rng: np.random.Generator, world: World, n_films: int) -> Draw:
    """Fit the distances of some films and ask which clips of a new film are unlike them."""
    X = np.concatenate([world.film(rng, is_new=False) for _ in range(n_films)])
    movies = np.repeat(np.arange(n_films), N_CLIPS).astype(str)
    fitted = OutOfDistribution.fit(X, movies)
    is_unlike = fitted.shares(world.film(rng, is_new=True)) > LARGEST_SHARE
    return {"clips flagged": is_unlike.mean(), "films flagged": is_unlike.mean() > 0.5}


LIKE: Final = {"clips flagged": Column(high=0.05), "films flagged": Column(high=0.05)}
OTHER: Final = {"clips flagged": Column(low=0.95), "films flagged": Column(low=0.95)}
WORLDS: Final = {
    "like those trained on": (World(), LIKE),
    "like, films far apart": (World(between=1.0), {}),
    "like, a quarter of features nearly constant": (World(has_steady=True), {}),
    "moved by 1 deviation": (World(moved=1.0), {}),
    "moved by 3 deviations": (World(moved=3.0), OTHER),
    "four times as varied": (World(wider=4.0), OTHER),
}
FILMS: Final = (6, 20)

ROWS = [
    Row(
        "unlike", "docs/predict.md", "predict",
        "Share of the clips of a new film that are flagged `unlike`, and of new films of which more than "
        "half of the clips are, by how the new film differs and how many films were trained on.",
        ("new film", "films"),
        [Cell((name, f"{n_films}"), (world, n_films), bounds)
         for name, (world, bounds) in WORLDS.items() for n_films in FILMS],
        share_flagged,
        {"clips flagged": Column(), "films flagged": Column()},
        full=400, small=10, small_cells=12,
    ),
]  # fmt: skip
