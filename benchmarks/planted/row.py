"""What a row is, how it is run, and how its table comes into a page."""

import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tabulate import tabulate

Floats = NDArray[np.float64]
Draw = Mapping[str, Any]
"""What one corpus gives, by column: a number or several. True and False make shares, NaN is undefined."""

ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True)
class Column:
    """A stated figure: its mean over corpora lies within bounds, in every cell.

    Attributes
    ----------
    low, high : float
        The bounds that the page states; by default the figure is shown and not bounded.
    digits : int
        Decimals shown.
    signed : bool
        Whether a figure, as a difference of two, is printed with its sign.
    """

    low: float = -np.inf
    high: float = np.inf
    digits: int = 3
    signed: bool = False

    @property
    def is_bounded(self) -> bool:
        """Whether the page states a bound."""
        return bool(np.isfinite([self.low, self.high]).any())

    def beyond(self, value: float) -> float:
        """Compute how far a value lies outside the bounds; below 0 it is inside."""
        return float(max(self.low - value, value - self.high))


@dataclass(frozen=True)
class Cell:
    """One world: what the page calls it, the arguments of the draw, and bounds of its own by column.

    Cells of one name share a line.
    """

    name: tuple[str, ...]
    arguments: tuple[Any, ...] = ()
    bounds: Mapping[str, Column] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One claim beside a number.

    Attributes
    ----------
    name, page : str
        The block's name, and its page.
    command : str
        The public command, or function, that is asked.
    statement : str
        What the figures are, in a sentence; the page has it above the table.
    heads : tuple of str
        What the parts of cells' names are.
    cells : sequence of Cell
    draw : callable
        Takes a random generator and a cell's arguments, gives a `Draw`.
    columns : mapping
        Stated figures by their name in draws.
    full, small : int
        Corpora drawn of each cell; ``small`` for the quick test.
    small_cells : int
        How many cells the quick test runs.
    pooled : callable, optional
        Takes the draws of a cell and gives its figures by column, where a truth is known only after all.
    corpora : str
        The row whose corpora these are; by default its own. They are drawn once.
    seed : int
    """

    name: str
    page: str
    command: str
    statement: str
    heads: tuple[str, ...]
    cells: Sequence[Cell]
    draw: Callable[..., Draw]
    columns: Mapping[str, Column]
    full: int
    small: int = 3
    small_cells: int = 3
    pooled: Callable[[list[Draw]], Draw] | None = None
    corpora: str = ""
    seed: int = 0


@dataclass(frozen=True)
class Figure:
    """A mean over corpora, its Monte-Carlo error, and how many errors it is out of bounds."""

    mean: float
    error: float
    beyond: float


@dataclass
class Result:
    """A row's figures, by cell and column, in cells' order."""

    row: Row
    n: int
    figures: list[dict[str, Figure]] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """Say what is out of bounds: a figure by more than four errors, or more than 1 in 20 by two."""
        misses = [
            (
                figure,
                f"{self.row.name}: {' '.join(cell.name)}, {column}: {figure.mean:.3f} +- {figure.error:.3f}",
            )
            for cell, figures in zip(self.row.cells, self.figures, strict=False)
            for column, figure in figures.items()
        ]
        beyond_two = [words for figure, words in misses if figure.beyond > 2]
        beyond_four = [words for figure, words in misses if figure.beyond > 4]
        return beyond_two if len(beyond_two) > max(len(misses) / 20, 1) else beyond_four

    @property
    def table(self) -> str:
        """Lay out the figures as Markdown: cells of one name on a line, as a range."""
        lines: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for cell, figures in zip(self.row.cells, self.figures, strict=False):
            for column, figure in figures.items():
                lines[cell.name][column].append(figure.mean)
        columns = self.row.columns
        cells = []
        for name, values in lines.items():
            figures_of_line = [spread(values.get(column, []), shown) for column, shown in columns.items()]
            cells.append([*name, *figures_of_line])
        return tabulate(cells, [*self.row.heads, *columns], tablefmt="github", disable_numparse=True)

    @property
    def errors(self) -> str:
        """Say the largest standard error of each column; columns of one error are named together."""
        columns_of: dict[str, list[str]] = defaultdict(list)
        for name in self.row.columns:
            errors = [figures[name].error for figures in self.figures if name in figures]
            columns_of[decimals(max(errors, default=0.0))].append(name)
        if len(columns_of) == 1:
            return next(iter(columns_of))
        return ", ".join(f"{error} ({', '.join(names)})" for error, names in columns_of.items())

    @property
    def worst(self) -> str:
        """Say the worst figure of each column that has a bound, and whose it is.

        It is the one that lies farthest beyond the column's bounds, or beyond the cells' own where the column
        has none.
        """
        parts = []
        for name, column in self.row.columns.items():
            bounded = []
            for cell, figures in zip(self.row.cells, self.figures, strict=False):
                bounds = column if column.is_bounded else cell.bounds.get(name, column)
                if bounds.is_bounded and name in figures and not np.isnan(figures[name].mean):
                    bounded.append((bounds.beyond(figures[name].mean), figures[name].mean, cell))
            if len(self.figures) > 1 and bounded:
                _, mean, cell = max(bounded, key=itemgetter(0))
                parts.append(f"{name} {decimals(mean, column)} ({', '.join(filter(None, cell.name))})")
        return f" Worst: {'; '.join(parts)}." if parts else ""

    @property
    def block(self) -> str:
        """Write what stands between the row's marks in its page."""
        source = f"`python -m benchmarks.planted {self.row.name}`"
        drawn = f"{self.n} corpora a cell, standard errors at most {self.errors}"
        return f"{self.row.statement} ({source}: {drawn}.){self.worst}\n\n{self.table}"


