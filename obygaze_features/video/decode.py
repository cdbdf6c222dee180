"""Decode the wanted frames (pass 2), sparsely or sequentially.

Sparse decoding takes only the packets, and parts of packets, that the wanted frames need. A frame needs the
packets up to its own from the last random access point that precedes it in decoding and in display order.
Display order matters because in an open group of pictures, a frame shown before the random access point may
refer to earlier pictures. Unreferenced pictures within this range are left out.

The frames are bit-identical to those of sequential decoding. `NotSafe` is raised if that is not certain.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any

import numpy as np
from av import FFmpegError
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from obygaze_features.video.bitstream import SKIPS_UNREFERENCED, Packet
from obygaze_features.video.index import seconds
from obygaze_features.video.packet_table import MISSING, PacketTable, stamp
from obygaze_features.video.sampling import FrameTimes
from obygaze_features.video.source import Source, Tally, guarded

# From this gap in packets on (10 s of film), a seek costs less than reading on.
SEEK_AHEAD = 250
# A seek may land after its target packet; then earlier random access points are tried.
SEEK_TRIALS = 3


class NotSafe(Exception):  # noqa: N818 - not an error: the signal to decode sequentially
    """Sparse decoding cannot guarantee exact frames.

    Parameters
    ----------
    reason
        The reason, as text.
    packets
        First and last packet of the run where it occurred; None if unknown.
    """

    def __init__(self, reason: str, packets: tuple[int, int] | None = None) -> None:
        super().__init__(reason)
        self.packets = packets


class SeekFailed(NotSafe):
    """A seek did not reach a known packet; reading without seeks may succeed."""


def decode_sparse(
    source: Source,
    table: PacketTable,
    targets: Collection[int],
    tally: Tally,
    *,
    seeks: bool = True,
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
        Counts the decoded frames.
    seeks
        Whether to seek past unneeded packets, if the table allows it.

    Raises
    ------
    NotSafe
        On an error, or a frame that is missing, damaged or out of order: decode sequentially instead.
    """
    wanted = {int(table.shown[target]): target for target in targets}
    feed = PacketFeed(source, table, wanted, seeks=seeks and table.seekable and not source.kept)
    for first, last in runs(needed_packets(table, targets)):
        try:
            yield from _decode_run(feed, wanted, tally, first, last)
        except FFmpegError as error:
            raise NotSafe("the decoder met an error", (first, last)) from error
        except NotSafe as reason:
            reason.packets = (first, last)
            raise


def _decode_run(
    feed: "PacketFeed", wanted: dict[int, int], tally: Tally, first: int, last: int
) -> Iterator[tuple[int, VideoFrame]]:
    """Decode packets without a gap; each frame must have an expected label and be in display order."""
    table, context = feed.table, feed.source.context
    skips = table.stream.codec in SKIPS_UNREFERENCED
    due, shown = set[int](), -1
    for number, packet in chain(feed.needed(first, last), ((-1, None),)):  # the decoder is drained at the end
        if packet is not None:
            packet.pts, packet.dts = number, None
            context.skip_frame = "NONREF" if skips and number not in wanted else "DEFAULT"
        if number in wanted:
            due.add(number)
        for frame in context.decode(packet):
            tally.decoded += 1
            label = frame.pts
            if label is None or not 0 <= label < len(table.rank):
                raise NotSafe("a frame came out without its label")
            if shown >= 0 and table.rank[label] <= table.rank[shown]:
                raise NotSafe("frames came out in another order than that of display")
            shown = label
            if label in wanted:
                if frame.is_corrupt:
                    raise NotSafe("the decoder flags a frame as damaged")
                due.discard(label)
                yield wanted[label], frame
    context.flush_buffers()
    if due:
        raise NotSafe("a frame did not come out of the decoder")


