"""Stores of every format version there was must keep opening: these bytes are never made again."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.store import PlannedClip, Stage, open_store, read_stage, same_numerics, verify

from .toy_stores import CORPUS, features, group, provenance

FROZEN = Path(__file__).parent / "frozen"


@pytest.mark.parametrize("depth", ["quick", "digests", "full"])
def test_the_store_of_format_1_0_verifies(depth):
    report = verify(FROZEN / "format-1.0-1.0.0", depth)
    assert report.ok, report.problems
    assert report.fingerprint == "71d64bb8a0efcf91d353e1afc31ea9cb36739c0b4d797d605979ec75f06e4233"


def test_the_store_of_format_1_0_reads_as_it_was_written():
    store = open_store(FROZEN / "format-1.0")
    assert store.attributes["spec_version"] == "1.0"
    assert store.attributes["corpus"] == CORPUS
    assert [clip.status for clip in store.clips] == ["ok", "partial", "failed", "missing"]
    assert store.clips[2].reason == "the file is failed"
    found = store["toy"]
    assert found.clip_ids == ("a", "b", "c", "ä")
    assert found.usable.tolist() == [True, True, False, False]
    assert same_numerics(found.provenance, {**provenance(), "storage": found.provenance["storage"]}) == []
    for clip in ("a", "b"):
        for array, values in features(clip, group()).arrays.items():
            assert np.array_equal(found.read(clip, array), values)


def test_the_stage_of_format_1_0_resumes(tmp_path):
    path = shutil.copytree(FROZEN / "format-1.0.staging", tmp_path / "toy.staging")
    for empty in ("journal", "partial"):
        (path / empty).mkdir(exist_ok=True)

    clips = [PlannedClip(clip, "m", 0.0, 2.5) for clip in ("ä", "c", "b", "a")]
    assert Stage.open(path, clips, [group()], CORPUS).missing() == ["ä"]


@pytest.mark.parametrize("depth", ["quick", "digests", "full"])
def test_the_store_of_format_1_1_verifies(depth):
    report = verify(FROZEN / "format-1.1-1.0.0", depth)
    assert report.ok, report.problems
    assert report.fingerprint == "e39f7552d4a2e6ac2c0ae736f36a15937a586ffa15d365f076c39b19dd8f0a6a"


def test_the_store_of_format_1_1_reads_as_it_was_written():
    store = open_store(FROZEN / "format-1.1")
    assert store.attributes["spec_version"] == "1.1"
    assert [clip.status for clip in store.clips] == ["ok", "partial", "failed", "missing"]
    found = store["toy"]
    assert found.clip_ids == ("a", "b", "c", "ä")
    assert found.text == ("a man,\nriding", "a photo of a man", "a photo of a man", "ein Mädchen")
    assert found.pooled()[:2].tolist() == [[1, ord("a")], [1, ord("b")]]


def test_the_stage_of_format_1_1_resumes(tmp_path):
    path = shutil.copytree(FROZEN / "format-1.1.staging", tmp_path / "texts.staging")
    (path / "partial").mkdir(exist_ok=True)
    stage = read_stage(path)
    assert stage.clips[2] == PlannedClip("ä", "", text="ein Mädchen")
    assert Stage.open(path, stage.clips, stage.groups, stage.corpus).missing() == ["ä"]
