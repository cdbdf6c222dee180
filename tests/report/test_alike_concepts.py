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
    """Draw which of the 80 clips have a concept: about half of them."""
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


def test_concepts_that_are_alike_are_not_mentioned_if_no_model_of_a_run_uses_concepts():
    """Two concepts are marked in exactly the S clips, and so are neither told apart nor told from S.

    That limits what can be said of a model that decides by concepts; the run has a linear model alone, and
    among the limits that are printed below its results no line is about concepts.
    """
    is_s = LEVELS == "S"
    clips = clips_with(first=is_s, second=is_s)

    run = evaluate(clips, ["linear"], task="en_s")

    lines_on_limits = limits(run)
    assert not any("concept" in line for line in lines_on_limits)


def test_a_concept_and_its_opposite_are_alike():
    """Two concepts are alike if one tells whether a clip has the other.

    That is also so if one is marked in exactly the clips that do not have the other: as A in clips 1 and 3,
    and "not A" in clip 2.
    """
    names = ["A", "not A", "B"]
    present = np.array(
        [
            [1, 0, 1],  # the concepts of clip 1
            [0, 1, 1],
            [1, 0, 0],
        ],
        dtype=bool,
    )

    assert concepts_alike(present, names) == [["A", "not A"]]


@pytest.mark.parametrize("is_present", [True, False])
def test_concepts_of_all_clips_or_none_are_not_listed_as_alike(is_present):
    """Two concepts are in all three clips, or in none: they can't be learnt, as a report says elsewhere."""
    present = np.full((3, 2), is_present)

    assert concepts_alike(present, ["A", "B"]) == []


def test_a_concept_that_differs_from_the_label_in_one_clip_is_not_listed_as_the_label():
    """A concept is as good as the label if it tells of each of four clips whether the clip is positive.

    So does the concept "same", which just the positive clips have, and "opposite", which just the negative
    ones have. "one more" is marked in the positive clips and in a negative one.
    """
    names = ["same", "one more", "opposite"]
    is_positive = np.array([True, True, False, False])
    present = np.array(
        [
            [1, 1, 0],  # the concepts of the first clip, a positive one
            [1, 1, 0],
            [0, 0, 1],
            [0, 1, 1],
        ],
        dtype=bool,
    )

    assert concepts_of_label(present, names, is_positive) == ["same", "opposite"]
