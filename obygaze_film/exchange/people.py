"""Make tiers of what people decided: of each person and how they decided, and of what several agreed on."""

from collections.abc import Sequence

from obygaze_features.manifest import AGREED, HOWS, PeopleTier
from obygaze_film.exchange.decided import Decided
from obygaze_film.exchange.tiers import Tier, TierSpan


def people_tiers(decided: Sequence[Decided]) -> list[Tier]:
    """Make the tiers of decisions: the tiers of each person together, those of what was agreed last.

    Notes are on tiers of their own. Many formats allow no overlaps on a tier: decisions that overlap are on
    further, numbered tiers.
    """
    decided_on: dict[PeopleTier, list[Decided]] = {}
    for decision in sorted(decided, key=lambda decision: (decision.start_s, decision.end_s, decision.id)):
        if decision.level:
            people = PeopleTier("labels", decision.how, decision.annotator)
            decided_on.setdefault(people, []).append(decision)
        if decision.note:
            people = PeopleTier("note", decision.how, decision.annotator)
            decided_on.setdefault(people, []).append(decision)
    tiers: list[Tier] = []
    for people in sorted(decided_on, key=_agreed_last):
        for number, decisions in enumerate(_without_overlaps(decided_on[people]), start=1):
            numbered = people._replace(number=number)
            spans = tuple(_span(decision, numbered) for decision in decisions)
            tiers.append(Tier("people", numbered.name, spans, numbered))
    return tiers


def _agreed_last(tier: PeopleTier) -> tuple[bool, str, int, str]:
    """Return the sort key of a tier: agreed or not, then annotator, how it was decided, and what."""
    return tier.how == AGREED, tier.annotator, (*HOWS, "").index(tier.how), tier.what


def _span(decision: Decided, tier: PeopleTier) -> TierSpan:
    """Make the span of a decision on a tier; its text is the note, or the level with the concepts."""
    text = decision.note if tier.what == "note" else "; ".join((decision.level, *decision.concepts))
    return TierSpan(decision.start_s, decision.end_s, text, decided=decision)


def _without_overlaps(decided: Sequence[Decided]) -> list[list[Decided]]:
    """Divide decisions, which are in time order, into as few lists as possible without overlaps in a list."""
    lists: list[list[Decided]] = []
    for decision in decided:
        for earlier in lists:
            if earlier[-1].end_s <= decision.start_s:
                earlier.append(decision)
                break
        else:  # it overlaps the last decision of each list
            lists.append([decision])
    return lists
