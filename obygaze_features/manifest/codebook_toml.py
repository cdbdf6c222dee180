"""Read codebooks from TOML, with the position of errors, and write them in one canonical form."""

import json
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.codebook_parts import Concept, Instance, Level, Scale, Task, plain, suggestion

Tables = Mapping[str, Any]
LARGEST = sys.float_info.max
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
TOP_KEYS = (
    "name", "version", "source", "policies", "sub_constructs", "levels", "concepts", "tasks", "scales",
)  # fmt: skip
LEVEL_KEYS = ("name", "title", "label", "synonyms", "position")
CONCEPT_KEYS = ("name", "group", "visual", "synonyms", "definition", "instances")


def parts_of(text: str) -> dict[str, Any]:
    """Read TOML text as the parameters of a codebook.

    Raises
    ------
    ManifestError
        Naming the key: text that is not TOML, an unknown or missing key, a value of another type.
    """
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: tomllib's own, and of numbers too long
        raise ManifestError(f"not TOML: {str(error) or 'nested too deeply'}") from None
    top = _Table("", document, TOP_KEYS)
    return {
        "name": top.text("name"),
        "version": top.text("version"),
        "source": top.text("source", ""),
        "policies": top.texts("policies"),
        "sub_constructs": top.texts("sub_constructs"),
        "levels": tuple(map(_level, top.tables("levels", LEVEL_KEYS))),
        "concepts": tuple(map(_concept, top.tables("concepts", CONCEPT_KEYS))),
        "tasks": tuple(
            Task(name, table.texts("negative"), table.texts("positive"))
            for name, table in top.named_tables("tasks", ("negative", "positive"))
        ),
        "scales": tuple(
            Scale(
                table.text("name"),
                tuple(map(_level, table.tables("levels", LEVEL_KEYS))),
                table.numbers("cuts"),
            )
            for table in top.tables("scales", ("name", "levels", "cuts"))
        ),
    }


def level_record(level: Level) -> dict[str, Any]:
    """Return a level as plain values, in the keys of its table, without defaults."""
    return without_defaults(
        {
            "name": level.name,
            "title": level.title,
            "label": level.label,
            "synonyms": list(level.synonyms),
            "position": level.position,
        }
    )


def concept_record(concept: Concept) -> dict[str, Any]:
    """Return a concept as plain values, in the keys of its table, without defaults."""
    return without_defaults(
        {
            "name": concept.name,
            "group": concept.group,
            "visual": concept.visual,
            "definition": concept.definition,
            "synonyms": list(concept.synonyms),
            "instances": [
                without_defaults({"name": instance.name, "examples": list(instance.examples)})
                for instance in concept.instances
            ],
        }
    )


def scale_record(scale: Scale) -> dict[str, Any]:
    """Return a scale as plain values, in the keys of its table, without defaults."""
    return without_defaults(
        {
            "name": scale.name,
            "cuts": list(scale.cuts),
            "levels": [level_record(level) for level in scale.levels],
        }
    )


def without_defaults(record: dict[str, Any]) -> dict[str, Any]:
    """Remove empty and true values, the defaults of the keys that a file may lack."""
    return {
        key: value for key, value in record.items() if value not in ("", [], {}, None) and value is not True
    }


def toml_of(record: Tables) -> str:
    """Write a record as TOML: values first, then tables, in the record's order.

    Parameters
    ----------
    record
        Texts, numbers, booleans, lists of these, tables and lists of tables.
    """
    return "\n".join(_lines(record, ())).lstrip("\n") + "\n"


def _level(table: "_Table") -> Level:
    positions = table.numbers("position", single=True)
    return Level(
        table.text("name"),
        table.text("title", ""),
        table.flag("label"),
        table.texts("synonyms"),
        positions[0] if positions else None,
    )


def _concept(table: "_Table") -> Concept:
    return Concept(
        table.text("name"),
        table.text("group", ""),
        table.flag("visual"),
        table.texts("synonyms"),
        tuple(
            Instance(instance.text("name"), instance.texts("examples"))
            for instance in table.tables("instances", ("name", "examples"))
        ),
        table.text("definition", ""),
    )


