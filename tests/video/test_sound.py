"""Sound is read to the sample, on the clock of the pictures, whatever else is read of the file."""

import shutil
import subprocess
import tracemalloc

import av
import numpy as np
import pytest
from av.stream import Disposition

from obygaze_features.errors import VideoError
from obygaze_features.video import SoundTrack, played, sound
from obygaze_features.video.packets import demux
from obygaze_features.video.sound import jump_s
from obygaze_features.video.source import Source
from tests.video.conftest import remux
from tests.video.sounding import RATE, clicks, tone, write_channels, write_film

AT_S = (1.0, 29.5, 31.5, 33.0)
KINDS = {"mp4": "aac", "mkv": "libopus", "ts": "ac3", "avi": "libmp3lame"}
ENCODERS_DELAY_S = {"mp4": 0.0, "mkv": 0.0, "ts": 256 / RATE, "avi": 1105 / RATE}
"""What players hear late too: in transport streams and AVI no place says what an encoder adds."""
TICK_S = {"mp4": 0.0, "mkv": 0.001, "ts": 1 / 90_000, "avi": 0.0}
"""To what a container rounds times."""


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    return {
        kind: write_film(
            folder / f"clicks.{kind}",
            {"eng": clicks(AT_S, 36.0, 48_000 if kind == "mkv" else RATE)},
            seconds=36.0,
            codec=codec,
            rate=48_000 if kind == "mkv" else RATE,
        )
        for kind, codec in KINDS.items()
    }


def read(path, rate, start_s, end_s, edges_s=(), **settings):
    return SoundTrack(path, **settings).parts(start_s, end_s, edges_s, rate=rate)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rate", [16_000, 48_000])
def test_a_click_is_found_at_its_sample(films, kind, rate):
    (samples,), _ = read(films[kind], rate, 0.0, 36.0)
    for at_s in AT_S:
        near = slice(round((at_s - 0.2) * rate), round((at_s + 0.2) * rate))
        result = near.start + int(np.abs(samples[near]).argmax())
        late = result / rate - at_s - ENCODERS_DELAY_S[kind]
        assert abs(late) <= TICK_S[kind] / 2 + 1 / rate


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="the command of FFmpeg is not installed")
@pytest.mark.parametrize("kind", KINDS)
def test_samples_are_those_of_ffmpegs_command(films, kind):
    words = f"ffmpeg -v error -i {films[kind]} -vn -ac 1 -ar 16000 -f f32le -".split()
    expected = np.frombuffer(subprocess.run(words, capture_output=True, check=True).stdout, "<f4")
    (samples,), _ = read(films[kind], 16_000, 0.0, 36.0)
    late = round(TICK_S[kind] / 2 * 16_000)
    distance = min(
        np.abs(samples[800 : 28 * 16_000] - expected[800 + by : 28 * 16_000 + by]).max()
        for by in range(-late - 1, late + 2)
    )
    assert distance < 1e-5


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="the command of FFmpeg is not installed")
@pytest.mark.parametrize("cut_s", [0.5, 0.757, 0.013])
def test_a_click_is_heard_in_time_where_a_film_was_cut_without_encoding(films, tmp_path, cut_s):
    """The edit list of the sound then begins inside a packet."""
    words = f"ffmpeg -v error -ss {cut_s} -i {films['mp4']} -t 3 -c copy {tmp_path / 'cut.mp4'}".split()
    subprocess.run(words, check=True)
    (samples,), _ = read(tmp_path / "cut.mp4", 48_000, 0.0, 2.0)
    assert np.abs(samples).argmax() / 48_000 == pytest.approx(AT_S[0] - cut_s, abs=0.001)


@pytest.mark.parametrize("kind", KINDS)
def test_a_span_has_the_same_samples_whatever_else_is_read(films, kind):
    (whole,), _ = read(films[kind], 16_000, 0.0, 36.0)
    (late,), _ = read(films[kind], 16_000, 28.0, 34.0)
    assert np.array_equal(late, whole[28 * 16_000 : 34 * 16_000])


def test_parts_end_at_the_edges_and_hold_the_span_between_them(films):
    (whole,), _ = read(films["mp4"], 16_000, 0.0, 4.0)
    parts, missing_s = read(films["mp4"], 16_000, 0.5, 4.0, [1.0, 1.0, 3.0])
    # Parts from .5 to 1 s, of no length (which has one sample), from 1 to 3 s and from 3 to 4 s.
    assert [int(np.isfinite(part).sum()) for part in parts] == [8000, 1, 32000, 16000]
    assert np.array_equal(parts[2][:32000], whole[16000:48000])
    assert missing_s == 0.0


