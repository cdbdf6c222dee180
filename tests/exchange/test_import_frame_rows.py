"""Tables with a row for each frame come in as the frames of their clips, or are refused in one line."""

import h5py
import numpy as np
import pandas as pd
import pytest

from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store import open_store, verify
from tests.command import obygaze

from .lab_features import row

D = 6
LENGTHS = {"v_one": 5, "v_two": 1, "v_é": 9}
"""Clip -> number of its frames."""
TRUTH = {clip: row(clip, (length, D)) for clip, length in LENGTHS.items()}
HALF = {clip: np.arange(length) / 2 for clip, length in LENGTHS.items()}
"""Times of two frames a second."""
UNKNOWN = {clip: np.full(length, np.nan) for clip, length in LENGTHS.items()}
COLUMNS = [f"f{number}" for number in range(D)]


@pytest.fixture
def folder(tmp_path):
    clips = [Clip(clip, "tt1", f"{clip}.mp4") for clip in TRUTH]
    write_manifest(Manifest(clips, tmp_path), tmp_path / "films.csv")
    return tmp_path


def frame_table(**columns):
    """One row a frame: its clip, its vector, and columns made of (clips, places of frames in their clips)."""
    places = np.concatenate([np.arange(length) for length in LENGTHS.values()])
    clips = np.repeat(list(LENGTHS), list(LENGTHS.values()))
    table = pd.DataFrame(np.concatenate(list(TRUTH.values())), columns=COLUMNS)
    table.insert(0, "clip_id", clips)
    for name, values in columns.items():
        table.insert(1, name, values(places) if callable(values) else values)
    return table


def mixed(table):
    return table.sample(frac=1, random_state=3)


def bring(folder, source, *more):
    settings = ("--array", "frames", "--backbone", "lab", "--licence", "MIT")
    return obygaze(
        "store",
        "import",
        folder / "films.csv",
        folder / source,
        folder / "lab",
        "--from",
        "table",
        *settings,
        *more,
    )


def check(folder, times, truth=TRUTH):
    group = open_store(folder / "lab")["lab"]
    assert dict(zip(group.clip_ids, group.row_size.tolist(), strict=True)) == {
        c: len(v) for c, v in truth.items()
    }
    for clip, values in truth.items():
        assert group.read(clip, "frames").tobytes() == values.tobytes()
        assert np.array_equal(group.read(clip, "time_s"), times[clip], equal_nan=True)
    assert verify(folder / "lab", "full").ok
    return group


def refused(folder, capfd, source, *more):
    """Import; return the line that refuses it."""
    assert bring(folder, source, *more) == 1
    *_, line = capfd.readouterr().err.splitlines()
    assert not list(folder.glob("lab*"))
    return line


