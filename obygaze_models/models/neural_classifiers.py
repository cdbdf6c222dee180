"""Define the base classes of the neural classifiers, and train many of them in one computation.

Models are trained one after the other, so that the numbers of a step fit in a core's cache. Models that
differ in their validation clips only share one training. A model's bytes depend only on its own clips and
seed.

To train all folds in common matrix products would be slower, since folds share no weights, and Adam's sums
of all folds do not fit in a cache. A step of a perceptron with 512 inputs and 128 hidden units, in batches of
16 clips, takes 61 to 79 us in matrix products and 68 to 70 us in Adam. With 4, 16 and 48 folds at once it
takes 61, 68 and 83 us per fold in products, and 67, 115 and 120 us in Adam (AMD EPYC, one core, 2026-11-28).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length

from obygaze_models.blas import one_blas_thread
from obygaze_models.models.binary import Floats, Imbalance, LogitClassifier
from obygaze_models.models.parameters import Count, Positive, Seed
from obygaze_models.models.scaling import CLIP, Limit
from obygaze_models.models.training import TrainedNetwork, TrainingPlan, train_network


@dataclass(eq=False, repr=False, kw_only=True)
class NeuralClassifier(LogitClassifier):
    """Base class of the neural classifiers, which Adam trains in batches of clips, epoch by epoch.

    Parameters
    ----------
    learning_rate : float
        Adam's step size.
    batch_size : int
        Clips of a training step; an epoch's last batch may be smaller.
    max_epochs : int
        Most epochs.
    patience : int
        Epochs without a lower loss on held-out clips after which training stops.
    random_state : int
        Seed of all random numbers. The same seed gives the same bytes with any number of threads: training
        and prediction limit BLAS to one thread, as the products are too small to gain from more.

    Attributes
    ----------
    classes_ : ndarray, shape [2]
        The negative and the positive label.
    n_features_in_ : int
        D, of each vector.
    parameters_ : ndarray, shape [P]
        The parameters of the kept epoch, as one vector; the network knows the layers in it.
    mean_, scale_ : ndarray, shape [D]
        Moments by which features are standardised.
    threshold_ : float
        A clip is called positive if its logit is at least this.
    n_epochs_ : int
        Number of epochs after which these parameters were kept.
    curve_ : LossCurve
        Losses of each epoch.
    """

    learning_rate: Positive = 1e-3
    batch_size: Count = 16
    max_epochs: Count = 100
    patience: Count = 5
    random_state: Seed = 0

    def _n_parameters(self, n_features: int) -> int:
        """Count the network's parameters, P, for vectors of `n_features` numbers."""
        raise NotImplementedError


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkClassifier(NeuralClassifier):
    """Base class of the classifiers that train a `TrainableNetwork` by `train_many`.

    Parameters
    ----------
    learning_rate, batch_size, max_epochs, patience, random_state
        See `NeuralClassifier`.
    min_epochs : int
        Fewest epochs, unless `max_epochs` is smaller.
    clip : float, optional
        Standardised features are limited to this many deviations; None for no limit.
    """

    min_epochs: Count = 5
    clip: Limit | None = CLIP

    def _imbalance(self) -> Imbalance:
        """Return the handling of class imbalance: none, unless a subclass offers it."""
        return "none"

    def _network(self, n_features: int) -> Any:
        """Make the `TrainableNetwork` for vectors of `n_features` numbers."""
        raise NotImplementedError

    def _n_parameters(self, n_features: int) -> int:
        """Count the parameters of the network for features of `n_features` dimensions."""
        n_parameters: int = self._network(n_features).n_parameters
        return n_parameters

    def _keeps_best(self) -> bool:
        """Tell whether the epoch of the lowest validation loss is kept, and not the last."""
        return True

    def _plan(self) -> TrainingPlan:
        """Collect the parameters of the classifier that say how `train_network` trains it."""
        return TrainingPlan(
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            min_epochs=self.min_epochs,
            max_epochs=self.max_epochs,
            patience=self.patience,
            keeps_best=self._keeps_best(),
            imbalance=self._imbalance(),
            seed=int(self.random_state),
        )

    def _set_fitted(self, trained: TrainedNetwork) -> None:
        """Set the fitted attributes from the result of a training."""
        self.parameters_ = trained.parameters
        self.mean_ = trained.mean
        self.scale_ = trained.scale
        self.threshold_ = 0.0  # of a logit: a probability of one half
        self.n_epochs_ = trained.n_epochs
        self.curve_ = trained.curve

    def _train_alone(
        self, X: Floats, classes: NDArray[Any], labels: NDArray[np.int64], X_val: Any, y_val: Any
    ) -> Self:
        """Train this classifier alone, with the epoch chosen on validation clips if they are given.

        Parameters
        ----------
        X : ndarray, shape [N, ...]
        classes : ndarray, shape [2]
            The negative and the positive label.
        labels : ndarray of int, shape [N]
            0 or 1.
        X_val, y_val : array-like or None
            Validation clips, with labels among `classes`.
        """
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together: give both or neither")

        # `train_many` takes all clips in one array, with the rows of each model.
        training_rows = np.arange(len(X))
        validation = None
        if X_val is not None:
            check_consistent_length(X_val, y_val)
            unknown_labels = np.setdiff1d(y_val, classes)
            if unknown_labels.size:
                raise ValueError(f"y_val holds the label {unknown_labels.tolist()[0]!r}, which y does not")
            is_positive = np.asarray(y_val) == classes[1]
            X = np.concatenate([X, X_val])
            labels = np.concatenate([labels, is_positive.astype(np.int64)])
            validation_rows = np.arange(len(training_rows), len(X))
            validation = [validation_rows]

        train_many([self], X, labels, [training_rows], validation)
        self.classes_ = classes
        return self


