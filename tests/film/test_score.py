"""Scores of films: where the planted segments are, what is withheld, and what adds up."""

from base64 import b64decode
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Film, import_film
from obygaze_features.store import open_store
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


def overlap(one, other):
    """Intersection over union of two spans (start, end) of seconds."""
    common = max(0.0, min(one[1], other[1]) - max(one[0], other[0]))
    return common / (one[1] - one[0] + other[1] - other[0] - common)


@pytest.mark.long
def test_all_planted_segments_are_found_and_at_most_one_more(timeline):
    """A gun is planted in four spans. A span is found if a segment overlaps it by a half of both together.

    Each found segment has the gun as its first reason.
    """
    segments = timeline.segments()
    marked = segments[segments["reaches"] == 1]
    spans = list(zip(marked["start_s"], marked["end_s"], strict=True))

    assert all(max(overlap(span, planted) for span in spans) >= 0.5 for planted in PLANTED)
    assert len(spans) <= len(PLANTED) + 1
    assert segments["rank"].tolist() == list(range(1, len(segments) + 1))
    assert marked["concepts"].str.startswith("Gun").all()


@pytest.fixture
def rows_of_csv(scored):
    """The rows of the model pcbm_lr as anybody reads them from timeline.csv."""
    folder, _ = scored
    table = pd.read_csv(folder / "timeline.csv")
    return table[table["model"] == "pcbm_lr"]


def test_contributions_add_up_to_the_logit(rows_of_csv):
    """What each concept adds, and the base, explain the model's score wholly."""
    added = rows_of_csv[[name for name in rows_of_csv if name.endswith("_contribution")]].sum(axis=1)
    has_p = rows_of_csv["p"].notna()
    assert np.abs(added - rows_of_csv["logit"])[has_p].max() < 1e-9


def test_the_rate_is_the_mean_probability_of_the_seconds(rows_of_csv, timeline):
    """The rate is the share of the film's seconds that is expected to be violent: longer rows count more.

    It lies within its two intervals, of which that for films is the wider one.
    """
    rows = rows_of_csv[rows_of_csv["p"].notna()]
    mean = np.average(rows["p"], weights=rows["end_s"] - rows["start_s"])
    rate = timeline.rate()
    assert rate.value == pytest.approx(mean, abs=1e-12)
    assert rate.bracket_low < rate.calibration_low < mean < rate.calibration_high < rate.bracket_high


def test_p_is_the_calibrated_probability_of_the_logit(rows_of_csv, timeline):
    draws = np.array(timeline.model().calibration.draws)
    p = mean_probability(draws, rows_of_csv["logit"].to_numpy())
    assert np.abs(p - rows_of_csv["p"]).max() < 1e-9


def test_only_black_and_credits_have_no_probability(rows_of_csv):
    """All other rows of this film are like the training clips, and so they have one."""
    has_p = rows_of_csv["p"].notna()
    assert (has_p == ~rows_of_csv["flags"].fillna("").str.contains("black|credits")).all()
    empty = ["p_low", "p_high", "called", "Gun_p", "Gun_contribution"]
    assert rows_of_csv.loc[~has_p, empty].isna().all().all()


def test_rows_are_shots_that_cover_the_film(timeline):
    """Each row follows the one before, from 0 to 600 s; the first shot is black."""
    rows = timeline.rows()
    assert (rows["start_s"].to_numpy()[1:] == rows["end_s"].to_numpy()[:-1]).all()
    assert (rows["start_s"].iloc[0], rows["end_s"].iloc[-1]) == (0, 600)

    shots = shots_of("tt0000001")
    assert set(shots["start_s"]) <= set(rows["start_s"])
    assert durations(rows).max() <= 8.1  # longer shots are cut into parts no longer than a window
    assert rows["flags"].iloc[0] == "black"
    assert timeline.record.shots.n == len(shots)
    assert timeline.model().flags["black"] == pytest.approx(shots["end_s"].iloc[0])


@pytest.fixture(scope="module")
def minute(trained, tmp_path_factory):
    """A store of a film m of one minute, in windows of 8 s every 4 s, and a model's logit of each."""
    store = film_store(tmp_path_factory.mktemp("minute"), "m", end_s=60.0, planted=())
    logits = load_model(trained.paths["linear"]).logits(store["descriptors"].pooled())
    return store, logits


