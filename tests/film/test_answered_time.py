"""Which seconds of a film annotators answered for: a comparison is of no others."""

from dataclasses import replace
from pathlib import Path

import pytest

from obygaze_features.manifest import Clip, Manifest, builtin_codebook
from obygaze_film import evaluate_films
from obygaze_film.errors import FilmError
from obygaze_film.evaluation import evaluation_report
from tests.film.page.invented import fake_scored_film, with_columns

MODEL = "pcbm_lr"
"""The model by which the films here are scored."""


@pytest.fixture(scope="module")
def film_of_60_rows():
    """A film of ten minutes, in 60 rows of 10 s, whose model calls every third row positive (S)."""
    film = fake_scored_film("tt1", n_rows=60, duration_s=600.0)
    is_called = [int(row % 3 == 0) for row in range(60)]
    return with_columns(
        film,
        start_s=[10.0 * row for row in range(60)],
        end_s=[10.0 * (row + 1) for row in range(60)],
        flags=[""] * 60,
        p=[0.9 if called else 0.1 for called in is_called],
        called=is_called,
    )


def annotation(row, level, annotator="AB", **extras):
    """Let an annotator label one row of the film, which lasts 10 s, with any other columns."""
    start_s = 10.0 * row
    return Clip(
        f"{annotator}-{row}",
        "tt1",
        start_s=start_s,
        end_s=start_s + 10.0,
        level=level,
        annotator=annotator,
        extras={name: str(value) for name, value in extras.items()},
    )


def level_like_the_model(row):
    """Return the level that the model gives a row: S (positive) to every third one, EN to the others."""
    return "S" if row % 3 == 0 else "EN"


def labelled_like_the_model(rows, annotator="AB"):
    """Let an annotator label rows of the film as its model calls them: S (positive) or EN (negative)."""
    return [annotation(row, level_like_the_model(row), annotator) for row in rows]


def compare(films, annotations):
    """Compare films with what people labelled. P-values do not matter here: two shifts are enough."""
    truth = Manifest(tuple(annotations), Path(), builtin_codebook("obygaze12"))
    return evaluate_films(films, truth, n_shifts=2)


def compared_seconds(measured):
    """Return how many seconds of the film tt1 are compared."""
    return measured.record["seconds"]["tt1"]["judged"]


def kappa_with_ab(measured):
    """Return the model's kappa with AB's labels."""
    values = measured.summary.set_index(["truth", "who", "metric"])["value"]
    return values["AB", MODEL, "kappa"]


def test_time_without_a_mark_is_negative_for_who_marks_only_what_they_find(film_of_60_rows):
    """AB marks as S every third row of 10 s, as the model calls them, and labels nothing else.

    Whoever marks S alone answered for all of the film, 600 s: what is not marked is negative. So AB and the
    model agree everywhere.
    """
    every_third_row = [annotation(row, "S") for row in range(0, 60, 3)]

    measured = compare([film_of_60_rows], every_third_row)

    assert compared_seconds(measured) == 600
    assert kappa_with_ab(measured) == pytest.approx(1.0)


def test_time_without_a_label_is_not_negative_by_an_annotator_who_labels_negative_time_too(film_of_60_rows):
    """AB labels the first 30 rows of 10 s, positive and negative ones, as the model does, and stops there.

    Who labels negative time has no answer for time without a label: AB answered for 300 s of 600 s. Only
    these are compared, where AB and the model agree (kappa 1), and the report says so.
    """
    measured = compare([film_of_60_rows], labelled_like_the_model(range(30)))

    assert compared_seconds(measured) == 300
    assert kappa_with_ab(measured) == pytest.approx(1.0)
    assert measured.record["unanswered_s"] == {"AB": 300}
    report = evaluation_report(measured)
    assert any(note.startswith("AB: 300 s have no answer") for note in report.notes)
    first_sentence, *_ = report.answers
    assert "in the 5.0 minutes of 10.0 minutes that" in first_sentence


def test_windows_that_were_not_drawn_are_no_answer(film_of_60_rows):
    """AB judged six windows of a draw, of 10 s each, and found S in all of them.

    A label with a place in a draw answers for its own window: nobody asked AB for the others.
    """
    judgements = []
    for number, row in enumerate([0, 3, 6, 30, 33, 36], start=1):
        judgements.append(annotation(row, "S", place=number))

    measured = compare([film_of_60_rows], judgements)

    assert compared_seconds(measured) == 60


def test_what_an_annotator_is_not_sure_of_is_no_answer(film_of_60_rows):
    """AB labels all 60 rows of 10 s as the model does, but is not sure (NS) of every sixth one.

    These are ten rows, of which 100 s are not compared; in the other 500 s AB and the model agree.
    """
    annotations = []
    for row in range(60):
        is_unsure = row % 6 == 0
        annotations.append(annotation(row, "NS" if is_unsure else level_like_the_model(row)))

    measured = compare([film_of_60_rows], annotations)

    assert compared_seconds(measured) == 500
    assert kappa_with_ab(measured) == pytest.approx(1.0)
    assert measured.record["unanswered_s"] == {"AB": 100}


