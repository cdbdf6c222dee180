"""Choose the windows to judge next."""

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import count
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
from obygaze_film.cells import Cells, cells_of
from obygaze_film.coverage import SLACK_S
from obygaze_film.draws import LAW, SEED, SUCCESSIVE, Draw
from obygaze_film.errors import FilmError
from obygaze_film.judged_windows import content_at_draw, is_blind, named_sampling, named_seed, sampling_of
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
    """Choose windows to judge: whole cells of each film's grid (`cells_of`).

    Without `blind`, people see the model's scores when they judge:

    - n / 3 windows, rounded down, are drawn at random.
    - The others are those about which the model is least certain: nearest to its threshold, one from each
      film in turn, no two of them neighbours. If there are too few of these, more are drawn at random.
    - Windows of which the model says too little are left out (`Cells.is_known`).

    With `blind`, the windows are the next ones of each film's random order (`Cells.order_of_draw`), so that a
    film's rate can be estimated from them. They may be unlike the training films. Windows of which more than
    half could not be read are never chosen.

    Parameters
    ----------
    films : sequence of Timeline
    n : int
        Number of windows in all; with `blind`, per film.
    key : str, optional
        Model; by default the first with logits. Blind draws do not depend on it.
    blind : bool
    judged : collection of Clip
        Judgements, whose windows are left out. With `blind` only those made blindly are: a draw without the
        windows judged in sight of their scores would not be of the whole film.
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
        There is nothing left to judge, or of no window left the model says enough; or judged windows were
        drawn with several seeds.
    """
    judged_clips = [clip for clip in judged if clip.level]
    if blind:
        judged_blindly = [clip for clip in judged_clips if clip.extras.get(SEEN_SCORE) == "0"]
        clips = [clip for film in films for clip in _next_blind(film, judged_blindly, seed)[:n]]
        if not clips:
            raise FilmError("no window is left to judge")
        return clips
    choices = [_choice_of(film, key, judged_clips, seed) for film in films]
    clips = _next_in_sight(films, choices, n)
    if not clips:
        n_unknown = sum(len(choice.not_judged) for choice in choices)  # the model says too little of these
        if n_unknown:
            raise FilmError(counted_message("next_none_known", n_unknown))
        raise FilmError("no window is left to judge")
    return clips


def draw_of(film: Timeline, judged: Iterable[Clip] = (), seed: int = 0) -> Draw:
    """Draw all windows of a film that people judge blindly, or continue the draw of those judged before.

    Windows that were judged blindly determine how the others are drawn: by the same method of sampling
    (`sampling_of`) and by the seed that they name.

    Parameters
    ----------
    film : Timeline
    judged : iterable of Clip
        Judgements; those of other films and those in sight of the score play no part.
    seed : int
        Used if no judged window names a seed.

    Raises
    ------
    FilmError
        The judged windows were drawn with several seeds.
    """
    judged_blindly = [clip for clip in judged if clip.movie == film.movie and is_blind(clip)]
    sampling = sampling_of(judged_blindly)
    seeds: set[int] = set()  # that windows drawn by this method name
    for clip in judged_blindly:
        seed_of_clip = named_seed(clip)
        if seed_of_clip is not None and named_sampling(clip) == sampling:
            seeds.add(seed_of_clip)
    if len(seeds) > 1:
        names_of_seeds = ", ".join(str(number) for number in sorted(seeds))
        raise FilmError(message("next_seeds", movie=film.movie, seeds=names_of_seeds))
    if seeds:
        seed = seeds.pop()
    content = tuple(cells_of(film).content_s.tolist())
    return Draw(sampling=sampling, seed=seed, movie=film.movie, content=content)


def unread_notices(films: Sequence[Timeline]) -> list[str]:
    """Note for each film how many windows are never drawn, since more than half of each could not be read."""
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
    """Note for each film that the model says too little of all windows that are left to judge.

    Such windows are only drawn blindly. There is no notice of a film if any window left can be chosen, or if
    no window is left.
    """
    judged_clips = [clip for clip in judged if clip.level]
    notices: list[str] = []
    for film in films:
        choice = _choice_of(film, key, judged_clips, seed=0)
        has_known_window = any(choice.is_known[cell] for cell in choice.not_judged)
        if choice.not_judged and not has_known_window:
            notice = counted_message("next_none_known", len(choice.not_judged))
            notices.append(message("note_of", movie=film.movie, notice=notice))
    return notices


def content_notices(films: Sequence[Timeline], judged: Iterable[Clip]) -> list[str]:
    """Note for each film how many blindly judged windows had another content when they were drawn."""
    clips = list(judged)
    notices: list[str] = []
    for film in films:
        cells = cells_of(film)
        changed: set[int] = set()
        for clip in clips:
            if clip.movie != film.movie or not is_blind(clip):
                continue
            cell = cells.index_of(clip.start_s, clip.end_s)
            seconds_when_drawn = content_at_draw(clip)
            if cell is None or seconds_when_drawn is None:
                continue
            is_impossible = math.isnan(seconds_when_drawn)
            if is_impossible or abs(seconds_when_drawn - cells.content_s[cell]) > SLACK_S:
                changed.add(cell)
        if changed:
            notice = message("note_content", n=len(changed), s="" if len(changed) == 1 else "s")
            notices.append(message("note_of", movie=film.movie, notice=notice))
    return notices


