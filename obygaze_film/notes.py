"""Write notes in English that pages and the desk can say in other languages (`claims.Words.again`)."""

import tomllib
from collections.abc import Mapping
from functools import cache

from obygaze_features.templates import packaged_text


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


def said_counted(key: str, n: int, **values: object) -> Said:
    """Write a note on a number of things: of one the note may be one of its own."""
    own = f"{key}_1"
    return said(own if n == 1 and own in texts("en") else key, n=n, **values)


def judge_name(name: str) -> str:
    """Write the name of a judge, who may have none."""
    return name or "a judge without a name"


@cache
def texts(language: str) -> dict[str, str]:
    """Read the notes of a language."""
    return tomllib.loads(packaged_text("obygaze_film", "assets", f"notes.{language}.toml"))


LATER = said("later_name")
"""Name of the trend of years."""
