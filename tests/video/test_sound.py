"""Sound is read to the sample, on the clock of the pictures, whatever else is read of the file."""

import shutil
import subprocess
import tracemalloc
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import av
import numpy as np
import pytest
from av.stream import Discard, Disposition

from obygaze_features.errors import VideoError
from obygaze_features.video import SoundTrack, played, sound
from obygaze_features.video.packets import demux
from obygaze_features.video.sound import jump_s
from obygaze_features.video.source import Source, opened_to
from tests.video.conftest import remux
from tests.video.sounding import RATE, clicks, time_of_click, tone, write_channels, write_film

CODEC_OF = {"mp4": "aac", "mkv": "libopus", "ts": "ac3", "avi": "libmp3lame"}
"""Container -> codec of its sound."""
ENCODERS_DELAY_S = {"mp4": 0.0, "mkv": 0.0, "ts": 256 / RATE, "avi": 1105 / RATE}
"""What players hear late too: in transport streams and AVI no place says what an encoder adds."""
TICK_S = {"mp4": 0.0, "mkv": 0.001, "ts": 1 / 90_000, "avi": 0.0}
"""To what a container rounds times."""


@pytest.fixture(scope="module")
def film_of_clicks(tmp_path_factory):
    """Container -> a film of 36 s with clicks at 1, 29.5, 31.5 and 33 s."""
    folder = tmp_path_factory.mktemp("sound")
    return {
        kind: write_film(
            folder / f"clicks.{kind}",
            {"eng": clicks([1.0, 29.5, 31.5, 33.0], seconds=36.0, rate=48_000 if kind == "mkv" else RATE)},
            seconds=36.0,
            codec=codec,
            rate=48_000 if kind == "mkv" else RATE,
        )
        for kind, codec in CODEC_OF.items()
    }


class SoundOfSpan(NamedTuple):
    """What was read of the sound of a span."""

    parts: np.ndarray
    """Samples [parts, samples of the longest], filled up with NaN."""
    missing_s: float
    """Seconds of the span without sound."""

    @property
    def samples(self):
        """Samples of the only part, [N]."""
        (samples,) = self.parts
        return samples


def read_sound(path, rate, start_s, end_s, edges_s=(), **settings):
    """Read the sound of a span, in parts that end at the edges."""
    return SoundOfSpan(*SoundTrack(path, **settings).parts(start_s, end_s, edges_s, rate=rate))


@pytest.mark.long
@pytest.mark.parametrize("kind", CODEC_OF)
@pytest.mark.parametrize("rate", [16_000, 48_000])
def test_a_click_is_found_at_its_sample(film_of_clicks, kind, rate):
    """The film has clicks at 1, 29.5, 31.5 and 33 s. Some containers do not state how much an encoder delays.

    A click may lie as far from its time as the container rounds times, and one sample more.
    """
    samples = read_sound(film_of_clicks[kind], rate, start_s=0.0, end_s=36.0).samples

    rounding_s = TICK_S[kind] / 2 + 1 / rate
    for click_s in (1.0, 29.5, 31.5, 33.0):
        expected_s = click_s + ENCODERS_DELAY_S[kind]
        assert time_of_click(samples, rate, click_s) == pytest.approx(expected_s, abs=rounding_s)


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="the command of FFmpeg is not installed")
@pytest.mark.parametrize("kind", CODEC_OF)
def test_samples_are_those_of_ffmpegs_command(film_of_clicks, kind):
    """FFmpeg's command gives the sound as 16,000 samples a second of one channel.

    Ours may be shifted by half of what the container rounds times to, and one sample more. They are compared
    from 0.05 to 28 s: at the first and the last samples, the two resamplers meet other neighbours.
    """
    rate = 16_000
    command = f"ffmpeg -v error -i {film_of_clicks[kind]} -vn -ac 1 -ar {rate} -f f32le -".split()
    output = subprocess.run(command, capture_output=True, check=True).stdout
    samples_of_ffmpeg = np.frombuffer(output, "<f4")

    samples = read_sound(film_of_clicks[kind], rate, start_s=0.0, end_s=36.0).samples

    max_shift = round(TICK_S[kind] / 2 * rate) + 1
    first = round(0.05 * rate)
    end = 28 * rate
    largest_differences = []
    for shift in range(-max_shift, max_shift + 1):
        differences = samples[first:end] - samples_of_ffmpeg[first + shift : end + shift]
        largest_differences.append(np.abs(differences).max())
    assert min(largest_differences) < 1e-5


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="the command of FFmpeg is not installed")
@pytest.mark.parametrize("cut_s", [0.5, 0.757, 0.013])
def test_a_click_is_heard_in_time_in_a_film_cut_without_encoding(film_of_clicks, tmp_path, cut_s):
    """The first click is at 1 s, and the film is cut before it. The sound then begins inside a packet."""
    cut_film = tmp_path / "cut.mp4"
    command = f"ffmpeg -v error -ss {cut_s} -i {film_of_clicks['mp4']} -t 3 -c copy {cut_film}"
    subprocess.run(command.split(), check=True)

    samples = read_sound(cut_film, rate=48_000, start_s=0.0, end_s=2.0).samples

    loudest_sample_s = np.abs(samples).argmax() / 48_000
    assert loudest_sample_s == pytest.approx(1.0 - cut_s, abs=0.001)


