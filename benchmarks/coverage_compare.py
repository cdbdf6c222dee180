"""Measure how often intervals of groups of films and of trends hold the truth, on simulated and real films.

A part of `coverage.py` (some minutes of CPU). Estimates and intervals are those of `film compare`. Seeds
are fixed. Films are drawn, with replacement, from a population whose truth is known; in some of them
windows are drawn and their labels given to the estimator. Simulated films and their calibrated models are
those of `coverage_share.py`; their share rises with a number from -4.5 to 4.5, and the groups are its two
signs.

Of MObyGaze's 20 films (second annotator, "Sure", windows of 46 s) every second window's label is hidden.
The model is a logistic regression on the labels of the two neighbours, fitted on shown windows alone; the
truth is that of the hidden ones. A poor model is the same with noise of 2 logits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from coverage_share import KINDS, SCENE, Kind, corpus, film
from measure import show
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from obygaze_film.comparison import (
    LEAST_FILMS,
    LEAST_OF_TREND,
    FilmSample,
    RateEstimate,
    estimate_groups,
    estimate_slope,
    sample_of,
)
from obygaze_film.judged_rate import Cells
from obygaze_models.prediction.calibration import Calibration
from obygaze_studies.mobygaze import import_mobygaze

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

N_POPULATION, WINDOW_S = 1000, 46.0

DESIGNS = ((20, 5, 20), (20, 10, 10), (20, 10, 40), (20, 20, 20), (60, 10, 40), (60, 30, 10), (200, 20, 20),
           (200, 60, 10))  # fmt: skip
"""Films, judged films, judged windows in each."""

REAL = ((20, 10, 20), (40, 10, 40), (40, 20, 10), (100, 30, 20))


@dataclass(frozen=True)
class Population:
    """Films: cells with the model's probabilities, labels of the cells, and the number of the trend."""

    cells: list[Cells]
    labels: list[Floats]
    x: Floats

    @property
    def truths(self) -> tuple[float, ...]:
        """Compute the mean, those of the two groups, their difference, and the slope."""
        rates = np.array([y.mean() for y in self.labels])
        low, high = rates[self.x <= 0].mean(), rates[self.x > 0].mean()
        return rates.mean(), low, high, high - low, np.polyfit(self.x, rates, 1)[0]


def cells_with(p: Floats) -> Cells:
    """Make the cells of a film from a model's probabilities."""
    seconds = np.full(len(p), WINDOW_S)
    return Cells(np.zeros((len(p), 2)), seconds, seconds, p)


def simulated(kind: Kind) -> Population:
    """Draw a population of films, and calibrate the model on 30 others."""
    rng = np.random.default_rng(0)
    y, scores, film_of = corpus(rng, kind, 30)
    calibration = Calibration.fit(scores, y, film_of, n_draws=1)
    x = np.arange(float(N_POPULATION)) % 10 - 4.5
    films = [film(rng, replace(kind, share=float(expit(logit(kind.share) + 0.12 * own)))) for own in x]
    p = [np.asarray(calibration.probability(scores[::SCENE])) for _, scores in films]
    return Population([cells_with(own) for own in p], [labels[::SCENE] for labels, _ in films], x)


