"""Run the strict evaluation: each movie is tested by models trained on the other movies."""

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.dataset import Dataset
from obygaze_models.errors import ConceptError, ProtocolError
from obygaze_models.evaluation.levels import LEVEL_METRICS
from obygaze_models.evaluation.metrics import METRICS, prevalence
from obygaze_models.evaluation.predictions import COLUMNS, Predictions
from obygaze_models.evaluation.summary import summarise
from obygaze_models.models.labels import Imbalance
from obygaze_models.models.ordinal import Ladder, fit_ladder
from obygaze_models.models.registry import models_for
from obygaze_models.models.spec import Fitted, ModelSpec, fit
from obygaze_models.protocol.folds import Split, leave_one_movie_out, splits
from obygaze_models.protocol.seen import scene_blocks, seen_splits
from obygaze_models.protocol.targets import NOT_ASKED, Target, choose_targets, find_target

PROTOCOL = "strict: leave one movie out; all that is chosen is chosen by inner folds of movies"

SEEN = (
    "SEEN MOVIES: blocks of scenes with a gap, each tested by models that know the rest of its movie; all "
    "that is chosen is chosen by inner folds of movies"
)

Progress = Callable[[int, int], None]

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
        """Write the pooled metrics as an HTML table, one row per model; `run_report` lays out the rest."""
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
        The movie left out, or the block.
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


