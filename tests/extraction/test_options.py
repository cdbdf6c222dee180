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
    named = NONE | {"preset": ("a",), "weights": ("one=random:1", "two=random:2")}
    one, two = read_recipes(["one", "two"], 32, named, PLAIN)
    assert one.options == {"preset": "a", "weights": "random:1"}
    assert two.options == {"preset": "a", "weights": "random:2"}


def test_device_and_precision_go_to_those_that_compute():
    way = ComputeOptions("cpu", "bf16-weights", tf32=True, compiled=True, clips_at_once=3)
    descriptors, one = read_recipes(["descriptors", "one"], None, NONE, way)
    assert descriptors.options == {}
    compute = one.options["compute"]
    assert compute == Compute("cpu", "bfloat16-weights", tf32=True, compiled=True, clips_at_once=3)


@pytest.mark.parametrize(
    ("names", "named", "way", "words"),
    [
        (["descriptors"], {"weights": ("random:0",)}, PLAIN, "backbone 'descriptors' takes no --weights$"),
        (["descriptors", "one"], {"weights": ("random:0",)}, PLAIN, "--weights one=random:0"),
        (["one"], {"tokens": ("all",)}, PLAIN, "backbone 'one' takes no --tokens"),
        (["descriptors"], {}, ComputeOptions(dtype="bf16"), "takes no --dtype$"),
    ],
)
def test_an_option_that_a_backbone_does_not_take_is_a_usage_error(names, named, way, words):
    with pytest.raises(click.UsageError, match=words):
        read_recipes(names, None, NONE | named, way)


def test_the_options_about_frames_are_options_of_the_command():
    assert set(OF_FRAMES) <= {parameter.name for parameter in extract.params}


def test_a_place_that_cannot_be_written_is_known_before_the_work(tmp_path, monkeypatch):
    assert what_forbids_writing(tmp_path / "new/deep/films.staging") is None
    (tmp_path / "file").touch()
    assert f"{tmp_path / 'file'} is a file, so" in what_forbids_writing(tmp_path / "file/films.staging")
    monkeypatch.setattr(os, "access", lambda path, _mode: path != tmp_path)
    told = what_forbids_writing(tmp_path / "new/films.staging")
    assert told.startswith(f"{tmp_path}: no permission to write there")


def test_a_share_that_is_given_beats_that_of_a_job_array(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "1")
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "2")
    assert choose_shard((1, 2), tmp_path) == (1, 2)
    with pytest.raises(ExtractError, match="share of its own"):
        choose_shard((0, 2), tmp_path)
    assert capsys.readouterr().err == ""
    assert choose_shard(None, tmp_path) == (1, 2)
    assert "--shard 1/2" in capsys.readouterr().err


def test_a_first_array_has_as_many_tasks_as_shares_and_a_later_one_any_of_them(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "1")
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "2")
    with pytest.raises(ExtractError, match="job array of 2 tasks"):
        choose_shard((0, 3), tmp_path)
    begin_share(tmp_path, (0, 3), Machine("", "n1"))
    assert choose_shard((1, 3), tmp_path) == (1, 3)
    assert choose_shard(None, tmp_path) == (1, 3)


HEADER = "clip_id,movie,video,start_s,end_s,level,concepts,annotator\n"


@pytest.fixture
def here(tmp_path):
    """Five still images, which are quickly extracted, a manifest of three of them and one of all."""
    for number in range(5):
        Image.new("RGB", (8, 8), (40 * number, 9, 9)).save(tmp_path / f"{number}.png")
    lines = [f"c{number},m,{number}.png,,,,,\n" for number in range(5)]
    (tmp_path / "old.csv").write_text(HEADER + "".join(lines[:3]), encoding="utf-8")
    (tmp_path / "new.csv").write_text(HEADER + "".join(lines), encoding="utf-8")
    return tmp_path


def test_a_share_exits_with_3_for_failed_clips_of_its_own_pieces(here, obygaze):
    lines = [f"c{row:02},m,{'absent' if row == 18 else 0}.png,,,,,\n" for row in range(20)]
    (here / "many.csv").write_text(HEADER + "".join(lines), encoding="utf-8")
    for share, code in (("1/2", 3), ("0/2", 0)):
        assert obygaze(here, "extract", "many.csv", "s", "--workers", 1, "--shard", share).returncode == code


