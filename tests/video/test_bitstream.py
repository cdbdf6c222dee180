"""What packets say of themselves, on bits written by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.video import at, probe, read_frames
from obygaze_features.video.bitstream import (
    NO_HEADER,
    READERS,
    BitReader,
    FieldReader,
    frame_number_bits,
    gif,
    picture_header,
    read_sei,
)
from tests.video.encoding import encode
from tests.video.fields import coded, sequence, write_fields

h264 = READERS["h264"]
read_hevc = READERS["hevc"]
mpeg4 = READERS["mpeg4"]
mpeg12 = READERS["mpeg2video"]
vp8 = READERS["vp8"]
vp9 = READERS["vp9"]
av1 = READERS["av1"]
SLICE = b"\x41\x9a\x00"
IDR = b"\x65\x88\x00"
SPS = b"\x67\x64\x00\x0c"


def avcc(*units: bytes) -> bytes:
    return b"".join(len(unit).to_bytes(4, "big") + unit for unit in units)


def annex_b(*units: bytes) -> bytes:
    return b"".join(b"\x00\x00\x00\x01" + unit for unit in units)


def recovery_sei(frames: int) -> bytes:
    code = f"{frames + 1:b}"
    bits = ("0" * (len(code) - 1) + code + "1").ljust(16, "0")
    return b"\x06" + bytes([6, 2]) + int(bits, 2).to_bytes(2, "big") + b"\x80"


@pytest.mark.parametrize(("join", "length_size"), [(avcc, 4), (annex_b, 0)])
def test_decoding_starts_at_an_idr_or_at_a_recovery_point_of_zero_frames(join, length_size):
    assert h264(join(SPS, IDR), length_size) == picture_header(start=True, sets=SPS)
    assert h264(join(recovery_sei(0), SLICE), length_size) == picture_header(start=True)
    for units in ((recovery_sei(5), SLICE), (SPS, SLICE), (SPS,)):
        assert h264(join(*units), length_size) == NO_HEADER


@given(st.integers(0, 600), st.integers(0, 5))
def test_a_recovery_point_of_zero_frames_is_found_behind_any_other_message(frames, before):
    other = b"\x05" + b"\xff" * before + b"\x03" + b"\x11" * (255 * before + 3)
    assert read_sei(other + recovery_sei(frames)[1:]) == (frames == 0, False)


@pytest.mark.parametrize(
    ("bits", "turned"),
    [
        # Whether the turn ends, two flips, and 16 bits of an angle in parts of a full turn.
        ("000" + "0" * 16, False),  # neither flipped nor turned
        ("001" + "0" * 16, True),  # flipped
        ("000" + f"{3 << 14:016b}", True),  # 270 degrees
        ("1" + "1" * 18, False),  # the turn ends
    ],
)
def test_a_display_orientation_asks_for_a_turn_unless_it_is_none(bits, turned):
    behind = "01010"  # for how long it holds, and what fills the third byte
    content = int((bits + behind).ljust(24, "0"), 2).to_bytes(3, "big")
    escaped = content.replace(b"\0\0", b"\0\0\x03")
    sei = b"\x06\x2f\x03" + escaped + b"\x80"  # an SEI unit with message 47 of 3 bytes
    assert h264(avcc(sei, IDR), 4).turned == turned
    assert read_hevc(avcc(hevc(PREFIX_SEI)[:2] + sei[1:], hevc(IDR_N_LP)), 4).turned == turned


@given(st.binary(min_size=1, max_size=200), st.sampled_from([0, 1, 2, 4]))
def test_no_bytes_upset_the_parsers(data, length_size):
    for read in READERS.values():
        read(memoryview(data), length_size)
    gif(data)
    FieldReader(annex_b(b"\x67" + data), 0)


def test_the_kind_of_an_mpeg4_picture_is_in_two_bits_behind_its_start_code():
    start = b"\x00\x00\x01\xb6"
    rest = b"\x55" * 8
    assert [mpeg4(start + bytes([kind << 6]) + rest).kind for kind in range(4)] == ["I", "P", "B", "S"]
    assert mpeg4(b"\x00\x00\x01\xb3" + start + b"\x40" + rest).kind == "P"
    for odd in (start + b"\x40" + start + b"\x80" + rest, rest + start, start + b"\x40\x55"):
        assert mpeg4(odd) == NO_HEADER


# Types of HEVC's units (H.265, table 7-1).
TRAILING = 0
IDR_N_LP = 19
CRA = 21
HEVC_SPS = 33
DELIMITER = 35
PREFIX_SEI = 39


def hevc(kind: int, *, layer: int = 0, temporal_id: int = 0) -> bytes:
    return bytes([kind << 1 | layer >> 5, (layer & 31) << 3 | temporal_id + 1, 0x80])


def test_an_hevc_picture_is_that_of_the_base_layer():
    other_view = hevc(IDR_N_LP, layer=1)
    start = avcc(hevc(DELIMITER), hevc(CRA), other_view)
    assert read_hevc(start, 4) == picture_header(start=True)
    unreferenced = avcc(other_view, hevc(TRAILING, temporal_id=2))
    assert read_hevc(unreferenced, 4) == picture_header(unreferenced=True, layer=2)


def test_an_hevc_packet_may_have_parameter_sets_before_its_picture_or_no_picture():
    assert read_hevc(avcc(hevc(HEVC_SPS), hevc(IDR_N_LP)), 4).sets == hevc(HEVC_SPS)
    assert read_hevc(avcc(hevc(DELIMITER)), 4) == NO_HEADER


def test_the_type_of_an_hevc_picture_says_whether_decoding_starts_and_whether_others_refer_to_it():
    headers = [read_hevc(avcc(hevc(kind)), 4) for kind in range(64)]
    assert [kind for kind, header in enumerate(headers) if header.start] == [16, 17, 18, 19, 20, 21]
    unreferenced = [kind for kind, header in enumerate(headers) if header.unreferenced]
    assert unreferenced == [0, 2, 4, 6, 8, 10, 12, 14]


MPEG_SEQUENCE = b"\x00\x00\x01\xb3\x01\x02\x03\x04"
MPEG_GROUP = b"\x00\x00\x01\xb8\x00\x08\x00\x00"


def mpeg_picture(kind: int, structure: int | None = 3) -> bytes:
    """A picture header, with MPEG-2's extension unless `structure` is None; then a slice."""
    header = b"\x00\x00\x01\x00" + bytes([0, kind << 3, 0, 0])
    extension = (
        b"" if structure is None else b"\x00\x00\x01\xb5" + bytes([0x8F, 0xFF, 0xF0 | structure, 0, 0])
    )
    return header + extension + b"\x00\x00\x01\x01\x12\x34"


