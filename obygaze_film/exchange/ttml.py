"""Write TTML (IMSC 1.1, text)."""

from obygaze_features.manifest import write_ttml
from obygaze_film.exchange.subtitles import caveat_line, cues
from obygaze_film.exchange.tiers import Exported


def to_ttml(exported: Exported) -> str:
    """Write texts in time order; the caveats are in the metadata of the head."""
    first, *more_caveats = exported.caveats
    return write_ttml(cues(exported), exported.heading, [caveat_line(exported, first), *more_caveats])