def mobygaze(folder: Path, noise: float) -> Population:
    """Hide the labels of every second window, and predict them from their neighbours'."""
    marked: dict[str, list[tuple[float, float, bool]]] = {}
    years = {}
    for clip in import_mobygaze(folder, Path()).manifest:
        if clip.annotator == "annotator2" and clip.start_s is not None and clip.end_s is not None:
            marked.setdefault(clip.movie, []).append((clip.start_s, clip.end_s, clip.level == "S"))
            years[clip.movie] = float(clip.extras["year"])
    labels = []
    for movie in sorted(marked):
        spans = np.array(marked[movie])
        seconds = np.zeros(int(spans[:, 1].max()))
        for start, end, is_positive in spans:
            seconds[int(start) : int(end)] = is_positive
        whole = len(seconds) // int(WINDOW_S)
        labels.append((seconds[: whole * int(WINDOW_S)].reshape(whole, -1).mean(axis=1) > 0.5).astype(float))
    shown = [own[::2] for own in labels]
    # A shown window's neighbours are shown too: the second ones, as hidden windows must not be looked at.
    known = LogisticRegression().fit(
        np.concatenate([(own[:-2] + own[2:])[:, None] for own in shown]),
        np.concatenate([own[1:-1] for own in shown]),
    )
    rng = np.random.default_rng(1)
    hidden, cells = [], []
    for own, near in zip(labels, shown, strict=True):
        hidden.append(own[1::2][: len(near) - 1])
        score = known.decision_function((near[:-1] + near[1:])[:, None])
        cells.append(cells_with(expit(score + noise * rng.normal(size=len(score)))))
    year = np.array([years[movie] for movie in sorted(marked)], dtype=np.float64)
    return Population(cells, hidden, year - np.median(year) - 0.5)


def drawn(
    rng: np.random.Generator, films: Population, sides: Sequence[Ints], design: Sequence[int]
) -> tuple[list[FilmSample], Floats]:
    """Draw films from each side in turn, the judged ones first, and windows in the judged ones."""
    n_films, n_judged, n_windows = design
    numbers = [int(rng.choice(sides[place % len(sides)])) for place in range(n_films)]
    samples = []
    for place, number in enumerate(numbers):
        y = films.labels[number]
        own = rng.permutation(len(y))[: n_windows if place < n_judged else 0]
        samples.append(sample_of(films.cells[number], own, y[own]))
    return samples, films.x[numbers]


def row_of(films: Population, design: Sequence[int], n_sets: int) -> dict[str, str]:
    """Draw many corpora by a design; write coverages, widths and how many judgements the model is worth."""
    names = ("mean", "low half", "high half", "difference", "trend")
    every, low, high = (np.flatnonzero(side) for side in (films.x > -np.inf, films.x <= 0, films.x > 0))
    found: dict[str, list[RateEstimate]] = {name: [] for name in names}
    for number in range(n_sets):
        rng = np.random.default_rng((number, *design))
        samples, x = drawn(rng, films, [every], design)
        found["mean"] += estimate_groups([samples])
        if design[1] >= LEAST_OF_TREND:
            found["trend"].append(estimate_slope(samples, x))
        if design[1] >= 2 * LEAST_FILMS:
            samples, x = drawn(rng, films, [low, high], design)
            halves = [
                [one for one, own in zip(samples, x > 0, strict=True) if own == side]
                for side in (False, True)
            ]
            for name, estimate in zip(names[1:3], estimate_groups(halves), strict=True):
                found[name].append(estimate)
            found["difference"].append(estimate_slope(samples, (x > 0).astype(float)))
    row = {}
    for name, truth in zip(names, films.truths, strict=True):
        held = [one.low <= truth <= one.high for one in found[name]]
        row[name] = f"{np.mean(held):.3f}" if held else "refused"
    row["width"] = f"{np.mean([one.high - one.low for one in found['mean']]):.3f}"
    row["worth"] = f"{np.median([one.worth for one in found['mean']]):.2f}"
    return row


def tables(n_sets: int, folder: str = "") -> None:
    """Print the tables of simulated films, and of MObyGaze's if its folder is given."""
    columns = ("films", "judged", "windows")
    kinds = {name: simulated(kind) for name, kind in KINDS.items()}
    rows = [
        {"population": name, **dict(zip(columns, design, strict=True)), **row_of(films, design, n_sets)}
        for name, films in kinds.items()
        for design in DESIGNS
    ]
    show(rows, title="Groups of films: share of 95 % intervals that hold the truth")
    if folder:
        real = {name: mobygaze(Path(folder), noise) for name, noise in (("neighbours", 0.0), ("noisy", 2.0))}
        rows = [
            {"model": name, **dict(zip(columns, design, strict=True)), **row_of(films, design, n_sets)}
            for name, films in real.items()
            for design in REAL
        ]
        show(rows, title="MObyGaze, half of its labels hidden: the same")
