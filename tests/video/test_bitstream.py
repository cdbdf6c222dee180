"""What packets say of themselves, on bits written by hand."""

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.video import at, probe, read_frames
from obygaze_features.video.bitstream import (
    NO_HEADER,
    READERS,
    FieldReader,
    PictureHeader,
    frame_number_bits,
    gif,
    picture_header,
    read_sei,
)
from tests.video.encoding import encode
from tests.video.fields import BOTTOM_IS_LIGHTER_BY, exp_golomb, sequence, write_fields

read_h264 = READERS["h264"]
read_hevc = READERS["hevc"]
read_mpeg4 = READERS["mpeg4"]
read_mpeg12 = READERS["mpeg2video"]
read_vp8 = READERS["vp8"]
read_vp9 = READERS["vp9"]
read_av1 = READERS["av1"]
H264_SLICE = b"\x41\x9a\x00"
"""A picture that refers to others."""
H264_IDR = b"\x65\x88\x00"
"""A picture at which decoding can start."""
H264_SPS = b"\x67\x64\x00\x0c"
"""Settings of a sequence of pictures."""
H264_SEI = b"\x06"
"""The first byte of a unit of messages."""
END_OF_UNIT = b"\x80"
"""The bit 1 that ends a unit, and zeros to the end of its byte."""


def with_lengths(*units: bytes) -> bytes:
    """Join NAL units as MP4 does: each behind its length in 4 bytes."""
    return b"".join(len(unit).to_bytes(4, "big") + unit for unit in units)


def with_start_codes(*units: bytes) -> bytes:
    """Join NAL units as transport streams do: each behind a start code (H.264, annex B)."""
    return b"".join(b"\x00\x00\x00\x01" + unit for unit in units)


def recovery_sei(frames: int) -> bytes:
    """Make an SEI unit of H.264 whose message says that pictures are right after so many frames (D.1.8)."""
    exact_match = "1"
    bits = (exp_golomb(frames) + exact_match).ljust(16, "0")
    content = int(bits, 2).to_bytes(2, "big")
    recovery_point = 6  # the type of the message, which stands before its length
    message = bytes([recovery_point, len(content)]) + content
    return H264_SEI + message + END_OF_UNIT


def headers_in_mp4_and_in_a_transport_stream(*units: bytes) -> list[PictureHeader]:
    """Read the header of a packet of H.264 twice: its units joined as in MP4, and as in a transport stream.

    The reader is told how many bytes the length before each unit has: 4 in MP4, and 0 in transport streams,
    where a start code stands in its place.
    """
    header_in_mp4 = read_h264(with_lengths(*units), length_size=4)
    header_in_transport_stream = read_h264(with_start_codes(*units), length_size=0)
    return [header_in_mp4, header_in_transport_stream]


def test_decoding_of_h264_starts_at_an_idr_picture():
    """A packet holds the settings of a film (SPS) and an IDR picture, which refers to no other picture.

    What is read of it says that decoding can start here (`start`), and has the settings' bytes (`sets`). All
    else is as for a packet of which nothing is known.
    """
    header_in_mp4, header_in_transport_stream = headers_in_mp4_and_in_a_transport_stream(H264_SPS, H264_IDR)

    assert header_in_mp4 == PictureHeader(start=True, sets=H264_SPS)
    assert header_in_transport_stream == PictureHeader(start=True, sets=H264_SPS)


def test_decoding_of_h264_starts_at_a_recovery_point_of_zero_frames():
    """A picture refers to others, but a message before it says that pictures are right after 0 frames.

    So decoding can start at this picture (`start`), and this is all that is read of the packet.
    """
    message = recovery_sei(frames=0)

    header_in_mp4, header_in_transport_stream = headers_in_mp4_and_in_a_transport_stream(message, H264_SLICE)

    assert header_in_mp4 == PictureHeader(start=True)
    assert header_in_transport_stream == PictureHeader(start=True)


