"""Read and write Praat's TextGrid, whose tiers are tiers.

Source: Praat manual, "TextGrid file formats".
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, TypeVar

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.json_values import number
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.subtitles import Subtitle
from obygaze_features.manifest.spans.tier_names import numbered

_TOKEN = re.compile(
    r"""(?<!\S)(?:"(?:[^"]++|"")*+"\S?|"\S*+|![^\r\n]*+|<(?:exists|absent)>(?!\S)|[-+]?\d\S*+)"""
)
"""A token that Praat reads: a text in quotes, a comment, a flag or a number. It skips the words between."""
TEXT_FORMS = {'"ooTextFile"', '"ooTextFile short"'}
"""The first token of a file that was saved as text, in the long or the short form."""
SLACK_S = 0.001
"""Seconds by which an interval may end after its tier: rounding."""

S = TypeVar("S", bound=tuple[float, float, str])


class Token(NamedTuple):
    """A text, number or flag of a file, as Praat reads it, with its line."""

    text: str
    line: int


class Time(NamedTuple):
    """A time in seconds, with its line."""

    time_s: float
    line: int


def read_textgrid(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the intervals of a TextGrid, in its long or short form; points and empty texts are left out.

    The long form has words between the values, such as `xmin =`, which Praat skips, and so do we.

    Raises
    ------
    ManifestError
        It is no TextGrid in text form, a value is missing or wrong, or something follows the last tier.
    """
    is_binary = file.content.startswith(b"ooBinaryFile")
    tokens = _Tokens(file, iter(()) if is_binary else _tokens(file))
    form = tokens.any().text
    kind = tokens.any().text
    is_textgrid = form in TEXT_FORMS and kind == '"TextGrid"'
    if not is_textgrid:
        unnamed_kind = "a binary file" if is_binary else "something else"
        raise file.error(
            f"a TextGrid of Praat, saved as a text file, was expected; found {kind or unnamed_kind:.60}"
        )

    tokens.time()  # the start of the file, which is not needed
    tokens.time()  # its end
    if not tokens.has_tiers():
        return
    n_tiers = tokens.count()
    for _ in range(n_tiers):
        yield from _tier(file, tokens)

    token_after_tiers = tokens.any()
    if token_after_tiers.text:
        raise file.error(
            f"line {token_after_tiers.line}: {token_after_tiers.text:.40} after the last tier: "
            "is a number of intervals wrong?"
        )


def _tier(file: SpanFile, tokens: "_Tokens") -> Iterator[RawSpan]:
    """Read the tokens of the next tier, and yield its intervals; points are yielded with a reason."""
    form = tokens.any()
    name = tokens.string()
    tokens.time()  # the start of the tier, which is not needed
    tier_end_s = tokens.time().time_s
    n_intervals = tokens.count()
    has_intervals = form.text == '"IntervalTier"'
    has_points = form.text == '"TextTier"'
    if not (has_intervals or has_points):
        raise file.error(f"line {form.line}: {form.text:.40} is no tier of intervals or points")

    for index in range(1, n_intervals + 1):
        start = tokens.time()
        end = tokens.time() if has_intervals else start
        text = one_line(tokens.string())
        reason = ""
        if has_points:
            reason = "a point, which has no end"
        elif end.time_s > tier_end_s + SLACK_S:
            reason = f"it ends after its tier, {tier_end_s:g} s"
        elif not text:
            reason = "no text"
        location = f"line {start.line} (interval {index} of tier {name!r:.60})"
        yield RawSpan(location, start.time_s, end.time_s, text, name, reason=reason)


def _tokens(file: SpanFile) -> Iterator[Token]:
    """Yield the tokens of a file: quoted texts, numbers and flags, without comments and other words."""
    text = "\n".join(file.lines)
    line = 1
    start_of_last_token = 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", start_of_last_token, match.start())
        start_of_last_token = match.start()
        token = match[0]
        is_comment = token.startswith("!")
        if not is_comment:
            yield Token(token, line)


class _Tokens:
    """The tokens of a TextGrid one after the other, each of the kind that is expected, or an error."""

    def __init__(self, file: SpanFile, tokens: Iterator[Token]) -> None:
        """Keep the tokens that are still to be read, and the file that errors name."""
        self._file = file
        self._tokens = tokens

    def any(self) -> Token:
        """Read and return the next token, whatever it is; an empty one after the last."""
        return next(self._tokens, Token("", line=0))

    def time(self) -> Time:
        """Read the next token as a time."""
        token = self.any()
        time_s = number(token.text)
        if math.isnan(time_s):
            raise self._unlike(token, "a time")
        return Time(time_s, token.line)

    def count(self) -> int:
        """Read the next token as a number of tiers or intervals."""
        token = self._next("a number of tiers or intervals", lambda text: text.isdecimal() and len(text) < 10)
        return int(token.text)

    def string(self) -> str:
        """Read the next token as a quoted text, and return it without quotes."""

        def is_quoted(text: str) -> bool:
            """Return whether a token begins and ends with a quote of its own."""
            return len(text) >= 2 and text.startswith('"') and text.endswith('"')

        token = self._next("a text in quotes", is_quoted)
        return token.text[1:-1].replace('""', '"')

    def has_tiers(self) -> bool:
        """Read the next token as the flag that says whether there are tiers."""
        token = self._next("<exists> or <absent>", lambda text: text in {"<exists>", "<absent>"})
        return token.text == "<exists>"

    def _next(self, expected: str, is_such: Callable[[str], bool]) -> Token:
        """Read and return the next token; refuse one that is not as expected."""
        token = self.any()
        if not is_such(token.text):
            raise self._unlike(token, expected)
        return token

    def _unlike(self, token: Token, expected: str) -> ManifestError:
        """Return the error for a token that is not what was expected."""
        if token.text:
            return self._file.error(f"line {token.line}: {token.text:.40} where {expected} was expected")
        # The end of the file, which is at no line.
        return self._file.error(
            f"line 0: it ends where {expected} was expected: cut short, or a number of intervals is wrong"
        )


