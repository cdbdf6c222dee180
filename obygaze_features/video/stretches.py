"""Decode a stretch of a film once for everything: windows inside it, parts of windows that leave it, cuts.

A film is cut into stretches at frames from which decoding gives exact pictures, so that several processes
decode each frame once. A window that leaves its stretch is put together from the frames of several (`Known`).
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from obygaze_features.arguments import checked
from obygaze_features.errors import VideoError
from obygaze_features.video.cuts import OwnDetector
from obygaze_features.video.decode import Frame, NotSafe
from obygaze_features.video.index import index_packets
from obygaze_features.video.packet_table import PacketTable
from obygaze_features.video.passes import (
    Known,
    Shown,
    Window,
    WindowReader,
    WindowResult,
    Windows,
    Wishes,
    union,
)
from obygaze_features.video.shots import Measured, Meter

T = TypeVar("T")


class Rest(NamedTuple, Generic[T]):
    """Results of a stretch besides the windows inside it.

    Parameters
    ----------
    known
        Number of a frame -> what windows that leave the stretch need of it.
    measured
        Measurements of all its frames.
    decoded
        Frames decoded since the last window.
    """

    known: dict[int, Known[T]]
    measured: Measured
    decoded: int


@checked
def why_not_in_stretches(path: Path) -> str:
    """Return why a film cannot be decoded in stretches; empty if it can."""
    try:
        table = index_packets(path)
        table.frame_times.need_times("which shots need")
    except VideoError as error:
        return error.reason
    return table.unsafe


@checked
def read_stretch(
    path: Path,
    stretch: tuple[float, float],
    windows: Windows,
    others: Windows,
    wishes: Wishes[T],
    *,
    strict: bool = False,
) -> Iterator[WindowResult[T] | Rest[T]]:
    """Decode all frames of a stretch once, in order, for windows and for the detection of cuts.

    Parameters
    ----------
    path
        A video file.
    stretch
        Start and end in seconds, which may be infinite. Each is moved to the next frame from which decoding
        gives exact pictures, so that the stretches of a film cover it, and no frame is in two.
    windows
        Start and end of the windows to read.
    others
        Windows that are read elsewhere and need frames of this stretch.
    wishes, strict
        As for `read_windows`.

    Yields
    ------
    tuple
        Position in `windows` of each window whose frames are all in the stretch, and its frames.
    Rest
        At the end. Without it the stretch could not be decoded exactly from its first frame on: the windows
        that are left are to be read by `read_windows`, and the film is to be measured by `find_shots`.
    """
    reader = WindowReader(path, wishes, strict=strict)
    finder = OwnDetector()
    if reader.table.unsafe or reader.lacks_keys:
        return
    start_s, end_s = stretch
    frames = range(_first_entry(reader.table, start_s), _first_entry(reader.table, end_s))
    chosen, _ = reader.chosen(Window(number, span) for number, span in enumerate((*windows, *others)))
    inside = [window for window in chosen if window.number < len(windows) and window.missing.issubset(frames)]
    leaving = {*chosen} - {*inside}  # windows that need other frames too, or are read elsewhere
    wishes_of_frame = _wishes_of_frames(leaving, frames)
    needed = wishes_of_frame.keys() | union(inside)
    known: dict[int, Known[T]] = {}

    def measured_frames() -> Iterator[Frame]:
        """Measure all frames of the stretch; yield those that windows need."""
        for number, frame in reader.sparse(frames):
            meter.add(number, frame)
            if number in needed:
                yield number, frame

    def shown_frames() -> Iterator[Shown[T]]:
        """Yield the needed frames; keep what windows that leave the stretch need of them."""
        for number, picture, result_of_wish in reader.applied(measured_frames()):
            if number in wishes_of_frame:
                # A wish may change the pixels, so the picture is described before.
                bare = picture.without_pixels()
                results = {wish: result_of_wish(wish) for wish in sorted(wishes_of_frame[number])}
                known[number] = Known(bare, results)
            yield number, picture, result_of_wish

    try:
        meter = Meter(reader.table, finder)
        yield from reader.served(shown_frames(), inside)
    except (NotSafe, VideoError):
        return
    measured = Measured(len(meter.frames), meter.frames.end_s, meter.measured(), finder.differences())
    yield Rest(known, measured, reader.unreported())


def _wishes_of_frames(windows: Iterable[Window[T]], frames: range) -> dict[int, set[int]]:
    """Return which of some frames windows need: frame number -> positions of the wishes that take it."""
    wishes_of_frame: dict[int, set[int]] = {}
    for window in windows:
        for wish, numbers in enumerate(window.wanted):
            for number in numbers.tolist():
                if number in frames:
                    wishes_of_frame.setdefault(number, set()).add(wish)
    return wishes_of_frame


def _first_entry(table: PacketTable, start_s: float) -> int:
    """Return the first frame from a time on at which decoding can start, or the number of frames."""
    if start_s == -np.inf:
        return 0
    entries = np.flatnonzero(table.random_access[table.shown])
    later_entries = entries[table.frame_times.time_s[entries] >= start_s]
    return int(later_entries[0]) if len(later_entries) else len(table.shown)
