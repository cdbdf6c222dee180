"""Write TextGrids of Praat."""

from obygaze_features.manifest import PeopleTier, Subtitle, write_textgrid
from obygaze_film.exchange.subtitles import cues_of
from obygaze_film.exchange.tiers import Exported, Tier


def to_textgrid(exported: Exported) -> str:
    """Write a TextGrid of Praat: a tier of intervals for each tier, and one with the caveats.

    A tier of people's labels becomes two, of levels and of concepts, as importers read them.
    """
    film_s = exported.film.record.duration_s
    tiers: dict[str, list[Subtitle]] = {}
    for tier in exported.tiers:
        if tier.people is None:
            tiers[tier.name] = cues_of(tier)
        elif tier.people.what == "labels":
            tiers |= _level_and_concepts(tier, tier.people)
        else:
            # The tier's name says that its texts are levels, concepts or notes: texts stand as they are.
            tiers[tier.name] = [Subtitle(span.start_s, span.end_s, span.text) for span in tier.spans]

    # The caveats. Importers skip tiers with either name: they hold no labels.
    name_of_caveats = "obygaze: caveats" if exported.has_model else PeopleTier("note").name
    caveats = Subtitle(start_s=0.0, end_s=film_s, text=" ".join(exported.caveats))
    tiers[name_of_caveats] = [caveats]
    return write_textgrid(tiers, film_s)


def _level_and_concepts(tier: Tier, people: PeopleTier) -> dict[str, list[Subtitle]]:
    """Divide a tier of people's labels into a tier of levels and one of concepts: name -> texts of the tier.

    Several concepts of a span are joined by semicolons. Without any concept there is no tier of them.
    """
    levels: list[Subtitle] = []
    concepts: list[Subtitle] = []
    for span in tier.spans:
        if not span.decided:
            continue
        levels.append(Subtitle(span.start_s, span.end_s, span.decided.level))
        if span.decided.concepts:
            concepts.append(Subtitle(span.start_s, span.end_s, ";".join(span.decided.concepts)))
    by_name = {people._replace(what="level").name: levels}
    if concepts:
        by_name[people._replace(what="concepts").name] = concepts
    return by_name
