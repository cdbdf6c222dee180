"""The text track of a film is read with its times."""

import shutil
from contextlib import ExitStack
from pathlib import Path

import av
import pytest
from av.stream import Disposition

from obygaze_features.errors import VideoError
from obygaze_features.manifest import read_subtitles
from obygaze_features.video import read_subtitle_track
from obygaze_film.rows import read_subtitle_lines


def test_the_text_track_of_a_film_is_read(shared_data):
    """A real film has four subtitles. A line has a start, an end and a text."""
    lines = read_subtitle_track(shared_data / "videos" / "nasa_13013.mp4")

    assert len(lines) == 4
    assert lines[0] == (0.21, 4.26, "NAR: This is the optical and science segment of the Webb")
    assert lines == sorted(lines)


@pytest.fixture
def film_without_its_first_pictures(shared_data, tmp_path):
    """A real film cut without encoding: no pictures before a key frame behind 3 s, and all its subtitles."""
    path = tmp_path / "late.mp4"
    with av.open(shared_data / "videos" / "nasa_13013.mp4") as film, av.open(path, "w") as cut:
        sources = film.streams.video[0], film.streams.subtitles[0]
        copy_of = {stream.index: cut.add_stream_from_template(stream) for stream in sources}
        have_pictures_begun = False
        for packet in film.demux(*sources):
            is_end_of_stream = packet.dts is None
            if is_end_of_stream:
                continue
            if packet.stream.type == "video":
                if packet.is_keyframe and packet.pts * packet.time_base >= 3:
                    have_pictures_begun = True
                if not have_pictures_begun:
                    continue
            packet.stream = copy_of[packet.stream.index]
            cut.mux(packet)
    return path


def test_subtitles_before_the_first_picture_are_counted_and_not_read(film_without_its_first_pictures):
    """One of the four lines ended before the first picture, from which times count.

    The next one was shown when the pictures began, and so starts at 0.
    """
    lines, note = read_subtitle_lines(film_without_its_first_pictures)

    starts_s = [start_s for start_s, _, _ in lines]
    assert starts_s == pytest.approx([0, 0.27, 4.39])
    assert "3 of 4" in note
    assert "below zero" in note


@pytest.mark.parametrize("name", ["bad.mp4", "none.mp4", "arm_wrestling.mp4"])
def test_a_file_without_subtitles_is_refused_by_name(tmp_path, shared_data, name):
    """bad.mp4 is no video, none.mp4 is not there, and arm_wrestling.mp4 has no track of subtitles."""
    (tmp_path / "bad.mp4").write_bytes(bytes(range(256)))
    folder = shared_data / "videos" if name == "arm_wrestling.mp4" else tmp_path

    with pytest.raises(VideoError, match=name):
        read_subtitle_track(folder / name)


ASS = (
    "[Script Info]\nScriptType: v4.00+\n\n[V4+ Styles]\nFormat: Name, Fontname, Fontsize\n"
    "Style: Default,Arial,20\n\n[Events]\n"
    "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
    "Dialogue: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,{}\n"
)
FILES = {
    "ass": ASS,
    "srt": "1\n00:00:01,000 --> 00:00:02,500\n{}\n",
    "vtt": "WEBVTT\n\n00:01.000 --> 00:02.500\n{}\n",
}
PERSIAN = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
"""A word with a mark of no width that keeps two letters from joining."""


def write_film_with_text_tracks(target, pictures_of, mark_of_file):
    """Write a film's pictures with a track of subtitles of each file -> its mark (a disposition) or None."""
    with ExitStack() as still_open:
        opened_film = still_open.enter_context(av.open(pictures_of))
        output = still_open.enter_context(av.open(target, "w"))
        pictures = opened_film.streams.video[0]
        packets = copied_packets(pictures, output.add_stream_from_template(pictures))
        for path, disposition in mark_of_file.items():
            file = still_open.enter_context(av.open(path))
            subtitles = file.streams.subtitles[0]
            copy = output.add_stream_from_template(subtitles)
            copy.disposition = disposition or Disposition(0)
            packets += copied_packets(subtitles, copy)
        for packet in sorted(packets, key=lambda packet: packet.dts * packet.time_base):
            output.mux(packet)


