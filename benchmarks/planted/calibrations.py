"""Worlds of clips with two modalities, and what `obygaze evaluate` and `predict` make of their scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.signal import lfilter
from scipy.special import expit, logit

from benchmarks.planted.row import Cell, Column, Draw, Floats, Row, over_corpora
from obygaze_models.evaluation.metrics import f1_pos, within_movie_auc
from obygaze_models.models.estimator_scores import mean_score
from obygaze_models.models.fusion import FusedClassifier
from obygaze_models.models.joined_model import ALONE, How
from obygaze_models.models.linear import SPECS
from obygaze_models.persistence.evidence import SKILLED
from obygaze_models.prediction.calibration import Calibration
from obygaze_models.protocol import HeldOut, best_threshold

(LINEAR,) = SPECS

WIDTH: Final = 6
"""Features of a modality."""

LEARNT: Final[tuple[How, ...]] = ("late", "mean", "max")

BOTH: Final = (slice(0, WIDTH), slice(WIDTH, 2 * WIDTH))


@dataclass(frozen=True)
class World:
    """Films of 30 to 90 clips whose shares of positives differ.

    Attributes
    ----------
    shifts : tuple of float
        How far the first feature of each modality lies higher for positives, in deviations within films.
    lacks : str
        Which clips lack the second modality: none, at random, by label or by film.
    films : int
    share, spread : float
        Share of positives of the median film, and its SD over films on the logit scale.
    order : float
        Correlation of a feature with that of the next clip.
    film_shift : float
        SD over films of a shift of all features of a film, in deviations within films.
    """

    shifts: tuple[float, float]
    lacks: str = ""
    films: int = 8
    share: float = 0.3
    spread: float = 0.8
    order: float = 0.5
    film_shift: float = 0.3

    def draw(self, rng: np.random.Generator, films: int = 0) -> tuple[Floats, np.ndarray, np.ndarray]:
        """Draw features [N, 12], labels and films [N]."""
        parts = []
        for film in range(films or self.films):
            n = int(rng.integers(30, 91))
            y = (rng.random(n) < expit(logit(self.share) + self.spread * rng.normal())).astype(np.int64)
            X = smooth(rng, n, 2 * WIDTH, self.order) + self.film_shift * rng.normal(size=2 * WIDTH)
            for features, shift in zip(BOTH, self.shifts, strict=True):
                X[:, features.start] += shift * y
            chance = {"": 0.0, "at random": 0.4, "by label": 0.2 + 0.5 * y, "by film": 1.0 * (film % 2)}
            X[rng.random(n) < chance[self.lacks], WIDTH:] = np.nan
            parts.append((X, y, np.full(n, film)))
        X, y, movies = (np.concatenate(parts_of_one) for parts_of_one in zip(*parts, strict=True))
        return X, y, movies


def smooth(rng: np.random.Generator, n: int, width: int, order: float) -> Floats:
    """Draw stationary first-order autoregressions [n, width] of variance 1."""
    noise = rng.normal(size=(n + 50, width)) * np.sqrt(1 - order**2)
    return np.asarray(lfilter([1.0], [1.0, -order], noise, axis=0)[50:])


def calibrated(rng: np.random.Generator, world: World) -> Draw:
    """Calibrate one modality's model by its inner folds; ask it about 40 new films."""
    (X, y, movies) = world.draw(rng)
    (new, truth, films) = world.draw(rng, 40)
    X = X[:, :WIDTH]
    new = new[:, :WIDTH]
    model = LINEAR.estimator(0).fit(X, y, groups=movies)
    held_out: HeldOut = model.held_out_
    calibration = Calibration.fit(held_out, mean_score(model, X))
    scores = model.decision_function(new)
    p = calibration.probability(scores)
    base = y.mean()
    of_film = np.bincount(films, p - truth) / np.bincount(films)
    return {
        "AUC by film": within_movie_auc(truth, scores, films),
        "skilled": calibration.p_skilled >= SKILLED,
        "log loss": log_loss(truth, p) - log_loss(truth, np.full(len(p), base)),
        "bias": float(p.mean() - base),
        "a film's error": float(np.abs(of_film).mean()),
        "as printed": calibration.film_error,
    }


