"""Shrinking is exact: bit for bit what OpenCV and Pillow do, and the same for ever."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from obygaze_features.backbones import resize
from obygaze_features.backbones.resize import antialiased_resize, box_resize, opencv_bilinear

FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


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
@given(st.integers(1, 500), st.integers(1, 500), st.integers(1, 80), st.integers(1, 80), st.integers(0, 9))
def test_a_squash_to_any_size_has_the_bits_of_opencv(height, width, new_height, new_width, seed):
    """Both as it is called, when OpenCV may do it, and by our code in numpy alone."""
    image = noise(height, width, seed)

    as_called = opencv_bilinear(image, new_height, new_width)
    by_numpy = resize._bilinear_by_numpy(image, new_height, new_width)

    expected = cv2.resize(image, (new_width, new_height))
    assert np.array_equal(as_called, expected)
    assert np.array_equal(by_numpy, expected)


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


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 12), st.integers(1, 12), st.integers(1, 4))
def test_the_mean_of_cells_is_rounded_half_up_with_and_without_opencv(height, width, rows, columns, channels):
    """A picture is divided into rows x columns of cells, and each becomes the mean of its pixels."""
    image = np.random.default_rng(0).integers(0, 256, (height, width, channels), dtype=np.uint8)

    with_opencv = box_resize(image, rows, columns)
    with pytest.MonkeyPatch.context() as patch:
        pretend_opencv_is_not_installed(patch)
        without_opencv = box_resize(image, rows, columns)

    expected = means_of_cells(image, rows, columns)
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
@given(SIDE, SIDE, NEW_SIDE, NEW_SIDE, st.sampled_from(sorted(FILTERS)))
def test_a_resize_to_any_size_has_the_bits_of_pillow(height, width, new_height, new_width, name):
    """`name` is the filter, bilinear or bicubic. The crop is the whole resized picture."""
    image = noise(height, width)
    whole = (0, 0, new_height, new_width)  # top, left, height, width

    resized = antialiased_resize(image, (new_height, new_width), whole, name)

    expected = resized_by_pillow(image, new_height, new_width, FILTERS[name])
    assert np.array_equal(resized, expected)


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
