"""`obygaze store rm, gc`: what is removed, and what never is."""

import os

import numpy as np
import pytest

from obygaze.cli import main
from obygaze_features.store import ClipFeatures, ClipResult, PlannedClip, Stage, seal, staging_path
from obygaze_features.store.testing import seal_arrays, toy_group

GROUP = toy_group("toy", {"pooled": np.zeros((1, 4), np.float32)}, 1)


def make_stage(name, done=2):
    stage = Stage.open(staging_path(name), [PlannedClip(c, "m") for c in "ab"], [GROUP], {"name": "Films"})
    with stage.writer() as writer:
        for clip in stage.missing()[:done]:
            pooled = {"pooled": np.full(4, ord(clip), np.float32)}
            good = ClipFeatures(np.zeros(1), np.zeros(1, np.int64), pooled)
            writer.commit([ClipResult(clip, "ok", groups={"toy": good})])
    return stage


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stores").mkdir()

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["store", *map(str, arguments)])
        return (ended.value.code or 0, *capsys.readouterr())

    return run


def test_gc_removes_stages_that_are_sealed_and_says_why_others_stay(run, tmp_path):
    make_stage("stores/whole")
    seal(None, "stores/whole", licence="MIT")
    make_stage("stores/open")
    make_stage("stores/half", done=1)
    make_stage("stores/grown", done=1)
    seal(None, "stores/grown", licence="MIT", allow_missing=True)
    make_stage("stores/grown")
    code, out, err = run("gc")
    assert code == 2
    assert "give --yes" in err
    assert (tmp_path / "stores/whole.staging").is_dir()
    code, out, err = run("gc", "--yes")
    assert (code, out) == (0, "removed stores/whole.staging\n")
    assert "kept stores/open.staging: it is not sealed" in err
    assert "kept stores/half.staging: 1 of 2 clips are still to do" in err
    assert "kept stores/grown.staging: no sealed store has all of its clips" in err
    assert run("gc", "--yes")[1] == "nothing to remove in stores\n"
    assert (tmp_path / "stores/whole-1.0.0").is_dir()


def test_rm_takes_stores_and_stages_and_nothing_else(run, tmp_path):
    make_stage("stores/a", done=1)
    seal_arrays("stores/b", {"x": "m"}, {"toy": {"pooled": np.zeros((1, 4), np.float32)}})
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    (tmp_path / "stores/b-1.0.0/link").symlink_to(outside)
    (tmp_path / "stores/link").symlink_to(tmp_path / "stores/b-1.0.0")
    for place, message in (
        ("stores", "neither a sealed store nor a stage"),
        ("stores/link", "is a link"),
        ("stores/none", "nothing there"),
    ):
        code, out, err = run("rm", place, "stores/a.staging", "--yes")
        assert (code, out) == (1, "")
        assert message in err
    assert run("rm", "stores/a.staging", "stores/b-1.0.0")[0] == 2
    code, out, _ = run("rm", "stores/a.staging", "stores/b-1.0.0", "--yes")
    assert (code, out) == (0, "removed stores/a.staging\nremoved stores/b-1.0.0\n")
    assert (outside / "precious").exists()
    assert sorted(path.name for path in (tmp_path / "stores").iterdir()) == ["b.staging", "link"]


def test_a_stage_that_is_written_to_stays(run):
    stage = make_stage("stores/a", done=1)
    with stage.writer() as writer:
        features = ClipFeatures(np.zeros(1), np.zeros(1, np.int64), {"pooled": np.zeros(4, np.float32)})
        writer.commit([ClipResult("b", "ok", groups={"toy": features})])
        code, _, err = run("rm", "stores/a.staging", "--yes")
    assert code == 1
    assert "1 process(es) write to it now" in err
