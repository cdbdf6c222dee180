r"""Read and write subtitles: SRT, WebVTT, ASS.

A broken block costs itself alone, and is said. A line with `-->` is never text. Sources: WebVTT (W3C, 2019),
SubRip and SubStation Alpha as players read them.
"""

import html
import math
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from typing import NamedTuple

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.given import Given, RawSpan
from obygaze_features.manifest.spans.instant import clock, clock_s, time_code, time_or_nan, western
from obygaze_features.subtitle_text import DRAWING, VOICE, ass_text, srt_text, vtt_text
from obygaze_features.text import unsuitable

_GAP = re.compile(r"\n\s*\n")
_CLOCK = r"(-?)\s*+(?:(\d{1,9})[:;])?(\d{1,2})[:;](\d{1,2})(?:\s*([.,:;])\s*(\d{1,9}))?"
_TIMES = re.compile(rf"\s*+{_CLOCK}\s*-->\s*+{_CLOCK}(?:(?:\s+|(?=[a-z]+:))((?:(?!-->).)*))?", re.ASCII)
_SETTINGS = re.compile(r"(?i)(?:(?:[XY][12]|align|line|position|region|size|vertical)\s*:\s*\S+(?:\s+|$))*")
"""Places, of SRT (`X1:10`) and WebVTT (`align:start`)."""
_BROKEN = re.compile(
    r"(?a)\s*\d{1,3}[:;]\d\d?[:.,;]\d.*\d[:;]\d\d?[:.,;]\d|\d*[->\s]*\d{1,3}([:;]\d\d){2}[.,;]\d{1,3}[->\s]*$"
)
"""A line of times whose arrow is broken, or a half of it, with its number: it is never text either."""
_FEW = re.compile(r"(?a)\d:\d\d?[.,]\d\d?(?!\d)")
_BESIDE = re.compile(r"(WEBVTT|NOTE|STYLE|REGION)(\s|$)")
_SEGMENT = re.compile(r"X-TIMESTAMP-MAP=(?!MPEGTS:0,LOCAL:[0:.]+\s*$|LOCAL:[0:.]+,MPEGTS:0\s*$)")
_ASS_COLUMNS = ("layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text")
"""Where no line Format says which they are."""

STEP_BACK_S = 60.0
"""Further back than lines of one file lie that are not in order."""

NO_MARKUP = str.maketrans("<>{}", "‹›()")
"""SubRip has no escapes, and players obey `<font>` and `{\\an8}`."""


class Subtitle(NamedTuple):
    """Words that are shown, with their times in seconds."""

    start_s: float
    end_s: float
    text: str


