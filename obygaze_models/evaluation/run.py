"""Hold the results of an evaluation: predictions, metrics, selection, curves, record; and their folder."""

import dataclasses
import pickle
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

import numpy as np
import pandas as pd
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict
from numpy.typing import NDArray

from obygaze_features.arguments import checked, made_by
from obygaze_features.io import NO_LICENCE
from obygaze_features.schema import Count, Flag, Hex64, Number, SomeText, Text, Versions, Whole, check
from obygaze_features.text import counted
from obygaze_models.dataset.dataset import Dataset, Modality
from obygaze_models.errors import RunError
from obygaze_models.evaluation.experts import Tested
from obygaze_models.evaluation.metrics import Metric, prevalence
from obygaze_models.evaluation.predictions import COLUMNS, Predictions
from obygaze_models.models.fitted import Fitted
from obygaze_models.models.ordinal import OrdinalModel
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.folds import Split
from obygaze_models.protocol.targets import NOT_ASKED, CodebookRecord, Target, TargetRecord, codebook_record

# Descriptions of the protocol in a run's record: one fold per movie, folds of several movies ({} is their
# number), and blocks of scenes.
LEAVE_ONE_MOVIE_OUT = "strict: leave one movie out; all that is chosen is chosen by inner folds of movies"
FOLDS_OF_MOVIES = "strict: {} folds of whole movies; all that is chosen is chosen by inner folds of movies"
SEEN_MOVIES = (
    "SEEN MOVIES: blocks of scenes with a gap, each tested by models that know the rest of its movie; all "
    "that is chosen is chosen by inner folds of movies"
)

SELECTION = ("model", "train", "fold", "movie", "seed", "candidate", "inner_loss", "chosen")
"""Columns of `Run.selection`."""

CURVES = (
    *("model", "train", "fold", "movie", "seed", "inner_fold", "epoch", "train_loss", "validation_loss"),
    *("start_loss_low", "start_loss_high"),
)
"""Columns of `Run.curves`; the last two are the lowest and highest training loss of a model's starts."""


@made_by("evaluate(DATA, MODELS)")
@dataclass(frozen=True, eq=False)
class Run:
    """The results of an evaluation.

    Attributes
    ----------
    predictions : Predictions
        The source of every metric.
    metrics : DataFrame
        The table that `summarise` returns.
    selection : DataFrame
        A row for each candidate that inner folds tried (`SELECTION`).
    curves : DataFrame
        A row for each epoch of the models that stop early (`CURVES`).
    record : dict
        JSON values: targets, protocol, data, folds, models, versions.
    titles : dict of str to str
        Title of each model.
    own_metrics : sequence of Metric
        The metrics that were given to `evaluate`.
    specs : sequence of ModelSpec
        The models as they were evaluated, of which `save` trains some on all films. A run that was pickled
        holds those that can be pickled, and a run that is read from a folder holds none.

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
    own_metrics: Sequence[Metric] = ()
    specs: Sequence[ModelSpec] = field(default=(), repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out models that cannot be pickled: functions of a notebook, or lambdas."""
        specs = tuple(spec for spec in self.specs if _is_picklable(spec))
        return vars(self) | {"specs": specs}

    @checked
    def save(
        self,
        data: Dataset,
        names: Iterable[str],
        folder: Path | str,
        *,
        licence: str = NO_LICENCE,
        citation: str = "",
    ) -> dict[str, Path]:
        """Train models of this run on all films, and save each as ``FOLDER/NAME.model``.

        This is `obygaze_models.save_models`, whose page has more on the parameters and errors.

        Examples
        --------
        >>> import obygaze_features as of
        >>> import obygaze_models as om
        >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
        >>> run = om.evaluate(data, {"mine": om.linear_probe()}, task="hn_s", test="enhn_s")
        >>> [file.name for file in run.save(data, ["mine"], "kept").values()]
        ['mine.model']
        """
        from obygaze_models.prediction.final import save_models  # noqa: PLC0415 - which stands on this module

        return save_models(self, data, names, folder, licence=licence, citation=citation)

    def __repr__(self) -> str:
        """Count the folds, and name the models."""
        models = ", ".join(self.metrics["model"].unique())
        return f"Run({counted(len(self.record['folds']), 'fold')}, {models})"

    def _repr_html_(self) -> str:
        """Write the mean of each metric over movies as an HTML table; `run_report` lays out the rest."""
        # The mean over movies of within_movie_auc is that of auc, so that one of them is enough.
        rows = self.metrics[self.metrics["metric"] != "within_movie_auc"]
        metrics = rows["metric"].unique().tolist()
        wide = rows.pivot_table(
            index=["task", "model"], columns="metric", values="movie_mean", sort=False, dropna=False
        )
        wide = wide.reindex(columns=metrics).rename_axis(columns=None).reset_index()
        table: str = wide.to_html(index=False, float_format="{:.3f}".format, na_rep="undefined")
        return f"<div><strong>By movie, means</strong>{table}</div>"


