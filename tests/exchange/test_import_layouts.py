"""The layouts of the field come in by their features' name; what is left out is said, the rest refused."""

import io
import os
import sys
import tarfile
import zipfile
from unicodedata import normalize

import h5py
import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange import row_ids
from obygaze_features.exchange.array_choice import ArrayChoice
from obygaze_features.exchange.import_files import array_files, torch_files
from obygaze_features.exchange.import_hdf5 import hdf5_items
from obygaze_features.exchange.import_items import ImportItem, TableOptions, match_to_clips
from obygaze_features.exchange.import_tables import parquet_rows, table_items
from obygaze_features.exchange.row_ids import read_ids
from obygaze_features.file_kinds import FILM_SUFFIXES
from obygaze_features.store import open_store
from tests.command import obygaze

from .lab_features import N_FEATURES, array_of, values_of, write_films

CLIPS = ("a", "b", "c")
SHAPE = (7, N_FEATURES)
COORDS = np.zeros((7, 2), np.int64)
SUMMARY = {"gtscore": np.zeros(7, np.float32), "n_frames": np.int64(7), "video_name": np.bytes_("x")}


def features(clip):
    return values_of(clip, SHAPE)


def folder_of(suffix, save, **other_arrays):
    """Return a function that writes a folder with a file for each clip: its features and other arrays."""

    def write(folder):
        folder.mkdir()
        for clip in CLIPS:
            save(folder / f"{clip}.{suffix}", {"features": features(clip)} | other_arrays)

    return write


def save_npz(path, arrays):
    np.savez(path, **arrays)


def save_h5(path, arrays):
    with h5py.File(path, "w") as file:
        for name, value in arrays.items():
            file[name] = value


def save_pt(path, arrays):
    torch = pytest.importorskip("torch")
    tensors = {name: torch.tensor(value) for name, value in arrays.items() if isinstance(value, np.ndarray)}
    torch.save(arrays | tensors, path)


def save_safetensors(path, arrays):
    pytest.importorskip("safetensors.numpy").save_file(arrays, path)


def one_h5(name_of_features, **other_arrays):
    """Return a function that writes one file of HDF5 for all clips.

    In the name of a clip's features, {} stands for the clip; other arrays lie in the clip's group.
    """

    def write(path):
        arrays = {}
        for clip in CLIPS:
            arrays[name_of_features.format(clip)] = features(clip)
            for name, value in other_arrays.items():
                arrays[f"{clip}/{name}"] = value
        save_h5(path, arrays)

    return write


def tar_of_npy(path):
    """Write a tar, as webdataset does, with two members for each clip: its features, and a record in JSON."""
    with tarfile.open(path, "w") as archive:
        for clip in CLIPS:
            npy = io.BytesIO()
            np.save(npy, features(clip))
            for name, content in ((f"./{clip}.npy", npy.getvalue()), (f"./{clip}.json", b"{}")):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


def folder_of_tars(folder):
    folder.mkdir()
    tar_of_npy(folder / "00000.tar")


def pt_of_dicts(path):
    torch = pytest.importorskip("torch")
    torch.save({clip: {"x": torch.tensor(features(clip)), "y": torch.zeros(1)} for clip in CLIPS}, path)


def one_npz(path):
    np.savez(path, **{clip: features(clip) for clip in CLIPS})


def npz_with_a_note(folder):
    """Write archives of NumPy that are unusual: .NPZ, compressed, in Fortran's order, with a note in text."""
    folder.mkdir()
    for clip in CLIPS:
        with_small_letters = folder / "x.npz"  # NumPy would add .npz to another name
        np.savez_compressed(with_small_letters, x=np.asfortranarray(features(clip)))
        path = with_small_letters.rename(folder / f"{clip}.NPZ")
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("note.txt", "of 2021")


def folder_of_links(folder):
    """Make a folder with a link to the folder that has the files, and one to itself, a circle."""
    elsewhere = folder.with_name("elsewhere")
    npz_with_a_note(elsewhere)
    folder.mkdir()
    (folder / "train").symlink_to(elsewhere)
    (folder / "back").symlink_to(folder)


