"""People and machines who annotate: who may stand in, who drifts, whose calls are noisy."""

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri

from benchmarks.planted.row import Cell, Column, Draw, Row, over_corpora
from obygaze_models.evaluation.alttest import alt_test
from obygaze_models.evaluation.experts import _accuracies, _log_odds_of_calls, annotators_noise
from obygaze_models.evaluation.rounds import drifts

PAGE: Final = "docs/annotators.md"
SHARE: Final = 0.3
"""Of positive clips."""


def mean_skill(skill: float, spread: float) -> float:
    """Give the mean of skills over films."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    return float(expit(logit(skill) + spread * nodes) @ weights / weights.sum())


@cache
def boundary(skill: float, spread: float, below: float, *, balanced: bool) -> float:
    """Find the skill of a machine that is so far below one or two others' agreement, of two classes.

    Plain: d = (a - m)(2 a - 1), a and m the mean skills; balanced: d = (a - m)(v + u - 1) with v and u the
    shares of true calls among another's two classes.
    """
    a = mean_skill(skill, spread)
    positive = SHARE * a
    negative = (1 - SHARE) * a
    v = positive / (positive + (1 - SHARE) * (1 - a))
    u = negative / (negative + SHARE * (1 - a))
    wanted = a - below / ((v + u - 1) if balanced else (2 * a - 1))
    root: float = brentq(lambda centre: mean_skill(centre, spread) - wanted, 1e-6, 1 - 1e-6)
    return root


# --- may a machine stand in?
# ---------------------------------------------------------------------------
@dataclass(frozen=True)
class World:
    """Annotators of films whose skills differ by `spread` (SD of logits), and a machine.

    The machine is `constant`, a `coin`, or so far below them: `plain .2`, `balanced .1`.
    """

    people: int
    films: int
    clips: int
    skill: float
    spread: float
    machine: str


def stands(rng: np.random.Generator, world: World) -> Draw:
    """Ask whether a machine may stand in."""
    film = np.repeat(np.arange(world.films), world.clips)
    y = (rng.random(len(film)) < SHARE).astype(np.int64)

    def calls(skill: float) -> np.ndarray:
        skills = expit(logit(skill) + world.spread * rng.normal(size=world.films))
        return np.where(rng.random(len(y)) < skills[film], y, 1 - y)

    humans = {f"h{k}": calls(world.skill) for k in range(world.people)}
    if world.machine == "constant":
        calls_of_machine = np.zeros_like(y)
    elif world.machine == "coin":
        calls_of_machine = (rng.random(len(y)) < SHARE).astype(np.int64)
    else:
        form, below = world.machine.split()
        calls_of_machine = calls(
            boundary(world.skill, world.spread, float(below), balanced=form == "balanced")
        )
    result = alt_test(calls_of_machine, humans, film)
    first = result.comparisons[0]
    return {
        "clips as units, .2": first.winning_rate("clips", 0.2) >= 0.5,
        "films as units, .2": first.winning_rate("films", 0.2) >= 0.5,
        "balanced, films as units, .1": first.passes,
        "may stand in": result.answer == "may stand in",
    }


# --- drift
# ---------------------------------------------------------------------------
def drifting(rng: np.random.Generator, noise: float, end: float, drift: tuple[float, ...]) -> Draw:
    """Ask whether one of three drifts over ten films of 60 clips, whose share is .3 in the middle.

    Clips have a latent strength, films differ by .5 SD of it; annotators err by `noise` and, each in each
    film, by their `drift`, in SD of what they see.
    """
    films = 10
    clips = 60
    strength = rng.normal(size=(films, clips)) + 0.5 * rng.normal(size=(films, 1))
    spread = np.sqrt(1.25 + noise**2)
    shares = np.stack([np.linspace(0.6 - end, end, films), *[np.full(films, 0.3)] * 2])
    limits = spread * (ndtri(1 - shares) + np.array(drift)[:, None] * rng.normal(size=shares.shape))
    calls = (strength + noise * rng.normal(size=(3, films, clips)) > limits[:, :, None]).astype(np.float64)
    mean_of_others = (calls.sum(axis=0) - calls) / 2
    return {
        "found": drifts([(list(difference), range(films)) for difference in calls - mean_of_others], 2 / 3)[
            0
        ].is_found
    }


# --- noise
# ---------------------------------------------------------------------------
def noisy(rng: np.random.Generator, annotators: int, apart: float, size: int) -> Draw:
    """Estimate the confusions of annotators of skill .5 to .9 at 300 clips of ten films, 40 % positive."""
    n = 300
    y = rng.random(n) < 0.4
    X = rng.normal(size=(n, size))
    X[:, 0] += apart * y
    skills = np.linspace(0.5, 0.9, 5)[-annotators:]
    calls = np.where(rng.random((annotators, n)) < skills[:, None], y, ~y).astype(np.int64)
    movies = np.array([f"{film}" for film in np.arange(n) * 10 // n])
    all_said = np.ones_like(calls, bool)
    before = logit(0.4) + apart * (X[:, 0] - apart / 2)
    positive = expit(before)
    for _ in range(100):
        results = _accuracies(calls == 1, all_said, positive)
        positive = expit(before + _log_odds_of_calls(calls == 1, all_said, results))
    specificity = [(calls_of_one[~y] == 0).mean() for calls_of_one in calls]
    sensitivity = [(calls_of_one[y] == 1).mean() for calls_of_one in calls]
    true_rates = np.column_stack([specificity, sensitivity])
    return {
        name: float(np.abs(estimate - skills[:, None]).mean())
        for name, estimate in (
            ("with true labels", true_rates),
            ("with true chances", results),
            ("with the features", annotators_noise(calls, movies, X)[0]),
            ("Dawid and Skene", annotators_noise(calls, movies)[0]),
        )
    }


def noise_means(draws: list[Draw]) -> Draw:
    """Average errors over corpora; and how many times as large they are as with true labels."""
    means = over_corpora(draws)
    times = means["with the features"] / means["with true labels"].mean()
    return {**means, "times": times}


SIZES: Final = ((12, 60), (20, 60), (40, 30))
SPREADS: Final = {"alike": 0.0, "skills differ by .8": 0.8}
NOTHING: Final = {"always no": "constant", "coin of .3": "coin"}
SHOWN: Final = Column()

ROWS = [
    Row(
        "stands-in", PAGE, "manifest alttest",
        "How often a machine passes whose agreement is exactly the margin below that of annotators of skill "
        ".8: .2 by plain or .1 by balanced agreement. The test of that agreement should let at most .05 "
        "pass (12 films of 60 clips, 20 of 60, 40 of 30; 30 % positive).",
        ("annotators", "films", "the machine is below"),
        [Cell((str(people), name, f"{below[1:]} by {form} agreement"),
              (World(people, *size, 0.8, spread, f"{form} {below}"),),
              {"films as units, .2": Column(high=0.06)} if form == "plain" else {})
         for form, below in (("plain", "0.2"), ("balanced", "0.1"))
         for people in (2, 3) for name, spread in SPREADS.items() for size in SIZES],
        stands,
        {"clips as units, .2": SHOWN, "films as units, .2": SHOWN,
         "balanced, films as units, .1": Column(high=0.06), "may stand in": Column(high=0.06)},
        full=2000, small=20,
    ),
    Row(
        "stands-in-nothing", PAGE, "manifest alttest",
        "How often a machine passes that knows nothing (20 films of 60 clips, three annotators).",
        ("skill of annotators", "machine"),
        [Cell((f"{skill:g}"[1:], name), (World(3, 20, 60, skill, spread, kind),),
              {"balanced, films as units, .1": Column(high=0.02)} if skill >= 0.8 else {})
         for skill in (0.7, 0.8, 0.9) for name, kind in NOTHING.items() for spread in SPREADS.values()],
        stands,
        {"clips as units, .2": SHOWN, "films as units, .2": SHOWN,
         "balanced, films as units, .1": SHOWN, "may stand in": Column(high=0.02)},
        full=400, small=20,
    ),
    Row(
        "stands-in-power", PAGE, "manifest alttest",
        "How often the answer is *may stand in* if the machine's agreement is below that of annotators by "
        "less than the margin of .1, or by more (20 films of 60 clips, skills that differ by .8 between "
        "films).",
        ("annotators", "skill", "below by balanced agreement"),
        [Cell((str(people), f"{skill:g}"[1:], below),
              (World(people, 20, 60, skill, 0.8, f"balanced {below}"),))
         for people in (2, 3) for skill in (0.7, 0.8, 0.9) for below in ("0", ".05", ".1", ".15")],
        stands, {"may stand in": SHOWN}, full=200, small=10,
    ),
    Row(
        "drift", PAGE, "manifest progress",
        "How often drift of an annotator is found, beside two others, over ten films of 60 clips. The "
        "annotator's share of positives goes from .2 to .4; stays at .3; or stays, but is higher or lower in "
        "single films by chance (SD .1 to .3 of what they see), as that of all annotators or alone.",
        ("annotators agree", "share"),
        [Cell((f"kappa {kappa}", share), (noise, end, (own, *others)), {"found": bound})
         for kappa, noise in ((".6", 0.5), (".5", 0.7), (".35", 1.0))
         for share, end, owns, alike, bound in (
             (".2 to .4", 0.4, (0.0,), True, Column(low=0.9)),
             ("stays", 0.3, (0.0,), True, Column(high=0.06)),
             ("stays, all by film", 0.3, (0.1, 0.2, 0.3), True, Column(high=0.06)),
             ("stays, alone by film", 0.3, (0.1, 0.2, 0.3), False, SHOWN),
         )
         for own in owns for others in ([(own, own)] if alike else [(0.0, 0.0)])],
        drifting, {"found": SHOWN}, full=2000, small=100,
    ),
    Row(
        "noise", "docs/evaluation.md", "evaluate --experts noisy",
        "Annotators of skill up to .9 at 300 clips of ten films: mean error of how often each is right, and "
        "how many times as large it is as where the true labels are known. With true chances: the same EM, "
        "told how probable each clip is to be positive by its features.",
        ("annotators", "AUC of the features", "features"),
        [Cell((name, auc, str(size)), (n, apart, size), {"times": Column(high=1.3)} if n == 5 else {})
         for name, n in (("5 of skill .5 to .9", 5), ("3 of skill .7 to .9", 3))
         for auc, apart in ((".5", 0.0), (".76", 1.0), (".92", 2.0)) for size in (16, 256)],
        noisy,
        {"with true labels": SHOWN, "with true chances": SHOWN, "with the features": SHOWN,
         "Dawid and Skene": SHOWN, "times": Column(digits=2)},
        full=100, small=6, small_cells=2, pooled=noise_means,
    ),
]  # fmt: skip
