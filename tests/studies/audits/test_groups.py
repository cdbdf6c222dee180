"""Cells of crossed attributes: small ones are drawn to the sum of effects, and intervals hold."""

from itertools import product

import numpy as np
import pytest

from obygaze_models.report import records
from obygaze_studies.errors import AuditError
from obygaze_studies.groups import audit_groups, estimate_cells, shrunken


def test_without_departures_cells_are_the_sum_and_with_large_ones_they_are_their_means():
    design = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]], float)
    design = np.vstack([design, design])
    means = design @ [1.0, 2.0, -1.0]
    estimate, low, high = shrunken(means, np.full(8, 0.01), design)
    assert estimate == pytest.approx(means, abs=1e-6)
    assert (low < means).all()
    assert (means < high).all()
    apart = means + 100 * np.array([1, -1, 1, -1, -1, 1, 1, -1])
    estimate, _, _ = shrunken(apart, np.full(8, 0.01), design)
    assert estimate == pytest.approx(apart, abs=0.05)


def planted(seed, spread, share):
    rng = np.random.default_rng(seed)
    cells = list(product("ab", "xyz", "1234"))
    sizes = rng.choice([5, 20, 100], len(cells))
    effects = [
        dict(zip(names, 0.5 * rng.normal(size=len(names)), strict=True)) for names in ("ab", "xyz", "1234")
    ]
    truth = np.array([sum(own[k] for own, k in zip(effects, cell, strict=True)) for cell in cells])
    truth = truth + spread * rng.normal(size=len(cells))
    if share:
        truth = 1 / (1 + np.exp(1 - truth))
    items = np.repeat(truth, sizes)
    y = (rng.random(len(items)) < items).astype(float) if share else items + rng.normal(size=len(items))
    at = [np.repeat([cell[k] for cell in cells], sizes).tolist() for k in range(3)]
    return y, at, dict(zip(cells, truth, strict=True))


@pytest.mark.long  # simulates
@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("spread", [0.1, 0.5])
def test_intervals_hold_and_estimates_are_nearer_than_means(spread, share):
    held = []
    own = []
    raw = []
    for seed in range(8):
        y, at, truth = planted(seed, spread, share)
        for row in estimate_cells(y, at):
            true = truth[row["cell"]]
            held.append(row["low"] <= true <= row["high"])
            own.append(abs(row["estimate"] - true))
            raw.append(abs(row["mean"] - true))
    assert np.mean(held) > 0.9
    assert np.mean(own) < np.mean(raw)


@pytest.mark.long  # simulates
def test_intervals_hold_where_few_cells_have_two_items():
    """How far the items of a cell differ is known by two degrees of freedom then."""
    rng = np.random.default_rng(0)
    held = []
    cells = list(product("ab", "xy"))
    for _ in range(60):
        truth = dict(zip(cells, 0.5 * rng.normal(size=4), strict=True))
        items = [*cells, cells[0], cells[2]]
        y = np.array([truth[cell] for cell in items]) + rng.normal(size=6)
        rows = estimate_cells(y, [[cell[k] for cell in items] for k in range(2)])
        held += [row["low"] <= truth[row["cell"]] <= row["high"] for row in rows]
    assert np.mean(held) > 0.9


@pytest.mark.parametrize(("unit", "shift"), [(1e-9, 0), (1e6, 0), (1, 1e8), (2.0**900, 0)])
def test_intervals_go_with_the_unit_and_the_zero_of_a_number(unit, shift):
    y, at, _ = planted(0, 0.3, share=False)
    moved = estimate_cells(y * unit + shift, at)
    for row, other in zip(estimate_cells(y, at), moved, strict=True):
        for name in ("estimate", "low", "high"):
            assert (other[name] - shift) / unit == pytest.approx(row[name], abs=1e-5)


def test_cells_that_are_all_alike_and_empty_cells_of_a_table():
    rows = estimate_cells(np.ones(12), [["a"] * 6 + ["b"] * 6])
    assert [(row["n"], row["mean"]) for row in rows] == [(6, 1.0), (6, 1.0)]
    assert all(0.2 < row["low"] < row["estimate"] <= row["high"] <= 1 for row in rows)
    for value in (7.5, 1e300):  # attributes that tell the same, and no spread
        rows = estimate_cells(np.full(12, value), [["a"] * 6 + ["b"] * 6] * 2)
        assert [row["estimate"] for row in rows] == pytest.approx([value] * 2)
    items = {f"i{k}": {"y": str(k % 2), "by": "ab"[k // 4]} for k in range(8)}
    items["i0"]["y"] = ""
    report = audit_groups(items, outcome="y", by=["by"])
    assert [(row["by"], row["n"]) for row in records(report.data)] == [("a", 3), ("b", 4)]
    assert report.record["left_out"] == 1
    with pytest.raises(AuditError, match="no column z"):
        audit_groups(items, outcome="z", by=["by"])
    for by in (["by", "by"], ["mean"]):
        with pytest.raises(AuditError, match="two columns"):
            audit_groups(items, outcome="y", by=by)
    with pytest.raises(AuditError, match="no cell has two items"):
        estimate_cells(np.arange(4.0), [list("abcd")])
    items["i1"]["y"] = "much"
    with pytest.raises(AuditError, match="y of i1"):
        audit_groups(items, outcome="y", by=["by"])
