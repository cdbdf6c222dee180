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
from obygaze_models.commands.annotation_tables import time_left_out
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.alttest import compare_machines
from obygaze_models.evaluation.unitising import unitised_agreement
from tests.command import obygaze


def judgement(annotator, number, level, *, seen_score, film="m", model=""):
    """Judge the window of 10 s with this number, the first from 0 s on.

    `seen_score` is "1" if the annotator saw a model's score, "0" if they judged blindly, and "" if nobody
    knows. `model` is the name of the model where the annotator is a machine.
    """
    extras = {"seen_score": seen_score, "model": model}
    span = (10.0 * number, 10.0 * number + 10)
    return Clip(f"{film}-{number}", film, "", *span, level, (), annotator, extras)


def manifest(*rows):
    return Manifest(tuple(rows), Path())


def copied_in_sight(film="m"):
    """Judge 40 windows: AB and CD copied a score in 30 of them, and disagree in each of the 10 blind ones.

    The score says EN and S in turn. In all windows AB and the machine gpt judge as the score does.
    """
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
    """Return the rows of AB and CD."""
    return [row for row in rows if row.annotator != "gpt"]


def test_gamma_and_alpha_are_those_of_the_blind_judgements():
    """AB and CD judged 40 windows. In 30 they copied a model's score, in 10 they judged blindly.

    In these 10 one says EN and the other S, in 5 windows each way. Their disagreement is 1 (10 of 10).

    For gamma .5 is expected, as each says EN in half of the windows: 1 - 1 / .5 = -1. Alpha draws two of the
    20 labels, of which 10 are EN, without putting the first back: they differ with a probability of 10 / 19,
    and 1 - 1 / (10 / 19) = -.9.
    """
    judged_by_two_people = manifest(*people(copied_in_sight()))

    (pair,) = agreement(judged_by_two_people)
    alpha, _ = level_alphas(judged_by_two_people)
    (levels_of_pair,) = level_pairs(judged_by_two_people)

    gamma = pair.all_levels
    assert gamma.n_clips == 10
    assert gamma.value == -1.0
    assert alpha.n_clips == 10
    assert round(alpha.nominal, 3) == -0.9
    assert levels_of_pair.counts == {("EN", "S"): 5, ("S", "EN"): 5}


def test_judgements_that_do_not_say_whether_they_are_blind_count_and_are_counted():
    """AB and CD both judged three windows: the first with an empty cell, one blindly, and one in sight.

    An empty cell is what annotations have that were made without any model, so it is not left out. The two
    judgements in sight are, and agreement is of the other two windows.
    """
    rows = []
    for annotator in ("AB", "CD"):
        rows.append(judgement(annotator, 0, "S", seen_score=""))
        rows.append(judgement(annotator, 1, "EN", seen_score="0"))
        rows.append(judgement(annotator, 2, "EN", seen_score="1"))
    judged = manifest(*rows)

    blind = blind_labels(judged)
    (pair,) = agreement(judged)

    assert blind.n_left_out == 2
    assert blind.n_unknown == 2
    assert pair.all_levels.n_clips == 2


def test_a_person_judged_blindly_and_in_sight_counts_by_the_blind_judgement():
    """AB judged the window from 0 to 10 s twice: as EN blindly, and as S in sight of a score. CD says EN."""
    blind = judgement("AB", 0, "EN", seen_score="0")
    in_sight = Clip(
        "again",
        "m",
        "",
        start_s=0,
        end_s=10,
        level="S",
        annotator="AB",
        extras={"seen_score": "1", "model": ""},
    )
    by_cd = judgement("CD", 0, "EN", seen_score="0")

    (pair,) = level_pairs(manifest(blind, in_sight, by_cd))

    assert pair.counts == {("EN", "EN"): 1}


