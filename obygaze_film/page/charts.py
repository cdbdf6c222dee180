"""Draw a film's timeline as SVG paths; time in tenths of a second, stretched to the width by the page."""

from itertools import pairwise
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from obygaze_film.schema import runs

STEPS: Final = 7
"""Steps of colour from an absent to a present concept."""

HEIGHT: Final = 100
"""Units from probability 0 to 1."""

TICKS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200)
MOST_TICKS: Final = 9


def tenths(seconds: float) -> int:
    """Place a time on the horizontal axis."""
    return round(10 * seconds)


def level(p: float) -> int:
    """Place a probability on the vertical axis, which points down."""
    return HEIGHT - round(HEIGHT * p)


def percent(seconds: float, whole_s: float) -> str:
    """Place a time in percent of the width."""
    return f"{100 * seconds / whole_s:.3f}".rstrip("0").rstrip(".") + "%"


def in_percent(share: float) -> str:
    """Write a place or a length that is in percent of the width."""
    return f"{share:.1f}%"


def bar(value: float, low: float, high: float, scale: float = 1.0) -> dict[str, str]:
    """Place a number and its interval on a scale from 0, in percent of its width."""
    ends = {"value": value, "low": low, "high": high}
    return {name: in_percent(100 * min(max(end / scale, 0.0), 1.0)) for name, end in ends.items()}


def line(rows: pd.DataFrame) -> str:
    """Draw the probability of rows of one model, in time order, as a step line with gaps where it lacks."""
    return "".join(_edge(run, "p") for run in _defined(rows))


def band(rows: pd.DataFrame) -> str:
    """Draw the band of the probability as closed paths: along the upper edge, back along the lower."""
    parts = []
    for run in _defined(rows):
        starts, low = run["start_s"].to_numpy()[::-1], run["p_low"].to_numpy()[::-1]
        parts.append(f"{_edge(run, 'p_high')}V{level(low[0])}{_steps(starts, low)}Z")
    return "".join(parts)


def _edge(run: pd.DataFrame, name: str) -> str:
    """Draw a column of adjacent rows from the start of the first to the end of the last."""
    p = run[name].to_numpy()
    return f"M{tenths(run['start_s'].iloc[0])} {level(p[0])}{_steps(run['end_s'].to_numpy(), p)}"


def _steps(x: NDArray[np.float64], p: NDArray[np.float64]) -> str:
    """Build a step path through x and p; adjacent steps of equal height are joined."""
    heights = [level(value) for value in p.tolist()]
    parts = []
    for index, (edge, height) in enumerate(zip(x.tolist(), heights, strict=True)):
        following = heights[index + 1] if index + 1 < len(heights) else None
        if following != height:
            parts.append(f"H{tenths(edge)}" + ("" if following is None else f"V{following}"))
    return "".join(parts)


def _defined(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """Split the rows into runs that have a probability."""
    return [rows.iloc[slice(*run)] for run in runs(rows["p"].notna().to_numpy())]


def strip(starts: ArrayLike, ends: ArrayLike, p: ArrayLike) -> dict[int, str]:
    """Draw probabilities as strokes at height 5, one path for each step of colour from 1 to `STEPS`.

    Adjacent rows of the same step are one stroke; rows without a probability, and gaps, are not drawn.
    """
    starts, ends, p = (np.asarray(each, dtype=np.float64) for each in (starts, ends, p))
    paths: dict[int, list[str]] = {}
    reached: dict[int, int] = {}
    steps = np.minimum(np.floor(np.nan_to_num(p) * STEPS), STEPS - 1) + 1
    step_of = np.where(np.isnan(p), 0, steps)  # 0 is not drawn
    is_new = (np.diff(step_of) != 0) | (starts[1:] > ends[:-1])
    for first, after in pairwise([0, *(np.flatnonzero(is_new) + 1).tolist(), len(step_of)]):
        if step := int(step_of[first]):
            x, end = tenths(starts[first]), tenths(ends[after - 1])
            move = f"m{x - reached[step]} 0" if step in reached else f"M{x} 5"
            paths.setdefault(step, []).append(f"{move}h{end - x}")
            reached[step] = end
    return {step: "".join(paths[step]) for step in sorted(paths)}


def ticks(whole_s: float) -> list[int]:
    """Choose the label times of an axis in seconds, none so near the end that its label is cut off."""
    step = next((step for step in TICKS_S if whole_s / step <= MOST_TICKS), TICKS_S[-1])
    return [time for time in range(0, int(whole_s) + 1, step) if time <= 0.96 * whole_s]
