"""Choose the windows to judge next."""

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import count, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest import (
    CONTENT_S,
    PLACE,
    SEEN_SCORE,
    Clip,
    place_in,
)
from obygaze_features.text import rounded
from obygaze_film.cells import Cells, cells_of
from obygaze_film.coverage import SLACK_S
from obygaze_film.draws import LAW, SEED, SUCCESSIVE, Draw
from obygaze_film.errors import FilmError
from obygaze_film.judged_windows import (
    content_at_draw,
    has_possible_content,
    is_blind,
    named_sampling,
    named_seed,
    sampling_of,
)
from obygaze_film.notes import counted_message, message
from obygaze_film.timeline import Timeline

DRAW = "draw"
"""Column of judgements that gives the reason why a window was chosen."""

UNCERTAIN = "uncertain"
RANDOM = "random"
"""Reasons in that column: the model was unsure of the window, or it was drawn at random."""


class Window(NamedTuple):
    """A window of one of several films: the index of the film, and that of its cell."""

    film: int
    cell: int


def choose_next(
    films: Sequence[Timeline],
    n: int,
    *,
    key: str | None = None,
    blind: bool = False,
    judged: Collection[Clip] = (),
    seed: int = 0,
) -> list[Clip]:
    """Choose windows of films to judge, blindly or with the model's scores shown.

    - Blindly (`blind`): the next windows of each film's random order. A film's rate can be estimated from
      these.
    - With scores shown: a third of the windows is drawn at random, and the others are those about which the
      model is least certain.

    Windows of which more than half could not be read are never chosen.

    Parameters
    ----------
    films : sequence of Timeline
    n : int
        Number of windows in all; with `blind`, per film.
    key : str, optional
        Model; by default the first with logits. Blind draws do not depend on it.
    blind : bool
    judged : collection of Clip
        Judgements, whose windows are left out; with `blind` only those made blindly, as the draw must be of
        the whole film.
    seed : int
        Of the random order: the same seed draws the same windows, and a larger `n` adds to them. If windows
        of a film were judged blindly before, the seed that they name is used for it.

    Returns
    -------
    list of Clip
        Without level, with the extras `draw` ("uncertain" or "random") and `seen_score`.

        - With `blind`: film after film in the order of the draw, with further extras (`extras_of`): `place`
          in the draw, `law` (the method of sampling), `seed`, and `content_s` (the window's content).
        - Otherwise: by film and time, with the extra `p` (the model's probability).

    Raises
    ------
    FilmError
        No window is left to judge; or the model says too little of all that are left (`Cells.is_known`), with
        scores shown; or judged windows were drawn with several seeds.
    """
    judged_clips = [clip for clip in judged if clip.level]  # one without a level is still to judge
    if blind:
        judged_blindly = [clip for clip in judged_clips if is_blind(clip)]
        drawn: list[Clip] = []
        for film in films:
            windows_left = _next_blind(film, judged_blindly, seed)
            drawn += windows_left[:n]
        if not drawn:
            raise FilmError("no window is left to judge")
        return drawn

    candidates = [_find_candidates(film, key, judged_clips, seed) for film in films]
    chosen = _next_with_scores(films, candidates, n)
    if chosen:
        return chosen
    n_left = sum(len(candidates_of_film.not_judged) for candidates_of_film in candidates)
    if n_left == 0:
        raise FilmError("no window is left to judge")
    # None of those that are left was chosen, as the model says too little of each.
    raise FilmError(counted_message("next_none_known", n_left))


def draw_of(film: Timeline, judged: Iterable[Clip] = (), seed: int = 0) -> Draw:
    """Draw all windows of a film that people judge blindly, or continue the draw of those judged before.

    Windows that were judged blindly determine how the others are drawn: by the same method of sampling
    (`sampling_of`) and with the same seed.

    Parameters
    ----------
    film : Timeline
    judged : iterable of Clip
        Judgements; only blind ones of this film count.
    seed : int
        Used if no judged window records a seed.

    Raises
    ------
    FilmError
        The judged windows were drawn with several seeds.
    """
    judged_blindly = [clip for clip in judged if clip.movie == film.movie and is_blind(clip)]
    sampling = sampling_of(judged_blindly)

    # Windows that were drawn by another method are not continued, so that their seeds don't matter.
    recorded_seeds: set[int] = set()
    for clip in judged_blindly:
        recorded_seed = named_seed(clip)
        if recorded_seed is not None and named_sampling(clip) == sampling:
            recorded_seeds.add(recorded_seed)
    if len(recorded_seeds) > 1:
        seeds = ", ".join(str(number) for number in sorted(recorded_seeds))
        raise FilmError(message("next_seeds", movie=film.movie, seeds=seeds))

    return Draw(
        sampling=sampling,
        seed=recorded_seeds.pop() if recorded_seeds else seed,
        movie=film.movie,
        content=tuple(cells_of(film).content_s.tolist()),
    )


