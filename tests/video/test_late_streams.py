"""Streams that appear on the way, as stations, discs and cameras write them: the film is read."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.errors import VideoError
from obygaze_features.video import (
    SoundTrack,
    frame_times,
    index,
    late_streams,
    probe,
    read_frames,
    source,
    uniform,
)
from obygaze_features.video.index import index_packets
from obygaze_features.video.packets import ListedStream, demux
from tests.video import inserting
from tests.video.conftest import draw, numbers_of
from tests.video.encoding import encode
from tests.video.joining import FRAGMENTS, X264, X265, joined
from tests.video.sounding import RATE, clicks, write_film

PROBED_BYTES = 100_000
PICTURES = 220
FINE_X264 = X264 | {"crf": "4"}
FINE_X265 = X265 | {"crf": "4"}
FINE_MPEG = {"g": "9", "bf": "2", "flags": "+qscale", "global_quality": "236"}
FILMS: dict[str, dict[str, object]] = {
    "mpeg2.vob": {"codec": "mpeg2video", "options": FINE_MPEG},
    "mpeg1.mpg": {"codec": "mpeg1video", "options": FINE_MPEG},
    "mpeg2.ts": {"codec": "mpeg2video", "options": FINE_MPEG},
    "h264.ts": {"options": FINE_X264},
    "hevc.ts": {"codec": "libx265", "options": FINE_X265},
    "h264.m2ts": {"options": FINE_X264},
    "h264.flv": {"options": FINE_X264},
    "fragments.mp4": {"options": FINE_X264, "container_options": FRAGMENTS},
}
INTO = {
    ".vob": (inserting.into_program, inserting.PROGRAM_KINDS),
    ".mpg": (inserting.into_program, inserting.PROGRAM_KINDS),
    ".ts": (inserting.into_transport, inserting.TRANSPORT_KINDS),
    ".m2ts": (inserting.into_transport, inserting.TRANSPORT_KINDS),
    ".flv": (inserting.into_flash, inserting.FLASH_KINDS),
    ".mp4": (inserting.into_fragments, inserting.BOX_KINDS),
}


QUICK = {"mpeg2.vob", "h264.ts", "h264.flv", "fragments.mp4"}
"""Films of which the quick tests have every kind in the middle, and the long ones at the other places."""


def cases():
    """Give every kind in every film at three places; those of other films than a few by night."""
    for name in FILMS:
        for kind, place in product(INTO[Path(name).suffix][1], inserting.PLACES):
            marks = []
            if place != 0.5 or name not in QUICK:
                marks.append(pytest.mark.long)
            if name not in QUICK:
                marks.append(pytest.mark.nightly)
            yield pytest.param(name, kind, place, marks=marks)


HEARD_OR_READ = {"AC-3", "second sound", "sound", "subpicture", "DVB subtitles"}
"""Kinds that FFmpeg knows as sound or subtitles by these packets."""


def noisy(number: int) -> np.ndarray:
    """Draw a picture with its number, and below it what takes many bytes."""
    picture = draw(number)
    picture[32:] = np.random.default_rng(number).integers(0, 255, picture[32:].shape, np.uint8)
    return picture


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Films of several times the bytes that are read of the beginning and of the end."""
    folder = tmp_path_factory.mktemp("large")
    made = {}

    def make(name: str) -> Path:
        if name not in made:
            made[name] = encode(folder / name, map(noisy, range(PICTURES)), **FILMS[name])
            assert made[name].stat().st_size > 900_000
        return made[name]

    return make


@pytest.fixture
def short_sight(monkeypatch):
    """FFmpeg looks through little of a file when it opens it, as it does of films of gigabytes."""
    monkeypatch.setattr(source, "OPTIONS", source.OPTIONS | {"probesize": str(PROBED_BYTES)})
    monkeypatch.setattr(late_streams, "PROBED_BEHIND", PROBED_BYTES)


