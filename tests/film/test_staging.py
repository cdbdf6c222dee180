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


def films_of_one_minute(*movies):
    """Films of one minute, as the windows of each: one window, whose clip is of no interest here."""
    return {movie: Windows((), np.array([[0.0, 60.0]])) for movie in movies}


@pytest.fixture
def write_table(tmp_path):
    """Write a table of variables with these lines, v.csv, and return its path."""

    def write(*lines, head=HEAD):
        path = tmp_path / "v.csv"
        path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
        return path

    return write


@pytest.fixture
def table_with_more_rows(write_table):
    """A table with two rows of film a, one of b and one after the end of a; the column `black` is empty."""
    return write_table(
        "a-0001,a,0.0,8.0,-23.5,12,,",
        "a-0002,a,4.0,12.0,-40,,0.25,",
        "b-0001,b,0.0,8.0,-30,6,0.1,",
        "a-0009,a,60,70,1,1,1,",
        head=f"{HEAD},black",
    )


def test_a_table_is_read_by_film_with_empty_cells_where_nothing_is_known(table_with_more_rows):
    """Films a and c are asked for. Of a the table has two rows, with cuts 12 and none, and of c nothing."""
    variables = read_variables(table_with_more_rows, films_of_one_minute("a", "c"))

    assert list(variables) == ["a"]
    variables_of_a = variables["a"].drop(columns="black")
    assert list(variables_of_a) == ["start_s", "end_s", "loudness", "cuts", "camera"]
    assert variables_of_a["cuts"].tolist() == pytest.approx([12, np.nan], nan_ok=True)


def test_a_notice_says_what_of_a_table_is_left_out(table_with_more_rows):
    """The column `black` is empty, one row is of film b, and one begins at the end of film a, 60 s."""
    notices = []
    read_variables(table_with_more_rows, films_of_one_minute("a", "c"), notices.append)
    assert notices == [
        "v.csv: loudness, cuts, camera; left out black, 2 rows of other films, or behind a film's end"
    ]


@pytest.mark.parametrize("cell", ["loud", "nan", "inf", "1e999"])
def test_what_is_no_number_is_refused_by_line_and_column(write_table, cell):
    """Loudness is the fifth column, after the window's id, film, start and end; 1e999 is infinite."""
    path = write_table("a-0001,a,0.0,8.0,-23.5,12,", f"a-0002,a,4.0,12.0,{cell},,0.25")
    with pytest.raises(ManifestError, match=f"line 3, column loudness: '{cell}'"):
        read_variables(path, films_of_one_minute("a"))


@pytest.mark.parametrize(
    "times",
    [
        pytest.param("10,0", id="the end before the start"),
        pytest.param("-5,5", id="before the film"),
        pytest.param("0,", id="no end"),
        pytest.param("0,2000000", id="after 23 days"),
    ],
)
def test_impossible_times_are_refused_by_line(write_table, times):
    """A table of variables has one window of film a, on line 2 after its head, whose times are impossible."""
    path = write_table(f"a-0001,a,{times},1,1,1")
    with pytest.raises(FilmError, match="line 2"):
        read_variables(path, films_of_one_minute("a"))


def test_a_table_without_a_window_of_the_film_is_refused(write_table):
    """The table has windows of film a, and those of z are asked for."""
    path = write_table("a-0001,a,0.0,8.0,-23.5,12,")
    with pytest.raises(FilmError, match="no window of z"):
        read_variables(path, films_of_one_minute("z"))


def test_a_table_without_numbers_is_refused(write_table):
    """A table of how a film is staged has one variable, `cuts`, and no number of it."""
    path = write_table("a-0001,a,0,8,", head="clip_id,movie,start_s,end_s,cuts")
    with pytest.raises(FilmError, match="no column of numbers"):
        read_variables(path, films_of_one_minute("a"))


def test_a_table_of_windows_mostly_after_the_films_end_is_refused(write_table):
    """The film lasts 60 s, and only the first of three windows begins in it."""
    path = write_table("a-0,a,0,200,1,1,1", "a-1,a,200,400,1,1,1", "a-2,a,400,600,1,1,1")
    with pytest.raises(FilmError, match="film a begin behind"):
        read_variables(path, films_of_one_minute("a"))


def test_two_rows_of_a_window_are_refused(write_table):
    """The table of film a has the window from 0 to 8 s twice: it would count twice in a mean."""
    row = "a-0001,a,0.0,8.0,-23.5,12,"
    with pytest.raises(FilmError, match="two rows"):
        read_variables(write_table(row, row), films_of_one_minute("a"))