def of_matlab(path):
    """MATLAB's -v7.3 writes the axes of an array in reverse."""
    with h5py.File(path, "w") as file:
        for clip in CLIPS:
            file.create_dataset(clip, data=features(clip).T).attrs["MATLAB_class"] = np.bytes_("single")


def table_of_matlab(path):
    matrices = np.stack([features(clip) for clip in CLIPS])
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=matrices.T).attrs["MATLAB_class"] = np.bytes_("single")
        file["ids"] = np.array(CLIPS, "S")


def matrices_in_parquet(path, column="x"):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    kind = pa.list_(pa.list_(pa.float32(), N_FEATURES))
    lists = pa.array([features(clip).tolist() for clip in CLIPS], kind)
    parquet.write_table(pa.table({"id": CLIPS, "image": [b"x"] * 3, column: lists}), path)


LAYOUTS = {
    "one npz": (one_npz, "a.npz", "npy", (), ""),
    "note": (npz_with_a_note, "folder", "npy", (), "note.txt"),
    "links": (folder_of_links, "folder", "npy", (), "note.txt"),
    "npz": (folder_of("npz", save_npz, coords=COORDS), "folder", "npy", (), "coords"),
    "safetensors": (folder_of("safetensors", save_safetensors, coords=COORDS), "folder", "pth", (), "coords"),
    "tar": (tar_of_npy, "a.tar", "npy", (), "json"),
    "tars": (folder_of_tars, "shards", "npy", (), "json"),
    "h5": (folder_of("h5", save_h5, coords=COORDS), "folder", "hdf5", (), "coords"),
    "root": (one_h5("{}"), "a.h5", "hdf5", (), ""),
    "below": (one_h5("train/{}"), "a.h5", "hdf5", (), ""),
    "coords": (one_h5("{}/features", coords=COORDS), "a.h5", "hdf5", (), "coords"),
    "vsumm": (one_h5("{}/features", **SUMMARY), "a.h5", "hdf5", ("--key", "features"), "gtscore"),
    "MATLAB": (of_matlab, "a.h5", "hdf5", (), ""),
    "a table of MATLAB": (table_of_matlab, "a.mat", "table", (), ""),
    "lists of lists": (matrices_in_parquet, "a.parquet", "table", (), "image"),
    "pt": (folder_of("pt", save_pt, coords=COORDS, fps=25.0), "folder", "pth", (), "coords"),
    "pt of dicts": (pt_of_dicts, "a.pt", "pth", ("--columns", "x"), "y"),
}
"""How a lab keeps features: what writes them, the file or folder, --from, options, and what is left out."""


@pytest.mark.parametrize(
    ("write_layout", "name", "kind", "options", "left_out"), LAYOUTS.values(), ids=LAYOUTS
)
def test_a_layout_of_the_field_is_imported_bit_for_bit_and_what_is_left_out_is_named(
    manifest_of_a_b_and_c, tmp_path, capfd, write_layout, name, kind, options, left_out
):
    """A lab keeps the features of the frames of clips a, b and c in a file or folder `name`, in some layout.

    They are imported by the command's option --from KIND, and by others that the layout needs. A notice names
    what lies beside the features and is left out, if there is anything.
    """
    source = tmp_path / name
    write_layout(source)

    assert was_imported(manifest_of_a_b_and_c, source, kind, "--array", "frames", *options)

    imported = open_store(tmp_path / f"store-{name}-1.0.0")["lab"]
    for clip in ("a", "b", "c"):
        assert imported.read(clip, "frames").tobytes() == features(clip).tobytes()

    notices = capfd.readouterr().err
    if left_out == "":
        assert "left out" not in notices
    else:
        assert "left out" in notices
        assert left_out in notices


