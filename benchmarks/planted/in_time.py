"""Concepts in few frames (`pcbm_time`): found, in order, at the same time, and where nothing is.

Corpora of films x 100 clips x 32 frames. Frames are an autoregression (.9) in D dimensions, and each film is
moved by .3 SD. A concept moves 2 frames in a row by so many SD along a direction of its own; 4 concepts.
Models are trained on all films but two, and tested on these.
"""

from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from benchmarks.planted.row import Cell, Column, Draw, Floats, Row
from obygaze_models.models.registry import BUILTIN_MODELS
from obygaze_models.models.spec import fit
from obygaze_models.protocol.targets import NOT_ASKED

N_CLIPS, N_FRAMES, N_CONCEPTS, N_LONG = 100, 32, 4, 2
NEAR = 3
"""Frames within which two concepts are together."""

What = Literal["presence", "order", "together"]


class Corpus(NamedTuple):
    """Frames [N, F, D], presences [N, K], which frames have them [N, F, K], movies and labels [N]."""

    X: NDArray[np.float32]
    present: Floats
    where: NDArray[np.bool_]
    movies: NDArray[np.int64]
    y: NDArray[np.int64]


def corpus(rng: np.random.Generator, n_features: int, size: float, what: What, n_movies: int = 12) -> Corpus:
    """Draw a corpus; the label is the first concept's presence, or is of clips that have the first two."""
    n = n_movies * N_CLIPS
    movies = np.repeat(np.arange(n_movies), N_CLIPS)
    X = rng.standard_normal((n, N_FRAMES, n_features), dtype=np.float32)
    X[:, 1:] *= np.sqrt(1 - 0.9**2)
    X = lfilter([1.0], np.array([1.0, -0.9], np.float32), X, axis=1).astype(np.float32)
    X += 0.3 * rng.standard_normal((n_movies, 1, n_features), dtype=np.float32)[movies]
    axes = np.linalg.qr(rng.normal(size=(n_features, N_CONCEPTS)))[0].T
    share = expit(0.6 * rng.normal(size=(n_movies, N_CONCEPTS)) + 0.7 * (what != "presence"))
    present = rng.random((n, N_CONCEPTS)) < share[movies]
    start = rng.integers(0, N_FRAMES - N_LONG + 1, (n, N_CONCEPTS))
    if what == "together":
        near = rng.random(n) < 0.5
        step = rng.choice([-NEAR, 1 - NEAR, NEAR - 1, NEAR], n)
        start[near, 1] = np.clip(start[:, 0] + step, 0, N_FRAMES - N_LONG)[near]
    place = np.arange(N_FRAMES)[None, :, None] - start[:, None]
    where = (place >= 0) & (place < N_LONG) & present[:, None]
    X += (size * where.reshape(-1, N_CONCEPTS) @ axes).reshape(X.shape).astype(np.float32)
    gap = start[:, 0] - start[:, 1]
    y = {"presence": present[:, 0], "order": gap < 0, "together": np.abs(gap) <= NEAR}[what].astype(int)
    if what != "presence":
        y = np.where(present[:, :2].all(axis=1) & (gap != 0), y, NOT_ASKED)
    return Corpus(X, present.astype(np.float64), where, movies, y)


def by_film(y: NDArray[np.int64], scores: Floats, movies: NDArray[np.int64]) -> float:
    """Average the AUC over films."""
    films = [movies == movie for movie in np.unique(movies)]
    return float(np.mean([roc_auc_score(y[own], scores[own]) for own in films if np.ptp(y[own])]))


def trained(name: str, drawn: Corpus, known: NDArray[np.bool_]) -> tuple[Floats, object]:
    """Train a model of the zoo on some clips: scores of all, and the estimator."""
    spec = BUILTIN_MODELS[name]
    X = drawn.X if spec.reads == "frames" else drawn.X.mean(axis=1)
    present = pd.DataFrame(drawn.present[known], columns=[f"c{k}" for k in range(N_CONCEPTS)])
    movies = drawn.movies.astype(str)
    found = fit(spec, 0, X[known], drawn.y[known], movies=movies[known], present=present)
    return found.scores(X, movies), found.estimator


def of_concepts(rng: np.random.Generator, n_features: int, size: float, what: What) -> Draw:
    """Train `pcbm_time`, its control of time and `pcbm_lr`, and test them on two films."""
    drawn = corpus(rng, n_features, size, what)
    known = drawn.movies > 1
    tested = ~known & (drawn.y != NOT_ASKED)

    def auc(scores: Floats) -> float:
        return by_film(drawn.y[tested], scores[tested], drawn.movies[tested])

    scores, estimator = trained("pcbm_time", drawn, known)
    pooled, _ = trained("pcbm_lr", drawn, known)
    told = {"clips": auc(scores), "pooled": auc(pooled), "clips less pooled": auc(scores) - auc(pooled)}
    has = ~known & (drawn.present[:, 0] == 1)
    frames = estimator.frame_values(drawn.X[has])[..., 0]  # type: ignore[attr-defined]  # as ConceptsInTime
    pairs = zip(drawn.where[has, :, 0], frames, strict=True)
    told["frames"] = float(np.mean([roc_auc_score(where, values) for where, values in pairs]))
    if what != "presence":
        told["in random order"] = auc(trained("pcbm_time_unordered", drawn, known)[0])
    return told


ABOVE = {"clips less pooled": Column(0.3, signed=True)}
CELLS = [
    *(Cell(("presence", str(d), "4"), (d, 4.0, "presence"),
           {"frames": Column(0.98), "clips": Column(0.9), **ABOVE}) for d in (64, 256)),
    Cell(("presence", "512", "3"), (512, 3.0, "presence"), {"clips less pooled": Column(0.15, signed=True)}),
    *(Cell(("A before B", str(d), "4"), (d, 4.0, "order"),
           {"clips": Column(0.95), "in random order": Column(0.45, 0.55)}) for d in (64, 256)),
    Cell(("A within 3 frames of B", "64", "4"), (64, 4.0, "together"), {"clips": Column(0.43, 0.57)}),
]  # fmt: skip

ROWS = [
    Row(
        "in-time", "docs/when.md", "evaluate --model pcbm_time",
        "AUC by film of `pcbm_time`, of `pcbm_lr` on the mean over frames, and of `pcbm_time` trained in "
        "random order; and AUC of frames in clips with the first concept.",
        ("label", "D", "SD"), CELLS, of_concepts,
        {"frames": Column(), "clips": Column(), "pooled": Column(),
         "clips less pooled": Column(signed=True), "in random order": Column()},
        full=10, small=1, small_cells=1,
    ),
]  # fmt: skip
