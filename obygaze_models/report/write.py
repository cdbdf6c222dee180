"""Reports as files: the same report, the same bytes."""

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
from tabulate import tabulate

from obygaze_models.report.report import Block, Report

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
}


def write_report(report: Report, folder: Path) -> list[str]:
    """Write a report's files into a folder, and name them."""
    texts = {
        "csv": to_csv(report.data),
        "json": _json(report),
        "md": markdown(report),
        "tex": latex(report),
    }
    names = []
    for suffix, text in texts.items():
        names.append(f"{report.name}.{suffix}")
        (folder / names[-1]).write_text(text, encoding="utf-8", newline="")
    for picture in report.pictures:
        for suffix in ("png", "svg"):
            names.append(f"{picture.name}.{suffix}")
            picture.draw(folder / names[-1])
    return names


def to_csv(table: pd.DataFrame) -> str:
    """Write a table as CSV text; floats in the shortest form that reads back as the same number."""
    return table.to_csv(index=False, lineterminator="\n")


def markdown(report: Report) -> str:
    """Write a report as a Markdown page."""
    lines = [f"# {report.title}", "", *_list(report.notes)]
    for picture in report.pictures:
        lines += [
            f"![{picture.caption}]({picture.name}.png)",
            "",
            f"{picture.caption} ([SVG]({picture.name}.svg))",
            "",
        ]
    for block in report.blocks:
        lines += [f"## {block.title}", "", *_list(block.notes)]
        escaped = [[cell.replace("|", "\\|") for cell in row] for row in (block.headers, *block.rows)]
        lines += [tabulate(escaped[1:], escaped[0], tablefmt="pipe", disable_numparse=True), ""]
    return "\n".join(lines)


def _list(notes: tuple[str, ...]) -> list[str]:
    return [*(f"- {note}" for note in notes), ""] if notes else []


def latex(report: Report) -> str:
    """Write a report's tables as LaTeX (package booktabs), a `table` each."""
    lines = [f"% {report.title}"]
    for block in report.blocks:
        caption = ". ".join((f"{report.title}: {block.title}", *block.notes, *report.notes))
        lines += [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_tex(caption)}.}}",
            _tabular(block),
            r"\end{table}",
            "",
        ]
    return "\n".join(lines)


def _tabular(block: Block) -> str:
    rows = [" & ".join(map(_tex, row)) + r" \\" for row in (block.headers, *block.rows)]
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{'l' * len(block.headers)}}}",
            r"\toprule",
            rows[0],
            r"\midrule",
            *rows[1:],
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)


def document(report: Report) -> dict[str, Any]:
    """Give a report as JSON values; undefined numbers are null."""
    return {
        "title": report.title,
        "notes": list(report.notes),
        "record": dict(report.record),
        "tables": [{"title": block.title, "notes": list(block.notes)} for block in report.blocks],
        "rows": records(report.data),
    }


def _json(report: Report) -> str:
    return json.dumps(document(report), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Give a table's rows as JSON values; undefined numbers are null."""
    return [
        {
            str(name): None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in table.to_dict(orient="records")
    ]
