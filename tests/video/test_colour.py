"""Pixels become RGB by arithmetic: held by an oracle in float64 on flat patches, and chroma at odd sizes."""

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from obygaze_features.video.picture import Converter

WEIGHTS = {1: (0.2126, 0.0722), 4: (0.30, 0.11), 5: (0.299, 0.114), 7: (0.212, 0.087), 9: (0.2627, 0.0593)}
"""Red's and blue's share of luma, by the number of the matrix in H.273."""

USUAL = ["yuv420p", "yuv422p", "yuvj420p", "yuvj422p"]
EXACT = [
    *("yuv444p", "yuv411p", "yuv440p", "nv12", "nv21", "nv16", "nv24", "yuyv422", "uyvy422"),
    *("yuv420p10le", "yuv422p10le", "yuv444p10le", "yuv420p12le", "yuv422p12le", "yuv444p12le"),
    *("yuv420p9le", "yuv420p14le", "yuv420p16le", "p010le", "p210le", "p016le", "y210le"),
]
GREY = ["gray", "gray10le", "gray12le", "gray16le"]
LEFT_ALIGNED = ("p0", "p2", "y2")


def oracle(y: float, u: float, v: float, matrix: int, bits: int, *, full: bool) -> NDArray[np.float64]:
    """Compute R, G, B of 0 to 255 (ITU-T H.273, 8.3), not rounded."""
    red, blue = WEIGHTS[matrix]
    unit = 1 << (bits - 8)
    top = (1 << bits) - 1
    if full:
        luma = y / top
        cb = (u - 128 * unit) / top
        cr = (v - 128 * unit) / top
    else:
        luma = (y / unit - 16) / 219
        cb = (u / unit - 128) / 224
        cr = (v / unit - 128) / 224
    r = luma + 2 * (1 - red) * cr
    b = luma + 2 * (1 - blue) * cb
    return 255 * np.array([r, (luma - red * r - blue * b) / (1 - red - blue), b])


