"""Estimate a film's rate from blind judgements; a model, right or wrong, narrows the interval."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Final, Literal

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from obygaze_features.door import decoded
from obygaze_features.io import write_whole
from obygaze_features.lines import json_bytes
from obygaze_features.manifest import SEEN_SCORE, Clip, Manifest, name_hint
from obygaze_features.text import first_few, number_of
from obygaze_film.agreement import kappa, kappa_of
from obygaze_film.cells import Cells, Floats, cells_by, cells_of, inclusion_chances
from obygaze_film.errors import FilmError
from obygaze_film.notes import said
from obygaze_film.schema import (
    UNREADABLE,
    CorrectedRate,
    JudgesAgreement,
    refuse_texts,
)
from obygaze_film.scored_files import RATES, bytes_of
from obygaze_film.timeline import Timeline
from obygaze_models.evaluation import Interval

PLACE: Final = "place"
"""Column of blind judgements: the window's place in its film's random order, from 1."""

MOST_PLACES: Final = 1e9

LEVEL: Final = 0.95
"""Of every interval."""

LEAST: Final = 10
"""Minimum number of blind judgements for a rate, unless the film has fewer windows."""

MOST_PAIRS: Final = 100
"""Pairs of judges whose agreement is computed; of more, so many are drawn."""

MIN_VARIANCE: Final = 1e-12
"""Variance of p below which a model says the same of every cell."""

BISECTIONS: Final = 42

KAPPA_DRAWS: Final = 10_000


def correct_rate(
    timeline: Timeline,
    judgements: Manifest,
    key: str | None = None,
    *,
    labels: Manifest | None = None,
) -> tuple[CorrectedRate, list[str]]:
    """Correct a film's rate by blind judgements of cells that `choose_next` drew.

    Parameters
    ----------
    timeline : Timeline
    judgements : Manifest
        Clips of other films, not drawn blindly, made with the score in sight or drawn after a cell that
        nobody judged are left out. Cells that all judges were not sure of are left out too: the rate refers
        to the others. If several people judged a cell, it has the share of those who call it positive.
    key : str, optional
        The model whose probabilities are corrected; by default the first with logits.
    labels : Manifest, optional
        Labels of the film's windows by one annotator, such as a machine, which are corrected in their place.

    Returns
    -------
    rate : CorrectedRate
    notices : list of str
        What was left out, and why.

    Raises
    ------
    FilmError
        Fewer than 10 cells of this film (all, if it has fewer) were judged blindly, or the judgements are of
        two draws.
    """
    model = timeline.model(key)
    cells, by_cell, notices = judged_cells(timeline, judgements, key)
    n_cells, least = int((cells.content > 0).sum()), least_judged(cells)
    if len(by_cell) < least:
        of = {"movie": timeline.movie, "n": len(by_cell), "least": least}
        raise FilmError(said("rate_few", **of, notices="; ".join(notices) or said("rate_none_out")))
    judged, y, _ = votes(by_cell)
    name, expected = model.key, model.rate.value
    if labels is not None:
        cells, name = cells_by(labels, timeline, key), labels.clips[0].annotator or "labels"
        expected = float(np.average(cells.p, weights=cells.content))
    found = estimate_rate(cells, judged[None], y[None])
    width, alone = float(found.high[0] - found.low[0]), float(found.alone_high[0] - found.alone_low[0])
    agreement, n_pairs = _agreements(by_cell)
    if len(agreement) < n_pairs:
        notices.append(said("note_pairs", n=len(agreement), pairs=f"{n_pairs:,}"))
    rate = CorrectedRate(
        model=name,
        **{end: float(getattr(found, end)[0]) for end in ("value", "low", "high")},
        level=LEVEL,
        method="difference" if found.gain[0] > 0 else "wilson",
        n=len(judged),
        n_positive=int((y > 0.5).sum()),
        n_rows=n_cells,
        # The width of an interval falls with the square root of the number of judgements.
        worth=round(len(judged) * (alone / width) ** 2, 1) if width > 1e-9 else None,
        expected=expected,
        annotators=sorted({name for votes in by_cell.values() for name in votes if name}),
        agreement=agreement,
    )
    return rate, notices


ByCell = dict[int, dict[str, bool]]
"""For each judged cell, whether each annotator calls it positive."""


def drawn_place(clip: Clip) -> int:
    """Read a window's place in its film's random order, as programs write numbers; 0 where there is none."""
    place = number_of(clip.extras.get(PLACE, "").replace(",", "."))
    return int(place) if place.is_integer() and 0 < place < MOST_PLACES else 0


def least_judged(cells: Cells) -> int:
    """Return the minimum number of cells to judge: `LEAST`, or all with content if there are fewer."""
    return min(LEAST, int((cells.content > 0).sum()))


def votes(by_cell: ByCell) -> tuple[NDArray[np.int64], Floats, dict[str, Floats]]:
    """Return the judged cells [n], of each the share of annotators who call it positive, and each's share."""
    judged = np.array(sorted(by_cell), dtype=np.int64)
    each = [by_cell[cell] for cell in judged.tolist()]
    names = sorted({name for own in each for name in own})
    shares = {name: np.array([(name in own) / len(own) for own in each]) for name in names}
    return judged, np.array([np.mean(list(own.values())) for own in each]), shares


