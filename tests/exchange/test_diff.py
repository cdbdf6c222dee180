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
    """The four arrays of 70 clips are vectors, frames, times and indices of frames."""
    first = seal_store(tmp_path, "a")
    second = seal_store(tmp_path, "b")

    difference = diff(first, second)

    assert difference.equal
    assert describe_differences(difference, "a", "b") == []
    n_clips_compared = [array.clips for array in difference.arrays]
    assert n_clips_compared == [70, 70, 70, 70]
    assert difference.arrays[0].min_cosine == 1


def measured(array, *, changed, max_abs, max_abs_clip, min_cosine):
    """Make the difference of an array of all 70 clips, none of which has another number of frames."""
    return ArrayDiff(
        array,
        unlike="",
        clips=70,
        changed=changed,
        resized=0,
        max_abs=max_abs,
        max_abs_clip=max_abs_clip,
        min_cosine=min_cosine,
    )


def test_another_vector_is_measured_and_described_with_its_clip(tmp_path):
    """Of 70 clips in both stores, c005 has the vector [3, 0, 0, 0] in one and [3, 4, 0, 0] in the other.

    The largest change is 4, and the cosine of the two 3/5. The times of frames are the same.
    """
    vectors, _ = planted_arrays()
    vectors[5] = [3, 0, 0, 0]
    first = seal_store(tmp_path, "a", pooled=vectors.copy())
    vectors[5] = [3, 4, 0, 0]
    second = seal_store(tmp_path, "b", pooled=vectors)

    difference = diff(first, second)

    assert not difference.equal
    of_array = {array.array: array for array in difference.arrays}
    assert of_array["toy/pooled"] == measured(
        "toy/pooled", changed=1, max_abs=4, max_abs_clip="c005", min_cosine=pytest.approx(0.6)
    )
    assert of_array["toy/time_s"] == measured(
        "toy/time_s", changed=0, max_abs=0, max_abs_clip="", min_cosine=None
    )
    assert describe_differences(difference, "a", "b") == [
        "values of toy/pooled: 1 of 70 clips differ, by at most 4 (c005), smallest cosine 0.600000000"
    ]


def test_a_doubled_frame_is_measured_and_described_with_its_clip(tmp_path):
    """Of 70 clips of two frames in both stores, the second frame of c066 is doubled in one.

    It keeps its direction, so the cosine is 1, and it changes by as much as its largest number is.
    """
    _, frames = planted_arrays()
    first = seal_store(tmp_path, "a", frames=frames.copy())
    second_frame_of_c066 = frames[66, 1]
    largest = np.abs(second_frame_of_c066.astype(float)).max()
    second_frame_of_c066 *= np.float16(2)
    second = seal_store(tmp_path, "b", frames=frames)

    difference = diff(first, second)

    assert not difference.equal
    of_array = {array.array: array for array in difference.arrays}
    assert of_array["toy/frames"] == measured(
        "toy/frames",
        changed=1,
        max_abs=largest,
        max_abs_clip="c066",
        min_cosine=pytest.approx(1, abs=1e-12),
    )
    (description,) = describe_differences(difference, "a", "b")
    assert description == (
        f"values of toy/frames: 1 of 70 clips differ, by at most {largest:.6g} (c066), "
        "smallest cosine 1.000000000"
    )


def test_differences_of_several_arrays_are_described_one_after_the_other(tmp_path):
    """All vectors and all frames of the second store are doubled, its times are the same."""
    vectors, frames = planted_arrays()
    first = seal_store(tmp_path, "a")
    second = seal_store(tmp_path, "b", pooled=2 * vectors, frames=2 * frames)

    of_vectors, of_frames = describe_differences(diff(first, second), "a", "b")

    assert of_vectors.startswith("values of toy/pooled: 70 of 70 clips differ")
    assert of_frames.startswith("values of toy/frames: 70 of 70 clips differ")


def test_clips_are_compared_by_id_and_those_of_one_store_alone_are_named(tmp_path):
    """Store a has c001 to c069, where c004 and c005 failed, and b has c000 to c068, where c007 failed.

    Of 70 clips in all, two are in one store alone, and three have features in one store alone.
    """
    vectors, frames = planted_arrays()
    absent = {"c004": "no such file", "c005": "no such file"}
    first = seal_store(tmp_path, "a", vectors[1:], frames[1:], CLIPS[1:], failed=absent)
    second = seal_store(tmp_path, "b", vectors[:-1], frames[:-1], CLIPS[:-1], failed={"c007": "empty"})

    difference = diff(first, second)

    assert difference.only_first == ("c069",)
    assert difference.only_second == ("c000",)
    assert difference.statuses == {("failed", "ok"): 2, ("ok", "failed"): 1}
    assert difference.clips["status"] == ("c004", "c005", "c007")

    for array in difference.arrays:
        assert array.clips == 70 - 2 - 3
        assert array.changed == 0

    sentences = describe_differences(difference, "a", "b", maximum=1)
    assert "clips: 1 only in a: c069" in sentences
    assert "clips: 2 failed in a, ok in b" in sentences
    assert "clips: status differs for 3: c004 and 2 more" in sentences


