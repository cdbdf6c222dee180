"""Features of any number of frames a clip come in as published: values and times equal the arrays by hand."""

from pathlib import Path

import numpy as np
import pytest

from obygaze_features.store import open_store
from tests.command import obygaze

from .lab_features import check_frames, import_frames, values_of, write_films

N_FEATURES = 16
LENGTHS = {"v_one": 5, "v_two": 7, "v_three": 9}
"""Clip -> number of its frames."""
EXPECTED_ARRAYS = {clip: values_of(clip, (length, N_FEATURES)) for clip, length in LENGTHS.items()}
TWO_A_SECOND = {clip: np.arange(length) / 2 for clip, length in LENGTHS.items()}
"""Times of two frames a second."""
NO_TIMES = {clip: np.full(length, np.nan) for clip, length in LENGTHS.items()}


@pytest.fixture
def folder_with_manifest(tmp_path):
    """A folder with the manifest films.csv of the clips."""
    return write_films(tmp_path, EXPECTED_ARRAYS)


def save_clips(folder, truth, change=np.asarray, **beside):
    """Save a file for each clip in the folder `all`: its features, changed, and arrays beside them.

    `beside` is the name of an array -> a function that makes it from the number of frames. Where there are
    any, the files are archives (.npz), and else single arrays (.npy).
    """
    (folder / "all").mkdir()
    for clip, values in truth.items():
        if beside:
            arrays = {name: make(len(values)) for name, make in beside.items()}
            np.savez(folder / "all" / f"{clip}.npz", features=change(values), **arrays)
        else:
            np.save(folder / "all" / f"{clip}.npy", change(values), allow_pickle=True)


# --- the layouts of the field: what makes the files, and how they are imported
def one_npy_a_video(folder):
    save_clips(folder, EXPECTED_ARRAYS)
    return ("all", "npy"), NO_TIMES


def video_features(folder):
    """Features, frames per second and times of a video in files of their own."""
    for clip, values in EXPECTED_ARRAYS.items():
        np.save(folder / f"{clip}_resnet.npy", values)
        np.save(folder / f"{clip}_fps.npy", np.float64(25))
        np.save(folder / f"{clip}_timestamps_ms.npy", 40.0 * np.arange(len(values)))
    times = {clip: 40.0 * np.arange(length) / 1000 for clip, length in LENGTHS.items()}
    return (".", "npy", "--pattern", "{video}_resnet", "--times", "{video}_timestamps_ms"), times


def moment_detr(folder):
    """A .npz a video, with an array `features`, one vector for every two seconds."""
    for clip, values in EXPECTED_ARRAYS.items():
        np.savez(folder / f"{clip}.npz", features=values)
    times = {clip: 2.0 * np.arange(length) for clip, length in LENGTHS.items()}
    return (".", "npy", "--rate", "0.5"), times


def times_beside(folder):
    """Milliseconds of two frames a second, in an array of another name beside the features."""
    save_clips(folder, EXPECTED_ARRAYS, timestamps_ms=lambda n_frames: 500 * np.arange(n_frames))
    return ("all", "npy", "--times", "timestamps_ms"), TWO_A_SECOND


def one_dict_of_tensors(folder):
    torch = pytest.importorskip("torch")
    torch.save({clip: torch.tensor(values) for clip, values in EXPECTED_ARRAYS.items()}, folder / "all.pt")
    return ("all.pt", "pth", "--rate", "2"), TWO_A_SECOND


def lists_of_lists(folder):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    lists = pa.array(
        [values.tolist() for values in EXPECTED_ARRAYS.values()], pa.list_(pa.list_(pa.float32()))
    )
    parquet.write_table(
        pa.table({"clip_id": list(EXPECTED_ARRAYS), "features": lists}), folder / "all.parquet"
    )
    return ("all.parquet", "table", "--rate", "2"), TWO_A_SECOND


LAYOUTS = [one_npy_a_video, video_features, moment_detr, times_beside, one_dict_of_tensors, lists_of_lists]


@pytest.mark.parametrize("write_layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_frames_of_a_layout_of_the_field_are_imported_with_its_times(
    folder_with_manifest, capfd, write_layout
):
    """`write_layout` writes the features of three clips as a well-known tool does, such as C3D's.

    They have 5, 7 and 9 frames of 16 numbers. From these it is plain which axis is time, so that the import
    does not advise to name the axes. Frames and their times must be those that were written.
    """
    source_kind_and_options, times = write_layout(folder_with_manifest)

    assert import_frames(folder_with_manifest, *source_kind_and_options) == 0

    output = capfd.readouterr()
    check_frames(folder_with_manifest, times, EXPECTED_ARRAYS)
    assert "5 to 9 frames of 16 numbers" in output.out
    assert "--axes" not in output.err


