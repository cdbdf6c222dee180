"""Axes of imported arrays are taken as an option states them; without it they are guessed, and shown."""

import re

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.axes import reorder_axes
from obygaze_features.exchange.import_items import ImportItem
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store import PlannedClip, open_store, verify

from .lab_features import import_as_lab, import_store, values_of

N_FRAMES = 7
N_FEATURES = 16
EXPECTED_ARRAYS = {clip: values_of(clip, (N_FRAMES, N_FEATURES)) for clip in "abc"}
SAVED_AS = {
    "TD": {"as it is": lambda values: values, "batch of one": lambda values: values[np.newaxis]},
    "DT": {
        "transposed": lambda values: values.T,
        "transposed, batch of one": lambda values: values.T[np.newaxis],
    },
    "T1D": {"an axis between": lambda values: values[:, np.newaxis]},
    "TD11": {
        "height and width of one": lambda values: values[:, :, np.newaxis, np.newaxis],
        "three axes of one": lambda values: values.reshape(N_FRAMES, N_FEATURES, 1, 1, 1),
    },
}
"""Option --axes (T: frames, D: features) -> what makes arrays of that order of [T, D]."""
FORMS_OF_AXES = [
    pytest.param(axes, form, id=f"{axes}, {name}")
    for axes, forms in SAVED_AS.items()
    for name, form in forms.items()
]


@pytest.fixture
def save_frames(tmp_path):
    """Save frames of clips a, b and c, in a form, as npy/CLIP.npy beside films.csv; gives the folder."""
    starts = {"a": 0.0, "b": 10.0, "c": 20.0}
    clips = [Clip(clip, "tt1", f"{clip}.mp4", starts[clip], starts[clip] + 5) for clip in EXPECTED_ARRAYS]
    write_manifest(Manifest(clips, tmp_path), tmp_path / "films.csv")

    def save(form=lambda values: values):
        (tmp_path / "npy").mkdir()
        for clip, values in EXPECTED_ARRAYS.items():
            np.save(tmp_path / "npy" / f"{clip}.npy", form(values))
        return tmp_path

    return save


def import_frames(folder, *options):
    """Import the saved frames into the store `lab`; gives the exit code."""
    return import_as_lab(folder, "npy", "--from", "npy", "--array", "frames", *options)


@pytest.mark.parametrize(
    "form",
    [lambda values: values[:, np.newaxis], lambda values: values[..., np.newaxis, np.newaxis]],
    ids=["between", "behind"],
)
def test_axes_of_length_one_are_left_out_without_an_option(save_frames, form):
    """Frames [7, 16] of each clip are saved as [7, 1, 16] or as [7, 16, 1, 1], and read as they were."""
    folder = save_frames(form)

    assert import_frames(folder) == 0

    assert np.array_equal(open_store(folder / "lab")["lab"].read("a", "frames"), EXPECTED_ARRAYS["a"])


def test_more_frames_than_features_are_noted_unless_their_axes_are_stated(save_frames, capfd):
    """The arrays are saved as [16 features, 7 frames] and read as 16 frames of 7 numbers.

    That is unusual, so the note names the option by which they are read the other way, DT. The option TD
    states that it is right.
    """
    folder = save_frames(lambda values: values.T)

    assert import_frames(folder) == 0
    output = capfd.readouterr()
    assert "16 frames of 7 numbers" in output.out
    assert "--axes DT" in output.err

    assert import_frames(folder, "--axes", "TD", "--store-version", "1.1.0") == 0
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
    ],
)
def test_an_array_whose_axes_are_not_those_of_the_option_is_refused(shape, axes):
    """The option names the axes of an array: T is that of frames, D that of features, 1 one of length one.

    The arrays have another number of axes, or a longer one where the option says 1. The message begins with
    the place of the array.
    """
    saved = np.zeros(shape, np.float32)
    frames_and_features = 2

    with pytest.raises(StoreError, match=r"a\.npy, frames: "):
        reorder_axes(saved, n_axes=frames_and_features, axes=axes, location="a.npy, frames")


@pytest.mark.parametrize("shape", [(7, 3, 16), (1, 1, 16, 1)])
def test_an_array_whose_axes_cannot_be_guessed_is_refused(shape):
    """Without an option axes of length one are left out, until two are left: those of frames and features.

    Of three longer axes none can be left out, and of three axes of length one it is unclear which one stays.
    """
    saved = np.zeros(shape, np.float32)
    frames_and_features = 2

    with pytest.raises(StoreError, match=r"a\.npy, frames: "):
        reorder_axes(saved, n_axes=frames_and_features, axes=None, location="a.npy, frames")


