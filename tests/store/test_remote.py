"""Reading from servers and zips: the same numbers as from the folder, or one clear error; never NaN."""

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.store import open_store, verify
from obygaze_features.store.files_hub import HubFiles, parse_hub_url

from .hostile_stores import with_checksum
from .serving import serving
from .toy_stores import make_sealed_store, read_all

pytest.importorskip("obstore")


PLACES = ["{url}/toy-1.0.0", "{url}/toy-1.0.0/", "{url}/toy-1.0.0.zip", "{folder}/toy-1.0.0.zip"]
"""A folder and its zip on a server, and the zip where it lies."""


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_a_served_or_zipped_store_reads_as_its_folder(served_folder, server_of_stores, place):
    """The store is opened by its URL, by that of its zip, or as a zip, and compared with its folder."""
    store = open_store(served_folder / "toy-1.0.0")

    remote = open_store(place.format(url=server_of_stores.url, folder=served_folder))

    assert remote.fingerprint == store.fingerprint
    assert remote.name == store.name
    assert remote.version == store.version
    assert remote.names == store.names
    assert remote.clips == store.clips

    group = store["toy"]
    remote_group = remote["toy"]
    assert remote_group.clip_ids == group.clip_ids
    for array in ("pooled", "frames", "tokens"):
        assert np.array_equal(getattr(remote_group, array)(), getattr(group, array)(), equal_nan=True)
        assert np.array_equal(remote_group.read("tt0140-é", array), group.read("tt0140-é", array))
    assert np.array_equal(remote_group.time_s, group.time_s, equal_nan=True)


def test_reading_an_array_of_one_chunk_is_one_request(server_of_stores):
    """The pooled vectors of all clips are one chunk. Opening the store made other requests before."""
    group = open_store(f"{server_of_stores.url}/toy-1.0.0")["toy"]
    server_of_stores.requests.clear()

    group.pooled()

    requested_paths = [path for _, path, _ in server_of_stores.requests]
    assert requested_paths == ["/toy-1.0.0/data/features.zarr/toy/pooled/c/0/0"]


def test_reading_one_clip_fetches_a_part_of_its_shard(server_of_stores):
    """A shard is a file with the tokens of 16 clips, each a part of it, and a table of where the parts are.

    To read one clip, two parts of the file are requested: the table, and then the clip's tokens. The server
    sends fewer bytes than the file has.

    A part of a file has no digest to be compared with. So a third request is for tagmanifest-sha256.txt, a
    small file with the digest of the store's list of digests: it shows that the store is still the one that
    was opened.
    """
    shard = "toy-1.0.0/data/features.zarr/toy/tokens/c/0/0/0"
    group = open_store(f"{server_of_stores.url}/toy-1.0.0")["toy"]
    server_of_stores.requests.clear()
    server_of_stores.n_bytes_sent = 0

    group.read("tt0008-é", "tokens")

    requested_paths = [path for _, path, _ in server_of_stores.requests]
    table_then_tokens = [f"/{shard}", f"/{shard}"]
    assert requested_paths == [*table_then_tokens, "/toy-1.0.0/tagmanifest-sha256.txt"]
    assert server_of_stores.n_bytes_sent < (server_of_stores.root / shard).stat().st_size


def test_a_row_that_a_shard_lacks_is_not_looked_for(tmp_path):
    """Zarr lets a shard lack rows, whose offset and size have all bits set in the index at its end.

    Here the shard of 16 clips lacks the tokens of clip 3. Those of the clips 2, 3 and 4 are asked for in one
    request, which ends where those of clip 4 do: far before the shard.
    """
    folder = make_sealed_store(tmp_path, 20)
    shard = folder / "data/features.zarr/toy/tokens/c/0/0/0"
    data = shard.read_bytes()
    index = bytearray(data[-(16 * 16 + 4) : -4])
    index[3 * 16 : 4 * 16] = b"\xff" * 16
    shard.write_bytes(data[: -(16 * 16 + 4)] + with_checksum(bytes(index)))

    with serving(tmp_path) as server:
        group = open_store(f"{server.url}/{folder.name}")["toy"]
        server.requests.clear()
        tokens = group.rows("tokens", slice(2, 5))

    assert np.isnan(tokens[1]).all()
    assert not np.isnan(tokens[[0, 2]]).any()
    assert np.array_equal(tokens, open_store(folder)["toy"].rows("tokens", slice(2, 5)), equal_nan=True)
    asked_for = [asked_range for _, path, asked_range in server.requests if "tokens" in path]
    _index, span = asked_for
    last_byte = int(span.partition("-")[2])
    assert last_byte < len(data) // 2


def test_clips_of_one_chunk_cost_one_request(server_of_stores):
    """The vectors of all clips lie in one chunk. It is fetched once, also where clips are read one by one."""
    group = open_store(f"{server_of_stores.url}/toy-1.0.0")["toy"]
    ids = [clip for clip, usable in zip(group.clip_ids, group.usable, strict=True) if usable]
    ids_in_falling_order = ids[::-1]
    server_of_stores.requests.clear()

    together = group.read_many(ids_in_falling_order, "pooled")
    one_by_one = np.stack([group.read(clip, "pooled") for clip in ids_in_falling_order])

    assert np.array_equal(together, one_by_one)
    assert len(server_of_stores.requests) <= 2  # one for each way


