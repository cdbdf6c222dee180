"""Files that state times of decoding as those of presentation: pictures come in the order of display."""

from pathlib import Path

import numpy as np
import pytest

from obygaze_features.video import display_order, index, read_frames, uniform
from obygaze_features.video.display_order import number_frames
from tests.video.conftest import draw, numbers_of, remux, spoiled
from tests.video.encoding import encode
from tests.video.inserting import with_wrong_counter
from tests.video.joining import X264, X265, joined

CODECS = {"h264": {"options": X264}, "hevc": {"codec": "libx265", "options": X265}}
PICTURES = 60


def as_decoded(packets):
    """State the times of decoding as those of presentation, as recorders do that do not know of B-frames."""
    first = packets[0].dts
    for packet in packets:
        packet.pts = packet.dts = packet.dts - first
    return packets


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Make films of numbered pictures whose stamps are times of decoding."""
    folder = tmp_path_factory.mktemp("recordings")

    def make(codec: str, suffix: str, first: int = 0) -> Path:
        film = folder / f"{codec}-{first}{suffix}"
        if not film.exists():
            times = range(first, first + PICTURES)
            right = encode(folder / "right.mp4", map(draw, times), times=times, **CODECS[codec])
            remux(right, film, as_decoded)
        return film

    return make


def check_order(film):
    frames = read_frames(film, uniform(PICTURES))
    assert numbers_of(frames.images) == list(range(PICTURES))
    assert (np.diff(frames.time_s) > 0).all()


@pytest.mark.parametrize("suffix", [".ts", ".mp4", ".mkv", ".flv"])
@pytest.mark.parametrize("codec", CODECS)
def test_pictures_are_in_the_order_of_display(recording, codec, suffix):
    check_order(recording(codec, suffix))


@pytest.mark.parametrize("codec", CODECS)
def test_a_packet_that_is_flagged_changes_no_order(recording, tmp_path, codec):
    film = tmp_path / "film.ts"
    film.write_bytes(with_wrong_counter(recording(codec, ".ts").read_bytes(), 31))
    check_order(film)


def test_pictures_of_joined_recordings_are_in_the_order_of_display(recording, tmp_path):
    film = joined(tmp_path / "film.ts", [recording("h264", ".ts"), recording("h264", ".ts", 100)])
    frames = read_frames(film, uniform(2 * PICTURES))
    assert numbers_of(frames.images) == [*range(PICTURES), *range(100, 100 + PICTURES)]


@pytest.mark.parametrize("right_first", [False, True])
def test_one_part_of_a_joined_film_may_state_times_of_decoding(recording, tmp_path, right_first):
    first, second = (0, 100) if right_first else (100, 0)
    times = range(first, first + PICTURES)
    right = encode(tmp_path / "right.ts", map(draw, times), times=times, **CODECS["h264"])
    parts = sorted([(first, right), (second, recording("h264", ".ts", second))])
    film = joined(tmp_path / "film.ts", [part for _, part in parts])
    frames = read_frames(film, uniform(2 * PICTURES))
    assert numbers_of(frames.images) == [*range(PICTURES), *range(100, 100 + PICTURES)]


def test_a_span_has_its_own_pictures(recording):
    film = recording("h264", ".ts")
    whole = read_frames(film, uniform(PICTURES))
    frames = read_frames(film, uniform(10), start_s=0.8, end_s=1.6)
    assert numbers_of(frames.images) == frames.index.tolist()
    assert np.array_equal(frames.time_s, whole.time_s[frames.index])


def test_pictures_that_are_reordered_late_are_found_by_the_first_that_steps_back(recording, monkeypatch):
    """The groups that are decoded at the beginning hold still pictures, which need no reordering."""
    monkeypatch.setattr(index, "_tables", {})
    monkeypatch.setattr(index, "reorders", lambda *_: False)
    for method in ("sparse", "sequential"):
        if method == "sequential":
            monkeypatch.setattr(index, "_tables", {})
            monkeypatch.setattr(index, "_why_unsafe", lambda *_, **__: "switched off")
        frames = read_frames(recording("hevc", ".ts"), uniform(PICTURES))
        assert numbers_of(frames.images) == list(range(PICTURES))


def test_numbers_that_are_counted_are_not_given_after_an_error_unsaid(recording, tmp_path, monkeypatch):
    monkeypatch.setattr(index, "_tables", {})
    monkeypatch.setattr(index, "reorders", lambda *_: False)
    monkeypatch.setattr(index, "_why_unsafe", lambda *_, **__: "switched off")
    film = spoiled(recording("h264", ".mkv"), tmp_path / "film.mkv", [31])
    for start_s in (0.0, 1.6):
        frames = read_frames(film, uniform(20), start_s=start_s)
        numbers = numbers_of(frames.images)
        assert numbers == sorted(numbers)
        assert frames.status == "partial" or numbers == frames.index.tolist()


def test_an_order_that_cannot_be_examined_for_damage_is_taken_as_reordered(recording, monkeypatch):
    def damaged(packets):
        yield from (next(packets) for _ in range(20))
        raise display_order.FFmpegError(1, "damaged")

    stamped = display_order.number_packets
    monkeypatch.setattr(display_order, "number_packets", lambda packets: damaged(stamped(packets)))
    assert display_order.reorders(recording("h264", ".ts"), np.arange(PICTURES) == 0)


class Frame:
    """A frame that is labelled with its packet."""

    def __init__(self, packet: int | None) -> None:
        self.pts = packet


@pytest.mark.parametrize(
    ("packets", "numbers"),
    [
        ([0, 1, 2, 3], [0, 1, 2, 3]),
        ([0, 2, 3], [0, 2, 3]),  # one is missing, and the others keep their numbers
        ([0, 2, 1, 4, 3], [0, 1, 2, 3, 4]),
        ([0, 1, 2, 5, 3, 4], [0, 1, 2, 3, 4, 5]),
        ([], []),
    ],
)
def test_frames_are_counted_from_the_first_label_that_steps_back(packets, numbers):
    frames = number_frames(map(Frame, packets), {packet: packet for packet in range(9)}, rising=True)
    assert [number for number, *_ in frames] == numbers


def test_labels_may_step_back_where_stamps_do():
    frames = number_frames(map(Frame, [0, 2, 1]), {0: 0, 2: 1, 1: 2}, rising=False)
    assert [number for number, *_ in frames] == [0, 1, 2]
