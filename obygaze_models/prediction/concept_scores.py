"""Calibrate concept values, and measure how well they find concepts on films left out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_models.concepts.bottleneck import ConceptBottleneck
from obygaze_models.evaluation.intervals import t_interval
from obygaze_models.evaluation.metrics import average_precision, expected_average_precision
from obygaze_models.prediction.calibration import platt


def cross_fitted(
    model: ConceptBottleneck, present: NDArray[np.float64], asked: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return the training clips' concept values from banks that were not trained on their films.

    Parameters
    ----------
    model : ConceptBottleneck
        Fitted with a bank.
    present : ndarray, shape [N, K]
        Presence of each concept in the clips that the bank was learnt on.
    asked : ndarray, shape [N]
        The clips of the task among them.

    Returns
    -------
    values, present : ndarray, shape [M, K]
    kept : ndarray, shape [N]
        Mask of these M clips among the N; all if the bank keeps its cross-fitted distances.
    """
    bank: Any = model.bank_
    if hasattr(bank, "cross_distances_"):
        values = (bank.cross_distances_ - bank.mean_) / bank.scale_
        return values, present, np.ones(len(present), dtype=np.bool_)
    return model.train_values_, present[asked], asked


def fit_sigmoids(values: NDArray[np.float64], present: NDArray[np.float64]) -> NDArray[np.float64]:
    """Calibrate each concept's values [N, K] on its presence [N, K]: slope and intercept [K, 2]."""
    once = np.ones((1, len(values)))
    return np.vstack([platt(value, column, once) for value, column in zip(values.T, present.T, strict=True)])


def concept_metrics(
    model: str,
    concepts: tuple[str, ...],
    values: NDArray[np.float64],
    present: NDArray[np.float64],
    movies: NDArray[np.str_],
) -> list[dict[str, object]]:
    """Measure how well cross-fitted values find concepts: average precision by movie, beside chance.

    Parameters
    ----------
    model : str
    concepts : tuple of str, length K
    values, present : ndarray, shape [N, K]
    movies : ndarray, shape [N]

    Returns
    -------
    list of dict
        A row for each concept, with the columns of the run's metrics that it has: mean over the movies that
        have the concept, its chance level, and the 95 % t interval of their difference, moved to the chance
        level: `movie_low` above `movie_chance` says that the concept is found better than by chance.
    """
    rows: list[dict[str, object]] = []
    for place, concept in enumerate(concepts):
        found, chances = [], []
        for movie in np.unique(movies):
            own = movies == movie
            y = present[own, place]
            if 0 < y.sum() < len(y):
                found.append(average_precision(y.astype(np.int64), values[own, place]))
                chances.append(expected_average_precision(len(y), int(y.sum())))
        gain = t_interval(np.array(found) - np.array(chances))
        chance = float(np.mean(chances)) if chances else np.nan
        rows.append(
            {
                "model": model,
                "task": f"concept:{concept}",
                "metric": "average_precision",
                "movie_mean": _finite(chance + gain.mean),
                "movie_low": _finite(max(chance + gain.low, 0.0)),
                "movie_high": _finite(min(chance + gain.high, 1.0)),
                "movie_chance": _finite(chance),
                "n_movies": len(found),
            }
        )
    return rows


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
