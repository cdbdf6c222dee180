"""Times rise over all parts of a joined file, whatever reads them; what no time line can mend is said."""

import re
import struct
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from click.testing import CliRunner

from obygaze.cli import table_of_contents
from obygaze_features.errors import VideoError
from obygaze_features.video import (
    SoundTrack,
    at,
    find_shots,
    played,
    probe,
    read_frames,
    read_subtitle_track,
    uniform,
)
from obygaze_features.video.index import index_packets
from obygaze_features.video.time_line import MOST_PARTS, time_line
from tests.video.conftest import cut_first_group, draw, numbers_of, packets_of, remux
from tests.video.encoding import encode
from tests.video.joining import KINDS, MPEG, VPX, X264, joined, part
from tests.video.sounding import clicks, write_film
from tests.video.test_decoding import plainly

LENGTHS = (24, 31)
BOTH = [*range(24), *range(100, 131)]


@pytest.fixture(scope="module")
def halves(tmp_path_factory) -> dict[str, list[Path]]:
    folder = tmp_path_factory.mktemp("halves")
    return {
        kind: [part(folder / f"{n}-{kind}", 100 * n, count) for n, count in enumerate(LENGTHS)]
        for kind in KINDS
    }


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "fragments.mp4"])
def test_the_parts_of_a_joined_file_follow_each_other(halves, tmp_path, kind):
    film = joined(tmp_path / f"ab-{kind}", halves[kind])
    whole = read_frames(film, at(range(55)))
    assert whole.status == "ok"
    assert numbers_of(whole.images) == BOTH
    np.testing.assert_allclose(whole.time_s - whole.time_s[0], np.arange(55) / 25, atol=0.0015)
    assert any("2 parts" in note for note in whole.notes)
    for start_s, end_s in ((0.0, 0.5), (0.8, 1.16), (1.3, 1.9)):
        span = read_frames(film, uniform(40), start_s=start_s, end_s=end_s)
        inside = np.flatnonzero((whole.time_s >= start_s) & (whole.time_s < end_s))
        assert sorted({*numbers_of(span.images)}) == [BOTH[number] for number in inside]
    found = probe(film)
    assert found.stream is not None
    assert (found.frames, found.stream.parts) == (55, 2)
    assert found.duration_s == pytest.approx(2.2, abs=0.002)


@pytest.mark.parametrize("kind", ["mpeg2.vob", "mpeg1.mpg", "h264.mkv", "hevc.mkv", "vp9.webm", "vp8.webm"])
def test_joined_files_are_still_decoded_sparsely_and_bit_equal(halves, tmp_path, kind):
    film = joined(tmp_path / f"ab-{kind}", halves[kind])
    reference = plainly(film)
    frames = read_frames(film, at(range(0, 55, 9)))
    assert frames.method == "sparse"
    assert np.array_equal(frames.images, reference[frames.index])


def test_a_step_back_of_hours_of_a_transport_stream_is_no_film_of_days(tmp_path):
    late, early = (
        part(tmp_path / name, first, 30, start_s)
        for name, first, start_s in (("a-h264.ts", 0, 100.0), ("b-h264.ts", 100, 10.0))
    )
    film = joined(tmp_path / "ab.ts", [late, early])
    assert probe(film).duration_s == pytest.approx(2.4)
    assert numbers_of(read_frames(film, at([29, 30, 59])).images) == [29, 100, 129]


def test_windows_of_a_joined_film_cover_all_of_it(halves, tmp_path):
    film = joined(tmp_path / "film.vob", halves["mpeg2.vob"])
    command = f"manifest import film {film} --window 0.5 --hop 0.5 --shots none --out {tmp_path / 'w.csv'}"
    result = CliRunner().invoke(table_of_contents(), command.split())
    assert result.exit_code == 0, result.output
    spans = [line.split(",") for line in (tmp_path / "w.csv").read_text().splitlines()]
    place = spans[0].index("end_s")
    assert max(float(row[place]) for row in spans[1:]) == pytest.approx(2.2, abs=0.01)


