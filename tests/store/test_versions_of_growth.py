"""The number of a version tells what may be relied on: a patch has the rows of the version before it."""

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.merge import merge
from obygaze_features.store import PlannedClip, open_store
from obygaze_features.store.group import spec_of
from obygaze_features.store.growth import plan_growth
from obygaze_features.store.testing import seal_arrays

from .toy_stores import CORPUS

NEW_CLIP = PlannedClip("b", "m", start_s=0.0, end_s=1.5)


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    """A store of one clip, of version 1.0.0."""
    vectors = {"net": {"pooled": np.ones((1, 3), np.float32)}}
    return open_store(seal_arrays(tmp_path_factory.mktemp("stores") / "films", {"a": "m"}, vectors))


def plan_version(parent, version, clips):
    """Plan a version of the store that has these clips too, with features of its group `net`."""
    return plan_growth(parent, version, clips, [spec_of(parent["net"])], CORPUS)


@pytest.mark.parametrize("version", ["1.0.1", "1.0.10"])
def test_a_patch_adds_no_clip(parent, version):
    """A store of version 1.0.0 has clip a, and is to grow by clip b under the number of a patch.

    A patch is a version of which only the third number is higher; its rows must be those of 1.0.0. So this is
    refused, and the message names the next version that may have more clips.
    """
    with pytest.raises(StoreError, match=r"1 clip is added; choose 1\.1\.0"):
        plan_version(parent, version, [NEW_CLIP])


@pytest.mark.parametrize("version", ["1.1.0", "1.1.3", "1.10.0", "2.0.0"])
def test_a_minor_or_major_version_adds_clips(parent, version):
    """A store of version 1.0.0 has clip a, and grows by clip b.

    It may do so under any version whose first or second number is higher, whatever the third number is.
    """
    plan = plan_version(parent, version, [NEW_CLIP])

    assert [clip.clip_id for clip in plan.clips] == ["a", "b"]


def test_a_patch_without_a_new_clip_is_planned(parent):
    """A store of version 1.0.0 has clip a. Version 1.0.1, a patch, is planned for clip a alone."""
    clips_of_parent = [clip.planned for clip in parent.clips]

    plan = plan_version(parent, "1.0.1", clips_of_parent)

    assert [clip.clip_id for clip in plan.clips] == ["a"]


@pytest.fixture
def two_stores(tmp_path):
    """The paths of two stores of a clip each: films-1.0.0 and more-1.0.0."""
    vectors = {"net": {"pooled": np.ones((1, 3), np.float32)}}
    return [seal_arrays(tmp_path / name, {f"{name}-clip": "m"}, vectors) for name in ("films", "more")]


@pytest.mark.parametrize("version", ["0.9.0", "1.0.1"])
def test_a_merge_named_like_its_first_store_is_refused_unless_its_version_is_one_with_more_clips(
    two_stores, tmp_path, version
):
    """The stores films-1.0.0 and more-1.0.0, of a clip each, are merged under the name "films".

    So the result is a later version of films-1.0.0, with one clip more. Version 0.9.0 is an earlier one, and
    1.0.1 differs in the third place only, which says that the clips are the same: both are refused, with the
    option that gives another. 1.1.0 is right.
    """
    with pytest.raises(StoreError, match="--store-version"):
        merge(two_stores, tmp_path / "films", version=version)

    assert merge(two_stores, tmp_path / "films", version="1.1.0").name == "films-1.1.0"


def test_a_merge_under_a_name_of_its_own_has_any_version(two_stores, tmp_path):
    """The stores films-1.0.0 and more-1.0.0 are merged as "all", of which there is no version yet."""
    assert merge(two_stores, tmp_path / "all", version="0.1.0").name == "all-0.1.0"
