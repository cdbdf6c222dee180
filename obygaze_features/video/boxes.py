"""Find in a file's bytes what FFmpeg leaves out unsaid: a second file, odd edit lists, scrambled packets."""

import re
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from obygaze_features.door import open_regular

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
"""How streams begin, whose own packets begin so too."""
MISREAD = {"mxf", "nut", "wtv", "rm"}
OWN_HEAD = 14
"""Formats whose second file is read with times of the first; bytes with which a file of them begins."""
SCRAMBLED: Final = re.compile(
    rb"(?=G(?:.{187}G){7})(?:G..[\x00-\x3f].{184})*+G..[\x40-\xff]"
    rb"|.{4}(?=G(?:.{191}G){7})(?:G..[\x00-\x3f].{188})*+G..[\x40-\xff]",
    re.DOTALL,
)
"""How transport streams begin of which packets are encrypted."""
SCRAMBLED_INSIDE: Final = re.compile(SCRAMBLED.pattern.replace(b"*+", b"{0,8}+"), re.DOTALL)
"""The same somewhere in a stream: each packet begins one, so few need to be followed."""
PACK: Final = b"\x00\x00\x01\xba"
"""How a program stream begins."""
SCRAMBLED_PICTURE: Final = re.compile(rb"\x00\x00\x01[\xe0-\xef]..[\x90-\xbf]", re.DOTALL)
"""A packet of pictures that is encrypted, as CSS does on discs."""
TRANSPORT_BYTES = 1 << 20
"""Bytes of a transport or program stream that are searched for encrypted packets."""

ONCE = (b"ftyp", b"moov")

STATED_WITHIN = 1 << 16
STATED_BYTES = re.compile(
    rb"FLV\x01.*?\x00\x08filesize\x00(?P<flv>.{8})"
    rb"|\x30\x26\xb2\x75.*?\xa1\xdc\xab\x8c\x47\xa9\xcf\x11\x8e\xe4\x00\xc0\x0c\x20\x53\x65.{24}(?P<asf>.{8}).{40}[\x00\x02]"
    rb"|\x1aE\xdf\xa3.{5,60}?\x18\x53\x80\x67\x01(?P<matroska>(?!\xff{7}).{7})"
    rb"|\x06\x0e\x2b\x34\x02\x05\x01.\x0d\x01\x02\x01\x01\x02.{2}(?:[\x00-\x7f]|\x83.{3}|\x84.{4}|\x88.{8}).{24}(?P<mxf>.{8})",
    re.DOTALL,
)

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
"""How the files of a format begin that state a rate; bare streams state none, or one that is not kept."""

BLOCK_HEAD: Final = 4
"""Bytes of a block of Matroska before its picture: track, time, flags (RFC 9559, 10.1)."""


