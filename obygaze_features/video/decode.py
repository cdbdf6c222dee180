"""Decode the wanted frames (pass 2), sparsely or sequentially.

Sparse decoding takes only the packets, and parts of packets, that the wanted frames need. A frame needs the
packets up to its own from the last random access point that precedes it in decoding and in display order.
Display order matters because in an open group of pictures, a frame shown before the random access point may
refer to earlier pictures. Unreferenced pictures within this range are left out.

The frames are bit-identical to those of sequential decoding. `NotSafe` is raised if that is not certain.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
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
END: NumberedPacket = (-1, None)
"""Comes behind the last packet: for None, a decoder gives the frames that it still holds."""


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
        """Say why sparse decoding, of only the packets that are needed, may not give exact frames.

        `packets` are the first and the last of the packets that were decoded one after the other, without a
        seek between them, when it turned out; None if they are not known.
        """
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
        """Open the file to decode frames; it is closed when the `with` block ends.

        The first time, a small file is still open since its packets were read, and used as it is.
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
        """Decode only the packets that the wanted frames need; yield (number, frame) in display order.

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
        try:
            for number, frame in self._decode_targets(targets, may_seek=self.table.seekable):
                last_number = number
                yield number, frame
        except SeekFailed:
            remaining = [number for number in targets if number > last_number]
            yield from self._decode_targets(remaining, may_seek=False)

    def _decode_targets(self, targets: Collection[int], *, may_seek: bool) -> Iterator[Frame]:
        """Open the file and decode the wanted frames, with seeks if they are allowed and save time."""
        with self._opened() as source:
            is_in_memory = len(source.loaded) > 0  # then packets can be skipped at once
            seeks = may_seek and not is_in_memory
            yield from self._decode_runs(source, targets, seeks=seeks)

    def _decode_runs(self, source: Source, targets: Collection[int], *, seeks: bool) -> Iterator[Frame]:
        """Decode the wanted frames of an open file, run by run of packets that follow each other.

        All runs read on from one iterator over the file's packets, which `position` keeps with the number of
        the packet that comes next. A seek gives another iterator.

        Parameters
        ----------
        source
            The open file.
        targets
            Numbers of the wanted frames.
        seeks
            Whether to seek to a run that is far ahead, instead of reading all packets before it.

        Raises
        ------
        NotSafe
            As for `decode_sparsely`. It names the first and last packet of the run.
        """
        frame_of_packet = {int(self.table.shown[frame]): frame for frame in targets}
        is_needed = needed_packets(self.table, targets)  # of each packet
        position = Position(source.packets(), number=0)
        for first, last in runs(is_needed):
            try:
                is_far_ahead = first - position.number > SEEK_AHEAD
                if seeks and is_far_ahead:
                    position = self._seek_before(source, first, position.number)
                packets = _packets_up_to(last, position)  # read from the iterator of `position`
                needed = self._needed(packets, first, frame_of_packet)
                yield from self._decode_run(source, needed, frame_of_packet)
                position = Position(position.packets, number=last + 1)
            except FFmpegError as error:
                raise NotSafe("the decoder met an error", (first, last)) from error
            except NotSafe as reason:  # of a method that does not know the run
                reason.packets = (first, last)
                raise

    def _seek_before(self, source: Source, first: int, position: int) -> Position:
        """Seek in the file to a known packet at or before packet `first`, and read on from there.

        Raises
        ------
        SeekFailed
            No random access point that was tried led to such a packet.
        """
        starts = np.flatnonzero(self.table.random_access[: first + 1])  # packets where decoding can start
        far_starts = starts[starts - position > SEEK_AHEAD]  # nearer ones are reached faster by reading on
        latest_starts = far_starts[-SEEK_TRIALS:].tolist()

        # A seek may land after its target, so the latest start is tried first, and then earlier ones.
        for target in reversed(latest_starts):
            try:
                source.container.seek(int(self.table.pts[target]), stream=source.stream)
                packets = source.packets()
                packet = next(packets, None)
            except FFmpegError as error:
                raise SeekFailed("the file cannot be sought in") from error
            if packet is None:
                continue
            number = self.table.find_packet(packet)
            is_known = number >= 0
            if is_known and number <= first:
                return Position(chain([packet], packets), number)
        raise SeekFailed("a seek leads to packets that are not known")

    def _needed(
        self, packets: Iterable[NumberedPacket], first: int, wanted: Collection[int]
    ) -> Iterator[NumberedPacket]:
        """Yield the packets from number `first` on that must be decoded to get the wanted frames.

        These are the wanted packets and those that other pictures refer to. A packet's time stamp is replaced
        by its number. The decoder passes it on to the frame, which is thereby identified.

        Parameters
        ----------
        packets
            (number, packet) of all packets of the file up to the last wanted one; None for a packet that the
            file no longer has. From `first` on each must be as in the table.
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
            is_before_first = number < first
            if is_before_first and packet is not None:
                continue
            if packet is None or not self.table.is_packet(number, packet):
                raise NotSafe("the file gives other packets than at first reading")
            is_reference = not self.table.skippable.item(number)
            if number in wanted or is_reference:
                packet.pts = number
                packet.dts = None
                yield number, packet

    def _decode_run(
        self, source: Source, packets: Iterable[NumberedPacket], frame_of_packet: dict[int, int]
    ) -> Iterator[Frame]:
        """Decode packets that follow each other, and yield the wanted frames.

        Raises
        ------
        NotSafe
            A frame is damaged, missing, out of order, or without the number of its packet.
        """
        context = source.context
        can_skip_pictures = self.table.stream.codec in SKIPS_UNREFERENCED
        awaited_packets = set[int]()  # wanted packets that the decoder got, and whose frames it still holds
        last_number = -1  # of the packet of the last frame
        # Behind the last packet comes None, for which the decoder gives the frames that it still holds.
        for number, packet in chain(packets, (END,)):
            is_wanted = number in frame_of_packet
            if is_wanted:
                awaited_packets.add(number)
            if can_skip_pictures:
                # The decoder leaves out the picture of a packet that is not wanted if none refers to it.
                is_end = packet is None
                context.skip_frame = "DEFAULT" if is_wanted or is_end else "NONREF"

            for frame in context.decode(packet):
                self.decoded += 1
                packet_number = self._packet_number(frame)
                self._check_order(packet_number, last_number)
                last_number = packet_number
                if packet_number not in frame_of_packet:
                    continue
                if frame.is_corrupt:
                    raise NotSafe("the decoder flags a frame as damaged")
                awaited_packets.discard(packet_number)
                yield frame_of_packet[packet_number], frame

        context.flush_buffers()
        if awaited_packets:
            raise NotSafe("a frame did not come out of the decoder")

    def _packet_number(self, frame: VideoFrame) -> int:
        """Return the number of a frame's packet, which was given to the decoder in place of its time stamp.

        Raises
        ------
        NotSafe
            The frame has no such number.
        """
        number = frame.pts
        if number is None or not 0 <= number < len(self.table.rank):
            raise NotSafe("a frame came out without its label")
        return number

    def _check_order(self, number: int, last_number: int) -> None:
        """Check that a frame comes out in display order; if not, note what that says of the whole file.

        A decoder gives frames in the order of display, so the ranks of their packets in the table must rise.
        If they do not, there are two explanations. The decoder was disturbed. Or the table is wrong for the
        whole file, because it was made from times of decoding in place of times of display. Its ranks then
        rise from packet to packet, as if no picture were reordered. In this case the frames of this file are
        no longer known by their packets, and are counted.

        Parameters
        ----------
        number
            Number of the frame's packet.
        last_number
            Number of the packet of the frame that came out before it; -1 for the first frame.

        Raises
        ------
        NotSafe
            The frame came out of order.
        """
        rank = self.table.rank  # by packet: its place in the order of display
        is_first = last_number < 0
        if is_first or rank[number] > rank[last_number]:
            return
        may_be_times_of_decoding = rises(rank)
        if may_be_times_of_decoding:
            self.known_by_packet = False
        raise NotSafe("frames came out in another order than that of display")

    # --- all frames in order
    # -------------------------------------------------------------------------
    def decode_sequentially(self, targets: Collection[int]) -> Iterator[Frame]:
        """Decode all frames from the beginning, and yield the wanted ones in order, as far as they exist.

        Decoding ends with the last wanted frame.

        Parameters
        ----------
        targets
            Numbers of the wanted frames, in display order from 0.
        """
        missing_numbers = set(targets)
        with self._opened() as source:
            for number, frame in self._numbered(source):
                if number in missing_numbers:
                    missing_numbers.discard(number)
                    yield number, frame
                    if not missing_numbers:
                        return

    def find_frames(self) -> FrameTimes:
        """Decode the whole stream to find which frames exist, when they are shown, and which are key frames.

        Raises
        ------
        VideoError
            Not one frame can be decoded.
        """
        # Of each frame that comes out of the decoder.
        numbers = []
        is_key = []
        pts = []
        dts = []
        with self._opened() as source:
            for number, frame in self._numbered(source):
                numbers.append(number)
                is_key.append(frame.key_frame)
                pts.append(stamp(frame.pts))
                dts.append(stamp(frame.dts))
            if not numbers:
                raise VideoError("the file is damaged: not one picture can be decoded", self.path)

            # In a damaged file, frames may be out of order or duplicated: each is taken once, in order.
            index, first_positions = np.unique(np.array(numbers, np.int64), return_index=True)
            time_s = self._times_of_frames(index, pts, dts, source)
        return FrameTimes(index, time_s, np.array(is_key, np.bool_)[first_positions])

    def _times_of_frames(
        self, index: NDArray[np.int64], pts: list[int], dts: list[int], source: Source
    ) -> NDArray[np.float64]:
        """Return the times of all frames that exist, in seconds, [F]; NaN if they are not known.

        They are those of the table, if it is known which of its entries the frames are: by their packets, or
        because there are as many frames as entries. Otherwise they are the times that the decoder gives the
        frames, of presentation or of decoding.

        Parameters
        ----------
        index
            Shape [F]: numbers of the frames.
        pts, dts
            Time stamps of the frames that came out of the decoder, or `MISSING`.
        source
            The open file.
        """
        are_all_there = len(index) == len(self.table.frame_times)
        if self.known_by_packet or are_all_there:
            return self.table.frame_times.time_s[index]
        for stamps in (pts, dts):
            if _can_be_times(stamps, len(index)):
                return seconds(stamps, source)
        return np.full(len(index), np.nan)

    def _numbered(self, source: Source) -> Iterator[Frame]:
        """Decode all frames, and yield each with its number in display order.

        The number follows from the frame's packet if frames are known by these (`known_by_packet`). Otherwise
        frames are counted as they come out. It may turn out on the way that the order of packets in the table
        is wrong: `known_by_packet` then becomes false, and the rest is counted.
        """
        packets = source.packets()
        if not self.known_by_packet:
            frames = damage_as_video_error(self.frames(source.context, packets), self.path)
            yield from enumerate(frames)
            return

        frames = damage_as_video_error(self.frames(source.context, number_packets(packets)), self.path)
        frame_of_packet = {int(packet): number for number, packet in enumerate(self.table.shown)}
        numbered = number_frames(frames, frame_of_packet, rising=rises(self.table.rank))
        for number, frame, is_counted in numbered:
            if is_counted:  # as are all behind it: time stamps have turned out to be times of decoding
                self.known_by_packet = False
            if number is not None:  # None: no picture is shown for its packet
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


