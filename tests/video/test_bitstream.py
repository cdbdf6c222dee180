"""What packets say of themselves, on bits written by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.video.nal import (
    exp_golomb,
    is_h264_random_access,
    nal_length_size,
    recovery_frames,
)
from obygaze_features.video.pictures import display_ranks, vop_type

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


def test_a_recovery_point_is_found_behind_other_messages():
    unregistered = bytes([5, 0xFF, 3]) + bytes(range(258 % 256)) + bytes(258 - 258 % 256)
    unregistered = bytes([5, 0xFF, 3]) + b"x" * 258
    assert recovery_frames(unregistered + recovery_sei(2)[1:]) == 2
    assert recovery_frames(unregistered + b"\x80") is None


def test_the_configuration_record_gives_the_length_size():
    assert nal_length_size(b"\x01\x64\x00\x0c\xff\xe1\x00\x1c") == 4
    assert nal_length_size(b"\x00\x00\x00\x01\x67\x64\x00\x0c") == 0
    assert nal_length_size(None) == 0


@given(st.integers(0, 60000))
def test_exp_golomb_numbers_are_read_back(value):
    code = f"{value + 1:b}"
    bits = "0" * (len(code) - 1) + code
    size = -(-len(bits) // 8)
    assert exp_golomb(int(bits.ljust(8 * size, "1"), 2).to_bytes(size, "big")) == value


def test_exp_golomb_that_ends_early_is_none():
    assert exp_golomb(b"\x00") is None
    assert exp_golomb(b"") is None


@given(st.binary(max_size=200), st.sampled_from([0, 1, 2, 4]))
def test_no_bytes_upset_the_parsers(data, length_size):
    is_h264_random_access(data, length_size)
    recovery_frames(data)
    vop_type(data)


def test_the_kind_of_an_mpeg4_picture_is_in_two_bits_and_two_pictures_have_none():
    start = b"\x00\x00\x01\xb6"
    assert [vop_type(start + bytes([kind << 6])) for kind in range(4)] == ["I", "P", "B", "S"]
    assert vop_type(b"\x00\x00\x01\xb3" + start + b"\x40") == "P"
    assert vop_type(start + b"\x40" + start + b"\x80") == ""
    assert vop_type(b"\x00\x00\x01\xb3") == ""
    assert vop_type(start) == ""


def test_b_pictures_are_shown_before_the_one_they_follow_in_the_file():
    assert display_ranks("IPBBPBB").tolist() == [0, 3, 1, 2, 6, 4, 5]
    assert display_ranks("IPP").tolist() == [0, 1, 2]


@given(st.text("IPBS", max_size=60))
def test_display_ranks_are_a_permutation(types):
    assert np.sort(display_ranks(types)).tolist() == list(range(len(types)))
