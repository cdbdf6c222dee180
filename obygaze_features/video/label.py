"""Numbers and times written on a picture, in a typeface of 3 x 5 dots that is always at hand."""

import numpy as np
from numpy.typing import NDArray

DOT = 2
"""Pixels of a dot's side."""

LINE_HEIGHT = 7 * DOT
"""Pixels of a line: five dots, and one above and below."""

_ROWS = {
    "0": "75557",
    "1": "26227",
    "2": "71747",
    "3": "71717",
    "4": "55711",
    "5": "74717",
    "6": "74757",
    "7": "71222",
    "8": "75757",
    "9": "75717",
    ".": "00002",
    "-": "00700",
    "s": "03636",
    " ": "00000",
}
"""Of each sign its rows from above, the dots of a row as three bits."""


def label(text: str) -> NDArray[np.uint8]:
    """Write digits, point, minus, s and blanks in white on black, one line of pixels [LINE_HEIGHT, W]."""
    dots = np.zeros((LINE_HEIGHT // DOT, 4 * len(text) + 1), np.uint8)
    for place, sign in enumerate(text):
        for row, bits in enumerate(_ROWS[sign], start=1):
            dots[row, 4 * place + 1 : 4 * place + 4] = [255 * (int(bits) >> bit & 1) for bit in (2, 1, 0)]
    return dots.repeat(DOT, axis=0).repeat(DOT, axis=1)