class _Table:
    """A table of the document, with its position for messages."""

    def __init__(self, where: str, values: object, allowed: Sequence[str]) -> None:
        self.where = where
        if not isinstance(values, dict):
            raise ManifestError(f"{where}: expected a table, found {_shown(values)}")
        self.values = values
        for key in values:
            if key not in allowed:
                near = suggestion(key, {plain(name): name for name in allowed})
                raise ManifestError(f"{self._at(key)}: unknown key{near}")

    def text(self, key: str, default: str | None = None) -> str:
        value = self.values.get(key, default)
        if value is None:
            raise ManifestError(f"{self._at(key)}: is missing")
        if not isinstance(value, str):
            raise self._mismatch(key, 'a text in quotes, such as "1"', value)
        return value

    def flag(self, key: str) -> bool:
        value = self.values.get(key, True)
        if not isinstance(value, bool):
            raise self._mismatch(key, "true or false", value)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        values = self.values.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise self._mismatch(key, 'a list of texts, such as ["gun", "pistol"]', values)
        return tuple(values)

    def numbers(self, key: str, *, single: bool = False) -> tuple[float, ...]:
        values = self.values.get(key, [])
        listed = [values] if single and key in self.values else values
        if not isinstance(listed, list) or not all(
            isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST
            for value in listed
        ):
            raise self._mismatch(
                key, "a number" if single else "a list of numbers, such as [-0.15, 0.15]", values
            )
        return tuple(float(value) for value in listed)

    def tables(self, key: str, allowed: Sequence[str]) -> "list[_Table]":
        """Return the tables of a list; a text alone stands for a table with that name."""
        values = self.values.get(key, [])
        if not isinstance(values, list):
            raise self._mismatch(key, f"tables that begin with [[{self._path(key)}]]", values)
        return [
            _Table(
                f"{self._at(key)} number {number}",
                {"name": value} if isinstance(value, str) else value,
                allowed,
            )
            for number, value in enumerate(values, start=1)
        ]

    def named_tables(self, key: str, allowed: Sequence[str]) -> "list[tuple[str, _Table]]":
        values = self.values.get(key, {})
        if not isinstance(values, dict):
            raise self._mismatch(key, f"tables that begin with [{key}.NAME]", values)
        return [(name, _Table(f"{key}.{name}", value, allowed)) for name, value in values.items()]

    def _at(self, key: str) -> str:
        return f"{self.where}: {key}" if self.where else key

    def _path(self, key: str) -> str:
        return f"{self.where.split()[0]}.{key}" if self.where else key

    def _mismatch(self, key: str, expected: str, value: object) -> ManifestError:
        return ManifestError(f"{self._at(key)}: expected {expected}, found {_shown(value)}")


def _shown(value: object) -> str:
    words = str(value).lower() if isinstance(value, bool) else repr(value)
    return words if len(words) <= 60 else f"{words[:60]}..."


def _lines(record: Tables, path: tuple[str, ...]) -> list[str]:
    lines = [f"{_key(key)} = {_literal(value)}" for key, value in record.items() if not _holds_tables(value)]
    for key, value in record.items():
        here = (*path, _key(key))
        if isinstance(value, Mapping):
            # A table of tables needs no header of its own.
            if value and not all(isinstance(item, Mapping) for item in value.values()):
                lines += ["", f"[{'.'.join(here)}]"]
            lines += _lines(value, here)
        elif _holds_tables(value):
            for table in value:
                lines += ["", f"[[{'.'.join(here)}]]", *_lines(table, here)]
    return lines


def _holds_tables(value: object) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list | tuple) and bool(value) and isinstance(value[0], Mapping)
    )


def _key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else _literal(key)


def _literal(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, float):
        return repr(value)
    # Texts are printable, and JSON escapes such a text as TOML does; so are whole numbers and booleans alike.
    return json.dumps(value, ensure_ascii=False)
