"""Times are those that a stream states, or by its rate; what players show otherwise is said."""

import struct
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from obygaze_features.video import (
    at,
    read_frames,
    uniform,
)
from tests.video.conftest import draw_number, packets_of, read_drawn_numbers, remux
from tests.video.encoding import encode
from tests.video.joining import (
    MPEG_2_OPTIONS,
    SETTINGS_OF_KINDS,
    VPX_OPTIONS,
    X264_OPTIONS,
    encode_part,
    joined_byte_by_byte,
)


def without_times_of_display(film: Path, target: Path) -> Path:
    """Copy an MP4; its table of times from decoding to display, and its edit list, become free space."""
    target.write_bytes(film.read_bytes().replace(b"ctts", b"free").replace(b"edts", b"free"))
    return target


@pytest.mark.parametrize("kind", ["h264.mkv", "hevc.mkv"], ids=["H.264", "HEVC"])
def test_an_mp4_without_times_of_display_is_in_the_decoders_order(tmp_path, kind):
    """A film of 30 numbered pictures, 25 a second, has lost its table of when pictures are displayed.

    A decoder puts them in the order of display all the same, 1/25 s apart: from 0.4 to 0.8 s these are
    pictures 10 to 19, of which every other one is taken.
    """
    film = encode(tmp_path / "a.mp4", map(draw_number, range(30)), **SETTINGS_OF_KINDS[kind])
    film_without_times = without_times_of_display(film, tmp_path / "b.mp4")

    frames = read_frames(film_without_times, at(range(30)))
    window = read_frames(film_without_times, uniform(5), start_s=0.4, end_s=0.8)

    assert read_drawn_numbers(frames.images) == list(range(30))
    np.testing.assert_allclose(frames.time_s, np.arange(30) / 25, atol=0.0015)
    assert read_drawn_numbers(window.images) == [10, 12, 14, 16, 18]


@pytest.mark.parametrize("name", ["asp.avi", "h264.avi"])
def test_times_of_avi_with_b_frames_begin_at_zero_and_that_is_noted(numbered_films, name):
    """AVI states no times; its entries, one for each 1/25 s, are numbered from 0 on.

    In a film with B-pictures, a decoder gives the first picture out when it has got one or two more entries.
    Taken by these, the first picture would be shown at 0.04 or 0.08 s. Players begin with it, so it is read
    at 0 s, the next at 0.04 s, and so on; a note says that times are those of the entries.
    """
    frames = read_frames(numbered_films[name], at(range(10)))

    np.testing.assert_allclose(frames.time_s, np.arange(10) / 25, atol=0.0015)
    assert any("AVI" in note for note in frames.notes)


TRANSPORT_PACKET = 188
"""Bytes of a packet of a transport stream."""
PICTURES_PID = 0x100
"""The number that FFmpeg gives to the stream of pictures."""
SHOW_FRAME = 2
"""The bit of the first byte of a VP9 frame that says that it is shown."""


def test_pictures_of_vp9_that_are_not_shown_are_not_counted(tmp_path):
    """VP9 may hold pictures that others are made from and that are not shown themselves.

    Of a film of 30 pictures, 25 a second, the key pictures 10 and 20 are made such pictures.
    """
    film = encode(tmp_path / "a.webm", map(draw_number, range(30)), "libvpx-vp9", options=VPX_OPTIONS)
    film_with_hidden_pictures = with_hidden_key_pictures(film, tmp_path / "hidden.webm")

    frames = read_frames(film_with_hidden_pictures, at(range(28)))

    assert frames.total == 28
    assert frames.method == "sparse"
    shown = [*range(10), *range(11, 20), *range(21, 30)]
    assert read_drawn_numbers(frames.images) == shown
    np.testing.assert_allclose(frames.time_s, np.array(shown) / 25, atol=0.0015)


def with_hidden_key_pictures(film: Path, target: Path) -> Path:
    """Copy a VP9, and hide its key pictures but the first: a bit of each one says whether it is shown."""
    key_pictures = [bytes(packet) for packet in packets_of(film) if packet.is_keyframe]
    data = film.read_bytes()
    for picture in key_pictures[1:]:
        hidden = bytes([picture[0] & ~SHOW_FRAME]) + picture[1:]
        data = data.replace(picture, hidden)
    target.write_bytes(data)
    return target


