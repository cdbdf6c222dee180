"""A film's share: expected by a model (`film score`), and judged (`film rate`, the workspace at any time)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import expit, logit, ndtri
from scipy.stats import hypergeom

from benchmarks.planted.corpora import smooth
from benchmarks.planted.row import Cell, Column, Draw, Floats, Row
from benchmarks.planted.worlds import MANYFOLD, TWOFOLD, Content
from obygaze_film.cells import Cells
from obygaze_film.kappa_interval import kappa_interval
from obygaze_film.rate_estimates import estimate_rate
from obygaze_film.workspace.anytime import anytime_interval
from obygaze_models.prediction.calibration import Calibration, few_windows_variance
from obygaze_models.protocol import HeldOut

RHO: Final = 0.95
"""Autocorrelation between neighbouring windows: passages last some 45 s."""

SCENE: Final = 5
"""Windows from one training scene to the next."""

WINDOW_S: Final = 46.0


@dataclass(frozen=True)
class Kind:
    """One kind of films of 300 to 900 windows.

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
    "unlike, useless model": Kind(0.25, 0.9, 0.0, 0.0, 0.0, 0.5),
    "unlike, AUC .83": Kind(0.25, 0.9, 0.0, 1.35, 0.4, 0.5),
    "unlike, AUC .95": Kind(0.25, 0.9, 0.0, 2.4, 0.5, 0.5),
    "very unlike": Kind(0.25, 1.6, 0.1, 2.0, 0.6, 1.0),
    "rare positives": Kind(0.05, 1.0, 0.2, 2.0, 0.4, 0.5),
    "frequent positives": Kind(0.90, 1.0, 0.0, 2.0, 0.4, 0.5),
}


def film(rng: np.random.Generator, kind: Kind) -> tuple[Floats, Floats]:
    """Draw labels and scores [n] of a film's windows: both are autoregressions in time."""
    n = int(600 * rng.uniform(0.5, 1.5))
    share = expit(logit(kind.share) + kind.spread * rng.normal())
    if rng.random() < kind.none:
        share = 0.0
    y = (smooth(rng, n, RHO)[:, 0] < ndtri(share)).astype(np.float64)
    reach = kind.strength + kind.direction * rng.normal()
    return y, kind.offset * rng.normal() + reach * y + smooth(rng, n, RHO)[:, 0]


def scenes(rng: np.random.Generator, kind: Kind, n_films: int) -> tuple[Floats, Floats, np.ndarray]:
    """Draw labels, scores and films [N] of the training scenes of some films; both labels occur."""
    while True:
        labels_of = []
        scores_of = []
        for _ in range(n_films):
            labels, scores = film(rng, kind)
            labels_of.append(labels[::SCENE])
            scores_of.append(scores[::SCENE])
        y = np.concatenate(labels_of)
        if 0 < y.sum() < len(y):
            return y, np.concatenate(scores_of), np.repeat(np.arange(n_films), [*map(len, labels_of)])


def expected(rng: np.random.Generator, kind: Kind, n_films: int) -> Draw:
    """Ask for the bracket and the band of eight new films, 30 refits behind the band in place of 200."""
    y, scores, film_of = scenes(rng, kind, n_films)
    fitted = Calibration.fit(HeldOut(scores, y, film_of), n_draws=30)
    bracket = []
    band = []
    errors = []
    for labels, logits in (film(rng, kind) for _ in range(8)):
        true = float(labels.mean())
        value, *ends = fitted.expected_share(logits, np.full(len(logits), 5.0))
        low, high = fitted.bracket(value)
        bracket.append((low or 0.0) <= true <= (high or 0.0))
        band.append(ends[0] <= true <= ends[1])
        errors.append(value - true)
    return {
        "bracket holds": bracket,
        "band would hold": band,
        "mean error": np.abs(errors),
        "bias": errors,
    }


@dataclass(frozen=True)
class Windows:
    """How the windows of a film go together, which do not overlap.

    Attributes
    ----------
    alike : float
        Autocorrelation between neighbours, of what labels and scores come from.
    guessed : float
        Share of windows whose label is drawn at random, as by a judge who guesses.
    """

    alike: float = 0.0
    guessed: float = 0.0


WINDOWS = {
    "unlike each other": Windows(),
    "half of them guessed": Windows(guessed=0.5),
    "like their neighbours": Windows(alike=RHO**SCENE),
}

N_FEW: Final = 100
"""Clips of a training film where new films have few windows, half as many to half as many more."""


