"""Times are those that a stream states, or by its rate; what players show otherwise is said."""

import struct
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from obygaze_features.video import (
    at,
    read_frames,
    uniform,
)
from tests.video.conftest import draw, numbers_of, packets_of, remux
from tests.video.encoding import encode
from tests.video.joining import KINDS, MPEG, VPX, X264, joined, part


@pytest.mark.parametrize("codec", ["libx264", "libx265"])
def test_pictures_whose_file_gives_times_of_decoding_come_in_the_order_of_the_decoder(tmp_path, codec):
    name = "h264.mkv" if codec == "libx264" else "hevc.mkv"
    film = encode(tmp_path / "a.mp4", map(draw, range(30)), **KINDS[name])
    (tmp_path / "b.mp4").write_bytes(film.read_bytes().replace(b"ctts", b"free").replace(b"edts", b"free"))
    frames = read_frames(tmp_path / "b.mp4", at(range(30)))
    assert numbers_of(frames.images) == [*range(30)]
    np.testing.assert_allclose(frames.time_s, np.arange(30) / 25, atol=0.0015)
    window = read_frames(tmp_path / "b.mp4", uniform(5), start_s=0.4, end_s=0.8)
    assert numbers_of(window.images) == [10, 12, 14, 16, 18]


@pytest.mark.parametrize("name", ["asp.avi", "h264.avi"])
def test_pictures_of_avi_that_are_reordered_begin_with_their_sound_and_that_is_said(films, name):
    """They are decoded one or two later than shown; the file's entries are a frame each, from 0 on."""
    frames = read_frames(films[name], at(range(10)))
    np.testing.assert_allclose(frames.time_s, np.arange(10) / 25, atol=0.0015)
    assert any("AVI" in note for note in frames.notes)


def test_pictures_of_vp9_that_are_not_shown_are_none(tmp_path):
    film = encode(tmp_path / "a.webm", map(draw, range(30)), "libvpx-vp9", options=VPX)
    keys = [bytes(each) for each in packets_of(film) if each.is_keyframe]
    data = film.read_bytes()
    for key in keys[1:]:
        data = data.replace(key, bytes([key[0] & ~2]) + key[1:])  # show_frame
    (tmp_path / "hidden.webm").write_bytes(data)
    left = [number for number in range(30) if number % 10 or not number]
    frames = read_frames(tmp_path / "hidden.webm", at(range(len(left))))
    assert (frames.total, frames.method, numbers_of(frames.images)) == (28, "sparse", left)
    np.testing.assert_allclose(frames.time_s, np.array(left) / 25, atol=0.0015)


def test_times_that_are_all_zero_are_by_the_rate_and_said(tmp_path):
    path = encode(tmp_path / "zero.mp4", map(draw, range(30)), options=X264 | {"bf": "0"})
    data = bytearray(path.read_bytes())
    place = data.rfind(b"stts") - 4
    data[place + 20 : place + 24] = bytes(4)
    path.write_bytes(data)
    frames = read_frames(path, at(range(30)))
    assert numbers_of(frames.images) == list(range(30))
    np.testing.assert_allclose(frames.time_s, np.arange(30) / 25)
    assert any("25 frames a second" in note for note in frames.notes)


def zero_transport_times(data: bytearray) -> None:
    """Set the times of all pictures of a transport stream to 0, in place (ISO/IEC 13818-1, 2.4.3)."""
    for packet in range(0, len(data), 188):
        has_adaptation_field = data[packet + 3] >> 5 & 1
        header = packet + 4
        if has_adaptation_field:
            header += 1 + data[packet + 4]
        begins_picture = data[packet + 1] & 0x5F == 0x41 and data[header : header + 3] == b"\0\0\1"
        if begins_picture:
            flags = data[header + 7] >> 6  # 2: when it is shown; 3: also when it is decoded
            time_starts = {2: [9], 3: [9, 14]}.get(flags, [])
            for time_start in time_starts:
                start = header + time_start
                data[start] &= 0xF1  # the upper bits of the time; marker bits stay
                data[start + 1 : start + 5] = b"\0\x01\0\x01"


def test_times_of_a_transport_stream_that_are_nearly_all_zero_are_by_the_rate(tmp_path):
    path = encode(tmp_path / "a.ts", map(draw, range(30)), "mpeg2video", options=MPEG)
    data = bytearray(path.read_bytes())
    zero_transport_times(data)
    path.write_bytes(data)
    frames = read_frames(path, at(range(30)))
    np.testing.assert_allclose(frames.time_s, np.arange(30) / 25)
    assert any("25 frames a second" in note for note in frames.notes)