def test_differences_of_provenance_that_forbid_mixing_are_described_as_such(tmp_path):
    """Another device may give other numbers; another contact does not.

    The record of the differences is strict JSON, which has no nan.
    """
    compute = {"dtype": "float32", "autocast": None, "attention": None, "tf32": False, "device": "another"}
    first = seal_store(tmp_path, "a")
    second = seal_store(tmp_path, "b", compute=compute, contact="lab b")

    difference = diff(first, second)

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
    """Store a has features of two backbones, toy and mine; b has those of toy alone."""
    first = seal_store(tmp_path, "a", groups=("toy", "mine"))
    second = seal_store(tmp_path, "b", groups=("toy",))

    sentences = describe_differences(diff(first, second), "a", "b")

    assert "features of mine: only in a" in sentences


def test_arrays_of_other_shapes_and_types_are_named(tmp_path):
    """Each clip of store a has a vector of 4 numbers and 2 frames of 4; store b has the first 3 numbers.

    Frames of store b are of another type, too.
    """
    vectors, frames = planted_arrays()
    first = seal_store(tmp_path, "a", vectors, frames)
    second = seal_store(tmp_path, "b", vectors[:, :3].copy(), frames[:, :, :3].astype(np.float32))

    sentences = describe_differences(diff(first, second), "a", "b")

    assert "values of toy/pooled: float32 [4] a clip against float32 [3] a clip" in sentences
    assert "values of toy/frames: float16 [2, 4] a clip against float32 [2, 3] a clip" in sentences


def test_ragged_frames_of_unlike_width_are_named(tmp_path):
    """In ragged stores each clip has its own number of frames, here of 4 numbers, and of 5 numbers."""
    of_four = seal_ragged(tmp_path / "a", {"a": np.ones((3, 4), np.float32)})
    of_five = seal_ragged(tmp_path / "b", {"a": np.ones((3, 5), np.float32)})

    sentences = describe_differences(diff(of_four, of_five), "a", "b")

    assert (
        "values of toy/frames: float32 [any number, 4] a clip against float32 [any number, 5] a clip"
        in sentences
    )


def test_clips_whose_number_of_frames_differs_are_counted_and_not_compared(tmp_path):
    """Clip `same` has the same two frames in both stores, and clip `shorter` has 5 in one and 4 in the other.

    Clip `doubled` has ones in one and twos in the other: its frames differ by 1 and have the same direction.
    """
    frames = {
        "same": np.ones((2, 4), np.float32),
        "shorter": np.ones((5, 4), np.float32),
        "doubled": np.ones((3, 4), np.float32),
    }
    other_frames = {
        "same": np.ones((2, 4), np.float32),
        "shorter": np.ones((4, 4), np.float32),
        "doubled": np.full((3, 4), 2, np.float32),
    }
    store = seal_ragged(tmp_path / "x", frames)
    other_store = seal_ragged(tmp_path / "y", other_frames)

    difference = diff(store, other_store)

    of_frames, *_ = difference.arrays
    assert of_frames.clips == 3
    assert of_frames.changed == 2  # shorter and doubled
    assert of_frames.resized == 1  # shorter
    assert of_frames.max_abs == 1.0
    assert of_frames.max_abs_clip == "doubled"
    assert of_frames.min_cosine == pytest.approx(1)

    first_sentence = describe_differences(difference, "x", "y")[0]
    assert first_sentence == (
        "values of toy/frames: 2 of 3 clips differ, 1 of them in their number of frames, "
        "by at most 1 (doubled), smallest cosine 1.000000000"
    )


def test_a_store_of_ragged_frames_does_not_differ_from_itself_sealed_again(tmp_path):
    """Clips a and b have 2 and 5 frames."""
    frames = {"a": np.ones((2, 4), np.float32), "b": np.ones((5, 4), np.float32)}
    store = seal_ragged(tmp_path / "x", frames)
    sealed_again = seal_ragged(tmp_path / "y", frames)

    assert diff(store, sealed_again).equal


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
    """The cosine of a vector and one of zeros is 0, and that of two such vectors 1.

    Of several frames, the smallest counts. The product of vectors of 60000 is larger than a float16 can be.
    """
    assert min_cosine(first, second) == cosine
