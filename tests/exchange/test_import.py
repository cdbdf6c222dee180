"""Features that others made are imported whole, given to the right clip, and marked as what they are."""

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.array_choice import ArrayChoice
from obygaze_features.exchange.import_features import declaration
from obygaze_features.exchange.import_files import array_files, torch_files
from obygaze_features.exchange.import_items import ImportItem, match_to_clips
from obygaze_features.store import PlannedClip, same_numerics, verify

from ..store.toy_stores import provenance
from .lab_features import N_FEATURES, array_of, import_store, values_of

VIDEO_SUFFIXES = (".avi", ".mkv", ".mp4")


def items_of(**arrays):
    """Make the items of the files CLIP.npy, each of one array."""
    return {
        clip: ImportItem(f"{clip}.npy", lambda array=array: {"": array}) for clip, array in arrays.items()
    }


def all_items():
    """Make the items of the files of all clips: a, b and c."""
    return items_of(**{clip: values_of(clip) for clip in "abc"})


@pytest.mark.parametrize(
    ("array", "shape", "saved_shape", "dtype"),
    [
        pytest.param("pooled", (N_FEATURES,), (N_FEATURES,), np.float32, id="a vector"),
        pytest.param("pooled", (N_FEATURES,), (1, N_FEATURES), np.float32, id="a batch of one vector"),
        pytest.param("frames", (3, N_FEATURES), (3, N_FEATURES), np.float16, id="frames"),
        pytest.param("frames", (3, N_FEATURES), (1, 3, N_FEATURES), np.float32, id="a batch of frames"),
        pytest.param("tokens", (5, N_FEATURES), (1, 5, N_FEATURES), np.float16, id="a batch of tokens"),
        pytest.param("frames", (1, N_FEATURES), (1, N_FEATURES), np.float32, id="one frame"),
    ],
)
def test_arrays_are_imported_bit_for_bit_with_or_without_an_axis_of_the_batch(
    tmp_path, array, shape, saved_shape, dtype
):
    """A lab saved a vector, frames or tokens of each of the clips a, b and c, with 4 features each.

    Networks compute batches of clips, and labs often save the axis of a batch of one: [1, ...].
    """
    values_of_clip = {clip: values_of(clip, shape, dtype) for clip in ("a", "b", "c")}
    saved = {clip: values.reshape(saved_shape) for clip, values in values_of_clip.items()}

    imported = import_store(tmp_path, items_of(**saved), array)["lab"]

    assert imported.clip_ids == ("a", "b", "c")
    for clip, values in values_of_clip.items():
        assert imported.read(clip, array).tobytes() == values.tobytes()
    assert imported.dtype(array) == dtype
    left_behind = list(tmp_path.glob("*.importing"))
    assert left_behind == []


def test_what_is_not_declared_of_imported_features_is_unknown(tmp_path):
    """In provenance that is null, in times NaN, and in numbers of frames -1."""
    store = import_store(tmp_path, all_items())

    group = store["lab"]
    assert group.provenance["imported"] is True
    assert set(group.provenance["compute"].values()) == {None}
    assert set(group.provenance["decoder"].values()) == {None}
    assert group.provenance["software"] is None
    assert np.isnan(group.time_s).all()
    assert (group.frame_index == -1).all()

    assert "IMPORTED" in (store.path / "README.md").read_text(encoding="utf-8")
    assert verify(store.path, "full").ok


def test_declared_provenance_is_kept_and_the_rest_unknown(tmp_path):
    """Whoever imports features may declare what is known of how they were computed, here only in part."""
    declared = {"sampling": {"policy": "uniform", "n": 6}, "compute": {"dtype": "float32"}, "note": "old"}

    group = import_store(tmp_path, all_items(), known=declared)["lab"]

    assert group.provenance["sampling"] == {"policy": "uniform", "n": 6}
    assert group.n_frames == 6
    assert group.provenance["compute"]["dtype"] == "float32"
    assert group.provenance["compute"]["device"] is None


