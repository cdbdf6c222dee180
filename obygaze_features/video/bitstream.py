"""Read picture properties from packet headers, by codec, without decoding.

The properties are random access points, unreferenced and hidden pictures, and display order. Sources: ITU-T
H.264 (08/2021), 7.3.1 (NAL units), 7.3.2.3 and D.1.8 (recovery point SEI); ITU-T H.265 (08/2021), 7.3.1.2 and
table 7-1 (NAL unit header and types); ISO/IEC 14496-15 (configuration records); MPEG-1 is ISO/IEC 11172-2,
2.4.2; MPEG-2 is ITU-T H.262, 6.2 (sequence and picture headers); MPEG-4 part 2 is ISO/IEC 14496-2:2004, 6.2.5
(VideoObjectPlane); VP8 is RFC 6386, 9.1 (frame tag); VP9 is the VP9 Bitstream Specification 0.6, 6.2
(uncompressed header); AV1 is the AV1 Bitstream Specification 1.0.0, 5.3 (OBU header) and 5.9.2 (uncompressed
header).
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import av
import numpy as np
from numpy.typing import NDArray

Packet: TypeAlias = "av.Packet[Any]"
Data: TypeAlias = bytes | memoryview
MPEG12 = frozenset({"mpeg1video", "mpeg2video"})
INTRA_ONLY = frozenset({"dnxhd", "ffv1", "mjpeg", "prores"})
"""Codecs whose flagged key frames need no other (FFV1 has others, where its coder's state goes on)."""

READABLE = MPEG12 | INTRA_ONLY | {"h264", "hevc", "vp8", "vp9", "av1"}
SKIPS_UNREFERENCED = MPEG12 | {"h264", "mpeg4"}
"""Codecs of which libavcodec leaves out the pictures that no other refers to, exactly, if told so."""

# Enough for sequence, group and picture headers and some user data; most packets are ten times larger.
MPEG_HEAD_BYTES = 1024
MPEG_SHAPE_BYTES = 4  # of a sequence header: size, aspect and rate of the pictures
NAL_SLICE, NAL_IDR, NAL_SEI = 1, 5, 6
NAL_PARAMETER_SETS = (7, 8, 13)
HEVC_FIRST_IRAP, HEVC_LAST_IRAP, HEVC_LAST_SLICE = 16, 21, 31
HEVC_PARAMETER_SETS = (32, 33, 34)
SEI_RECOVERY_POINT = 6
START_CODE = b"\x00\x00\x01"
VOP_START = b"\x00\x00\x01\xb6"
VOP_TYPES = "IPBS"
PICTURE_START = b"\x00\x00\x01\x00"
SEQUENCE_START = b"\x00\x00\x01\xb3"
EXTENSION_START = b"\x00\x00\x01\xb5"
PICTURE_CODING_EXTENSION, FRAME_STRUCTURE = 8, 3
LONGEST_PICTURE_HEADER = 64
PICTURE_TYPES = {1: "I", 2: "P", 3: "B"}  # 4: MPEG-1's D-pictures, never mixed with others
OBU_SEQUENCE_HEADER, OBU_FRAME_HEADER, OBU_FRAME = 1, 3, 6


class PictureHeader(NamedTuple):
    """Properties of a packet's picture, read from its header.

    Parameters
    ----------
    start
        Decoding can start here and gives exact pictures for all frames displayed after this one.
    hidden
        It is decoded, but no picture is shown for it.
    unreferenced, layer
        Whether no other picture of its temporal layer refers to it; the layer's number.
    kind
        I, P or B, where only the picture types give the display order; empty where unknown.
    sets
        The parameter sets sent with a random access point, or what decides the shape of its pictures.
    """

    start: bool = False
    hidden: bool = False
    unreferenced: bool = False
    layer: int = 0
    kind: str = ""
    sets: bytes = b""


# Packets share the few headers that there are without parameter sets.
picture_header = cache(PictureHeader)
NO_HEADER = picture_header()


def header_reader(codec: str, extradata: bytes | None) -> Callable[[Packet], PictureHeader]:
    """Return the function that reads the packet headers of a codec; for unknown codecs it reads nothing."""
    size = nal_length_size(extradata, codec)
    readers: dict[str, Callable[[Packet], PictureHeader]] = {
        "h264": lambda packet: _h264(packet, size) if packet.is_keyframe else NO_HEADER,
        "hevc": lambda packet: _hevc(packet, size),
        "vp8": _vp8,
        # The container's flag counts only where the packet's header confirms it.
        "vp9": lambda packet: picture_header(start=packet.is_keyframe and is_vp9_key(bytes(packet))),
        "av1": lambda packet: picture_header(
            start=packet.is_keyframe and is_av1_random_access(bytes(packet))
        ),
    }
    readers |= dict.fromkeys(MPEG12, _mpeg12)
    readers |= dict.fromkeys(INTRA_ONLY, lambda packet: picture_header(start=packet.is_keyframe))
    return readers.get(codec, lambda _: NO_HEADER)


def _h264(packet: Packet, length_size: int) -> PictureHeader:
    data = memoryview(packet)
    if not is_h264_random_access(data, length_size):
        return NO_HEADER
    return PictureHeader(start=True, sets=parameter_sets(data, length_size, "h264"))


def _hevc(packet: Packet, length_size: int) -> PictureHeader:
    data = memoryview(packet)
    kind, layer = hevc_picture(data, length_size)
    if is_hevc_random_access(kind):
        return PictureHeader(start=True, layer=layer, sets=parameter_sets(data, length_size, "hevc"))
    return picture_header(unreferenced=is_hevc_unreferenced(kind), layer=layer)


def _mpeg12(packet: Packet) -> PictureHeader:
    data = bytes(memoryview(packet)[:MPEG_HEAD_BYTES])
    if len(data) == MPEG_HEAD_BYTES and not is_mpeg12_frame(data):
        data = bytes(packet)
    kind = mpeg12_type(data)
    if kind != "I" or not is_mpeg12_random_access(data):
        return picture_header(kind=kind)
    size = data.find(SEQUENCE_START) + len(SEQUENCE_START)
    return picture_header(start=True, kind=kind, sets=data[size : size + MPEG_SHAPE_BYTES])


def _vp8(packet: Packet) -> PictureHeader:
    key, shown = vp8_picture(bytes(memoryview(packet)[:1]))
    return picture_header(start=key and packet.is_keyframe, hidden=not shown)


def nal_length_size(extradata: bytes | None, codec: str = "h264") -> int:
    """Return the size in bytes of the NAL length field (MP4, Matroska); 0 for start codes (Annex B)."""
    position, least = (4, 7) if codec == "h264" else (21, 23)  # of lengthSizeMinusOne, and of the record
    if extradata and len(extradata) >= least and extradata[0] == 1:
        return (extradata[position] & 3) + 1
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


def vop_type(data: bytes) -> str:
    """Return the coding type of a packet's MPEG-4 picture: I, P, B or S; empty unless it has exactly one."""
    start = data.find(VOP_START)
    if start < 0 or start + 4 >= len(data) or data.find(VOP_START, start + 4) >= 0:
        return ""
    return VOP_TYPES[data[start + 4] >> 6]


def mpeg12_type(data: bytes) -> str:
    """Return the coding type of a packet's MPEG-1 or MPEG-2 picture: I, P or B; empty for half a picture.

    A picture is one frame, or two fields with a header each. The whole packet is searched only for fields.
    """
    start = data.find(PICTURE_START)
    if start < 0 or start + 5 >= len(data):
        return ""
    extension = data.find(EXTENSION_START, start, start + LONGEST_PICTURE_HEADER)  # MPEG-1 has none
    if extension >= 0 and extension + 6 < len(data) and data[extension + 4] >> 4 == PICTURE_CODING_EXTENSION:
        is_field = data[extension + 6] & 3 != FRAME_STRUCTURE
        if is_field and data.count(PICTURE_START) != 2:
            return ""
    return PICTURE_TYPES.get(data[start + 5] >> 3 & 7, "")


def is_mpeg12_frame(data: bytes) -> bool:
    """Return whether a packet's first picture is a frame, not a field, so that its first bytes suffice."""
    start = data.find(PICTURE_START)
    if start < 0 or start + LONGEST_PICTURE_HEADER > len(data):
        return False
    extension = data.find(EXTENSION_START, start, start + LONGEST_PICTURE_HEADER)
    return extension < 0 or data[extension + 6] & 3 == FRAME_STRUCTURE


def is_mpeg12_random_access(data: bytes) -> bool:
    """Return whether a packet has a sequence header, which resets all tables, followed by an I-picture."""
    picture = data.find(PICTURE_START)
    return data.find(SEQUENCE_START, 0, max(picture, 0)) >= 0 and mpeg12_type(data) == "I"


def vp8_picture(data: bytes) -> tuple[bool, bool]:
    """Return whether a VP8 frame is a key frame, and whether it is shown."""
    return (not data[0] & 1, bool(data[0] & 16)) if data else (False, True)


def is_vp9_key(data: bytes) -> bool:
    """Return whether the first VP9 frame of a packet is a shown key frame."""
    if not data or data[0] >> 6 != 2:
        return False
    bits = f"{data[0]:08b}"[2:]
    rest = bits[3:] if bits.startswith("11") else bits[2:]  # profile 3 has a reserved bit
    show_existing, not_key, shown = (bit == "1" for bit in rest[:3])
    return not show_existing and not not_key and shown


def is_av1_random_access(data: bytes) -> bool:
    """Return whether an AV1 temporal unit has a sequence header followed by a shown key frame."""
    position, sequence = 0, False
    while position < len(data):
        header = data[position]
        kind, extended, sized = header >> 3 & 15, bool(header & 4), bool(header & 2)
        position += 1 + extended
        size, position = leb128(data, position) if sized else (len(data) - position, position)
        if kind == OBU_SEQUENCE_HEADER:
            sequence = True
            # reduced_still_picture_header: frames then have no such first bits
            if position < len(data) and data[position] & 8:
                return False
        elif kind in (OBU_FRAME_HEADER, OBU_FRAME):
            # show_existing_frame 0, frame_type 00 (key), show_frame 1
            return sequence and position < len(data) and data[position] >> 4 == 1
        position += size
    return False


def leb128(data: bytes, position: int) -> tuple[int, int]:
    """Read a size coded as LEB128 (7-bit groups, lowest first); return it and the next position."""
    value = shift = 0
    for byte in data[position : position + 8]:
        value |= (byte & 127) << shift
        shift += 7
        position += 1
        if byte < 128:
            break
    return value, position


def display_ranks(types: str) -> NDArray[np.int64]:
    """Display position of each picture of MPEG-1, MPEG-2 or MPEG-4, given in decoding order.

    A B-picture is shown at once; any other picture is held until the next one that is not a B-picture.

    Parameters
    ----------
    types
        One letter per picture: I, P, B or S.

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
