"""Numbers as tables show them; a number that nothing defines is said to be undefined, never 0."""

import math
from collections.abc import Sequence

import numpy as np

NOTHING = "-"
"""Where a table has no number to show."""


def number(value: float | None, digits: int = 3) -> str:
    """Write a number with a fixed number of digits."""
    if value is None:
        return NOTHING
    return "undefined" if math.isnan(value) else f"{value:.{digits}f}"


def mean_sd(values: Sequence[float]) -> str:
    """Write the mean of values and, of several, their standard deviation (of the values, not of the mean)."""
    defined = [value for value in values if not math.isnan(value)]
    if not defined:
        return "undefined"
    left_out = f" [{len(values) - len(defined)} undefined]" if len(defined) < len(values) else ""
    spread = f" ({np.std(defined):.3f})" if len(values) > 1 else ""
    return f"{np.mean(defined):.3f}{spread}{left_out}"


def interval(value: float, low: float, high: float, *, signed: bool = False) -> str:
    """Write a number with its interval."""
    form = "{:+.3f}" if signed else "{:.3f}"
    if math.isnan(value):
        return "undefined"
    if math.isnan(low):
        return f"{form.format(value)} [undefined]"
    return f"{form.format(value)} [{form.format(low)}, {form.format(high)}]"
