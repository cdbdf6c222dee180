"""Check JSON objects against msgspec schemas, with messages that name the field and what was expected.

Provenance, model cards and run records each have one schema. Their checks, messages and JSON schemas follow
from it (docs/schemas.py).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec
from msgspec import Meta, Struct, UnsetType

from obygaze_features.errors import ObygazeError, StoreError
from obygaze_features.io import NO_LICENCE

Schema = Any
"""A msgspec Struct, or a TypedDict for an object that stays a dict."""

MAX_NAMED = 12
"""Most further wrong fields that a message names."""

END: Final = r"$(?!\n)"
"""End of a text; `$` alone also matches before a last line break."""
_WORD = r"\(*[A-Za-z0-9][A-Za-z0-9.+:-]*\)*"

LARGEST: Final = 2**63 - 1

KINDS: Final = {
    "array": "a list",
    "str": "a text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "object": "a table",
}

Text = Annotated[str, Meta(description="text")]
SomeText = Annotated[str, Meta(pattern=r"\S", description="text, not empty")]
Name = Annotated[
    str,
    Meta(
        pattern=rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,99}}{END}",  # a folder has its name: systems allow 255
        description="at most 100 letters, digits, '.', '_' or '-', no other sign",
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
Count = Annotated[int, Meta(ge=1, le=LARGEST, description="a whole number above 0")]
Whole = Annotated[int, Meta(ge=0, le=LARGEST, description="a whole number, 0 or more")]
Number = Annotated[float, Meta(gt=-1e300, lt=1e300, description="a finite number")]
Object = Annotated[dict[str, Any], Meta(description="an object")]
Versions = Annotated[
    dict[str, Annotated[str, Meta(min_length=1)]],
    Meta(min_length=1, description="an object of name: version, not empty"),
]
Mark = Annotated[bool, Meta(description="true, or left out", extra_json_schema={"const": True})]


def fits(value: object, kind: Any) -> bool:
    """Return whether a plain JSON value is valid for a kind: a type, often constrained, such as `Hex64`."""
    if kind is Mark:  # only true is valid; for msgspec it is a bool, which could be false as well
        return value is True
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError):
        return False
    return True


def one_of(*names: str) -> Meta:
    """Return the constraint of a text that must be one of some names, for use in `Annotated`."""
    return Meta(
        pattern=f"^({'|'.join(map(re.escape, names))}){END}",
        description=f"one of {', '.join(names)}",
        extra_json_schema={"enum": list(names)},
    )


def misfit(error: msgspec.ValidationError) -> str:
    """Return msgspec's error on invalid data in plain words: the field, and what is wrong with it."""
    # Its message is such as "Expected `str`, got `int` - at `$.levels[0].name`".
    problem, _, place = str(error).partition(" - at `$")
    field = place.strip("`.")
    why = _why_misfit(problem)
    return f"{field}: {why}" if field else why


def _why_misfit(message: str) -> str:
    """Return msgspec's message on an invalid value, given without the field, in plain words."""
    kinds = re.match(r"Expected `(\w++).*`, got `(\w++)`", message)
    if kinds:
        wanted, found = kinds.groups()
        return f"expected {KINDS.get(wanted, wanted)}, found {KINDS.get(found, found)}"
    unknown = re.match(r"Object contains unknown field `(.*)`", message)
    if unknown:
        return f"unknown key {unknown[1]!r}"
    missing = re.match(r"Object missing required field `(.*)`", message)
    if missing:
        return f"no key {missing[1]!r}"
    return "is not allowed"


def expected(kind: Any) -> str:
    """Describe the values of a kind in words, such as "a whole number above 0 or null".

    Parameters
    ----------
    kind
        A type, often constrained, such as `Hex64`; a list or a union of such; or the schema of an object.
    """
    kinds = choices(kind)
    if NoneType in kinds:
        first_other = next(choice for choice in kinds if choice is not NoneType)
        return f"{expected(first_other)} or null"

    if all(get_origin(choice) is Annotated for choice in kinds):
        return " or ".join(_description(choice) for choice in kinds)
    if get_origin(kind) is Literal:
        words = [str(value) for value in get_args(kind)]
        return f"one of {', '.join(words)}"
    if get_origin(kind) in (list, tuple):
        kind_of_items = get_args(kind)[0]
        return f"a list; each item {expected(kind_of_items)}"

    schema = nested(kind)
    if schema is not None:
        names = [field.name for field in _own_fields(schema)]
        return f"an object of {', '.join(names)}"
    return "any value" if kind is Any else "an object"