def decimals(value: float, column: Column = Column()) -> str:
    """Write a figure without the zero before its point."""
    text = f"{value:{'+' if column.signed else ''}.{column.digits}f}"
    return re.sub(r"^([+-]?)0(?=\.)", r"\1", text)


def spread(values: Sequence[float], column: Column) -> str:
    """Write a figure, or the range of several."""
    defined_values = [value for value in values if not np.isnan(value)]
    if not defined_values:
        return ""
    low = decimals(min(defined_values), column)
    high = decimals(max(defined_values), column)
    return low if low == high else f"{low} to {high}"


def run(row: Row, *, small: bool = False) -> Result:
    """Draw the corpora of each cell. Each has its own seed, so that no figure depends on another."""
    result = Result(row, row.small if small else row.full)
    for index, cell in enumerate(row.cells[: row.small_cells] if small else row.cells):
        seeds = (row.seed, zlib.crc32((row.corpora or row.name).encode()), index)
        draws = drawn(row.draw, cell.arguments, seeds, result.n)
        columns = {**row.columns, **cell.bounds}
        if row.pooled:
            values = row.pooled(draws)
        else:
            values = {}
            for name in row.columns:
                values[name] = [draw[name] for draw in draws if name in draw]
        result.figures.append(
            {name: figure(values[name], column) for name, column in columns.items() if name in values}
        )
    return result


def over_corpora(draws: Sequence[Draw]) -> dict[str, Any]:
    """Put the draws of each name, which all corpora have, into one array [n, ...]."""
    values: dict[str, Any] = {}
    for name in draws[0]:
        values[name] = np.array([draw[name] for draw in draws])
    return values


@lru_cache
def drawn(
    draw: Callable[..., Draw], arguments: tuple[Any, ...], seeds: tuple[int, ...], n: int
) -> list[Draw]:
    """Draw a cell's corpora."""
    return [draw(np.random.default_rng((*seeds, number)), *arguments) for number in range(n)]


def figure(values: Iterable[Any], column: Column) -> Figure:
    """Average over corpora, each with its mean of what is defined."""
    with np.errstate(invalid="ignore"):
        means = np.array(
            [np.mean(defined_draws) if len(defined_draws := defined(value)) else np.nan for value in values]
        )
    defined_draws = means[~np.isnan(means)]
    if not len(defined_draws):
        return Figure(np.nan, error=0.0, beyond=0.0)
    mean = float(defined_draws.mean())
    error = float(defined_draws.std() / np.sqrt(len(defined_draws)))
    out = column.beyond(mean)
    return Figure(mean, error, out / max(error, 1e-9) if out > 1e-9 else 0.0)


def defined(value: Any) -> Floats:
    """Give what is defined of one corpus's values."""
    values = np.atleast_1d(np.asarray(value, dtype=np.float64))
    return values[~np.isnan(values)]


def written(text: str, result: Result) -> str:
    """Put a row's block between its marks in a page's text."""
    start = f"<!-- planted: {result.row.name} -->"
    end = "<!-- end -->"
    before, mark, below = text.partition(start)
    if not mark or end not in below:
        raise SystemExit(f"{result.row.page}: no {start} with {end} below it")
    return f"{before}{start}\n{result.block}\n{end}{below.partition(end)[2]}"
