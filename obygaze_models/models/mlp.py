"""Fit the MLP probe, a two-layer perceptron on frozen features: one, or many at once."""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_X_y, validate_data

from obygaze_models.models.binary import IMBALANCES, Floats, Imbalance, encode_labels
from obygaze_models.models.grouped_selection import EarlyStopping
from obygaze_models.models.linear import CLIP
from obygaze_models.models.mlp_network import Perceptron
from obygaze_models.models.spec import ModelSpec
from obygaze_models.models.training import NeuralClassifier, TrainingJob, train_many


class MLPProbe(NeuralClassifier):
    """A perceptron with one hidden layer of rectifiers and one logit, trained with Adam on cross-entropy.

    With ``X_val, y_val`` the epoch with the lowest loss on them is kept; without, `max_epochs` epochs are run
    and the last is kept. `GroupedSelection` with `EarlyStopping` chooses the epochs, and a threshold, by
    movies. Features are standardised inside `fit`, by the moments of the training clips, and cut off at
    `clip` deviations.

    The ``paper`` variant is the published model, including its known flaws: two softmax
    neurons whose probabilities cross-entropy takes for logits, so that the loss is flat wherever the model is
    sure; features as they are; and the epoch that training ended with, `patience` epochs past the best. It
    takes no `imbalance`: its classes are balanced by the folds drawn.

    Parameters
    ----------
    n_hidden : int
        Hidden units.
    variant : {"strict", "paper"}
        One logit, or the paper's model.
    learning_rate, batch_size, min_epochs, max_epochs, patience, clip, random_state
        Of the training, see `NeuralClassifier`.
    imbalance : {"none", "weights", "subsample"}
        What is done about the larger class, in the clips a model is trained on and in no others: nothing but
        the threshold; losses weighed by n / (2 n_class), scikit-learn's ``"balanced"``; or clips of the
        larger class drawn, as many as the smaller has, from `random_state`.

    Attributes
    ----------
    parameters_ : ndarray, shape [P]
        The kept parameters; `obygaze_models.models.mlp_network.layers` cuts them into layers.
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

    n_hidden: int
    variant: Literal["strict", "paper"]
    imbalance: Imbalance

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_hidden": [Interval(Integral, 1, None, closed="left")],
        "variant": [StrOptions({"strict", "paper"})],
        "imbalance": [StrOptions(set(IMBALANCES))],
        **NeuralClassifier._parameter_constraints,
    }

    def __init__(
        self,
        n_hidden: int = 128,
        *,
        variant: Literal["strict", "paper"] = "strict",
        learning_rate: float = 1e-3,
        batch_size: int = 16,
        min_epochs: int = 5,
        max_epochs: int = 100,
        patience: int = 5,
        imbalance: Imbalance = "none",
        clip: float | None = CLIP,
        random_state: int = 0,
    ) -> None:
        self._store(locals())

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
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
        X_val, y_val : array-like, shapes [M, D] and [M], optional
            Clips to choose the epoch on, of movies that are not in X.

        Raises
        ------
        ValueError
            One of X_val and y_val is missing, or an imbalance is given to the paper variant.
        """
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together: give both or neither")
        features, y = validate_data(self, X, y, dtype=(np.float64, np.float32))
        classes, labels = encode_labels(y, type(self).__name__)
        train = np.arange(len(labels))
        validation = None
        if X_val is not None:
            X_val, y_val = validate_data(self, X_val, y_val, dtype=features.dtype, reset=False)
            strange = np.setdiff1d(y_val, classes)
            if strange.size:
                raise ValueError(f"y_val holds the label {strange.tolist()[0]!r}, which y does not")
            features = np.concatenate([features, X_val])
            labels = np.concatenate([labels, (y_val == classes[1]).astype(np.int64)])
            validation = [np.arange(len(train), len(labels))]
        _fit([self], features, labels, [train], validation=validation)
        self.classes_ = classes
        return self

    def _check(self, X: ArrayLike) -> Floats:
        features: Floats = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        return features.astype(self.mean_.dtype, copy=False)

    def _network(self, n_features: int) -> Perceptron:
        paper = self.variant == "paper"
        return Perceptron(n_features, self.n_hidden, 2 if paper else 1, not paper, self.clip)


def fit_many(
    probes: Sequence[MLPProbe],
    X: ArrayLike,
    y: ArrayLike,
    train: Sequence[NDArray[np.intp]],
    *,
    validation: Sequence[NDArray[np.intp]] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Fit many probes in one computation; faster, with the same bytes as fitting each alone.

    Parameters
    ----------
    probes : sequence of MLPProbe
        Alike in every parameter but `random_state`.
    X : array-like, shape [N, D]
    y : array-like, shape [N]
        Two labels, both among every probe's training rows.
    train : sequence of ndarray of int
        The rows of X that each probe is trained on.
    validation : sequence of ndarray of int, optional
        The rows on which each probe's epoch is chosen.
    progress : callable, optional
        Called now and then with the numbers of trainings done and of all.

    Raises
    ------
    ValueError
        The probes differ, a probe has no or one class to learn from, or a probe would be validated on what it
        is trained on.
    """
    features, y = check_X_y(X, y, dtype=(np.float64, np.float32))
    classes, labels = encode_labels(y, MLPProbe.__name__)
    for rows in train:
        if np.unique(labels[rows]).size < 2:
            raise ValueError(
                f"a probe needs clips of two classes, but one has {len(rows)} of one class at most"
            )
    for number, rows in enumerate(validation or ()):
        if np.intersect1d(train[number], rows).size:
            raise ValueError("a probe's validation rows must not be among those it is trained on")
    _fit(probes, features, labels, train, validation=validation, progress=progress)
    for probe in probes:
        probe.classes_, probe.n_features_in_ = classes, features.shape[1]


def _fit(
    probes: Sequence[MLPProbe],
    X: Floats,
    labels: NDArray[np.int64],
    train: Sequence[NDArray[np.intp]],
    *,
    validation: Sequence[NDArray[np.intp]] | None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    for probe in probes:
        probe._validate_params()
    if not probes:
        return
    first = probes[0]
    if not all(
        probe.get_params() | {"random_state": 0} == first.get_params() | {"random_state": 0}
        for probe in probes
    ):
        raise ValueError("probes fitted together must be alike in every parameter but random_state")
    if first.imbalance != "none" and first.variant == "paper":
        raise ValueError(
            "the paper variant balances classes by its folds: imbalance must be 'none', "
            f"not {first.imbalance!r}"
        )
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(done, len(probes))

    jobs = [
        TrainingJob(rows, None if validation is None else validation[number], (int(probe.random_state), 0))
        for number, (probe, rows) in enumerate(zip(probes, train, strict=True))
    ]
    keep: Literal["best", "last"] = "last" if first.variant == "paper" else "best"
    settings = first._settings(X.shape[1], imbalance=first.imbalance, keep=keep)
    trained = train_many(X, labels.astype(X.dtype), jobs, settings, progress=count)
    for probe, model in zip(probes, trained, strict=True):
        probe._take(model)


def make_mlp(seed: int, imbalance: Imbalance = "none") -> MLPProbe:
    """Make the zoo's MLP probe for a seed."""
    return MLPProbe(imbalance=imbalance, random_state=seed)


SPECS = (ModelSpec("mlp", "MLP", make_mlp, choose=EarlyStopping()),)
