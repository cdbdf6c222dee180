"""A machine among the annotators is named as one, and what people say is trained on and tested."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.manifest import Clip, Manifest, merge_annotators, write_manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_models.protocol.targets import labels_of
from obygaze_models.report.run_tables import short_report
from tests.command import obygaze
from tests.planted_models import Corpus

FILMS = [f"film{number}" for number in range(4)]
CLIPS_A_FILM = 20
N_CLIPS = 80


def row(film, number, annotator, is_positive, model=""):
    """Label a clip S or EN; `model` is the name of the model where the annotator is a machine."""
    level = "S" if is_positive else "EN"
    clip_id = f"{film}-{number:02}"
    return Clip(clip_id, film, "", level=level, annotator=annotator, extras={"model": model})


def plant_clips_of_people_and_gpt(folder, *, people):
    """Plant 80 clips whose features know people's labels.

    People call every fourth clip S, from the first on. The machine gpt calls every second clip S, from the
    second on: none of people's.
    """
    generator = np.random.default_rng(0)
    movie_of = {}
    rows = []
    X = []
    for film in FILMS:
        for number in range(CLIPS_A_FILM):
            is_positive = number % 4 == 0
            movie_of[f"{film}-{number:02}"] = film
            X.append(generator.normal(size=3) + 4 * is_positive)
            rows += [row(film, number, person, is_positive) for person in people]
            rows.append(row(film, number, "gpt", number % 2 == 1, model="gpt-9"))
    store = seal_arrays(folder / "store", movie_of, {"lab": {"pooled": np.array(X, np.float32)}})
    return Corpus(of.open_store(store), Manifest(tuple(rows), Path()))


def tasks_of(run):
    """Return what a run trains on and tests: en_s>en_s@AB tests EN vs S on the labels of AB."""
    return set(run.predictions.table["task"])


def n_positive(labels):
    return int((labels.levels == "S").sum())


@pytest.mark.parametrize("people", [["AB"], ["AB", "CD"]])
def test_merged_labels_are_those_of_people(tmp_path, people):
    """Of 80 clips people call 20 S, and the machine gpt calls 40 others S.

    The merged labels have the 20 of people: with the machine they would have 60. Its own labels are kept
    beside, among those of annotators.
    """
    planted = plant_clips_of_people_and_gpt(tmp_path, people=people)

    labels = labels_of(planted.manifest)

    assert n_positive(labels) == 20
    assert labels.annotators == tuple(people)
    assert list(labels.people) == people
    assert labels.machines == {"gpt": 80}
    assert n_positive(labels.experts["gpt"]) == 40


def test_a_clip_that_only_a_machine_labelled_has_no_merged_label_beside_clips_that_people_labelled(tmp_path):
    """AB labelled all clips but those of film3, and the machine gpt all. Merged labels are those of people.

    So clips of film3 have none, an empty level.
    """
    planted = plant_clips_of_people_and_gpt(tmp_path, people=["AB"])
    clips = [clip for clip in planted.manifest if clip.annotator == "gpt" or clip.movie != "film3"]

    labels = labels_of(planted.manifest.with_clips(clips))

    assert set(labels.levels[labels.movies == "film3"].tolist()) == {""}


def test_an_evaluation_of_one_person_and_a_machine_is_that_of_the_person(tmp_path):
    """AB and the machine gpt labelled the clips. The results are those of AB's labels alone.

    There is no test on the machine's labels, and it is no baseline "the other annotator". That its labels
    were left out is recorded and reported.
    """
    planted = plant_clips_of_people_and_gpt(tmp_path, people=["AB"])
    alone = planted.manifest.with_clips(clip for clip in planted.manifest if clip.annotator == "AB")

    run = om.evaluate(om.load_dataset(planted.store, planted.manifest), ["linear"], "en_s")
    run_alone = om.evaluate(om.load_dataset(planted.store, alone), ["linear"], "en_s")

    assert tasks_of(run) == {"en_s>en_s"}
    assert run.metrics.equals(run_alone.metrics)
    assert run.record["machines"] == {
        "gpt": "80 labels, left out (--experts each, soft and noisy train on them)"
    }
    assert any("labels of a machine, gpt: 80 labels, left out" in note for note in short_report(run).notes)


def test_two_people_and_a_machine_are_tested_on_people(tmp_path):
    """AB, CD and the machine gpt labelled the clips. Tests are on AB, on CD, and where these two agree."""
    planted = plant_clips_of_people_and_gpt(tmp_path, people=["AB", "CD"])

    run = om.evaluate(om.load_dataset(planted.store, planted.manifest), ["linear"], "en_s")

    assert tasks_of(run) == {"en_s>en_s@AB", "en_s>en_s@CD", "en_s>en_s@agreed"}


def test_a_model_is_trained_on_a_machines_labels_where_that_is_asked_for(tmp_path):
    """AB and the machine gpt labelled 80 clips, and `experts="each"` asks for a model of the labels of each.

    The model of the machine's labels is tested on AB's labels, as the other one is.
    """
    planted = plant_clips_of_people_and_gpt(tmp_path, people=["AB"])

    run = om.evaluate(om.load_dataset(planted.store, planted.manifest), ["linear"], "en_s", experts="each")

    assert run.titles["linear@gpt"].endswith("trained on gpt (a machine)")
    assert tasks_of(run) == {"en_s>en_s@AB"}
    assert run.record["machines"] == {"gpt": "80 labels, trained on, not tested"}


def test_where_no_person_labelled_clips_models_are_trained_and_tested_on_the_labels_of_machines(tmp_path):
    """Two machines, gpt and vlm, gave the same labels to 80 clips. Labels of people would go before theirs.

    The run tests a model of EN vs S on the labels of each machine (the task en_s>en_s@gpt, and @vlm), and on
    the clips on which both agree (@agreed). Its record says of each what its labels were used for.
    """
    planted = plant_clips_of_people_and_gpt(tmp_path, people=[])
    rows_of_vlm = [replace(clip, annotator="vlm", extras={"model": "vlm-2"}) for clip in planted.manifest]
    of_two_machines = planted.manifest.with_clips([*planted.manifest, *rows_of_vlm])

    run = om.evaluate(om.load_dataset(planted.store, of_two_machines), ["linear"], "en_s")

    assert tasks_of(run) == {"en_s>en_s@gpt", "en_s>en_s@vlm", "en_s>en_s@agreed"}
    assert run.record["machines"]["gpt"] == "80 labels, trained on and tested"


def test_labels_that_somebody_merged_count_and_are_named(tmp_path):
    """Somebody merged the labels of AB and the machine gpt before, by the higher level of the two.

    AB calls 20 of 80 clips S, and the machine 40 others. So the merged label is the machine's in these 40,
    and in the 20 clips that both call EN: in 60, which have the name of its model, gpt-9.
    """
    planted = plant_clips_of_people_and_gpt(tmp_path, people=["AB"])
    merged = merge_annotators(planted.manifest, "highest")

    run = om.evaluate(om.load_dataset(planted.store, merged), ["linear"], "en_s")

    assert run.record["machines"] == {"gpt-9": "60 labels, trained on and tested"}


@pytest.mark.parametrize(
    ("people", "annotators"),
    [
        (["AB"], "1 person and 1 machine (gpt)"),
        (["AB", "CD"], "2 people and 1 machine (gpt)"),
    ],
)
def test_agreement_counts_people_and_machines_apart(tmp_path, capsys, people, annotators):
    """The clips of labels.csv were labelled by people and by the machine gpt, which the command names."""
    planted = plant_clips_of_people_and_gpt(tmp_path, people=people)
    write_manifest(planted.manifest, tmp_path / "labels.csv")

    assert obygaze("manifest", "agreement", tmp_path / "labels.csv") == 0
    printed_in_one_line = " ".join(capsys.readouterr().out.split())
    assert annotators in printed_in_one_line
    assert "machine among the annotators, which count in the numbers above: gpt" in printed_in_one_line

    assert obygaze("manifest", "agreement", tmp_path / "labels.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["machines"] == ["gpt"]