NO_OPTION = None
"""In place of the option --axes: the axes are guessed."""


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((1, 1, 16), "T1D"), ((1, 16, 1, 1), "TD11"), ((16, 1), "DT"), ((1, 1, 16), NO_OPTION)],
)
def test_the_axis_of_a_single_frame_is_kept(shape, axes):
    """An array of one frame of 16 features is read as [1, 16], in whatever order its axes were saved.

    Axes of length one that mean nothing are left out. That of the frames has length one here, too, and must
    stay. The option names the axes: T is that of frames, D that of features, and 1 means nothing.
    """
    features = np.arange(16, dtype=np.float32)
    saved = features.reshape(shape)
    frames_and_features = 2

    reordered = reorder_axes(saved, n_axes=frames_and_features, axes=axes, location="a.npy")

    assert reordered.tolist() == [features.tolist()]


@pytest.mark.parametrize(("axes", "form"), FORMS_OF_AXES)
def test_frames_imported_as_one_vector_are_refused_with_the_options_that_read_them(
    save_frames, capfd, axes, form
):
    """Each of the clips a, b and c has 7 frames of 16 numbers, and they are imported as one vector a clip.

    Labs save the axes of frames in different orders, such as TD, [frames, features], or DT, the other
    way round. The refusal names the options for either; with those for 7 frames the import works.
    """
    folder = save_frames(form)

    as_one_vector = ("--array", "pooled")
    assert import_frames(folder, *as_one_vector) == 1
    refusal = capfd.readouterr().err
    last_clip = "c.npy"  # the import has ended before it
    assert last_clip not in refusal

    named_options = options_named_for(refusal, "7 frames of 16 numbers")
    assert named_options[-2:] == ["--axes", axes]
    assert import_frames(folder, *named_options) == 0

    output = capfd.readouterr()
    assert "7 frames of 16 numbers" in output.out
    assert "--axes" not in output.err
    store = open_store(folder / "lab")
    for clip, frames in EXPECTED_ARRAYS.items():
        assert store["lab"].read(clip, "frames").tobytes() == frames.tobytes()
    assert verify(store, "full").ok


def options_named_for(refusal, reading):
    """Return the options that a refusal names for one of the readings of the array that it offers."""
    return re.search(rf"{reading} are ((?:--[a-z]+ \w+ ?)+)", refusal)[1].split()


@pytest.mark.parametrize("options", [(), ("--array", "tokens"), ("--axes", "TD")])
def test_vectors_imported_as_frames_are_refused_with_the_right_option(save_frames, capfd, options):
    """Each clip has one vector of 16 numbers, and the options say that it has several frames or tokens."""
    folder = save_frames(lambda values: values[0])

    assert import_frames(folder, *options) == 1

    assert "--array pooled" in capfd.readouterr().err
    assert import_frames(folder, "--array", "pooled") == 0


@pytest.mark.parametrize("array", ["pooled", "frames", "tokens"])
@pytest.mark.parametrize("shape", [(7, 4, 4, 16), (2, 7, 16)])
def test_an_array_that_no_order_of_axes_can_read_is_refused_without_naming_one(
    save_frames, capfd, array, shape
):
    """Axes of length one can be left out, but an array of a clip has three or four longer ones here.

    The refusal shows the shape, and proposes none of the values of --axes.
    """
    folder = save_frames(lambda _: np.ones(shape, np.float16))

    assert import_frames(folder, "--array", array) == 1

    refusal = capfd.readouterr().err
    assert str(list(shape)) in refusal
    assert not any(f"--axes {axes}" in refusal for axes in SAVED_AS)


def test_frames_in_an_array_of_an_npz_file_that_is_named_pooled_are_refused(save_frames, capfd):
    """The name says one vector of each clip, and the array has seven, of 16 numbers each."""
    folder = save_frames()
    for clip, values in EXPECTED_ARRAYS.items():
        (folder / "npy" / f"{clip}.npy").unlink()
        np.savez(folder / "npy" / f"{clip}.npz", pooled=values)

    assert import_frames(folder) == 1

    assert "a.npz: the axes of pooled are [7, 16]" in capfd.readouterr().err


def test_one_npy_of_all_clips_is_refused_with_the_right_options(save_frames, capfd):
    """A file of an array for all clips needs a list of their ids beside it.

    The refusal names options, with FILE in the place of that list; with these options the import works.
    """
    folder = save_frames()
    np.save(folder / "all.npy", np.stack(list(EXPECTED_ARRAYS.values())))
    (folder / "ids.txt").write_text("".join(f"{clip}\n" for clip in EXPECTED_ARRAYS), encoding="utf-8")

    assert import_as_lab(folder, "all.npy", "--from", "npy") == 1

    (named_options,) = re.findall(r"--from table .*", capfd.readouterr().err)
    options = named_options.replace("FILE", str(folder / "ids.txt")).split()
    assert import_as_lab(folder, "all.npy", *options) == 0
    assert open_store(folder / "lab")["lab"].read("b", "frames").tobytes() == EXPECTED_ARRAYS["b"].tobytes()


