"""Export to video editors: OpenTimelineIO, Final Cut Pro 7 XML, and CMX-3600 lists."""

from fractions import Fraction
from typing import Any

from obygaze_features.errors import install_command
from obygaze_features.manifest import frame_label
from obygaze_film.errors import FilmError
from obygaze_film.exchange.tiers import KINDS, Exported, TierSpan

COLOURS = dict.fromkeys(KINDS, "WHITE") | {"segments": "BLUE", "concepts": "ORANGE", "level": "CYAN"}
"""Marker colours that both formats and editors support; the text gives the same information."""


RESOLVE = {"White": "Cream", "Orange": "Sand"}
"""Resolve's names of colours where they are others."""


def to_otio(made: Exported) -> str:
    """Write an OpenTimelineIO timeline: one clip of the film's length, with one marker per span."""
    return _written(made, "otio_json")


def to_fcpxml7(made: Exported) -> str:
    """Write a Final Cut Pro 7 sequence (Premiere, Resolve), through OpenTimelineIO's adapter."""
    return _written(made, "fcp_xml")


def to_edl(made: Exported) -> str:
    """Write a CMX-3600 list of markers as DaVinci Resolve does: an event of a frame for each span.

    Resolve reads colour, text and length in frames (`|C:... |M:... |D:...`); `* LOC` lines are Avid's, which
    have no ends. Time codes count from the film's start time code.
    """
    drop, first = made.start
    fcm = "DROP FRAME" if drop else "NON-DROP FRAME"
    lines = [f"TITLE: {_ascii(made.film.record.title)[:70]}", f"FCM: {fcm}"]
    lines += [f"* {_ascii(line)}" for line in [*made.caveats, f"FROM CLIP NAME: {made.film.movie}"]] + [""]
    for number, (tier, span) in enumerate(sorted(made.spans, key=lambda each: each[1].start_s), start=1):
        start, end = _frames(span.start_s, made.rate), _frames(span.end_s, made.rate)
        labels = [frame_label(first + frame, made.rate, drop=drop) for frame in (start, start + 1)]
        ends = [f"{int(label[:2]) % 24:02}{label[2:]}" for label in labels]  # a day begins anew
        text, colour = _ascii(span.text).replace("|", "/"), COLOURS[tier.kind].title()
        lines.append(f"{number:03d}  001      V     C        {' '.join(ends * 2)}  ")
        lines.append(f" |C:ResolveColor{RESOLVE.get(colour, colour)} |M:{text} |D:{max(end - start, 1)}")
        lines += [f"* LOC: {ends[0]} {colour.upper():7} {text}", ""]
    return "\n".join(lines) + "\n"


def _written(made: Exported, adapter: str) -> str:
    """Make the timeline; the FCP 7 adapter needs the media reference and the start time."""
    try:
        import opentimelineio as otio  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise FilmError(
            f"this format needs OpenTimelineIO: install it with: {install_command('obygaze[interchange]')}"
        ) from error
    rate = float(made.rate)

    def time(frames: int) -> Any:
        return otio.opentime.RationalTime(frames, rate)

    def stretch(start: int, end: int) -> Any:
        return otio.opentime.TimeRange(time(start), time(max(end - start, 1)))

    film, record = made.film, made.film.record
    whole = stretch(0, _frames(record.duration_s, made.rate))
    timeline = otio.schema.Timeline(film.heading, metadata={"obygaze": {"caveats": list(made.caveats)}})
    timeline.global_start_time = time(0)
    track = otio.schema.Track("V1", kind=otio.schema.TrackKind.Video)
    timeline.tracks.append(track)
    media = otio.schema.MissingReference(name=film.movie, available_range=whole)
    clip = otio.schema.Clip(film.movie, media_reference=media, source_range=whole)
    track.append(clip)
    for tier, span in made.spans:
        clip.markers.append(
            otio.schema.Marker(
                name=span.text,
                marked_range=stretch(_frames(span.start_s, made.rate), _frames(span.end_s, made.rate)),
                color=COLOURS[tier.kind],
                metadata=_metadata(tier.name, span, made.caveats[0]),
            )
        )
    return str(otio.adapters.write_to_string(timeline, adapter))


def _metadata(tier: str, span: TierSpan, caveat: str) -> dict[str, Any]:
    exact = {"start_s": span.start_s, "end_s": span.end_s}
    return {"obygaze": {"tier": tier, **exact, **span.numbers}, "fcp_xml": {"comment": f"{tier}. {caveat}"}}


def _frames(seconds: float, rate: Fraction) -> int:
    """Round a time to a frame."""
    return round(Fraction(seconds) * rate)


def _ascii(text: str) -> str:
    """Write a text on one line of ASCII, which every reader of such lists supports."""
    return " ".join(text.split()).encode("ascii", "replace").decode()
