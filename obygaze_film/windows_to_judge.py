"""Choose the windows to judge next."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logit

from obygaze_features.manifest import SEEN_SCORE, Clip
from obygaze_film.errors import FilmError
from obygaze_film.judged_rate import DRAW, RANDOM
from obygaze_film.schema import NO_CONTENT, has_flag, is_counted
from obygaze_film.timeline import Timeline

UNCERTAIN = "uncertain"

Place = tuple[int, int]
"""Index of a film, and index of one of its rows."""


@dataclass(frozen=True, eq=False, slots=True)
class _JudgeableFilm:
    """A film, the rows of one model, and a mask of rows that may be drawn."""

    timeline: Timeline
    rows: pd.DataFrame
    content: NDArray[np.bool_]


def choose_next(
    films: Sequence[Timeline],
    n: int,
    *,
    key: str | None = None,
    blind: bool = False,
    judged: Collection[tuple[str, float]] = (),
    seed: int = 0,
) -> list[Clip]:
    """Choose windows to judge.

    Two thirds are those about which the model is least certain (nearest to its threshold), in turn from each
    film and no neighbours, never flagged ones; a third is drawn at random. `blind` draws all of them at
    random from every film alike, flagged windows too, so that a film's rate can be estimated from them.

    Parameters
    ----------
    films : sequence of Timeline
    n : int
        Number of windows in all; with `blind`, per film.
    key : str, optional
        Model; by default the first with logits.
    blind : bool
    judged : collection of (movie, start_s)
        Windows already judged, which are left out.
    seed : int
        Of the draws: the same seed draws the same windows, and a larger `n` adds to them.

    Returns
    -------
    list of Clip
        Sorted by film and time, without level; extras `draw` ("uncertain" or "random") and
        `seen_score` (0 if blind), and `p`, not if blind.

    Raises
    ------
    FilmError
        There is nothing left to judge.
    """
    judged_already = {(movie, round(start, 3)) for movie, start in judged}
    every = []
    for film in films:
        rows = film.rows(key)
        fresh = np.array(
            [(film.movie, round(start, 3)) not in judged_already for start in rows["start_s"]], dtype=np.bool_
        )
        every.append(_JudgeableFilm(film, rows, ~has_flag(rows, *NO_CONTENT) & fresh))
    random = [_shuffled(film, seed) for film in every]
    places: dict[Place, str]
    if blind:
        places = dict.fromkeys(((f, row) for f, rows in enumerate(random) for row in rows[:n]), RANDOM)
    else:
        places = dict.fromkeys(_uncertain(every, key, n - n // 3), UNCERTAIN)
        turns = [(f, row) for f, row in _in_turn(random) if (f, row) not in places and _known(every[f])[row]]
        places |= dict.fromkeys(turns[: n - len(places)], RANDOM)
    if not places:
        raise FilmError("no window is left to judge")
    return [_clip(every[f], row, draw, blind=blind) for (f, row), draw in sorted(places.items())]


def _known(film: _JudgeableFilm) -> NDArray[np.bool_]:
    """Mark the rows that may be drawn and have a probability."""
    return film.content & is_counted(film.rows)


def _shuffled(film: _JudgeableFilm, seed: int) -> list[int]:
    """Shuffle the rows of a film that may be drawn."""
    rng = np.random.default_rng([seed, *film.timeline.movie.encode("utf-8")])
    # Shuffle all rows, then drop some: judged rows must not change the order of the others.
    return [row for row in rng.permutation(len(film.rows)).tolist() if film.content[row]]


def _in_turn(orders: Sequence[Sequence[int]]) -> list[Place]:
    """Take rows from the films in turn."""
    longest = max(map(len, orders), default=0)
    return [
        (f, order[turn]) for turn in range(longest) for f, order in enumerate(orders) if turn < len(order)
    ]


def _uncertain(films: Sequence[_JudgeableFilm], key: str | None, n: int) -> list[Place]:
    """Choose the rows nearest to the threshold, in turn from each film, neighbours left out."""
    orders: list[list[int]] = []
    for film in films:
        model, known = film.timeline.model(key), _known(film)
        if model.threshold_p is None or not known.any():
            orders.append([])
            continue
        p = np.clip(film.rows["p"].to_numpy(dtype=np.float64), 1e-9, 1 - 1e-9)
        far = np.where(known, np.abs(logit(p) - logit(model.threshold_p)), np.inf)
        blocked = np.zeros(len(far) + 2, dtype=np.bool_)
        order = []
        for row in np.argsort(far, kind="stable").tolist():
            if np.isfinite(far[row]) and not blocked[row : row + 3].any():
                blocked[row + 1] = True
                order.append(row)
        orders.append(order)
    return _in_turn(orders)[:n]


def _clip(film: _JudgeableFilm, row: int, draw: str, *, blind: bool) -> Clip:
    """Make a clip without a level from a window to judge."""
    cells = film.rows.iloc[row]
    start, end, movie = float(cells["start_s"]), float(cells["end_s"]), film.timeline.movie
    p = "" if pd.isna(cells["p"]) else f"{cells['p']:.2f}"
    name = movie.replace("/", "_").replace("\\", "_").lstrip(".")
    return Clip(
        f"{name}-{round(start * 1000):08d}",
        movie,
        start_s=start,
        end_s=end,
        extras={DRAW: draw, SEEN_SCORE: "0" if blind else "1", **({} if blind else {"p": p})},
    )
