"""Find the shots of a film, and flag black shots, credits and black bars."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.errors import VideoError
from obygaze_features.video.cuts import BLACK, DETECTORS, SMALL, Detector, Differences, OwnDetector, scaled
from obygaze_features.video.decode import Decoder, runs
from obygaze_features.video.packet_table import PacketTable
from obygaze_features.video.picture import Converter
from obygaze_features.video.source import naming_file

Show: TypeAlias = Callable[[int, int], None]

FULL = 0.99
"""Share of a picture that must be black for it to be black."""

LEAST_BLACK_S = 1.0

CREDITS_DARK = 0.7
DARK_LEVEL = 40
"""Share of a picture that must be dark to hold credits, and the largest grey level of 255 that is dark."""

FINE = (384, 216)
"""Width and height of dark pictures in which lines of text are looked for."""

EDGE = 24
LEAST_EDGES = 8
"""Difference of neighbours in a row that is an edge of a letter, in grey levels, and least edges of a row."""

DIP = 0.4
LINE_ROWS = (2, 24)
"""Share of the neighbours' edges below which a row is between two lines, and bounds of a line's height."""

MOST_BESIDE = 0.2
"""Share of the bright pixels up to which they may lie outside of lines."""

BRIGHT_LEVEL = 80
SUBTITLES = 0.75
"""Share of the height below which lines are taken for subtitles."""

NEW_TEXT = 1.05
"""Ratio by which the edges of the text must change, from their lower to their upper decile, in credits."""

MOST_GAP_S = 2.0
"""Longest time without text, but dark, between two cards."""

LEAST_CREDITS_S = 10.0
CREDITS_PART = 0.2
"""Part of the film at its beginning and at its end where credits are looked for."""

LEAST_BAR = 0.04
"""Share of a side from which on black rows or columns are a bar."""


class Shot(NamedTuple):
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


FRAME = np.dtype(
    [("number", int), ("time_s", float), ("black", bool), ("dark", bool), ("letters", int), ("bars", int, 4)]
)
"""Measurements of one frame: its number and time; whether the picture is black, and dark enough for credits;
edges in lines of text (see `text_edges`), 0 if it is not text on black; black rows above and below, and black
columns left and right, in pictures of `SMALL` size."""


class Measured(NamedTuple):
    """Measurements of consecutive frames of a film; its shots follow from those of all its frames.

    Parameters
    ----------
    n_frames, end_s
        Frames of the film, and the end of the last in seconds of the player's clock.
    frames
        Shape [T], of kind `FRAME`.
    differences
        What the detector of cuts kept of them.
    """

    n_frames: int
    end_s: float
    frames: NDArray[Any]
    differences: Differences


class Meter:
    """Measure the frames of a film one after the other.

    Parameters
    ----------
    table
        The film's packets.
    finder
        Detector of cuts, which gets the same frames.

    Raises
    ------
    VideoError
        The film has no presentation times.
    """

    def __init__(self, table: PacketTable, finder: Detector) -> None:
        self.frames = table.frame_times
        self.frames.need_times("which shots need")
        self.finder = finder
        self._convert = Converter(table.stream)
        self._converts = bool(table.stream.crop) or table.stream.alpha
        self._reformatter = VideoReformatter()
        self._rows: list[tuple[Any, ...]] = []

    def add(self, number: int, frame: VideoFrame) -> None:
        """Measure the next frame."""
        self._convert.tags(frame)
        if self._converts:
            frame = VideoFrame.from_ndarray(self._convert(frame).rgb)
        small = scaled(self._reformatter, frame, SMALL, "gray")
        width, height = SMALL
        self.finder.add(frame, small)
        black = small <= BLACK
        dark = small <= DARK_LEVEL
        may_be_text = bool(dark.mean() >= CREDITS_DARK)
        rows = np.flatnonzero(~black.all(axis=1))
        columns = np.flatnonzero(~black.all(axis=0))
        letters = 0
        if may_be_text and not dark.all():
            letters = text_edges(scaled(self._reformatter, frame, FINE, "gray"))
        bars = (0, 0, 0, 0)
        if len(rows):
            bars = (rows[0], height - 1 - rows[-1], columns[0], width - 1 - columns[-1])
        time_s = self.frames.time_s[number]
        self._rows.append((number, time_s, black.mean() >= FULL, may_be_text, letters, bars))

    def measured(self) -> NDArray[Any]:
        """Return the measurements so far, of kind `FRAME`."""
        return np.array(self._rows, FRAME)


def text_edges(picture: NDArray[np.uint8]) -> int:
    """Count the edges of letters in a dark picture [H, W]; 0 if it is not lines of text and little else.

    A line of text is a narrow band of rows with as many edges between light and dark as letters of its height
    have; rows of lamps or windows have fewer. Subtitles are not counted.
    """
    is_edge = np.abs(np.diff(picture.astype(np.int16), axis=1)) >= EDGE
    edges = is_edge.sum(axis=1)
    least, most = LINE_ROWS
    near = most // 4
    around = np.lib.stride_tricks.sliding_window_view(np.pad(edges, near), 2 * near + 1).max(axis=1)
    busy = (edges >= LEAST_EDGES) & (edges >= DIP * around)
    beside = (picture >= BRIGHT_LEVEL).sum(axis=1)
    bright = int(beside.sum())
    n_edges = 0
    for first, after in np.flatnonzero(np.diff(busy, prepend=False, append=False)).reshape(-1, 2).tolist():
        n_rows = after - first
        n_inside = int(edges[first:after].sum())
        columns = np.flatnonzero(is_edge[first:after].any(axis=0))
        # In each row, at least one edge for every line's height along the line.
        if least <= n_rows <= most and n_inside >= columns[-1] - columns[0]:
            beside[max(first - least, 0) : after + least] = 0  # with the ends of letters above and below
            n_edges += n_inside if after <= SUBTITLES * len(picture) else 0
    return n_edges if beside.sum() <= MOST_BESIDE * bright else 0


@checked
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
        In order, from 0 s to the film's end, without gaps. Black passages of at least 1 s are separate shots,
        and so are credits (lines of light text on black that roll or change, for at least 10 s that overlap
        the first or last fifth of the film).
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
    decoder = Decoder(path)
    finder = DETECTORS[detector]()
    with naming_file(path):
        meter = Meter(decoder.table, finder)
        for number, frame in decoder.sequential(range(len(meter.frames))):
            meter.add(number, frame)
            if show is not None:
                show(number + 1, len(meter.frames))
    measured = meter.measured()
    if not len(measured):
        raise VideoError("the file is damaged: not one picture can be decoded", path)
    return _shots(measured, meter.frames.end_s, finder.cuts())


@checked
def joined_shots(parts: Sequence[Measured]) -> list[Shot] | None:
    """Find the shots of a film whose frames were measured in parts; equal to those of `find_shots`.

    Parameters
    ----------
    parts
        Measured by `OwnDetector`, in order.

    Returns
    -------
    list of Shot or None
        None if the parts are not those of one film without gaps.
    """
    frames = np.concatenate([np.zeros(0, FRAME), *(part.frames for part in parts)])
    sizes = {(part.n_frames, part.end_s) for part in parts}
    if len(sizes) != 1 or not np.array_equal(frames["number"], np.arange(parts[0].n_frames)):
        return None
    finder = OwnDetector()
    for part in parts:
        finder.join(part.differences)
    return _shots(frames, parts[0].end_s, finder.cuts())


def _shots(film: NDArray[Any], end_s: float, cuts: Sequence[int]) -> list[Shot]:
    """Cut a film, measured whole, at the detector's cuts, and around black and credits."""
    times = film["time_s"]
    ends = np.append(times[1:], end_s)
    black = np.zeros(len(times), np.bool_)
    for first, after in _runs(film["black"], times, ends, LEAST_BLACK_S):
        black[first:after] = True
    credits_ = _credits(film, ends)
    edges = np.flatnonzero(np.diff(black.astype(int) + 2 * credits_)) + 1
    firsts = sorted({0, *cuts, *edges.tolist()})
    shots = []
    for first, after in zip(firsts, [*firsts[1:], len(times)], strict=True):
        part = slice(first, after)
        marks = {"black": bool(black[part].all()), "credits": bool(credits_[part].all())}
        marks["bars"] = not any(marks.values()) and _has_bars(film["bars"][part][~film["black"][part]])
        start_s = float(times[first]) if first else min(float(times[0]), 0.0)
        flags = tuple(name for name, applies in marks.items() if applies)
        shots.append(Shot(start_s, float(ends[after - 1]), flags))
    return shots


