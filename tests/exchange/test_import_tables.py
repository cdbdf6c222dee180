"""One table for all clips, in every format, comes in bit for bit or is refused by name."""

import struct

import h5py
import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.import_items import match_to_clips
from obygaze_features.exchange.import_tables import table_items
from obygaze_features.exchange.row_ids import read_ids, row_items

from ..manifest.spans.files import sheet
from ..manifest.spans.test_workbooks import with_sheet
from .lab_features import N_FEATURES, array_of, import_store, values_of

IDS = ["b", "a", "c"]
MATRIX = np.stack([values_of(clip) for clip in IDS])


def import_table(folder, path, ids=None, never=()):
    """Import a table's rows as the vectors of clips a, b and c; gives the store and what is said about it."""
    with table_items(path, ids, never) as (items, about):
        matched, _ = match_to_clips(items, {clip: clip for clip in "abc"})
        return import_store(folder, matched), about


def write_csv(path, delimiter=",", decimal=".", encoding="utf-8-sig"):
    lines = [delimiter.join(["clip_id", "movie", *(f"f{n}" for n in range(N_FEATURES))])]
    for clip, values in zip(IDS, MATRIX, strict=True):
        cells = [repr(float(value)).replace(".", decimal) for value in values]
        lines.append(delimiter.join([clip, "m", *cells]))
    path.write_text("\n".join(lines) + "\n", encoding=encoding)


def save_parquet(path, **columns):
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pa.table(columns), path)


def write_parquet(path):
    """Write a column for each feature, and ids as bytes, as tools do that have no type of texts."""
    ids = [clip.encode() for clip in IDS]
    features = {f"f{number}": MATRIX[:, number] for number in range(N_FEATURES)}
    save_parquet(path, clip_id=ids, **features)
    assert read_ids(path) == IDS


def write_parquet_lists(path):
    save_parquet(path, name=IDS, embedding=list(MATRIX), movie=["m"] * 3)


def write_hdf5(path):
    with h5py.File(path, "w") as file:
        file["features"] = MATRIX
        file["ids"] = IDS


def write_blanks(path):
    """Write blanks behind commas, as OpenFace does, and a row of nothing, as spreadsheets do."""
    write_csv(path)
    lines = path.read_text("utf-8-sig").replace(",", " , ").splitlines()
    path.write_text("\n".join([*lines, "," * lines[0].count(","), ""]))


TABLES = {
    "a.csv": (write_csv, None),
    "blanks.csv": (write_blanks, None),
    "semicolons.csv": (lambda path: write_csv(path, ";", ","), "clip_id"),
    "a.tsv": (lambda path: write_csv(path, "\t"), None),
    "utf-32.csv": (lambda path: write_csv(path, encoding="utf-32"), None),
    "a.parquet": (write_parquet, None),
    "lists.parquet": (write_parquet_lists, "name"),
    "a.npz": (lambda path: np.savez(path, features=MATRIX, ids=np.array(IDS)), None),
    "a.h5": (write_hdf5, None),
}
"""File -> a function that writes the matrix and its ids to it, and the column of ids if it must be named."""


LISTS_OF_IDS = {
    "no header": [[clip] for clip in IDS],
    "clip_id and label": [["clip_id", "label"], *([clip, "1"] for clip in IDS)],
    "id and label": [["id", "label"], *([clip, "1"] for clip in IDS)],
    "id and clip_id": [["id", "clip_id"], *(["1", clip] for clip in IDS)],
}


