"""Fit the model of one set of modalities, whose clips have all modalities of the set."""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from obygaze_models.models.choices import Candidate
from obygaze_models.models.estimator_scores import mean_score, scores_of
from obygaze_models.models.linear_fusion import LinearJoin, linear_numbers
from obygaze_models.models.modality_penalties import PenaltyPerModality
from obygaze_models.protocol.held_out import HeldOut

How = Literal["concat", "late", "max", "mean"]
"""How modalities are fused (`FusedClassifier`)."""

WAYS_TO_FUSE: tuple[How, ...] = ("concat", "late", "max", "mean")
"""All values of `How`."""

ALONE = "alone"
"""First word of the candidate of a late fusion in which one modality decides alone."""


class JoinedModel:
    """The model of one set of modalities: one estimator of all (``concat``), or one for each modality.

    It is fitted when it is constructed. With an estimator for each modality, the score of a clip is
    ``base + sum(factors * (logits - training_means))``; with ``max``, the largest summand takes the place of
    the sum.

    Parameters
    ----------
    estimator : estimator
        Unfitted, of one modality or of all that are joined.
    how : {"concat", "late", "max", "mean"}
        As `FusedClassifier` takes it.
    parts : list of ndarray, shape [N, D]
        The features of each modality.
    y : ndarray of int, shape [N]
        Labels, 0 or 1.
    movies : ndarray, shape [N]

    Attributes
    ----------
    models : list of estimator
        One for each modality, or one of all.
    training_means : ndarray, shape [number of models]
        The mean score that each model gives to training clips.
    factors : ndarray, shape [number of models]
        The weight of each model's logit, less its mean, in the score.
    base : float
        The score of a clip to which each model gives the mean of the training clips.
    held_out : HeldOut
        Out-of-fold scores of the training clips.
    candidates : tuple of Candidate
        The weights that ``late`` chose; otherwise empty.
    """

    def __init__(
        self, estimator: Any, how: How, parts: list[NDArray[Any]], y: NDArray[Any], movies: NDArray[Any]
    ) -> None:
        """Fit one model of all modalities (``concat``), or one for each, and set how logits are joined."""
        if isinstance(estimator, PenaltyPerModality):
            estimator = PenaltyPerModality(tuple(part.shape[1] for part in parts))
        self._fused_by = how
        self._n_modalities = len(parts)
        inputs = self._inputs(parts)
        self.models = [clone(estimator).fit(features, y, groups=movies) for features in inputs]
        self.training_means = np.array(
            [mean_score(model, features) for model, features in zip(self.models, inputs, strict=True)]
        )
        held_out_of_models = [_held_out_scores(model) for model in self.models]
        self.factors = np.ones(len(self.models))
        self.base = float(self.training_means.mean())
        self.candidates: tuple[Candidate, ...] = ()
        self.held_out = held_out_of_models[0]
        if len(self.models) > 1:
            self._join_models(HeldOut.stacked(held_out_of_models))

    def _join_models(self, held_out: HeldOut) -> None:
        """Set how the logits of the modalities' models are joined, from their out-of-fold scores.

        `held_out` holds the scores [N, M] of all M models.
        """
        if self._fused_by == "mean":
            self.factors /= len(self.models)
        elif self._fused_by == "late":
            self.factors, self.base = held_out.weights()
            self.candidates = (_late_candidate(self.factors),)
        scores = self._join(held_out.relative_scores)
        # The mean score of the training clips is the base, except for the largest logit, where it is unknown.
        training_means = None if self._fused_by == "max" else np.full(len(scores), self.base)
        self.held_out = HeldOut(scores, held_out.y, held_out.movies, held_out.folds, training_means)

    def scores(self, parts: list[NDArray[Any]]) -> NDArray[np.float64]:
        """Score clips [N], given the features [N, D] of each modality."""
        inputs = self._inputs(parts)
        if len(self.models) == 1:
            return scores_of(self.models[0], inputs[0])
        logits = [scores_of(model, features) for model, features in zip(self.models, inputs, strict=True)]
        return self._join(np.stack(logits, axis=1) - self.training_means)

    def linear(self) -> LinearJoin:
        """Return the fitted model as weights of standardised features; its models must be linear probes.

        A `LinearJoin` scores a clip by its base plus the contribution of each modality m, which is
        ``factors[m] * (weights of m @ features of m + intercepts[m])``.
        """
        probes = [linear_numbers(model) for model in self.models]
        intercepts_of_probes = np.array([probe.intercept for probe in probes])
        if self._fused_by == "concat":
            # One probe of all modalities: its logit is w z + b, so b is the base and each w z a contribution.
            base = intercepts_of_probes
            factors = np.ones(self._n_modalities)
            intercepts = np.zeros(self._n_modalities)
        else:
            # A probe for each modality: its contribution is factor * (w z + b - mean over training clips).
            base = np.array([self.base])
            factors = self.factors
            intercepts = intercepts_of_probes - self.training_means
        return LinearJoin(
            mean=np.concatenate([probe.mean for probe in probes]),
            scale=np.concatenate([probe.scale for probe in probes]),
            weights=np.concatenate([probe.weights for probe in probes]),
            factors=factors,
            intercepts=intercepts,
            base=base,
        )

    def _inputs(self, parts: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the features that each model reads: all modalities concatenated, or one modality each."""
        if self._fused_by == "concat":
            return [np.concatenate(parts, axis=1)]
        return parts

    def _join(self, relative_logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Combine the logits of M models into one score per clip [N]: their weighted sum, or the largest.

        `relative_logits` [N, M] are the logits, less each model's mean logit over the training clips.
        """
        contributions = relative_logits * self.factors
        if self._fused_by == "max":
            return np.asarray(self.base + contributions.max(axis=1))
        return np.asarray(self.base + contributions.sum(axis=1))


def _held_out_scores(model: Any) -> HeldOut:
    """Return the out-of-fold scores of a fitted model."""
    if not hasattr(model, "held_out_"):
        raise ValueError(f"{type(model).__name__} keeps no out-of-fold scores, which fusion needs")
    scores: HeldOut = model.held_out_
    return scores


def _late_candidate(factors: NDArray[np.float64]) -> Candidate:
    """Describe the weights of a late fusion as a candidate: ``weights 0.7, 0.3`` or ``alone 1, 0``.

    `factors` [M] are the weights of the modalities.
    """
    n_used = np.count_nonzero(factors)
    kind = ALONE if n_used == 1 else "weights"
    weights = ", ".join(f"{weight:.3g}" for weight in factors)
    return Candidate(f"{kind} {weights}", math.nan, chosen=True)
