"""Count frames, and colour markers, for video editors."""

from fractions import Fraction

from obygaze_film.exchange.tiers import KINDS

COLOURS = dict.fromkeys(KINDS, "WHITE") | {
    "segments": "BLUE",
    "concepts": "ORANGE",
    "level": "CYAN",
    "people": "GREEN",
}
"""Kind of a tier -> the colour of its markers, which formats and editors support.

No colour says anything that the text of the marker does not say.
"""


def frame_of(seconds: float, rate: Fraction) -> int:
    """Round a time in the film to the number of a frame, from 0 on, at a rate of frames per second."""
    return round(Fraction(seconds) * rate)
