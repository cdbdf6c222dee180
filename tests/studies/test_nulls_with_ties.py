"""Draws of a null that equal the observed number but for rounding are as clear as it is."""

import math

import numpy as np
import pytest

from obygaze_studies.claims.nulls import null_of_signs_by_film

DIFFERENCES_OF_FILMS = np.array([4.0, 2.0, 1.0, 2.0, 3.0, 1.0, -2.0, 4.0, 1.0])
"""A difference in each of nine films, in whole numbers, whose sums are exact."""


@pytest.mark.parametrize("unit", [0.1, 1 / 30, 0.07])
@pytest.mark.parametrize(
    ("sign", "minimum", "maximum"),
    [(1, 0.0, math.inf), (-1, -math.inf, 0.0)],
    ids=["the mean is above 0", "the mean is below 0"],
)
def test_a_p_value_does_not_depend_on_the_unit_of_the_numbers(unit, sign, minimum, maximum):
    """A null draws random signs of the films' differences; p is the share of draws whose mean is as large.

    Different signs often give the same mean as the data. In whole numbers the two are equal. In a unit such
    as .1 they may differ in the last bit, as sums of floats depend on signs. Such draws must count as equal
    too: without them p is .022 instead of above .025, and a sentence would hold. Both nulls draw the same
    signs, so that the two p have to be equal.
    """
    null_of_whole_numbers = null_of_signs_by_film(sign * DIFFERENCES_OF_FILMS)
    null_in_the_unit = null_of_signs_by_film(sign * DIFFERENCES_OF_FILMS * unit)

    p_of_whole_numbers = null_of_whole_numbers.p(minimum, maximum)
    assert null_in_the_unit.p(minimum, maximum) == p_of_whole_numbers
    assert p_of_whole_numbers > 0.025
