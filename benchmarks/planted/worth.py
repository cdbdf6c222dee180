"""What annotated concepts are worth: how much of the label they hold, what leaks, what corrections add.

Corpora of 12 films x 80 clips, 32 features, 4 concepts in a third of the clips, each moving the features by
1.5 SD along a direction of its own, and films by .3 SD. A factor that nobody annotated moves them as far. The
label follows the concepts, the factor, or both. Models are trained on 9 films and tested on 3.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.planted.in_time import by_film
from benchmarks.planted.row import Cell, Column, Draw, Floats, Row, over_corpora
from obygaze_models.models.fitted import fit
from obygaze_models.models.registry import BUILTIN_MODELS

N_MOVIES = 12
N_CLIPS = 80
N_FEATURES = 32
N_CONCEPTS = 4
N_TESTED = 3
SIZE = 1.5
ENDS = (0.05, 0.95)
"""Quantiles of training clips' values to which an absent and a present concept are corrected."""


class Corpus(NamedTuple):
    """Features [N, D], presences [N, K], movies and labels [N]."""

    X: NDArray[np.float32]
    present: Floats
    movies: NDArray[np.int64]
    y: NDArray[np.int64]


def corpus(rng: np.random.Generator, by_concepts: float, by_factor: float) -> Corpus:
    """Draw a corpus whose label follows concepts and factor with these weights."""
    movies = np.repeat(np.arange(N_MOVIES), N_CLIPS)
    present = (rng.random((len(movies), N_CONCEPTS)) < 1 / 3).astype(np.float64)
    factor = rng.normal(size=len(movies))
    axes = np.linalg.qr(rng.normal(size=(N_FEATURES, N_CONCEPTS + 1)))[0].T
    X = rng.normal(size=(len(movies), N_FEATURES)) + 0.3 * rng.normal(size=(N_MOVIES, N_FEATURES))[movies]
    X += SIZE * np.column_stack([present, factor]) @ axes
    signs = np.array([1, 1, -1, 0])
    logit = by_concepts * (present - 1 / 3) @ signs + by_factor * factor
    y = (rng.random(len(movies)) < expit(logit)).astype(np.int64)
    return Corpus(X.astype(np.float32), present, movies, y)


def trained(name: str, drawn: Corpus) -> tuple[float, Any]:
    """Train a model of the zoo on most films: its AUC by film on the others, and the estimator."""
    spec = BUILTIN_MODELS[name]
    is_training = drawn.movies >= N_TESTED
    X = drawn.present.astype(np.float32) if spec.reads == "present" else drawn.X
    present = pd.DataFrame(drawn.present[is_training], columns=[f"c{k}" for k in range(N_CONCEPTS)])
    movies = drawn.movies.astype(str)
    fitted = fit(
        spec, seed=0, X=X[is_training], y=drawn.y[is_training], movies=movies[is_training], present=present
    )
    scores = fitted.scores(X[~is_training], movies[~is_training])
    return by_film(drawn.y[~is_training], scores, drawn.movies[~is_training]), fitted.estimator


def of_worth(rng: np.random.Generator, by_concepts: float, by_factor: float) -> Draw:
    """Compare annotated concepts, features, and bottlenecks of right and of shuffled concepts."""
    drawn = corpus(rng, by_concepts, by_factor)
    names = {"annotated": "concept_labels", "features": "linear", "bottleneck": "pcbm_lr"}
    aucs = {key: trained(name, drawn)[0] for key, name in (names | {"shuffled": "pcbm_lr_shuffled"}).items()}
    return aucs | {"beyond labels": aucs["features"] - aucs["annotated"]}


def completeness(draws: list[Draw]) -> Draw:
    """Divide the mean AUC of annotated concepts above chance by that of features."""
    values = over_corpora(draws)
    above = {name: np.mean(values[name]) - 0.5 for name in ("annotated", "features")}
    return values | {"completeness": [above["annotated"] / above["features"]]}


def of_correction(rng: np.random.Generator, name: str, by_concepts: float, by_factor: float) -> Draw:
    """Correct 0 to 4 concepts of each clip tested, those of the largest weights first."""
    drawn = corpus(rng, by_concepts, by_factor)
    _, model = trained(name, drawn)
    tested = drawn.movies < N_TESTED
    X = drawn.X[tested]
    present = drawn.present[tested]
    order = np.argsort(-np.abs(model.head_.coef_[0]))
    results = {}
    for budget in range(N_CONCEPTS + 1):
        scores = corrected(model, X, present, order[:budget])
        results[f"{budget} corrected"] = by_film(drawn.y[tested], scores, drawn.movies[tested])
    return results


def corrected(model: Any, X: NDArray[Any], present: Floats, which: NDArray[np.intp]) -> Floats:
    """Score clips with some concepts, by place, set to what is annotated [N, K]."""
    patterns, pattern_of = np.unique(present[:, which], axis=0, return_inverse=True)
    scores = np.empty(len(X))
    for number, pattern in enumerate(patterns.astype(int).tolist()):
        rows = pattern_of.ravel() == number
        pairs = zip(which.tolist(), pattern, strict=True)
        scores[rows] = model.intervene(
            X[rows], {model.concepts_[k]: ENDS[has_concept] for k, has_concept in pairs}
        )
    return scores


WORLDS = {"concepts": (2.0, 0.0), "both": (1.4, 1.0), "hidden factor": (0.0, 1.4)}
FREE = Column()
ROWS = [
    Row(
        "worth", "docs/concepts.md", "evaluate --model pcbm_lr --model concept_labels",
        "AUC by film of `concept_labels` (annotated), `linear` (features), `pcbm_lr` (bottleneck) and "
        "`pcbm_lr_shuffled` (shuffled); AUC of features minus that of annotated (beyond labels); "
        "completeness.",
        ("the label depends on",), [Cell((name,), weights) for name, weights in WORLDS.items()], of_worth,
        {"annotated": FREE, "features": FREE, "bottleneck": FREE, "shuffled": FREE,
         "beyond labels": Column(signed=True), "completeness": Column(digits=2)},
        full=40, small=2, small_cells=1, pooled=completeness,
    ),
    Row(
        "correction", "docs/concepts.md", "explain --set",
        "AUC by film after 0 to 4 concepts of each clip are corrected, those of the largest weights first. A "
        "concept is set to the 95th percentile of training clips if it is present, else to the 5th.",
        ("the label depends on", "model"),
        [Cell((world, name), (name, *weights)) for world, weights in WORLDS.items()
         for name in ("pcbm_lr", "pcbm_lr_shuffled")],
        of_correction, {f"{budget} corrected": FREE for budget in range(N_CONCEPTS + 1)},
        full=40, small=2, small_cells=1,
    ),
]  # fmt: skip
