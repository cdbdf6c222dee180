"""Rows of benchmarks/planted: each is within its bounds, or nearly, and has its table in its page."""

import os
import re

import pytest

from benchmarks.planted import people
from benchmarks.planted.__main__ import ROWS
from benchmarks.planted.row import ROOT, Cell, Column, Row, run, written
from obygaze_models.evaluation.intervals import CAPTIONS

RELEASED = {"sentences", "sentences-pooled"}
"""Rows that draw from released data, which the project may not carry along."""

DETECTORS = {"people", "people-nobody"}
"""Rows of networks in packages of their own, which environment variables name."""

AT_NIGHT = {
    *("motif", "units-cost"),  # train networks of a full size
    "sentences",  # sentences-pooled draws the same corpora
    *("speech", "music"),  # speech_time runs the same detector
    *("ranking-worlds", "noise", "stands-in-nothing", "stands-in-power"),
    *("fuse-null", "in-time-nulls", "intervals-levels", "method-levels", "pooled", "tests-methods"),
    *("compare-rare", "compare-skewed", "rate-few", "rate-windows", "share-few"),
}
"""Rows that train large networks, or draw other worlds for what another row runs on each push."""


def at_night_if_costly(name):
    marks = [pytest.mark.nightly] if name in AT_NIGHT else []
    return pytest.param(name, marks=marks)


def table_below(page, name):
    """Return the head and the lines of the table in the block of a row in a page, each as a list of cells."""
    start = f"<!-- planted: {name} -->"
    text = (ROOT / page).read_text("utf-8")
    assert start in text
    _, _, text_behind_start = text.partition(start)
    block, _, _ = text_behind_start.partition("<!-- end -->")
    head, _line_between, *body = [cells_of(line) for line in block.splitlines() if "|" in line]
    return head, body