@pytest.mark.parametrize(
    "behind_the_end",
    [
        {"variables": pd.DataFrame({"start_s": [0.0], "end_s": [1e9], "cuts": [1.0]})},
        {"subtitles": pd.DataFrame({"start_s": [0.0], "end_s": [1e9], "text": ["late"]})},
    ],
    ids=["variables", "subtitles"],
)
def test_a_film_with_impossible_times_is_not_written(tmp_path, trained_models, behind_the_end):
    """A film of 60 s has variables, or a subtitle, up to a billion seconds, which are 31 years.

    If it were written, it could not be read again.
    """
    (film,) = score_films(film_store(tmp_path, "a", end_s=60.0), [trained_models.paths["pcbm_lr"]])
    film = replace(film, **behind_the_end)
    with pytest.raises(FilmError, match=r"1e\+09 s"):
        film.write(tmp_path / "late")


def test_a_shot_with_an_impossible_end_is_refused(tmp_path, trained_models):
    """A film of 60 s has a shot that ends after a billion seconds, which are 31 years."""
    shots = pd.DataFrame({"start_s": [0.0], "end_s": [1e9], "detector": "own", "flags": ""})
    with pytest.raises(FilmError, match="a shot ends"):
        score_films(
            film_store(tmp_path, "b", end_s=60.0), [trained_models.paths["pcbm_lr"]], shots={"b": shots}
        )


@pytest.fixture(scope="module")
def films_with_camera(trained_models, tmp_path_factory):
    """Films a, b and c with the variable `camera`, of means 0, 0.1 and 0.2, and film d without any."""
    store = film_store(tmp_path_factory.mktemp("staged"), *"abcd", end_s=60.0)
    variables_of = {}
    for movie, camera in (("a", 0.0), ("b", 0.1), ("c", 0.2)):
        variables_of[movie] = pd.DataFrame(
            {"start_s": [0.0, 4.0], "end_s": [8.0, 12.0], "camera": [camera, np.nan]}
        )
    return score_films(store, [trained_models.paths["pcbm_lr"]], variables=variables_of)


def test_variables_are_kept_with_a_film_that_has_some(films_with_camera, tmp_path):
    """The first of four films has variables of staging, and the last one has none."""
    with_variables, *_, without = films_with_camera
    with_variables.write(tmp_path / "with")
    without.write(tmp_path / "without")

    pd.testing.assert_frame_equal(Timeline.read(tmp_path / "with").variables, with_variables.variables)
    assert len(Timeline.read(tmp_path / "without").variables) == 0
    assert not (tmp_path / "without" / "variables.csv").exists()


def test_variables_are_drawn_on_the_page_of_a_film_that_has_some(films_with_camera):
    """The first of four films has a variable, the motion of the camera, and the last one has none."""
    with_variables, *_, without = films_with_camera
    assert "Motion of the camera" in film_page([with_variables])
    assert "Mouvement de la caméra" in film_page([with_variables], language="fr")
    assert "Motion of the camera" not in film_page([without])


