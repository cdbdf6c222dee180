"""Read and write times: the only place that makes seconds of text."""

import math
import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.text import number_of

SHORTEST_S = 1 / 120
"""Length in seconds of the shortest frame that films have; nobody means a shorter span."""

CLOCK = re.compile(r"(?:(\d{1,9}):)?(\d{1,2}):(\d{1,2}(?:[.,]\d{0,30})?)", re.ASCII)
FRAME_CODE = re.compile(r"(\d{1,9})([:;])(\d\d)\2(\d\d)(\2|;)(\d{2,3})", re.ASCII)
DROPPING = {Fraction(30_000, 1001): 2, Fraction(60_000, 1001): 4}
"""Rates with drop-frame time code -> how many frame numbers a minute skips. Source: SMPTE ST 12-1."""

_HOURS = r"h|hrs?|hours?|std\.?|stunden?|heures?|horas?|ore"
_MINUTES = r"m|min\.?|mins|minutes?|minuten|minutos?|minut[io]|['′]"
_SECONDS = r"s|secs?\.?|sek\.?|seconds?|sekunden?|secondes?|segundos?|second[io]|''|[\"″]"
SPELLED = re.compile(
    rf"(?:(\d{{1,9}}) ?(?:{_HOURS})[ ,]*)?(?:(\d{{1,9}}) ?(?:{_MINUTES})[ ,]*)?"
    rf"(?:(\d{{1,9}}(?:[.,]\d{{0,30}})?) ?(?:{_SECONDS}))?",
    re.ASCII | re.IGNORECASE,
)
"""Hours, minutes and seconds with their units behind them: `1 min 5 s`, `12,5 sec`, `1'05"`."""

DOTTED = re.compile(r"(\d{1,2})\.(\d\d)\.(\d\d)", re.ASCII)
"""A clock with dots, as some languages write it; one dot alone would be a decimal sign."""

_SIGNS = str.maketrans("：；．，－＋−٫٬", ":;.,-+-.,")
_BLANKS = re.compile("(?<=[0-9])[ '’\u00a0\u202f](?=[0-9]{3})")
_PLAIN = {
    sign: re.compile(rf"[+-]?(?:\d+(?:[{sign}]\d*)?|[{sign}]\d+)(?:[eE][+-]?\d{{1,3}})?", re.ASCII)
    for sign in ".,"
}
_GROUPED = {
    sign: re.compile(rf"[+-]?[1-9]\d{{0,2}}(?:[{other}]\d{{3}})+(?:[{sign}]\d*)?", re.ASCII)
    for sign, other in (".,", ",.")
}
_UNSURE = re.compile(r"[^\0-\x7f]|,|\d[ ']\d|\.\d*\.")
"""Signs that `pointed` has to read by the whole column; without them, points are decimal."""
_FINE = re.compile(r"^\d*\.\d{7,}(?:[eE]-\d+)?$", re.ASCII | re.MULTILINE)
"""A number with more digits than people write of seconds: spreadsheets keep times as shares of a day."""


def western(text: str) -> str:
    """Write digits of any script, and signs of full width beside them, as those of ASCII.

    Examples
    --------
    >>> western("００：０１：３０"), western("١٫٥"), western("1²")
    ('00:01:30', '1.5', '1²')
    """
    if text.isascii():
        return text
    digits = (str(unicodedata.decimal(sign, sign)) for sign in text)
    return "".join(digits).translate(_SIGNS)


def seconds(text: str) -> float | None:
    """Read a number of seconds; None if the cell is empty."""
    if not text:
        return None
    if not abs(value := number_of(text)) < 1e9:
        problem = "a date, not a time" if math.isfinite(value) else "not a finite number of seconds"
        raise ManifestError(f"{text!r} is {problem}")
    return value


@checked
def time_code(text: str, rate: Fraction | None = None) -> float | None:
    """Read seconds, [hh:]mm:ss[.ms], or hh:mm:ss:ff at a rate; None if the cell is empty.

    A time code counts frames at the whole rate (24 at 23.976 fps). With `;` before the frames, or everywhere,
    it drops numbers, at 29.97 and 59.94 fps alone: two (at 59.94 four) at each minute but the tenth. Source:
    SMPTE ST 12-1.

    Parameters
    ----------
    rate
        Frames per second of hh:mm:ss:ff.

    Raises
    ------
    ManifestError
        If it is none of these, or has frames and no rate is known; or a time code that does not exist.

    Examples
    --------
    >>> time_code("00:01:30.5"), time_code("00:01:30:12", Fraction(24))
    (90.5, 90.5)
    """
    return time_in(text, rate)


