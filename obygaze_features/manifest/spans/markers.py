"""Read markers of video editors as tables: Premiere Pro's CSV, DaVinci Resolve's CSV, Avid's text.

A tier is the type (Premiere) or the colour (Resolve, Avid) of a marker. Markers without length are points,
which are left out. Resolve and Avid give a marker that is set on a frame the length of one frame, so that
there this is a point too; in Premiere's tables it is a span. Sources: Premiere Pro, "Export markers"; DaVinci
Resolve, "Edit Index"; Avid Media Composer, "Export markers".
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.tier_names import split_people_tier
from obygaze_features.manifest.spans.time_codes import TimeLine, time_line
from obygaze_features.manifest.spans.tool_tables import first_filled_cell, tool_table
from obygaze_features.manifest.text_tables import Row
from obygaze_features.workbook import Records

POINT: Final = "a marker without length, or of the one frame that its editor gives a point"

_CODE: Final = r"\d\d[:;]\d\d[:;]\d\d[:;]\d\d"
_AVID: Final = rf"([^\t]*+)\t({_CODE})\t((?:[VAD]|TC)\d*+)\t([A-Za-z]+)\t"
AVID: Final = re.compile(_AVID + r"([^\t]*+)(?:\t(\d*+)[^\n]*+)?")
"""A marker of Avid's text: who, time code, track, colour, comment, and the length in frames."""

AVID_BEGIN: Final = re.compile(_AVID)
"""How a marker of Avid's text begins: its comment may be of several lines."""

AVID_LENGTH: Final = 5
"""How many tabs stand before the length of a marker of Avid's text."""

PREMIERE_COLUMNS: Final = ("Marker Name", "Description", "In", "Out", "Duration", "Marker Type")
PREMIERE_TIMES: Final = re.compile(
    rf"[^\t\n]*+(?:\t[^\t\n]*+){{5,6}}\n[^\t\n]*+\t[^\t\n]*+(?:\t{_CODE}){{3}}\t[^\t\n]*+\t?(?:\n|\Z)"
)
"""How a table of Premiere begins in every language: six headings, and a row with In, Out and Duration."""

OWN_TIME_LINE: Final = re.compile(r"obygaze rate (\d+(?:/\d+)?), start ([\d:;]+)")
"""How the description of the first marker begins in tables that obygaze exports."""

TIER: Final = "marker"
"""The tier of markers that have no type and no colour."""


class Layout(NamedTuple):
    """Names of the columns of a table of markers, the first that is filled counts.

    Attributes
    ----------
    start, end
        Columns of time codes.
    texts
        Columns of a marker's name or text.
    comments
        Columns of comments on a marker.
    tiers
        Its type or colour.
    has_points_of_a_frame
        Whether the editor gives a marker that is set on a frame the length of one frame.
    """

    start: str
    end: str
    texts: tuple[str, ...]
    comments: tuple[str, ...]
    tiers: tuple[str, ...]
    has_points_of_a_frame: bool


PREMIERE: Final = Layout(
    "In",
    "Out",
    ("Marker Name", "Description", "Comments"),
    ("Description", "Comments"),
    ("Marker Type",),
    has_points_of_a_frame=False,
)
RESOLVE: Final = Layout(
    "Record In",
    "Record Out",
    ("Marker Name", "Notes", "Marker Note", "Comments", "Name"),
    ("Notes", "Marker Note", "Comments"),
    ("Marker Color", "Color"),
    has_points_of_a_frame=True,
)


