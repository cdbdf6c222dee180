"""Verification: whatever changed is found, at the depth that says it will."""

import hashlib
import json
import random
import shutil

import numpy as np
import pytest
import zarr

from obygaze_features.store import verify
from obygaze_features.store.store_files import payload_files, tag_files
from obygaze_features.store.testing import seal_frames
from tests.process import execute

from .hostile_stores import resealed
from .toy_stores import group, make_sealed_store, ragged_group


@pytest.fixture(scope="module")
def sealed_store(tmp_path_factory):
    kinds = [group(), group("alone", ["pooled"]), ragged_group("theirs", ["pooled", "frames"])]
    return make_sealed_store(tmp_path_factory.mktemp("pristine"), 20, kinds)


@pytest.fixture
def path_of_sealed_copy(sealed_store, tmp_path):
    return shutil.copytree(sealed_store, tmp_path / sealed_store.name)


def test_a_sound_store_passes_at_every_depth_and_its_clips_are_counted_by_status(sealed_store):
    """The store has 20 clips. Those whose number is 3, 10 or 17 failed; 5, 12 and 19 are partial."""
    for depth in ("quick", "digests", "full"):
        report = verify(sealed_store, depth)
        assert report.ok, report.problems
        assert report.counts["files"] == len(payload_files(sealed_store))
        assert json.loads(json.dumps(report.record()))["fingerprint"] == report.fingerprint

    counts = verify(sealed_store, "full").counts
    assert counts["ok"] == 14
    assert counts["partial"] == 3
    assert counts["failed"] == 3
    assert counts["missing"] == 0


