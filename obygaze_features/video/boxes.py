"""Find in the bytes of a file what FFmpeg ignores silently.

That is a second file joined to the first, odd edit lists and orders of chapters, scrambled packets, the
stated length, and whether a rate is stated.
"""

import re
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.untrusted import open_regular

# The first bytes of MP4, Matroska, FLV, ASF, IVF and AVI.
SECOND_FILE = re.compile(
    rb"\x00\x00\x00[\x08-\xff]ftyp|\x1aE\xdf\xa3.{1,60}?(?:matroska|webm)|FLV\x01[\x00-\x05]\x00\x00\x00\x09"
    rb"|\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c|DKIF\x00\x00\x20\x00|RIFF....AVI ",
    re.DOTALL,
)
STREAM_HEADS: Final = {
    "mpegts": rb"G(?:.{187}G){7}|G(?:.{191}G){7}",
    "mpeg": rb"\x00\x00\x01\xba(?:[\x44-\x7f].{8}[\xf8-\xff]\xff{0,7}|[\x21-\x2f].{7})\x00\x00\x01",
}
"""How transport and program streams begin. Every packet of theirs begins so, so they are not looked for in
files of their own format."""
MISREAD = {"mxf", "nut", "wtv", "rm"}
"""Formats of which FFmpeg reads a second file with the times of the first."""
OWN_HEAD_BYTES = 14
"""Bytes with which each file of these formats begins."""
SCRAMBLED: Final = re.compile(
    rb"(?=G(?:.{187}G){7})(?:G..[\x00-\x3f].{184})*+G..[\x40-\xff]"
    rb"|.{4}(?=G(?:.{191}G){7})(?:G..[\x00-\x3f].{188})*+G..[\x40-\xff]",
    re.DOTALL,
)
"""The beginning of a transport stream, with or without time stamps (M2TS), up to an encrypted packet: the
upper two bits of its fourth byte are not 0."""
SCRAMBLED_INSIDE: Final = re.compile(SCRAMBLED.pattern.replace(b"*+", b"{0,8}+"), re.DOTALL)
"""The same from any packet of a stream on. The search tries every packet, so few need to follow each."""
PACK: Final = b"\x00\x00\x01\xba"
"""How a program stream begins."""
SCRAMBLED_PICTURE: Final = re.compile(rb"\x00\x00\x01[\xe0-\xef]..[\x90-\xbf]", re.DOTALL)
"""A packet of pictures that is encrypted, as CSS does on discs."""
TRANSPORT_BYTES = 1 << 20
"""Bytes of a transport or program stream that are searched for encrypted packets."""

BOX_HEAD_BYTES = 8
"""Bytes of the head of a box of MP4: its size and its type."""
LARGE_BOX_HEAD_BYTES = 16
"""Bytes of the head of a box of 4 GB or more, whose size has 8 bytes of its own behind the type."""

SHOWS_NOTHING: Final = -1
"""In place of where an edit of an MP4 begins in its track: it shows nothing, and is a hole."""

ONCE = (b"ftyp", b"moov")
"""Boxes of MP4 that a file has only once."""

STATED_WITHIN = 1 << 16
"""Bytes at the beginning of a file in which it states its length and rate."""
STATED_BYTES = re.compile(
    rb"FLV\x01.*?\x00\x08filesize\x00(?P<flv>.{8})"
    rb"|\x30\x26\xb2\x75.*?\xa1\xdc\xab\x8c\x47\xa9\xcf\x11\x8e\xe4\x00\xc0\x0c\x20\x53\x65.{24}(?P<asf>.{8}).{40}[\x00\x02]"
    rb"|\x1aE\xdf\xa3.{5,60}?\x18\x53\x80\x67\x01(?P<matroska>(?!\xff{7}).{7})"
    rb"|\x06\x0e\x2b\x34\x02\x05\x01.\x0d\x01\x02\x01\x01\x02.{2}(?:[\x00-\x7f]|\x83.{3}|\x84.{4}|\x88.{8}).{24}(?P<mxf>.{8})",
    re.DOTALL,
)

STATED_FORMATS: Final = {"flv": ">d", "asf": "<Q", "mxf": ">Q"}
"""Container -> how its number of bytes is coded, for `struct`."""

ORDERED: Final = re.compile(
    rb"\x10\x43\xa7\x70.{1,8}\x45\xb9.{1,99}?\x45\xdd(?:\x81|\x01\0{6}\x01)\x01", re.DOTALL
)
"""Chapters of Matroska that ask players for an order of their own (RFC 9559, 5.1.7.1.4)."""

