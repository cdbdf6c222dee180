"""Find the spans that people judged differently, and the decisions by which they settled the difference.

People differ on a span if they judged it in the same way, all blindly or all with the score shown, and gave
it different levels. An agreed decision names the decisions that it settles, its parents. It counts as long as
all its parents stand: whoever judges the span again opens the question again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from obygaze_features.manifest import Clip
from obygaze_film.judged_windows import was_score_hidden
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
    # Blind decisions are only compared with blind ones. Of each annotator the latest decision is compared.
    latest_of_span: dict[_JudgedSpan, dict[str, Clip]] = {}
    for clip in judged:
        start_s, end_s = span_key(clip)
        span = _JudgedSpan(start_s, end_s, is_in_sight=not was_score_hidden(clip))
        latest_of_span.setdefault(span, {})[clip.annotator] = clip

    differences = []
    for span in sorted(latest_of_span):
        clips = list(latest_of_span[span].values())
        levels = {clip.level for clip in clips}
        if len(levels) > 1:
            ids = tuple(clip.clip_id for clip in clips)
            difference = Disagreement(span.start_s, span.end_s, ids, agreed=_settled_by(clips, agreed))
            differences.append(difference)
    return differences


class _JudgedSpan(NamedTuple):
    """A span in seconds, and whether it was judged in sight of the score: whoever does not say so was."""

    start_s: float
    end_s: float
    is_in_sight: bool


def span_key(clip: Clip) -> tuple[float, float]:
    """Return the start and end of a decision in seconds, rounded so that equal spans compare as equal."""
    return round(clip.start_s or 0.0, DECIMALS), round(clip.end_s or 0.0, DECIMALS)


def parents_of(clip: Clip) -> frozenset[str]:
    """Return the ids of the decisions that an agreed decision settles."""
    return frozenset(parent_ids_of(clip.extras))


def _settled_by(differing: Iterable[Clip], agreed: Sequence[Clip]) -> str:
    """Return the id of the agreed decision that settles some differing decisions; empty if none does.

    An agreed decision names the decisions that it settles, its parents. The difference is still open in two
    cases: agreed decisions of different levels contradict each other; or somebody's decision of another level
    is no parent, as it was made later, or those who agreed did not know of it.

    Parameters
    ----------
    differing : iterable of Clip
        Decisions of several people on one span.
    agreed : sequence of Clip
        All agreed decisions, the latest last.
    """
    level_of = {clip.clip_id: clip.level for clip in differing}
    settling = [clip for clip in agreed if parents_of(clip) & level_of.keys()]  # have any of them as parent
    agreed_levels = {clip.level for clip in settling}
    if len(agreed_levels) != 1:
        return ""

    latest = settling[-1]
    for clip_id, level in level_of.items():
        is_parent = clip_id in parents_of(latest)
        is_of_another_level = level != latest.level
        if is_of_another_level and not is_parent:
            return ""
    return latest.clip_id


Problem = Literal["open", "nothing"]
"""Why an agreed decision does not count. `open`: a decision that it settles, a parent, no longer stands, and
so the question is open again. `nothing`: it settles nothing, as its parents are not decisions of at least two
people on its own span. The messages `agreed_open` and `agreed_nothing` say so to the user."""


def problem_of(agreed: Mapping[str, str], lines: Mapping[str, Line]) -> Problem | None:
    """Return why an agreed decision does not count; None if it does.

    Parameters
    ----------
    agreed : mapping
        The agreed decision's cells, by column.
    lines : mapping
        Id -> line of the decisions that stand.

    Returns
    -------
    str or None
        `open`: a decision that it settles, a parent, does not stand any more, so that people may differ
        again. `nothing`: there is no difference that it could settle, as its parents are of another span, or
        not of two people.
    """
    parent_ids = parent_ids_of(agreed)
    standing_parents = [lines[parent_id] for parent_id in parent_ids if parent_id in lines]
    if len(standing_parents) < len(parent_ids):
        return "open"
    if any(_span_of(parent.row) != _span_of(agreed) for parent in standing_parents):
        return "nothing"
    # People differ by their own judgements, not by what they agreed on before.
    people = set()
    for parent in standing_parents:
        is_own_judgement = parent.kind != "agreed" and bool(parent.row.get("level"))
        if is_own_judgement:
            people.add(parent.annotator)
    if len(people) < 2:
        return "nothing"
    return None


def _span_of(row: Mapping[str, str]) -> tuple[str, float, float]:
    """Return the movie, start and end in a row, rounded so that equal spans compare as equal."""
    start_s = round(float(row["start_s"]), DECIMALS)
    end_s = round(float(row["end_s"]), DECIMALS)
    return row.get("movie", ""), start_s, end_s