def test_a_gap_is_silent_and_counted(tmp_path):
    film = write_film(
        tmp_path / "gap.mkv", {"eng": tone(440, 8.0)}, seconds=8.0, codec="flac", gap=(3.0, 5.0)
    )
    rate = 16_000
    (samples,), missing_s = read(film, rate, 0.0, 8.0)
    assert missing_s == pytest.approx(2.0, abs=0.2)
    in_the_gap = samples[round(3.25 * rate) : round(4.75 * rate)]
    behind_it = samples[round(5.25 * rate) : round(7.5 * rate)]
    assert np.abs(in_the_gap).max() == 0
    assert np.abs(behind_it).max() == pytest.approx(0.1, rel=0.05)  # the tone's amplitude


def test_a_track_that_ends_early_is_counted_and_a_span_without_any_sound_is_refused(tmp_path):
    film = write_film(tmp_path / "short.mp4", {"eng": tone(440, 3.0)}, seconds=8.0)
    assert read(film, 16_000, 0.0, 8.0)[1] == pytest.approx(5.0, abs=0.1)
    with pytest.raises(VideoError, match="no sound between 5 and 8 s"):
        read(film, 16_000, 5.0, 8.0)


def test_a_track_is_chosen_by_its_language_or_number(tmp_path):
    tracks = {"eng": tone(440, 2.0, 0.2), "fra": tone(440, 2.0, 0.05)}
    film = write_film(tmp_path / "two.mkv", tracks, seconds=2.0)
    loudness = {
        track: float(np.nanmax(read(film, 16_000, 0.5, 1.5, track=track)[0]))
        for track in ("", "fra", "1", "eng")
    }
    assert loudness[""] == loudness["eng"] == pytest.approx(0.2, rel=0.1)
    assert loudness["fra"] == loudness["1"] == pytest.approx(0.05, rel=0.1)
    with pytest.raises(VideoError, match="no sound track 'deu'; there is 0 eng, 1 fra"):
        SoundTrack(film, "deu")


def test_the_track_that_players_choose_is_heard_and_played(tmp_path):
    tracks = {"eng": tone(440, 2.0, 0.05), "fra": tone(440, 2.0, 0.2)}
    film = write_film(tmp_path / "first.mkv", tracks, seconds=2.0)
    with av.open(str(film)) as source, av.open(str(tmp_path / "second.mkv"), "w") as made:
        streams = [made.add_stream_from_template(stream) for stream in source.streams]
        streams[1].disposition = Disposition(0)
        streams[2].disposition = Disposition.default
        for packet in source.demux():
            if packet.size:
                packet.stream = streams[packet.stream.index]
                made.mux(packet)
    for path, level in ((film, 0.05), (tmp_path / "second.mkv", 0.2)):
        heard = np.nanmax(read(path, 16_000, 0.5, 1.5)[0])
        shown = max(np.abs(frame.to_ndarray()).max() for _, frame in played(path, pictures=False))
        assert heard == pytest.approx(level, rel=0.1)
        assert shown == pytest.approx(level, rel=0.5)


def test_sound_whose_times_are_all_equal_says_so(tmp_path):
    path = write_film(tmp_path / "a.mov", {"eng": tone(440, 2.0)}, seconds=2.0, codec="pcm_s16le")
    data = bytearray(path.read_bytes())
    table = data.rindex(b"stts") + 4  # of the sound: version, count of rows, then samples and their length
    assert int.from_bytes(data[table + 4 : table + 8], "big") == 1
    data[table + 12 : table + 16] = bytes(4)
    path.write_bytes(data)
    with pytest.raises(VideoError, match="all times of its sound are equal"):
        SoundTrack(path)


def test_a_film_without_sound_says_so(tmp_path):
    film = write_film(tmp_path / "silent.mp4", {}, seconds=1.0)
    with pytest.raises(VideoError, match="no sound track"):
        SoundTrack(film)


@pytest.mark.parametrize("shorter", [-200, 300, 900])
def test_a_first_packet_of_another_length_moves_nothing_else(tmp_path, shorter):
    """Phones state that the first packet lasts less, or more, than the samples that it holds."""

    def shifted(packets):
        sound = [packet for packet in packets if packet.stream.type == "audio"]
        for packet in sound[1:]:
            packet.pts = packet.dts = packet.pts - round(shorter / RATE / packet.time_base)
        return packets

    film = write_film(tmp_path / "film.mp4", {"eng": clicks([2.0], 4.0)}, seconds=4.0)
    phone = remux(film, tmp_path / "phone.mp4", shifted, kinds=("video", "audio"))
    (samples,), _ = read(phone, RATE, 0.0, 4.0)
    assert abs(int(np.abs(samples).argmax()) - (2 * RATE - shorter)) <= 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 6])
