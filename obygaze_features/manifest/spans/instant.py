"""Read and write times. All texts of times are converted to seconds here."""

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.text import SIGNS_OF_DIRECTION, number_of

SHORTEST_S = 1 / 120
"""Length in seconds of the shortest frame that films have; nobody means a shorter span."""

MIN_DATE_S = 1e9
"""A number of this size is a date, in seconds since 1970: no film lasts 31 years."""

CLOCK = re.compile(
    r"(?:(?P<hours>\d{1,9}):)?(?P<minutes>\d{1,2}):(?P<seconds>\d{1,2}(?:[.,]\d{0,30})?)", re.ASCII
)
"""A time such as 1:02:03.5 or 62:03,5."""

FRAME_CODE = re.compile(
    r"(?P<hours>\d{1,9})(?P<sign>[:;])(?P<minutes>\d\d)(?P=sign)(?P<seconds>\d\d)"
    r"(?P<sign_of_frames>(?P=sign)|;)(?P<frames>\d{2,3})",
    re.ASCII,
)
"""A time code such as 01:02:03:12, or 01:02:03;12 with drop frame."""

ROUNDING_OF_RATES = Fraction(1, 100)
"""A rate that is nearer to a broadcast rate, in frames per second, is a rounded one: 23.976 is 24000/1001."""

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

_DURATION = re.compile(
    r"P(?:(?P<days>\d{1,5})D)?T(?=\d)"
    r"(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9}(?:[.,]\d{0,30})?)S)?",
    re.ASCII | re.IGNORECASE,
)
"""A duration of ISO 8601, as in JSON and XML: `PT1M5.5S`; pandas writes `P0DT0H1M5.5S`.

Source: ISO 8601-1, 5.5.2.
"""

_DAYS = re.compile(r"(\d{1,5}) days?,? (?=\d)", re.ASCII | re.IGNORECASE)
"""Days before a clock: pandas writes `0 days 00:01:05.500000`, and Python `1 day, 0:01:05`."""

_DAY_S = 86_400

DOTTED = re.compile(r"(\d{1,2})\.(\d\d)\.(\d\d)", re.ASCII)
"""A clock with dots, as some languages write it; one dot alone would be a decimal sign."""

_DOTTED_MINUTES = re.compile(r"(\d{1,2})\.([0-5]\d)", re.ASCII)
"""A number that may be minutes and seconds with a dot: 59.30 beside 1.00.10 is 59 minutes and a half."""

_LIKE_MINUTES = re.compile(r"\d{1,3}\.[0-5]\d", re.ASCII)
"""A number that may be the minutes and seconds of a film, up to 999 of them: 105.30."""

MIN_ENDINGS = 3
"""Different endings, such as .05, .30 and .59, from which on numbers may be minutes and seconds.

Of numbers of seconds with two decimals, three endings are all below .60 in a fifth of the columns, which are
then asked about in vain; steps of half a second have two endings alone."""

_SIGNS = str.maketrans("：；．，－＋−٫٬", ":;.,-+-.,", SIGNS_OF_DIRECTION)
_BLANKS = re.compile("(?<=[0-9])[ '’\u00a0\u202f](?=[0-9]{3})")
# Decimal sign -> pattern of numbers without signs between thousands, such as 1234.5 or 1e-3.
_PLAIN_NUMBER = {
    sign: re.compile(rf"[+-]?(?:\d+(?:[{sign}]\d*)?|[{sign}]\d+)(?:[eE][+-]?\d{{1,3}})?", re.ASCII)
    for sign in ".,"
}
# Decimal sign -> pattern of numbers with the other sign between thousands, such as 1,234.5.
_GROUPED_NUMBER = {
    sign: re.compile(rf"[+-]?[1-9]\d{{0,2}}(?:[{other}]\d{{3}})+(?:[{sign}]\d*)?", re.ASCII)
    for sign, other in (".,", ",.")
}
_UNSURE = re.compile(r"[^\0-\x7f]|,|\d[ ']\d|\.\d*\.")
"""Signs that `pointed` has to read by the whole column; without them, points are decimal."""
_MANY_DIGITS = re.compile(r"^\d*\.\d{7,}(?:[eE]-\d+)?$", re.ASCII | re.MULTILINE)
"""A number with more digits than people write of seconds: spreadsheets keep times as shares of a day."""


