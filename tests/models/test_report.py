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

N_METRICS = 6
WIDE_BLOCK = Block(
    "a block",
    ("model", "features", *(f"metric number {number}" for number in range(N_METRICS))),
    (
        ("mlp", "xclip", *["0.123 [0.100, 0.200]"] * N_METRICS),
        ("mlp", "vivit", *["0.456 [0.400, 0.500]"] * N_METRICS),
    ),
    ("a note",),
)


def test_a_wide_table_is_cut_into_parts_that_repeat_the_first_columns():
    parts = tables(WIDE_BLOCK)
    assert len(parts) == 3
    for part in parts:
        header, _rule, *rows = part.splitlines()
        assert max(map(len, part.splitlines())) <= 80
        assert header.split()[:2] == ["model", "features"]
        assert [row.split()[:2] for row in rows] == [["mlp", "xclip"], ["mlp", "vivit"]]

    assert sum(part.count("0.123") for part in parts) == N_METRICS


REPORT_WITH_SPECIAL_CHARACTERS = Report(
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


def test_latex_has_title_and_notes_as_comments_and_a_table_with_caption_for_each_block():
    text = latex(REPORT_WITH_SPECIAL_CHARACTERS)
    assert text.startswith("% Scores of A & B\n% a note of it all: 5 % of_x\n")
    assert text.count("a note of it all") == 1
    assert text.count(r"\begin{table}") == 2
    assert r"\begin{tabular}{lr}" in text
    assert r"\label{tab:hard-2}" in text
    assert r"\caption{Scores of A \& B: first\_one.}" in text
    assert r"\par\smallskip{\footnotesize 50 \%.}" in text
    assert r"\small" not in text.replace(r"\smallskip", "")  # letters have the size that the paper has


def test_latex_escapes_special_characters_and_balances_braces_in_each_line():
    """At the beginning of a row or after a line end, LaTeX reads asterisks and brackets as options."""
    text = latex(REPORT_WITH_SPECIAL_CHARACTERS)
    assert r"{*}mlp & 0.5 {[}0.4, 0.6] \\" in text
    assert r"{[}x] y & 1,000 \\" in text
    for line in text.splitlines():
        if not line.startswith("%"):
            assert not re.search(r"(?<!\\)[%_#$]", line), line
            unescaped = line.replace(r"\{", "").replace(r"\}", "")
            assert unescaped.count("{") == unescaped.count("}"), line


def test_csv_writes_integers_booleans_and_missing_cells_plainly():
    """Integers have no decimal point, booleans small letters, and missing cells are empty."""
    assert (
        to_csv(REPORT_WITH_SPECIAL_CHARACTERS.data) == 'name,count,share,good\n"a,b",3,0.1,true\n,,,false\n'
    )


def test_json_has_title_notes_record_tables_and_rows_with_null_for_undefined_cells():
    result = json.loads(to_json(REPORT_WITH_SPECIAL_CHARACTERS))
    assert list(result) == ["title", "notes", "record", "tables", "rows"]
    assert result["tables"] == [{"title": "first_one", "notes": ["50 %"]}, {"title": "second", "notes": []}]
    _defined_row, undefined_row = result["rows"]
    assert undefined_row == {"name": None, "count": None, "share": None, "good": False}


@settings(deadline=None, max_examples=50)
@given(st.text(), st.text())
@example("", "=1+1")  # a formula, which the CSV protects by an apostrophe
@example("\r", "'=")  # a cell that begins with the apostrophe itself
def test_no_text_of_a_cell_breaks_a_table_in_latex_markdown_or_csv(first, second):
    block = Block("t", ("a", "b"), ((first, second), ("x", "y")))
    report = Report("r", "t", (), (block,), pd.DataFrame({"a": [first, "x"], "b": [second, "y"]}), {})
    latex_rows = [line for line in latex(report).splitlines() if line.endswith(r" \\")]
    assert len(latex_rows) == 3  # the header and two rows
    markdown_rows = [line for line in markdown(report).splitlines() if line.startswith("|")]
    assert len(markdown_rows) == 4  # the header, its rule and two rows
    csv_rows = list(csv.reader(io.StringIO(to_csv(report.data), newline=""), strict=True))

    assert [list(map(as_written, row)) for row in csv_rows] == [["a", "b"], [first, second], ["x", "y"]]
