"""Times rise over all parts of a joined file, whatever reads them; what no time line can mend is said."""

import re
from pathlib import Path
from typing import NamedTuple

import av
import numpy as np
import pytest
from click.testing import CliRunner

from obygaze.cli import root_command
from obygaze_features.errors import VideoError
from obygaze_features.manifest import read_manifest
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
from obygaze_features.video.time_line import MAX_PARTS, correct_outliers, time_line
from tests.video.conftest import cut_first_group, draw_number, packets_of, read_drawn_numbers, remux
from tests.video.encoding import encode
from tests.video.joining import (
    MPEG_2_OPTIONS,
    SETTINGS_OF_KINDS,
    VPX_OPTIONS,
    X264_OPTIONS,
    encode_part,
    joined_byte_by_byte,
)
from tests.video.sounding import clicks, time_of_click, write_film
from tests.video.test_decoding import decoded_by_pyav


@pytest.fixture(scope="module")
def halves(tmp_path_factory) -> dict[str, list[Path]]:
    """Kind of film -> its two parts, of pictures 0 to 23 and 100 to 130, at 25 a second."""
    folder = tmp_path_factory.mktemp("halves")
    parts_of_kind = {}
    for kind in SETTINGS_OF_KINDS:
        first = encode_part(folder / f"0-{kind}", first=0, count=24)
        second = encode_part(folder / f"1-{kind}", first=100, count=31)
        parts_of_kind[kind] = [first, second]
    return parts_of_kind


@pytest.fixture(scope="module", params=[kind for kind in SETTINGS_OF_KINDS if kind != "fragments.mp4"])
def joined_film(request, halves, tmp_path_factory) -> Path:
    """A film of two parts, of pictures 0 to 23 and 100 to 130, which are joined byte by byte."""
    return joined_byte_by_byte(
        tmp_path_factory.mktemp("joined") / f"ab-{request.param}", halves[request.param]
    )


def test_pictures_of_a_joined_film_follow_each_other_at_their_rate(joined_film):
    """Two parts have pictures 0 to 23 and 100 to 130, 55 in all, at 25 a second.

    The times of the second part begin again at 0 in the file; they go on behind the first part.
    """
    frames = read_frames(joined_film, at(range(55)))

    assert frames.status == "ok"
    assert read_drawn_numbers(frames.images) == [*range(24), *range(100, 131)]
    np.testing.assert_allclose(frames.time_s - frames.time_s[0], np.arange(55) / 25, atol=0.0015)
    assert any("2 parts" in note for note in frames.notes)


def test_a_span_of_a_joined_film_has_the_pictures_of_its_times(joined_film):
    """The first part has pictures 0 to 23, to 0.96 s, and the second one pictures 100 to 130.

    One span is in the first part, one crosses into the second, one is in the second. 40 frames are asked of
    each, which is more than it has, so that each of its pictures is taken at least once.
    """
    whole = read_frames(joined_film, at(range(55)))
    numbers_drawn = np.array([*range(24), *range(100, 131)])
    for start_s, end_s in ((0.0, 0.5), (0.8, 1.16), (1.3, 1.9)):
        is_in_span = (whole.time_s >= start_s) & (whole.time_s < end_s)

        span = read_frames(joined_film, uniform(40), start_s=start_s, end_s=end_s)

        distinct_numbers = sorted(set(read_drawn_numbers(span.images)))
        assert distinct_numbers == numbers_drawn[is_in_span].tolist()


def test_the_facts_of_a_joined_film_are_those_of_both_parts(joined_film):
    """The parts have 24 and 31 pictures, at 25 a second: 55 / 25 = 2.2 s."""
    facts = probe(joined_film)

    assert facts.stream is not None
    assert facts.stream.parts == 2
    assert facts.frames == 55
    assert facts.duration_s == pytest.approx(2.2, abs=0.002)


