"""Read people's judgements from a manifest: the level that each judge gave each window, and how.

All code that counts, compares or trains on judgements reads them here. Judgements that were made under two
definitions of the labels are refused, or separated.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import Clip, video_key
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

MODEL: Final = "model"
"""Column: the machine that gave the label; empty for people."""

HOW_JUDGED: Final = (SEEN_SCORE, DEFINITION, MODEL, "prompt", "answered_on", "perceives")
"""Columns that say how a label was given: in sight of a score, under which definition, by which machine."""

MAX_PLACES: Final = 1e9

SHOWN_DIGITS: Final = 12
"""How many digits of a definition's digest a message shows."""


class Window(NamedTuple):
    """A span of a film's video; without times a whole file, whose id stands for an unknown video."""

    movie: str
    video: str
    start_s: float | None
    end_s: float | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The level that one judge gave one window.

    Attributes
    ----------
    judge : str
        Name of the person; empty if the row names nobody.
    window : Window
        The span that was judged.
    level : str
        A level of the codebook.
    place : int
        Place of the window in the random order of its film's windows, from 1; 0 if it was not drawn at
        random.
    content_s : float or None
        Seconds of the window that could be judged when it was drawn; None if the row does not say.
    is_blind : bool or None
        Whether the judge did not see the model's score; None if the row does not say.
    definition : str
        Digest of the definitions of labels that the judge read (`Codebook.definition`); empty if the row does
        not say.
    judged_at : str
        The time of the judgement, for people to read; nothing is computed from it.
    clip : Clip
        The manifest's row, with concepts and further columns.
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
        The judgements, in the order of their rows.
    codebook : Codebook
        The codebook of their levels.

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
        """Return the number of judgements, of all judges and windows."""
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
        """Definition -> number of judgements made under it, the most frequent definition first.

        Judgements that do not say their definition are not counted.
        """
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

        If a judge judged a window both blind and with the model's score visible, the blind judgement counts.

        Raises
        ------
        ManifestError
            A judge judged a window twice in the same way: both times blind, both times not, or both times
            without saying so. Names the row.
        """
        judgements: dict[str, dict[Window, Judgement]] = {judge: {} for judge in self.judges}
        for judgement in self.every:
            by_window = judgements[judgement.judge]
            earlier = by_window.get(judgement.window)
            if earlier is None:
                by_window[judgement.window] = judgement
                continue
            if earlier.is_blind == judgement.is_blind:
                raise ManifestError(
                    f"clip {judgement.clip.clip_id!r}: {judgement.judge} labelled the same span of the "
                    "video twice"
                )
            if judgement.is_blind:
                by_window[judgement.window] = judgement
        return judgements

    def common_windows(self, judges: Iterable[str]) -> list[Window]:
        """List the windows that all these judges judged; only on these can the judges be compared."""
        names = set(judges)
        if not names:
            return []
        judges_of_window = defaultdict[Window, set[str]](set)
        for judgement in self.every:
            judges_of_window[judgement.window].add(judgement.judge)
        return [window for window in self.windows if names <= judges_of_window[window]]

    def refuse_two_definitions(self) -> None:
        """Refuse judgements that were made under more than one definition of the labels.

        Judgements that do not say their definition are ignored.

        Raises
        ------
        ManifestError
            Says how many judgements each judge made under each definition, and what to do.
        """
        if len(self.definitions) < 2:
            return
        summaries = []
        for definition in self.definitions:
            judges = [judgement.judge for judgement in self.every if judgement.definition == definition]
            n_by_judge = Counter(judges)
            counts = ", ".join(f"{judge or 'nobody named'} {n}" for judge, n in sorted(n_by_judge.items()))
            n_judgements = counted(n_by_judge.total(), "judgement")
            summaries.append(f"{n_judgements} under {definition[:SHOWN_DIGITS]} ({counts})")
        raise ManifestError(
            f"what a label means was changed in between: {'; '.join(summaries)}. Keep those of one "
            "definition (column definition), judge the others again (film open), or declare there with "
            "--same-meaning that the words mean the same"
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


def window_of(clip: Clip) -> Window:
    """Return the span of a film's video that a clip is of; two spellings of a path are one video.

    A clip that has neither a video nor times is a whole file whose path is not known: its id stands for it.
    """
    is_of_unknown_file = not clip.video and clip.start_s is None
    video = clip.clip_id if is_of_unknown_file else video_key(clip.video)
    return Window(clip.movie, video, clip.start_s, clip.end_s)


def judgement_of(clip: Clip) -> Judgement | None:
    """Read a clip with a level as a judgement; return None for a clip without one."""
    if clip.level is None:
        return None
    content_s = number_of(clip.extras.get(CONTENT_S, "").replace(",", "."))
    has_content_s = content_s > 0  # False for NaN, the number of an empty cell
    seen_score = clip.extras.get(SEEN_SCORE, "")
    return Judgement(
        judge=clip.annotator,
        window=window_of(clip),
        level=clip.level,
        place=place_in(clip),
        content_s=content_s if has_content_s else None,
        is_blind=seen_score == "0" if seen_score else None,
        definition=clip.extras.get(DEFINITION, ""),
        judged_at=clip.extras.get(JUDGED_AT, ""),
        clip=clip,
    )


@checked
def machines_of(manifest: Manifest) -> tuple[str, ...]:
    """Return the names of annotators that are machines, which have a value in the column `model`, sorted."""
    return tuple(sorted({clip.annotator for clip in manifest if clip.annotator and clip.extras.get(MODEL)}))


class BlindLabels(NamedTuple):
    """Labels of annotators who can be compared, since none of these labels was given in sight of a score.

    Attributes
    ----------
    manifest
        All rows; those that do not count have no label.
    n_left_out
        Number of named annotators' labels that do not count.
    n_unknown
        Number of people's labels that count and do not say whether a score was in sight, although the
        manifest has the column `seen_score`.
    """

    manifest: Manifest
    n_left_out: int
    n_unknown: int

    def reason(self) -> str:
        """Write which labels do not count, for a message that too few are left; "" if all count."""
        if not self.n_left_out:
            return ""
        judgements = counted(self.n_left_out, "judgement")
        return f"; {judgements} in sight of a model's score (seen_score 1) left out: judge blindly to compare"


@checked
def blind_labels(manifest: Manifest, *, whole_films: bool = False) -> BlindLabels:
    """Return a manifest in which labels that were given in sight of a model's score are left out.

    People who see a score tend to agree with it, and so with each other and with machines. All measures of
    agreement therefore read labels here. Labels that do not say whether a score was in sight count.

    Parameters
    ----------
    manifest
        Rows of annotators.
    whole_films
        Whether to leave out all labels that an annotator gave in a film if one of them was given in sight of
        a score. Needed for free segments: of what an annotator marked in a film no part can be missing.
    """
    films_in_sight = set()  # (annotator, movie) with a label in sight of a score
    for clip in manifest:
        if _is_in_sight(clip):
            films_in_sight.add((clip.annotator, clip.movie))

    rows = []
    n_left_out = 0
    n_unknown = 0
    for clip in manifest:
        is_in_film_in_sight = (clip.annotator, clip.movie) in films_in_sight
        is_left_out = is_in_film_in_sight if whole_films else _is_in_sight(clip)
        rows.append(replace(clip, level=None, concepts=()) if is_left_out else clip)

        if not clip.annotator or not _has_level_or_concepts(clip):
            continue
        is_of_person = not clip.extras.get(MODEL)
        if is_left_out:
            n_left_out += 1
        elif is_of_person and clip.extras.get(SEEN_SCORE) == "":
            n_unknown += 1
    return BlindLabels(manifest.with_clips(rows), n_left_out, n_unknown)


def _is_in_sight(clip: Clip) -> bool:
    """Return whether a clip has a label that was given in sight of a model's score, a level or concepts."""
    seen_score = clip.extras.get(SEEN_SCORE, "")
    return _has_level_or_concepts(clip) and seen_score not in {"", "0"}


