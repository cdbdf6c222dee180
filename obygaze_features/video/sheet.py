"""Draw contact sheets: all sampled frames in one small picture, each with its number and time."""

import io
import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

THUMBNAIL_WIDTH = 160
COLUMNS = 8
LINE_HEIGHT = 14
"""Pixels of the line below each frame."""


def thumbnail(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Shrink a frame [H, W, 3] to about the sheet's width by averaging whole blocks of pixels."""
    return np.asarray(Image.fromarray(frame).reduce(max(1, frame.shape[1] // THUMBNAIL_WIDTH)))


def contact_sheet(
    thumbnails: Sequence[NDArray[np.uint8]], index: Iterable[int], time_s: Iterable[float]
) -> bytes:
    """Arrange thumbnails [H, W, 3] in rows, in their order, and encode them as a PNG file.

    The number of each frame, and its time in seconds if known, are written below it, outside the picture.
    """
    font = ImageFont.load_default(LINE_HEIGHT - 4)
    width = max(THUMBNAIL_WIDTH, *(picture.shape[1] for picture in thumbnails))
    height = max(picture.shape[0] for picture in thumbnails) + LINE_HEIGHT
    columns = min(COLUMNS, len(thumbnails))
    rows = math.ceil(len(thumbnails) / columns)
    sheet = Image.new("RGB", (columns * width, rows * height))
    draw = ImageDraw.Draw(sheet)
    for position, (picture, number, time) in enumerate(zip(thumbnails, index, time_s, strict=True)):
        row, column = divmod(position, columns)
        left = column * width
        top = row * height
        sheet.paste(Image.fromarray(picture), (left, top))
        caption = f"{number}" if math.isnan(time) else f"{number}  {time:.3f} s"
        draw.text((left, top + height - 1), caption, font=font, anchor="ld")
    png = io.BytesIO()
    sheet.save(png, "PNG")
    return png.getvalue()