def _credits(film: NDArray[Any], ends: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which frames [T] are of credits: lines of text that roll or change, and dark gaps in between."""
    times = film["time_s"]
    has_text = film["letters"] > 0
    shown = has_text.copy()
    for first, after in _runs(~has_text, times, ends, 0.0):
        is_between = first > 0 and after < len(times) and film["dark"][first:after].all()
        shown[first:after] = is_between and times[after] - times[first] <= MOST_GAP_S
    outer = (times < CREDITS_PART * ends[-1]) | (times >= (1 - CREDITS_PART) * ends[-1])
    credits_ = np.zeros(len(times), np.bool_)
    for first, after in _runs(shown, times, ends, LEAST_CREDITS_S):
        letters = film["letters"][first:after]
        low, high = np.percentile(letters[letters > 0], (10, 90))
        credits_[first:after] = outer[first:after].any() and high >= NEW_TEXT * low
    return credits_


def _runs(
    marked: NDArray[np.bool_], starts: NDArray[np.float64], ends: NDArray[np.float64], least_s: float
) -> list[tuple[int, int]]:
    """List the runs of marked frames that last long enough: first frame, and the frame after the last."""
    every = ((first, last + 1) for first, last in runs(marked))
    return [(first, after) for first, after in every if ends[after - 1] - starts[first] >= least_s - 1e-9]


def _has_bars(bars: NDArray[np.int64]) -> bool:
    """Return whether all pictures that are not black, [T, 4], have bars above and below, or at both sides."""
    if not len(bars):
        return False
    above, below, left, right = bars.min(axis=0).tolist()
    width, height = SMALL
    return bool(min(above, below) >= LEAST_BAR * height or min(left, right) >= LEAST_BAR * width)
