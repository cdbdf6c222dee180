"""`obygaze store`: what is printed, where, and the exit codes."""

import json
import os

import numpy as np
import pytest

from obygaze.cli import main
from obygaze_features.commands.store_commands import _flat
from obygaze_features.store import ClipFeatures, ClipResult, PlannedClip, Stage, open_store, staging_path
from obygaze_features.store.testing import toy_group

CLIPS = ["a", "b", "c"]


@pytest.fixture
def staged(tmp_path, monkeypatch):
    """Three clips, the last one failed, staged for a store `films`; `late` is not done yet."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    monkeypatch.chdir(tmp_path)
    group = toy_group("toy", {"pooled": np.ones((1, 2), np.float32)}, n_frames=1)
    for name, count in (("films", 3), ("late", 1)):
        path = staging_path(tmp_path / "stores" / name)
        stage = Stage.open(path, [PlannedClip(clip, "m") for clip in CLIPS], [group], {"name": "Films"})
        good = {"toy": ClipFeatures(np.zeros(1), np.zeros(1, np.int64), {"pooled": np.ones(2, np.float32)})}
        with stage.writer() as writer:
            writer.commit(
                [
                    ClipResult(clip, "ok", groups=good)
                    if clip != "c"
                    else ClipResult(clip, "failed", "no such file")
                    for clip in CLIPS[:count]
                ]
            )
    return tmp_path / "stores"


@pytest.fixture
def run(capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["store", *map(str, arguments)])
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return run


def test_seal_says_where_the_store_is(staged, run):
    code, out, _ = run("seal", "stores/films", "--licence", "CC-BY-4.0", "--citation", "Us, 2026")
    store = open_store(staged / "films-1.0.0")
    assert code == 0
    assert out == f"stores/films-1.0.0: 3 clips of toy (2 ok, 1 failed), fingerprint {store.fingerprint}\n"
    assert store.attributes["citation"] == "Us, 2026"


def test_seal_asks_for_a_licence_and_for_missing_clips(staged, run):
    code, _, err = run("seal", "stores/films")
    assert code == 2
    assert "--licence" in err
    code, _, err = run("seal", "stores/late", "--licence", "MIT")
    assert code == 1
    assert err.startswith("obygaze: error: stores/late.staging: 2 of 3 clips are still to do, the first is b")
    assert "Traceback" not in err
    code, _, _ = run("seal", "stores/late", "--licence", "MIT", "--allow-missing", "--store-version", "2.0.0")
    assert code == 0
    assert (staged / "late-2.0.0").is_dir()


def test_ls_tells_stores_and_stages_and_damaged_ones_apart(staged, run):
    run("seal", "stores/films", "--licence", "MIT")
    (staged / "README.md").touch()
    broken = staged / "broken-1.0.0/data/features.zarr"
    broken.mkdir(parents=True)
    code, out, err = run("ls")
    assert code == 0
    lines = [line.split() for line in out.splitlines()[2:]]
    assert lines[1] == ["films-1.0.0", "1.0", "3", "2", "0", "1", "0", "toy"]
    assert lines[2] == ["films.staging", "staging", "3", "2", "0", "1", "0", "toy"]
    assert lines[3] == ["late.staging", "staging", "3", "1", "0", "0", "2", "toy"]
    assert lines[0][0] == "broken-1.0.0"
    assert "not readable" in " ".join(lines[0])
    assert "missing" in err
    rows = json.loads(run("ls", "--json")[1])
    assert [row["name"] for row in rows] == [line[0] for line in lines]
    assert (rows[1]["clips"], rows[1]["failed"], rows[1]["features"]) == (3, 1, "toy")


@pytest.mark.usefixtures("staged")
def test_ls_shows_packed_stores_too(run):
    run("seal", "stores/films", "--licence", "MIT")
    run("pack", "stores/films")
    folder, packed = (line.split() for line in run("ls")[1].splitlines()[2:4])
    assert packed == ["films-1.0.0.zip", *folder[1:]]


def test_ls_of_an_empty_or_absent_folder(tmp_path, run):
    assert run("ls", tmp_path)[0] == 0
    code, _, err = run("ls", tmp_path / "nowhere")
    assert code == 1
    assert "nowhere" in err


@pytest.mark.usefixtures("staged")
def test_inspect_shows_clips_arrays_and_provenance(run):
    run("seal", "stores/films", "--licence", "MIT")
    code, out, _ = run("inspect", "stores/films", "--json")
    record = json.loads(out)
    assert code == 0
    assert record["clips"] == {"missing": 0, "ok": 2, "partial": 0, "failed": 1}
    assert record["groups"]["toy"]["arrays"]["pooled"] == {"dtype": "float32", "shape": [3, 2]}
    assert record["groups"]["toy"]["provenance"]["decoder"]["on_damage"] == "none"
    code, out, _ = run("inspect", "stores/films")
    assert code == 0
    for words in ("fingerprint", record["fingerprint"], "clips.failed", "3 x 2", "decoder.on_damage"):
        assert words in out


def test_a_long_list_is_shown_by_its_length_and_its_ends():
    shown = dict(_flat({"features": [f"f{i}" for i in range(103)], "order": ["crop", "resize"]}))
    assert shown == {"features": "103 values: f0, f1, ... f102", "order": '["crop", "resize"]'}


@pytest.mark.parametrize("flag", ["--quick", "--full", None])
def test_verify_exits_with_0_or_with_3_and_names_the_file(staged, run, flag):
    flags = [flag] if flag else []
    run("seal", "stores/films", "--licence", "MIT")
    code, out, _ = run("verify", "stores/films", *flags)
    assert code == 0
    assert "nothing wrong" in out
    (staged / "films-1.0.0/README.md").write_text("better", encoding="utf-8")
    code, out, _ = run("verify", "stores/films", *flags)
    assert code == 3
    assert out.startswith("README.md: changed")
    code, out, _ = run("verify", "stores/films", "--json", *flags)
    assert code == 3
    assert json.loads(out)["problems"][0]["file"] == "README.md"


@pytest.mark.usefixtures("staged")
def test_mistakes_are_one_line_without_a_traceback(run):
    assert run("verify", "stores/films", "--quick", "--full")[0] == 2
    for arguments in (("inspect", "stores/films"), ("verify", "stores/nothing"), ("inspect", "stores")):
        code, out, err = run(*arguments)
        assert (code, out) == (1, "")
        assert err.startswith("obygaze: error: stores")
        assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["ls", "inspect", "seal", "verify"])
def test_help_has_examples(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"obygaze store {command}" in out
