"""Read edit decision lists (CMX 3600, .edl): markers of DaVinci Resolve with their lengths, and cuts.

A marker's tier is its colour. An event without a marker of Resolve is a cut, on the tier `cut`; markers of
Avid (`* LOC:`) are points, which are left out. In exports of obygaze comments say the rate, the start, and
the tier of each marker. Sources: CMX 3600; DaVinci Resolve, "Import Timeline Markers from EDL".

A line `FCM` (frame code mode) above the first event says whether the time codes of the list are drop frame,
also where they have `:` before the frames: `;` is an addition of later tools. Such lines between events are
of the sources, whose times are not read. Source: Apple, "Final Cut Pro 7 User Manual", elements of an EDL.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.markers import POINT, marker
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.time_codes import TimeLine, time_line

_CODE: Final = r"\d\d[:;]\d\d[:;]\d\d[:;]\d\d"
_SOURCE: Final = r"[\d:;.+]++"
"""A time of the source, which no span has: time code, a number of frames, or feet and frames."""

EVENT: Final = re.compile(
    r"\s*+(\d{3,6})[ \t]++\S++(?: \S++){0,5}?[ \t]++(\S++)[ \t]++\S++(?:[ \t]++\d++)?"
    rf"[ \t]++{_SOURCE}[ \t]++{_SOURCE}[ \t]++({_CODE})[ \t]++({_CODE})[ \t]*+"
)
"""A line of an event: number, reel (which may have blanks), track, transition, times of the source and of the
timeline."""

NUMBER: Final = re.compile(r"\d{3,6}")
CODE: Final = re.compile(_CODE)
NO_EVENT: Final = "no event: number, reel, track, transition and four times"

TAG: Final = re.compile(r"\|([A-Z]):([^|]*+)")
"""A part of Resolve's line of a marker: `|C:ResolveColorBlue |M:its name |D:its length in frames`."""

COLOUR_TAG: Final = "C"
NAME_TAG: Final = "M"
LENGTH_TAG: Final = "D"

PICTURE_TRACK: Final = re.compile("V|^B", re.IGNORECASE)
"""What names of tracks with pictures have: V for video (V2, VA1, AA/V), or B for both video and audio."""

COMMENT: Final = re.compile(r"\s*+\*\s*+([A-Z ]{2,40}): ?(.*+)", re.IGNORECASE)
MODE: Final = re.compile(r"\s*+FCM\s*+:\s*+(NON[- ]?)?DROP[- ]?FRAME\s*+", re.IGNORECASE)
"""A line that says whether time codes are drop frame."""

COLOUR: Final = "ResolveColor"
CUT: Final = "cut"
CLIP_NAMES: Final = ("to clip name", "from clip name")
"""Comments that name the clip of an event; in a dissolve it is the clip that comes."""
LOCATOR: Final = "loc"
"""An Avid comment of a marker: its time code, colour and text."""

RATE: Final = "obygaze rate"
START: Final = "obygaze start"
OF_TIER: Final = "obygaze tier"
OF_TEXT: Final = "obygaze text"
OF_FILM: Final = "obygaze film"
"""Comments of our exports; the last three are quoted as in URLs."""


@dataclass
class Event:
    """An event of a list, with the comments and markers below its line.

    Attributes
    ----------
    where
        Its place in the file.
    track
        `V` for pictures; others are of sound.
    start, end
        Time codes of the timeline.
    comments
        Name, in small letters -> its first text.
    reason
        Why its line is no event; "" if it is one.
    markers
        Tags of Resolve's lines of markers, with the note before the first tag.
    n_locators
        How many markers of Avid it has, which are points.
    """

    where: str
    track: str
    start: str
    end: str
    reason: str = ""
    comments: dict[str, str] = field(default_factory=dict)
    markers: list[dict[str, str]] = field(default_factory=list)
    n_locators: int = 0


