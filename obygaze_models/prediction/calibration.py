"""Calibrate scores to probabilities: a posterior of sigmoids from held-out scores.

The slope comes from how scores rise with the label within films (`obygaze_models.protocol.slope`), the
intercept from the share of positive clips, which differs between films. A probability is the mean over the
posterior's draws, its band their quantiles: with little evidence of skill draws are flat, and every clip has
about the share of the training films.
"""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from scipy.stats import beta, norm, t

from obygaze_features.arguments import checked
from obygaze_models.protocol.held_out import HeldOut, find_intercepts
from obygaze_models.protocol.slope import SlopeLikelihood, SlopePosterior

Floats = NDArray[np.float64]

N_DRAWS = 200
N_LEFT_OUT = 5
"""Draws of the calibration without each film, by which its errors are measured."""

CALIBRATION_BAND = (0.10, 0.90)
"""Quantiles of the drawn probabilities that bound the 80 % band."""

BRACKET = 0.80
"""How often the bracket around a new film's expected share shall hold the true one."""


@dataclass(frozen=True, eq=False, slots=True)
class Calibration:
    """Sigmoids from scores to probabilities, 1 / (1 + exp(-(slope * score + intercept))), and their errors.

    Attributes
    ----------
    draws : ndarray, shape [B, 2]
        Slope, at least 0, and intercept of each draw of the posterior.
    p_skilled : float
        Posterior probability that scores rise with the label within films.
    error : float
        Expected calibration error on films left out: each film's clips by a posterior of the other films.
    film_error, worst_film_error : float
        Mean and largest distance, over films left out, between the share of positive clips that is expected
        (their mean probability by a posterior of the other films) and the true one.
    film_margin : float
        Half the width of the 80 % bracket around a new film's expected share.
    """

    draws: Floats
    p_skilled: float
    error: float
    film_error: float
    worst_film_error: float
    film_margin: float

    @classmethod
    def fit(
        cls, held_out: HeldOut, zero: float | None = None, *, n_draws: int = N_DRAWS, seed: int = 0
    ) -> Self:
        """Draw sigmoids of held-out scores from their posterior, with all films and without each.

        Parameters
        ----------
        held_out : HeldOut
            Of one model; both labels occur.
        zero : float, optional
            The mean score of training clips by the model that is calibrated, trained on all films; by default
            that of the held-out scores.
        n_draws : int
            B.
        seed : int
            Of the order in which draws of slopes meet draws of shares.
        """
        labels = held_out.y.astype(np.float64)
        likelihood = SlopeLikelihood.of_scores(held_out)
        p = left_out_probabilities(held_out, likelihood)
        movie_of = np.unique(held_out.movies, return_inverse=True)[1]
        errors = np.bincount(movie_of, p - labels) / np.bincount(movie_of)
        posterior = likelihood.posterior()
        return cls(
            draws=draw_sigmoids(held_out, posterior, zero, n_draws=n_draws, seed=seed),
            p_skilled=posterior.p_skilled,
            error=calibration_error(labels, p),
            film_error=float(np.abs(errors).mean()),
            worst_film_error=float(np.abs(errors).max()),
            film_margin=margin(errors),
        )

    def to_json(self) -> dict[str, float]:
        """Return all values except the draws."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "draws"}

    def probability(self, scores: ArrayLike) -> Floats:
        """Compute the probability [N] of each score [N]: the mean over the draws."""
        return mean_probability(self.draws, np.asarray(scores, dtype=np.float64))

    def band(self, scores: ArrayLike) -> tuple[Floats, Floats]:
        """Compute the ends [N] of the 80 % band around each score's probability.

        The band shows what the training films leave open of slope and intercept; scores stay as they are. It
        always contains the probability itself.
        """
        values = np.asarray(scores, dtype=np.float64)
        p = self.probability(values)
        if not len(values):
            return p, p
        logits = values[:, None] * self.draws[:, 0] + self.draws[:, 1]
        low, high = np.quantile(expit(logits), CALIBRATION_BAND, axis=1)
        return np.minimum(low, p), np.maximum(high, p)

    def expected_share(self, scores: ArrayLike, seconds: ArrayLike) -> tuple[float, float, float]:
        """Compute the share of time expected to be positive, and the ends of its 80 % calibration band.

        Parameters
        ----------
        scores, seconds : array-like, shape [N]
            Score and length of each part of a film; N is above 0.
        """
        return mean_and_band(self.draws, np.asarray(scores, np.float64), np.asarray(seconds, np.float64))

    def bracket(self, share: float) -> tuple[float, float]:
        """Compute the ends of the 80 % bracket of a new film's true share.

        The bracket shows how far films differ, the band how little is known of the sigmoid.
        """
        return max(share - self.film_margin, 0.0), min(share + self.film_margin, 1.0)


@checked
def mean_probability(draws: Floats, scores: Floats) -> Floats:
    """Average the probabilities of scores [N] over draws of slope and intercept [B, 2].

    Examples
    --------
    >>> mean_probability(np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([0.0, 50.0])).tolist()
    [0.5, 0.75]
    """
    total = np.zeros(len(scores))
    for slope, intercept in draws.tolist():
        total += expit(slope * scores + intercept)
    return np.asarray(total / len(draws))


@checked
def mean_and_band(draws: Floats, scores: Floats, weights: Floats) -> tuple[float, float, float]:
    """Average the probabilities of scores [N] by weights [N]: the mean, and the ends of its 80 % band.

    The band is that of the mean over draws of slope and intercept [B, 2], which is no mean of bands: draws
    that raise one score may lower another.

    Examples
    --------
    >>> draws = np.array([[1.0, 0.0], [3.0, 0.0]])
    >>> mean, low, high = mean_and_band(draws, np.array([-1.0, 1.0]), np.array([1.0, 1.0]))
    >>> round(mean, 3), round(low, 3), round(high, 3)
    (0.5, 0.5, 0.5)
    """
    drawn = expit(scores[:, None] * draws[:, 0] + draws[:, 1]).T @ (weights / weights.sum())
    value = float(drawn.mean())
    low, high = np.quantile(drawn, CALIBRATION_BAND)
    return value, min(float(low), value), max(float(high), value)


def draw_sigmoids(
    held_out: HeldOut, posterior: SlopePosterior, zero: float | None, *, n_draws: int, seed: int
) -> Floats:
    """Draw slope and intercept [B, 2] from their posterior.

    Slopes and shares are quantiles at evenly spaced levels, so that a mean over draws has hardly any error of
    chance. The intercept is the one with which the mean probability of the held-out clips is the share drawn.
    """
    levels = (np.arange(n_draws) + 0.5) / n_draws
    slopes = posterior.quantiles(levels)
    shares = share_quantiles(held_out, np.random.default_rng(seed).permutation(levels))
    intercepts = find_intercepts(slopes, held_out.levels, np.ones((1, len(held_out.y))), shares)
    zero = float(held_out.zeros.mean()) if zero is None else zero
    return np.column_stack([slopes, intercepts - slopes * zero])


def share_quantiles(held_out: HeldOut, levels: Floats) -> Floats:
    """Compute quantiles [B] of the share of positive clips in films like these.

    The posterior is Jeffreys' beta of as many independent clips as have the variance that the share has: the
    jackknife's over films, widened to Student's t of as many films at the ends of the band, and at least that
    of as many independent clips.
    """
    labels = held_out.y.astype(np.float64)
    n, share = len(labels), float(labels.mean())
    movie_of = np.unique(held_out.movies, return_inverse=True)[1]
    sizes, positives = np.bincount(movie_of), np.bincount(movie_of, labels)
    n_films = len(sizes)
    n_independent = float(n)
    if n_films > 1:
        without = (labels.sum() - positives) / (n - sizes)
        wider = t.ppf(CALIBRATION_BAND[1], n_films - 1) / norm.ppf(CALIBRATION_BAND[1])
        variance = (n_films - 1) / n_films * np.sum((without - without.mean()) ** 2) * wider**2
        n_independent = min(n, share * (1 - share) / max(float(variance), 1e-12))
    n_independent = max(n_independent, 1.0)
    quantiles = beta.ppf(levels, n_independent * share + 0.5, n_independent * (1 - share) + 0.5)
    return np.clip(quantiles, 1e-6, 1 - 1e-6)


def left_out_probabilities(held_out: HeldOut, likelihood: SlopeLikelihood) -> Floats:
    """Compute the probability [N] of each clip by a posterior of the other films.

    Where the other films have clips of one label alone, all films' share is taken.
    """
    levels = (np.arange(N_LEFT_OUT) + 0.5) / N_LEFT_OUT
    p = np.empty(len(held_out.y))
    for movie in np.unique(held_out.movies):
        own = held_out.movies == movie
        others = ~own
        if not np.ptp(held_out.y[others]):
            others = np.ones(len(own), dtype=np.bool_)
        slopes = likelihood.posterior(without=movie).quantiles(levels)
        share = (held_out.y[others].sum() + 0.5) / (others.sum() + 1)
        times = others[None].astype(np.float64)
        intercepts = find_intercepts(slopes, held_out.levels, times, np.full(N_LEFT_OUT, share))
        p[own] = mean_probability(np.column_stack([slopes, intercepts]), held_out.levels[own])
    return p


def margin(errors: Floats) -> float:
    """Compute half the width of a bracket from the errors of M films left out.

    A prediction interval: Student's t with M degrees of freedom, times the root mean square of the errors,
    times sqrt(1 + 1 / M), as the sigmoid is itself fitted on M films. It is on the scale of shares: on the
    logit scale it would miss the films without any positive second (benchmarks/planted/rates.py).
    """
    scale = np.sqrt(np.mean(errors**2) * (1 + 1 / len(errors)))
    return float(t.ppf((1 + BRACKET) / 2, len(errors)) * scale)


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
