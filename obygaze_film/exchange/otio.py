"""Write OpenTimelineIO, and by its adapter Final Cut Pro 7 XML."""

import json
from fractions import Fraction

from obygaze_features.errors import install_command
from obygaze_film.errors import FilmError
from obygaze_film.exchange.frames import COLOURS, frame_of
from obygaze_film.exchange.tiers import Exported, Tier, TierSpan


def to_otio(exported: Exported) -> str:
    """Write OpenTimelineIO's own JSON."""
    return _written(exported, "otio_json")


def to_fcpxml7(exported: Exported) -> str:
    """Write Final Cut Pro 7 XML."""
    return _written(exported, "fcp_xml")


def _written(exported: Exported, adapter: str) -> str:
    """Write a clip of the film's length with a marker for each span, by OpenTimelineIO.

    Parameters
    ----------
    exported : Exported
    adapter : str
        OpenTimelineIO's name of the format: `otio_json` or `fcp_xml`.

    Raises
    ------
    FilmError
        OpenTimelineIO is not installed, or the format has no time codes at the rate.
    """
    try:
        import opentimelineio as otio  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise FilmError(
            f"this format needs OpenTimelineIO: install it with: {install_command('obygaze[interchange]')}"
        ) from error

    timeline = otio.adapters.read_from_string(json.dumps(timeline_of(exported)), "otio_json")
    try:
        return str(otio.adapters.write_to_string(timeline, adapter))
    except ValueError:  # the adapter fcp_xml raises it for a rate without time codes
        raise FilmError(
            f"no time code has {float(exported.rate):g} frames a second: give another rate"
        ) from None


def timeline_of(exported: Exported) -> dict[str, object]:
    """Describe a timeline of one clip, the film, from frame 0 on; its times are frames.

    The caveats are in the timeline's metadata, and in the clip's log note, which Final Cut's XML keeps.
    """
    film_range = _range(start_s=0.0, end_s=exported.film.record.duration_s, rate=exported.rate)
    missing_media = {
        "OTIO_SCHEMA": "MissingReference.1",
        "name": exported.film.movie,
        "available_range": film_range,
    }
    clip = {
        "OTIO_SCHEMA": "Clip.2",
        "name": exported.film.movie,
        "source_range": film_range,
        "media_references": {"DEFAULT_MEDIA": missing_media},
        "active_media_reference_key": "DEFAULT_MEDIA",
        "metadata": {"fcp_xml": {"logginginfo": {"lognote": " ".join(exported.caveats)}}},
        "markers": [_marker(exported, tier, span) for tier, span in exported.spans],
    }
    track = {"OTIO_SCHEMA": "Track.1", "name": "V1", "kind": "Video", "children": [clip]}
    return {
        "OTIO_SCHEMA": "Timeline.1",
        "name": exported.heading,
        "metadata": {"obygaze": {"caveats": list(exported.caveats)}},
        "global_start_time": film_range["start_time"],
        "tracks": {"OTIO_SCHEMA": "Stack.1", "name": "tracks", "children": [track]},
    }


def _marker(exported: Exported, tier: Tier, span: TierSpan) -> dict[str, object]:
    """Describe a span as a marker; its exact times, numbers or decision are in the metadata.

    The first caveat, which names the source, is in the comment that Final Cut's XML keeps.
    """
    # By name, for our importers and for who reads the file with OpenTimelineIO.
    facts: dict[str, object] = {"tier": tier.name, "start_s": span.start_s, "end_s": span.end_s}
    facts |= span.numbers
    if span.decided:
        facts |= span.decided.facts
    return {
        "OTIO_SCHEMA": "Marker.2",
        "name": tier.people.line(span.text) if tier.people else span.text,
        "color": COLOURS[tier.kind],
        "marked_range": _range(span.start_s, span.end_s, exported.rate),
        "metadata": {"obygaze": facts, "fcp_xml": {"comment": f"{tier.name}. {exported.caveats[0]}"}},
    }


def _range(start_s: float, end_s: float, rate: Fraction) -> dict[str, object]:
    """Describe a span in seconds as a range of frames; it has one frame at least."""
    start = frame_of(start_s, rate)
    n_frames = max(frame_of(end_s, rate) - start, 1)
    return {
        "OTIO_SCHEMA": "TimeRange.1",
        "start_time": _time(start, rate),
        "duration": _time(n_frames, rate),
    }


def _time(frames: int, rate: Fraction) -> dict[str, object]:
    """Describe a time as OpenTimelineIO does: a number of frames at a rate of frames per second."""
    return {"OTIO_SCHEMA": "RationalTime.1", "rate": float(rate), "value": float(frames)}
