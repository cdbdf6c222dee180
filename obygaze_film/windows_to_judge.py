"""Choose the windows to judge next."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from obygaze_features.manifest import SEEN_SCORE, Clip
from obygaze_film.cells import Cells, cells_of
from obygaze_film.errors import FilmError
from obygaze_film.judged_rate import PLACE
from obygaze_film.timeline import Timeline

DRAW = "draw"
"""Column of judgements that gives the reason why a window was chosen."""

UNCERTAIN, RANDOM = "uncertain", "random"

Window = tuple[int, int]
"""Index of a film, and index of one of its cells."""


@dataclass(frozen=True, eq=False, slots=True)
class _JudgeableFilm:
    """A film, its cells, their random order, and a mask of those not yet judged."""

    timeline: Timeline
    cells: Cells
    order: list[int]
    is_fresh: NDArray[np.bool_]

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Mark the cells of which more than half counts in the rate that the model expects."""
        return np.asarray(self.cells.counted > (self.cells.spans[:, 1] - self.cells.spans[:, 0]) / 2)


def choose_next(
    films: Sequence[Timeline],
    n: int,
    *,
    key: str | None = None,
    blind: bool = False,
    judged: Collection[Clip] = (),
    seed: int = 0,
) -> list[Clip]:
    """Choose windows to judge: cells of each film's grid (`cells_of`), never a fragment of one.

    Two thirds are those about which the model is least certain (nearest to its threshold), in turn from each
    film and no neighbours, none that is mostly flagged; a third is drawn at random. `blind` takes all of them
    from each film's random order (`Cells.drawn`), cells unlike the training films too, so that a film's rate
    can be estimated from them.

    Parameters
    ----------
    films : sequence of Timeline
    n : int
        Number of windows in all; with `blind`, per film.
    key : str, optional
        Model; by default the first with logits. Blind draws do not depend on it.
    blind : bool
    judged : collection of Clip
        Judgements, whose windows are left out; with `blind` only those made blindly, since a draw without
        the others would not be of the whole film.
    seed : int
        Of the random order: the same seed draws the same windows, and a larger `n` adds to them.

    Returns
    -------
    list of Clip
        Without level; extras `draw` ("uncertain" or "random") and `seen_score`. With `blind` by film and in
        the order of the draw, which is the extra `place`; otherwise by film and time, with the extra `p`.

    Raises
    ------
    FilmError
        There is nothing left to judge.
    """
    done = [clip for clip in judged if clip.level and (not blind or clip.extras.get(SEEN_SCORE) == "0")]
    every = []
    for film in films:
        cells = cells_of(film, key)
        # Windows seen with their score have an order of their own: blind ones should be new to the judge.
        order = cells.drawn(film.movie + " in sight" * (not blind), seed)
        own = [clip for clip in done if clip.movie == film.movie]
        seen = {cells.find(clip.start_s or 0.0, clip.end_s or 0.0) for clip in own}
        is_fresh = np.array([cell not in seen for cell in range(len(cells.spans))])
        every.append(_JudgeableFilm(film, cells, order, is_fresh))
    if blind:
        clips = [
            _clip(film, cell, {DRAW: RANDOM, SEEN_SCORE: "0", PLACE: str(place)})
            for film in every
            for place, cell in [one for one in enumerate(film.order, 1) if film.is_fresh[one[1]]][:n]
        ]
    else:
        windows = dict.fromkeys(_uncertain(every, key, n - n // 3), UNCERTAIN)
        known = [film.is_known for film in every]
        turns = _in_turn([[cell for cell in film.order if film.is_fresh[cell]] for film in every])
        turns = [(f, cell) for f, cell in turns if known[f][cell] and (f, cell) not in windows]
        windows |= dict.fromkeys(turns[: n - len(windows)], RANDOM)
        clips = [
            _clip(every[f], cell, {DRAW: draw, SEEN_SCORE: "1", "p": f"{every[f].cells.p[cell]:.2f}"})
            for (f, cell), draw in sorted(windows.items())
        ]
    if not clips:
        raise FilmError("no window is left to judge")
    return clips


def _in_turn(orders: Sequence[Sequence[int]]) -> list[Window]:
    """Take cells from the films in turn."""
    longest = max(map(len, orders), default=0)
    return [
        (f, order[turn]) for turn in range(longest) for f, order in enumerate(orders) if turn < len(order)
    ]


def _uncertain(films: Sequence[_JudgeableFilm], key: str | None, n: int) -> list[Window]:
    """Choose the cells nearest to the threshold, in turn from each film, neighbours left out."""
    orders: list[list[int]] = []
    for film in films:
        model, may_be_chosen = film.timeline.model(key), film.is_known & film.is_fresh
        if model.threshold_p is None:
            orders.append([])
            continue
        far = np.where(may_be_chosen, np.abs(logit(film.cells.p) - logit(model.threshold_p)), np.inf)
        blocked = np.zeros(len(far) + 2, dtype=np.bool_)
        order = []
        for cell in np.argsort(far, kind="stable").tolist():
            if np.isfinite(far[cell]) and not blocked[cell : cell + 3].any():
                blocked[cell + 1] = True
                order.append(cell)
        orders.append(order)
    return _in_turn(orders)[:n]


def _clip(film: _JudgeableFilm, cell: int, extras: dict[str, str]) -> Clip:
    """Make a clip without a level from a cell."""
    start, end = film.cells.spans[cell].tolist()
    movie = film.timeline.movie
    name = movie.replace("/", "_").replace("\\", "_").lstrip(".")
    return Clip(f"{name}-{round(start * 1000):08d}", movie, start_s=start, end_s=end, extras=extras)
