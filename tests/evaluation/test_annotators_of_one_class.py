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
def data_of_three_annotators(tmp_path_factory):
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


def targets_that_are_tested(run):
    """List the targets that a run tests, such as en_s@AB: EN vs S on the labels of AB."""
    return [target["name"] for target in run.record["tests"]]


@pytest.mark.parametrize("experts", ["merged", "soft", "noisy"])
def test_a_target_of_one_class_is_left_out_and_the_others_are_evaluated(data_of_three_annotators, experts):
    """AB and CD call some of 48 clips S (positive) and some EN. EF labelled 12 clips, and calls all S.

    So models cannot be tested on EF's labels. They are on those of AB, on those of CD, and where annotators
    agree, in whichever way the labels of annotators are used in training (`experts`).
    """
    run = om.evaluate(data_of_three_annotators, ["linear"], "en_s", experts=experts)

    assert targets_that_are_tested(run) == ["en_s@AB", "en_s@CD", "en_s@agreed"]
    assert run.record["tests_left_out"] == {
        "en_s@EF": "no negative clip to be tested on: 12 clips with features, of the levels S"
    }
    assert any(note.startswith("en_s@EF left out: no negative clip") for note in short_report(run).notes)


@pytest.fixture(scope="module")
def run_of_each(data_of_three_annotators):
    """A run of one model for each annotator, trained on the labels of that annotator alone."""
    return om.evaluate(data_of_three_annotators, ["linear"], "en_s", experts="each")


def test_models_of_each_annotator_are_not_tested_on_labels_of_one_class(run_of_each):
    """EF labelled 12 clips, all of them S (positive); AB and CD call some of 48 clips S and some EN."""
    assert targets_that_are_tested(run_of_each) == ["en_s@AB", "en_s@CD", "en_s@agreed"]
    assert list(run_of_each.record["tests_left_out"]) == ["en_s@EF"]


def test_a_model_of_labels_of_one_class_is_left_out_and_named(run_of_each):
    """A model shall be trained on each annotator's labels. EF's are 12 clips, all of them S (positive)."""
    assert {"linear@AB", "linear@CD"} <= set(run_of_each.titles)
    assert "linear@EF" not in run_of_each.titles
    assert run_of_each.record["models_left_out"] == {
        "models trained on EF": "no negative clip to be trained on by EF: 12 clips with features, "
        "of the levels S"
    }


def test_annotators_of_one_class_each_leave_nothing_to_test(data_of_three_annotators):
    """EF calls every clip S. AB gets the same labels as EF, so that neither has a negative clip.

    The message names the first of them.
    """
    data = data_of_three_annotators
    labels_of_ef = data.labels.experts["EF"]
    labels = replace(data.labels, experts={"AB": labels_of_ef, "EF": labels_of_ef})
    data_of_one_class = replace(data, labels=labels)

    with pytest.raises(ProtocolError, match="en_s@AB: no negative clip to be tested on"):
        om.evaluate(data_of_one_class, ["linear"], "en_s")


def test_a_test_of_one_class_that_was_asked_for_is_refused(data_of_three_annotators):
    """Labels of annotators are merged, so that nobody is named, and the clips are S or EN.

    Somebody asks for a test of HN vs S, but no clip is HN. Such a test is not left out silently.
    """
    data = data_of_three_annotators
    merged = replace(data, labels=replace(data.labels, experts={}))

    with pytest.raises(ProtocolError, match="hn_s: no negative clip to be tested on"):
        om.evaluate(merged, ["linear"], "enhn_s", test=["enhn_s", "hn_s"])


def test_an_annotator_without_a_blind_label_is_left_out(data_of_three_annotators):
    """CD judged all clips in sight of a model's score; AB and EF judged all their clips blindly.

    Only blind labels are tested on, so that AB's alone are left. There is no test on the labels of CD, which
    has no clip, nor one on clips where all annotators agree, as a label of CD is among them. EF calls every
    clip S and is left out, too.
    """
    data = data_of_three_annotators
    in_sight = np.ones(len(data), dtype=np.bool_)
    blind = np.zeros(len(data), dtype=np.bool_)
    experts = dict(data.labels.experts)
    experts["AB"] = replace(experts["AB"], seen_score=blind)
    experts["CD"] = replace(experts["CD"], seen_score=in_sight)
    experts["EF"] = replace(experts["EF"], seen_score=blind)
    labels = replace(data.labels, experts=experts, seen_score=in_sight)
    with_cd_in_sight = replace(data, labels=labels)

    run = om.evaluate(with_cd_in_sight, ["linear"], "en_s")

    assert targets_that_are_tested(run) == ["en_s@AB"]
    assert run.record["tests_left_out"]["en_s@CD"] == (
        "no negative clip to be tested on: 0 clips with features, of the levels none"
    )
