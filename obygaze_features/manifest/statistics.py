"""Levels and concepts counted, as in section 3.4 and Figure 2 of Tores et al., CVPR 2024."""

from collections.abc import Mapping
from dataclasses import dataclass

from .manifest import Manifest
from .vocabulary import CONCEPTS, LEVELS, VISUAL_CONCEPTS, Level

OBYGAZE12_MOVIES: frozenset[str] = frozenset(
    {
        "tt0108160",
        "tt0110912",
        "tt0119822",
        "tt0212338",
        "tt0467406",
        "tt0822832",
        "tt1045658",
        "tt1142988",
        "tt1193138",
        "tt1454029",
        "tt1570728",
        "tt2267998",
    }
)
"""The twelve films whose numbers the paper prints."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of a manifest's levels and concepts; every share is of clips that have a level.

    Parameters
    ----------
    n_clips
        All clips, with a level or without.
    clips
        Clips of each level.
    with_concept
        Clips of each level with each concept.
    """

    n_clips: int
    clips: Mapping[Level, int]
    with_concept: Mapping[Level, Mapping[str, int]]

    @property
    def unlabelled(self) -> int:
        """Clips without a level."""
        return self.n_clips - sum(self.clips.values())

    def share(self, level: Level, *of: Level) -> float | None:
        """Share of a level among the clips of the given levels (all four if none is given)."""
        return _ratio(self.clips[level], sum(self.clips[other] for other in (of or LEVELS)))

    def mean_concepts(self, level: Level) -> float | None:
        """Visual concepts per clip of a level, on average."""
        return _ratio(self._marks(level), self.clips[level])

    def share_of_clips(self, level: Level, concept: str) -> float | None:
        """Share of a level's clips that have a concept."""
        return _ratio(self.with_concept[level][concept], self.clips[level])

    def share_of_marks(self, level: Level, concept: str) -> float | None:
        """Share of a visual concept among all visual concepts marked at a level: Figure 2's distribution."""
        return _ratio(self.with_concept[level][concept], self._marks(level))

    def _marks(self, level: Level) -> int:
        return sum(self.with_concept[level][concept] for concept in VISUAL_CONCEPTS)


def statistics(manifest: Manifest) -> Statistics:
    """Count levels and concepts."""
    clips = dict.fromkeys(LEVELS, 0)
    with_concept = {level: dict.fromkeys(CONCEPTS, 0) for level in LEVELS}
    for clip in manifest:
        if clip.level is not None:
            clips[clip.level] += 1
            for concept in clip.concepts:
                with_concept[clip.level][concept] += 1
    return Statistics(len(manifest), clips, with_concept)


@dataclass(frozen=True, slots=True)
class PublishedNumber:
    """One number of the paper: its name, ours (None if undefined), what is printed, and how it is printed."""

    name: str
    ours: float | None
    published: str
    style: str

    @property
    def shown(self) -> str:
        """Our number, written as the paper writes it."""
        return "undefined" if self.ours is None else format(self.ours, self.style)


def published_numbers(counted: Statistics) -> tuple[PublishedNumber, ...]:
    """List the numbers that section 3.4, section 4.1, App. 8.2 and Figure 2 print, beside ours.

    The printed ones are of ObyGaze12 under the label policy `paper`. Ours agree when rounded, but for one: S
    of EN and S is 23.6 %, printed as 23 %.
    """
    en, hn, ns, s = LEVELS
    share, mean = counted.share, counted.mean_concepts
    return (
        *(
            PublishedNumber(f"{level} of all clips", share(level), printed, ".1%")
            for level, printed in zip(LEVELS, ("52%", "16%", "15%", "16%"), strict=True)
        ),
        *(
            PublishedNumber(f"{level} without NS", share(level, en, hn, s), printed, ".1%")
            for level, printed in zip((en, hn, s), ("62%", "19%", "19%"), strict=True)
        ),
        PublishedNumber("S of EN and S", share(s, en, s), "23%", ".1%"),
        PublishedNumber("S of EN, HN and S", share(s, en, hn, s), "19%", ".1%"),
        *(
            PublishedNumber(f"visual concepts per {level} clip", mean(level), printed, ".2f")
            for level, printed in zip((hn, ns, s), ("1.26", "1.71", "2.60"), strict=True)
        ),
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
