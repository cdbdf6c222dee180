"""Choose frames by sampling rules: pure functions of the frames' times, without decoding."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked, made_by
from obygaze_features.errors import VideoError

SPAN_COVERED = 0.98
"""Share of a span that must lie inside the video: with less, the span is probably wrong."""
LONG_STEP = 3.0
"""Times the usual step between frames above which frames may be missing."""
MAX_LONG_STEPS = 0.02
"""Share of long steps above which the rate is variable, so that long steps tell nothing."""
ENOUGH_STEPS = 20
"""Steps from which on one long step, whatever its share, does not make the rate variable."""
LONGEST_HOLE_S = 1.0
"""Seconds without frames above which a span is damaged."""
LARGEST_HOLE = 0.1
"""Share of a span without frames above which it is damaged."""
MAX_SAMPLED_FRAMES = 1 << 22
"""Frames that are sampled of a clip at most: all of 46 hours at 25 a second."""
EQUALLY_NEAR_S = 1e-6
"""Seconds by which the distances of two frames may differ that are equally near to a time.

Floats are inexact, and at 25 pictures a second every second of the times 0.5 s apart lies between two frames.
"""
ROUNDING = 1e-9
"""Added before rounding down, so that a product that floats make slightly too small keeps its whole
number."""

Span: TypeAlias = tuple[float | None, float | None]
"""Start, inclusive, and end, exclusive, in seconds of the player's clock; None leaves a side open."""


@made_by("uniform(N)")
@dataclass(frozen=True, slots=True)
class Sampling:
    """A named rule to choose frames, made by `uniform`, `fps`, `keyframes`, `pairs` or `at`.

    Parameters
    ----------
    policy
        Name of the rule.
    n
        Number of frames, for ``uniform``, ``keyframes`` and ``pairs``.
    rate
        Frames per second, for ``fps``.
    indices
        Frame numbers, for ``indices``.
    gap_s
        Seconds between the frames of a pair, for ``pairs``.
    """

    policy: Literal["uniform", "fps", "keyframes", "indices", "pairs"]
    n: int | None = None
    rate: float | None = None
    indices: tuple[int, ...] | None = None
    gap_s: float | None = None

    def __post_init__(self) -> None:
        """Raise a VideoError if a parameter of the rule is missing or out of range."""
        takes_n_frames = self.policy in ("uniform", "keyframes")
        if takes_n_frames and (self.n is None or self.n < 1):
            raise VideoError(f"at least 1 frame must be asked for, not {self.n}")
        if self.n is not None:
            _refuse_too_many(self.n)
        if self.policy == "fps":
            is_positive = self.rate is not None and 0 < self.rate < np.inf
            if not is_positive:
                raise VideoError(f"frames a second must be a number above 0, not {self.rate}")
        if self.policy == "indices" and (not self.indices or min(self.indices) < 0):
            raise VideoError(
                f"at least one frame must be asked for, numbered from 0 on; found {self.indices}"
            )

    def record(self) -> dict[str, object]:
        """Return the rule and its parameters as plain JSON."""
        fields = asdict(self)
        if self.indices is not None:
            fields["indices"] = list(self.indices)
        return {name: value for name, value in fields.items() if value is not None}


@checked
def uniform(n: int) -> Sampling:
    """Take n evenly spaced frames: frame int(i * L / n) of L, for i = 0 .. n-1 (the published rule).

    Examples
    --------
    >>> from obygaze_features import uniform
    >>> uniform(32).record()
    {'policy': 'uniform', 'n': 32}
    """
    return Sampling("uniform", n=n)


@checked
def keyframes(n: int) -> Sampling:
    """Take the key frame nearest in time to each frame of `uniform`.

    This is cheaper, because only key frames are decoded.
    """
    return Sampling("keyframes", n=n)


@checked
def fps(rate: float) -> Sampling:
    """Take the frames nearest to times that are 1 / rate seconds apart, from the first frame on."""
    return Sampling("fps", rate=float(rate))


def pairs(n: int, gap_s: float) -> Sampling:
    """Take n / 2 pairs of frames, evenly spread; the frames of a pair are about `gap_s` seconds apart."""
    return Sampling("pairs", n=n, gap_s=gap_s)


@checked
def at(indices: Iterable[int]) -> Sampling:
    """Take exactly the frames with these indices, in this order.

    Indices are counted from the first frame of the whole video, also if only a span is read.
    """
    return Sampling("indices", indices=tuple(int(index) for index in indices))