@pytest.mark.parametrize("kind", ["mpeg2.vob", "mpeg1.mpg", "h264.mkv", "hevc.mkv", "vp9.webm", "vp8.webm"])
def test_joined_files_are_still_decoded_sparsely_and_bit_equal(halves, tmp_path, kind):
    """The film has 24 and 31 pictures in two parts; every ninth is taken. PyAV decodes all in order."""
    film = joined_byte_by_byte(tmp_path / f"ab-{kind}", halves[kind])
    all_pictures = decoded_by_pyav(film)

    frames = read_frames(film, at([0, 9, 18, 27, 36, 45, 54]))

    assert frames.method == "sparse"
    assert np.array_equal(frames.images, all_pictures[frames.index])


def test_a_step_back_of_times_in_a_transport_stream_is_not_taken_for_its_clock_that_starts_again(tmp_path):
    """Two parts of 30 pictures, numbered from 0 and from 100 on, state times from 100 s and from 10 s on.

    The clock of a transport stream starts again at 0 after 26 hours. If the step back from 101 to 10 s were
    taken for that, the film would last 26 hours. It lasts as long as its parts: 60 pictures, 25 a second.
    """
    late = encode_part(tmp_path / "a-h264.ts", first=0, count=30, start_s=100.0)
    early = encode_part(tmp_path / "b-h264.ts", first=100, count=30, start_s=10.0)
    film = joined_byte_by_byte(tmp_path / "ab.ts", [late, early])

    frames = read_frames(film, at([29, 30, 59]))

    assert read_drawn_numbers(frames.images) == [29, 100, 129]
    assert probe(film).duration_s == pytest.approx(60 / 25)


def test_windows_of_a_joined_film_cover_all_of_it(halves, tmp_path):
    """Two parts of 24 and 31 pictures last 55 / 25 = 2.2 s, where the last window ends."""
    film = joined_byte_by_byte(tmp_path / "film.vob", halves["mpeg2.vob"])
    table = tmp_path / "windows.csv"
    command = f"manifest import film {film} --window 0.5 --hop 0.5 --shots none --out {table}"

    result = CliRunner().invoke(root_command(), command.split())

    assert result.exit_code == 0, result.output
    ends_s = [clip.end_s for clip in read_manifest(table)]
    assert max(ends_s) == pytest.approx(2.2, abs=0.01)


WRITTEN_RATE = 48_000
READ_RATE = 16_000
"""Samples of a second, as films of clicks are written and read."""


class FilmWithClicks(NamedTuple):
    """A film with clicks in its sound, and by how many seconds its sound codec delays all of them."""

    path: Path
    delay_s: float


@pytest.fixture(scope="module", params=[("mkv", "flac"), ("ts", "ac3"), ("vob", "ac3")], ids="-".join)
def film_with_clicks(request, tmp_path_factory) -> FilmWithClicks:
    """A film of 35.2 s that was joined from two films with clicks.

    The first part has 1.2 s and a click at 0.5 s; the second one 34 s, and clicks at 0.3 and 31 s.
    """
    suffix, codec = request.param
    folder = tmp_path_factory.mktemp("clicks")

    def write_part(name, clicks_s, length_s):
        track = {"eng": clicks(clicks_s, length_s, WRITTEN_RATE)}
        path = folder / f"{name}.{suffix}"
        return write_film(path, track, seconds=length_s, codec=codec, rate=WRITTEN_RATE)

    first = write_part("first", [0.5], 1.2)
    second = write_part("second", [0.3, 31.0], 34.0)
    delay_s = 0.0 if codec == "flac" else 256 / WRITTEN_RATE  # AC-3 puts sound out 256 samples later
    return FilmWithClicks(joined_byte_by_byte(folder / f"film.{suffix}", [first, second]), delay_s)


def test_sound_of_both_parts_of_a_joined_film_is_read_at_its_times(film_with_clicks):
    """The first part has 1.2 s and a click at 0.5 s; the second one 34 s, and clicks at 0.3 and 31 s.

    Clicks of the second part are heard later by the length of the first: at 1.5 and 32.2 s. All clicks are
    heard later still by the delay of the sound codec, which is 0 or 5 ms.
    """
    sound = SoundTrack(film_with_clicks.path)

    (samples,), missing_s = sound.parts(start_s=0.0, end_s=35.2, edges_s=(), rate=READ_RATE)

    assert missing_s < 0.2
    for click_s in (0.5, 1.5, 32.2):
        heard_s = time_of_click(samples, READ_RATE, click_s)
        assert heard_s == pytest.approx(click_s + film_with_clicks.delay_s, abs=0.001)


