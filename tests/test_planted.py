"""Rows of benchmarks/planted: each runs, is not far out of its bounds, and has its table in its page."""

import os
import re

import pytest

from benchmarks.planted import people
from benchmarks.planted.__main__ import ROWS
from benchmarks.planted.row import ROOT, Cell, Column, Row, run, written
from obygaze_models.evaluation.intervals import CAPTIONS

RELEASED = {"sentences", "sentences-pooled"}
"""Rows that draw from released data, which the project may not carry along."""

SLOW = {
    "calibration",
    "camera",
    "explain",
    "fuse",
    "fuse-null",
    "in-time-null",
    "in-time-nulls",
    "known_films",
    "layers",
    "learn",
    "method",
    "method-levels",
    "motif",
    "music",
    "noise",
    "nulls",
    "ranking",
    "ranking-worlds",
    "share",
    "share-levels",
    "speech",
    "speech_time",
    "units",
    "units-cost",
    *RELEASED,
}
"""Rows whose films move or sound, that train networks, fit models in many worlds, or read released data; each
takes two seconds and more."""


NETWORKS = {"motif", "units-cost"}
"""Of these, rows that train networks of a full size."""

DETECTORS = {"people", "people-nobody"}
"""Rows of networks in packages of their own, which environment variables name."""


def marked(name):
    marks = []
    if name in SLOW:
        marks.append(pytest.mark.long)
    if name in NETWORKS:
        marks.append(pytest.mark.nightly)
    return pytest.param(name, marks=marks)


def table_below(page, name):
    """The cells of the block of a row in a page, without the line between head and body."""
    start, end = f"<!-- planted: {name} -->", "<!-- end -->"
    text = (ROOT / page).read_text("utf-8")
    assert start in text
    lines = [line for line in text.partition(start)[2].partition(end)[0].splitlines() if "|" in line]
    head, _, *body = [list(map(str.strip, line.strip("|").split("|"))) for line in lines]
    return head, body


@pytest.mark.long
@pytest.mark.parametrize("name", [*map(marked, ROWS)])
def test_a_row_runs_and_its_page_has_its_table(request, name):
    row = ROWS[name]
    if name in RELEASED:
        request.getfixturevalue("shared_data")
    if name in DETECTORS and any(variable not in os.environ for variable in people.NETWORKS):
        pytest.skip(f"{' and '.join(people.NETWORKS)} name no files")
    result = run(row, small=True)
    for figures in result.figures:
        assert figures, "a cell without a figure"
        assert all(figure.beyond <= 4 for figure in figures.values()), result.wrong
    head, body = table_below(row.page, name)
    assert head == [*row.heads, *row.columns]
    names = dict.fromkeys(cell.name for cell in row.cells)
    assert [tuple(line[: len(row.heads)]) for line in body] == [*names]


def test_compare_prints_the_level_that_was_measured():
    """By p of trained models and by their intervals, of two equally good methods."""
    head, body = table_below("docs/evaluation.md", "tests-methods")
    trained = [head.index(name) for name in ("sign flip", "interval of trained models without 0")]
    levels = [float(line[place]) for line in body for place in trained]
    low = f"{min(levels):.2f}".lstrip("0")
    high = f"{max(levels):.2f}".lstrip("0")
    assert f" {low} to {high} of" in CAPTIONS["p"]


def test_every_block_of_a_page_is_of_a_row():
    for page in (ROOT / "docs").rglob("*.md"):
        result = re.findall("<!-- planted: (.*?) -->", page.read_text("utf-8"))
        assert [ROWS[name].page for name in result] == [page.relative_to(ROOT).as_posix()] * len(result)


def toy(draw, full=400, **column):
    cells = [Cell(("a",), (0.9,)), Cell(("a",), (0.5,))]
    return Row("toy", "docs/x.md", "toy", "Toy.", ("world",), cells, draw, {"holds": Column(**column)}, full)


def test_figures_are_means_with_their_errors_and_a_claim_that_does_not_hold_is_wrong():
    result = run(toy(lambda rng, share: {"holds": rng.random(5) < share}, low=0.85))
    good, bad = (figures["holds"] for figures in result.figures)
    assert good.mean == pytest.approx(0.9, abs=0.03)
    assert good.error == pytest.approx((0.9 * 0.1 / 5 / 400) ** 0.5, rel=0.2)
    assert (good.beyond, bad.beyond > 4, len(result.wrong)) == (0.0, True, 1)
    assert "| a | " in re.sub(" +", " ", result.table)
    page = written("before\n<!-- planted: toy -->\nearlier\n<!-- end -->\nafter\n", result)
    assert page.startswith("before\n")
    assert page.endswith("-->\nafter\n")
    assert "earlier" not in page
    assert written(page, result) == page


def test_a_block_names_the_worst_cell_and_an_error_for_each_unit():
    """AUCs and seconds have nothing in common."""

    def draw(rng, share):
        return {"holds": rng.random(5) < share, "seconds": 100 * rng.random(), "AUC": share}

    cells = [Cell(("a", ""), (0.9,)), Cell(("b", "often"), (0.5,))]
    columns = {"holds": Column(low=0.4, digits=2), "seconds": Column(digits=1), "AUC": Column()}
    result = run(Row("toy", "docs/x.md", "toy", "Toy.", ("world", "how"), cells, draw, columns, 400))
    lowest = result.figures[1]["holds"].mean
    assert f"Worst: holds {lowest:.2f} (b, often).".replace("0.", ".") in result.block
    errors = [max(figures[name].error for figures in result.figures) for name in columns]
    expected = [f"{error:.3f}".replace("0.", ".") for error in errors]
    holds, seconds, auc = (f"{text} ({name})" for text, name in zip(expected, columns, strict=True))
    assert f"at most {holds}, {seconds}, {auc}" in result.block


def test_what_is_undefined_is_in_no_count():
    result = run(toy(lambda rng, share: {"holds": float("nan") if rng.random() < share else 1.0}))
    assert [figures["holds"].mean for figures in result.figures] == [1.0, 1.0]
