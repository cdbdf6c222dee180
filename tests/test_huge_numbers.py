"""Numbers beyond all reason, as a file of a stranger may state them, are written and end no command."""

import math

import pytest

from obygaze_features.text import rounded


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1e15, "1e+15"),
        (1e30, "1e+30"),
        (-1e299, "-1e+299"),
        (10**30, "1e+30"),
        (999_999_999_999.5, "1000000000000"),
    ],
)
def test_a_huge_number_is_written_with_a_power_of_ten(value, written):
    assert rounded(value) == written


def test_what_rounds_to_0_has_no_sign():
    assert [rounded(value, digits=2) for value in (-0.0, -0.004, 0.004, -0.006)] == [
        "0.00",
        "0.00",
        "0.00",
        "-0.01",
    ]


def numbers_of_every_size():
    """Return 9.99e-320, 9.99e-319 and so on up to 9.99e307, and 1e308: above 1.8e308 there are no floats."""
    return [*(float(f"9.99e{exponent}") for exponent in range(-320, 308)), 1e308]


@pytest.mark.parametrize("digits", [0, 2, 6])
def test_every_finite_number_can_be_rounded_to_some_digits_behind_the_point(digits):
    """Rounding uses Python's decimals, which have 28 digits: 1e26 has no room for two behind the point.

    Whatever the size of a number, the text of the rounded one is near it: by half a unit of the last digit
    (0.005 for two digits, and some of the error of floats), or by a hundredth of the number.
    """
    a_little_more_than_half_a_unit = 0.6 * 10**-digits
    for number in numbers_of_every_size():
        read_back = float(rounded(number, digits))

        assert math.isclose(read_back, number, rel_tol=0.01, abs_tol=a_little_more_than_half_a_unit)
