"""Keep what the head of a network says: probabilities of named classes, beside its vectors."""

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import nn

from obygaze_features.backbones.backbone import ANSWERS
from obygaze_features.errors import BackboneError
from obygaze_features.perception import PICTURES

CLASSIFIER: Final = "classifier"
"""What the provenance of such a group calls its head, by which stores know it."""


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
    """Return what the provenance says of answers in place of what it says of the network's vectors.

    Parameters
    ----------
    of_frames
        Whether the classifier sees each frame alone.
    meaning
        What a number is, of a frame or of a clip.
    """
    fields: dict[str, Any] = {
        "head": CLASSIFIER,
        "layer": "probabilities of classes",
        "arrays": {"pooled": f"{meaning}, mean over the frames" if of_frames else meaning},
        "architecture": {"type": network, "features": list(names)},
    }
    if of_frames:
        fields["perceives"] = list(PICTURES)
    return fields


class ClassifierBase(nn.Module):
    """A network of transformers under its classifier: called as the network, it runs the classifier too.

    The classifier calls the network inside, whose output is what a call gives back; so both come of one pass.

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

    def forward(self, **given: Any) -> Any:
        """Call the classifier; give what its network gave."""
        given.pop("skip_predictor", None)  # which V-JEPA 2's classifier says itself
        self._logits.append(self.classifier(**given).logits)
        return self._outputs.pop()

    def take_logits(self) -> torch.Tensor:
        """Return the logits [N, Q] of the last call."""
        return self._logits.pop()

    def _keep(self, output: Any) -> None:
        self._outputs.append(output)


class OfClassifier(nn.Module):
    """A network of clips whose pictures, or clips, a classifier of transformers sees: with its answers.

    Parameters
    ----------
    network
        Takes clips `[B, F, 3, h, w]`, and calls `base`.
    base
        The network under its classifier.
    """

    def __init__(self, network: nn.Module, base: ClassifierBase) -> None:
        super().__init__()
        self.network = network
        # Not a part of its own: it is one of the network's already.
        self._base = [base]

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips, `[B, F, 3, h, w]`."""
        results = dict(self.network(pixels))
        shares = self._base[0].take_logits().float().softmax(dim=-1)
        of_clips = shares.reshape(len(pixels), -1, shares.shape[-1])
        results[f"{ANSWERS}/pooled"] = of_clips.mean(dim=1)
        return results


class WithAnswers(nn.Module):
    """A network of clips that gives the probabilities of its classes beside its own arrays.

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
        self.network, self.classifier = network, classifier

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips, `[B, F, 3, h, w]`."""
        results = dict(self.network(pixels))
        logits = self.classifier(results["frames"]).float()
        results[f"{ANSWERS}/pooled"] = logits.softmax(dim=-1).mean(dim=1)
        return results
