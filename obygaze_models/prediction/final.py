"""Train the models of an evaluation on the clips of all movies, and save them."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.errors import ObygazeError
from obygaze_features.io import NO_LICENCE, file_names, local_folder, refuse_existing
from obygaze_features.manifest import Codebook
from obygaze_features.manifest.spans.names import suggestion
from obygaze_features.store.provenance import validate_licence
from obygaze_models.concepts.bank import ConceptBank
from obygaze_models.concepts.bottleneck import ConceptBottleneck
from obygaze_models.dataset.dataset import Dataset, Modality
from obygaze_models.errors import ConceptError, ModelError
from obygaze_models.evaluation.evaluate import seed_of
from obygaze_models.evaluation.intervals import FEWEST_MOVIES, are_equal, ends_of_equal_values, t_interval
from obygaze_models.evaluation.metrics import (
    ap_of_random_ranking,
    average_precision,
    min_average_precision,
    rows_by_movie,
)
from obygaze_models.evaluation.plan import varying
from obygaze_models.evaluation.predictions import records
from obygaze_models.evaluation.run import Run
from obygaze_models.models.fitted import Fitted, fit
from obygaze_models.models.fusion import FusedClassifier
from obygaze_models.models.grouped_selection import GroupedSelection
from obygaze_models.models.layers import LayerClassifier
from obygaze_models.models.names import name_in_zoo
from obygaze_models.models.registry import BUILTIN_MODELS, models_for
from obygaze_models.models.spec import ModelSpec
from obygaze_models.persistence.card import Card, CardTarget, Input, Population, features_digest
from obygaze_models.persistence.evidence import Evidence
from obygaze_models.persistence.model_file import to_state
from obygaze_models.prediction.calibration import Calibration, draw_sigmoids
from obygaze_models.prediction.evidence import as_left_out, collect_evidence
from obygaze_models.prediction.out_of_distribution import OutOfDistribution
from obygaze_models.prediction.saved_model import Model, save_model, vectors
from obygaze_models.prediction.training_films import TrainingFilms
from obygaze_models.protocol.held_out import HeldOut
from obygaze_models.protocol.slope import SlopeLikelihood
from obygaze_models.protocol.targets import NOT_ASKED, Kind, Target, concept_target, find_target

BANK = "bank"
"""Name of a saved concept bank without a classifier."""

MODEL_SUFFIX = ".model"
"""End of the name of a model file."""

N_MOVIES_TO_CHECK = 6
"""Number of movies on which `check_can_be_saved` fits models."""

N_CLIPS_TO_CHECK = 2
"""Number of clips of each class in each of these movies."""


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
        The data that the run evaluated.
    names : iterable of str
        Names of models of the run, or "bank" for the directions of all concepts, without a classifier.
    folder : Path or str
        Created if missing.
    models : mapping or sequence of ModelSpec, optional
        The models given to `evaluate`, where the run no longer holds them: it was read from a folder.
    licence : str
        SPDX expression of the saved models; NOASSERTION if none is stated.
    citation : str
        How to cite the models.

    Returns
    -------
    dict of str to Path
        Name of a model -> its file.

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
    # --- check that everything can be saved
    names = list(dict.fromkeys(names))  # each once
    folder = local_folder(folder)
    paths = {name: folder / f"{file_name}{MODEL_SUFFIX}" for name, file_name in file_names(names).items()}
    refuse_existing(*paths.values())
    # The bank was not evaluated in the run, so that it has no spec.
    specs = {name: _find_spec(name, run, models) for name in names if name != BANK}
    if BANK in names and _has_several_layers(run):
        raise ModelError(f"{BANK}: a bank of concepts reads one layer: evaluate that layer alone (--layer N)")
    if specs:
        _refuse_several_labels_of_a_clip(run)
    check_can_be_saved(specs.values(), data, _target_from_record(run.record["train"], data.codebook), licence)

    # --- train all models before the first one is written
    trained = {}
    for name in names:
        if name == BANK:
            trained[name] = train_bank(data, run, licence=licence, citation=citation)
        else:
            trained[name] = train_final(data, specs[name], run, licence=licence, citation=citation)
    for name, model in trained.items():
        save_model(model, paths[name])
    return paths


def _refuse_several_labels_of_a_clip(run: Run) -> None:
    """Raise if models of a run are trained on several labels of each clip: no file keeps such a model.

    The model in a file is trained anew, on all films, and there a clip has one label. So it would not be the
    model that the run tested.
    """
    experts = run.record.get("experts")
    has_several_labels = experts in {"soft", "noisy"}
    if has_several_labels:
        raise ModelError(
            f"models of --experts {experts} are trained on several labels of a clip, and none can be kept in "
            "a file: evaluate with --experts merged or each, and keep one of those"
        )


def _has_several_layers(run: Run) -> bool:
    """Tell whether models of a run read several layers of a network, by the settings in the run's record."""
    all_settings = run.record["models"].values()
    return any(settings.get("estimator") == LayerClassifier.__name__ for settings in all_settings)


