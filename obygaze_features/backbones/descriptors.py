"""`descriptors`: compute classical visual descriptors, without weights.

All measures are computed from the frame squashed to 96 x 96, clip by clip, in a fixed order, so the same clip
gives the same bytes in any batch; and by sums, products, quotients, square roots and comparisons alone, which
IEEE 754 fixes to the last bit, so that it gives the same bytes on any processor. Measures and their sources:

- colour: histogram of hue, saturation and value (Swain & Ballard 1991); colourfulness (Hasler & Süsstrunk
  2003, the metric M3); mean of CIELAB a* and b* (CIE 1976).
- lightness: mean, spread and percentiles of CIELAB L*; its spread is the RMS contrast of Peli (1990).
- edges: Sobel magnitude, and its histogram over orientations (Dalal & Triggs 2005, one cell).
- texture: rotation-invariant uniform local binary patterns, P = 8, R = 1 (Ojala, Pietikäinen & Mäenpää 2002).
- motion between samples: mean absolute difference of L*, and the histogram distance, to the sample before.
- cuts: whether that histogram distance exceeds 0.5 (Zhang, Kankanhalli & Smoliar 1993), so that the mean over
  the frames is the share of samples with a cut before them. Samples are far apart: a floor for the cut rate.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.backbone import Backbone, descriptor
from obygaze_features.backbones.resize import box_resize

SIZE = 96
HUES, SATURATIONS, VALUES = 8, 3, 3
ORIENTATIONS = 8
_COS_45 = np.float32(np.sqrt(0.5))  # cosine and sine of 45 degrees
_COS_SIN_22_5 = (np.float32(0.9238795), np.float32(0.38268343))  # cosine and sine of 22.5 degrees
BIN_EDGES = (
    _COS_SIN_22_5, (_COS_45, _COS_45), _COS_SIN_22_5[::-1], (np.float32(0), np.float32(1)),
    (-_COS_SIN_22_5[1], _COS_SIN_22_5[0]), (-_COS_45, _COS_45), (-_COS_SIN_22_5[0], _COS_SIN_22_5[1]),
)  # fmt: skip
"""Cosine and sine of the bins' inner edges: multiples of 22.5 degrees."""
CUBE_ROOT_BITS = 709_958_130
"""Constant of the first guess of `cube_root`: two thirds of the bits of float32's 1.0 as a whole number, less
a correction that makes the largest error of the guess as small as possible."""
CIE_EPSILON = 216 / 24389
"""Relative luminance below which CIE 1976 replaces the cube root by a straight line."""
CIE_KAPPA = 24389 / 27
"""Slope of that line, times 116."""
NEIGHBOURS = ((-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1))
"""Rows down and columns across from a pixel to its eight neighbours, once around."""
NOT_UNIFORM = 9
"""Local binary pattern of all pixels that are not uniform; 0 to 8 count the neighbours at least as light."""
N_PATTERNS = NOT_UNIFORM + 1
CUT_DISTANCE = 0.5  # of histograms that sum to one: half of the pixels changed their bin
LIGHTNESS_PERCENTILES = (5, 50, 95)

FEATURES = (
    *(f"hsv_{h}{s}{v}" for h in range(HUES) for s in range(SATURATIONS) for v in range(VALUES)),
    "colourfulness",
    "lab_a_mean",
    "lab_b_mean",
    "lightness_mean",
    "lightness_sd",
    *(f"lightness_p{q}" for q in LIGHTNESS_PERCENTILES),
    "edge_mean",
    "edge_sd",
    *(f"edge_orientation_{k}" for k in range(ORIENTATIONS)),
    *(f"lbp_{k}" for k in range(N_PATTERNS)),
    "motion",
    "histogram_distance",
    "cut",
)

# sRGB (IEC 61966-2-1) to linear light, for every 8-bit value; then to XYZ relative to the D65 white.
_LEVELS = np.arange(256) / 255.0
_LINEAR_LIGHT = np.where(_LEVELS <= 0.04045, _LEVELS / 12.92, ((_LEVELS + 0.055) / 1.055) ** 2.4).astype(
    np.float32
)
_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_TO_XYZ = (_XYZ / _XYZ.sum(axis=1, keepdims=True)).astype(np.float32)


def descriptors(n_frames: int = 32) -> Backbone:
    """Build the backbone of classical visual descriptors: colour, lightness, edges, texture, motion and cuts.

    It needs no weights. Each of a clip's `n_frames` sampled frames has a vector of 103 numbers.
    """
    return descriptor(
        "descriptors",
        n_frames,
        FEATURES,
        prepare,
        encode,
        resize=f"squash to {SIZE}x{SIZE}, box mean",
        crop=None,
        order="resize",
        citation="Swain & Ballard 1991; Hasler & Süsstrunk 2003; CIE 1976; Peli 1990; "
        "Dalal & Triggs 2005; Ojala et al. 2002; Zhang et al. 1993",
    )