@pytest.mark.long
@pytest.mark.parametrize("kind", CODEC_OF)
def test_a_span_has_the_same_samples_whatever_else_is_read(film_of_clicks, kind):
    """The span from 28 to 34 s of a film of 36 s is read with the rest, and alone."""
    whole = read_sound(film_of_clicks[kind], rate=16_000, start_s=0.0, end_s=36.0).samples
    span = read_sound(film_of_clicks[kind], rate=16_000, start_s=28.0, end_s=34.0).samples

    assert np.array_equal(span, whole[28 * 16_000 : 34 * 16_000])


def test_parts_end_at_the_edges_and_hold_the_span_between_them(film_of_clicks):
    """At 16,000 samples a second, the parts are from 0.5 to 1 s, from 1 to 1 s, from 1 to 3 s, and to 4 s.

    A part of no length has one sample. Parts have the same length in memory, filled up with NaN.
    """
    sound_of_span = read_sound(
        film_of_clicks["mp4"], rate=16_000, start_s=0.5, end_s=4.0, edges_s=[1.0, 1.0, 3.0]
    )
    whole = read_sound(film_of_clicks["mp4"], rate=16_000, start_s=0.0, end_s=4.0).samples

    n_samples = [int(np.isfinite(part).sum()) for part in sound_of_span.parts]
    assert n_samples == [8_000, 1, 32_000, 16_000]
    from_1_to_3_s = sound_of_span.parts[2][:32_000]
    assert np.array_equal(from_1_to_3_s, whole[16_000:48_000])
    assert sound_of_span.missing_s == 0.0


def test_a_gap_is_silent_and_counted(tmp_path):
    """A tone of amplitude 0.1 sounds for 8 s, but for the seconds from 3 to 5."""
    film = write_film(
        tmp_path / "gap.mkv",
        {"eng": tone(hz=440, seconds=8.0, level=0.1)},
        seconds=8.0,
        codec="flac",
        gap=(3.0, 5.0),
    )
    rate = 16_000

    sound_of_span = read_sound(film, rate, start_s=0.0, end_s=8.0)

    assert sound_of_span.missing_s == pytest.approx(2.0, abs=0.2)
    within_gap = sound_of_span.samples[round(3.25 * rate) : round(4.75 * rate)]
    behind_gap = sound_of_span.samples[round(5.25 * rate) : round(7.5 * rate)]
    assert np.abs(within_gap).max() == 0
    assert np.abs(behind_gap).max() == pytest.approx(0.1, rel=0.05)


def test_sound_that_ends_early_is_counted_as_missing(tmp_path):
    """The sound ends at 3 of 8 s: 5 s are missing, and a span from 5 to 8 s has none at all."""
    film = write_film(tmp_path / "short.mp4", {"eng": tone(hz=440, seconds=3.0)}, seconds=8.0)

    missing_s = read_sound(film, rate=16_000, start_s=0.0, end_s=8.0).missing_s

    assert missing_s == pytest.approx(5.0, abs=0.1)
    with pytest.raises(VideoError, match="no sound between 5 and 8 s"):
        read_sound(film, rate=16_000, start_s=5.0, end_s=8.0)


