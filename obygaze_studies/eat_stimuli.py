"""State what embedding association tests compare: prompts, the SOBEM images, tests, and published effects.

Source: Wolfe et al., FAccT 2023, Tables 1 and 2.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

from obygaze_features.options import Answer
from obygaze_features.templates import packaged
from obygaze_features.text import composed
from obygaze_studies.audit_common.findings import write_rows
from obygaze_studies.audit_common.inputs import Row, read_json, refuse_twins
from obygaze_studies.errors import AuditError

TEMPLATES = ("{}", "a {}", "a photo of a {}", "an image of a {}", "a picture of a {}")


Variant = Literal["code", "paper"]
"""Which wording: that of the authors' code, which made the published tables, or that of the paper.

The code writes "an angry person" where the paper's templates give "a angry person", and "CEO" for "ceo".
"""


Texts = Annotated[tuple[Annotated[str, Meta(min_length=1)], ...], Meta(min_length=1)]

Targets = Annotated[Mapping[str, str], Meta(min_length=1)] | Texts
"""Items whose columns have given values, or items by their ids."""

Attributes = str | Texts
"""The name of a list of prompts, or texts."""


class EatTest(Struct, frozen=True, forbid_unknown_fields=True, rename=dict(zip("xyab", "XYAB", strict=True))):
    """Whether targets X are closer to attributes A, against B, than targets Y are."""

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


def _effects(cells: str) -> Mapping[str, PrintedEffect]:
    """Read the printed effects of a model: a number for each test, with a star where it is marked."""
    effects = {}
    for test, cell in zip(SELECTIONS["table1"] + SELECTIONS["table2"], cells.split(), strict=True):
        effects[test.name] = PrintedEffect(float(cell.rstrip("*")), cell.endswith("*"))
    return effects


EFFECTS: Mapping[str, Mapping[str, PrintedEffect]] = {
    model: _effects(cells) for model, cells in _DATA["effects"].items()
}
"""Model -> test -> what Tables 1 and 2 print."""

_SOBEM = re.compile(r"(10|[1-9])_(AN1|AN2|SA1|SA2|HA1|HA2|NE)_(NO|O)_([12])")

_EMOTIONS = {"AN": "anger", "SA": "sadness", "HA": "happiness", "NE": "neutral"}


def prompts(name: str, variant: Variant) -> tuple[str, ...]:
    """Put the words of a list into all templates, all words with the first template first."""
    words = [word.lower() for word in WORDS[name]] if variant == "paper" else WORDS[name]
    an = variant == "code" and name == "angry"
    templates = [template.replace("a {}", "an {}") if an else template for template in TEMPLATES]
    return tuple(template.format(word) for template in templates for word in words)


def prompt_rows(variant: Variant) -> tuple[dict[str, str], ...]:
    """List every prompt once, to be embedded: text_id, text, and its list."""
    return tuple(
        {"text_id": f"{name}-{number:02}", "text": text, "list": name}
        for name in WORDS
        for number, text in enumerate(prompts(name, variant), start=1)
    )


def write_prompts(variant: Variant, out: Path, *, force: bool = False) -> Answer:
    """Write the table of all prompts."""
    rows = prompt_rows(variant)
    sentence = write_rows([list(rows[0]), *(list(row.values()) for row in rows)], out, "prompts", force=force)
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
        match = _SOBEM.fullmatch(name.rpartition(".")[0] or name)
        if match is None:
            raise AuditError(
                f"{name} is not the name of a SOBEM image such as 3_AN2_NO_1: give a table with --items"
            )
        subject, emotion, condition, hair = match.groups()
        items[name] = {
            "item_id": name,
            "subject": subject,
            "emotion": _EMOTIONS[emotion[:2]],
            "level": {"1": "low", "2": "high", "": ""}[emotion[2:]],
            "condition": {"NO": "Nonobjectified", "O": "Objectified"}[condition],
            "hair": hair,
        }
    return items


def select(targets: Targets, items: Mapping[str, Row], place: str) -> tuple[str, ...]:
    """Return the ids of the items that a test is about, in the order of the table.

    Raises
    ------
    AuditError
        Naming the set: an id or a column is unknown, or no item fits.
    """
    if isinstance(targets, tuple):
        for name in targets:
            if name not in items:
                raise AuditError(f"{place}: no item is called {name}")
        return targets
    for column in targets:
        if any(column not in row for row in items.values()):
            raise AuditError(f"{place}: the table of items has no column {column}")
    wanted_cells = {column: composed(value) for column, value in targets.items()}
    names = tuple(name for name, row in items.items() if wanted_cells.items() <= row.items())
    if not names:
        conditions = ", ".join(f"{column} {value}" for column, value in targets.items())
        raise AuditError(f"{place} is empty: no item has {conditions}")
    return names


def texts_of(attributes: Attributes, variant: Variant) -> tuple[str, ...]:
    """Return the texts of a set of attributes."""
    return prompts(attributes, variant) if isinstance(attributes, str) else attributes


def label(chosen: Targets | Attributes) -> str:
    """Describe a set in a few words."""
    if isinstance(chosen, str):
        return chosen
    if isinstance(chosen, tuple):
        return f"{len(chosen)} given"
    return " ".join(chosen.values())


def choose_tests(named: str) -> tuple[EatTest, ...]:
    """Return the tests of a table of the paper, or those of a file.

    Raises
    ------
    AuditError
        It is neither.
    """
    if named not in SELECTIONS and not Path(named).is_file():
        raise AuditError(
            f"--tests: '{named}' is neither {' nor '.join(SELECTIONS)} nor a JSON file of your own"
        )
    return SELECTIONS[named] if named in SELECTIONS else read_tests(Path(named))


def read_tests(path: Path) -> tuple[EatTest, ...]:
    """Read tests from a JSON file.

    It holds a list of objects with `name`; `X` and `Y`, each an object of column: value or a list of item
    ids; `A` and `B`, each a list of texts or the name of a list of prompts.

    Raises
    ------
    AuditError
        Naming the file and the test: it is no such list, a field is missing or of another kind, a name comes
        twice.
    """
    kind = Annotated[tuple[EatTest, ...], Meta(min_length=1)]
    tests: tuple[EatTest, ...] = read_json(path, kind, "list of tests")
    for test in tests:
        for side in "xyab":
            chosen = getattr(test, side)
            where = f"{path}, test {test.name}, set {side.upper()}"
            if isinstance(chosen, tuple):
                refuse_twins(chosen, f"{where}: it has twice")
            elif isinstance(chosen, str) and chosen not in WORDS:
                raise AuditError(f"{where}: no list of prompts is called {chosen!r}, but {', '.join(WORDS)}")
    refuse_twins((test.name for test in tests), f"{path}: two tests are called")
    return tests
