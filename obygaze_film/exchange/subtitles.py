"""Write the spans of tiers as lines of formats whose lines name no tiers."""

from obygaze_features.manifest import PeopleTier, Subtitle
from obygaze_film.exchange.tiers import Exported, Tier


def cues(exported: Exported) -> list[Subtitle]:
    """Write all spans as cues; what people decided names its tier, so that importers read it back."""
    return [cue for tier in exported.tiers for cue in cues_of(tier)]


def cues_of(tier: Tier) -> list[Subtitle]:
    """Write the spans of a tier as cues."""
    lines = []
    for span in tier.spans:
        text = tier.people.line(span.text) if tier.people else span.text
        lines.append(Subtitle(span.start_s, span.end_s, text))
    return lines


def caveat_line(exported: Exported, text: str) -> str:
    """Write a caveat as a text that is no label: of the model, or as a note where it has no tier."""
    return f"obygaze: {text}" if exported.has_model else PeopleTier("note").line(text)
