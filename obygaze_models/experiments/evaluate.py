"""Evaluate the probe and the baselines under the strict protocol, one movie left out at a time."""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import COLUMNS, Predictions, summarise
from obygaze_models.evaluation.metrics import prevalence
from obygaze_models.probes import AlwaysNegative, AlwaysPositive, MLPProbe, MoviePrior, RandomGuess, fit_many
from obygaze_models.probes.baselines import Baseline
from obygaze_models.protocol import ProtocolError, Split, Task, leave_one_movie_out, splits

PROTOCOL = "strict: leave one movie out; threshold and epoch chosen by inner folds of movies"

Model = MLPProbe | Baseline

MODELS: dict[str, Callable[[int], Model]] = {
    "mlp": lambda seed: MLPProbe(random_state=seed),
    "always_positive": lambda _: AlwaysPositive(),
    "always_negative": lambda _: AlwaysNegative(),
    "random_prevalence": lambda seed: RandomGuess(random_state=seed),
    "random_half": lambda seed: RandomGuess(0.5, random_state=seed),
    "movie_prior": lambda _: MoviePrior(),
}
"""The models of every evaluation, from a fold's seed."""


@dataclass(frozen=True, eq=False)
class Run:
    """What an evaluation leaves: predictions, everything computed from them, and how they came about.

    Attributes
    ----------
    predictions : Predictions
    metrics : DataFrame
        As `summarise` gives them.
    inner_curves : DataFrame
        A row for each fold, inner fold and epoch of the probe's selection.
    record : dict
        JSON values: task, protocol, data, folds, what was selected, versions.
    """

    predictions: Predictions
    metrics: pd.DataFrame
    inner_curves: pd.DataFrame
    record: dict[str, object]