def test_only_time_that_all_annotators_answered_for_is_compared(film_of_60_rows):
    """AB labels the first 40 of 60 rows of 10 s, and CD the last 40: they have 20 rows in common.

    Each has no answer for the other 20 rows, 200 s.
    """
    by_ab = labelled_like_the_model(range(40), "AB")
    by_cd = labelled_like_the_model(range(20, 60), "CD")

    measured = compare([film_of_60_rows], [*by_ab, *by_cd])

    assert compared_seconds(measured) == 200
    assert kappa_with_ab(measured) == pytest.approx(1.0)
    assert measured.record["unanswered_s"] == {"AB": 200, "CD": 200}


def test_annotators_without_a_second_in_common_are_refused(film_of_60_rows):
    """AB labels the first 30 of 60 rows, and CD the last 30: no time is left to compare."""
    by_ab = labelled_like_the_model(range(30), "AB")
    by_cd = labelled_like_the_model(range(30, 60), "CD")
    with pytest.raises(FilmError, match="all of a film's annotators answered for"):
        compare([film_of_60_rows], [*by_ab, *by_cd])


def test_labels_given_with_the_score_in_sight_are_no_answers(film_of_60_rows):
    """AB labels all 60 rows of 10 s, the first 45 with the model's score in sight (`seen_score` is 1).

    There AB says what the model says, and in the last 15 rows, without the score, the opposite everywhere.
    Whoever saw the score may follow it: only the last 150 s are compared. Kappa there is far below 0, and
    over all rows it would be above 0.
    """
    annotations = []
    for row in range(60):
        level = level_like_the_model(row)
        if row < 45:
            annotations.append(annotation(row, level, seen_score=1))
        else:
            annotations.append(annotation(row, "EN" if level == "S" else "S", seen_score=0))

    measured = compare([film_of_60_rows], annotations)

    assert compared_seconds(measured) == 150
    assert kappa_with_ab(measured) < 0
    assert measured.record["in_sight"] == {"AB": 45}
    notes = evaluation_report(measured).notes
    told = "AB: 45 labels were left out: given with a model's score in sight"
    assert any(note.startswith(told) for note in notes)


def test_an_annotator_of_positive_time_alone_is_left_out_of_a_film_if_one_of_their_marks_was_in_sight(
    film_of_60_rows,
):
    """AB and CD mark as S the 20 rows that the model calls; AB's first mark was made in sight of the score.

    Who marks positive time alone is taken to call all other time negative. If only that one mark were left
    out, AB would be taken to call its time negative, too. So none of AB's 20 marks counts in this film: its
    600 s are compared with CD's marks alone.
    """
    by_ab = [annotation(row, "S", "AB", seen_score=int(row == 0)) for row in range(0, 60, 3)]
    by_cd = [annotation(row, "S", "CD", seen_score=0) for row in range(0, 60, 3)]

    measured = compare([film_of_60_rows], [*by_ab, *by_cd])

    assert set(measured.summary["truth"]) == {"CD"}
    assert compared_seconds(measured) == 600
    assert measured.record["in_sight"] == {"AB": 20}


def test_films_that_were_labelled_in_sight_of_the_score_alone_are_refused(film_of_60_rows):
    """AB labelled all rows with the model's score in sight: no label says how far the two agree."""
    annotations = [annotation(row, level_like_the_model(row), seen_score=1) for row in range(60)]
    with pytest.raises(FilmError, match=r"in sight of a model's score .* by AB: judge blindly"):
        compare([film_of_60_rows], annotations)


def test_the_models_rate_is_of_the_seconds_that_are_compared(film_of_60_rows):
    """AB labels the first 30 of 60 rows. The model calls ten of these, and all of the later ones.

    A row that it calls has the probability .9, and any other one .1. Its expected share of the time that AB
    answered for is the mean of the first 30 rows.
    """
    is_called = [int(row % 3 == 0 or row >= 30) for row in range(60)]
    film_of_60_rows = with_columns(
        film_of_60_rows, p=[0.9 if called else 0.1 for called in is_called], called=is_called
    )

    measured = compare([film_of_60_rows], labelled_like_the_model(range(30)))

    rates = measured.by_film.set_index(["who", "metric"])["value"]
    expected_share = (10 * 0.9 + 20 * 0.1) / 30
    assert rates[MODEL, "rate"] == pytest.approx(expected_share)


def test_a_film_whose_annotators_have_no_second_in_common_is_left_out_with_this_reason(film_of_60_rows):
    """AB labels all of the film tt1. Of the film tt2 AB labels the first half, and CD the second half.

    So tt2 has no second that both answered for. The reason is not that the model could not judge it.
    """
    other_film = fake_scored_film("tt2", n_rows=60, duration_s=600.0)
    of_tt1 = labelled_like_the_model(range(60))
    of_tt2 = []
    for row in range(60):
        annotator = "AB" if row < 30 else "CD"
        label = annotation(row, level_like_the_model(row), annotator)
        of_tt2.append(replace(label, clip_id=f"b{row}", movie="tt2"))

    measured = compare([film_of_60_rows, other_film], [*of_tt1, *of_tt2])

    assert measured.record["not_answered"] == ["tt2"]
    assert measured.record["not_judged"] == []
