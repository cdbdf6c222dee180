"""A store grows without its stage: new clips are staged, files whose rows do not change are linked."""

import shutil

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.store import PlannedClip, Stage, open_store, seal, staging_path, verify
from obygaze_features.store.growth import MovedFrames, moved_frames, plan_growth
from obygaze_features.store.testing import seal_frames

from .toy_stores import CORPUS, LICENSED, commit_clips, group, provenance, ragged, tree

TOY = group()
OLD = [PlannedClip(f"a{row:04d}", "m", 0.0, 1.5) for row in range(80)]
NEW = [PlannedClip(f"b{row:04d}", "n", 0.0, 1.5) for row in range(24)]


def sealed(folder, clips, toy, name="toy", failed=()):
    """Seal a store of these clips, and remove its stage."""
    stage = Stage.open(staging_path(folder / name), clips, [toy], CORPUS)
    commit_clips(stage, stage.missing(), lambda clip: "failed" if clip in failed else "ok")
    path = seal(None, folder / name, **LICENSED)
    shutil.rmtree(stage.path)
    return path


def growing(folder, path, clips, toy):
    """Begin a stage that adds clips to a store."""
    growth = plan_growth(open_store(path), "1.1.0", clips, [toy], CORPUS)
    return Stage.open(staging_path(folder / "toy"), *growth, parent=path)


def grown(folder, path, clips, toy, failed=()):
    stage = growing(folder, path, clips, toy)
    commit_clips(stage, stage.missing(), lambda clip: "failed" if clip in failed else "ok")
    return seal(None, folder / "toy", version="1.1.0", **LICENSED)


def payload(path):
    """Every file of the arrays."""
    return {name: data for name, data in tree(path).items() if "/c/" in name}


def test_only_the_new_clips_of_a_growing_store_are_to_do(tmp_path, toy):
    path = sealed(tmp_path, OLD, toy)
    stage = growing(tmp_path, path, [*OLD, *NEW], toy)
    assert stage.missing() == [clip.clip_id for clip in NEW]


def test_a_grown_store_is_the_store_of_all_clips_at_once_but_for_its_parent(tmp_path, toy):
    path = sealed(tmp_path, OLD, toy)
    grown_store = grown(tmp_path, path, [*OLD, *NEW], toy)
    assert verify(grown_store, "full").ok
    at_once = sealed(tmp_path / "whole", [*OLD, *NEW], toy)
    assert payload(grown_store) == payload(at_once)
    assert (grown_store / "data/clips.csv").read_bytes() == (at_once / "data/clips.csv").read_bytes()
    assert open_store(grown_store).attributes["parent"] == open_store(path).fingerprint
    assert open_store(grown_store).attributes["corpus"] == CORPUS


def test_a_store_that_grows_stays_as_it_was(tmp_path, toy):
    path = sealed(tmp_path, OLD, toy)
    before = tree(path)
    grown(tmp_path, path, [*OLD, *NEW], toy)
    assert tree(path) == before


def test_a_grown_store_links_the_files_whose_rows_do_not_change(tmp_path, toy):
    path = sealed(tmp_path, OLD, toy)
    grown_store = grown(tmp_path, path, [*OLD, *NEW], toy)
    linked = {name for name in payload(path) if (path / name).samefile(grown_store / name)}
    shards_of_80_old_clips = range(5)  # of 16 clips each
    assert linked == {f"data/features.zarr/toy/tokens/c/{shard}/0/0" for shard in shards_of_80_old_clips}


def test_new_clips_that_sort_between_the_old_ones_move_their_rows(tmp_path, toy):
    path = sealed(tmp_path, [*OLD[::2], *NEW], toy)
    grown_store = grown(tmp_path, path, [*OLD, *NEW], toy)
    assert verify(grown_store, "full").ok
    assert payload(grown_store) == payload(sealed(tmp_path / "whole", [*OLD, *NEW], toy))


def test_clips_that_failed_before_are_done_again_where_that_is_asked_for(tmp_path, toy):
    path = sealed(tmp_path, OLD, toy, failed={"a0007"})
    stage = growing(tmp_path, path, [*OLD, *NEW], toy)
    assert stage.missing(retry_failed=True) == ["a0007", *(clip.clip_id for clip in NEW)]
    commit_clips(stage, stage.missing(retry_failed=True), lambda _: "ok")
    grown_store = seal(None, tmp_path / "toy", version="1.1.0", **LICENSED)
    assert payload(grown_store) == payload(sealed(tmp_path / "whole", [*OLD, *NEW], toy))


def test_a_stage_of_a_growing_store_can_be_resumed(tmp_path, toy):
    path = sealed(tmp_path, OLD, toy)
    stage = growing(tmp_path, path, [*OLD, *NEW], toy)
    assert growing(tmp_path, path, [*OLD, *NEW], toy).missing() == stage.missing()


def test_a_stage_of_a_growing_store_is_not_resumed_for_another_store_or_for_none(tmp_path, toy):
    path = sealed(tmp_path, OLD, toy)
    another = sealed(tmp_path, OLD[:70], toy, name="other")
    stage = growing(tmp_path, path, [*OLD, *NEW], toy)
    with pytest.raises(StoreError, match="--append"):
        growing(tmp_path, another, [*OLD, *NEW], toy)
    with pytest.raises(StoreError, match="--append"):
        Stage.open(stage.path, stage.clips, stage.groups, stage.corpus)


