"""Write WebVTT (W3C, 2019)."""

from obygaze_features.manifest import write_vtt
from obygaze_film.exchange.subtitles import caveat_line, cues
from obygaze_film.exchange.tiers import Exported


def to_vtt(exported: Exported) -> str:
    """Write cues in time order; the caveats are a NOTE at the top."""
    first, *more_caveats = exported.caveats
    return write_vtt(cues(exported), exported.heading, [caveat_line(exported, first), *more_caveats])