def time_in(text: str, rate: Fraction | None = None) -> float | None:
    """Read a time as `time_code` does, without checks of the arguments: a table has many cells."""
    text = western(text)
    if text.replace(".", "", 1).isdecimal():
        return seconds(text)
    if {":", ";"}.isdisjoint(text):
        time_s = spelled_s(text)
        return seconds(text) if time_s is None else time_s
    if clock := CLOCK.fullmatch(text):
        seconds_text, _, digits = clock[3].replace(",", ".").partition(".")
        time_s = clock_s(clock[1], clock[2], seconds_text, digits)
        if time_s is not None:
            return time_s
    elif code := FRAME_CODE.fullmatch(text):
        if rate is None:
            raise ManifestError(
                f"{text!r} ends in frames: write hh:mm:ss.ms, or give their rate where there is a --rate"
            )
        return _of_label(text, code, rate)
    raise ManifestError(
        f"{text!r} is no time: expected seconds or hh:mm:ss.ms; hh:mm:ss:ff where there is a --rate"
    )


def clock_s(hours: str, minutes: str, seconds_text: str, digits: str) -> float | None:
    """Return the seconds of a time written as hours:minutes:seconds.digits; None if there is no such time.

    Parameters
    ----------
    hours
        "" where the time has none; minutes may be 60 and more then.
    digits
        What stands behind the decimal sign of the seconds; "" where nothing does.
    """
    if int(seconds_text) >= 60 or (hours and int(minutes) >= 60):
        return None
    whole_seconds = int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds_text)
    # The time is a fraction of whole numbers, so that it is rounded once.
    denominator: int = 10 ** len(digits)
    return (whole_seconds * denominator + int(digits or 0)) / denominator


def spelled_s(text: str) -> float | None:
    """Read a time whose units are spelled, or a clock with dots; None where it is neither.

    Examples
    --------
    >>> spelled_s("1 min 5 s"), spelled_s("12,5 sec"), spelled_s("00.01.05"), spelled_s("12.5")
    (65.0, 12.5, 65.0, None)
    """
    if clock := DOTTED.fullmatch(text):
        return clock_s(clock[1], clock[2], clock[3], "")
    spelled = SPELLED.fullmatch(text.strip())
    if spelled is None or not any(spelled.groups()):
        return None
    hours, minutes, whole_seconds = (group or "0" for group in spelled.groups())
    return int(hours) * 3600 + int(minutes) * 60 + float(whole_seconds.replace(",", "."))


def is_clock(text: str) -> bool:
    """Return whether a time is written as hours, minutes and seconds, or frames."""
    return not {":", ";"}.isdisjoint(western(text))


