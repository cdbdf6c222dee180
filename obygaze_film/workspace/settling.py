"""Find the spans that people judged differently, and the decisions by which they settled the difference.

People differ on a span if they judged it in the same way, all blindly or all in sight of the score, and gave
it different levels. An agreed decision names the decisions that it settles, its parents. It counts as long as
all its parents stand: whoever judges the span again opens the question again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from obygaze_features.manifest import SEEN_SCORE, Clip
from obygaze_film.workspace.ledger_lines import Line, parent_ids_of

DECIMALS = 3
"""Decimals of seconds (milliseconds) to which the ends of spans are rounded before they are compared."""


class Disagreement(NamedTuple):
    """A span to which people gave different levels.

    Attributes
    ----------
    start_s, end_s : float
    decisions : tuple of str
        Id of each person's latest decision on the span.
    agreed : str
        Id of the decision that settles it; empty while it is open.
    """

    start_s: float
    end_s: float
    decisions: tuple[str, ...]
    agreed: str


def disagreements(judged: Iterable[Clip], agreed: Sequence[Clip]) -> list[Disagreement]:
    """List the spans to which people gave different levels, in time order.

    Parameters
    ----------
    judged : iterable of Clip
        Decisions with levels. If a person decided on one span several times, the last one counts.
    agreed : sequence of Clip
        Agreed decisions whose parents all stand.
    """
    # (start, end, whether in sight of the score) -> annotator -> the latest decision. Blind decisions and
    # those in sight of the score are compared apart.
    decisions_by_span: dict[tuple[float, float, str], dict[str, Clip]] = {}
    for clip in judged:
        start_s, end_s = span_key(clip)
        key = (start_s, end_s, clip.extras.get(SEEN_SCORE, ""))
        decisions_by_span.setdefault(key, {})[clip.annotator] = clip
    differences = []
    for (start_s, end_s, _), clip_of_annotator in sorted(decisions_by_span.items()):
        clips = list(clip_of_annotator.values())
        levels = {clip.level for clip in clips}
        if len(levels) > 1:
            ids = tuple(clip.clip_id for clip in clips)
            differences.append(Disagreement(start_s, end_s, ids, _settled_by(clips, agreed)))
    return differences


def span_key(clip: Clip) -> tuple[float, float]:
    """Return the start and end of a decision in seconds, rounded so that equal spans compare as equal."""
    return round(clip.start_s or 0.0, DECIMALS), round(clip.end_s or 0.0, DECIMALS)


def parents_of(clip: Clip) -> frozenset[str]:
    """Return the ids of the decisions that an agreed decision settles."""
    return frozenset(parent_ids_of(clip.extras))


def _settled_by(differing: Iterable[Clip], agreed: Sequence[Clip]) -> str:
    """Return the id of the agreed decision that settles some differing decisions; empty if none does.

    An agreed decision settles them if some of them are its parents. It does not if another agreed decision
    with such parents gives another level, or if a differing decision that is none of its parents (it was made
    later, or was not known) gives another level.
    """
    level_of = {clip.clip_id: clip.level for clip in differing}
    candidates = [clip for clip in agreed if parents_of(clip) & level_of.keys()]
    agreed_levels = {clip.level for clip in candidates}
    if len(agreed_levels) != 1:
        return ""
    settling = candidates[-1]
    for clip_id, level in level_of.items():
        if clip_id not in parents_of(settling) and level != settling.level:
            return ""
    return settling.clip_id


Problem = Literal["open", "nothing"]
"""Why an agreed decision does not count. `open`: a decision that it settles, a parent, no longer stands, and
so the question is open again. `nothing`: it settles nothing, as its parents are not decisions of at least two
people on its own span."""


def problem_of(agreed: Mapping[str, str], lines: Mapping[str, Line]) -> Problem | None:
    """Return why an agreed decision does not count; None if it does.

    Parameters
    ----------
    agreed : mapping
        The agreed decision's cells, by column.
    lines : mapping
        Id -> line of the decisions that stand.
    """
    parent_ids = parent_ids_of(agreed)
    parents = [lines[parent_id] for parent_id in parent_ids if parent_id in lines]
    if len(parents) < len(parent_ids):
        return "open"
    people = set()
    are_all_on_its_span = True
    for parent in parents:
        is_own_judgement = parent.kind != "agreed" and parent.row.get("level")
        if is_own_judgement:
            people.add(parent.annotator)
        if _span_of(parent.row) != _span_of(agreed):
            are_all_on_its_span = False
    if not are_all_on_its_span or len(people) < 2:
        return "nothing"
    return None


def _span_of(row: Mapping[str, str]) -> tuple[str, float, float]:
    """Return the movie, start and end in a row, rounded so that equal spans compare as equal."""
    start_s = round(float(row["start_s"]), DECIMALS)
    end_s = round(float(row["end_s"]), DECIMALS)
    return row.get("movie", ""), start_s, end_s
