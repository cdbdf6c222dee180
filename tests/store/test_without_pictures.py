"""A clip of which a part has no pictures says in numbers where, and wherever its features go, they go too."""

import csv
import io
import json
import math
import shutil

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

from obygaze.cli import root_command
from obygaze_features.errors import StoreError
from obygaze_features.exchange.diff import diff
from obygaze_features.exchange.export import export_anndata, export_hdf5
from obygaze_features.exchange.merge import merge
from obygaze_features.store import ClipResult, PlannedClip, Stage, open_store, seal, staging_path, verify
from obygaze_features.store.format import FEATURES, TABLE
from obygaze_features.store.records import StoredClip, clips_csv_bytes, parse_clips_csv
from obygaze_features.store.testing import seal_arrays

from .test_schema import check_against_schema
from .toy_stores import CORPUS, LICENSED, group, planted_features, respecify

STRETCHES = ((1.25, 2.5), (4.0, 6.1))
SPAN = (1.0, 7.0)
CLIPS = ("a", "b", "c")
KIND = group("toy", ("pooled",))


def make_sealed_store(folder, name="toy", clips=CLIPS, stretches=STRETCHES):
    """Seal a store in which clip `b` has no pictures in some stretches."""
    partial = {"b": "pictures are missing"} if "b" in clips else {}
    values = np.stack([np.full(4, ord(clip), np.float32) for clip in clips])
    return seal_arrays(
        folder / name,
        dict.fromkeys(clips, "m"),
        {"toy": {"pooled": values}},
        partial=partial,
        without_pictures_s={"b": stretches},
        spans=dict.fromkeys(clips, SPAN),
    )


@pytest.fixture(scope="module")
def path_of_store(tmp_path_factory):
    return make_sealed_store(tmp_path_factory.mktemp("sealed"))


def stretches_of(place):
    return {clip.clip_id: clip.without_pictures_s for clip in open_store(place).clips}


def test_the_table_of_clips_lists_the_stretches_without_pictures(path_of_store):
    """The store has the clips a, b and c; b has no pictures from 1.25 s to 2.5 s and from 4 s to 6.1 s.

    In the table, stretches are separated by semicolons, and stand in a column between reason and movie.
    """
    rows = list(csv.DictReader(io.StringIO((path_of_store / TABLE).read_text(encoding="utf-8"))))

    assert [row["without_pictures_s"] for row in rows] == ["", "1.25 2.5;4.0 6.1", ""]
    assert list(rows[0])[3:6] == ["reason", "without_pictures_s", "movie"]
    for row in rows:
        check_against_schema("clip", row)


def test_a_store_is_read_with_its_stretches_without_pictures(path_of_store):
    """The store has the clips a, b and c; b has no pictures from 1.25 s to 2.5 s and from 4 s to 6.1 s.

    A store with such stretches needs version 1.4 of the format.
    """
    store = open_store(path_of_store)
    assert store.attributes["spec_version"] == "1.4"

    stretches_of_b = ((1.25, 2.5), (4.0, 6.1))
    assert stretches_of(path_of_store) == {"a": (), "b": stretches_of_b, "c": ()}
    row_of_b = 1
    assert store.table.without_pictures_s == {row_of_b: stretches_of_b}
    assert verify(path_of_store, "full").ok


def test_a_store_of_whole_clips_has_no_column_for_stretches(tmp_path):
    """A store whose clips have no stretches without pictures is of version 1.0 of the format.

    So older readers can read it, which do not know the column for stretches.
    """
    plain = make_sealed_store(tmp_path, stretches=())

    assert b"without_pictures_s" not in (plain / TABLE).read_bytes()
    assert open_store(plain).attributes["spec_version"] == "1.0"
    assert stretches_of(plain) == {"a": (), "b": (), "c": ()}


def commit(stage, clip, stretches=()):
    """Commit the features of a clip, which is partial if it has stretches without pictures."""
    status, reason = ("partial", "cut") if stretches else ("ok", "")
    groups = {"toy": planted_features(clip, KIND)}
    with stage.writer() as writer:
        writer.commit([ClipResult(clip, status, reason, groups=groups, without_pictures_s=stretches)])


