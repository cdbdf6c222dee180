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

from benchmarks.measure import cpu_s
from benchmarks.planted.corpora import smooth
from benchmarks.planted.row import Cell, Column, Draw, Floats, Row
from obygaze_models.concepts.heads import make_head
from obygaze_models.concepts.in_time import ConceptsInTime
from obygaze_models.concepts.time_bank import TimeBank
from obygaze_models.evaluation.refits import exchanged_films
from obygaze_models.models.fitted import fit
from obygaze_models.models.registry import BUILTIN_MODELS
from obygaze_models.protocol.targets import NOT_ASKED

N_CLIPS = 100
N_FRAMES = 32
N_CONCEPTS = 4
N_LONG = 2
NEAR = 3
"""Frames within which two concepts are together."""

What = Literal["presence", "order", "together"]


class Corpus(NamedTuple):
    """Frames [N, F, D], presences [N, K], their frames [N, F, K], movies, labels, directions [K, D]."""

    X: NDArray[np.float32]
    present: Floats
    where: NDArray[np.bool_]
    movies: NDArray[np.int64]
    y: NDArray[np.int64]
    axes: Floats


def corpus(
    rng: np.random.Generator, n_features: int, size: float, planted_in: What, n_movies: int = 12
) -> Corpus:
    """Draw a corpus; the label is the first concept's presence, or is of clips that have the first two."""
    n = n_movies * N_CLIPS
    movies = np.repeat(np.arange(n_movies), N_CLIPS)
    X = rng.standard_normal((n, N_FRAMES, n_features), dtype=np.float32)
    X[:, 1:] *= np.sqrt(1 - 0.9**2)
    X = lfilter([1.0], np.array([1.0, -0.9], np.float32), X, axis=1).astype(np.float32)
    X += 0.3 * rng.standard_normal((n_movies, 1, n_features), dtype=np.float32)[movies]
    axes = np.linalg.qr(rng.normal(size=(n_features, N_CONCEPTS)))[0].T
    frequency = 0.0 if planted_in == "presence" else 0.7
    share = expit(0.6 * rng.normal(size=(n_movies, N_CONCEPTS)) + frequency)
    present = rng.random((n, N_CONCEPTS)) < share[movies]
    start = rng.integers(0, N_FRAMES - N_LONG + 1, (n, N_CONCEPTS))
    if planted_in == "together":
        near = rng.random(n) < 0.5
        step = rng.choice([-NEAR, 1 - NEAR, NEAR - 1, NEAR], n)
        start[near, 1] = np.clip(start[:, 0] + step, 0, N_FRAMES - N_LONG)[near]
    place = np.arange(N_FRAMES)[None, :, None] - start[:, None]
    where = (place >= 0) & (place < N_LONG) & present[:, None]
    X += (size * where.reshape(-1, N_CONCEPTS) @ axes).reshape(X.shape).astype(np.float32)
    gap = start[:, 0] - start[:, 1]
    y = {"presence": present[:, 0], "order": gap < 0, "together": np.abs(gap) <= NEAR}[planted_in].astype(int)
    if planted_in != "presence":
        y = np.where(present[:, :2].all(axis=1) & (gap != 0), y, NOT_ASKED)
    return Corpus(X, present.astype(np.float64), where, movies, y, axes)


def by_film(y: NDArray[np.int64], scores: Floats, movies: NDArray[np.int64]) -> float:
    """Average the AUC over films."""
    films = [movies == movie for movie in np.unique(movies)]
    return float(np.mean([roc_auc_score(y[rows], scores[rows]) for rows in films if np.ptp(y[rows])]))


def trained(name: str, drawn: Corpus, is_training: NDArray[np.bool_]) -> tuple[Floats, object]:
    """Train a model of the zoo on some clips: scores of all, and the estimator."""
    spec = BUILTIN_MODELS[name]
    X = drawn.X if spec.reads == "frames" else drawn.X.mean(axis=1)
    present = pd.DataFrame(drawn.present[is_training], columns=[f"c{k}" for k in range(N_CONCEPTS)])
    movies = drawn.movies.astype(str)
    fitted = fit(
        spec, seed=0, X=X[is_training], y=drawn.y[is_training], movies=movies[is_training], present=present
    )
    return fitted.scores(X, movies), fitted.estimator


