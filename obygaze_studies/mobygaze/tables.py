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
from obygaze_models.report import Block, Report, interval, number
from obygaze_studies.mobygaze.explained import explained_report
from obygaze_studies.unfinished import Study, load_or_compute

LABEL_RULES = ("merged", "each", "soft")
"""How the labels of the annotators are used by default, as `evaluate` takes it."""

SHOWN_METRICS = ("auc", "average_precision")
"""Metrics of the tables."""

BASELINES = ("length", "other_expert")
"""Baselines with one row per table: the length of a clip, and the labels of the other annotator."""


ALL_MODALITIES = ""
"""Name of the data that join the features of several modalities."""


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
    load = om.load_bags if bags else om.load_dataset
    modalities = {}
    for name, (store, backbone) in stores.items():
        modalities[name] = load(store, manifest, backbone=backbone)
    datasets = dict(modalities)
    if len(modalities) > 1:
        names = [store.name for store, _ in stores.values()]
        joined = join_modalities(names, list(modalities.values()), manifest).named(list(modalities))
        datasets = {ALL_MODALITIES: joined, **modalities}
    fingerprints = {name: store.fingerprint for name, (store, _) in stores.items()}
    rows: list[pd.DataFrame] = []
    for rule in rules:
        settings = {"task": task, "experts": rule, "seed": seed, "progress": progress}
        rows_of_rule: list[pd.DataFrame] = []
        record: dict[str, Any] = {}
        for modality, run in _run_models(datasets, models, results_folder, **settings):
            # These fields are the same in the runs of all modalities.
            record = {key: run.record[key] for key in ("codebook", "train", "clips", "versions")}
            rows_of_rule.append(_shown_metrics(run, rule, modality, shown=[*models, *BASELINES]))
        rows += rows_of_rule
        report = _report(rows, {**record, "modalities": fingerprints})
        on_report(_report(rows_of_rule, report.record), report)
    return report


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
    """Read the inputs, and return the study that makes the tables; settings as for `mobygaze_report`.

    Parameters
    ----------
    manifest
        File of the manifest.
    stores
        Stores as MODALITY=STORE or MODALITY=STORE:BACKBONE.
    explained_by
        Whether to make the tables of `explained_report` instead, of merged labels.
    """
    clips, store_of_modality = read_named(manifest, stores)
    fingerprints = {}
    for name, (store, backbone) in store_of_modality.items():
        fingerprints[name] = (store.fingerprint, backbone)
    if explained_by:
        explained: dict[str, Any] = {"task": task, "models": models, "bags": bags, "seed": seed}

        def make_explained(on_report: Callable[..., None], **options: Any) -> Report:
            """Make the report of explained segments."""
            return explained_report(clips, store_of_modality, **explained, **options, on_report=on_report)

        inputs = {"manifest": clips.digest(), "stores": fingerprints, "explained_by": True, **explained}
        return Study(inputs, make_explained)
    settings: dict[str, Any] = {"task": task, "models": models, "rules": rules, "bags": bags, "seed": seed}

    def make(on_report: Callable[..., None], **options: Any) -> Report:
        """Make the report; of several rules' tables, also call `on_report` with all of them at the end."""
        report = mobygaze_report(clips, store_of_modality, **settings, **options, on_report=on_report)
        if len(rules) > 1:
            on_report(report)
        return report

    return Study({"manifest": clips.digest(), "stores": fingerprints, **settings}, make)


def _report(rows: Sequence[pd.DataFrame], record: Mapping[str, Any]) -> Report:
    """Make the report from rows of metrics: a table for each task that is tested.

    Baselines have the same rows under every rule for labels; the first of these is shown.
    """
    data = pd.concat(rows, ignore_index=True).drop_duplicates(
        ["tested_on", "features", "labels", "model", "metric"]
    )
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
    vector_models = [name for name in models if name != "attention"]
    for name, data in datasets.items():
        is_all = name == ALL_MODALITIES
        model_groups = []
        if vector_models and (is_all or len(datasets) == 1):
            model_groups.append(vector_models)
        if not is_all and "attention" in models and _has_frames(data):
            model_groups.append(["attention"])
        for index, model_group in enumerate(model_groups):
            compute = partial(_evaluate_dataset, data, model_group, settings, fuse=is_all)
            yield (
                name,
                load_or_compute(results_folder, f"{settings['experts']}-{name or 'all'}-{index}", compute),
            )


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
    """Return the shown metrics of a run, with columns for features, labels and model.

    A run names a model MODEL, MODEL:FEATURES, MODEL@ANNOTATOR or MODEL:FEATURES@ANNOTATOR.

    Parameters
    ----------
    rule
        How the labels of the annotators are used.
    modality
        The modality of the run; "" for all.
    shown
        Names of the models to return.
    """
    table = run.metrics[run.metrics["metric"].isin(SHOWN_METRICS)].copy()
    parts = table["model"].str.extract(r"^(?P<model>[^:@]+)(?::(?P<features>[^@]+))?(?:@(?P<by>.+))?$")
    table = table.assign(
        model=parts["model"],
        features=parts["features"].fillna(modality or "all"),
        labels=rule if rule != "each" else ("of " + parts["by"].fillna("")),
        tested_on=table["task"].str.partition(">")[2],
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
        by_metric = metrics.set_index("metric").to_dict(orient="index")
        intervals = []
        for metric in SHOWN_METRICS:
            values = by_metric[metric]
            intervals.append(interval(values["movie_mean"], values["movie_low"], values["movie_high"]))
        cells.append((*map(str, keys), *intervals))
    chance = rows.drop_duplicates("metric").set_index("metric")["movie_chance"].to_dict()
    cells.append(("", "", "(chance)", *(number(chance[metric]) for metric in SHOWN_METRICS)))
    titles = (f"{METRICS['auc'].title} [95 %]", "AUC-PR [95 %]")
    n_films = int(rows["n_movies"].iloc[0])
    headers = ("features", "labels", "model", *titles)
    return Block(f"{test}: by film, mean of {n_films}", headers, tuple(cells))