@pytest.mark.parametrize(("suffix", "codec"), [("mkv", "flac"), ("ts", "ac3"), ("vob", "ac3")])
def test_sound_lies_on_the_line_of_the_pictures(tmp_path, suffix, codec):
    rate, times = 48_000, ([0.5], [0.3, 31.0])
    parts = [
        write_film(
            tmp_path / f"{n}.{suffix}",
            {"eng": clicks(at_s, length, rate)},
            seconds=length,
            codec=codec,
            rate=rate,
        )
        for n, (at_s, length) in enumerate(zip(times, (1.2, 34.0), strict=True))
    ]
    film = joined(tmp_path / f"film.{suffix}", parts)
    (samples,), missing_s = SoundTrack(film).parts(0.0, 35.2, (), rate=16_000)
    assert missing_s < 0.2
    delay = 0 if codec == "flac" else 256 / rate
    for at_s in (0.5, 1.5, 32.2):
        near = slice(round((at_s - 0.2) * 16_000), round((at_s + 0.2) * 16_000))
        assert (near.start + int(np.abs(samples[near]).argmax())) / 16_000 - at_s == pytest.approx(
            delay, abs=0.001
        )
    again, _ = SoundTrack(film).parts(31.0, 33.0, (), rate=16_000)
    assert np.array_equal(again[0], samples[31 * 16_000 : 33 * 16_000])
    heard = [(time_s, type(shown)) for time_s, shown in played(film)]
    seen = [time_s for time_s, kind in heard if kind is np.ndarray]
    alone = [(time_s, type(shown)) for time_s, shown in played(film, pictures=False)]
    assert alone == [(time_s, kind) for time_s, kind in heard if kind is av.AudioFrame]
    assert np.allclose(np.diff(seen), 0.04, atol=0.002)
    assert max(time_s for time_s, kind in heard if kind is av.AudioFrame) == pytest.approx(35.2, abs=0.1)


def test_sound_with_other_parts_than_the_pictures_is_refused(tmp_path):
    loud = write_film(tmp_path / "a.mkv", {"eng": clicks([0.5], 1.2)}, seconds=1.2)
    silent = write_film(tmp_path / "b.mkv", {}, seconds=1.2)
    with pytest.raises(VideoError, match="parts"):
        SoundTrack(joined(tmp_path / "ab.mkv", [loud, silent]))


def test_shots_and_subtitles_lie_on_it_too(tmp_path):
    parts = []
    rng = np.random.default_rng(0)
    for number in range(2):
        scene = rng.integers(0, 255, (6, 8, 3), np.uint8).repeat(8, 0).repeat(8, 1)
        plain = encode(tmp_path / f"{number}.mp4", [scene] * 30, options=X264)
        (tmp_path / "a.srt").write_text(
            f"1\n00:00:00,200 --> 00:00:00,900\npart {number}\n", encoding="utf-8"
        )
        parts.append(tmp_path / f"{number}.mkv")
        with (
            av.open(str(plain)) as film,
            av.open(str(tmp_path / "a.srt")) as lines,
            av.open(str(parts[-1]), "w") as made,
        ):
            streams = [made.add_stream_from_template(each.streams[0]) for each in (film, lines)]
            for packets, stream in zip((lines, film), reversed(streams), strict=True):
                for packet in packets.demux():
                    if packet.size:
                        packet.stream = stream
                        made.mux(packet)
    film = joined(tmp_path / "ab.mkv", parts)
    assert [shot.start_s for shot in find_shots(film)] == pytest.approx([0.0, 1.2])
    assert [start for start, *_ in read_subtitle_track(film)] == pytest.approx([0.2, 1.4])


