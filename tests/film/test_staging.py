"""Variables of staging stay with a scored film: read, kept, drawn, and columns of comparisons."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Manifest
from obygaze_film import Timeline, compare_films, score_films
from obygaze_film.errors import FilmError
from obygaze_film.film_time import staging_means
from obygaze_film.page import film_page
from obygaze_film.rows import Windows, read_variables
from obygaze_film.schema import shared_seconds
from tests.film.films import film_store

HEAD = "clip_id,movie,start_s,end_s,loudness,cuts,camera"
LINES = ("a-0001,a,0.0,8.0,-23.5,12,", "a-0002,a,4.0,12.0,-40,,0.25", "b-0001,b,0.0,8.0,-30,6,0.1")


def films_of(*movies):
    """Films of one minute, as the windows of each: one window, whose clip is of no interest here."""
    return {movie: Windows((), np.array([[0.0, 60.0]])) for movie in movies}


def table(path, lines=LINES, head=HEAD):
    """Write a table of variables, and return its path."""
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return path


def test_a_table_is_read_by_film_with_empty_cells_where_nothing_is_known(tmp_path):
    """The table has two rows of film a, one of b and one after the end of a; films a and c are asked for.

    The column `black` is empty.
    """
    after_the_end = "a-0009,a,60,70,1,1,1"
    lines = [f"{line}," for line in (*LINES, after_the_end)]
    path = table(tmp_path / "v.csv", lines, f"{HEAD},black")
    notices = []

    variables = read_variables(path, films_of("a", "c"), notices.append)

    assert list(variables) == ["a"]
    of_film_a = variables["a"].drop(columns="black")
    assert list(of_film_a) == ["start_s", "end_s", "loudness", "cuts", "camera"]
    assert of_film_a["cuts"].tolist() == pytest.approx([12, np.nan], nan_ok=True)  # as in `LINES`
    assert notices == [
        "v.csv: loudness, cuts, camera; left out black, 2 rows of other films, or behind a film's end"
    ]


@pytest.mark.parametrize("cell", ["loud", "nan", "inf", "1e999"])
def test_what_is_no_number_is_refused_by_line_and_column(tmp_path, cell):
    path = table(tmp_path / "v.csv", [LINES[0], LINES[1].replace("-40", cell)])
    with pytest.raises(ManifestError, match=f"line 3, column loudness: '{cell}'"):
        read_variables(path, films_of("a"))


@pytest.mark.parametrize("times", ["10,0", "-5,5", "0,", "0,2000000"])
def test_impossible_times_are_refused_by_line(tmp_path, times):
    with pytest.raises(FilmError, match="line 2"):
        read_variables(table(tmp_path / "v.csv", [f"a-0001,a,{times},1,1,1"]), films_of("a"))


def test_a_table_without_the_films_windows_or_without_numbers_is_refused(tmp_path):
    path = tmp_path / "v.csv"
    with pytest.raises(FilmError, match="no window of z"):
        read_variables(table(path), films_of("z"))
    with pytest.raises(FilmError, match="no column of numbers"):
        read_variables(table(path, ["a-0001,a,0,8,"], "clip_id,movie,start_s,end_s,cuts"), films_of("a"))


def test_a_table_of_windows_mostly_after_the_films_end_is_refused(tmp_path):
    """The film lasts 60 s, and only the first of three windows begins in it."""
    lines = [f"a-{number},a,{200 * number},{200 * number + 200},1,1,1" for number in range(3)]
    with pytest.raises(FilmError, match="film a begin behind"):
        read_variables(table(tmp_path / "v.csv", lines), films_of("a"))


def test_two_rows_of_a_window_are_refused(tmp_path):
    with pytest.raises(FilmError, match="two rows"):
        read_variables(table(tmp_path / "v.csv", [LINES[0], LINES[0]]), films_of("a"))


@pytest.mark.parametrize(
    "behind_the_end",
    [
        {"variables": pd.DataFrame({"start_s": [0.0], "end_s": [1e9], "cuts": [1.0]})},
        {"subtitles": pd.DataFrame({"start_s": [0.0], "end_s": [1e9], "text": ["late"]})},
    ],
    ids=["variables", "subtitles"],
)
def test_a_film_with_impossible_times_is_not_written(tmp_path, trained, behind_the_end):
    """It could not be read again."""
    (film,) = score_films(film_store(tmp_path, "a", end_s=60.0), [trained.paths["pcbm_lr"]])
    with pytest.raises(FilmError, match=r"1e\+09 s"):
        replace(film, **behind_the_end).write(tmp_path / "late")


def test_a_shot_with_an_impossible_end_is_refused(tmp_path, trained):
    """A billion seconds are 31 years."""
    shots = pd.DataFrame({"start_s": [0.0], "end_s": [1e9], "detector": "own", "flags": ""})
    with pytest.raises(FilmError, match="a shot ends"):
        score_films(film_store(tmp_path, "b", end_s=60.0), [trained.paths["pcbm_lr"]], shots={"b": shots})


@pytest.fixture(scope="module")
def films(trained, tmp_path_factory):
    """Films a, b and c with the variable `camera`, of means 0, 0.1 and 0.2, and film d without any."""
    store = film_store(tmp_path_factory.mktemp("staged"), *"abcd", end_s=60.0)
    staged = {
        movie: pd.DataFrame({"start_s": [0.0, 4.0], "end_s": [8.0, 12.0], "camera": [place / 10, np.nan]})
        for place, movie in enumerate("abc")
    }
    return score_films(store, [trained.paths["pcbm_lr"]], variables=staged)


def test_variables_are_kept_with_a_film_that_has_some(films, tmp_path):
    for film in films:
        film.write(tmp_path / film.movie)
    a, *_, d = (Timeline.read(tmp_path / film.movie) for film in films)
    pd.testing.assert_frame_equal(a.variables, films[0].variables)
    assert not len(d.variables)
    assert not (tmp_path / "d" / "variables.csv").exists()


def test_variables_are_drawn_on_the_page_of_a_film_that_has_some(films):
    a, *_, d = films
    assert "Motion of the camera" in film_page([a])
    assert "Mouvement de la caméra" in film_page([a], language="fr")
    assert "Motion of the camera" not in film_page([d])


def test_each_second_counts_once_in_a_mean():
    """A window from 0 to 10 s, and one from 3 to 13 s that stands there twice.

    The first window has 3 s alone, and a third of the 7 s that all three share. The other two have a third
    each of these 7 s, and together the last 3 s.
    """
    windows = pd.DataFrame(
        {"start_s": [0.0, 3.0, 3.0], "end_s": [10.0, 13.0, 13.0], "loudness": [-30.0, -20.0, -20.0]}
    )
    seconds_of_first = 3 + 7 / 3
    seconds_of_others = 3 + 2 * 7 / 3
    expected = (-30 * seconds_of_first - 20 * seconds_of_others) / 13

    assert staging_means(windows)["loudness"] == pytest.approx(expected)
    without_the_others = windows.assign(loudness=[-30.0, np.nan, np.nan])
    assert staging_means(without_the_others)["loudness"] == -30.0


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.1, 30)), min_size=1, max_size=12))
def test_shared_seconds_add_up_to_the_covered_time(windows):
    """However windows overlap, each second of the film is counted once."""
    spans = pd.DataFrame([(start, start + length) for start, length in windows], columns=["start_s", "end_s"])
    covered, end_s = 0.0, 0.0
    for start, end in sorted(spans.itertuples(index=False)):
        covered += max(0.0, end - max(start, end_s))
        end_s = max(end_s, end)
    assert shared_seconds(spans).sum() == pytest.approx(covered)


NOTHING_JUDGED = Manifest((), Path())


def test_films_are_grouped_by_the_median_of_a_variable(films):
    """The camera's means are 0, .1 and .2: two films are up to the median .1, and one is above it.

    Film d has no variables: it is left out, and named.
    """
    compared = compare_films(films, NOTHING_JUDGED, by="camera")
    groups = {film.timeline.movie: film.group for film in compared.films}
    assert groups == {"a": "camera up to 0.1", "b": "camera up to 0.1", "c": "camera above 0.1"}
    assert any("without camera" in note and "(d)" in note for note in compared.notes)


def test_a_trend_may_be_by_a_variable(films):
    """Films a, b and c have the means 0, .1 and .2; film d has none."""
    with_variables = compare_films(films[:3], NOTHING_JUDGED, trend="camera").films
    assert {film.timeline.movie: film.x for film in with_variables} == pytest.approx(
        {"a": 0.0, "b": 0.1, "c": 0.2}
    )
    left_out = compare_films(films, NOTHING_JUDGED, trend="camera").notes
    assert any("camera" in note and "(d)" in note for note in left_out)


def test_a_column_of_films_takes_precedence_over_a_variable(films):
    """The user's table has a column `camera`, and so has the film.

    The user's is taken, also where it is empty.
    """
    facts = {film.movie: {"camera": "" if film.movie == "b" else "hand-held"} for film in films}
    compared = compare_films(films, NOTHING_JUDGED, facts, by="camera")
    assert {film.group for film in compared.films} == {"hand-held"}
    assert any("without camera" in note and "(b)" in note for note in compared.notes)


def test_a_variable_called_year_is_no_year_of_a_film(films):
    """A variable of staging cannot take the place of the film's year, by which films are sorted."""
    called_year = [
        replace(film, variables=film.variables.rename(columns={"camera": "year"})) for film in films
    ]
    assert {film.facts["year"] for film in compare_films(called_year, NOTHING_JUDGED).films} == {""}


