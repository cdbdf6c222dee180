"""Write RTTM (NIST), the turns that pyannote and others read."""

from obygaze_features.manifest import Subtitle, write_rttm
from obygaze_film.claims.kinds import BELOW_THRESHOLD
from obygaze_film.exchange.tiers import Exported


def to_rttm(exported: Exported) -> str:
    """Write turns, each labelled by its tier; what people decided is labelled by tier, level and concepts.

    A passage that does not reach the threshold has that in its label too: a turn has no other text.

    The caveats stand in the first turn's field for orthography, with underscores for blanks, as pyannote
    reads no comments. A file without turns has them as a comment (`;;`) of a single field: pyannote's reader
    takes that for no turn.
    """
    turns = []
    for tier, span in exported.spans:
        if tier.people:
            label = tier.people.line(span.text)
        elif span.claim is not None and span.claim.has(BELOW_THRESHOLD):
            label = f"{tier.name} {BELOW_THRESHOLD}"
        else:
            label = tier.name
        turns.append((label, Subtitle(span.start_s, span.end_s, span.text)))
    words = " ".join(exported.caveats).split()
    caveats = "_".join(words)
    if not turns:
        return f";;_{caveats}\n"
    # A turn is "SPEAKER film 1 start length <NA> <NA> label <NA> <NA>": the first <NA> is for orthography.
    return write_rttm(turns, exported.film.movie).replace(" <NA> ", f" {caveats} ", 1)
