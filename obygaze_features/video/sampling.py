"""Choose frames by sampling rules: pure functions of the frames' times, without decoding."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked, made_by
from obygaze_features.errors import VideoError

# A span with a smaller share inside the video is probably wrong.
SPAN_COVERED = 0.98
LONG_STEP = 3.0
"""Times the usual step between frames, from which on frames may be missing."""
MOST_LONG_STEPS = 0.02
ENOUGH_STEPS = 20
"""Share of such steps, above which the rate is variable; steps among which one such is none of a rate."""
LONGEST_HOLE_S = 1.0
LARGEST_HOLE = 0.1
"""Seconds, or share, of a span without frames that make it damaged."""

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
        if self.policy in ("uniform", "keyframes") and (self.n is None or self.n < 1):
            raise VideoError(f"at least 1 frame must be asked for, not {self.n}")
        if self.policy == "fps" and not (self.rate is not None and 0 < self.rate < np.inf):
            raise VideoError(f"frames a second must be a number above 0, not {self.rate}")
        if self.policy == "indices" and (not self.indices or min(self.indices) < 0):
            raise VideoError(
                f"at least one frame must be asked for, numbered from 0 on; found {self.indices}"
            )

    def record(self) -> dict[str, object]:
        """Return the rule and its parameters as plain JSON."""
        fields = asdict(self) | {"indices": self.indices and list(self.indices)}
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
    """Take the key frame nearest in time to each frame of `uniform`; cheaper, as only these are decoded."""
    return Sampling("keyframes", n=n)


@checked
def fps(rate: float) -> Sampling:
    """Take the frame nearest to every 1 / rate seconds, from the first frame on."""
    return Sampling("fps", rate=float(rate))


def pairs(n: int, gap_s: float) -> Sampling:
    """Take n / 2 pairs of frames, evenly spread; the frames of a pair are about `gap_s` seconds apart."""
    return Sampling("pairs", n=n, gap_s=gap_s)


@checked
def at(indices: Iterable[int]) -> Sampling:
    """Take exactly these frames, in this order; 0 is the first frame of the whole video, also in a span."""
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
        return len(self.index)

    def need_times(self, purpose: str) -> None:
        """Raise unless every frame has a time, and say what for."""
        if np.isnan(self.time_s).any():
            raise VideoError(f"the file gives no times for its frames, {purpose}")

    @cached_property
    def step_s(self) -> float:
        """Median seconds between frames, 0 for a single frame."""
        return float(np.median(np.diff(self.time_s))) if len(self) > 1 else 0.0

    @property
    def end_s(self) -> float:
        """When the last frame ends: a step after its time, or later if it is held, as slides are."""
        held = self.last_s > LONG_STEP * self.step_s
        return float(self.time_s[-1]) + (self.last_s if held else self.step_s)

    def holes(self) -> NDArray[np.float64]:
        """Find where frames are missing that a steady rate would have: starts and ends in seconds, [H, 2].

        Of variable rates and slide shows, where long steps are usual, nothing is said.
        """
        steps = np.diff(self.time_s)  # NaN where a time is unknown
        usual = self.step_s
        long = np.flatnonzero(steps > LONG_STEP * usual)
        if not usual > 0 or len(long) > max(MOST_LONG_STEPS * len(steps), int(len(steps) >= ENOUGH_STEPS)):
            return np.zeros((0, 2))
        return np.stack([self.time_s[long] + usual, self.time_s[long + 1]], axis=1)

    def within(self, start_s: float | None, end_s: float | None) -> "FrameTimes":
        """Keep the frames shown at start_s or later and before end_s.

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
        inside = (self.time_s >= start) & (self.time_s < end) if start_s is not None else self.time_s < end
        if not inside.any():
            where = f"from {start:g} s on" if end == np.inf else f"between {start:g} and {end:g} s"
            shown = f"its frames are shown from {self.time_s.min():.3f} to {self.time_s.max():.3f} s"
            raise VideoError(f"there is no frame {where}: {shown}")
        key = None if self.key is None else self.key[inside]
        return FrameTimes(self.index[inside], self.time_s[inside], key)

    def overhang(self, start_s: float | None, end_s: float | None) -> str:
        """Return a note if the video ends well before a span; else empty."""
        if end_s is None:
            return ""
        start = start_s or 0.0
        if self.end_s - start >= SPAN_COVERED * (end_s - start):
            return ""
        return f"the span asks for pictures up to {end_s:g} s, but the video ends at {self.end_s:.2f} s"

    def gap(self, start_s: float | None, end_s: float | None, holes: NDArray[np.float64]) -> str:
        """Return a note if holes [H, 2] take more than a second or a tenth of a span; else empty.

        What lies before the first picture is a hole, too.
        """
        first = self.time_s[0]
        step = self.step_s
        start = first if start_s is None else start_s
        end = self.end_s if end_s is None else end_s
        before = [(start, first)] if first - start > LONG_STEP * step else np.zeros((0, 2))
        inside = np.clip(np.concatenate([before, holes]), start, end)
        inside = inside[inside[:, 0] < inside[:, 1]]
        without = float(np.sum(inside[:, 1] - inside[:, 0]))
        if not is_large_hole(without, end - start):
            return ""
        return f"no pictures for {without:.2f} s, from {inside[0, 0]:.2f} to {inside[0, 1]:.2f} s" + (
            f" and {len(inside) - 1} times more" if len(inside) > 1 else ""
        )