RATES: Final = {
    "yuv4mpegpipe": re.compile(rb"YUV4MPEG2[^\n]* F0*[1-9]\d*:0*[1-9]"),
    "avi": re.compile(rb".*?strh.{4}(?:vids|iavs).{16}(?!\0{4}).{4}(?!\0{4})", re.DOTALL),
    "obu": re.compile(rb"(?!)"),
    "mpegvideo": re.compile(rb"(?!)"),
}
"""Format -> how its files begin if they state a rate. `(?!)` matches nothing: bare streams state no rate, or
FFmpeg does not keep it."""

BLOCK_HEAD_BYTES: Final = 4
"""Bytes of a block of Matroska before its picture: track, time, flags (RFC 9559, 10.1)."""


def find_second_file(path: Path, formats: Collection[str], ends: Sequence[int]) -> int:
    """Find a second video file that was appended to a file without remuxing.

    Parameters
    ----------
    path
        The file.
    formats
        FFmpeg's names of its format.
    ends
        Byte positions at which the packets that FFmpeg read end, as far as they are known.

    Returns
    -------
    int
        The byte at which the second file begins; 0 if there is none.
    """
    with open_regular(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        if "mov" in formats:
            return _find_second_file_behind_boxes(data, formats)

        is_read_as_one_file = bool(MISREAD & {*formats})
        if is_read_as_one_file:
            # FFmpeg reads the packets of the second file with those of the first, so it is not known where
            # the packets of the first end. But a second file of the same format begins with the same bytes.
            first_bytes = data[:OWN_HEAD_BYTES]
            second_start = data.find(first_bytes, 1)
            if second_start > 0:
                return second_start

        search_start = _search_start(sorted(ends), formats, len(data))
        return _find_any_head(data, search_start, formats)


def _find_second_file_behind_boxes(data: mmap, formats: Collection[str]) -> int:
    """Return the byte at which a second file begins that was appended to an MP4 file; 0 if there is none.

    The boxes of which an MP4 file consists tell where it ends: before a second box of a kind that a file has
    only once, or before bytes whose type is not made of letters and digits, so that they are no box.
    """
    kinds_before = set[bytes]()
    for box in boxes(data, start=0, end=len(data)):
        if box.kind in ONCE and box.kind in kinds_before:
            return box.start
        if not box.kind.isalnum():
            return _find_any_head(data, box.start, formats)
        kinds_before.add(box.kind)
    return 0


def _find_any_head(data: mmap, search_start: int, formats: Collection[str]) -> int:
    """Return the first position from a byte on at which a video file of any format seems to begin; 0 if none.

    Parameters
    ----------
    data
        The file in which another one is searched for.
    search_start
        The byte from which on it is searched for.
    formats
        FFmpeg's names of the format of the first file.
    """
    heads_of_streams = [head for name, head in STREAM_HEADS.items() if name not in formats]
    any_head = re.compile(b"|".join([SECOND_FILE.pattern, *heads_of_streams]), re.DOTALL)
    match = any_head.search(data, search_start)
    return match.start() if match else 0


def _search_start(ends: Sequence[int], formats: Collection[str], size: int) -> int:
    """Return the byte from which on a second file is searched for: behind the last packet of the first.

    Parameters
    ----------
    ends
        Bytes at which the packets of the file end, rising.
    formats
        FFmpeg's names of its format.
    size
        Bytes of the file.
    """
    if not ends:
        return size
    if "ivf" in formats and len(ends) > 1:
        return ends[-2]  # FFmpeg reads a second file of IVF as one last picture
    return ends[-1]


class FileHead(NamedTuple):
    """Where a file begins inside another one, and its bytes up to the first block; 0 and b"" for none."""

    start: int
    content: bytes


def find_file_heads(path: Path, between: Iterable[tuple[int, int]]) -> list[FileHead]:
    """Search for headers of further files inside a Matroska file, to which these were appended byte by byte.

    FFmpeg takes such a header for the end of a block (picture) that was cut off. It decodes the blocks behind
    it with the codec settings of the first file, which gives other pictures, sometimes without an error.

    Parameters
    ----------
    path
        The file.
    between
        For each place where a header may be, the bytes at which the last block before it and the first block
        behind it begin.

    Returns
    -------
    list of FileHead
        For each place, the position and the bytes of the header; position 0 if there is none.
    """
    file_heads = []
    with open_regular(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        for start, end in between:
            match = SECOND_FILE.search(data, start, end)
            if match:
                file_heads.append(FileHead(match.start(), data[match.start() : end]))
            else:
                file_heads.append(FileHead(start=0, content=b""))
    return file_heads


def stated_bytes(path: Path) -> float:
    """Return the size in bytes that the header of an FLV, ASF, MXF or Matroska file states; 0 if none.

    A smaller file is cut off. FLV states it in onMetaData (as a double), ASF in the file properties object
    (unless it was broadcast), MXF as the position of the footer (SMPTE 377-1, 7.1), and Matroska as the size
    of the segment (unless it is unknown).
    """
    with open_regular(path) as file:
        head = file.read(STATED_WITHIN)
    match = STATED_BYTES.match(head)
    if match is None:
        return 0.0
    container = match.lastgroup or ""  # the one alternative of the pattern that matched
    number = match[container]
    if container == "matroska":
        segment_start = match.end()  # the segment begins behind its size
        return float(segment_start + int.from_bytes(number, "big"))
    number_format = STATED_FORMATS[container]
    (n_bytes,) = struct.unpack(number_format, number)
    return float(n_bytes)


def has_ordered_chapters(path: Path, first: int, last: int) -> bool:
    """Return whether a Matroska file has ordered chapters, which players show in another order than stored.

    Parameters
    ----------
    path
        The file.
    first, last
        Bytes at which its first and last block begin: chapters lie before or after the blocks.
    """
    with open_regular(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        return bool(ORDERED.search(data, 0, first) or ORDERED.search(data, last))


def states_rate(path: Path, name: str) -> bool:
    """Return whether a file states its frames a second; if not, FFmpeg silently takes 25.

    Sources: YUV4MPEG2; AVI's stream header (scale and rate); AV1's stream of open bitstream units.

    Parameters
    ----------
    path
        The file.
    name
        FFmpeg's name of its format.
    """
    if name not in RATES:
        return True
    with open_regular(path) as file:
        return RATES[name].match(file.read(STATED_WITHIN)) is not None


def is_scrambled(path: Path, start: int = 0) -> bool:
    """Return whether packets of an MPEG transport or program stream are encrypted (scrambled).

    The packets in the `TRANSPORT_BYTES` from `start` on are looked at. Where bytes are lost, those behind are
    not looked at. Source: ISO/IEC 13818-1, 2.4.3.2 and 2.4.3.7.

    Parameters
    ----------
    path
        The file.
    start
        The byte from which on packets are read; it may lie inside a packet.
    """
    with open_regular(path) as file:
        file.seek(start)
        content = file.read(TRANSPORT_BYTES)
    if start == 0:
        return _has_scrambled_picture(content, pack_start=0) or SCRAMBLED.match(content) is not None
    # Inside of a stream, the next pack or packet is searched for.
    pack_start = content.find(PACK)
    return _has_scrambled_picture(content, pack_start) or SCRAMBLED_INSIDE.search(content) is not None


def _has_scrambled_picture(content: bytes, pack_start: int) -> bool:
    """Return whether bytes are of an MPEG program stream, and a packet of pictures in it is encrypted.

    Parameters
    ----------
    content
        Bytes of a file.
    pack_start
        Where a pack may begin in them; a program stream is a sequence of packs. -1 if there is none.
    """
    is_program_stream = content.startswith(PACK, pack_start)
    if not is_program_stream:
        return False
    return SCRAMBLED_PICTURE.search(content, pack_start + len(PACK)) is not None


class Box(NamedTuple):
    """A box of an MP4 file: its size (4 bytes), its type (4 bytes), and its content.

    Parameters
    ----------
    start
        The byte at which the box begins, with its size.
    content_start
        The byte at which its content begins.
    end
        The byte behind the box, by the size that it states. Of a file that is cut off, it is beyond its end.
    kind
        Its type, such as b"moov".
    """

    start: int
    content_start: int
    end: int
    kind: bytes


def boxes(data: mmap, start: int, end: int) -> Iterator[Box]:
    """Yield the boxes of an MP4 file, as far as each follows another (ISO/IEC 14496-12, 4.2).

    Parameters
    ----------
    data
        The file.
    start, end
        The bytes between which boxes follow each other.
    """
    box_start = start
    while box_start + BOX_HEAD_BYTES <= end:
        content_start = box_start + BOX_HEAD_BYTES
        size = int.from_bytes(data[box_start : box_start + 4], "big")
        kind = data[box_start + 4 : content_start]
        if size == 1:  # a size of 8 bytes follows
            content_start = box_start + LARGE_BOX_HEAD_BYTES
            size = int.from_bytes(data[box_start + BOX_HEAD_BYTES : content_start], "big")
        box_end = box_start + size if size else end  # a size of 0: up to the end
        if box_end < content_start:  # damaged
            return
        yield Box(box_start, content_start, box_end, kind)
        box_start = box_end


class Edits(NamedTuple):
    """What the edit list of an MP4 track asks of players (ISO/IEC 14496-12, 8.6.6).

    Parameters
    ----------
    n_shown
        How many parts of the track it shows, one after the other.
    are_unsupported
        Whether it freezes a picture, changes the rate, or leaves a hole. FFmpeg does not follow these edits:
        it plays all of them at the usual rate, one after the other.
    """

    n_shown: int
    are_unsupported: bool


def find_edits(path: Path, track: int) -> Edits:
    """Read the edit list of an MP4 track, which says which parts of the track a player shows.

    Parameters
    ----------
    path
        The file.
    track
        Number of the track.
    """
    n_shown = 0
    are_unsupported = False
    with open_regular(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        for track_box in _boxes_at(data, (0, len(data)), b"moov", b"trak"):
            if _track_id(data, track_box) != track:
                continue
            for start, end in _boxes_at(data, track_box, b"edts", b"elst"):
                rows = _rows_of_edits(data[start:end])
                n_shown += int((rows["media"] != SHOWS_NOTHING).sum())
                are_unsupported = are_unsupported or _are_unsupported(rows)
            break
    return Edits(n_shown, are_unsupported)


def _track_id(data: mmap, track_box: tuple[int, int]) -> int:
    """Return the number of a track of an MP4 file from its header (ISO/IEC 14496-12, 8.3.2).

    Parameters
    ----------
    data
        The file.
    track_box
        Start and end of the content of the track's box.
    """
    no_header = (0, 0)
    header_start, _ = next(_boxes_of_kind(data, track_box, b"tkhd"), no_header)
    has_long_times = data[header_start : header_start + 1] == b"\x01"  # version 1
    time_bytes = 8 if has_long_times else 4
    # Before the number are 4 bytes of version and flags, and the times of creation and of the last change.
    id_start = header_start + 4 + 2 * time_bytes
    return int.from_bytes(data[id_start : id_start + 4], "big")


def _boxes_at(
    data: mmap, outer: tuple[int, int], outer_kind: bytes, inner_kind: bytes
) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the content of the boxes of an MP4 file at a path of two types, as moov/trak.

    Parameters
    ----------
    data
        The file.
    outer
        Start and end of the content in which the path begins.
    outer_kind, inner_kind
        Types of the boxes in this content, and of the boxes in these.
    """
    for outer_box in _boxes_of_kind(data, outer, outer_kind):
        yield from _boxes_of_kind(data, outer_box, inner_kind)


def _boxes_of_kind(data: mmap, outer: tuple[int, int], wanted_kind: bytes) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the content of the boxes of one type inside of another box of an MP4 file."""
    outer_start, outer_end = outer
    for box in boxes(data, outer_start, outer_end):
        if box.kind == wanted_kind:
            yield box.content_start, min(box.end, outer_end)


def _rows_of_edits(edits: bytes) -> NDArray[np.void]:
    """Return the edits of a list [N]: their `length`, where they begin in the `media`, and their `rate`.

    Parameters
    ----------
    edits
        Content of the box `elst` of an MP4 track.
    """
    has_long_times = edits[:1] == b"\x01"  # version 1
    time_bytes = 8 if has_long_times else 4
    # An edit is two big-endian numbers of time (its length, and where it begins in the track), and its rate.
    row = np.dtype([("length", f">i{time_bytes}"), ("media", f">i{time_bytes}"), ("rate", ">i4")])
    content = edits[8:]  # behind version, flags, and the number of edits
    n_rows = len(content) // row.itemsize
    return np.frombuffer(content, row, n_rows)


def _are_unsupported(edits: NDArray[np.void]) -> bool:
    """Return whether an edit list of an MP4 track asks for more than to show parts one after the other.

    An edit shows a part of the track. Not supported are edits with a rate other than 1, which slow down,
    speed up or freeze (0) the pictures; and edits that show nothing for a time (a hole), but for the first:
    a hole at the beginning only delays the track.

    Parameters
    ----------
    edits
        The list, [N], as `_rows_of_edits` reads it (ISO/IEC 14496-12, 8.6.6).
    """
    rate_of_1 = 1 << 16  # 16 of the 32 bits of a rate are behind the point
    has_other_rate = (edits["rate"] != rate_of_1).any()
    shows_nothing = edits["media"] == SHOWS_NOTHING  # `media`: where the part begins in the track
    has_hole_behind_first = shows_nothing[1:].any()
    return bool(has_other_rate or has_hole_behind_first)
