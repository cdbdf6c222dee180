"""HDF5 is imported bit for bit, or refused by name in little memory: links, cycles and giants among it."""

import json
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from obygaze_features.exchange.export import export_anndata, export_hdf5
from obygaze_features.exchange.import_hdf5 import hdf5_items
from obygaze_features.exchange.import_items import match_to_clips
from obygaze_features.exchange.import_tables import table_items
from obygaze_features.store import PlannedClip, open_store, same_numerics
from obygaze_features.store.format import ARRAYS
from tests.process import python

from ..store.toy_stores import make_sealed_store
from .lab_features import import_store, values_of


@pytest.fixture
def source(tmp_path):
    """A store of 9 clips, some of which have failed."""
    return open_store(make_sealed_store(tmp_path, 9, name="source"))


def import_exported(source, items, texts):
    """Import the items and the texts of a file that was exported from a store."""
    assert texts["backbone"] == "toy"
    clips = [PlannedClip(clip.clip_id, clip.movie, clip.start_s, clip.end_s) for clip in source.clips]
    matched, _ = match_to_clips(items, {clip.clip_id: clip.clip_id for clip in clips})
    known = json.loads(texts["provenance"])
    return import_store(source.path.parent, matched, known=known, clips=clips, allow_missing=True)


def through_hdf5(source):
    """Export a store to HDF5, with all its arrays, and import that."""
    path = source.path.with_name("a.h5")
    export_hdf5(source, "toy", path)
    with hdf5_items(path) as (items, texts):
        return import_exported(source, items, texts)


def through_anndata(source):
    """Export a store to AnnData, with the vectors of its clips, and import that."""
    path = source.path.with_name("a.h5ad")
    export_anndata(source, "toy", path)
    with table_items(path, ids=None) as (items, texts):
        return import_exported(source, items, texts)


MAX_MEMORY_MB = 300


@pytest.mark.parametrize(
    ("export_and_import", "arrays"),
    [(through_hdf5, [*ARRAYS]), (through_anndata, ["pooled"])],
    ids=["HDF5", "AnnData"],
)
def test_an_exported_store_is_imported_again_bit_for_bit_and_marked_as_imported(
    source, export_and_import, arrays
):
    """Features of the group "toy" are exported into a file and come back as the group "lab".

    The digests of both stores agree for each array that the format can hold. In provenance, the mark
    `imported` is new, and how values are stored, which the import decides.
    """
    imported = export_and_import(source)

    for exported_clip, imported_clip in zip(source.clips, imported.clips, strict=True):
        for array in arrays:
            digest = imported_clip.digests.get(f"lab/{array}")
            assert digest == exported_clip.digests.get(f"toy/{array}")
        if exported_clip.status != "failed":
            assert imported_clip.status == exported_clip.status
            assert imported_clip.reason == exported_clip.reason

    provenance_renamed = {**source["toy"].provenance, "name": "lab"}
    fields_that_differ = same_numerics(imported["lab"].provenance, provenance_renamed)
    others_than_storage = [field for field in fields_that_differ if not field.startswith("storage.")]
    assert others_than_storage == ["imported"]


