"""Judgements made with a model's score in sight are trained on, and tested on only where that is asked."""

import dataclasses
from pathlib import Path

import numpy as np

from obygaze_features.manifest import Clip, Manifest
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.protocol.targets import labels_of


def ids_of_tested(run):
    """Return the ids of the clips that a run tested."""
    return set(run.predictions.table["clip_id"])


def with_every_second_clip_judged_in_sight_of_a_score(data):
    """Of 240 clips, say of 120 that people saw a model's score as they judged; return that too."""
    in_sight = np.arange(240) % 2 == 1
    labels = dataclasses.replace(data.labels, seen_score=in_sight)
    return dataclasses.replace(data, labels=labels), in_sight


def test_clips_judged_in_sight_of_a_score_are_trained_on_and_tested_only_on_request(make_synthetic_data):
    """Who sees a model's score tends to agree with it, so that testing on such labels would flatter models.

    Every second of 240 clips was judged so. A run that leaves these 120 out of its tests counts them.
    """
    data, in_sight = with_every_second_clip_judged_in_sight_of_a_score(make_synthetic_data(direction=2.0))

    run = evaluate(data, ["linear"], "enhn_s", test_seen_scores=False)
    run_on_request = evaluate(data, ["linear"], "enhn_s", test_seen_scores=True)

    assert ids_of_tested(run) == set(data.clip_ids[~in_sight].tolist())
    assert run.record["clips"]["seen_score"] == 120
    assert ids_of_tested(run_on_request) == set(data.clip_ids.tolist())
    assert "seen_score" not in run_on_request.record["clips"]

    clips_trained_on = [fold["train_clips"] for fold in run.record["folds"]]
    clips_trained_on_by_request = [fold["train_clips"] for fold in run_on_request.record["folds"]]
    assert clips_trained_on == clips_trained_on_by_request


def test_the_column_seen_score_marks_clips_judged_in_sight_of_a_score():
    """In a manifest the column has 1 for a judgement in sight of a score, and 0 for a blind one."""
    in_sight = Clip("a", "m", extras={"seen_score": "1"})
    blind = Clip("b", "m", extras={"seen_score": "0"})

    labels = labels_of(Manifest((in_sight, blind), Path()))

    assert labels.seen_score.tolist() == [True, False]
    second_clip = labels.take(np.array([1]))
    assert second_clip.seen_score.tolist() == [False]


def test_without_the_column_seen_score_nothing_is_known_of_sight():
    """The manifest has one clip, and no column that says whether judges saw a model's score."""
    labels = labels_of(Manifest((Clip("c", "m"),), Path()))
    assert labels.seen_score is None
