"""Scores of films: where the planted segments are, what is withheld, and what adds up."""

from base64 import b64decode
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Film, import_film
from obygaze_features.store import Store, open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_film.claims import Words
from obygaze_film.commands.film_lines import lines_of_film
from obygaze_film.errors import FilmError
from obygaze_film.exchange import export
from obygaze_film.page import film_page
from obygaze_film.rows import (
    Windows,
    cut_into_rows,
    make_grid,
    overlaps,
    read_shots,
    read_subtitles_of,
    windows_of,
)
from obygaze_film.schema import NO_CONTENT, NUMBER, durations, has_flag
from obygaze_film.score import FilmFacts, _concept, score_film, score_films
from obygaze_film.scored_files import files_of
from obygaze_film.timeline import Timeline, read_films
from obygaze_models.prediction.calibration import mean_probability
from obygaze_models.prediction.explain import explain
from obygaze_models.prediction.saved_model import load_model
from tests.film.films import PLANTED, film_store, scored_film, shots_of, under_another_name
from tests.film.saying import data_of, heading_of


def intersection_over_union(one, other):
    """Divide the seconds that two spans (start, end) have in common by those of both together."""
    (start, end), (other_start, other_end) = one, other
    common = max(0.0, min(end, other_end) - max(start, other_start))
    union = (end - start) + (other_end - other_start) - common
    return common / union


@pytest.mark.long
def test_all_planted_segments_are_found_and_at_most_one_more(planted_timeline):
    """A gun is planted in four spans of a film (`PLANTED`), and violence comes with guns.

    A span is found if a segment overlaps it by a half of both together.
    """
    segments = planted_timeline.segments()
    marked = segments[segments["reaches"] == 1]
    marked_spans = list(zip(marked["start_s"], marked["end_s"], strict=True))

    assert len(PLANTED) == 4
    assert len(marked_spans) <= 5
    for planted_span in PLANTED:
        overlaps_with_marked = [intersection_over_union(span, planted_span) for span in marked_spans]
        assert max(overlaps_with_marked) >= 0.5


@pytest.mark.long
def test_the_first_reason_of_each_planted_segment_is_the_gun(planted_timeline):
    """A gun is planted in four spans of a film, and violence comes with guns."""
    segments = planted_timeline.segments()
    marked = segments[segments["reaches"] == 1]
    assert marked["concepts"].str.startswith("Gun").all()


@pytest.mark.long
def test_segments_are_ranked_from_1(planted_timeline):
    """The segments of a scored film come in the order of their ranks, the strongest first: 1, 2, 3, ..."""
    segments = planted_timeline.segments()
    assert segments["rank"].tolist() == list(range(1, len(segments) + 1))


@pytest.fixture
def rows_of_csv(scored):
    """The rows of the model pcbm_lr as anybody reads them from timeline.csv."""
    folder, _film = scored
    table = pd.read_csv(folder / "timeline.csv")
    return table[table["model"] == "pcbm_lr"]


def test_contributions_add_up_to_the_logit(rows_of_csv):
    """What each concept adds, and the base, explain the model's score wholly."""
    judged_rows = rows_of_csv[rows_of_csv["p"].notna()]
    contributions = judged_rows[[name for name in judged_rows if name.endswith("_contribution")]]
    sums = contributions.sum(axis=1)
    assert np.abs(sums - judged_rows["logit"]).max() < 1e-9


def test_the_rate_is_the_mean_probability_of_the_seconds(rows_of_csv, planted_timeline):
    """The rate is the share of the film's seconds that is expected to be violent: longer rows count more.

    It lies within its two intervals, of which that for films is the wider one.
    """
    judged_rows = rows_of_csv[rows_of_csv["p"].notna()]
    seconds = judged_rows["end_s"] - judged_rows["start_s"]
    mean = np.average(judged_rows["p"], weights=seconds)

    rate = planted_timeline.rate()

    assert rate.value == pytest.approx(mean, abs=1e-12)
    assert rate.bracket_low < rate.calibration_low < mean < rate.calibration_high < rate.bracket_high


def test_p_is_the_calibrated_probability_of_the_logit(rows_of_csv, planted_timeline):
    """The calibration is a sample of lines, slope and intercept: p is their mean probability of a logit."""
    draws_of_lines = np.array(planted_timeline.model().calibration.draws)
    expected = mean_probability(draws_of_lines, rows_of_csv["logit"].to_numpy())
    assert np.abs(rows_of_csv["p"] - expected).max() < 1e-9


def test_only_black_and_credits_have_no_probability(rows_of_csv):
    """All other rows of this film are like the training clips, and so they have one."""
    has_p = rows_of_csv["p"].notna()
    is_black_or_credits = rows_of_csv["flags"].fillna("").str.contains("black|credits")
    assert (has_p == ~is_black_or_credits).all()

    empty_columns = ["p_low", "p_high", "called", "Gun_p", "Gun_contribution"]
    assert rows_of_csv.loc[~has_p, empty_columns].isna().all().all()