def judged_cells(
    timeline: Timeline, judgements: Manifest, key: str | None = None
) -> tuple[Cells, ByCell, list[str]]:
    """Find the cells of a film that were judged blindly, as far as they make up a whole draw.

    Returns
    -------
    cells : Cells
    by_cell : dict
    notices : list of str
        What was left out, and why.

    Raises
    ------
    FilmError
        The judgements are of two draws, or of another codebook.
    """
    model, cells = timeline.model(key), cells_of(timeline, key)
    if unknown := [level for level in model.positive if level not in judgements.codebook.level_names]:
        books = {"codebook": judgements.codebook.name, "expected": model.codebook}
        raise FilmError(said("rate_level", model=model.key, level=unknown[0], **books))
    notices: list[str] = []
    if model.is_trained_on:  # perhaps on these judgements: it is right where they are, not elsewhere
        mean = np.average(cells.p, weights=np.maximum(cells.content, 1e-9))
        cells = replace(cells, p=np.full_like(cells.p, mean))
        notices.append(said("note_trained"))

    def kept(clips: Iterable[Clip], keep: Callable[[Clip], bool], why: str) -> list[Clip]:
        clips = list(clips)
        good = [clip for clip in clips if keep(clip)]
        if lost := len(clips) - len(good):
            notices.append(said("note_left_out", n=lost, s="" if lost == 1 else "s", why=why))
        return good

    found = cache(cells.find)  # many judge the same windows

    def cell_of(clip: Clip) -> int | None:
        return None if clip.start_s is None or clip.end_s is None else found(clip.start_s, clip.end_s)

    named = judgements.spelled_as([timeline.movie])
    others = [f"{name}{name_hint(name, [timeline.movie])}" for name in named.movies if name != timeline.movie]
    why = f"{said('why_film')} ({first_few(others, 3)})"
    own = kept(named, lambda clip: clip.movie == timeline.movie, why)
    own = kept(own, lambda clip: clip.level is not None, said("why_level"))
    own = kept(own, lambda clip: clip.extras.get(SEEN_SCORE) == "0", said("why_seen"))
    own = kept(own, lambda clip: drawn_place(clip) > 0, said("why_place", column=PLACE))
    placed: dict[int, tuple[float | None, float | None]] = {}
    for clip in own:
        place, span = drawn_place(clip), (clip.start_s, clip.end_s)
        if placed.setdefault(place, span) != span:
            of = {"movie": timeline.movie, "clip": clip.clip_id}
            raise FilmError(said("rate_seeds", **of, column=PLACE, place=place))
    gap = next(place for place in count(1) if place not in placed)
    own = kept(own, lambda clip: drawn_place(clip) < gap, said("why_gap", column=PLACE, gap=gap))
    first_s = f"{cells.spans[0, 1]:g}"
    own = kept(own, lambda clip: cell_of(clip) is not None, said("why_grid", seconds=first_s))
    own = kept(own, lambda clip: clip.level in judgements.codebook.labels, said("why_unsure"))
    by_cell: ByCell = {}
    n_twice = 0
    for clip in own:
        if (cell := cell_of(clip)) is not None:
            said_so, is_positive = by_cell.setdefault(cell, {}), clip.level in model.positive
            n_twice += said_so.get(clip.annotator, is_positive) != is_positive
            said_so[clip.annotator] = is_positive
    notices += [said("note_twice", n=n_twice)] * bool(n_twice)
    return cells, by_cell, notices


