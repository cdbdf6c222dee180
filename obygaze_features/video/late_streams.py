"""Find where in a file streams begin that were not known when it was opened.

Sources: ISO/IEC 13818-1, 2.4.3.2 (packets of a transport stream), 2.4.3.6 (those of a program stream);
ISO/IEC 11172-1, 2.4.3.3 (those of MPEG-1); the streams of a DVD inside private stream 1; Adobe Flash Video
File Format Specification 10.1, annex E (tags).
"""

import re
from collections.abc import Collection, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final

import msgspec

from obygaze_features.errors import VideoError
from obygaze_features.untrusted import open_regular
from obygaze_features.video.file_facts import files_of
from obygaze_features.video.packets import ListedStream

TRANSPORT_PACKETS = (188, 192, 204)
"""Bytes of a packet of a transport stream: plain, with a time stamp (M2TS), with a checksum."""
START_CODE = b"\x00\x00\x01"
"""How a packet of a program stream begins; the number of its stream follows."""
PRIVATE_STREAM = START_CODE + b"\xbd"
"""How a packet of a program stream begins that carries sound or subtitles of a DVD."""
PACKET_START_BYTES = 6
"""Bytes of a packet of a program stream before its header: start code, stream and length."""
LONGEST_HEADER = 3 + 256
"""Bytes of the longest header of a packet of a program stream, with one byte of what the packet carries."""
MPEG1_TIME_BYTES = {2: 5, 3: 10}
"""First four bits of the times in a header of MPEG-1 -> bytes of these times."""
FLV_TYPES = {"audio": 8, "video": 9}
FLV_HEADER = 13
FLV_TAG_HEADER = 11
FLV_TAG_TRAILER = 4
PROBED_BEHIND = 5_000_000
"""Bytes behind the first packet of a stream from which FFmpeg learns its codec's settings: its default."""
MAX_PROBED = 1 << 28
"""Bytes of a file that are looked through, and held in memory, for streams."""
MAX_STREAMS_LOOKED_FOR = 16
"""Streams of a file whose first byte is looked for."""
NAMES = {"audio": "a sound track", "subtitle": "subtitles", "video": "another stream of pictures"}
"""FFmpeg's kinds of streams that are noted if they appear later -> their names in notes."""


NOT_KNOWN: Final = -1
"""Place of a stream whose first packet is not found, or not looked for."""


class LateStream(msgspec.Struct, frozen=True):
    """A stream that appears behind what is read of a file when it is opened.

    Parameters
    ----------
    kind
        `video`, `audio`, `subtitle`.
    codec
        FFmpeg's name of its codec.
    byte
        Where its first packet begins; `NOT_KNOWN` (-1) if that is not known.
    """

    kind: str
    codec: str
    byte: int = NOT_KNOWN

    @property
    def sentence(self) -> str:
        """Say what appears, and where."""
        location = f"from byte {self.byte:,} on" if self.byte >= 0 else "after its beginning"
        return f"{location} the file has {NAMES[self.kind]} that its beginning does not announce"


def bytes_to_probe_whole_film(path: Path) -> int:
    """Return how many bytes of a film FFmpeg must look through to find a stream, wherever it begins.

    They are all bytes of the film, which may be several files (the title of a DVD). `PROBED_BEHIND` is added
    as behind the first packet of any stream (`bytes_to_probe`). FFmpeg holds in memory what it looks through,
    so there is a limit, `MAX_PROBED`.
    """
    n_bytes_of_film = sum(file.stat().st_size for file in files_of(path))
    return min(n_bytes_of_film + PROBED_BEHIND, MAX_PROBED)


def bytes_to_probe(path: Path, streams: Sequence[LateStream]) -> int:
    """Return how many bytes of a file FFmpeg must look through to know streams that appear later.

    Parameters
    ----------
    path
        The file.
    streams
        The streams that are wanted; without any, 0 bytes are enough.

    Raises
    ------
    VideoError
        A stream begins too late in the file: FFmpeg holds in memory what it looks through.
    """
    if not streams:
        return 0
    if any(stream.byte < 0 for stream in streams):  # it is not known where one begins
        return bytes_to_probe_whole_film(path)
    last = max(streams, key=lambda stream: stream.byte)
    n_bytes = last.byte + PROBED_BEHIND  # so that FFmpeg also learns the settings of its codec
    if n_bytes > MAX_PROBED:
        raise VideoError(
            f"{last.sentence}, and {MAX_PROBED:,} bytes are looked through at most: "
            "copy the film with FFmpeg's -probesize 2G -analyzeduration 2G",
            path,
        )
    return n_bytes


def late_streams(
    files: Sequence[Path], formats: Collection[str], streams: Sequence[ListedStream]
) -> list[LateStream]:
    """Find at which bytes of a film's files its late streams begin: those not known when it was opened.

    Returned are streams of pictures, sound and subtitles (`NAMES`); others, such as the data of a broadcast,
    are read by nobody.

    Parameters
    ----------
    files
        The file, or those of a DVD's title in order.
    formats
        FFmpeg's names of its format.
    streams
        The late streams of all kinds, and no others; where they begin is not known yet.
    """
    late = list[LateStream]()
    for stream in streams:
        if stream.kind not in NAMES:
            continue
        # Each search reads the file, and a file that is made to waste time may have hundreds of streams.
        is_looked_for = len(late) < MAX_STREAMS_LOOKED_FOR
        byte = _first_byte(files, formats, stream) if is_looked_for else NOT_KNOWN
        late.append(LateStream(stream.kind, stream.codec, byte))
    return late


