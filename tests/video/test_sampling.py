"""Which frames are taken, on timelines made up here."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.errors import VideoError
from obygaze_features.video import at, fps, keyframes, uniform
from obygaze_features.video.sampling import FrameTimes, choose, nearest, pairs

LENGTHS = st.integers(1, 5000)
COUNTS = st.integers(1, 200)
STEPS = st.lists(st.integers(1, 1000), min_size=1, max_size=80)


def frame_times(times, keys=None) -> FrameTimes:
    times = np.asarray(times, np.float64)
    return FrameTimes(np.arange(len(times)), times, None if keys is None else np.asarray(keys, bool))


@given(LENGTHS, COUNTS)
def test_uniform_is_the_published_rule_sorted_and_in_range(length, n):
    """The rule: of T frames, the i-th of n is floor(i T / n)."""
    chosen = choose(uniform(n), frame_times(np.arange(length) / 25))
    assert chosen.tolist() == [int(i * length / n) for i in range(n)]
    assert (np.diff(chosen) >= 0).all()
    assert chosen.min() == 0
    assert chosen.max() < length


def test_a_span_starts_inclusive_and_ends_exclusive():
    frames = frame_times([0.0, 0.04, 0.08, 0.12])
    assert frames.within(0.04, 0.12).index.tolist() == [1, 2]
    assert frames.within(0.05, None).index.tolist() == [2, 3]
    assert frames.within(None, 0.05).index.tolist() == [0, 1]


def test_indices_count_in_the_whole_video_and_keep_their_order():
    """Frames from 0.3 to 0.6 s have the numbers 3 to 5 of the video, also within that span."""
    frames = frame_times(np.arange(10) / 10)
    assert choose(at([7, 2, 2]), frames).tolist() == [7, 2, 2]
    assert choose(at([3]), frames.within(0.3, 0.6)).tolist() == [3]
    with pytest.raises(VideoError, match=r"frame 7 .*3 from 3 to 5"):
        choose(at([7]), frames.within(0.3, 0.6))


def test_fps_takes_the_nearest_frame_from_the_first_on():
    """Matroska rounds times to milliseconds, which must give the same frames."""
    frames = frame_times(np.arange(50) / 25)
    assert choose(fps(5), frames).tolist() == list(range(0, 50, 5))
    assert choose(fps(25), frames).tolist() == list(range(50))

    rounded = frame_times(np.round(np.arange(60) / 30, 3))  # Matroska keeps whole milliseconds
    assert choose(fps(30), rounded).tolist() == list(range(60))


@pytest.mark.parametrize(("seconds", "rate"), [(8, 24), (0.5, 24), (8, 4), (0.2, 24), (0.04, 25)])
def test_pairs_are_spread_and_their_frames_as_far_apart_as_asked(seconds, rate):
    """In a video shorter than 0.3 s, a pair is its first and last frame."""
    frames = frame_times(np.arange(round(seconds * rate)) / rate)
    six_frames = choose(pairs(6, 0.3), frames)
    times = frames.time_s[six_frames].reshape(3, 2)  # [pairs, frames of a pair]

    half_a_frame_s = 0.5 / rate + 1e-9  # the nearest frames are taken

    span_s = frames.time_s[-1]
    expected_gap_s = min(0.3, span_s)
    gaps_s = times[:, 1] - times[:, 0]
    assert np.abs(gaps_s - expected_gap_s).max() <= half_a_frame_s

    # Of the time in which a pair can begin, in the middles of its three thirds.
    last_start_s = max(span_s - 0.3, 0)
    expected_starts_s = np.array([1 / 6, 3 / 6, 5 / 6]) * last_start_s

    assert np.abs(times[:, 0] - expected_starts_s).max() <= half_a_frame_s


def test_keyframes_are_those_nearest_to_the_uniform_times():
    """Of two key frames that are equally near, the earlier one is taken."""
    frames = frame_times(np.arange(12.0), [n in (0, 4, 10) for n in range(12)])
    # uniform(4) takes seconds 0, 3, 6, 9
    assert choose(keyframes(4), frames).tolist() == [0, 4, 4, 10]

    few = frame_times(np.arange(8.0), [n in (2, 6) for n in range(8)])
    assert choose(keyframes(2), few).tolist() == [2, 2]


@given(STEPS, st.lists(st.integers(0, 90000), min_size=1, max_size=20))
def test_nearest_is_nearest(steps, wanted):
    times = np.cumsum(steps) / 1000
    wanted_s = np.array(wanted) / 1000
    distance = np.abs(times[nearest(times, wanted_s)] - wanted_s)
    assert np.allclose(distance, np.abs(times[None] - wanted_s[:, None]).min(axis=1))


@pytest.mark.parametrize(
    ("sampling", "value"),
    [(uniform, 0), (keyframes, -1), (fps, 0), (fps, float("nan")), (at, []), (at, [-1])],
    ids=["no frames", "fewer than none", "no rate", "no number", "no index", "a negative index"],
)
def test_senseless_samplings_are_refused(sampling, value):
    with pytest.raises(VideoError):
        sampling(value)


@pytest.mark.parametrize(
    ("times", "start_s", "end_s", "message"),
    [
        pytest.param([0.0, 0.5], 2, 1, "2 to 1 s", id="ends before it begins"),
        pytest.param([0.0, 0.5], 3, 4, r"3 and 4 s.*0\.000 to 0\.500 s", id="without frames"),
        pytest.param([np.nan, np.nan], 0, 1, "no times", id="of a film without times"),
    ],
)
def test_a_span_that_has_no_frames_is_refused(times, start_s, end_s, message):
    with pytest.raises(VideoError, match=message):
        frame_times(times).within(start_s, end_s)


def test_key_frames_of_a_film_without_any_are_refused():
    with pytest.raises(VideoError, match="no key frame"):
        choose(keyframes(2), frame_times([0.0], [False]))
