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
OLD_CLIPS = [PlannedClip(f"a{row:04d}", "m", 0.0, 1.5) for row in range(80)]
NEW_CLIPS = [PlannedClip(f"b{row:04d}", "n", 0.0, 1.5) for row in range(24)]


def sealed(folder, clips, toy, name="toy", failed=()):
    """Seal a store of these clips, and remove its stage."""
    stage = Stage.open(staging_path(folder / name), clips, [toy], CORPUS)
    commit_clips(stage, stage.missing(), lambda clip: "failed" if clip in failed else "ok")
    path = seal(None, folder / name, **LICENSED)
    shutil.rmtree(stage.path)
    return path


def begin_growth(folder, path, clips, toy):
    """Begin a stage that adds clips to a store."""
    growth = plan_growth(open_store(path), "1.1.0", clips, [toy], CORPUS)
    return Stage.open(staging_path(folder / "toy"), *growth, parent=path)


def seal_grown(folder, path, clips, toy, failed=()):
    stage = begin_growth(folder, path, clips, toy)
    commit_clips(stage, stage.missing(), lambda clip: "failed" if clip in failed else "ok")
    return seal(None, folder / "toy", version="1.1.0", **LICENSED)


def array_files(path):
    """Every file of the arrays."""
    return {name: data for name, data in tree(path).items() if "/c/" in name}


def test_a_growing_store_has_only_the_new_clips_to_do(tmp_path, toy):
    path = sealed(tmp_path, OLD_CLIPS, toy)
    stage = begin_growth(tmp_path, path, [*OLD_CLIPS, *NEW_CLIPS], toy)
    assert stage.missing() == [clip.clip_id for clip in NEW_CLIPS]


@pytest.mark.long
def test_a_grown_store_equals_one_made_of_all_clips_at_once(tmp_path, toy):
    """All arrays and the table are the same bytes; only the attributes name the older store as the parent."""
    path = sealed(tmp_path, OLD_CLIPS, toy)
    grown_store = seal_grown(tmp_path, path, [*OLD_CLIPS, *NEW_CLIPS], toy)
    assert verify(grown_store, "full").ok
    at_once = sealed(tmp_path / "whole", [*OLD_CLIPS, *NEW_CLIPS], toy)

    assert array_files(grown_store) == array_files(at_once)
    assert (grown_store / "data/clips.csv").read_bytes() == (at_once / "data/clips.csv").read_bytes()
    assert open_store(grown_store).attributes["parent"] == open_store(path).fingerprint
    assert open_store(grown_store).attributes["corpus"] == CORPUS


def test_growing_a_store_leaves_the_old_version_unchanged(tmp_path, toy):
    """The grown store is another folder; files shared by hard links must not be written to."""
    path = sealed(tmp_path, OLD_CLIPS, toy)
    before = tree(path)
    seal_grown(tmp_path, path, [*OLD_CLIPS, *NEW_CLIPS], toy)
    assert tree(path) == before


def test_a_grown_store_links_the_files_whose_rows_do_not_change(tmp_path, toy):
    """A shard of tokens holds 16 clips, and new clips sort after the 80 old ones: 80 / 16 = 5 shards stay."""
    path = sealed(tmp_path, OLD_CLIPS, toy)
    grown_store = seal_grown(tmp_path, path, [*OLD_CLIPS, *NEW_CLIPS], toy)
    linked = {name for name in array_files(path) if (path / name).samefile(grown_store / name)}
    shards_of_80_old_clips = range(5)  # of 16 clips each
    assert linked == {f"data/features.zarr/toy/tokens/c/{shard}/0/0" for shard in shards_of_80_old_clips}


@pytest.mark.long
def test_new_clips_that_sort_between_the_old_ones_move_their_rows(tmp_path, toy):
    """Rows are sorted by clip id, so old rows move; the result is that of sealing all clips at once."""
    path = sealed(tmp_path, [*OLD_CLIPS[::2], *NEW_CLIPS], toy)
    grown_store = seal_grown(tmp_path, path, [*OLD_CLIPS, *NEW_CLIPS], toy)
    assert verify(grown_store, "full").ok
    assert array_files(grown_store) == array_files(sealed(tmp_path / "whole", [*OLD_CLIPS, *NEW_CLIPS], toy))