def unread_notices(films: Sequence[Timeline]) -> list[str]:
    """Note for each film how many of its windows are never drawn to be judged.

    These are windows of which more than half could not be read from the film's file. Films without any have
    no notice.
    """
    notices: list[str] = []
    for film in films:
        n_unread = cells_of(film).n_unread
        if n_unread:
            notice = counted_message("note_unread", n_unread)
            notices.append(message("note_of", movie=film.movie, notice=notice))
    return notices


def unknown_notices(
    films: Sequence[Timeline], judged: Collection[Clip] = (), *, key: str | None = None
) -> list[str]:
    """List the films that have windows left to judge, but none that can be chosen by the model's scores.

    The model says too little of such windows, as they are unlike its training films: they can only be judged
    blindly.

    Returns
    -------
    list of str
        A notice for each of these films, with the number of windows left.
    """
    judged_clips = [clip for clip in judged if clip.level]
    notices: list[str] = []
    for film in films:
        cells_left = _find_candidates(film, key, judged_clips, seed=0)
        n_left = len(cells_left.not_judged)
        model_says_enough_of_any = any(cells_left.is_known[cell] for cell in cells_left.not_judged)
        if n_left and not model_says_enough_of_any:
            notice = counted_message("next_none_known", n_left)
            notices.append(message("note_of", movie=film.movie, notice=notice))
    return notices


def content_notices(films: Sequence[Timeline], judged: Iterable[Clip]) -> list[str]:
    """Warn of each film whose windows have other seconds to judge (content) now than when they were drawn.

    The chance of a window to be drawn depends on these seconds. They change if the film is scored again and
    other parts of it are left out as black or as credits. Only windows that were judged blindly count.

    Returns
    -------
    list of str
        A notice for each of these films, with the number of its windows that changed.
    """
    blind_clips = [clip for clip in judged if clip.level and is_blind(clip)]  # not those still to judge
    notices: list[str] = []
    for film in films:
        cells = cells_of(film)
        changed_cells: set[int] = set()
        for clip in blind_clips:
            if clip.movie != film.movie:
                continue
            cell = cells.index_of(clip.start_s, clip.end_s)
            if cell is None:  # there is no window any more
                continue
            if _has_changed_content(clip, cells.content_s[cell]):
                changed_cells.add(cell)
        if changed_cells:
            n_changed = len(changed_cells)
            notice = message("note_content", n=n_changed, s="" if n_changed == 1 else "s")
            notices.append(message("note_of", movie=film.movie, notice=notice))
    return notices


def _has_changed_content(clip: Clip, content_s: float) -> bool:
    """Whether a judged window can be judged for more, or fewer, seconds now than when it was drawn.

    Parameters
    ----------
    clip : Clip
        The judgement, which may have recorded the seconds when its window was drawn.
    content_s : float
        How many seconds of the window can be judged now.
    """
    seconds_when_drawn = content_at_draw(clip)
    if seconds_when_drawn is None:  # not recorded
        return False
    is_no_number = math.isnan(seconds_when_drawn)  # so the cell holds a text
    return is_no_number or abs(seconds_when_drawn - content_s) > SLACK_S


