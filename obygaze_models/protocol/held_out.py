"""Learn from held-out scores: a threshold, and weights of several models.

The model of each fold has an intercept, about the share of positives in the movies that it was trained on.
This share is low where the movies held out have many positives, so that over folds the intercept falls as the
label rises. In a model that knows little, the intercept is most of what varies, and a slope that is learnt
from pooled scores turns the model round. Slopes are therefore learnt within the movies of a fold, and are
never below 0. Where scores of several movies are compared, the mean score that the model gives to its
training clips is subtracted, which is known for a new movie too.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from obygaze_models.protocol.selection import best_threshold

Floats = NDArray[np.float64]

ROUNDING_OF_SCORES = 1e-12
"""Scores whose deviation is at most this share of the largest score are all equal but for rounding."""


class HeldOut:
    """Scores of clips by models that did not see their movie, and what can be learnt from them.

    Parameters
    ----------
    scores : ndarray of float, shape [N] or [N, M]
        Scores by one model, or by M models.
    y : ndarray of int, shape [N]
        1 for positive clips, 0 for negative.
    movies : ndarray, shape [N]
    folds : ndarray of int, shape [N], optional
        The fold that held each clip out; by default each movie is a fold.
    training_means : ndarray of float, shape [N] or [N, M], optional
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
        training_means: NDArray[Any] | None = None,
    ) -> None:
        """Convert scores and labels to arrays, and fill in the defaults of folds and training means."""
        self.scores: Floats = np.asarray(scores, np.float64)
        self.y: NDArray[np.int64] = np.asarray(y, np.int64)
        self.movies = movies
        if folds is None:
            # Each movie is a fold.
            folds = np.unique(movies, return_inverse=True)[1]
        self.folds: NDArray[np.int64] = folds
        if training_means is None:
            training_means = self.scores.mean(axis=0)
        # The default is one number for each model, which is repeated for all clips.
        self.training_means: Floats = np.broadcast_to(
            np.asarray(training_means, np.float64), self.scores.shape
        )

    @classmethod
    def stacked(cls, several: Sequence[Self]) -> Self:
        """Combine the held-out scores [N] of M models on the same clips into one object, [N, M]."""
        first = several[0]
        scores = np.stack([held_out.scores for held_out in several], axis=1)
        training_means = np.stack([held_out.training_means for held_out in several], axis=1)
        return cls(scores, first.y, first.movies, first.folds, training_means)

    @property
    def relative_scores(self) -> Floats:
        """Scores less the mean score that the same model gives to its training clips, [N] or [N, M]."""
        return np.asarray(self.scores - self.training_means)

    def cells(self) -> NDArray[np.intp]:
        """Group the clips by movie and fold, and return the number of each clip's group, called cell, [N].

        All clips of a cell were scored by the same model. Cells are numbered from 0.
        """
        movie_of_clip = np.unique(self.movies, return_inverse=True)[1]
        # One number for each pair: with 10 folds, movie 2 and fold 3 are 23.
        n_folds = 1 + self.folds.max()
        movie_and_fold = movie_of_clip * n_folds + self.folds
        # Only some pairs occur; these are numbered anew from 0.
        return np.unique(movie_and_fold, return_inverse=True)[1]

    def centred(self) -> Floats:
        """Subtract from each score the mean over its cell, [N] or [N, M].

        A cell has the clips of the same movie and fold. What is left of the scores does not depend on the
        intercept of the fold's model.
        """
        cell_of_clip = self.cells()
        n_clips_of_cells = np.bincount(cell_of_clip)
        scores = self.scores.reshape(len(self.y), -1)  # [N, M], with M = 1 for one model

        sums_of_models = [np.bincount(cell_of_clip, scores_of_model) for scores_of_model in scores.T]
        sums = np.stack(sums_of_models, axis=1)  # [number of cells, M]
        means = sums / n_clips_of_cells[:, None]
        centred = scores - means[cell_of_clip]
        return np.asarray(centred.reshape(self.scores.shape))

    def standardised(self) -> tuple[Floats, Floats]:
        """Standardise scores within cells (same movie and fold): centre them, and divide by their deviation.

        Each model has one deviation, over all clips.

        Returns
        -------
        standardised : ndarray, shape [N, M]
        deviations : ndarray, shape [M]
            Infinite if a model's scores are equal within every cell; its standardised scores are then 0.
        """
        centred = self.centred().reshape(len(self.y), -1)
        scores = self.scores.reshape(len(self.y), -1)
        deviations = np.sqrt(np.mean(centred * centred, axis=0))
        # Rounding gives equal scores a tiny deviation, not 0.
        largest_scores = np.abs(scores).max(axis=0)
        is_constant = deviations <= ROUNDING_OF_SCORES * largest_scores
        deviations[is_constant] = np.inf
        return centred / deviations, deviations

    def share_of_ordered_pairs(self) -> float:
        """Compute the AUC within cells: the share of pairs in which the positive clip scores higher.

        A pair is a positive and a negative clip of the same cell (`cells`); a tie counts half. The share is
        .5 if there are no pairs.
        """
        n_ordered = 0.0
        n_pairs = 0
        for rows in rows_of_groups(self.cells()):
            is_positive = self.y[rows] == 1
            n_positive = int(is_positive.sum())
            n_negative = len(rows) - n_positive
            if n_positive and n_negative:
                n_ordered += _count_ordered_pairs(self.scores[rows], is_positive)
                n_pairs += n_positive * n_negative
        return float(n_ordered / n_pairs) if n_pairs else 0.5

    def threshold(self) -> float:
        """Find the threshold with the highest f1_pos: clips with this score or a higher one are positive.

        Scores are taken as they are, since `relative_scores` give no better f1_pos on new movies
        (`benchmarks/planted`).
        """
        return best_threshold(self.y, self.scores)

    def fit_weights(self) -> tuple[Floats, float]:
        """Fit weights with which the scores of M models are summed to one logit, by logistic regression.

        The regression predicts the label from scores that are standardised within cells, the clips of the
        same movie and fold: what movies differ in would not help with a new one. Weights are at least 0; the
        penalty is half the sum of their squares. The intercept of the regression is not used: it is for
        scores less the mean of their cell, which is unknown for a new film. Another one is found for
        `relative_scores`, which a new film's clips have too.

        Returns
        -------
        weights : ndarray, shape [M]
            Weights of `relative_scores`. If no model's scores rise with the label within movies, the model
            with the largest correlation gets the weight 1, and the others 0.
        intercept : float
            The intercept with which the mean probability equals the share of positive clips.
        """
        standardised, deviations = self.standardised()
        y = self.y.astype(np.float64)
        equal_weights = np.ones(len(y))  # of clips
        weights_and_intercept = logistic(standardised, y, equal_weights, penalty=1.0, lower_bound=0.0)
        # From weights of standardised scores to weights of scores.
        weights = weights_and_intercept[:-1] / deviations

        no_scores_rise_with_label = not weights.any()
        if no_scores_rise_with_label:
            # Standardised scores have the mean 0 and equal deviations: their sums over positive clips order
            # models by their correlation with the label.
            sums_of_positive = standardised.T @ y
            weights = np.zeros(len(sums_of_positive))
            weights[np.argmax(sums_of_positive)] = 1.0

        joint_scores = self.relative_scores @ weights
        return weights, _intercept_of_share(joint_scores, float(y.mean()))


