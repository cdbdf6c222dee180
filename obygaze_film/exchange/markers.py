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

    The first marker, without length, holds notes: what must be known of the scores, and before that the rate
    of frames and the time code of the film's first frame, as the table has no other place for them.
    """
    # The number of the first frame, and whether time codes skip numbers (drop frame)
    is_dropping, first_frame = exported.start
    start_code = frame_label(first_frame, exported.rate, drop=is_dropping)
    # Importers read the rate and the start here.
    notes = " ".join([f"obygaze rate {exported.rate}, start {start_code}.", *exported.caveats])
    lines = ["\t".join(COLUMNS), _line(exported, NOTES, notes, start=0, end=0)]
    in_time_order = sorted(exported.spans, key=lambda placed: placed.span.start_s)
    for tier, span in in_time_order:
        # On a tier of people, the text begins with who decided and how, in a form that importers read.
        name = f"{tier.name} = {span.text}"
        if tier.people:
            name = tier.people.line(span.text)
        start_frame = frame_of(span.start_s, exported.rate)
        end_frame = max(frame_of(span.end_s, exported.rate), start_frame + 1)  # one frame long at least
        lines.append(_line(exported, name, "", start_frame, end_frame))
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
