"""Find a film's windows that were drawn at random and judged blindly, as far as they make up a whole draw."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from typing import Final

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest import SEEN_SCORE, Clip, Manifest, name_hint
from obygaze_features.text import first_few, number_of
from obygaze_film.cells import Cells, Floats, cells_of
from obygaze_film.draws import CONTENT_S, LAW, SEED, SEQUENTIAL_POISSON, SUCCESSIVE, Law
from obygaze_film.errors import FilmError
from obygaze_film.notes import said
from obygaze_film.rows import SLACK_S
from obygaze_film.timeline import Timeline

PLACE: Final = "place"
"""Column of blind judgements: the window's place in its film's random order, from 1."""

MOST_PLACES: Final = 1e9

LEAST: Final = 10
"""Minimum number of blind judgements for a rate, unless the film has fewer windows."""

ByCell = dict[int, dict[str, bool]]
"""For each judged cell, in the order of the draw, whether each annotator calls it positive."""


@dataclass(frozen=True, eq=False, slots=True)
class JudgedWindows:
    """The cells of a film that were judged blindly, as far as they make up a whole draw.

    Attributes
    ----------
    cells : Cells
        With the content that judged cells had when they were drawn.
    by_cell : dict
    unsure : tuple of int
        Cells that were judged too, and of which nobody was sure.
    law : str
        By which the cells were drawn.
    notices : tuple of str
        What was left out, and why.
    """

    cells: Cells
    by_cell: ByCell
    unsure: tuple[int, ...]
    law: Law
    notices: tuple[str, ...]

    @property
    def sure_cells(self) -> Cells:
        """The cells to which a rate refers: all but those of which nobody was sure."""
        return self.cells if self.law == SEQUENTIAL_POISSON else self.cells.without(self.unsure)

    @property
    def common_judges(self) -> int:
        """The least number of whose inverse each cell's share of positive calls is a multiple."""
        return math.lcm(*{len(calls) for calls in self.by_cell.values()})


def least_judged(cells: Cells) -> int:
    """Return the minimum number of cells to judge: `LEAST`, or all with content if there are fewer."""
    return min(LEAST, int((cells.content > 0).sum()))


def votes(by_cell: ByCell) -> tuple[NDArray[np.int64], Floats, dict[str, Floats]]:
    """Return the judged cells [n], of each the share of annotators who call it positive, and each's share.

    The cells are in the order of the draw.
    """
    judged = np.array(list(by_cell), dtype=np.int64)
    each = list(by_cell.values())
    names = sorted({name for own in each for name in own})
    shares = {name: np.array([(name in own) / len(own) for own in each]) for name in names}
    return judged, np.array([np.mean(list(own.values())) for own in each]), shares


def drawn_place(clip: Clip) -> int:
    """Read a window's place in its film's random order, as programs write numbers; 0 where there is none."""
    place = number_of(clip.extras.get(PLACE, "").replace(",", "."))
    return int(place) if place.is_integer() and 0 < place < MOST_PLACES else 0


def is_blind(clip: Clip) -> bool:
    """Whether a clip is a window that was drawn at random and shown without its score."""
    return clip.extras.get(SEEN_SCORE) == "0" and drawn_place(clip) > 0


def named_law(clip: Clip) -> str:
    """Return the law that a window names; windows of earlier versions name none."""
    return clip.extras.get(LAW, "").strip().lower() or SEQUENTIAL_POISSON


def named_seed(clip: Clip) -> int | None:
    """Return the seed that a window names, as programs write numbers; None if it names none."""
    number = number_of(clip.extras.get(SEED, "").strip().replace(",", "."))
    return int(number) if number.is_integer() and number >= 0 else None


def law_of(clips: Iterable[Clip]) -> Law:
    """Find the law by which a film's windows were drawn: a blind judgement that names none decides.

    Windows that name no law were drawn by sequential Poisson sampling, and their film goes on by it.
    """
    names = {named_law(clip) for clip in clips if is_blind(clip)}
    return SEQUENTIAL_POISSON if SEQUENTIAL_POISSON in names else SUCCESSIVE


def content_at_draw(clip: Clip) -> float | None:
    """Read the seconds of content that a window had when it was drawn; None if its row does not say.

    NaN if they are no part of the window.
    """
    text = clip.extras.get(CONTENT_S, "").strip()
    if not text:
        return None
    seconds = number_of(text.replace(",", "."))
    return seconds if 0 < seconds <= (clip.duration_s or 0.0) + SLACK_S else math.nan


def judged_windows(timeline: Timeline, judgements: Manifest, key: str | None = None) -> JudgedWindows:
    """Find the cells of a film that were judged blindly, as far as they make up a whole draw.

    Raises
    ------
    FilmError
        The judgements are of two draws, or of another codebook.
    """
    model, cells = timeline.model(key), cells_of(timeline, key)
    unknown = [level for level in model.positive if level not in judgements.codebook.level_names]
    if unknown:
        books = {"codebook": judgements.codebook.name, "expected": model.codebook}
        raise FilmError(said("rate_level", model=model.key, level=unknown[0], **books))
    sieve = _Sieve(judgements.spelled_as([timeline.movie]))
    if model.is_trained_on:  # perhaps on these judgements: it is right where they are, not elsewhere
        mean = np.average(cells.p, weights=np.maximum(cells.content, 1e-9))
        cells = replace(cells, p=np.full_like(cells.p, mean))
        sieve.notices.append(said("note_trained"))
    law = _keep_drawn(sieve, timeline.movie)
    asked = _keep_windows(sieve, cells)
    content, n_changed = _content_when_drawn(cells, asked)
    sieve.keep(lambda clip: clip.level in judgements.codebook.labels, said("why_unsure"))
    by_cell = _calls(sieve, cells, model.positive)
    if n_changed:
        sieve.notices.append(said("note_content", n=n_changed, s="" if n_changed == 1 else "s"))
    if by_cell and law == SEQUENTIAL_POISSON and not _is_alike(cells.content):
        sieve.notices.append(said("note_law"))
    unsure = tuple(cell for cell in asked if cell not in by_cell)
    return JudgedWindows(replace(cells, content=content), by_cell, unsure, law, tuple(sieve.notices))


