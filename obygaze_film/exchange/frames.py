"""Count frames, and colour markers, for video editors."""

from fractions import Fraction

from obygaze_film.exchange.tiers import KINDS

COLOURS = dict.fromkeys(KINDS, "WHITE") | {
    "segments": "BLUE",
    "concepts": "ORANGE",
    "level": "CYAN",
    "people": "GREEN",
}
"""Marker colours that formats and editors support; the text gives the same information."""


def frame_of(seconds: float, rate: Fraction) -> int:
    """Round a time to a frame."""
    return round(Fraction(seconds) * rate)
