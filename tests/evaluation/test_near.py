"""Only near intervals are compared: the pairs and the best matching are those of all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from obygaze_features.manifest.near import Pairs, overlapping
from obygaze_models.evaluation.near import best_matching

# Start and length of each interval.
INTERVALS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=12)
# A row and a column that may be matched.
LINKS = st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1)


def starts_and_ends(intervals):
    """Return the start and end of each interval, [N, 2]."""
    return np.array([(start, start + length) for start, length in intervals], dtype=float).reshape(-1, 2)


@given(INTERVALS, INTERVALS)
def test_overlapping_pairs_are_found_as_by_a_look_at_all_pairs_each_once(first_intervals, second_intervals):
    """A pair is the number of an interval of the first list and that of one of the second.

    Intervals that only touch count as overlapping.
    """
    first = starts_and_ends(first_intervals)
    second = starts_and_ends(second_intervals)

    result = overlapping(first, second)

    expected = []
    for number, (start, end) in enumerate(first):
        for other_number, (other_start, other_end) in enumerate(second):
            if start <= other_end and other_start <= end:
                expected.append((number, other_number))
    pairs = list(zip(result.first.tolist(), result.second.tolist(), strict=True))
    assert sorted(pairs) == sorted(expected)


def largest_sum_by_scipy(rows, columns, gains):
    """Let SciPy assign eight rows to eight columns; a pair without a link gains 0."""
    gain_table = np.zeros((8, 8))
    gain_table[rows, columns] = gains
    assigned_rows, assigned_columns = linear_sum_assignment(gain_table, maximize=True)
    return gain_table[assigned_rows, assigned_columns].sum()


@given(LINKS, st.randoms())
def test_the_best_matching_gains_as_much_as_scipys_assignment(links, random):
    """Eight rows and eight columns may be matched where there is a link, each of which has a gain.

    A matching chooses links so that no row and no column is there twice. The best one has the largest sum
    of gains.
    """
    rows = np.array([row for row, _ in sorted(links)])
    columns = np.array([column for _, column in sorted(links)])
    gains = np.array([random.uniform(0.1, 1) for _ in links])

    chosen = best_matching(Pairs(rows, columns), gains, (8, 8))

    assert len(set(rows[chosen])) == len(chosen)
    assert len(set(columns[chosen])) == len(chosen)
    assert gains[chosen].sum() == pytest.approx(largest_sum_by_scipy(rows, columns, gains))