# --- writing
# ---------------------------------------------------------------------------
@checked
def write_textgrid(tiers: Mapping[str, Sequence[Subtitle]], end_s: float) -> str:
    """Write a TextGrid in Praat's long form; spans that overlap go to further, numbered tiers.

    Parameters
    ----------
    tiers
        Name of a tier -> its spans.
    end_s
        Length of the film in seconds.
    """
    parts: list[tuple[str, list[Subtitle]]] = []  # name and spans of each tier that is written
    for name, spans in tiers.items():
        parts += spread_over_tiers(name, spans)
    # All tiers of a TextGrid have one end. It is after the last span, even if this ends after the film.
    whole_s = end_s
    for _, spans_of_part in parts:
        whole_s = max([whole_s, *(span.end_s for span in spans_of_part)])

    lines = [
        'File type = "ooTextFile"',
        'Object class = "TextGrid"',
        "",
        "xmin = 0",
        f"xmax = {_number(whole_s)}",
        "tiers? <exists>",
        f"size = {len(parts)}",
        "item []:",
    ]
    for place, (name, spans_of_part) in enumerate(parts, start=1):
        lines += _lines_of_tier(place, name, spans_of_part, whole_s)
    return "\n".join([*lines, ""])


def _lines_of_tier(index: int, name: str, spans: Sequence[Subtitle], whole_s: float) -> list[str]:
    """Write a tier of intervals.

    `index` is its number in the file, from 1; it is filled with empty intervals up to `whole_s`.
    """
    intervals = _without_gaps(spans, whole_s)
    lines = [
        f"    item [{index}]:",
        '        class = "IntervalTier"',
        f'        name = "{_quoted(name)}"',
        "        xmin = 0",
        f"        xmax = {_number(whole_s)}",
        f"        intervals: size = {len(intervals)}",
    ]
    for number_of_interval, span in enumerate(intervals, start=1):
        lines += [
            f"        intervals [{number_of_interval}]:",
            f"            xmin = {_number(span.start_s)}",
            f"            xmax = {_number(span.end_s)}",
            f'            text = "{_quoted(span.text)}"',
        ]
    return lines


def spread_over_tiers(name: str, spans: Iterable[S]) -> list[tuple[str, list[S]]]:
    """Divide spans into as few tiers as are needed so that none overlap on a tier.

    Each span goes to the first tier that is free when it begins.

    Parameters
    ----------
    name
        Name of the first tier.
    spans
        (start, end, text) of each span, in seconds, in any order.

    Returns
    -------
    (name, spans) of each tier: the first has the given name, further ones are numbered from 2. Without spans
    there is one empty tier.
    """
    tiers: list[list[S]] = [[]]
    # Heaps, as there may be very many tiers: the smallest item is taken first.
    free_tiers = [0]  # indices of the tiers that are free
    taken_tiers: list[tuple[float, int]] = []  # (end of its last span, index) of each other tier
    for span in sorted(spans, key=lambda span: span[0]):
        start_s, end_s, _ = span
        while taken_tiers and taken_tiers[0][0] <= start_s:
            _, freed_tier = heappop(taken_tiers)
            heappush(free_tiers, freed_tier)
        if not free_tiers:
            free_tiers.append(len(tiers))
            tiers.append([])
        tier = heappop(free_tiers)
        tiers[tier].append(span)
        heappush(taken_tiers, (end_s, tier))
    return [(numbered(name, number), spans_of_tier) for number, spans_of_tier in enumerate(tiers, start=1)]


def _without_gaps(spans: Sequence[Subtitle], whole_s: float) -> list[Subtitle]:
    """Return spans with empty intervals between them and up to `whole_s`, as a tier of Praat has no gaps.

    A tier needs an interval, so that there is an empty one if there are no spans.
    """
    intervals = []
    filled_up_to_s = 0.0
    for span in spans:
        if span.start_s > filled_up_to_s:
            intervals.append(Subtitle(filled_up_to_s, span.start_s, ""))
        intervals.append(span)
        filled_up_to_s = span.end_s
    if whole_s > filled_up_to_s or not intervals:
        intervals.append(Subtitle(filled_up_to_s, whole_s, ""))
    return intervals


def _number(value: float) -> str:
    """Write a number to the microsecond."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def _quoted(text: str) -> str:
    """Write a text on one line, with its quotes doubled, as it is between quotes."""
    return one_line(text).replace('"', '""')
