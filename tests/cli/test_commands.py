"""Every command as a user meets it: arguments, exit code, files made, words of its output (`lines.py`).

No file that a command makes, and nothing it prints, holds a path that nobody typed, or a secret.
"""

import json

import click
import pytest

from obygaze.cli import main
from tests.cli.lines import LINES
from tests.cli.table import rows
from tests.cli.walk import all_commands
from tests.private import WORDS, files_below, marked

SLOW = {"networks", "papers", "zoo"}
PRINTING = ("film export", "film next", "film report")
"""Commands that print the path of what they wrote, or how much it is."""


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in files_below(folder)}


@pytest.fixture
def networks_at_hand(place, request, monkeypatch):
    """Tiny networks in a cache of the hub, which is the only one."""
    from huggingface_hub import constants

    from tests.cli import shelf

    request.getfixturevalue("grad_cam")
    shelf.write_networks(place / "in")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(place / "in" / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.long] * (n in SLOW)) for n in LINES])
def test_commands_do_what_the_table_says(name, place, run, request):
    if name == "networks":
        request.getfixturevalue("networks_at_hand")
    for row in rows(LINES[name]):
        code, out, err = run(row.command, place)
        check_row(row, code, out, err, place)
        if row.forced:
            out = replaced(row, code, run, place)
        gives_json = (row.forced or "--json" in row.command) and not row.command.startswith(PRINTING)
        if code != 1 and gives_json:
            assert json.loads(out) is not None, row.command
    assert not marked(files_below(place / "out", place / "runs", place / "in/ran"))


def check_row(row, code, out, err, place):
    """Check the exit code, the words that are printed and the files that are there, or are not."""
    assert code in row.codes, (row.command, code, out, err)
    for words in row.words:
        assert words in out + err, (row.command, words, out, err)
    for file in row.files:
        is_absent = file.startswith("-")
        assert (place / file.removeprefix("-")).exists() != is_absent, (row.command, file)


def replaced(row, code, run, place):
    """Check that a command replaces what it made with --force alone, by the same bytes; return its output."""
    made = contents(place / "out")
    assert run(row.command, place)[:2] == (1, ""), row.command
    assert contents(place / "out") == made, row.command
    json_option = "" if "--json" in row.command or row.command.startswith(PRINTING) else " --json"
    forced_code, out, _ = run(f"{row.command} --force{json_option}", place)
    assert forced_code == code, row.command
    assert contents(place / "out") == made, row.command
    return out


COMMANDS = {
    path.removeprefix("obygaze "): command
    for path, command, context in all_commands()
    if context.parent and (not isinstance(command, click.Group) or command.invoke_without_command)
}
URL = "https://mark5user:mark6password@127.0.0.1:9/films-1.0.0?token=mark2secret"


def test_every_command_prints_its_result_as_json_too():
    """But for those that print other commands as they run them, or an address or a path alone."""
    without_json = {
        name
        for name, command in COMMANDS.items()
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without_json == {"demo", "film open", "film run", *PRINTING}


def test_every_command_is_typed_in_the_table():
    typed = [f"{row.command} " for lines in LINES.values() for row in rows(lines)]
    untyped = [name for name in COMMANDS if not any(line.startswith(f"{name} ") for line in typed)]
    assert not untyped, "give each a row of tests/cli/lines.py"


@pytest.mark.parametrize("name", COMMANDS)
def words_with_url(command):
    """Type a URL with a password in all required places of a command, else in --out or as an argument."""
    words = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and (parameter.required or parameter.nargs == 1):
            words.append(URL)
        elif parameter.required and not isinstance(parameter.type, click.Choice):
            words += [parameter.opts[0], URL]
        elif parameter.required:
            words += [parameter.opts[0], parameter.type.choices[0]]
    if words:
        return words
    return ["--out", URL] if any("--out" in option.opts for option in command.params) else [URL]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_prints_or_writes_the_password_of_a_url(name, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main([*name.split(), *words_with_url(COMMANDS[name])])
    assert not [word for word in WORDS if word in "".join(capfd.readouterr())]
    assert not [path for path in files_below(tmp_path) if any(w.encode() in path.read_bytes() for w in WORDS)]
