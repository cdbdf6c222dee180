"""Stretches of a film: each frame is decoded once; windows and shots are what they are without them."""

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


def in_stretches(path, windows, requests=REQUESTS, edges=EDGES):
    """Read a film stretch by stretch; return each window's frames, what was measured, and frames decoded."""
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
    return results, measured, decoded


@pytest.mark.parametrize("name", [*FILMS[:-1], "open_gop.mp4", "b2.mkv", "closed.ts", "mpeg2.mkv"])
def test_windows_and_shots_are_the_same_and_each_frame_is_decoded_once(films, name):
    path = films[name]
    results, measured, decoded = in_stretches(path, WINDOWS)
    for number, alone in read_windows(path, WINDOWS, REQUESTS):
        assert_same(results[number], alone)
    assert joined_shots(measured) == find_shots(path)
    assert joined_shots(measured[:-1]) is None
    n_frames = len(decoded_by_pyav(path))
    assert sum(len(part.frames) for part in measured) == n_frames
    # A frame at which decoding starts again may be decoded for those shown before it, too.
    assert n_frames <= decoded <= n_frames + 3


def test_parts_of_any_length_join_to_the_same_cuts():
    rng = np.random.default_rng(3)
    pictures = [rng.integers(0, 256, (54, 96), dtype=np.uint8) for _ in range(4)]
    frames = [pictures[shot] for shot in (0, 1, 1, 0, 2, 3, 2) for _ in range(int(rng.integers(2, 20)))]
    whole = DifferenceDetector()
    for small in frames:
        whole.add(None, small)
    for _ in range(20):
        edges = sorted({0, len(frames), *rng.integers(0, len(frames), int(rng.integers(1, 12))).tolist()})
        joined = DifferenceDetector()
        for first, after in pairwise(edges):
            part = DifferenceDetector()
            for small in frames[first:after]:
                part.add(None, small)
            joined.join(part.differences())
        assert joined.differences().changes.tolist() == whole.differences().changes.tolist()
        assert joined.differences().across_flash.tolist() == whole.differences().across_flash.tolist()
        assert joined.cuts() == whole.cuts()


def test_a_film_without_times_is_not_decoded_in_stretches(films):
    assert "time" in why_not_in_stretches(films["raw.h264"])
    whole_film = (-np.inf, np.inf)
    assert list(read_stretch(films["raw.h264"], whole_film, [(None, None)], [], REQUESTS[:1])) == []


def test_a_usual_film_can_be_decoded_in_stretches(films):
    assert why_not_in_stretches(films["no_b.mp4"]) == ""


def test_damage_ends_a_stretch_and_costs_no_window(films, tmp_path):
    path = damaged(films["no_b.mp4"], tmp_path)
    results, measured, _ = in_stretches(path, WINDOWS)
    assert joined_shots(measured) is None
    for number, alone in read_windows(path, WINDOWS, REQUESTS):
        assert_same(results[number], alone)