def with_ascii_digits(text: str) -> str:
    """Replace digits of any script, and full-width signs such as `：`, by those of ASCII.

    Signs of direction, which editors of Hebrew and Arabic put around a time, are removed.

    Examples
    --------
    >>> with_ascii_digits("００：０１：３０"), with_ascii_digits("١٫٥"), with_ascii_digits("1²")
    ('00:01:30', '1.5', '1²')
    """
    if text.isascii():
        return text
    digits = (str(unicodedata.decimal(sign, sign)) for sign in text)
    return "".join(digits).translate(_SIGNS)


def seconds(text: str) -> float | None:
    """Read a number of seconds; None if the cell is empty.

    Raises
    ------
    ManifestError
        The text is no finite number, or so large that it is a date.
    """
    if not text:
        return None
    value = number_of(text)
    if not math.isfinite(value):
        raise ManifestError(f"{text!r} is not a finite number of seconds")
    if abs(value) >= MIN_DATE_S:
        raise ManifestError(f"{text!r} is a date, not a time")
    return value


@checked
def time_code(text: str, rate: Fraction | None = None) -> float | None:
    """Read seconds, [hh:]mm:ss[.ms], or hh:mm:ss:ff at a rate; None if the cell is empty.

    A time code hh:mm:ss:ff numbers frames at the rounded rate (24 at 23.976 fps). A `;` before the frames
    means drop frame, which exists at 29.97 and 59.94 fps: the first two (at 59.94 fps four) frame numbers of
    each minute are skipped, except in every tenth minute. Source: SMPTE ST 12-1.

    Parameters
    ----------
    rate
        Frames per second of hh:mm:ss:ff.

    Raises
    ------
    ManifestError
        The text is no time, has frames and no rate is known, or is a time code that does not exist.

    Examples
    --------
    >>> time_code("00:01:30.5"), time_code("00:01:30:12", Fraction(24))
    (90.5, 90.5)
    """
    return time_in(text, rate)


def time_in(text: str, rate: Fraction | None = None) -> float | None:
    """Read a time as `time_code` does, but without a check of argument types, which is slow over many cells.

    The forms are tried from the most frequent one to the rarest.
    """
    text = with_ascii_digits(text)

    # 1. Without colons: 90 or 90.5; 1 min 30 s; a number in another form, such as 9e1.
    is_usual_number = text.replace(".", "", 1).isdecimal()
    if is_usual_number:
        return seconds(text)
    if {":", ";"}.isdisjoint(text):
        time_s = spelled_s(text)
        return seconds(text) if time_s is None else time_s

    # 2. A clock: 00:01:30.5, or 0 days 00:01:30.5, as data frames write it.
    days = _DAYS.match(text)
    start_of_clock = days.end() if days else 0
    clock_match = CLOCK.fullmatch(text, start_of_clock)
    if clock_match:
        seconds_text, _, digits = clock_match["seconds"].replace(",", ".").partition(".")
        time_s = clock_s(clock_match["hours"], clock_match["minutes"], seconds_text, digits)
        if time_s is not None:
            time_of_days_s = int(days[1]) * _DAY_S if days else 0
            return time_s + time_of_days_s

    # 3. A time code that ends in frames: 00:01:30:12.
    code = FRAME_CODE.fullmatch(text)
    if code:
        if rate is None:
            raise ManifestError(
                f"{text!r} ends in frames: write hh:mm:ss.ms, or give their rate where there is a --rate"
            )
        return _seconds_of_time_code(text, code, rate)
    raise ManifestError(
        f"{text!r} is no time: expected seconds or hh:mm:ss.ms; hh:mm:ss:ff where there is a --rate"
    )


def clock_s(hours: str, minutes: str, seconds_text: str, digits: str) -> float | None:
    """Return the seconds of a time written as hours:minutes:seconds.digits; None if there is no such time.

    Parameters
    ----------
    hours
        "" if the time has none; then there may be 60 minutes and more.
    digits
        The digits behind the decimal sign of the seconds; "" if there are none.
    """
    if int(seconds_text) >= 60 or (hours and int(minutes) >= 60):
        return None
    whole_seconds = int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds_text)
    # Computed as a fraction of integers, so that only the division rounds.
    denominator: int = 10 ** len(digits)
    return (whole_seconds * denominator + int(digits or 0)) / denominator


