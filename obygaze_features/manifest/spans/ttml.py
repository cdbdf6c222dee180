"""Read and write subtitles of TTML (IMSC text, DFXP, EBU-TT): times of all its clocks, nested in any way.

A text is a `p`, or each `span` in it that has times of its own. Source: W3C, "Timed Text Markup Language 2",
section 12 (timing) and section 7.2 (parameters).
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape, quoteattr

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.account import SHOWN_NAMES
from obygaze_features.manifest.spans.instant import DROPPING, clock, time_in
from obygaze_features.manifest.spans.json_values import number
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.subtitles import Subtitle
from obygaze_features.manifest.spans.tier_names import is_of_a_model, split_people_tier
from obygaze_features.manifest.spans.xml_names import attribute, children, descendants, local_name
from obygaze_features.text import first_few

ROOT: Final = "tt"
TIMED: Final = ("body", "div", "p", "span")
"""Elements that have times."""

WITH_TEXT: Final = ("p", "span")
"""Elements that have texts."""

BREAK: Final = "br"
MAX_DEPTH: Final = 100
"""How deep elements may be nested."""

USUAL_RATE: Final = Fraction(30)
"""Frames per second where a document does not say it."""

_CLOCK: Final = re.compile(
    r"(?P<hours>\d{2,9}):(?P<minutes>\d\d):(?P<seconds>\d\d)"
    r"(?:(?P<fraction>\.\d{1,30})|[:;](?P<frames>\d{2,4})(?:\.(?P<sub_frames>\d{1,9}))?)?",
    re.ASCII,
)
"""hh:mm:ss, with a fraction of a second, or with frames and sub-frames."""

_OFFSET: Final = re.compile(r"(\d{1,15}(?:\.\d{1,30})?)(h|ms|m|s|f|t)", re.ASCII)
"""A number with its metric."""

_SECONDS_OF: Final = {"h": Fraction(3600), "m": Fraction(60), "s": Fraction(1), "ms": Fraction(1, 1000)}


class Clock(NamedTuple):
    """How the times of a document count.

    Attributes
    ----------
    frame_rate
        Frames that time code counts in a second.
    real_rate
        Frames that are shown in a second: the frame rate times its multiplier.
    sub_frames
        Sub-frames of a frame.
    tick_rate
        Ticks of a second.
    is_smpte
        Whether clock times are time codes, which count all frames at the frame rate.
    is_dropping
        Whether time codes drop numbers of frames.
    """

    frame_rate: Fraction
    real_rate: Fraction
    sub_frames: Fraction
    tick_rate: Fraction
    is_smpte: bool
    is_dropping: bool

    def seconds(self, text: str) -> Fraction:
        """Return the seconds of a time expression, such as `00:01:05.5` or `120f`.

        Raises
        ------
        ManifestError
            The text is no time expression, or has more frames than a second.
        """
        offset = _OFFSET.fullmatch(text)
        if offset:
            value = Fraction(offset[1])
            unit = offset[2]
            if unit == "f":  # frames
                return value / self.real_rate
            if unit == "t":  # ticks
                return value / self.tick_rate
            return value * _SECONDS_OF[unit]
        clock_time = _CLOCK.fullmatch(text)
        if clock_time is None:
            raise ManifestError(f"{text!r:.40} is no time of TTML")
        return self._clock_seconds(clock_time)

    def _clock_seconds(self, match: re.Match[str]) -> Fraction:
        """Return the seconds of a clock time, from its match of `_CLOCK`.

        A time code, such as 00:01:05:12, may count frames in one of three ways:

        - with drop frame: it skips numbers, to keep up with real time;
        - as other time codes (SMPTE): its seconds have as many frames as the frame rate says, and are longer
          than real ones if frames are shown at another rate (30 a second at 29.97);
        - as a clock of media: its seconds are real ones, and its frames are those that are shown.
        """
        hours, minutes, seconds, fraction, frames, sub_frames = match.groups(default="0")
        is_leap_second = int(seconds) == 60  # which TTML allows
        if int(minutes) >= 60 or (int(seconds) >= 60 and not is_leap_second):
            raise self._no_time(match[0])
        if int(frames) >= self.frame_rate:
            raise self._no_time(match[0])

        has_frames = match["frames"] is not None
        is_drop_frame = self.is_smpte and self.is_dropping and self.real_rate in DROPPING
        if has_frames and is_drop_frame:
            code = f"{hours}:{minutes}:{seconds};{int(frames):02d}"
            return Fraction(time_in(code, self.real_rate) or 0.0)  # None only of an empty text

        clock_s = Fraction(int(hours) * 3600 + int(minutes) * 60 + int(seconds)) + Fraction(fraction)
        n_frames = Fraction(int(frames)) + Fraction(int(sub_frames)) / self.sub_frames
        if self.is_smpte:
            # A second of the clock has `frame_rate` frames, which last `frame_rate / real_rate` seconds.
            return (clock_s * self.frame_rate + n_frames) / self.real_rate
        return clock_s + n_frames / self.real_rate  # seconds of the clock are real ones

    def _no_time(self, text: str) -> ManifestError:
        """Return the error for a clock time that does not exist."""
        return ManifestError(f"{text!r:.40} is no time at {float(self.frame_rate):g} frames a second")


class Interval(NamedTuple):
    """When an element is shown, in seconds; the end is infinite where nothing says it."""

    begin: Fraction
    end: Fraction | None

    @property
    def end_s(self) -> float:
        """The end in seconds; NaN if there is none."""
        return math.nan if self.end is None else float(self.end)


ALWAYS: Final = Interval(Fraction(0), end=None)
"""When an element without times of its own is shown, if nothing around it has any."""


class Inherited(NamedTuple):
    """What an element has from those around it, where it does not say it itself.

    Attributes
    ----------
    language
        As BCP 47 names it.
    speaker
        Name of who speaks.
    region
        Id of the region in which it is shown; "" for none.
    """

    language: str
    speaker: str
    region: str


class _Broken(NamedTuple):
    """Why the times of an element cannot be read."""

    reason: str


# --- reading
# ---------------------------------------------------------------------------
def read_ttml(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the texts of all paragraphs, and of spans in them that have times of their own."""
    root = file.xml(ROOT, "TTML", has_namespace=True)
    reader = _Reader(file, root)
    yield from reader.texts(root)
    reader.note_languages()
    if _shows_model_output(root):
        file.account.shows_model_output = True


