"""Reading from servers and zips: the same numbers as from the folder, or one clear error; never NaN."""

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.store import open_store, verify
from obygaze_features.store.files_hub import HubFiles, parse_hub_url

from .toy_stores import read_all

pytest.importorskip("obstore")


PLACES = ["{url}/toy-1.0.0", "{url}/toy-1.0.0/", "{url}/toy-1.0.0.zip", "{root}/toy-1.0.0.zip"]
"""A folder and its zip on a server, and the zip where it lies."""


@pytest.mark.parametrize("place", PLACES)
def test_a_store_reads_as_its_folder_does_and_has_its_fingerprint(root, site, place):
    store = open_store(root / "toy-1.0.0")
    remote = open_store(place.format(url=site.url, root=root))
    assert remote.fingerprint == store.fingerprint
    assert (remote.name, remote.version, remote.names) == (store.name, store.version, store.names)
    assert remote.clips == store.clips
    group = store["toy"]
    two = remote["toy"]
    assert two.clip_ids == group.clip_ids
    for array in ("pooled", "frames", "tokens"):
        assert np.array_equal(getattr(two, array)(), getattr(group, array)(), equal_nan=True)
        assert np.array_equal(two.read("tt0140-é", array), group.read("tt0140-é", array))
    assert np.array_equal(two.time_s, group.time_s, equal_nan=True)


def test_only_what_is_asked_for_is_sent(site):
    group = open_store(f"{site.url}/toy-1.0.0")["toy"]
    site.asked.clear()
    group.pooled()
    assert [path for _, path, _ in site.asked] == ["/toy-1.0.0/data/features.zarr/toy/pooled/c/0/0"]
    site.asked.clear()
    site.sent = 0
    group.read("tt0008-é", "tokens")
    assert {path for _, path, _ in site.asked} == {"/toy-1.0.0/data/features.zarr/toy/tokens/c/0/0/0"}
    assert site.sent < (site.root / "toy-1.0.0/data/features.zarr/toy/tokens/c/0/0/0").stat().st_size


def test_rows_cost_as_many_requests_as_blocks_however_they_are_read(site):
    group = open_store(f"{site.url}/toy-1.0.0")["toy"]
    ids = [clip for clip, usable in zip(group.clip_ids, group.usable, strict=True) if usable]
    site.asked.clear()
    many = group.read_many(ids[::-1], "pooled")
    one_by_one = np.stack([group.read(clip, "pooled") for clip in ids[::-1]])
    assert np.array_equal(many, one_by_one)
    # One for all clips at once, and one for all of them one by one.
    assert len(site.asked) <= 2
    with pytest.raises(StoreError):
        group.read_many([*ids, "none"], "pooled")


@pytest.mark.parametrize("place", PLACES[1:])
@pytest.mark.parametrize("depth", ["quick", "digests", "full"])
def test_a_store_verifies(root, site, place, depth):
    local = verify(root / "toy-1.0.0", depth)
    remote = verify(place.format(url=site.url, root=root), depth)
    assert remote.ok, remote.problems
    assert (remote.counts, remote.fingerprint) == (local.counts, local.fingerprint)


@pytest.mark.parametrize("array", ["pooled", "frames", "tokens", "status", "clip", "time_s"])
def test_a_chunk_that_the_server_lost_is_an_error_never_nan(site, array):
    read_all(f"{site.url}/toy-1.0.0")
    site.lost = {
        f"/toy/{array}/c/0" + "/0" * {"frames": 2, "tokens": 2, "status": 0, "clip": 0}.get(array, 1)
    }
    with pytest.raises(StoreError, match=f"toy/{array}/c/0"):
        read_all(f"{site.url}/toy-1.0.0")
    for depth in ("quick", "digests"):
        problems = verify(f"{site.url}/toy-1.0.0", depth).problems
        assert any(f"toy/{array}/c/0" in problem.file for problem in problems) or depth == "quick"
        assert problems


def test_a_dropped_connection_is_tried_again(root, site):
    site.drops = {"/toy/frames/c/1/0/0": 1, "/toy/pooled/c/0/0": 2}
    group = open_store(f"{site.url}/toy-1.0.0")["toy"]
    same = open_store(root / "toy-1.0.0")["toy"]
    assert np.array_equal(group.frames(), same.frames(), equal_nan=True)
    assert np.array_equal(group.pooled(), same.pooled(), equal_nan=True)


def test_a_place_on_the_hub_has_a_repository_a_revision_and_a_folder():
    for place, files in {
        "lab/films": HubFiles("lab/films", "", ""),
        "lab/films@v1/": HubFiles("lab/films", "v1", ""),
        "lab/films@v1/stores/toy-1.0.0": HubFiles("lab/films", "v1", "stores/toy-1.0.0/"),
    }.items():
        assert parse_hub_url(f"hf://datasets/{place}") == files


def test_what_is_not_there_or_cannot_be_is_one_clear_line(site):
    for place, message in (
        (f"{site.url}/nothing", "zarr.json: missing; this is not a whole store, or not at this URL"),
        (f"{site.url}/nothing.zip", "nothing.zip"),
        (f"{site.url}/toy-1.0.0/README.md", "not a whole store"),
        ("http://127.0.0.1:9/toy", "127.0.0.1:9"),
        (f"http://me:secret@127.0.0.1{site.url[16:]}/toy", "this URL also has a user"),
        (f"{site.url}/toy-1.0.0?token=secret", "this URL also has a user, a query"),
        (f"http://:secret@127.0.0.1{site.url[16:]}/toy", "this URL also has a user"),
        ("hf://models/a/b", "expected hf://datasets/OWNER/NAME"),
        (f"hf://datasets/a/b@{'/a' * 50_000}!", "expected hf://datasets/OWNER/NAME"),
    ):
        with pytest.raises((StoreError, OSError), match=message) as error:
            open_store(place)
        assert "\n" not in str(error.value)
        assert "secret" not in str(error.value)
