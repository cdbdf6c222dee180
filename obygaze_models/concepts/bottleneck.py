"""The post-hoc concept bottleneck: from features to concepts, and from concepts alone to the label."""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.bank import ConceptBank, crossfit
from obygaze_models.concepts.errors import ConceptError
from obygaze_models.concepts.explanation import Explanation, explain_score
from obygaze_models.concepts.heads import (
    HeadName,
    Residual,
    candidates,
    default_candidate,
    fit_residual,
    head_scores,
    log_loss,
)
from obygaze_models.concepts.hyperplane import Floats
from obygaze_models.probes.labels import encode_labels
from obygaze_models.protocol.selection import best_threshold, inner_folds

ABOVE_ZERO = float(np.nextafter(0.0, 1.0))
"""The threshold that calls a clip positive when its logit is more than 0."""


class ConceptBottleneck(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A head that sees a clip through its concepts only (Yuksekgonul et al., ICLR 2023).

    With presences of concepts, `fit` learns a `ConceptBank` first. The head is fitted on cross-fitted values:
    each training clip's signed distances to CAVs that were learnt without its movie's inner fold, less their
    mean and over their deviation. Values of the clips a CAV was fitted on would flatter it. Without
    presences, the columns of X are taken for concept values, and the head is fitted on them as they are.

    With movies, the head's one hyper-parameter (see `CANDIDATES`) is the one with the lowest log loss in an
    inner loop over folds of movies, and the threshold the one with the highest f1_pos on the inner scores of
    that loop. Without, the middle candidate is taken and clips with a positive logit are called positive.

    Parameters
    ----------
    head : {"logistic", "elastic_net", "tree"} or estimator
        Or a linear model or tree of scikit-learn, taken as it is.
    bank : ConceptBank, optional
        How CAVs are learnt; its `values` must be "standardised". A default one when not given.
    residual : bool
        Whether to add to the logit a linear term in the features, fitted on what the head leaves.
    residual_C : float
        Inverse strength of its penalty.
    inner_folds : int
        Inner folds of movies; fewer where there are fewer movies.
    random_state : int
        Seed of the tree and of the elastic net's solver.

    Attributes
    ----------
    classes_ : ndarray, shape [2]
        The negative and the positive label.
    n_features_in_ : int
        D.
    concepts_ : tuple of str
    bank_ : ConceptBank or None
        Fitted on all training clips.
    head_ : estimator
    residual_ : Residual or None
    train_values_ : ndarray of float64, shape [N, K]
        The concept values that the head was fitted on.
    threshold_ : float
        The logit from which on a clip is called positive.
    inner_losses_ : dict of str to float
        With movies only: the inner log loss of each candidate.
    inner_scores_ : ndarray, shape [N]
        With movies only: the inner out-of-fold logit of each training clip.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "head": [StrOptions({"logistic", "elastic_net", "tree"}), BaseEstimator],
        "bank": [ConceptBank, None],
        "residual": ["boolean"],
        "residual_C": [Interval(Real, 0, None, closed="neither")],
        "inner_folds": [Interval(Integral, 2, None, closed="left")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        head: HeadName | BaseEstimator = "logistic",
        *,
        bank: ConceptBank | None = None,
        residual: bool = False,
        residual_C: float = 0.01,
        inner_folds: int = 4,
        random_state: int = 0,
    ) -> None:
        self.head = head
        self.bank = bank
        self.residual = residual
        self.residual_C = residual_C
        self.inner_folds = inner_folds
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        """Two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        *,
        present: ArrayLike | None = None,
    ) -> Self:
        """Fit concepts and head.

        Parameters
        ----------
        X : array-like, shape [N, D]
            Features; or, without `present`, concept values.
        y : array-like, shape [N]
            Two labels; the second in sorted order is the positive one.
        groups : array-like, shape [N], optional
            The movie of each clip; needed with `present`.
        present : array-like, shape [N, K], optional
            Presence of each concept, as `ConceptBank` takes it.

        Raises
        ------
        ConceptError
            Presences without movies; a residual without presences; or a concept, named, that some inner fold
            leaves with one class.
        """
        self._validate_params()
        features, y = validate_data(self, X, y, dtype=(np.float64, np.float32))
        self.classes_, labels = encode_labels(y, type(self).__name__)
        folds = None
        if groups is not None:
            movies = check_array(groups, ensure_2d=False, dtype=None)
            check_consistent_length(features, movies)
            folds = inner_folds(labels, movies, self.inner_folds)
        self.__dict__.pop("inner_losses_", None)
        self.__dict__.pop("inner_scores_", None)
        with one_blas_thread():
            values = self._learn_concepts(features, present, folds)
            chosen, self.threshold_ = self._select(features, values, labels, folds)
            self.head_, self.residual_ = self._fit_head(chosen, features, values, labels)
        self.train_values_ = values
        return self

    def concept_values(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the values [N, K] that the head reads of each clip of X [N, D]."""
        check_is_fitted(self)
        return self._values(self._checked(X))

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the logit [N] of each clip of X [N, D]."""
        check_is_fitted(self)
        features = self._checked(X)
        return self._scores(features, self._values(features))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the probability [N, 2] of each class, the negative one first."""
        positive = expit(self.decision_function(X))
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Call positive each clip of X [N, D] whose logit reaches the threshold."""
        called = self.decision_function(X) >= self.threshold_
        labels: NDArray[Any] = self.classes_[called.astype(np.intp)]
        return labels

    def explain(self, X: ArrayLike) -> Explanation:
        """Take apart the score of one clip, X [D] or [1, D].

        Raises
        ------
        ConceptError
            There is more than one clip.
        """
        check_is_fitted(self)
        rows = self._checked(np.atleast_2d(np.asarray(X)))
        if len(rows) != 1:
            raise ConceptError(f"explain takes one clip at a time: found {len(rows)}")
        return explain_score(
            self.head_,
            self._values(rows)[0],
            self.train_values_,
            self.concepts_,
            threshold=self.threshold_,
            residual=0.0 if self.residual_ is None else float(self.residual_.scores(rows)[0]),
        )

    def intervene(self, X: ArrayLike, quantiles: Mapping[str, float]) -> NDArray[np.float64]:
        """Compute the logit [N] of each clip if its value on some concepts were another.

        Parameters
        ----------
        X : array-like, shape [N, D]
        quantiles : mapping of str to float
            For each concept to set, the quantile (0 to 1) of the training clips' values to set it to. Other
            concepts, and the residual, stay as they are.

        Raises
        ------
        ConceptError
            A concept is unknown, or a quantile outside 0 to 1.
        """
        check_is_fitted(self)
        features = self._checked(X)
        values = self._values(features).copy()
        for concept, quantile in quantiles.items():
            if concept not in self.concepts_:
                raise ConceptError(
                    f"unknown concept {concept!r}: expected one of {', '.join(self.concepts_)}"
                )
            if not 0 <= quantile <= 1:
                raise ConceptError(f"concept {concept}: a quantile is between 0 and 1, found {quantile}")
            column = self.concepts_.index(concept)
            values[:, column] = np.quantile(self.train_values_[:, column], quantile)
        return self._scores(features, values)

    def _checked(self, X: ArrayLike) -> Floats:
        features: Floats = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        return features

    def _learn_concepts(
        self, X: Floats, present: ArrayLike | None, folds: NDArray[np.int64] | None
    ) -> NDArray[np.float64]:
        """Learn the bank, if there is one to learn, and give the training clips' concept values [N, K]."""
        if present is None:
            if self.residual:
                raise ConceptError("a residual needs features beside the concepts: give `present`")
            self.bank_, self.concepts_ = None, self._column_names()
            return X.astype(np.float64)
        if folds is None:
            raise ConceptError("concepts are cross-fitted by movie: give the movies (groups)")
        bank = ConceptBank() if self.bank is None else clone(self.bank)
        if bank.values != "standardised":
            raise ConceptError(
                f"a bottleneck's concept values are standardised distances, not {bank.values}: for others, "
                "transform by the bank first and fit the head on its values"
            )
        columns = check_array(present, ensure_2d=False, ensure_all_finite="allow-nan", dtype=np.float64)
        check_consistent_length(X, columns)
        columns = columns.reshape(len(columns), -1)
        distances = crossfit(bank, X, columns, folds)
        self.bank_ = bank.fit(X, columns)
        self.concepts_ = tuple(self.bank_.concepts_.tolist())
        # New clips are at the cross-fitted distances' scale, not at the flattering one of fitted clips.
        self.bank_.mean_, scale = distances.mean(axis=0), distances.std(axis=0)
        self.bank_.scale_ = np.where(scale > 1e-12 * (1 + np.abs(self.bank_.mean_)), scale, 1.0)
        standard: NDArray[np.float64] = (distances - self.bank_.mean_) / self.bank_.scale_
        return standard

    def _column_names(self) -> tuple[str, ...]:
        names: Sequence[str] | None = getattr(self, "feature_names_in_", None)
        return tuple(
            f"concept{number}" if names is None else str(names[number])
            for number in range(self.n_features_in_)
        )

    def _select(
        self,
        X: Floats,
        values: NDArray[np.float64],
        y: NDArray[np.int64],
        folds: NDArray[np.int64] | None,
    ) -> tuple[BaseEstimator, float]:
        """Choose head and threshold by inner folds of movies, where there are any."""
        if folds is None:
            return default_candidate(self.head, self.random_state), ABOVE_ZERO
        listed = candidates(self.head, self.random_state)
        scores_of = []
        for _, candidate in listed:
            scores = np.empty(len(y))
            for fold in np.unique(folds):
                out = folds == fold
                head, residual = self._fit_head(candidate, X[~out], values[~out], y[~out])
                scores[out] = _total(head, residual, X[out], values[out])
            scores_of.append(scores)
        losses = [log_loss(y, scores) for scores in scores_of]
        best = int(np.argmin(losses))
        self.inner_losses_ = {name: loss for (name, _), loss in zip(listed, losses, strict=True)}
        self.inner_scores_ = scores_of[best]
        return listed[best][1], best_threshold(y, scores_of[best])

    def _fit_head(
        self, candidate: BaseEstimator, X: Floats, values: NDArray[np.float64], y: NDArray[np.int64]
    ) -> tuple[BaseEstimator, Residual | None]:
        head = clone(candidate).fit(values, y)
        logit = head_scores(head, values)
        return head, fit_residual(X, y, logit, self.residual_C) if self.residual else None

    def _values(self, X: Floats) -> NDArray[np.float64]:
        values: NDArray[np.float64] = X.astype(np.float64) if self.bank_ is None else self.bank_.transform(X)
        return values

    def _scores(self, X: Floats, values: NDArray[np.float64]) -> NDArray[np.float64]:
        with one_blas_thread():
            return _total(self.head_, self.residual_, X, values)


def _total(
    head: BaseEstimator, residual: Residual | None, X: Floats, values: NDArray[np.float64]
) -> NDArray[np.float64]:
    scores = head_scores(head, values)
    return scores if residual is None else scores + residual.scores(X)
