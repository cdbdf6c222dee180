"""Make tiers of what people decided: of each person and how they decided, and of what several agreed on."""

from collections.abc import Sequence

from obygaze_features.manifest import AGREED, HOWS, PeopleTier
from obygaze_film.exchange.decided import Decided
from obygaze_film.exchange.tiers import Tier, TierSpan


def people_tiers(decided: Sequence[Decided]) -> list[Tier]:
    """Make the tiers of decisions: by person and how they decided; agreed decisions come last.

    Labels and notes are on different tiers. Many formats allow no overlaps on a tier: decisions that overlap
    are on further tiers of the same name, with the numbers 2, 3, ...
    """
    decisions_of = _by_tier(decided)
    tiers: list[Tier] = []
    for first_tier in sorted(decisions_of, key=_order_of_tiers):
        # A tier for each list of decisions that do not overlap: mostly one.
        for number, decisions in enumerate(_without_overlaps(decisions_of[first_tier]), start=1):
            people = first_tier._replace(number=number)
            spans = tuple(_span(decision, people) for decision in decisions)
            tiers.append(Tier(kind="people", name=people.name, spans=spans, people=people))
    return tiers


def _by_tier(decided: Sequence[Decided]) -> dict[PeopleTier, list[Decided]]:
    """Group decisions by the tier that they are on: tier -> decisions, in time order.

    A tier is of one annotator, one way to decide, and of labels or notes: a decision with a level and a note
    is on two tiers. Tiers do not have their numbers yet.
    """
    decisions_of: dict[PeopleTier, list[Decided]] = {}
    for decision in sorted(decided, key=lambda decision: (decision.start_s, decision.end_s, decision.id)):
        if decision.level:
            labels = PeopleTier(what="labels", how=decision.how, annotator=decision.annotator)
            decisions_of.setdefault(labels, []).append(decision)
        if decision.note:
            notes = PeopleTier(what="note", how=decision.how, annotator=decision.annotator)
            decisions_of.setdefault(notes, []).append(decision)
    return decisions_of


def _order_of_tiers(tier: PeopleTier) -> tuple[bool, str, int, str]:
    """Return the key by which tiers of people are sorted.

    Agreed decisions come last. The others are sorted by annotator, then by how they were decided, in the
    order of `HOWS` ("", of notes without a level, comes after these), then by whether they are labels or
    notes.
    """
    is_agreed = tier.how == AGREED
    rank_of_how = (*HOWS, "").index(tier.how)
    return is_agreed, tier.annotator, rank_of_how, tier.what


def _span(decision: Decided, tier: PeopleTier) -> TierSpan:
    """Make the span of a decision on a tier; its text is the note, or the level with the concepts."""
    text = decision.note if tier.what == "note" else "; ".join((decision.level, *decision.concepts))
    return TierSpan(decision.start_s, decision.end_s, text, decided=decision)


def _without_overlaps(decided: Sequence[Decided]) -> list[list[Decided]]:
    """Divide decisions, which are in time order, into as few lists as possible without overlaps in a list.

    Each decision goes into the first list whose last one has ended; if there is none, it begins a new list.
    """
    lists: list[list[Decided]] = []
    for decision in decided:
        for earlier in lists:
            if earlier[-1].end_s <= decision.start_s:
                earlier.append(decision)
                break
        else:  # no list was found: it overlaps the last decision of each
            lists.append([decision])
    return lists
