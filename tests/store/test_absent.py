"""A clip may be absent in one group, with a reason: there it has no features, elsewhere it has."""

import json
import shutil
from dataclasses import replace
from functools import partial

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
from obygaze_features.store import ClipResult, PlannedClip, Stage, open_store, staging_path, verify
from obygaze_features.store.format import FEATURES, STATUSES_WITH_FEATURES, TABLE
from obygaze_features.store.records import COLUMNS, TEXT_COLUMN, clips_csv_bytes, each_clip, parse_clips_csv
from obygaze_features.store.verification import check_content
from tests.files import rows_of

from .toy_stores import (
    CORPUS,
    LICENSED,
    commit_clips,
    group,
    make_sealed_store,
    planted_features,
    respecify,
    seal_stage_of,
    status_of,
)

N_CLIPS = 20
TOY_AND_WAVE = (group(), group("wave", ("pooled", "frames")))
DONE_CLIPS = sorted(
    clip for clip in (f"tt{i:04d}-é" for i in range(N_CLIPS)) if status_of(clip) in STATUSES_WITH_FEATURES
)
CLIPS_WITHOUT_SOUND = (DONE_CLIPS[0], DONE_CLIPS[5], DONE_CLIPS[-1])
ABSENT = {clip: {"wave": "no sound track"} for clip in CLIPS_WITHOUT_SOUND}
STATUS_ABSENT = 4  # the number that a group stores in its array `status` for an absent clip


@pytest.fixture(scope="module")
def sealed_store(tmp_path_factory):
    return make_sealed_store(tmp_path_factory.mktemp("silent"), N_CLIPS, TOY_AND_WAVE, absent=ABSENT)


@pytest.fixture
def path(sealed_store, tmp_path):
    return shutil.copytree(sealed_store, tmp_path / sealed_store.name)


@pytest.fixture
def store(sealed_store):
    return open_store(sealed_store)


