"""Arrays of workers travel in shared memory that is used again once they are forgotten."""

import os
import resource
import uuid

import numpy as np
import pytest

from obygaze_features import messages
from obygaze_features.messages import SHARED, Packer, Unpacker

FRAMES = np.random.default_rng(0).integers(0, 256, (8, 96, 96, 3), dtype=np.uint8)

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="needs POSIX shared memory")


@pytest.fixture
def ends():
    """Both ends of a worker, in this process."""
    name = f"obygaze-test-{uuid.uuid4().hex}"
    yield Packer(name), Unpacker(name)
    assert not list(SHARED.glob(f"{name}*"))


def test_an_object_comes_out_as_it_went_in_and_shared_arrays_stay_shared(ends):
    packer, unpacker = ends
    times = np.arange(8) / 24.0
    message = packer.pack({"one": FRAMES, "two": FRAMES, "other": FRAMES[::2].copy(), "times": times})
    assert len(message) < 2000
    result = unpacker.unpack(message)
    assert result["one"] is result["two"]
    assert result["one"].flags.writeable
    assert np.array_equal(result["one"], FRAMES)
    assert np.array_equal(result["other"], FRAMES[::2])
    assert np.array_equal(result["times"], times)


def test_a_block_is_used_again_once_the_last_view_of_it_is_forgotten(ends):
    packer, unpacker = ends
    reversed_frames = FRAMES[::-1].copy()
    frames = unpacker.unpack(packer.pack([FRAMES, np.zeros(3)]))[0]
    view = frames[1]
    del frames
    assert unpacker.take_free() == []
    in_second_block = unpacker.unpack(packer.pack(reversed_frames))
    assert np.array_equal(view, FRAMES[1])
    del view
    free = unpacker.take_free()
    assert free == [0]
    packer.take_back(free)
    assert np.array_equal(unpacker.unpack(packer.pack(FRAMES)), FRAMES)
    assert np.array_equal(in_second_block, reversed_frames)
    assert len(packer._blocks) == 2


def test_an_array_larger_than_a_free_block_gets_a_block_of_its_own(ends):
    packer, unpacker = ends
    unpacker.unpack(packer.pack(FRAMES))
    packer.take_back(unpacker.take_free())
    twice_as_many = np.concatenate([FRAMES, FRAMES])
    assert np.array_equal(unpacker.unpack(packer.pack(twice_as_many)), twice_as_many)
    assert len(packer._blocks) == 2


def test_without_shared_memory_or_space_in_it_arrays_are_in_the_message(ends, monkeypatch, tmp_path):
    packer, unpacker = ends
    monkeypatch.setattr(messages, "SHARED", tmp_path / "none")
    assert np.array_equal(unpacker.unpack(packer.pack([FRAMES, 1]))[0], FRAMES)
    monkeypatch.undo()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    assert np.array_equal(unpacker.unpack(packer.pack([FRAMES, 1]))[0], FRAMES)
    monkeypatch.undo()
    assert np.array_equal(unpacker.unpack(packer.pack([FRAMES, 1]))[0], FRAMES)


def test_more_blocks_than_files_may_be_open_at_first_are_mapped(ends):
    packer, unpacker = ends
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    packed = [packer.pack(FRAMES) for _ in range(20)]
    few = len(os.listdir("/dev/fd")) + 5  # noqa: PTH208
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        result = [unpacker.unpack(message) for message in packed]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert all(np.array_equal(frames, FRAMES) for frames in result)


def test_nobody_else_may_read_a_block_and_no_name_is_left_by_a_worker_that_ends(ends):
    packer, _ = ends
    packer.pack(FRAMES)
    (path,) = SHARED.glob(f"{packer._name}-*")
    assert path.stat().st_mode & 0o777 == 0o600
    packer.end()
