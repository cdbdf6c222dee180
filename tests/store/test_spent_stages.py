"""A stage beside its sealed store may be removed only if the store has all that the stage has."""

import shutil
from dataclasses import replace

import numpy as np

from obygaze_features.exchange.transfer import pull
from obygaze_features.store import ClipResult, Stage, staging_path
from obygaze_features.store.growth import why_needed

from .toy_stores import CORPUS, LICENSED, commit_clips, group, plan, planted_features, seal_stage_of

FIXED_GROUP = group()


def begun(folder):
    """Begin a stage of four clips."""
    return Stage.open(staging_path(folder / "toy"), plan(4), [FIXED_GROUP], CORPUS)


def sealed_with_its_stage(folder):
    """Seal a store of the four clips; return its stage, which stays."""
    stage = begun(folder)
    commit_clips(stage, stage.missing(), lambda _: "ok")
    seal_stage_of(folder / "toy", **LICENSED)
    return stage


def test_a_stage_whose_clips_are_all_in_its_store_is_not_needed(tmp_path):
    """`why_needed` gives the reason why a stage must stay, or an empty text."""
    stage = sealed_with_its_stage(tmp_path)

    assert why_needed(stage.path) == ""


def test_a_stage_with_other_features_than_its_store_must_stay(tmp_path):
    """A store of four clips is sealed, and its stage removed. Then the four clips are extracted anew.

    The new stage has the place of the old one beside the store, and the same clips; but their vectors are
    zeros, which the store does not have. So `why_needed` gives a reason why this stage must stay.
    """
    stage_of_store = sealed_with_its_stage(tmp_path)
    shutil.rmtree(stage_of_store.path)

    new_stage = begun(tmp_path)
    clips = new_stage.missing()
    with new_stage.writer(clips) as writer:
        for clip in clips:
            features_in_store = planted_features(clip, FIXED_GROUP)
            zeros = {name: np.zeros_like(array) for name, array in features_in_store.arrays.items()}
            other_features = replace(features_in_store, arrays=zeros)
            writer.commit([ClipResult(clip, "ok", groups={"toy": other_features})])

    assert why_needed(new_stage.path) == "no sealed store has all of its clips"


def test_a_stage_beside_a_partial_copy_of_its_store_is_needed(tmp_path):
    """The store was moved away, and pulled back without its vectors of frames, which only the stage has."""
    stage = sealed_with_its_stage(tmp_path)
    moved = (tmp_path / "toy-1.0.0").rename(tmp_path / "moved")
    pull(moved, tmp_path / "toy-1.0.0", arrays=["pooled"])

    assert why_needed(stage.path) == "no sealed store has all of its clips"

    pull(moved, tmp_path / "toy-1.0.0")
    assert why_needed(stage.path) == ""