def run(*words):
    result = CliRunner().invoke(root_command(), [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(("status", "reason"), [("ok", ""), ("partial", "cut")])
def test_a_clip_with_features_may_lack_a_group_for_a_reason(status, reason):
    """The clip has features in group "toy" and none in group "wave"."""
    groups = {"toy": planted_features("a", group("toy"))}

    clip = ClipResult("a", status, reason, groups=groups, absent={"wave": "no sound track"})
    assert clip.absent == {"wave": "no sound track"}


@pytest.mark.parametrize(
    ("status", "groups", "absent"),
    [
        ("ok", (), {"wave": "no sound track"}),
        ("failed", (), {"wave": "no sound track"}),
        ("ok", ("toy",), {"wave": ""}),
        ("ok", ("toy",), {"wave": "two\nlines"}),
        ("ok", ("toy",), {"toy": "no sound track"}),
    ],
    ids=["no other group", "a failed clip", "no reason", "a reason of two lines", "a group that is there"],
)
def test_an_absence_that_makes_no_sense_is_refused(status, groups, absent):
    """An absence needs a reason of one line, a group without features, and a clip with features elsewhere.

    `groups` names the groups in which the clip has features; `absent` says group -> reason.
    """
    features_in = {name: planted_features("a", group("toy")) for name in groups}

    with pytest.raises(StoreError):
        ClipResult("a", status, "why", groups=features_in, absent=absent)


def test_an_absent_clip_lacks_features_in_that_group_alone(store):
    """Three clips have pictures and no sound: they have features in group "toy", and none in group "wave"."""
    wave = store["wave"]
    toy = store["toy"]
    assert store.attributes["spec_version"] == "1.2"

    silent_rows = [wave.clip_ids.index(clip) for clip in CLIPS_WITHOUT_SOUND]
    assert wave.status[silent_rows].tolist() == [STATUS_ABSENT] * 3
    assert set(np.flatnonzero(toy.usable != wave.usable)) == set(silent_rows)

    assert (np.isnan(wave.pooled()).all(axis=1) == ~wave.usable).all()
    frames = np.concatenate([block for _, block in wave.blocks("frames")])
    assert (np.isnan(frames).all(axis=(1, 2)) == ~wave.usable).all()
    assert (wave.frame_index[silent_rows] == -1).all()


@pytest.mark.parametrize("clip", CLIPS_WITHOUT_SOUND)
def test_reading_an_absent_clip_is_refused_and_works_in_other_groups(store, clip):
    """A clip without sound has features in group "toy", and is absent in group "wave"."""
    planted = planted_features(clip, group("toy"))
    assert np.array_equal(store["toy"].read(clip, "pooled"), planted.arrays["pooled"])

    with pytest.raises(StoreError, match=f"{clip}"):
        store["wave"].read(clip, "pooled")


def test_the_table_of_clips_has_a_column_with_the_reasons_of_absence(sealed_store, store):
    """A digest stands only where a row has features: not for failed clips, nor for absent ones in "wave"."""
    rows = rows_of(sealed_store / TABLE)
    assert [name for name in rows[0] if name.startswith("absent:")] == ["absent:wave"]
    for row in rows:
        silent = row["clip"] in CLIPS_WITHOUT_SOUND
        assert row["absent:wave"] == ("no sound track" if silent else "")
        assert (row["sha256:wave/pooled"] == "") == (silent or row["status"] == "failed")
        assert (row["sha256:toy/pooled"] == "") == (row["status"] == "failed")
        assert row["movie"].startswith("tt")

    arrays = [name.removeprefix("sha256:") for name in rows[0] if name.startswith("sha256:")]
    assert clips_csv_bytes(store.clips, arrays) == (sealed_store / TABLE).read_bytes()


def test_a_store_with_absent_clips_verifies_and_counts_them(sealed_store):
    """Three clips are absent in group "wave"; their status is ok or partial, for they have other features."""
    report = verify(sealed_store, "full")

    assert report.ok, report.problems
    assert report.counts["absent in wave"] == 3
    assert report.counts["ok"] + report.counts["partial"] == len(DONE_CLIPS)


def test_commands_count_absent_clips(sealed_store):
    """In the store three clips are absent in group "wave", and none in group "toy"."""
    assert "3 absent in wave" in run("store", "verify", sealed_store, "--full")

    inspected = json.loads(run("store", "inspect", sealed_store, "--json"))
    assert inspected["absent"] == {"wave": 3}

    listed, stage = json.loads(run("store", "ls", sealed_store.parent, "--json"))
    assert (listed["format"], stage["format"]) == ("1.2", "staging")
    assert listed["features"] == stage["features"] == "toy, wave (3 absent)"


def test_a_store_that_is_sealed_says_the_counts_of_inspect_as_json(sealed_store, tmp_path):
    """The stage is sealed once more, as another version."""
    folder = shutil.copytree(sealed_store.parent, tmp_path / "stores")
    name = folder / sealed_store.name.rpartition("-")[0]
    inspected = json.loads(run("store", "inspect", sealed_store, "--json"))

    sealed = json.loads(
        run(
            "store", "seal", name, "--licence", "MIT", "--store-version", "2.0.0", "--allow-missing", "--json"
        )
    )

    assert sealed["absent"] == inspected["absent"] == {"wave": 3}
    assert sealed["clips"] == inspected["clips"]


def test_the_card_of_a_store_counts_absent_clips(sealed_store):
    """The card is written when the store is sealed, and again when it is published."""
    sealed_card = (sealed_store / "README.md").read_bytes()
    published_card = card_files(open_store(sealed_store))["README.md"]

    assert b"No features of 3 clips (absent)" in sealed_card
    assert b"No features of 3 clips (absent)" in published_card


def change_row(path, **changes):
    """Change fields of the first clip without sound in the table of clips; its digests get further ones."""
    table = path / TABLE
    header, *_ = table.read_text(encoding="utf-8").splitlines()
    arrays = [name.removeprefix("sha256:") for name in header.split(",") if name.startswith("sha256:")]
    rows = list(parse_clips_csv([table.read_bytes()], "here"))
    ids = [row.clip_id for row in rows]
    changed = ids.index(CLIPS_WITHOUT_SOUND[0])
    if "digests" in changes:
        changes["digests"] = rows[changed].digests | changes["digests"]
    rows[changed] = replace(rows[changed], **changes)
    table.write_bytes(clips_csv_bytes(rows, arrays))


def change_value(path, array, value):
    """Write another value to the row of the first absent clip."""
    node = zarr.open_group(zarr.storage.LocalStore(path / FEATURES), mode="r+")["wave"][array]
    row = open_store(path)["wave"].clip_ids.index(CLIPS_WITHOUT_SOUND[0])
    node[row] = value


FORGERIES = {
    "values stored for an absent row": ("wave/pooled", partial(change_value, array="pooled", value=1.0)),
    "another status in the group": ("wave/status", partial(change_value, array="status", value=1)),
    "an unknown status": ("wave/status", partial(change_value, array="status", value=5)),
    "no reason in the table": ("wave", partial(change_row, absent={})),
    "absent in all": (TABLE, partial(change_row, absent={"wave": "x", "toy": "x"})),
    "absent and failed": (TABLE, partial(change_row, status="failed", reason="x")),
    "absent in no group": (TABLE, partial(change_row, absent={"wave": "x", "other": "x"})),
    "a reason with a line break": (TABLE, partial(change_row, absent={"wave": "x\ny"})),
    "a digest of an absent row": ("wave/pooled", partial(change_row, digests={"wave/pooled": "0" * 64})),
    "an older version": (f"{FEATURES}/zarr.json", partial(respecify, spec_version="1.1")),
}
"""What is wrong -> the file that is blamed, and what changes the store so."""


@pytest.mark.parametrize(("blamed", "forge"), FORGERIES.values(), ids=FORGERIES)
def test_a_forged_absence_is_found_and_the_file_blamed(path, blamed, forge):
    """A full check compares what the table of clips says of absences with what the group stores.

    In the store three clips are absent in group "wave"; `forge` changes what it says of the first of them.
    """
    forge(path)

    files = open_store(path).files
    problems, _ = check_content(files, files.names())
    assert any(blamed in problem.file for problem in problems), problems


def test_diff_names_the_clips_absent_in_one_store_and_compares_the_others(store, tmp_path):
    """Two stores have the same 20 clips; in `store`, three clips are absent in group "wave" (no sound track).

    These three are named, and are not compared in that group. All other features are the same.
    """
    complete = open_store(make_sealed_store(tmp_path, N_CLIPS, TOY_AND_WAVE))

    difference = diff(complete, store)

    assert difference.clips == {"absent": CLIPS_WITHOUT_SOUND}
    sentences = describe_differences(difference, "a", "b")
    assert any("absent" in line and CLIPS_WITHOUT_SOUND[0] in line for line in sentences)

    n_clips_with_features = len(DONE_CLIPS)
    n_compared = {array.array: array.clips for array in difference.arrays}
    assert n_compared["toy/pooled"] == n_clips_with_features
    assert n_compared["wave/pooled"] == n_clips_with_features - 3
    assert not any(array.changed for array in difference.arrays)


def test_a_store_with_absent_clips_does_not_differ_from_itself(store):
    """Values of absent clips are NaN, which differs from itself; rows without features are not compared."""
    assert diff(store, store).equal


def test_exports_leave_out_the_clips_absent_in_the_exported_group(store, tmp_path):
    """A file of features has no entry for a clip without features, be it absent or failed.

    DONE_CLIPS are those that did not fail; of these, CLIPS_WITHOUT_SOUND are absent in group "wave".
    """
    n_written, n_left_out = export_hdf5(store, "wave", tmp_path / "wave.h5")
    assert n_written == len(DONE_CLIPS) - len(CLIPS_WITHOUT_SOUND)
    assert n_left_out == N_CLIPS - n_written
    assert export_anndata(store, "wave", tmp_path / "wave.h5ad")[0] == n_written
    with h5py.File(tmp_path / "wave.h5") as file:
        assert not set(CLIPS_WITHOUT_SOUND) & {node.attrs["clip"] for node in file.values()}

    only_failed_clips_left_out = (len(DONE_CLIPS), N_CLIPS - len(DONE_CLIPS))
    assert export_hdf5(store, "toy", tmp_path / "toy.h5") == only_failed_clips_left_out


def test_stores_that_disagree_about_absences_are_not_merged(store, tmp_path):
    """Three clips are absent in the first store, for want of sound, and have features in the second.

    No clip can be both in one merged store. The error names the first of them.
    """
    store_without_absent_clips = open_store(make_sealed_store(tmp_path, N_CLIPS, TOY_AND_WAVE))

    with pytest.raises(StoreError, match=CLIPS_WITHOUT_SOUND[0]):
        merge([store, store_without_absent_clips], tmp_path / "merged")


@pytest.fixture
def store_of_clip_zz(tmp_path):
    """A store of the one clip zz, which is absent in no group."""
    stage = Stage.open(staging_path(tmp_path / "other"), [PlannedClip("zz", "tt1")], TOY_AND_WAVE, CORPUS)
    commit_clips(stage, ["zz"], lambda _: "ok")
    return open_store(seal_stage_of(tmp_path / "other", **LICENSED))


def test_a_merged_store_keeps_the_absences_of_its_parts(store, store_of_clip_zz, tmp_path):
    """Three of the 20 clips of a store have no features in group "wave", as they have no sound track.

    Version 1.2 of the format is the first that knows such absences.
    """
    merged = open_store(merge([store, store_of_clip_zz], tmp_path / "merged"))

    absences = {clip.clip_id: clip.absent for clip in merged.clips if clip.absent}
    assert absences == {clip: {"wave": "no sound track"} for clip in CLIPS_WITHOUT_SOUND}
    assert merged.clips[:20] == store.clips
    assert merged.attributes["spec_version"] == "1.2"
    assert verify(merged.path, "full").ok


@pytest.mark.parametrize("optional", [[], ["without_pictures_s", "absent:net"]], ids=["plain", "optional"])
def test_a_line_of_the_table_of_clips_without_a_cell_is_refused(optional):
    """A line that ends too early, here without its text, must not be read as a clip without a text.

    The text is the last column, since this store of texts has no features, whose digests would follow.
    """
    names = [*COLUMNS[:4], *optional, *COLUMNS[4:], TEXT_COLUMN]
    cells = {"row": "0", "clip_id": "a", "status": "ok", TEXT_COLUMN: "A man waits."}
    line = ",".join(cells.get(name, "") for name in names)
    header = ",".join(names)

    (clip,) = each_clip([f"{header}\n{line}\n".encode()], "clips.csv")
    assert clip.text == "A man waits."

    without_text = line.removesuffix(",A man waits.")
    with pytest.raises(StoreError, match=f"line 2: expected row 0 with {len(names)} cells"):
        list(each_clip([f"{header}\n{without_text}\n".encode()], "clips.csv"))