def test_sound_of_a_span_in_the_second_part_is_that_of_the_whole_film(film_with_clicks):
    """The film is joined of parts of 1.2 and 34 s; the span is from 31 to 33 s."""
    film = film_with_clicks.path

    (whole,), _ = SoundTrack(film).parts(start_s=0.0, end_s=35.2, edges_s=(), rate=READ_RATE)
    (span,), _ = SoundTrack(film).parts(start_s=31.0, end_s=33.0, edges_s=(), rate=READ_RATE)

    assert np.array_equal(span, whole[31 * READ_RATE : 33 * READ_RATE])


def test_pictures_and_sound_of_a_joined_film_are_played_at_times_that_go_on_rising(film_with_clicks):
    """The film is joined of parts of 1.2 and 34 s, and the times of both in the file begin at 0.

    `played` yields the pictures (arrays) and the sound (frames of PyAV), each with its time. Pictures are
    1/25 = 0.04 s apart, also where the second part begins, and sound reaches to 1.2 + 34 = 35.2 s.
    """
    film = film_with_clicks.path

    pictures_and_sound = list(played(film))
    sound_alone = list(played(film, pictures=False))

    times_of_sound = [time_s for time_s, content in pictures_and_sound if isinstance(content, av.AudioFrame)]
    times_of_pictures = [time_s for time_s, content in pictures_and_sound if isinstance(content, np.ndarray)]
    assert len(times_of_sound) + len(times_of_pictures) == len(pictures_and_sound)
    assert np.allclose(np.diff(times_of_pictures), 0.04, atol=0.002)
    assert max(times_of_sound) == pytest.approx(35.2, abs=0.1)
    assert [time_s for time_s, _ in sound_alone] == times_of_sound


def test_sound_with_other_parts_than_the_pictures_is_refused(tmp_path):
    """The second part has no sound, so it is not known which pictures the sound belongs to."""
    with_sound = write_film(tmp_path / "a.mkv", {"eng": clicks([0.5], seconds=1.2)}, seconds=1.2)
    without_sound = write_film(tmp_path / "b.mkv", {}, seconds=1.2)
    film = joined_byte_by_byte(tmp_path / "ab.mkv", [with_sound, without_sound])

    with pytest.raises(VideoError, match="parts"):
        SoundTrack(film)


def test_shots_and_subtitles_of_a_joined_film_lie_on_one_time_line(tmp_path):
    """Two films are joined: each is one shot of 30 pictures, 1.2 s, with a subtitle at 0.2 s of its own.

    So the second shot begins at 1.2 s of the whole, and the second subtitle at 1.4 s.
    """
    parts = []
    rng = np.random.default_rng(0)
    subtitles = tmp_path / "a.srt"
    for number in range(2):
        scene = rng.integers(0, 255, (6, 8, 3), np.uint8).repeat(8, 0).repeat(8, 1)
        plain = encode(tmp_path / f"{number}.mp4", [scene] * 30, options=X264_OPTIONS)
        subtitles.write_text(f"1\n00:00:00,200 --> 00:00:00,900\npart {number}\n", encoding="utf-8")
        parts.append(with_subtitles(plain, subtitles, tmp_path / f"{number}.mkv"))

    film = joined_byte_by_byte(tmp_path / "ab.mkv", parts)

    starts_of_shots = [shot.start_s for shot in find_shots(film)]
    starts_of_subtitles = [start_s for start_s, _end_s, _text in read_subtitle_track(film)]
    assert starts_of_shots == pytest.approx([0.0, 1.2])
    assert starts_of_subtitles == pytest.approx([0.2, 1.4])


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


