"""Units are learnt without labels, to the same bytes, resumed or not; what they are said to find is there."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import obygaze_models as om
from benchmarks.planted.units import dictionary_of, tokens_of
from obygaze_features.manifest import Clip, Manifest, builtin_codebook, write_manifest
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_models.commands.unit_commands import units
from obygaze_models.concepts.dictionary import Dictionary
from obygaze_models.concepts.dictionary_learning import learn_dictionary
from obygaze_models.concepts.texts import TextVectors, _text_bottleneck_spec
from obygaze_models.concepts.units import UnitBank
from obygaze_models.errors import ModelError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.significance import associate
from obygaze_models.models.registry import BUILTIN_MODELS

SMALL = {"n_units": 24, "n_active": 4, "n_epochs": 6, "seed": 0}


@pytest.fixture(scope="module")
def clips():
    """Sixty clips of 32 frames of 16 features, which are noise."""
    return np.random.default_rng(0).normal(size=(60, 32, 16)).astype(np.float32)


def learnt(clips, **settings):
    """Learn a small dictionary of clips [N, T, D]."""

    def read(rows):
        return clips[rows].reshape(-1, clips.shape[-1])

    return learn_dictionary(read, len(clips), **SMALL | settings)


def bytes_of(dictionary):
    return {name: array.tobytes() for name, array in dictionary.to_arrays().items()}


@pytest.mark.long
def test_planted_atoms_are_found_and_dead_units_are_renewed():
    tokens, atoms = tokens_of(np.random.default_rng(1), 6000)
    dictionary = dictionary_of(tokens, n_units=128)
    cosine_of_nearest_unit = (atoms @ dictionary.decoder.T).max(axis=1)
    assert cosine_of_nearest_unit.mean() > 0.95
    assert dictionary.unexplained < 0.1


def test_the_same_seed_gives_the_same_bytes(clips):
    dictionary = learnt(clips, seed=0, n_active=4)
    assert bytes_of(learnt(clips, seed=0, n_active=4)) == bytes_of(dictionary)
    assert bytes_of(learnt(clips, seed=1, n_active=4)) != bytes_of(dictionary)
    activations = dictionary.encode(dictionary.scaled(clips[0]))  # a sparse matrix, [frames, units]
    n_active_in_frames = np.diff(activations.indptr)
    assert n_active_in_frames.max() <= 4
    assert (activations.data > 0).all()


def test_a_dictionary_resumed_after_an_epoch_has_the_bytes_of_one_learnt_at_once(clips):
    arrays_after_epochs = []

    def keep(dictionary):
        arrays_after_epochs.append({name: array.copy() for name, array in dictionary.to_arrays().items()})

    learnt_at_once = learnt(clips, after_epoch=keep)
    after_third_epoch = Dictionary.from_arrays(arrays_after_epochs[2])
    resumed = learnt(clips, resume_from=after_third_epoch)
    assert bytes_of(resumed) == bytes_of(learnt_at_once)


def test_clips_are_read_in_blocks(clips, monkeypatch):
    block_sizes = []

    def read(rows):
        block_sizes.append(len(rows))
        return clips[rows].reshape(-1, 16)

    bytes_of_ten_clips = 10 * clips[0].nbytes
    monkeypatch.setattr("obygaze_models.concepts.dictionary_learning.BLOCK_BYTES", bytes_of_ten_clips)
    dictionary = learn_dictionary(read, len(clips), **SMALL)
    assert max(block_sizes) == 10
    assert np.isfinite(dictionary.unexplained)


def test_too_many_active_units_and_tokens_that_are_all_equal_are_refused(clips):
    with pytest.raises(ModelError, match="30 active units of 24"):
        learnt(clips, n_active=30)
    with pytest.raises(ModelError):
        learnt(np.full_like(clips, 0.1))


def test_a_clip_with_absent_frames_has_the_unit_values_of_the_frames_that_are_there(clips):
    bank = UnitBank(24, 4, 2).fit(clips)
    without_last_frames = clips[:3].copy()
    without_last_frames[:, 20:] = np.nan
    expected = bank.transform(clips[:3, :20])
    np.testing.assert_allclose(bank.transform(without_last_frames), expected, rtol=1e-5, atol=1e-6)
    assert np.isnan(bank.frame_scores(without_last_frames)[:, 20:]).all()


MOVIES = np.repeat([f"film{number}" for number in range(4)], 20)


def labelled_clips():
    """Draw levels and concepts of twenty clips of each of four films."""
    rng = np.random.default_rng(3)
    clips = []
    for row, movie in enumerate(MOVIES):
        level = ("HN", "S")[rng.integers(2)]
        in_random_order = rng.permutation(["Body", "Speech"]).tolist()
        n_concepts = rng.integers(3)
        concepts = tuple(in_random_order[:n_concepts])
        clips.append(Clip(f"{movie}-{row:02}", movie, level=level, concepts=concepts))
    return tuple(clips)


def load_frames(frames, folder):
    """Load the labelled clips, with frames [N, F, D] of one backbone and their negatives of another."""
    clips = labelled_clips()
    manifest = Manifest(clips, folder, builtin_codebook("obygaze12"))
    seen = {"pooled": frames.mean(axis=1), "frames": frames}
    heard = {array: -values for array, values in seen.items()}
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    store = open_store(seal_arrays(folder, movie_of, {"toy": seen, "ears": heard}, n_frames=8))
    one_backbone = om.load_dataset(store, manifest, backbone="toy")
    two_backbones = om.load_dataset([store, store], manifest, backbone=["toy", "ears"])
    return one_backbone, two_backbones.named(["visual", "heard"])


def scores_by(name, frames, folder):
    """Evaluate a model of frames [N, F, D], and return held-out scores and thresholds [N, 2] of all clips."""
    data, fusible = load_frames(frames, folder)
    if name == "concepts_in_time":
        data = fusible
        spec = om.fused_by_concepts(fusible, in_time=True)[0]
    elif name == "pcbm_time_definition":
        spec = _text_bottleneck_spec("definition", TextVectors(("Body", "Look"), np.eye(2, 6)))
    else:
        spec = replace(BUILTIN_MODELS[name], compared_with=())
    table = evaluate(data, [spec], "hn_s").predictions.table
    rows = table[table["model"] == name].set_index("clip_id")
    return rows.loc[data.clip_ids, ["score", "threshold"]].to_numpy()


@pytest.mark.nightly
@pytest.mark.long
@pytest.mark.parametrize("name", ["units", "pcbm_time", "pcbm_time_definition", "concepts_in_time"])
def test_nothing_of_a_film_tested_enters_its_model(tmp_path, name):
    """Frames of half of film0's clips are replaced: scores of its other half are the same."""
    rng = np.random.default_rng(4)
    frames = rng.normal(size=(80, 8, 6)).astype(np.float32)
    is_replaced = np.arange(80) < 10
    replaced = frames.copy()
    replaced[is_replaced] = 5 * rng.normal(size=(10, 8, 6))
    before = scores_by(name, frames, tmp_path / "before")
    after = scores_by(name, replaced, tmp_path / "after")
    is_other_half = (MOVIES == "film0") & ~is_replaced
    np.testing.assert_array_equal(after[is_other_half], before[is_other_half])
    # The models of other films were trained on the replaced clips.
    assert (after[MOVIES != "film0"] != before[MOVIES != "film0"]).any()