def test_each_row_of_a_scored_film_begins_where_the_one_before_ends(planted_timeline):
    """The film has 600 s, and each row begins where the one before ends."""
    rows = planted_timeline.rows()
    starts_s = rows["start_s"].to_numpy()
    ends_s = rows["end_s"].to_numpy()
    assert starts_s[0] == 0
    assert (starts_s[1:] == ends_s[:-1]).all()
    assert ends_s[-1] == 600


def test_each_shot_begins_a_row_and_long_ones_are_several(planted_timeline):
    """A row is no longer than a window of the film, which has 8 s."""
    rows = planted_timeline.rows()
    shots = shots_of("tt0000001")
    assert set(shots["start_s"]) <= set(rows["start_s"])
    assert durations(rows).max() <= 8.1
    assert planted_timeline.record.shots.n == len(shots)


def test_rows_have_the_flags_of_their_shots(planted_timeline):
    """The first shot of the film is black, and no other one: so many seconds are counted."""
    first_shot = shots_of("tt0000001").iloc[0]
    assert planted_timeline.rows()["flags"].iloc[0] == "black"
    assert planted_timeline.model().flags["black"] == pytest.approx(first_shot["end_s"])


@pytest.fixture(scope="module")
def film_of_one_minute(tmp_path_factory):
    """A store of a film m of one minute, in windows of 8 s every 4 s."""
    return film_store(tmp_path_factory.mktemp("minute"), "m", end_s=60.0, planted=())


@pytest.fixture(scope="module")
def logits_of_windows(trained_models, film_of_one_minute):
    """A model's logit of each window of the film of one minute."""
    return load_model(trained_models.paths["linear"]).logits(film_of_one_minute["descriptors"].pooled())


def test_a_model_and_its_file_give_the_same_rows(trained_models, film_of_one_minute):
    """A film may be scored by a model's file, or by the model that was read from it."""
    file = trained_models.paths["linear"]
    by_file = score_film(film_of_one_minute, [file]).rows()
    by_model = score_film(film_of_one_minute, [load_model(file)]).rows()
    assert by_model.equals(by_file)


@pytest.fixture(scope="module")
def in_steps(trained_models, film_of_one_minute):
    """The film of one minute, scored without a table of shots."""
    return score_film(film_of_one_minute, [trained_models.paths["linear"]])


def test_without_shots_rows_are_steps_as_long_as_from_one_window_to_the_next(in_steps):
    """A film of 60 s is scored in windows of 8 s, which begin every 4 s. No table of its shots is given.

    So its timeline has a row for every 4 s, which are called steps, in the record and on the terminal.
    """
    assert in_steps.record.rows.kind == "steps"
    assert durations(in_steps.rows()).tolist() == [4.0] * 15
    assert any("steps" in line for line in lines_of_film(in_steps, Words("en")))


def test_a_step_averages_the_logits_of_its_windows(in_steps, logits_of_windows):
    """Windows are from 0 to 8, 4 to 12, 8 to 16 and 12 to 20 s, and so on; steps have 4 s.

    On the first step, 0 to 4 s, lies the first window alone, and on the fourth, 12 to 16 s, the third and the
    fourth one.
    """
    logits = in_steps.rows()["logit"]
    assert logits.iloc[0] == pytest.approx(logits_of_windows[0])
    assert logits.iloc[3] == pytest.approx((logits_of_windows[2] + logits_of_windows[3]) / 2)


@pytest.fixture(scope="module")
def in_two_shots(trained_models, film_of_one_minute):
    """The same minute, in a shot of 7 s and another of 53 s."""
    shots = pd.DataFrame(
        {"movie": "m", "start_s": [0.0, 7.0], "end_s": [7.0, 60.0], "detector": "x", "flags": ""}
    )
    return score_film(film_of_one_minute, [trained_models.paths["linear"]], shots=shots)


def test_a_shot_averages_the_logits_of_its_windows_by_seconds(in_two_shots, logits_of_windows):
    """On the shot from 0 to 7 s lie 7 s of the window from 0 to 8 s, and 3 s of that from 4 to 12 s."""
    first_row = in_two_shots.rows().iloc[0]
    expected = (7 * logits_of_windows[0] + 3 * logits_of_windows[1]) / (7 + 3)
    assert first_row["logit"] == pytest.approx(expected)
    assert first_row["n_windows"] == 2


def test_a_long_shot_is_several_rows_and_counted_as_one_shot(in_two_shots):
    """A shot of 53 s is cut into rows no longer than a window of 8 s; readers are told of 2 shots."""
    n_rows = len(in_two_shots.rows())
    assert n_rows > 2
    assert "2 shots" in film_page([in_two_shots])
    assert any(f"2 shots in {n_rows} rows" in line for line in lines_of_film(in_two_shots, Words("en")))