def _description(annotated: Any) -> str:
    """Return the description of an annotated kind, such as "a whole number above 0"."""
    for annotation in get_args(annotated):
        if isinstance(annotation, Meta):
            return annotation.description or ""
    raise AssertionError(annotated)


class Field(NamedTuple):
    """A field of an object.

    Attributes
    ----------
    name
        Its name; of a field of a nested object the dotted name.
    kind
        The kind of its values.
    is_required
        Whether an object must have it.
    """

    name: str
    kind: Any
    is_required: bool


@cache
def _own_fields(schema: Schema) -> tuple[Field, ...]:
    """List the fields of an object; a nested object is one field.

    Whether a field may be absent is written in its type: `NotRequired[int]` in a TypedDict, and
    `int | UnsetType` in a Struct. The listed kind of both is `int`, and `is_required` is False.
    """
    optional_names: frozenset[str] = getattr(schema, "__optional_keys__", frozenset())  # of a TypedDict
    fields: list[Field] = []
    for name, hint in get_type_hints(schema, include_extras=True).items():
        stated_kind = get_args(hint)[0] if get_origin(hint) is NotRequired else hint
        members = choices(stated_kind)  # of a union; of any other kind, the kind itself
        members_with_values = tuple(member for member in members if member is not UnsetType)
        may_be_unset = len(members_with_values) < len(members)
        may_be_absent = may_be_unset or name in optional_names
        kind: Any = Union[members_with_values]  # noqa: UP007 - made at run time; of one member, that one
        fields.append(Field(name, kind, is_required=not may_be_absent))
    return tuple(fields)


@cache
def fields(schema: Schema) -> tuple[Field, ...]:
    """List the fields of an object and of its nested objects, which have dotted names."""
    all_fields: list[Field] = []
    for field in _own_fields(schema):
        all_fields.append(field)
        inner_schema = nested(field.kind)
        if inner_schema is not None:
            for inner_field in fields(inner_schema):
                dotted_name = f"{field.name}.{inner_field.name}"
                all_fields.append(inner_field._replace(name=dotted_name))
    return tuple(all_fields)