def spelled_s(text: str) -> float | None:
    """Read a time with units (`1 min 5 s`, `PT1M5S`), or a clock with dots (`00.01.05`), in seconds.

    None if it is neither.

    Examples
    --------
    >>> spelled_s("1 min 5 s"), spelled_s("12,5 sec"), spelled_s("00.01.05"), spelled_s("12.5")
    (65.0, 12.5, 65.0, None)
    >>> spelled_s("PT1M5.5S"), spelled_s("P1DT2H3M")
    (65.5, 93780.0)
    """
    clock = DOTTED.fullmatch(text)
    if clock:
        return clock_s(clock[1], clock[2], clock[3], "")
    text = text.strip()
    duration = _DURATION.fullmatch(text)
    if duration:
        days, hours, minutes, seconds_text = duration.groups(default="0")
    else:
        spelled = SPELLED.fullmatch(text)
        if spelled is None or not any(spelled.groups()):  # each part may lack, so that an empty text matches
            return None
        days = "0"
        hours, minutes, seconds_text = spelled.groups(default="0")
    whole_minutes = (int(days) * 24 + int(hours)) * 60 + int(minutes)
    return whole_minutes * 60 + float(seconds_text.replace(",", "."))


def is_clock(text: str) -> bool:
    """Return whether a time is written as hours, minutes and seconds, or frames."""
    return not {":", ";"}.isdisjoint(with_ascii_digits(text))


def has_own_unit(text: str) -> bool:
    """Return whether a time says its units itself, as a clock does, or `1 min 5 s`: it is no mere number."""
    return is_clock(text) or spelled_s(with_ascii_digits(text).strip()) is not None


def _seconds_of_time_code(text: str, code: re.Match[str], rate: Fraction) -> float:
    """Return the seconds of a time code hh:mm:ss:ff, or hh:mm:ss;ff with drop frame.

    A time code counts frames as if a second had a whole number of them: 30 at 29.97 frames per second. Drop
    frame lets it keep up with the clock nevertheless: at the start of each minute but every tenth, some
    numbers are skipped, so that 00:00:59;29 is followed by 00:01:00;02. No frame is left out.

    Parameters
    ----------
    text
        The time code, for messages.
    code
        The same, as `FRAME_CODE` matches it.
    rate
        Frames per second.

    Raises
    ------
    ManifestError
        There is no such time code at this rate.
    """
    numbers_per_second = whole_rate(rate)
    if len(code["frames"]) > 2 and numbers_per_second <= 100:
        raise ManifestError(
            f"{text!r}: three digits are no frames; are they milliseconds? Write '.' before them"
        )
    hours = int(code["hours"])
    minutes = int(code["minutes"])
    whole_seconds = int(code["seconds"])
    frames = int(code["frames"])
    is_drop_frame = code["sign_of_frames"] == ";"
    skipped_per_minute = _numbers_skipped_per_minute(text, rate) if is_drop_frame else 0

    problem = f"{text!r} is no time code hh:mm:ss:ff at {float(rate):g} frames per second"
    is_in_minute_that_skips = minutes % 10 != 0
    is_skipped = is_in_minute_that_skips and whole_seconds == 0 and frames < skipped_per_minute
    if is_skipped:
        raise ManifestError(f"{problem}: drop frame leaves this number out")
    if minutes >= 60 or whole_seconds >= 60 or frames >= numbers_per_second:
        raise ManifestError(problem)

    # How many numbers are before this one, and how many of these are of no frame.
    n_minutes = hours * 60 + minutes
    n_numbers_before = (n_minutes * 60 + whole_seconds) * numbers_per_second + frames
    n_minutes_that_skip = n_minutes - n_minutes // 10
    n_skipped_before = skipped_per_minute * n_minutes_that_skip
    n_frames_before = n_numbers_before - n_skipped_before
    return float(n_frames_before / rate)


def _numbers_skipped_per_minute(text: str, rate: Fraction) -> int:
    """Return how many frame numbers drop frame skips in a minute; `text` is the time code, for the message.

    Raises
    ------
    ManifestError
        The rate has no drop frame.
    """
    if rate not in DROPPING:
        raise ManifestError(
            f"{text!r}: ';' before the frames is drop frame, which 29.97 and 59.94 fps alone have; "
            f"at {float(rate):g} fps write ':'"
        )
    return DROPPING[rate]


