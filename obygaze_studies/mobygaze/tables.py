"""Make MObyGaze's tables: models of each modality and of all, on the labels of each annotator or of both.

The code of the corpus's papers on several modalities is not public, so their numbers are not shown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import obygaze_models as om
from obygaze_features.arguments import checked
from obygaze_features.manifest import Manifest
from obygaze_features.screen import Progress
from obygaze_features.store import Store
from obygaze_models.commands import read_named
from obygaze_models.dataset import Dataset, join_modalities
from obygaze_models.evaluation import METRICS, Run
from obygaze_models.report import Block, Report
from obygaze_studies.mobygaze.explained import (
    chance_cells,
    explained_report,
    interval_cells,
    tested_tasks,
)
from obygaze_studies.unfinished import Study, load_or_compute

LABEL_RULES = ("merged", "each", "soft")
"""How the labels of the annotators are used by default, as `evaluate` takes it."""

SHOWN_METRICS = ("auc", "average_precision")
"""Metrics of the tables."""

BASELINES = ("length", "other_expert")
"""Baselines with one row per table: the length of a clip, and the labels of the other annotator."""


ALL_MODALITIES = ""
"""Name of the data that join the features of several modalities."""

RECORDED_OF_RUNS = ("codebook", "train", "clips", "versions")
"""Fields of a run's record that the report keeps: those that are equal in the runs of all modalities."""

MODEL_NAME = r"^(?P<model>[^:@]+)(?::(?P<features>[^@]+))?(?:@(?P<annotator>.+))?$"
"""Regular expression of a model's name in a run.

The name is MODEL, MODEL:FEATURES, MODEL@ANNOTATOR or MODEL:FEATURES@ANNOTATOR.
"""


@checked
def mobygaze_report(
    manifest: Manifest,
    stores: Mapping[str, tuple[Store, str | None]],
    *,
    task: str = "",
    models: Sequence[str] = ("linear", "mlp"),
    rules: Sequence[str] = LABEL_RULES,
    bags: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
    results_folder: Path | None = None,
    on_report: Callable[[Report, Report], None] = lambda *_: None,
) -> Report:
    """Evaluate models of every modality, and of all together, on the labels of every annotator.

    Parameters
    ----------
    manifest : Manifest
        Segments or windows, with a row for each annotator of a clip.
    stores : mapping of str to (Store, str or None)
        Modality -> its store and backbone. The store is of the same clips or, with `bags`, of windows of the
        films.
    task : str
        As `evaluate` takes it; "" for the codebook's only task.
    models : sequence of str
        Names of models of vectors, and ``attention``, which is trained on the frames of each modality that
        has frames.
    rules : sequence of str
        How the labels of the annotators are used, as `evaluate` takes it (its `experts`).
    bags : bool
        Whether clips are bags of the stores' windows (`load_bags`); attention is then over windows.
    seed : int
        Random seed of the models.
    progress : callable, optional
        Shows how many models are trained.
    results_folder : path, optional
        Folder in which runs are kept, and from which those of an earlier call with the same arguments are
        read.
    on_report : callable, optional
        Called when the tables of a rule are made, with a report of these and one of all tables so far.

    Raises
    ------
    DatasetError, ModelError, ProtocolError
        As `evaluate` and `fused` do.
    """
    datasets = _load_datasets(manifest, stores, bags=bags)
    fingerprints = {name: store.fingerprint for name, (store, _) in stores.items()}
    tables: list[pd.DataFrame] = []  # of all rules so far
    for rule in rules:
        settings = {"task": task, "experts": rule, "seed": seed, "progress": progress}
        tables_of_rule: list[pd.DataFrame] = []
        record: dict[str, Any] = {}
        for modality, run in _run_models(datasets, models, results_folder, **settings):
            # These fields are equal in all runs: those of the last one are kept.
            record = {key: run.record[key] for key in RECORDED_OF_RUNS}
            tables_of_rule.append(_shown_metrics(run, rule, modality, shown=[*models, *BASELINES]))
        tables += tables_of_rule
        record["modalities"] = fingerprints
        report_so_far = _report(tables, record)
        report_of_rule = _report(tables_of_rule, record)
        on_report(report_of_rule, report_so_far)
    return report_so_far  # after the last rule: of all of them