@pytest.mark.parametrize(
    ("kind", "codec"),
    [
        ("flv", "libx264"),
        ("asf", "wmv2"),
        ("ivf", "libvpx"),
        ("mp4", "libx264"),
        ("mkv", "libx264"),
        ("mxf", "mpeg2video"),
        ("nut", "libx264"),
        ("wtv", "mpeg2video"),
        ("rm", "rv20"),
    ],
)
def test_a_second_file_that_ffmpeg_does_not_read_is_damage_behind_the_first(tmp_path, kind, codec):
    """Files of 1.2 s are joined; FFmpeg stops at the end of the first, of Matroska (mkv) of the second.

    The whole is then partial, and a span within the first file is not. In RealMedia (rm) there is no such
    span, as FFmpeg mixes the times of both files.
    """
    n_files = 3 if kind == "mkv" else 2
    files = [encode(tmp_path / f"{n}.{kind}", map(draw_number, range(30)), codec) for n in range(n_files)]
    film = joined_byte_by_byte(tmp_path / f"film.{kind}", files)

    assert read_frames(film, uniform(4)).status == "partial"
    assert "second file" in probe(film).damage
    assert probe(files[0]).damage == ""
    if kind != "rm":
        assert read_frames(film, uniform(4), start_s=0.0, end_s=0.5).status == "ok"


@pytest.mark.parametrize(
    "kinds", ["mp4 mkv", "mp4 ts", "mkv mpg", "ts mp4", "mpg ts", "flv mpg", "mxf mkv", "webm mkv"]
)
def test_a_second_file_of_another_format_is_damage(tmp_path, kinds):
    """The film is a file of the first kind, to whose end one of the second kind is added."""
    codec_of_kind = {"mpg": "mpeg2video", "mxf": "mpeg2video", "webm": "libvpx"}
    parts = []
    for kind in kinds.split():
        codec = codec_of_kind.get(kind, "libx264")
        parts.append(encode(tmp_path / f"part.{kind}", map(draw_number, range(30)), codec))
    first, second = parts
    film = joined_byte_by_byte(tmp_path / f"film{first.suffix}", parts)

    assert probe(first).damage == ""
    assert probe(second).damage == ""
    assert "second file" in probe(film).damage


