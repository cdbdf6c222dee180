"""Keep the answers of a network's head: probabilities of named classes, besides its vectors."""

import re
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import nn

from obygaze_features.backbones.backbone import ANSWERS
from obygaze_features.backbones.class_names import unique_names
from obygaze_features.errors import BackboneError
from obygaze_features.perception import PICTURES

CLASSIFIER: Final = "classifier"
"""The field `head` in the provenance of a group of answers, by which stores recognise it."""


NAMELESS_CLASS: Final = re.compile(r"LABEL_\d+")
"""What transformers calls a class without a name: `LABEL_0`, `LABEL_1` and so on."""
MULTI_LABEL: Final = "multi_label_classification"
"""The `problem_type` of a classifier several of whose classes may be right at once."""
REGRESSION: Final = "regression"
"""The `problem_type` of a head that measures something, and has no classes."""
SINGLE_LABEL: Final = "single_label_classification"
"""The `problem_type` of a classifier one of whose classes is right; also where none is stated."""
PROBLEMS: Final = (SINGLE_LABEL, MULTI_LABEL, REGRESSION)


def named_classes(config: Any, weights_name: str) -> tuple[str, ...]:
    """Return the class names of a transformers classifier, from `id2label` of its configuration.

    Names are made unique: ImageNet has two classes `crane`, and the second is called `crane (2)`.

    Parameters
    ----------
    config
        Configuration of the classifier.
    weights_name
        Name of the weights, for messages.

    Raises
    ------
    BackboneError
        If a class has no name, the head is a regression, which gives no probabilities, or its `problem_type`
        is not known.
    """
    name_of_class = {number: str(name) for number, name in config.id2label.items()}
    for number in range(len(name_of_class)):
        # Names that are only in order would be those of other classes.
        if not name_of_class.get(number, "").strip():
            raise BackboneError(
                f"{weights_name}: its classes are numbered from 0 to {len(name_of_class) - 1}, and {number} "
                "has no name: write it into id2label of its config.json"
            )
    names = [name_of_class[number] for number in range(len(name_of_class))]
    if all(NAMELESS_CLASS.fullmatch(name) for name in names):
        raise BackboneError(
            f"{weights_name}: its classes have no names (LABEL_0 and so on): write their names into id2label "
            "of its config.json"
        )
    problem = getattr(config, "problem_type", None) or SINGLE_LABEL
    if problem not in PROBLEMS:
        raise BackboneError(
            f"{weights_name}: problem_type {problem!r} of its config.json: expected {' or '.join(PROBLEMS)}"
        )
    # The softmax of a single number is always 1, so a head with one number is a regression. Only in a
    # multi-label classifier the number is the probability of one class, by a sigmoid.
    gives_one_number = len(names) == 1 and problem != MULTI_LABEL
    if problem == REGRESSION or gives_one_number:
        raise BackboneError(
            f"{weights_name}: its head gives a measure ({', '.join(names[:3])}) and no probabilities of "
            "classes: leave out --answers"
        )
    return unique_names(names)


def is_multi_label(config: Any) -> bool:
    """Return whether several classes may be right at once, so that probabilities come from a sigmoid."""
    return bool(getattr(config, "problem_type", None) == MULTI_LABEL)


def answers_fields(
    class_names: Sequence[str],
    network_type: str,
    *,
    of_frames: bool = True,
    meaning: str = "probability of each class",
) -> dict[str, Any]:
    """Return the provenance fields of a group of class probabilities that a classifier gives.

    They replace the fields of the network's own group of features. All other fields are the same for both
    groups.

    Parameters
    ----------
    class_names
        Names of the classes.
    network_type
        Type of the network.
    of_frames
        Whether the classifier takes single frames, so that a clip has the mean over its frames.
    meaning
        What one number means, in words.
    """
    meaning_of_clip = f"{meaning}, mean over the frames" if of_frames else meaning
    fields: dict[str, Any] = {
        "head": CLASSIFIER,
        "layer": "probabilities of classes",
        "arrays": {"pooled": meaning_of_clip},
        "architecture": {"type": network_type, "features": list(class_names)},
    }
    if of_frames:
        fields["perceives"] = list(PICTURES)  # single frames show no motion
    return fields


