"""The embedding association test: formulas against the oracle, their properties, and what they refuse."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obygaze_studies.eat import MAX_EXACT, associations, critical_d, effect, exact, sampled
from obygaze_studies.eat_stimuli import label
from obygaze_studies.errors import AuditError

ANY_SEED = st.integers(0, 2**32 - 1)


def draw_sets(seed, n, m, size=6):
    """Draw the vectors of n targets X and m targets Y, and of four attributes A and five B."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(rows, size)) for rows in (n, m, 4, 5)]


def draw_associations(seed, n, m):
    """Draw the associations of n targets X and of m targets Y."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.normal(size=m)


@pytest.mark.parametrize("name", ["small_5v5", "paper_shape_20v20_30_30"])
def test_associations_effect_sizes_and_p_are_the_oracles(oracle, name):
    """The oracle has four sets of vectors: of images X and Y, and of texts A and B.

    A test asks whether X are nearer to A than to B, more so than Y: each image has an association, both sets
    an effect size d. The exact p is the share of partitions of the images into two sets that give as much.
    """
    expected = oracle["eat"]["fixtures"][name]
    of_x, of_y = associations(*(np.array(expected[side]) for side in "XYAB"))
    np.testing.assert_allclose(of_x, expected["s_X"], rtol=1e-9)
    np.testing.assert_allclose(of_y, expected["s_Y"], rtol=1e-9)

    measured = effect(of_x, of_y)
    assert measured["statistic"] == pytest.approx(expected["stat_sum"], rel=1e-9)
    assert measured["mean_difference"] == pytest.approx(expected["stat_meandiff"], rel=1e-9)
    assert measured["d"] == pytest.approx(expected["effect_size_d_ddof1"], rel=1e-9)
    n = len(of_x) + len(of_y)
    d_by_deviation_over_n = measured["d"] * math.sqrt(n / (n - 1))  # ours is over n - 1, WEFE's over n
    assert d_by_deviation_over_n == pytest.approx(expected["effect_size_ddof0_wefe"], rel=1e-9)
    assert measured["z"] == pytest.approx(expected["z_closed_form"], rel=1e-9)
    assert measured["p_normal"] == pytest.approx(expected["p_normal_closed_form_one_sided"], rel=1e-9)

    counted = exact(of_x, of_y)
    assert counted["n_partitions"] == expected["exact_partitions"]["total"]
    assert counted["n_ge"] == expected["exact_partitions"]["n_ge"]
    assert counted["p_exact"] == expected["exact_partitions"]["p_ge"]


def test_the_p_of_drawn_partitions_is_the_exact_one_within_its_noise(oracle):
    """The observed partition is one of those that p counts: p is a whole number of 1 + n_perm partitions.

    It does not depend on the order of targets.
    """
    sets = oracle["eat"]["fixtures"]["small_5v5"]
    of_x, of_y = associations(*(np.array(sets[side]) for side in "XYAB"))
    n_perm = 20_000

    p = sampled(of_x, of_y, n_perm=n_perm, seed=0)["p_sampled"]

    p_exact = exact(of_x, of_y)["p_exact"]
    four_standard_errors = 4 * math.sqrt(p_exact * (1 - p_exact) / n_perm)
    assert p == pytest.approx(p_exact, abs=four_standard_errors + 1 / n_perm)
    assert p * (1 + n_perm) == pytest.approx(round(p * (1 + n_perm)), abs=1e-6)
    assert sampled(of_x[::-1], of_y[::-1], n_perm=n_perm, seed=0)["p_sampled"] == p


def test_the_printed_critical_d(oracle):
    expected = oracle["eat"]["paper_tables"]["critical_d_one_sided_0.05_n20"]
    assert critical_d(20, m=20) == pytest.approx(expected, rel=1e-9)


def draw_whole_numbers(seed, n):
    """Draw n whole numbers around 0, mostly between -10 and 10, many of them equal."""
    return np.rint(5 * np.random.default_rng(seed).normal(size=n)).astype(int)


@settings(max_examples=30, deadline=None)
@given(seed=ANY_SEED, n_x=st.integers(1, 6), n_y=st.integers(1, 6))
def test_partitions_are_counted_as_enumerating_all_of_them_does(seed, n_x, n_y):
    """Of all ways to divide n_x + n_y targets into X and Y, those count in which X has as large a sum.

    Associations are tenths. Their sums are often equal but for the rounding of computers, as of .1 + .2 and
    .3, while the sums of whole numbers, by which they are counted here, are exact.
    """
    whole_numbers = draw_whole_numbers(seed, n_x + n_y)
    observed_sum = whole_numbers[:n_x].sum()
    all_rows_of_x = combinations(range(n_x + n_y), n_x)
    sums_of_x = [whole_numbers[list(rows)].sum() for rows in all_rows_of_x]

    tenths = whole_numbers / 10
    counted = exact(tenths[:n_x], tenths[n_x:])

    assert counted["n_partitions"] == len(sums_of_x)
    n_as_large = sum(total >= observed_sum for total in sums_of_x)
    assert counted["n_ge"] == n_as_large


def test_partitions_of_44_targets_are_counted_and_of_more_refused():
    assert MAX_EXACT == 44
    assert exact(*draw_associations(seed=0, n=20, m=24))["n_partitions"] == math.comb(44, 20)
    with pytest.raises(ValueError, match="45 targets"):
        exact(*draw_associations(seed=0, n=20, m=25))


def with_row_of(vectors, value, row):
    """Copy vectors, of which one row has the same value everywhere."""
    changed = vectors.copy()
    changed[row] = value
    return changed


def test_an_empty_set_is_refused_with_its_name():
    """Associations compare the vectors X and Y with the vectors A and B; there is none in X here."""
    _, y, a, b = draw_sets(seed=0, n=4, m=4)
    empty = np.empty((0, y.shape[1]))

    with pytest.raises(AuditError, match="set X"):
        associations(empty, y, a, b)


@pytest.mark.parametrize(
    ("name", "value", "row"),
    [("Y", 0.0, 0), ("A", np.nan, 1), ("B", np.inf, 2)],
    ids=["a vector of zeros", "a vector of NaN", "an infinite vector"],
)
def test_a_vector_that_has_no_associations_is_refused_with_its_set_and_row(name, value, row):
    """Associations compare the vectors X and Y with the vectors A and B by their cosines.

    One row of one set has `value` everywhere, and so no direction.
    """
    x, y, a, b = draw_sets(seed=0, n=4, m=4)
    sets = {"X": x, "Y": y, "A": a, "B": b}
    sets[name] = with_row_of(sets[name], value, row)

    with pytest.raises(AuditError, match=f"set {name}: .* row {row}"):
        associations(*sets.values())


def test_targets_that_do_not_differ_have_no_effect():
    """The effect size would be 0 / 0."""
    with pytest.raises(AuditError):
        effect(np.full(3, 0.1), np.full(4, 0.1))


def test_sets_are_described_by_what_selects_them():
    assert label({"emotion": "anger", "level": "high"}) == "anger high"
    assert (label("angry"), label(("a", "b"))) == ("angry", "2 given")
