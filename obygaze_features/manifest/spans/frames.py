"""Find the stretches of frames in which something is shown."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


def runs_of(
    frames: Sequence[float], outside: Iterable[float], step: float, widest: float = math.inf
) -> list[tuple[float, float]]:
    """Find the runs of frames in which something is visible, from some frames that say whether it is.

    A run begins at a frame in which it is visible, and ends at the next frame in which it is not. If there is
    no such frame, the run ends one step after the last frame in which it is visible.

    Parameters
    ----------
    frames
        The frames known to show it, sorted. It is taken to be visible between them.
    outside
        The frames known not to show it.
    step
        From one frame to the next.
    widest
        Frames that are further apart than this belong to two runs.

    Returns
    -------
    list
        (first frame, frame after the last one) of each run.

    Examples
    --------
    >>> runs_of([25, 26, 150], [125, 175], 1)
    [(25, 125), (150, 175)]
    """
    stops = [*sorted(outside), math.inf]
    runs: list[_Run] = []
    for frame in frames:
        stop = stops[bisect_right(stops, frame)]  # the first stop behind the frame
        continues_last_run = bool(runs) and runs[-1].stop == stop and frame - runs[-1].last <= widest
        if continues_last_run:
            runs[-1].last = frame
        else:
            runs.append(_Run(frame, frame, stop))

    starts_and_ends = []
    for run in runs:
        is_never_stopped = math.isinf(run.stop)
        end = run.last + step if is_never_stopped else run.stop
        starts_and_ends.append((run.first, end))
    return starts_and_ends


@dataclass(slots=True)
class _Run:
    """The first and the last frame of a run, and the frame that stops it; infinity if none does."""

    first: float
    last: float
    stop: float