def cut_through_a_picture(film: Path, n_whole_packets: int) -> bytes:
    """Return the bytes of a film up to the middle of the packet that follows so many whole ones."""
    cut_packet = bytes(packets_of(film)[n_whole_packets])
    data = film.read_bytes()
    return data[: data.index(cut_packet) + len(cut_packet) // 2]


@pytest.mark.parametrize("n_whole_packets", [11, 17], ids=["just behind a key picture", "far behind one"])
@pytest.mark.parametrize("kind", ["h264.mkv", "hevc.mkv", "mpeg4.mkv", "vp8.webm", "vp9.webm"])
def test_a_picture_cut_through_where_films_are_joined_is_left_out_and_noted(
    halves, tmp_path, kind, n_whole_packets
):
    """The first film is cut off in the middle of a packet, and the second film is appended there.

    The first has a key picture every ten, and shows its pictures, numbered from 0 on, 25 a second. A packet
    holds one picture, in the order of decoding: so the numbers of the whole pictures follow from the times
    of the packets before the cut. Pictures of the second film are numbered from 100 to 130.
    """
    first, second = halves[kind]
    film = tmp_path / f"cut-{kind}"
    film.write_bytes(cut_through_a_picture(first, n_whole_packets) + second.read_bytes())
    times_before_cut = [packet.pts * packet.time_base for packet in packets_of(first)[:n_whole_packets]]
    numbers_before_cut = sorted(round(25 * time_s) for time_s in times_before_cut)

    frames = read_frames(film, at(range(probe(film).frames)))

    assert read_drawn_numbers(frames.images) == [*numbers_before_cut, *range(100, 131)]
    assert (np.diff(frames.time_s) > 0).all()
    assert any("1 picture cut through" in note for note in frames.notes)


def test_joined_mp4s_in_fragments_of_which_ffmpeg_leaves_pictures_out_are_a_partial_film(halves, tmp_path):
    """Two MP4s, written in fragments as streams are, are joined; the first has 24 pictures, to 0.96 s.

    The times of the second begin at 0 again, and FFmpeg leaves out fragments whose times step back. So the
    film is partial. A span of half a second, within the first MP4, lacks nothing.
    """
    film = joined_byte_by_byte(tmp_path / "ab.mp4", halves["fragments.mp4"])

    frames_of_film = read_frames(film, uniform(4))
    frames_of_span = read_frames(film, uniform(4), start_s=0.0, end_s=0.5)

    assert frames_of_film.status == "partial"
    assert read_drawn_numbers(frames_of_film.images)[0] == 0
    assert frames_of_span.status == "ok"


def begin_each_fragment_at_zero(data: bytes) -> bytes:
    """Set the time of every fragment of an MP4 to 0: the 8 bytes behind the version and flags of `tfdt`."""
    return re.sub(rb"(tfdt\x01\0\0\0).{8}", rb"\1" + bytes(8), data, flags=re.DOTALL)


def test_an_mp4_whose_fragments_all_begin_at_zero_is_partial(halves, tmp_path):
    """Recordings joined by careless tools are such files.

    Of 24 pictures, FFmpeg gives those of the first fragment: 10.
    """
    right_film, _ = halves["fragments.mp4"]
    film = tmp_path / "a.mp4"
    film.write_bytes(begin_each_fragment_at_zero(right_film.read_bytes()))

    frames = read_frames(film, uniform(4))

    assert frames.status == "partial"
    assert frames.total == 10
    assert "14 pictures are left out" in probe(film).damage


def test_joined_fragments_of_smooth_streaming_are_read_whole(tmp_path):
    """Two films of pictures 0 to 23, 25 a second, in fragments as Microsoft's servers send them, are joined.

    FFmpeg reads on behind the first film, so that all 48 pictures follow each other 1/25 s apart.
    """
    first = encode(tmp_path / "0.ismv", map(draw_number, range(24)), options=X264_OPTIONS)
    second = encode(tmp_path / "1.ismv", map(draw_number, range(24)), options=X264_OPTIONS)
    film = joined_byte_by_byte(tmp_path / "ab.ismv", [first, second])

    frames = read_frames(film, at(range(48)))

    assert frames.status == "ok"
    assert read_drawn_numbers(frames.images) == [*range(24), *range(24)]
    np.testing.assert_allclose(frames.time_s, np.arange(48) / 25, atol=0.0015)


def picture_tags_of_flash(data: bytes) -> list[int]:
    """Find where the tags of pictures in an FLV file begin; the first one has the codec's settings alone.

    A tag has a type (a byte; 9 is of pictures), the size of its content (3), its time in milliseconds (3),
    4 other bytes, the content, and the size of all (4).
    """
    tags = []
    start = 13  # behind the file's header
    while start + 11 < len(data):
        if data[start] == 9:
            tags.append(start)
        start += 15 + int.from_bytes(data[start + 1 : start + 4], "big")
    return tags


def set_back_times_of_flash(film: Path, first: int, by_ms: int) -> None:
    """Let a Flash film state earlier times of its pictures, from the first one on."""
    data = bytearray(film.read_bytes())
    _tag_of_settings, *tags = picture_tags_of_flash(data)
    for tag in tags[first:]:
        place_of_time = slice(tag + 4, tag + 7)
        time_ms = int.from_bytes(data[place_of_time], "big")
        data[place_of_time] = (time_ms - by_ms).to_bytes(3, "big")
    film.write_bytes(data)


def test_a_step_back_of_times_in_flash_begins_a_part(tmp_path):
    """A film of 30 numbered pictures, 25 a second, states times that step back by 400 ms at picture 15.

    It is read as two parts, the second behind the first, so that times go on rising by 1/25 s.
    """
    no_reordering = {"bf": "0"}
    film = encode(tmp_path / "a.flv", map(draw_number, range(30)), options=X264_OPTIONS | no_reordering)
    set_back_times_of_flash(film, first=15, by_ms=400)

    frames = read_frames(film, at(range(30)))

    assert read_drawn_numbers(frames.images) == [*range(30)]
    np.testing.assert_allclose(frames.time_s, np.arange(30) / 25, atol=0.0015)
    assert any("2 parts" in note for note in frames.notes)


@pytest.mark.parametrize(
    ("name", "rate", "times"),
    [
        ("a.mp4", 25, [*range(10), *range(180_000, 180_010)]),
        ("a.mkv", 1, [0, 3600, 7200, 10800]),
    ],
    ids=["a pause of two hours", "slides of an hour each, decoded in another order"],
)
def test_a_pause_of_hours_that_the_file_states_is_no_joint(tmp_path, name, rate, times):
    """Times are in frames of the film's rate, 25 a second, or one.

    At 25 a second, frame 180,000 is shown two hours after the first. The times must stay as they are.
    """
    n_pictures = len(times)
    film = encode(
        tmp_path / name, map(draw_number, range(n_pictures)), rate=rate, times=times, options=X264_OPTIONS
    )

    frames = read_frames(film, at(range(n_pictures)))

    assert read_drawn_numbers(frames.images) == list(range(n_pictures))
    np.testing.assert_allclose(frames.time_s, np.array(times) / rate, atol=0.0015)
    assert frames.status == "ok"
    assert frames.notes == ()


def test_matroska_that_begins_late_is_not_cut_off(tmp_path):
    """The first of 20 pictures, 25 a second, is at a million seconds, far behind the stated end at 0.8 s."""
    first_time = 25 * 1_000_000
    times = range(first_time, first_time + 20)
    film = encode(tmp_path / "a.mkv", map(draw_number, range(20)), times=times, options=X264_OPTIONS)

    frames = read_frames(film, uniform(4))

    assert frames.status == "ok"
    assert frames.notes == ()


def test_times_that_start_again_very_often_are_refused():
    """A file has 1,001 parts, each of forty pictures whose times are 0 to 39; up to 1,000 are read.

    All pictures are key pictures and shown. No step forward begins a part, as all are of one tick, far below
    the longest pause of 90,000 ticks.
    """
    times_of_a_part = np.arange(40)
    times = np.tile(times_of_a_part, MAX_PARTS + 1)
    true_of_all_pictures = np.ones(len(times), np.bool_)
    longest_pause = np.full(len(times), 90_000)

    with pytest.raises(VideoError, match="times start again"):
        time_line(
            times, step=1, longest_pause=longest_pause, key=true_of_all_pictures, shown=true_of_all_pictures
        )


def test_vp9_whose_size_changes_gives_all_pictures_and_a_note(tmp_path):
    """A film of 12 pictures of 64 rows is joined with one of 12 pictures of 48 rows, both 25 a second."""
    high_pictures = [draw_number(number) for number in range(12)]
    low_pictures = [draw_number(number)[:48] for number in range(16, 28)]
    high = encode(tmp_path / "high.webm", high_pictures, "libvpx-vp9", options=VPX_OPTIONS)
    low = encode(tmp_path / "low.webm", low_pictures, "libvpx-vp9", options=VPX_OPTIONS)
    film = joined_byte_by_byte(tmp_path / "both.webm", [high, low])

    frames = read_frames(film, at(range(24)))

    heights = [len(image) for image in frames.images]
    assert heights == [64] * 12 + [48] * 12
    assert any("size of the pictures changes" in note for note in frames.notes)
    np.testing.assert_allclose(frames.time_s, np.arange(24) / 25, atol=0.0015)


# A group of pictures is *open* if pictures that are shown before its key picture also need the group before.
OPEN_GROUPS = X264_OPTIONS | {
    "g": "12",
    "bf": "3",
    "sc_threshold": "0",
    "x264-params": "open-gop=1:b-adapt=0:bframes=3",
}


@pytest.mark.parametrize(
    ("kind", "codec", "options", "n_torn", "first_whole"),
    [
        ("ts", "libx264", OPEN_GROUPS, 3, 112),
        ("mkv", "libx264", OPEN_GROUPS, 3, 112),
        ("vob", "mpeg2video", MPEG_2_OPTIONS, 2, 109),
    ],
    ids=["ts", "mkv", "vob"],
)
def test_pictures_of_a_later_part_that_need_a_group_that_was_cut_off_are_counted_in_a_note(
    tmp_path, kind, codec, options, n_torn, first_whole
):
    """A film of pictures 0 to 29 is joined with one of 100 to 139, of which the first group was cut off.

    So the second part begins with a key picture, number `first_whole`. But some pictures behind it in the
    file are shown before it, and made from pictures of the lost group, too. They come out torn. As many as
    there are of them, `n_torn`, are noted; all others are whole.
    """
    first = encode(tmp_path / f"a.{kind}", map(draw_number, range(30)), codec, options=options)
    second = encode(tmp_path / f"b.{kind}", map(draw_number, range(100, 140)), codec, options=options)
    second_without_group = remux(second, tmp_path / f"cut.{kind}", cut_first_group)
    film = joined_byte_by_byte(tmp_path / f"film.{kind}", [first, second_without_group])

    frames = read_frames(film, at(range(probe(film).frames)))

    numbers = read_drawn_numbers(frames.images)
    whole_numbers_of_second_part = numbers[30 + n_torn :]
    assert numbers[:30] == list(range(30))
    assert whole_numbers_of_second_part == list(range(first_whole, 140))
    np.testing.assert_allclose(frames.time_s - frames.time_s[0], np.arange(len(numbers)) / 25, atol=0.0015)
    assert any(f"at the start of parts {n_torn} picture" in note for note in frames.notes)


def test_pictures_too_small_to_have_times_of_their_own_begin_no_part(tmp_path):
    """An MPEG program stream has 600 equal grey pictures, 25 a second, of a few bytes each.

    A packet of the stream holds several such pictures and states the time of one. FFmpeg estimates the times
    of the others, and some estimates are earlier than the picture before. A step back of times otherwise
    shows that another film was appended; here it must not.
    """
    grey = np.full((48, 96, 3), 90, np.uint8)
    film = encode(tmp_path / "still.mpg", [grey] * 600, codec="mpeg2video", options=MPEG_2_OPTIONS)

    table = index_packets(film)

    n_parts = len(table.part_first)
    assert n_parts == 1
    np.testing.assert_allclose(table.frame_times.time_s, np.arange(600) / 25, atol=1e-4)


@pytest.mark.parametrize(("first_rate", "second_rate"), [(25, 30), (25, 50), (24, 50), (50, 25)])
def test_parts_of_a_joined_program_stream_each_keep_their_rate(tmp_path, first_rate, second_rate):
    """Two films of 30 pictures, numbered from 0 and from 100 on, have their own rates, in pictures a second.

    A program stream, as a DVD has it (VOB), states a time of some pictures only; the rate gives the others.
    """
    first = encode(
        tmp_path / "a.vob",
        map(draw_number, range(30)),
        codec="mpeg2video",
        options=MPEG_2_OPTIONS,
        rate=first_rate,
    )
    second = encode(
        tmp_path / "b.vob",
        map(draw_number, range(100, 130)),
        codec="mpeg2video",
        options=MPEG_2_OPTIONS,
        rate=second_rate,
    )

    film = joined_byte_by_byte(tmp_path / "ab.vob", [first, second])

    frames = read_frames(film, at(range(60)))

    assert read_drawn_numbers(frames.images) == [*range(30), *range(100, 130)]
    times_s = frames.time_s - frames.time_s[0]
    np.testing.assert_allclose(np.diff(times_s[:30]), 1 / first_rate, atol=0.0015)
    np.testing.assert_allclose(np.diff(times_s[30:]), 1 / second_rate, atol=0.0015)
    assert times_s[30] == pytest.approx(30 / first_rate, abs=0.025)


@pytest.mark.parametrize(
    ("range_of_second", "status"), [(1, "ok"), (2, "partial")], ids=["the same range", "full range"]
)
def test_a_second_matroska_file_of_another_colour_range_is_not_read(tmp_path, range_of_second, status):
    """Two files of 0.8 s are joined. The first has the limited range of colours, 16 to 235 and not 0 to 255.

    FFmpeg keeps this range for all that follows, so that pictures of a second file of full range would get
    wrong colours; the film is then partial, and only the first file is read.
    """
    limited_range = 1  # 2 is the full range
    first = encode(
        tmp_path / "a.mkv", map(draw_number, range(20)), options=X264_OPTIONS, color_range=limited_range
    )
    second = encode(
        tmp_path / "b.mkv", map(draw_number, range(20)), options=X264_OPTIONS, color_range=range_of_second
    )
    film = joined_byte_by_byte(tmp_path / "ab.mkv", [first, second])

    frames_of_film = read_frames(film, uniform(4))
    frames_of_first_file = read_frames(film, uniform(4), start_s=0.0, end_s=0.8)

    assert frames_of_film.status == status
    assert frames_of_first_file.status == "ok"


def test_sound_of_another_rate_in_the_second_part_is_read(tmp_path):
    """Two films of 2 s, whose sound has 44,100 and 48,000 samples a second, are joined.

    Each has a click at 1 s of its own, which is at 1 and 3 s of the whole.
    """
    for name, rate in (("a.ts", 44_100), ("b.ts", 48_000)):
        write_film(
            tmp_path / name, {"": clicks([1.0], seconds=2, rate=rate)}, seconds=2, codec="mp2", rate=rate
        )
    film = joined_byte_by_byte(tmp_path / "ab.ts", [tmp_path / "a.ts", tmp_path / "b.ts"])

    (samples,), missing_s = SoundTrack(film).parts(start_s=0, end_s=4, edges_s=(), rate=READ_RATE)

    assert missing_s < 0.2
    loudness = np.abs(np.nan_to_num(samples))
    loudest_of_first_part_s = loudness[: 2 * READ_RATE].argmax() / READ_RATE
    loudest_of_second_part_s = 2 + loudness[2 * READ_RATE : 4 * READ_RATE].argmax() / READ_RATE
    assert loudest_of_first_part_s == pytest.approx(1.0, abs=0.1)
    assert loudest_of_second_part_s == pytest.approx(3.0, abs=0.1)


def test_a_recording_that_goes_on_in_another_stream_is_partial(tmp_path):
    """Two films of 0.8 s are joined. Pictures of the second are in a stream of another number, and not read.

    So the whole is partial, and a span within the first film is not.
    """
    in_stream_256 = {"mpegts_start_pid": "256"}
    in_stream_400 = {"mpegts_start_pid": "400"}
    first = encode(
        tmp_path / "a.ts", map(draw_number, range(20)), options=X264_OPTIONS, container_options=in_stream_256
    )
    second = encode(
        tmp_path / "b.ts", map(draw_number, range(20)), options=X264_OPTIONS, container_options=in_stream_400
    )
    film = joined_byte_by_byte(tmp_path / "ab.ts", [first, second])

    frames_of_film = read_frames(film, uniform(4))
    frames_of_span = read_frames(film, uniform(4), start_s=0.0, end_s=0.6)

    assert frames_of_film.status == "partial"
    assert frames_of_span.status == "ok"
    assert probe(first).damage == ""


@pytest.mark.parametrize(("wrong_by", "is_corrected"), [(39, True), (40, True), (41, False)])
def test_a_time_of_a_program_stream_is_corrected_that_is_wrong_by_four_steps_at_most(wrong_by, is_corrected):
    """The pictures are 10 ticks apart, and one in the middle states a later time. Four steps are 40 ticks."""
    step = 10
    right_times = step * np.arange(200)
    stated_times = right_times.copy()
    stated_times[100] += wrong_by

    corrected_times = correct_outliers(stated_times, step)

    expected_times = right_times if is_corrected else stated_times
    assert np.array_equal(corrected_times, expected_times)


@pytest.mark.parametrize(
    ("ticks_per_picture", "parts_begin_at"),
    [(1, [0]), (2, [0, 1])],
    ids=["one tick a picture", "two ticks a picture"],
)
def test_two_key_pictures_of_the_same_time_are_two_parts_unless_ticks_are_as_long_as_pictures(
    ticks_per_picture, parts_begin_at
):
    """Two key pictures state the time 0, and three other pictures follow at their rate.

    With two ticks a picture, a recording of one picture was joined with one of four: the second begins at
    packet 1. With one tick a picture, times are so coarse that two pictures of one recording may state the
    same time: then there is one part.
    """
    times = np.array([0, 0, ticks_per_picture, 2 * ticks_per_picture, 3 * ticks_per_picture])
    is_key = np.array([True, True, False, False, False])
    are_shown = np.ones(5, np.bool_)
    longest_pause = np.full(5, 90_000)  # in ticks: no step here is as long

    line = time_line(times, step=ticks_per_picture, longest_pause=longest_pause, key=is_key, shown=are_shown)

    assert line.first_packets.tolist() == parts_begin_at