def test_first_frames_that_state_no_time_end_where_the_next_begins(films, monkeypatch, kind, n):
    """As of WMA Pro, whose first packet holds frames and a time that none of them gets."""
    (truth,), _ = read(films[kind], RATE, 0.0, 3.0)
    placed = sound.timed_packets

    def without_times(*settings):
        for number, each in enumerate(placed(*settings)):
            if number < n:
                each[1].pts = each[1].dts = None
            yield each

    monkeypatch.setattr(sound, "timed_packets", without_times)
    path = shutil.copy(films[kind], films[kind].with_name(f"{n}.{kind}"))
    (samples,), missing_s = read(path, RATE, 0.0, 3.0)
    assert np.abs(samples - truth).max() < 0.01
    assert missing_s < 0.1


def test_sound_behind_a_damaged_place_is_silent_and_counted_as_missing(films, monkeypatch):
    def broken(source, *streams):
        for number, packet in enumerate(demux(source.container, *streams)):
            if number > 900:
                raise av.FFmpegError(1, "damaged")
            yield packet

    monkeypatch.setattr(Source, "demux", broken)
    samples, missing_s = read(films["mp4"], RATE, 0.0, 36.0)
    assert 5 < missing_s < 20
    assert np.abs(samples[0, RATE - 9 : RATE + 9]).max() > 0.3


def test_stereo_is_read_as_one_channel_of_the_same_power(tmp_path):
    film = write_film(tmp_path / "stereo.mp4", {"eng": tone(440, 2.0)}, seconds=2.0, layout="stereo")
    (samples,), _ = read(film, 16_000, 0.2, 1.8)
    assert np.abs(samples).max() == pytest.approx(0.1 * np.sqrt(2), rel=0.02)


@pytest.mark.parametrize("channels", [9, 11, 32, 64, 255])
def test_channels_that_have_no_places_are_mixed_equally(tmp_path, channels):
    wave = (8000 * tone(200, 2.0, 1.0, 8000)).astype(np.int16)
    path = write_channels(tmp_path / "many.mkv", channels, wave, 8000)
    (samples,), missing_s = read(path, 8000, 0.0, 2.0)
    assert missing_s == 0
    assert np.abs(samples - wave / 32768).max() < 1e-6


def test_a_small_file_with_much_sound_takes_little_memory(tmp_path):
    path = write_channels(tmp_path / "much.mkv", 8, np.zeros(34 * 192_000, np.int16), 192_000, "flac")
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    (samples,), _ = read(path, 16_000, 3.0, 4.0)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert not samples.any()
    assert most < 150e6  # all channels of the block are 200 MB


def test_sound_that_cannot_be_sought_in_is_read_from_its_start(tmp_path):
    """FFmpeg cannot seek to zero in FLV whose sound begins later, and has moved when it says so."""
    early = write_film(tmp_path / "early.flv", {"": clicks([1.0, 2.5], 4)}, seconds=4, codec="libmp3lame")

    def later(packets):
        for packet in packets:
            if packet.stream.type == "audio":
                shift = round(0.5 / packet.time_base)
                packet.pts = packet.pts + shift
                packet.dts = packet.dts + shift
        return sorted(packets, key=lambda each: each.dts)

    late = remux(early, tmp_path / "late.flv", later, kinds=("video", "audio"))
    [samples], _ = SoundTrack(late).parts(0, 5, [], rate=16_000)
    loud = np.flatnonzero(np.nan_to_num(np.abs(samples)) > 0.2) / 16_000
    assert np.abs(loud[:, None] - [1.5, 3.0]).min(axis=0).max() < 0.03


def test_a_track_of_an_unknown_codec_hides_no_other_and_keeps_its_number(tmp_path):
    film = write_film(tmp_path / "two.mp4", {"eng": tone(440, 2.0), "fra": tone(440, 2.0, 0.05)}, seconds=2.0)
    expected = SoundTrack(film, "1").parts(0, 2, [1], rate=RATE)[0]
    for kind, other in ((b"mp4a", b"ac-9"), (b"esds", b"xxxx")):
        film.write_bytes(film.read_bytes().replace(kind, other, 1))
    for track in ("", "1", "fra"):
        np.testing.assert_array_equal(SoundTrack(film, track).parts(0, 2, [1], rate=RATE)[0], expected)
    for track in ("0", "eng"):
        with pytest.raises(VideoError, match="codec"):
            SoundTrack(film, track)


@pytest.mark.parametrize(
    ("exponents", "off_by"), [(0xB8, (2048 - 256) // 2), (0x88, 0), (0xD6, (8192 - 64) // 2)]
)
def test_times_of_vorbis_may_be_off_by_half_of_what_its_blocks_differ_by(exponents, off_by):
    header = b"\x02\x1e\x10" + b"\x01vorbis" + bytes(21) + bytes([exponents]) + b"\x01"
    longest = jump_s(header, 44_100) * 44_100
    assert off_by < longest < off_by + 0.025 * 44_100  # and a lost packet of other codecs is a gap
    assert jump_s(b"", 44_100) < 1024 / 44_100
