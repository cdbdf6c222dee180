"""Read all wanted windows of a file in one pass that decodes each frame once.

Each window gets the same frames, status and notes as if it were read alone. There are three attempts, each on
the windows that the previous one could not complete: sparse decoding; sequential decoding; and, if frames are
missing, sequential decoding with frames chosen from those that exist.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.video.decode import Decoder, Frame, NotSafe
from obygaze_features.video.frames import Frames
from obygaze_features.video.picture import CollectedFrames, RgbPicture, pictures
from obygaze_features.video.sampling import Sampling, Span, choose

T = TypeVar("T")
Pixels = NDArray[np.uint8]
Wishes = Sequence[tuple[Sampling, Callable[[Pixels], T]]]


@dataclass(slots=True, eq=False)
class Window(Generic[T]):
    """A span, the frames that each wish takes from it, and the frames decoded so far."""

    number: int
    span: Span
    wanted: list[NDArray[np.int64]] = field(default_factory=list)
    missing: set[int] = field(default_factory=set)
    collected: CollectedFrames[dict[int, T]] = field(default_factory=CollectedFrames)
    why: str = ""
    """Why it is decoded sequentially."""

    def begin(self) -> None:
        """Discard the frames taken so far."""
        self.missing = {number for numbers in self.wanted for number in numbers.tolist()}
        self.collected = CollectedFrames()


class Known(NamedTuple, Generic[T]):
    """A frame that was decoded elsewhere: its picture without pixels, and the results of some wishes."""

    picture: RgbPicture
    results: dict[int, T]


Windows = Sequence[Span]
WindowResult = tuple[int, tuple[Frames[T], ...] | VideoError]
WindowList = list[Window[T]]
Shown = tuple[int, RgbPicture, Callable[[int], T]]
"""A frame's number, its picture, and what each wish, by its place, makes of it."""


