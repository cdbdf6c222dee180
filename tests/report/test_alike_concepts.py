"""A report names concepts that nothing in the labels tells apart: from each other, or from the label."""

import numpy as np
import pytest

from obygaze_models import evaluate
from obygaze_models.evaluation.alike_concepts import concepts_alike, concepts_of_label
from obygaze_models.report.run_notes import limits
from tests.conftest import dataset

LEVELS = np.tile(["EN", "S"], 40)


def clips_with(**concept_of_place):
    """Make clips of four films; the codebook's first concepts are present as the arguments say, in turn."""
    rng = np.random.default_rng(0)
    movies = np.repeat([f"tt{number}" for number in range(4)], 20)
    present = np.zeros((80, 8), dtype=bool)  # the codebook has eight visual concepts
    for index, is_present in enumerate(concept_of_place.values()):
        present[:, index] = is_present
    return dataset(rng.normal(size=(80, 6)), LEVELS, movies, present)


def in_half_of_clips(seed):
    return np.random.default_rng(seed).random(80) < 0.5


def test_concepts_in_the_same_clips_are_named_together():
    """The first two are in the same clips, the third is in other ones."""
    clips = clips_with(
        first=in_half_of_clips(seed=1), second=in_half_of_clips(seed=1), third=in_half_of_clips(seed=2)
    )
    first, second, third, *_ = clips.labels.concepts

    run = evaluate(clips, ["pcbm_lr"], task="en_s")

    (line,) = [line for line in limits(run) if "the same clips" in line]
    assert line.startswith(f"concepts {first} and {second} are marked in the same clips")
    assert third not in line


def test_a_concept_that_is_the_label_is_named():
    """The first concept is in all clips of S and in none of EN."""
    clips = clips_with(first=LEVELS == "S", second=in_half_of_clips(seed=1))
    first = clips.labels.concepts[0]

    run = evaluate(clips, ["pcbm_lr"], task="en_s")

    (line,) = [line for line in limits(run) if "the label itself" in line]
    assert line.startswith(f"concept {first} is marked in all clips of one class")


def test_a_run_without_a_model_of_concepts_says_nothing_of_them():
    clips = clips_with(first=LEVELS == "S", second=LEVELS == "S")

    run = evaluate(clips, ["linear"], task="en_s")

    assert not any("concept" in line for line in limits(run))


def test_a_concept_that_is_marked_where_another_is_not_is_no_other_concept():
    present = np.array([[1, 0, 1], [0, 1, 1], [1, 0, 0]], dtype=bool)

    assert concepts_alike(present, ["A", "not A", "B"]) == [["A", "not A"]]


@pytest.mark.parametrize("is_present", [True, False])
def test_concepts_of_all_clips_or_none_are_not_alike(is_present):
    """They cannot be learnt, and the report says so elsewhere."""
    present = np.full((3, 2), is_present)

    assert concepts_alike(present, ["A", "B"]) == []


def test_a_concept_that_one_clip_tells_from_the_label_is_not_the_label():
    is_positive = np.array([True, True, False, False])
    present = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]], dtype=bool)

    assert concepts_of_label(present, ["same", "one more", "opposite"], is_positive) == ["same", "opposite"]
