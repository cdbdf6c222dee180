"""Weigh a clip's frames by gated attention; its controls, and the models that read frames."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from obygaze_models.blas import one_blas_thread
from obygaze_models.models.attention_network import AttentionNetwork, PooledFrames
from obygaze_models.models.binary import Floats, encode_labels
from obygaze_models.models.choices import EarlyStopping
from obygaze_models.models.frames import FrameReader, shuffle_frames
from obygaze_models.models.linear import PENALTIES, make_frames_probe
from obygaze_models.models.neural_classifiers import NetworkClassifier
from obygaze_models.models.parameters import Count, Positive
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.exchanges import rows_that_exchange

Disturb = Literal["none", "exchange", "shuffle"]


@dataclass(eq=False, repr=False)
class AttentionPooling(FrameReader, NetworkClassifier):
    """Weigh a clip's frames by gated attention (Ilse et al. 2018), and decide by their weighted evidence.

    What a frame adds to the logit is its weight times its evidence; `weights` and `evidence` give both. A
    weight is not an explanation by itself: docs/when.md. Frames are standardised by the moments of all frames
    trained on, and cut off at `clip` deviations. A frame of NaN is absent: its weight is 0.

    Parameters
    ----------
    n_hidden : int
        Hidden units of the attention, L.
    attention : {"gated", "uniform"}
        Learnt weights, or equal ones as a control.
    timed : bool
        Whether a frame's place in its clip is added to its features.
    disturb : {"none", "exchange", "shuffle"}
        What is done to the training clips, for controls: "exchange" deals the frames anew among the clips of
        the same movie and label; "shuffle" puts each clip's frames in random order, so that time says
        nothing.
    learning_rate, batch_size, min_epochs, max_epochs, patience, clip, random_state
        Of the training, see `NetworkClassifier`.

    Attributes
    ----------
    parameters_ : ndarray, shape [P]
        `AttentionNetwork.layers_of` cuts them into layers.
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

    n_hidden: Count = 16
    _: KW_ONLY
    attention: Literal["gated", "uniform"] = "gated"
    timed: bool = False
    disturb: Disturb = "none"
    learning_rate: Positive = 3e-3
    batch_size: Count = 32
    max_epochs: Count = 60

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

        If the model is a control (`disturb`), frames are first shuffled within clips, or exchanged between
        clips of a movie, so that it learns from frames whose order, or whose clip, means nothing.

        Parameters
        ----------
        X : array-like, shape [N, F, D]
            Training computes in the precision of float32 or float64 arrays, and in float32 for other floats.
        y : array-like, shape [N]
            Two labels; the second in sorted order is the positive one.
        groups : array-like, shape [N], optional
            The movie of each clip; only the control that exchanges frames within movies needs it.
        X_val, y_val : array-like, shapes [M, F, D] and [M], optional
            Clips to choose the epoch on, of movies that are not in X.

        Raises
        ------
        ValueError
            X has no frames, a clip has no present frame, or one of X_val and y_val is missing.
        """
        self._validate_params()
        frames = self._check_frames_to_fit(X, y)
        classes, labels = encode_labels(y, type(self).__name__)
        frames = self._disturb_frames(frames, labels, groups)
        if X_val is not None:
            # The network computes in the precision of the training clips.
            X_val = np.asarray(self._check_frames(X_val), frames.dtype)
        return self._train_alone(frames, classes, labels, X_val, y_val)

    def decision_function(self, X: ArrayLike) -> Floats:
        """Compute the logit [N] of each clip of X [N, F, D]."""
        return self._pool(X).logits

    def weights(self, X: ArrayLike) -> Floats:
        """Compute the attention weight of each frame of X [N, F, D]: [N, F], each clip's add up to 1."""
        return self._pool(X).weights

    def evidence(self, X: ArrayLike) -> Floats:
        """Compute the evidence of each frame of X [N, F, D] for the positive class: [N, F].

        It is not yet weighted: a clip's logit is ``sum(weights * evidence) + bias`` over its frames.
        """
        return self._pool(X).evidence

    def _pool(self, X: ArrayLike) -> PooledFrames:
        """Compute what the fitted network makes of frames X [N, F, D]: weights, evidence and logits.

        Weights and evidence are [N, F], one number a frame; logits are [N], one a clip.
        """
        check_is_fitted(self)
        network = self._network(self.n_features_in_)
        frames = self._check_frames(X).astype(self.mean_.dtype, copy=False)
        parameters = network.layers_of(self.parameters_)
        # Clips are pooled one at a time, since the rounding of a product depends on the size of the batch.
        with one_blas_thread():
            pooled = []
            for clip in frames:
                prepared = network.prepare(clip[None], self.mean_, self.scale_)
                pooled.append(network.pool(parameters, prepared))
        return PooledFrames(
            weights=np.concatenate([clip.weights for clip in pooled]),
            evidence=np.concatenate([clip.evidence for clip in pooled]),
            logits=np.concatenate([clip.logits for clip in pooled]),
        )

    def _network(self, n_features: int) -> AttentionNetwork:
        """Make the network for frames of `n_features` numbers; uniform attention has no hidden units."""
        n_hidden = self.n_hidden if self.attention == "gated" else 0
        return AttentionNetwork(n_features, n_hidden, self.timed, self.clip)

    def _disturb_frames(self, frames: Floats, y: NDArray[np.int64], groups: ArrayLike | None) -> Floats:
        """Disturb the training frames [N, F, D] of a control, as the parameter `disturb` says.

        With "shuffle", the frames of each clip are shuffled; with "exchange", frames are exchanged between
        clips of the same movie (`groups` [N]) and label (y [N]); with "none", they are returned as they are.
        """
        if self.disturb == "none":
            return frames
        # Training draws from the stream of random numbers (random_state, 0); this one is independent of it.
        rng = np.random.default_rng((int(self.random_state), 1))
        if self.disturb == "shuffle":
            return shuffle_frames(frames, rng)
        if groups is None:
            raise ValueError("frames are exchanged within movies: give groups")
        return _exchange_frames(frames, y, np.asarray(groups), rng)


