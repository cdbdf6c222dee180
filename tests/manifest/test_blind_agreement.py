"""Agreement is measured on blind judgements: whoever saw a model's score tends to agree with it."""

import json
from pathlib import Path

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    Clip,
    Manifest,
    agreement,
    blind_labels,
    level_alphas,
    level_pairs,
    unitised_alphas,
    write_manifest,
)
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.alttest import compare_machines
from obygaze_models.evaluation.unitising import unitised_agreement
from tests.command import obygaze


def judgement(annotator, number, level, *, seen_score, film="m", model=""):
    """Judge the window of 10 s with this number."""
    extras = {"seen_score": seen_score, "model": model}
    span = (10.0 * number, 10.0 * number + 10)
    return Clip(f"{film}-{number}", film, "", *span, level, (), annotator, extras)


def manifest(*rows):
    return Manifest(tuple(rows), Path())


def copied_in_sight(film="m"):
    """Judge 40 windows: AB and CD copied a score in 30 of them, and disagree in each of the 10 blind ones."""
    rows = []
    for number in range(40):
        score = "S" if number % 2 else "EN"
        opposite = "EN" if number % 2 else "S"
        is_in_sight = number < 30
        level_of_cd = score if is_in_sight else opposite
        seen_score = "1" if is_in_sight else "0"
        rows.append(judgement("AB", number, score, seen_score=seen_score, film=film))
        rows.append(judgement("CD", number, level_of_cd, seen_score=seen_score, film=film))
        rows.append(judgement("gpt", number, score, seen_score="", film=film, model="gpt-9"))
    return rows


def people(rows):
    return [row for row in rows if row.annotator != "gpt"]


def test_gamma_and_alpha_are_those_of_the_blind_judgements():
    """Blindly the two never agree. With the 30 copied levels they would seem to agree well."""
    judged = manifest(*people(copied_in_sight()))

    (pair,) = agreement(judged)
    all_levels, _ = level_alphas(judged)

    assert (pair.all_levels.n_clips, pair.all_levels.value) == (10, -1.0)
    assert (all_levels.n_clips, round(all_levels.nominal, 3)) == (10, -0.9)
    assert level_pairs(judged)[0].counts == {("EN", "S"): 5, ("S", "EN"): 5}


def test_judgements_that_do_not_say_whether_they_are_blind_count_and_are_counted():
    """An empty cell is what a person's annotations have that were made without any model."""
    rows = []
    for annotator in ("AB", "CD"):
        rows.append(judgement(annotator, 0, "S", seen_score=""))
        rows.append(judgement(annotator, 1, "EN", seen_score="0"))
        rows.append(judgement(annotator, 2, "EN", seen_score="1"))

    blind = blind_labels(manifest(*rows))

    assert (blind.n_left_out, blind.n_unknown) == (2, 2)
    assert agreement(manifest(*rows))[0].all_levels.n_clips == 2


def test_a_person_judged_blindly_and_in_sight_counts_by_the_blind_judgement():
    """AB judged the window twice, which is two rows of other ids: the level S was given in sight."""
    in_sight = Clip("again", "m", "", 0, 10, "S", (), "AB", {"seen_score": "1", "model": ""})
    rows = (judgement("AB", 0, "EN", seen_score="0"), in_sight, judgement("CD", 0, "EN", seen_score="0"))
    assert level_pairs(manifest(*rows))[0].counts == {("EN", "EN"): 1}


def test_of_free_segments_a_reading_of_a_film_is_left_out_whole():
    """AB marked one segment of film a in sight: without it, AB would have marked less there."""
    segments = []
    for film in ("a", "b"):
        for annotator in ("AB", "CD"):
            is_in_sight = film == "a" and annotator == "AB"
            first = {"seen_score": "1" if is_in_sight else "0"}
            segments += [
                Clip(f"{film}{annotator}1", film, "", 0, 10, "S", (), annotator, first),
                Clip(f"{film}{annotator}2", film, "", 30, 44, "S", (), annotator, {"seen_score": "0"}),
            ]

    assert [alpha.movie for alpha in unitised_alphas(manifest(*segments))] == ["b"]
    assert [pair.movie for pair in unitised_agreement(manifest(*segments), samples=5)] == ["b"]
    assert blind_labels(manifest(*segments), whole_films=True).n_left_out == 2


def test_a_machine_may_not_stand_in_by_judgements_that_were_made_in_sight_of_a_score():
    """In the copied 30 windows of four films both people agree with the machine; blindly CD never does."""
    rows = []
    for film in ("a", "b", "c", "d"):
        rows += copied_in_sight(film)
    judged = manifest(*rows)

    result = compare_machines(judged, judged)["gpt"]

    assert result.annotators == {"AB": 40, "CD": 40}
    assert result.in_sight == 4 * 30 * 2
    assert result.record()["in_sight"] == 240
    assert result.answer == "these annotators agree too little to tell"


def test_too_few_blind_judgements_are_refused_with_the_reason():
    """In one film 10 windows were judged blindly: the test needs 30."""
    judged = manifest(*copied_in_sight())
    with pytest.raises(ProtocolError, match=r"AB 10, CD 10; 60 judgements in sight of a model's score"):
        compare_machines(judged, judged)
    all_in_sight = [row for row in people(judged) if row.extras["seen_score"] == "1"]
    with pytest.raises(ManifestError, match=r"nothing to compare; 60 judgements in sight"):
        agreement(manifest(*all_in_sight))


@pytest.mark.parametrize("command", ["agreement", "disagreements"])
def test_commands_say_how_many_judgements_they_leave_out(tmp_path, capsys, command):
    write_manifest(manifest(*people(copied_in_sight())), tmp_path / "judged.csv")

    assert obygaze("manifest", command, tmp_path / "judged.csv") == 0
    assert "left out: 60 judgements in sight of a model's score (seen_score 1)" in capsys.readouterr().out

    assert obygaze("manifest", command, tmp_path / "judged.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["in_sight"] == 60