def stop_the_clock_of_pictures(data: bytearray) -> None:
    """Let the table of times of an MP4's pictures say that each of them lasts for nothing, in place."""
    table = data.rfind(b"stts") + 4  # version (4 bytes), number of rows (4), then pictures (4), length (4)
    data[table + 12 : table + 16] = bytes(4)


def header_of_picture(data: bytearray, packet: int) -> int | None:
    """Find the header of the picture that begins in a transport packet (13818-1, 2.4.3), or None."""
    begins_unit = data[packet + 1] & 0x40
    pid = int.from_bytes(data[packet + 1 : packet + 3], "big") & 0x1FFF
    if not begins_unit or pid != PICTURES_PID:
        return None
    header = packet + 4
    has_adaptation_field = data[packet + 3] & 0x20
    if has_adaptation_field:
        header += 1 + data[packet + 4]  # its length in one byte, and the rest of it
    return header


def zero_transport_times(data: bytearray) -> None:
    """Set the times of all pictures of a transport stream to 0, in place (ISO/IEC 13818-1, 2.4.3)."""
    for packet in range(0, len(data), TRANSPORT_PACKET):
        header = header_of_picture(data, packet)
        if header is None:
            continue
        is_shown_at, is_shown_and_decoded_at = 2, 3
        times = data[header + 7] >> 6
        time_starts = []
        if times in (is_shown_at, is_shown_and_decoded_at):
            time_starts.append(header + 9)
        if times == is_shown_and_decoded_at:
            time_starts.append(header + 14)
        for start in time_starts:
            # A time has 5 bytes, with marks between its bits: the lowest bits of bytes 0, 2 and 4 are 1.
            data[start] &= 0b1111_0001
            data[start + 1 : start + 5] = b"\0\x01\0\x01"


@pytest.mark.parametrize(
    ("suffix", "codec", "options", "make_times_zero"),
    [
        ("mp4", "libx264", X264_OPTIONS | {"bf": "0"}, stop_the_clock_of_pictures),
        ("ts", "mpeg2video", MPEG_2_OPTIONS, zero_transport_times),
    ],
    ids=["mp4", "ts"],
)
def test_pictures_whose_times_are_all_zero_get_times_by_their_rate(
    tmp_path, suffix, codec, options, make_times_zero
):
    """All times of a good film of 30 numbered pictures are overwritten with zeros (`make_times_zero`).

    The file also states a rate of 25 pictures a second, and a note says that times were made from it.
    """
    film = encode(tmp_path / f"zero.{suffix}", map(draw_number, range(30)), codec, options=options)
    data = bytearray(film.read_bytes())
    make_times_zero(data)
    film.write_bytes(data)

    frames = read_frames(film, at(range(30)))

    assert read_drawn_numbers(frames.images) == list(range(30))
    np.testing.assert_allclose(frames.time_s, np.arange(30) / 25)
    assert any("25 frames a second" in note for note in frames.notes)


SHOWS_NOTHING = b"\xff\xff\xff\xff"
"""In place of where an edit begins in the film: it shows nothing."""


class EditList:
    """The edit list of an MP4 of pictures alone, which has one edit of 12 bytes.

    An edit has its length (4 bytes), where it begins in the film (4), and its speed (4, as 16.16 bits).
    """

    def __init__(self, data: bytearray) -> None:
        self.data = data
        self.box = data.index(b"elst") - 4
        # The box has its length (4 bytes), name (4), version (4) and number of edits (4), and then the edits.
        self.n_edits_at = slice(self.box + 12, self.box + 16)
        self.edit_at = slice(self.box + 16, self.box + 28)
        assert data[self.n_edits_at] == (1).to_bytes(4, "big")

    @property
    def edit(self) -> bytes:
        """The one edit."""
        return bytes(self.data[self.edit_at])

    def set_speed(self, speed: int) -> None:
        """Let the edit be played at a speed; at 0, its first picture is held."""
        self.data[self.edit_at] = self.edit[:8] + speed.to_bytes(2, "big") + bytes(2)

    def add_edits(self, *edits: bytes) -> None:
        """Put edits behind the one that there is, and make the boxes around them longer."""
        self.data[self.n_edits_at] = (1 + len(edits)).to_bytes(4, "big")
        new_bytes = b"".join(edits)
        self.data[self.edit_at.stop : self.edit_at.stop] = new_bytes
        for box in (b"elst", b"edts", b"trak", b"moov"):  # each holds the one before it
            name = self.data.index(box)
            length = int.from_bytes(self.data[name - 4 : name], "big")
            self.data[name - 4 : name] = (length + len(new_bytes)).to_bytes(4, "big")

    def tear(self) -> None:
        """Let the box end behind its version, and make of its other 16 bytes a box of free space."""
        self.data[self.box : self.box + 4] = (12).to_bytes(4, "big")
        self.data[self.box + 12 : self.box + 20] = (16).to_bytes(4, "big") + b"free"