def _of_label(text: str, code: re.Match[str], rate: Fraction) -> float:
    """Return the seconds of a time code hh:mm:ss:ff, or hh:mm:ss;ff that drops numbers.

    Parameters
    ----------
    code
        The match of `FRAME_CODE` in the text.
    """
    labels = whole_rate(rate)
    dropped = 0
    if len(code[6]) > 2 and labels <= 100:
        raise ManifestError(
            f"{text!r}: three digits are no frames; are they milliseconds? Write '.' before them"
        )
    hours = int(code[1])
    minutes = int(code[3])
    whole_seconds = int(code[4])
    frames = int(code[6])
    if code[5] == ";":
        if rate not in DROPPING:
            raise ManifestError(
                f"{text!r}: ';' before the frames is drop frame, which 29.97 and 59.94 fps alone have; "
                f"at {float(rate):g} fps write ':'"
            )
        dropped = DROPPING[rate]
    is_dropped = dropped > frames and whole_seconds == 0 and minutes % 10 != 0
    if minutes >= 60 or whole_seconds >= 60 or frames >= labels or is_dropped:
        raise ManifestError(
            f"{text!r} is no time code hh:mm:ss:ff at {float(rate):g} frames per second"
            + (": drop frame leaves this number out" if is_dropped else "")
        )
    n_minutes = hours * 60 + minutes
    # Numbers are dropped at the start of each minute but every tenth.
    n_dropped = dropped * (n_minutes - n_minutes // 10)
    n_frames = (n_minutes * 60 + whole_seconds) * labels + frames - n_dropped
    return float(n_frames / rate)


def whole_rate(rate: Fraction) -> int:
    """Return how many frames time code counts in a second: the frame rate, rounded.

    Raises
    ------
    ManifestError
        The rate is neither whole nor n * 1000/1001: no time code counts its frames.
    """
    labels = round(rate)
    if rate not in (labels, Fraction(labels * 1000, 1001)):
        raise ManifestError(
            f"{float(rate):.12g} frames per second have no time code: its rates are whole, or n * 1000/1001; "
            "give times in seconds"
        )
    return labels


@checked
def frame_label(frames: int, rate: Fraction, *, drop: bool = False) -> str:
    """Write a number of frames as time code, hh:mm:ss:ff, or hh:mm:ss;ff that drops numbers.

    Examples
    --------
    >>> frame_label(17982, Fraction(30000, 1001), drop=True), frame_label(1800, Fraction(30000, 1001))
    ('00:10:00;00', '00:01:00:00')
    """
    labels = whole_rate(rate)
    if drop:
        dropped = DROPPING[rate]
        minute = 60 * labels - dropped
        tens, n_frames = divmod(frames, 10 * minute + dropped)
        frames += dropped * (9 * tens + max(n_frames - dropped, 0) // minute)
    n_seconds, n_frames = divmod(frames, labels)
    sign = ";" if drop else ":"
    return f"{n_seconds // 3600:02d}:{n_seconds // 60 % 60:02d}:{n_seconds % 60:02d}{sign}{n_frames:02d}"


@checked
def frame_rate(text: str) -> Fraction:
    """Read a frame rate; 23.976, 29.97 and 59.94 stand for 24000/1001, 30000/1001 and 60000/1001.

    Raises
    ------
    ManifestError
        If it is no number between 1 and 1000.
    """
    try:
        rate = Fraction(text)
    except (ValueError, ZeroDivisionError):
        rate = Fraction(0)
    if not 1 <= rate <= 1000:
        raise ManifestError(f"rate {text!r}: expected frames per second, such as 25 or 23.976")
    broadcast = Fraction(round(rate) * 1000, 1001)
    return broadcast if rate.denominator > 1 and abs(rate - broadcast) < Fraction(1, 100) else rate


def clock(time_s: float, point: str = ".") -> str:
    """Write seconds as hh:mm:ss and milliseconds."""
    n_seconds, milliseconds = divmod(round(1000 * time_s), 1000)
    return f"{n_seconds // 3600:02d}:{n_seconds // 60 % 60:02d}:{n_seconds % 60:02d}{point}{milliseconds:03d}"


def is_short(start_s: float | None, end_s: float | None) -> bool:
    """Return whether a span is shorter than a frame, beyond what rounding to milliseconds explains."""
    return start_s is not None and end_s is not None and 0 < end_s - start_s < SHORTEST_S - 0.0005


# --- columns of tables
# ---------------------------------------------------------------------------
def instants(
    cells: Sequence[str], usual: str = ".", rate: Fraction | None = None, n_columns: int = 1
) -> list[float | ManifestError | None]:
    """Read the columns of times of a table; all cells together show which sign is the decimal one.

    Parameters
    ----------
    cells
        The cells of all columns of times, one column behind the other.
    usual
        The decimal sign of tables of this kind; "" where it may be either.
    rate
        Frames per second of hh:mm:ss:ff.
    n_columns
        How many columns the cells are of.

    Returns
    -------
    list
        Seconds; None for an empty cell; an error, to be raised with its line, for one that is no time.

    Raises
    ------
    ManifestError
        Both signs are decimal in the column, a cell could be thousands as well, some are shares of a day, or
        some time codes drop labels and others do not.
    """
    is_plain = usual == "." and not _UNSURE.search("\n".join(cells))
    texts = [text.strip() for text in (cells if is_plain else pointed(cells, usual))]
    if rate in DROPPING:
        _refuse_mixed_codes(texts)
    values: list[float | ManifestError | None] = []
    for text in texts:
        try:
            values.append(time_in(text, rate))
        except ManifestError as error:
            values.append(error.with_traceback(None))  # which would keep this list, in a circle
    if _FINE.search("\n".join(texts)):
        _refuse_shares_of_a_day(texts, values, len(texts) // n_columns)
    return values


def _refuse_mixed_codes(texts: Sequence[str]) -> None:
    """Refuse a column in which some time codes drop frame numbers and others do not."""
    codes = map(FRAME_CODE.fullmatch, map(western, texts))
    if len({code[5] for code in codes if code}) > 1:
        raise ManifestError("some time codes drop labels (';') and some do not (':'): one time line has one")


def _refuse_shares_of_a_day(texts: Sequence[str], values: Sequence[object], n_rows: int) -> None:
    """Refuse times below 1 with many digits: a spreadsheet wrote them as shares of a day.

    They are kept if a row has such a time beside one of a second or more: then they are seconds.
    """
    fine_in_row = {}
    rows_of_seconds = set()
    for place, (text, value) in enumerate(zip(texts, values, strict=True)):
        row = place % n_rows
        if _FINE.fullmatch(text):
            fine_in_row[row] = text
        if isinstance(value, float) and value >= 1:
            rows_of_seconds.add(row)
    if fine_in_row and rows_of_seconds.isdisjoint(fine_in_row):
        raise ManifestError(
            f"{min(fine_in_row.values())!r}: times below 1 alone have many digits, as shares of a day have, "
            "by which spreadsheets keep times; format the column as text or number of seconds (value * "
            "86400)"
        )


def pointed(cells: Sequence[str], usual: str = "") -> list[str]:
    """Write numbers with decimal points; all cells together show which sign is the decimal one.

    Signs between thousands are left out, and cells that are no numbers stay as they are.

    Examples
    --------
    >>> pointed(["1.234", "0,5", "one"])
    ['1234', '0.5', 'one']
    """
    texts = [_BLANKS.sub("", western(cell.strip())) for cell in cells]
    sign = _decimal_sign(texts, usual)
    signs = str.maketrans({",": None} if sign == "." else {".": None, ",": "."})
    numbers = []
    for text, cell in zip(texts, cells, strict=True):
        is_number = text.isdecimal() or _PLAIN[sign].fullmatch(text) or _GROUPED[sign].fullmatch(text)
        numbers.append(text.translate(signs) if is_number else cell)
    return numbers


def time_or_nan(text: str) -> float:
    """Read one time, without other cells to tell its decimal sign; NaN if it is no time."""
    text = text.strip()
    # Only a number whose signs are doubtful, or with very many digits, needs the rules of a whole column.
    is_doubtful = _UNSURE.search(text) is not None or _FINE.search(text) is not None
    value: object = None
    with suppress(ManifestError):
        value = instants([text])[0] if is_doubtful and not is_clock(text) else time_in(text)
    return value if isinstance(value, float) else math.nan


def _decimal_sign(texts: Sequence[str], usual: str) -> str:
    """Find the decimal sign of the numbers in a column.

    Parameters
    ----------
    usual
        The sign if no cell shows it; "" if either may be meant.

    Raises
    ------
    ManifestError
        Some numbers need one sign and some the other, or a number can be read with both.
    """
    only: dict[str, str] = {}
    doubtful = ""
    for text in texts:
        if text.isdecimal():  # as most numbers are: without a sign, it says nothing of signs
            continue
        fits = [sign for sign in ".," if _PLAIN[sign].fullmatch(text) or _GROUPED[sign].fullmatch(text)]
        if len(fits) == 1:
            only.setdefault(fits[0], text)
        elif len(fits) == 2 and set(text) & {".", ","} and not (usual and usual in text):
            doubtful = doubtful or text
    if len(only) == 2:
        raise ManifestError(
            f"{only['.']!r} and {only[',']!r}: one of '.' and ',' is the decimal sign, not both"
        )
    if only:
        return next(iter(only))
    if doubtful:
        digits = re.sub("[.,]", "", doubtful)
        raise ManifestError(
            f"{doubtful!r} could be {doubtful.replace(',', '.')} or {digits}, and no other cell of the "
            "column says which: write one decimal sign everywhere (times: hh:mm:ss)"
        )
    return usual or "."
