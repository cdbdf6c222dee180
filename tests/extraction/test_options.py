"""What the command makes of its options: recipes of backbones, shares of clips, notes."""

import json
import os
import shutil
import sys
from types import ModuleType

import click
import pytest
from PIL import Image

from obygaze_features.backbones.registry import BACKBONES
from obygaze_features.commands.extract_command import (
    OF_FRAMES,
    ComputeOptions,
    choose_shard,
    extract,
    read_recipes,
)
from obygaze_features.errors import ExtractError
from obygaze_features.extraction.prepared import what_forbids_writing
from obygaze_features.machine import Machine
from obygaze_features.store import open_store, verify
from obygaze_features.store.shares import begin_share
from tests.later import later

Compute = later("obygaze_features.backbones.compute", "Compute")

NONE = {"weights": (), "preset": (), "tokens": ()}
PLAIN = ComputeOptions()


def network(n_frames=None, *, weights="hub/default", preset="a", compute=None):
    raise NotImplementedError


@pytest.fixture(autouse=True)
def toys(monkeypatch):
    """Two networks that take weights, a preset and a way to compute, and are never built."""
    module = ModuleType("toys")
    module.network = network
    monkeypatch.setitem(sys.modules, "toys", module)
    for name in ("one", "two"):
        monkeypatch.setitem(BACKBONES, name, "toys:network")


def test_a_value_is_for_all_backbones_and_a_named_one_for_its_own():
    """The value "one=random:1" is for backbone `one` alone."""
    options = NONE | {"preset": ("a",), "weights": ("one=random:1", "two=random:2")}
    one, two = read_recipes(["one", "two"], 32, options, PLAIN)
    assert one.options == {"preset": "a", "weights": "random:1"}
    assert two.options == {"preset": "a", "weights": "random:2"}


def test_device_and_precision_go_to_those_that_compute():
    """Descriptors are no network, and take none of these options."""
    asked = ComputeOptions("cpu", "bf16-weights", tf32=True, compiled=True, clips_at_once=3)
    descriptors, one = read_recipes(["descriptors", "one"], None, NONE, asked)
    assert descriptors.options == {}
    compute = Compute("cpu", "bfloat16-weights", tf32=True, compiled=True, clips_at_once=3)
    assert one.options["compute"] == compute


@pytest.mark.parametrize(
    ("backbones", "options", "compute", "message"),
    [
        (["descriptors"], {"weights": ("random:0",)}, PLAIN, "backbone 'descriptors' takes no --weights$"),
        (["descriptors", "one"], {"weights": ("random:0",)}, PLAIN, "--weights one=random:0"),
        (["one"], {"tokens": ("all",)}, PLAIN, "backbone 'one' takes no --tokens"),
        (["descriptors"], {}, ComputeOptions(dtype="bf16"), "takes no --dtype$"),
    ],
)
def test_an_option_that_a_backbone_does_not_take_is_a_usage_error(backbones, options, compute, message):
    with pytest.raises(click.UsageError, match=message):
        read_recipes(backbones, None, NONE | options, compute)


def test_the_options_about_frames_are_options_of_the_command():
    assert set(OF_FRAMES) <= {parameter.name for parameter in extract.params}


def test_writing_is_forbidden_by_a_file_in_a_folders_place_or_want_of_permission(tmp_path, monkeypatch):
    """A folder that is not there yet can be made."""
    assert what_forbids_writing(tmp_path / "new/deep/films.staging") is None

    (tmp_path / "file").touch()
    reason = what_forbids_writing(tmp_path / "file/films.staging")
    assert f"{tmp_path / 'file'} is a file, so" in reason

    monkeypatch.setattr(os, "access", lambda path, _mode: path != tmp_path)
    reason = what_forbids_writing(tmp_path / "new/films.staging")
    assert reason.startswith(f"{tmp_path}: no permission to write there")


@pytest.fixture
def task_1_of_2(monkeypatch):
    """Run as the second of two tasks of a job array."""
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "1")
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "2")


@pytest.mark.usefixtures("task_1_of_2")
def test_a_task_of_an_array_has_its_share_which_may_be_typed(tmp_path, capsys):
    assert choose_shard(None, tmp_path) == (1, 2)
    assert "--shard 1/2" in capsys.readouterr().err
    assert choose_shard((1, 2), tmp_path) == (1, 2)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("task_1_of_2")
@pytest.mark.parametrize(
    ("typed", "message"),
    [((0, 2), "share of its own"), ((0, 3), "job array of 2 tasks")],
    ids=["all tasks would do share 0", "nobody would do the third share"],
)
def test_a_typed_share_that_does_not_fit_the_array_is_refused(tmp_path, typed, message):
    """All tasks of an array run the same command."""
    with pytest.raises(ExtractError, match=message):
        choose_shard(typed, tmp_path)


@pytest.mark.usefixtures("task_1_of_2")
def test_a_later_array_of_fewer_tasks_does_shares_of_the_first(tmp_path):
    this_machine = Machine(cluster="", host="n1")
    begin_share(tmp_path, (0, 3), this_machine)  # of the first array, of three tasks
    assert choose_shard((1, 3), tmp_path) == (1, 3)
    assert choose_shard(None, tmp_path) == (1, 3)


HEADER = "clip_id,movie,video,start_s,end_s,level,concepts,annotator\n"
ROWS = [f"c{number},m,{number}.png,,,,,\n" for number in range(5)]
"""Rows of a manifest: clips c0 to c4, a still image each."""