def test_an_mpeg_picture_is_one_frame_or_two_fields():
    assert [mpeg12(mpeg_picture(kind)).kind for kind in (1, 2, 3, 4)] == ["I", "P", "B", ""]
    assert mpeg12(mpeg_picture(2, None)).kind == "P"
    assert mpeg12(mpeg_picture(1, 1) + mpeg_picture(2, 2)).kind == "I"
    assert mpeg12(mpeg_picture(1, 1)).kind == ""
    assert mpeg12(mpeg_picture(1, 1) + mpeg_picture(2, 2) + mpeg_picture(3, 1)).kind == ""


def test_an_mpeg_picture_can_be_started_at_only_behind_a_sequence_header():
    assert mpeg12(MPEG_SEQUENCE + MPEG_GROUP + mpeg_picture(1)).start
    assert not mpeg12(MPEG_GROUP + mpeg_picture(1)).start
    assert not mpeg12(MPEG_SEQUENCE + mpeg_picture(2)).start
    assert not mpeg12(mpeg_picture(1) + MPEG_SEQUENCE).start


def test_vp8_says_in_its_first_byte_whether_a_frame_is_a_key_and_shown():
    headers = {
        "shown key": vp8(b"\x10"),
        "shown inter": vp8(b"\x11"),
        "hidden key": vp8(b"\x00"),
        "hidden inter": vp8(b"\x01"),
    }
    assert [name for name, header in headers.items() if header.start] == ["shown key", "hidden key"]
    assert [name for name, header in headers.items() if header.hidden] == ["hidden key", "hidden inter"]


def test_vp9_says_in_its_first_byte_whether_a_frame_is_a_key_and_shown():
    frames = {"key": 0b10000010, "inter": 0b10000110, "hidden key": 0b10000000, "shown again": 0b10001000}
    assert [name for name, first in frames.items() if vp9(bytes([first])).start] == ["key"]
    assert [name for name, first in frames.items() if vp9(bytes([first])).hidden] == ["hidden key"]
    assert not vp9(bytes([frames["hidden key"], 0b11000001])).hidden  # a superframe
    assert vp9(bytes([0b10110001])).start  # profile 3 has one bit more