def fused(rng: np.random.Generator, world: World) -> Draw:
    """Fuse both modalities in each way, and ask 25 new films beside each modality alone."""
    (X, y, movies) = world.draw(rng)
    (new, truth, films) = world.draw(rng, 25)

    def scored(how: How, *which: slice) -> tuple[FusedClassifier, float]:
        model = FusedClassifier(LINEAR.estimator(0), which, how=how).fit(X, y, groups=movies)
        return model, within_movie_auc(truth, model.decision_function(new), films)

    alone = [scored("late", modality)[1] for modality in BOTH]
    (late, _), *_ = joined = [scored(how, *BOTH) for how in LEARNT]
    return {
        "A": alone[0],
        "B": alone[1],
        **{how: auc for how, (_, auc) in zip(LEARNT, joined, strict=True)},
        "one decides alone": late.candidates_[0].name.startswith(ALONE),
    }


def beside_the_better(draws: list[Draw]) -> Draw:
    """Subtract the AUC of the modality that is better on average, corpus by corpus."""
    values = over_corpora(draws)
    better = max((values["A"], values["B"]), key=np.mean)
    return values | {f"{how} less the better": values[how] - better for how in LEARNT}


def contributed(rng: np.random.Generator, world: World, how: How) -> Draw:
    """Decompose scores of 25 new films by modality, beside models of each modality alone.

    Of clips that lack the second modality the model was trained on all clips, of the others on those.
    """
    (X, y, movies) = world.draw(rng)
    (new, truth, films) = world.draw(rng, 25)
    model = FusedClassifier(LINEAR.estimator(0), BOTH, how=how).fit(X, y, groups=movies)
    _, parts = model.linear().contributions(new)
    has_both = np.isfinite(X).all(axis=1)
    new_has_both = np.isfinite(new).all(axis=1)
    wrong = []
    for place, known, rows in (
        (0, has_both, new_has_both),
        (1, has_both, new_has_both),
        (0, has_both | True, ~new_has_both),
    ):
        features = X[known][:, BOTH[place]]
        clips = new[rows][:, BOTH[place]]
        if len(clips):
            alone = LINEAR.estimator(0).fit(features, y[known], groups=movies[known])
            evidence = alone.decision_function(clips) - mean_score(alone, features)
            wrong += (parts[rows, place] * evidence < -1e-9).tolist()
    return {
        "against its evidence": wrong,
        "AUC of A's": within_movie_auc(truth, parts[:, 0], films),
        "AUC of B's": within_movie_auc(truth[new_has_both], parts[new_has_both, 1], films[new_has_both]),
    }


def called(rng: np.random.Generator, world: World) -> Draw:
    """Tune a threshold on held-out scores as they are, and less their fold's mean, and call 40 new films."""
    (X, y, movies) = world.draw(rng)
    (new, truth, _) = world.draw(rng, 40)
    X = X[:, :WIDTH]
    new = new[:, :WIDTH]
    model = LINEAR.estimator(0).fit(X, y, groups=movies)
    scores = model.decision_function(new)
    held_out = model.held_out_
    as_they_are = f1_pos(truth, scores >= model.threshold_)
    relative_scores = scores - mean_score(model, X)
    less = f1_pos(truth, relative_scores >= best_threshold(y, held_out.relative_scores))
    best = f1_pos(truth, scores >= best_threshold(truth, scores))
    every = 2 * truth.mean() / (1 + truth.mean())
    return {"f1_pos": as_they_are, "gained": as_they_are - less, "best there is": best, "all positive": every}


def log_loss(y: np.ndarray, p: Floats) -> float:
    """Mean log loss of probabilities [N] for labels [N]."""
    return float(-np.mean(np.log(np.where(y == 1, p, 1 - p))))


def cells(*worlds: tuple[str, World]) -> Sequence[Cell]:
    """Make a cell of each named world."""
    return [Cell((name,), (world,)) for name, world in worlds]


SHOWN: Final = Column(digits=2)
LATE: Final = "late less the better"
FUSED: Final = {f"{how} less the better": Column(signed=True) for how in LEARNT} | {
    LATE: Column(-0.02, signed=True)
}
LACKS: Final = ("at random", "by label", "by film")

