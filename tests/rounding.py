"""How far apart two correct computations of one thing may be: by dtype, depth and condition, not by machine.

Processors add in other orders, with and without fused multiplication, and differ in the last bit of their
exponentials. In a sum of n terms such errors, of a unit roundoff u each and independent of each other, stay
below l sqrt(n) u but for a chance of 2 exp(-l^2 / 2) (Higham and Mary 2019, SIAM J. Sci. Comput. 41). Sums
that follow each other add theirs alike; what cancels or is scaled multiplies them by its condition.
"""

import numpy as np

SAFETY = 4
"""The l above: a chance of 7 in 10,000."""
UNITS = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
"""Unit roundoff of each dtype."""


def rounding(dtype: str, *sums: int, condition: float = 1.0) -> float:
    """Compute the largest difference that rounding explains, as a share of the largest value.

    Parameters
    ----------
    dtype : {"bfloat16", "float16", "float32", "float64"}
        Of the sums; or of what is kept after each, where they are made in a wider one (each then counts 1).
    *sums : int
        The numbers of terms of sums that follow each other.
    condition : float
        By how much a relative error of a sum grows in the result: the sum of the terms' sizes over the size
        of their sum, or a factor that the result is multiplied by.
    """
    return SAFETY * UNITS[dtype] * float(sum(sums)) ** 0.5 * condition


def network_rounding(patch: int, *, layers: int = 2, width: int = 64) -> float:
    """Compute it for a transformer in float32.

    A layer is six sums: keys by queries, the softmax, values, their projection, and the perceptron's two.
    Norms, pooling and head are six more; the first sum is over the `patch` numbers that a token is made of.
    """
    return rounding("float32", patch, *[width] * (6 * layers + 6))


def assert_close(result: object, expected: object, bound: float) -> None:
    """Compare arrays to within `bound` of the largest expected value."""
    result, expected = (np.asarray(values, dtype=np.float64) for values in (result, expected))
    assert result.shape == expected.shape
    assert np.abs(result - expected).max() <= bound * np.abs(expected).max()
