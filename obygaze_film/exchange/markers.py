"""Write tables of markers, with the columns of Premiere Pro's."""

from typing import Final

from obygaze_features.manifest import frame_label
from obygaze_film.exchange.frames import frame_of
from obygaze_film.exchange.tiers import Exported

COLUMNS: Final = ("Marker Name", "Description", "In", "Out", "Duration", "Marker Type")
NOTES: Final = "obygaze: notes"
"""Name of the first marker, a point that holds the caveats."""


def to_markers(exported: Exported) -> str:
    """Write a table with a marker for each span, in time order; cells are divided by tabs.

    The first marker, without length, holds the caveats.
    """
    is_dropping, first_frame = exported.start
    start_code = frame_label(first_frame, exported.rate, drop=is_dropping)
    # Importers read the rate and the start here, as the table has no place for them.
    notes = " ".join([f"obygaze rate {exported.rate}, start {start_code}.", *exported.caveats])
    lines = ["\t".join(COLUMNS), _line(exported, NOTES, notes, start=0, end=0)]
    in_time_order = sorted(exported.spans, key=lambda placed: placed.span.start_s)
    for tier, span in in_time_order:
        # People's text begins with the tier's name, which says who decided and how: importers read it.
        name = tier.people.line(span.text) if tier.people else f"{tier.name} = {span.text}"
        start = frame_of(span.start_s, exported.rate)
        end = max(frame_of(span.end_s, exported.rate), start + 1)  # one frame long at least
        lines.append(_line(exported, name, "", start, end))
    return "\n".join([*lines, ""])


def _line(exported: Exported, name: str, description: str, start: int, end: int) -> str:
    """Write the line of a marker, its cells divided by tabs.

    `start` and `end` are frames, from 0, the film's first. They are written as time codes, which count from
    the time code of the first frame.
    """
    is_dropping, first_frame = exported.start
    cells = {
        "Marker Name": name,
        "Description": description,
        "In": frame_label(first_frame + start, exported.rate, drop=is_dropping),
        "Out": frame_label(first_frame + end, exported.rate, drop=is_dropping),
        "Duration": frame_label(end - start, exported.rate, drop=is_dropping),
        "Marker Type": "Comment",
    }
    # A tab or line break within a cell would divide it.
    return "\t".join(" ".join(cells[column].split()) for column in COLUMNS)
