"""What people expect of every command: pipes, `-` for a file, completion, options in the environment."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from PIL import Image

from obygaze_features import extraction
from obygaze_features.errors import ExtractError
from obygaze_features.store import open_store
from tests.cli.test_contents import LARGE_LIBRARIES, modules_loaded_by
from tests.cli.walk import all_commands
from tests.command import EndedCommand, obygaze
from tests.terminal import in_terminal

PAGE = Path(__file__).parents[2] / "docs/command-line.md"
HEADER_OF_MANIFEST = "clip_id,movie,video,start_s,end_s,level,concepts,annotator"


@pytest.fixture
def run_with_input(tmp_path):
    """Return a function that runs `obygaze COMMAND` in a process of its own, with a text on standard input.

    The current folder is `tmp_path`. It returns the exit code, and what was printed to stdout and to stderr.
    """

    def run(command, text=""):
        done = subprocess.run(
            [sys.executable, "-m", "obygaze", *command.split()],
            input=text,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        return EndedCommand(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def folder_with_film(tmp_path):
    """The current folder, with the file films/a.mp4 in it."""
    (tmp_path / "films").mkdir()
    (tmp_path / "films/a.mp4").touch()
    return tmp_path


@pytest.mark.long
def test_a_manifest_is_imported_from_standard_input_to_standard_output(run_with_input, folder_with_film):
    """A hyphen stands for standard input or output.

    Messages go to stderr, so that stdout holds the manifest alone.
    """
    two_spans = "video,start_s,end_s,level\na.mp4,0,2,S\na.mp4,2,4,HN\n"

    ended = run_with_input("manifest import spans - --videos films --out -", two_spans)

    assert ended.exit_code == 0
    assert ended.out.startswith("clip_id,movie,video,")
    assert "2 clips of 1 movie" in ended.err
    assert [path.name for path in folder_with_film.iterdir()] == ["films"]  # no file was made


@pytest.mark.usefixtures("folder_with_film")
def test_videos_of_a_manifest_on_standard_input_are_looked_up_in_the_current_folder(run_with_input):
    """The manifest has one clip, of films/a.mp4, which is there."""
    manifest = f"{HEADER_OF_MANIFEST}\na,m,films/a.mp4,0,2,S,,\n"

    ended = run_with_input("manifest inspect - --json", manifest)

    assert ended.exit_code == 0
    assert json.loads(ended.out)["videos"]["on_disk"] == 1


@pytest.mark.usefixtures("folder_with_film")
def test_json_goes_to_stderr_where_the_manifest_goes_to_stdout(run_with_input):
    """A clip of 4 s is cut into two windows of 2 s. With `--out -` their manifest goes to stdout, as CSV.

    The summary of `--json` must not be mixed with it.
    """
    clip_of_4_s = f"{HEADER_OF_MANIFEST}\na,m,films/a.mp4,0,4,S,,\n"

    ended = run_with_input("manifest project - --window 2 --out - --json", clip_of_4_s)

    assert ended.exit_code == 0
    assert len(ended.out.splitlines()) == 1 + 2  # a header and two windows
    assert json.loads(ended.err)["clips"] == 2


@pytest.mark.long
def test_a_manifest_of_a_codebook_of_ones_own_is_not_written_to_stdout(run_with_input, folder_with_film):
    """A manifest's file has a copy of its codebook beside it, without which its labels mean nothing.

    On stdout (`--out -`) there is no file to put the copy beside: the command is refused, and writes nothing.
    """
    run_with_input("codebook init --out mine.toml")

    ended = run_with_input("manifest import folder films --codebook mine.toml --out -")

    assert ended.exit_code == 1
    assert ended.out == ""
    assert {path.name for path in folder_with_film.iterdir()} == {"films", "mine.toml"}


REGEX_OF_VALUES = {"bash": r"plain,(\S+)", "fish": r"plain,(\S+)", "zsh": r"plain\n(\S+)"}
"""Shell -> how each value stands in what completion prints for it."""


def set_what_the_shell_sets_on_tab(monkeypatch, shell, typed_words, begun_word):
    """Set the environment of click's completion, for words and the word that is begun behind them."""
    monkeypatch.setenv("_OBYGAZE_COMPLETE", f"{shell}_complete")
    if shell == "fish":  # the words before, and the one that is begun
        monkeypatch.setenv("COMP_WORDS", typed_words)
        monkeypatch.setenv("COMP_CWORD", begun_word)
    else:  # all words, and the number of the one that is begun
        monkeypatch.setenv("COMP_WORDS", typed_words + begun_word)
        monkeypatch.setenv("COMP_CWORD", str(len(typed_words.split())))