def test_long_shots_are_cut_at_milliseconds_and_keep_their_flags(tmp_path):
    """Two shots of 20 s are longer than a window of 8 s; the second one is credits."""
    windows = windows_of(film_store(tmp_path, "m", end_s=40.0, planted=()))["m"]
    shots = pd.DataFrame(
        {
            "movie": "m",
            "start_s": [0.0, 20.0],
            "end_s": [20.0, 40.0],
            "detector": "x",
            "flags": ["", "credits"],
        }
    )
    grid = make_grid("m", windows, shots)
    assert len(grid.spans) > 2
    assert (np.round(grid.spans, 3) == grid.spans).all()

    starts = grid.spans[:, 0]
    assert grid.flags["credits"].tolist() == (starts >= 20).tolist()


def test_the_hop_of_windows_is_the_time_between_their_starts():
    """Windows begin at 0, 4 and 8 s: the hop is 4 s. The last one is longer, which does not matter."""
    windows = Windows(("a", "b", "c"), np.array([[0.0, 8.0], [4.0, 12.0], [8.0, 20.0]]))
    assert windows.hop_s == 4


def test_the_length_of_windows_is_rounded_to_milliseconds():
    """The only window of a film has 8.12349 s."""
    windows = Windows(("a",), np.array([[0.0, 8.12349]]))
    assert windows.window_s == 8.123


def test_a_concept_has_the_metric_of_its_own_task():
    """A model's card has three metrics. Only the last is of concept A and has a chance level: .6 against .2.

    The record of the concept has this one, and the threshold of its probability, .4.
    """
    metrics = (
        {"task": "hn_s", "movie_mean": 0.9, "movie_chance": 0.5},  # of another task
        {"task": "concept:A", "movie_mean": 0.7},  # without a chance level
        {"task": "concept:A", "movie_mean": 0.6, "movie_chance": 0.2},
    )
    model = SimpleNamespace(card=SimpleNamespace(metrics=metrics), estimator=None)

    record = _concept(model, "A", threshold=0.4)

    assert record.ap == 0.6
    assert record.chance == 0.2
    assert record.threshold_p == 0.4


def test_a_film_unlike_training_gets_no_probability_and_no_rate(trained_models, tmp_path):
    """A model's number on what is unlike all its training clips means nothing, so that none is given.

    All features of the film are 30 off those of training clips, which vary by about 1. Logits are kept; the
    title says why there is no prediction.
    """
    _folder, film = scored_film(tmp_path, trained_models, "odd", shift=30.0, models=("pcbm_lr", "linear"))

    assert heading_of(film).startswith("A Planted Film · no prediction: unlike")
    for model in film.keys:
        rows = film.rows(model)
        assert rows["flags"].str.contains("unlike").all()
        contributions = [name for name in rows if name.endswith("_contribution")]
        assert rows[["p", "p_low", "p_high", "called", *contributions]].isna().all().all()
        assert rows["logit"].notna().all()
        assert film.rate(model).value is None
        assert film.rate(model).unreliable == 1
        assert film.segments(model).empty


@pytest.mark.parametrize(("end_s", "is_short"), [(12.0, True), (20.0, False)])
def test_a_film_shorter_than_two_windows_is_flagged(trained_models, tmp_path, end_s, is_short):
    """Two windows of 8 s are 16 s. All rows of a shorter film have the flag."""
    _folder, film = scored_film(tmp_path, trained_models, end_s=end_s, with_shots=False)
    rows = film.rows()
    assert has_flag(rows, "short").tolist() == [is_short] * len(rows)


def test_a_film_that_a_model_was_trained_on_says_so(trained_models):
    """Film f0 is one of the model's training films: its scores are no prediction.

    The heading says so, a flag of each row, and the reason for which there is no rate.
    """
    film = score_film(trained_models.store, [trained_models.paths["pcbm_lr"]], movie="f0")
    assert heading_of(film) == "f0 · no prediction: the model was trained on this film"
    assert film.rows()["flags"].str.contains("trained_on").all()
    assert film.rate().reason == "the model was trained on this film"


def test_a_film_under_another_name_is_known_by_its_features(trained_models, tmp_path):
    """The film's features have the same bytes as those of f0, a training film: its name would not tell."""
    store = under_another_name(trained_models, "f0", "another name", tmp_path)

    film = score_film(store, [trained_models.paths["pcbm_lr"]], movie="another name")
    explained = explain(load_model(trained_models.paths["pcbm_lr"]), [store], "another name-1", {})

    assert film.rows()["flags"].str.contains("trained_on").all()
    assert explained.trained_on


def film_unlike_at_its_start(folder, share):
    """Keep a store of a film of 200 s: the windows that begin in this share of it are unlike training.

    A shift of 30 is far from all training clips, whose features have a standard deviation of about 1.
    """
    like_training = film_store(folder, "half", end_s=200.0)
    unlike_training = film_store(folder, "odd", end_s=200.0, shift=30.0)
    spans = {clip.clip_id: (clip.start_s, clip.end_s) for clip in like_training.clips}
    is_unlike = np.array([start_s < 200 * share for start_s, _ in spans.values()])
    vectors = np.where(
        is_unlike[:, None],
        unlike_training["descriptors"].pooled(),
        like_training["descriptors"].pooled(),
    )
    groups = {"descriptors": {"pooled": vectors}}
    path = seal_arrays(folder / "mixed", dict.fromkeys(spans, "mixed"), groups, spans=spans)
    return open_store(path)


