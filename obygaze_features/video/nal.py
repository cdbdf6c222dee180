"""Parse H.264 and HEVC packets: random access points and unreferenced pictures.

Sources: ITU-T H.264 (08/2021), 7.3.1 (NAL units), 7.3.2.3 and D.1.8 (recovery point SEI); ITU-T H.265
(08/2021), 7.3.1.2 and table 7-1 (NAL unit header and types); ISO/IEC 14496-15 (configuration records).
"""

from collections.abc import Iterator
from typing import TypeAlias

NAL_SLICE, NAL_IDR, NAL_SEI = 1, 5, 6
NAL_PARAMETER_SETS = (7, 8, 13)
HEVC_FIRST_IRAP, HEVC_LAST_IRAP, HEVC_LAST_SLICE = 16, 21, 31
HEVC_PARAMETER_SETS = (32, 33, 34)
SEI_RECOVERY_POINT = 6
START_CODE = b"\x00\x00\x01"

Data: TypeAlias = bytes | memoryview


def nal_length_size(extradata: bytes | None, codec: str = "h264") -> int:
    """Return the size in bytes of the NAL length field (MP4, Matroska); 0 for start codes (Annex B)."""
    place, least = (4, 7) if codec == "h264" else (21, 23)  # of lengthSizeMinusOne, and of the record
    if extradata and len(extradata) >= least and extradata[0] == 1:
        return (extradata[place] & 3) + 1
    return 0


def nal_units(data: Data, length_size: int) -> Iterator[Data]:
    """Yield the NAL units of an access unit, without lengths or start codes.

    Units are searched lazily: a caller that stops early does not search the rest. Those with lengths may be
    read through a memoryview, without a copy.
    """
    if length_size:
        position = 0
        while position + length_size < len(data):
            length = int.from_bytes(data[position : position + length_size], "big")
            position += length_size
            if length:
                yield data[position : position + length]
            position += length
        return
    data = bytes(data)
    start = data.find(START_CODE) + 3
    while start >= 3:  # -1 without a start code, so start is 2
        end = data.find(START_CODE, start)
        if unit := data[start : end if end >= 0 else len(data)]:
            yield unit
        start = end + 3


def is_h264_random_access(data: Data, length_size: int) -> bool:
    """Return whether decoding can start here with exact pictures: an IDR, or a recovery point of 0 frames."""
    for unit in nal_units(data, length_size):
        kind = unit[0] & 31
        if kind == NAL_IDR:
            return True
        if kind == NAL_SEI and recovery_frames(bytes(unit[1:])) == 0:
            return True
        if kind == NAL_SLICE:
            return False
    return False


def recovery_frames(sei: bytes) -> int | None:
    """Return `recovery_frame_cnt` of the recovery point SEI message; None if there is none."""
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
    """Return the first unsigned Exp-Golomb number of some bits (H.264, 9.1); None if they end early."""
    bits = "".join(f"{byte:08b}" for byte in data)
    zeros = len(bits) - len(bits.lstrip("0"))
    code = bits[zeros : 2 * zeros + 1]
    return int(code, 2) - 1 if len(code) == zeros + 1 else None


def hevc_picture(data: Data, length_size: int) -> tuple[int, int]:
    """Return the NAL unit type and TemporalId of an access unit's picture; (-1, 0) if there is none."""
    for unit in nal_units(data, length_size):
        kind = unit[0] >> 1 & 63
        if kind > HEVC_LAST_SLICE or len(unit) < 2:
            continue
        layer, temporal_id = (unit[0] & 1) << 5 | unit[1] >> 3, (unit[1] & 7) - 1
        if layer == 0:
            return kind, max(temporal_id, 0)
    return -1, 0


def is_hevc_random_access(kind: int) -> bool:
    """Return whether decoding can start at a picture of this NAL unit type: BLA, IDR or CRA."""
    return HEVC_FIRST_IRAP <= kind <= HEVC_LAST_IRAP


def is_hevc_unreferenced(kind: int) -> bool:
    """Return whether a NAL unit type (named _N) is unreferenced within its temporal sub-layer."""
    return 0 <= kind < HEVC_FIRST_IRAP and kind % 2 == 0


def parameter_sets(data: Data, length_size: int, codec: str) -> bytes:
    """Return all parameter sets of an access unit, concatenated; empty if it has none."""
    sets = []
    for unit in nal_units(data, length_size):
        kind = unit[0] & 31 if codec == "h264" else unit[0] >> 1 & 63
        if kind in (NAL_PARAMETER_SETS if codec == "h264" else HEVC_PARAMETER_SETS):
            sets.append(bytes(unit).rstrip(b"\x00"))
        elif kind in (NAL_SLICE, NAL_IDR) if codec == "h264" else kind <= HEVC_LAST_SLICE:
            break
    return b"".join(sets)
