"""Measure how often the bracket around a film's expected share holds the true share, on simulated films.

A part of `coverage.py` (8 minutes of CPU). Calibration, share, band and bracket are the product's. Seeds are
fixed: the same command prints the same tables.

A film is 300 to 900 windows, five seconds apart. Labels and noise are autoregressions in time, so that
positives come in passages. Films differ in their share of positives, in an offset of all scores, and in how
far positives lie above the others. Models are calibrated on scenes, every fifth window of 6, 12 or 30 films;
then new films are expected, window by window.
"""

from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from coverage_corpora import smooth
from measure import show
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from obygaze_models.prediction.calibration import Calibration

Floats = NDArray[np.float64]
Interval = tuple[float, float]

RHO: Final = 0.95
"""Autocorrelation between neighbouring windows: passages last some 45 s."""

SCENE: Final = 5
"""Windows from one training scene to the next."""

N_NEW: Final = 8
"""New films of each data set."""

N_DRAWS: Final = 30
"""Refits behind the calibration band, fewer than the product's 200 to save time."""

EDGE: Final = 0.02
"""A true share nearer than this to 0 or 1 is in a column of its own."""


@dataclass(frozen=True)
class Kind:
    """One kind of films.

    Attributes
    ----------
    share, spread : float
        Share of positives of the median film, and its SD over films on the logit scale.
    none : float
        Share of films without any positive.
    strength, direction, offset : float
        How far scores of positives lie above the others, its SD over films, and the SD of films' offsets.
    """

    share: float
    spread: float
    none: float
    strength: float
    direction: float
    offset: float


KINDS = {
    "alike": Kind(0.25, 0.0, 0.0, 2.0, 0.0, 0.0),
    "useless model": Kind(0.25, 0.9, 0.0, 0.0, 0.0, 0.5),
    "AUC .83": Kind(0.25, 0.9, 0.0, 1.35, 0.4, 0.5),
    "AUC .95": Kind(0.25, 0.9, 0.0, 2.4, 0.5, 0.5),
    "very unlike": Kind(0.25, 1.6, 0.1, 2.0, 0.6, 1.0),
    "rare": Kind(0.05, 1.0, 0.2, 2.0, 0.4, 0.5),
    "frequent": Kind(0.90, 1.0, 0.0, 2.0, 0.4, 0.5),
}


def film(rng: np.random.Generator, kind: Kind) -> tuple[Floats, Floats]:
    """Draw labels and scores [n] of a film's windows."""
    n = int(600 * rng.uniform(0.5, 1.5))
    share = expit(logit(kind.share) + kind.spread * rng.normal()) * (rng.random() >= kind.none)
    y = (smooth(rng, n, RHO)[:, 0] < ndtri(share)).astype(np.float64)
    reach = kind.strength + kind.direction * rng.normal()
    return y, kind.offset * rng.normal() + reach * y + smooth(rng, n, RHO)[:, 0]


def corpus(rng: np.random.Generator, kind: Kind, n_films: int) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Draw labels, scores and films [N] of the scenes of some films; both labels occur."""
    while True:
        scenes = [tuple(values[::SCENE] for values in film(rng, kind)) for _ in range(n_films)]
        y, scores = (np.concatenate(parts) for parts in zip(*scenes, strict=True))
        if 0 < y.sum() < len(y):
            return y, scores, np.repeat(np.arange(n_films), [len(labels) for labels, _ in scenes])


def of_brackets(n_sets: int) -> None:
    """Print how often the product's bracket and band hold the true share."""
    rows = []
    for (name, kind), n_films in product(KINDS.items(), (6, 12, 30)):
        truth, errors, printed = [], [], []
        intervals: dict[str, list[Interval]] = {"bracket": [], "band": []}
        for number in range(n_sets):
            rng = np.random.default_rng((number, n_films))
            y, scores, film_of = corpus(rng, kind, n_films)
            fitted = Calibration.fit(scores, y, film_of, n_draws=N_DRAWS)
            printed.append(fitted.film_error or 0.0)
            for labels, logits in (film(rng, kind) for _ in range(N_NEW)):
                value, low, high = fitted.expected_share(logits, np.full(len(logits), 5.0))
                truth.append(float(labels.mean()))
                errors.append(value - truth[-1])
                bracket = fitted.bracket(value)
                intervals["bracket"].append((bracket[0] or 0.0, bracket[1] or 0.0))
                intervals["band"].append((low, high))
        row: dict[str, object] = {"films": name, "of training": n_films}
        for rule, ends in intervals.items():
            row |= _cells(rule, np.array(ends), np.array(truth))
        row |= {"mean error": f"{np.abs(errors).mean():.3f}", "bias": f"{np.mean(errors):+.3f}"}
        rows.append({**row, "printed error": f"{np.mean(printed):.3f}"})
    show(rows, title="A film's share: how often the 80 % bracket and the calibration band hold the true one")


def _cells(rule: str, ends: Floats, true: Floats) -> dict[str, str]:
    """Write the share of intervals that hold the truth, their mean width, and the share at the edges."""
    held = (ends[:, 0] <= true) & (true <= ends[:, 1])
    width = np.minimum(ends[:, 1], 1) - np.maximum(ends[:, 0], 0)
    edge = (true < EDGE) | (true > 1 - EDGE)
    near = f"{held[edge].mean():.2f}" if edge.sum() >= 20 else ""
    return {
        f"{rule} holds": f"{held.mean():.3f}",
        f"width of {rule}": f"{width.mean():.2f}",
        f"{rule}, share near 0 or 1": near,
    }


def of_populations(n_sets: int) -> None:
    """Print what a film is expected to have, calibrated on HN and S alone, and on all its levels.

    Films have half EN; S lies 1.2 above HN, EN below it.
    """
    rows = []
    for below in (1.5, 0.5, 0.0):
        found: dict[str, list[float]] = {"true": [], "HN and S": [], "all levels": []}
        for number in range(n_sets):
            rng = np.random.default_rng((number, 7))
            y, scores, film_of = corpus(rng, Kind(0.22, 0.9, 0.0, 1.2, 0.3, 0.3), 12)
            easy = (y == 0) & (rng.random(len(y)) < 0.6)
            scores -= below * easy
            narrow = Calibration.fit(scores[~easy], y[~easy], film_of[~easy], n_draws=1)
            wide = Calibration.fit(scores, y, film_of, n_draws=1)
            labels, logits = film(rng, Kind(0.22, 0.9, 0.0, 1.2, 0.3, 0.3))
            logits = logits - below * ((labels == 0) & (rng.random(len(labels)) < 0.6))
            found["true"].append(float(labels.mean()))
            for name, fitted in (("HN and S", narrow), ("all levels", wide)):
                found[name].append(fitted.expected_share(logits, np.ones(len(logits)))[0])
        shares = {name: f"{100 * np.mean(shares):.1f} %" for name, shares in found.items()}
        rows.append({"EN clips": f"{below} SD below HN"} | shares)
    show(rows, title="Share expected of new films, by the clips calibrated on (mean over films)")


def tables(n_sets: int) -> None:
    """Print every table, from this many data sets a row."""
    of_brackets(n_sets)
    of_populations(n_sets)
