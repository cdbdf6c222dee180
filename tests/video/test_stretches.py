"""Stretches of a film: each frame is decoded once; windows and shots are what they are without them."""

from itertools import pairwise
from typing import NamedTuple

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


class ReadInStretches(NamedTuple):
    """What reading a film stretch by stretch gave."""

    windows: dict
    """Number of a window -> its frames."""
    measured: list
    """What was measured for shots in each stretch."""
    n_decoded: int


def read_in_stretches(path, windows, requests=REQUESTS, edges=EDGES):
    """Read windows of a film stretch by stretch, as decode workers do; one is read where it begins."""
    frames_of_window = {}
    known = {}
    measured = []
    n_decoded = 0
    for start_s, end_s in pairwise(edges):
        numbers_here, numbers_elsewhere = [], []
        for number, (window_start_s, _) in enumerate(windows):
            is_here = start_s <= window_start_s < end_s
            (numbers_here if is_here else numbers_elsewhere).append(number)
        windows_here = [windows[number] for number in numbers_here]
        windows_elsewhere = [windows[number] for number in numbers_elsewhere]
        for item in read_stretch(path, (start_s, end_s), windows_here, windows_elsewhere, requests):
            if isinstance(item, Rest):
                assert known.keys().isdisjoint(item.known)
                known |= item.known
                measured.append(unpacked(packed(item.measured), Measured))
                n_decoded += item.decoded
            else:
                place_here, frames = item
                frames_of_window[numbers_here[place_here]] = frames
                n_decoded += frames[0].decoded
    unread = [number for number in range(len(windows)) if number not in frames_of_window]
    unread_windows = [windows[number] for number in unread]
    for place, frames in read_windows(path, unread_windows, requests, known=known):
        frames_of_window[unread[place]] = frames
        if not isinstance(frames, VideoError):
            n_decoded += frames[0].decoded
    return ReadInStretches(frames_of_window, measured, n_decoded)


@pytest.mark.parametrize("name", [*FILMS[:-1], "open_gop.mp4", "b2.mkv", "closed.ts", "mpeg2.mkv"])
def test_reading_in_stretches_gives_the_same_windows_and_shots_and_decodes_each_frame_once(films, name):
    """Workers decode stretches of one film at the same time; a window may reach over several stretches."""
    path = films[name]

    result = read_in_stretches(path, WINDOWS)

    for number, alone in read_windows(path, WINDOWS, REQUESTS):
        assert_same(result.windows[number], alone)
    assert joined_shots(result.measured) == find_shots(path)
    n_frames = len(decoded_by_pyav(path))
    assert sum(len(part.frames) for part in result.measured) == n_frames
    n_later_stretches = len(EDGES) - 2  # whose first key frame may be decoded twice

    assert n_frames <= result.n_decoded <= n_frames + n_later_stretches


def test_shots_of_a_film_are_not_known_before_its_last_stretch_is_read(films):
    measured = read_in_stretches(films["pyramid.mp4"], WINDOWS).measured
    assert joined_shots(measured[:-1]) is None


def detector_of(pictures):
    """Make a detector of cuts that has seen pictures."""
    detector = DifferenceDetector()
    for picture in pictures:
        detector.add(None, picture)
    return detector


def film_of_seven_shots(rng):
    """Return pictures of seven shots, each of which shows one of four pictures 2 to 19 times."""
    four_pictures = [rng.integers(0, 256, (54, 96), dtype=np.uint8) for _ in range(4)]
    film = []
    for shot in (0, 1, 1, 0, 2, 3, 2):
        n_frames = int(rng.integers(2, 20))
        film += [four_pictures[shot]] * n_frames
    return film


def test_cuts_found_in_parts_of_a_film_join_to_those_of_the_whole():
    rng = np.random.default_rng(3)
    film = film_of_seven_shots(rng)
    whole = detector_of(film)
    expected = whole.differences()

    for _ in range(20):
        n_edges = int(rng.integers(1, 12))
        inner_edges = rng.integers(0, len(film), n_edges).tolist()
        edges = sorted({0, *inner_edges, len(film)})
        joined = DifferenceDetector()
        for first, end in pairwise(edges):
            joined.join(detector_of(film[first:end]).differences())

        differences = joined.differences()
        assert differences.changes.tolist() == expected.changes.tolist()
        assert differences.across_flash.tolist() == expected.across_flash.tolist()
        assert joined.cuts() == whole.cuts()


def test_a_film_without_times_is_not_decoded_in_stretches(films):
    """Stretches are spans of time, and a bare H.264 stream has no times."""
    path = films["raw.h264"]
    assert "time" in why_not_in_stretches(path)
    whole_film, whole_window, no_other_windows = (-np.inf, np.inf), (None, None), []
    items = read_stretch(path, whole_film, [whole_window], no_other_windows, REQUESTS[:1])
    assert list(items) == []
    assert why_not_in_stretches(films["no_b.mp4"]) == ""


def test_a_damaged_film_gives_the_same_windows_in_stretches(films, tmp_path):
    """Its shots are not known from the stretches, as pictures are missing."""
    path = damaged(films["no_b.mp4"], tmp_path)
    result = read_in_stretches(path, WINDOWS)
    for number, alone in read_windows(path, WINDOWS, REQUESTS):
        assert_same(result.windows[number], alone)
    assert joined_shots(result.measured) is None
