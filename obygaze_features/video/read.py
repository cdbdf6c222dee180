"""From a file and a rule to exactly the frames asked for."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.video.errors import UNREADABLE
from obygaze_features.video.frames import Frames, Probe
from obygaze_features.video.index import PacketTable, index_packets
from obygaze_features.video.sampling import Sampling, Timeline, choose
from obygaze_features.video.sequential import decode_sequential, survey
from obygaze_features.video.source import Tally, check_file, opened
from obygaze_features.video.sparse import NotSafe, decode_sparse
from obygaze_features.video.stills import is_still, read_still
from obygaze_features.video.take import Taken, take

T = TypeVar("T")
Pixels = NDArray[np.uint8]
# A span of which less than this lies in the video is not what its author thought it was.
SPAN_COVERED = 0.98


@overload
def read_frames(
    path: str | Path,
    sampling: Sampling,
    *,
    start_s: float | None = None,
    end_s: float | None = None,
    strict: bool = False,
) -> Frames[Pixels]: ...
@overload
def read_frames(
    path: str | Path,
    sampling: Sampling,
    *,
    start_s: float | None = None,
    end_s: float | None = None,
    strict: bool = False,
    each: Callable[[Pixels], T],
) -> Frames[T]: ...
def read_frames(
    path: str | Path,
    sampling: Sampling,
    *,
    start_s: float | None = None,
    end_s: float | None = None,
    strict: bool = False,
    each: Callable[[Pixels], T] | None = None,
) -> Frames[T] | Frames[Pixels]:
    """Read exactly the frames that a rule asks for.

    Parameters
    ----------
    path
        A video file, or a still image, which has one frame at time 0.
    sampling
        The rule, e.g. ``uniform(32)``.
    start_s, end_s
        Span to sample inside, in seconds of the player's clock: start inclusive, end exclusive.
    strict
        Refuse a video with any damage seen, and let the decoder look for it harder.
    each
        Applied to every wanted frame (RGB uint8 [H, W, 3], full size, upright) as it is decoded, so that no
        more than one full-size frame need be held; without it the frames themselves are kept.

    Returns
    -------
    Frames[T]
        What `each` gave, in sampling order, with index, time and how it was got.

    Raises
    ------
    VideoError
        The file can't be read, or can't give these frames.
    """
    clip = Clipping(Path(path), start_s, end_s, strict)
    if each is None:
        return _read(clip, [(sampling, lambda frame: frame)])[0]
    return _read(clip, [(sampling, each)])[0]


def read_samplings(
    path: str | Path,
    wishes: Sequence[tuple[Sampling, Callable[[Pixels], T]]],
    *,
    start_s: float | None = None,
    end_s: float | None = None,
    strict: bool = False,
) -> tuple[Frames[T], ...]:
    """Read the frames of several rules in one pass: what two of them ask for is decoded once.

    Parameters
    ----------
    path, start_s, end_s, strict
        As for `read_frames`.
    wishes
        Rules, each with what is applied to its frames.

    Returns
    -------
    tuple of Frames
        One for each rule, the same as `read_frames` gives for it alone. Counts, notes and status are those
        of the pass they share.

    Raises
    ------
    VideoError
        The file can't be read, or can't give these frames.
    """
    return _read(Clipping(Path(path), start_s, end_s, strict), wishes)


def probe(path: str | Path, *, start_s: float | None = None, end_s: float | None = None) -> Probe:
    """Count the frames of a video or of a span without decoding, in tens of milliseconds a clip.

    Raises
    ------
    VideoError
        The file can't be opened, or the span isn't in it.
    """
    clip = Clipping(Path(path), start_s, end_s)
    if is_still(clip.path):
        check_file(clip.path)
        return Probe(clip.path.stat().st_size, math.nan, 1, "")
    table = index_packets(clip.path)
    frames = clip.within(table.timeline)
    duration_s = float(frames.time_s[-1] - frames.time_s[0]) + table.timeline.step_s
    return Probe(clip.path.stat().st_size, duration_s, len(frames), table.truncated)


@dataclass(frozen=True, slots=True)
class Clipping:
    """Which file, and which span of it."""

    path: Path
    start_s: float | None
    end_s: float | None
    strict: bool = False

    def within(self, timeline: Timeline) -> Timeline:
        """Keep the frames inside the span."""
        try:
            return timeline.within(self.start_s, self.end_s)
        except VideoError as error:
            raise VideoError(error.reason, self.path) from None

    def choose(self, sampling: Sampling, timeline: Timeline) -> NDArray[np.int64]:
        """Choose frames inside the span."""
        inside = self.within(timeline)
        try:
            return choose(sampling, inside)
        except VideoError as error:
            raise VideoError(error.reason, self.path) from None

    def overhang(self, timeline: Timeline) -> str:
        """Say that the video ends well before the span does; empty where it doesn't."""
        if self.end_s is None:
            return ""
        start = self.start_s or 0.0
        end = float(timeline.time_s[-1]) + timeline.step_s
        if end - start >= SPAN_COVERED * (self.end_s - start):
            return ""
        return f"the span asks for pictures up to {self.end_s:g} s, but the video ends at {end:.2f} s"


