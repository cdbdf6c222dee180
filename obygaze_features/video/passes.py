"""Read all wanted windows of a file in one pass that decodes each frame once.

Each window gets the same frames, status and notes as if it were read alone. There are three attempts, each on
the windows that the previous one could not complete: sparse decoding; sequential decoding; and, if frames are
missing, sequential decoding with frames chosen from those that exist.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.text import counted
from obygaze_features.video.decode import Decoder, Frame, NotSafe
from obygaze_features.video.frames import Frames
from obygaze_features.video.picture import CollectedFrames, RgbPicture, pictures
from obygaze_features.video.sampling import Sampling, Span, choose

T = TypeVar("T")
Pixels = NDArray[np.uint8]
Wishes = Sequence[tuple[Sampling, Callable[[Pixels], T]]]


@dataclass(slots=True, eq=False)
class Window(Generic[T]):
    """A span, the frames that each wish takes from it, and the frames decoded so far.

    Parameters
    ----------
    number
        Position of the window among all windows.
    span
        Start and end in seconds.
    wanted
        By wish: numbers of the frames that it takes, [F].
    missing
        Numbers of the frames that are still to be decoded.
    collected
        By frame number: the result of each wish, by its position.
    why
        Why the window is decoded sequentially; empty if it is not.
    """

    number: int
    span: Span
    wanted: list[NDArray[np.int64]] = field(default_factory=list)
    missing: set[int] = field(default_factory=set)
    collected: CollectedFrames[dict[int, T]] = field(default_factory=CollectedFrames)
    why: str = ""

    def begin(self) -> None:
        """Discard the frames taken so far, and mark all wanted frames as missing."""
        self.missing = set()
        for numbers in self.wanted:
            self.missing.update(numbers.tolist())
        self.collected = CollectedFrames()

    def results_for(self, number: int, result_of_wish: Callable[[int], T]) -> dict[int, T]:
        """Return the results of those wishes that take a frame, by position of the wish."""
        results = {}
        for wish, numbers in enumerate(self.wanted):
            if number in numbers:
                results[wish] = result_of_wish(wish)
        return results


class Known(NamedTuple, Generic[T]):
    """A frame that was decoded elsewhere: its picture without pixels, and the results of some wishes."""

    picture: RgbPicture
    results: dict[int, T]


Windows = Sequence[Span]
WindowResult = tuple[int, tuple[Frames[T], ...] | VideoError]
WindowList = list[Window[T]]
Shown = tuple[int, RgbPicture, Callable[[int], T]]
"""A frame's number, its picture, and a function from the position of a wish to its result for the picture."""


class Results(dict[int, T]):
    """Results of the wishes for one picture, by position of the wish. Each is computed when first used."""

    def __init__(self, wishes: Wishes[T], rgb: Pixels) -> None:
        self._wishes = wishes
        self._rgb = rgb

    def __missing__(self, position: int) -> T:
        _, apply = self._wishes[position]
        result = apply(self._rgb)
        self[position] = result
        return result


