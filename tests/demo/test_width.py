"""In a terminal of 80 columns no line of a command is wider, and every line of help fits."""

import re

import click
import pytest

from tests.cli.walk import all_commands
from tests.terminal import in_terminal

pytestmark = pytest.mark.long  # what commands print of the demo, in a terminal

COMMANDS = [
    "manifest import spans demo/labels.csv --videos demo/films --out mine.csv --force",
    "manifest inspect demo/manifest.csv",
    "store inspect demo/store",
    "predict demo/run/pcbm_lr.model demo/store",
    "explain demo/run/pcbm_lr.model demo/store --clip tt9000007-003",
]
COSTLY_COMMANDS = [
    "extract demo/manifest.csv demo/store --corpus obygaze-demo --licence CC0-1.0",
    "store ls demo",
    "store verify demo/store --full",
    "evaluate demo/manifest.csv demo/store --task hn_s --test enhn_s --model linear --out run --force",
]
"""Those that take seconds, or print a table or a line like those above."""
ALL_COMMANDS = [*COMMANDS, *(pytest.param(command, marks=pytest.mark.nightly) for command in COSTLY_COMMANDS)]


@pytest.mark.parametrize("command", ALL_COMMANDS, ids=lambda command: " ".join(command.split()[:2]))
def test_no_line_of_a_command_is_wider_than_a_terminal_of_80_columns(demo_folder, command):
    """The command runs in a terminal, on the files of a demo, whose extraction ends with 3: two clips fail.

    A path of the machine that is longer than a line is one word, and stays whole.
    """
    code, output = in_terminal(command.split(), demo_folder.parent)

    some_clips_failed = 3
    assert code == (some_clips_failed if command.startswith("extract") else 0), output
    escape_codes = r"\x1b\[[0-9;]*[A-Za-z]"
    lines = re.split(r"[\r\n]+", re.sub(escape_codes, "", output))
    assert len(lines) > 1
    for line in lines:
        is_one_word = " " not in line.strip()
        assert len(line) <= 80 or is_one_word


def test_no_line_of_a_help_text_is_wider_than_80_columns():
    """The help of each command is made for a terminal of 80 columns."""
    for path, command, _ in all_commands():
        context = click.Context(command, info_name=path, terminal_width=80)
        for line in command.get_help(context).splitlines():
            assert len(line) <= 80, path
