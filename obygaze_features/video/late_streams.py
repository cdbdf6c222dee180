"""Find where in a file streams begin that were not known when it was opened.

Sources: ISO/IEC 13818-1, 2.4.3.2 (packets of a transport stream), 2.4.3.6 (those of a program stream);
ISO/IEC 11172-1, 2.4.3.3 (those of MPEG-1); the streams of a DVD inside private stream 1; Adobe Flash Video
File Format Specification 10.1, annex E (tags).
"""

import re
from collections.abc import Collection, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path

import msgspec

from obygaze_features.door import open_regular
from obygaze_features.errors import VideoError
from obygaze_features.video.file_facts import files_of
from obygaze_features.video.packets import ListedStream

TRANSPORT_PACKETS = (188, 192, 204)
"""Bytes of a packet of a transport stream: plain, with a time stamp (M2TS), with a checksum."""
PRIVATE_STREAM = b"\x00\x00\x01\xbd"
PACKET_START = 6
LONGEST_HEADER = 3 + 256
"""Bytes of a packet of a program stream before its header, and at most of that, with one that it carries."""
MPEG1_TIMES = {2: 5, 3: 10}
"""Bytes of the times of a packet of MPEG-1, by the first four bits of them."""
FLV_TYPES = {"audio": 8, "video": 9}
FLV_HEADER = 13
FLV_TAG_HEADER = 11
FLV_TAG_TRAILER = 4
PROBED_BEHIND = 5_000_000
"""Bytes behind the first packet of a stream from which FFmpeg learns its codec's settings: its default."""
MOST_PROBED = 1 << 28
"""Bytes of a file that are looked through, and held in memory, for streams."""
MOST_SOUGHT = 16
"""Streams of a file whose first byte is looked for."""
NAMES = {"audio": "a sound track", "subtitle": "subtitles", "video": "another stream of pictures"}
"""What is said of streams that appear later; others, such as data, are not spoken of."""


class LateStream(msgspec.Struct, frozen=True):
    """A stream that appears behind what is read of a file when it is opened.

    Parameters
    ----------
    kind
        `video`, `audio`, `subtitle`.
    codec
        FFmpeg's name of its codec.
    byte
        Where its first packet begins; -1 if that is not known.
    """

    kind: str
    codec: str
    byte: int = -1

    @property
    def sentence(self) -> str:
        """Say what appears, and where."""
        where = f"from byte {self.byte:,} on" if self.byte >= 0 else "after its beginning"
        return f"{where} the file has {NAMES[self.kind]} that its beginning does not announce"


def whole(path: Path) -> int:
    """Return how many bytes of a file are looked through at most: all, or what may be held in memory."""
    return min(sum(file.stat().st_size for file in files_of(path)) + PROBED_BEHIND, MOST_PROBED)


def reach(path: Path, streams: Sequence[LateStream]) -> int:
    """Return how many bytes of a file to look through to know some streams that appear later.

    Parameters
    ----------
    path
        The file.
    streams
        Those of its streams that are wanted; 0 bytes are enough for none.

    Raises
    ------
    VideoError
        They begin too far behind: FFmpeg holds in memory what it looks through.
    """
    if not streams:
        return 0
    last = max(streams, key=lambda stream: stream.byte)
    if any(stream.byte < 0 for stream in streams):
        return whole(path)
    if last.byte + PROBED_BEHIND > MOST_PROBED:
        raise VideoError(
            f"{last.sentence}, and {MOST_PROBED:,} bytes are looked through at most: "
            "copy the film with FFmpeg's -probesize 2G -analyzeduration 2G",
            path,
        )
    return last.byte + PROBED_BEHIND


def late_streams(
    files: Sequence[Path], formats: Collection[str], streams: Sequence[ListedStream]
) -> list[LateStream]:
    """Find where streams begin that appeared while a file was read.

    Parameters
    ----------
    files
        The file, or those of a DVD's title in order.
    formats
        FFmpeg's names of its format.
    streams
        The streams, as FFmpeg lists them at the end.
    """
    late = list[LateStream]()
    for stream in streams:
        if stream.kind in NAMES:
            # A file that was made to take time may have hundreds.
            byte = _first_byte(files, formats, stream) if len(late) < MOST_SOUGHT else -1
            late.append(LateStream(stream.kind, stream.codec, byte))
    return late


def late_notes(late: Sequence[LateStream]) -> list[str]:
    """Say what appears later: the first stream of each kind and how many more there are."""
    notes = []
    for kind in NAMES:
        streams = [stream for stream in late if stream.kind == kind]
        if len(streams) == 1:
            notes.append(streams[0].sentence)
        elif streams:
            notes.append(f"{streams[0].sentence}, and {len(streams) - 1} more later")
    return notes


def _first_byte(files: Sequence[Path], formats: Collection[str], stream: ListedStream) -> int:
    before = 0
    for path in files:
        with open_regular(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            if "mpegts" in formats:
                place = _first_transport_packet(data, stream.id)
            elif "mpeg" in formats:
                place = _first_program_packet(data, stream.id)
            elif "flv" in formats:
                place = _first_tag(data, FLV_TYPES.get(stream.kind, 0))
            else:
                place = -1
            if place >= 0:
                return before + place
            before += len(data)
    return -1


def _first_transport_packet(data: mmap, pid: int) -> int:
    """Return where the first packet with a PID begins that is followed by another packet."""
    head = re.compile(
        rb"G[" + b"".join(re.escape(bytes([flags | pid >> 8])) for flags in range(0, 256, 32)) + rb"]"
        + re.escape(bytes([pid & 255])),
        re.DOTALL,
    )  # fmt: skip
    for match in head.finditer(data):
        place = match.start()
        for size in TRANSPORT_PACKETS:
            is_last = place + size >= len(data)
            if is_last or data[place + size : place + size + 1] == b"G":
                return place
    return -1


def _first_program_packet(data: mmap, stream_id: int) -> int:
    """Return where the first packet of a stream begins, or of one inside private stream 1."""
    if stream_id >= 0x100:
        return data.find(b"\x00\x00\x01" + bytes([stream_id & 255]))
    place = data.find(PRIVATE_STREAM)
    while place >= 0:
        header = data[place + PACKET_START : place + PACKET_START + LONGEST_HEADER]
        if _behind_header(header) == stream_id & 255:
            return place
        place = data.find(PRIVATE_STREAM, place + 4)
    return -1


def _behind_header(packet: bytes) -> int:
    """Return the first byte that a packet of a program stream carries; -1 if it carries none.

    Of MPEG-2 the header says its length; of MPEG-1 it has stuffing, the size of a buffer, and times.
    """
    if packet[:1] and packet[0] >> 6 == 2:
        place = 3 + packet[2] if len(packet) > 2 else len(packet)
    else:
        place = len(packet) - len(packet.lstrip(b"\xff"))
        if packet[place : place + 1] and packet[place] >> 6 == 1:
            place += 2
        if place < len(packet):
            place += MPEG1_TIMES.get(packet[place] >> 4, 1)
    return packet[place] if place < len(packet) else -1


def _first_tag(data: mmap, kind: int) -> int:
    """Return where the first tag of a type begins."""
    place = FLV_HEADER
    while place + FLV_TAG_HEADER <= len(data):
        if data[place] & 31 == kind:
            return place
        size = int.from_bytes(data[place + 1 : place + 4], "big")
        place += FLV_TAG_HEADER + size + FLV_TAG_TRAILER
    return -1
