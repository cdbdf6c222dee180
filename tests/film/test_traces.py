"""What models say of frames is kept step by step, written, read back and shown inside the segments."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from obygaze_film import score
from obygaze_film.claims.words import Words, clock
from obygaze_film.page import cards, film_page
from obygaze_film.scored_files import files_of
from obygaze_film.timeline import Timeline
from tests.film.films import scored_film
from tests.film.page.invented import fake_scored_film
from tests.film.saying import data_of

SMALL = {"duration_s": 600.0, "n_rows": 120, "unlike_parts": ()}
"""A film of ten minutes, all of it judged."""

AFTER_START_S = 10
"""Seconds from a segment's start to the step in which its concepts are likeliest."""


@pytest.fixture
def traced():
    """An invented film with a step for every second, in which Body and Type of shot have the probability .2.

    `AFTER_START_S` after the start of each segment is a step in which they have .95.
    """
    film = fake_scored_film(**SMALL)
    starts = np.arange(0.0, 600.0)
    likeliest_steps = np.floor(film.segments()["start_s"].to_numpy() + AFTER_START_S)
    p = np.where(np.isin(starts, likeliest_steps), 0.95, 0.2)
    frames = pd.DataFrame(
        {
            "movie": film.movie,
            "model": "pcbm_lr",
            "start_s": starts,
            "end_s": starts + 1,
            "n_frames": pd.array([2] * len(starts), dtype="Int64"),
            "weight": np.nan,
            "contribution": np.nan,
            "Body_p": p,
            "Type of shot_p": p,
        }
    )
    return replace(film, frames=frames)


def traces_of_frames(monkeypatch, frames, *clip_ids):
    """Compute the traces of a film from what a model gives of the frames of its clips, `frames`.

    Store and model are stand-ins: the store also has a clip of another film, for which nothing may be asked.
    """
    all_clip_ids = (*clip_ids, "other-0001")
    group = SimpleNamespace(clip_ids=all_clip_ids, usable=np.ones(len(all_clip_ids), bool))
    model = SimpleNamespace(card=SimpleNamespace(backbone="toy"), concepts=(), concepts_with_probability=())

    def frames_of_rows(_model, _store, rows):
        rows_of_film = list(range(len(clip_ids)))
        assert rows.tolist() == rows_of_film
        return frames

    monkeypatch.setattr(score, "reads_frames", lambda _model, _store: True)
    monkeypatch.setattr(score, "frames_of", frames_of_rows)
    return score.traces_of(model, "attention", {"toy": group}, "film", list(clip_ids))


def frames_at(times_s, clip_id="film-0001", weight=1):
    """Values of a window's frames at these times: the same weight for all, which add nothing."""
    return pd.DataFrame({"clip_id": clip_id, "time_s": times_s, "weight": weight, "contribution": 0.0})


def test_frames_of_overlapping_windows_are_averaged_by_the_second(monkeypatch):
    """Two windows of 4 s with a frame each half second: the second begins in the middle of the first.

    Frames of the first weigh 0 and of the second 1: the two seconds that lie in both have .5, of four
    frames.
    """
    half_seconds = np.array([0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5])
    first = frames_at(half_seconds, "film-0001", weight=0)
    second = frames_at(half_seconds + 2, "film-0002", weight=1)

    steps = traces_of_frames(monkeypatch, pd.concat([first, second]), "film-0001", "film-0002")

    assert steps["start_s"].tolist() == [0, 1, 2, 3, 4, 5]
    assert steps["n_frames"].tolist() == [2, 2, 4, 4, 2, 2]
    assert steps["weight"].tolist() == [0, 0, 0.5, 0.5, 1, 1]


def test_frames_three_seconds_apart_are_kept_in_steps_of_three_seconds(monkeypatch):
    """A film's only window has frames at 0, 3, 6 and 9 s.

    Steps of a second would leave two of three without a frame.
    """
    steps = traces_of_frames(monkeypatch, frames_at([0.0, 3, 6, 9]), "film-0001")
    assert steps["start_s"].tolist() == [0, 3, 6, 9]
    assert steps["end_s"].tolist() == [3, 6, 9, 12]
    assert steps["n_frames"].tolist() == [1, 1, 1, 1]


def test_frames_of_unknown_times_are_left_out(monkeypatch):
    """Neither of the two frames of a film's only window has a known time, so that no step has a frame."""
    steps = traces_of_frames(monkeypatch, frames_at([np.nan, np.nan]), "film-0001")
    assert len(steps) == 0


def test_a_film_with_frames_is_written_and_read_back(traced, tmp_path):
    """The film has a step of frames for every second. Read back, it would be written as the same bytes."""
    traced.write(tmp_path)

    read_film = Timeline.read(tmp_path)
    pd.testing.assert_frame_equal(read_film.frames, traced.frames, check_dtype=False)
    assert files_of(read_film) == files_of(traced)


