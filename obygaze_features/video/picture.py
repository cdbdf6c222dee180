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
from obygaze_features.text import percentage
from obygaze_features.video.source import damage_as_video_error, naming_file
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

TURNS = {(1, 0): 0, (0, 1): 1, (-1, 0): 2, (0, -1): 3}
"""First row of a display matrix, as signs -> clockwise quarter turns (ISO/IEC 14496-12, 6.2.2)."""
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
# H.273, table 3 (TransferCharacteristics): only those that an ordinary screen does not have.
TRANSFERS = {8: "linear", 9: "logarithmic", 10: "logarithmic", 16: "PQ", 17: "DCI", 18: "HLG"}
BLACK = 24
"""Largest 8-bit value that counts as black: limited-range black is 0, and encoders leave some noise in it."""

EXACT = Interpolation.POINT | Interpolation.FULL_CHR_H_INT
"""Takes the nearest sample of chroma, as for 8 bits, at full precision. The second flag alone is bicubic."""

OPAQUE = 255
PLAIN = Stream("", "")
# Players assume BT.709 for untagged pictures with at least this many lines.
HD_LINES = 720
MIN_BAR = 0.02
"""Share of a side from which on black rows or columns are a bar; fewer are an unclean edge."""
BARS_STEP = 8
"""Every pixel of so many is looked at for bars, for time."""
T = TypeVar("T")
Bars = tuple[int, int, int, int]
"""Black rows above and below, black columns left and right."""
NO_BARS: Bars = (0, 0, 0, 0)


class Shown(NamedTuple):
    """How a stored picture was turned and converted to be shown.

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
    remarks
        Sentences on the picture, for the notes.
    """

    rgb: NDArray[np.uint8]
    shown: Shown
    corrupt: bool
    remarks: tuple[str, ...]

    @cached_property
    def bars(self) -> Bars | None:
        """Black rows above and below, black columns left and right; None for an entirely black picture."""
        return black_bars(self.rgb)

    def without_pixels(self) -> "RgbPicture":
        """Return a copy that takes little memory: its `rgb` has the same height and width, and no channel."""
        height, width, _ = self.rgb.shape
        copy = replace(self, rgb=np.empty((height, width, 0), np.uint8))
        # The copy can't measure its bars without pixels. `cached_property` stores a value under the name of
        # the property, and does not compute what is stored.
        copy.__dict__["bars"] = self.bars
        return copy


