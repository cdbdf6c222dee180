"""Turn the results of an audit into a report."""

from collections.abc import Mapping, Sequence

import pandas as pd

from obygaze_models.report import Block, Picture, Report, cell

Rows = Sequence[Mapping[str, object]]
"""A tidy table: the same columns in every row; None where something does not apply."""


def audit_report(
    name: str,
    title: str,
    rows: Rows,
    blocks: Sequence[Block],
    record: Mapping[str, object],
    *,
    summary: Mapping[str, object] | None = None,
    notes: Sequence[str] = (),
    picture: Picture | None = None,
) -> Report:
    """Make the report of an audit.

    Parameters
    ----------
    name, title
        What commands and what people call the audit.
    rows
        All that was measured; `Report.data` keeps its values as they are.
    blocks
        What is shown.
    record
        What was audited and how, enough to do it again; its `source` becomes the first note.
    summary
        What is said of the table as a whole, kept in the record.
    notes
        What readers must know.
    picture
        How to draw it.
    """
    return Report(
        name=name,
        title=title,
        notes=(str(record["source"]), *notes),
        blocks=tuple(blocks),
        # Python objects: columns with None stay whole numbers, and true stays true.
        data=pd.DataFrame([dict(row) for row in rows], dtype=object),
        record={"audit": name, **record} | ({"summary": dict(summary)} if summary else {}),
        pictures=(picture,) if picture else (),
    )


def table(title: str, rows: Rows, columns: Sequence[str], notes: Sequence[str] = ()) -> Block:
    """Show some columns of rows."""
    cells = tuple(tuple(cell(row[column]) for column in columns) for row in rows)
    return Block(title, tuple(name.replace("_", " ") for name in columns), cells, tuple(notes))
