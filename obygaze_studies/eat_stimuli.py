"""Define the stimuli of embedding association tests: prompts, SOBEM images, tests, and published effects.

Source: Wolfe et al., FAccT 2023, Tables 1 and 2.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

from obygaze_features.options import Answer
from obygaze_features.templates import packaged
from obygaze_features.text import composed
from obygaze_studies.audit_common.findings import write_rows
from obygaze_studies.audit_common.inputs import Row, read_json, refuse_duplicates
from obygaze_studies.errors import AuditError

TEMPLATES = ("{}", "a {}", "a photo of a {}", "an image of a {}", "a picture of a {}")
"""Templates of the prompts; a word of a list is put in the place of ``{}``."""


Variant = Literal["code", "paper"]
"""Which wording: that of the authors' code, which made the published tables, or that of the paper.

The code writes "an angry person" where the paper's templates give "a angry person", and "CEO" for "ceo".
"""


Texts = Annotated[tuple[Annotated[str, Meta(min_length=1)], ...], Meta(min_length=1)]

Targets = Annotated[Mapping[str, str], Meta(min_length=1)] | Texts
"""A set of items: either column -> the value that its items have, or the ids of the items."""

Attributes = str | Texts
"""A set of texts: either the name of a list of prompts, or the texts themselves."""


class EatTest(Struct, frozen=True, forbid_unknown_fields=True, rename=dict(zip("xyab", "XYAB", strict=True))):
    """An embedding association test: whether targets X are closer to A than to B, more so than targets Y.

    Attributes
    ----------
    name
        The name of the test in tables and messages.
    x, y
        The two sets of target items.
    a, b
        The two sets of attribute texts.
    """

    name: Annotated[str, Meta(pattern=r"\S")]
    x: Targets
    y: Targets
    a: Attributes
    b: Attributes


_DATA = packaged(__package__, "eat_tests.toml")

WORDS: Mapping[str, tuple[str, ...]] = msgspec.convert(_DATA["words"], dict[str, tuple[str, ...]])
"""The words of every list, as in the authors' code."""

SELECTIONS: Mapping[str, tuple[EatTest, ...]] = msgspec.convert(
    _DATA["tests"], dict[str, tuple[EatTest, ...]]
)
"""The tests of Tables 1 and 2 of Wolfe et al., FAccT 2023.

Table 1 reads the item columns emotion (anger, sadness, happiness), level (high, low) and condition
(Nonobjectified, Objectified); Table 2 reads profession (scientist, doctor, ceo) and gender (woman, man).
"""


class PrintedEffect(NamedTuple):
    """A printed effect size, rounded to two decimals, and whether it has a star; 20 + 20 images."""

    d: float
    star: bool


def _parse_effects(cells: str) -> Mapping[str, PrintedEffect]:
    """Parse a model's printed effects: one number per test, in the order of the tables, some with a star."""
    effects = {}
    for test, cell in zip(SELECTIONS["table1"] + SELECTIONS["table2"], cells.split(), strict=True):
        effects[test.name] = PrintedEffect(float(cell.rstrip("*")), cell.endswith("*"))
    return effects


EFFECTS: Mapping[str, Mapping[str, PrintedEffect]] = {
    model: _parse_effects(cells) for model, cells in _DATA["effects"].items()
}
"""Model -> test -> the effect that Tables 1 and 2 print."""

_SOBEM = re.compile(r"(10|[1-9])_(AN1|AN2|SA1|SA2|HA1|HA2|NE)_(NO|O)_([12])")
"""A file name of the SOBEM images: the subject, the emotion with its level, the condition, the hair."""

_EMOTIONS = {"AN": "anger", "SA": "sadness", "HA": "happiness", "NE": "neutral"}


def prompts(name: str, variant: Variant) -> tuple[str, ...]:
    """Make the prompts of a list: every word in the first template, then in the second, and so on."""
    words = WORDS[name]
    if variant == "paper":
        words = tuple(word.lower() for word in words)
    templates = list(TEMPLATES)
    # The authors' code writes "an" in the prompts of this list only, whose words begin with a vowel.
    if variant == "code" and name == "angry":
        templates = [template.replace("a {}", "an {}") for template in TEMPLATES]
    return tuple(template.format(word) for template, word in product(templates, words))


def prompt_rows(variant: Variant) -> tuple[dict[str, str], ...]:
    """List the prompts of all lists as rows of the table to embed: text_id, text, list."""
    rows = []
    for name in WORDS:
        for number, text in enumerate(prompts(name, variant), start=1):
            rows.append({"text_id": f"{name}-{number:02}", "text": text, "list": name})
    return tuple(rows)


def write_prompts(variant: Variant, out: Path, *, force: bool = False) -> Answer:
    """Write the table of all prompts to a CSV file."""
    rows = prompt_rows(variant)
    header = list(rows[0])
    cells = [list(row.values()) for row in rows]
    sentence = write_rows([header, *cells], out, "prompts", force=force)
    return Answer({"file": str(out), "prompts": len(rows)}, text=sentence)