def test_a_model_and_its_file_give_the_same_rows(trained, minute):
    store, _ = minute
    by_model = score_film(store, [load_model(trained.paths["linear"])]).rows()
    assert by_model.equals(score_film(store, [trained.paths["linear"]]).rows())


def test_a_step_averages_the_logits_of_its_windows(trained, minute):
    """Without shots the rows are steps of 4 s, the hop of windows of 8 s, so that most lie in two windows."""
    store, logits = minute
    film = score_film(store, [trained.paths["linear"]])
    rows = film.rows()

    assert film.record.rows.kind == "steps"
    assert rows["logit"].iloc[0] == pytest.approx(logits[0])  # 0 to 4 s: the first window alone
    assert rows["logit"].iloc[3] == pytest.approx((logits[2] + logits[3]) / 2)  # 12 to 16 s
    assert durations(rows).max() < 1.5 * 4  # a last step of half a hop stands alone
    assert any("steps" in line for line in lines_of_film(film, Words("en")))


@pytest.fixture(scope="module")
def in_two_shots(trained, minute):
    """The same minute, in a shot of 7 s and another of 53 s."""
    store, _ = minute
    shots = pd.DataFrame(
        {"movie": "m", "start_s": [0.0, 7.0], "end_s": [7.0, 60.0], "detector": "x", "flags": ""}
    )
    return score_film(store, [trained.paths["linear"]], shots=shots)


def test_a_shot_averages_the_logits_of_its_windows_by_seconds(minute, in_two_shots):
    """On the shot from 0 to 7 s lie 7 s of the window from 0 to 8 s, and 3 s of that from 4 to 12 s."""
    _, logits = minute
    first = in_two_shots.rows().iloc[0]
    assert first["logit"] == pytest.approx((7 * logits[0] + 3 * logits[1]) / 10)
    assert first["n_windows"] == 2


def test_a_long_shot_is_several_rows_and_counted_as_one_shot(in_two_shots):
    """A shot of 53 s is cut into rows no longer than a window of 8 s; readers are told of 2 shots."""
    n_rows = len(in_two_shots.rows())
    assert n_rows > 2
    assert "2 shots" in film_page([in_two_shots])
    assert any(f"2 shots in {n_rows} rows" in line for line in lines_of_film(in_two_shots, Words("en")))


def test_long_shots_are_cut_at_milliseconds_and_keep_their_flags(tmp_path):
    """Shots of 20 s are longer than a window of 8 s."""
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


def test_the_hop_of_windows_is_between_their_starts_and_their_length_in_milliseconds():
    assert Windows(("a", "b", "c"), np.array([[0.0, 8], [4, 12], [8, 20]])).hop_s == 4
    assert Windows(("a",), np.array([[0.0, 8.12349]])).window_s == 8.123


def test_a_concept_has_the_metric_of_its_own_task():
    """Of three metrics one is of concept A and has a chance level: .6 against .2."""
    metrics = (
        {"task": "hn_s", "movie_mean": 0.9, "movie_chance": 0.5},  # of another task
        {"task": "concept:A", "movie_mean": 0.7},  # without a chance level
        {"task": "concept:A", "movie_mean": 0.6, "movie_chance": 0.2},
    )
    model = SimpleNamespace(card=SimpleNamespace(metrics=metrics), estimator=None)
    record = _concept(model, "A", 0.4)

    assert (record.ap, record.chance, record.threshold_p) == (0.6, 0.2, 0.4)


def test_a_film_unlike_training_gets_no_probability_and_no_rate(trained, tmp_path):
    """A model's number on what is unlike all its training clips means nothing, so that none is given.

    Logits are kept; the title says why there is no prediction.
    """
    _, timeline = scored_film(tmp_path, trained, "odd", shift=30.0, models=("pcbm_lr", "linear"))
    for key in timeline.keys:
        rows = timeline.rows(key)
        assert rows["flags"].str.contains("unlike").all()
        empty = ["p", "p_low", "p_high", "called", *(name for name in rows if name.endswith("_contribution"))]
        assert rows[empty].isna().all().all()
        assert rows["logit"].notna().all()
        assert timeline.rate(key).value is None
        assert timeline.rate(key).unreliable == 1
        assert timeline.segments(key).empty

    assert heading_of(timeline).startswith("A Planted Film · no prediction: unlike")