def test_imported_features_are_not_mixed_with_extracted_ones_even_if_all_their_provenance_is_declared():
    """Whoever imports features of "lab" declares all that our own extraction of "lab" records as provenance.

    Nobody has verified it. So the provenance of the import says that it is imported. This alone tells the two
    apart: it is the one field that forbids mixing their features (`same_numerics` lists such fields).
    """
    provenance_of_extraction = provenance("lab")

    provenance_of_import = declaration(declared=provenance_of_extraction, backbone="lab")

    fields_that_forbid_mixing = same_numerics(provenance_of_import, provenance_of_extraction)
    assert fields_that_forbid_mixing == ["imported"]


def test_features_cannot_be_declared_not_to_be_imported():
    """The field `imported` of their provenance is always true."""
    declared = {"imported": False}

    with pytest.raises(StoreError):
        declaration(declared, "lab")


def test_how_values_are_stored_cannot_be_declared(tmp_path):
    """The import itself decides on the field `storage` of the provenance."""
    with pytest.raises(StoreError, match="'storage'"):
        import_store(tmp_path, all_items(), known={"storage": {}})


@pytest.mark.parametrize(
    "value",
    [
        values_of("b", (N_FEATURES + 1,)),
        values_of("b", (2, N_FEATURES)),
        values_of("b", (0,)),
        values_of("b", (N_FEATURES,), np.float64),
        np.array([1, np.nan, 2, np.inf], np.float32),
        np.arange(N_FEATURES),
    ],
    ids=["longer", "two rows", "empty", "of another type", "not finite", "whole numbers"],
)
def test_an_array_that_does_not_fit_the_others_is_refused_by_file(tmp_path, value):
    """All clips of a store have arrays of one shape and type, with finite real numbers."""
    with pytest.raises(StoreError, match=r"b\.npy"):
        import_store(tmp_path, items_of(a=values_of("a"), b=value, c=values_of("c")))
    assert not list(tmp_path.iterdir())


def import_times(folder, time_s, frame_index):
    """Import clips that last from second 100 to 103, each with three frames at these times."""
    clips = [PlannedClip(clip, "m", start_s=100.0, end_s=103.0) for clip in "abc"]
    frames = values_of("a", (3, N_FEATURES))
    arrays = {"frames": frames, "time_s": time_s, "frame_index": frame_index}
    return import_store(folder, {clip: ImportItem(clip, lambda: arrays) for clip in "abc"}, clips=clips)


def test_times_of_frames_may_be_of_another_float_type(tmp_path):
    """Stores keep times as float64. The file of clip a has those of three frames as float32."""
    times_s = np.arange(100, 103, dtype=np.float32)
    frame_index = np.arange(3, dtype=np.int32)

    store = import_times(tmp_path, times_s, frame_index)

    assert store["lab"].read("a", "time_s").tolist() == [100, 101, 102]


@pytest.mark.parametrize(
    "time_s",
    [1000 * np.arange(100.0, 103), np.arange(2500.0, 2503)],
    ids=["milliseconds", "numbers of frames"],
)
def test_times_of_frames_after_the_end_of_their_clip_are_refused(tmp_path, time_s):
    """Each clip ends at second 103."""
    with pytest.raises(StoreError, match=r"^a: time_s"):
        import_times(tmp_path, time_s, np.arange(3, dtype=np.int32))


def test_times_that_count_from_the_start_of_their_clip_are_refused_with_what_to_add(tmp_path):
    """Each clip lasts from second 100 to 103 of its film. Its frames have the times 0, 1 and 2.

    Tools that cut clips first count so. Times 10 s before a clip are accepted, as some models look back; 0 is
    earlier than 90. The error says that 100 has to be added.
    """
    with pytest.raises(StoreError, match=r"^a: time_s 0; .*from 90 on; .*add 100 to all"):
        import_times(tmp_path, np.arange(3.0), np.arange(3, dtype=np.int32))


