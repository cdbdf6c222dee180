"""Convert clips to rows of a manifest file and back."""

import math
import re
from collections.abc import Sequence
from fractions import Fraction

from obygaze_features.errors import ManifestError
from obygaze_features.io import csv_line, sheet_line
from obygaze_features.manifest.clip import CODEBOOK_COLUMN, FIELDS, Clip
from obygaze_features.manifest.codebook import BUILTIN, Codebook
from obygaze_features.manifest.table import Problems, Row

CONCEPT_SEPARATOR = ";"
CLOCK = re.compile(r"(?:(\d{1,9}):)?(\d{1,2}):(\d{1,2}(?:\.\d{0,30})?)", re.ASCII)
FRAMES = re.compile(r"(\d{1,9}):(\d\d):(\d\d)([:;])(\d{2,3})", re.ASCII)


def canonical_bytes(clips: Sequence[Clip], codebook: Codebook, *, sheet: bool = False) -> bytes:
    """Write clips as canonical CSV: UTF-8, comma, line feed, quotes only where needed.

    The codebook's name is in a column of its own, unless it is the one of manifests that name none. A `sheet`
    is for people: no cell is one that a spreadsheet would run.
    """
    extras = tuple(clips[0].extras) if clips else ()
    default = codebook.name == BUILTIN[0]
    column, cell = ((), ()) if default else ((CODEBOOK_COLUMN,), (codebook.name,))
    line = sheet_line if sheet else csv_line
    lines = [line((*FIELDS, *column, *extras))]
    lines += [line((*_cells(clip), *cell, *(clip.extras[name] for name in extras))) for clip in clips]
    return "".join(lines).encode("utf-8")


class Collected:
    """The clips of a file, each id once."""

    def __init__(self, problems: Problems, column: str = "clip_id") -> None:
        self.clips: list[Clip] = []
        self._problems = problems
        self._column = column
        self._lines: dict[str, int] = {}

    def add(self, clip: Clip | None, line: int) -> None:
        """Take a clip that could be read; a repeated id is noted with both lines."""
        if clip is None:
            return
        first = self._lines.setdefault(clip.clip_id, line)
        if first == line:
            self.clips.append(clip)
        else:
            self._problems.add(line, f"clip {clip.clip_id!r} is already on line {first}", self._column)


def clip_of(row: Row, problems: Problems, codebook: Codebook, *, spelled: bool = False) -> Clip | None:
    """Read one row, noting what is wrong with it; None if anything is.

    Parameters
    ----------
    row
        Needs clip_id and movie; any other column of FIELDS may be absent, others become extras.
    problems
        Collects what is wrong.
    codebook
        Knows levels and concepts.
    spelled
        Whether levels and concepts may be spelled as the codebook's titles and synonyms.
    """
    before = len(problems.found)
    cells = row.cells
    start = problems.attempt(row.line, "start_s", seconds, cells.get("start_s", ""))
    end = problems.attempt(row.line, "end_s", seconds, cells.get("end_s", ""))
    level_of = codebook.level_spelled if spelled else codebook.level_named
    concept_of = codebook.concept_spelled if spelled else codebook.concept_named
    level = problems.attempt(row.line, "level", level_of, cells["level"]) if cells.get("level") else None
    concepts = problems.attempt(
        row.line, "concepts", lambda: tuple(map(concept_of, split_concepts(cells.get("concepts", ""))))
    )
    if len(problems.found) > before:
        return None
    return problems.attempt(
        row.line,
        "",
        Clip,
        clip_id=cells["clip_id"],
        movie=cells["movie"],
        video=cells.get("video", ""),
        start_s=start,
        end_s=end,
        level=level,
        concepts=concepts or (),
        annotator=cells.get("annotator", ""),
        extras={column: text for column, text in cells.items() if column not in (*FIELDS, CODEBOOK_COLUMN)},
    )


def seconds(text: str) -> float | None:
    """Read a number of seconds; None if the cell is empty."""
    if not text:
        return None
    try:
        value = float(text) if "_" not in text else math.nan  # Python reads 1_0 as ten; nobody else does
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ManifestError(f"{text!r} is not a finite number of seconds")
    return value


def time_code(text: str, rate: Fraction | None = None) -> float | None:
    """Read seconds, [hh:]mm:ss[.ms], or hh:mm:ss:ff at a rate; None if the cell is empty.

    A time code counts frames at the whole rate (24 at 23.976 fps). With `;` before the frames it drops
    numbers: two (at 60 fps four) at each minute but the tenth. Source: SMPTE ST 12-1.

    Parameters
    ----------
    rate
        Frames per second of hh:mm:ss:ff.

    Raises
    ------
    ManifestError
        If it is none of these, or has frames and no rate is known.

    Examples
    --------
    >>> time_code("00:01:30.5"), time_code("00:01:30:12", Fraction(24))
    (90.5, 90.5)
    """
    if ":" not in text:
        return seconds(text)
    if clock := CLOCK.fullmatch(text):
        hours, minutes, rest = int(clock[1] or 0), int(clock[2]), Fraction(clock[3].rstrip("."))
        if rest < 60 and (minutes < 60 or clock[1] is None):
            return float(hours * 3600 + minutes * 60 + rest)
    elif found := FRAMES.fullmatch(text):
        if rate is None:
            raise ManifestError(f"{text!r} ends in frames; give their rate, as in --rate 25")
        hours, minutes, whole, frames = (int(found[group]) for group in (1, 2, 3, 5))
        labels = round(rate)
        if minutes < 60 and whole < 60 and frames < labels:
            passed = hours * 60 + minutes
            count = (passed * 60 + whole) * labels + frames
            if found[4] == ";":
                count -= labels // 15 * (passed - passed // 10)  # 2 of 30, 4 of 60
            return float(count / rate)
        raise ManifestError(f"{text!r} is no time code hh:mm:ss:ff at {float(rate):g} frames per second")
    raise ManifestError(f"{text!r} is no time: expected seconds, hh:mm:ss.ms, or hh:mm:ss:ff with --rate")


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


def split_concepts(text: str) -> tuple[str, ...]:
    """Part concepts joined by semicolons."""
    return tuple(text.split(CONCEPT_SEPARATOR)) if text else ()


def _cells(clip: Clip) -> tuple[str, ...]:
    return (
        clip.clip_id,
        clip.movie,
        clip.video,
        "" if clip.start_s is None else repr(clip.start_s),
        "" if clip.end_s is None else repr(clip.end_s),
        clip.level or "",
        CONCEPT_SEPARATOR.join(clip.concepts),
        clip.annotator,
    )
