"""Train the models of an evaluation on the clips of all movies, and save them."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.errors import ObygazeError
from obygaze_features.io import NO_LICENCE, file_names, local_path, refuse_existing
from obygaze_features.manifest.spans.names import suggestion
from obygaze_features.store.provenance import validate_licence
from obygaze_models.concepts.bank import ConceptBank
from obygaze_models.concepts.bottleneck import ConceptBottleneck
from obygaze_models.dataset.dataset import Dataset, Modality
from obygaze_models.errors import ConceptError, ModelError
from obygaze_models.evaluation.evaluate import seed_of
from obygaze_models.evaluation.intervals import t_interval
from obygaze_models.evaluation.metrics import average_precision, random_ranking, rows_by_movie
from obygaze_models.evaluation.plan import varying
from obygaze_models.evaluation.predictions import records
from obygaze_models.evaluation.run import Run
from obygaze_models.models.fusion import FusedClassifier
from obygaze_models.models.grouped_selection import GroupedSelection
from obygaze_models.models.layers import LayerClassifier
from obygaze_models.models.registry import BUILTIN_MODELS, models_for
from obygaze_models.models.spec import Fitted, ModelSpec, fit
from obygaze_models.persistence.card import Card, CardTarget, Input, Population, family
from obygaze_models.persistence.evidence import Evidence
from obygaze_models.persistence.model_file import to_state
from obygaze_models.prediction.calibration import Calibration, draw_sigmoids
from obygaze_models.prediction.evidence import as_left_out, collect_evidence
from obygaze_models.prediction.out_of_distribution import OutOfDistribution
from obygaze_models.prediction.saved_model import Model, save_model, vectors
from obygaze_models.prediction.training_films import TrainingFilms
from obygaze_models.protocol.held_out import HeldOut
from obygaze_models.protocol.slope import SlopeLikelihood
from obygaze_models.protocol.targets import NOT_ASKED, Kind, Target

BANK = "bank"
"""Name of a saved concept bank without a classifier."""

SUFFIX = ".model"

HANDFUL = 6
"""Movies, of which two clips a class are what `check_can_be_saved` fits models on."""


@checked
def save_models(
    run: Run,
    data: Dataset,
    names: Iterable[str],
    folder: Path | str,
    *,
    models: Mapping[str, Any] | Sequence[ModelSpec] | None = None,
    licence: str = NO_LICENCE,
    citation: str = "",
) -> dict[str, Path]:
    """Train models of a run on all films, and save each as ``FOLDER/NAME.model``.

    Nothing is written unless all of them can be saved.

    Parameters
    ----------
    run : Run
        The evaluation. Its out-of-fold metrics go on the cards, as no clip is left to test these models.
    data : Dataset
        What was evaluated.
    names : iterable of str
        Models of the run; or "bank" for the directions of all concepts, without a classifier.
    folder : Path or str
        Created if missing.
    models : mapping or sequence of ModelSpec, optional
        The models given to `evaluate`, where the run no longer holds them: it was read from a folder.
    licence : str
        SPDX expression of the saved models; NOASSERTION if none is stated.
    citation : str

    Returns
    -------
    dict of str to Path
        The file of each model.

    Raises
    ------
    ModelError
        A model is not in the run, or cannot be saved.
    StoreError
        The licence is not valid.
    OutputError
        A file exists.

    Examples
    --------
    >>> from pathlib import Path
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> run = om.evaluate(data, ["linear"], task="hn_s", test="enhn_s")
    >>> [file.name for file in om.save_models(run, data, ["linear"], Path("saved")).values()]
    ['linear.model']
    """
    wanted = list(dict.fromkeys(names))
    folder = local_path(folder)
    paths = {name: folder / f"{file}{SUFFIX}" for name, file in file_names(wanted).items()}
    refuse_existing(*paths.values())
    specs = {name: None if name == BANK else _find(name, run, models) for name in wanted}
    check_can_be_saved(filter(None, specs.values()), data, _target(run.record["train"]), licence)
    terms = {"licence": licence, "citation": citation}
    made = {
        name: train_bank(data, run, **terms) if spec is None else train_final(data, spec, run, **terms)
        for name, spec in specs.items()
    }
    for name, model in made.items():
        save_model(model, paths[name])
    return paths


def check_can_be_saved(
    specs: Iterable[ModelSpec], data: Dataset, target: Target, licence: str = NO_LICENCE
) -> None:
    """Refuse models that can't be saved, before they are evaluated.

    Those of other packages are fitted on a handful of clips and converted; one that can't be fitted on so
    few is converted for the first time when it is saved.

    Raises
    ------
    ModelError
        Naming the first that can't be saved.
    StoreError
        The licence is not valid.
    """
    validate_licence(licence)
    learnt = target.of(data.labels)
    keys = pd.DataFrame({"movie": data.movies, "label": learnt})[learnt != NOT_ASKED]
    few = keys[keys["movie"].isin(np.unique(keys["movie"])[:HANDFUL])].groupby(["movie", "label"]).head(2)
    rows = few.index.to_numpy()
    for spec in specs:
        if not spec.looks_at_features or spec.reads == "present":
            raise ModelError(f"model {spec.name} looks at no feature: there is nothing to keep")
        if target.kind == "ordinal":
            raise ModelError(
                f"model {spec.name} of ordered levels is several binary models, which can't be kept in a "
                "file: evaluate a task of two classes, and keep that"
            )
        if data.modalities and ":" in spec.name:
            raise ModelError(
                f"model {spec.name} is one of several: to keep it, evaluate its part alone (--layer N, "
                "STORE:BACKBONE)"
            )
        if data.modalities and spec.name != "linear":
            raise ModelError(
                f"model {spec.name}: of models of several modalities linear alone can be kept in a file; "
                "evaluate one store to keep a model of one"
            )
        if spec.name in BUILTIN_MODELS:
            continue
        given = {"movies": data.movies[rows], "present": data.present.loc[rows]}
        try:
            with warnings.catch_warnings(action="ignore"):
                fitted = fit(spec, 0, data.read(spec.reads, stream=spec.streams)[rows], learnt[rows], **given)
        except ObygazeError:
            continue
        to_state(_inner(fitted), spec.name)


def _inner(fitted: Fitted) -> Any:
    """Return a model's estimator without the selection around it."""
    estimator = fitted.estimator
    if isinstance(estimator, FusedClassifier):
        return estimator.linear()
    return estimator.estimator_ if isinstance(estimator, GroupedSelection) else estimator