def train_many(
    models: Sequence[NetworkClassifier],
    X: Floats,
    labels: NDArray[np.int64],
    train: Sequence[NDArray[np.intp]],
    validation: Sequence[NDArray[np.intp]] | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Fit models that have the same parameters except for their seeds, each on its own rows of the clips.

    A model stops after `patience` epochs without a lower loss on its validation rows, but not before
    `min_epochs`. If losses are equal, the earliest epoch counts as the lowest. Without validation rows, all
    `max_epochs` epochs are run and the last is kept. Models with the same training rows and seed are trained
    only once, until the last of them stops. Every model gets exactly the parameters that it would get if it
    were trained alone.

    Parameters
    ----------
    models : sequence of NetworkClassifier
        The unfitted models, which are fitted in place.
    X : ndarray, shape [N, ...]
        Features of all clips.
    labels : ndarray of int, shape [N]
        0 or 1.
    train : sequence of ndarray of int
        The rows that each model is trained on.
    validation : sequence of ndarray of int, optional
        The rows whose loss decides when each model's training stops.
    progress : callable, optional
        Called after each training with the number of models trained and the number of all models.
    """
    y = labels.astype(X.dtype)
    n_trained = 0
    # One training after the other: in threads, each of a step's thirty short operations waits for the
    # interpreter's lock, which on two cores costs 50 % more CPU time and saves no time.
    with one_blas_thread():
        for indices in _group_same_trainings(models, train):
            # These models differ only in their validation rows: one training serves all.
            first = indices[0]
            model = models[first]
            validation_rows: list[NDArray[np.intp] | None]
            if validation is None:
                validation_rows = [None] * len(indices)
            else:
                validation_rows = [validation[index] for index in indices]

            network = model._network(X.shape[-1])
            results = train_network(network, model._plan(), X, y, train[first], validation=validation_rows)
            for index, trained in zip(indices, results, strict=True):
                models[index]._set_fitted(trained)

            n_trained += len(indices)
            if progress is not None:
                progress(n_trained, len(models))


def _group_same_trainings(
    models: Sequence[NetworkClassifier], train: Sequence[NDArray[np.intp]]
) -> list[list[int]]:
    """Group the indices of models that are trained on the same rows with the same seed.

    The training of such models takes the same steps, and may end at different epochs. `train` are the rows of
    each model.
    """
    groups: dict[tuple[bytes, int], list[int]] = {}
    for index, (model, rows) in enumerate(zip(models, train, strict=True)):
        key = (rows.tobytes(), int(model.random_state))
        groups.setdefault(key, []).append(index)
    return list(groups.values())