def _agreements(by_cell: ByCell) -> tuple[list[JudgesAgreement], int]:
    """Compare every two annotators on the cells that both judged; of many pairs, some drawn at random."""
    names = sorted({name for own in by_cell.values() for name in own if name})
    rows = [[own.get(name, np.nan) for _, own in sorted(by_cell.items())] for name in names]
    called = np.array(rows, dtype=np.float64).reshape(len(names), len(by_cell))
    known = ~np.isnan(called)
    pairs = np.argwhere(np.triu(known.astype(np.float64) @ known.T, 1))
    agreements = []
    for pair in pairs[np.sort(np.random.default_rng(0).permutation(len(pairs))[:MOST_PAIRS])]:
        a, b = called[pair][:, known[pair].all(axis=0)] == 1
        found, who = kappa_interval(a, b), [names[judge] for judge in pair]
        told = [None if np.isnan(value) else value for value in (found.mean, found.low, found.high)]
        agreements.append(JudgesAgreement(who, len(a), int((a == b).sum()), *told))
    return agreements, len(pairs)


def kappa_interval(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> Interval:
    """Compute Cohen's kappa of two annotators of the same cells [n] and its 95 % interval.

    The interval is that of the posterior under Jeffreys' prior of the shares of the four pairs of calls. The
    jackknife over cells covers too little of rare calls, and has none where annotators agree on all.
    """
    value = kappa(a, b)
    if np.isnan(value):
        return Interval(value, value, value, len(a), 0)
    pairs = np.bincount(2 * a + b, minlength=4)
    neither, second, first, both = np.random.default_rng(0).dirichlet(pairs + 0.5, KAPPA_DRAWS).T
    low, high = np.quantile(kappa_of(both + first, both + second, both + neither), (0.025, 0.975))
    return Interval(value, min(float(low), value), max(float(high), value), len(a), 0)


class _Rates(Struct, kw_only=True):
    format: Literal["obygaze film rate"]
    number: int
    rates: list[CorrectedRate]


def write_rates(folder: Path, rates: list[CorrectedRate]) -> None:
    """Write corrected rates beside a timeline, for the page."""
    document = _Rates(format="obygaze film rate", number=1, rates=rates)
    write_whole(folder / RATES, json_bytes(msgspec.to_builtins(document)), links=False)  # a stranger's folder


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
        rates = msgspec.json.decode(decoded(bytes_of(path)), type=_Rates)
        refuse_texts(rates)
    except (*UNREADABLE, FilmError) as error:
        raise FilmError(f"{path}: {error}: run 'obygaze film rate' again") from error
    return rates.rates


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


def estimate_rate(cells: Cells, judged: NDArray[np.int64], y: Floats) -> Estimates:
    """Estimate the share of a film's content that is positive from draws of its cells (`Cells.drawn`).

    Cells so large that they are certain to be drawn count by their content, as they were judged; the
    others' share is estimated from those drawn (`difference_estimate`), each of which counts alike, since
    it was drawn in proportion to its content. So is that of certain cells without a judgement, such as those
    of which judges were not sure.

    Parameters
    ----------
    cells : Cells
    judged : ndarray of int, shape [B, n]
        The cells of B draws.
    y : ndarray, shape [B, n]
        Their judgements, 0 to 1.
    """
    chances = inclusion_chances(cells.content, judged.shape[1])
    is_open = chances < 1
    sure = np.where(is_open, 0.0, cells.content / cells.content.sum())[judged]
    known, rest = (sure * y).sum(axis=1), 1 - sure.sum(axis=1)
    if not cells.content[is_open].any():
        known /= 1 - rest  # exactly 1 where all are positive
        return Estimates(known, known, known, np.zeros(len(y)), known, known)
    open_p, seconds = cells.p[is_open], cells.content[is_open]
    mean = float(np.average(open_p, weights=seconds))
    of_open = difference_estimate(
        y, cells.p[judged], is_open[judged], chances[judged],
        film_p=mean, film_variance=float(np.average((open_p - mean) ** 2, weights=seconds)),
    )  # fmt: skip
    names = ("value", "low", "high", "alone_low", "alone_high")
    return replace(of_open, **{name: known + rest * getattr(of_open, name) for name in names})


def difference_estimate(
    y: ArrayLike,
    p: ArrayLike,
    weights: ArrayLike,
    chances: ArrayLike,
    *,
    film_p: float | Floats,
    film_variance: float | Floats,
) -> Estimates:
    """Estimate the positive share of the cells that may be drawn from those that were.

    The difference estimate (Cassel, Särndal and Wretman, Biometrika 1976; prediction-powered inference:
    Angelopoulos et al., Science 2023) of a rate R is the judged cells' mean of y - g p plus g times the
    film's mean of p. It is nearly unbiased for any model and any g; the g with the smallest variance is
    cov(y, p) / V (power tuning: Angelopoulos, Duchi and Zrnic 2023), here within 0 and 1, where V is the
    film's variance of p. It is 0 for a useless model and 1 for a calibrated one.

    The interval is that of a score test: the rates R at most z standard errors from their estimate. A rate R
    gives cov(y, p) = R (1 - R) D, with D the difference of the mean p of judged positives and negatives, and
    the variance R (1 - R) - 2 g cov + g^2 V of y - g p. To each of the two means one cell is added that has
    the mean p of all judged cells: D is 0 without a positive or without a negative. The squared standard
    error is this variance times the sum of (1 - chance) weight^2 (Hájek's finite-population correction). For
    a useless model and equal cells this is Wilson's interval. `benchmarks/planted/films.py` measures coverage
    and width.

    Parameters
    ----------
    y : array-like, shape [B, n]
        Judgements, 0 to 1, of B draws of n cells.
    p : array-like, shape [B, n]
        The model's probabilities of the judged cells.
    weights : array-like, shape [B, n]
        Their weights in a mean, normalised here; 0 for those that are left out.
    chances : array-like, shape [B, n]
        Their chances to be drawn (`inclusion_chances`).
    film_p, film_variance : float or ndarray, shape [B]
        Mean and variance of p over all cells that may be drawn, weighted by content.
    """
    labels, shares, parts, drawn = (
        np.asarray(values, dtype=np.float64) for values in (y, p, weights, chances)
    )
    n = (parts > 0).sum(axis=1)
    parts = parts / parts.sum(axis=1)[:, None]
    c = float(ndtri((1 + LEVEL) / 2)) ** 2 * ((1 - drawn) * parts * parts).sum(axis=1)
    alone = (parts * labels).sum(axis=1)
    mean_p = (parts * shares).sum(axis=1)
    above = (parts * labels * shares).sum(axis=1)
    of_positives = (n * above + mean_p) / (n * alone + 1)
    of_negatives = (n * (mean_p - above) + mean_p) / (n * (1 - alone) + 1)
    variance_p = np.maximum(film_variance, MIN_VARIANCE)
    apart = np.where(variance_p > MIN_VARIANCE, np.maximum(of_positives - of_negatives, 0), 0)

    def gain(rate: Floats) -> Floats:
        return np.asarray(np.clip(rate * (1 - rate) * apart / variance_p, 0, 1))

    def distance(rate: Floats) -> Floats:
        return np.asarray(rate - alone + gain(rate) * (mean_p - film_p))

    def error(rate: Floats) -> Floats:
        spread, g = rate * (1 - rate), gain(rate)
        variance = spread - 2 * g * spread * apart + g * g * variance_p
        return np.asarray(np.sqrt(c * np.maximum(variance, 0)))

    zeros, ones = np.zeros(len(labels)), np.ones(len(labels))
    value = _root(distance, zeros, ones)
    high = _root(lambda rate: distance(rate) - error(rate), value, ones)
    low = _root(lambda rate: distance(rate) + error(rate), zeros, value)
    # Wilson: (alone - R)^2 = c (R - R^2).
    half = np.sqrt(c * alone * (1 - alone) + c * c / 4)
    alone_low, alone_high = (alone + c / 2 - half) / (1 + c), (alone + c / 2 + half) / (1 + c)
    return Estimates(value, low, high, gain(value), alone_low, alone_high)


def _root(function: Callable[[Floats], Floats], below: Floats, above: Floats) -> Floats:
    """Bisect for the roots of a function that is at most 0 at `below` and at least 0 at `above`, [B]."""
    for _ in range(BISECTIONS):
        middle = (below + above) / 2
        is_below = function(middle) <= 0
        below, above = np.where(is_below, middle, below), np.where(is_below, above, middle)
    return np.round((below + above) / 2, 12)