def film_of_windows(rng: np.random.Generator, kind: Kind, n: int, windows: Windows) -> tuple[Floats, Floats]:
    """Draw labels and scores [n] of the windows of a film."""
    share = expit(logit(kind.share) + kind.spread * rng.normal())
    y = (smooth(rng, n, windows.alike)[:, 0] < ndtri(share)).astype(np.float64)
    reach = kind.strength + kind.direction * rng.normal()
    scores = kind.offset * rng.normal() + reach * y + smooth(rng, n, windows.alike)[:, 0]
    guesses = (rng.random(n) < 0.5).astype(np.float64)
    return np.where(rng.random(n) < windows.guessed, guesses, y), scores


def of_few_windows(rng: np.random.Generator, kind: Kind, n: int, windows: Windows) -> Draw:
    """Ask for the bracket of eight new films of n windows, by a model calibrated on 20 films of many."""
    sizes = [int(N_FEW * rng.uniform(0.5, 1.5)) for _ in range(20)]
    known = [film_of_windows(rng, kind, size, windows) for size in sizes]
    y, scores = (np.concatenate(values) for values in zip(*known, strict=True))
    fitted = Calibration.fit(HeldOut(scores, y, np.repeat(np.arange(20), sizes)), n_draws=30)
    holds = []
    narrow_holds = []
    for labels, logits in (film_of_windows(rng, kind, n, windows) for _ in range(8)):
        weights = np.ones(n)
        value, *_ = fitted.expected_share(logits, weights)
        extra = few_windows_variance(fitted.probability(logits), weights, n, float(np.mean(sizes)))
        for found, ends in ((holds, fitted.bracket(value, extra)), (narrow_holds, fitted.bracket(value))):
            found.append(ends[0] <= labels.mean() <= ends[1])
    return {"bracket holds": holds, "without what is added": narrow_holds}


def by_levels(rng: np.random.Generator, below: float) -> Draw:
    """Calibrate on HN and S alone, and on all levels; half of a film is EN, which lies below HN."""
    kind = Kind(share=0.22, spread=0.9, none=0.0, strength=1.2, direction=0.3, offset=0.3)
    y, scores, film_of = scenes(rng, kind, n_films=12)
    easy = (y == 0) & (rng.random(len(y)) < 0.6)
    scores -= below * easy
    labels, logits = film(rng, kind)
    logits = logits - below * ((labels == 0) & (rng.random(len(labels)) < 0.6))
    shares = {"true share": float(labels.mean())}
    for name, rows in (("expected, calibrated on HN and S", ~easy), ("on all levels", easy | True)):
        fitted = Calibration.fit(HeldOut(scores[rows], y[rows], film_of[rows]))
        shares[name] = fitted.expected_share(logits, np.ones(len(logits)))[0]
    return shares


# --- judged
# ---------------------------------------------------------------------------
MODELS: Final = {
    "useless": 0.0,
    "fair: AUC .76": 1.0,
    "good: AUC .92": 2.0,
    "perfect": np.inf,
    "fair, 1.5 logits too high": 1.0,
}


def modelled(rng: np.random.Generator, n: int, share: float, model: str) -> tuple[Floats, Floats]:
    """Draw labels y of n cells and a model's probabilities p, [n], calibrated unless its name says not."""
    y = rng.permuted(np.arange(n) < max(1, round(share * n))).astype(np.float64)
    quality = MODELS[model]
    if quality in (0.0, np.inf):
        return y, y if quality else np.full(n, y.mean())
    score = quality * (y - 0.5) + rng.normal(size=n)
    shift = 1.5 if "too high" in model else 0.0
    return y, expit(quality * score + logit(y.mean()) + shift)


Lengths = Callable[[np.random.Generator, Floats], Floats]


def longer(times: float) -> Lengths:
    """Make rows as long as shots, a third of them shorter than half the mean, and positive ones longer."""
    return lambda rng, y: 4 * rng.lognormal(0.0, 0.76, len(y)) * np.where(y > 0, times, 1.0)


