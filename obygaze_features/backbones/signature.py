"""`signature`: compute numbers by which the pictures of a clip are recognised, without weights.

A view of a frame is described by the signs of the differences of lightness between neighbouring cells of
12 x 12, which do not change with brightness, contrast, gamma, colours and compression. There are five views:
the frame; the frame without its lower 22 %, where subtitles are; the picture, which is the frame without
borders that are flat in all frames of a clip, such as letterboxes; the picture without 5 % at each side; and
the middle three quarters of its width. Lightness and its sums are integers, so that every processor gives the
same signature. Only a sketch of 12 x 12 squares can be drawn from the signature of a frame.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.backbone import Backbone, descriptor
from obygaze_features.backbones.resize import box_resize

HEIGHT = 96
WIDTH = 160
CELLS = 12
"""Cells of a view along each side."""


class View(NamedTuple):
    """A part of frames that is described: its edges, as shares of height and width.

    Attributes
    ----------
    between_borders
        Whether it is a part of the picture between flat borders, and not of the whole frame.
    """

    top: float
    bottom: float
    left: float
    right: float
    between_borders: bool

    def of(self, frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Crop frames `[F, h, w]` to the view, whose edges are rounded to whole pixels."""
        height, width = frames.shape[1:]
        rows = slice(round(self.top * height), round(self.bottom * height))
        columns = slice(round(self.left * width), round(self.right * width))
        return frames[:, rows, columns]


VIEWS = {
    "frame": View(top=0.0, bottom=1.0, left=0.0, right=1.0, between_borders=False),
    "upper": View(top=0.0, bottom=0.78, left=0.0, right=1.0, between_borders=False),
    "picture": View(top=0.0, bottom=1.0, left=0.0, right=1.0, between_borders=True),
    "inner": View(top=0.05, bottom=0.95, left=0.05, right=0.95, between_borders=True),
    "middle": View(top=0.0, bottom=1.0, left=0.125, right=0.875, between_borders=True),
}
"""The views by name, in the order of the columns."""
SIGNS = 2 * CELLS * (CELLS - 1)
"""Signs of a view: [12, 11] across, then [11, 12] down."""
DEAD_ZONE = 1
"""Levels of lightness up to which neighbouring cells are equal."""
FLAT = 6
"""Levels between the 3rd and 97th percentile of a row or column up to which it is flat."""
MIN_SHOWN = 0.4
"""Share of height or width that must be left between borders; else nothing is cut."""
LEVELS = 32
"""Levels of lightness that the texture tells apart."""
FEATURES = (*(f"{view}_{k}" for view in VIEWS for k in range(SIGNS)), "texture")


def signature(n_frames: int = 16) -> Backbone:
    """Build the backbone that describes frames by signs of lightness differences, to recognise copies.

    Parameters
    ----------
    n_frames
        Sampled frames of a clip.
    """
    return descriptor(
        "signature",
        n_frames,
        FEATURES,
        prepare,
        encode,
        resize=f"squash to {HEIGHT}x{WIDTH}, box mean",
        crop="flat borders, of three of five views",
        order="resize, crop",
        citation="obygaze",
        arrays=("frames",),
        dtype="float16",
    )