def read_markers(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the markers of a table of Premiere, Resolve or Avid."""
    if file.has_columns(("Marker Name", PREMIERE.start, PREMIERE.end)):
        yield from _of_table(file, PREMIERE)
    elif file.has_columns((RESOLVE.start, RESOLVE.end)):
        yield from _of_table(file, RESOLVE)
    elif PREMIERE_TIMES.match(file.head):
        yield from _of_table(file, PREMIERE, _with_headings(file))
    else:
        yield from _of_avid(file)


def _with_headings(file: SpanFile) -> tuple[Records, str]:
    """Return the records of a table that Premiere wrote in another language, with the English headings."""
    records, delimiter = file.records(())
    (line, headings), *rows = records
    file.account.note("columns read by their places, as the headings are in another language")
    english = [*PREMIERE_COLUMNS, *headings[len(PREMIERE_COLUMNS) :]]
    return [(line, english), *rows], delimiter


def _of_table(
    file: SpanFile, layout: Layout, records: tuple[Records, str] | None = None
) -> Iterator[RawSpan]:
    """Yield the markers of a table with a header, whose columns `layout` names.

    `records` are those of the file and the sign between their cells, if they were split before.
    """
    rows = tool_table(file, (layout.start, layout.end), records).rows
    # Our exports state the frame rate and the first frame's time code in the description of the first marker.
    rate = ""
    start_code = ""
    if rows:
        stated = OWN_TIME_LINE.match(rows[0].cells.get("Description", ""))
        if stated:
            rate, start_code = stated.groups()
    # All time codes together show how they count.
    codes: list[str] = []
    for row in rows:
        codes += [row.cells[layout.start], row.cells[layout.end]]
    times = time_line(file, codes, rate=rate, start=start_code)
    for row in rows:
        yield _marker_of_row(row, layout, times)


def _marker_of_row(row: Row, layout: Layout, times: TimeLine) -> RawSpan:
    """Read a row of a table of markers; one whose times cannot be read becomes a record with the reason."""
    location = f"line {row.line}"
    text = first_filled_cell(row.cells, *layout.texts)
    comment = first_filled_cell(row.cells, *layout.comments)
    cells = {"comment": comment} if comment != text else {}
    try:
        start_s = times.seconds(row.cells[layout.start])
        end_s = times.seconds(row.cells[layout.end])
    except ManifestError as error:
        return RawSpan(location, reason=f"no time ({error})")
    if layout.has_points_of_a_frame and times.is_one_frame(start_s, end_s):
        end_s = start_s  # the editor gives a point in time the length of a frame
    tier = first_filled_cell(row.cells, *layout.tiers)
    return marker(location, start_s=start_s, end_s=end_s, text=text, tier=tier, cells=cells)


def _of_avid(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the markers of Avid's text; the annotator is the user who set the marker."""
    matches = [(number, AVID.fullmatch(text)) for number, text in _texts_of_avid(file.lines)]
    # All time codes together show how they count, and are looked at before any marker is read.
    time_codes = []
    for _, match in matches:
        if match is not None:
            _user, time_code, *_ = match.groups()
            time_codes.append(time_code)
    times = time_line(file, time_codes)
    for number, match in matches:
        location = f"line {number}"
        if match is None:
            yield RawSpan(location, reason="no marker: who, time code, track, colour and comment in tabs")
            continue
        yield _marker_of_avid(location, match, times)


def _texts_of_avid(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return (number of its first line, whole text) for each marker in Avid's text.

    A marker has five tabs: before its time code, track, colour, comment and length. Its comment may be of
    several lines, so that lines belong to a marker until it has all tabs. A line that belongs to no marker is
    returned as a text of its own.
    """
    texts: list[_AvidText] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        begins_marker = AVID_BEGIN.match(line) is not None
        goes_on = bool(texts) and not texts[-1].is_complete and not begins_marker
        if goes_on:
            texts[-1].add(line)
        else:
            texts.append(_AvidText(number, line, is_marker=begins_marker))
    return [(text.number, " ".join(text.lines)) for text in texts]


class _AvidText:
    """A marker of Avid's text, to which lines are added as they are read; or a line that is no marker.

    Attributes
    ----------
    number
        Number of its first line.
    lines
        Its lines.
    """

    def __init__(self, number: int, line: str, *, is_marker: bool) -> None:
        """Begin with the first line and its number in the file; `is_marker` is whether a marker begins there.

        Tabs are counted, as a marker has a known number of them (`is_complete`).
        """
        self.number = number
        self.lines = [line]
        self._is_marker = is_marker
        self._n_tabs = line.count("\t")

    def add(self, line: str) -> None:
        """Add a further line."""
        self.lines.append(line)
        self._n_tabs += line.count("\t")

    @property
    def is_complete(self) -> bool:
        """Whether no further line belongs to the text.

        A marker's comment may have line breaks. The cells of a marker are divided by tabs, and its last one,
        the length, stands behind the comment. So a marker is complete with the tab before its length; a line
        of no marker stands alone.
        """
        if not self._is_marker:
            return True
        return self._n_tabs >= AVID_LENGTH


def _marker_of_avid(location: str, match: re.Match[str], times: TimeLine) -> RawSpan:
    """Read a marker of Avid's text from its match of `AVID`."""
    user, code, _, colour, comment, length = match.groups(default="")
    try:
        start_s = times.seconds(code)
    except ManifestError as error:
        return RawSpan(location, reason=f"no time ({error})")

    n_frames = int(length[:9] or 0)  # a longer number is damage, and would take time to read
    end_s = start_s
    # A marker that is set on a frame, and so is a point in time, has the length 1.
    if n_frames > 1 and times.rate is not None:
        end_s = float(start_s + n_frames / times.rate)
    cells = {"annotator": one_line(user)}
    return marker(location, start_s=start_s, end_s=end_s, text=one_line(comment), tier=colour, cells=cells)


def marker(
    location: str, *, start_s: float, end_s: float, text: str, tier: str, cells: Mapping[str, str]
) -> RawSpan:
    """Make the record of a marker.

    Parameters
    ----------
    location
        Its place in the file.
    start_s, end_s
        Its times in seconds; equal for a marker of a point in time, which is left out.
    text
        Its text. If it names a tier of people (`tier_names.split_people_tier`), it is on that tier.
    tier
        The tier of any other text: the type or colour of the marker.
    cells
        What else the file says of it.
    """
    people_tier, text_on_tier = split_people_tier(text)
    if people_tier:
        tier = people_tier
        text = text_on_tier
    if start_s == end_s:
        # Without its text, which would count when the role of the tier is decided.
        return RawSpan(location, start_s, end_s, tier=tier or TIER, reason=POINT)
    reason = "" if text else "no text"
    return RawSpan(location, start_s, end_s, text, tier or TIER, cells, reason=reason)
