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
"""Codecs whose flagged key frames need no other frame. FFV1 also has frames that are not key frames: for them
the state of the coder goes on from frame to frame."""

ORDERED_BY_KIND = MPEG12 | {"mpeg4"}
"""Codecs where the types of the pictures (I, P, B, S) give the display order."""

SKIPS_UNREFERENCED = ORDERED_BY_KIND | {"h264"}
"""Codecs for which libavcodec, if asked, skips exactly the pictures that no other picture refers to."""

NAL_TYPE_BITS = 0b11111
"""The bits of the first byte of an H.264 NAL unit that hold its type (7.3.1)."""

NAL_SLICE = 1
NAL_IDR = 5
NAL_SEI = 6
NAL_SPS = 7
NAL_PARAMETER_SETS = (7, 8, 13)
ZEROS = b"\x00\x00"
ESCAPED_ZEROS = b"\x00\x00\x03"
"""Two zero bytes inside a NAL unit. The encoder writes a 3 behind them, so that the content of a unit never
looks like a start code (H.264, 7.4.1); the 3 is no part of the content."""

AVCC_FIRST_SET = 6
"""Position of the first sequence parameter set, behind its length, in the configuration record of an MP4
file."""

PROFILES_WITH_CHROMA = {100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135}
"""Profiles of H.264 whose sequence parameter sets state the chroma format and scaling lists (7.3.2.1.1)."""

CHROMA_444 = 3
"""The chroma format in which colours have as many samples as brightness."""

FIRST_SCALE = 8
"""The scale to which the first difference of a scaling list is added (7.3.2.1.1.1)."""

N_SCALES = 256
"""Scales are numbers from 0 to 255; sums of them wrap around."""

SLICE_HEADER_BYTES = 32
"""Bytes of a slice that are read: enough for the first fields of its header."""

MAX_SPS_BYTES = 4096
"""Bytes of a sequence parameter set that are read at most, so that damaged data takes no time."""

HEVC_UNIT_HEADER_BYTES = 2
HEVC_FIRST_IRAP = 16
HEVC_LAST_IRAP = 21
HEVC_LAST_SLICE = 31
HEVC_PARAMETER_SETS = (32, 33, 34)
HEVC_SEI = 39
SEI_RECOVERY_POINT = 6
SEI_DISPLAY_ORIENTATION = 47
START_CODE = b"\x00\x00\x01"
VOP_START = b"\x00\x00\x01\xb6"
VOP_TYPES = "IPBS"
EMPTY_VOP_BYTES = 8
"""A packet of MPEG-4 of so few bytes holds no picture: the previous one is repeated, or nothing is shown."""

