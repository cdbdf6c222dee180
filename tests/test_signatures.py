"""A signature is the only declaration of a command: types, defaults and names say how its words are read."""

import json as json_module
from pathlib import Path
from typing import Annotated, Literal

import click
import pytest
from click.testing import CliRunner

from obygaze_features.options import Answer
from obygaze_features.signatures import Json, argument, command, go_together, needed, option


@command()
def lend(
    store: Annotated[Path, argument()],
    readers: Annotated[tuple[str, ...], argument()] = (),
    *,
    weeks: Annotated[int, option("For how long.")] = 2,
    fee: Annotated[float | None, option("To be paid.")] = None,
    copy: Annotated[Literal["first", "last"], option("Which one.", name="which")] = "first",
    notes: Annotated[tuple[str, ...], option("What to tell.", name="note")] = (),
    span: Annotated[tuple[int, int] | None, option("Pages from and to.")] = None,
    shelf: Annotated[str, option("Where it stands.", envvar="LIBRARY_SHELF")] = "",
    renew: Annotated[bool, option("Once more.")] = False,
) -> Answer:
    """Lend a book."""
    document = {
        "store": str(store),
        "readers": readers,
        "weeks": weeks,
        "fee": fee,
        "copy": copy,
        "notes": notes,
        "span": span,
        "shelf": shelf,
        "renew": renew,
    }
    return Answer(document, f"lent {store}")


def run_lend(*words):
    """Type words behind the command `lend`, above."""
    return CliRunner().invoke(lend, words)


def parse_lend_command(*words):
    """Run `lend` with --json, by which it prints the values of its parameters."""
    result = run_lend(*words, "--json")
    assert result.exit_code == 0, result.output
    return json_module.loads(result.stdout)


def test_what_is_not_typed_has_its_default():
    """The command `lend` has nine parameters, of which only the first, `store`, is typed: `lend book`.

    The others have these defaults in its signature: readers=(), weeks=2, fee=None, copy="first", notes=(),
    span=None, shelf="" and renew=False. In JSON a tuple is a list.
    """
    assert parse_lend_command("book") == {
        "store": "book",
        "readers": [],
        "weeks": 2,
        "fee": None,
        "copy": "first",
        "notes": [],
        "span": None,
        "shelf": "",
        "renew": False,
    }


def test_words_are_read_by_the_types_of_the_parameters():
    """The command `lend`, above, has a parameter of each type; options may be typed by other names.

    - `store` is a path, and `readers` is a tuple of all further words without an option.
    - `weeks` is a whole number, `fee` a number, `copy` (typed as --which) one of two words.
    - `notes` (typed as --note) is a tuple of texts, of which each has an option; `span` is two numbers.
    - `renew` is a switch, and `shelf`, which is not typed, has its default.
    """
    words = ["book", "ann", "bea"]
    words += ["--weeks", "3", "--fee", "1.5", "--which", "last"]
    words += ["--note", "late", "--note", "torn", "--span", "4", "9"]
    words += ["--renew"]

    assert parse_lend_command(*words) == {
        "store": "book",
        "readers": ["ann", "bea"],
        "weeks": 3,
        "fee": 1.5,
        "copy": "last",
        "notes": ["late", "torn"],
        "span": [4, 9],
        "shelf": "",
        "renew": True,
    }


@pytest.mark.parametrize(
    ("words", "shelf"),
    [(["--json"], "K 3"), (["--shelf", "A 1", "--json"], "A 1")],
    ids=["not typed", "typed, which comes first"],
)
def test_an_option_may_be_set_by_the_environment(words, shelf):
    """The option --shelf is declared with the variable LIBRARY_SHELF of the environment, which is "K 3"."""

    @command()
    def find(*, shelf: Annotated[str, option("Where.", envvar="LIBRARY_SHELF")] = "") -> Answer:
        return Answer({"shelf": shelf}, "text")

    result = CliRunner().invoke(find, words, env={"LIBRARY_SHELF": "K 3"})

    assert json_module.loads(result.stdout) == {"shelf": shelf}


