"""Make a model of each layer of a network, or of the layer that inner folds of movies choose.

The features of a clip are one row of X [N, D] in which every layer has its columns (`load_layers`). A layer
is chosen on training clips alone, in each fold anew: the clips that are tested have no part in it, so that
the test of a chosen layer is as fair as that of any other model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from obygaze_features.arguments import checked
from obygaze_models.dataset.dataset import Dataset
from obygaze_models.errors import ModelError
from obygaze_models.models.binary import LogitClassifier, encode_labels
from obygaze_models.models.choices import Candidate
from obygaze_models.models.estimator_scores import scores_of
from obygaze_models.models.registry import find_model
from obygaze_models.models.spec import ModelSpec

How = Literal["each", "chosen"]

LAYER_PREFIX = "layer "
"""The name of a candidate that is a layer begins with this."""


@checked
def layered(models: Sequence[str | ModelSpec], data: Dataset, how: How) -> list[ModelSpec]:
    """Make models that read single layers of a network: one of each layer, or one of a chosen layer.

    Parameters
    ----------
    models : sequence of str or ModelSpec
        Models that read vectors, or baselines.
    data : Dataset
        With the layers as its modalities, as `load_layers` gives it.
    how : {"each", "chosen"}
        A model of each layer (``NAME:LAYER``), or one of the layer that inner folds choose (``NAME``).

    Returns
    -------
    list of ModelSpec
        Baselines, which read no features, stay as they are.

    Raises
    ------
    ModelError
        A model does not read vectors, or the dataset has no layers.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> from obygaze_models.dataset import Modality
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> # Two layers, as load_layers gives them.
    >>> layer_4 = Modality("4", data.store, "4", "pooled", "as stored", start=0, stop=4, missing=0)
    >>> layer_8 = Modality("8", data.store, "8", "pooled", "as stored", start=4, stop=8, missing=0)
    >>> data = replace(data, modalities=(layer_4, layer_8))
    >>> [spec.name for spec in om.layered(["linear"], data, "each")]
    ['linear:4', 'linear:8']
    >>> [spec.name for spec in om.layered(["linear"], data, "chosen")]
    ['linear']
    """
    if not data.modalities:
        raise ModelError("these features are of one layer: load those of several by load_layers")
    specs = []
    for model in models:
        spec = model if isinstance(model, ModelSpec) else find_model(model)
        if spec.looks_at_features:
            specs += _specs_of_layers(spec, data, how)
        else:
            specs.append(spec)
    return specs


def _specs_of_layers(spec: ModelSpec, data: Dataset, how: How) -> list[ModelSpec]:
    """Make the models of layers from a model of vectors: one for each layer, or one of a chosen layer."""
    if spec.reads != "pooled":
        raise ModelError(f"model {spec.name} reads {spec.reads}: layers are evaluated with models of vectors")

    names = tuple(modality.name for modality in data.modalities)
    columns = tuple(slice(modality.start, modality.stop) for modality in data.modalities)
    if how == "chosen":
        title = f"{spec.title}, layer chosen of {len(names)}"
        return [_layer_spec(spec, spec.name, title, names, columns)]

    specs = []
    for layer, columns_of_layer in zip(names, columns, strict=True):
        title = f"{spec.title}, layer {layer}"
        specs.append(_layer_spec(spec, f"{spec.name}:{layer}", title, (layer,), (columns_of_layer,)))
    return specs


def _layer_spec(
    spec: ModelSpec, name: str, title: str, layers: tuple[str, ...], columns: tuple[slice, ...]
) -> ModelSpec:
    """Make the spec of a model that chooses among some layers, from the spec of a model of vectors.

    Parameters
    ----------
    spec : ModelSpec
        The model of vectors.
    name, title : str
        Name and title of the new model.
    layers : tuple of str
        Names of the layers.
    columns : tuple of slice
        The layers' columns in a row of features.
    """
    return replace(
        spec,
        name=name,
        title=title,
        make=partial(_make_layer_classifier, spec, layers, columns),
        # The model of each layer chooses its parameters itself, by inner folds of movies.
        choose=None,
        uses=tuple(sorted({*spec.requests(), "groups"})),
        # `spec` is compared with models of vectors, which these are not.
        compared_with=(),
    )


def _make_layer_classifier(
    spec: ModelSpec, layers: tuple[str, ...], columns: tuple[slice, ...], seed: int
) -> "LayerClassifier":
    """Make the unfitted classifier that chooses among some layers, for a seed."""
    return LayerClassifier(spec.estimator(seed), columns, layers)


@dataclass(eq=False, repr=False)
class LayerClassifier(MetaEstimatorMixin, LogitClassifier):
    """Classify clips by one of several layers: the one whose held-out scores order most pairs correctly.

    A pair is a positive and a negative clip of one movie, scored by a model that was not trained on that
    movie. If layers are equally good, the first is chosen.

    Parameters
    ----------
    estimator : estimator
        Model of one layer. When it is fitted with movies, it must set ``held_out_``.
    columns : tuple of slice
        The layers' columns in X.
    layers : tuple of str
        Names of the layers.

    Attributes
    ----------
    classes_ : ndarray, shape [2]
    layer_ : int
        Index of the layer that was chosen.
    model_ : estimator
        The model of that layer.
    threshold_ : float
        A clip is called positive if its score is at least this.
    held_out_ : HeldOut
        The scores of training clips by models that were not trained on their movie. As the layer was chosen
        by these scores, they are slightly optimistic. This may move the threshold, but no test clip is among
        them.
    candidates_ : tuple of Candidate
        The layers, each with the share of pairs that it orders wrongly.
    """

    estimator: Any
    columns: tuple[slice, ...]
    layers: tuple[str, ...]

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike, **params: Any) -> Self:
        """Fit a model on each layer, and keep the one whose held-out scores order the most pairs correctly.

        Parameters
        ----------
        X : array-like, shape [N, D]
            The features of all layers side by side.
        y, groups : array-like, shape [N]
            The label and the movie of each clip.
        **params
            Further arguments of the estimator's ``fit``.

        Raises
        ------
        ValueError
            The estimator has no ``held_out_``.
        """
        features = np.asarray(X)
        self.classes_, _ = encode_labels(np.asarray(y), type(self).__name__)
        models = []
        for columns in self.columns:
            model = clone(self.estimator).fit(features[:, columns], y, groups=groups, **params)
            models.append(model)

        if len(models) > 1:
            shares_of_wrong_pairs = [_share_of_wrong_pairs(model) for model in models]
            self.layer_ = int(np.argmin(shares_of_wrong_pairs))
            self.candidates_ = self._candidates(shares_of_wrong_pairs)
        else:
            # With one layer, the candidates are those of its own model, such as penalties.
            self.layer_ = 0
            self.candidates_ = getattr(models[0], "candidates_", ())

        self.model_ = models[self.layer_]
        self.threshold_ = float(self.model_.threshold_)
        self.n_features_in_ = features.shape[1]
        if hasattr(self.model_, "held_out_"):
            self.held_out_ = self.model_.held_out_
        return self

    def _candidates(self, shares_of_wrong_pairs: Sequence[float]) -> tuple[Candidate, ...]:
        """List the layers that were tried, each with the share of pairs of clips that it orders wrongly.

        The share takes the place of a loss. The layer `layer_` is marked as the chosen one.
        """
        tried = []
        for index, (name, share) in enumerate(zip(self.layers, shares_of_wrong_pairs, strict=True)):
            tried.append(Candidate(f"{LAYER_PREFIX}{name}", inner_loss=share, chosen=index == self.layer_))
        return tuple(tried)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N] by the chosen layer."""
        check_is_fitted(self)
        return scores_of(self.model_, np.asarray(X)[:, self.columns[self.layer_]])


def _share_of_wrong_pairs(model: Any) -> float:
    """Return the share of pairs of a positive and a negative clip that held-out scores order wrongly.

    Raises
    ------
    ValueError
        The model has no out-of-fold scores of its training clips.
    """
    if not hasattr(model, "held_out_"):
        raise ValueError(f"{type(model).__name__} keeps no out-of-fold scores, by which layers are chosen")
    return 1.0 - float(model.held_out_.share_of_ordered_pairs())