class _Sieve:
    """Keep the judgements that count, and say of the others why they do not."""

    def __init__(self, clips: Iterable[Clip]) -> None:
        self.clips = list(clips)
        self.notices: list[str] = []

    def keep(self, counts: Callable[[Clip], bool], why: str) -> None:
        """Leave out the clips that do not count."""
        kept = [clip for clip in self.clips if counts(clip)]
        lost = len(self.clips) - len(kept)
        if lost:
            self.notices.append(said("note_left_out", n=lost, s="" if lost == 1 else "s", why=why))
        self.clips = kept


def _keep_drawn(sieve: _Sieve, movie: str) -> Law:
    """Keep the judgements of a film that were made blindly, up to the first place that nobody judged."""
    movies = dict.fromkeys(clip.movie for clip in sieve.clips)
    others = [f"{name}{name_hint(name, [movie])}" for name in movies if name != movie]
    sieve.keep(lambda clip: clip.movie == movie, f"{said('why_film')} ({first_few(others, 3)})")
    sieve.keep(lambda clip: clip.level is not None, said("why_level"))
    sieve.keep(lambda clip: clip.extras.get(SEEN_SCORE) == "0", said("why_seen"))
    sieve.keep(lambda clip: drawn_place(clip) > 0, said("why_place", column=PLACE))
    law = law_of(sieve.clips)
    sieve.keep(lambda clip: named_law(clip) == law, said("why_law", law=law))
    _refuse_two_draws(movie, sieve.clips)
    judged = {drawn_place(clip) for clip in sieve.clips}
    gap = next(place for place in count(1) if place not in judged)
    sieve.keep(lambda clip: drawn_place(clip) < gap, said("why_gap", column=PLACE, gap=gap))
    return law


def _refuse_two_draws(movie: str, clips: Iterable[Clip]) -> None:
    """Refuse judgements of two draws: of two seeds, or with two windows at one place."""
    seeds: set[int] = set()
    spans: dict[int, tuple[float | None, float | None]] = {}
    for clip in clips:
        place, span = drawn_place(clip), (clip.start_s, clip.end_s)
        seed = named_seed(clip)
        if seed is not None:
            seeds.add(seed)
        if spans.setdefault(place, span) != span or len(seeds) > 1:
            of = {"movie": movie, "clip": clip.clip_id}
            raise FilmError(said("rate_seeds", **of, column=PLACE, place=place))


def _keep_windows(sieve: _Sieve, cells: Cells) -> dict[int, Clip]:
    """Keep the judgements of the film's cells, in the order of the draw; return one of each cell."""
    seconds = f"{cells.spans[0, 1]:g}"
    find = cache(cells.at)  # many judge the same windows

    def cell_of(clip: Clip) -> int | None:
        if clip.start_s is None or clip.end_s is None:
            return None
        cell = find(clip.start_s, clip.end_s)
        has_content = cell is not None and (content_at_draw(clip) is not None or cells.content[cell] > 0)
        return cell if has_content else None

    sieve.keep(lambda clip: cell_of(clip) is not None, said("why_grid", seconds=seconds))
    sieve.keep(lambda clip: not math.isnan(content_at_draw(clip) or 0), said("why_content", column=CONTENT_S))
    sieve.clips.sort(key=drawn_place)
    asked: dict[int, Clip] = {}
    for clip in sieve.clips:
        cell = cell_of(clip)
        if cell is not None:
            asked.setdefault(cell, clip)
    return asked


def _content_when_drawn(cells: Cells, asked: Mapping[int, Clip]) -> tuple[Floats, int]:
    """Return the content [C] that judged cells had when drawn, and of how many it is another now."""
    content = cells.content.copy()
    n_changed = 0
    for cell, clip in asked.items():
        seconds = content_at_draw(clip)
        if seconds is not None and abs(seconds - content[cell]) > SLACK_S:
            content[cell] = seconds
            n_changed += 1
    return content, n_changed


def _calls(sieve: _Sieve, cells: Cells, positive: Collection[str]) -> ByCell:
    """Gather what each annotator says of each cell; of two rows the later counts."""
    by_cell: ByCell = {}
    n_twice = 0
    find = cache(cells.at)
    for clip in sieve.clips:
        cell = find(clip.start_s or 0.0, clip.end_s or 0.0)
        if cell is None:
            continue
        calls = by_cell.setdefault(cell, {})
        is_positive = clip.level in positive
        if calls.get(clip.annotator, is_positive) != is_positive:
            n_twice += 1
        calls[clip.annotator] = is_positive
    if n_twice:
        sieve.notices.append(said("note_twice", n=n_twice))
    return by_cell


def _is_alike(content: Floats) -> bool:
    """Whether all cells with content have as much of it."""
    seconds = content[content > 0]
    return len(seconds) == 0 or bool(np.ptp(seconds) <= SLACK_S)
