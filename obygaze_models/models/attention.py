"""Attention pooling over a clip's frames, its controls, and the models that read frames."""

from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from obygaze_models.blas import one_blas_thread
from obygaze_models.models.attention_network import AttentionNetwork, PooledFrames
from obygaze_models.models.binary import Floats, encode_labels
from obygaze_models.models.grouped_selection import EarlyStopping
from obygaze_models.models.linear import CLIP, PENALTIES, check_frames, make_frames_probe
from obygaze_models.models.spec import ModelSpec
from obygaze_models.models.training import NeuralClassifier, TrainingJob, train_many

Disturb = Literal["none", "exchange", "shuffle"]


class AttentionPooling(NeuralClassifier):
    """Weigh a clip's frames by gated attention (Ilse et al. 2018), and decide by their weighted evidence.

    What a frame adds to the logit is its weight times its evidence; `weights` and `evidence` give both. A
    weight is not an explanation by itself: docs/when.md. Frames are standardised by the moments of all frames
    trained on, and cut off at `clip` deviations. A frame of NaN is absent: its weight is 0.

    Parameters
    ----------
    n_hidden : int
        Hidden units of the attention, L.
    attention : {"gated", "uniform"}
        Learnt weights, or equal ones: what the weights add is the difference.
    timed : bool
        Whether a frame's place in its clip is added to its features.
    disturb : {"none", "exchange", "shuffle"}
        What is done to the clips trained on, for controls: "exchange" deals the frames anew among the clips
        of the same movie and label; "shuffle" puts each clip's frames in random order, so that time says
        nothing.
    learning_rate, batch_size, min_epochs, max_epochs, patience, clip, random_state
        Of the training, see `NeuralClassifier`.

    Attributes
    ----------
    parameters_ : ndarray, shape [P]
        `obygaze_models.models.attention_network` cuts them into layers.
    mean_, scale_ : ndarray, shape [D]
        Moments by which frames are standardised.
    classes_, n_features_in_, threshold_, n_epochs_, curve_
        See `NeuralClassifier`.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> frames, y = data.read("frames"), data.levels == "S"
    >>> model = om.AttentionPooling(max_epochs=3).fit(frames, y)
    >>> model.weights(frames).sum(axis=1).round(5)[:2].tolist()
    [1.0, 1.0]
    """

    n_hidden: int
    attention: Literal["gated", "uniform"]
    timed: bool
    disturb: Disturb

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_hidden": [Interval(Integral, 1, None, closed="left")],
        "attention": [StrOptions({"gated", "uniform"})],
        "timed": ["boolean"],
        "disturb": [StrOptions({"none", "exchange", "shuffle"})],
        **NeuralClassifier._parameter_constraints,
    }

    def __init__(
        self,
        n_hidden: int = 16,
        *,
        attention: Literal["gated", "uniform"] = "gated",
        timed: bool = False,
        disturb: Disturb = "none",
        learning_rate: float = 3e-3,
        batch_size: int = 32,
        min_epochs: int = 5,
        max_epochs: int = 60,
        patience: int = 5,
        clip: float | None = CLIP,
        random_state: int = 0,
    ) -> None:
        self._store(locals())

    def __sklearn_tags__(self) -> Tags:
        """Clips of several frames."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
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
        """Train on clips' frames X [N, F, D] and labels y [N].

        Parameters
        ----------
        X : array-like, shape [N, F, D]
            float32 or float64, and computed in that precision; other floats in float32.
        y : array-like, shape [N]
            Two labels; the second in sorted order is the positive one.
        groups : array-like, shape [N], optional
            The movie of each clip, within which frames are exchanged.
        X_val, y_val : array-like, shapes [M, F, D] and [M], optional
            Clips to choose the epoch on, of movies that are not in X.

        Raises
        ------
        ValueError
            X has no frames, a clip has no present frame, or one of X_val and y_val is missing.
        """
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together: give both or neither")
        self._validate_params()
        frames = check_frames(X)
        check_consistent_length(frames, y)
        classes, labels = encode_labels(y, type(self).__name__)
        self.n_features_in_ = frames.shape[2]
        frames = self._disturbed(frames, labels, groups)
        train, validation = np.arange(len(labels)), None
        if X_val is not None:
            held_out = self._alike(X_val, frames.dtype)
            frames = np.concatenate([frames, held_out])
            labels = np.concatenate([labels, (np.asarray(y_val) == classes[1]).astype(np.int64)])
            validation = np.arange(len(train), len(labels))
        job = TrainingJob(train, validation, (int(self.random_state), 0))
        settings = self._settings(self.n_features_in_)
        (model,) = train_many(frames, labels.astype(frames.dtype), [job], settings)
        self._take(model)
        self.classes_ = classes
        return self

    def decision_function(self, X: ArrayLike) -> Floats:
        """Compute the logit [N] of each clip of X [N, F, D]."""
        return self._pool(X).logits

    def weights(self, X: ArrayLike) -> Floats:
        """Compute the attention weight of each frame of X [N, F, D]: [N, F], each clip's add up to 1."""
        return self._pool(X).weights

    def evidence(self, X: ArrayLike) -> Floats:
        """Compute what each frame of X [N, F, D] says for the positive class, whatever its weight: [N, F].

        Weighted by `weights` and summed, with the model's bias, it is the logit.
        """
        return self._pool(X).evidence

    def _pool(self, X: ArrayLike) -> PooledFrames:
        check_is_fitted(self)
        network, frames = self._network(self.n_features_in_), self._check(X)
        layer = network.views(self.parameters_)
        # Matrix libraries choose kernels by size: a clip at a time has the same bytes alone and together.
        with one_blas_thread():
            pooled = [
                network.pool(layer, network.prepare(clip[None], self.mean_, self.scale_)) for clip in frames
            ]
        return PooledFrames(*(np.concatenate(parts) for parts in zip(*pooled, strict=True)))

    def _check(self, X: ArrayLike) -> Floats:
        return self._alike(X, self.mean_.dtype)

    def _alike(self, X: ArrayLike, dtype: Any) -> Floats:
        frames = check_frames(X).astype(dtype, copy=False)
        if frames.shape[2] != self.n_features_in_:
            raise ValueError(
                f"X has {frames.shape[2]} features a frame; {type(self).__name__} was fitted with "
                f"{self.n_features_in_}"
            )
        return frames

    def _network(self, n_features: int) -> AttentionNetwork:
        n_hidden = self.n_hidden if self.attention == "gated" else 0
        return AttentionNetwork(n_features, n_hidden, self.timed, self.clip)

    def _disturbed(self, frames: Floats, y: NDArray[np.int64], groups: ArrayLike | None) -> Floats:
        """Exchange or shuffle frames [N, F, D], for controls."""
        if self.disturb == "none":
            return frames
        rng = np.random.default_rng((int(self.random_state), 1))
        if self.disturb == "shuffle":
            order = rng.permuted(np.tile(np.arange(frames.shape[1]), (len(frames), 1)), axis=1)
            return np.take_along_axis(frames, order[..., None], axis=1)
        if groups is None:
            raise ValueError("frames are exchanged within movies: give groups")
        movies, dealt = np.asarray(groups), frames.copy()
        for movie in np.unique(movies):
            for label in (0, 1):
                rows = np.flatnonzero((movies == movie) & (y == label))
                for frame in range(frames.shape[1]):
                    dealt[rows, frame] = frames[rng.permutation(rows), frame]
        return dealt


