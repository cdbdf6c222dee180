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
from tests.film.page.invented import invented_film
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
    film = invented_film(**SMALL)
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
    half_seconds = np.arange(8) / 2
    first = frames_at(half_seconds, "film-0001", weight=0)
    second = frames_at(half_seconds + 2, "film-0002", weight=1)
    steps = traces_of_frames(monkeypatch, pd.concat([first, second]), "film-0001", "film-0002")

    assert steps["start_s"].tolist() == [0, 1, 2, 3, 4, 5]
    assert steps["n_frames"].tolist() == [2, 2, 4, 4, 2, 2]
    assert steps["weight"].tolist() == [0, 0, 0.5, 0.5, 1, 1]


def test_frames_three_seconds_apart_are_kept_in_steps_of_three_seconds(monkeypatch):
    """A step of a second would leave two of three without a frame."""
    steps = traces_of_frames(monkeypatch, frames_at([0.0, 3, 6, 9]), "film-0001")
    columns = ["start_s", "end_s", "n_frames"]
    assert steps[columns].to_numpy().tolist() == [[0, 3, 1], [3, 6, 1], [6, 9, 1], [9, 12, 1]]


def test_frames_of_unknown_times_are_left_out(monkeypatch):
    assert len(traces_of_frames(monkeypatch, frames_at([np.nan, np.nan]), "film-0001")) == 0


def test_a_film_with_frames_is_written_and_read_back(traced, tmp_path):
    """A film without frames removes the file of frames that was written before."""
    traced.write(tmp_path)
    read = Timeline.read(tmp_path)
    pd.testing.assert_frame_equal(read.frames, traced.frames, check_dtype=False)
    assert files_of(read) == files_of(traced)

    replace(traced, frames=score.NO_TRACES).write(tmp_path)
    assert not (tmp_path / "frames.csv").exists()


def test_the_page_has_frames_of_segments_with_a_traced_concept(traced):
    """Body and Type of shot are the traced concepts. The second is named in which they are likeliest."""
    frames = [passage["frames"] for passage in data_of(film_page([traced]))["passages"]]
    with_frames = [drawn for drawn in frames if drawn]
    segments = traced.segments()

    assert len(with_frames) == segments["present"].str.contains("Body|Type of shot").sum() > 0
    named_times = {row["best"] for drawn in with_frames for row in drawn["rows"]}
    assert clock(np.floor(segments["start_s"].iloc[0] + AFTER_START_S)) in named_times

    untraced = data_of(film_page([invented_film(**SMALL)]))["passages"]
    assert not any(passage["frames"] for passage in untraced)


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


def test_a_frame_that_only_touches_a_segment_is_not_in_it(traced):
    """Body is likeliest in the second from 99 to 100 s, and then in that from 102 to 103 s."""
    starts = traced.frames["start_s"]
    p = np.select([starts == 99, starts == 102], [0.95, 0.9], default=0.2)
    frames = traced.frames.assign(Body_p=p)
    assert time_of_likeliest_body(frames, start_s=100.0, end_s=105.0) == clock(102)
    # All seconds from 95 to 99 s are alike: the first is named.
    assert time_of_likeliest_body(frames, start_s=95.0, end_s=99.0) == clock(95)


def test_the_frames_of_two_models_are_one_table_numbered_throughout(trained, tmp_path, monkeypatch):
    steps = pd.DataFrame({"start_s": [0.0, 1.0], "end_s": [1.0, 2.0]})
    monkeypatch.setattr(score, "traces_of", lambda _model, key, *_: steps.assign(model=key))
    _, film = scored_film(tmp_path, trained, models=("pcbm_lr", "bank"), with_shots=False)
    assert film.frames.index.tolist() == [0, 1, 2, 3]
