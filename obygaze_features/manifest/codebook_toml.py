"""Read codebooks from TOML, and write them in one canonical form."""

import tomllib
from typing import Any

import msgspec
from msgspec import Struct

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.codebook_parts import Concept, Level, Scale, Task

NAMED = ("levels", "concepts", "instances")
"""Lists of tables in which a text stands for a table with that name."""


class TaskLevels(Struct, frozen=True, forbid_unknown_fields=True):
    """The table of a task, whose name is its key."""

    negative: tuple[str, ...]
    positive: tuple[str, ...]


class CodebookFile(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The keys of a codebook file, in the order in which they are written."""

    name: str
    version: str
    source: str = ""
    policies: tuple[str, ...] = ()
    sub_constructs: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()
    concepts: tuple[Concept, ...] = ()
    tasks: dict[str, TaskLevels] = {}
    scales: tuple[Scale, ...] = ()


def parts_of(text: str) -> dict[str, Any]:
    """Read TOML text as the parameters of a codebook.

    Raises
    ------
    ManifestError
        Naming the key: text that is not TOML, an unknown or missing key, a value of another type.
    """
    try:
        file = msgspec.convert(_tables(tomllib.loads(text)), CodebookFile)
    except msgspec.ValidationError as error:
        raise ManifestError(str(error)) from None
    except (ValueError, RecursionError) as error:  # ValueError: tomllib's own, and of numbers too long
        raise ManifestError(f"not TOML: {str(error) or 'nested too deeply'}") from None
    tasks = tuple(Task(name, levels.negative, levels.positive) for name, levels in file.tasks.items())
    return msgspec.structs.asdict(file) | {"tasks": tasks}


def record_of(**parts: Any) -> dict[str, Any]:
    """Return the parameters of a codebook as plain values, in the keys of its file, without defaults."""
    tasks = {task.name: TaskLevels(task.negatives, task.positives) for task in parts["tasks"]}
    record: dict[str, Any] = msgspec.to_builtins(CodebookFile(**parts | {"tasks": tasks}))
    return record


def toml_of(record: dict[str, Any]) -> str:
    """Write a record as TOML."""
    import tomli_w  # noqa: PLC0415 - only where a codebook is written

    return tomli_w.dumps(record)


def _tables(value: Any, key: str = "") -> Any:
    """Make tables of names alone."""
    if isinstance(value, dict):
        return {name: _tables(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        named = key in NAMED
        return [{"name": item} if named and isinstance(item, str) else _tables(item) for item in value]
    return value
