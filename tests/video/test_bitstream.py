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
H264_SLICE = b"\x41\x9a\x00"
"""A picture that refers to others."""
H264_IDR = b"\x65\x88\x00"
"""A picture at which decoding can start."""
H264_SPS = b"\x67\x64\x00\x0c"
"""Settings of a sequence of pictures."""


def with_lengths(*units: bytes) -> bytes:
    """Join NAL units as MP4 does: each behind its length in 4 bytes."""
    return b"".join(len(unit).to_bytes(4, "big") + unit for unit in units)


def with_start_codes(*units: bytes) -> bytes:
    """Join NAL units as transport streams do: each behind a start code (H.264, annex B)."""
    return b"".join(b"\x00\x00\x00\x01" + unit for unit in units)


def recovery_sei(frames: int) -> bytes:
    """Make an SEI unit whose message, of type 6, says that pictures are right after so many frames."""
    exp_golomb = f"{frames + 1:b}"
    bits = ("0" * (len(exp_golomb) - 1) + exp_golomb + "1").ljust(16, "0")
    return b"\x06" + bytes([6, 2]) + int(bits, 2).to_bytes(2, "big") + b"\x80"


EITHER_WAY_OF_JOINING = pytest.mark.parametrize(
    ("join", "length_size"), [(with_lengths, 4), (with_start_codes, 0)], ids=["lengths", "start codes"]
)


@EITHER_WAY_OF_JOINING
def test_decoding_of_h264_starts_at_an_idr_picture(join, length_size):
    assert h264(join(H264_SPS, H264_IDR), length_size) == picture_header(start=True, sets=H264_SPS)


@EITHER_WAY_OF_JOINING
def test_decoding_of_h264_starts_at_a_recovery_point_of_zero_frames(join, length_size):
    assert h264(join(recovery_sei(0), H264_SLICE), length_size) == picture_header(start=True)


@EITHER_WAY_OF_JOINING
@pytest.mark.parametrize(
    "units",
    [(recovery_sei(5), H264_SLICE), (H264_SPS, H264_SLICE), (H264_SPS,)],
    ids=["recovered 5 frames later", "another picture", "no picture"],
)
def test_decoding_of_h264_starts_at_nothing_else(join, length_size, units):
    assert h264(join(*units), length_size) == NO_HEADER


@given(frames=st.integers(0, 600), n_full_bytes=st.integers(0, 5))
def test_a_recovery_point_is_found_behind_another_message_of_any_length(frames, n_full_bytes):
    length = 255 * n_full_bytes + 3  # each byte 255 says that the length goes on in the next one
    other_message = b"\x05" + b"\xff" * n_full_bytes + b"\x03" + b"\x11" * length
    message = recovery_sei(frames)[1:]
    is_start, is_turned = read_sei(other_message + message)
    assert is_start == (frames == 0)
    assert not is_turned


def display_orientation(ends: str, flips: str, angle: int) -> bytes:
    """Make the content of an SEI message that turns pictures, by an angle in 65,536ths of a full turn.

    `ends` is the bit "1" where an earlier turn ends; `flips` has two bits: left and right, up and down.
    """
    holds_for_one_picture, fill = "010", "10"
    bits = ends + flips + f"{angle:016b}" + holds_for_one_picture + fill
    content = int(bits.ljust(24, "0"), 2).to_bytes(3, "big")
    return content.replace(b"\0\0", b"\0\0\x03")  # so that no start code is in it


@pytest.mark.parametrize(
    ("orientation", "is_turned"),
    [
        (display_orientation("0", "00", 0), False),
        (display_orientation("0", "01", 0), True),
        (display_orientation("0", "00", 3 << 14), True),
        (display_orientation("1", "11", 0xFFFF), False),
    ],
    ids=["no turn", "flipped", "270 degrees", "the turn ends"],
)
def test_a_display_orientation_turns_a_picture_unless_it_is_none(orientation, is_turned):
    message = b"\x2f\x03" + orientation + b"\x80"  # of type 47, 3 bytes long
    h264_sei, hevc_sei = b"\x06" + message, hevc_unit(PREFIX_SEI)[:2] + message
    assert h264(with_lengths(h264_sei, H264_IDR), 4).turned == is_turned
    assert read_hevc(with_lengths(hevc_sei, hevc_unit(IDR_N_LP)), 4).turned == is_turned


@given(st.binary(min_size=1, max_size=200), st.sampled_from([0, 1, 2, 4]))
def test_no_bytes_raise_an_error_in_the_parsers(data, length_size):
    for read_header in READERS.values():
        read_header(memoryview(data), length_size)
    gif(data)
    FieldReader(with_start_codes(b"\x67" + data), 0)


MPEG4_PICTURE = b"\x00\x00\x01\xb6"
"""The start code of a picture."""


MPEG4_GROUP = b"\x00\x00\x01\xb3"


