"""Read the tables and lists that audits take, strictly: an error names the file and the line or the id."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from obygaze_features.manifest import read_table
from obygaze_features.text import composed, counted, number_of
from obygaze_features.untrusted import read_bytes
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
        # Not opened as text, which would change the line ends inside cells: texts are compared exactly.
        return read_bytes(path).decode("utf-8-sig")
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
    path
        The file.
    needed
        Columns that must exist and be filled in every row. Further columns of the file are kept.
    columns
        Columns that must exist, filled or not.
    choices
        Column of `needed` -> the values that are allowed in it.
    unique
        Columns of `needed` that identify a row: no two rows may have the same values in all of them.
    numbers
        Columns to convert to numbers; an empty cell becomes NaN.

    Raises
    ------
    ManifestError
        As `read_table` does.
    AuditError
        A needed cell is empty, a cell is not a number or not among the choices, two rows have the same unique
        values, or there is no row at all.
    """
    table = read_table(path, [*needed, *columns])
    # Numbers may have decimal commas where cells are separated by semicolons or tabs: these become points.
    table = table.pointed(numbers)
    rows = []
    for row in table.checked():
        for name in needed:
            place = f"{path}, line {row.line}, column {name}"
            _check_needed(row.cells[name], place, choices.get(name))
        naming_columns = unique or needed[:1]  # whose cells name the row in messages
        row_name = _row_name(row.cells, naming_columns)
        rows.append(_with_numbers(row.cells, numbers, path, row_name))
    _check_rows(rows, unique, path)
    return tuple(rows)


def read_numbers_of_items(path: Path, id_column: str) -> tuple[Row, ...]:
    """Read a CSV table with a column of ids, where all other columns hold numbers; an empty cell is NaN.

    Raises
    ------
    ManifestError
        As `read_table` does.
    AuditError
        There is no column of numbers or no row, an id is empty or comes twice, or a cell is not a finite
        number.
    """
    table = read_table(path, [id_column])
    number_columns = [name for name in table.columns if name != id_column]
    if not number_columns:
        raise AuditError(f"{path} has no column beside {id_column}: expected one of numbers for each")
    with_decimal_points = table.pointed(number_columns)  # in place of decimal commas
    rows = []
    for row in with_decimal_points.checked():
        # The id must be filled, with any text.
        place_of_id = f"{path}, line {row.line}, column {id_column}"
        _check_needed(row.cells[id_column], place_of_id, choices=None)
        row_name = _row_name(row.cells, [id_column])  # for messages, such as "item_id a"
        values = _with_numbers(row.cells, number_columns, path, row_name)
        for name in number_columns:
            _check_finite_or_empty(row.cells[name], values[name], f"{path}: a value of {row_name}")
        rows.append(values)
    _check_rows(rows, [id_column], path)  # there is a row, and no id comes twice
    return tuple(rows)


def _with_numbers(cells: Mapping[str, str], columns: Sequence[str], path: Path, row_name: str) -> Row:
    """Return a row's values: in some columns its cells as numbers, in the others the cells as they are.

    Parameters
    ----------
    cells
        The cells of the row by column.
    columns
        The columns of numbers.
    path, row_name
        The file, and the name of the row in it, for the message.

    Raises
    ------
    AuditError
        A cell in these columns is not a number.
    """
    values: dict[str, Any] = dict(cells)
    for name in columns:
        values[name] = read_number(cells[name], f"{path}: {name} of {row_name}")
    return values


def _check_rows(rows: Sequence[Row], unique: Sequence[str], path: Path) -> None:
    """Raise an AuditError if a table has no row, or two rows with the same values in the columns `unique`."""
    if not rows:
        raise AuditError(f"{path} has a header but no row")
    if unique:
        refuse_duplicates((_row_name(row, unique) for row in rows), f"{path}: two rows for")


def read_column_names(path: Path) -> tuple[str, ...]:
    """Read the names of the columns of a CSV table; raise an AuditError if the table has no row."""
    first_row = read_rows(path, ())[0]
    return tuple(first_row)


def _check_needed(cell: str, location: str, choices: Sequence[str] | None) -> None:
    """Check a cell that must be filled; `choices` are its allowed values, None for any.

    Raises
    ------
    AuditError
        Naming `location`: the cell is empty, or none of the choices.
    """
    if not cell.strip():
        raise AuditError(f"{location}: the cell is empty")
    if choices is not None and cell not in choices:
        raise AuditError(f"{location}: {cell!r} is none of {', '.join(choices)}")


def _row_name(row: Row, columns: Sequence[str]) -> str:
    """Name a row in messages by the values of some columns, as "item_id a, roi face"."""
    return ", ".join(f"{name} {row[name]}" for name in columns)


def _check_finite_or_empty(cell: str, number: float, location: str) -> None:
    """Raise an AuditError that names `location` if a cell is not empty and its number is not finite."""
    if cell.strip() and not math.isfinite(number):
        raise AuditError(f"{location} is not finite; leave the cell of a missing one empty")


