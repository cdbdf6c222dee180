"""Gated attention pooling over a clip's frames, its controls, and the models that read frames."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from obygaze_models.blas import one_blas_thread
from obygaze_models.models.binary import Floats, encode_labels
from obygaze_models.models.choices import EarlyStopping, log_loss
from obygaze_models.models.linear import PENALTIES, FrameReader, differing, frame_moments, make_frames_probe
from obygaze_models.models.parameters import Count, Positive
from obygaze_models.models.scaling import standardise
from obygaze_models.models.spec import ModelSpec
from obygaze_models.models.training import NetworkClassifier

Disturb = Literal["none", "exchange", "shuffle"]


N_PERIODS = 3
"""Periods of the time embedding: a cosine and a sine of the clip's length, of its half and of its quarter."""

DECAY = 0.03
"""Weight of half the projection's squares in the loss: without it, evidence fits noise."""

BLOCK = 64
"""Clips of which a sum is made at once, so that what is summed fits a core's cache."""

MOST_FRAMES = 16384
"""Frames of each class that say where to look: more change little, and cost as much as an epoch."""

N_AIMED = 2
"""Directions in which attention first looks for frames that stand out."""

N_PAIRS = 2
"""Pairs of starts, of which the one with the lowest training loss is trained on."""


class AttentionLayers(NamedTuple):
    """Views of a flat parameter vector [P]."""

    projection: Floats  # [D, 2 L + 1]
    gate_bias: Floats  # [2 L]
    attention: Floats  # [L]
    bias: Floats  # [1]


class PooledFrames(NamedTuple):
    """What a clip's frames gave."""

    weights: Floats  # [B, F], each clip's add up to 1; 0 for frames that are absent
    evidence: Floats  # [B, F]: c . h of each frame
    logits: Floats  # [B]


