"""Decode a stretch of a film once for everything: windows inside it, parts of windows that leave it, cuts.

A film is cut into stretches at frames from which decoding gives exact pictures, so that several processes
decode each frame once. A window that leaves its stretch is put together from the frames of several (`Known`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from obygaze_features.arguments import checked
from obygaze_features.errors import VideoError
from obygaze_features.video.cuts import DifferenceDetector
from obygaze_features.video.decode import Frame, NotSafe
from obygaze_features.video.index import index_packets
from obygaze_features.video.packet_table import PacketTable
from obygaze_features.video.passes import (
    ConvertedFrame,
    FrameRequests,
    Known,
    Window,
    WindowReader,
    WindowResult,
    Windows,
    missing_frames,
)
from obygaze_features.video.shots import Measured, Meter

T = TypeVar("T")


class Rest(NamedTuple, Generic[T]):
    """What the decoding of a stretch gives in addition to its windows, when it has ended.

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
    """Return why a film cannot be decoded in parts (stretches) by several processes; empty if it can.

    It cannot if its file is damaged or states no times of frames, or if it can only be decoded from its
    beginning. The times are needed as stretches are decoded to find shots, too.
    """
    try:
        table = index_packets(path)
        table.frame_times.need_times("which shots need")  # raises an error if one is not stated
    except VideoError as error:
        return error.reason
    return table.unsafe  # why it can only be decoded from its beginning, or empty


@checked
def read_stretch(
    path: Path,
    stretch: tuple[float, float],
    windows: Windows,
    others: Windows,
    requests: FrameRequests[T],
    *,
    strict: bool = False,
) -> Iterator[WindowResult[T] | Rest[T]]:
    """Decode all frames of a part of a film (stretch) once, in order, for its windows and to detect cuts.

    Parameters
    ----------
    path
        A video file.
    stretch
        Start and end in seconds, which may be infinite. Each is moved to the next frame from which decoding
        gives exact pictures. So the stretches of a film cover it, and no frame is in two.
    windows
        Start and end of the windows to read.
    others
        Start and end of further windows that need frames of this stretch, but are not read here; `Rest` has
        the results of these frames.
    requests, strict
        As for `read_windows`.

    Yields
    ------
    tuple
        Position in `windows` of each window whose frames are all in the stretch, and its frames.
    Rest
        At the end. Without it the stretch could not be decoded exactly from its first frame on: the windows
        that are left are to be read by `read_windows`, and the film is to be measured by `find_shots`.
    """
    reader = WindowReader(path, requests, strict=strict)
    cut_detector = DifferenceDetector()
    must_be_decoded_whole = reader.table.unsafe != ""  # the stream can only be decoded from its beginning
    if must_be_decoded_whole or reader.lacks_keys:
        return
    start_s, end_s = stretch
    frames = range(_first_entry(reader.table, start_s), _first_entry(reader.table, end_s))

    divided = _divide_windows(reader, windows, others, frames)
    requests_of_frame = _requests_of_frames(divided.read_elsewhere, frames)
    frames_here = missing_frames(divided.read_here)  # no window has any of its frames yet
    needed_frames = requests_of_frame.keys() | frames_here
    known: dict[int, Known[T]] = {}  # filled in by the last of the steps below
    try:
        # Four steps for each frame, each a generator that takes frames from the one before: the frame is
        # decoded, measured, converted if a window needs it, and its results for windows that are read
        # elsewhere are stored in `known`.
        meter = Meter(reader.table, cut_detector)
        decoded = reader.decode_sparsely(frames)
        measured_frames = _measured_frames(decoded, meter, needed_frames)
        converted = reader.convert(measured_frames)
        stored = _store_results_passing(converted, requests_of_frame, known)
        yield from reader.distribute(stored, divided.read_here)
    except (NotSafe, VideoError):  # the windows that are left are read by `read_windows`
        return

    differences = cut_detector.differences()
    measured = Measured(len(meter.frames), meter.frames.end_s, meter.measured(), differences)
    yield Rest(known, measured, decoded=reader.unreported())


class _DividedWindows(NamedTuple, Generic[T]):
    """The windows of a film that all have their frames in a stretch, and those read with other frames."""

    read_here: list[Window[T]]
    read_elsewhere: list[Window[T]]


def _divide_windows(
    reader: WindowReader[T], windows: Windows, others: Windows, frames: range
) -> _DividedWindows[T]:
    """Divide windows into those that can be read with the frames of a stretch alone, and all others.

    Parameters
    ----------
    reader
        Says which frames each window needs.
    windows
        Start and end in seconds of the windows that are to be read.
    others
        Start and end of further windows, which are read elsewhere in any case.
    frames
        Numbers of the frames of the stretch.
    """
    numbered_windows: Iterator[Window[T]] = (
        Window(number, span) for number, span in enumerate((*windows, *others))
    )
    windows_with_frames, _ = reader.choose_frames(numbered_windows)
    divided = _DividedWindows[T]([], [])
    for window in windows_with_frames:
        is_to_read = window.number < len(windows)
        if is_to_read and window.missing.issubset(frames):
            divided.read_here.append(window)
        else:
            divided.read_elsewhere.append(window)
    return divided


def _measured_frames(frames: Iterable[Frame], meter: Meter, needed: Collection[int]) -> Iterator[Frame]:
    """Measure all decoded frames for the detection of cuts, and yield those that a window needs."""
    for number, frame in frames:
        meter.add(number, frame)
        if number in needed:
            yield number, frame


def _store_results_passing(
    frames: Iterable[ConvertedFrame[T]],
    requests_of_frame: Mapping[int, Collection[int]],
    known: dict[int, Known[T]],
) -> Iterator[ConvertedFrame[T]]:
    """Pass on frames unchanged, and store of some what is needed by windows that are read elsewhere.

    Such a window has frames in several stretches. It is put together later, from what was stored of each.

    Parameters
    ----------
    frames
        Converted frames: number, picture, and a function that computes the result of a request for it (the
        picture as the request prepares it) from the position of the request.
    requests_of_frame
        Number of a frame -> positions of the requests whose results are needed elsewhere.
    known
        Number of a frame -> its results. This function fills it as its frames are taken one by one: it is
        complete when the last one was.
    """
    for number, picture, result_of_request in frames:
        is_needed_elsewhere = number in requests_of_frame
        if is_needed_elsewhere:
            # A request may change the pixels, so the properties of the picture are taken before.
            without_pixels = picture.without_pixels()
            positions = sorted(requests_of_frame[number])
            result_of_position = {position: result_of_request(position) for position in positions}
            known[number] = Known(without_pixels, result_of_position)
        yield number, picture, result_of_request


def _requests_of_frames(windows: Iterable[Window[T]], frames: range) -> dict[int, set[int]]:
    """Return frame number -> positions of the requests that take the frame for one of the windows.

    Frames outside of the range `frames` are left out.
    """
    requests_of_frame: dict[int, set[int]] = {}
    for window in windows:
        for position, numbers in enumerate(window.wanted):
            for number in numbers.tolist():
                if number in frames:
                    requests_of_frame.setdefault(number, set()).add(position)
    return requests_of_frame


def _first_entry(table: PacketTable, start_s: float) -> int:
    """Return the number of the first frame from a time on at which decoding can start.

    It is 0 for a time of minus infinity, and the number of all frames if there is no such frame.
    """
    if start_s == -np.inf:
        return 0
    can_start = table.random_access[table.shown]  # of each frame in display order
    is_late_enough = table.frame_times.time_s >= start_s
    entries = np.flatnonzero(can_start & is_late_enough)
    return int(entries[0]) if len(entries) else len(table.shown)
