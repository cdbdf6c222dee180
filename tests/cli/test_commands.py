"""Every command as a user meets it: arguments, exit code, files made, words of its output, by its rows.

No file that a command makes, and nothing it prints, holds a path that nobody typed, or a secret.
"""

import json

import click
import pytest

from obygaze.cli import main
from tests.cli.lines import COMMAND_TABLES
from tests.cli.table import read_table
from tests.cli.walk import all_commands
from tests.private import SECRET_VALUES, files_below, marks_in

COMMANDS = {
    path.removeprefix("obygaze "): command
    for path, command, context in all_commands()
    if context.parent and (not isinstance(command, click.Group) or command.invoke_without_command)
}
QUICK_GROUPS = {"stores"}
"""The groups that `make test` runs: each of the others takes seconds."""
GROUPS_AT_NIGHT = {"networks", "papers", "released"}
"""Groups that run networks, draw all figures, or read whole corpora."""
PRINT_ONE_VALUE = ("film export", "film next", "film report")
"""Commands that print the path of what they wrote, or how much it is, and so take no --json."""


def bytes_below(folder):
    return {path.relative_to(folder): path.read_bytes() for path in files_below(folder)}


@pytest.fixture
def networks_at_hand(workdir, request, monkeypatch):
    """Tiny networks in files and in a cache of the hub, which then asks no server and has no other cache.

    The test is skipped where grad-cam, by which the commands make maps, is not installed.
    """
    from huggingface_hub import constants

    from tests.cli import inputs as input_files

    request.getfixturevalue("grad_cam")
    input_files.write_networks(workdir / "in")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(workdir / "in" / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def with_marks(group):
    marks = []
    if group not in QUICK_GROUPS:
        marks.append(pytest.mark.long)
    if group in GROUPS_AT_NIGHT:
        marks.append(pytest.mark.nightly)
    return pytest.param(group, marks=marks)


@pytest.mark.parametrize("group", [with_marks(group) for group in COMMAND_TABLES])
def test_commands_do_what_their_rows_of_the_table_say(group, workdir, run, request):
    """Commands of a group run in turn in the folder `workdir`, where one may need what another made.

    A row of the table has a command and the exit codes, files and words that it must give. Some rows say
    that the command is repeated: it is then refused, and with --force makes the same bytes.
    """
    if group == "networks":
        request.getfixturevalue("networks_at_hand")
    for row in read_table(COMMAND_TABLES[group]):
        ended = run(row.command, workdir)
        check_result(row, workdir, ended)
        out = ended.out
        if row.is_repeated:
            out = check_that_it_can_be_repeated(row, workdir, ended.exit_code, run)
        has_failed = ended.exit_code == 1
        if prints_json(row) and not has_failed:
            assert json.loads(out) is not None, row.command

    # The name of the folder and the secrets of the environment are marked: they must be in no file.
    files_of_commands = files_below(workdir / "out", workdir / "runs", workdir / "in/ran")
    secrets_and_paths_in_files = marks_in(files_of_commands)
    assert not secrets_and_paths_in_files


def check_result(row, workdir, ended):
    """Check the exit code, the words that are printed and the files that are there, or are not."""
    assert ended.exit_code in row.codes, (row.command, ended)
    for words in row.words:
        assert words in ended.out + ended.err, (row.command, words, ended)
    for file in row.files:
        is_absent = file.startswith("-")
        assert (workdir / file.removeprefix("-")).exists() != is_absent, (row.command, file)


def check_that_it_can_be_repeated(row, workdir, code, run):
    """Check that a second run is refused and one with --force makes the same bytes.

    The run with --force is asked for JSON where the command can print it; returns its output.
    """
    bytes_of_first_run = bytes_below(workdir / "out")
    ended = run(row.command, workdir)
    assert (ended.exit_code, ended.out) == (1, ""), row.command
    assert bytes_below(workdir / "out") == bytes_of_first_run, row.command

    command = f"{row.command} --force"
    if can_print_json(row) and "--json" not in row.command:
        command += " --json"
    ended_with_force = run(command, workdir)
    assert ended_with_force.exit_code == code, row.command
    assert bytes_below(workdir / "out") == bytes_of_first_run, row.command
    return ended_with_force.out


def can_print_json(row):
    return not row.command.startswith(PRINT_ONE_VALUE)


def prints_json(row):
    """Whether the last run of a row's command printed JSON: it was asked to, or was repeated with --json."""
    return can_print_json(row) and (row.is_repeated or "--json" in row.command)


URL_WITH_SECRETS = "https://mark5user:mark6password@127.0.0.1:9/films-1.0.0?token=mark2secret"


def test_every_command_has_the_option_json_but_for_six():
    """Three print the path or the number of what they wrote; three print while they run other commands."""
    without_json = set()
    for name, command in COMMANDS.items():
        options = [option for parameter in command.params for option in parameter.opts]
        if "--json" not in options:
            without_json.add(name)

    print_one_value = {"film export", "film next", "film report"}
    print_as_they_go = {"demo", "film open", "film run"}
    assert without_json == print_one_value | print_as_they_go


def test_every_command_has_a_row_in_the_table():
    """A row is a line that begins with the command, such as "store ls in", and what it must do."""
    lines_of_table = [row.command for table in COMMAND_TABLES.values() for row in read_table(table)]

    without_row = []
    for name in COMMANDS:
        has_row = any(line == name or line.startswith(f"{name} ") for line in lines_of_table)
        if not has_row:
            without_row.append(name)

    assert not without_row, "give each a row, in a new file of tests/cli/rows or in tests/cli/lines.py"


def arguments_with_url(command):
    """Return arguments for a command with the URL wherever they may be any text.

    The URL is given for all arguments and options that the command needs. Where it needs none, it is given
    for --out, or as an argument if there is no such option.
    """
    words = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            if parameter.required or parameter.nargs == 1:
                words.append(URL_WITH_SECRETS)
        elif parameter.required:
            takes_any_text = not isinstance(parameter.type, click.Choice)
            value = URL_WITH_SECRETS if takes_any_text else parameter.type.choices[0]
            words += [parameter.opts[0], value]
    if words:
        return words
    has_out = any("--out" in parameter.opts for parameter in command.params)
    return ["--out", URL_WITH_SECRETS] if has_out else [URL_WITH_SECRETS]


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_prints_or_writes_the_password_of_a_url(name, tmp_path, monkeypatch, capfd):
    """Each argument that may be any text is a URL with a user, a password and a token.

    Whether the command succeeds or fails, these must be in no output and no file.
    """
    monkeypatch.chdir(tmp_path)
    words = [*name.split(), *arguments_with_url(COMMANDS[name])]

    with pytest.raises(SystemExit):  # of any exit code
        main(words)

    printed = "".join(capfd.readouterr())
    secrets_printed = [secret for secret in SECRET_VALUES if secret in printed]
    secrets_in_files = marks_in(files_below(tmp_path))
    assert not secrets_printed
    assert not secrets_in_files
