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

MIN_BLACK_S = 1.0
"""Seconds that black must last to be a shot of its own."""

CREDITS_DARK = 0.7
"""Share of a picture that must be dark to hold credits."""

DARK_LEVEL = 40
"""Largest grey level of 255 that is dark."""

FINE = (384, 216)
"""Width and height of dark pictures in which lines of text are looked for."""

EDGE = 24
"""Difference of two neighbours in a row, in grey levels of 255, that is an edge of a letter."""

MIN_EDGES = 8
"""Edges of letters that a row of a line of text has at least."""

DIP = 0.4
"""Share of the most edges of the rows around, below which a row lies between two lines of text."""

LINE_ROWS = (2, 24)
"""Least and most rows of a line of text."""

ROWS_AROUND = 6
"""Rows above and below a row with which its edges are compared: a quarter of the highest line."""

MAX_SHARE_OUTSIDE = 0.2
"""Share of the bright pixels that may lie outside of lines of text."""

BRIGHT_LEVEL = 80
"""Least grey level of 255 that is bright."""

SUBTITLES = 0.75
"""Share of the height: lines that end farther down are taken for subtitles."""

NEW_TEXT = 1.05
"""Ratio of the upper to the lower decile of the number of edges: in credits the text changes at least so
much."""

MAX_GAP_S = 2.0
"""Longest time without text, but dark, between two cards."""

MIN_CREDITS_S = 10.0
CREDITS_PART = 0.2
"""Part of the film at its beginning and at its end where credits are looked for."""

MIN_BAR = 0.04
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

        Parameters
        ----------
        number
            Number of the frame in the film.
        frame
            The decoded frame.
        """
        # Gives the frame the colour tags that it lacks, and refuses colours that cannot be converted.
        self._convert.prepare(frame)
        measured_frame = frame
        if self._needs_conversion:
            measured_frame = VideoFrame.from_ndarray(self._convert(frame).rgb)
        small = scaled(self._reformatter, measured_frame, SMALL, "gray")
        self.cut_detector.add(measured_frame, small)

        is_black = small <= BLACK
        is_dark = small <= DARK_LEVEL
        may_hold_credits = bool(is_dark.mean() >= CREDITS_DARK)
        n_letter_edges = 0
        if may_hold_credits and not is_dark.all():
            fine = scaled(self._reformatter, measured_frame, FINE, "gray")
            n_letter_edges = text_edges(fine)

        time_s = self.frames.time_s[number]
        is_black_picture = is_black.mean() >= FULL
        bars = _count_bars(is_black)
        self._rows.append((number, time_s, is_black_picture, may_hold_credits, n_letter_edges, bars))

    def measured(self) -> NDArray[Any]:
        """Return the measurements so far: [T] of type `FRAME`."""
        return np.array(self._rows, FRAME)


def _count_bars(is_black: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Return the numbers of black rows above and below, and of black columns left and right, of a picture.

    An entirely black picture has none.

    Parameters
    ----------
    is_black
        Shape [H, W]: whether each pixel is black.
    """
    lit_rows = np.flatnonzero(~is_black.all(axis=1))
    lit_columns = np.flatnonzero(~is_black.all(axis=0))
    if not len(lit_rows):
        return 0, 0, 0, 0
    height, width = is_black.shape
    above = lit_rows[0]
    below = height - 1 - lit_rows[-1]
    left = lit_columns[0]
    right = width - 1 - lit_columns[-1]
    return above, below, left, right