def train_final(data: Dataset, spec: ModelSpec, run: Run, **terms: str) -> Model:
    """Train a model on the clips of all films, in the same way as every fold of the run.

    Its scores are calibrated on out-of-fold scores: where a test of the run is wider than the task, on the
    run's scores of that test, since a film is made of all its levels; else on those of the inner folds of
    films.

    Parameters
    ----------
    data : Dataset
        What was evaluated.
    spec : ModelSpec
    run : Run
    **terms
        Licence and citation, as `save_models` takes them.

    Raises
    ------
    ModelError
        The model cannot be saved.
    """
    target = _target(run.record["train"])
    learnt = target.of(data.labels)
    requests = spec.requests()
    own = np.flatnonzero(learnt != NOT_ASKED)
    rows = own
    if "unlabelled" in requests:
        rows = np.flatnonzero(np.isin(data.movies, np.unique(data.movies[own])))
    concepts = varying(data, rows) if "present" in requests else []
    if "present" in requests and not concepts:
        raise ConceptError(f"model {spec.name}: no concept is marked in enough movies to be learnt")
    X, y, movies = data.read(spec.reads, stream=spec.streams)[rows], learnt[rows], data.movies[rows]
    given: dict[str, Any] = {"movies": movies}
    if concepts:
        given["present"] = data.present.loc[rows, concepts]
    # A fold's seed depends on the film that it leaves out; here none is left out.
    fitted = fit(spec, seed_of(_seed(run), ""), X, y, **given)
    if isinstance(fitted.estimator, LayerClassifier):
        # A file keeps a model of the layer that was chosen, which reads no other.
        data = data.parts[fitted.estimator.layer_]
        fitted = Fitted(spec, fitted.estimator.model_, fitted.threshold)
        X = data.read("pooled")[rows]
    zero = fitted.mean_score(X, np.flatnonzero(y != NOT_ASKED), movies)
    standing = _calibrated(run, data, target, fitted, zero)
    calibration = standing.calibration
    estimator = _inner(fitted)
    metrics = [row for row in records(run.metrics) if row["model"] == spec.name]
    sigmoids = NO_CONCEPTS
    if concepts and isinstance(estimator, ConceptBottleneck):
        bank: Any = estimator.bank_
        values, present = bank.cross_values_[:, : len(concepts)], given["present"].to_numpy()
        sigmoids = fit_sigmoids(values, present, movies)
        metrics += concept_metrics(spec.name, estimator.concepts_, values, present, movies)
    about: dict[str, Any] = {
        "model": spec.name,
        "title": spec.title,
        "threshold": fitted.threshold,
        "target": CardTarget(**target.record(), concept=target.concept),
        "concepts": tuple(estimator.concepts_) if isinstance(estimator, ConceptBottleneck) else (),
        "calibration": {} if calibration is None else calibration.to_json(),
        "population": standing.population,
        "evidence": standing.evidence,
        "metrics": tuple(metrics),
    }
    if spec.reads != "pooled":
        reduced = data.reduction
        about |= {"features": spec.reads if reduced is None else "tokens", "pool": "none"}
        about |= {"reduced_by": "" if reduced is None else reduced.rule}
    card = _card(data, run, estimator, (X, y, movies), **about, **terms)
    reach = OutOfDistribution.fit(vectors(X), movies)
    return Model(card, estimator, calibration, reach, sigmoids, TrainingFilms.of_clips(data, rows))