def choices(kind: Any) -> tuple[Any, ...]:
    """Return the kinds of a union; of any other kind, the kind alone."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def nested(kind: Any) -> Schema | None:
    """Return the schema of a kind that is an object with fields of its own; None for others."""
    for choice in choices(kind):
        if is_typeddict(choice) or (isinstance(choice, type) and issubclass(choice, Struct)):
            return choice
    return None


def check(
    document: Mapping[str, Any],
    schemas: tuple[type[Struct], ...],
    description: str,
    *,
    error: type[ObygazeError] = StoreError,
    page: str = "docs/store-format.md",
) -> None:
    """Raise an error if an object does not fit the schemas.

    The message says what is wrong with the first invalid field, and names the others.

    Parameters
    ----------
    document
        A JSON object.
    schemas
        Schemas that the object must fit. One with `forbid_unknown_fields` allows no other fields.
    description
        Its name in messages.
    error
        The exception to raise.
    page
        The page of the documentation that lists the fields.
    """
    problem_of_field: dict[str, str] = {}
    for schema in schemas:
        problem_of_field |= dict(_find_problems(document, schema, "", forbids_unknown=False))
    if not problem_of_field:
        return

    first, *others = problem_of_field
    also = ""
    if others:
        named = [repr(name) for name in others[:MAX_NAMED]]
        if len(others) > MAX_NAMED:
            named.append("...")
        also = f"; also {', '.join(named)} (see {page})"
    raise error(f"{description}: {first!r} {problem_of_field[first]}{also}")


def _find_problems(
    value: object, kind: Any, location: str, *, forbids_unknown: bool
) -> Iterator[tuple[str, str]]:
    """Yield the dotted name of every wrong field of a value, and what is wrong with it.

    Parameters
    ----------
    value
        A JSON value.
    kind
        The kind that it should be of.
    location
        Its dotted name; empty for the whole document.
    forbids_unknown
        Whether fields that the schema does not know are wrong, also if it does not say so itself.
    """
    schema = nested(kind)
    if schema is not None and isinstance(value, Mapping):
        yield from _find_problems_of_object(value, schema, location, forbids_unknown=forbids_unknown)
    elif get_origin(kind) in (list, tuple) and isinstance(value, list):
        kind_of_items = get_args(kind)[0]
        for position, item in enumerate(value):
            place = f"{location}[{position}]"
            yield from _find_problems(item, kind_of_items, place, forbids_unknown=forbids_unknown)
    elif not fits(value, kind):
        yield location, f"should be {expected(kind)}; found {value!r:.80}"


def _find_problems_of_object(
    value: Mapping[str, Any], schema: Schema, location: str, *, forbids_unknown: bool
) -> Iterator[tuple[str, str]]:
    """Yield the dotted name of every wrong field of a JSON object, and what is wrong with it.

    With `forbids_unknown`, fields that the schema does not know are wrong, also if it does not say so itself.
    """
    forbids_unknown = forbids_unknown or _forbids_unknown_fields(schema)
    prefix = f"{location}." if location else ""
    if forbids_unknown:
        known_names = {field.name for field in _own_fields(schema)}
        for name in sorted(value.keys() - known_names):
            yield f"{prefix}{name:.80}", "is an unknown field"

    for name, kind, is_required in _own_fields(schema):
        if name in value:
            yield from _find_problems(value[name], kind, prefix + name, forbids_unknown=forbids_unknown)
        elif is_required:
            yield prefix + name, f"is missing; expected {expected(kind)}"


def _forbids_unknown_fields(schema: Schema) -> bool:
    """Return whether a schema is a Struct with `forbid_unknown_fields`."""
    config = getattr(schema, "__struct_config__", None)  # a TypedDict has none
    return config is not None and bool(config.forbid_unknown_fields)


def licence_choices(licence: str) -> list[frozenset[str]]:
    """Return the choices that a licence (`Licence`) leaves: of each the licences that then apply together.

    AND binds more than OR (SPDX 2.3, annex D): "MIT AND ISC OR Zlib" leaves MIT with ISC, and Zlib.
    A licence with brackets is not taken apart: it is one choice of one part, itself in brackets.
    """
    if "(" in licence:
        return [frozenset({f"({licence})"})]
    return [frozenset(choice.split(" AND ")) for choice in licence.split(" OR ")]


def joined_licences(licences: Iterable[str]) -> str:
    """Return the licence of what is made of parts under several licences, all of which apply.

    It is `NO_LICENCE` if that of any part is, which stands alone. If a part leaves a choice (OR), so does the
    whole: each choice of one part is joined with each choice of the others.

    Examples
    --------
    >>> joined_licences(["MIT", "GPL-3.0-only", "MIT"])
    'GPL-3.0-only AND MIT'
    >>> joined_licences(["MIT OR Apache-2.0", "ISC"])
    'Apache-2.0 AND ISC OR ISC AND MIT'

    A licence with brackets is not taken apart, and gets brackets around it.

    >>> joined_licences(["(MIT OR ISC) AND Zlib", "X11"])
    '((MIT OR ISC) AND Zlib) AND X11'
    """
    distinct = sorted(set(licences))
    if NO_LICENCE in distinct:
        return NO_LICENCE
    if len(distinct) == 1:
        return distinct[0]
    choices_of_parts = [licence_choices(licence) for licence in distinct]
    joined_choices = set[str]()
    for one_choice_of_each_part in product(*choices_of_parts):
        licences_that_apply = frozenset[str]().union(*one_choice_of_each_part)
        joined_choices.add(" AND ".join(sorted(licences_that_apply)))
    return " OR ".join(sorted(joined_choices))