def copied_packets(stream, copy):
    """Return the packets of a stream, to be written into its copy."""
    packets = []
    for packet in stream.container.demux(stream):
        is_end_of_stream = packet.dts is None
        if not is_end_of_stream:
            packet.stream = copy
            packets.append(packet)
    return packets


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("ass", "{\\p1}m 0 0 l 10 0{\\p0}Sign, {a note}here\\Nthere", "Sign, here there"),
        ("ass", "a <b and c> d", "a <b and c> d"),
        ("srt", "a < b and c > d {y} <i>e</i>", "a < b and c > d {y} e"),
        ("srt", "<laughs> {\\an8}ha\nhi", "<laughs> ha hi"),
        ("vtt", "<v Ann>&quot;5 &lt; 6&quot; it&#39;s &lt;i&gt;</v>", '"5 < 6" it\'s <i>'),
        *((kind, PERSIAN, PERSIAN) for kind in FILES),
    ],
)
def test_a_text_track_has_the_words_of_its_file(shared_data, tmp_path, kind, text, expected):
    r"""A file of one subtitle is read by itself, and as the text track of a film: both give the same words.

    Marks of style are left out, which each format (`kind`) writes in its own way:

    - In .ass they are in braces, as are notes; between {\p1} and {\p0} are drawings; \N ends a line.
    - In .srt they are <i>, <b> and such, and {\an8} for a place on the screen; <laughs> is a word.
    - In .vtt all in angle brackets is a mark; &lt; stands for <, and &#39; for an apostrophe.

    What looks like a mark of another format stays. So does the sign in the Persian word, which has no width.
    """
    file = tmp_path / f"a.{kind}"
    file.write_text(FILES[kind].format(text), "utf-8")
    film = tmp_path / "film.mkv"
    write_film_with_text_tracks(film, shared_data / "videos" / "nasa_13013.mp4", {file: None})

    ((_start_s, _end_s, text_of_track),) = read_subtitle_track(film)
    (line_of_file,) = read_subtitles(file)

    assert text_of_track == expected
    assert line_of_file.text == expected


@pytest.mark.parametrize(
    ("marks_of_tracks", "shown_track"),
    [
        ((None, None), 0),
        ((Disposition.forced, None), 1),
        ((Disposition.forced, Disposition.forced), 0),
        ((None, Disposition.default), 1),
        ((None, Disposition.default | Disposition.forced), 0),
    ],
    ids=["no marks", "the first forced", "both forced", "the second default", "the default one forced"],
)
def test_of_two_text_tracks_the_one_that_players_show_is_read_and_named(
    shared_data, tmp_path, marks_of_tracks, shown_track
):
    """A "forced" track is only for signs and foreign speech; else the default one is shown, or the first.

    The one subtitle of each track says its number, 0 or 1. The note counts from 1.
    """
    first_file = tmp_path / "0.srt"
    second_file = tmp_path / "1.srt"
    first_file.write_text(FILES["srt"].format("track 0"), "utf-8")
    second_file.write_text(FILES["srt"].format("track 1"), "utf-8")
    first_mark, second_mark = marks_of_tracks
    film = tmp_path / "film.mkv"
    nasa = shared_data / "videos" / "nasa_13013.mp4"
    write_film_with_text_tracks(film, nasa, {first_file: first_mark, second_file: second_mark})

    lines, note = read_subtitle_lines(film)

    ((_start_s, _end_s, text),) = lines
    assert text == f"track {shown_track}"
    assert f"text track {shown_track + 1} of 2" in note


def make_first_track_ttml(film):
    """Give the first subtitle track of an MP4 the kind of TTML, which is not read."""
    film.write_bytes(film.read_bytes().replace(b"tx3g", b"stpp", 1))


def test_a_text_track_is_read_beside_one_of_an_unreadable_kind(shared_data, tmp_path):
    """A film has two text tracks, each with the four lines of a real film of NASA.

    The first is made one of TTML, which is not read. So the lines are those of the second, and a note says
    that one of two tracks was read.
    """
    nasa = shared_data / "videos" / "nasa_13013.mp4"
    copy_of_nasa = Path(shutil.copy(nasa, tmp_path / "copy.mp4"))  # a file gives one track
    film = tmp_path / "film.mp4"
    write_film_with_text_tracks(film, nasa, mark_of_file={nasa: None, copy_of_nasa: None})  # without marks
    make_first_track_ttml(film)

    lines, note = read_subtitle_lines(film)

    assert len(lines) == 4
    assert "1 of 2 subtitle tracks" in note


def test_a_film_whose_only_text_track_is_of_an_unreadable_kind_is_refused(shared_data, tmp_path):
    """The text track of a film is made one of TTML, which is not read; the refusal names this kind."""
    nasa = shared_data / "videos" / "nasa_13013.mp4"
    film = tmp_path / "film.mp4"
    write_film_with_text_tracks(film, nasa, {nasa: None})
    make_first_track_ttml(film)

    with pytest.raises(VideoError, match="TTML"):
        read_subtitle_lines(film)
