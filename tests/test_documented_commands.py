"""Every `obygaze` line of a page, and every example of a help text, is a command as it is."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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


class WrittenCommand(NamedTuple):
    """A command as a page or a help text has it."""

    line: str
    is_whole: bool
    """Whether it stands there as if to be typed; prose may name a command without all that it needs."""


def commands_of(text: str) -> Iterator[WrittenCommand]:
    """Yield the commands in a page, or in a help text: first those in prose, then those set off."""
    yield from _commands_in_prose(text)
    yield from _commands_set_off(text)


def _commands_in_prose(text: str) -> Iterator[WrittenCommand]:
    """Yield the commands between backticks, which may run over the end of a line in a paragraph."""
    for paragraph in re.findall(r"(?:[^\n]+\n?)+", text):
        for match in INLINE.finditer(paragraph.replace("\n", " ")):
            yield WrittenCommand(match[1], is_whole=False)


def _commands_set_off(text: str) -> Iterator[WrittenCommand]:
    """Yield the commands in lines between fences, or indented; one with "..." is not whole."""
    is_fenced = False
    for line in re.sub(r"\s*\\\n\s*", " ", text).splitlines():  # a backslash joins two lines
        if line.startswith("```"):
            is_fenced = not is_fenced
        is_set_off = is_fenced or line.startswith(("    ", "  obygaze"))
        match = COMMAND.search(line)
        if is_set_off and match:
            yield WrittenCommand(ASIDE.sub("", match[1]), is_whole="..." not in match[1])


def find_command(line: str, words: list[str]) -> tuple[click.Command, click.Context, list[str]]:
    """Follow the words of a line through groups of commands; return the command and the words behind it."""
    command: click.Command = ROOT_COMMAND
    context = click.Context(ROOT_COMMAND, info_name="obygaze")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name, *words = words
        subcommand = command.get_command(context, name)
        assert subcommand is not None, f"{line!r}: there is no command {name}"
        command = subcommand
        context = click.Context(command, info_name=name, parent=context)
    return command, context, words


def check_that_it_parses(line: str, *, is_whole: bool) -> None:
    """Parse a command as the command line would, without running it.

    Where it is not whole, it may lack arguments, and the value of an option that it ends with.
    """
    all_words = shlex.split(line, comments=True)[1:]
    command, context, words = find_command(line, [word for word in all_words if word != "..."])
    for param in command.params:
        if getattr(param, "hidden", False):
            assert set(words).isdisjoint(param.opts), f"{line!r} has an option that is gone"
    if not is_whole and words and words[-1].startswith("--"):
        option = words.pop()
        known = {"--help"}.union(*(param.opts for param in command.params))
        assert option in known, f"{line!r}: there is no option {option}"
    values, left, _ = command.make_parser(context).parse_args(words)
    assert not left, f"{line!r}: too many words: {left}"
    if "--help" not in line:
        for param in command.params:
            check_value(line, param, values.get(param.name), context, is_required=is_whole and param.required)


def check_value(
    line: str, param: click.Parameter, value: object, context: click.Context, *, is_required: bool
) -> None:
    """Check that a value is of its parameter's type, or may be missing. No file needs to be there."""
    is_missing = value is None or value is UNSET or value == ()
    assert not (is_missing and is_required), f"{line!r}: lacks {param.name}"
    if not is_missing and not isinstance(param.type, click.Path | click.File):
        param.type_cast_value(context, value)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_on_a_page_can_be_parsed(page):
    """Each `obygaze ...` of a page has known subcommands, options and types of values; nothing is run.

    Only a command that prose names, or that has "..." in it, may lack arguments.
    """
    for command in commands_of(page.read_text(encoding="utf-8")):
        check_that_it_parses(command.line, is_whole=command.is_whole)


def test_every_example_in_a_help_text_can_be_parsed():
    """Each `obygaze ...` in a help text has known subcommands, options and types of values."""
    n_examples = 0
    for _, command, _ in all_commands():
        help_text = command.help or ""
        for example in commands_of(help_text):
            check_that_it_parses(example.line, is_whole=example.is_whole)
            n_examples += 1

    assert n_examples > 60, "the help texts have more examples than this: some were not found"


OPTIONS_OF_OTHERS = {
    "--help",
    "--no-deps",  # pip
    *("--cpus-per-task", "--requeue", "--time"),  # Slurm
    "--id-column",  # examples/mteb_bridge
}
"""Options that pages name without their program, and that are none of our commands' parameters."""

PAGES_ON_COMMANDS = [page for page in PAGES if page.parent.name != "benchmarks"]
"""Scripts of benchmarks/ have options of their own."""


@pytest.mark.parametrize("page", PAGES_ON_COMMANDS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_an_option_that_a_page_names_exists(page):
    """What a page writes as `--option` is an option of some command of ours, or of pip or Slurm."""
    options_of_our_commands = set()
    for _, command, _ in all_commands():
        for parameter in command.params:
            options_of_our_commands.update(parameter.opts)

    options_on_page = set(re.findall(r"`(--[a-z0-9][a-z0-9-]*)", page.read_text(encoding="utf-8")))

    assert options_on_page - options_of_our_commands - OPTIONS_OF_OTHERS == set()


@pytest.mark.parametrize(
    "line",
    [
        "obygaze extrakt films.csv stores/films",
        "obygaze extract films.csv stores/films --licences CC0-1.0",
        "obygaze extract films.csv stores/films more",
        "obygaze extract films.csv stores/films --engine cloud",
    ],
    ids=["no such command", "no such option", "an argument too many", "no such choice"],
)
def test_a_written_command_with_a_mistake_does_not_parse(line):
    """Without the mistake the lines would be `obygaze extract films.csv stores/films`, which parses."""
    with pytest.raises((AssertionError, click.UsageError)):
        check_that_it_parses(line, is_whole=True)
