"""Tokens are reduced in one pass to a small file beside the store, which no other store or rule is given."""

import shutil
from collections.abc import Mapping
from contextlib import contextmanager
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
from obygaze_models.prediction.explain import explain
from obygaze_models.prediction.final import save_models
from obygaze_models.prediction.frames import predict_frames
from obygaze_models.prediction.predict import predict
from obygaze_models.prediction.saved_model import load_model
from obygaze_models.reduction import TokenRule, reduce_tokens
from tests.planted_frames import planted_frames, seal_films
from tests.test_untrusted import ENDLESS, POSIX, SMALL

FRAMES = 8
STEPS = 4
"""Times of a clip: each is a tubelet of two frames."""
PATCHES = 6
WIDTH = 5
CLIPS_OF_A_FILM = 60


def draw_tokens(n_clips, *, class_token=True, seed=0):
    """Draw tokens [n_clips, 25, 5]: first the class token, then six patches of each of four times.

    Without a class token they are [n_clips, 24, 5]. A store has chunks of 64 clips.
    """
    rng = np.random.default_rng(seed)
    n_tokens = STEPS * PATCHES + (1 if class_token else 0)
    return rng.normal(size=(n_clips, n_tokens, WIDTH)).astype(np.float16)


def store_of_tokens(folder, tokens, *, frames=True, name="films", **changes):
    """Seal clips film0-c000, film0-c001, ... with tokens of the backbone `toy`, in FOLDER/films-1.0.0.

    A clip has 8 frames, one a second, and stored vectors of four times, each of two frames; by these a
    reduction knows which tokens are of which time.
    """
    ids = {}
    for row in range(len(tokens)):
        movie = f"film{row // CLIPS_OF_A_FILM}"
        ids[f"{movie}-c{row:03}"] = movie
    arrays = {"pooled": tokens.max(axis=1).astype(np.float32), "tokens": tokens}
    if frames:
        arrays["frames"] = np.zeros((len(tokens), STEPS, WIDTH), np.float32)
    return open_store(seal_arrays(folder / name, ids, {"toy": arrays}, n_frames=FRAMES, **changes))


def all_rows(store):
    return np.arange(len(store.clips))


def mean_patches(tokens):
    """Average the six patches of each of the four times of a clip, without the class token [clips, 4, 5]."""
    patches = tokens[:, 1:].astype(np.float64)
    return patches.reshape(len(tokens), STEPS, PATCHES, WIDTH).mean(axis=2)


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
def test_a_rule_is_read_from_text_and_written_as_text(text, written):
    """A projection without a seed has the seed 0."""
    assert str(TokenRule.parse(text)) == written


@pytest.mark.parametrize("text", ["", "max", "top", "top:0", "project", "mean+", "+project:4", "mean+top:3"])
def test_a_text_that_is_no_rule_is_refused(text):
    """A rule is mean or mean:N or top:N, perhaps with +project:N behind it, or project:N alone."""
    with pytest.raises(DatasetError):
        TokenRule.parse(text)


def test_the_mean_is_that_of_each_times_patches_without_the_class_token(tmp_path):
    """A clip has 25 tokens: one of the class, then six patches for each of four times.

    150 clips are more than two chunks of a store.
    """
    tokens = draw_tokens(n_clips=150)
    store = store_of_tokens(tmp_path, tokens)

    reduced = reduce_tokens(store, "toy", "mean")

    assert reduced.rule == "mean:4"
    np.testing.assert_allclose(reduced.read(all_rows(store)), mean_patches(tokens), atol=1e-6)


def test_reduced_tokens_have_the_middle_of_their_two_frames_as_time(tmp_path):
    """A clip has 8 frames, one a second from 0 s; a time is that of two frames, so the first is 0.5 s."""
    store = store_of_tokens(tmp_path, draw_tokens(n_clips=150))

    reduced = reduce_tokens(store, "toy", "mean")

    first_and_last_clip = np.array([0, 149])
    times = reduced.time_s(first_and_last_clip)
    np.testing.assert_allclose(times, [[0.5, 2.5, 4.5, 6.5], [0.5, 2.5, 4.5, 6.5]])


