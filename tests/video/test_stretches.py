"""Stretches of a film: each frame is decoded once; windows and shots are what they are without them."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from obygaze_features.errors import VideoError
from obygaze_features.video import (
    Rest,
    find_shots,
    joined_shots,
    keyframes,
    read_stretch,
    read_windows,
    uniform,
    why_not_in_stretches,
)
from obygaze_features.video.cuts import DifferenceDetector
from obygaze_features.video.file_facts import packed, unpacked
from obygaze_features.video.shots import Measured
from tests.video.test_decoding import decoded_by_pyav
from tests.video.test_windows import FILMS, assert_same, damaged

WINDOWS = [(0.0, 1.6), (0.8, 2.4), (1.6, 3.2), (2.0, 3.2), (2.4, 4.0)]
EDGES = (-np.inf, 0.8, 1.7, 3.0, np.inf)
REQUESTS = [(uniform(5), lambda frame: frame), (keyframes(2), lambda frame: frame.copy())]


@dataclass(frozen=True)
class ReadInStretches:
    """What reading a film stretch by stretch gave.

    Attributes
    ----------
    windows
        Number of a window -> its frames.
    measured
        What was measured for shots in each stretch.
    n_decoded
        Frames that were decoded.
    """

    windows: dict
    measured: list
    n_decoded: int


def read_in_stretches(path, windows, requests=REQUESTS, edges=EDGES):
    """Read a film stretch by stretch, as decode workers do."""
    results = {}
    known = {}
    measured = []
    decoded = 0
    for start_s, end_s in pairwise(edges):
        own = [number for number, (window_start, _) in enumerate(windows) if start_s <= window_start < end_s]
        own_windows = [windows[number] for number in own]
        others = [window for number, window in enumerate(windows) if number not in own]
        for item in read_stretch(path, (start_s, end_s), own_windows, others, requests):
            if isinstance(item, Rest):
                assert known.keys().isdisjoint(item.known)
                known |= item.known
                measured.append(unpacked(packed(item.measured), Measured))
                decoded += item.decoded
            else:
                position, frames = item
                results[own[position]] = frames
                decoded += frames[0].decoded
    left = [number for number in range(len(windows)) if number not in results]
    for number, frames in read_windows(path, [windows[number] for number in left], requests, known=known):
        results[left[number]] = frames
        if not isinstance(frames, VideoError):
            decoded += frames[0].decoded
    return ReadInStretches(results, measured, decoded)


@pytest.mark.parametrize("name", [*FILMS[:-1], "open_gop.mp4", "b2.mkv", "closed.ts", "mpeg2.mkv"])
def test_windows_and_shots_of_a_film_read_in_stretches_are_those_without(films, name):
    path = films[name]
    result = read_in_stretches(path, WINDOWS)
    for number, alone in read_windows(path, WINDOWS, REQUESTS):
        assert_same(result.windows[number], alone)
    assert joined_shots(result.measured) == find_shots(path)


def test_shots_of_a_film_are_not_known_before_its_last_stretch_is_read(films):
    measured = read_in_stretches(films["pyramid.mp4"], WINDOWS).measured
    assert joined_shots(measured[:-1]) is None


@pytest.mark.parametrize("name", [*FILMS[:-1], "open_gop.mp4", "b2.mkv", "closed.ts", "mpeg2.mkv"])
def test_each_frame_of_a_film_read_in_stretches_is_decoded_once(films, name):
    """But a frame at which decoding starts again, which those shown before it may need too."""
    result = read_in_stretches(films[name], WINDOWS)
    n_frames = len(decoded_by_pyav(films[name]))
    assert sum(len(part.frames) for part in result.measured) == n_frames
    n_starts = 3
    assert n_frames <= result.n_decoded <= n_frames + n_starts


def detector_of(pictures):
    """Make a detector of cuts that has seen pictures."""
    detector = DifferenceDetector()
    for picture in pictures:
        detector.add(None, picture)
    return detector


def test_detectors_of_parts_of_a_film_join_to_the_one_of_the_whole_film():
    rng = np.random.default_rng(3)
    four_pictures = [rng.integers(0, 256, (54, 96), dtype=np.uint8) for _ in range(4)]
    film = [four_pictures[shot] for shot in (0, 1, 1, 0, 2, 3, 2) for _ in range(int(rng.integers(2, 20)))]
    whole = detector_of(film)
    for _ in range(20):
        edges = sorted({0, len(film), *rng.integers(0, len(film), int(rng.integers(1, 12))).tolist()})
        joined = DifferenceDetector()
        for first, end in pairwise(edges):
            joined.join(detector_of(film[first:end]).differences())
        differences, expected = joined.differences(), whole.differences()
        assert differences.changes.tolist() == expected.changes.tolist()
        assert differences.across_flash.tolist() == expected.across_flash.tolist()
        assert joined.cuts() == whole.cuts()


def test_a_film_without_times_is_not_decoded_in_stretches(films):
    path = films["raw.h264"]
    assert "time" in why_not_in_stretches(path)
    whole_film, whole_window, no_other_windows = (-np.inf, np.inf), (None, None), []
    items = read_stretch(path, whole_film, [whole_window], no_other_windows, REQUESTS[:1])
    assert list(items) == []


def test_a_usual_film_can_be_decoded_in_stretches(films):
    assert why_not_in_stretches(films["no_b.mp4"]) == ""


def test_windows_of_a_damaged_film_read_in_stretches_are_those_without(films, tmp_path):
    path = damaged(films["no_b.mp4"], tmp_path)
    result = read_in_stretches(path, WINDOWS)
    for number, alone in read_windows(path, WINDOWS, REQUESTS):
        assert_same(result.windows[number], alone)
    assert joined_shots(result.measured) is None
