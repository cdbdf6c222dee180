"""A dataset is exactly the annotated clips that have features, and says what it left out."""

import re
from dataclasses import replace

import numpy as np
import pytest

from obygaze_features.manifest import Clip, Codebook, Level, Manifest, Scale
from obygaze_features.store import Group, open_store
from obygaze_models.commands.evaluate_commands import differing_clips
from obygaze_models.dataset import Exclusion, load_dataset, load_datasets
from obygaze_models.errors import DatasetError
from obygaze_models.protocol import find_target

MOVIE_OF_STORED_CLIP = {"b1": "b", "a1": "a", "a2": "a", "c1": "c", "c2": "c", "stranger": "d"}
FRAMES = np.random.default_rng(0).normal(size=(6, 2, 3)).astype(np.float32)
TOKENS = np.random.default_rng(1).normal(size=(6, 5, 4)).astype(np.float16)
POOLED = FRAMES.mean(axis=1)
ROW_IN_ARRAYS = {clip_id: row for row, clip_id in enumerate(MOVIE_OF_STORED_CLIP)}
"""Clip -> its row in `POOLED`, `FRAMES` and `TOKENS`, which the stores are made of."""


@pytest.fixture(scope="module")
def store_of_six_clips(make_store, tmp_path_factory):
    """Six clips: b1, a1, a2 (partial), c1 (failed), c2, and `stranger`, which is not in the manifest.

    The group `one` has pooled vectors and frames, `two` has tokens alone.
    """
    groups = {"one": {"pooled": POOLED, "frames": FRAMES}, "two": {"tokens": TOKENS}}
    folder = tmp_path_factory.mktemp("stores") / "films"
    path = make_store(
        folder,
        MOVIE_OF_STORED_CLIP,
        groups,
        failed={"c1": "the file is empty (0 bytes)"},
        partial={"a2": "cut short"},
    )
    return open_store(path)


@pytest.fixture(scope="module")
def manifest_of_seven_clips(tmp_path_factory):
    """Seven clips with their levels: a1, a2, b1, c1, c2, and two that are not in the store.

    NS, the level of c2, is in no task, and the clip `unlabelled` has no level.
    """
    levels = {"a1": "S", "a2": "HN", "b1": "EN", "c1": "S", "c2": "NS", "unlabelled": None, "elsewhere": "HN"}
    clips = []
    for clip_id, level in levels.items():
        movie = MOVIE_OF_STORED_CLIP.get(clip_id, "e")
        clips.append(Clip(clip_id, movie, level=level))
    return Manifest(tuple(clips), tmp_path_factory.mktemp("manifest"))


@pytest.fixture(scope="module")
def dataset_of_three_clips(store_of_six_clips, manifest_of_seven_clips):
    """The clips of the manifest that have a level of a task, and features of the group `one`: a1, a2, b1."""
    return load_dataset(store_of_six_clips, manifest_of_seven_clips, backbone="one")


def test_annotated_clips_come_in_the_order_of_the_manifest_with_their_features(
    store_of_six_clips, dataset_of_three_clips
):
    """The manifest begins with a1, a2 and b1; the arrays that were stored begin with b1.

    Of the manifest's other clips c1 has failed, c2 and `unlabelled` have no level of a task, and `elsewhere`
    is not in the store.
    """
    assert dataset_of_three_clips.clip_ids.tolist() == ["a1", "a2", "b1"]
    assert dataset_of_three_clips.movies.tolist() == ["a", "a", "b"]
    assert dataset_of_three_clips.levels.tolist() == ["S", "HN", "EN"]
    rows = [ROW_IN_ARRAYS["a1"], ROW_IN_ARRAYS["a2"], ROW_IN_ARRAYS["b1"]]
    np.testing.assert_array_equal(dataset_of_three_clips.X, POOLED[rows])
    assert dataset_of_three_clips.X.dtype == np.float32
    assert dataset_of_three_clips.X.flags.c_contiguous
    assert dataset_of_three_clips.store == store_of_six_clips.fingerprint


def test_a_task_has_the_labels_1_and_0_and_minus_1_for_clips_that_are_not_in_it(dataset_of_three_clips):
    """The task HN vs S: of the clips a1, a2 and b1 the first has the level S, the second HN, the third EN."""
    labels = find_target("hn_s", dataset_of_three_clips.codebook).of(dataset_of_three_clips.labels)

    assert labels.tolist() == [1, 0, -1]


