"""Resize frames in integer arithmetic, so that all machines give the same pixels.

The numpy code is the definition. OpenCV, if installed, gives the same result faster. Its sums are always
used; its bilinear filter is used only for sizes where this build equals numpy bit for bit (builds for other
processors may round differently). So are Pillow's filters, for the large frames that it is quicker with.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.pixels import opencv

PILLOW_BITS = 22
"""Bits of the fraction of the weights that Pillow uses for 8-bit pixels: 32 - 8 - 2."""
OPENCV_BITS = 11
"""Bits of the fraction of the weights that OpenCV uses for 8-bit pixels."""
LARGE_PIXELS = 1 << 20
"""Pixels of a frame from which on Pillow is quicker than numpy."""
ACROSS_BITS = 7
"""Bits of the fraction that OpenCV keeps once pixels are weighted across."""
DOWN_BITS = 2
"""Bits of the fraction that OpenCV keeps of each row once it is weighted down."""
MAX_SUMMED = (1 << 31) // 255
"""Most pixels, each up to 255, whose sum is sure to fit in OpenCV's sums, which are 32 bits with a sign."""
TORCH_WEIGHT_END = 1 << 15
"""Torch holds weights as 16-bit integers with a sign, which are below this number."""


def box_resize(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Squash an image to a fixed size by averaging the pixels of each cell.

    The image is divided into `height` x `width` cells. Of n cells down, cell i covers the rows from
    `i * H // n` up to, not including, `(i + 1) * H // n`, but at least one; and likewise across. Sums are
    integers and the mean is rounded half up, so the result depends on no floating-point library.

    Parameters
    ----------
    image
        `[H, W, C]`.

    Returns
    -------
    `[height, width, C]`.
    """
    down = _cells(image.shape[0], height)
    across = _cells(image.shape[1], width)
    n_pixels = image.shape[0] * image.shape[1]
    if opencv() is not None and n_pixels <= MAX_SUMMED:
        sums = _cell_sums_by_opencv(image, down, across)
    else:
        sums = _cell_sums_by_numpy(image, down, across)
    n_in_cell = down.counts[:, None, None] * across.counts[None, :, None]  # [height, width, 1]
    means: NDArray[np.uint32] = (sums + n_in_cell // 2) // n_in_cell  # rounded half up
    return means.astype(np.uint8)


class _Cells(NamedTuple):
    """The cells into which an axis of an image is divided.

    Attributes
    ----------
    starts
        First pixel of each cell, `[n]`.
    counts
        Number of pixels of each cell, `[n]`.
    """

    starts: NDArray[np.intp]
    counts: NDArray[np.uint32]


def _cells(size: int, n: int) -> _Cells:
    """Divide an axis of `size` pixels into `n` cells of about equal length, each of at least one pixel.

    If there are more cells than pixels, some cells share a pixel.
    """
    edges = np.arange(n + 1) * size // n  # [n + 1]
    lengths = np.diff(edges)  # 0 for some cells if there are more cells than pixels
    counts = np.maximum(lengths, 1).astype(np.uint32)
    return _Cells(edges[:-1], counts)


def _cell_sums_by_opencv(image: NDArray[np.uint8], down: _Cells, across: _Cells) -> NDArray[np.uint32]:
    """Sum the pixels of each cell of an image `[H, W, C]`, by differences of OpenCV's running sums.

    Returns `[height, width, C]`, for the cells that `down` and `across` divide the image into.
    """
    height, width = image.shape[:2]
    # Entry [y, x] is the sum of all pixels above row y and left of column x: [H + 1, W + 1, C].
    integral = opencv().integral(image).reshape(height + 1, width + 1, -1)
    row_ends = down.starts + down.counts
    column_ends = across.starts + across.counts
    row_sums = integral[row_ends] - integral[down.starts]  # [height, W + 1, C]
    sums = row_sums[:, column_ends] - row_sums[:, across.starts]
    return np.asarray(sums, np.uint32)


def _cell_sums_by_numpy(image: NDArray[np.uint8], down: _Cells, across: _Cells) -> NDArray[np.uint32]:
    """Sum the pixels of each cell of an image `[H, W, C]`.

    Returns `[height, width, C]`, for the cells that `down` and `across` divide the image into.
    """
    # `reduceat` sums from each start up to the next start, but at least one pixel.
    row_sums = np.add.reduceat(image, down.starts, axis=0, dtype=np.uint32)  # [height, W, C]
    return np.asarray(np.add.reduceat(row_sums, across.starts, axis=1))


def opencv_bilinear(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Squash an image as `cv2.resize(image, (width, height))` does, bit for bit.

    A pixel of the result is a weighted sum of 2 x 2 pixels, however much the image shrinks: there is no
    antialiasing. `_bilinear_by_numpy` defines the result. OpenCV itself, which is faster, is called where
    this build of it gives the same for an image of noise of this size.

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
    """Squash an image `[H, W, C]` to `[height, width, C]` with OpenCV's bilinear filter."""
    resized: NDArray[np.uint8] = opencv().resize(image, (width, height))
    return resized.reshape(height, width, -1)


def _bilinear_by_numpy(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Squash an image `[H, W, C]` to `[height, width, C]` as OpenCV's bilinear filter does, bit for bit.

    It is squashed across, then down. A pixel of the result is the weighted sum of two pixels (its taps) side
    by side, and then of two such sums, one above the other.

    Numbers are in fixed point: with b bits of fraction, a value v is held as the whole number v * 2^b. The
    weights have `OPENCV_BITS` bits of fraction. Like OpenCV's 8-bit code, this cuts bits off after each step:

    - the weighted sum across has `OPENCV_BITS`, and is cut to `ACROSS_BITS`;
    - its product with a weight down has `ACROSS_BITS + OPENCV_BITS`, and is cut to `DOWN_BITS`;
    - the sum of both products has `DOWN_BITS`, and is rounded to a whole number.

    If both sides are halved, OpenCV takes the mean of 2 x 2 pixels instead.
    """
    if image.shape[:2] == (2 * height, 2 * width):
        return _halved(image)
    n_rows, n_columns, n_channels = image.shape
    column_taps = _by_channel(_two_taps(n_columns, width, drop_edge_fraction=True), n_channels)
    row_taps = _two_taps(n_rows, height, drop_edge_fraction=False)

    # Each row of the result has an upper and a lower row of the image as taps. Those rows alone are needed:
    # `height` upper ones, then `height` lower ones.
    rows = image.reshape(n_rows, -1).take(row_taps.positions.ravel(), axis=0)  # [2 * height, W * C]

    # Across: two pixels of a row. Shifting a number by k bits to the right cuts off k bits of its fraction.
    left_columns, right_columns = column_taps.positions
    left_weights, right_weights = column_taps.weights
    across = rows.take(left_columns, axis=1) * left_weights
    across += rows.take(right_columns, axis=1) * right_weights
    across >>= OPENCV_BITS - ACROSS_BITS

    # Down: the upper and the lower row.
    upper_and_lower = across.reshape(2, height, -1)  # [2, height, width * C]
    upper_and_lower *= row_taps.weights[:, :, None]
    upper_and_lower >>= ACROSS_BITS + OPENCV_BITS - DOWN_BITS
    upper, lower = upper_and_lower
    half = 1 << (DOWN_BITS - 1)
    resized: NDArray[np.int32] = (upper + lower + half) >> DOWN_BITS  # rounded half up
    return resized.reshape(height, width, -1).astype(np.uint8)


def _halved(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Halve both sides of an image by the mean of each 2 x 2 pixels, rounded half up."""
    height, width, channels = image.shape
    blocks = image.reshape(height // 2, 2, width // 2, 2, channels)
    sums = np.add.reduce(blocks, axis=(1, 3), dtype=np.uint16)
    means: NDArray[np.uint16] = (sums + 2) >> 2  # divided by 4
    return means.astype(np.uint8)


@lru_cache(maxsize=256)
def _agrees(
    by_library: Callable[..., Any],
    by_numpy: Callable[..., Any],
    shape: tuple[int, int, int],
    *settings: Any,
) -> bool:
    """Return whether a library resizes an image of random pixels to the same bytes as the numpy code.

    Builds of a library may round differently, so this is asked once for each size, and remembered.

    Parameters
    ----------
    by_library, by_numpy
        Functions that take the image and the settings.
    shape
        Shape of the image.
    settings
        Further arguments of both.
    """
    random_bytes = np.random.default_rng(0).bytes(math.prod(shape))
    noise = np.frombuffer(random_bytes, np.uint8).reshape(shape)
    try:
        resized_by_library = by_library(noise, *settings)
    except ImportError:  # the library is not installed
        return False
    return np.array_equal(resized_by_library, by_numpy(noise, *settings))


def antialiased_resize(
    image: NDArray[np.uint8],
    size: tuple[int, int],
    crop: tuple[int, int, int, int],
    name: str,
    bits: int | None = PILLOW_BITS,
) -> NDArray[np.uint8]:
    """Resize an image as Pillow or torch does, bit for bit, and crop it; compute only the crop's pixels.

    The image is resized across, then down; both results are rounded half up and clipped to uint8. When an
    image shrinks, the kernel is stretched by the scale (antialiasing). This is what Pillow does before
    version 13, and torch's `interpolate` on uint8 with weights of fewer bits.

    Large images are resized by Pillow itself, which is quicker there, if it gives the same bytes for an image
    of noise of this size. (Pillow 13 does not for some sizes: it resizes down first where the height shrinks
    much more than the width.)

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
        Bits of the weights' fraction: 22 in Pillow; None for torch, where they are as many as keep the
        largest weight below 2^15 (`_bits_of_torch`).

    Returns
    -------
    `[crop height, crop width, C]`.
    """
    if image.shape[:2] == size:  # nothing to resize
        top, left, height, width = crop
        return image[top : top + height, left : left + width].copy()
    suits_pillow = bits == PILLOW_BITS and image.shape[2] == 3
    is_large = image.shape[0] * image.shape[1] >= LARGE_PIXELS
    if suits_pillow and is_large:
        settings = (size, crop, name)
        if _agrees(_by_pillow, _antialiased_by_numpy, image.shape, *settings):
            return _by_pillow(image, *settings)
    return _antialiased_by_numpy(image, size, crop, name, bits)


def _by_pillow(
    image: NDArray[np.uint8], size: tuple[int, int], crop: tuple[int, int, int, int], name: str
) -> NDArray[np.uint8]:
    """Resize an image `[H, W, 3]` with Pillow, and crop it.

    Parameters
    ----------
    image
        The image.
    size
        Height and width of the whole resized image.
    crop
        Top, left, height and width of the part that is wanted.
    name
        The filter: `bilinear` or `bicubic`.
    """
    from PIL import Image  # noqa: PLC0415 - not needed to read a store

    top, left, height, width = crop
    whole_height, whole_width = size
    picture_filter = Image.Resampling[name.upper()]
    resized = Image.fromarray(image).resize((whole_width, whole_height), picture_filter)
    return np.asarray(resized)[top : top + height, left : left + width].copy()


def _antialiased_by_numpy(
    image: NDArray[np.uint8],
    size: tuple[int, int],
    crop: tuple[int, int, int, int],
    name: str,
    bits: int | None = PILLOW_BITS,
) -> NDArray[np.uint8]:
    """Resize an image as Pillow's or torch's antialiasing filters do, across, then down; and crop it.

    Each pixel of the result is a weighted sum of pixels of the image, which are called its taps. Only the
    pixels of the crop are computed.

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
        Bits of the weights' fraction; None for as many as torch gives them.
    """
    n_rows, n_columns, n_channels = image.shape
    top, left, height, width = crop
    whole_height, whole_width = size
    # Of the taps of all pixels of the resized image, those of the crop.
    row_taps = _antialiasing_taps(n_rows, whole_height, name, bits).of_outputs(top, height)
    column_taps = _antialiasing_taps(n_columns, whole_width, name, bits).of_outputs(left, width)

    # Only the rows of the image that the crop needs. The taps count these from 0.
    first_row = int(row_taps.positions.min())
    last_row = int(row_taps.positions.max())
    rows = image.reshape(n_rows, -1)[first_row : last_row + 1]  # [needed rows, W * C]
    row_taps_from_first = row_taps._replace(positions=row_taps.positions - first_row)

    # The values of all channels stand side by side in a row, so that one sum goes over all of them.
    across = _weighted_sum(rows, _by_channel(column_taps, n_channels), axis=1)  # [needed rows, width * C]
    down = _weighted_sum(across, row_taps_from_first, axis=0)  # [height, width * C]
    return down.reshape(height, width, -1)


def _bilinear(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights of the triangle kernel at distances `x` from its centre, in pixels."""
    return np.maximum(1.0 - np.abs(x), 0.0)


def _bicubic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights of the cubic convolution kernel at distances `x` from its centre, in pixels.

    Its parameter a is -0.5 (Keys 1981, equation 15).
    """
    a = -0.5
    distance = np.abs(x)
    near = ((a + 2.0) * distance - (a + 3.0)) * distance * distance + 1  # up to 1 pixel
    far = (((distance - 5) * distance + 8) * distance - 4) * a  # from 1 to 2 pixels
    return np.where(distance < 1.0, near, np.where(distance < 2.0, far, 0.0))


KERNELS = {"bilinear": (_bilinear, 1.0), "bicubic": (_bicubic, 2.0)}
"""The filters, with their half-widths at scale one."""


class _Taps(NamedTuple):
    """The pixels (taps) whose weighted sum is a pixel of the result, along one axis.

    Sums are computed with whole numbers, in fixed point: a weight w is held as round(w * 2^bits), and the sum
    is divided by 2^bits in the end. So all machines give the same result.

    Attributes
    ----------
    positions
        Positions of the pixels, `[taps, n]` for `n` outputs.
    weights
        Their weights, whole numbers, `[taps, n]`.
    bits
        Bits of the weights' fraction: a weight of 1 is 2^bits.
    """

    positions: NDArray[np.intp]
    weights: NDArray[np.int32]
    bits: int

    def of_outputs(self, first: int, n: int) -> "_Taps":
        """Return what computes only `n` of the result's pixels (outputs), from the one numbered `first` on.

        It is the pixels of the image that each of these outputs is a weighted sum of, and their weights.
        """
        outputs = slice(first, first + n)
        return _Taps(self.positions[:, outputs], self.weights[:, outputs], self.bits)


@lru_cache(maxsize=64)
def _two_taps(size: int, n: int, *, drop_edge_fraction: bool) -> _Taps:
    """Compute which two pixels (taps) each output pixel of OpenCV's bilinear filter mixes, and the weights.

    The weights are whole numbers in units of 1 / 2^11 (`OPENCV_BITS`), and those of an output add up to 1.

    Parameters
    ----------
    size, n
        Pixels of the image and of the result along the axis.
    drop_edge_fraction
        What to do for an output near the edge, one of whose taps would lie beyond it. True gives the pixel at
        the edge all of the weight, as OpenCV does across an image. False takes this pixel for both taps, with
        both weights, as OpenCV does down an image. That is not the same to the last bit: OpenCV cuts bits off
        each product of a pixel and a weight, so that two products lose more than one.
    """
    # Centre of each output, in pixels of the image. As in OpenCV, it is computed in double precision, and the
    # fraction in single precision.
    scale = np.float64(size) / n
    centre = ((np.arange(n) + 0.5) * scale - 0.5).astype(np.float32)
    first_tap = np.floor(centre).astype(np.intp)
    fraction = centre - first_tap.astype(np.float32)  # of the way from the first tap to the second
    if drop_edge_fraction:
        is_beyond_edge = (first_tap < 0) | (first_tap >= size - 1)
        fraction[is_beyond_edge] = 0

    weight_of_one = np.float32(1 << OPENCV_BITS)  # in fixed point
    exact_weights = np.stack([(1 - fraction) * weight_of_one, fraction * weight_of_one])  # [2, n]
    weights = np.rint(exact_weights).astype(np.int32)
    positions = np.clip(np.stack([first_tap, first_tap + 1]), 0, size - 1)
    return _Taps(positions, weights, OPENCV_BITS)


@lru_cache(maxsize=64)
def _antialiasing_taps(size: int, n: int, name: str, bits: int | None) -> _Taps:
    """Compute the pixels (taps) that each output pixel of an antialiasing filter mixes, and their weights.

    The weights of an output follow the filter's kernel, a curve around the output's centre. If the image
    shrinks, the kernel is stretched by as much, so that every pixel of the image counts. All outputs have as
    many taps as the output with most; unused taps have weight 0.

    Parameters
    ----------
    size, n
        Pixels of the image and of the result along the axis.
    name
        The filter: `bilinear` or `bicubic`.
    bits
        Bits of the weights' fraction; None for as many as torch gives them.
    """
    kernel, half_width = KERNELS[name]
    scale = size / n  # pixels of the image from one output to the next
    stretch = max(scale, 1.0)  # if the image grows, the kernel keeps its width
    reach = half_width * stretch  # pixels of the image from the centre to the end of the kernel
    centre = (np.arange(n) + 0.5) * scale  # of each output, in pixels of the image, [n]

    # An output takes the pixels whose middle the kernel reaches: from `first` up to, not including, `end`,
    # [n]. As in Pillow, ends are rounded by adding a half and cutting off the fraction (`astype`).
    first = np.maximum((centre - reach + 0.5).astype(np.int64), 0)
    end = np.minimum((centre + reach + 0.5).astype(np.int64), size)
    n_used = end - first  # taps of each output, [n]
    tap_numbers = np.arange(int(n_used.max()))[:, None]  # [taps, 1]
    is_used = tap_numbers < n_used  # [taps, n]
    pixels = first + tap_numbers  # [taps, n]

    distances = (pixels - centre + 0.5) * (1.0 / stretch)  # from the centre to the middle of a pixel
    weights = _summing_to_one(np.where(is_used, kernel(distances), 0.0))
    if bits is None:
        bits = _bits_of_torch(float(weights.max()))
    positions = np.minimum(pixels, size - 1).astype(np.intp)  # unused taps may lie beyond the edge
    return _Taps(positions, _fixed_point(weights, bits), bits)


def _fixed_point(weights: NDArray[np.float64], bits: int) -> NDArray[np.int32]:
    """Convert weights to fixed point: whole numbers, of which 2^bits stands for a weight of 1.

    Halves are rounded away from 0, as Pillow does.
    """
    half = np.copysign(0.5, weights)  # added before the fraction is cut off
    return np.trunc(weights * (1 << bits) + half).astype(np.int32)


def _summing_to_one(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale the weights of each output, `[taps, n]`, so that their sum is 1; a sum of 0 stays."""
    total = np.zeros(weights.shape[1])
    for weights_of_tap in weights:  # summed in their order: another order may change the last bit
        total += weights_of_tap
    inverse = np.divide(1.0, total, out=np.ones(len(total)), where=total != 0)
    return weights * inverse


def _bits_of_torch(largest_weight: float) -> int:
    """Return how many bits of fraction torch gives weights, so that the largest one fits in 16 bits.

    They are 16-bit integers with a sign, below 2^15.
    """
    for bits in range(PILLOW_BITS + 1):
        weight_with_one_bit_more = int(largest_weight * (1 << (bits + 1)) + 0.5)
        if weight_with_one_bit_more >= TORCH_WEIGHT_END:
            return bits
    raise ValueError(f"weight {largest_weight}: expected one near 1")


def _by_channel(taps: _Taps, channels: int) -> _Taps:
    """Let the values of a row be filtered in place of its pixels, of which each has C values (channels).

    A tap is a pixel of the row that is summed, with a weight, for an output pixel. The values of a pixel
    stand side by side: value c of pixel p is at p * C + c, in the row and in the output. Value c of an output
    is the sum of the values c of its taps, so that the weights are the same for all channels.

    Parameters
    ----------
    taps
        Positions of pixels and their weights, `[taps, n]` for `n` output pixels.
    channels
        Values of a pixel, C.

    Returns
    -------
    _Taps
        Positions of values and their weights, `[taps, n * C]`.
    """
    first_values = taps.positions[:, :, None] * channels  # of each pixel, [taps, n, 1]
    positions = first_values + np.arange(channels)  # [taps, n, C]
    weights = taps.weights.repeat(channels, axis=1)
    return _Taps(positions.reshape(len(taps.positions), -1), weights, taps.bits)


def _weighted_sum(rows: NDArray[np.uint8], taps: _Taps, *, axis: int) -> NDArray[np.uint8]:
    """Compute each output as a weighted sum of pixels of an image `[H, W * C]`, along axis 0 or 1.

    Weights are whole numbers that stand for fractions: 2^bits is a weight of 1. So a sum of pixels times
    weights is divided by 2^bits in the end. It is rounded half up, and clipped to uint8.

    Parameters
    ----------
    rows
        The image.
    taps
        The pixels that each output sums, and their weights.
    axis
        0 to sum rows, 1 to sum columns.
    """
    # Along axis 1 a tap has a weight for each column of the result, along axis 0 one for each row.
    weights = taps.weights[:, None, :] if axis == 1 else taps.weights[:, :, None]
    shape = list(rows.shape)
    shape[axis] = taps.positions.shape[1]  # number of outputs
    half = 1 << (taps.bits - 1)
    total = np.full(shape, half, np.int32)  # begins with a half, so that cutting the fraction rounds
    # The first tap of all outputs, then the second, and so on.
    for tap_positions, tap_weights in zip(taps.positions, weights, strict=True):
        total += np.multiply(rows.take(tap_positions, axis=axis), tap_weights, dtype=np.int32)
    total >>= taps.bits  # divided by 2^bits, the fraction cut off
    np.clip(total, 0, 255, out=total)
    return total.astype(np.uint8)