@pytest.mark.parametrize(
    "time_s", [np.arange(-60.0, -57), np.array([50.0, 101, 102])], ids=["negative", "too early"]
)
def test_times_before_their_clip_are_refused_with_no_advice_if_the_clip_s_start_may_not_be_added(
    tmp_path, time_s
):
    """Each clip is from second 100 to 103; its frames have times from -60 s on, or 50, 101 and 102 s.

    Times may begin up to 10 s before the clip, so from second 90 on, as the message says. It ends there.
    Times that count from the clip's start would be right with 100 added, and the message would say so; these
    would still lie outside of the clip.
    """
    with pytest.raises(StoreError, match=r"^a: time_s .*from 90 on$"):
        import_times(tmp_path, time_s, np.arange(3, dtype=np.int32))


def test_indices_of_frames_that_are_no_whole_numbers_are_refused_with_the_type_to_save_them_in(tmp_path):
    """The array `frame_index` of clip a has the numbers 0, 1 and 2 as floats (float64).

    Features of a wrong type are refused with the advice to convert them by the option `--dtype`. This would
    not help here, as it converts features alone: the message ends with how to save the array.
    """
    times_s = np.arange(100.0, 103)
    indices_as_floats = np.arange(3.0)

    with pytest.raises(StoreError, match=r"^a: frame_index is float64.*; save frame_index as int64$"):
        import_times(tmp_path, times_s, indices_as_floats)


def test_features_are_converted_to_a_type_that_is_asked_for(tmp_path):
    """The files hold numbers of 64 bits; the store is to hold numbers of 16 bits, and says so."""
    doubles = {clip: values_of(clip, (2, N_FEATURES), np.float64) for clip in "abc"}

    group = import_store(tmp_path, items_of(**doubles), "tokens", dtype="float16")["lab"]

    assert np.array_equal(group.read("a", "tokens"), doubles["a"].astype(np.float16))
    assert group.provenance["converted_to"] == "float16"


def kill_an_import(folder, items):
    """Begin an import and leave the files that it leaves when it is killed after the first clip."""

    def stop(_done, _total):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda *_, **__: None)  # who is killed removes nothing
        with pytest.raises(KeyboardInterrupt):
            import_store(folder, items, progress=stop)
    assert (folder / "films-1.0.0.importing/part/stage/plan.jsonl").is_file()


def test_values_too_large_for_the_type_that_is_asked_for_are_refused(tmp_path):
    """The type float16 ends at 65,504, and the features of clip a are about a million."""
    shape = (2, N_FEATURES)
    values_of_a = 1e6 * values_of("a", shape, np.float64)
    items = items_of(a=values_of_a, b=values_of("b", shape, np.float64), c=values_of("c", shape, np.float64))

    with pytest.raises(StoreError, match=r"a\.npy"):
        import_store(tmp_path, items, "tokens", dtype="float16")


def test_an_import_after_a_killed_one_takes_the_values_of_its_own_files(tmp_path):
    """The killed import had other values, of which nothing may be left in the store."""
    undisturbed = import_store(tmp_path / "undisturbed", all_items())
    other_values = items_of(a=values_of("b"), b=values_of("a"), c=values_of("c"))

    kill_an_import(tmp_path, other_values)

    store = import_store(tmp_path, all_items())
    assert store.fingerprint == undisturbed.fingerprint
    assert not (tmp_path / "films-1.0.0.importing").exists()


def test_a_clip_without_features_is_refused_until_it_is_allowed(tmp_path):
    """The clips are a, b and c, and there are files for a and b alone."""
    without_c = items_of(a=values_of("a"), b=values_of("b"))

    with pytest.raises(StoreError):
        import_store(tmp_path, without_c)

    store = import_store(tmp_path, without_c, allow_missing=True)
    assert {clip.clip_id: clip.status for clip in store.clips} == {"a": "ok", "b": "ok", "c": "missing"}


def test_an_import_without_any_features_is_refused_even_where_clips_may_be_missing(tmp_path):
    """With --allow-missing, clips without features make no error; a store in which all are missing does."""
    no_features: dict[str, ImportItem] = {}

    with pytest.raises(StoreError):
        import_store(tmp_path, no_features, allow_missing=True)


