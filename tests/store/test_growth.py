"""A store grows without its stage: new clips are staged, files whose rows do not change are linked."""

import shutil

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.store import PlannedClip, Stage, open_store, staging_path, verify
from obygaze_features.store.growth import MovedFrames, moved_frames, plan_growth
from obygaze_features.store.testing import seal_frames

from .toy_stores import (
    CORPUS,
    LICENSED,
    bytes_of_files,
    commit_clips,
    group,
    provenance,
    ragged_group,
    seal_stage_of,
)

FIXED_GROUP = group()
OLD_CLIPS = [PlannedClip(f"a{row:04d}", "m", start_s=0.0, end_s=1.5) for row in range(80)]
NEW_CLIPS = [PlannedClip(f"b{row:04d}", "n", start_s=0.0, end_s=1.5) for row in range(24)]
ALL_CLIPS = [*OLD_CLIPS, *NEW_CLIPS]


def make_sealed_store(folder, clips, group_of_store, name="toy", failed=()):
    """Seal a store of these clips, and remove its stage."""
    stage = Stage.open(staging_path(folder / name), clips, [group_of_store], CORPUS)
    commit_clips(stage, stage.missing(), lambda clip: "failed" if clip in failed else "ok")
    path = seal_stage_of(folder / name, **LICENSED)
    shutil.rmtree(stage.path)
    return path


@pytest.fixture(scope="module")
def parent(tmp_path_factory, fixed_or_ragged_group):
    """The path of a store of the old clips, without its stage; a test that damages it makes a copy."""
    return make_sealed_store(tmp_path_factory.mktemp("parent"), OLD_CLIPS, fixed_or_ragged_group)


@pytest.fixture(scope="module")
def store_written_at_once(tmp_path_factory, fixed_or_ragged_group):
    """The path of a store that was made of all clips at once."""
    return make_sealed_store(tmp_path_factory.mktemp("whole"), ALL_CLIPS, fixed_or_ragged_group)


def begin_growth(folder, path, clips, group_of_store):
    """Begin a stage that adds clips to a store."""
    growth = plan_growth(open_store(path), "1.1.0", clips, [group_of_store], CORPUS)
    return Stage.open(staging_path(folder / "toy"), *growth, parent=path)


def seal_grown(folder, path, clips, group_of_store):
    stage = begin_growth(folder, path, clips, group_of_store)
    commit_clips(stage, stage.missing(), lambda _: "ok")
    return seal_stage_of(folder / "toy", version="1.1.0", **LICENSED)


def array_files(path):
    """Every file of the arrays."""
    return {name: data for name, data in bytes_of_files(path).items() if "/c/" in name}


def test_a_growing_store_has_only_the_new_clips_to_do_also_when_it_is_resumed(
    tmp_path, parent, fixed_or_ragged_group
):
    """The store has 80 clips, and 24 are added. The stage is begun, and then opened again."""
    new_ids = [clip.clip_id for clip in NEW_CLIPS]

    stage = begin_growth(tmp_path, parent, ALL_CLIPS, fixed_or_ragged_group)
    assert stage.missing() == new_ids

    resumed = begin_growth(tmp_path, parent, ALL_CLIPS, fixed_or_ragged_group)
    assert resumed.missing() == new_ids


@pytest.mark.parametrize(
    ("stated", "kept"),
    [
        ({"licence": "NOASSERTION"}, ("CC-BY-4.0", "Nobody, 2026")),
        ({"licence": "MIT", "citation": "Us, 2027"}, ("MIT", "Us, 2027")),
    ],
    ids=["none stated", "others stated"],
)
def test_a_grown_store_keeps_licence_and_citation_unless_others_are_stated(
    tmp_path, parent, fixed_or_ragged_group, stated, kept
):
    """Job arrays are sealed by `store seal`, which is told NOASSERTION where nobody typed a licence."""
    stage = begin_growth(tmp_path, parent, ALL_CLIPS, fixed_or_ragged_group)
    commit_clips(stage, stage.missing(), lambda _: "ok")

    grown = open_store(seal_stage_of(tmp_path / "toy", version="1.1.0", **stated))

    assert (grown.attributes["licence"], grown.attributes["citation"]) == kept