def check_can_be_saved(
    specs: Iterable[ModelSpec], data: Dataset, target: Target, licence: str = NO_LICENCE
) -> None:
    """Raise if a model can't be saved to a file. The check is made before hours of evaluation.

    Models of other packages are fitted on a few clips and converted to a file's content. A model that can't
    be fitted on so few clips is not checked here, but only when it is saved.

    Raises
    ------
    ModelError
        A model can't be saved; the message names the first one.
    StoreError
        The licence is not valid.
    """
    validate_licence(licence)
    labels = target.of(data.labels)
    rows = _select_few_clips(data, labels)
    for spec in specs:
        _refuse_unsavable(spec, data, target)
        if name_in_zoo(spec.name) not in BUILTIN_MODELS:
            _refuse_unconvertible(spec, data, labels, rows)


def _refuse_unconvertible(
    spec: ModelSpec, data: Dataset, labels: NDArray[np.int64], rows: NDArray[np.intp]
) -> None:
    """Fit a model on the few clips `rows`, and raise if it can't be converted to a file's content.

    If so few clips are too few for the model, it is not known whether it can be. `labels` [N] are those of
    the task.
    """
    any_seed = 0
    try:
        with warnings.catch_warnings(action="ignore"):
            fitted = fit(
                spec,
                any_seed,
                data.read(spec.reads, stream=spec.streams)[rows],
                labels[rows],
                movies=data.movies[rows],
                present=data.present.loc[rows],
            )
    except ObygazeError:
        return
    # The result is not used: this raises if the model can't be converted.
    to_state(_estimator_to_save(fitted), spec.name)


def _select_few_clips(data: Dataset, labels: NDArray[np.int64]) -> NDArray[np.intp]:
    """Select some clips of each class in some movies, to check whether models can be fitted and saved.

    They are the first `N_CLIPS_TO_CHECK` (2) of each class in the first `N_MOVIES_TO_CHECK` (6) movies by
    name. `labels` [N] are those of the task; the result holds row numbers.
    """
    clips = pd.DataFrame({"movie": data.movies, "label": labels})
    labelled = clips[labels != NOT_ASKED]  # the others are not in the task
    first_movies = np.unique(labelled["movie"])[:N_MOVIES_TO_CHECK]
    in_first_movies = labelled[labelled["movie"].isin(first_movies)]
    few = in_first_movies.groupby(["movie", "label"]).head(N_CLIPS_TO_CHECK)
    return np.asarray(few.index.to_numpy(), np.intp)


def _refuse_unsavable(spec: ModelSpec, data: Dataset, target: Target) -> None:
    """Raise if a model is of a kind that can't be saved.

    These kinds are:

    - models that read no features: baselines, and models of the annotated concepts;
    - models of ordered levels;
    - of a dataset with several layers or modalities, those that `_refuse_several_inputs` refuses.
    """
    reads_annotated_concepts = spec.reads == "present"
    if not spec.looks_at_features or reads_annotated_concepts:
        raise ModelError(f"model {spec.name} looks at no feature: there is nothing to keep")
    if target.kind == "ordinal":
        raise ModelError(
            f"model {spec.name} of ordered levels is several binary models, which can't be kept in a "
            "file: evaluate a task of two classes, and keep that"
        )
    if data.modalities:
        _refuse_several_inputs(spec)


def _refuse_several_inputs(spec: ModelSpec) -> None:
    """Raise if a model of a dataset with several layers or modalities can't be saved.

    Two kinds can be saved: a model that chooses among the layers, as a model of the chosen one; and the
    linear model of all modalities.

    Raises
    ------
    ModelError
        The model reads only some of the layers or modalities, or reads several modalities and is not linear.
    """
    # Models that read only some layers or modalities have a colon in their names, as in linear:layer6.
    name = name_in_zoo(spec.name)
    reads_some_only = ":" in name
    if reads_some_only:
        raise ModelError(
            f"model {spec.name} is one of several: to keep it, evaluate its part alone (--layer N, "
            "STORE:BACKBONE)"
        )
    chooses_layer = isinstance(spec.make(0), LayerClassifier)
    is_linear = name == "linear"
    if not chooses_layer and not is_linear:
        raise ModelError(
            f"model {spec.name}: of models of several modalities linear alone can be kept in a file; "
            "evaluate one store to keep a model of one"
        )


def _estimator_to_save(fitted: Fitted) -> Any:
    """Return the part of a fitted model that is saved: all that is needed to score clips.

    What was needed only to choose parameters, such as scores of inner folds, is left out.
    """
    estimator = fitted.estimator
    if isinstance(estimator, FusedClassifier):
        # The linear weights of the modalities.
        return estimator.linear()
    if isinstance(estimator, GroupedSelection):
        # The estimator with the chosen parameters.
        return estimator.estimator_
    return estimator


