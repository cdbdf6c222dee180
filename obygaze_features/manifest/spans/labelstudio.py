"""Read the tasks of Label Studio (JSON); a tier is the tag that a region was made with (`from_name`).

Source: Label Studio's "Export annotations" and tags TimelineLabels and VideoRectangle.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from obygaze_features.file_kinds import FILM_SUFFIXES
from obygaze_features.manifest.spans.frames import runs_of
from obygaze_features.manifest.spans.json_values import number, object_of, objects_of, text_of
from obygaze_features.manifest.spans.names import path_of
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile

FRAMED = ("timelinelabels", "videorectangle")
"""Types whose times are frames."""

UNFINISHED = {"predictions": "a model's prediction, which is no label", "drafts": "a draft, not submitted"}
USUAL_FIELDS = ("video", "audio", "url")
"""Fields of a task's data that name its film, whatever its file is called."""

_SOURCE = re.compile(r"""<[^<>]*\bsrc=["']?([^"'\s>]+).*""", re.DOTALL)
"""A player in HTML, which names its file."""
_UPLOAD = re.compile(r"(/upload/\d++/)[0-9a-f]{8}-")
"""What Label Studio writes before the name of a file."""
LOCAL = "/data/local-files/?d="
"""What it writes before the quoted path of a file on its own disk."""


class Stretch(NamedTuple):
    """First and last frame of a stretch, counted from 1; NaN where they cannot be read."""

    first: float
    last: float


def read_labelstudio(file: SpanFile) -> Iterator[RawSpan]:
    """Yield timeline labels, labels of sound, and shown stretches of rectangles; frames count from 1."""
    tasks = objects_of(file.document if isinstance(file.document, list) else {})
    for place, task in enumerate(tasks, start=1):
        where = f"task {text_of(task.get('id', place)):.60}"
        if not isinstance(task.get("annotations"), list) or "data" not in task:
            raise file.error(f"{where}: no annotations of Label Studio: export as JSON, not JSON-MIN")
        yield from _unfinished(task, where)
        media = _media(object_of(task.get("data")))
        if not media and not file.reading.movie and len(tasks) > 1:
            raise file.error(
                f"{where}: no field of its data names a file, so that its film would be another's"
            )
        for annotation in objects_of(task["annotations"]) or [{"result": []}]:
            place_of_annotation = f"{where}, annotation {text_of(annotation.get('id', '?')):.60}"
            yield from _annotation(file, annotation, place_of_annotation, media)


def _unfinished(task: Mapping[str, Any], where: str) -> Iterator[RawSpan]:
    """Yield what a model predicted, and what nobody submitted."""
    for name, reason in UNFINISHED.items():
        for n, attempt in enumerate(objects_of(task.get(name)), start=1):
            for _ in objects_of(attempt.get("result")):
                yield RawSpan(f"{where}, {name} {n}", reason=reason)


def _annotation(file: SpanFile, annotation: Mapping[str, Any], where: str, media: str) -> Iterator[RawSpan]:
    """Yield the regions of one annotation; what was begun by a model was made in its sight."""
    annotator = annotation.get("completed_by", "")
    if isinstance(annotator, dict):
        annotator = annotator.get("email") or annotator.get("id", "")
    regions = objects_of(annotation.get("result", {}))
    if not regions:
        yield RawSpan(where, reason="skipped, or nothing is marked")
    per_second = _frames_per_second(file, regions, where)
    for n, region in enumerate(regions, start=1):
        place = f"{where}, region {n}"
        origin = text_of(region.get("origin"))
        is_guessed = bool(annotation.get("parent_prediction")) or "prediction" in origin
        cells = {
            "media": media,
            "annotator": text_of(annotator),
            "comment": text_of(object_of(region.get("meta")).get("text")),
            "seen_score": "1" if is_guessed else "",
        }
        if annotation.get("was_cancelled"):
            yield RawSpan(place, reason="of an annotation that was cancelled")
        else:
            yield from _region(file, region, place, cells, per_second)