def late_notes(late: Sequence[LateStream]) -> list[str]:
    """Return notes for the user on streams that begin late in a file, one note for each kind of stream.

    A note is on the first stream of its kind, and says how many more there are.
    """
    notes = []
    for kind in NAMES:
        streams = [stream for stream in late if stream.kind == kind]
        if not streams:
            continue
        note = streams[0].sentence
        n_more = len(streams) - 1
        if n_more > 0:
            note += f", and {n_more} more later"
        notes.append(note)
    return notes


def _first_byte(files: Sequence[Path], formats: Collection[str], stream: ListedStream) -> int:
    """Return at which byte of a film a stream begins; -1 if that is not known.

    Parameters
    ----------
    files
        The file, or those of a DVD's title in order, whose bytes are counted on from file to file.
    formats
        FFmpeg's names of the format.
    stream
        The stream.
    """
    bytes_before = 0  # of the files before
    for path in files:
        with open_regular(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            if "mpegts" in formats:
                byte = _first_transport_packet(data, stream.id)
            elif "mpeg" in formats:
                byte = _first_program_packet(data, stream.id)
            elif "flv" in formats:
                byte = _first_tag(data, FLV_TYPES.get(stream.kind, 0))
            else:
                byte = -1
            if byte >= 0:
                return bytes_before + byte
            bytes_before += len(data)
    return -1


def _first_transport_packet(data: mmap, pid: int) -> int:
    """Return the byte at which the first packet with a PID begins in a transport stream; -1 if there is none.

    The PID is the number of a stream. A packet begins with a "G", and ends where another one begins, or the
    file ends.
    """
    for match in _transport_packet_head(pid).finditer(data):
        start = match.start()
        for size in TRANSPORT_PACKETS:
            end = start + size
            is_last = end >= len(data)
            is_followed_by_packet = data[end : end + 1] == b"G"
            if is_last or is_followed_by_packet:
                return start
    return -1


def _transport_packet_head(pid: int) -> re.Pattern[bytes]:
    """Return the pattern of the first three bytes of a transport stream's packets with a PID.

    They are a "G", three flags, and the 13 bits of the PID. For the PID 0x0102 the second byte is 0x01, 0x21,
    0x41 or another with these flags, and the third is 0x02.
    """
    upper_5_bits = pid >> 8
    lower_8_bits = pid & 0xFF
    second_bytes = [bytes([flags << 5 | upper_5_bits]) for flags in range(8)]
    any_second_byte = b"".join(re.escape(byte) for byte in second_bytes)
    third_byte = re.escape(bytes([lower_8_bits]))
    return re.compile(b"G[" + any_second_byte + b"]" + third_byte, re.DOTALL)


def _first_program_packet(data: mmap, stream_id: int) -> int:
    """Return the byte at which the first packet of a stream begins in a program stream; -1 if there is none.

    FFmpeg numbers streams that have packets of their own from 0x100 on. Other streams are carried in packets
    of private stream 1, whose first byte behind the header names them.
    """
    lower_byte = stream_id & 0xFF
    has_own_packets = stream_id >= 0x100
    if has_own_packets:
        return data.find(START_CODE + bytes([lower_byte]))

    start = data.find(PRIVATE_STREAM)
    while start >= 0:
        header_start = start + PACKET_START_BYTES
        header = data[header_start : header_start + LONGEST_HEADER]
        if _first_carried(header) == lower_byte:
            return start
        start = data.find(PRIVATE_STREAM, start + len(PRIVATE_STREAM))
    return -1


def _first_carried(packet: bytes) -> int:
    """Return the value of the first byte behind the header of a program stream's packet; -1 if there is none.

    A header of MPEG-2 states its length. One of MPEG-1 has stuffing, the size of a buffer, and times.

    Parameters
    ----------
    packet
        The packet from its header on.
    """
    if not packet:  # the file ends here
        return -1
    is_mpeg2 = packet[0] >> 6 == 0b10
    if not is_mpeg2:
        header_end = _mpeg1_header_bytes(packet)
    elif len(packet) > 2:
        n_further_bytes = packet[2]  # behind two bytes of flags and this length
        header_end = 3 + n_further_bytes
    else:  # the file ends inside of the header
        header_end = len(packet)
    return packet[header_end] if header_end < len(packet) else -1


def _mpeg1_header_bytes(packet: bytes) -> int:
    """Return the bytes of the header of an MPEG-1 packet: of stuffing, the size of a buffer, and times.

    Stuffing is bytes of 0xFF. The size of a buffer may follow, two bytes that begin with the bits 01. Then
    come the times, whose first four bits tell which there are; a packet without times has one byte for them.

    Parameters
    ----------
    packet
        The packet from its header on.
    """
    n_stuffing = len(packet) - len(packet.lstrip(b"\xff"))
    end = n_stuffing  # of the header, as far as it was read
    has_buffer_size = end < len(packet) and packet[end] >> 6 == 0b01
    if has_buffer_size:
        end += 2
    if end < len(packet):
        first_4_bits = packet[end] >> 4
        end += MPEG1_TIME_BYTES.get(first_4_bits, 1)
    return end


def _first_tag(data: mmap, kind: int) -> int:
    """Return the byte at which the first tag (packet) of a type begins in an FLV file; -1 if none does."""
    start = FLV_HEADER
    while start + FLV_TAG_HEADER <= len(data):
        kind_of_tag = data[start] & 0b11111  # the upper 3 bits are flags
        if kind_of_tag == kind:
            return start
        content_bytes = int.from_bytes(data[start + 1 : start + 4], "big")
        start += FLV_TAG_HEADER + content_bytes + FLV_TAG_TRAILER
    return -1
