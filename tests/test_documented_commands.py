"""Every `obygaze` line of a page, and every example of a help text, is a command as it is."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from obygaze.cli import root_command
from tests.cli.walk import all_commands

ROOT = Path(__file__).parents[1]
FOLDERS = ("docs", "manifests", "stores", "benchmarks", "tests")
PAGES = sorted([*ROOT.glob("*.md"), *(page for name in FOLDERS for page in (ROOT / name).rglob("*.md"))])

INLINE = re.compile(r"`(obygaze [^`]+)`")
COMMAND = re.compile(r"(?:^|\s)(obygaze [a-z].*)")
ASIDE = re.compile(r"\s{3,}\S.*|[|;&)].*| > .*")
"""What may stand behind a command: a remark set off by blanks, or the rest of a shell line."""

ROOT_COMMAND = root_command()
UNSET = getattr(click.core, "UNSET", None)  # what newer versions of click have in place of None


def commands_of(text: str) -> Iterator[tuple[str, bool]]:
    """Find the commands in a page, or a help text; and whether each stands there whole, as if to be typed."""
    for paragraph in re.findall(r"(?:[^\n]+\n?)+", text):
        for match in INLINE.finditer(paragraph.replace("\n", " ")):
            yield match[1], False
    fenced = False
    for line in re.sub(r"\s*\\\n\s*", " ", text).splitlines():
        fenced ^= line.startswith("```")
        set_off = fenced or line.startswith(("    ", "  obygaze"))
        if set_off and (match := COMMAND.search(line)):
            yield ASIDE.sub("", match[1]), "..." not in match[1]


def check(line: str, *, whole: bool) -> None:
    """Parse a command as the command line would, without running it."""
    words = [word for word in shlex.split(line, comments=True)[1:] if word != "..."]
    command: click.Command = ROOT_COMMAND
    context = click.Context(ROOT_COMMAND, info_name="obygaze")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        subcommand = command.get_command(context, words[0])
        assert subcommand is not None, f"{line!r}: there is no command {words[0]}"
        command = subcommand
        words = words[1:]
        context = click.Context(command, info_name=command.name, parent=context)
    gone = {name for each in command.params if getattr(each, "hidden", False) for name in each.opts}
    assert not gone & set(words), f"{line!r} has an option that is gone"
    if not whole and words and words[-1].startswith("--"):  # prose that names an option, without its value
        last = words.pop()
        assert any(last in param.opts for param in command.params) or last == "--help", f"{line!r}: {last}"
    values, left, _ = command.make_parser(context).parse_args(words)
    assert not left, f"{line!r}: too many words: {left}"
    if "--help" in line:
        return
    for param in command.params:
        value = values.get(param.name)
        given = value is not None and value is not UNSET and value != ()
        assert given or not (whole and param.required), f"{line!r}: lacks {param.name}"
        if given and not isinstance(param.type, click.Path | click.File):
            param.type_cast_value(context, value)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_on_a_page_are_real(page):
    for line, whole in commands_of(page.read_text(encoding="utf-8")):
        check(line, whole=whole)


def test_the_examples_of_every_help_are_real():
    seen = 0
    for _, command, _ in all_commands():
        for line, whole in commands_of(command.help or ""):
            check(line, whole=whole)
            seen += 1
    assert seen > 60


@pytest.mark.parametrize(
    "line",
    [
        "obygaze extrakt films.csv stores/films",
        "obygaze extract films.csv stores/films --licences CC0-1.0",
        "obygaze extract films.csv stores/films more",
        "obygaze extract films.csv stores/films --engine cloud",
    ],
)
def test_a_command_that_is_not_real_is_found(line):
    with pytest.raises((AssertionError, click.UsageError)):
        check(line, whole=True)
