"""In a terminal of 80 columns no line of a command is wider, and every line of help fits."""

import re

import click
import pytest

from tests.cli.walk import all_commands
from tests.terminal import COLUMNS, in_terminal

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
ROWS = [*COMMANDS, *(pytest.param(command, marks=pytest.mark.nightly) for command in COSTLY_COMMANDS)]


@pytest.mark.parametrize("command", ROWS, ids=lambda command: " ".join(command.split()[:2]))
def test_no_line_is_wider_than_the_terminal(demo_folder, command):
    code, output = in_terminal(command.split(), demo_folder.parent)
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", output))

    some_clips_failed = 3
    assert code == (some_clips_failed if command.startswith("extract") else 0), output
    assert len(lines) > 1
    # A path of the machine that is longer than a line is one word, and stays whole.
    assert [line for line in lines if len(line) > COLUMNS and " " in line.strip()] == []


def test_every_line_of_help_fits():
    for path, command, _ in all_commands():
        context = click.Context(command, info_name=path, terminal_width=COLUMNS)
        wide = [line for line in command.get_help(context).splitlines() if len(line) > COLUMNS]
        assert not wide, path