def train_bank(data: Dataset, run: Run, **terms: str) -> Model:
    """Learn the directions of all concepts on all annotated clips, without a classifier.

    Raises
    ------
    ConceptError
        No concept is marked in enough movies.
    """
    rows = np.arange(len(data))
    concepts = varying(data, rows)
    if not concepts:
        raise ConceptError("no concept is marked in enough movies to be learnt")
    present = data.present[concepts].to_numpy()
    bank = ConceptBank("ridge", C=None, concepts=concepts).fit(data.X, present, groups=data.movies)
    bank.rescale(bank.cross_distances_)
    card = _card(
        data,
        run,
        bank,
        (data.X, np.zeros(len(data)), data.movies),
        model=BANK,
        title="Concepts",
        threshold=0.0,
        target=CardTarget(name="concepts", title="Visual concepts", kind="concepts", classes=[], concept=""),
        concepts=tuple(concepts),
        calibration={},
        metrics=(),
        **terms,
    )
    sigmoids = fit_sigmoids(bank.cross_values_, present, data.movies)
    reach = OutOfDistribution.fit(data.X, data.movies)
    return Model(card, bank, None, reach, sigmoids, TrainingFilms.of_clips(data, rows))


def _card(
    data: Dataset, run: Run, estimator: Any, clips: tuple[Any, ...], *, licence: str = NO_LICENCE, **own: Any
) -> Card:
    """Make a card of a model's own fields, of the clips trained on, and those shared by all of a run."""
    X, y, movies = clips
    several = tuple(map(_input, data.modalities))
    if len({(each["backbone"], each["provenance_sha256"]) for each in several}) < len(several):
        raise ModelError("two modalities are of the same backbone, made alike: no file could tell them apart")
    if data.group is None and not several:
        raise ModelError("these features are of no store, so that nobody could make others like them")
    provenance = several[0]["provenance"] if data.group is None else data.group.provenance
    record, kept = run.record, to_state(estimator, own["model"])
    shared = ("backbone", "store", "clip_s", "features", "pool")
    return Card(
        kind=kept.kind,
        estimator=type(estimator).__name__,
        parameters=dict(kept.parameters),
        n_features=int(X.shape[-1]),
        movies=tuple(np.unique(movies).tolist()),
        n_clips=int((y != NOT_ASKED).sum()),
        n_positives=int((y == 1).sum()),
        provenance=provenance,
        provenance_sha256=family(provenance),
        modalities=several,
        **{name: record[name] for name in ("codebook", "protocol", "versions")},
        seed=_seed(run),
        manifest_sha256=str(record.get("manifest_sha256", "")),
        label_policy=str(record.get("label_policy", "")),
        licence=validate_licence(licence),
        **{name: getattr(data, name) for name in shared} | {"citation": ""} | own,
    )


