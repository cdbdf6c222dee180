"""Find the shots of a film, and flag black shots, credits and black bars."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Self, TypeAlias

import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.video.cuts import DETECTORS, SMALL, Detector, Differences, OwnDetector
from obygaze_features.video.index import index_packets
from obygaze_features.video.packet_table import PacketTable
from obygaze_features.video.sequential import decode_sequential
from obygaze_features.video.source import Tally, guarded, opened

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


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Measurements of consecutive frames of a film; a film's shots follow from those of all its frames.

    Parameters
    ----------
    first
        Number of the first frame.
    n_frames, end_s
        Frames of the film, and the end of the last in seconds of the player's clock.
    time_s
        Shape [T].
    black, text
        Shape [T]: whether the picture is black, and whether it is light text on black.
    bars
        Shape [T, 4]: black rows above and below, black columns left and right, in pictures of `SMALL` size.
    differences
        What the detector of cuts measured.
    """

    first: int
    n_frames: int
    end_s: float
    time_s: NDArray[np.float64]
    black: NDArray[np.bool_]
    text: NDArray[np.bool_]
    bars: NDArray[np.int64]
    differences: Differences

    def to_bytes(self) -> bytes:
        """Serialise to the bytes of an NPZ file, without pickled objects."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "differences"}
        cuts = {each.name: getattr(self.differences, each.name) for each in fields(Differences)}
        file = io.BytesIO()
        np.savez(file, **own, **cuts)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` wrote.

        Raises
        ------
        ValueError, KeyError, OSError, zipfile.BadZipFile
            The bytes are others.
        """
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            values = {name: stored[name] for name in stored.files}
        cuts = Differences(**{each.name: values.pop(each.name) for each in fields(Differences)})
        first, n_frames, end_s = (
            int(values.pop("first")),
            int(values.pop("n_frames")),
            float(values.pop("end_s")),
        )
        return cls(first, n_frames, end_s, differences=cuts, **values)


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
        if not np.isfinite(table.time_s).all():
            raise VideoError("the file does not say when its frames are shown")
        self.n_frames = len(table.time_s)
        self.end_s = float(table.time_s[-1]) + table.frame_times.step_s
        self.finder = finder
        self._times = table.time_s
        self._reformatter = VideoReformatter()
        self._seen: list[int] = []
        self._black: list[bool] = []
        self._text: list[bool] = []
        self._bars: list[tuple[int, int, int, int]] = []

    def add(self, number: int, frame: VideoFrame) -> None:
        """Measure the next frame."""
        width, height = SMALL
        reformatted = self._reformatter.reformat(
            frame, width=width, height=height, format="gray", interpolation="AREA", threads=1
        )
        small = np.asarray(reformatted.to_ndarray(), np.uint8)
        self.finder.add(frame, small)
        dark = small <= BLACK
        bright = float((small >= BRIGHT_LEVEL).mean())
        least, most = CREDITS_BRIGHT
        rows, columns = np.flatnonzero(~dark.all(axis=1)), np.flatnonzero(~dark.all(axis=0))
        self._seen.append(number)
        self._black.append(bool(dark.mean() >= FULL))
        self._text.append(bool(least <= bright <= most and (small <= DARK_LEVEL).mean() >= CREDITS_DARK))
        self._bars.append(
            (int(rows[0]), height - 1 - int(rows[-1]), int(columns[0]), width - 1 - int(columns[-1]))
            if len(rows)
            else (0, 0, 0, 0)
        )

    def measured(self, differences: Differences) -> Measured:
        """Return the measurements so far."""
        return Measured(
            self._seen[0] if self._seen else 0,
            self.n_frames,
            self.end_s,
            self._times[self._seen],
            np.array(self._black, np.bool_),
            np.array(self._text, np.bool_),
            np.array(self._bars, np.int64).reshape(-1, 4),
            differences,
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
    table, finder = index_packets(path), DETECTORS[detector]()
    try:
        meter = Meter(table, finder)
    except VideoError as error:
        raise VideoError(error.reason, path) from None
    with opened(path) as source:
        for number, frame in guarded(decode_sequential(source, table, range(meter.n_frames), Tally()), path):
            meter.add(number, frame)
            if show is not None:
                show(number + 1, meter.n_frames)
    film = meter.measured(OwnDetector().differences())
    if not len(film.time_s):
        raise VideoError("the file is damaged: not one picture can be decoded", path)
    return _shots(film, finder.cuts())


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
    finder, n_seen = OwnDetector(), 0
    for part in parts:
        if len(part.time_s) and part.first != n_seen:
            return None
        n_seen += len(part.time_s)
        finder.join(part.differences)
    if not n_seen or {(part.n_frames, part.end_s) for part in parts} != {(n_seen, parts[0].end_s)}:
        return None
    arrays = zip(*((part.time_s, part.black, part.text, part.bars) for part in parts), strict=True)
    time_s, black, text, bars = map(np.concatenate, arrays)
    return _shots(replace(parts[0], time_s=time_s, black=black, text=text, bars=bars), finder.cuts())


def _shots(film: Measured, cuts: Sequence[int]) -> list[Shot]:
    """Cut a film at the detector's cuts, and around black and credits."""
    times, end_s = film.time_s, film.end_s
    ends = np.append(times[1:], end_s)
    black = _runs(film.black, times, ends, LEAST_BLACK_S)
    outer = (times < CREDITS_PART * end_s) | (times >= (1 - CREDITS_PART) * end_s)
    credits_ = _runs(film.text, times, ends, LEAST_CREDITS_S, outer)
    edges = np.flatnonzero(np.diff(black.astype(int) + 2 * credits_)) + 1
    firsts = sorted({0, *cuts, *edges.tolist()})
    shots = []
    for first, after in zip(firsts, [*firsts[1:], len(times)], strict=True):
        part = slice(first, after)
        marks = {"black": bool(black[part].all()), "credits": bool(credits_[part].all())}
        marks["bars"] = not any(marks.values()) and _has_bars(film.bars[part][~film.black[part]])
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


def _has_bars(bars: NDArray[np.int64]) -> bool:
    """Return whether all pictures that are not black, [T, 4], have bars above and below, or at both sides."""
    if not len(bars):
        return False
    above, below, left, right = bars.min(axis=0).tolist()
    width, height = SMALL
    return bool(min(above, below) >= LEAST_BAR * height or min(left, right) >= LEAST_BAR * width)
