"""Write tables of markers, with the columns of Premiere Pro's."""

from fractions import Fraction
from typing import Final

from obygaze_features.manifest import frame_label
from obygaze_film.exchange.frames import frame_of
from obygaze_film.exchange.tiers import Exported

COLUMNS: Final = ("Marker Name", "Description", "In", "Out", "Duration", "Marker Type")
NOTES: Final = "obygaze: notes"
"""Name of the first marker, a point that holds the caveats."""


def to_markers(exported: Exported) -> str:
    """Write a marker for each span, divided by tabs; the first one, without length, has the caveats."""
    is_dropping, first = exported.start
    start_code = frame_label(first, exported.rate, drop=is_dropping)
    # Importers read the rate and the start here, as the table has no place for them.
    notes = " ".join([f"obygaze rate {exported.rate}, start {start_code}.", *exported.caveats])
    lines = ["\t".join(COLUMNS), _line(exported, NOTES, notes, (0, 0))]
    placed = sorted(exported.spans, key=lambda placed: placed[1].start_s)
    for tier, span in placed:
        name = tier.people.line(span.text) if tier.people else f"{tier.name} = {span.text}"
        start = frame_of(span.start_s, exported.rate)
        end = max(frame_of(span.end_s, exported.rate), start + 1)
        lines.append(_line(exported, name, "", (start, end)))
    return "\n".join([*lines, ""])


def _line(exported: Exported, name: str, description: str, frames: tuple[int, int]) -> str:
    """Write a marker from one frame to another."""
    start, end = frames
    is_dropping, first = exported.start
    rate = Fraction(exported.rate)
    codes = [frame_label(first + frame, rate, drop=is_dropping) for frame in (start, end)]
    length = frame_label(end - start, rate, drop=is_dropping)
    cells = (name, description, *codes, length, "Comment")
    return "\t".join(" ".join(cell.split()) for cell in cells)
