"""Convert decoded frames to upright RGB pixels at full size, and collect results and remarks on pictures."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from av.sidedata.sidedata import SideData, SideDataContainer, Type
from av.video.format import VideoFormat
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange, Interpolation, VideoReformatter
from numpy.typing import NDArray
from PIL import Image

from obygaze_features.errors import VideoError
from obygaze_features.pixels import interleaved
from obygaze_features.video.source import guarded, naming_file
from obygaze_features.video.stills import over_white
from obygaze_features.video.stream import (
    PICTURES,
    RANGES,
    STRANGE,
    UNKNOWN,
    UNTAGGED,
    WITHOUT_ALPHA,
    Stream,
    has_alpha,
    is_exact,
)

# First row of a display matrix, as signs -> clockwise quarter turns. ISO/IEC 14496-12, 6.2.2.
TURNS = {(1, 0): 0, (0, 1): 1, (-1, 0): 2, (0, -1): 3}
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
# H.273, table 3 (TransferCharacteristics): those of no ordinary screen.
TRANSFERS = {8: "linear", 9: "logarithmic", 10: "logarithmic", 16: "PQ", 17: "DCI", 18: "HLG"}
BLACK = 24
"""Largest 8-bit value that counts as black: limited-range black is 0, and encoders leave some noise in it."""

EXACT = Interpolation.POINT | Interpolation.FULL_CHR_H_INT
"""Chroma of the nearest sample, as for 8 bits, at full precision. The second flag alone is bicubic."""

OPAQUE = 255
PLAIN = Stream("", "")
# Players assume BT.709 for untagged pictures with at least this many lines.
HD_LINES = 720
# A bar of less than this share of the picture's side is an edge, not a bar.
LEAST_BAR = 0.02
T = TypeVar("T")
Bars = tuple[int, int, int, int]
NO_BARS: Bars = (0, 0, 0, 0)


class Shown(NamedTuple):
    """How a stored picture became one to look at.

    Parameters
    ----------
    rotation
        Degrees clockwise by which it was rotated: 0, 90, 180 or 270.
    mirrored
        Whether it was then mirrored left to right.
    matrix
        Matrix used to convert to RGB, e.g. ``bt709``; ``bt601 (untagged)`` where the file states none;
        ``rgb`` and ``grey`` for pictures that need none.
    full_range
        Whether samples were read as full range (0-255) rather than limited range (16-235).
    """

    rotation: int
    mirrored: bool
    matrix: str
    full_range: bool


@dataclass(frozen=True)
class RgbPicture:
    """One frame's pixels, with a record of their conversion.

    Parameters
    ----------
    rgb
        uint8 [H, W, 3], upright.
    shown
        How the stored picture became this one.
    corrupt
        Whether the decoder flags it as damaged.
    said
        What is to be said of it.
    """

    rgb: NDArray[np.uint8]
    shown: Shown
    corrupt: bool
    said: tuple[str, ...]

    @cached_property
    def bars(self) -> tuple[int, int, int, int] | None:
        """Black rows above and below, black columns left and right; None for an entirely black picture."""
        return black_bars(self.rgb)

    def without_pixels(self) -> "RgbPicture":
        """Return a copy whose `rgb` has the same height and width and no channel."""
        copy = replace(self, rgb=np.empty((*self.rgb.shape[:2], 0), np.uint8))
        vars(copy)["bars"] = self.bars  # measured while there are pixels
        return copy


class Converter:
    """Converter of frames to pictures; use one per stream, since it caches conversion tables.

    Parameters
    ----------
    stream
        Description of the stream: its crop, and the tags of colours that its pictures may lack.
    """

    def __init__(self, stream: Stream = PLAIN) -> None:
        self._stream = stream
        self._reformatter = VideoReformatter()

    def __call__(self, frame: VideoFrame) -> RgbPicture:
        """Convert to RGB at full size; crop, rotate upright, and lay transparent pixels over white."""
        stream = self._stream
        tags = self.tags(frame)
        stored, transparent = self._rgb(frame, tags)
        if stream.crop:
            above, below, left, right = stream.crop
            stored = stored[above : max(len(stored) - below, 0), left : max(stored.shape[1] - right, 0)]
            if not stored.size:
                raise VideoError("the file asks to crop its pictures to nothing")
        turn, side_data = orientation(frame)
        upright = np.rot90(stored, -turn.quarters) if turn.quarters else stored
        rgb = np.ascontiguousarray(upright[:, ::-1] if turn.mirrored else upright, np.uint8)
        facts = {
            "interlaced": frame.interlaced_frame,
            "oblique": turn.oblique,
            "transparent": transparent,
            "contrary": tags.matrix in MATRICES.values()
            and (
                (stream.matrix != UNTAGGED and MATRICES.get(stream.matrix) != tags.matrix)
                or stream.full_range not in (None, RANGES.get(int(frame.color_range), stream.full_range))
            ),
            "untagged": tags.matrix.endswith("(untagged)") and min(rgb.shape[:2]) >= HD_LINES,
        }
        shown = Shown(90 * turn.quarters, turn.mirrored, tags.matrix, tags.full_range)
        remarks = [PICTURES[fact] for fact, holds in facts.items() if holds]
        remarks += filter(None, [PICTURES.get(name, STRANGE) for name in side_data])
        return RgbPicture(rgb, shown, frame.is_corrupt, (*remarks, *tags.said))

    def tags(self, frame: VideoFrame) -> "Tags":
        """Give a frame the matrix that the stream alone names, and return how its pixels become RGB."""
        if int(frame.colorspace) == UNTAGGED:
            frame.colorspace = self._stream.matrix
        own = int(frame.color_trc)
        transfer = self._stream.transfer if own == UNTAGGED else own
        return tags_of(frame.format.name, int(frame.colorspace), int(frame.color_range), transfer)

    def _rgb(self, frame: VideoFrame, tags: "Tags") -> tuple[NDArray[np.uint8], bool]:
        """Convert to RGB [H, W, 3]; return whether a pixel was transparent (rgba is wrong at some widths)."""
        if tags.levels is not None:
            grey = self._reformatter.reformat(frame, format="gray16le", threads=1).to_ndarray()
            rgb = np.repeat(tags.levels[grey][..., None], 3, axis=2)
        elif tags.exact:  # planes take less time than rgb24, and their bits are equal
            planes = self._reformatter.reformat(frame, format="gbrp", interpolation=EXACT, threads=1)
            green, blue, red = (
                np.frombuffer(memoryview(plane), np.uint8).reshape(planes.height, -1)[:, : planes.width]
                for plane in planes.planes
            )
            rgb = interleaved((red, green, blue))
        else:
            rgb = self._reformatter.reformat(frame, format="rgb24", threads=1).to_ndarray()
        if tags.alpha and self._stream.pixels != WITHOUT_ALPHA:
            alpha = self._reformatter.reformat(frame, format="gbrap", threads=1).to_ndarray()[..., 3]
            if alpha.min() < OPAQUE:
                return over_white(Image.fromarray(np.dstack([rgb, alpha]))), True
        return rgb, False


class Tags(NamedTuple):
    """How the pixels of a format become RGB.

    Parameters
    ----------
    matrix, full_range
        As a picture has them.
    said
        What is to be said of them.
    alpha
        Whether pixels may be transparent.
    exact
        Whether chroma is converted at full precision.
    levels
        The 8-bit level of each of 65,536 grey values, where grey is to be expanded.
    """

    matrix: str
    full_range: bool
    said: tuple[str, ...]
    alpha: bool
    exact: bool
    levels: NDArray[np.uint8] | None


@cache
def tags_of(name: str, matrix_tag: int, color_range: int, transfer: int) -> Tags:
    """Return how pixels of FFmpeg's name and tags of colours become RGB.

    Raises
    ------
    VideoError
        The colour coding is not supported.
    """
    pixels = VideoFormat(name)
    levels = None
    bits = pixels.components[0].bits
    full_range = True
    if pixels.is_rgb or name.startswith("pal"):
        matrix = "rgb"
    elif name.startswith("xyz"):  # of digital cinema
        matrix = "xyz"
    elif len(pixels.components) < 3:
        matrix = "grey"
        full_range = color_range != ColorRange.MPEG
        if bits > 8 or not full_range:
            levels = grey_levels(bits, full_range=full_range)
    elif matrix_tag in MATRICES:
        matrix = MATRICES[matrix_tag]
        full_range = name.startswith("yuvj") or color_range == ColorRange.JPEG
    else:
        coding = UNREAD_MATRICES.get(matrix_tag, f"matrix {matrix_tag}")
        raise VideoError(
            f"its colours are coded as {coding}, which cannot be read here: convert it to BT.709"
        )
    alpha = has_alpha(pixels)
    exact = is_exact(pixels)
    facts = {
        TRANSFERS.get(transfer, ""): transfer in TRANSFERS,
        "limited": pixels.is_rgb and color_range == ColorRange.MPEG,
    }
    remarks = [PICTURES[fact] for fact, holds in facts.items() if holds]
    remarks += [f"{bits} bits a sample: rounded to 8"] if bits > 8 else []
    return Tags(matrix, full_range, tuple(filter(None, remarks)), alpha, exact, levels)


def grey_levels(bits: int, *, full_range: bool) -> NDArray[np.uint8]:
    """Return the 8-bit level of each grey value, which swscale spreads over 16 bits: uint8 [65536]."""
    value = np.arange(1 << 16) / ((1 << 16) - 1)
    if not full_range:
        unit = ((1 << bits) - 1) / (1 << (bits - 8))
        value = (value * unit - 16) / 219
    return np.round(255 * value.clip(0, 1)).astype(np.uint8)


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


class Turn(NamedTuple):
    """What makes a frame upright.

    Parameters
    ----------
    quarters
        Clockwise quarter turns.
    mirrored
        Whether it is mirrored after them.
    oblique
        Whether another turn is asked for, which is not done.
    """

    quarters: int
    mirrored: bool
    oblique: bool


def orientation(frame: VideoFrame) -> tuple[Turn, tuple[str, ...]]:
    """Return what makes a frame upright, and the names of all its side data."""
    # PyAV's frame.rotation reads mirrored pictures as rotated, so the matrix itself is read.
    try:
        # Not frame.side_data: the frame would refer to it and it to the frame, and both stay in memory until
        # the garbage collector finds them. The decoder then takes new memory for each picture.
        side_data: Iterable[SideData] = SideDataContainer(frame)  # type: ignore[call-arg]
        data_of = {item.type.name: item for item in side_data}
    except ValueError:  # PyAV 18.1 does not know all kinds of side data (EXIF of MJPEG and TIFF)
        quarters = round(-frame.rotation / 90) % 4
        return Turn(quarters, mirrored=False, oblique=bool(frame.rotation % 90)), (UNKNOWN,)
    names = tuple(data_of)
    if Type.DISPLAYMATRIX.name not in data_of:
        return Turn(0, mirrored=False, oblique=False), names
    values = np.frombuffer(bytes(data_of[Type.DISPLAYMATRIX.name]), np.int32)[[0, 1, 3, 4]].astype(np.float64)
    signs = np.sign(np.round(values / max(1, *abs(values)), 2))  # a turn by 89.9 degrees is a quarter
    return turned(*signs.tolist()), names


def turned(a: int, b: int, c: int, d: int) -> Turn:
    """Return the turn that a display matrix asks for.

    Parameters
    ----------
    a, b, c, d
        Signs of a display matrix, as in x' = a x + c y, y' = b x + d y.
    """
    if (a, b) not in TURNS or (c, d) not in ((-b, a), (b, -a)):
        return Turn(0, mirrored=False, oblique=True)
    mirrored = (c, d) == (b, -a)
    return Turn(TURNS[-a if mirrored else a, b], mirrored, oblique=False)


@dataclass(slots=True)
class CollectedFrames(Generic[T]):
    """Images by frame number; the first picture without its pixels; remarks."""

    images: dict[int, T] = field(default_factory=dict)
    first: RgbPicture | None = None
    corrupt: list[int] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    bars: Bars | None = None
    """Rows above and below and columns left and right that are black in all pictures but black ones."""

    def note(self, number: int, picture: RgbPicture) -> None:
        """Record the properties of a picture, without its pixels."""
        self.first = self.first or picture.without_pixels()
        if picture.corrupt:
            self.corrupt.append(number)
        # Most pictures have none; after one of those the others need not be measured.
        if self.bars != NO_BARS and picture.bars is not None:
            above, below, left, right = map(min, picture.bars, self.bars or picture.bars)
            self.bars = above, below, left, right
        remarks = [*self.remarks, *picture.said]
        if picture.rgb.shape[:2] != self.first.rgb.shape[:2]:
            remarks.append(PICTURES["resized"])
        if picture.shown != self.first.shown:
            remarks.append(PICTURES["changed"])
        self.remarks = [*dict.fromkeys(remarks)]

    def described(self) -> tuple[dict[str, Any], list[str]]:
        """Return what a record states of the pictures, and all remarks.

        Size, turn and colours are those of the first.
        """
        if self.first is None:
            raise VideoError("not one picture was decoded")
        height, width = self.first.rgb.shape[:2]
        above, below, left, right = self.bars or NO_BARS
        remarks = [*self.remarks]
        if max(above, below) >= LEAST_BAR * height or max(left, right) >= LEAST_BAR * width:
            share = 1 - (height - above - below) * (width - left - right) / (width * height)
            sides = {"above": above, "below": below, "at the left": left, "at the right": right}
            where = ", ".join(f"{pixels} {side}" for side, pixels in sides.items() if pixels)
            remarks.append(f"black bars cover {share:.0%} of the pictures (pixels: {where})")
        size = {"width": width, "height": height, "bars": (above, below, left, right)}
        interlaced = PICTURES["interlaced"] in remarks
        return {**self.first.shown._asdict(), **size, "interlaced": interlaced}, remarks


def pictures(
    frames: Iterable[tuple[int, VideoFrame]], path: Path, stream: Stream
) -> Iterator[tuple[int, RgbPicture]]:
    """Convert each frame to an upright RGB picture, one at a time.

    Raises
    ------
    VideoError
        The decoder failed, or the colours cannot be converted.
    """
    convert = Converter(stream)
    with naming_file(path):
        yield from guarded(((number, convert(frame)) for number, frame in frames), path)