def test_an_import_does_not_replace_a_store(tmp_path):
    """The second import is of other features into the same folder, by the same name."""
    import_store(tmp_path, all_items())

    other_features = items_of(a=values_of("a"))
    with pytest.raises(StoreError, match="exists"):
        import_store(tmp_path, other_features, allow_missing=True)


def test_clips_whose_features_are_constant_are_noted(tmp_path):
    """Constant features are often those of a clip that could not be read."""
    notes = []
    zeros = np.zeros(N_FEATURES, np.float32)
    sevens = np.full(N_FEATURES, 7, np.float32)
    varied = values_of("b")

    import_store(tmp_path, items_of(a=zeros, b=varied, c=sevens), note=notes.append)

    (note,) = notes
    assert note.endswith(": a, c")


def test_clips_that_are_padded_to_one_length_are_noted(tmp_path):
    """An array [clip, frame, number] for clips of unlike length is filled with zeros behind each clip."""
    notes = []
    padded = {clip: values_of(clip, (20, N_FEATURES)) for clip in "abc"}
    padded["a"][12:] = 0
    padded["c"][19:] = 0
    padded["b"][3] = 0  # a frame within the clip, such as a black one

    import_store(tmp_path, items_of(**padded), "frames", note=notes.append)

    padding_notes = [note for note in notes if note.startswith("padded")]
    (note,) = padding_notes
    assert note.startswith("padded: 2 of 3 clips end in frames of zeros alone: a, c; ")


ITEMS_IN_FOLDERS = {path: ImportItem(f"{path}.npy", dict) for path in ("m1/x", "m1/y", "m2/x", "z")}


def test_files_are_given_to_clips_by_their_path():
    """The files are m1/x.npy, m1/y.npy, m2/x.npy and z.npy; the folders tell the two that are called x apart.

    Clip c is m3/x, of which there is no file.
    """
    matched, unmatched = match_to_clips(ITEMS_IN_FOLDERS, {"a": "m1/x", "b": "m2/x", "c": "m3/x"})
    assert {clip: item.where for clip, item in matched.items()} == {"a": "m1/x.npy", "b": "m2/x.npy"}
    assert unmatched == ("m1/y", "z")


def test_a_file_is_given_to_a_clip_by_its_bare_name():
    """The files are m1/x.npy, m1/y.npy, m2/x.npy and z.npy, so that only one is called y."""
    matched, _ = match_to_clips(ITEMS_IN_FOLDERS, {"a": "y"})

    assert matched["a"].where == "m1/y.npy"


@pytest.mark.parametrize(
    ("names", "message"),
    [({"a": "x"}, r"m2/x\.npy and m1/x\.npy"), ({"a": "y", "b": "y"}, "clips a and b")],
    ids=["two files of one name for one clip", "one file for two clips"],
)
def test_a_clip_has_one_file_and_a_file_one_clip(names, message):
    """The files are m1/x.npy, m1/y.npy, m2/x.npy and z.npy; `names` says clip -> the name of its file."""
    with pytest.raises(StoreError, match=message):
        match_to_clips(ITEMS_IN_FOLDERS, names)


def test_npy_files_are_found_below_a_folder(tmp_path):
    """The folder has a folder m1 with an array, x.npy, and with a file of text, which is passed over."""
    (tmp_path / "m1").mkdir()
    np.save(tmp_path / "m1/x.npy", values_of("x"))
    (tmp_path / "m1/notes.txt").touch()

    item_of = array_files(tmp_path, ArrayChoice())

    assert list(item_of) == ["m1/x"]
    assert np.array_equal(array_of(item_of["m1/x"]), values_of("x"))