class _TrainingClips(NamedTuple):
    """The clips that a model is trained on.

    Attributes
    ----------
    rows : ndarray of int, shape [N]
        Their rows in the dataset.
    X : ndarray, shape [N, ...]
        The features that the model reads.
    y : ndarray, shape [N]
        Labels; `NOT_ASKED` for clips that are not in the task, from which only concepts are learnt.
    movies : ndarray of str, shape [N]
    present : DataFrame, shape [N, K], or None
        Presence of each concept that is learnt; None for a model that learns none.
    """

    rows: NDArray[np.intp]
    X: Any
    y: NDArray[Any]
    movies: NDArray[np.str_]
    present: pd.DataFrame | None


def train_final(
    data: Dataset, spec: ModelSpec, run: Run, *, licence: str = NO_LICENCE, citation: str = ""
) -> Model:
    """Train a model on the clips of all films, in the same way as in every fold of the run.

    The model is calibrated on held-out scores. The films that it will score have clips of all levels, not
    only of those that the task compares. The scores are therefore those of the run's test with the most
    clips, if it has all clips of the task and more; otherwise they are the scores of the model's inner folds.

    Parameters
    ----------
    data : Dataset
        The data that the run evaluated.
    spec : ModelSpec
    run : Run
    licence, citation : str
        As `save_models` takes them.

    Raises
    ------
    ModelError
        The model cannot be saved.
    """
    # --- train
    target = _target_from_record(run.record["train"], data.codebook)
    labelled_data = _with_training_labels(data, spec, run)
    # What the fitted model reads is `data`, or the one layer of it that the model chose.
    data_read, clips, fitted = _fit_on_all_films(data, spec, run, target.of(labelled_data.labels))
    in_task = np.flatnonzero(clips.y != NOT_ASKED)  # some models also learn from clips that are not

    # --- calibrate on scores of films that were left out
    training_mean = fitted.mean_score(clips.X, in_task, clips.movies)
    assessment = _assess_on_held_out_scores(run, labelled_data, target, fitted, training_mean)
    calibration = assessment.calibration
    estimator = _estimator_to_save(fitted)
    concepts = _calibrate_concepts(spec, estimator, clips)

    # --- describe
    metrics_of_model = [row for row in records(run.metrics) if row["model"] == spec.name]
    card = _make_card(
        data_read,
        run,
        estimator,
        clips,
        model=spec.name,
        title=spec.title,
        threshold=fitted.threshold,
        target=CardTarget(**target.record(), concept=target.concept),
        concepts=tuple(estimator.concepts_) if isinstance(estimator, ConceptBottleneck) else (),
        calibration={} if calibration is None else calibration.to_json(),
        population=assessment.population,
        clip_s=data_read.median_s(clips.rows[in_task]),
        evidence=assessment.evidence,
        metrics=(*metrics_of_model, *concepts.metrics),
        licence=licence,
        citation=citation,
        labelled_by=labelled_data.labels.annotators,
        **_fields_of_frames(spec, data_read),
    )
    return Model(
        card=card,
        estimator=estimator,
        calibration=calibration,
        out_of_distribution=OutOfDistribution.fit(vectors(clips.X), clips.movies),
        concept_sigmoids=concepts.sigmoids,
        training=TrainingFilms.of_clips(data_read, clips.rows),
    )


class _FittedOnAllFilms(NamedTuple):
    """A model fitted on the clips of all films.

    Attributes
    ----------
    data : Dataset
        The data that the model reads.
    clips : _TrainingClips
    fitted : Fitted
    """

    data: Dataset
    clips: _TrainingClips
    fitted: Fitted


def _fit_on_all_films(
    data: Dataset, spec: ModelSpec, run: Run, labels: NDArray[np.int64]
) -> _FittedOnAllFilms:
    """Fit a model on the clips of all films with the labels [N] of the task, and the first seed of a run.

    Of a model that chooses a layer, the result holds the model of the chosen layer, and the data of that
    layer: only these can be saved.
    """
    clips = _select_training_clips(data, spec, labels)
    # In an evaluation the seed is derived from the film that a fold leaves out; here no film is left out.
    no_film = ""
    seed = seed_of(_first_seed(run), no_film)
    fitted = fit(spec, seed, clips.X, clips.y, movies=clips.movies, present=clips.present)
    if not isinstance(fitted.estimator, LayerClassifier):
        return _FittedOnAllFilms(data, clips, fitted)
    data_of_layer = data.parts[fitted.estimator.layer_]
    clips_of_layer = clips._replace(X=data_of_layer.read("pooled")[clips.rows])
    model_of_layer = Fitted(spec, fitted.estimator.model_, fitted.threshold)
    return _FittedOnAllFilms(data_of_layer, clips_of_layer, model_of_layer)


def _with_training_labels(data: Dataset, spec: ModelSpec, run: Run) -> Dataset:
    """Return a dataset with the labels that a model of a run was trained on in its folds.

    They are the clips' labels or, for a model named ``NAME@ANNOTATOR``, those that the annotator gave.
    """
    if run.record.get("experts") != "each":
        return data
    annotator = spec.name.removeprefix(f"{name_in_zoo(spec.name)}@")
    return replace(data, labels=data.labels.experts[annotator])


