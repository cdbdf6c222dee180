"""Draw contact sheets: all sampled frames in one small picture, each with its number and time."""

import math
from collections.abc import Sequence
from fractions import Fraction

import av
import numpy as np
from numpy.typing import NDArray

THUMBNAIL_WIDTH = 160
COLUMNS = 8


def thumbnail(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Shrink a frame [H, W, 3] to about the sheet's width by averaging whole blocks of pixels."""
    block = max(1, min(frame.shape[1] // THUMBNAIL_WIDTH, frame.shape[0]))
    height, width = frame.shape[0] // block, frame.shape[1] // block
    blocks = frame[: height * block, : width * block].reshape(height, block, width, block, 3)
    small: NDArray[np.uint8] = np.rint(blocks.mean(axis=(1, 3))).astype(np.uint8)
    return small


def contact_sheet(
    thumbnails: Sequence[NDArray[np.uint8]], index: NDArray[np.int64], time_s: NDArray[np.float64]
) -> bytes:
    """Arrange thumbnails [H, W, 3] in rows, in their order, and encode them as a PNG file.

    The number of each frame, and its time in seconds if known, are written below it, outside the picture.
    """
    labels = [label(_caption(*frame)) for frame in zip(index.tolist(), time_s.tolist(), strict=True)]
    height = max(picture.shape[0] for picture in thumbnails)
    width = max(picture.shape[1] for picture in (*thumbnails, *labels))
    columns = min(COLUMNS, len(thumbnails))
    rows = -(-len(thumbnails) // columns)
    canvas = np.zeros((rows * (height + LINE_HEIGHT), columns * width, 3), np.uint8)
    for number, (picture, words) in enumerate(zip(thumbnails, labels, strict=True)):
        top, left = number // columns * (height + LINE_HEIGHT), number % columns * width
        canvas[top : top + picture.shape[0], left : left + picture.shape[1]] = picture
        canvas[top + height : top + height + LINE_HEIGHT, left : left + words.shape[1]] = words[..., None]
    return encode_png(canvas)


def _caption(index: int, time_s: float) -> str:
    return str(index) if math.isnan(time_s) else f"{index}  {time_s:.3f} s"


def encode_png(picture: NDArray[np.uint8]) -> bytes:
    """Encode RGB uint8 [H, W, 3] as a PNG file."""
    encoder = av.CodecContext.create("png", "w")
    encoder.height, encoder.width, encoder.pix_fmt = picture.shape[0], picture.shape[1], "rgb24"
    encoder.time_base = Fraction(1, 1)
    frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
    return b"".join(bytes(packet) for packet in [*encoder.encode(frame), *encoder.encode(None)])


# --- labels with frame numbers and times, in a font of 3 x 5 dots
# ---------------------------------------------------------------------------
DOT = 2
"""Pixels of a dot's side."""

LINE_HEIGHT = 7 * DOT
"""Pixels of a line: five dots, and one above and below."""

_ROWS = {
    "0": "75557",
    "1": "26227",
    "2": "71747",
    "3": "71717",
    "4": "55711",
    "5": "74717",
    "6": "74757",
    "7": "71222",
    "8": "75757",
    "9": "75717",
    ".": "00002",
    "-": "00700",
    "s": "03636",
    " ": "00000",
}
"""Of each sign its rows from above, the dots of a row as three bits."""


def label(text: str) -> NDArray[np.uint8]:
    """Render digits, point, minus, s and blanks in white on black, as one line [LINE_HEIGHT, W]."""
    dots = np.zeros((LINE_HEIGHT // DOT, 4 * len(text) + 1), np.uint8)
    for column, sign in enumerate(text):
        for row, bits in enumerate(_ROWS[sign], start=1):
            dots[row, 4 * column + 1 : 4 * column + 4] = [255 * (int(bits) >> bit & 1) for bit in (2, 1, 0)]
    return dots.repeat(DOT, axis=0).repeat(DOT, axis=1)
