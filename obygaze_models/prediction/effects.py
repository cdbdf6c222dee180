"""How much of a clip's probability is due to each concept: what makes a concept a reason, at every door."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_models.concepts.bottleneck import ConceptBottleneck
from obygaze_models.prediction.saved_model import Model


def has_usual_values(bottleneck: ConceptBottleneck) -> bool:
    """Tell whether a concept bottleneck has a value of each concept at which the concept contributes 0.

    One with a linear head has: its effects follow from its contributions. A tree has none, and a contribution
    along a clip's path may have another sign than the effect.
    """
    return hasattr(bottleneck.head_, "coef_")


def probability_changes(model: Model, X: NDArray[Any]) -> NDArray[np.float64] | None:
    """Compute how much of the probability of clips X [N, D] is due to each concept.

    It is what the model does when a concept is moved: the probability minus that with the concept at its
    usual value, or, of a tree, minus the mean over the values that training clips have.

    Parameters
    ----------
    model : Model
        A concept bottleneck.
    X : ndarray, shape [N, D]

    Returns
    -------
    ndarray of float64, shape [N, K], or None
        None without a calibration, as the model then gives no probability.
    """
    calibration = model.calibration
    if calibration is None:
        return None
    p = calibration.probability(model.logits(X))
    changes = np.empty((len(X), len(model.concepts)))
    for index, concept in enumerate(model.concepts):
        logits_at_usual = model.estimator.logits_at_usual(X, concept)  # [N, values]
        # A tree has few leaves, and thus few logits: each is converted to a probability once.
        distinct_logits, place_of_logit = np.unique(logits_at_usual, return_inverse=True)
        p_of_distinct = calibration.probability(distinct_logits)
        p_at_usual = p_of_distinct[place_of_logit].reshape(logits_at_usual.shape)
        changes[:, index] = p - p_at_usual.mean(axis=1)
    return changes
