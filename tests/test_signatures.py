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


def run(*words, **environment):
    return CliRunner().invoke(lend, words, env=environment)


def document_of(*words, **environment):
    result = run(*words, "--json", **environment)
    assert result.exit_code == 0, result.output
    return json_module.loads(result.stdout)


def test_what_is_not_typed_has_its_default():
    assert document_of("book") == {
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
    words = ["book", "ann", "bea", "--weeks", "3", "--fee", "1.5", "--which", "last"]
    words += ["--note", "late", "--note", "torn", "--span", "4", "9", "--renew"]
    assert document_of(*words) == {
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


def test_a_site_sets_an_option_by_the_environment_and_what_is_typed_comes_first():
    assert document_of("book", LIBRARY_SHELF="K 3")["shelf"] == "K 3"
    assert document_of("book", "--shelf", "A 1", LIBRARY_SHELF="K 3")["shelf"] == "A 1"


def test_an_accent_is_one_character_however_it_was_typed():
    assert document_of("book", "--note", "e\u0301tude")["notes"] == ["\u00e9tude"]


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
def test_what_does_not_fit_a_type_is_a_mistake_of_usage(words):
    assert run(*words).exit_code == 2


def test_the_text_is_for_people_and_json_is_there_without_being_declared():
    assert run("book").stdout == "lent book\n"
    shown = run("--help").stdout
    assert "--json" in shown
    assert "[default: 2]" in shown
    assert "LIBRARY_SHELF" in shown


def test_a_command_that_takes_json_is_told_of_it():
    @command()
    def count(*, json: Json = False) -> Answer:
        return Answer({"told": json}, "text")

    assert json_module.loads(CliRunner().invoke(count, ["--json"]).stdout) == {"told": True}
    assert CliRunner().invoke(count, []).stdout == "text\n"


def test_an_option_that_is_needed_after_all_is_asked_for():
    assert needed(0, "weeks") == 0
    with pytest.raises(click.UsageError, match="--weeks"):
        needed(None, "weeks")


def test_options_that_go_together_are_given_together_or_not_at_all():
    go_together({"sheet": None, "pictures": ()})
    go_together({"sheet": Path("a.png"), "pictures": ("b.csv",)})
    with pytest.raises(click.UsageError, match="--pictures"):
        go_together({"sheet": None, "pictures": ("b.csv",)})
