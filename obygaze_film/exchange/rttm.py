"""Write RTTM (NIST), the turns that pyannote and others read."""

from obygaze_features.manifest import Subtitle, write_rttm
from obygaze_film.claims.kinds import BELOW_THRESHOLD
from obygaze_film.exchange.tiers import Exported, Tier, TierSpan


def to_rttm(exported: Exported) -> str:
    """Write a turn of RTTM for each span, labelled by its tier (`_label`).

    The caveats are written into the first turn, in the field for orthography, with underscores for blanks:
    pyannote reads no comments. A file without turns has them as a comment (`;;`) of a single field, which
    pyannote's reader skips.
    """
    turns = []
    for tier, span in exported.spans:
        turns.append((_label(tier, span), Subtitle(span.start_s, span.end_s, span.text)))
    words = " ".join(exported.caveats).split()
    caveats = "_".join(words)
    if not turns:
        return f";;_{caveats}\n"
    # A turn is "SPEAKER film 1 start length <NA> <NA> label <NA> <NA>". The first <NA> of the file is the
    # first turn's field for orthography.
    return write_rttm(turns, exported.film.movie).replace(" <NA> ", f" {caveats} ", 1)


def _label(tier: Tier, span: TierSpan) -> str:
    """Return the label that a span has in the place of a speaker's name.

    It is the name of the tier, of a person's span followed by what was decided, and of a passage that does
    not reach the threshold by words that say so.
    """
    if tier.people:
        return tier.people.line(span.text)
    if span.claim is not None and span.claim.has(BELOW_THRESHOLD):
        return f"{tier.name} {BELOW_THRESHOLD}"
    return tier.name