def write_rows(path, rows):
    """Write rows as a manifest."""
    path.write_text(HEADER + "".join(rows), encoding="utf-8")


def growing(old, new):
    """Return the options that grow a version of the store `stores/s`."""
    return ("--append", f"stores/s-{old}", "--store-version", new)


@pytest.fixture
def images(tmp_path):
    """A folder of five still images, which are quickly extracted: 0.png to 4.png."""
    for number in range(5):
        Image.new("RGB", (8, 8), (40 * number, 9, 9)).save(tmp_path / f"{number}.png")
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize(("share", "code"), [("1/2", 3), ("0/2", 0)], ids=["with the failed clip", "without"])
def test_a_share_exits_with_3_for_failed_clips_of_its_own(images, obygaze, share, code):
    """Clip c18 of twenty has no video; it is in the second piece of 16 clips."""
    rows = [f"c{row:02},m,{'absent' if row == 18 else 0}.png,,,,,\n" for row in range(20)]
    write_rows(images / "many.csv", rows)

    result = obygaze(images, "extract", "many.csv", "s", "--workers", 1, "--shard", share)
    assert result.returncode == code


@pytest.mark.long
def test_growing_a_store_extracts_only_the_new_clips_and_keeps_licence_and_corpus(images, obygaze):
    """Neither is typed again. The corpus is named after the first manifest, old.csv.

    The stage of the first version is gone, so that only the sealed store has the old clips.
    """
    write_rows(images / "old.csv", ROWS[:3])
    write_rows(images / "new.csv", ROWS)
    first = ("extract", "old.csv", "stores/s", "--licence", "CC0-1.0", "--workers", 1)
    assert obygaze(images, *first).returncode == 0
    shutil.rmtree(images / "stores/s.staging")
    assert obygaze(images, *first).returncode == 1  # a version of a store is never overwritten

    grow = ("extract", "new.csv", "stores/s", "--workers", 1, "--json", *growing("1.0.0", "1.1.0"))
    result = obygaze(images, *grow)
    assert result.returncode == 0, result.stderr
    n_new = len(ROWS) - 3
    assert json.loads(result.stdout)["run"]["clips"] == n_new

    store = open_store(images / "stores/s")
    assert store.version == "1.1.0"
    assert store.attributes["licence"] == "CC0-1.0"
    assert store.attributes["corpus"]["name"] == "old"
    assert verify(store, "full").ok


@pytest.mark.long
def test_a_store_grows_while_the_stage_of_the_last_version_is_there(images, obygaze):
    """The stage of a version whose clips are all sealed is replaced by that of the next one.

    A stage with a finished share of a version that is not sealed is not replaced.
    """

    def extract_first(n_clips, *words):
        write_rows(images / "some.csv", ROWS[:n_clips])
        return obygaze(images, "extract", "some.csv", "stores/s", "--workers", 1, "--json", *words)

    assert extract_first(2).returncode == 0
    dry_run = extract_first(3, *growing("1.0.0", "1.1.0"), "--dry-run")
    assert json.loads(dry_run.stdout)["clips"] == 1
    assert extract_first(3, *growing("1.0.0", "1.1.0")).returncode == 0
    assert extract_first(3, *growing("1.0.0", "1.1.0")).returncode == 0  # again: it changes nothing
    assert extract_first(4, *growing("1.1.0", "1.2.0")).returncode == 0
    store = open_store(images / "stores/s-1.2.0")
    assert [clip.clip_id for clip in store.clips] == ["c0", "c1", "c2", "c3"]

    stage = images / "stores/s.staging/stage.json"
    before = stage.read_bytes()
    to_a_version_that_is_there = extract_first(5, *growing("1.0.0", "1.2.0"))
    assert to_a_version_that_is_there.returncode == 1
    assert "1.3.0" in to_a_version_that_is_there.stderr
    assert stage.read_bytes() == before

    assert extract_first(5, *growing("1.2.0", "1.3.0"), "--shard", "1/2").returncode == 0
    assert extract_first(4, *growing("1.1.0", "1.4.0")).returncode == 1
    assert (images / "stores/s.staging").is_dir()


@pytest.mark.long
def test_new_clips_are_added_to_a_store_of_which_a_clip_had_no_video(images, obygaze):
    """The failed clip stays in the store, whether or not it is tried again."""
    write_rows(images / "old.csv", [*ROWS[:3], "gone,m,gone.png,,,,,\n"])
    write_rows(images / "new.csv", ROWS[3:])
    assert obygaze(images, "extract", "old.csv", "stores/s", "--workers", 1).returncode == 3

    grow = ("extract", "new.csv", "stores/s", "--workers", 1, *growing("1.0.0", "1.1.0"))
    result = obygaze(images, *grow)
    assert result.returncode in {0, 3}, result.stderr

    status = {clip.clip_id: clip.status for clip in open_store(images / "stores/s-1.1.0").clips}
    assert status == {"c0": "ok", "c1": "ok", "c2": "ok", "c3": "ok", "c4": "ok", "gone": "failed"}


def test_a_task_that_cannot_tell_its_share_exits_as_after_a_typing_error(images, obygaze, monkeypatch):
    """The job scripts queue a task again after an error, but not after a typing error."""
    write_rows(images / "new.csv", ROWS)
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "1")

    result = obygaze(images, "extract", "new.csv", "s", "--workers", 1)
    assert result.returncode == 2
    assert "--array=0-7" in result.stderr
