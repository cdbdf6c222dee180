"""Many tests at once: p-values that allow for how many there were."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust the p-values [K] of a family of tests: one false finding among all becomes as rare as each says.

    The i-th smallest is multiplied by K - i + 1; none falls below a smaller one's or exceeds 1 (Holm 1979).
    Valid however the tests depend on each other. NaN stays NaN and is not in the family.
    """
    raw = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full_like(raw, np.nan)
    tests = np.flatnonzero(~np.isnan(raw))
    order = tests[np.argsort(raw[tests], kind="stable")]
    steps = raw[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