def _is_picklable(spec: ModelSpec) -> bool:
    """Tell whether a model can be pickled, and so sent to another process.

    It cannot if it is made by a function of a notebook or by a lambda.
    """
    try:
        pickle.dumps(spec)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


@dataclass(frozen=True, eq=False, slots=True)
class SeededFold:
    """One fold under one seed.

    Attributes
    ----------
    name : str
        The movie, group of movies or block of scenes that is held out.
    split : Split
        The rows of training and test clips.
    context_rows : ndarray of int
        Rows from which concepts are learnt: the training clips and, unless folds are blocks of scenes, the
        other annotated clips of the training movies, which are not in the task.
    seed : int
        Seed of what is drawn in the fold.
    """

    name: str
    split: Split
    context_rows: NDArray[np.intp]
    seed: int


# --- tables
# ---------------------------------------------------------------------------


def rows_of(
    data: Dataset, fold: SeededFold, test: Tested, scores: NDArray[np.float64], **model_columns: Any
) -> dict[str, Any]:
    """Make the rows of predictions of one model in one fold and test, as a dict of columns.

    Parameters
    ----------
    data : Dataset
    fold : SeededFold
    test : Tested
        Clips that are not in the test get no row.
    scores : ndarray, shape [test clips of the fold]
    **model_columns
        Columns with the same value in every row: ``model``, ``train`` and ``threshold``.
    """
    rows = fold.split.test
    in_test = test.labels[rows] != NOT_ASKED  # `NOT_ASKED` marks the clips that are not in the test
    # A column is one value, which holds for all rows, or an array with a value for each row.
    return {
        **model_columns,
        "task": f"{model_columns['train']}>{test.target.name}",
        "fold": fold.split.fold,
        "seed": fold.seed,
        "clip_id": data.clip_ids[rows][in_test],
        "movie": data.movies[rows][in_test],
        "label": test.labels[rows][in_test],
        "score": scores[in_test],
        "store": data.store,
    }


def gather(blocks: Sequence[Mapping[str, Any]], models: Sequence[str], n_classes: int) -> Predictions:
    """Combine blocks of rows (`rows_of`) into one table of predictions, sorted by model, task, seed and fold.

    Parameters
    ----------
    blocks : sequence of mapping
        Blocks in the order of the folds.
    models : sequence of str
        Names of all models, in the order of the table.
    n_classes : int
    """
    # --- join the blocks; folds without a clip of the test have no rows
    blocks_with_rows = [block for block in blocks if len(block["clip_id"])]
    columns = {}
    for name in COLUMNS:
        # A column of one value is repeated for each row of its block.
        parts = [np.broadcast_to(block[name], len(block["clip_id"])) for block in blocks_with_rows]
        columns[name] = np.concatenate(parts)
    table = pd.DataFrame(columns)

    # --- sort them
    # Blocks are in the order of the folds, and the sort is stable, so that folds stay in order.
    rank_of = {name: rank for rank, name in enumerate(models)}
    model_ranks = table["model"].map(rank_of)
    task_ranks, _ = pd.factorize(table["task"])  # by first appearance
    # `lexsort` sorts by its last key first: by model, then by task, then by seed.
    order = np.lexsort((table["seed"], task_ranks, model_ranks))
    return Predictions(table.iloc[order].reset_index(drop=True), n_classes)


