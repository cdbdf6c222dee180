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


def read_table(lines: str) -> Iterator[Row]:
    """Read a table: a line is a command; an indented one below it is `CODES FILE ... | WORDS | WORDS`."""
    for command, expected in re.findall(r"^(\S.*)\n(?: +(.*)\n)?", lines, re.MULTILINE):
        codes_and_files, *words = re.split(r" *\| ", expected or "0")
        codes, *files = codes_and_files.split()
        numbers = frozenset(map(int, re.findall(r"\d+", codes)))
        yield Row(command.removeprefix("="), numbers, tuple(files), tuple(words), command.startswith("="))


def stand_in(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder, with marked secrets in the environment."""
    (place / "out").mkdir(exist_ok=True)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "500")  # no path is broken
    monkeypatch.chdir(place)
    return place
