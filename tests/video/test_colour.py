"""Pixels become RGB by arithmetic: held by an oracle in float64 on flat patches, and chroma at odd sizes."""

import math

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from obygaze_features.video.picture import Converter

WEIGHTS = {1: (0.2126, 0.0722), 4: (0.30, 0.11), 5: (0.299, 0.114), 7: (0.212, 0.087), 9: (0.2627, 0.0593)}
"""Red's and blue's share of luma, by the number of the matrix in H.273."""
BT709 = 1
BT601 = 5
LIMITED_RANGE, FULL_RANGE = 1, 2
"""Ranges of samples: black and white are 16 and 235 of 8 bits, or the least and the most."""
FFMPEGS_OWN = ["yuv420p", "yuv422p", "yuvj420p", "yuvj422p"]
"""Formats that FFmpeg converts, as most readers have it do."""
CONVERTED_EXACTLY = [
    *("yuv444p", "yuv411p", "yuv440p", "nv12", "nv21", "nv16", "nv24", "yuyv422", "uyvy422"),
    *("yuv420p10le", "yuv422p10le", "yuv444p10le", "yuv420p12le", "yuv422p12le", "yuv444p12le"),
    *("yuv420p9le", "yuv420p14le", "yuv420p16le", "p010le", "p210le", "p016le", "y210le"),
]
GREY = ["gray", "gray10le", "gray12le", "gray16le"]
LEFT_ALIGNED = ("p0", "p2", "y2")
"""Beginnings of the names of formats whose samples stand in the high bits of 16."""


def oracle(y: float, u: float, v: float, matrix: int, bits: int, *, full: bool) -> NDArray[np.float64]:
    """Compute R, G, B of 0 to 255, not rounded, from the definitions of ITU-T H.273 (8.3).

    `matrix` is a key of `WEIGHTS`; y, u and v are samples of so many bits, or arrays of them.
    """
    red, blue = WEIGHTS[matrix]
    green = 1 - red - blue
    unit = 1 << (bits - 8)  # what is 1 in samples of 8 bits
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
    g = (luma - red * r - blue * b) / green
    return 255 * np.array([r, g, b])


