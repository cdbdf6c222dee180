"""The text track of a film is read with its times."""

import av
import pytest

from obygaze_features.errors import VideoError
from obygaze_features.video import read_subtitle_track
from obygaze_film.rows import read_words


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
    lines, said = read_words(late)
    assert [start for start, _, _ in lines] == pytest.approx([0, 0.27, 4.39])
    assert "3 of 4" in said
    assert "below zero" in said


def test_what_holds_no_subtitles_is_one_error(tmp_path, shared_data):
    (tmp_path / "bad.mp4").write_bytes(bytes(range(256)))
    for path in (tmp_path / "bad.mp4", tmp_path / "none.mp4", shared_data / "videos" / "arm_wrestling.mp4"):
        with pytest.raises(VideoError, match=path.name):
            read_subtitle_track(path)
