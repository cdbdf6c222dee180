"""Two-level bootstrap intervals of pooled metrics: movies are drawn anew, and clips within each drawn movie.

Drawing clips alone would take a movie's clips for independent witnesses and give intervals that are too
narrow (Davison and Hinkley 1997, section 3.8, on both levels). A draw is kept as the number of times each
clip is in it, so that all draws of a metric are computed at once.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from obygaze_models.evaluation.metrics import Labels, Scores

Draws = NDArray[np.float64]
"""How often each clip is in each draw [R, N]: whole numbers."""

N_DRAWS = 1000
BLOCK = 250
"""Draws computed at a time, so that memory stays small."""


def draw_clips(movies: Labels, n_draws: int, rng: np.random.Generator) -> Draws:
    """Draw as many movies as there are, with replacement, and in each as many of its clips, with replacement.

    Parameters
    ----------
    movies : ndarray, shape [N]
        The movie of each clip.

    Returns
    -------
    ndarray, shape [R, N]
    """
    names, movie_of = np.unique(movies, return_inverse=True)
    times = rng.multinomial(names.size, np.full(names.size, 1 / names.size), size=n_draws)
    draws: Draws = np.empty((n_draws, len(movie_of)))
    for movie in range(names.size):
        clips = np.flatnonzero(movie_of == movie)
        # A movie drawn twice has its clips drawn twice, which is one draw of twice as many.
        draws[:, clips] = rng.multinomial(times[:, movie] * clips.size, np.full(clips.size, 1 / clips.size))
    return draws


def bootstrap_interval(
    metric: Callable[[Draws], NDArray[np.float64]], draws: Draws, level: float = 0.95
) -> tuple[float, float]:
    """Give the percentile interval of a metric over draws [R, N].

    The draws that don't define it are left out; where they are more than 1 - `level` of all, both ends are
    NaN.
    """
    values = np.concatenate([metric(draws[start : start + BLOCK]) for start in range(0, len(draws), BLOCK)])
    defined = values[~np.isnan(values)]
    if not len(defined) or len(defined) < level * len(values):
        return float("nan"), float("nan")
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


DrawnMetric = Callable[[NDArray[np.bool_], Scores, NDArray[np.bool_], Draws], NDArray[np.float64]]
"""Labels, scores and calls [N] and draws [R, N] -> the metric of each draw [R], NaN where undefined."""


def _over(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide; NaN where the denominator is 0."""
    nothing = np.full(np.broadcast(numerator, denominator).shape, np.nan)
    np.divide(numerator, denominator, out=nothing, where=denominator > 0)
    return nothing


def _counts(
    y: NDArray[np.bool_], called: NDArray[np.bool_], draws: Draws
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Count hits, positives, calls and clips of each draw."""
    columns = draws @ np.stack([y & called, y, called, np.ones_like(y)], axis=1).astype(np.float64)
    return columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3]


def _f1(
    hits: NDArray[np.float64], positives: NDArray[np.float64], calls: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute the F1 of one class; NaN in draws without it."""
    return np.where(positives > 0, _over(2 * hits, positives + calls), np.nan)


def _f1_pos(y: NDArray[np.bool_], _: Scores, called: NDArray[np.bool_], draws: Draws) -> NDArray[np.float64]:
    hits, positives, calls, _n = _counts(y, called, draws)
    return _f1(hits, positives, calls)


def _both_f1(
    y: NDArray[np.bool_], called: NDArray[np.bool_], draws: Draws
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Compute the F1 of the positive and of the negative class, and the share of positives."""
    hits, positives, calls, n = _counts(y, called, draws)
    rejected = n - positives - (calls - hits)
    return _f1(hits, positives, calls), _f1(rejected, n - positives, n - calls), positives / n


def _f1_weighted(
    y: NDArray[np.bool_], _: Scores, called: NDArray[np.bool_], draws: Draws
) -> NDArray[np.float64]:
    one, other, share = _both_f1(y, called, draws)
    return share * one + (1 - share) * other


def _f1_macro(
    y: NDArray[np.bool_], _: Scores, called: NDArray[np.bool_], draws: Draws
) -> NDArray[np.float64]:
    one, other, _share = _both_f1(y, called, draws)
    return (one + other) / 2


def _balanced_accuracy(
    y: NDArray[np.bool_], _: Scores, called: NDArray[np.bool_], draws: Draws
) -> NDArray[np.float64]:
    hits, positives, calls, n = _counts(y, called, draws)
    rejected = n - positives - (calls - hits)
    return (_over(hits, positives) + _over(rejected, n - positives)) / 2


def _ranked(
    y: NDArray[np.bool_], scores: Scores, draws: Draws
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count positives and negatives of each draw at each distinct score [R, U], highest score first."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    first_of_tie = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    sorted_draws, sorted_y = draws[:, order], y[order]
    positives, negatives = sorted_draws * sorted_y, sorted_draws * ~sorted_y
    if len(first_of_tie) == len(ranked):
        return positives, negatives
    return (
        np.add.reduceat(positives, first_of_tie, axis=1),
        np.add.reduceat(negatives, first_of_tie, axis=1),
    )


def _auc(y: NDArray[np.bool_], scores: Scores, _: NDArray[np.bool_], draws: Draws) -> NDArray[np.float64]:
    positives, negatives = _ranked(y, scores, draws)
    outscored = negatives.sum(axis=1, keepdims=True) - np.cumsum(negatives, axis=1) + negatives / 2
    return _over((positives * outscored).sum(axis=1), positives.sum(axis=1) * negatives.sum(axis=1))


def _average_precision(
    y: NDArray[np.bool_], scores: Scores, _: NDArray[np.bool_], draws: Draws
) -> NDArray[np.float64]:
    positives, negatives = _ranked(y, scores, draws)
    found = np.cumsum(positives, axis=1)
    precision = found / np.maximum(found + np.cumsum(negatives, axis=1), 1)
    return _over((positives * precision).sum(axis=1), positives.sum(axis=1))


DRAWN_METRICS: dict[str, DrawnMetric] = {
    "average_precision": _average_precision,
    "f1_pos": _f1_pos,
    "f1_weighted": _f1_weighted,
    "f1_macro": _f1_macro,
    "balanced_accuracy": _balanced_accuracy,
    "auc": _auc,
}
"""The metrics of `obygaze_models.evaluation.metrics`, of many draws at once."""


def within_movie_auc(
    y: NDArray[np.bool_], scores: Scores, movies: Labels, draws: Draws
) -> NDArray[np.float64]:
    """Average each draw's AUC over its movies, a movie drawn twice counting twice [R]."""
    total, times = np.zeros((2, len(draws)))
    for movie in np.unique(movies):
        clips = np.flatnonzero(movies == movie)
        values = _auc(y[clips], scores[clips], y[clips], draws[:, clips])
        drawn = np.where(np.isnan(values), 0.0, draws[:, clips].sum(axis=1) / clips.size)
        total += drawn * np.nan_to_num(values)
        times += drawn
    return _over(total, times)