def test_the_one_unit_of_thirty_that_goes_with_a_concept_is_found():
    rng = np.random.default_rng(0)
    movies = np.repeat([f"m{number}" for number in range(6)], 40)
    present = rng.random((240, 2)) < 0.3
    unit_values = rng.normal(size=(240, 30))
    unit_values[:, 7] += 1.5 * present[:, 1]
    auc, p = associate(unit_values, present, movies)
    assert np.argwhere(p <= 0.05).tolist() == [[7, 1]]  # unit 7 and concept 1
    assert 0.75 < np.nanmean(auc[:, 7, 1]) < 0.95


@pytest.fixture
def run_units(tmp_path):
    """Call the command `units` on clips half of which show a body in one frame."""
    rng = np.random.default_rng(0)
    movie_of = {f"m{row // 12}-{row:02}": f"m{row // 12}" for row in range(48)}
    shows_body = rng.random(48) < 0.5
    frames = rng.normal(size=(48, 8, 6)).astype(np.float32)
    frames[shows_body, 2, 1] += 6
    arrays = {"pooled": frames.mean(axis=1), "frames": frames}
    seal_arrays(tmp_path / "films", movie_of, {"toy": arrays}, n_frames=8)
    clips = []
    for row, (clip_id, movie) in enumerate(movie_of.items()):
        concepts = ("Body",) if shows_body[row] else ()
        clips.append(Clip(clip_id, movie, level="S", concepts=concepts))
    write_manifest(Manifest(tuple(clips), tmp_path), tmp_path / "films.csv")

    def call(folder):
        words = [str(tmp_path / "films"), "--labels", str(tmp_path / "films.csv")]
        words += ["--units", "12", "--active", "2", "--out", str(folder)]
        return CliRunner().invoke(units, words)

    return call


def test_the_command_describes_units_and_resumes_after_the_last_epoch(run_units, tmp_path, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    whole = tmp_path / "whole"
    assert run_units(whole).exit_code == 0
    first_of_body = next(line for line in (whole / "units.csv").read_text().splitlines() if "Body" in line)
    assert " s" in first_of_body  # the times of its strongest frames
    assert "units go with a concept" in (whole / "units.md").read_text()

    # Killed when all epochs are done, before units are described.
    monkeypatch.setattr("obygaze_models.concepts.dictionary.strongest_activations", killed)
    run_units(tmp_path / "resumed")
    assert (tmp_path / "resumed.partial.npz").exists()
    monkeypatch.undo()

    # Nothing is left to learn: a step would end the command.
    monkeypatch.setattr("obygaze_models.concepts.dictionary_learning._training_step", killed)
    assert run_units(tmp_path / "resumed").exit_code == 0
    assert not (tmp_path / "resumed.partial.npz").exists()
    assert (tmp_path / "resumed" / "units.npz").read_bytes() == (whole / "units.npz").read_bytes()
