"""Read picture properties from packet headers, by codec, without decoding.

The properties are random access points, unreferenced and hidden pictures, and display order. Sources: ITU-T
H.264 (08/2021), 7.3.1 (NAL units), 7.3.2.1 and 7.3.3 (fields), 7.3.2.3 and D.1.8 (recovery point SEI); ITU-T
H.265 (08/2021), 7.3.1.2 and table 7-1 (NAL unit header and types); ISO/IEC 14496-15 (configuration records);
MPEG-1 is ISO/IEC 11172-2, 2.4.2; MPEG-2 is ITU-T H.262, 6.2 (sequence and picture headers); MPEG-4 part 2 is
ISO/IEC 14496-2:2004, 6.2.5 (VideoObjectPlane); VP8 is RFC 6386, 9.1 (frame tag); VP9 is the VP9 Bitstream
Specification 0.6, 6.2 (uncompressed header); AV1 is the AV1 Bitstream Specification 1.0.0, 5.3 (OBU header)
and 5.9.2 (uncompressed header); GIF is GIF89a (CompuServe, 1990).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import av
import numpy as np
from numpy.typing import NDArray

Packet: TypeAlias = "av.Packet[Any]"
Data: TypeAlias = bytes | memoryview
MPEG12 = frozenset({"mpeg1video", "mpeg2video"})
INTRA_ONLY = frozenset({"dnxhd", "ffv1", "mjpeg", "prores"})
"""Codecs whose flagged key frames need no other (FFV1 has others, where its coder's state goes on)."""

ORDERED_BY_KIND = MPEG12 | {"mpeg4"}
"""Codecs whose pictures' types give the display order."""

SKIPS_UNREFERENCED = ORDERED_BY_KIND | {"h264"}
"""Codecs of which libavcodec leaves out the pictures that no other refers to, exactly, if told so."""

NAL_SLICE = 1
NAL_IDR = 5
NAL_SEI = 6
NAL_SPS = 7
WITH_CHROMA = {100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135}
CHROMA_444 = 3
"""Profiles of H.264 whose sequence parameter sets state the format of chroma."""
SLICE_HEAD = 32
MOST_SPS = 4096
"""Bytes of a slice that hold its header's beginning; of a sequence parameter set that are read."""
NAL_PARAMETER_SETS = (7, 8, 13)
HEVC_FIRST_IRAP = 16
HEVC_LAST_IRAP = 21
HEVC_LAST_SLICE = 31
HEVC_PARAMETER_SETS = (32, 33, 34)
SEI_RECOVERY_POINT = 6
SEI_DISPLAY_ORIENTATION = 47
HEVC_SEI = 39
START_CODE = b"\x00\x00\x01"
VOP_START = b"\x00\x00\x01\xb6"
VOP_TYPES = "IPBS"
EMPTY_VOP_BYTES = 8
"""Such a packet holds no picture: the previous picture is repeated, or nothing is shown."""

PICTURE_START = b"\x00\x00\x01\x00"
# The byte with a picture's type, and of MPEG-2's extension those with its kind and the structure.
MPEG_PICTURE = re.compile(PICTURE_START + rb".(.)(?:.{0,54}?\x00\x00\x01\xb5(.).(.))?", re.DOTALL)
# Size, aspect and rate of the pictures.
MPEG_SEQUENCE = re.compile(rb"\x00\x00\x01\xb3(.{4})", re.DOTALL)
PICTURE_CODING_EXTENSION = 8
FRAME_STRUCTURE = 3
PICTURE_TYPES = {1: "I", 2: "P", 3: "B"}  # 4: MPEG-1's D-pictures, never mixed with others
OBU_SEQUENCE_HEADER = 1
OBU_FRAME_HEADER = 3
OBU_FRAME = 6
SUPERFRAME = 0b110


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
        I, P, B or S, where only the picture types give the display order; empty unless there is one picture.
    sets
        The parameter sets sent with a random access point, or what decides the shape of its pictures.
    turned
        It asks to turn this picture and those that follow.
    field
        The number of its frame, and 1 if it is the bottom field, where it is one field.
    """

    start: bool = False
    hidden: bool = False
    unreferenced: bool = False
    layer: int = 0
    kind: str = ""
    sets: bytes = b""
    turned: bool = False
    field: tuple[int, ...] = ()


# Packets share the few headers that there are without parameter sets.
picture_header = cache(PictureHeader)
NO_HEADER = picture_header()


def header_reader(codec: str, extradata: bytes | None) -> Callable[[Packet], PictureHeader]:
    """Return the function that reads the packet headers of a codec; for unknown codecs it reads nothing."""
    size = nal_length_size(extradata, codec)
    read = READERS.get(codec)
    if codec == "gif":
        return lambda packet: gif(memoryview(packet))
    if read is None:
        return lambda _: NO_HEADER
    if codec not in KEYS_ALONE:
        return lambda packet: read(memoryview(packet), size)
    field_of = field_reader(extradata or b"", size) if codec == "h264" else lambda _: ()

    def keys_and_fields(packet: Packet) -> PictureHeader:
        header = read(memoryview(packet), size) if packet.is_keyframe else NO_HEADER
        field = field_of(packet)
        return header._replace(field=field) if field else header

    return keys_and_fields


def nal_length_size(extradata: bytes | None, codec: str = "h264") -> int:
    """Return the size in bytes of the NAL length field (MP4, Matroska); 0 for start codes (Annex B)."""
    position, least = (4, 7) if codec == "h264" else (21, 23)  # of lengthSizeMinusOne, and of the record
    if extradata and len(extradata) >= least and extradata[0] == 1:
        return (extradata[position] & 3) + 1
    return 0


def nal_units(data: Data, length_size: int) -> Iterator[Data]:
    """Yield the NAL units of an access unit, without lengths or start codes.

    Units are searched lazily: a caller that stops early does not search the rest. Those with lengths are
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


def h264(data: Data, length_size: int) -> PictureHeader:
    """Find where decoding can start with exact pictures: at an IDR, or a recovery point of 0 frames."""
    start = False
    turned = False
    sets = b""
    for unit in nal_units(data, length_size):
        kind = unit[0] & 31
        start |= kind == NAL_IDR
        if kind in (NAL_SLICE, NAL_IDR):
            break
        if kind == NAL_SEI:
            message = sei_says(bytes(unit[1:]))
            start = start or message[0]
            turned = turned or message[1]
        elif kind in NAL_PARAMETER_SETS:
            sets += bytes(unit).rstrip(b"\x00")
    return PictureHeader(start=True, sets=sets, turned=turned) if start else NO_HEADER


class Bits:
    """The bits of a NAL unit of H.264 behind its first byte, read in order; ValueError at their end."""

    def __init__(self, unit: Data) -> None:
        content = bytes(unit[1:]).replace(b"\x00\x00\x03", b"\x00\x00")
        self._bits = "".join(f"{byte:08b}" for byte in content)
        self._at = 0

    def take(self, count: int = 1) -> int:
        """Read a number of so many bits."""
        self._at += count
        return int(self._bits[self._at - count : self._at], 2)

    def coded(self, count: int = 1) -> int:
        """Read so many numbers in Exp-Golomb coding (9.1), and return the last."""
        last = 0
        for _ in range(count):
            last = self.take(2 * (self._bits.index("1", self._at) - self._at) + 1) - 1
        return last


def field_reader(extradata: bytes, length_size: int) -> Callable[[Packet], tuple[int, ...]]:
    """Return what reads of a packet of H.264 its frame's number and parity, if it is one of a field."""
    bits = 0

    def read(units: Iterable[Data]) -> tuple[int, ...]:
        nonlocal bits
        with suppress(ValueError):  # damaged
            for unit in units:
                if unit[0] & 31 == NAL_SPS:
                    bits = field_bits(unit)
                elif unit[0] & 31 in (NAL_SLICE, NAL_IDR):
                    if not bits:
                        return ()
                    head = Bits(unit[:SLICE_HEAD])
                    head.coded(3)
                    number = head.take(bits)
                    return (number, head.take()) if head.take() else ()
        return ()

    read(nal_units(extradata[6:], 2) if length_size else nal_units(extradata, 0))
    return lambda packet: (
        read(nal_units(memoryview(packet), length_size)) if bits or packet.is_keyframe else ()
    )


def field_bits(unit: Data) -> int:
    """Return the bits of a frame's number by a sequence parameter set (7.3.2.1.1); 0 if none is a field."""
    sps = Bits(unit[:MOST_SPS])
    profile = sps.take(8)
    sps.take(16)
    sps.coded()
    if profile in WITH_CHROMA:
        chroma = sps.coded()
        if chroma == CHROMA_444 and sps.take():
            return 0  # planes of their own, which no encoder makes
        sps.coded(2)
        sps.take()
        for size in ([16] * 6 + [64] * (6 if chroma == CHROMA_444 else 2)) * sps.take():
            last = scale = 8 * sps.take()
            for _ in range(size):
                if scale:
                    code = sps.coded()
                    scale = (last + (code + 1) // 2 * (1 if code % 2 else -1)) % 256
                    last = scale or last
    bits = sps.coded() + 4
    order = sps.coded()
    if order == 0:
        sps.coded()
    elif order == 1:
        sps.take()
        sps.coded(2)
        sps.coded(sps.coded())
    sps.coded()
    sps.take()
    sps.coded(2)
    return 0 if sps.take() else bits


def second_fields(fields: Sequence[tuple[int, ...]]) -> list[int]:
    """Return which packets hold the second field of a picture whose first the packet before holds."""
    second: list[int] = []
    has_partner = False  # the packet before, with the one before it
    for packet, (before, field) in enumerate(pairwise(fields), start=1):
        is_of_one_picture = before[:1] == field[:1]
        is_second = is_of_one_picture and before != field and not has_partner
        if is_second:
            second.append(packet)
        has_partner = is_second
    return second


def sei_says(sei: bytes) -> tuple[bool, bool]:
    """Return whether an SEI unit has a recovery point after 0 frames, and whether it asks to turn pictures.

    The former begins with a bit 1, by Exp-Golomb coding; the latter with a bit 0, unless it ends a turn, then
    flips and an angle of 16 bits (D.1.27).
    """
    sei = sei.replace(b"\x00\x00\x03", b"\x00\x00")
    recovers = False
    turned = False
    while len(sei) > 2:
        kind, sei = _sei_number(sei)
        size, sei = _sei_number(sei)
        content = sei[:size]
        sei = sei[size:]
        recovers |= kind == SEI_RECOVERY_POINT and content >= b"\x80"
        turned |= kind == SEI_DISPLAY_ORIENTATION and 0 < int.from_bytes(content[:3], "big") >> 5 < 1 << 18
    return recovers, turned


def _sei_number(sei: bytes) -> tuple[int, bytes]:
    """Read one SEI payload type or size: 255 for every 0xFF, then the last byte; and what follows."""
    after = sei.lstrip(b"\xff")
    return 255 * (len(sei) - len(after)) + int.from_bytes(after[:1], "big"), after[1:]


def hevc(data: Data, length_size: int) -> PictureHeader:
    """Find a BLA, IDR or CRA picture, to start at, or an unreferenced one, whose type is named _N."""
    turned = False
    sets = b""
    for unit in nal_units(data, length_size):
        kind = unit[0] >> 1 & 63
        if kind in HEVC_PARAMETER_SETS:
            sets += bytes(unit).rstrip(b"\x00")
        turned |= kind == HEVC_SEI and sei_says(bytes(unit[2:]))[1]
        if kind > HEVC_LAST_SLICE or len(unit) < 2 or (unit[0] & 1) << 5 | unit[1] >> 3:
            continue  # no picture, or one of another layer
        layer = max((unit[1] & 7) - 1, 0)
        if HEVC_FIRST_IRAP <= kind <= HEVC_LAST_IRAP:
            return PictureHeader(start=True, layer=layer, sets=sets, turned=turned)
        return picture_header(unreferenced=kind < HEVC_FIRST_IRAP and kind % 2 == 0, layer=layer)
    return NO_HEADER


def gif(data: Data) -> PictureHeader:
    """Find whether a packet holds a picture, or extensions alone, such as a comment at the end."""
    position = 0
    while data[position : position + 1] == b"!":
        position += 2
        while size := int.from_bytes(data[position : position + 1]):
            position += 1 + size
        position += 1
    return picture_header(hidden=bool(position) and data[position : position + 1] != b",")


def mpeg4(data: Data, _: int = 0) -> PictureHeader:
    """Read the coding type of a packet's picture, if it has exactly one that is not empty."""
    data = bytes(data)
    if len(data) <= EMPTY_VOP_BYTES or data.count(VOP_START) != 1 or data.endswith(VOP_START):
        return NO_HEADER
    kind = VOP_TYPES[data[data.find(VOP_START) + len(VOP_START)] >> 6]
    return picture_header(start=kind == "I", kind=kind)


def mpeg12(data: Data, _: int = 0) -> PictureHeader:
    """Read the coding type of a packet's picture: one frame, or two fields with a header each.

    Decoding can start at an I-picture behind a sequence header, which resets all tables. The whole packet is
    searched only for fields.
    """
    picture = MPEG_PICTURE.search(data)
    if picture is None:
        return NO_HEADER
    (kind,), extension, structure = picture.groups(b"\x00")
    is_coding = extension[0] >> 4 == PICTURE_CODING_EXTENSION
    if is_coding and structure[0] & 3 != FRAME_STRUCTURE and bytes(data).count(PICTURE_START) != 2:
        return NO_HEADER
    letter = PICTURE_TYPES.get(kind >> 3 & 7, "")
    sequence = MPEG_SEQUENCE.search(data, 0, picture.start())
    if letter != "I" or sequence is None:
        return picture_header(kind=letter)
    return picture_header(start=True, kind=letter, sets=sequence[1])


def vp8(data: Data, _: int = 0) -> PictureHeader:
    """Read the frame tag: whether it is a key frame, and whether it is shown."""
    return picture_header(start=not data[0] & 1, hidden=not data[0] & 16)


def vp9(data: Data, _: int = 0) -> PictureHeader:
    """Find where decoding can start: the first frame of a packet is a shown key frame.

    A frame that is not shown has a packet of its own, or shares one with one that is (a superframe, annex B).
    """
    reserved = data[0] >> 4 & 3 == 3  # profile 3 has one bit more
    show_existing = bool(data[0] >> 3 - reserved & 1)
    not_key = bool(data[0] >> 2 - reserved & 1)
    shown = bool(data[0] >> 1 - reserved & 1)
    start = data[0] >> 6 == 2 and shown and not (show_existing or not_key)
    return picture_header(start=start, hidden=not (shown or show_existing or data[-1] >> 5 == SUPERFRAME))


def av1(data: Data, _: int = 0) -> PictureHeader:
    """Find where decoding can start: a temporal unit has a sequence header, then a shown key frame."""
    position = 0
    sequence = False
    while position < len(data):
        header = data[position]
        kind = header >> 3 & 15
        extended = bool(header & 4)
        sized = bool(header & 2)
        position += 1 + extended
        size, position = leb128(data, position) if sized else (len(data) - position, position)
        first = data[position] if position < len(data) else 0
        if kind == OBU_SEQUENCE_HEADER:
            sequence = True
            if first & 8:  # reduced_still_picture_header: frames then have no such first bits
                break
        elif kind in (OBU_FRAME_HEADER, OBU_FRAME):
            # show_existing_frame 0, frame_type 00 (key), show_frame 1
            return picture_header(start=sequence and first >> 4 == 1)
        position += size
    return NO_HEADER


def leb128(data: Data, position: int) -> tuple[int, int]:
    """Read a size coded as LEB128 (7-bit groups, lowest first); return it and the next position."""
    coded = data[position : position + 8]
    length = next((place for place, byte in enumerate(coded, start=1) if byte < 128), len(coded))
    return sum((byte & 127) << 7 * place for place, byte in enumerate(coded[:length])), position + length


READERS: dict[str, Callable[[Data, int], PictureHeader]] = {
    "h264": h264,
    "hevc": hevc,
    "mpeg4": mpeg4,
    "vp8": vp8,
    "vp9": vp9,
    "av1": av1,
}
READERS |= dict.fromkeys(MPEG12, mpeg12) | dict.fromkeys(INTRA_ONLY, lambda *_: picture_header(start=True))
KEYS_ALONE = INTRA_ONLY | {"h264", "av1"}
"""Codecs of whose pictures only those are read that the container flags as key frames."""


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
    shown_at = np.arange(len(types), dtype=np.float64)
    held = np.flatnonzero(np.frombuffer(types.encode(), np.uint8) != ord("B"))
    shown_at[held] = np.append(held, len(types))[1:] - 0.5
    return np.argsort(np.argsort(shown_at))
