"""Decode the wanted frames (pass 2), sparsely or sequentially.

Sparse decoding takes only the packets, and parts of packets, that the wanted frames need. A frame needs the
packets up to its own from the last random access point that precedes it in decoding and in display order.
Display order matters because in an open group of pictures, a frame shown before the random access point may
refer to earlier pictures. Unreferenced pictures within this range are left out.

The frames are bit-identical to those of sequential decoding. `NotSafe` is raised if that is not certain.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, repeat
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from av import FFmpegError
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.video.bitstream import SKIPS_UNREFERENCED, Packet
from obygaze_features.video.display_order import labelled, numbered, rises
from obygaze_features.video.index import index_packets, seconds
from obygaze_features.video.packet_table import MISSING, PacketTable, stamp
from obygaze_features.video.sampling import FrameTimes
from obygaze_features.video.source import KeptFile, Source, guarded, opened

# From this gap in packets on (10 s of film), a seek costs less than reading on.
SEEK_AHEAD = 250
# A seek may land after its target packet; then earlier random access points are tried.
SEEK_TRIALS = 3

Frame: TypeAlias = tuple[int, VideoFrame]
Numbered: TypeAlias = tuple[int, Any]
"""A frame, and a packet, with its number."""


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


class Decoder:
    """Decoder of the frames of one file, with one thread, which knows each frame by its number.

    Parameters
    ----------
    path
        A video file.
    strict
        Enable the decoder's stricter error detection.

    Attributes
    ----------
    table
        The packets of the file.
    decoded, errors
        Frames that were decoded so far, and packets that were refused.
    labelled
        Whether frames are known by the numbers of their packets, else by counting.

    Raises
    ------
    VideoError
        The file cannot be read at all.
    """

    def __init__(self, path: Path, *, strict: bool = False) -> None:
        self.path = path
        self.strict = strict
        self._kept: list[KeptFile] = []
        self.table = index_packets(path, self._kept)
        self.decoded = self.errors = 0
        self.labelled = self.table.labelled

    @contextmanager
    def _opened(self) -> Iterator[Source]:
        """Give the file that was kept open when its packets were read, once; else open it."""
        open_source, still_open = self._kept.pop() if self._kept else (None, ExitStack())
        with still_open:
            source = open_source or still_open.enter_context(opened(self.path))
            source.set_decoder(strict=self.strict)
            yield source

    # --- the wanted frames alone
    # -------------------------------------------------------------------------
    def sparse(self, targets: Collection[int]) -> Iterator[Frame]:
        """Yield the wanted frames in display order; from where a seek fails, without seeks.

        The table's `unsafe` must be empty.

        Raises
        ------
        NotSafe
            On an error, or a frame that is missing, damaged or out of order: decode sequentially instead.
        """
        last = -1
        for seeks in (self.table.seekable, False):
            ahead = [number for number in targets if number > last]
            with suppress(SeekFailed), self._opened() as source:
                for last, frame in self._sparse(source, ahead, seeks=seeks and not source.kept):
                    yield last, frame
                return

    def _sparse(self, source: Source, targets: Collection[int], *, seeks: bool) -> Iterator[Frame]:
        target_of = {int(self.table.shown[target]): target for target in targets}
        packets = source.packets()
        position = 0
        for first, last in runs(needed_packets(self.table, targets)):
            try:
                if seeks and first - position > SEEK_AHEAD:
                    packets, position = self._sought(source, first, position)
                stored = zip(range(position, last + 1), chain(packets, repeat(None)), strict=False)
                yield from self._run(source, self._needed(stored, first, target_of), target_of)
                position = last + 1
            except FFmpegError as error:
                raise NotSafe("the decoder met an error", (first, last)) from error
            except NotSafe as reason:
                reason.packets = (first, last)
                raise

    def _sought(self, source: Source, first: int, position: int) -> tuple[Iterator[Packet], int]:
        """Seek to a packet of the table at or before `first`, far behind a position."""
        starts = np.flatnonzero(self.table.random_access[: first + 1])
        for start in starts[: -SEEK_TRIALS - 1 : -1].tolist():
            if start - position <= SEEK_AHEAD:
                break
            try:
                source.container.seek(int(self.table.pts[start]), stream=source.stream)
                packets = source.packets()
                packet = next(packets, None)
            except FFmpegError as error:
                raise SeekFailed("the file cannot be sought in") from error
            if packet is not None and 0 <= (number := self.table.number(packet)) <= first:
                return chain([packet], packets), number
        raise SeekFailed("a seek leads to packets that are not known")

    def _needed(
        self, stored: Iterable[Numbered], first: int, packet_numbers: Collection[int]
    ) -> Iterator[Numbered]:
        """Yield packets from `first` on, as in the table, without those that no wanted frame needs.

        Their time stamp is their number, which their frames keep.
        """
        for number, packet in stored:
            if packet is None or (number >= first and not self.table.is_at(number, packet)):
                raise NotSafe("the file gives other packets than at first reading")
            if number >= first and (number in packet_numbers or not self.table.spare.item(number)):
                packet.pts = number
                packet.dts = None
                yield number, packet

    def _run(self, source: Source, packets: Iterable[Numbered], target_of: dict[int, int]) -> Iterator[Frame]:
        """Decode packets without a gap; each frame must have an expected label and be in display order."""
        context = source.context
        skips = self.table.stream.codec in SKIPS_UNREFERENCED
        due = set[int]()  # wanted frames whose packets the decoder has got
        last_shown = -1
        for number, packet in chain(packets, ((-1, None),)):  # the decoder is drained at the end
            if skips:
                context.skip_frame = "DEFAULT" if packet is None or number in target_of else "NONREF"
            if number in target_of:
                due.add(number)
            for frame in context.decode(packet):
                self.decoded += 1
                label = self._checked_label(frame, last_shown)
                last_shown = label
                if label in target_of:
                    if frame.is_corrupt:
                        raise NotSafe("the decoder flags a frame as damaged")
                    due.discard(label)
                    yield target_of[label], frame
        context.flush_buffers()
        if due:
            raise NotSafe("a frame did not come out of the decoder")

    def _checked_label(self, frame: VideoFrame, last_shown: int) -> int:
        """Return a frame's label, which is that of a packet, and behind the one that came out before it."""
        rank = self.table.rank
        label = frame.pts
        if label is None or not 0 <= label < len(rank):
            raise NotSafe("a frame came out without its label")
        if last_shown >= 0 and rank[label] <= rank[last_shown]:
            # The file gives pictures that are shown in another order than decoded times of decoding.
            self.labelled = self.labelled and not rises(rank)
            raise NotSafe("frames came out in another order than that of display")
        return label

    # --- all frames in order
    # -------------------------------------------------------------------------
    def sequential(self, targets: Collection[int]) -> Iterator[Frame]:
        """Yield the wanted frames in order and stop after the last; frames may be missing."""
        missing = set(targets)
        with self._opened() as source:
            for number, frame in self._numbered(source):
                if number in missing:
                    missing.discard(number)
                    yield number, frame
                    if not missing:
                        return

    def survey(self) -> FrameTimes:
        """Decode the whole stream to find which frames exist and which are key frames.

        Raises
        ------
        VideoError
            There is none.
        """
        with self._opened() as source:
            rows = [
                (number, frame.key_frame, stamp(frame.pts), stamp(frame.dts))
                for number, frame in self._numbered(source)
            ]
            if not rows:
                raise VideoError("the file is damaged: not one picture can be decoded", self.path)
            numbers, keys, *stamps = np.array(rows, np.int64).T
            # In a damaged file, time stamps may be out of order or duplicated.
            index, first = np.unique(numbers, return_index=True)
            # As in the table: stamps increase in display order.
            usable = [
                column for column in stamps if MISSING not in column and len(np.unique(column)) == len(index)
            ]
            if self.labelled or len(index) == len(self.table.frame_times):
                time_s = self.table.frame_times.time_s[index]
            else:
                time_s = seconds(usable[0].tolist(), source) if usable else np.full(len(index), np.nan)
        return FrameTimes(index, time_s, keys[first] > 0)

    def _numbered(self, source: Source) -> Iterator[Frame]:
        """Yield every frame with its number: by its packet where that is known, else by counting."""
        packets = source.packets()
        if not self.labelled:
            yield from enumerate(guarded(self.frames(source.context, packets), self.path))
            return
        numbers = {int(packet): number for number, packet in enumerate(self.table.shown)}
        frames = guarded(self.frames(source.context, labelled(packets)), self.path)
        for number, frame, counted in numbered(frames, numbers, rising=rises(self.table.rank)):
            self.labelled = self.labelled and not counted
            if number is not None:
                yield number, frame

    def frames(self, context: Any, packets: Iterable[Packet]) -> Iterator[Any]:
        """Yield every frame that a decoder makes of packets, in order."""
        waiting = chain(packets, (None,))
        while True:
            try:
                frames = context.decode(next(waiting))
            except StopIteration:
                return
            except FFmpegError:  # of the decoder, or of the demuxer, which ends the stream
                self.errors += 1
                continue
            self.decoded += len(frames)
            yield from frames


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
