"""What leaves a store is what was in it, and other programs can read it."""

import errno
import json

import h5py
import numpy as np
import pytest

from obygaze_features.exchange import export
from obygaze_features.exchange.export import export_anndata, export_hdf5
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store import open_store
from obygaze_features.store.format import TIME_ARRAYS
from obygaze_features.store.group import rows_of
from obygaze_features.store.testing import seal_arrays
from tests.command import obygaze

from ..store.toy_stores import group, make_sealed_store, planted_features, status_of


@pytest.fixture
def store(tmp_path):
    return open_store(make_sealed_store(tmp_path, 20))


def clips_with_features(store):
    return [clip for clip in store["toy"].clip_ids if status_of(clip) != "failed"]


def test_an_export_to_hdf5_has_a_group_for_each_clip_with_features(store, tmp_path):
    """Of 20 clips in a store, 17 have features and 3 have failed.

    The file has a group of HDF5, which is like a folder of arrays, for each of the 17, with the planted
    features and what is known of the clip.
    """
    n_written, n_left_out = export_hdf5(store, "toy", tmp_path / "x.h5")

    assert n_written == 17
    assert n_left_out == 3
    with h5py.File(tmp_path / "x.h5") as file:
        assert set(file) == set(clips_with_features(store))
        for clip, group_of_clip in file.items():
            planted = planted_features(clip, group())
            planted_arrays = {**planted.arrays, "time_s": planted.time_s}
            for name, values in planted_arrays.items():
                assert group_of_clip[name][()].tobytes() == values.tobytes()
                assert group_of_clip[name].dtype == values.dtype
            assert group_of_clip.attrs["status"] == status_of(clip)
            assert group_of_clip.attrs["clip"] == clip


@pytest.mark.parametrize("export_store", [export_hdf5, export_anndata])
def test_a_full_disk_ends_an_export_at_once(tmp_path, monkeypatch, export_store):
    """The disk is full from the first byte on: of 200 clips in a store no more than the first is read.

    HDF5 is not told of it, since it might crash; it would go on for all clips of a large store.
    """
    n_rows_read = 0

    def counted_rows(*arguments):
        nonlocal n_rows_read
        for row in rows_of(*arguments):
            n_rows_read += 1
            yield row

    def fail_as_on_a_full_disk(_file, _data):
        raise OSError(errno.ENOSPC, "No space left on device")

    store = open_store(make_sealed_store(tmp_path, 200))
    monkeypatch.setattr(export, "write_all", fail_as_on_a_full_disk)
    monkeypatch.setattr(export, "rows_of", counted_rows)

    with pytest.raises(OSError, match="No space left on device"):
        export_store(store, "toy", tmp_path / "x.h5")

    n_arrays_of_a_clip = len([*store["toy"].arrays, *TIME_ARRAYS])
    assert n_rows_read <= n_arrays_of_a_clip
    assert not (tmp_path / "x.h5").exists()


def test_an_export_to_hdf5_names_its_store_and_has_the_provenance_of_the_features(store, tmp_path):
    """By the provenance in the store, FFmpeg 7.1 decoded the clips."""
    export_hdf5(store, "toy", tmp_path / "x.h5")

    with h5py.File(tmp_path / "x.h5") as file:
        assert file.attrs["store_fingerprint"] == store.fingerprint
        provenance = json.loads(file.attrs["provenance"])
    assert provenance["decoder"]["ffmpeg"] == "7.1"


@pytest.mark.parametrize("export", [export_hdf5, export_anndata])
def test_the_same_store_is_exported_to_the_same_bytes(store, tmp_path, export):
    """A store is exported twice, to HDF5 or AnnData: both files have the same bytes.

    So neither holds the time at which it was written, and digests of exports can be compared.
    """
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
    """An AnnData file has a matrix X, whose rows are clips here, and a table `obs` of what is known of them.

    Of 20 clips in a store, 17 have features and 3 have failed. A column of levels is added to the table.
    """
    level_of_clip = {clip.clip_id: f"level of {clip.clip_id}" for clip in store.clips}

    n_written, n_left_out = export_anndata(store, "toy", tmp_path / "x.h5ad", {"level": level_of_clip})

    assert n_written == 17
    assert n_left_out == 3
    with h5py.File(tmp_path / "x.h5ad") as file:
        clips = clips_with_features(store)
        assert list(file["obs/_index"].asstr()) == clips
        for row, clip in enumerate(clips):
            planted = planted_features(clip, group())
            assert np.array_equal(file["X"][row], planted.arrays["pooled"])

        columns = ("movie", "status", "reason", "level", "start_s", "end_s")
        assert tuple(file["obs"].attrs["column-order"]) == columns
        assert list(file["obs/level"].asstr()) == [level_of_clip[clip] for clip in clips]


def test_an_export_to_anndata_has_all_parts_of_the_format_each_with_its_kind(store, tmp_path):
    """Programs that read AnnData need all parts of a file, empty ones too, and `encoding-type` of each."""
    export_anndata(store, "toy", tmp_path / "x.h5ad")

    with h5py.File(tmp_path / "x.h5ad") as file:
        assert dict(file.attrs) == {"encoding-type": "anndata", "encoding-version": "0.1.0"}
        assert sorted(file) == ["X", "layers", "obs", "obsm", "obsp", "uns", "var", "varm", "varp"]
        for part in (*file.values(), *file["obs"].values()):
            assert "encoding-type" in part.attrs, part.name


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