def test_a_grown_store_equals_one_made_of_all_clips_at_once(
    tmp_path, parent, store_written_at_once, fixed_or_ragged_group
):
    """All arrays and the table are the same bytes; only the attributes name the older store as the parent."""
    grown_store = seal_grown(tmp_path, parent, ALL_CLIPS, fixed_or_ragged_group)

    assert verify(grown_store, "full").ok
    assert array_files(grown_store) == array_files(store_written_at_once)
    assert (grown_store / "data/clips.csv").read_bytes() == (
        store_written_at_once / "data/clips.csv"
    ).read_bytes()
    assert open_store(grown_store).attributes["parent"] == open_store(parent).fingerprint
    assert open_store(grown_store).attributes["corpus"] == CORPUS


def test_a_grown_store_links_the_files_whose_rows_do_not_change(tmp_path, parent, fixed_or_ragged_group):
    """A shard of tokens holds 16 clips, and new clips sort after the 80 old ones: 80 / 16 = 5 shards stay.

    The old version is unchanged: files that are shared by hard links must not be written to.
    """
    before = bytes_of_files(parent)
    grown_store = seal_grown(tmp_path, parent, ALL_CLIPS, fixed_or_ragged_group)

    linked = {name for name in array_files(parent) if (parent / name).samefile(grown_store / name)}
    assert linked == {f"data/features.zarr/toy/tokens/c/{shard}/0/0" for shard in range(5)}
    assert bytes_of_files(parent) == before


def test_new_clips_that_sort_between_the_old_ones_move_their_rows(
    tmp_path, store_written_at_once, fixed_or_ragged_group
):
    """Rows are sorted by clip id, so old rows move; the result is that of sealing all clips at once."""
    every_second_clip = OLD_CLIPS[::2]
    path = make_sealed_store(tmp_path, [*every_second_clip, *NEW_CLIPS], fixed_or_ragged_group)

    grown_store = seal_grown(tmp_path, path, ALL_CLIPS, fixed_or_ragged_group)

    assert verify(grown_store, "full").ok
    assert array_files(grown_store) == array_files(store_written_at_once)


def test_clips_that_failed_before_are_done_again_with_retry_failed(
    tmp_path, store_written_at_once, fixed_or_ragged_group
):
    """In a store of 80 clips, clip a0007 had failed. It grows by 24 clips, and a0007 is done again.

    The store has the same arrays as one of all 104 clips made at once, of which none failed.
    """
    path = make_sealed_store(tmp_path, OLD_CLIPS, fixed_or_ragged_group, failed={"a0007"})
    stage = begin_growth(tmp_path, path, ALL_CLIPS, fixed_or_ragged_group)

    clips_to_do = stage.missing(retry_failed=True)
    assert clips_to_do == ["a0007", *(clip.clip_id for clip in NEW_CLIPS)]

    commit_clips(stage, clips_to_do, status=lambda _: "ok")
    grown_store = seal_stage_of(tmp_path / "toy", version="1.1.0", **LICENSED)
    assert array_files(grown_store) == array_files(store_written_at_once)


def test_a_growing_stage_is_resumed_only_for_its_own_parent(tmp_path, parent, fixed_or_ragged_group):
    """The stage keeps which store it adds to; opening it with another store, or with none, is an error."""
    another = make_sealed_store(tmp_path, OLD_CLIPS[:70], fixed_or_ragged_group, name="other")
    stage = begin_growth(tmp_path, parent, ALL_CLIPS, fixed_or_ragged_group)
    with pytest.raises(StoreError, match="--append"):
        begin_growth(tmp_path, another, ALL_CLIPS, fixed_or_ragged_group)
    with pytest.raises(StoreError, match="--append"):
        Stage.open(stage.path, stage.clips, stage.groups, stage.corpus)


def test_a_stage_whose_parent_was_renamed_names_its_old_path(tmp_path, parent, fixed_or_ragged_group):
    """A stage that adds clips to a store, its parent, finds the store's own clips by the store's path.

    After the store was renamed it does not find them, so the error must say where it looks for them.
    """
    old_path = shutil.copytree(parent, tmp_path / parent.name)
    stage = begin_growth(tmp_path, old_path, ALL_CLIPS, fixed_or_ragged_group)
    new_path = old_path.rename(tmp_path / "away")

    with pytest.raises(StoreError, match=old_path.name):
        Stage.open(stage.path, stage.clips, stage.groups, stage.corpus, parent=new_path)


