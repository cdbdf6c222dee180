"""Worlds of clips with two modalities, and what `obygaze evaluate` and `predict` make of their scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.signal import lfilter
from scipy.special import expit, logit

from benchmarks.planted.row import Cell, Column, Draw, Floats, Row
from obygaze_models.evaluation.metrics import within_movie_auc
from obygaze_models.models.grouped_selection import mean_score
from obygaze_models.models.linear import SPECS
from obygaze_models.prediction.calibration import Calibration
from obygaze_models.protocol import HeldOut

(LINEAR,) = SPECS

WIDTH: Final = 6
"""Features of a modality."""

BOTH: Final = (slice(0, WIDTH), slice(WIDTH, 2 * WIDTH))


@dataclass(frozen=True)
class World:
    """Films of 30 to 90 clips whose shares of positives differ.

    Attributes
    ----------
    shifts : tuple of float
        How far the first feature of each modality lies higher for positives, in deviations within films.
    lacks : str
        Which clips lack the second modality: none, at random, by label or by film.
    films : int
    share, spread : float
        Share of positives of the median film, and its SD over films on the logit scale.
    order : float
        Correlation of a feature with that of the next clip.
    """

    shifts: tuple[float, float]
    lacks: str = ""
    films: int = 8
    share: float = 0.3
    spread: float = 0.8
    order: float = 0.5

    def draw(self, rng: np.random.Generator, films: int = 0) -> tuple[Floats, np.ndarray, np.ndarray]:
        """Draw features [N, 12], labels and films [N]."""
        parts = []
        for film in range(films or self.films):
            n = int(rng.integers(30, 91))
            y = (rng.random(n) < expit(logit(self.share) + self.spread * rng.normal())).astype(np.int64)
            X = smooth(rng, n, 2 * WIDTH, self.order) + 0.3 * rng.normal(size=2 * WIDTH)
            for own, shift in zip(BOTH, self.shifts, strict=True):
                X[:, own.start] += shift * y
            chance = {"": 0.0, "at random": 0.4, "by label": 0.2 + 0.5 * y, "by film": 1.0 * (film % 2)}
            X[rng.random(n) < chance[self.lacks], WIDTH:] = np.nan
            parts.append((X, y, np.full(n, film)))
        X, y, movies = (np.concatenate(each) for each in zip(*parts, strict=True))
        return X, y, movies


def smooth(rng: np.random.Generator, n: int, width: int, order: float) -> Floats:
    """Draw stationary first-order autoregressions [n, width] of variance 1."""
    noise = rng.normal(size=(n + 50, width)) * np.sqrt(1 - order**2)
    return np.asarray(lfilter([1.0], [1.0, -order], noise, axis=0)[50:])


def calibrated(rng: np.random.Generator, world: World) -> Draw:
    """Calibrate one modality's model by its inner folds; ask it about 40 new films."""
    (X, y, movies), (new, truth, films) = world.draw(rng), world.draw(rng, 40)
    X, new = X[:, :WIDTH], new[:, :WIDTH]
    model = LINEAR.estimator(0).fit(X, y, groups=movies)
    held_out: HeldOut = model.held_out_
    found = Calibration.fit(held_out, mean_score(model, X), n_draws=1)
    scores = model.decision_function(new)
    p, base = found.probability(scores), y.mean()
    of_film = np.bincount(films, p - truth) / np.bincount(films)
    return {
        "AUC by film": within_movie_auc(truth, scores, films),
        "slope above 0": found.slope > 0,
        "log loss": log_loss(truth, p) - log_loss(truth, np.full(len(p), base)),
        "bias": float(p.mean() - base),
        "a film's error": float(np.abs(of_film).mean()),
        "as printed": found.film_error,
    }


def log_loss(y: np.ndarray, p: Floats) -> float:
    """Mean log loss of probabilities [N] for labels [N]."""
    return float(-np.mean(np.log(np.where(y == 1, p, 1 - p))))


def cells(*worlds: tuple[str, World]) -> Sequence[Cell]:
    """Make a cell of each named world."""
    return [Cell((name,), (world,)) for name, world in worlds]


ROWS = [
    Row(
        "calibration", "docs/predict.md", "evaluate --save",
        "How often a calibration has a slope above 0, its log loss on new films less that of the training "
        "films' rate, its mean probability less that rate, and by how much it misses a new film's share, "
        "with what the model's card prints.",
        ("model",),
        cells(
            ("shifted by .35", World((0.35, 0.0))),
            ("by .6", World((0.6, 0.0))),
            ("by 1.2", World((1.2, 0.0))),
            ("by .6, 20 films", World((0.6, 0.0), films=20)),
            ("by .6, films alike", World((0.6, 0.0), spread=0.0)),
            ("by .6, rare", World((0.6, 0.0), share=0.1, films=12)),
        ),
        calibrated,
        {"AUC by film": Column(digits=2), "slope above 0": Column(0.5, digits=2),
         "log loss": Column(high=0.003, signed=True), "bias": Column(-0.01, 0.01, signed=True),
         "a film's error": Column(), "as printed": Column()},
        full=40, small=3,
    ),
]  # fmt: skip
