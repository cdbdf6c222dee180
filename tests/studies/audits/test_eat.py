"""The embedding association test: formulas against the oracle, their properties, and what they refuse."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obygaze_studies.eat import MOST_EXACT, associations, critical_d, effect, exact, sampled
from obygaze_studies.eat_stimuli import label
from obygaze_studies.errors import AuditError

SEEDS = st.integers(0, 2**32 - 1)


def draw(seed, n, m, size=6):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(rows, size)) for rows in (n, m, 4, 5)]


def spread(seed, n, m):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.normal(size=m)


@pytest.mark.parametrize("case", ["small_5v5", "paper_shape_20v20_30_30"])
def test_every_number_of_the_fixtures_comes_out(oracle, case):
    expected = oracle["eat"]["fixtures"][case]
    result = associations(*(np.array(expected[side]) for side in "XYAB"))
    measured = effect(*result)
    np.testing.assert_allclose(result[0], expected["s_X"], rtol=1e-9)
    np.testing.assert_allclose(result[1], expected["s_Y"], rtol=1e-9)
    assert measured["statistic"] == pytest.approx(expected["stat_sum"], rel=1e-9)
    assert measured["mean_difference"] == pytest.approx(expected["stat_meandiff"], rel=1e-9)
    assert measured["d"] == pytest.approx(expected["effect_size_d_ddof1"], rel=1e-9)
    n = len(result[0]) + len(result[1])
    wefe = measured["d"] * math.sqrt(n / (n - 1))
    assert wefe == pytest.approx(expected["effect_size_ddof0_wefe"], rel=1e-9)
    assert measured["z"] == pytest.approx(expected["z_closed_form"], rel=1e-9)
    assert measured["p_normal"] == pytest.approx(expected["p_normal_closed_form_one_sided"], rel=1e-9)
    counted = exact(*result)
    truth = expected["exact_partitions"]
    assert (counted["n_ge"], counted["n_partitions"]) == (truth["n_ge"], truth["total"])
    assert counted["p_exact"] == truth["p_ge"]
    n_perm = 20_000
    p = counted["p_exact"]
    tolerance = 4 * math.sqrt(p * (1 - p) / n_perm) + 1 / n_perm
    drawn = sampled(*result, n_perm=n_perm, seed=0)["p_sampled"]
    assert drawn == pytest.approx(p, abs=tolerance)
    assert sampled(*(side[::-1] for side in result), n_perm=n_perm, seed=0)["p_sampled"] == drawn
    # The observed partition is one of those counted.
    assert drawn * (1 + n_perm) == pytest.approx(round(drawn * (1 + n_perm)), abs=1e-6)


def test_the_printed_critical_d(oracle):
    expected = oracle["eat"]["paper_tables"]["critical_d_one_sided_0.05_n20"]
    assert critical_d(20, 20) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 6), st.integers(1, 6))
def test_meeting_in_the_middle_counts_as_enumeration_does(seed, n, m):
    # Tenths: many ties, and no sum of them is exact in binary.
    result = spread(seed, n, m)
    x = np.rint(result[0] * 5) / 10
    y = np.rint(result[1] * 5) / 10
    tenths = np.rint(np.concatenate([x, y]) * 10).astype(int)
    sums = [tenths[list(chosen)].sum() for chosen in combinations(range(n + m), n)]
    counted = exact(x, y)
    assert counted["n_partitions"] == len(sums)
    assert counted["n_ge"] == sum(one >= tenths[:n].sum() for one in sums)


def test_the_most_targets_are_counted_and_one_more_is_not():
    largest = spread(0, 20, MOST_EXACT - 20)
    assert exact(*largest)["n_partitions"] == math.comb(MOST_EXACT, 20)
    with pytest.raises(ValueError, match="45 targets"):
        exact(*spread(0, 20, MOST_EXACT - 19))


@pytest.mark.parametrize(
    ("side", "spoil", "place"),
    [
        (0, lambda v: v[:0], "set X"),
        (1, lambda v: v * 0, "set Y: .* row 0"),
        (2, lambda v: np.where(np.arange(len(v))[:, None] == 1, np.nan, v), "set A: .* row 1"),
        (3, lambda v: np.where(v == v[2, 2], np.inf, v), "set B: .* row 2"),
    ],
)
def test_a_bad_set_is_named(side, spoil, place):
    sides = draw(0, 4, 4)
    sides[side] = spoil(sides[side])
    with pytest.raises(AuditError, match=place):
        associations(*sides)


def test_targets_that_do_not_differ_have_no_effect():
    with pytest.raises(AuditError):
        effect(np.full(3, 0.1), np.full(4, 0.1))


def test_sets_are_described_by_what_selects_them():
    assert label({"emotion": "anger", "level": "high"}) == "anger high"
    assert (label("angry"), label(("a", "b"))) == ("angry", "2 given")
