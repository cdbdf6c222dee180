"""Films joined at random: the picture at a time is the one whose number belongs there, or it is said."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.video import Frames, at, probe, read_frames, uniform
from tests.video.conftest import read_drawn_numbers
from tests.video.joining import SETTINGS_OF_KINDS, encode_part, joined_byte_by_byte


@dataclass(frozen=True)
class Join:
    """Parts of a film that are joined byte by byte."""

    kind: str
    """Codec and container."""
    lengths: list[int]
    """Pictures of each part."""
    starts_s: list[float]
    """At which time each part says that it begins."""
    cut_bytes: int
    """How many bytes are cut off the first part, in a stream of packets."""

    @property
    def numbers(self) -> list[int]:
        """The numbers of the pictures of all parts."""
        numbers: list[int] = []
        for part_number, count in enumerate(self.lengths):
            numbers += range(PART * part_number, PART * part_number + count)
        return numbers

    @property
    def is_without_gaps(self) -> bool:
        """Whether no part starts later than the one before it ends."""
        ends = [start + count * STEP_S for start, count in zip(self.starts_s, self.lengths, strict=True)]
        return all(start <= end for start, end in zip(self.starts_s[1:], ends, strict=False))


STEP_S = 1 / 25
SHORT = 13
"""Pictures of the shortest part that has more than one group of them."""
LENGTHS = (1, 2, SHORT, 30, 45)
STARTS_S = (0.0, 0.2, 7.0, 100.0, 3999.0)
PACKET_BYTES = {"ts": 188, "vob": 2048, "mpg": 2048}
MAX_CUT_BYTES = 8 * 1024
PART = 80
"""The first picture of the n-th part has the number n times this."""
OFFSET_FORMATS = ("vob", "mpg", ".ts", "mkv")
"""Containers that keep a start of times."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Encode parts of films, each once: kind, length, start in seconds, number of its first picture."""
    folder = tmp_path_factory.mktemp("parts")
    path_of_part = dict[tuple[str, int, float, int], Path]()

    def make(kind: str, count: int, start_s: float, first: int) -> Path:
        if not kind.endswith(OFFSET_FORMATS):
            start_s = 0.0
        key = kind, count, start_s, first
        if key not in path_of_part:
            path_of_part[key] = encode_part(folder / f"{len(path_of_part)}-{kind}", first, count, start_s)
        return path_of_part[key]

    return make


@st.composite
def joins(draw):
    """Draw two or three parts of any kind, lengths and starts; a long first part may lose its end."""
    kind = draw(st.sampled_from(sorted(SETTINGS_OF_KINDS)))
    n_parts = 2 if kind.endswith(("mkv", "webm", "mp4")) else draw(st.integers(2, 3))
    lengths = draw(st.lists(st.sampled_from(LENGTHS), min_size=n_parts, max_size=n_parts))
    starts_s = draw(st.lists(st.sampled_from(STARTS_S), min_size=n_parts, max_size=n_parts))
    n_packets = draw(st.integers(0, 40))

    if max(lengths) < SHORT:  # FFmpeg guesses other rates
        lengths[0] = SHORT
    if kind == "hevc.mkv":  # x265 has other settings for two pictures, and Matroska keeps those of the first
        lengths = [max(count, SHORT) for count in lengths]
    cut_bytes = 0
    container = kind.rpartition(".")[2]
    if container in PACKET_BYTES and lengths[0] > SHORT:
        cut_bytes = n_packets * PACKET_BYTES[container] % MAX_CUT_BYTES
    return Join(kind, lengths, starts_s, cut_bytes)


@pytest.mark.long
@settings(max_examples=100)
@given(join=joins())
def test_pictures_of_joined_files_are_those_of_their_times_or_it_is_noted(parts, tmp_path_factory, join):
    """Recordings are often joined byte by byte, and then times jump or overlap.

    A random join has two or three parts of numbered pictures, with lengths and starts of their own; the end
    of the first may be cut off. Each check holds, or the film is said to be partial or its times to be
    estimates.
    """
    files = []
    for part_number, (n_pictures, start_s) in enumerate(zip(join.lengths, join.starts_s, strict=True)):
        first_number = PART * part_number
        files.append(parts(join.kind, n_pictures, start_s, first_number))
    film = joined_byte_by_byte(tmp_path_factory.mktemp("joined") / f"film-{join.kind}", files, join.cut_bytes)

    frames = read_all_frames(film, join)

    check_order(frames, join)
    check_that_times_rise(frames)
    check_that_no_picture_is_lost(frames, join)
    check_spacing(frames, join)
    check_that_a_time_gives_its_picture(film, frames)


def read_all_frames(path: Path, join: Join) -> Frames:
    """Read every picture of a film; where they cannot be counted, as many as were written."""
    try:
        return read_frames(path, at(range(probe(path).frames)))
    except VideoError:
        return read_frames(path, uniform(len(join.numbers)))


def check_order(frames: Frames, join: Join) -> None:
    """Check that all pictures found are expected ones, and come in their order."""
    distinct = list(dict.fromkeys(read_drawn_numbers(frames.images)))
    assert [number for number in join.numbers if number in distinct] == distinct


def check_that_times_rise(frames: Frames) -> None:
    """Check that times rise from picture to picture, or are said to be estimates."""
    _, first_rows = np.unique(frames.index, return_index=True)
    assert (np.diff(frames.time_s[first_rows]) > 0).all() or says_estimates(frames)


def check_that_no_picture_is_lost(frames: Frames, join: Join) -> None:
    """Check that a film that is said to be whole has all pictures, and that they are a step apart."""
    if frames.status != "ok" or join.cut_bytes:
        return
    assert read_drawn_numbers(frames.images) == join.numbers
    is_rate_known = min(join.lengths) > 1  # behind a single picture, a step of two is not noticed
    if join.is_without_gaps and is_rate_known:
        expected_s = frames.time_s[0] + np.arange(len(join.numbers)) * STEP_S
        assert np.allclose(frames.time_s, expected_s, rtol=0, atol=0.002) or says_estimates(frames)


def check_spacing(frames: Frames, join: Join) -> None:
    """Check that pictures of each part are a step apart, or that damage or estimates are noted."""
    is_damaged = frames.status == "partial" or (join.cut_bytes and "damaged" in frames.why_sequential)
    numbers = read_drawn_numbers(frames.images)
    assert is_damaged or says_estimates(frames) or are_evenly_spaced(numbers, frames.time_s)


def check_that_a_time_gives_its_picture(path: Path, frames: Frames) -> None:
    """Check that the picture in the middle is found again by its time, or that the film is partial."""
    if not len(frames) or not np.isfinite(frames.time_s).all():
        return
    middle = len(frames) // 2
    time_s = frames.time_s[middle]
    found = read_frames(path, uniform(1), start_s=time_s - 1e-4, end_s=time_s + 1e-4)
    expected = read_drawn_numbers(frames.images[middle : middle + 1])
    assert read_drawn_numbers(found.images) == expected or found.status == "partial"


def are_evenly_spaced(numbers: list[int], times_s: NDArray[np.float64]) -> bool:
    """Return whether the pictures of each part lie one step apart, by their numbers."""
    offsets_s = np.array(times_s) - np.array(numbers) * STEP_S
    parts = np.array(numbers) // PART
    return all(np.ptp(offsets_s[parts == part]) < 0.002 for part in np.unique(parts))


def says_estimates(frames: Frames) -> bool:
    """Return whether a note says that times are estimates, or by a rate."""
    return any("estimates" in note or "frames a second" in note for note in frames.notes)
