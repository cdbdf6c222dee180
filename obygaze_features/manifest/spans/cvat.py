"""Read the tracks and tags of a task of CVAT (XML).

A tier is an attribute; `label` is that of the labels themselves, `checkbox` that of boxes that are ticked.

Source: CVAT's "XML annotation format" 1.1.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple
from xml.etree.ElementTree import Element

from obygaze_features.manifest.spans.frames import runs_of
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile

READ_ELEMENTS = {"version", "meta", "track", "image", "tag"}
AUTOMATIC = "of a model (automatic annotation), which is no label"
SEEN = "1"
"""Value of the column `seen_score`: the annotator saw what a model says."""
CHECKBOX = "checkbox"
NOT_CHOSEN = {"", "false", "__undefined__"}
"""Values of an attribute that say nothing."""


class Statement(NamedTuple):
    """What a tag, or a track with its attributes, says of a frame.

    Attributes
    ----------
    tier
        The name of an attribute; "" for the label.
    text
        The value of the attribute, or the label.
    seen_score
        `SEEN` if a model helped, so that the annotator saw its output; else "".
    """

    tier: str
    text: str
    seen_score: str


class TrackFrames(NamedTuple):
    """Frames of a track's shapes: those in which it is visible, and those in which it is outside."""

    shown: set[int]
    outside: set[int]


