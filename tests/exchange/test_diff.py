"""Two labs extracted the same films: what differs is found, measured and told in words."""

import json

import numpy as np
import pytest

from obygaze_features.exchange.diff import ArrayDiff, describe_differences, diff, min_cosine
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays, seal_frames

N = 70
D = 4
CLIPS = [f"c{i:03d}" for i in range(N)]


def values():
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, D)).astype(np.float32), rng.standard_normal((N, 2, D)).astype(np.float16)


def store(tmp_path, name, pooled=None, frames=None, clips=CLIPS, groups=("toy",), **settings):
    good = values()
    arrays = {
        "pooled": good[0] if pooled is None else pooled,
        "frames": good[1] if frames is None else frames,
    }
    path = seal_arrays(tmp_path / name, dict.fromkeys(clips, "m"), dict.fromkeys(groups, arrays), **settings)
    return open_store(path)


def test_a_store_does_not_differ_from_itself_sealed_again(tmp_path):
    difference = diff(store(tmp_path, "a"), store(tmp_path, "b"))
    assert difference.equal
    assert describe_differences(difference, "a", "b") == []
    assert [array.clips for array in difference.arrays] == [N] * 4
    assert difference.arrays[0].min_cosine == 1


@pytest.fixture
def two_changed_clips(tmp_path):
    """The difference of two stores: clip c005 has another vector, clip c066 a frame twice as long."""
    pooled, frames = values()
    pooled[5] = [3, 0, 0, 0]
    first = store(tmp_path, "a", pooled.copy())
    pooled[5] = [3, 4, 0, 0]  # the cosine of the two is 3/5
    frames[66, 1] *= np.float16(2)
    return diff(first, store(tmp_path, "b", pooled, frames))


def test_the_difference_of_a_changed_vector_is_measured(two_changed_clips):
    by_name = {array.array: array for array in two_changed_clips.arrays}
    assert by_name["toy/pooled"] == ArrayDiff(
        "toy/pooled",
        "",
        clips=N,
        changed=1,
        resized=0,
        max_abs=4,
        max_abs_clip="c005",
        min_cosine=pytest.approx(0.6),
    )
    assert not two_changed_clips.equal


def test_the_difference_of_a_frame_of_another_length_is_measured(two_changed_clips):
    _, frames = values()
    by_name = {array.array: array for array in two_changed_clips.arrays}
    assert by_name["toy/frames"] == ArrayDiff(
        "toy/frames",
        "",
        clips=N,
        changed=1,
        resized=0,
        max_abs=np.abs(frames[66, 1].astype(float)).max(),
        max_abs_clip="c066",
        min_cosine=pytest.approx(1, abs=1e-12),
    )


def test_an_array_without_changes_has_no_difference(two_changed_clips):
    by_name = {array.array: array for array in two_changed_clips.arrays}
    assert by_name["toy/time_s"] == ArrayDiff("toy/time_s", "", N, 0, 0, 0, "", None)


def test_differences_of_values_are_told_with_the_clip_that_differs_most(two_changed_clips):
    _, frames = values()
    longest = f"{np.abs(frames[66, 1].astype(float)).max():.6g}"
    assert describe_differences(two_changed_clips, "a", "b") == [
        "values of toy/pooled: 1 of 70 clips differ, by at most 4 (c005), smallest cosine 0.600000000",
        (
            f"values of toy/frames: 1 of 70 clips differ, by at most {longest} (c066), "
            "smallest cosine 1.000000000"
        ),
    ]


@pytest.fixture
def unlike_clips(tmp_path):
    """The difference of two stores: c000 is in b alone, c069 in a alone; c004 failed in a, c007 in b."""
    pooled, frames = values()
    first = store(tmp_path, "a", pooled[1:], frames[1:], CLIPS[1:], failed={"c004": "no such file"})
    second = store(tmp_path, "b", pooled[:-1], frames[:-1], CLIPS[:-1], failed={"c007": "empty"})
    return diff(first, second)


def test_clips_of_one_store_alone_and_unlike_statuses_are_named(unlike_clips):
    assert unlike_clips.only_first == ("c069",)
    assert unlike_clips.only_second == ("c000",)
    assert unlike_clips.statuses == {("failed", "ok"): 1, ("ok", "failed"): 1}
    assert unlike_clips.clips["status"] == ("c004", "c007")


