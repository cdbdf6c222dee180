"""Train and test each modality on the segments whose label its own concepts explain (arXiv 2504.11232).

An expert who calls a segment sure also marks the concepts that explain it, each of which is conveyed in one
way: seen, heard, said or told. A segment that is objectifying by what is said teaches a model of pictures
nothing. The concept modality specific set of a modality has the positive segments with a concept that its
features perceive, and all negative ones; models of these sets are joined by the largest of their scores.
The paper takes the maximum of probabilities; here scores count from the threshold of their model, which needs
no calibration.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import obygaze_models as om
from obygaze_features.arguments import checked
from obygaze_features.manifest import Codebook, Manifest, perceived
from obygaze_features.screen import Progress
from obygaze_features.store import Store
from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import METRICS, Predictions, Run, summarise
from obygaze_models.protocol import Labels, Target
from obygaze_models.report import Block, Report, interval, number
from obygaze_studies.errors import TaskError
from obygaze_studies.unfinished import load_or_compute

Mask = np.ndarray[Any, np.dtype[np.bool_]]
"""Array that marks clips, [N]."""

SHOWN_METRICS = ("average_precision", "auc")
"""Metrics of the tables; the paper gives the first."""

UNEXPLAINED_SUFFIX = " otherwise"
"""End of the level of a positive segment that no concept of the modality explains."""

TRAINED_ON = {"explained": "what it explains", "all": "all segments"}
"""Segments that models are trained on -> how tables say so."""

LARGEST = "max"
"""The largest of the scores of all modalities."""


class ExplainedModality(NamedTuple):
    """The segments of one modality.

    Attributes
    ----------
    name
        As the user calls it.
    concepts
        The concepts that its features perceive.
    data
        Its features. Positive segments without one of the concepts have a level of their own.
    explained_target, full_target
        The task on the segments whose label the concepts explain, and on all segments.
    n_positive, n_explained
        Number of positive segments, and of those with one of the concepts.
    """

    name: str
    concepts: tuple[str, ...]
    data: Dataset
    explained_target: Target
    full_target: Target
    n_positive: int
    n_explained: int


@checked
def explained_report(
    manifest: Manifest,
    stores: Mapping[str, tuple[Store, str | None]],
    *,
    task: str = "en_s",
    models: Sequence[str] = ("linear",),
    bags: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
    results_folder: Path | None = None,
    on_report: Callable[[Report, Report], None] = lambda *_: None,
) -> Report:
    """Evaluate modalities, and the maximum of their scores, on the segments that each explains and on all.

    A modality explains the label of a positive segment if it perceives one of the segment's concepts. Each
    modality is trained twice: on the segments that it explains with the negative ones, and on all segments.
    Labels of several annotators are merged. Every film is tested by models of the others.

    Parameters
    ----------
    manifest : Manifest
        Segments or windows, with concepts.
    stores : mapping of str to (Store, str or None)
        Modality -> its store and backbone, whose provenance says what it perceives.
    task : str
        A task of two classes of levels.
    models : sequence of str
        Names of models of vectors, or ``attention``.
    bags : bool
        Whether clips are bags of the stores' windows.
    seed : int
        Random seed of the models.
    progress, results_folder, on_report
        As `mobygaze_report` takes them.

    Raises
    ------
    TaskError
        The task is of concepts or ordered levels, or a modality perceives no concept of the codebook.
    """
    target = om.find_target(task, manifest.codebook)
    if target.kind != "levels" or target.n_classes != 2:
        raise TaskError(f"--explained-by: {task} is no task of two classes of levels, such as en_s")
    modalities = [
        explained_modality(name, store, backbone, manifest, target, bags=bags)
        for name, (store, backbone) in stores.items()
    ]

    # Train each modality twice: "explained" and "all" (`TRAINED_ON`).
    tables: list[pd.DataFrame] = []
    # What models were trained on -> the predictions of each modality's models.
    predictions_of_training: dict[str, list[pd.DataFrame]] = {training: [] for training in TRAINED_ON}
    for modality in modalities:
        for training in TRAINED_ON:
            compute = partial(
                _evaluate_modality, modality, training, models=models, seed=seed, progress=progress
            )
            run: Run = load_or_compute(results_folder, f"{training}-{modality.name}", compute)
            tables.append(_shown_metrics(run.metrics, modality.name, training, models))
            predictions_of_training[training].append(run.predictions.table)

    # The largest of the scores that the modalities give a segment, as a model of its own
    if len(modalities) > 1:
        for training, predictions_of_modalities in predictions_of_training.items():
            joined = largest_scores(predictions_of_modalities, target.name, models)
            tables.append(_shown_metrics(summarise(joined), LARGEST, training, models))
    fingerprints = {name: store.fingerprint for name, (store, _) in stores.items()}
    record = {"train": target.record(), "modalities": fingerprints}
    report = _report(pd.concat(tables, ignore_index=True), modalities, target, record)
    # `on_report` takes a report and the longer one that it is part of. Here is one report, which is both.
    on_report(report, report)
    return report


def explained_modality(
    name: str, store: Store, backbone: str | None, manifest: Manifest, target: Target, *, bags: bool
) -> ExplainedModality:
    """Load the features of a modality, and mark the positive segments whose label it explains.

    It explains the label of a segment if it perceives one of the segment's concepts: sound explains a segment
    with the concept Voice. The level of other positive segments is changed, from S to "S otherwise". So two
    targets can be made of the same data: `explained_target` has S as its positive level, and leaves other
    segments out; `full_target` has both.

    Parameters
    ----------
    name
        The modality, as the user calls it.
    store, backbone
        The store of its features, and the backbone in it; None for the store's only one.
    manifest
        The segments with their labels.
    target
        The task, of negative and positive levels.
    bags
        Whether clips are bags of the store's windows.

    Raises
    ------
    TaskError
        Its features perceive none of the codebook's concepts, or no positive segment has one.
    """
    # The features, and the concepts that they can perceive
    load = om.load_bags if bags else om.load_dataset
    data = load(store, manifest, backbone=backbone)
    concepts = concepts_of(manifest.codebook, perceived(store[data.backbone].provenance))
    if not concepts:
        raise TaskError(
            f"{name}: nothing says that {data.backbone} of {store.name} perceives what conveys a concept of "
            f'the codebook: import it with --declared \'{{"perceives": ["heard"]}}\', or what it perceives'
        )
    # Which positive segments have such a concept
    negative_levels, positive_levels = target.classes
    labels = replace(data.labels, experts={})  # the merged labels alone, without those of each annotator
    is_positive = np.isin(labels.levels, positive_levels)
    is_explained = is_positive & explained_by(labels, concepts)
    if not is_explained.any():
        raise TaskError(f"{name}: no positive clip has a concept that it perceives: {', '.join(concepts)}")
    levels = _with_unexplained_levels(labels.levels, is_positive & ~is_explained)

    # The two targets
    explained_target = replace(
        target, name=f"explained by {name}", title=f"{target.title}, explained by {name}"
    )
    unexplained_levels = [level + UNEXPLAINED_SUFFIX for level in positive_levels]
    all_positive_levels = (*positive_levels, *unexplained_levels)
    full_target = replace(target, classes=(negative_levels, all_positive_levels))
    return ExplainedModality(
        name=name,
        concepts=concepts,
        data=replace(data, labels=replace(labels, levels=levels)),
        explained_target=explained_target,
        full_target=full_target,
        n_positive=int(is_positive.sum()),
        n_explained=int(is_explained.sum()),
    )


def _with_unexplained_levels(levels: np.ndarray[Any, Any], is_unexplained: Mask) -> np.ndarray[Any, Any]:
    """Return the levels of clips [N], with `UNEXPLAINED_SUFFIX` added to those of the marked clips [N]."""
    # Of objects, because an array of strings would cut longer ones.
    marked = levels.astype(object)
    marked[is_unexplained] = marked[is_unexplained] + UNEXPLAINED_SUFFIX
    return marked.astype(str)


def concepts_of(codebook: Codebook, perceives: Sequence[str]) -> tuple[str, ...]:
    """List the concepts that are conveyed in a way that features perceive.

    Examples
    --------
    >>> from obygaze_features.manifest import builtin_codebook
    >>> from obygaze_studies.mobygaze.explained import concepts_of
    >>> concepts_of(builtin_codebook("mobygaze"), ["heard"])
    ('Voice', 'Soundtrack')
    """
    return tuple(concept.name for concept in codebook.concepts if concept.modality in perceives)


def explained_by(labels: Labels, concepts: Sequence[str]) -> Mask:
    """Mark the clips [N] that have one of some concepts."""
    marked = np.zeros(len(labels.clip_ids), dtype=np.bool_)
    for concept in concepts:
        marked |= labels.has(concept)
    return marked


def _evaluate_modality(
    modality: ExplainedModality, training: str, models: Sequence[str], seed: int, progress: Progress | None
) -> Run:
    """Train models on the explained segments or on all segments of a modality, and test them on both.

    `training` says on which: "explained" or "all".
    """
    targets = {"explained": modality.explained_target, "all": modality.full_target}
    return om.evaluate(
        modality.data,
        models,
        task=targets[training],
        test=list(targets.values()),
        seed=seed,
        progress=progress,
    )


def largest_scores(tables: Sequence[pd.DataFrame], task: str, models: Sequence[str]) -> Predictions:
    """Join the predictions of several modalities by the largest score of each clip.

    A model's threshold is taken away from its scores, so that in every modality a clip is called positive
    from 0 on. A clip that lacks a modality has the largest score of the others.

    Parameters
    ----------
    tables
        Predictions of each modality, as `Predictions.table`.
    task
        Name of the test whose rows are taken.
    models
        Names of the models whose rows are taken.
    """
    rows = pd.concat(tables, ignore_index=True)
    # The tasks of predictions are named TRAINED>TESTED.
    rows = rows[rows["task"].str.endswith(f">{task}") & rows["model"].isin(models)]
    rows = rows.assign(
        score=rows["score"] - rows["threshold"],
        task=f"{LARGEST}>{task}",
        threshold=0.0,
        store="",  # the scores are of the stores of several modalities
    )
    key = ["model", "task", "seed", "clip_id"]
    # Of the rows of a clip, which differ in their score alone, that with the largest is kept.
    largest = rows.groupby(key, sort=False)["score"].idxmax()
    return Predictions(rows.loc[largest].reset_index(drop=True))


def _shown_metrics(
    metrics: pd.DataFrame, features: str, training: str, models: Sequence[str]
) -> pd.DataFrame:
    """Return the shown metrics of the models, with columns for features, training and test."""
    table = metrics[metrics["metric"].isin(SHOWN_METRICS) & metrics["model"].isin(models)]
    table = table.assign(features=features, trained_on=training, tested_on=tested_tasks(table["task"]))
    columns = ["tested_on", "features", "trained_on", "model", "metric"]
    return table[[*columns, "movie_mean", "movie_low", "movie_high", "movie_chance", "n_movies"]]


def tested_tasks(tasks: "pd.Series[str]") -> "pd.Series[str]":
    """Return the name of the tested task in each name TRAINED>TESTED of a run."""
    return tasks.str.partition(">")[2]


def interval_cells(rows: pd.DataFrame, metrics: Sequence[str]) -> list[str]:
    """Write the mean over films of each metric with its 95 % interval, as cells of a table.

    `rows` has a row for each metric, with `movie_mean`, `movie_low` and `movie_high`.
    """
    row_of_metric = rows.set_index("metric").to_dict(orient="index")
    cells = []
    for metric in metrics:
        row = row_of_metric[metric]
        cells.append(interval(row["movie_mean"], row["movie_low"], row["movie_high"]))
    return cells


def chance_cells(rows: pd.DataFrame, metrics: Sequence[str]) -> list[str]:
    """Write the chance level of each metric, which is the same in all rows of a metric."""
    first_rows = rows.drop_duplicates("metric").set_index("metric")
    chance_of_metric = first_rows["movie_chance"].to_dict()
    return [number(chance_of_metric[metric]) for metric in metrics]


def _report(
    data: pd.DataFrame, modalities: Sequence[ExplainedModality], target: Target, record: Mapping[str, Any]
) -> Report:
    """Make the report: a table for the segments of each modality, and one for all segments.

    Parameters
    ----------
    data
        The metrics of all tests, one a row, as `_shown_metrics` returns them.
    modalities
        The modalities, for the numbers of their segments.
    target
        The task on all segments.
    record
        How the numbers were made.
    """
    tests = [modality.explained_target.name for modality in modalities]
    tests.append(target.name)
    counts = []
    for modality in modalities:
        concepts = ", ".join(modality.concepts)
        share = f"{modality.n_explained} of {modality.n_positive} positive clips"
        counts.append(f"{modality.name}: {share} ({concepts})")
    return Report(
        name="explained_by",
        title=f"MObyGaze by what explains the label: {target.title}",
        notes=(
            "A modality's segments: positive ones with a concept that it perceives, and all negative ones.",
            "; ".join(counts) + ".",
            "Every film is tested by models trained on the others: means over films, with 95 % intervals.",
            f"{LARGEST}: the largest score of the modalities, counted from each one's threshold.",
            "Labels of several annotators are merged. The numbers of arXiv 2504.11232 are not shown.",
        ),
        blocks=tuple(_metric_block(test, data[data["tested_on"] == test]) for test in tests),
        data=data,
        record=dict(record),
    )


def _metric_block(test: str, rows: pd.DataFrame) -> Block:
    """Make the table of the segments of one test: models, then chance."""
    cells: list[tuple[str, ...]] = []
    for keys, metrics in rows.groupby(["features", "trained_on", "model"], sort=False):
        features, training, model = map(str, keys)
        cells.append((features, TRAINED_ON[training], model, *interval_cells(metrics, SHOWN_METRICS)))
    cells.append(("", "", "(chance)", *chance_cells(rows, SHOWN_METRICS)))
    headers = ("features", "trained on", "model", "AUC-PR [95 %]", f"{METRICS['auc'].title} [95 %]")
    n_films = int(rows["n_movies"].max())
    return Block(f"{test}: by film, mean of {n_films}", headers, tuple(cells))
