"""Any codebook: the same numbers under other names, none of ObyGaze12's words; real labels are learnt."""

import dataclasses

import numpy as np
import pandas as pd

from obygaze_features.manifest import Codebook, Concept, Level, Task, builtin_codebook
from obygaze_models.evaluation.evaluate import evaluate

OBYGAZE12 = builtin_codebook("obygaze12")


def renamed(codebook):
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


def test_the_same_clips_under_another_codebook_have_the_same_numbers_to_the_bit(make_planted_concepts):
    data = make_planted_concepts(n_movies=4, n_per_movie=30)
    other, level_of = renamed(OBYGAZE12)
    twin = dataclasses.replace(
        data,
        codebook=other,
        labels=dataclasses.replace(
            data.labels,
            levels=np.array([level_of[level] for level in data.levels]),
            concepts=other.visual_concepts,
        ),
    )
    tasks = {one.name: new.name for one, new in zip(OBYGAZE12.tasks, other.tasks, strict=True)}
    body = other.visual_concepts[OBYGAZE12.visual_concepts.index("Body")]
    for models, ours, theirs in (
        (["linear", "pcbm_lr", "pcbm_dt", "pcbm_lr_shuffled"], "hn_s", tasks["hn_s"]),
        (["linear"], "levels", "levels"),
        (["cav"], "concept:Body", f"concept:{body}"),
    ):
        one, two = evaluate(data, models, ours), evaluate(twin, models, theirs)
        columns = [name for name in one.predictions.table if name != "task"]
        pd.testing.assert_frame_equal(
            one.predictions.table[columns], two.predictions.table[columns], check_exact=True
        )
        pd.testing.assert_frame_equal(
            one.metrics.drop(columns="task"), two.metrics.drop(columns="task"), check_exact=True
        )
