"""A video that lacks pictures in the middle is no whole one, whatever its container counts."""

from pathlib import Path

import numpy as np
import pytest

from obygaze_features.video import probe, read_frames, read_windows, uniform
from obygaze_features.video.sampling import stated_gap
from tests.video.conftest import remux
from tests.video.encoding import encode

RATE = 24
N = 240


def written(path: Path, codec: str, moments: list[int]) -> Path:
    """Write pictures at these moments (in frames of a steady rate), a key frame each half second."""
    pictures = np.random.default_rng(0).integers(0, 255, (len(moments), 48, 64, 3), np.uint8)
    options = {"g": "12", "crf": "40", "cpu-used": "8"}
    return encode(path, pictures, codec, rate=RATE, times=moments, options=options)


def without(path: Path, source: Path, start_s: float, end_s: float) -> Path:
    """Copy a video without the packets of a time, as a lost block leaves it."""

    def cut(packets):
        return [packet for packet in packets if not start_s <= packet.pts * packet.time_base < end_s]

    return remux(source, path, cut)


@pytest.mark.parametrize(("codec", "suffix"), [("libvpx-vp9", ".webm"), ("libx265", ".mkv")])
def test_a_hole_makes_the_spans_that_have_it_partial_and_says_where(tmp_path, codec, suffix):
    whole = written(tmp_path / f"whole{suffix}", codec, list(range(N)))
    assert read_frames(whole, uniform(8)).status == "ok"
    path = without(tmp_path / f"hole{suffix}", whole, 4, 6.5)
    frames = read_frames(path, uniform(8))
    assert frames.status == "partial"
    assert "no pictures for 2.5" in frames.notes[0]
    assert "no pictures for 2.5" in probe(path).damage
    assert stated_gap(frames.notes[0]) == pytest.approx((2.5, 4.0, 6.5), abs=0.05)
    assert stated_gap("the file is cut off") is None
    spans = [(1, 3), (2, 6), (3, 4.6), (7, 9)]
    windows = dict(read_windows(path, spans, [(uniform(2), lambda frame: frame)]))
    assert [windows[n][0].status for n in range(4)] == ["ok", "partial", "partial", "ok"]


def test_a_hole_of_a_short_film_is_said_too(tmp_path):
    whole = written(tmp_path / "whole.mkv", "libx265", list(range(48)))
    frames = read_frames(without(tmp_path / "hole.mkv", whole, 0.5, 1.0), uniform(8))
    assert (frames.status, frames.total) == ("partial", 36)


SLIDES = [0, 70, 72, 130, 135, 170, 220]
STILL = [*range(100), *range(190, 240)]


@pytest.mark.parametrize(
    ("suffix", "codec", "moments"),
    [(".mkv", "libx264", SLIDES), (".mkv", "libx264", list(range(0, 10 * N, N))), (".mp4", "libx264", STILL)],
    ids=["slides", "one slide each ten seconds", "a picture held on purpose, in a table of frames"],
)
def test_long_steps_that_were_meant_are_not_accused(tmp_path, suffix, codec, moments):
    assert read_frames(written(tmp_path / f"a{suffix}", codec, moments), uniform(4)).status == "ok"