@dataclass(frozen=True, slots=True)
class AttentionNetwork:
    """Gated attention pooling as a `obygaze_models.models.training.Network`.

    A frame's features h [D] give it an attention weight and an evidence (Ilse et al. 2018, equations 8 and
    9)::

        e_f = w . (tanh(V h_f + v) * sigmoid(U h_f + u))    a = softmax(e)    logit = sum_f a_f (c . h_f) + b

    so that what each frame adds to the logit, a_f (c . h_f), can be shown. Parameters are one flat vector
    [P]: V, U and c as columns of one matrix [D, 2 L + 1], for one product reads the frames once; then v and u
    [2 L], w [L] and b. Without hidden units (L = 0) the weights of a clip's frames are equal.

    What `prepare` makes of clips [N, F, D] has a last column that is 1 for absent frames, whose other columns
    are 0; before it are, with `timed`, those of the time embedding.

    Attributes
    ----------
    n_features : int
        D.
    n_hidden : int
        L; 0 for equal weights.
    timed : bool
        Whether a frame's place in its clip is added to its features.
    clip : float, optional
        Deviations at which standardised features are cut off.
    """

    n_features: int
    n_hidden: int
    timed: bool
    clip: float | None

    @property
    def n_inputs(self) -> int:
        """Count a frame's features, time embedding included."""
        return self.n_features + 2 * N_PERIODS * self.timed

    @property
    def n_parameters(self) -> int:
        """Count the parameters, P."""
        return self.n_inputs * (2 * self.n_hidden + 1) + 3 * self.n_hidden + 1

    def moments(self, X: Floats) -> tuple[Floats, Floats]:
        """Compute mean and scale [D] over all present frames of X [N, F, D]."""
        return frame_moments(X)

    def prepare(self, X: Floats, mean: Floats, scale: Floats) -> Floats:
        """Standardise and cut frames [N, F, D], and add the time embedding and the column of absence."""
        n_clips, n_frames, n_features = X.shape
        absent = np.isnan(X[..., 0])
        ready = np.empty((n_clips, n_frames, self.n_inputs + 1), X.dtype)
        for first in range(0, n_clips, BLOCK):
            block = slice(first, first + BLOCK)
            ready[block, :, :n_features] = standardise(X[block], mean, scale, self.clip)
        if self.timed:
            # Each frame's place in its clip, as cosines and sines.
            position = (np.arange(n_frames) + 0.5) / n_frames
            angles = 2 * np.pi * np.outer(position, 2.0 ** np.arange(N_PERIODS))
            ready[..., n_features:-1] = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
        ready[absent] = 0
        ready[..., -1] = absent
        return ready

    def starts(self, rng: np.random.Generator, X: Floats, y: Floats) -> NDArray[np.float64]:
        """Draw initial parameters [K, P] in pairs whose evidence has opposite signs along one direction.

        The law is PyTorch's Linear's: uniform within 1/sqrt(inputs) of zero, layer by layer. But attention
        learns nothing while it looks away from what matters, for then the gradient of its direction is noise:
        the first hidden units begin with the directions in which the frames of the two classes scatter most
        differently (`_where_to_look`). And where the evidence begins with the wrong sign along that
        direction, attention learns to avoid the frames that matter and stays there: hence both signs.
        """
        if not self.n_hidden:
            return self._draw(rng)[None]
        directions = self._where_to_look(X, y, min(N_AIMED, self.n_features))
        starts = []
        for _ in range(N_PAIRS):
            parameters = self._draw(rng)
            self._aim(parameters, directions)
            mirrored = parameters.copy()
            evidence = self.views(mirrored).projection[: self.n_features, -1]
            evidence -= 2 * (evidence @ directions[:, 0]) * directions[:, 0]
            starts += [parameters, mirrored]
        return np.stack(starts)

    def _draw(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw parameters [P]."""
        sizes = self.n_parameters - self.n_hidden - 1, self.n_hidden, 1
        inputs = np.repeat((self.n_inputs, self.n_hidden, self.n_inputs), sizes)
        return np.asarray(rng.uniform(-1.0, 1.0, self.n_parameters) / np.sqrt(inputs))

    def _aim(self, parameters: NDArray[np.float64], directions: NDArray[np.float64]) -> None:
        """Point the first hidden units along directions [D, n] and their opposites."""
        n_aimed = min(directions.shape[1], self.n_hidden // 2)
        if n_aimed:
            layer = self.views(parameters)
            both = np.concatenate([directions[:, :n_aimed], -directions[:, :n_aimed]], axis=1)
            # tanh(z) sigmoid(z) is large for large z alone; with its opposite, for frames far off either way.
            for first in (0, self.n_hidden):
                layer.projection[: self.n_features, first : first + 2 * n_aimed] = both
                layer.projection[self.n_features :, first : first + 2 * n_aimed] = 0
                layer.gate_bias[first : first + 2 * n_aimed] = 0
            layer.attention[: 2 * n_aimed] = 1

    def _where_to_look(self, X: Floats, y: Floats, n: int) -> NDArray[np.float64]:
        """Find the directions [D, n] in which frames of the two classes scatter most differently."""
        scatters = []
        for label in (0, 1):
            own = np.flatnonzero(y == label)
            most = max(MOST_FRAMES // X.shape[1], 1)
            if len(own) > most:  # evenly spaced, so that every movie has its share
                own = own[np.arange(most) * len(own) // most]
            scatter, n_frames = np.zeros((self.n_features, self.n_features)), 0.0
            for start in range(0, len(own), BLOCK):
                clips = X[own[start : start + BLOCK]]
                frames, present = clips[..., : self.n_features], 1 - clips[..., -1:]
                apart = (
                    frames - frames.sum(axis=1, keepdims=True) / present.sum(axis=1, keepdims=True)
                ) * present
                apart = apart.reshape(-1, self.n_features)
                scatter += apart.T @ apart
                n_frames += float(present.sum())
            scatters.append(scatter / max(n_frames, 1))
        chosen = differing(scatters[1] - scatters[0], n)
        # An eigenvector has no sign of its own: the largest entry is positive.
        chosen *= np.sign(chosen[np.abs(chosen).argmax(axis=0), np.arange(n)])
        return chosen

    def views(self, parameters: Floats) -> AttentionLayers:
        """Cut a vector [P] into layers, without copying."""
        n_columns = 2 * self.n_hidden + 1
        first = self.n_inputs * n_columns
        second = first + 2 * self.n_hidden
        return AttentionLayers(
            parameters[:first].reshape(self.n_inputs, n_columns),
            parameters[first:second],
            parameters[second:-1],
            parameters[-1:],
        )

    def pool(self, layer: AttentionLayers, X: Floats) -> PooledFrames:
        """Compute weights, evidence and logits of prepared clips [B, F, D + 1]."""
        return self._forward(layer, X)[0]

    def logits(self, layer: AttentionLayers, X: Floats) -> Floats:
        """Compute the logit [B] of prepared clips."""
        return self.pool(layer, X).logits

    def backward(
        self,
        layer: AttentionLayers,
        X: Floats,
        y: Floats,
        slope: AttentionLayers,
        weights: Floats | float = 1.0,
    ) -> Floats:
        """Compute logits [B], and write the gradient of their mean weighted cross-entropy into `slope`."""
        n_hidden = self.n_hidden
        pooled, squashed, gate = self._forward(layer, X)
        pull = (expit(pooled.logits) - y) / len(y) * weights
        slope.bias[0] = pull.sum()
        columns = np.empty((*X.shape[:2], 2 * n_hidden + 1), X.dtype)
        columns[..., -1] = pull[:, None] * pooled.weights
        if n_hidden:
            # Through the softmax: what a frame's evidence is more than the clip's mean.
            mean = (pooled.weights * pooled.evidence).sum(axis=1, keepdims=True)
            score = columns[..., -1] * (pooled.evidence - mean)
            gated = squashed * gate
            slope.attention[:] = np.tensordot(score, gated, 2)
            spread = score[..., None] * layer.attention
            np.multiply(spread, gate - gated * squashed, out=columns[..., :n_hidden])
            np.multiply(spread, gated * (1 - gate), out=columns[..., n_hidden:-1])
            slope.gate_bias[:] = columns[..., :-1].sum(axis=(0, 1))
        flat = X.reshape(-1, X.shape[-1])[:, :-1]
        np.matmul(flat.T, columns.reshape(len(flat), -1), out=slope.projection)
        slope.projection[:] += DECAY * layer.projection
        return pooled.logits

    def loss(self, scores: Floats, y: Floats) -> float:
        """Compute the mean cross-entropy of logits [B] and labels 0 or 1 [B]."""
        return log_loss(y, scores)

    def _forward(self, layer: AttentionLayers, X: Floats) -> tuple[PooledFrames, Any, Any]:
        """Pool, and keep the two halves of the gate [B, F, L]."""
        n_hidden = self.n_hidden
        product = X.reshape(-1, X.shape[-1])[:, :-1] @ layer.projection
        product = product.reshape(*X.shape[:2], -1)
        present = 1 - X[..., -1]
        squashed = gate = None
        score = present
        if n_hidden:
            product[..., :-1] += layer.gate_bias
            # The logistic function by tanh, which is vectorised.
            squashed, gate = np.tanh(product[..., :n_hidden]), np.tanh(product[..., n_hidden:-1] / 2)
            gate += 1
            gate /= 2
            score = (squashed * gate) @ layer.attention
        weights = np.exp(score - score.max(axis=1, keepdims=True)) * present
        weights /= weights.sum(axis=1, keepdims=True)
        evidence = product[..., -1]
        logits = (weights * evidence).sum(axis=1) + layer.bias[0]
        return PooledFrames(weights, evidence, logits), squashed, gate


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
        Learnt weights, or equal ones: what the weights add is the difference.
    timed : bool
        Whether a frame's place in its clip is added to its features.
    disturb : {"none", "exchange", "shuffle"}
        What is done to the clips trained on, for controls: "exchange" deals the frames anew among the clips
        of the same movie and label; "shuffle" puts each clip's frames in random order, so that time says
        nothing.
    learning_rate, batch_size, min_epochs, max_epochs, patience, clip, random_state
        Of the training, see `NetworkClassifier`.

    Attributes
    ----------
    parameters_ : ndarray, shape [P]
        `AttentionNetwork.views` cuts them into layers.
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
        self._validate_params()
        frames = self._first_frames(X, y)
        classes, labels = encode_labels(y, type(self).__name__)
        frames = self._disturbed(frames, labels, groups)
        if X_val is not None:
            X_val = np.asarray(self._frames(X_val), frames.dtype)
        return self._fit(frames, classes, labels, X_val, y_val)

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
        network = self._network(self.n_features_in_)
        frames = self._frames(X).astype(self.mean_.dtype, copy=False)
        layer = network.views(self.parameters_)
        # Matrix libraries choose kernels by size: a clip at a time has the same bytes alone and together.
        with one_blas_thread():
            pooled = [
                network.pool(layer, network.prepare(clip[None], self.mean_, self.scale_)) for clip in frames
            ]
        return PooledFrames(*(np.concatenate(parts) for parts in zip(*pooled, strict=True)))

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


def _spec(
    name: str, title: str, *, uses: tuple[str, ...] = (), beside: tuple[str, ...] = (), **settings: Any
) -> ModelSpec:
    def make(seed: int) -> AttentionPooling:
        return AttentionPooling(**settings, random_state=seed)

    about: dict[str, Any] = {"control": not beside, "beside": beside}
    return ModelSpec(name, title, make, EarlyStopping(), "frames", uses, kinds=(), **about)


def _frames(pool: Literal["mean", "max"], title: str) -> ModelSpec:
    title, choose = f"Logistic regression, {title} of frames", PENALTIES
    return ModelSpec(f"{pool}_frames", title, lambda _: make_frames_probe(pool), choose, "frames", kinds=())


SPECS = (
    _spec("attention", "Attention", beside=CONTROLS),
    _spec("attention_time", "Attention and time", beside=(*CONTROLS, "attention_shuffled"), timed=True),
    _spec("attention_uniform", "Equal weights", attention="uniform"),
    _spec(
        "attention_exchanged", "Attention, trained on exchanged frames", uses=("groups",), disturb="exchange"
    ),
    _spec("attention_shuffled", "Attention and time, trained in random order", timed=True, disturb="shuffle"),
    _frames("mean", "mean"),
    _frames("max", "maximum"),
)
