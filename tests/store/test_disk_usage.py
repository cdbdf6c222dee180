"""The room of a stage and its store is known before either is made."""

import ctypes
import errno
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from obygaze_features.io import files_below
from obygaze_features.store import ArraySpec, GroupSpec, PlannedClip, Stage, disk_usage, staging_path
from obygaze_features.store.arrays import all_finite
from obygaze_features.store.disk_usage import (
    FreeSpace,
    disk_room,
    estimate_disk,
    existing_folder,
    free_space,
    links_work,
    refused_reservation,
)
from obygaze_features.store.format import ANY_NUMBER

from .toy_stores import CORPUS, commit_clips, group, make_stage, no_link, plan, provenance, seal_stage_of


def disk_usage_of(folder):
    """Return the bytes that a folder takes on the disk, and its number of files; linked files count once."""
    files = {path.stat().st_ino: path.stat() for path in folder.rglob("*") if path.is_file()}
    return sum(512 * stat.st_blocks for stat in files.values()), len(files)


@pytest.mark.parametrize(
    ("array", "disk_has_links"),
    [("frames", True), ("tokens", True), ("tokens", False)],
    ids=["frames", "tokens that are linked", "tokens on a disk without links"],
)
def test_the_estimate_of_a_stage_and_its_store_is_within_ten_percent(
    tmp_path, monkeypatch, array, disk_has_links
):
    """Of 320 clips, the estimate without any data is compared with what folders of real files take.

    A store takes less room where its files can be links to those of its stage: tokens are linked if the disk
    can link, and frames are copied. The peak is what both folders take together.
    """
    arrays = (
        ArraySpec("pooled", shape=(256,), dtype="float32"),
        ArraySpec(array, shape=(16, 256), dtype="float16"),
    )
    kind = GroupSpec("big", arrays, n_frames=16, provenance=provenance("big"))
    clips = [
        PlannedClip(f"tt{row:07d}-001", f"tt{row:07d}", start_s=row, end_s=row + 8.5) for row in range(320)
    ]
    if not disk_has_links:
        monkeypatch.setattr(os, "link", no_link)

    estimate = estimate_disk(clips, [kind], links=disk_has_links)

    stage = Stage.open(staging_path(tmp_path / "s"), clips, [kind], CORPUS)
    commit_clips(stage, stage.missing(), status=lambda _: "ok")
    stage_bytes, stage_files = disk_usage_of(stage.path)
    store = seal_stage_of(tmp_path / "s", licence="MIT")
    store_bytes, store_files = disk_usage_of(store)
    bytes_of_both, _ = disk_usage_of(tmp_path)

    assert estimate.stage_bytes == pytest.approx(stage_bytes, rel=0.1)
    assert estimate.store_bytes == pytest.approx(store_bytes, rel=0.1)
    assert estimate.peak_bytes == pytest.approx(bytes_of_both, rel=0.1)
    assert estimate.stage_files == stage_files
    assert estimate.store_files == store_files


def test_free_space_is_known_for_a_folder_that_does_not_exist_yet(tmp_path):
    """What is free on the disk on which the folder not/there will be made: some bytes, and some files.

    Not every file system counts how many files are free: then this is None.
    """
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
    """The check for NaN and infinity is asked about an array of whole numbers, whose type has neither."""
    assert all_finite(np.array([0, 1, 2]))


@pytest.mark.parametrize("n_clips", [1, 16, 17])
def test_files_are_counted_exactly_whatever_part_of_the_last_piece_is_filled(tmp_path, n_clips):
    """A disk may run out of files before it runs out of bytes.

    A piece of a stage has 16 clips. Two groups have arrays of every kind: small ones, and tokens in shards.
    """
    groups = [group("a", ("pooled", "frames")), group("b")]
    stage = make_stage(tmp_path, n_clips, groups)
    _, n_stage_files = disk_usage_of(stage.path)
    _, n_store_files = disk_usage_of(seal_stage_of(tmp_path / "toy", licence="MIT", allow_missing=True))

    estimate = estimate_disk(plan(n_clips), groups)

    assert estimate.stage_files == n_stage_files
    assert estimate.store_files == n_store_files
    assert estimate.files == n_stage_files + n_store_files