@pytest.mark.parametrize("name_of_layout", ["vsumm", "pt of dicts"])
def test_features_are_never_guessed_among_several_arrays_of_real_numbers(tmp_path, name_of_layout):
    """One of them may be labels or scores; the option --key or --columns says which are features.

    In the layout "vsumm", a clip has `features` and `gtscore`, and in "pt of dicts" x and y. No option is
    given here, and the refusal names the array that is no feature.
    """
    make, name, kind, _options, array_that_is_no_feature = LAYOUTS[name_of_layout]
    make(tmp_path / name)

    with pytest.raises(StoreError, match=array_that_is_no_feature):
        load(kind, tmp_path / name)


def load(kind, source):
    """Read clip a of a source of a kind; what is read is not returned."""
    if kind == "hdf5":
        with hdf5_items(source) as (items, _):
            items["a"].load()
    elif kind == "table":
        with table_items(source, ids=None) as (items, _):
            items["a"].load()
    elif kind == "npy":
        array_files(source, ArrayChoice())["a"].load()
    else:
        torch_files(source, ArrayChoice())["a"].load()


def test_a_pickled_array_beside_the_features_is_not_touched(tmp_path):
    """Unpickling runs code that the file holds, and the features can be read without it."""
    np.savez(tmp_path / "a.npz", x=features("a"), words=np.array([{"a": 1}], object))
    choice = ArrayChoice()

    (loaded,) = array_files(tmp_path, choice)["a"].load().values()

    assert np.array_equal(loaded, features("a"))
    assert "words" in choice.about["left_out"]


@pytest.mark.parametrize(
    ("arrays", "why"),
    [
        ({"x": np.ones(3), "y": np.ones(2)}, "cannot tell features"),
        ({"x": np.array([{}])}, "Python objects.*np.savez"),
    ],
    ids=["two vectors", "a dict of Python"],
)
def test_an_archive_without_clear_features_is_refused_and_not_called_damaged(tmp_path, arrays, why):
    """The refusal says what is in the way; the file itself is sound."""
    np.savez(tmp_path / "a.npz", **arrays)

    with pytest.raises(StoreError, match=why):
        load("npy", tmp_path)


@pytest.mark.parametrize("keep", [0, 3, 90, -8])
def test_a_damaged_member_of_a_tar_is_named(tmp_path, keep):
    """The array of the only member is cut off: to nothing, within its header, or before its end."""
    content = io.BytesIO()
    np.save(content, features("a"))
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        member = tarfile.TarInfo("./a.npy")  # as `tar -c .` names it
        data = content.getvalue()[:keep]
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))

    item = array_files(tmp_path / "a.tar", ArrayChoice())["a"]
    with pytest.raises(StoreError, match=r"a\.tar, \./a\.npy"):
        item.load()


def link_to_nothing(folder):
    (folder / "a.npy").symlink_to(folder / "gone")


def link_in_a_tar(folder):
    with tarfile.open(folder / "a.tar", "w") as archive:
        member = tarfile.TarInfo("a.npy")
        member.type = tarfile.LNKTYPE
        member.linkname = "b.npy"
        archive.addfile(member)


def name_twice(folder):
    path = folder / "a.npz"
    np.savez(path, x=np.ones(3), y=np.zeros(3))
    path.write_bytes(path.read_bytes().replace(b"y.npy", b"x.npy"))


def number_and_text(folder):
    torch = pytest.importorskip("torch")
    torch.save({1: torch.ones(3), "1": torch.zeros(3)}, folder / "a.pt")


def partly_written(n_written, **layout):
    """Return a function that writes a.h5, whose dataset of three rows has values in the first ones alone."""

    def write(folder):
        with h5py.File(folder / "a.h5", "w") as file:
            dataset = file.create_dataset("x", (3, N_FEATURES), np.float32, **layout)
            dataset[:n_written] = 1

    return write


without_last_chunk = partly_written(n_written=2, chunks=(1, N_FEATURES))
FILTER_OF_OTHERS = 32001
"""Number of a filter of HDF5, Blosc, that h5py has not."""