def evaluate(
    data: Dataset,
    train: Task,
    test: Task,
    *,
    seed: int = 0,
    origin: Mapping[str, object] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Train every model on the other movies' clips of one task and test it on each movie's clips of another.

    Parameters
    ----------
    data : Dataset
        The clips of both tasks.
    train, test : Task
        Columns of the published Table 2 cross them, e.g. train HN vs S, test (EN u HN) vs S.
    seed : int
        With the fold's number it seeds every draw.
    origin : mapping, optional
        JSON values to record of where the labels come from, e.g. the manifest's digest and the label policy.
    progress : callable, optional
        Called now and then with the numbers of trainings done and of all.

    Raises
    ------
    ProtocolError
        Fewer than 3 movies, a side of a fold without both classes to learn from, or a leak.
    """
    learnable, testable = train.holds(data.levels), test.holds(data.levels)
    _check_classes(data, learnable, testable)
    table = leave_one_movie_out(tuple(data.clip_ids.tolist()), tuple(data.movies.tolist()))
    cuts = list(splits(table, learnable, testable))
    task = f"{train.name}>{test.name}"
    for split in cuts:
        _check_training(data.y[split.train], str(data.movies[split.test[0]]), train)
    models = _fit(data, cuts, seed, progress)
    blocks: list[pd.DataFrame] = []
    curves: list[pd.DataFrame] = []
    folds: list[dict[str, object]] = []
    for split, fitted in zip(cuts, models, strict=True):
        for name, model in fitted.items():
            blocks.append(
                _predict(model, data, split).assign(model=name, task=task, fold=split.fold, seed=seed)
            )
            if isinstance(model, MLPProbe):
                curves.append(_curves(model).assign(model=name, fold=split.fold, seed=seed))
                folds.append(_fold_record(model, data.y, split, str(data.movies[split.test[0]])))
    # Model by model, then fold by fold: the order in which people read.
    rank = {name: place for place, name in enumerate(MODELS)}
    stacked = pd.concat(blocks, ignore_index=True).assign(store=data.store)
    stacked = stacked.sort_values("model", key=lambda names: names.map(rank), kind="stable")
    predictions = Predictions(stacked[list(COLUMNS)])
    inner_curves = pd.concat(curves, ignore_index=True)[CURVE_COLUMNS]
    record = dict(origin or {}) | _record(
        data, train=train, test=test, seed=seed, folds=folds, testable=testable
    )
    return Run(predictions, summarise(predictions), inner_curves, record)


def _fit(
    data: Dataset, cuts: Sequence[Split], seed: int, progress: Callable[[int, int], None] | None
) -> list[dict[str, Model]]:
    """Fit every model of every fold, the probes of all folds at once."""
    models = [{name: make(seed_of(seed, split.fold)) for name, make in MODELS.items()} for split in cuts]
    probes = [model for fitted in models for model in fitted.values() if isinstance(model, MLPProbe)]
    fit_many(probes, data.X, data.y, [split.train for split in cuts], groups=data.movies, progress=progress)
    for split, fitted in zip(cuts, models, strict=True):
        for model in fitted.values():
            if isinstance(model, Baseline):
                model.fit(data.X[split.train], data.y[split.train], groups=data.movies[split.train])
    return models


CURVE_COLUMNS = ["model", "fold", "seed", "inner_fold", "epoch", "train_loss", "validation_loss", "kept"]


def seed_of(seed: int, fold: int) -> int:
    """Derive a fold's seed from a run's, so that no two folds draw alike."""
    return int(np.random.SeedSequence((seed, fold)).generate_state(1)[0])


def _check_classes(data: Dataset, learnable: NDArray[np.bool_], testable: NDArray[np.bool_]) -> None:
    for side, rows in (("trained on", learnable), ("tested on", testable)):
        for label, kind in ((1, "positive"), (0, "negative")):
            if not (data.y[rows] == label).any():
                raise ProtocolError(
                    f"no {kind} clip to be {side}: {int(rows.sum())} clips with features, "
                    f"of the levels {', '.join(np.unique(data.levels[rows])) or 'none'}"
                )


def _check_training(y: NDArray[np.int64], movie: str, task: Task) -> None:
    for label, kind in ((1, "positive"), (0, "negative")):
        if not (y == label).any():
            raise ProtocolError(
                f"without movie {movie} there is no {kind} clip of task {task.name} to learn from: "
                "they must be in at least 3 movies"
            )


def _predict(model: Model, data: Dataset, split: Split) -> pd.DataFrame:
    X, movies = data.X[split.test], data.movies[split.test]
    scores = model.decision_function(X, movies) if isinstance(model, Baseline) else model.decision_function(X)
    return pd.DataFrame(
        {
            "clip_id": data.clip_ids[split.test],
            "movie": movies,
            "label": data.y[split.test],
            "score": scores.astype(np.float64),
            "threshold": model.threshold_,
        }
    )


def _curves(model: MLPProbe) -> pd.DataFrame:
    parts = []
    for curve in model.curves_:
        epoch = np.arange(1, len(curve.train_loss) + 1)
        columns = {
            "inner_fold": curve.fold,
            "epoch": epoch,
            "train_loss": curve.train_loss,
            "validation_loss": curve.validation_loss,
            "kept": (epoch == curve.kept).astype(np.int64),
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def _fold_record(model: MLPProbe, y: NDArray[np.int64], split: Split, movie: str) -> dict[str, object]:
    return {
        "fold": split.fold,
        "movie": movie,
        "train_clips": len(split.train),
        "train_positives": int(y[split.train].sum()),
        "test_clips": len(split.test),
        "test_positives": int(y[split.test].sum()),
        "mlp_threshold": model.threshold_,
        "mlp_epochs": model.n_epochs_,
    }


def _settings(model: Model) -> dict[str, object]:
    """Name an estimator and its parameters but the seed, which differs from fold to fold."""
    settings = model.get_params() | {"estimator": type(model).__name__}
    return {name: settings[name] for name in sorted(settings) if name != "random_state"}


def _record(
    data: Dataset,
    *,
    train: Task,
    test: Task,
    seed: int,
    folds: list[dict[str, object]],
    testable: NDArray[np.bool_],
) -> dict[str, object]:
    return {
        "protocol": PROTOCOL,
        "train_task": train.name,
        "test_task": test.name,
        "seed": seed,
        "store": data.store,
        "backbone": data.backbone,
        "features": data.features,
        "pool": data.pool,
        "clips": {
            "manifest": data.n_manifest,
            "unlabelled": data.n_unlabelled,
            "other_levels": data.n_other_levels,
            "with_features": len(data.y),
            "partial": data.n_partial,
            "in_store_only": data.n_unknown,
            "tested": int(testable.sum()),
        },
        "movies_tested": len(folds),
        "prevalence": prevalence(data.y[testable]),
        "excluded": [{"clip_id": clip.clip_id, "reason": clip.reason} for clip in data.excluded],
        "folds": folds,
        "models": {name: _settings(make(seed)) for name, make in MODELS.items()},
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("obygaze", "numpy", "scikit-learn")},
        },
    }
