"""Pixels are the same with OpenCV and without."""

import numpy as np
import pytest

from obygaze_features import pixels


@pytest.mark.parametrize("has_opencv", [True, False])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (7, 13), (270, 481)])
def test_three_planes_of_colour_become_one_picture(has_opencv, height, width, monkeypatch):
    """Planes [3, height, width] become a picture [height, width, 3], with OpenCV and without.

    The rows of the planes are not contiguous: they are parts of rows that are 5 pixels longer, as decoders
    give them.
    """
    if not has_opencv:
        monkeypatch.setattr(pixels, "opencv", lambda: None)
    padded_planes = np.random.default_rng(0).integers(0, 256, (3, height, width + 5), dtype=np.uint8)
    planes = padded_planes[:, :, :width]

    picture = pixels.interleaved(planes)

    assert picture.shape == (height, width, 3)
    for colour in range(3):
        np.testing.assert_array_equal(picture[:, :, colour], planes[colour])