def _has_level_or_concepts(clip: Clip) -> bool:
    """Return whether a clip has a label that annotators can be compared by."""
    return clip.level is not None or bool(clip.concepts)


def how_judged(judged: Iterable[Clip], extras: Mapping[str, str]) -> dict[str, str]:
    """Return the extra columns of a row that gets its label from judged rows, with how these were judged.

    The row was judged in sight of a model's score if one of the judged rows was, and blindly if all of them
    were. Other columns of `HOW_JUDGED`, such as the model's name, hold each value of the judged rows once,
    joined by semicolons.

    Parameters
    ----------
    judged
        The rows that the label comes from.
    extras
        The extra columns of the row so far. What they say of how an earlier label was judged is replaced.
    """
    rows = list(judged)
    result = dict(extras)
    for column in HOW_JUDGED:
        cells = [row.extras[column] for row in rows if column in row.extras]
        is_in_no_row = not cells and column not in extras
        if is_in_no_row:
            continue
        if column == SEEN_SCORE:
            result[column] = _seen_score_of(cells)
        else:
            result[column] = _distinct_values(cells)
    return result


def _seen_score_of(cells: Sequence[str]) -> str:
    """Return the cell `seen_score` of a label that comes from rows with these cells; "" if unknown."""
    if "1" in cells:
        return "1"
    all_are_blind = set(cells) == {"0"}
    return "0" if all_are_blind else ""


def _distinct_values(cells: Sequence[str]) -> str:
    """Join the values of cells, each of which may hold several, by semicolons: each value once."""
    values: list[str] = []
    for cell in cells:
        for value in cell.split(";"):
            if value and value not in values:
                values.append(value)
    return ";".join(values)


@checked
def place_in(clip: Clip) -> int:
    """Read a clip's extra column `place`: its place in the random order of its film's windows, from 1.

    0 if the column is absent or empty, or holds no such number.
    """
    place = number_of(clip.extras.get(PLACE, "").replace(",", "."))
    if place.is_integer() and 0 < place < MAX_PLACES:
        return int(place)
    return 0
