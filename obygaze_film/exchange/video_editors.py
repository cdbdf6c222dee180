"""Export to video editors: OpenTimelineIO, Final Cut Pro 7 XML, and CMX-3600 lists."""

import json
from fractions import Fraction
from functools import partial

from obygaze_features.errors import install_command
from obygaze_features.manifest import frame_label
from obygaze_features.templates import filled
from obygaze_film.errors import FilmError
from obygaze_film.exchange.tiers import KINDS, Exported

COLOURS = dict.fromkeys(KINDS, "WHITE") | {"segments": "BLUE", "concepts": "ORANGE", "level": "CYAN"}
"""Marker colours that both formats and editors support; the text gives the same information."""


def to_edl(made: Exported) -> str:
    """Write a CMX-3600 list of markers as DaVinci Resolve does: an event of a frame for each span.

    Resolve reads colour, text and length in frames (`|C:... |M:... |D:...`); `* LOC` lines are Avid's, which
    have no ends. Time codes count from the film's start time code.

    Raises
    ------
    FilmError
        A second has more than 100 frames.
    """
    drop, first = made.start
    if made.rate > 100:
        raise FilmError("edl: time codes have two digits of frames: give a rate of 100 a second at most")

    def label(frame: int) -> str:
        code = frame_label(first + frame, made.rate, drop=drop)
        return f"{int(code[:2]) % 24:02}{code[2:]}"  # a day begins anew

    spans = sorted(made.spans, key=lambda each: each[1].start_s)
    values = {"made": made, "spans": spans, "colours": COLOURS}
    frame = partial(_frames, rate=made.rate)
    return filled(
        __package__, "markers.edl.jinja", values, filters={"ascii": _ascii, "label": label, "frame": frame}
    )


def to_timeline(made: Exported, *, adapter: str) -> str:
    """Write a clip of the film's length with a marker per span, by an adapter of OpenTimelineIO."""
    try:
        import opentimelineio as otio  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise FilmError(
            f"this format needs OpenTimelineIO: install it with: {install_command('obygaze[interchange]')}"
        ) from error
    values = {
        "film": made.film,
        "caveats": made.caveats,
        "colours": COLOURS,
        "whole": _range(0.0, made.film.record.duration_s, made.rate),
        "spans": [(tier, span, _range(span.start_s, span.end_s, made.rate)) for tier, span in made.spans],
    }
    timeline = otio.adapters.read_from_string(
        filled(__package__, "timeline.otio.jinja", values, json.dumps), "otio_json"
    )
    try:
        return str(otio.adapters.write_to_string(timeline, adapter))
    except ValueError:
        raise FilmError(f"no time code has {float(made.rate):g} frames a second: give another rate") from None


def _range(start_s: float, end_s: float, rate: Fraction) -> dict[str, object]:
    """Make a range of frames, one at least, of seconds."""
    start = _frames(start_s, rate)
    frames = (float(start), float(max(_frames(end_s, rate) - start, 1)))
    times = [{"OTIO_SCHEMA": "RationalTime.1", "rate": float(rate), "value": value} for value in frames]
    return {"OTIO_SCHEMA": "TimeRange.1", "start_time": times[0], "duration": times[1]}


def _frames(seconds: float, rate: Fraction) -> int:
    """Round a time to a frame."""
    return round(Fraction(seconds) * rate)


def _ascii(text: str) -> str:
    """Write a text on one line of ASCII, which every reader of such lists supports."""
    return " ".join(text.split()).encode("ascii", "replace").decode()
