"""Fit the model of one set of modalities, whose clips have all modalities of the set."""

import math
from dataclasses import dataclass
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


@dataclass(eq=False)
class JoinedModel:
    """The model of one set of modalities: one estimator of all (``concat``), or one for each modality.

    With an estimator for each modality, the score of a clip is
    ``base + sum(factors * (logits - training_means))``; with ``max``, the largest summand takes the place of
    the sum. With one estimator of all, it is the estimator's score.

    Attributes
    ----------
    how : {"concat", "late", "max", "mean"}
        As `FusedClassifier` takes it.
    n_modalities : int
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

    how: How
    n_modalities: int
    models: list[Any]
    training_means: NDArray[np.float64]
    factors: NDArray[np.float64]
    base: float
    held_out: HeldOut
    candidates: tuple[Candidate, ...] = ()

    @classmethod
    def fit(
        cls, estimator: Any, how: How, parts: list[NDArray[Any]], y: NDArray[Any], movies: NDArray[Any]
    ) -> "JoinedModel":
        """Fit one model of all modalities (``concat``), or one for each, and learn how to join their logits.

        Parameters
        ----------
        estimator : estimator
            Unfitted, of one modality or of all that are joined.
        how : {"concat", "late", "max", "mean"}
        parts : list of ndarray, shape [N, D]
            The features of each modality.
        y : ndarray of int, shape [N]
            Labels, 0 or 1.
        movies : ndarray, shape [N]
        """
        if isinstance(estimator, PenaltyPerModality):
            # It needs to know which columns of the joined features are of which modality.
            estimator = PenaltyPerModality(widths=tuple(part.shape[1] for part in parts))

        inputs = _inputs_of_models(how, parts)
        models = [clone(estimator).fit(features, y, groups=movies) for features in inputs]
        training_means = np.array(
            [mean_score(model, features) for model, features in zip(models, inputs, strict=True)]
        )
        held_out_of_models = [_held_out_scores(model) for model in models]

        # One model is its own join: its logit is that of the fused model, and its held-out scores stay. Of
        # several, factors, base and held-out scores are learnt next, and replace these.
        joined = cls(
            how=how,
            n_modalities=len(parts),
            models=models,
            training_means=training_means,
            factors=np.ones(len(models)),
            base=float(training_means.mean()),
            held_out=held_out_of_models[0],
        )
        if len(models) > 1:
            joined._learn_to_join(HeldOut.stacked(held_out_of_models))
        return joined

    def _learn_to_join(self, held_out: HeldOut) -> None:
        """Set factors, base, candidates and held-out scores as the way to fuse (`how`) says.

        `held_out` are the out-of-fold scores [N, M] of the M models, from which ``late`` learns the factors.
        The factors are 1 before; ``max`` leaves them so, and keeps the base.
        """
        if self.how == "mean":
            self.factors /= len(self.models)
        elif self.how == "late":
            self.factors, self.base = held_out.fit_weights()
            self.candidates = (_late_candidate(self.factors),)  # the only one: there is no choice

        scores = self._join(held_out.relative_scores)  # by these factors and this base
        # Relative scores have the mean 0 over training clips, and so has their weighted sum: the mean of the
        # joined scores is the base. The mean of the largest of several relative scores is not known.
        training_means = None if self.how == "max" else np.full(len(scores), self.base)
        self.held_out = HeldOut(scores, held_out.y, held_out.movies, held_out.folds, training_means)

    def scores(self, parts: list[NDArray[Any]]) -> NDArray[np.float64]:
        """Score clips [N], given the features [N, D] of each modality."""
        inputs = _inputs_of_models(self.how, parts)
        if len(self.models) == 1:
            # There is nothing to join.
            return scores_of(self.models[0], inputs[0])

        logits = [scores_of(model, features) for model, features in zip(self.models, inputs, strict=True)]
        return self._join(np.stack(logits, axis=1) - self.training_means)

    def linear(self) -> LinearJoin:
        """Return the fitted model as weights of standardised features; its models must be linear probes.

        A `LinearJoin` scores a clip by its base plus the contribution of each modality, which is
        ``factor * (weights @ features + intercept)``.
        """
        if self.how == "concat":
            return self._linear_of_joined_features()
        return self._linear_of_modalities()

    def _linear_of_joined_features(self) -> LinearJoin:
        """Convert the one probe of all modalities to the form of a joined model.

        The probe's logit is ``weights @ features + intercept``. In a joined model a modality contributes
        ``factor * (its part of the product + its own intercept)`` to the base. With factors of 1, no own
        intercepts and the probe's intercept as the base, the sum is the logit.
        """
        (only_model,) = self.models
        probe = linear_numbers(only_model)
        return LinearJoin(
            mean=probe.mean,
            scale=probe.scale,
            weights=probe.weights,
            factors=np.ones(self.n_modalities),
            intercepts=np.zeros(self.n_modalities),
            base=np.array([probe.intercept]),
        )

    def _linear_of_modalities(self) -> LinearJoin:
        """Convert the probes of the modalities.

        Each contributes ``factor * (weights @ features + intercept - its training mean)``.
        """
        probes = [linear_numbers(model) for model in self.models]
        intercepts_of_probes = np.array([probe.intercept for probe in probes])
        return LinearJoin(
            mean=np.concatenate([probe.mean for probe in probes]),
            scale=np.concatenate([probe.scale for probe in probes]),
            weights=np.concatenate([probe.weights for probe in probes]),
            factors=self.factors,
            intercepts=intercepts_of_probes - self.training_means,
            base=np.array([self.base]),
        )

    def _join(self, relative_logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score each clip [N]: the base plus the sum, or the largest, of the models' contributions.

        `relative_logits` [N, M] are the logits, less each model's mean logit over the training clips.
        """
        contributions = relative_logits * self.factors
        if self.how == "max":
            return np.asarray(self.base + contributions.max(axis=1))
        return np.asarray(self.base + contributions.sum(axis=1))


def _inputs_of_models(how: How, parts: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the features that each model reads: all modalities side by side, or one modality each."""
    if how == "concat":
        return [np.concatenate(parts, axis=1)]
    return parts


def _held_out_scores(model: Any) -> HeldOut:
    """Return the out-of-fold scores of a fitted model; raise ValueError if it has none."""
    if not hasattr(model, "held_out_"):
        raise ValueError(f"{type(model).__name__} keeps no out-of-fold scores, which fusion needs")
    scores: HeldOut = model.held_out_
    return scores


def _late_candidate(factors: NDArray[np.float64]) -> Candidate:
    """Describe the weights of a late fusion, `factors` [M], as a candidate.

    It is named ``weights 0.7, 0.3`` or, if one modality has all the weight, ``alone 1, 0``. Its loss is NaN,
    as weights are fitted, and not compared by a loss.
    """
    n_used = np.count_nonzero(factors)
    kind = ALONE if n_used == 1 else "weights"
    weights = ", ".join(f"{weight:.3g}" for weight in factors)
    return Candidate(f"{kind} {weights}", inner_loss=math.nan, chosen=True)
