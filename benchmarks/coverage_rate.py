"""Measure how often the interval of a judged rate holds the truth, and how wide it is, on simulated films.

A part of `coverage.py` (about four minutes of CPU). Draws, chances and intervals are those of
`film next --blind` and `film rate`. Seeds are fixed.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from measure import show
from numpy.typing import NDArray
from scipy.special import expit, logit

from obygaze_film.judged_rate import Cells, Estimates, estimate_rate, kappa_interval
from obygaze_film.workspace.anytime import anytime_interval

Floats = NDArray[np.float64]

N_EACH = 20
"""Draws from each film."""

WINDOW_S = 46.0

STEP = 0.001
"""Of the shares that the interval at any time looks at."""

MODELS = ("constant", "AUC .76", "AUC .92", "perfect", "AUC .76, 1.5 logits too high")

Draw = tuple[Estimates, float]
"""Intervals of the draws from a film, and the film's true rate."""


def film(rng: np.random.Generator, n: int, share: float, model: str) -> tuple[Floats, Floats]:
    """Draw labels y of n cells and a model's probabilities p, [n], calibrated unless its name says not."""
    y = rng.permuted(np.arange(n) < max(1, round(share * n))).astype(np.float64)
    if model == "perfect":
        return y, y
    if model == "constant":
        return y, np.full(n, y.mean())
    quality = 2.0 if ".92" in model else 1.0
    score = quality * (y - 0.5) + rng.normal(size=n)
    return y, expit(quality * score + logit(y.mean()) + 1.5 * ("too high" in model))


def by_content(name: str, y: Floats, p: Floats, seconds: Floats, n: int) -> Draw:
    """Estimate a film's rate by draws in proportion to content, as the commands do."""
    cells = Cells(np.zeros((len(y), 2)), seconds, seconds, p)
    drawn = np.array([cells.drawn(name, seed)[:n] for seed in range(N_EACH)])
    return estimate_rate(cells, drawn, y[drawn]), float(np.average(y, weights=seconds))


def figures(draws: list[Draw]) -> tuple[float, float, float, float]:
    """Compute coverage, mean width, mean width of judgements alone, and bias of draws from several films."""
    holds, width, alone, bias = [], [], [], []
    for found, truth in draws:
        holds.append((found.low <= truth + 1e-9) & (truth <= found.high + 1e-9))
        width.append(found.high - found.low)
        alone.append(found.alone_high - found.alone_low)
        bias.append(found.value - truth)
    return float(np.mean(holds)), float(np.mean(width)), float(np.mean(alone)), float(np.mean(bias))


Lengths = Callable[[np.random.Generator, Floats], Floats]


def longer(times: float) -> Lengths:
    """Make rows as long as shots, a third of them shorter than half the mean, and positive ones longer."""
    return lambda rng, y: 4 * rng.lognormal(0.0, 0.76, len(y)) * np.where(y > 0, times, 1.0)


