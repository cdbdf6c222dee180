"""What an evaluation leaves: predictions, metrics, how everything was chosen, and its record."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.dataset import Dataset
from obygaze_models.evaluation.metrics import prevalence
from obygaze_models.evaluation.predictions import COLUMNS, Predictions
from obygaze_models.models.ordinal import Ladder
from obygaze_models.models.spec import Fitted, ModelSpec
from obygaze_models.protocol.folds import MOVIES_ALONE, N_GROUPED, Split
from obygaze_models.protocol.targets import NOT_ASKED, Target

PROTOCOL = "strict: leave one movie out; all that is chosen is chosen by inner folds of movies"

GROUPED = (
    f"strict: {N_GROUPED} folds of whole movies, as there are more than {MOVIES_ALONE}; "
    "all that is chosen is chosen by inner folds of movies"
)

SEEN = (
    "SEEN MOVIES: blocks of scenes with a gap, each tested by models that know the rest of its movie; all "
    "that is chosen is chosen by inner folds of movies"
)

SELECTION = ("model", "train", "fold", "movie", "seed", "candidate", "inner_loss", "chosen")
"""Columns of `Run.selection`."""

CURVES = ("model", "train", "fold", "movie", "seed", "inner_fold", "epoch", "train_loss", "validation_loss")
"""Columns of `Run.curves`."""


@dataclass(frozen=True, eq=False)
class Run:
    """What an evaluation leaves.

    Attributes
    ----------
    predictions : Predictions
        The source of every number.
    metrics : DataFrame
        As `summarise` gives them.
    selection : DataFrame
        A row for each candidate that inner folds tried (`SELECTION`).
    curves : DataFrame
        A row for each epoch of the models that stop early (`CURVES`).
    record : dict
        JSON values: targets, protocol, data, folds, models, versions.
    titles : dict of str to str
        What people call each model.

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


def _steps(model: Fitted | Ladder) -> list[tuple[str, Any]]:
    """List a model's estimators, those of a ladder with their step before each candidate."""
    if isinstance(model, Fitted):
        return [("", model.estimator)]
    return [(f"step {place + 1}: ", step.estimator) for place, step in enumerate(model.steps)]


def selection_of(model: Fitted | Ladder, where: Mapping[str, Any]) -> pd.DataFrame:
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


def curves_of(model: Fitted | Ladder, where: Mapping[str, Any]) -> pd.DataFrame:
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


def fold_record(
    fold: Fold,
    learnt: NDArray[np.int64],
    asked: Mapping[str, NDArray[np.int64]],
    thresholds: Mapping[str, float],
) -> dict[str, Any]:
    """Describe a fold as JSON values."""
    train, test = fold.split.train, fold.split.test
    return {
        "fold": fold.split.fold,
        "movie": fold.name,
        "seed": fold.seed,
        "train_clips": len(train),
        "train_positives": int((learnt[train] == 1).sum()),
        "tested": {name: int((codes[test] != NOT_ASKED).sum()) for name, codes in asked.items()},
        "thresholds": dict(thresholds),
    }


def record_of(
    data: Dataset,
    train: Target,
    tests: Sequence[Target],
    asked: Mapping[str, NDArray[np.int64]],
    *,
    specs: Sequence[ModelSpec],
    seeds: Sequence[int],
    folds: list[dict[str, Any]],
    seen: bool,
    left_out: Mapping[str, str],
) -> dict[str, Any]:
    """Describe an evaluation as JSON values: what was asked, of what, by which models."""
    levels = {level for one in (train, *tests) for level in one.levels}
    concerned = [one for one in data.excluded if one.level in levels or train.scale]
    tested = np.any([codes != NOT_ASKED for codes in asked.values()], axis=0)
    n_movies = len(np.unique(data.movies[tested | (train.of(data.labels) != NOT_ASKED)]))
    return {
        "protocol": SEEN if seen else GROUPED if n_movies > MOVIES_ALONE else PROTOCOL,
        "codebook": {"name": data.codebook.name, "digest": data.codebook.digest()},
        "train": _target_record(train),
        "tests": [_target_record(one) for one in tests],
        "n_classes": train.n_classes,
        "seeds": list(seeds),
        "store": data.store,
        "backbone": data.backbone,
        "untrained": data.untrained,
        "features": data.features,
        "pool": data.pool,
        "n_features": int(data.X.shape[1]),
        "clips": {
            **data.counts,
            "other_levels": int((~(tested | (train.of(data.labels) != NOT_ASKED))).sum()),
            "tested": int(tested.sum()),
        },
        "movies_tested": len(np.unique(data.movies[tested])),
        "prevalence": {
            name: prevalence(codes[codes != NOT_ASKED]) if train.n_classes == 2 else None
            for name, codes in asked.items()
        },
        "excluded": [{"clip_id": clip.clip_id, "reason": clip.reason} for clip in concerned],
        "models_left_out": dict(left_out),
        "folds": folds,
        "models": {spec.name: spec.settings() for spec in specs},
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("obygaze", "numpy", "scikit-learn")},
        },
    }


def _target_record(target: Target) -> dict[str, Any]:
    return {
        "name": target.name,
        "title": target.title,
        "kind": target.kind,
        "classes": [list(side) for side in target.classes],
    }