def _shows_model_output(root: Element) -> bool:
    """Return whether a description in the head of a document says that an export of a model wrote it."""
    heads = children(root, "head")
    descriptions = (description for head in heads for description in descendants(head, "desc"))
    return any(is_of_a_model(description.text or "") for description in descriptions)


def _why_left_out(text: str, interval: Interval, shown: Interval) -> str:
    """Return why a text is left out; "" if nothing of this is wrong.

    `interval` is when its element is shown, and `shown` when both the element and its region are.
    """
    if not text:
        return "no text"
    if shown.end is None:
        return "no end"
    is_cut_by_region = shown != interval
    if is_cut_by_region and shown.end <= shown.begin:
        return "its region is not shown at its time"
    return ""


def _where(node: Element, number: int) -> str:
    """Return the place of a text for messages: its number, with the id of its element if it has one."""
    element_id = attribute(node, "id")
    if not element_id:
        return f"text {number}"
    return f"text {number} ({element_id:.40})"


def _clock_of(file: SpanFile, root: Element) -> Clock:
    """Read from a document's root how its times count: rates of frames and ticks, and the time base.

    What the document does not state is as TTML says (section 7.2), but that the person's --rate comes before
    its 30 frames a second.
    """
    sub_frames = _positive(attribute(root, "subFrameRate"), Fraction(1))
    states_frame_rate = bool(attribute(root, "frameRate"))
    rate_of_person = file.reading.rate
    if not states_frame_rate and rate_of_person is not None:
        real_rate = rate_of_person
        frame_rate = Fraction(round(real_rate))  # time codes count 30 frames at 29.97 a second
    else:
        frame_rate = _positive(attribute(root, "frameRate"), USUAL_RATE)
        real_rate = frame_rate * _frame_rate_multiplier(root)

    # A tick is a sub-frame if frames are stated, and else a second.
    usual_tick_rate = frame_rate * sub_frames if states_frame_rate else Fraction(1)
    return Clock(
        frame_rate=frame_rate,
        real_rate=real_rate,
        sub_frames=sub_frames,
        tick_rate=_positive(attribute(root, "tickRate"), usual_tick_rate),
        is_smpte=attribute(root, "timeBase") == "smpte",
        is_dropping=attribute(root, "dropMode") in {"dropNTSC", "dropPAL"},
    )


