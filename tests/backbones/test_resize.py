"""Shrinking is exact: bit for bit what OpenCV and Pillow do, and the same for ever."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from obygaze_features.backbones import resize
from obygaze_features.backbones.resize import antialiased_resize, box_resize, opencv_bilinear


def noise(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def pattern(height, width):
    """Make a picture of integers alone, whose waves grow finer to the right and below."""
    y, x, channel = np.ogrid[:height, :width, :3]
    waves = 7 * x * x + 3 * y * y + (channel + 1) * x * y
    return (waves // 16 % 256).astype(np.uint8)


def pretend_opencv_is_not_installed(patch):
    """Let resizing find no OpenCV, so that numpy does it; `patch` is pytest's monkeypatch."""
    patch.setattr(resize, "opencv", lambda: None)


@pytest.fixture(params=["without OpenCV", "with OpenCV"])
def with_and_without_opencv(request, monkeypatch):
    """A test runs twice: with OpenCV, and with numpy as if OpenCV were not installed."""
    if request.param == "without OpenCV":
        pretend_opencv_is_not_installed(monkeypatch)
    resize._agrees.cache_clear()
    yield request.param
    resize._agrees.cache_clear()


def resized_by_pillow(image, height, width, resample):
    """Resize columns first, then rows, in two calls: one call of Pillow 13 may take them the other way."""
    across = Image.fromarray(image).resize((width, image.shape[0]), resample)
    return np.asarray(across.resize((width, height), resample))


@pytest.mark.parametrize(
    "size",
    [(544, 1280), (804, 1920), (272, 640), (224, 224), (448, 448), (448, 447), (241, 431), (100, 90), (1, 1)],
)
@pytest.mark.usefixtures("with_and_without_opencv")
def test_a_squash_to_224_pixels_has_the_bits_of_opencv(size):
    """The published features were made with OpenCV, so its rounding is reproduced with and without it."""
    height, width = size
    image = noise(height, width)

    assert np.array_equal(opencv_bilinear(image, height=224, width=224), cv2.resize(image, (224, 224)))


def test_the_installed_opencv_is_used_since_its_bits_are_ours():
    """OpenCV is faster, and is used if a trial picture comes out the same as by our code in numpy."""
    is_opencv_used = resize._agrees(
        resize._by_opencv, resize._bilinear_by_numpy, (544, 1280, 3), 224, 224
    )  # the shape of the trial picture, and the height and width it is resized to

    assert is_opencv_used


@settings(max_examples=60, deadline=None)
@given(
    height=st.integers(1, 500),
    width=st.integers(1, 500),
    new_height=st.integers(1, 80),
    new_width=st.integers(1, 80),
    seed=st.integers(0, 9),
)
def test_a_squash_to_any_size_has_the_bits_of_opencv(height, width, new_height, new_width, seed):
    """To squash is to resize a picture without keeping its proportions.

    Our function leaves it to OpenCV where that is installed, and else to numpy; both must give the same bits.
    """
    picture = noise(height, width, seed)

    by_installed_library = opencv_bilinear(picture, new_height, new_width)
    by_numpy = resize._bilinear_by_numpy(picture, new_height, new_width)

    by_opencv = cv2.resize(picture, (new_width, new_height))
    assert np.array_equal(by_installed_library, by_opencv)
    assert np.array_equal(by_numpy, by_opencv)


def cell_of(size, n, i):
    """Return where cell i of n lies along an axis of `size` pixels. It has one pixel at least."""
    start = i * size // n
    end = (i + 1) * size // n
    return slice(start, max(end, start + 1))


