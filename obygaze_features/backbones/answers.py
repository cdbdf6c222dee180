"""Keep what the head of a network says: probabilities of named classes, beside its vectors."""

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import nn

from obygaze_features.backbones.backbone import ANSWERS
from obygaze_features.perception import PICTURES

CLASSIFIER: Final = "classifier"
"""What the provenance of such a group calls its head, by which stores know it."""


def answers_fields(names: Sequence[str], network: str) -> dict[str, Any]:
    """Return what the provenance says of answers in place of what it says of the network's vectors."""
    return {
        "head": CLASSIFIER,
        "layer": "probabilities of classes",
        "arrays": {"pooled": "probability of each class, mean over the frames"},
        "architecture": {"type": network, "features": list(names)},
        "perceives": list(PICTURES),
    }


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
