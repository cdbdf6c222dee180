"""From absolute scores and pivot judgements to the three classes of each axis (Sjöberg et al. 2015, 4)."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from obygaze_models.errors import TaskError

Axis = Literal["valence", "arousal"]

AXES: tuple[Axis, ...] = ("valence", "arousal")
CLASSES: Mapping[Axis, tuple[str, str, str]] = {
    "valence": ("negative", "neutral", "positive"),
    "arousal": ("calm", "neutral", "active"),
}
"""The classes of each axis, from low scores to high."""

LIMIT = 0.15
"""Classes part at -0.15 and 0.15; both are neutral ("smaller than", "higher than")."""

JUDGEMENTS = 3
"""Annotators who compared each new clip with each pivot; the majority counts."""


def discretise(score: float, axis: Axis) -> str:
    """Give the class of an absolute score in [-1, 1].

    Raises
    ------
    TaskError
        The score is not a number in [-1, 1].
    """
    if not -1.0 <= score <= 1.0:
        raise TaskError(f"{axis} score {score} is not in [-1, 1]")
    return CLASSES[axis][0 if score < -LIMIT else 2 if score > LIMIT else 1]


def pivot_class(low: Sequence[bool], high: Sequence[bool], axis: Axis) -> str | None:
    """Give the class of a clip that was compared with the two pivots of an axis.

    Parameters
    ----------
    low, high
        Three judgements each, of whether the clip is above the pivot near -0.15 and above the one near 0.15.
    axis
        Names the classes.

    Returns
    -------
    str or None
        None if the majorities contradict each other (above the high pivot, not above the low): the paper is
        silent on such clips, and here they are rejected.

    Raises
    ------
    TaskError
        There are not three judgements of each pivot.
    """
    for pivot, judgements in (("low", low), ("high", high)):
        if len(judgements) != JUDGEMENTS:
            raise TaskError(
                f"expected {JUDGEMENTS} judgements of the {pivot} {axis} pivot, found {len(judgements)}"
            )
    above_low, above_high = (2 * sum(judgements) > JUDGEMENTS for judgements in (low, high))
    if above_high and not above_low:
        return None
    return CLASSES[axis][above_low + above_high]


def read_class(cell: str, axis: Axis) -> str | None:
    """Read a class name, or a score in [-1, 1] as its class; None if the cell is empty.

    Raises
    ------
    TaskError
        The cell is anything else.
    """
    if not cell or cell in CLASSES[axis]:
        return cell or None
    try:
        score = float(cell)
    except ValueError:
        score = math.nan
    if math.isnan(score):
        raise TaskError(
            f"{cell!r} is neither {', '.join(CLASSES[axis])} nor a score in [-1, 1]; empty if unknown"
        )
    return discretise(score, axis)
