"""What a training tells: on its way to whoever watches, and at its end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class Watch:
    """Follows a training; this one ignores everything. Process 0 alone is followed."""

    def say(self, text: str) -> None:
        """Take a note about the data or the run."""

    def decoding(self, done: int, total: int) -> None:
        """Learn how many of the clips to decode are decoded."""

    def step(self, done: int, total: int, loss: float) -> None:
        """Learn that a step is done."""

    def evaluating(self, split: str, done: int, total: int) -> None:
        """Learn how much of an evaluation is done."""

    def measured(self, split: str, epoch: int, measures: Mapping[str, Any]) -> None:
        """Learn what an evaluation gave."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a training came to.

    Parameters
    ----------
    steps, total
        Steps done, of how many; 0 of 0 where it was stopped while decoding.
    left_out
        Split -> sentences without a usable video.
    epochs
        Validation measures, epoch by epoch.
    best_epoch
        The chosen epoch, from 0; -1 before any is complete.
    test
        Measures of the chosen epoch on the test set; None where it was stopped before.
    """

    steps: int
    total: int
    left_out: Mapping[str, int]
    epochs: tuple[Mapping[str, Any], ...]
    best_epoch: int
    test: Mapping[str, Any] | None

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do."""
        return self.test is not None
