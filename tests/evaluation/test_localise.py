"""Frames are compared with segments: planted moments are found, and chance is what knowing nothing gives."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from benchmarks.planted import frames
from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest, builtin_codebook
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.localise import localise, marked_segments, read_frames
from obygaze_models.evaluation.metrics import average_precision
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
    assert found.loc["average_precision", "low"] > found.loc["average_precision", "chance"]
    assert (found["p"] <= 0.005).all()
    equal = localise(frames_of(np.ones(event[test].shape), names[test]), segments).pooled.set_index("measure")
    assert equal.loc["pointing", "value"] == pytest.approx(3 / 32)


def test_chance_is_the_mean_with_the_scores_of_each_other_clip_of_the_movie():
    rng = np.random.default_rng(3)
    movies = np.array(["a", "b", "a", "a", "b", "a"])
    scores = rng.integers(4, size=(6, 12)).astype(float)  # many are equal
    event = np.zeros((6, 12), dtype=bool)
    for clip, start in enumerate((0, 3, 9, 5, 10, 12)):  # the last has no boundary, but scores
        event[clip, start : start + 4] = True
    found = localise(frames_of(scores, movies), segments_of(event, movies)).by_movie.set_index("movie")
    for movie, clips in (("a", (0, 2, 3, 5)), ("b", (1, 4))):
        asked = [clip for clip in clips if event[clip].any()]
        own = [average_precision(event[clip], scores[clip]) for clip in asked]
        others = [average_precision(event[i], scores[j]) for i in asked for j in clips if i != j]
        assert found.loc[movie, "average_precision"] == pytest.approx(np.mean(own))
        assert found.loc[movie, "average_precision_chance"] == pytest.approx(np.mean(others))


def test_p_is_the_share_of_a_movies_shifts_on_either_side():
    """Of 5 shifts one, each clip's own scores, has the event."""
    movies, event = np.repeat("a", 5), np.eye(5, 6, dtype=bool)
    found = localise(frames_of(event.astype(float), movies), segments_of(event, movies), n_shifts=4000).pooled
    assert found["value"].tolist() == [1.0, 1.0]
    assert found["chance"].tolist() == pytest.approx([1 / 6, 0.0])
    assert found["p"].tolist() == pytest.approx([2 / 5, 2 / 5], abs=0.03)


def test_the_order_of_clips_is_that_of_the_film_whatever_their_names_and_rows():
    rng = np.random.default_rng(1)
    movies = np.repeat(["a", "b"], 6)
    # Clips 2 to 7 of 12 have the event in one of their six frames each, every clip in another one.
    event = np.zeros((12, 6), dtype=bool)
    event[np.arange(2, 8), np.arange(6)] = True
    frames = frames_of(rng.random(event.shape), movies)
    spans = segments_of(event, movies)
    renamed = frames.assign(clip_id=frames["clip_id"].str[::-1])
    shuffled = renamed.sample(frac=1, random_state=0)
    pd.testing.assert_frame_equal(localise(shuffled, spans).pooled, localise(frames, spans).pooled)


def test_clips_of_unlike_length_and_absent_frames_lend_the_same_part_of_their_scores():
    """Clip 1 rises over 3 of its 6 frames, the others being absent; clip 0 has 6 and an event at its end."""
    movies = np.array(["a", "a"])
    scores = np.array([[6.0, 5, 4, 3, 2, 1], [np.nan, 1, np.nan, 2, 3, np.nan]])
    event = np.array([[0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0]], dtype=bool)
    found = localise(frames_of(scores, movies), segments_of(event, movies)).by_movie.iloc[0]
    assert found["average_precision_chance"] == found["pointing_chance"] == 1.0
    assert found["pointing"] == 0.0


def test_a_movie_of_one_clip_has_no_chance_and_is_no_finding():
    movies, event = np.array(["a", "b", "b"]), np.eye(3, 6, dtype=bool)
    spans = segments_of(event, movies)
    found = localise(frames_of(event.astype(float), movies), spans)
    assert found.by_movie["pointing_chance"].isna().tolist() == [True, False]
    alone = localise(frames_of(event[:1].astype(float), movies[:1]), spans).pooled
    assert alone["chance"].isna().all()
    assert alone["p"].tolist() == [1.0, 1.0]


@pytest.mark.long  # simulates
def test_smooth_scores_that_know_nothing_are_not_above_chance():
    """Chance of frames in random order: the interval of AP is wholly above it in .28 of these."""
    (row,) = frames.ROWS
    few = [row.draw(np.random.default_rng(seed), *cell.arguments) for cell in row.cells for seed in range(3)]
    for name in (
        "AP above chance",
        "pointing above chance",
        "AP's interval above",
        "pointing's interval above",
    ):
        assert sum(found[name] for found in few) <= binom.ppf(0.999, len(few), 0.05), name


def test_clips_without_a_boundary_are_left_out_and_counted():
    movies = np.array(["a", "a", "b"])
    event = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 1]], dtype=bool)
    found = localise(frames_of(np.arange(9.0).reshape(3, 3), movies), segments_of(event, movies))
    assert found.n_left_out == 2
    assert found.by_movie["n_clips"].tolist() == [1]


@pytest.mark.parametrize(
    ("change", "spans", "column", "place"),
    [
        ({}, {"b": [(0, 1)]}, "weight", "nothing to find"),
        ({}, {"a": [(0, 1)]}, "p", "'p'"),
        ({"time_s": np.nan}, {"a": [(0, 1)]}, "weight", "no time"),
    ],
)
def test_nothing_to_find_and_an_unknown_column_are_refused(change, spans, column, place):
    frames = frames_of(np.ones((1, 3)), np.array(["a"])).assign(**change)
    with pytest.raises(ProtocolError, match=place):
        localise(frames, spans, column)


# --- segments that people marked
# ---------------------------------------------------------------------------
def test_segments_are_those_of_each_annotator_that_are_marked_so():
    clips = tuple(
        Clip(f"{level}-{who}", "a", "", start, start + 4, level, concepts, annotator=who)
        for who in ("ann", "bob")
        for level, start, concepts in (("S", 0.0, ("Body",)), ("EN", 10.0, ()))
    )
    manifest = Manifest(clips, Path(), builtin_codebook("obygaze12"))
    for positive, concept in ((["S"], None), ((), "Body")):
        expected = {who: {"a": [(0.0, 4.0)]} for who in ("ann", "bob")}
        assert marked_segments(manifest, positive, concept) == expected


@pytest.mark.parametrize(
    ("positive", "concept", "place"),
    [((), None, "found"), (("S",), "Body", "found"), (("loud",), None, "'loud'"), (("HN",), None, "HN")],
)
def test_what_is_to_be_found_must_be_known_and_marked(positive, concept, place):
    clips = (Clip("a-0", "a", "", 0.0, 4.0, "S"),)
    with pytest.raises(ProtocolError, match=place):
        marked_segments(Manifest(clips, Path(), builtin_codebook("obygaze12")), positive, concept)


@pytest.mark.parametrize(
    ("text", "column"),
    [("movie,clip_id,weight\na,b,0.5\n", "time_s"), ("movie,clip_id,time_s,weight\na,b,1,much\n", "weight")],
)
def test_a_table_that_is_none_of_frames_is_refused(tmp_path, text, column):
    (tmp_path / "frames.csv").write_text(text)
    with pytest.raises((ManifestError, ProtocolError), match=f"column {column}"):
        read_frames(tmp_path / "frames.csv")
