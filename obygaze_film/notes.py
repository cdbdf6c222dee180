"""Write notes in English that pages and the desk can say in other languages (`claims.Words.again`)."""

import tomllib
from collections.abc import Mapping
from functools import cache

from obygaze_models.report import asset


class Said(str):
    """A note in English that can be said in another language."""

    __slots__ = ("key", "values")
    key: str
    values: Mapping[str, object]


def said(key: str, **values: object) -> Said:
    """Write a note."""
    text = Said(texts("en")[key].format(**values))
    text.key = key
    text.values = values
    return text


@cache
def texts(language: str) -> dict[str, str]:
    """Read the notes of a language."""
    return tomllib.loads(asset(f"notes.{language}.toml", "obygaze_film"))


LATER = said("later_name")
"""Name of the trend of years."""