def few_long(rng: np.random.Generator, y: Floats) -> Floats:
    """Make one row in twenty 120 s and the others 5 s, whatever their label."""
    return np.where(rng.permuted(np.arange(len(y)) < len(y) // 20), 120.0, 5.0)


def windows(rng: np.random.Generator, y: Floats) -> Floats:
    """Make windows of a grid, of which one in ten is partly black or credits."""
    return np.where(rng.random(len(y)) < 0.1, rng.uniform(0.5, WINDOW_S, len(y)), WINDOW_S)


def rated(rng: np.random.Generator, size: int, n: int, *, share: float, model: str, lengths: Lengths) -> Draw:
    """Ask `film rate` for a film's rate, from twenty draws of `film next --blind`."""
    y, p = modelled(rng, size, share, model)
    seconds = lengths(rng, y)
    cells = Cells(np.zeros((size, 2)), seconds, seconds, p)
    name = str(rng.integers(2**31))
    drawn = np.array([cells.order_of_draw(name, seed)[:n] for seed in range(20)])
    estimate = estimate_rate(cells, drawn, y[drawn])
    truth = float(np.average(y, weights=seconds))
    width = estimate.high - estimate.low
    alone = estimate.high_without_model - estimate.low_without_model
    return {
        "holds": (estimate.low <= truth + 1e-9) & (truth <= estimate.high + 1e-9),
        "width": width,
        "of that of judgements alone": width.mean() / alone.mean() if alone.mean() > 0 else np.nan,
        "bias": estimate.value - truth,
    }


ANSWERS: Final = {"useless": 0.0, "right": 2.0, "reversed": -2.0}
"""How many logits a model's scores of positives lie above the others."""


@dataclass(frozen=True)
class World:
    """Films of a number of windows, a share of them positive, and how far a model tells these apart."""

    content: Content
    size: int
    share: float
    apart: float

    def draw(self, rng: np.random.Generator) -> tuple[Cells, Floats]:
        """Draw the cells of a film, and their labels [n]."""
        y = rng.permuted(np.arange(self.size) < max(1, round(self.share * self.size))).astype(np.float64)
        seconds = self.content.draw(rng, y)
        p = expit(self.apart * (y - 0.5) + rng.normal(size=self.size) + logit(y.mean()))
        return Cells(np.zeros((self.size, 2)), seconds, seconds, p), y


def by_content(rng: np.random.Generator, world: World, part: float) -> Draw:
    """Ask `film rate` for a film's rate, from twenty draws of a part of its windows."""
    cells, y = world.draw(rng)
    name = str(rng.integers(2**31))
    n = max(10, round(part * world.size))
    drawn = np.array([cells.order_of_draw(name, seed)[:n] for seed in range(20)])
    estimate = estimate_rate(cells, drawn, y[drawn])
    truth = float(np.average(y, weights=cells.content_s))
    return {
        "holds": (estimate.low <= truth + 1e-9) & (truth <= estimate.high + 1e-9),
        "bias": estimate.value - truth,
    }


def by_count(_: np.random.Generator, size: int, n: int) -> Draw:
    """Compute how often an interval of n of some windows alike, without a model, holds each share."""
    counts = np.arange(n + 1)
    y = (np.arange(n)[None] < counts[:, None]).astype(np.float64)
    alike = np.full(size, WINDOW_S)
    cells = Cells(np.zeros((size, 2)), alike, alike, np.full(size, 0.5))
    estimate = estimate_rate(cells, np.tile(np.arange(n), (n + 1, 1)), y)
    holds = []
    widths = []
    for positives in range(round(0.05 * size), round(0.5 * size) + 1):
        chances = hypergeom(size, positives, n).pmf(counts)
        share = positives / size
        holds.append(chances @ ((estimate.low <= share) & (share <= estimate.high)))
        widths.append(chances @ (estimate.high - estimate.low))
    return {"holds the worst share": min(holds), "a share": np.mean(holds), "width": np.mean(widths)}


def at_any_time(rng: np.random.Generator, world: World) -> Draw:
    """Judge all windows of a film at the desk: whether its share was refuted at any time before."""
    cells, y = world.draw(rng)
    order = np.array(cells.order_of_draw(str(rng.integers(2**31)), 0))
    truth = float(np.average(y, weights=cells.content_s))
    low, high = anytime_interval(cells, order, y[order])
    early = anytime_interval(cells, order[:30], y[order[:30]])
    is_held = low - 0.001 <= truth <= high + 0.001
    return {"refuted": not is_held, "width at 30": early[1] - early[0] if world.size > 30 else np.nan}


def on_grid(rng: np.random.Generator, size: int, n: int, share: float, model: str) -> Draw:
    """Rate windows of a grid."""
    return rated(rng, size, n, share=share, model=model, lengths=windows)


def on_shots(rng: np.random.Generator, lengths: Lengths, size: int, n: int) -> Draw:
    """Rate rows of unlike length, the worst case, by a fair model."""
    return rated(rng, size, n, share=0.2, model="fair: AUC .76", lengths=lengths)


def agreed(rng: np.random.Generator, n: int, wrong: float, share: float) -> Draw:
    """Ask for the interval of two judges' kappa, who err in a share of windows; a share is positive."""
    alike = (1 - wrong) ** 2 + wrong**2
    called = share * (1 - wrong) + (1 - share) * wrong
    chance = called**2 + (1 - called) ** 2
    y = rng.random(n) < share
    interval = kappa_interval(*(y ^ (rng.random(n) < wrong) for _ in range(2)))
    truth = (alike - chance) / (1 - chance)
    return {"holds": np.nan if np.isnan(interval.low) else interval.low <= truth <= interval.high}


def told(rng: np.random.Generator, judges: int, wrong: float, share: float) -> Draw:
    """Have judges who err judge 40 of 130 windows: what they would say of all, and the film's own share."""
    size = 130
    n = 40
    y, p = modelled(rng, size, share, "fair: AUC .76")
    seconds = windows(rng, y)
    cells = Cells(np.zeros((size, 2)), seconds, seconds, p)
    drawn = np.array(cells.order_of_draw(str(rng.integers(2**31)), 0)[:n])
    calls = np.mean([np.abs(y - (rng.random(size) < wrong)) for _ in range(judges)], axis=0)
    estimate = estimate_rate(cells, drawn[None], calls[drawn][None], denominator=judges)
    low, high = anytime_interval(cells, drawn, calls[drawn])
    called = float(np.average(calls, weights=seconds))
    truth = float(np.average(y, weights=seconds))
    start = estimate.low[0] - 1e-9
    end = estimate.high[0] + 1e-9
    return {
        "what they would say, fixed number": start <= called <= end,
        "at any time": low - 0.001 <= called <= high + 0.001,
        "the film's own share, fixed number": start <= truth <= end,
    }


LENGTHS: Final = {
    "600 rows, positive ones 1.5 times as long": (longer(times=1.5), 600, (30, 60)),
    "600 rows, 2.2 times": (longer(times=2.2), 600, (30, 60)),
    "600 rows, 3 times": (longer(times=3.0), 600, (30, 60)),
    "60 rows, 2.2 times": (longer(times=2.2), 60, (20, 30)),
    "60 rows, one in twenty 120 s and the others 5 s": (few_long, 60, (20, 30)),
}
JUDGES: Final = {
    "right": (1, 0.0),
    "one, wrong in one of ten": (1, 0.1),
    "two, each wrong in one of ten": (2, 0.1),
}
SHOWN = Column(digits=2)
RARELY = Column(high=0.05)
CODE = "docs/film-programmers.md"
FILM = "docs/film.md"
PAGE = "docs/film-page.md"

ROWS = [
    Row(
        "share", FILM, "film score",
        "How often the 80 % bracket holds the true share of a new film, and what else is said of it.",
        ("films", "of training"),
        [Cell((name, str(n)), (kind, n)) for name, kind in KINDS.items() for n in (6, 30)],
        expected,
        {"bracket holds": Column(0.78), "band would hold": SHOWN, "mean error": SHOWN,
         "bias": Column(signed=True)},
        full=20, small=2, small_cells=2,
    ),
    Row(
        "share-few", FILM, "film score",
        "How often the 80 % bracket holds the true share of a new film of few windows, and how often it "
        "would without what is added for these: the model is calibrated on 20 films of some 100 clips.",
        ("films", "windows are", "windows"),
        [Cell((films, name, str(n)), (KINDS[films], n, windows),
              {"bracket holds": Column(0.6 if windows.alike else 0.75)})
         for films in ("alike", "unlike, AUC .83") for name, windows in WINDOWS.items()
         for n in (2, 5, 10, 25)],
        of_few_windows,
        {"bracket holds": Column(0.75), "without what is added": SHOWN},
        full=40, small=2, small_cells=2,
    ),
    Row(
        "share-levels", FILM, "film score",
        "What a model expects that was calibrated without a level.",
        ("easy negatives",),
        [Cell((f"{below} SD below hard ones",), (below,)) for below in (1.5, 0.5, 0.0)],
        by_levels,
        dict.fromkeys(("true share", "expected, calibrated on HN and S", "on all levels"), SHOWN),
        full=30, small=2,
    ),
    Row(
        "rate", FILM, "film rate",
        "Films of 130 windows (100 minutes in windows of 46 s), a fifth of them marked: how often the 95 % "
        "interval holds the share that the judge would mark in the whole film, and how wide it is.",
        ("model", "windows judged"),
        [Cell((name, str(n)), (130, n, 0.2, name)) for name in list(MODELS)[:4] for n in (20, 40, 60)],
        on_grid, {"holds": Column(0.93), "width": SHOWN, "of that of judgements alone": SHOWN},
        full=30, small=2,
    ),
    Row(
        "rate-few", FILM, "film rate", "Films of few windows.", ("windows", "judged"),
        [Cell((str(size), str(n)), (size, n, 0.2, name))
         for size, n in ((26, 10), (26, 20), (26, 25), (13, 10), (13, 12)) for name in list(MODELS)[:3]],
        on_grid, {"holds": Column(0.9)}, full=30, small=2,
    ),
    Row(
        "rate-counts", CODE, "film rate",
        "Windows alike and no model: how often the interval holds the share, of those from .05 to .5, that "
        "it holds least often, and one of them on average, by the chances of all draws.",
        ("windows", "judged"),
        [Cell((str(size), str(n)), (size, n)) for size in (40, 130, 400) for n in (5, 10, 15, 20, 30)],
        by_count, {"holds the worst share": Column(0.93), "a share": Column(0.95), "width": SHOWN},
        full=1, small=1,
    ),
    Row(
        "rate-lengths", CODE, "film rate",
        "Rows of unlike length, a fair model (AUC .76), a fifth marked.", ("rows", "judged"),
        [Cell((name, str(n)), (lengths, size, n))
         for name, (lengths, size, judged) in LENGTHS.items() for n in judged],
        on_shots, {"holds": Column(0.93), "bias": Column(-0.01, 0.01, signed=True)}, full=30, small=2,
    ),
    Row(
        "rate-content", CODE, "film rate",
        "Windows whose content goes with their labels, 10, 30, 60 and 85 % of them judged, shares of .1 to "
        ".5, by a model that is useless, right or reversed.",
        ("content", "windows"),
        [Cell((name, str(size)), (World(content, size, share, apart), part), {"holds": Column(least)})
         for contents, bounds in ((TWOFOLD, (0.93, 0.9)), (MANYFOLD, (0.85, 0.85)))
         for name, content in contents.items()
         for size, least in zip((130, 40), bounds, strict=True)
         for part in (0.1, 0.3, 0.6, 0.85) for share in (0.1, 0.2, 0.5) for apart in ANSWERS.values()],
        by_content, {"holds": Column(0.85), "bias": Column(digits=2, signed=True)}, full=12, small=2,
    ),
    Row(
        "desk", PAGE, "film open",
        "Films judged whole at the desk, shares of .05 to .5, by a model that is useless, right or reversed: "
        "in how many the interval at any time ever missed the film's share, and how wide it is after 30.",
        ("content", "windows"),
        [Cell((name, str(size)), (World(content, size, share, ANSWERS[model]),))
         for name, content in (TWOFOLD | MANYFOLD).items()
         for size in (14, 30, 130, 400)
         for share, model in ((0.05, "right"), (0.2, "useless"), (0.4, "right"), (0.4, "reversed"))
         if size < 400 or model != "right"],
        at_any_time, {"refuted": RARELY, "width at 30": SHOWN}, full=40, small=2,
    ),
    Row(
        "rate-windows", CODE, "film rate",
        "Windows of 46 s, one in ten of them partly black or credits, shares of .05 to .5, 20 to 60 judged "
        "of 130.",
        ("model",),
        [Cell((name,), (130, n, share, name))
         for name in MODELS for n in (20, 40, 60) for share in (0.05, 0.2, 0.5)],
        on_grid, {"holds": Column(0.92), "of that of judgements alone": SHOWN}, full=15, small=2,
    ),
    Row(
        "kappa", CODE, "film rate",
        "Two judges who err in .03 to .25 of windows: the 95 % interval of their kappa.",
        ("windows", "positive"),
        [Cell((str(n), f"{share:g}"), (n, wrong, share))
         for n in (10, 20, 40, 60) for share in (0.3, 0.05) for wrong in (0.25, 0.1, 0.03)],
        agreed, {"holds": Column(0.9)}, full=200, small=10,
    ),
    Row(
        "rate-judges", CODE, "film rate",
        "Judges who err, 40 windows of 130, a fair model: how often intervals hold what they would say of "
        "all windows, and how often that of a fixed number holds the film's own share.",
        ("judges", "share"),
        [Cell((name, f"{share:g}"), (*judges, share))
         for name, judges in JUDGES.items() for share in (0.05, 0.2, 0.5)],
        told,
        {"what they would say, fixed number": Column(0.93), "at any time": Column(0.95),
         "the film's own share, fixed number": Column()},
        full=200, small=3,
    ),
]  # fmt: skip
