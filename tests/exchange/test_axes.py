"""Axes of frames come in as they are said to be; what nobody said is shown, and doubted where unlikely."""

import re

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.axes import reorder_axes
from obygaze_features.exchange.import_items import ImportItem
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store import PlannedClip, open_store, verify
from tests.command import obygaze

from .lab_features import imported, row

T = 7
D = 16
TRUTH = {clip: row(clip, (T, D)) for clip in "abc"}
SAVED_AS = {
    "TD": [lambda values: values, lambda values: values[np.newaxis]],
    "DT": [lambda values: values.T, lambda values: values.T[np.newaxis]],
    "T1D": [lambda values: values[:, np.newaxis]],
    "TD11": [
        lambda values: values[:, :, np.newaxis, np.newaxis],
        lambda values: values.reshape(T, D, 1, 1, 1),
    ],
}
ALL_FORMS = [(axes, form) for axes, forms in SAVED_AS.items() for form in forms]


@pytest.fixture
def save_as(tmp_path):
    """Make a manifest of three clips, and what saves their features as a folder of .npy files."""
    starts = {"a": 0.0, "b": 10.0, "c": 20.0}
    clips = [Clip(clip, "tt1", f"{clip}.mp4", starts[clip], starts[clip] + 5) for clip in TRUTH]
    write_manifest(Manifest(clips, tmp_path), tmp_path / "films.csv")

    def save(form):
        (tmp_path / "npy").mkdir()
        for clip, values in TRUTH.items():
            np.save(tmp_path / "npy" / f"{clip}.npy", form(values))
        return tmp_path

    return save


def import_frames(folder, *options):
    settings = ("--from", "npy", "--array", "frames", "--backbone", "lab", "--licence", "MIT")
    return obygaze(
        "store", "import", folder / "films.csv", folder / "npy", folder / "lab", *settings, *options
    )


@pytest.mark.parametrize(("axes", "form"), ALL_FORMS)
def test_frames_come_in_bit_for_bit_from_the_axes_that_were_said(save_as, capfd, axes, form):
    folder = save_as(form)
    assert import_frames(folder, "--axes", axes) == 0
    output = capfd.readouterr()
    store = open_store(folder / "lab")
    for clip, values in TRUTH.items():
        assert store["lab"].read(clip, "frames").tobytes() == values.tobytes()
    assert "7 frames of 16 numbers" in output.out
    assert "--axes" not in output.err
    assert verify(store, "full").ok


@pytest.mark.parametrize(
    "form", [lambda values: values[:, np.newaxis], lambda values: values[..., None, None]]
)
def test_a_single_axis_of_length_one_is_left_out_without_an_option(save_as, form):
    folder = save_as(form)
    assert import_frames(folder) == 0
    assert np.array_equal(open_store(folder / "lab")["lab"].read("a", "frames"), TRUTH["a"])


def test_an_array_of_more_frames_than_numbers_names_the_option_axes(save_as, capfd):
    folder = save_as(lambda values: values.T)
    assert import_frames(folder) == 0
    output = capfd.readouterr()
    assert "16 frames of 7 numbers" in output.out
    assert "--axes DT" in output.err
    assert import_frames(folder, "--axes", "TD", "--store-version", "1.0.1") == 0
    assert "--axes" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((7, 16), "T1D"),
        ((7, 16), "TD11"),
        ((7, 16, 1), "TD11"),
        ((7, 2, 16), "T1D"),
        ((7, 16, 1, 2), "TD11"),
        ((2, 7, 16), "DT"),
        ((16,), "TD"),
        ((7, 3, 16), None),
        ((1, 1, 16, 1), None),
    ],
)
def test_an_array_whose_axes_are_not_those_of_the_option_is_refused(shape, axes):
    with pytest.raises(StoreError, match=r"a\.npy, frames: "):
        reorder_axes(np.zeros(shape, np.float32), 2, axes, "a.npy, frames")


@pytest.mark.parametrize(
    ("shape", "axes"), [((1, 1, 16), "T1D"), ((1, 16, 1, 1), "TD11"), ((16, 1), "DT"), ((1, 1, 16), None)]
)
def test_the_axis_of_a_single_frame_is_kept(shape, axes):
    assert reorder_axes(np.zeros(shape, np.float32), 2, axes, "a.npy").shape == (1, 16)


