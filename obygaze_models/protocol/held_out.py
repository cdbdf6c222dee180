"""Learn from held-out scores: weights of several, a threshold.

The model of each fold has an intercept, about the share of positives in the movies that it was trained on.
This share is low where the movies held out have many positives, so that over folds the intercept falls with
the label; of a model that knows little it is most of what varies, and a slope that is learnt from pooled
scores turns the model round. Slopes are therefore learnt within the movies of a fold, and are never below 0.
Where scores of several movies are compared, each is taken less the mean that its model gives to training
clips, which is known for a new movie too.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata

from obygaze_models.protocol.selection import best_threshold

Floats = NDArray[np.float64]


class HeldOut:
    """Scores of clips by models that did not see their movie, and what can be learnt from them.

    Parameters
    ----------
    scores : ndarray of float, shape [N] or [N, M]
        By one model, or by M.
    y : ndarray of int, shape [N]
        1 for positive clips, 0 for negative.
    movies : ndarray, shape [N]
    folds : ndarray of int, shape [N], optional
        The fold that held each clip out; by default each movie is one.
    zeros : ndarray of float, shape [N] or [N, M], optional
        The mean score that the model of a clip's fold gives to its training clips; by default the mean of all
        scores, for models without an intercept of their own.

    Examples
    --------
    >>> y, movies = np.array([0, 1, 0, 1]), np.array(["a", "a", "b", "b"])
    >>> held_out = HeldOut(np.array([-2.0, -1.0, 1.0, 2.0]), y, movies)
    >>> held_out.centred().tolist()
    [-0.5, 0.5, -0.5, 0.5]
    """

    def __init__(
        self,
        scores: NDArray[Any],
        y: NDArray[Any],
        movies: NDArray[Any],
        folds: NDArray[np.int64] | None = None,
        zeros: NDArray[Any] | None = None,
    ) -> None:
        self.scores: Floats = np.asarray(scores, np.float64)
        self.y: NDArray[np.int64] = np.asarray(y, np.int64)
        self.movies = movies
        self.folds: NDArray[np.int64] = np.unique(movies, return_inverse=True)[1] if folds is None else folds
        mean = self.scores.mean(axis=0) if zeros is None else np.asarray(zeros, np.float64)
        self.zeros: Floats = np.broadcast_to(mean, self.scores.shape)

    @classmethod
    def beside(cls, several: Sequence[Self]) -> Self:
        """Put scores of the same clips by several models side by side."""
        first = several[0]
        scores = np.stack([held_out.scores for held_out in several], axis=1)
        zeros = np.stack([held_out.zeros for held_out in several], axis=1)
        return cls(scores, first.y, first.movies, first.folds, zeros)

    @property
    def levels(self) -> Floats:
        """Scores less the mean of their fold's model on training clips, [N] or [N, M]."""
        return np.asarray(self.scores - self.zeros)

    def cells(self) -> NDArray[np.intp]:
        """Return the cell of each clip [N], numbered from 0: clips of one movie that one model scored."""
        movie = np.unique(self.movies, return_inverse=True)[1]
        return np.unique(movie * (1 + self.folds.max()) + self.folds, return_inverse=True)[1]

    def centred(self) -> Floats:
        """Subtract from scores the mean of the movie in its fold, [N] or [N, M]."""
        cell = self.cells()
        wide = self.scores.reshape(len(self.y), -1)
        sums = np.stack([np.bincount(cell, column) for column in wide.T], axis=1)
        means = sums / np.bincount(cell)[:, None]
        return np.asarray((wide - means[cell]).reshape(self.scores.shape))

    def standardised(self) -> tuple[Floats, Floats]:
        """Divide centred scores [N, M] by their deviations [M]: infinite ones where they are all equal."""
        z = self.centred().reshape(len(self.y), -1)
        scores = self.scores.reshape(len(self.y), -1)
        spread = np.sqrt(np.mean(z * z, axis=0))
        spread[spread <= 1e-12 * np.abs(scores).max(axis=0)] = np.inf
        return z / spread, spread

    def ordered_pairs(self) -> float:
        """Compute the share of pairs that scores [N] order rightly, a tie counting half; .5 without any.

        A pair is a positive and a negative clip of one movie that one model scored. Every pair counts alike.
        """
        right, n_pairs = 0.0, 0
        order = np.argsort(self.cells(), kind="stable")
        starts = np.flatnonzero(np.diff(self.cells()[order])) + 1
        for rows in np.split(order, starts):
            positive = self.y[rows] == 1
            n_positive, n_negative = int(positive.sum()), int((~positive).sum())
            if n_positive and n_negative:
                ranks = rankdata(self.scores[rows])
                right += ranks[positive].sum() - n_positive * (n_positive + 1) / 2
                n_pairs += n_positive * n_negative
        return float(right / n_pairs) if n_pairs else 0.5

    def threshold(self) -> float:
        """Find the score [N] from which on to call clips positive, by `best_threshold`.

        Scores stay as they are: taken less the means of folds they give no better f1_pos on new movies
        (`benchmarks/planted`).
        """
        return best_threshold(self.y, self.scores)

    def weights(self) -> tuple[Floats, float]:
        """Fit logistic regression of the label on scores [N, M], its weights not below 0.

        Scores are centred within movies and have their deviation there as unit; the penalty is half the sum
        of the squared weights.

        Returns
        -------
        weights : ndarray, shape [M]
            Of `levels`. Where no score rises with the label within movies: 1 for the one whose correlation
            with it is largest, and 0 for the others.
        intercept : float
            With which the mean probability is the share of positives.
        """
        z, spread = self.standardised()
        y = self.y.astype(np.float64)
        every = np.ones(len(self.y))
        weights = logistic(z, y, every, penalty=1.0)[:-1] / spread
        if not weights.any():
            weights = (np.arange(z.shape[1]) == np.argmax(z.T @ y)).astype(np.float64)
        levels = self.levels @ weights
        return weights, float(find_intercepts(np.ones(1), levels, every[None], np.array([y.mean()]))[0])


