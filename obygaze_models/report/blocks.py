"""Define a report: blocks of tables, their data, pictures, and the format of cells."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from tabulate import tabulate

from obygaze_features.arguments import checked, made_by
from obygaze_features.templates import filled
from obygaze_features.text import rounded
from obygaze_features.text import signed as signed_number

NOTHING = "-"
"""Cell of a number that is undefined."""

CHANCE_ROW = "(chance)"
"""First cell of the row with the chance level of each column."""


class Dot(NamedTuple):
    """A number that a page draws, with its interval from `low` to `high`; `name` is that of its row."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Block:
    """One table: title, notes, cells as text, and the numbers that a page draws.

    Attributes
    ----------
    title : str
    headers : tuple of str
    rows : tuple of tuple of str
        Cells of each row.
    notes : tuple of str
    dots : tuple of Dot
        The numbers of the first column that has intervals, one for each row; empty if there is none.
    measured : str
        Heading of that column.
    reference : float or None
        The value in that column at chance, or at no difference.
    has_differences : bool
        Whether that column is of differences, whose reference is no difference.
    yardsticks : set of str
        First cells of the rows that only serve comparison, such as baselines; a page draws them paler.
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    dots: tuple[Dot, ...] = ()
    measured: str = ""
    reference: float | None = None
    has_differences: bool = False
    yardsticks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure of a report.

    Attributes
    ----------
    name : str
        Stem of the figure's files.
    caption : str
    draw : callable
        Draws the figure as a .pdf, .png or .svg file, given its path; as all three if the path has none of
        these suffixes.
    """

    name: str
    caption: str
    draw: Callable[[Path], None]


@made_by("run_report(RUN)")
@dataclass(frozen=True, eq=False)
class Report:
    """The report of an evaluation, an audit, a task or an experiment.

    Attributes
    ----------
    name : str
        Stem of the files.
    title : str
    notes : tuple of str
        Caption of the whole report: how the numbers were computed, and their limits.
    blocks : tuple of Block
    data : DataFrame
        The numbers of all blocks, unrounded, in long form.
    record : mapping
        JSON values that record how the numbers were computed.
    pictures : tuple of Picture
    titles : mapping of str to str
        Titles of models, for tables in LaTeX; other formats show the models' names.
    answers : tuple of str
        Sentences that say what was found.
    remarks : tuple of str
        Sentences that a command prints in addition; they are in no file.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> report = om.run_report(om.evaluate(data, {"linear": om.linear_probe()}, "hn_s"))
    >>> report.title
    'HN vs S, tested on HN vs S'
    >>> report.blocks[-1].headers[:2]
    ('model', 'F1 (positive)')
    """

    name: str
    title: str
    notes: tuple[str, ...]
    blocks: tuple[Block, ...]
    data: pd.DataFrame
    record: Mapping[str, object]
    pictures: tuple[Picture, ...] = field(default=())
    titles: Mapping[str, str] = field(default_factory=dict)
    answers: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def caption(self) -> tuple[str, ...]:
        """Sentences above the tables: the answers, then the notes."""
        return (*self.answers, *self.notes)

    def _repr_html_(self) -> str:
        """Write notes and tables as HTML, every text escaped; of figures only the captions are shown."""
        return filled(
            __package__,
            "assets/notebook.html.jinja",
            {"report": self},
            filters={"escaped": escape, "table": _html_table},
        ).rstrip()


def _html_table(block: Block) -> str:
    """Format the cells of a block as an HTML table."""
    return tabulate(block.rows, block.headers, tablefmt="html", disable_numparse=True)


@checked
def number(value: float | None, digits: int = 3) -> str:
    """Format a number with a fixed number of decimals; "undefined" for NaN, a dash for None.

    Halves go up, as in sentences (`rounded`).
    """
    if value is None:
        return NOTHING
    if math.isnan(value):
        return "undefined"
    return rounded(value, digits)


@checked
def mean_sd(values: Sequence[float]) -> str:
    """Format the mean of values and, if there are several, their standard deviation (not standard error).

    Undefined values (NaN) are left out and counted.

    Examples
    --------
    >>> from obygaze_models.report.blocks import mean_sd
    >>> mean_sd([0.5, 0.7, float("nan")])
    '0.600 (0.100) [1 undefined]'
    """
    defined = [value for value in values if not math.isnan(value)]
    if not defined:
        return "undefined"
    text = number(float(np.mean(defined)))
    if len(values) > 1:
        text += f" ({number(float(np.std(defined)))})"
    n_undefined = len(values) - len(defined)
    if n_undefined:
        text += f" [{n_undefined} undefined]"
    return text


@checked
def interval(value: float, low: float, high: float, *, signed: bool = False) -> str:
    """Format a number with its interval, as "0.700 [0.600, 0.800]"; with `signed`, numbers have a sign.

    The word "undefined" stands for a NaN: for the number, or for the interval if its low end is NaN.
    """
    if math.isnan(value):
        return "undefined"
    text = _three_decimals(value, signed=signed)
    if math.isnan(low):
        return f"{text} [undefined]"
    return f"{text} [{_three_decimals(low, signed=signed)}, {_three_decimals(high, signed=signed)}]"