def filled(name: str, planes: list[NDArray[np.int64]], width: int, height: int) -> av.VideoFrame:
    """Make a frame of a pixel format from its planes of samples [rows, samples of a row], padded by 0."""
    frame = av.VideoFrame(width, height, name)
    bits = frame.format.components[0].bits
    sample_type = np.dtype("<u2" if bits > 8 else "u1")
    empty_low_bits = 16 - bits if name.startswith(LEFT_ALIGNED) else 0
    for plane, samples in zip(frame.planes, planes, strict=True):
        rows = np.zeros((plane.height, plane.line_size // sample_type.itemsize), sample_type)
        rows[:, : samples.shape[1]] = samples << empty_low_bits
        plane.update(rows.tobytes())
    return frame


def frame_of_one_colour(name: str, y: int, u: int, v: int, *, matrix: int, full: bool) -> av.VideoFrame:
    """Make a frame of 16x16 pixels of one colour, in a pixel format."""
    # For each plane, the samples that repeat in its rows.
    irregular_patterns = {
        "nv21": ([y], [v, u]),
        "yuyv422": ([y, u, y, v],),
        "y210le": ([y, u, y, v],),
        "uyvy422": ([u, y, v, y],),
    }
    if name in irregular_patterns:
        patterns = irregular_patterns[name]
    elif name.startswith(("nv", "p0", "p2")):  # one plane for u and v
        patterns = ([y], [u, v])
    elif name in GREY:
        patterns = ([y],)
    else:
        patterns = ([y], [u], [v])
    sizes_of_planes = av.VideoFrame(16, 16, name).planes
    sample_bytes = 2 if bits_of(name) > 8 else 1
    samples = []
    for pattern, plane in zip(patterns, sizes_of_planes, strict=True):
        row = np.resize(np.array(pattern), plane.line_size // sample_bytes)
        samples.append(np.tile(row, (plane.height, 1)))
    frame = filled(name, samples, width=16, height=16)
    frame.colorspace = matrix
    frame.color_range = FULL_RANGE if full else LIMITED_RANGE
    return frame


def bits_of(name: str) -> int:
    """Return the bits of a sample of a pixel format."""
    return av.VideoFormat(name, 16, 16).components[0].bits


def errors_of_conversion(name: str, *, full: bool) -> NDArray[np.float64]:
    """Convert random colours that RGB can show, and subtract what the oracle computes: [N colours, 3]."""
    rng = np.random.default_rng(0)
    convert = Converter()
    bits = bits_of(name)
    unit = 1 << (bits - 8)  # what is 1 in samples of 8 bits
    black, white, no_colour = 16 * unit, 235 * unit, 128 * unit
    differences = []
    for matrix in WEIGHTS:
        for y, *chroma in rng.integers(black, white + unit, (60, 3)).tolist():
            u, v = (no_colour, no_colour) if name in GREY else chroma
            expected = oracle(y, u, v, matrix, bits, full=full)
            can_be_shown = expected.min() > 0 and expected.max() < 255
            if can_be_shown:
                rgb = convert(frame_of_one_colour(name, y, u, v, matrix=matrix, full=full)).rgb
                differences.append(rgb[8, 8] - expected)
    assert len(differences) > 50  # of the 300 colours
    return np.array(differences)


@pytest.mark.parametrize("name", [*CONVERTED_EXACTLY, *GREY])
@pytest.mark.parametrize("full", [False, True], ids=["limited", "full"])
def test_rgb_is_within_rounding_of_what_the_standards_formula_gives(name, full):
    """More than 50 colours of a pixel format are converted to RGB, in levels of 0 to 255.

    From each, what the formula gives is subtracted, a real number. The result is rounded to a whole level, so
    that it is off by .5 at most, and by none in the mean. Samples of more than eight bits in full range are
    first rounded down to eight bits, which adds up to 1 level, and .5 in the mean. (Grey is not: it is looked
    up in a table.) A little more is allowed for errors of floats and chance.
    """
    differences = errors_of_conversion(name, full=full)
    is_rounded_down_first = full and bits_of(name) > 8 and name not in GREY

    if is_rounded_down_first:
        assert np.abs(differences).max() < 1.5
        assert abs(differences.mean()) < 0.505
    else:
        assert np.abs(differences).max() < 0.6
        assert abs(differences.mean()) < 0.1


@pytest.mark.parametrize("name", FFMPEGS_OWN)
def test_pictures_of_the_usual_formats_have_the_bits_that_ffmpeg_gives(name):
    """Most readers let FFmpeg convert these formats, so features of them must not differ from theirs."""
    frame = frame_of_one_colour(name, y=100, u=90, v=160, matrix=BT709, full=False)

    converted = Converter()(frame).rgb

    converted_by_ffmpeg = frame.to_ndarray(format="rgb24")
    assert np.array_equal(converted, converted_by_ffmpeg)


def nearest_samples(n_samples: int, n_pixels: int) -> NDArray[np.int64]:
    """For each pixel of a row or column, the number of the sample nearest to its centre."""
    return ((np.arange(n_pixels) + 0.5) * n_samples / n_pixels).astype(int)


@pytest.mark.parametrize(("width", "height"), [(32, 32), (33, 32), (32, 33), (33, 33)])
@pytest.mark.parametrize("name", ["yuv420p10le", "nv12"])
def test_chroma_of_half_the_size_is_stretched_over_pictures_of_odd_sizes(name, width, height):
    """A pixel has a brightness of its own, and shares its colour, two numbers, with neighbours.

    A picture 33 pixels wide has 17 samples of colour a row, and a pixel has that of the nearest sample. Here
    all are equally bright and colours are random; the oracle computes RGB by the standard's formula.
    """
    bits = bits_of(name)
    unit = 1 << (bits - 8)  # what is 1 in samples of 8 bits
    n_rows = math.ceil(height / 2)
    n_columns = math.ceil(width / 2)
    brightness = 126 * unit
    # Differences of colour up to 18 from 128, which is none; [rows, columns] each.
    blue, red = np.random.default_rng(0).integers(110 * unit, 146 * unit, (2, n_rows, n_columns))
    frame = frame_of_one_brightness(name, brightness, blue, red, width, height)

    rgb = Converter()(frame).rgb  # [height, width, 3]

    rows = nearest_samples(n_rows, height)[:, np.newaxis]
    columns = nearest_samples(n_columns, width)[np.newaxis, :]
    red_green_blue = oracle(brightness, blue[rows, columns], red[rows, columns], BT601, bits, full=False)
    expected = np.stack(red_green_blue, axis=-1)
    assert np.abs(rgb - expected).max() < 1


def frame_of_one_brightness(name, brightness, blue, red, width, height):
    """Make a frame of BT.601 in a format; `nv12` has blue and red differences in turn in one plane."""
    luma = np.full((height, width), brightness)
    if name == "nv12":
        in_turn = np.stack([blue, red], axis=-1).reshape(len(blue), -1)
        chroma_planes = [in_turn]
    else:
        chroma_planes = [blue, red]
    frame = filled(name, [luma, *chroma_planes], width, height)
    frame.colorspace = BT601
    frame.color_range = LIMITED_RANGE
    return frame


@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("name", ["rgb565", "bgr565", "rgb555", "bgr555", "rgb444", "bgr444"])
def test_colours_in_words_of_sixteen_bits_are_those_of_their_bits(name, order):
    """A pixel is a word of 16 bits: in rgb565, 5 bits of red, 6 of green, 5 of blue; in bgr565 blue is first.

    A colour of n bits goes from 0 to 2^n - 1, and is scaled to 0 to 255. FFmpeg rounds coarsely, by less than
    a step of the coarsest colours: those of 4 bits have 16 levels, 17 apart.
    """
    red_bits, green_bits, blue_bits = (int(digit) for digit in name[3:])
    red = 7 if red_bits == 4 else 23  # of 15, or of 31
    green = 5
    blue = 9
    if name.startswith("rgb"):
        colours_in_order = [(red, red_bits), (green, green_bits), (blue, blue_bits)]
    else:
        colours_in_order = [(blue, blue_bits), (green, green_bits), (red, red_bits)]
    frame = frame_of_one_word(word_of(colours_in_order), name + order, is_little_endian=order == "le")

    converted = Converter()(frame).rgb[8, 8]

    expected_red = 255 * red / (2**red_bits - 1)
    expected_green = 255 * green / (2**green_bits - 1)
    expected_blue = 255 * blue / (2**blue_bits - 1)
    expected = np.array([expected_red, expected_green, expected_blue])
    assert np.abs(converted - expected).max() < 16


def word_of(colours_in_order):
    """Put colours into one word, the first into its highest bits; each is a value and its number of bits."""
    word = 0
    for colour, n_bits in colours_in_order:
        word = word * 2**n_bits + colour  # makes room for the next colour, and puts it there
    return word


def frame_of_one_word(word, pixels, *, is_little_endian):
    """Make a frame of 16 x 16 pixels, each of which is this word of two bytes."""
    frame = av.VideoFrame(16, 16, pixels)
    n_words = frame.planes[0].buffer_size // 2
    words = np.full(n_words, word, "<u2" if is_little_endian else ">u2")
    frame.planes[0].update(words.tobytes())
    return frame


@pytest.mark.parametrize(("stored", "expected"), [(16, 0), (128, 130), (235, 255)])
def test_limited_grey_is_expanded(stored, expected):
    """Levels of 16 to 235 become levels of 0 to 255: 128 becomes (128 - 16) * 255 / (235 - 16) = 130.4."""
    frame = frame_of_one_colour("gray", stored, 0, v=0, matrix=BT709, full=False)

    picture = Converter()(frame)

    assert (picture.rgb == expected).all()
    assert picture.shown.matrix == "grey"
    assert not picture.shown.full_range