def test_each_second_counts_once_in_a_mean():
    """A window from 0 to 10 s has the loudness -30; one from 3 to 13 s has -20, and stands there twice.

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


def test_windows_of_which_nothing_is_known_do_not_count_in_a_mean():
    """The window from 0 to 10 s has the loudness -30; that of two others, which overlap it, is not known."""
    windows = pd.DataFrame(
        {"start_s": [0.0, 3.0, 3.0], "end_s": [10.0, 13.0, 13.0], "loudness": [-30.0, np.nan, np.nan]}
    )
    assert staging_means(windows)["loudness"] == -30.0


def covered_seconds(spans):
    """Count the seconds that spans cover, those in several of them once."""
    covered_s = 0.0
    covered_up_to_s = 0.0
    for start, end in sorted(spans.itertuples(index=False)):
        new_from_s = max(start, covered_up_to_s)
        covered_s += max(0.0, end - new_from_s)
        covered_up_to_s = max(covered_up_to_s, end)
    return covered_s


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.1, 30)), min_size=1, max_size=12))
def test_shared_seconds_add_up_to_the_covered_time(windows):
    """Windows of a film overlap. A second that lies in several of them is divided among these.

    So the shared seconds of all windows add up to the time that the windows cover, each second of the film
    counted once.
    """
    spans = pd.DataFrame([(start, start + length) for start, length in windows], columns=["start_s", "end_s"])

    shares = shared_seconds(spans)

    assert shares.sum() == pytest.approx(covered_seconds(spans))


NOTHING_JUDGED = Manifest((), Path())


def test_films_are_grouped_by_the_median_of_a_variable(films_with_camera):
    """The camera's means are 0, .1 and .2 in films a, b and c: two are up to the median .1, one is above it.

    Film d has no variables: it is left out, and named.
    """
    compared = compare_films(films_with_camera, NOTHING_JUDGED, by="camera")
    groups = {film.timeline.movie: film.group for film in compared.films}
    assert groups == {"a": "camera up to 0.1", "b": "camera up to 0.1", "c": "camera above 0.1"}
    assert any("without camera" in note and "(d)" in note for note in compared.notes)


def test_a_trend_along_a_variable_of_staging_places_films_at_its_means(films_with_camera):
    """A trend tells how a share changes along a number of each film: its year, or here the camera's motion.

    The means of the variable `camera` in films a, b and c are 0, .1 and .2. Nobody judged a window, which
    does not matter to where the films lie.
    """
    films_with_variables = films_with_camera[:3]
    compared = compare_films(films_with_variables, NOTHING_JUDGED, trend="camera")
    place_along_trend = {film.timeline.movie: film.x for film in compared.films}
    assert place_along_trend == pytest.approx({"a": 0.0, "b": 0.1, "c": 0.2})


def test_a_film_without_the_variable_of_a_trend_is_named(films_with_camera):
    """Of the films a to d the last one has no variables."""
    compared = compare_films(films_with_camera, NOTHING_JUDGED, trend="camera")
    assert any("camera" in note and "(d)" in note for note in compared.notes)


def test_a_column_of_films_takes_precedence_over_a_variable(films_with_camera):
    """The user's table of films has a column `camera`, and films have a variable of this name.

    The user's is taken, also where it is empty, as for film b: it is left out, though it has the variable.
    """
    facts = {
        "a": {"camera": "hand-held"},
        "b": {"camera": ""},
        "c": {"camera": "hand-held"},
        "d": {"camera": "hand-held"},
    }
    compared = compare_films(films_with_camera, NOTHING_JUDGED, facts, by="camera")
    assert {film.group for film in compared.films} == {"hand-held"}
    assert any("without camera" in note and "(b)" in note for note in compared.notes)


def test_a_variable_called_year_is_no_year_of_a_film(films_with_camera):
    """A variable of staging cannot take the place of the film's year, by which films are sorted.

    No film has a year.
    """
    films_with_variable_year = []
    for film in films_with_camera:
        variables = film.variables.rename(columns={"camera": "year"})
        films_with_variable_year.append(replace(film, variables=variables))

    compared = compare_films(films_with_variable_year, NOTHING_JUDGED)

    assert {film.facts["year"] for film in compared.films} == {""}


def test_an_unknown_column_is_refused(films_with_camera):
    """Films can be grouped by a variable that they have, such as `camera`. None of these has `zoom`."""
    all_with_variables = [
        replace(film, variables=films_with_camera[0].variables) for film in films_with_camera
    ]
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
def films_with_people(trained_models, tmp_path_factory):
    """Films a, b and c, with more people on screen from one to the next, and close pictures in c alone."""
    people_of = {
        "a": people_in_windows(on_screen=0.0, is_close=0.0),
        "b": people_in_windows(on_screen=1 / 3, is_close=0.0),
        "c": people_in_windows(on_screen=2 / 3, is_close=1.0),
    }
    store = film_store(tmp_path_factory.mktemp("people"), *"abc", end_s=60.0)
    return score_films(store, [trained_models.paths["pcbm_lr"]], variables=people_of)


def test_people_on_screen_are_drawn_if_there_are_numbers(films_with_people):
    """Of a film it was measured how many people are on screen and how near; faces were not looked for.

    So its page has a curve of people on screen and one of close pictures, and none of faces.
    """
    _, film, _ = films_with_people
    english = film_page([film])
    french = film_page([film], language="fr")
    assert "People on screen" in english
    assert "Close pictures" in english
    assert "Largest face" not in english
    assert "Personnes à l’image" in french


def test_a_trend_is_by_the_mean_time_of_people_on_screen(films_with_people):
    """A film has two windows. People are on screen for 0, 1/3 or 2/3 of the first, and all of the second."""
    compared = compare_films(films_with_people, NOTHING_JUDGED, trend="screen")
    values = {film.timeline.movie: film.x for film in compared.films}
    assert values == pytest.approx({"a": (0 + 1) / 2, "b": (1 / 3 + 1) / 2, "c": (2 / 3 + 1) / 2})


def test_films_are_grouped_by_close_pictures(films_with_people):
    """Of three films only the last one has close pictures: the variable `close` is 0, 0 and 1.

    Its median is 0, so that two films are in the group up to 0, and one above.
    """
    compared = compare_films(films_with_people, NOTHING_JUDGED, by="close")
    groups = [film.group for film in compared.films]
    assert groups == ["close up to 0", "close up to 0", "close above 0"]
