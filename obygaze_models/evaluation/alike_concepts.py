"""Find concepts that nothing in the labels tells apart: from each other, or from the label itself."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]


def concepts_alike(present: Bools, names: Sequence[str]) -> list[list[str]]:
    """Group the concepts that are marked in the same clips, or one exactly where the other is not.

    A model of concepts divides its weight between them in any way that suits its penalty, so that the weight
    of one of them alone means nothing.

    Parameters
    ----------
    present : ndarray of bool, shape [N, K]
        Which clip has which concept. A concept that all clips or no clips have is in no group.
    names : sequence of str
        Of the K concepts.

    Examples
    --------
    >>> present = np.array([[1, 1, 0, 1], [0, 0, 1, 1], [1, 1, 0, 0]], dtype=bool)
    >>> concepts_alike(present, ["A", "B", "not A", "C"])
    [['A', 'B', 'not A']]
    """
    names_of_pattern: dict[bytes, list[str]] = {}
    for name, is_present in zip(names, present.T, strict=True):
        if is_present.all() or not is_present.any():
            continue
        # A concept and its opposite have one pattern: that in which the first clip has no concept.
        pattern = is_present ^ is_present[0]
        names_of_pattern.setdefault(pattern.tobytes(), []).append(name)
    return [group for group in names_of_pattern.values() if len(group) > 1]


def concepts_of_label(present: Bools, names: Sequence[str], is_positive: Bools) -> list[str]:
    """List the concepts that are marked in the positive clips and in no other, or the other way round.

    A model of concepts that finds one of them reads the label itself.

    Parameters
    ----------
    present, names
        As for `concepts_alike`.
    is_positive : ndarray of bool, shape [N]
        Of the same clips; both classes occur.

    Examples
    --------
    >>> present = np.array([[1, 0], [0, 0], [1, 1]], dtype=bool)
    >>> concepts_of_label(present, ["A", "B"], np.array([True, False, True]))
    ['A']
    """
    found = []
    for name, is_present in zip(names, present.T, strict=True):
        is_same = (is_present == is_positive).all()
        is_opposite = (is_present != is_positive).all()
        if is_same or is_opposite:
            found.append(name)
    return found
