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
"""The folder of an uploaded film, and the random digits that Label Studio writes before the film's name."""
LOCAL = "/data/local-files/?d="
"""What Label Studio writes before the quoted path of a file on its own disk."""


class Stretch(NamedTuple):
    """First and last frame of a stretch, counted from 1; NaN where they cannot be read."""

    first: float
    last: float


def read_labelstudio(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the regions of all tasks: labels on the timeline or on sound, and rectangles while visible.

    Regions of predictions and drafts are yielded with a reason, so that they are left out.

    Raises
    ------
    ManifestError
        A task is not in the form of the JSON export, or one of several tasks does not name its film.
    """
    # A document that is no list counts as one empty task, which is refused below.
    tasks = objects_of(file.document) if isinstance(file.document, list) else [{}]
    for place, task in enumerate(tasks, start=1):
        location = f"task {text_of(task.get('id', place)):.60}"
        if not isinstance(task.get("annotations"), list) or "data" not in task:
            raise file.error(f"{location}: no annotations of Label Studio: export as JSON, not JSON-MIN")
        yield from _unfinished(task, location)

        media = _media(object_of(task.get("data")))
        has_movie_option = bool(file.reading.movie)
        if not media and not has_movie_option and len(tasks) > 1:
            raise file.error(
                f"{location}: no field of its data names a file, so that its film would be another's"
            )

        # A task without annotations counts as one with nothing marked, so that it is left out with a reason.
        annotations = objects_of(task["annotations"]) or [{"result": []}]
        for annotation in annotations:
            place_of_annotation = f"{location}, annotation {text_of(annotation.get('id', '?')):.60}"
            yield from _annotation(file, annotation, place_of_annotation, media)


def _unfinished(task: Mapping[str, Any], location: str) -> Iterator[RawSpan]:
    """Yield a record to leave out for each region of a task that is a model's prediction or a draft.

    A task of Label Studio has lists of `predictions` and `drafts`, and each of these has its regions in
    `result`. What they say is not read; each is a record with a reason, so that the account counts it.
    """
    for name, reason in UNFINISHED.items():
        for n, attempt in enumerate(objects_of(task.get(name)), start=1):
            for _region in objects_of(attempt.get("result")):
                yield RawSpan(f"{location}, {name} {n}", reason=reason)


def _annotation(
    file: SpanFile, annotation: Mapping[str, Any], location: str, media: str
) -> Iterator[RawSpan]:
    """Yield the regions of one annotation, which is what one person marked in a task.

    A region that began as a model's prediction counts as made by a person who saw the model's output.
    """
    annotator = annotation.get("completed_by", "")
    if isinstance(annotator, dict):  # some exports have an object in place of an id
        annotator = annotator.get("email") or annotator.get("id", "")

    # An annotation without the key `result` counts as one with an empty region, which cannot be read.
    regions = objects_of(annotation["result"]) if "result" in annotation else [{}]
    if not regions:
        yield RawSpan(location, reason="skipped, or nothing is marked")

    per_second = _frames_per_second(file, regions, location)
    for n, region in enumerate(regions, start=1):
        place = f"{location}, region {n}"
        origin = text_of(region.get("origin"))  # such as "manual", "prediction", "prediction-changed"
        is_predicted = bool(annotation.get("parent_prediction")) or "prediction" in origin
        cells = {
            "media": media,
            "annotator": text_of(annotator),
            "comment": text_of(object_of(region.get("meta")).get("text")),
            "seen_score": "1" if is_predicted else "",  # "1": the annotator saw what a model says
        }
        if annotation.get("was_cancelled"):
            yield RawSpan(place, reason="of an annotation that was cancelled")
        else:
            yield from _region(file, region, place, cells, per_second)


def _media(data: Mapping[str, Any]) -> str:
    """Return the path or URL of the film that the fields of a task's data name; "" if none does.

    It is the first text with the suffix of a film, looked for in the usual fields first; else the first text
    with any suffix in one of the usual fields.
    """
    usual_fields = [name for name in USUAL_FIELDS if name in data]
    other_fields = [name for name in data if name not in USUAL_FIELDS]
    for name in usual_fields + other_fields:
        file = _file_in(data[name])
        if path_of(file).suffix.lower() in FILM_SUFFIXES:
            return _original_place(file)
    for name in usual_fields:
        file = _file_in(data[name])
        has_suffix = re.fullmatch(r"\.\w{2,5}", path_of(file).suffix.lower(), re.ASCII) is not None
        if has_suffix:
            return _original_place(file)
    return ""


def _file_in(value: Any) -> str:
    """Return the path or URL in a field of a task: the text, or the source of a player in HTML; else ""."""
    return _SOURCE.sub(r"\1", value.strip()) if isinstance(value, str) else ""


def _original_place(path_or_url: str) -> str:
    """Return a path or URL without what Label Studio writes into it.

    Of an uploaded film, `/upload/3/0a1b2c3d-film.mp4`, the random digits are removed. Of a film on its own
    disk, `/data/local-files/?d=films/film.mp4`, the path is returned as a URL.
    """
    path_or_url = _UPLOAD.sub(r"\1", path_or_url)
    _, prefix, local_path = path_or_url.rpartition(LOCAL)
    return f"file:///{local_path}" if prefix else path_or_url


def _frames_per_second(file: SpanFile, regions: Sequence[Mapping[str, Any]], location: str) -> float | None:
    """Return the frames per second of the film, if a rectangle states its frames and length; else None.

    Raises
    ------
    ManifestError
        The rate differs from --rate by more than the rounding of a length explains (1.5 frames).
    """
    rate = file.reading.rate
    for region in regions:
        value = object_of(region.get("value"))
        n_frames = number(value.get("framesCount"))
        length_s = number(value.get("duration"))
        if n_frames > 0 and length_s > 0:
            frames_off = 0.0 if rate is None else abs(n_frames - rate * length_s)
            if frames_off > 1.5:  # the stated length is rounded
                raise file.error(
                    f"{location}: has {n_frames / length_s:g} frames a second, not --rate {rate}"
                )
            return n_frames / length_s
    return None


def _region(
    file: SpanFile,
    region: Mapping[str, Any],
    location: str,
    cells: Mapping[str, str],
    per_second: float | None,
) -> Iterator[RawSpan]:
    """Yield a span for each stretch of time of a region and each of its labels.

    `per_second` is the film's frames per second, if the annotation states them; `cells` are those that all
    spans of the region share.
    """
    value = object_of(region.get("value"))
    kind = text_of(region.get("type"))
    tier = text_of(region.get("from_name"))

    # Stretches of frames are in `ranges`, or follow from the key frames of a rectangle.
    stretches = [_stretch(part) for part in objects_of(value.get("ranges"))]
    if not stretches:
        stretches = _shown_stretches(value)
    times_of_frames = [_seconds(file, stretch, per_second, location) for stretch in stretches]
    # Seconds count before frames, which are converted all the same: without a rate the file is refused.
    times_s = times_of_frames
    if _has_seconds(value, kind):
        times_s = [(number(value["start"]), number(value["end"]))]

    if not times_s:
        yield RawSpan(location, reason=f"of type {kind or 'none':.40}, without a stretch of time")
    has_frame_below_first = any(stretch.first < 1 for stretch in stretches)
    reason = "a frame below 1, the first of Label Studio" if has_frame_below_first else ""
    for start_s, end_s in times_s:
        for label in _labels(value, kind):
            yield RawSpan(location, start_s, end_s, label, tier, cells, reason=reason)


def _labels(value: Mapping[str, Any], kind: str) -> list[str]:
    """Return the labels of a region, which are under the key of its type; else its text as the only label.

    `kind` is that type, such as "timelinelabels", and `value` the object in which the region has its facts.
    """
    labels = value.get(kind, value.get("labels", value.get("text")))
    if isinstance(labels, list) and labels:
        return [text_of(label) for label in labels]
    return [text_of(labels)]


def _has_seconds(value: Mapping[str, Any], kind: str) -> bool:
    """Return whether the start and end of a region are seconds, and not frames or positions in a text."""
    is_of_text = isinstance(value.get("text"), str) or "startOffset" in value
    is_of_series = "instant" in value
    has_both = "start" in value and "end" in value
    return has_both and kind not in FRAMED and not is_of_text and not is_of_series


def _stretch(part: Mapping[str, Any]) -> Stretch:
    """Read the first and last frame of a range of a timeline label; NaN where there is no number."""
    return Stretch(number(part.get("start")), number(part.get("end")))


def _seconds(
    file: SpanFile, stretch: Stretch, per_second: float | None, location: str
) -> tuple[float, float]:
    """Convert the first and last frame of a stretch to its start and end in seconds.

    Frames are counted from 1, so that the first one begins at 0 and frame n ends after n frames.
    The rate that the person gives by --rate comes before `per_second`, which the annotation states.

    Raises
    ------
    ManifestError
        No rate is known.
    """
    if math.isnan(stretch.first + stretch.last):
        return math.nan, math.nan
    frames_before = stretch.first - 1
    has_rate_option = file.reading.rate is not None
    if per_second is not None and not has_rate_option:
        return frames_before / per_second, stretch.last / per_second
    return file.seconds(frames_before, location), file.seconds(stretch.last, location)


def _shown_stretches(value: Mapping[str, Any]) -> list[Stretch]:
    """Find the stretches in which a rectangle is visible: from a key frame to one that switches it off.

    The list is empty if a key frame cannot be read, as it is no number or no frame of the film. If the number
    of frames of the film cannot be read, the end of a rectangle that is never switched off is NaN.
    """
    n_frames = number(value.get("framesCount"))
    is_length_known = not math.isnan(n_frames)
    shown_frames = []
    hidden_frames = []
    for key_frame in objects_of(value.get("sequence")):
        frame = number(key_frame.get("frame"))
        if math.isnan(frame):
            return []
        if is_length_known:
            frame = min(frame, n_frames)  # a key frame may lie behind the last frame of the film
        if frame <= 0:  # frames count from 1
            return []
        if key_frame.get("enabled", True):
            shown_frames.append(frame)
        else:
            hidden_frames.append(frame)
    if is_length_known and n_frames > max(shown_frames, default=0):
        # A rectangle that is never switched off is visible up to the last frame of the film.
        hidden_frames.append(n_frames)

    # `runs_of` adds `step` to the last frame of a stretch that no key frame ends: NaN, so that the end is
    # unknown, where the film's length is.
    step = 0.0 if is_length_known else math.nan
    runs = runs_of(sorted(shown_frames), outside=hidden_frames, step=step)
    return [Stretch(first, last) for first, last in runs]
