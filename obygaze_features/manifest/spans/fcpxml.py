"""Read markers and keywords of Final Cut Pro XML (FCPXML).

A clip of a media file has the time of that file, which begins at the asset's start; what is on a timeline,
without such a clip around it, has the timeline's, which begins at its time code `tcStart`. A tier is
`marker`, `chapter-marker` or `keyword`. Source: Apple, "FCPXML Reference", marker, keyword, asset-clip.
"""

import math
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Final, NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from obygaze_features.manifest.spans.markers import marker
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile

ROOT: Final = "fcpxml"
MARKS: Final = ("marker", "chapter-marker", "keyword")
POINT_S: Final = Fraction(1, 20)
"""A marker that is no longer is set on one frame, so that it is a point: 1/24 s is the longest frame."""

MAX_PARTS: Final = 10**30
PARTS: Final = 10**15
"""A time in a finer unit than 1 / `MAX_PARTS` s is rounded to 1 / `PARTS` s. No clock is as fine; but the
denominators of sums grow with each element that is inside another."""

_TIME: Final = re.compile(
    r"(?P<numerator>-?\d{1,18})(?:/(?P<denominator>\d{1,18}))?s|(?P<decimal>-?\d{1,9}\.\d{1,18})s"
)
"""A time: a fraction, a whole number or a decimal number of seconds."""


class MediaOffset(NamedTuple):
    """Where the time of an element lies in a film.

    Attributes
    ----------
    media
        Path or name of the media file; "" for a timeline.
    shift
        What is added to a time inside the element; in seconds.
    """

    media: str
    shift: Fraction


class Asset(NamedTuple):
    """A media file, and the time in seconds at which it begins."""

    media: str
    start: Fraction


def read_fcpxml(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the markers, chapters and keywords of all clips and timelines, in the order of the document."""
    root = file.xml(ROOT, "FCPXML")
    assets = _assets(root)
    timeline = MediaOffset("", Fraction(0))
    # The next element is taken from the end of the list, so that children are added in reverse order.
    waiting = [(root, timeline)]
    n_marks = 0
    while waiting:
        node, offset = waiting.pop()
        if node.tag in MARKS:
            n_marks += 1
            yield _mark(node, offset, f"{node.tag} {n_marks}")
            continue
        place_of_children = _place_of_children(node, offset, assets)
        waiting += [(child, place_of_children) for child in reversed(node)]


def _assets(root: Element) -> dict[str, Asset]:
    """Return id -> media file, for all media files of a document."""
    assets = {}
    for node in root.iter("asset"):
        # Later versions have the URL in an element inside.
        representation = node.find("media-rep")
        url_inside = "" if representation is None else representation.get("src")
        media = unquote(node.get("src") or url_inside or node.get("name") or "")
        start = _seconds(node.get("start", "0s")) or Fraction(0)
        assets[node.get("id", "")] = Asset(media, start)
    return assets


def _place_of_children(node: Element, place: MediaOffset, assets: Mapping[str, Asset]) -> MediaOffset:
    """Return what the times of an element's children count in: a media file, or the timeline.

    It is a medium and a shift: time in the medium = time of the child + shift.

    `place` is what the element's own times count in, and `assets` is id -> media file.
    """
    # 1. A timeline: its children count from the time code of its first frame, which is at 0 s.
    if node.tag == "sequence":
        return MediaOffset("", -_start_of_timeline(node))

    # 2. An element that plays a file: its children count in time codes of the file, whose first frame has the
    # time code `asset.start`.
    source = _played_source(node, assets)
    if source is not None:
        asset = assets[source.get("ref", "")]
        return MediaOffset(asset.media, _shift_of_source(node, source) - asset.start)

    # 3. An element that is placed nowhere: its children count as it does.
    offset = _seconds(node.get("offset", ""))
    if offset is None:
        return place

    # 4. Another element, such as a gap: its time `start` lies at `offset` in the element around it. So a time
    # t of its child is t - start + offset there.
    start = _seconds(node.get("start", "0s")) or Fraction(0)
    shift = place.shift + offset - start
    # In a nest of elements the denominators of fractions could grow without end: they are rounded.
    if shift.denominator > MAX_PARTS:
        shift = Fraction(round(shift * PARTS), PARTS)
    return MediaOffset(place.media, shift)


def _start_of_timeline(sequence: Element) -> Fraction:
    """Return the time code of a timeline's first frame in seconds, from which its offsets count.

    This is what `tcStart` states, such as an hour. The first element of a timeline begins with it, so its
    offset is the same. Some programs state an hour and yet write offsets from 0 on: as their first offset is
    before `tcStart`, it is the start.
    """
    stated_start = _seconds(sequence.get("tcStart", "0s")) or Fraction(0)
    first_element = sequence.find("spine/*[@offset]")
    if first_element is None:
        return stated_start
    first_offset = _seconds(first_element.get("offset", ""))
    if first_offset is None:
        return stated_start
    return min(stated_start, first_offset)


def _played_source(node: Element, assets: Mapping[str, Asset]) -> Element | None:
    """Return the element that names the media file that `node` plays: itself, or the first one in a clip.

    None for elements that play no file, such as gaps and titles, and where the file is not known.
    """
    candidates = [node] if node.tag in {"asset-clip", "video", "audio"} else []
    if node.tag == "clip":
        # The media of a clip are those of its first video or audio.
        candidates = [child for child in node if child.tag in {"video", "audio"}]
    for candidate in candidates:
        if candidate.get("ref", "") in assets:
            return candidate
    return None


def _shift_of_source(node: Element, source: Element) -> Fraction:
    """Return what is added to a time inside an element to get the time code of the file that it plays.

    The shift is 0 if the element names the file itself (`source` is `node`), as its times are then those of
    the file. Otherwise `source` is an element inside that names it. At the time `offset` of `node`, `source`
    shows the file's time code `start`: time code = time - offset + start. Mostly both are the same, or only
    one is stated: then nothing is shifted.
    """
    if source is node:
        return Fraction(0)
    offset = _seconds(source.get("offset", ""))
    start = _seconds(source.get("start", ""))
    if offset is None or start is None:
        return Fraction(0)
    return start - offset


def _mark(node: Element, offset: MediaOffset, location: str) -> RawSpan:
    """Read a marker, a chapter marker or a range of a keyword."""
    text = one_line(node.get("value", ""))
    where_with_text = f"{location} ({text:.40})"
    time_in_element = _seconds(node.get("start", ""))
    length = _seconds(node.get("duration", "0s"))
    if time_in_element is None or length is None:
        return RawSpan(where_with_text, math.nan, math.nan, text, node.tag)

    start = time_in_element + offset.shift
    is_point = node.tag != "keyword" and length <= POINT_S  # a marker has the length of a frame
    end = start if is_point else start + length
    cells = {"media": offset.media} if offset.media else {}
    note = one_line(node.get("note", ""))
    if note:
        cells["comment"] = note
    return marker(
        where_with_text, start_s=float(start), end_s=float(end), text=text, tier=node.tag, cells=cells
    )


def _seconds(text: str) -> Fraction | None:
    """Read a time, such as `1001/24000s`, in seconds; None if the text is no time."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    if match["decimal"]:
        return Fraction(match["decimal"])
    denominator = int(match["denominator"] or 1)
    if denominator == 0:
        return None
    return Fraction(int(match["numerator"]), denominator)
