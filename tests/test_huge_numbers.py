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


@pytest.mark.parametrize("digits", [0, 2, 6])
def test_every_finite_number_can_be_rounded(digits):
    """Decimals of Python have 28 digits: from 1e26 on they could not hold two behind the point."""
    for exponent in range(-320, 309):
        number = float(f"9.99e{exponent}") if exponent < 308 else 1e308

        assert math.isclose(float(rounded(number, digits)), number, rel_tol=0.01, abs_tol=0.6 * 10**-digits)
