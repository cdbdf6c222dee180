"""The zoo's probe: a two-layer perceptron on frozen features."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from obygaze_models.probes.labels import encode_labels
from obygaze_models.probes.network import Floats
from obygaze_models.probes.training import Curve, Schedule, Trained, train
from obygaze_models.protocol.selection import best_threshold, inner_folds


class MLPProbe(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A perceptron with one hidden layer of rectifiers and one logit, trained with Adam on cross-entropy.

    What is chosen, and on which clips, depends on what `fit` is given:

    - ``groups`` (the movies): whole movies are held out in `inner_folds` inner folds. Each inner model keeps
    the epoch
      with the lowest loss on the movies it did not see; the threshold is the one with the highest f1_pos on
      the inner out-of-fold scores; the model kept is then trained on all clips for the median of the inner
      epochs.
    - ``X_val, y_val``: the epoch with the lowest loss on them is kept; the threshold stays 0.
    - neither: `max_epochs` epochs, the last kept; the threshold stays 0.

    Features are standardised inside `fit`, by the moments of the clips each model is trained on.

    Parameters
    ----------
    n_hidden : int
        Hidden units.
    learning_rate : float
        Adam's step size.
    batch_size : int
        Clips a step; an epoch's last batch may be smaller.
    min_epochs, max_epochs : int
        Fewest and most epochs. `max_epochs` wins where it is the smaller.
    patience : int
        Epochs without a lower validation loss after which training stops.
    inner_folds : int
        Inner folds when movies are given; fewer where there are fewer movies.
    random_state : int
        Seed of the initialisation and of the order of clips: the same seed gives the same bytes, whatever the
        number of threads (training and prediction hold BLAS to one; the products are too small to gain from
        more).

    Attributes
    ----------
    classes_ : ndarray, shape [2]
        The negative and the positive label.
    n_features_in_ : int
        D.
    parameters_ : ndarray, shape [P]
        The kept parameters; `obygaze_models.probes.network.layers` cuts them into layers.
    mean_, scale_ : ndarray, shape [D]
        Moments by which features are standardised.
    threshold_ : float
        The logit from which on a clip is called positive.
    n_epochs_ : int
        Epochs that made the kept parameters.
    curves_ : tuple of Curve
        A curve for each inner fold, or the one curve of the model itself.
    inner_scores_ : ndarray, shape [N]
        With movies only: the inner out-of-fold logit of each training clip.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_hidden": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "min_epochs": [Interval(Integral, 1, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "inner_folds": [Interval(Integral, 2, None, closed="left")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_hidden: int = 128,
        *,
        learning_rate: float = 1e-3,
        batch_size: int = 16,
        min_epochs: int = 5,
        max_epochs: int = 100,
        patience: int = 5,
        inner_folds: int = 4,
        random_state: int = 0,
    ) -> None:
        self.n_hidden = n_hidden
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.min_epochs = min_epochs
        self.max_epochs = max_epochs
        self.patience = patience
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
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
        """Train on features X [N, D] and labels y [N].

        Parameters
        ----------
        X : array-like, shape [N, D]
            float32 or float64, and computed in that precision.
        y : array-like, shape [N]
            Two labels; the second in sorted order is the positive one.
        groups : array-like, shape [N], optional
            The movie of each clip, for the inner selection.
        X_val, y_val : array-like, shapes [M, D] and [M], optional
            Clips to choose the epoch on, of movies that are not in X.

        Raises
        ------
        ValueError
            Both, or half, of the ways to select are given; or the data are not what scikit-learn accepts.
        ProtocolError
            The movies can't be dealt into inner folds that hold both classes.
        """
        self._validate_params()
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together: give both or neither")
        if groups is not None and X_val is not None:
            raise ValueError(
                "selection is by inner folds (groups) or on given clips (X_val, y_val), not by both"
            )
        features, y = validate_data(self, X, y, dtype=(np.float64, np.float32))
        self.classes_, labels = encode_labels(y, type(self).__name__)
        targets = labels.astype(features.dtype)
        self.threshold_ = 0.0
        # A later fit of another kind must not leave these behind.
        self.__dict__.pop("inner_scores_", None)
        with threadpool_limits(limits=1, user_api="blas"):
            if groups is not None:
                movies = check_array(groups, ensure_2d=False, dtype=None)
                check_consistent_length(features, movies)
                model = self._fit_selected(features, targets, movies)
            else:
                model = self._train(features, targets, self._validation(X_val, y_val, features.dtype))
                self.curves_: tuple[Curve, ...] = (model.curve,)
        self.n_epochs_ = model.curve.kept
        self.parameters_, self.mean_, self.scale_ = model.parameters, model.mean, model.scale
        return self

    def decision_function(self, X: ArrayLike) -> Floats:
        """Compute the logit [N] of each clip of X [N, D]: positive when it leans to the positive class."""
        check_is_fitted(self)
        features = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        features = features.astype(self.mean_.dtype, copy=False)
        with threadpool_limits(limits=1, user_api="blas"):
            return Trained(self.parameters_, self.mean_, self.scale_, self.curves_[0]).scores(features)

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Compute the probability [N, 2] of each class, the negative one first."""
        positive: Floats = expit(self.decision_function(X))
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Call positive each clip of X [N, D] whose logit reaches the threshold."""
        # Compared as float64: a float32 score would have the threshold rounded to float32.
        called = self.decision_function(X).astype(np.float64) >= self.threshold_
        labels: NDArray[Any] = self.classes_[called.astype(np.intp)]
        return labels

    def _validation(
        self, X_val: ArrayLike | None, y_val: ArrayLike | None, dtype: np.dtype[Any]
    ) -> tuple[Floats, Floats] | None:
        if X_val is None:
            return None
        X, y = validate_data(self, X_val, y_val, dtype=dtype, reset=False)
        strange = np.setdiff1d(y, self.classes_)
        if strange.size:
            raise ValueError(f"y_val holds the label {strange.tolist()[0]!r}, which y does not")
        return X, (y == self.classes_[1]).astype(dtype)

    def _fit_selected(self, X: Floats, y: Floats, movies: NDArray[Any]) -> Trained:
        """Choose threshold and epoch by inner folds of movies, then train on everything."""
        folds = inner_folds(y, movies, self.inner_folds)
        scores, curves = np.empty_like(y), []
        for fold in range(int(folds.max()) + 1):
            held_out = folds == fold
            model = self._train(X[~held_out], y[~held_out], (X[held_out], y[held_out]), fold=fold)
            scores[held_out] = model.scores(X[held_out])
            curves.append(model.curve)
        self.curves_ = tuple(curves)
        # Each inner model's epoch was chosen on the movies it scores, which flatters the scores a little:
        # that may move the threshold, never a number of the test fold.
        self.inner_scores_ = scores
        self.threshold_ = best_threshold(y, scores)
        return self._train(X, y, None, n_epochs=_median([curve.kept for curve in curves]))

    def _train(
        self,
        X: Floats,
        y: Floats,
        validation: tuple[Floats, Floats] | None,
        *,
        fold: int = -1,
        n_epochs: int | None = None,
    ) -> Trained:
        max_epochs = self.max_epochs if n_epochs is None else n_epochs
        schedule = Schedule(self.learning_rate, self.batch_size, self.min_epochs, max_epochs, self.patience)
        # A stream for each inner fold, so that none depends on how many there are or on their order.
        rng = np.random.default_rng((self.random_state, fold + 1))
        return train(X, y, validation, n_hidden=self.n_hidden, schedule=schedule, rng=rng, fold=fold)


def _median(epochs: Sequence[int]) -> int:
    """Take the median epoch, the later one of the middle two's mean where it falls between."""
    return int(np.ceil(np.median(epochs)))
