"""Rules that ask for more frames than anybody means: one line, and no memory."""

import pytest

from obygaze_features.errors import VideoError
from obygaze_features.video import at, fps, keyframes, uniform
from tests.video.conftest import draw_number, reason_of_refusal
from tests.video.encoding import encode


@pytest.fixture
def film(tmp_path):
    return encode(tmp_path / "a.mp4", map(draw_number, range(50)))


@pytest.mark.parametrize("rule", [uniform, keyframes])
def test_a_number_of_frames_with_too_many_zeros_is_refused(rule):
    with pytest.raises(VideoError, match=r"at most 4,194,304 .* 1,000,000,000"):
        rule(1_000_000_000)


@pytest.mark.parametrize("rate", [1e9, 1e300])
def test_a_rate_with_too_many_zeros_is_refused(film, rate):
    assert "at most 4,194,304 frames of a clip are sampled" in reason_of_refusal(film, fps(rate))


def test_a_frame_number_that_no_file_has_is_named(film):
    """It is larger than the whole numbers of NumPy."""
    assert reason_of_refusal(film, at([0, 10**20])) == f"frame {10**20} is not among the 50 from 0 to 49"
