"""Streams that appear on the way, as stations, discs and cameras write them: the film is read."""

from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from obygaze_features.errors import VideoError
from obygaze_features.video import (
    SoundTrack,
    frame_times,
    index,
    late_streams,
    probe,
    read_frames,
    source,
    uniform,
)
from obygaze_features.video.index import index_packets
from obygaze_features.video.packets import ListedStream, demux
from tests.video import inserting
from tests.video.conftest import draw_number, read_drawn_numbers
from tests.video.encoding import encode
from tests.video.joining import FRAGMENTS_OPTIONS, X264_OPTIONS, X265_OPTIONS, joined_byte_by_byte
from tests.video.sounding import RATE, clicks, time_of_click, write_film

PROBED_BYTES = 100_000
FINE_X264 = X264_OPTIONS | {"crf": "4"}
FINE_X265 = X265_OPTIONS | {"crf": "4"}
FINE_MPEG = {"g": "9", "bf": "2", "flags": "+qscale", "global_quality": "236"}
FILMS: dict[str, dict[str, object]] = {
    "mpeg2.vob": {"codec": "mpeg2video", "options": FINE_MPEG},
    "mpeg1.mpg": {"codec": "mpeg1video", "options": FINE_MPEG},
    "mpeg2.ts": {"codec": "mpeg2video", "options": FINE_MPEG},
    "h264.ts": {"options": FINE_X264},
    "hevc.ts": {"codec": "libx265", "options": FINE_X265},
    "h264.m2ts": {"options": FINE_X264},
    "h264.flv": {"options": FINE_X264},
    "fragments.mp4": {"options": FINE_X264, "container_options": FRAGMENTS_OPTIONS},
}
INSERT_INTO = {
    ".vob": (inserting.into_program, inserting.PROGRAM_KINDS),
    ".mpg": (inserting.into_program, inserting.PROGRAM_KINDS),
    ".ts": (inserting.into_transport, inserting.TRANSPORT_KINDS),
    ".m2ts": (inserting.into_transport, inserting.TRANSPORT_KINDS),
    ".flv": (inserting.into_flash, inserting.FLASH_KINDS),
    ".mp4": (inserting.into_fragments, inserting.BOX_KINDS),
}
"""Suffix of a film -> what inserts packets of other streams into its bytes, and of which kinds."""
ONE_FILM_OF_EACH_CONTAINER = {"mpeg2.vob", "h264.ts", "h264.flv", "fragments.mp4"}


def film_kind_and_place():
    """Give every kind of packet in every film at three places; one film of a container is quick."""
    for name in FILMS:
        _, kinds = INSERT_INTO[Path(name).suffix]
        for kind, place in product(kinds, inserting.PLACES):
            is_in_middle = place == 0.5
            if name not in ONE_FILM_OF_EACH_CONTAINER:
                marks = [pytest.mark.long, pytest.mark.nightly]
            elif not is_in_middle:
                marks = [pytest.mark.long]
            else:
                marks = []
            yield pytest.param(name, kind, place, marks=marks)


KINDS_OF_SOUND_OR_SUBTITLES = {"AC-3", "second sound", "sound", "subpicture", "DVB subtitles"}
"""Kinds that FFmpeg knows as sound or subtitles by the packets that are inserted."""


