"""Compare the best of several layers with the best of as many layers by chance.

The best of twelve layers is a maximum: even without any skill it lies above chance. Its chance level is found
by exchanging labels: within each film the clips exchange their labels, all layers keep their scores, and the
best layer is taken again. A film's scores come from models that were not trained on its labels, so that
without any skill every exchange is as probable as the true labels. Scores of different layers stay as
correlated as they are.
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
"""Number of random exchanges of labels; no p is below 1 / (1 + this number)."""

ROUNDING = 1e-12
"""Values that differ by less count as equal: they differ by rounding alone."""


class BestLayer(NamedTuple):
    """The best layer of a model, compared with the best of as many layers under exchanged labels.

    Attributes
    ----------
    model : str
        Name of the model of which there is one for each layer.
    layer : str
        The best layer.
    n_layers : int
    metric : str
        Metric by which layers are ranked: ``auc`` of two classes, ``spearman`` of ordered levels.
    value : float
        The metric of the best layer, averaged over movies.
    chance, high : float
        Mean and 95th percentile of the best layer's metric if labels are exchanged within movies.
    p : float
        Share of exchanges under which the best layer is at least as good. The labels as they are count as one
        of the exchanges.
    """

    model: str
    layer: str
    n_layers: int
    metric: str
    value: float
    chance: float
    high: float
    p: float


@checked
def best_layer(
    predictions: Predictions, task: str, model: str, names: Mapping[str, str], *, seed: int = 0
) -> BestLayer | None:
    """Find the layer that ranks the clips of each movie best, and compare it with the best by chance.

    The metric is the AUC within movies for two classes, and Spearman's correlation within movies for ordered
    levels. The best by chance is the best layer after labels are exchanged at random within movies.

    Parameters
    ----------
    predictions : Predictions
        Predictions of two classes, or of ordered levels.
    task : str
    model : str
        Name of the model of which there is one for each layer.
    names : mapping of str to str
        Layer -> its model in the predictions; all were tested on the same clips.
    seed : int
        Seed of the exchanges.

    Returns
    -------
    BestLayer or None
        None if no movie has clips of two classes or levels.
    """
    # The metric of each film as a sum over clips of weight times rank. The weights depend on the labels only:
    # they are exchanged instead of labels.
    table = predictions.table[predictions.table["task"] == task]
    metric = "auc" if predictions.n_classes == 2 else "spearman"
    films = []
    for clips in _ranked_clips(table, list(names.values())):
        film = _auc_as_weighted_sum(clips) if metric == "auc" else _spearman_as_weighted_sum(clips)
        films.append(film)
    if not films:
        return None

    # The mean over films of each of L layers, with the labels as they are.
    metrics_of_films = []
    for film in films:
        true_order = film.weights[None]  # [1, n]
        metrics_of_films.append(film.metric(true_order))  # [1, L]
    values = np.mean(metrics_of_films, axis=0)[0]  # [L]
    best = int(np.argmax(values))

    # The same of the best layer under each exchange of labels.
    best_by_chance = _best_by_chance(films, np.random.default_rng(seed))  # [N_EXCHANGES]
    n_as_good = int((best_by_chance >= values[best] - ROUNDING).sum())
    return BestLayer(
        model=model,
        layer=list(names)[best],
        n_layers=len(names),
        metric=metric,
        value=float(values[best]),
        chance=float(best_by_chance.mean()),
        high=float(np.quantile(best_by_chance, 0.95)),
        p=(1 + n_as_good) / (1 + N_EXCHANGES),
    )


def _best_by_chance(films: "list[_MetricOfFilm]", rng: np.random.Generator) -> NDArray[np.float64]:
    """Compute the best layer's mean metric under each random exchange of labels within films, [N_EXCHANGES].

    It is what the best of several layers reaches by chance. A film's metric is a sum over clips of weight
    times rank term, where the weight depends on the clip's label alone, and the rank term on its score. If
    clips exchange their weights, the metric is therefore that after an exchange of labels.
    """
    n_layers = films[0].rank_terms.shape[1]
    values = np.zeros((N_EXCHANGES, n_layers))
    for film in films:
        same_weights = np.tile(film.weights, (N_EXCHANGES, 1))  # [N_EXCHANGES, n]
        exchanged_weights = rng.permuted(same_weights, axis=1)  # each row in another order
        values += film.metric(exchanged_weights) / len(films)
    best: NDArray[np.float64] = values.max(axis=1)
    return best


class _Clips(NamedTuple):
    """The labels of a film's n clips, and their ranks by each of L layers and S seeds.

    Attributes
    ----------
    labels : ndarray, shape [n]
        0 or 1, or ranks of levels.
    ranks : ndarray, shape [S, n, L]
        Rank of each clip's score in the film by each layer, from 1, for each seed.
    """

    labels: NDArray[np.float64]
    ranks: NDArray[np.float64]


class _MetricOfFilm(NamedTuple):
    """A metric of each layer in one film: the sum over clips of weight times rank term, plus a constant.

    The weights depend on the labels only, so that exchanging labels means exchanging weights.

    Attributes
    ----------
    weights : ndarray, shape [n]
        Weight of each clip, by its label.
    rank_terms : ndarray, shape [n, L]
        Made of each clip's rank by each layer; the mean over seeds.
    constant : float
        Added to the sum.
    """

    weights: NDArray[np.float64]
    rank_terms: NDArray[np.float64]
    constant: float

    def metric(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the metric of each layer [B, L] with each of B orders of the weights [B, n]."""
        return np.asarray(weights @ self.rank_terms + self.constant)


