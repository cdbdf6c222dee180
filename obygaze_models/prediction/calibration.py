"""Calibrate scores to probabilities: a sigmoid on held-out scores, with a band over movies."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from scipy.stats import t

from obygaze_models.protocol.held_out import HeldOut

N_DRAWS = 200
CALIBRATION_BAND = (0.10, 0.90)
"""Quantiles of the refitted probabilities that bound the 80 % band."""

BRACKET = 0.80
"""How often the bracket around a new film's expected share shall hold the true one."""


@dataclass(frozen=True, eq=False, slots=True)
class Calibration:
    """A sigmoid from scores to probabilities: p = 1 / (1 + exp(-(slope * score + intercept))).

    Attributes
    ----------
    slope, intercept : float
        A slope of 0 says that scores do not tell the clips of a film apart: every clip has the share of the
        training films.
    error : float
        Expected calibration error on films left out: each film's clips by a sigmoid of the other films.
    draws : ndarray, shape [B, 2]
        Slope and intercept refitted on films drawn with replacement.
    film_error, worst_film_error : float or None
        Mean and largest distance, over films left out, between the share of positive clips that is expected
        (their mean probability by a sigmoid of the other films) and the true one; None in older files.
    film_margin : float or None
        Half the width of the 80 % bracket around a new film's expected share; None in older files.
    """

    slope: float
    intercept: float
    error: float
    draws: NDArray[np.float64]
    film_error: float | None = None
    worst_film_error: float | None = None
    film_margin: float | None = None

    @classmethod
    def fit(
        cls, held_out: HeldOut, zero: float | None = None, *, n_draws: int = N_DRAWS, seed: int = 0
    ) -> Self:
        """Fit the sigmoid on held-out scores (`HeldOut.sigmoids`), and refit it on resampled films.

        Parameters
        ----------
        held_out : HeldOut
            Of one model; both labels occur.
        zero : float, optional
            The mean score of training clips by the model that is calibrated, trained on all films; by default
            that of the held-out scores.
        n_draws : int
            B. Films, not clips, are drawn: clips of a film are alike.
        seed : int
            Of the draws.
        """
        labels = held_out.y.astype(np.float64)
        names, movie_of = np.unique(held_out.movies, return_inverse=True)
        # The clips of all films but one [M, N]; all clips if the others have one class only.
        left_out = (np.arange(names.size)[:, None] != movie_of).astype(np.float64)
        positives = left_out @ labels
        left_out[(positives == 0) | (positives == left_out.sum(axis=1))] = 1.0
        draws = _draw(labels, movie_of, names.size, n_draws, seed)
        sigmoids = held_out.sigmoids(np.vstack([np.ones(len(labels)), left_out, draws]))
        own = sigmoids[1 : 1 + names.size][movie_of]
        p = expit(own[:, 0] * held_out.levels + own[:, 1])
        errors = np.bincount(movie_of, p - labels) / np.bincount(movie_of)
        sigmoids[:, 1] -= sigmoids[:, 0] * (held_out.zeros.mean() if zero is None else zero)
        return cls(
            slope=float(sigmoids[0, 0]),
            intercept=float(sigmoids[0, 1]),
            error=calibration_error(labels, p),
            draws=sigmoids[1 + names.size :],
            film_error=float(np.abs(errors).mean()),
            worst_film_error=float(np.abs(errors).max()),
            film_margin=margin(errors),
        )

    def to_json(self) -> dict[str, float]:
        """Return all known values except the draws."""
        known = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "draws"}
        return {name: value for name, value in known.items() if value is not None}

    def probability(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Compute the probability [N] of each score [N]."""
        return expit(self.slope * np.asarray(scores, dtype=np.float64) + self.intercept)

    def band(self, scores: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute the ends [N] of the 80 % band around each score's probability.

        The band shows the uncertainty of the sigmoid from the choice of training films; scores stay as they
        are. It always contains the probability itself.
        """
        values = np.asarray(scores, dtype=np.float64)
        logits = values[:, None] * self.draws[:, 0] + self.draws[:, 1]
        low, high = np.quantile(expit(logits), CALIBRATION_BAND, axis=1) if len(values) else (values, values)
        p = self.probability(values)
        return np.minimum(low, p), np.maximum(high, p)

    def expected_share(self, scores: ArrayLike, seconds: ArrayLike) -> tuple[float, float, float]:
        """Compute the share of time expected to be positive, and the ends of its 80 % calibration band.

        Parameters
        ----------
        scores, seconds : array-like, shape [N]
            Score and length of each part of a film; N is above 0.
        """
        logits = np.asarray(scores, dtype=np.float64)
        weights = np.asarray(seconds, dtype=np.float64) / np.sum(seconds)
        value = float(weights @ self.probability(logits))
        drawn = expit(logits[:, None] * self.draws[:, 0] + self.draws[:, 1]).T @ weights
        low, high = np.quantile(drawn, CALIBRATION_BAND)
        return value, min(float(low), value), max(float(high), value)

    def bracket(self, share: float) -> tuple[float | None, float | None]:
        """Compute the ends of the 80 % bracket of a new film's true share; None without a margin.

        The bracket shows how far films differ, the band how little is known of the sigmoid.
        """
        if self.film_margin is None:
            return None, None
        return max(share - self.film_margin, 0.0), min(share + self.film_margin, 1.0)


def margin(errors: NDArray[np.float64]) -> float:
    """Compute half the width of a bracket from the errors of M films left out.

    A prediction interval: Student's t with M degrees of freedom, times the root mean square of the errors,
    times sqrt(1 + 1 / M), as the sigmoid is itself fitted on M films. It is on the scale of shares: on the
    logit scale it would miss the films without any positive second (benchmarks/planted/rates.py).
    """
    scale = np.sqrt(np.mean(errors**2) * (1 + 1 / len(errors)))
    return float(t.ppf((1 + BRACKET) / 2, len(errors)) * scale)


def _draw(
    y: NDArray[np.float64], movie_of: NDArray[np.intp], n_movies: int, n_draws: int, seed: int
) -> NDArray[np.float64]:
    """Draw films with replacement; return counts by clip [B, N]. One-class draws are repeated."""
    rng = np.random.default_rng(seed)
    rows: list[NDArray[np.float64]] = []
    while len(rows) < n_draws:
        times = np.bincount(rng.integers(n_movies, size=n_movies), minlength=n_movies)
        weights = times[movie_of].astype(np.float64)
        if 0 < weights @ y < weights.sum():
            rows.append(weights)
    return np.array(rows)


def calibration_error(y: ArrayLike, p: ArrayLike, n_bins: int = 10) -> float:
    """Compute the expected calibration error over bins of equal numbers of clips.

    Parameters
    ----------
    y : array-like of int, shape [N]
    p : array-like, shape [N]

    Returns
    -------
    float
        Mean, over clips, of the distance between their bin's mean probability and share of positives.
    """
    labels, values = np.asarray(y, dtype=np.float64), np.asarray(p, dtype=np.float64)
    # Clips of one probability have their share each: bins part them, and their order would decide.
    _, alike, sizes = np.unique(values, return_inverse=True, return_counts=True)
    labels = (np.bincount(alike, labels) / sizes)[alike]
    order = np.argsort(values, kind="stable")
    bins = [rows for rows in np.array_split(order, n_bins) if rows.size]
    return float(sum(abs(values[rows].sum() - labels[rows].sum()) for rows in bins) / len(labels))