def _select_training_clips(data: Dataset, spec: ModelSpec, labels: NDArray[np.int64]) -> _TrainingClips:
    """Select the clips that a model is trained on, given the labels [N] of the task.

    They are the clips in the task or, for a model that also learns from unlabelled clips, all clips of the
    movies that have clips in the task.
    """
    is_selected = labels != NOT_ASKED  # the clips in the task
    if "unlabelled" in spec.requests():
        is_selected = np.isin(data.movies, np.unique(data.movies[is_selected]))
    rows = np.flatnonzero(is_selected)
    concepts = _concepts_to_learn(spec, data, rows)
    return _TrainingClips(
        rows=rows,
        X=data.read(spec.reads, stream=spec.streams)[rows],
        y=labels[rows],
        movies=data.movies[rows],
        present=data.present.loc[rows, concepts] if concepts else None,
    )


class _ConceptCalibration(NamedTuple):
    """How well a model finds its concepts.

    Attributes
    ----------
    sigmoids : ndarray, shape [K, B, 2]
        Draws of slope and intercept of each concept's sigmoid; K is 0 for a model that learns no concepts.
    metrics : list of dict
        A row for each concept (`concept_metrics`).
    """

    sigmoids: NDArray[np.float64]
    metrics: list[dict[str, object]]


def _calibrate_concepts(spec: ModelSpec, estimator: Any, clips: _TrainingClips) -> _ConceptCalibration:
    """Calibrate and measure a bottleneck's concepts by their held-out values in the training clips."""
    if clips.present is None or not isinstance(estimator, ConceptBottleneck):
        return _ConceptCalibration(NO_CONCEPTS, [])
    presence = clips.present.to_numpy()
    n_concepts = presence.shape[1]
    bank: Any = estimator.bank_
    # The first columns are the values of the concepts. A bank of concepts in time has further columns, which
    # say when in the clip a concept is seen.
    values = bank.held_out_values_[:, :n_concepts]
    return _ConceptCalibration(
        sigmoids=fit_sigmoids(values, presence, clips.movies),
        metrics=concept_metrics(spec.name, estimator.concepts_, values, presence, clips.movies),
    )


def _fields_of_frames(spec: ModelSpec, data: Dataset) -> dict[str, str]:
    """Return the fields of a model's card that say what the model reads, if that is frames or tokens.

    `features` is the array of the store, `pool` says that it is not pooled, and `reduced_by` is the rule by
    which tokens are reduced to fewer vectors. Empty for a model of a vector a clip: what the card says of
    the dataset's vectors is right for it.
    """
    if spec.reads == "pooled":
        return {}
    if data.reduction is None:
        return {"features": spec.reads, "pool": "none", "reduced_by": ""}
    return {"features": "tokens", "pool": "none", "reduced_by": data.reduction.rule}


def _concepts_to_learn(spec: ModelSpec, data: Dataset, rows: NDArray[np.intp]) -> list[str]:
    """List the concepts that a model can learn from the clips in some rows; none if it learns no concepts.

    Raises
    ------
    ConceptError
        The model learns concepts, and none is marked in enough movies.
    """
    learns_concepts = "present" in spec.requests()
    if not learns_concepts:
        return []
    concepts = varying(data, rows)
    if not concepts:
        raise ConceptError(f"model {spec.name}: no concept is marked in enough movies to be learnt")
    return concepts


def train_bank(data: Dataset, run: Run, *, licence: str = NO_LICENCE, citation: str = "") -> Model:
    """Train a concept bank on all annotated clips: a direction in the space of features for each concept.

    Parameters
    ----------
    data : Dataset
        The data that the run evaluated.
    run : Run
    licence, citation : str
        As `save_models` takes them.

    Raises
    ------
    ConceptError
        No concept is marked in enough movies.
    """
    rows = np.arange(len(data))
    concepts = varying(data, rows)
    if not concepts:
        raise ConceptError("no concept is marked in enough movies to be learnt")
    present = data.present[concepts]

    # A bank separates no classes: all clips count as negative on its card, which has no task, calibration or
    # metrics.
    labels = np.zeros(len(data))
    clips = _TrainingClips(rows=rows, X=data.X, y=labels, movies=data.movies, present=present)
    bank = ConceptBank("ridge", C=None, concepts=concepts)
    bank.fit(data.X, present.to_numpy(), groups=data.movies)
    # A concept value is a distance to the concept's hyperplane, standardised by the mean and deviation of the
    # distances of held-out clips. `held_out_values_` below are these clips' values.
    bank.set_moments(bank.held_out_distances_)
    card = _make_card(
        data,
        run,
        bank,
        clips,
        model=BANK,
        title="Concepts",
        threshold=0.0,
        target=CardTarget(name="concepts", title="Visual concepts", kind="concepts", classes=[], concept=""),
        concepts=tuple(concepts),
        calibration={},
        clip_s=data.median_s(rows),
        metrics=(),
        licence=licence,
        citation=citation,
    )
    return Model(
        card=card,
        estimator=bank,
        calibration=None,
        out_of_distribution=OutOfDistribution.fit(data.X, data.movies),
        concept_sigmoids=fit_sigmoids(bank.held_out_values_, present.to_numpy(), data.movies),
        training=TrainingFilms.of_clips(data, rows),
    )