@pytest.mark.parametrize(("end_s", "is_short"), [(12.0, True), (20.0, False)])
def test_a_film_shorter_than_two_windows_is_flagged(trained, tmp_path, end_s, is_short):
    """Two windows of 8 s are 16 s."""
    _, film = scored_film(tmp_path, trained, end_s=end_s, with_shots=False)
    assert has_flag(film.rows(), "short").tolist() == [is_short] * len(film.rows())


def test_a_film_that_a_model_was_trained_on_says_so(trained):
    """Scores of a film that the model has learnt are no prediction."""
    timeline = score_film(trained.store, [trained.paths["pcbm_lr"]], movie="f0")
    assert heading_of(timeline) == "f0 · no prediction: the model was trained on this film"
    assert timeline.rows()["flags"].str.contains("trained_on").all()
    assert timeline.rate().reason == "the model was trained on this film"


def test_a_film_under_another_name_is_known_by_its_features(trained, tmp_path):
    """The film's features have the same bytes as those of a training film: the name alone would not tell."""
    store = under_another_name(trained, "f0", "another name", tmp_path)
    timeline = score_film(store, [trained.paths["pcbm_lr"]], movie="another name")
    assert timeline.rows()["flags"].str.contains("trained_on").all()
    explained = explain(load_model(trained.paths["pcbm_lr"]), [store], "another name-1", {})
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
def test_a_film_of_which_more_than_a_fifth_is_unlike_has_no_rate(trained, tmp_path, share, is_refused):
    """A tenth of the film unlike training is tolerated, .3 of it is not. It has no probability either way."""
    film = score_film(film_unlike_at_its_start(tmp_path, share), [trained.paths["pcbm_lr"]])
    rate, rows = film.rate(), film.rows()
    assert (rate.value is None) == is_refused
    assert bool(rate.reason) == is_refused
    assert rate.unreliable == pytest.approx(share, abs=0.05)
    window_s = 8  # rows near the end of the unlike part are also in windows that are like training
    surely_unlike = rows["start_s"] < 200 * share - window_s
    assert rows.loc[surely_unlike, "p"].isna().all()


def test_a_shot_is_unlike_if_most_seconds_of_its_windows_are(trained, tmp_path):
    """Windows of 8 s that begin every 4 s before `unlike_s` are unlike training; others are like it.

    The second shot is from 1.5 s before that to 4 s after it. On it lie, of unlike windows that begin 8 and 4
    s before, 1.5 + 5.5 s, and of the one like training that begins there, 4 s: 7 of 11 seconds are unlike.
    """
    share = 0.1
    unlike_s = 200 * share
    second_start_s, second_end_s = unlike_s - 1.5, unlike_s + 4
    shots = pd.DataFrame(
        {
            "movie": "mixed",
            "start_s": [0.0, second_start_s, second_end_s],
            "end_s": [second_start_s, second_end_s, 200.0],
            "detector": "own",
            "flags": "",
        }
    )
    store = film_unlike_at_its_start(tmp_path, share)
    rows = score_film(store, [trained.paths["pcbm_lr"]], shots=shots).rows()
    is_of_first_two_shots = rows["start_s"] < second_end_s

    assert (has_flag(rows, "unlike") == is_of_first_two_shots).all()


def test_windows_without_features_leave_their_rows_missing(trained, tmp_path):
    """Four windows in a row failed. Most of their seconds lie in other windows too: only 12 s lie in none."""
    failed = [f"gap-{number:04d}" for number in range(10, 14)]
    store = film_store(tmp_path, "gap", end_s=200.0, failed=failed)
    timeline = score_film(store, [trained.paths["pcbm_lr"]])
    rows = timeline.rows()
    missing = rows[rows["status"] == "missing"]

    # Windows 36-44 ... 48-56 failed; 40-52 has no other.
    assert missing["start_s"].tolist() == [40.0, 44.0, 48.0]
    assert missing["flags"].str.contains("missing").all()
    assert missing[["logit", "p", "unlike"]].isna().all().all()
    assert timeline.record.windows.n_missing == 4
    assert timeline.rate().unreliable == pytest.approx(12 / 200)