@dataclass(frozen=True)
class FrameTimes:
    """The frames of a video in display order.

    Parameters
    ----------
    index
        Shape [L]: number of each frame in the whole video.
    time_s
        Shape [L]: presentation time in seconds; NaN where the file does not state it.
    key
        Shape [L]: whether it is a key frame; None if only decoding shows it.
    last_s
        Seconds that the last frame is shown, where the file states it.
    """

    index: NDArray[np.int64]
    time_s: NDArray[np.float64]
    key: NDArray[np.bool_] | None
    last_s: float = 0.0

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self.index)

    def need_times(self, purpose: str) -> None:
        """Raise a VideoError unless the file states a time for every frame.

        Parameters
        ----------
        purpose
            What the times are needed for, such as "which shots need": the end of the error's sentence.
        """
        if np.isnan(self.time_s).any():
            raise VideoError(f"the file gives no times for its frames, {purpose}")

    @cached_property
    def step_s(self) -> float:
        """Median seconds between frames, 0 for a single frame."""
        return float(np.median(np.diff(self.time_s))) if len(self) > 1 else 0.0

    @property
    def end_s(self) -> float:
        """When the last frame ends, in seconds.

        It is shown as long as frames usually are (`step_s`). The container may state a duration of its own
        for it (`last_s`), which counts only if it is much longer, as that of a slide: small differences are
        rounding.
        """
        is_held = self.last_s > LONG_STEP * self.step_s
        length_of_last_s = self.last_s if is_held else self.step_s
        return float(self.time_s[-1]) + length_of_last_s

    def holes(self) -> NDArray[np.float64]:
        """Find the holes in a video of steady rate: starts and ends, in seconds, of where frames are missing.

        A step between two frames is long if it is more than `LONG_STEP` times the usual one. If only few
        steps are long, frames are missing there. If more than a share of them is (`MAX_LONG_STEPS`), the
        video has a variable rate, or is a slide show: then there are no holes.

        Returns
        -------
        NDArray
            Shape [H, 2].
        """
        no_holes = np.zeros((0, 2))
        usual_step_s = self.step_s
        if not usual_step_s > 0:  # also where it is NaN, because a time is unknown
            return no_holes

        steps_s = np.diff(self.time_s)
        frames_before_long_steps = np.flatnonzero(steps_s > LONG_STEP * usual_step_s)
        max_long_steps = MAX_LONG_STEPS * len(steps_s)
        if len(steps_s) >= ENOUGH_STEPS:
            # One long step of, say, 30 is more than the share, and no sign of a variable rate all the same.
            max_long_steps = max(max_long_steps, 1)
        has_variable_rate = len(frames_before_long_steps) > max_long_steps
        if has_variable_rate:
            return no_holes

        starts_s = self.time_s[frames_before_long_steps] + usual_step_s
        ends_s = self.time_s[frames_before_long_steps + 1]
        return np.stack([starts_s, ends_s], axis=1)

    def within(self, start_s: float | None, end_s: float | None) -> "FrameTimes":
        """Return the frames that are shown in a time span: at `start_s` or later and before `end_s`.

        Parameters
        ----------
        start_s, end_s
            The span in seconds; None leaves a side open.

        Raises
        ------
        VideoError
            The span is empty, or lies outside the video, or the frames have no times.
        """
        if start_s is None and end_s is None:
            return self
        start = 0.0 if start_s is None else start_s
        end = np.inf if end_s is None else end_s
        if not start < end:
            raise VideoError(f"the span must start before it ends; found {start:g} to {end:g} s")
        self.need_times("so no span of it can be found")

        is_inside = self.time_s < end
        if start_s is not None:  # else frames before 0 s are inside, too
            is_inside &= self.time_s >= start
        if not is_inside.any():
            location = f"from {start:g} s on" if end == np.inf else f"between {start:g} and {end:g} s"
            shown = f"its frames are shown from {self.time_s.min():.3f} to {self.time_s.max():.3f} s"
            raise VideoError(f"there is no frame {location}: {shown}")

        key = None if self.key is None else self.key[is_inside]
        return FrameTimes(self.index[is_inside], self.time_s[is_inside], key)

    def overhang(self, start_s: float | None, end_s: float | None) -> NDArray[np.float64]:
        """Find the part of a span behind the video's end, if the video covers less than `SPAN_COVERED` of it.

        Parameters
        ----------
        start_s, end_s
            The span in seconds; None leaves a side open.

        Returns
        -------
        NDArray
            Shape [1, 2]: from the end of the video to the end of the span, in seconds. Shape [0, 2] if the
            video covers enough of the span. Either can be joined to the stretches of `gaps`.
        """
        no_overhang = np.zeros((0, 2))
        if end_s is None:
            return no_overhang
        start = start_s or 0.0
        covered_s = self.end_s - start
        if covered_s >= SPAN_COVERED * (end_s - start):
            return no_overhang
        return np.array([[max(start, self.end_s), end_s]])

    def gaps(
        self, start_s: float | None, end_s: float | None, holes: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Find the stretches of a span without pictures, if together they are too long (`is_large_hole`).

        Parameters
        ----------
        start_s, end_s
            The span, in seconds; None leaves a side open.
        holes
            Shape [H, 2]: starts and ends of holes, in the order of time. The time before the first picture is
            added to them.

        Returns
        -------
        NDArray
            Shape [G, 2]: starts and ends, in the order of time.
        """
        first_s = self.time_s[0]
        start = first_s if start_s is None else start_s
        end = self.end_s if end_s is None else end_s
        begins_long_before_pictures = first_s - start > LONG_STEP * self.step_s
        if begins_long_before_pictures:
            before_pictures = np.array([(start, first_s)])  # [1, 2]
            holes = np.concatenate([before_pictures, holes])

        clipped = np.clip(holes, start, end)
        overlaps_span = clipped[:, 0] < clipped[:, 1]  # a hole outside of the span has no length now
        gaps = clipped[overlaps_span]  # [G, 2]

        missing_s = float(np.sum(gaps[:, 1] - gaps[:, 0]))
        no_gaps = np.zeros((0, 2))
        return gaps if is_large_hole(missing_s, end - start) else no_gaps


def _refuse_too_many(n_frames: float) -> None:
    """Raise a VideoError if a rule asks for more than `MAX_SAMPLED_FRAMES` frames of a clip."""
    if n_frames > MAX_SAMPLED_FRAMES:
        raise VideoError(
            f"at most {MAX_SAMPLED_FRAMES:,} frames of a clip are sampled: the rule asks for {n_frames:,.0f}"
        )


def describe_gaps(gaps: NDArray[np.float64]) -> str:
    """Return a note on the stretches without pictures [G, 2] that `FrameTimes.gaps` found; empty for none."""
    if not len(gaps):
        return ""
    missing_s = float(np.sum(gaps[:, 1] - gaps[:, 0]))
    note = f"no pictures for {missing_s:.2f} s, from {gaps[0, 0]:.2f} to {gaps[0, 1]:.2f} s"
    if len(gaps) > 1:
        note += f" and {len(gaps) - 1} times more"
    return note


def describe_overhang(overhang: NDArray[np.float64]) -> str:
    """Return a note on the end of a span [1, 2] that `FrameTimes.overhang` found; empty for none [0, 2].

    Examples
    --------
    >>> describe_overhang(np.array([[9.5, 12.0]]))
    'the span asks for pictures up to 12 s, but the video ends at 9.50 s'
    >>> describe_overhang(np.empty((0, 2)))
    ''
    """
    if not len(overhang):
        return ""
    video_end_s, span_end_s = overhang[0]
    return f"the span asks for pictures up to {span_end_s:g} s, but the video ends at {video_end_s:.2f} s"


def is_large_hole(hole_s: float, span_s: float) -> bool:
    """Return whether a span of `span_s` seconds is damaged if `hole_s` seconds of it have no frames.

    It is if these are more than a second, or more than a tenth of a short span.
    """
    return hole_s > min(LONGEST_HOLE_S, LARGEST_HOLE * span_s)


def choose(sampling: Sampling, frames: FrameTimes) -> NDArray[np.int64]:
    """Choose frames of a video or a time span by a sampling rule, such as 32 evenly spaced frames.

    Besides the rules that people may give, there is `pairs`, for backbones that measure motion.

    Parameters
    ----------
    sampling
        The rule.
    frames
        The available frames in display order: a whole video or a span.

    Returns
    -------
    NDArray[np.int64]
        Shape [F]: numbers in the whole video; some repeat if there are fewer than F frames.

    Raises
    ------
    VideoError
        A requested frame does not exist, or the rule needs times or key frames that are unknown.
    """
    if sampling.policy == "indices":
        return _existing(sampling.indices or (), frames)
    if sampling.policy == "uniform":
        return frames.index[uniform_positions(len(frames), sampling.n or 0)]
    frames.need_times(f"which sampling by {sampling.policy} needs")
    if sampling.policy == "fps":
        return _at_rate(sampling.rate or 0.0, frames)
    if sampling.policy == "pairs":
        return _pairs(sampling.n or 0, sampling.gap_s or 0.0, frames)
    return _near_keyframes(sampling.n or 0, frames)


def _existing(indices: tuple[int, ...], frames: FrameTimes) -> NDArray[np.int64]:
    """Return frame numbers as an array [F], after checking that all of these frames exist.

    Raises
    ------
    VideoError
        One does not exist.
    """
    existing_numbers = {*frames.index.tolist()}
    for number in indices:
        if number not in existing_numbers:
            existing = f"the {len(frames)} from {frames.index[0]} to {frames.index[-1]}"
            raise VideoError(f"frame {number} is not among {existing}")
    return np.array(indices, np.int64)


def _at_rate(rate: float, frames: FrameTimes) -> NDArray[np.int64]:
    """Choose `rate` frames of each second: the frames nearest to times that are 1 / rate seconds apart.

    Returns their numbers, [F].
    """
    first_s = frames.time_s[0]
    last_s = frames.time_s[-1]
    _refuse_too_many((last_s - first_s) * rate + 1)
    # Floats may make a product slightly too small: it is raised a little before it is rounded down.
    n_steps = int((last_s - first_s) * rate + ROUNDING)
    times_s = first_s + np.arange(n_steps + 1) / rate
    return frames.index[nearest(frames.time_s, times_s)]


def _pairs(n: int, gap_s: float, frames: FrameTimes) -> NDArray[np.int64]:
    """Choose n / 2 pairs of frames about `gap_s` seconds apart, evenly spread over the video or span.

    The time is divided into equal shares, and a pair begins in the middle of each.

    Returns
    -------
    NDArray[np.int64]
        Shape [n]: numbers of the frames: those of the first pair, then those of the second, and so on.
    """
    n_pairs = n // 2
    duration_s = float(frames.time_s[-1] - frames.time_s[0])
    span_s = max(duration_s - gap_s, 0.0)  # in which pairs begin, so that the last one ends in time
    middles = (np.arange(n_pairs) + 0.5) / n_pairs  # of the shares, from 0 to 1
    first_positions = nearest(frames.time_s, frames.time_s[0] + middles * span_s)
    second_positions = nearest(frames.time_s, frames.time_s[first_positions] + gap_s)
    pairs_of_positions = np.stack([first_positions, second_positions], axis=1)
    return frames.index[pairs_of_positions.ravel()]


def _near_keyframes(n: int, frames: FrameTimes) -> NDArray[np.int64]:
    """Choose the key frames nearest in time to n evenly spaced frames; return their numbers, [n].

    Raises
    ------
    VideoError
        There is no key frame, or it is not known which frames are.
    """
    if frames.key is None or not frames.key.any():
        raise VideoError("there is no key frame here to sample")
    times_s = frames.time_s[uniform_positions(len(frames), n)]
    positions = nearest(frames.time_s[frames.key], times_s)
    return frames.index[frames.key][positions]


def uniform_positions(length: int, n: int) -> NDArray[np.int64]:
    """Return n evenly spaced positions in a list of a length: int(i * length / n) for i = 0 .. n-1.

    They are computed with integers, as floats would round some of them to another position.
    """
    return np.array([i * length // n for i in range(n)], np.int64)


def nearest(sorted_s: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return for each of some times the position of the nearest of sorted times, [F].

    If two are equally near, it is that of the earlier one. For example, of the sorted times 0, 1 and 2 s, the
    positions nearest to 0.2 and 1.5 s are 0 and 1.

    Parameters
    ----------
    sorted_s
        Shape [L]: rising times in seconds.
    times
        Shape [F]: times in seconds.
    """
    # The values before and after each time; for times outside of all values, the first two or the last two.
    last = len(sorted_s) - 1
    first_after = min(1, last)  # 0 if there is one value alone
    after = np.searchsorted(sorted_s, times).clip(first_after, last)
    before = (after - 1).clip(0)
    # Differences of equal size are not equal as floats.
    is_nearer_to_before = times - sorted_s[before] <= sorted_s[after] - times + EQUALLY_NEAR_S
    positions: NDArray[np.int64] = np.where(is_nearer_to_before, before, after)
    return positions
