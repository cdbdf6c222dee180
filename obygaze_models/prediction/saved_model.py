"""Define a trained model as kept in a file: estimator, calibration, card; load and save it."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from obygaze_features.arguments import checked, made_by
from obygaze_features.text import counted
from obygaze_models.concepts.bank import ConceptBank
from obygaze_models.concepts.bottleneck import ConceptBottleneck
from obygaze_models.concepts.explanations import Explanation
from obygaze_models.concepts.in_time import ConceptsInTime
from obygaze_models.dataset.features import StoredClips
from obygaze_models.errors import ConceptError, ModelError
from obygaze_models.models.estimator_scores import scores_of
from obygaze_models.persistence.card import Card
from obygaze_models.persistence.model_file import construct, read_model, to_state, write_model
from obygaze_models.prediction.calibration import Calibration, mean_probability
from obygaze_models.prediction.out_of_distribution import LARGEST_SHARE, OutOfDistribution
from obygaze_models.prediction.training_films import TrainingFilms

OUT_OF_DISTRIBUTION_FIELDS = ("mean", "scale", "distances")
"""Fields of an `OutOfDistribution`, which a model file has as arrays."""

OUT_OF_DISTRIBUTION_PREFIX = "reach_"
"""Beginning of the names of these arrays: ``reach_mean``, ``reach_scale``, ``reach_distances``."""

MIN_SEEN_PROBABILITY = 0.5
"""A concept counts as seen in a clip only if its probability is at least this."""


@made_by("load_model(PATH)")
@dataclass(frozen=True, eq=False)
class Model:
    """A model that was trained on all films, or read from a file.

    Attributes
    ----------
    card : Card
    estimator : estimator
        The fitted estimator.
    calibration : Calibration or None
        None if the estimator has no out-of-fold scores.
    out_of_distribution : OutOfDistribution or None
        None for models that were joined from sums.
    concept_sigmoids : ndarray, shape [K, B, 2]
        For each concept, B draws of slope and intercept of the sigmoid from its value to its probability. K
        is 0 for a model without concepts, and for concepts that were found without labels.
    training : TrainingFilms
        Digests and sketches by which the films trained on are recognised.
    """

    card: Card
    estimator: Any
    calibration: Calibration | None
    out_of_distribution: OutOfDistribution | None
    concept_sigmoids: NDArray[np.float64]
    training: TrainingFilms

    def __repr__(self) -> str:
        """Name the model, its task, its backbone and the number of films trained on."""
        card = self.card
        return (
            f"Model({card.model!r}, {card.target['name']!r}, {card.backbone}, "
            f"{counted(len(card.movies), 'film')})"
        )

    def _repr_html_(self) -> str:
        """Show the main facts of the model's card as a table in a notebook."""
        card = self.card
        facts = {
            "task": card.target["name"],
            "backbone": f"{card.backbone}, {card.features}",
            "trained on": ", ".join(card.movies),
            "concepts": ", ".join(self.concepts) or "none",
            "licence": card.licence,
        }
        rows = "".join(f"<tr><th>{name}</th><td>{escape(fact)}</td></tr>" for name, fact in facts.items())
        return f"<div><strong>{escape(card.model)}</strong><table>{rows}</table></div>"

    @property
    def concepts(self) -> tuple[str, ...]:
        """Names of the model's concepts; empty for a model without any."""
        return self.card.concepts

    @property
    def concepts_with_probability(self) -> tuple[str, ...]:
        """The concepts that get a calibrated probability: all, or none if they were found without labels."""
        return self.concepts if len(self.concept_sigmoids) else ()

    @property
    def decides(self) -> bool:
        """Whether the model has logits, to decide by; a concept bank without a classifier has none."""
        return not isinstance(self.estimator, ConceptBank)

    def logits(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the score [N] of each clip of X [N, D]; NaN for a concept bank without a classifier.

        Raises
        ------
        ModelError
            The estimator refuses the clips, or its scores are not finite.
        """
        features = np.asarray(X)
        if not self.decides:
            return np.full(len(features), np.nan)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return scores_of(self.estimator, features)
        except ValueError as error:
            raise ModelError(f"model {self.card.model} can't score these clips: {error}") from error

    def concept_values(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the value [N, K] of each clip on each concept, in deviations from the mean training clip.

        K is 0 for a model without concepts.
        """
        features = np.asarray(X)
        if isinstance(self.estimator, ConceptBottleneck):
            return self.estimator.concept_values(features)
        if isinstance(self.estimator, ConceptBank):
            return self.estimator.transform(features)
        return np.empty((len(features), 0))

    def concept_probabilities(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the calibrated probability [N, K] that each concept is in each clip of X."""
        return self.probabilities_of(self.concept_values(X))

    def probabilities_of(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert values of concepts [N, K], of clips or frames, to calibrated probabilities [N, K].

        The probability is NaN for concepts that were found without labels.
        """
        has_sigmoids = len(self.concept_sigmoids) > 0
        if not has_sigmoids:
            return np.full(values.shape, np.nan)
        probabilities = []
        # The draws of slope and intercept of a concept, [B, 2], and the concept's values, [N].
        for draws, values_of_concept in zip(self.concept_sigmoids, values.T, strict=True):
            probabilities.append(mean_probability(draws, values_of_concept))
        return np.column_stack(probabilities)

    @property
    def concept_thresholds(self) -> NDArray[np.float64]:
        """Lowest probability [K] at which each concept counts as present in a clip.

        A concept counts as present if the clip lies on the positive side of the hyperplane of its concept
        activation vector (CAV), and its probability is at least 0.5. The threshold is therefore the
        probability on the hyperplane, or 0.5 if that is larger, as it is for rare concepts. Concepts in time
        have no hyperplane, and the threshold 0.5.
        """
        has_hyperplanes = not isinstance(self.estimator, ConceptsInTime)
        if not self.concepts or not has_hyperplanes:
            return np.full(len(self.concepts), MIN_SEEN_PROBABILITY)
        one_clip = self._values_on_hyperplanes()[None]
        p: NDArray[np.float64] = self.probabilities_of(one_clip)[0]
        return np.maximum(p, MIN_SEEN_PROBABILITY)

    def _values_on_hyperplanes(self) -> NDArray[np.float64]:
        """Return the concept values [K] of a clip that lies on the hyperplanes of all concepts.

        A value is the clip's distance from the concept's hyperplane, standardised by the mean and deviation
        of the training clips' distances.
        """
        if isinstance(self.estimator, ConceptBank):
            bank: Any = self.estimator
        else:
            bank = self._bottleneck().bank_
        # A value is (distance - mean) / scale, and the distance from the hyperplane is 0.
        values: NDArray[np.float64] = -bank.mean_ / bank.scale_
        return values

    def contributions(self, X: ArrayLike) -> tuple[float, NDArray[np.float64]]:
        """Decompose the logits of clips X [N, D] into a base and the contributions of concepts.

        Returns
        -------
        base : float
        contributions : ndarray, shape [N, K]
            Of each concept; base and contributions add up to the logit.

        Raises
        ------
        ConceptError
            The model does not decide by concepts.
        """
        base, contributions, _ = self._bottleneck().contributions(X)
        return base, contributions

    def out_of_distribution_share(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute for each clip [N] the share of training clips that are nearer to the training mean.

        The larger the share, the more unusual is the clip. It is NaN if the model's file has no distances.
        """
        features = vectors(X)
        if self.out_of_distribution is None:
            return np.full(len(features), np.nan)
        return self.out_of_distribution.shares(features)

    def is_out_of_distribution(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Mark the clips [N] that are out of distribution; they get no probability.

        If the model's file has no distances, no clip is marked.
        """
        # A share is NaN without distances, which is not larger than any number.
        return self.out_of_distribution_share(X) > LARGEST_SHARE

    def explain(self, X: ArrayLike) -> Explanation:
        """Decompose the score of one clip, X [D] or [1, D], by concept.

        Raises
        ------
        ConceptError
            The model does not decide by concepts, or there is more than one clip.
        """
        return self._bottleneck().explain(X)

    def intervene(self, X: ArrayLike, quantiles: Mapping[str, float]) -> NDArray[np.float64]:
        """Compute the logit [N] of each clip with other values of some concepts.

        Parameters
        ----------
        X : array-like, shape [N, D]
        quantiles : mapping of str to float
            Concept -> the quantile (0 to 1) of the training clips' held-out values to set it to.

        Raises
        ------
        ConceptError
            The model does not decide by concepts, a concept is unknown, or a quantile is outside 0 to 1.
        """
        return self._bottleneck().intervene(X, quantiles)

    def _bottleneck(self) -> ConceptBottleneck:
        """Return the estimator, a concept bottleneck; raise if the model is of another kind."""
        if not isinstance(self.estimator, ConceptBottleneck):
            raise ConceptError(
                f"model {self.card.model} decides by no concepts: "
                "a concept bottleneck does (evaluate --save pcbm_lr)"
            )
        return self.estimator


def vectors(X: ArrayLike | StoredClips) -> NDArray[Any]:
    """Return one vector per clip [N, D]: of frames or tokens [N, F, D] the mean over the present ones."""
    if isinstance(X, StoredClips):
        # Read clip by clip, as all tokens may not fit in memory.
        vectors_of_clips = []
        for row in range(len(X)):
            one_clip = np.asarray(X[row : row + 1])  # [1, F, D]
            vectors_of_clips.append(vectors(one_clip))
        return np.concatenate(vectors_of_clips)
    features = np.asarray(X)
    if features.ndim == 2:
        return features
    # Absent frames are NaN. Without any, the plain mean is faster.
    has_absent_frames = np.isnan(features).any()
    if has_absent_frames:
        return np.asarray(np.nanmean(features, axis=1))
    return np.asarray(np.mean(features, axis=1))


@checked
def load_model(
    place: Path | str, offered: Mapping[str, Any] | None = None, *, zoo: Path | str | None = None
) -> Model:
    """Read a model from a file, a URL or a list of models, without executing its content.

    Parameters
    ----------
    place : Path or str
        A file or URL; or NAME or NAME@VERSION of a model in a list.
    offered : mapping of str to estimator, factory or ModelSpec, optional
        Name of a model -> its estimator, for estimators that are not the zoo's, whose files hold their arrays
        but not their class (docs/predict.md).
    zoo : Path or str, optional
        Folder or URL of the list; None for $OBYGAZE_ZOO, or the models shipped.

    Raises
    ------
    ModelError
        The file is no model file, is damaged or inconsistent, or newer than this reader.

    Examples
    --------
    >>> import obygaze_models as om
    >>> om.load_model("kept/linear.model").card.n_features
    8
    """
    file = read_model(place, zoo)
    card = file.card
    arrays = file.other_arrays  # those that are not the estimator's

    # Not every model has these: without out-of-fold scores there is no calibration, and a model that was
    # joined from sums has no distances of training clips.
    calibration = None
    if card.calibration:
        calibration = Calibration(**card.calibration, draws=arrays["calibration_draws"])
    out_of_distribution = None
    if f"{OUT_OF_DISTRIBUTION_PREFIX}mean" in arrays:
        fields = {name: arrays[OUT_OF_DISTRIBUTION_PREFIX + name] for name in OUT_OF_DISTRIBUTION_FIELDS}
        out_of_distribution = OutOfDistribution(**fields)
    return Model(
        card=card,
        estimator=construct(file, offered),
        calibration=calibration,
        out_of_distribution=out_of_distribution,
        concept_sigmoids=arrays.get("concept_sigmoids", np.empty((0, 0, 2))),
        training=TrainingFilms.from_arrays(arrays),
    )


def save_model(model: Model, path: Path) -> None:
    """Write a model to a file atomically; the same model gives the same bytes.

    Raises
    ------
    ModelError
        Its estimator cannot be saved.
    """
    arrays = model.training.to_arrays()
    if model.out_of_distribution is not None:
        for name in OUT_OF_DISTRIBUTION_FIELDS:
            arrays[OUT_OF_DISTRIBUTION_PREFIX + name] = getattr(model.out_of_distribution, name)
    if model.calibration is not None:
        arrays["calibration_draws"] = model.calibration.draws
    if len(model.concept_sigmoids):
        arrays["concept_sigmoids"] = model.concept_sigmoids
    state = to_state(model.estimator, model.card.model)
    write_model(path, model.card, state.arrays, arrays)
