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
from tests.lazy_import import lazy_import

Compute = lazy_import("obygaze_features.backbones.compute", "Compute")

NO_OPTIONS = {"weights": (), "preset": (), "tokens": ()}
"""What the command gives where none of these options is typed; each may be typed several times."""
DEFAULT_COMPUTE = ComputeOptions()


def network(n_frames=None, *, weights="hub/default", preset="a", compute=None):
    raise NotImplementedError


@pytest.fixture(autouse=True)
def two_toy_networks(monkeypatch):
    """Backbones `one` and `two`: networks with weights, a preset and a way to compute, never built."""
    module = ModuleType("toys")
    module.network = network
    monkeypatch.setitem(sys.modules, "toys", module)
    for name in ("one", "two"):
        monkeypatch.setitem(BACKBONES, name, "toys:network")


def test_a_value_is_for_all_backbones_and_a_named_one_for_its_own():
    """The value "one=random:1" is for backbone `one` alone; the preset "a" names no backbone."""
    options = NO_OPTIONS | {"preset": ("a",), "weights": ("one=random:1", "two=random:2")}

    one, two = read_recipes(["one", "two"], n_frames=32, texts_of_option=options, compute=DEFAULT_COMPUTE)

    assert one.options == {"preset": "a", "weights": "random:1"}
    assert two.options == {"preset": "a", "weights": "random:2"}


def test_device_and_precision_go_to_backbones_that_compute():
    """Backbone `one` is a network. Descriptors are none, and take none of these options.

    The command's short word "bf16-weights" is "bfloat16-weights" in a recipe.
    """
    typed_by_user = ComputeOptions("cpu", "bf16-weights", tf32=True, compiled=True, clips_at_once=3)

    recipe_of_descriptors, recipe_of_network = read_recipes(
        ["descriptors", "one"], n_frames=None, texts_of_option=NO_OPTIONS, compute=typed_by_user
    )

    assert recipe_of_descriptors.options == {}
    assert recipe_of_network.options["compute"] == Compute(
        "cpu", "bfloat16-weights", tf32=True, compiled=True, clips_at_once=3
    )


@pytest.mark.parametrize(
    ("backbones", "options", "compute", "message"),
    [
        (
            ["descriptors"],
            {"weights": ("random:0",)},
            DEFAULT_COMPUTE,
            "backbone 'descriptors' takes no --weights$",
        ),
        (["descriptors", "one"], {"weights": ("random:0",)}, DEFAULT_COMPUTE, "--weights one=random:0"),
        (["one"], {"tokens": ("all",)}, DEFAULT_COMPUTE, "backbone 'one' takes no --tokens"),
        (["descriptors"], {}, ComputeOptions(dtype="bf16"), "takes no --dtype$"),
    ],
)
def test_an_option_that_a_backbone_does_not_take_is_a_usage_error(backbones, options, compute, message):
    """Backbone `one` is a network; descriptors are none. The message says which backbone takes the option."""
    with pytest.raises(click.UsageError, match=message):
        read_recipes(backbones, n_frames=None, texts_of_option=NO_OPTIONS | options, compute=compute)


def test_the_options_about_frames_are_options_of_the_command():
    """`OF_FRAMES` lists, by their names, the options that are refused with a backbone that reads texts."""
    options_of_command = {parameter.name for parameter in extract.params}

    for option in OF_FRAMES:
        assert option in options_of_command


def test_a_stage_can_be_written_in_folders_that_are_not_there_yet(tmp_path):
    """The folders `new` and `new/deep` can be made, so there is no reason that forbids it."""
    reason = what_forbids_writing(tmp_path / "new/deep/films.staging")

    assert reason is None


def test_writing_is_forbidden_by_a_file_in_the_place_of_a_folder(tmp_path):
    """A stage is to be written into a folder whose name is that of a file."""
    file = tmp_path / "file"
    file.touch()

    reason = what_forbids_writing(file / "films.staging")

    assert f"{file} is a file, so" in reason


def test_writing_is_forbidden_by_want_of_permission_in_the_nearest_folder(tmp_path, monkeypatch):
    """The folder `new` is not there, and nobody may write into the one that would hold it."""
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
    """Slurm says that this is task 1 of 2, numbered from 0. A share that is not typed is printed."""
    share = choose_shard(typed=None, stage=tmp_path)
    message = capsys.readouterr().err
    assert share == (1, 2)
    assert "--shard 1/2" in message

    typed_share = choose_shard((1, 2), tmp_path)
    message = capsys.readouterr().err
    assert typed_share == (1, 2)
    assert message == ""


@pytest.mark.usefixtures("task_1_of_2")
@pytest.mark.parametrize(
    ("typed_share", "message"),
    [((0, 2), "share of its own"), ((0, 3), "job array of 2 tasks")],
    ids=["all tasks would do share 0", "nobody would do the third share"],
)
def test_a_typed_share_that_does_not_fit_the_array_is_refused(tmp_path, typed_share, message):
    """Slurm says that this is task 1 of an array of 2. All tasks of an array run the same command."""
    with pytest.raises(ExtractError, match=message):
        choose_shard(typed_share, tmp_path)


