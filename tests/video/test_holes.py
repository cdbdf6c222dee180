"""A video that lacks pictures in the middle is no whole one, whatever its container counts."""

from pathlib import Path

import av
import numpy as np
import pytest

from obygaze_features.video import probe, read_frames, read_windows, uniform
from tests.video.conftest import remux
from tests.video.encoding import encode

RATE = 24
"""Pictures of a second."""


def write_pictures(path: Path, codec: str, moments: list[int]) -> Path:
    """Write pictures at these moments (in frames of a steady rate), a key frame each half second."""
    pictures = np.random.default_rng(0).integers(0, 255, (len(moments), 48, 64, 3), np.uint8)
    options = {"g": "12", "crf": "40", "cpu-used": "8"}
    return encode(path, pictures, codec, rate=RATE, times=moments, options=options)


def without_pictures(path: Path, source: Path, start_s: float, end_s: float) -> Path:
    """Copy a video without the packets of a time, as a lost block leaves it."""

    def cut(packets):
        return [packet for packet in packets if not start_s <= packet.pts * packet.time_base < end_s]

    return remux(source, path, cut)


@pytest.fixture(scope="module", params=[("libvpx-vp9", ".webm"), ("libx265", ".mkv")], ids=["VP9", "HEVC"])
def film_with_hole(request, tmp_path_factory) -> Path:
    """A film of ten seconds, 24 pictures each, without the pictures from 4 to 6.5 s."""
    codec, suffix = request.param
    folder = tmp_path_factory.mktemp("holes")
    whole = write_pictures(folder / f"whole{suffix}", codec, list(range(240)))
    assert read_frames(whole, uniform(8)).status == "ok"
    return without_pictures(folder / f"hole{suffix}", whole, start_s=4, end_s=6.5)


def test_a_film_with_a_hole_is_partial_and_says_where_the_hole_is(film_with_hole):
    """Of the film's ten seconds, the pictures from 4 to 6.5 s are missing."""
    frames = read_frames(film_with_hole, uniform(8))

    assert frames.status == "partial"
    assert "no pictures for 2.5" in frames.notes[0]
    assert "no pictures for 2.5" in probe(film_with_hole).damage
    (hole,) = frames.without_pictures_s
    a_picture_s = 0.05  # a little more than 1/24 s
    assert hole == pytest.approx((4.0, 6.5), abs=a_picture_s)


def test_only_spans_that_touch_the_hole_are_partial(film_with_hole):
    """The film has no pictures from 4 to 6.5 s. Each span says which part of that hole it has.

    The ends of that part are known to a picture, which lasts 1/24 s.
    """
    spans = [(1, 3), (2, 6), (3, 4.6), (7, 9)]
    two_frames_as_they_are = (uniform(2), lambda frame: frame)

    frames_of_span = {}
    for number, (frames,) in read_windows(film_with_hole, spans, [two_frames_as_they_are]):
        frames_of_span[spans[number]] = frames

    for span, part_of_hole in [((2, 6), (4.0, 6.0)), ((3, 4.6), (4.0, 4.6))]:
        assert frames_of_span[span].status == "partial"
        (hole,) = frames_of_span[span].without_pictures_s
        assert hole == pytest.approx(part_of_hole, abs=0.05)
    for span in [(1, 3), (7, 9)]:
        assert frames_of_span[span].status == "ok"
        assert not frames_of_span[span].without_pictures_s


def test_every_stretch_without_pictures_is_listed(tmp_path):
    """Two holes are cut into a film of ten seconds: from 2 to 3 s and from 5 to 6.5 s.

    The note tells of one hole, and counts the other. An end of a hole is known to a picture (1/24 s).
    """
    whole = write_pictures(tmp_path / "whole.mkv", "libx265", moments=list(range(240)))
    with_one_hole = without_pictures(tmp_path / "one.mkv", whole, start_s=2, end_s=3)
    with_two_holes = without_pictures(tmp_path / "two.mkv", with_one_hole, start_s=5, end_s=6.5)

    frames = read_frames(with_two_holes, uniform(8), start_s=1.0, end_s=9.0)

    first, second = frames.without_pictures_s
    assert first == pytest.approx((2.0, 3.0), abs=0.05)
    assert second == pytest.approx((5.0, 6.5), abs=0.05)
    assert "and 1 times more" in frames.notes[0]


def test_a_span_that_goes_on_behind_the_video_has_no_pictures_there(tmp_path):
    """240 pictures at 24 a second end at 10 s."""
    film = write_pictures(tmp_path / "film.mkv", "libx264", moments=list(range(240)))

    over_the_end = read_frames(film, uniform(8), start_s=6.0, end_s=14.0)
    up_to_the_end = read_frames(film, uniform(8), start_s=6.0, end_s=10.0)

    assert over_the_end.status == "partial"
    (stretch,) = over_the_end.without_pictures_s
    assert stretch == pytest.approx((10.0, 14.0), abs=0.05)
    assert up_to_the_end.without_pictures_s == ()


def test_pictures_that_cannot_be_decoded_are_missing_too(tmp_path):
    """The file lists a picture for every 1/24 s, but the bytes of those from 4 to 6.5 s are zeros.

    The hole may be a few pictures longer or shorter, as pictures beside it refer to lost ones: .2 s are 5.
    """
    whole = write_pictures(tmp_path / "whole.mp4", "libx264", moments=list(range(240)))
    data = bytearray(whole.read_bytes())
    with av.open(str(whole)) as container:
        for packet in container.demux(video=0):
            if packet.size and 4 <= packet.pts * packet.time_base < 6.5:
                data[packet.pos : packet.pos + packet.size] = bytes(packet.size)
    damaged = tmp_path / "damaged.mp4"
    damaged.write_bytes(data)

    frames = read_frames(damaged, uniform(8))

    assert frames.status == "partial"
    (stretch,) = frames.without_pictures_s
    assert stretch == pytest.approx((4.0, 6.5), abs=0.2)


def test_half_a_second_without_pictures_is_a_hole_of_a_film_of_two_seconds(tmp_path):
    """Of 48 pictures, 24 a second, the 12 from 0.5 to 1 s are missing: 36 are left."""
    whole = write_pictures(tmp_path / "whole.mkv", "libx265", moments=list(range(48)))
    film_with_hole = without_pictures(tmp_path / "hole.mkv", whole, start_s=0.5, end_s=1.0)

    frames = read_frames(film_with_hole, uniform(8))

    assert frames.status == "partial"
    assert frames.total == 36


@pytest.mark.parametrize(
    ("suffix", "moments"),
    [
        pytest.param(".mkv", [0, 70, 72, 130, 135, 170, 220], id="slides"),
        pytest.param(".mkv", list(range(0, 2400, 240)), id="a slide every ten seconds"),
        pytest.param(".mp4", [*range(100), *range(190, 240)], id="a held picture, in a table of frames"),
    ],
)
def test_long_pauses_between_slides_are_no_holes(tmp_path, suffix, moments):
    """A picture may be shown for seconds on purpose, as a slide is; then no picture is missing.

    `moments` are the times at which a picture begins, in steps of 1/24 s.
    """
    film = write_pictures(tmp_path / f"film{suffix}", "libx264", moments)

    frames = read_frames(film, uniform(4))

    assert frames.status == "ok"