def rows_of_groups(group_of: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the rows of each group, given the group of each row [N], numbered from 0.

    Examples
    --------
    >>> [rows.tolist() for rows in rows_of_groups(np.array([1, 0, 1]))]
    [[1], [0, 2]]
    """
    # The rows sorted by group are split where each group ends.
    order = np.argsort(group_of, kind="stable")
    sizes = np.bincount(group_of)
    ends = np.cumsum(sizes)
    return np.split(order, ends[:-1])


def _count_ordered_pairs(scores: Floats, is_positive: NDArray[np.bool_]) -> float:
    """Count the pairs in which the positive clip scores higher than the negative one; a tie counts half.

    The number is that of Mann and Whitney (1947): the sum of the ranks of the n positive clips, less
    1 + 2 + ... + n. If the positive clips are at the lowest ranks, no pair is ordered; each negative clip
    that a positive one passes raises the sum by 1.
    """
    from scipy.stats import rankdata  # noqa: PLC0415 - slow to import, and not needed to apply a model

    ranks = rankdata(scores)
    n_positive = int(is_positive.sum())
    min_rank_sum = n_positive * (n_positive + 1) / 2
    return float(ranks[is_positive].sum() - min_rank_sum)


def _intercept_of_share(scores: Floats, share: float) -> float:
    """Find the intercept that gives scores [N], taken as logits, a mean probability of `share`."""
    slope = np.ones(1)  # scores are logits already
    equal_weights = np.ones((1, len(scores)))
    (intercept,) = find_intercepts(slope, scores, equal_weights, np.array([share]))
    return float(intercept)


def logistic(
    scores: Floats,
    targets: NDArray[Any],
    clip_weights: Floats,
    *,
    offsets: Floats | float = 0.0,
    penalty: float = 0.0,
    lower_bound: float | None = 0.0,
) -> Floats:
    """Fit logistic regression by maximum likelihood, with an optional L2 penalty and bounds of the weights.

    Parameters
    ----------
    scores : ndarray, shape [N, M]
        The predictors.
    targets : ndarray, shape [N]
        Labels, or probabilities.
    clip_weights : ndarray, shape [N]
        Weight of each clip.
    offsets : ndarray, shape [N], or float
        Added to the logits.
    penalty : float
        Strength of the penalty: ``penalty / 2 * sum(weights ** 2)`` is added to the loss.
    lower_bound : float, optional
        Lower bound of the weights; None for no bound.

    Returns
    -------
    ndarray, shape [M + 1]
        Weights and, last, the intercept.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - slow to import, and films are opened without it

    n_scores = scores.shape[1]

    def loss_and_gradient(parameters: Floats) -> tuple[float, Floats]:
        """Compute the penalised log loss and its gradient, at weights and intercept [M + 1]."""
        weights = parameters[:n_scores]
        intercept = parameters[n_scores]
        logits = offsets + scores @ weights + intercept
        log_losses = np.logaddexp(0, logits) - targets * logits
        loss = clip_weights @ log_losses + penalty * weights @ weights / 2
        by_logit = clip_weights * (expit(logits) - targets)
        by_weights = scores.T @ by_logit + penalty * weights
        by_intercept = by_logit.sum()
        return float(loss), np.append(by_weights, by_intercept)

    bounds: list[tuple[float | None, None]] = [(lower_bound, None)] * n_scores
    bounds.append((None, None))  # of the intercept
    # The search ends only at rounding errors of the loss, or at a gradient of practically 0.
    fit = minimize(
        loss_and_gradient,
        np.zeros(n_scores + 1),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"ftol": 1e-15, "gtol": 1e-10},
    )
    return np.asarray(fit.x)