def _next_blind(film: Timeline, judged: Sequence[Clip], seed: int) -> list[Clip]:
    """List the windows of a film that were not judged blindly yet, each with its place in the draw.

    Windows are in the random order of the draw. A share is estimated from the windows at places 1, 2, ... up
    to the first that was not judged, so that places must be given out without gaps.

    Parameters
    ----------
    film : Timeline
    judged : sequence of Clip
        Blind judgements of any films.
    seed : int
        Of the random order, if no judged window records one.
    """
    judged_of_film = [clip for clip in judged if clip.movie == film.movie]
    draw = draw_of(film, judged_of_film, seed)

    # Leave out the cells that were judged. Some judgements count in no share, as they are of another method
    # of sampling, or state an impossible content: such a window is judged again, and its place is free.
    cells = cells_of(film)
    counted_judgements: list[Clip] = []
    judged_cells: set[int] = set()
    for clip in judged_of_film:
        judged_cell = cells.index_of(clip.start_s, clip.end_s)
        if judged_cell is None:  # the film was scored again since, and has no cell there any more
            continue
        is_of_draw = named_sampling(clip) == draw.sampling
        if is_of_draw and has_possible_content(clip):
            counted_judgements.append(clip)
            judged_cells.add(judged_cell)
    place_in_order = {cell: place for place, cell in enumerate(draw.order(), start=1)}
    cells_left = [cell for cell in place_in_order if cell not in judged_cells]

    # Give each cell that is left its place in the draw, by one of two methods.
    if draw.sampling == SUCCESSIVE:
        # Each next window is drawn among those left, and takes the next place that no judged window has. This
        # need not be its place in the present order: if content changed since the judged windows were drawn,
        # the order changed too, and the judged windows keep their places.
        places = _free_places(counted_judgements, len(cells_left))
    else:
        # By the method of earlier versions, only the first windows of the whole order are a sample: each
        # window has its place in that order.
        places = [place_in_order[cell] for cell in cells_left]

    clips = []
    for cell, place in zip(cells_left, places, strict=True):
        clips.append(_clip(film.movie, cells, cell, extras_of(draw, cell, place)))
    return clips


def _free_places(judged: Sequence[Clip], n: int) -> list[int]:
    """List the first n places of a draw, 1, 2, ..., that no judged window has taken."""
    taken = {place_in(clip) for clip in judged}
    free_places = (place for place in count(1) if place not in taken)
    return list(islice(free_places, n))


def extras_of(draw: Draw, cell: int, place: int) -> dict[str, str]:
    """Write the further columns of a window that was drawn to be judged blindly, column -> cell.

    Parameters
    ----------
    draw : Draw
        How the windows of the film are drawn.
    cell : int
        Index of the window in the film's grid.
    place : int
        Its place in the draw, from 1 on.
    """
    content_s = round(draw.content[cell], 3)  # to the millisecond
    return {
        DRAW: RANDOM,  # why the window was chosen
        SEEN_SCORE: "0",  # its judge does not see the model's score
        PLACE: str(place),
        LAW: draw.sampling,
        SEED: str(draw.seed),
        CONTENT_S: f"{content_s:.10g}",
    }


def _next_with_scores(films: Sequence[Timeline], candidates: Sequence["_Candidates"], n: int) -> list[Clip]:
    """Choose n windows to judge with their scores shown, in the order of films and times.

    - A third of them, rounded down, is drawn at random.
    - The others are those about which the model is least certain: nearest to its threshold, one from each
      film in turn, no two of them neighbours. If there are too few of these, more are drawn at random.
    - Windows of which the model says too little are left out.

    Parameters
    ----------
    films : sequence of Timeline
    candidates : sequence of _Candidates
        The windows that may be chosen of each film, in the order of the films.
    n : int
    """
    # A window is the number of its film and of its cell. Lists of windows take one from each film in turn.
    n_random = n // 3
    all_uncertain = _round_robin([candidates_of_film.uncertain for candidates_of_film in candidates])
    uncertain = set(all_uncertain[: n - n_random])  # the least certain come first

    # The windows of each film are in a random order: the first ones are a random choice.
    others: list[Window] = []
    for window in _round_robin([candidates_of_film.not_judged for candidates_of_film in candidates]):
        model_says_enough = candidates[window.film].is_known[window.cell]
        if model_says_enough and window not in uncertain:
            others.append(window)
    drawn = others[: n - len(uncertain)]

    clips = []
    for window in sorted([*uncertain, *drawn]):  # by film and time
        cells = candidates[window.film].cells
        reason = UNCERTAIN if window in uncertain else RANDOM
        extras = {DRAW: reason, SEEN_SCORE: "1", "p": rounded(cells.p[window.cell], digits=2)}
        clips.append(_clip(films[window.film].movie, cells, window.cell, extras))
    return clips


