"""Write H.264 whose pictures are pairs of fields, each in a packet of its own, as camcorders and TV do."""

import math
from fractions import Fraction
from pathlib import Path

import av

RATE = 25
SIDE = 16
"""Width and height of a field, in pixels: one macroblock."""
BOTTOM_IS_LIGHTER_BY = 9
"""How much lighter a picture's lower field is than its upper one."""
FRAME_NUMBER_BITS = 7
PICTURE_SET, SEQUENCE_SET, SLICE, IDR_SLICE = 0x68, 0x67, 0x61, 0x65
"""First bytes of NAL units that others refer to (H.264, table 7-1)."""
START_CODE = b"\0\0\0\1"
ACCESS_UNIT_DELIMITER = b"\x09\xf0"


def exp_golomb(number: int) -> str:
    """Return the bits of a number in Exp-Golomb coding (H.264, 9.1)."""
    bits = f"{number + 1:b}"
    return "0" * (len(bits) - 1) + bits


def unit(first_byte: int, bits: str, samples: bytes = b"") -> bytes:
    """Return a NAL unit: its first byte, its bits and, from the next byte on, samples."""
    stop_bit = "1"
    if not samples:
        bits += stop_bit
    n_bytes = math.ceil(len(bits) / 8)
    content = int(bits.ljust(8 * n_bytes, "0"), 2).to_bytes(n_bytes, "big")
    if samples:
        content += samples + bytes([0b1000_0000])  # the stop bit, and zeros to the end of its byte
    return bytes([first_byte]) + without_start_codes(content)


def without_start_codes(content: bytes) -> bytes:
    """Put a 3 between two zeros and a byte up to 3: they would look like the start of a unit (7.4.1)."""
    for small in range(4):
        content = content.replace(bytes([0, 0, small]), bytes([0, 0, 3, small]))
    return content


def sequence(
    profile: int = 77, chroma: str = "", order: str = exp_golomb(2), frames_only: str = "0"
) -> bytes:
    """Return a sequence parameter set of pictures of 16x32, or of 16x16 if all are frames (7.3.2.1.1).

    `chroma` has the bits of the fields that only high profiles have, `order` those of the order of pictures.
    """
    constraints, level = 0, 30
    sequence_number = exp_golomb(0)
    length_of_frame_numbers = exp_golomb(FRAME_NUMBER_BITS - 4)
    n_reference_frames = exp_golomb(1)
    gaps_are_allowed = "0"
    width = exp_golomb(0)  # in macroblocks, less one
    height = exp_golomb(0)  # of a field in macroblocks, less one
    adapts_fields_to_macroblocks = "0" if frames_only == "0" else ""
    infers_direct_motion = "1"
    is_cropped = "0"
    has_usability_information = "0"
    bits = f"{profile:08b}{constraints:08b}{level:08b}" + sequence_number + chroma
    bits += length_of_frame_numbers + order + n_reference_frames + gaps_are_allowed
    bits += width + height + frames_only + adapts_fields_to_macroblocks
    bits += infers_direct_motion + is_cropped + has_usability_information
    return unit(SEQUENCE_SET, bits)


def picture_set() -> bytes:
    """Return a picture parameter set with the simplest value of every field (7.3.2.2)."""
    picture_set_number = sequence_number = exp_golomb(0)
    entropy_coding = "0"  # CAVLC
    order_in_slices = "0"
    n_slice_groups = exp_golomb(0)  # less one
    n_references = exp_golomb(0) + exp_golomb(0)  # of the two lists, less one
    weighted_prediction = "0" + "00"
    quantisers = exp_golomb(0) * 3  # of luma, of switching pictures, of chroma
    other_flags = "000"  # deblocking in slices, constrained prediction, redundant pictures
    bits = picture_set_number + sequence_number + entropy_coding + order_in_slices + n_slice_groups
    bits += n_references + weighted_prediction + quantisers + other_flags
    return unit(PICTURE_SET, bits)


def field(frame: int, bottom: int, grey: int) -> bytes:
    """Return a field of one grey, in samples that are not compressed (7.3.3)."""
    is_first = frame == 0 and bottom == 0  # at which decoding starts
    first_macroblock = exp_golomb(0)
    slice_type = exp_golomb(7)  # all slices of the picture are intra-coded
    picture_set_number = exp_golomb(0)
    frame_number = f"{frame % 2**FRAME_NUMBER_BITS:0{FRAME_NUMBER_BITS}b}"
    is_field = "1"
    bits = first_macroblock + slice_type + picture_set_number + frame_number + is_field + str(bottom)
    if is_first:
        start_number = exp_golomb(0)
        reference_marks = "00"
        bits += start_number + reference_marks
    else:
        bits += "0"  # earlier pictures stay references in the usual way
    quantiser_change = exp_golomb(0)
    macroblock_type = exp_golomb(25)  # samples as they are (table 7-11)
    luma = bytes([grey]) * SIDE**2
    two_chroma_planes = bytes([128]) * (2 * (SIDE // 2) ** 2)  # 128 is no colour
    first_byte = IDR_SLICE if is_first else SLICE
    return unit(first_byte, bits + quantiser_change + macroblock_type, luma + two_chroma_planes)


def write_fields(path: Path, greys: list[int]) -> Path:
    """Write a film, bare if its suffix is .h264, of pictures of two fields: the lower is lighter by 9."""
    units = []
    for number, grey in enumerate(greys):
        for bottom in (0, 1):
            units.append(ACCESS_UNIT_DELIMITER)
            if number == 0 and bottom == 0:
                units += [sequence(), picture_set()]
            units.append(field(number, bottom, grey + BOTTOM_IS_LIGHTER_BY * bottom))
    bare = path.with_suffix(".h264")
    bare.write_bytes(b"".join(START_CODE + content for content in units))
    if path != bare:
        _put_into_container(bare, path)
    return path


def _put_into_container(bare: Path, path: Path) -> None:
    """Copy the fields of a bare stream, each in a packet of its own, with times of half a picture each."""
    with av.open(bare) as film, av.open(path, "w") as copy:
        stream = copy.add_stream_from_template(film.streams.video[0])
        fields = (packet for packet in film.demux() if packet.size)
        for number, packet in enumerate(fields):
            packet.pts = packet.dts = number
            packet.time_base = Fraction(1, 2 * RATE)
            packet.duration = 1
            packet.stream = stream
            copy.mux(packet)
