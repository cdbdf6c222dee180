"""Fit many linear support vector machines on one Gram matrix.

Concepts x C x folds are problems on subsets of the same clips: inner products are computed once, and each
problem is solved on its rows and columns of them. No probabilities are fitted: that would refit every problem
five times, and a signed distance needs none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.hyperplane import Floats, Hyperplanes
from obygaze_models.errors import ConceptError

TOLERANCE = 1e-3
"""Where the solver stops, as in libsvm and the published models; decisions follow it to about this much."""


@dataclass(frozen=True, eq=False, slots=True)
class SVMTask:
    """One SVM to fit: the clips, by row, whether each has the concept, and the price C of an error."""

    rows: NDArray[np.intp]
    present: NDArray[np.bool_]
    C: float


def svm_hyperplanes(X: Floats, problems: Sequence[SVMTask], *, balanced: bool = True) -> Hyperplanes:
    """Fit a linear SVM for each problem on subsets of the rows of X [N, D].

    Each is the one that ``SVC(kernel="linear")`` gives on the problem's rows alone, to rounding; with
    `balanced`, its two classes weigh alike.

    Raises
    ------
    ConceptError
        A problem has clips of one class only.
    """
    wide = np.ascontiguousarray(X, dtype=np.float64)
    weights = np.empty((len(problems), wide.shape[1]))
    intercepts = np.empty(len(problems))
    # One thread: the rounding of a product, and so the bytes of a result, would depend on their number.
    with one_blas_thread():
        gram = wide @ wide.T
        for number, problem in enumerate(problems):
            if problem.present.all() or not problem.present.any():
                raise ConceptError(f"SVM {number} has clips of one class only: nothing to tell apart")
            machine = SVC(
                kernel="precomputed",
                C=problem.C,
                class_weight="balanced" if balanced else None,
                tol=TOLERANCE,
                cache_size=500,
            )
            machine.fit(gram[np.ix_(problem.rows, problem.rows)], problem.present)
            support = wide[problem.rows[machine.support_]]
            weights[number] = machine.dual_coef_[0] @ support
            intercepts[number] = machine.intercept_[0]
    return Hyperplanes(weights, intercepts)


def crossfit_svm(
    X: Floats,
    present: NDArray[np.float64],
    folds: NDArray[np.int64],
    grid: Sequence[float],
    *,
    balanced: bool = True,
) -> NDArray[np.float64]:
    """Compute every clip's signed distance to each concept's SVM fitted on the other folds, for each C.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    present : ndarray of float64, shape [N, K]
        1 with the concept, 0 without, NaN for a clip that this concept's SVM is not fitted on.
    folds : ndarray of int64, shape [N]
        The fold that holds each clip out; whole movies.
    grid : sequence of float
        Values of C.

    Returns
    -------
    ndarray of float64, shape [len(grid), N, K]
        Out-of-fold distances, also of the clips that a concept is not fitted on.
    """
    names, n_concepts = np.unique(folds), present.shape[1]
    problems = []
    for C in grid:
        for fold in names:
            for concept in range(n_concepts):
                rows = np.flatnonzero((folds != fold) & ~np.isnan(present[:, concept]))
                problems.append(SVMTask(rows, present[rows, concept] == 1, C))
    planes = svm_hyperplanes(X, problems, balanced=balanced)
    distances = np.empty((len(grid), len(X), n_concepts))
    every = np.arange(len(problems)).reshape(len(grid), names.size, n_concepts)
    with one_blas_thread():
        for place in range(len(grid)):
            for number, fold in enumerate(names):
                held_out = folds == fold
                which = every[place, number]
                part = Hyperplanes(planes.weights[which], planes.intercepts[which])
                distances[place, held_out] = part.distances(X[held_out])
    return distances
