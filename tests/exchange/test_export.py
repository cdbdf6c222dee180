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


def clips_with_features(store):
    return [clip for clip in store["toy"].clip_ids if status_of(clip) != "failed"]


def test_an_export_to_hdf5_has_a_group_for_each_clip_with_its_arrays(store, tmp_path):
    export_hdf5(store, "toy", tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        for clip in clips_with_features(store):
            planted = features(clip, group())
            for name, values in {**planted.arrays, "time_s": planted.time_s}.items():
                assert file[clip][name][()].tobytes() == values.tobytes()
                assert file[clip][name].dtype == values.dtype
            assert file[clip].attrs["status"] == status_of(clip)
            assert file[clip].attrs["clip"] == clip


def test_an_export_to_hdf5_leaves_failed_clips_out_and_counts_them(store, tmp_path):
    n_written, n_left_out = export_hdf5(store, "toy", tmp_path / "x.h5")
    clips = clips_with_features(store)
    assert n_written == len(clips)
    assert n_left_out == len(store.clips) - len(clips)
    with h5py.File(tmp_path / "x.h5") as file:
        assert set(file) == set(clips)


def test_an_export_to_hdf5_names_its_store_and_provenance(store, tmp_path):
    export_hdf5(store, "toy", tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        assert file.attrs["store_fingerprint"] == store.fingerprint
        assert json.loads(file.attrs["provenance"])["decoder"]["ffmpeg"] == "7.1"


@pytest.mark.parametrize("export", [export_hdf5, export_anndata])
def test_the_same_store_is_exported_to_the_same_bytes(store, tmp_path, export):
    export(store, "toy", tmp_path / "first")
    export(store, "toy", tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_ids_that_are_paths_to_hdf5_are_exported(tmp_path):
    """In HDF5, "/" and "." have a meaning in names.

    Each planted vector has its 1 at the place of its clip.
    """
    ids = ["a/b", "a%2Fb", ".", "..", "a b"]
    arrays = {"toy": {"pooled": np.eye(5, dtype=np.float32)}}  # a one in the place of the clip
    export_hdf5(
        open_store(seal_arrays(tmp_path / "odd", dict.fromkeys(ids, "m"), arrays)), "toy", tmp_path / "x.h5"
    )

    with h5py.File(tmp_path / "x.h5") as file:
        pooled_of = {node.attrs["clip"]: node["pooled"][()] for node in file.values()}

    assert pooled_of.keys() == set(ids)
    for place, clip in enumerate(ids):
        assert pooled_of[clip][place] == 1


@pytest.fixture
def levels(store):
    return {clip.clip_id: f"level of {clip.clip_id}" for clip in store.clips}


@pytest.fixture
def anndata(store, levels, tmp_path):
    """An export to AnnData with the levels of the clips, opened by h5py."""
    export_anndata(store, "toy", tmp_path / "x.h5ad", {"level": levels})
    with h5py.File(tmp_path / "x.h5ad") as file:
        yield file


def test_an_export_to_anndata_has_the_encodings_of_its_format(anndata):
    assert dict(anndata.attrs) == {"encoding-type": "anndata", "encoding-version": "0.1.0"}
    assert sorted(anndata) == ["X", "layers", "obs", "obsm", "obsp", "uns", "var", "varm", "varp"]
    assert all("encoding-type" in node.attrs for node in (*anndata.values(), *anndata["obs"].values()))


def test_an_export_to_anndata_has_a_row_for_each_clip_with_features(store, anndata):
    assert list(anndata["obs/_index"].asstr()) == clips_with_features(store)
    for row, clip in enumerate(clips_with_features(store)):
        assert np.array_equal(anndata["X"][row], features(clip, group()).arrays["pooled"])


def test_an_export_to_anndata_has_what_is_known_of_the_clips(store, anndata, levels):
    columns = ("movie", "status", "reason", "level", "start_s", "end_s")
    assert tuple(anndata["obs"].attrs["column-order"]) == columns
    assert list(anndata["obs/level"].asstr()) == [levels[clip] for clip in clips_with_features(store)]


def test_an_export_to_anndata_counts_the_clips_that_it_leaves_out(store, tmp_path):
    """3 of 20 clips have failed."""
    assert export_anndata(store, "toy", tmp_path / "x.h5ad") == (17, 3)