def second_file(path: Path, formats: Collection[str], ends: Sequence[int]) -> int:
    """Return where a second file begins that was joined to the first one; 0 if there is none.

    Parameters
    ----------
    path
        The file.
    formats
        FFmpeg's names of its format.
    ends
        Where the packets that were read end, as far as it is known.
    """
    with open_regular(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        if "mov" in formats:
            box = _odd_box(data)
            if box is None:
                return 0
            if box.is_second_file:
                return box.start
            start = box.start
        else:
            start = _end_of_first(sorted(ends), formats, len(data))
        if MISREAD & {*formats}:
            again = data.find(data[:OWN_HEAD], 1)
            if again > 0:
                return again
        heads_of_others = [head for name, head in STREAM_HEADS.items() if name not in formats]
        any_head = re.compile(b"|".join([SECOND_FILE.pattern, *heads_of_others]), re.DOTALL)
        match = any_head.search(data, start)
        return match.start() if match else 0


def _end_of_first(ends: Sequence[int], formats: Collection[str], size: int) -> int:
    """Return from where a second file is looked for; of IVF it is read as one last picture."""
    if not ends:
        return size
    if "ivf" in formats and len(ends) > 1:
        return ends[-2]
    return ends[-1]


class _OddBox(NamedTuple):
    """Where the boxes of a file are not those of one file any more."""

    start: int
    is_second_file: bool


def _odd_box(data: mmap) -> _OddBox | None:
    """Find a box that a file has once, for the second time, or what is no box; None if there is neither."""
    kinds = set[bytes]()
    for head, _, kind in boxes(data, 0, len(data)):
        if kind in ONCE and kind in kinds:
            return _OddBox(head - 8, is_second_file=True)
        if not kind.isalnum():
            return _OddBox(head - 8, is_second_file=False)
        kinds.add(kind)
    return None


def heads(path: Path, between: Iterable[tuple[int, int]]) -> list[tuple[int, bytes]]:
    """Return where a file begins between two blocks of joined Matroska, each, and its bytes up to the second.

    FFmpeg reads it as the rest of a block that was cut, and decodes what follows with the settings of the
    first file: to other pictures, and without an error at times. 0 where no file begins.
    """
    with open_regular(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        matches = [(SECOND_FILE.search(data, start, end), end) for start, end in between]
        return [(head.start(), data[head.start() : end]) if head else (0, b"") for head, end in matches]


def stated_bytes(path: Path) -> float:
    """Return how many bytes a file of FLV, ASF, MXF or Matroska says that it has; 0 if it does not say.

    Sources: FLV's onMetaData (a double); ASF's file properties object, unless it was broadcast; where the
    footer of MXF begins (SMPTE 377-1, 7.1); the size of Matroska's segment, unless it is not known.
    """
    with open_regular(path) as file:
        head = file.read(STATED_WITHIN)
    if match := STATED_BYTES.match(head):
        kind = match.lastgroup or ""
        if kind == "matroska":
            return float(match.end() + int.from_bytes(match[kind], "big"))
        return float(struct.unpack({"flv": ">d", "asf": "<Q", "mxf": ">Q"}[kind], match[kind])[0])
    return 0.0


def ordered_chapters(path: Path, first: int, after: int) -> bool:
    """Return whether chapters of Matroska have an order of their own; they lie before or after the blocks."""
    with open_regular(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        return bool(ORDERED.search(data, 0, first) or ORDERED.search(data, after))


def states_rate(path: Path, name: str) -> bool:
    """Return whether a file states frames a second, where FFmpeg takes 25 unsaid if it does not.

    Sources: YUV4MPEG2; AVI's stream header (scale and rate); AV1's stream of open bitstream units.
    """
    if name not in RATES:
        return True
    with open_regular(path) as file:
        return RATES[name].match(file.read(STATED_WITHIN)) is not None


def scrambled(path: Path, start: int = 0) -> bool:
    """Return whether packets of an MPEG transport or program stream are encrypted, from a byte of it on.

    Source: ISO/IEC 13818-1, 2.4.3.2 and 2.4.3.7. Packets are followed up to where bytes were lost or joined.
    """
    with open_regular(path) as file:
        file.seek(start)
        content = file.read(TRANSPORT_BYTES)
    pack = content.find(PACK) if start else 0
    if content.startswith(PACK, pack) and SCRAMBLED_PICTURE.search(content, pack + len(PACK)):
        return True
    return (SCRAMBLED_INSIDE.search(content) if start else SCRAMBLED.match(content)) is not None


def boxes(data: mmap, start: int, end: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield where the content of each box begins and ends, and its type (ISO/IEC 14496-12, 4.2)."""
    while start + 8 <= end:
        size = int.from_bytes(data[start : start + 4], "big")
        kind = data[start + 4 : start + 8]
        head = 8
        if size == 1:
            size = int.from_bytes(data[start + 8 : start + 16], "big")
            head = 16
        after = start + size if size else end
        if after < start + head:
            return
        yield start + head, min(after, end), kind
        start = after


def odd_edits(path: Path, track: int) -> bool:
    """Return whether a track's edit list holds a picture, changes the rate, or leaves a hole between edits.

    FFmpeg plays every edit at the usual rate, one after the other (ISO/IEC 14496-12, 8.6.6).
    """
    with open_regular(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        for trak in _inside(data, [(0, len(data))], b"moov", b"trak"):
            head = next(_inside(data, [trak], b"tkhd"), (0, 0))[0]
            version_end = head + (20 if data[head : head + 1] == b"\x01" else 12)
            if int.from_bytes(data[version_end : version_end + 4], "big") == track:
                return any(_is_odd(data[start:end]) for start, end in _inside(data, [trak], b"edts", b"elst"))
    return False


def _inside(data: mmap, outer: Iterable[tuple[int, int]], *kinds: bytes) -> Iterator[tuple[int, int]]:
    """Yield the boxes of a type inside others, which is the last of the types on the way to them."""
    for start, end in outer:
        places = ((head, after) for head, after, kind in boxes(data, start, end) if kind == kinds[0])
        yield from _inside(data, places, *kinds[1:]) if kinds[1:] else places


def _is_odd(edits: bytes) -> bool:
    """Return whether an edit list has another rate than 1 or a hole (media time -1)."""
    size = 8 if edits[:1] == b"\x01" else 4
    kind = np.dtype([("length", f">i{size}"), ("media", f">i{size}"), ("rate", ">i4")])
    content = edits[8:]  # behind version, flags, and the number of edits
    rows = np.frombuffer(content, kind, len(content) // kind.itemsize)
    has_other_rate = (rows["rate"] != 1 << 16).any()  # 16 bits are behind the point
    has_hole = (rows["media"][1:] == -1).any()
    return bool(has_other_rate or has_hole)