def test_an_accent_is_one_character_however_it_was_typed():
    """Some systems give an e and an accent, two characters, for one."""

    @command()
    def write(*, note: Annotated[str, option("What to tell.")] = "") -> Answer:
        return Answer({"note": note}, "text")

    accent_apart, one_character = "e\u0301tude", "\u00e9tude"

    result = CliRunner().invoke(write, ["--note", accent_apart, "--json"])

    assert json_module.loads(result.stdout) == {"note": one_character}


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["book", "--weeks", "two"],
        ["book", "--fee", "nan"],
        ["book", "--which", "middle"],
        ["book", "--span", "4"],
        ["book", "--copy", "last"],
    ],
    ids=["no argument", "no number", "not finite", "no choice", "half a pair", "the parameter's own name"],
)
def test_words_that_do_not_fit_the_signature_of_lend_are_a_mistake_of_usage(words):
    """The command `lend` needs an argument, and its options have types.

    --weeks is a whole number, --fee a number, --span two numbers, and --which, of the parameter `copy`,
    "first" or "last". The exit code of a wrong usage is 2.
    """
    result = run_lend(*words)

    assert result.exit_code == 2


def test_without_json_a_command_prints_the_text_of_its_answer():
    """A function that returns an `Answer`, of data for --json and of a text, is made a command."""

    @command()
    def lend(book: Annotated[str, argument()]) -> Answer:
        return Answer({"book": book}, f"lent {book}")

    result = CliRunner().invoke(lend, ["Emma"])

    assert result.stdout == "lent Emma\n"


@pytest.fixture
def help_of_lend():
    """The help of a command `lend`, made of a function with two options."""

    @command()
    def lend(
        *,
        weeks: Annotated[int, option("For how long.")] = 2,
        shelf: Annotated[str, option("Where it stands.", envvar="LIBRARY_SHELF")] = "",
    ) -> Answer:
        return Answer({}, f"{weeks} {shelf}")

    return CliRunner().invoke(lend, ["--help"]).stdout


def test_help_shows_the_default_of_an_option(help_of_lend):
    """The command `lend` has an option --weeks, which is 2 by default."""
    assert "[default: 2]" in help_of_lend


def test_help_shows_the_environment_variable_that_sets_an_option(help_of_lend):
    """The command `lend` has an option --shelf, which the variable LIBRARY_SHELF sets too."""
    assert "LIBRARY_SHELF" in help_of_lend


def test_help_shows_the_option_json_that_no_parameter_declares(help_of_lend):
    """The function behind the command `lend` has no such parameter: each command gets the option."""
    assert "--json" in help_of_lend


def test_a_command_with_a_parameter_json_is_told_that_json_is_asked_for():
    """Other commands need not know: for them, --json prints the document of the answer, and not its text."""

    @command()
    def count(*, json: Json = False) -> Answer:
        return Answer({"is_asked_for": json}, "text")

    with_json = CliRunner().invoke(count, ["--json"]).stdout
    without_json = CliRunner().invoke(count, []).stdout

    assert json_module.loads(with_json) == {"is_asked_for": True}
    assert without_json == "text\n"


def test_an_option_that_is_needed_after_all_is_asked_for():
    """The value 0 was typed, and None was not."""
    assert needed(0, "weeks") == 0
    with pytest.raises(click.UsageError, match="--weeks"):
        needed(value=None, name="weeks")


def test_options_that_go_together_are_given_together_or_not_at_all():
    """Not given are None and an empty tuple. The message names what lacks the other."""
    go_together({"sheet": None, "pictures": ()})  # raises nothing
    go_together({"sheet": Path("a.png"), "pictures": ("b.csv",)})

    with pytest.raises(click.UsageError, match="--pictures"):
        go_together({"sheet": None, "pictures": ("b.csv",)})