def show_nothing_between_two_edits(edits: EditList) -> None:
    length, speed = edits.edit[:4], edits.edit[8:]
    hole = length + SHOWS_NOTHING + speed
    edits.add_edits(hole, edits.edit)


def changed_film(film: Path, target: Path, change: Callable[[EditList], None]) -> Path:
    """Copy a film with a changed edit list."""
    data = bytearray(film.read_bytes())
    change(EditList(data))
    target.write_bytes(data)
    return target


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda edits: edits.set_speed(0), id="a picture that is held"),
        pytest.param(lambda edits: edits.set_speed(2), id="double speed"),
        pytest.param(show_nothing_between_two_edits, id="a hole"),
    ],
)
def test_edit_lists_that_ffmpeg_does_not_follow_are_noted(cut_film, tmp_path, change):
    """The edit list of an MP4 says which parts of a film a player shows, how fast, and with which pauses.

    FFmpeg, with which we read, shows the parts, and neither holds pictures nor follows speeds nor holes.
    """
    film = changed_film(cut_film, tmp_path / "odd.mp4", change)

    notes = read_frames(film, uniform(2)).notes

    assert any("edit list" in note for note in notes)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda _edits: None, id="a cut, which FFmpeg follows"),
        pytest.param(EditList.tear, id="a list that ends before its edits"),
    ],
)
def test_edit_lists_that_ffmpeg_follows_or_that_say_nothing_are_not_noted(cut_film, tmp_path, change):
    """The edit list of the film cuts off its beginning; in a copy the list is damaged and has no edits."""
    film = changed_film(cut_film, tmp_path / "odd.mp4", change)

    notes = read_frames(film, uniform(2)).notes

    assert not any("edit list" in note for note in notes)


def test_a_single_picture_at_zero_has_no_note_that_the_file_states_no_times(tmp_path):
    """All its times are 0, as if the file stated none, but one picture is rightly at 0."""
    film = encode(tmp_path / "one.mkv", [draw_number(7)])

    frames = read_frames(film, uniform(1))

    assert frames.time_s.tolist() == [0.0]
    assert frames.notes == ()


def matroska_chapters(*, is_ordered: bool) -> bytes:
    """Make the element Chapters (1043A770) with an EditionEntry (45B9) with EditionFlagOrdered (45DD)."""
    flag = bytes.fromhex("45dd 81") + bytes([is_ordered])
    edition = bytes.fromhex("45b9 84") + flag
    return bytes.fromhex("1043a770 87") + edition


@pytest.mark.parametrize("is_ordered", [False, True], ids=["marks alone", "an order"])
def test_chapters_that_players_show_in_an_order_of_their_own_are_noted(tmp_path, is_ordered):
    """Matroska can list chapters as mere marks in a film, or as parts that players show in the listed order.

    We read the film from its start to its end in any case. Only if players show it in another order, a note
    says so.
    """
    # Written as a live stream, the file states no length of its own, so that chapters may follow at its end.
    live = encode(tmp_path / "live.mkv", map(draw_number, range(30)), container_options={"live": "1"})
    film_with_chapters = tmp_path / "a.mkv"
    film_with_chapters.write_bytes(live.read_bytes() + matroska_chapters(is_ordered=is_ordered))

    notes = read_frames(film_with_chapters, at(range(30))).notes

    has_note = any("order of their own" in note for note in notes)
    assert has_note == is_ordered


@pytest.mark.parametrize(("name", "codec"), [("a.m1v", "mpeg1video"), ("a.m2v", "mpeg2video")])
def test_pictures_without_a_container_get_times_by_their_rate(tmp_path, name, codec):
    """A bare stream of 24 pictures states a rate of 25 a second, and no times."""
    bare_stream = encode(tmp_path / name, map(draw_number, range(24)), codec, options=MPEG_2_OPTIONS)

    frames = read_frames(bare_stream, at(range(24)))

    assert read_drawn_numbers(frames.images) == list(range(24))
    np.testing.assert_allclose(frames.time_s, np.arange(24) / 25)
    assert any("states no times" in note for note in frames.notes)