@pytest.mark.parametrize(("track", "amplitude"), [("", 0.2), ("eng", 0.2), ("fra", 0.05), ("1", 0.05)])
def test_a_track_is_chosen_by_its_language_or_number_and_else_the_first(
    film_with_two_tracks, track, amplitude
):
    """Track 0, `eng`, has a tone of amplitude 0.2, and track 1, `fra`, one of 0.05."""
    samples = read_sound(film_with_two_tracks, rate=16_000, start_s=0.5, end_s=1.5, track=track).samples

    assert np.nanmax(samples) == pytest.approx(amplitude, rel=0.1)


def test_a_track_that_the_film_does_not_have_is_refused_with_those_that_it_has(film_with_two_tracks):
    """The film has tracks 0, in English (eng), and 1, in French (fra). German (deu) is asked for."""
    with pytest.raises(VideoError, match="no sound track 'deu'; there is 0 eng, 1 fra"):
        SoundTrack(film_with_two_tracks, "deu")


@pytest.fixture(scope="module")
def film_with_two_tracks(tmp_path_factory):
    """A film with a loud track, eng, of amplitude 0.2, and a quiet one, fra, of 0.05."""
    tracks = {"eng": tone(hz=440, seconds=2.0, level=0.2), "fra": tone(hz=440, seconds=2.0, level=0.05)}
    return write_film(tmp_path_factory.mktemp("tracks") / "two.mkv", tracks, seconds=2.0)


def with_default_track(film, target, number):
    """Copy a film with pictures and two tracks of sound, of which the one of a number is the default."""
    with av.open(str(film)) as source, av.open(str(target), "w") as output:
        streams = [output.add_stream_from_template(stream) for stream in source.streams]
        sound_streams = streams[1:]
        for stream in sound_streams:
            stream.disposition = Disposition(0)
        sound_streams[number].disposition = Disposition.default
        for packet in source.demux():
            if packet.size:
                packet.stream = streams[packet.stream.index]
                output.mux(packet)
    return target


@pytest.mark.parametrize(("default_track", "amplitude"), [(0, 0.05), (1, 0.2)], ids=["first", "second"])
def test_the_track_that_the_file_calls_its_default_is_read_and_played(tmp_path, default_track, amplitude):
    """Track 0 has a tone of amplitude 0.05, and track 1 one of 0.2."""
    tracks = {"eng": tone(hz=440, seconds=2.0, level=0.05), "fra": tone(hz=440, seconds=2.0, level=0.2)}
    without_default = write_film(tmp_path / "film.mkv", tracks, seconds=2.0)
    film = with_default_track(without_default, tmp_path / "default.mkv", default_track)

    samples = read_sound(film, rate=16_000, start_s=0.5, end_s=1.5).samples
    played_frames = [frame.to_ndarray() for _, frame in played(film, pictures=False)]

    assert np.nanmax(samples) == pytest.approx(amplitude, rel=0.1)
    played_amplitude = max(np.abs(samples_of_frame).max() for samples_of_frame in played_frames)
    assert played_amplitude == pytest.approx(amplitude, rel=0.5)


def stop_the_clock_of_sound(path):
    """Let the table of times of a MOV's sound say that each of its samples lasts for nothing."""
    data = bytearray(path.read_bytes())
    table = data.rindex(b"stts") + 4  # version (4 bytes), number of rows (4), then samples (4), length (4)
    n_rows, length = slice(table + 4, table + 8), slice(table + 12, table + 16)
    assert int.from_bytes(data[n_rows], "big") == 1
    data[length] = bytes(4)
    path.write_bytes(data)


def test_sound_whose_times_are_all_equal_is_refused(tmp_path):
    """The file says that each sample of its sound lasts for nothing."""
    film = write_film(tmp_path / "a.mov", {"eng": tone(hz=440, seconds=2.0)}, seconds=2.0, codec="pcm_s16le")
    stop_the_clock_of_sound(film)

    with pytest.raises(VideoError, match="all times of its sound are equal"):
        SoundTrack(film)


def test_a_film_without_sound_is_refused(tmp_path):
    """The film has pictures and no track of sound."""
    no_tracks = {}
    film = write_film(tmp_path / "silent.mp4", no_tracks, seconds=1.0)

    with pytest.raises(VideoError, match="no sound track"):
        SoundTrack(film)


