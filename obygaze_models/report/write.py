"""Write reports as terminal text, Markdown, LaTeX, CSV or JSON. The same report gives the same bytes."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from tabulate import tabulate

from obygaze_features.arguments import checked
from obygaze_features.errors import OutputError
from obygaze_features.io import (
    digests_of,
    files_below,
    is_temporary,
    local_folder,
    refuse_taken,
    whole_folder,
    write_whole,
)
from obygaze_features.lines import json_bytes, sheet_cell, sheet_line
from obygaze_features.templates import filled
from obygaze_features.text import counted
from obygaze_features.untrusted import parse_json, read_bytes
from obygaze_models.evaluation.predictions import records as records  # noqa: PLC0414  offered here
from obygaze_models.report.blocks import NOTHING, Block, Report, n_key_columns

WIDTH = 80
"""Characters per line of a terminal."""

MAX_SHOWN_ROWS = 100
"""Rows up to which a table is shown whole on a terminal."""

N_FIRST_ROWS = 20
"""Rows that a terminal shows of a longer table."""

GAP = 2
"""Characters that tabulate puts between two columns."""

ADDED_TO_HEADING = 2
"""Characters by which tabulate makes a column wider than its heading, if its cells are no wider."""

CONTENTS = "contents.json"
"""File that lists every file of the folder with its SHA-256; folders with other files are kept."""

# Characters that have a meaning in LaTeX, and how each is written as a letter.
_TEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # After the end of a row LaTeX would read these as options.
    "[": "{[}",
    "*": "{*}",
}
_MINUS = re.compile(r"(?<![\w.)\]])-(?=\.?\d)")
"""A hyphen that is a minus sign: before a number, and after no word or number."""
_NUMBER_CELL = re.compile(r"[-+]?\.?\d[\d.,e+-]*( ?[\[(].*)?|undefined.*")


# --- for a terminal
# ---------------------------------------------------------------------------
@checked
def plain(report: Report, width: int = WIDTH) -> str:
    """Format a report as text for a terminal of some width.

    Of a table of more than `MAX_SHOWN_ROWS` rows the first `N_FIRST_ROWS` are shown.
    """
    lines = [report.title, *_wrap_notes(report.caption, width)]
    for block in map(_shorten_for_terminal, report.blocks):
        lines += ["", block.title, *_wrap_notes(block.notes, width)]
        lines += ["\n\n".join(tables(block, width))]
    return "\n".join(lines) + "\n"


def _shorten_for_terminal(block: Block) -> Block:
    """Cut a table of more than `MAX_SHOWN_ROWS` rows after `N_FIRST_ROWS`, and say so in a note."""
    if len(block.rows) <= MAX_SHOWN_ROWS:
        return block
    note = f"the first {N_FIRST_ROWS} of {counted(len(block.rows), 'row')}: --out and --json have all"
    return replace(block, rows=block.rows[:N_FIRST_ROWS], notes=(*block.notes, note))


def _wrap_notes(notes: Sequence[str], width: int) -> list[str]:
    """Break notes into indented lines of at most `width` characters; longer words are not broken."""
    wrapper = textwrap.TextWrapper(
        width,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line for note in notes for line in wrapper.wrap(note)]


def tables(block: Block, width: int = WIDTH) -> list[str]:
    """Format a block as one or several text tables of at most `width` characters.

    A table that is too wide is split by columns; each part repeats the columns that name the rows. A part
    with one further column may be wider.
    """
    n_keys = n_key_columns(block.headers, block.rows)
    key_columns = range(n_keys)
    widths = _column_widths(block)
    room_beside_keys = width - sum(widths[column] + GAP for column in key_columns)

    texts = []
    for group in _group_columns(widths, n_keys, room_beside_keys):
        columns = [*key_columns, *group]
        headers = _select_cells(block.headers, columns)
        rows = [_select_cells(cells, columns) for cells in block.rows]
        texts.append(tabulate(rows, headers, tablefmt="simple", disable_numparse=True))
    return texts


def _column_widths(block: Block) -> list[int]:
    """Compute the characters that each column takes up in a text table."""
    widths = []
    for column, heading in enumerate(block.headers):
        widest_cell = max((len(row[column]) for row in block.rows), default=0)
        width_of_heading = len(heading) + ADDED_TO_HEADING  # tabulate adds space to headings
        widths.append(max(width_of_heading, widest_cell))
    return widths


def _group_columns(widths: Sequence[int], n_keys: int, room: int) -> list[list[int]]:
    """Divide columns into groups such that each group is at most `room` characters wide.

    A column that is wider is a group of its own. `widths` are those of all columns; the first `n_keys`, which
    name rows, are in no group.
    """
    groups: list[list[int]] = [[]]
    room_left = room
    for column in range(n_keys, len(widths)):
        last_group_is_full = len(groups[-1]) > 0 and widths[column] > room_left
        if last_group_is_full:
            groups.append([])
            room_left = room
        groups[-1].append(column)
        room_left -= widths[column] + GAP
    return groups


def _select_cells(cells: Sequence[str], columns: Sequence[int]) -> list[str]:
    """Select the cells of some columns from a row, given their indices."""
    return [cells[column] for column in columns]


# --- Markdown and LaTeX
# ---------------------------------------------------------------------------
@checked
def markdown(report: Report) -> str:
    """Format a report as a Markdown page."""
    return filled(
        __package__, "assets/report.md.jinja", {"report": report}, filters={"table": _markdown_table}
    ).removesuffix("\n")


def _markdown_table(block: Block) -> str:
    """Format the cells of a block as a Markdown table."""
    rows = [_escape_cells(cells) for cells in block.rows]
    return tabulate(rows, _escape_cells(block.headers), tablefmt="pipe", disable_numparse=True)


def _escape_cells(cells: Sequence[str]) -> list[str]:
    """Escape the cells of a row for a Markdown table."""
    return [_one_line(cell).replace("|", "\\|") for cell in cells]


@checked
def latex(report: Report) -> str:
    """Write a report's tables as LaTeX source (packages booktabs and adjustbox).

    A caption names the report and the table; a table's own notes stand below it. The report's notes come
    once, as comments at the top. A wide table spans both columns of a page, in smaller letters; no table is
    wider than the text.
    """
    tables = [_latex_table(_with_titles(block, report.titles)) for block in report.blocks]
    return filled(
        __package__,
        "assets/report.tex.jinja",
        {"report": report, "tables": tables},
        filters={
            "tex": _escape_latex,
            "cell": _latex_cell,
            "line": _one_line,
            "braced": _in_braces,
        },
    )


def _in_braces(text: str) -> str:
    """Write a text in braces, as an argument of a LaTeX command; the template has braces of its own."""
    return "{" + text + "}"


def _with_titles(block: Block, titles: Mapping[str, str]) -> Block:
    """Replace the names of models in the first column of a table by their titles."""
    if block.headers[0] != "model":
        return block
    rows = tuple((titles.get(model, model), *cells) for model, *cells in block.rows)
    return replace(block, rows=rows)


def _latex_table(block: Block) -> dict[str, Any]:
    """Compute the layout of a table in LaTeX.

    Returns
    -------
    dict
        ``block``; ``headings``, the lines of each; ``sides``, to which each column is aligned ("l" or "r");
        and ``width``, the letters of a row.
    """
    headings = []
    widths = []
    sides = []
    for column, heading in enumerate(block.headers):
        cells = [row[column] for row in block.rows]
        lines = _break_heading(heading, cells)
        headings.append(lines)
        widths.append(max(len(text) for text in [*lines, *cells]))
        sides.append("r" if is_numeric(cells) else "l")

    n_gaps = len(widths) - 1
    width = sum(widths) + 2 * n_gaps  # a gap is two letters wide
    return {"block": block, "headings": headings, "sides": "".join(sides), "width": width}


def _break_heading(heading: str, cells: Sequence[str]) -> list[str]:
    """Break a heading into two lines, as short as possible, if it is wider than the cells of its column.

    `cells` are those of the column. The heading is broken at a space; a single word stays whole.
    """
    words = heading.split()
    if len(words) < 2 or len(heading) <= _widest(cells):
        return [heading]

    best_lines = [heading]
    for n_first in range(1, len(words)):
        lines = [" ".join(words[:n_first]), " ".join(words[n_first:])]
        if _widest(lines) < _widest(best_lines):
            best_lines = lines
    return best_lines


def _widest(texts: Sequence[str]) -> int:
    """Return the number of characters of the longest text; 0 if there are none."""
    return max((len(text) for text in texts), default=0)


def is_numeric(cells: Sequence[str]) -> bool:
    """Tell whether every cell of a column is a number (with its interval), undefined, or empty."""
    return all(cell == NOTHING or _NUMBER_CELL.fullmatch(cell) is not None for cell in cells)


def _latex_cell(text: str) -> str:
    """Format a cell for LaTeX: escaped, with true minus signs, and a dash for a missing number."""
    if text == NOTHING:
        return "--"
    return _MINUS.sub(r"\\textminus{}", _escape_latex(text))


def _escape_latex(text: str) -> str:
    """Escape a text for LaTeX."""
    return "".join(_TEX_ESCAPES.get(letter, letter) for letter in _one_line(text))


def _one_line(text: str) -> str:
    """Replace line breaks and repeated spaces in a text with single spaces."""
    return " ".join(text.split())


# --- CSV and JSON
# ---------------------------------------------------------------------------
@checked
def to_csv(table: pd.DataFrame) -> str:
    """Format a table as CSV text that is safe to open in a spreadsheet: no cell is taken for a formula.

    Floats have the shortest form that reads back as the same number, booleans are "true" and "false", and
    missing or undefined values are empty cells.
    """
    header = sheet_line([str(name) for name in table])
    lines = [header]
    # Cells are formatted column by column, and already escaped.
    columns = [_csv_cells(values) for _, values in table.items()]
    if columns:
        lines += [f"{','.join(cells)}\n" for cells in zip(*columns, strict=True)]
    return "".join(lines)


def _csv_cells(values: "pd.Series[Any]") -> list[str]:
    """Format the cells of a column for a CSV file; texts are escaped, numbers and booleans need not be."""
    if isinstance(values.dtype, pd.StringDtype):
        return _csv_cells_of_texts(values)
    cells = []
    for value, is_missing in zip(values.tolist(), values.isna().tolist(), strict=True):
        if is_missing:
            cells.append("")
        elif isinstance(value, bool):
            cells.append(str(value).lower())
        else:
            cells.append(str(value))

    # Booleans, integers, unsigned integers and floats, by numpy's letters.
    has_numbers = values.dtype.kind in "biuf"
    if has_numbers:
        return cells
    return [sheet_cell(text) for text in cells]


def _csv_cells_of_texts(values: "pd.Series[Any]") -> list[str]:
    """Format the cells of a column of texts for a CSV file; missing texts are empty cells.

    Each different text is formatted once, as tables of predictions repeat few names many times.
    """
    index_of_text, different_texts = pd.factorize(values)  # the index of a missing text is -1
    cell_of_index = {-1: ""}
    for index, text in enumerate(different_texts.tolist()):
        cell_of_index[index] = sheet_cell(text)
    return [cell_of_index[index] for index in index_of_text.tolist()]


@checked
def document(report: Report) -> dict[str, Any]:
    """Make the JSON document of a report; undefined numbers are null."""
    return {
        "title": report.title,
        "notes": list(report.caption),
        "record": dict(report.record),
        "tables": [{"title": block.title, "notes": list(block.notes)} for block in report.blocks],
        "rows": records(report.data),
    }


@checked
def to_json(report: Report) -> str:
    """Write a report's document as JSON text."""
    return json_bytes(document(report)).decode()


