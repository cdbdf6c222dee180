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


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """Films whose clips have 4 to 12 frames, with an event in the positive ones; the last has no labels."""
    folder = tmp_path_factory.mktemp("ragged")
    X, y, movies, _ = planted_frames(4, 24, LONGEST, 8, n_event=2, size=7.0)
    sizes = np.random.default_rng(1).integers(4, LONGEST + 1, len(y))
    clips, frames, times = [], {}, {}
    for row, (movie, label, size) in enumerate(zip(movies, y, sizes, strict=True)):
        clip_id = f"film{movie}-c{row:03}"
        frames[clip_id] = X[row, :size]
        times[clip_id] = 100.0 * row + np.arange(size) / 2
        level, concepts = ("S", ("Body",)) if label else ("HN", ())
        if movie < 3:
            clips.append(Clip(clip_id, f"film{movie}", "", None, None, level, concepts=concepts))
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
def test_frames_become_one_vector_of_the_clips_own_frames_alone(films, pool):
    data = load_dataset(films.store, films.manifest, pool=pool)
    by_hand = np.stack([POOLS[pool](films.frames[clip_id]) for clip_id in data.clip_ids])
    np.testing.assert_allclose(data.X, by_hand, rtol=1e-6)
    assert (data.features, data.pool) == ("frames", pool)


def test_frames_are_read_as_if_they_were_padded_by_hand(films):
    data = load_dataset(films.store, films.manifest)
    by_hand = padded_by_hand([films.frames[clip_id] for clip_id in data.clip_ids])
    assert np.array_equal(data.read("frames"), by_hand, equal_nan=True)
    streamed = data.read("frames", stream=True)
    assert streamed.shape == by_hand.shape
    order = np.array([7, 2, 2, 40])
    assert np.array_equal(np.asarray(streamed[order]), by_hand[order], equal_nan=True)
    assert np.array_equal(np.asarray(streamed[3:9], np.float64), by_hand[3:9], equal_nan=True)
    times = read_padded(films.store["toy"], "time_s", np.array([9, 1]))
    assert times[1, 0] == 100.0


@pytest.fixture(scope="module")
def kept(films):
    """Models of frames that were trained on clips of any number of frames, as files."""
    data = load_dataset(films.store, films.manifest)
    specs = [
        replace(BUILTIN_MODELS[name], compared_with=()) for name in ("attention", "mean_frames", "pcbm_time")
    ]
    run = evaluate(data, specs, "hn_s")
    names = [spec.name for spec in specs]
    return save_models(run, data, names, films.folder / "models", models=specs)


@pytest.mark.long
@pytest.mark.parametrize("name", ["attention", "mean_frames", "pcbm_time"])
def test_a_kept_model_scores_a_clip_as_if_it_were_alone(films, kept, name):
    model = load_model(kept[name])
    table = predict(model, [films.store]).table.set_index("clip_id")
    assert set(table.index) == set(films.frames)
    alone = [float(model.logits(frames[None])[0]) for frames in films.frames.values()]
    result = table.loc[list(films.frames), "logit"].to_numpy()
    known = np.isfinite(result)
    assert known.mean() > 0.5
    np.testing.assert_allclose(result[known], np.array(alone)[known], atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("name", ["attention", "pcbm_time"])
def test_predictions_have_each_frame_of_a_clip_with_its_time_and_no_padding(films, kept, name):
    output = predict_frames(load_model(kept[name]), films.store)
    for clip_id, rows in output.groupby("clip_id"):
        assert rows["time_s"].tolist() == films.times[clip_id].tolist()
    assert len(output) == sum(len(frames) for frames in films.frames.values())


def test_the_attentive_probe_reads_frames_of_the_store_as_if_they_were_padded_by_hand(films):
    data = load_dataset(films.store, films.manifest)
    y = (data.levels == "S").astype(np.int64)
    by_hand = padded_by_hand([films.frames[clip_id] for clip_id in data.clip_ids])
    one, other = (
        BUILTIN_MODELS["attentive"].estimator(0).fit(X, y, groups=data.movies)
        for X in (data.read("frames", stream=True), by_hand)
    )
    scores = other.decision_function(by_hand)
    np.testing.assert_allclose(one.decision_function(data.read("frames", stream=True)), scores, rtol=1e-6)
    alone = [float(other.decision_function(films.frames[clip_id][None])[0]) for clip_id in data.clip_ids]
    np.testing.assert_allclose(scores, alone, atol=1e-4)


def test_units_are_learnt_of_the_frames_that_there_are(films):
    group = films.store["toy"]
    clips = StoredClips(group, "frames", np.flatnonzero(group.usable))
    bank = UnitBank(n_units=6, n_active=2, n_epochs=2).fit(np.asarray(clips))
    scores = bank.frame_scores(np.asarray(clips))
    assert (np.isfinite(scores).all(axis=2).sum(axis=1) == group.row_size[group.usable]).all()
    result = bank.frame_scores(group.read(group.clip_ids[0], "frames")[None])
    np.testing.assert_allclose(scores[0, : result.shape[1]], result[0], atol=1e-6)


N_UNITS = 6
N_ACTIVE = 2


@pytest.fixture(scope="module")
def folder_of_units(films):
    """The folder of six units that the command learnt on the store of films."""
    folder = films.folder / "units"
    options = ["--units", N_UNITS, "--active", N_ACTIVE, "--out", folder]
    assert obygaze("model", "units", films.store.path, *options) == 0
    return folder


@pytest.mark.long
def test_the_command_learns_units_of_the_frames_that_clips_have(films, folder_of_units):
    """They are those that are learnt of these frames in memory: what a clip lacks is no frame."""
    group = films.store["toy"]
    clips = []
    for clip_id, is_usable in zip(group.clip_ids, group.usable, strict=True):
        if is_usable:
            clips.append(films.frames[clip_id])

    def frames_of(rows):
        return np.concatenate([clips[row] for row in rows])

    expected = learn_dictionary(
        frames_of, len(clips), n_units=N_UNITS, n_active=N_ACTIVE, n_epochs=N_EPOCHS, seed=0
    ).to_arrays()
    with np.load(folder_of_units / "units.npz") as learnt:
        common = set(learnt.files) & set(expected)
        assert common
        for name in common:
            np.testing.assert_allclose(learnt[name], expected[name], rtol=1e-6)


@pytest.mark.long
def test_the_strongest_frames_of_units_are_frames_that_clips_have(films, folder_of_units):
    """The table names them as "CLIP TIME UNIT OF TIME", those of a unit set off by semicolons."""
    table = pd.read_csv(folder_of_units / "units.csv")
    strongest = [frame for frames in table["frames"].dropna() for frame in frames.split("; ")]
    assert strongest
    for frame in strongest:
        clip_id, time, _ = frame.rsplit(" ", 2)
        assert float(time) in films.times[clip_id]
