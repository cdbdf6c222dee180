"""In a terminal of 80 columns no line of a command is wider, and every line of help fits."""

import re
import sys

import click
import pytest
from click.testing import CliRunner

from obygaze.cli import table_of_contents
from obygaze.safe_output import Shown
from obygaze_features.screen import table
from tests.terminal import COLUMNS, in_terminal

pytestmark = pytest.mark.long  # what commands print of the demo, in a terminal

COMMANDS = (
    "--help",
    "manifest import folder demo/films --spans demo/labels.csv --out mine.csv --force",
    "manifest inspect mine.csv",
    "extract demo/manifest.csv demo/store --corpus obygaze-demo --licence CC0-1.0",
    "store ls demo",
    "store inspect demo/store",
    "store verify demo/store --full",
    "evaluate demo/manifest.csv demo/store --task hn_s --test enhn_s --model linear --out run --force",
    "predict demo/run/pcbm_lr.model demo/store",
    "explain demo/run/pcbm_lr.model demo/store --clip tt9000007-003",
)
"""What README.md shows, on the demo's films."""

TABLES = (
    "codebook show",
    "codebook show obygaze12",
    "manifest stats demo/manifest.csv",
    "folds demo/manifest.csv --task hn_s",
    "frames demo/films/tt9000001/tt9000001-001.mp4 --n 4",
    "store inspect demo/store",
    "model inspect demo/run/pcbm_lr.model",
    "predict demo/run/pcbm_lr.model demo/store",
    "explain demo/run/pcbm_lr.model demo/store --clip tt9000007-003 --set Body=0.9",
    "compare demo/run demo/run --model linear --against mlp",
    "extract demo/manifest.csv demo/again --dry-run",
)
"""What prints tables. Prose is wrapped where it is printed, and would tear a table's rows."""


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.split()[:2]))
def test_no_line_is_wider_than_the_terminal(demo_folder, command):
    code, output = in_terminal(command.split(), demo_folder.parent)
    assert code == (3 if command.startswith("extract") else 0), output
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", output))
    assert len(lines) > 1
    # A path of the machine that is longer than a line is one word, and stays whole.
    assert [line for line in lines if len(line) > COLUMNS and " " in line.strip()] == []


@pytest.mark.parametrize("command", TABLES, ids=lambda command: " ".join(command.split()[:2]))
def test_no_row_of_a_table_is_torn(demo_folder, monkeypatch, command):
    monkeypatch.chdir(demo_folder.parent)
    finished = CliRunner().invoke(table_of_contents(), command.split(), prog_name="obygaze")
    assert finished.exit_code == 0, finished.output
    lines = finished.stdout.splitlines()
    rules = [index for index, line in enumerate(lines) if re.fullmatch(r"-+( +-+)*", line)]
    for rule in rules:
        end = next((index for index in range(rule, len(lines)) if not lines[index]), len(lines))
        assert max(map(len, lines[rule - 1 : end])) <= COLUMNS
    if not rules:
        assert max(map(len, lines)) <= COLUMNS


def helps(command, context):
    yield context.command_path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            sub = command.get_command(context, name)
            yield from helps(sub, click.Context(sub, info_name=name, parent=context))


def test_every_line_of_help_fits():
    root = table_of_contents()
    for path, command in helps(root, click.Context(root, info_name="obygaze")):
        context = click.Context(command, info_name=path, terminal_width=COLUMNS)
        wide = [line for line in command.get_help(context).splitlines() if len(line) > COLUMNS]
        assert not wide, path


def test_a_table_wraps_its_longest_cells_and_loses_nothing():
    rows = [("tt0108160-003", "films/" + "x" * 90, "Body;Look"), ("b", "c d " * 20, "")]
    laid_out = table(rows, ("clip_id", "video", "concepts"), 60)
    assert max(map(len, laid_out.splitlines())) <= 60
    assert laid_out.replace("\n", "").replace(" ", "").count("x") == 90
    assert "tt0108160-003" in laid_out


def test_prose_breaks_at_blanks_and_never_within_a_word(capsys):
    stream = Shown(sys.stdout, 20)
    stream.write("  one two three four five six\n" + "x" * 30 + "\n")
    stream.write("one two three four five six\n")
    out = capsys.readouterr().out
    assert "x" * 30 in out
    assert out.endswith("one two three four\n  five six\n")