# --- files
# ---------------------------------------------------------------------------
def texts(report: Report) -> dict[str, str]:
    """Format a report as CSV, JSON, Markdown and LaTeX: suffix of the file -> text."""
    return {
        ".csv": to_csv(report.data),
        ".json": to_json(report),
        ".md": markdown(report),
        ".tex": latex(report),
    }


@checked
def write_report(report: Report, folder: Path | str) -> list[str]:
    """Write a report's files into a folder and return their names.

    Each figure is written in the three formats of `Picture.draw`.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> report = om.run_report(om.evaluate(data, {"linear": om.linear_probe()}, task="hn_s"))
    >>> om.write_report(report, "")
    ['evaluate.csv', 'evaluate.json', 'evaluate.md', 'evaluate.tex']
    """
    folder = local_folder(folder)
    names = []
    for suffix, text in texts(report).items():
        name = f"{report.name}{suffix}"
        write_whole(folder / name, text)
        names.append(name)

    for picture in report.pictures:
        names += [f"{picture.name}{suffix}" for suffix in (".pdf", ".png", ".svg")]
        picture.draw(folder / picture.name)
    return names


@checked
def write_beside(report: Report, stem: Path, suffixes: Sequence[str]) -> None:
    """Write a report as files with a common stem, one for each of the `suffixes`; figures are left out."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    # Without figures, since the Markdown would name files that are not there.
    text_of_suffix = texts(replace(report, pictures=()))
    for suffix in suffixes:
        write_whole(stem.with_name(f"{stem.name}{suffix}"), text_of_suffix[suffix])


@checked
@contextmanager
def new_folder(folder: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield an empty folder to write into; it is renamed to `folder` at the end.

    Before that, `CONTENTS` is added, which lists the files with their digests. A later call with `force`
    replaces the folder only if all of its files are listed there.

    Raises
    ------
    OutputError
        The folder exists, and may not be replaced (`check_folder`).
    """
    check_folder(folder, force=force)
    with whole_folder(folder) as partial:
        yield partial  # the caller writes its files here

        names = [path.relative_to(partial).as_posix() for path in files_below(partial)]
        digests = digests_of(partial, names)
        (partial / CONTENTS).write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8", newline="")


@checked
def check_folder(folder: Path, *, force: bool) -> None:
    """Raise if a folder exists, unless `force` is given and it holds only an earlier output.

    So that no other files are lost, each file must be listed in the folder's `CONTENTS`.

    Raises
    ------
    OutputError
        The folder exists; the message names what prevents writing.
    """
    present = set()
    for path in files_below(folder):
        if not is_temporary(path):
            present.add(path.relative_to(folder).as_posix())

    listed = {CONTENTS}
    if CONTENTS in present:
        try:
            listed.update(parse_json(read_bytes(folder / CONTENTS)))
        except (ValueError, TypeError, RecursionError) as error:
            raise OutputError(f"{folder / CONTENTS} is not the list of an output's files: {error}") from error

    reasons_to_keep = [f"{name} is not in {CONTENTS}" for name in present - listed]
    refuse_taken(folder, present, reasons_to_keep, "an output of ours", force=force)