@pytest.mark.parametrize("kind", ["flv", "asf", "ivf", "mp4", "mkv", "mxf", "nut", "wtv", "rm"])
def test_a_second_file_that_ffmpeg_does_not_read_is_said(tmp_path, kind):
    codecs = {"asf": "wmv2", "ivf": "libvpx", "mxf": "mpeg2video", "wtv": "mpeg2video", "rm": "rv20"}
    parts = [
        encode(tmp_path / f"{n}.{kind}", map(draw, range(30)), codecs.get(kind, "libx264")) for n in range(3)
    ]
    film = joined(tmp_path / f"film.{kind}", parts if kind == "mkv" else parts[:2])
    assert read_frames(film, uniform(4)).status == "partial"
    mixed = kind == "rm"  # times of both files
    assert read_frames(film, uniform(4), start_s=0.0, end_s=0.5).status == ("partial" if mixed else "ok")
    assert "second file" in probe(film).damage
    assert probe(parts[0]).damage == ""


@pytest.mark.parametrize(
    "kinds", ["mp4 mkv", "mp4 ts", "mkv mpg", "ts mp4", "mpg ts", "flv mpg", "mxf mkv", "webm mkv"]
)
def test_a_second_file_of_another_format_is_said(tmp_path, kinds):
    parts = [
        encode(
            tmp_path / f"part.{kind}",
            map(draw, range(30)),
            {"mpg": "mpeg2video", "mxf": "mpeg2video", "webm": "libvpx"}.get(kind, "libx264"),
        )
        for kind in kinds.split()
    ]
    assert "second file" in probe(joined(tmp_path / f"film{parts[0].suffix}", parts)).damage
    assert [probe(part).damage for part in parts] == ["", ""]