def test_a_clip_without_features_is_excluded_with_its_reason(dataset_of_three_clips):
    """Of the manifest's clips with a level of a task, c1 has failed, and `elsewhere` is not in the store.

    Their levels are S and HN; the others have features.
    """
    assert dataset_of_three_clips.excluded == (
        Exclusion("c1", "S", "failed: the file is empty (0 bytes)"),
        Exclusion("elsewhere", "HN", "not in the store"),
    )


def test_every_clip_of_manifest_and_store_is_accounted_for(dataset_of_three_clips):
    """The manifest has seven clips. One has no level, and one has NS, a level that is in no task.

    Of the other five, three have features, of which one is partial; two have none. One clip is in the store
    alone.
    """
    assert dataset_of_three_clips.counts == {
        "manifest": 7,
        "unlabelled": 1,
        "in_no_task": 1,
        "with_features": 3,
        "partial": 1,
        "in_store_only": 1,
    }
    assert len(dataset_of_three_clips) == 3
    assert len(dataset_of_three_clips.excluded) == 2


def test_clips_whose_film_or_times_differ_between_manifest_and_store_are_listed(
    make_store, manifest_of_seven_clips, tmp_path
):
    """In the store all six clips are from 10 to 20 s, and a2 is of the film a.

    In the manifest the clips a1, a2, b1 and c1 are changed. Less than a second, as of a1, is no difference.
    """
    spans = dict.fromkeys(MOVIE_OF_STORED_CLIP, (10.0, 20.0))
    groups = {"one": {"pooled": POOLED}}
    store = open_store(make_store(tmp_path / "films", MOVIE_OF_STORED_CLIP, groups, spans=spans))
    a1, a2, b1, c1 = manifest_of_seven_clips.clips[:4]
    changed_manifest = manifest_of_seven_clips.with_clips(
        [
            replace(a1, start_s=10.9, end_s=20.4),
            replace(a2, movie="new"),
            replace(b1, start_s=10.0, end_s=22.0),
            replace(c1, start_s=0.0, end_s=10.0),
        ]
    )
    data = load_dataset(store, changed_manifest)

    differing = differing_clips([store], changed_manifest, data.row_of)

    assert differing.films == [("a2", "a", "new")]
    assert differing.times == [
        ("b1", (10.0, 20.0), (10.0, 22.0)),
        ("c1", (10.0, 20.0), (0.0, 10.0)),
    ]


def test_a_film_whose_name_the_manifest_writes_in_capitals_is_no_other_film(
    tmp_path, make_store, manifest_of_seven_clips
):
    """The store has clips of the films a, b and c; in the manifest the same clips are of A, B and C.

    `evaluate` warns of clips whose film differs between store and manifest, since they may be other clips. A
    name that is only spelled otherwise is no difference.
    """
    store = open_store(make_store(tmp_path / "films", MOVIE_OF_STORED_CLIP, {"one": {"pooled": POOLED}}))
    clips_of_films_in_capitals = [replace(clip, movie=clip.movie.upper()) for clip in manifest_of_seven_clips]
    respelled = manifest_of_seven_clips.with_clips(clips_of_films_in_capitals)
    data = load_dataset(store, respelled)

    differing = differing_clips([store], respelled, data.row_of)

    assert differing.films == []


def test_rows_of_a_dataset_are_found_by_clip(dataset_of_three_clips):
    """The dataset has the clips a1, a2 and b1; one that it does not have is left out."""
    rows = dataset_of_three_clips.rows(["b1", "elsewhere", "a1"])

    assert rows.tolist() == [2, 0]


def test_rows_that_are_taken_make_a_dataset_in_their_order(dataset_of_three_clips):
    """The dataset has the clips a1, a2 and b1, in the rows 0, 1 and 2."""
    taken = dataset_of_three_clips.take(np.array([2, 0]))

    assert taken.clip_ids.tolist() == ["b1", "a1"]
    assert taken.rows(["a1"]).tolist() == [1]
    np.testing.assert_array_equal(taken.X, dataset_of_three_clips.X[[2, 0]])
    assert taken.present.index.tolist() == [0, 1]


def test_models_that_read_frames_get_the_rows_of_the_same_clips(dataset_of_three_clips):
    """The dataset has the clips a1, a2 and b1. The group has vectors and frames, no tokens."""
    frames = FRAMES[[ROW_IN_ARRAYS["a1"], ROW_IN_ARRAYS["a2"], ROW_IN_ARRAYS["b1"]]]

    assert dataset_of_three_clips.read("pooled") is dataset_of_three_clips.X
    np.testing.assert_array_equal(dataset_of_three_clips.read("frames"), frames)
    np.testing.assert_array_equal(dataset_of_three_clips.take(np.array([2])).read("frames"), frames[2:])
    with pytest.raises(DatasetError):
        dataset_of_three_clips.read("tokens")


