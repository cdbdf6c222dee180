"""Pixels become RGB by arithmetic: held by an oracle in float64 on flat patches, and chroma at odd sizes."""

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from obygaze_features.video.picture import Converter

WEIGHTS = {1: (0.2126, 0.0722), 4: (0.30, 0.11), 5: (0.299, 0.114), 7: (0.212, 0.087), 9: (0.2627, 0.0593)}
"""Red's and blue's share of luma, by the number of the matrix in H.273."""
BT601 = 5
LIMITED_RANGE = 1

FFMPEGS_OWN = ["yuv420p", "yuv422p", "yuvj420p", "yuvj422p"]
"""Formats that FFmpeg converts, as most readers have it do."""
CONVERTED_EXACTLY = [
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


@pytest.mark.parametrize("name", [*CONVERTED_EXACTLY, *GREY])
@pytest.mark.parametrize("full", [False, True], ids=["limited", "full"])
def test_colours_are_those_of_the_oracle_within_a_level_and_without_bias(name, full):
    """Samples of more than eight bits in full range are rounded down to eight bits before."""
    differences = errors(name, full=full)
    has_many_bits = av.VideoFormat(name, 16, 16).components[0].bits > 8
    is_rounded_before = full and has_many_bits and name not in GREY
    most, most_bias = (1.5, 0.505) if is_rounded_before else (0.6, 0.1)
    assert np.abs(differences).max() < most
    assert abs(differences.mean()) < most_bias


@pytest.mark.parametrize("name", FFMPEGS_OWN)
def test_pictures_of_the_usual_formats_have_the_bits_that_ffmpeg_gives(name):
    frame = flat(name, y=100, u=90, v=160, matrix=1, full=False)
    assert np.array_equal(Converter()(frame).rgb, frame.to_ndarray(format="rgb24"))


def nearest_samples(n_samples: int, n_pixels: int) -> NDArray[np.int64]:
    """For each pixel of a row or column, the number of the sample nearest to its centre."""
    return ((np.arange(n_pixels) + 0.5) * n_samples / n_pixels).astype(int)


@pytest.mark.parametrize(("width", "height"), [(32, 32), (33, 32), (32, 33), (33, 33)])
@pytest.mark.parametrize("name", ["yuv420p10le", "nv12"])
def test_chroma_of_half_the_size_is_stretched_over_pictures_of_odd_sizes(name, width, height):
    bits = av.VideoFormat(name, 16, 16).components[0].bits
    unit = 1 << (bits - 8)  # of eight bits
    grey = 126 * unit
    n_rows, n_columns = -(-height // 2), -(-width // 2)  # rounded up
    u, v = np.random.default_rng(0).integers(110 * unit, 146 * unit, (2, n_rows, n_columns))
    interleaved = np.stack([u, v], axis=-1).reshape(n_rows, -1)
    chroma_planes = [interleaved] if name == "nv12" else [u, v]
    frame = filled(name, [np.full((height, width), grey), *chroma_planes], width, height)
    frame.colorspace = BT601
    frame.color_range = LIMITED_RANGE
    pixels = np.ix_(nearest_samples(n_rows, height), nearest_samples(n_columns, width))
    expected = oracle(grey, u[pixels], v[pixels], BT601, bits, full=False)
    assert np.abs(Converter()(frame).rgb - np.moveaxis(expected, 0, -1)).max() < 1


@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("name", ["rgb565", "bgr565", "rgb555", "bgr555", "rgb444", "bgr444"])
def test_colours_in_words_of_sixteen_bits_are_those_of_their_bits(name, order):
    """A word holds red, green and blue, or blue first, each in as many bits as the name says."""
    red_bits, green_bits, blue_bits = (int(digit) for digit in name[3:])
    red, green, blue = 23 % (1 << red_bits), 5, 9
    if name.startswith("rgb"):
        word = red << (green_bits + blue_bits) | green << blue_bits | blue
    else:
        word = blue << (green_bits + red_bits) | green << red_bits | red
    frame = av.VideoFrame(16, 16, name + order)
    words = np.full(frame.planes[0].buffer_size // 2, word, "<u2" if order == "le" else ">u2")
    frame.planes[0].update(words.tobytes())
    levels_and_bits = ((red, red_bits), (green, green_bits), (blue, blue_bits))
    expected = np.array([255 * level / ((1 << bits) - 1) for level, bits in levels_and_bits])
    assert np.abs(Converter()(frame).rgb[8, 8] - expected).max() < 16


@pytest.mark.parametrize(("level", "right"), [(16, 0), (128, 130), (235, 255)])
def test_limited_grey_is_expanded(level, right):
    picture = Converter()(flat("gray", level, 0, 0, matrix=1, full=False))
    assert (picture.rgb == right).all()
    assert picture.shown[2:] == ("grey", False)
