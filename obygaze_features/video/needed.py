"""Plan sparse decoding: find the packets, and parts of packets, that the wanted frames need.

A frame needs the packets up to its own from the last random access point that precedes it in decoding and in
display order. Display order matters because in an open group of pictures, a frame shown before the random
access point may refer to earlier pictures. Unreferenced pictures within this range are left out. Where every
reference is known (AV1), all frames that the wanted frames do not depend on are left out.
"""

from bisect import bisect_right
from collections.abc import Collection
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from obygaze_features.video.packet_table import PacketTable


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


def needed_frames(table: PacketTable, wanted: Collection[int]) -> NDArray[np.bool_]:
    """Mark the coded frames shown by the given packets, and the frames that they refer to.

    Parameters
    ----------
    table
        The packets of a stream whose references are known.
    wanted
        Numbers of packets; each packet shows its last frame.

    Returns
    -------
    NDArray[np.bool_]
        Shape [Q], in decoding order.
    """
    packet, references = table.frames[:, 0], table.frames[:, 3:]
    last = np.searchsorted(packet, list(wanted), side="right") - 1
    needed = np.zeros(len(packet), np.bool_)
    waiting = set(last.tolist())
    while waiting:
        number = waiting.pop()
        needed[number] = True
        waiting |= {one for one in references[number].tolist() if one >= 0 and not needed[one]}
    return needed


def left_out(
    table: PacketTable, wanted: Collection[int]
) -> tuple[NDArray[np.bool_], dict[int, list[tuple[int, int]]]]:
    """Find what can be left out when decoding the runs of the given packets.

    Parameters
    ----------
    table
        The packets of a stream that is safe to decode sparsely.
    wanted
        Numbers of packets.

    Returns
    -------
    NDArray[np.bool_]
        Shape [P]: packets that are left out.
    dict
        Packet -> byte ranges to cut out (first, and after the last), for packets with needed and unneeded
        frames.
    """
    numbers = list(wanted)
    if not len(table.frames):
        spare = table.spare.copy()
        spare[numbers] = False
        return spare, {}
    needed = needed_frames(table, numbers)
    unneeded = np.ones(len(table.pts), np.bool_)
    unneeded[table.frames[needed, 0]] = False
    cuts: dict[int, list[tuple[int, int]]] = {}
    cut = table.frames[~needed & ~unneeded[table.frames[:, 0]], :3]
    for packet, start, stop in cut.tolist():
        cuts.setdefault(packet, []).append((start, stop))
    return unneeded, cuts


def without(data: bytes, ranges: list[tuple[int, int]]) -> bytes:
    """Remove byte ranges, given in order, from a packet."""
    edges = [0, *chain.from_iterable(ranges), len(data)]
    return b"".join(data[first:last] for first, last in zip(edges[::2], edges[1::2], strict=True))


def runs(needed: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the first and last index of every run of consecutive marked entries."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], needed, [False]))))
    return [(int(first), int(end) - 1) for first, end in edges.reshape(-1, 2)]
