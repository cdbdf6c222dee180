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


def test_a_folder_that_is_not_there_can_be_made(tmp_path):
    assert what_forbids_writing(tmp_path / "new/deep/films.staging") is None


def test_a_file_in_a_folders_place_forbids_writing(tmp_path):
    (tmp_path / "file").touch()
    reason = what_forbids_writing(tmp_path / "file/films.staging")
    assert f"{tmp_path / 'file'} is a file, so" in reason


def test_a_folder_without_permission_forbids_writing(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, _mode: path != tmp_path)
    reason = what_forbids_writing(tmp_path / "new/films.staging")
    assert reason.startswith(f"{tmp_path}: no permission to write there")


@pytest.fixture
def task_1_of_2(monkeypatch):
    """Run as the second of two tasks of a job array."""
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "1")
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "2")


@pytest.mark.usefixtures("task_1_of_2")
def test_a_task_of_an_array_has_its_share(tmp_path, capsys):
    assert choose_shard(None, tmp_path) == (1, 2)
    assert "--shard 1/2" in capsys.readouterr().err


@pytest.mark.usefixtures("task_1_of_2")
def test_a_share_that_is_typed_is_taken_without_a_word(tmp_path, capsys):
    """It is the share that the task has anyway."""
    assert choose_shard((1, 2), tmp_path) == (1, 2)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("task_1_of_2")
def test_a_typed_share_of_another_task_is_refused(tmp_path):
    """All tasks of an array run the same command, so all would do share 0."""
    with pytest.raises(ExtractError, match="share of its own"):
        choose_shard((0, 2), tmp_path)


@pytest.mark.usefixtures("task_1_of_2")
def test_a_first_array_of_fewer_tasks_than_shares_is_refused(tmp_path):
    """Two tasks would leave the third share undone."""
    with pytest.raises(ExtractError, match="job array of 2 tasks"):
        choose_shard((0, 3), tmp_path)


@pytest.mark.usefixtures("task_1_of_2")
def test_a_later_array_of_fewer_tasks_does_shares_of_the_first(tmp_path):
    this_machine = Machine(cluster="", host="n1")
    begin_share(tmp_path, (0, 3), this_machine)  # of the first array, of three tasks
    assert choose_shard((1, 3), tmp_path) == (1, 3)
    assert choose_shard(None, tmp_path) == (1, 3)


HEADER = "clip_id,movie,video,start_s,end_s,level,concepts,annotator\n"
ROWS = [f"c{number},m,{number}.png,,,,,\n" for number in range(5)]
"""Rows of a manifest: clips c0 to c4, a still image each."""
NEXT_VERSION = ("--append", "stores/s-1.0.0", "--store-version", "1.1.0")


def write_rows(path, rows):
    """Write rows as a manifest."""
    path.write_text(HEADER + "".join(rows), encoding="utf-8")


def write_images(folder):
    """Write five still images, which are quickly extracted: 0.png to 4.png."""
    for number in range(5):
        Image.new("RGB", (8, 8), (40 * number, 9, 9)).save(folder / f"{number}.png")


@pytest.fixture
def images(tmp_path):
    """A folder of five still images."""
    write_images(tmp_path)
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize(("share", "code"), [("1/2", 3), ("0/2", 0)], ids=["with the failed clip", "without"])
def test_a_share_exits_with_3_for_failed_clips_of_its_own(images, obygaze, share, code):
    """Clip c18 of twenty has no video; it is in the second piece of 16 clips."""
    rows = [f"c{row:02},m,{'absent' if row == 18 else 0}.png,,,,,\n" for row in range(20)]
    write_rows(images / "many.csv", rows)

    result = obygaze(images, "extract", "many.csv", "s", "--workers", 1, "--shard", share)
    assert result.returncode == code


@pytest.fixture(scope="module")
def extracted_once(tmp_path_factory, obygaze):
    """A folder of five still images with a store s-1.0.0 of the clips c0, c1 and c2, without its stage."""
    folder = tmp_path_factory.mktemp("extracted")
    write_images(folder)
    write_rows(folder / "old.csv", ROWS[:3])
    words = ("extract", "old.csv", "stores/s", "--licence", "CC0-1.0", "--workers", 1)
    assert obygaze(folder, *words).returncode == 0
    shutil.rmtree(folder / "stores/s.staging")
    return folder


@pytest.fixture
def three_extracted(extracted_once, tmp_path):
    """A copy of it to work in."""
    return shutil.copytree(extracted_once, tmp_path, dirs_exist_ok=True)