def noisy(number: int) -> np.ndarray:
    """Draw a picture with its number, and below it what takes many bytes."""
    picture = draw_number(number)
    picture[32:] = np.random.default_rng(number).integers(0, 255, picture[32:].shape, np.uint8)
    return picture


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Make a film of 220 pictures, of several times the bytes that are read of its beginning and its end."""
    folder = tmp_path_factory.mktemp("large")
    made = {}

    def make(name: str) -> Path:
        if name not in made:
            made[name] = encode(folder / name, map(noisy, range(220)), **FILMS[name])
            assert made[name].stat().st_size > 900_000
        return made[name]

    return make


@pytest.fixture
def little_is_probed(monkeypatch):
    """Let FFmpeg read only the first 100 kB of a file to find its streams, in place of 5 MB.

    So it does not know a stream that begins further behind, as in films of gigabytes, when it opens a small
    film of a test.
    """
    monkeypatch.setattr(source, "OPTIONS", source.OPTIONS | {"probesize": str(PROBED_BYTES)})
    monkeypatch.setattr(late_streams, "PROBED_BEHIND", PROBED_BYTES)


@pytest.fixture
def film_with_packet(large, tmp_path):
    """Copy a film and put in a packet of one more stream, behind a share of its bytes (0.5: the middle)."""

    def make(name, kind, place):
        insert, _ = INSERT_INTO[Path(name).suffix]
        film = tmp_path / name
        film.write_bytes(insert(large(name).read_bytes(), place, kind))
        return film

    return make


@pytest.mark.parametrize(("name", "kind", "place"), [*film_kind_and_place()])
@pytest.mark.usefixtures("little_is_probed")
def test_a_packet_of_a_stream_that_begins_late_costs_no_picture(film_with_packet, name, kind, place):
    """FFmpeg knows a stream that begins far behind the start of a file only when it gets there.

    Here it looks for streams in the first 100 kB of a film of 900 kB or more. The film has 220 numbered
    pictures, and gets one packet of another stream (`kind`) behind a share `place` of its bytes. All pictures
    are found. If FFmpeg lists the stream at all, then with the byte at which it begins; it lists streams that
    it knows as sound or subtitles.
    """
    film = film_with_packet(name, kind, place)

    frames = read_frames(film, uniform(16))

    assert frames.status == "ok"
    assert frames.total == 220
    evenly_spaced = [number * 220 // 16 for number in range(16)]
    assert read_drawn_numbers(frames.images) == evenly_spaced

    late_streams_of_film = index_packets(film).late  # of kinds that FFmpeg does not know there are none
    for stream in late_streams_of_film:
        assert stream.byte / film.stat().st_size == pytest.approx(place, rel=0.1)
    if kind in KINDS_OF_SOUND_OR_SUBTITLES:
        assert late_streams_of_film
        assert probe(film).besides


@pytest.mark.parametrize("name", ["h264.ts", "h264.m2ts"])
@pytest.mark.usefixtures("little_is_probed")
def test_a_packet_of_a_stream_that_no_programme_map_names_is_passed_over(large, tmp_path, name):
    """A map lists the streams of a broadcast (programme); a packet of any other stream belongs to nothing.

    The film has 220 pictures. A packet of a stream that no map names is put into its middle, far behind the
    100 kB in which FFmpeg looks for streams here. All pictures are read, and the packet is not taken for the
    beginning of a stream: the table of the film lists no stream that begins late.
    """
    data = large(name).read_bytes()
    film = tmp_path / name
    film.write_bytes(inserting.into_transport_unannounced(data, place=0.5))

    frames = read_frames(film, uniform(8))

    assert frames.total == 220
    assert frames.status == "ok"
    assert index_packets(film).late == ()


@pytest.mark.usefixtures("little_is_probed")
def test_a_film_in_which_very_many_streams_begin_late_is_read_with_few_notes(large, tmp_path):
    """The film of a disc has 220 pictures; 31 sound tracks begin in its middle, with a packet each.

    A note for each of them would be 31 notes; at most three are allowed.
    """
    data = large("mpeg2.vob").read_bytes()
    middle = data.index(inserting.PACK, len(data) // 2)
    private_stream = 0xBD
    packets = b""
    for track in range(0x80, 0x9F):
        packets += inserting.in_mpeg2_program(private_stream, bytes([track, 1, 0, 1]))
    film = tmp_path / "film.vob"
    film.write_bytes(data[:middle] + packets + data[middle:])

    frames = read_frames(film, uniform(4))

    assert frames.total == 220
    assert frames.status == "ok"
    assert len(index_packets(film).late) > 20
    assert len(frames.notes) < 4


@pytest.mark.parametrize("programme", ["1", "2"], ids=["the same programme", "another programme"])
def test_a_recording_is_partial_where_pictures_move_to_another_stream(tmp_path, programme):
    """A recording of 100 pictures says in its middle that pictures are in stream 512 from now on, not 256.

    Only the 50 pictures of the first half are read; a note names the byte at which that is said.
    """
    in_stream_256 = {"mpegts_start_pid": "256"}
    in_stream_512 = {
        "mpegts_start_pid": "512",
        "mpegts_service_id": programme,
        "mpegts_pmt_start_pid": "4097",
    }
    first_half = encode(
        tmp_path / "a.ts", map(draw_number, range(50)), options=X264_OPTIONS, container_options=in_stream_256
    )
    second_half = encode(
        tmp_path / "b.ts",
        map(draw_number, range(100, 150)),
        times=range(50, 100),
        options=X264_OPTIONS,
        container_options=in_stream_512,
    )
    recording = joined_byte_by_byte(tmp_path / "film.ts", [first_half, second_half])

    frames = read_frames(recording, uniform(10))

    assert frames.status == "partial"
    assert read_drawn_numbers(frames.images) == [0, 5, 10, 15, 20, 25, 30, 35, 40, 45]
    thousands_of_bytes = first_half.stat().st_size // 1000
    assert any(f"{thousands_of_bytes}," in note for note in frames.notes)


def test_a_stream_whose_only_packet_is_cut_off_begins_at_no_byte(tmp_path):
    """The recording breaks off behind the length of a packet of sound, before its header.

    No byte is known at which the sound begins, which is written as -1.
    """
    start_code_of_private_stream = b"\x00\x00\x01\xbd"
    length = b"\x07\xec"
    film = tmp_path / "broken-off.vob"
    film.write_bytes(start_code_of_private_stream + length)
    sound = ListedStream(stream_index=1, id=0x80, kind="audio", codec="ac3")

    (late_stream,) = late_streams.late_streams([film], {"mpeg"}, [sound])

    assert late_stream.byte == -1


SOUND_TAG, SCRIPT_TAG = 8, 18
"""Types of tags in FLV."""
ANNOUNCES_SOUND, ANNOUNCES_PICTURES = 4, 1
"""Bits of the fifth byte of an FLV file."""


def without_sound_before(data: bytes, first_ms: int) -> bytes:
    """Leave out the sound of an FLV file before a time, and announce pictures alone."""
    # The first tag of sound has the decoder's settings; scripts name the sound too.
    tags = []
    settings_of_sound = None
    has_sound_begun = False
    for tag in inserting.flash_tags(data):
        time_ms = int.from_bytes(tag[4:7], "big")
        if tag[0] == SOUND_TAG:
            if settings_of_sound is None:
                settings_of_sound = tag
            if time_ms < first_ms:
                continue
            if not has_sound_begun:
                tags.append(settings_of_sound)
                has_sound_begun = True
        if tag[0] != SCRIPT_TAG:
            tags.append(tag)
    return flash_header(data, ANNOUNCES_PICTURES) + b"".join(tags)


def flash_header(data: bytes, announced: int) -> bytes:
    """Return the header of an FLV file, 13 bytes, with another statement of which streams there are."""
    return data[:4] + bytes([announced]) + data[5:13]


class FlashFilms(NamedTuple):
    """Two Flash films of 6 s with 25 pictures a second: one with sound, one without its first half.

    Attributes
    ----------
    with_whole_sound
        A click is heard at 0.5 s of each second.
    with_late_sound
        A copy of it, without all sound before 3 s, and without its announcement at the beginning.
    """

    with_whole_sound: Path
    with_late_sound: Path


@pytest.fixture(scope="module")
def flash_films(tmp_path_factory):
    """Write a Flash film with sound from 0 to 6 s, and a copy whose sound begins at 3 s."""
    folder = tmp_path_factory.mktemp("flash")
    whole = write_film(
        folder / "whole.flv",
        {"": clicks(np.arange(0.5, 6), seconds=6.0)},
        seconds=6.0,
        pictures=map(noisy, range(150)),
        wide_high=(96, 64),
    )
    film = folder / "late.flv"
    film.write_bytes(without_sound_before(whole.read_bytes(), first_ms=3000))
    return FlashFilms(with_whole_sound=whole, with_late_sound=film)


def read_sound(film, start_s, end_s, track=""):
    """Read the sound of a span of a film in one piece: its samples, and the seconds that have none.

    The track is the usual one (""), or that of a number ("0").
    """
    (samples,), missing_s = SoundTrack(film, track).parts(start_s, end_s, edges_s=(), rate=RATE)
    return samples, missing_s


@pytest.mark.usefixtures("little_is_probed")
def test_a_film_whose_sound_begins_late_has_all_its_pictures_and_its_sound_is_listed(flash_films):
    """The sound of a film of 6 s begins at 3 s, far behind the 100 kB in which FFmpeg looks for streams.

    FFmpeg learns of it only in the midst of reading the pictures, which must not disturb them: there are 6 s
    at 25 a second, 150, as in the film whose sound begins at 0 s. The stream is found, as sound in AAC.
    """
    facts = probe(flash_films.with_late_sound)

    assert facts.frames == 150
    assert probe(flash_films.with_whole_sound).frames == 150
    assert "sound" in facts.besides
    (late_stream,) = index_packets(flash_films.with_late_sound).late
    assert late_stream.kind == "audio"
    assert late_stream.codec == "aac"


@pytest.mark.usefixtures("little_is_probed")
def test_clicks_of_sound_that_begins_late_are_heard_at_the_same_pictures_as_in_the_whole_film(flash_films):
    """A film of 6 s has a click in each second, at .5. Of a copy the sound of the first 3 s is taken away.

    The sound of the copy begins far behind the 100 kB in which FFmpeg looks for streams here. Its first 3 s
    are missing and silent. Its clicks at 3.5, 4.5 and 5.5 s are heard as long after the first picture as in
    the whole film. (After the first picture, because the clocks of the two films differ a little: the clock
    of a file begins with what comes first, which is sound in the whole film, and a picture in the copy.)
    """
    samples, missing_s = read_sound(flash_films.with_late_sound, start_s=0.0, end_s=6.0)
    samples_of_whole, _missing_s = read_sound(flash_films.with_whole_sound, start_s=0.0, end_s=6.0)

    assert missing_s == pytest.approx(3.0, abs=0.1)
    first_three_seconds = samples[: 3 * RATE]
    assert np.abs(first_three_seconds).max() < 0.01
    first_picture_s = frame_times(flash_films.with_late_sound)[0]
    first_picture_of_whole_s = frame_times(flash_films.with_whole_sound)[0]
    for click_s in (3.5, 4.5, 5.5):
        heard_s = time_of_click(samples, RATE, click_s)
        heard_of_whole_s = time_of_click(samples_of_whole, RATE, click_s)
        behind_first_picture_s = heard_s - first_picture_s
        assert behind_first_picture_s == pytest.approx(heard_of_whole_s - first_picture_of_whole_s, abs=0.001)


@pytest.mark.usefixtures("little_is_probed")
def test_the_sound_of_a_span_before_the_beginning_of_a_late_sound_track_is_refused(flash_films):
    """The sound of a film of 6 s begins at 3 s, and FFmpeg does not know of it when it opens the file.

    So the span from 0 to 2 s has no sound, which an error says.
    """
    with pytest.raises(VideoError, match="no sound between 0 and 2 s"):
        read_sound(flash_films.with_late_sound, start_s=0.0, end_s=2.0)


@pytest.mark.parametrize("suffix", ["ts", "vob"])
@pytest.mark.parametrize("track", ["", "0"], ids=["no track is named", "track 0 is named"])
def test_sound_that_is_announced_and_begins_ten_seconds_later_is_heard_at_its_times(tmp_path, suffix, track):
    """A film of 12 s announces a sound track, which has no sound before 10 s, and clicks at 10.5 and 11.5 s.

    FFmpeg looks for the settings of sound in the first seconds, where they are not yet. All the same the
    clicks are heard at their times, and 10 s of sound are missing, whether the track is named or not.
    """
    unnamed_language = ""
    film = write_film(
        tmp_path / f"late.{suffix}",
        {unnamed_language: clicks([10.5, 11.5], seconds=12.0)},
        seconds=12.0,
        codec="mp2",
        gap=(-1.0, 10.0),  # no sound from before the start to 10 s
    )

    samples, missing_s = read_sound(film, start_s=0.0, end_s=12.0, track=track)

    assert missing_s == pytest.approx(10.0, abs=0.1)
    for click_s in (10.5, 11.5):
        assert time_of_click(samples, RATE, click_s) == pytest.approx(click_s, abs=0.05)


@pytest.mark.usefixtures("little_is_probed")
def test_sound_that_begins_too_late_is_refused_with_its_byte(flash_films, monkeypatch):
    """At most 200 kB may be read to find a stream (`MAX_PROBED`), and the film's sound begins behind them.

    The error names the byte at which it begins. The 150 pictures are read all the same.
    """
    film_with_late_sound = flash_films.with_late_sound
    monkeypatch.setattr(late_streams, "MAX_PROBED", 200_000)
    (sound,) = index_packets(film_with_late_sound).late

    with pytest.raises(VideoError, match=f"{sound.byte:,}"):
        SoundTrack(film_with_late_sound)
    assert read_frames(film_with_late_sound, uniform(3)).total == 150


SECOND_TRACK = 0x81
"""Number of the second track of AC-3 in a program stream; the first is 0x80."""


def with_a_tenth_of_second_track(data: bytes) -> bytes:
    """Leave out of a program stream all of its second track but what is between 20 and 30 % of it."""
    packs = inserting.program_packs(data)
    kept_packs = []
    for number, pack in enumerate(packs):
        is_of_second_track = inserting.inner_stream(pack) == SECOND_TRACK
        is_between = 0.2 < number / len(packs) < 0.3
        if not is_of_second_track or is_between:
            kept_packs.append(pack)
    return b"".join(kept_packs)


@pytest.mark.long
@pytest.mark.usefixtures("little_is_probed")
def test_a_track_from_the_beginning_is_preferred_to_one_that_begins_late(tmp_path):
    """A film of 40 s has two tracks of sound: "0" with one click, and "1" with one in each half second.

    In a copy (late.vob), track "1" has sound only from 20 to 30 % of the film, about 4 s, and 36 s of it are
    missing: it begins late. If no track is named, track "0" of the copy is read, which is that of the whole
    film. Track "1" is read if it is named.
    """
    one_click = clicks([0.5], seconds=40.0)
    many_clicks = clicks(np.arange(0.25, 40, 0.5), seconds=40.0)
    whole = write_film(tmp_path / "film.vob", {"a": one_click, "b": many_clicks}, seconds=40.0, codec="ac3")
    film = tmp_path / "late.vob"
    film.write_bytes(with_a_tenth_of_second_track(whole.read_bytes()))
    assert [stream.kind for stream in index_packets(film).late] == ["audio"]

    def all_sound_of(track: SoundTrack) -> tuple[np.ndarray, float]:
        """Return the samples of all 40 s, and how many seconds of them are missing."""
        return track.parts(start_s=0.0, end_s=40.0, edges_s=(), rate=RATE)

    usual_samples, _ = all_sound_of(SoundTrack(film))
    samples_of_track_0, _ = all_sound_of(SoundTrack(whole, "0"))
    _, missing_in_track_1_s = all_sound_of(SoundTrack(film, "1"))

    np.testing.assert_array_equal(usual_samples, samples_of_track_0)
    assert missing_in_track_1_s == pytest.approx(36.0, abs=1.5)


def flash_that_announces_and_begins_with_sound(film_of_pictures: Path, folder: Path) -> Path:
    """Write a Flash film of 20 s of noise, more than 100 kB, and of the pictures of a film behind it."""
    tags_of_pictures = inserting.flash_tags(film_of_pictures.read_bytes())  # Flash calls its packets tags
    noise = np.random.default_rng(0).normal(0, 0.1, 20 * RATE).astype(np.float32)
    sound = write_film(folder / "a.flv", {"": noise}, seconds=20.0).read_bytes()
    tags_of_sound = [tag for tag in inserting.flash_tags(sound) if tag[0] == SOUND_TAG]
    assert len(b"".join(tags_of_sound)) > 100_000
    header = flash_header(sound, ANNOUNCES_SOUND)
    film = folder / "film.flv"
    film.write_bytes(header + b"".join([*tags_of_sound, *tags_of_pictures]))
    return film


@pytest.mark.usefixtures("little_is_probed")
def test_pictures_that_begin_behind_what_is_probed_are_read(large, tmp_path):
    """A Flash film announces sound alone and begins with it; behind it come 220 numbered pictures.

    The sound has more than the 100 kB of a file that FFmpeg reads here to find streams.
    """
    film = flash_that_announces_and_begins_with_sound(large("h264.flv"), tmp_path)

    frames = read_frames(film, uniform(4))

    assert frames.total == 220
    assert read_drawn_numbers(frames.images) == [0, 55, 110, 165]


class FailsOnce:
    """A file whose reader raises an error once, behind some of its packets; asked again, it goes on.

    PyAV raises this error behind the last packet of a file in which a stream has begun late.
    """

    def __init__(self, packets: list[str], fails_after: int) -> None:
        self.remaining = list(packets)
        self.n_until_failure = fails_after
        self.has_failed = False

    def _fail_once(self) -> None:
        if self.n_until_failure == 0 and not self.has_failed:
            self.has_failed = True
            raise IndexError

    def demux(self, *_):
        """Yield the packets that are left, and fail at the place set, which may be the end."""
        self._fail_once()
        while self.remaining:
            self.n_until_failure -= 1
            yield self.remaining.pop(0)
            self._fail_once()


@pytest.mark.parametrize("fails_after", [0, 2, 3])
def test_the_end_of_a_file_is_told_from_an_error_by_asking_for_more(fails_after):
    """PyAV raises an error at the end of some files, here behind the first 0, 2 or all 3 packets.

    Asked again, it gives the packets that are left, or none at the end.
    """
    container = FailsOnce(["a", "b", "c"], fails_after)

    packets = list(demux(container))

    assert packets == ["a", "b", "c"]


def test_an_error_that_is_raised_again_is_not_taken_for_the_end_of_a_file():
    """At the end of some files PyAV raises IndexError once. Here it is raised each time."""

    class AlwaysFails:
        def demux(self, *_):
            raise IndexError

    with pytest.raises(IndexError):
        list(demux(AlwaysFails()))


def test_only_errors_of_ffmpeg_are_called_damage(numbered_films, monkeypatch):
    """A mistake in our own code must not look like damage of the file.

    The mistake is planted in a function that runs whenever the packets of a film are listed.
    """

    def mistaken(*_):
        raise AttributeError("planted mistake")

    monkeypatch.setattr(index, "note_side_data", mistaken)

    with pytest.raises(AttributeError, match="planted mistake"):
        probe(numbered_films["b1.mp4"])


TIME_OF_MPEG1 = bytes.fromhex("21 00 01 00 01")
TWO_TIMES_OF_MPEG1 = bytes.fromhex("31 00 01 00 01 11 00 01 00 01")
BUFFER_SIZE = bytes.fromhex("60 20")
NO_TIMES = b"\x0f"


@pytest.mark.parametrize("stuffing", [b"", b"\xff", 16 * b"\xff"])
@pytest.mark.parametrize("buffer_size", [b"", BUFFER_SIZE])
@pytest.mark.parametrize("times", [NO_TIMES, TIME_OF_MPEG1, TWO_TIMES_OF_MPEG1])
def test_what_a_packet_of_mpeg1_carries_begins_behind_its_whole_header(stuffing, buffer_size, times):
    """A packet of MPEG-1 begins with filling bytes, the size of a buffer and times; each may be missing.

    The byte behind them tells what the packet carries: 0x80 is the first sound of a DVD. If the packet ends
    there, it carries nothing, which is -1 (ISO 11172-1, 2.4.3.3).
    """
    header = stuffing + buffer_size + times

    assert late_streams._first_carried(header + b"\x80") == 0x80
    assert late_streams._first_carried(header) == -1