BYTES_PER_FRAME = 16 * 2 + 8 + 8
"""Bytes of a frame whose room `ragged_estimate` estimates."""


def ragged_estimate(spans, *, per_s):
    """Estimate the room of clips with these starts and ends, `per_s` frames a second (None: not known).

    A frame has 16 float16 numbers, a time and an index of 8 bytes each: 48 bytes (`BYTES_PER_FRAME`).
    """
    arrays = (ArraySpec("frames", (ANY_NUMBER, 16), "float16"),)
    sampling = {"policy": "fps", "n": None}
    if per_s is not None:
        sampling["rate"] = per_s
    kind = GroupSpec("moving", arrays, ANY_NUMBER, provenance("moving", sampling=sampling))
    clips = [PlannedClip(f"c{row}", "tt1", start_s, end_s) for row, (start_s, end_s) in enumerate(spans)]
    return estimate_disk(clips, [kind])


@pytest.mark.parametrize(
    ("spans", "n_frames"),
    [
        ([(0, 10), (5, 25)], 7.5),
        ([(0, 10), (None, None)], 5),
        ([(0, 10), (5, None)], 5),
        ([(0, 10), (None, 5)], 5),
        ([(None, None), (None, None)], 30),
        ([(0, 3), (4, 5)], 1),
        ([(0, 1), (0, 1)], 1),
        ([(0, 0), (0, 0)], 1),
    ],
    ids=[
        "the mean of 10 and 20 s",
        "one of no known length",
        "one without an end",
        "one without a start",
        "no length is known: a minute",
        "2 s on average: one frame",
        "shorter than a frame",
        "no time at all",
    ],
)
def test_the_room_of_frames_is_estimated_by_the_mean_length_of_the_clips_of_known_length(spans, n_frames):
    """Two clips have a frame every two seconds; a store needs room for `n_frames` frames of each, on average.

    That is half the mean length in seconds of the clips that have a start and an end (30 frames, of a minute,
    if none has), and one frame at least. Too low an estimate ends an extraction on a full disk.

    A store has other data too. So its room is compared with that of two clips of one frame each: it exceeds
    that by the bytes of the further frames. While a store is made, there are two copies of the frames, in the
    stage and in the store, so that the peak exceeds it by twice as much.
    """
    every_two_seconds = 0.5  # frames a second
    of_one_frame_each = ragged_estimate([(0, 2), (0, 2)], per_s=every_two_seconds)

    estimate = ragged_estimate(spans, per_s=every_two_seconds)

    n_further_frames = 2 * (n_frames - 1)
    further_bytes = n_further_frames * BYTES_PER_FRAME
    assert estimate.stage_bytes - of_one_frame_each.stage_bytes == further_bytes
    assert estimate.store_bytes - of_one_frame_each.store_bytes == further_bytes
    assert estimate.peak_bytes - of_one_frame_each.peak_bytes == 2 * further_bytes


def test_frames_of_an_unknown_rate_are_not_guessed():
    """All frames of each clip are kept, and nobody knows yet how many a second there are."""
    of_short_clips = ragged_estimate([(0, 2)], per_s=None)
    of_long_clips = ragged_estimate([(0, 7200)], per_s=None)
    assert of_long_clips == of_short_clips


def test_texts_take_room_twice_in_the_stage_and_once_in_the_store():
    """The plan and the journal of a stage have each text, and the table of the store has it.

    A text is as long as its bytes in UTF-8: é has two.
    """
    kind = group("said", ("pooled",))
    short, long = ([PlannedClip("c", "", text=text)] for text in ("e", "é" * 1000))

    of_short = estimate_disk(short, [kind])
    of_long = estimate_disk(long, [kind])

    assert of_long.stage_bytes - of_short.stage_bytes == 2 * (2000 - 1)
    assert of_long.store_bytes - of_short.store_bytes == 2000 - 1


