"""Pack times and shares of a film's rows for the scripts of page and desk: whole numbers as base64.

The module `rows.js` unpacks them. Twelve hours of rows take a tenth of what they take as text.
"""

from base64 import b64encode
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

MISSING: Final = 255
"""Byte of a share that is missing; the others are 0 to 100."""


def packed_times(seconds: ArrayLike) -> str:
    """Pack times [N] in seconds as N whole milliseconds of four bytes, the lowest byte first.

    Examples
    --------
    >>> from obygaze_film.page.packed import packed_times
    >>> packed_times([0.0, 1.5])
    'AAAAANwFAAA='
    """
    milliseconds = np.rint(1000 * np.asarray(seconds, dtype=np.float64))
    return _in_base64(milliseconds.astype("<u4"))


def packed_shares(shares: ArrayLike) -> str:
    """Pack shares [N] from 0 to 1 as N bytes, each a whole percentage from 0 to 100; NaN is `MISSING`.

    A half is rounded up, as in the texts of the page.

    Examples
    --------
    >>> from obygaze_film.page.packed import packed_shares
    >>> packed_shares([0.0, 0.5, 1.0, float("nan")])
    'ADJk/w=='
    """
    percentages = np.nan_to_num(whole_percentages(shares), nan=MISSING)
    return _in_base64(percentages.astype(np.uint8))


def whole_percentages(shares: ArrayLike) -> NDArray[np.float64]:
    """Round shares to whole percentages, a half up as in the texts of the page (`rounded`); NaN stays."""
    # The last digits of a float may be wrong: 100 * 0.285 is 28.499999999999996, and 28.5 is meant.
    exact = np.round(100 * np.asarray(shares, dtype=np.float64), 10)
    percentages: NDArray[np.float64] = np.floor(exact + 0.5)
    return percentages


def packed_numbers(numbers: ArrayLike) -> str:
    """Pack whole numbers [N] from 0 to 65,535 as two bytes each, the lower byte first."""
    return _in_base64(np.asarray(numbers).astype("<u2"))


def _in_base64(values: np.ndarray) -> str:
    """Write the bytes of an array in base64."""
    return b64encode(values.tobytes()).decode("ascii")
