"""Find what people differ on in a film, and what they agreed on where they did.

Two people differ where they judged one span in the same way, blindly or in sight of the score, and gave it
different levels. A decision that is agreed names those that it settles, its parents. It counts while all of
them stand: whoever judges again opens the question again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from obygaze_features.manifest import SEEN_SCORE, Clip
from obygaze_film.workspace.ledger_lines import PARENTS, Line

MILLISECONDS = 3
"""Digits of the seconds by which spans are one."""


class Disagreement(NamedTuple):
    """A span to which people gave different levels.

    Attributes
    ----------
    start_s, end_s : float
    decisions : tuple of str
        Ids of the latest decision of each of them.
    agreed : str
        Id of the decision that settles it; empty while it is open.
    """

    start_s: float
    end_s: float
    decisions: tuple[str, ...]
    agreed: str


def disagreements(judged: Iterable[Clip], agreed: Sequence[Clip]) -> list[Disagreement]:
    """List what people differ on, in time order.

    Parameters
    ----------
    judged : iterable of Clip
        Decisions with levels, of one person in one place the latest last.
    agreed : sequence of Clip
        Decisions that settle, all parents of which stand.
    """
    by_place: dict[tuple[float, float, str], dict[str, Clip]] = {}
    for clip in judged:
        start_s, end_s = span_key(clip)
        place = start_s, end_s, clip.extras.get(SEEN_SCORE, "")
        by_place.setdefault(place, {})[clip.annotator] = clip
    found = []
    for (start_s, end_s, _), clip_of in sorted(by_place.items()):
        if len({clip.level for clip in clip_of.values()}) > 1:
            ids = tuple(clip.clip_id for clip in clip_of.values())
            found.append(Disagreement(start_s, end_s, ids, _settled_by(clip_of.values(), agreed)))
    return found


def span_key(clip: Clip) -> tuple[float, float]:
    """Return the span of a decision, as spans are compared."""
    return round(clip.start_s or 0.0, MILLISECONDS), round(clip.end_s or 0.0, MILLISECONDS)


def parents_of(clip: Clip) -> frozenset[str]:
    """Return the ids of what a decision settles."""
    return frozenset(filter(None, clip.extras.get(PARENTS, "").split(";")))


def _settled_by(differing: Iterable[Clip], agreed: Sequence[Clip]) -> str:
    """Return the id of what settles decisions; empty if nothing does, or two people settled it otherwise."""
    level_of = {clip.clip_id: clip.level for clip in differing}
    candidates = [clip for clip in agreed if parents_of(clip) & level_of.keys()]
    if len({clip.level for clip in candidates}) != 1:
        return ""
    settling = candidates[-1]
    others = level_of.keys() - parents_of(settling)
    # Whoever judged since, and says the same, opens nothing.
    return settling.clip_id if all(level_of[name] == settling.level for name in others) else ""


def problem_of(line: Line, lines: Mapping[str, Line]) -> str:
    """Say why an agreed decision does not count; "" if it does.

    Parameters
    ----------
    line : Line
        Of the decision that is agreed.
    lines : mapping
        Id -> line of the decisions that stand.

    Returns
    -------
    str
        `open` if a parent no longer stands, `nothing` if they are no two people's decisions on one span.
    """
    parents = [lines[name] for name in line.parents if name in lines]
    if len(parents) < len(line.parents):
        return "open"
    spans = {_span_of(one) for one in (line, *parents)}
    people = {parent.annotator for parent in parents if parent.row.get("level") and parent.kind != "agreed"}
    return "" if len(spans) == 1 and len(people) > 1 else "nothing"


def _span_of(line: Line) -> tuple[str, float, float]:
    start_s, end_s = (round(float(line.row[name]), MILLISECONDS) for name in ("start_s", "end_s"))
    return line.row.get("movie", ""), start_s, end_s
