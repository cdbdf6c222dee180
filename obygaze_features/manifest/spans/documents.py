"""Read spans of annotation servers: Label Studio and ActivityNet (JSON), CVAT (XML).

Sources: Label Studio's "Export annotations" and tags TimelineLabels and VideoRectangle, ActivityNet's data
format 1.3, CVAT's "XML annotation format" 1.1.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from xml.etree.ElementTree import Element

from obygaze_features.manifest.spans.given import Given, RawSpan, number
from obygaze_features.manifest.spans.names import path_of
from obygaze_features.manifest.spans.subtitles import one_line


def _dicts(value: Any, given: Given | None = None, where: str = "") -> list[dict[str, Any]]:
    """Return the objects of a list, [] where it is none; what else it holds is counted as left out."""
    found = [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
    if given is not None and value is not None:
        for _ in range(len(value) - len(found) if isinstance(value, list) else 1):
            _leave(given, where, "it cannot be read")
    return found


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _words(value: Any) -> str:
    """Write a text, a number, or several, joined by `;`."""
    if isinstance(value, list):
        return ";".join(filter(None, map(_words, value)))
    return one_line(str(value)) if isinstance(value, str | int | float) else ""


# --- Label Studio
# ---------------------------------------------------------------------------
UNFINISHED = {"predictions": "a model's prediction, which is no label", "drafts": "a draft, not submitted"}
_SOURCE = re.compile(r"""<[^>]*\bsrc=["']?([^"'\s>]+).*""", re.DOTALL)
"""A player in HTML, which names its file."""
_UPLOAD = re.compile(r"(/upload/\d+/)[0-9a-f]{8}-")
"""What Label Studio writes before the name of a file."""


def read_labelstudio(given: Given) -> Iterator[RawSpan]:
    """Yield timeline labels, labels of sound, and shown stretches of rectangles; frames count from 1."""
    tasks = given.document
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise given.error(
            "not an export of Label Studio: a list of tasks was expected (export as JSON, not JSON-MIN)"
        )
    for place, task in enumerate(tasks, start=1):
        at = f"task {task.get('id', place)}"
        if not isinstance(task.get("annotations"), list):
            raise given.error(f"{at}: no annotations: export as JSON, not JSON-MIN")
        data = _dict(task.get("data"))
        cells = {"media": _media(data)}
        for name, why in UNFINISHED.items():
            for n, guess in enumerate(_dicts(task.get(name)), start=1):
                for _ in _dicts(guess.get("result")):
                    _leave(given, f"{at}, {name} {n}", why)
        for note in _dicts(task["annotations"], given, at):
            who = note.get("completed_by", "")
            who = who.get("email") or who.get("id", "") if isinstance(who, dict) else who
            results = _dicts(note.get("result"), given, f"{at}, annotation {note.get('id', '?')}")
            fps = _frames_per_second(results)
            for n, result in enumerate(results, start=1):
                where = f"{at}, annotation {note.get('id', '?')}, region {n}"
                signed = {**cells, "annotator": _words(who)}
                if note.get("was_cancelled"):
                    _leave(given, where, "of an annotation that was cancelled")
                else:
                    yield from _region(given, result, where, signed, fps)


def _media(data: dict[str, Any]) -> str:
    """Find the film that a task names: in a field of the usual names, else in one that ends as files do."""
    texts = [data[key] for key in ("video", "audio", "url") if key in data] + list(data.values())
    places = [_SOURCE.sub(r"\1", text.strip()) for text in texts if isinstance(text, str)]
    files = [place for place in places if re.fullmatch(r"\.\w{2,5}", path_of(place).suffix, re.ASCII)]
    return next((_UPLOAD.sub(r"\1", place) for place in files), "")


def _frames_per_second(results: Sequence[dict[str, Any]]) -> float | None:
    """Return the rate that the rectangles of an annotation tell, by their film's frames and length."""
    for result in results:
        value = _dict(result.get("value"))
        frames, length = number(value.get("framesCount")), number(value.get("duration"))
        if frames and length and frames > 0 and length > 0:
            return frames / length
    return None


def _region(
    given: Given, result: dict[str, Any], where: str, cells: dict[str, str], fps: float | None
) -> Iterator[RawSpan]:
    """Yield a span for each stretch and label of a region."""
    value, kind, account = _dict(result.get("value")), str(result.get("type", "")), given.account
    named = value.get(kind, value.get("labels"))
    labels = [_words(label) for label in named] if isinstance(named, list) and named else [""]
    ends = (number(value.get("start")), number(value.get("end")))
    if kind == "timelinelabels":
        frames = [
            (number(each.get("start")), number(each.get("end"))) for each in _dicts(value.get("ranges"))
        ]
        spans = [_of_frames(given, first, last, fps, where) for first, last in frames]
    elif kind == "videorectangle":
        spans = [_of_frames(given, first, last, fps, where) for first, last in _shown(value)]
    else:
        spans = [ends] if None not in ends else []
    if not spans:
        _leave(given, where, f"of type {kind or 'none'}, without a stretch of time")
    for start, end in spans:
        for label in labels:
            account.seen += 1
            if start is None or end is None:
                account.leave(where, "its times cannot be read")
            else:
                yield RawSpan(where, start, end, label, _words(result.get("from_name")), cells)


def _of_frames(
    given: Given, first: float | None, last: float | None, fps: float | None, where: str
) -> tuple[float | None, float | None]:
    """Convert the first and last frame of a stretch, counted from 1, to its start and end in seconds."""
    if first is None or last is None:
        return None, None
    if given.rate is None and fps is not None:
        return (first - 1) / fps, last / fps
    return given.frames(first - 1, where), given.frames(last, where)


def _shown(value: dict[str, Any]) -> list[tuple[float | None, float | None]]:
    """Find the stretches in which a rectangle is shown: from a key frame to the one that ends it."""
    keys = [
        (number(key.get("frame")), bool(key.get("enabled", True))) for key in _dicts(value.get("sequence"))
    ]
    stretches: list[tuple[float | None, float | None]] = []
    first: float | None = None
    for frame, goes_on in sorted((frame, on) for frame, on in keys if frame is not None):
        first = frame if first is None else first
        if not goes_on:
            stretches.append((first, frame))
            first = None
    if first is not None:
        stretches.append((first, number(value.get("framesCount"))))
    return stretches


# --- ActivityNet
# ---------------------------------------------------------------------------
def read_activitynet(given: Given) -> Iterator[RawSpan]:
    """Yield the segments of ActivityNet's database."""
    database = _dict(given.document).get("database")
    if not isinstance(database, dict):
        raise given.error(
            "not a database of ActivityNet: no 'database' of videos (results of a model are no labels)"
        )
    for name, video in database.items():
        if not isinstance(video, dict):
            _leave(given, name, "it cannot be read")
            continue
        length = number(video.get("duration")) or math.inf
        for n, note in enumerate(_dicts(video.get("annotations"), given, name), start=1):
            where, segment = f"{name}, annotation {n}", note.get("segment")
            times = [number(each) for each in segment] if isinstance(segment, list) else []
            if len(times) != 2 or times[0] is None or times[1] is None:
                _leave(given, where, "its segment cannot be read")
            elif times[0] >= length:
                _leave(given, where, f"it begins behind the end of its video, {length:g} s")
            elif not isinstance(note.get("label", ""), str | int | float | list):
                _leave(given, where, "its label cannot be read")
            else:
                if times[1] > length + 0.05:
                    given.account.notes.append(f"{where}: cut at the end of its video, {length:g} s")
                given.account.seen += 1
                label, film = _words(note.get("label")), {"movie": one_line(name)}
                yield RawSpan(where, times[0], min(times[1], length), label, "", film)


# --- CVAT
# ---------------------------------------------------------------------------
def read_cvat(given: Given) -> Iterator[RawSpan]:
    """Yield the stretches in which tracks are shown, and runs of frames with one tag; frames count from 0."""
    root = given.xml("annotations", "annotations of CVAT")
    if root.findtext("meta/project") is not None:
        raise given.error("of a whole project of CVAT: export each task, whose film it then names")
    source = next((node.text for node in root.findall("meta//source") if node.text), "")
    steps = [re.search(r"step=(\d{1,6})", node.text or "") for node in root.findall("meta//frame_filter")]
    step = next((int(found[1]) for found in steps if found and int(found[1])), 1)
    runs = [*_tracks(given, root, step), *_tags(given, root, step)]
    for image in root.findall("image"):
        if any(child.tag != "tag" for child in image):
            _leave(given, f"image {image.get('id', '')}", "shapes of single frames, which are no spans")
    for what, tier, label, first, end in runs:
        given.account.seen += 1
        where = f"{what}, frame {first}"
        times = given.frames(first, where), given.frames(end, where)
        yield RawSpan(where, *times, label, tier, {"media": source.strip()})


Run = tuple[str, str, str, int, int]
"""What it is of, its attribute or "", label, first frame and the one after its last."""


def _tracks(given: Given, root: Element, step: int) -> Iterator[Run]:
    for track in root.findall("track"):
        what = f"track {track.get('id', '')}"
        frames = [(_frame(node), node.get("outside") != "1") for node in track]
        if not frames or any(frame is None for frame, _ in frames):
            _leave(given, what, "a shape without the number of its frame")
            continue
        shown, outside = ({n for n, on in frames if n is not None and on is kind} for kind in (True, False))
        said = {("", one_line(track.get("label", ""))): shown}
        for node in track:
            for name, value in _attributes(node):
                said.setdefault((name, value), set()).update({_frame(node) or 0} & shown)
        for (tier, text), numbers in said.items():
            for run in _runs(sorted(numbers), outside | (shown - numbers), step, None):
                yield what, tier, text, *run


def _attributes(node: Element) -> Iterator[tuple[str, str]]:
    """Yield the attributes of a shape with their values; of a checkbox that is ticked, its name."""
    for each in node.findall("attribute"):
        name, value = one_line(each.get("name", "")), one_line(each.text or "")
        if value not in {"", "false"}:
            yield name, name if value == "true" else value


def _tags(given: Given, root: Element, step: int) -> Iterator[Run]:
    """Find the runs of frames with a tag: of images, or of a task of video."""
    tagged: dict[tuple[str, str], set[int]] = {}
    tags = [(tag, _frame(image, "id")) for image in root.findall("image") for tag in image.findall("tag")]
    for tag, frame in [*tags, *((tag, _frame(tag)) for tag in root.findall("tag"))]:
        label = one_line(tag.get("label", ""))
        if frame is None:
            _leave(given, f"tag {label!r}", "without the number of its frame")
        else:
            for said in (("", label), *_attributes(tag)):
                tagged.setdefault(said, set()).add(frame)
    for (tier, label), numbers in tagged.items():
        for run in _runs(sorted(numbers), (), step, step):
            yield f"tag {label!r}", tier, label, *run


def _leave(given: Given, where: str, why: str) -> None:
    given.account.seen += 1
    given.account.leave(where, why)


def _frame(node: Element, name: str = "frame") -> int | None:
    text = node.get(name, "")
    return int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else None


def _runs(
    frames: Sequence[int], outside: Iterable[int], step: int, widest: int | None
) -> Iterator[tuple[int, int]]:
    """Yield runs of frames [start, end): to the next frame outside, else one step after the last.

    Frames that are further apart than `widest` are of two runs; a track goes on until it is outside.
    """
    stops = sorted(outside)
    runs: list[list[int]] = []
    for frame in frames:
        last = runs[-1][1] if runs else None
        near = last is not None and (widest is None or frame - last <= widest)
        if last is not None and near and bisect_right(stops, last) == bisect_right(stops, frame):
            runs[-1][1] = frame
        else:
            runs.append([frame, frame])
    for first, last in runs:
        following = bisect_right(stops, last)
        yield first, stops[following] if following < len(stops) else last + step