def prepare(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Squash an RGB frame, uint8 `[H, W, 3]`, to `[96, 96, 3]`, from which all descriptors are computed."""
    return box_resize(frame, SIZE, SIZE)


def encode(batch: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """Compute the descriptors of a batch of clips, `[B, F, 96, 96, 3]`.

    Returns
    -------
    `frames`, float32 `[B, F, 103]` with the columns of `FEATURES`, and `pooled`, `[B, 103]`, their mean.
    """
    frames = np.stack([describe_clip(clip) for clip in batch])
    return {"frames": frames.astype(np.float32), "pooled": frames.mean(axis=1).astype(np.float32)}


def describe_clip(clip: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Compute the descriptors of each RGB frame of a clip.

    Parameters
    ----------
    clip
        uint8 `[F, h, w, 3]`.

    Returns
    -------
    NDArray
        float64 `[F, len(FEATURES)]`, with the columns of `FEATURES`.
    """
    # One frame at a time: arrays of a whole clip do not fit the processor's caches.
    lightness, a, b = np.stack([to_cielab(frame) for frame in clip], axis=1)
    histogram = hsv_histogram(clip)

    # Of each frame but the first: how it differs from the one before.
    lightness_change = np.abs(np.diff(lightness, axis=0)).mean(axis=(1, 2), dtype=np.float64)  # [F - 1]
    histogram_distance = 0.5 * np.abs(np.diff(histogram, axis=0)).sum(axis=1)  # [F - 1]
    is_cut = histogram_distance > CUT_DISTANCE

    columns = [
        histogram,
        colourfulness(clip),
        _mean(a),
        _mean(b),
        lightness_statistics(lightness),
        edge_statistics(lightness),
        lbp_histogram(lightness),
        _from_sample_before(lightness_change),
        _from_sample_before(histogram_distance),
        np.concatenate([[0.0], is_cut]),
    ]
    return np.column_stack(columns)


def hsv_histogram(clip: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Compute the shares of each frame's pixels in 8 hues x 3 saturations x 3 values, `[F, 72]`.

    Hue is sector plus fraction of the hexcone model (Smith 1978), from 0 to 6; grey pixels have hue 0.

    Parameters
    ----------
    clip
        RGB frames, uint8 `[F, h, w, 3]`.
    """
    red, green, blue = (clip[..., channel].astype(np.int32) for channel in range(3))
    value = np.maximum(np.maximum(red, green), blue)  # 0 to 255
    chroma = value - np.minimum(np.minimum(red, green), blue)
    hue = _hue(red, green, blue, value, chroma)
    hue_bin = np.minimum((hue * (HUES / 6)).astype(np.int32), HUES - 1)
    hue_bin[chroma == 0] = 0

    # Saturation is chroma / value, from 0 to 1.
    saturation_bin = np.minimum(chroma * SATURATIONS // np.maximum(value, 1), SATURATIONS - 1)
    value_bin = value * VALUES // 256

    # One number for each combination, in the order of `FEATURES`: the bin of value counts up fastest.
    hue_and_saturation_bin = hue_bin * SATURATIONS + saturation_bin
    bins = hue_and_saturation_bin * VALUES + value_bin
    return _histograms(bins, HUES * SATURATIONS * VALUES)


def _hue(
    red: NDArray[np.int32],
    green: NDArray[np.int32],
    blue: NDArray[np.int32],
    value: NDArray[np.int32],
    chroma: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Compute the hue of pixels, from 0 to 6: red is at 0 (and 6), green at 2, blue at 4.

    The largest channel says near which of the three the hue is; of equal ones, the first in this order. Grey
    pixels get a number without meaning.

    Parameters
    ----------
    red, green, blue
        The channels.
    value
        The largest of them.
    chroma
        The largest of them minus the smallest, 0 for grey pixels.
    """
    divisor = np.maximum(chroma, 1)  # no division by 0 in grey pixels
    hue_near_red = (green - blue) / divisor % 6  # from -1 to 1; the remainder turns -1 to 0 into 5 to 6
    hue_near_green = (blue - red) / divisor + 2
    hue_near_blue = (red - green) / divisor + 4
    is_near = [value == red, value == green]
    return np.select(is_near, [hue_near_red, hue_near_green], default=hue_near_blue)


def colourfulness(clip: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Compute the colourfulness of each RGB frame of a clip, uint8 `[F, h, w, 3]`; returns `[F]`.

    It is the metric M3 of Hasler & Süsstrunk 2003, on values of 0 to 255: spread + .3 offset from grey, in
    the plane of the differences of red and green, and of yellow and blue.
    """
    red, green, blue = (clip[..., channel].astype(np.float32) for channel in range(3))
    red_green = red - green
    yellow_blue = 0.5 * (red + green) - blue
    spread = np.sqrt(_variance(red_green) + _variance(yellow_blue))
    offset_from_grey = np.sqrt(_mean(red_green) ** 2 + _mean(yellow_blue) ** 2)
    return np.asarray(spread + 0.3 * offset_from_grey)


def to_cielab(clip: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Convert an sRGB frame or frames, uint8 `[..., h, w, 3]`, to CIELAB, float32 `[3, ..., h, w]`.

    First comes the lightness L*, from 0 to 100, then a* and b* (CIE 1976, for the white of D65).
    """
    # By tables: 8-bit values to linear light, and that to X, Y and Z relative to white.
    red, green, blue = (_LINEAR_LIGHT[clip[..., channel]] for channel in range(3))
    compressed = []
    for red_weight, green_weight, blue_weight in _TO_XYZ:
        # X, then Y, then Z of the pixels.
        tristimulus = red_weight * red + green_weight * green + blue_weight * blue
        compressed.append(_compressed(tristimulus))
    fx, fy, fz = compressed
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)], np.float32)


