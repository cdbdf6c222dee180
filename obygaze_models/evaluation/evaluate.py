"""Evaluate models strictly: each movie is tested by models trained on the others."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.screen import Progress, shown_progress
from obygaze_models.dataset.dataset import Dataset, Reads
from obygaze_models.evaluation.alike_concepts import concepts_alike, concepts_of_label
from obygaze_models.evaluation.experts import (
    SHARES,
    DenoisedLabels,
    Experts,
    Variant,
    agree_by_chance,
    denoise_labels,
    uses_of_machines,
)
from obygaze_models.evaluation.metrics import Metric, metrics_of
from obygaze_models.evaluation.plan import Plan, make_plan
from obygaze_models.evaluation.run import (
    CURVES,
    SELECTION,
    FoldRecord,
    Run,
    SeededFold,
    curves_of,
    gather,
    record_of,
    rows_of,
    selection_of,
)
from obygaze_models.evaluation.summary import summarise
from obygaze_models.models.binary import Imbalance
from obygaze_models.models.evaluation_folds import FoldTraining, can_fit_folds_together, fit_folds
from obygaze_models.models.fitted import Fitted
from obygaze_models.models.names import OTHER_ANNOTATOR
from obygaze_models.models.ordinal import OrdinalModel
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.targets import NOT_ASKED, Target

LabelsByFold = Mapping[SeededFold, DenoisedLabels]
"""Fold -> the estimated labels of its training clips, where annotators' errors are modelled."""

_Input = tuple[Reads, bool]
"""What a model reads, and whether it is streamed from the store."""

OTHER_TITLE: Final = "the other annotators"
"""Title of the rows that hold each test's mean label of the other annotators."""


