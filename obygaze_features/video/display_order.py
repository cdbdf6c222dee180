"""Decide whether a stream's time stamps are in the order of display, by what its decoder puts out.

A decoder puts pictures out in the order of display (H.264, C.4; HEVC, C.5; VC-1, 5.1). Some recorders and
joined files state times of decoding where times of display belong. Times of decoding rise from packet to
packet, even where pictures are reordered.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from av import FFmpegError
from numpy.typing import NDArray

from obygaze_features.video.bitstream import Packet
from obygaze_features.video.source import opened

PROBED_PACKETS = 300
"""Packets that are decoded at most to see whether pictures are reordered."""
PROBED_GROUPS = 2
"""Groups of pictures that are decoded at most. One is not enough: some films begin with still pictures, which
need no reordering."""
MPEG4_PICTURE = b"\x00\x00\x01\xb6"
"""How a picture of MPEG-4 begins (ISO/IEC 14496-2, 6.3.5)."""
SHORTEST_GROUP = 3
"""Packets of the shortest group of pictures that can be reordered."""
NO_SUSPECT_GROUP = -1
"""Result of `find_suspect_group` where no group's time stamps may be times of decoding."""


def rises(rank: NDArray[np.int64]) -> bool:
    """Return whether packets are displayed in the order in which they are decoded.

    Parameters
    ----------
    rank
        Shape [P], by packet in decoding order: its place in the order of display.
    """
    return not bool((np.diff(rank) < 0).any())


def find_suspect_group(
    rank: NDArray[np.int64],
    pts: NDArray[np.int64],
    dts: NDArray[np.int64],
    random_access: NDArray[np.bool_],
) -> int:
    """Find the first group of pictures whose presentation time stamps may be times of decoding.

    If the stamps of all packets rise in decoding order, all groups are suspect, and this is the first group
    of the file. Otherwise some stamps are times of display. But a file may be joined from recordings with
    right stamps and recordings with wrong ones: then it is the first group whose stamps rise and equal its
    times of decoding.

    Parameters
    ----------
    rank
        Shape [P], by packet in decoding order: its place in the order of display, as its time stamp gives it.
    pts
        Shape [P]: time stamps, which should be times of display.
    dts
        Shape [P]: times of decoding.
    random_access
        Shape [P]: whether a group of pictures begins with the packet.

    Returns
    -------
    int
        The packet with which the group begins; `NO_SUSPECT_GROUP` (-1) if there is none.
    """
    if rises(rank):
        return 0  # the packet with which the first group begins

    is_same_time = pts == dts
    edges = [*np.flatnonzero(random_access).tolist(), len(rank)]  # a group reaches from one to the next
    for first, end in pairwise(edges):
        can_be_reordered = end - first >= SHORTEST_GROUP
        has_times_of_decoding = bool(is_same_time[first:end].all())
        if can_be_reordered and has_times_of_decoding and rises(rank[first:end]):
            return first
    return NO_SUSPECT_GROUP


def reorders(path: Path, random_access: NDArray[np.bool_], first: int = 0) -> bool:
    """Return whether a decoder puts pictures out in another order than that of their packets.

    Two groups of pictures are decoded to see it (`PROBED_GROUPS`), or the first `PROBED_PACKETS` packets of
    them.

    Parameters
    ----------
    path
        A video file.
    random_access
        Shape [P]: the packets with which a group of pictures begins.
    first
        The packet with which the first of the two groups begins.
    """
    # The two groups end where the second group behind the first one begins, or at the end of the file.
    later_group_starts = first + 1 + np.flatnonzero(random_access[first + 1 :])
    is_group_behind = len(later_group_starts) >= PROBED_GROUPS
    end_of_groups = int(later_group_starts[PROBED_GROUPS - 1]) if is_group_behind else len(random_access)
    end = min(end_of_groups, first + PROBED_PACKETS)

    previous_number = -1  # before the number of any packet
    with opened(path) as source:
        packets = islice(source.packets(), first, end)
        decoder = source.context
        for number in _decoded_numbers(decoder, packets):
            if number < previous_number:
                return True
            previous_number = number
    return False


def count_held_back(path: Path) -> int:
    """Return how many pictures of an AVI file its decoder holds back, to put them out in display order.

    A decoder that holds back two pictures puts the first one out when it has got the third. One of H.264
    holds back as many as the file's settings say, even if fewer are reordered, which shows before its first
    picture. If the settings do not say it, a decoder begins with none and holds back more as pictures turn
    out to be reordered. So the larger of both counts is returned. The first `PROBED_PACKETS` packets are
    decoded for it, from a freshly opened file each time, as a decoder keeps pictures of what it got before.

    0 where an entry of the file holds two pictures, as XviD writes them ("packed"): the second one is shown
    at once.

    Parameters
    ----------
    path
        A video file.
    """
    with opened(path) as source:
        first_entries = islice(source.demux(source.stream), PROBED_PACKETS)
        is_packed = any(bytes(packet).count(MPEG4_PICTURE) > 1 for packet in first_entries)
    if is_packed:
        return 0
    with opened(path) as source:
        n_before_first = _count_before_first_picture(source.context, islice(source.packets(), PROBED_PACKETS))
    with opened(path) as source:
        numbers = list(_decoded_numbers(source.context, islice(source.packets(), PROBED_PACKETS)))
    return max(n_before_first, _count_reordered(numbers))


