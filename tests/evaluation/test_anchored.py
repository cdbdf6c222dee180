"""Judgements made with a model's score in sight are trained on, and tested on only where that is asked."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.manifest import Clip, Manifest
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.protocol.targets import labels_of


@pytest.fixture(scope="module")
def half_seen(make_planted):
    """A dataset of which every second clip was judged with the model's score in sight."""
    data = make_planted(direction=2.0)
    is_second = np.arange(len(data)) % 2 == 1
    return dataclasses.replace(data, labels=dataclasses.replace(data.labels, seen_score=is_second))


@pytest.fixture(scope="module")
def run_without_seen(half_seen):
    """An evaluation in which these clips are not tested."""
    return evaluate(half_seen, ["linear"], "enhn_s", test_seen_scores=False)


@pytest.fixture(scope="module")
def run_with_seen(half_seen):
    """An evaluation in which these clips are tested."""
    return evaluate(half_seen, ["linear"], "enhn_s", test_seen_scores=True)


def ids_of_tested(run):
    """Return the ids of the clips that a run tested."""
    return set(run.predictions.table["clip_id"])


def manifest_of(*clips):
    return Manifest(clips, Path())


def test_clips_judged_in_sight_of_a_score_are_not_tested(half_seen, run_without_seen):
    """Who sees a model's score tends to agree with it, so that testing on such labels would flatter models.

    The clips are counted.
    """
    unseen = half_seen.clip_ids[~half_seen.labels.seen_score]
    assert ids_of_tested(run_without_seen) == set(unseen.tolist())
    assert run_without_seen.record["clips"]["seen_score"] == half_seen.labels.seen_score.sum()


def test_clips_judged_in_sight_of_a_score_are_tested_on_request(half_seen, run_with_seen):
    assert ids_of_tested(run_with_seen) == set(half_seen.clip_ids.tolist())
    assert "seen_score" not in run_with_seen.record["clips"]


def test_clips_judged_in_sight_of_a_score_are_trained_on(run_without_seen, run_with_seen):
    """Whether they are tested or not changes nothing in training."""
    with_seen = [fold["train_clips"] for fold in run_with_seen.record["folds"]]
    without_seen = [fold["train_clips"] for fold in run_without_seen.record["folds"]]
    assert without_seen == with_seen


def test_the_column_seen_score_marks_clips_judged_in_sight_of_a_score():
    manifest = manifest_of(
        Clip("a", "m", extras={"seen_score": "1"}), Clip("b", "m", extras={"seen_score": "0"})
    )
    labels = labels_of(manifest)
    assert labels.seen_score.tolist() == [True, False]
    second_clip = labels.take(np.array([1]))

    assert second_clip.seen_score.tolist() == [False]


def test_without_the_column_seen_score_nothing_is_known_of_it():
    assert labels_of(manifest_of(Clip("c", "m"))).seen_score is None