@pytest.mark.parametrize(("share", "is_refused"), [(0.1, False), (0.3, True)])
def test_a_film_of_which_more_than_a_fifth_is_unlike_has_no_rate(trained_models, tmp_path, share, is_refused):
    """A film of 200 s begins with a part that is unlike training.

    A tenth of the film is tolerated, .3 of it is not. The part has no probability either way.
    """
    film = score_film(film_unlike_at_its_start(tmp_path, share), [trained_models.paths["pcbm_lr"]])

    rate = film.rate()
    assert (rate.value is None) == is_refused
    assert bool(rate.reason) == is_refused
    assert rate.unreliable == pytest.approx(share, abs=0.05)

    rows = film.rows()
    unlike_part_s = 200 * share
    window_s = 8  # rows near the end of the part are also in windows that are like training
    is_surely_unlike = rows["start_s"] < unlike_part_s - window_s
    assert rows.loc[is_surely_unlike, "p"].isna().all()


def test_a_shot_is_unlike_training_if_most_seconds_of_windows_on_it_are(trained_models, tmp_path):
    """Windows of 8 s begin every 4 s. Those that begin before 20 s are unlike training; others are like it.

    On the second shot, from 18.5 to 24 s, lie parts of three windows:

    - 1.5 s of the window from 12 to 20 s, which is unlike;
    - 5.5 s of that from 16 to 24 s, which is unlike;
    - 4 s of that from 20 to 28 s, which is like training.

    So 7 of 11 seconds are unlike, and so is the shot. The first shot has unlike windows alone, and most
    seconds of the third, to the film's end, are like training.
    """
    store = film_unlike_at_its_start(tmp_path, share=0.1)  # of 200 s
    shots = pd.DataFrame(
        {
            "movie": "mixed",
            "start_s": [0.0, 18.5, 24.0],
            "end_s": [18.5, 24.0, 200.0],
            "detector": "own",
            "flags": "",
        }
    )

    rows = score_film(store, [trained_models.paths["pcbm_lr"]], shots=shots).rows()

    is_of_first_two_shots = rows["start_s"] < 24
    assert (has_flag(rows, "unlike") == is_of_first_two_shots).all()


def test_windows_without_features_leave_their_rows_missing(trained_models, tmp_path):
    """Windows of 8 s begin every 4 s. Four in a row failed: 36-44, 40-48, 44-52 and 48-56 s.

    Only 40 to 52 s lie in no other window: three steps of 4 s, which are 12 of the film's 200 s.
    """
    failed = ["gap-0010", "gap-0011", "gap-0012", "gap-0013"]
    store = film_store(tmp_path, "gap", end_s=200.0, failed=failed)

    film = score_film(store, [trained_models.paths["pcbm_lr"]])

    rows = film.rows()
    missing = rows[rows["status"] == "missing"]
    assert missing["start_s"].tolist() == [40.0, 44.0, 48.0]
    assert missing["flags"].str.contains("missing").all()
    assert missing[["logit", "p", "unlike"]].isna().all().all()
    assert film.record.windows.n_missing == 4
    assert film.rate().unreliable == pytest.approx(12 / 200)


@pytest.mark.long
def test_the_same_film_scored_again_gives_the_same_bytes(scored, trained_models, tmp_path):
    """A scored film can be reproduced by anybody with the same store and models."""
    first_folder, _film = scored
    second_folder, _ = scored_film(tmp_path, trained_models, models=("pcbm_lr", "bank"))
    for name in ("film.json", "timeline.csv", "segments.csv", "shots.csv"):
        assert (second_folder / name).read_bytes() == (first_folder / name).read_bytes()


def test_a_scored_film_is_read_back_as_it_was(scored):
    """`scored` is the folder of a scored film, and the film as it was written there.

    Record and rows that are read are those that were written, and would be written as the same bytes.
    """
    folder, written_film = scored

    read_film = Timeline.read(folder)

    assert read_film.record == written_film.record
    pd.testing.assert_frame_equal(read_film.table, written_film.table)
    assert files_of(read_film) == files_of(written_film)


def test_a_bank_has_concepts_and_no_decision(planted_timeline):
    """A bank is a model that finds concepts and does not decide on a level.

    It has a probability of each concept, here of a gun, in all rows but black and credits (`NO_CONTENT`). A
    level has none, and so the film has neither a share nor segments by it.
    """
    rows = planted_timeline.rows("bank")
    has_content = ~has_flag(rows, *NO_CONTENT)
    assert (rows["Gun_p"].notna() == has_content).all()
    assert rows[["logit", "p", "called"]].isna().all().all()
    assert planted_timeline.rate("bank").reason == "the model finds concepts and decides nothing"
    assert planted_timeline.segments("bank").empty


def test_both_planted_concepts_are_found_better_than_by_chance(planted_timeline):
    """The model pcbm_lr was trained on clips with guns and with dim light, which features show clearly."""
    is_found = [concept.is_found for concept in planted_timeline.model().concepts]
    assert is_found == [True, True]