def _start_of_film(file: SpanFile, clock: Clock) -> Fraction:
    """Return the seconds of the time code that the film's first frame has, as the person says by --start.

    It is 0 without --start, and in a document whose times are no time codes but count from the film's start.
    The file's account notes whether a --start can be of use, or is not used.

    Raises
    ------
    ManifestError
        The start is no time of TTML.
    """
    start = file.reading.start
    file.account.uses_start = clock.is_smpte
    if not start:
        return Fraction(0)
    if not clock.is_smpte:
        file.account.note('--start is not used: its times are no time codes (timeBase="smpte")')
        return Fraction(0)
    # The document says whether its time codes are drop frame. TTML writes no `;` for it.
    start_in_ttml = start.replace(";", ":")
    try:
        return clock.seconds(start_in_ttml)
    except ManifestError as error:
        raise file.error(f"--start: {error}") from None


def _frame_rate_multiplier(root: Element) -> Fraction:
    """Read the factor from the frame rate to the rate at which frames are shown; 1 if none is stated.

    It is stated as two numbers: `1000 1001` is 1000/1001, as of NTSC.
    """
    text = attribute(root, "frameRateMultiplier")
    match = re.fullmatch(r"\s*(\d{1,9})[\s:]+(\d{1,9})\s*", text)
    if match is None or int(match[1]) == 0 or int(match[2]) == 0:
        return Fraction(1)
    return Fraction(int(match[1]), int(match[2]))


def _positive(text: str, default: Fraction) -> Fraction:
    """Read a text as a number above zero; return `default` if it is no such number."""
    value = number(text)
    return Fraction(value) if 0 < value < math.inf else default