ROWS = [
    Row(
        "calibration", "docs/predict.md", "evaluate --save",
        "How often scores rise within films with a posterior probability of .9, the log loss on new films "
        "less that of the training films' rate, the mean probability less that rate, and by how much it "
        "misses a new film's share, with what the model's card prints.",
        ("model",),
        [Cell((name,), (world,), {"skilled": Column(least, digits=2)})
         for name, world, least in (
            ("shifted by .35", World((0.35, 0.0)), 0.1),
            ("by .6", World((0.6, 0.0)), 0.7),
            ("by 1.2", World((1.2, 0.0)), 0.95),
            ("by .6, 20 films", World((0.6, 0.0), films=20), 0.95),
            ("by .6, films alike", World((0.6, 0.0), spread=0.0), 0.7),
            ("by .6, rare", World((0.6, 0.0), share=0.1, films=12), 0.6),
            ("by 1.2, films shifted by 1", World((1.2, 0.0), films=12, film_shift=1.0), 0.9),
         )],
        calibrated,
        {"AUC by film": Column(digits=2), "skilled": SHOWN,
         "log loss": Column(high=0.003, signed=True), "bias": Column(-0.01, 0.01, signed=True),
         "a film's error": Column(), "as printed": Column()},
        full=40, small=3,
    ),
    Row(
        "fuse", "docs/models.md", "evaluate --fuse",
        "AUC by film of each modality alone and of `late`; how much higher each way to fuse is than the "
        "better modality (less the better); and how often `late` uses one modality only (one decides "
        "alone). Trained on 8 films of 30 to 90 clips, tested on 25 new ones.",
        ("modalities",),
        [*(Cell((f"both shifted by {shift:g}",), (World((shift, shift)),), {LATE: Column(least, signed=True)})
           for shift, least in ((0.35, 0.005), (0.8, 0.04))),
         *(Cell((f"both by 0.8, B lacks {lacks}",), (World((0.8, 0.8), lacks),))
           for lacks in LACKS)],
        fused,
        {"A": SHOWN, "B": SHOWN, "late": SHOWN, **FUSED, "one decides alone": SHOWN},
        full=40, small=2, small_cells=2, pooled=beside_the_better,
    ),
    Row(
        "fuse-null", "docs/models.md", "evaluate --fuse",
        "The same if modality B is uninformative.",
        ("modalities",),
        [*(Cell((f"A shifted by {shift:g}",), (World((shift, 0.0), ""),)) for shift in (0.35, 0.5, 1.2)),
         *(Cell((f"A shifted by 0.5, B lacks {lacks}",), (World((0.5, 0.0), lacks),)) for lacks in LACKS)],
        fused,
        {"A": SHOWN, "B": Column(0.47, 0.53, digits=2), "late": SHOWN, **FUSED, "one decides alone": SHOWN},
        full=40, small=2, small_cells=1, pooled=beside_the_better,
    ),
    Row(
        "explain", "docs/models.md", "explain",
        "Contributions of modalities A and B in new films, shifted by the two numbers: the share whose sign "
        "contradicts a model of that modality alone (against its evidence), and their AUC by film.",
        ("modalities", "fused by"),
        [*(Cell((f"{a:g} and {b:g}", how), (World((a, b), ""), how))
           for a, b in ((0.35, 0.35), (1.2, 0.35), (0.5, 0.0)) for how in LEARNT),
         *(Cell(("0.8 and 0.8, B lacks by label", how), (World((0.8, 0.8), "by label"), how))
           for how in LEARNT)],
        contributed,
        {"against its evidence": Column(high=0.0), "AUC of A's": Column(0.5, digits=2),
         "AUC of B's": Column(0.48, digits=2)},
        full=5, small=2,
    ),
    Row(
        "threshold", "docs/evaluation.md", "evaluate",
        "f1_pos in 40 new films with the threshold tuned on held-out scores, how much better it is than with "
        "scores less the mean of their fold's model on training clips, and f1_pos with the best threshold "
        "there is.",
        ("model",),
        cells(
            ("shifted by .35", World((0.35, 0.0))),
            ("by .6", World((0.6, 0.0))),
            ("by 1.2", World((1.2, 0.0))),
            ("by 1.2, 20 films", World((1.2, 0.0), films=20)),
            ("by 1.2, rare", World((1.2, 0.0), share=0.1, films=12)),
            ("by 2.5", World((2.5, 0.0))),
        ),
        called,
        {"f1_pos": Column(), "gained": Column(-0.01, signed=True), "best there is": Column(),
         "all positive": Column()},
        full=40, small=2,
    ),
]  # fmt: skip