@pytest.mark.long
def test_a_store_that_is_there_is_not_extracted_again(three_extracted, obygaze):
    """A version of a store is never overwritten."""
    words = ("extract", "old.csv", "stores/s", "--licence", "CC0-1.0", "--workers", 1)
    assert obygaze(three_extracted, *words).returncode == 1


@pytest.mark.long
def test_growing_a_store_extracts_only_the_new_clips(three_extracted, obygaze):
    write_rows(three_extracted / "new.csv", ROWS)
    words = ("extract", "new.csv", "stores/s", "--workers", 1, *NEXT_VERSION, "--json")
    result = obygaze(three_extracted, *words)
    assert result.returncode == 0, result.stderr

    n_new = len(ROWS) - 3
    assert json.loads(result.stdout)["run"]["clips"] == n_new

    store = open_store(three_extracted / "stores/s")
    assert store.version == "1.1.0"
    assert verify(store, "full").ok


@pytest.mark.long
def test_a_grown_store_keeps_its_licence_and_the_name_of_its_corpus(three_extracted, obygaze):
    """Neither is typed again. The corpus is named after the first manifest, old.csv."""
    write_rows(three_extracted / "new.csv", ROWS)
    obygaze(three_extracted, "extract", "new.csv", "stores/s", "--workers", 1, *NEXT_VERSION)

    attributes = open_store(three_extracted / "stores/s-1.1.0").attributes
    assert attributes["licence"] == "CC0-1.0"
    assert attributes["corpus"]["name"] == "old"


@pytest.fixture
def extract_first(images, obygaze):
    """Return a function that extracts the first n clips into stores/s."""

    def extract(n_clips, *words):
        write_rows(images / "some.csv", ROWS[:n_clips])
        return obygaze(images, "extract", "some.csv", "stores/s", "--workers", 1, "--json", *words)

    return extract


def growing(old, new):
    """Return the options that grow a version of the store."""
    return ("--append", f"stores/s-{old}", "--store-version", new)


@pytest.fixture
def grown_twice(images, extract_first):
    """The folder with the versions 1.0.0, 1.1.0 and 1.2.0 of a store, of two, three and four clips."""
    assert extract_first(2).returncode == 0
    assert extract_first(3, *growing("1.0.0", "1.1.0")).returncode == 0
    assert extract_first(4, *growing("1.1.0", "1.2.0")).returncode == 0
    return images


@pytest.mark.long  # extracts several times
def test_a_dry_run_counts_the_new_clips(extract_first):
    assert extract_first(2).returncode == 0
    result = extract_first(3, *growing("1.0.0", "1.1.0"), "--dry-run")
    assert json.loads(result.stdout)["clips"] == 1


@pytest.mark.long
def test_a_store_grows_while_the_stage_of_the_last_version_is_there(grown_twice):
    """The stage of a version whose clips are all sealed is replaced by that of the next one."""
    store = open_store(grown_twice / "stores/s-1.2.0")
    assert [clip.clip_id for clip in store.clips] == ["c0", "c1", "c2", "c3"]


@pytest.mark.long
def test_growing_to_the_same_version_again_changes_nothing(extract_first):
    assert extract_first(2).returncode == 0
    assert extract_first(3, *growing("1.0.0", "1.1.0")).returncode == 0
    assert extract_first(3, *growing("1.0.0", "1.1.0")).returncode == 0


@pytest.mark.long
def test_growing_to_a_version_that_is_there_is_refused_with_the_next_one(grown_twice, extract_first):
    stage = grown_twice / "stores/s.staging/stage.json"
    before = stage.read_bytes()

    result = extract_first(5, *growing("1.0.0", "1.2.0"))
    assert result.returncode == 1
    assert "1.3.0" in result.stderr
    assert stage.read_bytes() == before


@pytest.mark.long
def test_a_stage_with_a_finished_share_is_not_replaced(grown_twice, extract_first):
    """The first command did one of two shares of version 1.3.0; the second asks for another version."""
    assert extract_first(5, *growing("1.2.0", "1.3.0"), "--shard", "1/2").returncode == 0
    assert extract_first(4, *growing("1.1.0", "1.4.0")).returncode == 1
    assert (grown_twice / "stores/s.staging").is_dir()


@pytest.mark.long
def test_new_clips_are_added_to_a_store_of_which_a_clip_had_no_video(images, obygaze):
    """The failed clip stays in the store, whether or not it is tried again."""
    write_rows(images / "old.csv", [*ROWS[:3], "gone,m,gone.png,,,,,\n"])
    write_rows(images / "new.csv", ROWS[3:])
    assert obygaze(images, "extract", "old.csv", "stores/s", "--workers", 1).returncode == 3

    result = obygaze(images, "extract", "new.csv", "stores/s", "--workers", 1, *NEXT_VERSION)
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
