"""Two labs extracted the same films: what differs is found, measured and told in words."""

import json

import numpy as np
import pytest

from obygaze_features.exchange.diff import ArrayDiff, describe_differences, diff, min_cosine
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays, seal_frames

N_CLIPS = 70
D = 4
CLIPS = [f"c{i:03d}" for i in range(N_CLIPS)]


def planted_arrays():
    """Draw the vectors and the frames of all clips, the same at every call."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((N_CLIPS, D)).astype(np.float32)
    frames = rng.standard_normal((N_CLIPS, 2, D)).astype(np.float16)
    return vectors, frames


def seal_store(tmp_path, name, pooled=None, frames=None, clips=CLIPS, groups=("toy",), **settings):
    """Seal the planted vectors and frames, or given ones, in each of the groups; open the store."""
    vectors_planted, frames_planted = planted_arrays()
    arrays = {
        "pooled": vectors_planted if pooled is None else pooled,
        "frames": frames_planted if frames is None else frames,
    }
    path = seal_arrays(tmp_path / name, dict.fromkeys(clips, "m"), dict.fromkeys(groups, arrays), **settings)
    return open_store(path)


def seal_ragged(folder, frames):
    """Seal a store of the frames of some clips."""
    return open_store(seal_frames(folder, dict.fromkeys(frames, "m"), frames))


def test_a_store_does_not_differ_from_itself_sealed_again(tmp_path):
    """The four arrays are vectors, frames, times and indices of frames."""
    difference = diff(seal_store(tmp_path, "a"), seal_store(tmp_path, "b"))
    assert difference.equal
    assert describe_differences(difference, "a", "b") == []
    assert [array.clips for array in difference.arrays] == [N_CLIPS] * 4
    assert difference.arrays[0].min_cosine == 1


def test_differences_of_values_are_measured_and_described_with_the_clip_that_differs_most(tmp_path):
    """Clip c005 has another vector, and the second frame of c066 is doubled.

    [3, 0, 0, 0] becomes [3, 4, 0, 0]: the largest change is 4, and the cosine 3/5. A doubled frame has the
    same direction, and changes by as much as its largest number is.
    """
    vectors, frames = planted_arrays()
    vectors[5] = [3, 0, 0, 0]
    first = seal_store(tmp_path, "a", vectors.copy())
    vectors[5] = [3, 4, 0, 0]
    largest = np.abs(frames[66, 1].astype(float)).max()
    frames[66, 1] *= np.float16(2)

    difference = diff(first, seal_store(tmp_path, "b", vectors, frames))

    assert not difference.equal
    by_name = {array.array: array for array in difference.arrays}
    changes = {"clips": N_CLIPS, "changed": 1, "resized": 0}
    assert by_name["toy/pooled"] == ArrayDiff(
        "toy/pooled", "", **changes, max_abs=4, max_abs_clip="c005", min_cosine=pytest.approx(0.6)
    )
    assert by_name["toy/frames"] == ArrayDiff(
        "toy/frames",
        "",
        **changes,
        max_abs=largest,
        max_abs_clip="c066",
        min_cosine=pytest.approx(1, abs=1e-12),
    )
    assert by_name["toy/time_s"] == ArrayDiff("toy/time_s", "", N_CLIPS, 0, 0, 0, "", None)

    of_pooled, of_frames = describe_differences(difference, "a", "b")
    assert of_pooled == (
        "values of toy/pooled: 1 of 70 clips differ, by at most 4 (c005), smallest cosine 0.600000000"
    )
    assert of_frames == (
        f"values of toy/frames: 1 of 70 clips differ, by at most {largest:.6g} (c066), "
        "smallest cosine 1.000000000"
    )


def test_clips_are_compared_by_id_and_those_of_one_store_alone_are_named(tmp_path):
    """Store a has c001 to c069, where c004 and c005 failed, and b has c000 to c068, where c007 failed."""
    vectors, frames = planted_arrays()
    absent = {"c004": "no such file", "c005": "no such file"}
    first = seal_store(tmp_path, "a", vectors[1:], frames[1:], CLIPS[1:], failed=absent)
    second = seal_store(tmp_path, "b", vectors[:-1], frames[:-1], CLIPS[:-1], failed={"c007": "empty"})

    difference = diff(first, second)

    assert difference.only_first == ("c069",)
    assert difference.only_second == ("c000",)
    assert difference.statuses == {("failed", "ok"): 2, ("ok", "failed"): 1}
    assert difference.clips["status"] == ("c004", "c005", "c007")

    n_not_in_both = 5  # c000, c069, c004, c005 and c007
    for array in difference.arrays:
        assert array.clips == N_CLIPS - n_not_in_both
        assert array.changed == 0

    sentences = describe_differences(difference, "a", "b", most=1)
    assert "clips: 1 only in a: c069" in sentences
    assert "clips: 2 failed in a, ok in b" in sentences
    assert "clips: status differs for 3: c004 and 2 more" in sentences


def test_differences_of_provenance_that_forbid_mixing_are_described_as_such(tmp_path):
    """Another device may give other numbers; another contact does not. The record must have no nan."""
    compute = {"dtype": "float32", "autocast": None, "attention": None, "tf32": False, "device": "another"}
    second = seal_store(tmp_path, "b", compute=compute, contact="lab b")

    difference = diff(seal_store(tmp_path, "a"), second)

    assert describe_differences(difference, "a", "b") == [
        'provenance of toy: compute.device is "cpu" in a, "another" in b (so the features must not be mixed)',
        'provenance of toy: contact is "" in a, "lab b" in b',
    ]
    record = json.loads(json.dumps(difference.record(), allow_nan=False))
    assert record["equal"] is False
    assert record["provenance"]["toy"] == [
        {"field": "compute.device", "numerics": True},
        {"field": "contact", "numerics": False},
    ]


def test_features_that_one_store_has_not_are_named(tmp_path):
    with_two_groups = seal_store(tmp_path, "a", groups=("toy", "mine"))
    sentences = describe_differences(diff(with_two_groups, seal_store(tmp_path, "b")), "a", "b")
    assert "features of mine: only in a" in sentences


def test_arrays_of_other_shapes_and_types_are_named(tmp_path):
    vectors, frames = planted_arrays()
    narrow = seal_store(tmp_path, "b", vectors[:, :3].copy(), frames[..., :3].astype(np.float32))
    sentences = describe_differences(diff(seal_store(tmp_path, "a"), narrow), "a", "b")
    assert "values of toy/pooled: float32 [4] a clip against float32 [3] a clip" in sentences
    assert "values of toy/frames: float16 [2, 4] a clip against float32 [2, 3] a clip" in sentences


def test_ragged_frames_of_unlike_width_are_named(tmp_path):
    of_four = seal_ragged(tmp_path / "a", {"a": np.ones((3, 4), np.float32)})
    of_five = seal_ragged(tmp_path / "b", {"a": np.ones((3, 5), np.float32)})
    sentences = describe_differences(diff(of_four, of_five), "a", "b")
    assert (
        "values of toy/frames: float32 [any number, 4] a clip against float32 [any number, 5] a clip"
        in sentences
    )


def test_clips_whose_number_of_frames_differs_are_counted_and_not_compared(tmp_path):
    """Clip b has a frame less in the second store.

    Clip c has its frames doubled: by at most 1, in the same direction.
    """
    frames = {clip: np.ones((size, D), np.float32) for clip, size in (("a", 2), ("b", 5), ("c", 3))}
    changed = frames | {"b": np.ones((4, D), np.float32), "c": 2 * frames["c"]}
    store = seal_ragged(tmp_path / "x", frames)
    difference = diff(store, seal_ragged(tmp_path / "y", changed))

    of_frames = difference.arrays[0]
    assert of_frames.clips == 3
    assert of_frames.changed == 2  # b and c
    assert of_frames.resized == 1  # b
    assert (of_frames.max_abs, of_frames.max_abs_clip) == (1.0, "c")
    assert of_frames.min_cosine == pytest.approx(1)
    assert describe_differences(difference, "x", "y")[0] == (
        "values of toy/frames: 2 of 3 clips differ, 1 of them in their number of frames, by at most 1 (c), "
        "smallest cosine 1.000000000"
    )
    assert diff(store, seal_ragged(tmp_path / "z", frames)).equal


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
    """A cosine with a vector of zeros is 0, and that of two such vectors 1.

    Of several frames, the smallest counts.
    """
    assert min_cosine(first, second) == cosine