def is_large_hole(hole_s: float, span_s: float) -> bool:
    """Tell whether a span without so many seconds of it is damaged."""
    return hole_s > min(LONGEST_HOLE_S, LARGEST_HOLE * span_s)


def choose(sampling: Sampling, frames: FrameTimes) -> NDArray[np.int64]:
    """Choose frames by a rule.

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
        numbers = np.array(sampling.indices, np.int64)
        if len(missing := numbers[~np.isin(numbers, frames.index)]):
            range_found = f"the {len(frames)} from {frames.index[0]} to {frames.index[-1]}"
            raise VideoError(f"frame {missing[0]} is not among {range_found}")
        return numbers
    if sampling.policy == "uniform":
        return frames.index[uniform_positions(len(frames), sampling.n or 0)]
    frames.need_times(f"which sampling by {sampling.policy} needs")
    if sampling.policy == "fps":
        first_s = frames.time_s[0]
        last_s = frames.time_s[-1]
        rate = sampling.rate or 0.0
        times = first_s + np.arange(int((last_s - first_s) * rate + 1e-9) + 1) / rate
        return frames.index[nearest(frames.time_s, times)]
    if sampling.policy == "pairs":
        n_pairs = (sampling.n or 0) // 2
        gap_s = sampling.gap_s or 0.0
        span_s = max(float(frames.time_s[-1] - frames.time_s[0]) - gap_s, 0.0)
        first = nearest(frames.time_s, frames.time_s[0] + (np.arange(n_pairs) + 0.5) / n_pairs * span_s)
        second = nearest(frames.time_s, frames.time_s[first] + gap_s)
        return frames.index[np.stack([first, second], axis=1).ravel()]
    if frames.key is None or not frames.key.any():
        raise VideoError("there is no key frame here to sample")
    times = frames.time_s[uniform_positions(len(frames), sampling.n or 0)]
    return frames.index[frames.key][nearest(frames.time_s[frames.key], times)]


def uniform_positions(length: int, n: int) -> NDArray[np.int64]:
    """Return the positions int(i * length / n) for i = 0 .. n-1, in integer arithmetic."""
    return np.array([i * length // n for i in range(n)], np.int64)


def nearest(sorted_s: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the positions in sorted_s of the values nearest to times; ties go to the earlier value."""
    last = len(sorted_s) - 1
    after = np.searchsorted(sorted_s, times).clip(min(1, last), last)
    before = (after - 1).clip(0)
    chosen: NDArray[np.int64] = np.where(times - sorted_s[before] <= sorted_s[after] - times, before, after)
    return chosen
