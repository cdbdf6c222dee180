"""Where features came from: which fields a group must declare, and when two groups may mix."""

import json
import math
import re
from collections.abc import Callable, Mapping

import numpy as np
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from obygaze_features.errors import StoreError

Rule = tuple[str, Callable[[object], bool]]
"""What a field should be, in words and as a test."""


def _matches(pattern: str) -> Callable[[object], bool]:
    compiled = re.compile(pattern)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def _or_null(rule: Rule) -> Rule:
    words, test = rule
    return f"{words} or null", lambda value: value is None or test(value)


ANY: Rule = ("any value", lambda _: True)
TEXT: Rule = ("text", lambda value: isinstance(value, str))
SOME_TEXT: Rule = ("text, not empty", _matches(r"(?s).*\S.*"))
NAME: Rule = ("letters, digits, '.', '_' or '-', no other sign", _matches(r"[A-Za-z0-9][A-Za-z0-9._-]*"))
HEX40: Rule = ("40 lower-case hexadecimal digits", _matches(r"[0-9a-f]{40}"))
HEX64: Rule = ("64 lower-case hexadecimal digits (SHA-256)", _matches(r"[0-9a-f]{64}"))
FLAG: Rule = ("true or false", lambda value: isinstance(value, bool))
COUNT: Rule = (
    "a number above 0",
    lambda value: isinstance(value, int) and not isinstance(value, bool) and value > 0,
)
OBJECT: Rule = ("an object", lambda value: isinstance(value, dict))
VERSIONS: Rule = (
    "an object of name: version, not empty",
    lambda value: (
        isinstance(value, dict) and bool(value) and all(isinstance(v, str) and v for v in value.values())
    ),
)
_NOTHING = object()

NO_LICENCE = "NOASSERTION"
"""SPDX's word for: nobody has said."""
LICENCE: Rule = (
    f"an SPDX licence expression such as CC-BY-4.0, or {NO_LICENCE}",
    _matches(r"\(*[A-Za-z0-9][A-Za-z0-9.+:-]*\)*( (AND|OR|WITH) \(*[A-Za-z0-9][A-Za-z0-9.+:-]*\)*)*"),
)

REQUIRED: dict[str, Rule] = {
    "name": NAME,
    "head": _or_null(TEXT),
    "layer": _or_null(TEXT),
    "hub": _or_null(OBJECT),
    "hub.repository": SOME_TEXT,
    "hub.revision": HEX40,
    "weights_sha256": _or_null(HEX64),
    "architecture": OBJECT,
    "preset": OBJECT,
    "preset.resize": ANY,
    "preset.crop": ANY,
    "preset.constants": ANY,
    "preset.order": ANY,
    "sampling": OBJECT,
    "sampling.policy": SOME_TEXT,
    "sampling.n": _or_null(COUNT),
    "decoder": OBJECT,
    "decoder.av": SOME_TEXT,
    "decoder.ffmpeg": SOME_TEXT,
    "decoder.on_damage": SOME_TEXT,
    "compute": OBJECT,
    "compute.dtype": SOME_TEXT,
    "compute.autocast": _or_null(TEXT),
    "compute.attention": _or_null(TEXT),
    "compute.tf32": FLAG,
    "compute.device": SOME_TEXT,
    "software": VERSIONS,
    "commit": _or_null(HEX40),
    "licence": LICENCE,
    "citation": TEXT,
    "contact": TEXT,
}
"""Fields that whoever extracts must declare."""

_MARK: Rule = ("true, or left out", lambda value: value is True)
OPTIONAL: dict[str, Rule] = {"untrained": _MARK, "imported": _MARK}
"""`untrained: true` marks random weights, `imported: true` features that obygaze did not extract."""

UNKNOWN_IF_IMPORTED = (
    "sampling.policy",
    "decoder.av",
    "decoder.ffmpeg",
    "decoder.on_damage",
    "compute.dtype",
    "compute.tf32",
    "compute.device",
    "software",
)
"""Fields that may be null, which says unknown, in the provenance of imported features alone."""

FILLED_IN: dict[str, Rule] = {"storage": OBJECT, "source": OBJECT, "source.name": SOME_TEXT}
"""Fields that the store adds at sealing: dtype of every array, and the corpus."""

NOT_NUMERICS = ("hub", "source", "licence", "citation", "contact", "commit")
"""Fields that may differ between groups that mix; the weights' digest stands for the hub's revision."""

FORBIDDEN_KEYS = ("host", "hostname", "user", "username", "path")
_ABSOLUTE_PATH = re.compile(r"/[^/\s]|~[\w.-]*/|[A-Za-z]:[\\/]|\\\\|file:")


