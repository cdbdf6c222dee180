"""Verification: whatever changed is found, at the depth that says it will."""

import json
import random
import shutil

import numpy as np
import pytest
import zarr

from obygaze_features.store import verify
from obygaze_features.store.store_files import payload_files, tag_files
from tests.process import execute

from .hostile_stores import resealed
from .toy_stores import group, sealed

DEPTHS = ("quick", "digests", "full")


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    return sealed(tmp_path_factory.mktemp("pristine"), 20, [group(), group("alone", ["pooled"])])


@pytest.fixture
def store(pristine, tmp_path):
    return shutil.copytree(pristine, tmp_path / pristine.name)


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_sound_store_passes_at_every_depth(pristine, depth):
    report = verify(pristine, depth)
    assert report.ok, report.problems
    assert report.counts["files"] == len(payload_files(pristine))
    if depth == "full":
        assert [report.counts[status] for status in ("ok", "partial", "failed", "missing")] == [14, 3, 3, 0]
    assert json.loads(json.dumps(report.record()))["fingerprint"] == report.fingerprint


def test_every_single_flipped_bit_in_any_file_is_found_and_the_file_named(store):
    rng = random.Random(3)
    files = [*payload_files(store), *tag_files(store), "tagmanifest-sha256.txt"]
    for name in files:
        sound = (store / name).read_bytes()
        flipped = bytearray(sound)
        bit = rng.randrange(8 * len(flipped))
        flipped[bit // 8] ^= 1 << bit % 8
        (store / name).write_bytes(flipped)
        for depth in ("digests", "full"):
            report = verify(store, depth)
            # A flip in a manifest of digests may as well be blamed on the file whose digest it changed.
            blamed = {problem.file for problem in report.problems}
            assert blamed, (name, bit, depth)
            assert name in blamed or "manifest" in name, (name, bit, depth, blamed)
        (store / name).write_bytes(sound)
    assert verify(store, "full").ok


MISSING = ("data/features.zarr/toy/frames/c/0/0/0", "data/clips.csv", "README.md", "bagit.txt")
EXTRA = ("data/features.zarr/toy/stray", "notes.txt", "data/x.csv")


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", [*MISSING, *EXTRA])
def test_a_file_missing_or_too_many_is_found_by_every_depth(store, depth, name):
    if name in MISSING:
        (store / name).unlink()
    else:
        (store / name).write_text("hello", encoding="utf-8")
    report = verify(store, depth)
    assert not report.ok
    said = [problem.what for problem in report.problems if problem.file == name]
    assert depth == "quick" or any(name in MISSING or what.startswith("extra") for what in said)


def test_a_link_in_place_of_a_file_is_found(store):
    file = store / "data/clips.csv"
    file.rename(store.parent / "clips.csv")
    file.symlink_to(store.parent / "clips.csv")
    (store / "data/folder").symlink_to(store.parent)
    found = {problem.file for problem in verify(store).problems if "plain file" in problem.what}
    assert found == {"data/clips.csv", "data/folder"}


def test_swapped_chunks_are_found_and_the_rows_named(tmp_path):
    path = sealed(tmp_path, 72)
    one, two = (path / f"data/features.zarr/toy/tokens/c/{i}/0/0" for i in (0, 2))
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    assert verify(path, "quick").ok  # sizes are what they were
    found = verify(path).problems
    assert [problem.file.split("/")[-3] for problem in found] == ["0", "2"]
    assert "rows from 32 on of toy/tokens" in found[1].what


def rewrite(store, group, array, change):
    node = zarr.open_group(zarr.storage.LocalStore(store / "data/features.zarr"), mode="r+")[group][array]
    values = node[:]
    change(values)
    node[:] = values


def edit(store, file, change):
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
}


@pytest.mark.parametrize("what", FORGERIES)
def test_forged_content_with_fitting_manifests_is_found_by_full_alone(store, what):
    node, array, change = FORGERIES[what]
    rewrite(store, node, array, change)
    resealed(store)  # as a clever forger would
    assert verify(store, "digests").ok
    assert f"data/features.zarr/{node}/{array}" in {
        problem.file for problem in verify(store, "full").problems
    }


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("zarr.json", b'"CC-BY-4.0"', b'"who knows?"', "licence"),
        ("zarr.json", b'"parent": null', b'"parent": "x"', "parent should be a fingerprint"),
        ("zarr.json", b'"Toy films"', b'"Toy Films"', "'source'"),
        ("toy/frames/zarr.json", b'"feature"', b'"Feature"', "dimension_names: not as the format"),
        ("../clips.csv", b",failed,the file is failed,", b",failed,,", ": failed without a reason"),
        ("../clips.csv", b",ok,", b",okay,", "'okay'"),
        ("../clips.csv", b"tt0001", b"tt0000", "ids are not unique and sorted"),
        ("../clips.csv", b"\n5,", b"\n6,", "expected row 5"),
        ("../clips.csv", b"row,clip", b"row,Clip", "line 1"),
    ],
)  # fmt: skip
def test_forged_metadata_with_fitting_manifests_are_found_by_full_alone(store, file, old, new, message):
    file = f"data/features.zarr/{file}"
    assert old in (store / file).read_bytes()
    edit(store, file, lambda data: data.replace(old, new, 1))
    resealed(store)
    assert verify(store, "digests").ok
    problems = verify(store, "full").problems
    assert any(message in problem.what for problem in problems), problems


def test_sha256sum_agrees_with_the_manifest_depth(store):
    edit(store, "data/features.zarr/alone/pooled/c/0/0", lambda data: data[:-1] + b"x")
    done = execute("sha256sum", "-c", "--quiet", "manifest-sha256.txt", code=1, cwd=store)
    assert done.stdout.startswith(verify(store).problems[0].file)
