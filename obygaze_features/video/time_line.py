"""Put the times of a stream on one line that rises, whatever parts the file was joined from.

The files of a DVD, recordings and downloads are often joined byte by byte. Their times start again with each
part, or jump. Players show the parts one after the other, and so does this line.
"""

from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.video.packet_table import MISSING

REORDERED = 34
"""Packets by which a picture may be decoded before one that is shown before it: 16 frames of two fields."""
IN_A_PACKET = 50
"""Pictures, the smallest there are, that one packet of a program stream holds."""
MOST_OFF = 4
"""Steps by which an estimated time of decoding may be wrong."""
JUMP_S = 3600
MOST_PARTS = 1000
USUAL_RATE = Fraction(25)
"""Pictures a second where a file states neither times nor a rate."""


class TimeLine(NamedTuple):
    """The times of a stream's packets [P] on one line, in decoding order.

    Parameters
    ----------
    ticks
        Shape [P]: raw times plus the offset of their part.
    first
        Shape [K]: the packet that each part begins with.
    offset
        Shape [K]: ticks that were added to the times of each part; 0 for the first.
    known
        Whether the ticks are times; else some are missing, or all are equal.
    """

    ticks: NDArray[np.int64]
    first: NDArray[np.int64]
    offset: NDArray[np.int64]
    known: bool = True


def unbroken(ticks: NDArray[np.int64], *, known: bool = True) -> TimeLine:
    """Return times as they are, of one part."""
    return TimeLine(ticks, np.zeros(1, np.int64), np.zeros(1, np.int64), known)


def time_line(
    ticks: NDArray[np.int64],
    *,
    step: int,
    longest: NDArray[np.int64],
    key: NDArray[np.bool_],
    shown: NDArray[np.bool_],
    decoding: NDArray[np.int64] | None = None,
) -> TimeLine:
    """Find where times start again or jump, and put each part after the one before it.

    Parameters
    ----------
    ticks, key, shown
        Shape [P]: times of presentation in decoding order, `MISSING` where there is none; which packets are
        key packets, and shown.
    step
        Ticks between two pictures, for parts of one picture.
    longest
        Shape [P]: ticks of a step to the packet above which it is no pause, but begins a part.
    decoding
        Shape [P]: times of decoding, where the container stores them for its packets.

    Raises
    ------
    VideoError
        There are more than `MOST_PARTS` parts.
    """
    timed = ticks != MISSING
    chosen = np.flatnonzero(shown & timed)
    ticks_shown = ticks[chosen]
    keys = key[chosen]
    begins = _part_starts(
        ticks_shown, keys, None if decoding is None else decoding[chosen], longest[chosen], step
    )
    first_packets = np.append(0, chosen[begins[1:]])
    spans = [slice(*span) for span in pairwise([*first_packets.tolist(), len(ticks)])]
    ticks = ticks.copy()
    offset = [0]
    for span in spans:
        if not _complete(ticks[span], timed[span], step):
            return unbroken(ticks, known=False)
    for earlier, later in pairwise(spans):
        before = np.unique(ticks[earlier][shown[earlier]])
        apart = int(np.median(np.diff(before))) if len(before) > 1 else step
        offset.append(offset[-1] + int(before[-1]) + apart - int(ticks[later][shown[later]].min()))
    counts = np.diff(np.append(first_packets, len(ticks)))
    return TimeLine(ticks + np.repeat(offset, counts), first_packets, np.array(offset, np.int64))


def _complete(part: NDArray[np.int64], timed: NDArray[np.bool_], step: int) -> bool:
    """Give pictures without a time, in place, those that the others leave free at a steady rate.

    Return whether there are as many. One more may come before the others, if the first has no time, and those
    at the end after them. Which picture has which of these times is not known.
    """
    count = int((~timed).sum())
    if not count:
        return True
    times = np.unique(part[timed])
    places = np.append(0, np.cumsum(np.rint(np.diff(times) / max(step, 1)).clip(1).astype(np.int64)))
    beside = count - int(places[-1] + 1 - len(times))
    after = beside if timed[0] else 0
    behind = int(np.argmax(timed[::-1])) + REORDERED // 2
    if not 0 <= beside <= (int((~timed[-behind:]).sum()) if timed[0] else 1):
        return False
    grid = np.arange(after - beside, places[-1] + 1 + after)
    free = np.setdiff1d(grid, places)
    outside = step * (free - free.clip(0, places[-1]))
    part[~timed] = np.rint(np.interp(free, places, times)).astype(np.int64) + outside
    return True


def _part_starts(
    ticks: NDArray[np.int64],
    key: NDArray[np.bool_],
    decoding: NDArray[np.int64] | None,
    longest: NDArray[np.int64],
    step: int,
) -> list[int]:
    """List the pictures [L] with which parts begin, without decoding.

    A part begins at a key picture that would be shown before one that was decoded before it; at any picture
    that would be shown before one decoded more than `REORDERED` packets before it; after a jump; at a second
    key picture with the time of the first; and where stored times of decoding step back.
    """
    begins = [0]
    while True:
        start = begins[-1]
        part = ticks[start:]
        latest = np.maximum.accumulate(part)
        before = np.concatenate((part[:1], latest[:-1]))
        settled = np.concatenate((np.full(min(REORDERED, len(part)), part.min()), latest[:-REORDERED]))
        starts = (key[start:] & (part < before)) | (part < settled) | (part - before > longest[start:])
        if step > 1:  # else ticks are too coarse for the rate, and pictures share them
            starts[1:] |= key[start + 1 :] & (before[1:] == part[0]) & (part[1:] == part[0])
        if decoding is not None:
            starts[1:] |= np.diff(decoding[start:]) < 0
        if not starts.any():
            return begins
        begins.append(start + int(np.argmax(starts)))
        if len(begins) > MOST_PARTS:
            raise VideoError(f"its times start again more than {MOST_PARTS:,} times: join its parts anew")


def settled(ticks: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """Take back times that leave their line by a few steps for a few packets, and return.

    FFmpeg estimates them in a program stream, and gives a time to a picture before its own where pictures are
    so small that one packet of the stream holds several. A part keeps to its own line to its end, and to its
    own rate where that is higher.
    """
    seams = 1 + np.flatnonzero(np.abs(np.diff(ticks)) > (MOST_OFF + 1) * step)
    return np.concatenate([_settled(part, step) for part in np.split(ticks, seams)])


def _settled(ticks: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    step = min(step, int(np.median(np.diff(ticks)))) if len(ticks) > 1 else step
    off = ticks - step * np.arange(len(ticks))
    reach = np.arange(-IN_A_PACKET, IN_A_PACKET + 1)
    back = np.flatnonzero(np.diff(off) < 0)
    near = np.unique((back[:, None] + reach).clip(0, len(ticks) - 1))
    settled = ticks.copy()
    for block in np.array_split(near, 1 + len(near) // 4096):
        around = off[(block[:, None] + reach).clip(0, len(ticks) - 1)]
        wrong_by = off[block] - np.sort(around, axis=1)[:, IN_A_PACKET]
        settled[block] -= np.where(abs(wrong_by) <= MOST_OFF * step, wrong_by, 0)
    return settled
