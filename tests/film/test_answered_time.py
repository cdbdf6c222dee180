"""Which seconds of a film annotators answered for: a comparison is of no others."""

from dataclasses import replace
from pathlib import Path

import pytest

from obygaze_features.manifest import Clip, Manifest, builtin_codebook
from obygaze_film import evaluate_films
from obygaze_film.errors import FilmError
from obygaze_film.evaluation import evaluation_report
from tests.film.page.invented import invented_film, with_columns

FILM_S = 600.0
ROW_S = 10.0


@pytest.fixture(scope="module")
def film():
    """A film of ten minutes whose model calls every third row of 10 s positive (S)."""
    film = invented_film("tt1", n_rows=60, duration_s=FILM_S)
    is_called = [int(row % 3 == 0) for row in range(60)]
    return with_columns(
        film,
        start_s=[ROW_S * row for row in range(60)],
        end_s=[ROW_S * (row + 1) for row in range(60)],
        flags=[""] * 60,
        p=[0.9 if called else 0.1 for called in is_called],
        called=is_called,
    )


def span(row, level, annotator="AB", **extras):
    """Make the annotation of one row of the film."""
    start_s = ROW_S * row
    return Clip(
        f"{annotator}-{row}",
        "tt1",
        start_s=start_s,
        end_s=start_s + ROW_S,
        level=level,
        annotator=annotator,
        extras={name: str(value) for name, value in extras.items()},
    )


def level_like_the_model(row):
    return "S" if row % 3 == 0 else "EN"


def compared(film, annotations):
    """Compare the film with annotations; return the seconds compared and AB's kappa with the model."""
    measured = evaluate_films(
        [film], Manifest(tuple(annotations), Path(), builtin_codebook("obygaze12")), n_shifts=2
    )
    table = measured.summary.set_index(["truth", "who", "metric"])["value"]
    model = measured.record["model"]
    return measured.record["seconds"]["tt1"]["judged"], table["AB", model, "kappa"], measured


def test_time_without_a_mark_is_negative_for_who_marks_only_what_they_find(film):
    annotations = [span(row, "S") for row in range(0, 60, 3)]
    seconds, kappa, _ = compared(film, annotations)
    assert seconds == 600
    assert kappa == pytest.approx(1.0)


def test_time_without_a_mark_is_no_answer_of_who_marks_what_is_negative_too(film):
    """AB judges the first five minutes as the model does, and stops there."""
    annotations = [span(row, level_like_the_model(row)) for row in range(30)]
    seconds, kappa, measured = compared(film, annotations)
    assert seconds == 300
    assert kappa == pytest.approx(1.0)
    assert measured.record["unanswered_s"] == {"AB": 300}
    report = evaluation_report(measured)
    assert any(note.startswith("AB: 300 s have no answer") for note in report.notes)
    assert "in the 5.0 minutes of 10.0 minutes that" in report.answers[0]


def test_windows_that_were_not_drawn_are_no_answer(film):
    """Of the windows of a draw AB was asked for six, and found S in all of them."""
    asked = [0, 3, 6, 30, 33, 36]
    seconds, _, _ = compared(film, [span(row, "S", place=place) for place, row in enumerate(asked, 1)])
    assert seconds == 60


def test_what_an_annotator_is_not_sure_of_is_no_answer(film):
    """AB agrees with the model, and is not sure (NS) of half of what it finds: 10 rows of 10 s."""
    annotations = [span(row, "NS" if row % 6 == 0 else level_like_the_model(row)) for row in range(60)]
    seconds, kappa, measured = compared(film, annotations)
    assert seconds == 500
    assert kappa == pytest.approx(1.0)
    assert measured.record["unanswered_s"] == {"AB": 100}


def test_only_time_that_all_annotators_answered_for_is_compared(film):
    """AB judges the first 400 s and CD the last 400 s: they have 200 s in common."""
    annotations = [span(row, level_like_the_model(row)) for row in range(40)]
    annotations += [span(row, level_like_the_model(row), "CD") for row in range(20, 60)]
    seconds, kappa, measured = compared(film, annotations)
    assert seconds == 200
    assert kappa == pytest.approx(1.0)
    assert measured.record["unanswered_s"] == {"AB": 200, "CD": 200}


def test_annotators_without_a_second_in_common_are_refused(film):
    annotations = [span(row, level_like_the_model(row)) for row in range(30)]
    annotations += [span(row, level_like_the_model(row), "CD") for row in range(30, 60)]
    with pytest.raises(FilmError, match="all of a film's annotators answered for"):
        compared(film, annotations)


def test_labels_given_with_the_score_in_sight_are_counted(film):
    annotations = [span(row, level_like_the_model(row), seen_score=int(row < 45)) for row in range(60)]
    _, _, measured = compared(film, annotations)
    assert measured.record["in_sight"] == {"AB": 45}
    notes = evaluation_report(measured).notes
    assert any(note.startswith("AB: 45 clips were labelled with a model's score in sight") for note in notes)


def test_the_models_rate_is_of_the_seconds_that_are_compared(film):
    """In the first 300 s the model calls 10 of 30 rows; in the next 300 s, which AB left out, all of them.

    Its expected share of the time that AB answered for is that of the first half.
    """
    is_called = [int(row % 3 == 0 or row >= 30) for row in range(60)]
    film = with_columns(film, p=[0.9 if called else 0.1 for called in is_called], called=is_called)
    annotations = [span(row, level_like_the_model(row)) for row in range(30)]
    _, _, measured = compared(film, annotations)
    rates = measured.by_film.set_index(["who", "metric"])["value"]
    expected_share = (10 * 0.9 + 20 * 0.1) / 30
    assert rates[measured.record["model"], "rate"] == pytest.approx(expected_share)


def test_a_film_whose_annotators_have_no_second_in_common_is_left_out_with_this_reason(film):
    """AB judges the first half of the second film, and CD the second half."""
    other_film = invented_film("tt2", n_rows=60, duration_s=FILM_S)
    annotations = [span(row, level_like_the_model(row)) for row in range(60)]
    for row in range(60):
        annotator = "AB" if row < 30 else "CD"
        annotations.append(
            replace(span(row, level_like_the_model(row), annotator), clip_id=f"b{row}", movie="tt2")
        )
    truth = Manifest(tuple(annotations), Path(), builtin_codebook("obygaze12"))
    measured = evaluate_films([film, other_film], truth, n_shifts=2)
    assert measured.record["not_answered"] == ["tt2"]
    assert measured.record["not_judged"] == []
