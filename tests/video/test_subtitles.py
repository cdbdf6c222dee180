"""Subtitles are read as text with their times: of a file, or of a film's first text track."""

import itertools

import pytest

from obygaze_features.errors import VideoError
from obygaze_features.video import Subtitle, read_subtitles

SRT = """1
00:00:01,500 --> 00:00:03,000
<i>Héllo</i>,
second line

3
00:00:02,000 --> 00:00:06,250
- and bye

2
00:00:02,000 --> 00:00:05,250
Bye
"""
LINES = [Subtitle(1.5, 2.0, "Héllo, second line"), Subtitle(2.0, 6.25, "Bye - and bye")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_a_file_is_read_in_its_encoding_without_settings_and_one_line_at_a_time(tmp_path, encoding):
    path = tmp_path / "film.srt"
    path.write_bytes(SRT.encode(encoding))
    assert read_subtitles(path) == LINES


def test_webvtt_and_ass_are_read_alike(tmp_path):
    (tmp_path / "a.vtt").write_text("WEBVTT\n\n00:01.500 --> 00:03.000\n<v Ann>Hi\n", encoding="utf-8")
    ass = "[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
    ass += "Dialogue: 0,0:00:01.50,0:00:03.00,Default,,0,0,0,,{\\b1}Hi\n"
    (tmp_path / "a.ass").write_text("[Script Info]\n\n" + ass, encoding="utf-8")
    assert [read_subtitles(tmp_path / name) for name in ("a.vtt", "a.ass")] == [[Subtitle(1.5, 3, "Hi")]] * 2


def test_the_text_track_of_a_film_is_read(shared_data):
    lines = read_subtitles(shared_data / "videos" / "nasa_13013.mp4")
    assert lines[0] == Subtitle(0.21, 4.26, "NAR: This is the optical and science segment of the Webb")
    assert len(lines) == 4
    assert all(one.end_s <= other.start_s for one, other in itertools.pairwise(lines))


@pytest.mark.parametrize("data", [b"", b"no subtitles", bytes(range(256)), b"1\n00:00:01,5 --> \nx\n"])
def test_what_holds_no_subtitles_is_one_error(tmp_path, shared_data, data):
    (tmp_path / "bad.srt").write_bytes(data)
    for path in (tmp_path / "bad.srt", tmp_path / "none.srt", shared_data / "videos" / "arm_wrestling.mp4"):
        with pytest.raises(VideoError, match=path.name):
            read_subtitles(path)


def test_signs_that_control_are_left_out(tmp_path):
    path = tmp_path / "a.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nA\u202eB\u0007C\tD\n", encoding="utf-8")
    assert read_subtitles(path) == [Subtitle(1.0, 2.0, "ABC D")]
