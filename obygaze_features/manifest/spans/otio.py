"""Read markers of OpenTimelineIO (.otio): of clips in the time of their media, of timelines in theirs.

In exports of obygaze the metadata of a marker name its tier. Source: OpenTimelineIO, "Marker.2",
"TimeRange.1", "RationalTime.1".
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from obygaze_features.manifest.spans.json_values import number, object_of, objects_of, text_of
from obygaze_features.manifest.spans.markers import marker
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.tier_names import DECISION, split_people_tier
from obygaze_features.manifest.text_tables import DEFINITION

SCHEMA: Final = "OTIO_SCHEMA"
LONGEST_FRAME_S: Final = 0.06
"""Seconds by which a time may differ from that of its frame, at 23.976 frames a second and more."""

MAX_DEPTH: Final = 100
"""How deep timelines may be nested."""


class Owner(NamedTuple):
    """What a marker is set on: the media of a clip, "" for a timeline, and the time at which they begin."""

    media: str
    start_s: float


def read_otio(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the markers of all clips, tracks and timelines, in the order of the document.

    The document is a tree. A marker counts its time from the begin of the media of the clip that it is in,
    or, outside of clips, from the begin of the timeline.

    Raises
    ------
    ManifestError
        Timelines are nested too deeply.
    """
    timeline = Owner("", start_s=0.0)
    # The next item is taken from the end of the list, so that children are added to it in reverse order.
    waiting = [(object_of(file.document), timeline, 0)]
    n_markers = 0
    while waiting:
        item, owner, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise file.error("nested too deeply")
        schema = text_of(item.get(SCHEMA)).partition(".")[0]
        if schema == "Clip":
            owner = _owner(item)
        for marker_item in objects_of(item.get("markers")):
            n_markers += 1
            yield _marker(marker_item, owner, f"marker {n_markers}")
        children = objects_of(item.get("children"))
        tracks = [object_of(item["tracks"])] if "tracks" in item else []
        waiting += [(child, owner, depth + 1) for child in reversed(tracks + children)]


def _owner(clip: Mapping[str, Any]) -> Owner:
    """Return the media of a clip, and the time at which they begin (0 if the clip does not say it)."""
    # Later versions list several media, and the key of the one in use; earlier ones have one reference.
    references = object_of(clip.get("media_references"))
    reference = object_of(references.get(text_of(clip.get("active_media_reference_key"))))
    if not reference:
        reference = object_of(clip.get("media_reference"))
    media = (
        text_of(reference.get("target_url")) or text_of(reference.get("name")) or text_of(clip.get("name"))
    )
    available = object_of(reference.get("available_range"))
    start_s = _seconds(available.get("start_time"))
    return Owner(media, 0.0 if math.isnan(start_s) else start_s)


def _marker(item: Mapping[str, Any], owner: Owner, location: str) -> RawSpan:
    """Read a marker; its tier is the one that an export of obygaze wrote, else its colour."""
    name = text_of(item.get("name"))
    comment = text_of(item.get("comment"))
    where_with_text = f"{location} ({name or comment:.40})"

    marked = object_of(item.get("marked_range"))
    start_s = _seconds(marked.get("start_time")) - owner.start_s  # from the start of the owner's media
    end_s = start_s + _seconds(marked.get("duration"))

    metadata = object_of(item.get("metadata"))
    metadata_of_export = object_of(metadata.get("obygaze"))
    if metadata_of_export:
        span = RawSpan(where_with_text, start_s, end_s, name)
        return _exported_marker(span, metadata_of_export, owner.media)

    n_frames = number(object_of(marked.get("duration")).get("value"))
    if n_frames == 1:
        # Resolve and Kdenlive give a marker that is set on a frame the length of one.
        end_s = start_s
    cells = {"media": owner.media} if owner.media else {}
    if comment and name:
        cells["comment"] = comment
    colour = text_of(item.get("color")).title()
    return marker(
        where_with_text, start_s=start_s, end_s=end_s, text=name or comment, tier=colour, cells=cells
    )


def _exported_marker(span: RawSpan, metadata: Mapping[str, Any], movie: str) -> RawSpan:
    """Read a marker that obygaze exported, whose metadata hold its tier, its times and its decision.

    The times of the metadata are exact, while those of the marker are rounded to frames. They are taken
    unless the marker was moved since.
    """
    start_s = number(metadata.get("start_s"))
    end_s = number(metadata.get("end_s"))
    has_same_start = abs(start_s - span.start_s) < LONGEST_FRAME_S
    has_same_end = abs(end_s - span.end_s) < LONGEST_FRAME_S
    is_unmoved = has_same_start and has_same_end  # False too if the metadata have no times (NaN)
    if not is_unmoved:
        start_s = span.start_s
        end_s = span.end_s

    people_tier, text = split_people_tier(span.text)
    cells = {"movie": movie}
    for name in (DECISION, DEFINITION):
        if metadata.get(name):
            cells[name] = text_of(metadata[name])
    tier = people_tier or text_of(metadata.get("tier"))
    return RawSpan(span.where, start_s, end_s, text, tier, cells)


def _seconds(time: Any) -> float:
    """Return the seconds of a RationalTime; NaN if the value is none."""
    value = number(object_of(time).get("value"))
    rate = number(object_of(time).get("rate"))
    return value / rate if rate > 0 else math.nan
