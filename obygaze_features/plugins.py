"""Find what installed packages add to our lists: entry points of a group that name objects of one class."""

from importlib.metadata import entry_points
from typing import TypeVar

from obygaze_features.errors import ObygazeError

__all__ = ["offered"]
T = TypeVar("T")


def offered(group: str, kind: type[T]) -> dict[str, T]:
    """Load the entry points of a group: name -> object.

    Raises
    ------
    ObygazeError
        One names an object of another class.
    """
    found: dict[str, T] = {}
    for point in entry_points(group=group):
        value = point.load()
        if not isinstance(value, kind):
            raise ObygazeError(f"entry point {point.name} of {group}: expected a {kind.__name__}")
        found[point.name] = value
    return found
