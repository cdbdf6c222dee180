"""Cells of crossed attributes: small ones are drawn to the sum of effects, and intervals hold."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.stats import multivariate_normal

from obygaze_models.report import records
from obygaze_studies.errors import AuditError
from obygaze_studies.groups import _fit_spread, audit_groups, estimate_cells, shrunken


def test_shrinking_changes_neither_sums_of_effects_nor_means_that_are_far_from_any():
    """The means of eight cells are sums of an intercept and two effects, and then depart from them by 100."""
    cells = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]], float)
    design = np.vstack([cells, cells])
    means = design @ [1.0, 2.0, -1.0]
    estimate, low, high = shrunken(means, np.full(8, 0.01), design)
    assert estimate == pytest.approx(means, abs=1e-6)
    assert (low < means).all()
    assert (means < high).all()

    departures = 100 * np.array([1, -1, 1, -1, -1, 1, 1, -1])
    estimate, _, _ = shrunken(means + departures, np.full(8, 0.01), design)
    assert estimate == pytest.approx(means + departures, abs=0.05)


@dataclass(frozen=True)
class Items:
    """Items in the cells of three attributes."""

    y: np.ndarray  # the outcome of each item
    attributes: list[list[str]]  # the three attributes' values, of each item
    truth: dict[tuple[str, ...], float]  # the planted mean of each cell


def plant_items(seed, *, spread, is_share):
    """Plant the means of 24 cells as sums of three effects, and a departure of each cell by `spread`.

    Cells have 5, 20 or 100 items. Outcomes are 0 or 1 if `is_share`, else numbers.
    """
    rng = np.random.default_rng(seed)
    cells = list(product("ab", "xyz", "1234"))
    sizes = rng.choice([5, 20, 100], len(cells))
    effects = {}
    for values in ("ab", "xyz", "1234"):
        effects |= dict(zip(values, 0.5 * rng.normal(size=len(values)), strict=True))
    means = np.array([effects[a] + effects[b] + effects[c] for a, b, c in cells])
    means = means + spread * rng.normal(size=len(cells))
    if is_share:
        means = 1 / (1 + np.exp(1 - means))
    means_of_items = np.repeat(means, sizes)
    n = len(means_of_items)
    y = (rng.random(n) < means_of_items).astype(float) if is_share else means_of_items + rng.normal(size=n)
    attributes = [np.repeat(values, sizes).tolist() for values in zip(*cells, strict=True)]
    return Items(y, attributes, dict(zip(cells, means, strict=True)))


@pytest.mark.long  # simulates
@pytest.mark.parametrize("is_share", [False, True], ids=["numbers", "shares"])
@pytest.mark.parametrize("spread", [0.1, 0.5])
def test_intervals_hold_and_estimates_are_nearer_than_means(spread, is_share):
    """Items in 24 cells, of three crossed attributes, have outcomes around the planted mean of their cell.

    A cell departs by `spread` from the sum of the attributes' effects. Nearly all intervals should hold the
    planted mean, and estimates be nearer to it than the mean of a cell's few items.
    """
    holds = []
    errors_of_estimates = []
    errors_of_means = []
    for seed in range(8):
        items = plant_items(seed, spread=spread, is_share=is_share)
        for row in estimate_cells(items.y, items.attributes):
            truth = items.truth[row["cell"]]
            holds.append(row["low"] <= truth <= row["high"])
            errors_of_estimates.append(abs(row["estimate"] - truth))
            errors_of_means.append(abs(row["mean"] - truth))

    assert np.mean(holds) > 0.9
    assert np.mean(errors_of_estimates) < np.mean(errors_of_means)


@pytest.mark.long  # simulates
def test_intervals_hold_the_truth_where_only_two_cells_have_two_items_and_the_others_one():
    """How far the items of a cell differ is estimated from two differences alone."""
    rng = np.random.default_rng(0)
    cells = list(product("ab", "xy"))
    cell_of_item = [*cells, cells[0], cells[2]]
    attributes = [list(values) for values in zip(*cell_of_item, strict=True)]
    holds = []
    for _ in range(60):
        truth = dict(zip(cells, 0.5 * rng.normal(size=4), strict=True))
        y = np.array([truth[cell] for cell in cell_of_item]) + rng.normal(size=6)
        rows = estimate_cells(y, attributes)
        holds += [row["low"] <= truth[row["cell"]] <= row["high"] for row in rows]

    assert np.mean(holds) > 0.9


@pytest.mark.parametrize(
    ("unit", "shift"),
    [(1e-9, 0), (1e6, 0), (1, 1e8), (2.0**900, 0)],
    ids=["small", "large", "far from zero", "huge"],
)
def test_estimates_follow_the_unit_and_zero_of_the_outcome(unit, shift):
    """An outcome in millimetres, or counted from another zero, must give the same results in that unit."""
    items = plant_items(seed=0, spread=0.3, is_share=False)
    rows = estimate_cells(items.y, items.attributes)
    rows_in_unit = estimate_cells(items.y * unit + shift, items.attributes)
    for row, row_in_unit in zip(rows, rows_in_unit, strict=True):
        for name in ("estimate", "low", "high"):
            assert (row_in_unit[name] - shift) / unit == pytest.approx(row[name], abs=1e-5)


def test_a_cell_of_six_positive_items_has_an_interval_from_above_a_fifth_to_1():
    """Six of six may be chance: the true share can be much lower than 1."""
    rows = estimate_cells(np.ones(12), [["a"] * 6 + ["b"] * 6])
    assert [row["n"] for row in rows] == [6, 6]
    assert [row["mean"] for row in rows] == [1.0, 1.0]
    for row in rows:
        assert 0.2 < row["low"] < row["estimate"] <= row["high"] <= 1


@pytest.mark.parametrize("value", [7.5, 1e300])
def test_cells_of_equal_items_by_two_equal_attributes_have_the_value_of_the_items_as_estimate(value):
    attribute = ["a"] * 6 + ["b"] * 6
    rows = estimate_cells(np.full(12, value), [attribute, attribute])
    assert [row["estimate"] for row in rows] == pytest.approx([value, value])


def test_cells_of_one_item_each_are_refused():
    with pytest.raises(AuditError, match="no cell has two items"):
        estimate_cells(np.arange(4.0), [["a", "b", "c", "d"]])


@pytest.fixture
def items():
    """Eight items i0 to i7 with a column y of 0 and 1, and a column `by`, of four a and four b."""
    return {f"i{number}": {"y": str(number % 2), "by": "ab"[number // 4]} for number in range(8)}


@pytest.mark.parametrize(
    ("outcome", "by", "message"),
    [
        ("z", ["by"], "no column z"),
        ("y", ["by", "by"], "two columns"),
        ("y", ["mean"], "two columns"),
        ("by", ["y"], "by of i0"),
    ],
    ids=["a column that is not there", "a column twice", "a column of the report", "an outcome of words"],
)
def test_columns_that_make_no_cells_are_refused(items, outcome, by, message):
    """Eight items have a number, in the column `y`, and a word, in the column `by`.

    The report has the mean of an outcome for each combination of values in some columns, and a column `mean`.
    """
    with pytest.raises(AuditError, match=message):
        audit_groups(items, outcome=outcome, by=by)


def test_an_item_with_an_empty_cell_is_left_out_and_counted(items):
    items["i0"]["y"] = ""
    report = audit_groups(items, outcome="y", by=["by"])
    n_items = {row["by"]: row["n"] for row in records(report.data)}
    assert n_items == {"a": 3, "b": 4}
    assert report.record["left_out"] == 1


@pytest.mark.parametrize("spread", [0.0, 0.3, 2.0])
def test_the_likelihood_of_a_spread_is_that_of_what_the_effects_leave_unexplained(spread):
    """The means of six cells are random; the effects of two crossed attributes can explain four directions.

    What remains is normal, with the variances of the means and the spread (restricted likelihood, Patterson
    and Thompson 1971). Only differences of likelihoods between spreads are defined, here to a spread of 1.
    """
    rng = np.random.default_rng(0)
    design = np.array([[1, a == 1, b == 1, b == 2] for a, b in product(range(2), range(3))], float)
    means = rng.normal(size=6)
    variances = rng.uniform(0.05, 0.5, 6)
    basis_of_effects = np.linalg.qr(design).Q
    unexplained = null_space(design.T)  # [6, 2], orthogonal to every effect

    def log_likelihood_of_unexplained(spread):
        covariance = unexplained.T @ np.diag(variances + spread**2) @ unexplained
        return multivariate_normal(cov=covariance).logpdf(unexplained.T @ means)

    fit = _fit_spread(spread, means, variances, basis_of_effects)
    fit_of_spread_1 = _fit_spread(1.0, means, variances, basis_of_effects)

    expected = log_likelihood_of_unexplained(spread) - log_likelihood_of_unexplained(1.0)
    assert fit.log_likelihood - fit_of_spread_1.log_likelihood == pytest.approx(expected, abs=1e-9)
