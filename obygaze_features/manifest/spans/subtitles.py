r"""Read and write subtitles: SRT and WebVTT, whose cues are alike.

A broken block costs itself alone, and is said. A line with `-->` is never text. Sources: WebVTT (W3C, 2019),
SubRip as players read it.
"""

import html
import math
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from typing import NamedTuple

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.instant import clock, clock_s, time_in, with_ascii_digits
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.tier_names import MODEL, split_people_tier
from obygaze_features.subtitle_text import VOICE, srt_text, vtt_text
from obygaze_features.text import counted

_GAP = re.compile(r"\n\s*\n")
_CLOCK = r"(-?)\s*+(?:(\d{1,9})[:;])?(\d{1,2})[:;](\d{1,2})(?:\s*([.,:;])\s*(\d{1,9}))?"
_TIMES = re.compile(rf"\s*+{_CLOCK}\s*-->\s*+{_CLOCK}(?:(?:\s+|(?=[a-z]+:))((?:(?!-->).)*+))?", re.ASCII)
_SETTINGS = re.compile(r"(?i)(?:(?:[XY][12]|align|line|position|region|size|vertical)\s*:\s*\S+(?:\s+|$))*")
"""Places, of SRT (`X1:10`) and WebVTT (`align:start`)."""
_BROKEN = re.compile(
    r"(?a)\s*\d{1,3}[:;]\d\d?[:.,;]\d.*\d[:;]\d\d?[:.,;]\d|\d*[->\s]*\d{1,3}([:;]\d\d){2}[.,;]\d{1,3}[->\s]*$"
)
"""A line of times whose arrow is broken, or a half of it, with its number: it is never text either."""
_FEW = re.compile(r"(?a)\d:\d\d?[.,]\d\d?(?!\d)")
_NO_TEXT = re.compile(r"(WEBVTT|NOTE|STYLE|REGION)(\s|$)")
_SEGMENT = re.compile(r"X-TIMESTAMP-MAP=(?!MPEGTS:0,LOCAL:[0:.]+\s*$|LOCAL:[0:.]+,MPEGTS:0\s*$)")
STEP_BACK_S = 60.0
"""A start this many seconds before the one above it is taken as another file's: one file strays less."""

NO_MARKUP = str.maketrans("<>{}", "‹›()")
"""SubRip has no escapes, and players obey `<font>` and `{\\an8}`."""


class Subtitle(NamedTuple):
    """Words that are shown, with their times in seconds."""

    start_s: float
    end_s: float
    text: str


class Times(NamedTuple):
    """What a line of times says.

    Attributes
    ----------
    start_s, end_s
        Times in seconds; NaN if the line has none.
    behind
        The text behind the times, if it is more than settings of a player.
    reason
        What is wrong with the frames of a time; "" if nothing is.
    """

    start_s: float
    end_s: float
    behind: str
    reason: str


class Block(NamedTuple):
    """The lines of a cue, counted from 0.

    Attributes
    ----------
    begin
        The first line: the number or name of the cue, or its times.
    times
        The line of times.
    end
        The line after its text.
    """

    begin: int
    times: int
    end: int


class Shown(NamedTuple):
    """The first and the last line of a text that is shown."""

    first: str
    last: str