def filter_of_others(folder):
    """Write a compressed dataset and put another number in place of that of its filter."""
    write_compressed = partly_written(n_written=3, chunks=(3, N_FEATURES), compression="gzip")
    write_compressed(folder)
    path = folder / "a.h5"
    data = path.read_bytes()
    # A filter has its number, the length of its name, flags, and how many values it takes (2 bytes each).
    number = data.index(b"deflate\0") - 8
    path.write_bytes(data[:number] + FILTER_OF_OTHERS.to_bytes(2, "little") + data[number + 2 :])


def saved_twice(folder):
    with (folder / "a.npy").open("wb") as file:
        for clip in "ab":
            np.save(file, features(clip))


def zarr_store(folder):
    (folder / ".zgroup").write_text('{"zarr_format": 2}')


def anndata_without_x(folder):
    save_h5(folder / "a.h5", {"obs/_index": ["a"], "obsm/X_pca": np.ones((1, 3), np.float32)})


LOST_OR_WRONG = {
    "a link to nothing": (link_to_nothing, "npy", "", "No such file"),
    "a link in a tar": (link_in_a_tar, "npy", "", r"a\.tar, a\.npy: a link"),
    "an array twice": (name_twice, "npy", "", "x: is in it twice"),
    "the names 1 and '1'": (number_and_text, "pth", "a.pt", "both are of '1'"),
    "two arrays saved to one file": (saved_twice, "npy", "", r"a\.npy: more bytes"),
    "two tables saved to one file": (saved_twice, "table", "a.npy", r"a\.npy: more bytes"),
    "Zarr as npy": (zarr_store, "npy", "", "Zarr store"),
    "Zarr as pth": (zarr_store, "pth", "", "Zarr store"),
    "Zarr as HDF5": (zarr_store, "hdf5", "", "Zarr store"),
    "Zarr as a table": (zarr_store, "table", "", "Zarr store"),
    "HDF5 without a chunk": (partly_written(n_written=0), "hdf5", "", "1 of its 1 chunks"),
    "HDF5 without the last chunk": (without_last_chunk, "hdf5", "", "1 of its 3 chunks"),
    "HDF5 with a filter of others": (filter_of_others, "hdf5", "", str(FILTER_OF_OTHERS)),
    "AnnData without X": (anndata_without_x, "hdf5", "a.h5", "AnnData"),
}
"""What is lost or wrong -> a function that writes such files into a folder; the kind of files, as for --from;
the name of the file that is read, "" for the whole folder; and what the refusal says."""


@pytest.mark.parametrize(("write_files", "kind", "name", "reason"), LOST_OR_WRONG.values(), ids=LOST_OR_WRONG)
def test_files_whose_features_would_be_read_in_part_or_wrongly_are_refused(
    tmp_path, write_files, kind, name, reason
):
    """A folder gets a file from which a plain reader would get some values, and miss that others are lost.

    For example, a tar has a link in place of a clip's file; or two arrays were saved to one file, one after
    the other, of which only the first would be read; or a chunk of an HDF5 file was never written, so that
    its values would be read as zeros. Reading the features of clip a is refused with this reason.
    """
    write_files(tmp_path)

    with pytest.raises((StoreError, OSError), match=reason):
        load(kind, tmp_path / name)


@pytest.fixture
def columns_of_at_most_100_bytes(monkeypatch):
    """A column of a table may have 100 bytes once it is unpacked; a compressed file may be far smaller."""
    monkeypatch.setattr(row_ids, "MAX_UNPACKED", 100)


@pytest.mark.parametrize("column", ["x", "lab.x"], ids=["a plain name", "a name with a dot"])
@pytest.mark.usefixtures("columns_of_at_most_100_bytes")
def test_a_parquet_column_that_is_too_large_is_refused_before_it_is_read(tmp_path, column):
    """The column holds three matrices, more than the 100 bytes allowed here.

    It is refused on entering `with`, before any of its rows can be read.
    """
    matrices_in_parquet(tmp_path / "a.parquet", column)
    without_options = TableOptions(ids=None, columns=(), no_features=frozenset())
    rows_of_table = parquet_rows(tmp_path / "a.parquet", without_options)

    with pytest.raises(StoreError, match=f"column '{column}'"), rows_of_table:
        pytest.fail("the column was opened")


