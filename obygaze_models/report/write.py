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
from obygaze_features.door import parse_json, read_bytes
from obygaze_features.errors import OutputError
from obygaze_features.io import digests_of, is_temporary, local_path, refuse_taken, whole_folder, write_whole
from obygaze_features.lines import json_bytes, sheet_cell, sheet_line
from obygaze_features.templates import filled
from obygaze_features.text import counted
from obygaze_models.evaluation.predictions import records as records  # noqa: PLC0414  offered here
from obygaze_models.report.blocks import NOTHING, Block, Report, columns_that_name

WIDTH = 80
"""Characters per line of a terminal."""

SHOWN = 100
"""Rows up to which a table is shown whole on a terminal."""

FIRST = 20
"""Rows that a terminal shows of a longer table."""

CONTENTS = "contents.json"
"""File that lists every file of the folder with its SHA-256; folders with other files are kept."""

_TEX = {
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
_NUMBER = re.compile(r"[-+]?\.?\d[\d.,e+-]*( ?[\[(].*)?|undefined.*")


# --- for a terminal
# ---------------------------------------------------------------------------
@checked
def plain(report: Report, width: int = WIDTH) -> str:
    """Write a report as text; of a table of more than `SHOWN` rows, the first `FIRST`."""
    lines = [report.title, *_wrapped(report.caption, width)]
    for block in map(_shortened, report.blocks):
        lines += ["", block.title, *_wrapped(block.notes, width)]
        lines += ["\n\n".join(tables(block, width))]
    return "\n".join(lines) + "\n"


def _shortened(block: Block) -> Block:
    """Cut a table that is too long for a terminal, and note it."""
    if len(block.rows) <= SHOWN:
        return block
    note = f"the first {FIRST} of {counted(len(block.rows), 'row')}: --out and --json have all"
    return replace(block, rows=block.rows[:FIRST], notes=(*block.notes, note))


def _wrapped(notes: Sequence[str], width: int) -> list[str]:
    """Indent notes and break them between words; a word longer than a line stays whole."""
    wrapper = textwrap.TextWrapper(
        width,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line for note in notes for line in wrapper.wrap(note)]


def tables(block: Block, width: int = WIDTH) -> list[str]:
    """Lay out a block as tables at most `width` wide; a table with one column to show may be wider.

    A table that is too wide is split into several, which repeat the columns that name the rows.
    """
    n_naming = columns_that_name(block.headers, block.rows)
    naming = range(n_naming)
    # tabulate adds two columns beside a heading.
    widths = [
        max(len(heading) + 2, *map(len, cells), 0)
        for heading, *cells in zip(block.headers, *block.rows, strict=True)
    ]
    room_beside_names = width - sum(widths[column] + 2 for column in naming)
    texts = []
    for group in _groups(widths, n_naming, room_beside_names):
        columns = [*naming, *group]
        headers = _taken(block.headers, columns)
        rows = [_taken(cells, columns) for cells in block.rows]
        texts.append(tabulate(rows, headers, tablefmt="simple", disable_numparse=True))
    return texts


def _groups(widths: Sequence[int], n_naming: int, room: int) -> list[list[int]]:
    """Group the columns after those that name rows, so that each group fits into so many characters."""
    groups: list[list[int]] = [[]]
    room_left = room
    for column in range(n_naming, len(widths)):
        if groups[-1] and widths[column] > room_left:
            groups.append([])
            room_left = room
        groups[-1].append(column)
        room_left -= widths[column] + 2
    return groups


def _taken(cells: Sequence[str], columns: Sequence[int]) -> list[str]:
    """Select the cells of some columns."""
    return [cells[column] for column in columns]


# --- Markdown and LaTeX
# ---------------------------------------------------------------------------
@checked
def markdown(report: Report) -> str:
    """Write a report as a Markdown page."""
    return filled(
        __package__, "assets/report.md.jinja", {"report": report}, filters={"table": _pipes}
    ).removesuffix("\n")


def _pipes(block: Block) -> str:
    """Write a block's cells as a Markdown table."""
    rows = [_escaped(cells) for cells in block.rows]
    return tabulate(rows, _escaped(block.headers), tablefmt="pipe", disable_numparse=True)


def _escaped(cells: Sequence[str]) -> list[str]:
    """Escape cells for a Markdown table."""
    return [_one_line(cell).replace("|", "\\|") for cell in cells]


@checked
def latex(report: Report) -> str:
    """Write a report's tables as LaTeX source (packages booktabs and adjustbox).

    A caption names the report and the table; a table's own notes stand below it. The report's notes come
    once, as comments at the top. A wide table spans both columns of a page, in smaller letters; no table is
    wider than the text.
    """
    filters = {"tex": _tex, "cell": _cell, "line": _one_line, "braced": "{{{}}}".format}
    tables = [_laid_out(block, report.titles) for block in report.blocks]
    return filled(
        __package__, "assets/report.tex.jinja", {"report": report, "tables": tables}, filters=filters
    )


def _laid_out(block: Block, titles: Mapping[str, str]) -> dict[str, Any]:
    """Lay out a table for LaTeX; a column of models has their titles.

    Returns
    -------
    dict
        ``block``; ``headings``, the lines of each; ``sides``, to which each column is aligned ("l" or "r");
        and ``width``, the letters of a row.
    """
    if block.headers[0] == "model":
        rows = tuple((titles.get(model, model), *cells) for model, *cells in block.rows)
        block = replace(block, rows=rows)
    columns = list(zip(*block.rows, strict=True)) or [()] * len(block.headers)
    headings = []
    widths = []
    sides = ""
    for heading, cells in zip(block.headers, columns, strict=True):
        lines = _halves(heading, cells)
        headings.append(lines)
        widths.append(max(len(text) for text in [*lines, *cells]))
        sides += "r" if is_numeric(cells) else "l"
    n_gaps = len(widths) - 1
    width = sum(widths) + 2 * n_gaps  # a gap is two letters wide
    return {"block": block, "headings": headings, "sides": sides, "width": width}


def _halves(heading: str, cells: Sequence[str]) -> list[str]:
    """Break a heading that is wider than its column at the space nearest its middle."""
    words = heading.split()
    column_width = max(map(len, cells), default=0)
    if len(words) < 2 or len(heading) <= column_width:
        return [heading]
    pairs = [[" ".join(words[:n_first]), " ".join(words[n_first:])] for n_first in range(1, len(words))]
    return min(pairs, key=lambda pair: max(len(pair[0]), len(pair[1])))


def is_numeric(cells: Sequence[str]) -> bool:
    """Tell whether every cell of a column is a number (with its interval), undefined, or empty."""
    return all(cell == NOTHING or _NUMBER.fullmatch(cell) is not None for cell in cells)


def _cell(text: str) -> str:
    """Write a cell: true minus signs, a dash for a missing number."""
    if text == NOTHING:
        return "--"
    return _MINUS.sub(r"\\textminus{}", _tex(text))


def _tex(text: str) -> str:
    """Escape a text for LaTeX."""
    return "".join(_TEX.get(letter, letter) for letter in _one_line(text))


def _one_line(text: str) -> str:
    """Write a text on one line, without repeated spaces."""
    return " ".join(text.split())


# --- CSV and JSON
# ---------------------------------------------------------------------------
@checked
def to_csv(table: pd.DataFrame) -> str:
    """Write a table as CSV text for people: no cell is one that a spreadsheet would run.

    Floats have the shortest form that reads back as the same number; true and false are in small letters; a
    value that is missing or undefined is an empty cell.
    """
    columns = [_cells(values) for _, values in table.items()]
    lines = [sheet_line([str(name) for name in table])]
    if columns:
        lines += [f"{','.join(cells)}\n" for cells in zip(*columns, strict=True)]
    return "".join(lines)


def _cells(values: "pd.Series[Any]") -> list[str]:
    """Write the cells of a column."""
    if isinstance(values.dtype, pd.StringDtype):
        # Each text is written once: a table of predictions names few models and movies many times. A missing
        # text has the code -1, which is the last of the cells.
        codes, texts = pd.factorize(values)
        written = [*(sheet_cell(text) for text in texts.tolist()), ""]
        return [written[code] for code in codes.tolist()]
    missing = values.isna().tolist()
    cells = []
    for value, is_missing in zip(values.tolist(), missing, strict=True):
        text = "" if is_missing else str(value)
        cells.append(text.lower() if isinstance(value, bool) else text)
    has_numbers = values.dtype.kind in "biuf"
    return cells if has_numbers else [sheet_cell(text) for text in cells]


@checked
def document(report: Report) -> dict[str, Any]:
    """Return a report as JSON values; undefined numbers are null."""
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
    """Write a report in every format: suffix -> text."""
    return {
        ".csv": to_csv(report.data),
        ".json": to_json(report),
        ".md": markdown(report),
        ".tex": latex(report),
    }


@checked
def write_report(report: Report, folder: Path | str) -> list[str]:
    """Write a report's files into a folder and return their names.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> report = om.run_report(om.evaluate(data, {"linear": om.linear_probe()}, task="hn_s"))
    >>> om.write_report(report, "")
    ['evaluate.csv', 'evaluate.json', 'evaluate.md', 'evaluate.tex']
    """
    folder = local_path(folder)
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
    """Write a report's tables as files with a common stem: found.csv, found.json, found.md."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    written = texts(replace(report, pictures=()))
    for suffix in suffixes:
        write_whole(stem.with_name(f"{stem.name}{suffix}"), written[suffix])


@checked
@contextmanager
def new_folder(folder: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield an empty folder to write into; it is renamed to `folder` at the end.

    Raises
    ------
    OutputError
        The folder exists.
    """
    check_folder(folder, force=force)
    with whole_folder(folder) as partial:
        yield partial
        paths = sorted(path for path in partial.rglob("*") if path.is_file())
        digests = digests_of(partial, (path.relative_to(partial).as_posix() for path in paths))
        (partial / CONTENTS).write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8", newline="")


@checked
def check_folder(folder: Path, *, force: bool) -> None:
    """Refuse an existing folder, unless `force` is given and it contains only an earlier output.

    Raises
    ------
    OutputError
        The folder exists; names what prevents writing.
    """
    files = (path for path in folder.rglob("*") if not path.is_dir() and not is_temporary(path))
    present = {path.relative_to(folder).as_posix() for path in files}
    try:
        listed = parse_json(read_bytes(folder / CONTENTS)) if CONTENTS in present else ()
        foreign = present - set(listed) - {CONTENTS}
    except (ValueError, TypeError, RecursionError) as error:
        raise OutputError(f"{folder / CONTENTS} is not the list of an output's files: {error}") from error
    unlisted = [f"{name} is not in {CONTENTS}" for name in foreign]
    refuse_taken(folder, present, unlisted, "an output of ours", force=force)
