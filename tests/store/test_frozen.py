"""Stores of every format version there was must keep opening: these bytes are never made again."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.store import PlannedClip, Stage, open_store, read_stage, same_numerics, seal, verify

from .toy_stores import (
    CORPUS,
    bytes_of_files,
    commit_clips,
    group,
    planted_features,
    provenance,
    ragged_group,
    result,
    seal_stage_of,
)

FROZEN = Path(__file__).parent / "frozen"
SEALED = {"licence": "MIT", "citation": "Nobody, 2026", "allow_missing": True}


STATUSES = {
    "1.0": ["ok", "partial", "failed", "missing"],
    "1.1": ["ok", "partial", "failed", "missing"],
    "1.2": ["ok", "partial", "failed", "ok", "missing"],
    "1.3": ["ok", "partial", "failed", "ok", "missing"],
    "1.4": ["ok", "partial", "failed", "missing"],
}
FINGERPRINTS = {
    "1.0": "71d64bb8a0efcf91d353e1afc31ea9cb36739c0b4d797d605979ec75f06e4233",
    "1.1": "e39f7552d4a2e6ac2c0ae736f36a15937a586ffa15d365f076c39b19dd8f0a6a",
    "1.2": "5f06b7e49c1ae6dc3aa6868e6ab80548828737034420c9e6c41d0cc8548ceee6",
    "1.3": "9256cd19d7f1d01b361f852b8298f7b3977abb876eb3719b29910328d7986806",
    "1.4": "de524fec3297749ddefbb1e8556099d580510cb1a9f3f269fd49b045734c83d6",
}


@pytest.mark.parametrize("depth", ["quick", "digests", "full"])
@pytest.mark.parametrize("version", FINGERPRINTS)
def test_the_frozen_store_of_every_format_verifies(version, depth):
    """The stores are files of this repository, sealed when each version of the format was new.

    What is expected of them was noted then: the statuses of their clips, and their fingerprints.
    """
    store = open_store(FROZEN / f"format-{version}")
    assert store.attributes["spec_version"] == version
    assert [clip.status for clip in store.clips] == STATUSES[version]

    report = verify(FROZEN / f"format-{version}-1.0.0", depth)
    assert report.ok, report.problems
    assert report.fingerprint == FINGERPRINTS[version]


def test_the_store_of_format_1_0_reads_as_it_was_written():
    """Clips a and b have features (ok, partial), c failed, and ä was never done."""
    store = open_store(FROZEN / "format-1.0")
    assert store.attributes["corpus"] == CORPUS
    assert store.clips[2].reason == "the file is failed"
    toy_group = store["toy"]
    assert toy_group.clip_ids == ("a", "b", "c", "ä")
    assert toy_group.usable.tolist() == [True, True, False, False]

    planted_provenance = {**provenance(), "storage": toy_group.provenance["storage"]}
    fields_that_differ = same_numerics(toy_group.provenance, planted_provenance)
    assert fields_that_differ == []

    for clip in ("a", "b"):
        planted = planted_features(clip, group())
        for array, values in planted.arrays.items():
            assert np.array_equal(toy_group.read(clip, array), values)


def test_the_store_of_format_1_1_reads_as_it_was_written():
    """Format 1.1 added rows that are texts. The planted vector of clip "a" is [1, code of "a"]."""
    store = open_store(FROZEN / "format-1.1")
    toy_group = store["toy"]
    assert toy_group.clip_ids == ("a", "b", "c", "ä")
    assert toy_group.text == ("a man,\nriding", "a photo of a man", "a photo of a man", "ein Mädchen")
    assert toy_group.pooled()[:2].tolist() == [[1, ord("a")], [1, ord("b")]]


def test_the_store_of_format_1_2_reads_as_it_was_written():
    """Format 1.2 added clips that are absent in one group: b and d have no features in "wave".

    The store has the groups "toy" and "wave", and five clips, in this order: a is ok, b is partial, c failed,
    d is ok, and ä was never done. Arrays have the status of a clip as a number. Features are those that
    `planted_features` makes for a clip and a group.
    """
    store = open_store(FROZEN / "format-1.2")
    toy_group = store["toy"]
    wave_group = store["wave"]
    assert toy_group.clip_ids == ("a", "b", "c", "d", "ä")
    absent = {clip.clip_id: clip.absent for clip in store.clips if clip.absent}
    assert absent == {"b": {"wave": "the sound track is damaged"}, "d": {"wave": "no sound track"}}
    missing, ok, partial, failed, absent_here = 0, 1, 2, 3, 4
    assert toy_group.status.tolist() == [ok, partial, failed, ok, missing]
    assert wave_group.status.tolist() == [ok, absent_here, failed, absent_here, missing]

    for clip in ("a", "b", "d"):
        planted = planted_features(clip, group("toy", ("pooled", "frames", "tokens")))
        for array, values in planted.arrays.items():
            assert np.array_equal(toy_group.read(clip, array), values)
    planted = planted_features("a", group("wave", ("pooled", "frames")))
    for array, values in planted.arrays.items():
        assert np.array_equal(wave_group.read("a", array), values)


def test_the_store_of_format_1_3_reads_as_it_was_written():
    """Format 1.3 added groups whose clips have different numbers of frames.

    `row_size` counts them: 0 where a clip has no features.
    """
    store = open_store(FROZEN / "format-1.3")
    toy_group = store["toy"]
    wave = store["wave"]
    assert toy_group.row_size.tolist() == [5, 5, 0, 7, 0]
    assert wave.row_size.tolist() == [2, 0, 0, 0, 0]

    for clip in ("a", "b", "d"):
        planted = planted_features(clip, ragged_group())
        for array, values in planted.arrays.items():
            assert np.array_equal(toy_group.read(clip, array), values)
        assert np.array_equal(toy_group.read(clip, "time_s"), planted.time_s)
        assert np.array_equal(toy_group.read(clip, "frame_index"), planted.frame_index)
    assert np.array_equal(wave.frames(), planted_features("a", ragged_group("wave")).arrays["frames"])


def test_the_store_of_format_1_4_reads_as_it_was_written():
    """Format 1.4 added the stretches of a clip, in seconds, that have no pictures."""
    store = open_store(FROZEN / "format-1.4")
    stretches = {clip.clip_id: clip.without_pictures_s for clip in store.clips if clip.without_pictures_s}
    assert stretches == {"b": ((0.25, 0.5), (2.0, 2.5))}

    planted = planted_features("b", group())
    for array, values in planted.arrays.items():
        assert np.array_equal(store["toy"].read("b", array), values)


def stage_of_a_clip_partly_without_pictures(folder):
    """A stage of four clips: a is ok, c failed, nobody did ä, and b has no pictures in two stretches."""
    plan = [PlannedClip(clip, "m", start_s=0.0, end_s=2.5) for clip in ("ä", "c", "b", "a")]
    stage = Stage.open(folder, plan, [group()], CORPUS)
    statuses = {"a": "ok", "c": "failed"}
    commit_clips(stage, ["c", "a"], statuses.get)

    stretches = ((0.25, 0.5), (2.0, 2.5))
    partial = replace(result("b", [group()], "partial"), without_pictures_s=stretches)
    with stage.writer(["b"]) as writer:
        writer.commit([partial])
    return stage


def test_a_clip_partly_without_pictures_seals_to_the_frozen_bytes(tmp_path):
    """A store of format 1.4 is kept in the repository, as it was when this format was new.

    Its four clips, one of them without pictures in two stretches, are sealed again: users' stores must not
    change with the code, so today's bytes must be those.
    """
    stage = stage_of_a_clip_partly_without_pictures(tmp_path / "toy.staging")

    sealed_today = seal(stage.path, tmp_path / "toy", **SEALED)

    assert content(sealed_today) == content(FROZEN / "format-1.4-1.0.0")


def frozen_groups(kind):
    """The groups of the frozen stores of format 1.2 and 1.3: of `group` and of `ragged_group`."""
    return [kind(), kind("wave", ("pooled", "frames"))]


def stage_frozen_clips(path, kind):
    """Stage the clips of format-1.2-1.0.0 and format-1.3-1.0.0, by two writers; nobody does clip "ä".

    This made frozen/layout-3.staging on a node called `frozen`, and frozen/layout-4.staging.
    """
    plan = [PlannedClip(clip, "m", start_s=0.0, end_s=2.5) for clip in ("ä", "d", "c", "b", "a")]
    stage = Stage.open(path, plan, frozen_groups(kind), CORPUS)
    statuses = {"a": "ok", "b": "partial", "c": "failed", "d": "ok"}
    absent = {"b": {"wave": "the sound track is damaged"}, "d": {"wave": "no sound track"}}
    commit_clips(stage, ["c", "a"], statuses.get)
    commit_clips(stage, ["d", "b"], statuses.get, absent)
    return stage


def content(root):
    """Every file but croissant.json, which says more today, and the list that has its digest."""
    by_version = {"croissant.json", "tagmanifest-sha256.txt"}
    return {name: octets for name, octets in bytes_of_files(root).items() if name not in by_version}


WRITTEN_TODAY = [("1.2", 3, group), ("1.3", 4, ragged_group)]
"""Versions of the format of stores, each with the layout of its stage and the function that makes its groups:
with as many frames of each clip, or any number of each."""


@pytest.mark.parametrize(("version", "layout", "make_group"), WRITTEN_TODAY)
def test_clips_staged_today_seal_to_the_bytes_of_the_frozen_store(tmp_path, version, layout, make_group):
    """Stores of the formats 1.2 and 1.3 are kept in the repository as they were when these were new.

    Their clips are staged again; clip "ä" is left out, as nobody did it there. A store has the lowest version
    of the format that can hold its clips: 1.2 if all clips have as many frames, else 1.3. So today's store
    has the same version, and must have the same bytes.
    """
    stage = stage_frozen_clips(tmp_path / "toy.staging", make_group)
    assert json.loads((stage.path / "stage.json").read_bytes())["layout"] == layout
    assert stage.missing() == ["ä"]

    sealed_today = seal_stage_of(tmp_path / "toy", **SEALED)

    assert content(sealed_today) == content(FROZEN / f"format-{version}-1.0.0")


@pytest.mark.parametrize(("version", "layout", "kind"), WRITTEN_TODAY)
def test_a_frozen_stage_resumes_and_seals_to_the_frozen_store(tmp_path, version, layout, kind):
    """A stage that an older release wrote, with clip "ä" still to do, is kept in the repository.

    Today's code goes on with it, and does not begin anew. Sealed without "ä", it is the store of `version` of
    the format that was kept beside it.
    """
    path = shutil.copytree(FROZEN / f"layout-{layout}.staging", tmp_path / "toy.staging")
    stage = read_stage(path)
    assert stage.missing() == ["ä"]

    resumed = Stage.open(path, stage.clips, frozen_groups(kind), stage.corpus)
    assert resumed.missing() == ["ä"]

    sealed_today = seal(resumed.path, tmp_path / "toy", **SEALED)
    assert content(sealed_today) == content(FROZEN / f"format-{version}-1.0.0")


def test_a_stage_of_layout_2_is_refused_in_one_line():
    """Stages of layout 2 are no longer read; the message names the stage."""
    with pytest.raises(StoreError, match=r"layout-2.staging") as caught:
        read_stage(FROZEN / "layout-2.staging")
    assert "\n" not in str(caught.value)
