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


def test_planted_differences_of_values_are_measured(tmp_path):
    pooled, frames = values()
    pooled[5] = [3, 0, 0, 0]
    there = pooled.copy()
    there[5] = [3, 4, 0, 0]  # the cosine of the two is 3/5
    frames[66, 1] *= np.float16(2)  # as long again, the same direction
    difference = diff(store(tmp_path, "a", pooled), store(tmp_path, "b", there, frames))
    by_name = {array.array: array for array in difference.arrays}
    most = np.abs(frames[66, 1].astype(float)).max() / 2
    for name, changed in (
        ("toy/pooled", (1, 4, "c005", pytest.approx(0.6))),
        ("toy/frames", (1, most, "c066", pytest.approx(1, abs=1e-12))),
        ("toy/time_s", (0, 0, "", None)),
    ):
        assert by_name[name] == ArrayDiff(name, "", N, changed[0], 0, *changed[1:])
    assert not difference.equal
    apart = f"{most:.6g}"
    assert describe_differences(difference, "a", "b") == [
        "values of toy/pooled: 1 of 70 clips differ, by at most 4 (c005), smallest cosine 0.600000000",
        f"values of toy/frames: 1 of 70 clips differ, by at most {apart} (c066), smallest cosine 1.000000000",
    ]


def test_only_clips_with_features_in_both_are_compared_by_id_not_by_row(tmp_path):
    pooled, frames = values()
    mine = store(tmp_path, "a", pooled[1:], frames[1:], CLIPS[1:], failed={"c004": "no such file"})
    theirs = store(tmp_path, "b", pooled[:-1], frames[:-1], CLIPS[:-1], failed={"c007": "empty"})
    difference = diff(mine, theirs)
    assert difference.only_first == ("c069",)
    assert difference.only_second == ("c000",)
    assert difference.statuses == {("failed", "ok"): 1, ("ok", "failed"): 1}
    assert difference.clips["status"] == ("c004", "c007")
    assert all(array.clips == N - 4 and not array.changed for array in difference.arrays)
    words = describe_differences(difference, "a", "b", most=1)
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


def test_clips_whose_number_of_frames_differs_are_counted_and_not_compared(tmp_path):
    mine = {clip: np.ones((size, D), np.float32) for clip, size in zip("abc", (2, 5, 3), strict=True)}
    theirs = mine | {"b": np.ones((4, D), np.float32), "c": 2 * mine["c"]}
    clips = dict.fromkeys("abc", "m")
    stores = [
        open_store(seal_frames(tmp_path / name, clips, frames))
        for name, frames in {"x": mine, "y": theirs, "z": mine}.items()
    ]
    assert diff(stores[0], stores[2]).equal
    difference = diff(stores[0], stores[1])
    assert difference.arrays[0] == ArrayDiff("toy/frames", "", 3, 2, 1, 1.0, "c", pytest.approx(1))
    assert describe_differences(difference, "x", "y")[0] == (
        "values of toy/frames: 2 of 3 clips differ, 1 of them in their number of frames, by at most 1 (c), "
        "smallest cosine 1.000000000"
    )


def test_the_cosine_has_no_accidents():
    zero = np.zeros(2, np.float16)
    ones = np.ones(2, np.float16)
    big = np.full(2, 60000, np.float16)
    assert min_cosine(zero, zero) == 1
    assert min_cosine(zero, ones) == 0
    assert min_cosine(ones, big) == pytest.approx(1)  # float16 would have overflowed
    assert min_cosine(ones, -ones) == pytest.approx(-1)
    assert min_cosine(np.stack([ones, ones]), np.stack([ones, zero])) == 0
