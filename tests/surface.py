"""Count the surface of the project: `python -m tests.surface` prints the table that tests/surface.toml holds.

The sums go to stderr, so that `python -m tests.surface > tests/surface.toml` writes the table anew; behind a
number of commands stands what they are for.

Commands are leaf commands; options are theirs, hidden ones too, without `--help`; names are what the packages
offer in `__all__`. A number rises by what somebody asked for: say in the commit who did.
"""

import importlib
import sys
import tomllib
from collections import Counter
from pathlib import Path

import click

from obygaze.contents import COMMANDS
from tests.cli.walk import all_commands

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tests" / "surface.toml"
PACKAGES = ("obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies")

Surface = dict[str, dict[str, int]]


def count() -> Surface:
    """Count commands, options and what is hidden by a command's first word, and public names by package."""
    commands, options, hidden = Counter[str](), Counter[str](), Counter[str]()
    for path, command, _ in all_commands():
        if isinstance(command, click.Group):
            continue
        word = [*path.split(), "obygaze"][1]
        own = [each for each in command.params if isinstance(each, click.Option) and each.opts != ["--help"]]
        commands[word] += 1
        options[word] += len(own)
        hidden[word] += command.hidden + sum(each.hidden for each in own)
    names = {}
    for stub in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("__init__.pyi")):
        package = ".".join(stub.parent.relative_to(ROOT).parts)
        names[package] = len(importlib.import_module(package).__all__)
    return {
        "commands": +commands,
        "options": +options,
        "hidden": +hidden,
        "names": {package: n for package, n in names.items() if n},
    }


def written() -> Surface:
    """Read the table."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def show(surface: Surface) -> str:
    """Write the table; it holds no sums, on which any two changes would meet."""
    parts = []
    for title, numbers in surface.items():
        lines = [f"[{title}]"]
        for name, n in sorted(numbers.items()):
            line = f'"{name}" = {n}' if "." in name else f"{name} = {n}"
            lines.append(f"{line}  # {COMMANDS[name].summary}" if title == "commands" else line)
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    found = count()
    sys.stdout.write(show(found))
    sums = ", ".join(f"{sum(numbers.values())} {title}" for title, numbers in found.items())
    sys.stderr.write(f"{sums}\n")
