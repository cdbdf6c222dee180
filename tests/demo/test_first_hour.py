"""The commands of "Your first hour" print what the page says."""

import json
import os
import re
import shlex
import shutil
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
EXTRACT = "extract clips.csv stores/films --licence CC0-1.0"
DONE_BY_DEMO = ("evaluate", "film run")
"""Beginnings of other commands that take many seconds."""


def is_shown_by_page(printed, page_output):
    """Compare a command's output with a page's: '...' stands for anything, figures may differ by .02."""
    pattern = re.escape(re.sub(DECIMAL, "FIGURE", page_output)).replace(re.escape("..."), "(?s:.*)")
    match = re.fullmatch(pattern.replace("FIGURE", f"({DECIMAL})"), printed)
    if match is None:
        return False
    figures = [float(figure) for figure in re.findall(DECIMAL, page_output)]
    return [float(figure) for figure in match.groups()] == pytest.approx(figures, abs=0.02)


@pytest.mark.parametrize(
    ("printed", "is_shown"),
    [("AUC 0.93, 6 films", True), ("AUC 0.97, 6 films", False), ("AUC 0.93, 5 films", False)],
    ids=["a figure differs by .01", "a figure differs by .03", "a count differs"],
)
def test_figures_of_a_page_may_differ_by_rounding_and_counts_may_not(printed, is_shown):
    """What a page shows of a terminal is compared with what a command prints: "..." stands for anything."""
    shown_by_page = "AUC 0.94, 6 ..."

    assert is_shown_by_page(printed, shown_by_page) == is_shown


RUN_COMMANDS = """
import json, sys
from obygaze.cli import main
for words in json.load(sys.stdin):
    try:
        main(words)
    except SystemExit as ended:
        print(f"\\x1e{ended.code or 0}\\x1e", end="")
"""
"""Runs commands in turn, which spares the seconds in which each process starts.

Behind the output of each stands its exit code, between two record separators.
"""


def run_commands(folder, commands):
    """Run commands in a folder, and give the exit code and the output of each."""
    finished = subprocess.run(
        [sys.executable, "-c", RUN_COMMANDS],
        input=json.dumps([shlex.split(command.replace("\\\n", "")) for command in commands]),
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    assert finished.returncode == 0, finished.stdout
    *parts, _ = finished.stdout.split("\x1e")
    return [(int(code), output) for output, code in zip(parts[::2], parts[1::2], strict=True)]


def check_that_pages_show_what_is_printed(folder, blocks):
    """Run the commands of blocks of the page in a folder, and compare what they print."""
    results = run_commands(folder, [command for command, _ in blocks])
    for (command, page_output), (code, output) in zip(blocks, results, strict=True):
        assert code == (3 if command == EXTRACT else 0), output  # 3: the demo has two clips that fail
        printed = re.sub(PROGRESS_LINE, "", output, flags=re.MULTILINE)
        assert is_shown_by_page(printed, page_output), output


@pytest.mark.long
def lay_results_of_demo(demo_folder, folder):
    """Lay the demo's store, run and scored film where the long commands of the page would write theirs."""
    (folder / "stores").mkdir(exist_ok=True)
    (folder / "stores" / "films-1.0.0").symlink_to(demo_folder / "store-1.0.0")
    (folder / "run").symlink_to(demo_folder / "run")
    shutil.copytree(demo_folder / "film", folder / "seventh")


@pytest.mark.long
def test_the_short_commands_of_first_hour_print_what_the_page_shows(tmp_path, demo_folder):
    """docs/first-hour.md shows ten commands, each with its output. Three of them take long.

    These extract features, train models ("evaluate") and score a film ("film run"). The demo, which has run
    before, has done the same, so its results are laid in their place. The other commands are run here: three
    before the extraction, and four after it.
    """
    commands_of_page = [command for command, _output in BLOCKS]
    place_of_extraction = commands_of_page.index(EXTRACT)
    blocks_before_extraction = BLOCKS[:place_of_extraction]
    blocks_after_extraction = []
    for command, output in BLOCKS[place_of_extraction + 1 :]:
        if not command.startswith(DONE_BY_DEMO):
            blocks_after_extraction.append((command, output))
    assert len(blocks_before_extraction) == 3
    assert len(blocks_after_extraction) == 4

    (tmp_path / "obygaze-demo").symlink_to(demo_folder)
    check_that_pages_show_what_is_printed(tmp_path, blocks_before_extraction)

    lay_results_of_demo(demo_folder, tmp_path)
    check_that_pages_show_what_is_printed(tmp_path, blocks_after_extraction)


@pytest.mark.long
@pytest.mark.nightly
def test_all_commands_of_first_hour_print_what_the_page_shows(tmp_path, demo_folder):
    """The page "Your first hour" has ten blocks of a terminal: a command and its output. All are run in turn.

    The folder of a demo is there, as the page's reader has run it. The last command writes a report.
    """
    (tmp_path / "obygaze-demo").symlink_to(demo_folder)

    assert len(BLOCKS) == 10
    check_that_pages_show_what_is_printed(tmp_path, BLOCKS)
    assert (tmp_path / "seventh" / "report.html").is_file()
