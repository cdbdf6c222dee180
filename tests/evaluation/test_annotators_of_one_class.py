"""An annotator whose labels cannot be tested or trained on is left out and named; others are evaluated."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_models.errors import ProtocolError
from obygaze_models.report.run_tables import short_report

FILMS = [f"film{number}" for number in range(4)]
CLIPS_A_FILM = 12


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """48 clips of four films: AB and CD know their levels, EF calls the first 6 clips of two films S."""
    generator = np.random.default_rng(0)
    movie_of = {}
    rows = []
    X = []
    for film in FILMS:
        for number in range(CLIPS_A_FILM):
            clip_id = f"{film}-{number:02}"
            movie_of[clip_id] = film
            is_positive = number % 2 == 1
            X.append(generator.normal(size=3) + 3 * is_positive)
            level = "S" if is_positive else "EN"
            rows.append(Clip(clip_id, film, "", level=level, annotator="AB"))
            rows.append(Clip(clip_id, film, "", level=level, annotator="CD"))
            if film in FILMS[:2] and number < 6:
                rows.append(Clip(clip_id, film, "", level="S", annotator="EF"))
    folder = tmp_path_factory.mktemp("annotators")
    store = seal_arrays(folder / "store", movie_of, {"lab": {"pooled": np.array(X, np.float32)}})
    return om.load_dataset(of.open_store(store), Manifest(tuple(rows), Path()))


def targets_of(run):
    """List the targets that a run tests."""
    return [target["name"] for target in run.record["tests"]]


@pytest.mark.parametrize("experts", ["merged", "each", "soft", "noisy"])
def test_a_target_of_one_class_is_left_out_and_the_others_are_evaluated(data, experts):
    run = om.evaluate(data, ["linear"], "en_s", experts=experts)

    assert targets_of(run) == ["en_s@AB", "en_s@CD", "en_s@agreed"]
    assert run.record["tests_left_out"] == {
        "en_s@EF": "no negative clip to be tested on: 12 clips with features, of the levels S"
    }
    assert any(note.startswith("en_s@EF left out: no negative clip") for note in short_report(run).notes)


def test_a_model_of_labels_of_one_class_is_left_out_and_named(data):
    run = om.evaluate(data, ["linear"], "en_s", experts="each")

    assert {"linear@AB", "linear@CD"} <= set(run.titles)
    assert "linear@EF" not in run.titles
    assert run.record["models_left_out"] == {
        "models trained on EF": "no negative clip to be trained on by EF: 12 clips with features, "
        "of the levels S"
    }


def test_annotators_of_one_class_each_leave_nothing_to_test(data):
    """The message names the first of them."""
    of_ef = data.labels.experts["EF"]
    experts = {"AB": of_ef, "EF": of_ef}
    labels = replace(data.labels, experts=experts)
    with pytest.raises(ProtocolError, match="en_s@AB: no negative clip to be tested on"):
        om.evaluate(replace(data, labels=labels), ["linear"], "en_s")


def test_a_test_of_one_class_that_was_asked_for_is_refused(data):
    """Merged labels have the tests that somebody named, and here no clip is HN."""
    merged = replace(data, labels=replace(data.labels, experts={}))
    with pytest.raises(ProtocolError, match="hn_s: no negative clip to be tested on"):
        om.evaluate(merged, ["linear"], "enhn_s", test=["enhn_s", "hn_s"])


def test_an_annotator_without_a_blind_label_is_left_out(data):
    """CD judged everything in sight of a score: AB is tested."""
    experts = {}
    for name, labels in data.labels.experts.items():
        is_by_cd = np.full(len(data), name == "CD")
        experts[name] = replace(labels, seen_score=is_by_cd)
    is_in_sight = np.ones(len(data), dtype=np.bool_)
    labels = replace(data.labels, experts=experts, seen_score=is_in_sight)

    run = om.evaluate(replace(data, labels=labels), ["linear"], "en_s")

    assert targets_of(run) == ["en_s@AB"]
    assert run.record["tests_left_out"]["en_s@CD"] == (
        "no negative clip to be tested on: 0 clips with features, of the levels none"
    )
