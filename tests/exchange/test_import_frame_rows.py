"""Tables with a row for each frame come in as the frames of their clips, or are refused in one line."""

import h5py
import numpy as np
import pandas as pd
import pytest

from .lab_features import check_frames, import_as_lab, values_of, write_films

D = 6
LENGTHS = {"v_one": 5, "v_two": 1, "v_é": 9}
"""Clip -> number of its frames."""
EXPECTED_ARRAYS = {clip: values_of(clip, (length, D)) for clip, length in LENGTHS.items()}
TIMES_OF_TWO_A_SECOND = {clip: np.arange(length) / 2 for clip, length in LENGTHS.items()}
"""Times of two frames a second."""
NO_TIMES = {clip: np.full(length, np.nan) for clip, length in LENGTHS.items()}
COLUMNS = [f"f{number}" for number in range(D)]


@pytest.fixture
def folder_with_manifest(tmp_path):
    return write_films(tmp_path, EXPECTED_ARRAYS)


def frame_table(**columns):
    """Make a table of all frames of all clips, a row each: clip_id, more columns, and the frame's vector.

    The values of a column are one for all rows, one for each, or a function of the frames' numbers, which are
    counted from 0 on in each clip.
    """
    clip_of_row = []
    number_of_row = []
    for clip, length in LENGTHS.items():
        clip_of_row += [clip] * length
        number_of_row += range(length)
    table = pd.DataFrame(np.concatenate(list(EXPECTED_ARRAYS.values())), columns=COLUMNS)
    table.insert(0, "clip_id", clip_of_row)
    for name, values in columns.items():
        table.insert(1, name, values(np.array(number_of_row)) if callable(values) else values)
    return table


def at_two_a_second(numbers):
    return numbers / 2


def number_of_frame(numbers):
    return numbers


def shuffled(table):
    return table.sample(frac=1, random_state=3)


def import_frames(folder, source, *options):
    """Import a table as the frames of the store `lab`; gives the exit code."""
    return import_as_lab(folder, source, "--from", "table", "--array", "frames", *options)