def evaluate(
    data: Dataset,
    models: str | Sequence[str] | Mapping[str, Any] | Sequence[ModelSpec] | None = None,
    task: str | Target = "",
    test: str | Target | Sequence[str | Target] | None = None,
    *,
    seed: int = 0,
    n_seeds: int = 1,
    seen: bool = False,
    imbalance: Imbalance = "none",
    origin: Mapping[str, object] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Evaluate models by leave-one-movie-out.

    Parameters
    ----------
    data : Dataset
    models : sequence of str, mapping of str to estimator, sequence of ModelSpec, or None
        Names of the zoo's models, of entry points, or ``module:factory``; or estimators, factories and specs
        by name. None for the zoo's own. The baselines are always added.
    task : str or Target
        What is asked in training: a task of the codebook, ``concept:NAME``, ``levels`` or ``scale:NAME``.
    test : str or Target, or a sequence of them, optional
        What is asked of the clips tested; several share the models. By default as in training.
    seed : int
        With the name of the movie left out, or the block, it seeds every draw.
    n_seeds : int
        How many seeds, from `seed` on, every model that draws is trained with.
    seen : bool
        Whether movies are on both sides of every fold instead (`obygaze_models.protocol.seen`).
    imbalance : {"none", "weights", "subsample"}
        How the zoo's own perceptron handles class imbalance, in training clips alone.
    origin : mapping, optional
        JSON values to record of where the labels come from, e.g. the manifest's digest and the label policy.
    progress : callable, optional
        Called now and then with the numbers of models trained and of all.

    Raises
    ------
    ProtocolError
        Fewer than 3 movies, a side of a fold without both classes, a leak, or targets that don't go together.
    ModelError
        A model that can't be found or trained.
    ConceptError
        A model that reads concepts was asked for, and none varies in enough movies.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> run = om.evaluate(data, {"bayes": GaussianNB()}, task="hn_s", test="enhn_s")
    >>> pooled = run.metrics.set_index(["model", "metric"])["pooled"]
    >>> bool(pooled["bayes", "average_precision"] > pooled["movie_prior", "average_precision"])
    True
    """
    train = _target(task, data)
    tests = _targets(test, data) or (train,)
    _check_targets(train, tests)
    asked_for = (models,) if isinstance(models, str) else models
    specs = models_for(train.kind, asked_for, imbalance=imbalance)
    features = {reads: data.read(reads) for reads in dict.fromkeys(spec.reads for spec in specs)}
    learnt = train.of(data.labels)
    asked = {one.name: one.of(data.labels) for one in tests}
    _check_classes(data, train, learnt, asked)
    folds = list(_folds(data, learnt, asked, range(seed, seed + n_seeds), seen=seen))
    concepts = {fold.name: varying(data, fold.around) for fold in folds}
    specs, left_out = _with_concepts(specs, concepts, explicit=models is not None)
    blocks: list[dict[str, Any]] = []
    selection: list[pd.DataFrame] = []
    curves: list[pd.DataFrame] = []
    thresholds: dict[tuple[str, int], dict[str, float]] = {}
    todo = [(fold, spec) for fold in folds for spec in specs if fold.seed == seed or spec.draws()]
    for done, (fold, spec) in enumerate(todo):
        X = features[spec.reads]
        model = _fit(spec, fold, data, X, learnt=(train, learnt), concepts=concepts[fold.name])
        thresholds.setdefault((fold.name, fold.seed), {})[spec.name] = model.threshold
        about = {"model": spec.name, "fold": fold.split.fold, "seed": fold.seed}
        scores = model.scores(X[fold.split.test], data.movies[fold.split.test])
        blocks += [
            _rows(data, fold, f"{train.name}>{one.name}", asked[one.name], scores)
            | about
            | {"threshold": model.threshold}
            for one in tests
        ]
        where = about | {"train": train.name, "movie": fold.name}
        selection.append(_selection(model, where))
        curves.append(_curves(model, where))
        if progress is not None:
            progress(done + 1, len(todo))
    predictions = _gather(blocks, [spec.name for spec in specs], train.n_classes)
    metrics = summarise(predictions, LEVEL_METRICS if train.kind == "ordinal" else METRICS)
    record = dict(origin or {}) | _record(
        data,
        train,
        tests,
        asked,
        specs=specs,
        seeds=range(seed, seed + n_seeds),
        folds=[
            _fold_record(fold, learnt, asked, thresholds[fold.name, fold.seed])
            | {"concepts_left_out": sorted(set(data.labels.concepts) - set(concepts[fold.name]))}
            for fold in folds
        ],
        seen=seen,
        left_out=left_out,
    )
    return Run(
        predictions,
        metrics,
        _stack(selection, SELECTION),
        _stack(curves, CURVES),
        record,
        {spec.name: spec.title for spec in specs},
    )


def seed_of(seed: int, fold: int | str) -> int:
    """Derive a fold's seed from the run's seed, different for every fold.

    A fold is named by its number, or by the movie that it leaves out: a movie's seed is then the same
    whatever other movies there are.
    """
    name = (fold,) if isinstance(fold, int) else tuple(fold.encode("utf-8"))
    return int(np.random.SeedSequence((seed, *name)).generate_state(1)[0])


def varying(data: Dataset, rows: NDArray[np.intp]) -> list[str]:
    """List the concepts that vary in the clips whichever movie is left out, and so can be learnt."""
    movies, present = data.movies[rows], data.labels.present[rows]
    kept = np.ones(present.shape[1], dtype=np.bool_)
    for movie in np.unique(movies):
        rest = present[movies != movie]
        kept &= rest.any(axis=0) & ~rest.all(axis=0)
    return [concept for concept, good in zip(data.labels.concepts, kept, strict=True) if good]


def _target(given: str | Target, data: Dataset) -> Target:
    if isinstance(given, Target):
        return given
    if given:
        return find_target(given, data.codebook)
    return choose_targets(data.codebook, None, None)[0]


def _targets(given: Any, data: Dataset) -> tuple[Target, ...]:
    if given is None:
        return ()
    several = (given,) if isinstance(given, str | Target) else tuple(given)
    return tuple(_target(one, data) for one in several)


def _check_targets(train: Target, tests: Sequence[Target]) -> None:
    """Refuse to test a model on what it can't answer."""
    for one in tests:
        if one.kind != train.kind or one.n_classes != train.n_classes or one.scale != train.scale:
            raise ProtocolError(
                f"a model trained on {train.name} ({train.kind}) can't be tested on {one.name} ({one.kind})"
            )


def _folds(
    data: Dataset,
    learnt: NDArray[np.int64],
    asked: Mapping[str, NDArray[np.int64]],
    seeds: Sequence[int],
    *,
    seen: bool,
) -> Iterator[Fold]:
    """Cut the clips into folds, each under each seed."""
    learnable = learnt != NOT_ASKED
    testable = np.any([codes != NOT_ASKED for codes in asked.values()], axis=0)
    used = np.flatnonzero(learnable | testable)
    ids, movies = tuple(data.clip_ids[used].tolist()), tuple(data.movies[used].tolist())
    cut = (learnable[used], testable[used])
    if seen:
        found = list(seen_splits(scene_blocks(ids, movies), *cut))
    else:
        found = list(splits(leave_one_movie_out(ids, movies), *cut))
    for number in seeds:
        for split in found:
            own = Split(split.fold, used[split.train], used[split.validation], used[split.test])
            name = f"block {split.fold}" if seen else str(data.movies[own.test[0]])
            _check_training(learnt[own.train], name if seen else f"movie {name}")
            around = own.train
            if not seen:
                around = np.flatnonzero(np.isin(data.movies, np.unique(data.movies[own.train])))
            yield Fold(name, own, around, number)


def _check_classes(
    data: Dataset, train: Target, learnt: NDArray[np.int64], asked: Mapping[str, NDArray[np.int64]]
) -> None:
    for side, codes in (("trained on", learnt), *(("tested on", codes) for codes in asked.values())):
        rows = codes != NOT_ASKED
        for rank in range(train.n_classes) if train.kind != "ordinal" else (0, train.n_classes - 1):
            if not (codes == rank).any():
                kind = ("negative", "positive")[rank] if train.kind != "ordinal" else train.classes[rank][0]
                raise ProtocolError(
                    f"no {kind} clip to be {side}: {int(rows.sum())} clips with features, "
                    f"of the levels {', '.join(np.unique(data.levels[rows])) or 'none'}"
                )


def _check_training(y: NDArray[np.int64], fold: str) -> None:
    if y.max() <= 1:
        for label, kind in ((1, "positive"), (0, "negative")):
            if not (y == label).any():
                raise ProtocolError(
                    f"without {fold} there is no {kind} clip to learn from: "
                    "both classes must be in at least 3 movies"
                )


def _with_concepts(
    specs: Sequence[ModelSpec], concepts: Mapping[str, list[str]], *, explicit: bool
) -> tuple[list[ModelSpec], dict[str, str]]:
    """Leave out the models that read concepts where some fold has none to read.

    Raises
    ------
    ConceptError
        They were asked for by name.
    """
    reading = [spec for spec in specs if "present" in spec.requests()]
    if not reading or all(concepts.values()):
        return list(specs), {}
    fold = next(name for name, found in concepts.items() if not found)
    reason = f"no concept is marked in enough movies to be learnt without {fold}"
    if explicit:
        raise ConceptError(f"model {reading[0].name}: {reason}")
    return [spec for spec in specs if spec not in reading], {spec.name: reason for spec in reading}


def _fit(
    spec: ModelSpec,
    fold: Fold,
    data: Dataset,
    X: NDArray[Any],
    *,
    learnt: tuple[Target, NDArray[np.int64]],
    concepts: Sequence[str],
) -> Fitted | Ladder:
    """Fit a model on a fold's training side; `learnt` is the target and every clip's label, X all clips'."""
    target, labels = learnt
    requests = spec.requests()
    rows = fold.around if "unlabelled" in requests else fold.split.train
    inside = np.isin(rows, fold.split.train)
    given: dict[str, Any] = {"movies": data.movies[rows]}
    if "present" in requests:
        given["present"] = data.present.loc[rows, list(concepts)]
    y = np.where(inside, labels[rows], NOT_ASKED)
    number = seed_of(fold.seed, fold.name)
    if target.kind == "ordinal":
        return fit_ladder(spec, number, X[rows], y, n_levels=target.n_classes, **given)
    return fit(spec, number, X[rows], y, **given)


def _rows(
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


def _gather(blocks: Sequence[Mapping[str, Any]], models: Sequence[str], n_classes: int) -> Predictions:
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


def _selection(model: Fitted | Ladder, where: Mapping[str, Any]) -> pd.DataFrame:
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


def _curves(model: Fitted | Ladder, where: Mapping[str, Any]) -> pd.DataFrame:
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
    return _stack(parts, CURVES)


def _stack(parts: Sequence[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    filled = [part for part in parts if len(part)]
    if not filled:
        return pd.DataFrame(columns=list(columns))
    return pd.concat(filled, ignore_index=True)[list(columns)]


def _fold_record(
    fold: Fold,
    learnt: NDArray[np.int64],
    asked: Mapping[str, NDArray[np.int64]],
    thresholds: Mapping[str, float],
) -> dict[str, Any]:
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


def _record(
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
    levels = {level for one in (train, *tests) for level in one.levels}
    concerned = [one for one in data.excluded if one.level in levels or train.scale]
    tested = np.any([codes != NOT_ASKED for codes in asked.values()], axis=0)
    return {
        "protocol": SEEN if seen else PROTOCOL,
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
