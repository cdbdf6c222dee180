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
    explained, everything
        The task on the segments whose label the concepts explain, and on all.
    n_positive, n_explained
        Number of positive segments, and of those with one of the concepts.
    """

    name: str
    concepts: tuple[str, ...]
    data: Dataset
    explained: Target
    everything: Target
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

    Each modality is trained twice: on the segments whose label a concept explains that it perceives, and on
    all segments. Labels of several annotators are merged. Every film is tested by models of the others.

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
    tables: list[pd.DataFrame] = []
    # Training -> the predictions of each modality.
    predictions: dict[str, list[pd.DataFrame]] = {training: [] for training in TRAINED_ON}
    for modality in modalities:
        for training in TRAINED_ON:
            compute = partial(_evaluate_modality, modality, training, models, seed, progress)
            run: Run = load_or_compute(results_folder, f"{training}-{modality.name}", compute)
            tables.append(_shown_metrics(run.metrics, modality.name, training, models))
            predictions[training].append(run.predictions.table)
    if len(modalities) > 1:
        for training, predictions_of_modalities in predictions.items():
            joined = largest_scores(predictions_of_modalities, target.name, models)
            tables.append(_shown_metrics(summarise(joined), LARGEST, training, models))
    fingerprints = {name: store.fingerprint for name, (store, _) in stores.items()}
    record = {"train": target.record(), "modalities": fingerprints}
    report = _report(pd.concat(tables, ignore_index=True), modalities, target, record)
    on_report(report, report)
    return report


def explained_modality(
    name: str, store: Store, backbone: str | None, manifest: Manifest, target: Target, *, bags: bool
) -> ExplainedModality:
    """Load the features of a modality, and mark the positive segments that it explains.

    It explains a segment that has a concept which the modality perceives. Other positive segments get a level
    of their own in the data, so that a target can include or leave them out.

    Raises
    ------
    TaskError
        Its features perceive none of the codebook's concepts, or no positive segment has one.
    """
    load = om.load_bags if bags else om.load_dataset
    data = load(store, manifest, backbone=backbone)
    concepts = concepts_of(manifest.codebook, perceived(store[data.backbone].provenance))
    if not concepts:
        raise TaskError(
            f"{name}: nothing says that {data.backbone} of {store.name} perceives what conveys a concept of "
            f'the codebook: import it with --declared \'{{"perceives": ["heard"]}}\', or what it perceives'
        )
    negatives, positives = target.classes
    labels = replace(data.labels, experts={})
    is_positive = np.isin(labels.levels, positives)
    is_explained = is_positive & explained_by(labels, concepts)
    if not is_explained.any():
        raise TaskError(f"{name}: no positive clip has a concept that it perceives: {', '.join(concepts)}")
    levels = labels.levels.astype(object)
    is_unexplained = is_positive & ~is_explained
    levels[is_unexplained] = levels[is_unexplained] + UNEXPLAINED_SUFFIX
    unexplained_levels = tuple(level + UNEXPLAINED_SUFFIX for level in positives)
    all_segments = replace(target, classes=(negatives, (*positives, *unexplained_levels)))
    explained = replace(target, name=f"explained by {name}", title=f"{target.title}, explained by {name}")
    return ExplainedModality(
        name=name,
        concepts=concepts,
        data=replace(data, labels=replace(labels, levels=levels.astype(str))),
        explained=explained,
        everything=all_segments,
        n_positive=int(is_positive.sum()),
        n_explained=int(is_explained.sum()),
    )


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


def explained_by(labels: Labels, concepts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Mark the clips [N] that have one of some concepts."""
    marked = np.zeros(len(labels.clip_ids), dtype=np.bool_)
    for concept in concepts:
        marked |= labels.has(concept)
    return marked


def _evaluate_modality(
    modality: ExplainedModality, training: str, models: Sequence[str], seed: int, progress: Progress | None
) -> Run:
    """Train models on the explained segments ("explained") or on all, and test them on both."""
    trained = modality.explained if training == "explained" else modality.everything
    return om.evaluate(
        modality.data,
        models,
        task=trained,
        test=[modality.explained, modality.everything],
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
    rows = rows[rows["task"].str.endswith(f">{task}") & rows["model"].isin(models)]
    rows = rows.assign(
        score=rows["score"] - rows["threshold"], task=f"{LARGEST}>{task}", threshold=0.0, store=""
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
    table = table.assign(
        features=features, trained_on=training, tested_on=table["task"].str.partition(">")[2]
    )
    columns = ["tested_on", "features", "trained_on", "model", "metric"]
    return table[[*columns, "movie_mean", "movie_low", "movie_high", "movie_chance", "n_movies"]]


def _report(
    data: pd.DataFrame, modalities: Sequence[ExplainedModality], target: Target, record: Mapping[str, Any]
) -> Report:
    """Make the report: a table for the segments of each modality, and one for all segments."""
    tests = [*(modality.explained.name for modality in modalities), target.name]
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
    for (features, training, model), metrics in rows.groupby(["features", "trained_on", "model"], sort=False):
        by_metric = metrics.set_index("metric").to_dict(orient="index")
        intervals = []
        for metric in SHOWN_METRICS:
            values = by_metric[metric]
            intervals.append(interval(values["movie_mean"], values["movie_low"], values["movie_high"]))
        cells.append((str(features), TRAINED_ON[str(training)], str(model), *intervals))
    chance = rows.drop_duplicates("metric").set_index("metric")["movie_chance"].to_dict()
    cells.append(("", "", "(chance)", *(number(chance[metric]) for metric in SHOWN_METRICS)))
    headers = ("features", "trained on", "model", "AUC-PR [95 %]", f"{METRICS['auc'].title} [95 %]")
    n_films = int(rows["n_movies"].max())
    return Block(f"{test}: by film, mean of {n_films}", headers, tuple(cells))
