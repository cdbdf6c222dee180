"""Name judgements that may have the concepts of the one before them."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from obygaze_features.arguments import checked
from obygaze_features.manifest.clip import seen_of
from obygaze_features.manifest.text_tables import SEEN_SCORE, counted

SITTING = timedelta(hours=4)
"""Decisions this far apart, or less, may have been made on a page that stayed open between them."""


@checked
def repeated_concepts(decisions: Iterable[tuple[Path, int, Mapping[str, str]]]) -> dict[Path, str]:
    """Find decisions whose concepts are those of the decision just before them, in the same sitting.

    The page of `film open` once kept concepts ticked when another passage was chosen, so that such a decision
    may have concepts that nobody saw. Which of them do is known to who judged alone: none is left out.

    Parameters
    ----------
    decisions : iterable of (path, line, cells)
        Of judgements and passages made in the workspace; `judged_at` tells their order.

    Returns
    -------
    dict
        Path of a file -> what to say of its lines.
    """
    of_film: dict[str, list[tuple[datetime, Path, int, Mapping[str, str]]]] = {}
    for path, line, cells in decisions:
        with suppress(ValueError):  # filled in elsewhere: no page that could keep a tick
            made = datetime.fromisoformat(cells.get("judged_at", ""))
            made = made if made.tzinfo else made.replace(tzinfo=UTC)
            of_film.setdefault(cells.get("movie", ""), []).append((made, path, line, cells))
    lines: dict[Path, list[int]] = {}
    for decided in of_film.values():
        ordered = sorted(decided, key=lambda one: one[0])
        for (earlier, *_, before), (later, path, line, cells) in pairwise(ordered):
            seen = {seen_of(each.get(SEEN_SCORE, "")) for each in (before, cells)}
            alike = cells.get("concepts") and cells.get("concepts") == before.get("concepts")
            if seen == {"1"} and alike and later - earlier <= SITTING:  # blind judging cleared the ticks
                lines.setdefault(path, []).append(line)
    notes = {}
    for path, numbers in lines.items():
        places = "line" if len(numbers) == 1 else "lines"
        notes[path] = (
            f"{counted(len(numbers), 'decision has', 'decisions have')} the concepts of the one just before, "
            "which an earlier version of the page kept ticked; look at them again: "
            f"{places} {', '.join(map(str, sorted(numbers)))}"
        )
    return notes
