"""Write cells of the studies' tables."""

from collections.abc import Iterable

from obygaze_models.report import NOTHING, Column, cell

__all__ = ["of", "plain", "share"]


def plain(names: Iterable[str]) -> list[Column]:
    """Make columns whose headings are their keys, written as `cell` does."""
    return [(name.replace("_", " "), name, cell) for name in names]


def of(part: int, whole: int) -> str:
    """Write a part of a whole."""
    return f"{part} of {whole}"


def share(value: float | None) -> str:
    """Write a share in percent."""
    return NOTHING if value is None else f"{value:.1%}"