@pytest.fixture
def store_of_two_films(tmp_path):
    """A store with the windows of two films, a and b."""
    return film_store(tmp_path, "b", "a", end_s=100.0)


@pytest.mark.long
def test_several_films_are_scored_at_once(trained_models, tmp_path, store_of_two_films):
    """Of film a a title is given; film b is called by its id. Both are read again from a common folder."""
    facts = {"a": FilmFacts("The A", year=1931)}
    films = score_films(store_of_two_films, [trained_models.paths["pcbm_lr"]], facts=facts)
    assert [film.record.title for film in films] == ["The A", "b"]

    for film in films:
        film.write(tmp_path / "out" / film.movie)
    assert [film.movie for film in read_films([tmp_path / "out"])] == ["a", "b"]


@pytest.mark.long
def test_chosen_films_are_scored_in_the_order_of_the_store(trained_models, tmp_path):
    """Four of a store's five films are chosen, as a set, whose order differs between runs of Python."""
    movies = {"film1", "film2", "film3", "film4"}
    store = film_store(tmp_path, "film0", *movies, end_s=60.0)
    films = score_films(store, [trained_models.paths["linear"]], movies=movies)
    assert [film.movie for film in films] == ["film1", "film2", "film3", "film4"]


def test_a_chosen_film_that_is_not_in_the_store_is_refused(trained_models, store_of_two_films):
    """The store has the films a and b; a and "other" are chosen."""
    with pytest.raises(FilmError, match="other"):
        score_films(store_of_two_films, [trained_models.paths["linear"]], movies={"a", "other"})


def test_to_score_one_film_of_a_store_of_two_is_refused_if_nobody_says_which(
    trained_models, store_of_two_films
):
    """`score_film` scores one film. The store has a and b, which the refusal names."""
    with pytest.raises(FilmError, match="a, b"):
        score_film(store_of_two_films, [trained_models.paths["pcbm_lr"]])


def test_shots_of_a_film_that_is_not_in_the_store_are_refused(trained_models, store_of_two_films):
    """The store has films a and b, and shots are given of a film called other."""
    shots = {"other": shots_of("other")}
    with pytest.raises(FilmError, match="other"):
        score_films(store_of_two_films, [trained_models.paths["pcbm_lr"]], shots=shots)


def test_models_of_one_name_are_numbered(trained_models, store_of_two_films):
    """A film is scored by three models called linear; a key tells them apart in the film's tables."""
    film = score_film(store_of_two_films, [trained_models.paths["linear"]] * 3, movie="a")
    assert film.keys == ("linear", "linear-2", "linear-3")


def test_a_store_of_whole_files_is_refused(trained_models, tmp_path):
    """A clip that is a whole file has no time within a film."""
    features = {"descriptors": {"pooled": np.zeros((1, 8), np.float32)}}
    clip_c_of_film_m = {"c": "m"}  # without a span
    path = seal_arrays(tmp_path / "whole", clip_c_of_film_m, features)
    with pytest.raises(FilmError, match="clip c"):
        score_film(open_store(path), [trained_models.paths["linear"]])


@pytest.mark.parametrize(
    ("name", "text", "damaged_text"),
    [
        ("film.json", '"obygaze film"', '"other"'),
        ("film.json", f'"number": {NUMBER}', '"number": 9'),
        ("film.json", '"duration_s"', "["),
        ("timeline.csv", "logit", "logits"),
        ("timeline.csv", "Gun_value", "other"),
        ("timeline.csv", "Gun_p", "other"),
        ("timeline.csv", "Gun_contribution", "other"),
        ("timeline.csv", ",pcbm_lr,", ",other,"),
        ("timeline.csv", "600.0", "soon"),
        ("shots.csv", None, ""),
    ],
    ids=lambda value: "all of it" if value is None else None,
)
def test_a_damaged_file_is_named_in_one_line(planted_timeline, tmp_path, name, text, damaged_text):
    """A scored film is a folder. In one of its files a piece of text is damaged, or all of it (None) is lost.

    The folder is not read, and the message is one line that has the file's path.
    """
    folder = tmp_path / "film"
    planted_timeline.write(folder)
    path = folder / name
    whole_text = path.read_text(encoding="utf-8")
    path.write_text("" if text is None else whole_text.replace(text, damaged_text), encoding="utf-8")

    with pytest.raises(FilmError) as error:
        Timeline.read(folder)

    message = str(error.value)
    assert str(path) in message
    assert "\n" not in message


@pytest.fixture
def shots_without_movies(tmp_path):
    """A file shots.csv of two shots without a column of movies; only the second has a detector and flags."""
    path = tmp_path / "shots.csv"
    path.write_text("start_s,end_s,detector,flags\n0,5,,\n5,9,by hand,bars;black\n", encoding="utf-8")
    return path


