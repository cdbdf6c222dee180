"""Say how good the best of several layers is, beside how good the best of so many is by chance.

Whoever takes the best of twelve layers takes a maximum: without any skill it lies above chance. Its chance
level is found by exchanging labels: within each film the clips exchange theirs, all layers keep their scores,
and the best layer is taken again. A film's scores come from models that never saw its labels, so that under
the null every exchange is as probable as what was found; that layers resemble each other is kept.
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
"""Exchanges of labels; no p is below 1 / (1 + this)."""


class BestLayer(NamedTuple):
    """The best layer of a model, and what the best of so many reaches by chance.

    Attributes
    ----------
    model : str
        Of which there is one for each layer.
    layer : str
        The best layer.
    n_layers : int
    auc : float
        Of the best layer, the mean over movies.
    chance, high : float
        Mean, and 95th percentile, of the best layer's under exchanged labels.
    p : float
        The chance of a best layer that is as good, by the exchanges.
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
        Of two classes.
    task : str
    model : str
        What the layers' models are called together.
    names : mapping of str to str
        Layer -> its model in the predictions, tested on the same clips.
    seed : int
        Of the exchanges.

    Returns
    -------
    BestLayer or None
        None where no movie has clips of both classes.
    """
    table = predictions.table[predictions.table["task"] == task]
    ranked = _ranked(table, list(names.values()))
    if not ranked:
        return None
    rng = np.random.default_rng(seed)
    found = np.mean([film.aucs(film.labels[None]) for film in ranked], axis=0)[0]
    exchanged = np.zeros((N_EXCHANGES, len(names)))
    for film in ranked:
        labels = rng.permuted(np.tile(film.labels, (N_EXCHANGES, 1)), axis=1)
        exchanged += film.aucs(labels) / len(ranked)
    best_by_chance = exchanged.max(axis=1)
    best = int(np.argmax(found))
    n_as_good = int((best_by_chance >= found[best] - 1e-12).sum())
    return BestLayer(
        model,
        list(names)[best],
        len(names),
        float(found[best]),
        float(best_by_chance.mean()),
        float(np.quantile(best_by_chance, 0.95)),
        (1 + n_as_good) / (1 + N_EXCHANGES),
    )


class _Film(NamedTuple):
    """Labels [n] of a film's clips, and the ranks [n, L] of each layer's scores among them, over seeds."""

    labels: NDArray[np.float64]
    ranks: NDArray[np.float64]

    def aucs(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the AUC of each layer under several labellings [B, n]: [B, L]."""
        n_positive = self.labels.sum()
        n_negative = len(self.labels) - n_positive
        above = labels @ self.ranks - n_positive * (n_positive + 1) / 2
        return np.asarray(above / (n_positive * n_negative))


def _ranked(table: pd.DataFrame, models: list[str]) -> list[_Film]:
    """Rank each film's clips by each model; films without both classes are left out."""
    films = []
    for _, of_film in table[table["model"].isin(models)].groupby("movie", sort=True):
        labels = of_film.drop_duplicates("clip_id").sort_values("clip_id")["label"].to_numpy(np.float64)
        if not 0 < labels.sum() < len(labels):
            continue
        ranks = []
        for model in models:
            own = of_film[of_film["model"] == model]
            of_seeds = [
                rankdata(of_seed.sort_values("clip_id")["score"]) for _, of_seed in own.groupby("seed")
            ]
            ranks.append(np.mean(of_seeds, axis=0))
        films.append(_Film(labels, np.stack(ranks, axis=1)))
    return films
