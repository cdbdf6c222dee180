"""A partial copy lacks rows that the next version needs: that is said before the work, not after it."""

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.transfer import pull
from obygaze_features.store import PlannedClip, open_store
from obygaze_features.store.group import spec_of
from obygaze_features.store.growth import plan_growth
from obygaze_features.store.testing import seal_arrays

from .toy_stores import CORPUS


def test_a_partial_copy_does_not_grow_until_the_rest_is_pulled(tmp_path):
    """The copy has no pooled vectors, of which sealing would find after days that they are not there."""
    arrays = {"pooled": np.ones((1, 3), np.float32), "frames": np.ones((1, 2, 3), np.float32)}
    source = seal_arrays(tmp_path / "films", {"a": "m"}, {"net": arrays})
    copy = tmp_path / "copy-1.0.0"
    pull(source, copy, arrays=["frames"])
    groups = [spec_of(open_store(copy)["net"])]
    new_clips = [PlannedClip("b", "m", start_s=0.0, end_s=1.5)]

    with pytest.raises(StoreError, match=r"copy-1\.0\.0: a partial copy .* pull the rest into it first"):
        plan_growth(open_store(copy), "1.1.0", new_clips, groups, CORPUS)

    pull(source, copy)
    assert len(plan_growth(open_store(copy), "1.1.0", new_clips, groups, CORPUS).clips) == 2
