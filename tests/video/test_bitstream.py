"""What packets say of themselves, on bits written by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.video.bitstream import (
    exp_golomb,
    hevc_picture,
    is_av1_random_access,
    is_h264_random_access,
    is_hevc_random_access,
    is_hevc_unreferenced,
    is_mpeg12_random_access,
    is_vp9_key,
    mpeg12_type,
    parameter_sets,
    recovery_frames,
    vop_type,
    vp8_picture,
)

SLICE, IDR, SPS = b"\x41\x9a\x00", b"\x65\x88\x00", b"\x67\x64\x00\x0c"


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
    assert is_h264_random_access(join(SPS, IDR), length_size)
    assert is_h264_random_access(join(recovery_sei(0), SLICE), length_size)
    assert not is_h264_random_access(join(recovery_sei(5), SLICE), length_size)
    assert not is_h264_random_access(join(SPS, SLICE), length_size)
    assert not is_h264_random_access(join(SPS), length_size)


@given(st.integers(0, 60000))
def test_exp_golomb_numbers_are_read_back(value):
    code = f"{value + 1:b}"
    bits = "0" * (len(code) - 1) + code
    size = -(-len(bits) // 8)
    assert exp_golomb(int(bits.ljust(8 * size, "1"), 2).to_bytes(size, "big")) == value


@given(st.binary(max_size=200), st.sampled_from([0, 1, 2, 4]))
def test_no_bytes_upset_the_parsers(data, length_size):
    is_h264_random_access(data, length_size)
    recovery_frames(data)
    vop_type(data)
    hevc_picture(data, length_size)
    parameter_sets(data, length_size, "hevc")
    mpeg12_type(data)
    vp8_picture(data)
    is_vp9_key(data)
    is_av1_random_access(data)


def test_the_kind_of_an_mpeg4_picture_is_in_two_bits_and_two_pictures_have_none():
    start = b"\x00\x00\x01\xb6"
    assert [vop_type(start + bytes([kind << 6])) for kind in range(4)] == ["I", "P", "B", "S"]
    assert vop_type(b"\x00\x00\x01\xb3" + start + b"\x40") == "P"
    assert vop_type(start + b"\x40" + start + b"\x80") == ""
    assert vop_type(b"\x00\x00\x01\xb3") == ""
    assert vop_type(start) == ""


def hevc(kind: int, *, layer: int = 0, temporal_id: int = 0) -> bytes:
    return bytes([kind << 1 | layer >> 5, (layer & 31) << 3 | temporal_id + 1, 0x80])


def test_an_hevc_picture_is_known_by_its_type_and_layer():
    aud, other_view = hevc(35), hevc(19, layer=1)
    assert hevc_picture(avcc(aud, hevc(21), other_view), 4) == (21, 0)
    assert hevc_picture(avcc(other_view, hevc(0, temporal_id=2)), 4) == (0, 2)
    assert hevc_picture(avcc(aud), 4) == (-1, 0)
    assert [kind for kind in range(-1, 64) if is_hevc_random_access(kind)] == [16, 17, 18, 19, 20, 21]
    assert [kind for kind in range(-1, 64) if is_hevc_unreferenced(kind)] == [0, 2, 4, 6, 8, 10, 12, 14]


MPEG_SEQUENCE, MPEG_GROUP = b"\x00\x00\x01\xb3\x01\x02\x03\x04", b"\x00\x00\x01\xb8\x00\x08\x00\x00"


def mpeg_picture(kind: int, structure: int | None = 3) -> bytes:
    """A picture header, with MPEG-2's extension unless `structure` is None; then a slice."""
    header = b"\x00\x00\x01\x00" + bytes([0, kind << 3, 0, 0])
    extension = (
        b"" if structure is None else b"\x00\x00\x01\xb5" + bytes([0x8F, 0xFF, 0xF0 | structure, 0, 0])
    )
    return header + extension + b"\x00\x00\x01\x01\x12\x34"


def test_an_mpeg_picture_is_one_frame_or_two_fields():
    assert [mpeg12_type(mpeg_picture(kind)) for kind in (1, 2, 3, 4)] == ["I", "P", "B", ""]
    assert mpeg12_type(mpeg_picture(2, None)) == "P"
    assert mpeg12_type(mpeg_picture(1, 1) + mpeg_picture(2, 2)) == "I"
    assert mpeg12_type(mpeg_picture(1, 1)) == ""
    assert mpeg12_type(mpeg_picture(1, 1) + mpeg_picture(2, 2) + mpeg_picture(3, 1)) == ""


def test_an_mpeg_picture_can_be_started_at_only_behind_a_sequence_header():
    assert is_mpeg12_random_access(MPEG_SEQUENCE + MPEG_GROUP + mpeg_picture(1))
    assert not is_mpeg12_random_access(MPEG_GROUP + mpeg_picture(1))
    assert not is_mpeg12_random_access(MPEG_SEQUENCE + mpeg_picture(2))
    assert not is_mpeg12_random_access(mpeg_picture(1) + MPEG_SEQUENCE)


def test_key_frames_of_vp8_vp9_and_av1_say_so_themselves():
    assert [vp8_picture(bytes([first])) for first in (0x10, 0x11, 0x00, 0x01)] == [
        (True, True),
        (False, True),
        (True, False),
        (False, False),
    ]
    frames = {"key": 0b10000010, "inter": 0b10000110, "hidden key": 0b10000000, "shown again": 0b10001000}
    assert [name for name, first in frames.items() if is_vp9_key(bytes([first]))] == ["key"]
    assert is_vp9_key(bytes([0b10110001]))  # profile 3 has one bit more
    sequence, key, inter = b"\x0a\x02\x00\x00", b"\x32\x02\x10\x00", b"\x32\x02\x30\x00"
    delimiter, still_sequence = b"\x12\x00", b"\x0a\x02\x18\x00"
    assert is_av1_random_access(delimiter + sequence + key)
    for unit in (key, sequence + inter, sequence + b"\x32\x02\x00\x00", still_sequence + key, sequence):
        assert not is_av1_random_access(delimiter + unit)