def stage_of_a_and_b(folder):
    """A stage of clips a and b, in which b is committed with its stretches without pictures."""
    planned = [PlannedClip(clip, "m", *SPAN) for clip in "ab"]
    stage = Stage.open(staging_path(folder / "toy"), planned, [KIND], CORPUS)
    commit(stage, "b", STRETCHES)
    return stage


def test_stretches_survive_in_a_stage_that_is_resumed(tmp_path):
    """Clip b is committed with stretches without pictures, and the stage is opened again for clip a.

    The journal of a stage has a line for what was committed, which fits the schema of the format.
    """
    begun = stage_of_a_and_b(tmp_path)

    resumed = Stage.open(begun.path, begun.clips, [KIND], CORPUS)
    assert resumed.status()["b"].without_pictures_s == STRETCHES
    (journal,) = (resumed.path / "journal").glob("*.jsonl")
    check_against_schema("journal", json.loads(journal.read_text(encoding="utf-8")))

    commit(resumed, "a")
    store = seal(resumed.path, tmp_path / "toy", **LICENSED)
    assert stretches_of(store) == {"a": (), "b": STRETCHES}


def test_stretches_survive_in_a_store_that_grows(tmp_path):
    """A store has clips a and b, of which b has stretches without pictures; it grows by clip d."""
    stage = stage_of_a_and_b(tmp_path)
    commit(stage, "a")
    parent = seal(stage.path, tmp_path / "toy", **LICENSED)

    planned = [*stage.clips, PlannedClip("d", "m", *SPAN)]
    growing = Stage.open(staging_path(tmp_path / "more"), planned, [KIND], CORPUS, parent=parent)
    commit(growing, "d")
    grown = seal(growing.path, tmp_path / "toy", version="1.1.0", **LICENSED)

    assert stretches_of(grown) == {"a": (), "b": STRETCHES, "d": ()}
    assert verify(grown, "full").ok


def test_a_merged_store_keeps_the_stretches_of_its_parts(path_of_store, tmp_path):
    """The first store has clips a, b and c, of which b has stretches without pictures; the second has d."""
    store_of_d = make_sealed_store(tmp_path, "more", clips=("d",))

    merged = merge([path_of_store, store_of_d], tmp_path / "merged", version="1.1.0")

    assert stretches_of(merged) == {"a": (), "b": STRETCHES, "c": (), "d": ()}
    assert open_store(merged).attributes["spec_version"] == "1.4"


def test_stores_whose_stretches_differ_are_not_merged_and_diff_names_the_clips(path_of_store, tmp_path):
    """Two stores have the same clips; one says of clip b two stretches without pictures, the other one."""
    first_stretch_alone = STRETCHES[:1]
    other = make_sealed_store(tmp_path, stretches=first_stretch_alone)

    with pytest.raises(StoreError, match="clip b: without_pictures_s differs"):
        merge([path_of_store, other], tmp_path / "both", version="1.1.0")

    difference = diff(open_store(path_of_store), open_store(other))
    assert difference.clips["without_pictures_s"] == ("b",)


def write_manifest_of_a_b_and_c(file):
    lines = ["clip_id,movie,video,start_s,end_s,level,concepts,annotator"]
    lines += [f"{clip},m,m.mkv,{SPAN[0]},{SPAN[1]},,," for clip in CLIPS]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("export", "name", "format_of_file"),
    [(export_hdf5, "a.h5", "hdf5"), (export_anndata, "a.h5ad", "table")],
)
def test_exported_stretches_come_back_by_import(path_of_store, tmp_path, export, name, format_of_file):
    """The store has the clips a, b and c, of which b has two stretches without pictures.

    It is exported to one file, and the command `store import` makes a store of the file.
    """
    exported, manifest = tmp_path / name, tmp_path / "clips.csv"
    export(open_store(path_of_store), "toy", exported)
    write_manifest_of_a_b_and_c(manifest)

    words = ["store", "import", manifest, exported, tmp_path / "back", "--from", format_of_file]
    words += ["--licence", "CC0-1.0", "--allow-missing"]
    result = CliRunner().invoke(root_command(), [str(word) for word in words])

    assert result.exit_code == 0, result.output
    imported = tmp_path / "back-1.0.0"
    assert stretches_of(imported) == {"a": (), "b": STRETCHES, "c": ()}