BYTES_OF_PICTURE = b"\x55" * 8


def test_the_kind_of_an_mpeg4_picture_is_in_two_bits_behind_its_start_code():
    packets = [MPEG4_PICTURE + bytes([kind << 6]) + BYTES_OF_PICTURE for kind in range(4)]
    assert [mpeg4(packet).kind for packet in packets] == ["I", "P", "B", "S"]
    assert mpeg4(MPEG4_GROUP + packets[1]).kind == "P"


@pytest.mark.parametrize(
    "packet",
    [
        MPEG4_PICTURE + b"\x40" + MPEG4_PICTURE + b"\x80" + BYTES_OF_PICTURE,
        BYTES_OF_PICTURE + MPEG4_PICTURE,
        MPEG4_PICTURE + b"\x40\x55",
    ],
    ids=["two pictures", "cut behind the start code", "an empty picture"],
)
def test_an_mpeg4_packet_that_is_not_one_whole_picture_has_no_header(packet):
    assert mpeg4(packet) == NO_HEADER


# Types of HEVC's units (H.265, table 7-1).
TRAILING = 0
IDR_N_LP = 19
CRA = 21
HEVC_SPS = 33
DELIMITER = 35
PREFIX_SEI = 39


def hevc_unit(kind: int, *, layer: int = 0, temporal_id: int = 0) -> bytes:
    """Make an HEVC unit of a type, a layer and a temporal layer."""
    return bytes([kind << 1 | layer >> 5, (layer & 31) << 3 | temporal_id + 1, 0x80])


def test_the_header_of_an_hevc_packet_is_that_of_the_base_layer():
    """Layer 1 may hold the other view of a stereoscopic film."""
    idr_of_layer_1 = hevc_unit(IDR_N_LP, layer=1)
    packet = with_lengths(hevc_unit(DELIMITER), hevc_unit(CRA), idr_of_layer_1)
    assert read_hevc(packet, 4) == picture_header(start=True)
    packet = with_lengths(idr_of_layer_1, hevc_unit(TRAILING))
    assert read_hevc(packet, 4) == picture_header(unreferenced=True)


def test_the_header_of_an_hevc_packet_has_its_temporal_layer():
    header = read_hevc(with_lengths(hevc_unit(TRAILING, temporal_id=2)), 4)
    assert header == picture_header(unreferenced=True, layer=2)


def test_an_hevc_packet_may_have_parameter_sets_before_its_picture_or_no_picture():
    packet = with_lengths(hevc_unit(HEVC_SPS), hevc_unit(IDR_N_LP))
    assert read_hevc(packet, 4).sets == hevc_unit(HEVC_SPS)
    assert read_hevc(with_lengths(hevc_unit(DELIMITER)), 4) == NO_HEADER


def test_the_type_of_an_hevc_picture_says_whether_decoding_starts_and_whether_others_refer_to_it():
    """H.265, table 7-1: 16 to 21 can be started at; no other refers to those of even types to 14."""
    headers = [read_hevc(with_lengths(hevc_unit(kind)), 4) for kind in range(64)]
    assert [kind for kind, header in enumerate(headers) if header.start] == list(range(16, 22))
    unreferenced = [kind for kind, header in enumerate(headers) if header.unreferenced]
    assert unreferenced == list(range(0, 15, 2))


MPEG_SEQUENCE = b"\x00\x00\x01\xb3\x01\x02\x03\x04"
MPEG_GROUP = b"\x00\x00\x01\xb8\x00\x08\x00\x00"


I_PICTURE, P_PICTURE, B_PICTURE, D_PICTURE = 1, 2, 3, 4
TOP_FIELD, BOTTOM_FIELD, WHOLE_FRAME = 1, 2, 3


def mpeg_picture(kind: int, structure: int | None = WHOLE_FRAME) -> bytes:
    """A picture header, with MPEG-2's extension unless `structure` is None; then a slice."""
    header = b"\x00\x00\x01\x00" + bytes([0, kind << 3, 0, 0])
    extension = (
        b"" if structure is None else b"\x00\x00\x01\xb5" + bytes([0x8F, 0xFF, 0xF0 | structure, 0, 0])
    )
    return header + extension + b"\x00\x00\x01\x01\x12\x34"


def test_the_kind_of_an_mpeg_packet_is_that_of_its_frame():
    kinds = [I_PICTURE, P_PICTURE, B_PICTURE]
    assert [mpeg12(mpeg_picture(kind)).kind for kind in kinds] == ["I", "P", "B"]
    assert mpeg12(mpeg_picture(P_PICTURE, structure=None)).kind == "P"  # of MPEG-1


def test_the_kind_of_an_mpeg_packet_of_two_fields_is_that_of_the_first():
    first, second = mpeg_picture(I_PICTURE, TOP_FIELD), mpeg_picture(P_PICTURE, BOTTOM_FIELD)
    assert mpeg12(first + second).kind == "I"


