"""Every row of the five papers has a command that is there, or says why it has none."""

import re
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from obygaze_studies.obygaze12.paper import TABLES
from tests.cli.walk import all_commands

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"


class Row(NamedTuple):
    """A row of the page: the papers, what of them, the command that makes it or none, and why."""

    papers: str
    what: str
    command: str
    reason: str


ROWS = [
    Row(*line.removeprefix("| ").removesuffix(" |").split(" | "))
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| 00")
]
WITH_COMMAND = [row for row in ROWS if row.command != "none"]


@pytest.fixture(scope="module")
def commands():
    """The commands that do something by themselves, without the name of the program."""
    return {
        path.removeprefix("obygaze ")
        for path, command, _ in all_commands()
        if not isinstance(command, click.Group) or command.invoke_without_command
    }


def test_each_of_the_five_papers_has_rows():
    """A row of docs/papers.md begins with the numbers of its papers, such as 001."""
    papers = set()
    for row in ROWS:
        papers.update(re.findall(r"\d{3}", row.papers))

    assert papers == {"000", "001", "002", "003", "004"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.papers}: {row.what}")
def test_a_row_says_why_it_is_as_it_is(row):
    """The last cell of a row of docs/papers.md is a reason, such as why there is no command."""
    assert row.reason.strip() != ""


@pytest.mark.parametrize("row", WITH_COMMAND, ids=lambda row: f"{row.papers}: {row.what}")
def test_a_row_names_a_command_that_exists_and_a_table_that_it_makes(row, commands):
    """A row of docs/papers.md has a command such as `obygaze paper all`, perhaps with `--only table2`.

    `commands` are the names of all commands, without that of the program.
    """
    words = row.command.strip("`").removeprefix("obygaze ")
    name, _, table = words.partition(" --only ")

    assert name in commands
    if table:
        assert table in TABLES


def test_commands_that_reasons_name_exist(commands):
    """Reasons in docs/papers.md name commands between backticks, as `obygaze NAME`, without options.

    `commands` are the names of all commands, without that of the program.
    """
    named = set()
    for row in ROWS:
        named.update(re.findall(r"`obygaze ([^`-]+)`", row.reason))

    assert named - commands == set()
