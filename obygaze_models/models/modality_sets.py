"""Find out which modalities clips have, and which fitted model is the one for them.

The features of clips are rows of X [N, D], or of frames [N, F, D], in which every one of M modalities has its
columns of D. A set of modalities is a tuple of their indices in rising order, such as ``(0, 2)``.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Columns = tuple[slice, ...]
"""The columns of each modality in a row of features."""

Pattern = tuple[int, ...]
"""A set of modalities, by their indices."""


class MatchedClips(NamedTuple):
    """Clips that have the same modalities, and the set of modalities whose model scores them.

    Attributes
    ----------
    pattern : tuple of int
        The set of modalities that the model reads.
    rows : ndarray of bool, shape [N]
        Marks the clips.
    """

    pattern: Pattern
    rows: NDArray[np.bool_]


def has_modality(features: NDArray[Any], columns: slice) -> NDArray[np.bool_]:
    """Mark the clips [N] that have a modality: its vector, or at least one frame of it.

    Parameters
    ----------
    features : ndarray, shape [N, D] or [N, F, D]
        A vector of which any number is NaN is missing.
    columns : slice
        The modality's columns.
    """
    has_vector: NDArray[np.bool_] = np.isfinite(features[..., columns]).all(axis=-1)  # [N] or [N, F]
    has_frames = has_vector.ndim == 2
    if has_frames:
        return np.asarray(has_vector.any(axis=1))
    return has_vector


def present_modalities(features: NDArray[Any], columns: Columns) -> NDArray[np.bool_]:
    """Mark the modalities [N, M] that each clip has, given features [N, D]."""
    return np.stack([has_modality(features, modality) for modality in columns], axis=1)


def has_all(present: NDArray[np.bool_], pattern: Pattern) -> NDArray[np.bool_]:
    """Mark the clips [N] that have all modalities of a set, given the modalities [N, M] of each clip."""
    return np.asarray(present[:, list(pattern)].all(axis=1))


def pattern_of(presence: NDArray[np.bool_]) -> Pattern:
    """Return the set of the modalities that are marked in a row [M]."""
    return tuple(np.flatnonzero(presence).tolist())


def match_models(present: NDArray[np.bool_], fitted: Iterable[Pattern]) -> Iterator[MatchedClips]:
    """Group clips by the modalities that they have, and find the fitted model that scores each group.

    A model can score clips that have all of its modalities. Of several such models, the one with the most
    modalities is taken; of equally many, the first in `fitted`. Clips without such a model are left out.

    Parameters
    ----------
    present : ndarray of bool, shape [N, M]
        The modalities of each clip.
    fitted : iterable of tuple of int
        The sets of modalities that have a model.
    """
    sets_with_model = list(fitted)
    # Each different row of `present` stands for the group of clips that have these modalities.
    for present_in_group in np.unique(present, axis=0):
        modalities_of_group = set(pattern_of(present_in_group))
        usable = [pattern for pattern in sets_with_model if modalities_of_group.issuperset(pattern)]
        if usable:
            largest = max(usable, key=len)
            is_in_group = (present == present_in_group).all(axis=1)
            yield MatchedClips(largest, rows=is_in_group)