@checked
def evaluate(
    data: Dataset,
    models: str | Mapping[str, Any] | Sequence[str | ModelSpec] | None = None,
    task: str | Target = "",
    test: str | Target | Sequence[str | Target] | None = None,
    *,
    seed: int = 0,
    n_seeds: int = 1,
    seen: bool = False,
    folds: int | None = None,
    imbalance: Imbalance = "none",
    test_seen_scores: bool = False,
    experts: Experts | None = None,
    metrics: Sequence[Metric] = (),
    origin: Mapping[str, object] | None = None,
    progress: Progress | bool | None = None,
) -> Run:
    """Test models on the clips of each movie, after training them on the clips of the other movies.

    Each movie is a fold of its own. More than 500 movies are divided into 20 folds of whole movies, so that
    the work grows in proportion to the clips. The run's record states the protocol.

    Parameters
    ----------
    data : Dataset
    models : sequence of str, mapping of str to estimator, sequence of ModelSpec, or None
        Names of the zoo's models, of entry points, or ``[name=]module:factory``; or estimators, factories and
        specs by name. None for the zoo's own. The baselines are always added.
    task : str or Target
        Target to train on: a task of the codebook, ``concept:NAME``, ``levels`` or ``scale:NAME``; by default
        the codebook's only task.
    test : str or Target, or a sequence of them, optional
        Target to test on, or several, which are tested with the same models; by default that of training.
    seed : int
        Every random draw is seeded by this number and the name of the fold.
    n_seeds : int
        Number of consecutive seeds, from `seed` on. Models that draw random numbers are trained with each.
    seen : bool
        Whether to hold out blocks of scenes instead of whole movies (`obygaze_models.protocol.folds`).
    folds : int, optional
        Number of folds of whole movies, at least 3; not used if there are fewer movies.
    imbalance : {"none", "weights", "subsample"}
        How the zoo's own perceptron handles class imbalance. Only training clips are affected.
    test_seen_scores : bool
        Whether to test also the clips that annotators judged while they saw a model's score. Such judgements
        are biased towards the model, so that by default these clips are used for training only.
    experts : {"merged", "each", "soft", "noisy"}, optional
        How to train on the labels of several annotators (`plan_labels`); by default their merged labels.
    metrics : sequence of Metric, optional
        Metrics in addition to the built-in ones and those of installed packages (`obygaze.metrics`).
    origin : mapping, optional
        JSON values that say where the labels come from, such as the manifest's digest and the label policy.
        They are added to the run's record.
    progress : callable or bool, optional
        Called now and then with the number of models trained and the number of all models; or whether to show
        a progress bar. By default a bar is shown in notebooks only.

    Raises
    ------
    ProtocolError
        There are fewer than 3 movies, a fold lacks a class in training, a clip or movie is on both sides of a
        fold, or models of the first target can't be tested on the other.
    ModelError
        A model can't be found or trained.
    ConceptError
        A model that reads concepts was named, and no concept is marked in enough movies.

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
    plan = make_plan(
        data,
        models,
        task,
        test,
        seeds=range(seed, seed + n_seeds),
        seen=seen,
        n_folds=folds,
        imbalance=imbalance,
        test_seen_scores=test_seen_scores,
        experts=experts,
    )
    known_metrics = metrics_of(plan.target.n_classes, metrics)  # refused before models are trained

    # --- train and test
    denoised = _denoise_labels_by_fold(plan, data)
    results = _train_and_test(plan, data, denoised, progress)

    # --- assemble the run
    specs = [variant.spec for variant in plan.variants]
    titles = {spec.name: spec.title for spec in specs}
    rows_of_other_annotators = _rows_of_other_annotators(plan, data)
    if rows_of_other_annotators:
        titles[OTHER_ANNOTATOR] = OTHER_TITLE
    blocks = [*results.predictions, *rows_of_other_annotators]
    predictions = gather(blocks, list(titles), plan.target.n_classes)
    record = record_of(
        data,
        plan.target,
        plan.tests,
        specs=specs,
        seeds=plan.seeds,
        folds=list(results.records.values()),
        seen=seen,
        left_out=plan.models_left_out,
        is_in_sight=plan.is_in_sight,
        origin=origin,
    )
    _add_annotators(record, plan, experts, denoised)
    _add_alike_concepts(record, plan, data)
    machines = uses_of_machines(data.labels, experts)
    if machines:
        record["machines"] = machines
    curves = pd.concat(results.curves or [pd.DataFrame(columns=list(CURVES))], ignore_index=True)
    return Run(
        predictions=predictions,
        metrics=summarise(predictions, known_metrics),
        selection=pd.DataFrame(results.selection, columns=list(SELECTION)),
        curves=curves[list(CURVES)],
        record=record,
        titles=titles,
        own_metrics=tuple(metrics),
        specs=tuple(specs),
    )


@checked
def seed_of(seed: int, fold: int | str) -> int:
    """Derive a fold's seed from the run's seed, so that no two folds draw the same numbers.

    A fold is given by its number, or by the movie that it leaves out. The seed of a movie does not depend on
    the other movies.
    """
    numbers = (fold,) if isinstance(fold, int) else tuple(fold.encode("utf-8"))
    return int(np.random.SeedSequence((seed, *numbers)).generate_state(1)[0])


# --- training and testing
# ---------------------------------------------------------------------------


@dataclass
class _Results:
    """Results of training and testing models in folds.

    Attributes
    ----------
    predictions : list of dict
        Blocks of rows of predictions.
    selection : list of dict
        Rows of what inner folds tried.
    curves : list of DataFrame
        Curves of the models that stop early.
    records : dict of SeededFold to FoldRecord
    """

    predictions: list[dict[str, Any]] = field(default_factory=list)
    selection: list[dict[str, Any]] = field(default_factory=list)
    curves: list[pd.DataFrame] = field(default_factory=list)
    records: dict[SeededFold, FoldRecord] = field(default_factory=dict)


def _train_and_test(
    plan: Plan, data: Dataset, denoised: LabelsByFold, progress: Progress | bool | None
) -> _Results:
    """Train and test every model in all of its folds, and collect the results in the order of the folds.

    Models are trained in groups, a group in one fold before the next, as some of them share computations on a
    fold's clips (`_group_for_training`). So results come in another order than that of the folds.
    """
    records = {fold: _fold_record(plan, data, fold) for fold in plan.folds}
    n_trainings = sum(len(_folds_of(plan, variant.spec)) for variant in plan.variants)  # for the progress
    features = _read_features(plan.variants, data)
    results_of: dict[tuple[SeededFold, str], _Results] = {}  # by fold and name of the model
    with shown_progress(progress, "training", "model") as show:
        for group in _group_for_training(plan.variants):
            for trained in _train_side_by_side(plan, data, group, features, denoised):
                name = trained.spec.name
                record = records[trained.fold]
                X = features[_input_of(trained.spec)]

                record["thresholds"][name] = trained.model.threshold
                mean_score = _mean_training_score(trained, data, X)
                if mean_score is not None:  # it is None for baselines, and for models of ordered levels
                    # Scores by the models of different folds are compared after it is subtracted from each.
                    record["zeros"][name] = mean_score
                results_of[trained.fold, name] = _test_in_fold(plan, data, trained, X)
                show(len(results_of), n_trainings)
    return _in_order_of_folds(results_of, plan, records)


def _in_order_of_folds(
    results_of: Mapping[tuple[SeededFold, str], _Results], plan: Plan, records: dict[SeededFold, FoldRecord]
) -> _Results:
    """Join the results of all models, fold by fold, and in each fold in the order of the models.

    Models are trained in another order. `results_of` has the results by fold and name of the model; a model
    that draws no random numbers has results for the first seed only. `records` are those of the folds.
    """
    joined = _Results(records=records)
    for fold in plan.folds:
        for variant in plan.variants:
            results = results_of.get((fold, variant.spec.name))
            if results is not None:
                joined.predictions += results.predictions
                joined.selection += results.selection
                joined.curves += results.curves
    return joined


def _input_of(spec: ModelSpec) -> _Input:
    """Return the key by which models share an array: what a model reads, and whether it is streamed.

    Streamed arrays are read from the store clip by clip, as they may not fit in memory.
    """
    return spec.reads, spec.streams


def _read_features(variants: Sequence[Variant], data: Dataset) -> dict[_Input, Any]:
    """Read what the models read of all clips, each array once.

    All are read before the first training, so that missing features are found before hours of work.
    """
    features: dict[_Input, Any] = {}
    for variant in variants:
        spec = variant.spec
        if _input_of(spec) not in features:
            features[_input_of(spec)] = data.read(spec.reads, stream=spec.streams)
    return features


class _TrainedModel(NamedTuple):
    """A model that was trained on the training clips of a fold."""

    fold: SeededFold
    spec: ModelSpec
    model: Fitted | OrdinalModel


def _train_side_by_side(
    plan: Plan,
    data: Dataset,
    group: Sequence[Variant],
    features: Mapping[_Input, Any],
    denoised: LabelsByFold,
) -> Iterator[_TrainedModel]:
    """Train all models of a group in one fold before the next, and yield each once it is trained.

    Concept models share a decomposition of a fold's features, which is kept for a few folds only: it is used
    by all of them before the next fold needs another one. A model that draws no random numbers is trained in
    the folds of the first seed only.

    Parameters
    ----------
    plan : Plan
    data : Dataset
    group : sequence of Variant
    features : mapping
        What models read of all clips (`_read_features`).
    denoised : mapping
        Estimated labels of the folds' clips, where annotators' errors are modelled.
    """
    trainings = []
    for variant in group:
        spec = variant.spec
        folds = _folds_of(plan, spec)
        # A generator, which trains the model in one more of these folds each time that `next` is called.
        model_of_next_fold = _train_in_folds(
            plan, data, variant, folds=folds, X=features[_input_of(spec)], denoised=denoised
        )
        trainings.append((spec, folds, model_of_next_fold))
    for fold in plan.folds:
        for spec, folds, model_of_next_fold in trainings:
            if fold in folds:
                yield _TrainedModel(fold, spec, next(model_of_next_fold))


def _folds_of(plan: Plan, spec: ModelSpec) -> list[SeededFold]:
    """List the folds to train a model on: of all seeds if it draws random numbers, else of the first.

    A model that draws none would give the same result with every seed.
    """
    if spec.draws():
        return list(plan.folds)
    return [fold for fold in plan.folds if fold.seed == plan.seeds[0]]


def _group_for_training(variants: Sequence[Variant]) -> Iterator[list[Variant]]:
    """Group models that are trained side by side, fold by fold.

    A model that is fitted on all folds at once is a group by itself. All others are one group: concept models
    share a decomposition of a fold's features, and only those of a few folds are cached.
    """
    fold_by_fold = []
    for variant in variants:
        if can_fit_folds_together(variant.spec):
            yield [variant]
        else:
            fold_by_fold.append(variant)
    yield fold_by_fold


def _train_in_folds(
    plan: Plan,
    data: Dataset,
    variant: Variant,
    *,
    folds: Sequence[SeededFold],
    X: Any,
    denoised: LabelsByFold,
) -> Iterator[Fitted | OrdinalModel]:
    """Train a model on the training clips of each fold, and yield the trained models in that order.

    Parameters
    ----------
    plan : Plan
    data : Dataset
    variant : Variant
        The model and the labels that it is trained on.
    folds : sequence of SeededFold
    X : ndarray, shape [N, ...]
        What the model reads, of all clips.
    denoised : mapping
        Estimated labels of the folds' clips, where annotators' errors are modelled.
    """
    # Models that learn concepts request their presence in the training clips.
    learns_concepts = "present" in variant.spec.requests()
    is_ordinal = plan.target.kind == "ordinal"
    return fit_folds(
        variant.spec,
        X,
        [_training_of_fold(plan, variant, fold, denoised) for fold in folds],
        movies=data.movies,
        present=data.present if learns_concepts else None,
        n_levels=plan.target.n_classes if is_ordinal else None,
    )


def _training_of_fold(plan: Plan, variant: Variant, fold: SeededFold, denoised: LabelsByFold) -> FoldTraining:
    """List the clips and labels that a model is trained on in a fold.

    There may be several labelings of the clips, such as those of two annotators. All clips are then repeated
    with the labels of each. `denoised` holds, for each fold, labels that were estimated from those of
    annotators who err; it is empty unless the evaluation models their errors.
    """
    spec = variant.spec
    models_errors_of_annotators = bool(plan.label_plan.noisy)
    if models_errors_of_annotators and spec.looks_at_features:
        # A clip whose estimated label is uncertain is positive in some copies, and negative in others.
        labelings = denoised[fold].copies
    else:
        # Of the annotator whose name is the suffix of the model's, or of all if it has none.
        labelings = plan.label_plan.training_labels[variant.suffix]

    # Some models also learn from the clips of the training movies that are not in the task: these have the
    # label `NOT_ASKED`.
    learns_from_unlabelled = "unlabelled" in spec.requests()
    rows = fold.context_rows if learns_from_unlabelled else fold.split.train
    is_in_task = np.isin(rows, fold.split.train)
    y = [np.where(is_in_task, labels[rows], NOT_ASKED) for labels in labelings]
    return FoldTraining(
        name=fold.name,
        seed=seed_of(fold.seed, fold.name),
        rows=np.tile(rows, len(labelings)),
        y=np.concatenate(y),
        concepts=plan.concepts[fold.name],
    )


def _mean_training_score(trained: _TrainedModel, data: Dataset, X: Any) -> float | None:
    """Compute a model's mean score of the training clips of its fold.

    None for a baseline, which looks at no feature, and for a model of ordered levels. `X` [N, ...] is what
    the model reads, of all clips.
    """
    model = trained.model
    if isinstance(model, Fitted) and trained.spec.looks_at_features:
        return model.mean_score(X, trained.fold.split.train, data.movies)
    return None


def _test_in_fold(plan: Plan, data: Dataset, trained: _TrainedModel, X: Any) -> _Results:
    """Score the test clips of a model's fold, and collect predictions, selection and curves.

    Parameters
    ----------
    plan : Plan
    data : Dataset
    trained : _TrainedModel
    X : ndarray, shape [N, ...]
        What the model reads, of all clips.

    Returns
    -------
    _Results
        Predictions on every test of the plan, what inner folds of the training tried, and the curves of a
        model that stops early. There are no records of folds.
    """
    fold = trained.fold
    spec = trained.spec
    model = trained.model
    scores = model.scores(X[fold.split.test], data.movies[fold.split.test])
    model_columns: dict[str, Any] = {
        "model": spec.name,
        "train": plan.target.name,
        "threshold": model.threshold,
    }
    fold_columns = model_columns | {"fold": fold.split.fold, "movie": fold.name, "seed": fold.seed}
    return _Results(
        predictions=[rows_of(data, fold, test, scores, **model_columns) for test in plan.tests],
        selection=selection_of(model, fold_columns),
        curves=list(curves_of(model, fold_columns)),
    )


def _fold_record(plan: Plan, data: Dataset, fold: SeededFold) -> FoldRecord:
    """Make the record of a fold before training: its clips, and which concepts cannot be learnt in it.

    The threshold and the mean score of each model are added when the model is trained.
    """
    train = fold.split.train
    # If models are trained on each annotator's labels, a clip counts that is positive by any of them.
    is_positive = np.any([labels[train] == 1 for labels in plan.first_labels.values()], axis=0)
    n_tested = {}
    for test in plan.tests:
        is_tested = test.labels[fold.split.test] != NOT_ASKED  # the others are not in the tested task
        n_tested[test.target.name] = int(is_tested.sum())
    return {
        "fold": fold.split.fold,
        "movie": fold.name,
        "seed": fold.seed,
        "train_clips": len(train),
        "train_positives": int(is_positive.sum()),
        "tested": n_tested,
        # By name of a model: its threshold, and its mean score of training clips.
        "thresholds": {},
        "zeros": {},
        "concepts_left_out": sorted(set(data.labels.concepts) - set(plan.concepts[fold.name])),
    }


def _add_alike_concepts(record: dict[str, Any], plan: Plan, data: Dataset) -> None:
    """Add to a run's record which concepts are in the same clips as another concept, or as the label.

    Nothing in the labelled clips tells such concepts apart.
    """
    labels = np.stack(list(plan.first_labels.values()))  # a row for all, or for each annotator by itself
    is_labelled = (labels != NOT_ASKED).any(axis=0)
    present = data.labels.present[is_labelled]
    alike = concepts_alike(present, data.labels.concepts)
    if alike:
        record["concepts_alike"] = alike

    # A concept is compared with the label if there is one: not with those of several annotators, nor with
    # ordered levels, of which none is the positive one.
    has_one_label = len(labels) == 1 and plan.target.n_classes == 2
    if has_one_label:
        (only_labels,) = labels
        is_positive = only_labels[is_labelled] == 1
        of_label = concepts_of_label(present, data.labels.concepts, is_positive)
        if of_label:
            record["concepts_of_label"] = of_label


# --- several annotators
# ---------------------------------------------------------------------------


def _add_annotators(
    record: dict[str, Any], plan: Plan, experts: Experts | None, denoised: LabelsByFold
) -> None:
    """Add to a run's record what was done with the judgements of several annotators."""
    # Clips that are not tested, because an annotator saw a model's score.
    if plan.is_in_sight.any():
        record["clips"]["seen_score"] = int(plan.is_in_sight.sum())
    # How models were trained on the labels of several annotators.
    if plan.label_plan.by_annotator:
        record["experts"] = experts or "merged"
    if plan.tests_left_out:
        record["tests_left_out"] = dict(plan.tests_left_out)
    # How often each annotator is right, as estimated in each fold; and if their labels do not tell who is.
    if denoised:
        shares_of_folds = [labels.shares for labels in denoised.values()]
        record["noise"] = _mean_shares(plan.label_plan.noisy, shares_of_folds)
        calls_of_annotators = np.stack(list(plan.label_plan.noisy.values()))
        if agree_by_chance(calls_of_annotators):
            record["noise_untold"] = True
    # In tests of one annotator's labels, the mean label of the others is compared like a model's score.
    if any(test.mean_of_others is not None for test in plan.tests):
        record["models"][OTHER_ANNOTATOR] = {"title": OTHER_TITLE}