def write_y4m(path: Path, rate: bytes) -> Path:
    """Write four pictures of 16 x 16 pixels, uncompressed, behind a header with a rate such as F30:1."""
    picture = b"FRAME\n" + bytes(range(256)) + b"\x80" * 128
    path.write_bytes(b"YUV4MPEG2 W16 H16" + rate + b" C420jpeg\n" + picture * 4)
    return path


@pytest.mark.parametrize("rate", [b"", b" F0:0", b" F-25:1"], ids=["none", "zero", "below zero"])
def test_y4m_without_a_rate_is_read_at_25_pictures_a_second_with_a_note(tmp_path, rate):
    """A Y4M file has four pictures, no times, and a header that may state a rate, such as F30:1."""
    film = write_y4m(tmp_path / "a.y4m", rate)

    frames = read_frames(film, at(range(4)))

    assert "the file states no times: 25 frames a second are taken" in frames.notes
    np.testing.assert_allclose(frames.time_s, [0, 1 / 25, 2 / 25, 3 / 25])


def test_y4m_with_a_rate_is_read_at_this_rate_without_a_note(tmp_path):
    """The header of a Y4M file states 30 pictures a second ("F30:1")."""
    film = write_y4m(tmp_path / "a.y4m", rate=b" F30:1")

    frames = read_frames(film, at(range(4)))

    assert "the file states no times: 25 frames a second are taken" not in frames.notes
    np.testing.assert_allclose(frames.time_s, [0, 1 / 30, 2 / 30, 3 / 30])


@pytest.mark.parametrize(("scale", "rate"), [(1, 0), (0, 30)])
def test_avi_without_a_rate_is_read_at_25_pictures_a_second_with_a_note(tmp_path, scale, rate):
    """The header of AVI states a rate as two numbers, behind the name "strh"; zero in either is none."""
    path = encode(tmp_path / "a.avi", map(draw_number, range(8)), "mpeg4")
    notes_with_rate = read_frames(path, at([0])).notes
    assert not any("states no times" in note for note in notes_with_rate)
    data = bytearray(path.read_bytes())
    struct.pack_into("<II", data, data.find(b"strh") + 28, scale, rate)
    path.write_bytes(data)

    frames = read_frames(path, at(range(8)))

    assert "the file states no times: 25 frames a second are taken" in frames.notes
    assert read_drawn_numbers(frames.images) == list(range(8))


@pytest.mark.parametrize("kind", ["ts", "vob"])
def test_pictures_of_soft_telecine_are_24_a_second_and_none_is_repeated(tmp_path, kind):
    """A DVD of a film has nearly 24 pictures a second (24000/1001), and states 29.97, at which TVs show it.

    To fill the time, every other picture asks players to show a half of it (a field) once more; we don't.
    """
    rate = Fraction(24000, 1001)
    plain = encode(
        tmp_path / "plain.mkv", map(draw_number, range(48)), "mpeg2video", options=MPEG_2_OPTIONS, rate=rate
    )
    film = remux(plain, tmp_path / f"film.{kind}", pulled_down)

    frames = read_frames(film, at(range(48)))

    assert read_drawn_numbers(frames.images) == list(range(48))
    seconds_since_first = frames.time_s - frames.time_s[0]
    np.testing.assert_allclose(seconds_since_first, np.arange(48) / float(rate), atol=0.01)


def pulled_down(packets):
    """Rewrite packets of MPEG-2 as soft telecine: of four pictures, two last three fields (13818-2, 6.2)."""
    top_first, repeat_first = 0x80, 0x02
    flags_of_four = (top_first | repeat_first, top_first, repeat_first, 0)
    times_in_order = sorted(packet.pts for packet in packets)
    rewritten = []
    for packet in packets:
        data = bytearray(bytes(packet))
        state_interlaced_sequence_of_29_97_pictures(data)
        flags = flags_of_four[times_in_order.index(packet.pts) % 4]
        set_flags_of_fields(data, flags, top_first | repeat_first)
        copy = av.Packet(bytes(data))
        for name in ("pts", "dts", "time_base", "is_keyframe"):
            setattr(copy, name, getattr(packet, name))
        rewritten.append(copy)
    return rewritten


EXTENSION = b"\x00\x00\x01\xb5"
"""The start code of what MPEG-2 adds to a header of MPEG-1."""