def test_an_npy_file_of_python_objects_is_never_unpickled(tmp_path):
    """Unpickling runs code that the file holds."""
    np.save(tmp_path / "evil.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(StoreError, match=r"evil\.npy"):
        array_files(tmp_path, ArrayChoice())["evil"].load()


def test_a_folder_without_pth_files_is_refused(tmp_path):
    """The folder has a file of NumPy, and files of PyTorch are asked for."""
    np.save(tmp_path / "x.npy", values_of("x"))

    with pytest.raises(StoreError):
        torch_files(tmp_path, ArrayChoice())


def with_giant_shape(data):
    """Let the header of an .npy file of 4 numbers say that they are 400 million million.

    The header keeps its length: blanks behind it make room for the longer number.
    """
    shape, giant_shape = b"(4,), }", b"(400000000000000,), }"
    room = b" " * (len(giant_shape) - len(shape))
    assert data.count(shape + room) == 1
    return data.replace(shape + room, giant_shape)


def with_giant_header(data):
    """Let an .npy file say that its header, of version 3, has 4 GB."""
    magic = data[:6]
    version, size_of_header = b"\x03\x00", b"\x00\x00\x00\xf0"
    return magic + version + size_of_header + data[10:]


def with_header_that_breaks_pythons_parser(data):
    """Let the header end in what Python 3.12's tokenizer answers with a SystemError."""
    return data[:70] + b"\n      $       \n" + data[85:]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(with_giant_shape, id="a giant shape"),
        pytest.param(with_giant_header, id="a giant header"),
        pytest.param(with_header_that_breaks_pythons_parser, id="a broken header"),
        pytest.param(lambda _: b"", id="empty"),
        pytest.param(lambda data: data[:5], id="cut in the magic number"),
        pytest.param(lambda data: data[:80], id="cut in the header"),
        pytest.param(lambda data: data[:-1], id="cut in the values"),
    ],
)
def test_a_damaged_npy_file_is_refused_by_name(tmp_path, damage):
    """NumPy's format begins with a magic number, a version and a header, which has the shape of the values.

    `damage` changes the bytes of a good file. One that says it is a giant is refused before memory is
    allocated for it.
    """
    path = tmp_path / "x.npy"
    np.save(path, values_of("x"))
    path.write_bytes(damage(path.read_bytes()))
    damaged = array_files(tmp_path, ArrayChoice())["x"]

    with pytest.raises(StoreError, match=r"x\.npy"):
        damaged.load()


def test_two_files_that_differ_in_their_suffix_alone_are_refused(tmp_path):
    """A folder has a.pth and a.pt, whose names without suffix are both that of clip a."""
    for name in ("a.pth", "a.pt"):
        (tmp_path / name).touch()
    with pytest.raises(StoreError, match=r"a\.pt.*a\.pth"):
        torch_files(tmp_path, ArrayChoice())


@pytest.mark.parametrize(
    ("file", "name_of_clip"),
    [("scene.avi", "scene"), ("scene.MP4", "scene"), ("scene.mp4", "scene.mp4")],
    ids=["a suffix of videos", "in capitals", "a clip named with it"],
)
def test_a_file_named_after_a_video_with_its_suffix_is_given_to_the_videos_clip(file, name_of_clip):
    """The features of a video scene.avi are often saved as scene.avi.npy, which is the clip `scene`'s.

    The case of the suffix does not matter. A clip may also be named with the suffix.
    """
    items = items_of(**{file: values_of("a")})
    matched, _ = match_to_clips(items, {"1": name_of_clip}, VIDEO_SUFFIXES)
    assert matched["1"].where == f"{file}.npy"


def test_a_suffix_that_is_not_of_videos_belongs_to_the_name():
    """The features of scene.txt, in scene.txt.npy, are not given to the clip that is called scene."""
    items = items_of(**{"scene.txt": values_of("a")})

    matched, unmatched = match_to_clips(items, {"1": "scene"}, VIDEO_SUFFIXES)

    assert matched == {}
    assert unmatched == ("scene.txt",)


def test_files_of_two_videos_that_differ_in_their_suffix_are_refused():
    """Clip 1 is called a, and there are features of a.avi and of a.mkv."""
    items = items_of(**{"a.avi": values_of("a"), "a.mkv": values_of("b")})
    with pytest.raises(StoreError, match="both"):
        match_to_clips(items, {"1": "a"}, VIDEO_SUFFIXES)