THREE_CLIPS = OLD_CLIPS[:3]


def refused_growth(store, version="1.1.0", clips=THREE_CLIPS, kind=FIXED_GROUP):
    """Ask to let a store grow, and return the message of the refusal."""
    with pytest.raises(StoreError) as caught:
        plan_growth(open_store(store), version, clips, [kind], CORPUS)
    return str(caught.value)


def test_a_store_does_not_grow_under_its_old_version(tmp_path):
    """A store of three clips has version 1.0.0. A grown store needs another, given by --store-version."""
    store = make_sealed_store(tmp_path, THREE_CLIPS, FIXED_GROUP)

    message = refused_growth(store, version="1.0.0")

    assert "--store-version" in message
    assert "\n" not in message


def test_a_store_does_not_grow_with_an_old_clip_changed(tmp_path):
    """Clip a0000 ends at 1.5 s in the store, and would end at 9 s in the grown one."""
    store = make_sealed_store(tmp_path, THREE_CLIPS, FIXED_GROUP)

    message = refused_growth(store, clips=[PlannedClip("a0000", "m", start_s=0.0, end_s=9.0)])

    assert "clip a0000" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("other_group", "named_in_message"),
    [
        pytest.param(group("other"), "", id="of another name"),
        pytest.param(group(arrays=["pooled"]), "", id="with fewer arrays"),
        pytest.param(
            group(decoder={**provenance()["decoder"], "ffmpeg": "8"}),
            "decoder.ffmpeg",
            id="decoded by another FFmpeg",
        ),
        pytest.param(
            ragged_group(),
            "the shapes of their arrays differ",
            id="with a number of frames of each clip's own",
        ),
    ],
)
def test_a_store_does_not_grow_by_features_of_other_settings(tmp_path, other_group, named_in_message):
    """The store has a group "toy" of three arrays, with three frames of each clip, decoded by FFmpeg 7.1.

    New clips computed otherwise could not be compared with the old ones.
    """
    store = make_sealed_store(tmp_path, THREE_CLIPS, FIXED_GROUP)

    message = refused_growth(store, kind=other_group)

    assert named_in_message in message
    assert "\n" not in message


def flip_a_bit(file, place):
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)


BYTES_OF_ROW = {"pooled": 16, "tokens": 60 + 4}
"""Array of the toy store -> bytes of a clip's row in its files; in a shard each has a checksum of 4 bytes."""
CLIPS_OF_SHARD = 16
"""Clips whose tokens are in one file (shard); a file of pooled vectors has those of all clips here."""


@pytest.mark.parametrize(
    ("chunk", "damaged_byte", "damaged_clip"),
    [
        pytest.param("pooled/c/0/0", 40 * BYTES_OF_ROW["pooled"], "a0040", id="the vector of clip 40"),
        pytest.param(
            "tokens/c/2/0/0",
            (42 - 2 * CLIPS_OF_SHARD) * BYTES_OF_ROW["tokens"],
            "a0042",
            id="the tokens of clip 42, in the shard of clips 32 to 47",
        ),
    ],
)
@pytest.mark.parametrize(
    "clips",
    [
        pytest.param(ALL_CLIPS, id="new clips after the old: old files are linked"),
        pytest.param(
            [*OLD_CLIPS, PlannedClip("a0001x", "n", start_s=0.0, end_s=1.5)],
            id="a new clip between the old: old rows are copied",
        ),
    ],
)
def test_sealing_names_a_damaged_parent_and_keeps_the_staged_clips(
    tmp_path, parent, fixed_or_ragged_group, chunk, damaged_byte, damaged_clip, clips
):
    """A store of 80 clips, a0000 to a0079, is to grow by new clips, which are staged. Then a bit of it flips.

    Sealing takes the rows of the old clips from the old store (the parent), and compares them with its
    digests. So it names the clip and the array whose bit is wrong, and makes no store. Whole files of the
    parent are linked if the new clips come behind the old ones by their ids; rows are copied if a new clip
    comes between. What was extracted for the new clips stays in the stage.
    """
    path = shutil.copytree(parent, tmp_path / parent.name)
    stage = begin_growth(tmp_path, path, clips, fixed_or_ragged_group)
    commit_clips(stage, stage.missing(), status=lambda _: "ok")
    flip_a_bit(path / "data/features.zarr/toy" / chunk, damaged_byte)

    array, *_ = chunk.split("/")
    with pytest.raises(StoreError, match=rf"clip {damaged_clip}, array toy/{array}"):
        seal_stage_of(tmp_path / "toy", version="1.1.0", **LICENSED)
    assert stage.missing() == []
    assert not (tmp_path / "toy-1.1.0").exists()


