"""A report says of concepts that were not learnt why: rare ones, and those that every clip has."""

from dataclasses import replace

import numpy as np

from obygaze_models import evaluate, linear_probe
from obygaze_models.models.registry import BUILTIN_MODELS
from obygaze_models.report.run_notes import notes
from tests.conftest import dataset


def clips_of_few_concepts():
    """Make 80 clips of four films, in which three of the codebook's eight visual concepts occur.

    The first is in half of the clips, the second in all of them, and the third in clips of a single film.
    """
    rng = np.random.default_rng(0)
    movies = np.repeat([f"tt{number}" for number in range(4)], 20)
    levels = np.tile(["EN", "S"], 40)
    present = np.zeros((80, 8), dtype=bool)  # the codebook has eight visual concepts
    present[:, 0] = rng.random(80) < 0.5
    present[:, 1] = True
    present[:, 2] = (movies == "tt0") & (rng.random(80) < 0.5)
    return dataset(rng.normal(size=(80, 6)), levels, movies, present)


def test_a_note_lists_the_concepts_that_cannot_be_learnt_as_no_clip_or_every_clip_has_them():
    """Of the first three concepts, one is in half of the clips, one in all of them, one in a single film.

    No clip has the other five. A concept is learnt from clips with and without it, in all four folds (a
    fold leaves a film out): the note names all but the first, each with the number of folds, "Body 4". It
    must not say that they are all rare, as one is in every clip. The concept of a single film cannot be
    learnt in any fold, as that film is left out in turn within each.
    """
    clips = clips_of_few_concepts()
    in_half, in_all, in_one_film, *in_none = clips.labels.concepts

    run = evaluate(clips, ["pcbm_lr"], task="en_s")

    (note,) = [line for line in notes(run) if "cannot be learnt" in line]
    assert "no clip has them or every clip has them" in note
    n_folds = 4
    for concept in (in_all, in_one_film, *in_none):
        assert f"{concept} {n_folds}" in note
    assert in_half not in note


def test_concepts_that_cannot_be_learnt_are_noted_of_a_bottleneck_under_any_name():
    """Two concepts can't be learnt: one that all clips have, and one that is in a single film.

    The model "mine" is the zoo's bottleneck pcbm_lr, which learns concepts: its report notes them.
    """
    bottleneck = replace(BUILTIN_MODELS["pcbm_lr"], name="mine")

    run = evaluate(clips_of_few_concepts(), [bottleneck], task="en_s")

    assert any("cannot be learnt" in line for line in notes(run))


def test_concepts_are_not_noted_of_a_model_that_is_only_called_like_a_bottleneck():
    """The model "conceptual_pcbm" is a linear probe of features, and learns no concepts."""
    run = evaluate(clips_of_few_concepts(), {"conceptual_pcbm": linear_probe()}, task="en_s")

    assert not any("concept" in line for line in notes(run))
