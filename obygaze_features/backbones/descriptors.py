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
_HALF, _EDGE = np.float32(np.sqrt(0.5)), (np.float32(0.9238795), np.float32(0.38268343))
BIN_EDGES = (
    _EDGE, (_HALF, _HALF), _EDGE[::-1], (np.float32(0), np.float32(1)),
    (-_EDGE[1], _EDGE[0]), (-_HALF, _HALF), (-_EDGE[0], _EDGE[1]),
)  # fmt: skip
"""Cosine and sine of the bins' inner edges: multiples of 22.5 degrees."""
CUBE_ROOT_BITS = 709_958_130
"""Two thirds of float32's exponent of 1, less what makes the guess's largest error least."""
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
    *(f"lbp_{k}" for k in range(10)),
    "motion",
    "histogram_distance",
    "cut",
)

# sRGB (IEC 61966-2-1) to linear light, for every 8-bit value; then to XYZ relative to the D65 white.
_LEVELS = np.arange(256) / 255.0
_LINEAR = np.where(_LEVELS <= 0.04045, _LEVELS / 12.92, ((_LEVELS + 0.055) / 1.055) ** 2.4).astype(np.float32)
_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_TO_XYZ = (_XYZ / _XYZ.sum(axis=1, keepdims=True)).astype(np.float32)


def descriptors(n_frames: int = 32) -> Backbone:
    """Build the backbone for clips of `n_frames` sampled frames."""
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
    """Squash a frame `[H, W, 3]` to `[96, 96, 3]`."""
    return box_resize(frame, SIZE, SIZE)


