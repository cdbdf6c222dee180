"""Evaluate the probe and the baselines under the strict protocol, one movie left out at a time."""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import COLUMNS, Predictions, summarise
from obygaze_models.evaluation.metrics import prevalence
from obygaze_models.probes import (
    AlwaysNegative,
    AlwaysPositive,
    Imbalance,
    MLPProbe,
    MoviePrior,
    RandomGuess,
    fit_many,
)
from obygaze_models.probes.baselines import Baseline
from obygaze_models.protocol import (
    ProtocolError,
    Split,
    Task,
    leave_one_movie_out,
    scene_blocks,
    seen_splits,
    splits,
)

PROTOCOL = "strict: leave one movie out; threshold and epoch chosen by inner folds of movies"

SEEN = (
    "SEEN MOVIES: blocks of scenes with a gap, each tested by models that know the rest of its movie; "
    "threshold and epoch chosen by inner folds of movies"
)

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


def models_with(imbalance: Imbalance) -> Mapping[str, Callable[[int], Model]]:
    """Give the models of an evaluation whose probe does something about the larger class."""
    return MODELS | {"mlp": lambda seed: MLPProbe(imbalance=imbalance, random_state=seed)}


@dataclass(frozen=True, eq=False)
class Run:
    """What an evaluation leaves: predictions, everything computed from them, and how they came about.

    Attributes
    ----------
    predictions : Predictions
    metrics : DataFrame
        As `summarise` gives them.
    inner_curves : DataFrame
        A row for each fold, seed, inner fold and epoch of the probe's selection.
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
    n_seeds: int = 1,
    seen: bool = False,
    imbalance: Imbalance = "none",
    origin: Mapping[str, object] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Train every model on the other movies' clips of one task and test it on each movie's clips of another.

    With `seen`, movies are on both sides of every fold instead (`obygaze_models.protocol.seen`).

    Parameters
    ----------
    data : Dataset
        The clips of both tasks.
    train, test : Task
        Columns of the published Table 2 cross them, e.g. train HN vs S, test (EN u HN) vs S.
    seed : int
        With the name of the film left out, or the block, it seeds every draw.
    n_seeds : int
        How many seeds, from `seed` on, every model that draws is trained with, all in one computation.
    imbalance : {"none", "weights", "subsample"}
        Of the probe, as `MLPProbe` has it: a matter of training clips alone.
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
    cuts = _cuts(data, learnable, testable, seen=seen)
    task = f"{train.name}>{test.name}"
    for name, split in cuts:
        _check_training(data.y[split.train], name if seen else f"movie {name}", train)
    asked = [Asked(one, name, split) for one in range(seed, seed + n_seeds) for name, split in cuts]
    models = _fit(data, asked, models_with(imbalance), progress)
    blocks: list[pd.DataFrame] = []
    curves: list[pd.DataFrame] = []
    folds: list[dict[str, object]] = []
    for one, fitted in zip(asked, models, strict=True):
        for name, model in fitted.items():
            about: dict[str, Any] = {"model": name, "fold": one.split.fold, "seed": one.seed}
            blocks.append(_predict(model, data, one.split).assign(task=task, **about))
            if isinstance(model, MLPProbe):
                curves.append(curves_of(model).assign(**about))
                folds.append(_fold_record(model, data.y, one))
    # Model by model, then seed by seed and fold by fold: the order in which people read.
    rank = {name: place for place, name in enumerate(MODELS)}
    stacked = pd.concat(blocks, ignore_index=True).assign(store=data.store)
    stacked = stacked.sort_values("model", key=lambda names: names.map(rank), kind="stable")
    predictions = Predictions(stacked[list(COLUMNS)])
    inner_curves = pd.concat(curves, ignore_index=True)[CURVE_COLUMNS]
    record = dict(origin or {}) | _record(
        data,
        train=train,
        test=test,
        seeds=range(seed, seed + n_seeds),
        imbalance=imbalance,
        folds=folds,
        testable=testable,
    )
    if seen:
        record["protocol"] = SEEN
    return Run(predictions, summarise(predictions), inner_curves, record)


@dataclass(frozen=True, eq=False, slots=True)
class Asked:
    """One fold under one seed; `name` is the film that it leaves out, or the block."""

    seed: int
    name: str
    split: Split


def _cuts(
    data: Dataset, learnable: NDArray[np.bool_], testable: NDArray[np.bool_], *, seen: bool
) -> list[tuple[str, Split]]:
    """Name the folds, and cut them."""
    clip_ids, movies = tuple(data.clip_ids.tolist()), tuple(data.movies.tolist())
    if seen:
        found = seen_splits(scene_blocks(clip_ids, movies), learnable, testable)
        return [(f"block {split.fold}", split) for split in found]
    found = splits(leave_one_movie_out(clip_ids, movies), learnable, testable)
    return [(str(data.movies[split.test[0]]), split) for split in found]


def _fit(
    data: Dataset,
    asked: Sequence[Asked],
    makers: Mapping[str, Callable[[int], Model]],
    progress: Callable[[int, int], None] | None,
) -> list[dict[str, Model]]:
    """Fit every model of every seed and fold, all probes at once; what draws nothing has the first seed."""
    models, first = [], asked[0].seed
    for one in asked:
        made = {name: make(seed_of(one.seed, one.name)) for name, make in makers.items()}
        models.append(
            {
                name: model
                for name, model in made.items()
                if one.seed == first or "random_state" in model.get_params()
            }
        )
    probes = [model for fitted in models for model in fitted.values() if isinstance(model, MLPProbe)]
    trained = [one.split.train for one in asked]
    fit_many(probes, data.X, data.y, trained, groups=data.movies, progress=progress)
    for rows, fitted in zip(trained, models, strict=True):
        for model in fitted.values():
            if isinstance(model, Baseline):
                model.fit(data.X[rows], data.y[rows], groups=data.movies[rows])
    return models


CURVE_COLUMNS = ["model", "fold", "seed", "inner_fold", "epoch", "train_loss", "validation_loss", "kept"]


def seed_of(seed: int, fold: int | str) -> int:
    """Derive a fold's seed from a run's, so that no two folds draw alike.

    A fold is named by its number, or by the film that it leaves out: a film's seed is then the same whatever
    other films there are.
    """
    name = (fold,) if isinstance(fold, int) else tuple(fold.encode("utf-8"))
    return int(np.random.SeedSequence((seed, *name)).generate_state(1)[0])


def _check_classes(data: Dataset, learnable: NDArray[np.bool_], testable: NDArray[np.bool_]) -> None:
    for side, rows in (("trained on", learnable), ("tested on", testable)):
        for label, kind in ((1, "positive"), (0, "negative")):
            if not (data.y[rows] == label).any():
                raise ProtocolError(
                    f"no {kind} clip to be {side}: {int(rows.sum())} clips with features, "
                    f"of the levels {', '.join(np.unique(data.levels[rows])) or 'none'}"
                )


def _check_training(y: NDArray[np.int64], fold: str, task: Task) -> None:
    for label, kind in ((1, "positive"), (0, "negative")):
        if not (y == label).any():
            raise ProtocolError(
                f"without {fold} there is no {kind} clip of task {task.name} to learn from: "
                "they must be in at least 3 movies"
            )


def scores_of(model: Model, X: NDArray[np.float32], movies: NDArray[np.str_]) -> NDArray[np.float64]:
    """Score the clips of one test side, in their order: a random guess draws for these and no others."""
    if isinstance(model, Baseline):
        return model.decision_function(X, movies)
    return model.decision_function(X).astype(np.float64)


def _predict(model: Model, data: Dataset, split: Split) -> pd.DataFrame:
    X, movies = data.X[split.test], data.movies[split.test]
    return pd.DataFrame(
        {
            "clip_id": data.clip_ids[split.test],
            "movie": movies,
            "label": data.y[split.test],
            "score": scores_of(model, X, movies),
            "threshold": model.threshold_,
        }
    )


def curves_of(model: MLPProbe) -> pd.DataFrame:
    """List a probe's inner curves, a row an epoch."""
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


def _fold_record(model: MLPProbe, y: NDArray[np.int64], one: Asked) -> dict[str, object]:
    split = one.split
    return {
        "fold": split.fold,
        "movie": one.name,
        "train_clips": len(split.train),
        "train_positives": int(y[split.train].sum()),
        "test_clips": len(split.test),
        "test_positives": int(y[split.test].sum()),
        "mlp_threshold": model.threshold_,
        "mlp_epochs": model.n_epochs_,
        "seed": one.seed,
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
    seeds: Sequence[int],
    imbalance: Imbalance,
    folds: list[dict[str, object]],
    testable: NDArray[np.bool_],
) -> dict[str, object]:
    return {
        "protocol": PROTOCOL,
        "train_task": train.name,
        "test_task": test.name,
        "seed": seeds[0],
        "seeds": list(seeds),
        "imbalance": imbalance,
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
        "movies_tested": len(np.unique(data.movies[testable])),
        "prevalence": prevalence(data.y[testable]),
        "excluded": [{"clip_id": clip.clip_id, "reason": clip.reason} for clip in data.excluded],
        "folds": folds,
        "models": {name: _settings(make(seeds[0])) for name, make in models_with(imbalance).items()},
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("obygaze", "numpy", "scikit-learn")},
        },
    }
