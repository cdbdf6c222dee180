"""Test models by refits: films exchange their whole sequences of labels, and everything is trained again.

Where features and labels change slowly, t over films, shifts of labels within films and clips exchanged
freely call too many models significant. A whole film's labels keep their course, and where films are about
alike any film's labels could have been another's. `benchmarks/planted/in_time.py` measures it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.dataset.dataset import Dataset
from obygaze_models.errors import ConceptError, ProtocolError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.metrics import metrics_of, rows_by_movie
from obygaze_models.evaluation.predictions import records
from obygaze_models.evaluation.run import Run
from obygaze_models.models.spec import ModelSpec

ROUNDING = 1e-12
"""By how much less a refit may be, and still as good."""


def exchanged_films(movies: NDArray[Any], rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw for each clip [N] the clip whose labels it takes: of one other film, at the same place in it.

    A film's clips are in the order of the film. Of films of another length labels are repeated or skipped.
    """
    films, rows = rows_by_movie(movies), np.empty(len(movies), np.intp)
    for own, giver in zip(films, rng.permutation(len(films)), strict=True):
        rows[own] = films[giver][np.arange(len(own)) * len(films[giver]) // len(own)]
    return rows


def with_refits(
    run: Run,
    data: Dataset,
    models: Sequence[ModelSpec],
    n: int,
    each: Callable[[int], object] = lambda _: None,
    **how: Any,
) -> Run:
    """Add p of models to a run's record (`refits`): the share of refits that do as well by movie, or better.

    The run counts as one of them, so that no p is below 1 / (n + 1). A refit that leaves a fold without what
    models are trained on is left out.

    Parameters
    ----------
    run : Run
    data : Dataset
    models : sequence of ModelSpec
        Models of the run.
    n : int
        How many refits.
    each : callable
        Called with the number of refits done.
    **how
        The further arguments of `evaluate` that made the run, task and test among them.

    Raises
    ------
    ProtocolError
        No refit could be trained.
    """
    alone = [replace(spec, beside=()) for spec in models]
    names = {spec.name for spec in models}
    metric = next(one for one in metrics_of(run.predictions.n_classes).values() if one.answers)

    def values(of: Run) -> "pd.Series[float]":
        own = of.metrics[[name.partition("@")[0] in names for name in of.metrics["model"]]]
        return own[own["metric"] == metric.name].set_index(["task", "model"])["movie_mean"]

    rng, drawn, reason = np.random.default_rng(how.get("seed", 0)), [], None
    for number in range(n):
        labels = data.labels.take(exchanged_films(data.movies, rng))
        labels = replace(labels, clip_ids=data.clip_ids, movies=data.movies)
        try:
            drawn.append(values(evaluate(replace(data, labels=labels), alone, progress=False, **how)))
        except (ConceptError, ProtocolError) as error:
            reason = error
        each(number + 1)
    if not drawn:
        raise ProtocolError(f"no refit could be trained: {reason}")
    refits, observed = pd.concat(drawn, axis=1), values(run)
    sign = 1 if metric.higher_is_better else -1
    better = (sign * refits).ge(sign * observed - ROUNDING, axis=0)
    p = ((1 + better.sum(axis=1)) / (1 + refits.notna().sum(axis=1))).where(observed.notna())
    told = pd.DataFrame({"p": p, "observed": observed, "refits": refits.mean(axis=1)})
    about = {"metric": metric.name, "n": len(drawn), "left_out": n - len(drawn)}
    return replace(run, record=run.record | {"refits": about | {"models": records(told.reset_index())}})