class Results(dict[int, T]):
    """What each wish, by its place, makes of a picture: made when it is first asked for."""

    def __init__(self, wishes: Wishes[T], rgb: Pixels) -> None:
        self._wishes = wishes
        self._rgb = rgb

    def __missing__(self, wish: int) -> T:
        result = self[wish] = self._wishes[wish][1](self._rgb)
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
        A window all of whose frames are known (frame number -> `Known`) is not decoded.
        """
        if self.lacks_keys:
            self.frame_times = self.survey()
        why = self.table.unsafe
        pending, errors = self.chosen(Window(n, edges, why=why) for n, edges in enumerate(windows))
        yield from errors
        if known:
            ready = [window for window in pending if window.missing <= known.keys()]
            pending = [window for window in pending if window not in ready]
            frames = ((number, known[number]) for number in union(ready))
            yield from self.served(((n, each.picture, each.results.__getitem__) for n, each in frames), ready)
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
        """Choose the frames of every window; return also the errors of those whose frames are not there."""
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
        """Convert frames to pictures, with the results of the wishes."""
        for number, picture in pictures(frames, self.path, self.table.stream):
            yield number, picture, Results(self.wishes, picture.rgb).__getitem__

    def _sparsely(self, windows: WindowList[T]) -> Generator[WindowResult[T], None, WindowList[T]]:
        """Decode sparsely; return the windows that may not be exact, each with the reason."""
        unsafe: WindowList[T] = []
        while windows:
            try:
                yield from self.served(self.applied(self.sparse(union(windows))), windows)
                return unsafe + windows  # the latter if the decoder returned too few frames
            except NotSafe as reason:
                hit = [window for window in windows if self._is_in(window, reason.packets)]
                is_alone = len(windows) == 1
                windows = [window for window in windows if window not in hit]
                for window in hit:
                    window.begin()
                    if is_alone:
                        window.why = str(reason)
                        unsafe.append(window)
                    else:  # as a window that is read alone: the rest of the run may not affect it
                        window.why = ""
                        unsafe += yield from self._sparsely([window])
        return unsafe

    def _is_in(self, window: Window[T], packets: tuple[int, int] | None) -> bool:
        """Return whether a window still needs frames of a run of packets, or the end of the run."""
        if packets is None or not window.missing:
            return True
        wanted = self.table.shown[list(window.missing)]
        return bool(((wanted >= packets[0]) & (wanted <= packets[1])).any())

    def _in_order(self, windows: WindowList[T], *, by_label: bool = False) -> Iterator[WindowResult[T]]:
        """Decode sequentially, counting errors of this attempt only; keep the windows that lack frames.

        With `by_label`, frames must be known by their packets: where they are only counted, keep the windows
        completed after an error, too.
        """
        self.errors = 0
        for window in windows:
            window.begin()
        shown = self.applied(self.sequential(union(windows)))
        yield from self.served(shown, windows, by_label=by_label)

    def served(
        self, shown: Iterable[Shown[T]], windows: WindowList[T], *, by_label: bool = False
    ) -> Iterator[WindowResult[T]]:
        """Pass pictures to the windows that need them; yield and drop each completed window.

        The last window is yielded when the decoder has finished.
        """
        waiting: dict[int, list[Window[T]]] = {}
        for window in windows:
            for number in window.missing:
                waiting.setdefault(number, []).append(window)
        complete: list[tuple[Window[T], WindowResult[T]]] = []

        def given() -> Iterator[WindowResult[T]]:
            while complete:
                window, finished = complete.pop(0)
                windows.remove(window)
                yield finished

        for number, picture, result in shown:
            concerned = waiting.pop(number, ())
            for window in concerned:  # first, for a wish may change the pixels
                window.collected.note(number, picture)
            for window in concerned:
                window.collected.images[number] = {
                    wish: result(wish) for wish, numbers in enumerate(window.wanted) if number in numbers
                }
                window.missing.discard(number)
                is_sure = self.labelled or not by_label or not self.errors
                if not window.missing and is_sure:
                    complete.append((window, (window.number, self._finished(window))))
            if waiting:
                yield from given()
        yield from given()

    def _finished(self, window: Window[T]) -> tuple[Frames[T], ...] | VideoError:
        """Build the result of a window that has all its frames."""
        collected = window.collected
        frame_times = self.frame_times
        table = self.table
        gap = table.frame_times.gap(*window.span, table.holes)
        end_s = window.span[1]
        losses = [loss for from_s, loss in table.losses if end_s is None or end_s > from_s]
        if gap:
            losses.append(gap)
        losses += self._losses(collected)
        if self.strict and losses:
            return VideoError("; ".join(losses), self.path)
        overhang = frame_times.overhang(*window.span)
        if overhang:
            losses.append(overhang)
        decoded = self.unreported()
        properties, remarks_on_pictures = collected.described()
        remarks = dict.fromkeys((*table.notes, *remarks_on_pictures))
        if few := self._too_few(window.span):
            return VideoError(few, self.path)

        def frames_of(wish: int, sampling: Sampling, numbers: NDArray[np.int64]) -> Frames[T]:
            return Frames(
                images=[collected.images[number][wish] for number in numbers.tolist()],
                index=numbers,
                time_s=frame_times.time_s[np.searchsorted(frame_times.index, numbers)],
                status="partial" if losses else "ok",
                notes=(*losses, *remarks, *_repeated(sampling, numbers)),
                method="sequential" if window.why else "sparse",
                why_sequential=window.why,
                total=len(frame_times),
                decoded=decoded,
                stream=self.table.stream.record(),
                **properties,
            )

        samplings = [sampling for sampling, _ in self.wishes]
        return tuple(map(frames_of, count(), samplings, window.wanted))

    def _too_few(self, span: Span) -> str:
        """Say that under half of the frames of a span can be decoded; empty if more can."""
        if all(sampling.policy == "indices" for sampling, _ in self.wishes):
            return ""
        n_decodable = len(self.frame_times.within(*span))
        n_frames = len(self.table.frame_times.within(*span))
        if 2 * n_decodable >= n_frames:
            return ""
        return f"only {n_decodable} of {n_frames} frames can be decoded: under half"

    @property
    def lacks_keys(self) -> bool:
        """Whether key frames are wished for, and not known without decoding."""
        return self.frame_times.key is None and any(rule.policy == "keyframes" for rule, _ in self.wishes)

    def unreported(self) -> int:
        """Return the number of frames decoded since the previous call."""
        decoded = self.decoded - self._reported
        self._reported = self.decoded
        return decoded

    def _losses(self, collected: CollectedFrames[dict[int, T]]) -> list[str]:
        """Describe the missing or damaged data that was detected."""
        n_found = len(self.frame_times)
        n_all = len(self.table.frame_times)
        errors = self.errors
        damaged = ", ".join(map(str, sorted(collected.corrupt)))
        packets = "packet" if errors == 1 else "packets"
        losses = {
            f"{n_found} of {n_all} frames can be decoded; the choice was among those": n_found < n_all,
            f"the decoder refused {errors} {packets} on the way": errors,
            f"the decoder flags as damaged: frame {damaged}": damaged,
        }
        return [loss for loss, holds in losses.items() if holds]


def union(windows: Iterable[Window[T]]) -> list[int]:
    """Return the numbers that at least one window still needs, without duplicates."""
    return sorted(set[int]().union(*(window.missing for window in windows)))


def _repeated(sampling: Sampling, numbers: NDArray[np.int64]) -> list[str]:
    """Note the number of key frames, if some had to be repeated."""
    distinct = len(np.unique(numbers))
    if sampling.policy != "keyframes" or distinct == len(numbers):
        return []
    return [f"{distinct} of the {len(numbers)} key frames taken are distinct: the others repeat them"]
