"""Labels that were given in sight of a model's score are tested nowhere, and each output says how many."""

import json
from pathlib import Path

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store.testing import seal_arrays
from tests.command import obygaze

FILMS = [f"film{number}" for number in range(4)]
CLIPS_A_FILM = 20


def clip_id_of(film, number):
    return f"{film}-{number + 1:04}"


def plant_store(folder):
    """Seal features of four films of 20 clips of 10 s, which know nothing of labels; return its path."""
    movie_of = {}
    span_of = {}
    for film in FILMS:
        for number in range(CLIPS_A_FILM):
            clip_id = clip_id_of(film, number)
            movie_of[clip_id] = film
            span_of[clip_id] = (10.0 * number, 10.0 * number + 10)
    X = np.random.default_rng(0).normal(size=(len(movie_of), 3)).astype(np.float32)
    return seal_arrays(folder / "store", movie_of, {"lab": {"pooled": X}}, spans=span_of)


def judged(annotator, *, n_in_sight):
    """Judge all clips, S and EN in turn; the first `n_in_sight` clips of each film in sight of the score."""
    rows = []
    for film in FILMS:
        for number in range(CLIPS_A_FILM):
            seen_score = "1" if number < n_in_sight else "0"
            level = "S" if number % 2 else "EN"
            span = (10.0 * number, 10.0 * number + 10)
            row_id = clip_id_of(film, number)
            rows.append(Clip(row_id, film, "", *span, level, (), annotator, {"seen_score": seen_score}))
    return rows


def n_tested(run):
    """Count the clips of each test of a run: task -> clips."""
    return run.predictions.table.groupby("task")["clip_id"].nunique().to_dict()


def test_projected_labels_that_were_given_in_sight_are_not_tested(tmp_path, monkeypatch, capsys):
    """AB judged 15 of the 20 clips of each of four films in sight of a model's score.

    The labels are projected onto windows of 10 s, which are the clips again. An evaluation then trains on the
    4 * 15 = 60 clips, and does not test on them.
    """
    store = plant_store(tmp_path)
    judged_by_ab = judged("AB", n_in_sight=15)
    write_manifest(Manifest(tuple(judged_by_ab), Path()), tmp_path / "judged.csv")
    monkeypatch.chdir(tmp_path)

    assert obygaze("manifest", "project", "judged.csv", "--window", "10", "--out", "windows.csv") == 0
    assert obygaze("evaluate", "windows.csv", store, "--task", "en_s", "--model", "linear") == 0

    remarks = capsys.readouterr().err
    assert "60 clips judged with a model's score in sight: trained on, not tested" in remarks


@pytest.mark.parametrize(("first", "second"), [("AB", "CD"), ("CD", "AB")])
def test_a_model_is_tested_on_the_labels_that_an_annotator_gave_blindly(tmp_path, first, second):
    """Of the 20 clips of each of four films, AB judged the first 4 in sight of a score, and CD the first 10.

    So AB judged 4 * 16 = 64 clips blindly, and CD 4 * 10 = 40, whoever stands first in the manifest. A test
    where they agree needs two blind labels: in the 40 clips of CD.
    """
    rows = {"AB": judged("AB", n_in_sight=4), "CD": judged("CD", n_in_sight=10)}
    manifest = Manifest((*rows[first], *rows[second]), Path())
    store = of.open_store(plant_store(tmp_path))

    run = om.evaluate(om.load_dataset(store, manifest), ["linear"], "en_s")

    assert n_tested(run) == {"en_s>en_s@AB": 64, "en_s>en_s@CD": 40, "en_s>en_s@agreed": 40}
    assert run.record["clips"]["seen_score"] == 40


def test_folds_list_what_an_evaluation_tests(tmp_path, monkeypatch, capsys):
    """AB judged 15 of the 20 clips of each of four films in sight of a model's score, and 5 blindly.

    A fold tests the 5 of its film, and trains on all 3 * 20 of the others.
    """
    store = plant_store(tmp_path)
    write_manifest(Manifest(tuple(judged("AB", n_in_sight=15)), Path()), tmp_path / "judged.csv")
    monkeypatch.chdir(tmp_path)
    assert obygaze("evaluate", "judged.csv", store, "--task", "en_s", "--model", "linear", "--json") == 0
    tested = json.loads(capsys.readouterr().out)["record"]["clips"]["tested"]

    assert obygaze("folds", "judged.csv", "--task", "en_s", "--json") == 0

    listed = json.loads(capsys.readouterr().out)
    assert [len(fold["test"]) for fold in listed["folds"]] == [5, 5, 5, 5]
    assert [len(fold["train"]) for fold in listed["folds"]] == [60, 60, 60, 60]
    assert tested == 20
    assert any("60 clips judged with a model's score in sight" in note for note in listed["notes"])
