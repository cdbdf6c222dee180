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


def spans(intervals):
    """Return the start and end of each interval, [N, 2]."""
    return np.array([(start, start + length) for start, length in intervals], dtype=float).reshape(-1, 2)


@given(INTERVALS, INTERVALS)
def test_overlapping_pairs_are_found_as_by_a_look_at_all_pairs_each_once(first_intervals, second_intervals):
    first = spans(first_intervals)
    second = spans(second_intervals)
    expected = set()
    for row, (start, end) in enumerate(first):
        for column, (other_start, other_end) in enumerate(second):
            if start <= other_end and other_start <= end:
                expected.add((row, column))
    result = overlapping(first, second)
    pairs = list(zip(result.first.tolist(), result.second.tolist(), strict=True))
    assert set(pairs) == expected
    assert len(pairs) == len(expected)


@given(LINKS, st.randoms())
def test_the_best_matching_gains_as_much_as_scipys_assignment(links, random):
    rows, columns = np.array(sorted(links)).T
    gains = np.array([random.uniform(0.1, 1) for _ in links])
    chosen = best_matching(Pairs(rows, columns), gains, (8, 8))
    # No row and no column is matched twice.
    assert len(set(rows[chosen])) == len(set(columns[chosen])) == len(chosen)
    gain_table = np.zeros((8, 8))
    gain_table[rows, columns] = gains
    most = gain_table[linear_sum_assignment(gain_table, maximize=True)].sum()
    assert gains[chosen].sum() == pytest.approx(most)