def _denoise_labels_by_fold(plan: Plan, data: Dataset) -> LabelsByFold:
    """Estimate the labels of each fold's training clips from those of annotators who err.

    The result is empty unless the evaluation models annotators' errors.
    """
    if not plan.label_plan.noisy:
        return {}
    return {fold: denoise_labels(plan.label_plan, data, fold.split.train) for fold in plan.folds}


def _rows_of_other_annotators(plan: Plan, data: Dataset) -> list[dict[str, Any]]:
    """Make rows of predictions for the other annotators, whose mean label takes the place of a score.

    They show how well people do by the metrics that models are measured with. A test on one annotator's
    labels has such a mean; any other test has none, and gets no rows.
    """
    # A clip counts as called positive if at least half of the other annotators call it so.
    model_columns = {"model": OTHER_ANNOTATOR, "train": plan.target.name, "threshold": 0.5}
    rows = []
    for fold in plan.folds:
        for test in plan.tests:
            if test.mean_of_others is not None:
                mean_labels = test.mean_of_others[fold.split.test]
                rows.append(rows_of(data, fold, test, mean_labels, **model_columns))
    return rows


def _mean_shares(
    annotators: Iterable[str], shares_of_folds: Sequence[NDArray[np.float64]]
) -> dict[str, dict[str, float]]:
    """Average over folds the estimated shares of clips that each annotator labels correctly.

    Parameters
    ----------
    annotators : iterable of str
        Names of J annotators.
    shares_of_folds : sequence of ndarray, shape [J, 4]
        For each fold, the shares of positive and of negative clips, each estimated in two ways (`SHARES`).

    Returns
    -------
    dict
        Annotator -> name of the share -> mean over folds.
    """
    means = np.stack(shares_of_folds, axis=-1).mean(axis=-1)
    by_annotator = {}
    for annotator, shares in zip(annotators, means.tolist(), strict=True):
        by_annotator[annotator] = dict(zip(SHARES, shares, strict=True))
    return by_annotator
