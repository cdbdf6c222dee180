"""Whatever a path of a public name or of a command leads to, the call ends soon: it reads or refuses it.

The names are those of the packages' roots that take a path; the commands, those of the table, with each of
their words that leads to a file or folder of the inputs.
"""

import re
import shlex
import shutil
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import obygaze_features as of
from obygaze_features.errors import ObygazeError
from tests.cli.conftest import inputs, url  # noqa: F401 - fixtures
from tests.cli.lines import COMMAND_TABLES
from tests.cli.table import read_table, stand_in
from tests.cli.test_commands import COMMANDS
from tests.command import obygaze
from tests.test_paths import CALL_OF_NAME, JUDGED, scored_film, types_of_path_parameters
from tests.test_untrusted import ENDLESS, POSIX, SMALL

pytestmark = POSIX
KINDS = ENDLESS | SMALL
MAX_S = 600
"""A call that takes longer waits for something; so long, as the machine may be busy."""

STORE, MODEL, FILM = (
    "stores/films-1.0.0/data/features.zarr/zarr.json",
    "kept/linear.model",
    "out/film/film.json",
)
FILE_READ_BY = {
    "extract": "clip.csv",
    "import_folder": "videos/clip.mp4",
    "load_codebook": "mine.codebook.toml",
    "merge": STORE,
    "open_store": STORE,
    "pack": STORE,
    "probe": "videos/clip.mp4",
    "pull": "stores/films-1.0.0/tagmanifest-sha256.txt",
    "push": "stores/films-1.0.0/manifest-sha256.txt",
    "read_frames": "videos/clip.mp4",
    "read_manifest": "films.csv",
    "search": STORE,
    "search_like": "stores/films-1.0.0/data/clips.csv",
    "verify": "stores/films-1.0.0/bag-info.txt",
    "write_manifest": "films.csv",
    "Manifest.placed_in": "films.csv",
    "load_model": MODEL,
    "push_model": MODEL,
    "pull_model": "out/zoo/linear-1.0.0.model",
    "verify_models": "out/zoo/zoo.toml",
    "read_sums": "out/lab.sums",
    "save_joint": "out/lab.sums",
    "read_run": "out/run/run.json",
    "Predictions.read": "out/predictions.csv",
    "score_film": MODEL,
    "score_films": "stores/more-1.0.0/data/features.zarr/zarr.json",
    "Timeline.read": FILM,
    "read_films": FILM,
}
"""Public name -> a file that it reads and that a stranger may have made."""
FILE_WRITTEN_BY = {
    "write_sums": "out/lab.sums",
    "write_run": "out/run/run.json",
    "save_models": "out/models/linear.model",
    "Run.save": "out/kept/linear.model",
    "write_report": "out/evaluate.md",
    "write_html": "out/report.html",
    "Predictions.write": "out/predictions.csv",
    "Timeline.write": FILM,
}
"""Public name -> a file that it writes, in whose place something else may be."""
CALL_WITHOUT_CACHE = {
    "search": lambda: of.search("~/stores/films", "a", text_store="~/stores/more"),
    "score_film": scored_film.__wrapped__,
}
"""Public name -> a call that takes no result of an earlier one, and lets its errors out."""
REFUSED_IF_THERE = (
    "clip-1.0.0",
    "clip.staging",
    "merged-1.0.0",
    "packed.zip",
    "pulled-1.0.0",
    "pushed-1.0.0",
    "again.csv",
    "theirs",
)
"""Files and folders in ~/out that calls made, and would not replace."""


