"""Find the stretches of frames in which something is shown."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence


def runs_of(
    frames: Sequence[float], outside: Iterable[float], step: float, widest: float = math.inf
) -> list[tuple[float, float]]:
    """Find the runs of frames in which something shows, from the frames that say whether it does.

    A run begins at a frame in which it shows, and ends at the next frame in which it does not; if there is no
    such frame, one step after the last frame in which it shows.

    Parameters
    ----------
    frames
        The frames known to show it, sorted. Between them it goes on.
    outside
        The frames known not to show it.
    step
        From one frame to the next.
    widest
        Frames that are further apart than this are of two runs, whatever is between them.

    Returns
    -------
    list
        First frame of each run, and the frame after its last.

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
