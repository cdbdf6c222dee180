"""Frames are compared with segments: planted moments are found, and chance is what random order gives."""

import numpy as np
import pandas as pd
import pytest

from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.localise import _chance, localise
from obygaze_models.models.attention import AttentionPooling
from tests.planted_frames import planted_frames


def frames_of(scores, movies):
    """Lay out scores [N, F] as a table of frames, a second apart and clips a minute apart."""
    n, n_frames = scores.shape
    starts = 60.0 * np.arange(n)
    return pd.DataFrame(
        {
            "clip_id": np.repeat([f"c{clip:04}" for clip in range(n)], n_frames),
            "movie": np.repeat(movies, n_frames),
            "time_s": (starts[:, None] + np.arange(n_frames)).ravel(),
            "weight": scores.ravel(),
        }
    )


def segments_of(event, movies):
    found = {}
    for clip, row in enumerate(event):
        places = np.flatnonzero(row)
        if places.size:
            span = (60.0 * clip + places[0], 60.0 * clip + places[-1] + 1)
            found.setdefault(movies[clip], []).append(span)
    return found


def test_attention_points_at_what_is_planted_and_equal_weights_at_nothing():
    X, y, movies, event = planted_frames(n_movies=14)
    names = np.array([f"film{movie}" for movie in movies])
    train, val, test = movies < 8, (movies == 8) | (movies == 9), movies >= 10
    model = AttentionPooling().fit(X[train], y[train], X_val=X[val], y_val=y[val])
    segments = segments_of(event[test], names[test])
    found = localise(frames_of(model.weights(X[test]), names[test]), segments).pooled.set_index("measure")
    assert found.loc["pointing", "value"] >= 0.9
    assert found.loc["average_precision", "value"] >= 0.8
    assert (found["low"] > found["chance"]).all()
    equal = localise(frames_of(np.ones(event[test].shape), names[test]), segments).pooled.set_index("measure")
    assert equal.loc["pointing", "value"] == pytest.approx(3 / 32)


def test_chance_is_the_mean_over_random_orders():
    rng = np.random.default_rng(0)
    truth = np.zeros((2000, 10), dtype=bool)
    truth[:, 2:5] = True
    movies = np.repeat(["a", "b", "c", "d"], 500)
    found = localise(frames_of(rng.random(truth.shape), movies), segments_of(truth, movies)).pooled
    np.testing.assert_allclose(found["value"], found["chance"], atol=0.02)


@pytest.mark.parametrize(("n_positive", "n", "expected"), [(1, 1, 1.0), (3, 3, 1.0), (1, 2, 0.75)])
def test_chance_of_small_cases_is_known(n_positive, n, expected):
    assert _chance(n_positive, n) == pytest.approx(expected)


def test_clips_without_a_boundary_are_left_out_and_counted():
    movies = np.array(["a", "a", "b"])
    event = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 1]], dtype=bool)
    found = localise(frames_of(np.arange(9.0).reshape(3, 3), movies), segments_of(event, movies))
    assert found.n_left_out == 2
    assert found.by_movie["n_clips"].tolist() == [1]


def test_nothing_to_find_and_an_unknown_column_are_refused():
    movies = np.array(["a"])
    frames = frames_of(np.ones((1, 3)), movies)
    with pytest.raises(ProtocolError, match="nothing to find"):
        localise(frames, {"b": [(0, 1)]})
    with pytest.raises(ProtocolError, match="no column 'p'"):
        localise(frames, {"a": [(0, 1)]}, "p")
    with pytest.raises(ProtocolError, match="has no time"):
        localise(frames.assign(time_s=np.nan), {"a": [(0, 1)]})
