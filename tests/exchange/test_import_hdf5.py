"""HDF5 comes in bit for bit, or is refused by name in little memory: links, cycles and giants among it."""

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

from ..store.toy_stores import sealed
from .lab_features import imported, row

MOST_MB = 300


@pytest.mark.parametrize(
    ("name", "export", "read", "kept"),
    [
        ("a.h5", export_hdf5, hdf5_items, [*ARRAYS]),
        ("a.h5ad", export_anndata, lambda path: table_items(path, None), ["pooled"]),
    ],
)
def test_an_exported_store_comes_back_bit_for_bit_but_marked(tmp_path, name, export, read, kept):
    source = open_store(sealed(tmp_path, 9, name="source"))
    export(source, "toy", tmp_path / name)
    clips = [PlannedClip(clip.clip_id, clip.movie, clip.start_s, clip.end_s) for clip in source.clips]
    with read(tmp_path / name) as (items, texts):
        matched, _ = match_to_clips(items, {clip.clip_id: clip.clip_id for clip in clips})
        declared = json.loads(texts["provenance"])
        store = imported(tmp_path, matched, known=declared, clips=clips, allow_missing=True)
    assert texts["backbone"] == "toy"
    assert 0 < len(matched) == sum(clip.status != "failed" for clip in source.clips)
    for ours, theirs in zip(store.clips, source.clips, strict=True):
        for array in kept:
            assert ours.digests.get(f"lab/{array}") == theirs.digests.get(f"toy/{array}")
        if theirs.digests:
            assert (ours.status, ours.reason) == (theirs.status, theirs.reason)
    provenances = store["lab"].provenance, {**source["toy"].provenance, "name": "lab"}
    assert [field for field in same_numerics(*provenances) if not field.startswith("storage.")] == [
        "imported"
    ]


