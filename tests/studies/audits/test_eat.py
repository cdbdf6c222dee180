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

ANY_SEED = st.integers(0, 2**32 - 1)


def draw_sets(seed, n, m, size=6):
    """Draw the vectors of n targets X and m targets Y, and of four attributes A and five B."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(rows, size)) for rows in (n, m, 4, 5)]


def draw_associations(seed, n, m):
    """Draw the associations of n targets X and of m targets Y."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.normal(size=m)


@pytest.fixture(params=["small_5v5", "paper_shape_20v20_30_30"])
def expected(request, oracle):
    """What the oracle computed of four sets of vectors: targets X and Y, attributes A and B."""
    return oracle["eat"]["fixtures"][request.param]


@pytest.fixture
def associations_of_targets(expected):
    """The association of each target of X, and of each of Y, with A rather than B."""
    return associations(*(np.array(expected[side]) for side in "XYAB"))


def test_the_association_of_each_target_with_the_attributes_is_the_oracles(expected, associations_of_targets):
    of_x, of_y = associations_of_targets
    np.testing.assert_allclose(of_x, expected["s_X"], rtol=1e-9)
    np.testing.assert_allclose(of_y, expected["s_Y"], rtol=1e-9)


def test_the_statistic_and_the_effect_size_are_the_oracles(expected, associations_of_targets):
    measured = effect(*associations_of_targets)
    assert measured["statistic"] == pytest.approx(expected["stat_sum"], rel=1e-9)
    assert measured["mean_difference"] == pytest.approx(expected["stat_meandiff"], rel=1e-9)
    assert measured["d"] == pytest.approx(expected["effect_size_d_ddof1"], rel=1e-9)


def test_the_effect_size_of_wefe_differs_from_ours_only_by_n_in_place_of_n_minus_1(
    expected, associations_of_targets
):
    """WEFE divides by the standard deviation over n targets, we do over n - 1."""
    of_x, of_y = associations_of_targets
    n = len(of_x) + len(of_y)
    wefe = effect(of_x, of_y)["d"] * math.sqrt(n / (n - 1))
    assert wefe == pytest.approx(expected["effect_size_ddof0_wefe"], rel=1e-9)


def test_the_normal_approximation_is_the_oracles(expected, associations_of_targets):
    measured = effect(*associations_of_targets)
    assert measured["z"] == pytest.approx(expected["z_closed_form"], rel=1e-9)
    assert measured["p_normal"] == pytest.approx(expected["p_normal_closed_form_one_sided"], rel=1e-9)


def test_the_exact_p_is_the_share_of_partitions_as_extreme(expected, associations_of_targets):
    """The targets X and Y are divided anew in every possible way.

    The exact p is the share of partitions whose statistic reaches the observed one.
    """
    counted = exact(*associations_of_targets)
    partitions = expected["exact_partitions"]
    assert counted["n_partitions"] == partitions["total"]
    assert counted["n_ge"] == partitions["n_ge"]  # whose statistic is greater than the observed one, or equal
    assert counted["p_exact"] == partitions["p_ge"]


def test_the_p_of_drawn_partitions_is_the_exact_one_within_its_noise(associations_of_targets):
    n_perm = 20_000
    p = exact(*associations_of_targets)["p_exact"]
    four_standard_errors = 4 * math.sqrt(p * (1 - p) / n_perm)
    drawn = sampled(*associations_of_targets, n_perm=n_perm, seed=0)["p_sampled"]
    assert drawn == pytest.approx(p, abs=four_standard_errors + 1 / n_perm)


def test_the_p_of_drawn_partitions_does_not_depend_on_the_order_of_targets(associations_of_targets):
    of_x, of_y = associations_of_targets
    drawn = sampled(of_x, of_y, n_perm=20_000, seed=0)
    assert sampled(of_x[::-1], of_y[::-1], n_perm=20_000, seed=0)["p_sampled"] == drawn["p_sampled"]


def test_the_observed_partition_is_one_of_those_that_p_counts(associations_of_targets):
    """Then p is a whole number of 1 + n_perm partitions."""
    n_perm = 20_000
    n_ge = sampled(*associations_of_targets, n_perm=n_perm, seed=0)["p_sampled"] * (1 + n_perm)
    assert n_ge == pytest.approx(round(n_ge), abs=1e-6)


def test_the_printed_critical_d(oracle):
    expected = oracle["eat"]["paper_tables"]["critical_d_one_sided_0.05_n20"]
    assert critical_d(20, 20) == pytest.approx(expected, rel=1e-9)


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


def test_partitions_of_44_targets_are_counted():
    assert MOST_EXACT == 44
    largest = draw_associations(0, 20, 24)
    assert exact(*largest)["n_partitions"] == math.comb(44, 20)


def test_more_than_44_targets_are_refused():
    with pytest.raises(ValueError, match="45 targets"):
        exact(*draw_associations(0, 20, 25))


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
    sets = dict(zip("XYAB", draw_sets(0, 4, 4), strict=True))
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
