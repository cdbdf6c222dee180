"""What leaves a store is what was in it, and other programs can read it."""

import json

import h5py
import numpy as np
import pytest

from obygaze_features.exchange.export import export_anndata, export_hdf5
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from tests.command import obygaze

from ..store.toy_stores import features, group, make_sealed_store, status_of


@pytest.fixture
def store(tmp_path):
    return open_store(make_sealed_store(tmp_path, 20))


def clips_with_features(store):
    return [clip for clip in store["toy"].clip_ids if status_of(clip) != "failed"]


def test_an_export_to_hdf5_has_a_group_for_each_clip_with_features(store, tmp_path):
    """Of 20 clips, 17 have features and 3 have failed. Arrays are compared with the planted features.

    The file also names its store, and has the provenance, in which FFmpeg 7.1 decoded the clips.
    """
    n_written, n_left_out = export_hdf5(store, "toy", tmp_path / "x.h5")
    assert n_written == 17
    assert n_left_out == 3

    with h5py.File(tmp_path / "x.h5") as file:
        assert set(file) == set(clips_with_features(store))
        for clip, node in file.items():
            planted = features(clip, group())
            planted_arrays = {**planted.arrays, "time_s": planted.time_s}
            for name, values in planted_arrays.items():
                assert node[name][()].tobytes() == values.tobytes()
                assert node[name].dtype == values.dtype
            assert node.attrs["status"] == status_of(clip)
            assert node.attrs["clip"] == clip

        assert file.attrs["store_fingerprint"] == store.fingerprint
        assert json.loads(file.attrs["provenance"])["decoder"]["ffmpeg"] == "7.1"


@pytest.mark.parametrize("export", [export_hdf5, export_anndata])
def test_the_same_store_is_exported_to_the_same_bytes(store, tmp_path, export):
    """So no file holds the time at which it was written, and digests of two exports can be compared."""
    export(store, "toy", tmp_path / "first")
    export(store, "toy", tmp_path / "second")

    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_ids_that_are_paths_to_hdf5_are_exported(tmp_path):
    """In HDF5, "/" and "." have a meaning in names. The vector of clip number n is [n, n]."""
    ids = ["a/b", "a%2Fb", ".", "..", "a b"]
    vectors = np.array([[0, 0], [1, 1], [2, 2], [3, 3], [4, 4]], np.float32)
    path = seal_arrays(tmp_path / "odd", dict.fromkeys(ids, "m"), {"toy": {"pooled": vectors}})

    export_hdf5(open_store(path), "toy", tmp_path / "x.h5")

    with h5py.File(tmp_path / "x.h5") as file:
        vector_of = {node.attrs["clip"]: node["pooled"][()].tolist() for node in file.values()}

    assert vector_of == {"a/b": [0, 0], "a%2Fb": [1, 1], ".": [2, 2], "..": [3, 3], "a b": [4, 4]}


def test_an_export_to_anndata_has_a_row_for_each_clip_with_features_and_what_is_known_of_it(store, tmp_path):
    """Of 20 clips, 17 have features and 3 have failed.

    An AnnData file has a matrix X, with rows of clips here, and a table `obs` of what is known of each row;
    each of its parts says in `encoding-type` what it is. A column of levels is added to the table.
    """
    levels = {clip.clip_id: f"level of {clip.clip_id}" for clip in store.clips}

    n_written, n_left_out = export_anndata(store, "toy", tmp_path / "x.h5ad", {"level": levels})

    assert n_written == 17
    assert n_left_out == 3
    with h5py.File(tmp_path / "x.h5ad") as file:
        assert dict(file.attrs) == {"encoding-type": "anndata", "encoding-version": "0.1.0"}
        assert sorted(file) == ["X", "layers", "obs", "obsm", "obsp", "uns", "var", "varm", "varp"]
        assert all("encoding-type" in node.attrs for node in (*file.values(), *file["obs"].values()))

        clips = clips_with_features(store)
        assert list(file["obs/_index"].asstr()) == clips
        for row, clip in enumerate(clips):
            planted = features(clip, group())
            assert np.array_equal(file["X"][row], planted.arrays["pooled"])

        columns = ("movie", "status", "reason", "level", "start_s", "end_s")
        assert tuple(file["obs"].attrs["column-order"]) == columns
        assert list(file["obs/level"].asstr()) == [levels[clip] for clip in clips]


def test_labels_are_missed_only_of_clips_that_are_exported(tmp_path, capsys):
    """The manifest lacks b, which is exported, and c, which failed and is left out in any case."""
    vectors = {"net": {"pooled": np.ones((3, 2), np.float32)}}
    movie_of = dict.fromkeys("abc", "m")
    store = seal_arrays(tmp_path / "films", movie_of, vectors, failed={"c": "cut off"})
    manifest = tmp_path / "films.csv"
    write_manifest(Manifest((Clip("a", "m"),), tmp_path), manifest)

    assert obygaze("store", "export", store, tmp_path / "x.h5", "--to", "hdf5", "--manifest", manifest) == 0

    printed = capsys.readouterr()
    assert "no labels for 1 clip:" in printed.err
    assert "2 clips of net; 1 without features left out" in printed.out
