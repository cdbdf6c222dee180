"""Check JSON objects against msgspec schemas, with messages that name the field and what was expected.

Provenance, model cards and run records each have one schema. Their checks, messages and JSON schemas follow
from it (docs/schemas.py).
"""

from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct, UnsetType

from obygaze_features.errors import StoreError
from obygaze_features.io import NO_LICENCE

END: Final = r"$(?!\n)"
"""The end of a text; `$` alone stands before a last line break too."""
_WORD = r"\(*[A-Za-z0-9][A-Za-z0-9.+:-]*\)*"

Text = Annotated[str, Meta(description="text")]
SomeText = Annotated[str, Meta(pattern=r"\S", description="text, not empty")]
Name = Annotated[
    str,
    Meta(
        pattern=rf"^[A-Za-z0-9][A-Za-z0-9._-]*{END}",
        description="letters, digits, '.', '_' or '-', no other sign",
    ),
]
Hex40 = Annotated[str, Meta(pattern=rf"^[0-9a-f]{{40}}{END}", description="40 lower-case hexadecimal digits")]
Hex64 = Annotated[
    str, Meta(pattern=rf"^[0-9a-f]{{64}}{END}", description="64 lower-case hexadecimal digits (SHA-256)")
]
Licence = Annotated[
    str,
    Meta(
        pattern=rf"^{_WORD}( (AND|OR|WITH) {_WORD})*{END}",
        description=f"an SPDX licence expression such as CC-BY-4.0, or {NO_LICENCE}",
    ),
]
Flag = Annotated[bool, Meta(description="true or false")]
Count = Annotated[int, Meta(ge=1, description="a number above 0")]
Object = Annotated[dict[str, Any], Meta(description="an object")]
Versions = Annotated[
    dict[str, Annotated[str, Meta(min_length=1)]],
    Meta(min_length=1, description="an object of name: version, not empty"),
]
Mark = Annotated[bool, Meta(description="true, or left out", extra_json_schema={"const": True})]


def fits(value: object, kind: Any) -> bool:
    """Return whether a plain JSON value is of a kind, such as `Name` or `Hex64`."""
    if kind is Mark:
        return value is True
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError):
        return False
    return True


def expected(kind: Any) -> str:
    """Describe in words what a value of a kind is."""
    if NoneType in choices(kind):
        return f"{expected(next(choice for choice in choices(kind) if choice is not NoneType))} or null"
    if get_origin(kind) is Annotated:
        return next(meta.description or "" for meta in get_args(kind) if isinstance(meta, Meta))
    return "any value" if kind is Any else "an object"


@cache
def fields(schema: type[Struct]) -> tuple[tuple[str, Any, bool], ...]:
    """List (dotted name, kind, whether it is required) of every field, those of nested objects included."""
    found: list[tuple[str, Any, bool]] = []
    for name, kind in get_type_hints(schema, include_extras=True).items():
        given = tuple(choice for choice in choices(kind) if choice is not UnsetType)
        found.append((name, Union[given], len(given) == len(choices(kind))))  # noqa: UP007 - made at run time
        if inner := nested(kind):
            found += [(f"{name}.{dotted}", *rest) for dotted, *rest in fields(inner)]
    return tuple(found)


def choices(kind: Any) -> tuple[Any, ...]:
    """List what a value may be, where it may be one of several kinds."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def nested(kind: Any) -> type[Struct] | None:
    """Return the schema of a field that is an object with fields of its own."""
    schemas = (choice for choice in choices(kind) if isinstance(choice, type) and issubclass(choice, Struct))
    return next(schemas, None)


def check(found: Mapping[str, Any], schemas: tuple[type[Struct], ...], what: str) -> None:
    """Refuse an object that is not as schemas say; the message names every wrong field, the first in full."""
    problems: dict[str, str] = {}
    for schema in schemas:
        for dotted, kind, required in fields(schema):
            parent, _, leaf = dotted.rpartition(".")
            holder = found.get(parent) if parent else found
            if parent in problems or holder is None:
                continue
            if leaf in holder:
                value = holder[leaf]
                # The fields of an object are judged one by one.
                if not fits(value, Object if nested(kind) and value is not None else kind):
                    problems[dotted] = f"{dotted!r} should be {expected(kind)}; found {value!r}"
            elif required:
                problems[dotted] = f"{dotted!r} is missing; expected {expected(kind)}"
    if problems:
        first, *others = problems
        also = f"; also {', '.join(map(repr, others))} (see docs/store-format.md)" if others else ""
        raise StoreError(f"{what}: {problems[first]}{also}")