def test_clips_that_failed_before_are_done_again_with_retry_failed(tmp_path, toy):
    path = sealed(tmp_path, OLD_CLIPS, toy, failed={"a0007"})
    stage = begin_growth(tmp_path, path, [*OLD_CLIPS, *NEW_CLIPS], toy)
    assert stage.missing(retry_failed=True) == ["a0007", *(clip.clip_id for clip in NEW_CLIPS)]
    commit_clips(stage, stage.missing(retry_failed=True), lambda _: "ok")
    grown_store = seal(None, tmp_path / "toy", version="1.1.0", **LICENSED)
    assert array_files(grown_store) == array_files(sealed(tmp_path / "whole", [*OLD_CLIPS, *NEW_CLIPS], toy))


def test_a_stage_of_a_growing_store_can_be_resumed(tmp_path, toy):
    path = sealed(tmp_path, OLD_CLIPS, toy)
    stage = begin_growth(tmp_path, path, [*OLD_CLIPS, *NEW_CLIPS], toy)
    assert begin_growth(tmp_path, path, [*OLD_CLIPS, *NEW_CLIPS], toy).missing() == stage.missing()


def test_a_growing_stage_is_resumed_only_for_its_own_parent(tmp_path, toy):
    """The stage keeps which store it adds to; opening it with another store, or with none, is an error."""
    path = sealed(tmp_path, OLD_CLIPS, toy)
    another = sealed(tmp_path, OLD_CLIPS[:70], toy, name="other")
    stage = begin_growth(tmp_path, path, [*OLD_CLIPS, *NEW_CLIPS], toy)
    with pytest.raises(StoreError, match="--append"):
        begin_growth(tmp_path, another, [*OLD_CLIPS, *NEW_CLIPS], toy)
    with pytest.raises(StoreError, match="--append"):
        Stage.open(stage.path, stage.clips, stage.groups, stage.corpus)


def test_a_stage_whose_parent_was_renamed_names_its_old_path(tmp_path, toy):
    """The finished clips of such a stage lie in its parent, which is not at its place any more."""
    path = sealed(tmp_path, OLD_CLIPS, toy)
    stage = begin_growth(tmp_path, path, [*OLD_CLIPS, *NEW_CLIPS], toy)
    renamed = path.rename(tmp_path / "away")
    with pytest.raises(StoreError, match=path.name):
        Stage.open(stage.path, stage.clips, stage.groups, stage.corpus, parent=renamed).missing()


@pytest.mark.parametrize(
    ("version", "clips", "kind", "message"),
    [
        ("1.0.0", OLD_CLIPS, TOY, "--store-version"),
        ("1.1.0", OLD_CLIPS, group("other"), None),
        ("1.1.0", OLD_CLIPS, group(arrays=["pooled"]), None),
        ("1.1.0", OLD_CLIPS, group(decoder={**provenance()["decoder"], "ffmpeg": "8"}), r"decoder\.ffmpeg"),
        ("1.1.0", [PlannedClip("a0000", "m", 0.0, 9.0)], TOY, "clip a0000"),
        ("1.1.0", OLD_CLIPS, ragged(), "the shapes of their arrays differ"),
    ],
)  # fmt: skip
def test_clips_and_settings_that_do_not_fit_the_parent_are_refused(tmp_path, version, clips, kind, message):
    """A grown store has a new version, the same settings, and the old clips unchanged."""
    path = sealed(tmp_path, OLD_CLIPS, TOY)
    with pytest.raises(StoreError, match=message) as caught:
        plan_growth(open_store(path), version, clips, [kind], CORPUS)
    assert "\n" not in str(caught.value)


def flip_a_bit(file, place):
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)


BYTES_OF_ROW = {"pooled": 16, "tokens": 60 + 4}
"""Array of the toy store -> bytes of a clip's row in its files; in a shard each has a checksum of 4 bytes."""


