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
MAX_STEPS_OFF = 4
"""Steps by which an estimated time of decoding may be wrong."""
JUMP_S = 3600
"""Seconds without pictures from which on there is no pause, but another part."""
MAX_PARTS = 1000
"""Parts of the longest file that is read: a file with more is damaged, and each takes time to find."""
MAX_AT_ONCE = 4096
"""Pictures whose neighbours are sorted at once, so that a long film takes little memory."""
USUAL_RATE = Fraction(25)
"""Pictures a second where a file states neither times nor a rate."""


class TimeLine(NamedTuple):
    """The times of a stream's packets [P] on one line, in decoding order.

    Parameters
    ----------
    ticks
        Shape [P]: raw times plus the offset of their part.
    first_packets
        Shape [K]: the packet that each part begins with; 0 for the first.
    offsets
        Shape [K]: ticks that were added to the times of each part; 0 for the first.
    is_known
        Whether the ticks are times; else some are missing, or all are equal.
    """

    ticks: NDArray[np.int64]
    first_packets: NDArray[np.int64]
    offsets: NDArray[np.int64]
    is_known: bool = True


def unbroken(ticks: NDArray[np.int64], *, is_known: bool = True) -> TimeLine:
    """Return the time line of a stream of one part: its times as they are."""
    only_zero = np.zeros(1, np.int64)  # the one part begins with packet 0, and is not shifted
    return TimeLine(ticks, first_packets=only_zero, offsets=only_zero.copy(), is_known=is_known)


def time_line(
    ticks: NDArray[np.int64],
    *,
    step: int,
    longest_pause: NDArray[np.int64],
    key: NDArray[np.bool_],
    shown: NDArray[np.bool_],
    decoding: NDArray[np.int64] | None = None,
) -> TimeLine:
    """Put the times of a video's pictures on one rising line, though the file may be joined from recordings.

    A part begins where times start again or jump. Its times are shifted so that it follows the part before.
    For example, with a step of 10, the times 0, 10, 20, 0, 10 become 0, 10, 20, 30, 40. If times are missing
    and cannot be filled in, the times are returned as one part, and are not `is_known`.

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
        There are more than `MAX_PARTS` parts.
    """
    is_timed = ticks != MISSING
    # Parts are told apart by the shown pictures that have a time; the numbers of their packets:
    timed_packets = np.flatnonzero(shown & is_timed)
    starts = _part_starts(  # positions in `timed_packets`
        ticks[timed_packets],
        key[timed_packets],
        None if decoding is None else decoding[timed_packets],
        longest_pause[timed_packets],
        step,
    )
    # The first part begins with packet 0, also if this has no time.
    starts_of_later_parts = starts[1:]
    first_packets = np.append(0, timed_packets[starts_of_later_parts])
    edges = [*first_packets.tolist(), len(ticks)]  # a part reaches from each edge to the next
    parts = [slice(start, end) for start, end in pairwise(edges)]

    ticks = ticks.copy()
    for part in parts:
        are_all_filled_in = _fill_missing_times(ticks[part], is_timed[part], step)
        if not are_all_filled_in:
            return unbroken(ticks, is_known=False)

    # Pictures that are not shown take no time, so that they do not count for the length of a part.
    shown_times = [ticks[part][shown[part]] for part in parts]
    offsets = _offsets(shown_times, step)
    offset_of_packet = np.repeat(offsets, np.diff(edges))  # [P]
    return TimeLine(ticks + offset_of_packet, first_packets, np.array(offsets, np.int64))


def _offsets(times_of_parts: Sequence[NDArray[np.int64]], step: int) -> list[int]:
    """Return for each part of a joined file the ticks to add to its times, so that it follows the one before.

    Between the last picture of a part and the first of the next is the usual step of the former, or `step` if
    the part has only one time.

    Parameters
    ----------
    times_of_parts
        Times of the shown pictures of each part, in ticks.
    step
        Ticks between two pictures.
    """
    offsets = [0]
    for earlier, later in pairwise(times_of_parts):
        times = np.unique(earlier)  # rising
        usual_step = int(np.median(np.diff(times))) if len(times) > 1 else step
        end_of_earlier = offsets[-1] + int(times[-1]) + usual_step  # on the line
        offsets.append(end_of_earlier - int(later.min()))
    return offsets