@pytest.mark.usefixtures("task_1_of_2")
def test_a_later_array_of_fewer_tasks_does_shares_of_the_first(tmp_path):
    """A first array of three tasks has begun share 0 of 3. In the later array, this is task 1 of 2."""
    this_machine = Machine(cluster="", host="n1")
    begin_share(tmp_path, (0, 3), this_machine)

    typed_share = choose_shard((1, 3), tmp_path)
    share_that_is_not_typed = choose_shard(typed=None, stage=tmp_path)

    assert typed_share == (1, 3)
    assert share_that_is_not_typed == (1, 3)


HEADER = "clip_id,movie,video,start_s,end_s,level,concepts,annotator\n"
ROWS = [f"c{number},m,{number}.png,,,,,\n" for number in range(5)]
"""Rows of a manifest: clips c0 to c4, a still image each."""


def write_rows(path, rows):
    """Write rows as a manifest."""
    path.write_text(HEADER + "".join(rows), encoding="utf-8")


def options_to_grow(old_version, new_version):
    """Return the options that grow a version of the store `stores/s`."""
    return ("--append", f"stores/s-{old_version}", "--store-version", new_version)


@pytest.fixture
def images(tmp_path):
    """A folder of five still images, which are quickly extracted: 0.png to 4.png."""
    for number in range(5):
        Image.new("RGB", (8, 8), (40 * number, 9, 9)).save(tmp_path / f"{number}.png")
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize(
    ("share", "exit_code"), [("1/2", 3), ("0/2", 0)], ids=["with the failed clip", "without"]
)
def test_a_share_exits_with_3_for_failed_clips_of_its_own(images, obygaze, share, exit_code):
    """Clip c18 of c00 to c19 has no video. It is in the second piece, which is that of share 1 of 2."""
    rows = [f"c{number:02},m,0.png,,,,,\n" for number in range(20)]
    rows[18] = "c18,m,absent.png,,,,,\n"
    write_rows(images / "many.csv", rows)

    result = obygaze(images, "extract", "many.csv", "s", "--workers", 1, "--shard", share)

    assert result.returncode == exit_code


@pytest.mark.long
def test_a_finished_share_advises_to_seal_unless_the_store_is_sealed(images, obygaze):
    """Two shares are extracted by the same command but for the number; then the store is sealed.

    A share that is run once more has nothing to do, and says that the store is sealed, not how to seal it.
    """
    write_rows(images / "some.csv", ROWS)
    words = ("extract", "some.csv", "stores/s", "--workers", 1, "--licence", "CC0-1.0", "--shard")

    first = obygaze(images, *words, "0/2")
    obygaze(images, *words, "1/2")
    obygaze(images, "store", "seal", "stores/s", "--licence", "CC0-1.0")
    again = obygaze(images, *words, "0/2")

    assert "Once all are: obygaze store seal stores/s" in first.stderr
    assert "store seal" not in again.stderr
    assert "the store is sealed: stores/s-1.0.0" in again.stderr


@pytest.mark.long
def test_growing_a_store_extracts_only_the_new_clips_and_keeps_licence_and_corpus(images, obygaze):
    """A store is made of three clips in old.csv, and grows by the two more that new.csv has beside them.

    The licence is typed, and the corpus follows from the name old.csv, the first time alone. The stage of the
    first version is removed, so that only the sealed store has the old clips.
    """
    write_rows(images / "old.csv", ROWS[:3])
    write_rows(images / "new.csv", ROWS)
    words_to_make = ("extract", "old.csv", "stores/s", "--licence", "CC0-1.0", "--workers", 1)
    assert obygaze(images, *words_to_make).returncode == 0
    shutil.rmtree(images / "stores/s.staging")
    assert obygaze(images, *words_to_make).returncode == 1  # a version of a store is never overwritten

    words_to_grow = ("extract", "new.csv", "stores/s", *options_to_grow("1.0.0", "1.1.0"))
    result = obygaze(images, *words_to_grow, "--workers", 1, "--json")

    assert result.returncode == 0, result.stderr
    n_clips_done = json.loads(result.stdout)["run"]["clips"]
    assert n_clips_done == 2
    store = open_store(images / "stores/s")
    assert store.version == "1.1.0"
    assert store.attributes["licence"] == "CC0-1.0"
    assert store.attributes["corpus"]["name"] == "old"
    assert verify(store, "full").ok


