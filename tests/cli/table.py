"""Read tables of commands, and say what they stand for."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.private import SECRETS

RELEASED = "in/marked.csv in/marked"
EAT = "--images in/sobem --texts in/prompted --text-items in/prompts.csv"
GENDERS = "--captions in/captions.csv --objects in/objects.csv --lm in/lm.csv --sims in/sims.csv"


@dataclass(frozen=True)
class Row:
    """A command, and what it must do.

    Attributes
    ----------
    codes
        Exit codes that it may end with.
    files
        What must be there afterwards; with a hyphen before it, what must not.
    words
        What it must print.
    is_repeated
        Whether a second run is refused, and with --force makes the same bytes again.
    """

    command: str
    codes: frozenset[int]
    files: tuple[str, ...]
    words: tuple[str, ...]
    is_repeated: bool


def read_table(table: str) -> Iterator[Row]:
    """Read a table of commands, each in a line, with what it must do in an indented line below it.

    The indented line is `CODES FILE ... | WORDS | WORDS`; without one, the command ends with the code 0. A
    command behind "=" is run a second time.
    """
    lines = table.splitlines()
    next_lines = [*lines[1:], ""]
    for line, next_line in zip(lines, next_lines, strict=True):
        is_command = line != "" and not line.startswith(" ")
        if is_command:
            has_expectation = next_line.startswith(" ")
            yield _read_row(line, next_line.strip() if has_expectation else "0")


def _read_row(command: str, expectation: str) -> Row:
    codes_and_files, *words = re.split(r" *\| ", expectation)
    codes, *files = codes_and_files.split()
    numbers = frozenset(int(code) for code in re.findall(r"\d+", codes))
    is_repeated = command.startswith("=")
    return Row(command.removeprefix("="), numbers, tuple(files), tuple(words), is_repeated)


def stand_in(workdir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder the current one, with a folder `out` in it; put marked secrets into the environment."""
    (workdir / "out").mkdir(exist_ok=True)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "500")  # wide enough that no path is broken into two lines
    monkeypatch.chdir(workdir)
    return workdir