@pytest.mark.parametrize(
    "units",
    [[recovery_sei(frames=5), H264_SLICE], [H264_SPS, H264_SLICE], [H264_SPS]],
    ids=[
        "a message that pictures are right 5 frames later",
        "settings and a picture that refers to others",
        "settings alone",
    ],
)
def test_decoding_of_h264_starts_neither_at_a_picture_that_refers_to_others_nor_at_settings(units):
    """`H264_SLICE` refers to other pictures, so that it cannot be decoded without them.

    It could if a message before it said that pictures are right at once, after 0 frames. Here the message
    says after 5 frames, or there is none, or the packet has settings (SPS) and no picture.
    """
    for header in headers_in_mp4_and_in_a_transport_stream(*units):
        assert header == NO_HEADER


@given(n_frames_until_right=st.integers(0, 600), n_full_bytes=st.integers(0, 5))
def test_a_recovery_point_is_found_behind_another_message_of_any_length(n_frames_until_right, n_full_bytes):
    """H.264 has messages about pictures, each with its length before it, here a text and a recovery point.

    The recovery point says that pictures are right after some frames; decoding can start there if it is 0 of
    them. To find it, the reader must pass the text, whose length is coded in several bytes: 255 each, and a
    last one of less. Five bytes of 255 and a 3 are a length of 1278.
    """
    unit_of_recovery_point = recovery_sei(n_frames_until_right)
    recovery_message = unit_of_recovery_point[1:]  # behind the byte that begins a unit

    messages = read_sei(message_of_text(n_full_bytes) + recovery_message)

    assert messages.recovers == (n_frames_until_right == 0)
    assert not messages.turns


def message_of_text(n_full_bytes: int) -> bytes:
    """Make an SEI message of type 5, a text. A length is the sum of its bytes; 255 means that one follows."""
    length = 255 * n_full_bytes + 3
    return b"\x05" + b"\xff" * n_full_bytes + b"\x03" + b"\x11" * length


def display_orientation(ends: str, flips: str, angle: int) -> bytes:
    """Make the content of an SEI message that turns pictures (H.264, annex D).

    `ends` is a bit: "1" ends what an earlier message says. `flips` has two bits: left and right, up and down.
    `angle` is counted in 65,536ths of a full turn.
    """
    holds_until_another_message = exp_golomb(1)
    not_read = "10"
    bits = ends + flips + f"{angle:016b}" + holds_until_another_message + not_read
    content = int(bits.ljust(24, "0"), 2).to_bytes(3, "big")
    return content.replace(b"\0\0", b"\0\0\x03")  # so that no start code is in it


