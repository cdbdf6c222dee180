"""Compute gated attention pooling over a clip's frames: weights, logits, gradients, initial parameters."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from obygaze_models.models.binary import Floats
from obygaze_models.models.choices import log_loss
from obygaze_models.models.frames import mean_and_scale_of_frames, most_differing_directions
from obygaze_models.models.scaling import standardise

N_PERIODS = 3
"""Periods of the time embedding: a cosine and a sine of the clip's length, of its half and of its quarter."""

PROJECTION_PENALTY = 0.03
"""Weight of half the sum of the projection's squares in the loss: without it, evidence fits noise."""

N_CLIPS_AT_ONCE = 64
"""Clips that are handled at once, so that intermediate results fit in a core's cache."""

MAX_FRAMES_FOR_DIRECTIONS = 16384
"""Most frames of each class that initial directions are computed from.

More would hardly change the directions, and take as long as an epoch.
"""

MAX_DIRECTIONS = 2
"""Directions along which the first attention units are set, so that they respond to unusual frames."""

N_PAIRS = 2
"""Pairs of initial parameters; training goes on from the parameters with the lowest training loss."""


class AttentionLayers(NamedTuple):
    """Views of a flat parameter vector [P], or of its gradient.

    Attributes
    ----------
    projection : ndarray, shape [D, 2 L + 1]
        V [D, L], U [D, L] and c [D] of the network's equations, side by side; D with the time embedding.
    gate_bias : ndarray, shape [2 L]
        v [L], then u [L].
    attention : ndarray, shape [L]
        w.
    bias : ndarray, shape [1]
        b.
    """

    projection: Floats
    gate_bias: Floats
    attention: Floats
    bias: Floats


class PooledFrames(NamedTuple):
    """The attention weights and evidence of clips' frames, and the clips' logits.

    Attributes
    ----------
    weights : ndarray, shape [B, F]
        Each clip's weights add up to 1; those of absent frames are 0.
    evidence : ndarray, shape [B, F]
        Evidence of each frame for the positive class: c . h in the equations of `AttentionNetwork`.
    logits : ndarray, shape [B]
        Sum of weights times evidence, plus the bias.
    """

    weights: Floats
    evidence: Floats
    logits: Floats


class _Gate(NamedTuple):
    """The two factors of the gate for each frame, [B, F, L] each; without hidden units, L is 0.

    Attributes
    ----------
    tanh : ndarray
        tanh(V h + v).
    sigmoid : ndarray
        sigmoid(U h + u).
    """

    tanh: Floats
    sigmoid: Floats