FORMS = {
    "csv": lambda table, path: table.to_csv(path, index=False),
    "tsv": lambda table, path: table.to_csv(path, index=False, sep="\t", decimal=","),
    "parquet": lambda table, path: table.to_parquet(path),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_in_any_order_become_frames_ordered_by_time(folder_with_manifest, capfd, form):
    """Each row of the table is one frame of a clip, with its time; the rows are shuffled.

    Three clips have 5, 1 and 9 frames of 6 numbers, two frames a second.
    """
    table = shuffled(frame_table(time_s=at_two_a_second))
    write_table = FORMS[form]
    write_table(table, folder_with_manifest / f"all.{form}")

    exit_code = import_frames(folder_with_manifest, f"all.{form}")

    assert exit_code == 0
    printed = capfd.readouterr()
    assert "1 to 9 frames of 6 numbers" in printed.out
    assert "'time_s' in seconds" in printed.err
    check_frames(folder_with_manifest, times=TIMES_OF_TWO_A_SECOND, truth=EXPECTED_ARRAYS)


@pytest.mark.parametrize(
    ("name_of_column", "time_of_frame"),
    [
        ("timestamp", lambda number: number / 2),
        ("Time (s)", lambda number: number / 2),
        ("frameTime", lambda number: number / 2),
        ("seconds", lambda number: number / 2),
        ("TIME", lambda number: number / 2),
        ("timestamp_ms", lambda number: 500 * number),
        ("Time (ms)", lambda number: 500 * number),
        ("time_ms", lambda number: 500 * number),
    ],
)
def test_times_are_found_under_the_names_that_others_give_them_in_seconds_or_milliseconds(
    folder_with_manifest, name_of_column, time_of_frame
):
    """Each row of a table is a frame of a clip, of which there are two a second.

    Frame n of a clip, from 0 on, is at n / 2 seconds, which are 500 n milliseconds. No option says which
    column has the times.
    """
    table = frame_table(**{name_of_column: time_of_frame})
    shuffled(table).to_csv(folder_with_manifest / "all.csv", index=False)

    assert import_frames(folder_with_manifest, "all.csv") == 0

    check_frames(folder_with_manifest, times=TIMES_OF_TWO_A_SECOND, truth=EXPECTED_ARRAYS)


def test_times_of_frames_after_two_hours_are_imported_in_double_precision(folder_with_manifest):
    """A table has a row for each frame, two a second, of which the first of each clip is at 7200.04 s.

    In single precision this would be rounded to steps of half a millisecond, and become 7200.0401. The times
    in the store must be equal to those in the table (`check_frames` compares them, and the features).
    """
    start_s = 7200.04
    table = frame_table(time_s=lambda numbers: start_s + numbers / 2)
    table.to_csv(folder_with_manifest / "all.csv", index=False)

    assert import_frames(folder_with_manifest, "all.csv") == 0

    late_times_s = {clip: start_s + times_s for clip, times_s in TIMES_OF_TWO_A_SECOND.items()}
    check_frames(folder_with_manifest, times=late_times_s, truth=EXPECTED_ARRAYS)


def test_rows_are_ordered_by_frame_index_which_is_kept(folder_with_manifest):
    """Every twelfth frame of a video was taken; the option --rate says that these are two a second.

    The clip "v_é" has nine of them.
    """
    table = frame_table(frame_index=lambda numbers: 12 * numbers)
    shuffled(table).to_csv(folder_with_manifest / "all.csv", index=False)

    assert import_frames(folder_with_manifest, "all.csv", "--rate", "2") == 0

    group = check_frames(folder_with_manifest, TIMES_OF_TWO_A_SECOND, EXPECTED_ARRAYS)
    assert group.read("v_é", "frame_index").tolist() == [0, 12, 24, 36, 48, 60, 72, 84, 96]


def test_a_column_called_frame_orders_the_rows_of_openface_and_gives_no_indices(folder_with_manifest):
    """OpenFace's table of a face has frames counted from 1 on, times, and whether the face was found.

    Indices in the video begin at 0. Since a column `frame` may count otherwise, they stay unknown (-1).
    """
    table = frame_table(success=1, timestamp=at_two_a_second, frame=lambda numbers: numbers + 1)
    shuffled(table).to_csv(folder_with_manifest / "all.csv", index=False)

    assert import_frames(folder_with_manifest, "all.csv", "--columns", "f[0-9]*") == 0

    group = check_frames(folder_with_manifest, TIMES_OF_TWO_A_SECOND, EXPECTED_ARRAYS)
    assert (group.frame_index == -1).all()


def test_rows_without_times_and_numbers_keep_the_order_of_the_table_with_a_note(folder_with_manifest, capfd):
    """The table has clip_id and features alone, so the times of the frames are unknown.

    One clip has 9 frames of 6 numbers. In an array such a shape would be doubted, with a note on --axes; in a
    table rows are surely frames.
    """
    frame_table().to_csv(folder_with_manifest / "all.csv", index=False)

    assert import_frames(folder_with_manifest, "all.csv") == 0

    notes = capfd.readouterr().err
    assert "in the order of the table" in notes
    assert "--axes" not in notes
    check_frames(folder_with_manifest, NO_TIMES, EXPECTED_ARRAYS)


def test_the_order_of_axes_is_not_asked_of_a_table(folder_with_manifest):
    """The rows of a table are frames, so the option --axes is refused (exit code 2: a wrong command)."""
    frame_table().to_csv(folder_with_manifest / "all.csv", index=False)

    assert import_frames(folder_with_manifest, "all.csv", "--axes", "DT") == 2


def test_the_option_times_takes_the_named_column_and_no_other(folder_with_manifest):
    """Column shown_at has the times; column time, which would be found by its name, is 7.0 in all rows."""
    table = frame_table(shown_at=at_two_a_second, frame=number_of_frame, time=7.0)
    shuffled(table).to_parquet(folder_with_manifest / "all.parquet")

    assert (
        import_frames(folder_with_manifest, "all.parquet", "--times", "shown_at", "--columns", "f[0-9]*") == 0
    )
    check_frames(folder_with_manifest, TIMES_OF_TWO_A_SECOND, EXPECTED_ARRAYS)


def test_vectors_in_one_column_of_lists_are_imported(folder_with_manifest):
    """The table has clip_id, time and vector: a cell of the last is a list of all features of a frame."""
    table = frame_table(time=at_two_a_second)
    table["vector"] = list(table[COLUMNS].to_numpy())
    table = table.drop(columns=COLUMNS)
    shuffled(table).to_parquet(folder_with_manifest / "all.parquet")

    assert import_frames(folder_with_manifest, "all.parquet") == 0
    check_frames(folder_with_manifest, TIMES_OF_TWO_A_SECOND, EXPECTED_ARRAYS)


def save_as_npz(path, arrays):
    np.savez(path, **arrays)


def save_as_hdf5(path, arrays):
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values


@pytest.mark.parametrize(("name", "save"), [("all.npz", save_as_npz), ("all.h5", save_as_hdf5)])
def test_arrays_with_a_row_for_each_frame_are_imported(folder_with_manifest, name, save):
    """A file has three arrays of all frames: their vectors, the ids of their clips, and their times.

    The frames, two a second, are in a random order, the same in all three.
    """
    table = shuffled(frame_table(time_s=at_two_a_second))
    arrays = {
        "features": table[COLUMNS].to_numpy(),
        "ids": table["clip_id"].to_list(),
        "timestamps": table["time_s"].to_numpy(),
    }
    save(folder_with_manifest / name, arrays)

    assert import_frames(folder_with_manifest, name) == 0

    check_frames(folder_with_manifest, times=TIMES_OF_TWO_A_SECOND, truth=EXPECTED_ARRAYS)


def test_a_matrix_is_imported_by_a_file_with_an_id_for_each_frame(folder_with_manifest):
    """Line n of ids.txt is the clip of which row n of the matrix is a frame. Frames are two a second."""
    table = frame_table()
    np.save(folder_with_manifest / "all.npy", table[COLUMNS].to_numpy())
    (folder_with_manifest / "ids.txt").write_text("\n".join(table["clip_id"]), encoding="utf-8")

    assert (
        import_frames(
            folder_with_manifest, "all.npy", "--ids", folder_with_manifest / "ids.txt", "--rate", "2"
        )
        == 0
    )
    check_frames(folder_with_manifest, TIMES_OF_TWO_A_SECOND, EXPECTED_ARRAYS)


def with_cell(column, row, value):
    """Return a function that puts a value into a cell of a table of frames, in whatever type."""

    def change(table):
        table[column] = table[column].astype(object)
        table.loc[row, column] = value
        return table

    return change


def labels_alone(table):
    return table[["clip_id", "frame"]].assign(y0=1, y1=0, time=table["stamp"] + 0.25)


def first_row_of_each_clip(table):
    return table.groupby("clip_id", as_index=False).first()[["clip_id", *COLUMNS]]


OF_FEATURES = ("--columns", "f[0-9]*")
WRONG_TABLES = {
    "a frame twice": (with_cell("frame", 1, 0), OF_FEATURES, "rows 1 and 2"),
    "no number of a frame": (with_cell("frame", 2, ""), OF_FEATURES, "'frame'"),
    "a name of a frame": (with_cell("frame", 2, "img_2.jpg"), OF_FEATURES, "'frame'"),
    "times that fall": (with_cell("stamp", 3, 0.1), ("--times", "stamp", *OF_FEATURES), "time_s falls"),
    "no number as a time": (with_cell("stamp", 3, "nan"), ("--times", "stamp", *OF_FEATURES), "'stamp'"),
    "frames that are not finite": (with_cell("f1", 3, "nan"), OF_FEATURES, "not finite"),
    "two times": (lambda table: table.assign(time=table["stamp"], timestamp=1.0), (), "--columns"),
    "a gap, and a rate": (with_cell("frame", 4, 9), ("--rate", "2", *OF_FEATURES), "--rate"),
    "no such column": (lambda table: table, ("--times", "seconds", *OF_FEATURES), "--times"),
    "labels of whole numbers": (labels_alone, (), "labels"),
    "a row for each clip": (first_row_of_each_clip, (), "--array pooled"),
}
"""What is wrong with a table -> what makes it so, the options of its import, and what the refusal says."""


@pytest.mark.parametrize(("change", "options", "message"), WRONG_TABLES.values(), ids=WRONG_TABLES)
def test_a_table_whose_rows_cannot_be_taken_for_frames_is_refused_in_a_line(
    folder_with_manifest, capfd, change, options, message
):
    """A good table has a row for each frame: its clip, its number, its time, and the features f0 to f5.

    `change` puts something wrong into it. The refusal names the file and what is wrong, and no store is left.
    """
    good_table = frame_table(stamp=at_two_a_second, frame=number_of_frame)
    wrong_table = change(good_table)
    wrong_table.to_csv(folder_with_manifest / "all.csv", index=False)

    exit_code = import_frames(folder_with_manifest, "all.csv", *options)

    assert exit_code == 1
    *_, last_line = capfd.readouterr().err.splitlines()
    assert message in last_line
    assert "all.csv" in last_line
    files_of_store = list(folder_with_manifest.glob("lab*"))
    assert files_of_store == []


def test_several_rows_of_a_clip_are_refused_as_its_vector(folder_with_manifest, capfd):
    """Without an option, a table has one vector a clip; the refusal names the option for frames."""
    frame_table().to_csv(folder_with_manifest / "all.csv", index=False)

    assert import_as_lab(folder_with_manifest, "all.csv", "--from", "table") == 1
    assert "--array frames" in capfd.readouterr().err
