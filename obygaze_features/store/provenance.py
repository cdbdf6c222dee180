"""Define and check the provenance of groups, and whether two groups may be combined.

The checks, their messages, docs/store-format.schema.json and what is unknown of imported features all follow
from the classes below.
"""

import json
import math
import re
from collections.abc import Mapping
from types import NoneType
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from obygaze_features.arguments import checked
from obygaze_features.errors import StoreError
from obygaze_features.io import NO_LICENCE
from obygaze_features.schema import (
    Count,
    Flag,
    Hex40,
    Hex64,
    Licence,
    Mark,
    Name,
    Object,
    SomeText,
    Text,
    Versions,
    check,
    choices,
    expected,
    fields,
    nested,
)
from obygaze_features.store.format import FEATURE_ARRAYS, FEATURE_DTYPES
from obygaze_features.text import unsuitable

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


class Hub(Struct, kw_only=True):
    """Where the weights are on the Hugging Face Hub."""

    repository: SomeText
    revision: Hex40


class PresetRecord(Struct, kw_only=True):
    """How frames are prepared."""

    resize: Any
    crop: Any
    constants: Any
    order: Any


class ImportedSampling(Struct, kw_only=True):
    """Which frames were taken, as far as it is known, and how many."""

    policy: SomeText | None
    n: Count | None


class SamplingRecord(ImportedSampling, kw_only=True):
    """Which frames are taken, and how many."""

    policy: SomeText


class ImportedDecoder(Struct, kw_only=True):
    """What decoded the videos, as far as it is known."""

    av: SomeText | None
    ffmpeg: SomeText | None
    on_damage: SomeText | None


class Decoder(ImportedDecoder, kw_only=True):
    """Versions of what decoded the videos, and what it does with damaged ones."""

    av: SomeText
    ffmpeg: SomeText
    on_damage: SomeText


class ImportedCompute(Struct, kw_only=True):
    """How the numbers were computed, as far as it is known."""

    dtype: SomeText | None
    autocast: Text | None
    attention: Text | None
    tf32: Flag | None
    device: SomeText | None


class ComputeRecord(ImportedCompute, kw_only=True):
    """How the numbers were computed."""

    dtype: SomeText
    tf32: Flag
    device: SomeText


class ImportedProvenance(Struct, kw_only=True):
    """The provenance of imported features, in which more fields may be null (unknown)."""

    name: Name
    head: Text | None
    layer: Text | None
    hub: Hub | None
    weights_sha256: Hex64 | None
    architecture: Object
    preset: PresetRecord
    sampling: ImportedSampling
    decoder: ImportedDecoder
    compute: ImportedCompute
    software: Versions | None
    commit: Hex40 | None
    licence: Licence
    citation: Text
    contact: Text
    untrained: Mark | UnsetType = UNSET
    """The weights are random."""
    imported: Mark | UnsetType = UNSET
    """The features were extracted with another tool."""


class Provenance(ImportedProvenance, kw_only=True):
    """Where the features of a group come from; other fields may be added and are kept."""

    sampling: SamplingRecord
    decoder: Decoder
    compute: ComputeRecord
    software: Versions


class Corpus(Struct, kw_only=True):
    """What the clips are; other fields may be added and are kept."""

    name: SomeText
    manifest_sha256: Hex64 | UnsetType = UNSET


class FilledIn(Struct, kw_only=True):
    """What sealing adds to a provenance: the data type of every array, and the corpus."""

    storage: Storage
    source: Corpus


FILLED_IN: Final = FilledIn.__struct_fields__
"""Names of the fields that sealing adds."""


NOT_NUMERICS: Final = ("hub", "source", "licence", "citation", "contact", "commit")
"""Fields that may differ between groups whose features are mixed; the digest of the weights must be equal."""

FIELDS_BY_ARRAY: Final = ("arrays", "storage")
"""Fields that have a part for each array: what it is in words, and its data type."""

X_CLIPS: Final = ("xclip", "xclip-lsmdc")
"""Backbones whose groups have no field `space`, as their text backbones were added later."""

_NO_FIELD = object()
"""Stands for the value of a field that only the other object has."""

FORBIDDEN_KEYS = ("host", "hostname", "user", "username", "path")
"""Keys that would tell something about machines and users."""
_ABSOLUTE_PATH = re.compile(r"/[^/\s]|~[\w.-]*/|[A-Za-z]:[\\/]|\\\\|file:")