class _Reader:
    """Reads the elements of a document with the times, language and speaker that they inherit."""

    def __init__(self, file: SpanFile, root: Element) -> None:
        """Read what holds for the whole document: its clock, main language, speakers and regions."""
        self._file = file
        self._clock = _clock_of(file, root)
        self._start_of_film = _start_of_film(file, self._clock)
        self._language = attribute(root, "lang")
        self._languages: dict[str, None] = {}  # of the texts so far, in their order
        self._speakers = _speakers(root)
        self._regions = self._times_of_regions(root)
        self._lengths: dict[Element, Fraction | None] = {}  # in seconds, as a cache
        self._n_texts = 0  # texts so far, whose numbers are their places in messages

    def note_languages(self) -> None:
        """Add a note on the languages of the texts to the file's account."""
        languages = [name for name in self._languages if name]
        if languages:
            self._file.account.note(f"language: {first_few(languages, SHOWN_NAMES)}")

    def _times_of_regions(self, root: Element) -> dict[str, Interval]:
        """Return id of a region -> when it is shown, for regions that have times."""
        times: dict[str, Interval] = {}
        for head in children(root, "head"):
            for region in descendants(head, "region"):
                shown = self._interval(region, Fraction(0), None)
                if isinstance(shown, Interval) and shown != ALWAYS:
                    times[attribute(region, "id")] = shown
        return times

    def texts(self, root: Element) -> Iterator[RawSpan]:
        """Yield the texts of a document, whose body may have times too.

        The times of the body are ignored in a document of which parts are sent live (EBU-TT Part 3): its
        texts have times of the day, and its body has a length but no begin. Such a body begins when its
        document arrives, which no file says, so that the length says nothing about the times of the texts.
        """
        inherited = Inherited(attribute(root, "lang"), "", "")
        has_begin = any(attribute(body, "begin") for body in children(root, "body"))
        has_times_of_day = attribute(root, "timeBase") == "clock"
        if has_times_of_day and not has_begin:
            for body in children(root, "body"):
                yield from self._texts_of_element(body, ALWAYS, inherited, 0)
        else:
            yield from self._texts_of_children(root, ALWAYS, inherited, 0)

    def _texts_of_element(
        self, node: Element, interval: Interval, inherited: Inherited, depth: int
    ) -> Iterator[RawSpan]:
        """Yield the texts in an element: its own, or those of the elements in it.

        Parameters
        ----------
        node
            The element.
        interval
            When it is shown.
        inherited
            Language, speaker and region of the element around it, for those that it does not state itself.
        depth
            How many elements are around it, to refuse a document that is nested without end.
        """
        if depth > MAX_DEPTH:
            raise self._file.error("nested too deeply")
        style = Inherited(
            language=attribute(node, "lang") or inherited.language,
            speaker=self._speakers.get(attribute(node, "agent"), inherited.speaker),
            region=attribute(node, "region") or inherited.region,
        )
        may_have_text_itself = local_name(node.tag) in WITH_TEXT  # such as a paragraph
        if may_have_text_itself:
            yield from self._text_element(node, interval, style, depth)
            return
        yield from self._texts_of_children(node, interval, style, depth)

    def _texts_of_children(
        self, node: Element, interval: Interval, style: Inherited, depth: int
    ) -> Iterator[RawSpan]:
        """Yield the texts of the timed elements inside an element."""
        reference = interval.begin  # the times of the next child count from here
        for child in children(node, *TIMED):
            shown = self._interval(child, reference, interval.end)
            if isinstance(shown, _Broken):
                yield self._record_without_times(child, shown.reason)
                continue
            yield from self._texts_of_element(child, shown, style, depth + 1)
            if _is_sequence(node):
                reference = self._end_in_sequence(child, shown)

    def _record_without_times(self, node: Element, reason: str) -> RawSpan:
        """Make one record, with a reason, for an element whose times cannot be read and all texts in it.

        It stands for the paragraphs in it, which are counted, and its place is that of the first one.
        """
        n_paragraphs = max(len(list(descendants(node, "p"))), 1)
        number_of_first = self._n_texts + 1
        self._n_texts += n_paragraphs
        return RawSpan(_where(node, number_of_first), reason=reason, n_records=n_paragraphs)

    def _end_in_sequence(self, node: Element, shown: Interval) -> Fraction:
        """Return when an element of a sequence ends, which is when the next one begins.

        The rules are those of TTML 2, section 12:

        - An element that states its end ends then, and at the latest with the element around it.
        - An element without a stated end that holds timed elements ends with these, and at the latest with
          the element around it.
        - A sequence that holds nothing but text takes no time: it ends when it begins.
        - An element without any end takes no time either.

        Parameters
        ----------
        node
            The element.
        shown
            When it is shown, up to the end of the element around it.
        """
        if _is_text_in_sequence(node):
            return shown.begin
        possible_ends = []
        if shown.end is not None:
            possible_ends.append(shown.end)
        if not _has_end(node) and _has_timed_inside(node):
            length_of_content = self._length(node)
            if length_of_content is not None:
                possible_ends.append(shown.begin + length_of_content)
        return min(possible_ends, default=shown.begin)

    def _length(self, node: Element) -> Fraction | None:
        """Return the length of an element in seconds, stated or that of its content; None without an end."""
        if node not in self._lengths:
            if _has_end(node):
                self._lengths[node] = self._stated_length(node)
            else:
                self._lengths[node] = self._content_length(node)
        return self._lengths[node]

    def _stated_length(self, node: Element) -> Fraction | None:
        """Return the length of an element that states its end or duration; None if these cannot be read."""
        interval = self._interval(node, Fraction(0), None)
        if isinstance(interval, _Broken) or interval.end is None:
            return None
        return interval.end - interval.begin

    def _content_length(self, node: Element) -> Fraction | None:
        """Return the length that the timed elements in an element take together; None if it has no end.

        In a sequence each begins when the one before it ends, so that their lengths add up; one without an
        end takes no time. Elsewhere they are shown in parallel, so that the last end counts; if one has no
        end, there is none. Elements whose times cannot be read do not count.
        """
        is_sequence = _is_sequence(node)
        if not _has_timed_inside(node):
            return Fraction(0) if is_sequence else None
        length = Fraction(0)
        for child in children(node, *TIMED):
            # Its begin counts from the end of the one before it, or from the begin of the element.
            interval = self._interval(child, reference=Fraction(0), latest=None)
            if isinstance(interval, _Broken):
                continue
            length_of_child = self._length(child)  # as stated, else of its own content
            if is_sequence:
                length += interval.begin + (length_of_child or Fraction(0))
            elif length_of_child is None:
                return None
            else:
                length = max(length, interval.begin + length_of_child)
        return length

    def _interval(self, node: Element, reference: Fraction, latest: Fraction | None) -> Interval | _Broken:
        """Return when an element is shown, or why its times cannot be read.

        Parameters
        ----------
        node
            The element.
        reference
            The time from which its times count.
        latest
            The end of the element around it; None if that has none.
        """
        try:
            begin = self._time(node, "begin")
            end = self._time(node, "end")
            length = self._time(node, "dur")
        except ManifestError as error:
            return _Broken(str(error))
        start = reference + (begin or Fraction(0))

        # Of several ends the first one counts.
        ends = []
        if latest is not None:
            ends.append(latest)
        if end is not None:
            ends.append(reference + end)
        if length is not None:
            ends.append(start + length)
        return Interval(start, min(ends, default=None))

    def _time(self, node: Element, name: str) -> Fraction | None:
        """Read an attribute of an element as a time; None if it has no such attribute."""
        text = attribute(node, name).strip()
        return self._clock.seconds(text) if text else None

    def _text_element(
        self, node: Element, interval: Interval, style: Inherited, depth: int
    ) -> Iterator[RawSpan]:
        """Yield the text of a paragraph or span, and separately those of the timed spans in it.

        Parameters
        ----------
        node
            The element.
        interval
            When it is shown.
        style
            Its language, speaker and region.
        depth
            How many elements are around it.
        """
        has_timed_spans = _has_timed_spans(node)
        text = one_line(_text_outside_spans(node)) if has_timed_spans else _text(node)
        if text and _is_sequence(node):
            # In a sequence one thing is shown after the other, and a bare text among them has no length.
            self._n_texts += 1
            yield RawSpan(_where(node, self._n_texts), reason="text in a sequence, which takes no time")
        elif text or not has_timed_spans:  # an empty element is a record without text, which is left out
            yield self._counted_record(node, interval, text, style)
        if has_timed_spans:
            yield from self._texts_of_children(node, interval, style, depth)

    def _counted_record(self, node: Element, interval: Interval, text: str, style: Inherited) -> RawSpan:
        """Make the record of a text, count the text, and remember its language for `note_languages`.

        A text is shown only while its region is shown too. It may name the tier of people that it is on, as
        labels that we exported do; else it is on the tier of its language.

        Parameters
        ----------
        node
            The element of the text.
        interval
            When the element is shown.
        text
            Its text.
        style
            Its language, speaker and region.
        """
        self._n_texts += 1
        self._languages[style.language] = None  # kept as an ordered set

        interval_of_region = self._regions.get(style.region, ALWAYS)
        shown = _intersection(interval, interval_of_region)
        people_tier, text_on_tier = split_people_tier(one_line(text))
        # A text whose begin nothing says is shown from the first frame, whatever time code that has.
        has_no_begin = shown.begin == ALWAYS.begin
        begin = self._start_of_film if has_no_begin else shown.begin
        return RawSpan(
            where=_where(node, self._n_texts),
            start_s=float(begin - self._start_of_film),
            end_s=shown.end_s - float(self._start_of_film),  # a float, as it is NaN without an end
            text=text_on_tier,
            tier=people_tier or self._tier_of_language(style.language),
            cells={"subject": style.speaker} if style.speaker else {},
            reason=_why_left_out(text_on_tier, interval, shown),
        )

    def _tier_of_language(self, language: str) -> str:
        """Return the tier of texts in another language than the document's main one; "" for that one."""
        is_other_language = language and self._language and language != self._language
        return f"subtitle {language}" if is_other_language else ""