CONTROLS = ("mean_frames", "max_frames", "attention_uniform", "attention_exchanged")
"""Controls of attention: what the weights, and a clip's own frames, add to mean pooling."""


def _spec(name: str, title: str, **settings: Any) -> ModelSpec:
    disturbed = settings.get("disturb", "none") != "none" or settings.get("attention") == "uniform"
    beside: tuple[str, ...] = () if disturbed else CONTROLS
    return ModelSpec(
        name,
        title,
        lambda seed: AttentionPooling(**settings, random_state=seed),
        choose=EarlyStopping(),
        reads="frames",
        uses=("groups",) if settings.get("disturb") == "exchange" else (),
        kinds=(),
        control=disturbed,
        beside=(*beside, "attention_shuffled") if settings.get("timed") and not disturbed else beside,
    )


SPECS = (
    _spec("attention", "Attention"),
    _spec("attention_time", "Attention and time", timed=True),
    _spec("attention_uniform", "Equal weights", attention="uniform"),
    _spec("attention_exchanged", "Attention, trained on exchanged frames", disturb="exchange"),
    _spec("attention_shuffled", "Attention and time, trained in random order", timed=True, disturb="shuffle"),
    *(
        ModelSpec(
            f"{pool}_frames",
            f"Logistic regression, {title} of frames",
            lambda _, pool=pool: make_frames_probe(pool),  # type: ignore[misc]  # bound in the loop
            choose=PENALTIES,
            reads="frames",
            kinds=(),
        )
        for pool, title in (("mean", "mean"), ("max", "maximum"))
    ),
)