@pytest.mark.long
def test_a_flipped_bit_in_any_file_is_found_and_the_file_named(path_of_sealed_copy):
    """In each file in turn one bit is flipped, at a place drawn at random, and put right again.

    In a list of digests, the file is named whose digest the bit was in.
    """
    rng = random.Random(3)
    files = [*payload_files(path_of_sealed_copy), *tag_files(path_of_sealed_copy), "tagmanifest-sha256.txt"]
    for name in files:
        sound = (path_of_sealed_copy / name).read_bytes()
        flipped = bytearray(sound)
        bit = rng.randrange(8 * len(flipped))
        flipped[bit // 8] ^= 2 ** (bit % 8)
        (path_of_sealed_copy / name).write_bytes(flipped)

        for depth in ("digests", "full"):
            report = verify(path_of_sealed_copy, depth)
            blamed = {problem.file for problem in report.problems}
            assert blamed, (name, bit, depth)
            is_list_of_digests = "manifest" in name
            assert name in blamed or is_list_of_digests, (name, bit, depth, blamed)

        (path_of_sealed_copy / name).write_bytes(sound)

    assert verify(path_of_sealed_copy, "full").ok


@pytest.mark.parametrize(
    "name",
    [
        "data/features.zarr/toy/frames/c/0/0/0",
        "data/features.zarr/theirs/frames/c/0/0",
        "data/features.zarr/theirs/row_size/c/0",
        "data/clips.csv",
        "README.md",
        "bagit.txt",
    ],
)
def test_a_missing_file_is_found_and_named_where_digests_are_compared(path_of_sealed_copy, name):
    """The quick check compares numbers of files and bytes alone, and cannot name the file."""
    (path_of_sealed_copy / name).unlink()

    assert not verify(path_of_sealed_copy, "quick").ok
    for depth in ("digests", "full"):
        assert name in {problem.file for problem in verify(path_of_sealed_copy, depth).problems}


@pytest.mark.parametrize("name", ["data/features.zarr/toy/stray", "notes.txt", "data/x.csv"])
def test_a_file_too_many_is_found_and_named_where_digests_are_compared(path_of_sealed_copy, name):
    """The quick check compares numbers of files and bytes alone, and cannot name the file."""
    (path_of_sealed_copy / name).write_text("hello", encoding="utf-8")

    assert not verify(path_of_sealed_copy, "quick").ok
    for depth in ("digests", "full"):
        problems_of_file = [
            problem.what for problem in verify(path_of_sealed_copy, depth).problems if problem.file == name
        ]
        assert any(problem.startswith("extra") for problem in problems_of_file)


def test_a_link_in_place_of_a_file_is_found(path_of_sealed_copy):
    """The content of a link may change without the store, so a store has plain files alone.

    The table of clips is moved away and linked, and a link to a folder is added.
    """
    file = path_of_sealed_copy / "data/clips.csv"
    file.rename(path_of_sealed_copy.parent / "clips.csv")
    file.symlink_to(path_of_sealed_copy.parent / "clips.csv")
    (path_of_sealed_copy / "data/folder").symlink_to(path_of_sealed_copy.parent)

    named_files = {
        problem.file for problem in verify(path_of_sealed_copy).problems if "plain file" in problem.what
    }
    assert named_files == {"data/clips.csv", "data/folder"}


def test_swapped_chunks_are_found_and_the_rows_named(tmp_path):
    """A chunk of tokens has 16 rows, so chunk 2 begins with row 32.

    The quick check sees sizes alone, and these are what they were.
    """
    path = make_sealed_store(tmp_path, 72)
    chunk_0 = path / "data/features.zarr/toy/tokens/c/0/0/0"
    chunk_2 = path / "data/features.zarr/toy/tokens/c/2/0/0"
    bytes_of_0 = chunk_0.read_bytes()
    bytes_of_2 = chunk_2.read_bytes()
    chunk_0.write_bytes(bytes_of_2)
    chunk_2.write_bytes(bytes_of_0)

    assert verify(path, "quick").ok
    of_chunk_0, of_chunk_2 = verify(path).problems
    assert path / of_chunk_0.file == chunk_0
    assert path / of_chunk_2.file == chunk_2
    assert "rows from 32 on of toy/tokens" in of_chunk_2.what


def rewrite_array(store, group, array, change):
    node = zarr.open_group(zarr.storage.LocalStore(store / "data/features.zarr"), mode="r+")[group][array]
    values = node[:]
    change(values)
    node[:] = values


def edit_file(store, file, change):
    (store / file).write_bytes(change((store / file).read_bytes()))


def swap_rows(values):
    values[[0, 1]] = values[[1, 0]]


def set_row(row, value):
    def change(values):
        values[row] = value

    return change


FORGERIES = {
    "rows swapped": ("toy", "frames", swap_rows),
    "NaN for a clip": ("alone", "pooled", set_row(0, np.nan)),
    "one number": ("toy", "time_s", set_row((2, 1), 0.5)),
    "a failed clip filled": ("toy", "tokens", set_row(3, 0)),
    "status changed": ("toy", "status", set_row(3, 1)),
    "status nonsense": ("toy", "status", set_row(0, 9)),
    "an id changed": ("toy", "clip", set_row(0, "tt")),
    "frames swapped": ("theirs", "frames", swap_rows),
    "NaN for a frame": ("theirs", "frames", set_row(4, np.nan)),
    "a time of a frame": ("theirs", "time_s", set_row(3, 0.5)),
}


@pytest.mark.parametrize("case", FORGERIES)
def test_forged_arrays_with_fitting_digests_are_found_by_full_alone(path_of_sealed_copy, case):
    """The lists of digests are made to fit the forged files, as a clever forger would.

    The table of clips still has a digest of each clip's values, which only the full check compares. `case`
    says what is changed in one array.
    """
    group_name, array, change = FORGERIES[case]
    rewrite_array(path_of_sealed_copy, group_name, array, change)
    resealed(path_of_sealed_copy)

    assert verify(path_of_sealed_copy, "digests").ok
    named_files = {problem.file for problem in verify(path_of_sealed_copy, "full").problems}
    assert f"data/features.zarr/{group_name}/{array}" in named_files


def digest_of_row(store, group, array, row):
    node = zarr.open_group(zarr.storage.LocalStore(store / "data/features.zarr"), mode="r")[group][array]
    return hashlib.sha256(node[row].tobytes()).hexdigest().encode()


def store_not_a_number_with_its_digest(store):
    """Put NaN for the first clip's vector of group "alone", and the digest of NaN wherever one stands."""
    digest_before = digest_of_row(store, "alone", "pooled", 0)
    rewrite_array(store, "alone", "pooled", set_row(0, np.nan))
    digest_of_nan = digest_of_row(store, "alone", "pooled", 0)
    edit_file(store, "data/clips.csv", lambda data: data.replace(digest_before, digest_of_nan))
    resealed(store)


def test_values_that_are_no_numbers_are_found_though_all_digests_fit(path_of_sealed_copy):
    """A writer that stores NaN for a clip writes the digest of NaN: comparing digests finds nothing.

    The full verification looks at the values too, and names the array.
    """
    store_not_a_number_with_its_digest(path_of_sealed_copy)

    assert verify(path_of_sealed_copy, "digests").ok
    (problem,) = verify(path_of_sealed_copy, "full").problems
    assert problem.file == "data/features.zarr/alone/pooled"
    assert "NaN" in problem.what


def move_a_frame(values):
    """Give a frame of the second clip to the first; their sum stays."""
    values[:2] += [1, -1]


FORGED_NUMBERS_OF_FRAMES = {
    "a frame moved": (move_a_frame, "not what data/clips.csv has a digest of"),
    "a frame lost": (set_row(0, 1), "frames, and its clips have"),
    "none of a clip": (set_row(0, 0), "its number of frames"),
    "some of a failed clip": (set_row(3, 1), "its number of frames"),
    "fewer than none": (set_row(0, -1), "its number of frames"),
    "more than any": (set_row(0, 2**62), "its number of frames"),
}


@pytest.mark.parametrize(
    ("change", "message"), FORGED_NUMBERS_OF_FRAMES.values(), ids=FORGED_NUMBERS_OF_FRAMES
)
def test_forged_numbers_of_frames_are_found(path_of_sealed_copy, change, message):
    """`row_size` says how many frames each clip has, so it decides whose frames are whose.

    The group "theirs" is ragged. The lists of digests are made to fit the forged file.
    """
    rewrite_array(path_of_sealed_copy, "theirs", "row_size", change)
    resealed(path_of_sealed_copy)

    assert verify(path_of_sealed_copy, "digests").ok
    problems = verify(path_of_sealed_copy, "full").problems
    assert any(message in problem.what and "theirs" in problem.file + problem.what for problem in problems)


@pytest.fixture
def four_clips(tmp_path):
    """Clips of 2,800 frames in chunks of 8,192: the frames 5600 to 8399 of clip c2 are in two chunks."""
    frames = {f"c{number}": np.full((2800, 2), number, np.float32) for number in range(4)}
    return seal_frames(tmp_path / "toy", dict.fromkeys(frames, "m"), frames)


def test_a_clip_whose_frames_lie_in_two_chunks_is_named_once(four_clips):
    """Clips c0 to c3 have 2,800 frames each, so those of c2 are 5600 to 8399; chunks have 8,192 frames."""
    frame_of_c2 = 8000
    rewrite_array(four_clips, "toy", "frames", set_row(frame_of_c2, 9))
    resealed(four_clips)

    (problem,) = verify(four_clips, "full").problems
    assert problem.file == "data/features.zarr/toy/frames"
    assert "clip c2" in problem.what


@pytest.mark.parametrize(("chunk", "first_frame"), [(0, 0), (1, 8192)])
def test_a_damaged_chunk_of_frames_is_named_by_its_first_frame(four_clips, chunk, first_frame):
    """Four clips have 11,200 frames in all, and a chunk has 8,192. Two bytes of a chunk are changed."""
    file = f"data/features.zarr/toy/frames/c/{chunk}/0"
    edit_file(four_clips, file, lambda data: data[:40] + b"!!" + data[42:])

    problems = [problem.what for problem in verify(four_clips).problems]
    assert any(f"frames from {first_frame} on of toy/frames" in what for what in problems)


def forge(store, file, old, new):
    """Replace the first `old` of a file, and make the lists of digests fit."""
    assert old in (store / file).read_bytes()
    edit_file(store, file, lambda data: data.replace(old, new, 1))
    resealed(store)


def assert_found_by_full_verification_alone(store, message):
    assert verify(store, "digests").ok
    problems = verify(store, "full").problems
    assert any(message in problem.what for problem in problems), problems


@pytest.mark.parametrize(
    ("node", "old", "new", "message"),
    [
        ("theirs/frames", b'"row"', b'"clip"', "dimension_names: not as the format"),
        ("", b'"spec_version": "1.3"', b'"spec_version": "1.2"', "needs 1.3"),
        ("", b'"CC-BY-4.0"', b'"who knows?"', "licence"),
        ("", b'"parent": null', b'"parent": "x"', "parent should be a fingerprint"),
        ("", b'"Toy films"', b'"Toy Films"', "'source'"),
        ("toy/frames", b'"feature"', b'"Feature"', "dimension_names: not as the format"),
    ],
    ids=[
        "another dimension",
        "an older version of the format",
        "no licence",
        "a parent that is no store",
        "a corpus of which the features do not say that they are",
        "a dimension in another spelling",
    ],
)
def test_forged_metadata_with_fitting_digests_are_found_by_full_alone(
    path_of_sealed_copy, node, old, new, message
):
    """A node of a store (its root "", a group, an array) has metadata in a file zarr.json; one is forged.

    The lists of digests are made to fit, so only the full verification, which reads what a file says, finds
    it.
    """
    forge(path_of_sealed_copy, f"data/features.zarr/{node}/zarr.json", old, new)

    assert_found_by_full_verification_alone(path_of_sealed_copy, message)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b",failed,the file is failed,", b",failed,,", ": failed without a reason"),
        (b",ok,", b",okay,", "'okay'"),
        (b"tt0001", b"tt0000", "ids are not unique and sorted"),
        (b"\n5,", b"\n6,", "expected row 5 with 22 cells"),
        (b"row,clip", b"row,Clip", "line 1"),
    ],
    ids=[
        "a failed clip without a reason",
        "an unknown status",
        "an id twice",
        "another number of a row",
        "another name of a column",
    ],
)
def test_a_forged_table_of_clips_with_fitting_digests_is_found_by_full_alone(
    path_of_sealed_copy, old, new, message
):
    """A store has a line of clips.csv for each clip: the row, the id, the status and more; one is forged.

    The lists of digests are made to fit, so only the full verification, which reads the table, finds it.
    """
    forge(path_of_sealed_copy, "data/clips.csv", old, new)

    assert_found_by_full_verification_alone(path_of_sealed_copy, message)


def test_sha256sum_blames_the_same_damaged_file(path_of_sealed_copy):
    """The list of digests is in the format of `sha256sum`. So a store can be checked without this package."""
    edit_file(path_of_sealed_copy, "data/features.zarr/alone/pooled/c/0/0", lambda data: data[:-1] + b"x")

    process = execute("sha256sum", "-c", "--quiet", "manifest-sha256.txt", code=1, cwd=path_of_sealed_copy)
    assert process.stdout.startswith(verify(path_of_sealed_copy).problems[0].file)
