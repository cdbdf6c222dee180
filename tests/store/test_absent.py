"""A clip may be absent in one group, with a reason: there it has no features, elsewhere it has."""

import json
import shutil
from dataclasses import replace

import h5py
import numpy as np
import pytest
import zarr
from click.testing import CliRunner

from obygaze.cli import root_command
from obygaze_features.errors import StoreError
from obygaze_features.exchange.diff import describe_differences, diff
from obygaze_features.exchange.export import export_anndata, export_hdf5
from obygaze_features.exchange.merge import merge
from obygaze_features.exchange.publish import card_files
from obygaze_features.store import ClipResult, PlannedClip, Stage, open_store, seal, staging_path, verify
from obygaze_features.store.format import DONE, FEATURES, TABLE
from obygaze_features.store.records import clips_csv_bytes, parse_clips_csv
from obygaze_features.store.verification import check_content
from tests.files import rows_of

from .toy_stores import CORPUS, WITH, do, features, group, respecify, sealed, status_of

N = 20
KINDS = (group(), group("wave", ("pooled", "frames")))
DONE_CLIPS = sorted(clip for clip in (f"tt{i:04d}-é" for i in range(N)) if status_of(clip) in DONE)
SILENT = (DONE_CLIPS[0], DONE_CLIPS[5], DONE_CLIPS[-1])
ABSENT = {clip: {"wave": "no sound track"} for clip in SILENT}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    return sealed(tmp_path_factory.mktemp("silent"), N, KINDS, absent=ABSENT)


@pytest.fixture
def path(pristine, tmp_path):
    return shutil.copytree(pristine, tmp_path / pristine.name)


@pytest.fixture
def store(pristine):
    return open_store(pristine)


