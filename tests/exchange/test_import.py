"""Features that others made come in whole, are given to the right clip, and are marked as what they are."""

import re
import shutil

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


def test_what_is_declared_is_kept_and_imported_cannot_be_declared_away(tmp_path):
    sampling = {"policy": "uniform", "n": 6}
    declared = {"sampling": sampling, "compute": {"dtype": "float32"}, "note": "from a disk"}
    store = imported(tmp_path, items(a=row("a"), b=row("b"), c=row("c")), known=declared)
    stored = store["lab"].provenance
    assert (stored["sampling"], store["lab"].n_frames) == (sampling, 6)
    assert (stored["compute"]["dtype"], stored["compute"]["device"]) == ("float32", None)
    complete = provenance("lab")
    assert same_numerics(declaration(complete, "lab"), complete) == ["imported"]
    with pytest.raises(StoreError):
        declaration({"imported": False}, "lab")
    with pytest.raises(StoreError, match="'storage'"):
        imported(tmp_path / "b", items(a=row("a"), b=row("b"), c=row("c")), known={"storage": {}})


@pytest.mark.parametrize(
    "value",
    [
        *(row("b", shape) for shape in ((D + 1,), (2, D), (0,))),
        row("b", (D,), np.float64),
        np.array([1, np.nan, 2, np.inf], np.float32),
        np.arange(D),
    ],
)
def test_an_array_of_another_shape_type_or_without_finite_values_is_refused_by_file(tmp_path, value):
    with pytest.raises(StoreError, match=r"b\.npy"):
        imported(tmp_path, items(a=row("a"), b=value, c=row("c")))
    assert not list(tmp_path.iterdir())


def test_times_of_frames_that_fall_are_refused(tmp_path):
    arrays = {"frames": row("a", (3, D)), "time_s": np.array([0.0, 2, 1]), "frame_index": np.arange(3)}
    with pytest.raises(StoreError, match="time_s"):
        imported(tmp_path, {clip: ImportItem(clip, lambda: arrays) for clip in "abc"})


def test_times_of_frames_are_seconds_of_any_kind_not_behind_their_clip(tmp_path):
    clips = [PlannedClip(clip, "m", 100.0, 103.0) for clip in "abc"]

    def timed(times, numbers=np.int32):
        arrays = {"frames": row("a", (3, D)), "time_s": times, "frame_index": np.arange(3).astype(numbers)}
        items = {clip: ImportItem(clip, lambda: arrays) for clip in "abc"}
        return imported(tmp_path, items, clips=clips)["lab"].read("a", "time_s")

    assert timed(np.arange(100, 103, dtype=np.float32)).tolist() == [100, 101, 102]
    shutil.rmtree(tmp_path / "films-1.0.0")
    for wrong in (1000 * np.arange(100.0, 103), np.arange(2500.0, 2503)):
        with pytest.raises(StoreError, match=r"^a: time_s"):
            timed(wrong)
    with pytest.raises(StoreError, match="frame_index is float64"):
        timed(np.arange(100.0, 103), np.float64)


def test_values_are_converted_on_purpose_alone(tmp_path):
    truth = {clip: row(clip, (2, D), np.float64) for clip in "abc"}
    store = imported(tmp_path, items(**truth), "tokens", dtype="float16")
    assert np.array_equal(store["lab"].read("a", "tokens"), truth["a"].astype(np.float16))
    assert store["lab"].provenance["converted_to"] == "float16"
    with pytest.raises(StoreError, match=r"a\.npy"):
        imported(
            tmp_path / "b", items(a=truth["a"] * 1e6, b=truth["b"], c=truth["c"]), "tokens", dtype="float16"
        )


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


def test_clips_without_features_are_counted_and_must_be_allowed(tmp_path):
    with pytest.raises(StoreError):
        imported(tmp_path, items(a=row("a"), b=row("b")))
    store = imported(tmp_path, items(a=row("a"), b=row("b")), allow_missing=True)
    assert [clip.status for clip in store.clips] == ["ok", "ok", "missing"]
    with pytest.raises(StoreError, match="exists"):
        imported(tmp_path, items(a=row("a")), allow_missing=True)
    with pytest.raises(StoreError):
        imported(tmp_path / "none", {}, allow_missing=True)


def test_clips_whose_features_are_one_number_are_said(tmp_path):
    notes = []
    values = {"a": np.zeros(D, np.float32), "b": row("b"), "c": np.full(D, 7, np.float32)}
    imported(tmp_path / "some", items(**values), note=notes.append)
    (note,) = notes
    assert note.endswith(": a, c")
    imported(tmp_path / "none", items(**values | {"a": row("a"), "c": row("c")}), note=notes.append)
    assert notes == [note]


def test_files_are_given_to_clips_by_name_and_collisions_are_refused():
    items = {path: ImportItem(f"{path}.npy", dict) for path in ("m1/x", "m1/y", "m2/x", "z")}
    deep, unknown = match_to_clips(items, {"a": "m1/x", "b": "m2/x", "c": "m3/x"})
    assert {clip: item.where for clip, item in deep.items()} == {"a": "m1/x.npy", "b": "m2/x.npy"}
    assert unknown == ("m1/y", "z")
    assert match_to_clips(items, {"a": "y"})[0]["a"].where == "m1/y.npy"
    with pytest.raises(StoreError, match=r"m2/x\.npy and m1/x\.npy"):
        match_to_clips(items, {"a": "x"})
    with pytest.raises(StoreError, match="clips a and b"):
        match_to_clips(items, {"a": "x", "b": "x"})


def test_npy_files_are_found_and_never_unpickled(tmp_path):
    (tmp_path / "m1").mkdir()
    np.save(tmp_path / "m1/x.npy", row("x"))
    (tmp_path / "m1/notes.txt").touch()
    items = array_files(tmp_path, ArrayChoice())
    assert list(items) == ["m1/x"]
    assert np.array_equal(items["m1/x"].load()[""], row("x"))
    np.save(tmp_path / "evil.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(StoreError, match=r"evil\.npy"):
        array_files(tmp_path, ArrayChoice())["evil"].load()
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
    named = {"tt1_scene_1.avi": row("a"), "tt1_scene_2.MP4": row("b"), "c.mp4": row("c"), "d.txt": row("d")}
    matched, unknown = match_to_clips(
        items(**named), {"1": "tt1_scene_1", "2": "tt1_scene_2", "3": "c.mp4", "4": "d"}, VIDEOS
    )
    assert [matched[clip].where for clip in "123"] == [
        "tt1_scene_1.avi.npy",
        "tt1_scene_2.MP4.npy",
        "c.mp4.npy",
    ]
    assert (unknown, matched.keys()) == (("d.txt",), set("123"))
    with pytest.raises(StoreError, match="both"):
        match_to_clips(items(**{"a.avi": row("a"), "a.mkv": row("b")}), {"1": "a"}, VIDEOS)