def test_shots_keep_their_detector_and_flags(shots_without_movies):
    """A table has two shots: the second was found "by hand", and has the flags bars and black.

    The first has neither detector nor flags: the name of the file, shots.csv, stands for its detector.
    """
    shots = read_shots(shots_without_movies, ["m"])["m"]
    assert shots["detector"].tolist() == ["shots.csv", "by hand"]
    assert shots["flags"].tolist() == ["", "bars;black"]


def test_shots_of_two_films_need_a_column_of_movies(shots_without_movies):
    """A table of shots has no column `movie`, and two films are scored: a row may be of film m or n."""
    with pytest.raises(ManifestError, match="movie"):
        read_shots(shots_without_movies, ["m", "n"])


class FlaggedByHand(NamedTuple):
    """A film of two minutes whose shots have flags, and some others by a person.

    Attributes
    ----------
    store
        The film's windows.
    shots
        The shots as a program found them; the first one is black.
    black_s
        The end of the first shot.
    flagged
        The shots with the person's flags: the first half of the black shot is not black, and 50 to 62.5 s
        are credits.
    """

    store: Store
    shots: pd.DataFrame
    black_s: float
    flagged: pd.DataFrame


@pytest.fixture
def flagged_by_hand(tmp_path):
    """The person's table has semicolons, commas for points and times with minutes, as in French."""
    shots = shots_of("m", end_s=120.0)
    shots.to_csv(tmp_path / "shots.csv", index=False)
    black_s = shots["end_s"].iloc[0]
    not_black_until = f"{black_s / 2:g}".replace(".", ",")
    by_hand = f"start_s;end_s;flags\n0;{not_black_until};\n0:50;1:02,5;credits\n"
    (tmp_path / "by_hand.csv").write_text(by_hand)
    flagged = read_shots(tmp_path / "shots.csv", ["m"], tmp_path / "by_hand.csv")["m"]
    return FlaggedByHand(film_store(tmp_path, "m", end_s=120.0), shots, black_s, flagged)


def test_flags_by_a_person_keep_the_cuts_of_shots(flagged_by_hand):
    """Shots are cut at the ends of the person's flags, too, and still follow each other without a gap."""
    flagged = flagged_by_hand.flagged
    assert set(flagged_by_hand.shots["start_s"]) <= set(flagged["start_s"])
    assert (flagged["start_s"].to_numpy()[1:] == flagged["end_s"].to_numpy()[:-1]).all()


def test_a_persons_flags_replace_those_of_shots_in_their_time(trained_models, flagged_by_hand):
    """A person says that the first half of the black shot is not black, and that 50 to 62.5 s are credits.

    All other flags stay.
    """
    models = [trained_models.paths["pcbm_lr"]]
    seconds_before = score_film(flagged_by_hand.store, models, shots=flagged_by_hand.shots).model().flags

    film = score_film(flagged_by_hand.store, models, shots=flagged_by_hand.flagged)

    seconds = film.model().flags
    assert seconds["black"] == pytest.approx(seconds_before["black"] - flagged_by_hand.black_s / 2, abs=0.001)
    assert seconds["credits"] == pytest.approx(seconds_before["credits"] + 12.5)
    assert film.record.shots.detector == "by_hand.csv+own"


def test_rows_are_cut_at_the_ends_of_a_persons_flags(trained_models, flagged_by_hand):
    """A person says that 50 to 62.5 s are credits."""
    film = score_film(flagged_by_hand.store, [trained_models.paths["pcbm_lr"]], shots=flagged_by_hand.flagged)
    rows = film.rows()
    rows_of_credits = rows[(rows["start_s"] >= 50) & (rows["end_s"] <= 62.5)]
    assert (rows_of_credits["flags"] == "credits").all()
    assert durations(rows_of_credits).sum() == pytest.approx(12.5)


@pytest.mark.parametrize(
    ("films", "table_of_flags", "error", "message"),
    [
        pytest.param(["m"], "start_s,end_s\n0,5\n", ManifestError, "flags", id="no column of flags"),
        pytest.param(
            ["m"], "start_s,end_s,flags\n0,5,title\n", ManifestError, "'title'", id="an unknown flag"
        ),
        pytest.param(
            ["m", "n"], "movie,start_s,end_s,flags\no,0,5,credits\n", FilmError, "'o'", id="another film"
        ),
    ],
)
def test_flags_that_would_be_lost_are_refused(tmp_path, films, table_of_flags, error, message):
    """A person's flags without a column, with an unknown name or for another film would have no effect."""
    shots = tmp_path / "shots.csv"
    shots.write_text("movie,start_s,end_s\nm,0,9\nn,0,9\n", encoding="utf-8")
    flags = tmp_path / "flags.csv"
    flags.write_text(table_of_flags, encoding="utf-8")
    with pytest.raises(error, match=message):
        read_shots(shots, films, flags)


@st.composite
def windows_and_cuts(draw):
    """Draw the windows of a film of 1 to 300 s, and the seconds at which shots meet, if there are any."""
    end_s = draw(st.floats(1, 300))
    window_s, hop_s = draw(st.floats(1, 60)), draw(st.floats(0.5, 80))
    cuts = draw(st.lists(st.floats(0.2, 299), max_size=8))
    return windows_of_film(end_s, window_s, hop_s), cuts


