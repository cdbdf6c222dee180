"""Make tiers of what people decided: of each person and how they decided, and of what several agreed on."""

from collections.abc import Sequence

from obygaze_features.manifest import AGREED, HOWS, PeopleTier
from obygaze_film.exchange.tiers import Decided, Tier, TierSpan


def people_tiers(decided: Sequence[Decided]) -> list[Tier]:
    """Make the tiers of decisions, those of each person together and what was agreed last.

    Decisions that overlap are on further tiers of the same name, so that tiers of every format hold them.
    Notes are on tiers of their own.
    """
    by_tier: dict[PeopleTier, list[Decided]] = {}
    for one in sorted(decided, key=lambda one: (one.start_s, one.end_s, one.id)):
        if one.level:
            by_tier.setdefault(PeopleTier("labels", one.how, one.annotator), []).append(one)
        if one.note:
            by_tier.setdefault(PeopleTier("note", one.how, one.annotator), []).append(one)
    tiers: list[Tier] = []
    for people in sorted(by_tier, key=_order):
        for number, part in enumerate(_without_overlaps(by_tier[people]), start=1):
            own = people._replace(number=number)
            tiers.append(Tier("people", own.name, tuple(_span(one, own) for one in part), own))
    return tiers


def _order(tier: PeopleTier) -> tuple[bool, str, int, str]:
    return tier.how == AGREED, tier.annotator, (*HOWS, "").index(tier.how), tier.what


def _span(one: Decided, tier: PeopleTier) -> TierSpan:
    text = one.note if tier.what == "note" else "; ".join((one.level, *one.concepts))
    return TierSpan(one.start_s, one.end_s, text, decided=one)


def _without_overlaps(decided: Sequence[Decided]) -> list[list[Decided]]:
    """Deal decisions in time order to as many lists as are needed for none to overlap within its list."""
    parts: list[list[Decided]] = []
    for one in decided:
        for part in parts:
            if part[-1].end_s <= one.start_s:
                part.append(one)
                break
        else:
            parts.append([one])
    return parts
