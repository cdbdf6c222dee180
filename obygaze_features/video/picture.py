"""Convert decoded frames to upright RGB pixels at full size."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from av.sidedata.sidedata import SideData, SideDataContainer, Type
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange, VideoReformatter
from numpy.typing import NDArray

from obygaze_features.errors import VideoError

# Display matrix, as the signs of (a, b, c, d) in x' = a x + c y, y' = b x + d y -> clockwise quarter turns,
# and whether the picture is then mirrored left to right. ISO/IEC 14496-12, 6.2.2.
ORIENTATIONS = {
    (1, 0, 0, 1): (0, False),
    (0, 1, -1, 0): (1, False),
    (-1, 0, 0, -1): (2, False),
    (0, -1, 1, 0): (3, False),
    (-1, 0, 0, 1): (0, True),
    (0, 1, 1, 0): (1, True),
    (1, 0, 0, -1): (2, True),
    (0, -1, -1, 0): (3, True),
}

# H.273, table 4 (MatrixCoefficients). Untagged is BT.601 at any size, as in swscale.
MATRICES = {
    0: "bt601 (untagged)",
    1: "bt709",
    2: "bt601 (untagged)",
    4: "fcc",
    5: "bt601",
    6: "bt601",
    7: "smpte240m",
    9: "bt2020",
}
UNREAD_MATRICES = {8: "YCgCo", 10: "BT.2020 with constant luminance", 14: "ICtCp"}
# H.273, table 3 (TransferCharacteristics).
HDR = {16: "PQ", 18: "HLG"}
BLACK = 24
"""Largest 8-bit value that counts as black: limited-range black is 0, and encoders leave some noise in it."""


@dataclass(frozen=True)
class Picture:
    """One frame's pixels, with a record of their conversion.

    Parameters
    ----------
    rgb
        uint8 [H, W, 3], upright.
    rotation
        Degrees clockwise by which the stored picture was rotated: 0, 90, 180 or 270.
    mirrored
        Whether it was then mirrored left to right.
    oblique
        Whether the file states another rotation, which was not applied.
    interlaced
        Whether the frame is flagged interlaced: its colours were converted field by field.
    corrupt
        Whether the decoder flags it as damaged.
    matrix
        Matrix used to convert to RGB, e.g. ``bt709``; ``bt601 (untagged)`` where the file states none;
        ``rgb`` and ``grey`` for pictures that need none.
    full_range
        Whether samples were read as full range (0-255) rather than limited range (16-235).
    hdr
        Name of the HDR transfer function, which was not inverted; empty for SDR pictures.
    bits
        Bits per sample; RGB keeps the upper 8.
    """

    rgb: NDArray[np.uint8]
    rotation: int
    mirrored: bool
    oblique: bool
    interlaced: bool
    corrupt: bool
    matrix: str
    full_range: bool
    hdr: str
    bits: int

    @cached_property
    def bars(self) -> tuple[int, int, int, int] | None:
        """Black rows above and below, black columns left and right; None for an entirely black picture."""
        return black_bars(self.rgb)

    def without_pixels(self) -> "Picture":
        """Return a copy whose `rgb` has the same height and width and no channel."""
        copy = replace(self, rgb=np.empty((*self.rgb.shape[:2], 0), np.uint8))
        vars(copy)["bars"] = self.bars  # measured while there are pixels
        return copy


class Converter:
    """Converter of frames to pictures; use one per stream, since it caches conversion tables and tags."""

    def __init__(self) -> None:
        self._reformatter = VideoReformatter()
        self._read: dict[tuple[str, int, int, int], tuple[str, bool, str, int]] = {}

    def __call__(self, frame: VideoFrame) -> Picture:
        """Convert to rgb24 at full size (rgba is wrong at some widths in PyAV 18.1); rotate upright."""
        transfer = int(frame.color_trc)
        tags = (frame.format.name, int(frame.colorspace), int(frame.color_range), transfer)
        if tags not in self._read:
            self._read[tags] = (*colours(frame), HDR.get(transfer, ""), frame.format.components[0].bits)
        matrix, full_range, hdr, bits = self._read[tags]
        stored = self._reformatter.reformat(frame, format="rgb24", threads=1).to_ndarray()
        turns, mirrored, oblique = orientation(frame)
        upright = np.rot90(stored, -turns) if turns else stored
        rgb = np.ascontiguousarray(upright[:, ::-1] if mirrored else upright, np.uint8)
        return Picture(
            rgb=rgb,
            rotation=90 * turns,
            mirrored=mirrored,
            oblique=oblique,
            interlaced=frame.interlaced_frame,
            corrupt=frame.is_corrupt,
            matrix=matrix,
            full_range=full_range,
            hdr=hdr,
            bits=bits,
        )


def colours(frame: VideoFrame) -> tuple[str, bool]:
    """Return the name of the matrix that converts a frame to RGB, and whether samples are full range.

    Raises
    ------
    VideoError
        The frame's colour coding is not supported.
    """
    name, tag = frame.format.name, int(frame.colorspace)
    if frame.format.is_rgb or name.startswith("pal"):
        return "rgb", True
    if len(frame.format.components) < 3:
        return "grey", True
    if tag not in MATRICES:
        coding = UNREAD_MATRICES.get(tag, f"matrix {tag}")
        raise VideoError(
            f"its colours are coded as {coding}, which cannot be read here: convert it to BT.709"
        )
    return MATRICES[tag], name.startswith("yuvj") or frame.color_range == ColorRange.JPEG


def black_bars(rgb: NDArray[np.uint8]) -> tuple[int, int, int, int] | None:
    """Count black rows and columns at the edges: above, below, left, right; None if the picture is black.

    A row or column is black if none of its samples is above `BLACK`; every eighth pixel is checked.
    """
    edges = (rgb[0, ::8], rgb[-1, ::8], rgb[::8, 0], rgb[::8, -1])
    if all(edge.max() > BLACK for edge in edges):  # most pictures have no bars
        return 0, 0, 0, 0
    rows = np.flatnonzero(rgb[:, ::8].max(axis=(1, 2)) > BLACK)
    if not len(rows):
        return None
    # First over rows, which lie one after the other in memory: ten times as fast as both at once.
    columns = np.flatnonzero(rgb[rows[0] : rows[-1] + 1 : 8].max(axis=0).max(axis=1) > BLACK)
    if not len(columns):
        return None
    height, width, _ = rgb.shape
    return int(rows[0]), int(height - 1 - rows[-1]), int(columns[0]), int(width - 1 - columns[-1])


def orientation(frame: VideoFrame) -> tuple[int, bool, bool]:
    """Return the clockwise quarter turns and mirroring that make a frame upright; whether it is oblique."""
    # PyAV's frame.rotation reads mirrored pictures as rotated, so the matrix itself is read.
    try:
        # Not frame.side_data: the frame would refer to it and it to the frame, and both stay in memory until
        # the garbage collector finds them. The decoder then takes new memory for each picture.
        found: Iterable[SideData] = SideDataContainer(frame)  # type: ignore[call-arg]
        data = next((one for one in found if one.type is Type.DISPLAYMATRIX), None)
    except ValueError:  # PyAV 18.1 does not know all kinds of side data (EXIF of MJPEG and TIFF)
        return round(-frame.rotation / 90) % 4, False, bool(frame.rotation % 90)
    if data is None:
        return 0, False, False
    a, b, _, c, d = np.frombuffer(bytes(data), np.int32)[:5].tolist()
    signs = (_sign(a), _sign(b), _sign(c), _sign(d))
    if signs in ORIENTATIONS:
        return *ORIENTATIONS[signs], False
    return 0, False, True


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)