def test_an_exported_store_of_frames_is_imported_again_unchanged(folder_with_manifest):
    """A store is imported, exported to HDF5 and imported again: frames, times and digests are the same."""
    save_clips(folder_with_manifest, EXPECTED_ARRAYS)
    assert import_frames(folder_with_manifest, "all", "npy", "--rate", "2") == 0

    assert (
        obygaze(
            "store", "export", folder_with_manifest / "lab", folder_with_manifest / "lab.h5", "--to", "hdf5"
        )
        == 0
    )
    (folder_with_manifest / "lab-1.0.0").rename(folder_with_manifest / "first-1.0.0")
    assert import_frames(folder_with_manifest, "lab.h5", "hdf5") == 0

    check_frames(folder_with_manifest, TWO_A_SECOND, EXPECTED_ARRAYS)
    first = open_store(folder_with_manifest / "first")["lab"]
    again = open_store(folder_with_manifest / "lab")["lab"]
    assert again.digests("frames") == first.digests("frames")


def test_arrays_of_whole_numbers_are_imported_only_if_a_real_data_type_is_named(folder_with_manifest):
    """Each clip has a file of whole numbers of a byte (int8), in the folder `all`.

    They may be features, which YouTube-8M keeps in this form, or labels. So the import is refused, even if
    all arrays are asked for (--columns "*"). With --dtype float16 they are imported as real numbers of equal
    value; times of the frames are not known.
    """
    whole_numbers = {clip: (9 * values).astype(np.int8) for clip, values in EXPECTED_ARRAYS.items()}
    save_clips(folder_with_manifest, whole_numbers)
    all_arrays = ("--columns", "*")

    exit_code_without_type = import_frames(folder_with_manifest, "all", "npy", *all_arrays)
    exit_code_with_type = import_frames(folder_with_manifest, "all", "npy", *all_arrays, "--dtype", "float16")

    assert exit_code_without_type == 1
    assert exit_code_with_type == 0
    as_float16 = {clip: values.astype(np.float16) for clip, values in whole_numbers.items()}
    check_frames(folder_with_manifest, NO_TIMES, as_float16)


def test_clips_of_equal_numbers_of_frames_make_a_store_of_format_1_0(folder_with_manifest):
    """Only different numbers of frames need version 1.3, which older readers cannot read."""
    save_clips(folder_with_manifest, {clip: values_of(clip, (4, N_FEATURES)) for clip in LENGTHS})
    assert import_frames(folder_with_manifest, "all", "npy") == 0

    store = open_store(folder_with_manifest / "lab")
    assert store.attributes["spec_version"] == "1.0"
    assert not store["lab"].ragged


def test_clips_are_imported_if_only_the_last_has_another_number_of_frames(folder_with_manifest):
    """In the order of their ids, two clips have 4 frames, and then "v_two" has 6.

    The import reads clip by clip. So it begins a stage for clips of 4 frames each, and must begin again, for
    clips of any number of frames, when it has read the last one. All frames come into the store, and no
    folder of the import (*.importing) is left behind.
    """
    lengths = {"v_one": 4, "v_three": 4, "v_two": 6}
    truth = {clip: values_of(clip, (length, N_FEATURES)) for clip, length in lengths.items()}
    save_clips(folder_with_manifest, truth)

    assert import_frames(folder_with_manifest, "all", "npy") == 0
    no_times = {clip: np.full(length, np.nan) for clip, length in lengths.items()}
    check_frames(folder_with_manifest, no_times, truth)
    assert not list(folder_with_manifest.glob("*.importing"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frames: frames[:, :4], "--axes DT"),
        (lambda frames: frames.T, "--axes DT"),
        (lambda frames: frames[:0], "empty"),
        (lambda frames: frames[0], "[1, 16]"),
    ],
    ids=["fewer numbers", "turned", "no frames", "one vector"],
)
def test_frames_of_a_clip_that_do_not_fit_the_others_are_refused_by_file(
    folder_with_manifest, capfd, change, message
):
    """Three clips have 5, 7 and 9 frames of 16 numbers, in a file each; those of the clip v_two are changed.

    An array with its axes turned might be meant as [features, frames], which the option --axes DT says.
    """
    save_clips(folder_with_manifest, EXPECTED_ARRAYS)
    np.save(folder_with_manifest / "all" / "v_two.npy", change(EXPECTED_ARRAYS["v_two"]))

    exit_code = import_frames(folder_with_manifest, "all", "npy")

    assert exit_code == 1
    refusal = capfd.readouterr().err
    assert message in refusal
    assert ".npy" in refusal
    files_of_store = list(folder_with_manifest.glob("lab*"))
    assert files_of_store == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--array", "tokens", "--dtype", "float16"), "shape"),
        (("--times", "seconds"), "seconds"),
        (("--times", "{video}_ms"), "--times"),
    ],
    ids=["tokens of unlike numbers", "no such array of times", "no such file of times"],
)
def test_options_that_do_not_fit_the_frames_are_refused_by_file(
    folder_with_manifest, capfd, options, message
):
    """Each clip has a file of frames alone, as many as it has; tokens must be as many for all clips."""
    save_clips(folder_with_manifest, EXPECTED_ARRAYS)

    assert import_frames(folder_with_manifest, "all", "npy", *options) == 1
    refusal = capfd.readouterr().err
    assert message in refusal
    assert ".npy" in refusal
    assert not list(folder_with_manifest.glob("lab*"))