@pytest.mark.parametrize("rows", LISTS_OF_IDS.values(), ids=LISTS_OF_IDS)
def test_ids_are_read_from_a_csv_file_or_a_spreadsheet(tmp_path, rows):
    """A list of ids may be rows alone, or a column that is called clip_id or, where there is none, id."""
    (tmp_path / "ids.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    (tmp_path / "ids.xlsx").write_bytes(sheet(rows))
    assert read_ids(tmp_path / "ids.csv") == IDS
    assert read_ids(tmp_path / "ids.xlsx") == IDS


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_every_kind_is_imported_bit_for_bit(tmp_path, name):
    """Each file has the same three vectors, of clips a, b and c, in another kind of table."""
    write_table, column_of_ids = TABLES[name]
    write_table(tmp_path / name)

    store, _ = import_table(tmp_path, tmp_path / name, column_of_ids)
    for clip in "abc":
        assert store["lab"].read(clip, "pooled").tobytes() == values_of(clip).tobytes()


@pytest.mark.parametrize("name", ["all.csv", "all.parquet"])
def test_labels_and_the_index_of_a_data_frame_are_not_imported_as_features(tmp_path, name):
    """A model that is given the label Weapon as a feature would find that concept in it.

    The table has an id, features of numbers (their count is N_FEATURES), the label, and as Parquet an index.
    """
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({f"f{n}": MATRIX[:, n] for n in range(N_FEATURES)})
    table.insert(0, "clip_id", IDS)
    table["Weapon"] = [0, 1, 1]
    if name == "all.csv":
        table.to_csv(tmp_path / name)
    else:
        pytest.importorskip("pyarrow")
        table.reset_index().to_parquet(tmp_path / name)

    store, about = import_table(tmp_path, tmp_path / name, never={"Weapon"})
    assert store["lab"].shape("pooled") == (3, N_FEATURES)
    assert "Weapon" in about["left_out"]


def refuse_table(path, ids=None, match=None):
    """Check that a table is refused when it is opened, in a message that matches."""
    with pytest.raises(StoreError, match=match), table_items(path, ids):
        pytest.fail("it was opened")


def test_a_matrix_without_the_ids_of_its_rows_is_refused(tmp_path):
    """A plain array says nothing of which row is which clip."""
    np.save(tmp_path / "all.npy", MATRIX)
    refuse_table(tmp_path / "all.npy", match=r"all\.npy")


FILES_OF_IDS = {
    "ids.npy": lambda path: np.save(path, np.array(IDS)),
    "lines.txt": lambda path: path.write_text("\n".join(IDS), encoding="utf-8"),
    "column.txt": lambda path: path.write_text(
        "\n".join(f"{clip};m" for clip in ("clip_id", *IDS)), encoding="utf-8"
    ),
}
"""File -> what writes the ids of the matrix's rows to it."""


@pytest.mark.parametrize("name", FILES_OF_IDS)
def test_a_matrix_is_read_with_the_ids_of_its_rows(tmp_path, name):
    """The rows of the matrix are vectors of clips b, a and c; another file has these ids in that order."""
    np.save(tmp_path / "all.npy", MATRIX)
    write_ids = FILES_OF_IDS[name]
    write_ids(tmp_path / name)

    with table_items(tmp_path / "all.npy", str(tmp_path / name)) as (items, _):
        assert set(items) == {"a", "b", "c"}
        for clip, item in items.items():
            assert array_of(item).tobytes() == values_of(clip).tobytes()


def test_a_row_of_gigabytes_is_refused_before_it_is_read(tmp_path):
    """The array has one row of 2^29 numbers of 4 bytes. It is a view of one zero, so it takes no memory."""
    np.save(tmp_path / "a.npy", np.zeros((1, 2)))
    row_of_two_gigabytes = np.broadcast_to(np.float32(0), (1, 2**29))

    with pytest.raises(StoreError, match=r"a\.npy"):
        row_items(tmp_path / "a.npy", ["a"], {"": row_of_two_gigabytes})


@pytest.mark.parametrize(
    ("text", "ids", "message"),
    [
        pytest.param("clip_id,f0,f1\na,1,x\n", None, "line 2, column 'f1'", id="no number"),
        pytest.param("clip_id,f0\na,1,2\n", None, "line 2", id="a cell too many"),
        pytest.param("clip_id,f0,f1\na,1,1\na,2,2\n", None, "'a'", id="an id twice"),
        pytest.param("", None, r"a\.csv", id="empty"),
        pytest.param("clip_id,f0\na,1\n", "nope", "--ids nope", id="no such column of ids"),
        pytest.param("clip_id,f0,f1\na,1_000,2\n", None, "'1_000'", id="an underscore"),
    ],
)
def test_an_unusable_csv_table_is_refused_with_what_is_wrong(tmp_path, text, ids, message):
    """`ids` is the column that the option --ids names as that of the clips' ids."""
    (tmp_path / "a.csv").write_text(text)
    refuse_table(tmp_path / "a.csv", ids, message)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        pytest.param({"x": MATRIX, "ids": np.array(IDS[:2])}, "x", id="two ids for three rows"),
        pytest.param({"x": MATRIX, "y": MATRIX, "ids": np.array(IDS)}, r"a\.npz", id="two matrices"),
        pytest.param({"x": np.array(1.0), "ids": np.array(IDS)}, "x: 0 rows", id="a number"),
    ],
)
def test_an_unusable_npz_table_is_refused_with_what_is_wrong(tmp_path, arrays, message):
    """A file .npz has named arrays: it must have one matrix, and an id for each of its rows, here three."""
    np.savez(tmp_path / "a.npz", **arrays)
    refuse_table(tmp_path / "a.npz", match=message)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.npz", b"PK\3\4nothing", r"a\.npz"),
        ("a.parquet", b"nothing", r"not a Parquet file|needs pyarrow"),
        ("a.sav", b"", "--from"),
    ],
)
def test_a_file_that_is_not_a_table_is_refused_with_what_is_wrong(tmp_path, name, data, message):
    """The message names the file, or the option by which other formats are imported."""
    (tmp_path / name).write_bytes(data)
    refuse_table(tmp_path / name, match=message)