def whole_rate(rate: Fraction) -> int:
    """Return how many frames a time code numbers in a second: the frame rate, rounded.

    Raises
    ------
    ManifestError
        There are no time codes of this rate: it is neither an integer nor n * 1000/1001.
    """
    rounded_rate = round(rate)
    if rate not in (rounded_rate, Fraction(rounded_rate * 1000, 1001)):
        raise ManifestError(
            f"{float(rate):.12g} frames per second have no time code: its rates are whole, or n * 1000/1001; "
            "give times in seconds"
        )
    return rounded_rate


@checked
def frame_label(frames: int, rate: Fraction, *, drop: bool = False) -> str:
    """Write a number of frames as a time code, hh:mm:ss:ff, or hh:mm:ss;ff with drop frame.

    Examples
    --------
    >>> frame_label(17982, Fraction(30000, 1001), drop=True), frame_label(1800, Fraction(30000, 1001))
    ('00:10:00;00', '00:01:00:00')
    """
    numbers_per_second = whole_rate(rate)
    n_skipped = _n_skipped_numbers(frames, rate) if drop else 0
    n_seconds, n_frames = divmod(frames + n_skipped, numbers_per_second)
    sign = ";" if drop else ":"
    return f"{n_seconds // 3600:02d}:{n_seconds // 60 % 60:02d}:{n_seconds % 60:02d}{sign}{n_frames:02d}"


def _n_skipped_numbers(frames: int, rate: Fraction) -> int:
    """Return how many frame numbers drop frame skips in the time of some frames from the start.

    Of ten minutes, the first one skips no number, and each of the other nine skips some at its start. At
    29.97 fps the first one has 1800 frames and the others 1798 each, so that ten minutes have 17982.
    """
    skipped_per_minute = DROPPING[rate]
    frames_of_first_minute = 60 * whole_rate(rate)
    frames_of_other_minute = frames_of_first_minute - skipped_per_minute
    frames_of_ten_minutes = frames_of_first_minute + 9 * frames_of_other_minute
    n_ten_minutes, remaining_frames = divmod(frames, frames_of_ten_minutes)
    n_minutes_that_skip = 9 * n_ten_minutes
    frames_after_first_minute = remaining_frames - frames_of_first_minute
    if frames_after_first_minute >= 0:
        # The minute that these frames begin skips numbers already.
        n_minutes_that_skip += 1 + frames_after_first_minute // frames_of_other_minute
    return skipped_per_minute * n_minutes_that_skip


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
    broadcast_rate = Fraction(round(rate) * 1000, 1001)
    is_whole = rate.denominator == 1
    is_rounded_broadcast_rate = abs(rate - broadcast_rate) < ROUNDING_OF_RATES
    return broadcast_rate if is_rounded_broadcast_rate and not is_whole else rate


def clock(time_s: float, point: str = ".") -> str:
    """Write seconds as hh:mm:ss.mmm, with `point` before the milliseconds."""
    n_seconds, milliseconds = divmod(round(1000 * time_s), 1000)
    return f"{n_seconds // 3600:02d}:{n_seconds // 60 % 60:02d}:{n_seconds % 60:02d}{point}{milliseconds:03d}"


def is_short(start_s: float | None, end_s: float | None) -> bool:
    """Return whether a span is shorter than a frame, beyond what rounding to milliseconds explains."""
    return start_s is not None and end_s is not None and 0 < end_s - start_s < SHORTEST_S - 0.0005