def _make_card(
    data: Dataset,
    run: Run,
    estimator: Any,
    clips: _TrainingClips,
    *,
    licence: str,
    **fields: Any,
) -> Card:
    """Make the card of a model: what it is, what it was trained on, and how.

    Parameters
    ----------
    data : Dataset
    run : Run
    estimator : estimator
        As it is saved.
    clips : _TrainingClips
        The clips trained on.
    licence : str
    **fields
        The other fields of the card. Those that say which features the model reads, and who labelled the
        clips, are by default those of the dataset.
    """
    modalities = _describe_inputs(data)
    provenance = _provenance_of_features(data)
    record = run.record
    state = to_state(estimator, fields["model"])
    fields_of_dataset = {
        "backbone": data.backbone,
        "store": data.store,
        "features": data.features,
        "pool": data.pool,
        "labelled_by": data.labels.annotators,
    }
    return Card(
        kind=state.kind,
        estimator=type(estimator).__name__,
        parameters=dict(state.parameters),
        n_features=int(clips.X.shape[-1]),
        movies=tuple(np.unique(clips.movies).tolist()),
        n_clips=int((clips.y != NOT_ASKED).sum()),
        n_positives=int((clips.y == 1).sum()),
        provenance=provenance,
        provenance_sha256=features_digest(provenance),
        modalities=modalities,
        codebook=record["codebook"],
        protocol=record["protocol"],
        versions=record["versions"],
        seed=_first_seed(run),
        manifest_sha256=str(record.get("manifest_sha256", "")),
        label_policy=str(record.get("label_policy", "")),
        licence=validate_licence(licence),
        **(fields_of_dataset | fields),
    )


def _provenance_of_features(data: Dataset) -> dict[str, Any]:
    """Return the provenance of a dataset's features; of several modalities, that of the first.

    Raises
    ------
    ModelError
        The features are of no store. Without provenance nobody could extract features like them from other
        films.
    """
    if data.group is not None:
        return data.group.provenance
    if data.modalities:
        return dict(data.modalities[0].provenance)
    raise ModelError("these features are of no store, so that nobody could make others like them")


def _describe_inputs(data: Dataset) -> tuple[Input, ...]:
    """Describe the modalities of a dataset as inputs of a model's card; none for features of one store.

    Raises
    ------
    ModelError
        Two modalities have the same backbone and provenance.
    """
    inputs = tuple(_describe_input(modality) for modality in data.modalities)
    different_features = {(reads["backbone"], reads["provenance_sha256"]) for reads in inputs}
    if len(different_features) < len(inputs):
        raise ModelError("two modalities are of the same backbone, made alike: no file could tell them apart")
    return inputs


def _describe_input(modality: Modality) -> Input:
    """Describe a modality of a dataset as an input of a model's card."""
    return {
        "name": modality.name,
        "backbone": modality.backbone,
        "features": modality.features,
        "pool": modality.pool,
        "store": modality.store,
        "provenance": dict(modality.provenance),
        "provenance_sha256": features_digest(modality.provenance),
        "n_features": modality.stop - modality.start,
    }


def _find_spec(name: str, run: Run, models: Any) -> ModelSpec:
    """Find the spec of a model of a run, by its name.

    It is sought among `models`, which are specs, or a mapping of names to estimators, as `save_models` takes
    them; without these, among the specs that the run holds, and then in the zoo.

    Raises
    ------
    ModelError
        The model was not evaluated, or its spec can't be found.
    """
    if name not in run.record["models"]:
        raise ModelError(f"model {name!r} was not evaluated{suggestion(name, [*run.record['models'], BANK])}")

    # What is known of the model: its estimator, its spec, or only its name in the zoo.
    requested: Any
    if isinstance(models, Mapping):
        requested = {name: models[name]}
    elif models is not None:
        requested = [spec for spec in models if spec.name == name]
    else:
        for spec in run.specs:
            if spec.name == name:
                return spec
        requested = [name]

    kind: Kind = run.record["train"]["kind"]
    try:
        # `models_for` turns names, estimators and specs into specs, and adds those of baselines.
        specs = models_for(kind, requested)
    except ModelError as error:
        raise ModelError(
            f"{error}; if it is your own, give it again: save_models(..., models={{{name!r}: ESTIMATOR}})"
        ) from None
    first_of_name, *_ = [spec for spec in specs if spec.name == name]
    return first_of_name


def _first_seed(run: Run) -> int:
    """Return the first seed of a run."""
    return int(run.record["seeds"][0])


