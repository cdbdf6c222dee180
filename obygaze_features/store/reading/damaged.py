"""Reading what may be damaged or gone: one error that says where, and what to run."""

from collections.abc import Callable
from typing import TypeVar

from obygaze_features.store.errors import StoreError
from obygaze_features.store.reading.objects import Objects

T = TypeVar("T")

UNREADABLE = (ValueError, KeyError, TypeError, IndexError, AttributeError, RuntimeError, NotImplementedError)
"""What zarr and JSON raise for bytes that are not what they should be."""


def whole(objects: Objects, name: str) -> bytes:
    """Read a file that every store has."""
    try:
        return objects.read(name)
    except (FileNotFoundError, IsADirectoryError):
        hint = ", or not at this URL: its name ends in the version, as films-1.0.0" * ("://" in objects.where)
        raise StoreError(f"{objects.where}/{name}: missing; this is not a whole store{hint}") from None


def guarded(where: str, read: Callable[[], T], *, store: str | None = None) -> T:
    """Read something; whatever damaged bytes make of it becomes a StoreError that says where.

    `store` is what to verify, where it is not `where` itself.
    """
    try:
        return read()
    except StoreError:
        raise
    except UNREADABLE as error:
        raise StoreError(
            f"{where}: damaged ({_first_line(error)}); run: obygaze store verify {store or where}"
        ) from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
