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
from obygaze_models.commands.unit_commands import _frames_of_tokens, units
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


def learn_small_dictionary(clips, **settings):
    """Learn a dictionary of 24 units, 4 of them active, of clips [N, T, D]."""

    def read(rows):
        return clips[rows].reshape(-1, clips.shape[-1])

    return learn_dictionary(read, len(clips), **SMALL | settings)


def bytes_of(dictionary):
    return {name: array.tobytes() for name, array in dictionary.to_arrays().items()}


@pytest.mark.long
def test_a_dictionary_has_a_unit_near_each_direction_that_is_planted_in_tokens():
    """Each of 6,000 tokens is a sum of 4 of 64 planted directions ("atoms"), and noise.

    A dictionary of 128 units learns them from the tokens alone: on average, the nearest unit of an atom has a
    cosine above .95 with it, and less than a tenth of the tokens' variance is left unexplained.
    """
    tokens, atoms = tokens_of(np.random.default_rng(1), 6000)

    dictionary = dictionary_of(tokens, n_units=128)

    cosines = atoms @ dictionary.decoder.T  # [atoms, units]
    cosine_of_nearest_unit = cosines.max(axis=1)
    assert cosine_of_nearest_unit.mean() > 0.95
    assert dictionary.unexplained < 0.1


def test_the_same_seed_gives_the_same_bytes(clips):
    """And another seed gives others."""
    dictionary = learn_small_dictionary(clips, seed=0)
    again = learn_small_dictionary(clips, seed=0)
    of_another_seed = learn_small_dictionary(clips, seed=1)

    assert bytes_of(again) == bytes_of(dictionary)
    assert bytes_of(of_another_seed) != bytes_of(dictionary)


def test_of_each_frame_at_most_so_many_units_are_active_and_all_of_them_are_positive(clips):
    """Four of 24 units may be active in a frame."""
    dictionary = learn_small_dictionary(clips, n_active=4)

    activations = dictionary.encode(dictionary.scaled(clips[0]))  # a sparse matrix, [frames, units]

    n_active_in_frames = np.diff(activations.indptr)
    assert n_active_in_frames.max() <= 4
    assert (activations.data > 0).all()


def test_a_dictionary_that_is_resumed_after_an_epoch_is_equal_to_one_learnt_without_a_break(clips):
    """A dictionary is learnt in six epochs, and its arrays are kept after each.

    Another one is made of the arrays after the third epoch and learnt for the other three: it must have the
    same bytes in the end.
    """
    arrays_after_epochs = []

    def keep_arrays(dictionary):
        arrays_after_epochs.append({name: array.copy() for name, array in dictionary.to_arrays().items()})

    learnt_at_once = learn_small_dictionary(clips, after_epoch=keep_arrays)

    third_epoch = 2
    after_third_epoch = Dictionary.from_arrays(arrays_after_epochs[third_epoch])
    resumed = learn_small_dictionary(clips, resume_from=after_third_epoch)

    assert bytes_of(resumed) == bytes_of(learnt_at_once)


def test_clips_are_read_in_blocks(clips, monkeypatch):
    """A block is limited to the bytes of ten of the sixty clips."""
    block_sizes = []

    def read(rows):
        block_sizes.append(len(rows))
        return clips[rows].reshape(-1, 16)

    bytes_of_ten_clips = 10 * clips[0].nbytes
    monkeypatch.setattr("obygaze_models.concepts.dictionary_learning.BLOCK_BYTES", bytes_of_ten_clips)

    dictionary = learn_dictionary(read, len(clips), **SMALL)

    assert max(block_sizes) == 10
    assert np.isfinite(dictionary.unexplained)


def test_more_active_units_than_there_are_are_refused(clips):
    """The small dictionary has 24 units."""
    with pytest.raises(ModelError, match="30 active units of 24"):
        learn_small_dictionary(clips, n_active=30)


def test_tokens_that_are_all_equal_are_refused(clips):
    """They do not vary, so there is nothing to explain. Tokens are the frames of clips."""
    equal_tokens = np.full_like(clips, 0.1)

    with pytest.raises(ModelError):
        learn_small_dictionary(equal_tokens)


