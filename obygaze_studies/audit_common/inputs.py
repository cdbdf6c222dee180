"""Read the tables and lists that audits take, strictly: a mistake names the file and the line or the id."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from obygaze_features.door import read_bytes
from obygaze_features.manifest import read_table
from obygaze_features.text import composed, number_of
from obygaze_studies.errors import AuditError

Row = Mapping[str, Any]


def read_text(path: Path) -> str:
    """Read a UTF-8 file, with or without a byte order mark.

    Raises
    ------
    AuditError
        The file is not UTF-8.
    """
    try:
        return read_bytes(path).decode("utf-8-sig")  # line ends in a cell as they are: texts are compared
    except UnicodeDecodeError as error:
        raise AuditError(f"{path} is not UTF-8 text: byte {error.start} can't be read") from error


def read_rows(
    path: Path,
    needed: Sequence[str],
    *,
    columns: Sequence[str] = (),
    choices: Mapping[Any, Sequence[str]] = MappingProxyType({}),
    unique: Sequence[str] = (),
    numbers: Sequence[str] = (),
) -> tuple[Row, ...]:
    """Read a CSV table with a header.

    Parameters
    ----------
    needed
        Columns that must be there, and filled in every row; further columns are kept.
    columns
        Columns that must be there, filled or not.
    choices
        Column of `needed` -> what may stand in it.
    unique
        Columns of `needed` that name a row together.
    numbers
        Columns that are numbers; "*" for all but `needed`, in which an empty cell is NaN.

    Raises
    ------
    ManifestError
        As `read_table` does.
    AuditError
        An empty cell, one that is no number or none of the choices, two rows of one name, or no row at all.
    """
    table = read_table(path, [*needed, *columns])
    if not table.rows:
        raise AuditError(f"{path} has a header but no row")
    gaps = [name for name in table.columns if name not in needed] if "*" in numbers else []
    table = table.pointed(gaps or numbers)
    if "*" in numbers and not gaps:
        raise AuditError(f"{path} has no column beside {', '.join(needed)}: expected one of numbers for each")
    rows = []
    for row in table.checked():
        for name in needed:
            where = f"{path}, line {row.line}, column {name}"
            cell = row.cells[name]
            if not cell.strip():
                raise AuditError(f"{where}: the cell is empty")
            if name in choices and cell not in choices[name]:
                raise AuditError(f"{where}: {cell!r} is none of {', '.join(choices[name])}")
        key = ", ".join(f"{name} {row.cells[name]}" for name in unique or needed[:1])
        read = {name: read_number(row.cells[name], f"{path}: {name} of {key}") for name in gaps or numbers}
        if any(row.cells[name].strip() and not math.isfinite(read[name]) for name in gaps):
            raise AuditError(f"{path}: a value of {key} is not finite; leave the cell of a missing one empty")
        rows.append({**row.cells, **read})

    def named(row: Row) -> str:
        return ", ".join(f"{name} {row[name]}" for name in unique)

    if unique:
        refuse_twins(map(named, rows), f"{path}: two rows for")
    return tuple(rows)


def read_number(text: str, place: str) -> float:
    """Read a cell as a number; an empty one is NaN."""
    number = number_of(text)
    if text.strip() and math.isnan(number):
        raise AuditError(f"{place} should be a number, found {text!r}")
    return number


def known_items(
    items: Mapping[str, Row], columns: Sequence[str], known: Collection[str] | None = None
) -> tuple[list[str], list[str]]:
    """Return the items that have a cell in each of some columns, of those known; and what is said of others.

    Raises
    ------
    AuditError
        A column is not there, or no item is left.
    """
    for column in columns:
        if any(column not in row for row in items.values()):
            raise AuditError(f"the table of items has no column {column}")
    ids = []
    for name, row in items.items():
        is_known = known is None or name in known
        if is_known and all(row[column].strip() for column in columns):
            ids.append(name)
    lacking = " or ".join(columns if known is None else ["an embedding", *columns])
    if not ids:
        raise AuditError(f"all {len(items):,} items are without {lacking}")
    n_left_out = len(items) - len(ids)
    notes = [f"{n_left_out:,} items without {lacking} left out"] if n_left_out else []
    return ids, notes


def read_lines(path: Path) -> tuple[str, ...]:
    """Read names, one a line; empty lines are passed over.

    Raises
    ------
    AuditError
        There is none, or the file is a table.
    """
    names = tuple(line.strip() for line in read_text(path).splitlines() if line.strip())
    if not names:
        raise AuditError(f"{path} lists nothing")
    if "," in names[0]:
        raise AuditError(f"{path}: begins with {names[0][:60]!r}, as a table; expected one name per line")
    return names


def read_items(path: Path, *keys: str) -> dict[str, Row]:
    """Read a table of items: id -> columns. The id stands in the first of the keys: item_id, or image_id.

    What looks alike is one cell: accents in either form, blanks of any number.
    """
    header = read_rows(path, ())[0]
    names = keys or ("item_id", "image_id")
    key = next((name for name in names if name in header), names[0])
    rows = list(map(_composed_row, read_rows(path, [key])))
    refuse_twins((f"{key} {row[key]}" for row in rows), f"{path}: two rows for")
    return {row[key]: row for row in rows}


def _composed_row(row: Row) -> Row:
    return {name: composed(" ".join(cell.split())) for name, cell in row.items()}


def read_json(path: Path, kind: Any, noun: str) -> Any:
    """Read a JSON file as a type of msgspec's.

    Raises
    ------
    AuditError
        It is not `noun`.
    """
    try:
        return msgspec.json.decode(read_text(path), type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise AuditError(f"{path} is no {noun}: {error}") from error


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


def refuse_twins(names: Iterable[str], words: str) -> None:
    """Raise an AuditError, `words` and then the name, if a name comes twice."""
    names_before: set[str] = set()
    for name in names:
        if name in names_before:
            raise AuditError(f"{words} {name}")
        names_before.add(name)


def refuse_unknown(name: str | None, choices: Iterable[str]) -> None:
    """Raise an AuditError if published values are asked of what has none."""
    if name is not None and name not in set(choices):
        raise AuditError(f"no published values of {name!r}, but of {', '.join(choices)}")