def _compressed(tristimulus: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute the function f of CIELAB (CIE 1976) from X, Y or Z relative to white.

    It is the cube root, or a straight line near black.
    """
    line = (CIE_KAPPA * tristimulus + 16) / 116
    return np.where(tristimulus > CIE_EPSILON, cube_root(tristimulus), line)


def cube_root(t: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute cube roots of normal positive numbers, the same on every processor.

    The last bit of NumPy's result depends on the processor and on the C library. Here a guess from the bits
    of the number is improved by two steps of Halley's iteration. Some one in a million results differ in the
    last bit from the correctly rounded root.
    """
    # Read as a whole number, the bits of a float are about a constant plus a multiple of its logarithm. So a
    # third of them, plus another constant, are about the bits of the cube root.
    bits = t.view(np.int32)
    guess = (bits // 3 + CUBE_ROOT_BITS).view(np.float32)
    root32 = _nearer_cube_root(guess, t)  # relative error at most 3e-5
    root64 = _nearer_cube_root(root32.astype(np.float64), t)  # at most 1e-14
    return root64.astype(np.float32)


def _nearer_cube_root(root: NDArray[Any], t: NDArray[np.float32]) -> NDArray[Any]:
    """Improve estimates of the cube roots of `t` by a step of Halley's iteration.

    For a root r it is r (r^3 + 2 t) / (2 r^3 + t). It is computed in the data type of the estimates.
    """
    cube = root * root * root
    return np.asarray(root * ((cube + 2 * t) / (2 * cube + t)))


def lightness_statistics(lightness: NDArray[np.float32]) -> NDArray[np.float64]:
    """Compute mean, standard deviation and three percentiles of each frame's lightness L*, `[F, 5]`.

    Parameters
    ----------
    lightness
        L* of each pixel, from 0 to 100, `[F, h, w]`.
    """
    pixels_of_frames = lightness.reshape(len(lightness), -1)  # [F, h w]
    percentiles = np.percentile(pixels_of_frames, LIGHTNESS_PERCENTILES, axis=1).T
    standard_deviation = np.sqrt(_variance(pixels_of_frames))
    return np.column_stack([_mean(pixels_of_frames), standard_deviation, percentiles])


def edge_statistics(lightness: NDArray[np.float32]) -> NDArray[np.float64]:
    """Compute mean and spread of each frame's edges, and their shares of 8 orientations, `[F, 10]`.

    The strength of an edge is the magnitude of Sobel's gradient at a pixel; its spread is the standard
    deviation.

    Parameters
    ----------
    lightness
        L* of each pixel, from 0 to 100, `[F, h, w]`.
    """
    # Sobel's kernels smooth by weights 1, 2, 1 along one axis, and subtract neighbours along the other one.
    smooth_y = lightness[:, :-2] + 2 * lightness[:, 1:-1] + lightness[:, 2:]
    smooth_x = lightness[:, :, :-2] + 2 * lightness[:, :, 1:-1] + lightness[:, :, 2:]
    # Divided by the sum of the weights, 4, and by the distance of the neighbours, 2: L* per pixel.
    along_x = (smooth_y[:, :, 2:] - smooth_y[:, :, :-2]) / 8
    along_y = (smooth_x[:, 2:] - smooth_x[:, :-2]) / 8
    squared_magnitude = along_x.astype(np.float64) ** 2 + along_y.astype(np.float64) ** 2
    magnitude = np.sqrt(squared_magnitude).astype(np.float32)

    # A pixel counts for its orientation as much as its edge is strong.
    bins = orientation_bins(along_x, along_y)  # type: ignore[arg-type]
    orientations = _histograms(bins, ORIENTATIONS, weights=magnitude)
    return np.column_stack([_mean(magnitude), np.sqrt(_variance(magnitude)), orientations])


def orientation_bins(along_x: NDArray[np.float32], along_y: NDArray[np.float32]) -> NDArray[np.int32]:
    """Assign gradients, given by their two components, to 8 equal bins of orientations: numbers 0 to 7.

    Orientations are from 0 up to, not including, 180 degrees. Axes and diagonals, which are frequent in drawn
    pictures, lie on the edges of bins. An arc tangent is not used: its last bit depends on the processor, and
    would decide the bin there. Instead, the bin of a gradient is the number of inner edges at or below its
    direction.

    Parameters
    ----------
    along_x, along_y
        Gradients of pixels across and down, both of one shape, which the result has too.
    """
    # Opposite directions are the same orientation: turn those of the lower half by 180 degrees.
    is_below = (along_y < 0) | ((along_y == 0) & (along_x < 0))
    x = np.where(is_below, -along_x, along_x)
    y = np.abs(along_y)
    bins = np.zeros(x.shape, np.int32)
    for cosine, sine in BIN_EDGES:  # directions between the bins: 22.5 degrees, 45 degrees, ...
        # y cos - x sin is the length times the sine of the angle from the edge to the gradient.
        is_edge_reached = y * cosine >= x * sine
        bins += is_edge_reached.astype(np.int32)
    return bins


def lbp_histogram(lightness: NDArray[np.float32]) -> NDArray[np.float64]:
    """Compute shares of the ten rotation-invariant uniform patterns, `[F, 10]` (Ojala et al. 2002, eq. 9).

    A pixel is compared with its eight adjacent pixels, without interpolation. Its pattern is uniform if those
    that are at least as light stand side by side on the circle around it; their number is then the pattern.
    All other pixels have the pattern `NOT_UNIFORM`.
    """
    height, width = lightness.shape[1:]
    centre = lightness[:, 1:-1, 1:-1]  # pixels with eight neighbours
    is_as_light_by_neighbour = []
    for down, across in NEIGHBOURS:
        rows = slice(1 + down, height - 1 + down)
        columns = slice(1 + across, width - 1 + across)
        neighbour = lightness[:, rows, columns]
        is_as_light_by_neighbour.append(neighbour >= centre)
    is_as_light = np.stack(is_as_light_by_neighbour)  # [8, F, h - 2, w - 2], once around the pixel

    # If those at least as light stand side by side, there are two changes around the circle, or none.
    changes_to_next = is_as_light != np.roll(is_as_light, 1, axis=0)
    is_uniform = changes_to_next.sum(axis=0) <= 2
    n_as_light = is_as_light.sum(axis=0)
    patterns = np.where(is_uniform, n_as_light, NOT_UNIFORM)
    return _histograms(patterns, N_PATTERNS)


def _from_sample_before(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Extend F - 1 differences between neighbouring frames to F values, one for each frame, `[F]`.

    The first frame has none before it, and gets the value of the second; in a clip of one frame it gets 0.
    """
    if len(differences) == 0:
        return np.zeros(1)
    return np.concatenate([differences[:1], differences])


def _histograms(
    bins: NDArray[Any], n_bins: int, weights: NDArray[np.float32] | None = None
) -> NDArray[np.float64]:
    """Compute a histogram of each frame's pixels, `[F, n_bins]`, with sum one; zeros if all weights are zero.

    Parameters
    ----------
    bins
        Bin of each pixel, `[F, h, w]`, from 0.
    n_bins
        Number of bins.
    weights
        Weight of each pixel; None counts them.
    """
    n_frames = len(bins)
    first_bins = n_bins * np.arange(n_frames)[:, None]  # so that one call counts all frames
    flat_bins = (bins.reshape(n_frames, -1) + first_bins).ravel()
    flat_weights = None if weights is None else weights.ravel()
    flat = np.bincount(flat_bins, flat_weights, minlength=n_bins * n_frames)
    counts: NDArray[np.float64] = flat.reshape(n_frames, n_bins).astype(np.float64)
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.zeros_like(counts)
    np.divide(counts, totals, out=shares, where=totals > 0)
    return shares


def _mean(x: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean over the pixels of each frame, `[F, ...]` to `[F]`, in float64."""
    return np.asarray(x.reshape(len(x), -1).mean(axis=1, dtype=np.float64))


def _variance(x: NDArray[Any]) -> NDArray[np.float64]:
    """Return the variance over the pixels of each frame, `[F, ...]` to `[F]`, in float64."""
    return np.asarray(x.reshape(len(x), -1).var(axis=1, dtype=np.float64))
