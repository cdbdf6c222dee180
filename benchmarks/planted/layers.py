"""Networks of which one layer knows the label, and its neighbours half, or none: what inner folds choose."""

from typing import Final

import numpy as np
from sklearn.base import clone

from benchmarks.planted.row import Cell, Column, Draw, Row
from obygaze_models.models.layers import LayerClassifier
from obygaze_models.models.linear import SPECS
from obygaze_models.protocol import HeldOut
from tests.planted_layers import WIDTH, planted_vectors

(LINEAR,) = SPECS

N_LAYERS: Final = 8
TESTED: Final = 4
"""Films that are tested, and no part of any choice."""


def chosen(rng: np.random.Generator, auc: float, films: int, clips: int) -> Draw:
    """Draw a corpus, choose a layer by the training films, and test it on others beside the planted one."""
    movies = np.repeat([f"film{number}" for number in range(films + TESTED)], clips)
    labels = np.arange(len(movies)) % 2
    best = int(rng.integers(0, N_LAYERS))
    layers = planted_vectors(rng, movies, labels, n_layers=N_LAYERS, best=best, auc=auc)
    X = np.concatenate(list(layers), axis=1)
    train = np.isin(movies, [f"film{number}" for number in range(films)])
    columns = tuple(slice(WIDTH * index, WIDTH * (index + 1)) for index in range(N_LAYERS))
    model = LayerClassifier(LINEAR.estimator(0), columns, tuple(map(str, range(N_LAYERS))))
    model.fit(X[train], labels[train], groups=movies[train])
    scores = model.decision_function(X[~train])
    found = HeldOut(scores, labels[~train], movies[~train]).share_of_ordered_pairs()
    if auc == 0.5:
        return {"within one of it": np.nan, "regret": np.nan, "AUC of the chosen": found}
    planted = clone(LINEAR.estimator(0)).fit(layers[best][train], labels[train], groups=movies[train])
    most = HeldOut(planted.decision_function(layers[best][~train]), labels[~train], movies[~train])
    return {
        "within one of it": abs(model.layer_ - best) <= 1,
        "regret": most.share_of_ordered_pairs() - found,
        "AUC of the chosen": found,
    }


ROWS = [
    Row(
        "layers", "docs/evaluation.md", "evaluate --layer chosen",
        f"Networks of {N_LAYERS} layers of which one has a direction of the AUC given, and its neighbours "
        "half of its effect, or none has any: how often the chosen layer lies within one of it, by how much "
        "the AUC on films left out falls short of the planted layer's, and that AUC.",
        ("AUC", "films x clips"),
        [
            Cell(("0.7", "20 x 40"), (0.7, 20, 40),
                 {"within one of it": Column(0.95, digits=2), "regret": Column(high=0.01, signed=True)}),
            Cell(("0.7", "10 x 20"), (0.7, 10, 20)),
            Cell(("none", "12 x 30"), (0.5, 12, 30), {"AUC of the chosen": Column(0.49, 0.51)}),
        ],
        chosen,
        {"within one of it": Column(digits=2), "regret": Column(signed=True), "AUC of the chosen": Column()},
        full=60, small=2, small_cells=1,
    ),
]  # fmt: skip