def test_an_npz_that_claims_a_giant_is_refused_by_name(tmp_path):
    """A small file that says of its last array to have 1.75 GB must not have them allocated.

    An .npz is a zip file, with an entry for each array in the directory at its end.
    """
    path = tmp_path / "a.npz"
    np.savez(path, x=MATRIX, ids=np.array(IDS))
    data = bytearray(path.read_bytes())
    last_entry_of_directory = data.rindex(b"PK\1\2")
    compressed_size = last_entry_of_directory + 20  # the place of this field
    struct.pack_into("<I", data, compressed_size, 0x70000000)  # 1.75 GB
    path.write_bytes(data)
    refuse_table(path, match=r"a\.npz")


def test_a_column_of_ids_goes_before_the_index_of_a_data_frame(tmp_path):
    """A data frame of pandas has an index beside its columns, and both may name clips.

    Here the column clip_id has a and b, and the index x and y, which are taken if there is no such column.
    """
    pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    columns = {"clip_id": ["a", "b"], "f0": [1.0, 2.0], "f1": [0.0, 0.0]}
    frame = pd.DataFrame(columns, index=["x", "y"])
    frame.to_parquet(tmp_path / "with_ids.parquet")
    frame.drop(columns="clip_id").to_parquet(tmp_path / "without_ids.parquet")

    with table_items(tmp_path / "with_ids.parquet", ids=None) as (items, _):
        assert sorted(items) == ["a", "b"]
    with table_items(tmp_path / "without_ids.parquet", ids=None) as (items, _):
        assert sorted(items) == ["x", "y"]


def test_of_a_workbook_of_features_the_first_sheet_is_read_though_another_is_larger(tmp_path):
    """Columns of features may have any name. The second sheet has notes on the clips, in more cells."""
    notes = sheet([["clip", "who", "what"], *([clip, "AB", "a note"] for clip in "abcdefg")])
    ids_first = with_sheet(notes, "Ids", [["clip_id"], *([clip] for clip in IDS)])
    (tmp_path / "ids.xlsx").write_bytes(ids_first)

    assert read_ids(tmp_path / "ids.xlsx") == IDS