def read_cues(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the cues of WebVTT or the subtitles of SRT, by the kind of the file."""
    is_vtt = file.account.kind == "vtt"
    lines = file.lines
    names_model = is_vtt and MODEL in file.text
    file.account.shows_model_output = names_model and any(line.startswith(f"{MODEL}:") for line in lines)
    if is_vtt and any(map(_SEGMENT.match, lines[:9])):
        file.account.note("X-TIMESTAMP-MAP: of a part of a stream; times are taken as they stand")
    blocks = _blocks(lines, is_vtt=is_vtt)
    bodies = ["\n".join(lines[block.times + 1 : block.end]).strip() for block in blocks]
    yield from _texts_without_times(lines, blocks, is_vtt=is_vtt)
    clean = vtt_text if is_vtt else srt_text
    first_and_last_lines: list[Shown] = []
    unread_settings: list[str] = []
    steps_back: list[int] = []  # lines of times that are much earlier than the times above them
    last_start_s = 0.0
    for block, body in zip(blocks, bodies, strict=True):
        times = _times(lines[block.times], file.reading.rate)
        has_text_behind_times = times.behind != "" and not is_vtt  # in WebVTT these are settings
        if is_vtt and times.behind:
            unread_settings.append(f"{one_line(times.behind):.40}")
        marked_up_text = f"{times.behind}\n{body}" if has_text_behind_times else body
        text = one_line(clean(marked_up_text))
        if times.start_s < last_start_s - STEP_BACK_S:
            steps_back.append(block.times)
        if not math.isnan(times.start_s):
            last_start_s = times.start_s
        if text:
            first_and_last_lines.append(_first_and_last_line(marked_up_text, text, clean))
        speakers = dict.fromkeys(map(clean, VOICE.findall(marked_up_text)))
        cells = {"subject": one_line("; ".join(speakers))} if speakers else {}
        reason = times.reason or ("" if text else "no text")
        tier, text = split_people_tier(text)
        yield RawSpan(f"line {block.times + 1}", times.start_s, times.end_s, text, tier, cells, reason=reason)
    file.account.note_unread("setting", unread_settings)
    joints = [*_starts_of_joined_files(lines, blocks, is_vtt=is_vtt), *steps_back]
    file.account.note(*_doubts(lines, blocks, bodies, joints))
    file.account.note(_rolling_captions(first_and_last_lines, len(blocks)))


def _rolling_captions(shown: Sequence[Shown], n_blocks: int) -> str:
    """Return a notice if many captions begin with the last line of the one before; else ""."""
    n_repeated = sum(text.first != "" and text.first == before.last for before, text in pairwise(shown))
    if n_repeated <= max(1, n_blocks // 3):
        return ""
    return (
        f"{counted(n_repeated, 'caption repeats', 'captions repeat')} the line before them (rolling captions)"
    )


def _first_and_last_line(words: str, text: str, clean: Callable[[str], str]) -> Shown:
    """Return the first and the last line of a subtitle; a text of one line is both.

    Parameters
    ----------
    words
        The text with markup and line breaks.
    text
        The text without them.
    clean
        Removes markup.
    """
    if "\n" not in words:
        return Shown(text, text)
    parts = words.split("\n")
    return Shown(clean(parts[0]).strip(), clean(parts[-1]).strip())


def _starts_of_joined_files(lines: Sequence[str], blocks: Sequence[Block], *, is_vtt: bool) -> list[int]:
    """Return the lines (from 0) where a further file begins, if several were joined to one."""
    if is_vtt:
        starts = [number for number, line in enumerate(lines) if line.startswith("WEBVTT")]
    else:
        starts = [block.times for block in blocks if block.times and lines[block.times - 1].strip() == "1"]
    return starts[1:]


def _doubts(
    lines: Sequence[str], blocks: Sequence[Block], bodies: Sequence[str], joints: Sequence[int]
) -> Iterator[str]:
    """Yield notices on what may be wrong: joined files, empty lines in texts, milliseconds of too few digits.

    `joints` are the lines (from 0) where a further file seems to begin.
    """
    if joints:
        yield (
            f"line {min(joints) + 1}: numbers, times or WEBVTT begin again: if parts of a film were joined, "
            "the later times are wrong"
        )
    gaps = [block.times + 1 for block, body in zip(blocks, bodies, strict=True) if _GAP.search(body)]
    if gaps:
        yield f"line {gaps[0]}: a text with an empty line ({len(gaps)} such)"
    few = [block.times + 1 for block in blocks if _FEW.search(lines[block.times])]
    if few:
        yield (
            f"line {few[0]}: digits of its milliseconds lack ({len(few)} such): 1,5 is 1.005 s as in players"
        )


def _blocks(lines: Sequence[str], *, is_vtt: bool) -> list[Block]:
    """Find the block of lines of each subtitle: there is one for each line of times."""
    lines_of_times = [number for number, line in enumerate(lines) if "-->" in line or _BROKEN.match(line)]
    begins, numbers = _begins_and_numbers(lines, lines_of_times, is_vtt=is_vtt)
    blocks = []
    for index, (begin, times) in enumerate(zip(begins, lines_of_times, strict=True)):
        is_last = index == len(lines_of_times) - 1
        next_begin = len(lines) if is_last else begins[index + 1]
        if is_vtt:
            end = _end_of_cue(lines, times + 1, next_begin)
        elif not is_last and numbers[index + 1] == numbers[index] + 1:
            end = max(next_begin, times + 1)
        else:
            end = _end_at_number(lines, times + 1, next_begin, str(numbers[index] + 1))
        blocks.append(Block(begin, times, end))
    return blocks


def _begins_and_numbers(
    lines: Sequence[str], times: Sequence[int], *, is_vtt: bool
) -> tuple[list[int], list[int]]:
    """Return for each block the line at which it begins, and its number.

    A block begins at its number or name above the line of times, if that is alone below a blank line, or is
    the number that comes next. Otherwise that line is text of the block before, and the block begins at its
    line of times. A block without a number has the one after the last. So in the lines `1`, TIMES, `Hi`, `2`,
    TIMES, `99`, TIMES the second block begins at `2`, and the third at its times: `99` is text of the second.

    Parameters
    ----------
    lines
        The lines of the file.
    times
        The index of each line of times.
    is_vtt
        Whether the file is WebVTT.
    """
    begins = list[int]()
    numbers = list[int]()
    last_number = 0
    for line_of_times in times:
        line_above = _line_above_times(lines, line_of_times, is_vtt=is_vtt)
        above = lines[line_above].strip() if line_of_times else ""
        is_number = above.isdecimal()
        # Cut to 12 digits, which are more than any number of a subtitle has.
        number = int(above[:12]) if is_number else last_number + 1
        is_first = line_of_times == times[0]
        is_next_number = is_number and not is_vtt and (is_first or number == last_number + 1)
        is_directly_above = line_above == line_of_times - 1
        is_below_text = line_of_times > 1 and bool(lines[line_of_times - 2].strip())
        stands_alone = bool(above) and is_directly_above and not is_below_text
        begins.append(line_above if is_next_number or stands_alone else line_of_times)
        numbers.append(number)
        last_number = number
    return begins, numbers


def _line_above_times(lines: Sequence[str], line_of_times: int, *, is_vtt: bool) -> int:
    """Return the line above a line of times, which may hold the number or the name of the block.

    In SRT up to two blank lines are passed over, which some programs write between a number and its times.
    """
    line_above = line_of_times - 1
    while not is_vtt and line_of_times - line_above < 3 and line_above > 0 and not lines[line_above].strip():
        line_above -= 1
    return line_above


def _end_of_cue(lines: Sequence[str], first: int, next_begin: int) -> int:
    """Return the line at which the text of a cue of WebVTT ends.

    It is the first empty line (a line of blanks is none), or the first line of a file that was joined; at the
    latest the line where the next cue begins.

    Parameters
    ----------
    lines
        The lines of the file.
    first
        The line below the times.
    next_begin
        The line where the next cue begins.
    """
    for number in range(first, next_begin):
        if lines[number] in {"", "WEBVTT"}:
            return number
    return max(next_begin, first)


def _end_at_number(lines: Sequence[str], first: int, next_begin: int, next_number: str) -> int:
    """Return the line at which a block of SRT ends, if the block below does not have the next number.

    It is the next number below an empty line, which belongs to a subtitle that lacks its times; at the latest
    the line where the next block begins.

    Parameters
    ----------
    lines
        The lines of the file.
    first
        The line below the times.
    next_begin
        The line where the next block begins.
    next_number
        The number after that of this block.
    """
    for number in range(first + 1, next_begin):
        if lines[number].strip() == next_number and not lines[number - 1].strip():
            return number
    return max(next_begin, first)


def _texts_without_times(lines: Sequence[str], blocks: Sequence[Block], *, is_vtt: bool) -> Iterator[RawSpan]:
    """Yield a record to leave out for each text between blocks that is no comment, style or region."""
    firsts = [0, *(block.end for block in blocks)]
    ends = [*(block.begin for block in blocks), len(lines)]
    for first, end in zip(firsts, ends, strict=True):
        if not any(lines[first:end]):
            continue
        # In WebVTT an empty line separates a text from a comment or a style.
        for _, group in groupby(range(first, end), lambda number: is_vtt and not lines[number]):
            begin = next((number for number in group if lines[number].strip()), None)
            if begin is None:
                continue
            is_no_text = is_vtt and (begin == 0 or _NO_TEXT.match(lines[begin]) is not None)
            if not is_no_text:
                yield RawSpan(f"line {begin + 1}", reason="text without times")


def _times(line: str, rate: Fraction | None) -> Times:
    """Read a line of times, such as `00:00:01,000 --> 00:00:02,500`, and what stands behind it."""
    match = _TIMES.fullmatch(line) or _TIMES.fullmatch(with_ascii_digits(one_line(line)))
    if match is None:
        return Times(math.nan, math.nan, "", "")
    groups = match.groups(default="")
    try:
        start_s = _seconds(groups[:6], rate)
        end_s = _seconds(groups[6:12], rate)
    except ManifestError as error:
        return Times(math.nan, math.nan, "", str(error))
    behind = groups[12]
    return Times(start_s, end_s, "" if _SETTINGS.fullmatch(behind) else behind, "")


def _seconds(groups: Sequence[str], rate: Fraction | None) -> float:
    """Return the seconds of a time.

    Parameters
    ----------
    groups
        The parts of the time: minus sign, hours, minutes, seconds, the sign behind these, and milliseconds or
        frames.
    rate
        Frames per second of times that end in frames.
    """
    sign, hours, minutes, seconds_text, point, digits = groups
    milliseconds = digits.rjust(3, "0")  # "1,5" is 5 milliseconds, as players read it
    time_s = clock_s(hours, minutes, seconds_text, milliseconds)
    ends_in_frames = point == ";" or (point == ":" and len(digits) != 3)
    if time_s is None or ends_in_frames:
        # A time code, or no time, which `time_in` refuses.
        return time_in(f"{hours or 0}:{minutes:0>2}:{seconds_text:0>2}{point}{digits:0>2}", rate) or 0.0
    return -time_s if sign else time_s


# --- writing
# ---------------------------------------------------------------------------
@checked
def write_vtt(spans: Sequence[Subtitle], title: str = "", notes: Sequence[str] = ()) -> str:
    """Write cues of WebVTT, sorted by time; notes become a comment at the top."""
    lines = [f"WEBVTT {arrowless(title)}".rstrip(), ""]
    if notes:
        lines += ["NOTE", *map(arrowless, notes), ""]
    for span in _sorted(spans):
        lines += [_line_of_times(span, "."), html.escape(one_line(span.text), quote=False), ""]
    return "\n".join(lines)


@checked
def write_srt(spans: Sequence[Subtitle]) -> str:
    """Write subtitles of SRT, sorted by time; characters that players take for markup are replaced."""
    lines = []
    for number, span in enumerate(_sorted(spans), start=1):
        lines += [str(number), _line_of_times(span, ","), arrowless(span.text).translate(NO_MARKUP), ""]
    return "\n".join(lines)


def _sorted(spans: Sequence[Subtitle]) -> list[Subtitle]:
    return sorted(spans, key=lambda span: span[:2])


def _line_of_times(span: Subtitle, point: str) -> str:
    return f"{clock(span.start_s, point)} --> {clock(span.end_s, point)}"


def arrowless(text: str) -> str:
    """Write a text on one line, without the marks that end a comment or begin a cue."""
    return one_line(text).replace("-->", "→")