def windows_of_film(end_s, window_s, hop_s):
    """Cut a film into windows as `manifest import film` does."""
    clips = import_film([Film(Path("m.mp4"), end_s)], Path(), window_s, hop_s).manifest.clips
    spans = np.array([(clip.start_s, clip.end_s) for clip in clips])
    return Windows(tuple(clip.clip_id for clip in clips), spans)


def shots_between(cuts, windows):
    """Return the ends of the shots between some cuts, [n, 2]; None without cuts."""
    if not cuts:
        return None
    inner = {round(cut, 3) for cut in cuts if cut < windows.end_s - 0.1}
    edges = sorted({0.0, *inner, windows.end_s})
    return np.column_stack([edges[:-1], edges[1:]])


@given(film=windows_and_cuts())
@example(film=(windows_of_film(end_s=30.0, window_s=10.0, hop_s=10.0), []))
def test_rows_cover_the_film_without_overlap(film):
    """A film is divided into rows, by its shots or by its windows, which may overlap.

    Each second of the film is in one row, from 0 to its end, whatever windows and cuts between shots it has.
    As times are rounded to milliseconds, rows may lie apart, or overlap, by one.
    """
    windows, cuts = film

    _rows_are, rows = cut_into_rows(windows, shots_between(cuts, windows))

    starts_s = rows[:, 0]
    ends_s = rows[:, 1]
    assert (ends_s > starts_s).all()
    assert starts_s[0] == 0
    assert ends_s[-1] == pytest.approx(windows.end_s)
    gaps_between_rows_s = starts_s[1:] - ends_s[:-1]
    assert np.abs(gaps_between_rows_s).max(initial=0) <= 0.001

    lengths_of_windows_s = windows.spans[:, 1] - windows.spans[:, 0]
    seconds_of_windows_in_rows = overlaps(rows, windows.spans).sum(axis=0)
    assert seconds_of_windows_in_rows == pytest.approx(lengths_of_windows_s, abs=0.01)


@given(film=windows_and_cuts())
@example(film=(windows_of_film(end_s=30.0, window_s=10.0, hop_s=10.0), []))
def test_a_films_rows_are_its_shots_or_else_its_windows_or_steps_between_overlapping_windows(film):
    """A film may have shots (between cuts); then its rows are these, whatever its windows are.

    Without shots the rows are the windows, or, where windows overlap by more than .001 s, the steps from one
    start to the next. Times are kept in milliseconds: an overlap of just .001 s, but for floating-point
    error, may be taken for either.
    """
    windows, cuts = film
    rows_are, _rows = cut_into_rows(windows, shots_between(cuts, windows))

    ends_s, next_starts_s = windows.spans[:-1, 1], windows.spans[1:, 0]
    largest_overlap_s = max(ends_s - next_starts_s, default=0.0)
    floating_point_error_s = 1e-6
    if cuts:
        assert rows_are == "shots"
    elif largest_overlap_s > 0.001 + floating_point_error_s:
        assert rows_are == "steps"
    elif largest_overlap_s < 0.001 - floating_point_error_s:
        assert rows_are == "windows"


def test_a_long_shot_is_cut_into_as_few_rows_as_possible():
    """Windows last 8 s: a shot of 8 s stays whole, and one of 16 s becomes two rows."""
    windows = Windows(("a", "b", "c"), np.array([[0.0, 8.0], [8.0, 16.0], [16.0, 24.0]]))
    shots = np.array([[0.0, 8.0], [8.0, 24.0]])
    _rows_are, rows = cut_into_rows(windows, shots)
    assert rows.tolist() == [[0, 8], [8, 16], [16, 24]]


def write_subtitles(folder, name="tt0000001.en.srt"):
    """Write two lines, said at 10.5 and at 60 s; the first looks like a tag of HTML."""
    path = folder / name
    lines = ["1\n00:00:10,500 --> 00:00:12,000\nGive me the <gun>", "2\n00:01:00,000 --> 00:01:02,000\nNo"]
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def with_and_without_subtitles(trained_models, tmp_path_factory):
    """A film of two minutes, scored with the two lines of `write_subtitles`, and without."""
    folder = tmp_path_factory.mktemp("subtitles")
    store, model = film_store(folder, "tt0000001", end_s=120.0), trained_models.paths["pcbm_lr"]
    tables = read_subtitles_of([write_subtitles(folder)], ["tt0000001"])
    return score_film(store, [model], subtitles=tables["tt0000001"]), score_film(store, [model])


def test_subtitles_are_written_and_read_back_if_there_are_any(with_and_without_subtitles, tmp_path):
    """A film with two lines of subtitles is written with a file `subtitles.csv`, and read back with them.

    One without subtitles has no such file.
    """
    spoken, silent = with_and_without_subtitles
    silent.write(tmp_path / "silent")
    assert not (tmp_path / "silent" / "subtitles.csv").exists()

    spoken.write(tmp_path / "spoken")
    assert Timeline.read(tmp_path / "spoken").subtitles.to_dict("records") == [
        {"start_s": 10.5, "end_s": 12.0, "text": "Give me the <gun>"},
        {"start_s": 60.0, "end_s": 62.0, "text": "No"},
    ]


