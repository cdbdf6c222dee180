"""Draw a film's timeline as SVG paths; time in tenths of a second, stretched to the width by the page."""

from itertools import pairwise
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from obygaze_film.page.packed import whole_percentages
from obygaze_film.schema import runs

COLOUR_STEPS: Final = 7
"""Steps of colour from probability 0 to 1."""

NOT_DRAWN: Final = 0
"""Stands for a step of colour of rows without a probability."""

HEIGHT: Final = 100
"""Height of a line chart, from probability 0 to 1, in units of its SVG: one for each hundredth."""

TICKS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200)
"""Possible distances between the labelled times of an axis, in seconds."""


def tenths(seconds: float) -> int:
    """Return the x of a time in the figures of a timeline: whole tenths of a second from the film's start.

    The page stretches figures to its width. A time is rounded to milliseconds first, and half a tenth up, as
    by the script of page and desk, which gets whole milliseconds.
    """
    milliseconds = round(1000 * seconds)
    return (milliseconds + 50) // 100


def y_of(p: float) -> int:
    """Return the y of a probability in a line chart: `HEIGHT` for 0 and 0 for 1, as y points down.

    It is rounded to whole percentages, as probabilities are where they are written: so a line is as high as
    the number beside it, and as the line that the script of the page draws in the browser.
    """
    return HEIGHT - int(whole_percentages(p))


def percent(seconds: float, film_s: float) -> str:
    """Write a time as a percentage of the film's length for CSS, such as `12.5%`, with up to 3 decimals."""
    three_decimals = f"{100 * seconds / film_s:.3f}"
    shortest = three_decimals.rstrip("0").rstrip(".")  # 12.500 -> 12.5, 12.000 -> 12
    return f"{shortest}%"


def bar(value: float, low: float, high: float, scale: float = 1.0) -> dict[str, str]:
    """Place a number and its interval on an axis from 0 to `scale`, in percent of the axis.

    What is beyond an end of the axis is placed at the end.
    """
    numbers = {"value": value, "low": low, "high": high}
    places = {}
    for name, number in numbers.items():
        share_of_axis = min(max(number / scale, 0.0), 1.0)
        places[name] = f"{100 * share_of_axis:.1f}%"
    return places


def line(rows: pd.DataFrame) -> str:
    """Draw the probabilities (column `p`) of a model's rows, in time order, as a step line: an SVG path.

    The line has gaps where rows have no probability. So the path consists of the step lines of the runs of
    rows between these gaps, as "M0 20H30V40H60" and "M90 10H120": each moves to its start (M), and goes along
    (H) and up or down (V).
    """
    step_lines = [_step_line(run, column="p") for run in _runs_with_p(rows)]
    return "".join(step_lines)


def band(rows: pd.DataFrame) -> str:
    """Draw the band of the probability as closed paths: along the upper edge, back along the lower."""
    parts = []
    for run in _runs_with_p(rows):
        upper_edge = _step_line(run, column="p_high")
        # The lower edge backwards: from the last row to the first, each up to its start.
        starts = run["start_s"].to_numpy()[::-1]
        low = run["p_low"].to_numpy()[::-1]
        lower_edge = _steps(starts, low)
        # Along the upper edge, down to the lower one (V), back along it, and up to the first point (Z).
        parts.append(f"{upper_edge}V{y_of(low[0])}{lower_edge}Z")
    return "".join(parts)


def _step_line(run: pd.DataFrame, column: str) -> str:
    """Draw the probabilities in a column as a step line: an SVG path that begins where the first row starts.

    Each row is a step, up to its end. The rows of `run` follow each other without a gap.
    """
    p = run[column].to_numpy()
    start_x = tenths(run["start_s"].iloc[0])
    start_y = y_of(p[0])
    steps = _steps(run["end_s"].to_numpy(), p)
    return f"M{start_x} {start_y}{steps}"