@pytest.fixture(scope="module")
def home(prepared):
    """The folder of the examples, after one call of every name, so that each has written its files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(prepared))
        (prepared / "out").mkdir()
        columns = JUDGED.splitlines()[0].removesuffix(",seen_score")
        (prepared / "clip.csv").write_text(f"{columns}\na,film0,videos/clip.mp4,,,,,\n")
        levels = "".join(f'[[levels]]\nname = "{name}"\n' for name in ("calm", "violent"))
        (prepared / "mine.codebook.toml").write_text(f'name = "mine"\nversion = "1"\n{levels}')
        for call in CALL_OF_NAME.values():
            call()
        yield prepared


@contextmanager
def in_place_of(path, make_odd_file):
    """Put something else in the place of a file, and in the end the file back."""
    kept = path.with_name(f"{path.name} kept")
    path.rename(kept)
    try:
        make_odd_file(path, kept.read_bytes())
        yield
    finally:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        kept.replace(path)


@contextmanager
def within_ten_minutes():
    """Raise an error if what is done takes longer."""

    def stop(*_):
        raise AssertionError("it waits")

    handler_before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(MAX_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler_before)


def test_every_public_name_that_takes_a_path_is_tried_with_an_odd_file():
    """By its annotations a name takes a path, such as `read_manifest`.

    FILE_READ_BY has a file that it reads, FILE_WRITTEN_BY one that it writes: another test replaces this file
    by a pipe, a damaged file or the like.
    """
    names_that_take_a_path = types_of_path_parameters().keys()

    assert FILE_READ_BY.keys() | FILE_WRITTEN_BY.keys() == names_that_take_a_path


def remove_outputs_of_earlier_calls(home):
    """A function that writes refuses to write over what is there."""
    for output in REFUSED_IF_THERE:
        node = home / "out" / output
        shutil.rmtree(node) if node.is_dir() else node.unlink(missing_ok=True)


@pytest.mark.long
@pytest.mark.parametrize("name", [*FILE_READ_BY, *FILE_WRITTEN_BY])
@pytest.mark.parametrize("kind", KINDS)
def test_a_public_name_reads_an_odd_file_or_refuses_it_in_one_line(home, name, kind):
    """In the place of a file that a public function reads, or writes, is a pipe, a damaged file or the like.

    `name` is the public function, and `kind` what is put in place of its file, of the kinds in ENDLESS and
    SMALL. One of three things must happen within ten minutes. The function raises an error of ours, of one
    line; or an error of the system that names the file; or it succeeds. It may do the last only if it writes
    there, if the odd file is small, or if the file is a video, of which only the beginning is read.
    """
    file = (FILE_READ_BY | FILE_WRITTEN_BY)[name]
    call_function = (CALL_OF_NAME | CALL_WITHOUT_CACHE)[name]
    make_odd_file = KINDS[kind]
    remove_outputs_of_earlier_calls(home)

    with in_place_of(home / file, make_odd_file), within_ten_minutes():
        try:
            call_function()
        except ObygazeError as error:
            assert "\n" not in str(error)  # noqa: PT017 - it may be read as well
        except OSError as error:
            name_of_file = error.filename
            assert name_of_file
        else:
            function_writes_there = name in FILE_WRITTEN_BY
            odd_file_is_small = kind in SMALL
            file_is_a_video = file.endswith(".mp4")
            assert function_writes_there or odd_file_is_small or file_is_a_video


def name_without_numbers(path):
    return re.sub(r"\d+", "0", path.name)


MAX_MEMBERS = 14
"""Files of a folder that are replaced for one command, which keeps the test short."""


def members(path, row_number):
    """Choose the files of an input to replace, and the kinds of things that are put in the place of each.

    An input that is a file is replaced by every kind. Of a folder, one file of each name is replaced, numbers
    in names aside. Each is replaced by two kinds only, which differ from row to row of the table: commands
    open folders with the same code, so together they meet every kind.
    """
    if path.is_file():
        return [(path, tuple(KINDS))]
    first_of_name = {}
    for node in sorted(path.rglob("*")):
        if node.is_file() and not node.is_symlink() and node.suffix != ".mp4":
            is_chunk = "c" in node.parts  # zarr's folder of the chunks of an array
            first_of_name.setdefault("chunk" if is_chunk else name_without_numbers(node), node)
    all_kinds = tuple(KINDS)
    result = []
    for index, node in enumerate(list(first_of_name.values())[:MAX_MEMBERS]):
        first = 2 * row_number + index
        kinds = tuple(all_kinds[number % len(all_kinds)] for number in (first, first + 1))
        result.append((node, kinds))
    return result


def words_that_read(command):
    """Yield what names an input in a command: its place, as `--option` or a number, and its path."""
    words = shlex.split(command)
    for number, word in enumerate(words):
        if match := re.match(r"(?:\w+=)?(in/[^:]*)", word):
            before = words[number - 1]
            stored = Path(f"{match[1]}-1.0.0")
            yield before if before.startswith("--") else number, stored if stored.exists() else Path(match[1])


NOT_TRIED = {"store rm", "store seal", "codebook template"}
"""Commands that change their inputs, or read none."""


class Trial(NamedTuple):
    """A file that a command reads, and what is put in its place."""

    command: str
    file: Path
    is_named: bool
    """Whether the command names this file itself, not the folder that it is in."""
    kinds: tuple[str, ...]


def command_name(command):
    """Return the longest name of a command that a line begins with; `store rm` has none in the table."""
    for name in sorted(COMMANDS, key=len, reverse=True):
        if command.startswith(name):
            return name
    return "store rm"


def trials_of(group):
    """Yield a trial of each file that the commands of a table read, each argument of a command once."""
    seen = set()
    for row_number, row in enumerate(read_table(COMMAND_TABLES[group])):
        name = command_name(row.command)
        if name in NOT_TRIED:
            continue
        for argument, path in words_that_read(row.command):
            for file, kinds in members(path, row_number):
                is_named = file == path
                key = (name, argument, "" if is_named else name_without_numbers(file))
                if key in seen:
                    continue
                seen.add(key)
                # A network takes seconds to load: only what has no end is tried on it.
                yield Trial(row.command, file, is_named, tuple(ENDLESS) if group == "networks" else kinds)


def fault_of(trial, kind):
    """Run the command with something of this kind in the place of the file; return what went wrong, or "".

    The command may read the file or refuse it in a line. It may not raise or wait, or succeed on a file
    that has no end.
    """
    with in_place_of(trial.file, KINDS[kind]), within_ten_minutes():
        try:
            code = obygaze(*shlex.split(trial.command))
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all are told at the end
            return repr(error)
    return "taken" if kind in ENDLESS and code == 0 and trial.is_named else ""


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:constrained_layout")  # a name may be longer than a figure is wide
@pytest.mark.parametrize("group", COMMAND_TABLES)
@pytest.mark.nightly
def test_a_command_reads_an_odd_file_or_refuses_it(inputs, tmp_path, monkeypatch, group):  # noqa: F811
    """Each command of a group of the table runs with a pipe, a damaged file or the like in place of an input.

    It ends soon and raises nothing; it does not succeed on a file that never ends. `trials_of` lists a trial
    for each file that the commands read, with the kinds of odd files to put in its place; `fault_of` runs it
    with one kind, and says what is wrong, if anything.
    """
    shutil.copytree(inputs, tmp_path / "in", symlinks=True)
    stand_in(tmp_path, monkeypatch)  # the current folder is one with in/ and out/

    faults = []
    for trial in trials_of(group):
        for kind in trial.kinds:
            fault = fault_of(trial, kind)
            if fault:
                faults.append(f"{trial.command}: {trial.file} as {kind}: {fault}")
        # Commands refuse to write where something is, so the next one begins with an empty folder.
        shutil.rmtree("out")
        Path("out").mkdir()

    assert not faults, "\n".join(faults)