MAX_NEWTON_STEPS = 100
"""Steps after which the search of an intercept ends; five are usual."""

SMALLEST_NEWTON_STEP = 1e-10
"""The search of an intercept ends after a step that is no larger: what is left to the root is then less than
rounding."""

MAX_PROBABILITIES = 1 << 18
"""Probabilities that the search of intercepts holds at a time."""


def find_intercepts(slopes: Floats, scores: Floats, clip_weights: Floats, shares: Floats) -> Floats:
    """Find, for each of B sigmoids, the intercept that gives clips a wanted mean probability.

    All intercepts are found at once by Newton's method (`_newton_intercepts`). Each has a bracket, between a
    value that is too low and one that is too high; a step that would leave it is replaced by its middle.

    Parameters
    ----------
    slopes : ndarray, shape [B]
        The slope of each sigmoid.
    scores : ndarray, shape [N]
        Scores of the clips; a probability is 1 / (1 + exp(-(slope * score + intercept))).
    clip_weights : ndarray, shape [B, N] or [1, N]
        Weights of the clips in the mean.
    shares : ndarray, shape [B]
        Wanted mean probabilities, above 0 and below 1.

    Returns
    -------
    ndarray, shape [B]
    """
    logit_of_share = np.log(shares / (1 - shares))
    low, high = _bracket_intercepts(slopes, scores, logit_of_share)
    intercepts: Floats = (low + high) / 2
    for _ in range(MAX_NEWTON_STEPS):
        means, derivatives = _mean_probabilities(slopes, intercepts, scores, clip_weights)

        # The mean rises with the intercept, so that the present intercepts narrow their brackets.
        is_too_high = means > shares
        low = np.where(is_too_high, low, intercepts)
        high = np.where(is_too_high, intercepts, high)

        after_step = _newton_intercepts(intercepts, means, derivatives, logit_of_share)
        is_small = np.abs(after_step - intercepts) <= SMALLEST_NEWTON_STEP
        is_in_bracket = (after_step > low) & (after_step < high)
        intercepts = np.where(is_small | is_in_bracket, after_step, (low + high) / 2)
        if is_small.all():
            break
    return intercepts


