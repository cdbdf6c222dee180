"""Estimate a film's rate from blind judgements; a model, right or wrong, narrows the interval."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec
import numpy as np
import pandas as pd
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from obygaze_features.io import json_bytes, write_whole
from obygaze_features.manifest import SEEN_SCORE, Clip, Manifest
from obygaze_film.errors import FilmError
from obygaze_film.rows import SLACK_S
from obygaze_film.schema import NO_CONTENT, CorrectedRate, ModelRecord, durations, has_flag, is_counted
from obygaze_film.timeline import RATES, Timeline

Floats = NDArray[np.float64]

RATE_FORMAT: Final = "obygaze film rate"

DRAW: Final = "draw"
"""Column of judgements that gives the reason why a window was chosen."""

RANDOM: Final = "random"

LEAST: Final = 10
"""Minimum number of blind judgements for a rate."""

MIN_VARIANCE: Final = 1e-12
"""Variance of p below which a model says the same of every window."""

BISECTIONS: Final = 42


def correct_rate(
    timeline: Timeline, judgements: Manifest, key: str | None = None, *, level: float = 0.95
) -> tuple[CorrectedRate, list[str]]:
    """Correct a film's rate by blind judgements of windows that `choose` drew at random.

    Parameters
    ----------
    timeline : Timeline
    judgements : Manifest
        Clips of other films, without a level, not drawn at random or made with the score in sight are left
        out.
    key : str, optional
        The model whose probabilities are corrected; by default the first with logits.
    level : float

    Returns
    -------
    rate : CorrectedRate
    notices : list of str
        What was left out, and why.

    Raises
    ------
    FilmError
        Fewer than 10 windows of this film were judged blindly.
    """
    model = timeline.model(key)
    rows = timeline.rows(key)
    content = rows[~has_flag(rows, *NO_CONTENT)].reset_index(drop=True)
    kept, notices = _blind(timeline, model, judgements)
    places = _places(content, kept)
    lost = sum(row is None for row in places)
    if lost:
        notices.append(f"left out {lost} judgements whose times are no window of this timeline")
    votes: dict[int, list[float]] = {}
    for clip, row in zip(kept, places, strict=True):
        if row is not None:
            votes.setdefault(row, []).append(float(clip.level in model.positive))
    if len(votes) < LEAST:
        raise FilmError(
            f"film {timeline.movie}: {len(votes)} windows were judged blindly, at least {LEAST} are needed: "
            "'obygaze film next FOLDER --blind --n 30' draws some"
        )
    judged = np.array(sorted(votes))
    y = np.array([np.mean(votes[row]) for row in judged.tolist()])
    counted, seconds = is_counted(content), durations(content)
    p = content["p"].to_numpy(dtype=np.float64, copy=True)
    film_p = float(np.average(p[counted], weights=seconds[counted])) if counted.any() else 0.5
    p[~counted] = film_p  # a window without a probability gives no information
    variance = float(np.average((p - film_p) ** 2, weights=seconds))
    estimates = difference_estimate(
        y[None], p[judged][None], seconds[judged][None],
        film_p=film_p, film_variance=variance, n_rows=len(content), level=level,
    )  # fmt: skip
    width = float(estimates.high[0] - estimates.low[0])
    alone = float(estimates.alone_high[0] - estimates.alone_low[0])
    rate = CorrectedRate(
        model=model.key,
        value=float(estimates.value[0]),
        low=float(estimates.low[0]),
        high=float(estimates.high[0]),
        level=level,
        method="difference" if estimates.gain[0] > 0 else "wilson",
        n=len(judged),
        n_positive=int((y > 0.5).sum()),
        n_rows=len(content),
        # The width of an interval falls with the square root of the number of judgements.
        worth=round(len(judged) * (alone / width) ** 2, 1) if width > 0 else None,
        expected=model.rate.value,
        annotators=sorted({clip.annotator for clip in kept if clip.annotator}),
    )
    return rate, notices


def _blind(timeline: Timeline, model: ModelRecord, judgements: Manifest) -> tuple[list[Clip], list[str]]:
    """Keep the blind judgements of a film whose windows were drawn at random."""
    own = [clip for clip in judgements if clip.movie == timeline.movie]
    labels = set(judgements.codebook.labels)
    tests = (
        ("of other films", [clip for clip in judgements if clip.movie != timeline.movie]),
        ("without a level", [clip for clip in own if clip.level is None]),
        ("of a level that is not sure", [c for c in own if c.level is not None and c.level not in labels]),
        ("made with the score in sight, or not saying", [c for c in own if c.extras.get(SEEN_SCORE) != "0"]),
        ("of windows not drawn at random", [c for c in own if c.extras.get(DRAW, RANDOM) != RANDOM]),
    )
    if unknown := [level for level in model.positive if level not in judgements.codebook.level_names]:
        raise FilmError(
            f"model {model.key} calls {unknown[0]!r} positive, which is no level of the judgements' codebook "
            f"{judgements.codebook.name!r}: give judgements with the codebook {model.codebook!r}"
        )
    dropped: set[str] = set()
    notices = []
    for words, clips in tests:
        new = {clip.clip_id for clip in clips} - dropped
        dropped |= new
        if new:
            notices.append(f"left out {len(new)} judgements {words}")
    return [clip for clip in own if clip.clip_id not in dropped], notices


def _places(rows: pd.DataFrame, clips: Iterable[Clip]) -> list[int | None]:
    """Find the row of each judgement by its times."""
    starts, ends = (rows[name].to_numpy(dtype=np.float64) for name in ("start_s", "end_s"))
    rows_found: list[int | None] = []
    for clip in clips:
        if clip.start_s is None or clip.end_s is None:
            rows_found.append(None)
            continue
        same = (np.abs(starts - clip.start_s) <= SLACK_S) & (np.abs(ends - clip.end_s) <= SLACK_S)
        rows_found.append(int(np.argmax(same)) if same.any() else None)
    return rows_found


class _Rates(Struct, kw_only=True):
    format: Literal["obygaze film rate"]
    number: int
    rates: list[CorrectedRate]


def write_rates(folder: Path, rates: list[CorrectedRate]) -> None:
    """Write corrected rates beside a timeline, for the page."""
    document = {"format": RATE_FORMAT, "number": 1, "rates": [msgspec.to_builtins(rate) for rate in rates]}
    write_whole(folder / RATES, json_bytes(document))


def read_rates(folder: Path) -> list[CorrectedRate]:
    """Read the corrected rates of a scored film; empty without judgements.

    Raises
    ------
    FilmError
        The file is damaged; names the field.
    """
    path = folder / RATES
    if not path.is_file():
        return []
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Rates).rates
    except msgspec.MsgspecError as error:
        raise FilmError(f"{path}: {error}: run 'obygaze film rate' again") from error


@dataclass(frozen=True, eq=False, slots=True)
class Estimates:
    """Corrected rates of B draws.

    Attributes
    ----------
    value, low, high : ndarray, shape [B]
    gain : ndarray, shape [B]
        Weight of the model's probabilities, 0 (unused) to 1.
    alone_low, alone_high : ndarray, shape [B]
        Wilson's interval of the judgements alone.
    """

    value: Floats
    low: Floats
    high: Floats
    gain: Floats
    alone_low: Floats
    alone_high: Floats


def difference_estimate(
    y: ArrayLike,
    p: ArrayLike,
    seconds: ArrayLike,
    *,
    film_p: float | Floats,
    film_variance: float | Floats,
    n_rows: int,
    level: float = 0.95,
) -> Estimates:
    """Estimate the share of a film's time that is positive from windows drawn at random without replacement.

    The difference estimate (Cassel, Särndal and Wretman, Biometrika 1976; prediction-powered inference:
    Angelopoulos et al., Science 2023) of a rate R is the judged windows' mean of y - g p plus g times the
    film's mean of p, all weighted by duration. It is unbiased for any model and any g; the g with the
    smallest variance is cov(y, p) / V (power tuning: Angelopoulos, Duchi and Zrnic 2023), here within 0 and
    1, where V is the film's variance of p. It is 0 for a useless model and 1 for a calibrated one.

    The interval is that of a score test: the rates R at most z standard errors from their estimate. A rate R
    gives cov(y, p) = R (1 - R) D, with D the difference of the mean p of judged positives and negatives, and
    the variance R (1 - R) - 2 g cov + g^2 V of y - g p. To each of the two means one window is added that has
    the mean p of all judged windows: D is 0 without a positive or without a negative. For a useless model
    this is Wilson's interval with duration weights and the finite-population correction in the number of
    windows. (Of film.md's rule, Student's t of the plain difference estimate, the coverage is .917 to .998 in
    the simulation of tests/film/test_judge.py, and of this interval .94 to .97.)

    Parameters
    ----------
    y : array-like, shape [B, n]
        Judgements, 0 to 1, of B draws of n windows.
    p : array-like, shape [B, n]
        The model's probabilities of the judged windows.
    seconds : array-like, shape [B, n]
        Their durations.
    film_p, film_variance : float or ndarray, shape [B]
        Mean and variance of p over all windows of the film, weighted by duration.
    n_rows : int
        Windows of the film.
    level : float
    """
    labels, shares, weights = (np.asarray(values, dtype=np.float64) for values in (y, p, seconds))
    n = labels.shape[1]
    total = weights.sum(axis=1)
    weights = weights / total[:, None]
    left = 1 - n / n_rows if n < n_rows else 1e-12
    c = float(ndtri((1 + level) / 2)) ** 2 * left * (weights * weights).sum(axis=1)
    alone = (weights * labels).sum(axis=1)
    mean_p = (weights * shares).sum(axis=1)
    above = (weights * labels * shares).sum(axis=1)
    of_positives = (n * above + mean_p) / (n * alone + 1)
    of_negatives = (n * (mean_p - above) + mean_p) / (n * (1 - alone) + 1)
    variance_p = np.maximum(film_variance, MIN_VARIANCE)
    apart = np.where(variance_p > MIN_VARIANCE, np.maximum(of_positives - of_negatives, 0), 0)

    def gain(rate: Floats) -> Floats:
        tuned: Floats = np.clip(rate * (1 - rate) * apart / variance_p, 0, 1)
        return tuned

    def distance(rate: Floats) -> Floats:
        away: Floats = rate - alone + gain(rate) * (mean_p - film_p)
        return away

    def error(rate: Floats) -> Floats:
        spread, g = rate * (1 - rate), gain(rate)
        variance = spread - 2 * g * spread * apart + g * g * variance_p
        standard_error: Floats = np.sqrt(c * np.maximum(variance, 0))
        return standard_error

    zeros, ones = np.zeros(len(labels)), np.ones(len(labels))
    value = _root(distance, zeros, ones)
    high = _root(lambda rate: distance(rate) - error(rate), value, ones)
    low = _root(lambda rate: distance(rate) + error(rate), zeros, value)
    # Wilson: (alone - R)^2 = c (R - R^2).
    half = np.sqrt(c * alone * (1 - alone) + c * c / 4)
    alone_low, alone_high = (alone + c / 2 - half) / (1 + c), (alone + c / 2 + half) / (1 + c)
    return Estimates(value, low, high, gain(value), np.maximum(alone_low, 0), np.minimum(alone_high, 1))


def _root(function: Callable[[Floats], Floats], below: Floats, above: Floats) -> Floats:
    """Bisect for the roots of a function that is at most 0 at `below` and at least 0 at `above`, [B]."""
    for _ in range(BISECTIONS):
        middle = (below + above) / 2
        is_below = function(middle) <= 0
        below, above = np.where(is_below, middle, below), np.where(is_below, above, middle)
    return np.round((below + above) / 2, 12)
