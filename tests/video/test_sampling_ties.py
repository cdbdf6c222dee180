"""Sampling at a rate takes the same pictures of a film in every container, also between two frames."""

import math
from fractions import Fraction

import numpy as np
import pytest

from obygaze_features.video import fps, read_frames
from obygaze_features.video.sampling import FrameTimes, choose
from tests.video.conftest import draw_number, remux
from tests.video.encoding import encode

PRIMING_OF_AAC_S = Fraction(1024, 48_000)
"""Sound that starts so much before the pictures moves their times by it."""


def frames_at(times_s):
    return FrameTimes(np.arange(len(times_s)), np.array(times_s, np.float64), key=None)


@pytest.mark.parametrize(
    ("pictures_a_second", "rate"), [(25, 2), (30, 4), (50, 4), (60, 8), (15, 10), (10, 4)]
)
@pytest.mark.parametrize("start_s", [Fraction(0), Fraction(21, 1000), PRIMING_OF_AAC_S])
def test_of_two_frames_that_are_equally_near_the_earlier_one_is_taken(pictures_a_second, rate, start_s):
    """Of a film of 300 pictures, `rate` are taken a second: of 25 a second, sample 1 of 2 is at frame 12.5.

    So many samples lie in the middle of two frames, and errors of floats must not decide. Exactly computed,
    the nearest frame to x is x - 1/2, rounded up, which of two equally near is the earlier one.
    """
    exact_times_s = [start_s + Fraction(number, pictures_a_second) for number in range(300)]

    chosen = choose(fps(rate), frames_at([float(time_s) for time_s in exact_times_s]))

    frames_a_sample = Fraction(pictures_a_second, rate)
    nearest = [math.ceil(sample * frames_a_sample - Fraction(1, 2)) for sample in range(len(chosen))]
    assert chosen.tolist() == nearest


@pytest.mark.parametrize("suffix", [".mkv", ".ts", ".flv"])
def test_a_film_copied_into_another_container_gives_the_same_samples(tmp_path, suffix):
    """A film of 100 pictures, 25 a second, begins 21.33 ms after its start, as sound of AAC comes before it.

    Matroska and FLV round such times to milliseconds. Of two samples a second every other one lies in the
    middle of two pictures, as of 12 and 13, and the earlier one is taken in every container.
    """
    ticks_a_second = 48_000
    times = [1024 + number * ticks_a_second // 25 for number in range(100)]
    original = encode(
        tmp_path / "a.mp4", map(draw_number, range(100)), times=times, time_base=Fraction(1, ticks_a_second)
    )
    copy = remux(original, tmp_path / f"a{suffix}", edit=list)

    frames_of_original = read_frames(original, fps(rate=2))
    frames_of_copy = read_frames(copy, fps(rate=2))

    assert frames_of_original.index.tolist() == [0, 12, 25, 37, 50, 62, 75, 87]
    assert frames_of_copy.index.tolist() == [0, 12, 25, 37, 50, 62, 75, 87]
