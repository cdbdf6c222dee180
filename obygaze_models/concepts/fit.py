"""Fit the hyperplanes of every kind of CAV, one column of presences per concept."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.hyperplane import Floats, Hyperplanes
from obygaze_models.concepts.ridge import mean_difference_hyperplanes, ridge_hyperplanes
from obygaze_models.concepts.svm import SVMTask, svm_hyperplanes
from obygaze_models.errors import ConceptError

Kind = Literal["svm", "logistic", "ridge", "mean_difference"]
KINDS: tuple[Kind, ...] = ("svm", "logistic", "ridge", "mean_difference")


def fit_hyperplanes(
    X: Floats,
    present: NDArray[np.float64],
    *,
    names: Sequence[str],
    kind: Kind,
    C: Sequence[float],
    balanced: bool = True,
) -> Hyperplanes:
    """Fit the hyperplane of each of K concepts.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    present : ndarray of float64, shape [N, K]
        1 with the concept, 0 without, NaN for a clip that this concept is not fitted on.
    names : sequence of str
        The concepts, for messages.
    kind : {"svm", "logistic", "ridge", "mean_difference"}
    C : sequence of float
        Inverse strength of the penalty for each concept; `mean_difference` has none.
    balanced : bool
        Whether an SVM or a logistic regression weighs the two classes alike; the others do by their offset.

    Raises
    ------
    ConceptError
        A concept is in all clips or in none, so that it cannot be learnt; the message names it.
    """
    for name, column in zip(names, present.T, strict=True):
        refuse_constant(name, column)
    if kind == "svm":
        problems = []
        for column, price in zip(present.T, C, strict=True):
            rows = np.flatnonzero(~np.isnan(column))
            problems.append(SVMTask(rows, column[rows] == 1, price))
        return svm_hyperplanes(X, problems, balanced=balanced)
    planes = []
    with one_blas_thread():
        for column, price in zip(present.T, C, strict=True):
            used = ~np.isnan(column)
            planes.append(_fit_one(X[used], column[used] == 1, kind, price, balanced))
    return Hyperplanes(
        np.concatenate([plane.weights for plane in planes]),
        np.concatenate([plane.intercepts for plane in planes]),
    )


def refuse_constant(name: str, column: NDArray[np.float64]) -> None:
    """Refuse a concept that is in all the clips it is fitted on, or in none."""
    used = column[~np.isnan(column)]
    if not used.size or used.min() == used.max():
        where = "all" if used.size and used[0] == 1 else "none"
        raise ConceptError(
            f"concept {name} is in {where} of the {used.size} clips to learn it from: "
            "a CAV needs clips of both classes"
        )


def _fit_one(X: Floats, present: NDArray[np.bool_], kind: Kind, C: float, balanced: bool) -> Hyperplanes:
    if kind == "ridge":
        return ridge_hyperplanes(X, present[:, None], C)
    if kind == "mean_difference":
        return mean_difference_hyperplanes(X, present[:, None])
    model = LogisticRegression(C=C, class_weight="balanced" if balanced else None, tol=1e-8, max_iter=10_000)
    model.fit(X.astype(np.float64), present)
    return Hyperplanes(model.coef_, model.intercept_)
