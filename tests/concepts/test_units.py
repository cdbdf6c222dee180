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
from obygaze_models.concepts.texts import TextVectors
from obygaze_models.concepts.texts import _in_time as in_time
from obygaze_models.concepts.units import UnitBank
from obygaze_models.errors import ModelError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.significance import associate
from obygaze_models.models.registry import BUILTIN_MODELS

SMALL = {"n_units": 24, "n_active": 4, "n_epochs": 6, "seed": 0}


@pytest.fixture(scope="module")
def clips():
    return np.random.default_rng(0).normal(size=(60, 32, 16)).astype(np.float32)


def learnt(clips, **settings):
    return learn_dictionary(
        lambda rows: clips[rows].reshape(-1, clips.shape[-1]), len(clips), **SMALL | settings
    )


def bytes_of(made):
    return {name: array.tobytes() for name, array in made.to_arrays().items()}


def test_planted_atoms_are_found_and_dead_units_are_renewed():
    tokens, atoms = tokens_of(np.random.default_rng(1), 6000)
    made = dictionary_of(tokens, n_units=128)
    assert (atoms @ made.decoder.T).max(axis=1).mean() > 0.95
    assert made.unexplained < 0.1


def test_the_same_seed_gives_the_same_bytes_also_resumed_after_an_epoch(clips):
    kept = []

    def keep(made):
        kept.append({name: array.copy() for name, array in made.to_arrays().items()})

    whole = learnt(clips, keep=keep)
    assert bytes_of(learnt(clips)) == bytes_of(whole)
    assert bytes_of(learnt(clips, begun=Dictionary.from_arrays(kept[2]))) == bytes_of(whole)
    assert bytes_of(learnt(clips, seed=1)) != bytes_of(whole)


def test_clips_are_read_in_blocks(clips, monkeypatch):
    sizes = []

    def read(rows):
        sizes.append(len(rows))
        return clips[rows].reshape(-1, 16)

    monkeypatch.setattr("obygaze_models.concepts.dictionary_learning.BLOCK_BYTES", 10 * clips[0].nbytes)
    made = learn_dictionary(read, len(clips), **SMALL)
    assert max(sizes) == 10
    assert np.isfinite(made.unexplained)


def test_more_active_units_than_units_are_refused(clips):
    with pytest.raises(ModelError, match="30 active units of 24"):
        learnt(clips, n_active=30)


def test_tokens_that_are_all_equal_are_refused(clips):
    with pytest.raises(ModelError):
        learnt(np.full_like(clips, 0.1))


def test_at_most_k_units_are_active_and_none_below_zero(clips):
    made = learnt(clips)
    codes = made.encode(made.scaled(clips[0]))
    assert np.diff(codes.indptr).max() <= 4
    assert (codes.data > 0).all()


def test_absent_frames_count_for_nothing(clips):
    bank = UnitBank(24, 4, 2).fit(clips)
    cut = clips[:3].copy()
    cut[:, 20:] = np.nan
    np.testing.assert_allclose(bank.transform(cut), bank.transform(clips[:3, :20]), rtol=1e-5, atol=1e-6)
    assert np.isnan(bank.frame_scores(cut)[:, 20:]).all()


