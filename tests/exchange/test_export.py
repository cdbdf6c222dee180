"""What leaves a store is what was in it, and other programs can read it."""

import json

import h5py
import numpy as np
import pytest

from obygaze_features.exchange.export import export_anndata, export_hdf5
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays

from ..store.toy_stores import features, group, sealed, status_of


@pytest.fixture
def store(tmp_path):
    return open_store(sealed(tmp_path, 20))


def test_hdf5_has_a_group_a_clip_with_every_array(store, tmp_path):
    assert export_hdf5(store, "toy", tmp_path / "x.h5") == (17, 3)
    with h5py.File(tmp_path / "x.h5") as file:
        assert len(file) == 17
        for clip in store["toy"].clip_ids:
            if status_of(clip) == "failed":
                assert clip not in file
                continue
            truth = features(clip, group())
            for name, values in {**truth.arrays, "time_s": truth.time_s}.items():
                assert file[clip][name][()].tobytes() == values.tobytes()
                assert file[clip][name].dtype == values.dtype
            assert file[clip].attrs["status"] == status_of(clip)
            assert file[clip].attrs["clip"] == clip
        assert file.attrs["store_fingerprint"] == store.fingerprint
        assert json.loads(file.attrs["provenance"])["decoder"]["ffmpeg"] == "7.1"


def test_the_same_store_gives_the_same_bytes(store, tmp_path):
    for name, export in (("h5", export_hdf5), ("h5ad", export_anndata)):
        export(store, "toy", tmp_path / f"a.{name}")
        export(store, "toy", tmp_path / f"b.{name}")
        assert (tmp_path / f"a.{name}").read_bytes() == (tmp_path / f"b.{name}").read_bytes()


def test_ids_that_mean_something_to_hdf5_survive(tmp_path):
    ids = ["a/b", "a%2Fb", ".", "..", "a b"]
    path = seal_arrays(
        tmp_path / "odd", dict.fromkeys(ids, "m"), {"toy": {"pooled": np.eye(5, dtype=np.float32)}}
    )
    export_hdf5(open_store(path), "toy", tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        pooled_of = {node.attrs["clip"]: node["pooled"][()] for node in file.values()}
    assert pooled_of.keys() == set(ids)
    for position, clip in enumerate(ids):
        assert pooled_of[clip][position] == 1


def test_anndata_has_the_encodings_of_its_format(store, tmp_path):
    levels = {clip.clip_id: f"level of {clip.clip_id}" for clip in store.clips}
    assert export_anndata(store, "toy", tmp_path / "x.h5ad", {"level": levels}) == (17, 3)
    usable = [clip for clip in store["toy"].clip_ids if status_of(clip) != "failed"]
    with h5py.File(tmp_path / "x.h5ad") as file:
        assert dict(file.attrs) == {"encoding-type": "anndata", "encoding-version": "0.1.0"}
        assert sorted(file) == ["X", "layers", "obs", "obsm", "obsp", "uns", "var", "varm", "varp"]
        assert list(file["obs/_index"].asstr()) == usable
        columns = ("movie", "status", "reason", "level", "start_s", "end_s")
        assert tuple(file["obs"].attrs["column-order"]) == columns
        assert list(file["obs/level"].asstr()) == [levels[clip] for clip in usable]
        assert all("encoding-type" in node.attrs for node in (*file.values(), *file["obs"].values()))
        for row, clip in enumerate(usable):
            assert np.array_equal(file["X"][row], features(clip, group()).arrays["pooled"])
