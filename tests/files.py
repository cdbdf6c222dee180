"""Files that tests write and read."""

import csv
from pathlib import Path


def written(path: Path, text: str | bytes) -> Path:
    """Write a file; gives its path."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def rows_of(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    """Read a CSV file with a header."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))