@pytest.fixture
def store_of_two_clips(make_store, tmp_path):
    """A store of the clips b1 and a1 alone, of the backbone `one`."""
    groups = {"one": {"pooled": POOLED[:2]}}
    return open_store(make_store(tmp_path / "more", {"b1": "b", "a1": "a"}, groups))


def test_several_backbones_are_loaded_for_the_clips_that_all_have(
    store_of_six_clips, store_of_two_clips, manifest_of_seven_clips
):
    """The first store has the backbones `one` and `two`, the second `one`, of b1 and a1 alone."""
    loaded = load_datasets([store_of_six_clips, store_of_two_clips], manifest_of_seven_clips)

    labels = [data.label for data in loaded]
    assert [label.split("-")[-1] for label in labels] == ["one", "two", "one"]
    assert len(set(labels)) == 3
    for data in loaded:
        assert data.clip_ids.tolist() == ["a1", "b1"]
        assert [exclusion.clip_id for exclusion in data.excluded] == ["a2", "c1", "elsewhere"]


def test_a_store_that_is_given_twice_is_named(
    store_of_six_clips, store_of_two_clips, manifest_of_seven_clips
):
    """Its backbones would be compared with themselves."""
    with pytest.raises(DatasetError, match=rf"store {re.escape(store_of_six_clips.name)} is given twice"):
        load_datasets([store_of_six_clips, store_of_six_clips, store_of_two_clips], manifest_of_seven_clips)


@pytest.fixture
def store_with_a_silent_clip(make_store, tmp_path):
    """A store of six clips and two groups, of which `two` cannot have the clip a1: its file has no sound."""
    groups = {"one": {"pooled": POOLED}, "two": {"tokens": TOKENS}}
    absent = {"a1": {"two": "no sound track"}}
    return open_store(make_store(tmp_path / "films", MOVIE_OF_STORED_CLIP, groups, absent=absent))


def test_a_clip_absent_in_a_group_is_excluded_from_its_datasets_alone(
    store_with_a_silent_clip, manifest_of_seven_clips
):
    """The clip a1 has features in the group `one`, and none in `two`, as its file has no sound."""
    one = load_dataset(store_with_a_silent_clip, manifest_of_seven_clips, backbone="one")
    two = load_dataset(store_with_a_silent_clip, manifest_of_seven_clips, backbone="two")

    assert one.clip_ids.tolist() == ["a1", "a2", "b1", "c1"]
    assert two.clip_ids.tolist() == ["a2", "b1", "c1"]
    assert Exclusion("a1", "S", "absent: no sound track") in two.excluded
    np.testing.assert_array_equal(two.X, TOKENS[[ROW_IN_ARRAYS[clip] for clip in two.clip_ids]].max(axis=1))


def test_a_clip_absent_in_a_group_is_counted_as_one_without_features(
    store_with_a_silent_clip, manifest_of_seven_clips
):
    """The clip a1 has features in the group `one`, and none in `two`, as its file has no sound.

    Every clip of the manifest is in the dataset, is excluded, or has no level of a task.
    """
    one = load_dataset(store_with_a_silent_clip, manifest_of_seven_clips, backbone="one")
    two = load_dataset(store_with_a_silent_clip, manifest_of_seven_clips, backbone="two")

    assert two.counts["with_features"] == one.counts["with_features"] - 1
    n_without_label = two.counts["unlabelled"] + two.counts["in_no_task"]
    assert two.counts["manifest"] == len(two) + len(two.excluded) + n_without_label


def test_datasets_that_are_compared_have_the_clips_of_all_groups(
    store_with_a_silent_clip, manifest_of_seven_clips
):
    """The clip a1 has features in the group `one` alone, so that it is in no dataset."""
    for data in load_datasets([store_with_a_silent_clip], manifest_of_seven_clips):
        assert data.clip_ids.tolist() == ["a2", "b1", "c1"]
        assert [exclusion.clip_id for exclusion in data.excluded] == ["a1", "elsewhere"]


