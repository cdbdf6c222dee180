"""Declare the fields of a group's provenance and of a corpus.

The checks, their messages, docs/store-format.schema.json and what is unknown of imported features all follow
from the classes below.
"""

from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from obygaze_features.errors import StoreError
from obygaze_features.io import NO_LICENCE
from obygaze_features.store.format import FEATURE_ARRAYS, FEATURE_DTYPES

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
Storage = Annotated[
    dict[str, str],
    Meta(
        min_length=1,
        description="an object",
        extra_json_schema={
            "propertyNames": {"enum": list(FEATURE_ARRAYS)},
            "additionalProperties": {"enum": list(FEATURE_DTYPES)},
        },
    ),
]
Mark = Annotated[bool, Meta(description="true, or left out", extra_json_schema={"const": True})]


class Hub(Struct, kw_only=True):
    """Where the weights are on the Hugging Face Hub."""

    repository: SomeText
    revision: Hex40


class Preset(Struct, kw_only=True):
    """How frames are prepared."""

    resize: Any
    crop: Any
    constants: Any
    order: Any


class Sampling(Struct, kw_only=True):
    """Which frames are taken, and how many."""

    policy: SomeText
    n: Count | None


class Decoder(Struct, kw_only=True):
    """Versions of what decoded the videos, and what it does with damaged ones."""

    av: SomeText
    ffmpeg: SomeText
    on_damage: SomeText


class Compute(Struct, kw_only=True):
    """How the numbers were computed."""

    dtype: SomeText
    autocast: Text | None
    attention: Text | None
    tf32: Flag
    device: SomeText


class Provenance(Struct, kw_only=True):
    """Where the features of a group come from; other fields may be added and are kept."""

    name: Name
    head: Text | None
    layer: Text | None
    hub: Hub | None
    weights_sha256: Hex64 | None
    architecture: Object
    preset: Preset
    sampling: Sampling
    decoder: Decoder
    compute: Compute
    software: Versions
    commit: Hex40 | None
    licence: Licence
    citation: Text
    contact: Text
    untrained: Mark | UnsetType = UNSET
    """The weights are random."""
    imported: Mark | UnsetType = UNSET
    """The features were extracted with another tool."""


class ImportedSampling(Sampling, kw_only=True):
    """Which frames were taken, as far as it is known."""

    policy: SomeText | None  # type: ignore[assignment]


class ImportedDecoder(Decoder, kw_only=True):
    """What decoded the videos, as far as it is known."""

    av: SomeText | None  # type: ignore[assignment]
    ffmpeg: SomeText | None  # type: ignore[assignment]
    on_damage: SomeText | None  # type: ignore[assignment]


class ImportedCompute(Compute, kw_only=True):
    """How the numbers were computed, as far as it is known."""

    dtype: SomeText | None  # type: ignore[assignment]
    tf32: Flag | None  # type: ignore[assignment]
    device: SomeText | None  # type: ignore[assignment]


class ImportedProvenance(Provenance, kw_only=True):
    """The provenance of imported features, in which more fields may be null, which says unknown."""

    sampling: ImportedSampling
    decoder: ImportedDecoder
    compute: ImportedCompute
    software: Versions | None  # type: ignore[assignment]


class Corpus(Struct, kw_only=True):
    """What the clips are; other fields may be added and are kept."""

    name: SomeText
    manifest_sha256: Hex64 | UnsetType = UNSET


class FilledIn(Struct, kw_only=True):
    """What sealing adds to a provenance: the data type of every array, and the corpus."""

    storage: Storage
    source: Corpus


FILLED_IN: Final = FilledIn.__struct_fields__


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