def read_edl(file: SpanFile) -> Iterator[RawSpan]:
    """Yield a record for each marker of an edit decision list, and for each event without markers.

    An event is a line of the list: a piece of a source, with its times. Resolve writes markers as comments of
    events; an event without them is a cut. Avid writes markers as locators, which are points in time without
    a length, so that they are left out with a reason.
    """
    lines = file.lines
    events = _events(lines)
    places_of_locators = _locators_above_events(lines)
    if not events and not places_of_locators:
        raise file.error(f"of an edit decision list, but it has {NO_EVENT}")
    for place in places_of_locators:
        yield RawSpan(place, reason=POINT)
    if not events:
        return

    # How the time codes of the list become seconds of the film.
    codes = []
    for event in events:
        codes += [event.start, event.end]
    is_dropping = _is_drop_frame(file, lines)
    # Our exports state the rate and the start of the time line in comments of the first event.
    comments = events[0].comments
    rate = comments.get(RATE, "")
    times = time_line(file, codes, rate=rate, start=comments.get(START, ""), is_dropping=is_dropping)
    for event in events:
        yield from _records(event, times)


def _events(lines: Sequence[str]) -> list[Event]:
    """Collect the events of a list, each with the markers and comments in the lines below it."""
    events: list[Event] = []
    for number, line in enumerate(lines, start=1):
        event = _event(number, line)
        if event is not None:
            events.append(event)
        elif events:
            _add_line(events[-1], line)
    return events


def _is_drop_frame(file: SpanFile, lines: Sequence[str]) -> bool:
    """Return whether a list says that its time codes are drop frame: `FCM: DROP FRAME` above its first event.

    The same line between events is about the source of the event below, whose times are not read. If it says
    something else than the line at the top, the file's account notes it, as it may have been meant for the
    list.
    """
    is_dropping = False
    is_above_events = True
    for number, line in enumerate(lines, start=1):
        if _event(number, line) is not None:
            is_above_events = False
        mode = MODE.fullmatch(line)
        if mode is None:
            continue
        says_non_drop = mode[1] is not None
        says_dropping = not says_non_drop
        if is_above_events:
            is_dropping = says_dropping
        elif says_dropping != is_dropping:
            file.account.note(
                f"line {number}, {line.strip()}: taken as the mode of the source, which is not read"
            )
    return is_dropping


def _event(number: int, line: str) -> Event | None:
    """Read a line of an edit decision list that describes an event, such as a cut; None for any other line.

    A line that begins with a number and ends in two time codes is meant as an event. If it cannot be read as
    one, the event has the reason in place of track and times.

    Examples
    --------
    >>> _event(3, "001  AX  V  C  00:00:10:00 00:00:12:00 01:00:00:00 01:00:02:00").start
    '01:00:00:00'
    >>> _event(4, "002  01:00:00:00 01:00:02:00").reason
    'no event: number, reel, track, transition and four times'
    >>> _event(5, "* FROM CLIP NAME: beach")
    """
    match = EVENT.fullmatch(line)
    if match:
        number_of_event, track, start, end = match.groups()
        return Event(f"line {number} (event {number_of_event})", track, start, end)
    words = line.split()
    ends_in_two_codes = len(words) > 2 and all(CODE.fullmatch(word) for word in words[-2:])
    if ends_in_two_codes and NUMBER.fullmatch(words[0]):
        return Event(f"line {number}", track="", start="", end="", reason=NO_EVENT)
    return None


def _locators_above_events(lines: Sequence[str]) -> list[str]:
    """Return the places of Avid's markers (locators) in the lines above the first event."""
    places = []
    for number, line in enumerate(lines, start=1):
        if _event(number, line) is not None:
            break
        comment = COMMENT.fullmatch(line)
        if comment and _name_of(comment) == LOCATOR:
            places.append(f"line {number}")
    return places


def _name_of(comment: re.Match[str]) -> str:
    """Return the name of a comment, from its match of `COMMENT`, in small letters and with single blanks."""
    return " ".join(comment[1].casefold().split())


