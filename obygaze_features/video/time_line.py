"""Put the times of a stream on one line that rises, whatever parts the file was joined from.

The files of a DVD, recordings and downloads are often joined byte by byte. Their times start again with each
part, or jump. Players show the parts one after the other, and so does this line.
"""

from collections.abc import Sequence
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
"""Pictures that one packet of a program stream can hold, if they are as small as pictures can be."""
MOST_OFF = 4
"""Steps by which an estimated time of decoding may be wrong."""
JUMP_S = 3600
"""Seconds without pictures from which on there is no pause, but another part."""
MOST_PARTS = 1000
"""Parts of the longest file that is read: a file with more is damaged, and each takes time to find."""
MOST_AT_ONCE = 4096
"""Pictures whose neighbours are sorted at once, so that a long film takes little memory."""
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
    """Return the time line of a stream of one part: its times as they are."""
    return TimeLine(ticks, np.zeros(1, np.int64), np.zeros(1, np.int64), known)


def time_line(
    ticks: NDArray[np.int64],
    *,
    step: int,
    longest_pause: NDArray[np.int64],
    key: NDArray[np.bool_],
    shown: NDArray[np.bool_],
    decoding: NDArray[np.int64] | None = None,
) -> TimeLine:
    """Build one rising time line for a file that may be joined from several recordings.

    A part begins where times start again or jump. Its times are shifted so that it follows the part before.
    If times are missing and cannot be filled in, the line is of one part and not `known`.

    Parameters
    ----------
    ticks, key, shown
        Shape [P]: times of presentation in decoding order, `MISSING` where there is none; which packets are
        key packets, and shown.
    step
        Ticks between two pictures, for parts of one picture.
    longest_pause
        Shape [P]: for each packet, the longest step to it in ticks; a longer one begins a part.
    decoding
        Shape [P]: times of decoding, where the container stores them for its packets.

    Raises
    ------
    VideoError
        There are more than `MOST_PARTS` parts.
    """
    timed = ticks != MISSING
    shown_and_timed = np.flatnonzero(shown & timed)
    part_starts = _part_starts(
        ticks[shown_and_timed],
        key[shown_and_timed],
        None if decoding is None else decoding[shown_and_timed],
        longest_pause[shown_and_timed],
        step,
    )
    first_packets = np.append(0, shown_and_timed[part_starts[1:]])  # of each part, hidden packets included
    edges = [*first_packets.tolist(), len(ticks)]
    parts = [slice(start, end) for start, end in pairwise(edges)]
    ticks = ticks.copy()
    for part in parts:
        are_all_filled_in = _fill_missing_times(ticks[part], timed[part], step)
        if not are_all_filled_in:
            return unbroken(ticks, known=False)
    # Pictures that are not shown take no time, so that they do not count for the length of a part.
    offsets = _offsets([ticks[part][shown[part]] for part in parts], step)
    part_lengths = np.diff(edges)
    return TimeLine(ticks + np.repeat(offsets, part_lengths), first_packets, np.array(offsets, np.int64))


def _offsets(times_of_parts: Sequence[NDArray[np.int64]], step: int) -> list[int]:
    """Return for each part of a joined file the ticks to add to its times, so that it follows the one before.

    Between the last picture of a part and the first of the next is the usual step of the former, or `step` if
    the part has only one time.
    """
    offsets = [0]
    for earlier, later in pairwise(times_of_parts):
        times = np.unique(earlier)
        usual_step = int(np.median(np.diff(times))) if len(times) > 1 else step
        end = offsets[-1] + int(times[-1]) + usual_step
        offsets.append(end - int(later.min()))
    return offsets


def _fill_missing_times(part: NDArray[np.int64], timed: NDArray[np.bool_], step: int) -> bool:
    """Fill in, in place, the times of pictures that have none, assuming a steady rate.

    At a steady rate, the stated times leave gaps of one or more steps. The pictures without a time get the
    times in these gaps. One more may get a time before the stated ones, if the first picture has no time; or
    some may get times behind them, if pictures at the end have none. Which picture gets which of these times
    is arbitrary.

    For example, with a step of 10, the times 0, none, 30, 40, none become 0, 10, 30, 40, 20: the gap between
    0 and 30 is of two pictures.

    Parameters
    ----------
    part
        Shape [N]: the times of a part, changed in place.
    timed
        Shape [N]: which pictures have a time.
    step
        Ticks between two pictures.

    Returns
    -------
    bool
        Whether the gaps have exactly as many times as there are pictures without one; if not, nothing is
        changed.
    """
    n_untimed = int((~timed).sum())
    if not n_untimed:
        return True
    times = np.unique(part[timed])
    # Place of each stated time on a grid of steps that begins with the first of them: 0, 3, 4 for 0, 30, 40.
    n_steps = np.rint(np.diff(times) / max(step, 1)).clip(1).astype(np.int64)
    stated_places = np.append(0, np.cumsum(n_steps))
    last_stated = stated_places[-1]
    n_in_gaps = int(last_stated + 1 - len(times))
    n_outside = n_untimed - n_in_gaps  # untimed pictures before the first, or behind the last stated time
    if timed[0]:
        first_place = 0
        last_place = last_stated + n_outside
        # Only the last pictures in decoding order can be shown after the last stated time: those behind the
        # last picture with a time, and a few before it, as pictures are reordered.
        n_untimed_at_end = int(np.argmax(timed[::-1]))
        n_last = n_untimed_at_end + REORDERED // 2
        most_outside = int((~timed[-n_last:]).sum())
    else:
        first_place = -n_outside
        last_place = last_stated
        most_outside = 1
    if not 0 <= n_outside <= most_outside:
        return False
    free_places = np.setdiff1d(np.arange(first_place, last_place + 1), stated_places)
    # `interp` repeats the first time before it and the last behind it: steps are added there.
    interpolated = np.rint(np.interp(free_places, stated_places, times)).astype(np.int64)
    steps_outside = free_places - free_places.clip(0, last_stated)
    part[~timed] = interpolated + step * steps_outside
    return True


