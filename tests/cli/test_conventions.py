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
CODE_OF_BROKEN_PIPE = 141  # 128 and SIGPIPE, 13, as shells say it


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


SPANS = "video,start_s,end_s,level\na.mp4,0,2,S\na.mp4,2,4,HN\n"


@pytest.fixture
def one_film(tmp_path):
    """The current folder, with a folder of one film."""
    (tmp_path / "films").mkdir()
    (tmp_path / "films/a.mp4").touch()
    return tmp_path


def test_a_manifest_is_imported_from_a_pipe_into_a_pipe(piped, one_film):
    code, manifest, said = piped("manifest import spans - --videos films --out -", SPANS)
    assert code == 0
    assert manifest.startswith("clip_id,movie,video,")
    assert "2 clips of 1 movie" in said
    assert [path.name for path in one_film.iterdir()] == ["films"]


@pytest.mark.usefixtures("one_film")
def test_a_manifest_from_a_pipe_is_of_the_current_folder(piped):
    _, manifest, _ = piped("manifest import spans - --videos films --out -", SPANS)
    code, shown, _ = piped("manifest inspect - --json", manifest)
    assert code == 0
    assert '"on_disk": 1' in shown


@pytest.mark.usefixtures("one_film")
def test_json_of_a_manifest_that_goes_into_a_pipe_goes_to_stderr(piped):
    _, manifest, _ = piped("manifest import spans - --videos films --out -", SPANS)
    code, projected, said = piped("manifest project - --window 2 --out - --json", manifest)
    assert code == 0
    assert projected.count("\n") == 3  # a header and two windows
    assert '"clips": 2' in said


def test_a_manifest_that_needs_a_codebook_file_beside_it_is_not_printed(piped, tmp_path):
    piped("codebook init --out mine.toml")
    (tmp_path / "films").mkdir()
    (tmp_path / "films/a.mp4").touch()
    code, out, _ = piped("manifest import folder films --codebook mine.toml --out -")
    assert (code, out) == (1, "")
    assert {path.name for path in tmp_path.iterdir()} == {"films", "mine.toml"}


VALUES_OF_OUTPUT = {"bash": r"plain,(\S+)", "fish": r"plain,(\S+)", "zsh": r"plain\n(\S+)"}
"""Shell -> what its completion prints of each value."""


def type_in_shell(monkeypatch, shell, words, begun):
    """Set what a shell sets when Tab is hit behind a begun word."""
    monkeypatch.setenv("_OBYGAZE_COMPLETE", f"{shell}_complete")
    if shell == "fish":  # the words before, and the one that is begun
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", begun)
    else:  # all words, and the number of the one that is begun
        monkeypatch.setenv("COMP_WORDS", words + begun)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split())))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "begun", "values"),
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
    ids=["backbones", "a codebook to show", "an option --codebook", "models", "tasks", "no manifest"],
)
def test_values_are_completed_in_every_shell(tmp_path, monkeypatch, capfd, shell, line, begun, values):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "films.csv").write_text(f"{HEADER}\na,m,,0,1,S,,\n", encoding="utf-8")
    type_in_shell(monkeypatch, shell, f"obygaze {line} ", begun)
    assert obygaze() == 0
    out, err = capfd.readouterr()
    assert set(re.findall(VALUES_OF_OUTPUT[shell], out)) == values
    assert err == ""


@pytest.mark.parametrize("line", ["extract --backbone ", "codebook show ", "evaluate --model "])
def test_completing_a_value_loads_no_large_library(line):
    code = (
        "import contextlib, os, obygaze.cli\n"
        f"os.environ |= dict(_OBYGAZE_COMPLETE='fish_complete', COMP_WORDS='obygaze {line}', COMP_CWORD='')\n"
        "with contextlib.suppress(SystemExit): obygaze.cli.main()"
    )
    assert not modules_after(code) & (HEAVY - {"numpy"})


