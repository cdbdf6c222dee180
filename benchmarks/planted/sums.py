"""Attacks on sums of films (`model sums`), by whoever has the films' features."""

import numpy as np
from scipy.optimize import lsq_linear

from benchmarks.planted.row import Cell, Column, Draw, Row
from obygaze_models.joint.sums import _moments


def attacked(rng: np.random.Generator, n: int, d: int) -> Draw:
    """Read a film's labels from its sums, and tell its clips from others.

    Labels are between 0 and 1: least squares with these bounds. A clip of the film lies in the span of the
    products.
    """
    X, others, y = rng.normal(size=(n, d)), rng.normal(size=(n, d)), (rng.random(n) < 0.4).astype(float)
    mean, products = _moments(np.column_stack([X, y]))
    equations = np.vstack([(X - mean[:d]).T, np.ones(n)])
    found = lsq_linear(equations, np.append(products[:d, d], n * mean[d]), (0, 1), tol=1e-12).x
    sizes, axes = np.linalg.eigh(products[:d, :d])
    span = axes[:, sizes > 1e-9 * sizes[-1]]

    def outside(clips: np.ndarray) -> np.ndarray:
        apart = clips - mean[:d]
        return np.linalg.norm(apart - apart @ span @ span.T, axis=1) / np.linalg.norm(apart, axis=1)

    told = outside(X)[:, None] < outside(others)[None] - 1e-9
    right = (found > 0.5) == (y == 1)
    return {
        "labels read rightly": right,
        "films read whole": right.all(),
        "clips told from others": told.mean(),
    }


SIZES = ((5, 64), (20, 64), (100, 64), (120, 64), (200, 64), (400, 64), (20, 256), (400, 256))

ROWS = [
    Row(
        "sums", "docs/joint.md", "model sums",
        "Labels positive in 40 % (to call all negative is right in .60), Gaussian features: what is read "
        "from the sums of a film by least squares with bounds, with the film's features in hand.",
        ("clips of the film", "dimensions"),
        [Cell((str(n), str(d)), (n, d)) for n, d in SIZES],
        attacked,
        {"labels read rightly": Column(digits=2), "films read whole": Column(digits=2),
         "clips told from others": Column(digits=2)},
        full=5, small=2, small_cells=4,
    ),
]  # fmt: skip