@pytest.mark.parametrize(("axes", "form"), ALL_FORMS)
def test_a_refusal_of_frames_as_vectors_names_the_options_that_read_them(save_as, capfd, axes, form):
    folder = save_as(form)
    assert import_frames(folder, "--array", "pooled") == 1
    refusal = capfd.readouterr().err
    assert "c.npy" not in refusal  # it ends at the first clip
    assert import_frames(folder, *named_for(refusal, "7 frames of 16 numbers")) == 0
    store = open_store(folder / "lab")
    for clip, values in TRUTH.items():
        assert store["lab"].read(clip, "frames").tobytes() == values.tobytes()
    assert f"--axes {axes}" in refusal or "--axes TD" in refusal


def named_for(refusal, reading):
    """Return the options that a refusal names for a reading of the array."""
    return re.search(rf"{reading} are ((?:--[a-z]+ \w+ ?)+)", refusal)[1].split()


def test_one_vector_a_clip_imported_as_frames_is_refused_with_the_option_for_vectors(save_as, capfd):
    folder = save_as(lambda values: values[0])
    for options in ((), ("--array", "tokens"), ("--axes", "TD")):
        assert import_frames(folder, *options) == 1
        assert "--array pooled" in capfd.readouterr().err
    assert import_frames(folder, "--array", "pooled") == 0


@pytest.mark.parametrize("array", ["pooled", "frames", "tokens"])
@pytest.mark.parametrize("shape", [(7, 4, 4, 16), (2, 7, 16)])
def test_a_refusal_of_axes_that_no_option_reads_names_none(save_as, capfd, array, shape):
    folder = save_as(lambda _: np.ones(shape, np.float16))
    assert import_frames(folder, "--array", array) == 1
    refusal = capfd.readouterr().err
    assert str(list(shape)) in refusal
    assert not re.search(r"--axes (TD|DT|T1D)", refusal)


def test_frames_in_an_array_named_pooled_are_refused(save_as, capfd):
    folder = save_as(lambda values: values)
    for clip, values in TRUTH.items():
        (folder / "npy" / f"{clip}.npy").unlink()
        np.savez(folder / "npy" / f"{clip}.npz", pooled=values)
    assert import_frames(folder) == 1
    assert "a.npz: the axes of pooled are [7, 16]" in capfd.readouterr().err


def test_one_file_of_the_frames_of_all_clips_is_refused_with_the_command_that_reads_it(save_as, capfd):
    folder = save_as(lambda values: values)
    np.save(folder / "all.npy", np.stack(list(TRUTH.values())))
    (folder / "ids.txt").write_text("".join(f"{clip}\n" for clip in TRUTH), encoding="utf-8")
    settings = ("--backbone", "lab", "--licence", "MIT")
    where = (folder / "films.csv", folder / "all.npy", folder / "lab")
    assert obygaze("store", "import", *where, "--from", "npy", *settings) == 1
    words = re.search(r"--from table .*", capfd.readouterr().err)[0].replace("FILE", str(folder / "ids.txt"))
    assert obygaze("store", "import", *where, *words.split(), *settings) == 0
    assert open_store(folder / "lab")["lab"].read("b", "frames").tobytes() == TRUTH["b"].tobytes()


def test_axes_of_clips_that_have_one_vector_are_refused(save_as):
    folder = save_as(lambda values: values[0])
    assert import_frames(folder, "--array", "pooled", "--axes", "DT") == 1


def test_times_follow_from_a_rate_and_the_start_of_the_clip(save_as, capfd):
    folder = save_as(lambda values: values)
    assert import_frames(folder, "--rate", "8") == 0
    assert "8 a second" in capfd.readouterr().out
    group = open_store(folder / "lab")["lab"]
    by_hand = [[start + frame / 8 for frame in range(T)] for start in (0.0, 10.0, 20.0)]
    assert group.time_s.tolist() == by_hand
    assert (group.frame_index == -1).all()
    assert group.provenance["sampling"]["per_second"] == 8
    assert verify(open_store(folder / "lab"), "full").ok


@pytest.mark.parametrize("rate", ["0", "-1", "nan", "inf"])
def test_a_rate_that_is_none_is_refused(save_as, rate):
    assert import_frames(save_as(lambda values: values), "--rate", rate) == 2


def test_times_in_a_file_and_a_rate_are_refused_together(tmp_path):
    times = {"frames": TRUTH["a"], "time_s": np.arange(float(T))}
    items = {"a": ImportItem("a.npz", lambda: times)}
    with pytest.raises(StoreError, match=r"a\.npz.*--rate"):
        imported(tmp_path, items, "frames", clips=[PlannedClip("a", "m")], per_second=8)
