"""Tasks: which levels are negative and which positive. NS is in none of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest import Level
from obygaze_models.protocol.errors import ProtocolError


@dataclass(frozen=True, slots=True)
class Task:
    """Two sets of levels to tell apart; a clip of any other level is not in the task."""

    name: str
    negatives: tuple[Level, ...]
    positives: tuple[Level, ...]

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels of the task, negatives first."""
        return self.negatives + self.positives

    @property
    def title(self) -> str:
        """The task as the papers write it, e.g. ``(EN u HN) vs S``."""
        sides = [" u ".join(side) for side in (self.negatives, self.positives)]
        return " vs ".join(f"({side})" if " u " in side else side for side in sides)

    def holds(self, levels: NDArray[np.str_]) -> NDArray[np.bool_]:
        """Say for each level of ``levels`` [N] whether it is in the task."""
        return np.isin(levels, np.array(self.levels, dtype=str))

    def labels(self, levels: NDArray[np.str_]) -> NDArray[np.int64]:
        """Give 1 for each positive level of ``levels`` [N] and 0 for every other."""
        return np.isin(levels, np.array(self.positives, dtype=str)).astype(np.int64)


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("en_s", (Level.EN,), (Level.S,)),
        Task("hn_s", (Level.HN,), (Level.S,)),
        Task("enhn_s", (Level.EN, Level.HN), (Level.S,)),
    )
}


def find_task(name: str) -> Task:
    """Find a task by its name.

    Raises
    ------
    ProtocolError
        There is no such task.
    """
    try:
        return TASKS[name]
    except KeyError:
        raise ProtocolError(f"unknown task {name!r}: expected one of {', '.join(TASKS)}") from None
