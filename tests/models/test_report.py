"""Reports in every format: no cell is lost or breaks a table, and every row is still known by name."""

import csv
import io
import json
import re

import pandas as pd
from hypothesis import example, given, settings
from hypothesis import strategies as st

from obygaze_features.text import as_written
from obygaze_models.report import Block, Report, latex, markdown, to_csv, to_json
from obygaze_models.report.write import tables

WIDE = Block(
    "a block",
    ("model", "features", *(f"metric number {number}" for number in range(6))),
    (
        ("mlp", "xclip", *("0.123 [0.100, 0.200]" for _ in range(6))),
        ("mlp", "vivit", *("0.456 [0.400, 0.500]" for _ in range(6))),
    ),
    ("a note",),
)


def test_a_wide_table_is_cut_and_every_part_repeats_what_tells_rows_apart():
    parts = tables(WIDE)
    assert len(parts) == 3
    for part in parts:
        assert max(map(len, part.splitlines())) <= 80
        assert part.splitlines()[0].split()[:2] == ["model", "features"]
        assert [line.split()[:2] for line in part.splitlines()[2:]] == [["mlp", "xclip"], ["mlp", "vivit"]]
    assert sum(part.count("0.123") for part in parts) == 6


HARD = Report(
    "hard",
    "Scores of A & B",
    ("a note of it all: 5 % of_x",),
    (
        Block("first_one", ("model", "AP*"), (("*mlp", "0.5 [0.4, 0.6]"), ("a|b", "undefined")), ("50 %",)),
        Block("second", ("what", "n"), (("[x]\ny", "1,000"),)),
    ),
    pd.DataFrame(
        {
            "name": ["a,b", None],
            "count": pd.Series([3, None], dtype=object),
            "share": [0.1, float("nan")],
            "good": [True, False],
        }
    ),
    {"seed": 1},
)


def test_latex_can_be_pasted_short_captions_and_the_notes_once():
    text = latex(HARD)
    assert text.count("a note of it all") == 1
    assert text.startswith("% Scores of A & B\n% a note of it all: 5 % of_x\n")
    assert r"\caption{Scores of A \& B: first\_one.}" in text
    assert r"\label{tab:hard-2}" in text
    assert r"\par\smallskip{\footnotesize 50 \%.}" in text
    assert r"\begin{tabular}{lr}" in text
    assert r"{*}mlp & 0.5 {[}0.4, 0.6] \\" in text, "a row that begins with * or [ would be read as an option"
    assert r"{[}x] y & 1,000 \\" in text
    assert text.count(r"\begin{table}") == 2
    assert r"\small" not in text.replace(r"\smallskip", "")
    for line in text.splitlines():
        if not line.startswith("%"):
            assert not re.search(r"(?<!\\)[%_#$]", line), line
            assert line.count("{") - line.count(r"\{") == line.count("}") - line.count(r"\}"), line


def test_csv_keeps_whole_numbers_small_letters_and_empty_cells():
    assert to_csv(HARD.data) == 'name,count,share,good\n"a,b",3,0.1,true\n,,,false\n'


def test_json_is_the_document_with_null_for_what_is_undefined():
    result = json.loads(to_json(HARD))
    assert list(result) == ["title", "notes", "record", "tables", "rows"]
    assert result["tables"] == [{"title": "first_one", "notes": ["50 %"]}, {"title": "second", "notes": []}]
    assert result["rows"][1] == {"name": None, "count": None, "share": None, "good": False}


@settings(deadline=None, max_examples=50)
@given(st.text(), st.text())
@example("", "=1+1")
@example("\r", "'=")
def test_no_cell_breaks_a_table(first, second):
    block = Block("t", ("a", "b"), ((first, second), ("x", "y")))
    report = Report("r", "t", (), (block,), pd.DataFrame({"a": [first, "x"], "b": [second, "y"]}), {})
    rows = [line for line in latex(report).splitlines() if line.endswith(r" \\")]
    assert len(rows) == 3
    assert len([line for line in markdown(report).splitlines() if line.startswith("|")]) == 4
    read = list(csv.reader(io.StringIO(to_csv(report.data), newline=""), strict=True))
    assert [list(map(as_written, row)) for row in read] == [["a", "b"], [first, second], ["x", "y"]]
