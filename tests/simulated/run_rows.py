"""Run a group of the table of commands in the current folder, in one process; say which end otherwise."""

import re
import sys

from obygaze.cli import main
from tests.cli.table import rows
from tests.cli.test_commands import LINES

wrong = []
for row in rows(LINES[sys.argv[1]]):
    words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', row.command)]
    try:
        main(words)
        code = 0
    except SystemExit as end:
        code = end.code or 0
    if code not in row.codes:
        wrong.append(f"{row.command}: exit code {code}")
sys.exit("\n".join(wrong) or 0)
