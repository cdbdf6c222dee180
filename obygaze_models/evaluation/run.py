"""Hold the results of an evaluation: predictions, metrics, selection, curves, record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.dataset import Dataset
from obygaze_models.evaluation.predictions import COLUMNS, Predictions
from obygaze_models.models.ordinal import OrdinalModel
from obygaze_models.models.spec import Fitted
from obygaze_models.protocol.folds import Split
from obygaze_models.protocol.targets import NOT_ASKED

SELECTION = ("model", "train", "fold", "movie", "seed", "candidate", "inner_loss", "chosen")
"""Columns of `Run.selection`."""

CURVES = ("model", "train", "fold", "movie", "seed", "inner_fold", "epoch", "train_loss", "validation_loss")
"""Columns of `Run.curves`."""


@dataclass(frozen=True, eq=False)
class Run:
    """The results of an evaluation.

    Attributes
    ----------
    predictions : Predictions
        The source of every metric.
    metrics : DataFrame
        As `summarise` gives them.
    selection : DataFrame
        A row for each candidate that inner folds tried (`SELECTION`).
    curves : DataFrame
        A row for each epoch of the models that stop early (`CURVES`).
    record : dict
        JSON values: targets, protocol, data, folds, models, versions.
    titles : dict of str to str
        Title of each model.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> run = om.evaluate(data, {"linear": om.linear_probe()}, task="hn_s", test="enhn_s")
    >>> sorted(run.metrics["model"].unique())
    ['always_negative', 'always_positive', 'linear', 'movie_prior', 'random_half', 'random_prevalence']
    >>> len(run.record["folds"])
    6
    """

    predictions: Predictions
    metrics: pd.DataFrame
    selection: pd.DataFrame
    curves: pd.DataFrame
    record: dict[str, Any]
    titles: Mapping[str, str] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        """Write the pooled metrics as an HTML table, a row a model; `run_report` lays out the rest."""
        order = list(dict.fromkeys(self.metrics["metric"]))
        wide = self.metrics.pivot_table(
            index=["task", "model"], columns="metric", values="pooled", sort=False, dropna=False
        )
        wide = wide.reindex(columns=order).rename_axis(columns=None).reset_index()
        table: str = wide.to_html(index=False, float_format="{:.3f}".format, na_rep="undefined")
        return f"<div><strong>All clips pooled</strong>{table}</div>"


@dataclass(frozen=True, eq=False, slots=True)
class Fold:
    """One fold under one seed.

    Attributes
    ----------
    name : str
        The movie left out, the fold of movies, or the block.
    split : Split
    around : ndarray of int
        The training rows and, unless movies are seen, the other annotated clips of the same movies: concepts
        are learnt from them too.
    seed : int
        Of what is drawn.
    """

    name: str
    split: Split
    around: NDArray[np.intp]
    seed: int


def rows_of(
    data: Dataset, fold: Fold, task: str, codes: NDArray[np.int64], scores: NDArray[np.float64]
) -> dict[str, Any]:
    """Make the rows of one model tested on one fold, as columns."""
    rows = fold.split.test
    asked = codes[rows] != NOT_ASKED
    return {
        "task": task,
        "clip_id": data.clip_ids[rows][asked],
        "movie": data.movies[rows][asked],
        "label": codes[rows][asked],
        "score": scores[asked],
        "store": data.store,
    }


def gather(blocks: Sequence[Mapping[str, Any]], models: Sequence[str], n_classes: int) -> Predictions:
    """Stack blocks: model by model, task by task, then seed by seed and fold by fold."""
    filled = [block for block in blocks if len(block["clip_id"])]
    columns = {
        name: np.concatenate([np.broadcast_to(block[name], len(block["clip_id"])) for block in filled])
        for name in COLUMNS
    }
    table = pd.DataFrame(columns)
    rank = {name: place for place, name in enumerate(models)}
    tasks = {name: place for place, name in enumerate(dict.fromkeys(table["task"]))}
    order = np.lexsort(
        (np.arange(len(table)), table["seed"], table["task"].map(tasks), table["model"].map(rank))
    )
    return Predictions(table.iloc[order].reset_index(drop=True), n_classes)


def _steps(model: Fitted | OrdinalModel) -> list[tuple[str, Any]]:
    """List a model's estimators, those of a ladder with their step before each candidate."""
    if isinstance(model, Fitted):
        return [("", model.estimator)]
    return [(f"step {place + 1}: ", step.estimator) for place, step in enumerate(model.steps)]


def selection_of(model: Fitted | OrdinalModel, where: Mapping[str, Any]) -> pd.DataFrame:
    """List what inner folds tried for a model, a row a candidate; `where` is the model, task and fold."""
    rows = [
        {
            **where,
            "candidate": step + one.name,
            "inner_loss": one.inner_loss,
            "chosen": int(one.chosen),
        }
        for step, estimator in _steps(model)
        for one in getattr(estimator, "candidates_", ())
    ]
    return pd.DataFrame(rows, columns=list(SELECTION))


def curves_of(model: Fitted | OrdinalModel, where: Mapping[str, Any]) -> pd.DataFrame:
    """List the inner curves of a model that stops early, a row an epoch."""
    parts = [
        pd.DataFrame(
            {
                **where,
                "inner_fold": number,
                "epoch": np.arange(1, len(curve.train_loss) + 1),
                "train_loss": curve.train_loss,
                "validation_loss": curve.validation_loss,
            }
        )
        for _, estimator in _steps(model)
        for number, curve in enumerate(getattr(estimator, "curves_", ()))
    ]
    return stack(parts, CURVES)


def stack(parts: Sequence[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    """Stack tables that may be empty."""
    filled = [part for part in parts if len(part)]
    if not filled:
        return pd.DataFrame(columns=list(columns))
    return pd.concat(filled, ignore_index=True)[list(columns)]
