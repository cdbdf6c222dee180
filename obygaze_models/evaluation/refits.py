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
from obygaze_models.models.names import name_in_zoo
from obygaze_models.models.spec import ModelSpec

ROUNDING = 1e-12
"""A refit counts as at least as good if its metric is worse by less than this."""


def exchanged_films(movies: NDArray[Any], rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw from which clip each clip gets its label, if films exchange their whole label sequences at random.

    Each film gets the labels of another film, or its own, as a permutation of the films says. If the films
    have different lengths, the sequence of labels is stretched or shrunk: a film of 4 clips gets the labels
    of clips 0, 0, 1 and 1 of a film of 2.

    Parameters
    ----------
    movies : ndarray, shape [N]
        The film of each clip; a film's clips must be in the order of the film.
    rng : Generator

    Returns
    -------
    ndarray of int, shape [N]
        For each clip, the index of the clip whose labels it gets.
    """
    films = rows_by_movie(movies)
    order = rng.permutation(len(films))
    label_rows = np.empty(len(movies), np.intp)
    for rows, other_film in zip(films, order, strict=True):
        rows_of_other = films[other_film]
        # Clip i of n clips gets the label of clip i * m / n, rounded down, of the other film's m clips.
        places_in_other = np.arange(len(rows)) * len(rows_of_other) // len(rows)
        label_rows[rows] = rows_of_other[places_in_other]
    return label_rows


def with_refits(
    run: Run,
    data: Dataset,
    models: Sequence[ModelSpec],
    n: int,
    report_progress: Callable[[int], object] = lambda _: None,
    **settings: Any,
) -> Run:
    """Test models by a permutation test, and add their p-values to the run's record (``refits``).

    In each refit the films exchange their sequences of labels, and the models are trained and tested again. p
    is the share of refits whose metric by movie is at least as good as the run's. The run counts as one of
    the refits, so that no p is below 1 / (n + 1). Refits in which a fold lacks a class are left out.

    Parameters
    ----------
    run : Run
    data : Dataset
    models : sequence of ModelSpec
        Models of the run.
    n : int
        Number of refits.
    report_progress : callable
        Called after each refit with the number of refits done.
    **settings
        The other arguments with which `evaluate` made the run, including task and test.

    Raises
    ------
    ProtocolError
        No refit could be trained.
    """
    metrics = metrics_of(run.predictions.n_classes)
    metric = next(metric for metric in metrics.values() if metric.is_main)
    names = {spec.name for spec in models}

    # --- train and test again, each time with the labels exchanged anew
    # Refits need no models for comparison.
    specs = [replace(spec, compared_with=()) for spec in models]
    rng = np.random.default_rng(settings.get("seed", 0))
    values_of_refits = []
    last_error = None
    for number in range(n):
        try:
            refit = evaluate(_with_exchanged_labels(data, rng), specs, progress=False, **settings)
        except (ConceptError, ProtocolError) as error:
            # A fold lacks a class: the refit is left out, and counted in the record.
            last_error = error
        else:
            values_of_refits.append(_movie_means(refit, names, metric))
        report_progress(number + 1)
    if not values_of_refits:
        raise ProtocolError(f"no refit could be trained: {last_error}")

    # --- compare the run with its refits
    refits = pd.concat(values_of_refits, axis=1)  # a row for each task and model, a column for each refit
    observed = _movie_means(run, names, metric)
    p = _share_as_good(observed, refits, higher_is_better=metric.higher_is_better)
    table = pd.DataFrame({"p": p, "observed": observed, "refits": refits.mean(axis=1)})
    record = {
        "metric": metric.name,
        "n": len(values_of_refits),
        "left_out": n - len(values_of_refits),
        "models": records(table.reset_index()),
    }
    return replace(run, record=run.record | {"refits": record})


def _with_exchanged_labels(data: Dataset, rng: np.random.Generator) -> Dataset:
    """Return a dataset in which films have exchanged their sequences of labels; features stay in place."""
    labels_of_others = data.labels.take(exchanged_films(data.movies, rng))
    # `take` also moved ids and films, which belong to the clips and not to their labels.
    labels = replace(labels_of_others, clip_ids=data.clip_ids, movies=data.movies)
    return replace(data, labels=labels)


def _share_as_good(
    observed: "pd.Series[float]", refits: pd.DataFrame, *, higher_is_better: bool
) -> "pd.Series[float]":
    """Compute the p-value of the permutation test: the share of refits at least as good as the run itself.

    The run counts as one of the refits. Refits without a value (NaN) are left out.

    Parameters
    ----------
    observed : Series
        The run's metric, for each task and model; NaN where it is undefined, which makes p NaN too.
    refits : DataFrame
        The metric of each refit, a row for each task and model, and a column for each refit.
    higher_is_better : bool
    """
    # A refit that is worse by rounding alone counts as equally good. Comparisons with NaN are false.
    if higher_is_better:
        is_as_good = refits.ge(observed - ROUNDING, axis=0)
    else:
        is_as_good = refits.le(observed + ROUNDING, axis=0)
    n_as_good = is_as_good.sum(axis=1)
    n_defined = refits.notna().sum(axis=1)
    share = (1 + n_as_good) / (1 + n_defined)
    return share.where(observed.notna())


def _movie_means(run: Run, names: Collection[str], metric: Metric) -> "pd.Series[float]":
    """Return a metric's mean over movies, indexed by task and model, for the models in `names`.

    A model that is trained on one annotator's labels is named ``NAME@ANNOTATOR`` in the run; it is returned
    if NAME is in `names`.
    """
    is_named = [name_in_zoo(model) in names for model in run.metrics["model"]]
    rows = run.metrics[is_named]
    return rows[rows["metric"] == metric.name].set_index(["task", "model"])["movie_mean"]
