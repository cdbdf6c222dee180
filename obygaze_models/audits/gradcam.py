"""Compute Grad-CAM of an image's similarity to a text (Selvaraju et al. 2017; Wolfe et al. 2023, 4.2).

Maps are enlarged as PyTorch's `interpolate` does without `align_corners`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from obygaze_models.audits.heads import Array, Head
from obygaze_models.errors import AuditError

Kernel = Callable[[Array], Array]


class Score(StrEnum):
    """What the gradient is of: the cosine (the paper), or the plain dot product (the authors' code)."""

    COSINE = "cosine"
    DOT = "dot"


@dataclass(frozen=True, eq=False)
class Saliency:
    """The saliency map of an image for a text.

    Attributes
    ----------
    score : float
        The image's similarity to the text.
    weights : float64 [C]
        Mean gradient of every channel.
    cam : float64 [h, w]
        Sum of the channels by their weights, negative values cut off.
    """

    score: float
    weights: Array
    cam: Array


def channel_weights(gradients: Array) -> Array:
    """Average the gradients [C, h, w] of a score over the places: alpha [C]."""
    weights: Array = gradients.mean(axis=(1, 2))
    return weights


def class_activation(acts: Array, weights: Array) -> Array:
    """Add up the channels [C, h, w] by their weights [C] and cut off what is negative: [h, w]."""
    return np.maximum(np.tensordot(weights, acts, axes=1), 0.0)


def gradcam(acts: Array, head: Head, text: Array, score: Score = Score.COSINE) -> Saliency:
    """Map where an image's similarity to a text comes from.

    The gradient of the cosine with the embedding f is t/(|f||t|) - (f.t) f/(|f|^3 |t|); of the dot product
    it is t.

    Parameters
    ----------
    acts : float64 [C, h, w]
        Last activations of the image.
    head
        From activations to the embedding.
    text : float64 [D]
        Embedding of the text, not normalised: of the dot product its length scales the map.

    Raises
    ------
    AuditError
        The image's embedding is zero, or the text's is of another length.
    """
    f = head.embed(acts)
    if len(f) != len(text):
        raise AuditError(f"the head gives {len(f)} features, the text's embedding has {len(text)}")
    dot = float(f @ text)
    if score is Score.DOT:
        value, towards = dot, text
    else:
        length, text_length = float(np.linalg.norm(f)), float(np.linalg.norm(text))
        if not length:
            raise AuditError("the image's embedding is the zero vector, which has no direction")
        value = dot / (length * text_length)
        towards = text / (length * text_length) - dot * f / (length**3 * text_length)
    weights = channel_weights(head.backward(acts, towards))
    return Saliency(value, weights, class_activation(acts, weights))


def cubic(x: Array) -> Array:
    """Keys' cubic convolution kernel with a = -0.75, PyTorch's choice (Pillow's is -0.5)."""
    a, x = -0.75, np.abs(x)
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = a * (((x - 5) * x + 8) * x - 4)
    kernel: Array = np.where(x <= 1, inner, np.where(x < 2, outer, 0.0))
    return kernel


def linear(x: Array) -> Array:
    """Return the triangle, for bilinear interpolation."""
    kernel: Array = np.maximum(0.0, 1 - np.abs(x))
    return kernel


def enlarge(picture: Array, size: tuple[int, int], kernel: Kernel = cubic) -> Array:
    """Interpolate a map [h, w] to [H, W]; beyond its edges it goes on as at its edges.

    A cubic map may overshoot below 0 between places; cut it again where it must be positive.
    """
    rows, columns = (_weights(n, m, kernel) for n, m in zip(picture.shape, size, strict=True))
    enlarged: Array = rows @ picture @ columns.T
    return enlarged


def _weights(n: int, m: int, kernel: Kernel) -> Array:
    """Weigh n places for each of m [m, n]."""
    at = (np.arange(m) + 0.5) * n / m - 0.5
    first = np.floor(at).astype(np.intp)
    weights = np.zeros((m, n))
    for tap in range(-1, 3):
        places = first + tap
        np.add.at(weights, (np.arange(m), np.clip(places, 0, n - 1)), kernel(at - places))
    return weights
