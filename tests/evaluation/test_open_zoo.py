"""Any codebook: the same numbers under other names, none of ObyGaze12's words; real labels are learnt."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from obygaze_features.manifest import Codebook, Concept, Level, Task, builtin_codebook
from obygaze_models.evaluation.evaluate import evaluate

OBYGAZE12 = builtin_codebook("obygaze12")


def under_another_codebook(data):
    """Return the same clips under a codebook in which levels, concepts and tasks have other names."""
    level_of = {level.name: f"grade{rank}" for rank, level in enumerate(OBYGAZE12.levels)}
    levels = tuple(Level(level_of[level.name], label=level.label) for level in OBYGAZE12.levels)
    # "Body" is called "ydoB": backwards, the alphabet gives names another order.
    concepts = [Concept(concept.name[::-1], visual=concept.visual) for concept in OBYGAZE12.concepts]
    tasks = []
    for task in OBYGAZE12.tasks:
        negatives = tuple(level_of[level] for level in task.negatives)
        positives = tuple(level_of[level] for level in task.positives)
        tasks.append(Task(f"renamed_{task.name}", negatives, positives))
    other = Codebook("other", "1", levels, tuple(concepts), tasks=tuple(tasks))
    other_levels = np.array([level_of[level] for level in data.levels])
    labels = dataclasses.replace(data.labels, levels=other_levels, concepts=other.visual_concepts)
    return dataclasses.replace(data, codebook=other, labels=labels)


@pytest.mark.long
@pytest.mark.parametrize(
    ("models", "task", "renamed_task"),
    [
        (["linear", "pcbm_lr", "pcbm_dt", "pcbm_lr_shuffled"], "hn_s", "renamed_hn_s"),
        (["linear"], "levels", "levels"),
        (["cav"], "concept:Body", "concept:ydoB"),
    ],
    ids=["two classes", "ordered levels", "a concept"],
)
def test_predictions_and_metrics_do_not_depend_on_the_names_in_the_codebook(
    make_synthetic_concepts, models, task, renamed_task
):
    """In the other codebook hn_s is called renamed_hn_s, and concepts have their names backwards: ydoB.

    The clips are the same. All numbers must be, to the last digit; only the column of the task differs.
    """
    data = make_synthetic_concepts(n_movies=4, n_per_movie=30)

    run = evaluate(data, models, task)
    run_of_renamed = evaluate(under_another_codebook(data), models, renamed_task)

    pd.testing.assert_frame_equal(
        run_of_renamed.predictions.table.drop(columns="task"),
        run.predictions.table.drop(columns="task"),
        check_exact=True,
    )
    pd.testing.assert_frame_equal(
        run_of_renamed.metrics.drop(columns="task"), run.metrics.drop(columns="task"), check_exact=True
    )
