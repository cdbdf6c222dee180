"""Tell from its last element whether a file was cut off, where its container states no length.

MP4 in fragments, Ogg, and Matroska of unknown size are written while a film is recorded, so their headers
cannot say how long they are. But each element (box, page, block) states its own size: a file that ends inside
its last element was cut off. GIF states no sizes, but has a byte behind its last picture.
"""

import re
from collections.abc import Callable, Collection
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final, NamedTuple

from obygaze_features.untrusted import open_regular
from obygaze_features.video.boxes import boxes

FRAGMENT_BOXES: Final = (b"moof", b"mdat")
"""Types of the boxes of a fragment: the list of its packets, and the packets."""
FRAGMENT: Final = re.compile(rb"moof\x00\x00\x00\x10mfhd")
"""Type of the box with which a fragment of MP4 begins, and the head of the first box in it."""

OGG_PAGE: Final = b"OggS\x00"
"""How a page of Ogg begins (RFC 3533, 6)."""
OGG_HEAD_BYTES: Final = 27
"""Bytes of the head of a page up to the list of the sizes of its segments; the last one is their number."""
LONGEST_OGG_PAGE: Final = OGG_HEAD_BYTES + 255 + 255 * 255

CLUSTER: Final = b"\x1f\x43\xb6\x75"
"""Id of a cluster, which holds the blocks (packets) of some seconds of Matroska (RFC 9559, 5.1.3)."""
IN_CLUSTER: Final = frozenset({b"\xe7", b"\xa7", b"\xab", b"\xa3", b"\xa0", b"\xec", b"\xbf"})
"""Ids of what is inside of a cluster: its time, place and size, blocks, and what any element may have."""
RIFF_HEAD_BYTES: Final = 8
"""Bytes of the head of a chunk of AVI: its type and its size."""

GIF_TRAILER: Final = 0x3B
GIF_EXTENSION: Final = 0x21
GIF_PICTURE: Final = 0x2C
GIF_HEAD_BYTES: Final = 13
"""Bytes of the head of a GIF before its table of colours (GIF89a, 17 and 18)."""
GIF_PICTURE_HEAD_BYTES: Final = 10
"""Bytes of the head of a picture in it before its table of colours (GIF89a, 20)."""


