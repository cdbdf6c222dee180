"""Any codebook: the same numbers under other names, none of ObyGaze12's words; real labels are learnt."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from obygaze_features.manifest import Codebook, Concept, Level, Task, builtin_codebook
from obygaze_models.evaluation.evaluate import evaluate

OBYGAZE12 = builtin_codebook("obygaze12")


def rename_codebook(codebook):
    """Rename levels, concepts and tasks one to one, in their order."""
    level_of = {level.name: f"grade{rank}" for rank, level in enumerate(codebook.levels)}
    names = [f"thing{place:02}" for place in reversed(range(len(codebook.concepts)))]
    levels = [Level(level_of[level.name], label=level.label) for level in codebook.levels]
    marks = zip(names, codebook.concepts, strict=True)
    concepts = [Concept(name, visual=concept.visual) for name, concept in marks]
    tasks = []
    for place, task in enumerate(codebook.tasks):
        negatives = tuple(level_of[level] for level in task.negatives)
        positives = tuple(level_of[level] for level in task.positives)
        tasks.append(Task(f"task{place}", negatives, positives))
    other = Codebook("other", "1", tuple(levels), tuple(concepts), tasks=tuple(tasks))
    return other, level_of


@pytest.fixture(scope="module")
def data(make_planted_concepts):
    """120 clips of four films under ObyGaze12's codebook."""
    return make_planted_concepts(n_movies=4, n_per_movie=30)


@pytest.fixture(scope="module")
def renamed_data(data):
    """The same clips under a codebook in which everything has another name."""
    other, level_of = rename_codebook(OBYGAZE12)
    levels = np.array([level_of[level] for level in data.levels])
    labels = dataclasses.replace(data.labels, levels=levels, concepts=other.visual_concepts)
    return dataclasses.replace(data, codebook=other, labels=labels)


def renamed_task(task):
    """Return the renamed codebook's word for a task."""
    other, _ = rename_codebook(OBYGAZE12)
    if task.startswith("concept:"):
        place = OBYGAZE12.visual_concepts.index(task.removeprefix("concept:"))
        return f"concept:{other.visual_concepts[place]}"
    names = [known.name for known in OBYGAZE12.tasks]
    return other.tasks[names.index(task)].name if task in names else task


@pytest.mark.long
@pytest.mark.parametrize(
    ("models", "task"),
    [
        (["linear", "pcbm_lr", "pcbm_dt", "pcbm_lr_shuffled"], "hn_s"),
        (["linear"], "levels"),
        (["cav"], "concept:Body"),
    ],
    ids=["two classes", "ordered levels", "a concept"],
)
def test_predictions_and_metrics_do_not_depend_on_the_names_in_the_codebook(data, renamed_data, models, task):
    run = evaluate(data, models, task)
    run_of_renamed = evaluate(renamed_data, models, renamed_task(task))
    for table, table_of_renamed in (
        (run.predictions.table, run_of_renamed.predictions.table),
        (run.metrics, run_of_renamed.metrics),
    ):
        without_task = table.drop(columns="task")
        pd.testing.assert_frame_equal(table_of_renamed.drop(columns="task"), without_task, check_exact=True)
