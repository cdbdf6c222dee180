"""Write OpenTimelineIO, and by its adapter Final Cut Pro 7 XML."""

import json
from fractions import Fraction

from obygaze_features.errors import install_command
from obygaze_film.errors import FilmError
from obygaze_film.exchange.frames import COLOURS, frame_of
from obygaze_film.exchange.tiers import Exported, Tier, TierSpan


def to_timeline(made: Exported, *, adapter: str) -> str:
    """Write a clip of the film's length with a marker per span, by an adapter of OpenTimelineIO."""
    try:
        import opentimelineio as otio  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise FilmError(
            f"this format needs OpenTimelineIO: install it with: {install_command('obygaze[interchange]')}"
        ) from error
    timeline = otio.adapters.read_from_string(json.dumps(timeline_of(made)), "otio_json")
    try:
        return str(otio.adapters.write_to_string(timeline, adapter))
    except ValueError:
        raise FilmError(f"no time code has {float(made.rate):g} frames a second: give another rate") from None


def timeline_of(made: Exported) -> dict[str, object]:
    """Describe a timeline of one clip; its times are frames."""
    whole = _range(0.0, made.film.record.duration_s, made.rate)
    missing = {
        "OTIO_SCHEMA": "MissingReference.1",
        "name": made.film.movie,
        "available_range": whole,
    }
    clip = {
        "OTIO_SCHEMA": "Clip.2",
        "name": made.film.movie,
        "source_range": whole,
        "media_references": {"DEFAULT_MEDIA": missing},
        "active_media_reference_key": "DEFAULT_MEDIA",
        "markers": [_marker(made, tier, span) for tier, span in made.spans],
    }
    track = {"OTIO_SCHEMA": "Track.1", "name": "V1", "kind": "Video", "children": [clip]}
    return {
        "OTIO_SCHEMA": "Timeline.1",
        "name": made.heading,
        "metadata": {"obygaze": {"caveats": list(made.caveats)}},
        "global_start_time": whole["start_time"],
        "tracks": {"OTIO_SCHEMA": "Stack.1", "name": "tracks", "children": [track]},
    }


def _marker(made: Exported, tier: Tier, span: TierSpan) -> dict[str, object]:
    facts: dict[str, object] = {"tier": tier.name, "start_s": span.start_s, "end_s": span.end_s}
    facts |= span.numbers
    if span.decided:
        facts |= span.decided.facts
    return {
        "OTIO_SCHEMA": "Marker.2",
        "name": tier.people.line(span.text) if tier.people else span.text,
        "color": COLOURS[tier.kind],
        "marked_range": _range(span.start_s, span.end_s, made.rate),
        "metadata": {"obygaze": facts, "fcp_xml": {"comment": f"{tier.name}. {made.caveats[0]}"}},
    }


def _range(start_s: float, end_s: float, rate: Fraction) -> dict[str, object]:
    """Make a range of frames, one at least, of seconds."""
    start = frame_of(start_s, rate)
    n_frames = max(frame_of(end_s, rate) - start, 1)
    return {
        "OTIO_SCHEMA": "TimeRange.1",
        "start_time": _time(start, rate),
        "duration": _time(n_frames, rate),
    }


def _time(frames: int, rate: Fraction) -> dict[str, object]:
    return {"OTIO_SCHEMA": "RationalTime.1", "rate": float(rate), "value": float(frames)}
