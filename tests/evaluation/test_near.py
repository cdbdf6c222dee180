"""Only near intervals are compared: the pairs and the best matching are those of all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from obygaze_features.manifest.near import Pairs, overlapping
from obygaze_models.evaluation.near import best_matching

INTERVALS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=12)


def spans(rows):
    return np.array([(start, start + length) for start, length in rows], dtype=float).reshape(-1, 2)


@given(INTERVALS, INTERVALS)
def test_overlapping_pairs_are_those_of_all_pairs(left, right):
    first, second = spans(left), spans(right)
    result = overlapping(first, second)
    expected = {
        (row, column)
        for row, one in enumerate(first)
        for column, other in enumerate(second)
        if one[0] <= other[1] and other[0] <= one[1]
    }
    pairs = list(zip(result.first.tolist(), result.second.tolist(), strict=True))
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == expected


@given(st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1), st.randoms())
def test_the_best_matching_gains_as_much_as_an_assignment_of_all(links, random):
    links = sorted(links)
    gains = np.array([random.uniform(0.1, 1) for _ in links])
    pairs = Pairs(np.array([row for row, _ in links]), np.array([column for _, column in links]))
    chosen = best_matching(pairs, gains, (8, 8))
    assert len(set(pairs.first[chosen].tolist())) == len(set(pairs.second[chosen].tolist())) == len(chosen)
    table = np.zeros((8, 8))
    table[pairs.first, pairs.second] = gains
    assert gains[chosen].sum() == pytest.approx(table[linear_sum_assignment(table, maximize=True)].sum())
