"""Concepts in time beside MoTIF, whose concepts each attend to their own past and future.

MoTIF (Knab et al., arXiv 2509.20899) as a network of our own, from the paper and what its authors publish of
its settings: scores of concepts by frame, standardised, with a position encoding; for each concept a query, a
key and a value of one number, attention over time, a residual, a feed-forward step, all without mixing
concepts; a weight of each concept above 0; class logits at each frame, pooled over time by log-sum-exp.
Their normalisation over concepts is left out, since it would mix them.
Trained by AdamW (1e-3, weight decay 1e-2) on batches of 32, 100 epochs. It reads scores along the directions
that were planted, as texts might give them; `pcbm_time` has to learn them. An explanation ranks frames:
`pcbm_time` by what they would contribute alone, MoTIF by its logits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import cpu_s
from benchmarks.planted.in_time import N_CONCEPTS, Corpus, What, by_film, corpus, trained
from benchmarks.planted.row import Cell, Column, Draw, Floats, Row
from obygaze_models.protocol.targets import NOT_ASKED

N_TAKEN = 4
"""Frames that are taken away, or left alone."""


def fidelity(
    drawn: Corpus, tested: Any, frames: Floats, score: Callable[[Floats], Floats], concepts: Floats
) -> dict[str, float]:
    """Compute the AUC without the frames that explain most, and with these alone."""
    order = np.argsort(-frames[tested], axis=1)
    results = {}
    for name, gone in (("deletion", order[:, :N_TAKEN]), ("insertion", order[:, N_TAKEN:])):
        cut = concepts[tested].copy()
        np.put_along_axis(cut, gone[..., None], np.nan, axis=1)
        results[name] = by_film(drawn.y[tested], score(cut), drawn.movies[tested])
    return results


def side_by_side(rng: np.random.Generator, size: float, planted_in: What) -> Draw:
    """Train `pcbm_time` and MoTIF on the same corpus, and test them on two films."""
    from benchmarks.planted.motif_network import motif

    drawn = corpus(rng, 64, size, planted_in)
    is_training = drawn.movies > 1
    tested = ~is_training & (drawn.y != NOT_ASKED)
    start = cpu_s()
    _, ours = trained("pcbm_time", drawn, is_training)
    results: dict[str, Any] = {"pcbm_time: s": cpu_s() - start}
    model: Any = ours
    values = model.frame_values(drawn.X)
    weights = model.head_.coef_[0]
    alone = values @ weights[:N_CONCEPTS]
    of_ours = fidelity(drawn, tested, alone, model.decision_function, drawn.X)
    scores = model.decision_function(drawn.X[tested])
    results["pcbm_time: AUC"] = by_film(drawn.y[tested], scores, drawn.movies[tested])
    results |= {f"pcbm_time: {name}": value for name, value in of_ours.items()}
    concepts = drawn.X @ drawn.axes.T
    start = cpu_s()
    frames = motif(concepts, drawn.y, is_training, int(rng.integers(2**31)))
    results["MoTIF: s"] = cpu_s() - start

    def pooled(cut: Floats) -> Floats:
        return np.asarray(np.logaddexp.reduce(frames(cut), axis=1))

    results_of_ours = fidelity(drawn, tested, frames(concepts), pooled, concepts)
    results["MoTIF: AUC"] = by_film(drawn.y[tested], pooled(concepts[tested]), drawn.movies[tested])
    return results | {f"MoTIF: {name}": value for name, value in results_of_ours.items()}


MODELS = ("pcbm_time", "MoTIF")
ROWS = [
    Row(
        "motif", "docs/concepts.md", "evaluate --model pcbm_time",
        "AUC by film if the label depends on the presence of a concept, the order of two, their closeness in "
        "time, or nothing (shift of 4 SD, 64 features); AUC without the 4 frames that explain most "
        "(deletion), and with these alone (insertion); CPU seconds of training (s). MoTIF is given the true "
        "directions.",
        ("label",),
        [Cell((name,), (size, what)) for name, size, what in (
            ("presence", 4.0, "presence"), ("A before B", 4.0, "order"),
            ("A within 3 frames of B", 4.0, "together"), ("nothing", 0.0, "presence"))],
        side_by_side,
        {f"{model}: {what}": Column(digits=1 + (what != "s"))
         for what in ("AUC", "deletion", "insertion", "s") for model in MODELS},
        full=8, small=1, small_cells=1,
    ),
]  # fmt: skip
