"""Joined Matroska files whose sound has other settings, which FFmpeg decodes with those of the first file."""

from fractions import Fraction

import av
import numpy as np
import pytest

from obygaze_features.errors import VideoError
from obygaze_features.video.sound import SoundTrack
from tests.video.conftest import draw_number

PICTURES_A_SECOND = 25
LENGTH_S = 4
RATE = 16_000
"""Samples a second that are asked for."""


def film_with_tone(path, codec, rate, hertz):
    """A film of 4 s with a tone."""
    with av.open(str(path), "w") as output:
        pictures = output.add_stream("mpeg4", rate=PICTURES_A_SECOND)
        first_picture = draw_number(0)
        pictures.height, pictures.width, _ = first_picture.shape
        sound = output.add_stream(codec, rate=rate, layout="mono")
        for number in range(LENGTH_S * PICTURES_A_SECOND):
            frame = av.VideoFrame.from_ndarray(draw_number(number), format="rgb24")
            output.mux(pictures.encode(frame))
            output.mux(sound.encode(_tone(number, rate, hertz)))
        output.mux(pictures.encode(None))
        output.mux(sound.encode(None))
    return path


def _tone(picture, rate, hertz):
    """The samples of a tone while a picture is shown."""
    n_samples = rate // PICTURES_A_SECOND
    first = picture * n_samples
    phase = 2 * np.pi * hertz * (first + np.arange(n_samples)) / rate
    values = (8000 * np.sin(phase)).astype(np.int16)
    frame = av.AudioFrame.from_ndarray(values[None], format="s16", layout="mono")
    frame.sample_rate = rate
    frame.pts = first
    frame.time_base = Fraction(1, rate)
    return frame


def joined(path, *films):
    path.write_bytes(b"".join(film.read_bytes() for film in films))
    return path


def hertz_between(film, start_s, end_s):
    """The pitch of a film's sound in a span: the highest peak of its spectrum."""
    values, _ = SoundTrack(film).parts(start_s, end_s, [], rate=RATE)
    spectrum = np.abs(np.fft.rfft(values[0] * np.hanning(len(values[0]))))
    return spectrum.argmax() * RATE / len(values[0])


@pytest.mark.parametrize("codec", ["aac", "pcm_s16le", "alac"])
def test_sound_of_a_later_part_of_a_joined_film_that_has_another_rate_is_refused(tmp_path, codec):
    """Two films of 4 s are joined: a tone of 440 Hz at 48,000 samples a second, and one of 880 Hz at 44,100.

    FFmpeg would play the second at the rate of the first: 880 * 48,000 / 44,100 = 957 Hz, without an error,
    and with pictures that are right. So sound from 5 to 7 s, in the second film, is refused; from 1 to 3 s,
    in the first, it is read.
    """
    first = film_with_tone(tmp_path / "a.mkv", codec, rate=48_000, hertz=440)
    second = film_with_tone(tmp_path / "b.mkv", codec, rate=44_100, hertz=880)

    film = joined(tmp_path / "ab.mkv", first, second)

    assert hertz_between(film, start_s=1.0, end_s=3.0) == pytest.approx(440, abs=1)
    with pytest.raises(VideoError, match=r"between 5 and 7 s.*other settings.*join films with FFmpeg"):
        hertz_between(film, start_s=5.0, end_s=7.0)


@pytest.mark.parametrize(
    ("codec", "rate_of_second"),
    [("aac", 48_000), ("pcm_s16le", 48_000), ("flac", 44_100)],
    ids=["AAC of one rate", "PCM of one rate", "FLAC of two rates"],
)
def test_sound_of_a_joined_film_is_read_if_the_settings_of_its_first_part_fit_the_others(
    tmp_path, codec, rate_of_second
):
    """Two films of 4 s are joined: a tone of 440 Hz at 48,000 samples a second, and one of 880 Hz.

    FFmpeg decodes the second with the settings of the first, which fit if both have the same rate. They also
    fit for FLAC of two rates, whose packets state their own. So both tones are heard at their pitch.
    """
    first = film_with_tone(tmp_path / "a.mkv", codec, rate=48_000, hertz=440)
    second = film_with_tone(tmp_path / "b.mkv", codec, rate_of_second, hertz=880)

    film = joined(tmp_path / "ab.mkv", first, second)

    assert hertz_between(film, start_s=1.0, end_s=3.0) == pytest.approx(440, abs=1)
    assert hertz_between(film, start_s=5.0, end_s=7.0) == pytest.approx(880, abs=1)