# --- columns of tables
# ---------------------------------------------------------------------------
def instants(
    cells: Sequence[str], usual_sign: str = ".", rate: Fraction | None = None, n_columns: int = 1
) -> list[float | ManifestError | None]:
    """Read the columns of times of a table as seconds; all cells together show which sign is the decimal one.

    Parameters
    ----------
    cells
        The cells of all columns of times, one column after the other.
    usual_sign
        The decimal sign that is usual in tables of this kind; "" if it may be a point or a comma.
    rate
        Frames per second of hh:mm:ss:ff.
    n_columns
        The number of columns.

    Returns
    -------
    list
        For each cell its seconds, None if it is empty, or an error if it is no time. The caller raises the
        error with the cell's line.

    Raises
    ------
    ManifestError
        What times mean cannot be told, as one of these holds:

        - points and commas are both used as decimal signs, or a number may be read with either;
        - times are shares of a day, as spreadsheets keep them (0.0010416667 is 90 s);
        - only some time codes have drop frame;
        - clocks with dots (1.00.10) stand beside numbers that may be such clocks without hours (59.30).
    """
    # Finding the decimal sign takes time, and is needed only if a cell has a sign that leaves it open.
    are_points_decimal = usual_sign == "." and not _UNSURE.search("\n".join(cells))
    with_decimal_points = cells if are_points_decimal else pointed(cells, usual_sign)
    texts = [cell.strip() for cell in with_decimal_points]
    rate_has_drop_frame = rate in DROPPING
    if rate_has_drop_frame:
        _refuse_mixed_codes(texts)
    _refuse_dotted_minutes(texts)
    values: list[float | ManifestError | None] = []
    for text in texts:
        try:
            values.append(time_in(text, rate))
        except ManifestError as error:  # kept for the caller, who knows the cell's line
            # The traceback of the error refers to this list, and the list to the error: in such a circle
            # their memory would not be freed.
            values.append(error.with_traceback(None))
    has_many_digits = _MANY_DIGITS.search("\n".join(texts)) is not None
    if has_many_digits:
        _refuse_shares_of_a_day(texts, values, n_rows=len(texts) // n_columns)
    return values


def _refuse_mixed_codes(texts: Sequence[str]) -> None:
    """Refuse a column in which some time codes are drop frame (00:01:05;12) and others are not (00:01:05:12).

    The sign before the frames says it. Drop frame counts time in another way, and a film has one way.
    """
    signs = set[str]()
    for text in texts:
        code = FRAME_CODE.fullmatch(with_ascii_digits(text))
        if code is not None:
            signs.add(code["sign_of_frames"])
    if len(signs) > 1:
        raise ManifestError("some time codes drop labels (';') and some do not (':'): one time line has one")


def _refuse_dotted_minutes(texts: Sequence[str]) -> None:
    """Refuse clocks with dots (1.00.10) beside numbers that may be minutes and seconds (59.30).

    Alone such numbers are decimal. Beside these clocks they would be read as seconds, and a film's first hour
    as its first minute.
    """
    clock_with_dots = next(filter(DOTTED.fullmatch, texts), "")
    number = next(filter(_DOTTED_MINUTES.fullmatch, texts), "")
    if clock_with_dots and number:
        minutes_and_seconds = number.replace(".", ":")
        raise ManifestError(
            f"{number!r} beside {clock_with_dots!r} may be {minutes_and_seconds} (minutes and seconds) or "
            f"{number} seconds: write it as 0.{number} or as {number} s"
        )


def number_like_minutes(cells: Iterable[str]) -> str:
    """Return the highest number of a column whose numbers may all be minutes and seconds with a dot; else "".

    So 10.59 would be followed by 11.00. They may be if each has two decimals below .60, and if there are
    several different decimals (`MIN_ENDINGS`): steps of half a second have only .00 and .50. A single cell
    such as 12.75, 3 or 0:12 shows that numbers are seconds. Cells without digits do not count.

    Examples
    --------
    >>> number_like_minutes(["1.05", "2.30", "10.59"]), number_like_minutes(["1.05", "2.30", "10.75"])
    ('10.59', '')
    >>> number_like_minutes(["0.00", "2.50", "5.00", "7.50"])
    ''
    """
    texts = dict.fromkeys(with_ascii_digits(cell.strip()).replace(",", ".") for cell in cells)
    numbers = [text for text in texts if any(map(str.isdigit, text))]
    if not all(_LIKE_MINUTES.fullmatch(number) for number in numbers):
        return ""
    decimals = {number.partition(".")[2] for number in numbers}
    if len(decimals) < MIN_ENDINGS:
        return ""
    return max(numbers, key=float)


def _refuse_shares_of_a_day(texts: Sequence[str], values: Sequence[object], n_rows: int) -> None:
    """Refuse times below 1 with many digits, which a spreadsheet wrote as shares of a day.

    They are accepted as seconds if a row has such a time together with one of a second or more.

    Parameters
    ----------
    texts
        The cells of all columns of times, one column after the other.
    values
        What was read from each cell.
    n_rows
        The number of cells in a column.
    """
    share_in_row = {}  # row -> a time that may be a share of a day
    rows_with_seconds = set()
    for index, (text, value) in enumerate(zip(texts, values, strict=True)):
        row = index % n_rows  # the columns stand one after the other
        if _MANY_DIGITS.fullmatch(text):
            share_in_row[row] = text
        if isinstance(value, float) and value >= 1:
            rows_with_seconds.add(row)
    if share_in_row and rows_with_seconds.isdisjoint(share_in_row):
        raise ManifestError(
            f"{min(share_in_row.values())!r}: times below 1 alone have many digits, as shares of a day have, "
            "by which spreadsheets keep times; format the column as text or number of seconds (value * "
            "86400)"
        )


def pointed(cells: Sequence[str], usual_sign: str = "") -> list[str]:
    """Write the numbers of a column with decimal points; all cells show which sign is the decimal one.

    Signs between thousands are removed, and cells that are no numbers stay as they are. `usual_sign` is the
    decimal sign if no cell shows it; "" if it may be a point or a comma.

    Examples
    --------
    >>> pointed(["1.234", "0,5", "one"])
    ['1234', '0.5', 'one']
    """
    texts = [_BLANKS.sub("", with_ascii_digits(cell.strip())) for cell in cells]
    decimal_sign = _decimal_sign(texts, usual_sign)
    thousands_sign = "," if decimal_sign == "." else "."
    result = []
    for text, cell in zip(texts, cells, strict=True):
        if text.isdecimal() or _is_number(text, decimal_sign):
            without_thousands = text.replace(thousands_sign, "")
            result.append(without_thousands.replace(decimal_sign, "."))
        else:
            result.append(cell)
    return result


def _is_number(text: str, decimal_sign: str) -> bool:
    """Return whether a text is a number with this decimal sign, with or without signs between thousands."""
    plain_match = _PLAIN_NUMBER[decimal_sign].fullmatch(text)
    return plain_match is not None or _GROUPED_NUMBER[decimal_sign].fullmatch(text) is not None


def time_or_nan(text: str) -> float:
    """Read a single time in seconds; NaN if it is no time.

    Two kinds of numbers are judged by the rules for columns, as if the text were a column of one cell: those
    whose decimal sign is unclear, as in `1,234`, and those that may be shares of a day, by which spreadsheets
    keep times, as 0.0010416667. All others are read at once, which is faster.
    """
    text = text.strip()
    has_unclear_sign = _UNSURE.search(text) is not None
    may_be_share_of_a_day = _MANY_DIGITS.search(text) is not None
    needs_rules_of_columns = (has_unclear_sign or may_be_share_of_a_day) and not is_clock(text)
    time: float | ManifestError | None = None
    with suppress(ManifestError):
        if needs_rules_of_columns:
            (time,) = instants([text])  # seconds, or the error of a cell that is no time
        else:
            time = time_in(text)
    return time if isinstance(time, float) else math.nan


def _decimal_sign(texts: Sequence[str], usual_sign: str) -> str:
    """Find the decimal sign of the numbers in a column, "." or ",".

    It is the sign that a number of the column needs: `0,5` and `1.234,5` need the comma. If none needs one,
    it is the usual sign. Then no number may be left that could be read with both signs and does not have the
    usual one, such as `1,234` where the point is usual.

    Parameters
    ----------
    texts
        The cells of the column.
    usual_sign
        The sign if no cell shows it; "" if either may be meant.

    Raises
    ------
    ManifestError
        Some numbers need one sign and some the other, or a number can be read with both.
    """
    example_of_sign: dict[str, str] = {}  # decimal sign -> a number that can be read with it alone
    doubtful = ""
    for text in texts:
        if text.isdecimal():  # as most numbers are; without a sign, they show nothing
            continue
        # One for `0,5`, both for `1,234`.
        possible_signs = [sign for sign in ".," if _is_number(text, sign)]
        if len(possible_signs) == 1:
            example_of_sign.setdefault(possible_signs[0], text)
        elif len(possible_signs) == 2 and not doubtful and _has_other_sign(text, usual_sign):
            doubtful = text
    if len(example_of_sign) == 2:
        raise ManifestError(
            f"{example_of_sign['.']!r} and {example_of_sign[',']!r}: one of '.' and ',' is the decimal sign, "
            "not both"
        )
    if example_of_sign:
        return next(iter(example_of_sign))
    if doubtful:
        digits = re.sub("[.,]", "", doubtful)
        raise ManifestError(
            f"{doubtful!r} could be {doubtful.replace(',', '.')} or {digits}, and no other cell of the "
            "column says which: write one decimal sign everywhere (times: hh:mm:ss)"
        )
    return usual_sign or "."


def _has_other_sign(text: str, usual_sign: str) -> bool:
    """Return whether a number has a point or a comma, but not the usual decimal sign ("": none is)."""
    has_sign = "." in text or "," in text
    has_usual_sign = usual_sign != "" and usual_sign in text
    return has_sign and not has_usual_sign