def few_long(rng: np.random.Generator, y: Floats) -> Floats:
    """Make one row in twenty 120 s and the others 5 s, whatever their label."""
    return np.where(rng.permuted(np.arange(len(y)) < len(y) // 20), 120.0, 5.0)


UNLIKE: dict[str, tuple[Lengths, int, tuple[int, ...]]] = {
    "positive rows 1.5 times as long": (longer(1.5), 600, (30, 60)),
    "2.2 times": (longer(2.2), 600, (30, 60)),
    "3 times": (longer(3.0), 600, (30, 60)),
    "2.2 times, 60 rows": (longer(2.2), 60, (20, 30)),
    "one row in twenty 120 s, others 5 s, 60 rows": (few_long, 60, (20, 30)),
    "the same, 600 rows": (few_long, 600, (30, 60)),
}
"""Films whose rows have unlike lengths: lengths, rows, judged."""


def of_unlike_lengths(n_sets: int) -> None:
    """Print coverage and bias where rows are as unlike as shots: the worst case, as a grid's are alike."""
    rows = []
    for name, (lengths, size, judged) in UNLIKE.items():
        for n in judged:
            draws = []
            for number in range(n_sets):
                rng = np.random.default_rng((number, size, n))
                y, p = film(rng, size, 0.2, "AUC .76")
                seconds = lengths(rng, y)
                draws.append(by_content(f"film {number}", y, p, seconds, n))
            coverage, _, _, bias = figures(draws)
            rows.append((name, n, f"{coverage:.3f}", f"{bias:.3f}"))
    show(rows, ("rows", "judged", "coverage", "bias"), "Rows of unlike length: the 95 % interval")


def of_cells(n_sets: int) -> None:
    """Print coverage and width for cells of a grid, of which one in ten is partly black or credits."""
    rows = []
    for size, judged in ((130, (20, 40, 60)), (26, (10, 20, 24, 25)), (13, (10, 12, 13))):
        for n, share in (
            (n, share) for n in judged for share in ((0.05, 0.2, 0.5) if size == 130 else (0.2,))
        ):
            cells = [f"{n} of {size}", f"{share:g}"]
            for model in MODELS:
                draws = []
                for number in range(n_sets):
                    rng = np.random.default_rng((number, size, n, round(100 * share)))
                    y, p = film(rng, size, share, model)
                    partial = rng.random(size) < 0.1
                    seconds = np.where(partial, rng.uniform(0.5, WINDOW_S, size), WINDOW_S)
                    draws.append(by_content(f"film {number}", y, p, seconds, n))
                coverage, width, alone, _ = figures(draws)
                ratio = f" ({width / alone:.2f})" if alone > 0 else ""
                cells.append(f"{coverage:.3f}, {width:.3f}{ratio}")
            rows.append(tuple(cells))
    title = f"Windows of {WINDOW_S:g} s: coverage, mean width (of that of judgements alone)"
    show(rows, ("judged", "share", *MODELS), title)


def of_kappa(n_sets: int) -> None:
    """Print the coverage of the interval of two judges' kappa; both err in a share of windows."""
    rows, share = [], 0.3
    for n, wrong in ((n, wrong) for n in (20, 40, 60) for wrong in (0.25, 0.1, 0.03)):
        alike = (1 - wrong) ** 2 + wrong**2
        called = share * (1 - wrong) + (1 - share) * wrong
        chance = called**2 + (1 - called) ** 2
        truth = (alike - chance) / (1 - chance)
        held, farthest = [], []
        for number in range(4 * n_sets):
            rng = np.random.default_rng((number, n, round(100 * wrong)))
            y = rng.random(n) < share
            a, b = (y ^ (rng.random(n) < wrong) for _ in range(2))
            found = kappa_interval(a, b)
            held.append(np.nan if np.isnan(found.low) else float(found.low <= truth <= found.high))
            farthest.append(max(abs(found.low), abs(found.high)))
        missing = float(np.isnan(held).mean())
        values = (truth, float(np.nanmean(held)), missing, float(np.nanmax(farthest)))
        rows.append((n, *(f"{value:.3f}" for value in values)))
    headers = ("windows", "kappa", "coverage", "without interval", "end farthest from 0")
    show(rows, headers, "Two judges' kappa: coverage of the 95 % interval")


class Told(NamedTuple):
    """Whether two intervals hold what judges would say of a whole film, and how wide they are."""

    fixed: bool
    """The interval of a fixed number."""

    any_time: bool
    """The one valid at any time, after every judgement."""

    of_films: bool
    """That of a fixed number holds the film's own rate."""

    width: float
    """Of the one at any time."""

    fixed_width: float


def told(number: int, share: float, model: str, *, judges: int = 1, wrong: float = 0.0) -> Told:
    """Let judges, each wrong in a share of windows, judge 40 of a film's 130, and compare with all 130."""
    size, n = 130, 40
    rng = np.random.default_rng((number, size, n, round(100 * share)))
    y, p = film(rng, size, share, model)
    seconds = np.where(rng.random(size) < 0.1, rng.uniform(0.5, WINDOW_S, size), WINDOW_S)
    shown = Cells(np.zeros((size, 2)), seconds, seconds, p)
    drawn = np.array(shown.drawn(f"film {number}", 0)[:n])
    calls = np.mean([np.abs(y - (rng.random(size) < wrong)) for _ in range(judges)], axis=0)
    low, high = anytime_interval(shown, drawn, calls[drawn])
    known = estimate_rate(shown, drawn[None], calls[drawn][None])
    truth = float(np.average(calls, weights=seconds))
    own = float(np.average(y, weights=seconds))
    start, end = float(known.low[0]), float(known.high[0])
    return Told(
        fixed=start <= truth + 1e-9 and truth <= end + 1e-9,
        any_time=low <= truth + STEP and truth <= high + STEP,
        of_films=start <= own + 1e-9 and own <= end + 1e-9,
        width=high - low,
        fixed_width=end - start,
    )


def of_any_time(n_sets: int) -> None:
    """Print how often the interval at any time holds the truth at all of 40 judgements, and its width."""
    rows = []
    for share in (0.05, 0.2, 0.5):
        cells = [f"{share:g}"]
        for model in MODELS:
            mean = Told(*np.mean([told(number, share, model) for number in range(n_sets)], axis=0))
            cells.append(f"{mean.any_time:.3f}, {mean.width:.3f} ({mean.fixed_width:.3f})")
        rows.append(tuple(cells))
    title = "Interval valid at any time, all of 40 judgements: coverage, last width (of a fixed number)"
    show(rows, ("share", *MODELS), title)


JUDGES = {
    "right": (1, 0.0),
    "one, wrong in one of ten": (1, 0.1),
    "two, each wrong in one of ten": (2, 0.1),
}
"""Judges of a window, and the share of windows in which each errs."""


def of_judges(n_sets: int) -> None:
    """Print how often both intervals hold what judges who err would say of the film, and its own rate."""
    rows = []
    for name, (judges, wrong) in JUDGES.items():
        for share in (0.05, 0.2, 0.5):
            films = [
                told(number, share, "AUC .76", judges=judges, wrong=wrong) for number in range(10 * n_sets)
            ]
            mean = Told(*np.mean(films, axis=0))
            rows.append((name, f"{share:g}", *(f"{value:.3f}" for value in mean)))
    headers = ("judges", "share", "40 fixed", "at any time", "the film's own", "width at any time", "fixed")
    show(
        rows,
        headers,
        "Judges who err: coverage of what they would say of the whole film, and of its own rate",
    )


def tables(n_sets: int) -> None:
    """Print every table, of this many films a row."""
    of_unlike_lengths(n_sets)
    of_cells(n_sets)
    of_kappa(n_sets)
    of_any_time(n_sets)
    of_judges(n_sets)
