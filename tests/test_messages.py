"""Arrays of workers travel in shared memory that is used again once they are forgotten."""

import errno
import os
import resource
import stat
import uuid

import numpy as np
import pytest

from obygaze_features import messages
from obygaze_features.messages import SHARED, Packer, Unpacker

FRAMES = np.random.default_rng(0).integers(0, 256, (8, 96, 96, 3), dtype=np.uint8)

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="needs POSIX shared memory")


@pytest.fixture
def packer_and_unpacker():
    """Both ends of a worker, in this process: what packs its messages, and what unpacks them.

    Arrays travel in blocks of shared memory, of which none may be left in the end.
    """
    name = f"obygaze-test-{uuid.uuid4().hex}"
    yield Packer(name), Unpacker(name)
    assert not list(SHARED.glob(f"{name}*"))


def test_an_object_comes_out_as_it_went_in(packer_and_unpacker):
    """Large arrays are not in the message, which stays small: they travel in shared memory."""
    packer, unpacker = packer_and_unpacker
    every_second = FRAMES[::2].copy()
    times = np.arange(8) / 24.0

    message = packer.pack({"frames": FRAMES, "every_second": every_second, "times": times})
    unpacked = unpacker.unpack(message)

    assert len(message) < 2000
    assert np.array_equal(unpacked["frames"], FRAMES)
    assert np.array_equal(unpacked["every_second"], every_second)
    assert np.array_equal(unpacked["times"], times)
    assert unpacked["frames"].flags.writeable


def test_an_array_that_stands_twice_in_an_object_comes_out_as_one(packer_and_unpacker):
    """A worker packs messages, and the main process unpacks them; large arrays are in shared memory."""
    packer, unpacker = packer_and_unpacker

    unpacked = unpacker.unpack(packer.pack({"one": FRAMES, "two": FRAMES}))

    assert unpacked["one"] is unpacked["two"]


def test_a_block_is_free_once_the_last_view_of_its_array_is_forgotten(packer_and_unpacker):
    """The array lies in block 0. One of its frames is still looked at when the array is forgotten."""
    packer, unpacker = packer_and_unpacker
    frames = unpacker.unpack(packer.pack(FRAMES))
    second_frame = frames[1]

    del frames
    assert unpacker.take_free() == []
    assert np.array_equal(second_frame, FRAMES[1])

    del second_frame
    assert unpacker.take_free() == [0]


def test_a_free_block_is_used_again_and_one_in_use_is_not(packer_and_unpacker):
    """Two arrays are in two blocks; the first is forgotten, and a third array takes its block."""
    packer, unpacker = packer_and_unpacker
    reversed_frames = FRAMES[::-1].copy()
    in_first_block = unpacker.unpack(packer.pack(FRAMES))
    in_second_block = unpacker.unpack(packer.pack(reversed_frames))
    assert np.array_equal(in_first_block, FRAMES)

    del in_first_block
    packer.take_back(unpacker.take_free())
    third = unpacker.unpack(packer.pack(FRAMES))

    assert np.array_equal(third, FRAMES)
    assert np.array_equal(in_second_block, reversed_frames)
    n_blocks = len(packer._blocks)
    assert n_blocks == 2


def test_an_array_larger_than_a_free_block_gets_a_block_of_its_own(packer_and_unpacker):
    """The first array is forgotten at once, so that its block is free, but too small for the second."""
    packer, unpacker = packer_and_unpacker
    unpacker.unpack(packer.pack(FRAMES))
    packer.take_back(unpacker.take_free())

    twice_as_many = np.concatenate([FRAMES, FRAMES])
    unpacked = unpacker.unpack(packer.pack(twice_as_many))

    assert np.array_equal(unpacked, twice_as_many)
    n_blocks = len(packer._blocks)
    assert n_blocks == 2


def test_without_shared_memory_arrays_are_in_the_message(packer_and_unpacker, monkeypatch, tmp_path):
    """The system's folder of shared memory, /dev/shm, is not there."""
    packer, unpacker = packer_and_unpacker
    monkeypatch.setattr(messages, "SHARED", tmp_path / "none")

    frames, one = unpacker.unpack(packer.pack([FRAMES, 1]))

    assert np.array_equal(frames, FRAMES)
    assert one == 1


def test_with_full_shared_memory_arrays_are_in_the_message_until_there_is_space(
    packer_and_unpacker, monkeypatch
):
    """Shared memory is a folder of the system, /dev/shm, in which a write fails like on a full disk."""
    packer, unpacker = packer_and_unpacker

    def write_to_full_memory(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write_to_full_memory)
        frames_while_full = unpacker.unpack(packer.pack(FRAMES))
    frames_afterwards = unpacker.unpack(packer.pack(FRAMES))

    assert np.array_equal(frames_while_full, FRAMES)
    assert np.array_equal(frames_afterwards, FRAMES)


def test_more_blocks_are_unpacked_than_files_may_be_open(packer_and_unpacker):
    """Twenty arrays lie in blocks of their own, and only five more files may be open in this process."""
    packer, unpacker = packer_and_unpacker
    packed = [packer.pack(FRAMES) for _ in range(20)]
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    n_open = len(os.listdir("/dev/fd"))  # noqa: PTH208

    resource.setrlimit(resource.RLIMIT_NOFILE, (n_open + 5, hard_limit))
    try:
        unpacked = [unpacker.unpack(message) for message in packed]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft_limit, hard_limit))

    for frames in unpacked:
        assert np.array_equal(frames, FRAMES)


def test_a_block_may_be_read_by_its_user_alone(packer_and_unpacker):
    """Other users of the machine can list the folder of shared memory, and must not see the frames."""
    packer, _ = packer_and_unpacker

    packer.pack(FRAMES)

    (block,) = SHARED.glob(f"{packer._name}-*")
    mode = stat.S_IMODE(block.stat().st_mode)
    packer.end()
    assert mode == 0o600


def test_a_worker_that_ends_removes_a_block_that_nobody_has_unpacked(packer_and_unpacker):
    """A block of shared memory is a file, which would stay in memory until the machine is restarted."""
    packer, _ = packer_and_unpacker
    packer.pack(FRAMES)
    (block,) = SHARED.glob(f"{packer._name}-*")

    packer.end()

    assert not block.exists()
