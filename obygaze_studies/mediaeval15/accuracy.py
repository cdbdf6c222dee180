"""Compute the global accuracy of one axis, and its chance level."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How many clips of an axis are called correctly.

    Attributes
    ----------
    correct, returned, total
        Clips called correctly; called at all; with a known class.
    unknown
        Clips of the run without a known class; they count nowhere.
    majority
        Accuracy of calling every clip the class that is the most frequent among those with a known class.
    """

    correct: int
    returned: int
    total: int
    unknown: int
    majority: float

    @property
    def accuracy_returned(self) -> float:
        """Share of the returned clips, the paper's words; it rewards leaving out difficult clips."""
        return self.correct / self.returned if self.returned else float("nan")

    @property
    def accuracy_all(self) -> float:
        """Share of all clips, a missing one counting as wrong."""
        return self.correct / self.total

    @property
    def coverage(self) -> float:
        """Share of clips that the run returned. Only at 1 is an accuracy official: both agree."""
        return self.returned / self.total


def accuracy(called: Mapping[str, str], truth: Mapping[str, str]) -> Accuracy:
    """Compare the classes that a run calls with the true ones, by clip id; `truth` must not be empty."""
    returned = [clip_id for clip_id in called if clip_id in truth]
    return Accuracy(
        correct=sum(called[clip_id] == truth[clip_id] for clip_id in returned),
        returned=len(returned),
        total=len(truth),
        unknown=len(called) - len(returned),
        majority=max(Counter(truth.values()).values()) / len(truth),
    )


def confusion(
    called: Mapping[str, str], truth: Mapping[str, str], classes: Sequence[str]
) -> NDArray[np.int64]:
    """Count the clips of each true class (rows) that are called each class (columns)."""
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    for clip_id, name in called.items():
        if clip_id in truth:
            counts[classes.index(truth[clip_id]), classes.index(name)] += 1
    return counts