def cells_of(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.long
@pytest.mark.parametrize("name", [at_night_if_costly(name) for name in ROWS])
def test_no_figure_of_a_row_is_far_out_of_the_bounds_that_its_page_states(request, name):
    """A row of benchmarks/planted measures figures, such as how often an interval is right, on made data.

    It does so in several worlds, its cells. Its page states bounds for the figures. Few corpora are drawn
    here, so that figures vary: `figure.beyond` says how far one is out of its bounds, in standard errors, of
    which four are allowed. Rows that need released data, or networks that are not here, are skipped.
    """
    if name in RELEASED:
        request.getfixturevalue("shared_data")
    if name in DETECTORS and any(variable not in os.environ for variable in people.NETWORKS):
        pytest.skip(f"{' and '.join(people.NETWORKS)} name no files")

    result = run(ROWS[name], small=True)

    for figures_of_cell in result.figures:
        assert figures_of_cell, "a cell without a figure"
        for figure in figures_of_cell.values():
            assert figure.beyond <= 4, result.wrong


@pytest.mark.parametrize("name", ROWS)
def test_the_table_of_a_page_has_the_columns_and_lines_of_its_row(name):
    """A row of benchmarks/planted measures several figures in several worlds, which are called cells.

    On its page the results are a table: the figures are its columns (`row.columns`), and each cell is a line.
    Before the figures, a line has the name of its cell, in as many columns as the name has words
    (`row.heads`). Cells of the same name share a line.
    """
    row = ROWS[name]

    head, lines = table_below(row.page, name)

    assert head == [*row.heads, *row.columns]
    n_words_of_name = len(row.heads)
    names_in_table = [tuple(line[:n_words_of_name]) for line in lines]
    names_of_cells = list(dict.fromkeys(cell.name for cell in row.cells))
    assert names_in_table == names_of_cells


def test_the_caption_of_p_has_the_levels_that_the_page_of_evaluation_has():
    """The level is how often a test finds a difference between two equally good methods.

    A table of docs/evaluation.md has it in several worlds, by p and by intervals. The caption under tables of
    results has the least and the largest, such as ".03 to .13 of".
    """
    head, lines = table_below("docs/evaluation.md", "tests-methods")
    levels = []
    for line in lines:
        cells = dict(zip(head, line, strict=True))
        levels += [float(cells["sign flip"]), float(cells["interval of trained models without 0"])]

    lowest = without_zero(min(levels), digits=2)
    highest = without_zero(max(levels), digits=2)
    assert f" {lowest} to {highest} of" in CAPTIONS["p"]


def test_every_block_of_measured_figures_in_a_page_is_of_a_row_that_names_this_page():
    """A block begins with a comment such as <!-- planted: coverage -->, which names a row."""
    for page in (ROOT / "docs").rglob("*.md"):
        names = re.findall("<!-- planted: (.*?) -->", page.read_text("utf-8"))
        for name in names:
            assert ROWS[name].page == page.relative_to(ROOT).as_posix()


def toy_row(draw, full=400, **bounds):
    """A row with the figure "holds" in two worlds of one name, whose draws get .9 and .5 as `share`."""
    return Row(
        name="toy",
        page="docs/x.md",
        command="toy",
        statement="Toy.",
        heads=("world",),
        cells=[Cell(("a",), (0.9,)), Cell(("a",), (0.5,))],
        draw=draw,
        columns={"holds": Column(**bounds)},
        full=full,
    )


@pytest.fixture(scope="module")
def result_of_a_claim():
    """400 draws of five that are true in 90 % and in 50 %, where the page claims that at least 85 % are."""

    def draw(rng, share):
        return {"holds": rng.random(5) < share}

    return run(toy_row(draw, low=0.85))


def test_a_figure_is_the_mean_over_draws_with_its_standard_error(result_of_a_claim):
    """In the first world each of 5 statements is true with probability .9, in each of 400 draws.

    The standard error of a share p of n is the root of p (1 - p) / n, with n = 5 x 400.
    """
    figures_of_first_world, _ = result_of_a_claim.figures
    holds = figures_of_first_world["holds"]

    assert holds.mean == pytest.approx(0.9, abs=0.03)
    assert holds.error == pytest.approx((0.9 * 0.1 / (5 * 400)) ** 0.5, rel=0.2)


def test_a_claim_that_does_not_hold_in_a_world_is_wrong(result_of_a_claim):
    """A page claims that at least 85 % of intervals hold the truth, in each of two planted worlds.

    In the first world 90 % do: nothing is beyond the claim. In the second 50 % do, which is beyond it by far
    more than four standard errors. So one world contradicts the claim, and is listed as wrong.
    """
    first_world, second_world = result_of_a_claim.figures

    assert first_world["holds"].beyond == 0
    assert second_world["holds"].beyond > 4
    assert len(result_of_a_claim.wrong) == 1


def test_worlds_of_one_name_share_a_line_of_the_table(result_of_a_claim):
    """The claim was measured in two worlds, both called a: the table has one line that begins with | a |."""
    table_with_single_blanks = re.sub(" +", " ", result_of_a_claim.table)

    assert table_with_single_blanks.count("| a | ") == 1


def test_a_table_is_written_into_its_block_of_a_page_and_nowhere_else(result_of_a_claim):
    """The page has a block of the row `toy`, with a table of earlier. Written again, it stays the same."""
    page = "before\n<!-- planted: toy -->\nearlier\n<!-- end -->\nafter\n"

    page_with_table = written(page, result_of_a_claim)

    assert page_with_table.startswith("before\n")
    assert page_with_table.endswith("-->\nafter\n")
    assert "earlier" not in page_with_table
    assert written(page_with_table, result_of_a_claim) == page_with_table


def without_zero(value, digits):
    """Write a number as pages do: 0.52 as .52."""
    return f"{value:.{digits}f}".replace("0.", ".")


@pytest.fixture(scope="module")
def result_of_three_units():
    """Figures of three units, "holds" (a share), "seconds" and "AUC", of 400 draws in two worlds.

    In the world (a) statements hold with probability .9, in the world (b, often) with .5. The page claims
    that a share of at least .4 holds, and claims nothing of the other figures.
    """

    def draw(rng, share):
        return {"holds": rng.random(5) < share, "seconds": 100 * rng.random(), "AUC": share}

    row = Row(
        name="toy",
        page="docs/x.md",
        command="toy",
        statement="Toy.",
        heads=("world", "how"),
        cells=[Cell(("a", ""), (0.9,)), Cell(("b", "often"), (0.5,))],
        draw=draw,
        columns={"holds": Column(low=0.4, digits=2), "seconds": Column(digits=1), "AUC": Column()},
        full=400,
    )
    return run(row)


def test_the_block_of_a_row_in_a_page_names_the_world_with_the_worst_figure(result_of_three_units):
    """Two worlds are called (a) and (b, often). The page claims of them that "holds" is at least .4.

    It is about .9 in (a) and about .5 in (b, often). So the second is the worst, as it is the nearest to the
    bound of .4. The block has its figure as measured, such as "Worst: holds .51 (b, often).". The figures
    without a claim, seconds and AUC, have no worst.
    """
    _, second_world = result_of_three_units.figures
    share_in_second_world = second_world["holds"].mean
    assert share_in_second_world == pytest.approx(0.5, abs=0.05)

    worst = f"Worst: holds {without_zero(share_in_second_world, digits=2)} (b, often)."
    assert worst in result_of_three_units.block


def test_a_block_has_the_largest_error_of_each_unit(result_of_three_units):
    """A share, seconds and an AUC have nothing in common: one largest error of all would say nothing.

    There are two cells; of each figure the larger of its two standard errors is named.
    """
    errors = []
    for column in ("holds", "seconds", "AUC"):
        first_cell, second_cell = result_of_three_units.figures
        largest = max(first_cell[column].error, second_cell[column].error)
        errors.append(f"{without_zero(largest, digits=3)} ({column})")

    assert f"at most {', '.join(errors)}" in result_of_three_units.block


def test_draws_in_which_a_figure_is_undefined_are_left_out_of_its_mean():
    """A row with the figure "holds" is drawn in two worlds, where 90 % and 50 % of draws give NaN.

    All others give 1, so that the mean is 1.
    """

    def draw(rng, share):
        is_undefined = rng.random() < share
        return {"holds": float("nan") if is_undefined else 1.0}

    result = run(toy_row(draw))

    for figures in result.figures:
        assert figures["holds"].mean == 1.0
