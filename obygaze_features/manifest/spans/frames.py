"""Find the stretches of frames in which something is shown."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence


def runs_of(
    frames: Sequence[float], outside: Iterable[float], step: float, widest: float = math.inf
) -> list[tuple[float, float]]:
    """Find the runs of frames [start, end): to the next frame outside, else one step after the last.

    Parameters
    ----------
    frames
        In which it is shown, sorted: key frames, between which it goes on.
    outside
        In which it is not shown.
    step
        From one frame to the next.
    widest
        Frames that are further apart are of two runs, whatever is between them.

    Examples
    --------
    >>> runs_of([25, 26, 150], [125, 175], 1)
    [(25, 125), (150, 175)]
    """
    stops = [*sorted(outside), math.inf]
    runs: list[tuple[float, float]] = []
    first = last = stop = math.nan
    for frame in frames:
        next_stop = stops[bisect_right(stops, frame)]
        goes_on = next_stop == stop and frame - last <= widest
        if not goes_on:
            if not math.isnan(first):
                runs.append((first, last + step if math.isinf(stop) else stop))
            first = frame
        last = frame
        stop = next_stop
    if not math.isnan(first):
        runs.append((first, last + step if math.isinf(stop) else stop))
    return runs