def read_cvat(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the stretches in which tracks show, and the runs of frames with one tag; frames count from 0.

    Raises
    ------
    ManifestError
        It is the export of a whole project, in which the films of the tracks are not named.
    """
    root = file.xml("annotations", "annotations of CVAT")
    sources = {node.text.strip() for node in root.findall("meta//source") if node.text}
    if root.findtext("meta/project") is not None or len(sources) > 1:
        raise file.error("of a whole project of CVAT: export each task, whose film it then names")
    media = "".join(sources)  # the one source, or "" if none is named
    step = _step(root)
    for node in root:
        if node.tag not in READ_ELEMENTS:
            yield RawSpan(f"element {node.tag:.60}", reason="of a kind that is not read")
    for image in root.findall("image"):
        yield from _unread_parts(file, image)
    for track in root.findall("track"):
        yield from _track(file, track, step, media)
    yield from _tags(file, root, step, media)


def _step(root: Element) -> int:
    """Return the step from one frame of the task to the next, in frames of the film: 10 for every tenth."""
    for node in root.findall("meta//frame_filter"):
        step = re.search(r"step=(\d{1,6})", node.text or "")
        if step and int(step[1]):
            return int(step[1])
    return 1


def _is_frame_of_a_film(image: Element) -> bool:
    """Return whether an image is a frame of a film: it has no name, or a name such as `frame_000012`."""
    name = image.get("name", "")
    return not name or re.match(r"frame_\d{1,9}\b", name, re.ASCII) is not None


def _unread_parts(file: SpanFile, image: Element) -> Iterator[RawSpan]:
    """Yield records, with reasons, for what is not read of an image.

    These are its shapes, and the image itself if it is no frame of a film. Its tags are read by `_tags`.

    Raises
    ------
    ManifestError
        The image's name and its id say different frames.
    """
    name = re.match(r"frame_(\d{1,9})\b", image.get("name", ""), re.ASCII)
    if name and int(name[1]) != _frame(image, "id"):
        raise file.error(f"image {name[0]} has the id {image.get('id')}: which frame it is, is unclear")
    if any(child.tag != "tag" for child in image):
        yield RawSpan(f"image {image.get('id', '')}", reason="shapes of single frames, which are no spans")
    if not _is_frame_of_a_film(image):
        yield RawSpan(f"image {image.get('name')!r:.80}", reason="a picture of its own, no frame of a film")


def _track(file: SpanFile, track: Element, step: int, media: str) -> Iterator[RawSpan]:
    """Yield a span for each stretch in which a track is visible, and in which an attribute has a value.

    A track gives its state in all frames, or only where it changes. For example, it gives

    - in frame 0: visible, with the attribute `gaze` = away;
    - in frame 10: visible, `gaze` = at her;
    - in frame 30: outside the picture.

    Then it is visible in frames 0 to 29, and `gaze` is away in 0 to 9 and at her in 10 to 29: three spans.

    `step` is from one frame of the task to the next, in frames of the film.
    """
    location = f"track {track.get('id', '')}"
    if track.get("source") == "auto":
        yield RawSpan(location, reason=AUTOMATIC, is_of_model=True)
        return
    frames = _track_frames(track)
    if frames is None:
        yield RawSpan(location, reason="a shape without the number of its frame")
        return
    shown, outside = frames
    if not shown:
        yield RawSpan(location, reason="it is shown nowhere")
        return

    next_frame = dict(pairwise(sorted(shown | outside)))  # frame with a shape -> the next one with a shape
    # A statement is that the track is visible, or that an attribute has a value.
    for statement, frames_with_statement in _frames_of_statements(track, shown).items():
        ends = _frames_after_statement(frames_with_statement, next_frame, outside)
        stretches = runs_of(sorted(frames_with_statement), outside=ends, step=step)
        yield from _spans(file, location, statement, stretches, {"media": media, "subject": location})


def _frames_after_statement(
    frames_with_statement: set[int], next_frame: Mapping[int, int], outside: set[int]
) -> set[int]:
    """Return the frames of a track in which a statement about it (its label, or a value) is true no longer.

    In such a frame the track is outside the picture, or the attribute has another value, while the statement
    was true in the frame before it. Only frames behind those with the statement are looked at, as a track may
    have very many statements.

    Parameters
    ----------
    frames_with_statement
        The frames whose shape has the label or value.
    next_frame
        Frame of the track -> the next frame in which the track has a shape.
    outside
        The frames in which the track is outside the picture.
    """
    frames_after = set()
    for frame in frames_with_statement:
        following = next_frame.get(frame)
        if following is None:  # the last shape of the track
            continue
        if following in outside or following not in frames_with_statement:
            frames_after.add(following)
    return frames_after


def _frames_of_statements(track: Element, shown: set[int]) -> dict[Statement, set[int]]:
    """Return each statement of a track -> the frames whose shapes state it.

    The label of the track holds in all frames in which the track is visible (`shown`). Each value of an
    attribute holds in the visible frames whose shape has it; there may be none.
    """
    sources = {node.get("source") for node in (track, *track)}
    has_models_help = not sources.isdisjoint({"auto", "semi-auto"})
    seen_score = SEEN if has_models_help else ""
    frames_of_statement = {Statement("", one_line(track.get("label", "")), seen_score): shown}
    for shape in track:
        frame = _frame(shape)
        for tier, text in _attributes(shape):
            frames_so_far = frames_of_statement.setdefault(Statement(tier, text, seen_score), set())
            if frame is not None and frame in shown:
                frames_so_far.add(frame)
    return frames_of_statement


def _track_frames(track: Element) -> TrackFrames | None:
    """Divide the frames of a track's shapes by whether it is visible; None if a shape states no frame."""
    frames = TrackFrames(set(), set())
    for shape in track:
        frame = _frame(shape)
        if frame is None:
            return None
        if _is_shown(shape):
            frames.shown.add(frame)
        else:
            frames.outside.add(frame)
    return frames


def _is_shown(shape: Element) -> bool:
    """Return whether a shape, or at least one point of a skeleton, is inside the frame.

    The attribute `outside` is "1" for a shape or a point that is not; a shape that lacks it is inside.
    """
    flags = [part.get("outside") for part in (shape, *shape)]
    stated_flags = [flag for flag in flags if flag is not None]
    if not stated_flags:
        return True
    return any(flag != "1" for flag in stated_flags)


def _attributes(node: Element) -> Iterator[tuple[str, str]]:
    """Yield the tier and text of each attribute of a shape: its name and value.

    The text of a checkbox that is ticked is its name, on the tier `checkbox`.
    """
    for attribute in node.findall("attribute"):
        name = one_line(attribute.get("name", ""))
        value = one_line(attribute.text or "")
        if value == "true":
            yield CHECKBOX, name
        elif value not in NOT_CHOSEN:
            yield name, value


def _tags(file: SpanFile, root: Element, step: int, media: str) -> Iterator[RawSpan]:
    """Yield a span for each run of neighbouring frames that have the same tag.

    A tag is a label of a whole frame, and may have attributes: the label and each value are statements. If
    every tenth frame was annotated, frames 0, 10 and 20 are neighbours, and a tag on them is a span from 0
    to 30.

    `step` is from one frame of the task to the next, in frames of the film.
    """
    frames_of_statement: dict[Statement, set[int]] = {}
    for tag, frame in _tags_with_frames(root):
        label = one_line(tag.get("label", ""))
        if frame is None:
            yield RawSpan(f"tag {label!r}", reason="without the number of its frame")
        elif tag.get("source") == "auto":
            yield RawSpan(f"tag {label!r}", reason=AUTOMATIC, is_of_model=True)
        else:
            for statement in _statements_of_tag(tag, label):
                frames_of_statement.setdefault(statement, set()).add(frame)

    cells = {"media": media, "subject": ""}
    for statement, frames in frames_of_statement.items():
        # No frame says that a tag ends: it does after the last of neighbouring frames, which are one step
        # apart.
        stretches = runs_of(sorted(frames), outside=(), step=step, widest=step)
        yield from _spans(file, f"tag {statement.text!r}", statement, stretches, cells)


def _tags_with_frames(root: Element) -> list[tuple[Element, int | None]]:
    """Return the tags of a task, each with its frame; None if it does not say it.

    In a task of images, tags are in the images, whose ids are the frames. In a task of a video, tags name
    their frame.
    """
    tags: list[tuple[Element, int | None]] = []
    for image in root.findall("image"):
        if _is_frame_of_a_film(image):
            tags += [(tag, _frame(image, "id")) for tag in image.findall("tag")]
    tags += [(tag, _frame(tag)) for tag in root.findall("tag")]
    return tags


def _statements_of_tag(tag: Element, label: str) -> list[Statement]:
    """Return what a tag says of its frame: its label, and the values of its attributes.

    CVAT writes the source "semi-auto" where a model proposed the tag to the annotator.
    """
    has_models_help = tag.get("source") == "semi-auto"
    seen_score = SEEN if has_models_help else ""
    no_tier = ""  # the label is not the value of an attribute
    statements = [Statement(no_tier, label, seen_score)]
    for attribute, value in _attributes(tag):
        statements.append(Statement(attribute, value, seen_score))
    return statements


def _spans(
    file: SpanFile,
    source: str,
    statement: Statement,
    stretches: Iterable[tuple[float, float]],
    cells: dict[str, str],
) -> Iterator[RawSpan]:
    """Yield a span for each stretch in which a statement holds.

    `stretches` are (first frame, frame after the last one); `source` is the track or tag, for messages.
    """
    span_cells = {**cells, "seen_score": statement.seen_score}
    for first_frame, end_frame in stretches:
        location = f"{source}, frame {first_frame}"
        start_s = file.seconds(first_frame, location)
        end_s = file.seconds(end_frame, location)
        yield RawSpan(location, start_s, end_s, statement.text, statement.tier, span_cells)


def _frame(node: Element, name: str = "frame") -> int | None:
    """Read the number of a frame from an attribute; None if the attribute is no number."""
    text = node.get(name, "")
    return int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else None
