"""What people expect of every command: pipes, `-` for a file, completion, options of a site."""

import json
import os
import re
import subprocess
import sys

import click
import pytest
from PIL import Image

from obygaze_features import extraction
from obygaze_features.errors import ExtractError
from obygaze_features.store import open_store
from tests.cli.test_contents import HEAVY, modules_after
from tests.cli.walk import all_commands
from tests.command import obygaze
from tests.terminal import in_terminal

HEADER = "clip_id,movie,video,start_s,end_s,level,concepts,annotator"


@pytest.fixture
def piped(tmp_path):
    """Run a command with something on its standard input; gives its exit code, output and errors."""

    def piped(command, text="", **environment):
        done = subprocess.run(
            [sys.executable, "-m", "obygaze", *command.split()],
            input=text,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | environment,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return piped


def test_a_manifest_goes_through_a_pipe_and_what_is_said_of_it_goes_to_stderr(piped, tmp_path):
    (tmp_path / "films").mkdir()
    (tmp_path / "films/a.mp4").touch()
    spans = "video,start_s,end_s,level\na.mp4,0,2,S\na.mp4,2,4,HN\n"
    code, manifest, said = piped("manifest import spans - --videos films --out -", spans)
    assert (code, manifest.partition("\n")[0].split(",")[:3]) == (0, ["clip_id", "movie", "video"])
    assert "2 clips of 1 movie" in said
    code, shown, _ = piped("manifest inspect - --json", manifest)
    assert (code, '"on_disk": 1' in shown) == (0, True)  # videos are relative to the current folder
    code, projected, said = piped("manifest project - --window 2 --out - --json", manifest)
    assert (code, projected.count("\n"), '"clips": 2' in said) == (0, 3, True)
    assert [path.name for path in tmp_path.iterdir()] == ["films"]


def test_a_manifest_of_an_own_codebook_is_two_files_so_none_is_written(piped, tmp_path):
    piped("codebook init --out mine.toml")
    (tmp_path / "films").mkdir()
    (tmp_path / "films/a.mp4").touch()
    code, out, _ = piped("manifest import folder films --codebook mine.toml --out -")
    assert (code, out) == (1, "")
    assert {path.name for path in tmp_path.iterdir()} == {"films", "mine.toml"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "begun", "named"),
    [
        (
            "extract films.csv store --backbone",
            "xcl",
            {"xclip", "xclip-text", "xclip-lsmdc", "xclip-lsmdc-text"},
        ),
        ("codebook show", "oby", {"obygaze12"}),
        ("manifest import folder films --codebook", "mob", {"mobygaze"}),
        ("evaluate films.csv store --model", "pcbm_lr", {"pcbm_lr", "pcbm_lr_random", "pcbm_lr_shuffled"}),
        ("evaluate films.csv store --task", "concept:Bo", {"concept:Body"}),
        ("folds in/none.csv --task", "", set()),
    ],
)
def test_values_are_completed_in_every_shell(tmp_path, monkeypatch, capfd, shell, line, begun, named):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "films.csv").write_text(f"{HEADER}\na,m,,0,1,S,,\n", encoding="utf-8")
    words = f"obygaze {line} "
    place = begun if shell == "fish" else str(len(words.split()))
    monkeypatch.setenv("_OBYGAZE_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", words if shell == "fish" else words + begun)
    monkeypatch.setenv("COMP_CWORD", place)
    assert obygaze() == 0
    out, err = capfd.readouterr()
    plain = {"bash": r"plain,(\S+)", "fish": r"plain,(\S+)", "zsh": r"plain\n(\S+)"}
    assert (set(re.findall(plain[shell], out)), err) == (named, "")


@pytest.mark.parametrize("line", ["extract --backbone ", "codebook show ", "evaluate --model "])
def test_completing_a_value_loads_no_large_library(line):
    code = (
        "import contextlib, os, obygaze.cli\n"
        f"os.environ |= dict(_OBYGAZE_COMPLETE='fish_complete', COMP_WORDS='obygaze {line}', COMP_CWORD='')\n"
        "with contextlib.suppress(SystemExit): obygaze.cli.main()"
    )
    assert not modules_after(code) & (HEAVY - {"numpy"})