@pytest.fixture
def values_offered(tmp_path, monkeypatch, capfd):
    """Type a line, the beginning of a value and the tab key; gives the values that the shell is offered.

    The current folder has a manifest films.csv of the codebook obygaze12.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "films.csv").write_text(f"{HEADER_OF_MANIFEST}\na,m,,0,1,S,,\n", encoding="utf-8")

    def values_offered(line, begun_word, shell):
        set_what_the_shell_sets_on_tab(monkeypatch, shell, f"obygaze {line} ", begun_word)
        assert obygaze() == 0
        out, err = capfd.readouterr()
        assert err == ""
        return set(re.findall(REGEX_OF_VALUES[shell], out))

    return values_offered


@pytest.mark.parametrize(
    ("line", "begun_word", "values"),
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
def test_the_tab_key_offers_all_values_that_begin_with_what_is_typed(
    values_offered, line, begun_word, values
):
    """Behind `obygaze LINE` the user typed the beginning of a word."""
    assert values_offered(line, begun_word, "bash") == values


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_than_bash_are_offered_the_same(values_offered, shell):
    """Of the tasks of the codebook, one is of a concept that begins with "Bo"."""
    line = "evaluate films.csv store --task"

    assert values_offered(line, "concept:Bo", shell) == {"concept:Body"}


@pytest.mark.long
@pytest.mark.parametrize("line", ["extract --backbone ", "codebook show ", "evaluate --model "])
def test_completing_a_value_loads_no_large_library(line):
    """The user waits for the values: torch, pandas and the like would take seconds to load.

    Numpy loads quickly, and the list of models needs it.
    """
    code = (
        "import contextlib, os, obygaze.cli\n"
        "os.environ['_OBYGAZE_COMPLETE'] = 'fish_complete'\n"
        f"os.environ['COMP_WORDS'] = 'obygaze {line}'\n"
        "os.environ['COMP_CWORD'] = ''\n"
        "with contextlib.suppress(SystemExit): obygaze.cli.main()"
    )

    large_libraries_loaded = modules_loaded_by(code) & LARGE_LIBRARIES

    assert large_libraries_loaded - {"numpy"} == set()


@pytest.fixture
def options_in_environment(tmp_path, monkeypatch):
    """A folder with the manifest a.csv of a picture, and options that environment variables set.

    They are --licence MIT, --workers 1 and --device cpu, and `stores` for the folder of stores.
    """
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (8, 8)).save("a.png")
    assert run_line("manifest import images . --out a.csv") == 0
    monkeypatch.setenv("OBYGAZE_LICENCE", "MIT")
    monkeypatch.setenv("OBYGAZE_WORKERS", "1")
    monkeypatch.setenv("OBYGAZE_DEVICE", "cpu")
    monkeypatch.setenv("OBYGAZE_STORES", "stores")
    return tmp_path


def run_line(line):
    """Run a command in this process; gives its exit code."""
    return obygaze(*line.split())


@pytest.mark.long
@pytest.mark.usefixtures("options_in_environment")
def test_a_store_gets_the_licence_that_the_environment_sets():
    """OBYGAZE_LICENCE is MIT, and no --licence is typed. The manifest a.csv has one picture."""
    assert run_line("extract a.csv stores/a") == 0

    assert open_store("stores/a").attributes["licence"] == "MIT"


@pytest.mark.long
@pytest.mark.usefixtures("options_in_environment")
def test_a_licence_that_is_typed_replaces_the_one_of_the_environment():
    """OBYGAZE_LICENCE is MIT. The manifest a.csv has one picture."""
    assert run_line("extract a.csv stores/a --licence CC0-1.0") == 0

    assert open_store("stores/a").attributes["licence"] == "CC0-1.0"


@pytest.mark.long
@pytest.mark.usefixtures("options_in_environment")
def test_a_store_that_is_sealed_apart_gets_the_licence_of_the_environment():
    """OBYGAZE_LICENCE is MIT. A shard of an extraction is not sealed: `store seal` does it.

    The manifest has one clip, which is in the first of two shards.
    """
    assert run_line("extract a.csv stores/a --shard 0/2") == 0
    assert run_line("store seal stores/a") == 0

    assert open_store("stores/a").attributes["licence"] == "MIT"


@pytest.mark.long
def test_store_ls_and_rm_without_a_folder_take_the_one_that_the_environment_sets(
    options_in_environment, capfd
):
    """OBYGAZE_STORES is the folder `stores`; OBYGAZE_LICENCE is set too, so that the store is sealed."""
    assert run_line("extract a.csv stores/a") == 0
    stage = options_in_environment / "stores" / "a.staging"  # it stays, so that the store can grow
    assert stage.exists()
    capfd.readouterr()

    assert run_line("store ls --json") == 0
    names_listed = [store["name"] for store in json.loads(capfd.readouterr().out)]
    assert run_line("store rm --sealed-stages --yes") == 0

    assert "a-1.0.0" in names_listed
    assert not stage.exists()


@pytest.mark.usefixtures("options_in_environment")
def test_workers_typed_wrongly_are_refused_despite_the_environment():
    """OBYGAZE_WORKERS is 1, which would do; a typed option overrides it, also where it is wrong.

    "none" is no number of workers; click ends with code 2 where a command is typed wrongly.
    """
    assert run_line("extract a.csv stores/c --workers none") == 2


def test_a_number_of_workers_in_the_environment_does_not_keep_texts_from_being_extracted(
    options_in_environment, capfd
):
    """Texts are extracted by one process, so that `--workers` on the command line is refused for them.

    The environment has OBYGAZE_WORKERS=1, which sets that option for all commands, and must be ignored here.
    The extraction then gets as far as to its weights, in a folder "nowhere" that does not exist, and fails
    for these.
    """
    (options_in_environment / "texts.txt").write_text("a cat\n")

    assert run_line("extract texts.txt stores/t --backbone sentence --weights nowhere") == 1

    err = capfd.readouterr().err
    assert "--workers" not in err
    assert "nowhere" in err


def test_the_page_on_the_command_line_names_each_command_that_reads_a_variable():
    """A row of its table is "| `OBYGAZE_LICENCE` | meaning | `extract`, `store seal`, ... |"."""
    rows = re.findall(r"^\| `(OBYGAZE_\w+)` \| .*? \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    commands_of_variable = {variable: set(re.findall("`(.*?)`", cell)) for variable, cell in rows}

    for path, command, _ in all_commands():
        for option in command.params:
            variable = option.envvar
            if variable:
                assert path.removeprefix("obygaze ") in commands_of_variable[variable], (path, variable)


def types_of(option):
    """List the types of an option's values: one, or those of a tuple's places."""
    if isinstance(option.type, click.Tuple):
        return option.type.types
    return [option.type]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("--help", 141),
        ("codebook show --json", 141),
        ("codebook texts obygaze12 --out -", 141),
        ("manifest inspect no.csv", 1),  # it fails before it would print
    ],
    ids=["help", "json", "a file", "an error"],
)
def test_a_command_whose_reader_left_shows_no_traceback(tmp_path, command, code):
    """The reader of the pipe is gone, as with `obygaze ... | head`. This is no mistake of the user.

    The exit code is then 141: 128 and the number of SIGPIPE, 13, as shells say it.
    """
    reading_end, writing_end = os.pipe()
    os.close(reading_end)
    words = [sys.executable, "-m", "obygaze", *command.split()]

    result = subprocess.run(words, stdout=writing_end, stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    os.close(writing_end)

    assert result.returncode == code
    assert b"Traceback" not in result.stderr
    has_failed_before_it_printed = code == 1
    assert has_failed_before_it_printed or result.stderr == b""


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999"])
def test_every_option_that_takes_a_number_refuses_nan_and_infinity(text):
    """Python reads these words as numbers, and no option means anything by them."""
    number_types = []
    for _, command, _ in all_commands():
        for option in command.params:
            types = types_of(option)
            number_types += [each for each in types if isinstance(each, click.types.FloatParamType)]

    assert number_types
    for number_type in number_types:
        with pytest.raises(click.BadParameter):
            number_type.convert(text, None, None)


def test_every_range_of_an_option_has_a_bound():
    """Help would show a range without bounds as `x<=None`."""
    for path, command, _ in all_commands():
        for option in command.params:
            if isinstance(option.type, click.IntRange | click.FloatRange):
                has_bound = option.type.min is not None or option.type.max is not None
                assert has_bound, (path, option.opts)


def test_no_help_shows_the_name_of_a_function_as_a_value():
    """Click shows the name of the function that parses an option's value, unless a word is given for it."""
    for path, command, _ in all_commands():
        for option in command.params:
            is_parsed_by_function = isinstance(option.type, click.types.FuncParamType)
            assert option.metavar or not is_parsed_by_function, (path, option.opts)