def _input(each: Modality) -> Input:
    made = {"provenance": dict(each.provenance), "provenance_sha256": family(each.provenance)}
    shared = {name: getattr(each, name) for name in ("name", "backbone", "features", "pool", "store")}
    return cast("Input", {**shared, **made, "n_features": each.stop - each.start})


def _find(name: str, run: Run, models: Any) -> ModelSpec:
    if name not in run.record["models"]:
        raise ModelError(f"model {name!r} was not evaluated{suggestion(name, [*run.record['models'], BANK])}")
    if models is None:
        for spec in run.specs:
            if spec.name == name:
                return spec
        wanted: Any = [name]
    elif isinstance(models, Mapping):
        wanted = {name: models[name]}
    else:
        wanted = [spec for spec in models if spec.name == name]
    kind: Kind = run.record["train"]["kind"]
    try:
        return next(spec for spec in models_for(kind, wanted) if spec.name == name)
    except ModelError as error:
        raise ModelError(
            f"{error}; if it is your own, give it again: save_models(..., models={{{name!r}: ESTIMATOR}})"
        ) from None


def _seed(run: Run) -> int:
    return int(run.record["seeds"][0])


def _wider_test(run: Run, data: Dataset, learnt: NDArray[np.int64]) -> Target | None:
    """Find the widest test that asks every clip of the task for the same label, and more clips."""
    in_task = learnt != NOT_ASKED
    widest, most = None, int(in_task.sum())
    for test in map(_target, run.record["tests"]):
        asked = test.of(data.labels)
        n = int((asked != NOT_ASKED).sum())
        if n > most and (asked[in_task] == learnt[in_task]).all():
            widest, most = test, n
    return widest


class _Standing(NamedTuple):
    """What held-out scores say of a model: how to read its scores, on which clips, and how well it does."""

    calibration: Calibration | None
    population: Population | None
    evidence: Evidence | None


def _calibrated(run: Run, data: Dataset, target: Target, fitted: Fitted, zero: float) -> _Standing:
    """Calibrate a model on held-out scores: of a test that is wider than the task, or of inner folds.

    `zero` is the mean score of training clips. A model without inner folds has no calibration.
    """
    held_out: HeldOut | None = getattr(fitted.estimator, "held_out_", None)
    learnt, model = target.of(data.labels), fitted.spec.name
    clip_ids, wider = data.clip_ids[learnt != NOT_ASKED], _wider_test(run, data, learnt)
    left_out = _left_out(run, model, f"{target.name}>{(wider or target).name}")
    if wider is not None:
        table = left_out[left_out["seed"] == _seed(run)]
        scores, y, movies, folds, clip_ids = (
            table[name].to_numpy() for name in ("score", "label", "movie", "fold", "clip_id")
        )
        zeros = {fold["fold"]: fold["zeros"][model] for fold in run.record["folds"] if model in fold["zeros"]}
        held_out = HeldOut(scores, y, movies, folds, np.array([zeros[fold] for fold in folds.tolist()]))
    calibration = population = None
    if held_out is not None:
        calibration = Calibration.fit(held_out, zero, seed=_seed(run))
        population = _population(data, wider or target, clip_ids)
        if left_out.empty:  # The run tested other clips than those of its task.
            left_out = as_left_out(clip_ids, held_out.movies, held_out.y, held_out.scores)
    if left_out.empty:
        return _Standing(calibration, population, None)
    p_skilled = None if calibration is None else calibration.p_skilled
    return _Standing(calibration, population, collect_evidence(left_out, p_skilled))