def _auc_as_weighted_sum(clips: _Clips) -> _MetricOfFilm:
    """Write the AUC of each layer in a film as a weighted sum of its clips' ranks (Mann and Whitney 1947).

    The rank sum of the n positive clips is at least 1 + 2 + ... + n. What it is above this minimum is the
    number of pairs of a positive and a negative clip in the right order. The AUC is this number divided by
    that of all pairs: sum over clips of (label / pairs) * rank, minus (smallest rank sum / pairs).
    """
    n_positive = clips.labels.sum()
    n_negative = len(clips.labels) - n_positive
    n_pairs = n_positive * n_negative
    smallest_rank_sum = n_positive * (n_positive + 1) / 2
    return _MetricOfFilm(
        weights=clips.labels / n_pairs,
        rank_terms=clips.ranks.mean(axis=0),  # [seeds, clips, layers] -> [clips, layers]
        constant=float(-smallest_rank_sum / n_pairs),
    )


def _spearman_as_weighted_sum(clips: _Clips) -> _MetricOfFilm:
    """Write Spearman's correlation of each layer in a film as a weighted sum of standardised ranks.

    The correlation is the mean over clips of a product: the standardised rank of the label times the
    standardised rank of the score. A clip's weight is its label's standardised rank, divided by the number of
    clips. A layer whose scores are all equal has the correlation 0. The mean correlation over seeds is that
    of the mean standardised ranks, as it is a sum of them.
    """
    label_ranks = rankdata(clips.labels)
    n_clips = len(label_ranks)
    weights = (label_ranks - label_ranks.mean()) / (label_ranks.std() * n_clips)
    # The ranks of scores are standardised over the clips (axis 1), for each seed and layer.
    deviations = clips.ranks - clips.ranks.mean(axis=1, keepdims=True)  # [seeds, clips, layers]
    scale = deviations.std(axis=1, keepdims=True)
    # Scores that are all equal have the scale 0; their standardised ranks are set to 0.
    standardised = np.divide(deviations, scale, out=np.zeros_like(deviations), where=scale > 0)
    return _MetricOfFilm(weights, rank_terms=standardised.mean(axis=0), constant=0.0)


def _ranked_clips(table: pd.DataFrame, models: list[str]) -> list[_Clips]:
    """Rank the clips of each film by the scores of each model and seed; there is a model for each layer.

    Films whose clips all have one label are left out. All models were tested on the same clips with the same
    seeds: sorted by id, as `_ranks_by_seed` sorts them too, clips are in one order for all of them.
    """
    films = []
    for _, rows_of_film in table[table["model"].isin(models)].groupby("movie", sort=True):
        clips = rows_of_film.drop_duplicates("clip_id").sort_values("clip_id")
        labels = clips["label"].to_numpy(np.float64)
        has_one_label = labels.min() == labels.max()
        if has_one_label:
            continue
        rows_of_models = [rows_of_film[rows_of_film["model"] == model] for model in models]
        ranks = np.stack([_ranks_by_seed(rows) for rows in rows_of_models], axis=2)  # [seeds, clips, layers]
        films.append(_Clips(labels, ranks))
    return films


def _ranks_by_seed(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Rank clips by a model's scores in one film, for each seed: [seeds, clips], with clips sorted by id."""
    ranks_of_seeds = []
    for _, rows_of_seed in rows.groupby("seed"):
        scores = rows_of_seed.sort_values("clip_id")["score"]
        ranks_of_seeds.append(rankdata(scores))
    return np.stack(ranks_of_seeds)
