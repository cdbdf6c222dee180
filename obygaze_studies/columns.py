"""Lay out tables by their columns: a heading, the keys of what a row holds, and how it is written."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from obygaze_models.report import NOTHING, Block, cell, interval, number

__all__ = ["Column", "block", "of", "p_value", "plain", "share", "signed"]

Column = tuple[str, str | tuple[str, ...], Callable[..., str]]
"""Heading, key or keys of a row, and the function that writes their values."""

signed = partial(interval, signed=True)

p_value = partial(number, digits=4)


def block(
    title: str,
    columns: Sequence[Column],
    rows: Iterable[Mapping[Any, Any]],
    notes: Sequence[str] = (),
    last: Sequence[Sequence[str]] = (),
) -> Block:
    """Make a table of rows, with lines of text of their own as its `last`."""
    keys = [(name,) if isinstance(name, str) else name for _, name, _ in columns]
    cells = [
        tuple(write(*(row[name] for name in names)) for (*_, write), names in zip(columns, keys, strict=True))
        for row in rows
    ]
    headers = tuple(heading for heading, *_ in columns)
    return Block(title, headers, (*cells, *map(tuple, last)), tuple(notes))


def plain(names: Iterable[str]) -> list[Column]:
    """Make columns whose headings are their keys, written as `cell` does."""
    return [(name.replace("_", " "), name, cell) for name in names]


def of(part: int, whole: int) -> str:
    """Write a part of a whole."""
    return f"{part} of {whole}"


def share(value: float | None) -> str:
    """Write a share in percent."""
    return NOTHING if value is None else f"{value:.1%}"
