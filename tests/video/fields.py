"""Write H.264 whose pictures are pairs of fields, each in a packet of its own, as camcorders and TV do."""

from fractions import Fraction
from pathlib import Path

import av

RATE = 25
SIDE = 16
START_CODE = b"\0\0\0\1"
ACCESS_UNIT_DELIMITER = b"\x09\xf0"


def coded(number: int) -> str:
    """Return the bits of a number in Exp-Golomb coding (H.264, 9.1)."""
    bits = f"{number + 1:b}"
    return "0" * (len(bits) - 1) + bits


def unit(head: int, bits: str, samples: bytes = b"") -> bytes:
    """Return a NAL unit of bits and, from the next byte on, samples."""
    bits += "" if samples else "1"
    bits += "0" * (-len(bits) % 8)
    content = int(bits, 2).to_bytes(len(bits) // 8, "big")
    if samples:
        content += samples + b"\x80"
    # Two zeros and a small byte would look like the start of a unit: a 3 parts them.
    for small in range(4):
        content = content.replace(bytes([0, 0, small]), bytes([0, 0, 3, small]))
    return bytes([head]) + content


def sequence(profile: int = 77, chroma: str = "", order: str = coded(2), frames_only: str = "0") -> bytes:
    """Return a sequence parameter set of pictures of 16x32, or of 16x16 if all are frames."""
    bits = f"{profile:08b}{0:08b}{30:08b}" + coded(0) + chroma + coded(3) + order + coded(1) + "0"
    adaptive = "0" if frames_only == "0" else ""
    return unit(0x67, bits + coded(0) * 2 + frames_only + adaptive + "1" + "0" + "0")


def field(frame: int, bottom: int, value: int) -> bytes:
    """Return a field of one grey, in samples that are not compressed."""
    first = not (frame or bottom)
    bits = coded(0) + coded(7) + coded(0) + f"{frame % 128:07b}" + f"1{bottom}"
    bits += coded(0) + "00" if first else "0"
    samples = bytes([value]) * SIDE**2 + b"\x80" * (SIDE**2 // 2)
    return unit(0x65 if first else 0x61, bits + coded(0) + coded(25), samples)


def write_fields(path: Path, greys: list[int]) -> Path:
    """Write pictures whose upper field has a grey and whose lower one has 9 more."""
    picture_set = unit(0x68, coded(0) * 2 + "00" + coded(0) * 3 + "000" + coded(0) * 3 + "000")
    units = []
    for number, grey in enumerate(greys):
        for bottom in (0, 1):
            units.append(ACCESS_UNIT_DELIMITER)
            if not number and not bottom:
                units += [sequence(), picture_set]
            units.append(field(number, bottom, grey + 9 * bottom))
    bare = path.with_suffix(".h264")
    bare.write_bytes(b"".join(START_CODE + content for content in units))
    if bare == path:
        return path
    with av.open(bare) as film, av.open(path, "w") as copy:
        stream = copy.add_stream_from_template(film.streams.video[0])
        fields = (packet for packet in film.demux() if packet.size)
        for number, packet in enumerate(fields):
            packet.pts = packet.dts = number
            packet.time_base = Fraction(1, 2 * RATE)
            packet.duration = 1
            packet.stream = stream
            copy.mux(packet)
    return path