def read_cues(given: Given) -> Iterator[RawSpan]:
    """Yield the cues of WebVTT, or without its first line the subtitles of SRT."""
    is_vtt = given.account.kind == "vtt"
    lines = given.lines
    if is_vtt and any(map(_SEGMENT.match, lines[:9])):
        given.account.note("X-TIMESTAMP-MAP: of a part of a stream; times are taken as they stand")
    starts = [at for at, line in enumerate(lines) if "-->" in line or _BROKEN.match(line)]
    begins, ends = _blocks(lines, starts, is_vtt=is_vtt)
    yield from _strays(lines, begins, ends, is_vtt=is_vtt)
    bodies = ["\n".join(lines[at + 1 : end]).strip() for at, end in zip(starts, ends, strict=True)]
    clean = vtt_text if is_vtt else srt_text
    shown, unread = list[tuple[str, str]](), list[str]()
    back, last = list[int](), 0.0
    for at, body in zip(starts, bodies, strict=True):
        start, end, behind, why = _times(lines[at], given.rate)
        unread += [f"{one_line(behind):.40}"] if is_vtt and behind else []
        words = body if is_vtt or not behind else f"{behind}\n{body}"
        text, who = one_line(clean(words)), "; ".join(dict.fromkeys(map(clean, VOICE.findall(words))))
        back += [at] * (start < last - STEP_BACK_S)
        last = last if math.isnan(start) else start
        if text:
            said = words.split("\n") if "\n" in words else ()  # one line is the text itself
            shown.append((clean(said[0]).strip(), clean(said[-1]).strip()) if said else (text, text))
        cells = {"subject": one_line(who)} if who else {}
        yield RawSpan(f"line {at + 1}", start, end, text, "", cells, why=why or "no text" * (not text))
    given.account.unread("setting", unread)
    parts = [at for at, line in enumerate(lines) if line.startswith("WEBVTT")]
    parts = parts if is_vtt else [at for at in starts if at and lines[at - 1].strip() == "1"]
    if again := [*parts[1:], *back]:
        given.account.note(
            f"line {min(again) + 1}: numbers, times or WEBVTT begin again: if parts of a film were joined, "
            "the later times are wrong"
        )
    if gaps := [at + 1 for at, body in zip(starts, bodies, strict=True) if _GAP.search(body)]:
        given.account.note(f"line {gaps[0]}: a text with an empty line ({len(gaps)} such)")
    if few := [at + 1 for at in starts if _FEW.search(lines[at])]:
        given.account.note(
            f"line {few[0]}: digits of its milliseconds lack ({len(few)} such): 1,5 is 1.005 s as in players"
        )
    repeated = sum(line != "" and line == before for (_, before), (line, _) in pairwise(shown))
    if repeated > max(1, len(starts) // 3):
        given.account.note(f"{repeated} captions repeat the line before them (rolling captions)")


def _blocks(lines: Sequence[str], starts: Sequence[int], *, is_vtt: bool) -> tuple[list[int], list[int]]:
    """Find where the block of each line of times begins, with its number or name, and where its text ends."""
    begins, numbers, last = list[int](), list[int](), 0
    for at in starts:
        place = at - 1
        while not is_vtt and at - place < 3 and place > 0 and not lines[place].strip():
            place -= 1
        above = lines[place].strip() if at else ""
        follows = above.isdecimal() and not is_vtt and (at == starts[0] or int(above[:12]) == last + 1)
        stands_alone = above and place == at - 1 and not (at > 1 and lines[at - 2].strip())
        begins.append(place if follows or stands_alone else at)  # a number needs no blank line before it
        last = int(above[:12]) if above.isdecimal() else last + 1
        numbers.append(last)
    ends = list[int]()
    for at, end, number, after in zip(
        starts, [*begins[1:], len(lines)], numbers, [*numbers[1:], 0], strict=False
    ):
        body = range(at + 1, max(end, at + 1))
        if is_vtt:  # an empty line ends a cue, or a file that was joined; one of blanks does not
            body_ends = (n for n in body if lines[n] in {"", "WEBVTT"})
        else:  # as does the next number in SRT, where a block has no times
            following = str(number + 1) if after != number + 1 else None
            body_ends = (n for n in body[1:] if lines[n].strip() == following and not lines[n - 1].strip())
        ends.append(next(body_ends, body.stop))
    return begins, ends


def _strays(
    lines: Sequence[str], begins: Sequence[int], ends: Sequence[int], *, is_vtt: bool
) -> Iterator[RawSpan]:
    """Yield the blocks without times, that are no comment, style or region."""
    for first, last in zip([0, *ends], [*begins, len(lines)], strict=True):
        for _, of_block in groupby(range(first, last), lambda at: is_vtt and not lines[at]):
            block = [at for at in of_block if lines[at].strip()]
            if block and not (is_vtt and (block[0] == 0 or _BESIDE.match(lines[block[0]]))):
                yield RawSpan(f"line {block[0] + 1}", why="text without times")


def _times(line: str, rate: Fraction | None) -> tuple[float, float, str, str]:
    """Read a line of times, NaN where it is none; the text behind them, and what is wrong with its frames."""
    match = _TIMES.fullmatch(line) or _TIMES.fullmatch(western(one_line(line)))
    if match is None:
        return math.nan, math.nan, "", ""
    try:
        start, end = (_seconds(match, n, rate) for n in (0, 6))
    except ManifestError as error:
        return math.nan, math.nan, "", str(error)
    behind = match[13] or ""
    return start, end, "" if _SETTINGS.fullmatch(behind) else behind, ""


def _seconds(match: re.Match[str], first: int, rate: Fraction | None) -> float:
    sign, hours, minutes, whole, point, rest = match.groups(default="")[first : first + 6]
    time_s = clock_s(hours, minutes, whole, f"{rest:0>3}")  # "1,5" is 5 milliseconds, as players read it
    if time_s is None or point == ";" or (point == ":" and len(rest) != 3):
        return time_code(f"{hours or 0}:{minutes:0>2}:{whole:0>2}{point}{rest:0>2}", rate) or 0.0
    return -time_s if sign else time_s


def read_ass(given: Given) -> Iterator[RawSpan]:
    """Yield the dialogue of ASS or SSA, without drawings and comments."""
    columns, section = list(_ASS_COLUMNS), "[events]"
    for at, line in enumerate(given.lines, start=1):
        key, _, value = line.partition(":")
        key = key.strip().lower()
        if key.startswith("["):
            section = key
        elif key == "format":
            names = [name.strip().lower() for name in value.split(",")]
            if {"start", "end", "text"} <= set(names):  # else of styles
                columns = names[: names.index("text") + 1]  # the text is the rest of a line
        elif key == "dialogue":
            cells = dict(zip(columns, value.lstrip().split(",", max(len(columns) - 1, 0)), strict=False))
            times = (cells.get(name, "") for name in ("start", "end"))
            start, end = (time_or_nan(text) if ":" in text else math.nan for text in times)
            written = cells.get("text", "")
            text = one_line(ass_text(written))
            why = "no text" * (not text)
            why = "a drawing" if why and DRAWING.search(written) else why
            why = why if section == "[events]" else f"in {section:.20}, no event"
            name = cells.get("name", "") or cells.get("actor", "")
            who = {"subject": one_line(name)} if name else {}
            yield RawSpan(f"line {at}", start, end, text, "", who, why=why)
        elif key == "timer" and not re.fullmatch(r"\s*(?:100(?:[.,]0*)?)?\s*", value):
            given.account.note(f"line {at}: Timer {one_line(value)}: a speed that is not applied")
        elif section == "[events]" and line.strip() and line.strip()[0] not in ";!":
            yield RawSpan(f"line {at}", why=f"a {key or 'line of no kind':.20}")  # a comment, a picture


def one_line(text: str) -> str:
    """Write a text on one line, without characters that control; joiners of letters and emoji stay."""
    line = " ".join(text.split())
    if line.isprintable() and unsuitable(line) is None:
        return line
    return " ".join("".join(sign for sign in line if sign != "\ufeff" and unsuitable(sign) is None).split())


# --- writing
# ---------------------------------------------------------------------------
def write_vtt(spans: Sequence[Subtitle], title: str = "", notes: Sequence[str] = ()) -> str:
    """Write cues of WebVTT in time order; notes are a comment at the top."""
    lines = [f"WEBVTT {arrowless(title)}".rstrip(), ""]
    lines += ["NOTE", *map(arrowless, notes), ""] if notes else []
    for span in _sorted(spans):
        lines += [_line_of_times(span, "."), html.escape(one_line(span.text), quote=False), ""]
    return "\n".join(lines)


def write_srt(spans: Sequence[Subtitle]) -> str:
    """Write subtitles of SRT in time order, without what players take for markup."""
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
