"""Clips are bags of the windows whose middles lie in them."""

from typing import NamedTuple

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.store.testing import seal_arrays
from obygaze_models.errors import DatasetError

FILMS = ["f0", "f1", "f2", "f3"]
WINDOWS = 240
"""Windows of each film: each lasts a second, the first is from 0 to 1 s."""


def segment(film, start_s, end_s, level="EN"):
    """Make a clip of a film, with the id FILM-START-END."""
    return of.Clip(f"{film}-{start_s}-{end_s}", film, "", float(start_s), float(end_s), level)


class StoreAndManifest(NamedTuple):
    """A store of windows, and a manifest of longer clips of the same films."""

    store: of.Store
    manifest: of.Manifest


@pytest.fixture(scope="module")
def windows_of_noise(tmp_path_factory):
    """A store of films f0 to f3, 240 windows of one second each, six numbers a window, which are noise.

    The manifest has clips of 10 s, of the levels S and EN in turn; the eighth window of each clip S has an
    event, which moves one of its numbers.
    """
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
    return StoreAndManifest(of.open_store(sealed), of.Manifest(tuple(clips), folder))


def vectors_of(store, film, numbers):
    """Read the vectors of some windows of a film; window 2 is from 2 to 3 s."""
    row_of = {clip.clip_id: row for row, clip in enumerate(store.clips)}
    return store["toy"].pooled()[[row_of[f"{film}-w{number:03}"] for number in numbers]]


def test_a_bag_has_the_windows_whose_middles_lie_in_the_clip(windows_of_noise):
    """Windows last a second. The middles 2.5, 3.5 and 4.5 lie between 2.4 and 4.6 s.

    The dataset's vector of a bag is the maximum over its windows; its frames are the windows. Of the store's
    four films of 240 windows all but three are in no bag.
    """
    clips = [segment("f1", start_s=2.4, end_s=4.6)]

    data = om.load_bags(windows_of_noise.store, windows_of_noise.manifest.with_clips(clips))

    vectors = vectors_of(windows_of_noise.store, "f1", [2, 3, 4])
    assert np.array_equal(data.X[0], vectors.max(axis=0))
    (frames,) = data.read("frames")
    assert np.array_equal(frames, vectors)
    assert data.seconds.round(6).tolist() == [2.2]
    assert data.counts["in_store_only"] == 4 * 240 - 3


def test_clips_in_which_no_window_has_its_middle_are_excluded(windows_of_noise):
    """Windows last a second, with middles at 0.5, 1.5, 2.5 s and so on; the films are f0 to f3."""
    with_three_middles = segment("f1", start_s=2.4, end_s=4.6)
    between_two_middles = segment("f1", start_s=3.6, end_s=3.9, level="S")
    of_no_film_in_store = segment("f9", start_s=0, end_s=9)
    clips = [with_three_middles, between_two_middles, of_no_film_in_store]

    data = om.load_bags(windows_of_noise.store, windows_of_noise.manifest.with_clips(clips))

    assert data.clip_ids.tolist() == ["f1-2.4-4.6"]
    assert [exclusion.clip_id for exclusion in data.excluded] == ["f1-3.6-3.9", "f9-0-9"]


def test_a_clip_of_many_windows_is_read_as_32_frames_and_a_shorter_one_is_padded(windows_of_noise):
    """One clip has 3 windows, the other 200, of which 32 are read, from the first to the last.

    What the shorter clip lacks is NaN.
    """
    short, long = segment("f1", start_s=2.4, end_s=4.6), segment("f2", start_s=0, end_s=200)

    data = om.load_bags(windows_of_noise.store, windows_of_noise.manifest.with_clips([short, long]))
    frames_of_short, frames_of_long = data.read("frames")

    n_frames, width = 32, 6
    assert frames_of_short.shape == (n_frames, width)
    assert np.array_equal(frames_of_short[:3], vectors_of(windows_of_noise.store, "f1", [2, 3, 4]))
    assert np.isnan(frames_of_short[3:]).all()
    assert frames_of_long.shape == (n_frames, width)
    assert np.array_equal(frames_of_long[[0, -1]], vectors_of(windows_of_noise.store, "f2", [0, 199]))


