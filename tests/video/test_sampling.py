"""Which frames are taken, on timelines made up here."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.errors import VideoError
from obygaze_features.video import at, fps, keyframes, uniform
from obygaze_features.video.sampling import FrameTimes, choose, nearest, pairs


def video_with_frames_at(times, key_frames=None) -> FrameTimes:
    """Return the times and numbers of a video's frames, and which are key frames (None: not known)."""
    times = np.asarray(times, np.float64)
    numbers = np.arange(len(times))
    is_key = None if key_frames is None else np.isin(numbers, key_frames)
    return FrameTimes(numbers, times, is_key)


@given(n_frames=st.integers(1, 5000), n_wanted=st.integers(1, 200))
def test_uniform_is_the_published_rule_sorted_and_in_range(n_frames, n_wanted):
    """The rule: if n of T frames are wanted, the i-th of them, from 0 on, is frame floor(i T / n).

    Where more frames are wanted than there are, some are taken several times.
    """
    video = video_with_frames_at(np.arange(n_frames) / 25)

    chosen = choose(uniform(n_wanted), video)

    assert chosen.tolist() == [int(i * n_frames / n_wanted) for i in range(n_wanted)]
    assert (np.diff(chosen) >= 0).all()
    assert chosen.min() == 0
    assert chosen.max() < n_frames


def test_a_span_starts_inclusive_and_ends_exclusive():
    """The video's four frames are at these seconds. A start or end of None is that of the video."""
    video = video_with_frames_at([0.0, 0.04, 0.08, 0.12])

    assert video.within(0.04, 0.12).index.tolist() == [1, 2]
    assert video.within(0.05, None).index.tolist() == [2, 3]
    assert video.within(None, 0.05).index.tolist() == [0, 1]


def test_frames_chosen_by_their_numbers_keep_the_order_in_which_they_are_asked_for():
    """And one that is asked for twice is given twice."""
    ten_frames = video_with_frames_at(np.arange(10) / 10)

    chosen = choose(at([7, 2, 2]), ten_frames)

    assert chosen.tolist() == [7, 2, 2]


def test_numbers_of_frames_count_in_the_whole_video_also_within_a_span():
    """At ten frames a second, those from 0.3 to 0.6 s have the numbers 3 to 5 of the video."""
    span = video_with_frames_at(np.arange(10) / 10).within(0.3, 0.6)

    assert choose(at([3]), span).tolist() == [3]
    with pytest.raises(VideoError, match=r"frame 7 .*3 from 3 to 5"):
        choose(at([7]), span)


def test_fps_takes_the_nearest_frame_from_the_first_on():
    """Of two seconds of 25 frames each, five a second are every fifth."""
    video = video_with_frames_at(np.arange(50) / 25)

    five_a_second = choose(fps(rate=5), video)
    twenty_five_a_second = choose(fps(rate=25), video)

    assert five_a_second.tolist() == [0, 5, 10, 15, 20, 25, 30, 35, 40, 45]
    assert twenty_five_a_second.tolist() == list(range(50))


def test_fps_takes_every_frame_of_a_video_of_that_rate_whose_times_are_rounded():
    """Matroska keeps whole milliseconds: at 30 frames a second, 0, 0.033, 0.067, 0.1 s and so on."""
    rounded_times = np.round(np.arange(60) / 30, 3)

    chosen = choose(fps(rate=30), video_with_frames_at(rounded_times))

    assert chosen.tolist() == list(range(60))