def test_an_unknown_column_is_refused(films):
    all_with_variables = [replace(film, variables=films[0].variables) for film in films]
    with pytest.raises(FilmError, match="no column zoom"):
        compare_films(all_with_variables, NOTHING_JUDGED, by="zoom")


def people_in_windows(*, on_screen, is_close):
    """Plant two windows of a film, with people on screen for a share of the first and all of the second.

    `is_close` says whether the first has close pictures of them. No window was searched for faces.
    """
    return pd.DataFrame(
        {
            "start_s": [0.0, 4.0],
            "end_s": [4.0, 8.0],
            "screen": [on_screen, 1.0],
            "close": [is_close, np.nan],
            "face": [np.nan, np.nan],
        }
    )


@pytest.fixture(scope="module")
def films_with_people(trained, tmp_path_factory):
    """Films a, b and c, with more people on screen from one to the next, and close pictures in c alone."""
    people_of = {
        "a": people_in_windows(on_screen=0.0, is_close=0.0),
        "b": people_in_windows(on_screen=1 / 3, is_close=0.0),
        "c": people_in_windows(on_screen=2 / 3, is_close=1.0),
    }
    store = film_store(tmp_path_factory.mktemp("people"), *"abc", end_s=60.0)
    return score_films(store, [trained.paths["pcbm_lr"]], variables=people_of)


def test_people_on_screen_are_drawn_if_there_are_numbers(films_with_people):
    """No window was searched for faces, so that there is nothing to draw of them."""
    _, film, _ = films_with_people
    page = film_page([film])
    assert "People on screen" in page
    assert "Close pictures" in page
    assert "Largest face" not in page
    assert "Personnes à l’image" in film_page([film], language="fr")


def test_a_trend_is_by_the_mean_time_of_people_on_screen(films_with_people):
    """People are on screen for a share of the first window of each film, and all of the second."""
    compared = compare_films(films_with_people, NOTHING_JUDGED, trend="screen")
    values = {film.timeline.movie: film.x for film in compared.films}
    by_close = compare_films(films_with_people, NOTHING_JUDGED, by="close").films

    assert values == pytest.approx({"a": (0 + 1) / 2, "b": (1 / 3 + 1) / 2, "c": (2 / 3 + 1) / 2})
    # Only film c has close pictures, so that the median is 0.
    assert [film.group for film in by_close] == ["close up to 0", "close up to 0", "close above 0"]