@pytest.mark.parametrize("n_left_out", [-200, 300, 900])
def test_sound_is_where_its_times_say_behind_a_wrong_first_packet(tmp_path, n_left_out):
    """A phone states that its first packet of sound has `n_left_out` samples fewer than it holds (or more).

    So the packets behind it come by so many samples earlier, and with them the click at 2 s of the film.
    """

    def state_earlier_times_behind_the_first(packets):
        packets_of_sound = [packet for packet in packets if packet.stream.type == "audio"]
        for packet in packets_of_sound[1:]:
            packet.pts = packet.dts = packet.pts - round(n_left_out / RATE / packet.time_base)
        return packets

    film = write_film(tmp_path / "film.mp4", {"eng": clicks([2.0], seconds=4.0)}, seconds=4.0)
    film_of_phone = remux(
        film, tmp_path / "phone.mp4", state_earlier_times_behind_the_first, kinds=("video", "audio")
    )

    samples = read_sound(film_of_phone, RATE, start_s=0.0, end_s=4.0).samples

    place_of_click = int(np.abs(samples).argmax())
    assert place_of_click == pytest.approx(2 * RATE - n_left_out, abs=2)


def take_times_of_first_packets(monkeypatch, n_packets):
    """Let the first packets of sound of any film state no time from now on."""
    timed_packets = sound.timed_packets

    def without_first_times(*settings):
        for number, timed_packet in enumerate(timed_packets(*settings)):
            packet = timed_packet[1]
            if number < n_packets:
                packet.pts = packet.dts = None
            yield timed_packet

    monkeypatch.setattr(sound, "timed_packets", without_first_times)


@pytest.mark.parametrize(
    ("kind", "n_without_time"), [("mp4", 1), ("mp4", 6), ("mkv", 6), ("ts", 6), ("avi", 1)]
)
def test_the_first_frames_of_sound_may_state_no_time(film_of_clicks, monkeypatch, kind, n_without_time):
    """Some codecs, as WMA Pro, state no time of the first packets; each ends where the next one begins.

    So the sound must be the same as with all times. It is read of a copy, since what is known of a file is
    kept.
    """
    film = film_of_clicks[kind]
    copy = shutil.copy(film, film.with_name(f"{n_without_time}.{kind}"))

    samples_with_times = read_sound(film, RATE, start_s=0.0, end_s=3.0).samples
    take_times_of_first_packets(monkeypatch, n_without_time)
    sound_of_span = read_sound(copy, RATE, start_s=0.0, end_s=3.0)

    assert np.abs(sound_of_span.samples - samples_with_times).max() < 0.01
    assert sound_of_span.missing_s < 0.1


@pytest.fixture
def films_damaged_behind_900_packets(monkeypatch):
    """No film can be read behind its first 900 packets of sound and pictures."""

    def break_off_behind_900_packets(source, *streams):
        for number, packet in enumerate(demux(source.container, *streams)):
            if number > 900:
                raise av.FFmpegError(1, "damaged")
            yield packet

    monkeypatch.setattr(Source, "demux", break_off_behind_900_packets)


@pytest.mark.usefixtures("films_damaged_behind_900_packets")
def test_sound_behind_a_damaged_place_is_counted_as_missing(film_of_clicks):
    """A film of 36 s, with a click at 1 s, has about 1,550 packets of sound, and 900 pictures among them.

    It cannot be read behind 900 packets, so that between 5 and 20 s of its sound are missing.
    """
    sound_of_span = read_sound(film_of_clicks["mp4"], RATE, start_s=0.0, end_s=36.0)

    assert 5 < sound_of_span.missing_s < 20
    click = round(1.0 * RATE)
    assert np.abs(sound_of_span.samples[click - 9 : click + 9]).max() > 0.3


def test_stereo_is_read_as_one_channel_of_the_same_power(tmp_path):
    """Two equal channels of amplitude 0.1 are mixed to one of 0.1 x sqrt(2)."""
    film = write_film(
        tmp_path / "stereo.mp4", {"eng": tone(hz=440, seconds=2.0, level=0.1)}, seconds=2.0, layout="stereo"
    )

    samples = read_sound(film, rate=16_000, start_s=0.2, end_s=1.8).samples

    assert np.abs(samples).max() == pytest.approx(0.1 * np.sqrt(2), rel=0.02)