FORMS = {
    "csv": lambda table, path: table.to_csv(path, index=False),
    "tsv": lambda table, path: table.to_csv(path, index=False, sep="\t", decimal=","),
    "parquet": lambda table, path: table.to_parquet(path),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_in_any_order_are_the_frames_of_their_clips_by_their_times(folder, capfd, form):
    FORMS[form](mixed(frame_table(time_s=lambda places: places / 2)), folder / f"all.{form}")
    assert bring(folder, f"all.{form}") == 0
    said = capfd.readouterr()
    assert "1 to 9 frames of 6 numbers" in said.out
    assert "'time_s' in seconds" in said.err
    check(folder, HALF)


@pytest.mark.parametrize("name", ["timestamp", "Time (s)", "frameTime", "seconds", "TIME"])
def test_times_are_found_under_the_names_that_others_give_them(folder, name):
    mixed(frame_table(**{name: lambda places: places / 2})).to_csv(folder / "all.csv", index=False)
    assert bring(folder, "all.csv") == 0
    check(folder, HALF)


@pytest.mark.parametrize("name", ["timestamp_ms", "Time (ms)", "time_ms"])
def test_times_in_milliseconds_become_seconds(folder, name):
    mixed(frame_table(**{name: lambda places: 500 * places})).to_csv(folder / "all.csv", index=False)
    assert bring(folder, "all.csv") == 0
    check(folder, HALF)


def test_times_of_hours_keep_their_last_digits(folder):
    hours = {clip: 7200.04 + times for clip, times in HALF.items()}
    frame_table(time_s=lambda places: 7200.04 + places / 2).to_csv(folder / "all.csv", index=False)
    assert bring(folder, "all.csv") == 0
    check(folder, hours)


def test_a_number_of_a_frame_orders_them_and_an_index_in_the_file_is_kept(folder):
    mixed(frame_table(frame_index=lambda places: 12 * places)).to_csv(folder / "all.csv", index=False)
    assert bring(folder, "all.csv", "--rate", "2") == 0
    group = check(folder, HALF)
    assert group.read("v_é", "frame_index").tolist() == [12 * place for place in range(9)]


def test_numbers_that_may_begin_at_one_are_no_indices_in_the_file(folder):
    """OpenFace's table of a face: numbers from 1 on, times, and columns of others' names."""
    table = frame_table(success=1, timestamp=lambda places: places / 2, frame=lambda places: places + 1)
    mixed(table).to_csv(folder / "all.csv", index=False)
    assert bring(folder, "all.csv", "--columns", "f[0-9]*") == 0
    group = check(folder, HALF)
    assert (group.frame_index == -1).all()


def test_without_times_and_numbers_the_order_of_the_table_counts_and_is_said(folder, capfd):
    frame_table().to_csv(folder / "all.csv", index=False)
    assert bring(folder, "all.csv") == 0
    assert "in the order of the table" in capfd.readouterr().err
    check(folder, UNKNOWN)


def test_a_column_of_other_times_is_named(folder):
    table = frame_table(shown_at=lambda places: places / 2, frame=lambda places: places, time=7.0)
    mixed(table).to_parquet(folder / "all.parquet")
    assert bring(folder, "all.parquet", "--times", "shown_at", "--columns", "f[0-9]*") == 0
    check(folder, HALF)


def test_a_vector_in_one_column_of_lists(folder):
    table = frame_table(time=lambda places: places / 2)
    table["vector"] = list(table[COLUMNS].to_numpy())
    mixed(table.drop(columns=COLUMNS)).to_parquet(folder / "all.parquet")
    assert bring(folder, "all.parquet") == 0
    check(folder, HALF)


def arrays_of(table):
    return {
        "features": table[COLUMNS].to_numpy(),
        "ids": table["clip_id"].to_numpy().astype(str),
        "timestamps": table["time_s"].to_numpy(),
    }


def save_npz(path, arrays):
    np.savez(path, **arrays)


def save_hdf5(path, arrays):
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values.astype(object) if name == "ids" else values


@pytest.mark.parametrize(("name", "save"), [("all.npz", save_npz), ("all.h5", save_hdf5)])
def test_arrays_with_a_row_for_each_frame(folder, name, save):
    save(folder / name, arrays_of(mixed(frame_table(time_s=lambda places: places / 2))))
    assert bring(folder, name) == 0
    check(folder, HALF)


def test_a_matrix_whose_ids_are_in_a_file_with_one_for_each_frame(folder):
    table = frame_table()
    np.save(folder / "all.npy", table[COLUMNS].to_numpy())
    (folder / "ids.txt").write_text("\n".join(table["clip_id"]), encoding="utf-8")
    assert bring(folder, "all.npy", "--ids", folder / "ids.txt", "--rate", "2") == 0
    check(folder, HALF)


def test_more_frames_than_numbers_need_no_axes_where_a_row_is_a_frame(folder, capfd):
    frame_table().to_csv(folder / "all.csv", index=False)
    assert bring(folder, "all.csv") == 0
    assert "--axes" not in capfd.readouterr().err
    assert bring(folder, "all.csv", "--axes", "DT", "--store-version", "1.0.1") == 2


def changed(name, row, value):
    """Change a cell of a table whose rows have times and numbers."""

    def change(table):
        table[name] = table[name].astype(object)
        table.loc[row, name] = value
        return table

    return change


def two_columns_of_times(table):
    return table.assign(time=table["stamp"], timestamp=1.0)


ODD = {
    "a frame twice": (changed("frame", 1, 0), (), "rows 1 and 2"),
    "no number of a frame": (changed("frame", 2, ""), (), "'frame'"),
    "a name of a frame": (changed("frame", 2, "img_2.jpg"), (), "'frame'"),
    "times that fall": (changed("stamp", 3, 0.1), ("--times", "stamp"), "time_s falls"),
    "a time that is no number": (changed("stamp", 3, "nan"), ("--times", "stamp"), "'stamp'"),
    "frames that are not finite": (changed("f1", 3, "nan"), (), "not finite"),
    "columns of two times": (two_columns_of_times, (), "--columns"),
    "a gap, and a rate": (changed("frame", 4, 9), ("--rate", "2"), "--rate"),
    "a column that is not there": (lambda table: table, ("--times", "seconds"), "--times"),
    "labels of whole numbers": (
        lambda table: table[["clip_id", "frame"]].assign(y0=1, y1=0, time=table["stamp"] + 0.25),
        (),
        "labels",
    ),
    "a row for each clip": (
        lambda table: table.groupby("clip_id", as_index=False).first()[["clip_id", *COLUMNS]],
        (),
        "--array pooled",
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_what_says_no_place_of_a_frame_is_refused_in_a_line_and_leaves_nothing(folder, capfd, case):
    change, more, message = ODD[case]
    table = change(frame_table(stamp=lambda places: places / 2, frame=lambda places: places))
    if "time" not in table and case != "a row for each clip":
        more = (*more, "--columns", "f[0-9]*")
    table.to_csv(folder / "all.csv", index=False)
    line = refused(folder, capfd, "all.csv", *more)
    assert message in line
    assert "all.csv" in line


def test_several_rows_of_a_clip_are_refused_as_pooled_with_the_way_out(folder, capfd):
    frame_table().to_csv(folder / "all.csv", index=False)
    settings = ("--from", "table", "--backbone", "lab", "--licence", "MIT")
    assert (
        obygaze("store", "import", folder / "films.csv", folder / "all.csv", folder / "lab", *settings) == 1
    )
    assert "--array frames" in capfd.readouterr().err