@pytest.mark.long
def test_the_same_film_scored_again_gives_the_same_bytes(scored, trained, tmp_path):
    """A scored film can be reproduced by anybody with the same store and models."""
    folder, _ = scored
    again, _ = scored_film(tmp_path, trained, models=("pcbm_lr", "bank"))
    for name in ("film.json", "timeline.csv", "segments.csv", "shots.csv"):
        assert (again / name).read_bytes() == (folder / name).read_bytes()


def test_a_scored_film_is_read_back_as_it_was(scored):
    folder, timeline = scored
    read = Timeline.read(folder)
    assert files_of(read) == files_of(timeline)
    pd.testing.assert_frame_equal(read.table, timeline.table)
    assert read.record == timeline.record


def test_a_bank_has_concepts_and_no_decision(timeline):
    """A bank is a model that finds concepts, here two, and does not decide on a level."""
    rows = timeline.rows("bank")
    assert rows[["logit", "p", "called"]].isna().all().all()
    assert (rows["Gun_p"].notna() == ~has_flag(rows, *NO_CONTENT)).all()
    assert timeline.rate("bank").reason == "the model finds concepts and decides nothing"
    assert timeline.segments("bank").empty
    assert [concept.is_found for concept in timeline.model().concepts] == [True, True]


@pytest.fixture
def store_of_two_films(tmp_path):
    """A store with the windows of two films, a and b."""
    return film_store(tmp_path, "b", "a", end_s=100.0)


@pytest.mark.long
def test_several_films_are_scored_at_once(trained, tmp_path, store_of_two_films):
    facts = {"a": FilmFacts("The A", 1931)}
    films = score_films(store_of_two_films, [trained.paths["pcbm_lr"]], facts=facts)
    assert [film.record.title for film in films] == ["The A", "b"]
    for film in films:
        film.write(tmp_path / "out" / film.movie)
    assert [film.movie for film in read_films([tmp_path / "out"])] == ["a", "b"]


def test_which_of_two_films_is_meant_must_be_said(trained, store_of_two_films):
    """The store has films a and b, and one is to be scored."""
    with pytest.raises(FilmError, match="a, b"):
        score_film(store_of_two_films, [trained.paths["pcbm_lr"]])


def test_shots_of_a_film_that_is_not_in_the_store_are_refused(trained, store_of_two_films):
    shots = {"other": shots_of("other")}
    with pytest.raises(FilmError, match="other"):
        score_films(store_of_two_films, [trained.paths["pcbm_lr"]], shots=shots)


def test_models_of_one_name_are_numbered(trained, store_of_two_films):
    film = score_film(store_of_two_films, [trained.paths["linear"]] * 3, movie="a")
    assert film.keys == ("linear", "linear-2", "linear-3")


def test_a_store_of_whole_files_is_refused(trained, tmp_path):
    """A clip that is a whole file has no time within a film."""
    features = {"descriptors": {"pooled": np.zeros((1, 8), np.float32)}}
    path = seal_arrays(tmp_path / "whole", {"c": "m"}, features)  # without spans
    with pytest.raises(FilmError, match="clip c"):
        score_film(open_store(path), [trained.paths["linear"]])


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("film.json", '"obygaze film"', '"other"'),
        ("film.json", f'"number": {NUMBER}', '"number": 9'),
        ("film.json", '"duration_s"', "["),
        ("timeline.csv", "logit", "logits"),
        *(("timeline.csv", f"Gun_{name}", "other") for name in ("value", "p", "contribution")),
        ("timeline.csv", ",pcbm_lr,", ",other,"),
        ("timeline.csv", "600.0", "soon"),
        ("shots.csv", None, ""),
    ],
    ids=lambda value: "all of it" if value is None else None,
)
def test_a_damaged_file_is_named_in_one_line(timeline, tmp_path, name, old, new):
    timeline.write(tmp_path / "film")
    path = tmp_path / "film" / name
    text = path.read_text(encoding="utf-8")
    damaged = new if old is None else text.replace(old, new)
    path.write_text(damaged, encoding="utf-8")

    with pytest.raises(FilmError) as error:
        Timeline.read(tmp_path / "film")
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_shots_keep_their_detector_and_a_single_film_needs_no_column_of_movies(tmp_path):
    """A row without a detector has that of the file's name.

    With two films each row must say of which it is.
    """
    path = tmp_path / "shots.csv"
    path.write_text("start_s,end_s,detector,flags\n0,5,,\n5,9,by hand,bars;black\n", encoding="utf-8")
    shots = read_shots(path, ["m"])["m"]

    assert shots["detector"].tolist() == ["shots.csv", "by hand"]
    assert shots["flags"].tolist() == ["", "bars;black"]

    with pytest.raises(ManifestError, match="movie"):
        read_shots(path, ["m", "n"])


