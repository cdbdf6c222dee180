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
        Whether the file says that all its time codes are drop frame. If it does not, those with `;` before
        the frames are.

    Raises
    ------
    ManifestError
        One of these holds:

        - time codes end in frames, and no rate is known;
        - time codes are drop frame, and the rate has none, or only some of them are;
        - the start is no time code;
        - times are whole numbers, and nobody says their unit.
    """
    codes = list(codes)
    number_s = _seconds_of_number_1(file, codes)
    stated_rate = frame_rate(rate) if rate else None
    frames_per_second = file.reading.rate or stated_rate  # what the person gives counts first
    codes_with_frames = []
    for code in codes:
        match = FRAME_CODE.fullmatch(with_ascii_digits(code))
        if match is not None:
            codes_with_frames.append(match)
    if codes_with_frames and frames_per_second is None:
        example = codes_with_frames[0][0]
        raise file.error(f"time codes end in frames ({example}): give their rate, as in --rate 25")

    signs_of_frames = {match["sign_of_frames"] for match in codes_with_frames}
    if len(signs_of_frames) > 1:
        raise file.error("some time codes drop numbers of frames (';') and some do not (':')")
    if codes_with_frames and is_dropping and frames_per_second not in DROPPING:
        raise file.error(
            "its time codes are drop frame, which 29.97 and 59.94 fps alone have, not "
            f"{float(frames_per_second or 0):g}: give the film's rate by --rate"
        )

    start_code = file.reading.start or start
    if is_dropping or ";" in signs_of_frames:
        start_code = _as_drop_frame(start_code)  # the film's start counts as the other time codes do
    try:
        start_s = time_in(start_code, frames_per_second) or 0.0  # 0 if no start is known
    except ManifestError as error:
        raise file.error(f"--start: {error}") from None
    return TimeLine(frames_per_second, start_s, is_dropping, number_s)


def _seconds_of_number_1(file: SpanFile, codes: Iterable[str]) -> float:
    """Return how many seconds the time `1` is, in a file whose times may be mere numbers: .04 for a frame.

    Editors write whole numbers where they show frames in place of time codes, and do not say so: the person
    has to. Numbers with decimals are seconds. The account notes that the unit, and the rate, is used.

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
    if unit == FRAMES:
        file.account.uses_rate = True
        return file.seconds(1, "its times")
    if unit:
        return seconds_of_unit(unit)

    have_decimals = any("." in number for number in numbers)
    not_0 = [number for number in numbers if number_of(number) != 0]  # 0 is the start in every unit
    if have_decimals or not not_0:
        return 1.0
    raise file.error(
        f"times are whole numbers ({not_0[0].strip()}), and editors count frames so: give "
        "--unit frames and --rate, or --unit s"
    )


def _is_number(code: str) -> bool:
    """Return whether a time is a mere number, such as 240 or 90.5."""
    return with_ascii_digits(code.strip()).replace(".", "", 1).isdecimal()


def _as_drop_frame(code: str) -> str:
    """Write a time code with `;` before its frames, which is read as drop frame; another text stays."""
    match = FRAME_CODE.fullmatch(with_ascii_digits(code))
    if match is None:
        return code
    return f"{match['hours']}:{match['minutes']}:{match['seconds']};{match['frames']}"
