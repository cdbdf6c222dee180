r"""Read and write subtitles: SRT and WebVTT, whose cues are alike.

A broken block costs itself alone, and is said. A line with `-->` is never text. Sources: WebVTT (W3C, 2019),
SubRip as players read it.
"""

import html
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.instant import clock, clock_s, time_in, with_ascii_digits
from obygaze_features.manifest.spans.names import NO_MARKUP
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.tier_names import MODEL, is_of_a_model, split_people_tier
from obygaze_features.subtitle_text import VOICE, srt_text, vtt_text
from obygaze_features.text import counted

_GAP = re.compile(r"\n\s*\n")
"""An empty line inside of a text."""
_CLOCK = r"(-?)\s*+(?:(\d{1,9})[:;])?(\d{1,2})[:;](\d{1,2})(?:\s*([.,:;])\s*(\d{1,9}))?"
_ARROW = r"(?:-{1,3}|[–—])>"
"""`-->`, and what people and programs write for it."""
_TIMES = re.compile(rf"\s*+{_CLOCK}\s*{_ARROW}\s*+{_CLOCK}(?:(?:\s+|(?=[a-z]+:))((?:(?!-->).)*+))?", re.ASCII)
_SETTINGS = re.compile(r"(?i)(?:(?:[XY][12]|align|line|position|region|size|vertical)\s*:\s*\S+(?:\s+|$))*")
"""Places, of SRT (`X1:10`) and WebVTT (`align:start`)."""
_BROKEN = re.compile(
    r"(?a)\s*\d{1,3}[:;]\d\d?[:.,;]\d.*\d[:;]\d\d?[:.,;]\d|\d*[->\s]*\d{1,3}([:;]\d\d){2}[.,;]\d{1,3}[->\s]*$"
)
"""A line of times whose arrow is broken, or a half of it, with its number: it is never text either."""
_FEW_DIGITS = re.compile(r"(?a)\d:\d\d?[.,]\d\d?(?!\d)")
"""A time with one or two digits of milliseconds, which players take as 5 ms where 0.5 s may be meant."""
_NO_TEXT = re.compile(r"(WEBVTT|NOTE|STYLE|REGION)(\s|$)")
_SEGMENT = re.compile(r"X-TIMESTAMP-MAP=(?!MPEGTS:0,LOCAL:[0:.]+\s*$|LOCAL:[0:.]+,MPEGTS:0\s*$)")
MAX_BLANK_LINES = 2
"""How many blank lines may stand between the number of a subtitle of SRT and its times."""

STEP_BACK_S = 60.0
"""A start this many seconds before the one above it is taken as another file's: one file strays less."""


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


class Cue(NamedTuple):
    """A cue, or subtitle, as it is read.

    Attributes
    ----------
    line
        The line of times, counted from 0.
    times
        What that line says.
    body
        The lines below it.
    marked_up_text
        The text with its markup and line breaks. In SRT it begins with what stands behind the times.
    text
        The text without them.
    """

    line: int
    times: Times
    body: str
    marked_up_text: str
    text: str


class BlockStart(NamedTuple):
    """The line at which a block begins, counted from 0, and the number of its cue."""

    line: int
    number: int


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
    """Yield the cues of WebVTT or the subtitles of SRT, by the kind of the file.

    Texts between them that have no times are yielded first, to be left out. What is not read or doubtful is
    noted in the file's account.
    """
    is_vtt = file.account.kind == "vtt"
    remove_markup = vtt_text if is_vtt else srt_text
    lines = file.lines
    if is_vtt:
        _note_facts_of_vtt(file)

    blocks = _blocks(lines, is_vtt=is_vtt)
    cues = [_cue(lines, block, file.reading.rate, is_vtt=is_vtt) for block in blocks]
    yield from _texts_without_times(lines, blocks, is_vtt=is_vtt)
    for cue in cues:
        yield _span_of_cue(cue, remove_markup)

    if is_vtt:
        # What stands behind the times of WebVTT are settings, such as where a cue is shown.
        settings = [f"{one_line(cue.times.behind):.40}" for cue in cues if cue.times.behind]
        file.account.note_unread("setting", settings)
    # Lines at which a further file seems to begin, if several were joined to this one.
    joints = [*_starts_of_joined_files(lines, blocks, is_vtt=is_vtt), *_steps_back(cues)]
    file.account.note(*_doubts(lines, cues, joints))
    shown = (_first_and_last_line(cue, remove_markup) for cue in cues if cue.text)
    file.account.note(_rolling_captions(shown, len(blocks)))


