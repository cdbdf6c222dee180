"""Every row of the five papers has a command that is there, or says why it has none."""

import re
from pathlib import Path

import click

from obygaze_studies.obygaze12.paper import TABLES
from tests.cli.walk import all_commands

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"


def test_each_row_of_the_papers_names_a_command_that_exists_or_a_reason():
    commands = {
        path.removeprefix("obygaze ")
        for path, command, _ in all_commands()
        if not isinstance(command, click.Group) or command.invoke_without_command
    }
    rows = [
        line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| 00")
    ]
    assert {paper for row in rows for paper in re.findall(r"\d{3}", row[0])} == {f"00{n}" for n in range(5)}
    for _, row, command, reason in rows:
        assert reason.strip(" |"), row
        name, _, options = command.strip("`").removeprefix("obygaze ").partition(" --only ")
        assert command == "none" or name in commands, row
        assert not options or options in TABLES, row
    named = {name for row in rows for name in re.findall(r"`obygaze ([^`-]+)`", row[3])}
    assert named <= commands