@dataclass(frozen=True, slots=True)
class AttentionNetwork:
    """Gated attention pooling as a `TrainableNetwork`.

    A frame's features h [D] give it an attention weight and an evidence (Ilse et al. 2018, equations 8 and
    9)::

        e_f = w . (tanh(V h_f + v) * sigmoid(U h_f + u))    a = softmax(e)    logit = sum_f a_f (c . h_f) + b

    so that what each frame adds to the logit, a_f (c . h_f), can be shown. Without hidden units (L = 0) the
    weights of a clip's frames are equal.

    Parameters are one flat vector [P]: V, U and c as columns of one matrix [D, 2 L + 1], so that a single
    product reads the frames; then v and u [2 L], w [L] and b.

    `prepare` makes of clips [N, F, D] an array [N, F, D + 1], or [N, F, D + 6 + 1] with `timed`. The last
    column is 1 for an absent frame, whose other columns are 0, and 0 for a present one. The columns of the
    time embedding are before it.

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
        # A cosine and a sine of each period.
        n_times = 2 * N_PERIODS if self.timed else 0
        return self.n_features + n_times

    @property
    def n_parameters(self) -> int:
        """Count the parameters, P; their letters are those of the equations of `AttentionNetwork`."""
        n_columns = 2 * self.n_hidden + 1  # V and U have one for each hidden unit, c is one
        n_projection = self.n_inputs * n_columns
        n_gate_bias = 2 * self.n_hidden  # v and u
        n_attention = self.n_hidden  # w
        n_bias = 1  # b
        return n_projection + n_gate_bias + n_attention + n_bias

    def layers_of(self, parameters: Floats) -> AttentionLayers:
        """Split a vector [P] of all parameters, or their gradient, into layers: views, without copying."""
        # Three matrices stand side by side in the projection: V and U of the gated attention, with a column
        # for each hidden unit, and the classifier c, which has one.
        n_columns = 2 * self.n_hidden + 1
        end_of_projection = self.n_inputs * n_columns
        end_of_gate_bias = end_of_projection + 2 * self.n_hidden
        return AttentionLayers(
            projection=parameters[:end_of_projection].reshape(self.n_inputs, n_columns),
            gate_bias=parameters[end_of_projection:end_of_gate_bias],
            attention=parameters[end_of_gate_bias:-1],
            bias=parameters[-1:],
        )

    def mean_and_scale(self, X: Floats) -> tuple[Floats, Floats]:
        """Compute mean and scale [D] over all present frames of X [N, F, D]."""
        return mean_and_scale_of_frames(X)

    def prepare(self, X: Floats, mean: Floats, scale: Floats) -> Floats:
        """Standardise and clip frames [N, F, D]; append time embedding and a column that marks absent frames.

        The mark is a column so that a batch of clips remains one array when training selects its rows.

        Returns
        -------
        ndarray, shape [N, F, D' + 1]
            D' is `n_inputs`. The last column is 1 for absent frames, whose other columns are 0.
        """
        n_clips, n_frames, n_features = X.shape
        is_absent = np.isnan(X[..., 0])  # all features of an absent frame are NaN
        prepared = np.empty((n_clips, n_frames, self.n_inputs + 1), X.dtype)
        # In blocks, so that intermediate results stay small.
        for first in range(0, n_clips, N_CLIPS_AT_ONCE):
            block = slice(first, first + N_CLIPS_AT_ONCE)
            prepared[block, :, :n_features] = standardise(X[block], mean, scale, self.clip)

        if self.timed:
            prepared[..., n_features:-1] = _time_embedding(n_frames)
        prepared[is_absent] = 0
        prepared[..., -1] = is_absent
        return prepared

    # --- initial parameters
    # -----------------------------------------------------------------------

    def initial_parameters(self, rng: np.random.Generator, X: Floats, y: Floats) -> NDArray[np.float64]:
        """Draw K sets of initial parameters [K, P], of which training continues with the best.

        K is 2 `N_PAIRS`. The two sets of a pair differ in the sign of the evidence only. Without hidden units
        there is one set, drawn at random.

        Parameters
        ----------
        rng : Generator
        X : ndarray, shape [N, F, D + 1]
            Prepared clips to train on.
        y : ndarray, shape [N]
            Their labels, 0 or 1.
        """
        if not self.n_hidden:
            return self._draw_parameters(rng)[None]

        n_directions = min(MAX_DIRECTIONS, self.n_features)
        directions = self._discriminating_directions(X, y, n_directions)  # [D, n]
        starts = []
        for _ in range(N_PAIRS):
            parameters = self._draw_parameters(rng)
            # From random directions, the gradient of the attention is mostly noise.
            self._aim_hidden_units(parameters, directions)
            # With the wrong sign of the evidence, attention learns to avoid the frames that matter, and does
            # not recover: both signs are tried.
            mirrored = self._mirror_evidence(parameters, directions[:, 0])
            starts.append(parameters)
            starts.append(mirrored)
        return np.stack(starts)

    def _mirror_evidence(
        self, parameters: NDArray[np.float64], direction: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Copy parameters [P], with the sign of the evidence changed along a direction [D] of length 1.

        The evidence is the weights by which a frame's features speak for the label or against it. If they are
        (3, 4) and the direction is (1, 0), they become (-3, 4): what spoke for the label along the direction
        now speaks against it, and all else stays.
        """
        mirrored = parameters.copy()
        # The evidence is the last column of the projection, without its rows of inputs that are no features.
        # It is a view: to change it changes `mirrored`.
        evidence = self.layers_of(mirrored).projection[: self.n_features, -1]
        evidence -= 2 * (evidence @ direction) * direction
        return mirrored

    def _draw_parameters(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw parameters [P] uniformly, within 1 / sqrt(number of inputs of their layer) around 0.

        These are the initial parameters of PyTorch's ``Linear``.
        """
        # For each parameter the number of inputs of its layer, [P]. What is written to a layer's view is
        # written at the places of the layer's parameters.
        n_inputs = np.empty(self.n_parameters)
        layers = self.layers_of(n_inputs)
        layers.projection[:] = self.n_inputs
        layers.gate_bias[:] = self.n_inputs  # of the gate's arguments, which read a frame's features
        layers.attention[:] = self.n_hidden
        layers.bias[:] = self.n_inputs  # of the evidence, which reads a frame's features
        return np.asarray(rng.uniform(-1.0, 1.0, self.n_parameters) / np.sqrt(n_inputs))

    def _aim_hidden_units(self, parameters: NDArray[np.float64], directions: NDArray[np.float64]) -> None:
        """Point the first hidden units of `parameters` along directions [D, n] and their opposites, in place.

        The value of a hidden unit is the product of a tanh and a sigmoid, whose arguments a frame gets by the
        unit's columns of V and U. If both columns are the same direction, it is tanh(z) sigmoid(z), where z
        is the frame's coordinate along it. This is near 1 for large positive z, and near 0 for large negative
        z. A unit and its opposite together therefore respond to frames that are far from the mean on either
        side.

        Each direction takes two hidden units; directions for which there are none are left out. Biases are 0,
        and the units' weights in the attention are 1.
        """
        n_directions = min(directions.shape[1], self.n_hidden // 2)
        if not n_directions:
            return

        n_units = 2 * n_directions
        first_directions = directions[:, :n_directions]
        directions_of_units = np.concatenate([first_directions, -first_directions], axis=1)  # [D, units]

        layers = self.layers_of(parameters)  # views, by which `parameters` are changed
        # V and U are side by side, and so are their biases: the columns of the units in each.
        units_in_tanh = slice(0, n_units)
        units_in_sigmoid = slice(self.n_hidden, self.n_hidden + n_units)
        for units in (units_in_tanh, units_in_sigmoid):
            # The first rows are of a frame's features, the others of its time embedding.
            layers.projection[: self.n_features, units] = directions_of_units
            layers.projection[self.n_features :, units] = 0
            layers.gate_bias[units] = 0
        layers.attention[:n_units] = 1

    def _discriminating_directions(self, X: Floats, y: Floats, n: int) -> NDArray[np.float64]:
        """Find the n directions [D, n] along which the scatter of frames differs most between the classes.

        X are prepared clips [N, F, D + 1], y their labels [N]. The scatter of a class is the covariance of
        its frames around the mean of their own clip.
        """
        n_frames = X.shape[1]
        max_clips = max(MAX_FRAMES_FOR_DIRECTIONS // n_frames, 1)
        scatters = []
        for label in (0, 1):
            rows = np.flatnonzero(y == label)
            if len(rows) > max_clips:
                rows = _evenly_spaced(rows, max_clips)  # so that every movie has its share
            scatters.append(self._within_clip_scatter(X, rows))

        scatter_of_negative, scatter_of_positive = scatters
        directions = most_differing_directions(scatter_of_positive - scatter_of_negative, n)
        return _with_fixed_signs(directions)

    def _within_clip_scatter(self, X: Floats, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Compute the covariance [D, D] of frames around the mean of their own clip.

        X are prepared clips [N, F, D + 1], of which only `rows` are used.
        """
        scatter = np.zeros((self.n_features, self.n_features))
        n_frames = 0.0
        for start in range(0, len(rows), N_CLIPS_AT_ONCE):
            clips = X[rows[start : start + N_CLIPS_AT_ONCE]]
            frames = clips[..., : self.n_features]
            is_absent = clips[..., -1:]  # [B, F, 1]
            is_present = 1 - is_absent
            # Absent frames are 0, and add nothing to the sums.
            means = frames.sum(axis=1, keepdims=True) / is_present.sum(axis=1, keepdims=True)
            centred = ((frames - means) * is_present).reshape(-1, self.n_features)
            scatter += centred.T @ centred
            n_frames += float(is_present.sum())
        return scatter / max(n_frames, 1)

    # --- logits and gradients
    # -----------------------------------------------------------------------

    def pool(self, layers: AttentionLayers, X: Floats) -> PooledFrames:
        """Compute weights, evidence and logits of prepared clips [B, F, D + 1]."""
        pooled, _ = self._forward(layers, X)
        return pooled

    def logits(self, layers: AttentionLayers, X: Floats) -> Floats:
        """Compute the logit [B] of prepared clips."""
        return self.pool(layers, X).logits

    def loss(self, scores: Floats, y: Floats) -> float:
        """Compute the mean cross-entropy of logits [B] and labels 0 or 1 [B]."""
        return log_loss(y, scores)

    def backward(
        self,
        layers: AttentionLayers,
        X: Floats,
        y: Floats,
        gradient: AttentionLayers,
        weights: Floats | float = 1.0,
    ) -> Floats:
        """Compute the logits of a batch, and write the gradient of their cross-entropy into `gradient`.

        The network computes product = frames @ projection, whose columns are L arguments of tanh, L arguments
        of the sigmoid and the evidence, and from these the logits. The chain rule goes backwards:

        1. from the logits to derivatives by the product (for the gate: `_backward_through_gate`);
        2. from these to the gradient of the projection, which is frames' @ derivatives.

        `PROJECTION_PENALTY` adds a multiple of the projection to its gradient.

        Parameters
        ----------
        layers : AttentionLayers
            Views of the parameters [P].
        X : ndarray, shape [B, F, D + 1]
            Prepared clips.
        y : ndarray, shape [B]
            Labels 0 or 1, as floats.
        gradient : AttentionLayers
            Views of the gradient [P], which is overwritten.
        weights : ndarray, shape [B], or float
            Weights of the clips' losses, whose weighted sum is divided by B. (`pooled.weights` are weights of
            frames.)

        Returns
        -------
        ndarray, shape [B]
        """
        pooled, gate = self._forward(layers, X)

        # The derivative of the cross-entropy by a logit is p - y.
        by_logit = (expit(pooled.logits) - y) / len(y) * weights  # [B]
        gradient.bias[0] = by_logit.sum()

        n_columns = 2 * self.n_hidden + 1
        by_product = np.empty((*X.shape[:2], n_columns), X.dtype)  # [B, F, 2 L + 1]
        by_columns = self._columns_of(by_product)  # views, through which `by_product` is filled in
        # logit = sum of weights times evidence + bias
        by_columns.evidence[:] = by_logit[:, None] * pooled.weights
        if self.n_hidden:
            # Fills in the other columns, and the gradient of the attention weights.
            self._backward_through_gate(layers, pooled, gate, by_columns, gradient)
            # The gate's biases are added to all columns but the last, the evidence.
            gradient.gate_bias[:] = by_product[..., :-1].sum(axis=(0, 1))

        # The last column of X marks absent frames, and is no feature.
        frames = X.reshape(-1, X.shape[-1])[:, :-1]  # [B F, D]
        np.matmul(frames.T, by_product.reshape(len(frames), -1), out=gradient.projection)
        gradient.projection[:] += PROJECTION_PENALTY * layers.projection
        return pooled.logits

    def _backward_through_gate(
        self,
        layers: AttentionLayers,
        pooled: PooledFrames,
        gate: _Gate,
        by_columns: "_ProductColumns",
        gradient: AttentionLayers,
    ) -> None:
        """Fill in the derivatives by the gate's two arguments, and the gradient of the attention weights w.

        With t = tanh(argument) and s = sigmoid(argument), a frame has the score w . (t s), and a softmax over
        the clip's frames turns scores into weights. The chain rule gives for each frame the derivatives::

            by score                by evidence * (evidence - weighted mean evidence of the clip)
            by gated, which is t s  by score * w
            by argument of tanh     by gated * s (1 - t^2)  =  by gated * (s - gated t)
            by argument of sigmoid  by gated * t s (1 - s)  =  by gated * gated (1 - s)
            by w                    by score * gated, summed over clips and frames

        Parameters
        ----------
        layers : AttentionLayers
        pooled : PooledFrames
        gate : _Gate
        by_columns : _ProductColumns
            The derivatives by the evidence are read, those by the arguments are written.
        gradient : AttentionLayers
            Its `attention` is written.
        """
        mean_evidence = (pooled.weights * pooled.evidence).sum(axis=1, keepdims=True)  # [B, 1]
        by_score = by_columns.evidence * (pooled.evidence - mean_evidence)  # [B, F]
        gated = gate.tanh * gate.sigmoid  # [B, F, L]
        gradient.attention[:] = np.tensordot(by_score, gated, 2)  # by w; sums over two axes, clips and frames
        by_gated = by_score[..., None] * layers.attention
        np.multiply(by_gated, gate.sigmoid - gated * gate.tanh, out=by_columns.tanh_argument)
        np.multiply(by_gated, gated * (1 - gate.sigmoid), out=by_columns.sigmoid_argument)

    def _columns_of(self, product: Floats) -> "_ProductColumns":
        """Name the columns of a product of frames and projection [B, F, 2 L + 1], without copying."""
        return _ProductColumns(
            tanh_argument=product[..., : self.n_hidden],
            sigmoid_argument=product[..., self.n_hidden : -1],
            evidence=product[..., -1],
        )

    def _forward(self, layers: AttentionLayers, X: Floats) -> tuple[PooledFrames, _Gate]:
        """Pool prepared clips [B, F, D + 1] by the equations of `AttentionNetwork`.

        Each frame gets a score, from the two factors of a gate, and an evidence. A softmax over the frames of
        a clip turns scores into weights; the logit is the weighted sum of evidence, plus a bias. The factors
        are returned too, as the gradient needs them.
        """
        # Of each frame D features and, last, 1 if it is absent.
        is_present = 1 - X[..., -1]  # [B, F]
        frames = X.reshape(-1, X.shape[-1])[:, :-1]  # [B F, D]
        # The columns of the product: L arguments of tanh and L of the sigmoid, then the evidence.
        product = (frames @ layers.projection).reshape(*X.shape[:2], -1)  # [B, F, 2 L + 1]
        product[..., :-1] += layers.gate_bias
        columns = self._columns_of(product)
        gate = _Gate(np.tanh(columns.tanh_argument), _sigmoid(columns.sigmoid_argument))

        # Without hidden units all present frames have the score 1, so that their weights are equal.
        score = is_present
        if self.n_hidden:
            score = (gate.tanh * gate.sigmoid) @ layers.attention  # [B, F]

        # The softmax over the present frames of a clip.
        weights = np.exp(score - score.max(axis=1, keepdims=True)) * is_present
        weights /= weights.sum(axis=1, keepdims=True)

        logits = (weights * columns.evidence).sum(axis=1) + layers.bias[0]
        return PooledFrames(weights, columns.evidence, logits), gate


class _ProductColumns(NamedTuple):
    """Views of the product of frames and projection, or of the derivatives by this product.

    Attributes
    ----------
    tanh_argument, sigmoid_argument : ndarray, shape [B, F, L]
        V h + v and U h + u of each frame.
    evidence : ndarray, shape [B, F]
        c . h of each frame.
    """

    tanh_argument: Floats
    sigmoid_argument: Floats
    evidence: Floats


def _sigmoid(values: Floats) -> Floats:
    """Compute the logistic function as (1 + tanh(z / 2)) / 2, since numpy's tanh is vectorised."""
    sigmoid: Floats = np.tanh(values / 2)
    sigmoid += 1
    sigmoid /= 2
    return sigmoid


def _with_fixed_signs(directions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Choose the sign of each direction, a column of [D, n], so that its largest entry is positive.

    The sign of an eigenvector is arbitrary. The largest entry is that of largest absolute value.
    """
    n_directions = directions.shape[1]
    rows_of_largest = np.abs(directions).argmax(axis=0)  # [n]
    largest_entries = directions[rows_of_largest, np.arange(n_directions)]
    return np.asarray(directions * np.sign(largest_entries))


def _evenly_spaced(rows: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """Pick n rows at even distances: of rows 0 to 9, n = 5 picks 0, 2, 4, 6 and 8."""
    places = np.arange(n) * len(rows) // n
    return np.asarray(rows[places])


def _time_embedding(n_frames: int) -> NDArray[np.float64]:
    """Embed each frame's relative position in its clip as cosines and sines, [F, 2 N_PERIODS].

    The periods are the clip's length, its half, its quarter and so on. The middle of the first frame is at
    1 / (2 F), that of the last at 1 - 1 / (2 F).
    """
    position = (np.arange(n_frames) + 0.5) / n_frames
    angles = 2 * np.pi * np.outer(position, 2.0 ** np.arange(N_PERIODS))
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
