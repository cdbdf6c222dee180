"""`obygaze manifest sheets`: real frames of the right clips, numbered, and only where they were asked for."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from obygaze.cli import main
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.video import read_frames, uniform
from obygaze_features.video.sheet import thumbnail

NASA, ARMS = "nasa_13013.mp4", "arm_wrestling.mp4"


@pytest.fixture(autouse=True)
def corpus(shared_data, tmp_path, monkeypatch):
    """Clips of two real films: Body in both, Look in one whose video is broken, Posture in none at hand."""
    monkeypatch.chdir(tmp_path)
    videos = shared_data / "videos"
    clips = (
        Clip("a1", "nasa", str(videos / NASA), 0, 4, "S", ("Body",)),
        Clip("a2", "nasa", str(videos / NASA), 4, 8, "HN", ("Body",)),
        Clip("b1", "arms", str(videos / ARMS), 0, 3, "S", ("Body", "Look")),
        Clip("b2", "arms", "broken.mp4", None, None, "S", ("Look",)),
        Clip("c1", "gone", "gone.mp4", None, None, "S", ("Look", "Posture")),
        Clip("d1", "nameless", "", None, None, "EN"),
    )
    write_manifest(Manifest(clips, tmp_path), "films.csv")
    Path("broken.mp4").write_bytes(b"no film")


@pytest.fixture
def run(capsys):
    def go(*arguments):
        with pytest.raises(SystemExit) as left:
            main(["manifest", "sheets", "films.csv", *map(str, arguments)])
        printed = capsys.readouterr()
        return left.value.code or 0, printed.out, printed.err

    return go


def index(folder):
    return list(csv.DictReader(io.StringIO(Path(folder, "index.csv").read_text(encoding="utf-8"))))


def test_each_concept_has_a_sheet_of_middle_frames_with_films_in_turn(run, shared_data):
    named = ("--concept", "Body", "--concept", "Look", "--concept", "Posture")
    code, out, err = run(*named, "--out", "s", "--json")
    assert code == 0
    body, look, posture = json.loads(out)
    assert (body["n_clips"], body["n_with_video"], body["n_drawn"], body["file"]) == (3, 3, 3, "body.png")
    assert (look["n_clips"], look["n_with_video"], look["n_drawn"]) == (3, 2, 1)
    assert (posture["n_with_video"], posture["file"]) == (0, "")
    assert "left out b2: " in err
    rows = index("s")
    assert [row["clip_id"] for row in rows if row["sheet"] == "body.png"] == ["a1", "b1", "a2"]
    assert sorted(path.name for path in Path("s").iterdir()) == ["body.png", "index.csv", "look.png"]
    second = thumbnail(read_frames(shared_data / "videos" / ARMS, uniform(2), start_s=0, end_s=3).images[1])
    sheet = np.asarray(Image.open("s/look.png"))
    height, width = second.shape[:2]
    assert (sheet[:height, :width] == second).all()
    assert float(rows[-1]["time_s"]) == pytest.approx(1.5, abs=0.1)


def test_a_models_errors_are_two_sheets_the_clearest_error_first(run):
    rows = ["model,task,fold,clip_id,label,score,threshold"]
    for model, scores in (("mlp", (0.9, 0.1, 0.6, 0.2)), ("linear", (0, 0, 0, 0))):
        for name, label, score in zip(("a1", "a2", "b1", "b2"), (0, 1, 0, 0), scores, strict=True):
            rows.append(f"{model},hn_s>hn_s,0,{name},{label},{score},0.5")
    Path("p.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    code, _, err = run("--predictions", "p.csv", "--out", "e")
    assert code == 1
    assert "choose one model with --model: there are mlp, linear" in err
    assert not Path("e").exists()
    code, out, _ = run("--predictions", "p.csv", "--model", "mlp", "--out", "e", "--n", 1)
    assert code == 0
    assert out.splitlines()[2].split() == ["false", "alarms", "2", "2", "1", "false-alarms.png"]
    assert [(row["sheet"], row["clip_id"], row["score"]) for row in index("e")] == [
        ("false-alarms.png", "a1", "0.9"),
        ("misses.png", "a2", "0.1"),
    ]
    Path("p.csv").write_text("\n".join([rows[0], "mlp,t,0,zz,0,x,0.5", ""]), encoding="utf-8")
    code, _, err = run("--predictions", "p.csv", "--out", "f")
    assert code == 1
    assert "line 2" in err
    assert err.count("\n") == 1


def test_sheets_are_the_same_twice_and_replace_nothing_but_sheets(run):
    assert run("--concept", "Body", "--out", "s")[0] == 0
    first = {path.name: path.read_bytes() for path in Path("s").iterdir()}
    code, _, err = run("--concept", "Body", "--out", "s")
    assert code == 1
    assert "holds sheets already: give --force" in err
    assert run("--concept", "Body", "--out", "s", "--force")[0] == 0
    assert {path.name: path.read_bytes() for path in Path("s").iterdir()} == first
    Path("s/mine.txt").touch()
    code, _, err = run("--concept", "Body", "--out", "s", "--force")
    assert code == 1
    assert "holds what is no sheet of ours (mine.txt)" in err


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--concept", "Bodyy"], "unknown concept 'Bodyy'"),
        (["--model", "mlp"], "--model is for --predictions"),
        (["--concept", "Body", "--predictions", "p.csv"], "different sheets"),
        (["--predictions", "nowhere.csv"], "nowhere.csv"),
        (["--concept", "Posture"], "nothing to draw of Posture (clips: 1, with a video on this machine: 0)"),
        (["--concept", "Clothing"], "nothing to draw of Clothing (no clip belongs there)"),
    ],
)
def test_a_mistake_is_one_line_and_stores_nothing(run, arguments, what):
    code, _, err = run(*arguments, "--out", "s")
    assert code in {1, 2}
    assert what in err
    assert not Path("s").exists()