def _note_facts_of_vtt(file: SpanFile) -> None:
    """Note whether a file of WebVTT holds what a model wrote, and whether it is a part of a stream."""
    has_name_of_model = MODEL in file.text  # looked for first, as this takes less time
    if has_name_of_model and any(map(is_of_a_model, file.lines)):
        file.account.shows_model_output = True
    if any(map(_SEGMENT.match, file.lines[:9])):
        file.account.note("X-TIMESTAMP-MAP: of a part of a stream; times are taken as they stand")


def _cue(lines: Sequence[str], block: Block, rate: Fraction | None, *, is_vtt: bool) -> Cue:
    """Read the lines of a block as a cue; `rate` is frames per second of times that end in frames.

    Its text is below the line of times. In SRT, what stands behind the times belongs to it; in WebVTT that
    are settings.
    """
    times = _times(lines[block.times], rate)
    text_below_times = "\n".join(lines[block.times + 1 : block.end]).strip()
    has_text_behind_times = times.behind != "" and not is_vtt
    marked_up_text = f"{times.behind}\n{text_below_times}" if has_text_behind_times else text_below_times
    remove_markup = vtt_text if is_vtt else srt_text
    text = one_line(remove_markup(marked_up_text))
    return Cue(line=block.times, times=times, body=text_below_times, marked_up_text=marked_up_text, text=text)


def _span_of_cue(cue: Cue, remove_markup: Callable[[str], str]) -> RawSpan:
    """Return the span of a cue, whose text may begin with the tier that a person wrote it on.

    `remove_markup` is for the names of speakers, which WebVTT has in markup.
    """
    speakers = dict.fromkeys(map(remove_markup, VOICE.findall(cue.marked_up_text)))
    cells = {"subject": one_line("; ".join(speakers))} if speakers else {}
    no_text = "" if cue.text else "no text"
    people_tier, text_on_tier = split_people_tier(cue.text)
    return RawSpan(
        f"line {cue.line + 1}",
        cue.times.start_s,
        cue.times.end_s,
        text_on_tier,
        people_tier,
        cells,
        reason=cue.times.reason or no_text,
    )


def _steps_back(cues: Sequence[Cue]) -> list[int]:
    """Return the lines of times, from 0, that are much earlier (`STEP_BACK_S`) than the times above them."""
    steps_back = []
    last_start_s = 0.0
    for cue in cues:
        start_s = cue.times.start_s
        if math.isnan(start_s):
            continue
        if start_s < last_start_s - STEP_BACK_S:
            steps_back.append(cue.line)
        last_start_s = start_s
    return steps_back


