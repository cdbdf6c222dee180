"""Find judgements that may have the concepts of the judgement before them by mistake."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from obygaze_features.arguments import checked
from obygaze_features.manifest.clip import parse_seen_score
from obygaze_features.manifest.text_tables import SEEN_SCORE, counted
from obygaze_features.text import first_few

SITTING = timedelta(hours=4)
"""Decisions this far apart, or less, may have been made on a page that stayed open between them."""

MAX_LINES = 100
"""Lines that a notice names."""


@checked
def repeated_concepts(decisions: Iterable[tuple[Path, int, Mapping[str, str]]]) -> dict[Path, str]:
    """Find decisions with the same concepts as the decision just before them, in the same sitting.

    An earlier version of the page of `film open` kept concepts ticked when another passage was chosen. Such
    decisions may therefore have concepts that the annotator did not mean. Only the annotator can tell, so
    they are noted and not left out.

    Parameters
    ----------
    decisions : iterable of (path, line, cells)
        The rows of judgements, and of passages that people marked in the workspace of a film, with their file
        and line. The cell `judged_at` gives their order in each film.

    Returns
    -------
    dict
        Path of a file -> notice on its lines.
    """
    lines: dict[Path, list[int]] = {}
    for film_decisions in _decisions_by_film(decisions).values():
        in_order = sorted(film_decisions, key=lambda decision: decision.judged_at)
        for before, decision in pairwise(in_order):
            if _may_have_kept_ticks(before, decision):
                lines.setdefault(decision.path, []).append(decision.line)
    notes = {}
    for path, numbers in lines.items():
        places = "line" if len(numbers) == 1 else "lines"
        notes[path] = (
            f"{counted(len(numbers), 'decision has', 'decisions have')} the concepts of the one just before, "
            "which an earlier version of the page kept ticked; look at them again: "
            f"{places} {first_few(list(map(str, sorted(numbers))), MAX_LINES)}"
        )
    return notes


class _Decision(NamedTuple):
    """A row of judgements, with the time of its judgement."""

    judged_at: datetime
    path: Path
    line: int
    cells: Mapping[str, str]


def _decisions_by_film(
    decisions: Iterable[tuple[Path, int, Mapping[str, str]]],
) -> dict[str, list[_Decision]]:
    """Return film -> its decisions. Those without a time are left out: they were not made on the page."""
    by_film: dict[str, list[_Decision]] = {}
    for path, line, cells in decisions:
        try:
            judged_at = datetime.fromisoformat(cells.get("judged_at", ""))
        except ValueError:
            continue
        if judged_at.tzinfo is None:
            judged_at = judged_at.replace(tzinfo=UTC)
        by_film.setdefault(cells.get("movie", ""), []).append(_Decision(judged_at, path, line, cells))
    return by_film


def _may_have_kept_ticks(before: _Decision, decision: _Decision) -> bool:
    """Return whether a decision may have its concepts from the decision just before it, by mistake.

    It may if both have the same concepts, were made in one sitting, and with the model's score visible: for
    blind decisions the page did clear the ticks.
    """
    concepts = decision.cells.get("concepts")
    has_same_concepts = bool(concepts) and concepts == before.cells.get("concepts")
    is_one_sitting = decision.judged_at - before.judged_at <= SITTING
    seen_scores = {parse_seen_score(row.cells.get(SEEN_SCORE, "")) for row in (before, decision)}
    was_score_visible = seen_scores == {"1"}  # for both decisions
    return was_score_visible and has_same_concepts and is_one_sitting