def _find_wider_test(run: Run, data: Dataset, labels: NDArray[np.int64]) -> Target | None:
    """Find the run's test with the most clips that has all clips of a task, with the same labels, and more.

    Parameters
    ----------
    run : Run
    data : Dataset
    labels : ndarray of int, shape [N]
        Labels of the task on which the model was trained; `NOT_ASKED` for clips that are not in the task.

    Returns
    -------
    Target or None
        None if there is no such test.
    """
    if "experts" in run.record:
        # These tests are of single annotators' labels, and of clips that another one judged too.
        return None
    # A calibration on more levels than the task's holds for more clips of a film.
    in_task = labels != NOT_ASKED
    widest = None
    max_clips = int(in_task.sum())
    for record in run.record["tests"]:
        test = _target_from_record(record, data.codebook)
        labels_of_test = test.of(data.labels)
        n_clips = int((labels_of_test != NOT_ASKED).sum())
        has_same_labels = (labels_of_test[in_task] == labels[in_task]).all()
        if n_clips > max_clips and has_same_labels:
            widest = test
            max_clips = n_clips
    return widest


class _HeldOutAssessment(NamedTuple):
    """How good a model is, judged by held-out scores.

    Attributes
    ----------
    calibration : Calibration or None
    population : Population or None
        The clips that the model was calibrated on.
    evidence : Evidence or None
        How well models like it did on films left out.
    """

    calibration: Calibration | None
    population: Population | None
    evidence: Evidence | None


def _assess_on_held_out_scores(
    run: Run, data: Dataset, target: Target, fitted: Fitted, training_mean: float
) -> _HeldOutAssessment:
    """Calibrate a model on held-out scores, and measure how well they separate positive and negative clips.

    The scores are those of a test of the run that has all clips of the task and more, if there is one, and
    otherwise those of the model's inner folds. A model without either gets no calibration. Scores to
    calibrate on may differ from those that are evidence of its skill (`_HeldOutScores`).

    Parameters
    ----------
    run : Run
    data : Dataset
    target : Target
        The target that the model learnt.
    fitted : Fitted
    training_mean : float
        The model's mean score of training clips. Scores of different models are compared relative to it.
    """
    model = fitted.spec.name
    wider_test = _find_wider_test(run, data, target.of(data.labels))
    if wider_test is None:
        source = _scores_of_inner_folds(run, data, target, fitted)
    else:
        source = _scores_of_test(run, model, target, wider_test)

    calibration = None
    population = None
    p_skilled = None  # the probability that the model has any skill
    if source.for_calibration is not None:
        calibration = Calibration.fit(source.for_calibration, training_mean, seed=_first_seed(run))
        population = _describe_population(data, source.target, source.clip_ids)
        p_skilled = calibration.p_skilled

    evidence = None
    if not source.for_evidence.empty:
        evidence = collect_evidence(source.for_evidence, p_skilled)
    return _HeldOutAssessment(calibration, population, evidence)


class _HeldOutScores(NamedTuple):
    """Scores of clips by models that were not trained on the clips' films.

    A model is calibrated on scores of one seed, whereas the evidence may be from several.

    Attributes
    ----------
    target : Target
        The target that the scored clips are labelled by.
    clip_ids : ndarray of str
        Ids of the clips of `for_calibration`.
    for_calibration : HeldOut or None
        The scores to calibrate on; None if the model has none.
    for_evidence : DataFrame
        The scores that `collect_evidence` reads; empty if there are none.
    """

    target: Target
    clip_ids: NDArray[np.str_]
    for_calibration: HeldOut | None
    for_evidence: pd.DataFrame


def _scores_of_test(run: Run, model: str, target: Target, test: Target) -> _HeldOutScores:
    """Return the scores that clips got in a test of a run, by models that were not trained on their films.

    The models were trained on one target (`target`), and may be tested on another (`test`). Scores of the
    run's first seed alone serve for calibration, as the model to be calibrated is trained with this seed.
    Those of all seeds serve as evidence of how good the model is.
    """
    predictions = _predictions_of_test(run, model, target, test)
    of_first_seed = predictions[predictions["seed"] == _first_seed(run)]
    return _HeldOutScores(
        target=test,
        clip_ids=of_first_seed["clip_id"].to_numpy(),
        for_calibration=_held_out_in_run(run, model, of_first_seed),
        for_evidence=predictions,
    )


def _scores_of_inner_folds(run: Run, data: Dataset, target: Target, fitted: Fitted) -> _HeldOutScores:
    """Return held-out scores of a fitted model for its calibration, and for the evidence of its skill.

    They are used if no test of the run has more clips than the model's own task. The model's parameters were
    chosen in inner folds of the training films, each of which was scored by models that were not trained on
    it. The model is calibrated on these scores.

    As evidence they are a little too good, since they chose the parameters. The run's own scores are not, if
    it tested the model on its task, and are then the evidence. Otherwise it is the scores of the inner folds.
    """
    # Inner folds have scores of the task's clips alone, in the order of the dataset.
    is_in_task = target.of(data.labels) != NOT_ASKED
    clip_ids = data.clip_ids[is_in_task]
    # Estimators without inner folds have no such attribute.
    inner_scores: HeldOut | None = getattr(fitted.estimator, "held_out_", None)

    scores_in_run = _predictions_of_test(run, fitted.spec.name, target, test=target)
    if scores_in_run.empty and inner_scores is not None:
        for_evidence = as_left_out(clip_ids, inner_scores.movies, inner_scores.y, inner_scores.scores)
    else:
        for_evidence = scores_in_run
    return _HeldOutScores(
        target=target, clip_ids=clip_ids, for_calibration=inner_scores, for_evidence=for_evidence
    )


