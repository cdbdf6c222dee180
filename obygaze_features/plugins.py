"""Find what installed packages add to our lists: entry points of a group that name objects of one class."""

import sys
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from obygaze_features.errors import ObygazeError

T = TypeVar("T")


def points(group: str) -> tuple[EntryPoint, ...]:
    """List the entry points of a group, as they were when this process first looked at its path."""
    return _points(group, tuple(sys.path))


@cache
def _points(group: str, _path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group))


def offered(group: str, kind: type[T]) -> dict[str, T]:
    """Load the entry points of a group: name -> object.

    Raises
    ------
    ObygazeError
        One names an object of another class.
    """
    found: dict[str, T] = {}
    for point in points(group):
        value = point.load()
        if not isinstance(value, kind):
            raise ObygazeError(f"entry point {point.name} of {group}: expected a {kind.__name__}")
        found[point.name] = value
    return found