def test_a_film_without_frames_removes_the_file_of_frames_that_was_there(traced, tmp_path):
    """The film was written with frames, and is written again without."""
    traced.write(tmp_path)
    assert (tmp_path / "frames.csv").exists()

    replace(traced, frames=score.NO_TRACES).write(tmp_path)

    assert not (tmp_path / "frames.csv").exists()


def test_the_page_has_frames_of_segments_with_a_traced_concept(traced):
    """Body and Type of shot are the traced concepts: frames are drawn of segments in which one is seen."""
    n_with_traced_concept = traced.segments()["present"].str.contains("Body|Type of shot").sum()
    assert n_with_traced_concept > 0

    passages = data_of(film_page([traced]))["passages"]

    with_frames = [passage for passage in passages if passage["frames"]]
    assert len(with_frames) == n_with_traced_concept


def test_the_page_names_the_second_in_which_a_traced_concept_is_likeliest(traced):
    """Body and Type of shot have the probability .95 ten seconds after the start of each segment, else .2.

    The page names the second of the first segment, on the clock, in which they are likeliest.
    """
    first_segment = traced.segments().iloc[0]
    expected = clock(np.floor(first_segment["start_s"] + 10))

    named_times = set()
    for passage in data_of(film_page([traced]))["passages"]:
        if passage["frames"]:
            named_times |= {row["best"] for row in passage["frames"]["rows"]}

    assert expected in named_times


def test_the_page_of_a_film_without_traces_has_no_frames():
    """The film was scored without values of frames: none are in the data of its passages."""
    for passage in data_of(film_page([fake_scored_film(**SMALL)]))["passages"]:
        assert not passage["frames"]


def test_a_step_mostly_in_black_or_credits_is_left_out():
    """Steps of a second. Credits from 1.3 to 2.6 s are .7 s of the second step and .6 s of the third.

    The first is black for half, and the last has bars (a black rim), which are no black pictures.
    """
    shots = pd.DataFrame(
        {
            "start_s": [0.0, 0.5, 1.3, 2.6],
            "end_s": [0.5, 1.3, 2.6, 4.0],
            "flags": ["black", "", "credits", "bars"],
        }
    )
    steps = pd.DataFrame({"start_s": [0.0, 1.0, 2.0, 3.0], "end_s": [1.0, 2.0, 3.0, 4.0]})

    assert score._without_black_or_credits(steps, shots)["start_s"].tolist() == [0.0, 3.0]


def time_of_likeliest_body(frames, start_s, end_s):
    """Return the time on the clock at which Body is likeliest in a segment, as its card says it."""
    view = SimpleNamespace(frames=frames, words=Words("en"))
    (row,) = cards.traces(view, ["Body"], {"start_s": start_s, "end_s": end_s})["rows"]
    return row["best"]


@pytest.fixture
def frames_with_body_at_99_and_102_s(traced):
    """Steps of a second: Body has .95 in the one from 99 to 100 s, .9 in that from 102 s on, and else .2."""
    frames = traced.frames.assign(Body_p=0.2)
    frames.loc[frames["start_s"] == 99, "Body_p"] = 0.95
    frames.loc[frames["start_s"] == 102, "Body_p"] = 0.9
    return frames


def test_a_step_that_only_touches_a_segment_is_not_in_it(frames_with_body_at_99_and_102_s):
    """Body is likeliest in the second before a segment, and in the segment at 102 s.

    The card of the segment from 100 to 105 s names 102 s, and that of 95 to 99 s not the step that begins at
    99 s: all its own steps have .2, and the first one, at 95 s, is named.
    """
    frames = frames_with_body_at_99_and_102_s
    assert time_of_likeliest_body(frames, start_s=100.0, end_s=105.0) == "0:01:42"
    assert time_of_likeliest_body(frames, start_s=95.0, end_s=99.0) == "0:01:35"


def test_the_steps_of_two_models_are_rows_of_one_table_with_different_numbers(
    trained_models, tmp_path, monkeypatch
):
    """Two models score a film. What a model says of frames is averaged over steps, one row for each.

    Either model is made to have two steps, numbered 0 and 1. In the table of both the rows are 0 to 3.
    """

    def trace_of_two_steps(_model, key, *_store_movie_and_windows):
        return pd.DataFrame({"start_s": [0.0, 1.0], "end_s": [1.0, 2.0], "model": key})

    monkeypatch.setattr(score, "traces_of", trace_of_two_steps)
    _folder, film = scored_film(tmp_path, trained_models, models=("pcbm_lr", "bank"), with_shots=False)
    assert film.frames.index.tolist() == [0, 1, 2, 3]