def _rolling_captions(shown: Iterable[Shown], n_blocks: int) -> str:
    """Return a notice if many captions begin with the last line of the one before; else "".

    Live captions roll so: each line is shown twice, so that words would be counted twice. They are many if
    there are more than a third of `n_blocks`, which counts captions without a text too.

    Examples
    --------
    >>> shown = [Shown("It was", "a dark"), Shown("a dark", "and stormy"), Shown("and stormy", "night")]
    >>> _rolling_captions(shown, n_blocks=3)
    '2 captions repeat the line before them (rolling captions)'
    >>> _rolling_captions(shown, n_blocks=6)
    ''
    """
    n_repeated = 0
    for before, text in pairwise(shown):
        if text.first != "" and text.first == before.last:
            n_repeated += 1
    if n_repeated <= max(1, n_blocks // 3):
        return ""
    return (
        f"{counted(n_repeated, 'caption repeats', 'captions repeat')} the line before them (rolling captions)"
    )


def _first_and_last_line(cue: Cue, remove_markup: Callable[[str], str]) -> Shown:
    """Return the first and the last line of a cue, without markup; a text of one line is both."""
    if "\n" not in cue.marked_up_text:
        return Shown(cue.text, cue.text)
    lines = cue.marked_up_text.split("\n")
    return Shown(remove_markup(lines[0]).strip(), remove_markup(lines[-1]).strip())


def _starts_of_joined_files(lines: Sequence[str], blocks: Sequence[Block], *, is_vtt: bool) -> list[int]:
    """Return the lines (from 0) where a further file begins, if several were joined to one.

    A file of WebVTT begins with a line `WEBVTT`, and one of SRT with a cue of the number 1, which stands in
    the line above its times. The first file that is found begins no further one.
    """
    if is_vtt:
        starts = [number for number, line in enumerate(lines) if line.startswith("WEBVTT")]
    else:
        starts = []
        for block in blocks:
            has_line_above_times = block.times > 0
            if has_line_above_times and lines[block.times - 1].strip() == "1":
                starts.append(block.times)
    return starts[1:]


def _doubts(lines: Sequence[str], cues: Sequence[Cue], joints: Sequence[int]) -> Iterator[str]:
    """Yield notices on what may be wrong: joined files, empty lines in texts, milliseconds of too few digits.

    `joints` are the lines (from 0) where a further file seems to begin.
    """
    if joints:
        yield (
            f"line {min(joints) + 1}: numbers, times or WEBVTT begin again: if parts of a film were joined, "
            "the later times are wrong"
        )
    gaps = [cue.line + 1 for cue in cues if _GAP.search(cue.body)]
    if gaps:
        yield f"line {gaps[0]}: a text with an empty line ({len(gaps)} such)"
    short = [cue.line + 1 for cue in cues if _FEW_DIGITS.search(lines[cue.line])]
    if short:
        yield (
            f"line {short[0]}: digits of its milliseconds lack ({len(short)} such): 1,5 is 1.005 s as in "
            "players"
        )


def _blocks(lines: Sequence[str], *, is_vtt: bool) -> list[Block]:
    """Find the block of lines of each subtitle: there is one for each line of times.

    A cue of WebVTT ends at an empty line. A subtitle of SRT may have empty lines in its text, so that it ends
    where the next one begins. If that one does not have the next number, a subtitle with the next number may
    be there without its times (`_end_at_number`).
    """
    lines_of_times = []
    for number, line in enumerate(lines):
        has_broken_arrow = _BROKEN.match(line) is not None
        if "-->" in line or has_broken_arrow:
            lines_of_times.append(number)

    starts = _starts_of_blocks(lines, lines_of_times, is_vtt=is_vtt)
    next_starts = [*starts, None][1:]  # None for the last block
    blocks = []
    for start, next_start, line_of_times in zip(starts, next_starts, lines_of_times, strict=True):
        latest_end = len(lines) if next_start is None else next_start.line
        first_line_of_text = line_of_times + 1
        next_number = start.number + 1
        has_next_number_below = next_start is not None and next_start.number == next_number
        if is_vtt:
            end = _end_of_cue(lines, first_line_of_text, latest_end)
        elif has_next_number_below:
            # The line of times may be the last one before the next block: then the text is empty.
            end = max(latest_end, first_line_of_text)
        else:
            end = _end_at_number(lines, first_line_of_text, latest_end, str(next_number))
        blocks.append(Block(start.line, line_of_times, end))
    return blocks


def _starts_of_blocks(
    lines: Sequence[str], lines_of_times: Sequence[int], *, is_vtt: bool
) -> list[BlockStart]:
    """Return where the block of each line of times begins, and its number.

    In the lines `1`, TIMES, `Hi`, `2`, TIMES, `99`, TIMES the first block begins at `1`, the second at `2`,
    and the third at its times: `99` is not the number that comes next, but text of the second block.
    """
    starts: list[BlockStart] = []
    for line_of_times in lines_of_times:
        last_number = starts[-1].number if starts else None
        starts.append(_start_of_block(lines, line_of_times, last_number, is_vtt=is_vtt))
    return starts


def _start_of_block(
    lines: Sequence[str], line_of_times: int, last_number: int | None, *, is_vtt: bool
) -> BlockStart:
    """Return where a block begins, and its number.

    A block begins at the line above its times if that line is

    - in SRT: the number that comes next (any number in the first block), or
    - any number or name that stands directly above the times and below a blank line.

    Otherwise that line is text of the block before, and the block begins at its line of times. A block
    without a number has the one after the last.

    Parameters
    ----------
    lines
        The lines of the file.
    line_of_times
        Index of the block's line of times.
    last_number
        Number of the block before; None for the first block.
    is_vtt
        Whether the file is WebVTT.
    """
    line_above = _line_above_times(lines, line_of_times, is_vtt=is_vtt)
    text_above = lines[line_above].strip() if line_of_times > 0 else ""
    next_number = 1 if last_number is None else last_number + 1
    # Cut to 12 digits, which are more than any number of a subtitle has.
    number = int(text_above[:12]) if text_above.isdecimal() else next_number

    may_be_next = last_number is None or number == next_number
    is_next_number = text_above.isdecimal() and may_be_next and not is_vtt
    is_directly_above = line_above == line_of_times - 1
    stands_alone = text_above != "" and is_directly_above and _is_below_blank_line(lines, line_above)
    begins_above_times = is_next_number or stands_alone
    return BlockStart(line_above if begins_above_times else line_of_times, number)


def _is_below_blank_line(lines: Sequence[str], number: int) -> bool:
    """Return whether a line, by its index, is the first one or has a blank line above it."""
    return number <= 0 or not lines[number - 1].strip()


def _line_above_times(lines: Sequence[str], line_of_times: int, *, is_vtt: bool) -> int:
    """Return the line above a line of times, which may hold the number or the name of the block.

    In SRT up to `MAX_BLANK_LINES` blank lines are passed over, as some programs write them between a number
    and its times.
    """
    line_above = line_of_times - 1
    if is_vtt:
        return line_above
    highest_line = max(line_of_times - 1 - MAX_BLANK_LINES, 0)
    while line_above > highest_line and not lines[line_above].strip():
        line_above -= 1
    return line_above


def _end_of_cue(lines: Sequence[str], first_line_of_text: int, latest_end: int) -> int:
    """Return the line at which the text of a cue of WebVTT ends.

    It is the first empty line (a line of blanks is none), or the first line of a file that was joined; at the
    latest the line where the next cue begins.

    Parameters
    ----------
    lines
        The lines of the file.
    first_line_of_text
        The index of the line below the times.
    latest_end
        The index of the line where the next cue begins, or the number of lines.
    """
    for index in range(first_line_of_text, latest_end):
        if lines[index] in {"", "WEBVTT"}:
            return index
    # The next cue may begin at the line below the times, or at these themselves: then the text is empty.
    return max(latest_end, first_line_of_text)


def _end_at_number(lines: Sequence[str], first_line_of_text: int, latest_end: int, next_number: str) -> int:
    """Return the line at which a block of SRT ends, if the block below does not have the next number.

    The next block with times may be 5, while this one is 3: subtitle 4 is there without its times. The block
    ends at a line `4` below an empty line, so that the words of that subtitle do not become words of this
    one. If there is no such line, it ends where the next block begins.

    Parameters
    ----------
    lines
        The lines of the file.
    first_line_of_text
        The index of the line below the times.
    latest_end
        The index of the line where the next block with times begins, or the number of lines.
    next_number
        The number after that of this block.
    """
    for index in range(first_line_of_text + 1, latest_end):
        if lines[index].strip() == next_number and not lines[index - 1].strip():
            return index
    return max(latest_end, first_line_of_text)


def _texts_without_times(lines: Sequence[str], blocks: Sequence[Block], *, is_vtt: bool) -> Iterator[RawSpan]:
    """Yield a record to leave out for each text between blocks that is no comment, style or region."""
    begins_of_gaps = [0, *(block.end for block in blocks)]
    ends_of_gaps = [*(block.begin for block in blocks), len(lines)]
    for gap_begin, gap_end in zip(begins_of_gaps, ends_of_gaps, strict=True):
        for first_line in _first_lines_of_texts(lines, range(gap_begin, gap_end), is_vtt=is_vtt):
            # The first text of WebVTT is its header.
            is_no_text = is_vtt and (first_line == 0 or _NO_TEXT.match(lines[first_line]) is not None)
            if not is_no_text:
                yield RawSpan(f"line {first_line + 1}", reason="text without times")


def _first_lines_of_texts(lines: Sequence[str], gap: range, *, is_vtt: bool) -> Iterator[int]:
    """Yield the first line of each text in the lines between two blocks.

    In WebVTT an empty line separates a text from a comment or a style. In SRT all lines are one text.
    """
    is_in_text = False
    for number in gap:
        is_separator = is_vtt and lines[number] == ""
        if is_separator:
            is_in_text = False
        elif lines[number].strip() and not is_in_text:
            is_in_text = True
            yield number


def _times(line: str, rate: Fraction | None) -> Times:
    """Read a line of times, such as `00:00:01,000 --> 00:00:02,500`, and what stands behind it.

    Times are NaN if the line is none of times, or if they cannot be read; then the reason says why. `rate` is
    frames per second, for times that end in frames.
    """
    # Some programs write digits of other scripts, or several blanks.
    match = _TIMES.fullmatch(line) or _TIMES.fullmatch(with_ascii_digits(one_line(line)))
    if match is None:
        return Times(math.nan, math.nan, behind="", reason="")
    groups = match.groups(default="")
    try:
        start_s = _seconds(groups[:6], rate)
        end_s = _seconds(groups[6:12], rate)
    except ManifestError as error:
        return Times(math.nan, math.nan, behind="", reason=str(error))
    behind = groups[12]
    has_only_settings = _SETTINGS.fullmatch(behind) is not None
    return Times(start_s, end_s, behind="" if has_only_settings else behind, reason="")


def _seconds(groups: Sequence[str], rate: Fraction | None) -> float:
    """Return the seconds of a time such as 00:00:01,500, or 00:00:01:12 with frames.

    Parameters
    ----------
    groups
        The parts of the time: minus sign, hours, minutes, seconds, the sign behind the seconds, and
        milliseconds or frames.
    rate
        Frames per second of times that end in frames.

    Raises
    ------
    ManifestError
        It is no time, or has frames and their rate is not known.
    """
    minus, hours, minutes, seconds_text, sign_behind_seconds, digits = groups
    # The sign is `;` before frames with drop frame, and may be `:` before frames. But some programs write
    # `:` before milliseconds, which have three digits.
    has_drop_frame = sign_behind_seconds == ";"
    has_frames = has_drop_frame or (sign_behind_seconds == ":" and len(digits) != 3)
    if not has_frames:
        milliseconds = digits.rjust(3, "0")  # "1,5" is 5 milliseconds, as players read it
        time_s = clock_s(hours, minutes, seconds_text, milliseconds)
        if time_s is not None:
            return -time_s if minus else time_s
    # A time code with frames, or numbers that are no time, which `time_in` refuses.
    code = f"{hours or 0}:{minutes:0>2}:{seconds_text:0>2}{sign_behind_seconds}{digits:0>2}"
    return time_in(code, rate) or 0.0


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
    """Sort subtitles by their starts, then by their ends."""
    return sorted(spans, key=lambda span: (span.start_s, span.end_s))


def _line_of_times(span: Subtitle, point: str) -> str:
    """Write the line of times of a subtitle, with `point` before the milliseconds."""
    return f"{clock(span.start_s, point)} --> {clock(span.end_s, point)}"


def arrowless(text: str) -> str:
    """Write a text on one line, without the marks that end a comment or begin a cue."""
    return one_line(text).replace("-->", "→")
