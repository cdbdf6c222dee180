"""Models take clips of any number of frames: what a clip lacks of the longest changes nothing."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from obygaze_features.manifest import Clip, Manifest, builtin_codebook
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_frames
from obygaze_models.concepts.dictionary_learning import N_EPOCHS, learn_dictionary
from obygaze_models.concepts.units import UnitBank
from obygaze_models.dataset import load_dataset
from obygaze_models.dataset.features import StoredClips, read_padded
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.models.registry import BUILTIN_MODELS
from obygaze_models.prediction.final import save_models
from obygaze_models.prediction.frames import predict_frames
from obygaze_models.prediction.predict import predict
from obygaze_models.prediction.saved_model import load_model
from tests.command import obygaze
from tests.planted_frames import planted_frames

LONGEST = 12
"""Frames of the longest clip."""


@pytest.fixture(scope="module")
def ragged_films(tmp_path_factory):
    """Films whose clips have 4 to 12 frames, with an event in the positive ones; the last has no labels.

    `store` and `manifest` hold them, `frames` and `times` are clip id -> its array. The frames of the clip of
    row r are at 100 r s and each half a second after. One clip has failed.
    """
    folder = tmp_path_factory.mktemp("ragged")
    X, y, movies, _ = planted_frames(
        n_movies=4, n_per_movie=24, n_frames=LONGEST, n_features=8, n_event=2, size=7.0
    )
    sizes = np.random.default_rng(1).integers(4, LONGEST + 1, len(y))
    clips, frames, times = [], {}, {}
    for row, (movie, label, size) in enumerate(zip(movies, y, sizes, strict=True)):
        clip_id = f"film{movie}-c{row:03}"
        frames[clip_id] = X[row, :size]
        times[clip_id] = 100.0 * row + np.arange(size) / 2
        level, concepts = ("S", ("Body",)) if label else ("HN", ())
        if movie < 3:
            clips.append(
                Clip(clip_id, f"film{movie}", "", start_s=None, end_s=None, level=level, concepts=concepts)
            )
    movie_of = {clip_id: clip_id[:5] for clip_id in frames}
    failed = dict.fromkeys(list(frames)[5:6], "no such file")
    store = open_store(seal_frames(folder / "films", movie_of, frames, times=times, failed=failed))
    manifest = Manifest(tuple(clips), folder, builtin_codebook("obygaze12"))
    kept = {clip_id: values for clip_id, values in frames.items() if clip_id not in failed}
    return SimpleNamespace(store=store, manifest=manifest, frames=kept, times=times, folder=folder)


def padded_by_hand(clips):
    """Fill the frames that each clip lacks of the longest with NaN [clips, 12, features]."""
    values = np.full((len(clips), LONGEST, 8), np.nan, np.float32)
    for row, frames in enumerate(clips):
        values[row, : len(frames)] = frames
    return values


POOLS = {
    "max": lambda frames: frames.max(axis=0),
    "mean": lambda frames: frames.mean(axis=0),
    "first": lambda frames: frames[0],
    "last": lambda frames: frames[-1],
}


@pytest.mark.parametrize("pool", POOLS)
def test_frames_become_one_vector_of_the_clips_own_frames_alone(ragged_films, pool):
    """Clips have 4 to 12 frames; what a shorter clip lacks of the longest has no part in its vector."""
    data = load_dataset(ragged_films.store, ragged_films.manifest, pool=pool)

    pool_by_numpy = POOLS[pool]
    for clip_id, vector in zip(data.clip_ids, data.X, strict=True):
        frames_of_clip = ragged_films.frames[clip_id]
        np.testing.assert_allclose(vector, pool_by_numpy(frames_of_clip), rtol=1e-6)
    assert data.features == "frames"
    assert data.pool == pool


@pytest.fixture
def padded_frames(ragged_films):
    """The frames of the dataset's clips, filled by hand with NaN to the 12 of the longest [clips, 12, 8]."""
    data = load_dataset(ragged_films.store, ragged_films.manifest)
    return padded_by_hand([ragged_films.frames[clip_id] for clip_id in data.clip_ids])