@pytest.mark.parametrize("pool", ["max", "mean"])
@pytest.mark.parametrize(
    ("backbone", "features", "stored"), [("one", "frames", FRAMES), ("two", "tokens", TOKENS)]
)
def test_frames_and_tokens_are_pooled_over_time(
    store_of_six_clips, manifest_of_seven_clips, backbone, features, stored, pool
):
    """A store has frames of the backbone "one" and tokens of "two": several vectors of each clip in time.

    A data set has one vector of each clip: the maximum, or the mean, of these, number by number.
    """
    data = load_dataset(
        store_of_six_clips, manifest_of_seven_clips, backbone=backbone, features=features, pool=pool
    )

    pool_by_numpy = {"max": np.max, "mean": np.mean}[pool]
    for clip_id, vector in zip(data.clip_ids, data.X, strict=True):
        vectors_in_time = stored[ROW_IN_ARRAYS[clip_id]].astype(np.float32)
        np.testing.assert_array_equal(vector, pool_by_numpy(vectors_in_time, axis=0))
    assert data.features == features
    assert data.pool == pool


def test_by_default_the_smallest_stored_array_is_read(store_of_six_clips, manifest_of_seven_clips):
    """The group `one` has pooled vectors and frames, `two` tokens alone."""
    assert load_dataset(store_of_six_clips, manifest_of_seven_clips, backbone="one").features == "pooled"
    assert load_dataset(store_of_six_clips, manifest_of_seven_clips, backbone="two").features == "tokens"


def test_a_store_with_an_infinite_feature_is_refused_and_the_clip_is_named(
    store_of_six_clips, manifest_of_seven_clips, monkeypatch
):
    """Our own sealing refuses infinity, but other software may have written a store that has it.

    Such a store is pretended: when features are read, a feature of the clip a2 is infinite.
    """
    features_with_infinity = store_of_six_clips["one"].pooled()
    row_of_a2 = store_of_six_clips["one"].clip_ids.index("a2")
    features_with_infinity[row_of_a2, 1] = np.inf

    def put_in_infinity(_group, _array, start, values):
        values[:] = features_with_infinity[start : start + len(values)]

    # Reading calls this check with the values of each block of rows, and returns them afterwards.
    monkeypatch.setattr(Group, "_refuse_lost_rows", put_in_infinity)
    with pytest.raises(DatasetError, match="a2"):
        load_dataset(store_of_six_clips, manifest_of_seven_clips, backbone="one")


@pytest.mark.parametrize(
    ("options", "named"),
    [({}, "one"), ({"backbone": "two", "features": "pooled"}, "pooled"), ({"backbone": "three"}, "'three'")],
    ids=["one of two backbones is not chosen", "no such array", "no such backbone"],
)
def test_features_that_are_not_in_the_store_or_not_chosen_are_refused_by_name(
    store_of_six_clips, manifest_of_seven_clips, options, named
):
    """The store has the backbones `one`, with pooled vectors and frames, and `two`, with tokens alone."""
    with pytest.raises(DatasetError, match=named):
        load_dataset(store_of_six_clips, manifest_of_seven_clips, **options)


@pytest.mark.parametrize(
    "clips",
    [(Clip("x", "x", level="S"), Clip("y", "y", level="EN")), (Clip("a1", "a"),)],
    ids=["no clip is in the store", "no clip has a level"],
)
def test_a_manifest_without_an_annotated_clip_of_the_store_is_refused(store_of_six_clips, tmp_path, clips):
    """The store has the clips a1, a2, b1, c1, c2 and `stranger`; a dataset needs one that has a level."""
    with pytest.raises(DatasetError):
        load_dataset(store_of_six_clips, Manifest(clips, tmp_path), backbone="one")


def test_clips_with_a_value_on_a_scale_are_in_the_dataset_even_if_it_is_of_the_lowest_rank(
    store_of_six_clips, tmp_path
):
    """The codebook has a scale, joy, whose values below 0 are low (rank 0) and the others high (rank 1).

    No clip has a level. a1 is low and a2 is high, so both are annotated. b1 has no value, and the clip
    `elsewhere` is not in the store. Without the clips of the lowest rank, a model would learn the scale from
    the others alone.
    """
    joy = Scale("joy", (Level("low"), Level("high")), cuts=(0.0,))
    codebook = Codebook("moods", "1", (Level("none"), Level("some")), scales=(joy,))
    clips = (
        Clip("a1", "a", extras={"joy": "-1"}),
        Clip("a2", "a", extras={"joy": "0"}),
        Clip("b1", "b", extras={"joy": ""}),
        Clip("elsewhere", "c", extras={"joy": "1"}),
    )

    data = load_dataset(store_of_six_clips, Manifest(clips, tmp_path, codebook), backbone="one")

    assert data.clip_ids.tolist() == ["a1", "a2"]
