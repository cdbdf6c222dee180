"""Score clips by any fitted estimator: one finite number a clip, higher for the positive class."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_models.models.choices import sample_evenly

MIN_PROBABILITY = 1e-12
"""Probabilities are limited to at least this, and at most 1 less this: the logits of 0 and 1 are infinite."""


def refuse_without_scores(estimator: Any) -> None:
    """Raise if an estimator has no method that scores clips.

    Raises
    ------
    ValueError
        It has neither ``decision_function`` nor ``predict_proba``.
    """
    if not (hasattr(estimator, "decision_function") or hasattr(estimator, "predict_proba")):
        raise ValueError(
            f"{type(estimator).__name__} gives no scores: a model needs decision_function or predict_proba"
        )


def scores_of(estimator: Any, X: NDArray[Any], **params: Any) -> NDArray[np.float64]:
    """Score clips [N] by a fitted estimator: its decision function, or the logit of its probability.

    Parameters
    ----------
    estimator : estimator
    X : ndarray, shape [N, ...]
        Features of the clips.
    **params
        Further arguments of the estimator's scoring method.

    Raises
    ------
    ValueError
        The scores are not one finite number a clip.
    """
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X, **params), dtype=np.float64)
    else:
        probabilities = np.asarray(estimator.predict_proba(X, **params), dtype=np.float64)  # [N, 2]
        # Clipped, as the logit of 0 or 1 is infinite.
        positive = np.clip(probabilities[:, 1], MIN_PROBABILITY, 1 - MIN_PROBABILITY)
        scores = np.log(positive / (1 - positive))

    has_one_score_per_clip = scores.shape == (len(X),)
    all_finite = bool(np.isfinite(scores).all())
    if not has_one_score_per_clip or not all_finite:
        problem = "" if all_finite else " with values that are not finite"
        raise ValueError(
            f"{type(estimator).__name__} must give one finite score a clip: "
            f"expected shape [{len(X)}], found {list(scores.shape)}{problem}"
        )
    return scores


def mean_score(estimator: Any, X: Any) -> float:
    """Compute an estimator's mean score over its training clips X, or over a sample if there are many.

    This mean is subtracted from scores where those of models of different folds are compared. The model's
    intercept would not serve: estimators define it in different ways, or not at all.
    """
    return float(scores_of(estimator, sample_evenly(X)).mean())
