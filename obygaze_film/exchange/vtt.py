"""Write WebVTT (W3C, 2019)."""

from obygaze_features.manifest import write_vtt
from obygaze_film.exchange.subtitles import caveat_line, cues
from obygaze_film.exchange.tiers import Exported


def to_vtt(made: Exported) -> str:
    """Write cues in time order; the caveats are a NOTE at the top."""
    first, *others = made.caveats
    return write_vtt(cues(made), made.heading, [caveat_line(made, first), *others])
