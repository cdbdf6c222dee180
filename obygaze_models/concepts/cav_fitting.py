"""Define hyperplanes, the common form of all concept activation vectors (CAVs), and fit them.

Four kinds: linear support vector machines, logistic regression, ridge regression of a concept's presence, and
the difference of the two classes' means. The last two have their offset midway between the two classes' mean
projections, so that a rare concept is not called absent everywhere.

SVMs of many concepts, penalties and folds are problems on subsets of the same clips. Inner products are
computed once, and each problem is solved on its rows and columns of them. No probabilities are fitted: that
would refit every problem five times, and a signed distance needs none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from obygaze_features.arguments import checked
from obygaze_features.text import counted
from obygaze_models.blas import one_blas_thread
from obygaze_models.errors import ConceptError

Floats = NDArray[np.floating[Any]]
Kind = Literal["svm", "logistic", "ridge", "mean_difference"]
KINDS: tuple[Kind, ...] = ("svm", "logistic", "ridge", "mean_difference")

SVM_TOLERANCE = 1e-3
"""Tolerance of the SVM solver: libsvm's default, as in the published models. Decisions are about as exact."""

SVM_CACHE_MB = 500
"""Memory of the SVM solver for rows of the kernel; the default of 200 MB holds fewer clips."""


@dataclass(frozen=True, eq=False, slots=True)
class Hyperplanes:
    """K hyperplanes w x + b = 0, each with its concept on the positive side.

    Attributes
    ----------
    weights : ndarray of float64, shape [K, D]
    intercepts : ndarray of float64, shape [K]
    """

    weights: NDArray[np.float64]
    intercepts: NDArray[np.float64]

    def one(self, index: int) -> "Hyperplanes":
        """Select one hyperplane by its index, as `Hyperplanes` with K = 1."""
        return Hyperplanes(self.weights[[index]], self.intercepts[[index]])

    @property
    def norms(self) -> NDArray[np.float64]:
        """Length of each weight vector [K]."""
        return np.asarray(np.sqrt(np.einsum("kd,kd->k", self.weights, self.weights)))

    def decisions(self, X: Floats) -> NDArray[np.float64]:
        """Compute w x + b for each row of X [N, D] and each hyperplane: [N, K]."""
        return X.astype(np.float64) @ self.weights.T + self.intercepts

    def distances(self, X: Floats) -> NDArray[np.float64]:
        """Compute the signed distance (w x + b) / ||w|| of each row of X [N, D] to each hyperplane: [N, K].

        Distances are in the units of X. For a hyperplane with w = 0 the value is b.
        """
        lengths = self.norms
        return self.decisions(X) / np.where(lengths > 0, lengths, 1.0)


# --- hyperplanes of any kind
# ---------------------------------------------------------------------------


def fit_hyperplanes(
    X: Floats,
    present: NDArray[np.float64],
    *,
    names: Sequence[str],
    kind: Kind,
    C: float,
    balanced: bool = True,
) -> Hyperplanes:
    """Fit a hyperplane for each of K concepts that separates clips with and without it.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    present : ndarray of float64, shape [N, K]
        1 for clips with the concept, 0 for clips without; NaN for clips that its hyperplane is not fitted on.
    names : sequence of str
        The concepts, for messages.
    kind : {"svm", "logistic", "ridge", "mean_difference"}
    C : float
        Inverse strength of the penalty; not used by `mean_difference`.
    balanced : bool
        Whether SVMs and logistic regressions weigh both classes equally. Hyperplanes of the other kinds
        always do: they lie midway between the two classes.

    Raises
    ------
    ConceptError
        A concept is in all clips or in none, so that it cannot be learnt; the message names it.
    """
    for name, column in zip(names, present.T, strict=True):
        refuse_constant(name, column)

    if kind == "svm":
        # All SVMs are fitted together, as they share the inner products of clips.
        problems = []
        for column in present.T:
            rows = np.flatnonzero(~np.isnan(column))
            problems.append((rows, column[rows] == 1, C))
        return svm_hyperplanes(X, problems, balanced=balanced)

    hyperplanes = []
    with one_blas_thread():
        for column in present.T:
            is_known = ~np.isnan(column)
            is_present = column[is_known] == 1
            features = X[is_known]
            if kind == "ridge":
                hyperplanes.append(ridge_hyperplanes(features, is_present[:, None], C))
            elif kind == "mean_difference":
                hyperplanes.append(mean_difference_hyperplanes(features, is_present[:, None]))
            else:
                hyperplanes.append(_logistic_hyperplane(features, is_present, C, balanced=balanced))

    weights = np.concatenate([hyperplane.weights for hyperplane in hyperplanes])
    intercepts = np.concatenate([hyperplane.intercepts for hyperplane in hyperplanes])
    return Hyperplanes(weights, intercepts)


def _logistic_hyperplane(X: Floats, present: NDArray[np.bool_], C: float, *, balanced: bool) -> Hyperplanes:
    """Fit the hyperplane of one concept by logistic regression, given its presence [N] in clips X [N, D].

    C is the inverse strength of the penalty. With `balanced`, both classes weigh the same.
    """
    class_weight = "balanced" if balanced else None
    model = LogisticRegression(C=C, class_weight=class_weight, tol=1e-8, max_iter=10_000)
    model.fit(X.astype(np.float64), present)
    return Hyperplanes(model.coef_, model.intercept_)


def refuse_constant(name: str, column: NDArray[Any]) -> None:
    """Raise if a concept is present in all clips that it is learnt from, or in none of them.

    `column` [N] holds its presence in each clip, 1 or 0, and NaN for clips that it is not learnt from.
    """
    presences = column[~np.isnan(column)]
    n_clips = presences.size
    n_present = int((presences == 1).sum())
    if 0 < n_present < n_clips:
        return
    how_many = "all" if n_present else "none"
    raise ConceptError(
        f"concept {name} is in {how_many} of the {counted(n_clips, 'clip')} to learn it from: a CAV needs "
        "clips of both classes"
    )