def test_one_picture_at_zero_is_no_film_without_times(tmp_path):
    frames = read_frames(encode(tmp_path / "one.mkv", [draw(7)]), uniform(1))
    assert (frames.time_s.tolist(), frames.notes) == ([0.0], ())


@pytest.mark.parametrize(("odd", "noted"), [("dwell", True), ("rate", True), ("hole", True), ("torn", False)])
def test_edit_lists_that_ffmpeg_does_not_follow_are_noted(cut_film, tmp_path, odd, noted):
    data = bytearray(cut_film.read_bytes())
    place = data.index(b"elst") + 4
    assert int.from_bytes(data[place + 4 : place + 8], "big") == 1
    assert not any("edit list" in note for note in read_frames(cut_film, uniform(2)).notes)
    if odd == "hole":
        entry = bytes(data[place + 8 : place + 20])
        hole = entry[:4] + b"\xff\xff\xff\xff" + entry[8:]
        data[place + 4 : place + 8] = (3).to_bytes(4, "big")
        data[place + 20 : place + 20] = hole + entry
        for box in (b"elst", b"edts", b"trak", b"moov"):
            start = data.index(box) - 4
            data[start : start + 4] = (int.from_bytes(data[start : start + 4], "big") + 24).to_bytes(4, "big")
    elif odd == "torn":  # it ends before its entries, and the rest of its bytes are free
        data[place - 8 : place - 4] = (12).to_bytes(4, "big")
        data[place + 4 : place + 12] = (16).to_bytes(4, "big") + b"free"
    else:
        data[place + 16 : place + 20] = bytes(4) if odd == "dwell" else b"\x00\x02\x00\x00"
    path = tmp_path / "odd.mp4"
    path.write_bytes(data)
    assert any("edit list" in note for note in read_frames(path, uniform(2)).notes) == noted


@pytest.mark.parametrize("ordered", [False, True])
def test_chapters_that_players_show_in_another_order_are_noted(tmp_path, ordered):
    live = encode(tmp_path / "live.mkv", map(draw, range(30)), container_options={"live": "1"})
    chapters = bytes.fromhex("1043a770 87 45b9 84 45dd 81") + bytes([ordered])
    (tmp_path / "a.mkv").write_bytes(live.read_bytes() + chapters)
    notes = read_frames(tmp_path / "a.mkv", at(range(30))).notes
    assert any("order of their own" in note for note in notes) == ordered


@pytest.mark.parametrize(("name", "codec"), [("a.m1v", "mpeg1video"), ("a.m2v", "mpeg2video")])
def test_a_bare_stream_has_times_by_its_rate_from_zero_and_says_so(tmp_path, name, codec):
    frames = read_frames(encode(tmp_path / name, map(draw, range(24)), codec, options=MPEG), at(range(24)))
    assert numbers_of(frames.images) == list(range(24))
    np.testing.assert_allclose(frames.time_s, np.arange(24) / 25)
    assert any("states no times" in note for note in frames.notes)


@pytest.mark.parametrize(
    ("rate", "says"), [(b"", True), (b" F0:0", True), (b" F-25:1", True), (b" F30:1", False)]
)
def test_y4m_without_a_rate_says_so(tmp_path, rate, says):
    picture = b"FRAME\n" + bytes(range(256)) + b"\x80" * 128
    path = tmp_path / "a.y4m"
    path.write_bytes(b"YUV4MPEG2 W16 H16" + rate + b" C420jpeg\n" + picture * 4)
    frames = read_frames(path, at(range(4)))
    assert ("the file states no times: 25 frames a second are taken" in frames.notes) is says
    np.testing.assert_allclose(frames.time_s, np.arange(4) / (25 if says else 30))


@pytest.mark.parametrize(("scale", "rate"), [(1, 0), (0, 30), (0, 0)])
def test_avi_without_a_rate_says_so(tmp_path, scale, rate):
    path = encode(tmp_path / "a.avi", map(draw, range(8)), "mpeg4")
    assert not any("states no times" in note for note in read_frames(path, at([0])).notes)
    data = bytearray(path.read_bytes())
    struct.pack_into("<II", data, data.find(b"strh") + 28, scale, rate)
    path.write_bytes(data)
    frames = read_frames(path, at(range(8)))
    assert "the file states no times: 25 frames a second are taken" in frames.notes
    assert numbers_of(frames.images) == list(range(8))