def test_only_the_new_clips_are_extracted_and_licence_and_corpus_are_kept(here, obygaze):
    old = ("extract", "old.csv", "stores/s", "--licence", "CC0-1.0", "--workers", 1)
    assert obygaze(here, *old).returncode == 0
    shutil.rmtree(here / "stores/s.staging")
    assert obygaze(here, *old).returncode == 1  # there is a store, and another version was not asked for
    new = ("extract", "new.csv", "stores/s", "--workers", 1, "--append", "stores/s-1.0.0")
    done = obygaze(here, *new, "--store-version", "1.1.0", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["run"]["clips"] == 2
    store = open_store(here / "stores/s")
    assert (store.version, store.attributes["licence"]) == ("1.1.0", "CC0-1.0")
    assert store.attributes["corpus"]["name"] == "old"
    assert verify(store, "full").ok


@pytest.mark.long  # extracts twice
def test_a_stage_that_is_wholly_sealed_makes_way_for_the_next_version_and_no_other_does(here, obygaze):
    def extract(clips, *words):
        rows = (here / "new.csv").read_text(encoding="utf-8").splitlines(keepends=True)
        (here / "some.csv").write_text("".join(rows[: clips + 1]), encoding="utf-8")
        return obygaze(here, "extract", "some.csv", "stores/s", "--workers", 1, "--json", *words)

    def append(clips, old, new):
        return extract(clips, "--append", f"stores/s-{old}", "--store-version", new)

    assert extract(2).returncode == 0
    dry = extract(3, "--append", "stores/s-1.0.0", "--store-version", "1.1.0", "--dry-run")
    assert json.loads(dry.stdout)["clips"] == 1
    for clips, old, new in ((3, "1.0.0", "1.1.0"), (3, "1.0.0", "1.1.0"), (4, "1.1.0", "1.2.0")):
        done = append(clips, old, new)
        assert done.returncode == 0, done.stderr
    assert [clip.clip_id for clip in open_store(here / "stores/s-1.2.0").clips] == ["c0", "c1", "c2", "c3"]
    before = (here / "stores/s.staging/stage.json").read_bytes()
    done = append(5, "1.0.0", "1.2.0")  # a version that is there
    assert (done.returncode, "1.3.0" in done.stderr) == (1, True)
    assert (here / "stores/s.staging/stage.json").read_bytes() == before
    shard = extract(5, "--append", "stores/s-1.2.0", "--store-version", "1.3.0", "--shard", "1/2")
    assert shard.returncode == 0
    assert append(4, "1.1.0", "1.4.0").returncode == 1
    assert (here / "stores/s.staging").is_dir()


def test_new_clips_alone_are_added_to_a_store_of_which_a_clip_had_no_video(here, obygaze):
    rows = (here / "new.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    gone = "gone,m,gone.png,,,,,\n"
    (here / "old.csv").write_text("".join(rows[:4]) + gone, encoding="utf-8")
    (here / "more.csv").write_text(rows[0] + "".join(rows[4:]), encoding="utf-8")
    assert obygaze(here, "extract", "old.csv", "stores/s", "--workers", 1).returncode == 3
    grown = ("--append", "stores/s-1.0.0", "--store-version", "1.1.0")
    done = obygaze(here, "extract", "more.csv", "stores/s", "--workers", 1, *grown)
    assert done.returncode in {0, 3}, done.stderr
    status = {clip.clip_id: clip.status for clip in open_store(here / "stores/s-1.1.0").clips}
    assert status == {"c0": "ok", "c1": "ok", "c2": "ok", "c3": "ok", "c4": "ok", "gone": "failed"}


def test_a_share_that_is_not_to_be_had_is_an_error_of_what_was_typed(here, obygaze, monkeypatch):
    """The job scripts ask for another turn after an error, and for none after one of what was typed."""
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "1")
    refused = obygaze(here, "extract", "new.csv", "s", "--workers", 1)
    assert refused.returncode == 2
    assert "--array=0-7" in refused.stderr
