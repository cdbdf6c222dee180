"""Features that others made come in whole, are given to the right clip, and are marked as what they are."""

import re

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.array_choice import ArrayChoice
from obygaze_features.exchange.import_features import declaration
from obygaze_features.exchange.import_files import array_files, torch_files
from obygaze_features.exchange.import_items import ImportItem, match_to_clips
from obygaze_features.store import PlannedClip, same_numerics, verify

from ..store.toy_stores import provenance
from .lab_features import D, imported, row

VIDEOS = (".avi", ".mkv", ".mp4")


def items(**values):
    return {
        clip: ImportItem(f"{clip}.npy", lambda value=value: {"": value}) for clip, value in values.items()
    }


@pytest.mark.parametrize(
    ("array", "shape", "given_shape", "dtype"),
    [
        ("pooled", (D,), (D,), np.float32),
        ("pooled", (D,), (1, D), np.float32),
        ("frames", (3, D), (3, D), np.float16),
        ("frames", (3, D), (1, 3, D), np.float32),
        ("tokens", (5, D), (1, 5, D), np.float16),
        ("frames", (1, D), (1, D), np.float32),
    ],
)
def test_every_shape_that_the_original_code_wrote_comes_in_bit_for_bit(
    tmp_path, array, shape, given_shape, dtype
):
    truth = {clip: row(clip, shape, dtype) for clip in "abc"}
    store = imported(tmp_path, items(**{c: v.reshape(given_shape) for c, v in truth.items()}), array)
    assert store["lab"].clip_ids == ("a", "b", "c")
    for clip, values in truth.items():
        assert store["lab"].read(clip, array).tobytes() == values.tobytes()
        assert store["lab"].dtype(array) == dtype
    assert not list(tmp_path.glob("*.importing"))


def test_what_is_not_declared_is_said_to_be_unknown(tmp_path):
    store = imported(tmp_path, items(a=row("a"), b=row("b"), c=row("c")))
    stored = store["lab"].provenance
    assert stored["imported"] is True
    assert stored["compute"] == dict.fromkeys(("dtype", "autocast", "attention", "tf32", "device"))
    assert stored["decoder"] == dict.fromkeys(("av", "ffmpeg", "on_damage"))
    assert stored["software"] is None
    assert np.isnan(store["lab"].time_s).all()
    assert (store["lab"].frame_index == -1).all()
    assert "IMPORTED" in (store.path / "README.md").read_text(encoding="utf-8")
    assert verify(store.path, "full").ok


def test_declared_provenance_is_kept_and_the_rest_unknown(tmp_path):
    sampling = {"policy": "uniform", "n": 6}
    declared = {"sampling": sampling, "compute": {"dtype": "float32"}, "note": "from a disk"}
    group = imported(tmp_path, items(a=row("a"), b=row("b"), c=row("c")), known=declared)["lab"]
    assert (group.provenance["sampling"], group.n_frames) == (sampling, 6)
    assert (group.provenance["compute"]["dtype"], group.provenance["compute"]["device"]) == ("float32", None)


def test_a_complete_declaration_differs_in_being_imported_alone():
    complete = provenance("lab")
    assert same_numerics(declaration(complete, "lab"), complete) == ["imported"]


def test_features_cannot_be_declared_not_to_be_imported():
    with pytest.raises(StoreError):
        declaration({"imported": False}, "lab")


def test_how_values_are_stored_cannot_be_declared(tmp_path):
    with pytest.raises(StoreError, match="'storage'"):
        imported(tmp_path, items(a=row("a"), b=row("b"), c=row("c")), known={"storage": {}})


@pytest.mark.parametrize(
    "value",
    [
        row("b", (D + 1,)),
        row("b", (2, D)),
        row("b", (0,)),
        row("b", (D,), np.float64),
        np.array([1, np.nan, 2, np.inf], np.float32),
        np.arange(D),
    ],
    ids=["longer", "two rows", "empty", "of another type", "not finite", "whole numbers"],
)
def test_an_array_that_does_not_fit_the_others_is_refused_by_file(tmp_path, value):
    with pytest.raises(StoreError, match=r"b\.npy"):
        imported(tmp_path, items(a=row("a"), b=value, c=row("c")))
    assert not list(tmp_path.iterdir())