@pytest.mark.parametrize(("seconds", "rate"), [(8, 24), (0.5, 24), (8, 4), (0.2, 24), (0.04, 25)])
def test_pairs_are_spread_and_their_frames_as_far_apart_as_asked(seconds, rate):
    """Three pairs of frames are asked for, 0.3 s apart, of a video of so many seconds and frames a second.

    The time in which a pair can begin is divided into thirds, and each pair begins in the middle of one, but
    for the nearest frame. In a video shorter than 0.3 s, a pair is its first and last frame.
    """
    video = video_with_frames_at(np.arange(round(seconds * rate)) / rate)
    last_frame_s = video.time_s[-1]
    half_a_frame_s = 0.5 / rate + 1e-9

    six_frames = choose(pairs(6, gap_s=0.3), video)

    first_times = video.time_s[six_frames[0::2]]
    second_times = video.time_s[six_frames[1::2]]
    expected_gap_s = min(0.3, last_frame_s)
    gaps_s = second_times - first_times
    assert np.abs(gaps_s - expected_gap_s).max() <= half_a_frame_s

    last_start_s = max(last_frame_s - 0.3, 0)
    middles_of_thirds = np.array([1 / 6, 3 / 6, 5 / 6]) * last_start_s
    assert np.abs(first_times - middles_of_thirds).max() <= half_a_frame_s


def test_keyframes_are_those_nearest_to_the_uniform_times():
    """Of 12 frames, one a second, four evenly spaced ones are at 0, 3, 6 and 9 s.

    The key frames nearest to these are 0, 4, 4 and 10.
    """
    video = video_with_frames_at(np.arange(12.0), key_frames=[0, 4, 10])

    chosen = choose(keyframes(4), video)

    assert chosen.tolist() == [0, 4, 4, 10]


def test_of_two_key_frames_that_are_equally_near_the_earlier_one_is_taken():
    """Two evenly spaced frames of eight are at 0 and 4 s; the key frames 2 and 6 are as far from 4."""
    video = video_with_frames_at(np.arange(8.0), key_frames=[2, 6])

    chosen = choose(keyframes(2), video)

    assert chosen.tolist() == [2, 2]


@given(
    steps_ms=st.lists(st.integers(1, 1000), min_size=1, max_size=80),
    wanted_ms=st.lists(st.integers(0, 90000), min_size=1, max_size=20),
)
def test_no_frame_is_nearer_to_a_wanted_time_than_the_nearest_one(steps_ms, wanted_ms):
    """The steps are those from one frame of the video to the next."""
    times_s = np.cumsum(steps_ms) / 1000
    wanted_s = np.array(wanted_ms) / 1000

    chosen = nearest(times_s, wanted_s)

    for frame, time_s in zip(chosen, wanted_s, strict=True):
        distances_of_all_frames = np.abs(times_s - time_s)
        assert np.isclose(distances_of_all_frames[frame], distances_of_all_frames.min())


@pytest.mark.parametrize(
    ("sampling", "value"),
    [(uniform, 0), (keyframes, -1), (fps, 0), (fps, float("nan")), (at, []), (at, [-1])],
    ids=["no frames", "fewer than none", "no rate", "no number", "no index", "a negative index"],
)
def test_senseless_samplings_are_refused(sampling, value):
    """A sampling takes a number of frames, a rate, or a list of the numbers of frames."""
    with pytest.raises(VideoError):
        sampling(value)


@pytest.mark.parametrize(
    ("times", "start_s", "end_s", "message"),
    [
        pytest.param([0.0, 0.5], 2, 1, "2 to 1 s", id="ends before it begins"),
        pytest.param([0.0, 0.5], 3, 4, r"3 and 4 s.*0\.000 to 0\.500 s", id="without frames"),
        pytest.param([0.0, 0.5], 3, None, r"no frame from 3 s on.*0\.000 to 0\.500 s", id="behind the last"),
        pytest.param([np.nan, np.nan], 0, 1, "no times", id="of a film without times"),
    ],
)
def test_a_span_that_has_no_frames_is_refused(times, start_s, end_s, message):
    """The video has two frames, at `times` in seconds, of which NaN says that they are not known.

    A span of it must end behind its start, and hold a frame.
    """
    video = video_with_frames_at(times)

    with pytest.raises(VideoError, match=message):
        video.within(start_s, end_s)


def test_key_frames_of_a_film_without_any_are_refused():
    """The film has one frame, which is no key frame."""
    video = video_with_frames_at([0.0], key_frames=[])

    with pytest.raises(VideoError, match="no key frame"):
        choose(keyframes(2), video)
