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

from obygaze_features.file_kinds import FILM_SUFFIXES
from obygaze_features.manifest.spans.given import Given, RawSpan, number
from obygaze_features.manifest.spans.names import path_of
from obygaze_features.manifest.spans.subtitles import one_line


def _dicts(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list, {} in place of whatever else it holds, or is."""
    return [_dict(each) for each in value] if isinstance(value, list) else [{}] * (value is not None)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _words(value: Any) -> str:
    """Write a text, a number, or several, joined by `;`."""
    if isinstance(value, list):
        return ";".join(filter(None, map(_words, value)))
    return one_line(str(value)) if isinstance(value, str | int | float) else ""


# --- Label Studio
# ---------------------------------------------------------------------------
FRAMED = ("timelinelabels", "videorectangle")
"""Types whose times are frames."""
UNFINISHED = {"predictions": "a model's prediction, which is no label", "drafts": "a draft, not submitted"}
_SOURCE = re.compile(r"""<[^<>]*\bsrc=["']?([^"'\s>]+).*""", re.DOTALL)
"""A player in HTML, which names its file."""
_UPLOAD = re.compile(r"(/upload/\d+/)[0-9a-f]{8}-")
"""What Label Studio writes before the name of a file."""
_LOCAL = re.compile(r".*/data/local-files/\?d=")
"""What it writes before the quoted path of a file on its own disk."""


def read_labelstudio(given: Given) -> Iterator[RawSpan]:
    """Yield timeline labels, labels of sound, and shown stretches of rectangles; frames count from 1."""
    tasks = _dicts(given.document if isinstance(given.document, list) else {})
    for place, task in enumerate(tasks, start=1):
        at = f"task {task.get('id', place)}"
        if not (isinstance(task.get("annotations"), list) and "data" in task):
            raise given.error(f"{at}: no annotations of Label Studio: export as JSON, not JSON-MIN")
        for name, why in UNFINISHED.items():
            for n, guess in enumerate(_dicts(task.get(name)), start=1):
                for _ in _dicts(guess.get("result")):
                    yield RawSpan(f"{at}, {name} {n}", why=why)
        media = _media(_dict(task.get("data")))
        if not media and not given.movie and len(tasks) > 1:
            raise given.error(f"{at}: no field of its data names a file, so that its film would be another's")
        for note in _dicts(task["annotations"]) or [{"result": []}]:
            yield from _annotation(given, note, f"{at}, annotation {note.get('id', '?')}", media)


def _annotation(given: Given, note: dict[str, Any], at: str, media: str) -> Iterator[RawSpan]:
    """Yield the regions of one annotation; what was begun by a model was made in its sight."""
    who, results = note.get("completed_by", ""), _dicts(note.get("result", {}))
    who = who.get("email") or who.get("id", "") if isinstance(who, dict) else who
    fps = _frames_per_second(given, results, at)
    if not results:
        yield RawSpan(at, why="skipped, or nothing is marked")
    for n, result in enumerate(results, start=1):
        where, comment = f"{at}, region {n}", _words(_dict(result.get("meta")).get("text"))
        guessed = bool(note.get("parent_prediction")) or "prediction" in str(result.get("origin"))
        cells = {"media": media, "annotator": _words(who), "comment": comment}
        cells["seen_score"] = "1" if guessed else ""
        if note.get("was_cancelled"):
            yield RawSpan(where, why="of an annotation that was cancelled")
        else:
            yield from _region(given, result, where, cells, fps)


def _media(data: dict[str, Any]) -> str:
    """Find the film that a task names: a field that ends as films do, else one of the usual names."""
    usual = {key: data[key] for key in ("video", "audio", "url") if key in data}
    texts = {key: text.strip() for key, text in (usual | data).items() if isinstance(text, str)}
    said = {key: _SOURCE.sub(r"\1", text) for key, text in texts.items()}
    ends = {key: path_of(text).suffix.lower() for key, text in said.items()}
    films = [key for key, end in ends.items() if end in FILM_SUFFIXES]
    films += [key for key, end in ends.items() if key in usual and re.fullmatch(r"\.\w{2,5}", end, re.ASCII)]
    return _LOCAL.sub("file:///", _UPLOAD.sub(r"\1", said[films[0]])) if films else ""


def _frames_per_second(given: Given, results: Sequence[dict[str, Any]], at: str) -> float | None:
    """Return the rate that the rectangles of an annotation tell, by their film's frames and length."""
    for result in results:
        value = _dict(result.get("value"))
        frames, length = number(value.get("framesCount")), number(value.get("duration"))
        if frames > 0 and length > 0:
            if given.rate and abs(frames - given.rate * length) > 1.5:
                raise given.error(f"{at}: has {frames / length:g} frames a second, not --rate {given.rate}")
            return frames / length
    return None


def _region(
    given: Given, result: dict[str, Any], where: str, cells: dict[str, str], fps: float | None
) -> Iterator[RawSpan]:
    """Yield a span for each stretch and label of a region."""
    value, kind = _dict(result.get("value")), str(result.get("type", ""))
    named = value.get(kind, value.get("labels", value.get("text")))
    labels = [_words(label) for label in named] if isinstance(named, list) and named else [_words(named)]
    frames = [_ends(each) for each in _dicts(value.get("ranges"))] or _shown(value)
    spans = [_of_frames(given, first, last, fps, where) for first, last in frames]
    # Of texts and time series start and end are no seconds.
    elsewhere = isinstance(value.get("text"), str) or {"startOffset", "instant"} & set(value)
    if {"start", "end"} <= set(value) and kind not in FRAMED and not elsewhere:
        spans = [_ends(value)]
    if not spans:
        yield RawSpan(where, why=f"of type {kind or 'none'}, without a stretch of time")
    why = "a frame below 1, the first of Label Studio" * any(first < 1 for first, _ in frames)
    for start, end in spans:
        for label in labels:
            yield RawSpan(where, start, end, label, _words(result.get("from_name")), cells, why=why)


def _ends(value: dict[str, Any]) -> tuple[float, float]:
    return number(value.get("start")), number(value.get("end"))


def _of_frames(given: Given, first: float, last: float, fps: float | None, where: str) -> tuple[float, float]:
    """Convert the first and last frame of a stretch, counted from 1, to its start and end in seconds."""
    if math.isnan(first + last) or (given.rate is None and fps is not None):
        return (first - 1) / (fps or 1.0), last / (fps or 1.0)
    return given.frames(first - 1, where), given.frames(last, where)


def _shown(value: dict[str, Any]) -> list[tuple[float, float]]:
    """Find the stretches in which a rectangle is shown: from a key frame to the one that ends it."""
    keys, count = _dicts(value.get("sequence")), number(value.get("framesCount"))
    frames = [(min(number(key.get("frame")), count), bool(key.get("enabled", True))) for key in keys]
    if not all(frame > 0 for frame, _ in frames):
        return []
    shown, outside = (sorted(frame for frame, on in frames if on is kind) for kind in (True, False))
    if count > max(shown, default=0):  # else the last frame is a key
        outside.append(count)
    return _runs(shown, outside, 0 * count, None)


# --- ActivityNet
# ---------------------------------------------------------------------------
def read_activitynet(given: Given) -> Iterator[RawSpan]:
    """Yield the segments of ActivityNet's database, which may be the document itself."""
    document = _dict(given.document)
    database = _dict(document.get("database", document))
    has_notes = any("annotations" in _dict(video) for video in database.values())
    if not (database if "database" in document else has_notes):
        raise given.error(
            "not a database of ActivityNet: no 'database' of videos (results of a model are no labels)"
        )
    beside: list[str] = []
    for name, video in database.items():
        length = number(_dict(video).get("duration", _dict(video).get("duration_second"))) or math.nan
        notes = _dicts(video.get("annotations")) if isinstance(video, dict) else [{}]
        for n, note in enumerate(notes, start=1):
            where, segment, said = f"{name}, annotation {n}", note.get("segment"), note.get("label")
            beside += [key for key in note if key not in {"segment", "label", "label_id"}]
            times = [number(each) for each in segment] if isinstance(segment, list) else []
            start, end = times if len(times) == 2 else (math.nan, math.nan)
            why = "" if isinstance(said, str | int | float | list) else "no label that can be read"
            if start >= length:
                why = f"it begins behind the end of its video, {length:g} s"
            elif end > length + 0.05 and not why:
                given.account.notes.append(f"{where}: cut at the end of its video, {length:g} s")
            film = {"movie": one_line(name)}
            yield RawSpan(where, start, min(end, length), _words(said), "", film, why=why)
    given.account.unread("key", beside)


# --- CVAT
# ---------------------------------------------------------------------------
def read_cvat(given: Given) -> Iterator[RawSpan]:
    """Yield the stretches in which tracks are shown, and runs of frames with one tag; frames count from 0."""
    root = given.xml("annotations", "annotations of CVAT")
    sources = {node.text.strip() for node in root.findall("meta//source") if node.text}
    if root.findtext("meta/project") is not None or len(sources) > 1:
        raise given.error("of a whole project of CVAT: export each task, whose film it then names")
    steps = [re.search(r"step=(\d{1,6})", node.text or "") for node in root.findall("meta//frame_filter")]
    step = next((int(found[1]) for found in steps if found and int(found[1])), 1)
    for node in root:
        if node.tag not in {"version", "meta", "track", "image", "tag"}:
            yield RawSpan(f"element {node.tag:.60}", why="of a kind that is not read")
    yield from _pictures(given, root)
    for what, (tier, label, seen), runs in [*_tracks(root, step), *_tags(root, step)]:
        if isinstance(runs, str):
            yield RawSpan(what, why=runs)
            continue
        film = {"media": "".join(sources), "subject": what if what.startswith("track") else ""}
        film["seen_score"] = seen
        for first, end in runs:
            where = f"{what}, frame {first}"
            times = given.frames(first, where), given.frames(end, where)
            yield RawSpan(where, *times, label, tier, film)


def _pictures(given: Given, root: Element) -> Iterator[RawSpan]:
    """Yield what images have beside tags, and take out those that are no frames of a film."""
    for image in root.findall("image"):
        named = re.match(r"frame_(\d{1,9})\b", image.get("name", ""), re.ASCII)
        if named and int(named[1]) != _frame(image, "id"):
            raise given.error(f"image {named[0]} has the id {image.get('id')}: which frame it is, is unclear")
        if any(child.tag != "tag" for child in image):
            yield RawSpan(f"image {image.get('id', '')}", why="shapes of single frames, which are no spans")
        if not named and image.get("name"):
            yield RawSpan(f"image {image.get('name')!r:.80}", why="a picture of its own, no frame of a film")
            root.remove(image)


Runs = list[tuple[float, float]]
"""First frames of stretches, and the ones after their last."""
Said = tuple[str, str, str]
"""Attribute or "", its value or the label, and 1 where a model helped."""
MADE = "of a model (automatic annotation), which is no label"


def _tracks(root: Element, step: int) -> Iterator[tuple[str, Said, Runs | str]]:
    """Find the stretches in which each track is shown, and each value of its attributes; or why none."""
    for track in root.findall("track"):
        what = f"track {track.get('id', '')}"
        frames = [(_frame(node), _is_shown(node)) for node in track]
        shown, outside = ({n for n, on in frames if n is not None and on is kind} for kind in (True, False))
        is_whole = all(frame is not None for frame, _ in frames)
        if track.get("source") == "auto" or not shown or not is_whole:
            why = "it is shown nowhere" if is_whole else "a shape without the number of its frame"
            yield what, ("", "", ""), MADE if track.get("source") == "auto" else why
            continue
        seen = "1" * (not {"auto", "semi-auto"}.isdisjoint(node.get("source") for node in (track, *track)))
        said = {("", one_line(track.get("label", "")), seen): shown}
        for node in track:
            for words in _attributes(node):
                said.setdefault((*words, seen), set()).update({_frame(node) or 0} & shown)
        for each, numbers in said.items():
            yield what, each, _runs(sorted(numbers), outside | (shown - numbers), step, None)


def _is_shown(shape: Element) -> bool:
    """Return whether a shape, or one of the points of a skeleton, is not outside."""
    return {each.get("outside") for each in (shape, *shape)} - {None} != {"1"}


def _attributes(node: Element) -> Iterator[tuple[str, str]]:
    """Yield the attributes of a shape with their values; of a checkbox that is ticked, its name."""
    for each in node.findall("attribute"):
        name, value = one_line(each.get("name", "")), one_line(each.text or "")
        if value not in {"", "false", "__undefined__"}:
            yield name, name if value == "true" else value


def _tags(root: Element, step: int) -> Iterator[tuple[str, Said, Runs | str]]:
    """Find the runs of frames with a tag: of images, or of a task of video."""
    tagged: dict[Said, set[int]] = {}
    tags = [(tag, _frame(image, "id")) for image in root.findall("image") for tag in image.findall("tag")]
    for tag, frame in [*tags, *((tag, _frame(tag)) for tag in root.findall("tag"))]:
        label = one_line(tag.get("label", ""))
        if frame is None or tag.get("source") == "auto":
            yield f"tag {label!r}", ("", "", ""), "without the number of its frame" if frame is None else MADE
            continue
        for words in (("", label), *_attributes(tag)):
            seen = "1" * (tag.get("source") == "semi-auto")
            tagged.setdefault((*words, seen), set()).add(frame)
    for said, numbers in tagged.items():
        yield f"tag {said[1]!r}", said, _runs(sorted(numbers), (), step, step)


def _frame(node: Element, name: str = "frame") -> int | None:
    text = node.get(name, "")
    return int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else None


def _runs(frames: Sequence[float], outside: Iterable[float], step: float, widest: float | None) -> Runs:
    """Find the runs of frames [start, end): to the next frame outside, else one step after the last.

    Frames that are further apart than `widest` are of two runs; a track goes on until it is outside.
    """
    stops = [*sorted(outside), math.inf]
    runs: list[tuple[float, float, float]] = []  # first and last frames, and the next one outside
    for frame in frames:
        stop = stops[bisect_right(stops, frame)]
        first, last, before = runs[-1] if runs else (frame, frame, math.nan)
        if before == stop and (widest is None or frame - last <= widest):
            runs[-1] = first, frame, stop
        else:
            runs.append((frame, frame, stop))
    return [(first, last + step if math.isinf(stop) else stop) for first, last, stop in runs]
