"""Test models by refits: films exchange their whole sequences of labels, and everything is trained again.

Where features and labels change slowly, other tests call too many models significant: t over films, shifts of
labels within films, and clips that are exchanged freely. The labels of a whole film keep their course, and
where films are about alike any film's labels could have been another's. `benchmarks/planted/in_time.py`
measures it.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.dataset.dataset import Dataset
from obygaze_models.errors import ConceptError, ProtocolError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.metrics import Metric, metrics_of, rows_by_movie
from obygaze_models.evaluation.predictions import records
from obygaze_models.evaluation.run import Run
from obygaze_models.models.spec import ModelSpec

ROUNDING = 1e-12
"""A refit that is worse by less than this is as good."""


def exchanged_films(movies: NDArray[Any], rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw for each clip [N] the clip whose labels it takes.

    All clips of a film take those of one film, each at the same place in it: in a film of another length
    clips are repeated or skipped. A film's clips must be in the order of the film.
    """
    films = rows_by_movie(movies)
    givers = rng.permutation(len(films))
    rows = np.empty(len(movies), np.intp)
    for takers, giver in zip(films, givers, strict=True):
        same_place = np.arange(len(takers)) * len(films[giver]) // len(takers)
        rows[takers] = films[giver][same_place]
    return rows


def with_refits(
    run: Run,
    data: Dataset,
    models: Sequence[ModelSpec],
    n: int,
    each: Callable[[int], object] = lambda _: None,
    **how: Any,
) -> Run:
    """Add p of models to a run's record (`refits`): the share of refits that are as good by movie, or better.

    The run counts as one of the refits, so that no p is below 1 / (n + 1). A refit is left out if it leaves a
    fold without the labels that models need.

    Parameters
    ----------
    run : Run
    data : Dataset
    models : sequence of ModelSpec
        Models of the run.
    n : int
        Number of refits.
    each : callable
        Called after each refit with the number of refits done.
    **how
        The further arguments of `evaluate` that made the run, task and test among them.

    Raises
    ------
    ProtocolError
        No refit could be trained.
    """
    metric = next(known for known in metrics_of(run.predictions.n_classes).values() if known.answers)
    names = {spec.name for spec in models}
    specs = [replace(spec, beside=()) for spec in models]
    rng = np.random.default_rng(how.get("seed", 0))
    values_of_refits = []
    reason = None
    for number in range(n):
        labels = data.labels.take(exchanged_films(data.movies, rng))
        labels = replace(labels, clip_ids=data.clip_ids, movies=data.movies)
        try:
            refit = evaluate(replace(data, labels=labels), specs, progress=False, **how)
            values_of_refits.append(_values(refit, names, metric))
        except (ConceptError, ProtocolError) as error:
            reason = error
        each(number + 1)
    if not values_of_refits:
        raise ProtocolError(f"no refit could be trained: {reason}")
    refits = pd.concat(values_of_refits, axis=1)  # a row for each task and model, a column for each refit
    observed = _values(run, names, metric)
    sign = 1 if metric.higher_is_better else -1
    is_as_good = (sign * refits).ge(sign * observed - ROUNDING, axis=0)
    p = (1 + is_as_good.sum(axis=1)) / (1 + refits.notna().sum(axis=1))
    table = pd.DataFrame(
        {"p": p.where(observed.notna()), "observed": observed, "refits": refits.mean(axis=1)}
    )
    record = {
        "metric": metric.name,
        "n": len(values_of_refits),
        "left_out": n - len(values_of_refits),
        "models": records(table.reset_index()),
    }
    return replace(run, record=run.record | {"refits": record})


def _values(run: Run, names: Collection[str], metric: Metric) -> "pd.Series[float]":
    """Return a metric's mean over movies by task and model, of models of some names.

    A model that is trained on one annotator's labels counts by its name before the @.
    """
    is_named = [name.partition("@")[0] in names for name in run.metrics["model"]]
    rows = run.metrics[is_named]
    return rows[rows["metric"] == metric.name].set_index(["task", "model"])["movie_mean"]
