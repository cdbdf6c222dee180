"""A film's share by several judges (`film rate`): each one's own, and all together's."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.planted.rates import modelled
from benchmarks.planted.row import Cell, Column, Draw, Floats, Row
from benchmarks.planted.worlds import SECONDS, TWOFOLD, Content, Second
from obygaze_film.cells import Cells
from obygaze_film.draws import SUCCESSIVE
from obygaze_film.judged_windows import JudgedFilm, JudgedWindows, least_sure, votes
from obygaze_film.rate_estimates import estimate_rate

SIZE: Final = 130
"""Windows of a film: 100 minutes of 46 s."""

MOST: Final = 40
"""Windows that the first judge judged; the second judged the first k of them."""

FIRST = "AB"
SECOND = "CD"


def judged(rng: np.random.Generator, k: int, second: Second, content: Content) -> Draw:
    """Ask for each judge's share and the panel's, in ten draws of one film."""
    y, p = modelled(rng, SIZE, 0.4, "fair: AUC .76")
    calls = {FIRST: y, SECOND: second(rng, y)}
    seconds = content.draw(rng, y)
    cells = Cells(np.zeros((SIZE, 2)), seconds, seconds, p)
    truth = {judge: float(np.average(calls_of, weights=seconds)) for judge, calls_of in calls.items()}
    name = str(rng.integers(2**31))
    films = []
    for seed in range(10):
        order = cells.order_of_draw(name, seed)
        calls_of = {FIRST: calls[FIRST][order[:MOST]], SECOND: calls[SECOND][order[:k]]}
        films.append(film_of(cells, order, calls_of))
    panels = [film.panel() for film in films]
    is_given = len(panels[0].by_cell) >= least_sure(cells)
    mean = float(np.mean([*truth.values()]))
    return {
        "first's holds": holds([film.of(FIRST) for film in films], truth[FIRST]),
        "second's holds": holds([film.of(SECOND) for film in films], truth[SECOND]),
        "panel given": is_given,
        "panel holds": holds(panels, mean) if is_given else np.nan,
    }


def film_of(cells: Cells, order: list[int], judged_by: dict[str, Floats]) -> JudgedFilm:
    """Gather what judges said of the first windows of a draw."""
    return JudgedFilm(
        movie="tt0000001",
        cells=cells,
        sampling=SUCCESSIVE,
        cell_of_place=dict(enumerate(order, 1)),
        judged_places={
            judge: frozenset(range(1, len(calls_of_one) + 1)) for judge, calls_of_one in judged_by.items()
        },
        answers={
            judge: dict(enumerate((calls_of_one == 1).tolist(), 1))
            for judge, calls_of_one in judged_by.items()
        },
        notices=(),
    )


def holds(draws: Sequence[JudgedWindows], truth: float) -> NDArray[np.bool_]:
    """Say whether the intervals from draws of one film hold a share."""
    orders, y, _ = zip(*(votes(windows.by_cell) for windows in draws), strict=True)
    cells = draws[0].sure_cells
    first = draws[0]
    estimate = estimate_rate(
        cells, np.array(orders), np.array(y), sampling=first.sampling, denominator=first.denominator
    )
    return np.asarray((estimate.low <= truth + 1e-9) & (truth <= estimate.high + 1e-9))


ROWS: Final = (
    Row(
        name="judges",
        page="docs/film.md",
        command="obygaze film rate",
        statement=(
            "Two judges of films of 130 windows: one marks .4 and judged 40, the other judged the first k of "
            "these. How often each one's own interval holds their share, whether the two have a number "
            "together, and how often it holds the mean of their shares."
        ),
        heads=("the other marks", "content", "k"),
        cells=[
            Cell((name, content, str(k)), (k, second, TWOFOLD[content]))
            for name, second in SECONDS.items()
            for content in ("alike", "positives half")
            for k in (5, 10, 20, 40)
        ],
        draw=judged,
        columns={
            "first's holds": Column(low=0.93),
            "second's holds": Column(low=0.93),
            "panel given": Column(digits=2),
            "panel holds": Column(low=0.93),
        },
        full=220,
        small=12,
    ),
)
