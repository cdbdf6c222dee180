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


@pytest.fixture
def associations_of_ten_images(oracle):
    """The associations of five images X and of five images Y with texts, of the oracle."""
    sets = oracle["eat"]["fixtures"]["small_5v5"]
    return associations(*(np.array(sets[side]) for side in "XYAB"))


N_DRAWN = 20_000


def p_of_drawn_partitions(of_x, of_y):
    """Compute p from 20,000 drawn partitions of the images into two sets."""
    return sampled(of_x, of_y, n_perm=N_DRAWN, seed=0)["p_sampled"]


def test_the_p_of_drawn_partitions_is_that_of_all_partitions_within_its_noise(associations_of_ten_images):
    """Ten images can be divided into two sets of five in few enough ways to count all of them (`exact`).

    The p of 20,000 drawn ones may differ by four standard errors, and by the observed partition, which it
    counts once more.
    """
    of_x, of_y = associations_of_ten_images
    p_exact = exact(of_x, of_y)["p_exact"]

    p = p_of_drawn_partitions(of_x, of_y)

    four_standard_errors = 4 * math.sqrt(p_exact * (1 - p_exact) / N_DRAWN)
    assert p == pytest.approx(p_exact, abs=four_standard_errors + 1 / N_DRAWN)


def test_the_p_of_drawn_partitions_counts_the_observed_one_among_them(associations_of_ten_images):
    """So p is a whole number of partitions, 1 or more, divided by 20,001, and never 0."""
    of_x, of_y = associations_of_ten_images

    n_as_large = p_of_drawn_partitions(of_x, of_y) * (1 + N_DRAWN)

    assert n_as_large == pytest.approx(round(n_as_large), abs=1e-6)
    assert round(n_as_large) >= 1


def test_the_p_of_drawn_partitions_does_not_depend_on_the_order_of_images(associations_of_ten_images):
    of_x, of_y = associations_of_ten_images

    assert p_of_drawn_partitions(of_x[::-1], of_y[::-1]) == p_of_drawn_partitions(of_x, of_y)


def test_the_smallest_significant_effect_of_20_and_20_images_is_that_of_the_oracle(oracle):
    """The test is one-sided, at the level .05."""
    expected = oracle["eat"]["paper_tables"]["critical_d_one_sided_0.05_n20"]

    assert critical_d(20, m=20) == pytest.approx(expected, rel=1e-9)


def draw_whole_numbers(seed, n):
    """Draw n whole numbers around 0, mostly between -10 and 10, many of them equal."""
    return np.rint(5 * np.random.default_rng(seed).normal(size=n)).astype(int)


@settings(max_examples=30, deadline=None)
@given(seed=ANY_SEED, n_x=st.integers(1, 6), n_y=st.integers(1, 6))
def test_as_many_partitions_are_counted_as_if_each_were_made(seed, n_x, n_y):
    """The exact p is the share of all ways to divide the targets into X and Y in which X sums up to as much.

    Here each way is made, of whole numbers, whose sums are exact. `exact` gets them as tenths: sums that
    should be equal may then differ in their last bit, as .1 + .2 is not .3, and must count as equal.
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


def test_all_partitions_of_44_targets_can_be_counted():
    """44 targets can be divided into 20 and 24 in 44! / (20! 24!) ways, of which none has to be made."""
    of_x, of_y = draw_associations(seed=0, n=20, m=24)
    assert len(of_x) + len(of_y) == MAX_EXACT

    assert exact(of_x, of_y)["n_partitions"] == math.comb(44, 20)


def test_the_partitions_of_more_than_44_targets_are_not_counted():
    """Of so many, audits draw some instead (`sampled`)."""
    of_x, of_y = draw_associations(seed=0, n=20, m=25)

    with pytest.raises(ValueError, match="45 targets"):
        exact(of_x, of_y)


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


def test_an_effect_of_images_that_all_have_the_same_association_is_refused():
    """The effect size d is the difference of the mean associations of X and Y over their deviation: 0 / 0."""
    of_x = np.full(3, 0.1)
    of_y = np.full(4, 0.1)

    with pytest.raises(AuditError, match="all targets"):
        effect(of_x, of_y)


def test_sets_are_described_by_what_selects_them():
    """A set is selected by values of columns, by the name of a list of words, or by ids one by one."""
    assert label({"emotion": "anger", "level": "high"}) == "anger high"
    assert label("angry") == "angry"
    assert label(("a", "b")) == "2 given"