@pytest.mark.parametrize(
    "columns",
    [{"clip_id": ["b", "a"], "caption": ["x", "y"]}, {"image_path": ["b", "a"], "n": [1, 2]}],
    ids=["the column of ids", "the one column of texts"],
)
def test_ids_are_read_from_a_parquet_table(tmp_path, columns):
    """Ids are in a column that is called clip_id, or else in the only column of texts."""
    pytest.importorskip("pyarrow")
    table = pytest.importorskip("pandas").DataFrame(columns)
    table.to_parquet(tmp_path / "ids.parquet")

    assert read_ids(tmp_path / "ids.parquet") == ["b", "a"]


def test_a_parquet_table_with_two_columns_that_may_be_ids_is_refused(tmp_path):
    """A table of two columns, caption and path, is to give ids; both have texts, none is called clip_id."""
    pytest.importorskip("pyarrow")
    table = pytest.importorskip("pandas").DataFrame({"caption": ["b", "a"], "path": ["x", "y"]})
    table.to_parquet(tmp_path / "two.parquet")

    with pytest.raises(StoreError, match=r"two\.parquet.*caption, path"):
        read_ids(tmp_path / "two.parquet")


@pytest.fixture
def table_in_two_parts(tmp_path):
    """A folder with a table of clips a to c in two files; features are the code of the letter, and 1."""
    (tmp_path / "part-0.csv").write_text(f"clip_id,f0,f1\na,{ord('a')},1\nb,{ord('b')},1\n")
    (tmp_path / "part-1.csv").write_text(f"clip_id,f0,f1\nc,{ord('c')},1\n")
    return tmp_path


def test_a_table_in_several_files_is_read_as_one(table_in_two_parts):
    """part-0.csv has clips a and b, and part-1.csv has c. Features are the code of the letter, and 1."""
    with table_items(table_in_two_parts, ids=None) as (items, _):
        features_of = {clip: array_of(item).tolist() for clip, item in items.items()}

    assert features_of == {"a": [ord("a"), 1], "b": [ord("b"), 1], "c": [ord("c"), 1]}


@pytest.mark.parametrize(
    "third_part",
    ["clip_id,f0,f1\na,1,1\n", "clip_id,y0,y1\nd,1,1\n", "clip_id,f1,f0\nd,1,1\n"],
    ids=["an id of another part", "other columns", "columns in another order"],
)
def test_a_file_of_a_table_that_does_not_fit_the_others_is_refused(table_in_two_parts, third_part):
    """Two files have clips a, b and c, with the columns clip_id, f0 and f1; part-2.csv is added."""
    (table_in_two_parts / "part-2.csv").write_text(third_part)
    items = table_items(table_in_two_parts, ids=None, columns=["*"])

    with pytest.raises(StoreError, match="part-2"), items:
        pytest.fail("it was opened")


def test_a_key_that_no_array_has_is_refused(manifest_of_a_b_and_c, tmp_path):
    """The archive has the arrays a, b and c, one for each clip, and the option --key names "layer4"."""
    one_npz(tmp_path / "a.npz")

    assert not was_imported(
        manifest_of_a_b_and_c, tmp_path / "a.npz", "npy", "--array", "frames", "--key", "layer4"
    )


@pytest.mark.parametrize("kind", ["npy", "pth"])
def test_a_key_is_refused_for_files_whose_one_array_has_no_name(manifest_of_a_b_and_c, tmp_path, kind):
    """Files .npy and files of one tensor hold an array without a name, so --key cannot choose it."""
    (tmp_path / kind).mkdir()
    for clip in CLIPS:
        if kind == "npy":
            np.save(tmp_path / kind / f"{clip}.npy", features(clip))
        else:
            torch = pytest.importorskip("torch")
            torch.save(torch.tensor(features(clip)), tmp_path / kind / f"{clip}.pt")

    assert not was_imported(
        manifest_of_a_b_and_c, tmp_path / kind, kind, "--array", "frames", "--key", "layer4"
    )