def sobem_items(ids: Sequence[str]) -> dict[str, Row]:
    """Read the columns of Table 1 from the file names of the SOBEM images, with or without an extension.

    Raises
    ------
    AuditError
        An id is not such a name.
    """
    items: dict[str, Row] = {}
    for name in ids:
        name_without_extension = name.rsplit(".", maxsplit=1)[0]
        match = _SOBEM.fullmatch(name_without_extension)
        if match is None:
            raise AuditError(
                f"{name} is not the name of a SOBEM image such as 3_AN2_NO_1: give a table with --items"
            )
        subject, emotion_and_level, condition, hair = match.groups()  # such as "3", "AN2", "NO", "1"
        emotion_code = emotion_and_level[:2]
        level_code = emotion_and_level[2:]  # empty for a neutral image, which has no level
        items[name] = {
            "item_id": name,
            "subject": subject,
            "emotion": _EMOTIONS[emotion_code],
            "level": {"1": "low", "2": "high", "": ""}[level_code],
            "condition": {"NO": "Nonobjectified", "O": "Objectified"}[condition],
            "hair": hair,
        }
    return items


def select(targets: Targets, items: Mapping[str, Row], location: str) -> tuple[str, ...]:
    """Return the ids of the items of a set of targets.

    Parameters
    ----------
    targets
        The set, by ids or by values of columns.
    items
        Item id -> its columns. Items chosen by columns keep this order.
    location
        The name of the set in messages.

    Raises
    ------
    AuditError
        Naming the set: an id or a column is unknown, or no item has the values.
    """
    if isinstance(targets, tuple):
        for name in targets:
            if name not in items:
                raise AuditError(f"{location}: no item is called {name}")
        return targets

    for column in targets:
        if any(column not in row for row in items.values()):
            raise AuditError(f"{location}: the table of items has no column {column}")

    wanted_cells = {column: composed(value) for column, value in targets.items()}
    chosen = []
    for name, row in items.items():
        if all(row[column] == value for column, value in wanted_cells.items()):
            chosen.append(name)
    if not chosen:
        conditions = ", ".join(f"{column} {value}" for column, value in targets.items())
        raise AuditError(f"{location} is empty: no item has {conditions}")
    return tuple(chosen)


def texts_of(attributes: Attributes, variant: Variant) -> tuple[str, ...]:
    """Return the texts of a set of attributes: those given, or the prompts of a list given by its name."""
    if isinstance(attributes, str):
        return prompts(attributes, variant)
    return attributes


def label(members: Targets | Attributes) -> str:
    """Describe a set of targets or attributes: by a list's name, a number of ids, or values of columns.

    Examples are "angry", "20 given" (of ids or texts), and "anger high".
    """
    if isinstance(members, str):  # the name of a list of prompts
        return members
    if isinstance(members, tuple):  # ids or texts
        return f"{len(members)} given"
    return " ".join(members.values())


def choose_tests(table_or_file: str) -> tuple[EatTest, ...]:
    """Return the tests of a table of the paper, or those of a JSON file.

    Parameters
    ----------
    table_or_file
        The name of the table, or the path of the file.

    Raises
    ------
    AuditError
        There is neither a table nor a file of this name.
    """
    if table_or_file in SELECTIONS:
        return SELECTIONS[table_or_file]
    path = Path(table_or_file)
    if not path.is_file():
        tables = " nor ".join(SELECTIONS)
        raise AuditError(f"--tests: '{table_or_file}' is neither {tables} nor a JSON file of your own")
    return read_tests(path)


def read_tests(path: Path) -> tuple[EatTest, ...]:
    """Read tests from a JSON file.

    It holds a list of objects with `name`; `X` and `Y`, each an object of column: value or a list of item
    ids; `A` and `B`, each a list of texts or the name of a list of prompts.

    Raises
    ------
    AuditError
        Naming the file and the test: the file holds no such list, a field is missing or of another type, or
        two tests have the same name.
    """
    kind = Annotated[tuple[EatTest, ...], Meta(min_length=1)]
    tests: tuple[EatTest, ...] = read_json(path, kind, "list of tests")
    for test in tests:
        for side, members in (("X", test.x), ("Y", test.y), ("A", test.a), ("B", test.b)):
            _check_members(members, f"{path}, test {test.name}, set {side}")
    refuse_duplicates((test.name for test in tests), f"{path}: two tests are called")
    return tests


def _check_members(members: Targets | Attributes, location: str) -> None:
    """Raise an AuditError that names `location` if a set has a member twice, or names no prompts."""
    if isinstance(members, tuple):
        refuse_duplicates(members, f"{location}: it has twice")
    elif isinstance(members, str) and members not in WORDS:
        raise AuditError(f"{location}: no list of prompts is called {members!r}, but {', '.join(WORDS)}")
