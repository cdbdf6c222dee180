"""Fit the MLP probe, a perceptron on frozen features: one probe, or many at once."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from obygaze_features.arguments import checked
from obygaze_models.blas import one_blas_thread
from obygaze_models.models.binary import Floats, Imbalance, encode_labels, validated_rows
from obygaze_models.models.choices import EarlyStopping
from obygaze_models.models.neural_classifiers import NetworkClassifier, train_many
from obygaze_models.models.parameters import Count
from obygaze_models.models.perceptron import Perceptron
from obygaze_models.models.spec import ModelSpec


@dataclass(eq=False, repr=False)
class MLPProbe(NetworkClassifier):
    """A perceptron with one hidden layer of rectifiers and one logit, trained with Adam on cross-entropy.

    With ``X_val, y_val`` the epoch with the lowest loss on them is kept; without, `max_epochs` epochs are run
    and the last is kept. `GroupedSelection` with `EarlyStopping` chooses the epochs, and a threshold, by
    movies. Features are standardised inside `fit`, by the moments of the training clips, and cut off at
    `clip` deviations.

    The ``paper`` variant is the published model, including its known flaws. It has two softmax neurons whose
    probabilities cross-entropy takes for logits, so that the loss is flat where probabilities are near 0 or
    1. Its features are not standardised. It keeps the last epoch, which is `patience` epochs after the best.
    It takes no `imbalance`: folds are drawn such that classes are balanced.

    Parameters
    ----------
    n_hidden : int
        Hidden units.
    variant : {"strict", "paper"}
        One logit, or the paper's model.
    learning_rate, batch_size, min_epochs, max_epochs, patience, clip, random_state
        Of the training, see `NetworkClassifier`.
    imbalance : {"none", "weights", "subsample"}
        How class imbalance is handled, in the clips that a model is trained on and in no others. ``none``: it
        is not, except by the threshold. ``weights``: losses are weighed by n / (2 n_class), scikit-learn's
        ``"balanced"``. ``subsample``: of the larger class as many clips are drawn as the smaller one has, by
        `random_state`.

    Attributes
    ----------
    parameters_ : ndarray, shape [P]
        The kept parameters; `Perceptron.layers_of` cuts them into layers.
    mean_, scale_ : ndarray, shape [D]
        Moments by which features are standardised; 0 and 1 in the paper variant.
    classes_, n_features_in_, threshold_, n_epochs_, curve_
        See `NeuralClassifier`.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> y = data.levels == "S"
    >>> probe = om.MLPProbe(n_hidden=8, max_epochs=5).fit(data.X, y)
    >>> probe.predict_proba(data.X).shape
    (95, 2)
    """

    n_hidden: Count = 128
    _: KW_ONLY
    variant: Literal["strict", "paper"] = "strict"
    imbalance: Imbalance = "none"

    def fit(
        self, X: ArrayLike, y: ArrayLike, *, X_val: ArrayLike | None = None, y_val: ArrayLike | None = None
    ) -> Self:
        """Train on features X [N, D] and labels y [N].

        Parameters
        ----------
        X : array-like, shape [N, D]
            float32 or float64; training computes in the same precision.
        y : array-like, shape [N]
            Two labels; the second in sorted order is the positive one.
        X_val, y_val : array-like, shapes [M, D] and [M], optional
            Clips to choose the epoch on, of movies that are not in X.

        Raises
        ------
        ValueError
            One of X_val and y_val is missing, or an imbalance is given to the paper variant.
        """
        self._check_settings()
        features, y = validate_data(self, X, y, dtype=(np.float64, np.float32))
        classes, labels = encode_labels(y, type(self).__name__)
        if X_val is not None:
            X_val = validate_data(self, X_val, dtype=features.dtype, reset=False)
        return self._train_alone(features, classes, labels, X_val, y_val)

    def decision_function(self, X: ArrayLike) -> Floats:
        """Compute the logit [N] of each clip of X [N, D]: positive when it leans to the positive class."""
        check_is_fitted(self)
        features = validated_rows(self, X, np.float64, np.float32)
        # Logits are computed in the precision in which the probe was trained.
        features = features.astype(self.mean_.dtype, copy=False)
        network = self._network(features.shape[1])
        with one_blas_thread():
            prepared = network.prepare(features, self.mean_, self.scale_)
            return network.logits(network.layers_of(self.parameters_), prepared)

    def _imbalance(self) -> Imbalance:
        """Return how class imbalance is handled, for the training that all neural classifiers share."""
        return self.imbalance

    def _network(self, n_features: int) -> Perceptron:
        """Make the perceptron for `n_features` features.

        That of the ``paper`` variant has two outputs, and does not standardise features.
        """
        if self.variant == "paper":
            return Perceptron(n_features, self.n_hidden, n_outputs=2, standardised=False, clip=self.clip)
        return Perceptron(n_features, self.n_hidden, n_outputs=1, standardised=True, clip=self.clip)

    def _keeps_best(self) -> bool:
        """Whether the parameters of the best epoch are kept, rather than those of the last."""
        return self.variant == "strict"

    def _check_settings(self) -> None:
        """Raise if a parameter has a wrong type or range, or if parameters contradict each other."""
        self._validate_params()
        if self.imbalance != "none" and self.variant == "paper":
            raise ValueError(
                "the paper variant balances classes by its folds: imbalance must be 'none', "
                f"not {self.imbalance!r}"
            )


@checked
def fit_many(
    probes: Sequence[MLPProbe],
    X: ArrayLike,
    y: ArrayLike,
    train: Sequence[NDArray[np.intp]],
    *,
    validation: Sequence[NDArray[np.intp]] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Fit many probes together: faster than fitting each alone, and with exactly the same results.

    Parameters
    ----------
    probes : sequence of MLPProbe
        Alike in every parameter but `random_state`. They are fitted.
    X : array-like, shape [N, D]
    y : array-like, shape [N]
        Two labels, both among every probe's training rows.
    train : sequence of ndarray of int
        The rows of X that each probe is trained on.
    validation : sequence of ndarray of int, optional
        The rows on which each probe's epoch is chosen.
    progress : callable, optional
        Called with the number of probes fitted so far and the number of all, after each training.

    Raises
    ------
    ValueError
        The probes differ in a parameter; or the training rows of a probe do not have both classes; or a
        validation row of a probe is among its training rows.
    """
    features, y = check_X_y(X, y, dtype=(np.float64, np.float32))
    classes, labels = encode_labels(y, MLPProbe.__name__)

    for rows in train:
        if np.unique(labels[rows]).size < 2:
            raise ValueError(
                f"a probe needs clips of two classes, but one has {len(rows)} of one class at most"
            )
    if validation is not None:
        _refuse_overlap(train, validation)

    for probe in probes:
        probe._check_settings()
        if _without_seed(probe) != _without_seed(probes[0]):
            raise ValueError("probes fitted together must be alike in every parameter but random_state")
        # What `MLPProbe.fit` sets before it trains.
        probe.classes_ = classes
        probe.n_features_in_ = features.shape[1]

    train_many(probes, features, labels, train, validation, progress=progress)


def _refuse_overlap(train: Sequence[NDArray[np.intp]], validation: Sequence[NDArray[np.intp]]) -> None:
    """Raise if a validation row of a probe is also one of its training rows."""
    for index, validation_rows in enumerate(validation):
        if np.intersect1d(train[index], validation_rows).size:
            raise ValueError("a probe's validation rows must not be among those it is trained on")


def _without_seed(probe: MLPProbe) -> dict[str, Any]:
    """Return the parameters of a probe except its seed."""
    parameters: dict[str, Any] = probe.get_params()
    del parameters["random_state"]
    return parameters


def make_mlp(seed: int, imbalance: Imbalance = "none") -> MLPProbe:
    """Make the zoo's MLP probe for a seed."""
    return MLPProbe(imbalance=imbalance, random_state=seed)


SPECS = (ModelSpec("mlp", "MLP", make_mlp, choose=EarlyStopping()),)