def test_the_one_dataset_of_a_group_is_read_whatever_its_name(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for clip in "abc":
            file[f"m/{clip}/whatever"] = row(clip)
    with hdf5_items(tmp_path / "x.h5") as (items, texts):
        assert list(items) == ["m/a", "m/b", "m/c"]
        assert texts == {"provenance": "", "backbone": ""}
        store = imported(tmp_path, match_to_clips(items, {clip: clip for clip in "abc"})[0])
    assert np.array_equal(store["lab"].read("b", "pooled"), row("b"))


# --- groups of clips
# ---------------------------------------------------------------------------
def cycle(file):
    file.create_group("a/b")
    file["a/b/c"] = file["a"]


def more_paths_than_can_be_walked(file):
    below = file.create_group("0")
    for level in range(6):
        above = file.create_group(f"level {level}")
        for number in range(40):
            above[f"{number}"] = below
        below = above


def soft_link(file):
    file["a/x"] = row("a")
    file["b"] = h5py.SoftLink("/a")


def external_link(file):
    file["a/x"] = row("a")
    file["b"] = h5py.ExternalLink(secret(file), "/s")


def external_data(file):
    part = [(secret(file), 0, h5py.h5f.UNLIMITED)]
    file.create_group("a").create_dataset("x", (16,), np.float32, external=part)


def virtual(file):
    layout = h5py.VirtualLayout((4,), np.float32)
    layout[:] = h5py.VirtualSource(secret(file), "s/x", (4,))
    file.create_group("a").create_virtual_dataset("x", layout)


def huge(file):
    file.create_group("a").create_dataset("x", (1 << 40,), np.float32, chunks=(1024,))


def one_giant_under_thirty_names(file):
    """512 MB of fill value, which no byte of the file holds."""
    file.create_group("a").create_dataset("0", (1 << 26,), np.float64, chunks=(1 << 20,))
    for number in range(1, 30):
        file[f"a/{number}"] = file["a/0"]


def rewrite(file, change):
    """Change the bytes of a file that is being made."""
    path = Path(file.filename)
    file.close()
    path.write_bytes(change(path.read_bytes()))


def secret(file):
    """Give the name of another file beside, with features in it."""
    path = Path(file.filename).with_name("secret")
    with h5py.File(path, "w") as other:
        other["s/x"] = row("s")
        other["s/ids"] = ["a", "b"]
        other["s/codes"] = np.array([0, 1], np.int8)
    return str(path)


# --- one matrix of all clips
# ---------------------------------------------------------------------------
def matrix_linked(file):
    file["ids"] = ["a", "b"]
    file["features"] = h5py.ExternalLink(secret(file), "/s/x")


def ids_linked(file):
    file["features"] = np.ones((2, 4), np.float32)
    file["ids"] = h5py.ExternalLink(secret(file), "/s/ids")


def rows_huge(file):
    file["ids"] = ["a", "b"]
    file.create_dataset("features", (2, 1 << 30, 1 << 31), np.float64, chunks=(1, 1, 1024))


def ids_all_the_same_long_text(file):
    """4,096 references to one text of a megabyte: more in memory than thousands of such files."""
    ids = file.create_dataset("ids", (4096,), h5py.string_dtype())
    ids[0] = "x" * (1 << 20)
    file["features"] = np.ones((4096, 4), np.float32)
    begin = ids.id.get_offset()
    end = begin + 16 * 4096
    rewrite(file, lambda data: data[:begin] + data[begin : begin + 16] * 4096 + data[end:])


# --- AnnData
# ---------------------------------------------------------------------------
def anndata(file, index="_index", ids=("a", "b")):
    file["X"] = np.ones((2, 4), np.float32)
    obs = file.create_group("obs")
    obs.attrs["_index"] = index
    if ids:
        obs["_index"] = list(ids)
    return obs


def categories(obs, codes=(0, 1)):
    column = obs.create_group("_index")
    column["categories"] = ["a", "b"]
    if codes:
        column["codes"] = np.array(codes, np.int8)
    return column


def obs_linked(file):
    anndata(file)
    del file["obs"]
    file["obs"] = h5py.ExternalLink(secret(file), "/s")


def codes_huge(file):
    categories(anndata(file, ids=()), ()).create_dataset("codes", (1 << 40,), np.int8, chunks=(1024,))


def codes_beyond_the_categories(file):
    categories(anndata(file, ids=()), (0, 2))


def text_of_two_gigabytes(file):
    anndata(file)
    file.create_dataset("uns/provenance", (), h5py.string_dtype(length=(1 << 31) - 1))


def matrix_sparse(file):
    anndata(file)
    del file["X"]
    matrix = file.create_group("X")
    matrix.attrs["encoding-type"] = "csr_matrix"
    for name in ("data", "indices", "indptr"):
        matrix[name] = np.zeros(3, np.int32)


def matrix_a_type(file):
    anndata(file)
    del file["X"]
    file["X"] = np.dtype(np.float32)


HDF5 = [cycle, more_paths_than_can_be_walked, soft_link, external_link, external_data, virtual, huge]
HDF5 += [one_giant_under_thirty_names, matrix_linked, ids_linked, rows_huge, ids_all_the_same_long_text]
ANNDATA = [obs_linked, codes_huge, codes_beyond_the_categories, text_of_two_gigabytes]
ANNDATA += [matrix_sparse, matrix_a_type]

READERS = """
import json, resource, sys
from pathlib import Path
from obygaze_features.exchange.import_hdf5 import hdf5_items
from obygaze_features.exchange.import_items import end_worker
from obygaze_features.exchange.import_tables import table_items

def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) << 10

resource.setrlimit(resource.RLIMIT_CPU, (300, 300))
limit = memory("VmSize") + (2 << 30)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for name in sys.argv[1:]:
    path = Path(name)
    for reader, words in {"hdf5": (hdf5_items,), "table": (table_items, None)}.items():
        try:
            with words[0](path, *words[1:]) as (found, _):
                for item in found.values():
                    item.load()
            said = "read"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        print(json.dumps([path.stem, reader, said]))
end_worker()
print(json.dumps([memory("VmHWM") >> 20, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_every_reader_of_hdf5_refuses_links_cycles_and_giants_in_little_memory(tmp_path):
    paths = []
    for makers, suffix in ((HDF5, "h5"), (ANNDATA, "h5ad")):
        for make in makers:
            paths.append(tmp_path / f"{make.__name__}.{suffix}")
            with h5py.File(paths[-1], "w") as file:
                make(file)
    process = python("-c", READERS, *paths)
    *lines, peaks = map(json.loads, process.stdout.splitlines())
    assert len(lines) == 2 * len(paths)
    for name, reader, text in lines:
        assert text.startswith("StoreError: "), (name, reader)
        assert name in text
    assert max(peaks) < MOST_MB  # of this process, and of the largest that read a file


def test_categorical_ids_are_read_and_a_missing_one_is_empty(tmp_path):
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        categories(anndata(file, ids=()), (1, -1))
    with table_items(tmp_path / "x.h5ad", None) as (items, _):
        assert list(items) == ["b", ""]
