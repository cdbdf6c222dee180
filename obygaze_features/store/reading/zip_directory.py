"""The directory of a store's zip, written anew from what was read of it: any other byte in it is foreign.

`zipfile` reads a directory leniently: lengths in its last record may promise more than there is. Structures:
APPNOTE.TXT 6.3.10 (PKWARE), 4.3.12 to 4.3.16.
"""

import struct
import zipfile
from collections.abc import Sequence

ZIP64 = 0xFFFFFFFF
"""Stands where the number itself lies in the extra field."""
_UTF8 = 0x800
_DATE = 33  # 1 January 1980; the time is 0


def directory_bytes(members: Sequence[zipfile.ZipInfo], start: int) -> bytes:
    """Write the directory that begins at `start`, and the end of the file, as `zipfile` does.

    Nothing is given where what was read cannot be written: no such directory is right.
    """
    try:
        records = b"".join(map(_record, members))
    except (struct.error, UnicodeEncodeError):
        return b""
    numbers = (len(members), len(members), len(records), start)
    end = b""
    if len(members) > 0xFFFF or start > zipfile.ZIP64_LIMIT or len(records) > zipfile.ZIP64_LIMIT:
        end = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, *numbers)
        end += struct.pack("<4sLQL", b"PK\x06\x07", 0, start + len(records), 1)
    counts, places = (min(len(members), 0xFFFF),) * 2, (min(len(records), ZIP64), min(start, ZIP64))
    return records + end + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, *counts, *places, 0)


def _record(member: zipfile.ZipInfo) -> bytes:
    name = member.orig_filename.encode("utf-8" if member.flag_bits & _UTF8 else "cp437")
    sizes, offset = (member.compress_size, member.file_size), member.header_offset
    large: tuple[int, ...] = ()
    if max(sizes) > zipfile.ZIP64_LIMIT:
        large, sizes = sizes[::-1], (ZIP64, ZIP64)
    if offset > zipfile.ZIP64_LIMIT:
        large, offset = (*large, offset), ZIP64
    extra = struct.pack(f"<2H{len(large)}Q", 1, 8 * len(large), *large) if large else b""
    fields = (
        *(member.create_version, member.create_system, member.extract_version, member.reserved),
        *(member.flag_bits, member.compress_type, 0, _DATE, member.CRC, *sizes),
        *(len(name), len(extra), 0, member.volume, member.internal_attr, member.external_attr, offset),
    )
    return struct.pack("<4s4B4H3L5H2L", b"PK\x01\x02", *fields) + name + extra
