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
"""Seconds by which pictures begin late where sound of AAC comes before them: 21.33 ms, no whole number."""


def frames_at(times_s):
    return FrameTimes(np.arange(len(times_s)), np.array(times_s, np.float64), key=None)


@pytest.mark.parametrize(
    ("pictures_a_second", "samples_a_second"), [(25, 2), (30, 4), (50, 4), (60, 8), (15, 10), (10, 4)]
)
@pytest.mark.parametrize(
    "start_s",
    [Fraction(0), Fraction(21, 1000), PRIMING_OF_AAC_S],
    ids=["at zero", "at whole milliseconds", "between two milliseconds"],
)
def test_of_two_frames_that_are_equally_near_the_earlier_one_is_taken(
    pictures_a_second, samples_a_second, start_s
):
    """A film of 300 pictures begins at `start_s`, and is sampled at a rate that does not divide its own.

    For example, of 25 pictures a second 2 are taken: a sample every 12.5 pictures. The samples lie at the
    places 0, 12.5, 25, 37.5 and so on, of which every other one is in the middle of two pictures. The earlier
    picture is to be taken: 0, 12, 25, 37. Times are floats, whose errors must not decide. So what is expected
    is computed with fractions, and must not depend on when the film begins.
    """
    exact_times_s = [start_s + Fraction(number, pictures_a_second) for number in range(300)]

    chosen = choose(fps(samples_a_second), frames_at([float(time_s) for time_s in exact_times_s]))

    pictures_a_sample = Fraction(pictures_a_second, samples_a_second)
    places = [sample * pictures_a_sample for sample in range(len(chosen))]
    # Rounding up place - 1/2 gives the nearest number, and the smaller one of two: 12.5 becomes 12.
    nearest = [math.ceil(place - Fraction(1, 2)) for place in places]
    assert chosen.tolist() == nearest


@pytest.mark.parametrize("suffix", [".mkv", ".ts", ".flv"])
def test_the_same_pictures_of_a_film_are_sampled_from_its_copy_in_another_container(tmp_path, suffix):
    """An MP4 of 100 pictures, 25 a second, is copied into another container; 2 pictures a second are taken.

    Every other sample lies in the middle of two pictures, such as 12 and 13; the earlier one is taken. The
    pictures begin at 21.33 ms, as if sound of AAC came before them. Matroska and FLV round such times to
    milliseconds, by which one of two pictures becomes the nearer one. This must not change what is taken.
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
