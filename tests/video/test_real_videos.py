"""Real files: each ends in frames or in a reason, and sparse frames are those of decoding everything."""

from pathlib import Path

import numpy as np
import pytest

from obygaze_features.errors import VideoError
from obygaze_features.video import at, keyframes, read_frames, uniform
from tests.video.conftest import packets_of
from tests.video.test_decoding import decoded_by_pyav

N_PICTURES = {
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
@pytest.mark.parametrize(("name", "n_pictures"), N_PICTURES.items())
def test_sparse_frames_are_bit_equal_to_decoding_everything(videos, name, n_pictures):
    """PyAV decodes every picture of a real film in order. Sparse decoding seeks, and decodes what is needed.

    Both give the same bytes: of 32 pictures spread evenly, of six key frames, and of the first, middle and
    last picture.
    """
    all_pictures = decoded_by_pyav(videos / name)
    assert len(all_pictures) == n_pictures
    first_middle_last = at([0, n_pictures // 2, n_pictures - 1])

    for sampling in (uniform(32), keyframes(6), first_middle_last):
        frames = read_frames(videos / name, sampling)

        assert frames.total == n_pictures
        assert frames.method == "sparse"
        assert frames.status == "ok"
        assert np.array_equal(frames.images, all_pictures[frames.index])


def test_a_rotated_film_stands_upright(videos):
    """The film is stored lying on its side, 568 wide, and says that it must be turned by 90 degrees."""
    frames = read_frames(videos / "rotated_90.mov", uniform(3))

    assert frames.rotation == 90
    assert frames.width == 320
    assert frames.height == 568
    assert frames.images[0].shape == (568, 320, 3)


def test_frames_stored_out_of_order_come_in_the_order_of_their_times(videos):
    """The film has four pictures, 32 a second, whose packets are not in the order of their times (PTS)."""
    film = videos / "unordered.mov"
    stored_times = [packet.pts for packet in packets_of(film)]
    assert stored_times != sorted(stored_times)

    frames = read_frames(film, at([0, 1, 2, 3]))

    np.testing.assert_allclose(frames.time_s, [0, 1 / 32, 2 / 32, 3 / 32])


@pytest.mark.long
def test_a_corrupt_film_is_partial_and_a_note_names_the_frame_that_is_lost(videos):
    """Picture 32 of this real film cannot be decoded."""
    film = videos / "corrupted.mp4"

    frames = read_frames(film, uniform(32))

    assert frames.status == "partial"
    assert frames.method == "sequential"
    assert any("frame 32" in note for note in frames.notes)
    with pytest.raises(VideoError):
        read_frames(film, uniform(32), strict=True)


def test_the_stream_that_players_choose_is_read_where_there_are_two(videos):
    """Of its two streams of pictures, players show the one that is 480 wide."""
    film_with_two_streams = videos / "nasa_13013.mp4"

    frames = read_frames(film_with_two_streams, uniform(1))

    assert frames.width == 480