PICTURE_START = b"\x00\x00\x01\x00"
# The groups are: the byte with a picture's type; of MPEG-2's picture coding extension, the byte with the kind
# of extension and the byte with the picture structure.
MPEG_PICTURE = re.compile(
    PICTURE_START + rb".(?P<type>.)(?:.{0,54}?\x00\x00\x01\xb5(?P<extension>.).(?P<structure>.))?", re.DOTALL
)
# The settings are the size, aspect ratio and rate of the pictures.
MPEG_SEQUENCE = re.compile(rb"\x00\x00\x01\xb3(?P<settings>.{4})", re.DOTALL)
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
        Whether decoding can start here and gives exact pictures for all frames displayed after this one.
    hidden
        Whether the packet is decoded without a picture being shown for it.
    unreferenced
        Whether no other picture of the same temporal layer refers to this one.
    layer
        Number of the temporal layer.
    kind
        Type of the picture (I, P, B or S), for codecs where the types give the display order; empty unless
        the packet holds exactly one picture.
    sets
        The parameter sets sent with a random access point, or other bytes that decide the shape of its
        pictures.
    turned
        Whether the packet asks players to turn this picture and those that follow.
    field
        Where the packet holds a single field: the number of its frame, and 1 for the bottom field; else
        empty.
    """

    start: bool = False
    hidden: bool = False
    unreferenced: bool = False
    layer: int = 0
    kind: str = ""
    sets: bytes = b""
    turned: bool = False
    field: tuple[int, ...] = ()


# Without parameter sets there are few different headers, so packets share them.
picture_header = cache(PictureHeader)
NO_HEADER = picture_header()


def header_reader(codec: str, extradata: bytes | None) -> Callable[[Packet], PictureHeader]:
    """Return the function that reads facts on a picture from its packet's first bytes, for a codec.

    For codecs that have no such function, it returns `NO_HEADER` for every packet.

    Parameters
    ----------
    codec
        FFmpeg's name of the codec.
    extradata
        Settings of the codec that the container stores.
    """
    if codec == "gif":
        return lambda packet: gif(memoryview(packet))
    read_data = READERS.get(codec)
    if read_data is None:
        return lambda _: NO_HEADER
    length_size = nal_length_size(extradata, codec)
    reads_only_keys = codec in ONLY_KEYS_READ  # the headers of other packets would say nothing
    field_reader = None
    if codec == "h264":
        field_reader = FieldReader(extradata or b"", length_size)

    def read_header(packet: Packet) -> PictureHeader:
        """Read the header of a packet and, of H.264, whether the packet is a single field."""
        header = NO_HEADER
        if packet.is_keyframe or not reads_only_keys:
            header = read_data(memoryview(packet), length_size)
        if field_reader is None:
            return header
        field = field_reader.read(packet)
        return header._replace(field=field) if field else header

    return read_header


def nal_length_size(extradata: bytes | None, codec: str = "h264") -> int:
    """Return how many bytes state the length before each NAL unit of a packet (in MP4 and Matroska).

    NAL units are the parts of which H.264 and HEVC packets consist. 0 if they are separated by start codes
    instead (Annex B).

    Parameters
    ----------
    extradata
        Settings of the codec that the container stores: with lengths, a configuration record.
    codec
        FFmpeg's name of the codec.
    """
    # The byte of the configuration record whose last two bits are the size less one (lengthSizeMinusOne), and
    # how long the record is at least.
    if codec == "h264":
        byte_of_size = 4
        shortest_record = 7
    else:  # HEVC
        byte_of_size = 21
        shortest_record = 23
    if extradata is None or len(extradata) < shortest_record:
        return 0
    version = extradata[0]
    if version != 1:  # no record: start codes begin with 0
        return 0
    return (extradata[byte_of_size] & 0b11) + 1


def nal_units(data: Data, length_size: int) -> Iterator[Data]:
    """Yield the parts (NAL units) of which an H.264 or HEVC packet consists, without lengths or start codes.

    Units are searched lazily: a caller that stops early does not search the remaining bytes.

    Parameters
    ----------
    data
        The packet.
    length_size
        Bytes of the length before each unit; 0 if units are separated by start codes.
    """
    if length_size:
        return _units_with_lengths(data, length_size)
    return _units_with_start_codes(bytes(data))


def _units_with_lengths(data: Data, length_size: int) -> Iterator[Data]:
    """Yield the parts of a packet (NAL units) that each have their length before them.

    The parts of a memoryview are not copied.
    """
    position = 0
    while position + length_size < len(data):
        length = int.from_bytes(data[position : position + length_size], "big")
        position += length_size
        if length:
            yield data[position : position + length]
        position += length


def _units_with_start_codes(data: bytes) -> Iterator[bytes]:
    """Yield the parts of a packet (NAL units) between start codes (Annex B), without empty ones."""
    code_position = data.find(START_CODE)
    while code_position >= 0:
        start = code_position + len(START_CODE)
        code_position = data.find(START_CODE, start)  # of the next unit; -1 behind the last
        end = code_position if code_position >= 0 else len(data)
        if end > start:
            yield data[start:end]


def h264(data: Data, length_size: int) -> PictureHeader:
    """Read from an H.264 packet whether decoding can start with it and give exact pictures.

    It can at an IDR picture, or at a recovery point that needs 0 frames to recover. Then the parameter sets
    are read too, and whether players are asked to turn the pictures. Nothing behind the first slice (part of
    a picture) is read.

    Parameters
    ----------
    data
        The packet.
    length_size
        Bytes of the length before each of its NAL units; 0 if these are separated by start codes.
    """
    can_start = False
    turns_pictures = False
    parameter_sets = b""
    for unit in nal_units(data, length_size):
        kind = unit[0] & NAL_TYPE_BITS
        if kind == NAL_SLICE:
            break
        if kind == NAL_IDR:
            can_start = True
            break
        if kind == NAL_SEI:
            message = read_sei(bytes(unit[1:]))
            can_start = can_start or message.recovers
            turns_pictures = turns_pictures or message.turns
        elif kind in NAL_PARAMETER_SETS:
            parameter_sets += bytes(unit).rstrip(b"\x00")
    if not can_start:
        return NO_HEADER
    return PictureHeader(start=True, sets=parameter_sets, turned=turns_pictures)


class BitReader:
    """Reader of the bits of an H.264 NAL unit, in order. Past the last bit it raises ValueError.

    It keeps the unit's content as text of 0 and 1, and the position of the next bit. The first byte of the
    unit holds its type and is left out.
    """

    def __init__(self, unit: Data) -> None:
        """Write out the bits of a unit as text, without the emulation prevention bytes (`ESCAPED_ZEROS`)."""
        content = bytes(unit[1:]).replace(ESCAPED_ZEROS, ZEROS)
        self._bits = "".join(f"{byte:08b}" for byte in content)
        self._position = 0

    def read(self, count: int = 1) -> int:
        """Read the next bits as one number, highest bit first."""
        start = self._position
        self._position += count
        return int(self._bits[start : self._position], 2)

    def read_exp_golomb(self) -> int:
        """Read a number in Exp-Golomb coding (H.264, 9.1).

        It is coded as n zeros, then n + 1 bits that hold the number plus 1: 00101 is the number 4.
        """
        first_one = self._bits.index("1", self._position)
        n_zeros = first_one - self._position
        self._position = first_one
        return self.read(n_zeros + 1) - 1

    def read_signed_exp_golomb(self) -> int:
        """Read a signed number in Exp-Golomb coding: the codes 1, 2, 3, 4 are 1, -1, 2, -2 (9.1.1)."""
        code = self.read_exp_golomb()
        magnitude = (code + 1) // 2
        return magnitude if code % 2 else -magnitude

    def skip_exp_golomb(self, count: int = 1) -> None:
        """Skip numbers in Exp-Golomb coding."""
        for _ in range(count):
            self.read_exp_golomb()


class FieldReader:
    """Reader of the frame number and parity of H.264 packets that hold a single field.

    It keeps how many bits a frame number has, as the last sequence parameter set says: 0 as long as none is
    known, and where a stream has no fields.

    Parameters
    ----------
    extradata
        Settings of the codec that the container stores: often the sequence parameter set.
    length_size
        Bytes of the length before each NAL unit; 0 if units are separated by start codes.
    """

    def __init__(self, extradata: bytes, length_size: int) -> None:
        """Read how many bits a frame number has, if the container's settings of the codec say so.

        The settings come in one of two forms. Where units are separated by start codes, as in a transport
        stream, the settings are such units too. Where each unit has its length before it, as in MP4, they are
        a configuration record: some bytes, and then units with lengths of 2 bytes, whatever the size of the
        lengths in packets is.
        """
        self._length_size = length_size
        self._number_bits = 0  # not known yet
        has_configuration_record = length_size > 0
        if has_configuration_record:
            units = nal_units(extradata[AVCC_FIRST_SET:], length_size=2)
        else:
            units = nal_units(extradata, length_size=0)
        with suppress(ValueError):  # the settings are damaged: packets may still bring them
            self._read_parameter_sets(units)

    def read(self, packet: Packet) -> tuple[int, ...]:
        """Return (frame number, parity) of an H.264 packet that holds a single field; else an empty tuple.

        The two fields of a picture have one frame number. The parity is 1 for a bottom field and 0 for a top
        field. How many bits a frame number has is kept from the last packet that said so: a film may be
        joined from films with other settings.
        """
        if not self._number_bits and not packet.is_keyframe:
            return ()  # only a key frame can bring the sequence parameter set that is still missing
        units = nal_units(memoryview(packet), self._length_size)
        try:
            first_slice = self._read_parameter_sets(units)  # stores `_number_bits`, if the packet says it
            if first_slice is None:
                return ()
            return _field_of_slice(first_slice, self._number_bits)
        except ValueError:  # damaged
            return ()

    def _read_parameter_sets(self, units: Iterable[Data]) -> Data | None:
        """Read NAL units up to the first slice; keep how many bits a frame number has by the settings there.

        Parameters
        ----------
        units
            NAL units of a packet, or of the container's settings.

        Returns
        -------
        bytes or memoryview
            The unit of the first slice; None if there is no slice, as in the settings of a container.

        Raises
        ------
        ValueError
            A sequence parameter set is damaged.
        """
        for unit in units:
            kind = unit[0] & NAL_TYPE_BITS
            if kind == NAL_SPS:
                self._number_bits = frame_number_bits(unit)
            elif kind in (NAL_SLICE, NAL_IDR):
                return unit
        return None


def _field_of_slice(unit: Data, number_bits: int) -> tuple[int, ...]:
    """Return the frame number and parity of an H.264 slice (7.3.3); empty if it belongs to a whole frame.

    Parameters
    ----------
    unit
        The NAL unit of the slice.
    number_bits
        Bits of a frame number; 0 if the stream has no fields.
    """
    if not number_bits:
        return ()
    header = BitReader(unit[:SLICE_HEADER_BYTES])
    header.skip_exp_golomb(3)  # first macroblock, slice type, picture parameter set
    frame_number = header.read(number_bits)
    is_field = header.read()
    if not is_field:
        return ()
    is_bottom = header.read()
    return frame_number, is_bottom


def frame_number_bits(unit: Data) -> int:
    """Return how many bits a frame number has in an H.264 stream, by its settings (7.3.2.1.1).

    It is 0 if the stream has no fields: then nobody needs frame numbers.

    Parameters
    ----------
    unit
        A NAL unit with settings: a sequence parameter set.
    """
    sps = BitReader(unit[:MAX_SPS_BYTES])
    profile = sps.read(8)
    sps.read(16)  # constraints and level
    sps.skip_exp_golomb()  # number of the parameter set
    if profile in PROFILES_WITH_CHROMA:
        chroma_format = sps.read_exp_golomb()
        if chroma_format == CHROMA_444:
            has_separate_planes = sps.read()
            if has_separate_planes:
                return 0  # the slices of each plane are coded alone, which no encoder does
        sps.skip_exp_golomb(2)  # bit depths
        sps.read()  # lossless coding
        has_scaling_lists = sps.read()
        if has_scaling_lists:
            _skip_scaling_lists(sps, chroma_format)
    number_bits = sps.read_exp_golomb() + 4
    _skip_picture_order(sps)
    sps.skip_exp_golomb()  # number of reference frames
    sps.read()  # gaps in frame numbers
    sps.skip_exp_golomb(2)  # width and height
    only_whole_frames = sps.read()
    return 0 if only_whole_frames else number_bits


def _skip_scaling_lists(sps: BitReader, chroma_format: int) -> None:
    """Read past the scaling lists of H.264 settings: 6 of 4x4 scales, then 2 or 6 of 8x8 (7.3.2.1.1.1)."""
    n_large = 6 if chroma_format == CHROMA_444 else 2
    sizes = [16] * 6 + [64] * n_large
    for size in sizes:
        is_present = sps.read()
        if is_present:
            _skip_scaling_list(sps, size)


def _skip_scaling_list(sps: BitReader, size: int) -> None:
    """Read past one scaling list of H.264 settings, which has `size` scales (7.3.2.1.1.1).

    Each scale is coded as its difference to the scale before. If a scale is 0, nothing more is coded.
    """
    scale = FIRST_SCALE
    for _ in range(size):
        difference = sps.read_signed_exp_golomb()
        scale = (scale + difference) % N_SCALES
        if scale == 0:
            return


def _skip_picture_order(sps: BitReader) -> None:
    """Read past what H.264 settings say of the display order (7.3.2.1.1).

    It can be coded in three ways, 0 to 2. With 2, it is the order of decoding, and nothing follows.
    """
    order_type = sps.read_exp_golomb()
    if order_type == 0:
        sps.skip_exp_golomb()  # bits of the numbers that give the order
    elif order_type == 1:
        sps.read()  # whether slices code no differences to the usual order
        sps.skip_exp_golomb(2)  # offset of unreferenced pictures, offset of bottom fields
        n_offsets = sps.read_exp_golomb()
        sps.skip_exp_golomb(n_offsets)


def second_fields(fields: Sequence[tuple[int, ...]]) -> list[int]:
    """Return the numbers of the packets that hold the second field of an interlaced picture.

    A second field has the frame number of the packet before it and the other parity.

    Parameters
    ----------
    fields
        (frame number, parity) of every packet, in decoding order; () for packets of whole frames.
    """
    second_numbers: list[int] = []
    previous_is_second = False
    for number, (previous, field) in enumerate(pairwise(fields), start=1):
        is_second = not previous_is_second and _are_of_one_frame(previous, field)
        if is_second:
            second_numbers.append(number)
        previous_is_second = is_second
    return second_numbers


def _are_of_one_frame(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """Return whether two packets are the two fields of one frame, by their (frame number, parity)."""
    if not first or not second:  # a whole frame
        return False
    first_number, first_parity = first
    second_number, second_parity = second
    return first_number == second_number and first_parity != second_parity


class SeiMessage(NamedTuple):
    """What an SEI unit says: whether decoding recovers at once here; whether players are to turn pictures."""

    recovers: bool
    turns: bool


def read_sei(sei: bytes) -> SeiMessage:
    """Read the messages of an SEI unit, which an H.264 or HEVC packet may have beside its picture.

    Parameters
    ----------
    sei
        The bytes of the unit behind its header. Each message is its kind, its size, and its content.

    Returns
    -------
    SeiMessage
        Whether there is a recovery point at which pictures are exact at once, and whether there is a display
        orientation that turns or mirrors the pictures.
    """
    sei = sei.replace(ESCAPED_ZEROS, ZEROS)
    recovers = False
    turns = False
    unread_bytes = sei
    while len(unread_bytes) > 2:
        kind, unread_bytes = _sei_number(unread_bytes)
        size, unread_bytes = _sei_number(unread_bytes)
        content = unread_bytes[:size]
        unread_bytes = unread_bytes[size:]
        if kind == SEI_RECOVERY_POINT:
            recovers = recovers or _recovers_at_once(content)
        elif kind == SEI_DISPLAY_ORIENTATION:
            turns = turns or _turns_pictures(content)
    return SeiMessage(recovers, turns)


def _recovers_at_once(content: bytes) -> bool:
    """Return whether pictures are exact from a recovery point on, without further frames (H.264, D.1.8).

    The number of frames comes first, in Exp-Golomb coding: a single bit 1 is the number 0.
    """
    if not content:
        return False
    first_bit = content[0] >> 7
    return first_bit == 1


def _turns_pictures(content: bytes) -> bool:
    """Return whether a display orientation turns or mirrors the pictures (H.264, D.1.27).

    It begins with a bit 1 if it ends an earlier turn; otherwise with a bit 0, two bits for flips and 16 for
    an angle.
    """
    first_24_bits = int.from_bytes(content[:3], "big")
    ends_turn = first_24_bits >> 23 == 1
    lowest_18_bits = (1 << 18) - 1
    flips_and_angle = (first_24_bits >> 5) & lowest_18_bits  # the 18 bits behind the first
    return not ends_turn and flips_and_angle > 0


def _sei_number(sei: bytes) -> tuple[int, bytes]:
    """Read the type or the size of an SEI message; return it and the bytes that follow.

    It is the sum of its bytes, the last of which is the first one below 255: 255, 255, 3 is the number 513.
    """
    from_last_byte = sei.lstrip(b"\xff")
    n_full_bytes = len(sei) - len(from_last_byte)
    last_byte = int.from_bytes(from_last_byte[:1], "big")  # 0 if the data ends before it
    return 255 * n_full_bytes + last_byte, from_last_byte[1:]


def hevc(data: Data, length_size: int) -> PictureHeader:
    """Read from an HEVC packet whether decoding can start with it, and whether other pictures need its own.

    Both follow from the type of the first slice (part of the picture). The parameter sets before it are read
    too, and whether a message before it asks players to turn the pictures. If no slice is found, `NO_HEADER`
    is returned.

    Parameters
    ----------
    data
        The packet.
    length_size
        Bytes of the length before each of its NAL units; 0 if these are separated by start codes.
    """
    turns_pictures = False
    parameter_sets = b""
    for unit in nal_units(data, length_size):
        header = _hevc_unit_header(unit)
        if header.kind in HEVC_PARAMETER_SETS:
            parameter_sets += bytes(unit).rstrip(b"\x00")
        elif header.kind == HEVC_SEI:
            message = read_sei(bytes(unit[HEVC_UNIT_HEADER_BYTES:]))
            turns_pictures = turns_pictures or message.turns
        has_header = len(unit) >= HEVC_UNIT_HEADER_BYTES  # else it is cut off, and its kind unknown
        is_slice = has_header and header.kind <= HEVC_LAST_SLICE
        is_of_base_layer = header.spatial_layer == 0  # the only one that is decoded
        if is_slice and is_of_base_layer:
            return _hevc_picture(header, parameter_sets, turned=turns_pictures)
    return NO_HEADER


class _HevcUnitHeader(NamedTuple):
    """The header of an HEVC NAL unit: its kind and layers, which are counted from 0."""

    kind: int
    spatial_layer: int
    temporal_layer: int


def _hevc_unit_header(unit: Data) -> _HevcUnitHeader:
    """Read the header of an HEVC NAL unit. If a unit is cut off, its missing bytes count as 0.

    It has a bit 0, 6 bits of the kind, 6 of the spatial layer, and 3 of the temporal layer counted from 1.
    """
    present_bytes = bytes(unit[:HEVC_UNIT_HEADER_BYTES])
    bits = int.from_bytes(present_bytes.ljust(HEVC_UNIT_HEADER_BYTES, b"\x00"), "big")
    kind = bits >> 9 & 0b111111
    spatial_layer = bits >> 3 & 0b111111
    temporal_layer_plus_1 = bits & 0b111
    return _HevcUnitHeader(kind, spatial_layer, max(temporal_layer_plus_1 - 1, 0))


def _hevc_picture(header: _HevcUnitHeader, sets: bytes, *, turned: bool) -> PictureHeader:
    """Return the properties of an HEVC picture by the header of its first slice.

    Decoding can start at pictures of the NAL unit types 16 to 21 (BLA, IDR and CRA). Among the types 0 to 15,
    the even ones, such as TRAIL_N, are of pictures to which no other picture of their temporal layer refers.
    (Temporal layers hold pictures that may be left out to show fewer a second; those of a higher layer may
    refer to those of a lower one.)

    Parameters
    ----------
    header
        The header of the slice.
    sets
        The parameter sets before the slice, which matter only where decoding can start.
    turned
        Whether a message before the slice turns the pictures, which matters only there, too.
    """
    can_start_here = HEVC_FIRST_IRAP <= header.kind <= HEVC_LAST_IRAP
    if can_start_here:
        return PictureHeader(start=True, layer=header.temporal_layer, sets=sets, turned=turned)
    is_even = header.kind % 2 == 0
    unreferenced = header.kind < HEVC_FIRST_IRAP and is_even
    return picture_header(unreferenced=unreferenced, layer=header.temporal_layer)


def gif(data: Data) -> PictureHeader:
    """Read whether a packet of a GIF holds a picture, or only extensions such as a comment at the end.

    Extensions begin with a "!", and a picture with a ",".
    """
    position = 0
    while data[position : position + 1] == b"!":
        position = _end_of_gif_extension(data, position)
    has_extensions = position > 0
    has_picture = data[position : position + 1] == b","
    return picture_header(hidden=has_extensions and not has_picture)


def _end_of_gif_extension(data: Data, start: int) -> int:
    """Return the position behind an extension of a GIF that begins at `start`.

    An extension is a "!", a byte for its kind, and blocks. A block is a byte for its size and so many bytes.
    The last block is empty.
    """
    position = start + 2
    while True:
        block_size = int.from_bytes(data[position : position + 1])  # 0 if the data ends here
        position += 1 + block_size
        if block_size == 0:
            return position


# The readers below need no length size, but get one, as do those of H.264 and HEVC (see `READERS`).


def mpeg4(data: Data, _length_size: int = 0) -> PictureHeader:
    """Read the coding type (I, P, B or S) of the picture in a packet of MPEG-4 part 2.

    The first two bits behind the start code of a picture (VOP) are its coding type. Nothing is read of a
    packet with several pictures or none.
    """
    data = bytes(data)
    is_empty = len(data) <= EMPTY_VOP_BYTES
    has_one_picture = data.count(VOP_START) == 1
    is_cut_off = data.endswith(VOP_START)
    if is_empty or is_cut_off or not has_one_picture:
        return NO_HEADER
    type_position = data.find(VOP_START) + len(VOP_START)
    kind = VOP_TYPES[data[type_position] >> 6]
    return picture_header(start=kind == "I", kind=kind)


def mpeg12(data: Data, _length_size: int = 0) -> PictureHeader:
    """Read the coding type (I, P or B) of the picture in a packet of MPEG-1 or MPEG-2.

    A packet holds a frame, or two fields with a header each, of which the first is read. Decoding can start
    at an I-picture behind a sequence header: this states all that a decoder needs, such as the size of
    pictures and the tables of numbers by which they are coded.
    """
    picture = MPEG_PICTURE.search(data)
    if picture is None:
        return NO_HEADER
    if _is_field_of_mpeg2(picture):
        # To search a packet to its end takes time, so this is done for fields alone.
        n_fields = bytes(data).count(PICTURE_START)
        if n_fields != 2:
            return NO_HEADER
    # The header begins with 10 bits that number the picture. So the byte `type`, its second, has two bits of
    # the number, three of the coding type, and three others.
    coding_type = picture["type"][0] >> 3 & 0b111
    kind = PICTURE_TYPES.get(coding_type, "")
    sequence_header = MPEG_SEQUENCE.search(data, 0, picture.start())  # in front of the picture
    if kind != "I" or sequence_header is None:
        return picture_header(kind=kind)
    return picture_header(start=True, kind=kind, sets=sequence_header["settings"])


def _is_field_of_mpeg2(picture: re.Match[bytes]) -> bool:
    """Return whether a picture header, a match of `MPEG_PICTURE`, is that of a single field.

    The extension of the header says so, which only MPEG-2 has.
    """
    if picture["extension"] is None:
        return False
    kind_of_extension = picture["extension"][0] >> 4
    structure = picture["structure"][0] & 0b11
    return bool(kind_of_extension == PICTURE_CODING_EXTENSION and structure != FRAME_STRUCTURE)


def vp8(data: Data, _length_size: int = 0) -> PictureHeader:
    """Read from a VP8 packet whether its frame is a key frame, and whether it is shown (RFC 6386, 9.1)."""
    # The first byte of the frame tag: from the lowest bit on, 1 bit of the frame type, 3 of the version, 1 of
    # whether the frame is shown, and 3 of a size.
    first_byte = data[0]
    is_inter_frame = bool(first_byte & 0b00001)
    is_shown = bool(first_byte & 0b10000)
    return picture_header(start=not is_inter_frame, hidden=not is_shown)


def vp9(data: Data, _length_size: int = 0) -> PictureHeader:
    """Read from a VP9 packet whether decoding can start with it, and whether a picture is shown for it.

    Decoding can start if its first frame is a key frame that is shown. A frame that is not shown has a packet
    of its own, or shares a packet with a frame that is shown (a superframe, annex B).
    """
    # The first byte: 2 bits of the frame marker, 2 of the profile, then three flags; a reserved bit comes
    # before the flags in profile 3, else behind them.
    first_byte = data[0]
    has_frame_marker = first_byte >> 6 == 0b10
    profile = first_byte >> 4 & 0b11
    flags = first_byte if profile == 3 else first_byte >> 1
    shows_existing = bool(flags & 0b100)
    is_inter_frame = bool(flags & 0b010)
    is_shown = bool(flags & 0b001)
    is_superframe = data[-1] >> 5 == SUPERFRAME
    can_start = has_frame_marker and is_shown and not shows_existing and not is_inter_frame
    shows_a_picture = is_shown or shows_existing or is_superframe
    return picture_header(start=can_start, hidden=not shows_a_picture)


def av1(data: Data, _length_size: int = 0) -> PictureHeader:
    """Read from an AV1 packet (temporal unit) whether decoding can start with it.

    It can if the packet has a sequence header, and then a key frame that is shown.
    """
    has_sequence_header = False
    for unit in _av1_units(data):
        if unit.kind == OBU_SEQUENCE_HEADER:
            has_sequence_header = True
            has_reduced_header = bool(unit.first_byte & 0b1000)  # reduced_still_picture_header
            if has_reduced_header:
                return NO_HEADER  # frame headers then begin with other bits than those read below
        elif unit.kind in (OBU_FRAME_HEADER, OBU_FRAME):
            # The bits are show_existing_frame 0, frame_type 00 (key), show_frame 1.
            is_shown_key = unit.first_byte >> 4 == 0b0001
            return picture_header(start=has_sequence_header and is_shown_key)
    return NO_HEADER


class _Av1Unit(NamedTuple):
    """A unit (OBU) of an AV1 temporal unit: its kind, and the first byte of its content, 0 if it has none."""

    kind: int
    first_byte: int


def _av1_units(data: Data) -> Iterator[_Av1Unit]:
    """Yield the units (OBUs) of which an AV1 packet consists, in order (5.3)."""
    position = 0
    while position < len(data):
        # The header of a unit: a bit 0, 4 bits of its kind, two flags, and a reserved bit.
        header = data[position]
        kind = header >> 3 & 0b1111
        has_second_byte = bool(header & 0b100)
        states_size = bool(header & 0b10)
        position += 2 if has_second_byte else 1
        if states_size:
            size, position = leb128(data, position)
        else:  # the last unit
            size = len(data) - position
        first_byte = data[position] if position < len(data) else 0
        yield _Av1Unit(kind, first_byte)
        position += size


def leb128(data: Data, position: int) -> tuple[int, int]:
    """Read a size coded as LEB128; return it and the next position.

    Each byte holds 7 bits, the lowest first; the highest bit says whether another byte follows.

    Examples
    --------
    >>> leb128(bytes([0b1110_0101, 0b0000_1110]), 0)  # 7 bits each: 1100101 (101), and 0001110 (14) * 128
    (1893, 2)
    >>> leb128(bytes([0b1000_0000] * 9), 0)  # no byte says that it is the last: a size has at most 8
    (0, 8)
    """
    size = 0
    shift = 0
    for byte in data[position : position + 8]:  # a size has at most 8 bytes
        lowest_7_bits = byte & 0b0111_1111
        size |= lowest_7_bits << shift
        shift += 7
        position += 1
        is_last_byte = byte & 0b1000_0000 == 0
        if is_last_byte:
            break
    return size, position


READERS: dict[str, Callable[[Data, int], PictureHeader]] = {
    "h264": h264,
    "hevc": hevc,
    "mpeg4": mpeg4,
    "vp8": vp8,
    "vp9": vp9,
    "av1": av1,
}
READERS |= dict.fromkeys(MPEG12, mpeg12) | dict.fromkeys(INTRA_ONLY, lambda *_: picture_header(start=True))
ONLY_KEYS_READ = INTRA_ONLY | {"h264", "av1"}
"""Codecs where only packets are read that the container flags as key frames."""


def display_ranks(types: str) -> NDArray[np.int64]:
    """Return the display position of each picture of MPEG-1, MPEG-2 or MPEG-4, by the pictures' types.

    A B-picture is shown as soon as it is decoded. Any other picture is held back until the next picture that
    is not a B-picture is decoded. For example "IPBB" gives [0, 3, 1, 2].

    Parameters
    ----------
    types
        One letter per picture, in decoding order: I, P, B or S.

    Returns
    -------
    NDArray[np.int64]
        Shape [P]: 0 for the picture shown first.
    """
    display_order: list[int] = []  # pictures, numbered in decoding order
    held_back: int | None = None
    for picture, kind in enumerate(types):
        if kind == "B":
            display_order.append(picture)
            continue
        if held_back is not None:
            display_order.append(held_back)
        held_back = picture
    if held_back is not None:
        display_order.append(held_back)

    ranks = np.empty(len(types), np.int64)
    ranks[display_order] = np.arange(len(types))
    return ranks