def _held_out_in_run(run: Run, model: str, predictions: pd.DataFrame) -> HeldOut:
    """Convert a run's predictions of one model to `HeldOut` scores.

    The mean score of training clips differs from fold to fold, as each has a model of its own. It makes the
    scores of the folds' models comparable.
    """
    training_mean_of_fold = {}
    for fold in run.record["folds"]:
        # The record calls the models' mean scores of training clips "zeros".
        mean_scores = fold["zeros"]
        if model in mean_scores:
            training_mean_of_fold[fold["fold"]] = mean_scores[model]
    folds = predictions["fold"].to_numpy()
    return HeldOut(
        scores=predictions["score"].to_numpy(),
        y=predictions["label"].to_numpy(),
        movies=predictions["movie"].to_numpy(),
        folds=folds,
        training_means=np.array([training_mean_of_fold[fold] for fold in folds.tolist()]),
    )


def _predictions_of_test(run: Run, model: str, target: Target, test: Target) -> pd.DataFrame:
    """Select the run's predictions of one model, trained on one target and tested on another, for all seeds.

    The table is empty if the run did not test the model on that target.
    """
    table = run.predictions.table
    task = f"{target.name}>{test.name}"
    return table[(table["model"] == model) & (table["task"] == task)]


def _describe_population(data: Dataset, target: Target, clip_ids: Iterable[str]) -> Population:
    """Describe the clips that a model was calibrated on: how many of each level, and levels left out.

    `target` is what these clips are labelled by, and `clip_ids` are their ids.
    """
    is_calibrated_on = np.isin(data.clip_ids, np.array(list(clip_ids), dtype=str))
    rows = np.flatnonzero(is_calibrated_on)
    levels, numbers = np.unique(data.levels[rows], return_counts=True)
    n_clips_of_level = dict(zip(levels.tolist(), numbers.tolist(), strict=True))

    levels_left_out = []
    # A target on a scale is of ratings, not of levels, so that it leaves none out.
    if not target.scale:
        # The target of a concept may label only some clips of a level: such a level counts as left out.
        has_target_label = target.of(data.labels) != NOT_ASKED
        levels_with_unlabelled_clips = set(data.levels[~has_target_label].tolist())
        for level in data.codebook.labels:
            is_whole = level not in levels_with_unlabelled_clips
            is_present = level in n_clips_of_level
            if not (is_whole and is_present):
                levels_left_out.append(level)

    population = Population(
        task=target.name,
        title=target.title,
        clips=n_clips_of_level,
        n_movies=len(np.unique(data.movies[rows])),
        levels_left_out=levels_left_out,
    )
    # The clips' lengths are not known of every dataset.
    median_s = data.median_s(rows)
    if median_s is not None:
        population["clip_s"] = median_s
    return population


def _target_from_record(record: Mapping[str, Any], codebook: Codebook) -> Target:
    """Make the target that a run's model was trained for, from its description in the run's record.

    A task is made of the record alone, which lists the levels of its classes: also if today's codebook has no
    such task. A concept or a scale is looked up in the codebook by its name, as the record does not hold all
    that they are made of.
    """
    name = record["name"]
    kind = record["kind"]
    if kind == "concept":
        return _concept_target_of_name(name, codebook)
    is_scale = name.startswith("scale:")
    if is_scale:
        return find_target(name, codebook)
    classes = tuple(tuple(levels) for levels in record["classes"])
    return Target(name=name, title=record["title"], kind=kind, classes=classes)


def _concept_target_of_name(name: str, codebook: Codebook) -> Target:
    """Find the target of a concept by its name, such as concept:Body, or concept:Body-vs-EN+HN.

    The second has only clips of the levels EN and HN as clips without the concept.
    """
    concept, _, levels = name.removeprefix("concept:").rpartition("-vs-")
    has_levels = concept in [known.name for known in codebook.concepts]
    if has_levels:
        return concept_target(concept, codebook, levels.split("+"))
    return find_target(name, codebook)


# --- concepts
# ---------------------------------------------------------------------------


N_CONCEPT_DRAWS = 50
"""Draws of each concept's sigmoid."""

NO_CONCEPTS = np.empty((0, N_CONCEPT_DRAWS, 2))
"""Sigmoids of a model without concepts."""