@pytest.mark.parametrize("name", ["units", "pcbm_time", "pcbm_time_definition", "concepts_in_time"])
def test_nothing_of_a_film_tested_enters_its_model(tmp_path, name):
    """Frames of half of a film's clips are replaced: scores of its other half are the same."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 8, 6)).astype(np.float32)
    movies = np.repeat([f"film{k}" for k in range(4)], 20)
    movie_of = dict(zip([f"{movie}-{row:02}" for row, movie in enumerate(movies)], movies, strict=True))
    clips = tuple(
        Clip(clip_id, movie, level=("HN", "S")[rng.integers(2)], concepts=tuple(marked[: rng.integers(3)]))
        for clip_id, movie in movie_of.items()
        for marked in [rng.permutation(["Body", "Speech"]).tolist()]
    )
    manifest = Manifest(clips, tmp_path, builtin_codebook("obygaze12"))

    def scores(frames, folder):
        arrays = {"pooled": frames.mean(axis=1), "frames": frames}
        groups = {"toy": arrays, "ears": {each: -array for each, array in arrays.items()}}
        store = open_store(seal_arrays(tmp_path / folder, movie_of, groups, n_frames=8))
        data = om.load_dataset([store, store], manifest, backbone=["toy", "ears"]).named(["visual", "heard"])
        specs = om.fused_by_concepts(data, in_time=True)[:1]
        if name != specs[0].name:
            data = om.load_dataset(store, manifest, backbone="toy")
            specs = [in_time("definition", TextVectors(("Body", "Look"), np.eye(2, 6)))]
        if name in BUILTIN_MODELS:
            specs = [replace(BUILTIN_MODELS[name], beside=())]
        table = evaluate(data, specs, "hn_s")
        own = table.predictions.table.query("model == @name").set_index("clip_id")
        return own.loc[list(movie_of), ["score", "threshold"]].to_numpy()

    changed = X.copy()
    changed[:10] = 5 * rng.normal(size=(10, 8, 6))
    one, two = scores(X, "a"), scores(changed, "b")
    np.testing.assert_array_equal(one[10:20], two[10:20])
    assert (one[20:] != two[20:]).any()  # these films' models were trained on it


def test_a_unit_that_goes_with_a_concept_is_found_beside_many_that_do_not():
    rng = np.random.default_rng(0)
    movies = np.repeat([f"m{k}" for k in range(6)], 40)
    present = rng.random((240, 2)) < 0.3
    values = rng.normal(size=(240, 30))
    values[:, 7] += 1.5 * present[:, 1]
    auc, p = associate(values, present, movies)
    assert np.argwhere(p <= 0.05).tolist() == [[7, 1]]
    assert 0.75 < np.nanmean(auc[:, 7, 1]) < 0.95


def test_the_command_describes_units_and_resumes(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    ids = {f"m{k // 12}-{k:02}": f"m{k // 12}" for k in range(48)}
    shows = rng.random(48) < 0.5
    frames = rng.normal(size=(48, 8, 6)).astype(np.float32)
    frames[shows, 2] += 6 * np.eye(6, dtype=np.float32)[1]
    seal_arrays(
        tmp_path / "films", ids, {"toy": {"pooled": frames.mean(axis=1), "frames": frames}}, n_frames=8
    )
    clips = tuple(
        Clip(name, movie, level="S", concepts=("Body",) * bool(there))
        for (name, movie), there in zip(ids.items(), shows, strict=True)
    )
    write_manifest(Manifest(clips, tmp_path), tmp_path / "films.csv")
    command = [str(tmp_path / "films"), "--labels", str(tmp_path / "films.csv")]
    command += ["--units", "12", "--active", "2"]

    def run(name):
        return CliRunner().invoke(units, [*command, "--out", str(tmp_path / name)])

    assert run("one").exit_code == 0
    table = (tmp_path / "one" / "units.csv").read_text()
    first = next(line for line in table.splitlines() if "Body" in line)
    assert " s" in first
    assert "units go with a concept" in (tmp_path / "one" / "units.md").read_text()

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("obygaze_models.concepts.dictionary.strongest", killed)
    run("two")
    assert (tmp_path / "two.partial.npz").exists()
    monkeypatch.undo()
    monkeypatch.setattr(
        "obygaze_models.concepts.dictionary_learning._step", killed
    )  # nothing is left to learn
    assert run("two").exit_code == 0
    assert not (tmp_path / "two.partial.npz").exists()
    assert (tmp_path / "one" / "units.npz").read_bytes() == (tmp_path / "two" / "units.npz").read_bytes()
