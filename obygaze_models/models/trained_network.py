"""Hold what all classifiers share that are networks trained by `training`."""

from numbers import Integral, Real
from typing import Any, Literal

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from obygaze_models.blas import one_blas_thread
from obygaze_models.models.labels import Imbalance, LogitClassifier
from obygaze_models.models.linear import MOST
from obygaze_models.models.network import Floats
from obygaze_models.models.training import Curve, Network, Settings, Trained, scores

TRAINING_CONSTRAINTS: dict[str, list[Any]] = {
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "min_epochs": [Interval(Integral, 1, None, closed="left")],
    "max_epochs": [Interval(Integral, 1, None, closed="left")],
    "patience": [Interval(Integral, 1, None, closed="left")],
    "clip": [Interval(Real, 0, MOST, closed="right"), None],
    "random_state": [Interval(Integral, 0, None, closed="left")],
}
"""What scikit-learn checks of the parameters below."""


class TrainedNetwork(LogitClassifier):
    """Base class of networks trained with Adam: parameters of the training, and what it leaves.

    Parameters
    ----------
    learning_rate : float
        Adam's step size.
    batch_size : int
        Clips a step; an epoch's last batch may be smaller.
    min_epochs, max_epochs : int
        Fewest and most epochs. `max_epochs` wins where it is the smaller.
    patience : int
        Epochs without a lower validation loss after which training stops.
    clip : float, optional
        Deviations at which standardised features are cut off; None for no limit.
    random_state : int
        Seed of all that is drawn.

    Attributes
    ----------
    parameters_ : ndarray, shape [P]
    mean_, scale_ : ndarray, shape [D]
        Moments by which features are standardised.
    threshold_ : float
        The logit from which on a clip is called positive: 0.
    n_epochs_ : int
        Epochs that made the kept parameters.
    curve_ : Curve
        Losses epoch by epoch.
    """

    parameters_: Floats
    mean_: Floats
    scale_: Floats
    n_epochs_: int
    curve_: Curve

    def __init__(
        self,
        *,
        learning_rate: float,
        batch_size: int,
        min_epochs: int,
        max_epochs: int,
        patience: int,
        clip: float | None,
        random_state: int,
    ) -> None:
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.min_epochs = min_epochs
        self.max_epochs = max_epochs
        self.patience = patience
        self.clip = clip
        self.random_state = random_state

    def decision_function(self, X: ArrayLike) -> Floats:
        """Compute the logit [N] of each clip of X [N, ...]: positive when it leans to the positive class."""
        check_is_fitted(self)
        trained = Trained(self.parameters_, self.mean_, self.scale_, self.curve_)
        features = self._check(X)
        with one_blas_thread():
            return scores(trained, features, self._network(features.shape[-1]))

    def _check(self, X: ArrayLike) -> Floats:
        """Check features of a fitted model, and give them in the precision it was fitted in."""
        raise NotImplementedError

    def _network(self, n_features: int) -> Network:
        """Make the network for vectors of so many features."""
        raise NotImplementedError

    def _settings(
        self, n_features: int, *, imbalance: Imbalance = "none", keep: Literal["best", "last"] = "best"
    ) -> Settings:
        return Settings(
            network=self._network(n_features),
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            min_epochs=self.min_epochs,
            max_epochs=self.max_epochs,
            patience=self.patience,
            imbalance=imbalance,
            keep=keep,
        )

    def _take(self, model: Trained) -> None:
        self.parameters_, self.mean_, self.scale_ = model.parameters, model.mean, model.scale
        self.threshold_, self.curve_, self.n_epochs_ = 0.0, model.curve, model.curve.kept
