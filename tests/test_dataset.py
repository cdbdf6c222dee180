"""A dataset is exactly the task's clips that have features, and says what it left out."""

import numpy as np
import pytest

from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import Group, open_store
from obygaze_models.dataset import DatasetError, Exclusion, load_dataset
from obygaze_models.protocol import TASKS, Task

EN_S, HN_S, ENHN_S = TASKS["en_s"], TASKS["hn_s"], TASKS["enhn_s"]

MOVIES = {"b1": "b", "a1": "a", "a2": "a", "c1": "c", "c2": "c", "stranger": "d"}
FRAMES = np.random.default_rng(0).normal(size=(6, 2, 3)).astype(np.float32)
TOKENS = np.random.default_rng(1).normal(size=(6, 5, 4)).astype(np.float16)
POOLED = FRAMES.mean(axis=1)
ROW = {clip_id: row for row, clip_id in enumerate(MOVIES)}


@pytest.fixture(scope="module")
def store(make_store, tmp_path_factory):
    groups = {"one": {"pooled": POOLED, "frames": FRAMES}, "two": {"tokens": TOKENS}}
    folder = tmp_path_factory.mktemp("stores") / "films"
    path = make_store(
        folder, MOVIES, groups, failed={"c1": "the file is empty (0 bytes)"}, partial={"a2": "cut short"}
    )
    return open_store(path)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    levels = {"a1": "S", "a2": "HN", "b1": "EN", "c1": "S", "c2": "NS", "unlabelled": None, "elsewhere": "HN"}
    clips = [Clip(clip_id, MOVIES.get(clip_id, "e"), level=level) for clip_id, level in levels.items()]
    return Manifest(tuple(clips), tmp_path_factory.mktemp("manifest"))


def test_clips_of_the_task_come_in_the_manifests_order_with_their_own_features(store, manifest):
    data = load_dataset(store, manifest, ENHN_S, backbone="one")
    assert data.clip_ids.tolist() == ["a1", "a2", "b1"]
    assert data.movies.tolist() == ["a", "a", "b"]
    assert data.levels.tolist() == ["S", "HN", "EN"]
    assert data.y.tolist() == [1, 0, 0]
    np.testing.assert_array_equal(data.X, POOLED[[ROW[clip_id] for clip_id in data.clip_ids]])
    assert (data.X.dtype, data.X.flags.c_contiguous) == (np.float32, True)
    assert data.store == store.fingerprint


def test_a_clip_without_features_is_excluded_with_its_reason_and_nothing_stands_in_for_it(store, manifest):
    data = load_dataset(store, manifest, ENHN_S, backbone="one")
    assert data.excluded == (
        Exclusion("c1", "failed: the file is empty (0 bytes)"),
        Exclusion("elsewhere", "not in the store"),
    )


def test_every_clip_of_manifest_and_store_is_accounted_for(store, manifest):
    data = load_dataset(store, manifest, ENHN_S, backbone="one")
    assert data.n_manifest == len(data.y) + len(data.excluded) + data.n_other_levels + data.n_unlabelled == 7
    assert (data.n_other_levels, data.n_unlabelled, data.n_unknown, data.n_partial) == (1, 1, 1, 1)


def test_two_tasks_give_the_clips_of_either(store, manifest):
    assert load_dataset(store, manifest, EN_S, backbone="one").clip_ids.tolist() == ["a1", "b1"]
    assert load_dataset(store, manifest, EN_S, HN_S, backbone="one").clip_ids.tolist() == ["a1", "a2", "b1"]


@pytest.mark.parametrize("pool", ["max", "mean"])
@pytest.mark.parametrize(
    ("backbone", "features", "stored"), [("one", "frames", FRAMES), ("two", "tokens", TOKENS)]
)
def test_frames_and_tokens_are_pooled_over_time(store, manifest, backbone, features, stored, pool):
    data = load_dataset(store, manifest, ENHN_S, backbone=backbone, features=features, pool=pool)
    expected = getattr(stored.astype(np.float32), pool)(axis=1)[[ROW[clip_id] for clip_id in data.clip_ids]]
    np.testing.assert_array_equal(data.X, expected)
    assert (data.features, data.pool) == (features, pool)


def test_the_paper_pools_as_pytorchs_adaptive_max_pool_to_length_one():
    torch = pytest.importorskip("torch")
    pooled = torch.nn.AdaptiveMaxPool1d(1)(torch.from_numpy(TOKENS).permute(0, 2, 1))[:, :, 0]
    np.testing.assert_array_equal(TOKENS.max(axis=1), pooled.numpy())


def test_by_default_the_smallest_stored_array_is_read(store, manifest):
    assert load_dataset(store, manifest, EN_S, backbone="one").features == "pooled"
    assert load_dataset(store, manifest, EN_S, backbone="two").features == "tokens"


def test_a_feature_that_is_not_finite_names_its_clip(store, manifest, monkeypatch):
    """Sealing refuses it; other software may have written the store."""
    spoilt = store["one"].pooled()
    spoilt[store["one"].clip_ids.index("a2"), 1] = np.inf
    monkeypatch.setattr(Group, "pooled", lambda _: spoilt)
    with pytest.raises(
        DatasetError, match=r"backbone one, pooled of clip a2: a feature is not finite \(1 such"
    ):
        load_dataset(store, manifest, ENHN_S, backbone="one")


def test_several_backbones_must_be_told_apart(store, manifest):
    with pytest.raises(DatasetError, match=r"store films.* has several backbones \(one, two\): name one"):
        load_dataset(store, manifest, EN_S)
    with pytest.raises(DatasetError, match=r"has no backbone 'three': it has one, two"):
        load_dataset(store, manifest, EN_S, backbone="three")


def test_an_array_that_is_not_stored_is_refused(store, manifest):
    with pytest.raises(
        DatasetError, match=r"backbone two of store films.* has no pooled features: it has tokens"
    ):
        load_dataset(store, manifest, EN_S, backbone="two", features="pooled")


def test_a_store_of_other_clips_is_refused(store, tmp_path):
    others = Manifest((Clip("x", "x", level="S"), Clip("y", "y", level="EN")), tmp_path)
    with pytest.raises(
        DatasetError, match=r"none of the manifest's 2 clips .*\(the first: x, not in the store\)"
    ):
        load_dataset(store, others, EN_S, backbone="one")


def test_a_manifest_without_levels_is_refused(store, tmp_path):
    with pytest.raises(DatasetError, match="no clip of level EN, S among its 1: are its levels filled in"):
        load_dataset(store, Manifest((Clip("a1", "a"),), tmp_path), EN_S, backbone="one")


def test_tasks_with_different_positives_are_refused(store, manifest):
    other = Task("en_hn", ("EN",), ("HN",))
    with pytest.raises(DatasetError, match="tasks en_s and en_hn have different positive levels"):
        load_dataset(store, manifest, EN_S, other, backbone="one")
