"""The text track of a film is read with its times."""

from contextlib import ExitStack

import av
import pytest
from av.stream import Disposition

from obygaze_features.errors import VideoError
from obygaze_features.manifest import read_subtitles
from obygaze_features.video import read_subtitle_track
from obygaze_film.rows import read_subtitle_lines


def test_the_text_track_of_a_film_is_read(shared_data):
    lines = read_subtitle_track(shared_data / "videos" / "nasa_13013.mp4")
    assert lines[0] == (0.21, 4.26, "NAR: This is the optical and science segment of the Webb")
    assert len(lines) == 4
    assert lines == sorted(lines)


def test_what_is_said_before_the_pictures_begin_is_counted_and_not_used(shared_data, tmp_path):
    """A film cut at a key frame keeps the subtitles from before it."""
    late = tmp_path / "late.mp4"
    with av.open(shared_data / "videos" / "nasa_13013.mp4") as film, av.open(late, "w") as cut:
        kept = {
            s.index: cut.add_stream_from_template(s)
            for s in (film.streams.video[0], film.streams.subtitles[0])
        }
        begun = False
        for packet in film.demux(film.streams.video[0], film.streams.subtitles[0]):
            is_picture = packet.stream.type == "video"
            begun |= is_picture and packet.is_keyframe and packet.pts * packet.time_base >= 3
            if packet.dts is not None and (begun or not is_picture):
                packet.stream = kept[packet.stream.index]
                cut.mux(packet)
    lines, note = read_subtitle_lines(late)
    assert [start for start, _, _ in lines] == pytest.approx([0, 0.27, 4.39])
    assert "3 of 4" in note
    assert "below zero" in note


def test_what_holds_no_subtitles_is_one_error(tmp_path, shared_data):
    (tmp_path / "bad.mp4").write_bytes(bytes(range(256)))
    for path in (tmp_path / "bad.mp4", tmp_path / "none.mp4", shared_data / "videos" / "arm_wrestling.mp4"):
        with pytest.raises(VideoError, match=path.name):
            read_subtitle_track(path)


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


def with_subtitles(target, film, marks):
    """Write a film with tracks of files, each marked as forced or default, or neither."""
    with ExitStack() as still_open:
        video, *files = (still_open.enter_context(av.open(path)) for path in (film, *marks))
        out = still_open.enter_context(av.open(target, "w"))
        packets = []
        streams = video.streams.video[0], *(file.streams.subtitles[0] for file in files)
        for stream, mark in zip(streams, (None, *marks.values()), strict=True):
            copy = out.add_stream_from_template(stream)
            if stream.type == "subtitle":
                copy.disposition = mark or Disposition(0)
            for packet in stream.container.demux(stream):
                if packet.dts is not None:
                    packet.stream = copy
                    packets.append(packet)
        for packet in sorted(packets, key=lambda packet: packet.dts * packet.time_base):
            out.mux(packet)


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
def test_a_track_says_what_its_file_says(shared_data, tmp_path, kind, text, expected):
    path = tmp_path / f"a.{kind}"
    film = tmp_path / "film.mkv"
    path.write_text(FILES[kind].format(text), "utf-8")
    with_subtitles(film, shared_data / "videos" / "nasa_13013.mp4", {path: None})
    assert [text for *_, text in read_subtitle_track(film)] == [expected]
    assert [line.text for line in read_subtitles(path)] == [expected]


@pytest.mark.parametrize(
    ("first", "second", "read"),
    [
        (None, None, "0"),
        (Disposition.forced, None, "1"),
        (Disposition.forced, Disposition.forced, "0"),
        (None, Disposition.default, "1"),
        (None, Disposition.default | Disposition.forced, "0"),
    ],
    ids=["no marks", "the first forced", "both forced", "the second default", "the default one forced"],
)
def test_of_two_text_tracks_the_one_that_players_show_is_read_and_named(
    shared_data, tmp_path, first, second, read
):
    tracks = {tmp_path / "0.srt": first, tmp_path / "1.srt": second}
    for path in tracks:
        path.write_text(FILES["srt"].format(path.stem), "utf-8")
    film = tmp_path / "film.mkv"
    with_subtitles(film, shared_data / "videos" / "nasa_13013.mp4", tracks)
    lines, note = read_subtitle_lines(film)
    assert [text for *_, text in lines] == [read]
    assert f"text track {int(read) + 1} of 2" in note


@pytest.fixture
def film_of_ttml(shared_data, tmp_path):
    """Make a film whose first subtitle track is of TTML, which is not read, before the others."""
    nasa = shared_data / "videos" / "nasa_13013.mp4"

    def make(*others):
        film = tmp_path / "film.mp4"
        with_subtitles(film, nasa, dict.fromkeys([nasa, *others]))
        film.write_bytes(film.read_bytes().replace(b"tx3g", b"stpp", 1))
        return film

    return make


def test_a_track_of_a_kind_that_is_not_read_hides_no_other(film_of_ttml, shared_data):
    same_film = f"{shared_data / 'videos'}/./nasa_13013.mp4"  # spelt so, it is another key of a dict
    lines, note = read_subtitle_lines(film_of_ttml(same_film))
    assert len(lines) == 4
    assert "1 of 2 subtitle tracks" in note


def test_a_film_with_a_track_of_a_kind_that_is_not_read_alone_is_refused(film_of_ttml):
    with pytest.raises(VideoError, match="TTML"):
        read_subtitle_lines(film_of_ttml())
