"""Read time codes of editors: seconds of the film, which begins at a time code of its own."""

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.instant import (
    DROPPING,
    FRAME_CODE,
    frame_rate,
    time_in,
    with_ascii_digits,
)
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.units import FRAMES, seconds_of_unit
from obygaze_features.text import number_of


class TimeLine(NamedTuple):
    """How time codes of a file count.

    Attributes
    ----------
    rate
        Frames per second; None if it is not known.
    start_s
        Seconds of the time code that the film's first frame has.
    is_dropping
        Whether time codes with `:` before the frames are drop frame too.
    number_s
        How many seconds 1 stands for in a time that is a mere number, such as 240.
    """

    rate: Fraction | None
    start_s: float
    is_dropping: bool = False
    number_s: float = 1.0

    def seconds(self, code: str) -> float:
        """Convert a time code to seconds from the start of the film.

        Raises
        ------
        ManifestError
            The text is empty, or is no time code at this rate.
        """
        code = code.strip()
        if self.is_dropping:
            code = _as_drop_frame(code)
        time_s = time_in(code, self.rate)
        if time_s is None:
            raise ManifestError("no time")
        if _is_number(code):
            time_s *= self.number_s
        return time_s - self.start_s

    def is_one_frame(self, start_s: float, end_s: float) -> bool:
        """Return whether a span is as long as a frame; never where no rate is known."""
        if self.rate is None:
            return False
        n_frames = round((end_s - start_s) * self.rate)
        return n_frames == 1


def time_line(
    file: SpanFile, codes: Iterable[str], *, rate: str = "", start: str = "", is_dropping: bool = False
) -> TimeLine:
    """Return the time line of a file: the rate and the start by which its time codes become seconds.

    Parameters
    ----------
    file
        The file, with the rate and start that the person gives, which count first.
    codes
        All time codes of the file.
    rate, start
        Frames per second, and the time code of the film's first frame, as the file states them; "" if it does
        not.
    is_dropping
        Whether the file says that its time codes are drop frame, however they are written. Else those are
        with `;` before the frames.

    Raises
    ------
    ManifestError
        Time codes end in frames and no rate is known, or the rate has no drop frame and they have, or only
        some of them have; or the start is no time code; or times are whole numbers and nobody says their
        unit.
    """
    codes = list(codes)
    number_s = _seconds_of_a_number(file, codes)
    stated_rate = frame_rate(rate) if rate else None
    frames_per_second = file.reading.rate or stated_rate
    matches = []  # of the codes that end in frames
    for code in codes:
        match = FRAME_CODE.fullmatch(with_ascii_digits(code))
        if match is not None:
            matches.append(match)
    if matches and frames_per_second is None:
        raise file.error(f"time codes end in frames ({matches[0][0]}): give their rate, as in --rate 25")

    signs_of_frames = {match["sign_of_frames"] for match in matches}
    if len(signs_of_frames) > 1:
        raise file.error("some time codes drop numbers of frames (';') and some do not (':')")
    if matches and is_dropping and frames_per_second not in DROPPING:
        raise file.error(
            "its time codes are drop frame, which 29.97 and 59.94 fps alone have, not "
            f"{float(frames_per_second or 0):g}: give the film's rate by --rate"
        )

    start = file.reading.start or start
    if is_dropping or ";" in signs_of_frames:
        start = _as_drop_frame(start)  # the film's start counts as the other time codes do
    try:
        start_s = time_in(start, frames_per_second) or 0.0
    except ManifestError as error:
        raise file.error(f"--start: {error}") from None
    return TimeLine(frames_per_second, start_s, is_dropping, number_s)


def _seconds_of_a_number(file: SpanFile, codes: Iterable[str]) -> float:
    """Return how many seconds a time counts that is a mere number; 1 where none is.

    Editors write whole numbers where they show frames in place of time codes, and do not say so. Numbers with
    decimals are seconds, and 0 is the start of the film in every unit.

    Raises
    ------
    ManifestError
        Times are whole numbers, and the person gives no unit, or gives frames and no rate.
    """
    numbers = [code for code in codes if _is_number(code)]
    if not numbers:
        return 1.0
    file.account.uses_unit = True
    unit = file.reading.unit
    have_decimals = any("." in number for number in numbers)
    # The film's start is 0 in every unit.
    without_zeros = [number for number in numbers if number_of(number) != 0]
    if not unit and (have_decimals or not without_zeros):
        return 1.0
    if not unit:
        raise file.error(
            f"times are whole numbers ({without_zeros[0].strip()}), and editors count frames so: give "
            "--unit frames and --rate, or --unit s"
        )
    if unit == FRAMES:
        file.account.uses_rate = True
        return file.seconds(1, "its times")
    return seconds_of_unit(unit)


def _is_number(code: str) -> bool:
    """Return whether a time is a mere number, such as 240 or 90.5."""
    return with_ascii_digits(code.strip()).replace(".", "", 1).isdecimal()


def _as_drop_frame(code: str) -> str:
    """Write a time code with `;` before its frames, which is read as drop frame; another text stays."""
    match = FRAME_CODE.fullmatch(with_ascii_digits(code))
    if match is None:
        return code
    return f"{match['hours']}:{match['minutes']}:{match['seconds']};{match['frames']}"
