"""The text track of a film is read with its times."""

import pytest

from obygaze_features.errors import VideoError
from obygaze_features.video import read_subtitle_track


def test_the_text_track_of_a_film_is_read(shared_data):
    lines = read_subtitle_track(shared_data / "videos" / "nasa_13013.mp4")
    assert lines[0] == (0.21, 4.26, "NAR: This is the optical and science segment of the Webb")
    assert len(lines) == 4
    assert lines == sorted(lines)


def test_what_holds_no_subtitles_is_one_error(tmp_path, shared_data):
    (tmp_path / "bad.mp4").write_bytes(bytes(range(256)))
    for path in (tmp_path / "bad.mp4", tmp_path / "none.mp4", shared_data / "videos" / "arm_wrestling.mp4"):
        with pytest.raises(VideoError, match=path.name):
            read_subtitle_track(path)
