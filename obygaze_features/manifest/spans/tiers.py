"""Read and write tiers of spans: Praat's TextGrid, and RTTM of speaker diarisation.

Sources: Praat manual, "TextGrid file formats"; NIST Rich Transcription evaluation 2009, RTTM.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from obygaze_features.manifest.spans.given import Given, RawSpan, number
from obygaze_features.manifest.spans.subtitles import Subtitle, one_line
from obygaze_features.templates import filled

_TOKEN = re.compile(r'"(?:[^"]|"")*"\S?|![^\r\n]*|\S+')
S = TypeVar("S", bound=tuple[float, float, str])
RTTM_FIELDS = 9
RTTM_UNREAD = ("channel", "orthography", "speaker type", "", "confidence", "lookahead")
"""The field before the times, and those behind them; that without a name is the speaker's."""


def read_textgrid(given: Given) -> Iterator[RawSpan]:
    """Yield the intervals with a text of a TextGrid, in its long or short form; points have no end."""
    is_binary = given.content.startswith(b"ooBinaryFile")
    tokens = iter(()) if is_binary else _tokens(given)
    form, kind = (next(tokens, ("", 0))[0] for _ in range(2))
    if form not in {'"ooTextFile"', '"ooTextFile short"'} or kind != '"TextGrid"':
        found = kind or "a binary file" * is_binary or "something else"
        raise given.error(f"a TextGrid of Praat, saved as a text file, was expected; found {found:.60}")
    for _ in range(2):
        _real(given, tokens)
    if _next(given, tokens, "<exists> or <absent>", {"<exists>", "<absent>"}.__contains__)[0] == "<absent>":
        return
    for _ in range(_count(given, tokens)):
        yield from _tier(given, tokens)
    if (rest := next(tokens, None)) is not None:
        raise given.error(
            f"line {rest[1]}: {rest[0]:.40} after the last tier: is a number of intervals wrong?"
        )


def _tier(given: Given, tokens: Iterator[tuple[str, int]]) -> Iterator[RawSpan]:
    form, line = next(tokens, ("", 0))
    name = _string(given, tokens)
    _, whole = (_real(given, tokens)[0] for _ in range(2))
    n = _count(given, tokens)
    if form not in {'"IntervalTier"', '"TextTier"'}:
        raise given.error(f"line {line}: {form:.40} is no tier of intervals or points")
    for place in range(1, n + 1):
        start, at = _real(given, tokens)
        end = _real(given, tokens)[0] if form == '"IntervalTier"' else start
        text = one_line(_string(given, tokens))
        where = f"line {at} (interval {place} of tier {name!r})"
        why = f"it ends after its tier, {whole:g} s" if end > whole + 0.001 else "no text" * (not text)
        why = "a point, which has no end" if form == '"TextTier"' else why
        yield RawSpan(where, start, end, text, name, why=why)


def _tokens(given: Given) -> Iterator[tuple[str, int]]:
    """Yield the texts, numbers and flags that stand free, as Praat reads them, with their lines."""
    text = "\n".join(given.lines)
    line, last = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", last, match.start())
        last = match.start()
        found = match[0]
        if found[0] == '"' or found in {"<exists>", "<absent>"} or re.match(r"[-+]?\d", found):
            yield found, line


def _real(given: Given, tokens: Iterator[tuple[str, int]]) -> tuple[float, int]:
    found, line = _next(given, tokens, "a time", lambda token: not math.isnan(number(token)))
    return number(found), line


def _count(given: Given, tokens: Iterator[tuple[str, int]]) -> int:
    wanted = "a number of tiers or intervals"
    return int(_next(given, tokens, wanted, lambda token: token.isdecimal() and len(token) < 10)[0])


def _string(given: Given, tokens: Iterator[tuple[str, int]]) -> str:
    found, _ = _next(given, tokens, "a text in quotes", lambda token: token[:1] == '"' == token[1:][-1:])
    return found[1:-1].replace('""', '"')