def test_segments_without_a_level_of_a_task_are_counted_apart(windows_of_noise):
    """The level NS, not sure, is in no task; the third segment has no level at all."""
    clips = [
        segment("f1", start_s=0, end_s=5, level="EN"),
        segment("f1", start_s=5, end_s=9, level="NS"),
        segment("f1", start_s=9, end_s=12, level=None),
    ]

    data = om.load_bags(windows_of_noise.store, windows_of_noise.manifest.with_clips(clips))

    assert len(data) == 1
    assert data.counts["manifest"] == 3
    assert data.counts["with_features"] == 1
    assert data.counts["in_no_task"] == 1
    assert data.counts["unlabelled"] == 1


def test_a_bag_with_a_window_that_was_read_in_part_is_counted(windows_of_noise, tmp_path):
    """Two films have four windows of a second each. Window 2 of f1, from 2 to 3 s, is partial.

    It is in one of the three clips: the second, from 1 to 4 s of f1.
    """
    movie_of = {f"{film}-w{number}": film for film in ("f1", "f2") for number in range(4)}
    spans = {window: (float(window[-1]), float(window[-1]) + 1) for window in movie_of}
    vectors = np.zeros((8, 3), np.float32)
    partial = {"f1-w2": "cut short"}
    sealed = seal_arrays(tmp_path / "w", movie_of, {"toy": {"pooled": vectors}}, spans=spans, partial=partial)
    clips = [
        segment("f1", start_s=0, end_s=2),
        segment("f1", start_s=1, end_s=4, level="S"),
        segment("f2", start_s=0, end_s=4),
    ]

    data = om.load_bags(of.open_store(sealed), windows_of_noise.manifest.with_clips(clips))

    assert data.counts["partial"] == 1


@pytest.mark.long
def test_an_event_in_one_window_of_a_bag_is_found_by_attention_over_windows(windows_of_noise):
    """A bag has ten windows; in those of the level S one window has an event, the rest is noise.

    `linear` reads the maximum over the windows and finds the event too; `mean_frames`, their mean, is worse.
    """
    data = om.load_bags(windows_of_noise.store, windows_of_noise.manifest)

    run = om.evaluate(data, ["linear", "attention"], "en_s")

    auc = run.metrics[run.metrics["metric"] == "auc"].set_index("model")["movie_mean"]
    assert auc["linear"] > 0.95
    assert auc["attention"] > 0.95
    assert auc["mean_frames"] < auc["attention"]


def test_a_clip_without_times_is_refused_by_its_name(windows_of_noise):
    """A whole video has neither start nor end: which windows lie in it can't be told."""
    whole_video = of.Clip("f0", "f0", "f0.mp4", level="S")

    with pytest.raises(DatasetError, match="f0"):
        om.load_bags(windows_of_noise.store, windows_of_noise.manifest.with_clips([whole_video]))


def test_a_store_whose_windows_have_no_times_is_refused(windows_of_noise, tmp_path):
    """A bag has the windows whose middles lie in a clip of the manifest: without times none does."""
    vectors = np.zeros((1, 2), np.float32)
    without_times = seal_arrays(tmp_path / "t", {"c": "f0"}, {"toy": {"pooled": vectors}})

    with pytest.raises(DatasetError, match="no window"):
        om.load_bags(of.open_store(without_times), windows_of_noise.manifest)


def test_a_store_of_failed_windows_alone_is_refused(windows_of_noise, tmp_path):
    """A store has one window, from 0 to 1 s of the film f0, which has failed: it has no features.

    A bag is a clip of the manifest with the windows that lie in it. No clip has a window with features.
    """
    no_features = {
        "toy": {"pooled": np.zeros((1, 2), np.float32)}
    }  # which are not stored, as the window failed
    failed = seal_arrays(
        tmp_path / "failed",
        {"window": "f0"},
        no_features,
        spans={"window": (0.0, 1.0)},
        failed={"window": "the file is empty"},
    )

    with pytest.raises(DatasetError, match="no clip with features of toy"):
        om.load_bags(of.open_store(failed), windows_of_noise.manifest)


