"""Times rise over all parts of a joined file, whatever reads them; what no time line can mend is said."""

import re
from pathlib import Path

import av
import numpy as np
import pytest
from click.testing import CliRunner

from obygaze.cli import root_command
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
    frames = read_frames(film, at(range(55)))
    assert frames.status == "ok"
    assert numbers_of(frames.images) == BOTH
    np.testing.assert_allclose(frames.time_s - frames.time_s[0], np.arange(55) / 25, atol=0.0015)
    assert any("2 parts" in note for note in frames.notes)
    for start_s, end_s in ((0.0, 0.5), (0.8, 1.16), (1.3, 1.9)):
        span = read_frames(film, uniform(40), start_s=start_s, end_s=end_s)
        inside = np.flatnonzero((frames.time_s >= start_s) & (frames.time_s < end_s))
        assert sorted({*numbers_of(span.images)}) == [BOTH[number] for number in inside]
    result = probe(film)
    assert result.stream is not None
    assert (result.frames, result.stream.parts) == (55, 2)
    assert result.duration_s == pytest.approx(2.2, abs=0.002)


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
    result = CliRunner().invoke(root_command(), command.split())
    assert result.exit_code == 0, result.output
    spans = [line.split(",") for line in (tmp_path / "w.csv").read_text().splitlines()]
    place = spans[0].index("end_s")
    assert max(float(row[place]) for row in spans[1:]) == pytest.approx(2.2, abs=0.01)


WRITTEN_RATE = 48_000
READ_RATE = 16_000
PARTS_S = (1.2, 34.0)
LENGTH_S = sum(PARTS_S)
CLICKS_S = ([0.5], [0.3, 31.0])
"""Times of clicks in each of the two parts."""


@pytest.fixture(scope="module", params=[("mkv", "flac"), ("ts", "ac3"), ("vob", "ac3")], ids="-".join)
def clicking(request, tmp_path_factory):
    """Two films with clicks that are joined, and by how much their codec delays sound, in seconds."""
    suffix, codec = request.param
    folder = tmp_path_factory.mktemp("clicking")
    parts = []
    for n, (times_s, length_s) in enumerate(zip(CLICKS_S, PARTS_S, strict=True)):
        track = {"eng": clicks(times_s, length_s, WRITTEN_RATE)}
        path = folder / f"{n}.{suffix}"
        parts.append(write_film(path, track, seconds=length_s, codec=codec, rate=WRITTEN_RATE))
    delay_s = 0 if codec == "flac" else 256 / WRITTEN_RATE  # of AC-3
    return joined(folder / f"film.{suffix}", parts), delay_s


def test_sound_lies_on_the_line_of_the_pictures(clicking):
    film, delay_s = clicking
    (samples,), missing_s = SoundTrack(film).parts(0.0, LENGTH_S, (), rate=READ_RATE)
    assert missing_s < 0.2
    for click_s in (0.5, PARTS_S[0] + 0.3, PARTS_S[0] + 31.0):
        start = round((click_s - 0.2) * READ_RATE)
        end = round((click_s + 0.2) * READ_RATE)
        loudest_s = (start + int(np.abs(samples[start:end]).argmax())) / READ_RATE
        assert loudest_s - click_s == pytest.approx(delay_s, abs=0.001)


def test_sound_of_a_span_in_the_second_part_is_that_of_the_whole_film(clicking):
    film, _ = clicking
    (samples,), _ = SoundTrack(film).parts(0.0, LENGTH_S, (), rate=READ_RATE)
    (span,), _ = SoundTrack(film).parts(31.0, 33.0, (), rate=READ_RATE)
    assert np.array_equal(span, samples[31 * READ_RATE : 33 * READ_RATE])


def test_pictures_and_sound_are_played_on_one_line(clicking):
    film, _ = clicking
    shown = list(played(film))
    heard_s = [time_s for time_s, content in shown if isinstance(content, av.AudioFrame)]
    seen_s = [time_s for time_s, content in shown if isinstance(content, np.ndarray)]
    assert len(heard_s) + len(seen_s) == len(shown)
    alone = list(played(film, pictures=False))
    assert all(isinstance(content, av.AudioFrame) for _, content in alone)
    assert [time_s for time_s, _ in alone] == heard_s
    assert np.allclose(np.diff(seen_s), 0.04, atol=0.002)
    assert max(heard_s) == pytest.approx(LENGTH_S, abs=0.1)


