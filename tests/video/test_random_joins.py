"""Films joined at random: the picture at a time is the one whose number belongs there, or it is said."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.video import at, probe, read_frames, uniform
from tests.video.conftest import numbers_of
from tests.video.joining import KINDS, joined, part

STEP_S = 1 / 25
LENGTHS = (1, 2, 13, 30, 45)
STARTS_S = (0.0, 0.2, 7.0, 100.0, 3999.0)
PACKET_BYTES = {"ts": 188, "vob": 2048, "mpg": 2048}
PART = 80
"""The first picture of the n-th part has the number n times this."""
OFFSET_FORMATS = ("vob", "mpg", ".ts", "mkv")
"""Containers that keep a start of times."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Encode each part once: kind, length, start in seconds, number of its first picture."""
    folder = tmp_path_factory.mktemp("parts")
    made = dict[tuple[str, int, float, int], Path]()

    def make(kind: str, count: int, start_s: float, first: int) -> Path:
        key = kind, count, start_s if kind.endswith(OFFSET_FORMATS) else 0.0, first
        if key not in made:
            made[key] = part(folder / f"{len(made)}-{kind}", first, count, key[2])
        return made[key]

    return make


@st.composite
def joins(draw):
    """Draw a kind, parts of it, and bytes cut off the first, in a stream of packets."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    n_parts = 2 if kind.endswith(("mkv", "webm", "mp4")) else draw(st.integers(2, 3))
    lengths = draw(st.lists(st.sampled_from(LENGTHS), min_size=n_parts, max_size=n_parts))
    if max(lengths) <= 2:  # FFmpeg guesses other rates
        lengths[0] = 13
    if kind == "hevc.mkv":  # x265 has other settings for two pictures, and Matroska keeps those of the first
        lengths = [max(count, 13) for count in lengths]
    starts = draw(st.lists(st.sampled_from(STARTS_S), min_size=n_parts, max_size=n_parts))
    suffix = kind.rpartition(".")[2]
    packet_bytes = PACKET_BYTES.get(suffix, 0) if lengths[0] > 13 else 0
    cut_bytes = draw(st.integers(0, 40)) * packet_bytes % (8 * 1024)
    return kind, lengths, starts, cut_bytes


@pytest.mark.long
@settings(max_examples=300)
@given(join=joins())
def test_pictures_of_joined_files_are_those_of_their_times_or_it_is_noted(parts, tmp_path_factory, join):
    kind, lengths, starts, cut_bytes = join
    files = []
    expected = []
    for n, (count, start_s) in enumerate(zip(lengths, starts, strict=True)):
        files.append(parts(kind, count, start_s, PART * n))
        expected += range(PART * n, PART * n + count)
    path = joined(tmp_path_factory.mktemp("joined") / f"film-{kind}", files, cut_bytes)
    try:
        frames = read_frames(path, at(range(probe(path).frames)))
    except VideoError:
        frames = read_frames(path, uniform(len(expected)))
    result = numbers_of(frames.images)
    assert_order_of(expected, result)
    _, first_rows = np.unique(frames.index, return_index=True)
    times_s = frames.time_s[first_rows]
    assert (np.diff(times_s) > 0).all() or says_estimates(frames)
    if frames.status == "ok" and not cut_bytes:
        assert result == expected
        if gap_free(starts, lengths) and min(lengths) > 1:  # behind one picture a step of two is no sign
            line_s = frames.time_s[0] + np.arange(len(result)) * STEP_S
            assert np.allclose(frames.time_s, line_s, rtol=0, atol=0.002) or says_estimates(frames)
    is_damaged = frames.status == "partial" or (cut_bytes and "damaged" in frames.why_sequential)
    assert is_damaged or says_estimates(frames) or are_evenly_spaced(result, frames.time_s)
    if len(frames) and np.isfinite(frames.time_s).all():
        middle = len(frames) // 2
        time_s = frames.time_s[middle]
        one = read_frames(path, uniform(1), start_s=time_s - 1e-4, end_s=time_s + 1e-4)
        assert numbers_of(one.images) == [result[middle]] or one.status == "partial"


def assert_order_of(expected: list[int], result: list[int]) -> None:
    """Assert that all pictures found are expected ones, and come in their order."""
    distinct = list(dict.fromkeys(result))
    assert [number for number in expected if number in distinct] == distinct


def are_evenly_spaced(numbers: list[int], times_s: NDArray[np.float64]) -> bool:
    """Return whether the pictures of each part lie one step apart, by their numbers."""
    offsets_s = np.array(times_s) - np.array(numbers) * STEP_S
    parts = np.array(numbers) // PART
    return all(np.ptp(offsets_s[parts == part]) < 0.002 for part in np.unique(parts))


def gap_free(starts: list[float], lengths: list[int]) -> bool:
    """Return whether no part starts later than the one before it ends: then the line has no gap."""
    ends = [start + count * STEP_S for start, count in zip(starts, lengths, strict=True)]
    return all(later <= end for later, end in zip(starts[1:], ends, strict=False))


def says_estimates(frames) -> bool:
    """Return whether a note says that times are estimates, or by a rate."""
    return any("estimates" in note or "frames a second" in note for note in frames.notes)
