"""Read subtitles of ASS and SSA (SubStation Alpha), as players read them."""

import math
import re
from collections.abc import Iterator, Sequence

from obygaze_features.manifest.spans.instant import time_or_nan
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.tier_names import split_people_tier
from obygaze_features.subtitle_text import DRAWING, ass_text

COLUMNS = ("layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text")
"""The columns of dialogue in a file that has no line Format."""

EVENTS = "[events]"
_USUAL_SPEED = re.compile(r"\s*+(?:100(?:[.,]0*)?)?\s*+")
"""The speed of a line Timer, in per cent, that changes nothing: 100, or none."""


def read_ass(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the dialogue of ASS or SSA, without drawings and comments.

    Lines are `key: value`. A line `[NAME]` begins a section, and `Format:` names the columns of the events.
    """
    columns = list(COLUMNS)
    section = EVENTS  # of lines above all sections, as in a part of a file
    for number, line in enumerate(file.lines, start=1):
        written_key, _, value = line.partition(":")
        key = written_key.strip().lower()
        is_remark = line.strip().startswith((";", "!"))
        if key.startswith("["):
            section = key
        elif key == "format":
            # Sections of styles have such a line too, which names no columns of events.
            columns = _columns_of_events(value) or columns
        elif key == "dialogue":
            yield _dialogue(f"line {number}", value, columns, section)
        elif key == "timer" and not _USUAL_SPEED.fullmatch(value):
            # Old players play subtitles faster or slower by this; others do not.
            file.account.note(f"line {number}: Timer {one_line(value)}: a speed that is not applied")
        elif section == EVENTS and line.strip() and not is_remark:
            # An event of another kind, such as a comment or a picture.
            yield RawSpan(f"line {number}", reason=f"a {key or 'line of no kind':.20}")


def _columns_of_events(names: str) -> list[str]:
    """Return the columns that a line Format names, in lower case; [] if they are those of styles.

    The text is the last column, as it is the rest of a line of dialogue.
    """
    columns = [name.strip().lower() for name in names.split(",")]
    are_of_events = {"start", "end", "text"} <= set(columns)
    return columns[: columns.index("text") + 1] if are_of_events else []


def _dialogue(location: str, value: str, columns: Sequence[str], section: str) -> RawSpan:
    """Read a line of dialogue, from what stands behind `Dialogue:`.

    `columns` are the names of its cells, and `section` is the one it stands in, such as `[events]`.
    """
    # The text is the last cell, and may have commas itself. A line that is cut short has fewer cells.
    n_commas = max(len(columns) - 1, 0)
    cells = dict(zip(columns, value.lstrip().split(",", n_commas), strict=False))
    start_s = _time(cells.get("start", ""))
    end_s = _time(cells.get("end", ""))

    text_with_codes = cells.get("text", "")
    text = one_line(ass_text(text_with_codes))
    reason = ""
    if section != EVENTS:
        reason = f"in {section:.20}, no event"
    elif not text:
        reason = "a drawing" if DRAWING.search(text_with_codes) else "no text"

    speaker = cells.get("name", "") or cells.get("actor", "")
    subject = {"subject": one_line(speaker)} if speaker else {}
    people_tier, text_on_tier = split_people_tier(text)
    return RawSpan(location, start_s, end_s, text_on_tier, people_tier, subject, reason=reason)


def _time(cell: str) -> float:
    """Read a time written as a clock, in seconds; NaN for anything else, as ASS has no times in numbers."""
    return time_or_nan(cell) if ":" in cell else math.nan