def read_number(text: str, location: str) -> float:
    """Read a cell as a number; an empty cell is NaN.

    Raises
    ------
    AuditError
        Naming the cell with `location`: it is not a number.
    """
    number = number_of(text)
    if text.strip() and math.isnan(number):
        raise AuditError(f"{location} should be a number, found {text!r}")
    return number


def complete_items(
    items: Mapping[str, Row], columns: Sequence[str], embedded: Collection[str] | None = None
) -> tuple[list[str], list[str]]:
    """Return the ids of the items that have a value in every column, and a note that counts the others.

    Parameters
    ----------
    items
        Item id -> its cells.
    columns
        Columns in which an item needs a value.
    embedded
        Ids of the items that have an embedding, for an audit that needs one of every item.

    Returns
    -------
    ids, notes
        The ids, and at most one note.

    Raises
    ------
    AuditError
        A column does not exist, or no item is left.
    """
    for column in columns:
        if any(column not in row for row in items.values()):
            raise AuditError(f"the table of items has no column {column}")

    ids = []
    for item_id, row in items.items():
        has_embedding = embedded is None or item_id in embedded  # if one is needed
        if has_embedding and all(row[column].strip() for column in columns):
            ids.append(item_id)

    needed = list(columns)
    if embedded is not None:
        needed.insert(0, "an embedding")
    requirements = " or ".join(needed)
    if not ids:
        raise AuditError(f"all {counted(len(items), 'item is', 'items are')} without {requirements}")
    n_left_out = len(items) - len(ids)
    notes = [f"{counted(n_left_out, 'item')} without {requirements} left out"] if n_left_out else []
    return ids, notes


def read_names(path: Path) -> tuple[str, ...]:
    """Read a list of names, one per line; empty lines are skipped.

    Raises
    ------
    AuditError
        There is no name, or the file is a table.
    """
    names = tuple(line.strip() for line in read_text(path).splitlines() if line.strip())
    if not names:
        raise AuditError(f"{path} lists nothing")
    if "," in names[0]:
        raise AuditError(f"{path}: begins with {names[0][:60]!r}, as a table; expected one name per line")
    return names


def read_items(path: Path, *keys: str) -> dict[str, Row]:
    """Read a table of items: id -> columns.

    Cells are brought to one form, so that values that look alike are equal: accents are composed, and several
    spaces become one.

    Parameters
    ----------
    path
        The table.
    keys
        Columns that may hold the id, the preferred one first; by default item_id, or else image_id.

    Raises
    ------
    AuditError
        The table has no such column, or two rows have the same id.
    """
    columns = read_column_names(path)
    id_columns = keys or ("item_id", "image_id")
    id_columns_of_file = [name for name in id_columns if name in columns]
    # If the file has none of them, `read_rows` raises the error, which names the preferred one.
    id_column = id_columns_of_file[0] if id_columns_of_file else id_columns[0]
    rows = list(map(_composed_row, read_rows(path, [id_column])))
    refuse_duplicates((f"{id_column} {row[id_column]}" for row in rows), f"{path}: two rows for")
    return {row[id_column]: row for row in rows}


def _composed_row(row: Row) -> Row:
    """Bring the cells of a row to one form: accents composed, spaces single."""
    return {name: composed(" ".join(cell.split())) for name, cell in row.items()}


def read_json(path: Path, kind: Any, noun: str) -> Any:
    """Read a JSON file and check it against a type.

    Parameters
    ----------
    path
        The file.
    kind
        A type that msgspec understands.
    noun
        What the file should hold, for the message.

    Raises
    ------
    AuditError
        The file does not hold such a value.
    """
    try:
        return msgspec.json.decode(read_text(path), type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise AuditError(f"{path} is no {noun}: {error}") from error


def read_text_ids(path: Path) -> dict[str, str]:
    """Read the table that names the texts of a text store, as text -> text id.

    Raises
    ------
    AuditError
        Two rows have the same id, or the same text: it would be unclear which embedding is the text's.
    """
    rows = read_rows(path, ["text_id", "text"], unique=["text_id"])
    refuse_duplicates((repr(row["text"]) for row in rows), f"{path}: two ids for the text")
    return {row["text"]: row["text_id"] for row in rows}


def refuse_duplicates(names: Iterable[str], words: str) -> None:
    """Raise an AuditError if a name occurs twice; its message is `words` followed by the name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise AuditError(f"{words} {name}")
        seen.add(name)


def refuse_unpublished(name: str | None, choices: Iterable[str]) -> None:
    """Raise an AuditError if there are no published values for a model.

    Parameters
    ----------
    name
        The model to show published values of; None for no model.
    choices
        The models that have published values.
    """
    if name is not None and name not in set(choices):
        raise AuditError(f"no published values of {name!r}, but of {', '.join(choices)}")