class _Candidates(NamedTuple):
    """The cells of a film that may be chosen to be judged with their scores shown.

    Attributes
    ----------
    cells : Cells
    is_known : ndarray of bool, shape [C]
        Cells of which the model says enough (`Cells.is_known`).
    not_judged : list of int
        Cells that nobody judged, in random order.
    uncertain : list of int
        Those among them that may be chosen as uncertain, the least certain first.
    """

    cells: Cells
    is_known: NDArray[np.bool_]
    not_judged: list[int]
    uncertain: list[int]


def _find_candidates(film: Timeline, key: str | None, judged: Sequence[Clip], seed: int) -> _Candidates:
    """Find the cells of a film that may be chosen to be judged with their scores shown.

    They are the cells with content that nobody judged, in a random order; those of them about which the model
    is least certain are listed apart.

    Parameters
    ----------
    film : Timeline
    key : str or None
        Model; None for the first with logits.
    judged : sequence of Clip
        Judgements of any films, whose cells are left out.
    seed : int
        Of the random order.
    """
    cells = cells_of(film, key)
    # Seed and a name determine the order. With the film's own name, it would be the order in which windows
    # are judged blindly, whose first windows must be new to the judge: so another name is taken.
    name_of_order = f"{film.movie} in sight"
    order = cells.order_of_draw(name_of_order, seed)

    judged_cells = set()
    for clip in judged:
        if clip.movie == film.movie:
            # None for a judgement of a span that is no cell: it equals no cell of the order.
            judged_cells.add(cells.index_with_content(clip.start_s, clip.end_s))
    not_judged = [cell for cell in order if cell not in judged_cells]

    uncertain = _uncertain(cells, not_judged, film.model(key).threshold_p)
    return _Candidates(cells, is_known=cells.is_known, not_judged=not_judged, uncertain=uncertain)


def _round_robin(orders: Sequence[Sequence[int]]) -> list[Window]:
    """List each film's first cell, then each film's second, and so on, until no film has more.

    Parameters
    ----------
    orders : sequence of sequence of int
        Cells of each film, in the order in which they are taken.
    """
    windows: list[Window] = []
    max_cells = max(map(len, orders), default=0)
    for turn in range(max_cells):
        for film_index, order in enumerate(orders):
            if turn < len(order):
                windows.append(Window(film_index, order[turn]))
    return windows


def _uncertain(cells: Cells, not_judged: Collection[int], threshold: float | None) -> list[int]:
    """Order cells by how uncertain the model is of them: those nearest to its threshold come first.

    Distances are measured on the logit's scale. Left out are neighbours of a nearer one, cells that were
    judged before, those of which the model says too little (`Cells.is_known`), and those that are infinitely
    far (p is 0 or 1). Without a threshold there are none.
    """
    from scipy.special import logit  # noqa: PLC0415 - slow, and films are opened without it

    if threshold is None:
        return []
    distances = np.abs(logit(cells.p) - logit(threshold))
    is_not_judged = np.isin(np.arange(len(distances)), list(not_judged))
    may_be_chosen = cells.is_known & np.isfinite(distances) & is_not_judged

    chosen: dict[int, None] = {}  # its keys are a list in which a cell is found quickly
    nearest_first = np.argsort(distances, kind="stable").tolist()
    for cell in nearest_first:
        is_beside_chosen = cell - 1 in chosen or cell + 1 in chosen
        if may_be_chosen[cell] and not is_beside_chosen:
            chosen[cell] = None
    return list(chosen)


def _clip(movie: str, cells: Cells, cell: int, extras: dict[str, str]) -> Clip:
    """Make the clip of a cell that is to be judged: without a level, with further columns (`extras`).

    Its id is the film's name and the start in milliseconds, such as `tt0000001-00046000`.
    """
    start_s, end_s = cells.spans[cell].tolist()
    # An id may name a file: it has no slashes and doesn't begin with a dot, which would hide the file.
    name = movie.replace("/", "_").replace("\\", "_").lstrip(".")
    clip_id = f"{name}-{round(start_s * 1000):08d}"
    return Clip(clip_id, movie, start_s=start_s, end_s=end_s, extras=extras)
