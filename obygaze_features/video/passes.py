"""Read all wanted windows of a file in one pass that decodes each frame once.

Each window gets the same frames, status and notes as if it were read alone. There are three attempts, each on
the windows that the previous one could not complete: sparse decoding; sequential decoding; and, if frames are
missing, sequential decoding with frames chosen from those that exist.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.text import counted
from obygaze_features.video.decode import Decoder, Frame, NotSafe, runs
from obygaze_features.video.frames import Frames
from obygaze_features.video.picture import CollectedFrames, RgbPicture, pictures
from obygaze_features.video.sampling import (
    FrameTimes,
    Sampling,
    Span,
    choose,
    describe_gaps,
    describe_overhang,
)

T = TypeVar("T")
Pixels = NDArray[np.uint8]
FrameRequests = Sequence[tuple[Sampling, Callable[[Pixels], T]]]


@dataclass(slots=True, eq=False)
class Window(Generic[T]):
    """A span, the frames that each request takes from it, and the frames decoded so far.

    Parameters
    ----------
    number
        Position of the window among all windows.
    span
        Start and end in seconds.
    wanted
        For each request, the numbers of the frames that it takes, [F].
    missing
        Numbers of the frames that are still to be decoded.
    collected
        Frame number -> position of a request -> its result for the frame.
    why_sequential
        Why the window is decoded sequentially; empty if it is not.
    """

    number: int
    span: Span
    wanted: list[NDArray[np.int64]] = field(default_factory=list)
    missing: set[int] = field(default_factory=set)
    collected: CollectedFrames[dict[int, T]] = field(default_factory=CollectedFrames)
    why_sequential: str = ""

    def reset(self) -> None:
        """Start the window again: discard the frames decoded so far, and mark all as missing."""
        self.missing = set()
        for numbers in self.wanted:
            self.missing.update(numbers.tolist())
        self.collected = CollectedFrames()

    def results_for(self, number: int, result_of_request: Callable[[int], T]) -> dict[int, T]:
        """Compute what the requests make of a frame, for those requests that take the frame.

        Parameters
        ----------
        number
            Number of the frame.
        result_of_request
            Computes the result of a request for the frame, from the position of the request.

        Returns
        -------
        dict
            Position of the request -> its result.
        """
        results = {}
        for position, numbers_of_request in enumerate(self.wanted):
            takes_frame = number in numbers_of_request
            if takes_frame:
                results[position] = result_of_request(position)
        return results


class Known(NamedTuple, Generic[T]):
    """A frame that was decoded elsewhere: its picture without pixels, and the results of some requests."""

    picture: RgbPicture
    results: dict[int, T]


Windows = Sequence[Span]
WindowResult = tuple[int, tuple[Frames[T], ...] | VideoError]
WindowList = list[Window[T]]
ConvertedFrame = tuple[int, RgbPicture, Callable[[int], T]]
"""A frame's number, its picture, and a function that returns the result of a request for the picture, given
the position of the request."""


class RequestResults(Generic[T]):
    """Results of the requests for one picture, each computed when it is first asked for, and stored."""

    def __init__(self, requests: FrameRequests[T], rgb: Pixels) -> None:
        """Hold the requests and the picture [H, W, 3]; nothing is computed yet."""
        self._requests = requests
        self._rgb = rgb
        self._results: dict[int, T] = {}

    def __call__(self, position: int) -> T:
        """Return the result of the request at a position."""
        if position not in self._results:
            _, apply = self._requests[position]
            self._results[position] = apply(self._rgb)
        return self._results[position]


class WindowReader(Decoder, Generic[T]):
    """Reader of windows of one file.

    Parameters
    ----------
    path
        A video file.
    requests
        Sampling rules, each with the function applied to its frames; the same for every window.
    strict
        Refuse windows with detected damage, and enable the decoder's stricter error detection.

    Raises
    ------
    VideoError
        The file cannot be read at all.
    """

    def __init__(self, path: Path, requests: FrameRequests[T], *, strict: bool) -> None:
        """Read the packet table of the file; frames are decoded by `read`."""
        super().__init__(path, strict=strict)
        self.requests = requests
        self.frame_times = self.table.frame_times
        self._holes = self.table.holes
        self._reported = 0  # decoded frames that were counted in results, see `unreported`

    def read(
        self, windows: Windows, known: Mapping[int, Known[T]] | None = None
    ) -> Iterator[WindowResult[T]]:
        """Decode the frames of all windows (time spans of the file).

        Yields the number of each window with its frames by request, or with its error, as soon as its last
        frame is decoded. Windows are decoded sparsely if possible: only the packets that their frames need.
        Those that cannot be exact then are decoded sequentially: all packets. The last attempt counts the
        frames that exist, chooses among those, and decodes sequentially again.

        Parameters
        ----------
        windows
            Start and end of each, in seconds.
        known
            Frame number -> results for a frame that was decoded elsewhere. A window all of whose frames are
            known is not decoded.
        """
        if self.lacks_keys:
            self._choose_among_existing_frames()
        why_sequential = self.table.unsafe  # empty if the stream can be decoded sparsely
        # An iterator: a list would keep the windows and their frames in memory when they are yielded.
        all_windows: Iterator[Window[T]] = (
            Window(number, span, why_sequential=why_sequential) for number, span in enumerate(windows)
        )
        pending, errors = self.choose_frames(all_windows)
        yield from errors

        # Every attempt yields the windows that it completes, and returns those that are left. (The value of
        # `yield from` is what a generator returns.)
        if known:
            pending = yield from self._read_known(pending, known)
        if not why_sequential:
            pending = yield from self._read_sparsely(pending)
        if pending:
            pending = yield from self._read_sequentially(pending, needs_sure_numbers=True)
        if pending:
            self._choose_among_existing_frames()
            pending, errors = self.choose_frames(pending)
            yield from errors
            pending = yield from self._read_sequentially(pending)

        for window in pending:
            yield window.number, VideoError("the frames asked for cannot be decoded", self.path)

    def choose_frames(self, windows: Iterable[Window[T]]) -> tuple[WindowList[T], list[WindowResult[T]]]:
        """Choose the frames of every window by the requests' rules, and set them in the windows.

        The windows are changed: frames that they collected in an earlier attempt are discarded, and all
        chosen frames are missing. An iterator is consumed.

        Returns
        -------
        list of Window
            The same windows, now with the numbers of their frames.
        list of WindowResult
            For each window in which a rule finds no frames, its number and the error.
        """
        windows_with_frames = []
        errors = list[WindowResult[T]]()
        for window in windows:
            try:
                frames_in_span = self.frame_times.within(*window.span)
                window.wanted = [choose(sampling, frames_in_span) for sampling, _ in self.requests]
                window.reset()
                windows_with_frames.append(window)
            except VideoError as error:
                errors.append((window.number, VideoError(error.reason, self.path)))
        return windows_with_frames, errors

    def convert(self, frames: Iterable[Frame]) -> Iterator[ConvertedFrame[T]]:
        """Convert decoded frames to RGB pictures.

        Yields for each frame its number, its picture, and a function that computes the result of a request
        for the picture, by the position of the request.
        """
        for number, picture in pictures(frames, self.path, self.table.stream):
            yield number, picture, RequestResults(self.requests, picture.rgb)

    def _read_known(
        self, windows: WindowList[T], known: Mapping[int, Known[T]]
    ) -> Generator[WindowResult[T], None, WindowList[T]]:
        """Yield the windows all of whose frames were decoded elsewhere; return the others."""
        complete_windows = [window for window in windows if window.missing <= known.keys()]
        other_windows = [window for window in windows if window not in complete_windows]
        frames = _known_frames(known, missing_frames(complete_windows))
        yield from self.distribute(frames, complete_windows)
        return other_windows

    def _read_sparsely(self, windows: WindowList[T]) -> Generator[WindowResult[T], None, WindowList[T]]:
        """Decode only the packets that the windows need, and yield the windows that are certain to be exact.

        If decoding fails at some packets, each window that may need these is tried alone, by a call for this
        window, so that its result does not depend on the other windows. Decoding then goes on with the
        remaining windows. To use it: `unsafe_windows = yield from self._read_sparsely(windows)`.

        Returns
        -------
        list of Window
            The windows that must be decoded sequentially, with the reason in `why_sequential`.
        """
        unsafe_windows: WindowList[T] = []
        while windows:
            try:
                frames = self.convert(self.decode_sparsely(missing_frames(windows)))
                yield from self.distribute(frames, windows)  # which removes those that it yields
                return unsafe_windows + windows  # windows are left if the decoder returned too few frames
            except NotSafe as reason:
                # Of the windows that were not yielded before the error:
                affected_windows = [window for window in windows if self._is_affected(window, reason.packets)]
                was_tried_alone = len(windows) == 1
                if was_tried_alone and affected_windows:
                    (window,) = affected_windows
                    window.reset()
                    window.why_sequential = str(reason)
                    return [*unsafe_windows, window]

            # The others go on together, in the next round of the loop.
            windows = [window for window in windows if window not in affected_windows]
            for window in affected_windows:
                window.reset()
                unsafe_alone = yield from self._read_sparsely([window])  # [window], or nothing
                unsafe_windows += unsafe_alone
        return unsafe_windows

    def _is_affected(self, window: Window[T], packets: tuple[int, int] | None) -> bool:
        """Return whether an error in a run of packets may concern a window.

        A run is packets that are decoded one after the other, without a seek between them. The error concerns
        a window that lacks frames of the run. It may also concern a window that has all its frames, since the
        error may have come behind these in the same run. (A window whose frames were complete before this run
        was yielded, and is not asked about.)

        Parameters
        ----------
        window
            A window that was not yielded yet.
        packets
            First and last packet of the run; None if unknown, so that every window may be concerned.
        """
        is_complete = not window.missing
        if packets is None or is_complete:
            return True
        first, last = packets
        missing_packets = self.table.shown[list(window.missing)]
        is_in_run = (missing_packets >= first) & (missing_packets <= last)
        return bool(is_in_run.any())

    def _read_sequentially(
        self, windows: WindowList[T], *, needs_sure_numbers: bool = False
    ) -> Generator[WindowResult[T], None, WindowList[T]]:
        """Decode all frames from the beginning of the file, and yield the windows that are complete.

        To use it: `left = yield from self._read_sequentially(windows)`.

        Parameters
        ----------
        windows
            The windows.
        needs_sure_numbers
            Whether a window is held back if the numbers of its frames are unsure. They are unsure after an
            error of the decoder, if frames are counted and not known by their packets: then a frame is
            missing, and those behind it have too low a number. The last attempt does not need sure numbers,
            as it has chosen among the frames that come out.

        Returns
        -------
        list of Window
            The windows that lack frames, or whose frames have unsure numbers.
        """
        self.errors = 0  # those of earlier attempts concern no frame of this one
        for window in windows:
            window.reset()
        frames = self.convert(self.decode_sequentially(missing_frames(windows)))
        yield from self.distribute(frames, windows, needs_sure_numbers=needs_sure_numbers)
        return windows  # without those that `distribute` yielded

    def distribute(
        self, frames: Iterable[ConvertedFrame[T]], windows: WindowList[T], *, needs_sure_numbers: bool = False
    ) -> Iterator[WindowResult[T]]:
        """Pass each frame's results to the windows that need the frame, and yield windows that are complete.

        A window that is yielded is removed from the list. Windows that become complete with the last wanted
        frame are yielded only when the decoder has finished, because it may still find an error.

        Parameters
        ----------
        frames
            Converted frames in display order.
        windows
            The windows; those that are left in the list at the end lack frames, or have unsure ones.
        needs_sure_numbers
            Whether a window is left in the list if a frame may have another number than it should: the
            decoder refused a packet, and frames are numbered by counting.
        """
        windows_by_frame = _windows_by_missing_frame(windows)
        complete: list[_CompleteWindow[T]] = []  # not yielded yet
        for number, picture, result_of_request in frames:
            windows_of_frame = windows_by_frame.pop(number, ())
            # The function of a request may change the pixels, so the picture's properties are noted before.
            for window in windows_of_frame:
                window.collected.note(number, picture)
            for window in windows_of_frame:
                window.collected.images[number] = window.results_for(number, result_of_request)
                window.missing.discard(number)
                has_all_frames = not window.missing
                is_held_back = needs_sure_numbers and not self._are_numbers_sure()
                if has_all_frames and not is_held_back:
                    complete.append(_CompleteWindow(window, self._finish(window)))

            has_later_frames = len(windows_by_frame) > 0
            if has_later_frames:
                yield from _taken_results(complete, windows)
        yield from _taken_results(complete, windows)

    def _are_numbers_sure(self) -> bool:
        """Return whether the frames decoded so far are certain to have the right numbers.

        A frame is numbered by its packet, or, where packets' times cannot be trusted, by counting. If the
        decoder refuses a packet, its frame is not counted, so that those behind it get too low a number.
        """
        are_counted = not self.known_by_packet
        is_packet_refused = self.errors > 0
        return not (are_counted and is_packet_refused)

    def _finish(self, window: Window[T]) -> tuple[Frames[T], ...] | VideoError:
        """Return the result of a window that has all its frames: the frames of each request, or an error.

        Sentences on what the file lacks in the window (losses) make it partial; with `strict` they are an
        error. The frames decoded since the last result are counted in this one (`unreported`).
        """
        gaps = self.table.frame_times.gaps(*window.span, self._holes)
        losses = self._losses_of(window, gaps)
        if self.strict and losses:
            return VideoError("; ".join(losses), self.path)
        n_decoded = self.unreported()  # also if the window is refused now, so that no later one counts them
        too_few = self._too_few(window.span)
        if too_few:
            return VideoError(too_few, self.path)

        # A span that ends behind the video is partial, but no error.
        overhang = self.frame_times.overhang(*window.span)
        if len(overhang):
            losses.append(describe_overhang(overhang))

        # What the file has lost elsewhere is no fault of this window, and still worth knowing.
        properties, remarks_on_pictures = window.collected.describe()
        lost_elsewhere = [loss for _, loss in self.table.losses if loss not in losses]
        remarks = dict.fromkeys((*lost_elsewhere, *self.table.notes, *remarks_on_pictures))

        shared_fields: dict[str, Any] = {  # of all requests
            "status": "partial" if losses else "ok",
            "without_pictures_s": _joined(np.concatenate([gaps, overhang])),
            "method": "sequential" if window.why_sequential else "sparse",
            "why_sequential": window.why_sequential,
            "total": len(self.frame_times),
            "decoded": n_decoded,
            "stream": self.table.stream.record(),
            **properties,
        }
        return self._frames_of_requests(window, (*losses, *remarks), shared_fields)

    def _frames_of_requests(
        self, window: Window[T], notes: tuple[str, ...], shared_fields: Mapping[str, Any]
    ) -> tuple[Frames[T], ...]:
        """Return the frames of each request from a window that has all its frames.

        Parameters
        ----------
        window
            The window. It has the results by frame: `collected.images[number of a frame][position of a
            request]`. A request takes the frames `wanted[position]`.
        notes
            Notes on the window, to which each request may add its own.
        shared_fields
            Names of fields of `Frames` -> their values, equal for all requests.
        """
        frames_of_requests = []
        for position, (sampling, _) in enumerate(self.requests):
            numbers = window.wanted[position]  # a frame may be in it several times
            images = [window.collected.images[number][position] for number in numbers.tolist()]
            rows = np.searchsorted(self.frame_times.index, numbers)  # of these frames in `frame_times`
            frames = Frames(
                images=images,
                index=numbers,
                time_s=self.frame_times.time_s[rows],
                notes=(*notes, *_repeated(sampling, numbers)),
                **shared_fields,
            )
            frames_of_requests.append(frames)
        return tuple(frames_of_requests)

    def _choose_among_existing_frames(self) -> None:
        """Decode the whole stream to find the frames that exist; from then on frames are chosen among these.

        A damaged file lists frames that cannot be decoded. The times of these become holes (stretches without
        pictures), if it is known which they are: every frame that exists has one of the listed times.
        Otherwise the holes stay those that the packets showed.
        """
        self.frame_times = self.find_frames()
        listed_times = self.table.frame_times
        are_times_listed = np.isin(self.frame_times.time_s, listed_times.time_s)
        if not are_times_listed.all():
            return
        lost_s = _lost_stretches(listed_times, self.frame_times)
        holes = np.concatenate([self.table.holes, lost_s])  # [H, 2]
        in_order = holes[np.argsort(holes[:, 0], kind="stable")]
        self._holes = np.array(_joined(in_order), np.float64).reshape(-1, 2)

    def _losses_of(self, window: Window[T], gaps: NDArray[np.float64]) -> list[str]:
        """Return sentences on what the file lacks, or could not be decoded, in the span of a window.

        Parameters
        ----------
        window
            The window, whose frames are all decoded.
        gaps
            Shape [G, 2]: start and end in seconds of the stretches of the span without pictures.
        """
        table = self.table
        _, end_s = window.span
        losses = [loss for from_s, loss in table.losses if end_s is None or end_s > from_s]
        gap = describe_gaps(gaps)
        if gap:
            losses.append(gap)
        return losses + self._decoding_losses(window.collected)

    def _too_few(self, span: Span) -> str:
        """Return a sentence if under half of the frames of a span can be decoded; else "".

        A rule such as "32 evenly spaced frames" then gives frames that are far from those that it means.
        Frames that are asked for by their numbers do not depend on the others, so requests of numbers alone
        are never refused for this.
        """
        only_numbers = all(sampling.policy == "indices" for sampling, _ in self.requests)
        if only_numbers:
            return ""
        n_decodable = len(self.frame_times.within(*span))
        n_frames = len(self.table.frame_times.within(*span))
        if 2 * n_decodable >= n_frames:
            return ""
        return f"only {n_decodable} of {counted(n_frames, 'frame')} can be decoded: under half"

    @property
    def lacks_keys(self) -> bool:
        """Whether a request takes key frames, and they are not known without decoding."""
        wants_keys = any(sampling.policy == "keyframes" for sampling, _ in self.requests)
        return wants_keys and self.frame_times.key is None

    def unreported(self) -> int:
        """Return the number of frames decoded since the last call, so that each is counted in one result."""
        decoded = self.decoded - self._reported
        self._reported = self.decoded
        return decoded

    def _decoding_losses(self, collected: CollectedFrames[dict[int, T]]) -> list[str]:
        """Return sentences on the missing or damaged data that decoding showed."""
        losses = []
        n_decodable = len(self.frame_times)
        n_frames = len(self.table.frame_times)
        if n_decodable < n_frames:
            losses.append(
                f"{n_decodable} of {counted(n_frames, 'frame')} can be decoded; the choice was among those"
            )
        if self.errors:
            packets = "packet" if self.errors == 1 else "packets"
            losses.append(f"the decoder refused {self.errors} {packets} on the way")
        if collected.corrupt:
            damaged_numbers = ", ".join(str(number) for number in sorted(collected.corrupt))
            losses.append(f"the decoder flags as damaged: frame {damaged_numbers}")
        return losses


def _lost_stretches(all_times: FrameTimes, existing: FrameTimes) -> NDArray[np.float64]:
    """Return the stretches of a file whose listed frames do not exist: starts and ends in seconds, [H, 2].

    If of frames at 0, 0.5, 1 and 1.5 s the second and third do not exist, there is one: (0.5, 1.5).
    """
    is_lost = ~np.isin(all_times.time_s, existing.time_s)
    edges_s = np.append(all_times.time_s, all_times.end_s)  # each frame ends where the next one begins
    stretches_s = [(edges_s[first], edges_s[last + 1]) for first, last in runs(is_lost)]
    return np.array(stretches_s, np.float64).reshape(-1, 2)


def _windows_by_missing_frame(windows: Iterable[Window[T]]) -> dict[int, list[Window[T]]]:
    """Return number of a frame -> the windows that lack it."""
    windows_by_frame: dict[int, list[Window[T]]] = {}
    for window in windows:
        for number in window.missing:
            windows_by_frame.setdefault(number, []).append(window)
    return windows_by_frame


class _CompleteWindow(NamedTuple, Generic[T]):
    """A window that has all its frames, and its result: the frames of each request, or an error."""

    window: Window[T]
    result: tuple[Frames[T], ...] | VideoError


def _taken_results(complete: list[_CompleteWindow[T]], windows: WindowList[T]) -> Iterator[WindowResult[T]]:
    """Yield the numbers and results of the complete windows, and remove these windows from both lists."""
    while complete:
        window, result = complete.pop(0)
        windows.remove(window)
        yield window.number, result


def _joined(stretches: NDArray[np.float64]) -> tuple[tuple[float, float], ...]:
    """Join stretches of time that touch or overlap.

    For example, (0, 1), (1, 2) and (5, 6) become (0, 2) and (5, 6).

    Parameters
    ----------
    stretches
        Shape [S, 2]: starts and ends in seconds, in the order of the starts.
    """
    joined: list[tuple[float, float]] = []
    for start_s, end_s in stretches.tolist():
        if joined:
            last_start_s, last_end_s = joined[-1]
            touches_last = start_s <= last_end_s
            if touches_last:
                joined[-1] = (last_start_s, max(last_end_s, end_s))
                continue
        joined.append((start_s, end_s))
    return tuple(joined)


def missing_frames(windows: Iterable[Window[T]]) -> list[int]:
    """Return the numbers of the frames that at least one window still needs, rising."""
    numbers = set[int]()
    for window in windows:
        numbers |= window.missing
    return sorted(numbers)


def _known_frames(known: Mapping[int, Known[T]], numbers: Iterable[int]) -> Iterator[ConvertedFrame[T]]:
    """Yield frames that were decoded elsewhere in the form in which `WindowReader.convert` yields its own.

    These are triples: the frame's number, its picture, and a function that returns the result of a request,
    given the request's position. Here the results are there already, so that it looks them up.
    """
    for number in numbers:
        frame = known[number]
        look_up_result = frame.results.__getitem__
        yield number, frame.picture, look_up_result


def _repeated(sampling: Sampling, numbers: NDArray[np.int64]) -> list[str]:
    """Return a note if fewer key frames exist than were asked for, so that some are repeated.

    The list is empty if no frame is repeated, or other frames than key frames are asked for.
    """
    n_distinct = len(np.unique(numbers))
    if sampling.policy != "keyframes" or n_distinct == len(numbers):
        return []
    return [f"{n_distinct} of the {len(numbers)} key frames taken are distinct: the others repeat them"]