def test_a_persons_flags_replace_those_of_shots_in_their_time(trained, tmp_path):
    """A person says that the first half of the black shot is not black, and that 50 to 62.5 s are credits.

    Their table has semicolons, commas for points, and times with minutes, as a French spreadsheet writes it.
    All other flags and the cuts of the shots stay; rows are cut at the ends of the person's flags, too.
    """
    store, models = film_store(tmp_path, "m", end_s=120.0), [trained.paths["pcbm_lr"]]
    shots = shots_of("m", 120.0)
    shots.to_csv(tmp_path / "shots.csv", index=False)
    black_s = shots["end_s"].iloc[0]  # of the first shot
    not_black_until = f"{black_s / 2:g}".replace(".", ",")
    by_hand = f"start_s;end_s;flags\n0;{not_black_until};\n0:50;1:02,5;credits\n"
    (tmp_path / "by_hand.csv").write_text(by_hand)

    flagged_shots = read_shots(tmp_path / "shots.csv", ["m"], tmp_path / "by_hand.csv")["m"]
    film = score_film(store, models, shots=flagged_shots)

    assert set(shots["start_s"]) <= set(flagged_shots["start_s"])
    assert (flagged_shots["start_s"].to_numpy()[1:] == flagged_shots["end_s"].to_numpy()[:-1]).all()
    flags, before = film.model().flags, score_film(store, models, shots=shots).model().flags
    assert flags["black"] == pytest.approx(before["black"] - black_s / 2, abs=0.001)
    assert flags["credits"] == pytest.approx(before["credits"] + 12.5)
    assert film.record.shots.detector == "by_hand.csv+own"
    rows = film.rows()
    during = rows[(rows["start_s"] >= 50) & (rows["end_s"] <= 62.5)]
    assert (during["flags"] == "credits").all()
    assert durations(during).sum() == pytest.approx(12.5)


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


SLACK_S = 0.001
"""Times are in milliseconds, and windows that overlap by less do not."""


@given(film=windows_and_cuts())
@example(film=(windows_of_film(30.0, 10.0, 10.0), []))
def test_rows_cover_the_film_without_overlap(film):
    """Whatever windows and shots a film has, each of its seconds is in one row."""
    windows, cuts = film
    _, rows = cut_into_rows(windows, shots_between(cuts, windows))
    assert rows[0, 0] == 0
    assert rows[-1, 1] == pytest.approx(windows.end_s)
    assert (rows[:, 1] > rows[:, 0]).all()
    assert np.abs(rows[1:, 0] - rows[:-1, 1]).max(initial=0) <= SLACK_S

    covered_s = overlaps(rows, windows.spans).sum(axis=0)  # of each window
    assert covered_s == pytest.approx(windows.spans[:, 1] - windows.spans[:, 0], abs=0.01)


@given(film=windows_and_cuts())
@example(film=(windows_of_film(30.0, 10.0, 10.0), []))
def test_rows_are_shots_windows_or_steps(film):
    """Rows are shots if these are known. Else they are windows, or steps where windows overlap."""
    windows, cuts = film
    kind, _ = cut_into_rows(windows, shots_between(cuts, windows))
    ends_s, next_starts_s = windows.spans[:-1, 1], windows.spans[1:, 0]
    overlap_s = max(ends_s - next_starts_s, default=0.0)
    # An overlap of up to `SLACK_S` is no overlap; one of just this length may be taken for either.
    overlaps = overlap_s > SLACK_S + 1e-6
    may_overlap = overlap_s >= SLACK_S - 1e-6
    if cuts:
        assert kind == "shots"
    elif overlaps:
        assert kind == "steps"
    elif not may_overlap:
        assert kind == "windows"


def test_a_long_shot_is_cut_into_as_few_rows_as_possible():
    """Windows last 8 s: a shot of 8 s stays whole, and one of 16 s becomes two rows."""
    windows = Windows(("a", "b", "c"), np.array([[0.0, 8.0], [8.0, 16.0], [16.0, 24.0]]))
    _, rows = cut_into_rows(windows, np.array([[0.0, 8.0], [8.0, 24.0]]))
    assert rows.tolist() == [[0, 8], [8, 16], [16, 24]]


