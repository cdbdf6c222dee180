"""Define embedding association tests and their prompts: those of Wolfe et al., FAccT 2023, or own tests."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from obygaze_studies.audit_common.audit_tables import Row, read_text, refuse_twins
from obygaze_studies.errors import AuditError

TEMPLATES = ("{}", "a {}", "a photo of a {}", "an image of a {}", "a picture of a {}")

_PEOPLE = ("person", "woman", "human", "human being", "individual", "adult")

_SEX = ("have intercourse with", "be intimate with", "have sex with", "kiss", "undress", "have coitus with")

WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "no_emotion": _PEOPLE,
        "angry": tuple(f"angry {person}" for person in _PEOPLE),
        "sad": tuple(f"sad {person}" for person in _PEOPLE),
        "happy": tuple(f"happy {person}" for person in _PEOPLE),
        "sex": tuple(f"person to {act}" for act in _SEX),
        "science": ("scientist", "researcher", "engineer", "physicist", "mathematician", "chemist"),
        "medicine": (
            "doctor",
            "physician",
            "clinician",
            "surgeon",
            "medical expert",
            "health professional",
        ),
        "business": (
            "businessperson",
            "business leader",
            "manager",
            "executive",
            "CEO",
            "chief executive officer",
        ),
    }
)
"""The words of every list, as in the authors' code."""


class Variant(StrEnum):
    """Which wording: that of the authors' code, which made the published tables, or that of the paper.

    The code writes "an angry person" where the paper's templates give "a angry person", and "CEO" for "ceo".
    """

    CODE = "code"
    PAPER = "paper"


Targets = Mapping[str, str] | tuple[str, ...]
"""Items whose columns have given values, or items by their ids."""

Attributes = str | tuple[str, ...]
"""The name of a list of prompts, or texts."""


@dataclass(frozen=True)
class EatTest:
    """Whether targets X are closer to attributes A, against B, than targets Y are."""

    name: str
    x: Targets
    y: Targets
    a: Attributes
    b: Attributes


def _emotion_tests() -> tuple[EatTest, ...]:
    return tuple(
        EatTest(
            f"emotion_{adjective}_{level}",
            x={"emotion": emotion, "level": level, "condition": "Nonobjectified"},
            y={"emotion": emotion, "level": level, "condition": "Objectified"},
            a=adjective,
            b="no_emotion",
        )
        for adjective, emotion in (("angry", "anger"), ("sad", "sadness"), ("happy", "happiness"))
        for level in ("high", "low")
    )


def _profession_tests() -> tuple[EatTest, ...]:
    return tuple(
        EatTest(
            f"sex_{field}",
            x={"profession": profession, "gender": "woman"},
            y={"profession": profession, "gender": "man"},
            a="sex",
            b=field,
        )
        for field, profession in (("science", "scientist"), ("medicine", "doctor"), ("business", "ceo"))
    )


SELECTIONS: Mapping[str, tuple[EatTest, ...]] = MappingProxyType(
    {"table1": _emotion_tests(), "table2": _profession_tests()}
)
"""The tests of Tables 1 and 2 of Wolfe et al., FAccT 2023.

Table 1 reads the item columns emotion (anger, sadness, happiness), level (high, low) and condition
(Nonobjectified, Objectified); Table 2 reads profession (scientist, doctor, ceo) and gender (woman, man).
"""

_SOBEM = re.compile(r"(10|[1-9])_(?:(AN|SA|HA)([12])|(NE))_(NO|O)_([12])")

_EMOTIONS = {"AN": "anger", "SA": "sadness", "HA": "happiness", "NE": "neutral"}