def test_arrays_of_an_npz_with_a_number_for_each_clip_are_columns_of_a_table(tmp_path):
    """A label among them is refused until columns are asked for: it might be taken for a feature."""
    columns = {"f0": np.float32([0, 0, 0]), "f1": np.float32([1, 1, 1]), "f2": np.float32([2, 2, 2])}
    np.savez(tmp_path / "a.npz", clip_id=np.array(CLIPS), **columns)
    np.savez(tmp_path / "with_label.npz", clip_id=np.array(CLIPS), label=np.zeros(3), **columns)

    with table_items(tmp_path / "a.npz", ids=None) as (items, _):
        assert array_of(items["b"]).tolist() == [0, 1, 2]
    with table_items(tmp_path / "with_label.npz", ids=None, columns=["f*"]) as (items, _):
        assert array_of(items["b"]).tolist() == [0, 1, 2]
    with pytest.raises(StoreError, match="label"), table_items(tmp_path / "with_label.npz", ids=None):
        pass


def test_an_array_frames_with_one_number_a_clip_is_no_features(tmp_path):
    """An archive has an array `frames` of three numbers, 7, 8 and 9, and a matrix x with a row for each clip.

    The first counts the frames of each clip, although its name is that of an array of features: x is read.
    """
    matrix = np.stack([values_of(clip) for clip in CLIPS])
    np.savez(tmp_path / "a.npz", ids=np.array(CLIPS), x=matrix, frames=np.float32([7, 8, 9]))

    with table_items(tmp_path / "a.npz", ids=None) as (items, _):
        assert items["b"].load()["x"].tolist() == values_of("b").tolist()


def test_features_of_an_anndata_file_are_asked_for_by_their_names(tmp_path):
    """Without a name X is taken, a matrix of 9 features of each clip.

    The other arrays are a matrix of 4 features, and two of a number for each clip, an age and a year.
    """
    path = tmp_path / "a.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = np.zeros((2, 9), np.float32)
        file["obsm/X_pca"] = np.ones((2, 4), np.float32)
        file["obs/_index"] = ["a", "b"]
        file["obsm/age"] = [1.0, 2.0]
        file["obsm/year"] = [3.0, 4.0]

    for columns, n_features in (((), 9), (("X_pca",), 4), (("age", "year"), 2)):
        with table_items(path, ids=None, columns=columns) as (items, about):
            (array,) = items["b"].load().values()
            assert array.shape == (n_features,)
            assert about["left_out"]


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKD"])
def test_names_match_in_any_form_of_unicode(form):
    """The letter "é" may be one sign or two. Systems write file names in different forms.

    A file is named in one form, and clip 1 in another.
    """
    name = "Amélie – Ünïcode"
    items = {normalize(form, name): ImportItem("x", dict)}

    for form_of_clip in ("NFC", "NFD"):
        name_of_clip = normalize(form_of_clip, name)
        matched, _ = match_to_clips(items, {"1": name_of_clip})
        assert list(matched) == ["1"]


@pytest.mark.parametrize("path", ["C:\\films\\a.mp4", "/films/a.mp4", "films/a", "'a.WAV'"])
def test_ids_that_are_paths_of_any_system_match_by_their_last_part(path):
    """Clip 1 is called a; the suffix of a video or of a sound file, and quotes, are left out of the path."""
    items = {path: ImportItem("x", dict)}

    matched, _ = match_to_clips(items, {"1": "a"}, FILM_SUFFIXES)

    assert list(matched) == ["1"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.h5", "hdf5"), ("a.npy", "npy"), ("a.npz", "npy"), ("a.pt", "pth"), ("a.csv", "table")],
)
def test_a_pointer_of_git_lfs_in_place_of_features_is_called_one(tmp_path, name, kind):
    """Without git-lfs, a clone of a repository has small text files in place of large ones."""
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")

    with pytest.raises(StoreError, match=f"{name}.*git-lfs"):
        load(kind, tmp_path)