# What is wrong -> stretches without pictures (start and end in seconds) of clip b, which lasts from 1 to 7 s;
# and what the message says of them.
WRONG = {
    "before the clip": (((0.5, 2.0),), "outside of the clip"),
    "behind the clip": (((6.0, 7.5),), "outside of the clip"),
    "end before start": (((3.0, 2.0),), "start before it ends"),
    "of no length": (((3.0, 3.0),), "start before it ends"),
    "no number": (((math.nan, 2.0),), "two times"),
    "endless": (((2.0, math.inf),), "two times"),
    "overlapping": (((2.0, 4.0), (3.0, 5.0)), "the stretch before ends at 4.0 s"),
    "in another order": (((4.0, 5.0), (2.0, 3.0)), "the stretch before ends at 5.0 s"),
}


@pytest.mark.parametrize(("stretches", "reason"), WRONG.values(), ids=WRONG)
def test_impossible_stretches_without_pictures_are_neither_sealed_nor_read(tmp_path, stretches, reason):
    """A clip may have stretches without pictures. They must lie in it, in order, and must not overlap.

    Clip b lasts from 1 s to 7 s, and has stretches of which this is not true, such as one from 0.5 s on. A
    store with it cannot be sealed. If a stranger has written a table with it, whose line 2 is clip b, the
    table cannot be read.
    """
    with pytest.raises(StoreError, match=f"clip b: .*{reason}"):
        make_sealed_store(tmp_path, stretches=stretches)

    start_s, end_s = SPAN
    clip_b = StoredClip("b", "partial", "cut", "m", start_s, end_s, without_pictures_s=stretches)
    table_of_a_stranger = clips_csv_bytes([clip_b], [])
    with pytest.raises(StoreError, match=f"here, line 2: .*{reason}"):
        parse_clips_csv([table_of_a_stranger], "here")


@pytest.mark.parametrize("status", ["ok", "failed", "missing"])
def test_stretches_of_a_clip_that_is_not_partial_are_refused(status):
    """A clip with all pictures is ok, and one without any has failed: neither has stretches."""
    clip = StoredClip("b", status, "why", "m", *SPAN, without_pictures_s=STRETCHES)
    table = clips_csv_bytes([clip], [])

    with pytest.raises(StoreError, match=f"of a clip that is {status}"):
        parse_clips_csv([table], "here")


def table_of_a_clip_with_stretches(cell):
    """A table of clips with a clip b, in whose cell of stretches without pictures stands this text."""
    clip = StoredClip("b", "partial", "cut", "m", *SPAN, without_pictures_s=STRETCHES)
    return clips_csv_bytes([clip], []).replace(b"1.25 2.5;4.0 6.1", f'"{cell}"'.encode())


@pytest.mark.parametrize(
    "cell",
    ["1.25", "1.25 2.5 3.0", "1.25 2.5;", "x y", "1.25,2.5"],
    ids=["no end", "three numbers", "nothing after the semicolon", "no numbers", "a comma"],
)
def test_a_cell_that_is_no_list_of_stretches_is_refused(cell):
    """Stretches of a clip without pictures are pairs of seconds, as "1.25 2.5;4.0 6.1".

    The code that reads a table refuses any other text, and so does the JSON schema of the format.
    """
    table = table_of_a_clip_with_stretches(cell)
    row = next(csv.DictReader(io.StringIO(table.decode())))

    with pytest.raises(StoreError, match="here, line 2: "):
        parse_clips_csv([table], "here")
    with pytest.raises(jsonschema.ValidationError):
        check_against_schema("clip", row)


def test_verify_finds_stretches_in_a_store_of_a_version_without_them(path_of_store, tmp_path):
    """Stretches came with version 1.4; a reader of 1.3 would take the clip for whole."""
    copy = shutil.copytree(path_of_store, tmp_path / path_of_store.name)
    respecify(copy, spec_version="1.3")

    problems = [str(problem) for problem in verify(copy, "full").problems]
    assert any(FEATURES in problem and "needs 1.4" in problem for problem in problems)