def _newton_intercepts(
    intercepts: Floats, means: Floats, derivatives: Floats, logit_of_share: Floats
) -> Floats:
    """Take a step of Newton's method towards intercepts with wanted mean probabilities.

    The step solves logit(mean) = logit(share), not mean = share: as a function of the intercept, the logit of
    the mean is nearly a straight line, on which Newton's method takes few steps.

    Parameters
    ----------
    intercepts : ndarray, shape [B]
        Present intercepts.
    means, derivatives : ndarray, shape [B]
        Their mean probabilities, and the derivatives of these by the intercept.
    logit_of_share : ndarray, shape [B]
        Logits of the wanted mean probabilities.

    Returns
    -------
    ndarray, shape [B]
        The next intercepts; not finite where all probabilities are 0 or 1.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.log(means / (1 - means)) - logit_of_share
        derivative_of_logit = derivatives / (means * (1 - means))  # by the chain rule
        return np.asarray(intercepts - excess / derivative_of_logit)


def _bracket_intercepts(slopes: Floats, scores: Floats, logit_of_share: Floats) -> tuple[Floats, Floats]:
    """Compute a lower and an upper bound [B] of the intercepts that `find_intercepts` looks for.

    The search begins between them, where Newton's method alone might leave for infinity. A clip has the logit
    slope * score + intercept, and the wanted mean probability is the sigmoid of `logit_of_share`:

    - At the lower bound, the largest logit of any clip is `logit_of_share`. No clip has a higher probability
      than the wanted mean, so that the mean is at most the wanted one.
    - At the upper bound, the smallest logit is `logit_of_share`. No clip has a lower probability than the
      wanted mean, so that the mean is at least the wanted one.

    Parameters
    ----------
    slopes : ndarray, shape [B]
    scores : ndarray, shape [N]
    logit_of_share : ndarray, shape [B]
        Logits of the wanted mean probabilities.
    """
    lowest_and_highest_score = np.array([scores.min(), scores.max()])
    products = slopes[:, None] * lowest_and_highest_score  # [B, 2]
    # With a negative slope, the highest score has the smallest product.
    smallest_product = products.min(axis=1)
    largest_product = products.max(axis=1)
    # Solved for the intercept: product + intercept = logit_of_share.
    low = logit_of_share - largest_product
    high = logit_of_share - smallest_product
    return low, high


def _mean_probabilities(
    slopes: Floats, intercepts: Floats, scores: Floats, clip_weights: Floats
) -> tuple[Floats, Floats]:
    """Compute the mean probability of clips under each of B sigmoids, and its derivative by the intercept.

    Arguments are those of `find_intercepts`, with the intercepts [B]. A few sigmoids are handled at a time,
    to bound the memory.

    Returns
    -------
    means, derivatives : ndarray, shape [B]
    """
    clip_weights = np.broadcast_to(clip_weights, (len(slopes), len(scores)))
    n_at_once = max(1, MAX_PROBABILITIES // len(scores))
    means = np.empty(len(slopes))
    derivatives = np.empty(len(slopes))
    for first in range(0, len(slopes), n_at_once):
        block = slice(first, first + n_at_once)
        sum_of_weights = clip_weights[block].sum(axis=1)
        logits = slopes[block, None] * scores  # [b, N], without the intercepts
        p = expit(logits + intercepts[block, None])
        means[block] = np.sum(clip_weights[block] * p, axis=1) / sum_of_weights
        # The derivative of a sigmoid p by its intercept is p (1 - p).
        derivatives[block] = np.sum(clip_weights[block] * p * (1 - p), axis=1) / sum_of_weights
    return means, derivatives
