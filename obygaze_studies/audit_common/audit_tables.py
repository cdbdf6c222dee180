"""Read the small CSV tables that audits take, strictly, and turn an audit's results into a report."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from obygaze_features.manifest import read_table
from obygaze_models.report import Block, Picture, Report, block
from obygaze_studies.columns import plain
from obygaze_studies.errors import AuditError

Row = Mapping[str, str]

Rows = Sequence[Mapping[str, object]]
"""A tidy table: the same columns in every row; None where something does not apply."""


def read_text(path: Path) -> str:
    """Read a UTF-8 file, with or without a byte order mark.

    Raises
    ------
    AuditError
        The file is not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")  # line ends in a cell as they are: texts are compared
    except UnicodeDecodeError as error:
        raise AuditError(f"{path} is not UTF-8 text: byte {error.start} can't be read") from error


def read_rows(path: Path, needed: Sequence[str], *, unique: Sequence[str] = ()) -> tuple[Row, ...]:
    """Read a CSV table with a header.

    Parameters
    ----------
    needed
        Columns that must be there, and filled in every row; further columns are kept.
    unique
        Columns of `needed` that name a row together.

    Raises
    ------
    ManifestError
        As `read_table` does.
    AuditError
        An empty cell, two rows of one name, or no row at all.
    """
    rows = read_table(path, needed).rows
    if not rows:
        raise AuditError(f"{path} has a header but no row")
    for row in rows:
        for name in needed:
            if not row.cells[name].strip():
                raise AuditError(f"{path}, line {row.line}: the cell of column {name} is empty")
    if unique:
        refuse_twins(
            (", ".join(f"{name} {row.cells[name]}" for name in unique) for row in rows),
            f"{path}: two rows for",
        )
    return tuple(row.cells for row in rows)


def refuse_twins(names: Iterable[str], words: str) -> None:
    """Raise an AuditError, `words` and then the name, if a name comes twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise AuditError(f"{words} {name}")
        seen.add(name)


def number(path: Path, row: Row, column: str, key: str) -> float:
    """Read one cell as a number; `key` is the column that names the row in the message."""
    try:
        return float(row[column])
    except ValueError as error:
        raise AuditError(
            f"{path}: {column} of {key} {row[key]!r} should be a number, found {row[column]!r}"
        ) from error


def read_items(path: Path) -> dict[str, Row]:
    """Read a table of items: id -> columns. The id stands in the column item_id, or image_id."""
    header = read_rows(path, ())[0]
    key = "image_id" if "image_id" in header and "item_id" not in header else "item_id"
    return {row[key]: row for row in read_rows(path, [key], unique=[key])}


def read_text_ids(path: Path) -> dict[str, str]:
    """Read which text stands behind which id of a text store: text -> text id.

    Raises
    ------
    AuditError
        Two rows have the same id, or the same text, which would leave open whose embedding is meant.
    """
    rows = read_rows(path, ["text_id", "text"], unique=["text_id"])
    refuse_twins((repr(row["text"]) for row in rows), f"{path}: two ids for the text")
    return {row["text"]: row["text_id"] for row in rows}


def audit_report(
    name: str,
    title: str,
    rows: Rows,
    blocks: Sequence[Block],
    record: Mapping[str, object],
    *,
    answer: str,
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
    answer
        What was found, in a sentence.
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
        answers=(answer,),
    )


def table(title: str, rows: Rows, columns: Sequence[str], notes: Sequence[str] = ()) -> Block:
    """Show some columns of rows."""
    return block(title, plain(columns), rows, notes)


def drawn_by(name: str, **given: Any) -> Callable[[Path], None]:
    """Draw by a function of `audit_figures`, which is imported when it is needed: matplotlib is slow."""

    def draw(path: Path) -> None:
        getattr(import_module("obygaze_studies.audit_common.audit_figures"), name)(path=path, **given)

    return draw
