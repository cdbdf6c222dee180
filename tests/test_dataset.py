"""A dataset is exactly the annotated clips that have features, and says what it left out."""

import re
from dataclasses import replace

import numpy as np
import pytest

from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import Group, open_store
from obygaze_models.commands.evaluate_commands import differing_clips
from obygaze_models.dataset import Exclusion, load_dataset, load_datasets
from obygaze_models.errors import DatasetError
from obygaze_models.protocol import find_target

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


def test_annotated_clips_come_in_the_order_of_the_manifest_with_their_features(store, manifest):
    data = load_dataset(store, manifest, backbone="one")
    assert data.clip_ids.tolist() == ["a1", "a2", "b1"]
    assert data.movies.tolist() == ["a", "a", "b"]
    assert data.levels.tolist() == ["S", "HN", "EN"]
    assert find_target("hn_s", data.codebook).of(data.labels).tolist() == [1, 0, -1]
    np.testing.assert_array_equal(data.X, POOLED[[ROW[clip_id] for clip_id in data.clip_ids]])
    assert (data.X.dtype, data.X.flags.c_contiguous) == (np.float32, True)
    assert data.store == store.fingerprint


def test_a_clip_without_features_is_excluded_with_its_reason(store, manifest):
    data = load_dataset(store, manifest, backbone="one")
    assert data.excluded == (
        Exclusion("c1", "S", "failed: the file is empty (0 bytes)"),
        Exclusion("elsewhere", "HN", "not in the store"),
    )


def test_every_clip_of_manifest_and_store_is_accounted_for(store, manifest):
    data = load_dataset(store, manifest, backbone="one")
    counts = data.counts
    without = counts["unlabelled"] + counts["in_no_task"]
    assert counts["manifest"] == len(data) + len(data.excluded) + without == 7
    # NS counts as no label; "stranger" is in the store alone.
    assert counts == {
        "manifest": 7,
        "unlabelled": 1,
        "in_no_task": 1,
        "with_features": 3,
        "partial": 1,
        "in_store_only": 1,
    }


def test_clips_whose_film_or_times_differ_between_manifest_and_store_are_listed(
    make_store, manifest, tmp_path
):
    spans = dict.fromkeys(MOVIES, (10.0, 20.0))
    store = open_store(make_store(tmp_path / "films", MOVIES, {"one": {"pooled": POOLED}}, spans=spans))
    a1, a2, b1, c1 = manifest.clips[:4]
    manifest = manifest.with_clips(
        [
            replace(a1, start_s=10.9, end_s=20.4),  # within a second: the same
            replace(a2, movie="new"),
            replace(b1, start_s=10.0, end_s=22.0, movie="b"),
            replace(c1, start_s=0.0, end_s=10.0, movie="c"),
        ]
    )
    differing = differing_clips([store], manifest, load_dataset(store, manifest))
    assert differing.films == [("a2", "a", "new")]
    assert differing.times == [
        ("b1", (10.0, 20.0), (10.0, 22.0)),
        ("c1", (10.0, 20.0), (0.0, 10.0)),
    ]


def test_rows_are_found_by_clip_and_kept_with_their_labels(store, manifest):
    data = load_dataset(store, manifest, backbone="one")
    rows = data.rows(["b1", "elsewhere", "a1"])
    assert rows.tolist() == [2, 0]
    kept = data.take(rows)
    assert kept.clip_ids.tolist() == ["b1", "a1"]
    assert kept.rows(["a1"]).tolist() == [1]
    np.testing.assert_array_equal(kept.X, data.X[rows])
    assert kept.present.index.tolist() == [0, 1]


def test_models_that_read_frames_or_tokens_get_the_rows_of_the_same_clips(store, manifest):
    data = load_dataset(store, manifest, backbone="one")
    rows = [ROW[clip_id] for clip_id in data.clip_ids]
    assert data.read("pooled") is data.X
    np.testing.assert_array_equal(data.read("frames"), FRAMES[rows])
    np.testing.assert_array_equal(data.take(np.array([2])).read("frames"), FRAMES[rows[2:]])
    with pytest.raises(DatasetError):
        data.read("tokens")


def test_several_backbones_are_loaded_for_the_clips_that_all_have(store, make_store, manifest, tmp_path):
    other = open_store(make_store(tmp_path / "more", {"b1": "b", "a1": "a"}, {"one": {"pooled": POOLED[:2]}}))
    loaded = load_datasets([store, other], manifest)
    assert [data.label.rpartition("-")[2] for data in loaded] == ["one", "two", "one"]
    assert len({data.label for data in loaded}) == 3
    for data in loaded:
        assert data.clip_ids.tolist() == ["a1", "b1"]
        assert [exclusion.clip_id for exclusion in data.excluded] == ["a2", "c1", "elsewhere"]


