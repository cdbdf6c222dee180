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
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from av import FFmpegError
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.video.bitstream import SKIPS_UNREFERENCED, Packet
from obygaze_features.video.display_order import number_frames, number_packets, rises
from obygaze_features.video.index import index_packets, seconds
from obygaze_features.video.packet_table import MISSING, PacketTable, stamp
from obygaze_features.video.sampling import FrameTimes
from obygaze_features.video.source import ReusableFile, Source, damage_as_video_error, opened

SEEK_AHEAD = 250
"""Packets (10 s of film) from which on a seek costs less time than reading on."""
SEEK_TRIALS = 3
"""Random access points that are tried, the last one first: a seek may land after its target packet."""

Frame: TypeAlias = tuple[int, VideoFrame]
"""Number of a frame in display order, and the frame."""
NumberedPacket: TypeAlias = tuple[int, Any]
"""Number of a packet in decoding order, and the packet."""


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


class Position(NamedTuple):
    """Where a file is read: the packets that are still to come, and the number of the first of them."""

    packets: Iterator[Packet]
    number: int


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
    decoded
        Frames that were decoded so far.
    errors
        Packets that the decoder refused so far.
    known_by_packet
        Whether frames are known by the numbers of their packets, else by counting.

    Raises
    ------
    VideoError
        The file cannot be read at all.
    """

    def __init__(self, path: Path, *, strict: bool = False) -> None:
        """Read the packet table of the file, or take it from the cache; no frame is decoded."""
        self.path = path
        self.strict = strict
        # A small file that was just read is still open; the first pass over its frames uses it.
        self._reusable: list[ReusableFile] = []
        self.table = index_packets(path, self._reusable)
        self.decoded = 0
        self.errors = 0
        self.known_by_packet = self.table.known_by_packet

    @contextmanager
    def _opened(self) -> Iterator[Source]:
        """Open the file for a pass over its frames.

        The first pass uses the file that is still open since its packets were read, if it is small.
        """
        with ExitStack() as still_open:
            if self._reusable:
                source, open_file = self._reusable.pop()
                still_open.enter_context(open_file)
            else:
                source = still_open.enter_context(opened(self.path))
            source.set_decoder(strict=self.strict)
            yield source

    # --- the wanted frames alone
    # -------------------------------------------------------------------------
    def decode_sparsely(self, targets: Collection[int]) -> Iterator[Frame]:
        """Decode only the packets that the wanted frames need, and yield these frames in display order.

        If a seek fails, the remaining frames are decoded without seeks. Only for streams whose packet table
        has an empty `unsafe`, which says why a stream must be decoded sequentially.

        Parameters
        ----------
        targets
            Numbers of the wanted frames.

        Raises
        ------
        NotSafe
            On an error, or a frame that is missing, damaged or out of order: decode sequentially instead.
        """
        last_number = -1  # of the frames yielded so far
        # The second time without seeks, if one of the first time failed.
        for may_seek in (self.table.seekable, False):
            remaining = [number for number in targets if number > last_number]
            with suppress(SeekFailed), self._opened() as source:
                is_in_memory = len(source.loaded) > 0
                for number, frame in self._decode_runs(
                    source, remaining, seeks=may_seek and not is_in_memory
                ):
                    last_number = number
                    yield number, frame
                return

    def _decode_runs(self, source: Source, targets: Collection[int], *, seeks: bool) -> Iterator[Frame]:
        """Decode the wanted frames of an open file.

        The packets that they need are decoded in runs of consecutive packets, with seeks between distant runs
        if `seeks`.
        """
        frame_of_packet = {int(self.table.shown[frame]): frame for frame in targets}
        position = Position(source.packets(), 0)
        for first, last in runs(needed_packets(self.table, targets)):
            try:
                if seeks and first - position.number > SEEK_AHEAD:
                    position = self._seek_before(source, first, position.number)
                # None stands for packets that the file lacks now; `_needed` refuses it. The range comes first
                # in `zip`, which then takes no packet behind the last one: the next run begins with it.
                packets = chain(position.packets, repeat(None))
                numbered_packets = zip(range(position.number, last + 1), packets, strict=False)
                needed = self._needed(numbered_packets, first, frame_of_packet)
                yield from self._decode_run(source, needed, frame_of_packet)
                position = position._replace(number=last + 1)
            except FFmpegError as error:
                raise NotSafe("the decoder met an error", (first, last)) from error
            except NotSafe as reason:
                reason.packets = (first, last)
                raise

    def _seek_before(self, source: Source, first: int, position: int) -> Position:
        """Seek to a known packet at or before `first`, if that saves reading many packets.

        Parameters
        ----------
        source
            The open file.
        first
            Number of the packet that is needed next.
        position
            Number of the packet that would be read next.

        Raises
        ------
        SeekFailed
            No random access point that was tried led to such a packet.
        """
        random_access = np.flatnonzero(self.table.random_access[: first + 1])
        latest_first = random_access[::-1][:SEEK_TRIALS]
        for target in latest_first.tolist():
            if target - position <= SEEK_AHEAD:
                break
            try:
                source.container.seek(int(self.table.pts[target]), stream=source.stream)
                packets = source.packets()
                packet = next(packets, None)
            except FFmpegError as error:
                raise SeekFailed("the file cannot be sought in") from error
            if packet is None:
                continue
            number = self.table.find_packet(packet)
            if 0 <= number <= first:
                return Position(chain([packet], packets), number)
        raise SeekFailed("a seek leads to packets that are not known")

    def _needed(
        self, packets: Iterable[NumberedPacket], first: int, wanted: Collection[int]
    ) -> Iterator[NumberedPacket]:
        """Yield the packets from `first` on that must be decoded to get the wanted frames.

        These are the wanted packets and those that other pictures refer to. A packet's time stamp is replaced
        by its number. The decoder passes it on to the frame, which is thereby identified.

        Parameters
        ----------
        packets
            Packets up to the last wanted one; from `first` on each must be as in the table.
        first
            Number of the first packet to decode.
        wanted
            Numbers of the packets whose frames are wanted.

        Raises
        ------
        NotSafe
            The file has changed since its packets were read.
        """
        for number, packet in packets:
            is_before_first = number < first and packet is not None
            if is_before_first:
                continue
            if packet is None or not self.table.is_packet(number, packet):
                raise NotSafe("the file gives other packets than at first reading")
            is_referred_to = not self.table.skippable.item(number)
            if number in wanted or is_referred_to:
                packet.pts = number
                packet.dts = None
                yield number, packet

    def _decode_run(
        self, source: Source, packets: Iterable[NumberedPacket], frame_of_packet: dict[int, int]
    ) -> Iterator[Frame]:
        """Decode packets that follow each other, and yield the wanted frames.

        Parameters
        ----------
        source
            The open file.
        packets
            The needed packets of a run.
        frame_of_packet
            Number of each packet whose frame is wanted -> number of that frame.

        Raises
        ------
        NotSafe
            A frame is damaged, missing, out of order, or without the number of its packet.
        """
        context = source.context
        may_skip = self.table.stream.codec in SKIPS_UNREFERENCED
        waited_for = set[int]()  # wanted packets in the decoder whose frames have not come out yet
        last_number = -1  # of the packet of the last frame
        end = (-1, None)  # instead of a packet, None makes the decoder give the frames that it still holds
        for number, packet in chain(packets, (end,)):
            if may_skip:
                # The decoder leaves out the picture of a packet that is not wanted if none refers to it.
                is_wanted = packet is None or number in frame_of_packet
                context.skip_frame = "DEFAULT" if is_wanted else "NONREF"
            if number in frame_of_packet:
                waited_for.add(number)
            for frame in context.decode(packet):
                self.decoded += 1
                packet_number = self._packet_number(frame, last_number)
                last_number = packet_number
                if packet_number in frame_of_packet:
                    if frame.is_corrupt:
                        raise NotSafe("the decoder flags a frame as damaged")
                    waited_for.discard(packet_number)
                    yield frame_of_packet[packet_number], frame
        context.flush_buffers()
        if waited_for:
            raise NotSafe("a frame did not come out of the decoder")

    def _packet_number(self, frame: VideoFrame, last_number: int) -> int:
        """Return the number of a frame's packet, and check that frames come out in display order.

        Parameters
        ----------
        frame
            A decoded frame.
        last_number
            Number of the packet of the frame that came out before it; -1 for the first frame.

        Raises
        ------
        NotSafe
            The frame has no such number, or came out of order.
        """
        rank = self.table.rank
        number = frame.pts  # as `_needed` has set it
        if number is None or not 0 <= number < len(rank):
            raise NotSafe("a frame came out without its label")
        if last_number >= 0 and rank[number] <= rank[last_number]:
            # The decoder reorders pictures. If the time stamps rise in decoding order all the same, they are
            # times of decoding. The display order that they gave is wrong, so that packets do not tell which
            # frame is which.
            if rises(rank):
                self.known_by_packet = False
            raise NotSafe("frames came out in another order than that of display")
        return number

    # --- all frames in order
    # -------------------------------------------------------------------------
    def decode_sequentially(self, targets: Collection[int]) -> Iterator[Frame]:
        """Decode from the beginning and yield the wanted frames in order, as far as they exist."""
        missing = set(targets)
        with self._opened() as source:
            for number, frame in self._numbered(source):
                if number in missing:
                    missing.discard(number)
                    yield number, frame
                    if not missing:
                        return

    def find_frames(self) -> FrameTimes:
        """Decode the whole stream to find which frames exist, when they are shown, and which are key frames.

        Raises
        ------
        VideoError
            Not one frame can be decoded.
        """
        with self._opened() as source:
            rows = [
                (number, frame.key_frame, stamp(frame.pts), stamp(frame.dts))
                for number, frame in self._numbered(source)
            ]
            if not rows:
                raise VideoError("the file is damaged: not one picture can be decoded", self.path)
            numbers, is_key, pts, dts = np.array(rows, np.int64).T
            # In a damaged file, frames may be out of order or duplicated: each is taken once, in order.
            index, first_rows = np.unique(numbers, return_index=True)
            # Times of the table, if it is known which packets gave the frames; else those from the decoder.
            if self.known_by_packet or len(index) == len(self.table.frame_times):
                time_s = self.table.frame_times.time_s[index]
            elif _has_times(pts, len(index)):
                time_s = seconds(pts.tolist(), source)
            elif _has_times(dts, len(index)):
                time_s = seconds(dts.tolist(), source)
            else:
                time_s = np.full(len(index), np.nan)
        return FrameTimes(index, time_s, is_key[first_rows] > 0)

    def _numbered(self, source: Source) -> Iterator[Frame]:
        """Decode all frames, and yield each with its number in display order.

        The number follows from the frame's packet if frames are known by these (`known_by_packet`). Otherwise
        frames are counted as they come out.
        """
        packets = source.packets()
        if not self.known_by_packet:
            yield from enumerate(damage_as_video_error(self.frames(source.context, packets), self.path))
            return
        number_of_packet = {int(packet): number for number, packet in enumerate(self.table.shown)}
        frames = damage_as_video_error(self.frames(source.context, number_packets(packets)), self.path)
        for number, frame, counted in number_frames(frames, number_of_packet, rising=rises(self.table.rank)):
            self.known_by_packet = self.known_by_packet and not counted
            if number is not None:
                yield number, frame

    def frames(self, context: Any, packets: Iterable[Packet]) -> Iterator[Any]:
        """Decode packets and yield every frame that comes out of the decoder.

        The frames are counted in `decoded`, and the packets that the decoder refuses in `errors`.
        """
        # None drains the decoder at the end.
        packets_and_end = chain(packets, (None,))
        while True:
            try:
                frames = context.decode(next(packets_and_end))
            except StopIteration:
                return
            except FFmpegError:
                # The decoder refused a packet, or the demuxer failed: then only the end follows.
                self.errors += 1
                continue
            self.decoded += len(frames)
            yield from frames


def _has_times(stamps: NDArray[np.int64], n_frames: int) -> bool:
    """Return whether the time stamps of decoded frames can be their times: none is missing or repeated.

    Parameters
    ----------
    stamps
        Time stamps of all frames that came out of the decoder.
    n_frames
        How many different frames came out.
    """
    return MISSING not in stamps and len(np.unique(stamps)) == n_frames


def needed_packets(table: PacketTable, targets: Collection[int]) -> NDArray[np.bool_]:
    """Mark the packets from which the decoder gets some frames.

    For each frame these are its own packet and all packets before it, from a random access point on.

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
        start = bisect_right(starts, packet) - 1
        # In an open group, a frame that is shown before the random access point needs an earlier one: of
        # I P B | I B B P, with the last I shown behind the two B, these refer to the P before it, too.
        while start >= 0 and table.rank[starts[start]] > table.rank[packet]:
            start -= 1
        # A frame that is shown before the first random access point needs the beginning of the file.
        start = max(start, 0)
        needed[starts[start] : packet + 1] = True
    return needed


def runs(marked: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the first and last index of every run of consecutive marked entries of an array [N]."""
    # A run begins and ends where an entry differs from the one before.
    padded = np.concatenate(([False], marked, [False]))
    edges = np.flatnonzero(np.diff(padded)).reshape(-1, 2)
    return [(int(first), int(end) - 1) for first, end in edges]