def write_subtitles(folder, name="tt0000001.en.srt"):
    """Write two lines, said at 10.5 and at 60 s; the first looks like a tag of HTML."""
    path = folder / name
    lines = ["1\n00:00:10,500 --> 00:00:12,000\nGive me the <gun>", "2\n00:01:00,000 --> 00:01:02,000\nNo"]
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def with_and_without_subtitles(trained, tmp_path_factory):
    """A film of two minutes, scored with the two lines of `write_subtitles`, and without."""
    folder = tmp_path_factory.mktemp("subtitles")
    store, model = film_store(folder, "tt0000001", end_s=120.0), trained.paths["pcbm_lr"]
    tables = read_subtitles_of([write_subtitles(folder)], ["tt0000001"])
    return score_film(store, [model], subtitles=tables["tt0000001"]), score_film(store, [model])


def test_subtitles_are_written_and_read_back_if_there_are_any(with_and_without_subtitles, tmp_path):
    """A film without subtitles has no such file."""
    spoken, silent = with_and_without_subtitles
    silent.write(tmp_path / "silent")
    assert not (tmp_path / "silent" / "subtitles.csv").exists()

    spoken.write(tmp_path / "spoken")
    assert Timeline.read(tmp_path / "spoken").subtitles.to_dict("records") == [
        {"start_s": 10.5, "end_s": 12.0, "text": "Give me the <gun>"},
        {"start_s": 60.0, "end_s": 62.0, "text": "No"},
    ]


def test_subtitles_that_were_changed_since_are_refused(with_and_without_subtitles, tmp_path):
    spoken, _ = with_and_without_subtitles
    spoken.write(tmp_path / "spoken")
    path = tmp_path / "spoken" / "subtitles.csv"
    path.write_text(path.read_text("utf-8").replace("No", "Yes"), encoding="utf-8")
    with pytest.raises(FilmError, match=r"subtitles\.csv"):
        Timeline.read(tmp_path / "spoken")


@pytest.mark.long
def test_a_page_has_subtitles_as_data_and_never_as_html(with_and_without_subtitles):
    """Their starts are packed as milliseconds, 32 bits each."""
    spoken, silent = (film_page([film]) for film in with_and_without_subtitles)
    assert data_of(silent)["lines"] == []
    assert data_of(spoken)["lines"] == ["Give me the <gun>", "No"]
    assert "<gun>" not in spoken
    starts = np.frombuffer(b64decode(data_of(spoken)["said"]["starts"]), "<u4")
    assert starts.tolist() == [10_500, 60_000]


def test_an_export_has_a_tier_of_subtitles_if_there_are_any(with_and_without_subtitles):
    spoken, silent = with_and_without_subtitles
    assert "obygaze: subtitles" in export(spoken, "eaf")
    assert "obygaze: subtitles" not in export(silent, "eaf")
    assert "Give me the" in export(spoken, "vtt", tiers=("subtitles",))


def test_subtitles_that_begin_after_the_last_window_are_named(tmp_path):
    """Of the two lines one is said at 60 s, in a film of 30."""
    windows = windows_of(film_store(tmp_path, "tt0000001", end_s=30.0))
    messages: list[str] = []
    read_subtitles_of([write_subtitles(tmp_path)], ["tt0000001"], "", messages.append, windows)
    assert any("1 begin behind the last window, 30 s" in message for message in messages)


def test_subtitles_are_matched_to_films_by_name(tmp_path):
    """a.en.srt is of film a.

    The only file of the only film needs no name; two files of one film are refused.
    """
    of_a, of_b = write_subtitles(tmp_path, "a.en.srt"), write_subtitles(tmp_path, "b.srt")

    assert list(read_subtitles_of([of_a, of_b], ["b", "a"])) == ["a", "b"]
    assert list(read_subtitles_of([of_a], ["other"])) == ["other"]  # one file of the only film

    with pytest.raises(FilmError, match=r"b\.srt: no scored film"):
        read_subtitles_of([of_a, of_b], ["a", "c"])
    with pytest.raises(FilmError, match=r"a\.fr\.srt: of film a, as"):
        read_subtitles_of([of_a, write_subtitles(tmp_path, "a.fr.srt")], ["a", "c"])
