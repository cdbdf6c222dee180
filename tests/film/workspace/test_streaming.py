"""A film that browsers don't play, encoded while it plays: from where one looks, at the film's times."""

import io
from fractions import Fraction
from types import SimpleNamespace

import av
import numpy as np
import pytest
from starlette.requests import Request

from obygaze_features.errors import VideoError
from obygaze_film.errors import FilmError
from obygaze_film.workspace.server import Workspace
from obygaze_film.workspace.streaming import TYPE_WITH_SOUND, TYPE_WITHOUT_SOUND, FilmStream, stream_type
from tests.video.encoding import encode

RATE = 25
LENGTH_S = 12
GREY_A_SECOND = 20


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """Twelve seconds of MPEG-2 with AC-3, each second 20 lighter than the one before."""
    path = tmp_path_factory.mktemp("streamed") / "film.mkv"
    with av.open(str(path), "w") as made:
        video = made.add_stream("mpeg2video", rate=RATE)
        video.width, video.height, video.pix_fmt = 160, 120, "yuv420p"
        sound = made.add_stream("ac3", rate=48_000, layout="stereo")
        for number in range(RATE * LENGTH_S):
            picture = np.full((120, 160, 3), GREY_A_SECOND * (number // RATE), np.uint8)
            made.mux(video.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        made.mux(video.encode(None))
        silence = av.AudioFrame.from_ndarray(np.zeros((2, 48_000 * LENGTH_S), np.float32), "fltp", "stereo")
        silence.sample_rate, silence.pts, silence.time_base = 48_000, 0, Fraction(1, 48_000)
        made.mux(sound.encode(silence))
        made.mux(sound.encode(None))
    return path


def times_and_greys_of(stream):
    """What a browser is sent, as FFmpeg reads it: times of the pictures in the film, and their greys."""
    data = b"".join(stream.chunks())
    with av.open(io.BytesIO(data)) as container:
        frames = list(container.decode(video=0))
        times = np.array([frame.time for frame in frames]) + stream.start_s
        return times, np.array([frame.to_ndarray(format="gray").mean() for frame in frames])


@pytest.mark.long
@pytest.mark.parametrize("start_s", [0.0, 3.3, 11.9])
def test_a_stream_has_the_films_own_times_and_pictures(film, start_s):
    """The film lasts 12 s and has 25 pictures a second. Second n is as grey as 20 n.

    A stream from 3.3 s on holds the film's pictures from the next one on, at the film's own times; its grey
    tells which second a picture is of.
    """
    stream = FilmStream(film, start_s)
    assert 0 <= stream.start_s - start_s < 1 / 25  # it starts at the next picture

    times, greys = times_and_greys_of(stream)

    rounding = 0.01  # of a picture: one may start at start_s, though start_s * 25 comes out a little more
    first_picture = np.ceil(start_s * 25 - rounding)
    picture_numbers = np.arange(first_picture, 12 * 25)
    assert times == pytest.approx(picture_numbers / 25, abs=0.002)
    seconds = picture_numbers // 25
    assert greys == pytest.approx(20 * seconds, abs=6)


@pytest.mark.long
def test_the_first_pictures_are_sent_before_the_rest_is_encoded(film):
    """A browser can begin to play once the first fragment (`moof`) of MP4 has come, in H.264.

    The rest of the film is longer than what has been sent until then.
    """
    chunks = FilmStream(film, start_s=2.0).chunks()

    sent_at_first = b""
    while b"moof" not in sent_at_first:
        sent_at_first += next(chunks)
    with av.open(io.BytesIO(sent_at_first)) as container:
        assert container.streams.video[0].codec_context.name == "h264"

    rest = b"".join(chunks)
    assert len(rest) > len(sent_at_first)


def test_sound_goes_on_to_the_films_end(film):
    """The film lasts 12 s and is sent from 4 s on, so that the sound ends after 8 s."""
    sent = b"".join(FilmStream(film, start_s=4.0).chunks())

    with av.open(io.BytesIO(sent)) as container:
        *_, last_piece_of_sound = container.decode(audio=0)
    assert last_piece_of_sound.time == pytest.approx(12 - 4, abs=0.1)


def test_a_stream_that_would_begin_after_the_end_of_the_film_is_refused(film):
    """The film lasts 12 s, and a browser asks for it from 99 s on."""
    with pytest.raises(VideoError, match="no picture from 99 s on"):
        FilmStream(film, start_s=99.0)


def test_the_media_type_of_a_stream_names_sound_only_if_the_film_has_some(film, tmp_path):
    """Browsers do not play MPEG-2: such a film is encoded while it plays, and sent as a stream.

    A browser is told before what it will get (`stream_type`): of a film with sound, pictures and sound; of
    one without, pictures alone.
    """
    pictures = (np.full((48, 64, 3), number, np.uint8) for number in range(30))
    film_with_sound = film
    silent_film = encode(tmp_path / "silent.mkv", pictures, "mpeg2video")

    assert stream_type(film_with_sound) == TYPE_WITH_SOUND
    assert stream_type(silent_film) == TYPE_WITHOUT_SOUND


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("arm_wrestling.mp4", id="browsers play it: the file itself is sent"),
        pytest.param("rotated_90.mov", id="its pictures are to be turned: a copy is made first"),
    ],
)
def test_some_films_are_not_encoded_while_they_play(shared_data, name):
    """The desk can encode a film while a browser plays it. Such a stream has a media type, "video/mp4; ...".

    An empty type says that the film is not sent so.
    """
    no_stream = ""
    assert stream_type(shared_data / "videos" / name) == no_stream


def ask_for_stream(film, time):
    """Ask the desk to encode a film from a time on."""
    opened = SimpleNamespace(path=film, stream_type=TYPE_WITH_SOUND, lost="")
    query = f"t={time}".encode()
    question = {"type": "http", "path_params": {"number": 0}, "headers": [], "query_string": query}
    return Workspace([opened], str).stream(Request(question))


def test_the_answer_says_from_which_time_on_the_film_is_encoded(film):
    """The desk is asked for the film from 2 s on, where a picture begins."""
    answer = ask_for_stream(film, "2")
    assert answer.headers["x-start"] == "2.0"


@pytest.mark.parametrize("time", ["nan", "-1", "1e999", "x"])
def test_what_is_no_time_of_the_film_is_refused(film, time):
    """The desk is asked for the film from a second on: none of these is one, and 1e999 is infinite."""
    with pytest.raises(FilmError, match="time"):
        ask_for_stream(film, time)
