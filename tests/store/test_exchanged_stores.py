"""Another store is put at an address while one is open: never its numbers under the clip ids of the first."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.publish import pack
from obygaze_features.store import Group, open_store
from obygaze_features.store.store_files import FolderFiles

from . import toy_stores
from .serving import Handler, serving
from .toy_stores import GROUP_MAKERS, make_sealed_store

N_CLIPS = 40
"""Clips of each store: more than one shard holds, so that tokens come from several."""
NAME_OF_STORE = "toy-1.0.0"
CLIP = "tt0008-é"

READS: dict[str, Callable[[Group], object]] = {
    "pooled": lambda group: group.pooled(),
    "frames": lambda group: group.frames(),
    "tokens": lambda group: group.tokens(),
    "times": lambda group: group.time_s,
    "a clip's pooled vector": lambda group: group.read(CLIP, "pooled"),
    "a clip's tokens": lambda group: group.read(CLIP, "tokens"),
    "several clips' tokens": lambda group: group.read_many([CLIP, "tt0001-é"], "tokens"),
    "blocks of tokens": lambda group: list(group.blocks("tokens")),
    "the table of clips": lambda group: group.digests("pooled"),
}
"""What is read -> how."""


def seal_and_pack(folder: Path, kind: str) -> Path:
    """Seal a store of group `toy` in a folder, and pack its zip beside it; return the folder."""
    store = make_sealed_store(folder, N_CLIPS, [GROUP_MAKERS[kind]()])
    pack(FolderFiles(store), folder / f"{NAME_OF_STORE}.zip")
    return folder


def seal_with_other_numbers(folder: Path, kind: str) -> Path:
    """Seal a store with the same clips, shapes and metadata, all of whose features are greater by 100."""
    planted = toy_stores.planted_features

    def greater_features(clip_id, kind_of_group):
        of_clip = planted(clip_id, kind_of_group)
        for name, values in of_clip.arrays.items():
            of_clip.arrays[name] = values + np.asarray(100, values.dtype)
        of_clip.time_s[:] += 100
        return of_clip

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy_stores, "planted_features", greater_features)
        return seal_and_pack(folder, kind)


class TwoFolders(NamedTuple):
    """Folders, each with a store of the same name, clips and shapes, and its zip; the numbers differ."""

    first: Path
    second: Path


@pytest.fixture(scope="module", params=["fixed", "ragged"])
def two_folders(request, tmp_path_factory):
    """Two folders with stores that only their numbers tell apart."""
    first = seal_and_pack(tmp_path_factory.mktemp("first"), request.param)
    second = seal_with_other_numbers(tmp_path_factory.mktemp("second"), request.param)
    roots = [folder / NAME_OF_STORE / "data/features.zarr/zarr.json" for folder in (first, second)]
    assert roots[0].read_bytes() == roots[1].read_bytes()  # the metadata do not tell them apart
    return TwoFolders(first, second)


@pytest.fixture(params=["obstore", "the standard library"])
def client(request, monkeypatch):
    """Let stores be read by obstore, or, as where it is not installed, by the standard library."""
    if request.param == "obstore":
        pytest.importorskip("obstore")
    else:
        monkeypatch.setattr("obygaze_features.store.files_remote.find_spec", lambda _name: None)


@pytest.fixture
def server_of_first_store(two_folders, client):  # noqa: ARG001
    """A server of the first folder. To exchange the store, its `root` becomes the second folder."""
    with serving(two_folders.first) as server:
        yield server


def put_second_store_at_the_address(server, two_folders):
    """Let a server of the first folder serve the second one, whose store has the same name and address."""
    server.root = two_folders.second


@pytest.mark.parametrize("place", [NAME_OF_STORE, f"{NAME_OF_STORE}.zip"])
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_another_store_at_the_address_is_refused_and_named(server_of_first_store, two_folders, place, read):
    """A store is opened at a server, and then the server has a second store of the same name at the address.

    It has the same shapes, so that its numbers would come silently under the ids of the first. Whatever is
    read (READS), from a folder or a zip, the message is one line, names the address, and says what to do.
    """
    url = f"{server_of_first_store.url}/{place}"
    group = open_store(url)["toy"]
    put_second_store_at_the_address(server_of_first_store, two_folders)

    with pytest.raises(StoreError) as raised:
        read(group)

    message = str(raised.value)
    assert message == (
        f"{url}: the store at this address is another than the one that was opened, or gone: open it again"
    )


def test_a_store_that_is_opened_again_is_read_as_it_is_now(server_of_first_store, two_folders):
    """A server's store is read once. Then the server has another store of the same name at the address.

    Whoever opens the address again reads the other store's numbers, and none that were kept of the first.
    """
    url = f"{server_of_first_store.url}/{NAME_OF_STORE}"
    open_store(url)["toy"].pooled()
    put_second_store_at_the_address(server_of_first_store, two_folders)

    pooled_now = open_store(url)["toy"].pooled()

    pooled_of_first = open_store(two_folders.first / NAME_OF_STORE)["toy"].pooled()
    pooled_of_second = open_store(two_folders.second / NAME_OF_STORE)["toy"].pooled()
    assert np.array_equal(pooled_now, pooled_of_second, equal_nan=True)
    assert not np.array_equal(pooled_now, pooled_of_first, equal_nan=True)


def test_another_store_whose_metadata_differ_is_refused_before_any_group_is_read(
    server_of_first_store, tmp_path
):
    """A store of 40 clips is opened, which reads its metadata; then the server has one of 41 clips.

    To open the group, the list of digests is read, which is that of the new store. The digest of the metadata
    that were read is not in it, so that the exchange is noticed before any number is read.
    """
    store = open_store(f"{server_of_first_store.url}/{NAME_OF_STORE}")
    make_sealed_store(tmp_path, N_CLIPS + 1)
    server_of_first_store.root = tmp_path

    with pytest.raises(StoreError, match="another than the one that was opened"):
        store["toy"]


@pytest.mark.parametrize("place", [NAME_OF_STORE, f"{NAME_OF_STORE}.zip"])
@pytest.mark.parametrize(
    "read", [lambda group: group.rows("pooled"), lambda group: group.rows("tokens")], ids=["pooled", "tokens"]
)
def test_a_smaller_store_at_the_address_is_refused_and_named(server_of_first_store, tmp_path, place, read):
    """The server has a store of 40 clips, as a folder and as a zip; then one of three clips.

    The zip then ends before the bytes that are asked for, and the folder has fewer files. The error says that
    the store is another one.
    """
    url = f"{server_of_first_store.url}/{place}"
    group = open_store(url)["toy"]
    folder_of_three_clips = make_sealed_store(tmp_path, 3)
    pack(FolderFiles(folder_of_three_clips), tmp_path / f"{NAME_OF_STORE}.zip")
    server_of_first_store.root = tmp_path

    with pytest.raises(StoreError, match=f"^{url}: the store at this address is another"):
        read(group)


def test_a_store_that_is_gone_is_an_error_that_names_the_address(server_of_first_store, tmp_path):
    """A store is opened at a server, whose folder then is an empty one. Reading names the address."""
    url = f"{server_of_first_store.url}/{NAME_OF_STORE}"
    group = open_store(url)["toy"]
    server_of_first_store.root = tmp_path

    with pytest.raises(StoreError, match=f"^{url}: .* or gone"):
        group.pooled()


def test_a_store_whose_numbers_are_exchanged_before_its_lists_of_digests_is_refused(
    server_of_first_store, two_folders, tmp_path
):
    """The first store is opened; then a slow copy of the second one over it has brought the numbers alone.

    The lists of digests are still those of the first store, so that the store seems to be the same. But the
    digest of a chunk of the second is not the one in the list: the chunk is refused as damaged.
    """
    served_store = tmp_path / NAME_OF_STORE
    shutil.copytree(two_folders.first / NAME_OF_STORE, served_store)
    server_of_first_store.root = tmp_path
    group = open_store(f"{server_of_first_store.url}/{NAME_OF_STORE}")["toy"]
    folder_of_numbers = "data/features.zarr/toy/pooled"
    shutil.copytree(
        two_folders.second / NAME_OF_STORE / folder_of_numbers,
        served_store / folder_of_numbers,
        dirs_exist_ok=True,
    )

    with pytest.raises(StoreError, match=r"pooled/c/0/0: not as manifest-sha256\.txt lists it"):
        group.pooled()


class ExchangesAfterIndex(Handler):
    """Serves the second store from the moment at which the index of a shard was sent."""

    second: Path

    def do_GET(self):  # noqa: N802
        super().do_GET()
        is_shard = "/tokens/c/" in self.path
        if is_shard:
            self.server.root = self.second


def test_a_store_that_is_exchanged_between_two_requests_of_a_read_is_refused(two_folders):
    """A clip's tokens take two requests: for the index of a shard, and for the clip's row in the shard.

    The server exchanges the first store for the second between them. So it isn't enough to compare the store
    before a read begins: it must be compared once the last byte is there.
    """

    class ExchangesForSecond(ExchangesAfterIndex):
        second = two_folders.second

    with serving(two_folders.first, ExchangesForSecond) as server:
        group = open_store(f"{server.url}/{NAME_OF_STORE}")["toy"]

        with pytest.raises(StoreError, match="another than the one that was opened"):
            group.read(CLIP, "tokens")


@pytest.mark.parametrize("array", ["pooled", "tokens"])
def test_another_store_at_the_address_is_refused_to_whoever_reads_through_zarr_python(
    server_of_first_store, two_folders, array
):
    """`to_zarr` gives libraries such as dask an open store as Zarr arrays; then the server has another store.

    Reading the same array again must not give the other store's numbers.
    """
    zarr_root = open_store(f"{server_of_first_store.url}/{NAME_OF_STORE}").to_zarr()
    numbers_of_first = zarr_root[f"toy/{array}"][:]
    assert len(numbers_of_first)
    put_second_store_at_the_address(server_of_first_store, two_folders)

    with pytest.raises(StoreError, match="another than the one that was opened"):
        zarr_root[f"toy/{array}"][:]


def test_an_open_store_keeps_its_fingerprint(server_of_first_store, two_folders):
    """A store is opened at a server and read; then the server has a second store at the address.

    Results are recorded under the fingerprint of the open store, which must be that of the numbers that were
    read: the fingerprint of the first store.
    """
    store = open_store(f"{server_of_first_store.url}/{NAME_OF_STORE}")
    store["toy"].pooled()
    put_second_store_at_the_address(server_of_first_store, two_folders)

    fingerprint_of_first = open_store(two_folders.first / NAME_OF_STORE).fingerprint
    assert store.fingerprint == fingerprint_of_first


def test_the_version_of_an_open_store_is_refused_if_another_store_is_at_its_address(
    server_of_first_store, two_folders
):
    """A store is opened and read; then the server has another store, and the open one's version is asked for.

    The version is read from the server when it is asked for. Results of the numbers that were read are
    recorded under it: they must not get the version of another store.
    """
    store = open_store(f"{server_of_first_store.url}/{NAME_OF_STORE}")
    store["toy"].pooled()
    put_second_store_at_the_address(server_of_first_store, two_folders)

    with pytest.raises(StoreError, match="another than the one that was opened"):
        _ = store.version


def paths_requested(server):
    return [path.removeprefix(f"/{NAME_OF_STORE}/") for _, path, _ in server.requests]


def test_the_list_of_digests_is_requested_once(server_of_first_store):
    """Opening and reading everything asks for it a single time; it has a line for each file."""
    group = open_store(f"{server_of_first_store.url}/{NAME_OF_STORE}")["toy"]
    for read in (group.pooled, group.frames, group.pooled):
        read()

    assert paths_requested(server_of_first_store).count("manifest-sha256.txt") == 1


def test_checking_a_whole_chunk_against_an_exchange_of_the_store_takes_no_request(server_of_first_store):
    """The array `pooled` is one chunk, read whole: its digest is compared with the list that is kept.

    So the chunk itself is the only file that is asked for.
    """
    group = open_store(f"{server_of_first_store.url}/{NAME_OF_STORE}")["toy"]
    server_of_first_store.requests.clear()

    group.pooled()

    assert paths_requested(server_of_first_store) == ["data/features.zarr/toy/pooled/c/0/0"]


def test_checking_all_tokens_against_an_exchange_of_the_store_takes_one_request(server_of_first_store):
    """Tokens are read as parts of several shards, and a part has no digest in the list of digests.

    So after the last part the server is asked once for tagmanifest-sha256.txt, which names the lists of
    digests: if it is unchanged, the store is the same. It isn't asked for after each shard.
    """
    group = open_store(f"{server_of_first_store.url}/{NAME_OF_STORE}")["toy"]
    server_of_first_store.requests.clear()

    group.tokens()

    n_shards = len({path for path in paths_requested(server_of_first_store) if "/tokens/" in path})
    assert n_shards > 1
    assert paths_requested(server_of_first_store).count("tagmanifest-sha256.txt") == 1
