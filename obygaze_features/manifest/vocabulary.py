"""The words of the annotation: levels, concepts, and how published files spell them."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import StrEnum

from .errors import ManifestError


class Level(StrEnum):
    """How strongly a clip objectifies, from Easy Negative to Sure (Tores et al., CVPR 2024, section 3.3)."""

    EN = "EN"
    HN = "HN"
    NS = "NS"
    S = "S"

    @property
    def rank(self) -> int:
        """Severity, 0 (EN) to 3 (S): levels are strings, so compare ranks and not levels."""
        return LEVELS.index(self)


LEVELS: tuple[Level, ...] = (Level.EN, Level.HN, Level.NS, Level.S)
"""All levels by rising severity."""

LEVEL_TITLES: Mapping[Level, str] = {
    Level.EN: "Easy Negative",
    Level.HN: "Hard Negative",
    Level.NS: "Not Sure",
    Level.S: "Sure",
}

VISUAL_CONCEPTS: tuple[str, ...] = (
    "Type of shot",
    "Look",
    "Body",
    "Posture",
    "Clothing",
    "Appearance",
    "Expression of emotion",
    "Activity",
)
"""The eight visual concepts, in the order of Table 1 (Tores et al., CVPR 2024)."""

NON_VISUAL_CONCEPTS: tuple[str, ...] = ("Speech", "Voice", "Soundtrack", "Narratology")
"""What annotators also used, and what no image shows."""

CONCEPTS: tuple[str, ...] = VISUAL_CONCEPTS + NON_VISUAL_CONCEPTS
"""Every concept, in the canonical order."""

LEVEL_SPELLINGS: Mapping[str, Level] = {
    **{title: level for level, title in LEVEL_TITLES.items()},
    "Easy Neg": Level.EN,
    "Hard Neg": Level.HN,
}
"""How ObyGaze12 and MObyGaze spell the levels."""

CONCEPT_SPELLINGS: Mapping[str, str] = {
    "Type of plan": "Type of shot",
    "Clothes": "Clothing",
    "Exp of emotion": "Expression of emotion",
    "Exp. of emotion": "Expression of emotion",
    "Activities": "Activity",
}
"""How ObyGaze12, MObyGaze and Table 1 spell the concepts that we spell otherwise; stray spaces apart."""


def level_named(name: str) -> Level:
    """Find a level by its exact name, as in a manifest.

    Raises
    ------
    ManifestError
        If no level has this name; the message suggests the nearest one.
    """
    try:
        return Level(name)
    except ValueError:
        raise ManifestError(f"unknown level {name!r}{_suggestion(name, _LEVEL_HINTS)}", "level") from None


def level_spelled(text: str) -> Level:
    """Find a level by its name or by a published file's spelling of it."""
    level = _LEVEL_HINTS.get(_plain(text))
    return level if level is not None else level_named(text)


def concept_named(name: str) -> str:
    """Return a concept's name if it is exactly one of ours.

    Raises
    ------
    ManifestError
        If no concept has this name; the message suggests the nearest one.
    """
    if name not in CONCEPTS:
        raise ManifestError(f"unknown concept {name!r}{_suggestion(name, _CONCEPT_HINTS)}", "concepts")
    return name


def concept_spelled(text: str) -> str:
    """Find a concept's name from our name or from a published file's spelling, stray spaces and all."""
    concept = _CONCEPT_HINTS.get(_plain(text))
    return concept if concept is not None else concept_named(text)


def in_order(concepts: Iterable[str]) -> tuple[str, ...]:
    """Put concepts in canonical order, each once."""
    return tuple(sorted(set(concepts), key=CONCEPTS.index))


def visual(concepts: Iterable[str]) -> tuple[str, ...]:
    """Keep the visual concepts."""
    return tuple(concept for concept in concepts if concept in VISUAL_CONCEPTS)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


_LEVEL_HINTS: Mapping[str, Level] = {
    **{_plain(spelling): level for spelling, level in LEVEL_SPELLINGS.items()},
    **{_plain(level): level for level in LEVELS},
}
_CONCEPT_HINTS: Mapping[str, str] = {
    **{_plain(spelling): concept for spelling, concept in CONCEPT_SPELLINGS.items()},
    **{_plain(concept): concept for concept in CONCEPTS},
}


def _suggestion(text: str, hints: Mapping[str, str]) -> str:
    near = get_close_matches(_plain(text), list(hints), n=1)
    if near:
        return f" (did you mean {str(hints[near[0]])!r}?)"
    return " (expected one of " + ", ".join(dict.fromkeys(str(name) for name in hints.values())) + ")"
