"""What a packet says of itself: is it a point where decoding can start, how is it shown.

Sources: H.264 is ITU-T H.264 (08/2021), 7.3.1 (NAL units), 7.3.2.3 and D.1.8 (recovery point SEI); MPEG-4
part 2 is ISO/IEC 14496-2:2004, 6.2.5 (VideoObjectPlane); the AVC configuration record is ISO/IEC 14496-15.
"""

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

NAL_SLICE, NAL_IDR, NAL_SEI = 1, 5, 6
SEI_RECOVERY_POINT = 6
START_CODE = re.compile(b"\x00\x00\x01")
VOP_START = b"\x00\x00\x01\xb6"
VOP_TYPES = "IPBS"


def nal_length_size(extradata: bytes | None) -> int:
    """Bytes of the length before each NAL unit (MP4, Matroska), or 0 where start codes are used (Annex B)."""
    if extradata and len(extradata) >= 7 and extradata[0] == 1:
        return (extradata[4] & 3) + 1
    return 0


def nal_units(data: bytes, length_size: int) -> Iterator[bytes]:
    """Yield the NAL units of an access unit, without lengths or start codes."""
    if length_size:
        position = 0
        while position + length_size < len(data):
            length = int.from_bytes(data[position : position + length_size], "big")
            position += length_size
            if length:
                yield data[position : position + length]
            position += length
        return
    starts = [match.end() for match in START_CODE.finditer(data)]
    ends = [start - 3 for start in starts[1:]] + [len(data)]
    for start, end in zip(starts, ends, strict=False):  # no start code, no unit
        if unit := data[start:end]:
            yield unit


def is_h264_random_access(data: bytes, length_size: int) -> bool:
    """Say whether decoding can start here with exact pictures: an IDR, or a recovery point of 0 frames."""
    for unit in nal_units(data, length_size):
        kind = unit[0] & 31
        if kind == NAL_IDR:
            return True
        if kind == NAL_SEI and recovery_frames(unit[1:]) == 0:
            return True
        if kind == NAL_SLICE:
            return False
    return False


def recovery_frames(sei: bytes) -> int | None:
    """`recovery_frame_cnt` of the recovery point among SEI messages, or None where there is none."""
    sei = sei.replace(b"\x00\x00\x03", b"\x00\x00")
    position = 0
    while position + 2 < len(sei):
        kind, position = _sei_number(sei, position)
        size, position = _sei_number(sei, position)
        if kind == SEI_RECOVERY_POINT:
            return exp_golomb(sei[position : position + size])
        position += size
    return None


def _sei_number(sei: bytes, position: int) -> tuple[int, int]:
    """Read one SEI payload type or size: 255 for every 0xFF, then the last byte."""
    value = 0
    while position < len(sei):
        byte = sei[position]
        position += 1
        value += byte
        if byte != 0xFF:
            break
    return value, position


def exp_golomb(data: bytes) -> int | None:
    """First unsigned Exp-Golomb number of a bit string (H.264, 9.1); None where the bits end early."""
    bits = "".join(f"{byte:08b}" for byte in data)
    zeros = len(bits) - len(bits.lstrip("0"))
    code = bits[zeros : 2 * zeros + 1]
    return int(code, 2) - 1 if len(code) == zeros + 1 else None


def vop_type(data: bytes) -> str:
    """Coding type of the MPEG-4 picture in a packet: I, P, B or S; empty unless there is just one."""
    start = data.find(VOP_START)
    if start < 0 or start + 4 >= len(data) or data.find(VOP_START, start + 4) >= 0:
        return ""
    return VOP_TYPES[data[start + 4] >> 6]


def vop_display_ranks(types: str) -> NDArray[np.int64]:
    """Display position of each MPEG-4 picture, given in decoding order.

    A B-picture is shown at once, any other is held until the next that is not a B-picture.

    Parameters
    ----------
    types
        One letter a picture, of I, P, B, S.

    Returns
    -------
    NDArray[np.int64]
        Shape [P]: 0 for the picture shown first.
    """
    ranks = np.zeros(len(types), np.int64)
    shown, held = 0, -1
    for number, kind in enumerate(types):
        if kind == "B":
            ranks[number] = shown
            shown += 1
            continue
        if held >= 0:
            ranks[held] = shown
            shown += 1
        held = number
    if held >= 0:
        ranks[held] = shown
    return ranks
