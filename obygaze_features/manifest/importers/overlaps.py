"""Find levels of one annotator that overlap in time, of which only one can be meant."""

from collections.abc import Iterable
from typing import NamedTuple

from obygaze_features.manifest.clip import Clip
from obygaze_features.manifest.text_tables import SEEN_SCORE, counted
from obygaze_features.text import first_few

APART = ("subject", "observation", SEEN_SCORE, "model", "prompt")
"""Extra columns that say of whom, by what and in whose sight: spans that differ in them may overlap."""

SHOWN = 3


class Overlap(NamedTuple):
    """Two spans of different levels by one annotator: the first ends behind the start of the second."""

    first: Clip
    second: Clip

    def __str__(self) -> str:
        annotator = f" by {self.first.annotator}" if self.first.annotator else ""
        return f"{self.first.movie}{annotator}: {_span(self.first)} and {_span(self.second)}"


def overlapping_levels(clips: Iterable[Clip]) -> list[str]:
    """Return a line that says where different levels of one annotator, film and subject overlap in time.

    It is empty where no levels do.

    Windows that were judged one by one may overlap: of them all have a `seen_score`, and nothing is said.
    """
    overlaps = _overlapping_pairs([clip for clip in clips if not clip.extras.get(SEEN_SCORE)])
    if not overlaps:
        return []
    shown = first_few([str(overlap) for overlap in overlaps], SHOWN)
    what = counted(len(overlaps), "pair of levels", "pairs of levels")
    return [f"{what} of one annotator overlap in time ({shown}): all are kept"]


def _overlapping_pairs(clips: Iterable[Clip]) -> list[Overlap]:
    """Return each pair of clips of one annotator and film that overlap in time and differ in their level.

    Each clip is compared with the clip before it that ends last. Clips that differ in a column of `APART`,
    such as the subject, may overlap.
    """
    groups: dict[tuple[str, ...], list[Clip]] = {}
    for clip in clips:
        if clip.level and clip.start_s is not None:
            apart = (clip.extras.get(name, "") for name in APART)
            groups.setdefault((clip.movie, clip.annotator, *apart), []).append(clip)
    overlaps = []
    for group in groups.values():
        group.sort(key=lambda clip: (clip.start_s or 0.0, clip.end_s or 0.0))
        ends_last = group[0]
        for clip in group[1:]:
            overlaps_in_time = (clip.start_s or 0.0) < (ends_last.end_s or 0.0)
            if overlaps_in_time and clip.level != ends_last.level:
                overlaps.append(Overlap(ends_last, clip))
            if (clip.end_s or 0.0) > (ends_last.end_s or 0.0):
                ends_last = clip
    return overlaps


def _span(clip: Clip) -> str:
    """Write a clip's level and times: `S 12-18.5 s`."""
    return f"{clip.level} {clip.start_s:g}-{clip.end_s:g} s"
