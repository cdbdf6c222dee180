"""The sealed group in the hands of zarr-python, xarray and dask: the same numbers, and nothing to write."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import zarr

from obygaze_features.errors import StoreError
from obygaze_features.exchange.publish import pack
from obygaze_features.store import open_store
from obygaze_features.store.format import FEATURES
from obygaze_features.store.testing import seal_arrays
from tests.store.serving import serving

CLIPS = {f"{movie}-{number}": movie for movie in "ab" for number in range(20)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A store of 40 clips, three of which hold no features, in a folder and in a zip beside it."""
    rng = np.random.default_rng(0)
    arrays = {
        "pooled": rng.standard_normal((40, 3), np.float32),
        "frames": rng.standard_normal((40, 2, 3)).astype(np.float16),
        "tokens": rng.standard_normal((40, 5, 7)).astype(np.float16),
    }
    failed = dict.fromkeys(["a-1", "a-2", "b-19"], "no video")
    path = seal_arrays(tmp_path_factory.mktemp("stores") / "s", CLIPS, {"net": arrays}, failed=failed)
    pack(path, path.parent / "s.zip")
    return path


@pytest.fixture(params=["folder", "zip", "url", "zip at a url"])
def store(request, folder):
    """The store, wherever it is."""
    if "url" not in request.param:
        yield open_store(folder if request.param == "folder" else folder.parent / "s.zip")
        return
    with serving(folder.parent) as server:
        yield open_store(f"{server.url}/{folder.name if request.param == 'url' else 's.zip'}")


def test_zarr_reads_every_array_as_groups_do(store):
    """The store has one group, "net". Arrays have a row for each clip, which is NaN if the clip failed."""
    zarr_group = store.to_zarr()
    net = store["net"]
    assert isinstance(zarr_group, zarr.Group)
    assert sorted(zarr_group.group_keys()) == ["net"]

    for name in ("pooled", "frames", "tokens", "time_s"):
        assert np.array_equal(zarr_group[f"net/{name}"][:], net.raw(name), equal_nan=True), name
    assert np.array_equal(zarr_group["net/status"][:], net.raw("status"))
    assert zarr_group["net/clip"][:].tolist() == list(net.clip_ids)

    second_token_of_three_clips = zarr_group["net/tokens"][17:20, 1]
    assert np.array_equal(second_token_of_three_clips, net.tokens()[17:20, 1], equal_nan=True)


def test_xarray_reads_the_zarr_group_of_a_store(store):
    """Xarray is given the store of Zarr, and reads its group "net"."""
    xarray = pytest.importorskip("xarray")
    net = store["net"]

    data = xarray.open_zarr(store.to_zarr().store, group="net", chunks=None)

    assert np.array_equal(data.tokens, net.tokens(), equal_nan=True)
    assert data.pooled.dims == ("clip", "feature")


def test_dask_reads_an_array_of_a_store(folder):
    """Dask computes from Zarr's array `frames` what the group of the store reads; failed clips are NaN."""
    dask_array = pytest.importorskip("dask.array")
    store = open_store(folder)

    lazy = dask_array.from_zarr(store.to_zarr()["net/frames"])

    assert np.array_equal(lazy.compute(), store["net"].frames(), equal_nan=True)


def test_a_zarr_array_of_a_store_can_be_pickled(folder):
    """Dask, and workers of a DataLoader, send arrays to other processes by pickling them."""
    store = open_store(folder)

    unpickled = pickle.loads(pickle.dumps(store.to_zarr()["net/pooled"]))  # noqa: S301 - made here

    assert np.array_equal(unpickled[:], store["net"].pooled(), equal_nan=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda group: group.create_array("more", shape=(1,), dtype="f4"),
        lambda group: group["net/pooled"].__setitem__(0, 1.0),
        lambda group: group.attrs.update(licence="MIT"),
    ],
    ids=["a new array", "a value", "an attribute"],
)
def test_the_zarr_group_of_a_store_cannot_be_changed(folder, change):
    """A sealed store is never written to, also not through Zarr."""
    before = (folder / FEATURES / "zarr.json").read_bytes()
    zarr_group = open_store(folder).to_zarr()

    with pytest.raises((ValueError, StoreError)):
        change(zarr_group)

    assert (folder / FEATURES / "zarr.json").read_bytes() == before


def flip_a_bit(chunk):
    chunk.chmod(0o644)
    data = bytearray(chunk.read_bytes())
    data[3] ^= 1
    chunk.write_bytes(data)


@pytest.mark.parametrize("damage", [Path.unlink, flip_a_bit], ids=["removed", "a flipped bit"])
def test_zarr_raises_an_error_for_a_damaged_chunk(damage, tmp_path):
    """Zarr itself fills missing chunks with NaN, which would look like failed clips."""
    path = seal_arrays(tmp_path / "s", {"a-0": "a"}, {"net": {"pooled": np.ones((1, 4), np.float32)}})
    (chunk,) = [file for file in (path / FEATURES / "net/pooled/c").rglob("*") if file.is_file()]
    array = open_store(path).to_zarr()["net/pooled"]

    damage(chunk)

    with pytest.raises((StoreError, ValueError)):
        array[:]
