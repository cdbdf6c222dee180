"""`signature`: compute by what the pictures of a clip are known again, without weights.

A frame is the signs of the differences of lightness between neighbouring cells of 12 x 12, which brightness,
contrast, gamma, colours and compression leave as they are, in five views: the frame, and it without the lower
22 %, where subtitles are; the picture, which is what borders leave that are flat in all frames of a clip,
such as letterboxes, and it without 5 % at each side, and three quarters of its width. Lightness and its sums
are integers, so that every processor gives the same signature. Of a frame's signature no more can be drawn
than a sketch of 12 x 12 squares.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.backbone import Backbone, descriptor
from obygaze_features.backbones.resize import box_resize

HEIGHT, WIDTH = 96, 160
CELLS = 12
VIEWS = {
    "frame": (0.0, 1.0, 0.0, 1.0),
    "upper": (0.0, 0.78, 0.0, 1.0),
    "picture": (0.0, 1.0, 0.0, 1.0),
    "inner": (0.05, 0.95, 0.05, 0.95),
    "middle": (0.0, 1.0, 0.125, 0.875),
}
"""Shares of height and width from where to where a view reaches: two of the frame, three of the picture."""
OF_FRAME = ("frame", "upper")
SIGNS = 2 * CELLS * (CELLS - 1)
"""Of a view: [12, 11] across, then [11, 12] down."""
DEAD_ZONE = 1
"""Levels of lightness up to which neighbouring cells are equal."""
FLAT = 6
"""Levels between the 3rd and 97th percentile of a row or column up to which it is flat."""
LEAST_SHOWN = 0.4
"""Share of height or width that must be left between borders; else nothing is cut."""
LEVELS = 32
FEATURES = (*(f"{view}_{k}" for view in VIEWS for k in range(SIGNS)), "texture")


def signature(n_frames: int = 16) -> Backbone:
    """Build the backbone for clips of `n_frames` sampled frames."""
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
    """Squash a frame `[H, W, 3]` to its lightness `[96, 160, 1]` (Y' of ITU-R BT.601)."""
    red, green, blue = np.moveaxis(box_resize(frame, HEIGHT, WIDTH).astype(np.int32), 2, 0)
    lightness: NDArray[np.uint8] = ((299 * red + 587 * green + 114 * blue + 500) // 1000).astype(np.uint8)
    return lightness[:, :, None]


def encode(batch: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """Describe a batch of clips, `[B, F, 96, 160, 1]`.

    Returns
    -------
    `frames`, float16 `[B, F, 5 * 264 + 1]`: signs of five views, and the share of the frame's pixels that do
    not have its commonest of 32 levels.
    """
    return {"frames": np.stack([describe(clip[..., 0]) for clip in batch]).astype(np.float16)}


def describe(clip: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Describe the frames of one clip, lightness `[F, H, W]`, as `[F, len(FEATURES)]`."""
    top, bottom = shown(clip, 2)
    left, right = shown(clip, 1)
    picture = clip[:, top:bottom, left:right]
    columns = []
    for name, (y0, y1, x0, x1) in VIEWS.items():
        whole = clip if name in OF_FRAME else picture
        height, width = whole.shape[1:]
        means = cells(
            whole[:, round(y0 * height) : round(y1 * height), round(x0 * width) : round(x1 * width)]
        )
        across, down = np.diff(means, axis=2), np.diff(means, axis=1)
        steps = np.concatenate([across.reshape(len(clip), -1), down.reshape(len(clip), -1)], axis=1)
        columns.append(np.sign(steps) * (np.abs(steps) > DEAD_ZONE))
    level = picture.reshape(len(clip), -1) // (256 // LEVELS)
    commonest = [np.bincount(frame, minlength=LEVELS).max() / frame.size for frame in level]
    return np.concatenate([*columns, 1 - np.array(commonest)[:, None]], axis=1)


def shown(clip: NDArray[np.uint8], along: int) -> tuple[int, int]:
    """Find from where to where the rows (`along` 2) or columns (1) of a clip are not flat in all frames."""
    low, high = np.percentile(clip, (3, 97), axis=along, method="nearest")  # [F, n]
    moves = np.flatnonzero(np.percentile(high.astype(int) - low, 90, axis=0, method="nearest") > FLAT)
    n = clip.shape[3 - along]
    if not len(moves) or moves[-1] + 1 - moves[0] < LEAST_SHOWN * n:
        return 0, n
    first, last = int(moves[0]), int(moves[-1]) + 1
    return first + (first > 0), last - (last < n)  # the row between border and picture is of both


def cells(view: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Average the cells of frames `[F, h, w]`: `[F, 12, 12]`."""
    rows, columns = (np.arange(CELLS + 1) * n // CELLS for n in view.shape[1:])
    sums = np.add.reduceat(np.add.reduceat(view, rows[:-1], axis=1, dtype=np.int64), columns[:-1], axis=2)
    means: NDArray[np.float64] = sums / (np.diff(rows)[:, None] * np.diff(columns))
    return means
