"""Agreement is measured on blind judgements: whoever saw a model's score tends to agree with it."""

import json
from pathlib import Path

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
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
from tests.manifest.judged_clips import judged_clip


def manifest(*rows):
    return Manifest(tuple(rows), Path())


def forty_judged_windows_10_of_them_blind(film="m"):
    """Judge 40 windows: AB and CD copied a score in 30 of them, and disagree in each of the 10 blind ones.

    The score says EN and S in turn. In all windows AB and the machine gpt judge as the score does.
    """
    rows = []
    for number in range(40):
        span = {"film": film, "start_s": 10 * number, "end_s": 10 * number + 10}
        score = "S" if number % 2 else "EN"
        opposite = "EN" if number % 2 else "S"
        is_in_sight = number < 30
        level_of_cd = score if is_in_sight else opposite
        seen_score = "1" if is_in_sight else "0"
        rows.append(judged_clip(score, by="AB", seen_score=seen_score, model="", **span))
        rows.append(judged_clip(level_of_cd, by="CD", seen_score=seen_score, model="", **span))
        rows.append(judged_clip(score, by="gpt", seen_score="", model="gpt-9", **span))
    return rows


def rows_of_people(rows):
    """Return the rows of AB and CD."""
    return [row for row in rows if row.annotator != "gpt"]


def test_gamma_is_that_of_the_blind_judgements():
    """AB and CD judged 40 windows. In 30 they saw a model's score, and both said what it says.

    In the 10 that they judged blindly they always differ; each says EN in 5 of them and S in 5. By chance
    they would differ in half of them, so that gamma, 1 - observed / expected, is 1 - 1 / .5 = -1.
    """
    judged_by_two_people = manifest(*rows_of_people(forty_judged_windows_10_of_them_blind()))

    (pair,) = agreement(judged_by_two_people)
    (levels_of_pair,) = level_pairs(judged_by_two_people)

    gamma = pair.all_levels
    assert gamma.n_clips == 10
    assert gamma.value == -1.0
    assert levels_of_pair.counts == {("EN", "S"): 5, ("S", "EN"): 5}


def test_alpha_is_that_of_the_blind_judgements():
    """AB and CD copied a score in 30 of 40 windows. In the 10 that they judged blindly they always differ.

    Alpha expects what two of these 20 labels do, 10 EN and 10 S, if one is drawn after the other: they differ
    with a probability of 10 / 19, and 1 - 1 / (10 / 19) = -.9.
    """
    judged_by_two_people = manifest(*rows_of_people(forty_judged_windows_10_of_them_blind()))

    alpha_of_all_levels, _ = level_alphas(judged_by_two_people)

    assert alpha_of_all_levels.n_clips == 10
    assert round(alpha_of_all_levels.nominal, 3) == -0.9


def test_agreement_leaves_out_judgements_in_sight_of_a_score_and_keeps_those_that_may_be_blind():
    """AB and CD judged three windows: one blindly, one in sight of a score, and one with an empty seen_score.

    An empty cell is what annotations have that were made without any model, so they are used, and their
    number is told (`n_unknown`: one of AB, one of CD). The two judgements in sight are left out, so that
    agreement is of the other two windows.
    """
    judgements = []
    for annotator in ("AB", "CD"):
        unknown = judged_clip("S", by=annotator, start_s=0, end_s=10, seen_score="")
        blind = judged_clip("EN", by=annotator, start_s=10, end_s=20, seen_score="0")
        in_sight = judged_clip("EN", by=annotator, start_s=20, end_s=30, seen_score="1")
        judgements += [unknown, blind, in_sight]
    judged = manifest(*judgements)

    labels_to_compare = blind_labels(judged)
    (agreement_of_ab_and_cd,) = agreement(judged)

    assert labels_to_compare.n_left_out == 2
    assert labels_to_compare.n_unknown == 2
    assert agreement_of_ab_and_cd.all_levels.n_clips == 2


def test_a_person_judged_blindly_and_in_sight_counts_by_the_blind_judgement():
    """AB judged the window from 0 to 10 s twice: as EN blindly, and as S in sight of a score. CD says EN.

    So the two agree: in one window the levels (of AB, of CD) are EN and EN.
    """
    blind = judged_clip("EN", by="AB", start_s=0, end_s=10, seen_score="0")
    in_sight = judged_clip("S", by="AB", start_s=0, end_s=10, seen_score="1", clip_id="again")
    by_cd = judged_clip("EN", by="CD", start_s=0, end_s=10, seen_score="0")

    (pair,) = level_pairs(manifest(blind, in_sight, by_cd))

    assert pair.counts == {("EN", "EN"): 1}


