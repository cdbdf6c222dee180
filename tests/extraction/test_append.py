"""`extract --append`: the next version of a store, with the clips that it lacks."""

import json
import shutil

import pytest
from PIL import Image

from obygaze_features.store import open_store, verify

HEADER = "clip_id,movie,video,start_s,end_s,level,concepts,annotator\n"


@pytest.fixture
def here(tmp_path):
    """Five still images, which are quickly extracted, a manifest of three of them and one of all."""
    for number in range(5):
        Image.new("RGB", (8, 8), (40 * number, 9, 9)).save(tmp_path / f"{number}.png")
    lines = [f"c{number},m,{number}.png,,,,,\n" for number in range(5)]
    (tmp_path / "old.csv").write_text(HEADER + "".join(lines[:3]), encoding="utf-8")
    (tmp_path / "new.csv").write_text(HEADER + "".join(lines), encoding="utf-8")
    return tmp_path


def test_only_the_new_clips_are_extracted_and_licence_and_corpus_are_kept(here, obygaze):
    old = ("extract", "old.csv", "stores/s", "--licence", "CC0-1.0", "--workers", 1)
    assert obygaze(here, *old).returncode == 0
    shutil.rmtree(here / "stores/s.staging")
    again = obygaze(here, *old)
    assert again.returncode == 1
    assert "make its next version: --append stores/s-1.0.0 --store-version 1.1.0" in again.stderr
    new = ("extract", "new.csv", "stores/s", "--workers", 1, "--append", "stores/s-1.0.0")
    refused = obygaze(here, *new)
    assert refused.returncode == 1
    assert "--append stores/s-1.0.0 --store-version 1.1.0" in refused.stderr
    new = (*new, "--store-version", "1.1.0", "--json")
    dry = json.loads(obygaze(here, *new, "--dry-run").stdout)
    assert dry["clips"] == 2
    done = obygaze(here, *new)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["run"]["clips"] == 2
    store = open_store(here / "stores/s")
    assert (store.version, store.attributes["licence"]) == ("1.1.0", "CC0-1.0")
    assert store.attributes["corpus"]["name"] == "old"
    assert verify(store, "full").ok