@pytest.mark.parametrize("kind", ["ts", "vob"])
def test_pictures_of_soft_telecine_are_24_a_second_and_none_is_repeated(tmp_path, kind):
    """The header states 29.97 pictures a second, and every other picture that its first field is repeated."""
    rate = Fraction(24000, 1001)
    plain = encode(tmp_path / "plain.mkv", map(draw, range(48)), "mpeg2video", options=MPEG, rate=rate)
    film = remux(plain, tmp_path / f"film.{kind}", pulled_down)
    frames = read_frames(film, at(range(48)))
    assert numbers_of(frames.images) == list(range(48))
    np.testing.assert_allclose(frames.time_s - frames.time_s[0], np.arange(48) / float(rate), atol=0.01)


def pulled_down(packets):
    """Rewrite packets of MPEG-2 as soft telecine: 29.97 pictures a second are stated, and fields repeated."""
    sequence_header = b"\x00\x00\x01\xb3"
    picture_header = b"\x00\x00\x01\x00"
    extension = b"\x00\x00\x01\xb5"
    repeat_first = 0x02
    top_first = 0x80
    # Of four pictures in order of display, the first and third last for three fields.
    flags = (top_first | repeat_first, top_first, repeat_first, 0)
    position = {pts: n for n, pts in enumerate(sorted(packet.pts for packet in packets))}
    rewritten = []
    for packet in packets:
        data = bytearray(bytes(packet))
        header = data.find(sequence_header)
        if header >= 0:
            data[header + 7] = data[header + 7] & 0xF0 | 4  # the code of 30000/1001 a second
            data[data.index(extension) + 5] &= 0xF7  # no progressive sequence
        coding = data.index(extension, data.index(picture_header))
        other_bits = data[coding + 7] & ~(top_first | repeat_first)
        data[coding + 7] = other_bits | flags[position[packet.pts] % 4]
        data[coding + 8] |= 0x80  # a progressive frame
        copy = av.Packet(bytes(data))
        for name in ("pts", "dts", "time_base", "is_keyframe"):
            setattr(copy, name, getattr(packet, name))
        rewritten.append(copy)
    return rewritten


def without_times(film: Path, numbers: list[int]) -> Path:
    """Take the times from packets of a transport stream's pictures: their bytes become stuffing."""
    data = bytearray(film.read_bytes())
    starts = [at for at in range(0, len(data), 188) if data[at + 1] == 0x41]  # PID 0x100, a packet begins
    for start in (starts[number] for number in numbers):
        pes = start + 4 + (1 + data[start + 4] if data[start + 3] & 0x20 else 0)
        data[pes + 7] &= 0x3F
        data[pes + 9 : pes + 9 + data[pes + 8]] = b"\xff" * data[pes + 8]
    film.write_bytes(data)
    return film


@pytest.mark.parametrize("numbers", [[7], [10], [4, 5, 12, 23], [23], [*range(1, 23, 2)], [*range(1, 20)]])
@pytest.mark.parametrize("kind", ["h264.ts", "hevc.ts"])
def test_pictures_without_times_have_those_that_the_others_leave_free(tmp_path, kind, numbers):
    parts = [without_times(part(tmp_path / f"{n}-{kind}", 100 * n, 24), numbers) for n in range(2)]
    for film, count in ((parts[0], 24), (joined(tmp_path / f"ab-{kind}", parts), 48)):
        frames = read_frames(film, at(range(count)))
        assert numbers_of(frames.images) == [*range(24), *range(100, 124)][:count]
        np.testing.assert_allclose(frames.time_s - frames.time_s[0], np.arange(count) / 25, atol=0.0015)
        assert any("time of its own" in note for note in frames.notes)
        span = read_frames(film, at([10, 11]), start_s=float(frames.time_s[10]))
        assert numbers_of(span.images) == [10, 11]


def test_pictures_without_times_have_none_where_no_steady_rate_leaves_as_many_free(tmp_path):
    times = [*range(11), *range(51, 64)]
    film = without_times(
        encode(tmp_path / "a.ts", map(draw, range(24)), times=times, options=X264 | {"bf": "0"}), [5]
    )
    assert np.isnan(read_frames(film, at(range(24))).time_s).all()


def test_frames_of_a_container_without_presentation_times_are_in_the_decoders_order(tmp_path):
    film = encode(tmp_path / "b_frames.asf", map(draw, range(30)), options=X264)
    assert numbers_of(read_frames(film, at(range(30))).images) == [*range(30)]
