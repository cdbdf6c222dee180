"""Write a table for spreadsheets (CSV)."""

from typing import Final

from obygaze_features.lines import sheet_line
from obygaze_features.manifest import DECISION, DEFINITION, HOW, SEEN_SCORE
from obygaze_film.exchange.tiers import Exported, Tier, TierSpan

COLUMNS: Final = (
    "movie", "tier", "number", "rank", "start_s", "end_s", "p", "p_low", "p_high", "text", "present",
    "contributions", "flags", "level", "concepts", "annotator", SEEN_SCORE, "note", HOW, DECISION,
    DEFINITION, "caveats",
)  # fmt: skip
"""number: of a passage, by time, the same everywhere; rank: by strength; contributions: of concepts that are
seen and that are not, as ``Body +1.4000; Activity -0.3000``. People write into level, concepts and annotator;
in the row of a model they judge in sight of its score."""


def to_csv(exported: Exported) -> str:
    """Write a row for each span, without formulas; the first row has the caveats."""
    lines = [sheet_line(COLUMNS)]
    caveats = " ".join(exported.caveats)
    for tier, span in exported.spans:
        cells = _of_a_person(tier, span) if tier.people else _of_a_model(span)
        if not cells:
            continue
        cells |= {"movie": exported.film.movie, "tier": tier.name, "caveats": caveats}
        cells |= {"start_s": repr(span.start_s), "end_s": repr(span.end_s), "text": span.text}
        lines.append(sheet_line([cells.get(name, "") for name in COLUMNS]))
        caveats = ""
    return "".join(lines)


def _of_a_model(span: TierSpan) -> dict[str, str]:
    cells = {"present": "; ".join(span.present), "flags": span.flags, SEEN_SCORE: "1"}
    for name, value in (("p", span.p), ("p_low", span.p_low), ("p_high", span.p_high)):
        if value is not None:
            cells[name] = f"{value:.4f}"
    signed = [f"{reason.what} {reason.contribution:+.4f}" for reason in span.reasons]
    cells |= {"number": span.number, "rank": "" if span.rank is None else str(span.rank)}
    return cells | {"contributions": "; ".join(signed)}


def _of_a_person(tier: Tier, span: TierSpan) -> dict[str, str]:
    """Write what a person decided; the note of a decision with a level is in that decision's row."""
    decision = span.decided
    if decision is None or (decision.level and tier.people and tier.people.what == "note"):
        return {}
    return {
        "level": decision.level,
        "concepts": ";".join(decision.concepts),
        "annotator": decision.annotator,
        SEEN_SCORE: "0" if decision.is_blind else "1",
        "note": decision.note,
        HOW: decision.how,
        DECISION: decision.id,
        DEFINITION: decision.definition,
    }
