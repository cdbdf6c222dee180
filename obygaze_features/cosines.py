"""Compare the pooled vectors of a store with one vector, a block at a time."""

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import SearchError, StoreError
from obygaze_features.store import Group

MIN_SPREAD = 1e-6
"""Deviation, as a share of the mean, up to which a feature counts as constant: float32 has no more digits."""


def cosines(group: Group, vector: NDArray[np.float64], *, standard: bool = False) -> NDArray[np.float32]:
    """Compute the cosine of each clip's pooled vector with a vector.

    Parameters
    ----------
    group
        A group of N clips with pooled vectors [N, D].
    vector
        Shape [D], in the same space.
    standard
        Whether to standardise all vectors first, by the group's mean and standard deviation. What all clips
        have in common, and features that do not vary, then do not count.

    Returns
    -------
    ndarray
        float32 [N]; NaN where a clip has no features, 0 where one of the two vectors has the length 0.

    Raises
    ------
    SearchError
        The vector has another length.
    StoreError
        A pooled vector has a value that is not finite.
    """
    width = group.shape("pooled")[1]
    if len(vector) != width:
        raise SearchError(f"the query has {len(vector)} values, the clips have {width}")
    # What is subtracted from all vectors, and what they are then multiplied by.
    mean = np.zeros(width)
    scale = np.ones(width)
    if standard:
        mean, scale = _standardisation(group)
        vector = (vector - mean) * scale
    length = float(np.linalg.norm(vector))
    unit_vector = vector if length == 0 else vector / length

    scores = np.full(len(group.clip_ids), np.nan, np.float32)
    for start, block in group.blocks("pooled"):
        # Float32 becomes float64 here: the square of a large float32 would be infinite.
        rows = block - mean  # [clips of the block, D]
        rows *= scale
        # Sums are computed by einsum, as the last digits of `@` depend on the number of threads.
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        products = np.einsum("ij,j->i", rows, unit_vector)
        divisors = np.where(lengths > 0, lengths, 1)  # a vector of length 0 gets the cosine 0
        scores[start : start + len(rows)] = products / divisors

    scores[~group.usable] = np.nan
    if not np.isfinite(scores[group.usable]).all():
        raise StoreError(f"group {group.name}: a pooled vector has a value that is not finite")
    return scores


def best(scores: NDArray[np.float32], top: int) -> NDArray[np.int64]:
    """Return the rows with the `top` highest scores, best first, without rows whose score is NaN.

    Among equal scores, the lower row comes first.
    """
    rows = np.flatnonzero(~np.isnan(scores))
    if top < len(rows):  # to save time, the rows that are not needed are left out before sorting
        min_score = np.partition(scores[rows], -top)[-top]
        rows = rows[scores[rows] >= min_score]  # more than `top`, if the least score is there repeatedly
    best_first = np.argsort(-scores[rows], kind="stable")
    return rows[best_first[:top]]


def _standardisation(group: Group) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean of a group's pooled vectors, and the factors that give their features the deviation 1.

    Both have the shape [D]. The factor is 0 for features that do not vary, which leaves them out.
    """
    mean, deviation = group.moments
    varies = deviation > MIN_SPREAD * np.abs(mean)
    scale = np.zeros(len(mean))
    scale[varies] = 1 / deviation[varies]
    return mean, scale
