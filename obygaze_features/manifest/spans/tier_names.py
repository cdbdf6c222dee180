"""Name tiers: those that people and models write on, and how names of tiers are compared."""

from collections.abc import Collection, Mapping
from typing import Final

from obygaze_features.manifest.spans.names import plain

LEVEL_TIER, CONCEPT_TIER = "human: level", "human: concepts"
"""Tiers that people write on, beside what a model's export wrote; no export of a model has these names."""

NAMED: Final[Mapping[str, str]] = {
    LEVEL_TIER: "levels",
    CONCEPT_TIER: "concepts",
    "level": "levels",
    "levels": "levels",
    "concept": "concepts",
    "concepts": "concepts",
}
"""Names of tiers that say their role."""

DECIDED_LEVEL, DECIDED_CONCEPTS = "human: decision level", "human: decision concepts"
DECIDED: Final[Mapping[str, str]] = {DECIDED_LEVEL: "levels", DECIDED_CONCEPTS: "concepts"}
"""Tiers on which annotators' conflicts are decided; they are read where they are named alone."""

MODEL = "obygaze"
"""Begins the names of tiers and of header properties that a model's export wrote."""


def tier_key(name: str) -> str:
    """Fold the name of a tier: case, accents' forms and blanks do not count."""
    return plain(name).replace(" ", "")


def without_annotator(name: str) -> str:
    """Return what stands before the `@` of a tier's name, where something does; an annotator is behind it.

    Examples
    --------
    >>> without_annotator("level@AB"), without_annotator("@AB"), without_annotator("words")
    ('level', '@AB', 'words')
    """
    return name.partition("@")[0].strip() or name


def key_among(name: str, keys: Collection[str]) -> str:
    """Find the key of a tier, of its whole name or of what stands before its `@`; "" if there is none."""
    for key in (tier_key(name), tier_key(name.partition("@")[0])):
        if key in keys:
            return key
    return ""


def is_of_a_model(name: str) -> bool:
    """Return whether a tier, or a label, was written by a model's export."""
    return plain(name).startswith(f"{MODEL}:")
