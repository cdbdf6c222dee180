"""Tokens are reduced in one pass to a small file beside the store, which no other store or rule is given."""

import json
import shutil

import numpy as np
import pytest

from obygaze_features.lines import encode_line
from obygaze_features.store import Group, open_store
from obygaze_features.store.arrays import with_checksum
from obygaze_features.store.testing import seal_arrays
from obygaze_models import reduction
from obygaze_models.dataset import load_dataset
from obygaze_models.errors import DatasetError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.prediction.final import save_models
from obygaze_models.prediction.frames import predict_frames
from obygaze_models.prediction.predict import predict
from obygaze_models.prediction.saved_model import load_model
from obygaze_models.reduction import TokenRule, reduce_tokens
from tests.planted_frames import planted_frames, seal_films
from tests.test_door import ENDLESS, POSIX, SMALL

N = 150
STEPS = 4
PATCHES = 6
WIDTH = 5
FRAMES = 8
"""More than two chunks of clips, whose two frames make a tubelet."""


def tokens_of(n=N, *, class_token=True, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, class_token + STEPS * PATCHES, WIDTH)).astype(np.float16)


def store_of(folder, tokens, *, frames=True, name="films", **changes):
    ids = {f"film{row // 60}-c{row:03}": f"film{row // 60}" for row in range(len(tokens))}
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
def test_what_is_no_rule_is_refused_with_the_rules_there_are(text):
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


def test_a_projection_keeps_lengths_on_average_and_its_seed_is_part_of_the_rule(tmp_path):
    store = store_of(tmp_path, tokens_of(6))
    result, other = (reduce_tokens(store, "toy", f"mean+project:400:{seed}") for seed in (1, 2))
    means = expected_means(tokens_of(6))
    squares = (result.read(rows(store)) ** 2).sum(axis=2)
    np.testing.assert_allclose(squares, (means**2).sum(axis=2), rtol=0.4)
    assert not np.array_equal(result.read(rows(store)), other.read(rows(store)))
    assert result.path.name == "films-1.0.0.toy.mean-4_project-400-1.reduced"


def test_conversion_is_that_of_float16_for_every_finite_value():
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)][:, None]
    result = np.concatenate([tile * reduction._UNDO_SCALE for _, tile in reduction._scaled_tiles(finite)])
    np.testing.assert_array_equal(result, finite.astype(np.float32))


# --- which tokens belong together
# ---------------------------------------------------------------------------
def test_without_frames_the_time_steps_must_be_stated(tmp_path):
    tokens = tokens_of(10, class_token=False)
    store = store_of(tmp_path, tokens, frames=False)
    with pytest.raises(DatasetError):
        reduce_tokens(store, "toy", "mean")
    result = reduce_tokens(store, "toy", "mean:4").read(rows(store))
    np.testing.assert_allclose(result, tokens.astype(np.float64).reshape(10, 4, 6, 5).mean(axis=2), atol=1e-6)
    assert np.isnan(reduce_tokens(store, "toy", "top:2").time_s(rows(store))).all()


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
def test_the_file_is_beside_the_store_and_is_read_the_second_time(tmp_path, monkeypatch):
    store = store_of(tmp_path, tokens_of(), failed={"film0-c001": "broken"})
    before = store.fingerprint
    first = reduce_tokens(store, "toy", "mean")
    made = {path.name for path in tmp_path.iterdir()} - {"films.staging"}
    assert made == {"films-1.0.0", "films-1.0.0.toy.mean-4.reduced"}
    assert open_store(store.path).fingerprint == before
    assert np.isnan(first.read(np.array([1]))).all()
    monkeypatch.setattr(Group, "blocks", None)
    again = reduce_tokens(store, "toy", "mean:4")
    np.testing.assert_array_equal(again.read(rows(store)), first.read(rows(store)))
    np.testing.assert_array_equal(again.read(np.array([149, 3])), first.read(rows(store))[[149, 3]])