def selection_of(model: Fitted | OrdinalModel, fold_columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the candidates that inner folds tried for a fitted model, as rows of `Run.selection`.

    `fold_columns` holds the columns that name the model, its task and the fold.
    """
    rows = []
    for prefix, estimator in _estimators_of(model):
        for candidate in getattr(estimator, "candidates_", ()):
            row = {
                **fold_columns,
                "candidate": prefix + candidate.name,
                "inner_loss": candidate.inner_loss,
                "chosen": int(candidate.chosen),
            }
            rows.append(row)
    return rows


def curves_of(model: Fitted | OrdinalModel, fold_columns: Mapping[str, Any]) -> Iterator[pd.DataFrame]:
    """Yield the loss curves of a model's inner trainings, as rows of `Run.curves`, one per epoch.

    A network may try several random starts for a few epochs each, and be trained from the best one. The start
    losses are the lowest and the highest training loss of these starts after their trial epochs; they are NaN
    if there was one start.

    `fold_columns` holds the columns that name the model, its task and the fold.
    """
    for _, estimator in _estimators_of(model):
        for inner_fold, curve in enumerate(getattr(estimator, "curves_", ())):
            has_several_starts = len(curve.start_losses) > 0
            start_losses = curve.start_losses if has_several_starts else np.array([np.nan])
            yield pd.DataFrame(
                {
                    **fold_columns,
                    "inner_fold": inner_fold,
                    "epoch": np.arange(1, len(curve.train_loss) + 1),
                    "train_loss": curve.train_loss,
                    "validation_loss": curve.validation_loss,
                    "start_loss_low": start_losses.min(),
                    "start_loss_high": start_losses.max(),
                }
            )


def _estimators_of(model: Fitted | OrdinalModel) -> list[tuple[str, Any]]:
    """List a model's estimators, each with a prefix for the names of its candidates.

    An ordinal model has an estimator for each step, with the prefixes "step 1: ", "step 2: ", ...; another
    model has one, with the prefix "".
    """
    if isinstance(model, Fitted):
        return [("", model.estimator)]
    return [(f"step {number + 1}: ", step.estimator) for number, step in enumerate(model.steps)]


# --- record
# ---------------------------------------------------------------------------

Seed = Annotated[int, Meta(description="a whole number")]
Texts = Annotated[dict[str, str], Meta(description="an object of texts")]


class _StoreCounts(TypedDict, total=False):
    """Numbers of clips, if the features come from a store."""

    manifest: Whole
    unlabelled: Whole
    in_no_task: Whole
    with_features: Whole
    partial: Whole
    in_store_only: Whole
    seen_score: Whole


class ClipCounts(_StoreCounts):
    """Numbers of clips."""

    other_levels: Whole
    tested: Whole


class Excluded(TypedDict):
    """A clip that has labels and no features, and why."""

    clip_id: Text
    reason: Text


class FoldRecord(TypedDict):
    """A fold under one seed: what was trained and tested, and each model's threshold.

    `zeros` holds each model's mean score of training clips, the zero of its held-out scores.
    """

    fold: Whole
    movie: Text
    seed: Seed
    train_clips: Whole
    train_positives: Whole
    tested: Annotated[dict[str, Whole], Meta(description="an object of numbers of clips")]
    thresholds: Annotated[dict[str, Number | None], Meta(description="an object of numbers")]
    zeros: Annotated[dict[str, Number], Meta(description="an object of numbers")]
    concepts_left_out: list[Text]


class RunRecord(Struct, kw_only=True):
    """The record of a run; other fields may be added and are kept."""

    protocol: SomeText
    codebook: CodebookRecord
    train: TargetRecord
    tests: list[TargetRecord]
    n_classes: Annotated[int, Meta(ge=2, description="a whole number above 1")]
    seeds: list[Seed]
    store: Text
    backbone: Text
    untrained: Flag
    features: Text
    pool: Text
    n_features: Count
    clips: ClipCounts
    movies_tested: Whole
    prevalence: Annotated[dict[str, Number | None], Meta(description="an object of shares, or null")]
    excluded: list[Excluded]
    models_left_out: Texts
    tests_left_out: Texts | UnsetType = UNSET
    """Tests on annotators' labels that lack a class, and which one."""
    machines: Texts | UnsetType = UNSET
    """Machines that gave labels, and what was done with these."""
    concepts_alike: list[list[Text]] | UnsetType = UNSET
    """Groups of concepts that are marked in the same clips, or one exactly where the other is not."""
    concepts_of_label: list[Text] | UnsetType = UNSET
    """Concepts that are marked in the positive clips and in no other, or the other way round."""
    folds: list[FoldRecord]
    models: Annotated[dict[str, dict[str, str]], Meta(description="an object of the models' settings")]
    versions: Versions
    reduced_by: SomeText | UnsetType = UNSET
    """How the tokens were reduced that models of frames and tokens read."""
    manifest_sha256: Hex64 | UnsetType = UNSET
    label_policy: Text | UnsetType = UNSET
    variables_sha256: Hex64 | UnsetType = UNSET
    """Of the table that the baseline `staging` reads."""
    answers_sha256: Hex64 | UnsetType = UNSET
    """Of what a machine answered, which the model `answers` reads."""


class RunDocument(Struct, kw_only=True):
    """The JSON document run.json of a run's folder."""

    record: RunRecord
    metrics: Annotated[list[dict[str, Any]], Meta(description="a list of rows of metrics")]


def check_document(document: object, location: str) -> Mapping[str, Any]:
    """Check the JSON document of a run and return its record.

    Raises
    ------
    RunError
        Naming the fields that are wrong.
    """
    if not isinstance(document, Mapping):
        raise RunError(f"{location}: expected the JSON object of a run; found {document!r:.80}")
    check(document, (RunDocument,), location, error=RunError, page="docs/evaluation.md")
    record: Mapping[str, Any] = document["record"]
    return record


def record_of(
    data: Dataset,
    target: Target,
    tests: Sequence[Tested],
    *,
    specs: Sequence[ModelSpec],
    seeds: Sequence[int],
    folds: list[FoldRecord],
    seen: bool,
    left_out: Mapping[str, str],
    is_in_sight: NDArray[np.bool_],
    origin: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Make the record of an evaluation, as JSON values.

    Parameters
    ----------
    data : Dataset
    target : Target
        The target that models learn.
    tests : sequence of Tested
    specs : sequence of ModelSpec
    seeds : sequence of int
    folds : list of FoldRecord
    seen : bool
        Whether folds are blocks of scenes of movies that are also trained on, instead of whole movies.
    left_out : mapping of str to str
        Name of each model that was not trained -> the reason.
    is_in_sight : ndarray of bool, shape [N]
        Marks the clips of a test's levels that are not tested in it, as they were judged in sight of a score.
    origin : mapping, optional
        Further values of the record, on where the labels come from.
    """
    # `NOT_ASKED` is the label of clips that are not in a task.
    is_tested = np.any([test.labels != NOT_ASKED for test in tests], axis=0)
    is_trained = target.of(data.labels) != NOT_ASKED
    # Clips of other levels than those that models are trained and tested on. Clips that a test leaves out, as
    # they were judged in sight of a score, are of its levels.
    is_of_other_level = ~is_tested & ~is_trained & ~is_in_sight
    # Some clips of other levels have no features either: `data.excluded` has all clips without features, and
    # `excluded` those that would have been trained on or tested.
    excluded = _excluded(data, target, tests)
    n_of_other_levels_excluded = len(data.excluded) - len(excluded)
    clips = {
        **data.counts,
        "other_levels": int(is_of_other_level.sum()) + n_of_other_levels_excluded,
        "tested": int(is_tested.sum()),
    }
    n_movies_tested = len(np.unique(data.movies[is_tested]))
    n_folds = len({fold["fold"] for fold in folds})
    record = RunRecord(
        protocol=_protocol(n_folds, n_movies_tested, seen=seen),
        codebook=codebook_record(data.codebook),
        train=target.record(),
        tests=[test.target.record() for test in tests],
        n_classes=target.n_classes,
        seeds=list(seeds),
        store=data.store,
        backbone=data.backbone,
        untrained=data.untrained,
        features=data.features,
        pool=data.pool,
        n_features=int(data.X.shape[1]),
        reduced_by=UNSET if data.reduction is None else data.reduction.rule,
        clips=cast("ClipCounts", clips),
        movies_tested=n_movies_tested,
        prevalence={test.target.name: _prevalence(test, target.n_classes) for test in tests},
        excluded=excluded,
        models_left_out=dict(left_out),
        folds=folds,
        models={spec.name: spec.settings() for spec in specs},
        versions=software(),
    )
    # Fields that are not set are left out of the JSON values; those of the origin come first.
    set_fields = {name: value for name, value in asdict(record).items() if value is not UNSET}
    values = {**(origin or {}), **set_fields}
    if data.modalities:
        values["modalities"] = [_modality_record(modality) for modality in data.modalities]
    return values


def _protocol(n_folds: int, n_movies_tested: int, *, seen: bool) -> str:
    """Describe, for a run's record, how clips were divided into folds.

    The texts say that single movies were left out, or folds of several movies, or, with `seen`, blocks of
    scenes of movies that were trained on. There are fewer folds than tested movies if folds have several.
    """
    if seen:
        return SEEN_MOVIES
    if n_folds < n_movies_tested:
        return FOLDS_OF_MOVIES.format(n_folds)
    return LEAVE_ONE_MOVIE_OUT


def _prevalence(test: Tested, n_classes: int) -> float | None:
    """Compute the share of positive clips of a test; None for ordered levels."""
    if n_classes != 2:
        return None
    is_tested = test.labels != NOT_ASKED  # the others are not in the tested task
    return prevalence(test.labels[is_tested])


def _excluded(data: Dataset, target: Target, tests: Sequence[Tested]) -> list[Excluded]:
    """List the clips that would be trained on or tested but have no features, each with the reason.

    Clips of levels that are in neither the target of training nor one of the tests are not missed, and not
    listed.
    """
    levels = set(target.levels)
    for test in tests:
        levels.update(test.target.levels)
    # The target of a further scale does not depend on the level: clips of any level may be in it.
    is_of_any_level = bool(target.scale)
    excluded = [clip for clip in data.excluded if is_of_any_level or clip.level in levels]
    return [{"clip_id": clip.clip_id, "reason": clip.reason} for clip in excluded]


def _modality_record(modality: Modality) -> dict[str, Any]:
    """Return the fields of a modality as JSON values, without the provenance of its features."""
    names = [field.name for field in dataclasses.fields(Modality) if field.name != "provenance"]
    return {name: getattr(modality, name) for name in names}


def software() -> dict[str, str]:
    """Return the versions of Python and of the packages that results depend on."""
    versions = {"python": platform.python_version()}
    for name in ("obygaze", "numpy", "scikit-learn"):
        versions[name] = version(name)
    return versions