def means_of_cells(image, height, width):
    """Average height x width cells of a picture one by one, in Python's integers, rounded half up."""
    result = np.zeros((height, width, image.shape[2]), np.uint8)
    for row, column, channel in np.ndindex(result.shape):
        rows = cell_of(image.shape[0], height, row)
        columns = cell_of(image.shape[1], width, column)
        pixels = image[rows, columns, channel]
        result[row, column, channel] = (int(pixels.sum()) + pixels.size // 2) // pixels.size
    return result


def box_resize_without_opencv(picture, rows, columns):
    """Average the cells of a picture as if OpenCV were not installed."""
    with pytest.MonkeyPatch.context() as patch:
        pretend_opencv_is_not_installed(patch)
        return box_resize(picture, rows, columns)


@settings(max_examples=40, deadline=None)
@given(
    height=st.integers(1, 60),
    width=st.integers(1, 60),
    rows=st.integers(1, 12),
    columns=st.integers(1, 12),
    channels=st.integers(1, 4),
)
def test_the_mean_of_cells_is_rounded_half_up_with_and_without_opencv(height, width, rows, columns, channels):
    """A picture is divided into rows x columns of cells, and each becomes one pixel, the mean of its pixels.

    The expected means are of one cell after the other, in Python's integers, and a mean of 7.5 becomes 8.
    """
    picture = np.random.default_rng(0).integers(0, 256, (height, width, channels), dtype=np.uint8)

    with_opencv = box_resize(picture, rows, columns)
    without_opencv = box_resize_without_opencv(picture, rows, columns)

    expected = means_of_cells(picture, rows, columns)
    assert np.array_equal(with_opencv, expected)
    assert np.array_equal(without_opencv, expected)


class OpenCVThatRoundsOtherwise:
    """An OpenCV whose pixels differ in their last bit."""

    error = cv2.error

    @staticmethod
    def resize(image, size):
        return cv2.resize(image, size) ^ 1


def test_an_opencv_that_rounds_otherwise_is_not_used(monkeypatch):
    """Pixels must be the same on every machine.

    An OpenCV is pretended whose pixels differ in the last bit. Ours are still those of the true one.
    """
    monkeypatch.setattr(resize, "opencv", OpenCVThatRoundsOtherwise)
    resize._agrees.cache_clear()  # which remembers whether OpenCV was right
    image = noise(height=100, width=90)

    try:
        resized = opencv_bilinear(image, height=32, width=32)
    finally:
        resize._agrees.cache_clear()

    assert np.array_equal(resized, cv2.resize(image, (32, 32)))


SIDE, NEW_SIDE = st.integers(1, 300), st.integers(1, 90)


@settings(max_examples=40, deadline=None)
@given(
    height=SIDE,
    width=SIDE,
    new_height=NEW_SIDE,
    new_width=NEW_SIDE,
    filter_name=st.sampled_from(["bicubic", "bilinear"]),
)
def test_a_resize_to_any_size_has_the_bits_of_pillow(height, width, new_height, new_width, filter_name):
    """A picture of noise is resized by our code and by Pillow, with the same filter.

    Ours also crops the result; here the crop is all of it.
    """
    picture = noise(height, width)
    whole = (0, 0, new_height, new_width)  # top, left, height, width

    resized = antialiased_resize(picture, (new_height, new_width), whole, filter_name)

    filter_of_pillow = Image.Resampling[filter_name.upper()]
    by_pillow = resized_by_pillow(picture, new_height, new_width, filter_of_pillow)
    assert np.array_equal(resized, by_pillow)


@pytest.mark.parametrize("name", ["bilinear", "bicubic"])
def test_pillow_and_numpy_make_the_same_pixels_of_large_frames(monkeypatch, name):
    """Pillow resizes unless a trial picture shows that its bits are not ours, which is pretended here."""
    frame = noise(height=1080, width=1920)
    size = (224, 398)
    middle = (0, 87, 224, 224)  # top, left, height, width; 87 = (398 - 224) // 2

    by_pillow = antialiased_resize(frame, size, middle, name)
    monkeypatch.setattr(resize, "_agrees", lambda *_: False)
    by_numpy = antialiased_resize(frame, size, middle, name)

    assert np.array_equal(by_numpy, by_pillow)


def test_a_crop_is_a_part_of_the_whole_resized_picture():
    """A picture of 300 x 500 is resized to 120 x 200; a crop of 64 x 80 is the same part of the result."""
    image = noise(height=300, width=500)
    new_size = (120, 200)
    top, left, height, width = 7, 31, 64, 80

    whole = antialiased_resize(image, new_size, (0, 0, 120, 200), "bicubic")
    part = antialiased_resize(image, new_size, (top, left, height, width), "bicubic")

    assert np.array_equal(part, whole[top : top + height, left : left + width])


def test_the_pixels_of_the_squash_are_frozen():
    """Features of different years must be comparable, so the pixels are those that were first computed.

    A picture of waves, 272 x 640, is resized to 224 x 224 whatever its proportions.
    """
    picture = pattern(height=272, width=640)

    squashed = opencv_bilinear(picture, height=224, width=224)

    green_of_every_56th_pixel = squashed[::56, ::56, 1]
    assert green_of_every_56th_pixel.tolist() == [
        [0, 86, 26, 113],
        [109, 19, 40, 162],
        [161, 150, 224, 198],
        [154, 181, 123, 176],
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bilinear", [[143, 160, 96, 138], [142, 94, 106, 113], [183, 174, 170, 124], [166, 66, 100, 177]]),
        ("bicubic", [[146, 156, 97, 138], [157, 86, 104, 100], [205, 184, 176, 109], [183, 51, 90, 184]]),
    ],
    ids=["bilinear", "bicubic"],
)
def test_the_pixels_of_the_resize_are_frozen(name, expected):
    """A picture of waves, 272 x 640, is resized to a height of 224, and its middle is cropped.

    Features of different years must be comparable, so the pixels are those that were first computed.
    """
    picture = pattern(height=272, width=640)
    size = (224, 527)  # 527 = 224 * 640 / 272
    middle = (0, 151, 224, 224)  # top, left, height, width; 151 = (527 - 224) // 2

    resized = antialiased_resize(picture, size, middle, name)

    green_of_every_56th_pixel = resized[::56, ::56, 1]
    assert green_of_every_56th_pixel.tolist() == expected
