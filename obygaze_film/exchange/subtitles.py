"""Write the spans of tiers as lines of formats whose lines name no tiers."""

from obygaze_features.manifest import PeopleTier, Subtitle
from obygaze_film.exchange.tiers import Exported, Tier


def cues(exported: Exported) -> list[Subtitle]:
    """Write all spans as cues; the text of a decision names its tier, so that importers can read it back."""
    return [cue for tier in exported.tiers for cue in cues_of(tier)]


def cues_of(tier: Tier) -> list[Subtitle]:
    """Write the spans of a tier as cues of subtitles.

    Such formats have no tiers: on a tier of people, each text begins with the tier's name, so that importers
    can read it back.
    """
    cues_of_tier = []
    for span in tier.spans:
        text = tier.people.line(span.text) if tier.people else span.text
        cues_of_tier.append(Subtitle(span.start_s, span.end_s, text))
    return cues_of_tier


def caveat_line(exported: Exported, text: str) -> str:
    """Write a caveat so that importers do not take it for a label.

    Importers skip texts of the model, which begin with "obygaze:". In a file of people's decisions alone, the
    caveat is written as a note, which is no label either.
    """
    return f"obygaze: {text}" if exported.has_model else PeopleTier("note").line(text)
