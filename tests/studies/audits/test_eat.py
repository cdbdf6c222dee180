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


@pytest.fixture(params=["small_5v5", "paper_shape_20v20_30_30"])
def expected(request, oracle):
    """What the oracle computed of four sets of vectors: targets X and Y, attributes A and B."""
    return oracle["eat"]["fixtures"][request.param]


@pytest.fixture
def of_targets(expected):
    """The association of each target of X, and of each of Y, with A rather than B."""
    return associations(*(np.array(expected[side]) for side in "XYAB"))


def test_the_associations_of_targets_are_the_oracles(expected, of_targets):
    of_x, of_y = of_targets
    np.testing.assert_allclose(of_x, expected["s_X"], rtol=1e-9)
    np.testing.assert_allclose(of_y, expected["s_Y"], rtol=1e-9)


def test_the_statistic_and_the_effect_size_are_the_oracles(expected, of_targets):
    measured = effect(*of_targets)
    assert measured["statistic"] == pytest.approx(expected["stat_sum"], rel=1e-9)
    assert measured["mean_difference"] == pytest.approx(expected["stat_meandiff"], rel=1e-9)
    assert measured["d"] == pytest.approx(expected["effect_size_d_ddof1"], rel=1e-9)


def test_the_effect_size_of_wefe_is_ours_by_the_deviation_of_a_whole_population(expected, of_targets):
    """WEFE divides by the standard deviation over n targets, we do over n - 1."""
    of_x, of_y = of_targets
    n = len(of_x) + len(of_y)
    wefe = effect(of_x, of_y)["d"] * math.sqrt(n / (n - 1))
    assert wefe == pytest.approx(expected["effect_size_ddof0_wefe"], rel=1e-9)


def test_the_normal_approximation_is_the_oracles(expected, of_targets):
    measured = effect(*of_targets)
    assert measured["z"] == pytest.approx(expected["z_closed_form"], rel=1e-9)
    assert measured["p_normal"] == pytest.approx(expected["p_normal_closed_form_one_sided"], rel=1e-9)


def test_the_exact_p_counts_the_partitions_that_the_oracle_counts(expected, of_targets):
    counted = exact(*of_targets)
    partitions = expected["exact_partitions"]
    assert (counted["n_ge"], counted["n_partitions"]) == (partitions["n_ge"], partitions["total"])
    assert counted["p_exact"] == partitions["p_ge"]


def test_the_p_of_drawn_partitions_is_the_exact_one_within_its_noise(of_targets):
    n_perm = 20_000
    p = exact(*of_targets)["p_exact"]
    four_standard_errors = 4 * math.sqrt(p * (1 - p) / n_perm)
    drawn = sampled(*of_targets, n_perm=n_perm, seed=0)["p_sampled"]
    assert drawn == pytest.approx(p, abs=four_standard_errors + 1 / n_perm)


def test_the_p_of_drawn_partitions_does_not_depend_on_the_order_of_targets(of_targets):
    of_x, of_y = of_targets
    drawn = sampled(of_x, of_y, n_perm=20_000, seed=0)
    assert sampled(of_x[::-1], of_y[::-1], n_perm=20_000, seed=0)["p_sampled"] == drawn["p_sampled"]


def test_the_observed_partition_is_one_of_those_that_p_counts(of_targets):
    """Then p is a whole number of 1 + n_perm partitions."""
    n_perm = 20_000
    n_ge = sampled(*of_targets, n_perm=n_perm, seed=0)["p_sampled"] * (1 + n_perm)
    assert n_ge == pytest.approx(round(n_ge), abs=1e-6)


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