def _add_line(event: Event, line: str) -> None:
    """Add to an event what a line below it says: a marker of Resolve, or a comment.

    Other lines, such as those of effects and speed, say nothing of spans.
    """
    tags = dict(TAG.findall(line))
    comment = COMMENT.fullmatch(line)
    is_marker = NAME_TAG in tags or LENGTH_TAG in tags
    if is_marker:
        note, _, _ = line.partition("|")
        event.markers.append({**tags, "note": one_line(note)})
    elif comment:
        name = _name_of(comment)
        event.comments.setdefault(name, one_line(comment[2]))
        if name == LOCATOR:
            event.n_locators += 1


def _records(event: Event, times: TimeLine) -> Iterator[RawSpan]:
    """Yield the records of an event of an edit decision list.

    They are the markers of Resolve on it; else its locators (markers of Avid), which are points and left out,
    and the event itself, as a cut of the picture, with the name of its clip as text.
    """
    if event.reason:  # its line is no event
        yield RawSpan(event.where, reason=event.reason)
        return
    try:
        start_s = times.seconds(event.start)
        end_s = times.seconds(event.end)
    except ManifestError as error:
        yield RawSpan(event.where, reason=f"no time ({error})")
        return
    if event.markers:
        # The event was made to export its marker, so it is no cut; a locator on it repeats the marker.
        for tags in event.markers:
            yield _span_of_marker(event, tags, start_s, times)
        return
    for _ in range(event.n_locators):
        yield RawSpan(event.where, reason=POINT)
    names_of_clips = [event.comments[name] for name in CLIP_NAMES if event.comments.get(name)]
    name_of_clip = names_of_clips[0] if names_of_clips else ""
    is_of_pictures = PICTURE_TRACK.search(event.track) is not None
    reason = "" if is_of_pictures else "a cut of sound"
    yield RawSpan(event.where, start_s, end_s, text=name_of_clip, tier=CUT, reason=reason)


def _span_of_marker(event: Event, tags: Mapping[str, str], start_s: float, times: TimeLine) -> RawSpan:
    """Return the span of a marker of Resolve, which begins with its event and has a length in frames.

    A marker of our own export has its tier, text and film in comments of the event. Any other marker is on
    the tier of its colour.

    `tags` are the parts of the marker's line: `C` colour, `M` name, `D` length in frames, and the note before
    them; `start_s` is the start of the event.
    """
    length = tags.get(LENGTH_TAG, "").strip()
    is_number = length.isdecimal() and length.isascii()
    n_frames = int(length[:9]) if is_number else 0  # nine digits are more than any film needs
    is_our_export = OF_TIER in event.comments
    # Resolve gives a marker that is set on a frame the length 1; our exports have no such markers.
    is_point = n_frames < 1 or (n_frames == 1 and not is_our_export)
    end_s = start_s
    if not is_point and times.rate is not None:
        end_s = float(start_s + n_frames / times.rate)
    if is_our_export:
        return _exported_span(event, start_s, end_s)
    text = one_line(tags.get(NAME_TAG, "")) or tags["note"]
    cells = {"comment": tags["note"]} if tags["note"] != text else {}
    colour = one_line(tags.get(COLOUR_TAG, "")).removeprefix(COLOUR)  # `Blue` of `ResolveColorBlue`
    return marker(event.where, start_s=start_s, end_s=end_s, text=text, tier=colour, cells=cells)


def _exported_span(event: Event, start_s: float, end_s: float) -> RawSpan:
    """Return the span of a marker of our export, whose tier, text and film are in comments of its event."""
    tier = one_line(unquote(event.comments.get(OF_TIER, "")))
    text = one_line(unquote(event.comments.get(OF_TEXT, "")))
    film = one_line(unquote(event.comments.get(OF_FILM, "")))
    return RawSpan(event.where, start_s, end_s, text, tier, {"movie": film})
