"""Logistic regression on dev clips, its regularisation chosen by leaving whole movies out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from obygaze_models.errors import TaskError
from obygaze_models.evaluation.metrics import average_precision
from obygaze_models.protocol import ProtocolError, inner_folds
from obygaze_models.tasks.mediaeval15.corpus import Corpus, Side
from obygaze_models.tasks.mediaeval15.labels import AXES, Axis
from obygaze_models.tasks.mediaeval15.run_files import Calls

CANDIDATES = (0.001, 0.01, 0.1, 1.0, 10.0)
"""Inverse strengths of regularisation, C; of equals the smallest is taken."""

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Selected:
    """A model trained on all labelled dev clips.

    Attributes
    ----------
    model : Pipeline
        Standardisation and logistic regression.
    C : float
        The candidate with the best measure on the inner out-of-fold outputs, pooled.
    measures : mapping
        Candidate -> measure.
    n_clips, n_movies : int
        Labelled dev clips and their movies.
    """

    model: Pipeline
    C: float
    measures: Mapping[float, float]
    n_clips: int
    n_movies: int

    def record(self) -> dict[str, object]:
        """Give JSON values."""
        measures = {f"{C:g}": value for C, value in self.measures.items()}
        return {
            "C": self.C,
            "measure_by_C": measures,
            "dev_clips": self.n_clips,
            "dev_movies": self.n_movies,
        }


def train_violence(corpus: Corpus) -> tuple[dict[str, float], Selected]:
    """Score every test clip with a model trained on dev: log odds of violence; C has the best inner AP.

    Raises
    ------
    TaskError
        Dev has no labels, or too few movies with violent clips to choose C on.
    """
    selected = _select(
        corpus.dev,
        [None if clip.violent is None else int(clip.violent) for clip in corpus.dev.clips],
        lambda model, X: np.asarray(model.decision_function(X)),
        average_precision,
        "violence",
    )
    scores = _outputs(selected.model, corpus.test.X, lambda model, X: np.asarray(model.decision_function(X)))
    ids = [clip.clip_id for clip in corpus.test.clips]
    return dict(zip(ids, scores.tolist(), strict=True)), selected


def train_affect(corpus: Corpus) -> tuple[Calls, dict[Axis, Selected]]:
    """Call the class of every test clip on both axes; C has the best inner accuracy.

    Raises
    ------
    TaskError
        Dev has no labels, or too few movies with the rarest class of an axis to choose C on.
    """
    calls: Calls = {}
    models: dict[Axis, Selected] = {}
    for axis in AXES:
        models[axis] = _select(
            corpus.dev,
            [clip.classes.get(axis) for clip in corpus.dev.clips],
            lambda model, X: np.asarray(model.predict(X)),
            lambda y, called: float(np.mean(y == called)),
            axis,
        )
        called = _outputs(models[axis].model, corpus.test.X, lambda model, X: np.asarray(model.predict(X)))
        ids = [clip.clip_id for clip in corpus.test.clips]
        calls[axis] = dict(zip(ids, called.tolist(), strict=True))
    return calls, models


def _select(
    dev: Side,
    labels: list[Any],
    output: Callable[[Pipeline, Array], Array],
    measure: Callable[[Array, Array], float],
    what: str,
) -> Selected:
    """Choose C on inner folds of whole movies, and train with it on all labelled clips."""
    known = np.array([label is not None for label in labels], dtype=bool)
    y = np.array([label for label in labels if label is not None])
    X, movies = dev.X[known], np.array(dev.movies)[known]
    names, counts = np.unique(y, return_counts=True)
    if len(names) < 2:
        found = f"all {len(y)} are {names[0]}" if len(names) else "none is labelled"
        raise TaskError(f"{what} needs dev clips of two classes at least to learn from: {found}")
    # Folds are balanced by the rarest class: the one that a fold might lack.
    rarest = names[np.argmin(counts)]
    try:
        folds = inner_folds(y == rarest, movies)
    except ProtocolError as error:
        raise TaskError(
            f"{what}: C is chosen on folds balanced by the rarest class, {rarest} ({counts.min()} dev clips, "
            f"called positive here): {error}"
        ) from error
    measures: dict[float, float] = {}
    for C in CANDIDATES:
        out = None
        for fold in np.unique(folds):
            held = folds == fold
            some = _outputs(_fitted(C, X[~held], y[~held]), X[held], output)
            out = np.empty(len(y), dtype=some.dtype) if out is None else out
            out[held] = some
        measures[C] = measure(y, np.asarray(out))
    best = max(CANDIDATES, key=lambda C: measures[C])
    return Selected(_fitted(best, X, y), best, measures, len(y), len(set(movies.tolist())))


def _fitted(C: float, X: Array, y: Array) -> Pipeline:
    # One thread: the rounding of a product, and so a run's bytes, depend on their number.
    with threadpool_limits(limits=1, user_api="blas"):
        return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=10_000)).fit(X, y)


def _outputs(model: Pipeline, X: Array, output: Callable[[Pipeline, Array], Array]) -> Array:
    with threadpool_limits(limits=1, user_api="blas"):
        return output(model, X)