def _packets_up_to(last: int, position: Position) -> Iterator[NumberedPacket]:
    """Read packets from a position of a file up to packet number `last`; yield (number, packet).

    If the file has fewer packets than it had when it was indexed, the missing ones are None.
    """
    for number in range(position.number, last + 1):
        yield number, next(position.packets, None)


def _can_be_times(stamps: list[int], n_frames: int) -> bool:
    """Return whether the time stamps of decoded frames can be their times: none is missing or repeated."""
    return MISSING not in stamps and len(set(stamps)) == n_frames


def needed_packets(table: PacketTable, targets: Collection[int]) -> NDArray[np.bool_]:
    """Mark the packets that must be decoded to get some frames.

    For each frame these are its own packet and the packets before it, from a random access point on: a packet
    where decoding can start.

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
    is_needed = np.zeros(len(table.pts), np.bool_)
    random_access_points = np.flatnonzero(table.random_access).tolist()
    for packet in table.shown[list(targets)].tolist():
        first = _start_of_decoding(table, random_access_points, packet)
        is_needed[first : packet + 1] = True
    return is_needed


def _start_of_decoding(table: PacketTable, starts: list[int], packet: int) -> int:
    """Return the packet at which decoding must start to get the frame of a packet.

    It is the last random access point that comes before the frame in decoding and in display order. In an
    open group, frames are shown before the I-picture with which the group begins. They are decoded behind it,
    but refer also to the last picture of the group before::

        decoding order    I1 P4 B2 B3 | I7 B5 B6 P8     numbered in display order

    B5 and B6 refer to P4 and I7, so that decoding them must start at I1. A frame that is shown before the
    first random access point needs the beginning of the file.
    """
    position = bisect_right(starts, packet) - 1  # of the last one in decoding order
    while position >= 0 and table.rank[starts[position]] > table.rank[packet]:
        position -= 1
    return starts[max(position, 0)]


def runs(marked: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the first and last index of every run of consecutive marked entries of an array [N].

    Examples
    --------
    >>> runs(np.array([True, True, False, True]))
    [(0, 1), (3, 3)]
    """
    # Each run begins where an entry differs from the one before, and ends before the next such entry.
    padded = np.concatenate(([False], marked, [False]))
    starts_and_ends = np.flatnonzero(np.diff(padded)).reshape(-1, 2)
    return [(int(start), int(end) - 1) for start, end in starts_and_ends]
