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
def test_a_rule_that_takes_a_thousand_million_frames_is_refused(rule):
    """A rule takes so many frames of each clip; a number with a few zeros too many would fill the memory.

    At most 2^22 = 4,194,304 frames of a clip may be asked for. The message names this limit and the number.
    """
    with pytest.raises(VideoError, match=r"at most 4,194,304 .* 1,000,000,000"):
        rule(1_000_000_000)


@pytest.mark.parametrize("frames_a_second", [1e9, 1e300])
def test_a_rate_that_takes_more_than_four_million_frames_of_a_clip_is_refused(film, frames_a_second):
    """The film has 50 frames, 2 s. At most 2^22 = 4,194,304 frames of a clip are taken."""
    reason = reason_of_refusal(film, fps(frames_a_second))

    assert "at most 4,194,304 frames of a clip are sampled" in reason


def test_a_frame_number_above_all_numbers_of_numpy_is_refused_as_one_that_the_film_does_not_have(film):
    """The film has 50 frames, and frame 10^20 is asked for; NumPy's whole numbers end below 10^19."""
    assert reason_of_refusal(film, at([0, 10**20])) == f"frame {10**20} is not among the 50 from 0 to 49"