def test_subtitles_that_were_changed_since_are_refused(with_and_without_subtitles, tmp_path):
    """In the folder of a scored film somebody changes a line of the subtitles, "No", to "Yes".

    Then they are not what the film was scored with, and the film is not read.
    """
    spoken, _ = with_and_without_subtitles
    spoken.write(tmp_path / "spoken")
    path = tmp_path / "spoken" / "subtitles.csv"
    path.write_text(path.read_text("utf-8").replace("No", "Yes"), encoding="utf-8")
    with pytest.raises(FilmError, match=r"subtitles\.csv"):
        Timeline.read(tmp_path / "spoken")


@pytest.mark.long
def test_a_page_has_subtitles_as_data_and_never_as_html(with_and_without_subtitles):
    """A film has the lines "Give me the <gun>" at 10.5 s and "No" at 60 s.

    Their starts are packed as milliseconds, 32 bits each.
    """
    spoken, silent = with_and_without_subtitles
    page = film_page([spoken])
    data = data_of(page)
    data_without = data_of(film_page([silent]))

    assert data["lines"] == ["Give me the <gun>", "No"]
    assert "<gun>" not in page
    starts_ms = np.frombuffer(b64decode(data["said"]["starts"]), "<u4")
    assert starts_ms.tolist() == [10_500, 60_000]
    assert data_without["lines"] == []


def test_an_export_has_a_tier_of_subtitles_if_there_are_any(with_and_without_subtitles):
    """One film has the line "Give me the <gun>", and the other one no subtitles."""
    spoken, silent = with_and_without_subtitles
    assert "obygaze: subtitles" in export(spoken, "eaf")
    assert "obygaze: subtitles" not in export(silent, "eaf")
    assert "Give me the" in export(spoken, "vtt", tiers=("subtitles",))


def test_a_message_counts_the_subtitles_that_begin_after_the_end_of_a_film(tmp_path):
    """A film's last window ends at 30 s, and one of two lines of its subtitles begins at 60 s.

    The subtitles may be of another cut of the film.
    """
    windows = windows_of(film_store(tmp_path, "tt0000001", end_s=30.0))
    messages = []
    read_subtitles_of([write_subtitles(tmp_path)], ["tt0000001"], "", messages.append, windows)
    assert any("1 begin behind the last window, 30 s" in message for message in messages)


def test_subtitles_are_matched_to_films_by_name(tmp_path):
    """a.en.srt is of film a, whatever its language."""
    files = [write_subtitles(tmp_path, "a.en.srt"), write_subtitles(tmp_path, "b.srt")]
    assert list(read_subtitles_of(files, ["b", "a"])) == ["a", "b"]


def test_the_only_file_of_the_only_film_may_have_any_name(tmp_path):
    """The film is called other, and its subtitles are in the file a.en.srt: they can be of no other film."""
    file = write_subtitles(tmp_path, "a.en.srt")
    assert list(read_subtitles_of([file], ["other"])) == ["other"]


def test_subtitles_of_a_film_that_is_not_scored_are_refused(tmp_path):
    """Films a and c are scored. Of two files of subtitles, b.srt is of neither: its name may be wrong."""
    files = [write_subtitles(tmp_path, "a.en.srt"), write_subtitles(tmp_path, "b.srt")]
    with pytest.raises(FilmError, match=r"b\.srt: no scored film"):
        read_subtitles_of(files, ["a", "c"])


def test_two_files_of_subtitles_of_one_film_are_refused(tmp_path):
    """a.en.srt and a.fr.srt are both of film a, in two languages: nobody says which is to be taken."""
    files = [write_subtitles(tmp_path, "a.en.srt"), write_subtitles(tmp_path, "a.fr.srt")]
    with pytest.raises(FilmError, match=r"a\.fr\.srt: of film a, as"):
        read_subtitles_of(files, ["a", "c"])


def test_titles_and_years_of_films_none_of_which_is_in_the_store_are_refused(
    trained_models, store_of_two_films
):
    """The store has the films a and b. A title is given of a film "other": that is a table for another store.

    Without a refusal no film would get its title.
    """
    models = [trained_models.paths["pcbm_lr"]]
    facts = {"other": FilmFacts("The Other", year=1931)}

    with pytest.raises(FilmError, match="other"):
        score_films(store_of_two_films, models, facts=facts)


def test_titles_of_films_that_are_not_in_the_store_are_ignored_beside_that_of_one_that_is(
    trained_models, store_of_two_films
):
    """The store has the films a and b; a table has the titles of a and of a film "other"."""
    models = [trained_models.paths["pcbm_lr"]]
    facts = {"other": FilmFacts("The Other", year=1931), "a": FilmFacts("The A", year=1932)}

    (film,) = score_films(store_of_two_films, models, movies={"a"}, facts=facts)

    assert film.record.title == "The A"
