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
"""Columns of the table.

`number` counts the model's passages in time order, as in every other place where they are numbered; `rank` is
by strength. `contributions` are those of concepts that are seen and of concepts that are missing, such as
``Body +1.4000; Activity -0.3000``. People write into `level`, `concepts` and `annotator`; whoever does so
in a row of the model judges in sight of its score.
"""


def to_csv(exported: Exported) -> str:
    """Write the spans of all tiers as a CSV table, a row for each; the first row also holds the caveats.

    Cells that a spreadsheet would take for formulas are written as texts.
    """
    rows = []
    for tier, span in exported.spans:
        # Column -> cell; cells of other columns are empty.
        cells = _person_cells(tier, span) if tier.people else _model_cells(span)
        needs_row = len(cells) > 0  # a note does not if it stands in the row of its level
        if not needs_row:
            continue
        cells |= {
            "movie": exported.film.movie,
            "tier": tier.name,
            "start_s": repr(span.start_s),
            "end_s": repr(span.end_s),
            "text": span.text,
        }
        rows.append(cells)
    if rows:
        rows[0]["caveats"] = " ".join(exported.caveats)
    lines = [sheet_line([cells.get(name, "") for name in COLUMNS]) for cells in rows]
    return "".join([sheet_line(COLUMNS), *lines])


def _model_cells(span: TierSpan) -> dict[str, str]:
    """Return the cells, by column, that a span of the model's tiers has and a person's decision has not.

    They are its probability with the band, the concepts that are seen in it, those that contribute to it, and
    its flags.
    """
    contributions = [f"{reason.what} {reason.contribution:+.4f}" for reason in span.reasons]
    return {
        "number": span.number,
        "rank": "" if span.rank is None else str(span.rank),
        "p": _probability_cell(span.p),
        "p_low": _probability_cell(span.p_low),
        "p_high": _probability_cell(span.p_high),
        "present": "; ".join(span.present),
        "contributions": "; ".join(contributions),
        "flags": span.flags,
        SEEN_SCORE: "1",  # people who fill in a level in this row see the model's score
    }


def _probability_cell(p: float | None) -> str:
    """Write a probability with four decimals; an empty cell if there is none."""
    return "" if p is None else f"{p:.4f}"


def _person_cells(tier: Tier, span: TierSpan) -> dict[str, str]:
    """Return the cells, by column, of what a person decided about a span; empty if it needs no row.

    A note needs no row of its own if its decision has a level: that decision's row holds the note.
    """
    decision = span.decided
    if decision is None:
        return {}
    is_note = tier.people is not None and tier.people.what == "note"
    has_level_in_another_row = is_note and decision.level != ""
    if has_level_in_another_row:
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
