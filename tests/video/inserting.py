"""Put packets into films that stations, discs and cameras add on the way: each makes what a container allows.

ISO/IEC 13818-1 (transport and program streams), 11172-1 (MPEG-1 systems), 14496-12 (boxes); the Flash Video
File Format Specification, annex E.
"""

import re
from collections.abc import Callable

PACK = b"\x00\x00\x01\xba"
NEW_PID = 0x345
BODY = bytes(range(1, 41))
"""What the packets hold: no sound or picture of any codec."""


def crc32(data: bytes) -> bytes:
    """Return the checksum of a section (13818-1, annex A)."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte << 24
        for _ in range(8):
            carried = register & 0x80000000
            register = register << 1 & 0xFFFFFFFF
            if carried:
                register ^= 0x04C11DB7
    return register.to_bytes(4, "big")


def in_mpeg2_program(start: int, inner: bytes) -> bytes:
    """Make a packet of a program stream: its stream, and the number of one inside private stream 1."""
    content = b"\x81\x00\x00" + inner + BODY
    return b"\x00\x00\x01" + bytes([start]) + len(content).to_bytes(2, "big") + content


def in_mpeg1_program(start: int, inner: bytes) -> bytes:
    """Make a packet of an MPEG-1 system stream."""
    content = b"\x0f" + inner + BODY
    return b"\x00\x00\x01" + bytes([start]) + len(content).to_bytes(2, "big") + content


def transport_packet(pid: int, payload: bytes) -> bytes:
    """Make a packet of a transport stream, with stuffing ahead of what it carries."""
    stuffing = 183 - len(payload)
    field = bytes([stuffing]) + (b"\x00" + b"\xff" * (stuffing - 1) if stuffing else b"")
    return b"G" + (pid | 0x4000).to_bytes(2, "big") + b"\x30" + field + payload


def with_announced(film: bytes, kind: int, descriptor: bytes) -> bytes:
    """Make the next version of a film's map, with one stream more; and a packet of that stream."""
    packets = transport_packets(film)
    programs = next(packet for packet in packets if pid_of(packet) == 0)
    map_pid = pid_of(programs[14:])
    section = next(packet for packet in packets if pid_of(packet) == map_pid)[5:]
    length = int.from_bytes(section[1:3], "big") & 0xFFF
    streams = section[8 : length - 1]
    entry = bytes([kind]) + (NEW_PID | 0xE000).to_bytes(2, "big")
    entry += (len(descriptor) | 0xF000).to_bytes(2, "big") + descriptor
    head = section[:1] + (length + len(entry) | 0xB000).to_bytes(2, "big")
    head += section[3:5] + bytes([section[5] + 2 & 0x3F | 0xC0]) + section[6:8]
    announced = head + streams + entry
    section_packet = transport_packet(map_pid, b"\x00" + announced + crc32(announced))
    return section_packet + transport_packet(NEW_PID, in_mpeg2_program(0xBD, b""))


def transport_packets(film: bytes) -> list[bytes]:
    """Part a transport stream into its packets, of M2TS without their time."""
    size, ahead = (188, 0) if film[0] == 0x47 else (192, 4)
    return [film[start + ahead : start + size] for start in range(0, len(film), size)]


def pid_of(packet: bytes) -> int:
    """Return which stream a packet belongs to."""
    return int.from_bytes(packet[1:3], "big") & 0x1FFF


PROGRAM_KINDS = {
    "subpicture": (0xBD, b"\x20"),
    "AC-3": (0xBD, b"\x80\x01\x00\x01"),
    "DTS": (0xBD, b"\x88\x01\x00\x01"),
    "LPCM": (0xBD, b"\xa0\x01\x00\x01\x00\x00\x00"),
    "second sound": (0xC1, b""),
    "navigation": (0xBF, b""),
    "nothing known": (0xBD, b"\x03"),
}
"""Streams of a DVD: start code, and what private stream 1 begins with."""

