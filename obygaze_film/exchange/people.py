"""Make tiers of what people decided: of each person and how they decided, and of what several agreed on."""

from collections.abc import Sequence

from obygaze_features.manifest import AGREED, HOWS, PeopleTier
from obygaze_film.exchange.decided import Decided
from obygaze_film.exchange.tiers import Tier, TierSpan


def people_tiers(decided: Sequence[Decided]) -> list[Tier]:
    """Make the tiers of decisions: those of each person together, and last those of what people agreed on.

    Notes are on tiers of their own. Many formats allow no overlaps on a tier: decisions that overlap are on
    further tiers of the same name, with the numbers 2, 3, ...
    """
    # Tier without a number -> all decisions on it, in time order.
    decisions_on: dict[PeopleTier, list[Decided]] = {}
    for decision in sorted(decided, key=lambda decision: (decision.start_s, decision.end_s, decision.id)):
        if decision.level:
            labels = PeopleTier(what="labels", how=decision.how, annotator=decision.annotator)
            decisions_on.setdefault(labels, []).append(decision)
        if decision.note:
            notes = PeopleTier(what="note", how=decision.how, annotator=decision.annotator)
            decisions_on.setdefault(notes, []).append(decision)
    tiers: list[Tier] = []
    for tier_without_number in sorted(decisions_on, key=_agreed_last):
        for number, decisions in enumerate(_without_overlaps(decisions_on[tier_without_number]), start=1):
            people = tier_without_number._replace(number=number)
            spans = tuple(_span(decision, people) for decision in decisions)
            tiers.append(Tier(kind="people", name=people.name, spans=spans, people=people))
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
