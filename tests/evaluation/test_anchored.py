"""Judgements made with a model's score in sight are trained on, and tested on only where that is asked."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.manifest import Clip, Manifest
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.protocol.targets import labels_of


@pytest.fixture(scope="module")
def half(make_planted):
    """A dataset of which every second clip was judged with the score in sight."""
    data = make_planted(direction=2.0)
    anchored = np.arange(len(data)) % 2 == 1
    return dataclasses.replace(data, labels=dataclasses.replace(data.labels, seen_score=anchored))


def test_they_are_in_training_and_tested_only_where_that_is_asked(half):
    run = evaluate(half, ["linear"], "enhn_s", test_seen_scores=False)
    asked = evaluate(half, ["linear"], "enhn_s", test_seen_scores=True)
    assert set(run.predictions.table["clip_id"]) == set(half.clip_ids[~half.labels.seen_score].tolist())
    assert set(asked.predictions.table["clip_id"]) == set(half.clip_ids.tolist())
    assert run.record["clips"]["seen_score"] == int(half.labels.seen_score.sum())
    assert "seen_score" not in asked.record["clips"]
    train_clips = [fold["train_clips"] for fold in run.record["folds"]]
    assert [fold["train_clips"] for fold in asked.record["folds"]] == train_clips


def test_the_column_says_which_they_are():
    clips = [Clip("a", "m", extras={"seen_score": "1"}), Clip("b", "m", extras={"seen_score": "0"})]
    assert labels_of(Manifest(tuple(clips), Path())).seen_score.tolist() == [True, False]
    assert labels_of(Manifest((Clip("c", "m"),), Path())).seen_score is None
    kept = labels_of(Manifest(tuple(clips), Path())).take(np.array([1]))
    assert kept.seen_score.tolist() == [False]
