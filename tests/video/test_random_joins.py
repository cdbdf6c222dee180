"""Films joined at random: the picture at a time is the one whose number belongs there, or it is said."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obygaze_features.errors import VideoError
from obygaze_features.video import at, probe, read_frames, uniform
from tests.video.conftest import numbers_of
from tests.video.joining import KINDS, joined, part

STEP_S = 1 / 25
LENGTHS = (1, 2, 13, 30, 45)
STARTS_S = (0.0, 0.2, 7.0, 100.0, 3999.0)
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
    lengths = lengths if max(lengths) > 2 else [13, *lengths[1:]]  # else FFmpeg guesses other rates
    if kind == "hevc.mkv":  # x265 has other settings for two pictures, and Matroska keeps those of the first
        lengths = [max(count, 13) for count in lengths]
    starts = draw(st.lists(st.sampled_from(STARTS_S), min_size=n_parts, max_size=n_parts))
    packet = {"ts": 188, "vob": 2048, "mpg": 2048}.get(kind[-3:].strip("."), 0) if lengths[0] > 13 else 0
    cut = draw(st.integers(0, 40)) * packet % (8 * 1024)
    return kind, lengths, starts, cut


@pytest.mark.long
@settings(max_examples=300)
@given(join=joins())
def test_a_picture_is_the_one_that_its_time_says_or_it_is_said(parts, tmp_path_factory, join):
    kind, lengths, starts, cut = join
    every = [
        parts(kind, count, start, 80 * n)
        for n, (count, start) in enumerate(zip(lengths, starts, strict=True))
    ]
    path = joined(tmp_path_factory.mktemp("joined") / f"film-{kind}", every, cut)
    expected = [80 * n + number for n, count in enumerate(lengths) for number in range(count)]
    try:
        frames = read_frames(path, at(range(probe(path).frames)))
    except VideoError:
        frames = read_frames(path, uniform(len(expected)))
    found = numbers_of(frames.images)
    distinct = list(dict.fromkeys(found))
    assert [number for number in expected if number in distinct] == distinct  # in the order of the parts
    times = frames.time_s[np.unique(frames.index, return_index=True)[1]]
    assert (np.diff(times) > 0).all() or said(frames)
    if frames.status == "ok" and not cut:
        assert found == expected
        if gap_free(starts, lengths) and min(lengths) > 1:  # behind one picture a step of two is no sign
            line = np.arange(len(found)) * STEP_S
            assert np.abs(frames.time_s - frames.time_s[0] - line).max() < 0.002 or said(frames)
    shown = np.array(frames.time_s)
    numbers = np.array(found)
    for n in range(len(lengths)):
        own = numbers // 80 == n
        late = shown[own] - numbers[own] * STEP_S
        damaged = frames.status == "partial" or (cut and "damaged" in frames.why_sequential)
        assert not own.any() or np.ptp(late) < 0.002 or damaged or said(frames)
    if len(frames) and np.isfinite(frames.time_s).all():
        middle = len(frames) // 2
        one = read_frames(
            path, uniform(1), start_s=frames.time_s[middle] - 1e-4, end_s=frames.time_s[middle] + 1e-4
        )
        assert numbers_of(one.images) == [found[middle]] or one.status == "partial"


def gap_free(starts: list[float], lengths: list[int]) -> bool:
    """Return whether no part starts later than the one before it ends: then the line has no gap."""
    ends = [start + count * STEP_S for start, count in zip(starts, lengths, strict=True)]
    return all(later <= end for later, end in zip(starts[1:], ends, strict=False))


def said(frames) -> bool:
    """Return whether a note says that times are estimates, or by a rate."""
    return any("estimates" in note or "frames a second" in note for note in frames.notes)
