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
from obygaze_models.evaluation.predictions import records as records  # noqa: PLC0414  offered here
from obygaze_models.report.blocks import NOTHING, Block, Report, columns_that_name

WIDTH = 80
"""Characters per line of a terminal."""

SHOWN = 100
"""A longer table is cut on a terminal, to its first rows."""

FIRST = 20
"""Rows shown of such a table."""

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
    if len(block.rows) <= SHOWN:
        return block
    note = f"the first {FIRST} of {len(block.rows):,} rows: --out and --json have all"
    return replace(block, rows=block.rows[:FIRST], notes=(*block.notes, note))


def _wrapped(notes: Sequence[str], width: int) -> list[str]:
    """Indent notes and break them between words; a word longer than a line stays whole."""
    wrapper = textwrap.TextWrapper(width, initial_indent="  ", subsequent_indent="    ")
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return [line for note in notes for line in wrapper.wrap(note)]


def tables(block: Block, width: int = WIDTH) -> list[str]:
    """Lay out a block as tables at most `width` wide, if one column beside the first ones is no wider.

    A table that is too wide is split into several, which repeat the columns that name the rows.
    """
    n_naming = columns_that_name(block.headers, block.rows)
    # tabulate adds two columns beside a heading.
    widths = [
        max(len(heading) + 2, *map(len, cells), 0)
        for heading, *cells in zip(block.headers, *block.rows, strict=True)
    ]
    room_beside_names = width - sum(widths[column] + 2 for column in range(n_naming))
    groups: list[list[int]] = [[]]
    room = room_beside_names
    for column in range(n_naming, len(widths)):
        if groups[-1] and widths[column] > room:
            groups.append([])
            room = room_beside_names
        groups[-1].append(column)
        room -= widths[column] + 2
    texts = []
    for group in groups:
        columns = [*range(n_naming), *group]
        headers, *rows = (_taken(cells, columns) for cells in (block.headers, *block.rows))
        texts.append(tabulate(rows, headers, tablefmt="simple", disable_numparse=True))
    return texts


def _taken(cells: Sequence[str], columns: Sequence[int]) -> list[str]:
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
    headers = _escaped(block.headers)
    return tabulate(list(map(_escaped, block.rows)), headers, tablefmt="pipe", disable_numparse=True)


def _escaped(cells: Sequence[str]) -> list[str]:
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
    """Choose a table's headings and sides, and measure its lines; a column of models has their titles."""
    if block.headers[0] == "model":
        block = replace(block, rows=tuple((titles.get(row[0], row[0]), *row[1:]) for row in block.rows))
    columns = list(zip(*block.rows, strict=True)) or [()] * len(block.headers)
    headings = [_halves(heading, cells) for heading, cells in zip(block.headers, columns, strict=True)]
    widths = [max(map(len, [*lines, *cells])) for lines, cells in zip(headings, columns, strict=True)]
    sides = "".join("r" if is_numeric(cells) else "l" for cells in columns)
    width = sum(widths) + 2 * (len(widths) - 1)  # two letters for every gap
    return {"block": block, "headings": headings, "sides": sides, "width": width}


def _halves(heading: str, cells: Sequence[str]) -> list[str]:
    """Break a heading that is wider than its column at the space nearest its middle."""
    words = heading.split()
    if len(words) < 2 or len(heading) <= max(map(len, cells), default=0):
        return [heading]
    lines = [[" ".join(words[:middle]), " ".join(words[middle:])] for middle in range(1, len(words))]
    return min(lines, key=lambda pair: max(map(len, pair)))


def is_numeric(cells: Sequence[str]) -> bool:
    """Whether every cell of a column is a number (with its interval), undefined, or empty."""
    return all(cell == NOTHING or _NUMBER.fullmatch(cell) is not None for cell in cells)


def _cell(text: str) -> str:
    """Write a cell: true minus signs, a dash for a missing number."""
    return "--" if text == NOTHING else _MINUS.sub(r"\\textminus{}", _tex(text))


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in _one_line(text))


def _one_line(text: str) -> str:
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
    lines = zip(*columns, strict=True) if columns else ()
    return sheet_line([str(name) for name in table]) + "".join(f"{','.join(cells)}\n" for cells in lines)


def _cells(values: "pd.Series[Any]") -> list[str]:
    if isinstance(values.dtype, pd.StringDtype):
        # Each text once: a table of predictions names a few models and movies again and again. A missing one
        # has the code -1: the last.
        codes, texts = pd.factorize(values)
        written = [*map(sheet_cell, texts.tolist()), ""]
        return [written[code] for code in codes.tolist()]
    missing = values.isna().tolist()
    cells = []
    for value, is_missing in zip(values.tolist(), missing, strict=True):
        text = "" if is_missing else str(value)
        cells.append(text.lower() if isinstance(value, bool) else text)
    return cells if values.dtype.kind in "biuf" else list(map(sheet_cell, cells))


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
    """Write a report in every format, by suffix."""
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
        names.append(f"{report.name}{suffix}")
        write_whole(folder / names[-1], text)
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