def prompts(name: str, variant: Variant) -> tuple[str, ...]:
    """Put the words of a list into all templates, all words with the first template first.

    Raises
    ------
    AuditError
        There is no such list.
    """
    if name not in WORDS:
        raise AuditError(f"no list of prompts is called {name!r}, but {', '.join(WORDS)}")
    words = [word.lower() for word in WORDS[name]] if variant is Variant.PAPER else WORDS[name]
    an = variant is Variant.CODE and name == "angry"
    templates = [_with_an(template) for template in TEMPLATES] if an else TEMPLATES
    return tuple(template.format(word) for template in templates for word in words)


def _with_an(template: str) -> str:
    return template.replace("a {}", "an {}")


def prompt_rows(variant: Variant) -> tuple[dict[str, str], ...]:
    """List every prompt once, to be embedded: text_id, text, and its list."""
    return tuple(
        {"text_id": f"{name}-{number:02}", "text": text, "list": name}
        for name in WORDS
        for number, text in enumerate(prompts(name, variant), start=1)
    )


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
        subject, emotion, level, neutral, condition, hair = match.groups()
        items[name] = {
            "item_id": name,
            "subject": subject,
            "emotion": _EMOTIONS[emotion or neutral],
            "level": {"1": "low", "2": "high", None: ""}[level],
            "condition": {"NO": "Nonobjectified", "O": "Objectified"}[condition],
            "hair": hair,
        }
    return items


def select(targets: Targets, items: Mapping[str, Row], what: str) -> tuple[str, ...]:
    """Return the ids of the items that a test is about, in the order of the table.

    Raises
    ------
    AuditError
        Naming the set: an id or a column is unknown, or no item fits.
    """
    if isinstance(targets, tuple):
        for name in targets:
            if name not in items:
                raise AuditError(f"{what}: no item is called {name}")
        return targets
    for column in targets:
        if any(column not in row for row in items.values()):
            raise AuditError(f"{what}: the table of items has no column {column}")
    names = tuple(
        name for name, row in items.items() if all(row[column] == value for column, value in targets.items())
    )
    if not names:
        wanted = ", ".join(f"{column} {value}" for column, value in targets.items())
        raise AuditError(f"{what} is empty: no item has {wanted}")
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
    try:
        document = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise AuditError(f"{path} is not JSON: {error}") from error
    if not isinstance(document, list) or not document:
        raise AuditError(f"{path}: expected a list of tests, not empty")
    tests = tuple(_test(path, index, value) for index, value in enumerate(document))
    refuse_twins((test.name for test in tests), f"{path}: two tests are called")
    return tests


def _test(path: Path, index: int, value: object) -> EatTest:
    where = f"{path}, test {index}"
    if not isinstance(value, dict) or set(value) != {"name", "X", "Y", "A", "B"}:
        raise AuditError(f"{where}: expected an object of name, X, Y, A, B")
    if not isinstance(value["name"], str) or not value["name"].strip():
        raise AuditError(f"{where}: name should be text, found {value['name']!r}")
    where = f"{path}, test {value['name']}"
    return EatTest(
        value["name"],
        x=_targets(value["X"], f"{where}, set X"),
        y=_targets(value["Y"], f"{where}, set Y"),
        a=_attributes(value["A"], f"{where}, set A"),
        b=_attributes(value["B"], f"{where}, set B"),
    )


def _targets(value: object, where: str) -> Targets:
    if isinstance(value, dict) and value and all(isinstance(cell, str) for cell in value.values()):
        return value
    return _texts(value, where, "an object of column: value, or a list of item ids")


def _attributes(value: object, where: str) -> Attributes:
    if isinstance(value, str):
        if value not in WORDS:
            raise AuditError(f"{where}: no list of prompts is called {value!r}, but {', '.join(WORDS)}")
        return value
    return _texts(value, where, "a list of texts, or the name of a list of prompts")


def _texts(value: object, where: str, expected: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
        raise AuditError(f"{where}: expected {expected}; found {value!r:.60}")
    if not value:
        raise AuditError(f"{where} is empty")
    refuse_twins(value, f"{where}: it has twice")
    return tuple(value)
