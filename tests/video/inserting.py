"""Put packets into films that stations, discs and cameras add on the way, as their containers allow.

A function `into_...` takes the bytes of a film, the share of them (0 to 1) behind which the packet is put,
and the kind of packet; it returns the bytes of the changed film.

ISO/IEC 13818-1 (transport and program streams), 11172-1 (MPEG-1 systems), 14496-12 (boxes); the Flash Video
File Format Specification, annex E.
"""

PACK = b"\x00\x00\x01\xba"
NEW_PID = 0x345
BODY = bytes(range(1, 41))
"""What the packets hold: no sound or picture of any codec."""
START_CODE = b"\x00\x00\x01"
PRIVATE_STREAM_1 = 0xBD
"""The stream of DVDs' subpictures and of most of their sound: a number inside it says which one."""
TRANSPORT_SYNC = b"G"
"""The first byte of a packet of a transport stream."""
TRANSPORT_SIZE = 188
M2TS_SIZE = 192
"""Size of a packet of M2TS: a time of 4 bytes, and a packet of a transport stream."""
UNIT_START = 0x4000
"""The bit of a transport packet's second and third bytes at which a unit (a picture, a section) begins."""
FLASH_HEADER_SIZE = 13


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


def in_mpeg2_program(stream: int, substream: bytes) -> bytes:
    """Make a packet of an MPEG-2 program stream (13818-1, 2.4.3.6).

    `stream` is the last byte of its start code; `substream` is what stands before the body, as the number of
    a stream inside private stream 1.
    """
    header_without_times = b"\x81\x00\x00"  # flags, none of them set, and 0 bytes of optional fields
    return _program_packet(stream, header_without_times + substream + BODY)


def in_mpeg1_program(stream: int, substream: bytes) -> bytes:
    """Make a packet of an MPEG-1 system stream (11172-1, 2.4.3.3), from the same as `in_mpeg2_program`."""
    header_without_times = b"\x0f"
    return _program_packet(stream, header_without_times + substream + BODY)


def _program_packet(stream: int, content: bytes) -> bytes:
    return START_CODE + bytes([stream]) + len(content).to_bytes(2, "big") + content


def transport_packet(pid: int, payload: bytes) -> bytes:
    """Make a packet of a transport stream in which a unit begins, with stuffing before its payload."""
    header = TRANSPORT_SYNC + (UNIT_START | pid).to_bytes(2, "big")
    header += b"\x30"  # an adaptation field and a payload follow; the counter is 0
    # The adaptation field is its length in one byte, flags in one byte, and stuffing.
    field_length = TRANSPORT_SIZE - len(header) - 1 - len(payload)
    field = bytes([field_length])
    if field_length:
        no_flags = b"\x00"
        field += no_flags + b"\xff" * (field_length - 1)
    return header + field + payload


def with_announced(film: bytes, kind: int, descriptor: bytes) -> bytes:
    """Make two packets: a film's next program map, with one more stream in it; and one of that stream."""
    new_map = transport_packet(*_next_program_map(film, kind, descriptor))
    return new_map + transport_packet(NEW_PID, in_mpeg2_program(PRIVATE_STREAM_1, b""))


def _next_program_map(film: bytes, kind: int, descriptor: bytes) -> tuple[int, bytes]:
    """Return the PID of a film's program map, and the next version of it, with one more stream.

    The map (13818-1, 2.4.4.8) has, from byte 1 on: its length (12 bits), the program's number (2 bytes), its
    version (5 bits behind 2, before 1), the numbers of sections (2 bytes), the streams, a checksum.
    """
    packets = transport_packets(film)
    programs = next(packet for packet in packets if pid_of(packet) == 0)
    # Header (4 bytes), pointer (1), the table's head (8), the first program's number (2), and its map's PID.
    map_pid = pid_of(programs[14:])  # which is in bytes 1 and 2 of this
    map_packet = next(packet for packet in packets if pid_of(packet) == map_pid)
    section = map_packet[5:]
    length = int.from_bytes(section[1:3], "big") & 0xFFF
    checksum_start = 3 + length - 4
    reserved_3_bits, reserved_4_bits, reserved_2_bits = 0xE000, 0xF000, 0xC0  # which are 1
    is_section = 0xB000

    stream = bytes([kind]) + (NEW_PID | reserved_3_bits).to_bytes(2, "big")
    stream += (len(descriptor) | reserved_4_bits).to_bytes(2, "big") + descriptor
    table, program_number, section_numbers = section[:1], section[3:5], section[6:8]
    new_length = (length + len(stream) | is_section).to_bytes(2, "big")
    # The version stands above the lowest bit: 2 more is the next version.
    new_version = bytes([(section[5] + 2) & 0b0011_1111 | reserved_2_bits])
    head = table + new_length + program_number + new_version + section_numbers
    new_section = head + section[8:checksum_start] + stream
    pointer = b"\x00"  # the section begins at once
    return map_pid, pointer + new_section + crc32(new_section)


def _transport_packet_size(film: bytes) -> int:
    """Return the size of the packets of a transport stream: those of M2TS begin with a time."""
    return TRANSPORT_SIZE if film[:1] == TRANSPORT_SYNC else M2TS_SIZE


def transport_packets(film: bytes) -> list[bytes]:
    """Split a transport stream into its packets; those of M2TS lose the time before them."""
    size = _transport_packet_size(film)
    packets = [film[start : start + size] for start in range(0, len(film), size)]
    return [packet[size - TRANSPORT_SIZE :] for packet in packets]