def test_sound_with_other_parts_than_the_pictures_is_refused(tmp_path):
    loud = write_film(tmp_path / "a.mkv", {"eng": clicks([0.5], 1.2)}, seconds=1.2)
    silent = write_film(tmp_path / "b.mkv", {}, seconds=1.2)
    with pytest.raises(VideoError, match="parts"):
        SoundTrack(joined(tmp_path / "ab.mkv", [loud, silent]))


def test_shots_and_subtitles_of_a_joined_film_lie_on_one_time_line(tmp_path):
    parts = []
    rng = np.random.default_rng(0)
    subtitles = tmp_path / "a.srt"
    for number in range(2):
        scene = rng.integers(0, 255, (6, 8, 3), np.uint8).repeat(8, 0).repeat(8, 1)
        plain = encode(tmp_path / f"{number}.mp4", [scene] * 30, options=X264)
        subtitles.write_text(f"1\n00:00:00,200 --> 00:00:00,900\npart {number}\n", encoding="utf-8")
        parts.append(with_subtitles(plain, subtitles, tmp_path / f"{number}.mkv"))
    film = joined(tmp_path / "ab.mkv", parts)
    assert [shot.start_s for shot in find_shots(film)] == pytest.approx([0.0, 1.2])
    assert [start for start, *_ in read_subtitle_track(film)] == pytest.approx([0.2, 1.4])


def with_subtitles(film: Path, subtitles: Path, path: Path) -> Path:
    """Write a film with a track of subtitles, whose lines come before all pictures."""
    with av.open(film) as pictures, av.open(subtitles) as lines, av.open(path, "w") as made:
        picture_stream = made.add_stream_from_template(pictures.streams[0])
        line_stream = made.add_stream_from_template(lines.streams[0])
        for source, stream in ((lines, line_stream), (pictures, picture_stream)):
            for packet in source.demux():
                if packet.size:
                    packet.stream = stream
                    made.mux(packet)
    return path


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
    packets = packets_of(first)
    through = bytes(packets[packet])
    data = first.read_bytes()
    path = tmp_path / f"cut-{kind}"
    path.write_bytes(data[: data.index(through) + len(through) // 2] + second.read_bytes())
    frames = read_frames(path, at(range(probe(path).frames)))
    numbers_before = sorted(round(25 * each.pts * each.time_base) for each in packets[:packet])
    numbers_of_second = BOTH[LENGTHS[0] :]
    assert numbers_of(frames.images) == [*numbers_before, *numbers_of_second]
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
    data = bytearray(film.read_bytes())
    place = 13
    number = 0
    # A tag: its type (a byte; 9 is of pictures), the size of its content (3), its time in ms (3), 4 other
    # bytes, the content, and the size of all (4). The first tag of pictures has only the codec's settings.
    while place + 11 < len(data):
        if data[place] == 9:
            time = int.from_bytes(data[place + 4 : place + 7], "big")
            if number > 15:
                time -= 400  # ten pictures
            data[place + 4 : place + 7] = time.to_bytes(3, "big")
            number += 1
        place += 15 + int.from_bytes(data[place + 1 : place + 4], "big")
    film.write_bytes(data)
    frames = read_frames(film, at(range(30)))
    assert numbers_of(frames.images) == [*range(30)]
    np.testing.assert_allclose(frames.time_s, np.arange(30) / 25, atol=0.0015)
    assert any("2 parts" in note for note in frames.notes)


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


def test_times_that_start_again_very_often_are_refused():
    ticks = np.tile(np.arange(40), MOST_PARTS + 1)
    every = np.ones(len(ticks), np.bool_)
    with pytest.raises(VideoError, match="times start again"):
        time_line(ticks, step=1, longest_pause=np.full(len(ticks), 90_000), key=every, shown=every)


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
    result = numbers_of(frames.images)
    behind = 112 if codec == "libx264" else 109
    torn = len(result) - 30 - (140 - behind)
    assert result[:30] == list(range(30))
    assert result[30 + torn :] == list(range(behind, 140))
    np.testing.assert_allclose(frames.time_s - frames.time_s[0], np.arange(len(result)) / 25, atol=0.0015)
    assert any(f"at the start of parts {torn} picture" in note for note in frames.notes)


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
