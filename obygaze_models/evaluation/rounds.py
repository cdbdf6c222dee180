"""Follow a round of annotation: what is done, and who drifts.

Drift is a change of an annotator's calls over the films of a round, against others' calls of these clips. Of
each film the mean difference of an annotator's calls and the others' on the same clips is taken, so that what
films show cancels out; its least-squares slope on the order of films is the drift. Its variance is that of
calls within films. Annotators may also be higher or lower in a film by chance: where films differ around the
lines of all annotators together by more than their calls explain (at .15), the variance is as many times as
large, with Student's t. That is the test of a trend against annotators by films (analysis of variance).
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtri, stdtrit

from obygaze_features.manifest import ORDER, Clip, Manifest, merge_annotators, project
from obygaze_features.manifest.agreement import distances
from obygaze_models.errors import ProtocolError
from obygaze_models.protocol.targets import all_levels, experts_of, find_target

Floats = NDArray[np.float64]

LEVEL = 0.95
UNLIKE = 0.15
"""p of films that differ by more than their clips explain."""
FEWEST = 4
"""Films of a line."""
TINY = 1e-15
"""A variance that is 0."""


@dataclass(frozen=True, slots=True)
class Drift:
    """A change from the first film to the last, with its 95 % interval; NaN of fewer than four films.

    Attributes
    ----------
    films : int
    value, low, high : float
    """

    films: int
    value: float = np.nan
    low: float = np.nan
    high: float = np.nan

    @property
    def is_found(self) -> bool:
        """Whether the interval is without 0."""
        return self.low > 0 or self.high < 0


def drifts(
    annotators: Sequence[tuple[Sequence[Floats], Sequence[float]]], independent: float = 1.0
) -> list[Drift]:
    """Estimate the change of each annotator's mean over films.

    Parameters
    ----------
    annotators : sequence of (films, order)
        Of each film its clips' calls, or their differences from others' calls; and when it was annotated.
    independent : float
        Share of these that are: of differences among k annotators of a film 1 - 1 / k.
    """
    lines = np.array([_line(films, order) for films, order in annotators]).reshape(-1, 5)
    n, change, error, _, _ = lines.T
    n_fitted, _, _, expected, around = lines[np.isfinite(change)].T
    freedom = max(independent * float((n_fitted - 2).sum()), 1.0)
    times = around.sum() / max((n_fitted - 2) @ expected, TINY)
    unlike = chdtrc(freedom, times * freedom) < UNLIKE
    half = error * (stdtrit(freedom, (1 + LEVEL) / 2) * np.sqrt(times) if unlike else ndtri((1 + LEVEL) / 2))
    ends = zip(n.tolist(), change.tolist(), (change - half).tolist(), (change + half).tolist(), strict=True)
    return [Drift(int(films), *values) for films, *values in ends]


def _line(films: Sequence[Floats], order: Sequence[float]) -> tuple[float, ...]:
    """Fit a line through films' means.

    Returns
    -------
    The number of films; the change over them and its error, were films alike; squares of a mean around the
    line, were films alike, and of all means around it. NaN of too few films.
    """
    own = [(values, place) for values, place in zip(films, order, strict=True) if len(values)]
    n = len(own)
    if n < FEWEST or len({place for _, place in own}) < FEWEST:
        return n, np.nan, np.nan, np.nan, np.nan
    means = np.array([values.mean() for values, _ in own])
    sizes = np.array([len(values) for values, _ in own])
    at = np.array([place for _, place in own], dtype=np.float64)
    x, span = at - at.mean(), float(np.ptp(at))
    slope = float(x @ means / (x @ x))
    squares = sum(float(((values - values.mean()) ** 2).sum()) for values, _ in own)
    pooled = max(squares / max(sizes.sum() - n, 1), TINY)
    error = float(np.sqrt(pooled * (x**2 @ (1 / sizes))) / (x @ x)) * span
    around = float(np.sum((means - means.mean() - slope * x) ** 2))
    return n, slope * span, error, pooled * float((1 / sizes).mean()), around


# --- progress
# ---------------------------------------------------------------------------
@dataclass(frozen=True)
class Progress:
    """How far one annotator is.

    Attributes
    ----------
    films, done : list of str
        Assigned, in their order, and annotated, be it in part.
    clips, clips_done : int
        Assigned, and those with a level.
    alone, against : Drift
        Of their calls, and of their calls less the others' mean on the same clips.
    """

    films: list[str]
    done: list[str]
    clips: int
    clips_done: int
    alone: Drift
    against: Drift

    @property
    def to_do(self) -> list[str]:
        """Films that are not annotated yet, in their order."""
        return [film for film in self.films if film not in self.done]


def round_progress(planned: Manifest, annotated: Manifest, task: str | None = None) -> dict[str, Progress]:
    """Compare a round with what was annotated.

    Parameters
    ----------
    planned : Manifest
        As `obygaze_features.manifest.assign` makes it.
    annotated : Manifest
        Rows of annotators: of the round's clips, or free segments, which are projected onto them.
    task : str, optional
        What a call is, by name (`find_target`); by default a level's place, the lowest 0 and the highest 1.

    Returns
    -------
    dict of str to Progress
        By annotator, those of the round alone.

    Raises
    ------
    ProtocolError
        A clip of the first manifest has no number in the column `order`, or an annotator's films and numbers
        do not go together.
    """
    numbered = list[tuple[int, Clip]]()
    for clip in planned.clips:
        place = clip.extras.get(ORDER, "")
        if not (digits := re.fullmatch(r"(\d{1,9})(?:[.,]0+)?", place, re.ASCII)):  # 1.0 of a data frame
            raise ProtocolError(
                f"clip {clip.clip_id!r} of {clip.annotator!r}: {ORDER} {place!r:.20} is no number of a film: "
                "make the round with 'obygaze manifest assign'"
            )
        numbered.append((int(digits[1]), clip))
    numbers = {(clip.annotator, clip.movie, number) for number, clip in numbered}
    for part, what in ((1, "has two numbers"), (2, "is of two films")):
        (who, name), n = Counter((each[0], each[part]) for each in numbers).most_common(1)[0]
        if n > 1:
            raise ProtocolError(f"{ORDER}: {name!r} of {who!r} {what}: they are of two rounds, or edited")
    clips = merge_annotators(planned.with_clips(replace(clip, extras={}) for clip in planned))
    labelled = annotated.with_clips(replace(clip, extras={}) for clip in annotated if clip.level is not None)
    done = {(clip.annotator, clip.movie) for clip in labelled}
    if not {clip.clip_id for clip in labelled} <= {clip.clip_id for clip in clips}:
        labelled = project(labelled, clips, per_annotator=True).manifest
    by_expert = experts_of(labelled, clips) if done else {}
    judged = {(clip.annotator, clip.clip_id) for clip in labelled if clip.level is not None}
    target, places = all_levels(annotated.codebook), distances(annotated.codebook)[0]
    if task is not None:
        target = find_target(task, annotated.codebook)
        places = np.arange(target.n_classes, dtype=np.float64)
    places = np.append(places, np.nan)  # of what is not asked
    calls = {name: places[target.of(labels)] for name, labels in by_expert.items()}
    movies = np.array([clip.movie for clip in clips])
    orders: dict[str, dict[str, int]] = {clip.annotator: {} for clip in planned}
    for number, clip in sorted(numbered, key=lambda each: each[0]):
        orders[clip.annotator][clip.movie] = number
    none = np.full(len(clips), np.nan)
    own = np.array([calls.get(name, none) for name in dict.fromkeys([*orders, *calls])])
    n = np.isfinite(own).sum(axis=0)
    against = np.where(n > 1, (own * n - np.nansum(own, axis=0)) / np.maximum(n - 1, 1), np.nan)

    def films(name: str, values: Floats) -> tuple[list[Floats], list[int]]:
        each = [values[(movies == film) & np.isfinite(values)] for film in orders[name]]
        return each, [*orders[name].values()]

    independent = float((1 - 1 / n[n > 1]).mean()) if (n > 1).any() else 1.0
    of_others = drifts([films(name, row) for name, row in zip(orders, against, strict=False)], independent)
    found = {}
    for name, values, change in zip(orders, own, of_others, strict=False):
        begun = [film for film in orders[name] if (name, film) in done]
        assigned = [clip.clip_id for clip in planned if clip.annotator == name]
        clips_of = len(assigned), sum((name, clip_id) in judged for clip_id in assigned)
        alone = drifts([films(name, values)])[0]
        found[name] = Progress([*orders[name]], begun, *clips_of, alone, change)
    return found