def test_a_store_that_is_given_twice_is_named(store, make_store, manifest, tmp_path):
    other = open_store(make_store(tmp_path / "more", {"b1": "b", "a1": "a"}, {"one": {"pooled": POOLED[:2]}}))
    with pytest.raises(DatasetError, match=rf"store {re.escape(store.name)} is given twice"):
        load_datasets([store, store, other], manifest)


def test_a_clip_absent_in_a_group_is_excluded_from_its_datasets_alone(make_store, manifest, tmp_path):
    groups = {"one": {"pooled": POOLED}, "two": {"tokens": TOKENS}}
    absent = {"a1": {"two": "no sound track"}}
    store = open_store(make_store(tmp_path / "films", MOVIES, groups, absent=absent))
    one = load_dataset(store, manifest, backbone="one")
    two = load_dataset(store, manifest, backbone="two")
    assert one.clip_ids.tolist() == ["a1", "a2", "b1", "c1"]
    assert two.clip_ids.tolist() == ["a2", "b1", "c1"]
    assert Exclusion("a1", "S", "absent: no sound track") in two.excluded
    without_label = two.counts["unlabelled"] + two.counts["in_no_task"]
    assert two.counts["manifest"] == len(two) + len(two.excluded) + without_label
    assert two.counts["with_features"] == one.counts["with_features"] - 1
    np.testing.assert_array_equal(two.X, TOKENS[[ROW[clip_id] for clip_id in two.clip_ids]].max(axis=1))


def test_datasets_that_are_compared_have_the_clips_of_all_groups(make_store, manifest, tmp_path):
    groups = {"one": {"pooled": POOLED}, "two": {"tokens": TOKENS}}
    absent = {"a1": {"two": "no sound track"}}
    store = open_store(make_store(tmp_path / "films", MOVIES, groups, absent=absent))
    for data in load_datasets([store], manifest):
        assert data.clip_ids.tolist() == ["a2", "b1", "c1"]
        assert [exclusion.clip_id for exclusion in data.excluded] == ["a1", "elsewhere"]


@pytest.mark.parametrize("pool", ["max", "mean"])
@pytest.mark.parametrize(
    ("backbone", "features", "stored"), [("one", "frames", FRAMES), ("two", "tokens", TOKENS)]
)
def test_frames_and_tokens_are_pooled_over_time(store, manifest, backbone, features, stored, pool):
    data = load_dataset(store, manifest, backbone=backbone, features=features, pool=pool)
    expected = getattr(stored.astype(np.float32), pool)(axis=1)[[ROW[clip_id] for clip_id in data.clip_ids]]
    np.testing.assert_array_equal(data.X, expected)
    assert (data.features, data.pool) == (features, pool)


def test_by_default_the_smallest_stored_array_is_read(store, manifest):
    assert load_dataset(store, manifest, backbone="one").features == "pooled"
    assert load_dataset(store, manifest, backbone="two").features == "tokens"


def test_a_feature_that_is_not_finite_names_its_clip(store, manifest, monkeypatch):
    """Sealing refuses it; other software may have written the store."""
    spoilt = store["one"].pooled()
    spoilt[store["one"].clip_ids.index("a2"), 1] = np.inf
    monkeypatch.setattr(
        Group, "_refuse_lost_rows", lambda _, __, start, values: spoilt[start : start + len(values)]
    )
    with pytest.raises(DatasetError, match="a2"):
        load_dataset(store, manifest, backbone="one")


@pytest.mark.parametrize(
    ("options", "named"),
    [({}, "one"), ({"backbone": "two", "features": "pooled"}, "pooled"), ({"backbone": "three"}, "'three'")],
    ids=["one of two backbones is not chosen", "no such array", "no such backbone"],
)
def test_features_that_are_not_in_the_store_or_not_chosen_are_refused_by_name(
    store, manifest, options, named
):
    with pytest.raises(DatasetError, match=named):
        load_dataset(store, manifest, **options)


@pytest.mark.parametrize(
    "clips",
    [(Clip("x", "x", level="S"), Clip("y", "y", level="EN")), (Clip("a1", "a"),)],
    ids=["no clip is in the store", "no clip has a level"],
)
def test_a_manifest_without_an_annotated_clip_of_the_store_is_refused(store, tmp_path, clips):
    with pytest.raises(DatasetError):
        load_dataset(store, Manifest(clips, tmp_path), backbone="one")