TRANSPORT_KINDS = {
    "private data": (0x06, b""),
    "AC-3": (0x06, b"\x6a\x01\x00"),
    "DVB subtitles": (0x06, b"\x59\x08eng\x10\x00\x01\x00\x01"),
    "teletext": (0x06, b"\x56\x05eng\x09\x00"),
    "splices": (0x86, b""),
    "metadata": (0x15, b""),
    "second sound": (0x03, b""),
}
"""Streams of a broadcast: type in the map, and descriptor."""

FLASH_KINDS = {"sound": 8, "script": 18, "nothing known": 21}
BOX_KINDS = {"event": b"emsg", "private": b"uuid", "free": b"free"}
PLACES = (0.3, 0.5, 0.7)
"""Shares of a film before what is put in: FFmpeg reads less of the beginning, and of the end."""

Insert = Callable[[bytes, float], bytes]


def _next(film: bytes, mark: bytes, place: float) -> int:
    return film.index(mark, round(place * len(film)))


def into_program(film: bytes, place: float, kind: str) -> bytes:
    """Put a packet of a kind before a pack of a program stream."""
    pack = _next(film, PACK, place)
    make = in_mpeg2_program if film[pack + 4] >> 6 == 1 else in_mpeg1_program
    return film[:pack] + make(*PROGRAM_KINDS[kind]) + film[pack:]


def program_packs(film: bytes) -> list[bytes]:
    """Part a program stream into its packs."""
    return [PACK + pack for pack in film.split(PACK)[1:]]


def inner_stream(pack: bytes) -> int:
    """Return which stream inside private stream 1 a pack of MPEG-2 holds; -1 for none."""
    packet = pack.find(b"\x00\x00\x01\xbd")
    return pack[packet + 9 + pack[packet + 8]] if packet >= 0 else -1


def into_transport(film: bytes, place: float, kind: str) -> bytes:
    """Announce a stream in a new map, with its first packet."""
    return _with_packets(film, place, with_announced(film, *TRANSPORT_KINDS[kind]))


def into_transport_unannounced(film: bytes, place: float) -> bytes:
    """Put in a packet of a stream that no map has."""
    return _with_packets(film, place, transport_packet(NEW_PID, in_mpeg2_program(0xBD, b"")))


def _with_packets(film: bytes, place: float, packets: bytes) -> bytes:
    size = 188 if film[0] == 0x47 else 192
    at = round(place * len(film)) // size * size
    new = b"".join(
        film[at : at + size - 188] + packets[start : start + 188] for start in range(0, len(packets), 188)
    )
    return film[:at] + new + film[at:]


def flash_tags(film: bytes) -> list[bytes]:
    """Part a Flash film, behind its header of 13 bytes, into its tags."""
    tags = []
    start = 13
    while start < len(film):
        size = 15 + int.from_bytes(film[start + 1 : start + 4], "big")
        tags.append(film[start : start + size])
        start += size
    return tags


def into_flash(film: bytes, place: float, kind: str) -> bytes:
    """Put in a tag of a kind, of the time of the tag that follows."""
    tags = flash_tags(film)
    number = round(place * len(tags))
    head = bytes([FLASH_KINDS[kind]]) + len(BODY).to_bytes(3, "big") + tags[number][4:8] + bytes(3)
    tag = head + b"\x2f" + BODY[1:]
    tag += len(tag).to_bytes(4, "big")
    return film[:13] + b"".join([*tags[:number], tag, *tags[number:]])


def into_fragments(film: bytes, place: float, kind: str) -> bytes:
    """Put a box of a kind before a fragment."""
    at = _next(film, b"moof", place) - 4
    box = (8 + len(BODY)).to_bytes(4, "big") + BOX_KINDS[kind] + BODY
    return film[:at] + box + film[at:]


def with_wrong_counter(film: bytes, nth: int, pid: int = 0x100) -> bytes:
    """Make the counter of a packet wrong in which the nth picture of a transport stream begins."""
    starts = [match.start() for match in re.finditer(rb"G", film) if match.start() % 188 == 0]
    begins = [at for at in starts if pid_of(film[at : at + 3]) == pid and film[at + 1] & 0x40]
    at = begins[nth] + 3
    wrong = film[at] & 0xF0 | film[at] + 5 & 0x0F
    return film[:at] + bytes([wrong]) + film[at + 1 :]
