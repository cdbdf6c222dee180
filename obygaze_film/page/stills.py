"""Read pictures of a film's segments as data URLs for its page; only on request."""

import base64
import struct
from pathlib import Path
from typing import Final

from obygaze_film.errors import FilmError

WIDEST: Final = 160
"""Maximum width of a picture in pixels."""

KINDS: Final = {".jpg": "jpeg", ".jpeg": "jpeg", ".png": "png"}


def read_stills(folder: Path, movie: str) -> dict[int, str]:
    """Read the pictures of a film's segments from `folder/MOVIE/RANK.jpg` (or .png).

    Returns
    -------
    dict of int to str
        Data URLs by rank of the segment.

    Raises
    ------
    FilmError
        The folder is missing, or a file is wider than `WIDEST` or not a picture; names the file.
    """
    place = folder / movie
    if not place.is_dir():
        raise FilmError(
            f"{place}: no such folder of pictures: expected RANK.jpg or RANK.png of each segment in it"
        )
    found = {}
    for path in sorted(place.iterdir()):
        kind = KINDS.get(path.suffix.lower())
        if kind is None or not path.stem.isdecimal():
            continue
        data = path.read_bytes()
        width = _width(data, kind)
        if width is None:
            raise FilmError(f"{path}: not a {kind.upper()} picture")
        if width > WIDEST:
            raise FilmError(f"{path}: {width} pixels wide: make it at most {WIDEST}")
        found[int(path.stem)] = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    if not found:
        raise FilmError(f"{place}: no picture named by a segment's rank, such as 1.jpg")
    return found


def _width(data: bytes, kind: str) -> int | None:
    """Read a picture's width from its header; None if it is not of this kind."""
    if kind == "png":
        return int.from_bytes(data[16:20]) if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) > 24 else None
    place = 2
    if data[:2] != b"\xff\xd8":
        return None
    # Segments of a JPEG: marker, length, content; those from SOF0 to SOF15 hold the size (ITU T.81, B.2.2).
    while place + 9 < len(data) and data[place] == 0xFF:
        marker, length = data[place + 1], struct.unpack(">H", data[place + 2 : place + 4])[0]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            return int(struct.unpack(">H", data[place + 7 : place + 9])[0])
        place += 2 + length
    return None