def test_the_largest_tokens_are_kept_in_their_order_with_their_time(tmp_path):
    """The rule top:3 keeps of each clip the three patches of the largest norms, in the order they stood in.

    The 24 patches are six for each time: the first six are at 0.5 s, the next six at 2.5 s, and so on.
    """
    tokens = draw_tokens(n_clips=150)
    store = store_of_tokens(tmp_path, tokens)

    reduced = reduce_tokens(store, "toy", "top:3")
    kept = reduced.read(all_rows(store))
    times = reduced.time_s(all_rows(store))

    time_of_step = [0.5, 2.5, 4.5, 6.5]
    for row in range(150):
        patches = tokens[row, 1:].astype(np.float32)  # without the class token
        from_largest = np.argsort(-np.linalg.norm(patches, axis=1))
        largest_in_order = sorted(from_largest[:3])
        np.testing.assert_array_equal(kept[row], patches[largest_in_order])
        np.testing.assert_allclose(times[row], [time_of_step[patch // 6] for patch in largest_in_order])


def test_a_projection_keeps_lengths_on_average(tmp_path):
    """With 400 random columns a squared length is off by .07 as a rule, and never by .4 in 24 of them."""
    tokens = draw_tokens(n_clips=6)
    store = store_of_tokens(tmp_path, tokens)

    projected = reduce_tokens(store, "toy", "mean+project:400:1").read(all_rows(store))

    squared_lengths = (projected**2).sum(axis=2)
    squared_lengths_before = (mean_patches(tokens) ** 2).sum(axis=2)
    assert squared_lengths.size == 24, "six clips of four times"
    np.testing.assert_allclose(squared_lengths, squared_lengths_before, rtol=0.4)


def test_the_seed_of_a_projection_is_part_of_its_rule(tmp_path):
    """Another seed gives other numbers, in a file of another name."""
    store = store_of_tokens(tmp_path, draw_tokens(n_clips=6))

    first = reduce_tokens(store, "toy", "mean+project:400:1")
    second = reduce_tokens(store, "toy", "mean+project:400:2")

    assert not np.array_equal(first.read(all_rows(store)), second.read(all_rows(store)))
    assert first.path.name == "films-1.0.0.toy.mean-4_project-400-1.reduced"
    assert second.path.name == "films-1.0.0.toy.mean-4_project-400-2.reduced"


def test_tokens_are_converted_to_float32_as_numpy_converts_them():
    """To reduce tokens, float16 is converted by a faster way than numpy's. It must be exact for each number.

    It gives the numbers tile by tile, multiplied by a power of two; here that is undone. Each of the 65,536
    patterns of 16 bits that is a finite number is tried.
    """
    all_patterns_of_16_bits = np.arange(2**16, dtype=np.uint16)
    all_float16 = all_patterns_of_16_bits.view(np.float16)
    finite = all_float16[np.isfinite(all_float16)]
    one_number_a_row = finite[:, np.newaxis]

    converted = []
    for _, tile in reduction._scaled_tiles(one_number_a_row):
        converted.append(tile * reduction._UNDO_SCALE)

    np.testing.assert_array_equal(np.concatenate(converted), one_number_a_row.astype(np.float32))


# --- which tokens belong together
# ---------------------------------------------------------------------------
@pytest.fixture
def store_without_frames(tmp_path):
    """Ten clips of 24 patches without a class token, of which nothing says to how many times they belong."""
    return store_of_tokens(tmp_path, draw_tokens(n_clips=10, class_token=False), frames=False)


def test_without_frames_a_mean_must_state_the_number_of_times(store_without_frames):
    """The store has 24 patches a clip, and no array of frames: the patches may be of any number of times."""
    with pytest.raises(DatasetError):
        reduce_tokens(store_without_frames, "toy", "mean")


def test_in_a_store_without_frames_the_rule_mean_4_divides_the_patches_of_a_clip_into_four_times(
    store_without_frames,
):
    """A clip of the store has 24 patches, and no stored frames that say of how many times they are.

    The rule "mean:4" states that. Patches stand in the order of time, so that six in a row are of one time,
    and their mean is what is kept.
    """
    reduced = reduce_tokens(store_without_frames, "toy", "mean:4")
    means = reduced.read(all_rows(store_without_frames))

    tokens = draw_tokens(n_clips=10, class_token=False)  # those of the store, which has no class tokens
    for clip in range(10):
        for time in range(4):
            patches = tokens[clip, 6 * time : 6 * time + 6].astype(np.float64)
            np.testing.assert_allclose(means[clip, time], patches.mean(axis=0), atol=1e-6)


def test_without_frames_the_largest_tokens_have_no_times(store_without_frames):
    """Nothing in the store says to which time a patch belongs."""
    largest = reduce_tokens(store_without_frames, "toy", "top:2")

    times = largest.time_s(all_rows(store_without_frames))

    assert np.isnan(times).all()


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param("mean:7", id="means of seven times, which do not divide 24 patches"),
        pytest.param("top:25", id="the 25 largest of 24 patches"),
    ],
)
def test_a_rule_of_reduction_that_does_not_fit_the_number_of_patches_is_refused(tmp_path, rule):
    """A rule says how the many tokens of a clip become few vectors; here a clip has 24 patches.

    "mean:7" asks for the mean of the patches of each of seven times, and there would have to be as many
    patches of each. "top:25" asks for the 25 patches of the largest norm. The class token, a 25th token,
    is no patch.
    """
    store = store_of_tokens(tmp_path, draw_tokens(n_clips=4))

    with pytest.raises(DatasetError):
        reduce_tokens(store, "toy", rule)


def test_a_store_without_tokens_is_refused(tmp_path):
    """The store has pooled vectors alone, of two clips; a reduction makes few vectors of many tokens."""
    arrays = {"toy": {"pooled": np.zeros((2, 3), np.float32)}}
    store = open_store(seal_arrays(tmp_path / "bare", {"a": "m", "b": "m"}, arrays))

    with pytest.raises(DatasetError):
        reduce_tokens(store, "toy", "mean")


# --- the file beside the store
# ---------------------------------------------------------------------------
def test_reduced_tokens_are_kept_in_a_file_beside_the_store_which_stays_as_it_is(tmp_path):
    """The file is named after the store films-1.0.0, the backbone toy and the rule, means of four times.

    The rule "mean" is that of all times of a clip, which are four here: in full it is "mean:4".
    """
    store = store_of_tokens(tmp_path, draw_tokens(n_clips=8))
    fingerprint_before = store.fingerprint
    names_before = {path.name for path in tmp_path.iterdir()}  # the store, and the stage it was sealed from

    reduce_tokens(store, "toy", "mean")

    new_names = {path.name for path in tmp_path.iterdir()} - names_before
    assert new_names == {"films-1.0.0.toy.mean-4.reduced"}
    assert open_store(store.path).fingerprint == fingerprint_before


def test_a_clip_that_failed_has_no_reduced_tokens(tmp_path):
    """Of eight clips the second, film0-c001, has failed: its row is NaN."""
    store = store_of_tokens(tmp_path, draw_tokens(n_clips=8), failed={"film0-c001": "broken"})

    reduced = reduce_tokens(store, "toy", "mean").read(all_rows(store))

    assert np.isnan(reduced[1]).all()
    assert not np.isnan(reduced[[0, 2, 3, 4, 5, 6, 7]]).any()


def test_tokens_that_were_reduced_before_are_read_from_the_file_and_not_from_the_store(tmp_path, monkeypatch):
    """Tokens are reduced by the rule "mean", then by "mean:4", which is the same: a clip has four times.

    In between `Group.blocks` is taken away, by which the tokens of a store are read. So the second result can
    only come from the file that the first one was kept in.
    """
    store = store_of_tokens(tmp_path, draw_tokens(n_clips=150), failed={"film0-c001": "broken"})
    first_time = reduce_tokens(store, "toy", "mean").read(all_rows(store))

    not_there = None
    monkeypatch.setattr(Group, "blocks", not_there)
    second_time = reduce_tokens(store, "toy", "mean:4")

    np.testing.assert_array_equal(second_time.read(all_rows(store)), first_time)
    last_and_fourth = np.array([149, 3])
    np.testing.assert_array_equal(second_time.read(last_and_fourth), first_time[last_and_fourth])


def test_a_reduction_of_another_store_is_refused_in_one_line(tmp_path):
    """Somebody copied the reduction of one store beside another of the same name and other tokens."""
    store = store_of_tokens(tmp_path / "a", draw_tokens(n_clips=8, seed=0))
    other_store = store_of_tokens(tmp_path / "b", draw_tokens(n_clips=8, seed=1))
    shutil.copy(reduce_tokens(store, "toy", "mean").path, tmp_path / "b")

    with pytest.raises(DatasetError) as error:
        reduce_tokens(other_store, "toy", "mean")
    assert "\n" not in str(error.value)


def test_a_reduction_by_another_rule_is_refused(tmp_path):
    """A file that was renamed says in its first line by which rule it was made."""
    store = store_of_tokens(tmp_path, draw_tokens(n_clips=8))
    file_of_means = reduce_tokens(store, "toy", "mean").path
    file_of_means.rename(tmp_path / "films-1.0.0.toy.top-2.reduced")

    with pytest.raises(DatasetError):
        reduce_tokens(store, "toy", "top:2")


@contextmanager
def stopped_by_the_user_at_clip_128(monkeypatch):
    """Have the program stopped, as by Ctrl+C, while it reads the tokens of clip 128."""
    read_blocks = Group.blocks

    def read_blocks_until_stopped(self, array, start=0):
        for first_row, block in read_blocks(self, array, start):
            if first_row >= 128:
                raise KeyboardInterrupt
            yield first_row, block

    with monkeypatch.context() as patched:
        patched.setattr(Group, "blocks", read_blocks_until_stopped)
        yield


def test_a_reduction_that_was_stopped_begins_anew_and_gives_the_same_bytes(tmp_path, monkeypatch):
    """The tokens of a store of 150 clips are reduced to their mean, which is kept in a file beside the store.

    The user stops the program at clip 128, and no file is left. Begun again, it gives the same bytes as
    without a stop.
    """
    store = store_of_tokens(tmp_path, draw_tokens(n_clips=150))
    undisturbed = reduce_tokens(store, "toy", "mean").path
    bytes_undisturbed = undisturbed.read_bytes()
    undisturbed.unlink()

    with stopped_by_the_user_at_clip_128(monkeypatch), pytest.raises(KeyboardInterrupt):
        reduce_tokens(store, "toy", "mean")
    assert [path for path in tmp_path.iterdir() if "reduced" in path.name] == []

    begun_again = reduce_tokens(store, "toy", "mean").path
    assert begun_again.read_bytes() == bytes_undisturbed


@pytest.mark.parametrize("damage", ["a wrong bit", "cut"])
def test_damage_of_a_clips_numbers_names_the_clip(tmp_path, damage):
    """The numbers of the first clip, film0-c000, begin at byte `start` of the file, behind its first line."""
    store = store_of_tokens(tmp_path, draw_tokens(n_clips=8))
    reduced = reduce_tokens(store, "toy", "mean")
    octets = bytearray(reduced.path.read_bytes())
    if damage == "cut":
        octets = octets[: reduced.start + 2]
    else:
        octets[reduced.start + 3] ^= 1
    reduced.path.write_bytes(octets)

    with pytest.raises(DatasetError, match="clip film0-c000"):
        reduced.read(all_rows(store))


def test_a_file_whose_first_line_is_of_no_reduction_is_refused(tmp_path):
    """The first line is a JSON object that says which store was reduced, by which rule; here it is {}."""
    store = store_of_tokens(tmp_path, draw_tokens(n_clips=8))
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
    """The dataset was loaded with `reduce="mean"`: its frames are the planted means of the patches.

    The store's own frames are zeros. Tokens are float16, whose rounding the tolerance allows for.
    """
    frames = films_of_tokens.data.read("frames")

    np.testing.assert_allclose(frames, films_of_tokens.means, atol=0.02)


@pytest.mark.long
def test_a_run_and_the_card_of_its_model_say_how_tokens_were_reduced(films_of_tokens):
    """The dataset was loaded with `reduce="mean"`, and a clip has twelve times.

    A model of attention was evaluated on it (the run) and saved, with a card that describes it.
    """
    card = load_model(films_of_tokens.models["attention"]).card

    assert films_of_tokens.run.record["reduced_by"] == "mean:12"
    assert card.reduced_by == "mean:12"
    assert card.features == "tokens"


@pytest.mark.long
def test_attention_on_reduced_tokens_finds_the_time_of_an_event(films_of_tokens, frames_by_attention):
    """A positive clip has an event at two of its twelve times; each time has a weight.

    In nine of ten positive clips the time of the largest weight is one of the event. Clips that are unlike
    the training clips have no weights.
    """
    weights = frames_by_attention["weight"].to_numpy().reshape(-1, 12)  # [clips, times]

    event_is_found = []
    for clip in np.flatnonzero(films_of_tokens.is_positive):
        if not np.isnan(weights[clip, 0]):
            time_of_largest_weight = weights[clip].argmax()
            event_is_found.append(films_of_tokens.has_event[clip, time_of_largest_weight])
    assert np.mean(event_is_found) >= 0.9


@pytest.mark.long
def test_rows_of_reduced_tokens_have_the_middle_of_their_two_frames_as_time(frames_by_attention):
    """There is a frame a second: the first two are at 0 and 1 s, the next two at 2 and 3 s."""
    assert frames_by_attention["time_s"].head(3).tolist() == [0.5, 2.5, 4.5]


@pytest.mark.long
def test_contributions_of_reduced_tokens_add_up_to_the_logit_of_the_clip(
    films_of_tokens, frames_by_attention
):
    """Each clip's logit is the sum of what its times contribute and of the model's intercept."""
    model = load_model(films_of_tokens.models["attention"])
    *_, intercept = model.estimator.parameters_
    logits = predict(model, [films_of_tokens.store]).table.set_index("clip_id")["logit"]

    contributions = frames_by_attention.groupby("clip_id")["contribution"]
    sums = contributions.sum(min_count=1).dropna()  # clips unlike the training clips have no contributions

    np.testing.assert_allclose(sums + intercept, logits.loc[sums.index], atol=1e-5)


@pytest.mark.long
def test_a_model_of_the_mean_frame_scores_every_clip_by_its_reduced_tokens(films_of_tokens):
    """The model was trained on a dataset loaded with `reduce="mean"`, and reduces a store's tokens itself."""
    model = load_model(films_of_tokens.models["mean_frames"])

    table = predict(model, [films_of_tokens.store]).table

    assert table["logit"].notna().all()


@POSIX
@pytest.mark.parametrize("odd_file", ENDLESS | SMALL)
def test_an_odd_file_of_reduced_tokens_is_read_or_refused_in_one_line(tmp_path, odd_file):
    """The file of reduced tokens is replaced by something odd, such as a pipe or a damaged file.

    ENDLESS and SMALL are such things by their names. Some, like a file with one other value, can be read as
    well. Otherwise there is an error of ours with one line: reading must not wait for ever, fill the memory,
    or raise another error.
    """
    store = store_of_tokens(tmp_path, draw_tokens(n_clips=8))
    path = reduce_tokens(store, "toy", "top:2").path
    good_bytes = path.read_bytes()
    make_odd_file = (ENDLESS | SMALL)[odd_file]
    path.unlink()
    make_odd_file(path, good_bytes)

    try:
        reduced = reduce_tokens(store, "toy", "top:2")
        reduced.read(all_rows(store))
        reduced.time_s(all_rows(store))
    except DatasetError as error:
        assert "\n" not in str(error)  # noqa: PT017 - it may be read as well


def test_a_file_of_reduced_tokens_that_names_a_time_step_that_no_clip_has_is_refused(tmp_path):
    """The rule "top:2" keeps two tokens of a clip, and notes of which of the clip's four times they are.

    These steps, 0 to 3, are at the end of the file: for the last clip two numbers of four bytes and a
    checksum of four. Somebody has written 4 and 4 there, with the right checksum of it.
    """
    store = store_of_tokens(tmp_path, draw_tokens(n_clips=8))
    reduced = reduce_tokens(store, "toy", "top:2")
    octets = reduced.path.read_bytes()
    steps_that_no_clip_has = np.array([4, 4], dtype="<i4").tobytes()
    n_bytes_replaced = 4 + 4 + 4
    reduced.path.write_bytes(octets[:-n_bytes_replaced] + with_checksum(steps_that_no_clip_has))

    with pytest.raises(DatasetError):
        reduced.time_s(all_rows(store))


@pytest.mark.long
def test_an_explanation_of_a_clip_by_reduced_tokens_has_what_each_time_contributes(
    films_of_tokens, frames_by_attention
):
    """A model of attention was trained on tokens that were reduced to the means of a clip's twelve times.

    Its explanation of one clip has each time with its contribution to the score, although the store has no
    frames of use. They are those of the table of all clips (`frames_by_attention`).
    """
    model = load_model(films_of_tokens.models["attention"])
    table_of_times = frames_by_attention.dropna(subset=["contribution"])
    clip_id = table_of_times["clip_id"].iloc[0]

    explained = explain(model, [films_of_tokens.store], clip_id, {})

    times_of_clip = table_of_times[table_of_times["clip_id"] == clip_id]
    assert [frame["time_s"] for frame in explained.frames] == times_of_clip["time_s"].tolist()
    contributions = [frame["contribution"] for frame in explained.frames]
    np.testing.assert_allclose(contributions, times_of_clip["contribution"], rtol=1e-6)