@pytest.mark.parametrize(("name", "kind", "place"), [*cases()])
@pytest.mark.usefixtures("short_sight")
def test_a_packet_of_a_new_stream_costs_no_picture(large, tmp_path, name, kind, place):
    insert, _ = INTO[Path(name).suffix]
    film = tmp_path / name
    film.write_bytes(insert(large(name).read_bytes(), place, kind))
    frames = read_frames(film, uniform(16))
    assert (frames.total, frames.status) == (PICTURES, "ok")
    assert numbers_of(frames.images) == [number * PICTURES // 16 for number in range(16)]
    late = index_packets(film).late
    assert all(0.9 * place < stream.byte / film.stat().st_size < 1.1 * place for stream in late)
    if kind in HEARD_OR_READ:
        assert late
        assert probe(film).besides


@pytest.mark.parametrize("name", ["h264.ts", "h264.m2ts"])
@pytest.mark.usefixtures("short_sight")
def test_a_packet_that_no_map_announces_costs_nothing(large, tmp_path, name):
    film = tmp_path / name
    film.write_bytes(inserting.into_transport_unannounced(large(name).read_bytes(), 0.5, ""))
    frames = read_frames(film, uniform(8))
    assert (frames.total, frames.status) == (PICTURES, "ok")
    assert index_packets(film).late == ()


@pytest.mark.usefixtures("short_sight")
def test_a_film_with_very_many_new_streams_is_read_with_few_notes(large, tmp_path):
    data = large("mpeg2.vob").read_bytes()
    pack = data.index(inserting.PACK, len(data) // 2)
    private_stream = 0xBD  # in which discs number their tracks of sound from 0x80 on
    many = b"".join(
        inserting.in_mpeg2_program(private_stream, bytes([number, 1, 0, 1])) for number in range(0x80, 0x9F)
    )
    film = tmp_path / "film.vob"
    film.write_bytes(data[:pack] + many + data[pack:])
    frames = read_frames(film, uniform(4))
    assert (frames.total, frames.status) == (PICTURES, "ok")
    assert len(index_packets(film).late) > 20
    assert len(frames.notes) < 4


@pytest.mark.parametrize("service", ["1", "2"])
def test_pictures_of_another_stream_that_a_new_map_names_are_said_to_be_missing(tmp_path, service):
    first = {"mpegts_start_pid": "256"}
    second = {"mpegts_start_pid": "512", "mpegts_service_id": service}
    second |= {"mpegts_pmt_start_pid": "4097"}
    parts = [
        encode(tmp_path / "a.ts", map(draw, range(50)), options=X264, container_options=first),
        encode(
            tmp_path / "b.ts",
            map(draw, range(100, 150)),
            times=range(50, 100),
            options=X264,
            container_options=second,
        ),
    ]
    frames = read_frames(joined(tmp_path / "film.ts", parts), uniform(10))
    assert frames.status == "partial"
    assert numbers_of(frames.images) == list(range(0, 50, 5))
    assert any(f"{parts[0].stat().st_size // 1000}," in note for note in frames.notes)  # the byte where


def test_a_film_that_ends_with_the_start_of_a_packet_is_searched_to_its_end(tmp_path):
    """A recording breaks off behind the length of a packet of sound, before its header."""
    film = tmp_path / "broken-off.vob"
    film.write_bytes(b"\x00\x00\x01\xbd\x07\xec")
    sound = ListedStream(place=1, id=0x80, kind="audio", codec="ac3")
    (late,) = late_streams.late_streams([film], {"mpeg"}, [sound])
    assert late.byte == -1


# --- what begins late is heard
# ------------------------------------------------------------------------------
@pytest.fixture
def flash(tmp_path):
    """A Flash film with a click in each second, and the same without sound in its first 3 of 6 seconds."""
    whole = write_film(
        tmp_path / "whole.flv",
        {"": clicks(np.arange(0.5, 6), 6.0)},
        seconds=6.0,
        pictures=map(noisy, range(150)),
        wide_high=(96, 64),
    )
    data = whole.read_bytes()
    sound = 8
    script = 18
    settings_of_sound = None
    late_tags = []
    has_begun = False
    for tag in inserting.flash_tags(data):
        kind = tag[0]
        time_ms = int.from_bytes(tag[4:7], "big")
        if kind == sound:
            settings_of_sound = settings_of_sound or tag
            if time_ms < 3000:
                continue
            if not has_begun:
                late_tags.append(settings_of_sound)
                has_begun = True
        if kind != script:
            late_tags.append(tag)
    film = tmp_path / "late.flv"
    head = data[:4] + b"\x01" + data[5:13]  # it announces pictures alone
    film.write_bytes(head + b"".join(late_tags))
    return whole, film


@pytest.mark.usefixtures("short_sight")
def test_sound_that_begins_late_is_heard_where_it_is(flash):
    whole, film = flash
    assert probe(film).frames == probe(whole).frames == 150
    assert "sound" in probe(film).besides
    (stream,) = index_packets(film).late
    assert (stream.kind, stream.codec) == ("audio", "aac")
    heard, missing_s = SoundTrack(film).parts(0.0, 6.0, [], rate=RATE)
    right, _ = SoundTrack(whole).parts(0.0, 6.0, [], rate=RATE)
    assert missing_s == pytest.approx(3.0, abs=0.1)
    assert np.abs(heard[0, : 3 * RATE]).max() < 0.01
    moved_s = frame_times(film)[0] - frame_times(whole)[0]  # a clock begins with what comes first
    for second in (3, 4, 5):
        inside = slice(second * RATE + RATE // 4, (second + 1) * RATE)
        click = np.abs(heard[0, inside]).argmax()
        right_click = np.abs(right[0, inside]).argmax()
        assert (click - right_click) / RATE == pytest.approx(moved_s, abs=0.001)
    with pytest.raises(VideoError):
        SoundTrack(film).parts(0.0, 2.0, [], rate=RATE)


@pytest.mark.usefixtures("short_sight")
def test_sound_that_begins_too_far_behind_is_refused_with_its_byte(flash, monkeypatch):
    _, film = flash
    monkeypatch.setattr(late_streams, "MOST_PROBED", 2 * PROBED_BYTES)
    (stream,) = index_packets(film).late
    with pytest.raises(VideoError, match=f"{stream.byte:,}"):
        SoundTrack(film)
    assert read_frames(film, uniform(3)).total == 150


@pytest.mark.usefixtures("short_sight")
def test_a_track_from_the_beginning_is_not_left_for_one_that_begins_later(tmp_path):
    tracks = {"a": clicks([0.5], 40.0), "b": clicks(np.arange(0.25, 40, 0.5), 40.0)}
    film = write_film(tmp_path / "film.vob", tracks, seconds=40.0, codec="ac3")
    data = film.read_bytes()
    usual, _ = SoundTrack(film, "0").parts(0.0, 40.0, [], rate=RATE)
    packs = inserting.program_packs(data)
    kept = [
        pack
        for number, pack in enumerate(packs)
        if 0.2 < number / len(packs) < 0.3 or inserting.inner_stream(pack) != 0x81
    ]
    late = tmp_path / "late.vob"
    late.write_bytes(b"".join(kept))
    assert [stream.kind for stream in index_packets(late).late] == ["audio"]
    np.testing.assert_array_equal(SoundTrack(late).parts(0.0, 40.0, [], rate=RATE)[0], usual)
    _, missing_s = SoundTrack(late, "1").parts(0.0, 40.0, [], rate=RATE)
    assert missing_s == pytest.approx(0.9 * 40, abs=1.5)


@pytest.mark.usefixtures("short_sight")
def test_pictures_that_begin_late_are_read(large, tmp_path):
    tags = inserting.flash_tags(large("h264.flv").read_bytes())
    noise = np.random.default_rng(0).normal(0, 0.1, 20 * RATE).astype(np.float32)
    sound = write_film(tmp_path / "a.flv", {"": noise}, seconds=20.0).read_bytes()
    ahead = [tag for tag in inserting.flash_tags(sound) if tag[0] == 8]
    film = tmp_path / "film.flv"
    film.write_bytes(sound[:4] + b"\x04" + sound[5:13] + b"".join([*ahead, *tags]))
    assert sum(map(len, ahead)) > PROBED_BYTES
    frames = read_frames(film, uniform(4))
    assert frames.total == PICTURES
    assert numbers_of(frames.images) == [number * PICTURES // 4 for number in range(4)]


# --- the door of packets
# ------------------------------------------------------------------------------
class Container:
    """A file whose reader fails on the way, for a reason of its own, with packets left or at its end."""

    def __init__(self, packets: list[str], fails_after: int) -> None:
        self.left = packets
        self.fails_after = fails_after

    def demux(self, *_):
        while self.left:
            if not self.fails_after:
                self.fails_after = -1
                raise IndexError
            self.fails_after -= 1
            yield self.left.pop(0)
        if not self.fails_after:
            self.fails_after = -1
            raise IndexError


@pytest.mark.parametrize("fails_after", [0, 2, 3])
def test_the_end_of_a_file_is_told_from_an_error_by_asking_for_more(fails_after):
    assert list(demux(Container(["a", "b", "c"], fails_after))) == ["a", "b", "c"]


def test_an_error_that_is_raised_again_and_again_is_no_end_of_a_file():
    class Broken:
        def demux(self, *_):
            raise IndexError

    with pytest.raises(IndexError):
        list(demux(Broken()))


def test_only_errors_of_ffmpeg_are_called_damage(films, monkeypatch):
    def fault(*_):
        raise AttributeError("mine")

    monkeypatch.setattr(index, "note_side_data", fault)
    with pytest.raises(AttributeError, match="mine"):
        probe(films["b1.mp4"])
