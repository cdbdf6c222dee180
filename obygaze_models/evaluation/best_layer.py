"""Compare the best of several layers with the best of as many layers by chance.

The best of twelve layers is a maximum: even without any skill it lies above chance. Its chance level is found
by exchanging labels: within each film the clips exchange their labels, all layers keep their scores, and the
best layer is taken again. A film's scores come from models that never saw its labels, so that without any
skill every exchange is as probable as the labels as they are. Layers stay as alike as they are.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from obygaze_features.arguments import checked
from obygaze_models.evaluation.predictions import Predictions

N_EXCHANGES = 2000
"""Exchanges of labels; no p is below 1 / (1 + this number)."""

ROUNDING = 1e-12
"""AUCs that differ by less are equal in truth."""


class BestLayer(NamedTuple):
    """The best layer of a model, and what the best of as many layers reaches by chance.

    Attributes
    ----------
    model : str
        What the models of the layers are called together.
    layer : str
        The best layer.
    n_layers : int
    auc : float
        AUC of the best layer, the mean over movies.
    chance, high : float
        Mean and 95th percentile of the best layer's AUC under exchanged labels.
    p : float
        Share of the exchanges, the labels as they are among them, whose best layer is as good.
    """

    model: str
    layer: str
    n_layers: int
    auc: float
    chance: float
    high: float
    p: float


@checked
def best_layer(
    predictions: Predictions, task: str, model: str, names: Mapping[str, str], *, seed: int = 0
) -> BestLayer | None:
    """Find the best of several layers by its AUC within movies, and its level by chance.

    Parameters
    ----------
    predictions : Predictions
        Predictions of two classes.
    task : str
    model : str
        What the layers' models are called together.
    names : mapping of str to str
        Layer -> its model in the predictions; all were tested on the same clips.
    seed : int
        Seed of the exchanges.

    Returns
    -------
    BestLayer or None
        None where no movie has clips of both classes.
    """
    table = predictions.table[predictions.table["task"] == task]
    films = _ranked_films(table, list(names.values()))
    if not films:
        return None
    rng = np.random.default_rng(seed)
    aucs = np.mean([film.aucs(film.labels[None]) for film in films], axis=0)[0]
    exchanged_aucs = np.zeros((N_EXCHANGES, len(names)))
    for film in films:
        labels = rng.permuted(np.tile(film.labels, (N_EXCHANGES, 1)), axis=1)
        exchanged_aucs += film.aucs(labels) / len(films)
    best = int(np.argmax(aucs))
    best_by_chance = exchanged_aucs.max(axis=1)
    n_as_good = int((best_by_chance >= aucs[best] - ROUNDING).sum())
    return BestLayer(
        model=model,
        layer=list(names)[best],
        n_layers=len(names),
        auc=float(aucs[best]),
        chance=float(best_by_chance.mean()),
        high=float(np.quantile(best_by_chance, 0.95)),
        p=(1 + n_as_good) / (1 + N_EXCHANGES),
    )


class _Film(NamedTuple):
    """A film's clips.

    Attributes
    ----------
    labels : ndarray, shape [n]
        0 or 1.
    ranks : ndarray, shape [n, L]
        Rank of each clip's score in the film by each layer, from 1; the mean over seeds.
    """

    labels: NDArray[np.float64]
    ranks: NDArray[np.float64]

    def aucs(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the AUC of each layer [B, L] under B labellings [B, n] with as many positive clips."""
        n_positive = self.labels.sum()
        n_negative = len(self.labels) - n_positive
        # The rank sum of the positive clips less its least value: the pairs that are in the right order.
        n_right_pairs = labels @ self.ranks - n_positive * (n_positive + 1) / 2
        return np.asarray(n_right_pairs / (n_positive * n_negative))


def _ranked_films(table: pd.DataFrame, models: list[str]) -> list[_Film]:
    """Rank each film's clips by each model; films without both classes are left out."""
    films = []
    for _, rows_of_film in table[table["model"].isin(models)].groupby("movie", sort=True):
        clips = rows_of_film.drop_duplicates("clip_id").sort_values("clip_id")
        labels = clips["label"].to_numpy(np.float64)
        if not 0 < labels.sum() < len(labels):
            continue
        ranks = []
        for model in models:
            rows_of_model = rows_of_film[rows_of_film["model"] == model]
            ranks_of_seeds = []
            for _, rows_of_seed in rows_of_model.groupby("seed"):
                scores = rows_of_seed.sort_values("clip_id")["score"]
                ranks_of_seeds.append(rankdata(scores))
            ranks.append(np.mean(ranks_of_seeds, axis=0))
        films.append(_Film(labels, np.stack(ranks, axis=1)))
    return films