def filled(name: str, planes: list[NDArray[np.int64]], width: int, height: int) -> av.VideoFrame:
    """Make a frame of planes of samples [rows, samples of a row]."""
    frame = av.VideoFrame(width, height, name)
    bits = frame.format.components[0].bits
    shift = 16 - bits if name.startswith(LEFT_ALIGNED) else 0
    kind = np.dtype("<u2" if bits > 8 else "u1")
    for plane, samples in zip(frame.planes, planes, strict=True):
        rows = np.zeros((plane.height, plane.line_size // kind.itemsize), kind)
        rows[:, : samples.shape[1]] = samples << shift
        plane.update(rows.tobytes())
    return frame


def flat(name: str, y: int, u: int, v: int, *, matrix: int, full: bool) -> av.VideoFrame:
    """Make a frame of one colour."""
    odd_orders = {
        "nv21": ([y], [v, u]),
        "yuyv422": ([y, u, y, v],),
        "y210le": ([y, u, y, v],),
        "uyvy422": ([u, y, v, y],),
    }
    # For each plane the samples that repeat in its rows.
    if name in odd_orders:
        patterns = odd_orders[name]
    elif name.startswith(("nv", "p0", "p2")):
        patterns = ([y], [u, v])
    elif name in GREY:
        patterns = ([y],)
    else:
        patterns = ([y], [u], [v])
    frame = av.VideoFrame(16, 16, name)
    sample_bytes = 2 if frame.format.components[0].bits > 8 else 1
    samples = []
    for pattern, plane in zip(patterns, frame.planes, strict=True):
        row = np.resize(np.array(pattern), plane.line_size // sample_bytes)
        samples.append(np.tile(row, (plane.height, 1)))
    made = filled(name, samples, 16, 16)
    made.colorspace = matrix
    made.color_range = 2 if full else 1
    return made


def errors(name: str, *, full: bool) -> NDArray[np.float64]:
    """Compute the differences to the oracle for random colours that RGB can show, of all matrices."""
    rng = np.random.default_rng(0)
    convert = Converter()
    bits = av.VideoFormat(name, 16, 16).components[0].bits
    result = []
    for matrix in WEIGHTS:
        for y, *chroma in rng.integers(16 << (bits - 8), 236 << (bits - 8), (60, 3)).tolist():
            u, v = (128 << (bits - 8), 128 << (bits - 8)) if name in GREY else chroma
            right = oracle(y, u, v, matrix, bits, full=full)
            if right.min() > 0 and right.max() < 255:
                rgb = convert(flat(name, y, u, v, matrix=matrix, full=full)).rgb
                result.append(rgb[8, 8] - right)
    assert len(result) > 50
    return np.array(result)


@pytest.mark.parametrize("name", [*EXACT, *GREY])
@pytest.mark.parametrize("full", [False, True], ids=["limited", "full"])
def test_conversion_is_right_to_a_level_and_without_bias(name, full):
    result = errors(name, full=full)
    deep = full and name not in GREY and av.VideoFormat(name, 16, 16).components[0].bits > 8
    worst, bias = (1.5, 0.505) if deep else (0.6, 0.1)
    assert np.abs(result).max() < worst
    assert abs(result.mean()) < bias


@pytest.mark.parametrize("name", USUAL)
def test_eight_bits_of_halved_chroma_keep_the_usual_bits(name):
    frame = flat(name, 100, 90, 160, matrix=1, full=False)
    assert np.array_equal(Converter()(frame).rgb, frame.to_ndarray(format="rgb24"))


@pytest.mark.parametrize(("width", "height"), [(32, 32), (33, 32), (32, 33), (33, 33)])
@pytest.mark.parametrize("name", ["yuv420p10le", "nv12"])
def test_chroma_of_odd_sizes_is_stretched_over_the_picture(name, width, height):
    """Each pixel takes the sample nearest to its centre: up to half a sample off at the far edge."""
    bits = av.VideoFormat(name, 16, 16).components[0].bits
    unit = 1 << (bits - 8)
    wide = -(-width // 2)
    high = -(-height // 2)
    u, v = np.random.default_rng(0).integers(110 * unit, 146 * unit, (2, high, wide))
    chroma = [np.stack([u, v], axis=-1).reshape(high, -1)] if name == "nv12" else [u, v]
    frame = filled(name, [np.full((height, width), 126 * unit), *chroma], width, height)
    frame.colorspace = 5
    frame.color_range = 1
    rows, columns = (
        ((np.arange(count) + 0.5) * samples / count).astype(int)
        for count, samples in ((height, high), (width, wide))
    )
    right = oracle(126 * unit, u[rows][:, columns], v[rows][:, columns], 5, bits, full=False)
    assert np.abs(Converter()(frame).rgb - np.moveaxis(right, 0, -1)).max() < 1


@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("name", ["rgb565", "bgr565", "rgb555", "bgr555", "rgb444", "bgr444"])
def test_colours_in_sixteen_bits_are_those_of_their_bits(name, order):
    bits = [int(each) for each in name[3:]]
    levels = [[23 % (1 << n), 5, 9 % (1 << n)][i] for i, n in enumerate(bits)]
    parts = levels if name.startswith("rgb") else levels[::-1]
    word = (parts[0] << (bits[1] + bits[2])) | (parts[1] << bits[2]) | parts[2]
    frame = av.VideoFrame(16, 16, name + order)
    words = np.full(frame.planes[0].buffer_size // 2, word, "<u2" if order == "le" else ">u2")
    frame.planes[0].update(words.tobytes())
    right = [255 * level / ((1 << n) - 1) for level, n in zip(levels, bits, strict=True)]
    assert np.abs(Converter()(frame).rgb[8, 8] - np.array(right)).max() < 16


@pytest.mark.parametrize(("level", "right"), [(16, 0), (128, 130), (235, 255)])
def test_limited_grey_is_expanded(level, right):
    picture = Converter()(flat("gray", level, 0, 0, matrix=1, full=False))
    assert (picture.rgb == right).all()
    assert picture.shown[2:] == ("grey", False)