class PacketFeed:
    """Reader of the packets that the wanted frames need, with their numbers in the table.

    Parameters
    ----------
    source
        The stream, freshly opened.
    table
        Its packets.
    wanted
        The packets of the wanted frames.
    seeks
        Whether to seek past unneeded packets.
    """

    def __init__(self, source: Source, table: PacketTable, wanted: Collection[int], *, seeks: bool) -> None:
        self.source = source
        self.table = table
        unneeded = table.spare.copy()
        unneeded[list(wanted)] = False
        self._left_out: list[bool] = unneeded.tolist()
        self._seeks = seeks
        self._packets = source.packets()
        self._next = 0

    def needed(self, first: int, last: int) -> Iterator[tuple[int, Packet]]:
        """Yield packets `first` to `last` in decoding order, without those that no wanted frame needs.

        Each must match the table.
        """
        if self._seeks and first - self._next > SEEK_AHEAD:
            self._seek(first)
        for number in range(self._next, last + 1):
            packet = next(self._packets, None)
            self._next += 1
            if packet is None or not (number < first or self.source.kept or self.table.is_at(number, packet)):
                raise NotSafe("the file gives other packets than at first reading")
            if number >= first and not self._left_out[number]:
                yield number, packet

    def _seek(self, first: int) -> None:
        """Seek to a packet of the table at or before `first`; do not move if none can be reached."""
        starts = np.flatnonzero(self.table.random_access[: first + 1])
        for start in starts[: -SEEK_TRIALS - 1 : -1].tolist():
            if start - self._next <= SEEK_AHEAD:
                break
            try:
                self.source.container.seek(int(self.table.pts[start]), stream=self.source.stream)
                packets = self.source.packets()
                packet = next(packets, None)
            except FFmpegError as error:
                raise SeekFailed("the file cannot be sought in") from error
            number = -1 if packet is None else self.table.number(packet)
            if packet is not None and 0 <= number <= first:
                self._packets, self._next = chain([packet], packets), number
                return
        raise SeekFailed("a seek leads to packets that are not known")


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
        # Shown before the first random access point: decoding starts at the beginning of the file.
        needed[starts[max(before, 0)] : packet + 1] = True
    return needed


def runs(needed: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the first and last index of every run of consecutive marked entries."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], needed, [False]))))
    return [(int(first), int(end) - 1) for first, end in edges.reshape(-1, 2)]


# --- all frames in order, with one thread
# ---------------------------------------------------------------------------
def decoded(context: Any, packets: "Iterator[Packet]", tally: Tally) -> Iterator[Any]:
    """Yield every frame that a decoder makes of packets, in order; count packets that it refuses."""
    rest = chain(packets, (None,))
    while True:
        try:
            frames = context.decode(next(rest))
        except StopIteration:
            return
        except FFmpegError:  # of the decoder, or of the demuxer, which ends the stream
            tally.errors += 1
            continue
        tally.decoded += len(frames)
        yield from frames


def numbered(source: Source, table: PacketTable, tally: Tally) -> Iterator[tuple[int, VideoFrame]]:
    """Yield every frame with its number: by its packet where that is known, else by counting."""
    numbers = {int(packet): number for number, packet in enumerate(table.shown)} if table.labelled else None
    packets = source.packets() if numbers is None else _labelled(source.packets())
    for count, frame in enumerate(guarded(decoded(source.context, packets, tally), source.path)):
        number = count if numbers is None else numbers.get(frame.pts)
        if number is not None:
            yield number, frame


def _labelled(packets: "Iterator[Packet]") -> "Iterator[Packet]":
    """Yield packets with their number as time stamp, which their frames keep."""
    for number, packet in enumerate(packets):
        packet.pts, packet.dts = number, None
        yield packet


def decode_sequential(
    source: Source, table: PacketTable, targets: Collection[int], tally: Tally
) -> Iterator[tuple[int, VideoFrame]]:
    """Yield the wanted frames with their numbers and stop after the last; frames may be missing.

    Parameters
    ----------
    source
        The stream, freshly opened.
    table
        Its packets.
    targets
        Numbers of the wanted frames.
    tally
        Counts frames and errors.
    """
    missing = set(targets)
    for number, frame in numbered(source, table, tally):
        if number in missing:
            missing.discard(number)
            yield number, frame
            if not missing:
                return


def survey(source: Source, table: PacketTable, tally: Tally) -> FrameTimes:
    """Decode the whole stream to find which frames exist and which are key frames."""
    rows = [
        (number, frame.key_frame, stamp(frame.pts), stamp(frame.dts))
        for number, frame in numbered(source, table, tally)
    ]
    numbers, keys, *stamps = np.array(rows, np.int64).reshape(-1, 4).T
    # In a damaged file, time stamps may be out of order or duplicated.
    index, first = np.unique(numbers, return_index=True)
    time_s = np.full(len(index), np.nan)
    if table.labelled or len(index) == len(table.time_s):
        time_s = table.time_s[index]
    else:
        for column in stamps:
            if MISSING not in column and len(np.unique(column)) == len(index):
                time_s = seconds(column.tolist(), source)  # as in the table: stamps increase in display order
                break
    return FrameTimes(index, time_s, keys[first] > 0)