# --- support vector machines
# ---------------------------------------------------------------------------


Problem = tuple[NDArray[np.intp], NDArray[np.bool_], float]
"""One SVM to fit: the rows of its clips in X, whether each of them has the concept, and its parameter C."""


@checked
def svm_hyperplanes(X: Floats, problems: Sequence[Problem], *, balanced: bool = True) -> Hyperplanes:
    """Fit several linear SVMs, each on some rows of X; the inner products of all rows are computed once.

    Each equals ``SVC(kernel="linear")`` on these rows alone, to rounding.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    problems : sequence of (rows, present, C)
        For each SVM to fit: the rows of X to fit on, whether each of these rows has the concept, and C, which
        weighs errors against the width of the margin.
    balanced : bool
        Whether the two classes weigh the same.

    Raises
    ------
    ConceptError
        A problem has clips of one class only.
    """
    X64 = np.ascontiguousarray(X, dtype=np.float64)
    weights = np.empty((len(problems), X64.shape[1]))
    intercepts = np.empty(len(problems))
    # One thread, since the rounding of products depends on the number of threads.
    with one_blas_thread():
        inner_products = X64 @ X64.T  # [N, N]
        for number, (rows, present, C) in enumerate(problems):
            refuse_constant(f"of SVM {number}", present)
            machine = SVC(
                kernel="precomputed",
                C=C,
                class_weight="balanced" if balanced else None,
                tol=SVM_TOLERANCE,
                cache_size=SVM_CACHE_MB,
            )
            machine.fit(inner_products[np.ix_(rows, rows)], present)

            # The weights are the sum of the support vectors, each times its coefficient.
            support_vectors = X64[rows[machine.support_]]
            weights[number] = machine.dual_coef_[0] @ support_vectors
            intercepts[number] = machine.intercept_[0]
    return Hyperplanes(weights, intercepts)


# --- ridge regression and differences of means
# ---------------------------------------------------------------------------


@checked
def ridge_hyperplanes(X: Floats, present: NDArray[np.bool_], C: float) -> Hyperplanes:
    """Fit the hyperplane of each concept by ridge regression of its presence.

    w minimises the sum of (y - w x - b)^2 + ||w||^2 / C with y in {0, 1}; b is then set midway between the
    mean projections of the two classes.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    present : ndarray of bool, shape [N, K]
        Presence of each concept; both values occur in each column.
    C : float
        Inverse strength of the penalty, as in an SVM.
    """
    X64 = np.asarray(X, dtype=np.float64)
    # Centring both leaves the weights as they are, and removes the intercept from the problem.
    centred_features = X64 - X64.mean(axis=0)
    centred_present = present - present.mean(axis=0)
    with one_blas_thread():
        weights = _ridge_weights(centred_features, centred_present, C)
    return Hyperplanes(weights, _midway_intercepts(weights, X64, present))


def _ridge_weights(A: NDArray[np.float64], y: NDArray[np.float64], C: float) -> NDArray[np.float64]:
    """Compute the weights [K, D] of ridge regression of y [N, K] on A [N, D], with inverse penalty C.

    With A' the transpose of A, they are ``inv(A' A + I / C) A' y``, a system of D equations, or by the
    Woodbury identity ``A' inv(A A' + I / C) y``, a system of N equations. The smaller system is solved.
    """
    n_clips, n_features = A.shape
    if n_features <= n_clips:
        matrix = A.T @ A + np.eye(n_features) / C
        weights: NDArray[np.float64] = linalg.solve(matrix, A.T @ y, assume_a="pos")
        return weights.T

    matrix = A @ A.T + np.eye(n_clips) / C
    clip_coefficients = linalg.solve(matrix, y, assume_a="pos")  # [N, K]
    return np.asarray(clip_coefficients.T @ A)


def mean_difference_hyperplanes(X: Floats, present: NDArray[np.bool_]) -> Hyperplanes:
    """Fit the hyperplane midway between the means of clips with and without each concept.

    Its direction is the difference of the two means. X is of shape [N, D]; `present` [N, K] holds the
    presence of each concept.
    """
    X64 = np.asarray(X, dtype=np.float64)
    mean_with, mean_without = _class_means(X64, present)
    weights = np.subtract(mean_with, mean_without)
    return Hyperplanes(weights, _midway_intercepts(weights, X64, present))


def _class_means(
    X: NDArray[np.float64], present: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute the mean of the clips X [N, D] with each concept, and of the clips without it: [K, D] each."""
    ones_of_present = present.astype(np.float64)
    ones_of_absent = 1 - ones_of_present
    # Each of the n clips of a class weighs 1 / n: the weighted sum is the mean.
    mean_with = (ones_of_present / ones_of_present.sum(axis=0)).T @ X
    mean_without = (ones_of_absent / ones_of_absent.sum(axis=0)).T @ X
    return mean_with, mean_without


def _midway_intercepts(
    weights: NDArray[np.float64], X: NDArray[np.float64], present: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Compute intercepts [K] that put hyperplanes midway between the mean projections of the two classes.

    Parameters
    ----------
    weights : ndarray, shape [K, D]
        Directions of the hyperplanes.
    X : ndarray, shape [N, D]
    present : ndarray of bool, shape [N, K]
        Presence of each concept.
    """
    mean_with, mean_without = _class_means(X, present)
    middle = (mean_with + mean_without) / 2
    # The intercept is minus the projection of the middle on the direction: a dot product for each concept.
    return np.asarray(-np.einsum("kd,kd->k", weights, middle))
