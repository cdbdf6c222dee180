"""A clip is the same clip however the accent of its id is written: as one sign, or as a sign of its own."""

import numpy as np
import pytest

from obygaze_features import open_store, pull, search_like
from obygaze_features.store.testing import seal_arrays

CLIP = "caf\u00e9-1"
CLIP_WITH_ACCENT_APART = "cafe\u0301-1"
"""As macOS writes the names of files, and so lists of them."""


@pytest.fixture
def store(tmp_path):
    """A store of two clips, of which one has an accent in its id."""
    arrays = {
        "pooled": np.array([[1, 2], [3, 4]], np.float32),
        "frames": np.ones((2, 2, 2), np.float32),
    }
    return open_store(seal_arrays(tmp_path / "films", {CLIP: "m", "d": "m"}, {"net": arrays}))


def test_a_clip_is_read_pulled_and_searched_however_its_accent_is_written(store, tmp_path):
    """The clips are stored in the order of their ids, whatever the order in which they are named."""
    read = store["net"].read(CLIP_WITH_ACCENT_APART, "pooled")
    many = store["net"].read_many(["d", CLIP_WITH_ACCENT_APART], "pooled")
    pull(store, tmp_path / "copy-1.0.0", clips=[CLIP_WITH_ACCENT_APART])
    hits = search_like(store, CLIP_WITH_ACCENT_APART)

    assert read.tolist() == store["net"].read(CLIP, "pooled").tolist()
    assert many[1].tolist() == read.tolist()
    assert open_store(tmp_path / "copy-1.0.0")["net"].read(CLIP, "frames").tolist() == [[1, 1], [1, 1]]
    assert [hit.clip_id for hit in hits] == ["d"]