def test_of_free_segments_a_reading_of_a_film_is_left_out_whole():
    """AB and CD each marked two segments of the films a and b. AB marked one of film a in sight of a score.

    If this one alone were left out, AB would seem to have found less there than CD. So both of AB's segments
    of film a are left out, and the two annotators are compared in film b alone.
    """
    segments = []
    for film in ("a", "b"):
        for annotator in ("AB", "CD"):
            is_in_sight = film == "a" and annotator == "AB"
            seen_score_of_first = {"seen_score": "1" if is_in_sight else "0"}
            seen_score_of_second = {"seen_score": "0"}
            segments += [
                Clip(
                    f"{film}{annotator}1",
                    film,
                    "",
                    start_s=0,
                    end_s=10,
                    level="S",
                    annotator=annotator,
                    extras=seen_score_of_first,
                ),
                Clip(
                    f"{film}{annotator}2",
                    film,
                    "",
                    start_s=30,
                    end_s=44,
                    level="S",
                    annotator=annotator,
                    extras=seen_score_of_second,
                ),
            ]
    marked = manifest(*segments)

    alphas = unitised_alphas(marked)
    gammas = unitised_agreement(marked, samples=5)
    blind = blind_labels(marked, whole_films=True)

    assert [alpha.movie for alpha in alphas] == ["b"]
    assert [gamma.movie for gamma in gammas] == ["b"]
    assert blind.n_left_out == 2


def test_segments_in_sight_of_a_score_are_counted_once_among_those_left_out():
    """AB marked 0 to 100 s and CD 50 to 150 s, both what is negative too: they have 50 s in common.

    So 50 s of segments of each do not count. EF marked 0 to 200 s in sight of a score, which has a count of
    its own: 20 segments.
    """
    rows = []
    for annotator, first_s, end_s, seen_score in (("AB", 0, 100, 0), ("CD", 50, 150, 0), ("EF", 0, 200, 1)):
        for start_s in range(first_s, end_s, 10):
            level = "S" if start_s // 10 % 2 else "EN"
            span = (float(start_s), float(start_s + 10))
            row_id = f"{annotator}{start_s}"
            rows.append(Clip(row_id, "a", "", *span, level, (), annotator, {"seen_score": str(seen_score)}))

    blind = blind_labels(manifest(*rows), whole_films=True)

    assert blind.n_left_out == 20
    (told,) = time_left_out(blind.manifest)
    assert told.startswith("100 s of segments left out")


def test_a_machine_may_not_stand_in_by_judgements_that_were_made_in_sight_of_a_score():
    """AB, CD and the machine gpt judged 40 windows of each of four films.

    In 30 windows of each, AB and CD copied the score that gpt copied too. In the other 10 they judged
    blindly, and never agree with each other. Only these count: 40 of each person, while 4 * 30 * 2 = 240
    judgements are in sight. People who never agree cannot tell whether a machine may stand in for one.
    """
    rows = []
    for film in ("a", "b", "c", "d"):
        rows += copied_in_sight(film)
    judged = manifest(*rows)

    result = compare_machines(judged, judged)["gpt"]

    assert result.annotators == {"AB": 40, "CD": 40}
    assert result.in_sight == 240
    assert result.record()["in_sight"] == 240
    assert result.answer == "these annotators agree too little to tell"


def test_a_machine_is_not_compared_by_few_blind_judgements():
    """AB and CD judged 40 windows, of which 10 blindly. The comparison with the machine gpt needs 30 of each.

    The reason counts the 2 * 30 = 60 judgements that are left out.
    """
    judged = manifest(*copied_in_sight())
    with pytest.raises(ProtocolError, match=r"AB 10, CD 10; 60 judgements in sight of a model's score"):
        compare_machines(judged, judged)


def test_agreement_without_a_blind_judgement_is_refused_with_the_reason():
    """AB and CD judged 40 windows. Here are only the 30 that both judged in sight of a model's score."""
    rows_in_sight = [row for row in people(copied_in_sight()) if row.extras["seen_score"] == "1"]
    with pytest.raises(ManifestError, match=r"nothing to compare; 60 judgements in sight"):
        agreement(manifest(*rows_in_sight))


@pytest.mark.parametrize("command", ["agreement", "disagreements"])
def test_commands_say_how_many_judgements_they_leave_out(tmp_path, capsys, command):
    """In judged.csv, AB and CD judged 30 of 40 windows in sight of a model's score: 2 * 30 judgements."""
    write_manifest(manifest(*people(copied_in_sight())), tmp_path / "judged.csv")

    assert obygaze("manifest", command, tmp_path / "judged.csv") == 0
    assert "left out: 60 judgements in sight of a model's score (seen_score 1)" in capsys.readouterr().out

    assert obygaze("manifest", command, tmp_path / "judged.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["in_sight"] == 60