def _media(data: Mapping[str, Any]) -> str:
    """Find the film that a task names: a field that ends as films do, else one of the usual names."""
    order = [key for key in USUAL_FIELDS if key in data]
    order += [key for key in data if key not in order]
    places = {key: _SOURCE.sub(r"\1", data[key].strip()) for key in order if isinstance(data[key], str)}
    suffixes = {key: path_of(place).suffix.lower() for key, place in places.items()}
    films = [key for key, suffix in suffixes.items() if suffix in FILM_SUFFIXES]
    for key, suffix in suffixes.items():
        if key in USUAL_FIELDS and re.fullmatch(r"\.\w{2,5}", suffix, re.ASCII):
            films.append(key)
    if not films:
        return ""
    place = _UPLOAD.sub(r"\1", places[films[0]])
    _, local, path = place.rpartition(LOCAL)
    return f"file:///{path}" if local else place


def _frames_per_second(file: SpanFile, regions: Sequence[Mapping[str, Any]], where: str) -> float | None:
    """Return the rate that the rectangles of an annotation tell, by their film's frames and length."""
    rate = file.reading.rate
    for region in regions:
        value = object_of(region.get("value"))
        n_frames = number(value.get("framesCount"))
        length_s = number(value.get("duration"))
        if n_frames > 0 and length_s > 0:
            if rate and abs(n_frames - rate * length_s) > 1.5:
                raise file.error(f"{where}: has {n_frames / length_s:g} frames a second, not --rate {rate}")
            return n_frames / length_s
    return None


def _region(
    file: SpanFile, region: Mapping[str, Any], where: str, cells: Mapping[str, str], per_second: float | None
) -> Iterator[RawSpan]:
    """Yield a span for each stretch and label of a region."""
    value = object_of(region.get("value"))
    kind = text_of(region.get("type"))
    tier = text_of(region.get("from_name"))
    stretches = [_stretch(part) for part in objects_of(value.get("ranges"))] or _shown(value)
    spans = [_seconds(file, stretch, per_second, where) for stretch in stretches]
    if _has_seconds(value, kind):
        spans = [(number(value["start"]), number(value["end"]))]
    if not spans:
        yield RawSpan(where, reason=f"of type {kind or 'none':.40}, without a stretch of time")
    reason = ""
    if any(stretch.first < 1 for stretch in stretches):
        reason = "a frame below 1, the first of Label Studio"
    for start_s, end_s in spans:
        for label in _labels(value, kind):
            yield RawSpan(where, start_s, end_s, label, tier, cells, reason=reason)


def _labels(value: Mapping[str, Any], kind: str) -> list[str]:
    """List the labels of a region, or its text."""
    labels = value.get(kind, value.get("labels", value.get("text")))
    if isinstance(labels, list) and labels:
        return [text_of(label) for label in labels]
    return [text_of(labels)]


def _has_seconds(value: Mapping[str, Any], kind: str) -> bool:
    """Return whether start and end of a region are seconds, as those of texts and time series are not."""
    is_elsewhere = isinstance(value.get("text"), str) or "startOffset" in value or "instant" in value
    return "start" in value and "end" in value and kind not in FRAMED and not is_elsewhere


def _stretch(part: Mapping[str, Any]) -> Stretch:
    return Stretch(number(part.get("start")), number(part.get("end")))


def _seconds(file: SpanFile, stretch: Stretch, per_second: float | None, where: str) -> tuple[float, float]:
    """Convert the first and last frame of a stretch, counted from 1, to its start and end in seconds."""
    if math.isnan(stretch.first + stretch.last):
        return math.nan, math.nan
    if file.reading.rate is None and per_second is not None:
        return (stretch.first - 1) / per_second, stretch.last / per_second
    return file.seconds(stretch.first - 1, where), file.seconds(stretch.last, where)


def _shown(value: Mapping[str, Any]) -> list[Stretch]:
    """Find the stretches in which a rectangle is shown: from a key frame to the one that ends it."""
    n_frames = number(value.get("framesCount"))
    shown = []
    outside = []
    for key in objects_of(value.get("sequence")):
        frame = min(number(key.get("frame")), n_frames)
        if not frame > 0:
            return []
        if key.get("enabled", True):
            shown.append(frame)
        else:
            outside.append(frame)
    if n_frames > max(shown, default=0):  # else the last frame is a key
        outside.append(n_frames)
    return [Stretch(first, end) for first, end in runs_of(sorted(shown), outside, 0 * n_frames)]
