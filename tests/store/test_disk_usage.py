"""The room of a stage and its store is known before either is made."""

import os

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from obygaze_features.store import ArraySpec, GroupSpec, PlannedClip, Stage, seal, staging_path
from obygaze_features.store.arrays import all_finite
from obygaze_features.store.disk_usage import estimate_disk, free_space

from .toy_stores import CORPUS, commit_clips, no_link, provenance


def disk_usage_of(folder):
    """Return the bytes that a folder takes on the disk, and its number of files; linked files count once."""
    files = {path.stat().st_ino: path.stat() for path in folder.rglob("*") if path.is_file()}
    return sum(512 * stat.st_blocks for stat in files.values()), len(files)


@pytest.mark.parametrize(
    ("array", "links"),
    [("frames", True), ("tokens", True), ("tokens", False)],
    ids=["frames", "tokens that are linked", "tokens on a disk without links"],
)
def test_the_estimate_of_a_stage_and_its_store_is_within_ten_percent(tmp_path, monkeypatch, array, links):
    """Before anything is made, the room is estimated that 320 clips will take.

    A store takes up less room where its files can be links to those of its stage. Tokens are linked, if the
    disk can link; frames are copied. The peak is what both folders take together.
    """
    arrays = (ArraySpec("pooled", (256,), "float32"), ArraySpec(array, (16, 256), "float16"))
    kind = GroupSpec("big", arrays, 16, provenance("big"))
    clips = [PlannedClip(f"tt{row:07d}-001", f"tt{row:07d}", float(row), row + 8.5) for row in range(320)]
    if not links:
        monkeypatch.setattr(os, "link", no_link)

    stage = Stage.open(staging_path(tmp_path / "s"), clips, [kind], CORPUS)
    commit_clips(stage, stage.missing(), lambda _: "ok")
    stage_bytes, stage_files = disk_usage_of(stage.path)
    store_bytes, store_files = disk_usage_of(seal(None, tmp_path / "s", licence="MIT"))
    bytes_of_both, _ = disk_usage_of(tmp_path)

    estimate = estimate_disk(clips, [kind], links=links)
    assert estimate.stage_bytes == pytest.approx(stage_bytes, rel=0.1)
    assert estimate.store_bytes == pytest.approx(store_bytes, rel=0.1)
    assert estimate.peak_bytes == pytest.approx(bytes_of_both, rel=0.1)
    assert estimate.stage_files == stage_files
    assert estimate.store_files == store_files


def test_free_space_is_known_for_a_folder_that_does_not_exist_yet(tmp_path):
    """It is the free space of the disk on which the folder will be made."""
    free = free_space(tmp_path / "not" / "there")
    assert free.bytes > 0
    assert free.files is None or free.files > 0  # not every file system counts files


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.floats(width=16, allow_nan=True, allow_infinity=True), min_size=1, max_size=40),
    st.sampled_from([(-1,), (1, -1), (-1, 1)]),
)
def test_all_finite_agrees_with_numpy(values, shape):
    """Our function is a faster way to ask NumPy whether an array has neither NaN nor infinite numbers.

    It is tried on arrays of one and two dimensions, of half precision in both orders of bytes, and of single.
    """
    for dtype in ("<f2", ">f2", "<f4"):
        array = np.array(values, dtype).reshape(shape)
        assert all_finite(array) == bool(np.isfinite(array).all())


def test_whole_numbers_are_all_finite():
    """Their type has neither NaN nor infinite numbers."""
    assert all_finite(np.array([0, 1, 2]))