def test_frames_are_read_with_nan_for_what_a_clip_lacks_of_the_longest(ragged_films, padded_frames):
    """Clips have 4 to 12 frames; `padded_frames` has 12 of each, those that are not there filled by hand."""
    data = load_dataset(ragged_films.store, ragged_films.manifest)

    assert np.array_equal(data.read("frames"), padded_frames, equal_nan=True)


def test_streamed_frames_are_those_in_memory_in_any_order_of_clips(ragged_films, padded_frames):
    """A stream reads clips from the store only when they are asked for."""
    data = load_dataset(ragged_films.store, ragged_films.manifest)
    stream = data.read("frames", stream=True)

    assert stream.shape == padded_frames.shape
    in_any_order = np.array([7, 2, 2, 40])
    assert np.array_equal(np.asarray(stream[in_any_order]), padded_frames[in_any_order], equal_nan=True)
    assert np.array_equal(np.asarray(stream[3:9], np.float64), padded_frames[3:9], equal_nan=True)


def test_times_of_frames_are_read_for_the_rows_that_are_asked_for(ragged_films):
    """The frames of the clip in row r begin at 100 r s: in row 9 at 900 s, in row 1 at 100 s."""
    times = read_padded(ragged_films.store["toy"], "time_s", np.array([9, 1]))

    assert times[:, 0].tolist() == [900.0, 100.0]


@pytest.fixture(scope="module")
def saved_models(ragged_films):
    """Models of frames that were trained on clips of any number of frames, as files, by their names."""
    data = load_dataset(ragged_films.store, ragged_films.manifest)
    specs = [
        replace(BUILTIN_MODELS[name], compared_with=()) for name in ("attention", "mean_frames", "pcbm_time")
    ]
    run = evaluate(data, specs, "hn_s")
    names = [spec.name for spec in specs]
    return save_models(run, data, names, ragged_films.folder / "models", models=specs)


