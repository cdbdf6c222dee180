"""Find the gender that a caption names, and swap it for the other (Sabir & Padró, 2023)."""

import re
from typing import Literal

from obygaze_studies.words import tokens

Gender = Literal["man", "woman"]
GENDERS: tuple[Gender, Gender] = ("man", "woman")
PLURALS = ("men", "women")
MASKS = ("[MASK]", "<MASK>")

_WORD = re.compile(r"(?<![^ ])([.,]*)(?:man|woman)([.,]*)(?![^ ])", re.IGNORECASE)
"""A token that names a gender, with the stops and commas that `tokens` ignores."""


def named(caption: str) -> tuple[Gender, ...]:
    """Return the genders that a caption names by the words man and woman: none, one or both."""
    found = tokens(caption)
    return tuple(gender for gender in GENDERS if gender in found)


def has_mask(caption: str) -> bool:
    """Return whether a caption has a mask in the place of a gender."""
    return any(mask in caption for mask in MASKS)


def filled(caption: str, gender: Gender) -> str:
    """Put a gender into a caption: for its masks or, where it has none, for the gender words it has."""
    if has_mask(caption):
        for mask in MASKS:
            caption = caption.replace(mask, gender)
        return caption
    return _WORD.sub(rf"\g<1>{gender}\g<2>", caption)


def share(part: float, other: float) -> float | None:
    """Return the part of both, or None if both are 0."""
    return part / (part + other) if part + other else None
