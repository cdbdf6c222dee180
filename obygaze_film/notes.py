"""Write messages in English that pages and the desk can show in other languages (`Words.translated`)."""

import tomllib
from collections.abc import Mapping
from functools import cache

from obygaze_features.templates import packaged_text


class Message(str):
    """A text in English that can be written in another language: it keeps what it was made of.

    Attributes
    ----------
    key : str
        Key of the text in each language (`texts`).
    values : mapping of str to object
        Field of the text -> value that is filled in.
    """

    __slots__ = ("key", "values")
    key: str
    values: Mapping[str, object]


def message(key: str, **values: object) -> Message:
    """Write the English text of a key, with values in its fields, so that it can be translated later.

    Parameters
    ----------
    key : str
        Name of the text in `assets/notes.en.toml` (`texts`).
    **values
        Field of the text -> what is written for it.
    """
    text = Message(texts("en")[key].format(**values))
    text.key = key
    text.values = values
    return text


def counted_message(key: str, n: int, **values: object) -> Message:
    """Write a message about n things, as `message` does; 1 may have a text of its own, ``KEY_1``."""
    singular = f"{key}_1"
    if n == 1 and singular in texts("en"):
        return message(singular, n=n, **values)
    return message(key, n=n, **values)


def judge_name(name: str) -> str:
    """Return the name of a judge, or what to call one whose name is empty."""
    return name or "a judge without a name"


@cache
def texts(language: str) -> dict[str, str]:
    """Read the texts of a language: key -> text with fields in braces."""
    return tomllib.loads(packaged_text("obygaze_film", "assets", f"notes.{language}.toml"))


LATER = message("later_name")
"""Name of the trend of years."""