def test_all_segments_of_an_annotator_in_a_film_are_left_out_where_one_was_marked_in_sight_of_a_score():
    """AB and CD marked two segments each in the films a and b, but for one of AB's in film a all blindly.

    If this one alone were left out, AB would seem to have found less there than CD. So both of AB's segments
    of film a are left out, and the two annotators are compared in film b alone.
    """
    marked = manifest(
        judged_clip("S", film="a", by="AB", start_s=0, end_s=10, seen_score="1"),
        judged_clip("S", film="a", by="AB", start_s=30, end_s=44, seen_score="0"),
        judged_clip("S", film="a", by="CD", start_s=0, end_s=10, seen_score="0"),
        judged_clip("S", film="a", by="CD", start_s=30, end_s=44, seen_score="0"),
        judged_clip("S", film="b", by="AB", start_s=0, end_s=10, seen_score="0"),
        judged_clip("S", film="b", by="AB", start_s=30, end_s=44, seen_score="0"),
        judged_clip("S", film="b", by="CD", start_s=0, end_s=10, seen_score="0"),
        judged_clip("S", film="b", by="CD", start_s=30, end_s=44, seen_score="0"),
    )

    alphas = unitised_alphas(marked)
    gammas = unitised_agreement(marked, samples=5)
    blind = blind_labels(marked, whole_films=True)

    assert [alpha.movie for alpha in alphas] == ["b"]
    assert [gamma.movie for gamma in gammas] == ["b"]
    assert blind.n_left_out == 2


def segments_of_10_s(*, by, start_s, end_s, seen_score):
    """Mark segments of 10 s one after another, EN and S in turn: the annotator marks what is negative too."""
    segments = []
    for number in range(start_s // 10, end_s // 10):
        level = "S" if number % 2 else "EN"
        span = {"start_s": 10 * number, "end_s": 10 * number + 10}
        segments.append(judged_clip(level, by=by, seen_score=seen_score, **span))
    return segments


def test_segments_in_sight_of_a_score_are_counted_once_among_those_left_out():
    """Segments last 10 s. AB marked 0 to 100 s and CD 50 to 150 s, so 50 s of each are not compared: 100 s.

    EF marked 0 to 200 s in sight of a score: these 20 segments are counted apart, and not again in the 100 s.
    """
    segments = [
        *segments_of_10_s(by="AB", start_s=0, end_s=100, seen_score="0"),
        *segments_of_10_s(by="CD", start_s=50, end_s=150, seen_score="0"),
        *segments_of_10_s(by="EF", start_s=0, end_s=200, seen_score="1"),
    ]

    blind = blind_labels(manifest(*segments), whole_films=True)

    assert blind.n_left_out == 20
    (told,) = time_left_out(blind.manifest)
    assert told.startswith("100 s of segments left out")


def test_a_machine_may_not_stand_in_by_judgements_that_were_made_in_sight_of_a_score():
    """AB, CD and the machine gpt judged 40 windows of each of four films. In 30 of them all copied a score.

    These are 4 * 30 * 2 = 240 judgements of people in sight. Only the other 10 of each film count, 4 * 10 of
    each person, in which AB and CD never agree: so they can't tell whether a machine may stand in.
    """
    rows = []
    for film in ("a", "b", "c", "d"):
        rows += forty_judged_windows_10_of_them_blind(film)
    judged = manifest(*rows)

    result = compare_machines(judged, judged)["gpt"]

    assert result.annotators == {"AB": 40, "CD": 40}
    assert result.in_sight == 240
    assert result.record()["in_sight"] == 240
    assert result.answer == "these annotators agree too little to tell"


def test_a_machine_is_not_compared_by_few_blind_judgements():
    """AB, CD and the machine gpt judged 40 windows, of which AB and CD judged 10 blindly.

    To compare a machine with people, 30 blind judgements of each person are needed. The reason counts those
    that there are, and the 2 * 30 = 60 that AB and CD made in sight of a score, which are left out.
    """
    judged = manifest(*forty_judged_windows_10_of_them_blind())
    with pytest.raises(ProtocolError, match=r"AB 10, CD 10; 60 judgements in sight of a model's score"):
        compare_machines(judged, judged)  # one table has the rows of the people and of the machine


def test_agreement_without_a_blind_judgement_is_refused_with_the_reason():
    """AB and CD judged 40 windows. Here are only the 30 that both judged in sight of a model's score."""
    judged_by_two_people = rows_of_people(forty_judged_windows_10_of_them_blind())
    rows_in_sight = [row for row in judged_by_two_people if row.extras["seen_score"] == "1"]

    with pytest.raises(ManifestError, match=r"nothing to compare; 60 judgements in sight"):
        agreement(manifest(*rows_in_sight))


@pytest.mark.parametrize("command", ["agreement", "disagreements"])
def test_commands_say_how_many_judgements_they_leave_out(tmp_path, capsys, command):
    """In judged.csv, AB and CD judged 30 of 40 windows in sight of a model's score: 2 * 30 judgements."""
    write_manifest(
        manifest(*rows_of_people(forty_judged_windows_10_of_them_blind())), tmp_path / "judged.csv"
    )

    assert obygaze("manifest", command, tmp_path / "judged.csv") == 0
    assert "left out: 60 judgements in sight of a model's score (seen_score 1)" in capsys.readouterr().out

    assert obygaze("manifest", command, tmp_path / "judged.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["in_sight"] == 60
