"""Read values of JSON that another tool wrote, whatever stands in the place of what is expected."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeVar

from obygaze_features.manifest.spans.instant import with_ascii_digits
from obygaze_features.manifest.spans.one_line import one_line

_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{0,30})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
J = TypeVar("J")


def json_of(text: str) -> Any:
    """Read JSON, and refuse an object that has a name twice: Python would silently keep the last value.

    Raises
    ------
    ValueError
        It is no JSON, or a name is there twice.
    """

    def with_names_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Make an object of its (name, value) pairs."""
        value = dict(pairs)
        has_name_twice = len(value) < len(pairs)
        if has_name_twice:
            [(name, _)] = Counter(name for name, _ in pairs).most_common(1)
            raise ValueError(f"{name!r:.60} is there twice")
        return value

    return json.loads(text, object_pairs_hook=with_names_once)


def json_in(text: str, kind: type[J]) -> J | None:
    """Read a line or a cell as JSON of one type, such as a list; None if it is no JSON or of another type."""
    try:
        value = json_of(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, kind) else None


def number(value: object) -> float:
    """Read a number from a JSON number or a text; NaN if the value is neither."""
    # true and false are numbers for Python, but not for JSON.
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    text = with_ascii_digits(str(value).strip())
    return float(text) if _NUMBER.fullmatch(text) else math.nan


def object_of(value: Any) -> dict[str, Any]:
    """Return a value if it is a JSON object; else {}."""
    return value if isinstance(value, dict) else {}


def objects_of(value: Any) -> list[dict[str, Any]]:
    """Return the items of a list as objects; an item that is no object becomes an empty one.

    None gives an empty list, and any other value that is no list gives a list with one empty object, so that
    it is counted as one record that cannot be read.
    """
    if isinstance(value, list):
        return [object_of(item) for item in value]
    return [] if value is None else [{}]


def text_of(value: Any) -> str:
    """Write a text, a number or a list of them on one line, joined by `;`."""
    texts = [one_line(str(item)) for item in items_of(value) if isinstance(item, str | int | float)]
    return ";".join(text for text in texts if text)


def items_of(value: Any) -> Iterator[Any]:
    """Yield a value, or the items of a list and of all lists in it, however deep they are.

    Examples
    --------
    >>> list(items_of([1, [2, [3]]])), list(items_of("a"))
    ([1, 2, 3], ['a'])
    """
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(reversed(item))
        else:
            yield item
