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
    """Shrink a frame [H, W, 3] to about `THUMBNAIL_WIDTH` pixels, by averaging square blocks of pixels."""
    block_size = max(1, frame.shape[1] // THUMBNAIL_WIDTH)
    return np.asarray(Image.fromarray(frame).reduce(block_size))


def contact_sheet(
    thumbnails: Sequence[NDArray[np.uint8]], index: Iterable[int], time_s: Iterable[float]
) -> bytes:
    """Draw small pictures of frames in rows into one picture (a contact sheet); return it as a PNG file.

    The number of each frame, and its time in seconds if known, are written below it.

    Parameters
    ----------
    thumbnails
        Small pictures, uint8 [H, W, 3] each, in the order in which they are drawn.
    index, time_s
        Number and time in seconds of each frame; NaN for a time that is not known.
    """
    font = ImageFont.load_default(LINE_HEIGHT - 4)  # so that 4 pixels are left between a picture and the next
    cell_width = max(THUMBNAIL_WIDTH, *(picture.shape[1] for picture in thumbnails))
    cell_height = max(picture.shape[0] for picture in thumbnails) + LINE_HEIGHT
    n_columns = min(COLUMNS, len(thumbnails))
    n_rows = math.ceil(len(thumbnails) / n_columns)
    sheet = Image.new("RGB", (n_columns * cell_width, n_rows * cell_height))
    draw = ImageDraw.Draw(sheet)

    for position, (picture, number, frame_s) in enumerate(zip(thumbnails, index, time_s, strict=True)):
        row, column = divmod(position, n_columns)
        left = column * cell_width
        top = row * cell_height
        sheet.paste(Image.fromarray(picture), (left, top))
        caption = f"{number}" if math.isnan(frame_s) else f"{number}  {frame_s:.3f} s"
        # "ld": the caption's left descender, so its lower left corner, is at this point.
        draw.text((left, top + cell_height - 1), caption, font=font, anchor="ld")

    png = io.BytesIO()
    sheet.save(png, "PNG")
    return png.getvalue()