def state_interlaced_sequence_of_29_97_pictures(data):
    """Change the sequence header of a packet, where it has one, and the extension behind it."""
    header = data.find(b"\x00\x00\x01\xb3")
    if header < 0:
        return
    code_of_30000_1001 = 4
    aspect_ratio = data[header + 7] & 0xF0
    data[header + 7] = aspect_ratio | code_of_30000_1001
    extension = data.index(EXTENSION)
    progressive_sequence = 0x08
    data[extension + 5] &= ~progressive_sequence


def set_flags_of_fields(data, flags, all_flags):
    """Set which field of a picture comes first and whether it is repeated; the frame is progressive."""
    picture = data.index(b"\x00\x00\x01\x00")
    coding_extension = data.index(EXTENSION, picture)
    other_bits = data[coding_extension + 7] & ~all_flags
    data[coding_extension + 7] = other_bits | flags
    progressive_frame = 0x80
    data[coding_extension + 8] |= progressive_frame


def without_times(film: Path, numbers: list[int]) -> Path:
    """Make stuffing of the times of some pictures of a transport stream, counted in order of decoding."""
    data = bytearray(film.read_bytes())
    headers = [header_of_picture(data, packet) for packet in range(0, len(data), TRANSPORT_PACKET)]
    headers_of_pictures = [header for header in headers if header is not None]
    for number in numbers:
        header = headers_of_pictures[number]
        has_times = 0xC0
        data[header + 7] &= ~has_times
        size_of_times = data[header + 8]
        data[header + 9 : header + 9 + size_of_times] = b"\xff" * size_of_times
    film.write_bytes(data)
    return film


def assert_pictures_are_a_frame_apart(film: Path, numbers: list[int]) -> None:
    """Assert that a film has pictures of these numbers, one every 25th of a second, and notes on times."""
    frames = read_frames(film, at(range(len(numbers))))
    assert read_drawn_numbers(frames.images) == numbers
    times_s = np.arange(len(numbers)) / 25
    np.testing.assert_allclose(frames.time_s - frames.time_s[0], times_s, atol=0.0015)
    assert any("time of its own" in note for note in frames.notes)
    span = read_frames(film, at([10, 11]), start_s=float(frames.time_s[10]))
    assert read_drawn_numbers(span.images) == [10, 11]


@pytest.mark.parametrize(
    "numbers",
    [[7], [10], [4, 5, 12, 23], [23], [*range(1, 23, 2)], [*range(1, 20)]],
    ids=["one", "a key picture", "two together", "the last", "every second", "most"],
)
@pytest.mark.parametrize("kind", ["h264.ts", "hevc.ts"])
def test_pictures_without_a_time_get_the_times_left_by_the_others(tmp_path, kind, numbers):
    """At a steady rate, each missing time is one of those between the others, also in a joined film.

    Two parts, of pictures 0 to 23 and 100 to 123, lack the times of the same pictures.
    """
    first = without_times(encode_part(tmp_path / f"0-{kind}", first=0, count=24), numbers)
    second = without_times(encode_part(tmp_path / f"1-{kind}", first=100, count=24), numbers)
    both = joined_byte_by_byte(tmp_path / f"ab-{kind}", [first, second])

    assert_pictures_are_a_frame_apart(first, [*range(24)])
    assert_pictures_are_a_frame_apart(both, [*range(24), *range(100, 124)])


def test_a_picture_without_a_time_makes_all_times_unknown_where_a_film_pauses(tmp_path):
    """Of 24 pictures, 25 a second, picture 5 states no time; behind picture 10 is a pause of 40/25 s.

    At a steady rate, the only time between the others that is left would be that of picture 5. But with the
    pause, 41 times are left between the stated ones, and nobody knows which of them it is.
    """
    times_with_pause = [*range(11), *range(51, 64)]  # in 1/25 s
    film = encode(
        tmp_path / "a.ts",
        map(draw_number, range(24)),
        times=times_with_pause,
        options=X264_OPTIONS | {"bf": "0"},
    )
    film_without_a_time = without_times(film, [5])

    frames = read_frames(film_without_a_time, at(range(24)))

    assert np.isnan(frames.time_s).all()


def test_asf_without_times_of_display_is_in_the_decoders_order(tmp_path):
    """ASF keeps times of decoding alone; a decoder puts pictures in the order of display by itself.

    Each of 30 pictures has its own number drawn in it.
    """
    film = encode(tmp_path / "b_frames.asf", map(draw_number, range(30)), options=X264_OPTIONS)

    frames = read_frames(film, at(range(30)))

    assert read_drawn_numbers(frames.images) == list(range(30))