Wishes = Sequence[tuple[Sampling, Callable[[Pixels], T]]]


def _read(clip: Clipping, wishes: Wishes[T]) -> tuple[Frames[T], ...]:
    if is_still(clip.path):
        spanned = clip.start_s is not None or clip.end_s is not None
        return read_still(clip.path, wishes, spanned=spanned, strict=clip.strict)
    table = index_packets(clip.path)
    timeline = table.timeline
    tally = Tally()
    losses = [table.truncated]
    if timeline.key is None and any(sampling.policy == "keyframes" for sampling, _ in wishes):
        timeline = _surveyed(clip, table, tally)
    wanted = [clip.choose(sampling, timeline) for sampling, _ in wishes]
    why = table.unsafe
    taken: Taken[dict[int, T]] | None = None
    if not why:
        try:
            with opened(clip.path, strict=clip.strict) as source:
                found = decode_sparse(source, table, _union(wanted), tally)
                taken = take(found, _by_wish(wishes, wanted), clip.path)
        except NotSafe as reason:
            why = str(reason)
    if taken is None:
        taken = _in_order(clip, table, wishes, wanted, tally)
        # Where frames are counted, an error shifts all later numbers.
        if not taken.has(_union(wanted)) or (tally.errors and not table.labelled):
            timeline = _surveyed(clip, table, tally)
            wanted = [clip.choose(sampling, timeline) for sampling, _ in wishes]
            taken = _in_order(clip, table, wishes, wanted, tally)
        if not taken.has(_union(wanted)):
            raise VideoError("the frames asked for cannot be decoded", clip.path)
    losses += _losses(table, timeline, taken, tally)
    if clip.strict and any(losses):
        raise VideoError("; ".join(filter(None, losses)), clip.path)
    losses = [loss for loss in [*losses, clip.overhang(timeline)] if loss]
    return tuple(
        Frames(
            images=[taken.images[number][wish] for number in numbers.tolist()],
            index=numbers,
            time_s=timeline.time_s[np.searchsorted(timeline.index, numbers)],
            status="partial" if losses else "ok",
            notes=(*losses, *table.notes, *taken.remarks),
            method="sequential" if why else "sparse",
            why_sequential=why,
            width=taken.width,
            height=taken.height,
            rotation=taken.rotation,
            mirrored=taken.mirrored,
            interlaced=taken.interlaced,
            total=len(timeline),
            decoded=tally.decoded,
        )
        for wish, numbers in enumerate(wanted)
    )


def _union(wanted: Sequence[NDArray[np.int64]]) -> list[int]:
    """Give each number once that some wish asks for."""
    return sorted({number for numbers in wanted for number in numbers.tolist()})


def _by_wish(wishes: Wishes[T], wanted: Sequence[NDArray[np.int64]]) -> Callable[[int, Pixels], dict[int, T]]:
    """Apply to each frame what the wishes that ask for it apply."""
    sets = [frozenset(numbers.tolist()) for numbers in wanted]

    def apply(number: int, rgb: Pixels) -> dict[int, T]:
        return {wish: each(rgb) for wish, (_, each) in enumerate(wishes) if number in sets[wish]}

    return apply


def _in_order(
    clip: Clipping,
    table: PacketTable,
    wishes: Wishes[T],
    wanted: Sequence[NDArray[np.int64]],
    tally: Tally,
) -> Taken[dict[int, T]]:
    """Decode sequentially; the errors of this time alone count."""
    tally.errors = 0
    with opened(clip.path, strict=clip.strict) as source:
        found = decode_sequential(source, table, _union(wanted), tally)
        return take(found, _by_wish(wishes, wanted), clip.path)


def _surveyed(clip: Clipping, table: PacketTable, tally: Tally) -> Timeline:
    """Learn by decoding which frames there really are."""
    with opened(clip.path, strict=clip.strict) as source:
        try:
            timeline = survey(source, table, tally)
        except UNREADABLE as error:
            raise VideoError("the file is damaged: its pictures cannot be read", clip.path) from error
    if not len(timeline):
        raise VideoError("the file is damaged: not one picture can be decoded", clip.path)
    return timeline


def _losses(table: PacketTable, timeline: Timeline, taken: Taken[T], tally: Tally) -> list[str]:
    """Say what was seen to be missing or damaged."""
    losses = []
    if len(timeline) < len(table.timeline):
        losses.append(
            f"{len(timeline)} of {len(table.timeline)} frames can be decoded; the choice was among those"
        )
    if tally.errors:
        losses.append(f"the decoder refused {tally.errors} packet{'s'[: tally.errors > 1]} on the way")
    if taken.corrupt:
        losses.append(f"the decoder flags as damaged: frame {', '.join(map(str, sorted(taken.corrupt)))}")
    return losses
