"""Films that browsers play, but not alike, are sent as a copy, so that each scene is where the scores are."""

from fractions import Fraction

import av
import numpy as np
import pytest
from av.stream import Disposition

from obygaze_film.workspace.proxy import make_proxy, remade_part
from tests.video.encoding import encode

RATE = 25


def film_of_tracks(path, *, first_pictures_s, n_sounds=1):
    """Encode tracks of pictures (H.264, a second each) and of silence; return the path.

    `first_pictures_s` has for each track of pictures the time of its first one, so that `[0, 0]` gives two
    tracks from 0 on. Silence begins at 0. The last track of each kind is marked as the default.
    """
    with av.open(str(path), "w") as container:
        tracks = [container.add_stream("libx264", rate=RATE, options={"bf": "0"}) for _ in first_pictures_s]
        for track in tracks:
            track.width, track.height, track.pix_fmt = 64, 48, "yuv420p"
        sounds = [container.add_stream("aac", rate=48_000, layout="mono") for _ in range(n_sounds)]
        for track in (*tracks, *sounds):
            is_default = track in (tracks[-1], sounds[-1])
            track.disposition = Disposition.default if is_default else Disposition(0)
        for track, first_s in zip(tracks, first_pictures_s, strict=True):
            for number in range(RATE):
                frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 100, np.uint8), "rgb24")
                frame.pts = round(first_s * RATE) + number
                frame.time_base = Fraction(1, RATE)
                container.mux(track.encode(frame))
            container.mux(track.encode(None))
        for track in sounds:
            silence = av.AudioFrame.from_ndarray(np.zeros((1, 48_000), np.float32), "fltp", "mono")
            silence.sample_rate, silence.pts, silence.time_base = 48_000, 0, Fraction(1, 48_000)
            container.mux(track.encode(silence))
            container.mux(track.encode(None))
    return path


def units_a_second(path):
    """Return in how many units a second an MP4 file counts, and its first track: of `mvhd` and of `mdhd`."""
    content = path.read_bytes()
    units = []
    for box in (b"mvhd", b"mdhd"):
        after_name = content.index(box) + 4
        # One byte of version (0), three of flags, twice four of dates, and then the units.
        units.append(int.from_bytes(content[after_name + 12 : after_name + 16], "big"))
    return units


def test_a_film_that_begins_at_0_with_one_track_of_pictures_is_sent_as_it_is(tmp_path):
    """A film of H.264 and AAC in MP4 has one track of pictures, which begins at 0 s.

    All browsers show it alike: the desk sends the file itself, and makes nothing of it anew.
    """
    film = film_of_tracks(tmp_path / "film.mp4", first_pictures_s=[0])
    assert remade_part(film) == "nothing"


def test_a_film_whose_times_begin_at_5_s_is_sent_as_a_copy(tmp_path):
    """Recordings of streams begin at any time. Firefox counts from the first picture, as the scores do.

    Chromium counts from the file's own 0: there each scene came 5 s late beside the scores.
    """
    pictures = [np.full((48, 64, 3), 100, np.uint8)] * RATE
    film = encode(
        tmp_path / "stream.mp4",
        pictures,
        times=range(5 * RATE, 6 * RATE),
        options={"bf": "0"},
        container_options={"avoid_negative_ts": "disabled"},
    )

    assert remade_part(film) == "container"
    make_proxy(film, tmp_path / "copy.mp4", lambda _seconds: None)
    assert remade_part(tmp_path / "copy.mp4") == "nothing"


def test_an_mp4_file_whose_pictures_begin_after_its_sound_is_sent_as_a_copy(tmp_path):
    """A recording of a broadcast that was put into MP4: Firefox shows its scenes half a second too early."""
    film = film_of_tracks(tmp_path / "late.mp4", first_pictures_s=[0.5])

    assert remade_part(film) == "container"
    make_proxy(film, tmp_path / "copy.mp4", lambda _seconds: None)
    assert remade_part(tmp_path / "copy.mp4") == "nothing"


def test_a_copy_counts_in_units_of_its_pictures(tmp_path):
    """The first picture is half a second behind the sound, which MP4 states as a gap in an edit list.

    Firefox reads the gap in units of the pictures, and not, as it is written, in those of the file. It showed
    all scenes of such copies half a second too early: with one unit for both it is right.
    """
    film = film_of_tracks(tmp_path / "late.mkv", first_pictures_s=[0.5])

    make_proxy(film, tmp_path / "copy.mp4", lambda _seconds: None)

    units_of_file, units_of_pictures = units_a_second(tmp_path / "copy.mp4")
    assert units_of_file == units_of_pictures


def test_a_copy_of_a_film_in_mpeg_2_counts_its_times_and_those_of_its_pictures_in_one_unit(tmp_path):
    """Browsers do not play MPEG-2, so that the pictures of the copy are encoded anew.

    An MP4 file has a unit for times of the file and one for each track's. Firefox takes the one for the
    other, and shows pictures at wrong times where they differ.
    """
    pictures = [np.full((48, 64, 3), 100, np.uint8)] * RATE
    make_proxy(encode(tmp_path / "film.mpg", pictures, "mpeg2video"), tmp_path / "copy.mp4", lambda _s: None)

    units_of_file, units_of_pictures = units_a_second(tmp_path / "copy.mp4")
    assert units_of_file == units_of_pictures


@pytest.mark.parametrize("name", ["two.mp4", "two.mkv"])
def test_a_film_whose_second_track_of_pictures_is_read_is_sent_as_a_copy_of_that_track(tmp_path, name):
    """The film has two tracks of pictures, the second of which is the default, and so the one that is scored.

    Firefox shows the first track, whatever is marked: another film than the model read. So browsers get a
    copy with the default track alone. Its pictures need no new encoding, only another container.
    """
    film = film_of_tracks(tmp_path / name, first_pictures_s=[0, 0])

    assert remade_part(film) == "container"
    make_proxy(film, tmp_path / "copy.mp4", lambda _seconds: None)
    with av.open(str(tmp_path / "copy.mp4")) as copy:
        assert len(copy.streams.video) == 1


def test_a_film_whose_second_sound_is_read_is_sent_as_a_copy_with_that_sound(tmp_path):
    """The film has two tracks of sound: a commentary, and the original, which is marked as the default.

    Browsers play the first; they get a copy with one track of sound, in another container.
    """
    film = film_of_tracks(tmp_path / "film.mp4", first_pictures_s=[0], n_sounds=2)

    assert remade_part(film) == "container"
    make_proxy(film, tmp_path / "copy.mp4", lambda _seconds: None)
    with av.open(str(tmp_path / "copy.mp4")) as copy:
        assert len(copy.streams.audio) == 1