def plain(value: object, where: str) -> object:
    """Turn a value into plain JSON: numpy scalars and tuples are converted, what else JSON lacks is refused.

    Raises
    ------
    StoreError
        On arrays, non-finite numbers, other files, forbidden keys, and absolute paths; the message names
        the field.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise StoreError(f"{where}: {value} is not a number that JSON can hold; use null")
        return value
    if isinstance(value, str):
        if _ABSOLUTE_PATH.match(value):
            raise StoreError(
                f"{where}: {value!r} is a path on somebody's machine; leave it out or make it relative"
            )
        if not value.isascii() and any(0xD800 <= ord(sign) <= 0xDFFF for sign in value):
            raise StoreError(f"{where}: {value!r} is not valid Unicode text")
        return str(value)
    if isinstance(value, Mapping):
        return {_key(key, where): plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{position}]") for position, item in enumerate(value)]
    raise StoreError(f"{where}: expected a plain JSON value, found {type(value).__name__}; convert it first")


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        raise StoreError(f"{where}: the key {key!r} is not text")
    if key.lower() in FORBIDDEN_KEYS:
        raise StoreError(
            f"{where}: {key!r} does not belong in provenance, which tells nothing about machines and users"
        )
    return key


def validate_provenance(provenance: Mapping[str, object], *, sealed: bool = False) -> dict[str, object]:
    """Check a group's provenance and return it as plain JSON.

    Parameters
    ----------
    provenance
        The fields of `REQUIRED`, perhaps those of `OPTIONAL`, and any others, which are kept.
    sealed
        True for the provenance of a sealed store, which has the fields of `FILLED_IN` too; else these are
        refused.

    Raises
    ------
    StoreError
        Naming the field, what was expected and what was found.
    """
    found = plain(provenance, "provenance")
    if not isinstance(found, dict):
        raise StoreError(f"provenance: expected an object, found {type(provenance).__name__}")
    required = REQUIRED | FILLED_IN if sealed else REQUIRED
    unknown = UNKNOWN_IF_IMPORTED if found.get("imported") is True else ()
    for dotted, (words, test) in required.items():
        parent, _, leaf = dotted.rpartition(".")
        holder = found if not parent else found[parent]
        if parent and holder is None:
            continue
        if leaf not in holder:
            raise StoreError(f"provenance: {dotted!r} is missing; expected {words}")
        if not test(holder[leaf]) and not (dotted in unknown and holder[leaf] is None):
            raise StoreError(f"provenance: {dotted!r} should be {words}; found {holder[leaf]!r}")
    for name, (words, test) in OPTIONAL.items():
        if name in found and not test(found[name]):
            raise StoreError(f"provenance: {name!r} should be {words}; found {found[name]!r}")
    if not sealed and (given := [name for name in FILLED_IN if name in found]):
        raise StoreError(f"provenance: {given[0]!r} is filled in at sealing; leave it out")
    return found


def validate_corpus(corpus: Mapping[str, object]) -> dict[str, object]:
    """Check what is said of the corpus (`name`, perhaps `manifest_sha256`, others) and return plain JSON."""
    found = plain(corpus, "corpus")
    if not isinstance(found, dict):
        raise StoreError(f"corpus: expected an object, found {type(corpus).__name__}")
    for name, (words, test), needed in (("name", SOME_TEXT, True), ("manifest_sha256", HEX64, False)):
        if needed and name not in found:
            raise StoreError(f"corpus: {name!r} is missing; expected {words}")
        if name in found and not test(found[name]):
            raise StoreError(f"corpus: {name!r} should be {words}; found {found[name]!r}")
    return found


def validate_licence(licence: str) -> str:
    """Check a licence that is chosen now, and return it: an SPDX expression of known ids, or NOASSERTION.

    What a store states is not held against this list, which grows from year to year: `LICENCE` is its rule.

    Raises
    ------
    StoreError
        If it is none; a licence of one's own is LicenseRef-NAME.
    """
    if licence == NO_LICENCE:
        return licence
    try:
        spelt = canonicalize_license_expression(licence)
    except InvalidLicenseExpression as error:
        raise StoreError(
            f"licence: expected {LICENCE[0]}, or LicenseRef-NAME for one of your own; found {licence!r} "
            f"({str(error).partition(': ')[0].lower()}); the ids are listed at https://spdx.org/licenses"
        ) from error
    if spelt != licence:
        raise StoreError(f"licence: {licence!r} is spelt {spelt}")
    return licence


def contrasts(a: object, b: object, where: str = "") -> list[tuple[str, str, str]]:
    """List the fields (dotted) in which two JSON values differ, with both sides as JSON, or "nothing"."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        found: list[tuple[str, str, str]] = []
        for name in sorted({*a, *b}):
            dotted = f"{where}.{name}" if where else str(name)
            found += contrasts(a.get(name, _NOTHING), b.get(name, _NOTHING), dotted)
        return found
    # As JSON, so that 1, 1.0 and true differ.
    here, there = (
        "nothing" if value is _NOTHING else json.dumps(value, sort_keys=True, ensure_ascii=False)
        for value in (a, b)
    )
    return [] if here == there else [(where, here, there)]


def clipped(value: str, longest: int = 80) -> str:
    """Cut a value that is too long for a message."""
    return value if len(value) <= longest else f"{value[: longest - 3]}..."


def differences(a: object, b: object) -> list[str]:
    """Name the fields (dotted) in which two JSON values differ."""
    return [field for field, _, _ in contrasts(a, b)]


def same_numerics(a: Mapping[str, object], b: Mapping[str, object]) -> list[str]:
    """Name the fields that forbid mixing the features of two groups; an empty list allows it.

    Every field counts but those of `NOT_NUMERICS`: a field this version does not know is taken to matter.
    """
    first, second = plain(a, "provenance"), plain(b, "provenance")
    return [field for field in differences(first, second) if field.partition(".")[0] not in NOT_NUMERICS]