@pytest.fixture
def site_options(tmp_path, monkeypatch):
    """A folder with a picture and its manifest, and options that the site sets in the environment."""
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (8, 8)).save("a.png")
    assert type_line("manifest import images . --out a.csv") == 0
    monkeypatch.setenv("OBYGAZE_LICENCE", "MIT")
    monkeypatch.setenv("OBYGAZE_WORKERS", "1")
    monkeypatch.setenv("OBYGAZE_DEVICE", "cpu")
    monkeypatch.setenv("OBYGAZE_STORES", "stores")
    return tmp_path


def type_line(line):
    return obygaze(*line.split())


@pytest.mark.usefixtures("site_options")
def test_a_store_gets_the_licence_of_the_site():
    assert type_line("extract a.csv stores/a") == 0
    assert open_store("stores/a").attributes["licence"] == "MIT"


@pytest.mark.usefixtures("site_options")
def test_a_licence_that_is_typed_goes_before_that_of_the_site():
    assert type_line("extract a.csv stores/b --licence CC0-1.0") == 0
    assert open_store("stores/b").attributes["licence"] == "CC0-1.0"


@pytest.mark.usefixtures("site_options")
def test_a_share_is_extracted_and_sealed_with_the_options_of_the_site():
    assert type_line("extract a.csv stores/b --licence CC0-1.0 --shard 0/2") == 0
    assert type_line("store seal stores/b") == 0
    assert open_store("stores/b").attributes["licence"] == "MIT"


@pytest.mark.usefixtures("site_options")
def test_stores_are_listed_in_the_folder_of_the_site(capfd):
    assert type_line("extract a.csv stores/a") == 0
    capfd.readouterr()
    assert type_line("store ls --json") == 0
    assert "a-1.0.0" in {row["name"] for row in json.loads(capfd.readouterr().out)}


def test_sealed_stages_are_removed_in_the_folder_of_the_site(site_options):
    assert type_line("extract a.csv stores/a") == 0
    assert type_line("store rm --sealed-stages --yes") == 0
    assert not list((site_options / "stores").glob("*.staging"))


@pytest.mark.usefixtures("site_options")
def test_workers_that_are_typed_wrongly_are_refused_in_spite_of_the_site():
    assert type_line("extract a.csv stores/c --workers none") == 2


def test_workers_of_the_site_are_no_mistake_of_an_extraction_of_texts(site_options, capfd):
    """Texts need no workers, which the site has set for its videos."""
    (site_options / "texts.txt").write_text("a cat\n")
    assert type_line("extract texts.txt stores/t --backbone sentence --weights nowhere") == 1
    assert "--workers" not in capfd.readouterr().err


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
    ("command", "code"),
    [
        ("--help", CODE_OF_BROKEN_PIPE),
        ("codebook show --json", CODE_OF_BROKEN_PIPE),
        ("codebook texts obygaze12 --out -", CODE_OF_BROKEN_PIPE),
        ("manifest inspect no.csv", 1),
    ],
)
def test_a_command_whose_reader_leaves_early_shows_no_traceback(tmp_path, command, code):
    reading_end, writing_end = os.pipe()
    os.close(reading_end)
    words = [sys.executable, "-m", "obygaze", *command.split()]
    done = subprocess.run(words, stdout=writing_end, stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    os.close(writing_end)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["--help", "codebook show obygaze12", "manifest inspect no.csv"])
def test_no_colour_is_printed_on_a_terminal_whatever_is_wished(tmp_path, command):
    assert "\x1b" not in in_terminal(command.split(), tmp_path)[1]


@pytest.mark.parametrize(
    ("typed", "device"),
    [("", "cpu"), ("--device cuda", "cuda"), ("--gpus 0", None), ("--backbone descriptors", None)],
)
def test_the_device_of_a_site_yields_to_options_that_exclude_it(monkeypatch, typed, device):
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


NAME_OPTIONS = "annotator by clip columns concept key machine master merge movie negative positive set tier"


def test_a_name_may_be_typed_in_any_form_of_unicode():
    wanted = {f"--{name}" for name in NAME_OPTIONS.split()}
    options = [one for _, command, _ in all_commands() for one in command.params if wanted & {*one.opts}]
    assert {one.opts[0] for one in options} == wanted
    for option in options:
        assert option.type.convert("Ame\u0301lie", option, None) == "Am\u00e9lie", option.opts