def _part_starts(
    ticks: NDArray[np.int64],
    key: NDArray[np.bool_],
    decoding: NDArray[np.int64] | None,
    longest_pause: NDArray[np.int64],
    step: int,
) -> list[int]:
    """List the shown pictures with which the parts of a joined file begin; the first is picture 0.

    Parameters
    ----------
    ticks, key, decoding, longest_pause
        Shape [L], of the shown pictures that have a time: as of `time_line`.
    step
        Ticks between two pictures.

    Raises
    ------
    VideoError
        There are more than `MOST_PARTS` parts.
    """
    starts = [0]
    while True:
        start = starts[-1]
        part_decoding = None if decoding is None else decoding[start:]
        may_start = _may_start_part(ticks[start:], key[start:], part_decoding, longest_pause[start:], step)
        if not may_start.any():
            return starts
        starts.append(start + int(np.argmax(may_start)))
        if len(starts) > MOST_PARTS:
            raise VideoError(f"its times start again more than {MOST_PARTS:,} times: join its parts anew")


def _may_start_part(
    ticks: NDArray[np.int64],
    key: NDArray[np.bool_],
    decoding: NDArray[np.int64] | None,
    longest_pause: NDArray[np.int64],
    step: int,
) -> NDArray[np.bool_]:
    """Return which pictures show that a new part of a joined file has begun; only the first True counts.

    A new part begins

    - at a key picture that would be shown before a picture decoded before it;
    - at any picture that would be shown before one decoded more than `REORDERED` packets before it;
    - after a step longer than `longest_pause`;
    - at a second key picture with the time of the first picture;
    - where stored times of decoding step back.

    Parameters
    ----------
    ticks, key, decoding, longest_pause
        Shape [L], from the first picture of a part on: as of `time_line`.
    step
        Ticks between two pictures.
    """
    latest = np.maximum.accumulate(ticks)
    latest_before = np.concatenate((ticks[:1], latest[:-1]))
    # The latest time of the pictures more than `REORDERED` packets before; none for the first packets.
    n_first = min(REORDERED, len(ticks))
    latest_long_before = np.concatenate((np.full(n_first, ticks.min()), latest[:-REORDERED]))
    is_early_key = key & (ticks < latest_before)
    is_too_early = ticks < latest_long_before
    is_jump = ticks - latest_before > longest_pause
    starts: NDArray[np.bool_] = is_early_key | is_too_early | is_jump
    if step > 1:  # else ticks are too coarse for the rate, and pictures share them
        has_time_of_first = (latest_before == ticks[0]) & (ticks == ticks[0])
        starts[1:] |= key[1:] & has_time_of_first[1:]
    if decoding is not None:
        steps_back = np.diff(decoding) < 0
        starts[1:] |= steps_back
    return starts


def correct_outliers(ticks: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """Correct times of a program stream that deviate by a few steps from the steady rate of the others.

    If one packet of the stream holds several small pictures, FFmpeg gives the packet's time to an earlier
    picture than the one that it belongs to. Stretches between larger jumps of time are corrected separately.

    Parameters
    ----------
    ticks
        Shape [P]: times in decoding order.
    step
        Ticks between two pictures.
    """
    jumps = np.abs(np.diff(ticks)) > (MOST_OFF + 1) * step
    part_starts = 1 + np.flatnonzero(jumps)
    return np.concatenate([_correct_part(part, step) for part in np.split(ticks, part_starts)])


def _correct_part(ticks: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """Correct the outliers among the times of one stretch: move them to the line of the times around them.

    The line has the slope of the stated rate, or of the stretch's own rate if that is higher, and the median
    offset of the `IN_A_PACKET` times before and after. With a step of 10, 29 in 0, 10, 29, 30, 40 is 9 above
    the line of the others, and becomes 20.
    """
    if len(ticks) > 1:
        step = min(step, int(np.median(np.diff(ticks))))
    offsets = ticks - step * np.arange(len(ticks))  # from a line of this slope
    around = np.arange(-IN_A_PACKET, IN_A_PACKET + 1)
    # Only near pictures where times fall back to the line can times have left it.
    steps_back = np.flatnonzero(np.diff(offsets) < 0)
    suspects = np.unique((steps_back[:, None] + around).clip(0, len(ticks) - 1))
    corrected = ticks.copy()
    for block in np.array_split(suspects, 1 + len(suspects) // MOST_AT_ONCE):
        indices_around = (block[:, None] + around).clip(0, len(ticks) - 1)  # [block, 2 * IN_A_PACKET + 1]
        median = np.sort(offsets[indices_around], axis=1)[:, IN_A_PACKET]  # the middle one
        wrong_by = offsets[block] - median
        is_outlier = abs(wrong_by) <= MOST_OFF * step  # larger deviations have other causes
        corrected[block] -= np.where(is_outlier, wrong_by, 0)
    return corrected
