"""Check and escape characters of texts; mask secrets in URLs; write cells that no spreadsheet runs.

A text from elsewhere (a manifest, a store, a server's answer) may be shown on a terminal. Control characters
move its cursor or rename its window (ECMA-48); bidirectional ones show letters in another order than they
have (Unicode Standard Annex 9). Manifests, provenance, attributes and tables therefore hold neither.
"""

import math
import re
import unicodedata
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Literal

# Controls (Cc), the twelve with the property Bidi_Control, halves of surrogate pairs (Cs).
_OTHERS = "\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_NOT_IN_A_LINE = re.compile(f"[\0-\x1f\u2028\u2029{_OTHERS}]")
_NOT_IN_LINES = re.compile(f"[\0-\x08\x0b\x0c\x0e-\x1f{_OTHERS}]")
_NOT_SHOWN = re.compile(f"[\0-\x08\x0b-\x1f\u2028\u2029{_OTHERS}]")
_CATEGORIES = {"Cc": "control", "Cs": "surrogate", "Zl": "line separator", "Zp": "paragraph separator"}
# A path that went through pathlib has lost one of its slashes.
_USER = re.compile(r"((?<=[A-Za-z0-9+.-]):/{1,2})[^/\s@]++@")
# A name that was cut at its '@'; after a host there is a port.
_PAIR = re.compile(r"((?<=[A-Za-z0-9+.-]):/{1,2})[^/\s@:'\"]+:(?![0-9]{1,5}(?:[^0-9A-Za-z]|$))[^/\s@'\"]+")
# Also of a URL of which a message names the last part alone.
_QUERY = re.compile(
    r"(?P<url>\b(?:https?|s3|hf):/{1,2}[^\s?'\"]++)(?P<query>\?[^\s'\"]++)?|\?(?=[\w.%-]+=)[^\s'\"]++"
)
# On Windows.
_NOT_IN_A_NAME = re.compile(r'[<>:"|?*/\\]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(?=\.|$)", re.IGNORECASE)
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")


MOST_OF_A_SENTENCE = 1008
"""Characters of an error; a cell or a name that it quotes may have millions."""


def unsuitable(text: str, *, lines: bool = False) -> str | None:
    r"""Describe the first character that a text must not hold; None if there is none.

    Parameters
    ----------
    lines
        Whether tabs and line breaks (also U+2028 and U+2029) are allowed, as in a caption.

    Examples
    --------
    >>> unsuitable("films of 1994"), unsuitable("two\nlines", lines=True)
    (None, None)
    >>> unsuitable("films\x1b[2J")
    'holds the control character U+001B, which must be removed'
    """
    match = (_NOT_IN_LINES if lines else _NOT_IN_A_LINE).search(text)
    if match is None:
        return None
    kind = _CATEGORIES.get(unicodedata.category(match[0]), "bidirectional")
    kind = kind if kind.endswith("separator") else f"{kind} character"
    return f"holds the {kind} U+{ord(match[0]):04X}, which must be removed"


NORMALISED_AT_ONCE = 1_000
"""Characters that are normalised in one call: Python sorts the marks on a letter in time that grows with the
square of their number (Unicode Standard, 3.11), and 400,000 marks on one letter took minutes."""


def normalised(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Normalise a text to one of Unicode's forms, in time proportional to its length.

    A long text is normalised in pieces. A piece ends before a character that cannot combine with those before
    it, as an accent would. Only a letter with more than `NORMALISED_AT_ONCE` marks may come out otherwise
    than from one call.

    Examples
    --------
    >>> normalised("NFC", "Ame\u0301lie")
    'Amélie'
    """
    if text.isascii():
        return text
    pieces = []
    start = 0
    while start < len(text):
        end = start + NORMALISED_AT_ONCE
        latest_end = end + NORMALISED_AT_ONCE
        while end < min(latest_end, len(text)) and _may_combine(text[end]):
            end += 1
        pieces.append(unicodedata.normalize(form, text[start:end]))
        start = end
    return "".join(pieces)


def _may_combine(sign: str) -> bool:
    """Whether a sign may become one with the sign before it: a mark, or a vowel or final of Hangul."""
    return unicodedata.category(sign).startswith("M") or "\u1160" <= sign <= "\u11ff"


def composed(text: str) -> str:
    """Normalise a text to Unicode's composed form (NFC), because some systems decompose accents.

    Examples
    --------
    >>> composed("Ame\u0301lie")
    'Amélie'
    """
    return normalised("NFC", text)


def file_name(text: str) -> str:
    """Return a name for a file or folder that is valid on all systems, made from a text.

    Examples
    --------
    >>> file_name("Alien: Resurrection?"), file_name("Nul"), file_name("..")
    ('Alien_ Resurrection_', 'Nul_', '_')
    """
    name = _NOT_IN_A_NAME.sub("_", composed(text)).lstrip(".").rstrip(". ")
    return _RESERVED.sub(r"\1_", name, count=1) if _RESERVED.match(name) else name or "_"


def visible(text: str, *, lines: bool = True) -> str:
    r"""Escape control characters, which a terminal would obey, as ``\uXXXX``.

    Parameters
    ----------
    lines
        Whether tabs and line feeds are kept.

    Examples
    --------
    >>> print(visible("films\x1b[2J"))
    films\u001b[2J
    """
    return (_NOT_SHOWN if lines else _NOT_IN_A_LINE).sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def masked(text: str) -> str:
    """Replace user names, passwords and queries of URLs in a text by asterisks: they may be secrets.

    Examples
    --------
    >>> masked("no store at https://me:secret@lab.example/films?token=secret")
    'no store at https://***@lab.example/films?***'
    """
    return _QUERY.sub(_without_query, _PAIR.sub(r"\1***", _USER.sub(r"\1***@", text)))


def _without_query(found: re.Match[str]) -> str:
    """Return the replacement for a match of `_QUERY`: the URL, with "?***" in place of its query if any."""
    url = found["url"] or ""
    return url if url and not found["query"] else f"{url}?***"


def unescaped(stream: Any) -> Any:
    """Return the stream below the one that shows control characters, for progress bars and colours."""
    return getattr(stream, "unescaped", stream)


def not_a_formula(cell: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run as a formula; numbers stay as they are.

    A text that begins with an apostrophe and a formula gets another one, so that `as_written` can restore
    every text. Source: OWASP, CSV Injection.

    Examples
    --------
    >>> not_a_formula("=1+1"), not_a_formula("-0.5"), not_a_formula("-abc")
    ("'=1+1", '-0.5', "'-abc")
    """
    is_number = cell == cell.strip() and not math.isnan(number_of(cell))
    return f"'{cell}" if _FORMULA.match(cell) and not is_number else cell


def as_written(cell: str) -> str:
    """Undo `not_a_formula`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def number_of(text: str) -> float:
    """Convert a text to a number; NaN if it is none.

    Underscores, as in 1_0, are allowed only in Python's own numbers, and so are none here.
    """
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def shortened(text: str) -> str:
    """Shorten a very long sentence, such as one that quotes a file, to its beginning and its end.

    Examples
    --------
    >>> len(shortened("x" * 100_000))
    1023
    """
    if len(text) <= MOST_OF_A_SENTENCE:
        return text
    end = MOST_OF_A_SENTENCE // 4
    return f"{text[: MOST_OF_A_SENTENCE - end]} [{len(text) - MOST_OF_A_SENTENCE:,} more] {text[-end:]}"


def first_few(texts: Sequence[str], most: int) -> str:
    """Join the first of some texts, and count the rest.

    Examples
    --------
    >>> first_few(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    rest = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def counted(number: int, singular: str, many: str = "") -> str:
    """Write a number with its noun in the singular or plural; the noun may include a verb.

    Examples
    --------
    >>> counted(1, "clip"), counted(1200, "clip"), counted(1, "film is", "films are")
    ('1 clip', '1,200 clips', '1 film is')
    """
    return f"{number:,} {singular if number == 1 else many or singular + 's'}"


def rounded(value: float, digits: int = 0) -> str:
    """Round a number as written in decimals, with halves away from zero: 42.5 becomes 43.

    Examples
    --------
    >>> from obygaze_features.text import rounded
    >>> rounded(42.5), rounded(0.125, 2), rounded(-0.125, 2)
    ('43', '0.13', '-0.13')
    """
    if not math.isfinite(value):
        return str(value)
    # Digits after the twelfth come from the binary representation, as in 100 * 0.285, which is 28.499999....
    exact = Decimal(f"{value:.12g}")
    return f"{exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):f}"
