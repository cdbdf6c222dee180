"""Corpora too small to learn from, and corpora without anything to learn: what models say of new films."""

from typing import Final

import numpy as np
from scipy.stats import norm

from benchmarks.planted.calibrations import log_loss
from benchmarks.planted.row import Cell, Column, Draw, Row, over_corpora
from benchmarks.planted.worlds import NOISE, WIDTH, Noise
from obygaze_models.models.estimator_scores import mean_score
from obygaze_models.models.linear import SPECS
from obygaze_models.persistence.evidence import may_be_chance
from obygaze_models.prediction.calibration import Calibration
from obygaze_models.prediction.evidence import as_left_out, collect_evidence
from obygaze_models.protocol import HeldOut
from obygaze_models.protocol.slope import SlopeLikelihood

(LINEAR,) = SPECS

NEW_FILMS = 4
NEW_CLIPS = 25


def predicted(rng: np.random.Generator, world: Noise) -> Draw:
    """Calibrate a model of noise as `evaluate --save` does, and ask it about the clips of new films."""
    X, y, movies = world.draw(rng)
    model = LINEAR.estimator(0).fit(X, y, groups=movies)
    calibration = Calibration.fit(model.held_out_, mean_score(model, X))
    scores = model.decision_function(rng.normal(size=(NEW_FILMS * NEW_CLIPS, WIDTH)))
    labels = np.arange(len(scores)) % 2
    p = calibration.probability(scores)
    low, high = calibration.band(scores)
    beyond = (p > 0.9) | (p < 0.1)
    return {
        "p beyond .9 or .1": beyond.mean(),
        "of the worst corpus": beyond.mean(),
        "log loss": log_loss(labels, p) - np.log(2),
        "band misses .5": ((low > 0.5) | (high < 0.5)).mean(),
    }


def with_worst(draws: list[Draw]) -> Draw:
    """Keep the worst corpus's share of surely wrong clips beside the mean over corpora."""
    figures = over_corpora(draws)
    figures["of the worst corpus"] = figures["of the worst corpus"].max(keepdims=True)
    return figures


def flagged(rng: np.random.Generator, true_auc: float, films: int, clips: int) -> Draw:
    """Draw scores of films left out, half of whose clips are positive, and ask whether they are flagged."""
    movies = np.repeat(np.arange(films), clips)
    labels = np.arange(len(movies)) % 2
    scores = rng.normal(size=len(movies)) + np.sqrt(2) * norm.ppf(true_auc) * labels
    p_skilled = SlopeLikelihood.of_scores(HeldOut(scores, labels, movies)).posterior().p_skilled
    evidence = collect_evidence(as_left_out(np.arange(len(movies)), movies, labels, scores), p_skilled)
    return {f"{clips} clips": may_be_chance(evidence)}


def flagged_by_clips(rng: np.random.Generator, true_auc: float, films: int) -> Draw:
    """Draw corpora of each number of clips."""
    shares: dict[str, bool] = {}
    for clips in CLIPS:
        shares |= flagged(rng, true_auc, films, clips)
    return shares


CLIPS: Final = (8, 20, 60)
AUCS: Final = (0.5, 0.65, 0.7, 0.8)
FILMS: Final = (4, 6, 12, 20)


def _flag_bounds(true_auc: float, films: int) -> dict[str, Column]:
    """Return the bounds of a cell: noise is flagged, and skill that 12 films of 20 clips show is not."""
    if true_auc == AUCS[0]:
        return {f"{clips} clips": Column(0.9, digits=2) for clips in CLIPS}
    if true_auc == 0.8 and films >= 12:
        return {f"{clips} clips": Column(high=0.05, digits=2) for clips in CLIPS if clips >= 20}
    return {}


ROWS = [
    Row(
        "no_skill", "docs/predict.md", "evaluate --save",
        "Features that know nothing of the labels, half of which are positive: share of the clips of new "
        "films with a probability beyond .9 or .1, in the mean and in the worst corpus, log loss less that "
        "of saying .5, and how often the 80 % band misses .5.",
        ("films x clips",),
        [Cell((name,), (world,)) for name, world in NOISE.items()],
        predicted,
        {"p beyond .9 or .1": Column(high=0.01), "of the worst corpus": Column(digits=2),
         "log loss": Column(high=0.01, signed=True), "band misses .5": Column(high=0.22, digits=2)},
        full=200, small=5, small_cells=1, pooled=with_worst,
    ),
    Row(
        "flag", "docs/predict.md", "predict",
        "Share of corpora whose model is flagged `no_skill`, by its true AUC within films and the clips of "
        "each film, half of them positive.",
        ("AUC", "films"),
        [Cell((f"{true_auc:g}", f"{films}"), (true_auc, films), _flag_bounds(true_auc, films))
         for true_auc in AUCS for films in FILMS],
        flagged_by_clips,
        {f"{clips} clips": Column(digits=2) for clips in CLIPS},
        full=100, small=3, small_cells=2,
    ),
]  # fmt: skip