def test_times_of_frames_that_fall_are_refused(tmp_path):
    arrays = {"frames": row("a", (3, D)), "time_s": np.array([0.0, 2, 1]), "frame_index": np.arange(3)}
    with pytest.raises(StoreError, match="time_s"):
        imported(tmp_path, {clip: ImportItem(clip, lambda: arrays) for clip in "abc"})


def import_times(folder, time_s, frame_index):
    """Import three clips from second 100 to 103, each with three frames at these times."""
    clips = [PlannedClip(clip, "m", 100.0, 103.0) for clip in "abc"]
    arrays = {"frames": row("a", (3, D)), "time_s": time_s, "frame_index": frame_index}
    return imported(folder, {clip: ImportItem(clip, lambda: arrays) for clip in "abc"}, clips=clips)


def test_times_of_frames_may_be_of_another_float_type(tmp_path):
    store = import_times(tmp_path, np.arange(100, 103, dtype=np.float32), np.arange(3, dtype=np.int32))
    assert store["lab"].read("a", "time_s").tolist() == [100, 101, 102]


@pytest.mark.parametrize(
    "time_s",
    [1000 * np.arange(100.0, 103), np.arange(2500.0, 2503)],
    ids=["milliseconds", "numbers of frames"],
)
def test_times_of_frames_behind_their_clip_are_refused(tmp_path, time_s):
    with pytest.raises(StoreError, match=r"^a: time_s"):
        import_times(tmp_path, time_s, np.arange(3, dtype=np.int32))


def test_indices_of_frames_that_are_no_whole_numbers_are_refused(tmp_path):
    with pytest.raises(StoreError, match="frame_index is float64"):
        import_times(tmp_path, np.arange(100.0, 103), np.arange(3.0))


def test_values_are_converted_to_the_type_that_is_asked_for(tmp_path):
    truth = {clip: row(clip, (2, D), np.float64) for clip in "abc"}
    group = imported(tmp_path, items(**truth), "tokens", dtype="float16")["lab"]
    assert np.array_equal(group.read("a", "tokens"), truth["a"].astype(np.float16))
    assert group.provenance["converted_to"] == "float16"


def test_values_too_large_for_the_type_that_is_asked_for_are_refused(tmp_path):
    values = {clip: row(clip, (2, D), np.float64) for clip in "abc"}
    values["a"] *= 1e6  # float16 ends at 65504
    with pytest.raises(StoreError, match=r"a\.npy"):
        imported(tmp_path, items(**values), "tokens", dtype="float16")


