"""Check and escape characters of texts; mask secrets in URLs; write cells that no spreadsheet runs.

A text from elsewhere (a manifest, a store, a server's answer) may be shown on a terminal. Control characters
move its cursor or rename its window (ECMA-48); bidirectional ones show letters in another order than they
have (Unicode Standard Annex 9). Manifests, provenance, attributes and tables therefore hold neither.
"""

import math
import re
import unicodedata
from collections.abc import Container, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Literal

# Controls (Cc), the twelve with the property Bidi_Control, halves of surrogate pairs (Cs).
_OTHERS = "\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_NOT_IN_A_LINE = re.compile(f"[\0-\x1f\u2028\u2029{_OTHERS}]")
_NOT_IN_LINES = re.compile(f"[\0-\x08\x0b\x0c\x0e-\x1f{_OTHERS}]")
_NOT_SHOWN = re.compile(f"[\0-\x08\x0b-\x1f\u2028\u2029{_OTHERS}]")
ROUNDING_OF_SHARES = 1e-9
"""A share this near to 0 or 1 is 0 or 1 but for the rounding of sums."""

LARGEST_ROUNDED = 1e15
"""Size from which on numbers are not rounded.

Floats have no digit behind the point there, and a decimal has 28 digits, too few for much larger numbers.
"""
SIGNS_OF_DIRECTION = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""The twelve characters with the property Bidi_Control: they have no width, and order letters around them."""
# Unicode's category -> what messages call such a character; the other characters above are bidirectional.
_KINDS = {
    "Cc": "control character",
    "Cs": "surrogate character",
    "Zl": "line separator",
    "Zp": "paragraph separator",
}
# A path that went through pathlib has lost one of its slashes.
_USER = re.compile(r"((?<=[A-Za-z0-9+.-]):/{1,2})[^/\s@]++@")
# A name that was cut at its '@'; after a host there is a port.
_PAIR = re.compile(r"((?<=[A-Za-z0-9+.-]):/{1,2})[^/\s@:'\"]+:(?![0-9]{1,5}(?:[^0-9A-Za-z]|$))[^/\s@'\"]+")
# Also of a URL of which a message names the last part alone.
_QUERY = re.compile(
    r"(?P<url>\b(?i:https?|s3|hf):/{1,2}[^\s?'\"]++)(?P<query>\?[^\s'\"]++)?|\?(?=[\w.%-]+=)[^\s'\"]++"
)
# A scheme of one letter is the drive of a path of Windows.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:[/\\]+(?=[^/\\])")
# On Windows.
_NOT_IN_A_NAME = re.compile(r'[<>:"|?*/\\]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(?=\.|$)", re.IGNORECASE)
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")


MAX_OF_A_SENTENCE = 1008
"""Characters of an error; a cell or a name that it quotes may have millions."""


def unsuitable(text: str, *, line_breaks: bool = False) -> str | None:
    r"""Describe the first character that a text must not hold; None if there is none.

    Parameters
    ----------
    line_breaks
        Whether tabs and line breaks (also U+2028 and U+2029) are allowed, as in a caption.

    Examples
    --------
    >>> unsuitable("films of 1994"), unsuitable("two\nlines", line_breaks=True)
    (None, None)
    >>> unsuitable("films\x1b[2J")
    'holds the control character U+001B, which must be removed'
    """
    pattern = _NOT_IN_LINES if line_breaks else _NOT_IN_A_LINE
    match = pattern.search(text)
    if match is None:
        return None
    character = match[0]
    kind = _KINDS.get(unicodedata.category(character), "bidirectional character")
    return f"holds the {kind} U+{ord(character):04X}, which must be removed"


NORMALISED_AT_ONCE = 1_000
"""Characters that are normalised in one call: Python sorts the marks on a letter in time that grows with the
square of their number (Unicode Standard, 3.11), and 400,000 marks on one letter took minutes."""


def normalised(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Normalise a text to one of Unicode's forms, in time proportional to its length.

    A long text is normalised in pieces of `NORMALISED_AT_ONCE` characters or a few more: a piece does not end
    between a letter and its marks, such as accents. Only if a letter has more than `NORMALISED_AT_ONCE`
    marks, they are divided, and the result may differ from that of one call.

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
        latest_end = min(end + NORMALISED_AT_ONCE, len(text))
        while end < latest_end and _may_combine(text[end]):  # with the last sign of the piece
            end += 1
        pieces.append(unicodedata.normalize(form, text[start:end]))
        start = end
    return "".join(pieces)


def _may_combine(sign: str) -> bool:
    """Return whether a sign may become one with the sign before it: a mark, or a vowel or final of Hangul."""
    is_mark = unicodedata.category(sign).startswith("M")
    is_later_part_of_hangul = "\u1160" <= sign <= "\u11ff"
    return is_mark or is_later_part_of_hangul


def composed(text: str) -> str:
    """Normalise a text to Unicode's composed form (NFC), because some systems decompose accents.

    Examples
    --------
    >>> composed("Ame\u0301lie")
    'Amélie'
    """
    return normalised("NFC", text)


def known_spelling(name: str, names: Container[str]) -> str:
    """Return a name as it is among some names: as it is typed, or composed (`composed`) if it is not there.

    Names that are known are composed, and a terminal, or a list that macOS wrote, may decompose them.
    """
    return name if name in names else composed(name)


def file_name(text: str) -> str:
    """Return a name for a file or folder that is valid on all systems, made from a text.

    Examples
    --------
    >>> file_name("Alien: Resurrection?"), file_name("Nul"), file_name("..")
    ('Alien_ Resurrection_', 'Nul_', '_')
    """
    name = _NOT_IN_A_NAME.sub("_", composed(text))
    name = name.lstrip(".")  # would make the file hidden
    name = name.rstrip(". ")  # Windows drops them
    if not name:
        return "_"
    reserved = _RESERVED.match(name)  # a device's name on Windows, with or without an ending
    if reserved:
        return f"{reserved[1]}_{name[reserved.end() :]}"
    return name


def visible(text: str, *, line_breaks: bool = True) -> str:
    r"""Escape control characters, which a terminal would obey, as ``\uXXXX``.

    Parameters
    ----------
    line_breaks
        Whether tabs and line feeds are kept.

    Examples
    --------
    >>> print(visible("films\x1b[2J"))
    films\u001b[2J
    """
    pattern = _NOT_SHOWN if line_breaks else _NOT_IN_A_LINE
    return pattern.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def masked(text: str) -> str:
    """Replace user names, passwords and queries of URLs in a text by asterisks: they may be secrets.

    Examples
    --------
    >>> masked("no store at https://me:secret@lab.example/films?token=secret")
    'no store at https://***@lab.example/films?***'
    """
    without_users = _USER.sub(r"\1***@", text)
    without_pairs = _PAIR.sub(r"\1***", without_users)
    return _QUERY.sub(_without_query, without_pairs)


def _without_query(match: re.Match[str]) -> str:
    """Return the replacement for a match of `_QUERY`, which has "?***" in place of a query.

    The match is a URL with or without a query, or a query alone.
    """
    url = match["url"]
    if url is None:
        return "?***"
    if match["query"] is None:
        return url
    return f"{url}?***"


def unescaped(stream: Any) -> Any:
    """Return the stream that control characters can be written to, for progress bars and colours.

    The standard streams of a command may be wrapped, so that control characters in texts are escaped; then it
    is the stream inside. Any other stream is returned as it is.
    """
    return getattr(stream, "raw_stream", stream)


def is_address(place: object) -> bool:
    """Tell whether a text or path is an address (URL), its scheme in capitals or not (RFC 3986, section 3.1).

    An address that was made a `Path` has lost a slash, or has backslashes, and is still one.

    Examples
    --------
    >>> is_address("HTTP://lab.example/films"), is_address("https:/lab.example/films"), is_address("C:/films")
    (True, True, False)
    """
    return _ADDRESS.match(str(place)) is not None


def as_address(place: object) -> str:
    """Write an address with the two slashes that it loses when it is made a `Path`.

    Examples
    --------
    >>> as_address("https:/lab.example/films.csv"), as_address("https://lab.example/films.csv")
    ('https://lab.example/films.csv', 'https://lab.example/films.csv')
    """
    scheme, _, rest = str(place).replace("\\", "/").partition(":")
    return f"{scheme}://{rest.lstrip('/')}"


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
    is_formula = _FORMULA.match(cell) is not None and not is_number
    return f"'{cell}" if is_formula else cell


def as_written(cell: str) -> str:
    """Return a cell as it was before `not_a_formula` put an apostrophe in front of it; others unchanged."""
    has_apostrophe = cell.startswith("'") and _FORMULA.match(cell) is not None
    return cell.removeprefix("'") if has_apostrophe else cell


def number_of(text: str) -> float:
    """Convert a text to a number; NaN if it is none.

    A text with an underscore, such as 1_0, is no number here, although `float` accepts it: this is a notation
    of Python's code, and not of tables.
    """
    if "_" in text:
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.nan


def shortened(text: str) -> str:
    """Shorten a very long sentence, such as one that quotes a file, to its beginning and its end.

    Examples
    --------
    >>> len(shortened("x" * 100_000))
    1023
    """
    if len(text) <= MAX_OF_A_SENTENCE:
        return text
    length_of_end = MAX_OF_A_SENTENCE // 4
    beginning = text[: MAX_OF_A_SENTENCE - length_of_end]
    end = text[-length_of_end:]
    return f"{beginning} [{len(text) - MAX_OF_A_SENTENCE:,} more] {end}"


def first_few(texts: Sequence[str], maximum: int) -> str:
    """Join the first of some texts, and count the rest.

    Examples
    --------
    >>> first_few(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    shown = ", ".join(texts[:maximum])
    n_more = len(texts) - maximum
    if n_more <= 0:
        return shown
    return f"{shown} and {n_more:,} more"


def counted(number: int, singular: str, many: str = "") -> str:
    """Write a number with its noun in the singular or plural; the noun may include a verb.

    Examples
    --------
    >>> counted(1, "clip"), counted(1200, "clip"), counted(1, "film is", "films are")
    ('1 clip', '1,200 clips', '1 film is')
    """
    plural = many or f"{singular}s"
    noun = singular if number == 1 else plural
    return f"{number:,} {noun}"


def three_digits(value: float) -> str:
    """Write a number with three digits that count, and all digits before the point; never as a power of ten.

    Examples
    --------
    >>> three_digits(3121.4), three_digits(12.52), three_digits(2.5e-05), three_digits(0)
    ('3,121', '12.5', '0.000025', '0')
    """
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{Decimal(f'{value:.3g}'):f}"


def rounded(value: float, digits: int = 0) -> str:
    """Round a number as written in decimals, with halves away from zero: 42.5 becomes 43.

    What rounds to 0 has no sign. From `LARGEST_ROUNDED` on, a number is written with a power of ten: 1e+30.
    Files may state any number.

    Examples
    --------
    >>> from obygaze_features.text import rounded
    >>> rounded(42.5), rounded(0.125, 2), rounded(-0.125, 2), rounded(-0.001, 2)
    ('43', '0.13', '-0.13', '0.00')
    """
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= LARGEST_ROUNDED:
        return f"{value:g}"
    # A float has about 16 digits, the last of which may be wrong: 100 * 0.285 is 28.499999999999996. With
    # twelve digits it is 28.5, which is rounded up.
    decimal = Decimal(f"{value:.12g}")
    unit_of_last_digit = Decimal(1).scaleb(-digits)  # 0.01 for two digits
    result = decimal.quantize(unit_of_last_digit, ROUND_HALF_UP)
    return f"{result.copy_abs() if result == 0 else result:f}"


def signed(value: float, digits: int = 0) -> str:
    """Round a number (`rounded`) and write it with its sign; what rounds to 0 has a plus.

    Examples
    --------
    >>> from obygaze_features.text import signed
    >>> signed(0.125, 2), signed(-0.125, 2), signed(-0.001, 2)
    ('+0.13', '-0.13', '+0.00')
    """
    text = rounded(value, digits)
    return text if text.startswith("-") or math.isnan(value) else f"+{text}"


def percentage(share: float, rounded_to: str = "") -> str:
    """Write a share as a whole percentage, without its sign; "<1" or ">99" for what rounds to 0 or 100.

    Only a share that is 0 or 1, but for the rounding of sums, is "0" or "100". `rounded_to` is the percentage
    to write if it is not the nearest, as of shares that must add up to 100.

    Examples
    --------
    >>> from obygaze_features.text import percentage
    >>> percentage(0.165), percentage(0.001), percentage(0.999), percentage(1.0)
    ('17', '<1', '>99', '100')
    """
    text = rounded_to or rounded(100 * share)
    if text == "0" and share > ROUNDING_OF_SHARES:
        return "<1"
    if text == "100" and share < 1 - ROUNDING_OF_SHARES:
        return ">99"
    return text