class WindowReader(Decoder, Generic[T]):
    """Reader of windows of one file.

    Parameters
    ----------
    path
        A video file.
    wishes
        Sampling rules, each with the function applied to its frames; the same for every window.
    strict
        Refuse windows with detected damage, and enable the decoder's stricter error detection.

    Raises
    ------
    VideoError
        The file cannot be read at all.
    """

    def __init__(self, path: Path, wishes: Wishes[T], *, strict: bool) -> None:
        super().__init__(path, strict=strict)
        self.wishes = wishes
        self.frame_times = self.table.frame_times
        self._reported = 0

    def read(
        self, windows: Windows, known: Mapping[int, Known[T]] | None = None
    ) -> Iterator[WindowResult[T]]:
        """Yield the number of each window with its frames, one result per wish, or the error.

        A window is yielded as soon as its last frame is decoded; frames that no other window needs are freed.

        Parameters
        ----------
        windows
            Start and end of each, in seconds.
        known
            Frame number -> what was decoded of it elsewhere. A window all of whose frames are known is not
            decoded.
        """
        if self.lacks_keys:
            self.frame_times = self.survey()
        why = self.table.unsafe
        pending, errors = self.chosen(Window(number, span, why=why) for number, span in enumerate(windows))
        yield from errors
        if known:
            ready = [window for window in pending if window.missing <= known.keys()]
            pending = [window for window in pending if window not in ready]
            yield from self.served(_shown_known(known, union(ready)), ready)
        if not why:
            pending = yield from self._sparsely(pending)
        if pending:
            # Where frames are numbered by counting, an error shifts all later numbers.
            yield from self._in_order(pending, by_label=True)
        if pending:
            self.frame_times = self.survey()
            pending, errors = self.chosen(pending)
            yield from errors
            yield from self._in_order(pending)
        for window in pending:
            yield window.number, VideoError("the frames asked for cannot be decoded", self.path)

    def chosen(self, windows: Iterable[Window[T]]) -> tuple[WindowList[T], list[WindowResult[T]]]:
        """Choose the frames of every window. Return the windows, and the errors of those without frames."""
        chosen = []
        errors = list[WindowResult[T]]()
        for window in windows:
            try:
                inside = self.frame_times.within(*window.span)
                window.wanted = [choose(sampling, inside) for sampling, _ in self.wishes]
                window.begin()
                chosen.append(window)
            except VideoError as error:
                errors.append((window.number, VideoError(error.reason, self.path)))
        return chosen, errors

    def applied(self, frames: Iterable[Frame]) -> Iterator[Shown[T]]:
        """Convert frames to RGB pictures, each with a function that computes the result of a wish for it."""
        for number, picture in pictures(frames, self.path, self.table.stream):
            yield number, picture, Results(self.wishes, picture.rgb).__getitem__

    def _sparsely(self, windows: WindowList[T]) -> Generator[WindowResult[T], None, WindowList[T]]:
        """Decode sparsely and yield windows; return those that may not be exact, each with the reason.

        Where decoding fails, each window that needs the failing packets is tried alone, so that its result
        does not depend on the other windows. Decoding then goes on with the rest.
        """
        unsafe: WindowList[T] = []
        while windows:
            try:
                yield from self.served(self.applied(self.sparse(union(windows))), windows)
            except NotSafe as reason:
                affected = [window for window in windows if self._needs(window, reason.packets)]
                was_tried_alone = len(windows) == 1
                windows = [window for window in windows if window not in affected]
                for window in affected:
                    window.begin()
                    if was_tried_alone:
                        window.why = str(reason)
                        unsafe.append(window)
                    else:
                        window.why = ""
                        unsafe += yield from self._sparsely([window])
            else:
                # Windows are left if the decoder returned too few frames.
                return unsafe + windows
        return unsafe

    def _needs(self, window: Window[T], packets: tuple[int, int] | None) -> bool:
        """Return whether a window needs frames of a run of packets, given as its first and last.

        A window that has all its frames and is not yielded yet needs the end of the run.
        """
        if packets is None or not window.missing:
            return True
        first, last = packets
        wanted = self.table.shown[list(window.missing)]
        is_in_run = (wanted >= first) & (wanted <= last)
        return bool(is_in_run.any())

    def _in_order(self, windows: WindowList[T], *, by_label: bool = False) -> Iterator[WindowResult[T]]:
        """Decode sequentially and yield windows, which are removed from the list; errors count from 0.

        With `by_label`, the numbers of frames must be known from their packets. Where frames are only
        counted, windows that are completed after an error stay in the list, too.
        """
        self.errors = 0
        for window in windows:
            window.begin()
        shown = self.applied(self.sequential(union(windows)))
        yield from self.served(shown, windows, by_label=by_label)

    def served(
        self, shown: Iterable[Shown[T]], windows: WindowList[T], *, by_label: bool = False
    ) -> Iterator[WindowResult[T]]:
        """Pass pictures to the windows that need them, and yield the completed windows.

        A window that is yielded is removed from the list. The last one is yielded when the decoder has
        finished.

        Parameters
        ----------
        shown
            Pictures with their results.
        windows
            The windows; those that are left at the end lack frames.
        by_label
            As for `_in_order`.
        """
        waiting: dict[int, list[Window[T]]] = {}
        for window in windows:
            for number in window.missing:
                waiting.setdefault(number, []).append(window)
        complete: list[tuple[Window[T], WindowResult[T]]] = []

        def completed() -> Iterator[WindowResult[T]]:
            """Yield the results of complete windows, and remove these from the list."""
            while complete:
                window, result = complete.pop(0)
                windows.remove(window)
                yield result

        for number, picture, result_of_wish in shown:
            windows_of_frame = waiting.pop(number, ())
            # A wish may change the pixels, so properties of the picture are noted before.
            for window in windows_of_frame:
                window.collected.note(number, picture)
            for window in windows_of_frame:
                window.collected.images[number] = window.results_for(number, result_of_wish)
                window.missing.discard(number)
                numbers_are_sure = self.labelled or not by_label or not self.errors
                if not window.missing and numbers_are_sure:
                    complete.append((window, (window.number, self._finished(window))))
            if waiting:
                yield from completed()
        yield from completed()

    def _finished(self, window: Window[T]) -> tuple[Frames[T], ...] | VideoError:
        """Make the result of a window that has all its frames: the frames of each wish, or an error."""
        losses = self._losses_of(window)
        if self.strict and losses:
            return VideoError("; ".join(losses), self.path)
        overhang = self.frame_times.overhang(*window.span)
        if overhang:
            losses.append(overhang)
        decoded = self.unreported()
        properties, remarks_on_pictures = window.collected.describe()
        remarks = dict.fromkeys((*self.table.notes, *remarks_on_pictures))
        too_few = self._too_few(window.span)
        if too_few:
            return VideoError(too_few, self.path)
        frames = []
        for wish, ((sampling, _), numbers) in enumerate(zip(self.wishes, window.wanted, strict=True)):
            frames_of_wish = Frames(
                images=[window.collected.images[number][wish] for number in numbers.tolist()],
                index=numbers,
                time_s=self.frame_times.time_s[np.searchsorted(self.frame_times.index, numbers)],
                status="partial" if losses else "ok",
                notes=(*losses, *remarks, *_repeated(sampling, numbers)),
                method="sequential" if window.why else "sparse",
                why_sequential=window.why,
                total=len(self.frame_times),
                decoded=decoded,
                stream=self.table.stream.record(),
                **properties,
            )
            frames.append(frames_of_wish)
        return tuple(frames)

    def _losses_of(self, window: Window[T]) -> list[str]:
        """Return sentences on what the file lacks, or could not be decoded, in the span of a window."""
        table = self.table
        _, end_s = window.span
        losses = [loss for from_s, loss in table.losses if end_s is None or end_s > from_s]
        gap = table.frame_times.gap(*window.span, table.holes)
        if gap:
            losses.append(gap)
        return losses + self._decoding_losses(window.collected)

    def _too_few(self, span: Span) -> str:
        """Return a sentence if under half of the frames of a span can be decoded; else empty.

        Frames that are asked for by their numbers are there or not, however many others are missing.
        """
        if all(sampling.policy == "indices" for sampling, _ in self.wishes):
            return ""
        n_decodable = len(self.frame_times.within(*span))
        n_frames = len(self.table.frame_times.within(*span))
        if 2 * n_decodable >= n_frames:
            return ""
        return f"only {n_decodable} of {counted(n_frames, 'frame')} can be decoded: under half"

    @property
    def lacks_keys(self) -> bool:
        """Whether a wish takes key frames, and they are not known without decoding."""
        wants_keys = any(sampling.policy == "keyframes" for sampling, _ in self.wishes)
        return wants_keys and self.frame_times.key is None

    def unreported(self) -> int:
        """Return the number of frames decoded since the previous call."""
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
            damaged = ", ".join(map(str, sorted(collected.corrupt)))
            losses.append(f"the decoder flags as damaged: frame {damaged}")
        return losses


def union(windows: Iterable[Window[T]]) -> list[int]:
    """Return the numbers of the frames that at least one window still needs, rising."""
    numbers = set[int]()
    for window in windows:
        numbers |= window.missing
    return sorted(numbers)


def _shown_known(known: Mapping[int, Known[T]], numbers: Iterable[int]) -> Iterator[Shown[T]]:
    """Yield frames that were decoded elsewhere as if they had been decoded here."""
    for number in numbers:
        frame = known[number]
        yield number, frame.picture, frame.results.__getitem__


def _repeated(sampling: Sampling, numbers: NDArray[np.int64]) -> list[str]:
    """Return a note on how many key frames are distinct if some had to be repeated; else none."""
    n_distinct = len(np.unique(numbers))
    if sampling.policy != "keyframes" or n_distinct == len(numbers):
        return []
    return [f"{n_distinct} of the {len(numbers)} key frames taken are distinct: the others repeat them"]
