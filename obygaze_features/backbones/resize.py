"""Resize frames in integer arithmetic, so that all machines give the same pixels.

The numpy code is the definition. OpenCV, if installed, gives the same result faster. Its sums are always
used; its bilinear filter is used only for sizes where this build equals numpy bit for bit (builds for other
processors may round differently). So are Pillow's filters, for the large frames that it is quicker with.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.pixels import opencv

PILLOW_BITS = 22  # of the fraction that Pillow gives its 8-bit coefficients: 32 - 8 - 2
OPENCV_BITS = 11  # of the fraction that OpenCV gives its 8-bit coefficients
LARGE = 1 << 20  # pixels of a frame from which on Pillow is quicker
MOST_SUMMED = (1 << 31) // 255  # pixels whose sum fits in OpenCV's 32-bit sums


def box_resize(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Squash an image to a fixed size by averaging the pixels of each cell.

    Cell i of n covers the rows from `i * H // n` up to `(i + 1) * H // n`, at least one; columns likewise.
    Sums are integers and the mean is rounded half up, so the result depends on no floating-point library.

    Parameters
    ----------
    image
        `[H, W, C]`.

    Returns
    -------
    `[height, width, C]`.
    """
    rows, row_counts = _cells(image.shape[0], height)
    columns, column_counts = _cells(image.shape[1], width)
    if (cv2 := opencv()) is not None and image.shape[0] * image.shape[1] <= MOST_SUMMED:
        sums = cv2.integral(image).reshape(image.shape[0] + 1, image.shape[1] + 1, -1)
        sums = sums[rows + row_counts] - sums[rows]
        sums = (sums[:, columns + column_counts] - sums[:, columns]).astype(np.uint32)
    else:
        sums = np.add.reduceat(image, rows, axis=0, dtype=np.uint32)
        sums = np.add.reduceat(sums, columns, axis=1)
    counts = (row_counts[:, None] * column_counts[None, :])[:, :, None]
    means: NDArray[np.uint32] = (sums + counts // 2) // counts
    return means.astype(np.uint8)


def opencv_bilinear(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Squash an image as `cv2.resize(image, (width, height))` does, bit for bit.

    Two taps an axis whatever the scale (no antialiasing), half-pixel centres in float32, weights of 11 bits,
    and the rounding of OpenCV's 8-bit code: horizontal sums lose 4 bits, vertical products 16, the sum 2,
    half up. At the left and right edge the fraction is dropped; at the top and bottom only the row is
    clipped. As in OpenCV, halving both sides is the mean of 2 x 2 pixels, and the same size is a copy.

    Parameters
    ----------
    image
        `[H, W, C]`.

    Returns
    -------
    `[height, width, C]`.
    """
    if image.shape[:2] == (height, width):
        return image.copy()
    if opencv() is not None and _agrees(_by_opencv, _bilinear_by_numpy, image.shape, height, width):
        return _by_opencv(image, height, width)
    return _bilinear_by_numpy(image, height, width)


def _by_opencv(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    resized: NDArray[np.uint8] = opencv().resize(image, (width, height))
    return resized.reshape(height, width, -1)


def _bilinear_by_numpy(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    if image.shape[:2] == (2 * height, 2 * width):
        sums = np.add.reduce(image.reshape(height, 2, width, 2, -1), axis=(1, 3), dtype=np.uint16)
        means: NDArray[np.uint16] = (sums + 2) >> 2
        return means.astype(np.uint8)
    rows, row_weights = _two_taps(image.shape[0], height, drop_edge_fraction=False)
    columns, column_weights = _two_taps(image.shape[1], width, drop_edge_fraction=True)
    columns, column_weights = _by_channel(columns, column_weights, image.shape[2])
    lines = image.reshape(len(image), -1).take(rows.ravel(), axis=0)  # [2 * height, W * C]
    sums = lines.take(columns[0], axis=1) * column_weights[0]
    sums += lines.take(columns[1], axis=1) * column_weights[1]
    sums >>= 4
    pairs = sums.reshape(2, height, -1)
    pairs *= row_weights[:, :, None]
    pairs >>= 16
    resized: NDArray[np.int32] = (pairs[0] + pairs[1] + 2) >> 2
    return resized.reshape(height, width, -1).astype(np.uint8)


@lru_cache(maxsize=256)
def _agrees(
    theirs: Callable[..., Any], ours: Callable[..., Any], shape: tuple[int, int, int], *how: Any
) -> bool:
    """Return whether a library resizes noise of a shape bit-identically to numpy."""
    noise = np.frombuffer(np.random.default_rng(0).bytes(math.prod(shape)), np.uint8).reshape(shape)
    try:
        return np.array_equal(theirs(noise, *how), ours(noise, *how))
    except ImportError:  # it is not installed
        return False


def antialiased_resize(
    image: NDArray[np.uint8],
    size: tuple[int, int],
    crop: tuple[int, int, int, int],
    name: str,
    bits: int | None = PILLOW_BITS,
) -> NDArray[np.uint8]:
    """Resize as Pillow or torch does, bit for bit; compute only pixels inside the crop.

    Separable, columns first, rounded half up and clipped to uint8 after each of the two passes; the kernel is
    stretched by the scale when shrinking (antialiasing), and its weights are rounded. So did every Pillow
    before 13, which takes rows first where the height shrinks much more than the width, and so does torch's
    `interpolate` on uint8, with weights of 16 bits.

    Parameters
    ----------
    image
        `[H, W, C]`.
    size
        Height and width of the whole resized image.
    crop
        Top, left, height and width of the part that is wanted.
    name
        The filter: `bilinear` or `bicubic`.
    bits
        Of the weights' fraction, 22 in Pillow; None: as many as keep the largest below 2^15, as torch does.

    Returns
    -------
    `[crop height, crop width, C]`.
    """
    if image.shape[:2] == size:  # all weights are 0 or 1
        return image[crop[0] : crop[0] + crop[2], crop[1] : crop[1] + crop[3]].copy()
    is_large = bits == PILLOW_BITS and image.shape[0] * image.shape[1] >= LARGE and image.shape[2] == 3
    if is_large and _agrees(_by_pillow, _antialiased_by_numpy, image.shape, size, crop, name):
        return _by_pillow(image, size, crop, name)
    return _antialiased_by_numpy(image, size, crop, name, bits)


def _by_pillow(
    image: NDArray[np.uint8], size: tuple[int, int], crop: tuple[int, int, int, int], name: str
) -> NDArray[np.uint8]:
    from PIL import Image  # noqa: PLC0415 - not needed to read a store

    top, left, height, width = crop
    resized = Image.fromarray(image).resize(size[::-1], Image.Resampling[name.upper()])
    return np.asarray(resized)[top : top + height, left : left + width].copy()


def _antialiased_by_numpy(
    image: NDArray[np.uint8],
    size: tuple[int, int],
    crop: tuple[int, int, int, int],
    name: str,
    bits: int | None = PILLOW_BITS,
) -> NDArray[np.uint8]:
    top, left, height, width = crop
    rows, row_weights, row_bits = _taps(image.shape[0], size[0], name, bits)
    columns, column_weights, column_bits = _taps(image.shape[1], size[1], name, bits)
    rows, row_weights = rows[:, top : top + height], row_weights[:, top : top + height]
    columns, column_weights = columns[:, left : left + width], column_weights[:, left : left + width]
    first, last = int(rows.min()), int(rows.max())
    columns, column_weights = _by_channel(columns, column_weights, image.shape[2])
    lines = image.reshape(len(image), -1)[first : last + 1]
    across = _weighted_sum(lines, columns, column_weights[:, None, :], 1, column_bits)
    down = _weighted_sum(across, rows - first, row_weights[:, :, None], 0, row_bits)
    return down.reshape(height, width, -1)


def _bilinear(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the triangle filter."""
    return np.maximum(1.0 - np.abs(x), 0.0)


def _bicubic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cubic convolution filter with a = -0.5 (Keys 1981, eq. 15)."""
    x, a = np.abs(x), -0.5
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


KERNELS = {"bilinear": (_bilinear, 1.0), "bicubic": (_bicubic, 2.0)}
"""The filters, with their half-widths at scale one."""


def _cells(size: int, n: int) -> tuple[NDArray[np.intp], NDArray[np.uint32]]:
    edges = np.arange(n + 1) * size // n
    return edges[:-1], np.maximum(np.diff(edges), 1).astype(np.uint32)


@lru_cache(maxsize=64)
def _two_taps(size: int, n: int, *, drop_edge_fraction: bool) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Return the indices and 11-bit weights of the two taps of each of `n` outputs, both `[2, n]`."""
    scale = np.float64(size) / n
    centre = ((np.arange(n) + 0.5) * scale - 0.5).astype(np.float32)
    index = np.floor(centre).astype(np.intp)
    fraction = centre - index.astype(np.float32)
    if drop_edge_fraction:
        fraction[(index < 0) | (index >= size - 1)] = 0
    unit = np.float32(1 << OPENCV_BITS)
    weights = np.rint(np.stack([(1 - fraction) * unit, fraction * unit])).astype(np.int32)
    return np.clip(np.stack([index, index + 1]), 0, size - 1), weights


@lru_cache(maxsize=64)
def _taps(size: int, n: int, name: str, bits: int | None) -> tuple[NDArray[np.intp], NDArray[np.int32], int]:
    """Return indices and weights of the taps of `n` outputs, both `[taps, n]`, and the weights' bits.

    Unused taps weigh 0.
    """
    scale, (kernel, support) = size / n, KERNELS[name]
    stretch = max(scale, 1.0)
    reach = support * stretch
    centre = (np.arange(n) + 0.5) * scale
    first = np.maximum((centre - reach + 0.5).astype(np.int64), 0)  # truncated, as the original's cast does
    last = np.minimum((centre + reach + 0.5).astype(np.int64), size)
    taps = np.arange(int((last - first).max()))[:, None]
    weights = kernel((taps + first - centre + 0.5) * (1.0 / stretch)) * (taps < last - first)
    total = np.zeros(n)
    for row in weights:  # summed in their order: another order may change the last bit
        total += row
    weights = weights * np.divide(1.0, total, out=np.ones(n), where=total != 0)
    if bits is None:
        bits = next(n for n in range(PILLOW_BITS + 1) if int(weights.max() * (2 << n) + 0.5) >= 1 << 15)
    rounded = np.trunc(weights * (1 << bits) + np.copysign(0.5, weights)).astype(np.int32)
    return np.minimum(first + taps, size - 1).astype(np.intp), rounded, bits


def _by_channel(
    index: NDArray[np.intp], weights: NDArray[np.int32], channels: int
) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Turn taps over pixels, `[taps, n]`, into taps over the samples of a line, which numpy takes faster."""
    samples = (index[:, :, None] * channels + np.arange(channels)).reshape(len(index), -1)
    return samples, weights.repeat(channels, axis=1)


def _weighted_sum(
    lines: NDArray[np.uint8], index: NDArray[np.intp], weights: NDArray[np.int32], axis: int, bits: int
) -> NDArray[np.uint8]:
    """Sum the taps, rows of `index`, along one axis of `[H, samples]`."""
    total: NDArray[np.int32] = np.multiply(lines.take(index[0], axis=axis), weights[0], dtype=np.int32)
    for where, weight in zip(index[1:], weights[1:], strict=True):
        total += np.multiply(lines.take(where, axis=axis), weight, dtype=np.int32)
    total += 1 << (bits - 1)
    total >>= bits
    np.clip(total, 0, 255, out=total)
    return total.astype(np.uint8)
