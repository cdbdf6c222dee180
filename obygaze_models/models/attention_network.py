"""Compute gated attention pooling over a clip's frames: weights, logits, gradient.

A frame's features h [D] give it an attention weight and an evidence (Ilse et al. 2018, equations 8 and 9)::

    e_f = w . (tanh(V h_f + v) * sigmoid(U h_f + u))      a = softmax(e)      logit = sum_f a_f (c . h_f) + b

so that what each frame adds to the logit, a_f (c . h_f), can be shown. Parameters are one flat vector [P]:
V, U and c as columns of one matrix [D, 2 L + 1], for one product reads the frames once; then v and u [2 L],
w [L] and b. Without hidden units (L = 0) the weights of a clip's frames are equal.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from obygaze_models.models.binary import Floats
from obygaze_models.models.linear import safe_scale, standardise
from obygaze_models.models.mlp_network import log_loss

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
        blocks = [X[first : first + BLOCK] for first in range(0, len(X), BLOCK)]
        n = int((~np.isnan(X[..., 0])).sum())
        mean = sum(np.nansum(block.astype(np.float64), axis=(0, 1)) for block in blocks) / n
        squares = sum(np.nansum((block.astype(np.float64) - mean) ** 2, axis=(0, 1)) for block in blocks)
        return safe_scale(mean, np.sqrt(squares / n), X.dtype)

    def prepare(self, X: Floats, mean: Floats, scale: Floats) -> Floats:
        """Standardise and cut frames [N, F, D], and add the time embedding and the column of absence."""
        n_clips, n_frames, n_features = X.shape
        absent = np.isnan(X[..., 0])
        ready = np.empty((n_clips, n_frames, self.n_inputs + 1), X.dtype)
        for first in range(0, n_clips, BLOCK):
            block = slice(first, first + BLOCK)
            ready[block, :, :n_features] = standardise(X[block], mean, scale, self.clip)
        if self.timed:
            ready[..., n_features:-1] = _time_embedding(n_frames)
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
        parameters = rng.uniform(-1.0, 1.0, self.n_parameters)
        border = self.n_inputs * (2 * self.n_hidden + 1) + 2 * self.n_hidden
        parameters[:border] /= np.sqrt(self.n_inputs)
        parameters[border:-1] /= np.sqrt(max(self.n_hidden, 1))
        parameters[-1] /= np.sqrt(self.n_inputs)
        return parameters

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
        sizes, vectors = np.linalg.eigh(scatters[1] - scatters[0])
        largest = np.argsort(-np.abs(sizes), kind="stable")[:n]
        chosen: NDArray[np.float64] = vectors[:, largest]
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
        return log_loss(scores, y)

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


def _time_embedding(n_frames: int) -> NDArray[np.float64]:
    """Give each frame's place in its clip as cosines and sines [F, 2 K]."""
    position = (np.arange(n_frames) + 0.5) / n_frames
    angles = 2 * np.pi * np.outer(position, 2.0 ** np.arange(N_PERIODS))
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
