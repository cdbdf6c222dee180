"""Real files: each ends in frames or in a reason, and sparse frames are those of decoding everything."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.errors import VideoError
from obygaze_features.video import at, keyframes, read_frames, uniform
from tests.video.conftest import packets_of
from tests.video.test_decoding import decoded_by_pyav

SOUND = {
    "arm_wrestling.mp4": 280,
    "flipping_a_pancake.mkv": 310,
    "nasa_13013.mp4": 390,
    "rotated_90.mov": 3,
    "test.avi": 164,
    "unordered.mov": 4,
    "v_GGSY1Qvo990.mp4": 355,
}


@pytest.fixture(scope="module")
def videos(shared_data: Path) -> Path:
    return shared_data / "videos"


@pytest.mark.long
@pytest.mark.parametrize(("name", "count"), SOUND.items())
def test_sparse_frames_are_bit_equal_to_decoding_everything(videos, name, count):
    reference = decoded_by_pyav(videos / name)
    assert len(reference) == count
    for rule in (uniform(32), keyframes(6), at([0, count // 2, count - 1])):
        frames = read_frames(videos / name, rule)
        assert (frames.total, frames.method, frames.status) == (count, "sparse", "ok")
        assert np.array_equal(frames.images, reference[frames.index])


def test_a_rotated_film_stands_upright(videos):
    """The film is stored lying on its side, and says that it must be turned by 90 degrees."""
    frames = read_frames(videos / "rotated_90.mov", uniform(3))
    assert (frames.width, frames.height, frames.rotation) == (320, 568, 90)
    assert frames.images[0].shape == (568, 320, 3)


def test_frames_stored_out_of_order_come_in_the_order_of_their_times(videos):
    """The film has 32 pictures a second, whose packets are not in the order of their times."""
    frames = read_frames(videos / "unordered.mov", at(range(4)))
    np.testing.assert_allclose(frames.time_s, np.arange(4) / 32)
    assert any(a.pts > b.pts for a, b in pairwise(packets_of(videos / "unordered.mov")))


@pytest.mark.long
def test_a_corrupt_film_is_partial_and_names_what_is_lost(videos):
    frames = read_frames(videos / "corrupted.mp4", uniform(32))
    assert (frames.status, frames.method) == ("partial", "sequential")
    assert any("frame 32" in note for note in frames.notes)
    with pytest.raises(VideoError):
        read_frames(videos / "corrupted.mp4", uniform(32), strict=True)


def test_the_stream_that_players_choose_is_read_where_there_are_two(videos):
    """Of its two streams of pictures, players show the one that is 480 wide."""
    assert read_frames(videos / "nasa_13013.mp4", uniform(1)).width == 480
