"""Fit ridge regression of a concept's presence; leave each group out in closed form.

Its direction is a regularised discriminant's; its offset is put midway between the two classes' mean
projections, so that a rare concept is not called absent everywhere.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.hyperplane import Floats, Hyperplanes
from obygaze_models.errors import ConceptError


def ridge_hyperplanes(X: Floats, present: NDArray[np.bool_], C: float) -> Hyperplanes:
    """Minimise sum of (y - w x - b)^2 + ||w||^2 / C for each concept, y in {0, 1}; then move b midway.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    present : ndarray of bool, shape [N, K]
        Both values in each column.
    C : float
        Inverse of the penalty, as in an SVM.
    """
    wide = np.asarray(X, dtype=np.float64)
    centred, y = wide - wide.mean(axis=0), present - present.mean(axis=0)
    with one_blas_thread():
        # The smaller of the two systems: of features, or of clips (the push-through identity).
        if len(centred) < centred.shape[1]:
            gram = centred @ centred.T
            weights = linalg.solve(gram + np.eye(len(gram)) / C, y, assume_a="pos").T @ centred
        else:
            moments = centred.T @ centred
            weights = linalg.solve(moments + np.eye(len(moments)) / C, centred.T @ y, assume_a="pos").T
    return Hyperplanes(weights, _midway(weights, wide, present))


def ridge_leave_group_out(
    X: Floats, present: NDArray[np.bool_], groups: NDArray[np.generic], C: float
) -> tuple[NDArray[np.generic], list[Hyperplanes]]:
    """Fit as `ridge_hyperplanes` on all groups but one, for each group, with one factorisation.

    With P = Z'Z + R of the whole, Z = [1 X], leaving the rows Z_g out changes the solution beta by
    ``-inv(P) Z_g' inv(I - Z_g inv(P) Z_g') (y_g - Z_g beta)`` (the block form of the leave-one-out identity,
    by Woodbury).

    Returns
    -------
    names : ndarray, shape [G]
        The groups, sorted.
    hyperplanes : list of Hyperplanes
        Those fitted without each group.

    Raises
    ------
    ConceptError
        Without some group a concept has clips of one class only.
    """
    wide = np.asarray(X, dtype=np.float64)
    centred = wide - wide.mean(axis=0)
    inverse, moments = _augmented(centred, present, C)
    whole = inverse @ moments
    names, number = np.unique(groups, return_inverse=True)
    planes = []
    for group in range(names.size):
        out = number == group
        kept = present[~out]
        constant = kept.all(axis=0) | ~kept.any(axis=0)
        if constant.any():
            raise ConceptError(
                f"without group {names[group]} concept {int(np.argmax(constant))} has clips of one class only"
            )
        Z = np.column_stack([np.ones(int(out.sum())), centred[out]])
        # One thread: the rounding of a product would depend on their number.
        with one_blas_thread():
            lifted = inverse @ Z.T
            residuals = present[out] - Z @ whole
            left = whole - lifted @ linalg.solve(np.eye(len(Z)) - Z @ lifted, residuals, assume_a="pos")
            weights = np.ascontiguousarray(left[1:].T)
            planes.append(Hyperplanes(weights, _midway(weights, wide[~out], kept)))
    return names, planes


def mean_difference_hyperplanes(X: Floats, present: NDArray[np.bool_]) -> Hyperplanes:
    """Take the difference of the two classes' means as direction, and put b midway between them."""
    wide = np.asarray(X, dtype=np.float64)
    positive, negative = _class_means(wide, present)
    weights = positive - negative
    return Hyperplanes(weights, _midway(weights, wide, present))


def _augmented(
    centred: NDArray[np.float64], present: NDArray[np.bool_], C: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give inv(Z'Z + R) and Z'y for Z = [1 X]; the intercept is not penalised."""
    Z = np.column_stack([np.ones(len(centred)), centred])
    penalty = np.full(Z.shape[1], 1 / C)
    penalty[0] = 0.0
    with one_blas_thread():
        inverse: NDArray[np.float64] = linalg.inv(Z.T @ Z + np.diag(penalty))
        return inverse, Z.T @ present.astype(np.float64)


def _class_means(
    X: NDArray[np.float64], present: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean of the clips with, and of those without, each concept: [K, D] each."""
    share = present.astype(np.float64)
    positive = (share / share.sum(axis=0)).T @ X
    negative = ((1 - share) / (1 - share).sum(axis=0)).T @ X
    return positive, negative


def _midway(
    weights: NDArray[np.float64], X: NDArray[np.float64], present: NDArray[np.bool_]
) -> NDArray[np.float64]:
    positive, negative = _class_means(X, present)
    offsets: NDArray[np.float64] = -np.einsum("kd,kd->k", weights, (positive + negative) / 2)
    return offsets