def encode(batch: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """Describe a batch of clips, `[B, F, 96, 96, 3]`.

    Returns
    -------
    `frames`, float32 `[B, F, 103]` with the columns of `FEATURES`, and `pooled`, `[B, 103]`, their mean.
    """
    frames = np.stack([describe_clip(clip) for clip in batch])
    return {"frames": frames.astype(np.float32), "pooled": frames.mean(axis=1).astype(np.float32)}


def describe_clip(clip: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Describe the frames of one clip, `[F, h, w, 3]`, as `[F, len(FEATURES)]`."""
    lightness, a, b = lab(clip)
    histogram = hsv_histogram(clip)
    distance = 0.5 * np.abs(np.diff(histogram, axis=0)).sum(axis=1)
    columns = [
        histogram,
        colourfulness(clip),
        _mean(a),
        _mean(b),
        lightness_statistics(lightness),
        edge_statistics(lightness),
        lbp_histogram(lightness),
        _from_sample_before(np.abs(np.diff(lightness, axis=0)).mean(axis=(1, 2), dtype=np.float64)),
        _from_sample_before(distance),
        np.concatenate([[0.0], distance > CUT_DISTANCE]),
    ]
    return np.column_stack(columns)


def hsv_histogram(clip: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Count the pixels of each frame in 8 hues x 3 saturations x 3 values, as shares, `[F, 72]`.

    Hue is sector plus fraction of the hexcone model (Smith 1978); grey pixels have hue 0.
    """
    red, green, blue = (clip[..., c].astype(np.int32) for c in range(3))
    value = np.maximum(np.maximum(red, green), blue)
    chroma = value - np.minimum(np.minimum(red, green), blue)
    safe = np.maximum(chroma, 1)
    sector = np.where(
        value == red,
        (green - blue) / safe % 6,
        np.where(value == green, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    hue_bin = np.minimum((sector * (HUES / 6)).astype(np.int32), HUES - 1) * (chroma > 0)
    saturation_bin = np.minimum(chroma * SATURATIONS // np.maximum(value, 1), SATURATIONS - 1)
    value_bin = value * VALUES // 256
    bins = (hue_bin * SATURATIONS + saturation_bin) * VALUES + value_bin
    return _shares(bins, HUES * SATURATIONS * VALUES)


def colourfulness(clip: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Compute the colourfulness of each frame, `[F]` (Hasler & Süsstrunk 2003, M3, on values of 0-255)."""
    red, green, blue = (clip[..., c].astype(np.float32) for c in range(3))
    opponents = (red - green, 0.5 * (red + green) - blue)
    spread = np.sqrt(sum(_variance(x) for x in opponents))
    offset = np.sqrt(sum(_mean(x) ** 2 for x in opponents))
    return np.asarray(spread + 0.3 * offset)


def lab(clip: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Convert sRGB frames to CIELAB (CIE 1976, D65): L* in 0-100, a*, b*, `[3, F, h, w]`."""
    linear = [_LINEAR[clip[..., c]] for c in range(3)]
    x, y, z = (sum(weight * channel for weight, channel in zip(row, linear, strict=True)) for row in _TO_XYZ)
    fx, fy, fz = (np.where(t > 216 / 24389, cube_root(t), (24389 / 27 * t + 16) / 116) for t in (x, y, z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)], np.float32)


def cube_root(t: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute cube roots of normal positive numbers, rounded correctly but for one in some millions.

    The last bit of NumPy's depends on the processor and on the C library. This is Halley's iteration, from a
    third of the exponent.
    """
    guess = (t.view(np.int32) // 3 + CUBE_ROOT_BITS).view(np.float32)
    guess *= (guess * guess * guess + 2 * t) / (2 * guess * guess * guess + t)  # to 3e-5
    root = guess.astype(np.float64)
    cube = root * root * root
    root *= (cube + 2 * t) / (2 * cube + t)  # to 1e-14
    return root.astype(np.float32)


def lightness_statistics(lightness: NDArray[np.float32]) -> NDArray[np.float64]:
    """Compute mean, standard deviation and percentiles of L*, `[F, 5]`."""
    flat = lightness.reshape(len(lightness), -1)
    percentiles = np.percentile(flat, LIGHTNESS_PERCENTILES, axis=1).T
    return np.column_stack([_mean(flat), np.sqrt(_variance(flat)), percentiles])


def edge_statistics(lightness: NDArray[np.float32]) -> NDArray[np.float64]:
    """Compute mean and spread of the Sobel magnitude, and its shares over 8 orientations, `[F, 10]`."""
    smooth_y = lightness[:, :-2] + 2 * lightness[:, 1:-1] + lightness[:, 2:]
    smooth_x = lightness[:, :, :-2] + 2 * lightness[:, :, 1:-1] + lightness[:, :, 2:]
    along_x = (smooth_y[:, :, 2:] - smooth_y[:, :, :-2]) / 8
    along_y = (smooth_x[:, 2:] - smooth_x[:, :-2]) / 8
    magnitude = np.sqrt(along_x.astype(np.float64) ** 2 + along_y.astype(np.float64) ** 2).astype(np.float32)
    orientations = _shares(orientation_bins(along_x, along_y), ORIENTATIONS, weights=magnitude)  # type: ignore[arg-type]
    return np.column_stack([_mean(magnitude), np.sqrt(_variance(magnitude)), orientations])


def orientation_bins(along_x: NDArray[np.float32], along_y: NDArray[np.float32]) -> NDArray[np.int32]:
    """Assign gradients to 8 equal bins of directions from 0 up to, not including, 180 degrees.

    Axes and diagonals, of which drawn pictures are full, lie on the edges of bins. There the last bit of an
    arc tangent would decide, and it depends on the processor.
    """
    turned = (along_y < 0) | ((along_y == 0) & (along_x < 0))
    x, y = np.where(turned, -along_x, along_x), np.abs(along_y)
    bins = np.zeros(x.shape, np.int32)
    for cos, sin in BIN_EDGES:
        bins += y * cos >= x * sin
    return bins


def lbp_histogram(lightness: NDArray[np.float32]) -> NDArray[np.float64]:
    """Compute shares of the ten rotation-invariant uniform patterns, `[F, 10]` (Ojala et al. 2002, eq. 9).

    Neighbours are the eight adjacent pixels, without interpolation.
    """
    height, width = lightness.shape[1:]
    around = ((0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0))
    centre = lightness[:, 1:-1, 1:-1]
    above = np.stack([lightness[:, y : y + height - 2, x : x + width - 2] >= centre for y, x in around])
    transitions = (above != np.roll(above, 1, axis=0)).sum(axis=0)
    patterns = np.where(transitions <= 2, above.sum(axis=0), 9)
    return _shares(patterns, 10)


def _from_sample_before(steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Assign F-1 differences to F samples; the first sample gets the second's."""
    return np.zeros(1) if len(steps) == 0 else np.concatenate([steps[:1], steps])


def _shares(bins: NDArray[Any], n: int, weights: NDArray[np.float32] | None = None) -> NDArray[np.float64]:
    """Compute the histogram of each frame, with sum one (all zeros if the weights sum to zero)."""
    frames = len(bins)
    offset = (bins.reshape(frames, -1) + n * np.arange(frames)[:, None]).ravel()
    flat = np.bincount(offset, None if weights is None else weights.ravel(), minlength=n * frames)
    counts: NDArray[np.float64] = flat.reshape(frames, n).astype(np.float64)
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.zeros_like(counts)
    np.divide(counts, totals, out=shares, where=totals > 0)
    return shares


def _mean(x: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(x.reshape(len(x), -1).mean(axis=1, dtype=np.float64))


def _variance(x: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(x.reshape(len(x), -1).var(axis=1, dtype=np.float64))