@pytest.mark.parametrize(
    "packet",
    [
        mpeg_picture(D_PICTURE),
        mpeg_picture(I_PICTURE, TOP_FIELD),
        mpeg_picture(I_PICTURE, TOP_FIELD) * 3,
    ],
    ids=["a picture for search", "one field", "three fields"],
)
def test_an_mpeg_packet_that_is_not_one_picture_has_no_kind(packet):
    assert mpeg12(packet).kind == ""


@pytest.mark.parametrize(
    ("packet", "is_start"),
    [
        (MPEG_SEQUENCE + MPEG_GROUP + mpeg_picture(I_PICTURE), True),
        (MPEG_GROUP + mpeg_picture(I_PICTURE), False),
        (MPEG_SEQUENCE + mpeg_picture(P_PICTURE), False),
        (mpeg_picture(I_PICTURE) + MPEG_SEQUENCE, False),
    ],
    ids=["I behind a sequence header", "I behind a group's alone", "P", "I before a sequence header"],
)
def test_decoding_of_mpeg_starts_at_an_i_picture_behind_a_sequence_header(packet, is_start):
    assert mpeg12(packet).start == is_start


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
    "fields",
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
    ids=[
        "the shortest fields",
        "order of type 0",
        "order of type 1 with two offsets",
        "chroma of 4:2:0",
        "chroma of 4:4:4 with ten bits",
        "a list of scales that ends early",
        "a list of scales that rise and fall",
    ],
)
def test_the_length_of_frame_numbers_is_found_behind_any_fields_of_a_sequence(fields):
    """`sequence` writes that they are 7 bits long, behind fields that differ in length."""
    assert frame_number_bits(sequence(**fields)) == 7


def test_a_stream_without_fields_needs_no_length_of_frame_numbers():
    assert frame_number_bits(sequence(frames_only="1")) == 0


def rows_of_fields(grey):
    """Compute the RGB of a picture's first two rows, of its upper and its lower field, which has 9 more.

    Stored greys reach from 16 (black) to 235 (white); those of RGB from 0 to 255.
    """
    return [(stored - 16) * 255 / (235 - 16) for stored in (grey, grey + 9)]


def test_a_sequence_that_says_it_has_millions_of_offsets_is_refused():
    n_offsets = 1 << 22
    order = coded(1) + "0" + coded(0) * 2 + coded(n_offsets) + "1" * n_offsets
    with pytest.raises(ValueError, match=r"substring|literal"):  # of reading past the bytes that are read
        frame_number_bits(sequence(order=order))
    FieldReader(with_start_codes(sequence(order=order)), 0)  # raises nothing


def assert_rows_of_fields(images, greys):
    """Assert that pictures have the greys of `write_fields` in their first two rows, one of each field."""
    for image, grey in zip(images, greys, strict=True):
        assert image[:2, 0, 0].tolist() == pytest.approx(rows_of_fields(grey), abs=2)


def test_fields_are_read_where_films_of_frames_and_of_fields_are_joined(tmp_path):
    """In the two films, numbers of frames differ in length."""
    greys = [40, 90, 140]
    fields = write_fields(tmp_path / "fields.h264", greys)
    pictures = [np.full((32, 16, 3), 7 * number, np.uint8) for number in range(20)]
    frames = encode(tmp_path / "frames.h264", pictures, options={"bf": "3"})
    joined = tmp_path / "joined.h264"
    joined.write_bytes(frames.read_bytes() + fields.read_bytes() + frames.read_bytes())
    assert probe(joined).frames == 20 + len(greys) + 20
    of_fields = read_frames(joined, at([20, 21, 22]), strict=True)
    assert_rows_of_fields(of_fields.images, greys)


@pytest.mark.parametrize("suffix", ["h264", "ts", "mp4", "mkv", "flv"])
def test_two_fields_in_packets_of_their_own_are_one_picture(tmp_path, suffix):
    greys = [40, 90, 140, 190, 60, 100]
    film = write_fields(tmp_path / f"fields.{suffix}", greys)
    assert probe(film).frames == len(greys)
    frames = read_frames(film, at(range(len(greys))), strict=True)
    assert frames.status == "ok"
    assert frames.time_s == pytest.approx([number / 25 for number in range(len(greys))], abs=1e-3)
    assert_rows_of_fields(frames.images, greys)


def test_signed_numbers_in_exp_golomb_coding_go_up_and_down_in_turn():
    """H.264, table 9-3: the codes 0 to 4 are 0, 1, -1, 2, -2."""
    bits = "1" + "010" + "011" + "00100" + "00101"
    unit = b"\x67" + int(bits.ljust(24, "1"), 2).to_bytes(3, "big")
    reader = BitReader(unit)
    assert [reader.read_signed_exp_golomb() for _ in range(5)] == [0, 1, -1, 2, -2]
