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
from .lab_features import D, imported, row

IDS = ["b", "a", "c"]
MATRIX = np.stack([row(clip) for clip in IDS])


def write_csv(path, delimiter=",", decimal=".", encoding="utf-8-sig"):
    lines = [delimiter.join(["clip_id", "movie", *(f"f{n}" for n in range(D))])]
    for clip, values in zip(IDS, MATRIX, strict=True):
        cells = [repr(float(value)).replace(".", decimal) for value in values]
        lines.append(delimiter.join([clip, "m", *cells]))
    path.write_text("\n".join(lines) + "\n", encoding=encoding)


def save_parquet(path, **columns):
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pa.table(columns), path)


def write_parquet(path):
    ids = [clip.encode() for clip in IDS]  # as tools write that know no texts
    save_parquet(path, clip_id=ids, **{f"f{n}": MATRIX[:, n] for n in range(D)})
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


LISTS_OF_IDS = {
    "no header": [[clip] for clip in IDS],
    "clip_id and label": [["clip_id", "label"], *([clip, "1"] for clip in IDS)],
    "id and label": [["id", "label"], *([clip, "1"] for clip in IDS)],
    "id and clip_id": [["id", "clip_id"], *(["1", clip] for clip in IDS)],
}


@pytest.mark.parametrize("rows", LISTS_OF_IDS.values(), ids=LISTS_OF_IDS)
def test_ids_are_read_from_the_lines_or_the_column_of_a_csv_file(tmp_path, rows):
    (tmp_path / "ids.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    assert read_ids(tmp_path / "ids.csv") == IDS


@pytest.mark.parametrize("rows", LISTS_OF_IDS.values(), ids=LISTS_OF_IDS)
def test_ids_are_read_from_the_lines_or_the_column_of_a_spreadsheet(tmp_path, rows):
    (tmp_path / "ids.xlsx").write_bytes(sheet(rows))
    assert read_ids(tmp_path / "ids.xlsx") == IDS


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_every_kind_comes_in_bit_for_bit(tmp_path, name):
    write, ids = TABLES[name]
    write(tmp_path / name)
    with table_items(tmp_path / name, ids) as (items, _):
        store = imported(tmp_path, match_to_clips(items, {clip: clip for clip in "abc"})[0])
    for clip in "abc":
        assert store["lab"].read(clip, "pooled").tobytes() == row(clip).tobytes()


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_labels_and_the_numbers_of_rows_are_no_features(tmp_path, form):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({f"f{n}": MATRIX[:, n] for n in range(D)})
    table.insert(0, "clip_id", IDS)
    table["Weapon"] = [0, 1, 1]  # a model would find the concept in it
    path = tmp_path / f"all.{form}"
    if form == "csv":
        table.to_csv(path)
    else:
        pytest.importorskip("pyarrow")
        table.reset_index().to_parquet(path)
    with table_items(path, None, {"Weapon"}) as (items, about):
        store = imported(tmp_path, match_to_clips(items, {clip: clip for clip in "abc"})[0])
    assert store["lab"].shape("pooled") == (3, D)
    assert "Weapon" in about["left_out"]


def test_a_matrix_without_the_ids_of_its_rows_is_refused(tmp_path):
    np.save(tmp_path / "all.npy", MATRIX)
    with pytest.raises(StoreError, match=r"all\.npy"), table_items(tmp_path / "all.npy", None):
        pass


IDS_OF_MATRIX = {
    "ids.npy": lambda path: np.save(path, np.array(IDS)),
    "lines.txt": lambda path: path.write_text("\n".join(IDS), encoding="utf-8"),
    "column.txt": lambda path: path.write_text(
        "\n".join(f"{clip};m" for clip in ("clip_id", *IDS)), encoding="utf-8"
    ),
}


@pytest.mark.parametrize("name", IDS_OF_MATRIX)
def test_a_matrix_is_read_with_the_ids_of_its_rows(tmp_path, name):
    np.save(tmp_path / "all.npy", MATRIX)
    IDS_OF_MATRIX[name](tmp_path / name)
    with table_items(tmp_path / "all.npy", str(tmp_path / name)) as (items, _):
        assert {clip: item.load()[""].tobytes() for clip, item in items.items()} == {
            clip: row(clip).tobytes() for clip in "abc"
        }


def test_a_row_of_gigabytes_is_refused_before_it_is_read(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((1, 2)))
    wide = np.broadcast_to(np.float32(0), (1, 1 << 29))
    with pytest.raises(StoreError, match=r"a\.npy"):
        row_items(tmp_path / "a.npy", ["a"], {"": wide})


@pytest.mark.parametrize(
    ("name", "make", "ids", "message"),
    [
        ("a.csv", lambda p: p.write_text("clip_id,f0,f1\na,1,x\n"), None, "line 2, column 'f1'"),
        ("a.csv", lambda p: p.write_text("clip_id,f0\na,1,2\n"), None, "line 2"),
        ("a.csv", lambda p: p.write_text("clip_id,f0,f1\na,1,1\na,2,2\n"), None, "'a'"),
        ("a.csv", lambda p: p.write_text(""), None, r"a\.csv"),
        ("a.csv", lambda p: p.write_text("clip_id,f0\na,1\n"), "nope", "--ids nope"),
        ("a.npz", lambda p: np.savez(p, x=MATRIX, ids=np.array(IDS[:2])), None, "x"),
        ("a.npz", lambda p: np.savez(p, x=MATRIX, y=MATRIX, ids=np.array(IDS)), None, None),
        ("a.npz", lambda p: np.savez(p, x=np.array(1.0), ids=np.array(IDS)), None, "x: 0 rows"),
        ("a.csv", lambda p: p.write_text("clip_id,f0,f1\na,1_000,2\n"), None, "'1_000'"),
        ("a.npz", lambda p: p.write_bytes(b"PK\3\4nothing"), None, None),
        ("a.parquet", lambda p: p.write_bytes(b"nothing"), None, r"not a Parquet file|needs pyarrow"),
        ("a.sav", lambda p: p.write_bytes(b""), None, "--from"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_used_is_refused_by_name(tmp_path, name, make, ids, message):
    make(tmp_path / name)
    with pytest.raises(StoreError, match=message), table_items(tmp_path / name, ids):
        pass


def test_an_npz_that_claims_a_giant_is_refused_by_name(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=MATRIX, ids=np.array(IDS))
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.rindex(b"PK\1\2") + 20, 0x70000000)  # the compressed size of the ids
    path.write_bytes(data)
    with pytest.raises(StoreError, match=r"a\.npz"), table_items(path, None):
        pass


@pytest.fixture
def frame():
    """A table with ids in a column, and others in its index."""
    pytest.importorskip("pyarrow")
    import pandas as pd

    columns = {"clip_id": ["a", "b"], "f0": [1.0, 2.0], "f1": [0.0, 0.0]}
    return pd.DataFrame(columns, index=["x", "y"])


def ids_of(path):
    with table_items(path, None) as (items, _):
        return sorted(items)


def test_the_ids_of_a_data_frame_are_those_of_its_column(tmp_path, frame):
    frame.to_parquet(tmp_path / "a.parquet")
    assert ids_of(tmp_path / "a.parquet") == ["a", "b"]


def test_the_ids_of_a_data_frame_without_a_column_of_ids_are_those_of_its_index(tmp_path, frame):
    frame.drop(columns="clip_id").to_parquet(tmp_path / "a.parquet")
    assert ids_of(tmp_path / "a.parquet") == ["x", "y"]
