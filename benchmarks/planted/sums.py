"""Attacks on sums of films (`model sums`), by whoever has the films' features, and by a lab that lies."""

import numpy as np
from scipy.optimize import lsq_linear

from benchmarks.planted.row import Cell, Column, Draw, Row
from obygaze_models.joint import join
from obygaze_models.joint.sums import About, Sums, _film_moments


def attacked(rng: np.random.Generator, n: int, d: int) -> Draw:
    """Read a film's labels from its sums, and tell its clips from others.

    Labels are between 0 and 1: least squares with these bounds. A clip of the film lies in the span of the
    products.
    """
    X = rng.normal(size=(n, d))
    outsiders = rng.normal(size=(n, d))
    y = (rng.random(n) < 0.4).astype(float)
    mean, products = _film_moments(np.column_stack([X, y]))
    equations = np.vstack([(X - mean[:d]).T, np.ones(n)])
    solution = lsq_linear(equations, np.append(products[:d, d], n * mean[d]), (0, 1), tol=1e-12).x
    sizes, axes = np.linalg.eigh(products[:d, :d])
    span = axes[:, sizes > 1e-9 * sizes[-1]]

    def outside(clips: np.ndarray) -> np.ndarray:
        apart = clips - mean[:d]
        return np.linalg.norm(apart - apart @ span @ span.T, axis=1) / np.linalg.norm(apart, axis=1)

    is_nearer = outside(X)[:, None] < outside(outsiders)[None] - 1e-9
    is_right = (solution > 0.5) == (y == 1)
    return {
        "labels read rightly": is_right,
        "films read whole": is_right.all(),
        "clips told from others": is_nearer.mean(),
    }


LABS = 5
FILMS = 6
CLIPS = 60
FEATURES = 16
LIES = {
    "none": lambda X, y, _: (X, y),
    "labels turned": lambda X, y, _: (X, 1 - y),
    "labels by lot": lambda X, y, rng: (X, rng.permutation(y)),
    "labels of half the clips turned": lambda X, y, _: (X, abs(y - (np.arange(len(y)) % 2))),
    "features ten times as large": lambda X, y, _: (10 * X, y),
}
"""What the last lab does to its clips before it sums them up, so that its sums are possible."""


def lied_to(rng: np.random.Generator, lie: str) -> Draw:
    """Join five labs' sums, of which the last one's may be false; try each on the model of the others."""
    w = rng.normal(size=FEATURES) / np.sqrt(FEATURES)
    sums = []
    for lab in range(LABS):
        parts = []
        for _ in range(FILMS):
            X = rng.normal(size=(CLIPS, FEATURES)) + 0.3 * rng.normal(size=FEATURES)
            y = (X @ w + rng.logistic(size=CLIPS) / 2 > 0).astype(float)
            parts.append(_film_moments(np.column_stack(LIES[lie](X, y, rng) if lab == LABS - 1 else (X, y))))
        about = About(
            **dict.fromkeys(("backbone", "features", "pool", "licence", "label_policy"), "x"),
            provenance={}, left_out={}, target={}, codebook={},
            **dict.fromkeys(("provenance_sha256", "store"), "0" * 64),
            n_features=FEATURES, concepts=[], movies=[f"{lab}-{film}" for film in range(FILMS)], least=20,
        )  # fmt: skip
        means, products = (np.stack(parts_of_one) for parts_of_one in zip(*parts, strict=True))
        sums.append(Sums(about, np.full(FILMS, float(CLIPS)), means, products, {}))
    joint = join(sums)
    penalty = float(joint.linear().penalties[0])
    errors = np.array([joint.lab_error(parts_of_one.about.movies, penalty) for parts_of_one in sums])
    return {
        "its error": errors[-1, 0],
        "of the share": errors[-1, 1],
        "others' error": errors[:-1, 0].mean(),
        "it is the worst of five": bool(errors[:, 0].argmax() == LABS - 1),
        "others above their share": errors[:-1, 0] > errors[:-1, 1],
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
    Row(
        "lab-lies", "docs/joint.md", "model join",
        "Five labs of six films of 60 clips and 16 features each, whose labels follow one plane; what the "
        "last lab gives sums of is false, and possible. Squared error of the model of the other labs on a "
        "lab's films.",
        ("lie",),
        [Cell((lie,), (lie,)) for lie in LIES],
        lied_to,
        {"its error": Column(), "of the share": Column(), "others' error": Column(),
         "it is the worst of five": Column(digits=2),
         "others above their share": Column(high=0.05, digits=2)},
        full=100, small=3, small_cells=5,
    ),
]  # fmt: skip
