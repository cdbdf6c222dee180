"""Enlarging a map as PyTorch's `interpolate` does without `align_corners`."""

from collections.abc import Callable

import numpy as np

from obygaze_models.audits.heads import Array

Kernel = Callable[[Array], Array]


def cubic(x: Array) -> Array:
    """Keys' cubic convolution kernel with a = -0.75, PyTorch's choice (Pillow's is -0.5)."""
    a, x = -0.75, np.abs(x)
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = a * (((x - 5) * x + 8) * x - 4)
    kernel: Array = np.where(x <= 1, inner, np.where(x < 2, outer, 0.0))
    return kernel


def linear(x: Array) -> Array:
    """Give the triangle, for bilinear interpolation."""
    kernel: Array = np.maximum(0.0, 1 - np.abs(x))
    return kernel


def enlarge(picture: Array, size: tuple[int, int], kernel: Kernel = cubic) -> Array:
    """Interpolate a map [h, w] to [H, W]; beyond its edges it goes on as at its edges.

    A cubic map may overshoot below 0 between places; who needs it positive cuts it again.
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
