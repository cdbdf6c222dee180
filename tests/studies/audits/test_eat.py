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
    """The oracle has four sets of vectors: targets X and Y, attributes A and B.

    The targets X and Y are divided anew in every possible way: the exact p is the share of partitions whose
    statistic reaches the observed one.
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
    wefe = measured["d"] * math.sqrt(n / (n - 1))  # which divides by the deviation over n, not over n - 1
    assert wefe == pytest.approx(expected["effect_size_ddof0_wefe"], rel=1e-9)
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


@settings(max_examples=30, deadline=None)
@given(ANY_SEED, st.integers(1, 6), st.integers(1, 6))
def test_partitions_are_counted_as_enumerating_all_of_them_does(seed, n, m):
    """Associations are tenths: many partitions are tied, and sums of tenths are not exact in binary."""
    of_x, of_y = draw_associations(seed, n, m)
    tenths_of_x = np.rint(of_x * 5).astype(int)
    tenths = np.concatenate([tenths_of_x, np.rint(of_y * 5).astype(int)])
    sums_of_x = [tenths[list(rows_of_x)].sum() for rows_of_x in combinations(range(n + m), n)]
    counted = exact(tenths[:n] / 10, tenths[n:] / 10)

    assert counted["n_partitions"] == len(sums_of_x)
    assert counted["n_ge"] == sum(total >= tenths_of_x.sum() for total in sums_of_x)


def test_partitions_of_44_targets_are_counted_and_of_more_refused():
    assert MAX_EXACT == 44
    assert exact(*draw_associations(seed=0, n=20, m=24))["n_partitions"] == math.comb(44, 20)
    with pytest.raises(ValueError, match="45 targets"):
        exact(*draw_associations(seed=0, n=20, m=25))


def with_row(vectors, row, value):
    changed = vectors.copy()
    changed[row] = value
    return changed


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("X", lambda vectors: vectors[:0], "set X"),
        ("Y", lambda vectors: with_row(vectors, 0, 0.0), "set Y: .* row 0"),
        ("A", lambda vectors: with_row(vectors, 1, np.nan), "set A: .* row 1"),
        ("B", lambda vectors: with_row(vectors, 2, np.inf), "set B: .* row 2"),
    ],
    ids=["an empty set", "a vector of zeros", "a vector of NaN", "an infinite vector"],
)
def test_a_set_that_has_no_associations_is_refused_with_its_name_and_row(name, spoil, message):
    sets = dict(zip("XYAB", draw_sets(seed=0, n=4, m=4), strict=True))
    sets[name] = spoil(sets[name])
    with pytest.raises(AuditError, match=message):
        associations(*sets.values())


def test_targets_that_do_not_differ_have_no_effect():
    """The effect size would be 0 / 0."""
    with pytest.raises(AuditError):
        effect(np.full(3, 0.1), np.full(4, 0.1))


def test_sets_are_described_by_what_selects_them():
    assert label({"emotion": "anger", "level": "high"}) == "anger high"
    assert (label("angry"), label(("a", "b"))) == ("angry", "2 given")
