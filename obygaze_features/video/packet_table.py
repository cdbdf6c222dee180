"""Define the packet table of a stream: display times and random access points, known without decoding."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_features.video.bitstream import Packet
from obygaze_features.video.late_streams import LateStream
from obygaze_features.video.sampling import FrameTimes
from obygaze_features.video.stream import Stream

MISSING = -(1 << 63)
"""A time stamp or place that a packet does not have."""


def stamp(value: int | None) -> int:
    """Return a time stamp or place in the file, or `MISSING` for None."""
    return MISSING if value is None else value


@dataclass(frozen=True, slots=True)
class PacketTable:
    """The packets of a stream in decoding order, with their properties known before decoding.

    Parameters
    ----------
    pts
        Shape [P]: presentation time stamps, in ticks of the stream, or `MISSING`.
    size
        Shape [P]: bytes.
    rank
        Shape [P]: numbers that increase in display order; undefined unless `known_by_packet`.
    random_access
        Shape [P]: whether decoding can start here and give exact pictures.
    skippable
        Shape [P]: whether no other picture needs this one; it is then decoded only if it is wanted.
    shown
        Shape [L]: displayed packets, in display order (in decoding order unless `known_by_packet`).
    frame_times
        The frames to choose from by the packets: those that are displayed.
    holes
        Shape [H, 2]: starts and ends, in seconds, of where the file lacks frames.
    unsafe
        Why the stream cannot be decoded sparsely; empty if it can.
    known_by_packet
        Whether a decoded frame is identified by the number of its packet.
    seekable
        Whether a packet after a seek is identified by its time stamp and size.
    losses
        What the file lacks of what its container declares, or was joined to it and is not read: the time in
        seconds from which pictures are missing, and a description.
    part_first
        Shape [K]: the packet that each part of a joined file begins with; 0 for the first.
    part_offset_s
        Shape [K]: seconds that were added to the times of each part.
    stream
        Description of the stream.
    notes
        Further notes for the user.
    besides
        What the file holds beside pictures: `sound`, `subtitles`.
    late
        Streams that are not known when the file is opened.
    stated_end_s
        Of a file that is cut off: when its pictures end by what its container states, in seconds; else NaN.
    """

    pts: NDArray[np.int64]
    size: NDArray[np.int64]
    rank: NDArray[np.int64]
    random_access: NDArray[np.bool_]
    skippable: NDArray[np.bool_]
    shown: NDArray[np.int64]
    frame_times: FrameTimes
    holes: NDArray[np.float64]
    unsafe: str
    known_by_packet: bool
    seekable: bool
    losses: tuple[tuple[float, str], ...]
    part_first: NDArray[np.int64]
    part_offset_s: NDArray[np.float64]
    stream: Stream
    notes: tuple[str, ...]
    besides: tuple[str, ...] = ()
    late: tuple[LateStream, ...] = ()
    stated_end_s: float = math.nan

    def find_packet(self, packet: Packet) -> int:
        """Return the number of the packet in the table that has a packet's time stamp and size.

        -1 if no packet, or more than one, has these.
        """
        is_same = (self.pts == stamp(packet.pts)) & (self.size == packet.size)
        numbers = np.flatnonzero(is_same)
        return int(numbers[0]) if len(numbers) == 1 else -1

    def is_packet(self, number: int, packet: Packet) -> bool:
        """Return whether a packet has the time stamp and size of the packet with this number."""
        has_same_time = self.pts.item(number) == stamp(packet.pts)
        has_same_size = self.size.item(number) == packet.size
        return has_same_time and has_same_size
