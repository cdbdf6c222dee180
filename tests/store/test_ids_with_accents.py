"""A clip is the same clip however the accent of its id is written: as one sign, or as a sign of its own."""

import numpy as np
import pytest

from obygaze_features import open_store, pull, search_like
from obygaze_features.store.testing import seal_arrays

CLIP = "caf\u00e9-1"
"""The id with the accent and the e as one sign."""
CLIP_WITH_ACCENT_APART = "cafe\u0301-1"
"""The same id with the accent as a sign of its own: so macOS writes the names of files, and lists of them."""


@pytest.fixture
def store(tmp_path):
    """A store of two clips, of which one has an accent in its id."""
    arrays = {
        "pooled": np.array([[1, 2], [3, 4]], np.float32),
        "frames": np.ones((2, 2, 2), np.float32),
    }
    return open_store(seal_arrays(tmp_path / "films", {CLIP: "m", "d": "m"}, {"net": arrays}))


def test_a_clip_is_read_by_an_id_whose_accent_is_written_in_the_other_way(store):
    """The clip is stored as café-1, with é as one sign, and has the pooled vector (1, 2).

    It is asked for with the accent as a sign of its own: alone, and as the second of two clips.
    """
    vector = store["net"].read(CLIP_WITH_ACCENT_APART, "pooled")
    vectors = store["net"].read_many(["d", CLIP_WITH_ACCENT_APART], "pooled")

    assert vector.tolist() == [1, 2]
    assert vectors.tolist() == [[3, 4], [1, 2]]


def test_a_clip_is_pulled_by_an_id_whose_accent_is_written_in_the_other_way(store, tmp_path):
    """The clip is stored as café-1, with é as one sign; its two frames are (1, 1).

    It is pulled with the accent as a sign of its own. The copy has it under the id of the store.
    """
    pull(store, tmp_path / "copy-1.0.0", clips=[CLIP_WITH_ACCENT_APART])

    copy = open_store(tmp_path / "copy-1.0.0")
    assert copy["net"].read(CLIP, "frames").tolist() == [[1, 1], [1, 1]]


def test_clips_are_searched_by_an_id_whose_accent_is_written_in_the_other_way(store):
    """Of the two clips café-1 and d, those are searched that are like café-1, with the accent apart.

    The only other clip is d. If the id were not recognised, there would be an error, or café-1 itself among
    the hits.
    """
    hits = search_like(store, CLIP_WITH_ACCENT_APART)

    assert [hit.clip_id for hit in hits] == ["d"]
