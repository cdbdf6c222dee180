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
DECIMAL = r"[+-]?\d+\.\d+"
PROGRESS = r"^\w+: [\d,]+ of [\d,]+ \w+ in \d+ min.*\n"
"""A line that a log gets every minute, so that slow machines print some."""
EXITS = {"extract": 3}
"""Two clips were planted to fail."""


def agree(printed, said):
    """Compare a command's output with a page's: '...' stands for anything, figures may differ by rounding."""
    pattern = re.escape(re.sub(DECIMAL, "FIGURE", said)).replace(re.escape("..."), "(?s:.*)")
    found = re.fullmatch(pattern.replace("FIGURE", f"({DECIMAL})"), printed)
    if found is None:
        return False
    figures = [float(figure) for figure in re.findall(DECIMAL, said)]
    return [float(figure) for figure in found.groups()] == pytest.approx(figures, abs=0.02)


@pytest.mark.parametrize(
    ("printed", "same"),
    [("AUC 0.93, 6 films", True), ("AUC 0.97, 6 films", False), ("AUC 0.93, 5 films", False)],
)
def test_figures_of_a_page_may_differ_by_rounding_and_counts_may_not(printed, same):
    assert agree(printed, "AUC 0.94, 6 ...") == same


def test_the_readme_shows_what_the_page_does():
    readme = PAGE.parents[1].joinpath("README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^    ((?:linear|pcbm_\w+|\(chance\)) .*?)(?: +#.*)?$", readme, re.MULTILINE)
    assert len(rows) == 4
    assert all(row in BLOCKS[5][1] for row in rows)


@pytest.mark.long
def test_the_first_hour_is_as_its_page_says(tmp_path, request):
    """Only here is the way of a newcomer gone from films to a page, with all that is printed on it."""
    (tmp_path / "obygaze-demo").symlink_to(request.getfixturevalue("demo_folder"))
    assert len(BLOCKS) == 10
    for words, said in BLOCKS:
        arguments = shlex.split(words.replace("\\\n", ""))
        done = subprocess.run(
            [sys.executable, "-m", "obygaze", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == (0 if "--dry-run" in arguments else EXITS.get(arguments[0], 0)), done.stdout
        printed = re.sub(PROGRESS, "", done.stdout, flags=re.MULTILINE)
        assert agree(printed, said), done.stdout
    assert (tmp_path / "seventh" / "report.html").is_file()
