"""Make tiers of what people decided: of each person and how they decided, and of what several agreed on."""

from collections.abc import Sequence

from obygaze_features.manifest import AGREED, HOWS, PeopleTier
from obygaze_film.exchange.decided import Decided
from obygaze_film.exchange.tiers import Tier, TierSpan


def people_tiers(decided: Sequence[Decided]) -> list[Tier]:
    """Make the tiers of decisions, those of each person together and what was agreed last.

    Decisions that overlap are on further tiers of the same name, so that tiers of every format hold them.
    Notes are on tiers of their own.
    """
    by_tier: dict[PeopleTier, list[Decided]] = {}
    for decision in sorted(decided, key=lambda decision: (decision.start_s, decision.end_s, decision.id)):
        if decision.level:
            by_tier.setdefault(PeopleTier("labels", decision.how, decision.annotator), []).append(decision)
        if decision.note:
            by_tier.setdefault(PeopleTier("note", decision.how, decision.annotator), []).append(decision)
    tiers: list[Tier] = []
    for people in sorted(by_tier, key=_order):
        for number, part in enumerate(_without_overlaps(by_tier[people]), start=1):
            numbered = people._replace(number=number)
            tiers.append(
                Tier("people", numbered.name, tuple(_span(decision, numbered) for decision in part), numbered)
            )
    return tiers


def _order(tier: PeopleTier) -> tuple[bool, str, int, str]:
    return tier.how == AGREED, tier.annotator, (*HOWS, "").index(tier.how), tier.what


def _span(decision: Decided, tier: PeopleTier) -> TierSpan:
    text = decision.note if tier.what == "note" else "; ".join((decision.level, *decision.concepts))
    return TierSpan(decision.start_s, decision.end_s, text, decided=decision)


def _without_overlaps(decided: Sequence[Decided]) -> list[list[Decided]]:
    """Deal decisions in time order to as many lists as are needed for none to overlap within its list."""
    parts: list[list[Decided]] = []
    for decision in decided:
        for part in parts:
            if part[-1].end_s <= decision.start_s:
                part.append(decision)
                break
        else:
            parts.append([decision])
    return parts