def test_a_growing_store_that_was_renamed_is_named_by_its_old_path(tmp_path, toy):
    path = sealed(tmp_path, OLD, toy)
    stage = growing(tmp_path, path, [*OLD, *NEW], toy)
    path.rename(tmp_path / "away")
    with pytest.raises(StoreError, match=r"toy-1\.0\.0"):
        Stage.open(stage.path, stage.clips, stage.groups, stage.corpus, parent=tmp_path / "away").missing()


@pytest.mark.parametrize(
    ("version", "clips", "kind", "message"),
    [
        ("1.0.0", OLD, TOY, "--store-version"),
        ("1.1.0", OLD, group("other"), None),
        ("1.1.0", OLD, group(arrays=["pooled"]), None),
        ("1.1.0", OLD, group(decoder={**provenance()["decoder"], "ffmpeg": "8"}), r"decoder\.ffmpeg"),
        ("1.1.0", [PlannedClip("a0000", "m", 0.0, 9.0)], TOY, "clip a0000"),
        ("1.1.0", OLD, ragged(), "the shapes of their arrays differ"),
    ],
)  # fmt: skip
def test_clips_and_settings_that_do_not_fit_the_parent_are_refused(tmp_path, version, clips, kind, message):
    path = sealed(tmp_path, OLD, TOY)
    with pytest.raises(StoreError, match=message) as caught:
        plan_growth(open_store(path), version, clips, [kind], CORPUS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("array", ["pooled/c/0/0", "tokens/c/2/0/0", "tokens/c/4/0/0"])
@pytest.mark.parametrize("clips", [[*OLD, *NEW], [*OLD, PlannedClip("a0001x", "n", 0.0, 1.5)]])
def test_a_damaged_parent_is_named_and_nothing_is_annulled(tmp_path, toy, array, clips):
    """Its shards are linked in the first case, and its rows are copied in the second."""
    path = sealed(tmp_path, OLD, toy)
    stage = growing(tmp_path, path, clips, toy)
    commit_clips(stage, stage.missing(), lambda _: "ok")
    file = path / "data/features.zarr/toy" / array
    data = bytearray(file.read_bytes())
    data[645] ^= 1  # of a row whose piece has no new clip
    file.write_bytes(data)
    name = array.partition("/")[0]
    with pytest.raises(StoreError, match=rf"clip a\d+, array toy/{name}"):
        seal(None, tmp_path / "toy", version="1.1.0", **LICENSED)
    assert stage.missing() == []
    assert not (tmp_path / "toy-1.1.0").exists()


@pytest.mark.parametrize("array", ["frames/c/0/0", "time_s/c/0", "row_size/c/0"])
def test_damaged_frames_of_a_parent_are_named_and_nothing_is_annulled(tmp_path, array):
    path = sealed(tmp_path, OLD, ragged())
    stage = growing(tmp_path, path, [*OLD, *NEW], ragged())
    commit_clips(stage, stage.missing(), lambda _: "ok")
    file = path / "data/features.zarr/toy" / array
    data = bytearray(file.read_bytes())
    data[200] ^= 1
    file.write_bytes(data)
    with pytest.raises(StoreError, match=rf"toy/{array.partition('/')[0]}"):
        grown(tmp_path, path, [*OLD, *NEW], ragged())
    assert stage.missing() == []
    assert not (tmp_path / "toy-1.1.0").exists()


def test_chunks_of_frames_before_the_first_new_clip_do_not_change(tmp_path):
    """Only chunks from there on are others: a copy of the older version fetches no more than these."""
    frames = {f"c{number:02d}": np.full((4800, 2), number, np.float32) for number in range(9)}
    old = {clip: values for clip, values in frames.items() if clip != "c05"}
    before = payload(seal_frames(tmp_path / "old", dict.fromkeys(old, "m"), old))
    after = payload(seal_frames(tmp_path / "new", dict.fromkeys(frames, "m"), frames))
    unchanged = sorted(name for name, data in before.items() if data == after.get(name))
    # Five clips of 4,800 frames come before the new one: two whole chunks of 8,192 and a part of the third.
    assert [name for name in unchanged if "/frames/c/" in name] == [
        "data/features.zarr/toy/frames/c/0/0",
        "data/features.zarr/toy/frames/c/1/0",
    ]


@pytest.mark.parametrize(
    ("added", "first_moved", "n_moved", "chunks_kept"),
    [("c05", "c06", 3, 2), ("c00", "c01", 8, 0), ("c08", "", 0, 4)],
    ids=["in the middle", "before all", "behind all"],
)
def test_moved_frames_counts_the_clips_that_a_new_one_moves(
    tmp_path, added, first_moved, n_moved, chunks_kept
):
    """9 clips of 4,800 frames: 6 chunks of 8,192 frames, one chunk of times and one of indices."""
    frames = {f"c{number:02d}": np.full((4800, 2), number, np.float32) for number in range(9)}
    old = {clip: values for clip, values in frames.items() if clip != added}
    before = open_store(seal_frames(tmp_path / "old", dict.fromkeys(old, "m"), old))
    after = open_store(seal_frames(tmp_path / "new", dict.fromkeys(frames, "m"), frames))
    moved = MovedFrames("toy", first_moved, n_moved, chunks=8, chunks_kept=chunks_kept)
    assert moved_frames(before, after) == [moved]


def test_nothing_moves_between_a_store_and_itself(tmp_path):
    frames = {f"c{number:02d}": np.full((4800, 2), number, np.float32) for number in range(9)}
    store = open_store(seal_frames(tmp_path / "toy", dict.fromkeys(frames, "m"), frames))
    assert moved_frames(store, store) == [MovedFrames("toy", "", 0, chunks=8, chunks_kept=8)]