class ClassifierBase(nn.Module):
    """A transformers network, called through the classifier that contains it, which also keeps the logits.

    A call returns the output of the network inside. The logits of the same pass are fetched by `take_logits`.

    Parameters
    ----------
    classifier
        A transformers network for classification.
    inner_network
        The network inside it, which computes the features.
    keeps_pooler
        Whether the output keeps `pooler_output`, the vector of its pooling layer; False for a network whose
        pooling layer may be untrained.
    """

    def __init__(self, classifier: Any, inner_network: nn.Module, *, keeps_pooler: bool = True) -> None:
        """Register a hook on the inner network, so that `forward` can return its output."""
        super().__init__()
        self.classifier = classifier
        self.config = classifier.config
        # In a list, so that torch does not register it: it is a part of `classifier` already.
        self._inner_network = [inner_network]
        self._keeps_pooler = keeps_pooler
        self._output: Any = None
        self._logits: torch.Tensor | None = None
        # The classifier's output has no features. The hook stores the output of the inner network, which the
        # classifier runs in the same pass.
        inner_network.register_forward_hook(self._store_output)

    @property
    def inner_network(self) -> nn.Module:
        """Return the network inside the classifier, which computes the features."""
        return self._inner_network[0]

    def forward(self, **inputs: Any) -> Any:
        """Run the classifier, keep its logits for `take_logits`, and return the output of its network.

        So one pass gives both features and class probabilities. The network inside is called by the
        classifier; a hook of torch (`_store_output`) puts its output into an attribute meanwhile.

        `inputs` are the arguments of the classifier, such as pixels.
        """
        # V-JEPA 2's classifier passes this argument to its network, and fails if it is called with it.
        inputs.pop("skip_predictor", None)
        self._logits = self.classifier(**inputs).logits
        output = self._output
        self._output = None  # so that no later call can take it for its own
        if not self._keeps_pooler:  # the pooling layer may be untrained: its vectors must not be used
            output.pooler_output = None
        return output

    def take_logits(self) -> torch.Tensor:
        """Return the logits of the last call, [N, Q] for N inputs and Q classes, and drop them.

        They are dropped so that old logits are never taken for those of a later call.
        """
        logits = self._logits
        self._logits = None
        if logits is None:
            raise RuntimeError("the classifier was not called")
        return logits

    def _store_output(self, _network: nn.Module, _inputs: object, output: Any) -> None:
        """Store the output of the network inside until `forward` returns it: a forward hook of torch."""
        self._output = output


class WithClassProbabilities(nn.Module):
    """Encode clips by a network inside a classifier, and add the probabilities of the classes.

    Parameters
    ----------
    network
        Takes clips `[B, F, 3, h, w]`, and calls `classifier` with frames or with clips.
    classifier
        A `ClassifierBase`, which keeps the logits of each call.
    """

    def __init__(self, network: nn.Module, classifier: Any) -> None:
        """Hold the network and its classifier, and read whether several classes may be right at once."""
        super().__init__()
        self.network = network
        # In a list, so that torch does not register it: it is a part of `network` already.
        self._classifier = [classifier]
        self._is_multi_label = is_multi_label(classifier.config)

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips `[B, F, 3, h, w]`, and add `answers/pooled` [B, Q]: probabilities of Q classes.

        If the classifier takes single frames, the probabilities of a clip are the mean over its frames.
        """
        results = dict(self.network(pixels))
        # N is B F if the classifier takes single frames, and B if it takes clips.
        logits = self._classifier[0].take_logits().float()  # [N, Q]
        probabilities = logits.sigmoid() if self._is_multi_label else logits.softmax(dim=-1)
        n_clips = len(pixels)
        n_classes = probabilities.shape[-1]
        by_clip = probabilities.reshape(n_clips, -1, n_classes)  # [B, F or 1, Q]
        results[f"{ANSWERS}/pooled"] = by_clip.mean(dim=1)
        return results


class WithAnswers(nn.Module):
    """Encode clips by a network, and add the class probabilities that a classifier gives of its frames.

    Parameters
    ----------
    network
        Takes clips `[B, F, 3, h, w]`, and returns `frames`, which the classifier reads, among other arrays.
    classifier
        Turns vectors of frames, `[B, F, D]`, into logits, `[B, F, Q]`.
    """

    def __init__(self, network: nn.Module, classifier: nn.Module) -> None:
        """Hold the network and the classifier of its frames."""
        super().__init__()
        self.network = network
        self.classifier = classifier

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips `[B, F, 3, h, w]`, and add `answers/pooled` [B, Q]: probabilities of Q classes.

        The probabilities of a clip are the mean over its frames.
        """
        results = dict(self.network(pixels))
        logits = self.classifier(results["frames"]).float()  # vectors [B, F, D] to [B, F, Q]
        results[f"{ANSWERS}/pooled"] = logits.softmax(dim=-1).mean(dim=1)
        return results