def test_fewer_times_than_frames_are_refused_by_file(folder_with_manifest, capfd):
    """The file of each clip has its frames, and an array `seconds` that is shorter by one."""
    save_clips(folder_with_manifest, EXPECTED_ARRAYS, seconds=lambda n_frames: np.arange(n_frames - 1.0))

    assert import_frames(folder_with_manifest, "all", "npy", "--times", "seconds") == 1
    assert "v_one.npz" in capfd.readouterr().err


# --- shapes of every kind: read rightly, or refused in a line that names the file
ONE_FRAME = {clip: values[:1] for clip, values in EXPECTED_ARRAYS.items()}
SQUARE = {clip: values_of(clip, (N_FEATURES, N_FEATURES)) for clip in LENGTHS}
SHAPES_READ = {
    "[1, D]": (np.asarray, (), ONE_FRAME),
    "[T, 1, D], one frame among them": (
        lambda values: values[:, np.newaxis],
        (),
        EXPECTED_ARRAYS | {"v_one": EXPECTED_ARRAYS["v_one"][:1]},
    ),
    "[D, T], as many of both": (lambda values: values.T, ("--axes", "DT"), SQUARE),
    "the other order of bytes": (lambda values: values.astype(">f4"), (), EXPECTED_ARRAYS),
    "columns first": (np.asfortranarray, (), EXPECTED_ARRAYS),
}
"""Shape as it is saved -> what changes features so, the options of the import, and the features."""


def assert_refused_in_a_line(folder, capfd, file):
    """Assert that an import of the folder `all` is refused in one line that names a file."""
    assert import_frames(folder, "all", "npy") == 1
    *_, line = capfd.readouterr().err.splitlines()
    assert line.startswith("obygaze: error: ")
    assert file in line
    assert not list(folder.glob("lab*"))


@pytest.mark.parametrize(("change", "options", "truth"), SHAPES_READ.values(), ids=SHAPES_READ)
def test_frames_of_every_shape_are_read_with_their_values(folder_with_manifest, change, options, truth):
    """Tools save a clip's frames, T vectors of D numbers, as [T, D], [T, 1, D], [D, T] and otherwise.

    `truth` has the frames [T, D] of each clip; `change` turns them into the array that is saved, for which
    the import may need `options`. The store must have the frames of `truth`, bit by bit.
    """
    save_clips(folder_with_manifest, truth, change)

    assert import_frames(folder_with_manifest, "all", "npy", *options) == 0

    group = open_store(folder_with_manifest / "lab")["lab"]
    for clip, values in truth.items():
        assert group.read(clip, "frames").tobytes() == values.tobytes()


NO_FRAMES = {
    "one number": lambda values: values[0, 0],
    "a dict of Python": lambda values: np.array({"features": values}),
    "complex numbers": lambda values: values.astype(np.complex64),
    "[1, D, 1, 1] without axes": lambda values: values[:1, :, np.newaxis, np.newaxis],
}
"""What cannot be the frames of a clip, real numbers [frames, D] -> how it is made from such frames."""


@pytest.mark.parametrize("make_from_frames", NO_FRAMES.values(), ids=NO_FRAMES)
def test_files_whose_arrays_cannot_be_frames_are_refused_in_a_line(
    folder_with_manifest, capfd, make_from_frames
):
    """Each of three clips has a file, with something that is not an array of real numbers [frames, D].

    The import ends with one line that names the first of the files, that of "v_one", and writes no store.
    """
    save_clips(folder_with_manifest, EXPECTED_ARRAYS, change=make_from_frames)

    assert_refused_in_a_line(folder_with_manifest, capfd, file="v_one.npy")


