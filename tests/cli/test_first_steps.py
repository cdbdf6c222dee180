"""What somebody types who is new here, and what is said to that."""

import os
import subprocess
import sys

import pytest
from PIL import Image

from obygaze.cli import main


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command in an empty folder; gives its exit code and what it says on stderr."""
    monkeypatch.chdir(tmp_path)

    def go(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        return left.value.code, capsys.readouterr().err

    return go


def test_a_reader_that_leaves_early_is_told_from_an_error(tmp_path):
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-m", "obygaze", "--help"],
        stdout=theirs,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        check=False,
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("name", ["prompts.csv", "prompts.txt"])
def test_texts_given_to_a_backbone_of_frames_point_to_those_that_read(run, tmp_path, name):
    (tmp_path / name).write_text("text_id,text\na,a man\n", encoding="utf-8")
    code, err = run("extract", name, "stores/prompts")
    assert code == 1
    assert f"{name} is a list of texts, and descriptors reads frames" in err
    assert "give --backbone clip-text or --backbone sentence" in err
    code, err = run("extract", name, "stores/prompts", "--backbone", "openclip")
    assert (code, "give --backbone openclip-text\n" in err) == (1, True)


def test_a_table_that_is_neither_is_still_told_what_a_manifest_has(run, tmp_path):
    (tmp_path / "films.csv").write_text("clip_id,movie\na,b\n", encoding="utf-8")
    code, err = run("extract", "films.csv", "stores/films")
    assert code == 1
    assert "make a manifest of it with 'obygaze manifest import'" in err


def test_one_of_a_kind_is_counted_in_the_singular(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "films" / "one").mkdir(parents=True)
    (tmp_path / "films" / "one" / "a.mp4").touch()
    with pytest.raises(SystemExit):
        main(["manifest", "import", "folder", "films", "--out", "films.csv"])
    assert capsys.readouterr().out == "films.csv: 1 clip of 1 movie (1 without level)\n"


def test_a_share_without_a_licence_does_not_advise_to_seal_without_one(run, tmp_path):
    (tmp_path / "stills").mkdir()
    for name in "ab":
        Image.new("RGB", (32, 24), "navy").save(tmp_path / "stills" / f"{name}.png")
    assert run("manifest", "import", "images", "stills", "--out", "stills.csv")[0] == 0
    share = ("extract", "stills.csv", "stores/stills", "--workers", 1, "--shard")
    assert "obygaze store seal stores/stills --licence SPDX" in run(*share, "0/2")[1]
    assert "--licence CC0-1.0" in run(*share, "1/2", "--licence", "CC0-1.0")[1]