def test_options_that_a_site_sets_once_yield_to_what_is_typed(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for name, value in {"LICENCE": "MIT", "WORKERS": "1", "DEVICE": "cpu", "STORES": "there"}.items():
        monkeypatch.setenv(f"OBYGAZE_{name}", value)

    def typed(command):
        return obygaze(*command.split())

    Image.new("RGB", (8, 8)).save("a.png")
    assert typed("manifest import images . --out a.csv") == 0
    assert typed("extract a.csv there/a") == 0  # of a backbone without a network, so of no device
    assert typed("extract a.csv there/b --licence CC0-1.0 --shard 0/2") == 0
    assert typed("store seal there/b") == 0
    capfd.readouterr()
    assert typed("store ls --json") == 0
    assert {row["name"] for row in json.loads(capfd.readouterr().out)} >= {"a-1.0.0", "b-1.0.0"}
    assert open_store("there/a").attributes["licence"] == "MIT"
    assert typed("store rm --sealed-stages --yes") == 0
    assert not list((tmp_path / "there").glob("*.staging"))
    assert typed("extract a.csv there/c --workers none") == 2
    (tmp_path / "texts.txt").write_text("a cat\n")
    capfd.readouterr()
    assert typed("extract texts.txt there/t --backbone sentence --weights nowhere") == 1
    assert "--workers" not in capfd.readouterr().err  # the site has workers for videos, and texts need none


def test_every_option_that_takes_a_number_refuses_what_is_none():
    """Nan and infinities lie in any range that comparisons hold."""
    kinds = [
        kind
        for _, command, _ in all_commands()
        for option in command.params
        for kind in getattr(option.type, "types", [option.type])
        if isinstance(kind, click.types.FloatParamType)
    ]
    assert len(kinds) > 10
    for kind in kinds:
        for text in ("nan", "inf", "-inf", "1e999"):
            with pytest.raises(click.BadParameter):
                kind.convert(text, None, None)


def test_no_help_states_a_range_without_an_end():
    for path, command, _ in all_commands():
        for option in command.params:
            if isinstance(option.type, click.IntRange | click.FloatRange):
                assert {option.type.min, option.type.max} != {None}, (path, option.opts)


@pytest.mark.parametrize(
    "command",
    ["--help", "codebook show --json", "codebook texts obygaze12 --out -", "manifest inspect no.csv"],
)
def test_a_reader_that_leaves_early_sees_no_traceback(tmp_path, command):
    ours, theirs = os.pipe()
    os.close(ours)
    words = [sys.executable, "-m", "obygaze", *command.split()]
    done = subprocess.run(words, stdout=theirs, stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    os.close(theirs)
    assert done.returncode == (1 if "no.csv" in command else 141)
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["--help", "codebook show obygaze12", "manifest inspect no.csv"])
def test_no_colour_is_printed_on_a_terminal_whatever_is_wished(tmp_path, command):
    assert "\x1b" not in in_terminal(command.split(), tmp_path)[1]


@pytest.mark.parametrize(
    ("typed", "device"),
    [("", "cpu"), ("--device cuda", "cuda"), ("--gpus 0", None), ("--backbone descriptors", None)],
)
def test_a_device_of_the_site_yields_to_what_excludes_it(monkeypatch, typed, device):
    def prepare(_manifest, _store, recipes, **_):
        found.extend(recipe.options.get("compute") for recipe in recipes)
        raise ExtractError("enough")

    found = []
    monkeypatch.setenv("OBYGAZE_DEVICE", "cpu")
    monkeypatch.setattr(extraction, "prepare", prepare)
    monkeypatch.setattr("obygaze_features.commands.extract_command.no_gpu_here", str)
    backbone = () if "--backbone" in typed else ("--backbone", "xclip")
    assert obygaze("extract", "a.csv", "store", *backbone, *typed.split()) == 1
    assert [compute and compute.device for compute in found] == [device]


def test_the_version_has_a_letter(piped):
    assert piped("-V") == piped("--version")


NAMED = "annotator by clip columns concept key machine master merge movie negative positive set tier"


def test_a_name_may_be_typed_in_any_form_of_unicode():
    wanted = {f"--{name}" for name in NAMED.split()}
    options = [one for _, command, _ in all_commands() for one in command.params if wanted & {*one.opts}]
    assert {one.opts[0] for one in options} == wanted
    for option in options:
        assert option.type.convert("Ame\u0301lie", option, None) == "Am\u00e9lie", option.opts
