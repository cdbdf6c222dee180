"""Parse packets of codecs without NAL units: random access points, visibility and display order.

Sources: MPEG-1 is ISO/IEC 11172-2, 2.4.2; MPEG-2 is ITU-T H.262, 6.2 (sequence and picture headers); MPEG-4
part 2 is ISO/IEC 14496-2:2004, 6.2.5 (VideoObjectPlane); VP8 is RFC 6386, 9.1 (frame tag); VP9 is the VP9
Bitstream Specification 0.6, 6.2 (uncompressed header); AV1 is the AV1 Bitstream Specification 1.0.0, 5.3
(OBU header) and 5.9.2 (uncompressed header).
"""

import numpy as np
from numpy.typing import NDArray

VOP_START = b"\x00\x00\x01\xb6"
VOP_TYPES = "IPBS"
PICTURE_START = b"\x00\x00\x01\x00"
SEQUENCE_START = b"\x00\x00\x01\xb3"
EXTENSION_START = b"\x00\x00\x01\xb5"
PICTURE_CODING_EXTENSION, FRAME_STRUCTURE = 8, 3
LONGEST_PICTURE_HEADER = 64
PICTURE_TYPES = {1: "I", 2: "P", 3: "B"}  # 4: MPEG-1's D-pictures, never mixed with others
OBU_SEQUENCE_HEADER, OBU_FRAME_HEADER, OBU_FRAME = 1, 3, 6


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
