"""Decode a stretch of a film once for everything: windows inside it, parts of windows that leave it, cuts.

A film is cut into stretches at frames from which decoding gives exact pictures, so that several processes
decode each frame once. A window that leaves its stretch is put together from the frames of several (`Known`).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from av.video.frame import VideoFrame

from obygaze_features.errors import VideoError
from obygaze_features.video.cuts import OwnDetector
from obygaze_features.video.decode import NotSafe, SeekFailed, decode_sparse
from obygaze_features.video.index import index_packets
from obygaze_features.video.packet_table import PacketTable
from obygaze_features.video.passes import Known, Window, WindowReader, WindowResult, Wishes, union
from obygaze_features.video.picture import RgbPicture
from obygaze_features.video.sampling import TimeSpan
from obygaze_features.video.shots import Measured, Meter

T = TypeVar("T")
Windows = Sequence[tuple[float | None, float | None]]


@dataclass(frozen=True, slots=True)
class Rest(Generic[T]):
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


def why_not_in_stretches(path: Path) -> str:
    """Say why a film cannot be decoded in stretches; empty if it can."""
    try:
        table = index_packets(path)
    except VideoError as error:
        return error.reason
    return table.unsafe or ("" if np.isfinite(table.time_s).all() else "its frames have no times")


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
    reader, finder = WindowReader(path, wishes, strict=strict), OwnDetector()
    try:
        meter = Meter(reader.table, finder)
        decoded = _Stretch(reader, meter, *stretch)
        yield from decoded.read([TimeSpan(*each) for each in windows], [TimeSpan(*each) for each in others])
    except (NotSafe, VideoError):
        return
    yield Rest(decoded.known, meter.measured(finder.differences()), reader.unreported())


class _Stretch(Generic[T]):
    """The frames of a stretch: numbers from `first` on and before `after`."""

    def __init__(self, reader: WindowReader[T], meter: Meter, start_s: float, end_s: float) -> None:
        if reader.table.unsafe:
            raise NotSafe(reader.table.unsafe)
        if reader.frame_times.key is None and any(rule.policy == "keyframes" for rule, _ in reader.wishes):
            raise NotSafe("its key frames are not known without decoding")
        self.known: dict[int, Known[T]] = {}
        self._reader = reader
        self._meter = meter
        self._frames = range(_entry(reader.table, start_s), _entry(reader.table, end_s))
        self._leaving: dict[int, set[int]] = {}

    def read(self, windows: Sequence[TimeSpan], others: Sequence[TimeSpan]) -> Iterator[WindowResult[T]]:
        """Yield the windows inside the stretch; keep what the others need of it in `known`."""
        reader = self._reader
        inside = []
        for window in self._chosen(windows):
            if all(number in self._frames for number in window.missing):
                inside.append(window)
            else:
                self._note(window)
        for window in self._chosen(others):
            self._note(window)
        wanted = self._leaving.keys() | union(inside)
        why = {window.number: "" for window in inside}
        try:
            yield from reader.served(self._decoded(wanted, seeks=True), inside, why, keep=self._keep)
        except SeekFailed:  # before the first frame, because the frames are one run
            yield from reader.served(self._decoded(wanted, seeks=False), inside, why, keep=self._keep)

    def _chosen(self, spans: Sequence[TimeSpan]) -> Iterator[Window[T]]:
        """Yield windows with their frames; those that cannot be read are left to `read_windows`."""
        for number, span in enumerate(spans):
            window = Window[T](number, span)
            with suppress(VideoError):
                window.choose(self._reader.wishes, self._reader.frame_times)
                yield window

    def _note(self, window: Window[T]) -> None:
        for wish, numbers in enumerate(window.wanted):
            for number in numbers.tolist():
                if number in self._frames:
                    self._leaving.setdefault(number, set()).add(wish)

    def _keep(self, number: int, picture: RgbPicture, results: Sequence[Callable[[], T]]) -> None:
        if number in self._leaving:
            bare = picture.without_pixels()  # first, for a wish may change the pixels
            wanted = {wish: results[wish]() for wish in sorted(self._leaving[number])}
            self.known[number] = Known(bare, wanted)

    def _decoded(self, wanted: Collection[int], *, seeks: bool) -> Iterator[tuple[int, VideoFrame]]:
        """Decode and measure every frame; yield the wanted ones."""
        reader = self._reader
        with reader.kept.opened(reader.path, strict=reader.strict) as source:
            for number, frame in decode_sparse(source, reader.table, self._frames, reader.tally, seeks=seeks):
                self._meter.add(number, frame)
                if number in wanted:
                    yield number, frame


def _entry(table: PacketTable, second: float) -> int:
    """Return the first frame from a time on at which decoding can start; the number of frames if none."""
    if second == -np.inf:
        return 0
    entries = np.flatnonzero(table.random_access[table.shown])
    later = entries[table.time_s[entries] >= second]
    return int(later[0]) if len(later) else len(table.shown)
