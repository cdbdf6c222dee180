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


def test_a_stage_with_other_features_than_its_store_is_needed(tmp_path):
    """The same four clips are extracted anew under the store's name, and their vectors are zeros now."""
    stage = sealed_with_its_stage(tmp_path)
    shutil.rmtree(stage.path)

    anew = begun(tmp_path)
    clips = anew.missing()
    with anew.writer(clips) as writer:
        for clip in clips:
            sealed_before = planted_features(clip, FIXED_GROUP)
            zeros = {name: np.zeros_like(array) for name, array in sealed_before.arrays.items()}
            other_features = replace(sealed_before, arrays=zeros)
            writer.commit([ClipResult(clip, "ok", groups={"toy": other_features})])

    assert why_needed(anew.path) == "no sealed store has all of its clips"


def test_a_stage_beside_a_partial_copy_of_its_store_is_needed(tmp_path):
    """The store was moved away, and pulled back without its vectors of frames, which only the stage has."""
    stage = sealed_with_its_stage(tmp_path)
    moved = (tmp_path / "toy-1.0.0").rename(tmp_path / "moved")
    pull(moved, tmp_path / "toy-1.0.0", arrays=["pooled"])

    assert why_needed(stage.path) == "no sealed store has all of its clips"

    pull(moved, tmp_path / "toy-1.0.0")
    assert why_needed(stage.path) == ""