def _exchange_frames(
    frames: Floats, y: NDArray[np.int64], movies: NDArray[Any], rng: np.random.Generator
) -> Floats:
    """Permute the frames [N, F, D] among the clips of the same movie and label (y [N], movies [N]).

    Movies of one clip exchange theirs with each other (`rows_that_exchange`). Each position in the clip is
    permuted on its own, so that a clip's frames come from several clips. What the frames of one clip have in
    common is lost; the mean over a movie's clips of one label is kept.
    """
    exchanged = frames.copy()
    for rows_of_movie in rows_that_exchange(movies):
        for label in (0, 1):
            rows = rows_of_movie[y[rows_of_movie] == label]
            for position in range(frames.shape[1]):
                exchanged[rows, position] = frames[rng.permutation(rows), position]
    return exchanged


CONTROLS = ("mean_frames", "max_frames", "attention_uniform", "attention_exchanged")
"""Controls of attention: what the weights, and a clip's own frames, add to mean pooling."""


def _attention_spec(
    name: str, title: str, *, uses: tuple[str, ...] = (), compared_with: tuple[str, ...] = (), **settings: Any
) -> ModelSpec:
    """Make the spec of an `AttentionPooling` with these settings.

    Parameters
    ----------
    name, title : str
        The model's name in commands, and its title in tables.
    uses : tuple of str
        What ``fit`` takes in addition to X and y.
    compared_with : tuple of str
        The controls that are evaluated with it for comparison. The spec of a control names none.
    **settings
        Parameters of `AttentionPooling`.
    """

    def make(seed: int) -> AttentionPooling:
        """Make the unfitted estimator with a seed."""
        return AttentionPooling(**settings, random_state=seed)

    is_control = not compared_with
    return ModelSpec(
        name,
        title,
        make,
        choose=EarlyStopping(),
        reads="frames",
        uses=uses,
        kinds=(),  # evaluated only if it is named
        control=is_control,
        compared_with=compared_with,
    )


def _frames_probe_spec(pool: Literal["mean", "max"], title: str) -> ModelSpec:
    """Make the spec of the linear probe on the mean or the maximum over a clip's frames.

    `title` is the word for that in the model's title.
    """
    return ModelSpec(
        f"{pool}_frames",
        f"Logistic regression, {title} of frames",
        lambda _: make_frames_probe(pool),
        choose=PENALTIES,
        reads="frames",
        kinds=(),  # evaluated only if it is named
    )


SPECS = (
    _attention_spec("attention", "Attention", compared_with=CONTROLS),
    _attention_spec(
        "attention_time", "Attention and time", compared_with=(*CONTROLS, "attention_shuffled"), timed=True
    ),
    _attention_spec("attention_uniform", "Equal weights", attention="uniform"),
    _attention_spec(
        "attention_exchanged", "Attention, trained on exchanged frames", uses=("groups",), disturb="exchange"
    ),
    _attention_spec(
        "attention_shuffled", "Attention and time, trained in random order", timed=True, disturb="shuffle"
    ),
    _frames_probe_spec("mean", "mean"),
    _frames_probe_spec("max", "maximum"),
)
