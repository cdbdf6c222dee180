"""Find levels of one annotator that overlap in time, of which only one can be meant."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from obygaze_features.manifest.clip import Clip
from obygaze_features.manifest.judgements import place_in
from obygaze_features.manifest.spans.tier_names import HOW, HOWS
from obygaze_features.manifest.text_tables import SEEN_SCORE, counted
from obygaze_features.text import first_few

APART = ("subject", "observation", SEEN_SCORE, "model", "prompt")
"""Extra columns that say of whom, by what and in whose sight: spans that differ in them may overlap."""

CELLS_OF_JUDGEMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "draw": ("random", "uncertain"),
    "judgement": ("agree", "disagree", "unsure"),
    HOW: HOWS,
}
"""Extra columns that judgements of a scored film have, and what these say: why the window was chosen, whether
the judge agrees with the model, and how it was judged, as a tier of an exported film says."""

SHOWN = 3


class Overlap(NamedTuple):
    """Two spans of different levels by one annotator: the first ends behind the start of the second."""

    first: Clip
    second: Clip

    def __str__(self) -> str:
        """Write the two spans for a notice: `film0 by AB: S 12-18.5 s and HN 17-20 s`."""
        annotator = f" by {self.first.annotator}" if self.first.annotator else ""
        return f"{self.first.movie}{annotator}: {_span(self.first)} and {_span(self.second)}"


def overlapping_levels(clips: Iterable[Clip]) -> list[str]:
    """Return a notice on different levels of one annotator, film and subject that overlap in time.

    The list is empty if there are none. Windows of a scored film may overlap, as they are judged one by one,
    and are not compared.
    """
    overlaps = _overlapping_pairs([clip for clip in clips if not _is_judged_window(clip)])
    if not overlaps:
        return []
    shown = first_few([str(overlap) for overlap in overlaps], SHOWN)
    what = counted(len(overlaps), "span overlaps", "spans overlap")
    return [f"{what} an earlier one of another level by the same annotator ({shown}): all are kept"]


def _is_judged_window(clip: Clip) -> bool:
    """Return whether a clip is a window of a scored film, which its judge was shown and did not delimit.

    Its place in the film's draw tells, or a cell of `CELLS_OF_JUDGEMENTS`. The column `seen_score` does not:
    spans that somebody delimits in another program have it as well.
    """
    if place_in(clip) > 0:
        return True
    return any(clip.extras.get(column) in cells for column, cells in CELLS_OF_JUDGEMENTS.items())


def _overlapping_pairs(clips: Iterable[Clip]) -> list[Overlap]:
    """Return the clips that overlap an earlier one of another level by the same annotator of the film.

    Clips that differ in a column of `APART`, such as the subject or the observation, are not compared.
    """
    groups: dict[tuple[str, ...], list[Clip]] = {}
    for clip in clips:
        if clip.level and clip.start_s is not None:
            cells_apart = [clip.extras.get(name, "") for name in APART]
            key = (clip.movie, clip.annotator, *cells_apart)
            groups.setdefault(key, []).append(clip)
    overlaps = []
    for group in groups.values():
        overlaps += _overlaps_in_group(group)
    return overlaps


def _overlaps_in_group(clips: Iterable[Clip]) -> list[Overlap]:
    """Find each clip that begins before an earlier clip of another level has ended.

    If there are several such earlier clips, the pair has the one that ends last.
    """
    in_order_of_starts = sorted(clips, key=lambda clip: (_start_s(clip), _end_s(clip)))
    latest_end_of_level: dict[str | None, Clip] = {}  # level -> the clip so far that ends last
    overlaps = []
    for clip in in_order_of_starts:
        of_other_levels = [other for level, other in latest_end_of_level.items() if level != clip.level]
        last_to_end = max(of_other_levels, key=_end_s, default=None)
        if last_to_end is not None and _start_s(clip) < _end_s(last_to_end):
            overlaps.append(Overlap(first=last_to_end, second=clip))

        earlier_of_level = latest_end_of_level.get(clip.level, clip)
        latest_end_of_level[clip.level] = max(earlier_of_level, clip, key=_end_s)
    return overlaps


def _start_s(clip: Clip) -> float:
    """Return when a clip with times begins."""
    return clip.start_s or 0.0


def _end_s(clip: Clip) -> float:
    """Return when a clip with times ends."""
    return clip.end_s or 0.0


def _span(clip: Clip) -> str:
    """Write a clip's level and times: `S 12-18.5 s`."""
    return f"{clip.level} {clip.start_s:g}-{clip.end_s:g} s"