def test_the_option_axes_is_refused_for_vectors(save_frames):
    """A vector has one axis alone."""
    folder = save_frames(lambda values: values[0])
    assert import_frames(folder, "--array", "pooled", "--axes", "DT") == 1


def test_times_follow_from_a_rate_and_the_start_of_the_clip(save_frames, capfd):
    """Three clips of 7 frames begin at 0, 10 and 20 s. At 8 frames a second, frames are 0.125 s apart."""
    folder = save_frames()

    assert import_frames(folder, "--rate", "8") == 0

    assert "8 a second" in capfd.readouterr().out
    store = open_store(folder / "lab")
    assert store["lab"].time_s.tolist() == [
        [0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75],
        [10.0, 10.125, 10.25, 10.375, 10.5, 10.625, 10.75],
        [20.0, 20.125, 20.25, 20.375, 20.5, 20.625, 20.75],
    ]
    assert (store["lab"].frame_index == -1).all()  # the numbers of frames stay unknown
    assert store["lab"].provenance["sampling"]["per_second"] == 8
    assert verify(store, "full").ok


@pytest.mark.parametrize("rate", ["0", "-1", "nan", "inf"])
def test_a_rate_that_is_not_a_positive_number_is_refused(save_frames, rate):
    """A rate is a number of frames a second. The exit code 2 says that the command was typed wrongly."""
    exit_code = import_frames(save_frames(), "--rate", rate)

    assert exit_code == 2


def test_a_rate_of_frames_is_refused_if_the_file_of_a_clip_has_times(tmp_path):
    """The file a.npz has seven frames of a clip, and in `time_s` a time for each: one a second.

    The user also states a rate of 8 frames a second (--rate), by which frames would have other times. The
    import is refused, and names the file and the option.
    """
    frames_with_times = {"frames": EXPECTED_ARRAYS["a"], "time_s": np.arange(float(N_FRAMES))}
    items = {"a": ImportItem("a.npz", lambda: frames_with_times)}

    with pytest.raises(StoreError, match=r"a\.npz.*--rate"):
        import_store(tmp_path, items, "frames", clips=[PlannedClip("a", "m")], per_second=8)


@pytest.mark.parametrize(
    ("times", "others"),
    [
        (np.array(["0.0", "0.5", "1.0", "1.5", "2.0", "2.5", "3.0"]), {}),
        (np.arange(float(N_FRAMES)), {"time_s": np.arange(float(N_FRAMES))}),
        (None, {}),
    ],
    ids=["it holds texts", "the file says times already", "the file has none"],
)
def test_an_array_named_for_times_is_refused_if_it_cannot_be_used(tmp_path, times, others):
    """The option --times names the array `shown_at` of a file; the clip has seven frames."""
    arrays = {"frames": EXPECTED_ARRAYS["a"], **others}
    if times is not None:
        arrays["shown_at"] = times
    items = {"a": ImportItem("a.npz", lambda: arrays)}

    with pytest.raises(StoreError, match=r"a\.npz.*--times"):
        import_store(tmp_path, items, "frames", clips=[PlannedClip("a", "m")], times="shown_at")


def test_a_file_of_one_array_without_a_name_is_refused_with_the_other_use_of_the_option(save_frames, capfd):
    """`--times stamps` names the array of times in each file. But a .npy file holds one array without a name.

    The refusal says so, and that times may be in files of their own, which the option finds by a pattern.
    """
    folder = save_frames()
    assert import_frames(folder, "--times", "stamps") == 1
    assert "has no stamps (--times); it has one array without a name; " in capfd.readouterr().err


@pytest.mark.parametrize(("n_frames", "size"), [(1, "1 frame of 16 numbers"), (7, "7 frames of 16 numbers")])
def test_the_size_of_each_clip_is_said_in_words(save_frames, capfd, n_frames, size):
    """One frame is said in the singular."""
    folder = save_frames(lambda _: np.ones((n_frames, 16), np.float32))

    assert import_frames(folder) == 0

    assert f"each clip has: {size}" in capfd.readouterr().out


def test_a_doubt_about_axes_counts_one_number_in_the_singular(save_frames, capfd):
    """Seven rows of one number may be one row of seven: the import says so."""
    folder = save_frames(lambda _: np.ones((7, 1), np.float32))

    assert import_frames(folder) == 0

    assert "axes: 7 frames of 1 number in a clip" in capfd.readouterr().err