@pytest.mark.parametrize("command", ["codebook show obygaze12", "manifest inspect no.csv"])
def test_no_colour_is_printed_on_a_terminal(tmp_path, command):
    """Output is often copied into reports and compared, where colour codes would be noise."""
    _, output = in_terminal(command.split(), tmp_path)

    assert "\x1b" not in output


@pytest.fixture
def devices_asked_for(monkeypatch):
    """The device of each backbone that `extract` asks for; the command then fails, before it decodes.

    A device can be asked for though this machine has none: nothing looks for a GPU.
    """
    devices = []

    def note_devices(_manifest, _store, recipes, **_):
        for recipe in recipes:
            compute = recipe.options.get("compute")
            devices.append(compute.device if compute else None)
        raise ExtractError("stopped by the test")

    monkeypatch.setattr(extraction, "prepare", note_devices)
    monkeypatch.setattr("obygaze_features.commands.extract_command.no_gpu_here", lambda: "")
    return devices


@pytest.mark.parametrize(
    ("options", "device"),
    [
        ("--backbone xclip", "cpu"),
        ("--backbone xclip --device cuda", "cuda"),
        ("--backbone xclip --gpus 0", None),
        ("--backbone descriptors", None),
    ],
    ids=["nothing else is typed", "a device is typed", "a GPU is typed", "no network is run"],
)
def test_the_device_of_the_environment_is_used_where_nothing_else_is_typed(
    monkeypatch, devices_asked_for, options, device
):
    """The command asks for one backbone, with a device or None; the test then stops it, with the code 1."""
    monkeypatch.setenv("OBYGAZE_DEVICE", "cpu")

    assert obygaze("extract", "a.csv", "store", *options.split()) == 1

    assert devices_asked_for == [device]


def test_the_option_version_has_the_short_form_v(run_with_input):
    """Both end with the same code and print the same."""
    outcome_of_short_form = run_with_input("-V")
    outcome_of_long_form = run_with_input("--version")

    assert outcome_of_short_form == outcome_of_long_form


OPTIONS_OF_NAMES = {
    "--annotator",
    "--by",
    "--clip",
    "--columns",
    "--concept",
    "--key",
    "--machine",
    "--master",
    "--merge",
    "--movie",
    "--negative",
    "--positive",
    "--set",
    "--tier",
}
"""Options that take names of a corpus, such as those of people, which may have accents."""


def test_a_name_may_be_typed_with_an_accent_of_its_own():
    """Some keyboards and macOS write e and an accent, two characters, for the one character é.

    Options that take names of people, films and concepts make one character of them.
    """
    options = []
    for _, command, _ in all_commands():
        options += [option for option in command.params if OPTIONS_OF_NAMES.intersection(option.opts)]
    assert {option.opts[0] for option in options} == OPTIONS_OF_NAMES

    for option in options:
        converted = option.type.convert("Ame\u0301lie", option, None)
        assert converted == "Am\u00e9lie", option.opts
