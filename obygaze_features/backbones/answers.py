"""Keep the answers of a network's head: probabilities of named classes, besides its vectors."""

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import nn

from obygaze_features.backbones.backbone import ANSWERS
from obygaze_features.errors import BackboneError
from obygaze_features.perception import PICTURES

CLASSIFIER: Final = "classifier"
"""The field `head` in the provenance of a group of answers, by which stores recognise it."""


def named_classes(config: Any, where: str) -> tuple[str, ...]:
    """Return the names of the classes of a network of transformers, as its configuration has them.

    Raises
    ------
    BackboneError
        If two classes have one name, or it names none.
    """
    names = tuple(str(config.id2label[number]) for number in sorted(config.id2label))
    if not names or len(set(names)) < len(names):
        raise BackboneError(f"{where}: its id2label does not name {len(names)} classes apart")
    return names


def answers_fields(
    names: Sequence[str], network: str, *, of_frames: bool = True, meaning: str = "probability of each class"
) -> dict[str, Any]:
    """Return the fields of the provenance of answers that differ from those of the network's vectors.

    Parameters
    ----------
    names
        Names of the classes.
    network
        Type of the network.
    of_frames
        Whether the classifier sees each frame alone.
    meaning
        What a number is, of a frame or of a clip.
    """
    if of_frames:
        meaning += ", mean over the frames"
    fields: dict[str, Any] = {
        "head": CLASSIFIER,
        "layer": "probabilities of classes",
        "arrays": {"pooled": meaning},
        "architecture": {"type": network, "features": list(names)},
    }
    if of_frames:
        fields["perceives"] = list(PICTURES)
    return fields


class ClassifierBase(nn.Module):
    """A network of transformers inside its classifier: called as the network, it runs the classifier too.

    The classifier calls the network inside, whose output a call returns, so that one pass gives both.

    Parameters
    ----------
    classifier
        A network of transformers for classification.
    inside
        The network inside; None is the classifier's `base_model`.
    """

    def __init__(self, classifier: Any, inside: nn.Module | None = None) -> None:
        super().__init__()
        self.classifier = classifier
        self.config = classifier.config
        network: nn.Module = inside or classifier.base_model
        self._outputs: list[Any] = []
        self._logits: list[torch.Tensor] = []
        network.register_forward_hook(lambda _network, _inputs, output: self._keep(output))

    def forward(self, **inputs: Any) -> Any:
        """Call the classifier, keep its logits, and return the output of its network."""
        inputs.pop("skip_predictor", None)  # V-JEPA 2's classifier passes it itself
        self._logits.append(self.classifier(**inputs).logits)
        return self._outputs.pop()

    def take_logits(self) -> torch.Tensor:
        """Return the logits [N, Q] of the last call."""
        return self._logits.pop()

    def _keep(self, output: Any) -> None:
        """Keep the output of the network until `forward` returns it."""
        self._outputs.append(output)


class OfClassifier(nn.Module):
    """A network of clips that adds the answers of a classifier of transformers inside it.

    Parameters
    ----------
    network
        Takes clips `[B, F, 3, h, w]`, and calls `base` with frames or with clips.
    base
        The network inside its classifier.
    """

    def __init__(self, network: nn.Module, base: ClassifierBase) -> None:
        super().__init__()
        self.network = network
        # In a list, so that torch does not register it: it is a part of `network` already.
        self._base = [base]

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips, `[B, F, 3, h, w]`."""
        results = dict(self.network(pixels))
        logits = self._base[0].take_logits()  # a row a frame or a clip, [N, Q]
        probabilities = logits.float().softmax(dim=-1)
        of_clips = probabilities.reshape(len(pixels), -1, probabilities.shape[-1])
        results[f"{ANSWERS}/pooled"] = of_clips.mean(dim=1)
        return results


class WithAnswers(nn.Module):
    """A network of clips that gives the probabilities of its classes besides its own arrays.

    Each frame's logits become probabilities, whose mean over the frames is `answers/pooled`, [Q].

    Parameters
    ----------
    network
        Takes clips `[B, F, 3, h, w]`, and gives `frames`, which the classifier reads, among other arrays.
    classifier
        Turns vectors of frames, `[B, F, D]`, into logits.
    """

    def __init__(self, network: nn.Module, classifier: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.classifier = classifier

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips, `[B, F, 3, h, w]`."""
        results = dict(self.network(pixels))
        logits = self.classifier(results["frames"]).float()
        results[f"{ANSWERS}/pooled"] = logits.softmax(dim=-1).mean(dim=1)
        return results