@pytest.mark.skipif(not hasattr(os, "statvfs"), reason="Windows has no count of files")
@pytest.mark.parametrize(("n_at_most", "n_left", "expected"), [(0, 0, None), (1, 0, 0), (1, 1, 1)])
def test_a_disk_without_a_count_of_files_is_told_from_one_without_room(
    tmp_path, monkeypatch, n_at_most, n_left, expected
):
    """Some file systems, such as Btrfs, have no limit, and report 0 files: extraction must not stop there."""
    monkeypatch.setattr(
        os, "statvfs", lambda _folder: SimpleNamespace(f_files=n_at_most, f_favail=n_left), raising=True
    )
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=7))

    assert free_space(tmp_path) == FreeSpace(bytes=7, files=expected)


def test_a_file_that_another_task_removes_meanwhile_takes_no_room(tmp_path, monkeypatch):
    """Tasks of an array write the stage while one is asked what is left; one of its files has just gone."""
    stage = make_stage(tmp_path)
    room_before = disk_room(stage.path, plan(20), stage.groups)

    def list_and_remove_one(folder):
        paths = files_below(folder)
        paths[0].unlink()
        return paths

    monkeypatch.setattr(disk_usage, "files_below", list_and_remove_one)
    room = disk_room(stage.path, plan(20), stage.groups)

    assert room.left_files == room_before.left_files + 1


def test_the_nearest_folder_of_a_path_is_the_deepest_that_exists(tmp_path):
    """A link whose target is gone, as of a disk that is not mounted, exists: what is above says nothing."""
    dangling = tmp_path / "gone"
    dangling.symlink_to(tmp_path / "not mounted")

    assert existing_folder(tmp_path) == tmp_path
    assert existing_folder(tmp_path / "a" / "b") == tmp_path
    assert existing_folder(dangling / "store") == dangling
    assert existing_folder(Path("/")) == Path("/")
    assert existing_folder(Path("/none of this/exists")) == Path("/")


def test_whether_a_disk_has_hard_links_is_found_out_by_making_one_that_is_removed_again(
    tmp_path, monkeypatch
):
    """A store's shards are hard links to those of its stage where a disk has links, and need no further room.

    So before the room is estimated, a link is tried in the folder. This one has links; then the system
    refuses to make any; and in a folder that is not there none can be made. No trial leaves a file behind.
    """
    assert links_work(tmp_path)
    assert not links_work(tmp_path / "not there")
    monkeypatch.setattr(os, "link", no_link)
    assert not links_work(tmp_path)

    assert list(tmp_path.iterdir()) == []


def disk_that_answers_a_reservation(monkeypatch, error_number):
    """Have the system call that reserves room succeed, or fail with an error number.

    The places and numbers of bytes that are asked for are recorded in the list that this returns.
    """
    reservations = []

    def fallocate(_file, _mode, offset, size):
        reservations.append((offset, size))
        ctypes.set_errno(error_number or 0)
        return -1 if error_number else 0

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace(fallocate=fallocate))
    return reservations


@pytest.mark.skipif(sys.platform != "linux", reason="space is reserved on Linux alone")
@pytest.mark.parametrize("error_number", [errno.EDQUOT, errno.ENOSPC], ids=["quota", "full"])
def test_a_disk_without_room_refuses_a_reservation(tmp_path, monkeypatch, error_number):
    """Before an extraction, room is reserved: a quota that is used up, or a full disk, is noticed at once."""
    reservations = disk_that_answers_a_reservation(monkeypatch, error_number)

    refusal = refused_reservation(tmp_path, size=1)

    one_byte_from_the_start = (0, 1)
    assert reservations == [one_byte_from_the_start]
    assert refusal.errno == error_number
    assert refusal.filename == str(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="space is reserved on Linux alone")
@pytest.mark.parametrize(
    "error_number",
    [None, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINTR],
    ids=["granted", "not supported", "no such call", "interrupted"],
)
def test_a_disk_that_cannot_reserve_room_does_not_refuse_it(tmp_path, monkeypatch, error_number):
    """Where room cannot be reserved, nothing is known of a quota: an extraction must not stop for that."""
    reservations = disk_that_answers_a_reservation(monkeypatch, error_number)

    refusal = refused_reservation(tmp_path, size=1)

    one_byte_from_the_start = (0, 1)
    assert reservations == [one_byte_from_the_start]
    assert refusal is None