def _speakers(root: Element) -> dict[str, str]:
    """Return id of an agent -> the first of the speaker's names that is not empty.

    Examples
    --------
    >>> from xml.etree.ElementTree import fromstring
    >>> ann = '<agent id="a1"><name> </name><name>Ann</name></agent>'
    >>> _speakers(fromstring(f'<head>{ann}<agent id="a2"/><agent><name>Bob</name></agent></head>'))
    {'a1': 'Ann'}
    """
    name_of_agent = {}
    for agent in descendants(root, "agent"):
        names = [one_line(node.text or "") for node in children(agent, "name")]
        names = [name for name in names if name]
        agent_id = attribute(agent, "id")
        if agent_id and names:
            name_of_agent[agent_id] = names[0]
    return name_of_agent


def _intersection(one: Interval, other: Interval) -> Interval:
    """Return what two intervals have in common; if nothing, the end is not after the begin."""
    ends = [interval.end for interval in (one, other) if interval.end is not None]
    return Interval(max(one.begin, other.begin), min(ends, default=None))


def _is_sequence(node: Element) -> bool:
    """Return whether the elements inside an element are shown one after the other, and not in parallel."""
    return attribute(node, "timeContainer") == "seq"


def _is_text_in_sequence(node: Element) -> bool:
    """Return whether an element is a sequence of nothing but text, and has no end of its own."""
    return not _has_timed_inside(node) and _is_sequence(node) and not _has_end(node)