def _load_datasets(
    manifest: Manifest, stores: Mapping[str, tuple[Store, str | None]], *, bags: bool
) -> dict[str, Dataset]:
    """Load the features of each modality: modality -> its features.

    If there are several modalities, the first entry has the features of all of them joined, and the empty
    text (`ALL_MODALITIES`) is its key.

    Parameters
    ----------
    stores
        Modality -> its store and backbone.
    bags
        Whether clips are bags of the stores' windows.
    """
    load = om.load_bags if bags else om.load_dataset
    features_of = {}
    for modality, (store, backbone) in stores.items():
        features_of[modality] = load(store, manifest, backbone=backbone)
    if len(features_of) < 2:
        return features_of
    store_names = [store.name for store, _ in stores.values()]  # for messages
    joined = join_modalities(store_names, list(features_of.values()), manifest)
    joined_with_names = joined.named(list(features_of))  # its modalities have these names
    return {ALL_MODALITIES: joined_with_names, **features_of}


def prepare_study(
    manifest: Path,
    stores: Sequence[str],
    *,
    task: str,
    models: Sequence[str],
    rules: Sequence[str],
    bags: bool,
    explained_by: bool = False,
    seed: int,
) -> Study:
    """Read the inputs, and return a study: a function that makes the tables, and what they depend on.

    The function is called later, as it takes long. What the tables depend on tells whether results of an
    interrupted call can be used.

    Parameters
    ----------
    manifest
        File of the manifest.
    stores
        Stores as MODALITY=STORE or MODALITY=STORE:BACKBONE.
    task, models, rules, bags, seed
        As for `mobygaze_report`.
    explained_by
        Whether to make other tables in their place, which compare labels by what explains them
        (`explained_report`). They are of merged labels, and `rules` is not used.
    """
    loaded_manifest, store_of_modality = read_named(manifest, stores)
    fingerprints = {}
    for name, (store, backbone) in store_of_modality.items():
        fingerprints[name] = (store.fingerprint, backbone)
    inputs = {"manifest": loaded_manifest.digest(), "stores": fingerprints}
    if explained_by:
        settings_of_explained: dict[str, Any] = {"task": task, "models": models, "bags": bags, "seed": seed}
        make_explained = partial(
            explained_report, loaded_manifest, store_of_modality, **settings_of_explained
        )
        return Study({**inputs, "explained_by": True, **settings_of_explained}, make_explained)
    settings: dict[str, Any] = {"task": task, "models": models, "rules": rules, "bags": bags, "seed": seed}

    def make(on_report: Callable[..., None], **options: Any) -> Report:
        """Make the report, and call `on_report` with each rule's tables as soon as they are made.

        With several rules it is called once more at the end, with the tables of all of them as one report.
        """
        report = mobygaze_report(
            loaded_manifest, store_of_modality, **settings, **options, on_report=on_report
        )
        if len(rules) > 1:
            on_report(report)
        return report

    return Study({**inputs, **settings}, make)


def _report(tables: Sequence[pd.DataFrame], record: Mapping[str, Any]) -> Report:
    """Make the report from tables of metrics, as of `_shown_metrics`: a table for each task that is tested.

    `record` says how the metrics were made.
    """
    data = pd.concat(tables, ignore_index=True)
    # Baselines have the same rows under every rule for labels; the first of these is shown.
    data = data.drop_duplicates(["tested_on", "features", "labels", "model", "metric"])
    return Report(
        name="mobygaze",
        title=f"MObyGaze: {record['train']['title']}",
        notes=(
            "Every film is tested by models trained on the others: means over films, with 95 % intervals.",
            "all: late fusion of the modalities; -MODALITY: all but it.",
            "A clip that lacks a modality is scored by a model of the others.",
            "Numbers of the corpus's papers on several modalities are not public.",
        ),
        blocks=tuple(
            _metric_block(str(test), table) for test, table in data.groupby("tested_on", sort=False)
        ),
        data=data,
        record=record,
    )