def prepare(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Squash a frame, RGB `[H, W, 3]`, and convert it to lightness, uint8 `[96, 160, 1]`.

    Lightness is Y' of ITU-R BT.601: .299 red + .587 green + .114 blue. It is computed in whole numbers, so
    that every processor gives the same.
    """
    small = box_resize(frame, HEIGHT, WIDTH).astype(np.int32)
    red, green, blue = np.moveaxis(small, 2, 0)
    thousandths = 299 * red + 587 * green + 114 * blue
    lightness: NDArray[np.uint8] = ((thousandths + 500) // 1000).astype(np.uint8)  # rounded half up
    return lightness[:, :, None]


def encode(batch: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """Compute the signatures of the frames of a batch of clips.

    A view is a part of a frame, such as its middle, which is cut into cells. A sign says of a cell whether
    the next one is darker (-1), about as light (0) or lighter (1). The texture is the share of pixels that do
    not have the commonest level of lightness: 0 for a frame of one colour, which cannot be recognised.

    Parameters
    ----------
    batch
        Lightness of the frames of clips, `[B, F, 96, 160, 1]`.

    Returns
    -------
    dict
        `frames`, float16 `[B, F, 5 * SIGNS + 1]`: for each frame the signs of five views, `SIGNS` of each,
        and its texture, in the order of `FEATURES`.
    """
    signatures = np.stack([describe(clip[..., 0]) for clip in batch])
    return {"frames": signatures.astype(np.float16)}


def describe(clip: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Compute the signature of each frame of a clip of lightness `[F, H, W]`: `[F, len(FEATURES)]`.

    A frame is looked at in five views, each a part of it: the whole frame, the frame without subtitles, the
    picture without flat borders (such as letterboxes), and the inner and the middle part of this picture. So
    copies are recognised that were cropped, or have other borders.

    Of each view a signature has the signs (-1, 0 or 1) of the differences between neighbouring cells of
    12 x 12. At its end stands the texture, one number.
    """
    top, bottom = lines_between_borders(clip, line_axis=2)  # rows of pixels that are not flat
    left, right = lines_between_borders(clip, line_axis=1)  # columns
    picture = clip[:, top:bottom, left:right]
    descriptions = []
    for view in VIEWS.values():
        pixels = view.of(picture if view.between_borders else clip)
        descriptions.append(_difference_signs(cell_means(pixels)))  # [F, SIGNS]
    descriptions.append(_texture(picture))  # [F, 1]
    return np.concatenate(descriptions, axis=1)


def _texture(picture: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the share of the pixels of each frame `[F, h, w]` that do not have its commonest level, [F, 1].

    There are 32 levels, of 8 values of lightness each. A frame of one colour has 0, so that pictures with too
    little in them to be recognised can be told.
    """
    pixels = picture.reshape(len(picture), -1)  # [F, pixels]
    levels = pixels // (256 // LEVELS)  # 0 to 31
    shares_of_commonest = [np.bincount(frame, minlength=LEVELS).max() / frame.size for frame in levels]
    return 1 - np.array(shares_of_commonest)[:, None]


def _difference_signs(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the signs of the differences between neighbouring cells `[F, 12, 12]`: `[F, SIGNS]`.

    Differences across come first, then those down. One of at most `DEAD_ZONE` counts as none: its sign is 0.
    """
    across = np.diff(means, axis=2).reshape(len(means), -1)
    down = np.diff(means, axis=1).reshape(len(means), -1)
    differences = np.concatenate([across, down], axis=1)
    is_outside_dead_zone = np.abs(differences) > DEAD_ZONE
    signs: NDArray[np.float64] = np.sign(differences) * is_outside_dead_zone
    return signs


def lines_between_borders(clip: NDArray[np.uint8], line_axis: int) -> tuple[int, int]:
    """Return the first row (or column) of a clip `[F, h, w]` between flat borders, and one past the last.

    A line is flat if its lightness hardly changes along it in nine of ten frames. If there are no such
    borders, or little would be left between them, all lines are returned.

    Parameters
    ----------
    clip
        Lightness of the frames.
    line_axis
        Axis along which a line runs: 2 for rows, 1 for columns.
    """
    # The darkest 3 % and the lightest 3 % of the pixels of a line are left out, as they may be noise.
    low, high = np.percentile(clip, (3, 97), axis=line_axis, method="nearest")  # [F, lines]
    ranges = high.astype(int) - low
    # A line has at most this range in nine of ten frames.
    usual_ranges = np.percentile(ranges, 90, axis=0, method="nearest")  # [lines]

    n_lines = len(usual_ranges)
    lines_of_picture = np.flatnonzero(usual_ranges > FLAT)
    if not len(lines_of_picture):  # a dark or empty clip
        return 0, n_lines
    first = int(lines_of_picture[0])
    end = int(lines_of_picture[-1]) + 1
    if end - first < MIN_SHOWN * n_lines:
        return 0, n_lines

    # The line next to a border is a mixture of border and picture, and is left out.
    if first > 0:
        first += 1
    if end < n_lines:
        end -= 1
    return first, end


def cell_means(view: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Divide frames `[F, h, w]` into 12 x 12 cells, and return the mean lightness of each: `[F, 12, 12]`."""
    height, width = view.shape[1:]
    row_edges = np.arange(CELLS + 1) * height // CELLS
    column_edges = np.arange(CELLS + 1) * width // CELLS
    # Sums from each edge up to the next.
    sums_of_rows = np.add.reduceat(view, row_edges[:-1], axis=1, dtype=np.int64)  # [F, 12, w]
    sums = np.add.reduceat(sums_of_rows, column_edges[:-1], axis=2)  # [F, 12, 12]
    n_pixels = np.diff(row_edges)[:, None] * np.diff(column_edges)
    means: NDArray[np.float64] = sums / n_pixels
    return means
