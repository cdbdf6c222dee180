"""Write TTML (IMSC 1.1, text)."""

from obygaze_features.manifest import write_ttml
from obygaze_film.exchange.subtitles import cues
from obygaze_film.exchange.tiers import Exported


def to_ttml(exported: Exported) -> str:
    """Write texts in time order; the caveats are in the metadata of the head."""
    return write_ttml(cues(exported), exported.heading, exported.caveats)