def test_a_failed_window_is_in_no_bag(windows_of_noise, tmp_path):
    """A clip of two windows of a second, whose second one failed, has the features of the first alone."""
    vectors = {"toy": {"pooled": np.array([[3, 4], [8, 9]], np.float32)}}
    spans = {"w0": (0.0, 1.0), "w1": (1.0, 2.0)}
    movie_of = {"w0": "f0", "w1": "f0"}
    store = of.open_store(
        seal_arrays(tmp_path / "s", movie_of, vectors, spans=spans, failed={"w1": "its file is cut off"})
    )
    clip_of_both = segment("f0", start_s=0, end_s=2)

    data = om.load_bags(store, windows_of_noise.manifest.with_clips([clip_of_both]))

    assert data.X.tolist() == [[3, 4]]


def test_clips_without_a_window_are_refused(windows_of_noise):
    """The windows of a film end at 240 s, so that a clip behind them has no features."""
    behind_all_windows = segment("f0", start_s=300, end_s=310)

    with pytest.raises(DatasetError, match="middle of a window"):
        om.load_bags(windows_of_noise.store, windows_of_noise.manifest.with_clips([behind_all_windows]))


@pytest.fixture(scope="module")
def run_of_two_annotators(windows_of_noise):
    """An evaluation of `linear` where annotators A and B each cut all films into segments of their own.

    A segment of the level S lasts 20 to 24 s, one of EN 5 to 9 s.
    """
    rng = np.random.default_rng(1)
    clips = []
    for film in FILMS:
        for annotator in ("A", "B"):
            start_s = 0
            while start_s < 210:
                level = ("EN", "S")[len(clips) % 2]
                end_s = start_s + (20 if level == "S" else 5) + int(rng.integers(5))
                clip_id = f"{film}-{annotator}{start_s}"
                clips.append(of.Clip(clip_id, film, "", start_s, end_s, level, (), annotator))
                start_s = end_s
    data = om.load_bags(windows_of_noise.store, windows_of_noise.manifest.with_clips(clips))
    return om.evaluate(data, ["linear"], "en_s", experts="each")


@pytest.mark.long
def test_models_of_each_annotators_segments_are_tested_on_the_segments_of_that_annotator(
    run_of_two_annotators,
):
    """Annotators A and B each cut the films into segments of their own; `linear` is trained for each of them.

    A name such as linear@A has the annotator of the training, and en_s>en_s@A the one whose labels are told.
    Where two annotators label the same clips, the table also has the row `other_expert`: how well the labels
    of one tell those of the other. Segments of A are no clips of B, so that there is no such row.
    """
    run = run_of_two_annotators
    models = set(run.metrics["model"])
    tasks = set(run.metrics.loc[run.metrics["metric"] == "auc", "task"])

    assert tasks == {"en_s>en_s@A", "en_s>en_s@B"}
    assert {"linear@A", "linear@B"} <= models
    assert "other_expert" not in models
    assert run.record["experts"] == "each"


@pytest.mark.long
def test_a_run_on_bags_also_measures_how_well_the_length_of_a_segment_tells_its_level(run_of_two_annotators):
    """Segments of the level S last 20 to 24 s, those of EN 5 to 9 s: their length alone tells the level.

    A model on bags can learn as much without any content, as the maximum over a bag of noise rises with the
    number of its windows. So the table of a run also has `length`, a model that reads nothing but the length
    in seconds; length@A is trained on the segments of annotator A.
    """
    metrics = run_of_two_annotators.metrics
    auc = metrics[metrics["metric"] == "auc"].set_index(["task", "model"])["movie_mean"]

    assert auc["en_s>en_s@A", "length@A"] > 0.99
