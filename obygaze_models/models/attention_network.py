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

MOST_FRAMES_FOR_DIRECTIONS = 16384
"""Most frames of each class that initial directions are computed from.

More would hardly change the directions, and take as long as an epoch.
"""

MOST_DIRECTIONS = 2
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
        """Count the parameters, P."""
        # In the letters of the equations: V, U and c; v and u; w; b.
        n_projection = self.n_inputs * (self.n_hidden + self.n_hidden + 1)
        n_gate_bias = self.n_hidden + self.n_hidden
        n_attention = self.n_hidden
        n_bias = 1
        return n_projection + n_gate_bias + n_attention + n_bias

    def layers_of(self, parameters: Floats) -> AttentionLayers:
        """Cut a vector [P] into layers, without copying."""
        n_columns = 2 * self.n_hidden + 1  # of V, U and c
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
        absent = np.isnan(X[..., 0])
        prepared = np.empty((n_clips, n_frames, self.n_inputs + 1), X.dtype)
        for first in range(0, n_clips, N_CLIPS_AT_ONCE):
            block = slice(first, first + N_CLIPS_AT_ONCE)
            prepared[block, :, :n_features] = standardise(X[block], mean, scale, self.clip)
        if self.timed:
            prepared[..., n_features:-1] = _time_embedding(n_frames)
        prepared[absent] = 0
        prepared[..., -1] = absent
        return prepared

    # --- initial parameters
    # -----------------------------------------------------------------------

    def initial_parameters(self, rng: np.random.Generator, X: Floats, y: Floats) -> NDArray[np.float64]:
        """Draw K sets of initial parameters [K, P], in pairs that differ in the sign of the evidence only.

        Parameters are drawn as PyTorch's ``Linear`` draws them (`_draw_parameters`), with two changes. The
        first hidden units point along the directions in which the scatter of the frames differs most between
        the classes (`_discriminating_directions`): from a random direction the gradient of the attention is
        mostly noise. And both signs of the evidence along the first direction are tried: with the wrong sign,
        attention learns to avoid the frames that matter and does not recover.

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
        directions = self._discriminating_directions(X, y, min(MOST_DIRECTIONS, self.n_features))  # [D, n]
        first_direction = directions[:, 0]
        starts = []
        for _ in range(N_PAIRS):
            parameters = self._draw_parameters(rng)
            self._aim_hidden_units(parameters, directions)
            starts.append(parameters)
            starts.append(self._mirror_evidence(parameters, first_direction))
        return np.stack(starts)

    def _mirror_evidence(
        self, parameters: NDArray[np.float64], direction: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Copy parameters [P], with the sign of the evidence changed along a direction [D] of length 1.

        If the evidence is (3, 4) and the direction (1, 0), it becomes (-3, 4).
        """
        mirrored = parameters.copy()
        evidence = self.layers_of(mirrored).projection[: self.n_features, -1]  # a view of `mirrored`
        evidence -= 2 * (evidence @ direction) * direction
        return mirrored

    def _draw_parameters(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw parameters [P], each uniform within 1/sqrt(inputs of its layer) of zero."""
        # The layers in the order of the parameters: projection and gate biases, whose inputs are a frame's
        # features; attention, whose inputs are the hidden units; and the bias, which belongs to the evidence
        # and so has the features as inputs.
        n_attention = self.n_hidden
        n_bias = 1
        n_projection_and_gate_bias = self.n_parameters - n_attention - n_bias
        n_parameters_of_layers = (n_projection_and_gate_bias, n_attention, n_bias)
        n_inputs_of_layers = (self.n_inputs, self.n_hidden, self.n_inputs)
        n_inputs_of_parameters = np.repeat(n_inputs_of_layers, n_parameters_of_layers)
        return np.asarray(rng.uniform(-1.0, 1.0, self.n_parameters) / np.sqrt(n_inputs_of_parameters))

    def _aim_hidden_units(self, parameters: NDArray[np.float64], directions: NDArray[np.float64]) -> None:
        """Point the first hidden units of `parameters` along directions [D, n] and their opposites, in place.

        If V and U point along the same direction, a unit is tanh(z) sigmoid(z) of the frame's coordinate z
        along it: large for large positive z only. A unit and its opposite together respond to frames that are
        far from the mean on either side. As many directions are used as there are pairs of hidden units.
        """
        n_directions = min(directions.shape[1], self.n_hidden // 2)
        if not n_directions:
            return
        layers = self.layers_of(parameters)
        used = directions[:, :n_directions]
        directions_of_units = np.concatenate([used, -used], axis=1)
        first_column_of_V = 0
        first_column_of_U = self.n_hidden
        for first in (first_column_of_V, first_column_of_U):
            units = slice(first, first + 2 * n_directions)
            layers.projection[: self.n_features, units] = directions_of_units
            layers.projection[self.n_features :, units] = 0  # the time embedding
            layers.gate_bias[units] = 0
        layers.attention[: 2 * n_directions] = 1

    def _discriminating_directions(self, X: Floats, y: Floats, n: int) -> NDArray[np.float64]:
        """Find the n directions [D, n] along which the scatter of frames differs most between the classes.

        X are prepared clips [N, F, D + 1], y their labels [N]. The scatter of a class is the covariance of
        its frames around the mean of their own clip.
        """
        n_frames = X.shape[1]
        most_clips = max(MOST_FRAMES_FOR_DIRECTIONS // n_frames, 1)
        scatters = []
        for label in (0, 1):
            rows = np.flatnonzero(y == label)
            if len(rows) > most_clips:
                # Evenly spaced, so that every movie has its share.
                rows = rows[np.arange(most_clips) * len(rows) // most_clips]
            scatters.append(self._within_clip_scatter(X, rows))
        directions = most_differing_directions(scatters[1] - scatters[0], n)
        # The sign of an eigenvector is arbitrary. It is chosen so that the entry of largest absolute value is
        # positive.
        largest_entries = directions[np.abs(directions).argmax(axis=0), np.arange(n)]
        directions *= np.sign(largest_entries)
        return directions

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

        In the letters of the class, with t = tanh(V h + v) and s = sigmoid(U h + u), a frame has the score
        e = w . (t s) and the evidence c . h. With g, the derivative of the loss by the clip's logit, the
        derivatives for each frame are::

            by the evidence               g a
            by the score e                g a (evidence - weighted mean evidence of the clip)
            by the argument of tanh       (by score) w s (1 - t^2) = (by score) w (s - (t s) t)
            by the argument of sigmoid    (by score) w (t s) (1 - s)

        The evidence and the two arguments are columns of the frame's product with the projection, so that
        the projection's gradient follows by one matrix product.

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
        n_hidden = self.n_hidden
        pooled, gate = self._forward(layers, X)
        by_logit = (expit(pooled.logits) - y) / len(y) * weights  # [B]
        gradient.bias[0] = by_logit.sum()
        by_product = np.empty((*X.shape[:2], 2 * n_hidden + 1), X.dtype)  # [B, F, 2 L + 1]
        by_tanh_argument = by_product[..., :n_hidden]
        by_sigmoid_argument = by_product[..., n_hidden:-1]
        by_evidence = by_product[..., -1]
        by_evidence[:] = by_logit[:, None] * pooled.weights
        if n_hidden:
            mean_evidence = (pooled.weights * pooled.evidence).sum(axis=1, keepdims=True)
            by_score = by_evidence * (pooled.evidence - mean_evidence)
            gated = gate.tanh * gate.sigmoid
            gradient.attention[:] = np.tensordot(by_score, gated, 2)
            by_gated = by_score[..., None] * layers.attention
            np.multiply(by_gated, gate.sigmoid - gated * gate.tanh, out=by_tanh_argument)
            np.multiply(by_gated, gated * (1 - gate.sigmoid), out=by_sigmoid_argument)
            gradient.gate_bias[:] = by_product[..., :-1].sum(axis=(0, 1))
        frames = X.reshape(-1, X.shape[-1])[:, :-1]
        np.matmul(frames.T, by_product.reshape(len(frames), -1), out=gradient.projection)
        gradient.projection[:] += PROJECTION_PENALTY * layers.projection
        return pooled.logits

    def _forward(self, layers: AttentionLayers, X: Floats) -> tuple[PooledFrames, _Gate]:
        """Pool prepared clips [B, F, D + 1]; return the two factors of the gate too, for the gradient."""
        n_hidden = self.n_hidden
        is_present = 1 - X[..., -1]
        # The columns of the product are those of V, U and c: the arguments of tanh, the arguments of the
        # sigmoid, and the evidence.
        product = X.reshape(-1, X.shape[-1])[:, :-1] @ layers.projection
        product = product.reshape(*X.shape[:2], -1)  # [B, F, 2 L + 1]
        product[..., :-1] += layers.gate_bias
        evidence = product[..., -1]
        # The logistic function as (1 + tanh(z / 2)) / 2, since numpy's tanh is vectorised.
        sigmoid = np.tanh(product[..., n_hidden:-1] / 2)
        sigmoid += 1
        sigmoid /= 2
        gate = _Gate(np.tanh(product[..., :n_hidden]), sigmoid)
        score = is_present  # without hidden units: the same for all present frames
        if n_hidden:
            score = (gate.tanh * gate.sigmoid) @ layers.attention
        weights = np.exp(score - score.max(axis=1, keepdims=True)) * is_present
        weights /= weights.sum(axis=1, keepdims=True)
        logits = (weights * evidence).sum(axis=1) + layers.bias[0]
        return PooledFrames(weights, evidence, logits), gate


def _time_embedding(n_frames: int) -> NDArray[np.float64]:
    """Embed each frame's relative position in its clip as cosines and sines, [F, 2 N_PERIODS]."""
    position = (np.arange(n_frames) + 0.5) / n_frames
    angles = 2 * np.pi * np.outer(position, 2.0 ** np.arange(N_PERIODS))
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
