"""Pass 2, the fast way: decode only the packets that the wanted frames need.

A frame needs the packets from the last random access that precedes it both in decoding and in display order,
up to its own: a frame shown before that picture may refer to what lies before it (an open group of pictures).
The frames are bit-equal to those of sequential decoding; where anything looks otherwise, `NotSafe` is raised.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator

import numpy as np
from av import FFmpegError
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from obygaze_features.video.index import PacketTable
from obygaze_features.video.source import Source, Tally


class NotSafe(Exception):  # noqa: N818 - not an error: the signal to decode sequentially
    """Sparse decoding met something that it can't vouch for."""


def needed_packets(table: PacketTable, targets: Collection[int]) -> NDArray[np.bool_]:
    """Mark the packets that these frames need.

    Parameters
    ----------
    table
        The packets of a stream that is safe to decode sparsely.
    targets
        Numbers of frames, in display order.

    Returns
    -------
    NDArray[np.bool_]
        Shape [P], in decoding order.
    """
    needed = np.zeros(len(table.pts), np.bool_)
    starts = np.flatnonzero(table.random_access).tolist()
    for packet in table.shown[list(targets)].tolist():
        before = bisect_right(starts, packet) - 1
        while before >= 0 and table.rank[starts[before]] > table.rank[packet]:
            before -= 1
        if before < 0:
            raise NotSafe("a frame is shown before the first picture that decoding can start at")
        needed[starts[before] : packet + 1] = True
    return needed


def decode_sparse(
    source: Source, table: PacketTable, targets: Collection[int], tally: Tally
) -> Iterator[tuple[int, VideoFrame]]:
    """Yield the wanted frames with their numbers, in display order.

    Parameters
    ----------
    source
        The stream, freshly opened.
    table
        Its packets, with `unsafe` empty.
    targets
        Numbers of the wanted frames.
    tally
        Counts the frames that came out.

    Raises
    ------
    NotSafe
        An error, or a frame that is missing, damaged or out of order: decode sequentially.
    """
    needed = needed_packets(table, targets)
    last = int(np.flatnonzero(needed)[-1])
    run = Run(source, table, {int(table.shown[target]): target for target in targets}, tally)
    packets = source.unpacked() if table.unpacked else source.packets()
    try:
        for number, packet in enumerate(packets):
            if number > last:
                break
            if not needed[number]:
                yield from run.end()
                continue
            if packet.pts != table.pts[number]:
                raise NotSafe("the file gives other packets than at first reading")
            packet.pts, packet.dts = number, None
            source.context.skip_frame = "DEFAULT" if number in run.targets else "NONREF"
            yield from run.check(source.context.decode(packet))
            run.sent(number)
        yield from run.end()
    except FFmpegError as error:
        raise NotSafe("the decoder met an error") from error
    if run.missing:
        raise NotSafe("a frame did not come out of the decoder")


class Run:
    """Packets decoded without a gap, and the frames that must come out of them."""

    def __init__(self, source: Source, table: PacketTable, targets: dict[int, int], tally: Tally) -> None:
        self.context = source.context
        self.rank = table.rank
        self.targets = targets
        self.missing = set(targets)
        self.due: set[int] = set()
        self.tally = tally
        self._open = False
        self._shown = -1

    def sent(self, number: int) -> None:
        """Note that a packet went to the decoder."""
        self._open = True
        if number in self.targets:
            self.due.add(number)

    def check(self, frames: list[VideoFrame]) -> Iterator[tuple[int, VideoFrame]]:
        """Pass on the wanted frames; each must carry a label of ours, and come in display order."""
        for frame in frames:
            self.tally.decoded += 1
            label = frame.pts
            if label is None or not 0 <= label < len(self.rank):
                raise NotSafe("a frame came out without its label")
            if self._shown >= 0 and self.rank[label] <= self.rank[self._shown]:
                raise NotSafe("frames came out in another order than that of display")
            self._shown = label
            if label in self.missing:
                if frame.is_corrupt:
                    raise NotSafe("the decoder flags a frame as damaged")
                self.missing.discard(label)
                yield self.targets[label], frame

    def end(self) -> Iterator[tuple[int, VideoFrame]]:
        """Drain and flush the decoder, and see that everything due has come."""
        if not self._open:
            return
        yield from self.check(self.context.decode(None))
        self.context.flush_buffers()
        self._open = False
        self._shown = -1
        if self.due & self.missing:
            raise NotSafe("a frame did not come out of the decoder")
        self.due.clear()
