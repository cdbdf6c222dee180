"""Labels that were given in sight of a model's score are tested nowhere, and each output says how many."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.manifest import Clip, LabelPolicy, Manifest, write_manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_models.protocol import find_target, strict_folds
from obygaze_studies.obygaze12.paper_folds import list_folds
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


def test_clips_of_a_level_that_only_the_test_has_are_not_counted_as_of_other_levels(tmp_path):
    """AB gave the 20 clips of each of four films the levels S, HN and EN in turn.

    Models learn S against HN, and are tested on clips of EN too (`enhn_s`). The first 15 clips of each film
    were judged in sight of a score, so that 5 of a film are tested. The clips of EN among the 15 are neither
    trained on nor tested. Still they are counted as in sight, not as clips of levels that nobody asked for.
    """
    rows = judged("AB", n_in_sight=15)
    levels = ["S", "HN", "EN"] * len(rows)
    rows = [replace(row, level=level) for row, level in zip(rows, levels, strict=False)]
    store = of.open_store(plant_store(tmp_path))

    run = om.evaluate(om.load_dataset(store, Manifest(tuple(rows), Path())), ["linear"], "hn_s", "enhn_s")

    assert run.record["clips"]["tested"] == 4 * 5
    assert run.record["clips"]["seen_score"] == 4 * 15
    assert run.record["clips"]["other_levels"] == 0
    (note,) = [note for note in om.run_report(run).notes if "in sight" in note]
    assert note.endswith("in sight: trained on if the task has their level, not tested")


@pytest.mark.parametrize(("first", "second"), [("AB", "CD"), ("CD", "AB")])
def test_a_model_is_tested_on_clips_that_two_annotators_judged_blindly(tmp_path, first, second):
    """Of the 20 clips of each of four films, AB judged the first 4 in sight of a score, and CD the first 10.

    The last 10 clips of each film, 40 in all, have two blind labels. All tests compare the model with people,
    and need two: they are of these clips. The other 4 * 10 = 40 clips are counted as judged in sight by
    somebody. Neither depends on who stands first in the manifest.
    """
    rows = {"AB": judged("AB", n_in_sight=4), "CD": judged("CD", n_in_sight=10)}
    manifest = Manifest((*rows[first], *rows[second]), Path())
    store = of.open_store(plant_store(tmp_path))

    run = om.evaluate(om.load_dataset(store, manifest), ["linear"], "en_s")

    assert n_tested(run) == {"en_s>en_s@AB": 40, "en_s>en_s@CD": 40, "en_s>en_s@agreed": 40}
    assert run.record["clips"]["seen_score"] == 40


def test_the_row_of_the_other_annotators_is_of_labels_that_they_gave_blindly(tmp_path):
    """AB, CD and EF judged all clips. CD says the opposite of AB; EF says the same, in sight of a score.

    A table of results has a row "other annotators": how well their mean label predicts AB's. Only labels that
    were given blindly count, so that it is CD's, wrong of each clip. With labels in sight it would be 1/2.
    """
    by_ab = judged("AB", n_in_sight=0)
    by_ef = judged("EF", n_in_sight=CLIPS_A_FILM)
    opposite = {"S": "EN", "EN": "S"}
    by_cd = [replace(row, level=opposite[row.level]) for row in judged("CD", n_in_sight=0)]
    store = of.open_store(plant_store(tmp_path))

    data = om.load_dataset(store, Manifest((*by_ab, *by_cd, *by_ef), Path()))
    blind = om.evaluate(data, ["linear"], "en_s", experts="each").predictions.table
    with_all = om.evaluate(data, ["linear"], "en_s", experts="each", test_seen_scores=True).predictions.table

    def calls_of_others(table):
        """Return the labels of AB's clips, and the mean label that the others gave them."""
        rows = table[(table["model"] == "other_expert") & (table["task"] == "en_s>en_s@AB")]
        return rows["label"].to_numpy(), rows["score"].to_numpy()

    labels, mean_of_cd = calls_of_others(blind)
    assert (mean_of_cd == 1 - labels).all()
    _, mean_of_cd_and_ef = calls_of_others(with_all)
    assert (mean_of_cd_and_ef == 1 / 2).all()


def test_folds_for_other_tools_test_the_clips_that_an_evaluation_tests(tmp_path):
    """AB judged 5 of the 20 clips of each of four films in sight of a model's score: 15 clips are tested."""
    store = of.open_store(plant_store(tmp_path))
    manifest = Manifest(tuple(judged("AB", n_in_sight=5)), tmp_path)
    target = find_target("en_s", manifest.codebook)

    run = om.evaluate(om.load_dataset(store, manifest), ["linear"], "en_s")
    folds = strict_folds(manifest, target, target)

    rows_of_linear = run.predictions.table[run.predictions.table["model"] == "linear"]
    tested = [clip_id for fold in folds for clip_id in fold.test]
    assert sorted(tested) == sorted(rows_of_linear["clip_id"])
    assert [len(fold.test) for fold in folds] == [15] * 4
    assert [len(fold.train) for fold in folds] == [60] * 4
    assert "20 clips judged with a model's score in sight: trained on, not tested" in notes_of_folds(manifest)


def test_folds_say_that_clips_in_sight_are_trained_on_only_if_the_task_has_their_level(tmp_path):
    """Models learn EN against S, and are tested on clips of HN too (`enhn_s`).

    Two clips of HN were judged with a score in sight, all other clips blindly. The note on clips in sight
    must not say that these two are trained on: HN is a level of the test alone.
    """
    first_of_film0, second_of_film0, *others = judged("AB", n_in_sight=2)
    in_sight = [replace(row, level="HN") for row in (first_of_film0, second_of_film0)]
    blind = [replace(row, extras={"seen_score": "0"}) for row in others]
    manifest = Manifest((*in_sight, *blind), tmp_path)

    (note,) = [note for note in notes_of_folds(manifest, test="enhn_s") if "in sight" in note]

    assert note == (
        "2 clips judged with a model's score in sight: trained on if the task has their level, not tested"
    )


def notes_of_folds(manifest, test="en_s"):
    """Return the notes of `obygaze folds` for the task EN vs S, one a line."""
    trained = find_target("en_s", manifest.codebook)
    tested = find_target(test, manifest.codebook)
    answer = list_folds(manifest, trained, tested, "strict", policy=LabelPolicy.RAW, movies=False)
    return answer.document["notes"]
