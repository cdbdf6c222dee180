"""A report as a value: blocks of tables with captions, the numbers behind them, and pictures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd


@dataclass(frozen=True, slots=True)
class Block:
    """One table: what it shows, what is to be known of it, and its cells as text."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure: the stem of its files, its caption, and what draws it into a .png or .svg file."""

    name: str
    caption: str
    draw: Callable[[Path], None]


@dataclass(frozen=True, eq=False)
class Report:
    """A table or figure of the papers, redone.

    Attributes
    ----------
    name : str
        Stem of the files.
    title : str
    notes : tuple of str
        The caption of it all.
    blocks : tuple of Block
    data : DataFrame
        The numbers of all blocks, unrounded, in long form.
    record : mapping
        JSON values: how it came about.
    pictures : tuple of Picture
    """

    name: str
    title: str
    notes: tuple[str, ...]
    blocks: tuple[Block, ...]
    data: pd.DataFrame
    record: Mapping[str, object]
    pictures: tuple[Picture, ...] = field(default=())