@pytest.mark.parametrize("channels", [9, 64, 255])
def test_channels_that_have_no_places_are_mixed_equally(tmp_path, channels):
    """FFmpeg knows no places, such as left and right, for so many channels.

    All have the same wave, so that their mean is the wave. Samples of 16 bits are divided by 32768, so that
    they are between -1 and 1.
    """
    wave = (8000 * tone(hz=200, seconds=2.0, level=1.0, rate=8000)).astype(np.int16)
    film = write_channels(tmp_path / "many.mkv", channels, wave, rate=8000)

    sound_of_span = read_sound(film, rate=8000, start_s=0.0, end_s=2.0)

    assert sound_of_span.missing_s == 0
    assert np.abs(sound_of_span.samples - wave / 32768).max() < 1e-6


@pytest.mark.long
def test_a_small_file_with_much_sound_takes_little_memory(tmp_path):
    """34 s of silence in 8 channels are a small FLAC file, and 200 MB when decoded at once.

    A second of it is read.
    """
    silence = np.zeros(34 * 192_000, np.int16)
    film = write_channels(tmp_path / "much.mkv", n_channels=8, samples=silence, rate=192_000, codec="flac")
    assert film.stat().st_size < 100_000

    tracemalloc.start()
    samples = read_sound(film, rate=16_000, start_s=3.0, end_s=4.0).samples
    _, max_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert not samples.any()
    assert max_bytes < 150_000_000


def begin_sound_half_a_second_later(packets):
    for packet in packets:
        if packet.stream.type == "audio":
            shift = round(0.5 / packet.time_base)
            packet.pts = packet.pts + shift
            packet.dts = packet.dts + shift
    return sorted(packets, key=lambda packet: packet.dts)


def test_sound_in_which_ffmpeg_cannot_seek_is_read_from_its_start(tmp_path):
    """FFmpeg's seek to zero fails in FLV whose sound begins later, and leaves its place in the file.

    The film's clicks at 1 and 2.5 s are half a second later in the copy.
    """
    film = write_film(
        tmp_path / "film.flv", {"": clicks([1.0, 2.5], seconds=4)}, seconds=4, codec="libmp3lame"
    )
    film_with_late_sound = remux(
        film, tmp_path / "late.flv", begin_sound_half_a_second_later, kinds=("video", "audio")
    )

    samples = read_sound(film_with_late_sound, rate=16_000, start_s=0.0, end_s=5.0).samples

    for click_s in (1.5, 3.0):
        assert time_of_click(np.nan_to_num(samples), rate=16_000, about_s=click_s) == pytest.approx(
            click_s, abs=0.03
        )


class SeekableByPictures:
    """An open file in which FFmpeg can seek by the times of the pictures, not by those of the sound."""

    def __init__(self, source, seeks):
        self._source = source
        self._seeks = seeks

    def __getattr__(self, name):
        return getattr(self._source.container, name)

    def seek(self, *place, **options):
        by_pictures = self._source.stream.discard == Discard.default
        self._seeks.append("pictures" if by_pictures else "sound")
        if not by_pictures:
            raise av.FFmpegError(1, "no seek by sound")
        self._source.container.seek(*place, **options)


def record_seeks_of_which_those_by_sound_fail(monkeypatch):
    """Let FFmpeg seek by the times of pictures alone from now on; return the list of what is tried."""
    seeks = []

    @contextmanager
    def open_seekable_by_pictures(*arguments):
        with opened_to(*arguments) as source:
            yield replace(source, container=SeekableByPictures(source, seeks))

    monkeypatch.setattr(sound, "opened_to", open_seekable_by_pictures)
    return seeks


def test_a_file_in_which_seeking_by_the_times_of_sound_failed_is_sought_in_by_those_of_pictures_alone(
    film_of_clicks, monkeypatch
):
    """A place in a film can be sought by the times of its sound or of its pictures; here sound fails.

    First, seconds 31 to 34 of a film of 36 s are read: FFmpeg is asked to seek by sound, which fails, and
    then by pictures. Then a second behind the end of the film is asked for, where there is no sound, to make
    it seek again: only pictures are tried. The seconds that were read are right.
    """
    track = SoundTrack(film_of_clicks["mp4"])
    seeks = record_seeks_of_which_those_by_sound_fail(monkeypatch)

    (samples,), _missing_s = track.parts(start_s=31.0, end_s=34.0, edges_s=(), rate=16_000)
    with pytest.raises(VideoError, match="no sound"):
        track.parts(start_s=61.0, end_s=62.0, edges_s=(), rate=16_000)

    seeks_of_first_read = ["sound", "pictures"]
    seeks_of_second_read = ["pictures"]
    assert seeks == seeks_of_first_read + seeks_of_second_read
    # The clicks at 31.5 and 33 s are at 0.5 and 2 s of what was read.
    assert time_of_click(samples, rate=16_000, about_s=0.5) == pytest.approx(0.5, abs=0.001)
    assert time_of_click(samples, rate=16_000, about_s=2.0) == pytest.approx(2.0, abs=0.001)


