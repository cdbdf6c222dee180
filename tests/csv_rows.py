"""Rows of tables in files."""

import csv
from pathlib import Path


def rows_of(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    """Read a CSV file with a header."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))
