"""From a file and a rule to exactly the frames asked for."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from obygaze_features.video.errors import UNREADABLE, VideoError
from obygaze_features.video.frames import Frames, Probe
from obygaze_features.video.index import PacketTable, index_packets
from obygaze_features.video.sampling import Sampling, Timeline, choose
from obygaze_features.video.sequential import decode_sequential, survey
from obygaze_features.video.source import Tally, opened
from obygaze_features.video.sparse import NotSafe, decode_sparse
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
        A video file.
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
        return _read(clip, sampling, lambda frame: frame)
    return _read(clip, sampling, each)


def probe(path: str | Path, *, start_s: float | None = None, end_s: float | None = None) -> Probe:
    """Count the frames of a video or of a span without decoding, in tens of milliseconds a clip.

    Raises
    ------
    VideoError
        The file can't be opened, or the span isn't in it.
    """
    clip = Clipping(Path(path), start_s, end_s)
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


def _read(clip: Clipping, sampling: Sampling, each: Callable[[Pixels], T]) -> Frames[T]:
    table = index_packets(clip.path)
    timeline = table.timeline
    tally = Tally()
    losses = [table.truncated]
    if sampling.policy == "keyframes" and timeline.key is None:
        timeline = _surveyed(clip, table, tally)
    wanted = clip.choose(sampling, timeline)
    why = table.unsafe
    taken: Taken[T] | None = None
    if not why:
        try:
            with opened(clip.path, strict=clip.strict) as source:
                taken = take(decode_sparse(source, table, wanted.tolist(), tally), each, clip.path)
        except NotSafe as reason:
            why = str(reason)
    if taken is None:
        taken = _in_order(clip, table, wanted, tally, each)
        # Where frames are counted, an error shifts all later numbers.
        if not taken.has(wanted) or (tally.errors and not table.labelled):
            timeline = _surveyed(clip, table, tally)
            wanted = clip.choose(sampling, timeline)
            taken = _in_order(clip, table, wanted, tally, each)
        if not taken.has(wanted):
            raise VideoError("the frames asked for cannot be decoded", clip.path)
    losses += _losses(table, timeline, taken, tally)
    if clip.strict and any(losses):
        raise VideoError("; ".join(filter(None, losses)), clip.path)
    losses = [loss for loss in [*losses, clip.overhang(timeline)] if loss]
    return Frames(
        images=[taken.images[number] for number in wanted.tolist()],
        index=wanted,
        time_s=timeline.time_s[np.searchsorted(timeline.index, wanted)],
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


def _in_order(
    clip: Clipping, table: PacketTable, wanted: NDArray[np.int64], tally: Tally, each: Callable[[Pixels], T]
) -> Taken[T]:
    """Decode sequentially; the errors of this time alone count."""
    tally.errors = 0
    with opened(clip.path, strict=clip.strict) as source:
        return take(decode_sequential(source, table, wanted.tolist(), tally), each, clip.path)


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