def logistic(
    z: Floats,
    targets: NDArray[Any],
    times: Floats,
    *,
    offsets: Floats | float = 0.0,
    penalty: float = 0.0,
    least: float | None = 0.0,
) -> Floats:
    """Fit logistic regression of targets [N] on scores [N, M], beside offsets [N] of the logits.

    Clips count `times` [N]; no weight is below `least`. Returns weights and intercept [M + 1].
    """
    n = z.shape[1]

    def loss_and_gradient(parameters: Floats) -> tuple[float, Floats]:
        weights = parameters[:n]
        intercept = parameters[n]
        logits = offsets + z @ weights + intercept
        log_losses = np.logaddexp(0, logits) - targets * logits
        value = times @ log_losses + penalty * weights @ weights / 2
        error = times * (expit(logits) - targets)
        return float(value), np.append(z.T @ error + penalty * weights, error.sum())

    bounds: list[tuple[float | None, None]] = [(least, None)] * n
    bounds.append((None, None))  # of the intercept
    fit = minimize(
        loss_and_gradient,
        np.zeros(n + 1),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"ftol": 1e-15, "gtol": 1e-10},
    )
    return np.asarray(fit.x)


def find_intercepts(slopes: Floats, levels: Floats, times: Floats, shares: Floats) -> Floats:
    """Find the intercepts [B] with which mean probabilities are `shares` [B], by bisection.

    Parameters
    ----------
    slopes : ndarray, shape [B]
    levels : ndarray, shape [N]
    times : ndarray, shape [B, N] or [1, N]
        How often each clip counts.
    shares : ndarray, shape [B]
        Above 0 and below 1.
    """
    logits = slopes[:, None] * levels
    n = times.sum(axis=1)
    middle = np.log(shares / (1 - shares))
    low = middle - logits.max(axis=1)
    high = middle - logits.min(axis=1)
    for _ in range(60):
        middle = (low + high) / 2
        above = np.sum(times * expit(logits + middle[:, None]), axis=1) / n > shares
        low = np.where(above, low, middle)
        high = np.where(above, middle, high)
    return np.asarray((low + high) / 2)