@pytest.mark.filterwarnings("ignore")  # of torch about types that it will drop
def test_tensors_of_every_type_are_read_or_refused_in_one_line(tmp_path):
    """PyTorch has some forty types of numbers, of which some cannot be made or saved on this machine.

    A tensor of 8 zeros of each other type is saved. Usual types are read, unusual ones are refused.
    """
    torch = pytest.importorskip("torch")
    types = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    torch_cannot_make_or_save_it = (KeyError, RuntimeError, NotImplementedError, AttributeError, ValueError)
    outcome_of_type = {}
    for dtype in types:
        try:
            save_zeros(torch, dtype, tmp_path / "a.pt")
        except torch_cannot_make_or_save_it:
            continue
        outcome_of_type[str(dtype).removeprefix("torch.")] = outcome_of_reading(tmp_path)
    assert len(outcome_of_type) > 15  # of some forty

    for usual in ("float32", "float16", "float64", "bfloat16", "int64"):
        assert outcome_of_type[usual] == "read"
    for unusual in ("float8_e4m3fn", "qint8", "complex64"):
        assert outcome_of_type.get(unusual) != "read"
    for outcome in outcome_of_type.values():
        assert "\n" not in outcome
        assert "weights_only" not in outcome  # torch advises to set it, which would run code


@pytest.mark.filterwarnings("ignore")
def test_a_tensor_that_is_no_plain_array_is_refused_in_one_line(tmp_path):
    """PyTorch's message on such a tensor advises to set `weights_only`, which would run code of the file.

    Our refusal must not repeat that.
    """
    torch = pytest.importorskip("torch")
    conjugate = torch.zeros(8, dtype=torch.complex64).conj()
    sparse = torch.zeros(8).to_sparse()
    meta = torch.zeros(8, device="meta")
    nested = torch.nested.nested_tensor([torch.zeros(8)])

    for tensor in (conjugate, sparse, meta, nested):
        torch.save(tensor, tmp_path / "a.pt")
        outcome = outcome_of_reading(tmp_path)
        assert outcome != "read"
        assert "\n" not in outcome
        assert "weights_only" not in outcome


def save_zeros(torch, dtype, path):
    """Save a tensor of 8 zeros of a type."""
    if str(dtype).startswith("torch.q"):
        tensor = torch.quantize_per_tensor(torch.zeros(8), 0.1, 0, dtype)
    else:
        tensor = torch.zeros(8 * dtype.itemsize, dtype=torch.uint8).view(dtype)
    torch.save(tensor, path)


def outcome_of_reading(folder):
    """Return "read" if the tensor in a folder is read, else the message of the refusal."""
    try:
        torch_files(folder, ArrayChoice())["a"].load()
    except StoreError as error:
        return str(error)
    return "read"


KIND_OF_LABELS = {
    "a.npz": "table",
    "c.csv": "table",
    "d.h5": "hdf5",
    "e": "npy",
}
"""File or folder of `labels_alone` -> its kind, as for --from."""


@pytest.fixture
def labels_alone(tmp_path):
    """A folder with the labels of the clips and no features, in five kinds of files.

    The labels are real numbers, as features are: [1, 0] or [0, 1] for each clip.
    """
    labels = np.array([[1, 0], [0, 1], [1, 0]], np.float32)
    np.savez(tmp_path / "a.npz", ids=np.array(CLIPS), label=labels)
    np.save(tmp_path / "b.npy", labels)
    (tmp_path / "ids.txt").write_text("\n".join(CLIPS))
    lines = (f"{clip},{first:g},{second:g}" for clip, (first, second) in zip(CLIPS, labels, strict=True))
    (tmp_path / "c.csv").write_text("\n".join(["clip_id,y_0,y_1", *lines]))
    with h5py.File(tmp_path / "d.h5", "w") as file:
        for clip, label in zip(CLIPS, labels, strict=True):
            file[f"{clip}/label"] = label
    (tmp_path / "e").mkdir()
    for clip, label in zip(CLIPS, labels, strict=True):
        np.savez(tmp_path / "e" / f"{clip}.npz", label=label)
    return tmp_path


