"""Read people's judgements from a manifest: the level that each judge gave each window, and how.

All code that counts, compares or trains on judgements reads them here. Judgements that were made under two
definitions of the labels are refused, or separated.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import Clip
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.manifest import Manifest
from obygaze_features.manifest.text_tables import DEFINITION, SEEN_SCORE, counted
from obygaze_features.text import number_of

PLACE: Final = "place"
"""Column of blind judgements: the window's place in its film's random order, from 1."""

CONTENT_S: Final = "content_s"
"""Column of windows that were drawn: seconds of them that could be judged, at the draw."""

JUDGED_AT: Final = "judged_at"
"""Column: when it was judged, for people; nothing is decided by it."""

MOST_PLACES: Final = 1e9

SHOWN_DIGITS: Final = 12
"""Digits of a definition's digest that people are shown."""


class Window(NamedTuple):
    """A span of a film's video; without times the whole file, told apart by its id."""

    movie: str
    video: str
    start_s: float | None
    end_s: float | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one judge said of one window.

    Attributes
    ----------
    judge : str
        Empty where nobody is named.
    window : Window
    level : str
    place : int
        Of the window in the draw of its film, from 1; 0 where it was not drawn.
    content_s : float or None
        Seconds of it that could be judged when it was drawn; None where nothing says.
    is_blind : bool or None
        Whether the model's score was out of sight; None where nothing says.
    definition : str
        Digest of the definitions it was judged under (`Codebook.definition`); empty where nothing says.
    judged_at : str
        Time for people.
    clip : Clip
        The row, with concepts and further columns.
    """

    judge: str
    window: Window
    level: str
    place: int
    content_s: float | None
    is_blind: bool | None
    definition: str
    judged_at: str
    clip: Clip


@dataclass(frozen=True)
class Judgements:
    """Judgements of some films.

    Attributes
    ----------
    every : tuple of Judgement
        In the order of their rows.
    codebook : Codebook
        Of their levels.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features.manifest import Clip, Manifest, judgements_of
    >>> rows = [("AB", 0.0, "S"), ("CD", 0.0, "EN"), ("AB", 46.0, "S")]
    >>> clips = [Clip(f"{who}-{at:g}", "tt1", "", at, at + 46, level, (), who) for who, at, level in rows]
    >>> judged = judgements_of(Manifest(tuple(clips), Path()))
    >>> judged.judges, len(judged.windows), len(judged.common_windows(judged.judges))
    (('AB', 'CD'), 2, 1)
    """

    every: tuple[Judgement, ...]
    codebook: Codebook

    def __len__(self) -> int:
        return len(self.every)

    @property
    def judges(self) -> tuple[str, ...]:
        """Names of those who judged, sorted."""
        return tuple(sorted({judgement.judge for judgement in self.every}))

    @property
    def windows(self) -> tuple[Window, ...]:
        """Windows that anybody judged, in the order of their first rows."""
        return tuple(dict.fromkeys(judgement.window for judgement in self.every))

    @property
    def definitions(self) -> Mapping[str, int]:
        """Definition -> number of judgements made under it, the most first; unknown definitions left out."""
        known = [judgement.definition for judgement in self.every if judgement.definition]
        return dict(Counter(known).most_common())

    def where(self, counts: Callable[[Judgement], bool]) -> "Judgements":
        """Return the judgements for which `counts` is true."""
        return replace(self, every=tuple(judgement for judgement in self.every if counts(judgement)))

    def of(self, judge: str) -> "Judgements":
        """Return the judgements of one judge."""
        return self.where(lambda judgement: judgement.judge == judge)

    def of_movie(self, movie: str) -> "Judgements":
        """Return the judgements on one film."""
        return self.where(lambda judgement: judgement.window.movie == movie)

    def under(self, definition: str) -> "Judgements":
        """Return the judgements made under one definition, and those that do not say under which."""
        return self.where(lambda judgement: judgement.definition in {"", definition})

    def by_judge(self) -> dict[str, dict[Window, Judgement]]:
        """Return judge -> window -> judgement, with judges sorted by name.

        Of two judgements on one window, the blind one counts, not the one in sight of the model's score.

        Raises
        ------
        ManifestError
            A judge said two things of a window in the same way; names the row.
        """
        judged: dict[str, dict[Window, Judgement]] = {judge: {} for judge in self.judges}
        for judgement in self.every:
            by_window = judged[judgement.judge]
            earlier = by_window.get(judgement.window)
            if earlier is None or (judgement.is_blind and not earlier.is_blind):
                by_window[judgement.window] = judgement
            elif earlier.is_blind == judgement.is_blind:
                raise ManifestError(
                    f"clip {judgement.clip.clip_id!r}: {judgement.judge} labelled the same span of the "
                    "video twice"
                )
        return judged

    def common_windows(self, judges: Iterable[str]) -> list[Window]:
        """List the windows that all these judges judged; only on these can the judges be compared."""
        judged_by = defaultdict[Window, set[str]](set)
        for judgement in self.every:
            judged_by[judgement.window].add(judgement.judge)
        names = set(judges)
        if not names:
            return []
        return [window for window in self.windows if names <= judged_by[window]]

    def refuse_two_definitions(self) -> None:
        """Refuse judgements that were made under two definitions or more.

        Those that do not say under which they were made pass.

        Raises
        ------
        ManifestError
            Says how many each judge made under each, and what to do.
        """
        if len(self.definitions) < 2:
            return
        parts = []
        for definition in self.definitions:
            judges = [judgement.judge for judgement in self.every if judgement.definition == definition]
            n_by_judge = Counter(judges)
            counts = ", ".join(f"{judge or 'nobody named'} {n}" for judge, n in sorted(n_by_judge.items()))
            judged = counted(n_by_judge.total(), "judgement")
            parts.append(f"{judged} under {definition[:SHOWN_DIGITS]} ({counts})")
        raise ManifestError(
            f"what a label means was changed in between: {'; '.join(parts)}. Keep those of one definition "
            "(column definition), judge the others again (film open), or declare there with --same-meaning "
            "that the words mean the same"
        )


@checked
def judgements_of(manifest: Manifest) -> Judgements:
    """Read the labelled clips of a manifest as judgements."""
    judgements = []
    for clip in manifest:
        judgement = judgement_of(clip)
        if judgement is not None:
            judgements.append(judgement)
    return Judgements(tuple(judgements), manifest.codebook)


def judgement_of(clip: Clip) -> Judgement | None:
    """Read a clip with a level as a judgement; return None for a clip without one."""
    if clip.level is None:
        return None
    video = clip.video
    if not video and clip.start_s is None:
        video = clip.clip_id  # a whole file whose video is not known is told apart by its id
    seen_score = clip.extras.get(SEEN_SCORE, "")
    content = number_of(clip.extras.get(CONTENT_S, "").replace(",", "."))
    return Judgement(
        judge=clip.annotator,
        window=Window(clip.movie, video, clip.start_s, clip.end_s),
        level=clip.level,
        place=place_in(clip),
        content_s=content if content > 0 else None,
        is_blind=None if not seen_score else seen_score == "0",
        definition=clip.extras.get(DEFINITION, ""),
        judged_at=clip.extras.get(JUDGED_AT, ""),
        clip=clip,
    )


@checked
def place_in(clip: Clip) -> int:
    """Read a window's place in its film's random order from its extra column `place`; 0 if it has none."""
    place = number_of(clip.extras.get(PLACE, "").replace(",", "."))
    if place.is_integer() and 0 < place < MOST_PLACES:
        return int(place)
    return 0
