"""Find the shots of a film, and flag black shots, credits and black bars."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.video.cuts import DETECTORS, SMALL, Detector, Grey
from obygaze_features.video.errors import guarded
from obygaze_features.video.index import index_packets
from obygaze_features.video.sequential import decode_sequential
from obygaze_features.video.source import Tally, opened

Show: TypeAlias = Callable[[int, int], None]

BLACK = 24
"""Largest grey level of 255 that counts as black."""

FULL = 0.99
"""Share of a picture that must be black for it to be black."""

LEAST_BLACK_S = 1.0

CREDITS_DARK, CREDITS_BRIGHT = 0.7, (0.005, 0.25)
"""Light text on black: share of the picture that is dark, and bounds of the share that is bright."""

DARK_LEVEL, BRIGHT_LEVEL = 40, 80
LEAST_CREDITS_S = 10.0
CREDITS_PART = 0.2
"""Part of the film at its beginning and at its end where credits are looked for."""

LEAST_BAR = 0.04
"""Share of a side from which on black rows or columns are a bar."""


@dataclass(frozen=True, slots=True)
class Shot:
    """A sequence of frames between two cuts.

    Parameters
    ----------
    start_s, end_s
        Times of its first frame and of the next shot's first frame, in seconds of the player's clock.
    flags
        Of `black`, `credits` and `bars`, in this order.
    """

    start_s: float
    end_s: float
    flags: tuple[str, ...] = ()


@dataclass(slots=True)
class _Seen:
    """Measurements of each frame."""

    time_s: list[float] = field(default_factory=list)
    black: list[bool] = field(default_factory=list)
    text: list[bool] = field(default_factory=list)
    bars: list[tuple[int, int, int, int]] = field(default_factory=list)

    def add(self, time_s: float, small: Grey) -> None:
        dark = small <= BLACK
        self.time_s.append(time_s)
        self.black.append(bool(dark.mean() >= FULL))
        bright = float((small >= BRIGHT_LEVEL).mean())
        least, most = CREDITS_BRIGHT
        self.text.append(bool(least <= bright <= most and (small <= DARK_LEVEL).mean() >= CREDITS_DARK))
        rows, columns = np.flatnonzero(~dark.all(axis=1)), np.flatnonzero(~dark.all(axis=0))
        height, width = small.shape
        self.bars.append(
            (int(rows[0]), height - 1 - int(rows[-1]), int(columns[0]), width - 1 - int(columns[-1]))
            if len(rows)
            else (0, 0, 0, 0)
        )


def find_shots(path: Path, detector: str = "own", show: Show | None = None) -> list[Shot]:
    """Find the shots of a film in one pass over all its frames, each decoded once.

    Parameters
    ----------
    path
        A video file.
    detector
        `own`, `scenedetect` or `transnet` (see `cuts`).
    show
        Called with the number of frames seen, and of all.

    Returns
    -------
    list of Shot
        In order, from 0 s to the film's end, without gaps. Black passages of at least 1 s and credits (light
        text on black for at least 10 s that overlaps the first or last fifth of the film) are separate shots.
        `bars`: rows above and below, or columns at both sides, are black throughout the shot and cover at
        least 4 % of the side.

    Raises
    ------
    VideoError
        The file cannot be read, or has no presentation times.
    ShotError
        The detector's package is missing.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features.video import find_shots
    >>> [shot.start_s for shot in find_shots(Path("videos/clip.mp4"))]
    [0.0]
    """
    seen, finder = _Seen(), DETECTORS[detector]()
    table = index_packets(path)
    times = table.timeline.time_s
    if not np.isfinite(times).all():
        raise VideoError("the file does not say when its frames are shown", path)
    for number, frame, small in _frames(path):
        finder.add(frame, small)
        seen.add(float(times[number]), small)
        if show is not None:
            show(number + 1, len(times))
    if not seen.time_s:
        raise VideoError("the file is damaged: not one picture can be decoded", path)
    return _shots(seen, finder, float(times[-1]) + table.timeline.step_s)


def _frames(path: Path) -> Iterator[tuple[int, VideoFrame, Grey]]:
    """Yield every frame that can be decoded with its number and its small grey picture."""
    table = index_packets(path)
    reformatter, (width, height) = VideoReformatter(), SMALL
    with opened(path) as source:
        numbers = range(len(table.shown))
        for number, frame in guarded(decode_sequential(source, table, numbers, Tally()), path):
            small = reformatter.reformat(
                frame, width=width, height=height, format="gray", interpolation="AREA", threads=1
            )
            yield number, frame, np.asarray(small.to_ndarray(), np.uint8)


def _shots(seen: _Seen, finder: Detector, end_s: float) -> list[Shot]:
    """Cut a film at the detector's cuts, and around black and credits."""
    times = np.array(seen.time_s)
    ends = np.append(times[1:], end_s)
    black = _runs(np.array(seen.black), times, ends, LEAST_BLACK_S)
    outer = (times < CREDITS_PART * end_s) | (times >= (1 - CREDITS_PART) * end_s)
    credits_ = _runs(np.array(seen.text), times, ends, LEAST_CREDITS_S, outer)
    edges = np.flatnonzero(np.diff(black.astype(int) + 2 * credits_)) + 1
    firsts = sorted({0, *finder.cuts(), *edges.tolist()})
    shots = []
    for first, after in zip(firsts, [*firsts[1:], len(times)], strict=True):
        part = slice(first, after)
        marks = {"black": bool(black[part].all()), "credits": bool(credits_[part].all())}
        marks["bars"] = not any(marks.values()) and _has_bars(seen, range(first, after))
        start_s = float(times[first]) if first else min(float(times[0]), 0.0)
        shot_end_s = float(times[after]) if after < len(times) else end_s
        shots.append(Shot(start_s, shot_end_s, tuple(name for name, applies in marks.items() if applies)))
    return shots


def _runs(
    marked: NDArray[np.bool_],
    starts: NDArray[np.float64],
    ends: NDArray[np.float64],
    least_s: float,
    where: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Return runs of marked frames that last long enough and overlap `where`."""
    kept = np.zeros(len(marked), np.bool_)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], marked, [False]))))
    for first, after in edges.reshape(-1, 2).tolist():
        is_long = ends[after - 1] - starts[first] >= least_s - 1e-9
        kept[first:after] = is_long and (where is None or where[first:after].any())
    return kept


def _has_bars(seen: _Seen, numbers: range) -> bool:
    """Return whether all pictures that are not black have bars above and below, or at both sides."""
    bars = [seen.bars[number] for number in numbers if not seen.black[number]]
    if not bars:
        return False
    above, below, left, right = np.array(bars).min(axis=0).tolist()
    width, height = SMALL
    return bool(min(above, below) >= LEAST_BAR * height or min(left, right) >= LEAST_BAR * width)