def _count_before_first_picture(context: Any, packets: Iterable[Any]) -> int:
    """Return how many packets a decoder gets behind that of its first picture before it puts the picture out.

    For example 2, if the picture of packet 0 comes out when the decoder gets packet 2.
    """
    for number, packet in enumerate(number_packets(packets)):
        try:
            frames = context.decode(packet)
        except FFmpegError:
            continue
        if frames and frames[0].pts is not None:
            packet_of_picture = frames[0].pts  # its number, which `number_packets` set as its time stamp
            return int(number - packet_of_picture)
    return 0


def _count_reordered(numbers: list[int]) -> int:
    """Return the most pictures that are decoded before another one and shown behind it.

    Parameters
    ----------
    numbers
        Numbers of the packets of pictures, in the order in which these are shown.

    Examples
    --------
    >>> _count_reordered([0, 2, 3, 1, 4])  # packet 1 is decoded before 2 and 3, and shown behind them
    1
    """
    in_display_order = np.array(numbers, np.int64)
    most = 0
    for index, number in enumerate(in_display_order):
        is_decoded_before = in_display_order[index + 1 :] < number
        most = max(most, int(is_decoded_before.sum()))
    return most


def _decoded_numbers(context: Any, packets: Iterable[Any]) -> Iterator[int]:
    """Yield the numbers of packets in the order in which their pictures come out of a decoder.

    To recognise a picture, its packet gets its number as its time stamp, which the decoder passes on to the
    picture. With packets 0, 1, 2, of which 2 is shown before 1, it yields 0, 2, 1.
    """
    # None behind the last packet makes the decoder put out the pictures that it holds back.
    packets_and_end = chain(number_packets(packets), (None,))
    while True:
        # `next` is within the `try`, as reading a packet from a damaged file may fail too.
        try:
            frames = context.decode(next(packets_and_end))
        except StopIteration:
            return
        except FFmpegError:
            # The decoder refused a packet, or none could be read: then only the end follows.
            continue
        for frame in frames:
            number_of_packet = frame.pts
            if number_of_packet is not None:
                yield number_of_packet


def number_packets(packets: Iterable[Packet]) -> Iterator[Packet]:
    """Yield packets with their time stamps replaced, in place, by their numbers in decoding order.

    The decoder passes the number on to the frame (`pts`), which is thereby identified.
    """
    for number, packet in enumerate(packets):
        packet.pts = number
        packet.dts = None
        yield packet


class NumberedFrame(NamedTuple):
    """A decoded frame with its number.

    Parameters
    ----------
    number
        Number of the frame in display order; None if it is not shown.
    frame
        The frame, as PyAV decodes it.
    counted
        Whether the number was found by counting frames, not by the frame's packet.
    """

    number: int | None
    frame: Any
    counted: bool


def number_frames(
    frames: Iterable[Any], numbers: Mapping[int, int], *, rising: bool
) -> Iterator[NumberedFrame]:
    """Yield frames with their numbers in display order.

    A frame's number is that of its packet in `numbers`, as long as the time stamps that gave these can be
    trusted. They cannot if they are times of decoding, which rise from packet to packet. A decoder shows it:
    it puts frames out in display order. If the frame of packet 3 comes out before that of packet 2, then
    packet 3 is shown first, though its stamp is the later one. The frame of packet 3 already has a wrong
    number by its packet, so from it on frames are counted. Each frame is therefore yielded only when the next
    one is known.

    Parameters
    ----------
    frames
        Frames whose `pts` is the number of their packet, in the order in which they come out.
    numbers
        Number of a packet -> number of its frame, by the time stamps; without packets that are not shown.
    rising
        Whether stamps rise in decoding order: then they may be times of decoding.
    """
    are_counted = False  # becomes true where the stamps turn out to be times of decoding, and stays so
    last_number = -1
    end: tuple[Any, ...] = (None,)  # the last frame has no next one
    for frame, next_frame in pairwise(chain(frames, end)):
        comes_before_earlier_packet = next_frame is not None and _steps_back(frame, next_frame)
        if rising and comes_before_earlier_packet:
            are_counted = True
        number = last_number + 1 if are_counted else numbers.get(frame.pts)
        if number is not None:
            last_number = number
        yield NumberedFrame(number, frame, are_counted)


def _steps_back(before: Any, frame: Any) -> bool:
    """Return whether a frame's packet has a lower number than the packet of the frame before.

    The numbers of the packets are the frames' `pts`; None if they are not known.
    """
    if before.pts is None or frame.pts is None:
        return False
    return bool(frame.pts < before.pts)
