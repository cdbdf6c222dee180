"""Find the shots of a film, and flag black shots, credits and black bars."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.errors import VideoError
from obygaze_features.video.cuts import (
    BLACK,
    DETECTORS,
    SMALL,
    Detector,
    DifferenceDetector,
    Differences,
    scaled,
)
from obygaze_features.video.decode import Decoder, runs
from obygaze_features.video.packet_table import PacketTable
from obygaze_features.video.picture import Converter
from obygaze_features.video.source import naming_file

Show: TypeAlias = Callable[[int, int], None]

FULL = 0.99
"""Share of a picture that must be black for it to be black."""

LEAST_BLACK_S = 1.0
"""Seconds that black must last to be a shot of its own."""

CREDITS_DARK = 0.7
"""Share of a picture that must be dark to hold credits."""

DARK_LEVEL = 40
"""Largest grey level of 255 that is dark."""

FINE = (384, 216)
"""Width and height of dark pictures in which lines of text are looked for."""

EDGE = 24
"""Difference of two neighbours in a row, in grey levels of 255, that is an edge of a letter."""

LEAST_EDGES = 8
"""Edges of letters that a row of a line of text has at least."""

DIP = 0.4
"""Share of the most edges of the rows around, below which a row lies between two lines of text."""

LINE_ROWS = (2, 24)
"""Least and most rows of a line of text."""

MOST_BESIDE = 0.2
"""Share of the bright pixels that may lie outside of lines of text."""

BRIGHT_LEVEL = 80
"""Least grey level of 255 that is bright."""

SUBTITLES = 0.75
"""Share of the height: lines that end farther down are taken for subtitles."""

NEW_TEXT = 1.05
"""Ratio of the upper to the lower decile of the number of edges: in credits the text changes at least so
much."""

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


ROUNDING_S = 1e-9
"""Seconds that a duration may lack by rounding."""

FRAME = np.dtype(
    [
        ("number", int),  # of the frame
        ("time_s", float),  # of the frame
        ("black", bool),  # whether the picture is black
        ("dark", bool),  # whether it is dark enough for credits
        ("letters", int),  # edges in lines of text (see `text_edges`); 0 if it is not text on black
        ("bars", int, 4),  # black rows above and below, black columns left and right, at `SMALL` size
    ]
)
"""Measurements of one frame."""


class Measured(NamedTuple):
    """Measurements of consecutive frames of a film. The shots follow from those of all frames of the film.

    Parameters
    ----------
    n_frames
        Number of frames of the whole film.
    end_s
        End of the film's last frame, in seconds of the player's clock.
    frames
        Shape [T], of type `FRAME`.
    differences
        What the detector of cuts measured on these frames.
    """

    n_frames: int
    end_s: float
    frames: NDArray[Any]
    differences: Differences


class Meter:
    """Measures the frames of a film, one after the other, from which its shots follow.

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

    def __init__(self, table: PacketTable, cut_detector: Detector) -> None:
        """Prepare for the frames of a stream, which must have times."""
        self.frames = table.frame_times
        self.frames.need_times("which shots need")
        self.cut_detector = cut_detector
        self._convert = Converter(table.stream)
        # Frames that are cropped or transparent are measured after conversion to RGB. Others are measured as
        # they are decoded, because the conversion takes time.
        self._needs_conversion = bool(table.stream.crop) or table.stream.alpha
        self._reformatter = VideoReformatter()
        self._rows: list[tuple[Any, ...]] = []  # one for each frame, with the fields of `FRAME`

    def add(self, number: int, frame: VideoFrame) -> None:
        """Measure the next frame, and pass it to the cut detector.

        It is measured whether the picture is black or dark, how many edges of letters it has, and its black
        bars.
        """
        self._convert.tags(frame)  # gives the frame the matrix that only the stream names
        if self._needs_conversion:
            frame = VideoFrame.from_ndarray(self._convert(frame).rgb)
        small = scaled(self._reformatter, frame, SMALL, "gray")
        self.cut_detector.add(frame, small)
        is_black = small <= BLACK
        is_dark = small <= DARK_LEVEL
        may_hold_credits = bool(is_dark.mean() >= CREDITS_DARK)
        n_letter_edges = 0
        if may_hold_credits and not is_dark.all():
            n_letter_edges = text_edges(scaled(self._reformatter, frame, FINE, "gray"))
        time_s = self.frames.time_s[number]
        is_black_picture = is_black.mean() >= FULL
        bars = _count_bars(is_black)
        self._rows.append((number, time_s, is_black_picture, may_hold_credits, n_letter_edges, bars))

    def measured(self) -> NDArray[Any]:
        """Return the measurements so far: [T] of type `FRAME`."""
        return np.array(self._rows, FRAME)


