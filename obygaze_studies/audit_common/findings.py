"""Define the findings of audits and benchmark tasks, and turn them into reports."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import Any, ParamSpec

import pandas as pd

from obygaze_features.io import refuse_existing, write_whole
from obygaze_features.lines import csv_line
from obygaze_features.text import counted
from obygaze_models.report import NOTHING, Block, Column, Picture, Report, block, cell

P = ParamSpec("P")

Rows = Sequence[Mapping[str, object]]
"""A tidy table: the same columns in every row; None where something does not apply."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The results of an audit.

    Attributes
    ----------
    rows
        Everything that was measured; `Report.data` keeps the values unchanged.
    table_rows
        Rows of the main table, if they differ from `rows`.
    columns
        Columns of the main table after those of the `Wording`.
    blocks
        Tables after the main one.
    sentence_values
        Values to fill into the sentence of the `Wording`; by default those of the first row.
    record
        The inputs and options of the audit, enough to repeat it.
    summary
        Results that describe the rows as a whole, kept in the record.
    notes
        Notes that readers need for the whole report.
    table_notes
        Notes that readers need for the main table.
    remarks
        Messages to print, which the report does not keep.
    draw
        Function that draws the figure into a file.
    """

    rows: Rows
    table_rows: Rows | None = None
    columns: Sequence[str] = ()
    blocks: Sequence[Block] = ()
    sentence_values: Mapping[str, object] | None = None
    record: Mapping[str, object] = field(default_factory=dict)
    summary: Mapping[str, object] | None = None
    notes: Sequence[str] = ()
    table_notes: Sequence[str] = ()
    remarks: Sequence[str] = ()
    draw: Callable[[Path], None] | None = None


@dataclass(frozen=True, kw_only=True)
class Wording:
    """The texts of an audit's report, the same for every `Finding` of it.

    Attributes
    ----------
    name
        Name of the audit, as in commands and file names.
    title
        Title of the report.
    table
        Title of the main table, with fields for the values in `Finding.record`.
    columns
        Columns of the main table.
    sentence
        The result in one sentence, with fields for the values in `Finding.sentence_values`. A field may give
        the noun of a number, and its plural if that is not the noun with an s: {n:map}, {n:test has|tests
        have}.
    source
        The publication that the audit follows.
    figure
        Caption of the figure.
    """

    name: str
    title: str
    table: str = ""
    columns: Sequence[str] = ()
    sentence: str = ""
    source: str = ""
    figure: str = ""


def report(wording: Wording, finding: Finding) -> Report:
    """Make the report of an audit from its texts (`wording`) and its results (`finding`)."""
    title = wording.table.format(**finding.record)
    shown_rows = finding.rows if finding.table_rows is None else finding.table_rows
    shown_columns = [*wording.columns, *finding.columns]
    main_table = table(title, shown_rows, shown_columns, finding.table_notes)

    source_notes = [wording.source] if wording.source else []
    record = {"audit": wording.name, **finding.record, "source": wording.source}
    if finding.summary:
        record["summary"] = dict(finding.summary)

    pictures = []
    if finding.draw:
        pictures.append(Picture(wording.name, wording.figure, finding.draw))
    answers = []
    if wording.sentence:
        answers.append(_filled_sentence(wording, finding))

    return Report(
        name=wording.name,
        title=wording.title,
        notes=(*source_notes, *finding.notes),
        blocks=(main_table, *finding.blocks),
        # Python objects, since a typed column with None would turn whole numbers and booleans into floats.
        data=pd.DataFrame([dict(row) for row in finding.rows], dtype=object),
        record=record,
        pictures=tuple(pictures),
        answers=tuple(answers),
        remarks=tuple(finding.remarks),
    )


class _WholeNumber(int):
    """A whole number that a sentence may have with its noun: "{n:map}" gives "1 map" or "1,200 maps"."""

    def __format__(self, noun: str) -> str:
        """Write the number with its noun: "{n:clip}" is "1 clip" or "2 clips".

        The texts of findings, in which numbers are filled in, state the noun where Python has the format of a
        number: so a text does not need to know whether there is one or several. A plural that is not made by
        an s stands behind a bar: "{n:story|stories}".
        """
        if noun in {"", ","}:  # Python's formats for numbers without a noun
            return format(int(self), noun)
        singular, _, plural = noun.partition("|")
        return counted(self, singular, plural)


def _filled_sentence(wording: Wording, finding: Finding) -> str:
    """Fill a finding's values into the sentence of its wording.

    A field of a whole number may have a format: {n:,}, or a noun (see `Wording`). All other values become
    texts, as in the cells of a table.
    """
    values = finding.rows[0] if finding.sentence_values is None else finding.sentence_values
    filled: dict[str, object] = {}
    for name, value in values.items():
        filled[name] = _WholeNumber(value) if isinstance(value, int) else cell(value)
    return wording.sentence.format(**filled)


def audited(wording: Wording) -> Callable[[Callable[P, Finding]], Callable[P, Report]]:
    """Decorate an audit that returns a `Finding`, so that it returns a `Report` with this wording."""

    def declare(function: Callable[P, Finding]) -> Callable[P, Report]:
        """Wrap a function that computes a finding, so that it returns the report of it."""

        @wraps(function)
        def run(*arguments: P.args, **options: P.kwargs) -> Report:
            """Compute the finding, and make its report."""
            return report(wording, function(*arguments, **options))

        return run

    return declare


def columns_of_keys(names: Iterable[str]) -> list[Column]:
    """Make the columns of a table from the keys of its rows: each key is a heading, with blanks for `_`."""
    return [(name.replace("_", " "), name, cell) for name in names]  # `cell` formats the values


def part_of_total(part: int, total: int) -> str:
    """Format a count with its total, as "3 of 5"."""
    return f"{part} of {total}"


def share(value: float | None) -> str:
    """Format a share between 0 and 1 in percent with one decimal, as "12.3%"; a dash for None."""
    if value is None:
        return NOTHING
    return f"{value:.1%}"


def table(title: str, rows: Rows, columns: Sequence[str], notes: Sequence[str] = ()) -> Block:
    """Make a table of some columns of the rows."""
    return block(title, columns_of_keys(columns), rows, notes)


def series_of(
    rows: Rows, name: str, *, condition: str, group: str, groups: Sequence[object], missing: float = math.nan
) -> dict[str, Any]:
    """Arrange a column of a table as the series of `draw_bars`: condition -> its value in each group.

    Parameters
    ----------
    rows
        A row for each condition and group.
    name
        Name of the column of the values.
    condition, group
        Names of the columns that hold the condition and the group of a row.
    groups
        All groups, in the order of the bars.
    missing
        Value of a group that has no row of a condition.
    """
    value_of_bar: dict[tuple[str, object], Any] = {}  # (condition, group) -> value
    for row in rows:
        value_of_bar[str(row[condition]), row[group]] = row[name]

    conditions = dict.fromkeys(str(row[condition]) for row in rows)  # each once, in order
    series = {}
    for condition_name in conditions:
        bars = [(condition_name, group_name) for group_name in groups]
        series[condition_name] = [value_of_bar.get(bar, missing) for bar in bars]
    return series


def drawn_by(name: str, **options: Any) -> Callable[[Path], None]:
    """Return a function that draws a chart into the file that it is given.

    The module `charts` is imported only when the function is called, because matplotlib is slow to import.

    Parameters
    ----------
    name
        Function of `charts` that draws.
    options
        Its arguments, without the path.
    """

    def draw(path: Path) -> None:
        """Draw the chart to a file; matplotlib is only imported here."""
        getattr(import_module("obygaze_studies.audit_common.charts"), name)(path=path, **options)

    return draw


bar_chart = partial(drawn_by, "draw_bars")
"""Return a function that draws groups of bars into a file; its options are those of `charts.draw_bars`."""


def write_rows(rows: Iterable[Sequence[str]], path: Path, noun: str, *, force: bool) -> str:
    """Write rows of texts, the header first, to a CSV file, and return a sentence that counts them.

    Parameters
    ----------
    rows
        The header, then the rows.
    path
        The file.
    noun
        What a row holds, in the plural, for the sentence.
    force
        Whether an existing file is replaced.
    """
    lines = [csv_line(list(cells)) for cells in rows]
    refuse_existing(path, force=force)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "".join(lines))
    return f"{len(lines) - 1} {noun} kept in {path}"