@pytest.fixture
def manifest_of_a_b_and_c(tmp_path):
    """The manifest films.csv of clips a, b and c."""
    return write_films(tmp_path, CLIPS) / "films.csv"


def was_imported(films, source, kind, *options):
    """Import a source with --from KIND into a store beside the manifest; say whether it succeeded."""
    settings = ("--backbone", "lab", "--licence", "MIT", "--from", kind, *options)
    code = obygaze("store", "import", films, source, films.parent / f"store-{source.name}", *settings)
    has_store = any(films.parent.glob(f"store-{source.name}-*"))
    assert (code == 0) == has_store
    return code == 0


@pytest.mark.parametrize("name", KIND_OF_LABELS)
def test_labels_are_not_imported_as_features_unless_all_columns_are_asked_for(
    manifest_of_a_b_and_c, labels_alone, name
):
    """A file, or a folder, has the labels of clips a, b and c, [1, 0] or [0, 1] for each, and no features.

    They are saved as real numbers, as features are, so that their type does not tell them apart. As all are 0
    or 1, the import is refused. With --columns "*" the user says that all columns are features.
    """
    kind = KIND_OF_LABELS[name]
    all_columns = ("--columns", "*")

    assert not was_imported(manifest_of_a_b_and_c, labels_alone / name, kind)
    assert was_imported(manifest_of_a_b_and_c, labels_alone / name, kind, *all_columns)


def test_a_matrix_of_real_numbers_alone_is_imported_as_it_is(manifest_of_a_b_and_c, labels_alone):
    """A file .npy has a matrix of zeros and ones, which are labels, and ids.txt has the ids of its rows.

    A matrix has no names of columns that could tell labels from features: it is imported.
    """
    assert was_imported(
        manifest_of_a_b_and_c, labels_alone / "b.npy", "table", "--ids", str(labels_alone / "ids.txt")
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes in folders there")
@pytest.mark.parametrize("kind", ["npy", "pth", "hdf5", "table"])
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(manifest_of_a_b_and_c, tmp_path, kind):
    """Reading a named pipe waits for ever if nobody writes to it."""
    os.mkfifo(tmp_path / "features")
    assert not was_imported(manifest_of_a_b_and_c, tmp_path / "features", kind)


def test_features_may_be_whole_numbers(manifest_of_a_b_and_c, tmp_path):
    """The array is called "features", so values of 0 and 1 do not make it labels."""
    features_of_clips = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], np.float32)
    np.savez(tmp_path / "a.npz", ids=np.array(CLIPS), features=features_of_clips)

    assert was_imported(manifest_of_a_b_and_c, tmp_path / "a.npz", "table")


def test_files_whose_arrays_have_different_names_are_refused(manifest_of_a_b_and_c, tmp_path):
    """Clip b has an array "label" where the others have "features"."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    name_in_file_of = {"a": "features", "b": "label", "c": "features"}
    for clip, name in name_in_file_of.items():
        np.savez(folder / f"{clip}.npz", **{name: values_of(clip)})

    assert not was_imported(manifest_of_a_b_and_c, folder, "npy")


@pytest.mark.parametrize(
    ("cells", "is_read"),
    [("1,234;0,5", True), ("1.234;0.5", True), ("1.234;0,5", False)],
    ids=["commas", "points", "both: a point might separate thousands"],
)
def test_a_table_has_decimal_points_or_commas_but_not_both(manifest_of_a_b_and_c, tmp_path, cells, is_read):
    """Clips a, b and c have the same two features, in cells between semicolons.

    1.234 is a number where points are decimal, and one thousand and more where commas are.
    """
    table = tmp_path / "table.csv"
    table.write_text(f"clip_id;f0;f1\na;{cells}\nb;{cells}\nc;{cells}")

    assert was_imported(manifest_of_a_b_and_c, table, "table") == is_read
