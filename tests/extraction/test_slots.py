"""Arrays travel in shared memory that is used again once they are forgotten."""

import os
import resource

import numpy as np
import pytest

from obygaze_features.extraction.slots import Slots, pack

FRAMES = np.random.default_rng(0).integers(0, 256, (8, 96, 96, 3), dtype=np.uint8)


def test_an_object_comes_out_as_it_went_in_and_shared_arrays_stay_shared():
    slots = Slots()
    slot = slots.take()
    times = np.arange(8) / 24.0
    parcel = pack(
        {"one": FRAMES, "two": FRAMES, "other": FRAMES[::2].copy(), "times": times}, slot.descriptor
    )
    assert len(parcel.pickled) < 2000
    assert [size for _, size in parcel.spans] == [FRAMES.nbytes, FRAMES.nbytes // 2]
    found = slots.unpack(slot, parcel)
    assert found["one"] is found["two"]
    assert found["one"].flags.writeable
    assert np.array_equal(found["one"], FRAMES)
    assert np.array_equal(found["other"], FRAMES[::2])
    assert np.array_equal(found["times"], times)


def test_a_slot_is_used_again_once_the_last_view_of_it_is_forgotten_and_grows_when_needed():
    slots = Slots()
    first = slots.take()
    frames = slots.unpack(first, pack([FRAMES, np.zeros(3)], first.descriptor))[0]
    part = frames[1]
    del frames
    assert slots.take() is not first
    assert np.array_equal(part, FRAMES[1])
    del part
    again = slots.take()
    assert again is first
    assert len(slots) == 2
    large = np.concatenate([FRAMES, FRAMES])
    assert np.array_equal(slots.unpack(again, pack(large, again.descriptor)), large)


def test_small_arrays_keep_no_slot():
    slots = Slots()
    slot = slots.take()
    kept = slots.unpack(slot, pack(np.arange(10), slot.descriptor))
    assert slots.take() is slot
    assert kept.tolist() == list(range(10))


def test_more_slots_than_files_may_be_open_at_first_are_had():
    slots = Slots()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = len(os.listdir("/dev/fd")) + 5  # noqa: PTH208
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        taken = [slots.take() for _ in range(20)]
    finally:
        slots.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(taken) == 20


def test_nothing_is_left_when_slots_are_closed_and_arrays_in_use_stay():
    slots = Slots()
    slot = slots.take()
    frames = slots.unpack(slot, pack(FRAMES, slot.descriptor))
    slots.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(slot.descriptor)
    assert np.array_equal(frames, FRAMES)