def test_av1_starts_at_a_shown_key_frame_behind_a_sequence_header():
    delimiter = b"\x12\x00"
    sequence = b"\x0a\x02\x00\x00"
    still_sequence = b"\x0a\x02\x18\x00"
    key = b"\x32\x02\x10\x00"
    hidden_key = b"\x32\x02\x00\x00"
    inter = b"\x32\x02\x30\x00"
    assert av1(delimiter + sequence + key).start
    for units in (key, sequence + inter, sequence + hidden_key, still_sequence + key, sequence):
        assert not av1(delimiter + units).start


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"order": coded(0) + coded(4)},
        {"order": coded(1) + "0" + coded(3) * 2 + coded(2) + coded(5) * 2},
        {"profile": 100, "chroma": coded(1) + coded(0) * 2 + "0" + "0"},
        {"profile": 244, "chroma": coded(3) + "0" + coded(2) * 2 + "0" + "0"},
        # A list of scales that ends early (their difference is -8), one that is whole, and six without.
        {"profile": 100, "chroma": coded(1) + "11011" + coded(16) + "1" * 17 + "0" * 6},
        # A list whose scales rise by 8 and then fall by 16, with which it ends.
        {"profile": 100, "chroma": coded(1) + "11011" + coded(15) + coded(32) + "0" * 7},
    ],
)
def test_a_stream_that_may_have_fields_says_how_long_the_number_of_a_frame_is(written):
    """It is 7 bits long, which `sequence` writes behind fields that differ in length."""
    assert frame_number_bits(sequence(**written)) == 7


def test_a_stream_of_frames_alone_needs_no_length_of_their_number():
    assert frame_number_bits(sequence(frames_only="1")) == 0


def rows_of_fields(grey):
    """Compute the RGB of a picture's first two rows, of its upper and its lower field, which has 9 more.

    Stored greys reach from 16 (black) to 235 (white); those of RGB from 0 to 255.
    """
    return [(stored - 16) * 255 / (235 - 16) for stored in (grey, grey + 9)]


def test_a_sequence_of_offsets_without_end_is_not_read_to_its_end():
    offsets = coded(1) + "0" + coded(0) * 2 + coded(1 << 22) + "1" * (1 << 22)
    with pytest.raises(ValueError, match=r"substring|literal"):
        frame_number_bits(sequence(order=offsets))
    assert FieldReader(annex_b(sequence(order=offsets)), 0)


def test_fields_are_those_of_the_sequence_that_they_belong_to(tmp_path):
    """Where films of frames and of fields are joined, numbers of frames differ in length."""
    greys = [40, 90, 140]
    fields = write_fields(tmp_path / "fields.h264", greys)
    pictures = [np.full((32, 16, 3), 7 * number, np.uint8) for number in range(20)]
    frames = encode(tmp_path / "frames.h264", pictures, options={"bf": "3"})
    joined = tmp_path / "joined.h264"
    joined.write_bytes(frames.read_bytes() + fields.read_bytes() + frames.read_bytes())
    read = read_frames(joined, at(range(43)), strict=True)
    assert probe(joined).frames == 20 + 3 + 20
    rows = [image[:2, 0, 0].tolist() for image in read.images[20:23]]  # of the pictures made of fields
    assert rows == [pytest.approx(rows_of_fields(grey), abs=2) for grey in greys]


@pytest.mark.parametrize("suffix", ["h264", "ts", "mp4", "mkv", "flv"])
def test_two_fields_in_packets_of_their_own_are_one_picture(tmp_path, suffix):
    greys = [40, 90, 140, 190, 60, 100]
    film = write_fields(tmp_path / f"fields.{suffix}", greys)
    frames = read_frames(film, at(range(6)), strict=True)
    assert (frames.status, probe(film).frames) == ("ok", 6)
    assert frames.time_s == pytest.approx([number / 25 for number in range(6)], abs=1e-3)
    rows = [image[:2, 0, 0].tolist() for image in frames.images]
    assert rows == [pytest.approx(rows_of_fields(grey), abs=2) for grey in greys]


def test_signed_numbers_in_exp_golomb_coding_go_up_and_down_in_turn():
    # Table 9-3 of H.264: the codes 0 to 4 are 0, 1, -1, 2, -2.
    bits = "1" + "010" + "011" + "00100" + "00101"
    unit = b"\x67" + int(bits.ljust(24, "1"), 2).to_bytes(3, "big")
    reader = BitReader(unit)
    assert [reader.read_signed_exp_golomb() for _ in range(5)] == [0, 1, -1, 2, -2]