@pytest.mark.long
@pytest.mark.parametrize("name", ["attention", "mean_frames", "pcbm_time"])
def test_a_saved_model_scores_a_clip_as_if_it_were_alone(ragged_films, saved_models, name):
    """In the store the clip stands among longer ones, alone it has no padding: its logit is the same.

    Some clips get no logit, as they are unlike the training clips; more than half have one.
    """
    model = load_model(saved_models[name])

    table = predict(model, [ragged_films.store]).table.set_index("clip_id")

    assert set(table.index) == set(ragged_films.frames)
    with_logit = table["logit"].dropna()
    assert len(with_logit) > len(table) / 2
    for clip_id, logit in with_logit.items():
        frames = ragged_films.frames[clip_id]
        (logit_alone,) = model.logits(frames[np.newaxis])
        np.testing.assert_allclose(logit, logit_alone, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("name", ["attention", "pcbm_time"])
def test_predictions_have_each_frame_of_a_clip_with_its_time_and_no_padding(ragged_films, saved_models, name):
    """The table has a row for each frame that a clip has: 4 to 12."""
    table = predict_frames(load_model(saved_models[name]), ragged_films.store)

    for clip_id, rows in table.groupby("clip_id"):
        assert rows["time_s"].tolist() == ragged_films.times[clip_id].tolist()
    n_frames_of_all_clips = sum(len(frames) for frames in ragged_films.frames.values())
    assert len(table) == n_frames_of_all_clips


def fit_attentive_probe(X, data):
    """Train the model `attentive` to tell clips of the level S by frames X [clips, frames, features]."""
    is_positive = (data.levels == "S").astype(np.int64)
    return BUILTIN_MODELS["attentive"].estimator(0).fit(X, is_positive, groups=data.movies)


def test_the_attentive_probe_learns_the_same_from_a_stream_of_the_store_as_from_memory(
    ragged_films, padded_frames
):
    """A stream reads clips only when they are asked for; in memory are all, filled with NaN to 12 frames."""
    data = load_dataset(ragged_films.store, ragged_films.manifest)
    stream = data.read("frames", stream=True)

    scores_by_stream = fit_attentive_probe(stream, data).decision_function(stream)
    scores_by_memory = fit_attentive_probe(padded_frames, data).decision_function(padded_frames)

    np.testing.assert_allclose(scores_by_stream, scores_by_memory, rtol=1e-6)


def test_the_attentive_probe_scores_a_clip_as_if_it_were_alone(ragged_films, padded_frames):
    """What a clip lacks of the longest is NaN among others; alone it has no padding."""
    data = load_dataset(ragged_films.store, ragged_films.manifest)
    model = fit_attentive_probe(padded_frames, data)

    scores = model.decision_function(padded_frames)

    for clip_id, score in zip(data.clip_ids, scores, strict=True):
        frames = ragged_films.frames[clip_id]
        (score_alone,) = model.decision_function(frames[np.newaxis])
        np.testing.assert_allclose(score, score_alone, atol=1e-4)


def test_units_have_a_score_for_each_frame_that_a_clip_has_and_for_no_other(ragged_films):
    """A clip's scores are the same alone, without padding, as among longer clips."""
    group = ragged_films.store["toy"]
    frames_of_all_clips = np.asarray(StoredClips(group, "frames", np.flatnonzero(group.usable)))
    bank = UnitBank(n_units=6, n_active=2, n_epochs=2).fit(frames_of_all_clips)

    scores = bank.frame_scores(frames_of_all_clips)  # [clips, frames, units]

    has_score = np.isfinite(scores).all(axis=2)
    n_frames_of_clip = group.row_size[group.usable]
    assert has_score.sum(axis=1).tolist() == n_frames_of_clip.tolist()
    frames_of_first = group.read(group.clip_ids[0], "frames")
    (scores_alone,) = bank.frame_scores(frames_of_first[np.newaxis])
    np.testing.assert_allclose(scores[0, : len(frames_of_first)], scores_alone, atol=1e-6)


@pytest.fixture(scope="module")
def folder_of_units(ragged_films):
    """The folder of six units, two of them active, that the command learnt on the store of films."""
    folder = ragged_films.folder / "units"
    options = ["--units", 6, "--active", 2, "--out", folder]
    assert obygaze("model", "units", ragged_films.store.path, *options) == 0
    return folder


@pytest.mark.long
def test_the_command_learns_units_of_the_frames_that_clips_have(ragged_films, folder_of_units):
    """The clips of a store have different numbers of frames. Units are directions that are learnt of frames.

    `folder_of_units` has what the command has learnt of the store: six units, of which two are active in each
    frame. They must be those that the library learns of the same frames in memory. If the command took a
    short clip for one that is filled up, with zeros say, they would differ.
    """
    clip_ids = ragged_films.store["toy"].clip_ids
    frames_of_clips = [ragged_films.frames[clip_id] for clip_id in clip_ids if clip_id in ragged_films.frames]

    def frames_of(rows):
        return np.concatenate([frames_of_clips[row] for row in rows])

    in_memory = learn_dictionary(
        frames_of, len(frames_of_clips), n_units=6, n_active=2, n_epochs=N_EPOCHS, seed=0
    ).to_arrays()

    with np.load(folder_of_units / "units.npz") as by_command:
        # The command's file has more about the units, such as what they are called.
        names_of_both = set(by_command.files) & set(in_memory)
        assert names_of_both
        for name in names_of_both:
            np.testing.assert_allclose(by_command[name], in_memory[name], rtol=1e-6)


@pytest.mark.long
def test_the_strongest_frames_of_units_are_frames_that_clips_have(ragged_films, folder_of_units):
    """The table of units names their strongest frames, such as "film0-c003 301.5 s; film1-c030 3000.0 s"."""
    table = pd.read_csv(folder_of_units / "units.csv")

    n_frames = 0
    for frames_of_unit in table["frames"].dropna():
        for frame in frames_of_unit.split("; "):
            clip_id, time, _ = frame.rsplit(" ", 2)
            assert float(time) in ragged_films.times[clip_id]
            n_frames += 1
    assert n_frames > 0