def _left_out(run: Run, model: str, task: str) -> pd.DataFrame:
    """Return the run's scores of a model in one test, of all seeds."""
    table = run.predictions.table
    return table[(table["model"] == model) & (table["task"] == task)]


def _population(data: Dataset, target: Target, clip_ids: Iterable[str]) -> Population:
    """Describe the clips that a calibration was fitted on."""
    rows = np.flatnonzero(np.isin(data.clip_ids, np.array(list(clip_ids), dtype=str)))
    levels, numbers = np.unique(data.levels[rows], return_counts=True)
    clips = dict(zip(levels.tolist(), numbers.tolist(), strict=True))
    # Of a concept's target, clips of a level may be asked that have the concept, and the others not.
    asked = target.of(data.labels) != NOT_ASKED
    partly = set(data.levels[~asked].tolist())
    left_out = [level for level in data.codebook.labels if level in partly or level not in clips]
    return Population(
        task=target.name,
        title=target.title,
        clips=clips,
        n_movies=len(np.unique(data.movies[rows])),
        levels_left_out=[] if target.scale else left_out,
    )


def _target(record: Mapping[str, Any]) -> Target:
    classes = tuple(tuple(side) for side in record["classes"])
    name, kind = record["name"], record["kind"]
    concept = name.removeprefix("concept:") if kind == "concept" else ""
    scale = name.removeprefix("scale:") if name.startswith("scale:") else ""
    return Target(name, record["title"], kind, classes, concept, scale)


# --- concepts
# ---------------------------------------------------------------------------


N_CONCEPT_DRAWS = 50
"""Draws of each concept's sigmoid."""

NO_CONCEPTS = np.empty((0, N_CONCEPT_DRAWS, 2))


def fit_sigmoids(
    values: NDArray[np.float64], present: NDArray[np.float64], movies: NDArray[np.str_]
) -> NDArray[np.float64]:
    """Calibrate each concept's held-out values [N, K] on its presence [N, K], as a model's scores are.

    Returns
    -------
    ndarray, shape [K, 50, 2]
        Draws of slope and intercept.
    """
    sigmoids = []
    for value, column in zip(values.T, present.T, strict=True):
        held_out = HeldOut(value, column.astype(np.int64), movies)
        posterior = SlopeLikelihood.of_scores(held_out).posterior()
        sigmoids.append(draw_sigmoids(held_out, posterior, None, n_draws=N_CONCEPT_DRAWS, seed=0))
    return np.array(sigmoids)


def concept_metrics(
    model: str,
    concepts: tuple[str, ...],
    values: NDArray[np.float64],
    present: NDArray[np.float64],
    movies: NDArray[np.str_],
) -> list[dict[str, object]]:
    """Measure how well cross-fitted values find concepts: average precision by movie, beside chance.

    Parameters
    ----------
    model : str
    concepts : tuple of str, length K
    values, present : ndarray, shape [N, K]
    movies : ndarray, shape [N]

    Returns
    -------
    list of dict
        A row for each concept, with the columns of the run's metrics that it has: mean over the movies that
        have the concept, its chance level, and the 95 % t interval of their difference, moved to the chance
        level: `movie_low` above `movie_chance` says that the concept is found better than by chance.
    """
    rows = []
    for concept, column, value in zip(concepts, present.astype(np.int64).T, values.T, strict=True):
        sides = [(column[own], value[own]) for own in rows_by_movie(movies) if np.ptp(column[own])]
        gain = t_interval([average_precision(*side) - random_ranking(side[:1]) for side in sides])
        chance = random_ranking([y for y, _ in sides])
        mean, low, high = chance + np.array([gain.mean, gain.low, gain.high])
        of_movies = float(mean), max(float(low), 0.0), min(float(high), 1.0), chance, len(sides)
        rows.append((model, f"concept:{concept}", "average_precision", *of_movies))
    named = ["model", "task", "metric", *(f"movie_{name}" for name in ("mean", "low", "high", "chance"))]
    return records(pd.DataFrame(rows, columns=[*named, "n_movies"]))
