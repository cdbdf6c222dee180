"""What an audit or a task finds, and how it is kept."""

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
from obygaze_models.report import NOTHING, Block, Column, Picture, Report, block, cell

P = ParamSpec("P")

Rows = Sequence[Mapping[str, object]]
"""A tidy table: the same columns in every row; None where something does not apply."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What an audit finds.

    Attributes
    ----------
    rows
        All that was measured; `Report.data` keeps its values as they are.
    shown
        Rows of the table that is shown, if not these.
    columns
        Columns of it after the declared ones.
    blocks
        Tables after it.
    said
        Values of the declared sentence; by default the first row's.
    record
        What was audited and how, enough to do it again.
    summary
        What is said of the table as a whole, kept in the record.
    notes, table_notes
        What readers must know, of the whole and of the table.
    remarks
        What is printed beside and not kept.
    draw
        How to draw it.
    """

    rows: Rows
    shown: Rows | None = None
    columns: Sequence[str] = ()
    blocks: Sequence[Block] = ()
    said: Mapping[str, object] | None = None
    record: Mapping[str, object] = field(default_factory=dict)
    summary: Mapping[str, object] | None = None
    notes: Sequence[str] = ()
    table_notes: Sequence[str] = ()
    remarks: Sequence[str] = ()
    draw: Callable[[Path], None] | None = None


@dataclass(frozen=True, kw_only=True)
class Wording:
    """What is shown and said of a `Finding`.

    Attributes
    ----------
    name, title
        Of the audit.
    table, columns
        Title and columns of the table that is shown.
    sentence
        With fields, of what the finding says.
    source, figure
        Where the audit comes from; the caption of the figure.
    """

    name: str
    title: str
    table: str = ""
    columns: Sequence[str] = ()
    sentence: str = ""
    source: str = ""
    figure: str = ""


def report(wording: Wording, finding: Finding) -> Report:
    """Make the report of an audit: what is shown and said of a finding."""
    rows = finding.rows if finding.shown is None else finding.shown
    values = dict(finding.rows[0] if finding.said is None else finding.said)
    words = {name: value if isinstance(value, int) else cell(value) for name, value in values.items()}
    title = wording.table.format(**finding.record)
    main = table(title, rows, [*wording.columns, *finding.columns], finding.table_notes)
    return Report(
        name=wording.name,
        title=wording.title,
        notes=(*([wording.source] if wording.source else []), *finding.notes),
        blocks=(main, *finding.blocks),
        # Python objects: columns with None stay whole numbers, and true stays true.
        data=pd.DataFrame([dict(row) for row in finding.rows], dtype=object),
        record={"audit": wording.name, **finding.record, "source": wording.source}
        | ({"summary": dict(finding.summary)} if finding.summary else {}),
        pictures=(Picture(wording.name, wording.figure, finding.draw),) if finding.draw else (),
        answers=(wording.sentence.format(**words),) if wording.sentence else (),
        remarks=tuple(finding.remarks),
    )


def audited(wording: Wording) -> Callable[[Callable[P, Finding]], Callable[P, Report]]:
    """Let the function of an audit return its report."""

    def declare(function: Callable[P, Finding]) -> Callable[P, Report]:
        @wraps(function)
        def run(*arguments: P.args, **options: P.kwargs) -> Report:
            return report(wording, function(*arguments, **options))

        return run

    return declare


def plain(names: Iterable[str]) -> list[Column]:
    """Make columns whose headings are their keys, written as `cell` does."""
    return [(name.replace("_", " "), name, cell) for name in names]


def of(part: int, total: int) -> str:
    """Write a part of a whole."""
    return f"{part} of {total}"


def share(value: float | None) -> str:
    """Write a share in percent."""
    return NOTHING if value is None else f"{value:.1%}"


def table(title: str, rows: Rows, columns: Sequence[str], notes: Sequence[str] = ()) -> Block:
    """Show some columns of rows."""
    return block(title, plain(columns), rows, notes)


def series_of(
    rows: Rows, name: str, *, condition: str, group: str, groups: Sequence[object], missing: float = math.nan
) -> dict[str, Any]:
    """Lay out a value of rows for `draw_bars`: condition -> its value of each group, or `missing`."""
    values = {(row[condition], row[group]): row[name] for row in rows}
    series = {}
    for name_of_condition in dict.fromkeys(str(row[condition]) for row in rows):
        series[name_of_condition] = [
            values.get((name_of_condition, one_group), missing) for one_group in groups
        ]
    return series


def drawn_by(name: str, **options: Any) -> Callable[[Path], None]:
    """Draw by a function of `charts`, which is imported when it is needed: matplotlib is slow."""

    def draw(path: Path) -> None:
        getattr(import_module("obygaze_studies.audit_common.charts"), name)(path=path, **options)

    return draw


bar_chart = partial(drawn_by, "draw_bars")
"""Draw groups of bars, as `charts.draw_bars` takes them."""


def write_rows(rows: Iterable[Sequence[str]], path: Path, noun: str, *, force: bool) -> str:
    """Write a table of texts, its header first, as CSV, and return what to say of it."""
    lines = [csv_line(list(cells)) for cells in rows]
    refuse_existing(path, force=force)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "".join(lines))
    return f"{len(lines) - 1} {noun} kept in {path}"
