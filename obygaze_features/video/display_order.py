"""Decide whether a stream's time stamps are in the order of display, by what its decoder puts out.

A decoder puts pictures out in the order of display (H.264, C.4; HEVC, C.5; VC-1, 5.1). Some recorders and
joined files state times of decoding in their place: those rise from packet to packet, also where pictures are
reordered.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from av import FFmpegError
from numpy.typing import NDArray

from obygaze_features.video.bitstream import Packet
from obygaze_features.video.source import opened

PROBED_PACKETS = 300
"""Packets that are decoded at most to see whether pictures are reordered."""
PROBED_GROUPS = 2
"""Groups of pictures that are decoded at most: some begin with still pictures, which need no reordering."""
SHORTEST_GROUP = 3
"""Packets of the shortest group of pictures that can be reordered."""


def rises(rank: NDArray[np.int64]) -> bool:
    """Return whether the stamps of packets in decoding order never fall, as those of decoding do not."""
    return not bool((np.diff(rank) < 0).any())


def first_suspect(
    rank: NDArray[np.int64],
    pts: NDArray[np.int64],
    dts: NDArray[np.int64],
    random_access: NDArray[np.bool_],
) -> int:
    """Find the first group of pictures whose stamps may be times of decoding.

    Those of all packets rise, or, in a file that is joined of recordings of both kinds, those of a group rise
    and are its times of decoding, where other groups state others.

    Parameters
    ----------
    rank, pts, dts, random_access
        Shape [P], of all packets in decoding order: what increases in the order of display, by their stamps;
        these, and times of decoding; whether a group begins.

    Returns
    -------
    int
        The packet with which it begins; -1 if there is none.
    """
    if rises(rank):
        return 0
    same = pts == dts
    starts = [*np.flatnonzero(random_access).tolist(), len(rank)]
    for first, end in pairwise(starts):
        if end - first >= SHORTEST_GROUP and same[first:end].all() and rises(rank[first:end]):
            return first
    return -1


def reorders(path: Path, random_access: NDArray[np.bool_], first: int = 0) -> bool:
    """Decode two groups of pictures; return whether they come out in another order than they go in.

    Parameters
    ----------
    path
        A video file.
    random_access
        Shape [P]: the packets with which a group of pictures begins.
    first
        The packet with which the first of the two begins.
    """
    later_groups = first + 1 + np.flatnonzero(random_access[first + 1 :])
    end = len(random_access)
    if len(later_groups) >= PROBED_GROUPS:
        end = int(later_groups[PROBED_GROUPS - 1])
    latest = -1
    with opened(path) as source:
        packets = islice(source.packets(), first, min(end, first + PROBED_PACKETS))
        for number in _decoded(source.context, packets):
            if number < latest:
                return True
            latest = number
    return False


def _decoded(context: Any, packets: Iterable[Any]) -> Iterator[int]:
    """Yield the numbers of packets in the order in which their pictures come out of a decoder."""
    waiting = chain(labelled(packets), (None,))  # the decoder is drained at the end
    while True:
        try:
            frames = context.decode(next(waiting))
        except StopIteration:
            return
        except FFmpegError:  # of the decoder, or of the demuxer, which ends the stream
            continue
        for frame in frames:
            if frame.pts is not None:
                yield frame.pts


def labelled(packets: Iterable[Packet]) -> Iterator[Packet]:
    """Yield packets with their number as time stamp, which their frames keep."""
    for number, packet in enumerate(packets):
        packet.pts = number
        packet.dts = None
        yield packet


def numbered(
    frames: Iterable[Any], numbers: Mapping[int, int], *, rising: bool
) -> Iterator[tuple[int | None, Any, bool]]:
    """Yield frames with their numbers by the packets that they are labelled with, as long as labels hold.

    A frame waits for the next one: where a label steps back although stamps rise in decoding order, these are
    times of decoding, and the waiting frame and all that follow are counted.

    Parameters
    ----------
    frames
        Frames whose `pts` is the number of their packet, in the order in which they come out.
    numbers
        Number of a packet -> number of its frame.
    rising
        Whether stamps rise in decoding order.

    Yields
    ------
    int or None, frame, bool
        The frame's number, None if it is not shown; the frame; whether it was counted.
    """
    counted = False
    last = -1
    waiting = None
    for frame in frames:
        if waiting is not None:
            if rising and _steps_back(waiting, frame):
                counted = True
            number = last + 1 if counted else numbers.get(waiting.pts)
            last = last if number is None else number
            yield number, waiting, counted
        waiting = frame
    if waiting is not None:
        yield last + 1 if counted else numbers.get(waiting.pts), waiting, counted


def _steps_back(before: Any, frame: Any) -> bool:
    return before.pts is not None and frame.pts is not None and frame.pts < before.pts
