"""Pixels are the same with OpenCV and without."""

import numpy as np
import pytest

from obygaze_features import pixels


@pytest.mark.parametrize("opencv", [True, False])
@pytest.mark.parametrize("shape", [(1, 1), (7, 13), (270, 481)])
def test_planes_are_put_together(opencv, shape, monkeypatch):
    if not opencv:
        monkeypatch.setattr(pixels, "opencv", lambda: None)
    padded = np.random.default_rng(0).integers(0, 256, (3, shape[0], shape[1] + 5), dtype=np.uint8)
    planes = padded[:, :, : shape[1]]
    np.testing.assert_array_equal(pixels.interleaved(planes), planes.transpose(1, 2, 0))