def _run_models(
    datasets: Mapping[str, Dataset], models: Sequence[str], results_folder: Path | None, **settings: Any
) -> Iterator[tuple[str, Run]]:
    """Evaluate the models, and yield each run with the name of its modality; "" for all modalities together.

    Models of vectors are evaluated on all modalities together, in one run that also has their results on each
    modality alone. Attention is evaluated on each modality that has frames, in a run of its own.

    Parameters
    ----------
    datasets
        Name of a modality -> its features; "" -> all modalities, if there are several.
    models
        Names of the models.
    results_folder
        Folder in which the runs are written, and from which those of an earlier call are read; or None.
    settings
        Options of `evaluate`.
    """
    for modality, data in datasets.items():
        joins_modalities = modality == ALL_MODALITIES
        models_of_runs = _models_of_runs(
            models,
            with_vector_models=joins_modalities or len(datasets) == 1,
            with_attention=not joins_modalities and _has_frames(data),
        )
        for index, models_of_run in enumerate(models_of_runs):
            # Such as `merge-sound-0`: the rule for labels, the modality, and which of its runs.
            label_rule = settings["experts"]
            file_name = f"{label_rule}-{modality or 'all'}-{index}"
            compute = partial(_evaluate_dataset, data, models_of_run, settings, fuse=joins_modalities)
            yield modality, load_or_compute(results_folder, file_name, compute)


def _models_of_runs(
    models: Sequence[str], *, with_vector_models: bool, with_attention: bool
) -> list[list[str]]:
    """Return the models of each run on a dataset: one run of all models of vectors, then one of attention.

    Parameters
    ----------
    models
        Names of the models.
    with_vector_models, with_attention
        Whether models of vectors, and attention, are evaluated on the dataset.
    """
    runs = []
    vector_models = [name for name in models if name != "attention"]
    if with_vector_models and vector_models:
        runs.append(vector_models)
    if with_attention and "attention" in models:
        runs.append(["attention"])
    return runs


def _evaluate_dataset(
    data: Dataset, models: Sequence[str], settings: Mapping[str, Any], *, fuse: bool
) -> Run:
    """Evaluate models on a dataset; with `fuse`, by late fusion of its modalities."""
    if fuse:
        return om.evaluate(data, om.fused(models, data, "late"), **settings)
    return om.evaluate(data, models, **settings)


def _has_frames(data: Dataset) -> bool:
    """Return whether attention can be trained on a dataset: it has frames, or bags of windows."""
    return data.bags is not None or (data.group is not None and "frames" in data.group.arrays)


def _shown_metrics(run: Run, rule: str, modality: str, shown: Sequence[str]) -> pd.DataFrame:
    """Return the shown metrics of a run, with columns for features, labels and model, read from its names.

    In a run a model may be named with its features and with the annotator whose labels it has learnt, such as
    `linear:sound@AB`.

    Parameters
    ----------
    run
        The run, with a row for each model, task and metric.
    rule
        How the labels of the annotators are used.
    modality
        The modality of the run; "" for all.
    shown
        Names of the models to return.
    """
    table = run.metrics[run.metrics["metric"].isin(SHOWN_METRICS)].copy()
    name_parts = table["model"].str.extract(MODEL_NAME)  # columns model, features and annotator
    labels: str | pd.Series[str] = rule  # the same text in all rows
    if rule == "each":  # each annotator's labels have a model of their own
        labels = "of " + name_parts["annotator"].fillna("")
    features_of_run = modality or "all"  # of models whose name has none
    table = table.assign(
        model=name_parts["model"],
        features=name_parts["features"].fillna(features_of_run),
        labels=labels,
        tested_on=tested_tasks(table["task"]),
    )
    # Baselines use neither features nor labels.
    table.loc[table["model"].isin(BASELINES), ["features", "labels"]] = ""
    columns = ["tested_on", "features", "labels", "model", "metric", "movie_mean", "movie_low", "movie_high"]
    return table.loc[table["model"].isin(shown), [*columns, "movie_chance", "n_movies"]]


def _metric_block(test: str, rows: pd.DataFrame) -> Block:
    """Make the table of a tested task: its models, then the baselines, then the chance level."""
    cells: list[tuple[str, ...]] = []
    rows_with_kind = rows.assign(is_baseline=rows["model"].isin(BASELINES))
    baselines_last = rows_with_kind.sort_values("is_baseline", kind="stable")
    for keys, metrics in baselines_last.groupby(["features", "labels", "model"], sort=False):
        features, labels, model = map(str, keys)
        cells.append((features, labels, model, *interval_cells(metrics, SHOWN_METRICS)))
    cells.append(("", "", "(chance)", *chance_cells(rows, SHOWN_METRICS)))
    titles = (f"{METRICS['auc'].title} [95 %]", "AUC-PR [95 %]")
    n_films = int(rows["n_movies"].iloc[0])
    headers = ("features", "labels", "model", *titles)
    return Block(f"{test}: by film, mean of {n_films}", headers, tuple(cells))