def test_a_clip_with_absent_frames_has_the_unit_values_of_the_frames_that_are_there(clips):
    """Absent frames are NaN; here all but the first 20 of 32 are."""
    bank = UnitBank(n_units=24, n_active=4, n_epochs=2).fit(clips)
    first_20_frames = clips[:3, :20]
    others_absent = clips[:3].copy()
    others_absent[:, 20:] = np.nan

    values = bank.transform(others_absent)

    np.testing.assert_allclose(values, bank.transform(first_20_frames), rtol=1e-5, atol=1e-6)
    assert np.isnan(bank.frame_scores(others_absent)[:, 20:]).all()


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
    """There are four films of 20 clips. Frames of the first ten clips of film0 are replaced.

    Held-out scores and thresholds of its other ten clips are the same; those of other films, whose models
    were trained on the replaced clips, change.
    """
    rng = np.random.default_rng(4)
    frames = rng.normal(size=(80, 8, 6)).astype(np.float32)
    is_replaced = np.arange(80) < 10
    replaced_frames = frames.copy()
    replaced_frames[is_replaced] = 5 * rng.normal(size=(10, 8, 6))

    before = scores_by(name, frames, tmp_path / "before")
    after = scores_by(name, replaced_frames, tmp_path / "after")

    is_film0 = MOVIES == "film0"
    is_other_half = is_film0 & ~is_replaced
    np.testing.assert_array_equal(after[is_other_half], before[is_other_half])
    assert (after[~is_film0] != before[~is_film0]).any()


def test_the_one_unit_of_thirty_that_goes_with_a_concept_is_found():
    """Values of units are noise of standard deviation 1. Unit 7 is 1.5 higher in clips with concept 1."""
    rng = np.random.default_rng(0)
    movies = np.repeat([f"m{number}" for number in range(6)], 40)
    present = rng.random((240, 2)) < 0.3  # of two concepts
    unit_values = rng.normal(size=(240, 30))
    unit_values[:, 7] += 1.5 * present[:, 1]

    auc, p = associate(unit_values, present, movies)

    units_and_concepts = np.argwhere(p <= 0.05).tolist()
    assert units_and_concepts == [[7, 1]]
    mean_auc_over_movies = np.nanmean(auc[:, 7, 1])
    assert 0.75 < mean_auc_over_movies < 0.95


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


def test_the_command_describes_units_by_their_strongest_frames_and_their_concepts(run_units, tmp_path):
    """Half of the clips show a body in one frame, so that a unit goes with the concept Body."""
    folder = tmp_path / "units"

    assert run_units(folder).exit_code == 0

    lines_of_body = [line for line in (folder / "units.csv").read_text().splitlines() if "Body" in line]
    assert " s" in lines_of_body[0]  # the times of its strongest frames, in seconds
    assert "units go with a concept" in (folder / "units.md").read_text()


def test_the_command_that_was_killed_after_the_last_epoch_does_not_learn_again(
    run_units, tmp_path, monkeypatch
):
    """The command that learns units is killed when all epochs are done, as it begins to describe the units.

    What it learnt is in a partial file, so that the same command, called again, has nothing left to learn: a
    step of learning would kill it. It must write the same file as a command that was not killed, and remove
    the partial one.
    """

    def kill(*_):
        raise KeyboardInterrupt

    not_killed = tmp_path / "not_killed"
    run_units(not_killed)
    resumed = tmp_path / "resumed"
    step_after_learning = "obygaze_models.concepts.dictionary.strongest_activations"
    with monkeypatch.context() as patch:
        patch.setattr(step_after_learning, kill)
        run_units(resumed)
    assert (tmp_path / "resumed.partial.npz").exists()

    step_of_learning = "obygaze_models.concepts.dictionary_learning._training_step"
    monkeypatch.setattr(step_of_learning, kill)
    assert run_units(resumed).exit_code == 0

    assert not (tmp_path / "resumed.partial.npz").exists()
    assert (resumed / "units.npz").read_bytes() == (not_killed / "units.npz").read_bytes()


@pytest.mark.parametrize(
    ("n_tokens", "n_frames", "frame_of_tokens"),
    [
        (4, 4, {0: 0, 1: 1, 3: 3}),
        (5, 4, {0: 0, 1: 0, 2: 1, 4: 3}),  # a class token, and one token a frame
        (10, 4, {0: 0, 1: 0, 2: 0, 3: 0, 4: 1, 9: 3}),  # two tokens lead
        (3, 1, {0: 0, 1: 0, 2: 0}),
        (1569, 8, {0: 0, 1: 0, 196: 0, 197: 1, 1568: 7}),  # 196 tokens a frame, as of a ViT
    ],
)
def test_each_token_is_of_the_frame_that_shows_it_and_leading_tokens_are_of_the_first(
    n_tokens, n_frames, frame_of_tokens
):
    """A unit's strongest tokens are listed with the times of their frames, for people to look at."""
    tokens = np.array([[*frame_of_tokens]], np.int32)

    assert _frames_of_tokens(tokens, n_tokens, n_frames).tolist() == [[*frame_of_tokens.values()]]