def test_axes_of_equal_length_are_imported_with_a_note(folder_with_manifest, capfd):
    """Nothing tells 16 frames of 16 numbers from their transpose, for which --axes DT would be right."""
    save_clips(folder_with_manifest, SQUARE)

    assert import_frames(folder_with_manifest, "all", "npy") == 0

    assert "--axes DT" in capfd.readouterr().err


def test_arrays_named_time_s_and_frame_index_are_imported_as_times_and_numbers_of_frames(
    folder_with_manifest,
):
    """The file of a clip has its frames, two a second, and beside them the arrays `time_s` and `frame_index`.

    A store has arrays of these names, so that no option need say what they are: the times in the store are
    0, .5, 1 s and so on, and the seven frames of clip "v_two" have the numbers 0 to 6.
    """
    save_clips(
        folder_with_manifest,
        EXPECTED_ARRAYS,
        time_s=lambda n_frames: np.arange(n_frames, dtype=np.float32) / 2,
        frame_index=np.arange,
    )

    assert import_frames(folder_with_manifest, "all", "npy") == 0

    group = check_frames(folder_with_manifest, TWO_A_SECOND, EXPECTED_ARRAYS)
    assert group.read("v_two", "frame_index").tolist() == [0, 1, 2, 3, 4, 5, 6]


ODD_TIMES = {
    "falling": {"time_s": lambda n: np.arange(n)[::-1] / 2},
    "one too many": {"time_s": lambda n: np.arange(n + 1) / 2},
    "some unknown": {"time_s": lambda n: np.where(np.arange(n) == 1, np.nan, np.arange(n))},
    "without an end": {"time_s": lambda n: np.where(np.arange(n) == n - 1, np.inf, np.arange(n))},
    "spans": {"time_s": lambda n: np.zeros((n, 2))},
    "half indices": {"frame_index": lambda n: np.arange(n) / 2},
    "negative indices": {"frame_index": lambda n: np.arange(n) - 2},
}


@pytest.mark.parametrize("beside", ODD_TIMES.values(), ids=ODD_TIMES)
def test_impossible_times_and_indices_are_refused_in_a_line(folder_with_manifest, capfd, beside):
    """Beside the n frames of a clip, its file has an array of times, or of indices in the video.

    There must be n, times in rising order and indices of whole numbers from 0 on.
    """
    save_clips(folder_with_manifest, EXPECTED_ARRAYS, **beside)
    assert_refused_in_a_line(folder_with_manifest, capfd, "v_one.npz")


def test_a_rate_needs_frames_at_even_distances(folder_with_manifest, capfd):
    """The frames 0, 1, 4, 9, ... were taken, which no rate gives."""
    save_clips(folder_with_manifest, EXPECTED_ARRAYS, frame_index=lambda n_frames: np.arange(n_frames) ** 2)

    assert import_frames(folder_with_manifest, "all", "npy", "--rate", "2") == 1
    assert "--rate" in capfd.readouterr().err


def test_whole_numbers_beside_times_may_still_be_labels(folder_with_manifest, capfd):
    """Each file has an array y of ones, as many rows as there are times.

    They could be features or labels, so they are not converted, although --dtype asks for it.
    """
    (folder_with_manifest / "all").mkdir()
    for clip, length in LENGTHS.items():
        labels = np.ones((length, 2), np.int8)
        np.savez(folder_with_manifest / "all" / f"{clip}.npz", y=labels, time_s=TWO_A_SECOND[clip] + 0.25)

    assert import_frames(folder_with_manifest, "all", "npy", "--dtype", "float32") == 1
    assert "labels" in capfd.readouterr().err


def test_a_file_of_torch_that_holds_more_than_tensors_is_refused_and_not_run(folder_with_manifest, capfd):
    """A file of PyTorch can hold code that runs when it is loaded; here it would make a file "ran".

    The import is refused with the name of the file, and there is no file "ran".
    """
    torch = pytest.importorskip("torch")

    class Runs:
        def __reduce__(self):
            return Path.touch, (folder_with_manifest / "ran",)

    torch.save({"v_one": Runs()}, folder_with_manifest / "all.pt")

    assert import_frames(folder_with_manifest, "all.pt", "pth") == 1
    assert "all.pt" in capfd.readouterr().err
    assert not (folder_with_manifest / "ran").exists()
