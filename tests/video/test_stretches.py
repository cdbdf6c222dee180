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
"""Starts and ends in films of four seconds."""
EDGES = (-np.inf, 0.8, 1.7, 3.0, np.inf)
"""Where four stretches begin and end."""
REQUESTS = [(uniform(5), lambda frame: frame), (keyframes(2), lambda frame: frame.copy())]
"""What each window is asked for: five frames, and two key frames."""


class ReadInStretches(NamedTuple):
    """What reading a film stretch by stretch gave."""

    windows: dict
    """Number of a window -> its frames."""
    measured: list
    """What was measured for shots in each stretch."""
    n_decoded: int


def read_in_four_stretches(path, windows, requests=REQUESTS, edges=EDGES):
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
def test_reading_in_stretches_gives_the_same_windows_and_shots_and_decodes_each_frame_once(
    numbered_films, name
):
    """Workers decode stretches of one film at the same time; a window may reach over several stretches.

    A film of four seconds is read in four stretches. Five windows of it have the same frames as if they were
    read of the whole film, and what was measured of each frame gives the same shots.
    """
    film = numbered_films[name]
    n_frames = len(decoded_by_pyav(film))

    in_stretches = read_in_four_stretches(film, WINDOWS)

    for number, window_of_whole_film in read_windows(film, WINDOWS, REQUESTS):
        assert_same(in_stretches.windows[number], window_of_whole_film)
    assert joined_shots(in_stretches.measured) == find_shots(film)
    n_measured = sum(len(stretch.frames) for stretch in in_stretches.measured)
    assert n_measured == n_frames
    n_decoded_twice_at_most = 3  # the key frame at which each stretch but the first begins
    assert n_frames <= in_stretches.n_decoded <= n_frames + n_decoded_twice_at_most


def test_shots_of_a_film_are_not_known_before_its_last_stretch_is_read(numbered_films):
    """A film is read in four stretches; what was measured in the last one is left out."""
    measured_in_stretches = read_in_four_stretches(numbered_films["pyramid.mp4"], WINDOWS).measured

    shots = joined_shots(measured_in_stretches[:-1])

    assert shots is None


def detector_that_has_seen(pictures):
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
    """The film is divided 20 times, at up to 11 random places; a detector of cuts sees each part alone."""
    rng = np.random.default_rng(3)
    film = film_of_seven_shots(rng)
    detector_of_whole = detector_that_has_seen(film)
    differences_of_whole = detector_of_whole.differences()

    for _ in range(20):
        n_edges = int(rng.integers(1, 12))
        inner_edges = rng.integers(0, len(film), n_edges).tolist()
        edges = sorted({0, *inner_edges, len(film)})
        joined = DifferenceDetector()
        for first, end in pairwise(edges):
            detector_of_part = detector_that_has_seen(film[first:end])
            joined.join(detector_of_part.differences())

        differences = joined.differences()
        assert differences.changes.tolist() == differences_of_whole.changes.tolist()
        assert differences.across_flash.tolist() == differences_of_whole.across_flash.tolist()
        assert joined.cuts() == detector_of_whole.cuts()


def test_why_a_film_is_not_decoded_in_stretches_is_said_of_a_film_without_times_alone(numbered_films):
    """Stretches are spans of time. A bare H.264 stream has no times, and an MP4 file has them.

    `why_not_in_stretches` gives a reason for the first, and an empty text for the second.
    """
    film_without_times = numbered_films["raw.h264"]
    film_with_times = numbered_films["no_b.mp4"]

    assert "time" in why_not_in_stretches(film_without_times)
    assert why_not_in_stretches(film_with_times) == ""


def test_nothing_is_read_of_a_stretch_of_a_film_without_times(numbered_films):
    """A bare H.264 stream has no times. Five frames of a window that is all of it are asked for.

    The stretch is all of the film, too. Nothing comes, not even a `Rest`: so the caller reads the window in
    the usual way.
    """
    items = read_stretch(
        numbered_films["raw.h264"],
        stretch=(-np.inf, np.inf),
        windows=[(None, None)],
        others=[],
        requests=[(uniform(5), lambda frame: frame)],
    )

    assert list(items) == []


def test_a_damaged_film_gives_the_same_windows_in_stretches_but_no_shots(numbered_films, tmp_path):
    """One picture cannot be decoded, so that the stretches do not tell what its shots are.

    The five WINDOWS have the frames that they have when the film is read as a whole.
    """
    path = damaged(numbered_films["no_b.mp4"], tmp_path)

    in_stretches = read_in_four_stretches(path, WINDOWS)

    for number, window_read_of_whole_film in read_windows(path, WINDOWS, REQUESTS):
        assert_same(in_stretches.windows[number], window_read_of_whole_film)
    assert joined_shots(in_stretches.measured) is None
