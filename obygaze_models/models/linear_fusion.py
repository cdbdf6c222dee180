"""Keep fused linear probes as numbers, and decompose their scores into what each modality adds.

A model file keeps fused models in this form, which needs no estimator.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from obygaze_models.models.modality_penalties import PenaltyPerModality
from obygaze_models.models.modality_sets import Columns, Pattern, match_models, present_modalities
from obygaze_models.models.scaling import CLIP, standardise


class LinearNumbers(NamedTuple):
    """The numbers of a fitted linear probe.

    Attributes
    ----------
    mean, scale, weights : ndarray, shape [D]
        Mean, deviation and weight of each feature; a weight is that of the standardised feature.
    intercept : float
    """

    mean: NDArray[Any]
    scale: NDArray[Any]
    weights: NDArray[Any]
    intercept: float


def linear_numbers(model: Any) -> LinearNumbers:
    """Return means, deviations, weights and intercept of a fitted linear probe.

    `model` is a `GroupedSelection` of a pipeline of scaler and classifier, or a `PenaltyPerModality`.
    """
    if isinstance(model, PenaltyPerModality):
        # Between scaler and classifier, its pipeline multiplies each feature by a factor (`weigh`). To
        # multiply the weights has the same effect.
        scaler, weighing, classifier = [step for _, step in model.selection_.estimator_.steps]
        weights = classifier.coef_[0] * weighing.kw_args["weights"]
    else:
        scaler, classifier = [step for _, step in model.estimator_.steps]
        weights = classifier.coef_[0]
    intercept = float(classifier.intercept_[0])
    return LinearNumbers(scaler.mean_, scaler.scale_, weights, intercept)


class LinearJoin(NamedTuple):
    """A linear fused model of one set of M modalities, which have D features together.

    Attributes
    ----------
    mean, scale, weights : ndarray, shape [D]
        Mean, deviation and weight of each feature; the features of one modality follow those of the other.
    factors, intercepts : ndarray, shape [M]
        Of each modality. Its contribution is ``factor * (weights @ features + intercept)``, with the weights
        and the standardised features of the modality. With a model for each modality, it is above 0 if the
        modality's model scores the clip higher than the mean training clip.
    base : ndarray, shape [1]
        The score to which the contributions are added.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    weights: NDArray[np.float64]
    factors: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    base: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearFusion:
    """A fitted `FusedClassifier` of linear probes, as a file stores it.

    Attributes
    ----------
    columns : tuple of slice
        The modalities' columns in X.
    joins : mapping
        Set of modalities -> its model.
    fused_by_max : bool
        Whether the largest contribution is added to the base, instead of the sum of the contributions.
    """

    columns: Columns
    joins: Mapping[Pattern, LinearJoin]
    fused_by_max: bool

    def contributions(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Decompose the scores of clips X [N, D] into a base and the contribution of each modality.

        Returns
        -------
        base : ndarray, shape [N]
        parts : ndarray, shape [N, M]
            The contribution of each modality; NaN for one that a clip lacks.
        """
        features = np.asarray(X)

        # A clip without any modality has the base of the model of all of them.
        all_modalities = tuple(range(len(self.columns)))
        base = np.repeat(self.joins[all_modalities].base, len(features))
        parts = np.full((len(features), len(self.columns)), np.nan)

        # All other clips are scored by the model of the modalities that they have.
        present = present_modalities(features, self.columns)  # [N, M]
        for pattern, rows in match_models(present, self.joins):
            model = self.joins[pattern]
            base[rows] = model.base
            # The model's arrays have the features of its own modalities only, one modality after the other:
            # those of the present one are from `start` to `stop`. X has the columns of all modalities.
            start = 0
            for modality, factor, intercept in zip(pattern, model.factors, model.intercepts, strict=True):
                values = features[rows][:, self.columns[modality]]
                stop = start + values.shape[1]
                standardised = standardise(values, model.mean[start:stop], model.scale[start:stop], CLIP)
                parts[rows, modality] = factor * (standardised @ model.weights[start:stop] + intercept)
                start = stop
        return base, parts

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N] by the model of the modalities that it has.

        The score of a clip without any modality is the base alone.
        """
        base, contributions = self.contributions(X)
        # The contribution of a modality that a clip lacks is NaN.
        is_present = np.isfinite(contributions)
        has_any = is_present.any(axis=1)
        if self.fused_by_max:
            # An absent modality is never the largest.
            added = np.where(is_present, contributions, -np.inf).max(axis=1)
        else:
            added = np.nansum(contributions, axis=1)
        return np.asarray(base + np.where(has_any, added, 0.0))
