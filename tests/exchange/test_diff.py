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


def test_a_store_does_not_differ_from_itself_sealed_again(tmp_path):
    """The four arrays are vectors, frames, times and indices of frames."""
    difference = diff(seal_store(tmp_path, "a"), seal_store(tmp_path, "b"))
    assert difference.equal
    assert describe_differences(difference, "a", "b") == []
    assert [array.clips for array in difference.arrays] == [N_CLIPS] * 4
    assert difference.arrays[0].min_cosine == 1


LONGEST_FRAME = np.abs(planted_arrays()[1][66, 1].astype(float)).max()
"""The largest number, without its sign, of the frame that is doubled: by so much it changes."""


@pytest.fixture
def two_changed_clips(tmp_path):
    """The difference of two stores: clip c005 has another vector; the second frame of c066 is doubled."""
    vectors, frames = planted_arrays()
    vectors[5] = [3, 0, 0, 0]
    first = seal_store(tmp_path, "a", vectors.copy())
    vectors[5] = [3, 4, 0, 0]  # the cosine of the two is 3/5
    frames[66, 1] *= np.float16(2)
    return diff(first, seal_store(tmp_path, "b", vectors, frames))


def test_the_difference_of_a_changed_vector_is_measured(two_changed_clips):
    """[3, 0, 0, 0] became [3, 4, 0, 0]: the largest change is 4, and the cosine 3/5."""
    by_name = {array.array: array for array in two_changed_clips.arrays}
    assert by_name["toy/pooled"] == ArrayDiff(
        "toy/pooled",
        "",
        clips=N_CLIPS,
        changed=1,
        resized=0,
        max_abs=4,
        max_abs_clip="c005",
        min_cosine=pytest.approx(0.6),
    )

    assert not two_changed_clips.equal


def test_the_difference_of_a_frame_that_is_doubled_is_measured(two_changed_clips):
    """Its direction is the same, so that the cosine is 1."""
    by_name = {array.array: array for array in two_changed_clips.arrays}
    assert by_name["toy/frames"] == ArrayDiff(
        "toy/frames",
        "",
        clips=N_CLIPS,
        changed=1,
        resized=0,
        max_abs=LONGEST_FRAME,
        max_abs_clip="c066",
        min_cosine=pytest.approx(1, abs=1e-12),
    )


def test_an_array_without_changes_has_no_difference(two_changed_clips):
    by_name = {array.array: array for array in two_changed_clips.arrays}
    assert by_name["toy/time_s"] == ArrayDiff("toy/time_s", "", N_CLIPS, 0, 0, 0, "", None)


def test_differences_of_values_are_described_with_the_clip_that_differs_most(two_changed_clips):
    of_pooled, of_frames = describe_differences(two_changed_clips, "a", "b")
    assert of_pooled == (
        "values of toy/pooled: 1 of 70 clips differ, by at most 4 (c005), smallest cosine 0.600000000"
    )
    assert of_frames == (
        f"values of toy/frames: 1 of 70 clips differ, by at most {LONGEST_FRAME:.6g} (c066), "
        "smallest cosine 1.000000000"
    )


@pytest.fixture
def stores_of_other_clips(tmp_path):
    """The difference of store a, c001 to c069, where c004 failed, and b, c000 to c068, where c007 did."""
    vectors, frames = planted_arrays()
    first = seal_store(tmp_path, "a", vectors[1:], frames[1:], CLIPS[1:], failed={"c004": "no such file"})
    second = seal_store(tmp_path, "b", vectors[:-1], frames[:-1], CLIPS[:-1], failed={"c007": "empty"})
    return diff(first, second)


def test_clips_that_one_store_has_not_are_named(stores_of_other_clips):
    assert stores_of_other_clips.only_first == ("c069",)
    assert stores_of_other_clips.only_second == ("c000",)


def test_clips_whose_status_differs_are_named_and_counted(stores_of_other_clips):
    assert stores_of_other_clips.statuses == {("failed", "ok"): 1, ("ok", "failed"): 1}
    assert stores_of_other_clips.clips["status"] == ("c004", "c007")


def test_clips_with_features_in_both_stores_are_compared_by_id_and_not_by_row(stores_of_other_clips):
    """c000 and c069 are in one store alone, and c004 and c007 failed in one: four of 70 are not compared."""
    n_in_one_store_alone = 4
    for array in stores_of_other_clips.arrays:
        assert array.clips == N_CLIPS - n_in_one_store_alone
        assert array.changed == 0


def test_differences_of_clips_are_described_with_as_many_names_as_asked_for(stores_of_other_clips):
    sentences = describe_differences(stores_of_other_clips, "a", "b", most=1)
    assert "clips: 1 only in a: c069" in sentences
    assert "clips: 1 failed in a, ok in b" in sentences
    assert "clips: status differs for 2: c004 and 1 more" in sentences


@pytest.fixture
def other_device_and_contact(tmp_path):
    """The difference of two stores: b was computed on another device, by somebody else."""
    compute = {"dtype": "float32", "autocast": None, "attention": None, "tf32": False, "device": "another"}
    second = seal_store(tmp_path, "b", compute=compute, contact="lab b")
    return diff(seal_store(tmp_path, "a"), second)


def test_a_difference_of_provenance_that_forbids_mixing_is_described_as_such(other_device_and_contact):
    """Another device may give other numbers; another contact does not."""
    assert describe_differences(other_device_and_contact, "a", "b") == [
        'provenance of toy: compute.device is "cpu" in a, "another" in b (so the features must not be mixed)',
        'provenance of toy: contact is "" in a, "lab b" in b',
    ]


def test_the_record_says_which_differences_of_provenance_are_of_numerics(other_device_and_contact):
    """Differences of numerics are those that forbid to mix features. The record must have no nan."""
    text = json.dumps(other_device_and_contact.record(), allow_nan=False)
    record = json.loads(text)
    assert record["provenance"]["toy"] == [
        {"field": "compute.device", "numerics": True},
        {"field": "contact", "numerics": False},
    ]
    assert record["equal"] is False


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


@pytest.fixture
def other_numbers_of_frames(ragged_store):
    """The difference of two stores of a, b and c: b has a frame less in the second, c all frames doubled."""
    frames = {clip: np.ones((size, D), np.float32) for clip, size in (("a", 2), ("b", 5), ("c", 3))}
    changed = frames | {"b": np.ones((4, D), np.float32), "c": 2 * frames["c"]}
    return diff(ragged_store("x", frames), ragged_store("y", changed))


def test_clips_whose_number_of_frames_differs_are_counted_and_not_compared(other_numbers_of_frames):
    """Clip b has a frame less in the second store.

    Clip c has its frames doubled: by at most 1, in the same direction.
    """
    of_frames = other_numbers_of_frames.arrays[0]
    assert of_frames.clips == 3
    assert of_frames.changed == 2  # b and c
    assert of_frames.resized == 1  # b
    assert (of_frames.max_abs, of_frames.max_abs_clip) == (1.0, "c")
    assert of_frames.min_cosine == pytest.approx(1)


def test_clips_whose_number_of_frames_differs_are_described(other_numbers_of_frames):
    assert describe_differences(other_numbers_of_frames, "x", "y")[0] == (
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
    """A cosine with a vector of zeros is 0, and that of two such vectors 1.

    Of several frames, the smallest counts.
    """
    assert min_cosine(first, second) == cosine
