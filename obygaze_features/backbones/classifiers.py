"""Load a network of transformers under its classifier: transformers' own tables say which class that is."""

from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import CONFIG_MAPPING, PreTrainedModel
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING,
    MODEL_FOR_VIDEO_CLASSIFICATION_MAPPING,
)

from obygaze_features.backbones.answers import ClassifierBase
from obygaze_features.backbones.checkpoint import load_pretrained
from obygaze_features.backbones.encoder_specs import TRAINING
from obygaze_features.backbones.weights import Weights
from obygaze_features.errors import BackboneError

TIMM = "timm_wrapper"
"""The type under which transformers reads networks of timm."""
TIMM_NETWORK = "timm_model"
"""The part of transformers' classes of timm that is timm's own network, with its classifier inside."""


def classifier_class(weights: Weights, model_type: str) -> Any:
    """Return the transformers class of classifiers for networks of a type.

    If the type has several such classes, it is the class that the configuration names, else the default one.

    Raises
    ------
    BackboneError
        If transformers has no such class.
    """
    classes = _classifier_classes(model_type)
    if not classes:
        raise BackboneError(
            f"{weights.name}: transformers has no classifier for networks of type {model_type!r}: leave out "
            "--answers"
        )
    named_classes = [cls for cls in classes if cls.__name__ in _architectures(weights)]
    return named_classes[0] if named_classes else classes[0]


def is_of_a_classifier(weights: Weights, model_type: str) -> bool:
    """Return whether the weights were saved with a classifier, by their configuration.

    Transformers writes the name of the class that was saved. It is compared with the classes that classify
    pictures or videos with networks of this type.

    Examples
    --------
    Networks of timm with and without a classifier, and one with random weights, which has no configuration.

    >>> from types import SimpleNamespace
    >>> saved = SimpleNamespace(seed=None, config=lambda: {"num_classes": 1000})
    >>> is_of_a_classifier(saved, TIMM)
    True
    >>> is_of_a_classifier(SimpleNamespace(seed=None, config=lambda: {"num_classes": 0}), TIMM)
    False
    >>> is_of_a_classifier(SimpleNamespace(seed=0), TIMM)
    False
    """
    if model_type == TIMM and weights.seed is None:
        # timm's own configurations name no class; a network without a classifier has 0 classes there.
        return bool(weights.config().get("num_classes"))
    names = [cls.__name__ for cls in _classifier_classes(model_type)]
    return any(name in names for name in _architectures(weights))


def _classifier_classes(model_type: str) -> tuple[Any, ...]:
    """List the transformers classes that classify pictures, then those for videos, with a type of network."""
    if model_type not in CONFIG_MAPPING:
        return ()
    config_class = CONFIG_MAPPING[model_type]
    classes: list[Any] = []
    for mapping in (MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING, MODEL_FOR_VIDEO_CLASSIFICATION_MAPPING):
        if config_class in mapping:
            entry: Any = mapping[config_class]  # a class, or several
            classes += entry if isinstance(entry, tuple | list) else [entry]
    return tuple(classes)


def _architectures(weights: Weights) -> list[str]:
    """Return the names of the classes with which weights were saved, such as `ViTForImageClassification`.

    They are under `architectures` in the configuration of the weights; random weights have none.
    """
    if weights.seed is not None:
        return []
    architectures = weights.config().get("architectures")
    if not isinstance(architectures, list):
        return []
    return [str(name) for name in architectures]


def load_classifier(
    weights: Weights, model_type: str, config: Any, *, keeps_pooler: bool = True
) -> ClassifierBase:
    """Load a classifier, wrapped so that a call returns the output of the network inside it.

    Parameters
    ----------
    weights, model_type, config
        The weights, their type and their configuration.
    keeps_pooler
        Whether that output keeps `pooler_output`; False for a network whose pooling layer may be untrained.

    Raises
    ------
    BackboneError
        If networks of its type have no classifier, or the weights have none.
    """
    cls = classifier_class(weights, model_type)
    try:
        classifier = load_pretrained(cls, weights, config, allow_unexpected=TRAINING)
    except BackboneError as error:
        raise BackboneError(f"{error}; weights without a classifier are read without --answers") from None
    if hasattr(classifier, TIMM_NETWORK):
        return TimmClassifierBase(classifier)
    return ClassifierBase(classifier, network_inside(classifier, weights), keeps_pooler=keeps_pooler)


def network_inside(classifier: nn.Module, weights: Weights) -> nn.Module:
    """Return the network inside a classifier: its only part that is a transformers network itself.

    Raises
    ------
    BackboneError
        If there is none, or more than one.
    """
    networks = [part for part in classifier.children() if isinstance(part, PreTrainedModel)]
    if len(networks) != 1:
        raise BackboneError(
            f"{weights.name}: {type(classifier).__name__} has {len(networks)} networks inside, expected one: "
            "leave out --answers"
        )
    return networks[0]


class TimmOutput(NamedTuple):
    """What a network of timm gives, by the names of transformers.

    Attributes
    ----------
    last_hidden_state
        Its features before they are pooled.
    pooler_output
        Its features before the classifier, `[N, D]`; None where the configuration asks for no pooling.
    """

    last_hidden_state: torch.Tensor
    pooler_output: torch.Tensor | None


class TimmClassifierBase(ClassifierBase):
    """A timm network with its classifier, called as transformers calls it without the classifier.

    Timm's classifier is a part of the network. The features are computed once, and pooled with and without
    the classifier.
    """

    def __init__(self, classifier: Any) -> None:
        """Hold transformers' wrapper of a timm network with its classifier; the network is inside it."""
        super().__init__(classifier, getattr(classifier, TIMM_NETWORK))

    def forward(self, **inputs: Any) -> TimmOutput:
        """Encode pictures `pixel_values` `[N, 3, h, w]`, and keep the class logits for `take_logits`."""
        network: Any = self.inner_network
        features = network.forward_features(inputs["pixel_values"])
        self._logits = network.forward_head(features)  # pools the features, and applies the classifier
        pooled = None
        if self.config.do_pooling:  # as transformers does without the classifier
            pooled = network.forward_head(features, pre_logits=True)  # pools the features only
        return TimmOutput(features, pooled)