@pytest.mark.parametrize(
    ("array", "damaged_file"),
    [("frames", "frames/c/0/0"), ("time_s", "time_s/c/0"), ("row_size", "row_size/c/0")],
)
def test_sealing_names_damaged_ragged_frames_of_a_parent(tmp_path, array, damaged_file):
    """A store 1.0.0 of 80 clips, each with its own number of frames, is to grow to 1.1.0 by 24 clips.

    Then a bit of an array of the old store is wrong. Sealing checks what it takes from there, names the array
    and makes no store; the new clips stay in the stage.
    """
    old_store = make_sealed_store(tmp_path, OLD_CLIPS, ragged_group())
    stage = begin_growth(tmp_path, old_store, ALL_CLIPS, ragged_group())
    commit_clips(stage, stage.missing(), lambda _: "ok")
    flip_a_bit(old_store / "data/features.zarr/toy" / damaged_file, place=200)

    with pytest.raises(StoreError, match=rf"toy/{array}"):
        seal_grown(tmp_path, old_store, ALL_CLIPS, ragged_group())
    assert stage.missing() == []
    assert not (tmp_path / "toy-1.1.0").exists()


FRAMES = {f"c{number:02d}": np.full((4800, 2), number, np.float32) for number in range(9)}
"""Nine clips of 4,800 frames: 6 chunks of 8,192 frames, one chunk of times and one of indices."""


def seal_frames_without(folder, clip=None):
    """Seal a store of all of FRAMES but those of a clip."""
    frames = {name: values for name, values in FRAMES.items() if name != clip}
    return open_store(seal_frames(folder, dict.fromkeys(frames, "m"), frames))


def test_chunks_of_frames_before_the_first_new_clip_do_not_change(tmp_path):
    """Frames of all clips lie one after the other, so a new clip moves only the frames behind it.

    A copy of the older version fetches no chunk before them again.
    """
    before = array_files(seal_frames_without(tmp_path / "old", "c05").path)
    after = array_files(seal_frames_without(tmp_path / "new").path)

    unchanged = sorted(name for name, data in before.items() if data == after.get(name))
    # Five clips of 4,800 frames come before the new one: two whole chunks of 8,192 and a part of the third.
    assert [name for name in unchanged if "/frames/c/" in name] == [
        "data/features.zarr/toy/frames/c/0/0",
        "data/features.zarr/toy/frames/c/1/0",
    ]


@pytest.mark.parametrize(
    ("added", "first_moved", "n_moved", "chunks_kept"),
    [("c05", "c06", 3, 2), ("c00", "c01", 8, 0), ("c08", "", 0, 4), (None, "", 0, 8)],
    ids=["in the middle", "before all", "behind all", "nothing"],
)
def test_moved_frames_counts_the_clips_that_a_new_one_moves(
    tmp_path, added, first_moved, n_moved, chunks_kept
):
    """Of nine clips c00 to c08, the old store lacks the one that is added: its frames move those behind it.

    Each clip has 4,800 frames, which lie in 8 files in all. Files of earlier frames alone are kept.
    """
    before = seal_frames_without(tmp_path / "old", added)
    after = seal_frames_without(tmp_path / "new")

    moved = MovedFrames("toy", first_moved, n_moved, chunks=8, chunks_kept=chunks_kept)
    assert moved_frames(before, after) == [moved]