def checked_json(value: object, location: str) -> object:
    """Return a value as plain JSON: numpy scalars and tuples are converted, everything else is refused.

    Parameters
    ----------
    value
        The value.
    location
        Name of the field, for messages.

    Raises
    ------
    StoreError
        On arrays, non-finite numbers, other types, forbidden keys, absolute paths, and texts with control or
        bidirectional characters; the message names the field.
    """
    if isinstance(value, np.generic):
        value = value.item()

    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise StoreError(f"{location}: {value} is not a number that JSON can hold; use null")
        return value

    if isinstance(value, str):
        if _ABSOLUTE_PATH.match(value):
            raise StoreError(
                f"{location}: {value!r} is a path on somebody's machine; leave it out or make it relative"
            )
        reason = unsuitable(value)
        if reason:
            raise StoreError(f"{location}: {value!r:.200} {reason}")
        return str(value)

    if isinstance(value, Mapping):
        return {_key(key, location): checked_json(item, f"{location}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [checked_json(item, f"{location}[{position}]") for position, item in enumerate(value)]
    raise StoreError(
        f"{location}: expected a plain JSON value, found {type(value).__name__}; convert it first"
    )


def _key(key: object, location: str) -> str:
    """Check a key of a JSON object, and return it.

    Refused are keys that are no text, keys with control characters, and those of `FORBIDDEN_KEYS`, such as
    `hostname`, which would tell about machines and users.
    """
    if not isinstance(key, str):
        raise StoreError(f"{location}: the key {key!r} is not text")
    reason = unsuitable(key)
    if reason:
        raise StoreError(f"{location}: the key {key!r:.200} {reason}")
    if key.lower() in FORBIDDEN_KEYS:
        raise StoreError(
            f"{location}: {key!r} does not belong in provenance, which tells nothing about machines and users"
        )
    return key


def _plain_object(value: object, location: str) -> dict[str, object]:
    """Return a value as a plain JSON object, checked as by `checked_json`; refuse anything else."""
    checked = checked_json(value, location)
    if not isinstance(checked, dict):
        raise StoreError(f"{location}: expected an object, found {type(value).__name__}")
    return checked


@checked
def validate_provenance(provenance: Mapping[str, object], *, sealed: bool = False) -> dict[str, object]:
    """Check a group's provenance and return it as plain JSON.

    Parameters
    ----------
    provenance
        The fields of `Provenance` and any others, which are kept.
    sealed
        True for the provenance of a sealed store, which has the fields of `FilledIn` too; else these are
        refused.

    Raises
    ------
    StoreError
        Naming every field that is wrong; of the first also what was expected and what was found.
    """
    checked = _plain_object(provenance, "provenance")
    # Of imported features more may be unknown.
    schema = ImportedProvenance if checked.get("imported") is True else Provenance
    if sealed:
        check(checked, (schema, FilledIn), "provenance")
        return checked
    check(checked, (schema,), "provenance")
    for name in FILLED_IN:
        if name in checked:
            raise StoreError(f"provenance: {name!r} is filled in at sealing; leave it out")
    return checked


def validate_corpus(corpus: Mapping[str, object]) -> dict[str, object]:
    """Check the fields of a corpus (`name`, perhaps `manifest_sha256`, others) and return plain JSON."""
    checked = _plain_object(corpus, "corpus")
    check(checked, (Corpus,), "corpus")
    return checked


def unknown_provenance() -> dict[str, Any]:
    """Return the provenance of imported features of which nothing is declared; unknown values are null.

    It has all required fields of `ImportedProvenance` except `name`, which the importer adds.
    """
    provenance = {}
    for name, field_type, required in fields(ImportedProvenance):
        is_nested = "." in name  # such as `sampling.policy`, which the value of `sampling` has
        if required and not is_nested and name != "name":
            provenance[name] = _unknown_value(field_type)
    return provenance


def _unknown_value(field_type: Any) -> object:
    """Return the value that says that a field of a type is unknown.

    It is null if the type allows null; for an object with declared fields, the object with unknown values;
    for other types an empty value.
    """
    may_be_null = NoneType in choices(field_type) or field_type is Any
    if may_be_null:
        return None

    schema = nested(field_type)  # the class of an object with declared fields
    if schema:
        unknown_object = {}
        for name, inner_type, _required in fields(schema):
            # `fields` also lists the fields of inner objects, as "sampling.n". They get their values with the
            # inner object, "sampling".
            is_of_inner_object = "." in name
            if not is_of_inner_object:
                unknown_object[name] = _unknown_value(inner_type)
        return unknown_object

    if field_type is Licence:
        return NO_LICENCE
    return {} if field_type is Object else ""


def validate_licence(licence: str) -> str:
    """Check a licence that is chosen now, and return it: an SPDX expression of known ids, or NOASSERTION.

    Licences of existing stores are not checked against this list, which grows from year to year, but against
    `Licence`.

    Raises
    ------
    StoreError
        If it is none; a licence of one's own is LicenseRef-NAME.
    """
    if licence == NO_LICENCE:
        return licence
    try:
        canonical = canonicalize_license_expression(licence)
    except InvalidLicenseExpression as error:
        raise StoreError(
            f"licence: expected {expected(Licence)}, or LicenseRef-NAME for one of your own; "
            f"found {licence!r} ({str(error).partition(': ')[0].lower()}); "
            "the ids are listed at https://spdx.org/licenses"
        ) from error
    if canonical != licence:
        raise StoreError(f"licence: {licence!r} is spelt {canonical}")
    return licence


class Terms(NamedTuple):
    """Licence and citation of a store."""

    licence: str
    citation: str


def terms_of_next_version(licence: str, citation: str, parent: Mapping[str, Any]) -> Terms:
    """Return the terms of a store that extends another one: as they are stated now, else those of the parent.

    Parameters
    ----------
    licence, citation
        What is stated now; NOASSERTION and an empty text state nothing.
    parent
        Attributes of the parent store.
    """
    return Terms(
        str(parent["licence"]) if licence == NO_LICENCE else licence,
        citation or str(parent["citation"]),
    )


class Contrast(NamedTuple):
    """A field in which two JSON values differ, such as `sampling.n`, and its values in both as JSON text."""

    field: str
    first: str
    second: str


def contrasts(a: object, b: object, location: str = "") -> list[Contrast]:
    """List the fields in which two JSON values differ, at any depth, with the value in each.

    A field that one of them lacks has the value "nothing" there.

    Parameters
    ----------
    a, b
        The values.
    location
        Dotted name of the field whose values they are; empty for whole documents.
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        differing: list[Contrast] = []
        for name in sorted({*a, *b}):
            field = f"{location}.{name}" if location else str(name)
            differing += contrasts(a.get(name, _NO_FIELD), b.get(name, _NO_FIELD), field)
        return differing

    first = _as_json(a)
    second = _as_json(b)
    if first == second:
        return []
    return [Contrast(location, first, second)]


def _as_json(value: object) -> str:
    """Return a value as JSON text, in which 1, 1.0 and true differ; "nothing" for an absent field."""
    if value is _NO_FIELD:
        return "nothing"
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def clipped(value: str) -> str:
    """Shorten a text to at most 80 characters, for a message."""
    return value if len(value) <= 80 else f"{value[:77]}..."


def differing_fields(a: object, b: object) -> list[str]:
    """Return the names of the fields in which two JSON values differ, such as `sampling.n`."""
    return [contrast.field for contrast in contrasts(a, b)]


@checked
def embedding_space(provenance: Mapping[str, object]) -> str | None:
    """Return the name of the embedding space of vectors, such as `clip sha256:...`; None if it is unknown.

    Vectors of pictures and of texts can be compared if they are of the same space. The field `space` names
    it. Groups of `X_CLIPS` lack this field: their space is named by backbone and weights.
    """
    space = provenance.get("space")
    if isinstance(space, str) and space.strip():
        return space
    name = provenance.get("name")
    if name not in X_CLIPS:
        return None
    digest = provenance.get("weights_sha256")
    weights = f"sha256:{digest}" if digest else provenance.get("weights")  # such as random:7
    return f"{name} {weights}" if weights else None


@checked
def same_numerics(
    a: Mapping[str, object],
    b: Mapping[str, object],
    *,
    array: Literal["pooled", "frames", "tokens"] | None = None,
) -> list[str]:
    """Return the provenance fields that differ between two groups and forbid mixing their features.

    The list is empty if the features are computed in the same way (have the same numerics), so that they may
    be mixed. Every field that differs counts, except those of `NOT_NUMERICS`, because a field that this
    version does not know may determine the numbers.

    Parameters
    ----------
    a, b
        The provenances.
    array
        The array, such as "pooled", whose features are used. What the provenances say of other arrays does
        not count then: a store with tokens and one without have the same pooled features. None is all arrays.
    """
    differing = differing_fields(checked_json(a, "provenance"), checked_json(b, "provenance"))
    forbidding = []
    for field in differing:  # such as "weights", or "sampling.n" for a part of a field
        whole_field, _, _ = field.partition(".")
        if whole_field not in NOT_NUMERICS:
            forbidding.append(field)
    if array is None:
        return forbidding
    other_arrays = [name for name in FEATURE_ARRAYS if name != array]
    fields_of_other_arrays = {f"{field}.{name}" for field in FIELDS_BY_ARRAY for name in other_arrays}
    return [field for field in forbidding if field not in fields_of_other_arrays]