def _has_end(node: Element) -> bool:
    """Return whether an element says when it ends, or how long it takes."""
    return bool(attribute(node, "end") or attribute(node, "dur"))


def _has_timed_inside(node: Element) -> bool:
    """Return whether the times of an element follow from elements inside it.

    Those of `body` and `div` do. Those of a `p` or `span` do only if spans in it have times of their own.
    """
    is_of_text = local_name(node.tag) in WITH_TEXT
    return not is_of_text or _has_timed_spans(node)


def _has_timed_spans(node: Element) -> bool:
    """Return whether an element has spans inside that have times of their own."""
    for span in descendants(node, "span"):
        has_times = any(attribute(span, name) for name in ("begin", "end", "dur"))
        if span is not node and has_times:
            return True
    return False


def _text(node: Element) -> str:
    """Return the text of an element without metadata, with a blank for each line break."""
    parts = []
    # A stack in place of recursion, as elements may be nested very deeply; the last item is read next.
    stack: list[Element | str] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
        else:
            stack += reversed(_texts_and_children(item))
    return "".join(parts)


def _texts_and_children(node: Element) -> list[Element | str]:
    """Return the texts and elements inside an element, in order; a line break becomes a blank."""
    name = local_name(node.tag)
    is_shown = name in {*TIMED, BREAK}
    if not is_shown:  # such as metadata
        return []
    inner: list[Element | str] = [" " if name == BREAK else node.text or ""]
    for child in node:
        inner += [child, child.tail or ""]
    return inner


def _text_outside_spans(node: Element) -> str:
    """Return the text directly in an element, without that of elements inside."""
    parts = [node.text or ""]
    parts += [child.tail or "" for child in node]  # the text behind a child
    return " ".join(parts)


# --- writing
# ---------------------------------------------------------------------------
@checked
def write_ttml(
    spans: Sequence[Subtitle], title: str = "", notes: Sequence[str] = (), language: str = "en"
) -> str:
    """Write subtitles, sorted by time, as TTML for players of IMSC 1.1 (text profile).

    Parameters
    ----------
    spans
        Texts, with their times in seconds.
    title
        Title of the document.
    notes
        Descriptions in the document's metadata.
    language
        Language of the texts as a BCP 47 tag; "" if it is not known.
    """
    names: Mapping[str, str] = {
        "xmlns": "http://www.w3.org/ns/ttml",
        "xmlns:ttm": "http://www.w3.org/ns/ttml#metadata",
        "xmlns:ttp": "http://www.w3.org/ns/ttml#parameter",
        "ttp:contentProfiles": "http://www.w3.org/ns/ttml/profile/imsc1.1/text",
        "ttp:timeBase": "media",
        "xml:lang": language,
    }
    head = " ".join(f"{name}={quoteattr(value)}" for name, value in names.items())
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<tt {head}>", "<head>", "<metadata>"]
    lines.append(f"<ttm:title>{_escaped(title)}</ttm:title>")
    lines += [f"<ttm:desc>{_escaped(note)}</ttm:desc>" for note in notes]
    lines += ["</metadata>", "<layout>", '<region xml:id="bottom"/>', "</layout>", "</head>"]
    lines += ['<body region="bottom">', "<div>"]
    for span in sorted(spans, key=lambda span: span[:2]):
        times = f'begin="{clock(span.start_s)}" end="{clock(span.end_s)}"'
        lines.append(f"<p {times}>{_escaped(span.text)}</p>")
    return "\n".join([*lines, "</div>", "</body>", "</tt>", ""])


def _escaped(text: str) -> str:
    """Write a text on one line of XML."""
    return escape(one_line(text))