def test_several_clips_of_which_one_is_unknown_are_not_read(server_of_stores):
    """The store has no clip `none`."""
    group = open_store(f"{server_of_stores.url}/toy-1.0.0")["toy"]
    known_clip = group.clip_ids[0]

    with pytest.raises(StoreError):
        group.read_many([known_clip, "none"], "pooled")


@pytest.mark.parametrize("place", PLACES[1:])
def test_a_served_or_zipped_store_verifies_as_its_folder_at_every_depth(
    served_folder, server_of_stores, place
):
    """The store is verified by its URL, by that of its zip, or as a zip, and as its folder."""
    for depth in ("quick", "digests", "full"):
        local = verify(served_folder / "toy-1.0.0", depth)
        remote = verify(place.format(url=server_of_stores.url, folder=served_folder), depth)
        assert remote.ok, remote.problems
        assert remote.counts == local.counts
        assert remote.fingerprint == local.fingerprint


FIRST_CHUNKS = {
    "pooled": "toy/pooled/c/0/0",
    "frames": "toy/frames/c/0/0/0",
    "tokens": "toy/tokens/c/0/0/0",
    "status": "toy/status/c/0",
    "clip": "toy/clip/c/0",
    "time_s": "toy/time_s/c/0/0",
}


@pytest.mark.parametrize("chunk", FIRST_CHUNKS.values(), ids=FIRST_CHUNKS)
def test_a_chunk_that_the_server_lost_is_an_error_and_found_by_verify(server_of_stores, chunk):
    """Zarr fills missing chunks with NaN, which would look like failed clips."""
    url = f"{server_of_stores.url}/toy-1.0.0"
    server_of_stores.missing_files = {f"/{chunk}"}

    with pytest.raises(StoreError, match=chunk):
        read_all(url)

    assert verify(url, "quick").problems
    assert any(chunk in problem.file for problem in verify(url, "digests").problems)


def test_a_dropped_connection_is_tried_again(served_folder, server_of_stores):
    """The server drops one chunk once and another twice; then the numbers are those of the folder."""
    server_of_stores.n_breaks_left = {"/toy/frames/c/1/0/0": 1, "/toy/pooled/c/0/0": 2}

    served = open_store(f"{server_of_stores.url}/toy-1.0.0")["toy"]
    local = open_store(served_folder / "toy-1.0.0")["toy"]

    assert np.array_equal(served.frames(), local.frames(), equal_nan=True)
    assert np.array_equal(served.pooled(), local.pooled(), equal_nan=True)


@pytest.mark.parametrize(
    ("place", "files"),
    [
        ("lab/films", HubFiles("lab/films", "", "")),
        ("lab/films@v1/", HubFiles("lab/films", "v1", "")),
        ("lab/films@v1/stores/toy-1.0.0", HubFiles("lab/films", "v1", "stores/toy-1.0.0/")),
    ],
    ids=["repository", "revision", "folder"],
)
def test_a_place_on_the_hub_has_a_repository_a_revision_and_a_folder(place, files):
    """A place is OWNER/NAME@REVISION/FOLDER; `HubFiles` has the repository, the revision and the folder."""
    assert parse_hub_url(f"hf://datasets/{place}") == files


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("{url}/nothing", "zarr.json: missing; this is not a whole store, or not at this URL"),
        ("{url}/nothing.zip", "nothing.zip"),
        ("{url}/toy-1.0.0/README.md", "not a whole store"),
        ("http://127.0.0.1:9/toy", "127.0.0.1:9"),
        ("http://me:secret@{host}/toy", "http://127.0.0.1:[0-9]+/toy: this URL also has a user"),
        ("{url}/toy-1.0.0?token=secret", "this URL also has a user, a query"),
        ("http://:secret@{host}/toy", "this URL also has a user"),
        ("hf://models/a/b", "expected hf://datasets/OWNER/NAME"),
        (f"hf://datasets/a/b@{'/a' * 50_000}!", "expected hf://datasets/OWNER/NAME"),
    ],
    ids=[
        *("no folder", "no zip", "a file", "no server"),
        *("a user", "a query", "a password", "no dataset", "a folder of 100,000 letters"),
    ],
)
def test_a_url_without_a_store_is_refused_in_one_line_that_keeps_secrets(server_of_stores, place, message):
    """A user, password or query in a URL may be a secret.

    The message says that there is one, not what it is.
    """
    url = place.format(url=server_of_stores.url, host=server_of_stores.url.removeprefix("http://"))

    with pytest.raises((StoreError, OSError), match=message) as error:
        open_store(url)
    assert "\n" not in str(error.value)
    assert "secret" not in str(error.value)