def _count_bars(is_black: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Count the black rows above and below, and black columns left and right, in a mask [H, W].

    An entirely black picture has none.
    """
    lit_rows = np.flatnonzero(~is_black.all(axis=1))
    lit_columns = np.flatnonzero(~is_black.all(axis=0))
    if not len(lit_rows):
        return 0, 0, 0, 0
    height, width = is_black.shape
    return lit_rows[0], height - 1 - lit_rows[-1], lit_columns[0], width - 1 - lit_columns[-1]


def _may_be_text(edges_of_row: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which rows of a picture have as many edges as a row of text, compared with the rows around.

    Between two lines of text are rows with much fewer edges than there are in the lines.
    """
    _, most_rows = LINE_ROWS
    reach = most_rows // 4
    rows_around = np.lib.stride_tricks.sliding_window_view(np.pad(edges_of_row, reach), 2 * reach + 1)
    most_around = rows_around.max(axis=1)
    may_be_text: NDArray[np.bool_] = (edges_of_row >= LEAST_EDGES) & (edges_of_row >= DIP * most_around)
    return may_be_text


def text_edges(picture: NDArray[np.uint8]) -> int:
    """Count the edges of letters in a dark picture of lines of text, such as credits.

    A line of text is a narrow band of rows with as many edges between light and dark as letters of its height
    have; rows of lamps or windows have fewer. Subtitles are not counted.

    Parameters
    ----------
    picture
        A grey picture [H, W].

    Returns
    -------
    int
        Number of pixels at which an edge lies; 0 if bright pixels outside of the lines are more than a few.
    """
    is_edge = np.abs(np.diff(picture.astype(np.int16), axis=1)) >= EDGE
    edges_of_row = is_edge.sum(axis=1)
    least_rows, most_rows = LINE_ROWS
    bright_of_row = (picture >= BRIGHT_LEVEL).sum(axis=1)
    bright_outside = bright_of_row.copy()
    n_edges = 0
    for first, last in runs(_may_be_text(edges_of_row)):
        end = last + 1
        edges_of_line = int(edges_of_row[first:end].sum())
        columns = np.flatnonzero(is_edge[first:end].any(axis=0))
        # Letters are narrower than high, so that each row has an edge in each piece of the line that is as
        # long as the line is high. Over all rows of the line these are as many edges as the line is long.
        line_length = columns[-1] - columns[0]
        has_enough_edges = edges_of_line >= line_length
        if least_rows <= end - first <= most_rows and has_enough_edges:
            # The ends of letters may stick out above and below.
            bright_outside[max(first - least_rows, 0) : end + least_rows] = 0
            is_subtitle = end > SUBTITLES * len(picture)
            if not is_subtitle:
                n_edges += edges_of_line
    has_only_text = bright_outside.sum() <= MOST_BESIDE * int(bright_of_row.sum())
    return n_edges if has_only_text else 0


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
        Called after each frame with the number of frames measured, and of all frames.

    Returns
    -------
    list of Shot
        In order, from 0 s to the film's end, without gaps. Black passages of at least 1 s are separate shots,
        and so are credits (lines of light text on black that roll or change, for at least 10 s that overlap
        the first or last fifth of the film).
        `bars`: rows above and below, or columns at both sides, are black throughout the shot and cover at
        least 4 % of the side. Text on black, and dark pictures that lead to credits, have none.

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
        for number, frame in decoder.decode_sequentially(range(len(meter.frames))):
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
        Measured by `DifferenceDetector`, in order.

    Returns
    -------
    list of Shot or None
        None if the parts are not those of one film without gaps.
    """
    frames = np.concatenate([np.zeros(0, FRAME), *(part.frames for part in parts)])
    sizes = {(part.n_frames, part.end_s) for part in parts}
    if len(sizes) != 1 or not np.array_equal(frames["number"], np.arange(parts[0].n_frames)):
        return None
    finder = DifferenceDetector()
    for part in parts:
        finder.join(part.differences)
    return _shots(frames, parts[0].end_s, finder.cuts())


def _shots(film: NDArray[Any], end_s: float, cuts: Sequence[int]) -> list[Shot]:
    """Cut a film at the detector's cuts, and where black passages and credits begin and end.

    Parameters
    ----------
    film
        Measurements of all its frames: [T] of type `FRAME`.
    end_s
        End of its last frame, in seconds.
    cuts
        Numbers of the frames that begin a shot.
    """
    starts = film["time_s"]
    ends = np.append(starts[1:], end_s)
    in_black = np.zeros(len(starts), np.bool_)
    for passage in _long_runs(film["black"], starts, ends, LEAST_BLACK_S):
        in_black[passage] = True
    in_credits = _credits(film, ends)
    shows_bars = ~film["black"] & ~_hides_framing(film, in_credits)
    changes = (in_black[1:] != in_black[:-1]) | (in_credits[1:] != in_credits[:-1])
    passage_starts = np.flatnonzero(changes) + 1
    edges = [*sorted({0, *cuts, *passage_starts.tolist()}), len(starts)]
    shots = []
    for first, end in pairwise(edges):
        shot = slice(first, end)
        start_s = float(starts[first]) if first else min(float(starts[0]), 0.0)  # the film begins at 0
        flags = []
        if in_black[shot].all():
            flags.append("black")
        if in_credits[shot].all():
            flags.append("credits")
        if not flags and _has_bars(film["bars"][shot][shows_bars[shot]]):
            flags.append("bars")
        shots.append(Shot(start_s, float(ends[end - 1]), tuple(flags)))
    return shots


def _credits(film: NDArray[Any], ends: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which frames [T] belong to credits.

    Credits are long passages of text that rolls or changes, with short dark gaps, near the beginning or the
    end of the film.

    Parameters
    ----------
    film
        Measurements of all frames: [T] of type `FRAME`.
    ends
        Shape [T]: end of each frame, in seconds.
    """
    starts = film["time_s"]
    has_text = film["letters"] > 0
    # Texts with the short dark gaps between them.
    has_text_or_gap = has_text.copy()
    for gap in _long_runs(~has_text, starts, ends, 0.0):
        is_between_texts = gap.start > 0 and gap.stop < len(starts)
        if is_between_texts and film["dark"][gap].all():
            is_short = starts[gap.stop] - starts[gap.start] <= MOST_GAP_S
            has_text_or_gap[gap] = is_short
    film_end = ends[-1]
    is_outer = (starts < CREDITS_PART * film_end) | (starts >= (1 - CREDITS_PART) * film_end)
    in_credits = np.zeros(len(starts), np.bool_)
    for passage in _long_runs(has_text_or_gap, starts, ends, LEAST_CREDITS_S):
        letters = film["letters"][passage]
        few, many = np.percentile(letters[letters > 0], (10, 90))
        text_changes = many >= NEW_TEXT * few  # a single title always has as many letters
        in_credits[passage] = is_outer[passage].any() and text_changes
    return in_credits


def _hides_framing(film: NDArray[Any], in_credits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which frames [T] do not show whether the film has black bars.

    These are frames with text on black, because the black around the text is no bar, and dark frames that
    adjoin credits. The latter may hold the first or last line of the credits, with black around it.

    Parameters
    ----------
    film
        Measurements of all frames: [T] of type `FRAME`.
    in_credits
        Shape [T]: which frames belong to credits.
    """
    hides_framing = in_credits | (film["letters"] > 0)
    for first, last in runs(film["dark"]):
        if in_credits[first : last + 1].any():
            hides_framing[first : last + 1] = True
    return hides_framing


def _long_runs(
    marked: NDArray[np.bool_], starts: NDArray[np.float64], ends: NDArray[np.float64], least_s: float
) -> list[slice]:
    """List the runs of marked frames that last at least `least_s` seconds.

    Parameters
    ----------
    marked
        Shape [T]: which frames are marked.
    starts, ends
        Shape [T]: start and end of each frame, in seconds.
    least_s
        Least duration of a run, in seconds.
    """
    long_runs = []
    for first, last in runs(marked):
        duration_s = ends[last] - starts[first]
        if duration_s >= least_s - ROUNDING_S:
            long_runs.append(slice(first, last + 1))
    return long_runs


def _has_bars(bars: NDArray[np.int64]) -> bool:
    """Return whether pictures have bars above and below, or at both sides, throughout.

    Parameters
    ----------
    bars
        Shape [T, 4], of the pictures that are not black: rows above and below, columns left and right.
    """
    if not len(bars):
        return False
    above, below, left, right = bars.min(axis=0).tolist()
    width, height = SMALL
    has_rows = min(above, below) >= LEAST_BAR * height
    has_columns = min(left, right) >= LEAST_BAR * width
    return bool(has_rows or has_columns)
