"""Draw a film's timeline as SVG paths; time in tenths of a second, stretched to the width by the page."""

from itertools import pairwise
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from obygaze_film.schema import runs

COLOUR_STEPS: Final = 7
"""Steps of colour from probability 0 to 1."""

HEIGHT: Final = 100
"""Height of a line chart, from probability 0 to 1, in units of its SVG."""

TICKS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200)
"""Possible distances between the labelled times of an axis, in seconds."""


def tenths(seconds: float) -> int:
    """Return the x of a time: tenths of a second from the film's start."""
    return round(10 * seconds)


def y_of(p: float) -> int:
    """Return the y of a probability in a line chart: `HEIGHT` for 0 and 0 for 1, as y points down."""
    return HEIGHT - round(HEIGHT * p)


def percent(seconds: float, film_s: float) -> str:
    """Write a time as a percentage of the film's length, such as `12.5%`."""
    return f"{100 * seconds / film_s:.3f}".rstrip("0").rstrip(".") + "%"


def in_percent(percentage: float) -> str:
    """Write a percentage with one decimal, such as `12.5%`."""
    return f"{percentage:.1f}%"


def bar(value: float, low: float, high: float, scale: float = 1.0) -> dict[str, str]:
    """Place a number and its interval on an axis from 0 to `scale`, in percent of the axis.

    What is beyond an end of the axis is placed at the end.
    """
    ends = {"value": value, "low": low, "high": high}
    return {name: in_percent(100 * min(max(end / scale, 0.0), 1.0)) for name, end in ends.items()}


def line(rows: pd.DataFrame) -> str:
    """Draw the probabilities of a model's rows, in time order, as a step line.

    The line has gaps where rows have no probability.
    """
    return "".join(_edge(run, "p") for run in _runs_with_p(rows))


def band(rows: pd.DataFrame) -> str:
    """Draw the band of the probability as closed paths: along the upper edge, back along the lower."""
    parts = []
    for run in _runs_with_p(rows):
        # Back along the lower edge: from the last row to the first, each up to its start.
        starts, low = run["start_s"].to_numpy()[::-1], run["p_low"].to_numpy()[::-1]
        parts.append(f"{_edge(run, 'p_high')}V{y_of(low[0])}{_steps(starts, low)}Z")
    return "".join(parts)


def _edge(run: pd.DataFrame, column: str) -> str:
    """Draw a column of adjacent rows from the start of the first to the end of the last."""
    p = run[column].to_numpy()
    return f"M{tenths(run['start_s'].iloc[0])} {y_of(p[0])}{_steps(run['end_s'].to_numpy(), p)}"


def _steps(ends: NDArray[np.float64], p: NDArray[np.float64]) -> str:
    """Continue a path with steps: at the height of each p [N] up to its end [N], in seconds.

    The path is at the height of the first p already. Adjacent steps of equal height are joined.
    """
    heights = [y_of(value) for value in p.tolist()]
    parts = []
    for end, height, next_height in zip(ends.tolist(), heights, [*heights[1:], None], strict=True):
        if next_height is None:
            parts.append(f"H{tenths(end)}")
        elif next_height != height:
            parts.append(f"H{tenths(end)}V{next_height}")
    return "".join(parts)


def _runs_with_p(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """Split rows into runs of adjacent rows that have a probability."""
    return [rows.iloc[first:after] for first, after in runs(rows["p"].notna().to_numpy())]


def strip(starts: ArrayLike, ends: ArrayLike, p: ArrayLike) -> dict[int, str]:
    """Draw probabilities as horizontal strokes, whose colour shows the probability.

    Adjacent rows of the same colour are one stroke; rows without a probability, and gaps, are not drawn.

    Parameters
    ----------
    starts, ends : array, shape [N]
        Start and end of each row, in seconds and in time order.
    p : array, shape [N]
        Probabilities; NaN for rows without one.

    Returns
    -------
    dict
        Step of colour, from 1 to `COLOUR_STEPS` -> path of its strokes, at y = 5.
    """
    starts, ends, p = (np.asarray(each, dtype=np.float64) for each in (starts, ends, p))
    paths: dict[int, list[str]] = {}
    last_x: dict[int, int] = {}  # step -> where its path ends so far
    steps = np.minimum(np.floor(np.nan_to_num(p) * COLOUR_STEPS), COLOUR_STEPS - 1) + 1
    step_of_row = np.where(np.isnan(p), 0, steps)  # 0 is not drawn
    begins_stroke = (np.diff(step_of_row) != 0) | (starts[1:] > ends[:-1])
    for first, after in pairwise([0, *(np.flatnonzero(begins_stroke) + 1).tolist(), len(step_of_row)]):
        step = int(step_of_row[first])
        if step:
            x, end_x = tenths(starts[first]), tenths(ends[after - 1])
            move = f"m{x - last_x[step]} 0" if step in last_x else f"M{x} 5"
            paths.setdefault(step, []).append(f"{move}h{end_x - x}")
            last_x[step] = end_x
    return {step: "".join(paths[step]) for step in sorted(paths)}
