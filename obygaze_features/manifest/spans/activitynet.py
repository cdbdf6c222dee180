"""Read the database of ActivityNet (JSON), whose labels are one tier, `label`.

Source: ActivityNet's data format 1.3.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from obygaze_features.manifest.spans.json_values import number, object_of, objects_of, text_of
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.text import first_few

READ_KEYS = {"segment", "label", "label_id"}
SHOWN = 3
SLACK_S = 0.05
"""Seconds by which a segment may end after its video: durations are rounded."""


def read_activitynet(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the segments of all videos of ActivityNet's database, cut at the end of their video.

    Which segments were cut, and which keys are not read, is noted in the file's account.
    """
    unread_keys: list[str] = []
    notes_on_cut: list[str] = []
    for name, video in _database(file).items():
        video_length_s = _length_s(object_of(video))
        # A video that is no object counts as one empty annotation, so that it is left out with a reason.
        annotations = objects_of(video.get("annotations")) if isinstance(video, dict) else [{}]
        for n, annotation in enumerate(annotations, start=1):
            unread_keys += [key for key in annotation if key not in READ_KEYS]
            location = f"{name:.60}, annotation {n}"
            span = _span(location, name, annotation)
            cut_span = _cut_at(span, video_length_s)
            was_cut = span.end_s > video_length_s + SLACK_S
            if was_cut and not cut_span.reason:
                notes_on_cut.append(f"{location}: cut at the end of its video, {video_length_s:g} s")
            yield cut_span
    file.account.note_unread("key", unread_keys)
    if notes_on_cut:
        file.account.note(first_few(notes_on_cut, SHOWN))


def _cut_at(span: RawSpan, length_s: float) -> RawSpan:
    """Return a span cut at the end of its video, with a reason to leave it out if it begins after that.

    Times that cannot be read, and an unknown length, are NaN: comparisons with NaN are false, so that such a
    span stays as it is.
    """
    if span.start_s >= length_s:
        span = replace(span, reason=f"it begins behind the end of its video, {length_s:g} s")
    if span.end_s > length_s:
        span = replace(span, end_s=length_s)
    return span


def _database(file: SpanFile) -> Mapping[str, Any]:
    """Return name -> video, from the document's key `database`, else from the document itself.

    Raises
    ------
    ManifestError
        The document holds no videos.
    """
    document = object_of(file.document)
    database = object_of(document.get("database", document))
    if "database" in document:
        has_videos = bool(database)
    else:
        has_videos = any("annotations" in object_of(video) for video in database.values())
    if not has_videos:
        raise file.error(
            "not a database of ActivityNet: no 'database' of videos (results of a model are no labels)"
        )
    return database


def _length_s(video: Mapping[str, Any]) -> float:
    """Return the length of a video in seconds; NaN if it is not given, or 0."""
    length_s = number(video.get("duration", video.get("duration_second")))
    return length_s or math.nan


def _times(annotation: Mapping[str, Any]) -> tuple[float, float]:
    """Return the start and end of an annotation in seconds; NaN where they cannot be read."""
    segment = annotation.get("segment")
    if not isinstance(segment, list) or len(segment) != 2:
        return math.nan, math.nan
    start, end = segment
    return number(start), number(end)


def _span(location: str, movie: str, annotation: Mapping[str, Any]) -> RawSpan:
    """Read one annotation of the video of a movie; `location` is its place in the file, for messages."""
    label = annotation.get("label")
    start_s, end_s = _times(annotation)
    is_label = isinstance(label, str | int | float | list)
    reason = "" if is_label else "no label that can be read"
    return RawSpan(location, start_s, end_s, text_of(label), cells={"movie": one_line(movie)}, reason=reason)
