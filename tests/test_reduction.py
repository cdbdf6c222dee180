"""Tokens are reduced in one pass to a small file beside the store, which no other store or rule is given."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from obygaze_features.store import Group, Store, open_store
from obygaze_features.store.arrays import with_checksum
from obygaze_features.store.testing import seal_arrays
from obygaze_models import reduction
from obygaze_models.dataset import Dataset, load_dataset
from obygaze_models.errors import DatasetError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.run import Run
from obygaze_models.prediction.final import save_models
from obygaze_models.prediction.frames import predict_frames
from obygaze_models.prediction.predict import predict
from obygaze_models.prediction.saved_model import load_model
from obygaze_models.reduction import TokenRule, reduce_tokens
from tests.planted_frames import planted_frames, seal_films
from tests.test_door import ENDLESS, POSIX, SMALL

N = 150
"""Clips: more than two chunks of them, which have 64 each."""
FRAMES = 8
STEPS = 4
"""Times of a clip: each is a tubelet of two frames."""
PATCHES = 6
WIDTH = 5
CLIPS_OF_A_FILM = 60


def tokens_of(n=N, *, class_token=True, seed=0):
    """Draw the tokens of n clips: first the class token, then the patches of each time."""
    rng = np.random.default_rng(seed)
    n_tokens = STEPS * PATCHES + (1 if class_token else 0)
    return rng.normal(size=(n, n_tokens, WIDTH)).astype(np.float16)


def store_of(folder, tokens, *, frames=True, name="films", **changes):
    """Seal clips film0-c000, film0-c001, ... with tokens; their frames tell a reduction the tokens' times."""
    ids = {}
    for row in range(len(tokens)):
        movie = f"film{row // CLIPS_OF_A_FILM}"
        ids[f"{movie}-c{row:03}"] = movie
    arrays = {"pooled": tokens.max(axis=1).astype(np.float32), "tokens": tokens}
    if frames:
        arrays["frames"] = np.zeros((len(tokens), STEPS, WIDTH), np.float32)
    return open_store(seal_arrays(folder / name, ids, {"toy": arrays}, n_frames=FRAMES, **changes))


def rows(store):
    return np.arange(len(store.clips))


def expected_means(tokens):
    return tokens[:, 1:].astype(np.float64).reshape(len(tokens), STEPS, PATCHES, WIDTH).mean(axis=2)


# --- the rules
# ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("mean", "mean"),
        ("mean:16", "mean:16"),
        ("top:8", "top:8"),
        ("project:64", "project:64:0"),
        ("top:8+project:64:7", "top:8+project:64:7"),
    ],
)
def test_a_rule_is_text(text, written):
    assert str(TokenRule.parse(text)) == written


@pytest.mark.parametrize("text", ["", "max", "top", "top:0", "project", "mean+", "+project:4", "mean+top:3"])
def test_a_text_that_is_no_rule_is_refused(text):
    with pytest.raises(DatasetError):
        TokenRule.parse(text)


def test_the_mean_is_that_of_each_tubelets_patches_without_the_class_token(tmp_path):
    tokens = tokens_of()
    result = reduce_tokens(store_of(tmp_path, tokens), "toy", "mean")
    assert result.rule == "mean:4"
    np.testing.assert_allclose(result.read(np.arange(N)), expected_means(tokens), atol=1e-6)
    np.testing.assert_allclose(result.time_s(np.array([0, 149])), [[0.5, 2.5, 4.5, 6.5]] * 2)