def test_a_reduction_of_another_store_or_rule_is_refused_in_one_line(tmp_path):
    first = reduce_tokens(store_of(tmp_path / "a", tokens_of(8)), "toy", "mean").path
    other = store_of(tmp_path / "b", tokens_of(8, seed=1))
    shutil.copy(first, other.path.parent)
    with pytest.raises(DatasetError) as error:
        reduce_tokens(other, "toy", "mean")
    assert "\n" not in str(error.value)
    line, _, data = first.read_bytes().partition(b"\n")
    entry = json.loads(line)["entry"] | {"store": other.fingerprint}
    (other.path.parent / "films-1.0.0.toy.top-2.reduced").write_bytes(encode_line(entry) + data)
    with pytest.raises(DatasetError):
        reduce_tokens(other, "toy", "top:2")


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


@pytest.mark.parametrize("cut", [False, True])
def test_damage_is_named(tmp_path, cut):
    store = store_of(tmp_path, tokens_of(8))
    result = reduce_tokens(store, "toy", "mean")
    data = bytearray(result.path.read_bytes())
    data[result.start + 3] ^= 1
    result.path.write_bytes(data[: result.start + 2] if cut else data)
    with pytest.raises(DatasetError, match="clip film0-c000"):
        result.read(rows(store))
    result.path.write_bytes(b"{}\n")
    with pytest.raises(DatasetError):
        reduce_tokens(store, "toy", "mean")


# --- attention reads it
# ---------------------------------------------------------------------------
@pytest.mark.long
def test_attention_on_reduced_tokens_is_evaluated_kept_and_applied(tmp_path):
    """Only here is a model of reduced tokens evaluated, kept and applied: it finds an event in time."""
    X, y, movies, event = planted_frames(6, 40, 12, 8, n_event=2, size=7.0)
    noise = np.random.default_rng(1).normal(size=(len(X), 12, 3, 8))
    patches = X[:, :, None] + noise - noise.mean(axis=2, keepdims=True)
    tokens = np.concatenate([np.full((len(X), 1, 8), 9.0), patches.reshape(len(X), 36, 8)], axis=1)
    arrays = {"pooled": X.mean(axis=1), "tokens": tokens.astype(np.float16), "frames": np.zeros_like(X)}
    store, manifest = seal_films(tmp_path, arrays, movies, y, n_frames=24)
    data = load_dataset(store, manifest, reduce="mean")
    np.testing.assert_allclose(data.read("frames"), X, atol=0.02)
    run = evaluate(data, ["attention"], "hn_s")
    assert run.record["reduced_by"] == "mean:12"
    kept = save_models(run, data, ["attention", "mean_frames"], tmp_path / "models")
    model = load_model(kept["attention"])
    assert (model.card.features, model.card.reduced_by) == ("tokens", "mean:12")
    frames = predict_frames(model, [store])
    weights = frames["weight"].to_numpy().reshape(-1, 12)
    known = (y == 1) & ~np.isnan(weights[:, 0])
    assert event[known, weights[known].argmax(axis=1)].mean() >= 0.9
    assert frames["time_s"].tolist()[:3] == [0.5, 2.5, 4.5]
    logits = predict(model, [store]).table.set_index("clip_id")["logit"]
    added = (
        frames.groupby("clip_id")["contribution"].sum(min_count=1).dropna() + model.estimator.parameters_[-1]
    )
    np.testing.assert_allclose(added, logits.loc[added.index], atol=1e-5)
    assert predict(load_model(kept["mean_frames"]), [store]).table["logit"].notna().all()


@POSIX
def test_whatever_is_in_the_place_of_the_file_is_read_or_named_at_once(tmp_path):
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


def test_a_time_step_that_there_is_none_is_damage(tmp_path):
    store = store_of(tmp_path, tokens_of(8))
    result = reduce_tokens(store, "toy", "top:2")
    data = result.path.read_bytes()
    result.path.write_bytes(data[:-12] + with_checksum(np.full(2, STEPS, "<i4").tobytes()))
    with pytest.raises(DatasetError):
        result.time_s(rows(store))