def _steps(ends: NDArray[np.float64], p: NDArray[np.float64]) -> str:
    """Continue a path with steps [N] of probabilities p, up to their ends in seconds.

    The path is at the height of the first step. Adjacent steps of equal height are joined. It has commands to
    go along to an x (H) and up or down to a y (V): three steps may be "H20V30H40V10H50".
    """
    heights = [y_of(value) for value in p.tolist()]
    xs = [tenths(end) for end in ends.tolist()]
    # Where the height changes, the path goes along to the end of the step before, then up or down.
    changes = [index for index in range(1, len(heights)) if heights[index] != heights[index - 1]]
    parts = [f"H{xs[index - 1]}V{heights[index]}" for index in changes]
    if xs:
        parts.append(f"H{xs[-1]}")  # along the last step
    return "".join(parts)


def _runs_with_p(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """Split rows into runs of adjacent rows that have a probability."""
    return [rows.iloc[first:after] for first, after in runs(rows["p"].notna().to_numpy())]


def strip(starts: ArrayLike, ends: ArrayLike, p: ArrayLike) -> dict[int, str]:
    """Draw probabilities as horizontal strokes, whose colour shows the probability.

    Adjacent rows of the same colour are one stroke; rows without a probability, and gaps, are not drawn. A
    path moves to each stroke, the first one at an absolute x (M) and the others relative to the end of the
    stroke before (m), and draws it with its length (h): "M0 5h40m20 0h80".

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
    start_s = np.asarray(starts, dtype=np.float64)
    end_s = np.asarray(ends, dtype=np.float64)
    step_of_row = _colour_steps(np.asarray(p, dtype=np.float64))

    # Strokes of one colour share a path, as a path for each stroke would make pages far larger.
    paths: dict[int, str] = {}
    end_of_path: dict[int, int] = {}  # step -> x at which its path ends so far
    for first, after in _strokes(start_s, end_s, step_of_row):
        step = int(step_of_row[first])
        if step == NOT_DRAWN:
            continue

        start_x = tenths(start_s[first])
        end_x = tenths(end_s[after - 1])
        if step not in paths:
            paths[step] = f"M{start_x} 5"
        else:
            paths[step] += f"m{start_x - end_of_path[step]} 0"
        paths[step] += f"h{end_x - start_x}"
        end_of_path[step] = end_x
    return dict(sorted(paths.items()))


def _colour_steps(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the step of colour of each probability [N], from 1 to `COLOUR_STEPS`; `NOT_DRAWN` for NaN.

    Each step stands for an equal range of probabilities. They are rounded as where they are written: what
    reads alike has the same colour, and so it has in the script of page and desk (`stripPaths` in rows.js).
    """
    from_zero = np.floor(whole_percentages(np.nan_to_num(p)) * COLOUR_STEPS / 100)
    from_zero = np.minimum(from_zero, COLOUR_STEPS - 1)  # a probability of 1 has the last step
    return np.where(np.isnan(p), NOT_DRAWN, from_zero + 1)


def _strokes(
    start_s: NDArray[np.float64], end_s: NDArray[np.float64], step_of_row: NDArray[np.float64]
) -> list[tuple[int, int]]:
    """Join rows [N] that can be drawn as one stroke: of the same colour, without a gap between them.

    `step_of_row` is the step of the colour scale that each row has. Returned are the first row of each
    stroke, and the row after its last. Four rows in the steps 1, 1, 2, 2, with a gap before the last one, are
    the strokes (0, 2), (2, 3) and (3, 4).
    """
    # Of each row but the first [N - 1], compared with the row before it.
    has_other_colour = np.diff(step_of_row) != 0
    has_gap_before = start_s[1:] > end_s[:-1]
    # The first rows of all strokes but the first one; + 1, as row 0 was not compared.
    first_rows = np.flatnonzero(has_other_colour | has_gap_before) + 1
    # Each stroke ends where the next one begins.
    return list(pairwise([0, *first_rows.tolist(), len(step_of_row)]))