def _next(
    given: Given, tokens: Iterator[tuple[str, int]], wanted: str, is_such: Callable[[str], bool]
) -> tuple[str, int]:
    found, line = next(tokens, ("", 0))
    if not is_such(found):
        ends = f"it ends where {wanted} was expected: cut short, or a number of intervals is wrong"
        raise given.error(f"line {line}: {found:.40} where {wanted} was expected" if found else ends)
    return found, line


def write_textgrid(tiers: Mapping[str, Sequence[Subtitle]], end_s: float) -> str:
    """Write a TextGrid in Praat's long form; spans that overlap go to further tiers of the name.

    Parameters
    ----------
    tiers
        Spans of each tier, by its name.
    end_s
        Length of the film in seconds.
    """
    parts = [part for name, spans in tiers.items() for part in apart(name, spans)]
    whole = max([end_s, *(span.end_s for _, part in parts for span in part)])
    gapless = [(name, _filled(part, whole)) for name, part in parts]
    return filled(__package__, "TextGrid.jinja", {"tiers": gapless, "end": whole}, _written)


def apart(name: str, spans: Iterable[S]) -> list[tuple[str, list[S]]]:
    """Deal spans that overlap to as many tiers as are needed, numbered from 2; one tier if there are none."""
    parts: list[list[S]] = [[]]
    for span in sorted(spans, key=lambda span: span[0]):
        part = next((each for each in parts if not each or each[-1][1] <= span[0]), None)
        if part is None:
            parts.append(part := [])
        part.append(span)
    return [(f"{name} ({n})" if n > 1 else name, part) for n, part in enumerate(parts, start=1)]


def _filled(part: Sequence[Subtitle], whole: float) -> list[Subtitle]:
    """Add empty intervals between spans: Praat's tiers have no gaps."""
    filled, last = [], 0.0
    for span in part:
        filled += [Subtitle(last, span.start_s, "")] if span.start_s > last else []
        filled.append(span)
        last = span.end_s
    return [*filled, *([Subtitle(last, whole, "")] if whole > last or not filled else [])]


def _written(value: object) -> str:
    """Write a number to the microsecond, or a text on one line that stands in quotes."""
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    return one_line(str(value)).replace('"', '""')


# --- RTTM
# ---------------------------------------------------------------------------
def read_rttm(given: Given) -> Iterator[RawSpan]:
    """Yield the turns of speakers."""
    unread: list[str] = []
    for at, line in enumerate(given.lines, start=1):
        cells = ["" if cell == "<NA>" else cell for cell in line.split()]
        if not cells or cells[0].startswith(";;"):
            continue
        where = f"line {at}"
        if cells[0] != "SPEAKER":
            yield RawSpan(where, why=f"a record {cells[0]:.20}, no SPEAKER")
        elif len(cells) not in {RTTM_FIELDS, RTTM_FIELDS + 1}:
            yield RawSpan(where, why=f"{len(cells)} fields where RTTM has 9 or 10: names hold no blanks")
        else:
            said = zip(RTTM_UNREAD, [cells[2] * (cells[2] != "1"), *cells[5:]], strict=False)
            unread += [name for name, cell in said if name and cell]
            start, length = map(number, cells[3:5])
            film = {"movie": cells[1]}
            yield RawSpan(where, start, round(start + length, 9), one_line(cells[7]), "SPEAKER", film)
    given.account.unread("field", unread)


def write_rttm(spans: Sequence[tuple[str, Subtitle]], movie: str) -> str:
    """Write turns: each with its label, whose blanks become `_`, as RTTM's cells hold none."""
    lines = []
    for label, span in sorted(spans, key=lambda each: each[1].start_s):
        start, end = round(1000 * span.start_s), round(1000 * span.end_s)
        times = f"{start / 1000:.3f} {(end - start) / 1000:.3f}"
        lines.append(f"SPEAKER {_cell(movie)} 1 {times} <NA> <NA> {_cell(label)} <NA> <NA>\n")
    return "".join(lines)


def _cell(text: str) -> str:
    return "_".join(one_line(text).split()) or "<NA>"