def test_the_largest_tokens_are_kept_in_their_order_with_their_time(tmp_path):
    tokens = tokens_of()
    result = reduce_tokens(store_of(tmp_path, tokens), "toy", "top:3")
    patches = tokens[:, 1:].astype(np.float32)
    order = np.sort(np.argsort(-np.linalg.norm(patches, axis=2), axis=1)[:, :3], axis=1)
    np.testing.assert_array_equal(
        result.read(np.arange(N)), np.take_along_axis(patches, order[..., None], axis=1)
    )
    times = np.array([0.5, 2.5, 4.5, 6.5])
    np.testing.assert_allclose(result.time_s(np.arange(N)), times[order // PATCHES])


def test_a_projection_keeps_lengths_on_average(tmp_path):
    """With 400 random columns a squared length is off by .07 as a rule, and never by .4 in 24 of them."""
    store = store_of(tmp_path, tokens_of(6))
    projected = reduce_tokens(store, "toy", "mean+project:400:1").read(rows(store))
    means = expected_means(tokens_of(6))
    np.testing.assert_allclose((projected**2).sum(axis=2), (means**2).sum(axis=2), rtol=0.4)


def test_the_seed_of_a_projection_is_part_of_its_rule(tmp_path):
    """Another seed gives other numbers, in a file of another name."""
    store = store_of(tmp_path, tokens_of(6))
    first = reduce_tokens(store, "toy", "mean+project:400:1")
    second = reduce_tokens(store, "toy", "mean+project:400:2")
    assert not np.array_equal(first.read(rows(store)), second.read(rows(store)))
    assert first.path.name == "films-1.0.0.toy.mean-4_project-400-1.reduced"
    assert second.path.name == "films-1.0.0.toy.mean-4_project-400-2.reduced"


def test_tokens_are_converted_to_float32_as_numpy_converts_them():
    """The reduction's own conversion, which is faster, is exact for every finite number of float16.

    It gives the numbers in tiles and on another scale, by whose inverse they are multiplied here.
    """
    all_float16 = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = all_float16[np.isfinite(all_float16)][:, None]
    tiles = [tile * reduction._UNDO_SCALE for _, tile in reduction._scaled_tiles(finite)]
    np.testing.assert_array_equal(np.concatenate(tiles), finite.astype(np.float32))


# --- which tokens belong together
# ---------------------------------------------------------------------------
@pytest.fixture
def store_without_frames(tmp_path):
    """Ten clips of 24 patches without a class token, of which nothing says to how many times they belong."""
    return store_of(tmp_path, tokens_of(10, class_token=False), frames=False)


def test_without_frames_a_mean_must_state_the_number_of_times(store_without_frames):
    with pytest.raises(DatasetError):
        reduce_tokens(store_without_frames, "toy", "mean")


def test_without_frames_a_mean_is_over_the_patches_of_the_times_it_states(store_without_frames):
    result = reduce_tokens(store_without_frames, "toy", "mean:4").read(rows(store_without_frames))
    patches = tokens_of(10, class_token=False).astype(np.float64).reshape(10, STEPS, PATCHES, WIDTH)
    np.testing.assert_allclose(result, patches.mean(axis=2), atol=1e-6)


def test_without_frames_the_largest_tokens_have_no_times(store_without_frames):
    largest = reduce_tokens(store_without_frames, "toy", "top:2")
    assert np.isnan(largest.time_s(rows(store_without_frames))).all()


@pytest.mark.parametrize("rule", ["mean:7", "top:25"])
def test_a_rule_that_does_not_fit_the_tokens_is_refused(tmp_path, rule):
    with pytest.raises(DatasetError):
        reduce_tokens(store_of(tmp_path, tokens_of(4)), "toy", rule)


def test_a_store_without_tokens_is_refused(tmp_path):
    arrays = {"toy": {"pooled": np.zeros((2, 3), np.float32)}}
    store = open_store(seal_arrays(tmp_path / "bare", {"a": "m", "b": "m"}, arrays))
    with pytest.raises(DatasetError):
        reduce_tokens(store, "toy", "mean")


# --- the file beside the store
# ---------------------------------------------------------------------------
def test_the_file_is_beside_the_store_which_stays_as_it_is(tmp_path):
    store = store_of(tmp_path, tokens_of(8))
    before = store.fingerprint
    reduce_tokens(store, "toy", "mean")
    made = {path.name for path in tmp_path.iterdir()} - {"films.staging"}
    assert made == {"films-1.0.0", "films-1.0.0.toy.mean-4.reduced"}
    assert open_store(store.path).fingerprint == before


def test_a_clip_that_failed_has_no_reduced_tokens(tmp_path):
    store = store_of(tmp_path, tokens_of(8), failed={"film0-c001": "broken"})
    result = reduce_tokens(store, "toy", "mean").read(rows(store))
    assert np.isnan(result).all(axis=(1, 2)).tolist() == [False, True] + 6 * [False]


def test_a_reduction_is_read_from_its_file_the_second_time(tmp_path, monkeypatch):
    store = store_of(tmp_path, tokens_of(), failed={"film0-c001": "broken"})
    first = reduce_tokens(store, "toy", "mean").read(rows(store))
    monkeypatch.setattr(Group, "blocks", None)  # so that tokens can't be read from the store again
    again = reduce_tokens(store, "toy", "mean:4")  # as "mean" where clips have four times
    np.testing.assert_array_equal(again.read(rows(store)), first)
    last_and_fourth = np.array([149, 3])
    np.testing.assert_array_equal(again.read(last_and_fourth), first[last_and_fourth])


def test_a_reduction_of_another_store_is_refused_in_one_line(tmp_path):
    reduced = reduce_tokens(store_of(tmp_path / "a", tokens_of(8)), "toy", "mean").path
    other = store_of(tmp_path / "b", tokens_of(8, seed=1))
    shutil.copy(reduced, other.path.parent)
    with pytest.raises(DatasetError) as error:
        reduce_tokens(other, "toy", "mean")
    assert "\n" not in str(error.value)


def test_a_reduction_by_another_rule_is_refused(tmp_path):
    """A file that was renamed says in its first line by which rule it was made."""
    store = store_of(tmp_path, tokens_of(8))
    of_the_mean = reduce_tokens(store, "toy", "mean").path
    of_the_mean.rename(tmp_path / "films-1.0.0.toy.top-2.reduced")
    with pytest.raises(DatasetError):
        reduce_tokens(store, "toy", "top:2")


def test_a_stopped_pass_begins_anew_and_gives_the_same_bytes(tmp_path, monkeypatch):
    store = store_of(tmp_path, tokens_of())
    whole = reduce_tokens(store, "toy", "mean").path
    data = whole.read_bytes()
    whole.unlink()
    blocks = Group.blocks

    def stopped(self, array, start=0):
        for first, block in blocks(self, array, start):
            if first >= 128:
                raise KeyboardInterrupt
            yield first, block

    with monkeypatch.context() as patched:
        patched.setattr(Group, "blocks", stopped)
        with pytest.raises(KeyboardInterrupt):
            reduce_tokens(store, "toy", "mean")
    assert [path for path in tmp_path.iterdir() if "reduced" in path.name] == []
    assert reduce_tokens(store, "toy", "mean").path.read_bytes() == data


@pytest.mark.parametrize("damage", ["a wrong bit", "cut"])
def test_damage_of_a_clips_numbers_names_the_clip(tmp_path, damage):
    """The numbers of the first clip begin at `start` of the file, behind its first line."""
    store = store_of(tmp_path, tokens_of(8))
    result = reduce_tokens(store, "toy", "mean")
    data = bytearray(result.path.read_bytes())
    if damage == "cut":
        data = data[: result.start + 2]
    else:
        data[result.start + 3] ^= 1
    result.path.write_bytes(data)
    with pytest.raises(DatasetError, match="clip film0-c000"):
        result.read(rows(store))


def test_a_file_whose_first_line_is_of_no_reduction_is_refused(tmp_path):
    store = store_of(tmp_path, tokens_of(8))
    reduce_tokens(store, "toy", "mean").path.write_bytes(b"{}\n")
    with pytest.raises(DatasetError):
        reduce_tokens(store, "toy", "mean")


# --- attention reads it
# ---------------------------------------------------------------------------
N_TIMES = 12
N_PATCHES = 3
N_FEATURES = 8


class FilmsOfTokens(NamedTuple):
    """Films of which only the patches say where an event is, and models that read the patches' means."""

    store: Store
    data: Dataset
    means: np.ndarray
    """Mean of the patches of each clip and time [clips, times, features], in which the event is planted."""
    is_positive: np.ndarray
    has_event: np.ndarray
    """Whether the event is at a time of a clip [clips, times]."""
    run: Run
    models: Mapping[str, Path]
    """Files of the models that were trained on the means, by the model's name."""


@pytest.fixture(scope="module")
def films_of_tokens(tmp_path_factory):
    """Evaluate and save models of the means of tokens; the patches of a time differ from its mean by noise.

    The stored frames are zeros, so only the tokens tell of the event.
    """
    folder = tmp_path_factory.mktemp("attention")
    means, labels, movies, has_event = planted_frames(
        n_movies=6, n_per_movie=40, n_frames=N_TIMES, n_features=N_FEATURES, n_event=2, size=7.0
    )
    n_clips = len(means)
    noise = np.random.default_rng(1).normal(size=(n_clips, N_TIMES, N_PATCHES, N_FEATURES))
    patches = means[:, :, None] + noise - noise.mean(axis=2, keepdims=True)
    class_token = np.full((n_clips, 1, N_FEATURES), 9.0)
    tokens = np.concatenate([class_token, patches.reshape(n_clips, -1, N_FEATURES)], axis=1)
    arrays = {
        "pooled": means.mean(axis=1),
        "tokens": tokens.astype(np.float16),
        "frames": np.zeros_like(means),
    }
    store, manifest = seal_films(folder, arrays, movies, labels, n_frames=2 * N_TIMES)
    data = load_dataset(store, manifest, reduce="mean")
    run = evaluate(data, ["attention"], "hn_s")
    models = save_models(run, data, ["attention", "mean_frames"], folder / "models")
    return FilmsOfTokens(store, data, means, labels == 1, has_event, run, models)


@pytest.fixture(scope="module")
def frames_by_attention(films_of_tokens):
    """The table of what the saved attention model says of each time of each clip."""
    return predict_frames(load_model(films_of_tokens.models["attention"]), [films_of_tokens.store])


@pytest.mark.long
def test_reduced_tokens_take_the_place_of_the_frames_of_a_dataset(films_of_tokens):
    np.testing.assert_allclose(films_of_tokens.data.read("frames"), films_of_tokens.means, atol=0.02)


@pytest.mark.long
def test_a_run_and_the_card_of_its_model_say_how_tokens_were_reduced(films_of_tokens):
    card = load_model(films_of_tokens.models["attention"]).card
    assert films_of_tokens.run.record["reduced_by"] == "mean:12"
    assert card.reduced_by == "mean:12"
    assert card.features == "tokens"


@pytest.mark.long
def test_attention_on_reduced_tokens_finds_the_time_of_an_event(films_of_tokens, frames_by_attention):
    """In nine of ten positive clips the time with the largest weight is one of the event."""
    weights = frames_by_attention["weight"].to_numpy().reshape(-1, N_TIMES)
    known = films_of_tokens.is_positive & ~np.isnan(weights[:, 0])
    heaviest = weights[known].argmax(axis=1)
    assert films_of_tokens.has_event[known, heaviest].mean() >= 0.9


@pytest.mark.long
def test_rows_of_reduced_tokens_have_the_middle_of_their_two_frames_as_time(frames_by_attention):
    """A second has one frame: the first two are at 0 and 1 s, the next two at 2 and 3 s."""
    assert frames_by_attention["time_s"].head(3).tolist() == [0.5, 2.5, 4.5]


@pytest.mark.long
def test_contributions_of_reduced_tokens_add_up_to_the_logit_of_the_clip(
    films_of_tokens, frames_by_attention
):
    """Each clip's logit is the sum of what its times contribute and of the model's intercept."""
    model = load_model(films_of_tokens.models["attention"])
    *_, intercept = model.estimator.parameters_
    logits = predict(model, [films_of_tokens.store]).table.set_index("clip_id")["logit"]
    sums = frames_by_attention.groupby("clip_id")["contribution"].sum(min_count=1).dropna()
    np.testing.assert_allclose(sums + intercept, logits.loc[sums.index], atol=1e-5)


@pytest.mark.long
def test_a_model_of_the_mean_frame_scores_every_clip_by_its_reduced_tokens(films_of_tokens):
    model = load_model(films_of_tokens.models["mean_frames"])
    assert predict(model, [films_of_tokens.store]).table["logit"].notna().all()


@POSIX
def test_odd_content_of_a_reduction_is_read_or_refused_in_one_line(tmp_path):
    store = store_of(tmp_path, tokens_of(8))
    path = reduce_tokens(store, "toy", "top:2").path
    good = path.read_bytes()
    for make in (ENDLESS | SMALL).values():
        path.unlink()
        make(path, good)
        try:
            result = reduce_tokens(store, "toy", "top:2")
            result.read(rows(store))
            result.time_s(rows(store))
        except DatasetError as error:
            assert "\n" not in str(error)  # noqa: PT017 - it may be read as well


def test_a_time_step_out_of_range_is_damage(tmp_path):
    store = store_of(tmp_path, tokens_of(8))
    result = reduce_tokens(store, "toy", "top:2")
    data = result.path.read_bytes()
    result.path.write_bytes(data[:-12] + with_checksum(np.full(2, STEPS, "<i4").tobytes()))
    with pytest.raises(DatasetError):
        result.time_s(rows(store))
