"""Run a group of the table of commands in the current folder, in one process; say which end otherwise.

Given the group, and the address of the inputs on a server.
"""

import re
import shlex
import sys

import click

from obygaze.cli import main
from tests.cli.lines import COMMAND_TABLES
from tests.cli.table import read_table

wrong = []
for row in read_table(COMMAND_TABLES[sys.argv[1]]):
    click.echo(f"$ {row.command}")
    words = [re.sub("^url/", f"{sys.argv[2]}/", word) for word in shlex.split(row.command)]
    try:
        main(words)
        code = 0
    except SystemExit as end:
        code = end.code or 0
    if code not in row.codes:
        wrong.append(f"{row.command}: exit code {code}")
sys.exit("\n".join(wrong) or 0)