@pytest.mark.parametrize(
    ("orientation", "is_turned"),
    [
        (display_orientation(ends="0", flips="00", angle=0), False),
        (display_orientation(ends="0", flips="01", angle=0), True),
        (display_orientation(ends="0", flips="00", angle=65_536 * 270 // 360), True),
        (display_orientation(ends="1", flips="11", angle=65_535), False),
    ],
    ids=["no turn", "flipped", "270 degrees", "the turn ends"],
)
def test_a_display_orientation_turns_a_picture_unless_it_is_none(orientation, is_turned):
    """In H.264 and HEVC, the same message before a picture may say that players must turn or flip it.

    The message may also end an earlier one (`ends`); an angle is counted in 1/65,536 of a full turn.
    """
    type_of_orientation = 47
    length_of_content = 3
    message = bytes([type_of_orientation, length_of_content]) + orientation
    unit_of_h264 = H264_SEI + message + END_OF_UNIT
    unit_of_hevc = hevc_unit(PREFIX_SEI)[:2] + message + END_OF_UNIT

    header_of_h264 = read_h264(with_lengths(unit_of_h264, H264_IDR), length_size=4)
    header_of_hevc = read_hevc(with_lengths(unit_of_hevc, hevc_unit(IDR_N_LP)), length_size=4)

    assert header_of_h264.turned == is_turned
    assert header_of_hevc.turned == is_turned


@given(st.binary(min_size=1, max_size=200), st.sampled_from([0, 1, 2, 4]))
def test_readers_of_pictures_headers_raise_no_error_for_any_bytes(data, length_size):
    """Packets of damaged films hold any bytes; an error would end the reading of the whole film.

    Packets of up to 200 bytes are given to the readers of all codecs, and to that of GIF. The bytes are also
    given to the reader of H.264's pairs of fields, as settings (SPS) of a sequence. `length_size` says how
    many bytes state the length of a unit in a packet; 0 if units have start codes. What is read of such bytes
    is of no matter.
    """
    for read_header in READERS.values():
        read_header(memoryview(data), length_size)
    gif(data)
    first_byte_of_settings = H264_SPS[:1]
    FieldReader(with_start_codes(first_byte_of_settings + data), length_size=0)


MPEG4_PICTURE = b"\x00\x00\x01\xb6"
"""The start code of a picture."""
MPEG4_GROUP = b"\x00\x00\x01\xb3"
I_KIND, P_KIND, B_KIND, S_KIND = b"\x00", b"\x40", b"\x80", b"\xc0"
"""The byte behind a start code: its two highest bits are the kind, 0 to 3; the others are not read."""
BYTES_OF_PICTURE = b"\x55" * 8
"""The rest of a picture, of which nothing is read but whether it is there."""


def test_the_kind_of_an_mpeg4_picture_is_in_two_bits_behind_its_start_code():
    """The two bits are the highest of the next byte; a header of a group may stand before the picture."""
    i_picture = MPEG4_PICTURE + I_KIND + BYTES_OF_PICTURE
    p_picture = MPEG4_PICTURE + P_KIND + BYTES_OF_PICTURE
    b_picture = MPEG4_PICTURE + B_KIND + BYTES_OF_PICTURE
    s_picture = MPEG4_PICTURE + S_KIND + BYTES_OF_PICTURE

    assert read_mpeg4(i_picture).kind == "I"
    assert read_mpeg4(p_picture).kind == "P"
    assert read_mpeg4(b_picture).kind == "B"
    assert read_mpeg4(s_picture).kind == "S"
    assert read_mpeg4(MPEG4_GROUP + p_picture).kind == "P"


@pytest.mark.parametrize(
    "packet",
    [
        MPEG4_PICTURE + P_KIND + MPEG4_PICTURE + B_KIND + BYTES_OF_PICTURE,
        BYTES_OF_PICTURE + MPEG4_PICTURE,
        MPEG4_PICTURE + P_KIND + BYTES_OF_PICTURE[:1],
    ],
    ids=["two pictures", "a start code at the end, without a picture", "a picture of one byte"],
)
def test_of_an_mpeg4_packet_that_is_not_one_whole_picture_nothing_is_read(packet):
    """A packet of one whole picture is a start code, a byte with the kind, and the bytes of the picture.

    Here a packet has the start codes of two pictures, P and B; or it ends with a start code, so that the kind
    is missing; or it has 6 bytes. A packet of 8 bytes or fewer has no picture: it says that the one before is
    shown again.
    """
    assert read_mpeg4(packet) == NO_HEADER


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


IDR_OF_LAYER_1 = hevc_unit(IDR_N_LP, layer=1)
"""Layer 1 may hold the other view of a stereoscopic film."""


@pytest.mark.parametrize(
    ("units", "header"),
    [
        ([hevc_unit(DELIMITER), hevc_unit(CRA), IDR_OF_LAYER_1], picture_header(start=True)),
        ([IDR_OF_LAYER_1, hevc_unit(TRAILING)], picture_header(unreferenced=True)),
        ([hevc_unit(TRAILING, temporal_id=2)], picture_header(unreferenced=True, layer=2)),
        (
            [hevc_unit(HEVC_SPS), hevc_unit(IDR_N_LP)],
            picture_header(start=True, sets=hevc_unit(HEVC_SPS)),
        ),
        ([hevc_unit(DELIMITER)], NO_HEADER),
    ],
    ids=["start in layer 0", "start in layer 1 alone", "temporal layer 2", "settings", "no picture"],
)
def test_the_header_of_an_hevc_packet_is_that_of_its_picture_in_layer_0(units, header):
    """A packet of HEVC is made of units, each of a type and a layer; only layer 0 is decoded.

    - Decoding can start (`start`) at pictures of the types CRA and IDR_N_LP, if they are in layer 0. Those of
      layer 1, such as the other view of a stereoscopic film, are passed over.
    - TRAILING is a picture at which decoding cannot start, and to which no other refers (`unreferenced`).
    - A temporal layer is something else: it says which frames may be left out to show fewer a second. It is
      handed on as `layer`.
    - The settings before a start (HEVC_SPS) are handed on as `sets`.
    - A DELIMITER is no picture.
    """
    packet = with_lengths(*units)

    assert read_hevc(packet, length_size=4) == header


def test_the_type_of_an_hevc_picture_says_what_depends_on_it():
    """Decoding starts at types 16 to 21, and no picture refers to even types up to 14 (H.265, table 7-1)."""
    types_of_starts = []
    types_without_references = []
    for unit_type in range(64):
        header = read_hevc(with_lengths(hevc_unit(unit_type)), length_size=4)
        if header.start:
            types_of_starts.append(unit_type)
        if header.unreferenced:
            types_without_references.append(unit_type)

    assert types_of_starts == [16, 17, 18, 19, 20, 21]
    assert types_without_references == [0, 2, 4, 6, 8, 10, 12, 14]


MPEG_SEQUENCE = b"\x00\x00\x01\xb3\x01\x02\x03\x04"
MPEG_GROUP = b"\x00\x00\x01\xb8\x00\x08\x00\x00"
I_PICTURE, P_PICTURE, B_PICTURE, D_PICTURE = 1, 2, 3, 4
TOP_FIELD, BOTTOM_FIELD, WHOLE_FRAME = 1, 2, 3


def mpeg_picture(kind: int, structure: int | None = WHOLE_FRAME) -> bytes:
    """Make the header of a picture, with MPEG-2's extension unless `structure` is None; then a slice.

    ISO/IEC 13818-2: 6.2.3 and 6.2.3.1.
    """
    header = b"\x00\x00\x01\x00" + bytes([0, kind << 3, 0, 0])
    extension = b""
    if structure is not None:
        id_and_ranges_of_motion = bytes([0x8F, 0xFF])
        precision_and_structure = bytes([0xF0 | structure])  # the structure is in the two lowest bits
        other_flags = bytes(2)
        extension = b"\x00\x00\x01\xb5" + id_and_ranges_of_motion + precision_and_structure + other_flags
    slice_of_picture = b"\x00\x00\x01\x01\x12\x34"
    return header + extension + slice_of_picture


@pytest.mark.parametrize(
    ("packet", "kind"),
    [
        (mpeg_picture(I_PICTURE), "I"),
        (mpeg_picture(P_PICTURE), "P"),
        (mpeg_picture(B_PICTURE), "B"),
        (mpeg_picture(P_PICTURE, structure=None), "P"),
        (mpeg_picture(I_PICTURE, TOP_FIELD) + mpeg_picture(P_PICTURE, BOTTOM_FIELD), "I"),
        (mpeg_picture(D_PICTURE), ""),
        (mpeg_picture(I_PICTURE, TOP_FIELD), ""),
        (mpeg_picture(I_PICTURE, TOP_FIELD) * 3, ""),
    ],
    ids=["I", "P", "B", "P of MPEG-1", "two fields", "D, for fast search", "one field", "three fields"],
)
def test_the_kind_of_an_mpeg_packet_is_that_of_its_one_frame(packet, kind):
    """A packet of MPEG-1 or MPEG-2 should hold one frame, whose kind is I, P or B.

    The frame may also be two fields with a header each: then the kind of the first counts, as the second may
    refer to it. D-pictures, coarse ones for fast search, are no film's frames. They have no kind here, nor
    has a packet that holds one field, or more than two.
    """
    assert read_mpeg12(packet).kind == kind


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
    """The sequence header has what a decoder needs: size, rate and tables."""
    assert read_mpeg12(packet).start == is_start


@pytest.mark.parametrize(
    ("first_byte", "is_key", "is_hidden"),
    [(b"\x10", True, False), (b"\x11", False, False), (b"\x00", True, True), (b"\x01", False, True)],
    ids=["shown key", "shown inter", "hidden key", "hidden inter"],
)
def test_the_first_byte_of_vp8_says_whether_a_frame_is_a_key_and_shown(first_byte, is_key, is_hidden):
    """The lowest bit of the byte is 0 for a key frame; the fifth, of 16, is 1 if the frame is shown."""
    header = read_vp8(first_byte)

    assert header.start == is_key
    assert header.hidden == is_hidden


def vp9_frame(*, profile: int = 0, repeats: bool = False, is_inter: bool = False, is_shown: bool = True):
    """Make the first byte of a frame of VP9 (bitstream specification, 6.2)."""
    frame_mark = "10"
    profile_bits = f"{profile:02b}"[::-1]  # the low bit comes first
    if profile == 3:
        profile_bits += "0"
    bits = frame_mark + profile_bits + f"{repeats:d}{is_inter:d}{is_shown:d}"
    return bytes([int(bits.ljust(8, "0"), 2)])


SUPERFRAME_MARK = bytes([0b110_00_001])
"""At the end of a packet of two frames, with lengths of one byte: a hidden one, and one that is shown."""


@pytest.mark.parametrize(
    ("packet", "is_key", "is_hidden"),
    [
        (vp9_frame(), True, False),
        (vp9_frame(profile=3), True, False),
        (vp9_frame(is_inter=True), False, False),
        (vp9_frame(is_shown=False), False, True),
        (vp9_frame(repeats=True, is_shown=False), False, False),
        (vp9_frame(is_shown=False) + SUPERFRAME_MARK, False, False),
    ],
    ids=["key", "key of profile 3, with one bit more", "inter", "hidden key", "shown again", "superframe"],
)
def test_the_first_byte_of_vp9_says_whether_a_frame_is_a_key_and_shown(packet, is_key, is_hidden):
    """A superframe is a packet of several frames; here a hidden one and one that is shown.

    A frame that is "shown again" repeats an earlier one.
    """
    header = read_vp9(packet)

    assert header.start == is_key
    assert header.hidden == is_hidden


AV1_DELIMITER = b"\x12\x00"


def av1_sequence(*, is_still: bool = False) -> bytes:
    """Make a sequence header of AV1: its type, its length, and two bytes (AV1, 5.5)."""
    still_bits = 0b000_11_000 if is_still else 0  # "still picture", "reduced header"
    return b"\x0a\x02" + bytes([still_bits, 0])


def av1_frame(*, is_inter: bool = False, is_shown: bool = True) -> bytes:
    """Make a frame of AV1: its type, its length, and two bytes (AV1, 5.9)."""
    bits = is_inter << 5 | is_shown << 4  # the kind in two bits, behind the bit "show existing frame"
    return b"\x32\x02" + bytes([bits, 0])


@pytest.mark.parametrize(
    ("units", "is_start"),
    [
        (av1_sequence() + av1_frame(), True),
        (av1_frame(), False),
        (av1_sequence() + av1_frame(is_inter=True), False),
        (av1_sequence() + av1_frame(is_shown=False), False),
        (av1_sequence(is_still=True) + av1_frame(), False),
        (av1_sequence(), False),
    ],
    ids=["a start", "no sequence header", "no key frame", "not shown", "a still", "no frame"],
)
def test_av1_starts_at_a_shown_key_frame_behind_a_sequence_header(units, is_start):
    """A packet begins with a delimiter. The sequence header has what a decoder needs; a still is no video."""
    packet = AV1_DELIMITER + units

    assert read_av1(packet).start == is_start


# Bits of fields that only high profiles have, behind the format of chroma (H.264, 7.3.2.1.1).
EIGHT_BITS = exp_golomb(0) * 2  # of luma and of chroma, less eight
TEN_BITS = exp_golomb(2) * 2
NO_LOSSLESS_TRANSFORM = "0"
NO_SCALES = "0"
# Six of the eight lists are not there. Of the others, each difference of scales is coded as a signed number.
ENDS_AT_ONCE = exp_golomb(16)  # -8: the next scale is 0, which ends the list
WHOLE_LIST_OF_16 = "1" * 16  # sixteen differences of 0
RISES_AND_ENDS = exp_golomb(15) + exp_golomb(32)  # 8, then -16: the next scale is 0
IS_THERE, IS_NOT_THERE = "1", "0"


def scales_of_420(*lists: str) -> str:
    """Return the fields of high profiles with lists of scales: the first ones; six more are not there."""
    chroma_420 = exp_golomb(1)
    has_scales = "1"
    bits = chroma_420 + EIGHT_BITS + NO_LOSSLESS_TRANSFORM + has_scales
    for scales in lists:
        bits += IS_THERE + scales
    return bits + IS_NOT_THERE * (8 - len(lists))


def order_by_offsets(*offsets: str) -> str:
    """Return the fields of an order of pictures of type 1, with offsets that repeat."""
    order_type = exp_golomb(1)
    always_zero = "0"
    two_other_offsets = exp_golomb(3) * 2
    return order_type + always_zero + two_other_offsets + exp_golomb(len(offsets)) + "".join(offsets)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"order": exp_golomb(0) + exp_golomb(4)},
        {"order": order_by_offsets(exp_golomb(5), exp_golomb(5))},
        {"profile": 100, "chroma": exp_golomb(1) + EIGHT_BITS + NO_LOSSLESS_TRANSFORM + NO_SCALES},
        {"profile": 244, "chroma": exp_golomb(3) + "0" + TEN_BITS + NO_LOSSLESS_TRANSFORM + NO_SCALES},
        {"profile": 100, "chroma": scales_of_420(ENDS_AT_ONCE, WHOLE_LIST_OF_16)},
        {"profile": 100, "chroma": scales_of_420(RISES_AND_ENDS)},
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
def test_the_length_of_frame_numbers_is_found_behind_other_settings_of_any_length(fields):
    """Settings of a film in H.264 (a sequence parameter set) say how many bits frame numbers have, here 7.

    They are a string of bits without marks between them. Before the bits that say 7 stand other settings,
    which take more or fewer bits depending on what they say: on the format of chroma (`chroma`), and on how
    the order of pictures is coded (`order`). The reader must pass exactly these. `sequence` writes settings
    with the given ones and the usual others.
    """
    settings_with_7_bits = sequence(**fields)

    assert frame_number_bits(settings_with_7_bits) == 7


def test_frame_numbers_have_zero_bits_if_h264_settings_say_that_all_pictures_are_whole_frames():
    """The settings of a film state how many bits the number of a frame has, here 7.

    They also state that no picture is stored as two fields (`frames_only`). Numbers of frames are read only
    to find which two fields belong together. So 0 is returned: there is nothing to read.
    """
    settings = sequence(frames_only="1")

    assert frame_number_bits(settings) == 0


def rows_of_fields(grey):
    """Compute the RGB of the first two rows of a picture of `write_fields`, from its grey."""
    # Stored greys reach from 16 (black) to 235 (white); those of RGB from 0 to 255.
    return [(stored - 16) * 255 / (235 - 16) for stored in (grey, grey + BOTTOM_IS_LIGHTER_BY)]


def assert_rows_of_fields(images, greys):
    """Assert that pictures have the greys of `write_fields` in their first two rows, one of each field."""
    for image, grey in zip(images, greys, strict=True):
        assert image[:2, 0, 0].tolist() == pytest.approx(rows_of_fields(grey), abs=2)


def settings_with_millions_of_offsets() -> bytes:
    """Make settings of H.264 that code the order of pictures by 4 million offsets; no film has as many.

    Whoever reads all of them would be busy for long. The settings are so long that what comes behind the
    offsets is not among the first bytes of a unit.
    """
    four_million_offsets_of_zero = [exp_golomb(0)] * 2**22
    return sequence(order=order_by_offsets(*four_million_offsets_of_zero))


def test_h264_settings_that_state_millions_of_offsets_are_refused():
    """The length of frame numbers is read from the first bytes of the settings alone, to save time.

    These bytes end within the offsets, so that the next bits are not there. Python then says that there is no
    substring "1", or that no bits are no number (no "literal").
    """
    settings = settings_with_millions_of_offsets()

    with pytest.raises(ValueError, match=r"substring|literal"):
        frame_number_bits(settings)


def test_a_film_whose_h264_settings_state_millions_of_offsets_is_taken_for_one_without_fields():
    """Settings that end within 4 million offsets are damaged: the length of frame numbers is not known.

    By these numbers the two fields of a picture are paired. So the reader of pairs of fields raises no error,
    and finds no field in a packet.
    """
    settings = settings_with_millions_of_offsets()

    reader = FieldReader(with_start_codes(settings), length_size=0)

    packet = av.Packet(with_start_codes(H264_IDR))
    assert reader.read(packet) == ()


def test_fields_are_read_where_films_of_frames_and_of_fields_are_joined(tmp_path):
    """A film of three pictures, each stored as two fields, lies between two copies of a film of 20 frames.

    Which two fields are one picture is told by the numbers of frames. How many bits these have is a setting
    of each film, and differs between the two, so that it must be read again where the next film begins. The
    joined film has 20 + 3 + 20 pictures, and those of fields have the greys that were written.
    """
    greys = [40, 90, 140]
    film_of_fields = write_fields(tmp_path / "fields.h264", greys)
    pictures = [np.full((32, 16, 3), 7 * number, np.uint8) for number in range(20)]
    film_of_frames = encode(tmp_path / "frames.h264", pictures, options={"bf": "3"})
    joined = tmp_path / "joined.h264"
    joined.write_bytes(
        film_of_frames.read_bytes() + film_of_fields.read_bytes() + film_of_frames.read_bytes()
    )

    pictures_of_fields = read_frames(joined, at([20, 21, 22]), strict=True)

    assert probe(joined).frames == 20 + 3 + 20
    assert_rows_of_fields(pictures_of_fields.images, greys)


@pytest.mark.parametrize("suffix", ["h264", "ts", "mp4", "mkv", "flv"])
def test_two_fields_in_packets_of_their_own_are_one_picture(tmp_path, suffix):
    """Six pictures are stored as twelve packets; the first two rows of a picture are one of each field."""
    greys = [40, 90, 140, 190, 60, 100]
    film = write_fields(tmp_path / f"fields.{suffix}", greys)

    frames = read_frames(film, at([0, 1, 2, 3, 4, 5]), strict=True)

    assert probe(film).frames == 6
    assert frames.status == "ok"
    assert frames.time_s == pytest.approx([0, 0.04, 0.08, 0.12, 0.16, 0.2], abs=1e-3)  # 25 a second
    assert_rows_of_fields(frames.images, greys)