def _may_be_text(edges_of_row: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which rows of a picture have as many edges as a row of text, compared with the rows around.

    Between two lines of text are rows with much fewer edges than there are in the lines.

    Parameters
    ----------
    edges_of_row
        Shape [H]: number of edges in each row.
    """
    padded = np.pad(edges_of_row, ROWS_AROUND)
    rows_around = np.lib.stride_tricks.sliding_window_view(padded, 2 * ROWS_AROUND + 1)  # [H, rows]
    max_around = rows_around.max(axis=1)
    has_enough_edges = edges_of_row >= MIN_EDGES
    is_in_line = edges_of_row >= DIP * max_around
    may_be_text: NDArray[np.bool_] = has_enough_edges & is_in_line
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
    is_edge = np.abs(np.diff(picture.astype(np.int16), axis=1)) >= EDGE  # [H, W - 1]
    edges_of_row = is_edge.sum(axis=1)  # [H]
    bright_of_row = (picture >= BRIGHT_LEVEL).sum(axis=1)  # [H]

    is_in_text = np.zeros(len(picture), np.bool_)  # which rows are in a line of text, or next to it
    n_edges = 0
    for first, last in runs(_may_be_text(edges_of_row)):
        end = last + 1
        if not _is_line_of_text(is_edge[first:end]):
            continue
        # The ends of letters may stick out above and below, by fewer rows than a line has.
        min_rows, _ = LINE_ROWS
        is_in_text[max(first - min_rows, 0) : end + min_rows] = True
        is_subtitle = end > SUBTITLES * len(picture)
        if not is_subtitle:
            n_edges += int(edges_of_row[first:end].sum())

    n_bright_outside = int(bright_of_row[~is_in_text].sum())
    has_only_text = n_bright_outside <= MAX_SHARE_OUTSIDE * int(bright_of_row.sum())
    return n_edges if has_only_text else 0


def _is_line_of_text(is_edge: NDArray[np.bool_]) -> bool:
    """Return whether a band of rows is a line of text, by its height and its edges of letters.

    Letters are narrower than high. So in each row of a line of text, every piece that is as long as the line
    is high has one edge or more. A line of H rows that is L pixels long has L / H such pieces in a row, and L
    in all H rows: it must have at least L edges.

    Parameters
    ----------
    is_edge
        Shape [H, W]: where edges lie. There is at least one.
    """
    min_rows, max_rows = LINE_ROWS
    n_rows = len(is_edge)
    has_height_of_line = min_rows <= n_rows <= max_rows
    columns = np.flatnonzero(is_edge.any(axis=0))
    length = columns[-1] - columns[0]
    has_enough_edges = int(is_edge.sum()) >= length
    return bool(has_height_of_line and has_enough_edges)


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
    cut_detector = DETECTORS[detector]()
    with naming_file(path):
        meter = Meter(decoder.table, cut_detector)
        for number, frame in decoder.decode_sequentially(range(len(meter.frames))):
            meter.add(number, frame)
            if show is not None:
                show(number + 1, len(meter.frames))
    measured = meter.measured()
    if not len(measured):
        raise VideoError("the file is damaged: not one picture can be decoded", path)
    return _shots(measured, meter.frames.end_s, cut_detector.cuts())


@checked
def joined_shots(parts: Sequence[Measured]) -> list[Shot] | None:
    """Find the shots of a film whose frames were measured part by part, by several processes.

    They are equal to those of `find_shots`, which decodes the whole film.

    Parameters
    ----------
    parts
        Measurements of the frames of each part, in order.

    Returns
    -------
    list of Shot or None
        None if the parts are not those of one film without gaps.
    """
    distinct_films = {(part.n_frames, part.end_s) for part in parts}
    if len(distinct_films) != 1:  # no parts, or those of several films
        return None
    n_frames, end_s = distinct_films.pop()
    frames = np.concatenate([part.frames for part in parts])
    is_complete = np.array_equal(frames["number"], np.arange(n_frames))
    if not is_complete:
        return None
    detector = DifferenceDetector()
    for part in parts:
        detector.join(part.differences)
    return _shots(frames, end_s, detector.cuts())


def _shots(film: NDArray[Any], end_s: float, cuts: Sequence[int]) -> list[Shot]:
    """Divide a film into shots: at cuts, and where black passages and credits begin and end.

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
    # For each frame, [T]: whether it is in a black passage, in credits, and shows whether there are bars.
    in_black = np.zeros(len(starts), np.bool_)
    for passage in _long_runs(film["black"], starts, ends, MIN_BLACK_S):
        in_black[passage] = True
    in_credits = _credits(film, ends)
    shows_framing = ~film["black"] & ~_hides_framing(film, in_credits)

    passage_edges = [*_changes(in_black), *_changes(in_credits)]
    edges = [*sorted({0, *cuts, *passage_edges}), len(starts)]
    shots = []
    for first, end in pairwise(edges):
        frames = slice(first, end)
        start_s = float(starts[first])
        if first == 0:
            start_s = min(start_s, 0.0)  # the film begins at 0, also if its first frame comes later
        end_of_shot_s = float(ends[end - 1])

        flags = []
        if in_black[frames].all():
            flags.append("black")
        if in_credits[frames].all():
            flags.append("credits")
        bars = film["bars"][frames]  # [frames, 4]
        bars_where_shown = bars[shows_framing[frames]]
        if not flags and _has_bars(bars_where_shown):
            flags.append("bars")
        shots.append(Shot(start_s, end_of_shot_s, tuple(flags)))
    return shots


def _changes(marked: NDArray[np.bool_]) -> list[int]:
    """Return the numbers of the frames that are marked and the one before is not, or the other way round.

    Parameters
    ----------
    marked
        Shape [T]: which frames are marked.
    """
    differs_from_before = marked[1:] != marked[:-1]
    changes: list[int] = (np.flatnonzero(differs_from_before) + 1).tolist()
    return changes


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
    film_end_s = ends[-1]
    is_at_beginning = starts < CREDITS_PART * film_end_s
    is_at_end = starts >= (1 - CREDITS_PART) * film_end_s
    may_be_credits = is_at_beginning | is_at_end
    in_credits = np.zeros(len(starts), np.bool_)
    for passage in _long_runs(_is_text_or_gap(film), starts, ends, MIN_CREDITS_S):
        is_near_an_end = bool(may_be_credits[passage].any())
        in_credits[passage] = is_near_an_end and _text_changes(film["letters"][passage])
    return in_credits


def _is_text_or_gap(film: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which frames [T] show text, or belong to a short dark gap between two texts.

    Parameters
    ----------
    film
        Measurements of all frames: [T] of type `FRAME`.
    """
    starts = film["time_s"]
    has_text: NDArray[np.bool_] = film["letters"] > 0
    is_text_or_gap = has_text.copy()
    for first, last in runs(~has_text):
        next_text = last + 1
        is_between_texts = first > 0 and next_text < len(starts)
        if is_between_texts and film["dark"][first:next_text].all():
            is_short = starts[next_text] - starts[first] <= MAX_GAP_S
            is_text_or_gap[first:next_text] = is_short
    return is_text_or_gap


def _text_changes(letters: NDArray[np.int64]) -> bool:
    """Return whether a passage of text has sometimes more and sometimes fewer letters, unlike a single title.

    Parameters
    ----------
    letters
        Shape [T]: edges of letters in each frame; 0 in the gaps between texts.

    Examples
    --------
    >>> _text_changes(np.array([100, 100, 0, 105, 105]))  # the gap is no text with few letters
    True
    >>> _text_changes(np.array([100, 100, 0, 104, 104]))
    False
    >>> _text_changes(np.array([0, 100, 100, 0, 0]))  # one title, between gaps
    False
    """
    lower_decile, upper_decile = np.percentile(letters[letters > 0], (10, 90))
    return bool(upper_decile >= NEW_TEXT * lower_decile)


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
    marked: NDArray[np.bool_], starts: NDArray[np.float64], ends: NDArray[np.float64], min_s: float
) -> list[slice]:
    """List the runs of marked frames that last at least `min_s` seconds.

    Parameters
    ----------
    marked
        Shape [T]: which frames are marked.
    starts, ends
        Shape [T]: start and end of each frame, in seconds.
    min_s
        Least duration of a run, in seconds.

    Examples
    --------
    >>> starts = np.arange(5.0)  # frames of a second each
    >>> _long_runs(np.array([True, False, True, True, False]), starts, ends=starts + 1, min_s=2.0)
    [slice(2, 4, None)]
    """
    long_runs = []
    for first, last in runs(marked):
        duration_s = ends[last] - starts[first]
        if duration_s >= min_s - ROUNDING_S:
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
    has_rows = min(above, below) >= MIN_BAR * height
    has_columns = min(left, right) >= MIN_BAR * width
    return bool(has_rows or has_columns)
