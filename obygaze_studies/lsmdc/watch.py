"""Define the progress callbacks and the outcome of a training."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class Watch:
    """Callbacks of a training, called in process 0 only; this base class ignores them all."""

    def say(self, text: str) -> None:
        """Receive a note about the data or the run."""

    def decoding(self, done: int, total: int) -> None:
        """Receive the progress of decoding, in clips."""

    def step(self, done: int, total: int, loss: float) -> None:
        """Receive the completion of a step, with its loss."""

    def evaluating(self, split: str, done: int, total: int) -> None:
        """Receive the progress of an evaluation."""

    def measured(self, split: str, epoch: int, measures: Mapping[str, Any]) -> None:
        """Receive the measures of an evaluation."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a training.

    Parameters
    ----------
    steps, total
        Steps done and total steps; both 0 if it was stopped while decoding.
    left_out
        Split -> sentences without a usable video.
    epochs
        Validation measures per epoch.
    best_epoch
        The chosen epoch, from 0; -1 if none is complete.
    test
        Measures of the chosen epoch on the test set; None if it was stopped before.
    """

    steps: int
    total: int
    left_out: Mapping[str, int]
    epochs: tuple[Mapping[str, Any], ...]
    best_epoch: int
    test: Mapping[str, Any] | None

    @property
    def complete(self) -> bool:
        """Whether the training is complete."""
        return self.test is not None
