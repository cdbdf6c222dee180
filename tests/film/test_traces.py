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

SMALL = {"duration_s": 600.0, "n_rows": 120, "unlike": ()}


@pytest.fixture
def traced():
    """An invented film with a value every second, largest ten seconds after each segment's start."""
    film = invented_film(**SMALL)
    starts = np.arange(0.0, 600.0)
    frames = pd.DataFrame({"movie": film.movie, "model": "pcbm_lr", "start_s": starts, "end_s": starts + 1})
    frames["n_frames"] = pd.array([2] * len(frames), dtype="Int64")
    frames["weight"] = frames["contribution"] = np.nan
    best = (film.segments()["start_s"].to_numpy()[:, None] + 10 - starts) // 1 == 0
    for concept in ("Body", "Type of shot"):
        frames[f"{concept}_p"] = np.where(best.any(axis=0), 0.95, 0.2)
    return replace(film, frames=frames)


def traces_of(monkeypatch, table, *clips):
    """Traces of a film of these clips, in a store that also has another film's."""
    group = SimpleNamespace(clip_ids=(*clips, "other-0001"), usable=np.ones(len(clips) + 1, bool))
    model = SimpleNamespace(card=SimpleNamespace(backbone="toy"), concepts=(), likely_concepts=())
    monkeypatch.setattr(score, "reads_frames", lambda _model, _store: True)
    monkeypatch.setattr(
        score, "frames_of", lambda _model, _store, rows: table if len(rows) == len(clips) else None
    )
    return score.traces_of(model, "attention", {"toy": group}, "film", list(clips))


def test_frames_of_overlapping_windows_are_averaged_by_the_second(monkeypatch):
    clips = {"film-0001": np.arange(8) / 2, "film-0002": 2 + np.arange(8) / 2}
    table = pd.concat(
        [
            pd.DataFrame({"clip_id": name, "time_s": times, "weight": value, "contribution": value})
            for value, (name, times) in enumerate(clips.items())
        ]
    )
    found = traces_of(monkeypatch, table, *clips)
    assert found["start_s"].tolist() == [0, 1, 2, 3, 4, 5]
    assert found["n_frames"].tolist() == [2, 2, 4, 4, 2, 2]
    assert found["weight"].tolist() == [0, 0, 0.5, 0.5, 1, 1]


def test_frames_far_apart_are_kept_in_steps_as_long(monkeypatch):
    table = pd.DataFrame({"clip_id": "film-0001", "time_s": [0.0, 3, 6, 9], "weight": 1, "contribution": 0})
    found = traces_of(monkeypatch, table, "film-0001")
    steps = [[0, 3, 1], [3, 6, 1], [6, 9, 1], [9, 12, 1]]
    assert found[["start_s", "end_s", "n_frames"]].to_numpy().tolist() == steps


def test_frames_of_unknown_times_are_left_out(monkeypatch):
    table = pd.DataFrame({"clip_id": "film-0001", "time_s": [np.nan] * 2, "weight": 1.0, "contribution": 0.0})
    assert len(traces_of(monkeypatch, table, "film-0001")) == 0


def test_a_film_with_frames_is_written_and_read_back(traced, tmp_path):
    traced.write(tmp_path)
    again = Timeline.read(tmp_path)
    pd.testing.assert_frame_equal(again.frames, traced.frames, check_dtype=False)
    assert files_of(again) == files_of(traced)
    replace(traced, frames=score.NO_TRACES).write(tmp_path)
    assert not (tmp_path / "frames.csv").exists()


def test_the_page_shows_them_inside_each_segment_in_the_same_bytes(traced):
    page = film_page([traced])
    assert page == film_page([traced])
    frames = [passage["frames"] for passage in data_of(page)["passages"]]
    shown = sum(bool(one) for one in frames)
    assert shown == traced.segments()["present"].str.contains("Body|Type of shot").sum() > 0
    untraced = data_of(film_page([invented_film(**SMALL)]))["passages"]
    assert not any(passage["frames"] for passage in untraced)
    start = traced.segments()["start_s"].iloc[0] + 10
    highest = {row["best"] for one in frames if one for row in one["rows"]}
    assert f"0:{int(start // 60):02}:{int(start % 60):02}" in highest


def test_a_step_that_lies_by_more_than_half_in_black_pictures_or_credits_is_left_out():
    steps = pd.DataFrame({"start_s": [0.0, 1.0, 2.0, 3.0], "end_s": [1.0, 2.0, 3.0, 4.0]})
    shots = pd.DataFrame(
        {
            "start_s": [0.0, 0.5, 1.3, 2.6],
            "end_s": [0.5, 1.3, 2.6, 4.0],
            "flags": ["black", "", "credits", "bars"],
        }
    )
    assert score._with_content(steps, shots)["start_s"].tolist() == [0.0, 3.0]


def test_frames_that_only_touch_a_segment_are_not_in_it(traced):
    frames = traced.frames.assign(Body_p=np.where(traced.frames["start_s"] == 99, 0.95, 0.2))
    frames.loc[frames["start_s"] == 102, "Body_p"] = 0.9
    view = SimpleNamespace(frames=frames, words=Words("en"))
    (row,) = cards.traces(view, ["Body"], {"start_s": 100.0, "end_s": 105.0})["rows"]
    assert row["best"] == clock(102)
    (row,) = cards.traces(view, ["Body"], {"start_s": 95.0, "end_s": 99.0})["rows"]
    assert row["best"] == clock(95)


def test_frames_of_all_models_have_places_of_their_own(trained, tmp_path, monkeypatch):
    steps = pd.DataFrame({"start_s": [0.0, 1.0], "end_s": [1.0, 2.0]})
    monkeypatch.setattr(score, "traces_of", lambda _model, key, *_: steps.assign(model=key))
    _, film = scored_film(tmp_path, trained, models=("pcbm_lr", "bank"), with_shots=False)
    assert film.frames.index.tolist() == [0, 1, 2, 3]