def missing_bytes(path: Path, formats: Collection[str]) -> int:
    """Return how many bytes a file lacks of its last box (MP4 in fragments), page (Ogg) or block (Matroska).

    0 if it ends with a whole one, and for other formats.

    Parameters
    ----------
    path
        The file.
    formats
        FFmpeg's names of its format.
    """
    end_of_last: Callable[[mmap], int] | None = None
    if "mov" in formats:
        end_of_last = _end_of_last_fragment
    elif "ogg" in formats:
        end_of_last = _end_of_last_page
    elif "matroska" in formats:
        end_of_last = _end_of_last_block
    if end_of_last is None:
        return 0
    with open_regular(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        return max(end_of_last(data) - len(data), 0)


def find_damage_before_fragments(path: Path) -> int:
    """Return the byte at which the boxes of an MP4 file are damaged, if fragments follow that are not read.

    FFmpeg goes from box to box by their sizes, and stops at a byte where there is no box. An MP4 in fragments
    may have more pictures behind it. 0 if the boxes are not damaged, or if no fragment follows.
    """
    with open_regular(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        walk = _walk_boxes(data)
        is_damaged = walk.end < len(data)  # boxes end before the file does
        if not walk.has_fragments or not is_damaged:
            return 0
        has_fragment_behind = FRAGMENT.search(data, walk.end) is not None
        return walk.end if has_fragment_behind else 0


def find_end_of_gif(path: Path) -> int:
    """Return the first byte of a GIF's block that is damaged or not all there; 0 if the GIF is whole.

    A GIF is a row of blocks with a trailer at the end. Without the trailer it counts as whole too, if it ends
    where a block ends.
    """
    with open_regular(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        # The head ends with flags and two more bytes; the table of colours follows, if the flags say so.
        flags_of_colours = GIF_HEAD_BYTES - 3
        start = GIF_HEAD_BYTES + _n_bytes_of_colours(data, flags_of_colours)
        while start < len(data) and data[start] != GIF_TRAILER:
            block_end = _end_of_gif_block(data, start)
            if block_end == 0 or block_end > len(data):
                return start
            start = block_end
    return 0


def _end_of_gif_block(data: mmap, start: int) -> int:
    """Return the byte behind the block of a GIF that begins at a byte; 0 if none begins there.

    It is beyond the end of the file if the block is cut off. There are two kinds of blocks (GIF89a, 20 to
    26), each of which ends with sub-blocks of data:

        extension: GIF_EXTENSION, label, sub-blocks
        picture: head of 10 bytes (the first is GIF_PICTURE, the last has flags), table of colours if the
            flags say so, size of codes (1 byte), sub-blocks
    """
    if data[start] == GIF_EXTENSION:
        label = start + 1
        first_sub_block = label + 1
    elif data[start] == GIF_PICTURE:
        end_of_head = start + GIF_PICTURE_HEAD_BYTES
        flags = end_of_head - 1
        size_of_codes = end_of_head + _n_bytes_of_colours(data, flags)
        first_sub_block = size_of_codes + 1
    else:
        return 0
    # A sub-block is its number of bytes (1 byte) and these. One of 0 bytes is the last.
    sub_block = first_sub_block
    while sub_block < len(data) and data[sub_block] > 0:
        sub_block += 1 + data[sub_block]
    return sub_block + 1


def _n_bytes_of_colours(data: mmap, flags: int) -> int:
    """Return the bytes of a table of colours in a GIF, by the flags at a byte; 0 if there is none."""
    if flags >= len(data):
        return 0
    has_table = bool(data[flags] & 0x80)
    exponent = data[flags] & 0x07
    return 3 * (2 << exponent) if has_table else 0


def ends_as_riff(path: Path) -> bool:
    """Return whether an AVI file has all bytes of its RIFF chunks, by the sizes that they state.

    A file begins with such a chunk; a large one has several, one behind the other (OpenDML, "AVIX"). A file
    that ends before its last chunk does was cut off; further bytes behind that chunk do no harm. A size of 0
    is that of a recording that was not finished.
    """
    with open_regular(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        start = 0  # of the next chunk, if there is one
        while data[start : start + 4] == b"RIFF":
            size = int.from_bytes(data[start + 4 : start + RIFF_HEAD_BYTES], "little")
            if size == 0:
                return False
            start += RIFF_HEAD_BYTES + size
        end_of_last_chunk = start
        has_chunks = end_of_last_chunk > 0
        return has_chunks and end_of_last_chunk <= len(data)


class _BoxWalk(NamedTuple):
    """How far the boxes of an MP4 file follow each other.

    Parameters
    ----------
    end
        The byte behind the last box, by the size that it states; or the byte at which there is no box.
    has_fragments
        Whether boxes of fragments are among them.
    last_kind
        Type of the last box.
    """

    end: int
    has_fragments: bool
    last_kind: bytes


def _walk_boxes(data: mmap) -> _BoxWalk:
    """Go from box to box of an MP4 file, to its end or to bytes that are no box (ISO/IEC 14496-12, 4.2)."""
    end = 0
    has_fragments = False
    last_kind = b""
    for box in boxes(data, start=0, end=len(data)):
        if not box.kind.isalnum():
            break
        has_fragments = has_fragments or box.kind == b"moof"
        last_kind = box.kind
        end = box.end
    return _BoxWalk(end, has_fragments, last_kind)


def _end_of_last_fragment(data: mmap) -> int:
    """Return the byte behind the last fragment of an MP4 file, as its boxes state it; 0 if it has none.

    A file that is cut off ends before this byte. The last box may also be an index, which is cut off without
    loss of a picture: for a file whose last box is none of a fragment, 0 is returned.
    """
    walk = _walk_boxes(data)
    is_fragment_last = walk.has_fragments and walk.last_kind in FRAGMENT_BOXES
    return walk.end if is_fragment_last else 0


def _end_of_last_page(data: mmap) -> int:
    """Return the byte behind the last page of an Ogg file, as its head states it; 0 if there is no page.

    A page is a head, a list with the size of each of its segments (one byte each), and the segments. The last
    byte of the head is the number of segments (RFC 3533, 6). If the file ends inside the head, the byte
    behind the head is returned: it is beyond the end of the file, which shows that the page is cut off.
    """
    search_start = max(len(data) - LONGEST_OGG_PAGE, 0)
    page_start = data.rfind(OGG_PAGE, search_start)
    if page_start < 0:
        return 0
    sizes_start = page_start + OGG_HEAD_BYTES
    is_cut_off_in_head = sizes_start > len(data)
    if is_cut_off_in_head:
        return sizes_start
    last_byte_of_head = sizes_start - 1
    n_segments = data[last_byte_of_head]
    content_start = sizes_start + n_segments
    segment_sizes = data[sizes_start:content_start]
    return content_start + sum(segment_sizes)


def _end_of_last_block(data: mmap) -> int:
    """Return the byte behind the last block of Matroska, as it states it; 0 if it is not known.

    Blocks (pictures) are elements inside of a cluster, which is an element, too. The elements are followed
    from the last cluster on, each by its size. If the cluster states its size, that leads behind its last
    block at once. If it does not, as in a recording, its content is followed element by element.

    What comes behind a cluster is an index or tags. If these are cut off, no picture is missing: so the
    search ends there.
    """
    start = data.rfind(CLUSTER)  # -1 if there is none, which is returned
    while 0 <= start < len(data):
        element = _read_element_head(data, start)
        if element is None:  # cut off inside of its head, or no element
            return 0
        is_of_cluster = element.id == CLUSTER or element.id in IN_CLUSTER
        if not is_of_cluster:
            return start
        start = element.content_start  # of a cluster without a size, its first element begins there
        if element.size is not None:
            start += element.size
    return start


class _ElementHead(NamedTuple):
    """The head of an element of Matroska: its id, where its content begins, its size (None if unknown)."""

    id: bytes
    content_start: int
    size: int | None


def _read_element_head(data: mmap | bytes, start: int) -> _ElementHead | None:
    r"""Read the head of an element of Matroska: its id and its size, each of 1 to 8 bytes (RFC 8794, 4 to 6).

    None if the file ends inside of it, or if the bytes are none.

    Examples
    --------
    Void, an element whose id is 0xEC, of the largest size that fits one byte, and of one that is unknown.

    >>> _read_element_head(bytes([0xEC, 0b1111_1110]), 0)
    _ElementHead(id=b'\xec', content_start=2, size=126)
    >>> _read_element_head(bytes([0xEC, 0b1111_1111]), 0)
    _ElementHead(id=b'\xec', content_start=2, size=None)
    >>> _read_element_head(bytes([0xEC, 0b0100_0000]), 0)  # the second byte of the size is missing
    """
    id_bytes = _n_bytes_of_number(data, start)
    size_start = start + id_bytes
    size_bytes = _n_bytes_of_number(data, size_start)
    content_start = size_start + size_bytes
    if id_bytes == 0 or size_bytes == 0 or content_start > len(data):
        return None
    # A size of n bytes has 7 n bits for its value, and a marker bit before them that says how many bytes it
    # has: 1xxxxxxx for one byte, 01xxxxxx xxxxxxxx for two. If all bits of the value are set, the size is
    # unknown, as in a recording.
    n_value_bits = 7 * size_bytes
    all_value_bits = (1 << n_value_bits) - 1
    size = int.from_bytes(data[size_start:content_start], "big") & all_value_bits  # without the marker
    is_unknown = size == all_value_bits
    return _ElementHead(data[start:size_start], content_start, None if is_unknown else size)


def _n_bytes_of_number(data: mmap | bytes, start: int) -> int:
    """Return how many bytes a number of Matroska has, by its first byte; 0 if there is none."""
    if start >= len(data):
        return 0
    n_leading_zeros = 8 - data[start].bit_length()
    return 0 if n_leading_zeros == 8 else 1 + n_leading_zeros