@pytest.mark.parametrize(
    ("chunk", "damaged_byte", "clip"),
    [
        ("pooled/c/0/0", 40 * BYTES_OF_ROW["pooled"], "a0040"),  # one chunk has all rows
        ("tokens/c/2/0/0", 10 * BYTES_OF_ROW["tokens"], "a0042"),  # chunk 2 has the rows 32 to 47
        ("tokens/c/4/0/0", 10 * BYTES_OF_ROW["tokens"], "a0074"),  # chunk 4 has the rows 64 to 79
    ],
)
@pytest.mark.parametrize(
    "clips",
    [[*OLD_CLIPS, *NEW_CLIPS], [*OLD_CLIPS, PlannedClip("a0001x", "n", 0.0, 1.5)]],
    ids=["old files are linked", "old rows are copied"],
)
def test_sealing_names_a_damaged_parent_and_keeps_the_staged_clips(
    tmp_path, toy, chunk, damaged_byte, clip, clips
):
    """A store that grows takes the rows of its old clips from its parent, and checks their digests.

    One bit of the parent is wrong. Sealing names the clip and the array, and makes no store; what was
    extracted for the new clips stays, so that it need not be done again once the parent is repaired.
    """
    path = sealed(tmp_path, OLD_CLIPS, toy)
    stage = begin_growth(tmp_path, path, clips, toy)
    commit_clips(stage, stage.missing(), lambda _: "ok")
    flip_a_bit(path / "data/features.zarr/toy" / chunk, damaged_byte)
    array, *_ = chunk.split("/")

    with pytest.raises(StoreError, match=rf"clip {clip}, array toy/{array}"):
        seal(None, tmp_path / "toy", version="1.1.0", **LICENSED)
    assert stage.missing() == []
    assert not (tmp_path / "toy-1.1.0").exists()


@pytest.mark.parametrize("chunk", ["frames/c/0/0", "time_s/c/0", "row_size/c/0"])
def test_sealing_names_damaged_ragged_frames_of_a_parent(tmp_path, chunk):
    """Frames of old clips are checked as they are taken from the parent; the clips staged since then stay."""
    path = sealed(tmp_path, OLD_CLIPS, ragged())
    stage = begin_growth(tmp_path, path, [*OLD_CLIPS, *NEW_CLIPS], ragged())
    commit_clips(stage, stage.missing(), lambda _: "ok")
    flip_a_bit(path / "data/features.zarr/toy" / chunk, 200)

    with pytest.raises(StoreError, match=rf"toy/{chunk.partition('/')[0]}"):
        seal_grown(tmp_path, path, [*OLD_CLIPS, *NEW_CLIPS], ragged())
    assert stage.missing() == []
    assert not (tmp_path / "toy-1.1.0").exists()


def test_chunks_of_frames_before_the_first_new_clip_do_not_change(tmp_path):
    """Frames of all clips lie one after the other, so a new clip moves only the frames behind it.

    A copy of the older version fetches no chunk before them again.
    """
    frames = {f"c{number:02d}": np.full((4800, 2), number, np.float32) for number in range(9)}
    old = {clip: values for clip, values in frames.items() if clip != "c05"}
    before = array_files(seal_frames(tmp_path / "old", dict.fromkeys(old, "m"), old))
    after = array_files(seal_frames(tmp_path / "new", dict.fromkeys(frames, "m"), frames))

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
    """A clip added in the middle moves the clips behind it, and keeps the chunks before it.

    Of 9 clips of 4,800 frames there are 6 chunks of 8,192 frames, one chunk of times and one of indices.
    """
    frames = {f"c{number:02d}": np.full((4800, 2), number, np.float32) for number in range(9)}
    old = {clip: values for clip, values in frames.items() if clip != added}
    before = open_store(seal_frames(tmp_path / "old", dict.fromkeys(old, "m"), old))
    after = open_store(seal_frames(tmp_path / "new", dict.fromkeys(frames, "m"), frames))

    moved = MovedFrames("toy", first_moved, n_moved, chunks=8, chunks_kept=chunks_kept)
    assert moved_frames(before, after) == [moved]


def test_nothing_moves_between_a_store_and_itself(tmp_path):
    """All 8 chunks are kept: 6 of frames, one of times and one of indices."""
    frames = {f"c{number:02d}": np.full((4800, 2), number, np.float32) for number in range(9)}
    store = open_store(seal_frames(tmp_path / "toy", dict.fromkeys(frames, "m"), frames))
    assert moved_frames(store, store) == [MovedFrames("toy", "", 0, chunks=8, chunks_kept=8)]
