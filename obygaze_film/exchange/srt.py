"""Write SubRip."""

from obygaze_features.manifest import Subtitle, write_srt
from obygaze_film.exchange.subtitles import caveat_line, cues
from obygaze_film.exchange.tiers import Exported

CAVEATS_S = 0.5
"""Seconds for which players show the caveats."""


def to_srt(exported: Exported) -> str:
    """Write subtitles in SubRip; the first one holds the caveats, as the format has no comments.

    It is shown for half a second, or for the whole film if this is shorter.
    """
    end_s = min(CAVEATS_S, exported.film.record.duration_s)
    caveats = Subtitle(start_s=0.0, end_s=end_s, text=caveat_line(exported, " ".join(exported.caveats)))
    return write_srt([caveats, *cues(exported)])