def test_an_import_after_a_killed_one_takes_the_values_of_the_files(tmp_path):
    undisturbed = imported(tmp_path / "undisturbed", items(a=row("a"), b=row("b"), c=row("c")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda *_, **__: None)  # a kill leaves everything

        def stop(_done, _total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            imported(tmp_path, items(a=row("b"), b=row("a"), c=row("c")), progress=stop)
    assert (tmp_path / "films-1.0.0.importing/part/stage/plan.jsonl").is_file()
    store = imported(tmp_path, items(a=row("a"), b=row("b"), c=row("c")))
    assert store.fingerprint == undisturbed.fingerprint
    assert not (tmp_path / "films-1.0.0.importing").exists()


def test_clips_without_features_are_refused_until_they_are_allowed(tmp_path):
    with pytest.raises(StoreError):
        imported(tmp_path, items(a=row("a"), b=row("b")))
    store = imported(tmp_path, items(a=row("a"), b=row("b")), allow_missing=True)
    assert [clip.status for clip in store.clips] == ["ok", "ok", "missing"]


def test_an_import_does_not_replace_a_store(tmp_path):
    imported(tmp_path, items(a=row("a"), b=row("b"), c=row("c")))
    with pytest.raises(StoreError, match="exists"):
        imported(tmp_path, items(a=row("a")), allow_missing=True)


def test_an_import_without_any_features_is_refused(tmp_path):
    with pytest.raises(StoreError):
        imported(tmp_path, {}, allow_missing=True)


def test_clips_whose_features_are_one_number_are_noted(tmp_path):
    notes = []
    values = {"a": np.zeros(D, np.float32), "b": row("b"), "c": np.full(D, 7, np.float32)}
    imported(tmp_path, items(**values), note=notes.append)
    (note,) = notes
    assert note.endswith(": a, c")


def test_features_of_many_numbers_are_not_noted(tmp_path):
    notes = []
    imported(tmp_path, items(a=row("a"), b=row("b"), c=row("c")), note=notes.append)
    assert notes == []


FOUND = {path: ImportItem(f"{path}.npy", dict) for path in ("m1/x", "m1/y", "m2/x", "z")}


def test_files_are_given_to_clips_by_their_path():
    matched, unknown = match_to_clips(FOUND, {"a": "m1/x", "b": "m2/x", "c": "m3/x"})
    assert {clip: item.where for clip, item in matched.items()} == {"a": "m1/x.npy", "b": "m2/x.npy"}
    assert unknown == ("m1/y", "z")


def test_a_file_is_given_to_a_clip_by_its_bare_name():
    matched, _ = match_to_clips(FOUND, {"a": "y"})
    assert matched["a"].where == "m1/y.npy"


def test_two_files_for_one_clip_are_refused():
    with pytest.raises(StoreError, match=r"m2/x\.npy and m1/x\.npy"):
        match_to_clips(FOUND, {"a": "x"})


def test_one_file_for_two_clips_is_refused():
    with pytest.raises(StoreError, match="clips a and b"):
        match_to_clips(FOUND, {"a": "x", "b": "x"})


def test_npy_files_are_found_below_a_folder(tmp_path):
    (tmp_path / "m1").mkdir()
    np.save(tmp_path / "m1/x.npy", row("x"))
    (tmp_path / "m1/notes.txt").touch()
    found = array_files(tmp_path, ArrayChoice())
    assert list(found) == ["m1/x"]
    assert np.array_equal(found["m1/x"].load()[""], row("x"))


def test_an_npy_file_of_python_objects_is_never_unpickled(tmp_path):
    np.save(tmp_path / "evil.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(StoreError, match=r"evil\.npy"):
        array_files(tmp_path, ArrayChoice())["evil"].load()


def test_a_folder_without_files_of_torch_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", row("x"))
    with pytest.raises(StoreError):
        torch_files(tmp_path, ArrayChoice())


def test_an_npy_file_that_lies_about_its_size_is_refused_before_anything_is_allocated(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, row("x"))
    data = path.read_bytes()
    lie = re.sub(rb"\(4,\), \}( {14})", b"(400000000000000,), }", data)
    assert len(lie) == len(data)
    for damaged in (
        lie,
        data[:6] + b"\x03\x00" + b"\x00\x00\x00\xf0" + data[10:],
        data[:70] + b"\n      $       \n" + data[85:],  # a SystemError of Python 3.12's tokenizer
        *(data[:cut] for cut in (0, 5, 80, len(data) - 1)),
    ):
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match=r"x\.npy"):
            array_files(tmp_path, ArrayChoice())["x"].load()


def test_two_files_of_one_name_and_two_suffixes_are_refused(tmp_path):
    for name in ("a.pth", "a.pt"):
        (tmp_path / name).touch()
    with pytest.raises(StoreError, match=r"a\.pt.*a\.pth"):
        torch_files(tmp_path, ArrayChoice())


def test_a_file_named_after_a_video_with_its_suffix_is_given_to_the_clip_of_that_video():
    named = items(**{"tt1_scene_1.avi": row("a"), "tt1_scene_2.MP4": row("b")})
    matched, _ = match_to_clips(named, {"1": "tt1_scene_1", "2": "tt1_scene_2"}, VIDEOS)
    assert {clip: item.where for clip, item in matched.items()} == {
        "1": "tt1_scene_1.avi.npy",
        "2": "tt1_scene_2.MP4.npy",
    }


def test_a_clip_that_is_called_by_the_suffix_too_gets_the_file_of_that_name():
    matched, _ = match_to_clips(items(**{"c.mp4": row("c")}), {"3": "c.mp4"}, VIDEOS)
    assert matched["3"].where == "c.mp4.npy"


def test_a_suffix_that_is_no_video_belongs_to_the_name():
    named = items(**{"c.mp4": row("c"), "d.txt": row("d")})
    matched, unknown = match_to_clips(named, {"3": "c", "4": "d"}, VIDEOS)
    assert (unknown, list(matched)) == (("d.txt",), ["3"])


def test_files_of_two_videos_that_differ_in_their_suffix_are_refused():
    with pytest.raises(StoreError, match="both"):
        match_to_clips(items(**{"a.avi": row("a"), "a.mkv": row("b")}), {"1": "a"}, VIDEOS)