def test_the_one_dataset_of_a_group_is_read_whatever_its_name(tmp_path):
    """Labs give the features of a clip many names; where there is one array, it is meant."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for clip in "abc":
            file[f"m/{clip}/whatever"] = values_of(clip)

    with hdf5_items(tmp_path / "x.h5") as (items, texts):
        assert list(items) == ["m/a", "m/b", "m/c"]
        (values,) = items["m/b"].load().values()
        assert np.array_equal(values, values_of("b"))
        assert texts == {"provenance": "", "backbone": ""}  # the file states none


# --- groups of clips
def cycle(file):
    file.create_group("a/b")
    file["a/b/c"] = file["a"]


def more_paths_than_can_be_walked(file):
    """Six levels of groups with 40 names each for the one group below: 40 ** 6 paths, 4 thousand million."""
    below = file.create_group("0")
    for level in range(6):
        above = file.create_group(f"level {level}")
        for number in range(40):
            above[f"{number}"] = below
        below = above


def soft_link(file):
    file["a/x"] = values_of("a")
    file["b"] = h5py.SoftLink("/a")


def external_link(file):
    file["a/x"] = values_of("a")
    file["b"] = h5py.ExternalLink(other_file_beside(file), "/s")


def external_data(file):
    part = [(other_file_beside(file), 0, h5py.h5f.UNLIMITED)]
    file.create_group("a").create_dataset("x", (16,), np.float32, external=part)


def virtual(file):
    layout = h5py.VirtualLayout((4,), np.float32)
    layout[:] = h5py.VirtualSource(other_file_beside(file), "s/x", (4,))
    file.create_group("a").create_virtual_dataset("x", layout)


def huge(file):
    file.create_group("a").create_dataset("x", (1 << 40,), np.float32, chunks=(1024,))


def one_giant_under_thirty_names(file):
    """A dataset of 512 MB of which no chunk was written, so that it takes no room in the file."""
    n_numbers = 1 << 26  # of eight bytes
    file.create_group("a").create_dataset("0", (n_numbers,), np.float64, chunks=(1 << 20,))
    for number in range(1, 30):
        file[f"a/{number}"] = file["a/0"]


def rewrite(file, change):
    """Change the bytes of a file that is being made."""
    path = Path(file.filename)
    file.close()
    path.write_bytes(change(path.read_bytes()))


def other_file_beside(file):
    """Write another file of features, which no import of the first may read; return its path."""
    path = Path(file.filename).with_name("secret")
    with h5py.File(path, "w") as other:
        other["s/x"] = values_of("s")
        other["s/ids"] = ["a", "b"]
        other["s/codes"] = np.array([0, 1], np.int8)
    return str(path)


# --- one matrix of all clips
def matrix_linked(file):
    file["ids"] = ["a", "b"]
    file["features"] = h5py.ExternalLink(other_file_beside(file), "/s/x")


def ids_linked(file):
    file["features"] = np.ones((2, 4), np.float32)
    file["ids"] = h5py.ExternalLink(other_file_beside(file), "/s/ids")


def rows_huge(file):
    file["ids"] = ["a", "b"]
    file.create_dataset("features", (2, 1 << 30, 1 << 31), np.float64, chunks=(1, 1, 1024))


def ids_all_the_same_long_text(file):
    """Write 4,096 ids that all refer to one text of a megabyte: read, they would take 4 GB."""
    n_ids, one_megabyte = 4096, 1 << 20
    ids = file.create_dataset("ids", (n_ids,), h5py.string_dtype())
    ids[0] = "x" * one_megabyte
    file["features"] = np.ones((n_ids, 4), np.float32)
    reference_size = 16  # length, address and number of a text
    first = ids.id.get_offset()
    end = first + n_ids * reference_size

    def refer_to_the_first_text(data):
        reference = data[first : first + reference_size]
        return data[:first] + reference * n_ids + data[end:]

    rewrite(file, refer_to_the_first_text)


# --- AnnData
def write_anndata(file, index="_index", ids=("a", "b")):
    """Write a matrix of two clips; gives the table of observations, with their ids unless there are none."""
    file["X"] = np.ones((2, 4), np.float32)
    obs = file.create_group("obs")
    obs.attrs["_index"] = index
    if ids:
        obs["_index"] = list(ids)
    return obs


def write_categorical_ids(obs, codes=(0, 1)):
    """Write ids as the places, in the categories a and b, of each row's id; -1: it has none."""
    column = obs.create_group("_index")
    column["categories"] = ["a", "b"]
    if codes:
        column["codes"] = np.array(codes, np.int8)
    return column


def obs_linked(file):
    write_anndata(file)
    del file["obs"]
    file["obs"] = h5py.ExternalLink(other_file_beside(file), "/s")


