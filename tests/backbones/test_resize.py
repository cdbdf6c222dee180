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


@pytest.fixture(params=["numpy", "OpenCV"])
def library(request, monkeypatch):
    """The library that resizes: OpenCV, or numpy as if OpenCV were not installed."""
    if request.param == "numpy":
        monkeypatch.setattr(resize, "opencv", lambda: None)
    resize._agrees.cache_clear()
    yield request.param
    resize._agrees.cache_clear()


def pillow(image, height, width, resample):
    """Resize columns first, then rows, in two calls: one call of Pillow 13 may take them the other way."""
    across = Image.fromarray(image).resize((width, image.shape[0]), resample)
    return np.asarray(across.resize((width, height), resample))


@pytest.mark.parametrize(
    "size",
    [(544, 1280), (804, 1920), (272, 640), (224, 224), (448, 448), (448, 447), (241, 431), (100, 90), (1, 1)],
)
@pytest.mark.usefixtures("library")
def test_a_squash_to_224_pixels_has_the_bits_of_opencv(size):
    """The published features were made with OpenCV, so its rounding is reproduced with and without it."""
    image = noise(*size)
    assert np.array_equal(opencv_bilinear(image, 224, 224), cv2.resize(image, (224, 224)))


def test_the_installed_opencv_is_used_since_its_bits_are_ours():
    """OpenCV is faster. It is used after a trial picture came out the same by both ways."""
    assert resize._agrees(resize._by_opencv, resize._bilinear_by_numpy, (544, 1280, 3), 224, 224)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 500), st.integers(1, 500), st.integers(1, 80), st.integers(1, 80), st.integers(0, 9))
def test_a_squash_to_any_size_has_the_bits_of_opencv(height, width, new_height, new_width, seed):
    image = noise(height, width, seed)
    expected = cv2.resize(image, (new_width, new_height))
    assert np.array_equal(opencv_bilinear(image, new_height, new_width), expected)
    assert np.array_equal(resize._bilinear_by_numpy(image, new_height, new_width), expected)


def cell_of(size, n, i):
    """Return where cell i of n lies along an axis of `size` pixels. It has one pixel at least."""
    start = i * size // n
    end = (i + 1) * size // n
    return slice(start, max(end, start + 1))


def means(image, height, width):
    """Average cell by cell, in Python's integers, rounded half up."""
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
    expected = means(image, rows, columns)
    assert np.array_equal(box_resize(image, rows, columns), expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resize, "opencv", lambda: None)
        assert np.array_equal(box_resize(image, rows, columns), expected)


class OtherOpenCV:
    """An OpenCV whose pixels differ in their last bit."""

    error = cv2.error

    @staticmethod
    def resize(image, size):
        return cv2.resize(image, size) ^ 1


def test_an_opencv_that_rounds_otherwise_is_not_used(monkeypatch):
    """Pixels must be the same on every machine."""
    monkeypatch.setattr(resize, "opencv", OtherOpenCV)
    resize._agrees.cache_clear()
    image = noise(100, 90)
    try:
        assert np.array_equal(opencv_bilinear(image, 32, 32), cv2.resize(image, (32, 32)))
    finally:
        resize._agrees.cache_clear()


SIDE, NEW_SIDE = st.integers(1, 300), st.integers(1, 90)


@settings(max_examples=40, deadline=None)
@given(SIDE, SIDE, NEW_SIDE, NEW_SIDE, st.sampled_from(sorted(FILTERS)))
def test_a_resize_to_any_size_has_the_bits_of_pillow(height, width, new_height, new_width, name):
    image = noise(height, width)
    resized = antialiased_resize(image, (new_height, new_width), (0, 0, new_height, new_width), name)
    assert np.array_equal(resized, pillow(image, new_height, new_width, FILTERS[name]))


@pytest.mark.parametrize("name", FILTERS)
def test_pillow_and_numpy_make_the_same_pixels_of_large_frames(monkeypatch, name):
    """With `_agrees` false, Pillow is not used."""
    image = noise(1080, 1920)
    size = (224, 398)
    crop = (0, 87, 224, 224)  # its middle
    by_pillow = antialiased_resize(image, size, crop, name)
    monkeypatch.setattr(resize, "_agrees", lambda *_: False)
    assert np.array_equal(antialiased_resize(image, size, crop, name), by_pillow)


def test_a_crop_is_a_part_of_the_whole_resized_picture():
    image = noise(300, 500)
    whole = antialiased_resize(image, (120, 200), (0, 0, 120, 200), "bicubic")
    top, left, height, width = 7, 31, 64, 80
    part = antialiased_resize(image, (120, 200), (top, left, height, width), "bicubic")
    assert np.array_equal(part, whole[top : top + height, left : left + width])


def test_the_pixels_of_the_squash_are_frozen():
    """Features of different years must be comparable: every 56th pixel is compared."""
    squashed = opencv_bilinear(pattern(272, 640), 224, 224)
    assert squashed[::56, ::56, 1].tolist() == GOLDEN_OPENCV


@pytest.mark.parametrize("name", FILTERS)
def test_the_pixels_of_the_resize_are_frozen(name):
    """A wide picture is resized to a height of 224, and its middle is cropped; a few pixels are compared."""
    size = (224, 527)  # 640 / 272 times as wide as high
    crop = (0, 151, 224, 224)  # top, left, height, width; 151 = (527 - 224) // 2
    resized = antialiased_resize(pattern(272, 640), size, crop, name)
    green_of_every_56th_pixel = resized[::56, ::56, 1]
    assert green_of_every_56th_pixel.tolist() == GOLDEN_PILLOW[name]


GOLDEN_OPENCV = [[0, 86, 26, 113], [109, 19, 40, 162], [161, 150, 224, 198], [154, 181, 123, 176]]
GOLDEN_PILLOW = {
    "bilinear": [[143, 160, 96, 138], [142, 94, 106, 113], [183, 174, 170, 124], [166, 66, 100, 177]],
    "bicubic": [[146, 156, 97, 138], [157, 86, 104, 100], [205, 184, 176, 109], [183, 51, 90, 184]],
}
