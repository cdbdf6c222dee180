"""The commands of "Your first hour" print what the page says."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "first-hour.md"
BLOCK = r"^```console\n\$ obygaze ((?:.*\\\n)*.*)\n((?s:.*?))^```$"
BLOCKS = re.findall(BLOCK, PAGE.read_text(encoding="utf-8"), re.MULTILINE)
"""What a page shows of a terminal: the arguments of each command, and its output."""
DECIMAL = r"[+-]?\d+\.\d+"
PROGRESS_LINE = r"^\w+: [\d,]+ of [\d,]+ \w+ in \d+ min.*\n"
"""A line that a log gets every minute, so that slow machines print some."""
EXIT_CODES = {"extract": 3}
"""Command -> its code, if it isn't 0: the demo has two clips that fail."""


def agree(printed, page_output):
    """Compare a command's output with a page's: '...' stands for anything, figures may differ by rounding."""
    pattern = re.escape(re.sub(DECIMAL, "FIGURE", page_output)).replace(re.escape("..."), "(?s:.*)")
    found = re.fullmatch(pattern.replace("FIGURE", f"({DECIMAL})"), printed)
    if found is None:
        return False
    figures = [float(figure) for figure in re.findall(DECIMAL, page_output)]
    return [float(figure) for figure in found.groups()] == pytest.approx(figures, abs=0.02)


@pytest.mark.parametrize(
    ("printed", "same"),
    [("AUC 0.93, 6 films", True), ("AUC 0.97, 6 films", False), ("AUC 0.93, 5 films", False)],
)
def test_figures_of_a_page_may_differ_by_rounding_and_counts_may_not(printed, same):
    assert agree(printed, "AUC 0.94, 6 ...") == same


def test_the_readme_shows_rows_of_the_table_in_first_hour():
    (table,) = [output for arguments, output in BLOCKS if arguments.startswith("evaluate")]
    readme = PAGE.parents[1].joinpath("README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^    ((?:linear|pcbm_\w+|\(chance\)) .*?)(?: +#.*)?$", readme, re.MULTILINE)
    assert len(rows) == 4
    assert all(row in table for row in rows)


@pytest.mark.long
def test_the_commands_of_first_hour_print_what_the_page_shows(tmp_path, request):
    (tmp_path / "obygaze-demo").symlink_to(request.getfixturevalue("demo_folder"))
    assert len(BLOCKS) == 10
    for command, page_output in BLOCKS:
        arguments = shlex.split(command.replace("\\\n", ""))
        finished = subprocess.run(
            [sys.executable, "-m", "obygaze", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        expected_code = 0 if "--dry-run" in arguments else EXIT_CODES.get(arguments[0], 0)
        assert finished.returncode == expected_code, finished.stdout
        printed = re.sub(PROGRESS_LINE, "", finished.stdout, flags=re.MULTILINE)
        assert agree(printed, page_output), finished.stdout
    assert (tmp_path / "seventh" / "report.html").is_file()