def codes_huge(file):
    column = write_categorical_ids(write_anndata(file, ids=()), codes=())
    column.create_dataset("codes", (1 << 40,), np.int8, chunks=(1024,))


def codes_beyond_the_categories(file):
    write_categorical_ids(write_anndata(file, ids=()), codes=(0, 2))


def text_of_two_gigabytes(file):
    write_anndata(file)
    file.create_dataset("uns/provenance", (), h5py.string_dtype(length=(1 << 31) - 1))


def matrix_sparse(file):
    write_anndata(file)
    del file["X"]
    matrix = file.create_group("X")
    matrix.attrs["encoding-type"] = "csr_matrix"
    for name in ("data", "indices", "indptr"):
        matrix[name] = np.zeros(3, np.int32)


def matrix_a_type(file):
    """Write AnnData in which X is no matrix, but a type of numbers to which a name was given."""
    write_anndata(file)
    del file["X"]
    file["X"] = np.dtype(np.float32)


HOSTILE_HDF5 = [cycle, more_paths_than_can_be_walked, soft_link, external_link, external_data, virtual, huge]
HOSTILE_HDF5 += [
    one_giant_under_thirty_names,
    matrix_linked,
    ids_linked,
    rows_huge,
    ids_all_the_same_long_text,
]
HOSTILE_ANNDATA = [obs_linked, codes_huge, codes_beyond_the_categories, text_of_two_gigabytes]
HOSTILE_ANNDATA += [matrix_sparse, matrix_a_type]

READ_IN_LITTLE_MEMORY = """
import json, resource, sys
from pathlib import Path
from obygaze_features.exchange.import_hdf5 import hdf5_items
from obygaze_features.exchange.import_items import end_worker
from obygaze_features.exchange.import_tables import table_items

def memory(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) << 10

resource.setrlimit(resource.RLIMIT_CPU, (300, 300))
limit = memory("VmSize") + (2 << 30)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
results = []
for name in sys.argv[1:]:
    path = Path(name)
    for reader, open_items in (("hdf5", hdf5_items), ("table", lambda path: table_items(path, None))):
        try:
            with open_items(path) as (items, _):
                for item in items.values():
                    item.load()
            said = "read"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        results.append([path.stem, reader, said])
end_worker()
own_peak_mb = memory("VmHWM") >> 20
peak_of_children_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
print(json.dumps({"results": results, "peak_mb": max(own_peak_mb, peak_of_children_mb)}))
"""
"""Read each file by both readers; print [name, reader, what was said] of each and the most memory used."""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_hdf5_readers_refuse_links_cycles_and_giants_in_little_memory(tmp_path):
    """Each hostile file could read a file beside it, run for ever, or fill the memory.

    Two readers, that of HDF5 and that of tables, refuse each file by name, and none takes more than 300 MB.
    """
    paths = []
    for makers, suffix in ((HOSTILE_HDF5, "h5"), (HOSTILE_ANNDATA, "h5ad")):
        for make in makers:
            path = tmp_path / f"{make.__name__}.{suffix}"
            with h5py.File(path, "w") as file:
                make(file)
            paths.append(path)

    document = json.loads(python("-c", READ_IN_LITTLE_MEMORY, *paths).stdout)
    n_readers = 2
    assert len(document["results"]) == n_readers * len(paths)
    for name, reader, said in document["results"]:
        assert said.startswith("StoreError: "), (name, reader)
        assert name in said
    assert document["peak_mb"] < MAX_MEMORY_MB


def test_categorical_ids_are_read_and_a_missing_one_is_empty(tmp_path):
    """AnnData may write ids as places in a list of categories, here a and b; -1 means that there is none.

    The first of two rows has the id in place 1, which is b, and the second has none.
    """
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        obs = write_anndata(file, ids=())
        write_categorical_ids(obs, codes=(1, -1))

    with table_items(tmp_path / "x.h5ad", ids=None) as (items, _):
        assert list(items) == ["b", ""]