def of_concepts(rng: np.random.Generator, n_features: int, size: float, planted_in: What) -> Draw:
    """Train `pcbm_time`, its control of time and `pcbm_lr`, and test them on two films."""
    drawn = corpus(rng, n_features, size, planted_in)
    is_tested = drawn.movies > 1
    tested = ~is_tested & (drawn.y != NOT_ASKED)

    def auc(scores: Floats) -> float:
        return by_film(drawn.y[tested], scores[tested], drawn.movies[tested])

    scores, estimator = trained("pcbm_time", drawn, is_tested)
    pooled, _ = trained("pcbm_lr", drawn, is_tested)
    results = {"clips": auc(scores), "pooled": auc(pooled), "clips less pooled": auc(scores) - auc(pooled)}
    has = ~is_tested & (drawn.present[:, 0] == 1)
    frames = estimator.frame_values(drawn.X[has])[..., 0]  # type: ignore[attr-defined]  # as ConceptsInTime
    pairs = zip(drawn.where[has, :, 0], frames, strict=True)
    results["frames"] = float(np.mean([roc_auc_score(where, values) for where, values in pairs]))
    if planted_in != "presence":
        results["in random order"] = auc(trained("pcbm_time_unordered", drawn, is_tested)[0])
    return results


N_REFITS = 19


def of_nothing(
    rng: np.random.Generator, n_movies: int, fewest: int, maximum: int, drift: float = 0.0
) -> Draw:
    """Ask for p where smooth frames and smooth labels know nothing of each other.

    Half of the films are tested by a model of the others, and these by one of the first. p is the rank of the
    AUC by film among those of as many refits with whole films' sequences of labels exchanged. Frames and
    labels drift through each film by so many SD to either side.
    """
    sizes = rng.integers(fewest, maximum + 1, n_movies)
    movies = np.repeat(np.arange(n_movies), sizes)
    drawn = np.concatenate([smooth(rng, size, 0.9, 16 + N_CONCEPTS) for size in sizes.tolist()])
    if drift:
        place = np.concatenate([np.linspace(-1, 1, size) for size in sizes.tolist()])
        drawn += drift * place[:, None] * rng.normal(size=(n_movies, drawn.shape[1]))[movies]
    X = rng.standard_normal((len(drawn), 8, 16), np.float32) + drawn[:, None, :16].astype(np.float32)
    labels = (drawn[:, 16:] > 0).astype(np.float64)
    half = movies % 2 == 0

    def auc(present: Floats) -> float:
        y = present[:, 0].astype(int)
        scores = np.empty(len(movies))
        for is_training in (half, ~half):
            model = ConceptsInTime(make_head("elastic_net", seed=0), bank=TimeBank())
            model.fit(X[is_training], y[is_training], movies[is_training], present=present[is_training])
            scores[~is_training] = model.decision_function(X[~is_training])
        return by_film(y, scores, movies)

    start = cpu_s()
    observed = auc(labels)
    reached = sum(auc(labels[exchanged_films(movies, rng)]) >= observed for _ in range(N_REFITS))
    return {"p <= .05": reached == 0, "AUC": observed, "CPU s a p": cpu_s() - start}


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
        "AUC by film of `pcbm_time` (clips), of `pcbm_lr` on the mean over frames (pooled), and of "
        "`pcbm_time` trained on frames in random order; and AUC of frames in clips with the first concept "
        "(frames). D: number of features; SD: how far a concept moves a frame.",
        ("label", "D", "SD"), CELLS, of_concepts,
        {"frames": Column(), "clips": Column(), "pooled": Column(),
         "clips less pooled": Column(signed=True), "in random order": Column()},
        full=10, small=1, small_cells=1,
    ),
    Row(
        "in-time-null", "docs/when.md", "evaluate --model pcbm_time",
        "Films of 40 clips whose frames and labels change slowly (autoregressions of .9) and are independent "
        "of each other: p of the AUC by film, by 19 refits with the labels of whole films exchanged, at "
        "one penalty.",
        ("films",), [Cell(("8",), (8, 40, 40))], of_nothing,
        {"p <= .05": Column(high=0.1), "AUC": Column(), "CPU s a p": Column(digits=1)},
        full=400, small=2, small_cells=1,
    ),
    Row(
        "in-time-nulls", "docs/when.md", "evaluate --model pcbm_time",
        "The same with other numbers of films and clips, and with drift.", ("films", "clips", "drift, SD"),
        [Cell(("12", "40", "0"), (12, 40, 40)), Cell(("8", "20 to 60", "0"), (8, 20, 60)),
         Cell(("8", "40", "1"), (8, 40, 40, 1.0))],
        of_nothing, {"p <= .05": Column(high=0.1), "AUC": Column()},
        full=60, small=3, small_cells=1,
    ),
]  # fmt: skip
