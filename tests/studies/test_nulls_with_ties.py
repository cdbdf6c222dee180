"""Draws of a null that equal the observed number but for rounding are as clear as it is."""

import math

import numpy as np
import pytest

from obygaze_studies.claims.nulls import null_of_signs_by_film

DIFFERENCES = np.array([4.0, 2.0, 1.0, 2.0, 3.0, 1.0, -2.0, 4.0, 1.0])
"""Of nine films, in whole numbers, whose sums are exact. Different signs often give the same mean."""


@pytest.mark.parametrize("unit", [0.1, 1 / 30, 0.07])
@pytest.mark.parametrize(("sign", "minimum", "maximum"), [(1, 0.0, math.inf), (-1, -math.inf, 0.0)])
def test_a_p_value_does_not_depend_on_the_unit_of_the_numbers(unit, sign, minimum, maximum):
    """Tenths have sums that differ in last bits by their order: p was .022, and a sentence held.

    The draws of both nulls have the same signs.
    """
    in_whole_numbers = null_of_signs_by_film(sign * DIFFERENCES)
    in_units = null_of_signs_by_film(sign * DIFFERENCES * unit)

    assert in_units.p(minimum, maximum) == in_whole_numbers.p(minimum, maximum)
    assert in_whole_numbers.p(minimum, maximum) > 0.025
