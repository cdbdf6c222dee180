"""Adjust p-values for multiple testing."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

FAMILIES: dict[str, tuple[str, ...]] = {
    "two classes": ("average_precision", "f1_pos", "f1_weighted", "f1_macro", "balanced_accuracy", "auc"),
    "levels": ("quadratic_kappa", "spearman", "mean_absolute_error"),
}
"""The metrics whose tests are one family. Fixed: a metric that is added later is in none, so that it moves no
adjusted p-value; to test it too, name a family of its own."""


def in_family(metrics: Sequence[str], p_values: ArrayLike, family: str) -> NDArray[np.float64]:
    """Adjust the p-values [K] of tests of metrics within a named family; NaN for metrics outside of it."""
    members = np.isin(metrics, FAMILIES[family])
    return holm(np.where(members, np.asarray(p_values, dtype=np.float64), np.nan))


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust the p-values [K] of a family of tests by Holm-Bonferroni (family-wise error rate).

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
