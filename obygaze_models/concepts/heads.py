"""Define classifier heads on concept values, a linear model or a tree, and fit them."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from obygaze_models.concepts.cav_fitting import Floats
from obygaze_models.concepts.head_scores import head_scores
from obygaze_models.models import few_features
from obygaze_models.models.choices import Grid, Threshold
from obygaze_models.models.scaling import MAX_LIMIT, ClippedScaler
from obygaze_models.protocol.held_out import logistic

HeadName = Literal["logistic", "elastic_net", "tree"]

CANDIDATES: Mapping[HeadName, Mapping[str, Sequence[float]]] = {
    "logistic": {"C": (0.001, 0.01, 0.1, 1.0, 10.0)},
    "elastic_net": {"C": (0.001, 0.01, 0.1, 1.0, 10.0)},
    "tree": {"max_depth": (1, 2, 3, 4, 6, 8)},
}
"""The parameter that inner folds choose for each head, and its candidate values.

Without inner folds the middle value is used: 0.1 or 3.
"""


def make_head(head: HeadName | BaseEstimator, seed: int) -> BaseEstimator:
    """Make the unfitted estimator of a head, the part of a concept model that scores clips by concept values.

    It is a copy of the given estimator, or the named one. A named head has one parameter that inner folds may
    choose (`choice_for_head`); until they do, it has the middle one of its `CANDIDATES`.
    """
    if isinstance(head, BaseEstimator):
        head._validate_params()
        return clone(head)

    values = CANDIDATES[head][_parameter_of(head)]
    # The lower of the two middle values if their number is even.
    value = values[(len(values) - 1) // 2]
    if head == "tree":
        # Leaves have at least 10 clips, since the share of positives among fewer is imprecise.
        return DecisionTreeClassifier(max_depth=int(value), min_samples_leaf=10, random_state=seed)

    # Tolerances are so small that a fit does not depend on where it stopped; saga, the only solver that
    # takes both penalties, needs more steps.
    if head == "elastic_net":
        return LogisticRegression(
            C=value, l1_ratio=0.5, solver="saga", tol=1e-5, max_iter=20_000, random_state=seed
        )
    return LogisticRegression(C=value, solver="newton-cholesky", tol=1e-8, max_iter=10_000)


def choice_for_head(head: HeadName | BaseEstimator) -> Grid | Threshold:
    """Return what inner folds choose for a head: the threshold, and for a named head also its parameter.

    A head that is given by name, such as "tree", has a parameter with several candidates, of which the best
    is chosen with the threshold (`Grid`). A head that the user gives as an estimator keeps its own
    parameters: only the threshold is chosen (`Threshold`).
    """
    if isinstance(head, BaseEstimator):
        return Threshold()
    parameter = _parameter_of(head)
    # The name of the parameter as scikit-learn nests it: the head is the `estimator` in a `ConceptHead`.
    return Grid(f"estimator__{parameter}", tuple(CANDIDATES[head][parameter]))


def _parameter_of(head: HeadName) -> str:
    """Return the name of the one parameter of a named head that inner folds choose, such as "C"."""
    (parameter,) = CANDIDATES[head]
    return parameter


@dataclass(eq=False, repr=False)
class ConceptHead(ClassifierMixin, BaseEstimator):
    """Score clips by their concept values, and by a residual in the features if there is one.

    Parameters
    ----------
    estimator : estimator
        A linear model or a tree of scikit-learn.
    n_concepts : int
        The first columns of X are concept values; the rest, features for the residual.
    residual_C : float, optional
        Inverse strength of the residual's penalty; None for no residual.

    Attributes
    ----------
    estimator_ : estimator
    residual_ : Residual or None
    """

    estimator: Any
    n_concepts: int
    residual_C: float | None = None  # noqa: N815  as scikit-learn spells it

    def fit(self, X: Floats, y: NDArray[np.int64]) -> Self:
        """Fit the head on concept values, and the residual on features, side by side in X [N, K + D].

        Labels y [N] are 0 or 1.
        """
        values = X[:, : self.n_concepts]
        self.classes_ = np.array([0, 1])
        # The bottleneck has validated values and parameters; to do so again takes a fifth of a small fit. For
        # the same reason the estimator is not cloned: a fit only sets new attributes of a shallow copy.
        with config_context(
            assume_finite=True, skip_parameter_validation=True, enable_metadata_routing=False
        ):
            self.estimator_ = copy(self.estimator).fit(values, y)

        self.residual_ = None
        if self.residual_C is not None:
            logit = head_scores(self.estimator_, values)
            self.residual_ = fit_residual(X[:, self.n_concepts :], y, logit, self.residual_C)
        return self

    @staticmethod
    def logits_of_subsets(
        heads: Sequence["ConceptHead"], X: Floats, y: NDArray[np.int64], subsets: NDArray[np.bool_]
    ) -> NDArray[np.float64] | None:
        """Fit several heads on each of F subsets of the clips, all at once, and compute logits of all clips.

        Parameters
        ----------
        heads : sequence of ConceptHead, length H
            Heads that differ in one parameter only.
        X : ndarray, shape [N, K]
            Concept values.
        y : ndarray of int, shape [N]
        subsets : ndarray of bool, shape [N, F]
            Each column marks the clips of a subset.

        Returns
        -------
        ndarray, shape [H, F, N], or None
            None if the heads are not plain logistic regressions: others cannot be fitted at once.
        """
        if not all(head._is_plain_logistic() for head in heads):
            return None

        # There are H F fits: all subsets with the first head, all with the second, and so on.
        n_subsets = subsets.shape[1]
        C_of_heads = [head.estimator.C for head in heads]
        C_of_fits = np.repeat(C_of_heads, n_subsets).tolist()
        subsets_of_fits = np.tile(subsets, (1, len(heads)))  # [N, H F]

        values = X[:, : heads[0].n_concepts].astype(np.float64)
        logits = few_features.logits_of_subsets(values, y, subsets_of_fits, C_of_fits)  # [H F, N]
        return logits.reshape(len(heads), n_subsets, len(y))

    def _is_plain_logistic(self) -> bool:
        """Tell whether the head is the logistic regression of `make_head`, with any C and no residual."""
        if self.residual_C is not None or type(self.estimator) is not LogisticRegression:
            return False
        logistic_head = make_head("logistic", seed=0).set_params(C=self.estimator.C)
        return bool(self.estimator.get_params() == logistic_head.get_params())

    def decision_function(self, X: Floats) -> NDArray[np.float64]:
        """Compute the logit [N] of each row of X [N, K + D]."""
        scores = head_scores(self.estimator_, X[:, : self.n_concepts])
        if self.residual_ is None:
            return scores
        return scores + self.residual_.scores(X[:, self.n_concepts :])


@dataclass(frozen=True, eq=False, slots=True)
class Residual:
    """A linear term of the features, added to the head's logit, for what the concepts do not explain.

    Attributes
    ----------
    scaler : ClippedScaler
    weights : ndarray, shape [D]
    intercept : float
    """

    scaler: ClippedScaler
    weights: NDArray[np.float64]
    intercept: float

    def scores(self, X: Floats) -> NDArray[np.float64]:
        """Compute the term [N] of each row of X [N, D]."""
        return self.scaler.transform(X) @ self.weights + self.intercept


def fit_residual(X: Floats, y: NDArray[np.int64], logit: NDArray[np.float64], C: float) -> Residual:
    """Fit a linear term r(X) of features X [N, D] that is added to the head's fixed logit [N].

    It minimises the log loss of ``logit + r(X)`` for labels y [N], plus ||w||^2 / (2 C) with the weights w of
    standardised features (the residual of Yuksekgonul et al., ICLR 2023, PCBM-h, as one logit).
    """
    # The scaler is to standardise only: its limit is so wide that no value is clipped.
    scaler = ClippedScaler(MAX_LIMIT)
    standard = scaler.fit_transform(X)

    equal_clip_weights = np.ones(len(y))
    weights_and_intercept = logistic(
        standard,
        y,
        equal_clip_weights,
        offsets=logit,  # fixed; the term that is fitted is added to it
        penalty=1 / C,
        lower_bound=None,  # weights may be negative
    )
    weights = weights_and_intercept[:-1]
    intercept = weights_and_intercept[-1]
    return Residual(scaler, weights.copy(), intercept)