@pytest.fixture
def film_with_unknown_codec(tmp_path):
    """A film whose track 0, eng, is of an unknown codec, and the samples of its track 1, fra."""
    tracks = {"eng": tone(hz=440, seconds=2.0), "fra": tone(hz=440, seconds=2.0, level=0.05)}
    film = write_film(tmp_path / "two.mp4", tracks, seconds=2.0)
    samples_of_fra = read_sound(film, RATE, start_s=0.0, end_s=2.0, track="1").samples
    # In MP4, the first box of AAC and that of its settings are given other names.
    film.write_bytes(film.read_bytes().replace(b"mp4a", b"ac-9", 1).replace(b"esds", b"xxxx", 1))
    return film, samples_of_fra


@pytest.mark.parametrize("track", ["", "1", "fra"], ids=["none asked for", "by number", "by language"])
def test_a_track_beside_one_of_an_unknown_codec_is_read_and_keeps_its_number(film_with_unknown_codec, track):
    """Track 0 cannot be decoded; track 1 is read by default, and is still called 1."""
    film, samples_of_track_1 = film_with_unknown_codec

    samples = read_sound(film, RATE, start_s=0.0, end_s=2.0, track=track).samples

    np.testing.assert_array_equal(samples, samples_of_track_1)


@pytest.mark.parametrize("track", ["0", "eng"], ids=["by number", "by language"])
def test_a_track_of_an_unknown_codec_is_refused(film_with_unknown_codec, track):
    """Track 0, `eng`, is of a codec that FFmpeg does not know."""
    film, _ = film_with_unknown_codec

    with pytest.raises(VideoError, match="codec"):
        SoundTrack(film, track)


def header_of_vorbis(short_block, long_block):
    """Make the settings of a Vorbis decoder, which state the two lengths of its blocks, powers of two."""
    short_exponent, long_exponent = short_block.bit_length() - 1, long_block.bit_length() - 1
    exponents = bytes([long_exponent << 4 | short_exponent])
    lengths_of_headers = b"\x02\x1e\x10"  # three headers; the first has 30 bytes, the second 16
    version_channels_and_rates = bytes(21)
    end_mark = b"\x01"
    return lengths_of_headers + b"\x01vorbis" + version_channels_and_rates + exponents + end_mark


@pytest.mark.parametrize(("short_block", "long_block"), [(256, 2048), (256, 256), (64, 8192)])
def test_a_gap_in_vorbis_is_longer_than_its_errors_of_time(short_block, long_block):
    """Vorbis has blocks of two lengths, and times may be wrong by half of their difference.

    Lengths are in samples, 44,100 a second. In no codec are gaps of 25 ms beyond such errors overlooked.
    """
    most_wrong_s = (long_block - short_block) / 2 / 44_100

    min_gap_s = jump_s(header_of_vorbis(short_block, long_block), rate=44_100)

    assert most_wrong_s < min_gap_s < most_wrong_s + 0.025


def test_a_lost_packet_of_aac_is_a_gap():
    """A packet of AAC has 1024 samples, 44,100 a second: a jump of that length must count as lost sound."""
    settings_of_aac = b""
    packet_s = 1024 / 44_100

    min_gap_s = jump_s(settings_of_aac, rate=44_100)

    assert min_gap_s < packet_s


def test_a_second_of_a_film_of_minutes_is_read_and_the_film_is_not_refused_for_the_rest(tmp_path):
    """Packets behind a span are not decoded: else a long film would seem to have too many samples for it.

    The sound lasts 150 s, with a click at 2 s.
    """
    sound_of_film = clicks([2.0], seconds=150, rate=8_000)
    film = write_film(tmp_path / "long.mkv", {"": sound_of_film}, seconds=1, codec="flac", rate=8_000)

    sound_of_span = read_sound(film, rate=8_000, start_s=1.5, end_s=2.5)

    assert 1.5 + time_of_click(sound_of_span.samples, rate=8_000, about_s=0.5) == pytest.approx(
        2.0, abs=0.002
    )
    assert sound_of_span.missing_s == 0.0
