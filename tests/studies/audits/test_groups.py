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

DESIGN_OF_EIGHT_CELLS = np.array(2 * [[1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]], float)
"""An intercept and two effects: each of the four combinations is that of two cells."""
SUMS_OF_EFFECTS = DESIGN_OF_EIGHT_CELLS @ [1.0, 2.0, -1.0]
VARIANCES_OF_MEANS = np.full(8, 0.01)


def test_means_of_cells_that_are_sums_of_effects_are_not_shrunken():
    """Noisy means are drawn towards sums of effects, one for each attribute. These are such sums already.

    Their intervals must contain them.
    """
    estimate, low, high = shrunken(SUMS_OF_EFFECTS, VARIANCES_OF_MEANS, DESIGN_OF_EIGHT_CELLS)

    assert estimate == pytest.approx(SUMS_OF_EFFECTS, abs=1e-6)
    assert (low < SUMS_OF_EFFECTS).all()
    assert (high > SUMS_OF_EFFECTS).all()


def test_means_of_cells_that_are_far_from_every_sum_of_effects_are_hardly_shrunken():
    """Eight means depart by 100 from sums of effects, and have a standard error of .1: this is no noise.

    So the spread of departures is estimated as large, and the means move by less than .05.
    """
    means = SUMS_OF_EFFECTS + 100 * np.array([1, -1, 1, -1, -1, 1, 1, -1])

    estimate, _, _ = shrunken(means, VARIANCES_OF_MEANS, DESIGN_OF_EIGHT_CELLS)

    assert estimate == pytest.approx(means, abs=0.05)


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
def test_intervals_of_four_cells_with_six_items_hold_the_planted_means():
    """Two crossed attributes make four cells, of which two have two items and two have one.

    So how far the items of a cell differ is estimated from two differences alone. In 60 planted data sets,
    more than 90 % of the intervals must contain the planted mean of their cell.
    """
    rng = np.random.default_rng(0)
    cells = list(product("ab", "xy"))
    second_items = [("a", "x"), ("b", "x")]
    cell_of_item = [*cells, *second_items]
    attributes = [list(values) for values in zip(*cell_of_item, strict=True)]
    holds = []
    for _ in range(60):
        planted_mean = dict(zip(cells, 0.5 * rng.normal(size=4), strict=True))
        y = np.array([planted_mean[cell] for cell in cell_of_item]) + rng.normal(size=6)
        rows = estimate_cells(y, attributes)
        holds += [row["low"] <= planted_mean[row["cell"]] <= row["high"] for row in rows]

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
def test_where_all_items_have_one_value_this_is_the_estimate_of_every_cell(value):
    """12 items have this value, six in each of two cells. There is nothing to estimate a spread from.

    Both attributes are the same, so that their effects can't be told apart either; and sums of squares of
    1e300 are too large for a float.
    """
    attribute = ["a"] * 6 + ["b"] * 6

    rows = estimate_cells(np.full(12, value), [attribute, attribute])

    assert [row["estimate"] for row in rows] == pytest.approx([value, value])


def test_cells_of_one_item_each_are_refused():
    """Four items are in four cells, so that nothing shows how far the items of a cell differ."""
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


def test_an_item_without_an_outcome_is_left_out_and_counted(items):
    """Of eight items, four have the value a in the column `by` and four b. The first a has no outcome y."""
    items["i0"]["y"] = ""

    report = audit_groups(items, outcome="y", by=["by"])

    n_items = {row["by"]: row["n"] for row in records(report.data)}
    assert n_items == {"a": 4 - 1, "b": 4}
    assert report.record["left_out"] == 1


@pytest.mark.parametrize("spread", [0.0, 0.3, 2.0])
def test_the_likelihood_of_a_spread_of_cells_is_the_restricted_likelihood(spread):
    """Cells depart from the sum of the effects of their attributes by a spread, which is estimated.

    The likelihood of a spread is restricted to what effects can't explain (Patterson and Thompson 1971). Here
    two attributes make six cells; an intercept and three effects explain four directions of the six means.
    In the two others, the means are normal, with their own variance plus that of the spread. Likelihoods are
    defined but for a constant, so they are compared with that of a spread of 1.
    """
    rng = np.random.default_rng(0)
    design = np.array([[1, a == 1, b == 1, b == 2] for a, b in product(range(2), range(3))], float)
    means = rng.normal(size=6)
    variances = rng.uniform(0.05, 0.5, 6)
    basis_of_effects = np.linalg.qr(design).Q
    unexplained_directions = null_space(design.T)  # [6, 2], orthogonal to every effect

    def log_likelihood_of_unexplained(spread):
        covariance_of_means = np.diag(variances + spread**2)
        covariance = unexplained_directions.T @ covariance_of_means @ unexplained_directions
        return multivariate_normal(cov=covariance).logpdf(unexplained_directions.T @ means)

    fit = _fit_spread(spread, means, variances, basis_of_effects)
    fit_of_spread_1 = _fit_spread(1.0, means, variances, basis_of_effects)

    expected = log_likelihood_of_unexplained(spread) - log_likelihood_of_unexplained(1.0)
    assert fit.log_likelihood - fit_of_spread_1.log_likelihood == pytest.approx(expected, abs=1e-9)
