"""Write the spans of tiers as lines of formats whose lines name no tiers."""

from obygaze_features.manifest import PeopleTier, Subtitle
from obygaze_film.exchange.tiers import Exported, Tier


def cues(exported: Exported) -> list[Subtitle]:
    """Write all spans as cues; the text of a decision names its tier, so that importers can read it back."""
    return [cue for tier in exported.tiers for cue in cues_of(tier)]


def cues_of(tier: Tier) -> list[Subtitle]:
    """Write the spans of a tier as cues."""
    cues_of_tier = []
    for span in tier.spans:
        text = tier.people.line(span.text) if tier.people else span.text
        cues_of_tier.append(Subtitle(span.start_s, span.end_s, text))
    return cues_of_tier


def caveat_line(exported: Exported, text: str) -> str:
    """Write a caveat so that importers do not take it for a label.

    It is written as a text of the model; in a file of people's decisions alone, as a note.
    """
    return f"obygaze: {text}" if exported.has_model else PeopleTier("note").line(text)