def _next_blind(film: Timeline, judged: Sequence[Clip], seed: int) -> list[Clip]:
    """List the windows of a film that are not among the `judged` ones, in the order of the draw.

    Their places in the draw depend on its method:

    - By successive sampling, each next window is drawn among those left. So the windows left take the places
      that no judged window has, one after the other. If content changed since the judged ones were drawn, the
      order changed too, and the place of a window in today's order may be taken.
    - By the method of earlier versions, only the first windows of the whole order are a sample: a window has
      its place in this order.
    """
    judged_of_film = [clip for clip in judged if clip.movie == film.movie]
    draw = draw_of(film, judged_of_film, seed)
    cells = cells_of(film)
    judged_cells = {cells.index_of(clip.start_s, clip.end_s) for clip in judged_of_film}
    order = draw.order()
    cells_left = [cell for cell in order if cell not in judged_cells]
    if draw.sampling == SUCCESSIVE:
        places = _free_places(judged_of_film, len(cells_left))
    else:
        place_of = {cell: place for place, cell in enumerate(order, start=1)}
        places = [place_of[cell] for cell in cells_left]
    clips = []
    for cell, place in zip(cells_left, places, strict=True):
        clips.append(_clip(film.movie, cells, cell, extras_of(draw, cell, place)))
    return clips


def _free_places(judged: Sequence[Clip], n: int) -> list[int]:
    """List the first n places of a draw, from 1 on, that no judged window has."""
    taken = {place_in(clip) for clip in judged}
    places: list[int] = []
    for place in count(1):
        if len(places) == n:
            break
        if place not in taken:
            places.append(place)
    return places


def extras_of(draw: Draw, cell: int, place: int) -> dict[str, str]:
    """Write the columns of a window that was drawn: its place, and how it was drawn."""
    return {
        DRAW: RANDOM,
        SEEN_SCORE: "0",
        PLACE: str(place),
        LAW: draw.sampling,
        SEED: str(draw.seed),
        CONTENT_S: f"{round(draw.content[cell], 3):.10g}",
    }


def _next_in_sight(films: Sequence[Timeline], choices: Sequence["_Choice"], n: int) -> list[Clip]:
    """Choose n windows to judge in sight of their scores: uncertain ones, and a third or more at random.

    If there are not enough uncertain ones, more are drawn at random. `choices` has what may be chosen of each
    film.
    """
    n_random = n // 3
    uncertain = _in_turn([choice.uncertain for choice in choices])[: n - n_random]
    others: list[Window] = []  # in a random order
    for window in _in_turn([choice.not_judged for choice in choices]):
        is_known = choices[window.film].is_known[window.cell]
        if is_known and window not in uncertain:
            others.append(window)
    drawn = others[: n - len(uncertain)]
    clips = []
    for window in sorted([*uncertain, *drawn]):  # by film and time
        cells = choices[window.film].cells
        reason = UNCERTAIN if window in uncertain else RANDOM
        extras = {DRAW: reason, SEEN_SCORE: "1", "p": f"{cells.p[window.cell]:.2f}"}
        clips.append(_clip(films[window.film].movie, cells, window.cell, extras))
    return clips


class _Choice(NamedTuple):
    """The cells of a film that may be chosen.

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


def _choice_of(film: Timeline, key: str | None, judged: Sequence[Clip], seed: int) -> _Choice:
    """Find the cells of a film that may be chosen to be judged in sight of their scores."""
    cells = cells_of(film, key)
    # The name determines the random order. With the film's own name the first windows would be those that are
    # judged blindly, and these should be new to the judge.
    name_of_order = f"{film.movie} in sight"
    order = cells.order_of_draw(name_of_order, seed)
    judged_of_film = [clip for clip in judged if clip.movie == film.movie]
    judged_cells = {cells.index_with_content(clip.start_s, clip.end_s) for clip in judged_of_film}
    not_judged = [cell for cell in order if cell not in judged_cells]
    uncertain = _uncertain(cells, not_judged, film.model(key).threshold_p)
    return _Choice(cells, cells.is_known, not_judged, uncertain)


def _in_turn(orders: Sequence[Sequence[int]]) -> list[Window]:
    """List each film's first cell, then each film's second, and so on, until no film has more.

    Parameters
    ----------
    orders : sequence of sequence of int
        Cells of each film, in the order in which they are taken.
    """
    windows: list[Window] = []
    most_cells = max(map(len, orders), default=0)
    for turn in range(most_cells):
        for film_index, order in enumerate(orders):
            if turn < len(order):
                windows.append(Window(film_index, order[turn]))
    return windows


def _uncertain(cells: Cells, not_judged: Collection[int], threshold: float | None) -> list[int]:
    """Order cells by how near they are to the threshold, the nearest first, on the logit's scale.

    Left out are neighbours of a nearer one, cells that were judged before, and those of which the model says
    too little (`Cells.is_known`). Without a threshold there are none.
    """
    from scipy.special import logit  # noqa: PLC0415 - slow, and films are opened without it

    if threshold is None:
        return []
    distances = np.where(cells.is_known, np.abs(logit(cells.p) - logit(threshold)), np.inf)
    order: list[int] = []
    chosen: set[int] = set()
    for cell in np.argsort(distances, kind="stable").tolist():
        is_beside_chosen = cell - 1 in chosen or cell + 1 in chosen
        if np.isfinite(distances[cell]) and cell in not_judged and not is_beside_chosen:
            chosen.add(cell)
            order.append(cell)
    return order


def _clip(movie: str, cells: Cells, cell: int, extras: dict[str, str]) -> Clip:
    """Make the clip of a cell, without a level, with an id that is also fit for a file's name."""
    start, end = cells.spans[cell].tolist()
    name = movie.replace("/", "_").replace("\\", "_").lstrip(".")
    return Clip(f"{name}-{round(start * 1000):08d}", movie, start_s=start, end_s=end, extras=extras)
