"""Clips are bags of the windows whose middles lie in them."""

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.store.testing import seal_arrays
from obygaze_models.dataset.loading import MOST_WINDOWS
from obygaze_models.errors import DatasetError

FILMS = [f"f{k}" for k in range(4)]
WINDOWS = 240
"""Films of windows of a second."""


def segment(film, start, end, level="EN"):
    return of.Clip(f"{film}-{start}-{end}", film, "", float(start), float(end), level)


@pytest.fixture(scope="module")
def windows(tmp_path_factory):
    """Noise, and in every other stretch of ten windows one with an event."""
    folder = tmp_path_factory.mktemp("bags")
    rng = np.random.default_rng(0)
    movie_of = {}
    spans = {}
    for film in FILMS:
        for k in rng.permutation(WINDOWS).tolist():  # in any order
            movie_of[f"{film}-w{k:03}"] = film
            spans[f"{film}-w{k:03}"] = (float(k), k + 1.0)
    vectors = rng.normal(size=(len(movie_of), 6)).astype(np.float32)
    for row, (start, _) in enumerate(spans.values()):
        if start % 20 == 7:
            vectors[row, 2] += 8
    sealed = seal_arrays(folder / "w", movie_of, {"toy": {"pooled": vectors}}, spans=spans)
    clips = [
        segment(film, start, start + 10, "S" if start % 20 == 0 else "EN")
        for film in FILMS
        for start in range(0, WINDOWS, 10)
    ]
    return of.open_store(sealed), of.Manifest(tuple(clips), folder)


def vectors_of(store, film, numbers):
    """Read the vectors of some windows of a film; window 2 is from 2 to 3 s."""
    row_of = {clip.clip_id: row for row, clip in enumerate(store.clips)}
    return store["toy"].pooled()[[row_of[f"{film}-w{number:03}"] for number in numbers]]


def test_a_bag_has_the_windows_whose_middles_lie_in_the_clip(windows):
    store, manifest = windows
    data = om.load_bags(store, manifest.with_clips([segment("f1", 2.4, 4.6)]))
    own = vectors_of(store, "f1", [2, 3, 4])
    assert np.array_equal(data.X[0], own.max(axis=0))
    assert data.read("frames").shape == (1, 3, 6)
    assert np.array_equal(data.read("frames")[0], own)
    assert data.seconds.round(6).tolist() == [2.2]
    assert data.counts["in_store_only"] == len(FILMS) * WINDOWS - 3


def test_clips_in_which_no_window_has_its_middle_are_excluded(windows):
    store, manifest = windows
    between_two_middles = segment("f1", 3.6, 3.9, "S")
    of_no_film_in_store = segment("f9", 0, 9)
    clips = [segment("f1", 2.4, 4.6), between_two_middles, of_no_film_in_store]
    data = om.load_bags(store, manifest.with_clips(clips))
    assert [one.clip_id for one in data.excluded] == ["f1-3.6-3.9", "f9-0-9"]


def test_of_a_clip_of_many_windows_some_are_read_as_frames_and_others_are_padded(windows):
    store, manifest = windows
    short, long = segment("f1", 2.4, 4.6), segment("f2", 0, 200)
    data = om.load_bags(store, manifest.with_clips([short, long]))
    frames_of_short, frames_of_long = data.read("frames")
    assert np.array_equal(frames_of_short[:3], vectors_of(store, "f1", [2, 3, 4]))
    assert np.isnan(frames_of_short[3:]).all()
    assert frames_of_long.shape == (MOST_WINDOWS, 6)
    assert np.array_equal(frames_of_long[[0, -1]], vectors_of(store, "f2", [0, 199]))
    assert data.counts["in_store_only"] == len(FILMS) * WINDOWS - 3 - 200


def test_segments_without_a_level_of_a_task_are_counted_apart(windows):
    store, manifest = windows
    data = om.load_bags(
        store,
        manifest.with_clips([segment("f1", 0, 5), segment("f1", 5, 9, "NS"), segment("f1", 9, 12, None)]),
    )
    assert len(data) == data.counts["with_features"] == 1
    assert (data.counts["manifest"], data.counts["in_no_task"], data.counts["unlabelled"]) == (3, 1, 1)


def test_a_bag_with_a_window_that_was_read_in_part_is_counted(windows, tmp_path):
    films = {f"{film}-w{k}": film for film in ("f1", "f2") for k in range(4)}
    spans = {name: (float(name[-1]), float(name[-1]) + 1) for name in films}
    vectors = np.zeros((len(films), 3), np.float32)
    sealed = seal_arrays(
        tmp_path / "w", films, {"toy": {"pooled": vectors}}, spans=spans, partial={"f1-w2": "cut short"}
    )
    cut = windows[1].with_clips([segment("f1", 0, 2), segment("f1", 1, 4, "S"), segment("f2", 0, 4)])
    assert om.load_bags(of.open_store(sealed), cut).counts["partial"] == 1


@pytest.mark.long  # simulates
def test_an_event_in_one_window_of_a_bag_is_found_by_attention_over_windows(windows):
    store, manifest = windows
    run = om.evaluate(om.load_bags(store, manifest), ["linear", "attention"], "en_s")
    rows = run.metrics[run.metrics["metric"] == "auc"].set_index("model")["movie_mean"]
    assert rows["linear"] > 0.95
    assert rows["attention"] > 0.95
    assert rows["mean_frames"] < rows["attention"]


def test_clips_and_windows_without_times_are_refused(windows, tmp_path):
    store, manifest = windows
    whole = manifest.with_clips([of.Clip("f0", "f0", "f0.mp4", level="S")])
    with pytest.raises(DatasetError, match="f0"):
        om.load_bags(store, whole)
    timeless = seal_arrays(tmp_path / "t", {"c": "f0"}, {"toy": {"pooled": np.zeros((1, 2), np.float32)}})
    with pytest.raises(DatasetError, match="no window"):
        om.load_bags(of.open_store(timeless), manifest)


def test_a_store_of_failed_windows_alone_is_refused(windows, tmp_path):
    vectors = {"toy": {"pooled": np.zeros((1, 2), np.float32)}}
    failed = seal_arrays(tmp_path / "f", {"c": "f0"}, vectors, spans={"c": (0.0, 1.0)}, failed={"c": "empty"})
    with pytest.raises(DatasetError):
        om.load_bags(of.open_store(failed), windows[1])


@pytest.mark.long
def test_each_annotators_segments_are_a_test_of_their_own_beside_the_length(windows):
    """The maximum of noise over a bag tells its length, so the length stands beside the models."""
    store, manifest = windows
    rng = np.random.default_rng(1)
    clips = []
    for film in FILMS:
        for name in ("A", "B"):
            start = 0
            while start < WINDOWS - 30:
                level = ("EN", "S")[len(clips) % 2]
                end = start + (20 if level == "S" else 5) + int(rng.integers(5))
                clips.append(of.Clip(f"{film}-{name}{start}", film, "", start, end, level, (), name))
                start = end
    run = om.evaluate(om.load_bags(store, manifest.with_clips(clips)), ["linear"], "en_s", experts="each")
    rows = run.metrics[run.metrics["metric"] == "auc"].set_index(["task", "model"])["movie_mean"]
    assert {task for task, _ in rows.index} == {"en_s>en_s@A", "en_s>en_s@B"}
    assert rows["en_s>en_s@A", "length@A"] > 0.99
    assert {"linear@A", "linear@B"} <= {model for _, model in rows.index}
    assert "other_expert" not in {model for _, model in rows.index}
    assert run.record["experts"] == "each"