@pytest.mark.parametrize("packet", [11, 17])
@pytest.mark.parametrize("kind", ["h264.mkv", "hevc.mkv", "mpeg4.mkv", "vp8.webm", "vp9.webm"])
def test_a_picture_that_was_cut_through_before_films_were_joined_is_left_out_and_said(
    halves, tmp_path, kind, packet
):
    first, second = halves[kind]
    packets = [(bytes(each), round(25 * each.pts * each.time_base)) for each in packets_of(first)]
    content, _ = packets[packet]
    cut = first.read_bytes()
    cut = cut[: cut.index(content) + len(content) // 2]
    path = tmp_path / f"cut-{kind}"
    path.write_bytes(cut + second.read_bytes())
    frames = read_frames(path, at(range(probe(path).frames)))
    assert numbers_of(frames.images) == [*sorted(number for _, number in packets[:packet]), *BOTH[24:]]
    assert (np.diff(frames.time_s) > 0).all()
    assert any("1 picture cut through" in note for note in frames.notes)


def test_what_a_fragmented_mp4_loses_where_it_was_joined_is_said(halves, tmp_path):
    film = joined(tmp_path / "ab.mp4", halves["fragments.mp4"])
    assert read_frames(film, uniform(4), start_s=0.0, end_s=0.5).status == "ok"
    frames = read_frames(film, uniform(4))
    assert frames.status == "partial"
    assert numbers_of(frames.images)[0] == 0


def test_fragments_whose_times_step_back_lose_pictures_and_say_so(halves, tmp_path):
    """Each fragment of 10 pictures begins at 0, as in recordings that were put together."""
    data = re.sub(
        rb"(tfdt\x01\0\0\0).{8}", rb"\1" + bytes(8), halves["fragments.mp4"][0].read_bytes(), flags=re.DOTALL
    )
    (tmp_path / "a.mp4").write_bytes(data)
    frames = read_frames(tmp_path / "a.mp4", uniform(4))
    assert (frames.status, frames.total) == ("partial", 10)
    assert "14 pictures are left out" in probe(tmp_path / "a.mp4").damage


def test_joined_fragments_of_which_all_pictures_are_read_lack_none(tmp_path):
    parts = [encode(tmp_path / f"{n}.ismv", map(draw, range(24)), options=X264) for n in range(2)]
    frames = read_frames(joined(tmp_path / "ab.ismv", parts), at(range(48)))
    assert (frames.status, numbers_of(frames.images)) == ("ok", [*range(24)] * 2)
    np.testing.assert_allclose(frames.time_s, np.arange(48) / 25, atol=0.0015)


def test_times_of_flash_that_step_back_between_key_pictures_begin_a_part(tmp_path):
    film = encode(tmp_path / "a.flv", map(draw, range(30)), options=X264 | {"bf": "0"})
    data, place, number = bytearray(film.read_bytes()), 13, 0
    while place + 11 < len(data):  # tags: type, size, time; the first of pictures has the settings alone
        if data[place] == 9:
            time = int.from_bytes(data[place + 4 : place + 7], "big") - 400 * (number > 15)
            data[place + 4 : place + 7] = time.to_bytes(3, "big")
            number += 1
        place += 15 + int.from_bytes(data[place + 1 : place + 4], "big")
    film.write_bytes(data)
    frames = read_frames(film, at(range(30)))
    assert numbers_of(frames.images) == [*range(30)]
    np.testing.assert_allclose(frames.time_s, np.arange(30) / 25, atol=0.0015)
    assert any("2 parts" in note for note in frames.notes)


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


def test_times_of_a_transport_stream_that_are_nearly_all_zero_are_by_the_rate(tmp_path):
    path = encode(tmp_path / "a.ts", map(draw, range(30)), "mpeg2video", options=MPEG)
    data, zero = bytearray(path.read_bytes()), b"\0\x01\0\x01"
    for start in range(0, len(data), 188):
        head = start + 4 + (data[start + 3] >> 5 & 1) * (data[start + 4] + 1)  # behind the adaptation field
        if data[start + 1] & 0x5F == 0x41 and data[head : head + 3] == b"\0\0\1":
            for place in (9, 14)[: (data[head + 7] >> 6) - 1]:  # when it is shown, and decoded
                data[head + place] &= 0xF1
                data[head + place + 1 : head + place + 5] = zero
    path.write_bytes(data)
    frames = read_frames(path, at(range(30)))
    np.testing.assert_allclose(frames.time_s, np.arange(30) / 25)
    assert any("25 frames a second" in note for note in frames.notes)


def test_one_picture_at_zero_is_no_film_without_times(tmp_path):
    frames = read_frames(encode(tmp_path / "one.mkv", [draw(7)]), uniform(1))
    assert (frames.time_s.tolist(), frames.notes) == ([0.0], ())


@pytest.mark.parametrize(
    ("name", "rate", "times"),
    [
        ("a.mp4", 25, [*range(10), *range(180_000, 180_010)]),  # a pause of two hours
        ("a.mkv", 1, [0, 3600, 7200, 10800]),  # slides, decoded in another order
    ],
)
def test_a_pause_of_hours_that_the_file_states_is_no_joint(tmp_path, name, rate, times):
    film = encode(tmp_path / name, map(draw, range(len(times))), rate=rate, times=times, options=X264)
    frames = read_frames(film, at(range(len(times))))
    assert numbers_of(frames.images) == [*range(len(times))]
    np.testing.assert_allclose(frames.time_s, np.array(times) / rate, atol=0.0015)
    assert (frames.status, frames.notes) == ("ok", ())


def test_matroska_that_begins_late_is_not_cut_off(tmp_path):
    times = [25 * 10**6 + number for number in range(20)]
    frames = read_frames(
        encode(tmp_path / "a.mkv", map(draw, range(20)), times=times, options=X264), uniform(4)
    )
    assert (frames.status, frames.notes) == ("ok", ())


def test_packets_of_one_picture_each_are_parts_too(tmp_path):
    parts = [part(tmp_path / f"{n}-h264.mkv", 10 * n, count) for n, count in enumerate((1, 20))]
    frames = read_frames(joined(tmp_path / "ab.mkv", parts), at(range(21)))
    assert numbers_of(frames.images) == [0, *range(10, 30)]
    np.testing.assert_allclose(frames.time_s, np.arange(21) / 25, atol=0.0015)


def test_too_many_parts_are_refused_in_time():
    ticks = np.tile(np.arange(40), MOST_PARTS + 1)
    every = np.ones(len(ticks), np.bool_)
    with pytest.raises(VideoError, match="times start again"):
        time_line(ticks, step=1, longest=np.full(len(ticks), 90_000), key=every, shown=every)


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


def test_vp9_whose_size_changes_gives_all_pictures_and_says_so(tmp_path):
    parts = [
        encode(
            tmp_path / f"{n}.webm", [draw(16 * n + i)[:rows] for i in range(12)], "libvpx-vp9", options=VPX
        )
        for n, rows in enumerate((64, 48))
    ]
    frames = read_frames(joined(tmp_path / "ab.webm", parts), at(range(24)))
    assert [image.shape[0] for image in frames.images] == [64] * 12 + [48] * 12
    assert any("size of the pictures changes" in note for note in frames.notes)
    np.testing.assert_allclose(frames.time_s, np.arange(24) / 25, atol=0.0015)


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


OPEN = X264 | {"g": "12", "bf": "3", "sc_threshold": "0", "x264-params": "open-gop=1:b-adapt=0:bframes=3"}


@pytest.mark.parametrize(
    ("kind", "codec", "options"),
    [("ts", "libx264", OPEN), ("mkv", "libx264", OPEN), ("vob", "mpeg2video", MPEG)],
)
def test_pictures_that_a_cut_parted_from_those_they_refer_to_are_said(tmp_path, kind, codec, options):
    first = encode(tmp_path / f"a.{kind}", map(draw, range(30)), codec, options=options)
    whole = encode(tmp_path / f"b.{kind}", map(draw, range(100, 140)), codec, options=options)
    cut = remux(whole, tmp_path / f"cut.{kind}", cut_first_group)
    film = joined(tmp_path / f"film.{kind}", [first, cut])
    frames = read_frames(film, at(range(probe(film).frames)))
    found = numbers_of(frames.images)
    behind = 112 if codec == "libx264" else 109
    torn = len(found) - 30 - (140 - behind)
    assert found[:30] == list(range(30))
    assert found[30 + torn :] == list(range(behind, 140))
    np.testing.assert_allclose(frames.time_s - frames.time_s[0], np.arange(len(found)) / 25, atol=0.0015)
    assert any(f"{torn} pictures at the start of parts" in note for note in frames.notes)


@pytest.mark.parametrize("kind", ["ts", "vob"])
def test_pictures_of_soft_telecine_are_24_a_second_and_none_is_repeated(tmp_path, kind):
    """The header states 29.97 pictures a second, and every other picture that its first field is repeated."""
    plain = encode(
        tmp_path / "plain.mkv", map(draw, range(48)), "mpeg2video", options=MPEG, rate=Fraction(24000, 1001)
    )

    def pulled_down(packets):
        shown = {pts: n for n, pts in enumerate(sorted(packet.pts for packet in packets))}
        made = []
        for packet in packets:
            data = bytearray(bytes(packet))
            header = data.find(b"\x00\x00\x01\xb3")
            if header >= 0:
                data[header + 7] = data[header + 7] & 0xF0 | 4
                data[data.index(b"\x00\x00\x01\xb5") + 5] &= 0xF7  # no progressive sequence
            coding = data.index(b"\x00\x00\x01\xb5", data.index(b"\x00\x00\x01\x00"))
            data[coding + 7] = data[coding + 7] & 0x7D | (0x00, 0x02, 0x80, 0x82)[3 - shown[packet.pts] % 4]
            data[coding + 8] |= 0x80  # a progressive frame
            new = av.Packet(bytes(data))
            for name in ("pts", "dts", "time_base", "is_keyframe"):
                setattr(new, name, getattr(packet, name))
            made.append(new)
        return made

    film = remux(plain, tmp_path / f"film.{kind}", pulled_down)
    frames = read_frames(film, at(range(48)))
    assert numbers_of(frames.images) == list(range(48))
    np.testing.assert_allclose(frames.time_s - frames.time_s[0], np.arange(48) * 1001 / 24000, atol=0.01)


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
    times = [number + 40 * (number > 10) for number in range(24)]
    film = without_times(
        encode(tmp_path / "a.ts", map(draw, range(24)), times=times, options=X264 | {"bf": "0"}), [5]
    )
    assert np.isnan(read_frames(film, at(range(24))).time_s).all()


def test_pictures_too_small_to_have_times_of_their_own_begin_no_part(tmp_path):
    """A packet of a program stream then holds several, and FFmpeg's estimates step back in the middle."""
    film = encode(
        tmp_path / "still.mpg", [np.full((48, 96, 3), 90, np.uint8)] * 600, codec="mpeg2video", options=MPEG
    )
    table = index_packets(film)
    assert len(table.part_first) == 1
    np.testing.assert_allclose(table.frame_times.time_s, np.arange(600) / 25, atol=1e-4)


@pytest.mark.parametrize(("first", "then"), [(25, 30), (25, 50), (24, 50), (50, 25)])
def test_joined_program_streams_of_two_rates_each_keep_their_own(tmp_path, first, then):
    halves = [
        encode(
            tmp_path / f"{rate}.vob",
            (draw(start + number) for number in range(30)),
            codec="mpeg2video",
            options=MPEG,
            rate=rate,
        )
        for start, rate in ((0, first), (100, then))
    ]
    frames = read_frames(joined(tmp_path / "ab.vob", halves), at(range(60)))
    assert numbers_of(frames.images) == [*range(30), *range(100, 130)]
    expected = np.append(np.arange(30) / first, 30 / first + np.arange(30) / then)
    np.testing.assert_allclose(frames.time_s - frames.time_s[0], expected, atol=0.025)
    for own, rate in ((slice(30), first), (slice(30, 60), then)):
        np.testing.assert_allclose(np.diff(frames.time_s[own]), 1 / rate, atol=0.0015)


@pytest.mark.parametrize(("color_range", "status"), [(1, "ok"), (2, "partial")])
def test_joined_matroska_of_other_settings_is_not_read_as_if_it_had_the_first_files(
    tmp_path, color_range, status
):
    parts = [
        encode(tmp_path / f"{tag}.mkv", map(draw, range(20)), options=X264, color_range=tag)
        for tag in (1, color_range)
    ]
    film = joined(tmp_path / "ab.mkv", [parts[0], parts[-1]])
    assert read_frames(film, uniform(4)).status == status
    assert read_frames(film, uniform(4), start_s=0.0, end_s=0.8).status == "ok"


def test_frames_of_a_container_without_presentation_times_are_in_the_decoders_order(tmp_path):
    film = encode(tmp_path / "b_frames.asf", map(draw, range(30)), options=X264)
    assert numbers_of(read_frames(film, at(range(30))).images) == [*range(30)]


def test_sound_of_another_rate_behind_a_joint_is_heard(tmp_path):
    for name, rate in (("a.ts", 44_100), ("b.ts", 48_000)):
        write_film(tmp_path / name, {"": clicks([1.0], 2, rate)}, seconds=2, codec="mp2", rate=rate)
    film = joined(tmp_path / "ab.ts", [tmp_path / "a.ts", tmp_path / "b.ts"])
    [samples], missing_s = SoundTrack(film).parts(0, 4, [], rate=16_000)
    loud = np.flatnonzero(np.nan_to_num(np.abs(samples)) > 0.1) / 16_000
    assert missing_s < 0.2
    assert np.abs(loud[:, None] - [1.0, 3.0]).min(axis=0).max() < 0.1


def test_a_recording_that_goes_on_in_another_stream_is_partial(tmp_path):
    parts = [
        encode(
            tmp_path / f"{pid}.ts",
            map(draw, range(20)),
            options=X264,
            container_options={"mpegts_start_pid": pid},
        )
        for pid in ("256", "400")
    ]
    film = joined(tmp_path / "ab.ts", parts)
    assert read_frames(film, uniform(4)).status == "partial"
    assert read_frames(film, uniform(4), start_s=0.0, end_s=0.6).status == "ok"
    assert probe(parts[0]).damage == ""