def _fill_missing_times(part: NDArray[np.int64], timed: NDArray[np.bool_], step: int) -> bool:
    """Fill in missing times of pictures, in place, assuming a steady rate; return whether it was possible.

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
    if n_untimed == 0:
        return True
    stated_times = np.unique(part[timed])

    # Each time gets a place: its distance in steps from the first stated time, rounded. In the example, the
    # stated times 0, 30, 40 have the places 0, 3, 4; the places 1 and 2 are free.
    n_steps = np.rint(np.diff(stated_times) / max(step, 1)).clip(1).astype(np.int64)
    stated_places = np.append(0, np.cumsum(n_steps))
    last_stated = stated_places[-1]
    n_in_gaps = int(last_stated + 1 - len(stated_times))

    # Pictures for which the gaps have no place are shown before the first stated time, or behind the last.
    # Before it is one at most, the first picture of the part: a key picture, which is mostly shown first.
    n_outside = n_untimed - n_in_gaps
    first_is_timed = bool(timed[0])
    if first_is_timed:  # then none is shown before the first stated time
        max_outside = _most_behind_last_time(timed)
        first_place = 0
        last_place = last_stated + n_outside
    else:
        max_outside = 1
        first_place = -n_outside
        last_place = last_stated
    is_possible = 0 <= n_outside <= max_outside
    if not is_possible:
        return False

    all_places = np.arange(first_place, last_place + 1)
    free_places = np.setdiff1d(all_places, stated_places)
    part[~timed] = _times_at_places(free_places, stated_places, stated_times, step)
    return True


def _most_behind_last_time(timed: NDArray[np.bool_]) -> int:
    """Return how many pictures without a time can be shown after the last stated time, at most.

    Only the last pictures in decoding order can. These are the pictures that are decoded behind the last one
    with a time. And they are the few before them: a picture may be shown after one that is decoded up to
    `REORDERED` packets later, which are half as many pictures if each has two fields.

    Parameters
    ----------
    timed
        Shape [N]: which pictures have a time, in decoding order; at least one has.

    Examples
    --------
    >>> _most_behind_last_time(np.array([True, False, True, False, False]))  # all three without a time
    3
    """
    n_untimed_at_end = int(np.argmax(timed[::-1]))  # counted from the end, the first picture with a time
    n_last = n_untimed_at_end + REORDERED // 2
    is_untimed = ~timed[-n_last:]  # of the last pictures
    return int(is_untimed.sum())


def _times_at_places(
    places: NDArray[np.int64], stated_places: NDArray[np.int64], times: NDArray[np.int64], step: int
) -> NDArray[np.int64]:
    """Estimate the times, in ticks, of pictures whose places in a steady sequence are known.

    Between two stated times a time is interpolated. Before the first and behind the last stated time, each
    place is a `step` away from the next.

    Parameters
    ----------
    places
        The places, counted in steps from the first stated time.
    stated_places, times
        The places with a stated time, rising from 0 on, and these times.
    step
        Ticks between two places.

    Examples
    --------
    >>> _times_at_places(np.array([-1, 1, 4]), np.array([0, 2]), np.array([50, 72]), step=10).tolist()
    [40, 61, 92]
    """
    # Outside of the stated places, `interp` repeats the nearest stated time; the steps from it are added.
    interpolated = np.rint(np.interp(places, stated_places, times)).astype(np.int64)
    nearest_inside = places.clip(0, stated_places[-1])
    steps_outside: NDArray[np.int64] = places - nearest_inside  # 0 within, negative before the first
    return interpolated + step * steps_outside


def _part_starts(
    ticks: NDArray[np.int64],
    key: NDArray[np.bool_],
    decoding: NDArray[np.int64] | None,
    longest_pause: NDArray[np.int64],
    step: int,
) -> list[int]:
    """Return the numbers of the shown pictures with which the parts of a joined file begin, from 0 on.

    Each part is searched for the first picture that is not of it, with which the next part begins.

    Parameters
    ----------
    ticks, key, decoding, longest_pause
        Shape [L], of the shown pictures that have a time: times of presentation; which are key pictures;
        times of decoding, if the file stores them; and the longest step to each that is a mere pause, all in
        ticks.
    step
        Ticks between two pictures.

    Raises
    ------
    VideoError
        There are more than `MAX_PARTS` parts.
    """
    starts = [0]
    while True:
        start = starts[-1]
        part_decoding = None if decoding is None else decoding[start:]
        may_start = _may_start_part(ticks[start:], key[start:], part_decoding, longest_pause[start:], step)
        if not may_start.any():
            return starts
        # The first picture of a part never differs from itself, so that the next part begins behind it.
        n_pictures_of_part = int(np.argmax(may_start))
        starts.append(start + n_pictures_of_part)
        if len(starts) > MAX_PARTS:
            raise VideoError(f"its times start again more than {MAX_PARTS:,} times: join its parts anew")


def _may_start_part(
    ticks: NDArray[np.int64],
    key: NDArray[np.bool_],
    decoding: NDArray[np.int64] | None,
    longest_pause: NDArray[np.int64],
    step: int,
) -> NDArray[np.bool_]:
    """Return which pictures, [L], show that a new part of a joined file has begun, by their times.

    Only the first of these pictures counts: with it the new part begins. Pictures behind it are compared with
    the part before all the same, so that what is returned for them means nothing.

    A new part begins

    - at a key picture that would be shown before a picture decoded before it;
    - at any picture that would be shown before one decoded more than `REORDERED` packets before it;
    - after a step longer than `longest_pause`;
    - at a second key picture with the time of the first picture;
    - where stored times of decoding step back.

    Parameters
    ----------
    ticks, key, decoding, longest_pause
        Shape [L], from the first picture of a part on, in decoding order: times of presentation; which are
        key pictures; times of decoding, if the file stores them; and the longest step to each that is a mere
        pause, all in ticks.
    step
        Ticks between two pictures.
    """
    latest = np.maximum.accumulate(ticks)  # latest time of each picture and those before it
    latest_before = _delayed(latest, 1, first=ticks[0])  # of the pictures before each
    latest_long_before = _delayed(latest, REORDERED, first=ticks.min())  # of those `REORDERED` or more before

    is_early_key = key & (ticks < latest_before)
    is_too_early = ticks < latest_long_before
    is_jump = ticks - latest_before > longest_pause
    may_start: NDArray[np.bool_] = is_early_key | is_too_early | is_jump
    if step > 1:  # else ticks are too coarse for the rate, and pictures share them
        is_second_with_first_time = key & (ticks == ticks[0]) & (latest_before == ticks[0])
        is_second_with_first_time[0] = False
        may_start |= is_second_with_first_time
    if decoding is not None:
        steps_back = np.diff(decoding, prepend=decoding[0]) < 0
        may_start |= steps_back
    return may_start


def _delayed(values: NDArray[np.int64], n: int, *, first: np.int64) -> NDArray[np.int64]:
    """Shift an array by `n` places to the right; the first `n` places get the value `first`.

    For example, the values 1, 2, 3 with n = 1 and first = 0 become 0, 1, 2.
    """
    n_first = min(n, len(values))
    return np.concatenate((np.full(n_first, first), values[: len(values) - n_first]))


def correct_outliers(ticks: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """Correct times of pictures that deviate by a few steps from the steady rate of the others, [P].

    They occur in MPEG program streams. A packet of such a stream may hold several small pictures and state
    one time, that of one of them. FFmpeg then gives this time to a picture before that one. Stretches between
    larger jumps of time are corrected separately.

    Parameters
    ----------
    ticks
        Shape [P]: times in decoding order.
    step
        Ticks between two pictures.
    """
    longest_step = (1 + MAX_STEPS_OFF) * step  # the usual step, to a time that is as wrong as possible
    is_jump = np.abs(np.diff(ticks)) > longest_step
    stretch_starts = 1 + np.flatnonzero(is_jump)
    stretches = np.split(ticks, stretch_starts)
    return np.concatenate([_correct_stretch(stretch, step) for stretch in stretches])


def _correct_stretch(ticks: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """Replace outliers among times that rise at a steady rate by the times that fit those around them.

    Each time is compared with a straight line, which rises by a step from picture to picture. With a step of
    10, the times 0, 10, 29, 30, 40 have the offsets 0, 0, 9, 0, 0 from it. The median of the offsets around
    29 (`IN_A_PACKET` before and behind) is 0. So 29 is wrong by 9, and becomes 20.

    The step is that of the stated rate, or of the stretch's own rate if that is higher.

    Parameters
    ----------
    ticks
        Shape [N]: times in decoding order.
    step
        Ticks between two pictures by the stated rate.
    """
    if len(ticks) > 1:
        step = min(step, int(np.median(np.diff(ticks))))
    offsets = ticks - step * np.arange(len(ticks))  # from a line with this slope

    # Behind a time that is too high, or at one that is too low, the offset falls. So only the times around
    # such falls need to be compared with their neighbours, which is slow.
    is_fall = np.diff(offsets) < 0
    suspects = np.unique(_positions_around(np.flatnonzero(is_fall), len(ticks)))

    corrected = ticks.copy()
    n_blocks = 1 + len(suspects) // MAX_AT_ONCE
    for block in np.array_split(suspects, n_blocks):
        wrong_by = offsets[block] - _median_offsets_around(offsets, block)
        # An estimate is wrong by a few steps at most: larger deviations have other causes.
        may_be_corrected = abs(wrong_by) <= MAX_STEPS_OFF * step
        corrected[block] -= np.where(may_be_corrected, wrong_by, 0)
    return corrected


def _median_offsets_around(offsets: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for some pictures, the median offset of the pictures around each, [N].

    Around a picture are itself, `IN_A_PACKET` (50) pictures before and 50 behind it: 101, an odd number, so
    that the median is one of their offsets, a whole number.

    Parameters
    ----------
    offsets
        Shape [P]: by how many ticks the time of each picture is above that of a steady rate.
    positions
        Shape [N]: positions in `offsets` of the pictures that are asked about.
    """
    offsets_around = offsets[_positions_around(positions, len(offsets))]  # [N, 2 * IN_A_PACKET + 1]
    middle = IN_A_PACKET  # in order, as many are before it as behind it
    median: NDArray[np.int64] = np.sort(offsets_around, axis=1)[:, middle]
    return median


def _positions_around(positions: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return for each position the positions around it, up to `IN_A_PACKET` before and behind.

    Parameters
    ----------
    positions
        Shape [N]: positions in an array.
    n
        Length of the array: positions before 0 become 0, and those behind n - 1 become n - 1.

    Returns
    -------
    NDArray
        Shape [N, 2 * IN_A_PACKET + 1].
    """
    steps = np.arange(-IN_A_PACKET, IN_A_PACKET + 1)
    around: NDArray[np.int64] = (positions[:, None] + steps).clip(0, n - 1)
    return around