def fit_sigmoids(
    values: NDArray[np.float64], present: NDArray[np.float64], movies: NDArray[np.str_]
) -> NDArray[np.float64]:
    """Fit for each concept the sigmoids that turn its values into probabilities, as for a model's scores.

    A few films tell only roughly how steep a concept's sigmoid is. So several are drawn from the posterior of
    its slope, and the mean of their probabilities is used.

    Parameters
    ----------
    values : ndarray, shape [N, K]
        Held-out values of the concepts: of each clip by a fit without its film.
    present : ndarray, shape [N, K]
        Presence of each concept.
    movies : ndarray, shape [N]

    Returns
    -------
    ndarray, shape [K, N_CONCEPT_DRAWS, 2]
        Slope and intercept of each sigmoid.
    """
    sigmoids_of_concepts = []
    for values_of_concept, presence in zip(values.T, present.T, strict=True):
        held_out = HeldOut(values_of_concept, presence.astype(np.int64), movies)
        posterior_of_slope = SlopeLikelihood.of_scores(held_out).posterior()
        # The mean value of training clips is not known: that of the held-out values stands for it.
        sigmoids = draw_sigmoids(
            held_out, posterior_of_slope, training_mean=None, n_draws=N_CONCEPT_DRAWS, seed=0
        )
        sigmoids_of_concepts.append(sigmoids)
    return np.array(sigmoids_of_concepts)


def concept_metrics(
    model: str,
    concepts: tuple[str, ...],
    values: NDArray[np.float64],
    present: NDArray[np.float64],
    movies: NDArray[np.str_],
) -> list[dict[str, object]]:
    """Measure how well cross-fitted values find concepts, by average precision within movies.

    Parameters
    ----------
    model : str
        Name of the model, for the rows.
    concepts : tuple of str, length K
    values, present : ndarray, shape [N, K]
        Values and presence of each concept.
    movies : ndarray, shape [N]

    Returns
    -------
    list of dict
        A row for each concept, with columns of the run's metrics:

        - `movie_mean`: the mean over movies that have clips with and clips without the concept;
        - `movie_chance`: its chance level;
        - `movie_low`, `movie_high`: the ends of its 95 % interval. If `movie_low` is above `movie_chance`,
          the concept is found better than by chance;
        - `n_movies`: the number of these movies.
    """
    rows = []
    rows_of_movies = rows_by_movie(movies)
    for concept, presence, scores in zip(concepts, present.astype(np.int64).T, values.T, strict=True):
        row: dict[str, object] = {
            "model": model,
            "task": f"concept:{concept}",
            "metric": "average_precision",
            **_precision_within_movies(presence, scores, rows_of_movies),
        }
        rows.append(row)
    return records(pd.DataFrame(rows))


def _precision_within_movies(
    labels: NDArray[np.int64], scores: NDArray[np.float64], rows_of_movies: Iterable[NDArray[np.intp]]
) -> dict[str, float]:
    """Compute the mean average precision over movies, with its chance level and 95 % interval.

    The chance level depends on the share of positive clips, and so differs from movie to movie. The interval
    is therefore a t interval of the gain over each movie's chance level, to which the mean chance level is
    added. If all movies have the same gain, as those of few clips may have by chance, it is that of
    `ends_of_equal_values`.

    Parameters
    ----------
    labels, scores : ndarray, shape [N]
    rows_of_movies : iterable of ndarray of int
        The clips of each movie. Movies whose clips have all the same label are left out.

    Returns
    -------
    dict of str to float
        The columns that `concept_metrics` explains.
    """
    labels_of_movies = []
    gains = []
    for rows in rows_of_movies:
        labels_of_movie = labels[rows]
        has_both_classes = labels_of_movie.min() < labels_of_movie.max()
        if not has_both_classes:
            continue
        labels_of_movies.append(labels_of_movie)
        chance_of_movie = ap_of_random_ranking([labels_of_movie])
        gains.append(average_precision(labels_of_movie, scores[rows]) - chance_of_movie)
    chance = ap_of_random_ranking(labels_of_movies)  # the mean over these movies
    gain = t_interval(gains, possible=(-chance, 1.0 - chance))
    if gain.n_movies >= FEWEST_MOVIES and are_equal(np.array(gains)):
        least, most = _min_and_max_gain(labels_of_movies)
        low, high = ends_of_equal_values(gain.mean, gain.n_movies, least, most)
        gain = replace(gain, low=low, high=high)
    return {
        "movie_mean": float(chance + gain.mean),
        "movie_low": float(chance + gain.low),
        "movie_high": float(chance + gain.high),
        "movie_chance": chance,
        "n_movies": len(labels_of_movies),
    }


def _min_and_max_gain(labels_of_movies: Sequence[NDArray[np.int64]]) -> tuple[float, float]:
    """Compute by how much the worst and the best ranking differ from chance in AP, as means over movies."""
    min_gains = []
    max_gains = []
    for labels in labels_of_movies:
        chance = ap_of_random_ranking([labels])
        min_gains.append(min_average_precision(len(labels), int(labels.sum())) - chance)
        max_gains.append(1.0 - chance)
    return float(np.mean(min_gains)), float(np.mean(max_gains))