def _three_decimals(value: float, *, signed: bool) -> str:
    """Format a number with three decimals and, with `signed`, a sign; 0 is always positive."""
    return signed_number(value, digits=3) if signed else rounded(value, digits=3)


@checked
def cell(value: object) -> str:
    """Format any value as the text of a cell: floats with four significant digits, a dash for None."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return "undefined"
    return f"{value:.4g}"


# --- tables by columns
# ---------------------------------------------------------------------------
Column = tuple[str, str | tuple[str | int, ...], Callable[..., str]]
"""Heading, the key or keys of a row that the column shows, and the function that formats their values."""

signed = partial(interval, signed=True)
"""Formats a difference with its interval."""

FORMATS_WITH_INTERVAL = (interval, signed)
"""Functions that format a value with its interval; a column that uses one can be drawn."""


@checked
def p_value(value: float | None) -> str:
    """Format a p-value with four decimals; smaller ones as "< .0001", since no p is 0."""
    if value is not None and value < 1e-4:
        return "< .0001"
    return number(value, digits=4)


@checked
def block(
    title: str,
    columns: Sequence[Column],
    rows: Iterable[Mapping[Any, Any]],
    notes: Sequence[str] = (),
    last: Sequence[Sequence[str]] = (),
    *,
    reference: float | None = None,
) -> Block:
    """Make a table of a report from rows of values, with a function for each column that formats them.

    Parameters
    ----------
    title : str
    columns : sequence of Column
        For each column its heading, the keys of its values in a row, and the function that formats them.
    rows : iterable of mapping
        Key -> value of each row.
    notes : sequence of str
    last : sequence of sequence of str
        Further rows at the end, of cells that are formatted already.
    reference : float, optional
        The value at chance in the first column that has intervals; not used for a column of differences,
        where it is 0.
    """
    rows = list(rows)
    headers = tuple(heading for heading, _, _ in columns)
    cells = tuple(tuple(_row_cells(row, columns)) for row in rows)
    last_cells = tuple(tuple(texts) for texts in last)
    table = Block(title, headers, (*cells, *last_cells), tuple(notes))

    # A page draws the numbers of one column, the first that has intervals, as dots beside a line for chance.
    drawn_column = _find_drawn_column(columns)
    if drawn_column is None:
        return table
    heading, keys, format_cell = columns[drawn_column]
    has_differences = format_cell is signed  # only differences are written with a sign
    return replace(
        table,
        dots=_make_dots(table, rows, keys, drawn_column),
        measured=heading,
        reference=0.0 if has_differences else reference,
        has_differences=has_differences,
    )


def _find_drawn_column(columns: Sequence[Column]) -> int | None:
    """Return the index of the column that a page draws: the first with intervals; None without any."""
    for index, (_, _, format_cell) in enumerate(columns):
        if format_cell in FORMATS_WITH_INTERVAL:
            return index
    return None


def _make_dots(
    table: Block,
    rows: Sequence[Mapping[Any, Any]],
    keys: str | tuple[str | int, ...],
    drawn_column: int,
) -> tuple[Dot, ...]:
    """Return the numbers that a page draws, each under the name of its row.

    A row is named by its first cells, as many as are needed to tell all rows apart (`n_key_columns`). Only
    cells before the drawn column are used or, if this is the first column, its own.

    Parameters
    ----------
    table : Block
        Its rows are `rows` as text, and may have further rows after them, which are not drawn.
    rows : sequence of mapping
        Key -> value of each row.
    keys : str or tuple
        The keys of value, low and high end: one key if it is for all three, as of a column `Column`.
    drawn_column : int
        Index of the column.
    """
    value_key, low_key, high_key = _column_keys(keys)
    max_cells_of_name = max(drawn_column, 1)
    n_cells_of_name = min(n_key_columns(table.headers, table.rows), max_cells_of_name)
    dots = []
    # Not strict: rows of the table after those of `rows` are left out.
    for row, cells in zip(rows, table.rows, strict=False):
        name = " ".join(cells[:n_cells_of_name])
        dots.append(Dot(name, float(row[value_key]), low=float(row[low_key]), high=float(row[high_key])))
    return tuple(dots)


def _row_cells(row: Mapping[Any, Any], columns: Sequence[Column]) -> Iterator[str]:
    """Yield the formatted cells of a row, one for each column."""
    for _, keys, format_cell in columns:
        values = [row[key] for key in _column_keys(keys)]
        yield format_cell(*values)


def _column_keys(keys: str | tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return the keys of a column as a tuple, also if it has a single key."""
    if isinstance(keys, str):
        return (keys,)
    return keys


def n_key_columns(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return how many leading columns are needed to tell all rows apart.

    The last column is not counted, as a table has a value beside the names of its rows. If the other columns
    do not tell the rows apart, the first one names them.

    Examples
    --------
    >>> n_key_columns(["task", "model", "AUC"], [["a", "mlp", ".7"], ["b", "mlp", ".7"]])
    1
    >>> n_key_columns(["task", "model", "AUC"], [["a", "mlp", ".7"], ["a", "svm", ".7"]])
    2
    """
    for n_columns in range(1, len(headers)):
        different_keys = {tuple(row[:n_columns]) for row in rows}
        if len(different_keys) == len(rows):
            return n_columns
    return 1
