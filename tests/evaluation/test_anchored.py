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


def test_clips_judged_in_sight_of_a_score_are_trained_on_and_tested_only_on_request(make_planted):
    """Who sees a model's score tends to agree with it, so that testing on such labels would flatter models.

    Every second clip was judged so. They are counted.
    """
    data = make_planted(direction=2.0)
    is_second = np.arange(len(data)) % 2 == 1
    data = dataclasses.replace(data, labels=dataclasses.replace(data.labels, seen_score=is_second))

    without_seen = evaluate(data, ["linear"], "enhn_s", test_seen_scores=False)
    with_seen = evaluate(data, ["linear"], "enhn_s", test_seen_scores=True)

    assert ids_of_tested(without_seen) == set(data.clip_ids[~is_second].tolist())
    assert ids_of_tested(with_seen) == set(data.clip_ids.tolist())
    assert without_seen.record["clips"]["seen_score"] == is_second.sum()
    assert "seen_score" not in with_seen.record["clips"]
    for fold, fold_with_seen in zip(without_seen.record["folds"], with_seen.record["folds"], strict=True):
        assert fold["train_clips"] == fold_with_seen["train_clips"]


def test_the_column_seen_score_marks_clips_judged_in_sight_of_a_score():
    clips = (Clip("a", "m", extras={"seen_score": "1"}), Clip("b", "m", extras={"seen_score": "0"}))
    labels = labels_of(Manifest(clips, Path()))
    assert labels.seen_score.tolist() == [True, False]
    assert labels.take(np.array([1])).seen_score.tolist() == [False]
    without_the_column = labels_of(Manifest((Clip("c", "m"),), Path()))
    assert without_the_column.seen_score is None
