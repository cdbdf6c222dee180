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


def test_a_wide_table_is_cut_into_parts_that_repeat_the_first_columns():
    """Two rows have six metrics of 20 characters each, of which a part of 80 characters takes two."""
    metrics = [f"metric number {number}" for number in range(6)]
    block = Block(
        "a block",
        ("model", "features", *metrics),
        (
            ("mlp", "xclip", *["0.123 [0.100, 0.200]"] * 6),
            ("mlp", "vivit", *["0.456 [0.400, 0.500]"] * 6),
        ),
        ("a note",),
    )

    parts = tables(block)

    assert len(parts) == 3
    for part in parts:
        lines = part.splitlines()
        assert max(len(line) for line in lines) <= 80
        header, _rule, first_row, second_row = lines
        assert header.split()[:2] == ["model", "features"]
        assert first_row.split()[:2] == ["mlp", "xclip"]
        assert second_row.split()[:2] == ["mlp", "vivit"]
    all_parts = "\n".join(parts)
    assert all_parts.count("0.123") == 6


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


def test_latex_has_the_title_and_the_notes_of_a_report_as_comments():
    """The title is "Scores of A & B", its only note "a note of it all: 5 % of_x"."""
    text = latex(REPORT_WITH_SPECIAL_CHARACTERS)

    assert text.startswith("% Scores of A & B\n% a note of it all: 5 % of_x\n")
    assert text.count("a note of it all") == 1


def test_latex_has_a_table_with_label_caption_and_notes_for_each_block():
    """The report `hard`, of the title "Scores of A & B", has two blocks.

    The first is called first_one, has a text and a number a row, and the note "50 %".
    """
    text = latex(REPORT_WITH_SPECIAL_CHARACTERS)

    assert text.count(r"\begin{table}") == 2
    assert r"\begin{tabular}{lr}" in text
    assert r"\label{tab:hard-2}" in text
    assert r"\caption{Scores of A \& B: first\_one.}" in text
    assert r"\par\smallskip{\footnotesize 50 \%.}" in text
    assert r"\small" not in text.replace(r"\smallskip", "")  # letters have the size that the paper has


def test_latex_escapes_special_characters_and_balances_braces_in_each_line():
    """The report has the rows "*mlp", "0.5 [0.4, 0.6]" and "[x]", a line end, "y", "1,000".

    At the beginning of a row or after a line end, LaTeX reads asterisks and brackets as options.
    """
    text = latex(REPORT_WITH_SPECIAL_CHARACTERS)

    assert r"{*}mlp & 0.5 {[}0.4, 0.6] \\" in text
    assert r"{[}x] y & 1,000 \\" in text
    lines = [line for line in text.splitlines() if not line.startswith("%")]  # without comments
    for line in lines:
        assert not re.search(r"(?<!\\)[%_#$]", line), line
        without_escaped_braces = line.replace(r"\{", "").replace(r"\}", "")
        assert without_escaped_braces.count("{") == without_escaped_braces.count("}"), line


def test_csv_writes_integers_booleans_and_missing_cells_plainly():
    """Integers have no decimal point, booleans small letters, and missing cells are empty."""
    table = pd.DataFrame(
        {
            "name": ["a,b", None],
            "count": pd.Series([3, None], dtype=object),
            "share": [0.1, float("nan")],
            "good": [True, False],
        }
    )

    text = to_csv(table)

    header, first_row, second_row = text.splitlines()
    assert header == "name,count,share,good"
    assert first_row == '"a,b",3,0.1,true'
    assert second_row == ",,,false"
    assert text.endswith("\n")
    assert "\r" not in text


def test_json_has_title_notes_record_tables_and_rows_with_null_for_undefined_cells():
    """The report has two tables, the first with a note, and rows of which the second is all but empty."""
    content = json.loads(to_json(REPORT_WITH_SPECIAL_CHARACTERS))

    assert list(content) == ["title", "notes", "record", "tables", "rows"]
    first_table, second_table = content["tables"]
    assert first_table == {"title": "first_one", "notes": ["50 %"]}
    assert second_table == {"title": "second", "notes": []}
    _full_row, empty_row = content["rows"]
    assert empty_row == {"name": None, "count": None, "share": None, "good": False}


def report_of_a_table(first, second):
    """A report of one table, of the columns a and b, a row of these two texts, and the row x, y."""
    block = Block("t", ("a", "b"), ((first, second), ("x", "y")))
    data = pd.DataFrame({"a": [first, "x"], "b": [second, "y"]})
    return Report("r", "t", (), (block,), data, {})


@settings(deadline=None, max_examples=25)
@given(st.text(), st.text())
@example("", "=1+1")
@example("\r", "'=")
def test_no_text_of_a_cell_breaks_a_table_in_latex_or_markdown(first, second):
    """A table has a header, a row of any two texts, and another row. Each row stays one line.

    In LaTeX a row ends with two backslashes, and in Markdown it begins with a bar.
    """
    report = report_of_a_table(first, second)

    lines_of_latex = [line for line in latex(report).splitlines() if line.endswith(r" \\")]
    lines_of_markdown = [line for line in markdown(report).splitlines() if line.startswith("|")]

    header, rule_under_header, rows = 1, 1, 2
    assert len(lines_of_latex) == header + rows
    assert len(lines_of_markdown) == header + rule_under_header + rows


@settings(deadline=None, max_examples=25)
@given(st.text(), st.text())
@example("", "=1+1")  # a formula, which the CSV protects by an apostrophe
@example("\r", "'=")  # a cell that begins with the apostrophe itself
def test_any_text_of_a_cell_is_read_back_from_a_csv_file(first, second):
    """A table has the columns a and b, a row of any two texts, and the row x, y.

    Spreadsheets would compute a cell that begins like a formula, so it is protected. `as_written` undoes
    that.
    """
    data = report_of_a_table(first, second).data

    rows_of_csv = list(csv.reader(io.StringIO(to_csv(data), newline=""), strict=True))

    texts_of_csv = [[as_written(cell) for cell in row] for row in rows_of_csv]
    assert texts_of_csv == [["a", "b"], [first, second], ["x", "y"]]