def pid_of(packet: bytes) -> int:
    """Return which stream a packet of a transport stream belongs to."""
    return int.from_bytes(packet[1:3], "big") & 0x1FFF


PROGRAM_KINDS = {
    "subpicture": (PRIVATE_STREAM_1, b"\x20"),
    "AC-3": (PRIVATE_STREAM_1, b"\x80\x01\x00\x01"),
    "DTS": (PRIVATE_STREAM_1, b"\x88\x01\x00\x01"),
    "LPCM": (PRIVATE_STREAM_1, b"\xa0\x01\x00\x01\x00\x00\x00"),
    "second sound": (0xC1, b""),
    "navigation": (0xBF, b""),
    "nothing known": (PRIVATE_STREAM_1, b"\x03"),
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


def _next(film: bytes, mark: bytes, place: float) -> int:
    """Find where a mark stands next behind a share of a film."""
    return film.index(mark, round(place * len(film)))


def into_program(film: bytes, place: float, kind: str) -> bytes:
    """Put a packet of a kind before a pack of a program stream."""
    pack = _next(film, PACK, place)
    is_mpeg2 = film[pack + len(PACK)] >> 6 == 0b01  # a pack of MPEG-1 has the four bits 0010 there
    make_packet = in_mpeg2_program if is_mpeg2 else in_mpeg1_program
    return film[:pack] + make_packet(*PROGRAM_KINDS[kind]) + film[pack:]


def program_packs(film: bytes) -> list[bytes]:
    """Split a program stream into its packs."""
    return [PACK + pack for pack in film.split(PACK)[1:]]


def inner_stream(pack: bytes) -> int:
    """Return which stream inside private stream 1 a pack of MPEG-2 holds; -1 for none."""
    packet = pack.find(START_CODE + bytes([PRIVATE_STREAM_1]))
    if packet < 0:
        return -1
    # Start code (4 bytes), length (2), flags (2), the length of optional fields (1), and these fields.
    fields = packet + 9
    fields_length = pack[fields - 1]
    return pack[fields + fields_length]


def into_transport(film: bytes, place: float, kind: str) -> bytes:
    """Announce a stream in a new map, with its first packet."""
    return _with_packets(film, place, with_announced(film, *TRANSPORT_KINDS[kind]))


def into_transport_unannounced(film: bytes, place: float) -> bytes:
    """Put in a packet of a stream that no map has."""
    packet = transport_packet(NEW_PID, in_mpeg2_program(PRIVATE_STREAM_1, b""))
    return _with_packets(film, place, packet)


def _with_packets(film: bytes, place: float, packets: bytes) -> bytes:
    """Put packets into a transport stream; in M2TS, each gets the time of the packet that follows them."""
    size = _transport_packet_size(film)
    position = round(place * len(film)) // size * size
    time = film[position : position + size - TRANSPORT_SIZE]
    inserted = b""
    for start in range(0, len(packets), TRANSPORT_SIZE):
        inserted += time + packets[start : start + TRANSPORT_SIZE]
    return film[:position] + inserted + film[position:]


def flash_tags(film: bytes) -> list[bytes]:
    """Split a Flash film, behind its header, into its tags.

    A tag has a head of 11 bytes, of which bytes 1 to 3 say how long its content is, the content, and the
    size of all that in 4 bytes.
    """
    tags = []
    start = FLASH_HEADER_SIZE
    while start < len(film):
        content_size = int.from_bytes(film[start + 1 : start + 4], "big")
        size = 11 + content_size + 4
        tags.append(film[start : start + size])
        start += size
    return tags


def into_flash(film: bytes, place: float, kind: str) -> bytes:
    """Put in a tag of a kind, with the time of the tag that follows."""
    tags = flash_tags(film)
    number = round(place * len(tags))
    time = tags[number][4:8]
    stream = bytes(3)
    head = bytes([FLASH_KINDS[kind]]) + len(BODY).to_bytes(3, "big") + time + stream
    content = b"\x2f" + BODY[1:]  # as sound, MP3 of 44,100 Hz in two channels of 16 bits
    tag = head + content
    tag += len(tag).to_bytes(4, "big")
    return film[:FLASH_HEADER_SIZE] + b"".join([*tags[:number], tag, *tags[number:]])


def into_fragments(film: bytes, place: float, kind: str) -> bytes:
    """Put a box of a kind before a fragment."""
    box_type_at = _next(film, b"moof", place)
    fragment = box_type_at - 4  # a box begins with its size, in 4 bytes
    box_size = 4 + 4 + len(BODY)  # size, type and content
    box = box_size.to_bytes(4, "big") + BOX_KINDS[kind] + BODY
    return film[:fragment] + box + film[fragment:]


def with_wrong_counter(film: bytes, nth: int, pid: int = 0x100) -> bytes:
    """Change the counter of the packet in which picture `nth` begins, as if packets were lost."""
    starts_of_pictures = []
    for start in range(0, len(film), TRANSPORT_SIZE):
        packet = film[start : start + TRANSPORT_SIZE]
        begins_unit = int.from_bytes(packet[1:3], "big") & UNIT_START
        if pid_of(packet) == pid and begins_unit:
            starts_of_pictures.append(start)
    place = starts_of_pictures[nth] + 3
    flags, counter = film[place] & 0xF0, film[place] & 0x0F
    wrong_counter = (counter + 5) % 16
    return film[:place] + bytes([flags | wrong_counter]) + film[place + 1 :]
