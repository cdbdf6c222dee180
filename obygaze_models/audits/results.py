"""One format of results: a tidy CSV, and a JSON document with the record beside it."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from obygaze_features.manifest.rows import table_line
from obygaze_models.audits.errors import AuditError


@dataclass(frozen=True, eq=False)
class Results:
    """What an audit found.

    Attributes
    ----------
    audit : str
        Its name.
    record
        What was audited and how, enough to do it again.
    rows
        The tidy table: the same columns in every row; None where something does not apply.
    summary
        What is said of the table as a whole.
    """

    audit: str
    record: Mapping[str, object]
    rows: tuple[Mapping[str, object], ...]
    summary: Mapping[str, object] = field(default_factory=dict)

    def to_csv(self) -> str:
        """Write the rows as CSV; floats in the shortest form that reads back as the same number."""
        return rows_to_csv(self.rows)

    def to_json(self) -> str:
        """Write everything as one JSON document."""
        document = {
            "audit": self.audit,
            "record": dict(self.record),
            "summary": dict(self.summary),
            "rows": [dict(row) for row in self.rows],
        }
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def rows_to_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """Write rows as CSV: None as an empty cell, true and false in small letters."""
    names = list(rows[0])
    return table_line(names) + "".join(table_line(_cell(row[name]) for name in names) for row in rows)


def _cell(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def beside(out: Path) -> Path:
    """Name the JSON document that stands beside a CSV file."""
    return out.with_suffix(".json")


def check_free(*paths: Path, force: bool) -> None:
    """Refuse to replace a file unless forced.

    Raises
    ------
    AuditError
        Naming the file.
    """
    for path in paths:
        if path.is_dir():
            raise AuditError(f"{path} is a folder; a file is to be written there")
        if path.exists() and not force:
            raise AuditError(f"{path} exists already: give --force to replace it, or another --out")


def write_text(path: Path, text: str) -> None:
    """Write a file, all of it or nothing, making its folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8", newline="")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_results(results: Results, out: Path) -> None:
    """Write the CSV to `out` and the JSON beside it."""
    write_text(beside(out), results.to_json())
    write_text(out, results.to_csv())