@pytest.mark.long
def test_a_store_grows_while_the_stage_of_the_last_version_is_there(images, obygaze):
    """A store is made of the clips c0 and c1, and grows twice by a clip, without removing a stage by hand.

    The stage of a version, in which its clips were extracted, is replaced by that of the next one, as all of
    its clips are sealed.
    """
    made = extract_first(n_clips=2, images=images, obygaze=obygaze)
    assert made.returncode == 0

    to_second_version = options_to_grow("1.0.0", "1.1.0")
    dry_run = extract_first(3, images, obygaze, *to_second_version, "--dry-run")
    assert json.loads(dry_run.stdout)["clips"] == 1  # the new one
    grown = extract_first(3, images, obygaze, *to_second_version)
    assert grown.returncode == 0
    same_command_again = extract_first(3, images, obygaze, *to_second_version)
    assert same_command_again.returncode == 0

    grown_again = extract_first(4, images, obygaze, *options_to_grow("1.1.0", "1.2.0"))
    assert grown_again.returncode == 0

    store = open_store(images / "stores/s-1.2.0")
    assert [clip.clip_id for clip in store.clips] == ["c0", "c1", "c2", "c3"]


@pytest.mark.long
def test_growing_a_store_to_a_version_that_is_there_is_refused_and_leaves_the_stage_as_it_is(images, obygaze):
    """The versions 1.0.0 to 1.2.0 of a store are there, of 2, 3 and 4 clips, and the stage of the last.

    Growing 1.0.0 to 1.2.0, which grew from 1.1.0, is refused; the message says that 1.3.0 is free.
    """
    assert extract_first(n_clips=2, images=images, obygaze=obygaze).returncode == 0
    assert extract_first(3, images, obygaze, *options_to_grow("1.0.0", "1.1.0")).returncode == 0
    assert extract_first(4, images, obygaze, *options_to_grow("1.1.0", "1.2.0")).returncode == 0
    stage = images / "stores/s.staging/stage.json"
    stage_before = stage.read_bytes()

    refused = extract_first(5, images, obygaze, *options_to_grow("1.0.0", "1.2.0"))

    assert refused.returncode == 1
    assert "1.3.0" in refused.stderr
    assert stage.read_bytes() == stage_before


@pytest.mark.long
def test_the_stage_of_a_version_that_is_not_sealed_yet_is_not_replaced_by_that_of_another_version(
    images, obygaze
):
    """The versions 1.0.0 and 1.1.0 of a store are there. Of 1.2.0 one share of two is done, in the stage.

    A command that would grow 1.0.0 to 1.3.0, in a stage of the same name, is refused.
    """
    assert extract_first(n_clips=2, images=images, obygaze=obygaze).returncode == 0
    assert extract_first(3, images, obygaze, *options_to_grow("1.0.0", "1.1.0")).returncode == 0
    share = extract_first(4, images, obygaze, *options_to_grow("1.1.0", "1.2.0"), "--shard", "1/2")
    assert share.returncode == 0
    stage = images / "stores/s.staging/stage.json"
    stage_before = stage.read_bytes()

    refused = extract_first(3, images, obygaze, *options_to_grow("1.0.0", "1.3.0"))

    assert refused.returncode == 1
    assert stage.read_bytes() == stage_before


def extract_first(n_clips, images, obygaze, *options):
    """Run the command that extracts the first clips of the images into the store `stores/s`."""
    write_rows(images / "some.csv", ROWS[:n_clips])
    return obygaze(images, "extract", "some.csv", "stores/s", "--workers", 1, "--json", *options)


@pytest.mark.long
def test_new_clips_are_added_to_a_store_of_which_a_clip_had_no_video(images, obygaze):
    """Clip `gone` of old.csv has no file. The failed clip stays in the store that grows.

    The exit code 3 says that clips failed; whether `gone` is tried again is left open here.
    """
    write_rows(images / "old.csv", [*ROWS[:3], "gone,m,gone.png,,,,,\n"])
    write_rows(images / "new.csv", ROWS[3:])
    assert obygaze(images, "extract", "old.csv", "stores/s", "--workers", 1).returncode == 3

    grow = ("extract", "new.csv", "stores/s", "--workers", 1, *options_to_grow("1.0.0", "1.1.0"))
    result = obygaze(images, *grow)

    assert result.returncode in {0, 3}, result.stderr
    status_of = {clip.clip_id: clip.status for clip in open_store(images / "stores/s-1.1.0").clips}
    assert status_of == {"c0": "ok", "c1": "ok", "c2": "ok", "c3": "ok", "c4": "ok", "gone": "failed"}


def test_a_task_that_cannot_tell_its_share_exits_as_after_a_typing_error(images, obygaze, monkeypatch):
    """The job scripts queue a task again after an error, but not after a typing error, whose exit code is 2.

    Slurm says that this is task 3 of an array of one task, as after `sbatch --array=3`: of how many shares it
    has one is not known. The message shows an array that says it, `--array=0-7`.
    """
    write_rows(images / "new.csv", ROWS)
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "1")

    result = obygaze(images, "extract", "new.csv", "s", "--workers", 1)

    assert result.returncode == 2
    assert "--array=0-7" in result.stderr