def test_clips_with_features_in_both_stores_are_compared_by_id_and_not_by_row(unlike_clips):
    assert all(array.clips == N - 4 and not array.changed for array in unlike_clips.arrays)


def test_unlike_clips_are_told_in_words(unlike_clips):
    words = describe_differences(unlike_clips, "a", "b", most=1)
    assert "clips: 1 only in a: c069" in words
    assert "clips: 1 failed in a, ok in b" in words
    assert "clips: status differs for 2: c004 and 1 more" in words


def test_provenance_that_forbids_mixing_is_marked(tmp_path):
    device = {"dtype": "float32", "autocast": None, "attention": None, "tf32": False, "device": "another"}
    difference = diff(store(tmp_path, "a"), store(tmp_path, "b", compute=device, contact="lab b"))
    assert describe_differences(difference, "a", "b") == [
        'provenance of toy: compute.device is "cpu" in a, "another" in b (so the features must not be mixed)',
        'provenance of toy: contact is "" in a, "lab b" in b',
    ]
    record = json.loads(json.dumps(difference.record(), allow_nan=False))
    assert record["provenance"]["toy"] == [
        {"field": "compute.device", "numerics": True},
        {"field": "contact", "numerics": False},
    ]
    assert record["equal"] is False


def test_backbones_and_shapes_that_only_one_store_has_are_named(tmp_path):
    pooled, frames = values()
    mine = store(tmp_path, "a", groups=("toy", "mine"))
    theirs = store(tmp_path, "b", pooled[:, :3].copy(), frames[..., :3].astype(np.float32))
    words = describe_differences(diff(mine, theirs), "a", "b")
    assert "features of mine: only in a" in words
    assert "values of toy/pooled: float32 [4] a clip against float32 [3] a clip" in words
    assert "values of toy/frames: float16 [2, 4] a clip against float32 [2, 3] a clip" in words


def test_diff_names_ragged_frames_of_unlike_width(tmp_path):
    mine, theirs = (
        seal_frames(tmp_path / name, {"a": "m"}, {"a": np.ones((3, width), np.float32)})
        for name, width in (("a", 4), ("b", 5))
    )
    words = describe_differences(diff(open_store(mine), open_store(theirs)), "a", "b")
    assert (
        "values of toy/frames: float32 [any number, 4] a clip against float32 [any number, 5] a clip" in words
    )


@pytest.fixture
def ragged_store(tmp_path):
    """Seal a store of the frames of some clips."""

    def seal(name, frames):
        return open_store(seal_frames(tmp_path / name, dict.fromkeys(frames, "m"), frames))

    return seal


def test_clips_whose_number_of_frames_differs_are_counted_and_not_compared(ragged_store):
    frames = {clip: np.ones((size, D), np.float32) for clip, size in (("a", 2), ("b", 5), ("c", 3))}
    changed = frames | {"b": np.ones((4, D), np.float32), "c": 2 * frames["c"]}
    difference = diff(ragged_store("x", frames), ragged_store("y", changed))
    assert difference.arrays[0] == ArrayDiff(
        "toy/frames",
        "",
        clips=3,
        changed=2,
        resized=1,
        max_abs=1.0,
        max_abs_clip="c",
        min_cosine=pytest.approx(1),
    )
    assert describe_differences(difference, "x", "y")[0] == (
        "values of toy/frames: 2 of 3 clips differ, 1 of them in their number of frames, by at most 1 (c), "
        "smallest cosine 1.000000000"
    )


def test_two_ragged_stores_of_the_same_frames_are_equal(ragged_store):
    frames = {clip: np.ones((size, D), np.float32) for clip, size in (("a", 2), ("b", 5), ("c", 3))}
    assert diff(ragged_store("x", frames), ragged_store("z", frames)).equal


ZEROS = np.zeros(2, np.float16)
ONES = np.ones(2, np.float16)


@pytest.mark.parametrize(
    ("first", "second", "cosine"),
    [
        (ZEROS, ZEROS, 1),
        (ZEROS, ONES, 0),
        (ONES, np.full(2, 60000, np.float16), pytest.approx(1)),
        (ONES, -ONES, pytest.approx(-1)),
        (np.stack([ONES, ONES]), np.stack([ONES, ZEROS]), 0),
    ],
    ids=["of zeros", "of zeros and ones", "beyond float16", "of opposites", "the smallest of two"],
)
def test_the_smallest_cosine_of_two_arrays(first, second, cosine):
    assert min_cosine(first, second) == cosine