def run(*words):
    result = CliRunner().invoke(root_command(), [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_result_says_why_a_group_is_absent_and_has_another():
    kept = {"toy": features("a", KINDS[0])}
    ClipResult("a", "ok", groups=kept, absent={"wave": "no sound track"})
    ClipResult("a", "partial", "cut", groups=kept, absent={"wave": "no sound track"})
    for status, groups, absent in (
        ("ok", {}, {"wave": "no sound track"}),
        ("failed", {}, {"wave": "no sound track"}),
        ("ok", kept, {"wave": ""}),
        ("ok", kept, {"wave": "two\nlines"}),
        ("ok", kept, {"toy": "no sound track"}),
    ):
        with pytest.raises(StoreError):
            ClipResult("a", status, "why", groups=groups, absent=absent)


def test_a_group_has_no_features_of_its_absent_clips_and_other_groups_have(store):
    wave = store["wave"]
    toy = store["toy"]
    rows = [wave.clip_ids.index(clip) for clip in SILENT]
    assert store.attributes["spec_version"] == "1.2"
    assert wave.status[rows].tolist() == [4, 4, 4]
    assert set(np.flatnonzero(toy.usable != wave.usable)) == set(rows)
    assert np.isnan(wave.pooled()[~wave.usable]).all()
    assert np.isfinite(wave.pooled()[wave.usable]).all()
    blocks = np.concatenate([block for _, block in wave.blocks("frames")])
    assert (np.isnan(blocks).all(axis=(1, 2)) == ~wave.usable).all()
    assert (wave.frame_index[rows] == -1).all()
    for clip in SILENT:
        assert np.array_equal(toy.read(clip, "pooled"), features(clip, KINDS[0]).arrays["pooled"])
        with pytest.raises(StoreError, match=f"{clip}"):
            wave.read(clip, "pooled")


def test_the_table_of_clips_has_a_column_for_a_group_that_is_absent(pristine, store):
    lines = rows_of(pristine / TABLE)
    assert [name for name in lines[0] if name.startswith("absent:")] == ["absent:wave"]
    for line in lines:
        silent = line["clip"] in SILENT
        assert line["absent:wave"] == ("no sound track" if silent else "")
        assert (line["sha256:wave/pooled"] == "") == (silent or line["status"] == "failed")
        assert (line["sha256:toy/pooled"] == "") == (line["status"] == "failed")
        assert line["movie"].startswith("tt")
    assert (
        clips_csv_bytes(store.clips, [name.removeprefix("sha256:") for name in lines[0] if "/" in name])
        == (pristine / TABLE).read_bytes()
    )


def test_it_verifies_and_its_absent_clips_are_counted(pristine):
    report = verify(pristine, "full")
    assert report.ok, report.problems
    assert report.counts["absent in wave"] == 3
    assert report.counts["ok"] + report.counts["partial"] == len(DONE_CLIPS)
    assert "3 absent in wave" in run("store", "verify", pristine, "--full")
    assert json.loads(run("store", "inspect", pristine, "--json"))["absent"] == {"wave": 3}
    listed = json.loads(run("store", "ls", pristine.parent, "--json"))[0]
    assert (listed["format"], listed["features"]) == ("1.2", "toy, wave (3 absent)")
    assert "No features of 3 clips (absent)" in (pristine / "README.md").read_text(encoding="utf-8")
    assert b"No features of 3 clips (absent)" in card_files(open_store(pristine))["README.md"]


def retable(path, changes):
    """Give an absent clip other fields in the table of clips; digests are added to its own."""
    table = path / TABLE
    names = [
        name.removeprefix("sha256:") for name in table.read_text(encoding="utf-8").splitlines()[0].split(",")
    ]
    clips = list(parse_clips_csv([table.read_bytes()], "here"))
    (row,) = (row for row, clip in enumerate(clips) if clip.clip_id == SILENT[0])
    if "digests" in changes:
        changes = {"digests": clips[row].digests | changes["digests"]}
    clips[row] = replace(clips[row], **changes)
    table.write_bytes(clips_csv_bytes(clips, [name for name in names if "/" in name]))


def put(path, array, value):
    node = zarr.open_group(zarr.storage.LocalStore(path / FEATURES), mode="r+")["wave"][array]
    row = open_store(path)["wave"].clip_ids.index(SILENT[0])
    node[row] = value


FORGERIES = {
    "values stored for an absent row": ("wave/pooled", lambda path: put(path, "pooled", 1.0)),
    "another status in the group": ("wave/status", lambda path: put(path, "status", 1)),
    "an unknown status": ("wave/status", lambda path: put(path, "status", 5)),
    "no reason in the table": ("wave", {"absent": {}}),
    "absent in all": (TABLE, {"absent": {"wave": "x", "toy": "x"}}),
    "absent and failed": (TABLE, {"status": "failed", "reason": "x"}),
    "absent in no group": (TABLE, {"absent": {"wave": "x", "other": "x"}}),
    "a reason with a line break": (TABLE, {"absent": {"wave": "x\ny"}}),
    "a digest of an absent row": ("wave/pooled", {"digests": {"wave/pooled": "0" * 64}}),
    "an older version": (f"{FEATURES}/zarr.json", lambda path: respecify(path, spec_version="1.1")),
}
"""File at fault -> how it is changed, or other fields of an absent clip."""


@pytest.mark.parametrize("forge", FORGERIES)
def test_what_does_not_fit_is_found(path, forge):
    file, change = FORGERIES[forge]
    change(path) if callable(change) else retable(path, change)
    problems, _ = check_content(open_store(path).files, open_store(path).files.names())
    assert any(file in problem.file for problem in problems), problems


def test_diff_compares_what_both_have_and_names_clips_absent_in_one(store, tmp_path):
    complete = open_store(sealed(tmp_path, N, KINDS))
    assert diff(store, store).equal
    difference = diff(complete, store)
    assert difference.clips == {"absent": SILENT}
    assert {array.array: array.clips for array in difference.arrays if "pooled" in array.array} == {
        "toy/pooled": len(DONE_CLIPS),
        "wave/pooled": len(DONE_CLIPS) - 3,
    }
    assert not any(array.changed for array in difference.arrays)
    assert any("absent" in line and SILENT[0] in line for line in describe_differences(difference, "a", "b"))


def test_exports_leave_absent_clips_of_their_group_out(store, tmp_path):
    assert export_hdf5(store, "wave", tmp_path / "wave.h5") == (len(DONE_CLIPS) - 3, N - len(DONE_CLIPS) + 3)
    assert export_hdf5(store, "toy", tmp_path / "toy.h5") == (len(DONE_CLIPS), N - len(DONE_CLIPS))
    assert export_anndata(store, "wave", tmp_path / "wave.h5ad")[0] == len(DONE_CLIPS) - 3
    with h5py.File(tmp_path / "wave.h5") as file:
        assert not set(SILENT) & {node.attrs["clip"] for node in file.values()}


def test_stores_that_differ_in_what_is_absent_are_not_merged(store, tmp_path):
    complete = open_store(sealed(tmp_path, N, KINDS))
    with pytest.raises(StoreError, match=rf"{SILENT[0]}"):
        merge([store, complete], tmp_path / "merged")


def test_merging_carries_what_is_absent(store, tmp_path):
    stage = Stage.open(staging_path(tmp_path / "other"), [PlannedClip("zz", "tt1")], KINDS, CORPUS)
    do(stage, ["zz"], lambda _: "ok")
    second = open_store(seal(None, tmp_path / "other", **WITH))
    merged = open_store(merge([store, second], tmp_path / "merged"))
    assert merged.attributes["spec_version"] == "1.2"
    assert merged.clips[:N] == store.clips
    assert verify(merged.path, "full").ok