class Converter:
    """Converter of frames to pictures; use one per stream, since it caches conversion tables.

    Parameters
    ----------
    stream
        Description of the stream: its crop, and the tags of colours that its pictures may lack.
    """

    def __init__(self, stream: Stream = PLAIN) -> None:
        """Prepare for the frames of one stream; by default, one without crop and tags of colours."""
        self._stream = stream
        self._reformatter = VideoReformatter()  # caches conversion tables

    def __call__(self, frame: VideoFrame) -> RgbPicture:
        """Convert a decoded frame to RGB at full size: cropped, upright, transparent pixels over white."""
        tags = self.prepare(frame)  # how its pixels become RGB; the frame is changed for that
        stored, has_transparency = self._rgb(frame, tags)
        turn, names_of_side_data = orientation(frame)
        rgb = _turned(self._cropped(stored), turn)

        # `PICTURES` has a remark for the user on each fact that is worth one: on these five, and on kinds of
        # side data (what a file states of a picture besides its pixels).
        is_hd = min(rgb.shape[:2]) >= HD_LINES
        is_untagged = tags.matrix.endswith("(untagged)")
        facts = {  # name of a fact in `PICTURES` -> whether it holds
            "interlaced": frame.interlaced_frame,
            "oblique": turn.oblique,  # the file asks for a turn that is no quarter turn
            "transparent": has_transparency,
            "contrary": self._contradicts(frame, tags),  # the frame states other colours than the stream
            "untagged": is_untagged and is_hd,  # players would take other colours
        }
        remarks = [PICTURES[fact] for fact, holds in facts.items() if holds]
        for name in names_of_side_data:
            remark = PICTURES.get(name, STRANGE)  # strange: a kind that is not known here
            if remark:  # some kinds are listed without a remark
                remarks.append(remark)
        remarks += tags.remarks

        degrees = 90 * turn.quarters
        shown = Shown(degrees, turn.mirrored, tags.matrix, tags.full_range)
        return RgbPicture(rgb, shown, frame.is_corrupt, tuple(remarks))

    def _cropped(self, stored: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Crop a stored picture [H, W, 3] by the rows and columns that the container says to leave out.

        Raises
        ------
        VideoError
            Nothing would be left.
        """
        if not self._stream.crop:
            return stored
        above, below, left, right = self._stream.crop
        height, width, _ = stored.shape
        cropped = stored[above : max(height - below, 0), left : max(width - right, 0)]
        if not cropped.size:
            raise VideoError("the file asks to crop its pictures to nothing")
        return cropped

    def _contradicts(self, frame: VideoFrame, tags: "Tags") -> bool:
        """Return whether a frame's colour matrix or range differs from the one that the stream states.

        RGB and grey, which need no matrix, contradict nothing.
        """
        stream = self._stream
        needs_matrix = tags.matrix in MATRICES.values()
        if not needs_matrix:
            return False
        has_other_matrix = stream.matrix != UNTAGGED and MATRICES.get(stream.matrix) != tags.matrix
        if has_other_matrix:
            return True
        frame_range = RANGES.get(int(frame.color_range))  # None if the frame does not state it
        both_state_range = stream.full_range is not None and frame_range is not None
        return both_state_range and stream.full_range != frame_range

    def prepare(self, frame: VideoFrame) -> "Tags":
        """Prepare a frame for FFmpeg's converter of pixels; return how its pixels are converted to RGB.

        Both follow from the colour tags of the frame, or of the stream for those that it lacks. A frame that
        states no colour matrix is given that of the stream, in place: the converter reads it there.

        Raises
        ------
        VideoError
            The colour coding is not supported.
        """
        if int(frame.colorspace) == UNTAGGED:
            frame.colorspace = self._stream.matrix
        transfer = int(frame.color_trc)
        if transfer == UNTAGGED:
            transfer = self._stream.transfer
        return tags_of(frame.format.name, int(frame.colorspace), int(frame.color_range), transfer)

    def _rgb(self, frame: VideoFrame, tags: "Tags") -> tuple[NDArray[np.uint8], bool]:
        """Convert a frame to RGB [H, W, 3], with transparent pixels over white.

        Returns
        -------
        NDArray
            The picture, uint8 [H, W, 3].
        bool
            Whether any pixel was transparent.
        """
        rgb = self._opaque_rgb(frame, tags)
        may_be_transparent = tags.alpha and self._stream.pixels != WITHOUT_ALPHA
        if not may_be_transparent:
            return rgb, False
        # From "gbrap", and not from "rgba", which swscale converts wrongly at some widths.
        with_alpha = self._reformatter.reformat(frame, format="gbrap", threads=1).to_ndarray()
        alpha = with_alpha[..., 3]
        if alpha.min() == OPAQUE:
            return rgb, False
        rgba = np.dstack([rgb, alpha])
        return over_white(Image.fromarray(rgba)), True

    def _opaque_rgb(self, frame: VideoFrame, tags: "Tags") -> NDArray[np.uint8]:
        """Convert a frame to RGB, uint8 [H, W, 3], and ignore transparency.

        FFmpeg does it, except that grey of limited range or of more than 8 bits is expanded by a table
        (`grey_levels`).
        """
        if tags.levels is not None:
            grey_16 = self._reformatter.reformat(frame, format="gray16le", threads=1).to_ndarray()
            grey = tags.levels[
                grey_16
            ]  # each value of 16 bits is a place in the table of 8-bit levels: [H, W]
            return np.repeat(grey[..., None], 3, axis=2)
        if tags.exact:
            return self._exact_rgb(frame)
        rgb = self._reformatter.reformat(frame, format="rgb24", threads=1).to_ndarray()
        return np.asarray(rgb, np.uint8)

    def _exact_rgb(self, frame: VideoFrame) -> NDArray[np.uint8]:
        """Convert a frame to RGB, uint8 [H, W, 3], with its chroma at full precision."""
        # Converting to planes takes less time than to rgb24, and gives the same bits.
        planar = self._reformatter.reformat(frame, format="gbrp", interpolation=EXACT, threads=1)
        planes = []
        for plane in planar.planes:
            rows = np.frombuffer(memoryview(plane), np.uint8).reshape(planar.height, -1)
            planes.append(rows[:, : planar.width])  # rows are padded
        green, blue, red = planes  # the order of "gbrp"
        return interleaved((red, green, blue))


class Tags(NamedTuple):
    """How the pixels of a format become RGB.

    Parameters
    ----------
    matrix, full_range
        As in `Shown`.
    remarks
        Sentences on the colours, for the notes.
    alpha
        Whether pixels may be transparent.
    exact
        Whether chroma is converted at full precision.
    levels
        The 8-bit level of each of 65,536 grey values, where grey is to be expanded.
    """

    matrix: str
    full_range: bool
    remarks: tuple[str, ...]
    alpha: bool
    exact: bool
    levels: NDArray[np.uint8] | None


@cache
def tags_of(name: str, matrix_tag: int, color_range: int, transfer: int) -> Tags:
    """Return how pixels are converted to RGB, by their format and their colour tags.

    Parameters
    ----------
    name
        FFmpeg's name of the format of pixels.
    matrix_tag, transfer
        Tags of the colours, by their numbers in H.273.
    color_range
        FFmpeg's number of the tagged range.

    Raises
    ------
    VideoError
        The colour coding is not supported.
    """
    pixels = VideoFormat(name)
    matrix = _matrix_of(pixels, name, matrix_tag)
    full_range = _is_full_range(name, matrix, color_range)
    bits = pixels.components[0].bits
    levels = None
    if matrix == "grey" and (bits > 8 or not full_range):
        levels = grey_levels(bits, full_range=full_range)
    return Tags(
        matrix,
        full_range,
        remarks=_remarks_on_colours(pixels, color_range, transfer),
        alpha=has_alpha(pixels),
        exact=is_exact(pixels),
        levels=levels,
    )


def _matrix_of(pixels: VideoFormat, name: str, matrix_tag: int) -> str:
    """Return the name of the matrix that converts pixels to RGB; `rgb`, `xyz` or `grey` if they need none.

    Raises
    ------
    VideoError
        The matrix is not supported.
    """
    has_palette = name.startswith("pal")
    if pixels.is_rgb or has_palette:
        return "rgb"
    if name.startswith("xyz"):  # of digital cinema
        return "xyz"
    if len(pixels.components) < 3:
        return "grey"
    if matrix_tag not in MATRICES:
        coding = UNREAD_MATRICES.get(matrix_tag, f"matrix {matrix_tag}")
        raise VideoError(
            f"its colours are coded as {coding}, which cannot be read here: convert it to BT.709"
        )
    return MATRICES[matrix_tag]


def _is_full_range(name: str, matrix: str, color_range: int) -> bool:
    """Return whether samples use all values of 0 to 255 (full range), rather than 16 to 235.

    Where the range is not tagged, grey has the full range, and YUV has not.
    """
    if matrix in {"rgb", "xyz"}:
        return True
    if matrix == "grey":
        return color_range != ColorRange.MPEG
    is_yuv_of_full_range = name.startswith("yuvj")  # FFmpeg's older names, such as yuvj420p
    return is_yuv_of_full_range or color_range == ColorRange.JPEG


def _remarks_on_colours(pixels: VideoFormat, color_range: int, transfer: int) -> tuple[str, ...]:
    """Return remarks on colours that the conversion to 8-bit RGB does not give as they are meant.

    These are a transfer function such as that of HDR, RGB of limited range, and more than 8 bits a sample.
    """
    remarks = []
    if transfer in TRANSFERS:
        remarks.append(PICTURES[TRANSFERS[transfer]])
    if pixels.is_rgb and color_range == ColorRange.MPEG:
        remarks.append(PICTURES["limited"])
    bits = pixels.components[0].bits
    if bits > 8:
        remarks.append(f"{bits} bits a sample: rounded to 8")
    return tuple(remark for remark in remarks if remark)  # some facts are listed without a remark


def grey_levels(bits: int, *, full_range: bool) -> NDArray[np.uint8]:
    """Return a table from 16-bit grey values, as FFmpeg converts them, to 8-bit levels: uint8 [65536].

    Parameters
    ----------
    bits
        Bits a sample, as stored.
    full_range
        Whether samples fill their range; else black is 16 and white 235 in samples of 8 bits, and four times
        these numbers in samples of 10 bits.
    """
    value = np.arange(1 << 16) / ((1 << 16) - 1)  # 0 to 1, of the largest sample
    if not full_range:
        # The samples are brought to the scale of 8 bits, on which black is 16. Those of 10 bits are divided
        # by 4: the largest, 1023, becomes 255.75.
        largest_sample = (1 << bits) - 1
        largest_in_8_bits = largest_sample / (1 << (bits - 8))
        from_black_to_white = 235 - 16
        value = (value * largest_in_8_bits - 16) / from_black_to_white
    return np.round(255 * value.clip(0, 1)).astype(np.uint8)


def black_bars(rgb: NDArray[np.uint8]) -> Bars | None:
    """Count black rows and columns at the edges of a picture; None if the picture is entirely black.

    A row or column is black if none of its samples is above `BLACK`; every `BARS_STEP`-th pixel is checked.

    Parameters
    ----------
    rgb
        A picture [H, W, 3].

    Returns
    -------
    tuple or None
        Black rows above and below, black columns left and right.

    Examples
    --------
    A picture of 24 rows and 32 columns as light as black may be, and one level above it but for 4 rows above
    and 5 columns on the right.

    >>> picture = np.full((24, 32, 3), BLACK, np.uint8)
    >>> black_bars(picture)
    >>> picture[4:, :-5] = BLACK + 1
    >>> black_bars(picture)
    (4, 0, 0, 5)
    >>> black_bars(np.full_like(picture, BLACK + 1))
    (0, 0, 0, 0)
    """
    edges = (rgb[0, ::BARS_STEP], rgb[-1, ::BARS_STEP], rgb[::BARS_STEP, 0], rgb[::BARS_STEP, -1])
    if all(edge.max() > BLACK for edge in edges):  # most pictures have no bars
        return NO_BARS

    lit_rows = np.flatnonzero(rgb[:, ::BARS_STEP].max(axis=(1, 2)) > BLACK)
    if not len(lit_rows):
        return None

    between_bars = rgb[lit_rows[0] : lit_rows[-1] + 1 : BARS_STEP]
    # First over rows, which lie one after the other in memory: ten times as fast as both axes at once.
    lit_columns = np.flatnonzero(between_bars.max(axis=0).max(axis=1) > BLACK)
    if not len(lit_columns):
        return None

    height, width, _ = rgb.shape
    above = int(lit_rows[0])
    below = int(height - 1 - lit_rows[-1])
    left = int(lit_columns[0])
    right = int(width - 1 - lit_columns[-1])
    return above, below, left, right


def _turned(stored: NDArray[np.uint8], turn: "Turn") -> NDArray[np.uint8]:
    """Return a picture [H, W, 3] upright: turned clockwise, then mirrored, as its file asks."""
    upright = stored
    if turn.quarters:
        upright = np.rot90(upright, -turn.quarters)  # which turns counterclockwise
    if turn.mirrored:
        upright = upright[:, ::-1]
    return np.ascontiguousarray(upright, np.uint8)


class Turn(NamedTuple):
    """How a frame is turned to be upright.

    Parameters
    ----------
    quarters
        Clockwise quarter turns.
    mirrored
        Whether it is mirrored left to right after them.
    oblique
        Whether the file asks for a turn that is no quarter turn, which is not done.
    """

    quarters: int
    mirrored: bool
    oblique: bool


def orientation(frame: VideoFrame) -> tuple[Turn, tuple[str, ...]]:
    """Return how a frame must be turned to be upright, and the names of all its side data.

    The turn follows from the frame's display matrix, which is one kind of side data.
    """
    try:
        # Not frame.side_data: the frame would refer to it and it to the frame, and both stay in memory until
        # the garbage collector finds them. The decoder then takes new memory for each picture.
        side_data: Iterable[SideData] = SideDataContainer(frame)  # type: ignore[call-arg]
        data_by_name = {data.type.name: data for data in side_data}
    except ValueError:  # PyAV 18.1 does not know all kinds of side data (EXIF of MJPEG and TIFF)
        return _turn_by_rotation(frame.rotation), (UNKNOWN,)
    names = tuple(data_by_name)
    display_matrix = data_by_name.get(Type.DISPLAYMATRIX.name)
    if display_matrix is None:
        return Turn(quarters=0, mirrored=False, oblique=False), names
    return _turn_by_matrix(bytes(display_matrix)), names


def _turn_by_rotation(rotation: int) -> Turn:
    """Return the turn that makes a picture upright, by the rotation that PyAV states.

    PyAV states mirrored pictures as rotated, so this is used only where the display matrix cannot be read.

    Parameters
    ----------
    rotation
        Degrees counterclockwise.
    """
    quarters = round(-rotation / 90) % 4
    return Turn(quarters, mirrored=False, oblique=bool(rotation % 90))


def _turn_by_matrix(display_matrix: bytes) -> Turn:
    """Return the turn that a video's display matrix asks for; it is stored as nine integers, row by row.

    The four numbers at the upper left turn, mirror and scale the picture; the others move it. A turn by 90
    degrees is 0, 1 / -1, 0, scaled by any factor. Only the signs of the numbers count here, so that the size
    of pictures is kept. Numbers below a two hundredth of the largest one count as 0, so that a turn by 89.9
    degrees is a quarter turn.
    """
    matrix = np.frombuffer(display_matrix, np.int32)[:9].reshape(3, 3)
    turning_part = matrix[:2, :2].astype(np.float64).reshape(-1)
    largest = max(1, *abs(turning_part))
    rounded = np.round(turning_part / largest, 2)  # numbers near 0 become 0, whose sign is 0
    a, b, c, d = np.sign(rounded).tolist()
    return turn_of_matrix(a, b, c, d)


def turn_of_matrix(a: int, b: int, c: int, d: int) -> Turn:
    """Return the turn that the signs of a display matrix ask for: quarter turns, perhaps mirrored.

    The matrix [[a, b], [c, d]] moves the point (x, y) to (a x + c y, b x + d y). For example, 0, 1 / -1, 0
    moves it to (-y, x): a quarter turn. A matrix is a rotation by quarter turns if its first row (a, b) is in
    `TURNS` and its second row is (-b, a). If the result is then mirrored left to right, its x changes sign,
    so that a and c have the opposite signs. All other matrices turn obliquely, or distort: pictures are left
    as they are, which `oblique` tells.

    Parameters
    ----------
    a, b, c, d
        Signs of the matrix, row by row.

    Examples
    --------
    >>> turn_of_matrix(0, 1, -1, 0)
    Turn(quarters=1, mirrored=False, oblique=False)
    >>> turn_of_matrix(-1, 0, 0, 1)  # x changes sign
    Turn(quarters=0, mirrored=True, oblique=False)
    """
    oblique = Turn(quarters=0, mirrored=False, oblique=True)
    if (a, b) not in TURNS:
        return oblique
    if (c, d) == (-b, a):
        return Turn(TURNS[a, b], mirrored=False, oblique=False)
    # The rotation before the result was mirrored, if it was.
    unmirrored_a = -a
    unmirrored_c = -c
    if (unmirrored_c, d) == (-b, unmirrored_a):
        return Turn(TURNS[unmirrored_a, b], mirrored=True, oblique=False)
    return oblique


@dataclass(slots=True)
class CollectedFrames(Generic[T]):
    """The frames of a window, and what is known of all their pictures.

    Parameters
    ----------
    images
        Frame number -> what is kept of the frame.
    first
        The first picture, without its pixels.
    corrupt
        Numbers of the frames that the decoder flags as damaged.
    remarks
        Sentences on the pictures, each once.
    bars
        Rows and columns that are black in all pictures but entirely black ones.
    """

    images: dict[int, T] = field(default_factory=dict)
    first: RgbPicture | None = None
    corrupt: list[int] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    bars: Bars | None = None

    def note(self, number: int, picture: RgbPicture) -> None:
        """Add a picture's properties to those collected so far: damage, black bars, remarks, changes of size.

        Parameters
        ----------
        number
            Number of the frame.
        picture
            The picture, whose pixels are not stored.
        """
        if self.first is None:
            self.first = picture.without_pixels()
        if picture.corrupt:
            self.corrupt.append(number)
        self._note_bars(picture)

        remarks = [*self.remarks, *picture.remarks]
        if picture.rgb.shape[:2] != self.first.rgb.shape[:2]:
            remarks.append(PICTURES["resized"])
        if picture.shown != self.first.shown:
            remarks.append(PICTURES["changed"])
        self.remarks = [*dict.fromkeys(remarks)]  # each once

    def _note_bars(self, picture: RgbPicture) -> None:
        """Reduce the black bars of the pictures so far to what is black in a further picture, too."""
        if self.bars == NO_BARS:
            return  # as for most films: then the further pictures need not be measured
        if picture.bars is None:
            return  # an entirely black picture does not show where the film's bars are
        if self.bars is None:
            self.bars = picture.bars
            return
        above, below, left, right = np.minimum(self.bars, picture.bars).tolist()
        self.bars = above, below, left, right

    def describe(self) -> tuple[dict[str, Any], list[str]]:
        """Return two things on the collected pictures: fields such as their size, and all remarks on them.

        The fields are fields of `Frames`, name -> value. Size, turn and colours are those of the first
        picture. `bars` are the black edges that all pictures have. The pictures count as interlaced if one
        was, of which a remark is left.

        Raises
        ------
        VideoError
            There is no picture.
        """
        if self.first is None:
            raise VideoError("not one picture was decoded")
        height, width = self.first.rgb.shape[:2]
        bars = self.bars or NO_BARS
        remarks = [*self.remarks]
        remark_on_bars = _remark_on_bars(bars, height, width)
        if remark_on_bars:
            remarks.append(remark_on_bars)
        turn_and_colours = self.first.shown._asdict()
        properties = {
            **turn_and_colours,
            "width": width,
            "height": height,
            "bars": bars,
            "interlaced": PICTURES["interlaced"] in remarks,
        }
        return properties, remarks


def _remark_on_bars(bars: Bars, height: int, width: int) -> str:
    """Return a sentence on how much of the pictures is black at their edges; empty if that is too narrow.

    Black edges are the bars of another shape of picture, or what surrounds text on black: pixels alone don't
    tell which.

    Examples
    --------
    >>> _remark_on_bars((2, 0, 0, 0), 100, 100)
    'the edges of all pictures are black, 2% of them (pixels: 2 above)'
    >>> _remark_on_bars((1, 1, 1, 1), 100, 100)
    ''
    """
    above, below, left, right = bars
    has_high_bar = max(above, below) >= MIN_BAR * height
    has_wide_bar = max(left, right) >= MIN_BAR * width
    if not has_high_bar and not has_wide_bar:
        return ""
    content_pixels = (height - above - below) * (width - left - right)
    black_share = 1 - content_pixels / (width * height)
    sides = {"above": above, "below": below, "at the left": left, "at the right": right}
    widths = ", ".join(f"{pixels} {side}" for side, pixels in sides.items() if pixels)
    return f"the edges of all pictures are black, {percentage(black_share)}% of them (pixels: {widths})"


def pictures(
    frames: Iterable[tuple[int, VideoFrame]], path: Path, stream: Stream
) -> Iterator[tuple[int, RgbPicture]]:
    """Convert decoded frames to upright RGB pictures, one at a time; yield the number and picture of each.

    Parameters
    ----------
    frames
        Number and decoded frame of each.
    path
        The file, for messages.
    stream
        What the file states of its pictures.

    Raises
    ------
    VideoError
        The decoder failed, or the colours cannot be converted.
    """
    convert = Converter(stream)
    converted = ((number, convert(frame)) for number, frame in frames)
    with naming_file(path):
        yield from damage_as_video_error(converted, path)
