"""Stores of every format version there was must keep opening: these bytes are never made again."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.store import Stage, open_store, read_stage, same_numerics, seal, verify

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


@pytest.mark.parametrize("depth", ["quick", "digests", "full"])
def test_the_store_of_format_1_2_verifies(depth):
    report = verify(FROZEN / "format-1.2-1.0.0", depth)
    assert report.ok, report.problems
    assert report.fingerprint == "5f06b7e49c1ae6dc3aa6868e6ab80548828737034420c9e6c41d0cc8548ceee6"


def test_the_store_of_format_1_2_reads_as_it_was_written():
    store = open_store(FROZEN / "format-1.2")
    assert store.attributes["spec_version"] == "1.2"
    assert [clip.status for clip in store.clips] == ["ok", "partial", "failed", "ok", "missing"]
    absent = {clip.clip_id: clip.absent for clip in store.clips if clip.absent}
    assert absent == {"b": {"wave": "the sound track is damaged"}, "d": {"wave": "no sound track"}}
    assert store["toy"].status.tolist() == [1, 2, 3, 1, 0]
    assert store["wave"].status.tolist() == [1, 4, 3, 4, 0]
    for clip, kind in (("a", "toy"), ("b", "toy"), ("d", "toy"), ("a", "wave")):
        arrays = ("pooled", "frames") if kind == "wave" else ("pooled", "frames", "tokens")
        for array, values in features(clip, group(kind, arrays)).arrays.items():
            assert np.array_equal(store[kind].read(clip, array), values)


@pytest.mark.parametrize("name", ["format-1.0", "format-1.1"])
def test_stages_of_the_first_layout_are_refused_in_one_line_that_says_what_to_do(name):
    with pytest.raises(StoreError, match=r"begun by an older obygaze.*: seal it .* or remove it") as caught:
        read_stage(FROZEN / f"{name}.staging")
    assert "\n" not in str(caught.value)


def test_the_stage_of_layout_2_resumes_and_seals_as_the_store_beside_it(tmp_path):
    path = shutil.copytree(FROZEN / "layout-2.staging", tmp_path / "toy.staging")
    stage = read_stage(path)
    assert stage.missing() == ["ä"]
    assert Stage.open(path, stage.clips, stage.groups, stage.corpus).missing() == ["ä"]
    made = seal(None, tmp_path / "toy", licence="MIT", allow_missing=True)
    assert open_store(made).fingerprint == "da2e862f50cde93b31418eb1ff29a6146206caad51efb9f8faa17572c3e0bcfc"
